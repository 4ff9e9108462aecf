/*
 * test_cancellation.c - threads that are cancelled, or that end in a callback. No call of Weir is a
 * cancellation point. Whatever a thread was doing when it ended, the next thread can use its
 * record, and writers go on.
 */
#include <weir/flow/checkpoint.h>
#include <weir/coordinator.h>
#include <weir/announce.h>
#include <weir/dump.h>
#include <weir/pool.h>
#include <weir/watch.h>

#include "queue_kit.h"

#include <poll.h>

#include "checkpoint_kit.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

enum { CROWD = 10, LARGE = 1 << 20 };

/* What the thread allocates from here on may leak when the thread ends; see docs/embedding.md. */
static void leave_things_behind(void)
{
#if defined(__SANITIZE_ADDRESS__)
	__lsan_disable();
#endif
}

static void release_large(void *context, void *data)
{
	(void)context;
	free(data);
}

/* A value so large that writers soon have to wait for memory, if replaced values are not freed. */
static weir_tensor *large_value(void)
{
	weir_shape shape = {.rank = 1, .dims = {LARGE}};
	weir_tensor *tensor = NULL;
	void *data = aligned_alloc(64, LARGE);

	cr_assert_not_null(data);
	memset(data, 0, LARGE);
	cr_assert_eq(weir_tensor_wrap(WEIR_U8, &shape, data, release_large, NULL, NULL, &tensor), WEIR_OK);
	return tensor;
}

static weir_var *large_variable(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_U8, .name = "large"};
	weir_tensor *first = large_value();
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(first);
	return var;
}

static void assign_large(weir_var *var)
{
	weir_tensor *value = large_value();
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_var_assign(var, value, in_good_time(), NULL, &error), WEIR_OK, "%s", error.message);
	weir_tensor_release(value);
}

static void *read_once(void *var)
{
	weir_read read;

	if (weir_var_read(var, &read) == WEIR_OK)
		weir_read_release(&read);
	return NULL;
}

/* New threads adopt the records and read, while this thread writes several times the budget. */
static void expect_many_writes(void)
{
	uint64_t budget = weir_reclaim_budget();
	weir_var *var = large_variable();
	pthread_t readers[CROWD];

	weir_reclaim_set_budget(8 * LARGE);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < CROWD; i++)
			cr_assert_eq(pthread_create(&readers[i], NULL, read_once, var), 0);
		for (int i = 0; i < 10; i++)
			assign_large(var);
		for (int i = 0; i < CROWD; i++)
			cr_assert_eq(pthread_join(readers[i], NULL), 0);
	}
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	weir_reclaim_set_budget(budget);
}

static void expect_writers_go_on(void)
{
	expect_many_writes();
	cr_expect_eq(weir_reclaim_flush(in_good_time()), WEIR_OK, "retired bytes stay although no thread pins them");
}

/* -- calls of a thread that ends at its next cancellation point -------------------------------- */

typedef void call(void *context);

struct doomed {
	call *run;
	void *context;
	_Atomic(uint32_t) returned;
	pthread_t thread;
};

static void *call_when_cancelled(void *context)
{
	struct doomed *doomed = context;

	(void)pthread_cancel(pthread_self());
	doomed->run(doomed->context);
	/* [relaxed] the join publishes it */
	weiri_store_relaxed(&doomed->returned, 1u);
	pthread_testcancel();
	return NULL;
}

static void start_doomed(struct doomed *doomed, call *run, void *context)
{
	*doomed = (struct doomed){.run = run, .context = context};
	cr_assert_eq(pthread_create(&doomed->thread, NULL, call_when_cancelled, doomed), 0);
}

static void expect_returned_and_cancelled(struct doomed *doomed)
{
	void *result = NULL;

	cr_assert_eq(pthread_join(doomed->thread, &result), 0);
	cr_expect_eq(weiri_load_relaxed(&doomed->returned), 1, "the thread was cancelled inside the call");
	cr_expect(result == PTHREAD_CANCELED, "the thread's own cancellation point ends it");
}

static void expect_no_point_in(call *run, void *context)
{
	struct doomed doomed;

	start_doomed(&doomed, run, context);
	expect_returned_and_cancelled(&doomed);
}

static int is_readable(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, 0) == 1;
}

