/*
 * request.h - what a call asks of a waitable object: attempted at once, and if it must wait, by an
 * operation that holds a copy of it.
 *
 * A request is a plain struct of its kind. An attempt reads it, and writes its result into it. So a
 * call that need not wait needs no memory and is seen by no other thread.
 */
#ifndef WEIRI_SYNC_REQUEST_H
#define WEIRI_SYNC_REQUEST_H

#include "base/compiler.h"
#include "sync/waitable.h"

struct weiri_request_kind {
	size_t size; /* of the struct */
	/*
	 * In the scope. WEIR_WOULD_BLOCK: it must wait. Anything else is the outcome, with a message in
	 * *error (may be NULL) if it is not WEIR_OK.
	 */
	enum weir_status (*attempt)(struct weiri_scope *scope, void *request, weir_error *error);
	/* WEIR_DEADLINE_EXCEEDED, with what was missing in *error. */
	enum weir_status (*fail_at_once)(const void *request, weir_error *error);
	/* What it does, for messages and dumps. */
	const char *(*verb)(const void *request);
	/* 1: its success lets no other request go on. NULL: it may. */
	int (*changes_nothing)(const void *request);
	/* Of a request that was started: calls its callback. error: NULL if the status is WEIR_OK. */
	void (*answer)(void *request, enum weir_status status, const weir_error *error);
};

/*
 * Runs a request to its end: at once, or until deadline or token (may be NULL) end it. `request` is
 * replaced by what the attempts have made of it. WEIR_RESOURCE_EXHAUSTED also: no memory to wait.
 */
WEIRI_SHARED enum weir_status weiri_request_run(struct weiri_record *record, struct weiri_waitable *waitable,
                                                const struct weiri_request_kind *kind, void *request,
                                                uint64_t deadline_ns, weir_cancel *cancel,
                                                const weir_allocator *allocator, weir_error *error);
/*
 * Starts a request; a copy of it is told exactly once, unless this fails (WEIR_RESOURCE_EXHAUSTED).
 * *handle (may be NULL) is the caller's, and must be released.
 */
WEIRI_SHARED enum weir_status weiri_request_start(struct weiri_record *record, struct weiri_waitable *waitable,
                                                  const struct weiri_request_kind *kind, const void *request,
                                                  const weir_allocator *allocator, weir_pending **handle,
                                                  weir_error *error);

#endif
