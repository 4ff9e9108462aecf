/*
 * transfer.c - see transfer.h.
 */
#include "tuples/transfer.h"

#include <stdalign.h>

#include "base/compiler.h"
#include "base/error.h"
#include "run/trace_format.h"

static size_t transfer_size(size_t count)
{
	size_t bytes, size;

	return weiri_multiply(count, sizeof(void *), &bytes) && weiri_add(bytes, sizeof(struct weiri_transfer), &size)
	           ? size
	           : 0;
}

struct weiri_transfer *weiri_transfer_create(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t count)
{
	struct weiri_transfer *transfer =
		weiri_allocate(&queue->allocator, transfer_size(count), alignof(struct weiri_transfer));

	if (transfer != NULL)
		*transfer = (struct weiri_transfer){.queue = queue, .kind = kind, .count = count};
	return transfer;
}

void weiri_transfer_free(struct weiri_transfer *transfer)
{
	if (transfer == NULL)
		return;
	weiri_segment_free(transfer->segment);
	weiri_release(&transfer->queue->allocator, transfer, transfer_size(transfer->count),
	              alignof(struct weiri_transfer));
}

static enum weir_status fail_memory(const weir_tensor_queue *queue, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory", weir_queue_name(queue->queue));
}

enum weir_status weiri_transfer_of_tuple(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                         struct weiri_transfer **out, weir_error *error)
{
	enum weir_status status = weiri_tuple_check(queue, tuple, count, false, NULL, error);
	struct weiri_transfer *transfer;

	if (status != WEIR_OK)
		return status;
	transfer = weiri_transfer_create(queue, WEIR_QUEUE_OP_ENQUEUE, 1);
	if (transfer == NULL)
		return fail_memory(queue, error);
	transfer->items[0] = weiri_tuple_create(queue, tuple);
	if (transfer->items[0] == NULL) {
		weiri_transfer_free(transfer);
		return fail_memory(queue, error);
	}
	*out = transfer;
	return WEIR_OK;
}

enum weir_status weiri_transfer_of_rows(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                        struct weiri_transfer **out, weir_error *error)
{
	int64_t rows;
	enum weir_status status = weiri_tuple_check(queue, tuple, count, true, &rows, error);
	struct weiri_transfer *transfer;

	if (status != WEIR_OK)
		return status;
	transfer = weiri_transfer_create(queue, WEIR_QUEUE_OP_ENQUEUE, (size_t)rows);
	for (int64_t row = 0; transfer != NULL && row < rows; row++) {
		transfer->items[row] = weiri_tuple_of_row(queue, tuple, row);
		if (transfer->items[row] != NULL)
			continue;
		while (row-- > 0)
			weiri_tuple_free(queue, transfer->items[row]);
		weiri_transfer_free(transfer);
		transfer = NULL;
	}
	if (transfer == NULL)
		return fail_memory(queue, error);
	*out = transfer;
	return WEIR_OK;
}

enum weir_status weiri_transfer_for_one(weir_tensor_queue *queue, struct weiri_transfer **out, weir_error *error)
{
	struct weiri_transfer *transfer = weiri_transfer_create(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 1);

	if (transfer == NULL)
		return fail_memory(queue, error);
	*out = transfer;
	return WEIR_OK;
}

enum weir_status weiri_transfer_for_batch(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
                                          struct weiri_transfer **out, weir_error *error)
{
	struct weiri_transfer *transfer;
	uint64_t wide = n; /* a size_t of 32 bits is below any INT64_MAX, and gcc warns of the comparison */

	if (wide > INT64_MAX)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": the batch size is %zu, must be at most %lld",
		                  weir_queue_name(queue->queue), n, (long long)INT64_MAX);
	if (!queue->batches)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "queue \"%s\": batches need specified shapes, without unknown dims unless the queue pads",
		                  weir_queue_name(queue->queue));
	transfer = weiri_transfer_create(queue, kind, n);
	if (transfer != NULL && n != 0) {
		transfer->segment = weiri_queue_segment(queue->queue, n);
		if (transfer->segment == NULL) {
			weiri_transfer_free(transfer);
			transfer = NULL;
		}
	}
	if (transfer == NULL)
		return fail_memory(queue, error);
	transfer->batched = true;
	*out = transfer;
	return WEIR_OK;
}

void weiri_transfer_settle_enqueue(struct weiri_transfer *transfer, size_t done)
{
	for (size_t i = done; i < transfer->count; i++)
		weiri_tuple_free(transfer->queue, transfer->items[i]);
}

/*
 * Returns the tuples of a batch that could not be stacked to the queue, as a putback. So they leave
 * before all others, in their old order.
 */
