/*
 * test_shm_ring_deaths.c - the ring between processes that die or stop: at each instruction of a call and
 * of a recovery, and at random.
 */
#include "shm_ring_kit.h"

/* -- kill -9 ----------------------------------------------------------------------------------- */

struct death {
	int file;
	bool takes;   /* the child dequeues; otherwise it enqueues */
	bool forward; /* before the recovery, other items pass through all slots */
};

enum { DEATH_CAPACITY = 4, VICTIM = 1000 };

static int die_in_a_call(void *context)
{
	const struct death *death = context;
	weir_shm_ring *ring;
	uint64_t item[WORDS];
	size_t size;

	CHILD_CHECK(weir_shm_ring_attach(death->file, &ring, NULL) == WEIR_OK);
	for (size_t i = 0; i < WORDS; i++)
		item[i] = VICTIM * WORDS + i;
	CHILD_CHECK(shm_begin_steps() == 0);
	if (death->takes)
		(void)weir_shm_ring_try_dequeue(ring, item, sizeof(item), &size);
	else
		(void)weir_shm_ring_try_enqueue(ring, item, sizeof(item));
	(void)shm_end_steps();
	return 0;
}

/* Dequeues all; each of 1, 2, 3 comes at most once and in order, VICTIM at most once. Returns how many. */
static size_t drain(weir_shm_ring *ring)
{
	uint64_t number, last = 0;
	size_t count = 0;

	while (get(ring, &number) == WEIR_OK) {
		cr_assert_gt(number, last);
		cr_assert(number <= 3 || number == VICTIM || (number >= 2000 && number < 3000), "%llu",
		          (unsigned long long)number);
		last = number < 2000 ? number : last;
		count++;
	}
	return count;
}

