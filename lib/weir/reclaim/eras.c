/*
 * eras.c - see eras.h.
 */
#include "reclaim/eras.h"

#include <weir/time.h>

#include "base/assert.h"
#include "reclaim/section.h"

enum {
#if defined(WEIRI_UNDER_MODEL)
	/*
	 * In stress/model time passes only when a deadline passes, which is rare; there are four ticks
	 * in all.
	 */
	LEVELS = 1,
	FIRST_TICK_BITS = 62,
#else
	LEVELS = 12,
	FIRST_TICK_BITS = 22, /* 2^22 ns: 4 ms; 16 ticks of the last level are 3 days */
#endif
	NOTES = 16,
	ERA_BITS = 48 /* at a million collections a second, of two eras each, four years */
};

static _Alignas(WEIRI_APART) _Atomic(uint64_t) notes[LEVELS][NOTES];

static unsigned tick_bits(unsigned level)
{
	return FIRST_TICK_BITS + 2 * level;
}

static uint64_t note_of(uint64_t tick, uint64_t era)
{
	return tick << ERA_BITS | (era & ((UINT64_C(1) << ERA_BITS) - 1));
}

static bool is_of_tick(uint64_t note, uint64_t tick)
{
	return note >> ERA_BITS == (tick & UINT16_MAX);
}

static uint64_t era_of(uint64_t note)
{
	return note & ((UINT64_C(1) << ERA_BITS) - 1);
}

static _Atomic(uint64_t) *place_of(unsigned level, uint64_t tick)
{
	return &notes[level][tick % NOTES];
}

/* Returns true if there was already a note of this tick. */
static bool note(unsigned level, uint64_t tick, uint64_t era)
{
	/* [relaxed] the word is all the data */
	if (is_of_tick(weiri_load_relaxed(place_of(level, tick)), tick))
		return true;
	weiri_store_relaxed(place_of(level, tick), note_of(tick, era)); /* [relaxed] as above */
	return false;
}

static WEIRI_UNSEEN void assert_begun(uint64_t era)
{
	WEIR_ASSERT2(E1, era <= weiri_peek(&weiri_era));
}

static WEIRI_COLD void note_all(void)
{
	/* [acquire] E1: the clock is read afterwards. */
	uint64_t era = weiri_load_acquire(&weiri_era), now = weir_now_ns();

	WEIR_ASSERT_LOOK(assert_begun(era));
	/*
	 * If this tick already has a note, the longer ticks that contain it have notes too, or will get
	 * them.
	 */
	for (unsigned level = 0; level < LEVELS && !note(level, now >> tick_bits(level), era); level++)
		;
}

void weiri_eras_note(void)
{
	uint64_t tick = weir_now_ns() >> FIRST_TICK_BITS;

	/* [relaxed] a first look; mostly there is a note. */
	if (!is_of_tick(weiri_load_relaxed(place_of(0, tick)), tick))
		note_all();
}

/* The age according to the notes of this level; 0 if they tell nothing. */
static uint64_t age_by(unsigned level, uint64_t era, uint64_t now)
{
	uint64_t tick = now >> tick_bits(level), age = 0;

	for (uint64_t back = 1; back < NOTES && back <= tick; back++) {
		/* [relaxed] see above. */
		uint64_t there = weiri_load_relaxed(place_of(level, tick - back));

		if (is_of_tick(there, tick - back) && era_of(there) > era)
			age = now - ((tick - back + 1) << tick_bits(level));
	}
	return age;
}

uint64_t weiri_era_age(uint64_t era, uint64_t now_ns)
{
	uint64_t oldest = 0;

	for (unsigned level = 0; level < LEVELS; level++) {
		uint64_t age = age_by(level, era, now_ns);

		oldest = age > oldest ? age : oldest;
	}
	return oldest;
}
