/*
 * disk.c - replacing a file so that no crash leaves half of it.
 *
 *     open PATH.PID-N.tmp, a new file   write   sync   close   rename to PATH   sync the folder
 *
 * The sync before the rename makes this safe when the machine stops. Without it, the name may reach
 * the disk before the data. The sync of the folder makes the new file durable when the call
 * returns.
 */
#include "checkpoint/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/file_limit.h"
#include "base/memory.h"
#include "base/uncancelled.h"
#include "checkpoint/plain.h"

/* -- the real disk ----------------------------------------------------------------------------- */

static int real_open(void *context, const char *path, int flags, mode_t mode)
{
	(void)context;
	return weiri_open(path, flags, mode);
}

static ssize_t real_write(void *context, int file, const void *bytes, size_t count)
{
	struct weiri_file_limit limit;
	ssize_t written;

	(void)context;
	weiri_file_limit_begin(&limit);
	written = weiri_write(file, bytes, count);
	weiri_file_limit_end(&limit, written < 0);
	return written;
}

static int real_sync(void *context, int file)
{
	(void)context;
	return weiri_fsync(file);
}

static int real_close(void *context, int file)
{
	(void)context;
	return weiri_close(file);
}

static int real_rename(void *context, const char *from, const char *to)
{
	(void)context;
	return weiri_rename(from, to);
}

static int real_unlink(void *context, const char *path)
{
	(void)context;
	return weiri_unlink(path);
}

const struct weiri_disk weiri_real_disk = {real_open,   real_write,  real_sync, real_close,
                                           real_rename, real_unlink, NULL};

/* -- failures ---------------------------------------------------------------------------------- */

static enum weir_status code_of(int reason)
{
	switch (reason) {
	case ENOENT:
	case ENOTDIR: return WEIR_NOT_FOUND;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
	case EMFILE:
	case ENFILE:
	case ENOMEM: return WEIR_RESOURCE_EXHAUSTED;
	default: return WEIR_INTERNAL;
	}
}

/* Returns a status for errno. The message tells what failed, and the system's reason. */
static enum weir_status failed(const char *path, const char *what, weir_error *error)
{
	int reason = errno;
	struct weiri_plain file = weiri_plain_path(path);
	char words[64];

	return weiri_fail(error, code_of(reason), "checkpoint %s: %s: %s", file.text, what,
	                  weiri_errno_words(reason, words, sizeof(words)));
}

/* -- replacing --------------------------------------------------------------------------------- */

/*
 * Bytes are reversed, and brought together, in pieces of this size, which is a multiple of every
 * element size.
 */
enum { PIECE = 16 << 10 };

void weiri_little_endian(void *bytes, size_t count, size_t size)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	char *at = bytes;

	for (size_t i = 0; i + size <= count; i += size) {
		for (size_t j = 0; j < size / 2; j++) {
			char byte = at[i + j];

			at[i + j] = at[i + size - 1 - j];
			at[i + size - 1 - j] = byte;
		}
	}
#else
	(void)bytes;
	(void)count;
	(void)size;
#endif
}

/* Writes all bytes, in as many pieces as the system takes. */
static bool write_all(const struct weiri_disk *disk, int file, const char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t written = disk->write(disk->context, file, bytes, count);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			errno = written < 0 ? errno : EIO; /* a write of 0 bytes gives no reason */
			return false;
		}
		bytes += written;
		count -= (size_t)written;
	}
	return true;
}

/* Copies `count` bytes of the span, from `at` on. */
static void copy_piece(const struct weiri_span *span, size_t at, char *piece, size_t count)
{
	if (span->run == NULL)
		memcpy(piece, (const char *)span->bytes + at, count);
	for (size_t done = 0, bytes; span->run != NULL && done < count; done += bytes) {
		const char *from = span->run(span->bytes, at + done, &bytes);

		if (bytes > count - done)
			bytes = count - done;
		memcpy(piece + done, from, bytes);
	}
}

static bool write_span(const struct weiri_disk *disk, int file, const struct weiri_span *span)
{
	char piece[PIECE];

	if (span->run == NULL && (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ || span->element <= 1))
		return write_all(disk, file, span->bytes, span->count);
	for (size_t done = 0; done < span->count;) {
		size_t count = span->count - done < PIECE ? span->count - done : PIECE;

		copy_piece(span, done, piece, count);
		weiri_little_endian(piece, count, span->element);
		if (!write_all(disk, file, piece, count))
			return false;
		done += count;
	}
	return true;
}

/* Writes and syncs the file, and closes it in any case. Returns NULL, or a text: what failed. */
static const char *fill(const struct weiri_disk *disk, int file, const struct weiri_span spans[], size_t count)
{
	const char *fault = NULL;
	int reason = 0;

	for (size_t i = 0; fault == NULL && i < count; i++) {
		if (!write_span(disk, file, &spans[i]))
			fault = "write";
	}
	if (fault == NULL && disk->sync(disk->context, file) != 0)
		fault = "fsync";
	if (fault != NULL)
		reason = errno;
	if (disk->close(disk->context, file) != 0 && fault == NULL)
		return "close";
	errno = reason;
	return fault;
}

