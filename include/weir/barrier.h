/*
 * barrier.h - a barrier of the dataflow kind: values that come key by key and component by component leave as whole tuples.
 *
 * Use it where several producers make parts of the same thing at different times (an image here, its label there) and a
 * consumer wants the thing when it is complete. Parts of one key may come in any order. Where every tuple is made by one
 * producer use weir/tensor_queue.h, which is quicker and bounded; a barrier is unbounded, so put a bounded queue before it.
 *
 * | call                     | threads | progress                                  | blocks on                    | allocates | signal-safe |
 * |--------------------------|---------|-------------------------------------------|------------------------------|-----------|-------------|
 * | weir_barrier_create      | any     | lock-free + allocator                     | allocator                    | yes       | no          |
 * | weir_barrier_destroy     | one, last | lock-free + allocator                   | nothing                      | at a thread's first use of Weir | no |
 * | weir_barrier_insert_many | any     | lock-free + allocator                     | nothing                      | yes       | no          |
 * | weir_barrier_take_many   | any     | lock-free + allocator while enough is ready | keys, up to the deadline   | yes       | no          |
 * | weir_barrier_start_take_many | any | lock-free + allocator                     | nothing                      | yes       | no          |
 * | weir_barrier_op_cancel   | any     | lock-free + the completion                | nothing                      | at a thread's first use of Weir | no |
 * | weir_barrier_op_release  | any     | wait-free + allocator                     | nothing                      | no        | no          |
 * | weir_barrier_close       | any     | lock-free + allocator                     | nothing                      | yes       | no          |
 * | weir_barrier_look        | any     | lock-free                                 | nothing                      | at a thread's first use of Weir | no |
 * | weir_barrier_matches, _component, _component_count | any | wait-free       | nothing                      | no        | yes       |
 *
 * Linearizable: an insert of any number of keys, a take of any number of tuples and a look each take effect at one instant. A
 * thread that is stopped inside a call holds up nobody who does not wait, and of those who wait the one operation that it was
 * carrying on at that moment. Waiters are served in arrival order, as far as what each waits for allows. Ordering: what was
 * written before an insert is visible to whoever takes the key. Source: the barrier of the reference, with inserts that happen
 * whole or not at all, waits that can be ended, and takers that are told when nothing more can come.
 */
#ifndef WEIR_BARRIER_H
#define WEIR_BARRIER_H

#include <weir/tensor_queue.h>

WEIR_BEGIN_DECLS

typedef struct weir_barrier weir_barrier;
typedef struct weir_barrier_op weir_barrier_op;

struct weir_barrier_options {
	size_t struct_size; /* sizeof(struct weir_barrier_options) */
	uint32_t flags;     /* must be 0 */
	const char *name;   /* copied, for messages; NULL: "barrier" */
	const struct weir_tensor_component
		*components;        /* copied; each with a shape, fully known, of at least one element */
	size_t component_count; /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	const weir_allocator
		*allocator; /* NULL: the default one. Its memory may come back after the barrier is destroyed: weir/reclaim.h */
};

/*
 * WEIR_INVALID_ARGUMENT (NULL, bad component, unknown flag, bad struct_size; *error says which), WEIR_RESOURCE_EXHAUSTED. error
 * may be NULL, here and everywhere. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_create(const struct weir_barrier_options *options, weir_barrier **out,
                                              weir_error *error);
/*
 * WEIR_FAILED_PRECONDITION, and nothing happens, while a take waits. Otherwise what is inside is released. No other thread may
 * be using the barrier. NULL: WEIR_OK.
 * WEIR_RESOURCE_EXHAUSTED: no memory for this thread's record. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_destroy(weir_barrier *barrier, weir_error *error);

/*
 * Gives each of the n keys (WEIR_BYTES, [n]) its row of `values` ([n] + the component's shape) as component `component`. A key
 * that has all its components is ready, and forgotten as a key: it may be inserted anew. All n go in, or none. New keys get an
 * index, which is the same for all of one call, grows by one from call to call, and begins at INT64_MIN. The barrier takes its
 * own references (rows share the memory of `values`); the caller keeps his.
 * WEIR_INVALID_ARGUMENT (NULL, component, dtype or shape; a component that a key has already: the message names both),
 * WEIR_CANCELLED (closed: with WEIR_CLOSE_DRAIN for new keys, with WEIR_CLOSE_CANCEL for all, even for none),
 * WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_insert_many(weir_barrier *barrier, size_t component, weir_tensor *keys,
                                                   weir_tensor *values, weir_error *error);

/* What a take gives; the references are the receiver's. */
struct weir_barrier_batch {
	int64_t count;
	weir_tensor *indices; /* i64 [count]: of the call in which each key was new */
	weir_tensor *keys;    /* bytes [count] */
	weir_tensor
		*values[WEIR_TENSOR_QUEUE_MAX_COMPONENTS]; /* [count] + shape, for each component; NULL behind the last */
};

