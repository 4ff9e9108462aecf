/*
 * scenario_threads.c - events of threads: they start and end, signals interrupt them, the process
 * forks.
 *
 *   thread_churn  thousands of short-lived threads use variables and a queue; their records are
 *                 reused
 *   signal_read   handlers read variables wherever the interrupted thread is in the library
 *   fork          a process forks while its threads are anywhere in the library; the child works on
 *                 the same structures
 */
#include "harness.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/ring.h>
#include <weir/time.h>
#include <weir/var.h>

#include "blocks.h"
#include "poison.h"
#include "scenarios.h"

enum { MOST_VARIABLES = 4, WORDS = 24 };

static const uint64_t patience_ns = 100000000000u;

static weir_var *variables[MOST_VARIABLES];
static _Atomic(uint32_t) quit;

static int goes_on(void)
{
	return weiri_load_relaxed(&quit) == 0; /* [relaxed] the threads are joined */
}

static struct weir_reclaim_stats stats_now(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	(void)weir_reclaim_get_stats(&stats);
	return stats;
}

static void make_variables(size_t count, weir_tensor *(*make)(uint64_t), const weir_allocator *allocator)
{
	for (size_t i = 0; i < count; i++) {
		struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = allocator};
		weir_tensor *first = make(0);

		STRESS_CHECK(weir_var_create(first, &options, &variables[i], NULL) == WEIR_OK, "no variable");
		weir_tensor_release(first);
	}
	weiri_store_relaxed(&quit, 0u); /* [relaxed] no other thread yet */
}

static void destroy_variables(size_t count)
{
	for (size_t i = 0; i < count; i++)
		weir_var_destroy(variables[i], NULL);
}

static weir_tensor *make_poisoned(uint64_t tag)
{
	return stress_payload(tag, WORDS);
}

static void assign_one(struct stress_thread *self, weir_var *var, weir_tensor *(*make)(uint64_t))
{
	weir_tensor *value = make(stress_random(self));
	enum weir_status status;

	stress_begin(self, "assign");
	status = weir_var_assign(var, value, weir_deadline_in(patience_ns), NULL, NULL);
	STRESS_CHECK(status == WEIR_OK, "an assign: %s", weir_status_name(status));
	weir_tensor_release(value);
	stress_end(self, 1);
}

/* -- threads that come and go ------------------------------------------------------------------ */

enum { CHURN = 10000, CHURN_VARIABLES = 2, MOST_AT_ONCE = 64, QUEUE_CAPACITY = 4 };

static weir_queue *queue;
static _Atomic(uint64_t) enqueued, dequeued;

/* A handle that outlives its thread. */
struct guest {
	weir_read left;
};

static void check_queue_status(enum weir_status status, const char *call)
{
	STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED, "%s: %s", call, weir_status_name(status));
}

static void use_the_queue(struct stress_thread *self)
{
	static int item;
	void *out = NULL;
	enum weir_status status;

	stress_begin(self, "enqueue");
	status = weir_queue_enqueue(queue, &item, weir_deadline_in(stress_below(self, 200000)), NULL, NULL);
	check_queue_status(status, "an enqueue");
	if (status == WEIR_OK)
		(void)weiri_fetch_add_relaxed(&enqueued, 1u); /* [relaxed] a count */
	stress_begin(self, "dequeue");
	status = weir_queue_dequeue(queue, &out, weir_deadline_in(stress_below(self, 200000)), NULL, NULL);
	check_queue_status(status, "a dequeue");
	if (status == WEIR_OK)
		(void)weiri_fetch_add_relaxed(&dequeued, 1u); /* [relaxed] a count */
	stress_end(self, 2);
}

static void visit(struct stress_thread *self, void *context)
{
	struct guest *guest = context;
	weir_var *var = variables[stress_below(self, CHURN_VARIABLES)];
	weir_read read;

	stress_begin(self, "read");
	STRESS_CHECK(weir_var_read(var, &read) == WEIR_OK, "a read failed");
	(void)stress_payload_check(read.tensor, "a guest");
	if (stress_one_in(self, 2))
		assign_one(self, var, make_poisoned);
	if (stress_one_in(self, 4))
		use_the_queue(self);
	STRESS_CHECK(weir_var_read(var, &guest->left) == WEIR_OK, "a read failed");
	(void)stress_payload_check(read.tensor, "a guest, later");
	weir_read_release(&read);
	stress_end(self, 1);
}

