/*
 * stress.h - weir-stress for a structure of your own.
 *
 * Say how to make it, put into it and take from it; weir_stress_main() is then a whole program, with the command line, the watchdog
 * and the reports of weir-stress. For each structure it runs two scenarios:
 *   NAME_storm    threads put and take at random: what comes out went in, once, and all of it comes out in the end;
 *                 a queue keeps the order of each putting thread; a bounded one holds no more than its capacity
 *   NAME_history  every call is recorded, and there must be an order of all calls that explains the answers and agrees with
 *                 real time (linearizability; docs/checking.md says what a verdict means)
 * Link with libweir-stress, libweir-history and libweir (pkg-config: weir-stress). For every interleaving of a small scope see <weir/model.h>.
 */
#ifndef WEIR_STRESS_H
#define WEIR_STRESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum weir_stress_order {
	WEIR_STRESS_FIFO = 1, /* the value that went in first comes out first */
	WEIR_STRESS_LIFO,     /* the value that went in last */
	WEIR_STRESS_ANY       /* any */
};

struct weir_stress_subject {
	const char *name; /* letters, digits and underscores */
	enum weir_stress_order order;
	size_t capacity;                  /* 0: put() may refuse at any time; else when so many are inside, and only then */
	void *(*create)(void);            /* NULL: no memory */
	void (*destroy)(void *structure); /* empty, and used by nobody */
	int (*put)(void *structure, uint64_t value);   /* any thread. 1: it is in; 0: there is no room */
	int (*take)(void *structure, uint64_t *value); /* any thread. 1: *value came out; 0: there was nothing */
};

enum { WEIR_STRESS_MAX_SUBJECTS = 16 };

/* Returns the exit code: 0 all held; else it has ended the process with 1 wrong, 2 a hang, 3 usage. Not to be called twice. */
int weir_stress_main(int argc, char *argv[], const struct weir_stress_subject table[], size_t count);

#ifdef __cplusplus
}
#endif

#endif
