/*
 * watch.c - waiting for newer versions.
 *
 * Algorithm. A variable has a list of waiting operations (sync/waitable.h). A thread that has
 * published a version reads the list and attempts each operation. A wait names the last version
 * that its caller knows. It completes when the newest version is newer than that, and gives a
 * reference to the newest version's tensor. A watch is an operation that never completes by itself:
 * its attempt brings a descriptor up to date with the variable (sync/ready_fd.h).
 *
 * Invariants
 *   W1  no version is overlooked. A thread that publishes stamps the version, or decides the
 *       commit, and then looks for waiters. A waiter puts itself on the list, posts, and then reads
 *       the variable (sync/waiters.h). That read resolves the version at the head, so a version that
 *       is published and not stamped yet counts as well
 *   W2  only the owner of a commit serves waiters, not a thread that helps it. A variable may be
 *       destroyed as soon as the calls on it have ended, and the helper's call is on another
 *       variable
 *   W3  only the claimer and weir_watch_try_take() settle a watch's ready descriptor. The attempt
 *       that ends the watch has the claim too; it is the last of them, and closes the descriptor
 *   W4  a writer that finds the descriptor lit, after its version and a fence, does not claim the
 *       watch. It reads only the word, which lives as long as the list may show the watch to the
 *       writer's section. F1 of ready_fd.h then says that the descriptor stays lit until a look that
 *       sees the version finds that it was taken
 * Why a watch's descriptor is right as soon as no thread is changing the variable or taking from
 * the watch (B3 of ready_fd.h). The condition changes when a version is published; its writer then
 * attempts the watch, or leaves AGAIN to the claimer, which settles once more. It also changes when
 * a version is taken; the taking thread then settles.
 * Marks (commit.c) are not newer versions: each repeats the number of the version below it, so it
 * completes no wait.
 * Linearization: of a wait, its attempt's read of the head that finds the newer version.
 * Progress: as in sync/pending.h. A writer makes one attempt for each waiter, each one read of the
 * head and at most one system call; for a watch that is lit, only a fence and a load. Memory: a wait is one allocation of some 500 bytes until it
 * ends; a watch is the same and a descriptor. Checked: stress/model/check_watch.c,
 * tests/test_watch.c, stress/scenario_watch.c.
 */
#include <weir/watch.h>

#include "base/error.h"
#include "sync/request.h"
#include "sync/ready_fd.h"
#include "var/hold.h"

/* A wait for a version newer than `newer_than`. */
struct request {
	weir_var *var;
	uint64_t newer_than;
	weir_read read;          /* the result */
	weir_var_newer_fn *done; /* of an asynchronous wait */
	void *context;
};

struct weir_watch {
	struct weiri_waitable_op op; /* first */
	weir_var *var;
	_Atomic(uint64_t) seen; /* taker only; the number taken last */
	struct weiri_ready_fd ready_fd;
};

/* -- waits ------------------------------------------------------------------------------------- */

static enum weir_status attempt_wait(struct weiri_scope *scope, void *asked, weir_error *error)
{
	struct request *request = asked;
	struct weiri_version *version = weiri_newest(scope->record, request->var);

	(void)error;
	if (version->number <= request->newer_than)
		return WEIR_WOULD_BLOCK;
	/*
	 * By a reference to the value and not by a hazard slot: this runs on the thread of a writer,
	 * whose few slots are for its own reads.
	 */
	request->read = weiri_hold_value(version->value, version->shown, version->number);
	return WEIR_OK;
}

static enum weir_status fail_at_once(const void *asked, weir_error *error)
{
	const struct request *request = asked;

	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "variable \"%s\": no version newer than %llu", request->var->name,
	                  (unsigned long long)request->newer_than);
}

static const char *verb_of(const void *asked)
{
	(void)asked;
	return "wait";
}

static bool changes_nothing(const void *asked)
{
	(void)asked;
	return true;
}

static void answer(void *asked, enum weir_status status, const weir_error *error)
{
	struct request *request = asked;

	request->done(request->context, status, error, &request->read);
}

static const struct weiri_request_kind request_kind = {sizeof(struct request), attempt_wait, fail_at_once, verb_of,
                                                       changes_nothing,        answer};

static enum weir_status fail_null(const char *call, const char *what, weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: %s is NULL", call, what);
}

static enum weir_status fail_recordless(const weir_var *var, weir_error *error)
{
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for this thread's record", var->name);
}

enum weir_status weir_var_wait(weir_var *var, uint64_t newer_than, uint64_t deadline_ns, weir_cancel *cancel,
                               weir_read *read, weir_error *error)
{
	struct request request = {.var = var, .newer_than = newer_than};
	struct weiri_record *record;
	enum weir_status status;

	if (var == NULL || read == NULL)
		return fail_null("wait for a variable", var == NULL ? "it" : "read", error);
	/* This read uses a hazard slot of this thread, and creates the thread's record. */
	status = weir_cancel_fired(cancel) ? WEIR_WOULD_BLOCK : weir_var_try_read_newer(var, newer_than, read);
	if (status == WEIR_OK)
		return status;
	record = weiri_record_get();
	if (record == NULL)
		return fail_recordless(var, error);
	status =
		weiri_request_run(record, &var->waitable, &request_kind, &request, deadline_ns, cancel, &var->allocator, error);
	if (status == WEIR_OK)
		*read = request.read;
	return status;
}

