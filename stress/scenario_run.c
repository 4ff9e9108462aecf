/*
 * scenario_run.c - running and stopping threads: the pool and the coordinator.
 *
 *   pool         tasks that threads and tasks submit, and that workers and helpers run: each runs
 *                as often as it was submitted, with the memory that was written before; and destroy
 *                runs what is left
 *   coordinator  several threads request a stop at the same time: one cause is kept, all threads
 *                end, each callback runs once, calls that wait are cancelled
 */
#include <stdio.h>
#include <string.h>
#include <weir/coordinator.h>
#include <weir/pool.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "harness.h"
#include "scenarios.h"

/* -- pool -------------------------------------------------------------------------------------- */

enum { SUBMITTERS = 3, JOBS = 400, MOST_RUNS = 4, MOST_WORKERS = 4 };

struct job {
	weir_task task;
	uint64_t wanted, message; /* plain: written before each submission */
	_Atomic(uint64_t) ran;
};

static struct {
	weir_pool *pool;
	struct job job[SUBMITTERS][JOBS];
	_Atomic(uint32_t) submitted; /* threads that have submitted all their tasks */
} works;

static void run_job(weir_task *task)
{
	struct job *job = (struct job *)(void *)((char *)task - offsetof(struct job, task));
	/* [relaxed] one run at a time; the pool orders them. */
	uint64_t ran = weiri_load_relaxed(&job->ran) + 1;

	STRESS_CHECK(job->message == stress_mix(ran),
	             "run %llu of a task does not see what was written before its submission", (unsigned long long)ran);
	weiri_store_relaxed(&job->ran, ran); /* [relaxed] as above */
	if (ran < job->wanted) {
		job->message = stress_mix(ran + 1);
		STRESS_CHECK(weir_pool_submit(works.pool, task) == WEIR_OK, "a submit by a task failed");
	}
}

static void submit_all(struct stress_thread *self, void *context)
{
	struct job *jobs = context;

	for (size_t i = 0; i < JOBS; i++) {
		weiri_store_relaxed(&jobs[i].ran, 0u); /* [relaxed] published by the submission */
		jobs[i].task.run = run_job;
		jobs[i].wanted = 1 + stress_below(self, MOST_RUNS);
		jobs[i].message = stress_mix(1);
		stress_begin(self, "submit");
		STRESS_CHECK(weir_pool_submit(works.pool, &jobs[i].task) == WEIR_OK, "a submit failed");
		stress_end(self, 1);
		if (stress_one_in(self, 16)) {
			stress_begin(self, "help");
			(void)weir_pool_help(works.pool, 1 + (size_t)stress_below(self, 8));
		}
	}
	(void)weiri_fetch_add_release(&works.submitted, 1u); /* [release] pairs with help() */
}

static void help(struct stress_thread *self, void *context)
{
	unsigned spins = 0;

	(void)context;
	/* [acquire] only the end is passed, no data */
	while (weiri_load_acquire(&works.submitted) < SUBMITTERS) {
		size_t ran;

		stress_begin(self, "help");
		ran = weir_pool_help(works.pool, 1 + (size_t)stress_below(self, 20));
		stress_end(self, ran);
		if (ran == 0)
			stress_back_off(&spins);
	}
}

static uint64_t check_jobs(void)
{
	uint64_t runs = 0;

	for (size_t i = 0; i < SUBMITTERS; i++) {
		for (size_t k = 0; k < JOBS; k++) {
			/* [relaxed] the pool was destroyed */
			uint64_t ran = weiri_load_relaxed(&works.job[i][k].ran);

			STRESS_CHECK(ran == works.job[i][k].wanted, "a task was submitted %llu times, but ran %llu times",
			             (unsigned long long)works.job[i][k].wanted, (unsigned long long)ran);
			runs += ran;
		}
	}
	return runs;
}

static uint64_t play_pool(struct stress_thread *self)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT,
	                                    .threads = (size_t)stress_below(self, MOST_WORKERS + 1)};

	options.flags = options.threads == 0 ? WEIR_POOL_NO_THREADS : 0;
	STRESS_CHECK(weir_pool_create(&options, &works.pool, NULL) == WEIR_OK, "no pool");
	weiri_store_relaxed(&works.submitted, 0u); /* [relaxed] no thread yet */
	for (size_t i = 0; i < SUBMITTERS; i++)
		(void)stress_start("submitter", submit_all, works.job[i]);
	if (stress_one_in(self, 2))
		(void)stress_start("helper", help, NULL);
	stress_begin(self, "joining");
	stress_join();
	stress_begin(self, "destroy");
	STRESS_CHECK(weir_pool_destroy(works.pool, NULL) == WEIR_OK, "a destroy failed");
	stress_end(self, 1);
	return check_jobs();
}

void scenario_pool(void)
{
	uint64_t rounds = 0, runs = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++)
		runs += play_pool(stress_self());
	stress_note("rounds", rounds);
	stress_note("runs of tasks", runs);
}

/* -- coordinator ------------------------------------------------------------------------------- */

enum { STOPPERS = 3, MOST_THREADS = 4, CALLBACKS = 3 };

static const uint64_t longest_round_ns = 3000000;

static struct {
	weir_coordinator *coordinator;
	weir_queue *queue; /* empty: its dequeues wait */
	weir_cancel_hook *hook[CALLBACKS];
	_Atomic(uint64_t) called[CALLBACKS];
	_Atomic(uint64_t) running, cancelled;
} job;

