/*
 * checkpoint.h - the values of variables saved to a file in the safetensors format, and restored.
 *
 * Use it to keep parameters across runs, or to hand them to other programs: many tools in many
 * languages read safetensors. A save writes one instant of all variables while writers run on, and
 * replaces the file at one instant too. It cannot save tensors of strings. One save writes at most
 * WEIR_COMMIT_MAX_PARTS variables. More variables need several files, and each file then has an
 * instant of its own.
 *
 * | call               | threads | progress          | blocks on        | allocates | signal-safe |
 * |--------------------|---------|-------------------|------------------|-----------|-------------|
 * | weir_checkpoint_save | any   | file system       | file system      | yes       | no          |
 * | weir_checkpoint_save_tensors | any | file system | file system      | yes       | no          |
 * | weir_checkpoint_restore | any | file system (1)  | file system, budget (2) | yes | no         |
 * | weir_checkpoint_save_store | any | as weir_checkpoint_save | file system | yes  | no          |
 * | weir_checkpoint_restore_store | any | as weir_checkpoint_restore | as there | yes | no        |
 *
 * (1) While it reads the file; then lock-free.
 * (2) While the retired bytes exceed the budget (weir/reclaim.h), up to the deadline.
 *
 * A save delays no thread that reads or writes the variables: it holds the handles of a snapshot
 * while it writes. So it keeps at most one replaced version of each variable in memory, until it
 * ends.
 *
 * The format has three parts: the length of the header (8 bytes, little-endian); the header (JSON:
 * for each tensor its name, dtype, shape and the position of its bytes); and the bytes (row-major,
 * little-endian, without gaps). Weir pads its headers with blanks, so that the data begins at a
 * multiple of 64, and sorts the tensors by element size, largest first, so that each is aligned.
 *
 * | weir | safetensors |  | weir | safetensors |  | weir | safetensors |
 * |------|-------------|--|------|-------------|--|------|-------------|
 * | bool | BOOL        |  | i16  | I16         |  | f16  | F16         |
 * | u8   | U8          |  | i32  | I32         |  | f32  | F32         |
 * | i8   | I8          |  | i64  | I64         |  | f64  | F64         |
 *
 * WEIR_BYTES has no counterpart: a save refuses tensors of strings. A restore refuses tensors of
 * U16, U32, U64, BF16, C64 and the F8 kinds, and names the tensor.
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

/*
 * A variable and the name of its tensor in the file: UTF-8, not "__metadata__", not empty. NULL:
 * the name of the variable. A variable from weir_table_var() stands for its table, whose tensor has
 * the shape [rows, row...]. A save reads the table page by page. A restore reads its tensor, and
 * makes a version in which each page is new.
 */
struct weir_checkpoint_part {
	const char *name;
	weir_var *var;
};

/*
 * A tensor and its name, which is required. The caller holds a reference or a handle until the call
 * returns.
 */
struct weir_checkpoint_tensor {
	const char *name;
	const weir_tensor *tensor;
};

enum weir_checkpoint_flags {
	/* restore: ignore tensors of the file that no part names; otherwise they are an error */
	WEIR_CHECKPOINT_ALLOW_OTHERS = 1
};

/* The longest header that is read or written; other readers of the format have the same limit. */
enum weir_checkpoint_limits { WEIR_CHECKPOINT_MAX_HEADER = 100000000 };

struct weir_checkpoint_options {
	size_t struct_size; /* WEIR_CHECKPOINT_OPTIONS_INIT sets it */
	uint32_t flags;     /* of enum weir_checkpoint_flags; save takes none */
	/* for headers and restored tensors; NULL: the default allocator */
	const weir_allocator *allocator;
};
#define WEIR_CHECKPOINT_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_checkpoint_options)

