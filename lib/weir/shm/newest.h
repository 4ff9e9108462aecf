/*
 * newest.h - the newest value, in shared memory: layout, write, read. Only the search for
 * a seat, and a process that becomes the writer, make system calls, to see whether a process is gone.
 *
 * newest.c has the essay. shm_latest.c maps the memory.
 */
#ifndef WEIRI_SHM_NEWEST_H
#define WEIRI_SHM_NEWEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "shm/seats.h"

enum {
	WEIRI_NEWEST_MAX_SEATS = 64,
	WEIRI_NEWEST_MAX_CLAIMS = 16, /* of a seat */
	WEIRI_NEWEST_MAX_BUFFERS = WEIRI_NEWEST_MAX_SEATS * WEIRI_NEWEST_MAX_CLAIMS + 2,
	WEIRI_NEWEST_MAX_VALUE = 1 << 30 /* bytes */
};

/* What the creator chose. A process keeps a copy of its own. */
struct weiri_newest_geometry {
	uint32_t value_size; /* bytes */
	uint32_t seats;      /* processes */
	uint32_t claims;     /* of a seat: reads at a time */
};

/* Offsets from the beginning of the shared memory. */
struct weiri_newest_layout {
	size_t published, bell, writer, seats, claims, buffers;
	size_t stride; /* from buffer to buffer */
	size_t size;   /* of all */
};

struct weiri_claim {
	_Alignas(WEIRI_LINE) _Atomic(uint64_t) word;
};

/* The beginning of a buffer; the value follows. Written by the writer that has the buffer. */
struct weiri_buffer {
	_Alignas(WEIRI_LINE) _Atomic(uint64_t) version;
	_Atomic(uint64_t) size; /* of the value, bytes */
	char pad[WEIRI_LINE - 2 * sizeof(uint64_t)];
	char value[];
};

/* Private memory of a process. */
struct weiri_newest {
	struct weiri_newest_geometry geometry;
	struct weiri_newest_layout layout;
	char *shared; /* NULL in the child of a fork */
	_Atomic(uint64_t) *published, *writer;
	weiri_seat *seats;
	struct weiri_claim *claims;
	uint32_t count; /* buffers */
	unsigned bits;  /* low bits of `published` that number a buffer */
	uint32_t seat;
	uint64_t role;                              /* the word by which this handle is the writer; 0: it is not */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) idle; /* bit i: own claim i is not in use */
};

/* Returns false if the geometry is out of bounds, or too large for the address space. */
bool weiri_newest_lay_out(const struct weiri_newest_geometry *geometry, struct weiri_newest_layout *layout);
/* `shared` is cleared, or in use: it needs no first contents. */
void weiri_newest_open(struct weiri_newest *newest, const struct weiri_newest_geometry *geometry,
                       const struct weiri_newest_layout *layout, char *shared);
/*
 * Takes a free seat, or that of a process that is gone, with its claims and its role of the writer.
 * Returns false if there is none.
 */
bool weiri_newest_sit(struct weiri_newest *newest, uint64_t identity);

/* The newest version; 0: none. */
uint64_t weiri_newest_version(const struct weiri_newest *newest);
/*
 * Claims the newest buffer with an idle claim of this process, until weiri_newest_let_go(). Returns
 * NULL if there is no version (*claim is then -1 if all claims are in use).
 */
const struct weiri_buffer *weiri_newest_claim(struct weiri_newest *newest, int *claim);
void weiri_newest_let_go(struct weiri_newest *newest, int claim);
/* For the only writer: a buffer that no reader can have. Never fails. */
struct weiri_buffer *weiri_newest_prepare(struct weiri_newest *newest, uint32_t *number);
/* Makes it the newest version, and returns its number. */
uint64_t weiri_newest_publish(struct weiri_newest *newest, uint32_t number);

/* Makes this process the writer. Returns false if another process is, which is not gone. */
bool weiri_newest_become_writer(struct weiri_newest *newest);
/* The process ends its role, if it has it, and leaves its seat. */
void weiri_newest_leave(struct weiri_newest *newest, uint64_t identity);

#endif
