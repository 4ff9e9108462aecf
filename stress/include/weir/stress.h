/*
 * stress.h - weir-stress for a structure of your own.
 *
 * Describe how to create the structure, put into it and take from it. weir_stress_main() is then a
 * whole program, with the command line, the watchdog and the reports of weir-stress. For each
 * structure it runs two scenarios:
 * - NAME_storm: threads put and take at random. Each value that comes out was put in once, and in
 *   the end all values come out. A queue keeps the order of each putting thread. A bounded
 *   structure holds no more than its capacity.
 * - NAME_history: every call is recorded. One order of all calls must explain the results and agree
 *   with real time (linearizability; docs/checking.md says what a verdict means).
 *
 * Link with libweir-stress, libweir-history and libweir (pkg-config: weir-stress). To check every
 * interleaving of a small scope, see <weir/model.h>.
 */
#ifndef WEIR_STRESS_H
#define WEIR_STRESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_stress_order {
	WEIR_STRESS_FIFO = 1, /* the oldest value comes out first */
	WEIR_STRESS_LIFO,     /* the newest value comes out first */
	WEIR_STRESS_ANY       /* any order */
};

struct weir_stress_subject {
	const char *name; /* letters, digits and underscores */
	enum weir_stress_order order;
	/* 0: put() may refuse at any time; else put() refuses exactly when it holds this many */
	size_t capacity;
	void *(*create)(void);                         /* NULL: no memory */
	void (*destroy)(void *structure);              /* it is empty, and no thread uses it */
	int (*put)(void *structure, uint64_t value);   /* any thread. 1: stored; 0: no room */
	int (*take)(void *structure, uint64_t *value); /* any thread. 1: *value came out; 0: empty */
};

enum { WEIR_STRESS_MAX_SUBJECTS = 16 };

/*
 * Runs the program and returns its exit code: 0 if all checks passed, 3 if the table or an argument
 * is refused or a report cannot be written. At a wrong result (1) or a hang (2) it ends the process
 * with that code. Call it once.
 */
int weir_stress_main(int argc, char *argv[], const struct weir_stress_subject table[], size_t count);

#ifdef __cplusplus
}
#endif

#endif
