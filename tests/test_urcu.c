/*
 * test_urcu.c - variables in sections of liburcu's flavours: what a section has seen stays until it
 * ends, a grace period lets memory go, and the budget cuts off a reader that is stopped.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <urcu/call-rcu.h>
#include <urcu/flavor.h>
#include <weir/reclaim.h>
#include <weir/stall.h>
#include <weir/urcu.h>
#include <weir/value.h>

#include "no_memory.h"
#include "reclaim_kit.h"
#include "stepped.h"
#include "var/version.h"
#include "variables.h"

/* liburcu's flavour headers exclude each other; these are what they call rcu_flavor. */
extern const struct rcu_flavor_struct urcu_memb_flavor, urcu_qsbr_flavor, urcu_bp_flavor;

static const struct rcu_flavor_struct *const flavours[] = {&urcu_memb_flavor, &urcu_qsbr_flavor, &urcu_bp_flavor};

enum { FLAVOURS = sizeof(flavours) / sizeof(flavours[0]), BUDGET = 1 << 20 };

/* -- a flavour whose order ThreadSanitizer sees ------------------------------------------------ */

/*
 * liburcu is not instrumented, so ThreadSanitizer sees no order between an unlock and the end of a
 * grace period. This flavour adds a count to each unlock, and reads it after each grace period.
 * Its own malloc and free need ignore_noninstrumented_modules=1, which scripts/testing sets.
 * Nothing is tested by it: without the grace period, the count would order nothing.
 */
static const struct rcu_flavor_struct *real;
static struct rcu_flavor_struct shown;
static _Atomic(uint32_t) unlocked;
static _Atomic(uintptr_t) called_back;

static void unlock(void)
{
	(void)weiri_fetch_add_release(&unlocked, 1u);
	real->read_unlock();
	real->read_quiescent_state();
}

static void synchronize(void)
{
	real->update_synchronize_rcu();
	(void)weiri_load_acquire(&unlocked);
}

static void call_back(struct rcu_head *head)
{
	(void)weiri_load_acquire(&unlocked);
	((void (*)(struct rcu_head *))weiri_load_acquire(&called_back))(head);
}

static void call(struct rcu_head *head, void (*function)(struct rcu_head *head))
{
	weiri_store_release(&called_back, (uintptr_t)function);
	real->update_call_rcu(head, call_back);
}

static weir_urcu *attach(const struct rcu_flavor_struct *flavour, uint32_t flags)
{
	struct weir_urcu_options options = {WEIR_URCU_OPTIONS_INIT, .flags = flags, .allocator = &variables_memory};
	weir_urcu *host = NULL;

	real = flavour;
	shown = *flavour;
	shown.update_synchronize_rcu = synchronize;
	shown.update_call_rcu = call;
	cr_assert_eq(weir_urcu_attach(&shown, &options, &host, NULL), WEIR_OK);
	return host;
}

static void detach(weir_urcu *host)
{
	cr_assert_eq(weir_urcu_detach(host, NULL), WEIR_OK);
}

/* -- a reader that waits in its section -------------------------------------------------------- */

struct reader {
	weir_var *var;
	pthread_t thread;
	_Atomic(uint32_t) inside, leave;
	int64_t before, after; /* what it saw */
};

static void *read_slowly(void *context)
{
	struct reader *reader = context;
	const weir_read *read;

	real->register_thread();
	real->read_lock();
	read = weir_urcu_peek(reader->var);
	reader->before = value_of(read);
	latch_open(&reader->inside);
	latch_pass(&reader->leave);
	reader->after = value_of(read);
	unlock();
	real->unregister_thread();
	return NULL;
}

static void begin_to_read(struct reader *reader, weir_var *var)
{
	*reader = (struct reader){.var = var};
	reader->thread = start(read_slowly, reader);
	latch_pass(&reader->inside);
}

static void end_reading(struct reader *reader)
{
	latch_open(&reader->leave);
	join(reader->thread);
	cr_assert_eq(reader->after, reader->before, "what a section has seen changed in it");
}

