/*
 * keyed_join.h - a join by key: components that arrive one by one leave as whole tuples.
 *
 * It is the tf.Barrier of TensorFlow 1.x, neither a thread barrier nor a memory fence. Use it if
 * several producers make parts of one thing at different times (an image here, its label there)
 * and a consumer wants the complete thing. The parts of a key may arrive in any order. If one
 * producer makes each tuple, use weir/flow/tensor_queue.h, which is faster and bounded. A keyed
 * join is unbounded, so put a bounded queue before it.
 *
 * | call                | threads  | progress              | blocks on | allocates  | signal-safe |
 * |---------------------|----------|-----------------------|-----------|------------|-------------|
 * | weir_keyed_join_create | any   | lock-free + allocator | allocator | yes        | no          |
 * | weir_keyed_join_destroy | one, last | lock-free + allocator | nothing | record (1) | no       |
 * | weir_keyed_join_insert_many | any | lock-free + allocator | nothing | yes       | no          |
 * | weir_keyed_join_take_many | any | lock-free + allocator (2) | keys (3) | yes    | no          |
 * | weir_keyed_join_start_take_many | any | lock-free + allocator | nothing | yes   | no          |
 * | weir_keyed_join_close | any    | lock-free + allocator | nothing   | yes        | no          |
 * | weir_keyed_join_size | any     | lock-free             | nothing   | record (1) | no          |
 * | weir_keyed_join_matches, _component | any | wait-free  | nothing   | no         | yes         |
 * | weir_keyed_join_component_count | any | wait-free      | nothing   | no         | yes         |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) Unless it waits.
 * (3) Up to the deadline.
 *
 * All calls are linearizable: an insert of any number of keys, a take of any number of tuples, and
 * a look at the size each take effect at one instant.
 *
 * Stalled threads. A thread that is stalled inside a call delays no call that does not wait, and at
 * most the one waiting operation that it was completing. If the thread has changed the keyed join
 * but has not yet reached all operations that can now proceed, those wait until the next change,
 * their deadline or their token. Waiters are served in arrival order, as far as their conditions
 * allow.
 *
 * Ordering. What a thread wrote before an insert is visible to the thread that takes the key.
 *
 * Source: tf.Barrier of TensorFlow 1.x. Here inserts happen as a whole or not at all, waits can be
 * cancelled, and a take ends when its tuples can no longer arrive.
 */
#ifndef WEIR_KEYED_JOIN_H
#define WEIR_KEYED_JOIN_H

#include <weir/pending.h>
#include <weir/flow/tensor_queue.h>

WEIR_BEGIN_DECLS

typedef struct weir_keyed_join weir_keyed_join;

struct weir_keyed_join_options {
	size_t struct_size; /* WEIR_KEYED_JOIN_OPTIONS_INIT sets it */
	uint32_t flags;     /* must be 0 */
	const char *name;   /* copied, for messages; NULL: "keyed join" */
	/* copied; each with a fully known shape of at least one element */
	const struct weir_tensor_component *components;
	size_t component_count; /* 1 .. WEIR_TENSOR_QUEUE_MAX_COMPONENTS */
	/*
	 * NULL: the default allocator. It may get memory back after the keyed join is destroyed:
	 * weir/reclaim.h
	 */
	const weir_allocator *allocator;
};
#define WEIR_KEYED_JOIN_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_keyed_join_options)

