/*
 * data_work.h - the work that all contenders of the suite `data` do for an element.
 */
#ifndef WEIR_BENCH_DATA_WORK_H
#define WEIR_BENCH_DATA_WORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	DIGIT_ROWS = 2048,
	DIGIT_PIXELS = 28 * 28,
	DIGIT_BUFFER = 1024,
	DIGIT_BATCH = 32,
	DIGIT_AHEAD = 4,
	BYTE_ROWS = 1024,
	BYTE_ROW = 3072,
	BYTE_BATCH = 32,
	AHEAD = 64,
	WORKERS = 2
};

/* DIGIT_ROWS rows; the first pixel of each is its number. */
const float *bench_digits(void);
/* BYTE_ROWS rows. */
const unsigned char *bench_bytes(void);
/* The map of the digits. Without `restrict` it would be vectorised only where `to` was seen to come from malloc(). */
static inline void bench_scale(const float *__restrict from, float *__restrict to)
{
	for (int i = 0; i < DIGIT_PIXELS; i++)
		to[i] = from[i] * 0.5f + 1.0f;
}
/* Takes about 10 us of processor time. */
void bench_work_10_us(void);
/* Number n of a random stream. */
static inline uint64_t bench_draw(uint64_t n)
{
	uint64_t x = (n + 1) * UINT64_C(0x9E3779B97F4A7C15);

	x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
	return x ^ (x >> 31);
}

/* A shuffle through a buffer of DIGIT_BUFFER rows of DIGIT_PIXELS. */
struct bench_shuffler {
	float *rows[DIGIT_BUFFER];
	size_t count;
	uint64_t draws;
};
/* Adds a row. Returns one that was drawn, or NULL while the buffer fills. */
static inline float *bench_shuffle(struct bench_shuffler *shuffler, float *row)
{
	float *drawn;
	size_t at;

	shuffler->rows[shuffler->count++] = row;
	if (shuffler->count < DIGIT_BUFFER)
		return NULL;
	at = (size_t)(bench_draw(shuffler->draws++) % DIGIT_BUFFER);
	drawn = shuffler->rows[at];
	shuffler->rows[at] = shuffler->rows[--shuffler->count];
	return drawn;
}

#ifdef __cplusplus
}
#endif

#endif
