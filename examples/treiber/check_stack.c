/*
 * check_stack.c - explores every execution of Treiber's stack in a small scope of two threads.
 *
 * The stack holds two values. One thread pops; the other pops twice and pushes. The program prints
 * the number of executions, and exits with 0 if none is wrong. Built with STACK_WITHOUT_TAGS, it
 * must find the ABA problem. It then prints the execution as a table, and exits with 0 if it found
 * the problem.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/model.h>

#include "stack.h"

enum { VALUES = 3 };

#ifdef STACK_WITHOUT_TAGS
enum { MUST_FAIL = 1 };
#else
enum { MUST_FAIL = 0 };
#endif

static struct scene {
	struct stack stack;
	int came_out[VALUES + 1];
	int went_in[VALUES + 1];
} scene;

static void push(uint64_t value)
{
	scene.went_in[value] = stack_push(&scene.stack, value);
}

static void pop(void)
{
	uint64_t value;

	if (!stack_pop(&scene.stack, &value))
		return;
	weir_model_assert(value >= 1 && value <= VALUES);
	/* Two threads that pop one value are caught here or by finish(). */
	weir_model_assert(!scene.came_out[value]);
	scene.came_out[value] = 1;
}

static void setup(void *context)
{
	(void)context;
	stack_init(&scene.stack, VALUES);
	push(1);
	push(2);
}

static void thread(void *context, size_t number)
{
	(void)context;
	pop();
	if (number == 1) {
		pop();
		push(3);
	}
}

static void finish(void *context)
{
	(void)context;
	for (int i = 0; i < VALUES; i++)
		pop();
	for (int value = 1; value <= VALUES; value++)
		weir_model_assert(scene.came_out[value] == scene.went_in[value]);
}

int main(void)
{
	struct weir_model_program program = {"treiber", 2, &scene, sizeof(scene), setup, thread, finish};
	struct weir_model_options replay = {0};
	struct weir_model_result result;

	(void)weir_model_check(&program, NULL, &result);
	printf("%llu executions, %s%s\n", (unsigned long long)result.executions,
	       result.complete ? "all that there are" : "then stopped", result.failed ? ":" : ", none wrong");
	if (result.failed) {
		printf("%s\n", result.message);
		replay.replay = result.replay;
		(void)weir_model_check(&program, &replay, &result);
	}
	return result.failed != MUST_FAIL;
}
