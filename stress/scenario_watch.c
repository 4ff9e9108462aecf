/*
 * scenario_watch.c - a thread that follows a variable misses no relevant version: each wait returns
 * a newer version, and the last version reaches all threads.
 *
 * Writers publish until the time is up. Then one more version is published, and all followers must
 * see it: by waits with and without deadlines and tokens, by callbacks that are sometimes
 * cancelled, and by a polled descriptor. A lost wake-up is a hang.
 */
#include "harness.h"

#include <inttypes.h>
#include <poll.h>
#include <weir/reclaim.h>
#include <weir/time.h>
#include <weir/watch.h>

#include "poison.h"
#include "scenarios.h"

static const uint64_t flush_ns = 100000000000u;

static weir_var *var;
/* The number of the last version, once the time is up; 0 before. */
static _Atomic(uint64_t) final;

static uint64_t last_version(void)
{
	/* [relaxed] a number; a late look only makes a follower repeat its loop. */
	uint64_t version = weiri_load_relaxed(&final);

	return version != 0 ? version : UINT64_MAX;
}

static void publish(struct stress_thread *self)
{
	weir_tensor *value = stress_payload(stress_random(self) >> 8, 1 + (size_t)stress_below(self, 8));
	enum weir_status status = weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL);

	STRESS_CHECK(status == WEIR_OK, "weir_var_assign: %s", weir_status_name(status));
	weir_tensor_release(value);
}

static void writer(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		stress_begin(self, "assign");
		publish(self);
		stress_end(self, 1);
	}
}

/* Checks that the version is newer than what was seen, and intact. */
static void see(const weir_read *read, uint64_t *seen, const char *who)
{
	STRESS_CHECK(read->version > *seen, "%s: version %" PRIu64 " after %" PRIu64, who, read->version, *seen);
	(void)stress_payload_check(read->tensor, who);
	*seen = read->version;
}

/* -- by waits ---------------------------------------------------------------------------------- */

/*
 * One wait in four has a deadline. One has a token that another callback of this thread fires at
 * the next version, so perhaps before the wait sees it.
 */
static void fire_at_newer(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	(void)status, (void)error;
	weir_read_release(read);
	(void)weir_cancel_fire(context, NULL);
	weir_cancel_release(context);
}

static void waiter(struct stress_thread *self, void *context)
{
	uint64_t seen = 0;

	(void)context;
	while (seen < last_version()) {
		uint64_t deadline_ns = stress_one_in(self, 4) ? weir_deadline_in(stress_below(self, 100000)) : WEIR_NO_DEADLINE;
		weir_cancel *token = NULL;
		enum weir_status status;
		weir_read read;

		stress_begin(self, "wait");
		if (stress_one_in(self, 4)) {
			STRESS_CHECK(weir_cancel_create(NULL, &token, NULL) == WEIR_OK, "no memory for a token");
			STRESS_CHECK(weir_var_start_wait(var, seen, fire_at_newer, weir_cancel_retain(token), NULL, NULL) ==
			                 WEIR_OK,
			             "weir_var_start_wait");
		}
		status = weir_var_wait(var, seen, deadline_ns, token, &read, NULL);
		STRESS_CHECK(status == WEIR_OK || (status == WEIR_CANCELLED && token != NULL) ||
		                 (status == WEIR_DEADLINE_EXCEEDED && deadline_ns != WEIR_NO_DEADLINE),
		             "weir_var_wait: %s", weir_status_name(status));
		if (status == WEIR_OK) {
			see(&read, &seen, "wait");
			weir_read_release(&read);
		}
		weir_cancel_release(token);
		stress_end(self, 1);
	}
}

/* -- by callbacks ------------------------------------------------------------------------------ */

/* One operation at a time. */
struct follower {
	_Atomic(uint64_t) ended; /* number of operations that have ended */
	uint64_t seen;
};

static void followed(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	struct follower *follower = context;

	(void)error;
	STRESS_CHECK(status == WEIR_OK || status == WEIR_CANCELLED, "callback: %s", weir_status_name(status));
	if (status == WEIR_OK)
		see(read, &follower->seen, "callback");
	weir_read_release(read);
	/* [release] `seen`, for the thread that starts the next operation. */
	(void)weiri_fetch_add_release(&follower->ended, 1u);
}

static void follower(struct stress_thread *self, void *context)
{
	struct follower ours = {.seen = 0};

	(void)context;
	for (uint64_t started = 1; ours.seen < last_version(); started++) {
		weir_pending *op;
		unsigned spins = 0;

		stress_begin(self, "callback");
		STRESS_CHECK(weir_var_start_wait(var, ours.seen, followed, &ours, &op, NULL) == WEIR_OK, "weir_var_start_wait");
		if (stress_one_in(self, 3))
			weir_pending_cancel(op, NULL);
		/* [acquire] the follower continues with the callback's `seen`. */
		while (weiri_load_acquire(&ours.ended) < started)
			stress_back_off(&spins);
		STRESS_CHECK(weiri_load_acquire(&ours.ended) == started, "a callback ran twice");
		weir_pending_release(op);
		stress_end(self, 1);
	}
}

/* -- by a descriptor --------------------------------------------------------------------------- */

static void poller(struct stress_thread *self, void *context)
{
	uint64_t seen = 0;
	weir_watch *watch;
	struct pollfd entry = {.events = POLLIN};

	(void)context;
	STRESS_CHECK(weir_watch_create(var, 0, &watch, NULL) == WEIR_OK, "weir_watch_create");
	entry.fd = weir_watch_fd(watch);
	while (seen < last_version()) {
		weir_read read;
		enum weir_status status;

		stress_begin(self, "poll");
		(void)poll(&entry, 1, -1); /* a signal ends it, too */
		status = weir_watch_try_take(watch, &read);
		STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "weir_watch_try_take: %s",
		             weir_status_name(status));
		if (status == WEIR_OK) {
			see(&read, &seen, "watch");
			weir_read_release(&read);
		}
		stress_end(self, 1);
	}
	weir_watch_destroy(watch, NULL);
}

void scenario_watch(void)
{
	static stress_body *const bodies[] = {waiter, follower, poller};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_poison()};
	unsigned followers = stress_threads(3) - 1;
	struct stress_thread *writers[2];

	weiri_store_relaxed(&final, 0u); /* [relaxed] before the threads */
	STRESS_CHECK(weir_var_create(NULL, &options, &var, NULL) == WEIR_OK, "weir_var_create");
	for (unsigned i = 0; i < 2; i++)
		writers[i] = stress_start("writer", writer, NULL);
	for (unsigned i = 0; i < followers; i++)
		(void)stress_start("follower", bodies[i % 3], NULL);
	stress_disturb();
	for (unsigned i = 0; i < 2; i++)
		stress_join_one(writers[i]);
	/* [relaxed] the version itself wakes sleepers, and makes it visible. */
	weiri_store_relaxed(&final, weir_var_version(var) + 1);
	publish(stress_self());
	stress_join();
	STRESS_CHECK(weir_var_destroy(var, NULL) == WEIR_OK, "a wait is still under way");
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(flush_ns)) == WEIR_OK, "the flush failed: memory is still held");
	stress_poison_check_empty();
}
