/*
 * mapping.c - see mapping.h.
 */
#include "shm/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_limit.h"
#include "base/uncancelled.h"
#include "shm/seats.h"

/* "weir-shm" in the byte order of the machine: one of the other order is refused. */
static const uint64_t magic = UINT64_C(0x6D68732D72696577);

/* The head as it is in the file. */
struct stored {
	uint64_t magic;
	struct weiri_mapping_head head;
	uint64_t check; /* of all bytes before */
};

_Static_assert(sizeof(struct stored) == 16 + sizeof(struct weiri_mapping_head) &&
                   sizeof(struct weiri_mapping_head) == 40,
               "no padding, whose bytes would be undefined");

/* FNV-1a. It finds an accident; against an attacker, the bounds are checked. */
static uint64_t check_of(const struct stored *stored)
{
	const unsigned char *bytes = (const unsigned char *)stored;
	uint64_t check = UINT64_C(0xCBF29CE484222325);

	for (size_t i = 0; i < offsetof(struct stored, check); i++)
		check = (check ^ bytes[i]) * UINT64_C(0x100000001B3);
	return check;
}

/* Locks of libatomic are private to a process. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LONG_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
               "shared memory needs atomics of 32 and 64 bits without locks");

static enum weir_status refuse(const char *what, const char *cannot, enum weir_status status, weir_error *error)
{
	char words[96];

	return weiri_fail(error, status, "%s: %s: %s", what, cannot, weiri_errno_words(errno, words, sizeof(words)));
}

static enum weir_status forbid_shrinking(const char *what, int file, weir_error *error)
{
	int seals = weiri_file_seals(file);

	if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0)
		return WEIR_OK;
	if (seals >= 0 && weiri_file_forbid_shrinking(file) == 0)
		return WEIR_OK;
	return refuse(what, "the file is no memfd that can be sealed against shrinking", WEIR_FAILED_PRECONDITION, error);
}

static size_t page_size(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 0 ? (size_t)size : WEIRI_MAPPING_HEAD;
}

enum weir_status weiri_mapping_open(const char *what, int file, const struct weiri_mapping_head *head,
                                    size_t private_least, struct weiri_mapping *mapping, weir_error *error)
{
	const size_t page = page_size(), private_size = (private_least + page - 1) / page * page;
	const size_t size = private_size + (size_t)head->size;
	int saved_errno = errno;
	/* The private part, and room for the shared part behind it. */
	/* cppcheck-suppress invalidFunctionArg ; -1 is right without a file */
	char *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	enum weir_status status = WEIR_OK;

	if (base == MAP_FAILED) {
		status = refuse(what, "no address space", WEIR_RESOURCE_EXHAUSTED, error);
		/* cppcheck-suppress leakReturnValNotUsed ; it lies behind `base` */
	} else if (mmap(base + private_size, (size_t)head->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
	                WEIRI_MAPPING_HEAD) == MAP_FAILED ||
	           madvise(base, private_size, MADV_WIPEONFORK) != 0) {
		status = refuse(what, "the file cannot be mapped", WEIR_RESOURCE_EXHAUSTED, error);
		(void)munmap(base, size);
	} else {
		*mapping = (struct weiri_mapping){base, base + private_size, private_size, size};
	}
	errno = saved_errno;
	return status;
}

void weiri_mapping_close(const struct weiri_mapping *mapping)
{
	int saved_errno = errno;

	(void)munmap(mapping->base, mapping->size);
	errno = saved_errno;
}

/* Like ftruncate(2), but without SIGXFSZ. */
static int grow(int file, off_t size)
{
	struct weiri_file_limit limit;
	int result;

	weiri_file_limit_begin(&limit);
	result = ftruncate(file, size);
	weiri_file_limit_end(&limit, result != 0);
	return result;
}

static enum weir_status make_room(const char *what, int file, uint64_t size, weir_error *error)
{
	struct stat about;
	enum weir_status status;

