/*
 * checkpoint.c - keeps executions, and makes them current again.
 *
 * A search proceeds depth first: the next execution takes the path of the last one up to a choice,
 * and continues differently there. It begins from the checkpoint at that choice, or from the last
 * one before it. The checkpoints after that choice belong to a path that does not come again. The
 * checkpoints are therefore a stack, in one block of memory.
 *
 * Some things only grow during an execution (stores, the views that they carry, lists of what was
 * used). A checkpoint keeps only their counts. The elements before the count are unchanged, because
 * everything after the checkpoint was appended.
 *
 * Some executions begin at setup although there is a checkpoint (execute.c), and must find the path
 * unchanged. check_reduction.c compares a search with checkpoints and one without, on its random
 * programs: both must have as many executions, as many pruned ones, as many states, and the same
 * outcomes. (With states merged there may be a few states more or less. A frame that is larger than
 * what state.c wipes may have bytes that were never written, and these are left over from another
 * execution.)
 */
#include "model/checkpoint.h"

#include <stdlib.h>

#include "model/engine.h"

/* Beyond MOST_ROOM no checkpoint is taken, and executions begin further up. */
enum { FIRST_ROOM = 1 << 20, MOST_ROOM = 1 << 28 };

struct place {
	size_t begin; /* in the block */
	uint32_t at;
	unsigned thread;
};

int checkpoints_left_out;

static int ruled_out; /* for the current program */
static char *block;
static size_t room;
static struct place places[PATH];
static uint32_t count;
static size_t used;

void checkpoint_grow(struct checkpoint *checkpoint, size_t size)
{
	size_t offset = (size_t)(checkpoint->at - block);

	while (room - offset < size)
		room = room != 0 ? 2 * room : FIRST_ROOM;
	block = realloc(block, room);
	if (block == NULL)
		abort();
	checkpoint->at = block + offset;
	checkpoint->end = block + room;
}

void checkpoint_begin(void)
{
	ruled_out = checkpoints_left_out || !FIBER_CAN_BE_KEPT;
	checkpoint_drop_all();
}

void checkpoint_end(void)
{
	checkpoint_drop_all();
	free(block);
	block = NULL;
	room = 0;
}

void checkpoint_rule_out(void)
{
	ruled_out = 1;
}

int checkpoint_may_be_taken(void)
{
	return !ruled_out && used <= MOST_ROOM;
}

void checkpoint_drop_all(void)
{
	count = 0;
	used = 0;
}

/*
 * The threads' statuses come first, so that a restore knows whose stacks follow. The memory below a
 * stack pointer is not kept, because no thread reads it.
 */
static void name_parts(struct checkpoint *checkpoint, unsigned thread)
{
	execute_parts(checkpoint);
	explore_parts(checkpoint);
	memory_parts(checkpoint);
	answers_parts(checkpoint);
	heap_parts(checkpoint);
	system_parts(checkpoint);
	for (unsigned t = 1; t <= model_program->threads; t++) {
		if (t == thread || model_threads[t].status != ENDED)
			fiber_parts(checkpoint, t);
	}
}

void checkpoint_take(uint32_t at, unsigned thread)
{
	struct checkpoint checkpoint = {block + used, block + room, 0};

	places[count++] = (struct place){used, at, thread};
	name_parts(&checkpoint, thread);
	used = (size_t)(checkpoint.at - block);
}

int checkpoint_is_at(uint32_t at)
{
	return count > 0 && places[count - 1].at == at;
}

int checkpoint_restore(uint32_t at, unsigned *thread)
{
	struct checkpoint checkpoint;

	while (count > 0 && places[count - 1].at > at)
		used = places[--count].begin;
	if (count == 0 || ruled_out)
		return 0;
	checkpoint = (struct checkpoint){block + places[count - 1].begin, block + used, 1};
	*thread = places[count - 1].thread;
	name_parts(&checkpoint, *thread);
	return 1;
}
