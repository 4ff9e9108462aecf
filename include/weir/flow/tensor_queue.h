/*
 * tensor_queue.h - queues of tuples of tensors with a checked spec.
 *
 * This is weir/queue.h for values that are tensors. Every tuple has the same components: their
 * dtypes agree with the spec, and so do their shapes where the spec gives one. Batches are stacked
 * and unstacked, and padded on request. Progress, waiting, closing, fairness and ordering are those
 * of weir/queue.h.
 *
 * | call                      | threads | progress         | blocks on | allocates  | signal-safe |
 * |---------------------------|---------|------------------|-----------|------------|-------------|
 * | weir_tensor_queue_create  | any     | lock-free + allocator | allocator | yes   | no          |
 * | weir_tensor_queue_destroy | one, last | lock-free + allocator | nothing | record (1) | no     |
 * | weir_tensor_queue_enqueue[_many] | any | as weir_queue_enqueue (2) | room | yes | no          |
 * | weir_tensor_queue_dequeue[_many,_up_to] | any | as weir_queue_dequeue (2) | items | yes | no  |
 * | weir_tensor_queue_try_enqueue_many, _try_dequeue_many | any | lock-free (2) | nothing | yes | no |
 * | weir_tensor_queue_start_* | any     | lock-free + allocator | nothing | yes     | no          |
 * | weir_tensor_queue_close, _size_approx, _closed | any | as weir_queue_* | nothing | no | no    |
 * | weir_tensor_queue_readable_fd, _writable_fd | any | lock-free (3) | nothing | first time | no |
 * | weir_tensor_queue_get_stats | any   | wait-free        | nothing   | no         | yes         |
 * | weir_tensor_queue_component, _component_count | any | wait-free | nothing | no  | no          |
 * | weir_tensor_queue_arrange, _capacity | any | wait-free | nothing   | no         | no          |
 * | weir_tensor_queue_seed, _name, _type | any | wait-free | nothing   | no         | no          |
 * | weir_tensor_queue_find_or_create | any | as weir_store_find_or_create | as there | yes | no   |
 * | weir_tensor_queue_announce | any    | lock-free + allocator | nothing | yes     | no          |
 * | weir_tensor_queue_bind_runner | any | wait-free        | nothing   | no         | yes         |
 * | weir_tensor_queue_list_create, _destroy | one | allocator | nothing | yes       | no          |
 * | weir_tensor_queue_list_at, _component | any | wait-free | nothing  | no         | no          |
 * | weir_tensor_queue_list_component_count | any | wait-free | nothing | no         | no          |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) After its allocation.
 * (3) And system calls.
 */
#ifndef WEIR_TENSOR_QUEUE_H
#define WEIR_TENSOR_QUEUE_H

#include <stdbool.h>
#include <weir/announce.h>
#include <weir/pending.h>
#include <weir/queue.h>
#include <weir/queue_runner.h>
#include <weir/store.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

typedef struct weir_tensor_queue weir_tensor_queue;

enum weir_tensor_queue_limits { WEIR_TENSOR_QUEUE_MAX_COMPONENTS = 64 };
/* The size of the name of a component, terminator included. */
enum weir_tensor_queue_sizes { WEIR_TENSOR_QUEUE_NAME_SIZE = 64 };

/*
 * A flag: batch dequeues pad. Every component then needs a shape of known rank. Where a dim is
 * unknown (negative), a batch is as large as the largest of its items, and shorter items are
 * followed by zeros, false or empty strings. Single items are never padded. Works with any order.
 */
enum weir_tensor_queue_flags { WEIR_TENSOR_QUEUE_PADDING = 65536 };

struct weir_tensor_component {
	enum weir_dtype dtype;
	/*
	 * The shape of one item; its rank is below WEIR_MAX_RANK. A negative dim is unknown: any size
	 * fits, and the queue has batch dequeues only if it pads. NULL: any shape fits, and there are
	 * no batch calls.
	 */
	const weir_shape *shape;
	const char *name; /* NULL: its number, in messages */
};

