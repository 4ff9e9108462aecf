/*
 * coordinator.c - stopping a set of threads together, without a lock.
 *
 * Algorithm. Two words hold the state.
 *   outcome  what was decided: bit STOPPED, bit JOINED, and the first error. The error is a record,
 *            or only its code if there was no memory for a record. One CAS stops and records the
 *            error; one fetch_or joins and reads the error. So no error is lost between a stop and
 *            a join.
 *   crowd    what is waited for: bit STOP (a copy of STOPPED), bit WAITERS, and the number of
 *            registered threads. A thread that stops the coordinator, or is the last to leave, sees
 *            in the same instruction whether a thread sleeps.
 *
 * Source. The calls are those of TensorFlow 1.x's coordinator, which holds a lock. We know of no
 * publication of the two words, which combine common techniques.
 *
 * Invariants
 *   I1  until clear_stop, outcome changes only in this order: 0 -> STOPPED [error] -> STOPPED
 *       [error] JOINED, or 0 -> JOINED -> STOPPED JOINED. An error is added only by the step that
 *       sets STOPPED while JOINED is not set
 *   I2  crowd's STOP is set only after outcome's STOPPED
 *   I3  a started thread counts as two in crowd, for itself and for its starter, until the starter
 *       has finished with the member. So if the count is zero, the ids of all threads can be read
 * Pairs
 *   P1  decide_stop (outcome) -> should_stop, status, join: the error record, and what was written
 *       before the request
 *   P2  leave_crowd (crowd) -> await: what a registered thread wrote before it ended
 *   P3  spread_stop (crowd) -> await: what was written before the request
 *   P4  join (outcome) -> joined: the join is over, and what it has seen
 *
 * Memory: once a leaving thread has subtracted itself, it accesses nothing of the coordinator and
 *   only wakes an address, because the joiner may free the coordinator immediately. A requester
 *   that is not registered must itself ensure that the coordinator exists during the call.
 * Linearization: request_stop at the CAS on outcome, or at the load that finds it decided; join at
 *   its fetch_or.
 * Progress: request_stop retries its CAS at most twice, since I1 has no longer chain. If a
 *   requester stalls half way, the next caller wakes the waiters and fires the token in its place.
 *   Sleepers check their condition again after each wake.
 * Checked: tests/test_coordinator.c (plain, TSan, ASan); stress/model/check_coordinator.c.
 */
#include <weir/coordinator.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "reclaim/interrupt.h"
#include "run/coordinator.h"
#include "run/mark.h"
#include "run/members.h"
#include "sync/park.h"

enum { NAME_SIZE = 64 };
enum { STOPPED = 1, JOINED = 2, CODE_ONLY = 4, OUTCOME_BITS = 7, CODE_SHIFT = 3 };
enum { STOP = 1, WAITERS = 2, ONE = 4 };

struct record {
	_Alignas(8) weir_error error; /* its address leaves OUTCOME_BITS free */
};

struct weir_coordinator {
	_Atomic(uintptr_t) outcome;
	_Atomic(uint32_t) crowd;
	struct weiri_members members;
	weir_cancel *token; /* constant except for clear_stop */
	/* constant */
	const void *group; /* NULL: none */
	uint64_t clean_codes;
	weir_allocator allocator;
	char name[NAME_SIZE];
};

/* ---- the outcome ---- */

static struct record *record_of(uintptr_t outcome)
{
	return (outcome & CODE_ONLY) != 0 ? NULL : (struct record *)(outcome & ~(uintptr_t)OUTCOME_BITS);
}

static void release_record(const weir_coordinator *coordinator, struct record *record)
{
	weiri_release(&coordinator->allocator, record, sizeof(*record), _Alignof(struct record));
}

/* Returns STOPPED with a copy of the cause, or with its code alone if there is no memory. */
static uintptr_t stopped_by(const weir_coordinator *coordinator, const weir_error *cause)
{
	struct record *record = weiri_allocate(&coordinator->allocator, sizeof(*record), _Alignof(struct record));

	if (record == NULL)
		return (uintptr_t)STOPPED | CODE_ONLY | (uintptr_t)cause->code << CODE_SHIFT;
	record->error = weiri_error_kept(cause);
	return (uintptr_t)record | STOPPED;
}

/* Returns the code of the error in an outcome, and sets *error to the whole error. */
static enum weir_status error_of(const weir_coordinator *coordinator, uintptr_t outcome, weir_error *error)
{
	const struct record *record = record_of(outcome);
	enum weir_status code;

