/*
 * scenario_shm.c - processes on rings in shared memory are killed at random moments.
 *
 * Two children publish numbers on one ring, which this process takes; two take numbers from another
 * ring, which this process publishes, and mark them in shared memory. A child is killed at a random
 * moment and replaced, again and again. What must hold: the numbers of each publisher arrive whole,
 * in order and without a gap; no number is marked twice; a kill loses at most the one number that
 * its process had taken; after a recovery both rings hold exactly their capacity.
 */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/shm_ring.h>
#include <weir/time.h>

#include "harness.h"
#include "scenarios.h"

enum { PUBLISHERS = 2, TAKERS = 2, CHILDREN = PUBLISHERS + TAKERS, CAPACITY = 32, WORDS = 16 };
enum { MARKS = 1 << 26, WORD_BITS = 64, CHILD_SECONDS = 600 };

/* In shared memory, beside the rings. */
struct marks {
	_Atomic(uint32_t) twice, torn;
	_Atomic(uint64_t) taken[MARKS / WORD_BITS];
};

struct child {
	pid_t process;
	uint64_t publisher; /* a number of its own */
	uint64_t next;      /* the number that must come */
};

static struct world {
	int in_file, out_file; /* of the ring that this process takes from, and of the other */
	weir_shm_ring *in, *out;
	struct marks *marks;
	struct child children[CHILDREN];
	uint64_t publishers, published, kills_of_takers;
} world;

static uint64_t word_of(uint64_t publisher, uint64_t number, size_t i)
{
	return stress_mix(publisher << 40 ^ number) + i;
}

static enum weir_status publish(weir_shm_ring *ring, uint64_t publisher, uint64_t number)
{
	struct weir_shm_frame frame;
	enum weir_status status = weir_shm_ring_try_reserve(ring, &frame);
	uint64_t *words;

	if (status != WEIR_OK)
		return status;
	words = frame.data;
	words[0] = publisher;
	words[1] = number;
	for (size_t i = 2; i < WORDS; i++)
		words[i] = word_of(publisher, number, i);
	status = weir_shm_ring_try_publish(ring, &frame, WORDS * sizeof(uint64_t));
	if (status != WEIR_OK)
		(void)weir_shm_ring_release(ring, &frame);
	return status;
}

/* Returns the status; *whole is 0 if the item is torn. */
static enum weir_status take(weir_shm_ring *ring, uint64_t *publisher, uint64_t *number, int *whole)
{
	struct weir_shm_frame frame;
	enum weir_status status = weir_shm_ring_try_take(ring, &frame);
	const uint64_t *words;

	if (status != WEIR_OK)
		return status;
	words = frame.data;
	*publisher = words[0];
	*number = words[1];
	*whole = frame.size == WORDS * sizeof(uint64_t);
	for (size_t i = 2; i < WORDS; i++)
		*whole &= words[i] == word_of(*publisher, *number, i);
	(void)weir_shm_ring_release(ring, &frame);
	return WEIR_OK;
}

/* -- children, which end by a signal ----------------------------------------------------------- */

static void publish_for_ever(uint64_t publisher)
{
	weir_shm_ring *ring;

	if (weir_shm_ring_attach(world.in_file, &ring, NULL) != WEIR_OK)
		_exit(1);
	for (uint64_t number = 1;;) {
		if (publish(ring, publisher, number) == WEIR_OK)
			number++;
		else
			(void)sched_yield();
	}
}

static void take_for_ever(void)
{
	struct marks *marks = world.marks;
	uint64_t publisher, number;
	weir_shm_ring *ring;
	int whole;

	if (weir_shm_ring_attach(world.out_file, &ring, NULL) != WEIR_OK)
		_exit(1);
	for (;;) {
		uint64_t bit;

		if (take(ring, &publisher, &number, &whole) != WEIR_OK) {
			(void)sched_yield();
			continue;
		}
		bit = UINT64_C(1) << number % WORD_BITS;
		/* [relaxed] counts, which the parent reads after the child's end. */
		if (!whole || number >= MARKS)
			weiri_store_relaxed(&marks->torn, 1u);
		else if ((weiri_fetch_or_acq_rel(&marks->taken[number / WORD_BITS], bit) & bit) != 0)
			weiri_store_relaxed(&marks->twice, 1u);
	}
}

static void start(size_t which)
{
	struct child *child = &world.children[which];

	*child = (struct child){.publisher = which < PUBLISHERS ? ++world.publishers : 0, .next = 1};
	child->process = fork();
	STRESS_CHECK(child->process >= 0, "fork failed");
	if (child->process != 0)
		return;
	(void)alarm(CHILD_SECONDS);
	if (which < PUBLISHERS)
		publish_for_ever(child->publisher);
	else
		take_for_ever();
}

/* -- this process ------------------------------------------------------------------------------ */

