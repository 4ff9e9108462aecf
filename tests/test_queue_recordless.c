/*
 * test_queue_recordless.c - threads that have no record and no memory for one: what they can still do to those who wait; and how not to be one.
 *
 * The default allocator is jemalloc's sized calls when the process has them; here they are this file's, so that one thread's can fail.
 */
#include "queue_kit.h"

#include <stdlib.h>
#include <weir/var.h>

#include "base/thread.h"

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

/* Where all tests share a process, threads that have ended leave records, which a new thread would take over: they are in use now. */
static void occupy_idle_records(void)
{
	struct weiri_record *record = weiri_load_acquire(&weiri_records);

	for (; record != NULL; record = record->next) {
		uint64_t owner = weiri_load_relaxed(&record->owner);

		if ((uint32_t)owner == 0) /* this thread lives on, so the record is not taken back */
			(void)weiri_cas_acquire(&record->owner, &owner, owner | weiri_thread_id());
	}
}

static void *prepare_without_memory(void *status)
{
	without_memory = 1;
	*(enum weir_status *)status = weir_reclaim_prepare_thread();
	without_memory = 0;
	return NULL;
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
	struct weir_var_options options = {.struct_size = sizeof(options), .dtype = WEIR_I64};
	struct prepared prepared = {.first = WEIR_INTERNAL};
	weir_tensor *value;
	pthread_t thread;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){.rank = 0}, &(int64_t){1}, NULL, &value), WEIR_OK);
	cr_assert_eq(weir_var_create(&options, NULL, &prepared.var, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign(prepared.var, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, prepare_and_read, &prepared), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(prepared.first, WEIR_OK);
	cr_expect_eq(prepared.again, WEIR_OK);
	cr_expect_eq(prepared.read, WEIR_OK);
	cr_expect(prepared.kept_its_record);
	weir_tensor_release(value);
	weir_var_destroy(prepared.var);
}

struct outsider {
	weir_cancel *token;
	weir_queue_op *op;
	weir_queue *queue;
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

	cr_assert_eq(weir_cancel_create(NULL, &outsider.token), WEIR_OK);
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
	weir_queue_op_cancel(outsider->op, &cause);
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
	weir_queue_op_release(outsider.op);
	expect_next(queue, 1, 1);
	destroy(queue);
}

static void *alarm_from_outside(void *argument)
{
	struct outsider *outsider = argument;

	without_memory = 1;
	weiri_op_cancel(outsider->op, WEIRI_OP_FOR_TOKEN);
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
	outsider.op = weiri_op_create(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, 0, NULL, NULL);
	cr_assert_not_null(outsider.op);
	weiri_op_start(weiri_record_get(), outsider.op);
	cr_assert_eq(weiri_load_acquire(&outsider.op->finished), WEIRI_OP_FINISHED);
	occupy_idle_records();
	cr_assert_eq(pthread_create(&thread, NULL, alarm_from_outside, &outsider), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_not(outsider.had_record, "the test tests nothing");
	cr_expect_eq(weiri_load_acquire(&outsider.op->finished), WEIRI_OP_FINISHED);
	weiri_op_release(outsider.op);
	destroy(queue);
}

/* Counts the calls that did not say so. */
static void *use_from_outside(void *argument)
{
	struct outsider *outsider = argument;
	weir_queue *queue = outsider->queue;
	void *items[2] = {item(7), item(8)};
	weir_queue_op *op = NULL;
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
	cr_expect_eq(outsider.status, WEIR_INTERNAL, "a completion though the start failed");
	cr_expect_not(weir_queue_closed(queue));
	expect_next(queue, 1, 1);
	expect_nothing(queue);
	destroy(queue);
}
