/*
 * watch.c - waiting for newer versions.
 *
 * Algorithm. A variable has a list of operations that wait (sync/await.h); whoever has published a version looks at the list, and attempts
 * each: a wait completes when the newest version is newer than it asks for, and takes a reference of that. A watch is an
 * operation that never completes by itself: its attempt makes a descriptor agree with the variable (sync/beacon.h).
 *
 * Invariants
 *   W1  no version is overlooked. Who publishes stamps the version, or decides the commit, then looks whether somebody waits;
 *       who waits appends, posts that, then looks at the variable (sync/waiters.h). That look settles what it finds at the head,
 *       so a version that was published but not stamped counts as well
 *   W2  only the owner of a commit lets others go on, not a thread that helps it: a variable may be destroyed as soon as the calls on it have
 *       ended, and the helper's call is on another one
 *   W3  a watch's beacon is looked after by who has the claim, and by weir_watch_take; the attempt that ends it, which has the claim too, is
 *       the last to touch it, and closes it
 * Why a watch's descriptor is right at rest (B3 of beacon.h): the condition changes when a version is published, after which its
 * writer attempts, or leaves AGAIN to who is at it, who settles once more; and when one is taken, after which the taker settles.
 * Marks (commit.c) are no newer versions: their numbers are those of their bases, and nobody is woken.
 * Linearization: of a wait, the look that finds the newer version.
 * Progress: as await.h says; a writer makes one attempt for each that waits, each a look at the head and at most a system call.
 * Memory: a wait one allocation of some 450 bytes until it ends, a watch the same and a descriptor.
 * Checked: stress/model/check_watch.c, tests/test_watch.c, stress/scenario_watch.c.
 */
#include <weir/watch.h>

#include "base/error.h"
#include "sync/await.h"
#include "sync/beacon.h"
#include "var/hold.h"

struct weir_var_op {
	struct weiri_await await; /* first */
	/* Constant. */
	weir_var *var;
	uint64_t newer_than;
	weir_var_newer_fn *done;
	void *context;
	/* claim */
	weir_read read;
};

struct weir_watch {
	struct weiri_await await; /* first */
	weir_var *var;
	_Atomic(uint64_t) seen; /* taker only; the number taken last */
	struct weiri_beacon beacon;
};

static const char verb[] = "wait";

/* -- waits -------------------------------------------------------------------------------------------------------------------- */

static enum weir_status attempt_wait(struct weiri_scope *scope, struct weiri_await *await, weir_error *error)
{
	weir_var_op *op = (weir_var_op *)(void *)await;
	struct weiri_version *version = weiri_newest(scope->record, op->var);

	(void)error;
	if (version->number <= op->newer_than)
		return WEIR_WOULD_BLOCK;
	/* Not by a slot: this is the thread of a writer, who has few. */
	op->read = (weir_read){weir_tensor_retain(version->tensor), version->number, NULL};
	return WEIR_OK;
}

static void wait_done(struct weiri_await *await)
{
	weir_var_op *op = (weir_var_op *)(void *)await;

	op->done(op->context, await->status, await->status != WEIR_OK ? &await->error : NULL, &op->read);
}

static weir_var_op *create_wait(weir_var *var, uint64_t newer_than, weir_var_newer_fn *done, void *context,
                                weir_error *error)
{
	weir_var_op *op = (weir_var_op *)(void *)weiri_await_create(
		&var->awaits, sizeof(*op), verb, attempt_wait, done != NULL ? wait_done : NULL, &var->allocator, error);

	if (op == NULL)
		return NULL;
	op->var = var;
	op->newer_than = newer_than;
	op->done = done;
	op->context = context;
	return op;
}

/* There was nothing newer a moment ago. */
static enum weir_status block(weir_var *var, uint64_t newer_than, uint64_t deadline_ns, weir_cancel *cancel,
                              weir_read *read, weir_error *error)
{
	weir_var_op *op = create_wait(var, newer_than, NULL, NULL, error);
	enum weir_status status;

	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	status =
		weiri_await_run(weiri_record_get(), &op->await, deadline_ns, cancel, error); /* it has one: it has looked */
	if (status == WEIR_OK)
		*read = op->read;
	weiri_await_release(&op->await);
	return status;
}

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
	enum weir_status status;

	if (var == NULL || read == NULL)
		return fail_null("wait for a variable", var == NULL ? "it" : "read", error);
	status = weiri_await_check_token(&var->awaits, verb, cancel, error);
	if (status != WEIR_OK)
		return status;
	status = weir_var_read_if_newer(var, newer_than, read);
	if (status == WEIR_OK)
		return status;
	if (status != WEIR_WOULD_BLOCK)
		return fail_recordless(var, error);
	if (deadline_ns == 0)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "variable \"%s\": no version newer than %llu", var->name,
		                  (unsigned long long)newer_than);
	return block(var, newer_than, deadline_ns, cancel, read, error);
}

