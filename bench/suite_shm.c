/*
 * suite_shm.c - messages from process to process, and how many kill -9 that survives.
 *
 * Children send, another child receives and counts in shared memory, and this process looks at the
 * count. So no contender can block this process, whatever state a killed child leaves behind.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"
#include "suite.h"

enum { SENDERS = 3, CAPACITY_SMALL = 1024, CAPACITY_LARGE = 16, SMALL = 64, LARGE = 256 * 1024 };
/* Senders have numbers; each that takes the place of a killed one has a new number. */
enum { MOST_KILLS = 2000, MOST_SENDERS = MOST_KILLS + SENDERS, KILL_EVERY_US = 500 };
static const uint64_t patience_ns = UINT64_C(1000000000);

/* The beginning of a message; the rest repeats `number`, and the end is looked at. */
struct head {
	uint64_t sender, number;
};

/* In memory that all processes share. */
struct arena {
	_Atomic(uint64_t) received;
	_Atomic(uint32_t) wrong; /* a message was torn, missing, doubled, or in another order */
};

struct scene {
	const struct carrier_contender *contender;
	void *self;
	size_t bytes;
	unsigned char *message; /* of this process */
	struct arena *arena;
	pid_t receiver, senders[SENDERS];
	uint64_t next_sender;
};

static void cannot(const char *what)
{
	(void)fprintf(stderr, "\nweir-bench: suite shm: %s: %s\n", what, strerror(errno));
	exit(BENCH_CANNOT);
}

/* -- children ---------------------------------------------------------------------------------- */

static void send_for_ever(struct scene *s, uint64_t sender)
{
	for (uint64_t number = 1;; number++) {
		struct head head = {sender, number};

		memcpy(s->message, &head, sizeof(head));
		memcpy(s->message + s->bytes - sizeof(number), &number, sizeof(number));
		s->contender->send(s->self, s->message);
	}
}

static void receive_for_ever(struct scene *s)
{
	static uint64_t last[MOST_SENDERS];
	uint64_t end;
	struct head head;

	for (;;) {
		s->contender->receive(s->self, s->message);
		memcpy(&head, s->message, sizeof(head));
		memcpy(&end, s->message + s->bytes - sizeof(end), sizeof(end));
		if (head.sender >= MOST_SENDERS || end != head.number || head.number != ++last[head.sender])
			atomic_store_explicit(&s->arena->wrong, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&s->arena->received, 1, memory_order_relaxed);
	}
}

/* A child ends with this process at the latest. */
static pid_t start(struct scene *s, bool sends)
{
	uint64_t sender = s->next_sender;
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		cannot("fork");
	s->next_sender += sends;
	if (child != 0)
		return child;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (s->contender->join != NULL)
		s->contender->join(s->self);
	if (sends)
		send_for_ever(s, sender);
	receive_for_ever(s);
	_exit(0);
}

static void end(pid_t child)
{
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
}

/* -- this process ------------------------------------------------------------------------------ */

static void nap(uint64_t nanoseconds)
{
	struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};

	(void)nanosleep(&time, NULL);
}

static uint64_t received(const struct scene *s)
{
	return atomic_load_explicit(&s->arena->received, memory_order_relaxed);
}

/* Returns false if nothing arrives for patience_ns. */
static bool arrives(const struct scene *s, uint64_t before)
{
	uint64_t until = bench_now_ns() + patience_ns;

	while (received(s) == before && bench_now_ns() < until)
		nap(50000);
	return received(s) != before;
}

static void begin(struct scene *s, const struct bench_workload *workload, const void *contender)
{
	*s = (struct scene){.contender = contender, .bytes = workload->bytes};
	s->message = calloc(1, workload->bytes);
	s->arena = mmap(NULL, sizeof(*s->arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->message == NULL || s->arena == MAP_FAILED)
		cannot("no memory");
	s->self = s->contender->create(workload->capacity, workload->bytes);
	s->receiver = start(s, false);
	for (unsigned i = 0; i < workload->left; i++)
		s->senders[i] = start(s, true);
}

static void finish(struct scene *s, const struct bench_workload *workload)
{
	end(s->receiver);
	for (unsigned i = 0; i < workload->left; i++)
		end(s->senders[i]);
	s->contender->destroy(s->self);
	(void)munmap(s->arena, sizeof(*s->arena));
	free(s->message);
}

static void measure_rate(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	struct scene s;
	uint64_t before, begun;

	s.contender = contender;
	if (s.contender->rate_apart != NULL) {
		sample->window_ns = workload->duration_ms * UINT64_C(1000000);
		sample->value = s.contender->rate_apart(workload->capacity, workload->bytes, workload->duration_ms) / 1000;
		if (sample->value <= 0)
			(void)snprintf(sample->wrong, sizeof(sample->wrong), "its process did not give a rate");
		return;
	}
	begin(&s, workload, contender);
	if (!arrives(&s, 0))
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "nothing arrives");
	before = received(&s);
	begun = bench_now_ns();
	nap(workload->duration_ms * UINT64_C(1000000));
	sample->operations = (double)(received(&s) - before);
	sample->window_ns = bench_now_ns() - begun;
	sample->value = sample->operations * 1e6 / (double)sample->window_ns;
	if (atomic_load_explicit(&s.arena->wrong, memory_order_relaxed) != 0)
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "a message was torn, lost or out of order");
	finish(&s, workload);
}

