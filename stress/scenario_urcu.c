/*
 * scenario_urcu.c - variables in sections of liburcu: what a section has found stays whole until it
 * ends; a reader that stays in its section lets writers be refused, not memory grow; when it has
 * left, writers go on.
 *
 * In each round a flavour is attached, in turn with and without grace periods that collections
 * start. Readers, writers and a thread that waits for grace periods run beside a *sitter*, which
 * stays in one section until the budget has refused some writes. At the end of the round the flavour
 * is detached.
 *
 * liburcu is not instrumented, so ThreadSanitizer sees no order between an unlock and the end of a
 * grace period. As in tests/test_urcu.c the flavour therefore adds to a count with each unlock, and
 * reads it after each grace period. Without the grace period the count would order nothing.
 */
#include "harness.h"

#include <inttypes.h>
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>
#include <weir/reclaim.h>
#include <weir/time.h>
#include <weir/urcu.h>

#include "poison.h"
#include "scenarios.h"

/* What <urcu/urcu-memb.h> calls rcu_flavor. */
extern const struct rcu_flavor_struct urcu_memb_flavor;

enum {
	VARIABLES = 3,
	READERS = 2,
	WRITERS = 2,
	WORDS = 2000,
	VERSION_BYTES = WORDS * 8 + 1024,
	BUDGET = 32 * VERSION_BYTES,
	NOT_COUNTED_YET = 64 << 10,
	REFUSALS = 4 * WRITERS,
	WRITES = 300
};

static const uint64_t must_succeed_ns = 100000000000u, may_fail_ns = 2000000;

static weir_var *variables[VARIABLES];
static weir_urcu *host;
static _Atomic(uint32_t) unlocked, done;
static _Atomic(uint64_t) refused, written;
static _Atomic(uintptr_t) called_back;

/* -- a flavour whose order ThreadSanitizer sees ------------------------------------------------ */

static void unlock(void)
{
	(void)weiri_fetch_add_release(&unlocked, 1u); /* [release] pairs with synchronize() and call_back() */
	urcu_memb_flavor.read_unlock();
}

static void synchronize(void)
{
	urcu_memb_flavor.update_synchronize_rcu();
	(void)weiri_load_acquire(&unlocked); /* [acquire] pairs with unlock() */
}

static void call_back(struct rcu_head *head)
{
	(void)weiri_load_acquire(&unlocked);                                   /* [acquire] pairs with unlock() */
	((void (*)(struct rcu_head *))weiri_load_acquire(&called_back))(head); /* [acquire] pairs with call() */
}

static void call(struct rcu_head *head, void (*function)(struct rcu_head *head))
{
	weiri_store_release(&called_back, (uintptr_t)function); /* [release] pairs with call_back() */
	urcu_memb_flavor.update_call_rcu(head, call_back);
}

static void attach(uint32_t flags)
{
	static struct rcu_flavor_struct shown;
	struct weir_urcu_options options = {WEIR_URCU_OPTIONS_INIT, .flags = flags, .allocator = stress_poison()};

	shown = urcu_memb_flavor;
	shown.update_synchronize_rcu = synchronize;
	shown.update_call_rcu = call;
	STRESS_CHECK(weir_urcu_attach(&shown, &options, &host, NULL) == WEIR_OK, "the flavour was not attached");
}

/* -- threads ----------------------------------------------------------------------------------- */

static bool finished(void)
{
	return weiri_load_acquire(&done) != 0; /* [acquire] only the end of a round is passed */
}

static void check_memory(void)
{
	uint64_t bytes = stress_poison_bytes();
	uint64_t bound = BUDGET + (VARIABLES + (uint64_t)2 * WRITERS) * VERSION_BYTES +
	                 (uint64_t)(WRITERS + READERS + 4) * NOT_COUNTED_YET;

	STRESS_CHECK(bytes <= bound, "%" PRIu64 " bytes exist; the bound is %" PRIu64, bytes, bound);
}

static void read_once(struct stress_thread *self)
{
	const weir_read *seen[VARIABLES];
	uint64_t tag[VARIABLES];

	urcu_memb_flavor.read_lock();
	for (unsigned i = 0; i < VARIABLES; i++) {
		seen[i] = weir_urcu_peek(variables[i]);
		tag[i] = stress_payload_check(seen[i]->tensor, "a peek");
	}
	if (stress_one_in(self, 20))
		stress_let_pass(stress_below(self, 200000));
	for (unsigned i = 0; i < VARIABLES; i++)
		STRESS_CHECK(stress_payload_check(seen[i]->tensor, "a peek, later") == tag[i],
		             "what a section has found became another value");
	unlock();
}

