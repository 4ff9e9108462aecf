/*
 * test_give_way.c - quick writes wait for a slow one that has asked them to, and for no longer than its
 * moment; and sums of large values are made beside a thread that replaces the value without a pause.
 */
#include "variables.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <weir/read_section.h>
#include <weir/scatter.h>
#include <weir/watch.h>

#include "base/atomic.h"
#include "var/combine.h"
#include "var/give_way.h"

enum { LARGE = 64 << 10, ELEMENTS = LARGE / sizeof(int64_t) };

static const uint64_t short_ns = UINT64_C(20000000);

static __attribute__((constructor)) void set_thresholds(void)
{
	weiri_combine_from = LARGE;
	weiri_way_patience = 1;
	weiri_way_patience_ns = 0;
}

static uint32_t asked(const weir_var *var)
{
	return weiri_load_relaxed(&var->way.asked);
}

static uint32_t asked_of_all(void)
{
	return weiri_load_relaxed(&weiri_ways_asked);
}

static enum weir_status add_one(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)context, (void)error;
	*next = number(*(const int64_t *)weir_tensor_data(current->tensor) + 1);
	return WEIR_OK;
}

enum write { ASSIGN, COMPARE_ASSIGN, EXCHANGE, UPDATE, COMMIT, TXN, WRITES };

static enum weir_status write_to(weir_var *var, weir_var *other, enum write how, uint64_t deadline_ns)
{
	struct weir_commit_part parts[2] = {{other, weir_var_version(other), number(8)},
	                                    {var, weir_var_version(var), number(8)}};
	weir_read replaced = {.hold = NULL};
	enum weir_status status = WEIR_INTERNAL;
	weir_txn *txn;

	switch (how) {
	case ASSIGN: status = weir_var_assign(var, parts[0].value, deadline_ns, NULL, NULL); break;
	case COMPARE_ASSIGN:
		status = weir_var_compare_assign(var, parts[1].expected, parts[0].value, deadline_ns, NULL, NULL);
		break;
	case EXCHANGE: status = weir_var_exchange(var, parts[0].value, deadline_ns, &replaced, NULL); break;
	case UPDATE: status = weir_var_update(var, add_one, NULL, deadline_ns, NULL, NULL); break;
	case COMMIT: status = weir_var_commit(parts, 2, deadline_ns, NULL, NULL); break;
	default:
		cr_assert_eq(weir_txn_begin(NULL, &txn, NULL), WEIR_OK);
		cr_assert_eq(weir_txn_assign(txn, other, parts[0].value, NULL), WEIR_OK);
		cr_assert_eq(weir_txn_assign(txn, var, parts[0].value, NULL), WEIR_OK);
		status = weir_txn_commit(txn, deadline_ns, NULL);
	}
	weir_read_release(&replaced);
	weir_tensor_release(parts[0].value);
	weir_tensor_release(parts[1].value);
	return status;
}

Test(give_way, each_kind_of_write_waits_until_the_moment_and_only_once)
{
	for (enum write how = ASSIGN; how < WRITES; how++) {
		weir_var *var = variable(1), *other = variable(2);
		uint64_t until = weir_deadline_in(short_ns);
		struct weiri_own *asker;

		asker = weiri_way_ask(var, until);
		cr_assert_eq(write_to(var, other, how, WEIR_NO_DEADLINE), WEIR_OK);
		cr_assert_geq(weir_now_ns(), until, "write %d did not wait", how);
		cr_assert_eq(asked(var), 0u, "write %d left the request that has ended", how);
		weiri_way_free(var, asker);
		weir_var_destroy(var, NULL);
		weir_var_destroy(other, NULL);
	}
}

static enum weir_status increment(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)current, (void)error;
	++*(int64_t *)next->room;
	return WEIR_OK;
}