enum weir_status weir_var_start_wait(weir_var *var, uint64_t newer_than, weir_var_newer_fn *done, void *context,
                                     weir_var_op **out, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	weir_var_op *op;

	if (var == NULL || done == NULL)
		return fail_null("wait for a variable", var == NULL ? "it" : "done", error);
	if (record == NULL)
		return fail_recordless(var, error);
	op = create_wait(var, newer_than, done, context, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	if (out != NULL)
		*out = op;
	weiri_await_begin(record, &op->await, out != NULL);
	return WEIR_OK;
}

void weir_var_op_cancel(weir_var_op *op)
{
	if (op != NULL)
		weiri_await_cancel(&op->await);
}

void weir_var_op_release(weir_var_op *op)
{
	if (op != NULL)
		weiri_await_release(&op->await);
}

/* -- watches ------------------------------------------------------------------------------------------------------------------ */

struct view {
	struct weiri_record *record;
	weir_watch *watch;
};

/* In a section. */
static int has_newer(void *context)
{
	const struct view *view = context;

	/* [relaxed] who changed it settles afterwards, and P1 of beacon.h brings it. */
	return weiri_newest(view->record, view->watch->var)->number > weiri_load_relaxed(&view->watch->seen);
}

/* In a section. */
static void settle(struct weiri_record *record, weir_watch *watch)
{
	struct view view = {record, watch};

	if (weiri_eventfd_is_ours(&watch->beacon.event))
		weiri_beacon_settle(&watch->beacon, has_newer, &view);
}

static enum weir_status attempt_watch(struct weiri_scope *scope, struct weiri_await *await, weir_error *error)
{
	(void)error;
	settle(scope->record, (weir_watch *)(void *)await);
	return WEIR_WOULD_BLOCK;
}

/* Cancelled: W3. */
static void watch_done(struct weiri_await *await)
{
	weiri_beacon_fini(&((weir_watch *)(void *)await)->beacon);
}

static enum weir_status fail_to_watch(weir_watch *watch, const weir_var *var, weir_error *error)
{
	if (watch != NULL) { /* never begun: the completion's reference and ours */
		weiri_await_release(&watch->await);
		weiri_await_release(&watch->await);
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
	watch = (weir_watch *)(void *)weiri_await_create(&var->awaits, sizeof(*watch), "watch", attempt_watch, watch_done,
	                                                 &var->allocator, NULL);
	if (watch == NULL)
		return fail_to_watch(NULL, var, error);
	weiri_beacon_init(&watch->beacon);
	if (watch->beacon.event.fd < 0)
		return fail_to_watch(watch, var, error);
	watch->await.is_quiet = 1;
	watch->var = var;
	weiri_store_relaxed(&watch->seen, newer_than); /* [relaxed] not shared yet */
	weiri_await_begin(record, &watch->await, 1);
	if (watch->await.blind) { /* written by the starter alone */
		weir_watch_destroy(watch);
		return weiri_fail(
			error, WEIR_FAILED_PRECONDITION,
			"variable \"%s\": membarrier(2) was granted and is refused now: a version could be overlooked", var->name);
	}
	*out = watch;
	return WEIR_OK;
}

int weir_watch_fd(const weir_watch *watch)
{
	return watch != NULL ? watch->beacon.event.fd : -1;
}

enum weir_status weir_watch_take(weir_watch *watch, weir_read *read)
{
	struct weiri_record *record = weiri_record_get();
	enum weir_status status;
	uint64_t outer;

	if (watch == NULL || read == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	/* [relaxed] own field. */
	status = weir_var_read_if_newer(watch->var, weiri_load_relaxed(&watch->seen), read);
	if (status == WEIR_OK)
		weiri_store_relaxed(&watch->seen, read->version); /* [relaxed] the settle releases it */
	outer = weiri_section_enter(record);
	settle(record, watch); /* also when there was nothing: who was stopped may have left it readable */
	weiri_section_leave(record, outer);
	return status;
}

void weir_watch_destroy(weir_watch *watch)
{
	if (watch == NULL)
		return;
	weiri_await_cancel(&watch->await);
	weiri_await_release(&watch->await);
}
