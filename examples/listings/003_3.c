/*
 * 003_3.c - ten threads work until one of them requests a stop of all.
 */
#include <stdatomic.h>

#include "listing.h"

enum { THREADS = 10, ENOUGH = 1000 };

struct work {
	atomic_int done;  /* work done by all threads */
	atomic_int ended; /* threads that have ended */
};

/* Loops until the coordinator requests a stop. */
static enum weir_status my_loop(weir_coordinator *coordinator, void *context, weir_error *error)
{
	struct work *work = context;

	(void)error;
	while (!weir_coordinator_should_stop(coordinator)) {
		/* Relaxed counters: they are read after the join, which orders all accesses. */
		if (atomic_fetch_add_explicit(&work->done, 1, memory_order_relaxed) == ENOUGH)
			(void)weir_coordinator_request_stop(coordinator, NULL);
	}
	(void)atomic_fetch_add_explicit(&work->ended, 1, memory_order_relaxed);
	return WEIR_OK;
}

int main(void)
{
	weir_coordinator *coordinator;
	struct work work = {0, 0};
	int ended;

	must(weir_coordinator_create(NULL, &coordinator, &listing_error));
	for (int i = 0; i < THREADS; i++)
		must(weir_coordinator_start_thread(coordinator, "my loop", my_loop, &work, &listing_error));
	must(weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, &listing_error));

	ended = atomic_load_explicit(&work.ended, memory_order_relaxed);
	printf("%d threads stopped together\n", ended);
	expect(ended == THREADS, "all threads must end");
	expect(atomic_load_explicit(&work.done, memory_order_relaxed) > ENOUGH, "one of them must have requested the stop");
	must(weir_coordinator_destroy(coordinator, &listing_error));
	return 0;
}