	if ((outcome & CODE_ONLY) != 0) {
		code = (enum weir_status)(outcome >> CODE_SHIFT);
		return weiri_fail(error, code, "coordinator \"%s\": stopped by %s (there was no memory for the message)",
		                  coordinator->name, weir_status_name(code));
	}
	if (record == NULL)
		return WEIR_OK;
	if (error != NULL)
		*error = record->error;
	return record->error.code;
}

static uintptr_t load_outcome(const weir_coordinator *coordinator)
{
	/* [P1 P4 acquire] pairs with decide_stop() and weir_coordinator_join(). */
	return weiri_load_acquire(&coordinator->outcome);
}

static bool is_clean(const weir_coordinator *coordinator, const weir_error *cause)
{
	return cause == NULL || cause->code == WEIR_OK ||
	       ((unsigned)cause->code < 64 && (coordinator->clean_codes >> (unsigned)cause->code & 1u) != 0);
}

/*
 * Sets STOPPED, with the cause if this request is the first. Returns WEIR_OK, or the code of the
 * cause if the request comes after the join.
 */
static enum weir_status decide_stop(weir_coordinator *coordinator, const weir_error *cause)
{
	uintptr_t outcome = load_outcome(coordinator);
	uintptr_t wanted = STOPPED;

	if (cause != NULL && outcome == 0)
		wanted = stopped_by(coordinator, cause);
	while ((outcome & STOPPED) == 0 && (cause == NULL || (outcome & JOINED) == 0)) {
		WEIR_ASSERT1(I1, wanted == STOPPED || (outcome & JOINED) == 0);
		/*
		 * [P1 release] pairs with load_outcome(). The CAS acquires neither when it succeeds nor
		 * when it fails, because only the bits of the value that it finds are used.
		 */
		if (weiri_cas_release(&coordinator->outcome, &outcome, outcome | wanted))
			return WEIR_OK;
	}
	release_record(coordinator, record_of(wanted));
	return cause != NULL && (outcome & JOINED) != 0 ? cause->code : WEIR_OK;
}

/* ---- the crowd ---- */

static bool everyone_left(uint32_t crowd)
{
	return crowd < ONE;
}

static void join_crowd(weir_coordinator *coordinator, uint32_t count)
{
	/* [relaxed] publishes nothing; a join that does not see the new count began earlier. */
	(void)weiri_fetch_add_relaxed(&coordinator->crowd, count * ONE);
}

static void leave_crowd(weir_coordinator *coordinator)
{
	_Atomic(uint32_t) *crowd = &coordinator->crowd;
	/*
	 * [P2 release] pairs with await(); the releases of other threads are in the same release
	 * sequence.
	 */
	uint32_t before = weiri_fetch_sub_release(crowd, ONE);

	WEIR_ASSERT1(I3, before >= ONE);
	/* From here on the coordinator may be freed; a wake needs only its address. */
	if (everyone_left(before - ONE) && (before & WAITERS) != 0)
		weiri_park_wake(crowd, INT_MAX);
}

enum awaited { A_STOP, EVERYONE, A_STOP_OR_EVERYONE };

static bool has_come(enum awaited awaited, uint32_t crowd)
{
	bool stop = (crowd & STOP) != 0;

	switch (awaited) {
	case A_STOP: return stop;
	case EVERYONE: return everyone_left(crowd);
	case A_STOP_OR_EVERYONE: break;
	}
	return stop || everyone_left(crowd);
}

/*
 * Returns WEIR_OK if what is awaited has happened, WEIR_DEADLINE_EXCEEDED if the deadline passed
 * first, WEIR_CANCELLED if the thread was interrupted.
 */
static enum weir_status await(weir_coordinator *coordinator, enum awaited awaited, uint64_t deadline_ns)
{
	/*
	 * The clock decides, not the result of the last wait, because threads that come and go change
	 * the word all the time.
	 */
	enum weiri_park_result result = WEIRI_PARK_WOKEN;

