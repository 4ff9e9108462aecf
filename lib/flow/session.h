/*
 * session.h - what the parts of a session share.
 */
#ifndef WEIRI_SESSION_H
#define WEIRI_SESSION_H

#include <weir/session.h>

#include "flow/plan.h"
#include "run/gate.h"
#include "run/published.h"

enum { WEIRI_SESSION_BUCKETS = 64 };

struct weir_session {
	weir_allocator allocator;
	weir_graph *graph;
	weir_pool *pool;
	int owns_pool;
	size_t workers;
	uint64_t operation_timeout_ns;
	weir_cancel *token;     /* fires when the session is closed */
	struct weiri_gate gate; /* steps are inside until they are freed */
	struct weiri_published_list plans[WEIRI_SESSION_BUCKETS];
};

/* The plan for the signature, compiled unless it is there. */
enum weir_status weiri_session_plan(weir_session *session, struct weiri_signature *signature,
                                    const struct weiri_plan **out, weir_error *error);

#endif
