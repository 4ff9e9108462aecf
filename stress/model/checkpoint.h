/*
 * checkpoint.h - keeps an execution as it was at a choice of a thread, for other executions that
 * begin there and continue differently.
 *
 * Without it each execution begins at setup, and repeats the path of the previous one up to its
 * last few choices.
 */
#ifndef WEIR_MODEL_CHECKPOINT_H
#define WEIR_MODEL_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The place to which the parts of an execution are written, or from which they are read, one after
 * the other.
 */
struct checkpoint {
	char *at, *end;
	int back; /* 1: the parts are read, 0: they are written */
};

void checkpoint_grow(struct checkpoint *checkpoint, size_t size);

/*
 * One function of each module names its parts, in the same order for writing and for reading. A
 * count comes before the elements that it counts, so a restore has read the count when it comes to
 * the elements.
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

/*
 * 1: each execution begins at setup. check_reduction.c sets this to compare searches with and
 * without checkpoints.
 */
extern int checkpoints_left_out;
void checkpoint_begin(void); /* a program's searches */
void checkpoint_end(void);
/*
 * Turns checkpoints off for this program. Called when a thread has written to memory that is never
 * restored, where it would otherwise find what it wrote in another execution.
 */
void checkpoint_rule_out(void);
int checkpoint_may_be_taken(void);
void checkpoint_drop_all(void);
/*
 * Keeps the current execution, at node `at` of its path. `thread` makes the choice there; 0: the
 * engine makes it.
 */
void checkpoint_take(uint32_t at, unsigned thread);
int checkpoint_is_at(uint32_t at);
/*
 * Restores the last checkpoint at node `at` or before it, and drops the checkpoints after that one.
 * Returns 0 if there is none.
 */
int checkpoint_restore(uint32_t at, unsigned *thread);

#endif
