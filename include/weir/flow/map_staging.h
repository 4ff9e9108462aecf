/*
 * map_staging.h - a map staging area: tuples of tensors by key, whole or in parts, bounded.
 *
 * Use it if the consumer asks for a tuple by its key, or if the parts of a tuple are put, or
 * wanted, at different times. It is bounded by number and by bytes. If tuples leave in FIFO order,
 * use weir/flow/staging.h. If many keys enter or leave at one instant, use weir/flow/keyed_join.h.
 *
 * | call                 | threads | progress              | blocks on | allocates  | signal-safe |
 * |----------------------|---------|-----------------------|-----------|------------|-------------|
 * | weir_map_staging_create | any  | lock-free + allocator | allocator | yes        | no          |
 * | weir_map_staging_destroy | one, last | lock-free + allocator | nothing | record (1) | no      |
 * | weir_map_staging_put | any     | lock-free + allocator (2) | room (3) | yes     | no          |
 * | weir_map_staging_get | any     | lock-free + allocator (2) | the key (3) | yes  | no          |
 * | weir_map_staging_get_any | any | lock-free + allocator (2) | a key (3) | yes    | no          |
 * | weir_map_staging_peek | any    | lock-free (2)         | the key (3) | to wait  | no          |
 * | weir_map_staging_start_put, _get | any | lock-free + allocator | nothing | yes  | no          |
 * | weir_map_staging_start_get_any, _peek | any | lock-free + allocator | nothing | yes | no      |
 * | weir_map_staging_clear | any   | lock-free + allocator | nothing   | yes        | no          |
 * | weir_map_staging_size | any    | lock-free             | nothing   | record (1) | no          |
 * | weir_map_staging_place, _key_of | any | wait-free      | nothing   | no         | yes         |
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
 * An area cannot be closed: it lives as long as its users, and waits end by deadline, token or
 * handle.
 *
 * Ordering. What a thread wrote before a put is visible to the thread that gets or peeks its
 * tensors.
 *
 * Source: the map staging areas of TensorFlow 1.x, here with waits that can be cancelled;
 * weir_map_staging_get_any() always gives the smallest key.
 */
#ifndef WEIR_MAP_STAGING_H
#define WEIR_MAP_STAGING_H

#include <weir/pending.h>
#include <weir/flow/tensor_queue.h>

WEIR_BEGIN_DECLS

typedef struct weir_map_staging weir_map_staging;

struct weir_map_staging_options {
	size_t struct_size;  /* WEIR_MAP_STAGING_OPTIONS_INIT sets it */
	size_t capacity;     /* complete keys; 0: no bound. While there are so many, every put waits */
	size_t memory_limit; /* bytes of all tensors' data, incomplete keys included; 0: no bound */
	uint32_t flags;      /* must be 0 */
	const char *name;    /* copied, for messages; NULL: "map staging area" */
	/* copied; as in a tensor queue; dims may be unknown */
	const struct weir_tensor_component *components;
	size_t component_count; /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	/*
	 * NULL: the default allocator. It may get memory back after the area is destroyed:
	 * weir/reclaim.h
	 */
	const weir_allocator *allocator;
};
#define WEIR_MAP_STAGING_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_map_staging_options)

