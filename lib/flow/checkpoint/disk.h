/*
 * disk.h - replacing a file as a whole, and reading one.
 */
#ifndef WEIRI_CHECKPOINT_DISK_H
#define WEIRI_CHECKPOINT_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <weir/alloc.h>
#include <weir/status.h>

/*
 * The calls that change the disk. They mean what they mean in POSIX: errno tells why a call failed.
 * Tests substitute them, in order to stop between any two calls.
 */
struct weiri_disk {
	int (*open)(void *context, const char *path, int flags, mode_t mode);
	ssize_t (*write)(void *context, int file, const void *bytes, size_t count);
	int (*sync)(void *context, int file);
	int (*close)(void *context, int file);
	int (*rename)(void *context, const char *from, const char *to);
	int (*unlink)(void *context, const char *path);
	void *context;
};
extern const struct weiri_disk weiri_real_disk;

/*
 * Returns the address of the byte at `at`, and sets *count to how many bytes, at least 1, lie one
 * behind the other from there on.
 */
typedef const char *weiri_run_fn(const void *context, size_t at, size_t *count);

/*
 * Bytes to write: from `bytes` on, or, if run() is not NULL, those that it shows for `bytes`. On a
 * big-endian machine each group of `element` bytes is reversed; on others the bytes are written as
 * they are.
 */
struct weiri_span {
	const void *bytes;
	size_t count;
	size_t element;
	weiri_run_fn *run;
};

/*
 * Replaces `path` by a file of these spans: writes and syncs a temporary file beside it, renames
 * it, and syncs the folder. The data is on the disk before the name is. So `path` is the old file
 * or the new one, whatever unsynced data a crash loses. Fails with WEIR_NOT_FOUND (no such folder),
 * WEIR_RESOURCE_EXHAUSTED (no memory, or no room on the disk) or WEIR_INTERNAL.
 */
enum weir_status weiri_disk_replace(const struct weiri_disk *disk, const char *path, const struct weiri_span spans[],
                                    size_t count, const weir_allocator *allocator, weir_error *error);

/* A file that is being read. If it is replaced meanwhile, reads still return the old contents. */
struct weiri_input {
	int file;
	uint64_t size;
	const char *path;
};

/* Fails with WEIR_NOT_FOUND, WEIR_INVALID_ARGUMENT (not a regular file) or WEIR_INTERNAL. */
enum weir_status weiri_input_open(const char *path, struct weiri_input *input, weir_error *error);
void weiri_input_close(struct weiri_input *input);
/* Fails with WEIR_DATA_LOSS (the file has become shorter) or WEIR_INTERNAL. */
enum weir_status weiri_input_read(const struct weiri_input *input, uint64_t offset, void *bytes, size_t count,
                                  weir_error *error);

/* Reverses each group of `size` bytes on a big-endian machine; does nothing elsewhere. */
void weiri_little_endian(void *bytes, size_t count, size_t size);

#endif