	for (bool in_time = deadline_ns != 0;; in_time = weir_now_ns() < deadline_ns) {
		/* [P2 P3 acquire] pairs with leave_crowd() and spread_stop(). */
		uint32_t crowd = weiri_load_acquire(&coordinator->crowd);

		if (has_come(awaited, crowd))
			return WEIR_OK;
		if (result == WEIRI_PARK_INTERRUPTED)
			return WEIR_CANCELLED;
		if (!in_time)
			return WEIR_DEADLINE_EXCEEDED;
		/* [relaxed] the CAS only sets WAITERS; the word itself is read again after the wait. */
		if ((crowd & WAITERS) == 0 && !weiri_cas_relaxed(&coordinator->crowd, &crowd, crowd | WAITERS))
			continue;
		result = weiri_park_interruptible(&coordinator->crowd, crowd | WAITERS, deadline_ns);
	}
}

/* ---- stopping ---- */

static void fire_token(weir_coordinator *coordinator)
{
	weir_error cause;
	weir_error reason;

	if (error_of(coordinator, load_outcome(coordinator), &cause) == WEIR_OK)
		(void)weiri_fail(&reason, WEIR_CANCELLED, "coordinator \"%s\": stop requested", coordinator->name);
	else
		(void)weiri_fail(&reason, WEIR_CANCELLED, "coordinator \"%s\" stopped: %s: %.150s", coordinator->name,
		                 weir_status_name(cause.code), cause.message);
	(void)weir_cancel_fire(coordinator->token, &reason);
}

static WEIRI_UNSEEN void assert_decided(const weir_coordinator *coordinator)
{
	WEIR_ASSERT2(I2, (weiri_peek(&coordinator->outcome) & STOPPED) != 0);
}

/*
 * Makes a decided stop known to waiters and to users of the token. Each requester does this,
 * because an earlier one may have stalled half way.
 */
static void spread_stop(weir_coordinator *coordinator)
{
	/* [P3 release] pairs with await(). It continues the release sequences of leave_crowd(). */
	uint32_t before = weiri_fetch_or_release(&coordinator->crowd, STOP);

	WEIR_ASSERT_LOOK(assert_decided(coordinator));
	if ((before & WAITERS) != 0)
		weiri_park_wake(&coordinator->crowd, INT_MAX);
	fire_token(coordinator);
}

bool weir_coordinator_should_stop(const weir_coordinator *coordinator)
{
	return coordinator != NULL && (load_outcome(coordinator) & STOPPED) != 0;
}

bool weir_coordinator_joined(const weir_coordinator *coordinator)
{
	return coordinator != NULL && (load_outcome(coordinator) & JOINED) != 0;
}

enum weir_status weir_coordinator_wait_for_stop(weir_coordinator *coordinator, uint64_t deadline_ns)
{
	if (coordinator == NULL)
		return WEIR_INVALID_ARGUMENT;
	return await(coordinator, A_STOP, deadline_ns);
}

enum weir_status weir_coordinator_request_stop(weir_coordinator *coordinator, const weir_error *cause)
{
	enum weir_status status;

	if (coordinator == NULL)
		return WEIR_INVALID_ARGUMENT;
	status = decide_stop(coordinator, is_clean(coordinator, cause) ? NULL : cause);
	if (status == WEIR_OK)
		spread_stop(coordinator);
	return status;
}

enum weir_status weir_coordinator_status(const weir_coordinator *coordinator, weir_error *error)
{
	return coordinator != NULL ? error_of(coordinator, load_outcome(coordinator), error) : WEIR_OK;
}

weir_cancel *weir_coordinator_cancel(const weir_coordinator *coordinator)
{
	return coordinator != NULL ? coordinator->token : NULL;
}

enum weir_status weir_coordinator_on_stop(weir_coordinator *coordinator, weir_cancel_fn *fn, void *context,
                                          weir_cancel_hook **hook)
{
	return coordinator != NULL ? weir_cancel_on(coordinator->token, fn, context, hook) : WEIR_INVALID_ARGUMENT;
}

/* ---- threads ---- */

static enum weir_status run_in_a_loop(weir_coordinator_member *member, weir_error *error)
{
	weir_coordinator *coordinator = member->coordinator;
	uint64_t next = weir_now_ns();
	enum weir_status status = WEIR_OK, waited = WEIR_OK;

	while (status == WEIR_OK && !weir_coordinator_should_stop(coordinator)) {
		status = member->fn(coordinator, member->context, error);
		if (member->interval_ns == 0 || status != WEIR_OK)
			continue;
		next = next < WEIR_NO_DEADLINE - member->interval_ns ? next + member->interval_ns : WEIR_NO_DEADLINE;
		do
			waited = await(coordinator, A_STOP, next);
		while (waited == WEIR_CANCELLED); /* there is no call that an interrupt could end */
	}
	return status;
}

