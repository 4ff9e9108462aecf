/*
 * map_staging.h - a map staging area: tuples of tensors put ahead of their use under a key, whole or in parts, bounded by
 * number and by bytes.
 *
 * Use it where the consumer asks for a tuple by its key, or where the parts of a tuple are put, or are wanted, at different
 * times. Where tuples leave in the order in which they came use weir/staging.h; where many keys go in or out at one instant,
 * weir/barrier.h.
 *
 * | call                            | threads | progress                                  | blocks on                       | allocates | signal-safe |
 * |---------------------------------|---------|-------------------------------------------|---------------------------------|-----------|-------------|
 * | weir_map_staging_create         | any     | lock-free + allocator                     | allocator                       | yes       | no          |
 * | weir_map_staging_destroy        | one, last | lock-free + allocator                   | nothing                         | at a thread's first use of Weir | no |
 * | weir_map_staging_put            | any     | lock-free + allocator while there is room | room, up to the deadline        | yes       | no          |
 * | weir_map_staging_get            | any     | lock-free + allocator while the key is complete | the key, up to the deadline | yes     | no          |
 * | weir_map_staging_get_any        | any     | lock-free + allocator while a key is complete | a key, up to the deadline   | yes       | no          |
 * | weir_map_staging_peek           | any     | lock-free while the key is complete       | the key, up to the deadline     | when it waits | no      |
 * | weir_map_staging_start_put, _get, _get_any, _peek | any | lock-free + allocator       | nothing                         | yes       | no          |
 * | weir_map_staging_op_cancel      | any     | lock-free + the completion                | nothing                         | at a thread's first use of Weir | no |
 * | weir_map_staging_op_release     | any     | wait-free + allocator                     | nothing                         | no        | no          |
 * | weir_map_staging_clear          | any     | lock-free + allocator                     | nothing                         | yes       | no          |
 * | weir_map_staging_look           | any     | lock-free                                 | nothing                         | at a thread's first use of Weir | no |
 * | weir_map_staging_place, _key_of | any     | wait-free                                 | nothing                         | no        | yes         |
 *
 * Linearizable, sizes and bytes included: each call takes effect at one instant. A thread that is stopped inside a call holds
 * up nobody who does not wait, and of those who wait the one operation that it was carrying on at that moment. Waiters are
 * served in arrival order, as far as what each waits for allows; a newcomer that need not wait does not wait behind them. A
 * change costs an attempt for each that waits.
 *
 * There is nothing to close: an area lives as long as its users, and waits end by deadline, token or handle. Ordering: what was
 * written before a put is visible to whoever gets or peeks what it brought. Source: the map staging areas of the reference,
 * with every wait made cancellable; get_any gives the smallest key, always.
 */
#ifndef WEIR_MAP_STAGING_H
#define WEIR_MAP_STAGING_H

#include <weir/tensor_queue.h>

WEIR_BEGIN_DECLS

typedef struct weir_map_staging weir_map_staging;
typedef struct weir_map_staging_op weir_map_staging_op;

struct weir_map_staging_options {
	size_t struct_size;  /* sizeof(struct weir_map_staging_options) */
	size_t capacity;     /* complete keys; 0: no bound. While so many are there, every put waits */
	size_t memory_limit; /* bytes of all tensors' data, incomplete keys' too; 0: no bound */
	uint32_t flags;      /* must be 0 */
	const char *name;    /* copied, for messages; NULL: "map staging area" */
	const struct weir_tensor_component *components; /* copied; as of a tensor queue: shapes may be unknown in part */
	size_t component_count;                         /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	const weir_allocator
		*allocator; /* NULL: the default one. Its memory may come back after the area is destroyed: weir/reclaim.h */
};

