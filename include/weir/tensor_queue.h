/*
 * tensor_queue.h - queues of tuples of tensors with a checked spec.
 *
 * weir/queue.h for values that are tensors: every tuple has the same components (dtype, and shape where the spec gives one), and
 * batches are stacked and unstacked, padded where asked for. Progress, waiting, closing, fairness and ordering are those of
 * weir/queue.h.
 *
 * | call                                   | threads | progress                        | blocks on | allocates | signal-safe |
 * |----------------------------------------|---------|---------------------------------|-----------|-----------|-------------|
 * | weir_tensor_queue_create               | any     | lock-free + allocator           | allocator | yes       | no          |
 * | weir_tensor_queue_destroy              | one, last | lock-free + allocator         | nothing   | at a thread's first use of Weir | no |
 * | weir_tensor_queue_enqueue[_many]       | any     | allocator, then as weir_queue_enqueue | room  | yes       | no          |
 * | weir_tensor_queue_dequeue[_many,_up_to] | any    | allocator, then as weir_queue_dequeue | items | yes       | no          |
 * | weir_tensor_queue_start_*              | any     | lock-free + allocator           | nothing   | yes       | no          |
 * | weir_tensor_queue_close, _size, _closed | any    | as weir_queue_*                 | nothing   | no        | no          |
 * | weir_tensor_queue_readable_fd, _writable_fd | any | as weir_queue_readable_fd   | nothing   | the first time | no      |
 * | weir_tensor_queue_get_stats            | any     | wait-free                       | nothing   | no        | yes         |
 * | weir_tensor_queue_component, _component_count, _arrange, _capacity, _seed, _name, _type | any | wait-free                  | nothing   | no        | no          |
 * | weir_tensor_queue_find_or_create       | any     | as weir_store_find_or_create    | as there  | yes       | no          |
 * | weir_tensor_queue_list_create, _destroy | one    | allocator                       | nothing   | yes       | no          |
 * | weir_tensor_queue_list_at, _component, _component_count | any | wait-free                  | nothing   | no        | no          |
 */
#ifndef WEIR_TENSOR_QUEUE_H
#define WEIR_TENSOR_QUEUE_H

#include <weir/queue.h>
#include <weir/store.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

typedef struct weir_tensor_queue weir_tensor_queue;

enum { WEIR_TENSOR_QUEUE_MAX_COMPONENTS = 64 };
/* Room for the name of a component, the terminator included. */
enum { WEIR_TENSOR_QUEUE_NAME_SIZE = 64 };

/*
 * A flag: the batch calls pad. Every component needs a shape, whose rank is known; where a dim is not (negative), a batch has the
 * largest of its items there, and zeros, false or empty strings behind shorter ones. Single items are never padded. Any order.
 */
enum { WEIR_TENSOR_QUEUE_PADDING = 1 << 16 };

struct weir_tensor_component {
	enum weir_dtype dtype;
	/*
	 * Of one item, of a rank below WEIR_MAX_RANK. Negative dims may be anything; such a queue has batch calls only if it pads.
	 * NULL: any shape, and no batch calls.
	 */
	const weir_shape *shape;
	const char *name; /* NULL: its number, in messages */
};

struct weir_tensor_queue_options {
	size_t struct_size; /* sizeof(struct weir_tensor_queue_options) */
	size_t capacity;    /* tuples; bounds as in weir/queue.h */
	enum weir_queue_order order;
	uint32_t flags; /* WEIR_QUEUE_FAIR, WEIR_TENSOR_QUEUE_PADDING */
	size_t min_after_dequeue;
	uint64_t seed;
	const char *name;
	/*
	 * Copied; all with shapes or all without. In a queue of WEIR_QUEUE_PRIORITY component 0 is the priority, an i64 of shape []
	 * (and the others all have shapes or none): the smallest leaves first, equal ones in the order they came, and so they are
	 * in a batch.
	 */
	const struct weir_tensor_component *components;
	size_t component_count; /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	const weir_allocator *allocator;
};

