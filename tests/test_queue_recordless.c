/*
 * test_queue_recordless.c - threads that have no record and no memory for one: what they can still
 * do for waiting operations, what a read section tells them, and how a thread avoids that state.
 *
 * If the process has jemalloc, the default allocator uses its sized calls. Here this file defines
 * them, so that the allocations of one thread can fail.
 */
#include "queue_kit.h"

#include <poll.h>
#include <stdlib.h>
#include <weir/flow/keyed_join.h>
#include <weir/flow/map_staging.h>
#include <weir/flow/staging.h>
#include <weir/read_section.h>
#include <weir/value.h>
#include <weir/watch.h>

#include "base/thread.h"
#include "failing_allocator.h"

void *mallocx(size_t size, int flags);
void sdallocx(void *memory, size_t size, int flags);

static _Thread_local int without_memory;

/* The low bits of flags are the binary logarithm of the alignment. */
void *mallocx(size_t size, int flags)
{
	size_t alignment = (size_t)1 << (flags & 63);
	void *memory = NULL;

	if (alignment < sizeof(void *))
		alignment = sizeof(void *);
	return !without_memory && posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

void sdallocx(void *memory, size_t size, int flags)
{
	(void)size, (void)flags;
	free(memory);
}

/*
 * If all tests share a process, ended threads leave records that a new thread would adopt. So this
 * thread takes these records.
 */
static void occupy_idle_records(void)
{
	struct weiri_record *record = weiri_load_acquire(&weiri_records);

	for (; record != NULL; record = record->next) {
		uint64_t owner = weiri_load_relaxed(&record->owner);

		/* This thread goes on, so no other thread can adopt the record. */
		if ((uint32_t)owner == 0)
			(void)weiri_cas_acquire(&record->owner, &owner, owner | weiri_record_my_thread());
	}
}

static void *prepare_without_memory(void *status)
{
	without_memory = 1;
	*(enum weir_status *)status = weir_reclaim_prepare_thread();
	without_memory = 0;
	return NULL;
}

static void *read_without_memory(void *context)
{
	weir_var *var = context;
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	without_memory = 1;
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(weir_read_section_begin(&section), WEIR_RESOURCE_EXHAUSTED);
		cr_expect_null(weir_read_section_peek(&section, var));
		cr_expect_eq(weir_read_section_end(&section), WEIR_FAILED_PRECONDITION);
	}
	without_memory = 0;
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(weir_read_section_begin(&section), WEIR_OK);
		cr_expect_not_null(weir_read_section_peek(&section, var));
		cr_expect_eq(weir_read_section_end(&section), WEIR_OK);
	}
	return NULL;
}

Test(queue_recordless, a_section_without_memory_for_the_record_shows_nothing)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(uint64_t)};
	uint64_t value = 1;
	weir_var *var = NULL;
	pthread_t thread;

	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(value), &options, &var, NULL), WEIR_OK);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, read_without_memory, var), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(queue_recordless, a_thread_that_cannot_be_prepared_is_told_so)
{
	enum weir_status status = WEIR_OK;
	pthread_t thread;

	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, prepare_without_memory, &status), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(status, WEIR_RESOURCE_EXHAUSTED);
}

struct prepared {
	weir_var *var;
	enum weir_status first, again, read;
	int kept_its_record;
};

static void *prepare_and_read(void *argument)
{
	struct prepared *prepared = argument;
	struct weiri_record *mine;
	weir_read read;

	prepared->first = weir_reclaim_prepare_thread();
	mine = weiri_record_mine;
	without_memory = 1;
	prepared->again = weir_reclaim_prepare_thread();
	prepared->read = weir_var_read(prepared->var, &read);
	prepared->kept_its_record = mine != NULL && weiri_record_mine == mine;
	if (prepared->read == WEIR_OK)
		weir_read_release(&read);
	without_memory = 0;
	return NULL;
}

Test(queue_recordless, a_thread_that_was_prepared_needs_no_memory)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};
	struct prepared prepared = {.first = WEIR_INTERNAL};
	weir_tensor *value;
	pthread_t thread;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){.rank = 0}, &(int64_t){1}, NULL, &value), WEIR_OK);
	cr_assert_eq(weir_var_create(NULL, &options, &prepared.var, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign(prepared.var, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, prepare_and_read, &prepared), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(prepared.first, WEIR_OK);
	cr_expect_eq(prepared.again, WEIR_OK);
	cr_expect_eq(prepared.read, WEIR_OK);
	cr_expect(prepared.kept_its_record);
	weir_tensor_release(value);
	weir_var_destroy(prepared.var, NULL);
}

struct outsider {
	weir_cancel *token;
	weir_pending *op;
	weir_queue *queue;
	weir_watch *watch;
	int had_record;
	enum weir_status status;
};

static void *fire_from_outside(void *argument)
{
	struct outsider *outsider = argument;
	weir_error cause = {WEIR_ABORTED, "from outside"};

	without_memory = 1;
	(void)weir_cancel_fire(outsider->token, &cause);
	outsider->had_record = weiri_record_mine != NULL;
	return NULL;
}

Test(queue_recordless, whoever_fires_a_token_without_memory_ends_a_call_that_waits)
{
	weir_queue *queue = fifo(2);
	struct outsider outsider = {.queue = queue};
	struct call call = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};
	pthread_t thread;

	cr_assert_eq(weir_cancel_create(NULL, &outsider.token, NULL), WEIR_OK);
	call.token = outsider.token;
	put(queue, 1, 1);
	begin_waiting_call(&call, 1);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, fire_from_outside, &outsider), 0);
	cr_expect_eq(end_call(&call), WEIR_CANCELLED);
	cr_expect_not_null(strstr(call.error.message, "from outside"), "%s", call.error.message);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_not(outsider.had_record, "the test tests nothing");
	expect_next(queue, 1, 1);
	weir_cancel_release(outsider.token);
	destroy(queue);
}

