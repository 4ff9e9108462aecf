/*
 * test_interrupt.c - a signal ends the wait of its thread, in each place that waits, and not
 * otherwise. The handlers are installed with SA_RESTART, which makes Linux go on with most sleeps.
 */
#include "queue_kit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <weir/coordinator.h>
#include <weir/critical_section.h>
#include <weir/flow/staging.h>
#include <weir/queue_runner.h>
#include <weir/queue_u64.h>
#include <weir/select.h>
#include <weir/shm_latest.h>
#include <weir/shm_ring.h>
#include <weir/thread.h>
#include <weir/watch.h>

#include "graph_kit.h"
#include "reclaim/interrupt.h"

static void on_signal(int number)
{
	(void)number;
}

static void handle_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
}

/* A thread that waits in one call. */
typedef enum weir_status wait_fn(void *context, weir_error *error);

struct waiter {
	wait_fn *wait;
	void *context;
	_Atomic(int) answer; /* of its interrupt */
	_Atomic(int) asked;  /* how often its interrupt was */
	_Atomic(int) number_of_thread;
	_Atomic(int) ended;
	enum weir_status status;
	weir_error error;
	uint64_t returned_ns; /* when the call returned */
	pthread_t thread;
};

static int answer(void *context)
{
	struct waiter *waiter = context;

	(void)weiri_fetch_add_relaxed(&waiter->asked, 1);
	return weiri_load_relaxed(&waiter->answer);
}

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	waiter->status = weir_thread_set_interrupt(answer, waiter);
	weiri_store_relaxed(&waiter->number_of_thread, gettid());
	if (waiter->status == WEIR_OK)
		waiter->status = waiter->wait(waiter->context, &waiter->error);
	waiter->returned_ns = weir_now_ns();
	/* [release] the outcome; pairs with the acquire in is_over(). */
	weiri_store_release(&waiter->ended, 1);
	/* Stays, so that a signal that is sent late finds the thread. */
	while (weiri_load_acquire(&waiter->ended) != 2)
		(void)sched_yield();
	return NULL;
}

