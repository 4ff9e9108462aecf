/*
 * test_give_way.c - quick writes wait for a slow one that has asked them to, and for no longer than its
 * moment; and sums of large values are made beside a thread that replaces the value without a pause.
 */
#include "variables.h"

#include <pthread.h>
#include <weir/read_section.h>
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
	weir_tensor *two = number(2);

	cr_assert_eq(weir_var_assign(context, two, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(two);
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

/* -- a slow update beside assigns -------------------------------------------------------------- */

enum { OVERTAKES = 3 };

static struct {
	weir_var *var;
	unsigned calls;
	uint32_t asked_before[OVERTAKES + 1]; /* each call of the function */
} slow;

/* The variable is assigned while the function runs, until the update asks; then it is let pass. */
static enum weir_status add_slowly(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	cr_assert_leq(slow.calls, (unsigned)OVERTAKES);
	slow.asked_before[slow.calls++] = asked(slow.var);
	if (asked(slow.var) == 0) {
		weir_tensor *ten = number(10);

		cr_assert_eq(weir_var_assign(slow.var, ten, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		weir_tensor_release(ten);
	}
	return add_one(context, current, next, error);
}

Test(give_way, an_update_asks_after_as_many_losses_as_it_has_patience_for)
{
	weir_read last;

	slow.var = variable(1);
	weiri_way_patience = OVERTAKES - 1;
	cr_assert_eq(weir_var_update(slow.var, add_slowly, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_eq(slow.calls, OVERTAKES + 1u);
	for (unsigned i = 0; i < OVERTAKES; i++)
		cr_assert_eq(slow.asked_before[i], 0u, "asked before call %u", i);
	cr_assert_eq(slow.asked_before[OVERTAKES], 1u);
	cr_assert_eq(asked(slow.var), 0u, "the request ends with the update");
	cr_assert_eq(asked_of_all(), 0u);
	cr_assert_eq(weir_var_read(slow.var, &last), WEIR_OK);
	cr_assert_eq(*(const int64_t *)weir_tensor_data(last.tensor), 11);
	weir_read_release(&last);
	weir_var_destroy(slow.var, NULL);
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

	slow.var = variable(1);
	slow.calls = 0;
	weiri_way_patience = OVERTAKES - 1;
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

/* As a coroutine does that goes on elsewhere. */
Test(give_way, a_request_of_a_thread_that_has_ended_is_ended_by_another)
{
	weir_var *var = variable(1);
	struct weiri_own *mine = weiri_way_ask(var, WEIR_NO_DEADLINE);
	pthread_t thread;
	void *asker;

	cr_assert_eq(pthread_create(&thread, NULL, ask_and_end, var), 0);
	cr_assert_eq(pthread_join(thread, &asker), 0);
	cr_assert_eq(asked_of_all(), 1u);
	weiri_way_free(var, asker);
	cr_assert_eq(asked(var), 0u);
	cr_assert_eq(asked_of_all(), 1u, "what is gone was counted less once more");
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

	slow.var = variable(1);
	slow.calls = 0;
	weiri_way_patience = OVERTAKES - 1;
	cr_assert_eq(weir_var_start_wait(slow.var, LAST, write_and_destroy, NULL, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_var_update(slow.var, add_slowly, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
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
