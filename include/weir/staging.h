/*
 * staging.h - a staging area: tuples of tensors put ahead of their use, in order, bounded by number and by bytes.
 *
 * Use it between a producer that prepares data and a consumer that is one step behind, when the bound is memory or somebody
 * wants to look at what is staged without taking it. Where neither is so a weir/tensor_queue.h is much quicker: every change of
 * a staging area publishes a new version of it, of a few small allocations.
 *
 * | call                        | threads | progress                                | blocks on                | allocates | signal-safe |
 * |-----------------------------|---------|-----------------------------------------|--------------------------|-----------|-------------|
 * | weir_staging_create         | any     | lock-free + allocator                   | allocator                | yes       | no          |
 * | weir_staging_destroy        | one, last | lock-free + allocator                 | nothing                  | at a thread's first use of Weir | no |
 * | weir_staging_put            | any     | lock-free + allocator while there is room | room, up to the deadline | yes     | no          |
 * | weir_staging_get            | any     | lock-free + allocator while there is a tuple | a tuple, up to the deadline | yes | no       |
 * | weir_staging_peek           | any     | lock-free while the tuple is there      | the tuple, up to the deadline | when it waits | no |
 * | weir_staging_start_put, _get, _peek | any | lock-free + allocator               | nothing                  | yes       | no          |
 * | weir_staging_op_cancel      | any     | lock-free + the completion              | nothing                  | at a thread's first use of Weir | no |
 * | weir_staging_op_release     | any     | wait-free + allocator                   | nothing                  | no        | no          |
 * | weir_staging_clear          | any     | lock-free + allocator                   | nothing                  | yes       | no          |
 * | weir_staging_place          | any     | wait-free                               | nothing                  | no        | yes         |
 * | weir_staging_look           | any     | lock-free                               | nothing                  | at a thread's first use of Weir | no |
 *
 * Linearizable, sizes and bytes included: each call takes effect at one instant. A thread that is stopped inside a call holds
 * up nobody who does not wait, and of those who wait the one operation that it was carrying on at that moment. Waiters are
 * served in arrival order, as far as what each waits for allows; a newcomer that need not wait does not wait behind them. A
 * change costs an attempt for each that waits.
 *
 * There is nothing to close: an area lives as long as its users, and waits end by deadline or token. Ordering: what was written
 * before a put is visible to whoever gets or peeks the tuple. Source: the staging areas of the reference, with every wait made
 * cancellable.
 */
#ifndef WEIR_STAGING_H
#define WEIR_STAGING_H

#include <weir/tensor_queue.h>

WEIR_BEGIN_DECLS

typedef struct weir_staging weir_staging;
typedef struct weir_staging_op weir_staging_op;

struct weir_staging_options {
	size_t struct_size;                             /* sizeof(struct weir_staging_options) */
	size_t capacity;                                /* tuples; 0: no bound */
	size_t memory_limit;                            /* bytes of their tensors' data (weir_tensor_nbytes), 0: no bound */
	uint32_t flags;                                 /* must be 0 */
	const char *name;                               /* copied, for messages; NULL: "staging area" */
	const struct weir_tensor_component *components; /* copied; as of a tensor queue: shapes may be unknown in part */
	size_t component_count;                         /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	const weir_allocator
		*allocator; /* NULL: the default one. Its memory may come back after the area is destroyed: weir/reclaim.h */
};

/*
 * WEIR_INVALID_ARGUMENT (NULL, bad component, unknown flag, bad struct_size; *error says which), WEIR_RESOURCE_EXHAUSTED. error
 * may be NULL, here and everywhere. @since 0.1
 */
WEIR_API enum weir_status weir_staging_create(const struct weir_staging_options *options, weir_staging **out,
                                              weir_error *error);
/*
 * WEIR_FAILED_PRECONDITION, and nothing happens, while an operation waits. Otherwise what is inside is released. No other
 * thread may be using the area. NULL: WEIR_OK.
 * WEIR_RESOURCE_EXHAUSTED: no memory for this thread's record. @since 0.1
 */
WEIR_API enum weir_status weir_staging_destroy(weir_staging *staging, weir_error *error);