static void give_back(struct weiri_transfer *transfer, size_t done)
{
	struct weiri_record *record = weiri_record_mine; /* not NULL: this thread has just dequeued */
	struct weiri_scope scope;

	for (size_t i = 0; i < done; i++)
		transfer->segment->items[i] = weiri_item_bits(transfer->items[i]);
	weiri_queue_sort_batch(transfer->queue->queue, transfer->segment, done);
	scope = weiri_scope_enter(record);
	weiri_putback_push(&scope, &transfer->queue->queue->putback, transfer->segment, done);
	transfer->segment = NULL;
	weiri_scope_leave(&scope);
	weiri_queue_pump(record, transfer->queue->queue);
}

/* -- traces ------------------------------------------------------------------------------------ */

/* Numbers the tuple. In its trace, a put is an event too. */
static void number(struct weiri_tuple *tuple, struct weiri_trace_buffer *buffer)
{
	tuple->item = weiri_trace_event(buffer);
	tuple->trace = (uint32_t)buffer->set->id;
}

static WEIRI_COLD void record_puts(struct weiri_transfer *transfer)
{
	struct weiri_trace_buffer *buffer = weiri_trace_buffer_mine(transfer->point.set);

	for (size_t i = 0; buffer != NULL && i < transfer->count; i++) {
		struct weiri_tuple *tuple = transfer->items[i];

		number(tuple, buffer);
		weiri_trace_effect(&transfer->point, WEIRI_TRACE_PUT, transfer->queue, tuple->item);
	}
}

void weiri_transfer_trace(struct weiri_transfer *transfer, const struct weiri_trace_point *point)
{
	if (WEIRI_LIKELY(point == NULL))
		return;
	transfer->point = *point;
	if (transfer->kind == WEIR_QUEUE_OP_ENQUEUE)
		record_puts(transfer);
}

static WEIRI_COLD void record_take(const struct weiri_trace_point *point, const weir_tensor_queue *queue,
                                   const struct weiri_tuple *tuple)
{
	weiri_trace_effect(point, WEIRI_TRACE_TAKE, queue, tuple->trace == (uint32_t)point->set->id ? tuple->item : 0);
}

static WEIRI_COLD void record_takes(const struct weiri_transfer *transfer, size_t done)
{
	for (size_t i = 0; i < done; i++)
		record_take(&transfer->point, transfer->queue, transfer->items[i]);
}

enum weir_status weiri_transfer_settle_dequeue(struct weiri_transfer *transfer, size_t done, weir_tensor *tuple[],
                                               weir_error *error)
{
	weir_tensor_queue *queue = transfer->queue;
	enum weir_status status;

	if (!transfer->batched) {
		if (WEIRI_UNLIKELY(transfer->point.set != NULL))
			record_takes(transfer, 1);
		weiri_tuple_move(queue, transfer->items[0], tuple);
		return WEIR_OK;
	}
	status = weiri_tuple_stack(queue, transfer->items, done, tuple);
	if (status != WEIR_OK) {
		if (done != 0)
			give_back(transfer, done);
		return weiri_fail(error, status, "queue \"%s\": cannot stack %zu item%s", weir_queue_name(queue->queue), done,
		                  WEIRI_S(done));
	}
	if (WEIRI_UNLIKELY(transfer->point.set != NULL))
		record_takes(transfer, done);
	for (size_t i = 0; i < done; i++)
		weiri_tuple_free(queue, transfer->items[i]);
	return WEIR_OK;
}

/* -- at once ----------------------------------------------------------------------------------- */

/* Numbers the tuple, before a thread that takes it can record that. */
static WEIRI_COLD void number_first(struct weiri_tuple *tuple, const struct weiri_trace_point *point)
{
	struct weiri_trace_buffer *buffer = weiri_trace_buffer_mine(point->set);

	if (buffer != NULL)
		number(tuple, buffer);
}

bool weiri_tensor_queue_attempt_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[],
                                        const struct weiri_trace_point *point)
{
	struct weiri_tuple *item;
	uint64_t number_of_item;

	if (weiri_tuple_check(queue, tuple, queue->count, false, NULL, NULL) != WEIR_OK)
		return false;
	item = weiri_tuple_create(queue, tuple);
	if (item == NULL)
		return false;
	if (WEIRI_UNLIKELY(point != NULL))
		number_first(item, point);
	number_of_item = item->item;
	if (weir_queue_try_enqueue(queue->queue, item) != WEIR_OK) {
		weiri_tuple_free(queue, item);
		return false;
	}
	if (WEIRI_UNLIKELY(number_of_item != 0))
		weiri_trace_effect(point, WEIRI_TRACE_PUT, queue, number_of_item);
	return true;
}

bool weiri_tensor_queue_attempt_dequeue(weir_tensor_queue *queue, weir_tensor *tuple[],
                                        const struct weiri_trace_point *point)
{
	void *item;

	if (weir_queue_try_dequeue(queue->queue, &item) != WEIR_OK)
		return false;
	if (WEIRI_UNLIKELY(point != NULL))
		record_take(point, queue, item);
	weiri_tuple_move(queue, item, tuple);
	return true;
}
