/*
 * mapping.h - the file of shared memory: its head, and how it is mapped.
 *
 * The file begins with the head, which is alone in its first 64 KiB, and is read once, with pread(2),
 * by a process that attaches. What all processes share begins behind it. (Untouched memory of the
 * head's 64 KiB costs nothing; pages have at most this size.) In the address space of a process,
 * private memory comes directly before the shared memory:
 *
 *     | private: handle ... constants | shared: hints, slots, ... |
 *
 * So a struct can begin in private memory and end in shared memory. That is how weir_ring, whose
 * constants no other process may change and whose hints all share, is used as it is. In the child of
 * a fork the private memory is zero (MADV_WIPEONFORK): the child cannot use its parent's seat.
 *
 * No access raises SIGBUS, because the file cannot become smaller: it must be sealed with
 * F_SEAL_SHRINK, which nothing removes, and it is as large as the head says.
 */
#ifndef WEIRI_SHM_MAPPING_H
#define WEIRI_SHM_MAPPING_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

enum { WEIRI_MAPPING_HEAD = 1 << 16, WEIRI_MAPPING_VERSION = 1 };
enum weiri_mapping_kind { WEIRI_MAPPING_RING = 1, WEIRI_MAPPING_LATEST = 2 };

/* The head without magic and checksum: what the creator chose. */
struct weiri_mapping_head {
	uint32_t kind, version;
	uint32_t capacity, item_size, seats, hands;
	uint64_t size;      /* of the shared memory behind the head */
	uint64_t namespace; /* of pids: processes must know each other by the same pids */
};

struct weiri_mapping {
	char *base;                /* private memory */
	char *shared;              /* base + private_size */
	size_t private_size, size; /* size: of all */
};

/*
 * Makes the file, which is empty, as large as head->size needs, forbids to shrink it, and maps it.
 * The shared memory is zero. The head is missing until weiri_mapping_publish(). Errors:
 * WEIR_FAILED_PRECONDITION if the file is not empty or cannot be sealed, WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_mapping_create(const char *what, int file, const struct weiri_mapping_head *head,
                                      size_t private_least, struct weiri_mapping *mapping, weir_error *error);
/* Writes the head: from here on others can attach. */
enum weir_status weiri_mapping_publish(const char *what, int file, const struct weiri_mapping_head *head,
                                       weir_error *error);
/*
 * Reads and checks the head of a file of this kind. The caller checks the geometry, and that
 * head->size is the size that follows from it. Errors: WEIR_FAILED_PRECONDITION if the file has no
 * head (yet), is not sealed and cannot be, or is of another pid namespace; WEIR_UNIMPLEMENTED for
 * another version of the layout; WEIR_DATA_LOSS if the head is damaged or the file is too small.
 */
enum weir_status weiri_mapping_read(const char *what, int file, enum weiri_mapping_kind kind,
                                    struct weiri_mapping_head *head, weir_error *error);
/* Maps a file whose head was read and checked. Errors: WEIR_RESOURCE_EXHAUSTED. */
enum weir_status weiri_mapping_open(const char *what, int file, const struct weiri_mapping_head *head,
                                    size_t private_least, struct weiri_mapping *mapping, weir_error *error);
void weiri_mapping_close(const struct weiri_mapping *mapping);

#endif
