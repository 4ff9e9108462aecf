/*
 * check_pool.c - the pool: each task runs once and sees what was written before its submit, no task
 * waits while a worker sleeps, and the tasks that were submitted before a stop run.
 *
 * The workers are the checker's threads, lent to the library's pthread_create (threads.h). If a
 * worker is not woken for a task, "all threads sleep" shows this, because the submitter waits for
 * the task before anything is stopped.
 */
#include <limits.h>
#include <stdio.h>
#include <weir/pool.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/scope.h"
#include "model/threads.h"
#include "run/pool_submission.h"
#include "run/worker.h"
#include "sync/park.h"

enum { MOST = 3 };

struct job {
	weir_task task;
	int data;
	int ran;
	_Atomic(uint32_t) done;
	struct job *more;   /* submitted by the task, which then waits for it */
	struct job *awaits; /* submitted by another thread */
};

static struct scene {
	weir_pool *pool;
	size_t workers;
	struct job jobs[MOST];
	size_t submitters;
	_Atomic(uint32_t) submitted; /* threads that have submitted or helped */
} scene;

static void submit(struct job *job)
{
	job->data = 7;
	weir_model_assert(weir_pool_submit(scene.pool, &job->task) == WEIR_OK);
}

static void wait_for(_Atomic(uint32_t) *word, uint32_t value)
{
	uint32_t now;

	while ((now = weiri_load_acquire(word)) != value)
		(void)weiri_park_wait(word, now, WEIR_NO_DEADLINE);
}

static void run(weir_task *task)
{
	struct job *job = (struct job *)task;

	weir_model_assert(job->data == 7);
	job->ran++;
	if (job->more != NULL) {
		submit(job->more);
		wait_for(&job->more->done, 1);
	}
	if (job->awaits != NULL)
		wait_for(&job->awaits->done, 1);
	weiri_store_release(&job->done, 1);
	weiri_park_wake(&job->done, INT_MAX);
}

static void setup(void *context)
{
	const struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = scene.workers,
	                                          .flags = scene.workers == 0 ? WEIR_POOL_NO_THREADS : 0};

	(void)context;
	weir_model_assert(weir_pool_create(&options, &scene.pool, NULL) == WEIR_OK);
	for (size_t i = 0; i < MOST; i++)
		scene.jobs[i].task.run = run;
}

static void ran(size_t jobs)
{
	for (size_t i = 0; i < MOST; i++)
		weir_model_assert(scene.jobs[i].ran == (i < jobs));
}

static void one_ran(void *context)
{
	(void)context;
	ran(1);
}

static void two_ran(void *context)
{
	(void)context;
	ran(2);
}

/* -- workers: threads 0 .. workers-1 ----------------------------------------------------------- */

/* The last thread submits, and stops the pool immediately. */
static void submit_and_stop(void *context, size_t who)
{
	(void)context;
	if (who < scene.workers) {
		weiri_model_lend(who);
		return;
	}
	submit(&scene.jobs[0]);
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
}

/*
 * Each of the other threads submits a job. The last thread waits for all of them before it stops
 * the pool.
 */
static void submit_and_wait(void *context, size_t who)
{
	(void)context;
	if (who < scene.workers) {
		weiri_model_lend(who);
		return;
	}
	submit(&scene.jobs[who - scene.workers]);
	wait_for(&scene.jobs[who - scene.workers].done, 1);
	weiri_fetch_add_release(&scene.submitted, 1);
	weiri_park_wake(&scene.submitted, INT_MAX);
	if (who != scene.workers)
		return;
	wait_for(&scene.submitted, (uint32_t)scene.submitters);
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
}

/*
 * The task of one worker submits another task and waits for it, so another worker must run that
 * task.
 */
static void setup_hand_over(void *context)
{
	setup(context);
	scene.jobs[0].more = &scene.jobs[1];
}

/*
 * One task waits for another one that is submitted meanwhile. The worker that found the first task
 * must ensure that another worker looks for more tasks.
 */