	if (weiri_fstat(file, &about) != 0)
		return refuse(what, "the file cannot be asked for its size", WEIR_INVALID_ARGUMENT, error);
	if (about.st_size != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: the file has %lld bytes, must be empty", what,
		                  (long long)about.st_size);
	if (grow(file, (off_t)(WEIRI_MAPPING_HEAD + size)) != 0)
		return refuse(what, "the file cannot grow", WEIR_RESOURCE_EXHAUSTED, error);
	status = forbid_shrinking(what, file, error);
	/* Sealed now, so the size that is read here cannot become smaller. */
	if (status == WEIR_OK && (weiri_fstat(file, &about) != 0 || (uint64_t)about.st_size < WEIRI_MAPPING_HEAD + size))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: another process has made the file smaller", what);
	return status;
}

enum weir_status weiri_mapping_create(const char *what, int file, const struct weiri_mapping_head *head,
                                      size_t private_least, struct weiri_mapping *mapping, weir_error *error)
{
	int saved_errno = errno;
	enum weir_status status = make_room(what, file, head->size, error);

	errno = saved_errno;
	return status == WEIR_OK ? weiri_mapping_open(what, file, head, private_least, mapping, error) : status;
}

enum weir_status weiri_mapping_publish(const char *what, int file, const struct weiri_mapping_head *head,
                                       weir_error *error)
{
	struct stored stored;
	int saved_errno = errno;
	enum weir_status status = WEIR_OK;

	memset(&stored, 0, sizeof(stored));
	stored.magic = magic;
	stored.head = *head;
	stored.check = check_of(&stored);
	if (weiri_pwrite(file, &stored, sizeof(stored), 0) != (ssize_t)sizeof(stored))
		status = refuse(what, "the head cannot be written", WEIR_FAILED_PRECONDITION, error);
	errno = saved_errno;
	return status;
}

static enum weir_status judge(const char *what, const struct stored *stored, enum weiri_mapping_kind kind,
                              weir_error *error)
{
	if (stored->magic != magic)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: the file has no head of Weir, or not yet", what);
	if (stored->head.version != WEIRI_MAPPING_VERSION)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "%s: the layout has version %u, this library has %d", what,
		                  (unsigned)stored->head.version, WEIRI_MAPPING_VERSION);
	if (stored->check != check_of(stored))
		return weiri_fail(error, WEIR_DATA_LOSS, "%s: the head is damaged", what);
	if (stored->head.kind != (uint32_t)kind)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: the file holds another kind of object", what);
	if (stored->head.namespace != weiri_seats_namespace())
		return weiri_fail(
			error, WEIR_FAILED_PRECONDITION,
			"%s: the creator lives in another pid or time namespace, so it cannot be seen whether it is gone", what);
	return WEIR_OK;
}

/* Seals first: the size that is read afterwards cannot become smaller. */
static enum weir_status read_head(const char *what, int file, enum weiri_mapping_kind kind, struct stored *stored,
                                  weir_error *error)
{
	struct stat about;
	enum weir_status status = forbid_shrinking(what, file, error);

	if (status != WEIR_OK)
		return status;
	if (weiri_fstat(file, &about) != 0)
		return refuse(what, "the file cannot be asked for its size", WEIR_INVALID_ARGUMENT, error);
	if (weiri_pread(file, stored, sizeof(*stored), 0) != (ssize_t)sizeof(*stored))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: the file has no head of Weir, or not yet", what);
	status = judge(what, stored, kind, error);
	if (status == WEIR_OK &&
	    (about.st_size < WEIRI_MAPPING_HEAD || (uint64_t)about.st_size - WEIRI_MAPPING_HEAD < stored->head.size))
		return weiri_fail(error, WEIR_DATA_LOSS, "%s: the file has %lld bytes, and must have %llu more than %d", what,
		                  (long long)about.st_size, (unsigned long long)stored->head.size, WEIRI_MAPPING_HEAD);
	return status;
}

enum weir_status weiri_mapping_read(const char *what, int file, enum weiri_mapping_kind kind,
                                    struct weiri_mapping_head *head, weir_error *error)
{
	struct stored stored;
	int saved_errno = errno;
	enum weir_status status = read_head(what, file, kind, &stored, error);

	errno = saved_errno;
	if (status == WEIR_OK)
		*head = stored.head;
	return status;
}