/*
 * Creates a keyed join. error may be NULL, here and everywhere. Errors: WEIR_INVALID_ARGUMENT if an
 * argument is NULL, a component or struct_size is wrong, or a flag is unknown; *error says which.
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_create(const struct weir_keyed_join_options *options,
                                                 weir_keyed_join **out, weir_error *error);

/*
 * Destroys the keyed join and releases the tensors in it. No other thread may use it. Accepts NULL.
 * Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while a take waits.
 * WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_destroy(weir_keyed_join *join, weir_error *error);

/*
 * Inserts a component of n keys: each of `keys` (WEIR_BYTES, [n]) gets its row of `values` ([n] +
 * the shape of the component). All n are inserted, or none. A key with all its components is ready,
 * and the key itself may then be inserted anew. New keys get an index, which is the same for all
 * keys of one call, grows by one from call to call, and begins at INT64_MIN. The keyed join takes
 * its own references (rows share the memory of `values`); the caller keeps its own.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the component, a dtype or a shape is wrong,
 * or a key already has the component (the message names both). WEIR_CANCELLED if the keyed join was
 * closed with WEIR_CLOSE_DRAIN and a key is new, or was closed with WEIR_CLOSE_CANCEL, even if n is
 * 0. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_insert_many(weir_keyed_join *join, size_t component,
                                                      weir_tensor *keys, weir_tensor *values,
                                                      weir_error *error);

/* The result of a take. The receiver owns the references. */
struct weir_keyed_join_batch {
	size_t count;
	weir_tensor *indices; /* i64 [count]: of the call in which each key was new */
	weir_tensor *keys;    /* bytes [count] */
	/* [count] + shape, for each component; NULL after the last */
	weir_tensor *values[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
};

/* flags: once closed, accept fewer tuples, at least one */
enum weir_keyed_join_flags { WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH = 1 };

/*
 * Takes n tuples, lowest index first, or waits until so many are ready. It takes all of them or
 * none. If the keyed join is closed, the call waits as long as incomplete keys could still supply
 * the tuples, and returns WEIR_OUT_OF_RANGE as soon as they cannot (with the flag: if nothing is
 * ready). The message says what was requested, what is ready, and the cause of the close.
 *
 * Errors, after which *batch is untouched: WEIR_OUT_OF_RANGE. WEIR_INVALID_ARGUMENT (NULL, n
 * above INT64_MAX, unknown flag). WEIR_DEADLINE_EXCEEDED (deadline_ns is absolute; 0: immediately).
 * WEIR_CANCELLED if `cancel` (may be NULL) fired. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_take_many(weir_keyed_join *join, size_t n, uint32_t flags,
                                                    uint64_t deadline_ns, weir_cancel *cancel,
                                                    struct weir_keyed_join_batch *batch,
                                                    weir_error *error);

/*
 * The completion of an asynchronous take. It is called exactly once, on the thread that made the
 * take possible, or inside the starting call. `batch` is NULL unless status is WEIR_OK. The callee
 * owns its references, but not the struct. The rules of weir_queue_done_fn (weir/queue.h) apply: it
 * may start the next take, any number of times, or destroy the keyed join.
 */
typedef void weir_keyed_join_done_fn(void *context, enum weir_status status,
                                     const weir_error *error,
                                     const struct weir_keyed_join_batch *batch);

/*
 * Like weir_keyed_join_take_many(), but the take holds no thread while it waits. *handle (may be
 * NULL) is a handle to cancel with; the caller gives it back with weir_pending_release(). If this
 * call itself fails (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED), `done` is not called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_start_take_many(weir_keyed_join *join, size_t n,
                                                          uint32_t flags,
                                                          weir_keyed_join_done_fn *done,
                                                          void *context, weir_pending **handle,
                                                          weir_error *error);

/*
 * Closes the keyed join and never waits. With WEIR_CLOSE_DRAIN, new keys are refused and incomplete
 * keys may still be completed. With WEIR_CLOSE_CANCEL, incomplete keys are dropped and all inserts
 * are refused. Ready tuples can still be taken. Idempotent; WEIR_CLOSE_CANCEL may follow
 * WEIR_CLOSE_DRAIN. Later messages have the cause (may be NULL; the first one that is given is
 * kept). Errors, after which nothing was done: WEIR_INVALID_ARGUMENT (NULL, unknown mode),
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_close(weir_keyed_join *join, enum weir_close_mode mode,
                                                const weir_error *cause);

/*
 * Gives the number of ready tuples and of incomplete keys at one instant; either may be NULL.
 * Errors: WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_size(const weir_keyed_join *join, size_t *ready,
                                               size_t *incomplete);

/* The number of tensors in a tuple; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_keyed_join_component_count(const weir_keyed_join *join);

/*
 * Reads component i as given at creation; what it points to is valid as long as the keyed join
 * exists. Errors: WEIR_OUT_OF_RANGE, WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_component(const weir_keyed_join *join, size_t i,
                                                    struct weir_tensor_component *out);

/*
 * Checks whether the keyed join was created with these components: for a keyed join that is shared
 * by name (weir/store.h). Errors: WEIR_INVALID_ARGUMENT; the message names what differs.
 * @since 0.1
 */
WEIR_API enum weir_status weir_keyed_join_matches(const weir_keyed_join *join,
                                                  const struct weir_tensor_component components[],
                                                  size_t count, weir_error *error);

WEIR_END_DECLS

#endif
