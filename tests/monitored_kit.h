/*
 * monitored_kit.h - shared by the tests of monitored sessions: a small graph, the sessions that are
 * made for it, hooks that count and fail, and a folder for checkpoints.
 */
#ifndef MONITORED_KIT_H
#define MONITORED_KIT_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/flow/monitored.h>

#include "base/atomic.h"
#include "graph_kit.h"

/* The variable `step`, to which `count` adds 1; and doubled = 2 * x. */
struct job {
	weir_graph *graph;
	weir_var *step;
	weir_output count, x, doubled;
	weir_monitored *monitored;
	weir_session *session; /* of the life, as make made it */
	/* What make does. */
	int made, unmade;
	int fail_at[2];            /* the numbers of the calls of make that fail, from 1 */
	enum weir_status failure;  /* with this status */
	bool resets;               /* make gives `step` the value 0 */
	size_t threads;            /* of the sessions; 0: all runs in the caller */
	char folder[64], path[96]; /* of the checkpoint */
};

static inline weir_error kit_error(enum weir_status code, const char *message)
{
	weir_error error = {code, ""};

	(void)snprintf(error.message, sizeof(error.message), "%s", message);
	return error;
}

static inline enum weir_status kit_fail(weir_error *error, enum weir_status code, const char *message)
{
	*error = kit_error(code, message);
	return code;
}

static inline enum weir_status job_make(void *context, weir_session **session, weir_error *error)
{
	struct job *job = context;
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .threads = job->threads,
	                                       .flags = job->threads == 0 ? WEIR_SESSION_NO_THREADS : 0};

	job->made++;
	for (int i = 0; i < 2; i++) {
		if (job->made == job->fail_at[i])
			return kit_fail(error, job->failure, "no room for a session");
	}
	if (job->resets) {
		weir_tensor *zero = kit_i64(0);

		cr_assert_eq(weir_var_assign(job->step, zero, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		weir_tensor_release(zero);
	}
	if (weir_session_create(job->graph, &options, session, error) != WEIR_OK)
		return error->code;
	job->session = *session;
	return WEIR_OK;
}

static inline enum weir_status job_unmake(void *context, weir_session *session, weir_error *error)
{
	struct job *job = context;

	job->unmade++;
	cr_expect_eq(session, job->session);
	return weir_session_destroy(session, error);
}

static inline void job_begin(struct job *job)
{
	struct weir_output scalar;

	(void)memset(job, 0, sizeof(*job));
	job->failure = WEIR_UNAVAILABLE;
	job->graph = kit_graph();
	job->step = kit_var("step", kit_i64(0));
	job->x = kit_placeholder(job->graph, "x", WEIR_I64, kit_shape(0));
	cr_assert_eq(
		weir_op_assign_add(job->graph, "count", job->step, kit_constant(job->graph, kit_i64(1)), &job->count, NULL),
		WEIR_OK);
	scalar = kit_constant(job->graph, kit_i64(2));
	cr_assert_eq(weir_op_mul(job->graph, "doubled", job->x, scalar, &job->doubled, NULL), WEIR_OK);
}

static inline struct weir_monitored_options job_options(struct job *job)
{
	return (struct weir_monitored_options){WEIR_MONITORED_OPTIONS_INIT, .make = job_make, .unmake = job_unmake,
	                                       .context = job, .name = "job"};
}

static inline void job_create(struct job *job, const struct weir_monitored_options *options)
{
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_monitored_create(options, &job->monitored, &error), WEIR_OK, "%s", error.message);
}

/* Begins a job without hooks. */
static inline void job_start(struct job *job)
{
	struct weir_monitored_options options;

	job_begin(job);
	options = job_options(job);
	job_create(job, &options);
}

/* Begins a job with these hooks. */
static inline void job_start_with(struct job *job, const struct weir_monitored_hook *const hooks[], size_t count)
{
	struct weir_monitored_options options;

	job_begin(job);
	options = job_options(job);
	options.hooks = hooks;
	options.hook_count = count;
	job_create(job, &options);
}

/* Begins a job with this hook alone. */
static inline void job_start_with_hook(struct job *job, const struct weir_monitored_hook *hook)
{
	job_start_with(job, &hook, 1);
}

/* Adds 1 to the step; returns the status, and the new value in *value. */
static inline enum weir_status job_run(struct job *job, int64_t *value, weir_error *error)
{
	weir_tensor *result = NULL;
	enum weir_status status = weir_monitored_run(job->monitored, NULL, 0, &job->count, 1, &result, NULL, 0,
	                                             weir_deadline_in(KIT_PATIENCE_NS), NULL, NULL, error);

	if (status == WEIR_OK)
		*value = kit_i64_at(result, 0);
	else
		cr_expect_null(result);
	weir_tensor_release(result);
	return status;
}