static void report(weir_coordinator_member *member, enum weir_status status, weir_error *error)
{
	weir_coordinator *coordinator = member->coordinator;
	char name[WEIRI_MEMBER_NAME_SIZE];

	if (status == WEIR_OK)
		return;
	weiri_member_name(member, name);
	error->code = status;
	weiri_error_end(error);
	if (error->message[0] == '\0')
		(void)weiri_fail(error, status, "coordinator \"%s\": thread \"%s\" ended with %s", coordinator->name, name,
		                 weir_status_name(status));
	if (weir_coordinator_request_stop(coordinator, error) != WEIR_OK)
		weiri_log(WEIR_LOG_ERROR, "coordinator \"%s\": thread \"%s\" failed after the join: %s: %s", coordinator->name,
		          name, weir_status_name(status), error->message);
}

/* Runs also if the thread's function calls pthread_exit. */
static void end_thread(void *argument)
{
	weir_coordinator_member *member = argument;
	weir_coordinator *coordinator = member->coordinator;

	weiri_marks_mine = NULL; /* those of functions that ended with it, too */
	weiri_member_end(member);
	leave_crowd(coordinator);
}

static void *thread_main(void *argument)
{
	weir_coordinator_member *member = argument;
	weir_error error = {WEIR_OK, ""};
	char name[WEIRI_MEMBER_NAME_SIZE];
	enum weir_status status;
	struct weiri_mark mark, group;

	weiri_mark_begin(&mark, WEIRI_MARK_COORDINATOR, member->coordinator);
	weiri_mark_begin(&group, WEIRI_MARK_GROUP, member->coordinator->group);
	weiri_member_name(member, name);
	name[15] = '\0'; /* the system keeps 15 characters */
	(void)pthread_setname_np(pthread_self(), name);
	pthread_cleanup_push(end_thread, member);
	status = member->loops ? run_in_a_loop(member, &error) : member->fn(member->coordinator, member->context, &error);
	report(member, status, &error);
	pthread_cleanup_pop(1);
	return NULL;
}

static enum weir_status claim_member(weir_coordinator *coordinator, const char *name, weir_coordinator_member **member,
                                     weir_error *error)
{
	*member = weiri_members_claim(&coordinator->members, name);
	if (*member == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "coordinator \"%s\": no memory to register thread \"%s\"",
		                  coordinator->name, name);
	(*member)->coordinator = coordinator;
	return WEIR_OK;
}

static enum weir_status start(weir_coordinator *coordinator, const char *name, const weir_coordinator_member *job,
                              weir_error *error)
{
	weir_coordinator_member *member;
	enum weir_status status;
	bool started;

	if (coordinator == NULL || job->fn == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "coordinator: coordinator or fn is NULL");
	if (name == NULL)
		name = "thread";
	/*
	 * Joins threads that have ended: otherwise many short threads would accumulate until the join.
	 */
	weiri_members_join_ended(&coordinator->members);
	status = claim_member(coordinator, name, &member, error);
	if (status != WEIR_OK)
		return status;
	member->fn = job->fn;
	member->context = job->context;
	member->interval_ns = job->interval_ns;
	member->loops = job->loops;
	join_crowd(coordinator, 2);
	started = weiri_member_start(member, thread_main);
	if (!started) {
		leave_crowd(coordinator);
		status = weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "coordinator \"%s\": the system gave no thread for \"%s\"",
		                    coordinator->name, name);
	}
	leave_crowd(coordinator);
	return status;
}

enum weir_status weir_coordinator_start_thread(weir_coordinator *coordinator, const char *name, weir_coordinator_fn *fn,
                                               void *context, weir_error *error)
{
	const weir_coordinator_member job = {.fn = fn, .context = context};

	return start(coordinator, name, &job, error);
}

enum weir_status weir_coordinator_start_loop(weir_coordinator *coordinator, const char *name, uint64_t interval_ns,
                                             weir_coordinator_fn *fn, void *context, weir_error *error)
{
	const weir_coordinator_member job = {.fn = fn, .context = context, .interval_ns = interval_ns, .loops = true};

	return start(coordinator, name, &job, error);
}