/* It would be made in place, which is quicker than all that the others are asked for. */
Test(give_way, an_update_of_an_inline_value_waits_until_the_moment)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(int64_t)};
	struct weiri_own *asker;
	int64_t zero = 0;
	uint64_t until;
	weir_var *var;

	cr_assert_eq(weir_var_create_value(WEIR_VALUE_OF(zero), &options, &var, NULL), WEIR_OK);
	until = weir_deadline_in(short_ns);
	asker = weiri_way_ask(var, until);
	cr_assert_eq(weir_var_update_value(var, increment, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_geq(weir_now_ns(), until);
	cr_assert_eq(asked(var), 0u);
	weiri_way_free(var, asker);
	weir_var_destroy(var, NULL);
}

Test(give_way, a_write_whose_deadline_has_passed_does_not_wait)
{
	weir_var *var = variable(1), *other = variable(2);
	/* A write that waited would be ended by the time limit of the test. */
	struct weiri_own *asker = weiri_way_ask(var, WEIR_NO_DEADLINE);
	for (enum write how = ASSIGN; how < WRITES; how++) {
		cr_assert_eq(write_to(var, other, how, 0), WEIR_OK);
		cr_assert_eq(write_to(var, other, how, weir_now_ns()), WEIR_OK);
	}
	cr_assert_eq(asked(var), 1u, "the request has not ended");
	weiri_way_free(var, asker);
	weir_var_destroy(var, NULL);
	weir_var_destroy(other, NULL);
}

Test(give_way, a_write_in_a_read_section_does_not_wait)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	weir_var *var = variable(1), *other = variable(2);
	struct weiri_own *asker = weiri_way_ask(var, WEIR_NO_DEADLINE);

	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	for (enum write how = ASSIGN; how < WRITES; how++)
		cr_assert_eq(write_to(var, other, how, WEIR_NO_DEADLINE), WEIR_OK);
	weir_read_section_end(&section);
	weiri_way_free(var, asker);
	weir_var_destroy(var, NULL);
	weir_var_destroy(other, NULL);
}

static void *assign_two(void *context)
{
	assign(context, 2);
	return NULL;
}

Test(give_way, the_end_of_the_request_wakes_all_who_wait)
{
	enum { WAITERS = 4 };
	weir_var *var = variable(1);
	struct weiri_own *asker = weiri_way_ask(var, WEIR_NO_DEADLINE);
	pthread_t waiter[WAITERS];

	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(pthread_create(&waiter[i], NULL, assign_two, var), 0);
	cr_assert_eq(weir_var_version(var), 1u);
	weiri_way_free(var, asker);
	for (int i = 0; i < WAITERS; i++)
		cr_assert_eq(pthread_join(waiter[i], NULL), 0);
	cr_assert_eq(weir_var_version(var), 1u + WAITERS);
	weir_var_destroy(var, NULL);
}

/* -- sums beside exchanges --------------------------------------------------------------------- */

enum { ADDERS = 3, SUMS = 30 };

static struct {
	weir_var *var;
	weir_tensor *zeros, *ones;
	_Atomic(int) adding;
	int64_t taken;
} crowd;

static weir_tensor *filled(int64_t value)
{
	int64_t values[ELEMENTS];
	weir_tensor *tensor;

	for (size_t i = 0; i < ELEMENTS; i++)
		values[i] = value;
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {ELEMENTS}}, values, &variables_memory, &tensor),
	             WEIR_OK);
	return tensor;
}

static int64_t number_in(const weir_tensor *tensor)
{
	const int64_t *data = weir_tensor_data(tensor);

	for (size_t i = 1; i < ELEMENTS; i++)
		cr_assert_eq(data[i], data[0]);
	return data[0];
}