/* Takes what the publishers sent. */
static void receive(struct stress_thread *self)
{
	uint64_t publisher, number;
	int whole;

	for (int i = 0; i < CAPACITY && take(world.in, &publisher, &number, &whole) == WEIR_OK; i++) {
		struct child *child = NULL;

		for (size_t k = 0; k < PUBLISHERS && child == NULL; k++)
			child = world.children[k].publisher == publisher ? &world.children[k] : NULL;
		STRESS_CHECK(whole && child != NULL, "an item is torn, or of no publisher");
		STRESS_CHECK(number == child->next, "number %llu came, expected %llu", (unsigned long long)number,
		             (unsigned long long)child->next);
		child->next++;
		stress_end(self, 1);
	}
}

static void send(struct stress_thread *self)
{
	for (int i = 0; i < CAPACITY && world.published < MARKS; i++) {
		if (publish(world.out, 0, world.published) != WEIR_OK)
			return;
		world.published++;
		stress_end(self, 1);
	}
}

static void kill_one(struct stress_thread *self)
{
	size_t which = (size_t)stress_below(self, CHILDREN);
	struct child dead = world.children[which];

	(void)kill(dead.process, SIGKILL);
	STRESS_CHECK(waitpid(dead.process, NULL, 0) == dead.process, "no child to wait for");
	/* What it has published is inside; afterwards no more of it comes. */
	for (size_t left = weir_shm_ring_size_approx(world.in) + 1; left > 0; left -= left < CAPACITY ? left : CAPACITY)
		receive(self);
	world.kills_of_takers += which >= PUBLISHERS;
	start(which);
}

static weir_shm_ring *make(int *file)
{
	struct weir_shm_ring_options options = {WEIR_SHM_RING_OPTIONS_INIT, .processes = CHILDREN + 1,
	                                        .frames_per_process = 1};
	weir_shm_ring *ring = NULL;

	*file = memfd_create("stress", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	STRESS_CHECK(weir_shm_ring_create(*file, CAPACITY, WORDS * sizeof(uint64_t), &options, &ring, NULL) == WEIR_OK,
	             "no ring");
	return ring;
}

/* After a recovery the ring holds exactly its capacity. Returns how many it held before. */
static uint64_t expect_exact(weir_shm_ring *ring)
{
	uint64_t publisher, number, inside = 0;
	int whole;

	STRESS_CHECK(weir_shm_ring_recover(ring, NULL) == WEIR_OK, "damaged");
	while (take(ring, &publisher, &number, &whole) == WEIR_OK)
		inside++;
	for (uint64_t i = 0; i < CAPACITY; i++)
		STRESS_CHECK(publish(ring, 0, i) == WEIR_OK, "only %llu items fit", (unsigned long long)i);
	STRESS_CHECK(publish(ring, 0, 0) == WEIR_WOULD_BLOCK, "the ring holds too many items");
	return inside;
}

static void judge(uint64_t kills)
{
	const struct marks *marks = world.marks;
	uint64_t taken = 0, inside;

	(void)expect_exact(world.in);
	inside = expect_exact(world.out);
	for (size_t i = 0; i < MARKS / WORD_BITS; i++)
		taken += (uint64_t)__builtin_popcountll(weiri_load_relaxed(&marks->taken[i])); /* [relaxed] all have ended */
	STRESS_CHECK(weiri_load_relaxed(&marks->torn) == 0, "a taker found a torn item");
	STRESS_CHECK(weiri_load_relaxed(&marks->twice) == 0, "an item was taken twice");
	STRESS_CHECK(taken + inside <= world.published &&
	                 world.published - taken - inside <= world.kills_of_takers + TAKERS,
	             "%llu published, %llu taken, %llu inside, %llu takers killed", (unsigned long long)world.published,
	             (unsigned long long)taken, (unsigned long long)inside, (unsigned long long)world.kills_of_takers);
	stress_note("kills", kills);
}

void scenario_shm_killed(void)
{
	struct stress_thread *self = stress_self();
	uint64_t kills = 0;

	memset(&world, 0, sizeof(world));
	/* cppcheck-suppress invalidFunctionArg ; -1 is right without a file */
	world.marks = mmap(NULL, sizeof(*world.marks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	STRESS_CHECK(world.marks != MAP_FAILED, "no memory");
	world.in = make(&world.in_file);
	world.out = make(&world.out_file);
	for (size_t i = 0; i < CHILDREN; i++)
		start(i);
	while (stress_goes_on()) {
		uint64_t until = weir_now_ns() + stress_below(self, 500000);

		stress_begin(self, "pass items");
		do {
			receive(self);
			send(self);
		} while (weir_now_ns() < until);
		kill_one(self);
		kills++;
	}
	for (size_t i = 0; i < CHILDREN; i++) {
		(void)kill(world.children[i].process, SIGKILL);
		(void)waitpid(world.children[i].process, NULL, 0);
	}
	judge(kills);
	(void)weir_shm_ring_destroy(world.in, NULL);
	(void)weir_shm_ring_destroy(world.out, NULL);
	(void)munmap(world.marks, sizeof(*world.marks));
	(void)close(world.in_file);
	(void)close(world.out_file);
}