/*
 * Opens a new file and stores its name in `name`. Returns a negative number on failure, with errno
 * set.
 */
static int open_temporary(const struct weiri_disk *disk, const char *path, char *name, size_t room)
{
	/* [relaxed] the number only distinguishes the saves of this process. */
	static _Atomic(unsigned) number;
	enum { ATTEMPTS = 1000, EVERYBODY = 0666 };
	int file = -1;

	for (int i = 0; i < ATTEMPTS; i++) {
		/* [relaxed] as above. */
		(void)snprintf(name, room, "%s.%ld-%u.tmp", path, (long)getpid(), weiri_fetch_add_relaxed(&number, 1u));
		file = disk->open(disk->context, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, EVERYBODY);
		/* An earlier process with the same id left a file of this name. The next name is tried. */
		if (file >= 0 || errno != EEXIST)
			break;
	}
	return file;
}

/* Syncs the folder of a path, which it cuts after the last '/'. Returns as fill() does. */
static const char *sync_folder(const struct weiri_disk *disk, char *folder)
{
	char *end = strrchr(folder, '/');
	int file, synced, reason;

	if (end != NULL)
		end[1] = '\0';
	file = disk->open(disk->context, end != NULL ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (file < 0)
		return "the new file is in place, but its folder could not be opened for fsync";
	synced = disk->sync(disk->context, file);
	reason = errno;
	(void)disk->close(disk->context, file);
	errno = reason;
	return synced == 0 ? NULL : "the new file is in place, but fsync of its folder failed";
}

/* Replaces the file. `name` has `room` bytes for the temporary path. Returns as fill() does. */
static const char *replace(const struct weiri_disk *disk, const char *path, char *name, size_t room,
                           const struct weiri_span spans[], size_t count)
{
	int file = open_temporary(disk, path, name, room), reason;
	const char *fault;

	if (file < 0)
		return "a temporary file beside it could not be made";
	fault = fill(disk, file, spans, count);
	if (fault == NULL && disk->rename(disk->context, name, path) != 0)
		fault = "rename";
	if (fault != NULL) {
		reason = errno;
		(void)disk->unlink(disk->context, name);
		errno = reason;
		return fault;
	}
	(void)memcpy(name, path, strlen(path) + 1);
	return sync_folder(disk, name);
}

enum weir_status weiri_disk_replace(const struct weiri_disk *disk, const char *path, const struct weiri_span spans[],
                                    size_t count, const weir_allocator *allocator, weir_error *error)
{
	enum { SUFFIX = 48 };
	size_t room = strlen(path) + SUFFIX;
	char *name = weiri_allocate(allocator, room, 1);
	enum weir_status status = WEIR_OK;
	struct weiri_plain file = weiri_plain_path(path);
	const char *fault;

	if (name == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "checkpoint %s: no memory for a path", file.text);
	fault = replace(disk, path, name, room, spans, count);
	if (fault != NULL)
		status = failed(path, fault, error);
	weiri_release(allocator, name, room, 1);
	return status;
}

/* -- reading ----------------------------------------------------------------------------------- */

void weiri_input_close(struct weiri_input *input)
{
	(void)weiri_close(input->file);
}

enum weir_status weiri_input_open(const char *path, struct weiri_input *input, weir_error *error)
{
	struct weiri_plain file = weiri_plain_path(path);
	struct stat about;
	enum weir_status status = WEIR_OK;

	/* Without O_NONBLOCK, the open would wait if `path` were a pipe without a writer. */
	*input = (struct weiri_input){.file = weiri_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0), .path = path};
	if (input->file < 0)
		return failed(path, "open", error);
	if (weiri_fstat(input->file, &about) != 0)
		status = failed(path, "fstat", error);
	else if (!S_ISREG(about.st_mode))
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "checkpoint %s is not a regular file", file.text);
	if (status == WEIR_OK)
		input->size = (uint64_t)about.st_size;
	else
		weiri_input_close(input);
	return status;
}

enum weir_status weiri_input_read(const struct weiri_input *input, uint64_t offset, void *bytes, size_t count,
                                  weir_error *error)
{
	struct weiri_plain file = weiri_plain_path(input->path);
	char *at = bytes;

	while (count > 0) {
		ssize_t got = weiri_pread(input->file, at, count, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return failed(input->path, "read", error);
		if (got == 0)
			return weiri_fail(error, WEIR_DATA_LOSS, "checkpoint %s: became shorter while it was read: no byte %llu",
			                  file.text, (unsigned long long)offset);
		at += got;
		offset += (uint64_t)got;
		count -= (size_t)got;
	}
	return WEIR_OK;
}