struct weir_tensor_queue_options {
	size_t struct_size; /* WEIR_TENSOR_QUEUE_OPTIONS_INIT sets it */
	size_t capacity;    /* tuples; bounds as in weir/queue.h */
	enum weir_queue_order order;
	uint32_t flags; /* WEIR_QUEUE_FAIR, WEIR_QUEUE_BATCHES, WEIR_TENSOR_QUEUE_PADDING */
	size_t min_after_dequeue;
	uint64_t seed;
	const char *name;
	/*
	 * Copied. All have a shape, or none has. In WEIR_QUEUE_PRIORITY order, component 0 is the
	 * priority, an i64 scalar, and the rule on shapes holds for the others. The smallest priority
	 * leaves first, equal ones in FIFO order; the tuples of a batch have that order too.
	 */
	const struct weir_tensor_component *components;
	size_t component_count; /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	const weir_allocator *allocator;
};
#define WEIR_TENSOR_QUEUE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_tensor_queue_options)

/*
 * Creates a queue. The capacity is always a bound; there is no value for "unbounded".
 *
 * Errors: as for weir_queue_create(), and WEIR_INVALID_ARGUMENT if a component has an invalid dtype
 * or shape, or a name that is empty, too long or repeated; or if it has no shape although the queue
 * pads or another component has one.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_create(const struct weir_tensor_queue_options *options,
                                                   weir_tensor_queue **out, weir_error *error);

/*
 * Destroys the queue, as weir_queue_destroy(), and releases the tensors in it. A completion that
 * runs within an enqueue, dequeue or select on this queue (other than a start) gets
 * WEIR_FAILED_PRECONDITION too, because that call still needs the queue.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_destroy(weir_tensor_queue *queue, weir_error *error);

/*
 * Enqueues a tuple of component_count tensors. The queue takes its own references; the caller keeps
 * its own, whatever the outcome.
 *
 * Errors: as for weir_queue_enqueue(), and WEIR_INVALID_ARGUMENT if the count, a dtype or a shape
 * does not match the spec; the message names the component, what was expected and what was given.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_enqueue(weir_tensor_queue *queue,
                                                    weir_tensor *const tuple[], size_t count,
                                                    uint64_t deadline_ns, weir_cancel *cancel,
                                                    weir_error *error);

/*
 * Enqueues the n rows of tensors [n, shape...] one by one, without a copy. *done (may be NULL) is
 * the number of rows enqueued. 0 rows succeed immediately. Errors as for
 * weir_tensor_queue_enqueue().
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_enqueue_many(weir_tensor_queue *queue,
                                                         weir_tensor *const tuple[], size_t count,
                                                         uint64_t deadline_ns, weir_cancel *cancel,
                                                         size_t *done, weir_error *error);

/*
 * Dequeues a tuple into tuple[0 .. count-1]; the caller owns the references. On failure tuple[] is
 * untouched. Errors: as for weir_queue_dequeue(), and WEIR_INVALID_ARGUMENT if count is not the
 * number of components.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_dequeue(weir_tensor_queue *queue, weir_tensor *tuple[],
                                                    size_t count, uint64_t deadline_ns,
                                                    weir_cancel *cancel, weir_error *error);

/*
 * Dequeues n tuples, stacked into tensors [n, shape...]. n = 0 gives tensors without rows; unknown
 * dims are then 0. On failure every item returns to the queue, in order.
 *
 * Errors: as for weir_tensor_queue_dequeue(), and WEIR_INVALID_ARGUMENT if n is above INT64_MAX,
 * the queue has no shapes, or it has unknown dims and does not pad ("specified shapes"). If the
 * queue is closed and a call has no memory to stack the items (WEIR_RESOURCE_EXHAUSTED), another
 * consumer may have got WEIR_OUT_OF_RANGE just before the items returned.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_dequeue_many(weir_tensor_queue *queue, size_t n,
                                                         weir_tensor *tuple[], size_t count,
                                                         uint64_t deadline_ns, weir_cancel *cancel,
                                                         weir_error *error);

/*
 * Like weir_tensor_queue_dequeue_many(), but a closed queue gives the k tuples that remain, 1 <= k
 * <= n, as tensors [k, shape...].
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_dequeue_up_to(weir_tensor_queue *queue, size_t n,
                                                          weir_tensor *tuple[], size_t count,
                                                          uint64_t deadline_ns, weir_cancel *cancel,
                                                          weir_error *error);

/*
 * Enqueues as many of the n rows of tensors [n, shape...] as there is room for now, from the first
 * on, without a copy: *done of them. Succeeds if at least one row went in, or n is 0.
 *
 * Errors, with *done 0: WEIR_WOULD_BLOCK if the queue is full, WEIR_CANCELLED if it is closed,
 * WEIR_RESOURCE_EXHAUSTED. WEIR_INVALID_ARGUMENT as for weir_tensor_queue_enqueue_many(), or if
 * `done` is NULL; *done is then untouched. *done is written last, so it must outlive the completions
 * that the call runs.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_try_enqueue_many(weir_tensor_queue *queue,
                                                             weir_tensor *const tuple[],
                                                             size_t count, size_t *done,
                                                             weir_error *error);

/*
 * Dequeues the k tuples that are there now, 1 <= k <= n, stacked into tensors [k, shape...]. n = 0
 * gives tensors without rows. On failure tuple[] is untouched; if the tuples cannot be stacked they
 * return to the queue, in order.
 *
 * Errors: WEIR_WOULD_BLOCK if no tuple may leave now, WEIR_OUT_OF_RANGE if the queue is drained;
 * WEIR_INVALID_ARGUMENT and WEIR_RESOURCE_EXHAUSTED as for weir_tensor_queue_dequeue_many().
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_try_dequeue_many(weir_tensor_queue *queue, size_t n,
                                                             weir_tensor *tuple[], size_t count,
                                                             weir_error *error);

/*
 * The completion of an asynchronous operation; it is called exactly once. After a successful
 * dequeue, `tuple` has `count` tensors whose references the callee owns (it does not own the
 * array). Otherwise tuple is NULL and count 0. The rules of weir_queue_done_fn (weir/queue.h)
 * apply; for when it may destroy the queue see weir_tensor_queue_destroy().
 */
