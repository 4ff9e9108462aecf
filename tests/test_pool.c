/*
 * test_pool.c - every submitted task runs once, whichever thread submits it, whichever workers
 * sleep, and even without memory.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weir/pool.h>
#include <weir/time.h>

#include "base/asymmetric.h"
#include "failing_allocator.h"
#include "run/pool_submission.h"
#include "run/worker.h"
#include "sandbox.h"
#include "under_tsan.h"

static const uint64_t long_ns = 100000000000u;

/* Returns 1 when *counter has reached `value` in time. */
static int reaches(_Atomic(int) *counter, int value)
{
	uint64_t deadline = weir_deadline_in(long_ns);

	/* [acquire] pairs with the release of the tasks that count */
	while (weiri_load_acquire(counter) != value) {
		if (weir_now_ns() > deadline)
			return 0;
		(void)sched_yield();
	}
	return 1;
}

static weir_pool *create(size_t threads)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = threads,
	                                    .flags = threads == 0 ? WEIR_POOL_NO_THREADS : 0};
	weir_pool *pool = NULL;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	return pool;
}

static void destroy(weir_pool *pool)
{
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

static int all_asleep(weir_pool *pool)
{
	uint64_t deadline = weir_deadline_in(long_ns);

	while (weiri_load_relaxed(&pool->idle.waiters) != pool->thread_count) {
		if (weir_now_ns() > deadline)
			return 0;
		(void)sched_yield();
	}
	return 1;
}

/*
 * Counts its runs in plain memory, so that it is a race if a task runs twice or does not see the
 * writes of its submitter.
 */
struct counted {
	weir_task task;
	int payload;
	int runs;
	int bad;
	_Atomic(int) *done;
};

static void count(weir_task *task)
{
	struct counted *self = (struct counted *)task;

	self->bad = self->payload != 42;
	self->runs++;
	(void)weiri_fetch_add_release(self->done, 1);
}

static struct counted *submit_counted(weir_pool *pool, int tasks, _Atomic(int) *done)
{
	struct counted *all = calloc((size_t)tasks, sizeof(*all));

	cr_assert_not_null(all);
	for (int i = 0; i < tasks; i++) {
		all[i].task.run = count;
		all[i].done = done;
		all[i].payload = 42;
		cr_assert_eq(weir_pool_submit(pool, &all[i].task), WEIR_OK);
	}
	return all;
}

static void expect_each_ran_once(struct counted *all, int tasks)
{
	int wrong = 0;

	for (int i = 0; i < tasks; i++)
		wrong += all[i].runs != 1 || all[i].bad;
	cr_expect_eq(wrong, 0);
	free(all);
}

Test(pool, create_refuses_bad_options)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT};
	weir_pool *pool = NULL;
	weir_error error;

	options.struct_size = sizeof(size_t) - 1;
	cr_expect_eq(weir_pool_create(&options, &pool, NULL), WEIR_INVALID_ARGUMENT);
	options.struct_size = SIZE_MAX;
	cr_expect_eq(weir_pool_create(&options, &pool, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT);
	options.struct_size = sizeof(options);
	options.flags = 2;
	cr_expect_eq(weir_pool_create(&options, &pool, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "flag"));
	options.flags = WEIR_POOL_NO_THREADS;
	options.threads = 1;
	options.name = "readers";
	cr_expect_eq(weir_pool_create(&options, &pool, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "pool \"readers\": 1 thread with WEIR_POOL_NO_THREADS");
	options.flags = 0;
	options.threads = WEIR_POOL_MAX_THREADS + 1;
	cr_expect_eq(weir_pool_create(&options, &pool, NULL), WEIR_INVALID_ARGUMENT);
	options.threads = 1;
	cr_expect_eq(weir_pool_create(&options, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(pool);
}

static int create_where_threads_are_refused(void)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .name = "few", .threads = 2};
	weir_pool *pool = NULL;
	weir_error error;

	/* glibc asks by clone3(2), and if the system does not know that, by clone(2). */
	if (!sandbox_refuses(SYS_clone3, ENOSYS) || !sandbox_refuses(SYS_clone, EAGAIN))
		return SANDBOX_NOT_HERE;
	if (weir_pool_create(&options, &pool, &error) != WEIR_RESOURCE_EXHAUSTED || pool != NULL)
		return 1;
	return strcmp(error.message, "pool \"few\": the system gave only 0 of 2 threads") == 0 ? SANDBOX_HELD : 2;
}

Test(pool, create_fails_if_the_system_gives_too_few_threads)
{
	if (UNDER_TSAN)
		cr_skip_test("ThreadSanitizer does not support threads in the child of a fork");
	in_a_sandbox(create_where_threads_are_refused);
}

Test(pool, default_options_give_at_least_one_worker)
{
	weir_pool *pool = NULL;

	cr_assert_eq(weir_pool_create(NULL, &pool, NULL), WEIR_OK);
	cr_expect_geq(weir_pool_thread_count(pool), 1);
	destroy(pool);
}

/* Later, the first worker would wait for a grace period of the kernel before its first task. */
Test(pool, the_kind_of_fence_is_decided_before_workers_start)
{
	bool is_granted = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
	weir_pool *pool;

	pool = create(1);
	/* [relaxed] only the first pool of a process sets it */
	cr_expect_eq(weiri_load_relaxed(&weiri_fence_asymmetric), is_granted);
	cr_expect_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

Test(pool, null_arguments_are_refused)
{
	weir_pool *pool = create(0);
	weir_task task = {NULL, NULL};

	cr_expect_eq(weir_pool_submit(NULL, &task), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_pool_submit(pool, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_pool_submit(pool, &task), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_pool_help(NULL, 1), 0);
	cr_expect_eq(weir_pool_thread_count(NULL), 0);
	cr_expect_eq(weir_pool_destroy(NULL, NULL), WEIR_OK);
	destroy(pool);
}

Test(pool, tasks_from_outside_each_run_once)
{
	enum { TASKS = 20000 };
	weir_pool *pool = create(3);
	_Atomic(int) done = 0;
	struct counted *all = submit_counted(pool, TASKS, &done);

	cr_expect(reaches(&done, TASKS));
	destroy(pool);
	expect_each_ran_once(all, TASKS);
}

Test(pool, destroy_runs_what_is_left)
{
	enum { TASKS = 5000 };

	for (size_t threads = 0; threads < 4; threads++) {
		weir_pool *pool = create(threads);
		_Atomic(int) done = 0;
		struct counted *all = submit_counted(pool, TASKS, &done);

		destroy(pool);
		cr_expect_eq(weiri_load_acquire(&done), TASKS);
		expect_each_ran_once(all, TASKS);
	}
}

struct ending {
	weir_pool *pool;
	_Atomic(int) ended;
};

static void *destroy_meanwhile(void *context)
{
	struct ending *ending = context;

	destroy(ending->pool);
	weiri_store_release(&ending->ended, 1);
	return NULL;
}

/* A run whose call has returned at its deadline submits when the destroy has begun. */
Test(pool, destroy_waits_for_a_holder_and_runs_its_tasks)
{
	for (size_t threads = 0; threads < 2; threads++) {
		struct failing_allocator memory = {0};
		weir_allocator hooks = failing_allocator_hooks(&memory);
		struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = threads, .allocator = &hooks,
		                                    .flags = threads == 0 ? WEIR_POOL_NO_THREADS : 0};
		struct ending ending = {.pool = NULL};
		_Atomic(int) done = 0;
		struct counted *all;
		pthread_t thread;

		cr_assert_eq(weir_pool_create(&options, &ending.pool, NULL), WEIR_OK);
		weiri_pool_hold(ending.pool);
		cr_assert_eq(pthread_create(&thread, NULL, destroy_meanwhile, &ending), 0);
		while (weiri_load_relaxed(&ending.pool->stopping) == 0) {
			cr_assert_eq(weiri_load_acquire(&ending.ended), 0);
			(void)sched_yield();
		}
		all = submit_counted(ending.pool, 3, &done);
		cr_expect(reaches(&done, 3));
		cr_expect_eq(weiri_load_acquire(&ending.ended), 0);
		cr_expect_neq(memory.outstanding, 0);
		weiri_pool_let_go(ending.pool);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		expect_each_ran_once(all, 3);
		cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
	}
}

Test(pool, a_pool_without_threads_runs_tasks_in_help)
{
	weir_pool *pool = create(0);
	_Atomic(int) done = 0;
	struct counted *all = submit_counted(pool, 10, &done);

	cr_expect_eq(weir_pool_thread_count(pool), 0);
	cr_expect_eq(weiri_load_acquire(&done), 0);
	cr_expect_eq(weir_pool_help(pool, 0), 0);
	cr_expect_eq(weir_pool_help(pool, 3), 3);
	cr_expect_eq(weiri_load_acquire(&done), 3);
	cr_expect_eq(weir_pool_help(pool, 100), 7);
	cr_expect_eq(weir_pool_help(pool, 100), 0);
	destroy(pool);
	expect_each_ran_once(all, 10);
}

Test(pool, a_sleeping_worker_is_woken_for_one_task)
{
	enum { ROUNDS = 2000 };
	weir_pool *pool = create(2);
	_Atomic(int) done = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct counted counted = {.task = {.run = count}, .payload = 42, .done = &done};

		if (i % 16 == 0)
			cr_assert(all_asleep(pool));
		cr_assert_eq(weir_pool_submit(pool, &counted.task), WEIR_OK);
		cr_assert(reaches(&done, i + 1), "the task of round %d did not run", i);
	}
	destroy(pool);
}

/*
 * A task that waits for another one holds its worker. The other task must reach the second worker.
 */
struct rendezvous {
	weir_task task;
	_Atomic(int) *arrived;
	_Atomic(int) *left;
	_Atomic(int) *failures;
	int parties;
};

static void meet(weir_task *task)
{
	struct rendezvous *self = (struct rendezvous *)task;

	(void)weiri_fetch_add_release(self->arrived, 1);
	if (!reaches(self->arrived, self->parties))
		(void)weiri_fetch_add_relaxed(self->failures, 1);
	(void)weiri_fetch_add_release(self->left, 1);
}

Test(pool, each_of_many_tasks_gets_a_worker_of_its_own)
{
	enum { PARTIES = 4, ROUNDS = 200 };
	weir_pool *pool = create(PARTIES);
	_Atomic(int) failures = 0;

	for (int round = 0; round < ROUNDS && weiri_load_relaxed(&failures) == 0; round++) {
		_Atomic(int) arrived = 0;
		_Atomic(int) left = 0;
		struct rendezvous tasks[PARTIES];

		if (round % 8 == 0)
			cr_assert(all_asleep(pool));
		for (int i = 0; i < PARTIES; i++) {
			tasks[i] = (struct rendezvous){{meet, NULL}, &arrived, &left, &failures, PARTIES};
			cr_assert_eq(weir_pool_submit(pool, &tasks[i].task), WEIR_OK);
		}
		cr_assert(reaches(&left, PARTIES), "round %d: %d of %d tasks ran", round, weiri_load_relaxed(&arrived),
		          PARTIES);
	}
	cr_expect_eq(weiri_load_relaxed(&failures), 0);
	destroy(pool);
}

/* A tree of tasks. Each task is on the heap and frees itself. */
struct node {
	weir_task task;
	weir_pool *pool;
	_Atomic(int) *done;
	_Atomic(int) *failures;
	int depth;
};

static void grow_tree(weir_task *task);

static int plant(weir_pool *pool, int depth, _Atomic(int) *done, _Atomic(int) *failures)
{
	struct node *node = malloc(sizeof(*node));

	if (node == NULL)
		return 0;
	*node = (struct node){{grow_tree, NULL}, pool, done, failures, depth};
	return weir_pool_submit(pool, &node->task) == WEIR_OK;
}

static void grow_tree(weir_task *task)
{
	struct node self = *(struct node *)task;

	free(task);
	for (int i = 0; i < 2 && self.depth > 0; i++) {
		if (!plant(self.pool, self.depth - 1, self.done, self.failures))
			(void)weiri_fetch_add_relaxed(self.failures, 1);
	}
	(void)weiri_fetch_add_release(self.done, 1);
}

Test(pool, tasks_submit_tasks_and_free_themselves)
{
	enum { DEPTH = 12 };
	weir_pool *pool = create(4);
	_Atomic(int) done = 0;
	_Atomic(int) failures = 0;

	for (int round = 1; round <= 4; round++) {
		cr_assert(plant(pool, DEPTH, &done, &failures));
		cr_assert(reaches(&done, round * ((1 << (DEPTH + 1)) - 1)));
	}
	/* Again, while the pool is being destroyed. */
	cr_assert(plant(pool, DEPTH, &done, &failures));
	destroy(pool);
	cr_expect_eq(weiri_load_acquire(&done), 5 * ((1 << (DEPTH + 1)) - 1));
	cr_expect_eq(weiri_load_relaxed(&failures), 0);
}

struct submitter {
	weir_pool *pool;
	_Atomic(int) done;
	struct counted *all;
};

enum { PER_SUBMITTER = 3000 };

static void *submit_many(void *argument)
{
	struct submitter *self = argument;

	for (int i = 0; i < PER_SUBMITTER; i++) {
		self->all[i] = (struct counted){.task = {.run = count}, .payload = 42, .done = &self->done};
		(void)weir_pool_submit(self->pool, &self->all[i].task);
		if (i % 64 == 0)
			(void)weir_pool_help(self->pool, 2);
	}
	return NULL;
}

Test(pool, many_submitters_and_helpers)
{
	enum { SUBMITTERS = 4 };
	weir_pool *pool = create(2);
	struct submitter submitters[SUBMITTERS];
	pthread_t threads[SUBMITTERS];

	for (int i = 0; i < SUBMITTERS; i++) {
		submitters[i] = (struct submitter){pool, 0, calloc(PER_SUBMITTER, sizeof(struct counted))};
		cr_assert_not_null(submitters[i].all);
		cr_assert_eq(pthread_create(&threads[i], NULL, submit_many, &submitters[i]), 0);
	}
	for (int i = 0; i < SUBMITTERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	for (int i = 0; i < SUBMITTERS; i++)
		cr_expect(reaches(&submitters[i].done, PER_SUBMITTER));
	destroy(pool);
	for (int i = 0; i < SUBMITTERS; i++)
		expect_each_ran_once(submitters[i].all, PER_SUBMITTER);
}

/* Submits itself until it is told to end. */
struct eternal {
	weir_task task;
	weir_pool *pool;
	_Atomic(int) stop;
	_Atomic(int) stopped;
};

static void run_for_ever(weir_task *task)
{
	struct eternal *self = (struct eternal *)task;

	if (weiri_load_acquire(&self->stop))
		weiri_store_release(&self->stopped, 1);
	else
		(void)weir_pool_submit(self->pool, task);
}

Test(pool, a_task_that_resubmits_itself_starves_nobody)
{
	weir_pool *pool = create(1);
	struct eternal first = {.task = {.run = run_for_ever}, .pool = pool};
	struct eternal second = {.task = {.run = run_for_ever}, .pool = pool};
	_Atomic(int) done = 0;
	struct counted *all;

	cr_assert_eq(weir_pool_submit(pool, &first.task), WEIR_OK);
	cr_assert_eq(weir_pool_submit(pool, &second.task), WEIR_OK);
	all = submit_counted(pool, 100, &done);
	cr_expect(reaches(&done, 100));
	weiri_store_release(&first.stop, 1);
	cr_expect(reaches(&first.stopped, 1));
	weiri_store_release(&second.stop, 1);
	cr_expect(reaches(&second.stopped, 1));
	destroy(pool);
	expect_each_ran_once(all, 100);
}

/* Submits one more task when it is told to. */
struct late_submitter {
	weir_task task;
	weir_pool *pool;
	_Atomic(int) started;
	_Atomic(int) told;
	weir_task more;
	_Atomic(int) *done;
	/* The number of other tasks that had run when `more` ran. */
	int done_before;
};

static void submit_when_told(weir_task *task)
{
	struct late_submitter *self = (struct late_submitter *)task;

	weiri_store_release(&self->started, 1);
	(void)reaches(&self->told, 1);
	(void)weir_pool_submit(self->pool, &self->more);
}

static void look_what_is_done(weir_task *task)
{
	struct late_submitter *self = WEIRI_CONTAINER_OF(task, struct late_submitter, more);

	self->done_before = weiri_load_relaxed(self->done);
}

Test(pool, a_flood_from_outside_does_not_pass_over_the_task_of_a_worker)
{
	enum { FLOOD = 1000 };
	weir_pool *pool = create(1);
	_Atomic(int) done = 0;
	struct late_submitter submitter = {
		.task = {.run = submit_when_told}, .pool = pool, .more = {.run = look_what_is_done}, .done = &done};
	struct counted *all;

	cr_assert_eq(weir_pool_submit(pool, &submitter.task), WEIR_OK);
	cr_assert(reaches(&submitter.started, 1));
	all = submit_counted(pool, FLOOD, &done);
	weiri_store_release(&submitter.told, 1);
	destroy(pool);
	cr_expect_lt(submitter.done_before, FLOOD);
	expect_each_ran_once(all, FLOOD);
}

struct destroyer {
	weir_task task;
	weir_pool *pool;
	_Atomic(int) status;
};

static void destroy_own_pool(weir_task *task)
{
	struct destroyer *self = (struct destroyer *)task;

	weiri_store_release(&self->status, (int)weir_pool_destroy(self->pool, NULL));
}

struct poller {
	weir_task task;
	weir_pool *pool;
};

static void count_nothing(weir_task *task)
{
	(void)task;
}

static void poll_again(weir_task *task)
{
	struct poller *self = (struct poller *)task;

	cr_assert_eq(weir_pool_submit(self->pool, task), WEIR_OK);
}

static void *help_for_long(void *pool)
{
	for (int i = 0; i < 5000; i++)
		cr_assert_eq(weir_pool_help(pool, 1), 1);
	return NULL;
}

/* The ring of the inbox is full and there is no memory for another, so the last tasks go where none is needed. */
Test(pool, a_task_that_resubmits_itself_does_not_pass_over_those_that_came_without_memory)
{
	enum { FEW = 3 };
	struct failing_allocator memory = {0};
	weir_allocator hooks = failing_allocator_hooks(&memory);
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS, .allocator = &hooks};
	struct poller poller = {.task.run = poll_again};
	_Atomic(int) filled = 0, done = 0;
	struct counted *fill, *late;
	pthread_t thread;

	cr_assert_eq(weir_pool_create(&options, &poller.pool, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_submit(poller.pool, &poller.task), WEIR_OK);
	fill = submit_counted(poller.pool, WEIRI_INBOX_FIRST_CAPACITY - 1, &filled);
	memory.fail_at = memory.asked + 1;
	memory.fail_count = SIZE_MAX;
	late = submit_counted(poller.pool, FEW, &done);
	cr_assert_neq(memory.refused, 0);
	/* A thread of its own has no record, which would remember where it has looked. */
	cr_assert_eq(pthread_create(&thread, NULL, help_for_long, poller.pool), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(weiri_load_relaxed(&done), FEW);
	poller.task.run = count_nothing; /* the pool does not look at it while it is submitted */
	destroy(poller.pool);
	expect_each_ran_once(fill, WEIRI_INBOX_FIRST_CAPACITY - 1);
	expect_each_ran_once(late, FEW);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}

Test(pool, a_task_cannot_destroy_its_pool)
{
	for (size_t threads = 0; threads < 2; threads++) {
		weir_pool *pool = create(threads);
		struct destroyer destroyer = {.task = {.run = destroy_own_pool}, .pool = pool};

		cr_assert_eq(weir_pool_submit(pool, &destroyer.task), WEIR_OK);
		(void)weir_pool_help(pool, 1);
		cr_expect(reaches(&destroyer.status, WEIR_FAILED_PRECONDITION));
		destroy(pool);
	}
}

/* Runs a task of another pool on its own stack. */
struct visitor {
	weir_task task;
	weir_pool *other;
	size_t helped;
};

static void help_another_pool(weir_task *task)
{
	struct visitor *self = (struct visitor *)task;

	self->helped = weir_pool_help(self->other, 1);
}

Test(pool, a_task_inside_a_task_of_another_pool_cannot_destroy_that_pool)
{
	weir_pool *outer = create(0), *inner = create(0);
	struct visitor visitor = {.task = {.run = help_another_pool}, .other = inner};
	struct destroyer destroyer = {.task = {.run = destroy_own_pool}, .pool = outer};

	cr_assert_eq(weir_pool_submit(inner, &destroyer.task), WEIR_OK);
	cr_assert_eq(weir_pool_submit(outer, &visitor.task), WEIR_OK);
	cr_expect_eq(weir_pool_help(outer, 1), 1);
	cr_expect_eq(visitor.helped, 1);
	cr_expect_eq(weiri_load_acquire(&destroyer.status), WEIR_FAILED_PRECONDITION);
	destroy(inner);
	destroy(outer);
}

/* A task that runs the next tasks itself, on the stack of a worker or a helper. */
struct helper {
	weir_task task;
	weir_pool *pool;
	_Atomic(int) *done;
	_Atomic(int) *result;
	int target;
};

static void help_in_task(weir_task *task)
{
	struct helper *self = (struct helper *)task;
	uint64_t deadline = weir_deadline_in(long_ns);

	while (weiri_load_acquire(self->done) != self->target && weir_now_ns() < deadline)
		(void)weir_pool_help(self->pool, 1);
	weiri_store_release(self->result, weiri_load_acquire(self->done));
}

Test(pool, a_task_can_wait_for_others_by_helping)
{
	for (size_t threads = 0; threads < 2; threads++) {
		weir_pool *pool = create(threads);
		_Atomic(int) done = 0;
		_Atomic(int) result = 0;
		struct helper helper = {{help_in_task, NULL}, pool, &done, &result, 50};
		struct counted *all;

		cr_assert_eq(weir_pool_submit(pool, &helper.task), WEIR_OK);
		all = submit_counted(pool, 50, &done);
		if (threads == 0)
			(void)weir_pool_help(pool, 1);
		cr_expect(reaches(&result, 50));
		destroy(pool);
		expect_each_ran_once(all, 50);
	}
}

struct named {
	weir_task task;
	char name[16];
	_Atomic(int) done;
};

static void read_name(weir_task *task)
{
	struct named *self = (struct named *)task;

	(void)pthread_getname_np(pthread_self(), self->name, sizeof(self->name));
	weiri_store_release(&self->done, 1);
}

Test(pool, workers_carry_the_name_of_the_pool)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = 1, .name = "a-name-that-is-too-long"};
	struct named named = {.task = {.run = read_name}};
	weir_pool *pool;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	cr_assert(all_asleep(pool));
	cr_assert_eq(weir_pool_submit(pool, &named.task), WEIR_OK);
	cr_assert(reaches(&named.done, 1));
	destroy(pool);
	cr_expect_str_eq(named.name, "a-name-that-i-0");
}

static enum weir_status make_a_pool(const weir_allocator *allocator, void *context)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = 3, .allocator = allocator};
	weir_pool *pool = NULL;
	enum weir_status status = weir_pool_create(&options, &pool, NULL);

	(void)context;
	cr_assert_eq(status == WEIR_OK, pool != NULL);
	(void)weir_pool_destroy(pool, NULL);
	return status;
}

