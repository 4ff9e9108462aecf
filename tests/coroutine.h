/*
 * coroutine.h - a call with a stack of its own, which stops and goes on on another thread.
 *
 *     struct coroutine coroutine = {.call = update, .context = &scene};
 *
 *     coroutine_start(&coroutine);
 *     coroutine_resume_on_a_thread(&coroutine); // until update() calls coroutine_stop()
 *     coroutine_resume(&coroutine);             // to its end
 *     coroutine_end(&coroutine);
 *
 * Sanitizers do not know the stack, so tests begin with coroutine_or_skip().
 */
#ifndef COROUTINE_H
#define COROUTINE_H

#include <criterion/criterion.h>

#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || __has_feature(thread_sanitizer) || \
	__has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
enum { COROUTINE_WORKS = 0 };
#else
enum { COROUTINE_WORKS = 1 };
#endif

enum { COROUTINE_STACK = 256 * 1024 };

struct coroutine {
	void (*call)(void *context);
	void *context;
	ucontext_t inside, outside;
	char *stack;
};

/* makecontext() passes no pointers. */
static struct coroutine *coroutine_started;

static inline void coroutine_or_skip(void)
{
	if (!COROUTINE_WORKS)
		cr_skip_test("a sanitizer does not know the stack of a coroutine");
}

static void coroutine_main(void)
{
	coroutine_started->call(coroutine_started->context);
}

/* Prepares the call, which begins when it is resumed. There is one coroutine at a time. */
static inline void coroutine_start(struct coroutine *coroutine)
{
	coroutine->stack = malloc(COROUTINE_STACK);
	cr_assert_not_null(coroutine->stack);
	cr_assert_eq(getcontext(&coroutine->inside), 0);
	coroutine->inside.uc_stack.ss_sp = coroutine->stack;
	coroutine->inside.uc_stack.ss_size = COROUTINE_STACK;
	coroutine->inside.uc_link = &coroutine->outside;
	coroutine_started = coroutine;
	makecontext(&coroutine->inside, coroutine_main, 0);
}

/* Called in the coroutine; returns when it is resumed, on whichever thread. */
static inline void coroutine_stop(struct coroutine *coroutine)
{
	cr_assert_eq(swapcontext(&coroutine->inside, &coroutine->outside), 0);
}

/* Returns when the call stops or has ended. */
static inline void coroutine_resume(struct coroutine *coroutine)
{
	cr_assert_eq(swapcontext(&coroutine->outside, &coroutine->inside), 0);
}

static inline void *coroutine_thread(void *coroutine)
{
	coroutine_resume(coroutine);
	return NULL;
}

/* The same, on a thread that has ended when this returns. */
static inline void coroutine_resume_on_a_thread(struct coroutine *coroutine)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, coroutine_thread, coroutine), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

static inline void coroutine_end(struct coroutine *coroutine)
{
	free(coroutine->stack);
}

#endif