/* Runs `count` threads, `at_once` at a time; each is joined and replaced by a new one. */
static void churn(unsigned at_once, uint64_t count)
{
	struct stress_thread *threads[MOST_AT_ONCE] = {NULL};
	struct guest guests[MOST_AT_ONCE];

	for (uint64_t i = 0; i < count + at_once; i++) {
		unsigned place = (unsigned)(i % at_once);

		if (threads[place] != NULL) {
			stress_join_one(threads[place]);
			threads[place] = NULL;
			(void)stress_payload_check(guests[place].left.tensor, "a handle of an ended thread");
			weir_read_release(&guests[place].left);
		}
		if (i < count)
			threads[place] = stress_start("guest", visit, &guests[place]);
	}
}

void scenario_thread_churn(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = QUEUE_CAPACITY};
	unsigned at_once = stress_threads(4) < MOST_AT_ONCE ? stress_threads(4) : MOST_AT_ONCE;
	uint64_t count = 0, before = stats_now().threads, bound;

	make_variables(CHURN_VARIABLES, make_poisoned, stress_poison());
	STRESS_CHECK(weir_queue_create(&options, &queue, NULL) == WEIR_OK, "no queue");
	weiri_store_relaxed(&enqueued, 0u); /* [relaxed] no other thread yet */
	weiri_store_relaxed(&dequeued, 0u);
	for (; count < stress_scaled(CHURN) || stress_goes_on(); count += 500)
		churn(at_once, 500);
	/* The threads, this one, and the watchdog; see record.c. */
	bound = before > at_once + 2 ? before : at_once + 2;
	STRESS_CHECK(stats_now().threads <= bound,
	             "there are %" PRIu64 " records for %u threads at a time: records are not reused", stats_now().threads,
	             at_once);
	STRESS_CHECK(weiri_load_relaxed(&enqueued) == weiri_load_relaxed(&dequeued) + weir_queue_size_approx(queue),
	             "%" PRIu64 " enqueued, %" PRIu64 " dequeued, %zu inside", weiri_load_relaxed(&enqueued),
	             weiri_load_relaxed(&dequeued), weir_queue_size_approx(queue));
	(void)weir_queue_destroy(queue, NULL);
	destroy_variables(CHURN_VARIABLES);
	stress_note("threads", count);
	stress_note("records", stats_now().threads);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

/* -- signal handlers that read ----------------------------------------------------------------- */

enum { STORMY_VARIABLES = 3, HELD_AT_ONCE = 16, FIRST_SIGNAL = SIGUSR1, SECOND_SIGNAL = SIGUSR2 };

/* The versions that this thread, or a handler on it, has seen. */
static WEIRI_TLS _Atomic(uint64_t) seen[STORMY_VARIABLES];
static _Atomic(uint64_t) reads_in_handlers;

static void look(size_t which, const char *who)
{
	/* [relaxed] only this thread and handlers on it use it. */
	uint64_t least = weiri_load_relaxed(&seen[which]);
	weir_read read;

	STRESS_CHECK(weir_var_read(variables[which], &read) == WEIR_OK, "%s: a read failed", who);
	(void)stress_payload_check(read.tensor, who);
	STRESS_CHECK(read.version >= least, "%s: version %" PRIu64 " after version %" PRIu64, who, read.version, least);
	/* A handler that runs in between may have seen a later version, which then counts. */
	(void)weiri_cas_relaxed(&seen[which], &least, read.version);
	weir_read_release(&read);
}

/*
 * The handles that handlers on this thread took, by signal. The next handler of the signal releases
 * its handle. The interrupted call must not take the handle's slot.
 */
static WEIRI_TLS weir_read kept[2];

static void swap_kept(weir_read *handle, const char *who)
{
	weir_read next;

	/*
	 * The new handle is taken before the old one is released, because it must get the first free
	 * slot, which is the one that the interrupted read has found.
	 */
	STRESS_CHECK(weir_var_read(variables[0], &next) == WEIR_OK, "%s: a read failed", who);
	if (handle->tensor != NULL)
		(void)stress_payload_check(handle->tensor, who);
	weir_read_release(handle);
	*handle = next;
}