/*
 * WEIR_INVALID_ARGUMENT (NULL, bad component, unknown flag, bad struct_size; *error says which), WEIR_RESOURCE_EXHAUSTED. error
 * may be NULL, here and everywhere. @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_create(const struct weir_map_staging_options *options,
                                                  weir_map_staging **out, weir_error *error);
/*
 * WEIR_FAILED_PRECONDITION, and nothing happens, while an operation waits. Otherwise what is inside is released. No other
 * thread may be using the area. NULL: WEIR_OK.
 * WEIR_RESOURCE_EXHAUSTED: no memory for this thread's record. @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_destroy(weir_map_staging *map, weir_error *error);

/*
 * In all calls below tensors[i] is that of component places[i], for i < count; each place once, in any order. places NULL: all
 * components, in their order, and count is their number.
 *
 * Gives the key these components; it is complete when it has all. Waits while `capacity` keys are complete, or memory_limit
 * would be exceeded. The area takes its own references; the caller keeps his, whatever the outcome. At once:
 * WEIR_INVALID_ARGUMENT (NULL; a bad place or count; a tensor that differs from the spec; a component that the key has already;
 * a key that is complete, until all of it is taken: the message says what was expected and what came) and
 * WEIR_RESOURCE_EXHAUSTED (the key would be larger than memory_limit by itself; want of memory). WEIR_DEADLINE_EXCEEDED
 * (deadline_ns is absolute; 0: at once); WEIR_CANCELLED (`cancel`, may be NULL, fired). @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_put(weir_map_staging *map, int64_t key, const size_t places[],
                                               weir_tensor *const tensors[], size_t count, uint64_t deadline_ns,
                                               weir_cancel *cancel, weir_error *error);
/*
 * Takes these components of the key, or waits until it is complete; tensors[0 .. count-1] are then the caller's references. The
 * key is gone with its last component; until then WEIR_INVALID_ARGUMENT for one that was taken before. Errors else as above;
 * tensors[] is untouched on any failure, and nothing was taken. @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_get(weir_map_staging *map, int64_t key, const size_t places[],
                                               weir_tensor *tensors[], size_t count, uint64_t deadline_ns,
                                               weir_cancel *cancel, weir_error *error);
/*
 * As weir_map_staging_get, of the smallest key that is complete, or waits for any; *key says which. That may be one of which
 * something was taken before: WEIR_INVALID_ARGUMENT if it was one of these components. @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_get_any(weir_map_staging *map, const size_t places[], int64_t *key,
                                                   weir_tensor *tensors[], size_t count, uint64_t deadline_ns,
                                                   weir_cancel *cancel, weir_error *error);
/* As weir_map_staging_get, and all stays. @since 0.1 */
WEIR_API enum weir_status weir_map_staging_peek(weir_map_staging *map, int64_t key, const size_t places[],
                                                weir_tensor *tensors[], size_t count, uint64_t deadline_ns,
                                                weir_cancel *cancel, weir_error *error);

/*
 * The one completion of an asynchronous operation, on the thread that made it possible (or inside the starting call). Of a get
 * or peek that is WEIR_OK, the references in tensors[0 .. count-1] are the receiver's, the array is not, and `key` is theirs;
 * otherwise count is 0. weir_queue_done_fn (weir/queue.h) says what it may do: start the next one, any number of times, or
 * destroy the area.
 */
typedef void weir_map_staging_done_fn(void *context, enum weir_status status, const weir_error *error, int64_t key,
                                      weir_tensor **tensors, size_t count);
/*
 * The same operations, holding no thread while they wait. *op (out may be NULL) is the caller's until
 * weir_map_staging_op_release, and serves to cancel. When the call itself fails (WEIR_INVALID_ARGUMENT,
 * WEIR_RESOURCE_EXHAUSTED) `done` is not called. @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_start_put(weir_map_staging *map, int64_t key, const size_t places[],
                                                     weir_tensor *const tensors[], size_t count,
                                                     weir_map_staging_done_fn *done, void *context,
                                                     weir_map_staging_op **op, weir_error *error);
WEIR_API enum weir_status weir_map_staging_start_get(weir_map_staging *map, int64_t key, const size_t places[],
                                                     size_t count, weir_map_staging_done_fn *done, void *context,
                                                     weir_map_staging_op **op, weir_error *error);
WEIR_API enum weir_status weir_map_staging_start_get_any(weir_map_staging *map, const size_t places[], size_t count,
                                                         weir_map_staging_done_fn *done, void *context,
                                                         weir_map_staging_op **op, weir_error *error);
WEIR_API enum weir_status weir_map_staging_start_peek(weir_map_staging *map, int64_t key, const size_t places[],
                                                      size_t count, weir_map_staging_done_fn *done, void *context,
                                                      weir_map_staging_op **op, weir_error *error);
/* Ends it with WEIR_CANCELLED unless it is completing already. Never blocks; idempotent. Accepts NULL. @since 0.1 */
WEIR_API void weir_map_staging_op_cancel(weir_map_staging_op *op);
/* Gives the handle back; the operation itself goes on. Accepts NULL. @since 0.1 */
WEIR_API void weir_map_staging_op_release(weir_map_staging_op *op);

/*
 * Releases all that is inside, incomplete keys too, at one instant; puts that waited for room go on. WEIR_INVALID_ARGUMENT
 * (NULL), WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_clear(weir_map_staging *map);
/*
 * How many keys are complete (or were, and something of them is still there), how many incomplete, and how many bytes the
 * tensors of all hold, at one instant; each may be NULL. WEIR_INVALID_ARGUMENT (map NULL), WEIR_RESOURCE_EXHAUSTED (no memory
 * for this thread's record). @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_look(const weir_map_staging *map, size_t *complete, size_t *incomplete,
                                                size_t *bytes);
/* Which place the component of that name has. WEIR_NOT_FOUND; WEIR_INVALID_ARGUMENT (NULL). @since 0.1 */
WEIR_API enum weir_status weir_map_staging_place(const weir_map_staging *map, const char *component, size_t *place);
/*
 * The key that a tensor holds, for those who have keys as tensors. WEIR_INVALID_ARGUMENT (NULL; not i64 of shape []: the
 * message says what came). @since 0.1
 */
WEIR_API enum weir_status weir_map_staging_key_of(const weir_map_staging *map, const weir_tensor *tensor, int64_t *key,
                                                  weir_error *error);

WEIR_END_DECLS

#endif