typedef void weir_tensor_queue_done_fn(void *context, enum weir_status status,
                                       const weir_error *error, weir_tensor *const tuple[],
                                       size_t count);

/*
 * The calls above as asynchronous operations, which hold no thread while they wait. For the handle,
 * the completion and cancelling see weir_queue_start().
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_start_enqueue(weir_tensor_queue *queue,
                                                          weir_tensor *const tuple[], size_t count,
                                                          weir_tensor_queue_done_fn *done,
                                                          void *context, weir_pending **handle,
                                                          weir_error *error);
WEIR_API enum weir_status weir_tensor_queue_start_enqueue_many(
	weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
	weir_tensor_queue_done_fn *done, void *context, weir_pending **handle, weir_error *error);
WEIR_API enum weir_status weir_tensor_queue_start_dequeue(weir_tensor_queue *queue,
                                                          weir_tensor_queue_done_fn *done,
                                                          void *context, weir_pending **handle,
                                                          weir_error *error);
/* kind is WEIR_QUEUE_OP_DEQUEUE_MANY or WEIR_QUEUE_OP_DEQUEUE_UP_TO. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_start_dequeue_many(
	weir_tensor_queue *queue, enum weir_queue_op_kind kind, size_t n,
	weir_tensor_queue_done_fn *done, void *context, weir_pending **handle, weir_error *error);

/* See weir_queue_close(). @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_close(weir_tensor_queue *queue,
                                                  enum weir_close_mode mode,
                                                  const weir_error *cause);
/* Descriptors for an event loop: see weir_queue_readable_fd() and _writable_fd(). @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_readable_fd(weir_tensor_queue *queue, int *fd,
                                                        weir_error *error);
WEIR_API enum weir_status weir_tensor_queue_writable_fd(weir_tensor_queue *queue, int *fd,
                                                        weir_error *error);
/* See weir_queue_closed(), _size_approx() and _capacity(); 0 for NULL. @since 0.1 */
WEIR_API bool weir_tensor_queue_closed(const weir_tensor_queue *queue);
WEIR_API size_t weir_tensor_queue_size_approx(const weir_tensor_queue *queue);
WEIR_API size_t weir_tensor_queue_capacity(const weir_tensor_queue *queue);
/* See weir_queue_get_stats(); items are tuples. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_get_stats(weir_tensor_queue *queue,
                                                      struct weir_queue_stats *stats);
/* See weir_queue_seed() and _name(). @since 0.1 */
WEIR_API uint64_t weir_tensor_queue_seed(const weir_tensor_queue *queue);
WEIR_API const char *weir_tensor_queue_name(const weir_tensor_queue *queue);
/* The number of tensors in a tuple; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_tensor_queue_component_count(const weir_tensor_queue *queue);

/*
 * Reads component i as given at creation. Its shape and name are NULL if there were none, and are
 * valid as long as the queue. Errors: WEIR_OUT_OF_RANGE if there is no such component,
 * WEIR_INVALID_ARGUMENT (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_component(const weir_tensor_queue *queue, size_t i,
                                                      struct weir_tensor_component *out);

struct weir_named_tensor {
	const char *name;
	weir_tensor *tensor;
};

/*
 * Puts tensors that are given by name, in any order, into the order of the queue's components.
 * tuple[0 .. tuple_count-1] is then an argument for the enqueue calls. No reference is taken.
 *
 * Errors: WEIR_INVALID_ARGUMENT if a component is missing or given twice, no component has a given
 * name, not all components of the queue have names, tuple_count is not their number, or an argument
 * is NULL. The message explains it by name.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_arrange(const weir_tensor_queue *queue,
                                                    const struct weir_named_tensor named[],
                                                    size_t count, weir_tensor *tuple[],
                                                    size_t tuple_count, weir_error *error);

/* -- queues by name -- */