/*
 * Errors as weir_queue_create, and WEIR_INVALID_ARGUMENT for a bad component: no dtype, an impossible shape, an empty, long or
 * repeated name, no shape in a queue that pads or whose other components have one. The capacity is always a bound: there is
 * none for "any number", as memory has one.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_create(const struct weir_tensor_queue_options *options,
                                                   weir_tensor_queue **out, weir_error *error);
/*
 * As weir_queue_destroy; tensors left inside are released. WEIR_FAILED_PRECONDITION also in a completion that runs inside a
 * call which enqueues, dequeues or selects there without being a start: that still needs the queue. @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_destroy(weir_tensor_queue *queue, weir_error *error);

/*
 * `tuple` has component_count tensors. The queue takes its own references; the caller keeps his, whatever the outcome.
 * WEIR_INVALID_ARGUMENT (count, dtype or shape differ from the spec: the message names the component, what was expected and
 * what came), and as weir_queue_enqueue.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_enqueue(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                                    uint64_t deadline_ns, weir_cancel *cancel, weir_error *error);
/*
 * `tuple` has tensors [n, shape...]; their n rows go in one by one (no copy). *done (may be NULL): how many went in. Statuses
 * as weir_tensor_queue_enqueue; 0 rows succeed at once. @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_enqueue_many(weir_tensor_queue *queue, weir_tensor *const tuple[],
                                                         size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                                                         int64_t *done, weir_error *error);
/*
 * Fills tuple[0 .. count-1]; the caller owns those references, and tuple[] is untouched on failure. WEIR_INVALID_ARGUMENT:
 * count is not the number of components; else as weir_queue_dequeue. @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_dequeue(weir_tensor_queue *queue, weir_tensor *tuple[], size_t count,
                                                    uint64_t deadline_ns, weir_cancel *cancel, weir_error *error);
/*
 * n tuples stacked to tensors [n, shape...]. n = 0 gives tensors with no rows (dims that are unknown are 0 then).
 * WEIR_INVALID_ARGUMENT: n < 0, or a queue without shapes, or with unknown dims that does not pad ("specified shapes"). On
 * failure every item is back in the queue, in order. When it was memory to stack them that failed (WEIR_RESOURCE_EXHAUSTED),
 * and the queue is closed, another consumer may have been told just before that nothing more comes.
 * Else as weir_tensor_queue_dequeue. @since 0.1
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
 * now belong to the callee (the array itself does not); otherwise tuple is NULL and count 0. weir_queue_done_fn (weir/queue.h)
 * says what it may do, and weir_tensor_queue_destroy() when it may destroy the queue.
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
/* As weir_queue_readable_fd, _writable_fd: descriptors for an event loop. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_readable_fd(weir_tensor_queue *queue, int *fd, weir_error *error);
WEIR_API enum weir_status weir_tensor_queue_writable_fd(weir_tensor_queue *queue, int *fd, weir_error *error);
/* As weir_queue_closed, _size, _capacity: 0 for NULL. @since 0.1 */
WEIR_API int weir_tensor_queue_closed(const weir_tensor_queue *queue);
WEIR_API size_t weir_tensor_queue_size(const weir_tensor_queue *queue);
WEIR_API size_t weir_tensor_queue_capacity(const weir_tensor_queue *queue);
/* As weir_queue_get_stats; items are tuples. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_get_stats(weir_tensor_queue *queue, struct weir_queue_stats *stats);
/* As weir_queue_seed, _name. @since 0.1 */
WEIR_API uint64_t weir_tensor_queue_seed(const weir_tensor_queue *queue);
WEIR_API const char *weir_tensor_queue_name(const weir_tensor_queue *queue);
/* How many tensors a tuple has; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_tensor_queue_component_count(const weir_tensor_queue *queue);
/*
 * Reads component i as it was given at creation: shape and name NULL where there were none, and valid while the queue lives.
 * WEIR_OUT_OF_RANGE (no such component), WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_component(const weir_tensor_queue *queue, size_t i,
                                                      struct weir_tensor_component *out);

struct weir_named_tensor {
	const char *name;
	weir_tensor *tensor;
};
/*
 * Puts tensors that are given by name, in any order, into the order of the queue's components: tuple[0 .. tuple_count-1] is then
 * what the enqueue calls take. No reference is taken. WEIR_INVALID_ARGUMENT, which the message explains by name: a component is
 * missing or given twice, no component is so named, the queue's components are not all named, tuple_count is not their count,
 * NULL. @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_arrange(const weir_tensor_queue *queue,
                                                    const struct weir_named_tensor named[], size_t count,
                                                    weir_tensor *tuple[], size_t tuple_count, weir_error *error);

/* -- queues by name ----------------------------------------------------------------------------------------------------------- */

/* What tensor queues are in a store: weir_resource_object() is a weir_tensor_queue. @since 0.1 */
WEIR_API const struct weir_resource_type *weir_tensor_queue_type(void);
/*
 * The queue of that name: the one that is there, or a new one, made with the options and, if they have none, the name. *out is
 * a reference; the queue is weir_resource_object(*out), and goes with the last reference, items and all: who waits in it must
 * hold one (else its memory is never given back). WEIR_INVALID_ARGUMENT: one is there that was made otherwise; the message
 * names the first property that differs (order and padding, flags, capacity, min_after_dequeue, seed, number of components;
 * dtype, shape or name of a component), what it is there and what was asked for. Seed 0 asks for none in particular. Shapes of
 * queues that pad differ only where both know a dim. Else as weir_tensor_queue_create and weir_store_find_or_create.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_find_or_create(weir_store *store, const char *container, const char *name,
                                                           const struct weir_tensor_queue_options *options,
                                                           weir_resource **out, weir_error *error);

/* -- one of several queues ---------------------------------------------------------------------------------------------------- */

typedef struct weir_tensor_queue_list weir_tensor_queue_list;

enum { WEIR_TENSOR_QUEUE_LIST_MAX = 1 << 16 };

/*
 * 1 to WEIR_TENSOR_QUEUE_LIST_MAX queues, whose components agree in number, dtypes and names; one of them is chosen by its index.
 * The queues are borrowed and must outlive the list; the array is copied. WEIR_INVALID_ARGUMENT (no queues, NULL, or they do not
 * agree: the message says where, and what each has), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_list_create(weir_tensor_queue *const queues[], size_t count,
                                                        const weir_allocator *allocator, weir_tensor_queue_list **out,
                                                        weir_error *error);
/* Accepts NULL. Nobody may be using the list. @since 0.1 */
WEIR_API void weir_tensor_queue_list_destroy(weir_tensor_queue_list *list);
/* WEIR_INVALID_ARGUMENT: "index 3 is not in [0, 3)", or NULL. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_list_at(const weir_tensor_queue_list *list, int64_t index,
                                                    weir_tensor_queue **out, weir_error *error);
/* The same of the queues of a list. @since 0.1 */
WEIR_API size_t weir_tensor_queue_list_component_count(const weir_tensor_queue_list *list);
/*
 * What is known of component i whichever queue is chosen: a dim in which they differ is unknown, and there is no shape (NULL)
 * when their ranks differ or one has none. Errors as weir_tensor_queue_component.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_list_component(const weir_tensor_queue_list *list, size_t i,
                                                           struct weir_tensor_component *out);

WEIR_END_DECLS

#endif
