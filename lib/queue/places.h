/*
 * places.h - a lock-free set of numbers below n, from which any one, or one at random, can be taken.
 *
 * Algorithm (ours). A bitmap decides: adding sets a bit, taking clears it, and who clears it has it. Above 64 words of it there are
 * counts, each of 64 words, or of 64 counts below, up to a level of at most 64: 2^24 numbers have two such levels. A take finds
 * its place by them, from the top: the k-th bit for a random k, or the first node that is not empty. So it looks at some 64 counts a level
 * and 64 words, however few bits are set.
 *
 * Invariants
 *   S1  a number is in the set from the fetch_or that sets its bit to the change that clears it; it is taken once
 *   S2  a count is at least the number of bits set below it: it is raised before the bit is set, lowered after it was cleared
 * By S2 no bit is out of reach, as long as its counts are seen; a count that is too large, because an add or a take is under way or was stopped,
 * sends a take to a place that is empty. It draws again; after a few draws it goes by the words alone, so that no stopped thread and no
 * stale count can hold it up.
 * Pairs: P1 add -> take: what the adder did before.
 * Uniform: a draw that fails says nothing about the next one, so each number that was in the set throughout is as likely as another.
 * Progress: lock-free for a caller who knows that as many numbers are in the set, or will have been added without his doing, as takes are under
 *   way: when it finds a bit gone, another take went on. Without a number for it a take never ends: credits (shuffle.c) see to that.
 * Memory: n bits, and 4 bytes for 4096 of them.
 */
#ifndef WEIRI_QUEUE_PLACES_H
#define WEIRI_QUEUE_PLACES_H

#include <stddef.h>
#include <stdint.h>

enum { WEIRI_PLACES_LEVELS = 2 };

struct weiri_places {
	size_t limit; /* numbers are below */
	size_t words;
	unsigned levels;
	_Atomic(uint64_t) *bits;
	_Atomic(uint32_t) *counts[WEIRI_PLACES_LEVELS]; /* [0]: of 64 words each; [1]: of 64 of those each */
};

/*
 * Random numbers for takes by any thread: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), of which each take has a row of its own, told by the
 * seed and by how many takes began before it. So a take that draws often still adds to the count once, and the count is that of the takes.
 */
struct weiri_draws {
	uint64_t seed;
	_Atomic(uint64_t) takes;
};

/* Bytes for numbers below `limit`, 1 .. 2^24; a multiple of 8. */
size_t weiri_places_size(size_t limit);
/* In `memory`, which is zero and 8-aligned. Empty, or `full`. */
void weiri_places_init(struct weiri_places *places, void *memory, size_t limit, int full);

/* Adds a number that is not in the set. [P1 release] */
void weiri_places_add(struct weiri_places *places, size_t place);
/* Takes one, near `near` if there is one. [P1 acquire] */
size_t weiri_places_take_near(struct weiri_places *places, size_t near);
/* Takes one that is drawn uniformly. There are `about` as many: that only says how to look for it. [P1 acquire] */
size_t weiri_places_take_random(struct weiri_places *places, struct weiri_draws *draws, size_t about);

#endif