/* -- reads and grace periods ------------------------------------------------------------------- */

Test(urcu, what_a_section_has_seen_stays_until_a_grace_period_has_passed)
{
	for (size_t i = 0; i < FLAVOURS; i++) {
		weir_urcu *host = attach(flavours[i], 0);
		weir_var *var = variable(1);
		struct reader reader;

		begin_to_read(&reader, var);
		assign(var, 2);
		cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
		cr_assert_eq(live_versions(), 2);
		end_reading(&reader);
		cr_assert_eq(reader.before, 1);
		cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "the section has ended, but no grace period");
		weir_urcu_synchronize(host);
		flush_all();
		cr_assert_eq(live_versions(), 1);
		detach(host);
		cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
		expect_nothing_left();
	}
}

/* A grace period that began before the replacement says nothing of it. */
Test(urcu, a_later_replacement_needs_a_later_grace_period)
{
	for (size_t i = 0; i < FLAVOURS; i++) {
		weir_urcu *host = attach(flavours[i], 0);
		weir_var *var = variable(1);

		weir_urcu_synchronize(host);
		assign(var, 2);
		cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
		weir_urcu_synchronize(host);
		flush_all();
		detach(host);
		cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
		expect_nothing_left();
	}
}

/* The cell of a commit dies when a collection meets it (WEIRI_DIES_LATE), all else when it is replaced. */
Test(urcu, an_inline_value_needs_one_grace_period_and_a_commit_one_more)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(int64_t)};
	weir_urcu *host = attach(&urcu_memb_flavor, 0);
	weir_var *var, *both[2] = {variable(1), variable(1)};
	int64_t value = 1;

	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(value), &options, &var, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign_value(var, WEIR_VALUE_OF(value), 0, NULL, NULL), WEIR_OK);
	weir_urcu_synchronize(host);
	flush_all();
	cr_assert_eq(commit_all(both, 2, 1, 2, NULL), WEIR_OK);
	weir_urcu_synchronize(host);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(live_versions(), 3, "only the cell is left");
	weir_urcu_synchronize(host);
	flush_all();
	detach(host);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(both[0], NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(both[1], NULL), WEIR_OK);
	expect_nothing_left();
}

Test(urcu, a_peek_shows_the_newest_version_and_is_no_handle)
{
	weir_urcu *host = attach(&urcu_bp_flavor, 0);
	weir_var *var = variable(7), *empty = empty_variable("empty");
	const weir_read *read;
	weir_read copy;

	real->read_lock();
	read = weir_urcu_peek(var);
	cr_assert_eq(value_of(read), 7);
	cr_assert_eq(read->version, 1);
	assign(var, 8);
	cr_assert_eq(value_of(weir_urcu_peek(var)), 8);
	cr_assert_eq(value_of(read), 7);
	copy = *read;
	weir_read_release(&copy); /* of a copy; there is nothing to release */
	cr_assert_eq(value_of(read), 7);
	cr_assert_null(weir_urcu_peek(empty));
	cr_assert_null(weir_urcu_peek(NULL));
	unlock();
	detach(host);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(empty, NULL), WEIR_OK);
	expect_nothing_left();
}

/* Two variables, first the one with the lower address, and a commit to both. */
struct pair {
	weir_var *vars[2];
	enum weir_status status;
};

static void commit_pair(void *context)
{
	struct pair *pair = context;

	pair->status = commit_all(pair->vars, 2, 1, 9, NULL);
}

static void expect_peek(weir_var *var, int64_t value, const char *when)
{
	real->read_lock();
	cr_assert_eq(value_of(weir_urcu_peek(var)), value, "%s", when);
	unlock();
}

