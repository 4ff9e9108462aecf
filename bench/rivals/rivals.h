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
extern const struct read_contender weir_read_contender, weir_look_contender, acquire_read_contender,
	urcu_inline_read_contender, urcu_called_read_contender, urcu_count_read_contender, mutex_read_contender,
	rwlock_read_contender;

/* The value that readers share. */
struct shared_value {
	uint64_t words[8];
};

#ifdef __cplusplus
}
#endif

#endif
