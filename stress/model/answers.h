/*
 * answers.h - what the calls of an execution have returned so far; answers.c writes it.
 */
#ifndef WEIR_MODEL_ANSWERS_H
#define WEIR_MODEL_ANSWERS_H

#include <history/history.h>

#include "model/engine.h"

enum { ANSWERS = 64, ANSWER_PARTS = 3 };

struct answer {
	uint64_t argument, result;
	struct history_part part[ANSWER_PARTS];
	uint16_t kind;
	uint8_t parts, thread;
	/* how many results of each thread are known to precede the begin of the call */
	uint8_t after[THREADS];
	uint32_t number; /* its number among the answers of its thread, from 0 */
	uint32_t end;    /* its thread's clock when the call ended */
};

#pragma GCC visibility push(hidden)
/* In the order in which the calls ended. */
extern struct answer model_answers[ANSWERS];
extern uint32_t model_answer_count;
#pragma GCC visibility pop

#endif