static void note(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items, (void)done;
	((struct outsider *)context)->status = status;
}

static void *cancel_from_outside(void *argument)
{
	struct outsider *outsider = argument;
	weir_error cause = {WEIR_ABORTED, "from outside"};

	without_memory = 1;
	weir_pending_cancel(outsider->op, &cause);
	outsider->had_record = weiri_record_mine != NULL;
	return NULL;
}

Test(queue_recordless, an_operation_that_is_cancelled_without_memory_takes_nothing_and_ends_at_the_next_call)
{
	weir_queue *queue = fifo(2);
	struct outsider outsider = {.queue = queue, .status = WEIR_INTERNAL};
	void *items[1];
	pthread_t thread;

	cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, note, &outsider, &outsider.op, NULL),
	             WEIR_OK);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, cancel_from_outside, &outsider), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_not(outsider.had_record, "the test tests nothing");
	cr_expect_eq(outsider.status, WEIR_INTERNAL);
	put(queue, 1, 1);
	cr_expect_eq(outsider.status, WEIR_CANCELLED);
	cr_expect_not_null(strstr(outsider.op->error.message, "from outside"));
	weir_pending_release(outsider.op);
	expect_next(queue, 1, 1);
	destroy(queue);
}

static void *destroy_watch_from_outside(void *argument)
{
	struct outsider *outsider = argument;

	without_memory = 1;
	outsider->status = weir_watch_destroy(outsider->watch, NULL);
	outsider->had_record = weiri_record_mine != NULL;
	return NULL;
}

/* Writers pass a lit watch by, but not one that is to end. */
Test(queue_recordless, a_lit_watch_that_is_destroyed_without_memory_ends_at_the_next_write)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(int64_t)};
	struct outsider outsider = {.status = WEIR_INTERNAL};
	int64_t value = 1;
	weir_var *var;
	pthread_t thread;
	int fd;

	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(value), &options, &var, NULL), WEIR_OK);
	cr_assert_eq(weir_watch_create(var, 0, &outsider.watch, NULL), WEIR_OK);
	fd = weir_watch_fd(outsider.watch);
	cr_assert_eq(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 0), 1, "it is lit");
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, destroy_watch_from_outside, &outsider), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_not(outsider.had_record, "the test tests nothing");
	cr_expect_eq(outsider.status, WEIR_OK);
	cr_expect_eq(weir_var_assign_value(var, WEIR_VALUE_OF(value), WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_eq(fcntl(fd, F_GETFD), -1, "its descriptor is open");
	cr_expect_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

static void *alarm_from_outside(void *argument)
{
	struct outsider *outsider = argument;

	without_memory = 1;
	weiri_pending_cancel(outsider->op, WEIRI_PENDING_FOR_TOKEN);
	outsider->had_record = weiri_record_mine != NULL;
	return NULL;
}

Test(queue_recordless, an_alarm_without_memory_that_comes_after_the_end_leaves_the_end_as_it_is)
{
	weir_queue *queue = fifo(2);
	struct outsider outsider = {.queue = queue};
	void *items[1];
	pthread_t thread;

	put(queue, 1, 1);
	outsider.op = &weiri_queue_operation_create(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, 0, NULL, NULL)->pending;
	cr_assert_not_null(outsider.op);
	outsider.op->is_blocking = 1;
	weiri_pending_start(weiri_record_get(), outsider.op);
	cr_assert_eq(weiri_load_acquire(&outsider.op->finished), WEIRI_PENDING_FINISHED);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, alarm_from_outside, &outsider), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_not(outsider.had_record, "the test tests nothing");
	cr_expect_eq(weiri_load_acquire(&outsider.op->finished), WEIRI_PENDING_FINISHED);
	weiri_pending_release(outsider.op);
	destroy(queue);
}

/* Counts in had_record the calls that did not return WEIR_RESOURCE_EXHAUSTED. */
static void *use_from_outside(void *argument)
{
	struct outsider *outsider = argument;
	weir_queue *queue = outsider->queue;
	void *items[2] = {item(7), item(8)};
	weir_pending *op = NULL;
	size_t done = 0;
	enum weir_status statuses[] = {
		(without_memory = 1, weir_queue_try_enqueue(queue, item(2))),
		weir_queue_try_dequeue(queue, items),
		weir_queue_enqueue(queue, item(2), in_good_time(), NULL, NULL),
		weir_queue_dequeue(queue, items, in_good_time(), NULL, NULL),
		weir_queue_enqueue_many(queue, items, 2, in_good_time(), NULL, &done, NULL),
		weir_queue_dequeue_many(queue, items, 2, in_good_time(), NULL, NULL),
		weir_queue_dequeue_up_to(queue, items, 2, in_good_time(), NULL, &done, NULL),
		weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, items, 1, note, outsider, &op, NULL),
		weir_queue_close(queue, WEIR_CLOSE_CANCEL, NULL),
		weir_queue_destroy(queue, NULL),
	};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		outsider->had_record += statuses[i] != WEIR_RESOURCE_EXHAUSTED;
	outsider->had_record += done != 0 || op != NULL || number_of(items[0]) != 7;
	return NULL;
}