/* Returns 0 when the call ends before instruction number `at`. */
static int die_at(struct death death, size_t at)
{
	weir_shm_ring *ring;
	pid_t child;
	size_t inside, freed = 0;
	int goes_on;

	death.file = shm_file();
	ring = make(death.file, DEATH_CAPACITY, ITEM, 2, 1);
	for (uint64_t i = 1; i <= 3; i++)
		cr_assert_eq(put(ring, i), WEIR_OK);
	child = shm_stepped_child(die_in_a_call, &death);
	goes_on = shm_kill_after(child, at);
	if (death.forward) {
		inside = drain(ring);
		for (uint64_t i = 0; i < 3 * DEATH_CAPACITY; i++) {
			cr_assert_eq(put(ring, 2000 + i), WEIR_OK);
			cr_assert_eq(drain(ring), 1u);
		}
	} else {
		inside = weir_shm_ring_size_approx(ring);
	}
	cr_assert(death.takes ? inside == 2 || inside == 3 : inside == 3 || inside == 4, "%zu inside", inside);
	cr_assert_eq(weir_shm_ring_recover(ring, &freed), WEIR_OK);
	cr_assert_eq(freed, 1u);
	expect_whole(ring);
	cr_assert_eq(drain(ring), death.forward ? 0 : inside);
	expect_exact(ring, 50);
	/* The seat works for another process. */
	cr_assert_eq(weir_shm_ring_destroy(join(death.file), NULL), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(death.file);
	return goes_on;
}

static void die_at_each(bool takes, bool forward)
{
	size_t at = 0;

	shm_steps_or_skip();
	while (die_at((struct death){.takes = takes, .forward = forward}, at))
		at += SHM_STEP_STRIDE;
	cr_assert_gt(at, 100u, "the call has %zu instructions", at);
}

Test(shm_ring_deaths, killed_at_each_instruction_of_an_enqueue)
{
	die_at_each(false, false);
}

Test(shm_ring_deaths, killed_at_each_instruction_of_an_enqueue_and_overtaken)
{
	die_at_each(false, true);
}

Test(shm_ring_deaths, killed_at_each_instruction_of_a_dequeue)
{
	die_at_each(true, false);
}

Test(shm_ring_deaths, killed_at_each_instruction_of_a_dequeue_and_overtaken)
{
	die_at_each(true, true);
}

enum { VICTIMS_SEAT = 1 };

static int die_in_a_recovery(void *context)
{
	const struct death *death = context;
	struct weiri_frames *frames;
	weir_shm_ring *ring;

	CHILD_CHECK(weir_shm_ring_attach(death->file, &ring, NULL) == WEIR_OK);
	frames = (struct weiri_frames *)(void *)ring;
	CHILD_CHECK(shm_begin_steps() == 0);
	(void)weiri_frames_recover_hands(frames, VICTIMS_SEAT,
	                                 weiri_seats_owner(&weiri_frames_seats(frames)[VICTIMS_SEAT]));
	(void)shm_end_steps();
	return 0;
}

/* Where a taker dies: after its CAS, after it has stored the token, and before it has stored `kept`. */
enum place { AFTER_CAS, AFTER_TOKEN, BEFORE_KEPT, PLACES };

/* What the taker changes, in this order. */
struct changes {
	uint64_t slot, token, kept;
};

static struct changes look_at(const struct weiri_frames *frames, uint32_t frame)
{
	const _Atomic(uint64_t) *slots = frames->ring->slots;

	return (struct changes){weiri_load_acquire(&slots[0]), weiri_load_acquire(&weiri_frames_at(frames, frame)->token),
	                        weiri_load_acquire(&frames->hands[VICTIMS_SEAT].kept)};
}

/* Returns how many instructions the taker has executed when it is at the place. */
static size_t steps_to(enum place place)
{
	struct death death = {.file = shm_file(), .takes = true};
	weir_shm_ring *ring = make(death.file, DEATH_CAPACITY, ITEM, 2, 1);
	const struct weiri_frames *frames = (const struct weiri_frames *)(void *)ring;
	struct changes before, now;
	size_t steps = 0;
	uint32_t frame;
	pid_t child;

	cr_assert_eq(put(ring, 1), WEIR_OK);
	before = look_at(frames, 0);
	frame = (uint32_t)(before.slot & ((UINT64_C(1) << frames->ring->cell_bits) - 1));
	before = now = look_at(frames, frame);
	child = shm_stepped_child(die_in_a_call, &death);
	while (place == AFTER_CAS     ? now.slot == before.slot
	       : place == AFTER_TOKEN ? now.token == before.token
	                              : now.kept == before.kept) {
		cr_assert(shm_step(child), "the taker has ended before");
		now = look_at(frames, frame);
		steps++;
	}
	cr_assert(place != AFTER_CAS || now.token == before.token);
	cr_assert(place != AFTER_TOKEN || (now.slot != before.slot && now.kept == before.kept));
	shm_kill(child);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(death.file);
	return place == BEFORE_KEPT ? steps - 1 : steps;
}

/*
 * A process dies between its CAS and the records of it, and then the process that recovers it dies,
 * at each instruction.
 */
static int recover_and_die_at(size_t first, size_t at)
{
	struct death death = {.file = shm_file(), .takes = true};
	weir_shm_ring *ring = make(death.file, DEATH_CAPACITY, ITEM, 3, 1);
	uint64_t number = 0;
	size_t freed;
	int goes_on;

	cr_assert_eq(put(ring, 1), WEIR_OK);
	(void)shm_kill_after(shm_stepped_child(die_in_a_call, &death), first);
	cr_assert_eq(weir_shm_ring_size_approx(ring), 0u, "the taker has not taken");
	cr_assert_eq(put(ring, 2), WEIR_OK);
	goes_on = shm_kill_after(shm_stepped_child(die_in_a_recovery, &death), at);
	cr_assert_eq(weir_shm_ring_recover(ring, &freed), WEIR_OK);
	cr_assert_eq(freed, 2u);
	expect_whole(ring);
	cr_assert_eq(get(ring, &number), WEIR_OK);
	cr_assert_eq(number, 2u);
	expect_exact(ring, 50);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(death.file);
	return goes_on;
}

Test(shm_ring_deaths, killed_at_each_instruction_of_a_recovery)
{
	shm_steps_or_skip();
	for (enum place place = AFTER_CAS; place < PLACES; place++) {
		size_t first = steps_to(place), at = 0;

		while (recover_and_die_at(first, at))
			at += SHM_STEP_STRIDE;
		cr_assert_gt(at, 50u, "the recovery has %zu instructions", at);
	}
}

/* -- kills at random, with traffic ------------------------------------------------------------- */

enum { PRODUCERS = 3, KILLS = 150, INCARNATIONS = KILLS + PRODUCERS + 1 };

struct traffic {
	int file;
	uint64_t incarnation;
};

static int produce_for_ever(void *context)
{
	const struct traffic *traffic = context;
	weir_shm_ring *ring;
	weir_error error = {WEIR_OK, ""};
	uint64_t sequence = 0;

	if (weir_shm_ring_attach(traffic->file, &ring, &error) != WEIR_OK)
		(void)fprintf(stderr, "%s\n", error.message);
	CHILD_CHECK(error.code == WEIR_OK);
	for (;;) {
		if (put(ring, traffic->incarnation << 32 | (sequence + 1)) == WEIR_OK)
			sequence++;
	}
}

/* Takes what is inside. The items of one producer come in order, without a gap. */
static void receive(weir_shm_ring *ring, uint64_t last[], size_t most)
{
	uint64_t number;

	for (size_t i = 0; i < most && get(ring, &number) == WEIR_OK; i++) {
		uint64_t who = number >> 32;

		cr_assert_lt(who, (uint64_t)INCARNATIONS, "a torn item");
		cr_assert_eq((uint32_t)number, ++last[who]);
	}
}

Test(shm_ring_deaths, producers_are_killed_at_random)
{
	struct traffic traffic = {.file = shm_file()};
	weir_shm_ring *ring = make(traffic.file, 64, ITEM, PRODUCERS + 1, 1);
	uint64_t last[INCARNATIONS] = {0}, random = 4711;
	pid_t child[PRODUCERS];

	for (int i = 0; i < PRODUCERS; i++, traffic.incarnation++)
		child[i] = shm_child(produce_for_ever, &traffic);
	for (int kills = 0; kills < KILLS; kills++, traffic.incarnation++) {
		size_t victim;
		uint64_t until;

		random = random * 6364136223846793005u + 1442695040888963407u;
		victim = (size_t)(random >> 33) % PRODUCERS;
		until = weir_now_ns() + (random >> 20) % 700000;
		do {
			receive(ring, last, 64);
		} while (weir_now_ns() < until);
		shm_kill(child[victim]);
		child[victim] = shm_child(produce_for_ever, &traffic); /* attach recovers the seat */
	}
	for (int i = 0; i < PRODUCERS; i++)
		shm_kill(child[i]);
	receive(ring, last, SIZE_MAX);
	cr_assert_eq(weir_shm_ring_recover(ring, NULL), WEIR_OK);
	expect_whole(ring);
	expect_exact(ring, 1);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(traffic.file);
}

static int hold_a_frame(void *context)
{
	const struct traffic *traffic = context;
	struct weir_shm_frame frame;
	weir_shm_ring *ring;

	CHILD_CHECK(weir_shm_ring_attach(traffic->file, &ring, NULL) == WEIR_OK);
	CHILD_CHECK(weir_shm_ring_try_reserve(ring, &frame) == WEIR_OK);
	CHILD_CHECK(raise(SIGSTOP) == 0);
	return 0;
}

Test(shm_ring_deaths, a_stopped_process_is_not_gone_and_blocks_no_other)
{
	struct traffic traffic = {.file = shm_file()};
	weir_shm_ring *ring = make(traffic.file, 4, ITEM, 2, 1), *other = NULL;
	pid_t child = shm_child(hold_a_frame, &traffic);
	siginfo_t info;
	size_t freed = 7;
	int status;

	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	cr_assert(WIFSTOPPED(status));
	cr_assert_eq(weir_shm_ring_recover(ring, &freed), WEIR_OK);
	cr_assert_eq(freed, 0u);
	expect_exact(ring, 1);
	cr_assert_eq(weir_shm_ring_attach(traffic.file, &other, NULL), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(kill(child, SIGKILL), 0);
	/* A zombie is gone, although its parent has not waited for it. */
	cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	cr_assert_eq(weir_shm_ring_recover(ring, &freed), WEIR_OK);
	cr_assert_eq(freed, 1u);
	cr_assert_eq(weir_shm_ring_recover(ring, &freed), WEIR_OK);
	cr_assert_eq(freed, 0u);
	cr_assert_eq(waitpid(child, &status, 0), child);
	other = join(traffic.file);
	cr_assert_eq(weir_shm_ring_destroy(other, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(traffic.file);
}

/* -- stopped processes ------------------------------------------------------------------------- */

enum { STOPPED = 63, STOPPED_HANDS = 2 };

static int stop_in_an_enqueue(void *context)
{
	const struct traffic *traffic = context;
	uint64_t item[WORDS] = {0};
	struct weir_shm_frame held;
	weir_shm_ring *ring;

	CHILD_CHECK(weir_shm_ring_attach(traffic->file, &ring, NULL) == WEIR_OK);
	CHILD_CHECK(weir_shm_ring_try_reserve(ring, &held) == WEIR_OK);
	CHILD_CHECK(shm_begin_steps() == 0);
	(void)weir_shm_ring_try_enqueue(ring, item, sizeof(item));
	(void)shm_end_steps();
	return 0;
}

/*
 * As many processes as a ring has seats, but one, are stopped, each at another instruction of its
 * enqueue, and each has reserved one more frame. In the LTQ64 format of one process, 64 stopped
 * enqueues make others wait. Here they do not, and a recovery finds all their frames.
 */
Test(shm_ring_deaths, stopped_enqueues_of_all_other_processes_block_no_enqueue)
{
	enum { ROOM = 2 * STOPPED, APART = 4 };
	struct traffic traffic = {0};
	uint64_t number, inside = 0;
	pid_t child[STOPPED];
	weir_shm_ring *ring;
	size_t freed = 0;

	shm_steps_or_skip();
	traffic.file = shm_file();
	ring = make(traffic.file, ROOM, ITEM, STOPPED + 1, STOPPED_HANDS);
	for (size_t i = 0; i < STOPPED; i++) {
		int goes_on = 1;

		child[i] = shm_stepped_child(stop_in_an_enqueue, &traffic);
		for (size_t k = 0; k < APART * i && goes_on; k++)
			goes_on = shm_step(child[i]);
	}
	while (get(ring, &number) == WEIR_OK)
		inside++;
	cr_assert_leq(inside, (uint64_t)STOPPED);
	expect_exact(ring, 1);
	cr_assert_eq(weir_shm_ring_recover(ring, &freed), WEIR_OK);
	cr_assert_eq(freed, 0u, "a stopped process is not gone");
	for (size_t i = 0; i < STOPPED; i++)
		shm_kill(child[i]);
	cr_assert_eq(weir_shm_ring_recover(ring, &freed), WEIR_OK);
	cr_assert_eq(freed, (size_t)STOPPED);
	expect_whole(ring);
	expect_exact(ring, 1);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	(void)close(traffic.file);
}