static void *add_ones(void *context)
{
	(void)context;
	for (int i = 0; i < SUMS; i++)
		cr_assert_eq(weir_var_assign_add(crowd.var, crowd.ones, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	(void)weiri_fetch_sub_release(&crowd.adding, 1); /* pairs with exchange_all() */
	return NULL;
}

static void *exchange_all(void *context)
{
	(void)context;
	while (weiri_load_acquire(&crowd.adding) != 0) { /* pairs with add_ones() */
		weir_read replaced;

		cr_assert_eq(weir_var_exchange(crowd.var, crowd.zeros, WEIR_NO_DEADLINE, &replaced, NULL), WEIR_OK);
		crowd.taken += *(const int64_t *)weir_tensor_data(replaced.tensor);
		weir_read_release(&replaced);
	}
	return NULL;
}

Test(give_way, sums_are_made_beside_a_thread_that_exchanges_without_a_pause)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &variables_memory};
	pthread_t adder[ADDERS], exchanger;
	weir_read last;

	crowd.zeros = filled(0);
	crowd.ones = filled(1);
	crowd.taken = 0;
	weiri_store_relaxed(&crowd.adding, (int)ADDERS); /* [relaxed] before the threads */
	cr_assert_eq(weir_var_create(crowd.zeros, &options, &crowd.var, NULL), WEIR_OK);
	cr_assert_eq(pthread_create(&exchanger, NULL, exchange_all, NULL), 0);
	for (int i = 0; i < ADDERS; i++)
		cr_assert_eq(pthread_create(&adder[i], NULL, add_ones, NULL), 0);
	for (int i = 0; i < ADDERS; i++)
		cr_assert_eq(pthread_join(adder[i], NULL), 0);
	cr_assert_eq(pthread_join(exchanger, NULL), 0);
	cr_assert_eq(asked(crowd.var), 0u);
	cr_assert_eq(asked_of_all(), 0u);
	cr_assert_eq(weir_var_read(crowd.var, &last), WEIR_OK);
	cr_assert_eq(crowd.taken + number_in(last.tensor), ADDERS * SUMS);
	weir_read_release(&last);
	weir_var_destroy(crowd.var, NULL);
	weir_tensor_release(crowd.zeros);
	weir_tensor_release(crowd.ones);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
}

/* -- a sum that is overtaken time and again ----------------------------------------------------- */

enum { LOSSES = 3 };

/* The calls that ask this allocator for a large value stand still there in turn, until each is let go on. */
static struct {
	_Atomic(uint32_t) standing, let_go;
} turnstile;

static void *allocate_in_turn(void *context, size_t size, size_t alignment)
{
	if (size > LARGE && weiri_load_relaxed(&turnstile.standing) < LOSSES) {
		uint32_t turn = weiri_fetch_add_release(&turnstile.standing, 1u); /* pairs with await_the_sum() */

		while (weiri_load_acquire(&turnstile.let_go) <= turn) /* pairs with let_the_sum_go() */
			(void)sched_yield();
	}
	return variables_memory.allocate(context, size, alignment);
}

static void await_the_sum(uint32_t turn)
{
	while (weiri_load_acquire(&turnstile.standing) <= turn) /* pairs with allocate_in_turn() */
		(void)sched_yield();
}

static void let_the_sum_go(uint32_t turn)
{
	weiri_store_release(&turnstile.let_go, turn + 1); /* pairs with allocate_in_turn() */
}

static weir_tensor *zeros_of(int64_t elements)
{
	weir_tensor_builder *builder = NULL;
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_builder_create(WEIR_I64, &(weir_shape){1, {elements}}, &variables_memory, &builder, NULL),
	             WEIR_OK);
	memset(weir_tensor_builder_data(builder), 0, (size_t)elements * sizeof(int64_t));
	cr_assert_eq(weir_tensor_builder_finish(builder, &tensor), WEIR_OK);
	return tensor;
}

/* A call that is overtaken by a value of another shape needs memory once more. */
static void *add_to_first_row(void *var)
{
	int64_t zero = 0;
	weir_tensor *one = number(1), *row;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {1}}, &zero, &variables_memory, &row), WEIR_OK);
	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, row, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(one);
	weir_tensor_release(row);
	return NULL;
}