static void reader(struct stress_thread *self, void *context)
{
	(void)context;
	urcu_memb_flavor.register_thread();
	while (!finished()) {
		stress_begin(self, "read");
		read_once(self);
		stress_end(self, 1);
	}
	urcu_memb_flavor.unregister_thread();
}

static void writer(struct stress_thread *self, void *context)
{
	uint64_t number = (uint64_t)self->number << 32;

	(void)context;
	urcu_memb_flavor.register_thread();
	while (!finished()) {
		weir_tensor *value = stress_payload(number++, WORDS);
		enum weir_status status;

		stress_begin(self, "assign");
		status =
			weir_var_assign(variables[stress_below(self, VARIABLES)], value, weir_deadline_in(may_fail_ns), NULL, NULL);
		weir_tensor_release(value);
		STRESS_CHECK(status == WEIR_OK || status == WEIR_RESOURCE_EXHAUSTED, "an assign: %s", weir_status_name(status));
		(void)weiri_fetch_add_relaxed(status == WEIR_OK ? &written : &refused, 1u); /* [relaxed] counts */
		check_memory();
		stress_end(self, 1);
	}
	urcu_memb_flavor.unregister_thread();
}

static void wait_for_grace_periods(struct stress_thread *self, void *context)
{
	(void)context;
	while (!finished()) {
		if (stress_one_in(self, 2) || weir_urcu_try_start(host) != WEIR_OK)
			weir_urcu_synchronize(host);
		stress_let_pass(20000);
	}
}

/* Waits until one of the counts has grown by so much. */
static void wait_for(_Atomic(uint64_t) *count, uint64_t more)
{
	uint64_t before = weiri_load_relaxed(count), since = weir_now_ns(); /* [relaxed] counts */

	while (weiri_load_relaxed(count) - before < more) {
		STRESS_CHECK(weir_now_ns() - since < must_succeed_ns, "%s for %" PRIu64 " s",
		             count == &written ? "no write succeeded" : "no write was refused", must_succeed_ns / 1000000000u);
		stress_let_pass(20000);
	}
}

static void sit(struct stress_thread *self, void *context)
{
	const weir_read *seen;
	uint64_t tag;

	(void)context;
	urcu_memb_flavor.register_thread();
	urcu_memb_flavor.read_lock();
	stress_begin(self, "sitting in a section");
	seen = weir_urcu_peek(variables[0]);
	tag = stress_payload_check(seen->tensor, "the sitter");
	wait_for(&refused, REFUSALS);
	STRESS_CHECK(stress_payload_check(seen->tensor, "the sitter, later") == tag, "the sitter's value became another");
	unlock();
	stress_end(self, 1);
	urcu_memb_flavor.unregister_thread();
}

static void play_round(uint32_t flags)
{
	struct stress_thread *sitter;

	attach(flags);
	weiri_store_relaxed(&done, 0u); /* [relaxed] no other thread yet */
	for (unsigned i = 0; i < READERS; i++)
		(void)stress_start("reader", reader, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		(void)stress_start("writer", writer, NULL);
	(void)stress_start("grace periods", wait_for_grace_periods, NULL);
	wait_for(&written, stress_scaled(WRITES));
	sitter = stress_start("sitter", sit, NULL);
	stress_join_one(sitter);
	wait_for(&written, stress_scaled(WRITES));
	weiri_store_release(&done, 1u); /* [release] pairs with finished() */
	stress_join();
	STRESS_CHECK(weir_urcu_detach(host, NULL) == WEIR_OK, "the flavour was not detached");
}

void scenario_urcu(void)
{
	uint64_t rounds = 0;

	weir_reclaim_set_budget(BUDGET);
	/* The thread that makes the last collections of a round may call call_rcu(). */
	urcu_memb_flavor.register_thread();
	for (unsigned i = 0; i < VARIABLES; i++) {
		struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_poison()};
		weir_tensor *initial = stress_payload(i, WORDS);

		STRESS_CHECK(weir_var_create(initial, &options, &variables[i], NULL) == WEIR_OK, "no variable");
		weir_tensor_release(initial);
	}
	do
		play_round(rounds % 2 != 0 ? 0 : WEIR_URCU_CALL_RCU);
	while (rounds++ < 1 || stress_goes_on());
	urcu_memb_flavor.unregister_thread();
	for (unsigned i = 0; i < VARIABLES; i++)
		(void)weir_var_destroy(variables[i], NULL);
	weir_reclaim_set_budget(0);
	stress_note("rounds", rounds);
	stress_note("refused", weiri_load_relaxed(&refused)); /* [relaxed] joined */
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(must_succeed_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}