static void setup_dependent(void *context)
{
	setup(context);
	scene.jobs[0].awaits = &scene.jobs[1];
}

/* The last thread submits both tasks, and stops the pool when they have run. */
static void submit_both(void *context, size_t who)
{
	(void)context;
	if (who < scene.workers) {
		weiri_model_lend(who);
		return;
	}
	submit(&scene.jobs[0]);
	submit(&scene.jobs[1]);
	wait_for(&scene.jobs[0].done, 1);
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
}

/*
 * Two tasks are in a deque whose owner is busy. Two helpers steal them, and neither may give up
 * because the other was faster. The worker begins when both helpers have a task.
 */
static void setup_two_in_a_deque(void *context)
{
	setup(context);
	for (size_t i = 0; i < 2; i++) {
		scene.jobs[i].data = 7;
		weir_model_assert(weiri_deque_push(&scene.pool->workers[0].deque, &scene.jobs[i].task));
	}
}

static void steal_both(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		wait_for(&scene.submitted, 2);
		weiri_model_lend(0);
		return;
	}
	weir_model_assert(weir_pool_help(scene.pool, 1) == 1);
	weiri_fetch_add_release(&scene.submitted, 1);
	weiri_park_wake(&scene.submitted, INT_MAX);
	if (who != 1)
		return;
	wait_for(&scene.submitted, 2);
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
}

/* -- no workers: submit while helpers run ------------------------------------------------------ */

static void help_beside_submit(void *context, size_t who)
{
	(void)context;
	if (who < scene.submitters)
		submit(&scene.jobs[who]);
	else
		(void)weir_pool_help(scene.pool, 1);
}

static void destroy_runs_the_rest(void *context)
{
	(void)context;
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
	ran(scene.submitters);
}

/* The task may have run, and the pool be destroyed, while the submission is still under way. */
static void destroy_beside_a_submission(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		scene.jobs[0].data = 7;
		weiri_pool_submit_counted(scene.pool, &scene.jobs[0].task);
	} else if (weir_pool_help(scene.pool, 1) == 1) {
		weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
		scene.pool = NULL;
	}
}

/* A run that has not ended holds the pool: it may submit when the destroy has begun, and lets go when the task has run. */
static void hold(void *context)
{
	setup(context);
	weiri_pool_hold(scene.pool);
	scene.jobs[0].data = 7;
}

static void destroy_beside_a_holder(void *context, size_t who)
{
	weir_pool *pool = scene.pool;

	(void)context;
	if (who == 0) {
		weiri_pool_submit_counted(pool, &scene.jobs[0].task);
		wait_for(&scene.jobs[0].done, 1);
		weiri_pool_let_go(pool);
	} else {
		weir_model_assert(weir_pool_destroy(pool, NULL) == WEIR_OK);
	}
}

/* The last that the run does is to submit a task: whoever sees that it let go must see the task. */
static void submit_and_leave(size_t who, struct job *job)
{
	weir_pool *pool = scene.pool;

	if (who == 0) {
		weir_model_assert(weir_pool_submit(pool, &job->task) == WEIR_OK);
		weiri_pool_let_go(pool);
	} else {
		weir_model_assert(weir_pool_destroy(pool, NULL) == WEIR_OK);
	}
}

static void destroy_beside_a_holder_that_leaves(void *context, size_t who)
{
	(void)context;
	submit_and_leave(who, &scene.jobs[0]);
}

/* The first ring of the inbox is full, so the task is in another one, which the submission makes. */
static void hold_with_a_full_ring(void *context)
{
	hold(context);
	scene.jobs[1].data = 7;
	weir_model_assert(weir_pool_submit(scene.pool, &scene.jobs[0].task) == WEIR_OK);
}

static void destroy_beside_a_holder_that_leaves_in_a_new_ring(void *context, size_t who)
{
	(void)context;
	submit_and_leave(who, &scene.jobs[1]);
}