static void begin(struct waiter *waiter)
{
	handle_signals();
	cr_assert_eq(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
}

static bool is_over(struct waiter *waiter)
{
	return weiri_load_acquire(&waiter->ended) != 0;
}

static void finish(struct waiter *waiter)
{
	await(is_over(waiter));
	weiri_store_release(&waiter->ended, 2);
	cr_assert_eq(pthread_join(waiter->thread, NULL), 0);
}

static bool sleeps(struct waiter *waiter)
{
	int number = weiri_load_relaxed(&waiter->number_of_thread);

	return number != 0 && thread_is_asleep(number);
}

/* Sends signals to the thread, each while it sleeps, until its interrupt was asked `times` times. */
static void signal_until_asked(struct waiter *waiter, int times)
{
	await(is_over(waiter) || weiri_load_relaxed(&waiter->asked) >= times ||
	      (sleeps(waiter) && pthread_kill(waiter->thread, SIGUSR1) != 0));
}

/* The wait goes on while the interrupt says 0, and ends when it says 1. */
static void expect_interrupted(const char *where, wait_fn *wait, void *context)
{
	struct waiter waiter = {.wait = wait, .context = context};

	begin(&waiter);
	signal_until_asked(&waiter, 1);
	cr_assert_not(is_over(&waiter), "%s: %s", where, waiter.error.message);
	weiri_store_relaxed(&waiter.answer, 1);
	await(is_over(&waiter) || (sleeps(&waiter) && pthread_kill(waiter.thread, SIGUSR1) != 0));
	finish(&waiter);
	cr_assert_eq(waiter.status, WEIR_CANCELLED, "%s: %s: %s", where, weir_status_name(waiter.status),
	             waiter.error.message);
	cr_assert(waiter.error.message[0] == '\0' || strstr(waiter.error.message, weiri_interrupt_cause.message) != NULL,
	          "%s: %s", where, waiter.error.message);
}

/* -- every place that waits -------------------------------------------------------------------- */

static enum weir_status dequeue(void *queue, weir_error *error)
{
	void *got;

	return weir_queue_dequeue(queue, &got, WEIR_NO_DEADLINE, NULL, error);
}

static enum weir_status dequeue_with_deadline(void *queue, weir_error *error)
{
	void *got;

	return weir_queue_dequeue(queue, &got, in_good_time(), NULL, error);
}

static enum weir_status dequeue_many(void *queue, weir_error *error)
{
	void *got[2];

	return weir_queue_dequeue_many(queue, got, 2, WEIR_NO_DEADLINE, NULL, error);
}

static enum weir_status enqueue(void *queue, weir_error *error)
{
	return weir_queue_enqueue(queue, item(9), WEIR_NO_DEADLINE, NULL, error);
}

static enum weir_status choose(void *queue, weir_error *error)
{
	struct weir_select_case one = {.queue = queue, .kind = WEIR_SELECT_DEQUEUE};
	size_t chosen;

	return weir_select(&one, 1, WEIR_NO_DEADLINE, NULL, &chosen, error);
}

Test(interrupt, a_wait_in_a_queue_ends)
{
	weir_queue *queue = fifo(2);

	expect_interrupted("dequeue", dequeue, queue);
	expect_interrupted("dequeue with a deadline", dequeue_with_deadline, queue);
	expect_interrupted("select", choose, queue);
	put(queue, 1, 1);
	expect_interrupted("dequeue of 2", dequeue_many, queue);
	expect_next(queue, 1, 1); /* what the batch had taken is back */
	put(queue, 2, 2);
	expect_interrupted("enqueue", enqueue, queue);
	expect_next(queue, 2, 2);
	expect_nothing(queue);
	destroy(queue);
}

static void done(void *context, enum weir_status status, const weir_error *error, void **items, size_t count)
{
	(void)context, (void)status, (void)error, (void)items, (void)count;
}

static enum weir_status wait_with_handle(void *handle, weir_error *error)
{
	return weir_pending_wait(handle, WEIR_NO_DEADLINE, NULL, error);
}

Test(interrupt, a_wait_with_a_handle_ends_and_the_operation_goes_on)
{
	weir_queue *queue = fifo(2);
	weir_pending *handle = NULL;
	void *got[1];

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, got, 1, done, NULL, &handle, NULL), WEIR_OK);
	expect_interrupted("weir_pending_wait", wait_with_handle, handle);
	cr_assert_eq(weir_pending_try_wait(handle, NULL), WEIR_WOULD_BLOCK);
	put(queue, 7, 1);
	cr_assert_eq(weir_pending_try_wait(handle, NULL), WEIR_OK);
	cr_assert_eq(number_of(got[0]), 7);
	weir_pending_release(handle);
	destroy(queue);
}

static enum weir_status wait_for_version(void *var, weir_error *error)
{
	weir_read read;

	return weir_var_wait(var, 1, WEIR_NO_DEADLINE, NULL, &read, error);
}

static enum weir_status flush(void *unused, weir_error *error)
{
	(void)unused;
	(void)error;
	return weir_reclaim_flush(WEIR_NO_DEADLINE);
}

struct write {
	weir_var *var;
	weir_tensor *value;
};

static enum weir_status assign(void *context, weir_error *error)
{
	const struct write *write = context;

	return weir_var_assign(write->var, write->value, WEIR_NO_DEADLINE, NULL, error);
}

enum { LARGE = 1 << 20 }; /* bytes of a value: it counts at once when it is retired */