/*
 * The type of tensor queues in a store: weir_resource_object() is a weir_tensor_queue.
 * @since 0.1
 */
WEIR_API const struct weir_resource_type *weir_tensor_queue_type(void);

/*
 * Finds the queue of that name, or creates it with the options. If the options have no name, the
 * queue gets this one. *out is a reference to the resource; the queue is
 * weir_resource_object(*out). The queue is destroyed with its last reference, stored items
 * included, so an operation that waits in it must hold a reference. Otherwise the queue's memory is
 * never freed.
 *
 * Errors: as for weir_tensor_queue_create() and weir_store_find_or_create(), and
 * WEIR_INVALID_ARGUMENT if the existing queue differs. The message names the first property that
 * differs (order and padding, flags, capacity, min_after_dequeue, seed, number of components;
 * dtype, shape or name of a component), what it is and what was requested. A requested seed of 0
 * matches any. If the queue pads, an unknown dim matches any size.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_find_or_create(
	weir_store *store, const char *container, const char *name,
	const struct weir_tensor_queue_options *options, weir_resource **out, weir_error *error);

/* -- producers and consumers -- */

/* As weir_queue_announce(). weir_queue_withdraw() withdraws it. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_announce(weir_tensor_queue *queue,
                                                     enum weir_queue_role role, const char *as,
                                                     weir_queue_announcement **out,
                                                     weir_error *error);
/* Binds a queue runner to the queue, as weir_queue_runner_bind(). @since 0.1 */
WEIR_API void weir_tensor_queue_bind_runner(weir_tensor_queue *queue,
                                            struct weir_queue_runner_options *options);

/* -- one of several queues -- */

typedef struct weir_tensor_queue_list weir_tensor_queue_list;

enum weir_tensor_queue_list_limits { WEIR_TENSOR_QUEUE_LIST_MAX = 65536 };

/*
 * Creates a list of 1 .. WEIR_TENSOR_QUEUE_LIST_MAX queues, one of which is chosen by its index.
 * The components of the queues must agree in number, dtypes and names. The queues are borrowed and
 * must outlive the list; the array is copied.
 *
 * Errors: WEIR_INVALID_ARGUMENT if there are no queues, one is NULL, or they do not agree; the
 * message says where they differ, and what each of them has. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_list_create(weir_tensor_queue *const queues[],
                                                        size_t count,
                                                        const weir_allocator *allocator,
                                                        weir_tensor_queue_list **out,
                                                        weir_error *error);
/* Destroys the list. No other thread may use it. Accepts NULL. Never fails. @since 0.1 */
WEIR_API enum weir_status weir_tensor_queue_list_destroy(weir_tensor_queue_list *list,
                                                         weir_error *error);

/*
 * Gives the queue with that index. Errors: WEIR_INVALID_ARGUMENT: "index 3 is not in [0, 3)", or
 * NULL.
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_list_at(const weir_tensor_queue_list *list,
                                                    int64_t index, weir_tensor_queue **out,
                                                    weir_error *error);
/* The number of tensors in a tuple of these queues; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_tensor_queue_list_component_count(const weir_tensor_queue_list *list);

/*
 * Reads what holds for component i of every queue in the list. A dim in which they differ is
 * unknown. The shape is NULL if their ranks differ or one has no shape. Errors as
 * weir_tensor_queue_component().
 * @since 0.1
 */
WEIR_API enum weir_status weir_tensor_queue_list_component(const weir_tensor_queue_list *list,
                                                           size_t i,
                                                           struct weir_tensor_component *out);

WEIR_END_DECLS

#endif
