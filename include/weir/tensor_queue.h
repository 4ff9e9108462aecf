/*
 * tensor_queue.h - queues of tuples of tensors with a checked spec.
 *
 * weir/queue.h for values that are tensors: every tuple has the same components (dtype, and shape where the spec gives one), and
 * batches are stacked and unstacked. Progress, waiting, closing, fairness and ordering are those of weir/queue.h.
 *
 * | call                                   | threads | progress                        | blocks on | allocates | signal-safe |
 * |----------------------------------------|---------|---------------------------------|-----------|-----------|-------------|
 * | weir_tensor_queue_enqueue[_many]       | any     | allocator, then as weir_queue_enqueue | room  | yes       | no          |
 * | weir_tensor_queue_dequeue[_many,_up_to] | any    | allocator, then as weir_queue_dequeue | items | yes       | no          |
 * | weir_tensor_queue_start_*              | any     | lock-free + allocator           | nothing   | yes       | no          |
 * | weir_tensor_queue_close, _size, _closed | any    | as weir_queue_*                 | nothing   | no        | no          |
 */
#ifndef WEIR_TENSOR_QUEUE_H
#define WEIR_TENSOR_QUEUE_H

#include <weir/queue.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

typedef struct weir_tensor_queue weir_tensor_queue;

enum { WEIR_TENSOR_QUEUE_MAX_COMPONENTS = 64 };

struct weir_tensor_component {
	enum weir_dtype dtype;
	const weir_shape *shape; /* of one item, fully known; NULL: any shape, and then no batch calls */
	const char *name;        /* for messages; NULL: its number */
};

struct weir_tensor_queue_options {
	size_t struct_size; /* sizeof(struct weir_tensor_queue_options) */
	size_t capacity;    /* tuples; bounds as in weir/queue.h */
	enum weir_queue_order order;
	uint32_t flags; /* WEIR_QUEUE_FAIR */
	size_t min_after_dequeue;
	uint64_t seed;
	const char *name;
	const struct weir_tensor_component *components; /* copied; all with shapes or all without */
	size_t component_count;                         /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	const weir_allocator *allocator;
};

/* Errors as weir_queue_create, and WEIR_INVALID_ARGUMENT for a bad component. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_create(const struct weir_tensor_queue_options *options,
                                                   weir_tensor_queue **out, weir_error *error);
/* As weir_queue_destroy; tensors left inside are released. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_destroy(weir_tensor_queue *queue, weir_error *error);

/*
 * `tuple` has component_count tensors. The queue takes its own references; the caller keeps his, whatever the outcome.
 * WEIR_INVALID_ARGUMENT (count, dtype or shape differ from the spec: the message names the component, what was expected and
 * what came), and as weir_queue_enqueue.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                                    uint64_t deadline_ns, weir_cancel *cancel, weir_error *error);
/* `tuple` has tensors [n, shape...]; their n rows go in one by one (no copy). *done (may be NULL): how many went in. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_enqueue_many(weir_tensor_queue *queue, weir_tensor *const tuple[],
                                                         size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                                                         int64_t *done, weir_error *error);
/* Fills tuple[0 .. count-1]; the caller owns those references. count must be component_count. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_dequeue(weir_tensor_queue *queue, weir_tensor *tuple[], size_t count,
                                                    uint64_t deadline_ns, weir_cancel *cancel, weir_error *error);
/*
 * n tuples stacked to tensors [n, shape...]. n = 0 gives tensors with no rows. WEIR_INVALID_ARGUMENT: n < 0, or a queue
 * without shapes ("specified shapes"). On failure every item is back in the queue, in order.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_dequeue_many(weir_tensor_queue *queue, int64_t n, weir_tensor *tuple[],
                                                         size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                                                         weir_error *error);
/* The same, but a closed queue gives the k that are left, 1 <= k <= n, as tensors [k, shape...]. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_dequeue_up_to(weir_tensor_queue *queue, int64_t n, weir_tensor *tuple[],
                                                          size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                                                          weir_error *error);

/*
 * The one completion of an asynchronous operation. For a dequeue that succeeded `tuple` has `count` tensors whose references
 * now belong to the callee (the array itself does not); otherwise tuple is NULL and count 0. Must not block.
 */
typedef void weir_tensor_queue_done_fn(void *context, enum weir_status status, const weir_error *error,
                                       weir_tensor *const tuple[], size_t count);

/* As the calls above without a thread that waits; see weir_queue_start for `op`, completion and cancelling. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_start_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[],
                                                          size_t count, weir_tensor_queue_done_fn *done, void *context,
                                                          weir_queue_op **op, weir_error *error);
WEIR_API enum weir_status weir_tensor_queue_start_enqueue_many(weir_tensor_queue *queue, weir_tensor *const tuple[],
                                                               size_t count, weir_tensor_queue_done_fn *done,
                                                               void *context, weir_queue_op **op, weir_error *error);
WEIR_API enum weir_status weir_tensor_queue_start_dequeue(weir_tensor_queue *queue, weir_tensor_queue_done_fn *done,
                                                          void *context, weir_queue_op **op, weir_error *error);
/* kind is WEIR_QUEUE_OP_DEQUEUE_MANY or WEIR_QUEUE_OP_DEQUEUE_UP_TO. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_start_dequeue_many(weir_tensor_queue *queue, enum weir_queue_op_kind kind,
                                                               int64_t n, weir_tensor_queue_done_fn *done,
                                                               void *context, weir_queue_op **op, weir_error *error);

/* As weir_queue_close. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_close(weir_tensor_queue *queue, enum weir_close_mode mode,
                                                  const weir_error *cause);
WEIR_API int weir_tensor_queue_closed(const weir_tensor_queue *queue);
WEIR_API size_t weir_tensor_queue_size(const weir_tensor_queue *queue);
WEIR_API size_t weir_tensor_queue_capacity(const weir_tensor_queue *queue);
WEIR_API uint64_t weir_tensor_queue_seed(const weir_tensor_queue *queue);
WEIR_API const char *weir_tensor_queue_name(const weir_tensor_queue *queue);
WEIR_API size_t weir_tensor_queue_component_count(const weir_tensor_queue *queue);

WEIR_END_DECLS

#endif
