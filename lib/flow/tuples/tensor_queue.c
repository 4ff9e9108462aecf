/*
 * tensor_queue.c - the public calls of tensor queues.
 */
#include <weir/flow/tensor_queue.h>

#include <stdalign.h>

#include "base/error.h"
#include "tuples/transfer.h"
#include "sync/pending.h"

/* -- creating ---------------------------------------------------------------------------------- */

/* Returns the key of an item of a priority queue: its component 0. */
static int64_t priority_of(void *context, void *item)
{
	const struct weiri_tuple *tuple = item;

	(void)context;
	return *(const int64_t *)weir_tensor_data(tuple->tensors[0]);
}

static void drop_tuple(void *context, void *item)
{
	weiri_tuple_free(context, item);
}

static size_t queue_size(size_t components)
{
	return sizeof(struct weir_tensor_queue) + components * sizeof(struct weiri_component);
}

/* Returns true if, for each component, all items have one shape or get one by padding. */
static bool can_batch(const weir_tensor_queue *queue, uint32_t flags)
{
	size_t i = 0;

	while (i < queue->count && (queue->components[i].known || (flags & WEIR_TENSOR_QUEUE_PADDING) != 0))
		i++;
	return i == queue->count;
}

enum weir_status weir_tensor_queue_create(const struct weir_tensor_queue_options *options, weir_tensor_queue **out,
                                          weir_error *error)
{
	struct weir_tensor_queue_options given;
	enum weir_status status = weiri_components_check_queue(options, &given, error);
	struct weir_queue_options inner;
	weir_allocator allocator;
	weir_tensor_queue *queue;

	if (status == WEIR_OK && out == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "tensor queue: out is NULL");
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	queue = weiri_allocate_zeroed(&allocator, queue_size(given.component_count), alignof(weir_tensor_queue));
	if (queue == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "tensor queue: no memory");
	queue->allocator = allocator;
	queue->count = given.component_count;
	for (size_t i = 0; i < queue->count; i++)
		weiri_component_fill(&queue->components[i], &given.components[i], i);
	queue->batches = can_batch(queue, given.flags);
	queue->made_with = (struct weiri_made_with){given.order, given.flags, given.min_after_dequeue};
	inner = (struct weir_queue_options){
		WEIR_QUEUE_OPTIONS_INIT,
		.capacity = given.capacity,
		.order = given.order,
		.flags = given.flags & ~(uint32_t)WEIR_TENSOR_QUEUE_PADDING,
		.min_after_dequeue = given.min_after_dequeue,
		.seed = given.seed,
		.name = given.name,
		.key = given.order == WEIR_QUEUE_PRIORITY ? priority_of : NULL,
		.drop = drop_tuple,
		.drop_context = queue,
		.allocator = &allocator,
	};
	status = weir_queue_create(&inner, &queue->queue, error);
	if (status == WEIR_OK)
		*out = queue;
	else
		weiri_release(&allocator, queue, queue_size(given.component_count), alignof(weir_tensor_queue));
	return status;
}

enum weir_status weir_tensor_queue_destroy(weir_tensor_queue *queue, weir_error *error)
{
	weir_allocator allocator;
	enum weir_status status;

	if (queue == NULL)
		return WEIR_OK;
	if (weiri_visits_any(queue))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "queue \"%s\": a call in which this one is made still needs it",
		                  weir_queue_name(queue->queue));
	status = weir_queue_destroy(queue->queue, error);
	if (status != WEIR_OK)
		return status;
	allocator = queue->allocator;
	weiri_release(&allocator, queue, queue_size(queue->count), alignof(weir_tensor_queue));
	return WEIR_OK;
}

/* -- calls that wait, and calls that do not ---------------------------------------------------- */

/* How long a call waits. */
struct patience {
	bool none; /* true: it takes or gives what goes at once; the other fields are unused */
	uint64_t deadline_ns;
	weir_cancel *cancel;
};

static const struct patience at_once = {.none = true};

static enum weir_status fail_null(weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "tensor queue: queue is NULL");
}

/* Visits the queue of the transfer. Fails if there is no memory for the record that a visit needs. */
static enum weir_status visit_queue(const struct weiri_transfer *transfer, struct weiri_visit *visit, weir_error *error)
{
	if (weiri_record_get() == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for this thread's record",
		                  weir_queue_name(transfer->queue->queue));
	weiri_visit_begin(visit, transfer->queue, NULL);
	return WEIR_OK;
}