/* Each signal may interrupt the handler of the other signal, but not its own. */
static void read_in_handler(int signal_number)
{
	int saved_errno = errno;

	for (size_t i = 0; i < STORMY_VARIABLES; i++)
		look(i, signal_number == FIRST_SIGNAL ? "a handler" : "a second handler");
	swap_kept(&kept[signal_number == FIRST_SIGNAL], "what a handler kept");
	/* [relaxed] a count */
	(void)weiri_fetch_add_relaxed(&reads_in_handlers, (uint64_t)STORMY_VARIABLES + 1);
	errno = saved_errno;
}

static void read_many(struct stress_thread *self)
{
	weir_read reads[STORMY_VARIABLES];

	stress_begin(self, "snapshot");
	STRESS_CHECK(weir_var_snapshot(variables, STORMY_VARIABLES, reads, NULL) == WEIR_OK, "a snapshot failed");
	for (size_t i = 0; i < STORMY_VARIABLES; i++)
		(void)stress_payload_check(reads[i].tensor, "a snapshot");
	weir_read_release_many(reads, STORMY_VARIABLES);
	stress_end(self, 1);
}

/* Holds more handles than there are slots, so that handlers find no slot. */
static void hold_many(struct stress_thread *self)
{
	weir_read reads[12];

	stress_begin(self, "reads");
	for (size_t i = 0; i < 12; i++)
		STRESS_CHECK(weir_var_read(variables[i % STORMY_VARIABLES], &reads[i]) == WEIR_OK, "a read failed");
	for (size_t i = 0; i < 12; i++)
		(void)stress_payload_check(reads[i].tensor, "one of many handles");
	weir_read_release_many(reads, 12);
	stress_end(self, 12);
}

/*
 * Makes reads with nothing between them, so that many signals arrive while a slot is being chosen.
 */
static void read_in_a_row(struct stress_thread *self, size_t which)
{
	stress_begin(self, "read");
	for (unsigned i = 0; i < 200; i++) {
		weir_read read;

		if (weir_var_read(variables[which], &read) == WEIR_OK)
			weir_read_release(&read);
	}
	stress_end(self, 200);
}

static void work_in_the_storm(struct stress_thread *self, void *context)
{
	static const struct timespec no_time = {0, 0};
	sigset_t signals;

	(void)context;
	/*
	 * Handlers may read only on a thread that has used Weir before, so the storm begins after this.
	 */
	look(0, "a thread's first read");
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, FIRST_SIGNAL);
	(void)sigaddset(&signals, SECOND_SIGNAL);
	(void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	while (goes_on()) {
		size_t which = (size_t)stress_below(self, STORMY_VARIABLES);

		switch (stress_below(self, 4)) {
		case 0: assign_one(self, variables[which], make_poisoned); break;
		case 1: read_many(self); break;
		case 2: hold_many(self); break;
		default: look(which, "a thread"); read_in_a_row(self, which);
		}
		if (STRESS_TSAN)
			(void)nanosleep(&no_time, NULL); /* ThreadSanitizer delivers signals here */
	}
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	weir_read_release_many(kept, 2);
}

/*
 * Picks a thread that has done something since it was last picked. It is on a processor, so the
 * signal interrupts it immediately.
 */
static unsigned pick_victim(struct stress_thread *self, struct stress_thread *const threads[], uint64_t done[],
                            unsigned count)
{
	unsigned first = (unsigned)stress_below(self, count), victim = first;

	for (unsigned i = 0; i < count; i++) {
		unsigned candidate = (first + i) % count;
		uint64_t now = weiri_load_relaxed(&threads[candidate]->operations); /* [relaxed] a count */

		if (now != done[candidate])
			victim = candidate;
		done[candidate] = now;
	}
	return victim;
}

static void storm(struct stress_thread *self, struct stress_thread *const threads[], unsigned count)
{
	uint64_t done[MOST_AT_ONCE] = {0};

	stress_begin(self, "sending signals");
	do {
		unsigned victim = pick_victim(self, threads, done, count);

		STRESS_CHECK(pthread_kill(threads[victim]->thread, stress_one_in(self, 2) ? FIRST_SIGNAL : SECOND_SIGNAL) == 0,
		             "cannot send a signal");
		stress_let_pass(stress_below(self, 10000));
		/* [relaxed] a count. */
	} while (stress_goes_on() || weiri_load_relaxed(&reads_in_handlers) == 0);
}

