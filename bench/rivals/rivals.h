/*
 * rivals.h - every adapter's table.
 */
#ifndef WEIR_BENCH_RIVALS_H
#define WEIR_BENCH_RIVALS_H

#include "../bench.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const struct ring_contender weir_ltq16_contender, weir_ltq64_contender, ck_ring_contender, boost_ring_contender,
	tbb_ring_contender, mutex_ring_contender;
extern const struct queue_contender weir_queue_contender, condition_queue_contender;
extern const struct queue_contender weir_shuffle_contender, mutex_shuffle_contender;
extern const struct read_contender weir_read_contender, weir_look_contender, acquire_read_contender,
	urcu_inline_read_contender, urcu_called_read_contender, urcu_count_read_contender, mutex_read_contender,
	rwlock_read_contender;
extern const struct update_contender weir_update_contender, mutex_update_contender;
extern const struct snapshot_contender weir_snapshot_contender, mutex_snapshot_contender;
extern const struct memory_contender weir_stopped_contender, weir_held_contender, urcu_memory_contender;
extern const struct wake_contender weir_wake_contender, futex_wake_contender, eventfd_wake_contender,
	condition_wake_contender;

/* The value of update_contender. */
struct shared_value {
	uint64_t words[8];
};

#ifdef __cplusplus
}
#endif

#endif
