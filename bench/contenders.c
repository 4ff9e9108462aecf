/*
 * contenders.c - who takes part. Ours first; a rival whose package is missing is named as absent.
 */
#include <stddef.h>

#include "rivals/rivals.h"

const struct ring_contender *const bench_rings[] = {
	&weir_ltq16_contender, &weir_ltq64_contender,
#ifdef WEIR_BENCH_BOOST
	&boost_ring_contender,
#endif
	&ck_ring_contender,
#ifdef WEIR_BENCH_TBB
	&tbb_ring_contender,
#endif
	&mutex_ring_contender, NULL,
};

const struct queue_contender *const bench_queues[] = {
	&weir_queue_contender,
	&condition_queue_contender,
	NULL,
};

const struct queue_contender *const bench_shuffles[] = {
	&weir_shuffle_contender,
	&mutex_shuffle_contender,
	NULL,
};

const struct read_contender *const bench_readers[] = {
	&weir_read_contender,        &weir_look_contender,        &acquire_read_contender,
#ifdef WEIR_BENCH_URCU
	&urcu_inline_read_contender, &urcu_called_read_contender, &urcu_count_read_contender,
#endif
	&mutex_read_contender,       &rwlock_read_contender,      NULL,
};

const struct update_contender *const bench_updates[] = {
	&weir_update_contender,
	&mutex_update_contender,
	NULL,
};

const struct snapshot_contender *const bench_snapshots[] = {
	&weir_snapshot_contender,
	&mutex_snapshot_contender,
	NULL,
};

const struct memory_contender *const bench_memories[] = {
	&weir_stopped_contender,
	&weir_held_contender,
#ifdef WEIR_BENCH_URCU
	&urcu_memory_contender,
#endif
	NULL,
};

const struct wake_contender *const bench_wakes[] = {
	&weir_wake_contender, &futex_wake_contender, &eventfd_wake_contender, &condition_wake_contender, NULL,
};

const char *const bench_absent[] = {
#ifndef WEIR_BENCH_BOOST
	"boost::lockfree (libboost-dev)",
#endif
#ifndef WEIR_BENCH_TBB
	"TBB (libtbb-dev)",
#endif
#ifndef WEIR_BENCH_URCU
	"liburcu (liburcu-dev)",
#endif
	NULL,
};