Test(give_way, a_sum_that_loses_after_its_moment_asks_again_and_counts_once)
{
	weir_allocator in_turn = {allocate_in_turn, variables_memory.release, variables_memory.context};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &in_turn};
	weir_tensor *zeros = zeros_of(ELEMENTS);
	pthread_t adder;
	weir_var *var;

	cr_assert_eq(weir_var_create(zeros, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(zeros);
	cr_assert_eq(pthread_create(&adder, NULL, add_to_first_row, var), 0);
	for (uint32_t turn = 0; turn < LOSSES; turn++) {
		await_the_sum(turn);
		cr_assert_eq(asked(var), turn == 0 ? 0u : 1u, "after %u losses", turn);
		cr_assert_eq(asked_of_all(), turn == 0 ? 0u : 1u, "after %u losses", turn);
		zeros = zeros_of((turn + 2) * (int64_t)ELEMENTS);
		cr_assert_eq(weir_var_assign(var, zeros, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK); /* after the moment */
		weir_tensor_release(zeros);
		cr_assert_eq(asked(var), 0u);
		let_the_sum_go(turn);
	}
	cr_assert_eq(pthread_join(adder, NULL), 0);
	cr_assert_eq(asked(var), 0u);
	cr_assert_eq(asked_of_all(), 0u);
	cr_assert_eq(value_in(var), 1);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- a slow update beside assigns -------------------------------------------------------------- */

enum { OVERTAKES = 3, MORE = 2 };

static struct {
	weir_var *var;
	unsigned calls, overtaken;                   /* the first calls are overtaken */
	uint32_t asked_before[OVERTAKES + MORE + 1]; /* each call of the function */
} slow;

/* Another write is first in the first calls, if need be when the moment of the request has passed. */
static enum weir_status add_slowly(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	cr_assert_leq(slow.calls, slow.overtaken);
	slow.asked_before[slow.calls++] = asked(slow.var);
	if (slow.calls <= slow.overtaken)
		assign(slow.var, 10);
	return add_one(context, current, next, error);
}

/* An update by add_slowly() asks before call number OVERTAKES, counted from 0. */
static void begin_slowly(unsigned overtaken)
{
	slow.var = variable(1);
	slow.calls = 0;
	slow.overtaken = overtaken;
	weiri_way_patience = OVERTAKES - 1;
}

static enum weir_status update_slowly(void)
{
	return weir_var_update(slow.var, add_slowly, NULL, WEIR_NO_DEADLINE, NULL, NULL);
}

Test(give_way, an_update_asks_after_as_many_losses_as_it_has_patience_for)
{
	begin_slowly(OVERTAKES);
	cr_assert_eq(update_slowly(), WEIR_OK);
	cr_assert_eq(slow.calls, OVERTAKES + 1u);
	for (unsigned i = 0; i < OVERTAKES; i++)
		cr_assert_eq(slow.asked_before[i], 0u, "asked before call %u", i);
	cr_assert_eq(slow.asked_before[OVERTAKES], 1u);
	cr_assert_eq(asked(slow.var), 0u, "the request ends with the update");
	cr_assert_eq(asked_of_all(), 0u);
	cr_assert_eq(value_in(slow.var), 11);
	weir_var_destroy(slow.var, NULL);
}

Test(give_way, an_update_that_loses_after_its_moment_asks_again_and_counts_once)
{
	begin_slowly(OVERTAKES + MORE);
	cr_assert_eq(update_slowly(), WEIR_OK);
	for (unsigned i = 0; i <= MORE; i++)
		cr_assert_eq(slow.asked_before[OVERTAKES + i], 1u, "call %u after the request", i);
	cr_assert_eq(asked(slow.var), 0u);
	cr_assert_eq(asked_of_all(), 0u);
	weir_var_destroy(slow.var, NULL);
}

Test(give_way, an_update_ends_no_other_request_of_its_thread)
{
	weir_var *other = variable(1);
	struct weiri_own *mine = weiri_way_ask(other, WEIR_NO_DEADLINE);

	begin_slowly(OVERTAKES);
	cr_assert_eq(update_slowly(), WEIR_OK);
	cr_assert_eq(slow.asked_before[OVERTAKES], 1u);
	cr_assert_eq(asked(other), 1u);
	cr_assert_eq(asked_of_all(), 1u);
	weiri_way_free(other, mine);
	cr_assert_eq(asked_of_all(), 0u);
	weir_var_destroy(slow.var, NULL);
	weir_var_destroy(other, NULL);
}

static enum weir_status fail_when_asked(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	return asked(slow.var) != 0 ? WEIR_DATA_LOSS : add_slowly(context, current, next, error);
}

Test(give_way, the_request_of_an_update_that_fails_ends_with_it)
{
	begin_slowly(OVERTAKES);
	cr_assert_eq(weir_var_update(slow.var, fail_when_asked, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_DATA_LOSS);
	cr_assert_eq(asked(slow.var), 0u);
	cr_assert_eq(asked_of_all(), 0u);
	weir_var_destroy(slow.var, NULL);
}

/* -- how long an update asks ------------------------------------------------------------------- */

static const uint64_t longest_ns = UINT64_C(100000000);

struct timed {
	uint64_t takes_ns; /* the second call; the others take no time */
	uint64_t begun_ns, ended_ns, asked_ns, until_ns;
};

static enum weir_status add_in_time(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	struct timed *timed = context;
	uint64_t now = weir_now_ns();

	if (slow.calls == 0)
		timed->begun_ns = now;
	if (slow.calls == slow.overtaken) {
		timed->asked_ns = now;
		timed->until_ns = weiri_load_relaxed(&slow.var->way.until_ns);
	}
	while (slow.calls == 1 && weir_now_ns() - now < timed->takes_ns)
		;
	timed->ended_ns = slow.calls == 1 ? weir_now_ns() : timed->ended_ns;
	return add_slowly(NULL, current, next, error);
}

static uint64_t least_of(uint64_t x, uint64_t y)
{
	return x < y ? x : y;
}

Test(give_way, an_update_asks_for_as_long_as_two_attempts_take_but_for_100_ms_at_most)
{
	for (int i = 0; i < 2; i++) {
		struct timed timed = {.takes_ns = i == 0 ? UINT64_C(2000000) : 3 * longest_ns / 2};

		begin_slowly(2);
		weiri_way_patience = 1;
		cr_assert_eq(weir_var_update(slow.var, add_in_time, &timed, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_assert_eq(slow.asked_before[2], 1u);
		cr_expect_geq(timed.until_ns, timed.ended_ns + least_of(2 * timed.takes_ns, longest_ns));
		cr_expect_leq(timed.until_ns, timed.asked_ns + least_of(2 * (timed.asked_ns - timed.begun_ns), longest_ns));
		weir_var_destroy(slow.var, NULL);
	}
}

/* -- threads that end before their requests ---------------------------------------------------- */

/* As add_slowly(), but the thread ends in its update once it has asked, and leaves the handle of the update. */
static enum weir_status end_slowly(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	if (asked(slow.var) != 0) {
		cr_assert_eq(asked_of_all(), 1u);
		*(weir_read *)context = *current;
		pthread_exit(context);
	}
	return add_slowly(context, current, next, error);
}

static void *update_and_end(void *left)
{
	(void)weir_var_update(slow.var, end_slowly, left, WEIR_NO_DEADLINE, NULL, NULL);
	return NULL;
}

Test(give_way, a_thread_that_ends_in_its_update_is_counted_no_more)
{
	weir_read left = {.hold = NULL};
	pthread_t thread;
	void *ended = NULL;

	begin_slowly(OVERTAKES);
	cr_assert_eq(pthread_create(&thread, NULL, update_and_end, &left), 0);
	cr_assert_eq(pthread_join(thread, &ended), 0);
	cr_assert_eq(ended, (void *)&left, "the update has not asked");
	cr_assert_eq(asked_of_all(), 0u);
	weir_read_release(&left);
	/* Its request ends by time. */
	cr_assert_eq(weir_var_update(slow.var, add_one, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_eq(asked(slow.var), 0u);
	weir_var_destroy(slow.var, NULL);
}

static void *ask_and_end(void *var)
{
	cr_assert_eq(weir_reclaim_prepare_thread(), WEIR_OK);
	return weiri_way_ask(var, WEIR_NO_DEADLINE);
}

static void *ask_free_and_end(void *var)
{
	struct weiri_own *asker = ask_and_end(var);

	weiri_way_free(var, asker);
	return asker;
}

static void *end_of(void *(*main)(void *), weir_var *var)
{
	pthread_t thread;
	void *asker;

	cr_assert_eq(pthread_create(&thread, NULL, main, var), 0);
	cr_assert_eq(pthread_join(thread, &asker), 0);
	return asker;
}

Test(give_way, a_thread_that_has_ended_its_request_is_counted_no_more)
{
	weir_var *var = variable(1);

	(void)end_of(ask_free_and_end, var);
	cr_assert_eq(asked(var), 0u);
	cr_assert_eq(asked_of_all(), 0u);
	weir_var_destroy(var, NULL);
}

/* As a coroutine does that goes on elsewhere. */
Test(give_way, a_request_of_a_thread_that_has_ended_is_ended_by_another)
{
	weir_var *var = variable(1);
	struct weiri_own *mine = weiri_way_ask(var, WEIR_NO_DEADLINE);
	void *asker = end_of(ask_and_end, var);

	cr_assert_eq(asked_of_all(), 1u);
	weiri_way_free(var, asker);
	cr_assert_eq(asked(var), 0u);
	cr_assert_eq(asked_of_all(), 1u, "what is gone was counted less once more");
	cr_assert_eq(end_of(ask_free_and_end, var), asker, "another thread has what the first one kept");
	cr_assert_eq(asked_of_all(), 1u, "the first one left something behind");
	weiri_way_free(var, mine);
	cr_assert_eq(asked_of_all(), 0u);
	weir_var_destroy(var, NULL);
}

/* -- what completions find --------------------------------------------------------------------- */

/* The update that publishes the version has ended its request. So the write does not wait, and the variable may end. */
static void write_and_destroy(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	(void)context, (void)error;
	cr_assert_eq(status, WEIR_OK);
	weir_read_release(read);
	cr_assert_eq(asked(slow.var), 0u, "a completion waits for the thread that runs it");
	(void)assign_two(slow.var);
	cr_assert_eq(weir_var_destroy(slow.var, NULL), WEIR_OK);
	slow.var = NULL;
}

Test(give_way, a_request_ends_before_the_completions_of_the_update)
{
	enum { LAST = 1 + OVERTAKES };

	begin_slowly(OVERTAKES);
	cr_assert_eq(weir_var_start_wait(slow.var, LAST, write_and_destroy, NULL, NULL, NULL), WEIR_OK);
	cr_assert_eq(update_slowly(), WEIR_OK);
	cr_assert_eq(slow.asked_before[OVERTAKES], 1u);
	cr_assert_null(slow.var);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	cr_assert_str_eq(failing_allocator_verdict(&variables_state), "balanced");
}

/* Another waits until a later moment than the first, and the request of the first is ended by who waited for it. */
static void *wait_for_the_way(void *context)
{
	weiri_give_way(context, WEIR_NO_DEADLINE);
	return NULL;
}

Test(give_way, who_ends_a_request_wakes_those_who_wait)
{
	weir_var *var = variable(1);
	/* A waiter that is not woken would be ended by the time limit of the test. */
	struct weiri_own *asker = weiri_way_ask(var, WEIR_NO_DEADLINE);
	pthread_t waiter;

	cr_assert_eq(pthread_create(&waiter, NULL, wait_for_the_way, var), 0);
	weiri_way_ask_again(var, weir_now_ns());
	weiri_give_way(var, WEIR_NO_DEADLINE);
	cr_assert_eq(asked(var), 0u);
	cr_assert_eq(pthread_join(waiter, NULL), 0);
	weiri_way_free(var, asker);
	weir_var_destroy(var, NULL);
}

Test(give_way, a_request_that_has_ended_is_ended_by_a_write_that_does_not_wait)
{
	weir_var *var = variable(1), *other = variable(2);
	struct weiri_own *asker = weiri_way_ask(var, weir_now_ns());

	cr_assert_eq(write_to(var, other, ASSIGN, 0), WEIR_OK);
	cr_assert_eq(asked(var), 0u);
	weiri_way_free(var, asker);
	weir_var_destroy(var, NULL);
	weir_var_destroy(other, NULL);
}