Test(interrupt, a_wait_for_a_variable_or_for_memory_ends)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_U8, .name = "awaited"};
	static const unsigned char zeros[LARGE];
	weir_tensor *first = kit_tensor(WEIR_U8, kit_shape(1, LARGE), zeros);
	struct write write = {.value = first};
	weir_var *var = NULL;
	weir_read read;

	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	write.var = var;
	expect_interrupted("weir_var_wait", wait_for_version, var);
	/* The handle keeps the first version, which is then retired. */
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_assert_eq(weir_var_assign(var, first, in_good_time(), NULL, NULL), WEIR_OK);
	expect_interrupted("weir_reclaim_flush", flush, NULL);
	weir_reclaim_set_budget(1);
	expect_interrupted("weir_var_assign over the budget", assign, &write);
	weir_reclaim_set_budget(0);
	weir_read_release(&read);
	cr_assert_eq(weir_var_assign(var, first, in_good_time(), NULL, NULL), WEIR_OK);
	weir_tensor_release(first);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

static enum weir_status wait_for_stop(void *coordinator, weir_error *error)
{
	(void)error;
	return weir_coordinator_wait_for_stop(coordinator, WEIR_NO_DEADLINE);
}

static enum weir_status join(void *coordinator, weir_error *error)
{
	return weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE, 0, error);
}

static enum weir_status join_runner(void *runner, weir_error *error)
{
	(void)error;
	return weir_queue_runner_join(runner, WEIR_NO_DEADLINE);
}

static enum weir_status take_one(void *queue, weir_cancel *cancel, weir_error *error)
{
	void *got;

	return weir_queue_dequeue(queue, &got, WEIR_NO_DEADLINE, cancel, error);
}

