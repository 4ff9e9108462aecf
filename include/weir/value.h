/*
 * value.h - variables whose values are structs of plain data, or pointers.
 *
 * Use a variable of kind WEIR_VAR_INLINE for state of up to 256 bytes without pointers to what it
 * owns: a configuration, a counter, a pair of words. A write copies the bytes into the new version,
 * and does not call the allocator in the steady state. Use one of kind WEIR_VAR_POINTER for any
 * object that has a function to release it: a hash table, an index, a certificate. For arrays that
 * are computed with, use tensors (weir/tensor.h).
 *
 *     struct config next = {.workers = 8};
 *
 *     status = weir_var_assign_value(var, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, &error);
 *
 *     if (weir_var_read(var, &read) == WEIR_OK) {
 *         use(((const struct config *)read.data)->workers);
 *         weir_read_release(&read);
 *     }
 *
 * The calls of weir/var.h that take no tensor serve each kind: read, snapshot, version, destroy,
 * watches (weir/watch.h), caches (weir/var_cache.h), the history. Those that take a tensor refuse
 * other kinds with WEIR_INVALID_ARGUMENT and the kind in the message: weir_var_assign() and its
 * relatives, sums, scatter, checkpoints, ops of graphs. The calls below take a value of each kind,
 * tensors too, so that a commit or a transaction can mix kinds.
 *
 * | call                  | threads   | progress        | blocks on    | allocates  | signal-safe |
 * |-----------------------|-----------|-----------------|--------------|------------|-------------|
 * | weir_value_tensor, _inline, _pointer | any | wait-free | nothing   | no         | yes         |
 * | weir_var_create_value | any       | lock-free + allocator | allocator | yes     | no          |
 * | weir_var_read_into    | any       | wait-free       | nothing      | no         | yes (1)     |
 * | weir_var_assign_value, _compare_assign_value | any | lock-free (2) | budget (3) | (4) | no     |
 * | weir_var_exchange_value, _commit_values | any | lock-free (2) | budget (3) | (4)    | no       |
 * | weir_var_update_value | any       | lock-free + fn  | budget (3)   | (4)        | no          |
 * | weir_txn_read_value, _assign_value | any | lock-free (2) | nothing | (4)       | no          |
 *
 * (1) As weir_var_read().
 * (2) After its allocation.
 * (3) While the retired bytes exceed the budget (weir/reclaim.h), up to the deadline.
 * (4) A version. From the default allocator a thread allocates only while the blocks that it keeps
 *     do not suffice; each write with another allocator allocates.
 *
 * Pointers. A write that succeeds takes the pointer over. The release function of the variable
 * runs once for each version, when no handle and no section can reach that version any more. A
 * write that fails leaves the pointer with its caller. A pointer that is assigned twice is released
 * twice; if it must outlive one of its versions, give it a count of references of its own.
 *
 * Names. weir_var_find_or_create() with the options of the kind and no initial value finds or makes
 * the variable; weir_var_compare_assign_value() with `expected` 0 then initializes it once.
 *
 * Ordering. As in weir/var.h. A thread that reads a version sees what its writer wrote before the
 * call, also behind a pointer.
 * @since 0.1
 */
#ifndef WEIR_VALUE_H
#define WEIR_VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>
#include <weir/txn.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/*
 * A value that a write takes, with its kind: a call can tell if it does not suit the variable. It is
 * passed by value. Make it with one of the three functions below.
 */
typedef struct weir_value {
	enum weir_var_kind kind;
	uint32_t size; /* WEIR_VAR_INLINE: how many bytes */
	union {
		weir_tensor *tensor;
		const void *data; /* WEIR_VAR_INLINE: copied by the call */
		void *room;       /* the same, for an update: bytes that its function may change */
		void *pointer;
	};
} weir_value;

/* A tensor; the call that takes it takes a reference of its own. @since 0.1 */
static inline weir_value weir_value_tensor(weir_tensor *tensor)
{
	weir_value value;

	value.kind = WEIR_VAR_TENSOR;
	value.size = 0;
	value.tensor = tensor;
	return value;
}

/* `size` bytes. @since 0.1 */
static inline weir_value weir_value_inline(const void *data, size_t size)
{
	weir_value value;

	value.kind = WEIR_VAR_INLINE;
	value.size = size <= UINT32_MAX ? WEIRI_CAST(uint32_t, size) : UINT32_MAX;
	value.data = data;
	return value;
}

