/*
 * doorbell.c - see doorbell.h.
 */
#include "shm/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/futex.h"
#include "base/uncancelled.h"
#include "reclaim/interrupt.h"
#include "sync/cancel.h"

#if defined(WEIRI_UNDER_MODEL)
uint64_t weiri_bell_look_ns = WEIR_NO_DEADLINE;
#endif

/* As in eventfd.c, by syscall(2), which is not a cancellation point. */
static void write_eventfd(int file)
{
	const uint64_t one = 1;
	int saved_errno = errno;
	long written = syscall(SYS_write, file, &one, sizeof(one));

	(void)written; /* fails if the count is at its limit: then the poller sees it readable */
	errno = saved_errno;
}

/* Returns true if this call has cleared the bit. */
static bool clear(struct weiri_bell *bell, uint32_t bit)
{
	WEIRI_SHM_STEP();
	/*
	 * [seq_cst B1] in the order of the object: a bit that is set later belongs to a later look. A thread
	 * that asks later reads this, and sees the change, also one that is only a release.
	 */
	return (weiri_fetch_and_seq_cst(bell->word, ~bit) & bit) != 0;
}

void weiri_bell_ring_slowly(struct weiri_bell *bell)
{
	/* [relaxed] a number of the caller's, set before. */
	int eventfd = weiri_load_relaxed(&bell->eventfd);

	if (clear(bell, WEIRI_BELL_SLEEPERS)) {
		WEIRI_SHM_STEP();
		/* [D1 relaxed] after the clear, by the order of one word; Linux orders it before the wake-up. */
		(void)weiri_fetch_add_relaxed(bell->word, (uint32_t)WEIRI_BELL_RING);
		WEIRI_SHM_STEP();
		weiri_futex_wake_shared(bell->word, INT_MAX);
	}
	/* A process without an eventfd leaves the poller's bit to one that has it. */
	if (eventfd >= 0 && clear(bell, WEIRI_BELL_POLLER))
		write_eventfd(eventfd);
}

enum weir_status weiri_bell_set_eventfd(struct weiri_bell *bell, int eventfd)
{
	int saved_errno = errno, mode;
	struct stat about;
	bool fit;

	/* A pipe or socket whose reader has gone would raise SIGPIPE. */
	mode = weiri_file_mode(eventfd);
	fit = eventfd == -1 || (mode >= 0 && (mode & O_NONBLOCK) != 0 && weiri_fstat(eventfd, &about) == 0 &&
	                        !S_ISFIFO(about.st_mode) && !S_ISSOCK(about.st_mode));
	errno = saved_errno;
	if (!fit)
		return WEIR_INVALID_ARGUMENT;
	weiri_store_relaxed(&bell->eventfd, eventfd); /* [relaxed] a number */
	return WEIR_OK;
}

/* A hook: the token fired, so the sleepers look at it. The last access to the bell is the count. */
static void wake_for_token(void *context)
{
	struct weiri_bell *bell = context;

	if (bell->word == NULL)
		return; /* the child of a fork, where the handle is zero: the sleeper is the parent's */
	/* [release] the sleeper reads the word in its next round. */
	(void)weiri_fetch_add_release(bell->word, (uint32_t)WEIRI_BELL_RING);
	weiri_futex_wake_shared(bell->word, INT_MAX);
	(void)weiri_fetch_sub_release(&bell->tokens, 1u); /* [release] pairs with the load in destroy */
}

/*
 * The first attempt failed: pauses if that has paid. [relaxed] everywhere: hints of several threads,
 * of which an update may be lost.
 */
static void slip(struct weiri_bell *bell)
{
	uint32_t waits = weiri_load_relaxed(&bell->waits) + 1;
	bool slips = weiri_load_relaxed(&bell->run) >= WEIRI_BELL_PAYS || waits % WEIRI_BELL_PROBE == 0;

	weiri_store_relaxed(&bell->waits, waits);
	weiri_store_relaxed(&bell->run, 0u);
	for (int i = 0; slips && i < WEIRI_BELL_SLIP; i++)
		weiri_pause();
}

static enum weir_status spin(struct weiri_bell *bell, const struct weiri_bell_wait *wait)
{
	enum weir_status status = wait->attempt(wait->context);

