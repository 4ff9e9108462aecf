/*
 * window_cost.c - see window_cost.h.
 */
#include "data/window_cost.h"

#include <weir/time.h>

enum {
	MOST_NS = 256000, /* what a single sample counts at most: the thread may have been preempted */
	WINDOWS = 16,     /* over so many windows it is measured whether the consumer hurries */
	AWAY_NS = 40000   /* what a single absence counts at most, for the same reason */
};

#if defined(WEIRI_UNDER_MODEL)
/* check_window.c sets these. */
bool weiri_window_hurries, weiri_window_passes;
size_t weiri_window_run = WEIRI_WINDOW_RUN;
#endif

/* A mean that forgets: each sample counts a quarter. */
void weiri_window_note(_Atomic(uint32_t) *mean_ns, uint64_t began_ns, uint64_t count)
{
	uint64_t sample = (weir_now_ns() - began_ns) / count;
	/* [relaxed] an estimate; of two threads that write at a time one counts */
	uint32_t mean = weiri_load_relaxed(mean_ns);

	if (sample > MOST_NS)
		sample = MOST_NS;
	mean = mean == WEIRI_WINDOW_UNKNOWN_NS ? (uint32_t)sample : mean - mean / 4 + (uint32_t)sample / 4;
	weiri_store_relaxed(mean_ns, mean);
}

/*
 * How long a consumer is away at most that comes back soon. If the calls of `work` may use all processors, a
 * helper more would take turns with the consumer, unless that is away for longer than an element takes.
 */
static double soon_ns(const struct weiri_window *window)
{
	double soon = (double)WEIRI_WINDOW_SHORT_NS / (double)window->at_once, cost = (double)weiri_window_cost_ns(window);

	return window->work != NULL && window->at_once >= window->pool->processors && cost > soon ? cost : soon;
}

void weiri_window_note_return(struct weiri_window *window)
{
	double away_ns = (double)(weir_now_ns() - window->left_ns);

	if (away_ns > (double)AWAY_NS)
		away_ns = (double)AWAY_NS;
	window->left_ns = 0;
	if (window->returns < WINDOWS * window->size)
		window->returns++;
	window->away_ns += (away_ns - window->away_ns) / (double)window->returns;
	/* [relaxed] a hint */
	if (window->returns >= window->size)
		weiri_store_relaxed(&window->hurries, (uint32_t)(window->away_ns < soon_ns(window)));
}