/*
 * Creates an area. error may be NULL, here and everywhere. Errors: WEIR_INVALID_ARGUMENT if an
 * argument is NULL, a component or struct_size is wrong, or a flag is unknown; *error says which.
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_create(const struct weir_map_staging_options *options,
                                                  weir_map_staging **out, weir_error *error);

/*
 * Destroys the area and releases the tensors in it. No other thread may use it. Accepts NULL.
 * Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while an operation waits.
 * WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_destroy(weir_map_staging *map, weir_error *error);

/*
 * In all calls below tensors[i] is the tensor of component places[i], for i < count. Each place
 * occurs once, in any order. If places is NULL, the tensors are those of all components, in their
 * order, and count is their number.
 *
 * Puts components of a key. The key is complete when it has all its components. The call waits
 * while `capacity` keys are complete, or while the tensors would exceed memory_limit. The area
 * takes its own references; the caller keeps its own, whatever the outcome.
 *
 * Errors:
 * - Immediately, WEIR_INVALID_ARGUMENT if an argument is NULL, a place or count is wrong, a tensor
 *   does not match the spec, the key already has a component, or the key is complete and not yet
 *   taken entirely. The message says what was expected and what was given.
 * - Immediately, WEIR_RESOURCE_EXHAUSTED if the key alone would be larger than memory_limit, or
 *   there is no memory.
 * - WEIR_DEADLINE_EXCEEDED (deadline_ns is absolute; 0: immediately).
 * - WEIR_CANCELLED if `cancel` (may be NULL) fired.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_put(weir_map_staging *map, int64_t key,
                                               const size_t places[], weir_tensor *const tensors[],
                                               size_t count, uint64_t deadline_ns,
                                               weir_cancel *cancel, weir_error *error);

/*
 * Takes components of a key, or waits until the key is complete. The caller owns the references in
 * tensors[0 .. count-1]. The key is removed with its last component. Until then, the error for a
 * component that was taken before is WEIR_INVALID_ARGUMENT. Other errors as for
 * weir_map_staging_put(). On failure tensors[] is untouched and nothing was taken.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_get(weir_map_staging *map, int64_t key,
                                               const size_t places[], weir_tensor *tensors[],
                                               size_t count, uint64_t deadline_ns,
                                               weir_cancel *cancel, weir_error *error);

/*
 * Like weir_map_staging_get(), for the smallest complete key, which it stores in *key. If no key is
 * complete, the call waits for one. Components of that key may have been taken before; if one of
 * the requested components was, the status is WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_get_any(weir_map_staging *map, const size_t places[],
                                                   int64_t *key, weir_tensor *tensors[],
                                                   size_t count, uint64_t deadline_ns,
                                                   weir_cancel *cancel, weir_error *error);
/* Like weir_map_staging_get(), but the components stay in the area. @since 0.1 */
WEIR_API enum weir_status weir_map_staging_peek(weir_map_staging *map, int64_t key,
                                                const size_t places[], weir_tensor *tensors[],
                                                size_t count, uint64_t deadline_ns,
                                                weir_cancel *cancel, weir_error *error);

/*
 * The completion of an asynchronous operation. It is called exactly once, on the thread that made
 * the operation possible, or inside the starting call. After a get or peek with WEIR_OK, the callee
 * owns the references in tensors[0 .. count-1], but not the array, and `key` is their key;
 * otherwise count is 0. The rules of weir_queue_done_fn (weir/queue.h) apply: it may start the next
 * operation, any number of times, or destroy the area.
 */
typedef void weir_map_staging_done_fn(void *context, enum weir_status status,
                                      const weir_error *error, int64_t key, weir_tensor **tensors,
                                      size_t count);

/*
 * The operations above; they hold no thread while they wait. *handle (may be NULL) is a handle to
 * cancel with; the caller gives it back with weir_pending_release(). If this call itself fails
 * (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED), `done` is not called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_start_put(weir_map_staging *map, int64_t key,
                                                     const size_t places[],
                                                     weir_tensor *const tensors[], size_t count,
                                                     weir_map_staging_done_fn *done, void *context,
                                                     weir_pending **handle, weir_error *error);
WEIR_API enum weir_status weir_map_staging_start_get(weir_map_staging *map, int64_t key,
                                                     const size_t places[], size_t count,
                                                     weir_map_staging_done_fn *done, void *context,
                                                     weir_pending **handle, weir_error *error);
WEIR_API enum weir_status weir_map_staging_start_get_any(weir_map_staging *map,
                                                         const size_t places[], size_t count,
                                                         weir_map_staging_done_fn *done,
                                                         void *context, weir_pending **handle,
                                                         weir_error *error);
WEIR_API enum weir_status weir_map_staging_start_peek(weir_map_staging *map, int64_t key,
                                                      const size_t places[], size_t count,
                                                      weir_map_staging_done_fn *done, void *context,
                                                      weir_pending **handle, weir_error *error);

/*
 * Releases all tensors, those of incomplete keys included, at one instant; waiting puts then
 * proceed. Errors: WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_clear(weir_map_staging *map);

/*
 * Gives three numbers of one instant: the complete keys (those partly taken included), the
 * incomplete keys, and the bytes of all tensors. Each pointer may be NULL. Errors:
 * WEIR_INVALID_ARGUMENT (map NULL), WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's
 * record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_size(const weir_map_staging *map, size_t *complete,
                                                size_t *incomplete, size_t *bytes);

/*
 * Gives the place of the component with that name. Errors: WEIR_NOT_FOUND, WEIR_INVALID_ARGUMENT
 * (NULL).
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_place(const weir_map_staging *map, const char *component,
                                                 size_t *place);

/*
 * Gives the key that a tensor holds, for callers that have keys as tensors. Errors:
 * WEIR_INVALID_ARGUMENT if an argument is NULL or the tensor is not an i64 scalar; the message says
 * what was given.
 * @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_key_of(const weir_map_staging *map,
                                                  const weir_tensor *tensor, int64_t *key,
                                                  weir_error *error);

WEIR_END_DECLS

#endif