Test(pool, create_survives_every_allocation_failing)
{
	cr_expect_geq(fail_each_allocation(make_a_pool, NULL), 6, "the pool, its workers, three deques and an inbox");
}

/* There are more tasks than the first ring of the inbox and the first array of a deque hold. */
static void run_with_no_memory_left(size_t threads)
{
	enum { TASKS = 3 * WEIRI_INBOX_FIRST_CAPACITY };
	struct failing_allocator memory = {.fail_count = SIZE_MAX};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = threads,
	                                    .flags = threads == 0 ? WEIR_POOL_NO_THREADS : 0, .allocator = &allocator};
	_Atomic(int) done = 0;
	_Atomic(int) failures = 0;
	struct counted *all;
	weir_pool *pool;

	cr_assert_eq(weir_pool_create(&options, &pool, NULL), WEIR_OK);
	memory.fail_at = 1;
	all = submit_counted(pool, TASKS, &done);
	cr_assert(plant(pool, 11, &done, &failures));
	destroy(pool);
	cr_expect_eq(weiri_load_acquire(&done), TASKS + (1 << 12) - 1);
	cr_expect(threads != 0 || weiri_load_relaxed(&memory.refused) != 0);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
	expect_each_ran_once(all, TASKS);
}

Test(pool, submit_succeeds_with_no_memory_left)
{
	run_with_no_memory_left(0);
	run_with_no_memory_left(3);
}

Test(pool, a_large_backlog_is_kept_and_run)
{
	enum { TASKS = 30 * WEIRI_INBOX_FIRST_CAPACITY };
	weir_pool *pool = create(0);
	_Atomic(int) done = 0;
	struct counted *all = submit_counted(pool, TASKS, &done);

	cr_expect_eq(weir_pool_help(pool, SIZE_MAX), TASKS);
	destroy(pool);
	expect_each_ran_once(all, TASKS);
}