/*
 * Puts a tuple behind the others; waits while it would go beyond capacity or memory_limit. The area takes its own references;
 * the caller keeps his, whatever the outcome. WEIR_RESOURCE_EXHAUSTED at once for a tuple that is larger than memory_limit by
 * itself, and for want of memory; WEIR_DEADLINE_EXCEEDED (deadline_ns is absolute; 0: at once); WEIR_CANCELLED (`cancel`, may
 * be NULL, fired); WEIR_INVALID_ARGUMENT (NULL, or the tuple differs from the spec: the message names the component, what was
 * expected and what came). @since 0.1
 */
WEIR_API enum weir_status weir_staging_put(weir_staging *staging, weir_tensor *const tuple[], size_t count,
                                           uint64_t deadline_ns, weir_cancel *cancel, weir_error *error);
/*
 * Takes the oldest tuple, or waits for one: fills tuple[0 .. count-1], whose references are the caller's. WEIR_INVALID_ARGUMENT
 * when count is not the number of components (nothing was taken), else as above. tuple[] is untouched on any failure. @since 0.1
 */
WEIR_API enum weir_status weir_staging_get(weir_staging *staging, weir_tensor *tuple[], size_t count,
                                           uint64_t deadline_ns, weir_cancel *cancel, weir_error *error);
/* As weir_staging_get, of the tuple with `index` older ones, which stays; waits until there are so many. @since 0.1 */
WEIR_API enum weir_status weir_staging_peek(weir_staging *staging, size_t index, weir_tensor *tuple[], size_t count,
                                            uint64_t deadline_ns, weir_cancel *cancel, weir_error *error);

/*
 * The one completion of an asynchronous operation, on the thread that made it possible (or inside the starting call). Of a get
 * or peek that is WEIR_OK, the references in tuple[0 .. count-1] are the receiver's, the array is not; otherwise count is 0.
 * weir_queue_done_fn (weir/queue.h) says what it may do: start the next one, any number of times, or destroy the area.
 */
typedef void weir_staging_done_fn(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple,
                                  size_t count);
/*
 * The same operations, holding no thread while they wait. *op (out may be NULL) is the caller's until weir_staging_op_release,
 * and serves to cancel. When the call itself fails (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED) `done` is not called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_staging_start_put(weir_staging *staging, weir_tensor *const tuple[], size_t count,
                                                 weir_staging_done_fn *done, void *context, weir_staging_op **op,
                                                 weir_error *error);
WEIR_API enum weir_status weir_staging_start_get(weir_staging *staging, weir_staging_done_fn *done, void *context,
                                                 weir_staging_op **op, weir_error *error);
WEIR_API enum weir_status weir_staging_start_peek(weir_staging *staging, size_t index, weir_staging_done_fn *done,
                                                  void *context, weir_staging_op **op, weir_error *error);
/* Ends it with WEIR_CANCELLED unless it is completing already. Never blocks; idempotent. Accepts NULL. @since 0.1 */
WEIR_API void weir_staging_op_cancel(weir_staging_op *op);
/* Gives the handle back; the operation itself goes on. Accepts NULL. @since 0.1 */
WEIR_API void weir_staging_op_release(weir_staging_op *op);

/*
 * Releases all that is inside, at one instant; puts that waited for room go on. WEIR_INVALID_ARGUMENT (NULL),
 * WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_staging_clear(weir_staging *staging);
/*
 * How many tuples there are, and how many bytes their tensors hold, at one instant; either may be NULL. WEIR_INVALID_ARGUMENT
 * (staging NULL), WEIR_RESOURCE_EXHAUSTED (no memory for this thread's record). @since 0.1
 */
WEIR_API enum weir_status weir_staging_look(const weir_staging *staging, size_t *size, size_t *bytes);
/* Which place of a tuple the component of that name has. WEIR_NOT_FOUND; WEIR_INVALID_ARGUMENT (NULL). Wait-free. @since 0.1 */
WEIR_API enum weir_status weir_staging_place(const weir_staging *staging, const char *component, size_t *place);

WEIR_END_DECLS

#endif