/* Fills *error for a call without patience that moved nothing. */
static enum weir_status refused(const weir_queue *queue, enum weir_status status, size_t count, const char *what,
                                weir_error *error)
{
	if (status == WEIR_WOULD_BLOCK)
		return weiri_fail(error, status, "queue \"%s\": %s at once", weir_queue_name(queue), what);
	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_fail(error, status, "queue \"%s\": no memory for this thread's record", weir_queue_name(queue));
	return weiri_queue_fail_closed(queue, status, count, 0, error);
}

static enum weir_status put(struct weiri_transfer *transfer, const struct patience *patience, size_t *done,
                            weir_error *error)
{
	weir_queue *queue = transfer->queue->queue;
	enum weir_status status;

	if (patience->none) {
		status = weir_queue_try_enqueue_many(queue, transfer->items, transfer->count, done);
		return status == WEIR_OK ? status : refused(queue, status, transfer->count, "no room", error);
	}
	if (transfer->count != 1)
		return weir_queue_enqueue_many(queue, transfer->items, transfer->count, patience->deadline_ns, patience->cancel,
		                               done, error);
	status = weir_queue_enqueue(queue, transfer->items[0], patience->deadline_ns, patience->cancel, error);
	*done = status == WEIR_OK;
	return status;
}

static enum weir_status run_enqueue(struct weiri_transfer *transfer, const struct patience *patience, size_t *done,
                                    weir_error *error)
{
	struct weiri_visit visit;
	enum weir_status status;

	*done = 0;
	status = visit_queue(transfer, &visit, error);
	if (status != WEIR_OK) {
		weiri_transfer_settle_enqueue(transfer, 0);
		weiri_transfer_free(transfer);
		return status;
	}
	status = put(transfer, patience, done, error);
	weiri_transfer_settle_enqueue(transfer, *done);
	weiri_transfer_free(transfer);
	weiri_visit_end(&visit);
	return status;
}

enum weir_status weir_tensor_queue_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                           uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status =
		queue != NULL ? weiri_transfer_of_tuple(queue, tuple, count, &transfer, error) : fail_null(error);
	size_t done;

	return status == WEIR_OK ? run_enqueue(transfer, &(struct patience){false, deadline_ns, cancel}, &done, error)
	                         : status;
}

enum weir_status weir_tensor_queue_enqueue_many(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                                uint64_t deadline_ns, weir_cancel *cancel, size_t *done,
                                                weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status =
		queue != NULL ? weiri_transfer_of_rows(queue, tuple, count, &transfer, error) : fail_null(error);
	size_t in = 0;

	if (status == WEIR_OK)
		status = run_enqueue(transfer, &(struct patience){false, deadline_ns, cancel}, &in, error);
	if (done != NULL)
		*done = in;
	return status;
}

enum weir_status weir_tensor_queue_try_enqueue_many(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                                    size_t *done, weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status;
	size_t in = 0;

	if (queue == NULL)
		return fail_null(error);
	if (done == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": done is NULL", weir_queue_name(queue->queue));
	status = weiri_transfer_of_rows(queue, tuple, count, &transfer, error);
	/* Not *done itself: a completion that this call runs may write there. */
	if (status == WEIR_OK)
		status = run_enqueue(transfer, &at_once, &in, error);
	if (status != WEIR_INVALID_ARGUMENT)
		*done = in;
	return status;
}

static enum weir_status check_out(const weir_tensor_queue *queue, weir_tensor *tuple[], size_t count, weir_error *error)
{
	if (queue == NULL)
		return fail_null(error);
	if (tuple == NULL || count != queue->count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": a tuple has %zu component%s, room for %zu",
		                  weir_queue_name(queue->queue), queue->count, WEIRI_S(queue->count),
		                  tuple != NULL ? count : 0);
	return WEIR_OK;
}

static enum weir_status take(struct weiri_transfer *transfer, const struct patience *patience, size_t *done,
                             weir_error *error)
{
	weir_queue *queue = transfer->queue->queue;
	size_t count = transfer->count;
	enum weir_status status;

	*done = count;
	if (patience->none) {
		status = weir_queue_try_dequeue_many(queue, transfer->items, count, done);
		return status == WEIR_OK ? status : refused(queue, status, count, "no item", error);
	}
	if (!transfer->batched)
		return weir_queue_dequeue(queue, transfer->items, patience->deadline_ns, patience->cancel, error);
	if (transfer->kind == WEIR_QUEUE_OP_DEQUEUE_MANY)
		return weir_queue_dequeue_many(queue, transfer->items, count, patience->deadline_ns, patience->cancel, error);
	return weir_queue_dequeue_up_to(queue, transfer->items, count, patience->deadline_ns, patience->cancel, done,
	                                error);
}

