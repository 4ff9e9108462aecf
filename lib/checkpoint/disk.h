/*
 * disk.h - a file that is replaced whole, and one that is read.
 */
#ifndef WEIRI_CHECKPOINT_DISK_H
#define WEIRI_CHECKPOINT_DISK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <weir/alloc.h>
#include <weir/status.h>

/* The calls that change the disk, as POSIX has them: errno tells why one failed. Tests stand in for them and stop between two. */
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

/* Bytes to write: as they are, or, on a machine that stores the high byte first, each `element` bytes of them the other way round. */
struct weiri_span {
	const void *bytes;
	size_t count;
	size_t element;
};

/*
 * Makes `path` a file of these spans: a temporary file beside it, written, synced, renamed; then its folder is synced. In each order
 * in which a crash may lose what was not synced, `path` is the old file or the new one: the data is on the disk before the name is.
 * WEIR_NOT_FOUND (no such folder), WEIR_RESOURCE_EXHAUSTED (memory, room on the disk), WEIR_INTERNAL.
 */
enum weir_status weiri_disk_replace(const struct weiri_disk *disk, const char *path, const struct weiri_span spans[],
                                    size_t count, const weir_allocator *allocator, weir_error *error);

/* A file that is read; one that is replaced meanwhile is still read as it was. */
struct weiri_input {
	int file;
	uint64_t size;
	const char *path;
};

/* WEIR_NOT_FOUND, WEIR_INVALID_ARGUMENT (no regular file), WEIR_INTERNAL. */
enum weir_status weiri_input_open(const char *path, struct weiri_input *input, weir_error *error);
void weiri_input_close(struct weiri_input *input);
/* WEIR_DATA_LOSS: it has become shorter; WEIR_INTERNAL. */
enum weir_status weiri_input_read(const struct weiri_input *input, uint64_t offset, void *bytes, size_t count,
                                  weir_error *error);

/* Turns each `size` bytes round where this machine stores the high byte first; elsewhere does nothing. */
void weiri_little_endian(void *bytes, size_t count, size_t size);

#endif
