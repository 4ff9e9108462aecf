/*
 * layout.h - the memory of a ring, shared by its slot formats.
 */
#ifndef WEIRI_RING_LAYOUT_H
#define WEIRI_RING_LAYOUT_H

#include <weir/ring.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"

/* A ticket is lap << shift | index. */
struct weiri_ring_shape {
	size_t mask;      /* (1 << shift) - 1 */
	size_t end_index; /* what the index becomes behind the last slot: capacity & mask */
	unsigned shift;
};

struct weir_ring {
	/* Constant. */
	size_t capacity;
	struct weiri_ring_shape shape;
	unsigned cell_bits; /* LTQ64: low bits of a slot's word that number a cell */
	enum weir_ring_format format;
	size_t memory_size; /* of this allocation; 0: the memory is the caller's */
	void *slots;
	_Atomic(uint64_t) *cells; /* LTQ64, SPAN16 */
	void *spares;             /* LTQ64: of cells; SPAN16: the arenas */
	size_t arena_size;        /* SPAN16: cells of an arena */
	weir_allocator allocator;

	/* Producers; closers. */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) tail_hint;
	_Atomic(uint32_t) closed;  /* 1: an enqueue that reads it is refused, unless admitted */
	_Atomic(uint64_t) limit;   /* SPAN16: there is room for the tickets below */
	_Atomic(uint64_t) full_at; /* when a producer was refused last (in_step.h) */
	/* Consumers. */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) head_hint;
	_Atomic(uint64_t) head;     /* SPAN16, which has no head_hint: {ticket, offset} of the next value */
	_Atomic(uint64_t) empty_at; /* when a consumer was refused last (in_step.h) */
	WEIRI_ALIGNED_APART char end[];
};

/* What a dequeue does when it finds a closed ring empty. */
enum weiri_ring_at_end {
	WEIRI_RING_SEAL, /* bury the first free ticket, so that the end is final */
	WEIRI_RING_LEAVE /* answer WEIR_WOULD_BLOCK: admitted enqueues are still to come */
};

/*
 * A pointer to items that must leave before everything in the ring. While it is not NULL, nothing
 * is dequeued from the ring.
 */
typedef const _Atomic(void *) weiri_ring_before;

/* How many values went in and came out since the ring was made. */
struct weiri_ring_counts {
	uint64_t in, out;
};

/* A draw (draw.h): the seed of the ring, and how many values stay inside while the ring is open. */
struct weiri_draw {
	uint64_t seed;
	size_t min_left;
	enum weiri_ring_at_end at_end;
};

/* The greatest capacity of a ring of draws. */
enum { WEIRI_DRAW_MAX_CAPACITY = (1 << 24) - 1 };

/* The operations of a format. A closed ring refuses an enqueue unless it is `admitted`. */
struct weiri_ring_ops {
	size_t (*enqueue)(weir_ring *ring, const uint64_t values[], size_t count, bool admitted, enum weir_status *status);
	/* `before` may be NULL. *status is WEIR_ABORTED if *before is not NULL. */
	size_t (*dequeue)(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
	                  weiri_ring_before *before, enum weir_status *status);
	/* Each count was correct at some moment of the call, `out` at an earlier one than `in`. */
	struct weiri_ring_counts (*counts)(const weir_ring *ring);
	/*
	 * Returns true if at some moment of the call a dequeue would have found a value, or an enqueue
	 * a free ticket. The answers are as exact as the refusals of those calls.
	 */
	bool (*has_value)(const weir_ring *ring);
	bool (*has_room)(const weir_ring *ring);
};

enum weir_status weiri_ltq16_enqueue(weir_ring *ring, uint64_t value);
enum weir_status weiri_ltq16_dequeue(weir_ring *ring, uint64_t *value);
enum weir_status weiri_ltq64_enqueue(weir_ring *ring, uint64_t value);
enum weir_status weiri_ltq64_dequeue(weir_ring *ring, uint64_t *value);
/* For weiri_ring_dequeue_one(). */
enum weir_status weiri_ltq16_dequeue_behind(weir_ring *ring, uint64_t *value, weiri_ring_before *before);
enum weir_status weiri_ltq64_dequeue_behind(weir_ring *ring, uint64_t *value, weiri_ring_before *before);
enum weir_status weiri_span16_enqueue(weir_ring *ring, uint64_t value);
enum weir_status weiri_span16_dequeue(weir_ring *ring, uint64_t *value);
enum weir_status weiri_span16_dequeue_behind(weir_ring *ring, uint64_t *value, weiri_ring_before *before);
/* For weiri_ring_draw(). */
enum weir_status weiri_ltq16_draw(weir_ring *ring, const struct weiri_draw *draw, uint64_t *value);
enum weir_status weiri_ltq64_draw(weir_ring *ring, const struct weiri_draw *draw, uint64_t *value);
extern const struct weiri_ring_ops weiri_ltq16_ops;
extern const struct weiri_ring_ops weiri_ltq64_ops;
extern const struct weiri_ring_ops weiri_span16_ops;

/* Returns true if this machine has LTQ16 and SPAN16. */
bool weiri_ltq16_available(void);
size_t weiri_ltq16_slots_size(size_t capacity);

/*
 * slots_size() returns the bytes of slots, cells and spares. init() sets the ring's pointers into
 * `memory`, and the first contents.
 */
size_t weiri_ltq64_slots_size(size_t capacity);
void weiri_ltq64_init(weir_ring *ring, void *memory);
/* The same for slots, cells and arenas. */
#if defined(WEIRI_UNDER_MODEL) /* so that few threads borrow all */
enum { WEIRI_RING_ARENAS = 2 };
#else
enum { WEIRI_RING_ARENAS = 8 };
#endif
size_t weiri_span16_slots_size(size_t capacity);
void weiri_span16_init(weir_ring *ring, void *memory);
/* algorithm_invariants.c: for assertions. */
enum { WEIRI_RING_SPARES = 64 };                     /* of LTQ64 */
void weiri_ring_assert_whole(const weir_ring *ring); /* all formats; no thread uses the ring */
void weiri_ring_assert_laps(const weir_ring *ring);  /* LTQ */
bool weiri_ring_is_sealed(const weir_ring *ring);    /* true: a slot is TOMB */
void weiri_ring_assert_grown(const weir_ring *ring, size_t index, uint64_t seen); /* LTQ: since that state was seen */
void weiri_ring_assert_own_cell(const weir_ring *ring, uint64_t cell);            /* LTQ64: no slot names it */
#if defined(WEIRI_UNDER_MODEL)
extern WEIRI_TLS uint32_t weiri_ring_first_place; /* where this thread looks for a spare cell or an arena first */
extern WEIRI_TLS uint32_t weiri_ring_step_time;   /* in_step.h */
extern WEIRI_TLS bool weiri_ring_hint_again;      /* back_off.h */
#endif

#endif