void scenario_signal_read(void)
{
	struct sigaction action = {.sa_handler = read_in_handler, .sa_flags = SA_RESTART};
	struct stress_thread *threads[MOST_AT_ONCE];
	unsigned count = stress_threads(2) < MOST_AT_ONCE ? stress_threads(2) : MOST_AT_ONCE;
	uint64_t misses = stats_now().slot_misses;
	sigset_t signals, before;

	/*
	 * The budget is little more than what handles can pin, so that unprotected memory is soon
	 * freed.
	 */
	weir_reclaim_set_budget((uint64_t)count * HELD_AT_ONCE * (WORDS * 8 + 512));
	make_variables(STORMY_VARIABLES, make_poisoned, stress_poison());
	weiri_store_relaxed(&reads_in_handlers, 0u); /* [relaxed] no other thread yet */
	STRESS_CHECK(sigaction(FIRST_SIGNAL, &action, NULL) == 0 && sigaction(SECOND_SIGNAL, &action, NULL) == 0,
	             "cannot install the signal handler");
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, FIRST_SIGNAL);
	(void)sigaddset(&signals, SECOND_SIGNAL);
	(void)pthread_sigmask(SIG_BLOCK, &signals, &before);
	for (unsigned i = 0; i < count; i++)
		threads[i] = stress_start("worker", work_in_the_storm, NULL);
	storm(stress_self(), threads, count);
	weiri_store_relaxed(&quit, 1u); /* [relaxed] the threads are joined */
	stress_join();
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	destroy_variables(STORMY_VARIABLES);
	weir_reclaim_set_budget(0);
	stress_note("reads in handlers", weiri_load_relaxed(&reads_in_handlers));
	stress_note("reads by reference", stats_now().slot_misses - misses);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

/* -- fork -------------------------------------------------------------------------------------- */

enum {
	TOGETHER = 3,
	ALONE = TOGETHER,
	FORKED_VARIABLES = TOGETHER + 1,
	RING_CAPACITY = 16,
	CHILD_WRITES = 2000,
	CHILD_SECONDS = 300
};

static const uint64_t small_budget = 1 << 20;
static weir_ring *ring;

/* All words are the same. The allocator has no lock that a thread could hold during the fork. */
static weir_tensor *make_plain(uint64_t tag)
{
	weir_shape shape = {1, {WORDS}};
	weir_tensor *value = NULL;
	uint64_t words[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		words[i] = tag;
	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &shape, words, stress_blocks(), &value) == WEIR_OK,
	             "no memory for a value");
	return value;
}

static uint64_t check_plain(const weir_tensor *tensor, const char *who)
{
	const uint64_t *words = weir_tensor_data(tensor);

	for (size_t i = 1; i < WORDS; i++)
		STRESS_CHECK(words[i] == words[0], "%s: word %zu belongs to another value", who, i);
	return words[0];
}

/* Only commits write the first variables, and they assign one value to all of them. */
static void commit_together(struct stress_thread *self)
{
	struct weir_commit_part parts[TOGETHER];
	weir_tensor *value = make_plain(stress_random(self));
	enum weir_status status;

	stress_begin(self, "commit");
	for (size_t i = 0; i < TOGETHER; i++)
		parts[i] = (struct weir_commit_part){variables[i], weir_var_version(variables[i]), value};
	status = weir_var_commit(parts, TOGETHER, weir_deadline_in(patience_ns), NULL, NULL);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "a commit: %s", weir_status_name(status));
	weir_tensor_release(value);
	stress_end(self, 1);
}

static void look_at_all(struct stress_thread *self, const char *who)
{
	weir_read reads[FORKED_VARIABLES];
	uint64_t first;

	stress_begin(self, "snapshot");
	STRESS_CHECK(weir_var_snapshot(variables, FORKED_VARIABLES, reads, NULL) == WEIR_OK, "%s: a snapshot failed", who);
	first = check_plain(reads[0].tensor, who);
	for (size_t i = 1; i < TOGETHER; i++)
		STRESS_CHECK(check_plain(reads[i].tensor, who) == first, "%s: only a part of a commit is visible", who);
	(void)check_plain(reads[ALONE].tensor, who);
	weir_read_release_many(reads, FORKED_VARIABLES);
	stress_end(self, 1);
}