/* A run that must succeed. */
static inline int64_t job_count(struct job *job)
{
	weir_error error = {WEIR_OK, ""};
	int64_t value = -1;

	cr_assert_eq(job_run(job, &value, &error), WEIR_OK, "%s", error.message);
	return value;
}

static inline int64_t job_step(const struct job *job)
{
	weir_read read;
	int64_t value;

	cr_assert_eq(weir_var_read(job->step, &read), WEIR_OK);
	value = kit_i64_at(read.tensor, 0);
	weir_read_release(&read);
	return value;
}

static inline enum weir_status job_close(struct job *job, enum weir_status loop, weir_error *error)
{
	return weir_monitored_close(job->monitored, loop, error);
}

/* Destroys all that is left. */
static inline void job_end(struct job *job)
{
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_monitored_destroy(job->monitored, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_graph_destroy(job->graph, &error), WEIR_OK, "%s", error.message);
	weir_var_destroy(job->step, NULL);
	if (job->folder[0] != '\0') {
		(void)unlink(job->path);
		cr_expect_eq(rmdir(job->folder), 0);
	}
}

/* A clean end, and nothing is left. */
static inline void job_finish(struct job *job)
{
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(job_close(job, WEIR_OK, &error), WEIR_OK, "%s", error.message);
	job_end(job);
}

static inline void job_folder(struct job *job)
{
	(void)snprintf(job->folder, sizeof(job->folder), "/tmp/weir_monitored_XXXXXX");
	cr_assert_not_null(mkdtemp(job->folder));
	(void)snprintf(job->path, sizeof(job->path), "%s/job.safetensors", job->folder);
}

/* -- hooks that count their calls, and fail when they are told ---------------------------------- */

enum place { AT_BEGIN, AT_CREATE, AT_BEFORE, AT_AFTER, AT_END, PLACES };

struct counting {
	struct weir_monitored_hook hook;
	struct job *job; /* whose session and step the calls must see; may be NULL */
	int calls[PLACES];
	enum place fail_in;
	int fail_at; /* the number of the call that fails, from 1; 0: none */
	enum weir_status failure;
	weir_coordinator *coordinator; /* of the life */
};

static inline enum weir_status count_place(struct counting *counting, enum place place, weir_error *error)
{
	counting->calls[place]++;
	if (place != counting->fail_in || counting->calls[place] != counting->fail_at)
		return WEIR_OK;
	return kit_fail(error, counting->failure, "as it was told");
}

static inline enum weir_status counting_begin(void *context, weir_error *error)
{
	return count_place(context, AT_BEGIN, error);
}

static inline enum weir_status counting_created(void *context, weir_session *session, weir_coordinator *coordinator,
                                                weir_error *error)
{
	struct counting *counting = context;

	counting->coordinator = coordinator;
	if (counting->job != NULL)
		cr_expect_eq(session, counting->job->session);
	return count_place(counting, AT_CREATE, error);
}

static inline enum weir_status counting_before(void *context, weir_monitored_call *call, weir_error *error)
{
	struct counting *counting = context;

	if (counting->job != NULL)
		cr_expect_eq(weir_monitored_call_session(call), counting->job->session);
	return count_place(counting, AT_BEFORE, error);
}

static inline enum weir_status counting_after(void *context, weir_monitored_call *call, weir_error *error)
{
	(void)call;
	return count_place(context, AT_AFTER, error);
}

static inline enum weir_status counting_end(void *context, weir_session *session, weir_error *error)
{
	struct counting *counting = context;

	if (counting->job != NULL)
		cr_expect_eq(session, counting->job->session);
	return count_place(counting, AT_END, error);
}

static inline void counting_init(struct counting *counting, const char *name, struct job *job)
{
	*counting =
		(struct counting){.hook = {WEIR_MONITORED_HOOK_INIT, .name = name, .context = counting, .begin = counting_begin,
	                               .after_create = counting_created, .before_run = counting_before,
	                               .after_run = counting_after, .end = counting_end},
	                      .job = job,
	                      .failure = WEIR_UNAVAILABLE};
}

static inline void expect_calls(const struct counting *counting, int begin, int create, int before, int after, int end)
{
	const int expected[PLACES] = {begin, create, before, after, end};

	for (int i = 0; i < PLACES; i++)
		cr_expect_eq(counting->calls[i], expected[i], "place %d: %d calls, expected %d", i, counting->calls[i],
		             expected[i]);
}

static inline enum weir_status count_with_hooks(void *context, weir_session *session, weir_error *error)
{
	struct job *job = context;
	int64_t value;

	(void)session;
	return job_run(job, &value, error);
}

#endif