Test(urcu, a_peek_looks_through_a_commit_that_has_not_succeeded)
{
	weir_var *a, *b, *low;
	struct weiri_version *before;
	struct pair pair;
	struct stepped commit = {.prepare = meet_weir, .call = commit_pair, .context = &pair};
	weir_urcu *host;
	int stands;

	stepped_or_skip();
	host = attach(&urcu_bp_flavor, 0);
	a = variable(7), b = variable(7);
	low = (uintptr_t)a < (uintptr_t)b ? a : b;
	pair = (struct pair){.vars = {low, low == a ? b : a}};
	before = weiri_load_seq_cst(&low->head);
	stands = stepped_start(&commit, 0);
	while (stands && weiri_load_seq_cst(&low->head) == before)
		stands = stepped_next(&commit);
	cr_assert(stands, "a commit of two parts never stands with one part installed");
	expect_peek(low, 7, "undecided");
	assign(pair.vars[1], 8);
	stepped_finish(&commit);
	cr_assert_eq(pair.status, WEIR_ABORTED);
	cr_assert_neq(weiri_load_seq_cst(&low->head), before, "the aborted version is still there");
	expect_peek(low, 7, "aborted");
	detach(host);
	cr_assert_eq(weir_var_destroy(a, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(b, NULL), WEIR_OK);
	expect_nothing_left();
}

/* -- a reader that is stopped ------------------------------------------------------------------ */

static weir_var *large_variable(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "large",
	                                   .allocator = &variables_memory};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	return var;
}

static enum weir_status assign_large(weir_var *var, int64_t first, uint64_t deadline_ns)
{
	static const weir_shape shape = {.rank = 1, .dims = {8192}};
	static int64_t elements[8192];
	weir_tensor *tensor = NULL;
	enum weir_status status;

	elements[0] = first;
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &shape, elements, &variables_memory, &tensor), WEIR_OK);
	status = weir_var_assign(var, tensor, deadline_ns, NULL, NULL);
	weir_tensor_release(tensor);
	return status;
}

static size_t stalls_of_hosts;

static void note_host(void *context, const struct weir_stall *stall)
{
	(void)context;
	if (stall->kind != WEIR_STALL_HOST)
		return;
	stalls_of_hosts++;
	cr_assert_eq(stall->thread, 0);
	cr_assert_geq(stall->age_ns, UINT64_C(20000000));
}

static size_t host_stalls_after(uint64_t limit_ns)
{
	uint64_t until = weir_deadline_in(patience_ns);

	for (stalls_of_hosts = 0; stalls_of_hosts == 0;) {
		cr_assert_eq(weir_stalls_visit(limit_ns, note_host, NULL, NULL), WEIR_OK);
		cr_assert_lt(weir_now_ns(), until);
	}
	return stalls_of_hosts;
}

/* Writes until the budget refuses; returns how many writes that took. */
static int write_until_refused(weir_var *var)
{
	int writes = 0;

	while (assign_large(var, writes, 0) == WEIR_OK)
		cr_assert_lt(++writes, 1000, "the heap grows without a bound");
	return writes;
}

Test(urcu, a_stopped_reader_is_reported_and_cut_off_by_the_budget)
{
	weir_reclaim_set_budget(BUDGET);
	for (size_t i = 0; i < FLAVOURS; i++) {
		weir_urcu *host = attach(flavours[i], 0);
		weir_var *var = large_variable();
		struct reader reader;

		cr_assert_eq(assign_large(var, 5, 0), WEIR_OK);
		begin_to_read(&reader, var);
		cr_assert_geq(write_until_refused(var), BUDGET / 65536 / 2);
		cr_assert_leq(stats_now().retired_bytes, (uint64_t)2 * BUDGET);
		cr_assert_eq(assign_large(var, 6, weir_deadline_in(2000000)), WEIR_RESOURCE_EXHAUSTED);
		cr_assert_eq(host_stalls_after(20000000), 1);
		end_reading(&reader);
		weir_urcu_synchronize(host);
		cr_assert_eq(assign_large(var, 7, weir_deadline_in(patience_ns)), WEIR_OK);
		detach(host);
		cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
		expect_nothing_left();
	}
	weir_reclaim_set_budget(0);
}

struct ear {
	_Atomic(uint32_t) heard; /* how often */
};