static enum weir_status run_dequeue(struct weiri_transfer *transfer, weir_tensor *tuple[],
                                    const struct patience *patience, weir_error *error)
{
	struct weiri_visit visit;
	enum weir_status status;
	size_t done;

	status = visit_queue(transfer, &visit, error);
	if (status != WEIR_OK) {
		weiri_transfer_free(transfer);
		return status;
	}
	status = take(transfer, patience, &done, error);
	if (status == WEIR_OK)
		status = weiri_transfer_settle_dequeue(transfer, done, tuple, error);
	weiri_transfer_free(transfer);
	weiri_visit_end(&visit);
	return status;
}

enum weir_status weir_tensor_queue_dequeue(weir_tensor_queue *queue, weir_tensor *tuple[], size_t count,
                                           uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status = check_out(queue, tuple, count, error);

	if (status == WEIR_OK)
		status = weiri_transfer_for_one(queue, &transfer, error);
	return status == WEIR_OK ? run_dequeue(transfer, tuple, &(struct patience){false, deadline_ns, cancel}, error)
	                         : status;
}

static enum weir_status dequeue_batch(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
                                      weir_tensor *tuple[], size_t count, const struct patience *patience,
                                      weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status = check_out(queue, tuple, count, error);

	if (status == WEIR_OK)
		status = weiri_transfer_for_batch(queue, kind, n, &transfer, error);
	return status == WEIR_OK ? run_dequeue(transfer, tuple, patience, error) : status;
}

enum weir_status weir_tensor_queue_dequeue_many(weir_tensor_queue *queue, size_t n, weir_tensor *tuple[], size_t count,
                                                uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	return dequeue_batch(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, n, tuple, count,
	                     &(struct patience){false, deadline_ns, cancel}, error);
}

enum weir_status weir_tensor_queue_dequeue_up_to(weir_tensor_queue *queue, size_t n, weir_tensor *tuple[], size_t count,
                                                 uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	return dequeue_batch(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, n, tuple, count,
	                     &(struct patience){false, deadline_ns, cancel}, error);
}

enum weir_status weir_tensor_queue_try_dequeue_many(weir_tensor_queue *queue, size_t n, weir_tensor *tuple[],
                                                    size_t count, weir_error *error)
{
	return dequeue_batch(queue, WEIR_QUEUE_OP_DEQUEUE_UP_TO, n, tuple, count, &at_once, error);
}

/* -- asynchronous calls ------------------------------------------------------------------------ */

static void enqueue_done(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct weiri_transfer *transfer = context;
	weir_tensor_queue_done_fn *callback = transfer->callback;
	void *callers = transfer->context;

	(void)items;
	weiri_transfer_settle_enqueue(transfer, done);
	weiri_transfer_free(transfer);
	callback(callers, status, error, NULL, 0);
}

static void dequeue_done(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct weiri_transfer *transfer = context;
	weir_tensor_queue_done_fn *callback = transfer->callback;
	weir_tensor *tuple[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	size_t count = transfer->queue->count;
	void *callers = transfer->context;
	weir_error why;

	(void)items;
	if (status == WEIR_OK) {
		status = weiri_transfer_settle_dequeue(transfer, done, tuple, &why);
		error = &why;
		weiri_pending_set_outcome(transfer->pending, status, error);
	}
	weiri_transfer_free(transfer);
	if (status == WEIR_OK)
		callback(callers, WEIR_OK, NULL, tuple, count);
	else
		callback(callers, status, error, NULL, 0);
}

static enum weir_status start(struct weiri_transfer *transfer, weir_tensor_queue_done_fn *done, void *context,
                              weir_pending **handle, weir_error *error)
{
	bool enqueue = transfer->kind == WEIR_QUEUE_OP_ENQUEUE;
	enum weir_status status;

	transfer->callback = done;
	transfer->context = context;
	if (done == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": done is NULL",
		                    weir_queue_name(transfer->queue->queue));
	else
		status = weiri_queue_prepare(transfer->queue->queue, transfer->kind, transfer->items, transfer->count,
		                             enqueue ? enqueue_done : dequeue_done, transfer, &transfer->pending, error);
	if (status == WEIR_OK) {
		weiri_pending_begin(weiri_record_get(), transfer->pending, handle);
	} else {
		if (enqueue)
			weiri_transfer_settle_enqueue(transfer, 0);
		weiri_transfer_free(transfer);
	}
	return status;
}

enum weir_status weiri_tensor_queue_start_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                                  bool rows, const struct weiri_trace_point *point,
                                                  weir_tensor_queue_done_fn *done, void *context, weir_pending **handle,
                                                  weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status;

	if (queue == NULL)
		return fail_null(error);
	status = rows ? weiri_transfer_of_rows(queue, tuple, count, &transfer, error)
	              : weiri_transfer_of_tuple(queue, tuple, count, &transfer, error);
	if (status != WEIR_OK)
		return status;
	weiri_transfer_trace(transfer, point);
	return start(transfer, done, context, handle, error);
}

