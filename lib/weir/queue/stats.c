/*
 * stats.c - reading the counters of a queue, and sampling its level.
 */
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "queue/queue.h"

WEIRI_COLD void weiri_queue_note_level(weir_queue *queue)
{
	weiri_queue_counter_raise(&queue->counters.high_water, weiri_queue_size(queue));
}

void weiri_queue_count_in(weir_queue *queue, size_t count)
{
#if !defined(WEIRI_UNDER_MODEL) /* stress/model: see counters.h */
	if (queue->store->has_passed(queue, count))
		weiri_queue_note_level(queue);
#else
	(void)queue, (void)count;
#endif
}

WEIRI_COLD void weiri_queue_note_full(weir_queue *queue)
{
	weiri_queue_counter_raise(&queue->counters.high_water, queue->store->size_when_full(queue));
}

/* All loads are [relaxed]: statistics, which publish no data. */
static void read_counters(const weir_queue *queue, struct weir_queue_stats *stats)
{
	const struct weiri_queue_counters *counters = &queue->counters;

	stats->high_water = weiri_load_relaxed(&counters->high_water);
	stats->enqueue_waits = weiri_load_relaxed(&counters->waits[WEIRI_SIDE_ENQUEUE]);
	stats->dequeue_waits = weiri_load_relaxed(&counters->waits[WEIRI_SIDE_DEQUEUE]);
	stats->enqueue_blocked_ns = weiri_load_relaxed(&counters->blocked_ns[WEIRI_SIDE_ENQUEUE]);
	stats->dequeue_blocked_ns = weiri_load_relaxed(&counters->blocked_ns[WEIRI_SIDE_DEQUEUE]);
	stats->wakes = weiri_load_relaxed(&counters->wakes);
	stats->retries = weiri_load_relaxed(&counters->retries);
	stats->waiting = weiri_load_relaxed(&queue->waiting);
}

void weiri_queue_read_stats(weir_queue *queue, struct weir_queue_stats *stats)
{
	/*
	 * [P3 acquire] read before the counts. Returned items had been dequeued before their return, so
	 * the counts include them. In the other order, items that were dequeued and returned between
	 * the two reads would be subtracted from a number that does not include them.
	 */
	size_t given_back = weiri_load_acquire(&queue->putback.items);
	struct weiri_ring_counts counts = weiri_queue_counts(queue);

	weiri_queue_note_level(queue);
	memset(stats, 0, sizeof(*stats));
	stats->struct_size = sizeof(*stats);
	stats->items_in = counts.in;
	/* Returned items had left the store and are stored again. */
	stats->items_out = counts.out > given_back ? counts.out - given_back : 0;
	read_counters(queue, stats);
}

enum weir_status weir_queue_get_stats(weir_queue *queue, struct weir_queue_stats *stats)
{
	struct weir_queue_stats now;

	if (queue == NULL || stats == NULL || !weiri_options_size_ok(stats->struct_size))
		return WEIR_INVALID_ARGUMENT;
	weiri_queue_read_stats(queue, &now);
	weiri_statistics_write(stats, &now, sizeof(now));
	return WEIR_OK;
}
