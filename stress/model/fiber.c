/*
 * fiber.c - fibers for the checker: six pushes and a stack pointer on x86-64, ucontext elsewhere.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "model/engine.h"

enum { STACK_SIZE = 256 << 10 };

static char *stacks[THREADS];
static unsigned current;

static char *stack_of(unsigned thread)
{
	if (stacks[thread] == NULL) {
		void *stack =
			mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (stack == MAP_FAILED)
			abort();
		stacks[thread] = stack;
	}
	return stacks[thread];
}

#if defined(__x86_64__)

static void *engine_sp;
static void *fiber_sp[THREADS];
static void (*entry[THREADS])(void);

void fiber_switch(void **save, void *to);
__asm__(".text\n.globl fiber_switch\n.hidden fiber_switch\nfiber_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

static void fiber_main(void)
{
	entry[current]();
	for (;;)
		fiber_suspend();
}

void fiber_start(unsigned thread, void (*run)(void))
{
	void **top = (void **)(void *)(stack_of(thread) + STACK_SIZE - 64);

	entry[thread] = run;
	/* As fiber_switch leaves it: six registers, the address to return to, and the alignment that a call would give. */
	*--top = NULL;
	*--top = (void *)(uintptr_t)fiber_main;
	for (int i = 0; i < 6; i++)
		*--top = NULL;
	fiber_sp[thread] = top;
}

void fiber_resume(unsigned thread)
{
	current = thread;
	fiber_switch(&engine_sp, fiber_sp[thread]);
}

void fiber_suspend(void)
{
	fiber_switch(&fiber_sp[current], engine_sp);
}

#else
#include <ucontext.h>

static ucontext_t engine, fibers[THREADS];
static void (*entry[THREADS])(void);

static void fiber_main(void)
{
	entry[current]();
	for (;;)
		fiber_suspend();
}

void fiber_start(unsigned thread, void (*run)(void))
{
	entry[thread] = run;
	(void)getcontext(&fibers[thread]);
	fibers[thread].uc_stack.ss_sp = stack_of(thread);
	fibers[thread].uc_stack.ss_size = STACK_SIZE;
	makecontext(&fibers[thread], fiber_main, 0);
}

void fiber_resume(unsigned thread)
{
	current = thread;
	(void)swapcontext(&engine, &fibers[thread]);
}

void fiber_suspend(void)
{
	(void)swapcontext(&fibers[current], &engine);
}
#endif