	if (WEIRI_LIKELY(status == WEIR_OK)) {
		weiri_store_relaxed(&bell->run, weiri_load_relaxed(&bell->run) + 1); /* [relaxed] see slip() */
		return status;
	}
	if (WEIRI_BELL_SPINS > 0 && status == WEIR_WOULD_BLOCK && wait->deadline_ns != 0)
		slip(bell);
	for (int i = 0; i < WEIRI_BELL_SPINS && status == WEIR_WOULD_BLOCK && wait->deadline_ns != 0; i++) {
		weiri_pause();
		status = wait->attempt(wait->context);
	}
	return status;
}

/*
 * Asks, looks once more, and sleeps. Returns what the last attempt returned. *interrupted becomes
 * true if the thread's interrupt ended the sleep.
 */
static enum weir_status sleep_once(struct weiri_bell *bell, const struct weiri_bell_wait *wait, bool *interrupted)
{
	uint64_t look_ns = weir_deadline_in(WEIRI_BELL_LOOK_NS), deadline_ns = wait->deadline_ns;
	uint32_t word = weiri_bell_ask(bell, WEIRI_BELL_SLEEPERS);
	enum weir_status status = wait->attempt(wait->context);

	if (status != WEIR_WOULD_BLOCK)
		return status;
	/* A token that fired before the bit was set has counted in the word, and wakes nobody any more. */
	if (weir_cancel_fired(wait->cancel))
		return WEIR_WOULD_BLOCK;
	if (weiri_futex_wait_shared(bell->word, word, deadline_ns < look_ns ? deadline_ns : look_ns) ==
	    WEIRI_FUTEX_SIGNALLED)
		*interrupted = weiri_interrupt_ends_wait();
	return wait->attempt(wait->context);
}

static enum weir_status late(const struct weiri_bell_wait *wait, weir_error *error)
{
	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "%s: the deadline passed", wait->what);
}

/* Whatever the cause says, the status is WEIR_CANCELLED, as in every call that waits. */
static enum weir_status cancelled(const struct weiri_bell_wait *wait, weir_error *error)
{
	weir_error cause;

	(void)weir_cancel_cause(wait->cancel, &cause);
	return weiri_fail(error, WEIR_CANCELLED, "%s: the wait was cancelled by its token; %s: %.120s", wait->what,
	                  weir_status_name(cause.code), cause.message);
}

static enum weir_status sleep_until(struct weiri_bell *bell, const struct weiri_bell_wait *wait, weir_error *error)
{
	bool interrupted = false;

	for (;;) {
		enum weir_status status;

		if (weir_cancel_fired(wait->cancel)) {
			weiri_cancel_help(wait->cancel); /* the thread that fired it may have stalled */
			return cancelled(wait, error);
		}
		status = sleep_once(bell, wait, &interrupted);
		if (status != WEIR_WOULD_BLOCK)
			return wait->explain(status, error);
		if (interrupted)
			return weiri_fail(error, WEIR_CANCELLED, "%s was cancelled: %s", wait->what, weiri_interrupt_cause.message);
		if (wait->deadline_ns != WEIR_NO_DEADLINE && weir_now_ns() >= wait->deadline_ns)
			return late(wait, error);
	}
}

static enum weir_status sleep_with_token(struct weiri_bell *bell, const struct weiri_bell_wait *wait, weir_error *error)
{
	weir_cancel_hook *hook = NULL;
	enum weir_status status;

	/* [relaxed] read by a destroy, which the caller orders behind this call. */
	(void)weiri_fetch_add_relaxed(&bell->tokens, 1u);
	status = weiri_cancel_on_wait(wait->cancel, wake_for_token, bell, &hook);
	if (status != WEIR_OK) {
		(void)weiri_fetch_sub_relaxed(&bell->tokens, 1u); /* [relaxed] as above; there is no hook */
		return weiri_fail(error, status, "%s: no memory to wait with a token", wait->what);
	}
	status = sleep_until(bell, wait, error);
	if (weir_cancel_off(hook))
		(void)weiri_fetch_sub_relaxed(&bell->tokens, 1u); /* [relaxed] as above; the hook never runs */
	return status;
}

enum weir_status weiri_bell_wait(struct weiri_bell *bell, const struct weiri_bell_wait *wait, weir_error *error)
{
	enum weir_status status;

	if (weir_cancel_fired(wait->cancel))
		return cancelled(wait, error);
	status = spin(bell, wait);
	if (status != WEIR_WOULD_BLOCK)
		return wait->explain(status, error);
	if (wait->deadline_ns == 0)
		return late(wait, error);
	return wait->cancel == NULL ? sleep_until(bell, wait, error) : sleep_with_token(bell, wait, error);
}
