/*
 * frames.h - a ring of frames in shared memory: layout, exchange, recovery. Only a recovery
 * makes system calls, to see whether a process is gone.
 *
 * frames.c has the essay. shm_ring.c maps the memory.
 */
#ifndef WEIRI_SHM_FRAMES_H
#define WEIRI_SHM_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "ring/layout.h"
#include "shm/seats.h"

enum {
	WEIRI_FRAMES_MAX_SEATS = 64,
	WEIRI_FRAMES_MAX_HANDS = 64,         /* of a seat */
	WEIRI_FRAMES_HAND_BITS = 12,         /* number a hand: 64 * 64 */
	WEIRI_FRAMES_MAX_CAPACITY = 1 << 19, /* so that cells have at most 20 bits */
	WEIRI_FRAMES_MAX_ITEM = 1 << 20,     /* bytes */
	WEIRI_FRAMES_MIN_ITEM = 8            /* bytes */
};

/* What the creator chose. A process keeps a copy of its own, and never reads it again from shared memory. */
struct weiri_frames_geometry {
	uint32_t capacity;  /* slots */
	uint32_t item_size; /* bytes */
	uint32_t seats;     /* processes */
	uint32_t hands;     /* of a seat */
};

/* Where the parts lie: offsets from the beginning of the shared memory, which begins with the hints. */
struct weiri_frames_layout {
	size_t slots, bells, seats, hands, frames;
	size_t stride;  /* from frame to frame */
	size_t payload; /* from a frame to its item */
	size_t size;    /* of all */
};

/* In shared memory. Its owner writes it; recovery does after the owner's death. The essay says when. */
struct weiri_hand {
	_Alignas(WEIRI_LINE) _Atomic(uint64_t) kept; /* round and frame */
	_Atomic(uint64_t) from;                      /* the slot's word that an exchange replaces */
	_Atomic(uint64_t) wants;                     /* the token of the frame in that word */
	_Atomic(uint64_t) at;                        /* round and slot of an exchange; of another round: none */
};

/* The beginning of a frame in shared memory; the item follows at `payload`. */
struct weiri_shared_frame {
	_Atomic(uint64_t) token; /* the last hand that got the frame, and in which round */
	_Atomic(uint64_t) size;  /* of the item; the hand that has the frame writes it */
};

/* A hand as its own process knows it. */
struct weiri_own_hand {
	uint64_t round;
	uint32_t frame;
};

/* Private memory of a process. */
struct weiri_frames {
	struct weiri_frames_geometry geometry;
	struct weiri_frames_layout layout;
	weir_ring *ring; /* its hints are the beginning of the shared memory */
	char *shared;
	struct weiri_hand *hands;
	uint32_t count;                             /* frames */
	uint32_t first_hand;                        /* of this process's seat */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) idle; /* bit i: own hand i is not in use */
	struct weiri_own_hand own[WEIRI_FRAMES_MAX_HANDS];
};

/* Returns false if the geometry is out of bounds, or too large for the address space. */
bool weiri_frames_lay_out(const struct weiri_frames_geometry *geometry, struct weiri_frames_layout *layout);
/* Writes the first contents into memory that is cleared. */
void weiri_frames_fill(const struct weiri_frames_geometry *geometry, const struct weiri_frames_layout *layout,
                       void *shared);
/*
 * Fills *frames and the constants of *ring, which lies so that its hints are the beginning of
 * `shared`.
 */
void weiri_frames_open(struct weiri_frames *frames, weir_ring *ring, const struct weiri_frames_geometry *geometry,
                       const struct weiri_frames_layout *layout);
/*
 * The process has got this seat, whose hands no other process uses. Returns false if a hand in
 * shared memory is damaged.
 */
bool weiri_frames_sit(struct weiri_frames *frames, uint32_t seat);

/* Takes an idle hand of this process. Returns its number, or -1 if all are in use. */
static inline int weiri_frames_pick(struct weiri_frames *frames)
{
	/* [relaxed] the CAS below acquires. */
	uint64_t idle = weiri_load_relaxed(&frames->idle);

	while (idle != 0) {
		/* [H2 acquire] pairs with weiri_frames_drop(). */
		if (weiri_cas_acquire(&frames->idle, &idle, idle & (idle - 1)))
			return __builtin_ctzll(idle);
	}
	return -1;
}

static inline void weiri_frames_drop(struct weiri_frames *frames, uint32_t own)
{
	/* [H2 release] the hand's private copy, and what this thread did with its frame. */
	(void)weiri_fetch_or_release(&frames->idle, UINT64_C(1) << own);
}

/* The frame that an own hand has now. */
static inline struct weiri_shared_frame *weiri_frames_at(const struct weiri_frames *frames, uint32_t frame)
{
	return (struct weiri_shared_frame *)(void *)(frames->shared + frames->layout.frames +
	                                             frame * frames->layout.stride);
}

static inline struct weiri_shared_frame *weiri_frames_of(const struct weiri_frames *frames, uint32_t own)
{
	return weiri_frames_at(frames, frames->own[own].frame);
}

static inline weiri_seat *weiri_frames_seats(const struct weiri_frames *frames)
{
	return (weiri_seat *)(void *)(frames->shared + frames->layout.seats);
}

static inline void *weiri_frames_payload(const struct weiri_frames *frames, struct weiri_shared_frame *frame)
{
	return (char *)frame + frames->layout.payload;
}

/*
 * Exchanges the frame of an own hand for a free one at the tail, or for the oldest item at the
 * head. On failure the hand keeps its frame. WEIR_WOULD_BLOCK, WEIR_CANCELLED or WEIR_OUT_OF_RANGE
 * as for a ring; WEIR_DATA_LOSS: the shared memory is damaged.
 */
enum weir_status weiri_frames_publish(struct weiri_frames *frames, uint32_t own);
enum weir_status weiri_frames_take(struct weiri_frames *frames, uint32_t own);
void weiri_frames_close(struct weiri_frames *frames);
bool weiri_frames_closed(const struct weiri_frames *frames);
size_t weiri_frames_size_approx(const struct weiri_frames *frames);

/*
 * Finds out which frames the hands of a seat have, whose process is gone and executes no
 * instruction any more; `identity` is the word of the seat. Afterwards the seat can be given to another
 * process. Changes nothing if that has happened already. Returns false if the shared memory is
 * damaged.
 */
bool weiri_frames_recover_hands(struct weiri_frames *frames, uint32_t seat, uint64_t identity);
/*
 * If the process of the seat is gone (and is not `self`): finds out which frames its hands have, and
 * frees the seat; adds 1 to *freed if this call has freed it. Any number of processes may do it at a
 * time, and end inside. Returns false if the shared memory is damaged; the seat then stays taken.
 */
bool weiri_frames_recover_seat(struct weiri_frames *frames, uint32_t seat, uint64_t self, size_t *freed);
/* The same for all seats; *freed: how many seats this call has freed. */
bool weiri_frames_recover_gone(struct weiri_frames *frames, uint64_t self, size_t *freed);

#endif
