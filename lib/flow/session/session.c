/*
 * session.c - sessions, and the plans that they keep.
 *
 * Plans are in hash buckets, and each bucket is a list that only grows, up to a bound on all plans
 * together. If two threads compile the same plan at the same time, the second push fails, and its
 * thread discards its plan.
 */
#include "session/session.h"

#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "session/trace.h"

enum { SESSION_FLAGS = WEIR_SESSION_NO_THREADS };

static enum weir_status check_options(const struct weir_session_options *options, weir_error *error)
{
	if (options->flags & ~(uint32_t)SESSION_FLAGS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_session_create: unknown flags 0x%x", options->flags);
	if (options->pool != NULL && (options->threads != 0 || options->flags & WEIR_SESSION_NO_THREADS))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "weir_session_create: threads are the pool's; leave threads and flags 0 with a pool");
	if (options->threads != 0 && options->flags & WEIR_SESSION_NO_THREADS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "weir_session_create: %zu thread%s together with WEIR_SESSION_NO_THREADS", options->threads,
		                  WEIRI_S(options->threads));
	return WEIR_OK;
}

static enum weir_status get_pool(weir_session *session, const struct weir_session_options *options, weir_error *error)
{
	struct weir_pool_options pool = {WEIR_POOL_OPTIONS_INIT};
	enum weir_status status = WEIR_OK;

	session->pool = options->pool;
	session->owns_pool = options->pool == NULL;
	if (session->owns_pool) {
		pool.threads = options->threads;
		pool.flags = options->flags & WEIR_SESSION_NO_THREADS ? WEIR_POOL_NO_THREADS : 0;
		pool.allocator = &session->allocator;
		status = weir_pool_create(&pool, &session->pool, error);
	}
	if (status == WEIR_OK)
		session->workers = weir_pool_thread_count(session->pool);
	return status;
}

