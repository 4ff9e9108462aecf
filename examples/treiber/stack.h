/*
 * stack.h - Treiber's stack over a fixed set of nodes, in a right and a wrong form, to be checked.
 *
 * weir/model.h and weir/stress.h check it. A push takes a node from the free nodes, and a pop
 * returns it to them. Both sets are stacks of the same kind, linked by the numbers of the nodes.
 * The top is one word: the number of the first node, and a tag that changes with every success.
 *
 * With STACK_WITHOUT_TAGS the tag stays 0, and the stack has the ABA problem. A pop reads the top A
 * and its successor B, and is then preempted while other threads pop A and B and push A again. It
 * then finds A at the top and makes B the top, although B is free.
 *
 * Source: R. K. Treiber, Systems Programming: Coping with Parallelism, IBM RJ 5118, 1986. The tag
 * is that of IBM's System/370.
 */
#ifndef TREIBER_STACK_H
#define TREIBER_STACK_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { STACK_NODES = 16, STACK_NOTHING = 0 };

struct stack_node {
	_Atomic(uint32_t) next; /* a node's number plus one, or STACK_NOTHING */
	_Atomic(uint64_t) value;
};

struct stack {
	_Atomic(uint64_t) full, empty; /* number of the first node plus one; tag << 32 */
	struct stack_node node[STACK_NODES];
};

static inline uint64_t stack_top(uint64_t before, uint32_t first)
{
#ifdef STACK_WITHOUT_TAGS
	(void)before;
	return first;
#else
	return ((before >> 32) + 1) << 32 | first;
#endif
}

static inline void stack_link(struct stack *stack, _Atomic(uint64_t) *list, uint32_t node)
{
	uint64_t top = atomic_load_explicit(list, memory_order_relaxed);

	do
		atomic_store_explicit(&stack->node[node - 1].next, (uint32_t)top, memory_order_relaxed);
	/* [release] pairs with the acquire in stack_unlink(): the node's fields. */
	while (!atomic_compare_exchange_weak_explicit(list, &top, stack_top(top, node), memory_order_release,
	                                              memory_order_relaxed));
}

/* Returns STACK_NOTHING when the list is empty. */
static inline uint32_t stack_unlink(struct stack *stack, _Atomic(uint64_t) *list)
{
	uint64_t top = atomic_load_explicit(list, memory_order_acquire);
	uint32_t node, next;

	do {
		node = (uint32_t)top;
		if (node == STACK_NOTHING)
			return STACK_NOTHING;
		next = atomic_load_explicit(&stack->node[node - 1].next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(list, &top, stack_top(top, next), memory_order_acquire,
	                                                memory_order_acquire));
	return node;
}

static inline void stack_init(struct stack *stack, uint32_t nodes)
{
	atomic_init(&stack->full, 0);
	atomic_init(&stack->empty, 0);
	for (uint32_t i = 1; i <= nodes; i++)
		stack_link(stack, &stack->empty, i);
}

/* Lock-free. Returns 0 when all nodes are in use. */
static inline int stack_push(struct stack *stack, uint64_t value)
{
	uint32_t node = stack_unlink(stack, &stack->empty);

	if (node == STACK_NOTHING)
		return 0;
	atomic_store_explicit(&stack->node[node - 1].value, value, memory_order_relaxed);
	stack_link(stack, &stack->full, node);
	return 1;
}

/* Lock-free. Returns 0 when the stack is empty. */
static inline int stack_pop(struct stack *stack, uint64_t *value)
{
	uint32_t node = stack_unlink(stack, &stack->full);

	if (node == STACK_NOTHING)
		return 0;
	*value = atomic_load_explicit(&stack->node[node - 1].value, memory_order_relaxed);
	stack_link(stack, &stack->empty, node);
	return 1;
}

#endif
