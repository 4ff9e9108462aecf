/*
 * checkpoint.h - an execution as it was at a choice of a thread. Executions that continue
 * differently begin from it.
 *
 * Without it each execution begins at setup, and repeats the path of the previous one up to its
 * last few choices.
 */
#ifndef WEIR_MODEL_CHECKPOINT_H
#define WEIR_MODEL_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where the parts of an execution are written to, or read from, one after the other. */
struct checkpoint {
	char *at, *end;
	int back; /* 1: the parts are read from it */
};

void checkpoint_grow(struct checkpoint *checkpoint, size_t size);

/*
 * One function of each module names its parts, in the same order for writing and reading. A count
 * therefore precedes what it counts, and has the right value when that is named.
 */
static inline void checkpoint_part(struct checkpoint *checkpoint, void *part, size_t size)
{
	if (checkpoint->back) {
		memcpy(part, checkpoint->at, size);
	} else {
		if ((size_t)(checkpoint->end - checkpoint->at) < size)
			checkpoint_grow(checkpoint, size);
		memcpy(checkpoint->at, part, size);
	}
	checkpoint->at += size;
}

/* For check_reduction.c, which compares: 1 lets each execution begin at setup. */
extern int checkpoints_left_out;
void checkpoint_begin(void); /* a program's searches */
void checkpoint_end(void);
/*
 * Turns checkpoints off for this program: a thread has written to memory that is never restored,
 * and would find there what it wrote in another execution.
 */
void checkpoint_rule_out(void);
int checkpoint_may_be_taken(void);
void checkpoint_drop_all(void);
/*
 * Keeps the current execution, at node `at` of its path. `thread` chooses there; 0: the engine
 * chooses.
 */
void checkpoint_take(uint32_t at, unsigned thread);
int checkpoint_is_at(uint32_t at);
/*
 * Makes the last checkpoint at node `at` or before current, and drops those after it. Returns 0 if
 * there is none.
 */
int checkpoint_restore(uint32_t at, unsigned *thread);

#endif
