/*
 * session.h - what the parts of a session share.
 */
#ifndef WEIRI_SESSION_H
#define WEIRI_SESSION_H

#include <weir/flow/callable.h>
#include <weir/flow/session.h>
#include <weir/time.h>

#include "session/plan.h"
#include "run/countdown.h"
#include "run/gate.h"
#include "run/published.h"

enum { WEIRI_SESSION_BUCKETS = 64 };
/* A session keeps so many plans. Those of later signatures are compiled for each run. */
enum { WEIRI_SESSION_MOST_PLANS = 1024 };

struct weir_session {
	weir_allocator allocator;
	weir_graph *graph;
	weir_pool *pool;
	bool owns_pool;
	size_t workers;
	uint64_t operation_timeout_ns;
	uint64_t shuffle_seed;          /* 0: ready nodes are not shuffled */
	struct weiri_serial steps;      /* counts steps: each shuffled step has its own seed */
	struct weiri_serial draws;      /* counts steps that draw random numbers */
	weir_trace *trace;              /* NULL: steps are not recorded */
	weir_cancel *token;             /* fires when the session is closed */
	struct weiri_gate gate;         /* steps and callables are inside until they are freed */
	struct weiri_countdown handles; /* the owner's, and those on callables and started runs */
	struct weiri_serial plan_count; /* plans that asked to be kept */
	struct weiri_published_list plans[WEIRI_SESSION_BUCKETS];
};

/*
 * Returns WEIR_FAILED_PRECONDITION, for a call on a closed session. The message has the cause of
 * the close.
 */
enum weir_status weiri_session_refuse(const weir_session *session, const char *call, weir_error *error);
/* Returns the deadline of a run. The session's limit applies only to a run without a deadline. */
static inline uint64_t weiri_session_deadline(const weir_session *session, uint64_t deadline_ns)
{
	return deadline_ns == WEIR_NO_DEADLINE && session->operation_timeout_ns != 0
	           ? weir_deadline_in(session->operation_timeout_ns)
	           : deadline_ns;
}
/*
 * Sets *out to the plan for the signature, which is compiled if the session has none. If it is not
 * kept, the caller frees it, or the step does to which the caller passes it on.
 */
enum weir_status weiri_session_plan(weir_session *session, struct weiri_signature *signature, struct weiri_plan **out,
                                    weir_error *error);

/* --- callable.c --- */

struct weir_callable {
	weir_session *session;
	struct weiri_plan *plan;
	struct weiri_countdown users; /* the owner's handle, and steps */
};
/* Reads and checks the options of a run. */
enum weir_status weiri_run_options(const char *call, const struct weir_run_options *given, uint32_t flags,
                                   struct weir_run_options *options, weir_error *error);
/* Enters the callable for a step. Fails with WEIR_FAILED_PRECONDITION if the session is closed. */
enum weir_status weiri_callable_enter(weir_callable *callable, const char *call, weir_error *error);
/* Gives back the reference of a step or of the owner; the session may be gone afterwards. */
void weiri_callable_leave(weir_callable *callable);

#endif