/* Returns 1 if the ring held a value, which has been replaced. */
static int turn_ring(struct stress_thread *self)
{
	uint64_t value = 0;

	stress_begin(self, "ring");
	if (weir_ring_try_dequeue(ring, &value) != WEIR_OK)
		return 0;
	STRESS_CHECK(value - 1 < RING_CAPACITY, "a value that no thread enqueued: %" PRIu64, value);
	(void)weir_ring_try_enqueue(ring, value);
	stress_end(self, 2);
	return 1;
}

static void work_beside_fork(struct stress_thread *self, void *context)
{
	(void)context;
	while (goes_on()) {
		switch (stress_below(self, 4)) {
		case 0: assign_one(self, variables[ALONE], make_plain); break;
		case 1: commit_together(self); break;
		case 2: look_at_all(self, "a thread of the parent"); break;
		default: (void)turn_ring(self);
		}
	}
}

/*
 * Runs in the child. Everything must continue, although the other threads have stopped for ever,
 * wherever they were.
 */
static _Noreturn void be_child(struct stress_thread *self)
{
	static int item;
	void *out = NULL;

	(void)alarm(CHILD_SECONDS);
	look_at_all(self, "the child");
	for (uint64_t i = 0; i < stress_scaled(CHILD_WRITES); i++) {
		assign_one(self, variables[ALONE], make_plain);
		commit_together(self);
	}
	look_at_all(self, "the child, after writing");
	(void)turn_ring(self);
	while (weir_ring_try_dequeue(ring, &(uint64_t){0}) == WEIR_OK)
		;
	STRESS_CHECK(weir_ring_try_enqueue(ring, 1) == WEIR_OK, "the child: an empty ring has no room");
	STRESS_CHECK(weir_queue_dequeue(queue, &out, weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK && out != NULL,
	             "the child: an item of the queue is missing");
	STRESS_CHECK(weir_queue_enqueue(queue, &item, weir_deadline_in(patience_ns), NULL, NULL) == WEIR_OK,
	             "the child: a queue with room refuses an item");
	_exit(STRESS_FINE);
}

static void fork_once(struct stress_thread *self)
{
	pid_t child, ended;
	int status = 0;

	stress_begin(self, "fork");
	child = fork();
	STRESS_CHECK(child >= 0, "fork() failed");
	if (child == 0)
		be_child(self);
	stress_begin(self, "waiting for the child");
	do
		ended = waitpid(child, &status, 0);
	while (ended < 0 && errno == EINTR);
	STRESS_CHECK(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == STRESS_FINE,
	             "the child ended with status %#x%s", (unsigned)status,
	             WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
	stress_end(self, 1);
}

void scenario_fork(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = QUEUE_CAPACITY};
	struct weir_ring_options ring_options = {WEIR_RING_OPTIONS_INIT, .format = WEIR_RING_FORMAT_LTQ64};
	static int item;
	uint64_t forks = 0;

	weir_reclaim_set_budget(small_budget);
	make_variables(FORKED_VARIABLES, make_plain, stress_blocks());
	STRESS_CHECK(weir_queue_create(&options, &queue, NULL) == WEIR_OK, "no queue");
	STRESS_CHECK(weir_queue_enqueue(queue, &item, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK, "no enqueue");
	STRESS_CHECK(weir_ring_create(RING_CAPACITY, &ring_options, &ring, NULL) == WEIR_OK, "no ring");
	for (uint64_t i = 0; i < RING_CAPACITY / 2; i++)
		(void)weir_ring_try_enqueue(ring, i + 1);
	for (unsigned i = 0; i < stress_threads(3); i++)
		(void)stress_start("worker", work_beside_fork, NULL);
	for (; forks == 0 || stress_goes_on(); forks++)
		fork_once(stress_self());
	weiri_store_relaxed(&quit, 1u); /* [relaxed] the threads are joined */
	stress_join();
	look_at_all(stress_self(), "the parent, at the end");
	STRESS_CHECK(weir_queue_size_approx(queue) == 1, "the parent's queue has changed");
	weir_ring_destroy(ring, NULL);
	(void)weir_queue_destroy(queue, NULL);
	destroy_variables(FORKED_VARIABLES);
	weir_reclaim_set_budget(0);
	stress_note("forks", forks);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	STRESS_CHECK(stress_blocks_bytes() == 0, "%llu bytes were not freed", stress_blocks_bytes());
}