/*
 * Writes the values that the variables have at one instant during the call to the file `path`,
 * which is created or replaced as a whole. The call writes a temporary file in the same folder,
 * syncs it, renames it, and syncs the folder. So a program that opens `path`, even after a crash at
 * any moment, finds the old file or the new one. A crash may leave the temporary file,
 * `path`.PID-N.tmp. A symbolic link at `path` is replaced, not followed. The mode of the new file
 * is 0666 less the umask. Concurrent saves to one path do not disturb one another: the last rename
 * wins. options may be NULL.
 *
 * Errors, after which the old file is still there:
 * - WEIR_INVALID_ARGUMENT if an argument is NULL, count is 0 or above WEIR_COMMIT_MAX_PARTS, a name
 *   is invalid or occurs twice, or a flag is unknown.
 * - WEIR_UNIMPLEMENTED if a tensor has the dtype WEIR_BYTES.
 * - WEIR_FAILED_PRECONDITION if a variable is not initialized.
 * - WEIR_RESOURCE_EXHAUSTED: memory, space on the device, or a header that is too long.
 * - WEIR_NOT_FOUND if there is no such folder.
 * - WEIR_INTERNAL for any other failure of the file system; the message quotes it. If the message
 *   says that only the sync of the folder failed, the new file is in place, but the old one may be
 *   back after a loss of power.
 * @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_save(const struct weir_checkpoint_part parts[],
                                               size_t count, const char *path,
                                               const struct weir_checkpoint_options *options,
                                               weir_error *error);

/*
 * Like weir_checkpoint_save(), for tensors instead of variables, such as those of a snapshot.
 * @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_save_tensors(
	const struct weir_checkpoint_tensor tensors[], size_t count, const char *path,
	const struct weir_checkpoint_options *options, weir_error *error);

/*
 * Reads the tensors of all parts from the file and publishes them as the next versions of the
 * variables, all at one instant (a commit), or publishes none. Versions that other threads publish
 * meanwhile are replaced, as by an assignment.
 *
 * The file is not trusted. Before anything is published, the call checks lengths, names, dtypes,
 * shapes, sizes, offsets (each byte of the data belongs to exactly one tensor), and the bytes of
 * bool tensors. It reads headers in the strict subset of JSON that the format requires, without
 * recursion, in time O(n log n) for a header of n bytes, whatever its names. The header and the
 * list of its tensors share one allocation of the header's size. The call allocates the tensors
 * that parts name only after it has checked that the file has their bytes.
 *
 * Errors; the message names the file and the tensor, what was expected and what was found:
 * - WEIR_NOT_FOUND if there is no such file.
 * - WEIR_DATA_LOSS if the file is damaged or not a safetensors file.
 * - WEIR_FAILED_PRECONDITION if the file lacks a part, the dtype or shape does not fit the
 *   variable, or the file has a tensor that no part names (see the flag).
 * - WEIR_INVALID_ARGUMENT as for a save, or if a variable occurs twice.
 * - WEIR_RESOURCE_EXHAUSTED: memory, or the retired bytes exceed the budget at deadline_ns.
 * - WEIR_DEADLINE_EXCEEDED if other writers moved a variable during each attempt.
 * - WEIR_INTERNAL for any other failure of the file system.
 * @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_restore(const struct weir_checkpoint_part parts[],
                                                  size_t count, const char *path,
                                                  const struct weir_checkpoint_options *options,
                                                  uint64_t deadline_ns, weir_error *error);

/*
 * Saves all variables (weir_var_type()) that are in the store when the call begins, as
 * weir_checkpoint_save() does. Variables added or removed meanwhile may be included. The name of a
 * variable in the file is "name", or "container/name" if its container has a name. Objects of other
 * types are left out.
 *
 * Errors: WEIR_INVALID_ARGUMENT if two variables get the same name, WEIR_NOT_FOUND if there are no
 * variables, and those of weir_checkpoint_save().
 * @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_save_store(weir_store *store, const char *path,
                                                     const struct weir_checkpoint_options *options,
                                                     weir_error *error);

/*
 * Restores all variables of the store, named as in weir_checkpoint_save_store(). It fails if the
 * file lacks one of them, and, without WEIR_CHECKPOINT_ALLOW_OTHERS, if the file has a tensor whose
 * variable is not in the store: create the variables first. Errors as for
 * weir_checkpoint_restore().
 * @since 0.1
 */
WEIR_API enum weir_status weir_checkpoint_restore_store(
	weir_store *store, const char *path, const struct weir_checkpoint_options *options,
	uint64_t deadline_ns, weir_error *error);

WEIR_END_DECLS

#endif