static void take(void *watch)
{
	weir_read read;

	if (weir_watch_try_take(watch, &read) == WEIR_OK)
		weir_read_release(&read);
}

Test(cancellation, ten_threads_cancelled_as_they_take_from_a_watch_stop_no_writer)
{
	weir_var *var = variable(1);
	weir_watch *watches[CROWD];
	struct doomed doomed[CROWD];

	for (int i = 0; i < CROWD; i++)
		cr_assert_eq(weir_watch_create(var, 0, &watches[i], NULL), WEIR_OK);
	for (int i = 0; i < CROWD; i++)
		start_doomed(&doomed[i], take, watches[i]);
	for (int i = 0; i < CROWD; i++)
		expect_returned_and_cancelled(&doomed[i]);
	for (int i = 0; i < CROWD; i++)
		cr_expect_not(is_readable(weir_watch_fd(watches[i])), "the newest version was read");
	expect_writers_go_on();
	for (int i = 0; i < CROWD; i++)
		weir_watch_destroy(watches[i], NULL);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

/* Begins a watch, assigns, and ends the watch. */
static void watch_and_assign(void *var)
{
	weir_watch *watch = NULL;
	weir_read read;

	if (weir_watch_create(var, 0, &watch, NULL) != WEIR_OK)
		return;
	if (weir_watch_try_take(watch, &read) == WEIR_OK)
		weir_read_release(&read);
	assign(var, 2);
	weir_watch_destroy(watch, NULL);
}

Test(cancellation, no_call_on_a_watch_is_a_point)
{
	weir_var *var = variable(1);

	expect_no_point_in(watch_and_assign, var);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

static void ask_for_readable(void *queue)
{
	int fd;

	(void)weir_queue_readable_fd(queue, &fd, NULL);
}

static void ask_for_writable(void *queue)
{
	int fd;

	(void)weir_queue_writable_fd(queue, &fd, NULL);
}

static void put_one(void *queue)
{
	(void)weir_queue_try_enqueue(queue, item(1));
}

static void get_one(void *queue)
{
	void *got;

	(void)weir_queue_try_dequeue(queue, &got);
}

static void close_it(void *queue)
{
	(void)weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL);
}

static void destroy_it(void *queue)
{
	(void)weir_queue_destroy(queue, NULL);
}

Test(cancellation, no_call_on_a_queue_with_descriptors_is_a_point)
{
	static call *const calls[] = {ask_for_readable, ask_for_writable, put_one, get_one, put_one, close_it, destroy_it};
	weir_queue *queue = fifo(1);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		expect_no_point_in(calls[i], queue);
	expect_writers_go_on();
}

/* -- calls that block are not cancellation points either --------------------------------------- */

static void wait_for_an_item(void *queue)
{
	void *got;

	(void)weir_queue_dequeue(queue, &got, weir_deadline_in(2000000), NULL, NULL);
}

static void wait_for_a_version(void *var)
{
	weir_read read;

	(void)weir_var_wait(var, UINT64_MAX, weir_deadline_in(2000000), NULL, &read, NULL);
}

Test(cancellation, who_waits_until_a_deadline_is_not_cancelled_in_it)
{
	weir_queue *queue = fifo(1);
	weir_var *var = variable(1);

	expect_no_point_in(wait_for_an_item, queue);
	expect_no_point_in(wait_for_a_version, var);
	destroy(queue);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

static void use_a_pool(void *context)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = 2};
	weir_pool *pool = NULL;

	(void)context;
	if (weir_pool_create(&options, &pool, NULL) == WEIR_OK)
		(void)weir_pool_destroy(pool, NULL);
}

static enum weir_status do_nothing(weir_coordinator *coordinator, void *context, weir_error *error)
{
	(void)context, (void)coordinator, (void)error;
	return WEIR_OK;
}

static void use_a_coordinator(void *context)
{
	weir_coordinator *coordinator = NULL;

	(void)context;
	if (weir_coordinator_create(NULL, &coordinator, NULL) != WEIR_OK)
		return;
	(void)weir_coordinator_start_thread(coordinator, "one", do_nothing, NULL, NULL);
	(void)weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, NULL);
	(void)weir_coordinator_destroy(coordinator, NULL);
}