static void destroyed_and_one_ran(void *context)
{
	(void)context;
	weir_model_assert(weir_pool_destroy(scene.pool, NULL) == WEIR_OK);
	ran(1);
}

static int check(struct weir_model_program program, size_t workers, size_t submitters, uint64_t executions)
{
	scene = (struct scene){.workers = workers, .submitters = submitters};
	return scope_as_far_as(&program, scope_long() ? executions * 100 : executions);
}

static int check_workers(void)
{
	const size_t size = sizeof(scene);
	int bad = 0;

	bad |= check(
		(struct weir_model_program){"pool_1_worker_submit_and_stop", 2, &scene, size, setup, submit_and_stop, one_ran},
		1, 1, 20000);
	bad |= check((struct weir_model_program){"pool_1_worker_1_submitter_that_waits", 2, &scene, size, setup,
	                                         submit_and_wait, one_ran},
	             1, 1, 20000);
	bad |= check((struct weir_model_program){"pool_1_worker_2_submitters_that_wait", 3, &scene, size, setup,
	                                         submit_and_wait, two_ran},
	             1, 2, 20000);
	bad |= check((struct weir_model_program){"pool_2_workers_2_submitters_that_wait", 4, &scene, size, setup,
	                                         submit_and_wait, two_ran},
	             2, 2, 20000);
	bad |= check((struct weir_model_program){"pool_2_workers_task_waits_for_a_task", 3, &scene, size, setup_hand_over,
	                                         submit_and_wait, two_ran},
	             2, 1, 20000);
	bad |= check((struct weir_model_program){"pool_2_workers_task_waits_for_a_later_one", 3, &scene, size,
	                                         setup_dependent, submit_both, two_ran},
	             2, 1, 20000);
	return bad;
}

static int check_thieves(void)
{
	struct weir_model_program program = {"pool_2_helpers_steal_2_tasks", 3,          &scene, sizeof(scene),
	                                     setup_two_in_a_deque,           steal_both, two_ran};

	return check(program, 1, 0, 20000);
}

static int check_holders(void)
{
	struct weir_model_program held = {"pool_destroy_beside_a_holder", 2,      &scene, sizeof(scene), hold,
	                                  destroy_beside_a_holder,        one_ran};
	struct weir_model_program leaves = {"pool_destroy_beside_a_holder_that_leaves", 2,      &scene, sizeof(scene), hold,
	                                    destroy_beside_a_holder_that_leaves,        one_ran};

	struct weir_model_program in_a_new_ring = {
		"pool_destroy_beside_a_holder_that_leaves_in_a_new_ring", 2,      &scene, sizeof(scene), hold_with_a_full_ring,
		destroy_beside_a_holder_that_leaves_in_a_new_ring,        two_ran};

	return check(held, 0, 1, 20000) | check(leaves, 0, 1, 20000) | check(in_a_new_ring, 0, 1, 20000);
}

static int check_helpers(void)
{
	struct weir_model_program program = {
		"pool_2_submits_beside_help", 3, &scene, sizeof(scene), setup, help_beside_submit, destroy_runs_the_rest};
	struct weir_model_program counted = {"pool_destroy_beside_a_counted_submission",
	                                     2,
	                                     &scene,
	                                     sizeof(scene),
	                                     setup,
	                                     destroy_beside_a_submission,
	                                     destroyed_and_one_ran};
	int bad = check(program, 0, 2, 20000) | check(counted, 0, 1, 20000);

	program.name = "pool_submit_beside_2_helps";
	bad |= check(program, 0, 1, 20000);
	program.name = "pool_2_submits_beside_help";
	scene = (struct scene){.submitters = 2};
	return bad | scope_stops(&program, scope_long() ? 0 : 200, NULL, NULL);
}

int main(int argc, char **argv)
{
	int bad;

	scope_arguments(argc, argv);
	bad = check_workers() | check_thieves() | check_helpers() | check_holders();
	scope_symmetric(1);
	return bad | check_workers() | check_holders();
}
