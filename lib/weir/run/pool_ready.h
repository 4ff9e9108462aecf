/*
 * pool_ready.h - the descriptor of a pool without workers: readable while tasks wait.
 */
#ifndef WEIRI_POOL_READY_H
#define WEIRI_POOL_READY_H

#include "base/compiler.h"
#include "run/worker.h"

/* The slow part of weiri_pool_settle(). */
WEIRI_COLD void weiri_pool_settle_ready(weir_pool *pool);
/* Closes the descriptors. No other thread uses the pool. */
void weiri_pool_put_out(weir_pool *pool);

/* Called after a task was put into the inbox or taken from it, or none was found there. */
static inline void weiri_pool_settle(weir_pool *pool)
{
	/* [light fence R1] the inbox was changed; now look for a descriptor. */
	weiri_fence_light();
	/* [relaxed] carries nothing; weiri_pool_settle_ready() reads it again. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&pool->ready) != NULL))
		weiri_pool_settle_ready(pool);
}

#endif
