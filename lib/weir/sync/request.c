/*
 * request.c - see request.h.
 */
#include "sync/request.h"

#include <stdalign.h>
#include <string.h>

#include "reclaim/scope.h"

struct request_op {
	struct weiri_waitable_op op; /* first */
	const struct weiri_request_kind *kind;
	_Alignas(max_align_t) unsigned char request[];
};

static struct request_op *op_of(weir_pending *pending)
{
	return (struct request_op *)(void *)pending;
}

static enum weiri_pending_outcome attempt(struct weiri_scope *scope, weir_pending *pending, bool *moved)
{
	struct request_op *op = op_of(pending);

	return weiri_waitable_outcome(pending, op->kind->attempt(scope, op->request, &pending->error), moved);
}

static void tell(weir_pending *pending)
{
	struct request_op *op = op_of(pending);

	op->kind->answer(op->request, pending->status, pending->status != WEIR_OK ? &pending->error : NULL);
	weiri_pending_told(pending);
}

static const struct weiri_pending_kind pending_kind = WEIRI_WAITABLE_KIND(attempt, tell);

static struct request_op *create(struct weiri_waitable *waitable, const struct weiri_request_kind *kind,
                                 const void *request, const weir_allocator *allocator, weir_error *error)
{
	struct request_op *op = (struct request_op *)(void *)weiri_waitable_op_create(
		waitable, &pending_kind, sizeof(*op) + kind->size, kind->verb(request), allocator, error);

	if (op == NULL)
		return NULL;
	op->kind = kind;
	memcpy(op->request, request, kind->size);
	return op;
}

/* Attempts without an operation, so no other thread can claim anything: O7. */
static enum weir_status run_at_once(struct weiri_record *record, struct weiri_waitable *waitable,
                                    const struct weiri_request_kind *kind, void *request, weir_error *error)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	enum weir_status status = kind->attempt(&scope, request, error);

	weiri_scope_leave(&scope);
	if (status == WEIR_OK && (kind->changes_nothing == NULL || !kind->changes_nothing(request)))
		weiri_waitable_pump(record, waitable);
	return status;
}

enum weir_status weiri_request_run(struct weiri_record *record, struct weiri_waitable *waitable,
                                   const struct weiri_request_kind *kind, void *request, uint64_t deadline_ns,
                                   weir_cancel *cancel, const weir_allocator *allocator, weir_error *error)
{
	enum weir_status status = weiri_waitable_check_token(waitable, kind->verb(request), cancel, error);
	struct request_op *op;

	if (status == WEIR_OK)
		status = run_at_once(record, waitable, kind, request, error);
	if (status != WEIR_WOULD_BLOCK)
		return status;
	if (deadline_ns == 0)
		return kind->fail_at_once(request, error);
	op = create(waitable, kind, request, allocator, error);
	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	status = weiri_pending_run(record, &op->op.pending, deadline_ns, cancel, error);
	memcpy(request, op->request, kind->size);
	weiri_pending_release(&op->op.pending);
	return status;
}

enum weir_status weiri_request_start(struct weiri_record *record, struct weiri_waitable *waitable,
                                     const struct weiri_request_kind *kind, const void *request,
                                     const weir_allocator *allocator, weir_pending **handle, weir_error *error)
{
	struct request_op *op = create(waitable, kind, request, allocator, error);

	if (op == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	weiri_pending_begin(record, &op->op.pending, handle);
	return WEIR_OK;
}
