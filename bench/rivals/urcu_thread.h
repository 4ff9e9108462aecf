/*
 * urcu_thread.h - registers a thread with the liburcu flavour that was included before.
 */
#ifndef WEIR_BENCH_URCU_THREAD_H
#define WEIR_BENCH_URCU_THREAD_H

static inline void thread_begin(void *self)
{
	(void)self;
	rcu_register_thread();
}

static inline void thread_end(void *self)
{
	(void)self;
	rcu_unregister_thread();
}

#endif
