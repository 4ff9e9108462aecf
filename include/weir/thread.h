/*
 * thread.h - lets a signal end the waits of a thread.
 *
 * For language runtimes and command-line programs, whose handlers only set a flag: with an
 * interrupt a thread that waits in Weir notices the flag within the time that a signal takes, and
 * need not wake up to look. To end the waits of other threads use a token (weir/cancel.h).
 *
 *     static int stop_asked(void *flag)
 *     {
 *         return *(volatile sig_atomic_t *)flag;
 *     }
 *
 *     weir_thread_set_interrupt(stop_asked, &flag);
 *     status = weir_queue_dequeue(queue, &item, WEIR_NO_DEADLINE, NULL, &error);
 *
 * | call             | threads | progress              | blocks on | allocates  | signal-safe |
 * |------------------|---------|-----------------------|-----------|------------|-------------|
 * | weir_thread_set_interrupt | any | wait-free         | nothing   | record (1) | no          |
 *
 * (1) A thread's first call of Weir allocates its record.
 *
 * Which waits. Those of all calls that take a deadline, with one exception: a wait whose length
 * Weir bounds itself, such as that for the thread that completes the operation of this one, goes
 * on. Calls that wait without a deadline (the destroy of a session or a pool) cannot be ended.
 */
#ifndef WEIR_THREAD_H
#define WEIR_THREAD_H

#include <weir/status.h>

WEIR_BEGIN_DECLS

/*
 * Called by a wait of the thread that set it, on that thread, after a signal handler ran there. Not
 * 0 ends the call that waits. It may call Weir, but not destroy what the call uses. It must return.
 */
typedef int weir_thread_interrupt_fn(void *context);

/*
 * Sets the interrupt of this thread; NULL (the default) removes it. It is gone when the thread ends.
 *
 * If a signal handler runs on the thread while it sleeps in a call, the call asks fn(context). The
 * answer 0 lets it sleep on, until the same deadline. Any other answer ends the call as a token
 * does: with WEIR_CANCELLED, and no item lost. If the operation was complete at that moment, the
 * call returns its outcome instead; so what fn found must be remembered elsewhere, too. fn is asked
 * also if the handler was installed with SA_RESTART.
 *
 * Only a signal that comes while the thread sleeps in the kernel is noticed. One that comes before,
 * between the begin of the call and the sleep, is noticed with the next signal: that is some
 * microseconds, and up to 0.1 ms of looks and a yield before a critical section.
 * So a program looks at its flag before it calls, and one that cannot bear the rest sends the signal
 * again.
 *
 * Errors: WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_thread_set_interrupt(weir_thread_interrupt_fn *fn, void *context);

WEIR_END_DECLS

#endif
