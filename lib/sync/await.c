/*
 * await.c - see await.h.
 */
#include "sync/await.h"

#include <stdalign.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"
#include "sync/cancel.h"
#include "sync/park.h"

enum { CLAIMED = 1, AGAIN = 2, CANCEL = 4, DONE = 8, WHY = 3 * 16 };
enum why { FOR_CALLER = 0 * 16, FOR_DEADLINE = 1 * 16, FOR_TOKEN = 2 * 16, FOR_MEMORY = 3 * 16 };
/* Of `finished`. */
enum { WAITS, FINISHED, ALARMED /* its owner is to cancel it */ };

void weiri_awaits_init(struct weiri_awaits *awaits, const char *what, const char *name)
{
	/* [relaxed] not shared yet. */
	weiri_waiters_init(&awaits->waiters);
	weiri_store_relaxed(&awaits->waiting, (size_t)0);
	awaits->what = what;
	awaits->name = name;
}

enum weir_status weiri_awaits_check_idle(const struct weiri_awaits *awaits, weir_error *error)
{
	size_t waiting =
		weiri_load_relaxed(&awaits->waiting); /* [relaxed] the caller has ordered all calls before this one */

	if (waiting == 0)
		return WEIR_OK;
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s \"%s\": %zu operations wait", awaits->what, awaits->name,
	                  waiting);
}

int weiri_await_over(const struct weiri_await *await)
{
	return (weiri_load_relaxed(&await->state) & DONE) != 0; /* [relaxed] a look */
}

static struct weiri_await *await_of(struct weiri_list_node *node)
{
	return WEIRI_CONTAINER_OF(node, struct weiri_await, node);
}

static void list_let_go(struct weiri_retired *retired)
{
	weiri_await_release(await_of(WEIRI_CONTAINER_OF(retired, struct weiri_list_node, retired)));
}

struct weiri_await *weiri_await_create(struct weiri_awaits *awaits, size_t size, const char *verb,
                                       weiri_await_attempt *attempt, void (*done)(struct weiri_await *await),
                                       const weir_allocator *allocator, weir_error *error)
{
	struct weiri_await *await = weiri_allocate_zeroed(allocator, size, alignof(max_align_t));

	if (await == NULL) {
		(void)weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory to %s", awaits->what, awaits->name,
		                 verb);
		return NULL;
	}
	weiri_list_node_init(&await->node, size, list_let_go);
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&await->state, (uint32_t)CLAIMED);
	weiri_store_relaxed(&await->references, 2u);
	weiri_store_relaxed(&await->finished, (uint32_t)WAITS);
	await->awaits = awaits;
	await->attempt = attempt;
	await->done = done;
	await->verb = verb;
	await->size = size;
	await->allocator = *allocator;
	return await;
}

static void retain(struct weiri_await *await)
{
	(void)weiri_fetch_add_relaxed(&await->references, 1u); /* [relaxed] the caller has one */
}

void weiri_await_release(struct weiri_await *await)
{
	weir_allocator allocator = await->allocator;
	size_t size = await->size;

	/* [acq_rel] the last one sees all that the others did. */
	if (weiri_fetch_sub_acq_rel(&await->references, 1u) == 1)
		weiri_release(&allocator, await, size, alignof(max_align_t));
}

/* -- claims ------------------------------------------------------------------------------------------------------------------- */

static int claim(struct weiri_await *await)
{
	/* [relaxed] the CAS counts. */
	uint32_t state = weiri_load_relaxed(&await->state);

	for (;;) {
		if ((state & DONE) != 0)
			return 0;
		if ((state & CLAIMED) == 0) {
			/* [relaxed] drive(), with which every claim begins, acquires. */
			if (weiri_cas_relaxed(&await->state, &state, state | CLAIMED))
				return 1;
		} else if (weiri_cas_release(&await->state, &state, state | AGAIN)) {
			/* [P1 release] also when AGAIN was there, whose claimer may have looked before our change. */
			return 0;
		}
	}
}

/* Leaves CANCEL to whoever holds the claim. 1: nobody does, and the caller, who wants it, has it now. */
static int set_cancel(struct weiri_await *await, enum why why, int want_claim)
{
	/* [relaxed] the CAS counts. */
	uint32_t state = weiri_load_relaxed(&await->state);
	uint32_t cancelled = (uint32_t)CANCEL | (uint32_t)why;

	while ((state & DONE) == 0) {
		uint32_t next = (state & CANCEL) == 0 ? state | cancelled : state;

		/* [relaxed] the state says all; the token has its cause itself. */
		if (weiri_cas_relaxed(&await->state, &state, want_claim ? next | CLAIMED : next))
			return want_claim && (state & CLAIMED) == 0;
	}
	return 0;
}

