/*
 * test_monitored.c - monitored sessions: bad input, hooks that fail in each place, checkpoints of
 * another model, runners, and memory that fails. Recoveries: test_monitored_recovery.c.
 */
#include "monitored_kit.h"

#include <pthread.h>
#include <weir/reclaim.h>

#include "failing_allocator.h"
#include "run/countdown.h"

/* -- bad input --------------------------------------------------------------------------------- */

static void expect_refused(const struct weir_monitored_options *options, const char *message)
{
	weir_monitored *monitored = NULL;
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_monitored_create(options, &monitored, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, message);
	cr_expect_null(monitored);
}

Test(monitored, create_refuses_bad_options)
{
	const struct weir_monitored_hook small = {.struct_size = 3};
	const struct weir_monitored_hook *hooks[2] = {&small, NULL};
	struct weir_monitored_runner runner = {NULL, 0, 0, NULL};
	struct weir_monitored_options good, options;
	struct weir_checkpoint_part part = {NULL, NULL};
	weir_node *node;
	struct job job;

	job_begin(&job);
	good = job_options(&job);
	node = job.count.node;
	expect_refused(NULL, "weir_monitored_create: options is NULL");
	cr_expect_eq(weir_monitored_create(&good, NULL, NULL), WEIR_INVALID_ARGUMENT);
	options = good;
	options.struct_size = 4;
	cr_expect_eq(weir_monitored_create(&options, &job.monitored, NULL), WEIR_INVALID_ARGUMENT);
	options = good;
	options.flags = 6;
	expect_refused(&options, "weir_monitored_create: unknown flags 0x6");
	options = good;
	options.make = NULL;
	expect_refused(&options, "weir_monitored_create: make is NULL");
	options = good;
	options.hook_count = 1;
	expect_refused(&options, "weir_monitored_create: hooks is NULL");
	options.hooks = &hooks[1];
	expect_refused(&options, "weir_monitored_create: hook 0 is NULL");
	options.hooks = hooks;
	cr_expect_eq(weir_monitored_create(&options, &job.monitored, NULL), WEIR_INVALID_ARGUMENT);
	options = good;
	options.runner_count = 1;
	expect_refused(&options, "weir_monitored_create: runners is NULL");
	options.runners = &runner;
	expect_refused(&options, "weir_monitored_create: runner 0 has no queue");
	runner.nodes = &node;
	runner.node_count = 1;
	expect_refused(&options, "weir_monitored_create: runner 0 has no queue");
	options = good;
	options.path = "somewhere";
	expect_refused(&options, "weir_monitored_create: a checkpoint needs both a path and variables, got only a path");
	options.variable_count = 1;
	options.variables = &part;
	expect_refused(&options, "weir_monitored_create: variable 0 is NULL");
	options.path = NULL;
	expect_refused(&options, "weir_monitored_create: a checkpoint needs both a path and variables, got only variables");
	options = good;
	options.save_every_ns = 1;
	expect_refused(&options, "weir_monitored_create: checkpoints are to be saved, but there is no path");
	options = good;
	options.recover_codes = WEIR_COORDINATOR_CLEAN(WEIR_OUT_OF_RANGE);
	expect_refused(&options, "weir_monitored_create: recover_codes has a clean end, WEIR_OK or WEIR_OUT_OF_RANGE");
	options.recover_codes = WEIR_COORDINATOR_CLEAN(WEIR_ABORTED);
	options.flags = WEIR_MONITORED_NO_RECOVERY;
	expect_refused(&options, "weir_monitored_create: recover_codes together with WEIR_MONITORED_NO_RECOVERY");
	cr_expect_eq(job.made, 0);
	job_create(&job, &good);
	job_finish(&job);
}

