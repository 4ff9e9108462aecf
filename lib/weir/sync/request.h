/*
 * request.h - a request is what a call asks of a waitable object. The call attempts it at once. If
 * it must wait, an operation with a copy of it does.
 *
 * A request is a plain struct of its kind. An attempt reads the request and writes its result into
 * it. So a call that need not wait needs no memory and is seen by no other thread.
 */
#ifndef WEIRI_SYNC_REQUEST_H
#define WEIRI_SYNC_REQUEST_H

#include "base/compiler.h"
#include "sync/waitable.h"

struct weiri_request_kind {
	size_t size; /* of the struct */
	/*
	 * Runs in the scope. Returns WEIR_WOULD_BLOCK if the request must wait. Any other status is the
	 * outcome, with a message in *error (may be NULL) if it is not WEIR_OK.
	 */
	enum weir_status (*attempt)(struct weiri_scope *scope, void *request, weir_error *error);
	/* Returns WEIR_DEADLINE_EXCEEDED; *error says what was missing. */
	enum weir_status (*fail_at_once)(const void *request, weir_error *error);
	/* Returns what the request does, for messages and dumps. */
	const char *(*verb)(const void *request);
	/* Returns true if its success lets no other request go on. NULL: it always may. */
	bool (*changes_nothing)(const void *request);
	/* Calls the callback of a request that was started. error is NULL if the status is WEIR_OK. */
	void (*answer)(void *request, enum weir_status status, const weir_error *error);
};

/*
 * Runs a request to its end: at once, or until the deadline or the token (may be NULL) ends it. The
 * attempts' results replace *request. Also returns WEIR_RESOURCE_EXHAUSTED if there is no memory to
 * wait.
 */
WEIRI_SHARED enum weir_status weiri_request_run(struct weiri_record *record, struct weiri_waitable *waitable,
                                                const struct weiri_request_kind *kind, void *request,
                                                uint64_t deadline_ns, weir_cancel *cancel,
                                                const weir_allocator *allocator, weir_error *error);
/*
 * Starts a copy of a request, whose callback runs exactly once, unless the call fails
 * (WEIR_RESOURCE_EXHAUSTED). The caller must release *handle; `handle` may be NULL.
 */
WEIRI_SHARED enum weir_status weiri_request_start(struct weiri_record *record, struct weiri_waitable *waitable,
                                                  const struct weiri_request_kind *kind, const void *request,
                                                  const weir_allocator *allocator, weir_pending **handle,
                                                  weir_error *error);

#endif
