/*
 * suites.c - the suites in the order in which they run. A new suite is a file and a line here. Suite shm
 * forks some thousand times, so it stands before those that leave much memory in the process.
 */
#include <stddef.h>

#include "suite.h"

/* clang-format off */
#define SUITES(X) \
	X(ring) \
	X(priority) \
	X(queue) \
	X(readiness) \
	X(shuffle) \
	X(shm) \
	X(variable) \
	X(snapshot) \
	X(transaction) \
	X(update) \
	X(train) \
	X(publish) \
	X(names) \
	X(section) \
	X(scatter) \
	X(counter) \
	X(data) \
	X(memory) \
	X(wake) \
	X(dataflow)
/* clang-format on */

#define DECLARATION(name) extern const struct bench_suite bench_##name##_suite;
#define POINTER(name) &bench_##name##_suite,

SUITES(DECLARATION)

const struct bench_suite *const bench_suites[] = {SUITES(POINTER) NULL};