static enum weir_status describe_cancel(struct weiri_await *await, uint32_t why)
{
	const char *what = await->awaits->what, *name = await->awaits->name;
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	switch (why) {
	case FOR_DEADLINE:
		return weiri_fail(&await->error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": the deadline passed in %s", what, name,
		                  await->verb);
	case FOR_MEMORY:
		return weiri_fail(&await->error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory to watch the cancel token",
		                  what, name);
	case FOR_TOKEN: (void)weir_cancel_cause(await->token, &cause); break;
	default: break;
	}
	return weiri_fail(&await->error, WEIR_CANCELLED, "%s \"%s\": %s was cancelled: %.120s", what, name, await->verb,
	                  cause.message);
}

/* With the claim. 1: complete, and the claim is kept. 0: it waits. */
static int drive(struct weiri_scope *scope, struct weiri_await *await)
{
	for (;;) {
		/* [P1 acquire] */
		uint32_t state = weiri_fetch_and_acquire(&await->state, ~(uint32_t)AGAIN);

		if ((state & CANCEL) != 0) {
			await->status = describe_cancel(await, state & WHY);
			return 1;
		}
		await->status = await->attempt(scope, await, &await->error);
		if (await->status != WEIR_WOULD_BLOCK)
			return 1;
		state = CLAIMED;
		/* [P1 release] A failure: AGAIN or CANCEL came. */
		if (weiri_cas_release(&await->state, &state, 0u))
			return 0;
	}
}

static void finish(struct weiri_scope *scope, struct weiri_await *await)
{
	if (!await->listed)
		return;
	(void)weiri_list_remove(scope, &await->awaits->waiters.list, &await->node);
	(void)weiri_fetch_sub_relaxed(&await->awaits->waiting, (size_t)1); /* [relaxed] a count */
}

static void wake_owner(struct weiri_await *await)
{
	/* [P2 release] */
	weiri_store_release(&await->finished, (uint32_t)FINISHED);
	weiri_futex_wake(&await->finished, 1);
	weiri_await_release(await);
}

static void tell(struct weiri_delivery *delivery)
{
	struct weiri_await *await = WEIRI_CONTAINER_OF(delivery, struct weiri_await, delivery);

	if (await->untold)
		(void)weiri_fetch_sub_relaxed(&await->awaits->waiting, (size_t)1); /* [relaxed] a count */
	await->done(await);
	weiri_await_release(await);
}

/* The operation, and the object, may be gone afterwards. */
static void complete(struct weiri_await *await)
{
	/* [relaxed] whoever sees DONE touches nothing more. */
	weiri_store_relaxed(&await->state, (uint32_t)DONE);
	if (await->done == NULL) {
		wake_owner(await);
	} else if (await->is_quiet) {
		await->done(await);
		weiri_await_release(await);
	} else if (!weiri_deliver(&await->delivery, tell)) {
		await->untold = 1;
		(void)weiri_fetch_add_relaxed(&await->awaits->waiting, (size_t)1); /* [relaxed] a count */
	}
}

/* -- serving ------------------------------------------------------------------------------------------------------------------ */

/* 1 when an operation was completed; *asynchronous: one that is still to be told, outside of the section. */
static int serve(struct weiri_scope *scope, struct weiri_awaits *awaits, struct weiri_await **asynchronous)
{
	struct weiri_list_node *node = NULL;
	int moved = 0;

	while ((node = weiri_list_next(scope, &awaits->waiters.list, node)) != NULL) {
		struct weiri_await *await = await_of(node);

		if (!claim(await) || !drive(scope, await))
			continue;
		finish(scope, await);
		moved = 1;
		if (await->done != NULL) {
			*asynchronous = await;
			return 1;
		}
		complete(await); /* the list's reference is left, as long as we are in the section */
	}
	return moved;
}

void weiri_await_serve(struct weiri_record *record, struct weiri_awaits *awaits)
{
	struct weiri_visit visit;
	int moved = 1;

	weiri_visit_begin(&visit, awaits);
	/* What one did may let another go on that was tried before it. */
	while (moved && !weiri_visit_is_over(&visit) && weiri_waiters_look(&awaits->waiters)) {
		struct weiri_scope scope = weiri_scope_enter(record);
		struct weiri_await *asynchronous = NULL;

		moved = serve(&scope, awaits, &asynchronous);
		weiri_scope_leave(&scope);
		if (asynchronous != NULL)
			complete(asynchronous);
	}
	weiri_visit_end(&visit);
}

