/*
 * published.h - the shared value as most rivals hold it: words behind a pointer.
 *
 * A writer replaces the pointer, keeps the old values, and frees them 256 at a time after it has
 * waited as the rival requires, as a careful user would. There is one writer at a time.
 */
#ifndef WEIR_BENCH_PUBLISHED_H
#define WEIR_BENCH_PUBLISHED_H

#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

enum { RETIRED_MOST = 256 };

struct published {
	_Alignas(64) _Atomic(uint64_t *) current;
	size_t bytes;
	/* used only by the writer */
	_Alignas(64) uint64_t *retired[RETIRED_MOST];
	unsigned waiting;
};

static inline uint64_t *published_words(size_t bytes, uint64_t value)
{
	uint64_t *words = aligned_alloc(64, (bytes + 63) / 64 * 64);

	if (words == NULL)
		exit(3);
	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		words[i] = value;
	return words;
}

static inline void published_init(struct published *p, size_t bytes)
{
	p->bytes = bytes;
	p->waiting = 0;
	atomic_init(&p->current, published_words(bytes, 0));
}

static inline void published_free_retired(struct published *p)
{
	while (p->waiting != 0)
		free(p->retired[--p->waiting]);
}

/* No reader is left. */
static inline void published_fini(struct published *p)
{
	published_free_retired(p);
	free(atomic_load_explicit(&p->current, memory_order_acquire));
}

/* `collect` frees the retired values that no reader uses. */
static inline void published_replace(struct published *p, uint64_t value, void (*collect)(struct published *p))
{
	p->retired[p->waiting++] =
		atomic_exchange_explicit(&p->current, published_words(p->bytes, value), memory_order_acq_rel);
	if (p->waiting == RETIRED_MOST)
		collect(p);
}

static inline const uint64_t *published_now(struct published *p)
{
	return atomic_load_explicit(&p->current, memory_order_acquire);
}

/* The loops of read_contender around a rival's section. The section is compiled into them. */
typedef void published_section_fn(struct published *p);

static inline __attribute__((always_inline)) uint64_t published_read_many(struct published *p, uint64_t count,
                                                                          published_section_fn *begin,
                                                                          published_section_fn *end)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		begin(p);
		sum += *published_now(p);
		end(p);
	}
	return sum;
}

static inline __attribute__((always_inline)) uint64_t published_scan_many(struct published *p, uint64_t count,
                                                                          published_section_fn *begin,
                                                                          published_section_fn *end)
{
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		begin(p);
		torn += (uint64_t)bench_torn(published_now(p), p->bytes);
		end(p);
	}
	return torn;
}

#endif
