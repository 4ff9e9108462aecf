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

const struct read_contender *const bench_readers[] = {
	&weir_read_contender,        &weir_look_contender,        &acquire_read_contender,
#ifdef WEIR_BENCH_URCU
	&urcu_inline_read_contender, &urcu_called_read_contender, &urcu_count_read_contender,
#endif
	&mutex_read_contender,       &rwlock_read_contender,      NULL,
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
