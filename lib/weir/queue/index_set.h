/*
 * index_set.h - a lock-free set of numbers below n, from which any one, or one at random, can be
 * taken.
 *
 * Algorithm. A bitmap decides. To add is to set a bit; to take is to clear it, and the thread that
 * clears the bit has the number. If there are more than 64 words, counts lie above them, each of 64
 * words, or of 64 counts below, up to a level of at most 64 counts: 2^24 numbers have two such
 * levels. A take descends from the top, to the k-th bit for a random k, or to the first node that
 * is not empty. So it reads about 64 counts per level and 64 words, however few bits are set.
 *
 * Source. Bitmaps below counts, changed by atomic instructions, are known from page allocators
 * (LLFree: Wrenger et al., USENIX ATC 2023). The descent to the k-th element is that of an
 * order-statistic tree. We know of no publication that draws uniformly from such a bitmap while
 * other threads change it.
 *
 * Invariants
 *   S1  a number is in the set from the fetch_or that sets its bit to the change that clears it; it
 *       is taken once
 *   S2  a count is at least the number of bits that are set below it: it is raised before the bit
 *       is set, and lowered after the bit was cleared
 * By S2 every bit can be reached, as long as its counts are seen. A count that is too large,
 * because an add or a take is under way or stalled, leads a take to where no bit is set. It draws again;
 * after a few draws it uses only the words, so that no stalled thread and no stale count can delay
 * it further.
 * Pairs: P1 add -> take: what the adder did before.
 * Uniform: a draw that fails tells nothing about the next one. So each number that is in the set
 * throughout is as likely as any other.
 * Progress: lock-free under one condition: at least as many numbers as there are takes under way
 *   are in the set, or will be added without any action of the taker. Then a take that finds a bit
 *   cleared has been overtaken by another take. Without a number for it a take never ends; credits
 *   (shuffle.c) ensure that there is one.
 * Memory: n bits, and 4 bytes for 4096 of them.
 */
#ifndef WEIRI_QUEUE_INDEX_SET_H
#define WEIRI_QUEUE_INDEX_SET_H

#include <stddef.h>
#include <stdint.h>

enum { WEIRI_INDEX_SET_LEVELS = 2 };

struct weiri_index_set {
	size_t limit; /* numbers are below this */
	size_t words;
	unsigned levels;
	_Atomic(uint64_t) *bits;
	_Atomic(uint32_t) *counts[WEIRI_INDEX_SET_LEVELS]; /* [0]: of 64 words each; [1]: of 64 of those each */
};

/*
 * Random numbers for takes by any thread: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). Each take
 * has a sequence of its own, given by the seed and by the number of takes that began before it. So
 * a take that draws often still adds only once to the count, and the count is that of the takes.
 */
struct weiri_draws {
	uint64_t seed;
	_Atomic(uint64_t) takes;
};

/* The bytes needed for numbers below `limit`, 1 .. 2^24; a multiple of 8. */
size_t weiri_index_set_size(size_t limit);
/* Creates the set in `memory`, which is zero and 8-aligned. It is empty, or `full`. */
void weiri_index_set_init(struct weiri_index_set *set, void *memory, size_t limit, int full);

/* Adds a number that is not in the set. [P1 release] */
void weiri_index_set_add(struct weiri_index_set *set, size_t index);
/* Takes a number, one near `near` if possible. [P1 acquire] */
size_t weiri_index_set_take_near(struct weiri_index_set *set, size_t near);
/*
 * Takes a number that is drawn uniformly. The set has about `about` numbers, which only determines
 * how to search. [P1 acquire]
 */
size_t weiri_index_set_take_random(struct weiri_index_set *set, struct weiri_draws *draws, size_t about);

#endif
