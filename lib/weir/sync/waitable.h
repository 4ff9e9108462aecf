/*
 * waitable.h - an object that changes by atomic attempts, and the operations that wait for it:
 * areas, variables.
 *
 * All operations stand on one list in arrival order. Each may wait for something different, so a
 * thread that has changed the object attempts all of them (pending.h).
 *
 * A kind of operation supplies an attempt, which returns weiri_waitable_outcome(), and a tell.
 * WEIRI_WAITABLE_KIND supplies the other members of its struct weiri_pending_kind.
 */
#ifndef WEIRI_SYNC_WAITABLE_H
#define WEIRI_SYNC_WAITABLE_H

#include "base/compiler.h"
#include "sync/pending.h"

struct weiri_waitable {
	struct weiri_waiters waiters;
	_Atomic(size_t) waiting;
	const char *what, *name; /* for messages: staging area "name" */
};

/* The first member of each kind's operation. */
struct weiri_waitable_op {
	weir_pending pending; /* first */
	struct weiri_pending_entry entry;
	struct weiri_waitable *waitable;
	const char *verb; /* for messages and dumps */
};

WEIRI_SHARED void weiri_waitable_init(struct weiri_waitable *waitable, const char *what, const char *name);
/* Returns WEIR_FAILED_PRECONDITION while an operation waits. */
WEIRI_SHARED enum weir_status weiri_waitable_check_idle(const struct weiri_waitable *waitable, weir_error *error);

/*
 * Creates an operation of a kind of `size` bytes, which are zero behind the struct
 * weiri_waitable_op. Returns NULL without memory; *error then names the `verb`.
 */
struct weiri_waitable_op *weiri_waitable_op_create(struct weiri_waitable *waitable,
                                                   const struct weiri_pending_kind *kind, size_t size, const char *verb,
                                                   const weir_allocator *allocator, weir_error *error);

/* Returns WEIR_CANCELLED, with the cause in *error, if the token fired before the call. */
enum weir_status weiri_waitable_check_token(const struct weiri_waitable *waitable, const char *verb,
                                            weir_cancel *cancel, weir_error *error);

/* Members of the kinds. */
enum weir_status weiri_waitable_describe(weir_pending *pending, enum weiri_pending_why why, const weir_error *cause);
WEIRI_SHARED weiri_serve_fn weiri_waitable_serve;

#define WEIRI_WAITABLE_KIND(attempt_, ...) \
	{ \
		.entry_size = sizeof(struct weiri_pending_entry), .attempt = (attempt_), .describe = weiri_waitable_describe, \
		.tell = __VA_ARGS__ \
	}

/* Returns what an attempt with this status returns; WEIR_WOULD_BLOCK means that it must wait. */
static inline enum weiri_pending_outcome weiri_waitable_outcome(weir_pending *pending, enum weir_status status,
                                                                bool *moved)
{
	if (status == WEIR_WOULD_BLOCK)
		return WEIRI_PENDING_WAITS;
	pending->status = status;
	*moved = true;
	return WEIRI_PENDING_COMPLETE;
}

/* Called after a change of the object, outside of sections: lets waiting operations go on. */
static inline void weiri_waitable_pump(struct weiri_record *record, struct weiri_waitable *waitable)
{
	if (WEIRI_UNLIKELY(weiri_waiters_posted(&waitable->waiters)))
		weiri_pending_pump(record, waitable, weiri_waitable_serve);
}

#endif