static enum weir_status create(weir_graph *graph, const struct weir_session_options *options, weir_session **out,
                               weir_error *error)
{
	weir_allocator allocator = weiri_allocator_or_default(options->allocator);
	weir_session *session = weiri_allocate_zeroed(&allocator, sizeof(*session), _Alignof(weir_session));
	enum weir_status status;

	if (session == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_session_create: no memory");
	session->allocator = allocator;
	session->graph = graph;
	session->operation_timeout_ns = options->operation_timeout_ns;
	session->shuffle_seed = options->shuffle_seed;
	session->trace = options->trace;
	weiri_serial_init(&session->steps);
	weiri_serial_init(&session->draws);
	weiri_serial_init(&session->plan_count);
	weiri_gate_init(&session->gate);
	weiri_countdown_init(&session->handles, 1);
	for (size_t i = 0; i < WEIRI_SESSION_BUCKETS; i++)
		weiri_published_init(&session->plans[i]);
	status = weir_cancel_create(&allocator, &session->token, error);
	if (status == WEIR_OK)
		status = get_pool(session, options, error);
	if (status != WEIR_OK) {
		weir_cancel_release(session->token);
		weiri_release(&allocator, session, sizeof(*session), _Alignof(weir_session));
		return status;
	}
	weiri_countdown_join(&graph->users);
	if (session->trace != NULL)
		weiri_countdown_join(&session->trace->users);
	*out = session;
	return WEIR_OK;
}

enum weir_status weir_session_create(weir_graph *graph, const struct weir_session_options *options, weir_session **out,
                                     weir_error *error)
{
	struct weir_session_options given;
	enum weir_status status;

	if (graph == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_session_create: %s is NULL",
		                  graph == NULL ? "graph" : "out");
	status = weiri_options_read("weir_session_create", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = check_options(&given, error);
	return status != WEIR_OK ? status : create(graph, &given, out, error);
}

enum weir_status weir_session_close(weir_session *session, const weir_error *cause)
{
	weir_error kept;

	if (session == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (weiri_is_cause(cause)) {
		weir_error given = weiri_error_kept(cause);

		(void)weiri_fail(&kept, WEIR_CANCELLED, "the session was closed because of %s: %.180s",
		                 weir_status_name(given.code), given.message);
	} else {
		(void)weiri_fail(&kept, WEIR_CANCELLED, "the session was closed");
	}
	/* The token fires before the gate closes, so that a run refused at the gate finds the cause. */
	(void)weir_cancel_fire(session->token, &kept);
	(void)weiri_gate_close(&session->gate);
	return WEIR_OK;
}

enum weir_status weiri_session_refuse(const weir_session *session, const char *call, weir_error *error)
{
	weir_error cause = {WEIR_OK, "the session was closed"};

	(void)weir_cancel_cause(session->token, &cause);
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: %.220s", call, cause.message);
}

static struct weiri_plan *plan_of(struct weiri_published *link)
{
	return link != NULL ? WEIRI_CONTAINER_OF(link, struct weiri_plan, link) : NULL;
}

static void free_plans(weir_session *session)
{
	for (size_t i = 0; i < WEIRI_SESSION_BUCKETS; i++) {
		struct weiri_published *next;

		for (struct weiri_published *link = weiri_published_first(&session->plans[i]); link != NULL; link = next) {
			next = link->next;
			weiri_plan_free(plan_of(link), &session->allocator);
		}
	}
}

enum weir_status weir_session_destroy(weir_session *session, weir_error *error)
{
	weir_allocator allocator;
	uint32_t handles;

	if (session == NULL)
		return WEIR_OK;
	if (weiri_inside_kernel())
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "weir_session_destroy: a kernel cannot destroy its session");
	handles = weiri_countdown_left(&session->handles) - 1;
	if (handles != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_session_destroy: %u callable%s or run%s of it %s not released", handles,
		                  WEIRI_S(handles), WEIRI_S(handles), handles == 1 ? "is" : "are");
	(void)weir_session_close(session, NULL);
	/*
	 * No other thread runs what released runs have left in a pool of our own without workers. A
	 * completion on another thread may submit a task at any time, which wakes nobody here.
	 */
	while (session->owns_pool && session->workers == 0 && !weiri_gate_is_drained(&session->gate)) {
		if (weir_pool_help(session->pool, 1) == 0)
			weiri_gate_wait_until(&session->gate, weir_deadline_in(1000000));
	}
	weiri_gate_wait(&session->gate);
	if (session->owns_pool)
		(void)weir_pool_destroy(session->pool, NULL);
	free_plans(session);
	weir_cancel_release(session->token);
	(void)weiri_countdown_arrive(&session->graph->users);
	if (session->trace != NULL)
		(void)weiri_countdown_arrive(&session->trace->users);
	allocator = session->allocator;
	weiri_release(&allocator, session, sizeof(*session), _Alignof(weir_session));
	return WEIR_OK;
}

static struct weiri_plan *find_between(struct weiri_published *from, const struct weiri_published *until,
                                       const struct weiri_signature *signature)
{
	for (struct weiri_published *link = from; link != until; link = link->next) {
		if (weiri_plan_matches(plan_of(link), signature))
			return plan_of(link);
	}
	return NULL;
}

enum weir_status weiri_session_plan(weir_session *session, struct weiri_signature *signature, struct weiri_plan **out,
                                    weir_error *error)
{
	struct weiri_published_list *bucket;
	struct weiri_published *looked_at;
	struct weiri_published *first;
	struct weiri_plan *plan;
	struct weiri_plan *other;
	enum weir_status status;

	signature->hash = weiri_signature_hash(signature);
	bucket = &session->plans[signature->hash % WEIRI_SESSION_BUCKETS];
	looked_at = weiri_published_first(bucket);
	*out = find_between(looked_at, NULL, signature);
	if (*out != NULL)
		return WEIR_OK;
	/* To shuffle nodes, the nodes of a chain must not run as one. */
	status = weiri_plan_compile(session->graph, &session->allocator, signature,
	                            session->shuffle_seed != 0 ? WEIRI_PLAN_SEPARATE : 0, &plan, error);
	if (status != WEIR_OK)
		return status;
	*out = plan;
	/* Another thread may have been first: its plan must not cost a second number. */
	first = weiri_published_first(bucket);
	other = find_between(first, looked_at, signature);
	if (other != NULL) {
		weiri_plan_free(plan, &session->allocator);
		*out = other;
		return WEIR_OK;
	}
	plan->kept = weiri_serial_take(&session->plan_count) < WEIRI_SESSION_MOST_PLANS;
	if (!plan->kept)
		return WEIR_OK;
	do {
		first = weiri_published_first(bucket);
		other = find_between(first, looked_at, signature);
		if (other != NULL) {
			weiri_plan_free(plan, &session->allocator);
			plan = other;
			break;
		}
		looked_at = first;
	} while (!weiri_published_push_after(bucket, &plan->link, first));
	*out = plan;
	return WEIR_OK;
}
