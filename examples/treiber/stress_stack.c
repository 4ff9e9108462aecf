/*
 * stress_stack.c - weir-stress for a structure that is not Weir's: Treiber's stack.
 */
#include <stdlib.h>
#include <weir/stress.h>

#include "stack.h"

static void *create(void)
{
	struct stack *stack = malloc(sizeof(*stack));

	if (stack != NULL)
		stack_init(stack, STACK_NODES);
	return stack;
}

static int put(void *stack, uint64_t value)
{
	return stack_push(stack, value);
}

static int take(void *stack, uint64_t *value)
{
	return stack_pop(stack, value);
}

/*
 * The subject has no capacity: a pop that has its value still holds the node, so a push may be
 * refused while fewer than STACK_NODES values are stored. Refusals are therefore allowed at any
 * time.
 */
static const struct weir_stress_subject stack = {"stack", WEIR_STRESS_LIFO, 0, create, free, put, take};

int main(int argc, char *argv[])
{
	return weir_stress_main(argc, argv, &stack, 1);
}
