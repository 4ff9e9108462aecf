/*
 * staging.h - a staging area: tuples of tensors in FIFO order, bounded by number and by bytes.
 *
 * Use it between a producer that prepares data and a consumer one step behind, if the bound is
 * memory or a thread must look at staged tuples without taking them. Otherwise use
 * weir/flow/tensor_queue.h, which is much faster: each change of a staging area publishes a new
 * version of it, in a few small allocations.
 *
 * | call              | threads  | progress              | blocks on   | allocates  | signal-safe |
 * |-------------------|----------|-----------------------|-------------|------------|-------------|
 * | weir_staging_create | any    | lock-free + allocator | allocator   | yes        | no          |
 * | weir_staging_destroy | one, last | lock-free + allocator | nothing | record (1) | no          |
 * | weir_staging_put  | any      | lock-free + allocator (2) | room (3) | yes       | no          |
 * | weir_staging_get  | any      | lock-free + allocator (2) | a tuple (3) | yes    | no          |
 * | weir_staging_peek | any      | lock-free (2)         | the tuple (3) | to wait  | no          |
 * | weir_staging_start_put, _get, _peek | any | lock-free + allocator | nothing | yes | no        |
 * | weir_staging_clear | any     | lock-free + allocator | nothing     | yes        | no          |
 * | weir_staging_place | any     | wait-free             | nothing     | no         | yes         |
 * | weir_staging_size | any      | lock-free             | nothing     | record (1) | no          |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) Unless it waits.
 * (3) Up to the deadline.
 *
 * All calls are linearizable, sizes and bytes included: each takes effect at one instant.
 *
 * Stalled threads. A thread that is stalled inside a call delays no call that does not wait, and at
 * most the one waiting operation that it was completing. If the thread has changed the area but has
 * not yet reached all operations that can now proceed, those wait until the next change, their
 * deadline or their token.
 *
 * Waiting. Waiters are served in arrival order, as far as their conditions allow. A newcomer that
 * need not wait does not wait behind them. Each change costs one attempt per waiter.
 *
 * An area cannot be closed: it lives as long as its users, and waits end by deadline or token.
 *
 * Ordering. What a thread wrote before a put is visible to the thread that gets or peeks the tuple.
 *
 * Source: the staging area of TensorFlow 1.x, here with waits that can be cancelled.
 */
#ifndef WEIR_STAGING_H
#define WEIR_STAGING_H

#include <weir/pending.h>
#include <weir/flow/tensor_queue.h>

WEIR_BEGIN_DECLS

typedef struct weir_staging weir_staging;

struct weir_staging_options {
	size_t struct_size; /* WEIR_STAGING_OPTIONS_INIT sets it */
	size_t capacity;    /* tuples; 0: no bound */
	/* bytes of the tensors' data (weir_tensor_byte_count); 0: no bound */
	size_t memory_limit;
	uint32_t flags;   /* must be 0 */
	const char *name; /* copied, for messages; NULL: "staging area" */
	/* copied; as in a tensor queue; dims may be unknown */
	const struct weir_tensor_component *components;
	size_t component_count; /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	/*
	 * NULL: the default allocator. It may get memory back after the area is destroyed:
	 * weir/reclaim.h
	 */
	const weir_allocator *allocator;
};
#define WEIR_STAGING_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_staging_options)

/*
 * Creates an area. error may be NULL, here and everywhere. Errors: WEIR_INVALID_ARGUMENT if an
 * argument is NULL, a component or struct_size is wrong, or a flag is unknown; *error says which.
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_create(const struct weir_staging_options *options,
                                              weir_staging **out, weir_error *error);

/*
 * Destroys the area and releases the tuples in it. No other thread may use it. Accepts NULL.
 * Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while an operation waits.
 * WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_destroy(weir_staging *staging, weir_error *error);

/*
 * Puts a tuple after the others. Waits while the tuple would exceed capacity or memory_limit. The
 * area takes its own references; the caller keeps its own, whatever the outcome.
 *
 * Errors: WEIR_RESOURCE_EXHAUSTED, immediately, if the tuple alone is larger than memory_limit or
 * there is no memory. WEIR_DEADLINE_EXCEEDED (deadline_ns is absolute; 0: immediately).
 * WEIR_CANCELLED if `cancel` (may be NULL) fired. WEIR_INVALID_ARGUMENT if an argument is NULL or
 * the tuple does not match the spec; the message names the component, what was expected and what
 * was given.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_put(weir_staging *staging, weir_tensor *const tuple[],
                                           size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                                           weir_error *error);

/*
 * Takes the oldest tuple, or waits for one. The caller owns the references in tuple[0 .. count-1].
 * On failure tuple[] is untouched. Errors: WEIR_INVALID_ARGUMENT if count is not the number of
 * components (nothing was taken), and as weir_staging_put().
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_get(weir_staging *staging, weir_tensor *tuple[],
                                           size_t count, uint64_t deadline_ns, weir_cancel *cancel,
                                           weir_error *error);

/*
 * Like weir_staging_get(), for the tuple at position `index` from the front (0: the oldest), which
 * stays in the area. Waits until the area has index + 1 tuples.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_peek(weir_staging *staging, size_t index,
                                            weir_tensor *tuple[], size_t count,
                                            uint64_t deadline_ns, weir_cancel *cancel,
                                            weir_error *error);

/*
 * The completion of an asynchronous operation. It is called exactly once, on the thread that made
 * the operation possible, or inside the starting call. After a get or peek with WEIR_OK, the callee
 * owns the references in tuple[0 .. count-1], but not the array; otherwise count is 0. The rules of
 * weir_queue_done_fn (weir/queue.h) apply: it may start the next operation, any number of times, or
 * destroy the area.
 */
typedef void weir_staging_done_fn(void *context, enum weir_status status, const weir_error *error,
                                  weir_tensor **tuple, size_t count);

/*
 * The operations above; they hold no thread while they wait. *handle (may be NULL) is a handle to
 * cancel with; the caller gives it back with weir_pending_release(). If this call itself fails
 * (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED), `done` is not called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_start_put(weir_staging *staging, weir_tensor *const tuple[],
                                                 size_t count, weir_staging_done_fn *done,
                                                 void *context, weir_pending **handle,
                                                 weir_error *error);
WEIR_API enum weir_status weir_staging_start_get(weir_staging *staging, weir_staging_done_fn *done,
                                                 void *context, weir_pending **handle,
                                                 weir_error *error);
WEIR_API enum weir_status weir_staging_start_peek(weir_staging *staging, size_t index,
                                                  weir_staging_done_fn *done, void *context,
                                                  weir_pending **handle, weir_error *error);

/*
 * Releases all tuples at one instant; waiting puts then proceed. Errors: WEIR_INVALID_ARGUMENT
 * (NULL), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_clear(weir_staging *staging);

/*
 * Gives the number of tuples and the bytes of their tensors at one instant; either may be NULL.
 * Errors: WEIR_INVALID_ARGUMENT (staging NULL), WEIR_RESOURCE_EXHAUSTED if there is no memory for
 * this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_size(const weir_staging *staging, size_t *size,
                                            size_t *bytes);

/*
 * Gives the place in a tuple of the component with that name. Errors: WEIR_NOT_FOUND,
 * WEIR_INVALID_ARGUMENT (NULL). Wait-free.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_place(const weir_staging *staging, const char *component,
                                             size_t *place);

WEIR_END_DECLS

#endif
