/*
 * give_way.h - quick writes give way to a slow one that they have overtaken again and again.
 *
 * A write is lock-free: it begins anew when another one was first. One that computes for 100 us never
 * is first beside a thread that exchanges the value each 10 us on another processor; and the more such
 * writes are combined (combine.c), the longer one takes. So a call that was overtaken a few times *asks*: it
 * sets a word of the variable, and the moment at which its request ends. Each other write looks at the
 * word before it begins, and if it is set it waits, until the call has made its change, or until the
 * moment. Calls that are combined do not wait: they are made together with the one that asks. An update that has
 * asked does not wait for another that asks.
 *
 * Invariants
 *   W1  asking changes nothing but times: a write that overlooks the word, or passes it before it is
 *       set, is as right as before. Hence the relaxed orders
 *   W2  each request ends at its moment, whatever its thread does. So a thread that is stopped after it
 *       asked delays each other thread once, until that moment, and no longer
 *   W3  a call asks again only when it was overtaken again: a sum as many times again, an update once
 *   W4  whoever ends a request, which its owner need not be, wakes all who wait
 *   W5  weiri_ways_asked is the sum of what threads keep (reclaim/own.h). So a thread that ends in the middle, or
 *       that a fork leaves behind, takes its requests with it. A coroutine may ask on one thread and end its
 *       request on another, when the first may have ended: it then counts no less
 * Progress: a write waits for a bounded time, once for each request; there is a request only after other
 * writes were first (W3). So what was lock-free is so.
 * Pairs
 *   Y1  weiri_way_ask -> weiri_give_way: the moment
 * Source: to tell others that one has failed often, so that they pause, is contention management (Herlihy,
 * Luchangco, Moir, Scherer, PODC 2003); the end by time is ours.
 * Checked: stress/model/check_combine.c, tests/test_give_way.c, stress/scenario_combine.c.
 */
#ifndef WEIRI_GIVE_WAY_H
#define WEIRI_GIVE_WAY_H

#include <stdbool.h>

#include "base/compiler.h"
#include "var/version.h"

/*
 * A call asks when it was overtaken so many times; an update by a function of the caller also not before so much time has
 * passed since it lost its first attempt. Constant, except in tests and the model checker.
 */
extern unsigned weiri_way_patience;
extern uint64_t weiri_way_patience_ns;

/* The slow half of weiri_give_way(). */
void weiri_give_way_slowly(weir_var *var, uint64_t deadline_ns);

/*
 * Waits while a slow write of the variable asks for it, at most until deadline_ns (absolute). Does not wait in a read section
 * of the program, nor in a function that a collection calls, as a write then does not wait for memory either.
 */
static inline void weiri_give_way(weir_var *var, uint64_t deadline_ns)
{
	/* [relaxed] W1 */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&var->way.asked) != 0))
		weiri_give_way_slowly(var, deadline_ns);
}

/*
 * Asks other writes to wait until weiri_way_free(), or until the moment until_ns. Returns what that needs. It counts in
 * weiri_ways_asked (reclaim/record.h), so that a write of many variables need not look at each. Wait-free.
 */
struct weiri_own *weiri_way_ask(weir_var *var, uint64_t until_ns);
/* A call that has asked sets another moment. Wait-free. */
void weiri_way_ask_again(weir_var *var, uint64_t until_ns);

/*
 * Ends the request of a call that has asked, as `asker`. Lock-free: other calls of that thread count, too. A
 * system call if the request has not ended yet.
 */
void weiri_way_free(weir_var *var, struct weiri_own *asker);

#endif