Test(monitored, null_is_refused_or_harmless)
{
	weir_tensor *result = NULL;
	weir_output fetch = {NULL, 0};
	struct job job;

	cr_expect_eq(weir_monitored_run(NULL, NULL, 0, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_step(NULL, job_unmake, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect(weir_monitored_should_stop(NULL));
	cr_expect_eq(weir_monitored_request_stop(NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_close(NULL, WEIR_OK, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_destroy(NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_monitored_call_feed(NULL, fetch, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_call_fetch(NULL, fetch, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_call_limit(NULL, 0, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(weir_monitored_call_result(NULL, 0));
	cr_expect_null(weir_monitored_call_session(NULL));
	cr_expect_null(weir_monitored_call_owner(NULL));
	job_start(&job);
	cr_expect_eq(weir_monitored_step(job.monitored, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_run(job.monitored, NULL, 1, NULL, 0, NULL, NULL, 0, 0, NULL, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_run(job.monitored, NULL, 0, NULL, 1, &result, NULL, 0, 0, NULL, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_run(job.monitored, NULL, 0, &job.count, 1, NULL, NULL, 0, 0, NULL, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_monitored_run(job.monitored, NULL, 0, NULL, 0, NULL, NULL, 1, 0, NULL, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	job_finish(&job);
}

/* -- hooks that fail --------------------------------------------------------------------------- */

/* In each place: the status with the hook's name, the hooks behind it are not called, nothing is left. */
Test(monitored, a_hook_that_fails_is_named_in_each_place)
{
	static const char *const texts[PLACES] = {
		"hook \"second\": begin: as it was told", "hook \"second\": after_create: as it was told",
		"hook \"second\": before_run: as it was told", "hook \"second\": after_run: as it was told",
		"hook \"second\": end: as it was told"};

	for (enum place place = AT_BEGIN; place < PLACES; place++) {
		struct counting counting[3];
		const struct weir_monitored_hook *hooks[3];
		struct weir_monitored_options options;
		weir_error error = {WEIR_OK, ""};
		enum weir_status status;
		int64_t value;
		struct job job;

		for (int i = 0; i < 3; i++) {
			counting_init(&counting[i], i == 1 ? "second" : NULL, NULL);
			hooks[i] = &counting[i].hook;
		}
		counting[1].fail_in = place;
		counting[1].fail_at = 1;
		counting[1].failure = WEIR_DATA_LOSS;
		job_begin(&job);
		options = job_options(&job);
		options.hooks = hooks;
		options.hook_count = 3;
		status = weir_monitored_create(&options, &job.monitored, &error);
		if (place > AT_CREATE) {
			cr_assert_eq(status, WEIR_OK);
			status = job_run(&job, &value, &error);
			if (place == AT_END) {
				cr_expect_eq(status, WEIR_OK);
				status = job_close(&job, WEIR_OK, &error);
			}
		}
		cr_expect_eq(status, WEIR_DATA_LOSS);
		cr_expect_str_eq(error.message, texts[place]);
		cr_expect_eq(counting[0].calls[place], 1);
		cr_expect_eq(counting[2].calls[place], place == AT_END, "an end is called in any case");
		cr_expect_eq(job_step(&job), place >= AT_AFTER);
		job_end(&job);
		cr_expect_eq(job.made, place != AT_BEGIN);
		cr_expect_eq(job.unmade, job.made);
	}
}

static enum weir_status call_everything(void *context, weir_monitored_call *call, weir_error *error)
{
	weir_monitored *monitored = weir_monitored_call_owner(call);
	weir_node **target = context;

	cr_expect_eq(weir_monitored_run(monitored, NULL, 0, NULL, 0, NULL, target, 1, WEIR_NO_DEADLINE, NULL, NULL, error),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_monitored_step(monitored, job_unmake, NULL, error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_monitored_close(monitored, WEIR_OK, error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_monitored_destroy(monitored, error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error->message, "weir_monitored_destroy: called inside a hook or step of \"job\"");
	return WEIR_OK;
}

static enum weir_status add_too_late(void *context, weir_monitored_call *call, weir_error *error)
{
	weir_node **target = context;
	weir_output output = {*target, 0};
	weir_tensor *value = kit_i64(1);

	cr_expect_eq(weir_monitored_call_feed(call, output, value, error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_monitored_call_fetch(call, output, NULL, error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(weir_monitored_call_limit(call, 0, error), WEIR_FAILED_PRECONDITION);
	cr_expect_null(weir_monitored_call_result(call, 0));
	weir_tensor_release(value);
	return WEIR_OK;
}

Test(monitored, hooks_may_not_run_or_close_nor_add_to_a_run_that_is_over)
{
	weir_node *target = NULL;
	const struct weir_monitored_hook hook = {WEIR_MONITORED_HOOK_INIT, .context = &target,
	                                         .before_run = call_everything, .after_run = add_too_late};
	struct job job;

	weir_error error;
	int64_t value;

	job_start_with_hook(&job, &hook);
	target = job.count.node;
	cr_expect_eq(job_run(&job, &value, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_str_eq(error.message, "hook \"0\": after_run: weir_monitored_call_feed: the run is over");
	cr_expect_eq(job_step(&job), 1);
	job_finish(&job);
}

static enum weir_status feed_nothing(void *context, weir_monitored_call *call, weir_error *error)
{
	const struct job *job = context;

	(void)error;
	/* The hook ignores that this fails. */
	(void)weir_monitored_call_feed(call, job->x, NULL, NULL);
	return WEIR_OK;
}

static enum weir_status fetch_from_nowhere(void *context, weir_monitored_call *call, weir_error *error)
{
	const weir_output nowhere = {NULL, 0};

	(void)context, (void)error;
	cr_expect_eq(weir_monitored_call_fetch(call, nowhere, NULL, NULL), WEIR_INVALID_ARGUMENT);
	return WEIR_OK;
}

Test(monitored, what_a_hook_could_not_add_ends_the_run)
{
	struct job job;
	const struct weir_monitored_hook hook = {WEIR_MONITORED_HOOK_INIT, .context = &job, .before_run = feed_nothing};
	const struct weir_monitored_hook nowhere = {WEIR_MONITORED_HOOK_INIT, .before_run = fetch_from_nowhere};
	weir_error error;
	int64_t value;

	job_start_with_hook(&job, &hook);
	cr_expect_eq(job_run(&job, &value, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "hook \"0\": before_run: weir_monitored_call_feed: the value for \"x\" is NULL");
	job_finish(&job);
	job_start_with_hook(&job, &nowhere);
	cr_expect_eq(job_run(&job, &value, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "hook \"0\": before_run: weir_monitored_call_fetch: the output is NULL");
	job_finish(&job);
}

/* -- checkpoints ------------------------------------------------------------------------------- */

Test(monitored, a_checkpoint_of_another_model_is_refused_with_its_tensors)
{
	weir_var *other = kit_var("other", kit_f32(1));
	struct weir_checkpoint_part parts[1];
	struct weir_monitored_options options;
	weir_error error = {WEIR_OK, ""};
	weir_monitored *monitored = NULL;
	struct job job;

	job_begin(&job);
	job_folder(&job);
	parts[0] = (struct weir_checkpoint_part){NULL, other};
	cr_assert_eq(weir_checkpoint_save(parts, 1, job.path, NULL, NULL), WEIR_OK);
	parts[0].var = job.step;
	options = job_options(&job);
	options.path = job.path;
	options.variables = parts;
	options.variable_count = 1;
	cr_expect_eq(weir_monitored_create(&options, &monitored, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, job.path), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "step"), "%s", error.message);
	cr_expect_eq(job.made, 1);
	cr_expect_eq(job.unmade, 1);
	cr_expect_eq(job_step(&job), 0);
	job_end(&job);
	weir_var_destroy(other, NULL);
}

Test(monitored, a_folder_that_is_not_there_is_found_at_once)
{
	struct weir_checkpoint_part part;
	struct weir_monitored_options options;
	weir_monitored *monitored = NULL;
	struct job job;

	job_begin(&job);
	part = (struct weir_checkpoint_part){NULL, job.step};
	options = job_options(&job);
	options.path = "/nowhere/at/all";
	options.variables = &part;
	options.variable_count = 1;
	cr_expect_eq(weir_monitored_create(&options, &monitored, NULL), WEIR_NOT_FOUND);
	cr_expect_eq(job.unmade, 1);
	job_end(&job);
}

static int64_t step_in_file(const struct job *job)
{
	weir_var *var = kit_var("step", kit_i64(-1));
	struct weir_checkpoint_part part = {NULL, var};
	weir_error error = {WEIR_OK, ""};
	weir_read read;
	int64_t value;

	cr_assert_eq(weir_checkpoint_restore(&part, 1, job->path, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	value = kit_i64_at(read.tensor, 0);
	weir_read_release(&read);
	weir_var_destroy(var, NULL);
	return value;
}

Test(monitored, each_part_of_a_checkpoint_keeps_its_name)
{
	weir_var *other = kit_var("other", kit_i64(7)), *read = kit_var("read", kit_i64(0));
	struct weir_checkpoint_part parts[2];
	struct weir_monitored_options options;
	weir_error error = {WEIR_OK, ""};
	weir_read now;
	struct job job;

	job_begin(&job);
	job_folder(&job);
	parts[0] = (struct weir_checkpoint_part){"a long name", job.step};
	parts[1] = (struct weir_checkpoint_part){"b", other};
	options = job_options(&job);
	options.path = job.path;
	options.variables = parts;
	options.variable_count = 2;
	job_create(&job, &options);
	parts[1].var = read;
	cr_assert_eq(weir_checkpoint_restore(parts, 2, job.path, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(weir_var_read(read, &now), WEIR_OK);
	cr_expect_eq(kit_i64_at(now.tensor, 0), 7);
	weir_read_release(&now);
	job_finish(&job);
	weir_var_destroy(read, NULL);
	weir_var_destroy(other, NULL);
}

/* Its message fills the room, and has no end. */
static enum weir_status unmake_at_second(void *context, weir_session *session, weir_error *error)
{
	struct job *job = context;

	if (job->unmade != 0)
		return job_unmake(context, session, error);
	job->unmade++;
	(void)memset(error->message, 'x', sizeof(error->message));
	return WEIR_ABORTED;
}

Test(monitored, a_message_of_unmake_without_an_end_is_cut)
{
	struct weir_monitored_options options;
	weir_error error = {WEIR_OK, ""};
	struct job job;

	job_begin(&job);
	options = job_options(&job);
	options.unmake = unmake_at_second;
	job_create(&job, &options);
	cr_expect_eq(job_close(&job, WEIR_OK, &error), WEIR_ABORTED);
	cr_expect_not_null(strstr(error.message, "\"job\": unmake: xxx"), "%s", error.message);
	job_finish(&job);
}

Test(monitored, checkpoints_come_by_runs_or_by_time)
{
	for (int by_time = 0; by_time < 2; by_time++) {
		struct weir_checkpoint_part part;
		struct weir_monitored_options options;
		struct job job;

		job_begin(&job);
		job_folder(&job);
		part = (struct weir_checkpoint_part){NULL, job.step};
		options = job_options(&job);
		options.path = job.path;
		options.variables = &part;
		options.variable_count = 1;
		options.save_every_runs = by_time ? 0 : 3;
		options.save_every_ns = by_time ? 1 : 0;
		job_create(&job, &options);
		cr_expect_eq(step_in_file(&job), 0, "the values at the start");
		for (int i = 1; i <= 7; i++) {
			cr_expect_eq(job_count(&job), i);
			cr_expect_eq(step_in_file(&job), by_time ? i : i / 3 * 3);
		}
		job_finish(&job);
	}
}

/* Memory whose so-manieth allocation waits. */
struct slow_memory {
	_Atomic(int) left;
	struct weiri_latch reached, go_on;
};

static void *allocate_slowly(void *context, size_t size, size_t alignment)
{
	struct slow_memory *slow = context;
	const weir_allocator *memory = weir_default_allocator();

	if (weiri_fetch_sub_relaxed(&slow->left, 1) == 1) {
		weiri_latch_set(&slow->reached);
		while (!weiri_latch_is_set(&slow->go_on))
			(void)sched_yield();
	}
	return memory->allocate(memory->context, size, alignment);
}

static void release_slow(void *context, void *memory, size_t size, size_t alignment)
{
	const weir_allocator *allocator = weir_default_allocator();

	(void)context;
	allocator->release(allocator->context, memory, size, alignment);
}

static int is_set(void *latch)
{
	return weiri_latch_is_set(latch);
}

static void *count_once(void *context)
{
	(void)job_count(context);
	return NULL;
}

/* The thread that writes has read the variables before the second run. */
Test(monitored, a_save_that_is_due_during_another_is_not_lost)
{
	enum { MANY = 1000000 };
	struct slow_memory slow = {.left = MANY};
	weir_allocator memory = {allocate_slowly, release_slow, &slow};
	struct weir_checkpoint_part part;
	struct weir_monitored_options options;
	pthread_t writer;
	struct job job;
	int in_a_save;

	weiri_latch_init(&slow.reached);
	weiri_latch_init(&slow.go_on);
	job_begin(&job);
	job_folder(&job);
	part = (struct weir_checkpoint_part){NULL, job.step};
	options = job_options(&job);
	options.path = job.path;
	options.variables = &part;
	options.variable_count = 1;
	options.save_every_runs = 1;
	options.allocator = &memory;
	job_create(&job, &options);
	cr_expect_eq(job_count(&job), 1);
	weiri_store_relaxed(&slow.left, MANY);
	cr_expect_eq(job_count(&job), 2);
	in_a_save = MANY - weiri_load_relaxed(&slow.left);
	cr_assert_neq(in_a_save, 0);
	weiri_store_relaxed(&slow.left, in_a_save); /* the last of the next run: for the path, when the bytes are there */
	cr_assert_eq(pthread_create(&writer, NULL, count_once, &job), 0);
	kit_wait_for(is_set, &slow.reached, "the writer");
	cr_expect_eq(job_count(&job), 4);
	cr_expect_eq(step_in_file(&job), 2);
	weiri_latch_set(&slow.go_on);
	cr_assert_eq(pthread_join(writer, NULL), 0);
	cr_expect_eq(step_in_file(&job), 4);
	job_finish(&job);
}

/* -- runners ----------------------------------------------------------------------------------- */

/* The first thing to look for when a job hangs. */
Test(monitored, a_queue_that_is_waited_for_and_has_no_runner_is_named)
{
	weir_tensor_queue *queue = kit_queue("batches", 2, WEIR_I64, &weir_shape_scalar);
	weir_error error = {WEIR_OK, ""};
	weir_tensor *result = NULL;
	weir_output taken;
	struct job job;

	job_start(&job);
	cr_assert_eq(weir_op_dequeue(job.graph, "take", queue, &taken, 1, NULL, NULL), WEIR_OK);
	/* On a busy machine a short deadline may pass before the run begins. */
	for (uint64_t length_ns = 2000000; strstr(error.message, "had waited") == NULL; length_ns *= 2) {
		cr_assert(length_ns < KIT_PATIENCE_NS, "%s", error.message);
		cr_assert_eq(weir_monitored_run(job.monitored, NULL, 0, &taken, 1, &result, NULL, 0,
		                                weir_deadline_in(length_ns), NULL, NULL, &error),
		             WEIR_DEADLINE_EXCEEDED);
	}
	cr_expect_not_null(strstr(error.message, "dequeue \"take\" of queue \"batches\" had waited"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "no queue runner and no announced thread fills it"), "%s", error.message);
	job_finish(&job);
	kit_queue_end(queue);
}

/* A queue that a runner fills with what a kernel makes, and from which the graph takes. */
struct filled {
	weir_tensor_queue *queue;
	weir_node *put;
	weir_output taken;
	struct weir_monitored_runner runner;
};

/* Returns the options with which the job has the runner. */
static struct weir_monitored_options fill_by(struct job *job, struct filled *filled, weir_kernel_fn *kernel,
                                             void *context)
{
	struct weir_output_type type = {WEIR_I64, &weir_shape_scalar};
	struct weir_monitored_options options = job_options(job);
	weir_output number;

	filled->queue = kit_queue("numbers", 10, WEIR_I64, &weir_shape_scalar);
	cr_assert_eq(weir_op_kernel(job->graph, "read", KIT_KERNEL(kernel), context, NULL, 0, &type, 1, NULL, 0, &number,
	                            NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_op_enqueue(job->graph, "put", filled->queue, &number, 1, &filled->put, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue(job->graph, "take", filled->queue, &filled->taken, 1, NULL, NULL), WEIR_OK);
	filled->runner = (struct weir_monitored_runner){&filled->put, 1, 0, filled->queue};
	options.runners = &filled->runner;
	options.runner_count = 1;
	return options;
}

static enum weir_status fail_at_number(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	int64_t number = weiri_fetch_add_relaxed((_Atomic(int) *)context, 1);

	if (number >= 2)
		return kit_fail(error, WEIR_DATA_LOSS, "number 2 is damaged");
	return weir_tensor_scalar_i64(number, &call->outputs[0]);
}

/* The consumer learns it from its queue, and the close returns it. */
Test(monitored, the_error_of_a_runner_ends_the_consumer_and_comes_out_of_the_close)
{
	enum weir_status status = WEIR_OK;
	struct weir_monitored_options options;
	weir_error error = {WEIR_OK, ""};
	_Atomic(int) next = 0;
	struct filled filled;
	struct job job;

	job_begin(&job);
	options = fill_by(&job, &filled, fail_at_number, &next);
	job_create(&job, &options);
	while (status == WEIR_OK) {
		weir_tensor *result = NULL;

		status = weir_monitored_run(job.monitored, NULL, 0, &filled.taken, 1, &result, NULL, 0,
		                            weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL, &error);
		weir_tensor_release(result);
	}
	cr_expect_eq(status, WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, "number 2 is damaged"), "%s", error.message);
	cr_expect(weir_monitored_should_stop(job.monitored));
	cr_expect_eq(job_close(&job, status, &error), WEIR_DATA_LOSS);
	cr_expect_not_null(strstr(error.message, "number 2 is damaged"), "%s", error.message);
	job_end(&job);
	kit_queue_end(filled.queue);
}

static enum weir_status be_unavailable(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call;
	return kit_fail(error, WEIR_UNAVAILABLE, "the reader is away");
}

/* The stop leaves the queue to the next life, which never comes. */
Test(monitored, a_recovery_that_fails_leaves_no_queue_open_behind_the_close)
{
	struct weir_monitored_options options;
	weir_error error = {WEIR_OK, ""};
	weir_tensor *result = NULL;
	struct filled filled;
	struct job job;

	job_begin(&job);
	options = fill_by(&job, &filled, be_unavailable, NULL);
	job.fail_at[0] = 2;
	job.failure = WEIR_DATA_LOSS;
	job_create(&job, &options);
	cr_expect_eq(weir_monitored_run(job.monitored, NULL, 0, &filled.taken, 1, &result, NULL, 0,
	                                weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL, &error),
	             WEIR_DATA_LOSS, "%s", error.message);
	(void)job_close(&job, WEIR_OK, &error);
	cr_expect(weir_tensor_queue_closed(filled.queue));
	job_end(&job);
	kit_queue_end(filled.queue);
}

Test(monitored, a_runner_of_another_graph_is_refused_and_leaves_nothing)
{
	weir_tensor_queue *queue = kit_queue("q", 2, WEIR_I64, &weir_shape_scalar);
	weir_graph *other = kit_graph();
	struct weir_monitored_options options;
	struct weir_monitored_runner runner;
	weir_monitored *monitored = NULL;
	weir_output one = kit_constant(other, kit_i64(1));
	weir_error error;
	weir_node *put;
	struct job job;

	cr_assert_eq(weir_op_enqueue(other, "put", queue, &one, 1, &put, NULL), WEIR_OK);
	job_begin(&job);
	runner = (struct weir_monitored_runner){&put, 1, 1, queue};
	options = job_options(&job);
	options.runners = &runner;
	options.runner_count = 1;
	cr_expect_eq(weir_monitored_create(&options, &monitored, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "node \"put\" is of another graph"), "%s", error.message);
	cr_expect_eq(job.unmade, 1);
	job_end(&job);
	cr_assert_eq(weir_graph_destroy(other, NULL), WEIR_OK);
	kit_queue_end(queue);
}

/* -- threads ----------------------------------------------------------------------------------- */

static enum weir_status until_allowed(weir_coordinator *coordinator, void *context, weir_error *error)
{
	_Atomic(int) *may_end = context;

	(void)coordinator;
	(void)error;
	while (!weiri_load_acquire(may_end))
		(void)sched_yield();
	return WEIR_OK;
}

Test(monitored, threads_that_outlast_the_grace_time_are_named_and_the_close_is_repeated)
{
	const struct weir_monitored_hook *hooks[1];
	struct weir_monitored_options options;
	struct counting counting;
	_Atomic(int) may_end = 0;
	weir_error error;
	struct job job;

	counting_init(&counting, "gets the coordinator", NULL);
	hooks[0] = &counting.hook;
	job_begin(&job);
	options = job_options(&job);
	options.hooks = hooks;
	options.hook_count = 1;
	options.grace_ns = 1;
	job_create(&job, &options);
	cr_assert_eq(weir_coordinator_start_thread(counting.coordinator, "stubborn", until_allowed, &may_end, NULL),
	             WEIR_OK);
	cr_expect_eq(job_close(&job, WEIR_OK, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "stubborn"), "%s", error.message);
	cr_expect_eq(weir_monitored_destroy(job.monitored, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "stubborn"), "%s", error.message);
	cr_expect_eq(job.unmade, 0);
	weiri_store_release(&may_end, 1);
	while (job_close(&job, WEIR_INTERNAL, NULL) == WEIR_DEADLINE_EXCEEDED)
		(void)sched_yield();
	cr_expect_eq(job_close(&job, WEIR_INTERNAL, NULL), WEIR_OK, "the first close said how the loop ended");
	expect_calls(&counting, 1, 1, 0, 0, 1);
	job_end(&job);
}

/* -- memory ------------------------------------------------------------------------------------ */

/* A hook that adds a feed and nine fetches, so that all arrays grow. */
static enum weir_status add_much(void *context, weir_monitored_call *call, weir_error *error)
{
	struct job *job = context;
	weir_tensor *value = kit_i64(2);
	enum weir_status status = weir_monitored_call_feed(call, job->x, value, error);

	for (int i = 0; status == WEIR_OK && i < 9; i++)
		status = weir_monitored_call_fetch(call, job->doubled, NULL, error);
	weir_tensor_release(value);
	return status;
}

/* Creates, runs and closes; the second time the checkpoint of the first is restored. */
static enum weir_status use_once(struct job *job, const struct weir_monitored_options *options)
{
	enum weir_status status = weir_monitored_create(options, &job->monitored, NULL);
	int64_t value;

	if (status != WEIR_OK)
		return status;
	status = job_run(job, &value, NULL);
	if (status == WEIR_OK)
		status = job_close(job, WEIR_OK, NULL);
	cr_assert_eq(weir_monitored_destroy(job->monitored, NULL), WEIR_OK);
	return status;
}

static enum weir_status use_all(const weir_allocator *allocator, void *context)
{
	struct job *job = context;
	const struct weir_monitored_hook hook = {WEIR_MONITORED_HOOK_INIT, .context = job, .before_run = add_much};
	const struct weir_monitored_hook *hooks[1] = {&hook};
	struct weir_monitored_options options = job_options(job);
	struct weir_checkpoint_part part = {"step", job->step};
	weir_tensor *zero = kit_i64(0);
	enum weir_status status;

	(void)unlink(job->path);
	job->made = job->unmade = 0;
	options.hooks = hooks;
	options.hook_count = 1;
	options.variables = &part;
	options.variable_count = 1;
	options.path = job->path;
	options.save_every_runs = 1;
	options.allocator = allocator;
	status = use_once(job, &options);
	if (status == WEIR_OK)
		status = use_once(job, &options);
	cr_expect_eq(job->unmade, job->made);
	/* The variable has a restored tensor, which is of the allocator. */
	cr_assert_eq(weir_var_assign(job->step, zero, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(zero);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(KIT_PATIENCE_NS)), WEIR_OK);
	return status;
}

Test(monitored, each_allocation_that_fails_leaks_nothing)
{
	struct job job;

	job_begin(&job);
	job_folder(&job);
	cr_expect_gt(fail_each_allocation_in_time(use_all, &job), 10);
	job.monitored = NULL;
	job_end(&job);
}