enum {
	WEIR_BARRIER_ALLOW_SMALL_BATCH = 1
}; /* flags: once closed, be content with what is ready, if that is anything */

/*
 * Takes n >= 0 tuples, those of the lowest index first, or waits until so many are ready. Nothing is taken unless all are.
 * Closed: waits while keys that are still incomplete could suffice, and WEIR_OUT_OF_RANGE as soon as they cannot (with the
 * flag: when nothing is ready); the message tells what was asked, what is there, and the cause of the close.
 * WEIR_INVALID_ARGUMENT (NULL, n < 0, unknown flag), WEIR_DEADLINE_EXCEEDED (deadline_ns is absolute; 0: at once),
 * WEIR_CANCELLED (`cancel`, may be NULL, fired), WEIR_RESOURCE_EXHAUSTED. *batch is untouched on any failure. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_take_many(weir_barrier *barrier, int64_t n, uint32_t flags, uint64_t deadline_ns,
                                                 weir_cancel *cancel, struct weir_barrier_batch *batch,
                                                 weir_error *error);

/*
 * The one completion of an asynchronous take, on the thread that made it possible (or inside the starting call). `batch` is
 * NULL unless status is WEIR_OK; its references are the receiver's, it itself is not. weir_queue_done_fn
 * (weir/queue.h) says what it may do: start the next one, any number of times, or destroy the barrier.
 */
typedef void weir_barrier_done_fn(void *context, enum weir_status status, const weir_error *error,
                                  const struct weir_barrier_batch *batch);
/*
 * The same, holding no thread while it waits. *op (out may be NULL) is the caller's until weir_barrier_op_release, and serves
 * to cancel. When the call itself fails (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED) `done` is not called. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_start_take_many(weir_barrier *barrier, int64_t n, uint32_t flags,
                                                       weir_barrier_done_fn *done, void *context, weir_barrier_op **op,
                                                       weir_error *error);
/* Ends it with WEIR_CANCELLED unless it is completing already. Never blocks; idempotent. Accepts NULL. @since 0.1 */
WEIR_API void weir_barrier_op_cancel(weir_barrier_op *op);
/* Gives the handle back; the operation itself goes on. Accepts NULL. @since 0.1 */
WEIR_API void weir_barrier_op_release(weir_barrier_op *op);

/*
 * WEIR_CLOSE_DRAIN: no new keys; those that are incomplete may still be completed. WEIR_CLOSE_CANCEL: those are dropped, and
 * nothing is inserted any more. What is ready stays to be taken. Never waits. Idempotent; CANCEL may follow DRAIN. The first
 * cause (may be NULL) stays. WEIR_INVALID_ARGUMENT (NULL, unknown mode), WEIR_RESOURCE_EXHAUSTED: nothing was done. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_close(weir_barrier *barrier, enum weir_close_mode mode, const weir_error *cause);

/*
 * How many tuples are ready and how many keys incomplete, at one instant; either may be NULL. WEIR_INVALID_ARGUMENT,
 * WEIR_RESOURCE_EXHAUSTED. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_look(const weir_barrier *barrier, size_t *ready, size_t *incomplete);

/* How many tensors a tuple has; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_barrier_component_count(const weir_barrier *barrier);
/*
 * The i-th component as it was given; what it points to lives as long as the barrier. WEIR_OUT_OF_RANGE, WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_barrier_component(const weir_barrier *barrier, size_t i,
                                                 struct weir_tensor_component *out);
/*
 * Whether the barrier will do for who would create one of these components: for a barrier that is shared by name
 * (weir/store.h). WEIR_OK, or WEIR_INVALID_ARGUMENT and a message that names what differs. @since 0.1
 */
WEIR_API enum weir_status weir_barrier_matches(const weir_barrier *barrier,
                                               const struct weir_tensor_component components[], size_t count,
                                               weir_error *error);

WEIR_END_DECLS

#endif