/* It may complete inside. */
static void start(struct weiri_record *record, struct weiri_await *await)
{
	struct weiri_awaits *awaits = await->awaits;
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_visit visit;
	int over;

	await->status = await->attempt(&scope, await, &await->error);
	over = await->status != WEIR_WOULD_BLOCK;
	if (!over) {
		retain(await); /* the list's */
		await->listed = 1;
		await->began_ns = weir_now_ns();
		await->thread = weiri_thread_id();
		(void)weiri_fetch_add_relaxed(&awaits->waiting, (size_t)1); /* [relaxed] a count */
		weiri_list_append(&scope, &awaits->waiters.list, &await->node);
		await->blind = !weiri_waiters_post(&awaits->waiters);
		over = drive(&scope, await);
	}
	if (over)
		finish(&scope, await);
	weiri_scope_leave(&scope);
	weiri_visit_begin(&visit, awaits);
	if (over)
		complete(await);
	if (!weiri_visit_is_over(&visit))
		weiri_await_pump(record, awaits);
	weiri_visit_end(&visit);
}

void weiri_await_begin(struct weiri_record *record, struct weiri_await *await, int keeps)
{
	if (!keeps)
		weiri_await_release(await); /* the completion's reference is left */
	start(record, await);
}

/* -- ending ------------------------------------------------------------------------------------------------------------------- */

/* How long the owner of a blind operation, which nobody may have seen, sleeps at a time. */
static const uint64_t blind_sleep_ns = 1000000;

static void cancel_for(struct weiri_await *await, enum why why)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_scope scope;
	uint32_t waits = WAITS;

	if (record == NULL && await->done == NULL) { /* the owner has one */
		/* [relaxed] nothing but the alarm itself. */
		if (weiri_cas_relaxed(&await->finished, &waits, (uint32_t)ALARMED))
			weiri_futex_wake(&await->finished, 1);
		return;
	}
	if (!set_cancel(await, why, record != NULL))
		return;
	scope = weiri_scope_enter(record);
	(void)drive(&scope, await); /* sees CANCEL */
	finish(&scope, await);
	weiri_scope_leave(&scope);
	complete(await);
}

void weiri_await_cancel(struct weiri_await *await)
{
	cancel_for(await, FOR_CALLER);
}

static void on_token(void *context)
{
	struct weiri_await *await = context;

	cancel_for(await, FOR_TOKEN);
	weiri_await_release(await);
}

static WEIRI_COLD void look_now_and_then(struct weiri_record *record, struct weiri_await *await, uint64_t deadline_ns)
{
	uint64_t until;

	while ((until = weir_deadline_in(blind_sleep_ns)) < deadline_ns &&
	       weiri_park_wait(&await->finished, WAITS, until) == WEIRI_PARK_TIMEOUT) {
		weiri_await_serve(record, await->awaits);
		weiri_deliver_due();
	}
}

static void wait(struct weiri_record *record, struct weiri_await *await, uint64_t deadline_ns, weir_cancel *cancel)
{
	weir_cancel_hook *hook = NULL;
	uint32_t seen;

	if (cancel != NULL) {
		retain(await); /* the hook's */
		if (weiri_cancel_on_wait(cancel, on_token, await, &hook) != WEIR_OK) {
			cancel_for(await, FOR_MEMORY); /* it could not be cancelled: it ends at once instead */
			weiri_await_release(await);
		}
	}
	weiri_deliver_due(); /* a completion that waits here may wait for what one behind it does */
	if (WEIRI_UNLIKELY(await->blind))
		look_now_and_then(record, await, deadline_ns);
	if (weiri_park_wait(&await->finished, WAITS, deadline_ns) == WEIRI_PARK_TIMEOUT)
		cancel_for(await, FOR_DEADLINE);
	/* [P2 acquire] */
	while ((seen = weiri_load_acquire(&await->finished)) != FINISHED) {
		if (seen == ALARMED)
			cancel_for(await, FOR_TOKEN);
		(void)weiri_park_wait(&await->finished, seen, WEIR_NO_DEADLINE);
	}
	if (hook != NULL && weir_cancel_off(hook))
		weiri_await_release(await);
}

enum weir_status weiri_await_run(struct weiri_record *record, struct weiri_await *await, uint64_t deadline_ns,
                                 weir_cancel *cancel, weir_error *error)
{
	await->token = cancel;
	start(record, await);
	wait(record, await, deadline_ns, cancel);
	if (await->status != WEIR_OK)
		(void)weiri_fail(error, await->status, "%s", await->error.message);
	return await->status;
}

enum weir_status weiri_await_check_token(const struct weiri_awaits *awaits, const char *verb, weir_cancel *cancel,
                                         weir_error *error)
{
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	if (WEIRI_LIKELY(!weir_cancel_fired(cancel)))
		return WEIR_OK;
	weiri_cancel_help(cancel);
	(void)weir_cancel_cause(cancel, &cause);
	return weiri_fail(error, WEIR_CANCELLED, "%s \"%s\": %s was cancelled: %.120s", awaits->what, awaits->name, verb,
	                  cause.message);
}
