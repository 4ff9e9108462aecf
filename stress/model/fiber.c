/*
 * fiber.c - fibers for the checker: six pushes and a stack pointer on x86-64, eleven pairs on
 * arm64, ucontext elsewhere.
 *
 * The signal mask is not switched, because that would be a system call, and nothing here changes
 * it.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "model/checkpoint.h"
#include "model/engine.h"

enum { STACK_SIZE = 256 << 10, ENGINE = THREADS };

static char *stacks[THREADS];
static void (*entry[THREADS])(void);
static unsigned starting;

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

const char *fiber_stack_end(unsigned thread)
{
	return stacks[thread] + STACK_SIZE;
}

int fiber_of(const char *address)
{
	for (unsigned t = 0; t <= model_program->threads; t++) {
		if (stacks[t] != NULL && (size_t)(address - stacks[t]) < STACK_SIZE)
			return (int)t;
	}
	return -1;
}

static void fiber_main(void)
{
	unsigned me = starting;

	entry[me]();
	for (;;)
		fiber_leave(me);
}

#if defined(__x86_64__) || defined(__aarch64__) /* FIBER_CAN_BE_KEPT */

static void *stack_pointer[THREADS + 1];

void fiber_switch(void **save, void *to);
#if defined(__x86_64__)
enum { SAVED = 6, RETURN = 6, ROOM = 8 };
__asm__(".text\n.globl fiber_switch\n.hidden fiber_switch\nfiber_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
#else
enum { SAVED = 20, RETURN = 11, ROOM = 20 };
__asm__(
	".text\n.globl fiber_switch\n.hidden fiber_switch\nfiber_switch:\n"
	"sub sp,sp,#160\n"
	"stp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\nstp x27,x28,[sp,#64]\n"
	"stp x29,x30,[sp,#80]\nstp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\nstp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\n"
	"mov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
	"ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\nldp x27,x28,[sp,#64]\n"
	"ldp x29,x30,[sp,#80]\nldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\nldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
	"add sp,sp,#160\nret\n");
#endif

void fiber_start(unsigned thread, void (*run)(void))
{
	/* The stack as fiber_switch leaves it; the zeros above it end a walk of the stack. */
	void **frame = (void **)(void *)(stack_of(thread) + STACK_SIZE - 256);

	entry[thread] = run;
	for (int i = 0; i < ROOM; i++)
		frame[i] = NULL;
	frame[RETURN] = (void *)(uintptr_t)fiber_main;
	stack_pointer[thread] = frame;
}

void fiber_enter(unsigned thread)
{
	starting = thread;
	fiber_switch(&stack_pointer[ENGINE], stack_pointer[thread]);
}

void fiber_switch_to(unsigned from, unsigned to)
{
	fiber_switch(&stack_pointer[from], stack_pointer[to]);
}

void fiber_leave(unsigned from)
{
	fiber_switch(&stack_pointer[from], stack_pointer[ENGINE]);
}

void fiber_parts(struct checkpoint *checkpoint, unsigned thread)
{
	checkpoint_part(checkpoint, &stack_pointer[thread], sizeof(stack_pointer[0]));
	checkpoint_part(checkpoint, stack_pointer[thread],
	                (size_t)(fiber_stack_end(thread) - (const char *)stack_pointer[thread]));
}

#else
#include <ucontext.h>

static ucontext_t contexts[THREADS + 1];

void fiber_start(unsigned thread, void (*run)(void))
{
	entry[thread] = run;
	(void)getcontext(&contexts[thread]);
	contexts[thread].uc_stack.ss_sp = stack_of(thread);
	contexts[thread].uc_stack.ss_size = STACK_SIZE;
	makecontext(&contexts[thread], fiber_main, 0);
}

void fiber_enter(unsigned thread)
{
	starting = thread;
	(void)swapcontext(&contexts[ENGINE], &contexts[thread]);
}

void fiber_switch_to(unsigned from, unsigned to)
{
	(void)swapcontext(&contexts[from], &contexts[to]);
}

void fiber_leave(unsigned from)
{
	(void)swapcontext(&contexts[from], &contexts[ENGINE]);
}

void fiber_parts(struct checkpoint *checkpoint, unsigned thread)
{
	(void)checkpoint, (void)thread;
	abort();
}
#endif