/* A pointer, not NULL; see Pointers above. @since 0.1 */
static inline weir_value weir_value_pointer(void *pointer)
{
	weir_value value;

	value.kind = WEIR_VAR_POINTER;
	value.size = 0;
	value.pointer = pointer;
	return value;
}

/* The bytes of an object. */
#define WEIR_VALUE_OF(object) weir_value_inline(&(object), sizeof(object))

/*
 * Creates a variable with a first value, version 1. The options say its kind (see struct
 * weir_var_options), and the value must be of that kind and size. A variable without a first value
 * is created by weir_var_create(NULL, options, out, error).
 *
 *     struct weir_var_options options = {
 *         WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(struct config)};
 *
 * Errors: as weir_var_create(). A pointer stays with the caller if the call fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_create_value(weir_value initial,
                                                const struct weir_var_options *options,
                                                weir_var **out, weir_error *error);

/*
 * Copies the bytes of the newest version of an inline variable to `to`. *number (may be NULL) is
 * that of the version. On failure `to` and *number are untouched.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, the variable is not of kind
 * WEIR_VAR_INLINE, or `size` is not the size of its values; WEIR_FAILED_PRECONDITION if it is not
 * initialized; WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 *
 * Wait-free: 18 + 4r accesses and the copy, with r as in weir/var.h.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_read_into(weir_var *var, void *to, size_t size, uint64_t *number,
                                             weir_error *error);

/*
 * As weir_var_assign(), weir_var_compare_assign() and weir_var_exchange(), with a value of the
 * variable's kind.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, or the value does not suit the variable: the
 * message names the variable, what it takes and what was given. Else as there.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_assign_value(weir_var *var, weir_value value,
                                                uint64_t deadline_ns, weir_read *published,
                                                weir_error *error);
WEIR_API enum weir_status weir_var_compare_assign_value(weir_var *var, uint64_t expected,
                                                        weir_value value, uint64_t deadline_ns,
                                                        weir_read *published, weir_error *error);
WEIR_API enum weir_status weir_var_exchange_value(weir_var *var, weir_value value,
                                                  uint64_t deadline_ns, weir_read *replaced,
                                                  weir_error *error);

/*
 * Makes the next value from the current one, as weir_update_fn does. *next says what to do:
 *
 * - WEIR_VAR_INLINE: next->room has a copy of the current bytes; change them there. Leave *next
 *   itself as it is.
 * - WEIR_VAR_POINTER: store a pointer in next->pointer. It becomes the variable's. If the attempt
 *   is discarded or the function fails, it is released.
 * - WEIR_VAR_TENSOR: store a reference in next->tensor, which becomes the variable's.
 */
typedef enum weir_status weir_update_value_fn(void *context, const weir_read *current,
                                              weir_value *next, weir_error *error);

/*
 * As weir_var_update(), for each kind.
 *
 * Errors: those of weir_var_update(); WEIR_INVALID_ARGUMENT if what the function left in *next does
 * not suit the variable.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_update_value(weir_var *var, weir_update_value_fn *fn,
                                                void *context, uint64_t deadline_ns,
                                                weir_read *published, weir_error *error);

/* One part of a commit of values; see struct weir_commit_part. */
struct weir_value_part {
	weir_var *var;
	uint64_t expected; /* 0: not initialized */
	weir_value value;
};

/*
 * As weir_var_commit(). The kinds of the parts may differ. If the commit fails, all pointers stay
 * with the caller.
 * @since 0.1
 */
WEIR_API enum weir_status weir_var_commit_values(const struct weir_value_part parts[], size_t count,
                                                 uint64_t deadline_ns, weir_read published[],
                                                 weir_error *error);

/*
 * As weir_txn_read(): *value is what the transaction assigned, or the version at its instant. It is
 * borrowed, and valid until the transaction ends or assigns this variable again.
 * @since 0.1
 */
WEIR_API enum weir_status weir_txn_read_value(weir_txn *txn, weir_var *var, weir_value *value,
                                              weir_error *error);

/*
 * As weir_txn_assign(). Bytes are copied by this call. A pointer is the transaction's if the call
 * succeeds: if it is not committed, or assigned over, it is released.
 * @since 0.1
 */
WEIR_API enum weir_status weir_txn_assign_value(weir_txn *txn, weir_var *var, weir_value value,
                                                weir_error *error);

WEIR_END_DECLS

#endif
