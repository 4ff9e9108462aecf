/*
 * checkpoint.h - the values of variables kept in a file, in the safetensors format, and put back from one.
 *
 * Use it to keep parameters across runs, or to hand them to other programs: safetensors is read by many tools, in many languages.
 * What is written is one instant of all variables, though writers run on; the file changes at one instant too. Not for tensors of
 * strings, nor for more than WEIR_COMMIT_MAX_PARTS variables at once: use several files, and then each is an instant of its own.
 *
 * | call                         | threads | progress            | blocks on               | allocates | signal-safe |
 * |------------------------------|---------|---------------------|-------------------------|-----------|-------------|
 * | weir_checkpoint_save         | any     | the file system's   | the file system         | yes       | no          |
 * | weir_checkpoint_save_tensors | any     | the file system's   | the file system         | yes       | no          |
 * | weir_checkpoint_restore      | any     | the file system's, then lock-free | the file system; the retire budget, up to the deadline | yes | no |
 * | weir_checkpoint_save_store   | any     | as weir_checkpoint_save | the file system      | yes       | no          |
 * | weir_checkpoint_restore_store | any    | as weir_checkpoint_restore | as there          | yes       | no          |
 *
 * Nobody who reads or writes the variables ever waits for a save: it holds a snapshot's handles while it writes. So replaced
 * versions of these variables, one of each at most, stay in memory until the save ends.
 *
 * The format. 8 bytes, little-endian: the length of the header; the header, JSON: for each tensor its name, dtype, shape and
 * where its bytes are; the bytes, row-major and little-endian, without gaps. Our headers end in blanks, so that the data begins
 * at a multiple of 64, and the tensors lie from the largest elements to the smallest, so that each is aligned.
 *
 * | weir | safetensors |   | weir | safetensors |   | weir | safetensors        |
 * |------|-------------|---|------|-------------|---|------|--------------------|
 * | bool | BOOL        |   | i16  | I16         |   | f16  | F16                |
 * | u8   | U8          |   | i32  | I32         |   | f32  | F32                |
 * | i8   | I8          |   | i64  | I64         |   | f64  | F64                |
 *
 * bytes has no counterpart and is refused when it is saved; U16, U32, U64, BF16, C64 and the F8 kinds are refused, by the
 * tensor's name, when a variable is to be restored from one.
 */
#ifndef WEIR_CHECKPOINT_H
#define WEIR_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>
#include <weir/store.h>
#include <weir/tensor.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/* A variable and the name of its tensor in the file: UTF-8, not "__metadata__", not empty; NULL: the variable's own name. */
struct weir_checkpoint_part {
	const char *name;
	weir_var *var;
};

/* A tensor and its name; here the name is needed. The caller holds a reference, or a handle, until the call returns. */
struct weir_checkpoint_tensor {
	const char *name;
	const weir_tensor *tensor;
};

enum weir_checkpoint_flags {
	/* restore: tensors of the file that no part names are left alone; without it they are refused. */
	WEIR_CHECKPOINT_ALLOW_OTHERS = 1
};

/* The longest header that is read or written, as other readers of the format have it. */
enum { WEIR_CHECKPOINT_MAX_HEADER = 100000000 };

struct weir_checkpoint_options {
	size_t struct_size;              /* sizeof(struct weir_checkpoint_options) */
	uint32_t flags;                  /* of enum weir_checkpoint_flags; save takes none */
	const weir_allocator *allocator; /* for headers, and for the tensors that are restored; NULL: the default one */
};

/*
 * Writes the values that the variables have at one instant during the call to the file `path`, which it makes or replaces whole:
 * a temporary file in the same folder is written, synced and renamed, and the folder is synced. So whoever opens `path`, also
 * after a crash at any moment, finds the old file or the new one. A crash may leave the temporary file behind:
 * `path`.PID-N.tmp. A symbolic link at `path` is replaced, not followed; the new file's mode is 0666 less the umask. Saves to
 * one path at the same time do not disturb one another: the last rename stays.
 *
 * options may be NULL. WEIR_INVALID_ARGUMENT (NULL, count 0 or above WEIR_COMMIT_MAX_PARTS, a name that is bad or given twice,
 * unknown flags), WEIR_UNIMPLEMENTED (dtype bytes), WEIR_FAILED_PRECONDITION (a variable is not initialized),
 * WEIR_RESOURCE_EXHAUSTED (memory, room on the device, a header that is too long), WEIR_NOT_FOUND (no such folder),
 * WEIR_INTERNAL (any other failure of the file system; the message has its words). On failure the old file is still there, with
 * one exception: when the message says that only the sync of the folder failed, the new file is in place, and may be the old
 * one again after the machine loses power. @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_save(const struct weir_checkpoint_part parts[], size_t count,
                                               const struct weir_checkpoint_options *options, const char *path,
                                               weir_error *error);
/* The same of tensors in hand: those of a snapshot, say. @since 0.1 */
WEIR_API enum weir_status weir_checkpoint_save_tensors(const struct weir_checkpoint_tensor tensors[], size_t count,
                                                       const struct weir_checkpoint_options *options, const char *path,
                                                       weir_error *error);
/*
 * Reads the tensors of all parts from the file and publishes them as the next versions of the variables, all at one instant (a
 * commit), or publishes none. What writers published meanwhile is replaced, as by an assignment.
 *
 * The file is not trusted: lengths, names, dtypes, shapes, products, offsets (each byte of the data belongs to exactly one
 * tensor), and the bytes of bool tensors are checked before anything is published. Headers are read in a strict subset of JSON,
 * as the format demands it, without recursion, in time n log n for a header of n bytes, whatever its names. What is allocated:
 * as many bytes as the header has, for it and all tensors that it tells of; and each tensor that a part names, once the file
 * was seen to have its bytes.
 *
 * WEIR_NOT_FOUND (no such file), WEIR_DATA_LOSS (the file is damaged or no safetensors file), WEIR_FAILED_PRECONDITION (a part
 * is not in the file, its dtype or shape does not fit the variable, or the file has a tensor that no part names: see the flag),
 * WEIR_INVALID_ARGUMENT (as for save, or a variable twice), WEIR_RESOURCE_EXHAUSTED (memory; the retire budget at deadline_ns),
 * WEIR_DEADLINE_EXCEEDED (other writers were faster each time), WEIR_INTERNAL (the file system). The message names the file and
 * the tensor, what was expected and what came.
 * @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_restore(const struct weir_checkpoint_part parts[], size_t count,
                                                  const struct weir_checkpoint_options *options, const char *path,
                                                  uint64_t deadline_ns, weir_error *error);

/*
 * All variables (weir_var_type()) that are in the store when the call begins, as weir_checkpoint_save; those that are added or
 * removed meanwhile may be among them. A variable is called as in the store, "name", or "container/name" in a container that
 * has a name; where that makes two of one name, WEIR_INVALID_ARGUMENT. Objects of other types are left out. WEIR_NOT_FOUND:
 * there are no variables. @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_save_store(weir_store *store, const struct weir_checkpoint_options *options,
                                                     const char *path, weir_error *error);
/*
 * Gives all variables of the store, called as above, their values of the file, as weir_checkpoint_restore: one that is not in
 * the file is a failure, and without WEIR_CHECKPOINT_ALLOW_OTHERS so is a tensor whose variable is not in the store: create
 * them first. @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_restore_store(weir_store *store,
                                                        const struct weir_checkpoint_options *options, const char *path,
                                                        uint64_t deadline_ns, weir_error *error);

WEIR_END_DECLS

#endif