Test(cancellation, who_joins_the_threads_of_a_pool_or_coordinator_is_not_cancelled_in_it)
{
	expect_no_point_in(use_a_pool, NULL);
	expect_no_point_in(use_a_coordinator, NULL);
}

/* -- files ------------------------------------------------------------------------------------- */

struct files {
	struct folder folder;
	weir_var *vars[VARS];
	struct weir_checkpoint_part parts[VARS];
	int fd;
	enum weir_status status;
	weir_error error;
};

static void save(void *context)
{
	struct files *files = context;

	files->status = weir_checkpoint_save(files->parts, VARS, files->folder.file, NULL, &files->error);
}

static void save_nowhere(void *context)
{
	struct files *files = context;

	files->status = weir_checkpoint_save(files->parts, VARS, "/nonexistent/folder/file", NULL, &files->error);
}

static void restore(void *context)
{
	struct files *files = context;

	files->status =
		weir_checkpoint_restore(files->parts, VARS, files->folder.file, NULL, WEIR_NO_DEADLINE, &files->error);
}

static void set_up_files(struct files *files)
{
	static const char *const names[VARS] = {"0", "1", "2", "3", "4"};

	*files = (struct files){.folder = make_folder()};
	make_numbered(files->vars, 7);
	for (size_t i = 0; i < VARS; i++)
		files->parts[i] = (struct weir_checkpoint_part){names[i], files->vars[i]};
}

Test(cancellation, no_call_on_a_checkpoint_is_a_point)
{
	struct files files;

	set_up_files(&files);
	expect_no_point_in(save, &files);
	cr_expect_eq(files.status, WEIR_OK, "%s", files.error.message);
	cr_expect_eq(number_in_file(&files.folder), 7);
	expect_no_point_in(restore, &files);
	cr_expect_eq(files.status, WEIR_OK, "%s", files.error.message);
	expect_no_point_in(save_nowhere, &files);
	cr_expect_eq(files.status, WEIR_NOT_FOUND);
	cr_expect_not_null(strstr(files.error.message, "No such file or directory"), "%s", files.error.message);
	remove_folder(&files.folder);
	destroy_all(files.vars);
	expect_writers_go_on();
	expect_nothing_left();
}

static void dump_to(void *context)
{
	struct files *files = context;

	files->status = weir_dump(files->fd);
}

Test(cancellation, a_dump_is_no_point)
{
	struct files files = {.fd = open("/dev/null", O_WRONLY | O_CLOEXEC)};
	weir_queue *queue = fifo(1);
	weir_queue_announcement *announcement = NULL;

	cr_assert_geq(files.fd, 0);
	/* The announcement makes the dump read the name of a thread. */
	cr_assert_eq(weir_queue_announce(queue, WEIR_QUEUE_PRODUCER, "a test", &announcement, NULL), WEIR_OK);
	expect_no_point_in(dump_to, &files);
	cr_expect_eq(files.status, WEIR_OK);
	weir_queue_withdraw(announcement);
	destroy(queue);
	(void)close(files.fd);
	expect_writers_go_on();
}

Test(cancellation, a_dump_into_a_pipe_that_is_full_is_no_point)
{
	struct files files = {.status = WEIR_OK};
	char fill[4096] = {0};
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(ends[1], fill, sizeof(fill)) > 0)
		;
	files.fd = ends[1];
	expect_no_point_in(dump_to, &files);
	cr_expect_eq(files.status, WEIR_DEADLINE_EXCEEDED, "the call has waited for room");
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* -- threads that end inside a call, in a function of the user ------------------------------ */

/* A record that waits for its next owner has no trace of what its last owner was doing. */
static void expect_records_clean(void)
{
	const struct weiri_record *record = weiri_load_acquire(&weiri_records);

	for (; record != NULL; record = record->next) {
		if (weiri_record_thread(record) != 0)
			continue;
		cr_expect_eq(weiri_load_relaxed(&record->lo), 0, "a section is left");
		cr_expect_eq(weiri_load_relaxed(&record->picking), 0, "a chosen slot is left");
		cr_expect_eq(weiri_load_relaxed(&record->waits), 0, "a wait for memory is left");
		cr_expect_eq(weiri_load_relaxed(&record->collecting) % 2, 0, "a collection is left");
		cr_expect_null(weiri_load_relaxed(&record->own->rest), "a collection left objects");
		cr_expect_null(weiri_load_relaxed(&record->own->kept), "a collection left objects");
		cr_expect_eq(weiri_load_relaxed(&record->in_hand), 0, "a collection left objects");
	}
}

