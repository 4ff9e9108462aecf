/*
 * checkpoint.h - an execution as it was at a choice of a thread, so that others which go another way there begin from it.
 *
 * Without it each execution begins at setup, and takes the path of the one before up to its last few choices.
 */
#ifndef WEIR_MODEL_CHECKPOINT_H
#define WEIR_MODEL_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where the parts of an execution go to, one after the other, or come from. */
struct checkpoint {
	char *at, *end;
	int back; /* they come from it */
};

void checkpoint_grow(struct checkpoint *checkpoint, size_t size);

/*
 * One function of each module names its parts, in the same order both ways. So a count comes before what it counts, and when that is named
 * the count is already the one that belongs there.
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

/* For check_reduction.c, which compares: each execution begins at setup. */
extern int checkpoints_left_out;
void checkpoint_begin(void); /* a program's searches */
void checkpoint_end(void);
/* Not for this program: a thread has written to what nothing puts back, and would find there what it did in another execution. */
void checkpoint_rule_out(void);
int checkpoint_may_be_taken(void);
void checkpoint_drop_all(void);
/* The current execution, at node `at` of its path; `thread` chooses there, 0: the engine. */
void checkpoint_take(uint32_t at, unsigned thread);
int checkpoint_is_at(uint32_t at);
/* The last one that lies at node `at` or before is made current, and those after it are dropped. Returns 0 when there is none. */
int checkpoint_restore(uint32_t at, unsigned *thread);

#endif
