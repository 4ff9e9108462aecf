/*
 * history_kit.h - random histories for the tests of the checkers. A sequential run makes a history,
 * which is then stretched in time and perhaps spoilt.
 *
 * A history is a run of a sequential model. Its operations take effect KIT_STEP apart, and the call
 * and the return of each lie around that time. Such a history is linearizable by construction. To
 * spoil a history, a test changes an answer or moves an operation. The general checker decides
 * whether the result is still linearizable.
 */
#ifndef TESTS_HISTORY_KIT_H
#define TESTS_HISTORY_KIT_H

#include "history/history.h"

#include <string.h>

enum { KIT_MOST_OPS = 16, KIT_STEP = 10, KIT_BUDGET = 1 << 20 };

struct kit_dice {
	uint64_t state;
};

static inline uint64_t kit_below(struct kit_dice *dice, uint64_t n)
{
	uint64_t value;

	dice->state += UINT64_C(0x9e3779b97f4a7c15);
	value = dice->state;
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return (value ^ value >> 31) % n;
}

/*
 * The call and the return of the operation each lie less than `stretch` from the time at which it
 * takes effect. That time has 10 * stretch added, so that no time is below 0.
 */
static inline void kit_stretch(struct kit_dice *dice, struct history_op *op, size_t place, uint64_t stretch)
{
	uint64_t point = KIT_STEP * (place + 1) + 10 * stretch;

	op->called = point - kit_below(dice, stretch);
	op->returned = point + kit_below(dice, stretch);
	op->thread = (uint32_t)kit_below(dice, 4);
}

static inline void kit_move(struct kit_dice *dice, struct history *history, uint64_t stretch)
{
	struct history_op *op = &history->op[kit_below(dice, history->count)];

	kit_stretch(dice, op, (size_t)kit_below(dice, history->count), stretch);
}

static inline struct history_op *kit_any(struct kit_dice *dice, struct history *history)
{
	return &history->op[kit_below(dice, history->count)];
}

#endif