/* About as many kills as fit into five times the duration, and not more than MOST_KILLS. */
static unsigned most_kills(const struct bench_workload *workload)
{
	unsigned most = workload->duration_ms * 5;

	return most < MOST_KILLS ? most : MOST_KILLS;
}

static void measure_kills(const struct bench_workload *workload, const void *contender, struct bench_sample *sample)
{
	const unsigned most = most_kills(workload);
	struct scene s;
	unsigned kills = 0;
	uint64_t random = 4711, begun = bench_now_ns();

	s.contender = contender;
	if (s.contender->kills_apart != NULL) {
		sample->value = s.contender->kills_apart(workload->capacity, workload->bytes, most);
		sample->window_ns = bench_now_ns() - begun;
		return;
	}
	begin(&s, workload, contender);
	while (kills < most && arrives(&s, received(&s)) &&
	       atomic_load_explicit(&s.arena->wrong, memory_order_relaxed) == 0) {
		unsigned victim;

		random = random * UINT64_C(6364136223846793005) + 1;
		victim = (unsigned)(random >> 33) % SENDERS;
		nap((random >> 20) % (2 * KILL_EVERY_US * UINT64_C(1000)));
		end(s.senders[victim]);
		s.senders[victim] = start(&s, true);
		kills++;
	}
	sample->value = kills;
	sample->operations = (double)received(&s);
	sample->window_ns = bench_now_ns() - begun;
	finish(&s, workload);
}

/* -- plan -------------------------------------------------------------------------------------- */

static void plan_one(struct bench_plan *plan, const struct bench_workload *workload)
{
	struct bench_workload *planned = bench_plan_workload(plan, workload);

	for (size_t c = 0; planned != NULL && bench_carriers[c] != NULL; c++) {
		if (workload->measure != measure_kills || !bench_carriers[c]->no_kills)
			bench_plan_contender(plan, planned, &bench_carriers[c]->about, bench_carriers[c]);
	}
}

static void plan(struct bench_plan *plan, const struct bench_options *options)
{
	const struct bench_workload small = {.suite = "shm",
	                                     .name = "messages of 64 bytes",
	                                     .unit = "kmessages/s",
	                                     .left = 1,
	                                     .right = 1,
	                                     .capacity = CAPACITY_SMALL,
	                                     .bytes = SMALL,
	                                     .measure = measure_rate};
	const struct bench_workload large = {.suite = "shm",
	                                     .name = "messages of 256 KiB",
	                                     .unit = "kmessages/s",
	                                     .left = 1,
	                                     .right = 1,
	                                     .capacity = CAPACITY_LARGE,
	                                     .bytes = LARGE,
	                                     .measure = measure_rate};
	const struct bench_workload kills = {.suite = "shm",
	                                     .name = "kills survived",
	                                     .unit = "kills",
	                                     .left = SENDERS,
	                                     .right = 1,
	                                     .capacity = CAPACITY_SMALL,
	                                     .bytes = SMALL,
	                                     .measure = measure_kills};

	(void)options;
	plan_one(plan, &small);
	plan_one(plan, &large);
	plan_one(plan, &kills);
}

static const char *const explain[][2] = {
	{"messages of 64 bytes, of 256 KiB", "one process sends as fast as it can, and another receives. Each message is "
                                         "copied in and out once, except \"in place\". The figure is thousands of "
                                         "messages received per second. The receiver checks the order and both ends "
                                         "of each message."},
	{"kills survived",
     "three processes send messages of 64 bytes to one. One of the three is killed at a random moment, "
     "every 0.5 ms on average, and replaced. The figure is the number of kills after which nothing "
     "arrives for 1 s, or a message is torn, lost or out of order. It is at most 5 for each ms of "
     "the duration, and 2,000; a contender with that number had not failed."},
	{NULL, NULL},
};

const struct bench_suite bench_shm_suite = {"shm", "shm", plan, explain};