enum weir_status weir_var_start_wait(weir_var *var, uint64_t newer_than, weir_var_newer_fn *done, void *context,
                                     weir_pending **handle, weir_error *error)
{
	struct request request = {.var = var, .newer_than = newer_than, .done = done, .context = context};
	struct weiri_record *record = weiri_record_get();

	if (var == NULL || done == NULL)
		return fail_null("wait for a variable", var == NULL ? "it" : "done", error);
	if (record == NULL)
		return fail_recordless(var, error);
	return weiri_request_start(record, &var->waitable, &request_kind, &request, &var->allocator, handle, error);
}

/* -- watches ----------------------------------------------------------------------------------- */

struct view {
	struct weiri_record *record;
	weir_watch *watch;
};

/* Called in a section. */
static bool has_newer(void *context)
{
	const struct view *view = context;

	/*
	 * [relaxed] The thread that writes `seen` settles afterwards: F1 of ready_fd.h.
	 */
	return weiri_newest(view->record, view->watch->var)->number > weiri_load_relaxed(&view->watch->seen);
}

/* Called in a section. */
static void settle(struct weiri_record *record, weir_watch *watch)
{
	struct view view = {record, watch};

	if (!weiri_eventfd_is_ours(&watch->ready_fd.event))
		return;
	weiri_fence_seq_cst(); /* F1 of ready_fd.h */
	weiri_ready_fd_settle(&watch->ready_fd, has_newer, &view);
}

static enum weiri_pending_outcome attempt_watch(struct weiri_scope *scope, weir_pending *pending, bool *moved)
{
	(void)moved;
	settle(scope->record, (weir_watch *)(void *)pending);
	return WEIRI_PENDING_WAITS;
}

/*
 * A version cannot have made the condition false, so while the descriptor is lit its writer has
 * nothing to do (W4).
 */
static bool is_lit(const weir_pending *pending)
{
	weiri_fence_seq_cst(); /* F1 of ready_fd.h */
	return weiri_ready_fd_is_lit(&((const weir_watch *)(const void *)pending)->ready_fd);
}

/* Runs when the watch is cancelled: W3. */
static void end_watch(weir_pending *pending)
{
	weiri_ready_fd_fini(&((weir_watch *)(void *)pending)->ready_fd);
	weiri_pending_told(pending);
}

static const struct weiri_pending_kind watch_kind =
	WEIRI_WAITABLE_KIND(attempt_watch, end_watch, .needs_nothing = is_lit, .is_quiet = true);

static enum weir_status fail_to_watch(weir_watch *watch, const weir_var *var, weir_error *error)
{
	if (watch != NULL) { /* never begun: drops the completion's reference and ours */
		weiri_pending_release(&watch->op.pending);
		weiri_pending_release(&watch->op.pending);
	}
	return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
	                  "variable \"%s\": no memory or no file descriptor left to watch it", var->name);
}

enum weir_status weir_watch_create(weir_var *var, uint64_t newer_than, weir_watch **out, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	weir_watch *watch;

	if (var == NULL || out == NULL)
		return fail_null("watch", var == NULL ? "the variable" : "out", error);
	if (record == NULL)
		return fail_recordless(var, error);
	watch = (weir_watch *)(void *)weiri_waitable_op_create(&var->waitable, &watch_kind, sizeof(*watch), "watch",
	                                                       &var->allocator, NULL);
	if (watch == NULL)
		return fail_to_watch(NULL, var, error);
	weiri_ready_fd_init(&watch->ready_fd);
	if (watch->ready_fd.event.fd < 0)
		return fail_to_watch(watch, var, error);
	watch->var = var;
	weiri_store_relaxed(&watch->seen, newer_than); /* [relaxed] not shared yet */
	weiri_pending_start(record, &watch->op.pending);
	if (watch->op.pending.blind) { /* written by the starting thread alone */
		(void)weir_watch_destroy(watch, NULL);
		return weiri_fail(
			error, WEIR_FAILED_PRECONDITION,
			"variable \"%s\": membarrier(2) was granted and is refused now: a version could be overlooked", var->name);
	}
	*out = watch;
	return WEIR_OK;
}

int weir_watch_fd(const weir_watch *watch)
{
	return watch != NULL ? watch->ready_fd.event.fd : -1;
}

enum weir_status weir_watch_try_take(weir_watch *watch, weir_read *read)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status;
	uint64_t outer;

	if (watch == NULL || read == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	/* [relaxed] own field. */
	status = weir_var_try_read_newer(watch->var, weiri_load_relaxed(&watch->seen), read);
	if (status == WEIR_OK)
		weiri_store_relaxed(&watch->seen, read->version); /* [relaxed] the settle's fence follows */
	outer = weiri_section_enter(record);
	settle(record, watch); /* also if nothing was newer: a stalled thread may have left it readable */
	weiri_section_leave(record, outer);
	return status;
}

enum weir_status weir_watch_destroy(weir_watch *watch, weir_error *error)
{
	(void)error; /* it never fails */
	if (watch == NULL)
		return WEIR_OK;
	weiri_pending_cancel(&watch->op.pending, WEIRI_PENDING_FOR_CALLER);
	weiri_pending_release(&watch->op.pending);
	return WEIR_OK;
}
