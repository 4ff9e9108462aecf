/*
 * stall.h - who keeps replaced versions in memory: handles that are held for long, reads that do not end.
 *
 * Use it to find the thread that has forgotten a handle, or was stopped in the middle of a call, when writers come to the budget
 * (weir/reclaim.h) or memory grows: ask once with weir_stalls_look(), or be told by a hook. Not a way to end a stall: a handle
 * is its holder's.
 *
 * A handle is a stall from the moment at which the version that it is on was replaced, not from the read: a handle on what is
 * still the newest keeps nothing. Reads look at no clock, so ages come from collections: an age is never too large; it is less
 * than half of the truth only for want of collections, as when nobody wrote for long after the version was replaced. Handles
 * that hold their tensor by a reference (statistics: slot_misses) keep no version and are not found.
 *
 * | call                 | threads | progress             | blocks on | allocates                       | signal-safe |
 * |----------------------|---------|----------------------|-----------|---------------------------------|-------------|
 * | weir_stalls_look     | any     | lock-free + callback | callback  | at a thread's first use of Weir | no          |
 * | weir_stalls_set_hook | any     | wait-free            | nothing   | no                              | yes         |
 */
#ifndef WEIR_STALL_H
#define WEIR_STALL_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

enum weir_stall_kind {
	WEIR_STALL_HANDLE = 1, /* a handle on a version that was replaced */
	WEIR_STALL_SECTION =
		2 /* a call of Weir's in which a thread was stopped, or that is long: it keeps what lived when it began */
};

struct weir_stall {
	enum weir_stall_kind kind;
	uint32_t thread; /* the kernel's number of the thread that took the handle, or is in the call; 0: it has ended */
	uint64_t age_ns; /* at least: since the version was replaced, since the call began */
	/* Of a handle. */
	/* Its name, cut to 63 bytes; "" when the variable is gone, and of a section. Good during the callback. */
	const char *variable;
	uint64_t version; /* its number */
	uint64_t bytes;   /* what the version counts for in the budget */
};

/* Most that one look shows; the ones found first. */
enum { WEIR_STALLS_SHOWN = 64 };

typedef void weir_stall_fn(void *context, const struct weir_stall *stall);

/*
 * Collects on behalf of all threads, then calls visit() for each stall that is at least limit_ns old, WEIR_STALLS_SHOWN at
 * most, on this thread, outside of sections and collections: it may call Weir. *found (may be NULL): how many there are. What
 * other threads are collecting just then is missed. When a thread has taken over the record of one that ended with a handle,
 * that one is named. WEIR_INVALID_ARGUMENT (visit NULL), WEIR_RESOURCE_EXHAUSTED (no memory for this thread's record),
 * WEIR_FAILED_PRECONDITION (called in a collection, by the release of a tensor's memory or an allocator). @since 0.1
 */
WEIR_API enum weir_status weir_stalls_look(uint64_t limit_ns, weir_stall_fn *visit, void *context, size_t *found);

/*
 * Called on a thread that has written, or waits for memory, outside of sections and collections. It should be short: that
 * thread waits.
 */
typedef void weir_stall_hook(const struct weir_stall *stall);

/*
 * From now on, after a collection, and at most once in limit_ns for the process: a look, and the hook for what it shows. So a
 * stall is told again and again while it lasts, and while somebody writes. A hook may write, too: on one thread it is not
 * called within itself. NULL, or a limit of 0, ends it; a call that has begun may go on for a while. @since 0.1
 */
WEIR_API void weir_stalls_set_hook(uint64_t limit_ns, weir_stall_hook *hook);

WEIR_END_DECLS

#endif
