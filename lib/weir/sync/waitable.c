/*
 * waitable.c - see waitable.h.
 */
#include "sync/waitable.h"

#include <stdalign.h>

#include "base/error.h"
#include "base/memory.h"
#include "sync/cancel.h"

void weiri_waitable_init(struct weiri_waitable *waitable, const char *what, const char *name)
{
	weiri_waiters_init(&waitable->waiters);
	weiri_store_relaxed(&waitable->waiting, (size_t)0); /* [relaxed] not shared yet */
	waitable->what = what;
	waitable->name = name;
}

enum weir_status weiri_waitable_check_idle(const struct weiri_waitable *waitable, weir_error *error)
{
	/* [relaxed] the caller has ordered all calls before this one. */
	size_t waiting = weiri_load_relaxed(&waitable->waiting);

	if (waiting == 0)
		return WEIR_OK;
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s \"%s\": %zu waiting operation%s", waitable->what,
	                  waitable->name, waiting, WEIRI_S(waiting));
}

struct weiri_waitable_op *weiri_waitable_op_create(struct weiri_waitable *waitable,
                                                   const struct weiri_pending_kind *kind, size_t size, const char *verb,
                                                   const weir_allocator *allocator, weir_error *error)
{
	struct weiri_waitable_op *op = weiri_allocate_zeroed(allocator, size, alignof(max_align_t));

	if (op == NULL) {
		(void)weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory to %s", waitable->what, waitable->name,
		                 verb);
		return NULL;
	}
	op->waitable = waitable;
	op->verb = verb;
	weiri_pending_init(&op->pending, kind, &op->entry, 1, size, allocator);
	weiri_pending_entry_init(
		&op->pending, &op->entry,
		(struct weiri_wait_place){&waitable->waiters, &waitable->waiting, waitable, weiri_waitable_serve});
	return op;
}

enum weir_status weiri_waitable_describe(weir_pending *pending, enum weiri_pending_why why, const weir_error *cause)
{
	const struct weiri_waitable_op *op = WEIRI_CONTAINER_OF(pending, struct weiri_waitable_op, pending);
	const char *what = op->waitable->what, *name = op->waitable->name;

	switch (why) {
	case WEIRI_PENDING_FOR_DEADLINE:
		return weiri_fail(&pending->error, WEIR_DEADLINE_EXCEEDED, "%s \"%s\": the deadline passed in %s", what, name,
		                  op->verb);
	case WEIRI_PENDING_FOR_MEMORY:
		return weiri_fail(&pending->error, WEIR_RESOURCE_EXHAUSTED, "%s \"%s\": no memory to watch the cancel token",
		                  what, name);
	default:
		return weiri_fail(&pending->error, WEIR_CANCELLED, "%s \"%s\": %s was cancelled: %.120s", what, name, op->verb,
		                  cause->message);
	}
}

void weiri_waitable_serve(struct weiri_record *record, void *object, struct weiri_served *served)
{
	struct weiri_waitable *waitable = object;
	struct weiri_visit visit;
	bool moved = true;

	weiri_visit_begin(&visit, waitable, weiri_waitable_serve);
	/* What one operation did may let an operation go on that was attempted before. */
	while (moved && !weiri_visit_is_over(&visit) && weiri_waiters_look(&waitable->waiters)) {
		struct weiri_scope scope = weiri_scope_enter(record);

		moved = weiri_pending_serve(&scope, &waitable->waiters.list, served);
		weiri_scope_leave(&scope);
		weiri_served_tell(served);
	}
	weiri_visit_end(&visit);
}

enum weir_status weiri_waitable_check_token(const struct weiri_waitable *waitable, const char *verb,
                                            weir_cancel *cancel, weir_error *error)
{
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	if (WEIRI_LIKELY(!weir_cancel_fired(cancel)))
		return WEIR_OK;
	weiri_cancel_help(cancel);
	(void)weir_cancel_cause(cancel, &cause);
	return weiri_fail(error, WEIR_CANCELLED, "%s \"%s\": %s was cancelled: %.120s", waitable->what, waitable->name,
	                  verb, cause.message);
}