Test(queue_recordless, calls_without_memory_for_the_record_say_so_and_change_nothing)
{
	weir_queue *queue = fifo(2);
	struct outsider outsider = {.queue = queue, .status = WEIR_INTERNAL};
	pthread_t thread;

	put(queue, 1, 1);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, use_from_outside, &outsider), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(outsider.had_record, 0, "%d answers are wrong", outsider.had_record);
	cr_expect_eq(outsider.status, WEIR_INTERNAL, "the completion ran although the start failed");
	cr_expect_not(weir_queue_closed(queue));
	expect_next(queue, 1, 1);
	expect_nothing(queue);
	destroy(queue);
}

/* -- objects that have memory but cannot be registered for a dump ------------------------------ */

static enum weir_status create_queue(const weir_allocator *allocator, void **out, weir_error *error)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 2, .name = "lost",
	                                     .allocator = allocator};

	return weir_queue_create(&options, (weir_queue **)out, error);
}

static const struct weir_tensor_component component = {WEIR_I32, &weir_shape_scalar, NULL};

static enum weir_status create_staging(const weir_allocator *allocator, void **out, weir_error *error)
{
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .name = "lost", .components = &component,
	                                       .component_count = 1, .allocator = allocator};

	return weir_staging_create(&options, (weir_staging **)out, error);
}

static enum weir_status create_map_staging(const weir_allocator *allocator, void **out, weir_error *error)
{
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .name = "lost", .components = &component,
	                                           .component_count = 1, .allocator = allocator};

	return weir_map_staging_create(&options, (weir_map_staging **)out, error);
}

static enum weir_status create_keyed_join(const weir_allocator *allocator, void **out, weir_error *error)
{
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .name = "lost", .components = &component,
	                                          .component_count = 1, .allocator = allocator};

	return weir_keyed_join_create(&options, (weir_keyed_join **)out, error);
}

Test(queue_recordless, what_a_dump_could_not_find_is_not_made)
{
	static enum weir_status (*const creates[])(const weir_allocator *, void **, weir_error *) = {
		create_queue, create_staging, create_map_staging, create_keyed_join};
	static const char *const says[] = {"queue: no memory for 2 items", "staging area \"lost\": no memory",
	                                   "map staging area \"lost\": no memory", "keyed join \"lost\": no memory"};

	cr_assert_eq(weir_reclaim_prepare_thread(), WEIR_OK);
	for (size_t i = 0; i < sizeof(creates) / sizeof(creates[0]); i++) {
		struct failing_allocator memory = {0};
		weir_allocator allocator = failing_allocator_hooks(&memory);
		weir_error error = {WEIR_OK, ""};
		void *made = NULL;
		enum weir_status status;

		without_memory = 1;
		status = creates[i](&allocator, &made, &error);
		without_memory = 0;
		cr_expect_eq(status, WEIR_RESOURCE_EXHAUSTED, "%s: %s", says[i], weir_status_name(status));
		cr_expect_eq(error.code, WEIR_RESOURCE_EXHAUSTED, "%s", says[i]);
		cr_expect_not_null(strstr(error.message, says[i]), "%s", error.message);
		cr_expect_null(made);
		cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
		cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced", "%s", says[i]);
	}
}

struct end {
	weir_var *var;
	enum weir_status status;
};

static void *destroy_from_outside(void *argument)
{
	struct end *end = argument;

	without_memory = 1;
	end->status = weir_var_destroy(end->var, NULL);
	return NULL;
}

/* The last call on a variable needs a record, as every other call does. */
Test(queue_recordless, a_variable_that_cannot_be_destroyed_without_memory_lives_on)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};
	struct end end = {.status = WEIR_INTERNAL};
	weir_tensor *value;
	weir_read read;
	pthread_t thread;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){.rank = 0}, &(int64_t){7}, NULL, &value), WEIR_OK);
	cr_assert_eq(weir_var_create(value, &options, &end.var, NULL), WEIR_OK);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, destroy_from_outside, &end), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(end.status, WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(weir_var_read(end.var, &read), WEIR_OK);
	cr_expect_eq(*(const int64_t *)weir_tensor_data(read.tensor), 7);
	weir_read_release(&read);
	weir_tensor_release(value);
	cr_expect_eq(weir_var_destroy(end.var, NULL), WEIR_OK);
}