static void count_call(void *context)
{
	(void)weiri_fetch_add_relaxed((_Atomic(uint64_t) *)context, 1u); /* [relaxed] a count */
}

static enum weir_status wait_in_queue(weir_coordinator *coordinator, void *context, weir_error *error)
{
	void *item;
	enum weir_status status =
		weir_queue_dequeue(job.queue, &item, WEIR_NO_DEADLINE, weir_coordinator_cancel(coordinator), NULL);

	(void)context, (void)error;
	STRESS_CHECK(status == WEIR_CANCELLED && weir_coordinator_should_stop(coordinator),
	             "a dequeue with the coordinator's token ended with %s", weir_status_name(status));
	(void)weiri_fetch_add_relaxed(&job.cancelled, 1u); /* [relaxed] a count */
	/* [release] pairs with the look after the join */
	(void)weiri_fetch_sub_release(&job.running, 1u);
	return WEIR_OK;
}

static void work_until_stop(struct stress_thread *self, void *context)
{
	weir_coordinator_member *member = context;
	unsigned spins = 0;

	stress_begin(self, "working");
	while (!weir_coordinator_should_stop(job.coordinator)) {
		stress_back_off(&spins);
		stress_end(self, 1);
	}
	/* [release] pairs with the look after the join */
	(void)weiri_fetch_sub_release(&job.running, 1u);
	stress_begin(self, "leave");
	weir_coordinator_leave(member);
}

static void ask_to_stop(struct stress_thread *self, void *context)
{
	weir_error cause = {WEIR_ABORTED, ""};

	(void)context;
	(void)snprintf(cause.message, sizeof(cause.message), "asked by %u", self->number);
	stress_let_pass(stress_below(self, longest_round_ns));
	stress_begin(self, "request_stop");
	STRESS_CHECK(weir_coordinator_request_stop(job.coordinator, &cause) != WEIR_INVALID_ARGUMENT, "a stop was refused");
	stress_end(self, 1);
}

static void set_up_coordinator(struct stress_thread *self)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1};
	unsigned members = 1 + (unsigned)stress_below(self, MOST_THREADS), waiters = (unsigned)stress_below(self, 3);

	memset(&job, 0, sizeof(job));
	STRESS_CHECK(weir_coordinator_create(NULL, &job.coordinator, NULL) == WEIR_OK, "no coordinator");
	STRESS_CHECK(weir_queue_create(&options, &job.queue, NULL) == WEIR_OK, "no queue");
	weiri_store_relaxed(&job.running, (uint64_t)members + waiters); /* [relaxed] no thread yet */
	for (unsigned i = 0; i < CALLBACKS; i++)
		STRESS_CHECK(weir_coordinator_on_stop(job.coordinator, count_call, &job.called[i], &job.hook[i]) == WEIR_OK,
		             "no callback");
	for (unsigned i = 0; i < members; i++) {
		weir_coordinator_member *member;

		STRESS_CHECK(weir_coordinator_enter(job.coordinator, "member", &member, NULL) == WEIR_OK, "no registration");
		(void)stress_start("member", work_until_stop, member);
	}
	for (unsigned i = 0; i < waiters; i++)
		STRESS_CHECK(weir_coordinator_start_thread(job.coordinator, "waiter", wait_in_queue, NULL, NULL) == WEIR_OK,
		             "no thread");
	for (unsigned i = 0; i < STOPPERS; i++)
		(void)stress_start("stopper", ask_to_stop, NULL);
}

/*
 * The stop whose cause was kept may still run its callbacks when the join ends, but not after its
 * thread has ended.
 */
static void judge_coordinator(void)
{
	weir_error kept = {WEIR_OK, ""};

	for (unsigned i = 0; i < CALLBACKS; i++) {
		uint64_t called;

		(void)weir_cancel_off(job.hook[i]);
		called = weiri_load_relaxed(&job.called[i]); /* [relaxed] joined */
		STRESS_CHECK(called == 1, "a callback ran %llu times", (unsigned long long)called);
	}
	STRESS_CHECK(weir_coordinator_status(job.coordinator, &kept) == WEIR_ABORTED &&
	                 strncmp(kept.message, "asked by ", 9) == 0,
	             "the cause that was kept is \"%s\"", kept.message);
	STRESS_CHECK(weir_coordinator_destroy(job.coordinator, NULL) == WEIR_OK, "a destroy failed after the join");
	STRESS_CHECK(weir_queue_destroy(job.queue, NULL) == WEIR_OK, "an operation still waits in the queue");
}

void scenario_coordinator(void)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0, cancelled = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		enum weir_status status;

		set_up_coordinator(self);
		stress_begin(self, "coordinator's join");
		status = weir_coordinator_join(job.coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, NULL);
		STRESS_CHECK(status == WEIR_ABORTED, "the join ended with %s", weir_status_name(status));
		/* [acquire] pairs with the threads' ends. */
		STRESS_CHECK(weiri_load_acquire(&job.running) == 0, "the join ended before %llu threads had ended",
		             (unsigned long long)weiri_load_acquire(&job.running));
		stress_begin(self, "joining");
		stress_join();
		judge_coordinator();
		cancelled += weiri_load_relaxed(&job.cancelled); /* [relaxed] joined */
		stress_end(self, 1);
	}
	stress_note("rounds", rounds);
	stress_note("waits cancelled", cancelled);
}
