/*
 * ltq16.c - LTQ with 16-byte slots {state, value}: one CAS16 to enqueue, one CAS64 to dequeue.
 *
 * Algorithm. That of algorithm.h; this file says how a slot holds its state and value.
 *
 * Mixed sizes. ISO C has no object that is accessed atomically both as 16 bytes and as its two
 * halves. This file alone accesses an object that way. It relies on two things. The compiler keeps
 * the accesses as written. And on x86-64 a locked cmpxchg16b, and a locked cmpxchg or a plain
 * 8-byte load of one half of the same 16-byte aligned object, are ordered like accesses of one
 * size, because all of them lie in one cache line and the lock is on the line. (Processors with AVX
 * document the same for plain 16-byte accesses; this file reads only the halves.) On a machine
 * without that instruction the file compiles to weiri_ltq16_available() = 0, and LTQ64 is used. The
 * CAS16 is __sync_bool_compare_and_swap. With -mcx16 it is inlined; it is a full barrier, and
 * ThreadSanitizer understands it, unlike inline assembly.
 */
#include "ring/algorithm.h"
#include "ring/draw.h"

#if defined(__x86_64__) && defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)

struct slot {
	_Alignas(16) _Atomic(uint64_t) state;
	_Atomic(uint64_t) value;
};
_Static_assert(sizeof(struct slot) == 16 && offsetof(struct slot, value) == 8, "programs contain this (port.c)");

/* The slot as one object; may_alias because its halves are accessed with their own types. */
__extension__ typedef unsigned __int128 __attribute__((may_alias)) whole;

static WEIRI_ALWAYS_INLINE struct slot *slot_at(const weir_ring *ring, size_t index)
{
	return (struct slot *)ring->slots + index;
}

static WEIRI_ALWAYS_INLINE whole join(uint64_t state, uint64_t value)
{
	return (whole)value << 64 | state;
}

static WEIRI_ALWAYS_INLINE struct look look(const weir_ring *ring, size_t index)
{
	struct slot *slot = slot_at(ring, index);
	/* [seq_cst S; P1, P2 acquire] pairs with fill() and drain(). */
	uint64_t state = weiri_load_seq_cst(&slot->state);

	/*
	 * [relaxed] the value belongs to `state` if a CAS from `state` succeeds: a value changes only
	 * together with its state.
	 */
	return (struct look){state, state, weiri_load_relaxed(&slot->value), slot};
}

/*
 * The changes below take the slot from the look: after the load in look(), the compiler would read the
 * ring's pointer to the slots once more.
 */

static WEIRI_ALWAYS_INLINE bool fill(weir_ring *ring, size_t index, const struct look *seen, uint64_t value)
{
	(void)ring, (void)index;
	/* [S; P1 release] pairs with look(): a full barrier. */
	return __sync_bool_compare_and_swap((whole *)seen->slot, join(seen->state, seen->value),
	                                    join(seen->state + 1, value));
}

static WEIRI_ALWAYS_INLINE bool drain(weir_ring *ring, size_t index, const struct look *seen, uint64_t *value)
{
	struct slot *slot = seen->slot;
	uint64_t state = seen->state;

	(void)ring, (void)index;
	WEIR_ASSERT_LOOK(weiri_ring_assert_grown(ring, index, state));
	/*
	 * [seq_cst S; P2 release] pairs with look(): the value has been read. A failed CAS acquires,
	 * because the walk continues.
	 */
	if (!weiri_cas_seq_cst(&slot->state, &state, state + 1))
		return false;
	*value = seen->value;
	return true;
}

static WEIRI_ALWAYS_INLINE bool bury(weir_ring *ring, size_t index, const struct look *seen)
{
	struct slot *slot = seen->slot;
	uint64_t state = seen->state;

	(void)ring, (void)index;
	/*
	 * [P3 release] pairs with look(): passes on the close. No acquire: look() acquired this state,
	 * and after a failure the caller looks again.
	 */
	return weiri_cas_release(&slot->state, &state, state | STATE_TOMB);
}

static const struct slot_format format = {look, fill, drain, bury};

/* The hand holds the value itself. */

static WEIRI_ALWAYS_INLINE bool pick_up(weir_ring *ring, size_t index, const struct look *seen, struct hand *hand)
{
	(void)ring, (void)index;
	hand->content = seen->value;
	/* [S; P1 acquire, P2 release] a full barrier. The value is compared, too: an exchange may change it. */
	return __sync_bool_compare_and_swap((whole *)seen->slot, join(seen->state, seen->value),
	                                    join(seen->state + 1, seen->value));
}

static WEIRI_ALWAYS_INLINE bool exchange(weir_ring *ring, size_t index, const struct look *seen, struct hand *hand)
{
	(void)ring, (void)index;
	/* [S; P1 release, acquire] pairs with itself and pick_up(): a full barrier. */
	if (!__sync_bool_compare_and_swap((whole *)seen->slot, join(seen->state, seen->value),
	                                  join(seen->state, hand->content)))
		return false;
	hand->content = seen->value;
	return true;
}

static WEIRI_ALWAYS_INLINE uint64_t open_hand(weir_ring *ring, const struct hand *hand)
{
	(void)ring;
	return hand->content;
}

static const struct hand_format hands = {pick_up, exchange, open_hand};

#define RING_FORMAT(call) weiri_ltq16_##call
#include "ring/format_calls.h"

bool weiri_ltq16_available(void)
{
	return true;
}

size_t weiri_ltq16_slots_size(size_t capacity)
{
	return capacity * sizeof(struct slot);
}

#else

bool weiri_ltq16_available(void)
{
	return false;
}

size_t weiri_ltq16_slots_size(size_t capacity)
{
	(void)capacity;
	return 0;
}

static size_t none(weir_ring *ring, enum weir_status *status)
{
	(void)ring;
	*status = WEIR_UNIMPLEMENTED;
	return 0;
}

static size_t enqueue(weir_ring *ring, const uint64_t values[], size_t count, bool admitted, enum weir_status *status)
{
	(void)values, (void)count, (void)admitted;
	return none(ring, status);
}

static size_t dequeue(weir_ring *ring, uint64_t values[], size_t count, enum weiri_ring_at_end at_end,
                      weiri_ring_before *before, enum weir_status *status)
{
	(void)values, (void)count, (void)at_end, (void)before;
	return none(ring, status);
}

static struct weiri_ring_counts counts(const weir_ring *ring)
{
	(void)ring;
	return (struct weiri_ring_counts){0, 0};
}

static bool no(const weir_ring *ring)
{
	(void)ring;
	return false;
}

const struct weiri_ring_ops weiri_ltq16_ops = {enqueue, dequeue, counts, no, no};
const struct weiri_ring_ops weiri_span16_ops = {enqueue, dequeue, counts, no, no};

enum weir_status weiri_ltq16_enqueue(weir_ring *ring, uint64_t value)
{
	(void)ring, (void)value;
	return WEIR_UNIMPLEMENTED;
}

enum weir_status weiri_ltq16_dequeue(weir_ring *ring, uint64_t *value)
{
	(void)ring, (void)value;
	return WEIR_UNIMPLEMENTED;
}

enum weir_status weiri_ltq16_dequeue_behind(weir_ring *ring, uint64_t *value, weiri_ring_before *before)
{
	(void)ring, (void)value, (void)before;
	return WEIR_UNIMPLEMENTED;
}

enum weir_status weiri_ltq16_draw(weir_ring *ring, const struct weiri_draw *draw, uint64_t *value)
{
	(void)ring, (void)draw, (void)value;
	return WEIR_UNIMPLEMENTED;
}

#endif
