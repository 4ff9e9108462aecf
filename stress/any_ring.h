/*
 * any_ring.h - a ring for any number of consumers, or a ring for one consumer: the operations that
 * scenarios need of both.
 */
#ifndef STRESS_ANY_RING_H
#define STRESS_ANY_RING_H

#include <weir/mpsc.h>
#include <weir/ring.h>

enum any_ring_kind { ANY_RING_MPMC, ANY_RING_MPSC };

/* Exactly one of the two is not NULL. */
struct any_ring {
	weir_ring *mpmc;
	weir_mpsc *mpsc;
};

static inline enum weir_status any_ring_create(enum any_ring_kind kind, size_t capacity, enum weir_ring_format format,
                                               struct any_ring *out)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};

	*out = (struct any_ring){NULL, NULL};
	return kind == ANY_RING_MPSC ? weir_mpsc_create(capacity, &options, &out->mpsc, NULL)
	                             : weir_ring_create(capacity, &options, &out->mpmc, NULL);
}

static inline void any_ring_destroy(struct any_ring ring)
{
	weir_mpsc_destroy(ring.mpsc, NULL);
	weir_ring_destroy(ring.mpmc, NULL);
}

static inline enum weir_status any_ring_try_enqueue(struct any_ring ring, uint64_t value)
{
	return ring.mpsc != NULL ? weir_mpsc_try_enqueue(ring.mpsc, value) : weir_ring_try_enqueue(ring.mpmc, value);
}

static inline enum weir_status any_ring_try_dequeue(struct any_ring ring, uint64_t *value)
{
	return ring.mpsc != NULL ? weir_mpsc_try_dequeue(ring.mpsc, value) : weir_ring_try_dequeue(ring.mpmc, value);
}

static inline enum weir_status any_ring_try_enqueue_many(struct any_ring ring, const uint64_t values[], size_t count,
                                                         size_t *done)
{
	return ring.mpsc != NULL ? weir_mpsc_try_enqueue_many(ring.mpsc, values, count, done)
	                         : weir_ring_try_enqueue_many(ring.mpmc, values, count, done);
}

static inline enum weir_status any_ring_try_dequeue_many(struct any_ring ring, uint64_t values[], size_t count,
                                                         size_t *done)
{
	return ring.mpsc != NULL ? weir_mpsc_try_dequeue_many(ring.mpsc, values, count, done)
	                         : weir_ring_try_dequeue_many(ring.mpmc, values, count, done);
}

static inline void any_ring_close(struct any_ring ring)
{
	weir_mpsc_close(ring.mpsc);
	weir_ring_close(ring.mpmc);
}

static inline int any_ring_closed(struct any_ring ring)
{
	return ring.mpsc != NULL ? weir_mpsc_closed(ring.mpsc) : weir_ring_closed(ring.mpmc);
}

static inline size_t any_ring_size_approx(struct any_ring ring)
{
	return ring.mpsc != NULL ? weir_mpsc_size_approx(ring.mpsc) : weir_ring_size_approx(ring.mpmc);
}

#endif