static void hear(void *context, const struct weir_stall *stall)
{
	struct ear *ear = context;

	if (stall->kind == WEIR_STALL_HOST)
		weiri_fetch_add_relaxed(&ear->heard, 1u);
}

Test(urcu, the_stall_hook_hears_of_a_stopped_reader)
{
	static struct ear ear;
	static const weir_stall_hook hook = {.fn = hear, .context = &ear};
	weir_urcu *host = attach(&urcu_memb_flavor, 0);
	uint64_t until = weir_deadline_in(patience_ns);
	weir_var *var = large_variable();
	struct reader reader;

	weir_reclaim_set_budget(BUDGET);
	cr_assert_eq(assign_large(var, 0, 0), WEIR_OK);
	begin_to_read(&reader, var);
	weir_stalls_set_hook(2000000, &hook);
	for (int64_t i = 1; weiri_load_relaxed(&ear.heard) == 0; i++) {
		(void)assign_large(var, i, 0); /* refused in the end, and then it still collects and reports */
		cr_assert_lt(weir_now_ns(), until);
	}
	weir_stalls_set_hook(0, NULL);
	end_reading(&reader);
	weir_urcu_synchronize(host);
	detach(host);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	weir_reclaim_set_budget(0);
	expect_nothing_left();
}

struct writer {
	weir_var *var;
	_Atomic(uint32_t) done;
	enum weir_status status;
};

static void *write_and_wait(void *context)
{
	struct writer *writer = context;

	writer->status = assign_large(writer->var, 1, weir_deadline_in(patience_ns));
	latch_open(&writer->done);
	return NULL;
}

Test(urcu, a_writer_that_waits_for_memory_goes_on_after_a_grace_period)
{
	weir_urcu *host = attach(&urcu_memb_flavor, 0);
	struct writer writer = {.var = large_variable()};
	pthread_t thread;

	weir_reclaim_set_budget(BUDGET);
	(void)write_until_refused(writer.var);
	thread = start(write_and_wait, &writer);
	weir_urcu_synchronize(host);
	latch_pass(&writer.done);
	join(thread);
	cr_assert_eq(writer.status, WEIR_OK);
	detach(host);
	cr_assert_eq(weir_var_destroy(writer.var, NULL), WEIR_OK);
	weir_reclaim_set_budget(0);
	expect_nothing_left();
}

/* -- a flavour whose grace periods end when the test says so ----------------------------------- */

enum { HEADS = 2 * WEIR_URCU_STARTED };

static struct by_hand {
	weir_var *var;                 /* what a waiter looks at */
	struct rcu_head *heads[HEADS]; /* the callbacks that have not run */
	void (*function)(struct rcu_head *head);
	size_t called, waited, barriers;
	bool lands_at_once;
} by_hand;

static void land_by_hand(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rcu_head *head = by_hand.heads[i];

		by_hand.heads[i] = NULL;
		if (head != NULL)
			by_hand.function(head);
	}
}

static void call_by_hand(struct rcu_head *head, void (*function)(struct rcu_head *head))
{
	cr_assert_lt(by_hand.called, HEADS);
	by_hand.heads[by_hand.called++] = head;
	by_hand.function = function;
	if (by_hand.lands_at_once)
		land_by_hand(by_hand.called);
}

/* What was replaced before the wait is kept until its end, and what is replaced during it longer. */
static void synchronize_by_hand(void)
{
	by_hand.waited++;
	if (by_hand.var == NULL)
		return;
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	assign(by_hand.var, 3);
}

static void barrier_by_hand(void)
{
	by_hand.barriers++;
	land_by_hand(by_hand.called);
}

static const struct rcu_flavor_struct flavour_by_hand = {
	.update_call_rcu = call_by_hand, .update_synchronize_rcu = synchronize_by_hand, .barrier = barrier_by_hand};