Test(interrupt, a_join_ends_and_can_be_tried_again)
{
	weir_queue *queue = fifo(2);
	struct weir_queue_runner_step step = {take_one, queue, "take"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &step, .step_count = 1};
	weir_coordinator *coordinator = NULL;
	weir_coordinator_member *member = NULL;
	weir_queue_runner *runner = NULL;

	cr_assert_eq(weir_coordinator_create(NULL, &coordinator, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_enter(coordinator, "me", &member, NULL), WEIR_OK);
	expect_interrupted("weir_coordinator_wait_for_stop", wait_for_stop, coordinator);
	expect_interrupted("weir_coordinator_join", join, coordinator);
	cr_assert_eq(weir_coordinator_request_stop(coordinator, NULL), WEIR_OK);
	expect_interrupted("weir_coordinator_join after the stop", join, coordinator);
	cr_assert_not(weir_coordinator_joined(coordinator));
	weir_coordinator_leave(member);
	cr_assert_eq(weir_coordinator_join(coordinator, in_good_time(), WEIR_NO_DEADLINE, 0, NULL), WEIR_OK);
	cr_assert_eq(weir_coordinator_destroy(coordinator, NULL), WEIR_OK);

	cr_assert_eq(weir_queue_runner_create(&options, &runner, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_runner_start(runner, NULL, NULL), WEIR_OK);
	expect_interrupted("weir_queue_runner_join", join_runner, runner);
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_runner_join(runner, in_good_time()), WEIR_OK);
	cr_assert_eq(weir_queue_runner_destroy(runner, NULL), WEIR_OK);
	destroy(queue);
}

static enum weir_status take_frame(void *ring, weir_error *error)
{
	struct weir_shm_frame frame;

	return weir_shm_ring_take(ring, &frame, WEIR_NO_DEADLINE, NULL, error);
}

static enum weir_status read_newer(void *latest, weir_error *error)
{
	char room[8];
	size_t size;
	uint64_t version;

	return weir_shm_latest_read(latest, 0, room, sizeof(room), &size, &version, WEIR_NO_DEADLINE, NULL, error);
}

Test(interrupt, a_wait_for_another_process_ends)
{
	int ring_file = memfd_create("ring", MFD_ALLOW_SEALING), latest_file = memfd_create("latest", MFD_ALLOW_SEALING);
	weir_shm_ring *ring = NULL;
	weir_shm_latest *latest = NULL;

	cr_assert_eq(weir_shm_ring_create(ring_file, 4, 8, NULL, &ring, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_latest_create(latest_file, 8, NULL, &latest, NULL), WEIR_OK);
	expect_interrupted("weir_shm_ring_take", take_frame, ring);
	expect_interrupted("weir_shm_latest_read", read_newer, latest);
	cr_assert_eq(weir_shm_ring_destroy(ring, NULL), WEIR_OK);
	cr_assert_eq(weir_shm_latest_destroy(latest, NULL), WEIR_OK);
	(void)close(ring_file);
	(void)close(latest_file);
}

struct run {
	weir_session *session;
	weir_output output;
};

static enum weir_status run_session(void *context, weir_error *error)
{
	const struct run *run = context;
	weir_tensor *result = NULL;

	return weir_session_run(run->session, NULL, 0, &run->output, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, error);
}

Test(interrupt, a_run_of_a_session_ends)
{
	weir_tensor_queue *from = kit_queue("from", 4, WEIR_F32, &weir_shape_scalar);
	weir_graph *graph = kit_graph();
	struct run run;

	cr_assert_eq(weir_op_dequeue(graph, "take", from, &run.output, 1, NULL, NULL), WEIR_OK);
	run.session = kit_session(graph, 1);
	expect_interrupted("weir_session_run", run_session, &run);
	cr_assert_eq(weir_session_destroy(run.session, NULL), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_destroy(from, NULL), WEIR_OK);
}

static enum weir_status nothing_to_do(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

static enum weir_status execute(void *section, weir_error *error)
{
	return weir_critical_section_execute(section, nothing_to_do, NULL, WEIR_NO_DEADLINE, NULL, error);
}

static enum weir_status wait_outside(void *section, weir_error *error)
{
	(void)error;
	expect_interrupted("weir_critical_section_execute", execute, section);
	return WEIR_OK;
}

static enum weir_status take_tuple(void *area, weir_error *error)
{
	weir_tensor *got[1] = {NULL};

	return weir_staging_get(area, got, 1, WEIR_NO_DEADLINE, NULL, error);
}

Test(interrupt, a_wait_for_a_section_or_an_area_ends)
{
	struct weir_tensor_component component = {.dtype = WEIR_F32};
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .components = &component, .component_count = 1};
	weir_critical_section *section = NULL;
	weir_staging *area = NULL;

	cr_assert_eq(weir_critical_section_create(NULL, &section, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_execute(section, wait_outside, section, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_destroy(section, NULL), WEIR_OK);
	cr_assert_eq(weir_staging_create(&options, &area, NULL), WEIR_OK);
	expect_interrupted("weir_staging_get", take_tuple, area);
	cr_assert_eq(weir_staging_destroy(area, NULL), WEIR_OK);
}

/* -- how soon ---------------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__LP64__) /* an emulator makes other system calls */
/*
 * Reads the deadline of the futex(2) in which the thread sleeps, by what Linux shows of a system call
 * (FUTEX_WAIT_BITSET: the fourth argument). Returns false if it is in no such call now.
 */
static bool sleeps_until(int number, struct timespec *until)
{
	char path[64], text[256] = "";
	unsigned long long arguments[4];
	FILE *file;
	long call = -1;
	int memory;
	bool read_it;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", number);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	if (fgets(text, sizeof(text), file) == NULL ||
	    sscanf(text, "%ld %llx %llx %llx %llx", &call, &arguments[0], &arguments[1], &arguments[2], &arguments[3]) != 5)
		call = -1;
	(void)fclose(file);
	if (call != SYS_futex || arguments[3] == 0)
		return false;
	memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	cr_assert_geq(memory, 0);
	read_it = pread(memory, until, sizeof(*until), (off_t)arguments[3]) == (ssize_t)sizeof(*until);
	(void)close(memory);
	return read_it;
}

/* So no wake-up is planned: only a signal, or another thread, ends this sleep. */
Test(interrupt, a_wait_without_a_deadline_sleeps_for_years)
{
	weir_queue *queue = fifo(2);
	struct waiter waiter = {.wait = dequeue, .context = queue};
	struct timespec until = {0, 0};
	const time_t year = 365 * 24 * 3600;

	begin(&waiter);
	await(sleeps(&waiter) && sleeps_until(weiri_load_relaxed(&waiter.number_of_thread), &until));
	cr_expect_geq(until.tv_sec, (time_t)(weir_now_ns() / 1000000000u) + year);
	put(queue, 1, 1);
	finish(&waiter);
	cr_assert_eq(waiter.status, WEIR_OK);
	destroy(queue);
}
#endif

enum { TRIES = 9, MOST_TRIES = 90 };
static const uint64_t soon_ns = 10000000;

/* Returns how long after the signal the call returned. */
static uint64_t time_to_end(weir_queue *queue)
{
	struct waiter waiter = {.wait = dequeue, .context = queue, .answer = 1};
	uint64_t sent_ns = 0;

	begin(&waiter);
	await(is_over(&waiter) ||
	      (sleeps(&waiter) && (sent_ns = weir_now_ns()) != 0 && pthread_kill(waiter.thread, SIGUSR1) != 0));
	finish(&waiter);
	cr_assert_eq(waiter.status, WEIR_CANCELLED);
	return waiter.returned_ns > sent_ns ? waiter.returned_ns - sent_ns : 0;
}

/*
 * A loaded machine may be late with some of them. So more are tried, until most were in time.
 */
Test(interrupt, ends_most_waits_within_10_ms)
{
	weir_queue *queue = fifo(2);
	uint64_t took = 0;
	int in_time = 0, tries = 0;

	for (; tries < TRIES || (in_time * 2 <= tries && tries < MOST_TRIES); tries++) {
		took = time_to_end(queue);
		in_time += took <= soon_ns;
	}
	cr_expect_gt(in_time * 2, tries, "%d of %d; the last one took %llu ns", in_time, tries, (unsigned long long)took);
	put(queue, 1, 1);
	expect_next(queue, 1, 1); /* no item was lost */
	destroy(queue);
}

/* -- what an interrupt does not do ------------------------------------------------------------- */

static enum weir_status dequeue_item_7(void *queue, weir_error *error)
{
	void *got = NULL;
	enum weir_status status = weir_queue_dequeue(queue, &got, WEIR_NO_DEADLINE, NULL, error);

	return status == WEIR_OK && number_of(got) != 7 ? WEIR_INTERNAL : status;
}

Test(interrupt, is_asked_at_most_once_a_signal_and_a_wait_goes_on_if_it_says_0)
{
	weir_queue *queue = fifo(2);
	struct waiter waiter = {.wait = dequeue_item_7, .context = queue};
	int sent = 0;

	begin(&waiter);
	for (int i = 1; i <= 5; i++) {
		await(idle_in(queue) == 1);
		/* A signal that came just before the sleep asks nobody, and is sent again. */
		await(weiri_load_relaxed(&waiter.asked) >= i ||
		      (sleeps(&waiter) && (sent++, pthread_kill(waiter.thread, SIGUSR1)) != 0));
	}
	cr_assert_eq(idle_in(queue), 1, "the operation has kept its place");
	put(queue, 7, 1);
	finish(&waiter);
	cr_assert_eq(waiter.status, WEIR_OK, "%s", waiter.error.message);
	cr_assert_leq(weiri_load_relaxed(&waiter.asked), sent, "nothing but signals wakes the thread");
	destroy(queue);
}

/* The next owner of the record has no interrupt, and a thread that has none sleeps on. */
Test(interrupt, ends_with_its_thread)
{
	weir_queue *queue = fifo(2);
	struct call call = {.kind = DEQUEUE, .queue = queue, .deadline_ns = WEIR_NO_DEADLINE};

	expect_interrupted("dequeue", dequeue, queue);
	begin_call(&call);
	await(idle_in(queue) == 1);
	for (int i = 0; i < 20; i++) {
		await(thread_is_asleep(weiri_load_relaxed(&call.number_of_thread)));
		cr_assert_eq(pthread_kill(call.thread, SIGUSR1), 0);
	}
	put(queue, 5, 1);
	end_call(&call);
	cr_assert_eq(call.status, WEIR_OK, "%s", call.error.message);
	destroy(queue);
}

static int puts_the_item(void *queue)
{
	return weir_queue_try_enqueue(queue, item(3)) == WEIR_OK;
}

static enum weir_status dequeue_item_3(void *queue, weir_error *error)
{
	enum weir_status status = weir_thread_set_interrupt(puts_the_item, queue);
	void *got = NULL;

	if (status == WEIR_OK)
		status = weir_queue_dequeue(queue, &got, WEIR_NO_DEADLINE, NULL, error);
	return status == WEIR_OK && number_of(got) != 3 ? WEIR_INTERNAL : status;
}

/* The interrupt completes the operation that waits, and then ends the wait: the item comes out. */
Test(interrupt, a_complete_operation_has_its_outcome)
{
	weir_queue *queue = fifo(2);
	struct waiter waiter = {.wait = dequeue_item_3, .context = queue};

	begin(&waiter);
	await(is_over(&waiter) || (sleeps(&waiter) && pthread_kill(waiter.thread, SIGUSR1) != 0));
	finish(&waiter);
	cr_assert_eq(waiter.status, WEIR_OK, "%s", waiter.error.message);
	expect_nothing(queue);
	destroy(queue);
}

/* -- no item is lost --------------------------------------------------------------------------- */

enum { ITEMS = 2000 };

static int always(void *context)
{
	(void)context;
	return 1;
}

struct consumer {
	weir_queue *queue;
	_Atomic(int) number_of_thread;
	_Atomic(int) ended;
	uint64_t sum;
	size_t items, interrupted;
};

static void *consume(void *argument)
{
	struct consumer *consumer = argument;
	enum weir_status status = weir_thread_set_interrupt(always, NULL);
	void *got;

	weiri_store_relaxed(&consumer->number_of_thread, gettid());
	while (status == WEIR_OK || status == WEIR_CANCELLED) {
		status = weir_queue_dequeue(consumer->queue, &got, WEIR_NO_DEADLINE, NULL, NULL);
		consumer->sum += status == WEIR_OK ? (uintptr_t)got : 0;
		consumer->items += status == WEIR_OK;
		consumer->interrupted += status == WEIR_CANCELLED;
	}
	weiri_store_release(&consumer->ended, 1);
	while (weiri_load_acquire(&consumer->ended) != 2)
		(void)sched_yield();
	return NULL;
}

Test(interrupt, no_item_is_lost_however_signals_come)
{
	struct consumer consumer = {.queue = fifo(2)};
	uint64_t sum = 0;
	pthread_t thread;

	handle_signals();
	cr_assert_eq(pthread_create(&thread, NULL, consume, &consumer), 0);
	await(weiri_load_relaxed(&consumer.number_of_thread) != 0);
	for (uintptr_t i = 1; i <= ITEMS; i++) {
		/* The signal races with the item. */
		if (i % 2 == 0)
			cr_assert_eq(pthread_kill(thread, SIGUSR1), 0);
		cr_assert_eq(weir_queue_enqueue(consumer.queue, (void *)i, in_good_time(), NULL, NULL), WEIR_OK);
		sum += i;
		if (i % 2 != 0)
			cr_assert_eq(pthread_kill(thread, SIGUSR1), 0);
	}
	cr_assert_eq(weir_queue_close(consumer.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	await(weiri_load_acquire(&consumer.ended) == 1);
	weiri_store_release(&consumer.ended, 2);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(consumer.items, ITEMS);
	cr_assert_eq(consumer.sum, sum);
	destroy(consumer.queue);
}
