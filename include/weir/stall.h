/*
 * stall.h - what keeps replaced versions in memory: handles held for long, read sections that are
 * open, and stalled reads.
 *
 * Use it when writers reach the budget (weir/reclaim.h) or memory grows, to find the thread that
 * forgot a handle, has a read section open, or is stalled inside a call. Ask once with
 * weir_stalls_visit(), or register a hook. It cannot end a stall: a handle belongs to its holder.
 *
 *     static struct my_log mine;
 *     static const weir_stall_hook hook = {.fn = write_line, .context = &mine};
 *
 *     weir_stalls_set_hook(UINT64_C(1000000000), &hook);
 *
 * A handle becomes a stall when its version is replaced, not when it is taken: a handle on the
 * newest version keeps nothing in memory. Reads do not look at a clock, so ages come from
 * collections. An age is never too large. It is less than half the true age only if collections
 * were rare, for example because there were no writes for long after the version was replaced.
 * Handles that hold their tensor by a reference (slot_misses in the statistics) keep no version,
 * and are not found.
 *
 * | call                 | threads | progress             | blocks on | allocates  | signal-safe |
 * |----------------------|---------|----------------------|-----------|------------|-------------|
 * | weir_stalls_visit    | any     | lock-free + callback | callback  | record (1) | no          |
 * | weir_stalls_set_hook | any     | wait-free            | nothing   | no         | yes         |
 *
 * (1) A thread's first call of Weir allocates its record.
 */
#ifndef WEIR_STALL_H
#define WEIR_STALL_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

enum weir_stall_kind {
	WEIR_STALL_HANDLE = 1, /* a handle on a version that was replaced */
	/*
	 * A call that is long, or whose thread is stalled, or a read section that is open
	 * (weir/read_section.h). It keeps what was alive at its start.
	 */
	WEIR_STALL_SECTION = 2,
	/*
	 * Sections of a flavour of liburcu (weir/urcu.h), which Weir does not see: no grace period has
	 * ended, or none was begun. The age is that of what they keep; `thread` is 0.
	 */
	WEIR_STALL_HOST = 3
};

struct weir_stall {
	enum weir_stall_kind kind;
	/* the system's id of the thread that took the handle or is in the section; 0: it has ended */
	uint32_t thread;
	uint64_t age_ns; /* at least; since the version was replaced, or since the section began */
	/* The fields below describe a handle. */
	/*
	 * The name of the variable, cut to 63 bytes; "" if the variable is gone, and for a section.
	 * Valid during the callback.
	 */
	const char *variable;
	uint64_t version; /* its number */
	uint64_t bytes;   /* what the version counts for in the budget */
	/*
	 * Of a section: how many read sections the thread has open. If none, the section belongs to a
	 * call.
	 */
	uint32_t read_sections;
};

/* The most stalls that one call of weir_stalls_visit() shows: the first ones found. */
enum weir_stall_limits { WEIR_STALLS_SHOWN = 64 };

/* Of weir_stalls_visit() it runs on the calling thread, of a hook on any. */
typedef void weir_stall_fn(void *context, const struct weir_stall *stall);

/*
 * Collects on behalf of all threads, then calls visit() for each stall that is at least limit_ns
 * old, at most WEIR_STALLS_SHOWN times. visit() runs on this thread, outside of sections and
 * collections, so it may call Weir. *found (may be NULL) is the number of stalls. Objects that
 * another thread is collecting at that moment are missed. If a thread adopted the record of an
 * ended thread that left a handle, the adopting thread is named.
 *
 * Errors: WEIR_INVALID_ARGUMENT if visit is NULL. WEIR_RESOURCE_EXHAUSTED if there is no memory for
 * this thread's record. WEIR_FAILED_PRECONDITION if called during a collection, by the release of a
 * tensor's memory or by an allocator.
 * @since 0.1
 */
WEIR_API enum weir_status weir_stalls_visit(uint64_t limit_ns, weir_stall_fn *visit, void *context,
                                            size_t *found);

/*
 * A function and what it gets, called on a thread that has written or waits for memory, outside of
 * sections and collections. It should be short, because it delays that thread. One pointer installs
 * both, so no report sees one without the other.
 */
typedef struct weir_stall_hook {
	weir_stall_fn *fn;
	void *context;
} weir_stall_hook;

/*
 * From now on, after a collection and at most once per limit_ns in the process, looks for stalls
 * and calls the hook for each. So a stall is reported repeatedly while it lasts and there are
 * writes. A hook may write; on one thread it is not called within itself. NULL, a limit of 0 or an fn
 * of NULL removes the hook. *hook is borrowed. It and its context must stay valid until another hook is
 * set and the calls of Weir that were under way then have returned: such a call may still report to
 * the hook before. A hook that lives as long as the process is always right.
 * @since 0.1
 */
WEIR_API void weir_stalls_set_hook(uint64_t limit_ns, const weir_stall_hook *hook);

WEIR_END_DECLS

#endif