static weir_urcu *attach_by_hand(uint32_t flags)
{
	struct weir_urcu_options options = {WEIR_URCU_OPTIONS_INIT, .flags = flags, .allocator = &variables_memory};
	weir_urcu *host = NULL;

	by_hand = (struct by_hand){.var = NULL};
	cr_assert_eq(weir_urcu_attach(&flavour_by_hand, &options, &host, NULL), WEIR_OK);
	return host;
}

Test(urcu, a_grace_period_ends_what_was_replaced_before_it_and_no_more)
{
	weir_urcu *host = attach_by_hand(0);
	weir_var *var = variable(1);

	assign(var, 2);
	by_hand.var = var;
	weir_urcu_synchronize(host);
	by_hand.var = NULL;
	cr_assert_eq(by_hand.waited, 1);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "replaced during the grace period");
	cr_assert_eq(live_versions(), 2);
	weir_urcu_synchronize(host);
	flush_all();
	cr_assert_eq(live_versions(), 1);
	assign(var, 4);
	by_hand.var = var;
	detach(host);
	cr_assert_eq(by_hand.waited, 3, "a detach waits for a grace period, while the host is still there");
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

Test(urcu, a_callback_ends_what_was_replaced_before_the_start)
{
	weir_urcu *host = attach_by_hand(0);
	weir_var *var = variable(1);

	assign(var, 2);
	cr_assert_eq(weir_urcu_try_start(host), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(by_hand.called, 1, "without the flag no collection starts a grace period");
	assign(var, 3);
	land_by_hand(1);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED, "replaced after the start");
	cr_assert_eq(live_versions(), 2);
	by_hand.lands_at_once = true;
	cr_assert_eq(weir_urcu_try_start(host), WEIR_OK);
	flush_all();
	cr_assert_eq(live_versions(), 1);
	detach(host);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

Test(urcu, each_started_grace_period_is_ended_by_a_detach)
{
	for (size_t started = 0; started <= WEIR_URCU_STARTED; started++) {
		weir_urcu *host = attach_by_hand(0);

		for (size_t i = 0; i < started; i++)
			cr_assert_eq(weir_urcu_try_start(host), WEIR_OK);
		cr_assert_eq(weir_urcu_try_start(host), started < WEIR_URCU_STARTED ? WEIR_OK : WEIR_WOULD_BLOCK);
		land_by_hand(started / 2);
		detach(host);
		cr_assert_eq(by_hand.barriers, 1);
		for (size_t i = 0; i < HEADS; i++)
			cr_assert_null(by_hand.heads[i]);
		expect_nothing_left();
	}
}

Test(urcu, collections_start_grace_periods_until_the_detach)
{
	weir_urcu *host = attach_by_hand(WEIR_URCU_CALL_RCU);
	weir_var *var = variable(1);

	assign(var, 2);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	cr_assert_geq(by_hand.called, 1);
	detach(host);
	by_hand.called = 0;
	assign(var, 3);
	flush_all();
	cr_assert_eq(by_hand.called, 0);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

/* -- call_rcu() -------------------------------------------------------------------------------- */

Test(urcu, started_grace_periods_end_without_a_wait)
{
	for (size_t i = 0; i < FLAVOURS; i++) {
		weir_urcu *host = attach(flavours[i], 0);
		weir_var *var = variable(1);
		struct reader reader;
		enum weir_status status;
		int started = 0;

		real->register_thread();
		begin_to_read(&reader, var);
		assign(var, 2);
		while ((status = weir_urcu_try_start(host)) == WEIR_OK)
			started++;
		cr_assert_eq(status, WEIR_WOULD_BLOCK);
		cr_assert_eq(started, WEIR_URCU_STARTED);
		cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
		end_reading(&reader);
		real->thread_offline();
		flush_all();
		real->thread_online();
		detach(host);
		real->unregister_thread();
		cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
		expect_nothing_left();
	}
	cr_assert_eq(weir_urcu_try_start(NULL), WEIR_INVALID_ARGUMENT);
}

enum { READERS = 2, WRITES = 400 };

struct crowd {
	weir_var *var;
	_Atomic(uint32_t) stop;
};

static void *read_and_read(void *context)
{
	struct crowd *crowd = context;
	int64_t last = 0;

	real->register_thread();
	while (weiri_load_acquire(&crowd->stop) == 0) {
		const int64_t *elements;

		real->read_lock();
		elements = weir_tensor_data(weir_urcu_peek(crowd->var)->tensor);
		cr_assert_geq(elements[0], last);
		last = elements[0];
		cr_assert_eq(elements[8191], 0, "freed memory is poisoned");
		unlock();
	}
	real->unregister_thread();
	return NULL;
}

/* No thread but call_rcu()'s waits for readers, and the writer never needs more than the budget. */
Test(urcu, collections_start_grace_periods_by_themselves)
{
	weir_reclaim_set_budget(BUDGET);
	for (size_t i = 0; i < FLAVOURS; i++) {
		weir_urcu *host = attach(flavours[i], WEIR_URCU_CALL_RCU);
		uint64_t until = weir_deadline_in(patience_ns);
		struct crowd crowd = {.var = large_variable()};
		pthread_t threads[READERS];

		real->register_thread();
		cr_assert_eq(assign_large(crowd.var, 0, 0), WEIR_OK);
		for (size_t t = 0; t < READERS; t++)
			threads[t] = start(read_and_read, &crowd);
		for (int64_t w = 1; w <= WRITES; w++) {
			/* An online thread of qsbr must not wait, for it would wait for itself. */
			while (assign_large(crowd.var, w, 0) == WEIR_RESOURCE_EXHAUSTED) {
				real->read_quiescent_state();
				cr_assert_lt(weir_now_ns(), until);
			}
		}
		latch_open(&crowd.stop);
		for (size_t t = 0; t < READERS; t++)
			join(threads[t]);
		cr_assert_leq(stats_now().peak_retired_bytes, (uint64_t)2 * BUDGET);
		detach(host);
		real->unregister_thread();
		cr_assert_eq(weir_var_destroy(crowd.var, NULL), WEIR_OK);
		expect_nothing_left();
	}
	weir_reclaim_set_budget(0);
}

/* -- attaching --------------------------------------------------------------------------------- */

Test(urcu, nothing_waits_for_a_flavour_that_is_detached)
{
	weir_var *var = variable(1);

	for (int i = 0; i < 20; i++) {
		weir_urcu *one = attach(&urcu_memb_flavor, 0), *other = attach(&urcu_memb_flavor, WEIR_URCU_CALL_RCU);
		uint64_t records = stats_now().threads;

		detach(one);
		detach(other);
		cr_assert_leq(stats_now().threads, records, "the records are used again");
		assign(var, i);
		flush_all();
	}
	cr_assert_leq(stats_now().threads, 16);
	cr_assert_eq(weir_urcu_detach(NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

/* Each of two flavours keeps what its own sections may see. */
Test(urcu, two_flavours_are_waited_for_both)
{
	weir_urcu *one = attach(&urcu_bp_flavor, 0), *other = attach(&urcu_memb_flavor, 0);
	weir_var *var = variable(1);

	assign(var, 2);
	weir_urcu_synchronize(one);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
	weir_urcu_synchronize(other);
	flush_all();
	detach(one);
	detach(other);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

Test(urcu, bad_arguments_are_refused)
{
	struct weir_urcu_options options = {WEIR_URCU_OPTIONS_INIT, .flags = 2};
	struct rcu_flavor_struct partial[] = {urcu_memb_flavor, urcu_memb_flavor, urcu_memb_flavor};
	weir_urcu *hosts[WEIR_URCU_FLAVOURS], *host = NULL;
	weir_var *var = variable(1);
	weir_error error;

	cr_assert_eq(weir_urcu_attach(NULL, NULL, &host, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "urcu: the flavour is NULL");
	cr_assert_eq(weir_urcu_attach(&urcu_memb_flavor, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_urcu_attach(&urcu_memb_flavor, &options, &host, &error), WEIR_INVALID_ARGUMENT);
	options = (struct weir_urcu_options){.struct_size = 3};
	cr_assert_eq(weir_urcu_attach(&urcu_memb_flavor, &options, &host, &error), WEIR_INVALID_ARGUMENT);
	partial[0].update_synchronize_rcu = NULL;
	partial[1].update_call_rcu = NULL;
	partial[2].barrier = NULL;
	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(weir_urcu_attach(&partial[i], NULL, &host, &error), WEIR_INVALID_ARGUMENT);
		cr_assert_str_eq(error.message, "urcu: the flavour lacks synchronize_rcu, call_rcu or rcu_barrier");
	}
	cr_assert_null(host);
	weir_urcu_synchronize(NULL);
	for (int i = 0; i < WEIR_URCU_FLAVOURS; i++)
		hosts[i] = attach(&urcu_memb_flavor, WEIR_URCU_CALL_RCU);
	options =
		(struct weir_urcu_options){WEIR_URCU_OPTIONS_INIT, .flags = WEIR_URCU_CALL_RCU, .allocator = &variables_memory};
	cr_assert_eq(weir_urcu_attach(&urcu_memb_flavor, &options, &host, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_null(host);
	for (int i = 0; i < WEIR_URCU_FLAVOURS; i++)
		detach(hosts[i]);
	assign(var, 2);
	flush_all(); /* no host of a refused attach keeps anything */
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

static enum weir_status attach_with(const weir_allocator *allocator, void *context)
{
	struct weir_urcu_options options = {WEIR_URCU_OPTIONS_INIT, .allocator = allocator};
	weir_urcu *host = NULL;
	enum weir_status status = weir_urcu_attach(&urcu_memb_flavor, &options, &host, NULL);

	(void)context;
	if (status == WEIR_OK)
		cr_assert_eq(weir_urcu_detach(host, NULL), WEIR_OK);
	return status;
}

Test(urcu, attaching_survives_every_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(attach_with, NULL), 1);
}

/* Hosts take the records of ended threads first. One more needs memory for its own. */
Test(urcu, attaching_survives_that_there_is_no_memory_for_a_record)
{
	struct weir_urcu_options options = {WEIR_URCU_OPTIONS_INIT, .allocator = &variables_memory};
	enum { MOST = 4096 };
	static weir_urcu *hosts[MOST];
	enum weir_status status;
	size_t attached = 0;

	weiri_store_relaxed(&no_memory, 1u);
	while ((status = weir_urcu_attach(&urcu_memb_flavor, &options, &hosts[attached], NULL)) == WEIR_OK)
		cr_assert_lt(++attached, MOST);
	weiri_store_relaxed(&no_memory, 0u);
	cr_assert_eq(status, WEIR_RESOURCE_EXHAUSTED);
	for (size_t i = 0; i < attached; i++)
		detach(hosts[i]);
	expect_nothing_left();
}

/* -- fork -------------------------------------------------------------------------------------- */

static int use_in_child(weir_urcu *host, weir_var *var)
{
	weir_tensor *tensor = NULL;
	enum weir_status status;

	if (weir_tensor_scalar_i64(3, &tensor) != WEIR_OK)
		return __LINE__;
	status = weir_var_assign(var, tensor, 0, NULL, NULL);
	weir_tensor_release(tensor);
	if (status != WEIR_OK)
		return __LINE__;
	if (weir_reclaim_flush(0) != WEIR_DEADLINE_EXCEEDED)
		return __LINE__; /* the host is attached in the child too */
	real->read_lock();
	if (value_of(weir_urcu_peek(var)) != 3)
		return __LINE__;
	real->read_unlock();
	real->read_quiescent_state();
	weir_urcu_synchronize(host);
	if (weir_reclaim_flush(weir_deadline_in(patience_ns)) != WEIR_OK)
		return __LINE__;
	return weir_urcu_detach(host, NULL) == WEIR_OK ? 0 : __LINE__;
}

/* `use` returns 0, or the line that failed. */
static void in_child(int (*use)(weir_urcu *host, weir_var *var), weir_urcu *host, weir_var *var)
{
	int status;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		(void)alarm(300);
		_exit(use(host, var) & 255);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child failed in line %d, modulo 256",
	          WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

Test(urcu, the_child_of_a_fork_has_the_flavour)
{
	weir_urcu *host = attach(&urcu_memb_flavor, 0);
	weir_var *var = variable(1);

	real->register_thread();
	assign(var, 2);
	in_child(use_in_child, host, var);
	weir_urcu_synchronize(host);
	flush_all();
	detach(host);
	real->unregister_thread();
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

static int detach_what_is_idle(weir_urcu *host, weir_var *var)
{
	(void)var;
	return weir_urcu_detach(host, NULL) == WEIR_OK ? 0 : __LINE__;
}

/* A host that has started nothing waits for no thread of the parent. */
Test(urcu, the_child_of_a_fork_detaches_a_host_of_call_rcu_that_is_idle)
{
	weir_urcu *host = attach(&urcu_memb_flavor, WEIR_URCU_CALL_RCU);

	in_child(detach_what_is_idle, host, NULL);
	detach(host);
	expect_nothing_left();
}

/* A thread that is inside call_rcu(), before the callback is queued or after it has run. */
static _Atomic(uint32_t) in_call, leave_call;

static void call_slowly(struct rcu_head *head, void (*function)(struct rcu_head *head))
{
	latch_open(&in_call);
	latch_pass(&leave_call);
	real->update_call_rcu(head, function);
}

static void call_at_once(struct rcu_head *head, void (*function)(struct rcu_head *head))
{
	real->update_synchronize_rcu();
	function(head);
}

static void call_and_stay(struct rcu_head *head, void (*function)(struct rcu_head *head))
{
	call_at_once(head, function);
	latch_open(&in_call);
	latch_pass(&leave_call);
}

static void *start_one(void *context)
{
	(void)weir_urcu_try_start(context);
	return NULL;
}

/* A flush may find that too many membarriers have just run, so one may not be enough. */
static void *collect(void *context)
{
	while (weiri_load_acquire(&in_call) == 0)
		(void)weir_reclaim_flush(0);
	return context;
}

static int detach_in_child(weir_urcu *host, weir_var *var)
{
	weir_error error = {WEIR_OK, ""};

	shown.update_call_rcu = call_at_once; /* no thread of liburcu's in the child */
	for (int i = 0; i < 2; i++) {         /* the first one has changed nothing */
		if (weir_urcu_detach(host, &error) != WEIR_FAILED_PRECONDITION)
			return __LINE__;
		if (strstr(error.message, "in the child of a fork it may never") == NULL)
			return __LINE__;
	}
	real->read_lock();
	if (value_of(weir_urcu_peek(var)) != 2)
		return __LINE__;
	real->read_unlock();
	weir_urcu_synchronize(host);
	return weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK ? 0 : __LINE__;
}

/* It would wait for a thread that the child does not have. */
Test(urcu, the_child_of_a_fork_does_not_detach_while_a_grace_period_of_the_parent_is_being_started)
{
	static const struct {
		uint32_t flags;
		void (*call)(struct rcu_head *head, void (*function)(struct rcu_head *head));
		void *(*thread)(void *host);
	} cases[] = {{0, call_slowly, start_one}, {WEIR_URCU_CALL_RCU, call_and_stay, collect}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		weir_urcu *host = attach(&urcu_memb_flavor, cases[i].flags);
		weir_var *var = variable(1);
		pthread_t starting;

		weiri_store_relaxed(&in_call, 0u);
		weiri_store_relaxed(&leave_call, 0u);
		shown.update_call_rcu = cases[i].call;
		assign(var, 2);
		starting = start(cases[i].thread, host);
		latch_pass(&in_call);
		real->register_thread();
		in_child(detach_in_child, host, var);
		latch_open(&leave_call);
		join(starting);
		detach(host);
		real->unregister_thread();
		cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
		expect_nothing_left();
	}
}