static void run_to_its_end(void *(*body)(void *), void *context)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, body, context), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

static void *end_in_a_section(void *context)
{
	struct weiri_record *record = weiri_record_get();

	(void)context;
	(void)weiri_section_enter(record);
	weiri_store_relaxed(&record->picking, 1u);
	pthread_exit(NULL);
}

Test(cancellation, a_section_ends_with_its_thread)
{
	for (int i = 0; i < CROWD; i++)
		run_to_its_end(end_in_a_section, NULL);
	expect_records_clean();
	expect_writers_go_on();
}

static _Atomic(int) ends_in_release;

static void end_in_release(void *context, void *data)
{
	free(data);
	if (context != NULL && weiri_exchange_relaxed(&ends_in_release, 0))
		pthread_exit(NULL);
}

static weir_tensor *fatal_value(void)
{
	weir_shape shape = {.rank = 1, .dims = {LARGE}};
	weir_tensor *tensor = NULL;
	void *data = aligned_alloc(64, LARGE);

	if (data != NULL)
		(void)weir_tensor_wrap(WEIR_U8, &shape, data, end_in_release, &ends_in_release, NULL, &tensor);
	return tensor;
}

/*
 * Each assign retires versions, which are collected at once. The first release ends the thread,
 * while it has other objects to free.
 */
static void *assign_until_the_end(void *var)
{
	leave_things_behind();
	while (var != NULL) {
		weir_tensor *value = fatal_value();

		(void)weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL);
		weir_tensor_release(value);
	}
	return NULL;
}

static void expect_nothing_retired(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK, "a collection is not over");
	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	cr_expect_eq(stats.retired_bytes, 0, "retired bytes are left");
}

static void end_in_collections(uint64_t limit)
{
	uint64_t budget = weir_reclaim_budget();
	weir_var *var = large_variable();

	weir_reclaim_set_budget(limit);
	for (int i = 0; i < CROWD; i++) {
		weiri_store_relaxed(&ends_in_release, 1);
		run_to_its_end(assign_until_the_end, var);
	}
	weir_reclaim_set_budget(budget);
	expect_records_clean();
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_retired();
	expect_writers_go_on();
}

Test(cancellation, a_collection_ends_with_its_thread_and_what_it_had_in_hand_is_freed_by_others)
{
	end_in_collections(8 * LARGE);
}

Test(cancellation, a_wait_for_memory_ends_with_its_thread)
{
	end_in_collections(1);
}

struct handle {
	weir_var *var;
	weir_read read;
};

static void *read_and_end(void *context)
{
	struct handle *handle = context;

	(void)weir_var_read(handle->var, &handle->read);
	pthread_exit(NULL);
}

Test(cancellation, a_handle_outlives_its_thread_and_is_given_back_by_another)
{
	struct handle handle = {.var = variable(1)};

	run_to_its_end(read_and_end, &handle);
	assign(handle.var, 2);
	collect_now();
	cr_expect_eq(value_of(&handle.read), 1);
	weir_read_release(&handle.read);
	cr_assert_eq(weir_var_destroy(handle.var, NULL), WEIR_OK);
	expect_nothing_left();
}

static enum weir_status end_in_update(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)context, (void)current, (void)next, (void)error;
	pthread_exit(NULL);
}

static void *update_and_end(void *var)
{
	(void)weir_var_update(var, end_in_update, NULL, WEIR_NO_DEADLINE, NULL, NULL);
	return NULL;
}

Test(cancellation, an_update_whose_thread_ends_in_it_does_not_happen_and_holds_up_nobody)
{
	weir_var *var = variable(1);

	for (int i = 0; i < CROWD; i++)
		run_to_its_end(update_and_end, var);
	cr_expect_eq(value_in(var), 1);
	assign(var, 2);
	cr_expect_eq(value_in(var), 2);
	expect_records_clean();
	expect_many_writes();
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	/* The handle that each thread was given stays, because the thread may have passed it on. */
	cr_expect_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
}
