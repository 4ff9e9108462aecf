/*
 * shm_ring_kit.h - for the tests of the ring between processes: items that tell whether they are whole,
 * and checks of a whole ring.
 */
#ifndef SHM_RING_KIT_H
#define SHM_RING_KIT_H

#include "shm_kit.h"

#include <weir/shm_ring.h>

#include "shm/frames.h"

enum { WORDS = 8, ITEM = WORDS * sizeof(uint64_t) };

static inline weir_shm_ring *make(int file, size_t capacity, size_t item_size, uint32_t processes, uint32_t frames)
{
	struct weir_shm_ring_options options = {WEIR_SHM_RING_OPTIONS_INIT, .processes = processes,
	                                        .frames_per_process = frames};
	weir_shm_ring *ring = NULL;
	weir_error error = {.message = ""};

	cr_assert_eq(weir_shm_ring_create(file, capacity, item_size, &options, &ring, &error), WEIR_OK, "%s",
	             error.message);
	return ring;
}

static inline weir_shm_ring *join(int file)
{
	weir_shm_ring *ring = NULL;
	weir_error error = {.message = ""};

	cr_assert_eq(weir_shm_ring_attach(file, &ring, &error), WEIR_OK, "%s", error.message);
	return ring;
}

/* An item whose words all tell its number. */
static inline enum weir_status put(weir_shm_ring *ring, uint64_t number)
{
	uint64_t item[WORDS];

	for (size_t i = 0; i < WORDS; i++)
		item[i] = number * WORDS + i;
	return weir_shm_ring_try_enqueue(ring, item, sizeof(item));
}

/* Returns the status; *number is UINT64_MAX if the item is torn. */
static inline enum weir_status get(weir_shm_ring *ring, uint64_t *number)
{
	uint64_t item[WORDS];
	size_t size = 0;
	enum weir_status status = weir_shm_ring_try_dequeue(ring, item, sizeof(item), &size);

	if (status != WEIR_OK)
		return status;
	*number = item[0] / WORDS;
	for (size_t i = 0; i < WORDS; i++) {
		if (size != sizeof(item) || item[i] != *number * WORDS + i)
			*number = UINT64_MAX;
	}
	return WEIR_OK;
}

/* X1: each frame is named by one slot or is kept by one hand, and the tokens of hands are theirs. */
static inline void expect_whole(weir_shm_ring *ring)
{
	const struct weiri_frames *frames = (const struct weiri_frames *)(void *)ring;
	const uint64_t mask = (UINT64_C(1) << frames->ring->cell_bits) - 1;
	const _Atomic(uint64_t) *slots = frames->ring->slots;
	unsigned char *named = calloc(frames->count, 1);

	cr_assert_not_null(named);
	for (uint32_t i = 0; i < frames->geometry.capacity; i++)
		named[weiri_load_acquire(&slots[i]) & mask]++;
	for (uint32_t i = 0; i < frames->geometry.seats * frames->geometry.hands; i++) {
		uint64_t kept = weiri_load_acquire(&frames->hands[i].kept);
		uint64_t token = weiri_load_acquire(&weiri_frames_at(frames, (uint32_t)(kept & mask))->token);

		named[kept & mask]++;
		cr_assert_eq(token, kept >> frames->ring->cell_bits << WEIRI_FRAMES_HAND_BITS | i, "the token of hand %u", i);
	}
	for (uint32_t i = 0; i < frames->count; i++)
		cr_assert_eq(named[i], 1, "frame %u is named %u times", i, (unsigned)named[i]);
	free(named);
}

/* The ring is empty; it holds exactly its capacity, in order. */
static inline void expect_exact(weir_shm_ring *ring, uint64_t first)
{
	size_t capacity = weir_shm_ring_capacity(ring);
	uint64_t number;

	for (size_t i = 0; i < capacity; i++)
		cr_assert_eq(put(ring, first + i), WEIR_OK);
	cr_assert_eq(put(ring, first), WEIR_WOULD_BLOCK);
	for (size_t i = 0; i < capacity; i++) {
		cr_assert_eq(get(ring, &number), WEIR_OK);
		cr_assert_eq(number, first + i);
	}
	cr_assert_eq(get(ring, &number), WEIR_WOULD_BLOCK);
}

#endif