enum weir_status weir_coordinator_enter(weir_coordinator *coordinator, const char *name,
                                        weir_coordinator_member **member, weir_error *error)
{
	weir_coordinator_member *claimed;
	enum weir_status status;

	if (coordinator == NULL || member == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "coordinator: coordinator or member is NULL");
	status = claim_member(coordinator, name != NULL ? name : "thread", &claimed, error);
	if (status != WEIR_OK)
		return status;
	join_crowd(coordinator, 1);
	weiri_member_enter(claimed);
	*member = claimed;
	return WEIR_OK;
}

void weir_coordinator_leave(weir_coordinator_member *member)
{
	weir_coordinator *coordinator;

	if (member == NULL)
		return;
	coordinator = member->coordinator;
	weiri_member_leave(member);
	leave_crowd(coordinator);
}

/* ---- joining ---- */

struct names {
	char text[WEIR_ERROR_MESSAGE_SIZE / 2];
	size_t count;
};

static void list_stragglers(const weir_coordinator *coordinator, struct names *names)
{
	names->count = weiri_members_list_names(&coordinator->members, names->text, sizeof(names->text));
}

/*
 * Joins the ended threads and returns WEIR_OK if no registered thread is left. Otherwise returns
 * `code`.
 */
static enum weir_status require_empty(weir_coordinator *coordinator, enum weir_status code, weir_error *error)
{
	struct names names;

	if (await(coordinator, EVERYONE, 0) == WEIR_OK) {
		weiri_members_join_ended(&coordinator->members);
		return WEIR_OK;
	}
	list_stragglers(coordinator, &names);
	return weiri_fail(error, code, "coordinator \"%s\": %zu thread%s still running: %s", coordinator->name, names.count,
	                  WEIRI_S(names.count), names.text);
}

static enum weir_status check_join(const weir_coordinator *coordinator, uint32_t flags, weir_error *error)
{
	if (coordinator == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "coordinator: NULL");
	if (weiri_mark_of(WEIRI_MARK_COORDINATOR, coordinator) != NULL)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "coordinator \"%s\": a thread that it started cannot join it", coordinator->name);
	return weiri_options_flags("coordinator", flags, WEIR_COORDINATOR_IGNORE_STRAGGLERS, error);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns the result of a join after which threads still run. */
static enum weir_status blame_stragglers(const weir_coordinator *coordinator, uint64_t grace_ns, uint32_t flags,
                                         weir_error *error)
{
	struct names names;

	list_stragglers(coordinator, &names);
	if ((flags & WEIR_COORDINATOR_IGNORE_STRAGGLERS) != 0) {
		weiri_log(WEIR_LOG_WARNING, "coordinator \"%s\": %zu thread%s still running after the stop: %s",
		          coordinator->name, names.count, WEIRI_S(names.count), names.text);
		return WEIR_OK;
	}
	return weiri_fail(error, WEIR_DEADLINE_EXCEEDED,
	                  "coordinator \"%s\": %zu thread%s still running %.3f s after the stop: %s", coordinator->name,
	                  names.count, WEIRI_S(names.count), (double)grace_ns * 1e-9, names.text);
}

static enum weir_status fail_interrupted(const weir_coordinator *coordinator, weir_error *error)
{
	return weiri_fail(error, WEIR_CANCELLED, "coordinator \"%s\": the join was cancelled: %s", coordinator->name,
	                  weiri_interrupt_cause.message);
}

enum weir_status weir_coordinator_join(weir_coordinator *coordinator, uint64_t deadline_ns, uint64_t grace_ns,
                                       uint32_t flags, weir_error *error)
{
	enum weir_status status = check_join(coordinator, flags, error);
	uintptr_t outcome;
	bool all_ended;

	if (status != WEIR_OK)
		return status;
	status = await(coordinator, A_STOP_OR_EVERYONE, deadline_ns);
	if (status == WEIR_DEADLINE_EXCEEDED)
		status = require_empty(coordinator, WEIR_DEADLINE_EXCEEDED, error);
	else if (status == WEIR_CANCELLED)
		status = fail_interrupted(coordinator, error);
	if (status != WEIR_OK)
		return status;
	status = await(coordinator, EVERYONE, earlier(deadline_ns, weir_deadline_in(grace_ns)));
	if (status == WEIR_CANCELLED)
		return fail_interrupted(coordinator, error);
	all_ended = status == WEIR_OK;
	weiri_members_join_ended(&coordinator->members);
	/*
	 * [P4 release, P1 acquire] pairs with load_outcome() and decide_stop(): later errors are
	 * returned to the threads that report them.
	 */
	outcome = weiri_fetch_or_acq_rel(&coordinator->outcome, (uintptr_t)JOINED);
	status = error_of(coordinator, outcome, error);
	if (status != WEIR_OK || all_ended)
		return status;
	return blame_stragglers(coordinator, grace_ns, flags, error);
}