enum weir_status weir_tensor_queue_start_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                                 weir_tensor_queue_done_fn *done, void *context, weir_pending **handle,
                                                 weir_error *error)
{
	return weiri_tensor_queue_start_enqueue(queue, tuple, count, false, NULL, done, context, handle, error);
}

enum weir_status weir_tensor_queue_start_enqueue_many(weir_tensor_queue *queue, weir_tensor *const tuple[],
                                                      size_t count, weir_tensor_queue_done_fn *done, void *context,
                                                      weir_pending **handle, weir_error *error)
{
	return weiri_tensor_queue_start_enqueue(queue, tuple, count, true, NULL, done, context, handle, error);
}

enum weir_status weiri_tensor_queue_start_dequeue(weir_tensor_queue *queue, const struct weiri_trace_point *point,
                                                  weir_tensor_queue_done_fn *done, void *context, weir_pending **handle,
                                                  weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status = queue != NULL ? weiri_transfer_for_one(queue, &transfer, error) : fail_null(error);

	if (status != WEIR_OK)
		return status;
	weiri_transfer_trace(transfer, point);
	return start(transfer, done, context, handle, error);
}

enum weir_status weir_tensor_queue_start_dequeue(weir_tensor_queue *queue, weir_tensor_queue_done_fn *done,
                                                 void *context, weir_pending **handle, weir_error *error)
{
	return weiri_tensor_queue_start_dequeue(queue, NULL, done, context, handle, error);
}

enum weir_status weiri_tensor_queue_start_batch(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
                                                const struct weiri_trace_point *point, weir_tensor_queue_done_fn *done,
                                                void *context, weir_pending **handle, weir_error *error)
{
	struct weiri_transfer *transfer;
	enum weir_status status;

	if (queue == NULL)
		return fail_null(error);
	if (kind != WEIR_QUEUE_OP_DEQUEUE_MANY && kind != WEIR_QUEUE_OP_DEQUEUE_UP_TO)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": kind must be a batch dequeue",
		                  weir_queue_name(queue->queue));
	status = weiri_transfer_for_batch(queue, kind, n, &transfer, error);
	if (status != WEIR_OK)
		return status;
	weiri_transfer_trace(transfer, point);
	return start(transfer, done, context, handle, error);
}

enum weir_status weir_tensor_queue_start_dequeue_many(weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
                                                      weir_tensor_queue_done_fn *done, void *context,
                                                      weir_pending **handle, weir_error *error)
{
	return weiri_tensor_queue_start_batch(queue, kind, n, NULL, done, context, handle, error);
}

/* -- calls that only pass on to the pointer queue ---------------------------------------------- */

enum weir_status weir_tensor_queue_close(weir_tensor_queue *queue, enum weir_close_mode mode, const weir_error *cause)
{
	return queue != NULL ? weir_queue_close(queue->queue, mode, cause) : WEIR_INVALID_ARGUMENT;
}

enum weir_status weir_tensor_queue_readable_fd(weir_tensor_queue *queue, int *fd, weir_error *error)
{
	return queue != NULL ? weir_queue_readable_fd(queue->queue, fd, error) : fail_null(error);
}

enum weir_status weir_tensor_queue_writable_fd(weir_tensor_queue *queue, int *fd, weir_error *error)
{
	return queue != NULL ? weir_queue_writable_fd(queue->queue, fd, error) : fail_null(error);
}

bool weir_tensor_queue_closed(const weir_tensor_queue *queue)
{
	return queue != NULL && weir_queue_closed(queue->queue);
}

size_t weir_tensor_queue_size_approx(const weir_tensor_queue *queue)
{
	return queue != NULL ? weir_queue_size_approx(queue->queue) : 0;
}

size_t weir_tensor_queue_capacity(const weir_tensor_queue *queue)
{
	return queue != NULL ? weir_queue_capacity(queue->queue) : 0;
}

enum weir_status weir_tensor_queue_get_stats(weir_tensor_queue *queue, struct weir_queue_stats *stats)
{
	return weir_queue_get_stats(queue != NULL ? queue->queue : NULL, stats);
}

uint64_t weir_tensor_queue_seed(const weir_tensor_queue *queue)
{
	return queue != NULL ? weir_queue_seed(queue->queue) : 0;
}

const char *weir_tensor_queue_name(const weir_tensor_queue *queue)
{
	return queue != NULL ? weir_queue_name(queue->queue) : "(null)";
}

size_t weir_tensor_queue_component_count(const weir_tensor_queue *queue)
{
	return queue != NULL ? queue->count : 0;
}