enum weir_status weir_coordinator_clear_stop(weir_coordinator *coordinator, weir_error *error)
{
	weir_cancel *token = NULL;
	enum weir_status status;

	if (coordinator == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "coordinator: NULL");
	status = require_empty(coordinator, WEIR_FAILED_PRECONDITION, error);
	if (status != WEIR_OK)
		return status;
	if (weir_cancel_fired(coordinator->token)) {
		status = weir_cancel_create(&coordinator->allocator, &token, NULL);
		if (status != WEIR_OK)
			return weiri_fail(error, status, "coordinator \"%s\": no memory for a cancel token", coordinator->name);
		weir_cancel_release(coordinator->token);
		coordinator->token = token;
	}
	release_record(coordinator, record_of(load_outcome(coordinator)));
	/* [relaxed] the only thread; the caller orders this before the threads that come next. */
	weiri_store_relaxed(&coordinator->crowd, 0);
	weiri_store_relaxed(&coordinator->outcome, 0);
	return WEIR_OK;
}

/* ---- creating ---- */

static enum weir_status check_options(struct weir_coordinator_options *options, weir_error *error)
{
	enum weir_status status = weiri_options_flags("coordinator", options->flags, WEIR_COORDINATOR_NOTHING_CLEAN, error);

	if (status != WEIR_OK)
		return status;
	if ((options->flags & WEIR_COORDINATOR_NOTHING_CLEAN) == 0) {
		if (options->clean_codes == 0)
			options->clean_codes = WEIR_COORDINATOR_CLEAN(WEIR_OUT_OF_RANGE);
	} else if (options->clean_codes != 0) {
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "coordinator: clean_codes 0x%llx with WEIR_COORDINATOR_NOTHING_CLEAN",
		                  (unsigned long long)options->clean_codes);
	}
	if (options->name == NULL)
		options->name = "coordinator";
	return WEIR_OK;
}

enum weir_status weir_coordinator_create(const struct weir_coordinator_options *given, weir_coordinator **out,
                                         weir_error *error)
{
	struct weir_coordinator_options options;
	enum weir_status status = weiri_options_read("coordinator", given, &options, sizeof(options), error);
	weir_coordinator *coordinator;
	weir_allocator allocator;

	if (status == WEIR_OK)
		status = check_options(&options, error);
	if (status != WEIR_OK) {
		weiri_error_name(error, "coordinator", options.name);
		return status;
	}
	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "coordinator: out is NULL");
	allocator = weiri_allocator_or_default(options.allocator);
	coordinator = weiri_allocate_zeroed(&allocator, sizeof(*coordinator), _Alignof(weir_coordinator));
	if (coordinator == NULL || weir_cancel_create(&allocator, &coordinator->token, NULL) != WEIR_OK) {
		weiri_release(&allocator, coordinator, sizeof(*coordinator), _Alignof(weir_coordinator));
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "coordinator \"%s\": no memory", options.name);
	}
	coordinator->allocator = allocator;
	coordinator->clean_codes = options.clean_codes;
	(void)snprintf(coordinator->name, sizeof(coordinator->name), "%s", options.name);
	weiri_members_init(&coordinator->members, &coordinator->allocator);
	*out = coordinator;
	return WEIR_OK;
}

void weiri_coordinator_set_group(weir_coordinator *coordinator, const void *group)
{
	coordinator->group = group;
}

enum weir_status weir_coordinator_destroy(weir_coordinator *coordinator, weir_error *error)
{
	enum weir_status status;
	weir_allocator allocator;

	if (coordinator == NULL)
		return WEIR_OK;
	status = require_empty(coordinator, WEIR_FAILED_PRECONDITION, error);
	if (status != WEIR_OK)
		return status;
	release_record(coordinator, record_of(load_outcome(coordinator)));
	weir_cancel_release(coordinator->token);
	weiri_members_fini(&coordinator->members);
	allocator = coordinator->allocator;
	weiri_release(&allocator, coordinator, sizeof(*coordinator), _Alignof(weir_coordinator));
	return WEIR_OK;
}
