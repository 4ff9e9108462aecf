/*
 * test_combine.c - updates of large values, many of which may be published as one version. The sums
 * are exact, whichever thread computes them and whatever other kind of write runs beside them. An
 * update that is stopped at any instruction does not block the others.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <weir/scatter.h>
#include <weir/txn.h>
#include <weir/var.h>

#include "late_failure.h"
#include "stepped.h"
#include "tensor/object.h"
#include "var/combine.h"
#include "var/spares.h"
#include "variables.h"

/* A value that counts as large, and that is computed in several blocks. */
enum { LARGE = 64 << 10, ELEMENTS = LARGE / sizeof(int64_t), THREADS = 8 };

static __attribute__((constructor)) void lower_the_threshold(void)
{
	weiri_combine_from = LARGE;
}

static weir_tensor *large(const weir_allocator *allocator, int64_t elements, int64_t value)
{
	weir_tensor_builder *builder = NULL;
	weir_tensor *tensor = NULL;
	int64_t *data;

	cr_assert_eq(weir_tensor_builder_create(WEIR_I64, &(weir_shape){1, {elements}}, allocator, &builder, NULL),
	             WEIR_OK);
	data = weir_tensor_builder_data(builder);
	for (int64_t i = 0; i < elements; i++)
		data[i] = value * (i + 1);
	cr_assert_eq(weir_tensor_builder_finish(builder, &tensor), WEIR_OK);
	return tensor;
}

static weir_var *large_variable_with(const weir_allocator *allocator, int64_t elements, uint32_t history)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "weights", .history = history,
	                                   .allocator = allocator};
	weir_tensor *zero = large(allocator, elements, 0);
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(zero, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(zero);
	return var;
}

static weir_var *large_variable(void)
{
	return large_variable_with(&variables_memory, ELEMENTS, 0);
}

/* Checks that each element i is (i + 1) times the same factor, and returns that factor. */
static int64_t factor_of(const weir_tensor *tensor)
{
	const int64_t *data = weir_tensor_data(tensor);
	int64_t elements = (int64_t)(weir_tensor_byte_count(tensor) / sizeof(*data)), wrong = 0;

	for (int64_t i = 0; i < elements; i++)
		wrong += data[i] != data[0] * (i + 1);
	cr_assert_eq(wrong, 0, "%" PRIi64 " elements of %" PRIi64 " are of another version", wrong, elements);
	return data[0];
}

static int64_t factor_in(weir_var *var)
{
	weir_read read;
	int64_t factor;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	factor = factor_of(read.tensor);
	weir_read_release(&read);
	return factor;
}

/* -- one thread -------------------------------------------------------------------------------- */

Test(combine, adds_and_subtracts_and_hands_back_the_version)
{
	weir_var *var = large_variable();
	weir_tensor *three = large(&variables_memory, ELEMENTS, 3), *five = large(&variables_memory, ELEMENTS, 5);
	weir_read published;

	cr_assert_eq(weir_var_assign_add(var, three, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
	cr_expect_eq(published.version, 2);
	cr_expect_eq(factor_of(published.tensor), 3);
	cr_assert_eq(weir_var_assign_sub(var, five, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_var_version(var), 3);
	cr_expect_eq(factor_in(var), -2);
	cr_expect_eq(factor_of(published.tensor), 3, "a handle keeps its version");
	weir_read_release(&published);
	weir_tensor_release(three);
	weir_tensor_release(five);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* The number of elements is a multiple of a block, or one or two more. */
Test(combine, reaches_every_element)
{
	for (int64_t elements = ELEMENTS; elements < ELEMENTS + 3; elements++) {
		weir_var *var = large_variable_with(&variables_memory, elements, 0);
		weir_tensor *one = large(&variables_memory, elements, 1);

		cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_expect_eq(factor_in(var), 2);
		weir_tensor_release(one);
		weir_var_destroy(var, NULL);
	}
	expect_nothing_left();
}

Test(combine, refuses_what_cannot_be_added_and_says_why)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_BOOL, .name = "mask",
	                                   .allocator = &variables_memory};
	weir_tensor *other = large(&variables_memory, ELEMENTS + 1, 1), *flags;
	weir_var *var = large_variable(), *empty = empty_variable("empty"), *mask;
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_var_assign_add(var, other, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "variable \"weights\": i64 [8192] cannot be changed by i64 [8193]");
	cr_expect_eq(weir_var_version(var), 1);
	cr_expect_eq(weir_var_assign_add(empty, other, WEIR_NO_DEADLINE, NULL, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_eq(
		weir_tensor_copy_of(WEIR_BOOL, &(weir_shape){1, {LARGE}}, weir_tensor_data(other), &variables_memory, &flags),
		WEIR_OK);
	cr_assert_eq(weir_var_create(flags, &options, &mask, NULL), WEIR_OK);
	cr_expect_eq(weir_var_assign_add(mask, flags, WEIR_NO_DEADLINE, NULL, &error), WEIR_UNIMPLEMENTED);
	weir_tensor_release(flags);
	weir_tensor_release(other);
	weir_var_destroy(var, NULL);
	weir_var_destroy(empty, NULL);
	weir_var_destroy(mask, NULL);
	expect_nothing_left();
}

Test(combine, floats_are_added_in_the_order_of_arrival)
{
	enum { FLOATS = LARGE / sizeof(float) };
	static const float deltas[3] = {1e8F, -1e8F, 1.0F};
	static float values[FLOATS];
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F32, .allocator = &variables_memory};
	weir_shape shape = {1, {FLOATS}};
	weir_tensor *tensor;
	weir_read read;
	weir_var *var;

	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &shape, values, &variables_memory, &tensor), WEIR_OK);
	cr_assert_eq(weir_var_create(tensor, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(tensor);
	for (size_t i = 0; i < 3; i++) {
		for (size_t j = 0; j < FLOATS; j++)
			values[j] = deltas[i];
		cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &shape, values, &variables_memory, &tensor), WEIR_OK);
		cr_assert_eq(weir_var_assign_add(var, tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		weir_tensor_release(tensor);
	}
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect(((const float *)weir_tensor_data(read.tensor))[FLOATS - 1] == 1.0F);
	weir_read_release(&read);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* The mark of a transaction is a version with the same number. An update goes on top of it. */
Test(combine, stands_on_the_mark_of_a_transaction)
{
	weir_var *var = large_variable(), *other = variable(1);
	weir_tensor *one = large(&variables_memory, ELEMENTS, 1), *two = number(2);
	weir_tensor *read;
	weir_txn *txn;

	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_begin(NULL, &txn, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_read(txn, var, &read, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_assign(txn, other, two, NULL), WEIR_OK);
	cr_assert_eq(weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_var_version(var), 3);
	cr_expect_eq(factor_in(var), 2);
	weir_tensor_release(one);
	weir_tensor_release(two);
	weir_var_destroy(var, NULL);
	weir_var_destroy(other, NULL);
	expect_nothing_left();
}

Test(combine, keeps_the_history)
{
	weir_var *var = large_variable_with(&variables_memory, ELEMENTS, 2);
	weir_tensor *one = large(&variables_memory, ELEMENTS, 1);
	weir_read read;

	for (int i = 0; i < 5; i++)
		cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	for (uint64_t number = 4; number <= 6; number++) {
		cr_assert_eq(weir_var_read_version(var, number, &read), WEIR_OK);
		cr_expect_eq(factor_of(read.tensor), (int64_t)number - 1);
		weir_read_release(&read);
	}
	cr_expect_eq(weir_var_read_version(var, 3, &read), WEIR_NOT_FOUND);
	weir_tensor_release(one);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* Until the next collection, an update leaves behind only the version that it replaced. */
Test(combine, keeps_neither_delta_nor_value)
{
	weir_var *var = large_variable();
	weir_tensor *one = large(&variables_memory, ELEMENTS, 1);
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};
	weir_read published;

	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	cr_expect_geq(stats.retired_bytes, weir_tensor_byte_count(one), "the replaced value counts");
	cr_expect_lt(stats.retired_bytes, 3 * weir_tensor_byte_count(one) / 2);
	cr_expect_eq(weiri_load_relaxed(&one->value.references), 1, "that of this test");
	cr_expect_eq(weiri_load_relaxed(&published.tensor->value.references), 2, "those of the version and the handle");
	weir_read_release(&published);
	weir_tensor_release(one);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* When armed, stops the first thread that asks this allocator for a value. */
static struct gatekeeper {
	_Atomic(uint32_t) armed, inside, open;
} gatekeeper;

static void *allocate_slowly(void *context, size_t size, size_t alignment)
{
	uint32_t armed = 1;

	(void)context;
	if (size > LARGE && weiri_cas_acquire(&gatekeeper.armed, &armed, 0u)) {
		weiri_store_release(&gatekeeper.inside, 1u);
		while (weiri_load_acquire(&gatekeeper.open) == 0)
			(void)sched_yield();
	}
	return variables_memory.allocate(variables_memory.context, size, alignment);
}

static void *add_slowly(void *var)
{
	weir_tensor *one = large(&variables_memory, ELEMENTS, 1);

	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(one);
	return NULL;
}

/* A combiner that was at work when the round was sealed may still read the operand. */
Test(combine, keeps_a_delta_for_one_who_is_at_work)
{
	weir_allocator slow = variables_memory;
	weir_tensor *two = large(&variables_memory, ELEMENTS, 2);
	weir_var *var;
	pthread_t thread;

	slow.allocate = allocate_slowly;
	var = large_variable_with(&slow, ELEMENTS, 0);
	weiri_store_relaxed(&gatekeeper.armed, 1u);
	cr_assert_eq(pthread_create(&thread, NULL, add_slowly, var), 0);
	while (weiri_load_acquire(&gatekeeper.inside) == 0)
		(void)sched_yield();
	cr_assert_eq(weir_var_assign_add(var, two, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(factor_in(var), 3, "with that of the combiner at work");
	cr_expect_eq(weiri_load_relaxed(&two->value.references), 2, "those of this test and of the request");
	weiri_store_release(&gatekeeper.open, 1u);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	cr_expect_eq(weiri_load_relaxed(&two->value.references), 1, "that of this test");
	weir_tensor_release(two);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

static void *scatter_slowly(void *var)
{
	weir_tensor *first, *one;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {1}}, (int64_t[]){0}, NULL, &first), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &(weir_shape){.rank = 0}, (int64_t[]){1}, NULL, &one), WEIR_OK);
	cr_assert_eq(weir_var_scatter(var, WEIR_SCATTER_ADD, first, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(first);
	weir_tensor_release(one);
	return NULL;
}

/* The update allocated memory for the shape that the value had when the update began. */
Test(combine, makes_a_value_of_the_shape_that_another_assigned_meanwhile)
{
	weir_allocator slow = variables_memory;
	weir_tensor *longer = large(&variables_memory, 2 * ELEMENTS, 0);
	weir_var *var;
	weir_read read;
	pthread_t thread;

	slow.allocate = allocate_slowly;
	var = large_variable_with(&slow, ELEMENTS, 0);
	weiri_store_relaxed(&gatekeeper.inside, 0u);
	weiri_store_relaxed(&gatekeeper.open, 0u);
	weiri_store_relaxed(&gatekeeper.armed, 1u);
	cr_assert_eq(pthread_create(&thread, NULL, scatter_slowly, var), 0);
	while (weiri_load_acquire(&gatekeeper.inside) == 0)
		(void)sched_yield();
	cr_assert_eq(weir_var_assign(var, longer, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weiri_store_release(&gatekeeper.open, 1u);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_eq(weir_tensor_element_count(read.tensor), 2 * ELEMENTS);
	cr_expect_eq(((const int64_t *)weir_tensor_data(read.tensor))[0], 1);
	cr_expect_eq(read.version, 3);
	weir_read_release(&read);
	weir_tensor_release(longer);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- memory that is reused --------------------------------------------------------------------- */

static size_t large_blocks; /* allocated so far */

static void *count_large(void *context, size_t size, size_t alignment)
{
	large_blocks += size >= LARGE;
	return variables_memory.allocate(context, size, alignment);
}

/* A view takes its memory from the allocator of its tensor, and returns it there. */
static void take_a_view(weir_var *var)
{
	weir_read read;
	weir_tensor *part;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_assert_eq(weir_tensor_slice(read.tensor, 1, 2, &part), WEIR_OK);
	weir_read_release(&read);
	weir_tensor_release(part);
}

/*
 * Returns how many blocks the values of 50 updates in a row took. Each update is followed by a
 * collection and by a view of the value.
 */
static size_t blocks_of_50_updates(void)
{
	weir_allocator counting = {count_large, variables_memory.release, variables_memory.context};
	weir_var *var = large_variable_with(&counting, ELEMENTS, 0);
	weir_tensor *one = large(&variables_memory, ELEMENTS, 1);
	size_t before = large_blocks;
	weir_read last;

	for (int i = 0; i < 50; i++) {
		cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
		take_a_view(var);
	}
	cr_expect_eq(factor_in(var), 50);
	cr_assert_eq(weir_var_read(var, &last), WEIR_OK);
	weir_tensor_release(one);
	weir_var_destroy(var, NULL);
	cr_expect_eq(factor_of(last.tensor), 50, "a value outlives its variable");
	weir_read_release(&last);
	expect_nothing_left();
	return large_blocks - before;
}

Test(combine, values_are_made_where_others_were)
{
	weiri_spares_share = 8; /* also under AddressSanitizer */
	cr_expect_leq(blocks_of_50_updates(), 2);
	weiri_spares_share = 0;
	cr_expect_eq(blocks_of_50_updates(), 50);
	weiri_spares_share = 8;
	weir_reclaim_set_budget(4 * LARGE); /* an eighth of it is less than one value */
	cr_expect_eq(blocks_of_50_updates(), 50);
	weir_reclaim_set_budget(0);
}

/* -- failures ---------------------------------------------------------------------------------- */

static enum weir_status add_once(const weir_allocator *failing, void *context)
{
	struct late_failure late = {0};
	weir_allocator allocator = late_failure_hooks(&late);
	weir_var *var = large_variable_with(&allocator, ELEMENTS, 0);
	weir_tensor *one = large(&allocator, ELEMENTS, 1);
	enum weir_status status;

	(void)context;
	late.under_test = failing;
	status = weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL);
	late.under_test = NULL;
	cr_expect_eq(factor_in(var), status == WEIR_OK, "the status says whether it was applied");
	weir_tensor_release(one);
	weir_var_destroy(var, NULL);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	late_failure_end(&late);
	return status;
}

Test(combine, survives_every_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(add_once, NULL), 7,
	             "a request, a round; spares; a result with its value, its commit and version");
}

/* The retired bytes are over the budget, and a handle pins what could be freed. */
Test(combine, has_not_happened_when_the_deadline_passed)
{
	weir_var *var = large_variable();
	weir_tensor *one = large(&variables_memory, ELEMENTS, 1);
	weir_read first;

	weir_reclaim_set_budget(1);
	cr_assert_eq(weir_var_read(var, &first), WEIR_OK);
	weir_read_release(&first);
	/* The first read of a thread takes no slot. */
	cr_assert_eq(weir_var_read(var, &first), WEIR_OK);
	cr_assert_eq(weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_var_assign_add(var, one, 0, NULL, NULL), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(factor_in(var), 1);
	weir_read_release(&first);
	cr_assert_eq(weir_var_assign_add(var, one, weir_deadline_in(variables_patience_ns), NULL, NULL), WEIR_OK);
	cr_expect_eq(factor_in(var), 2);
	weir_reclaim_set_budget(0);
	weir_tensor_release(one);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

/* -- many threads ------------------------------------------------------------------------------ */

static struct crowd {
	weir_var *var, *other;
	/* Element i of delta is i + 1, and of thousand 1000 * (i + 1); rows names all rows. */
	weir_tensor *delta, *rows, *thousand;
	int updates;
	/* versions[i] counts the updates that were published as version i + 2. */
	_Atomic(uint64_t) versions[THREADS * 100];
	_Atomic(uint32_t) adding;
} crowd;

static void *add_many(void *context)
{
	(void)context;
	for (int i = 0; i < crowd.updates; i++) {
		weir_read published;
		int64_t factor;

		if (i % 2 == 0) {
			cr_assert_eq(weir_var_assign_add(crowd.var, crowd.delta, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
		} else {
			weir_read before;

			cr_assert_eq(weir_var_read(crowd.var, &before), WEIR_OK);
			cr_assert_eq(weir_var_assign_add(crowd.var, crowd.delta, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
			cr_expect_lt(factor_of(before.tensor), factor_of(published.tensor));
			cr_expect_lt(before.version, published.version);
			weir_read_release(&before);
		}
		factor = factor_of(published.tensor);
		cr_assert(factor > 0 && factor <= THREADS * 100);
		/* [relaxed] read after the threads were joined */
		(void)weiri_fetch_add_relaxed(&crowd.versions[published.version - 2], 1u);
		weir_read_release(&published);
	}
	/* [release] as in add_only(), although no writer runs beside this. */
	(void)weiri_fetch_sub_release(&crowd.adding, 1u);
	return NULL;
}

static void run_crowd(void *(*body)(void *), void *(*beside)(void *))
{
	pthread_t threads[THREADS], other;

	/* [relaxed] the threads do not exist yet */
	weiri_store_relaxed(&crowd.adding, (uint32_t)THREADS);
	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, body, NULL), 0);
	if (beside != NULL)
		cr_assert_eq(pthread_create(&other, NULL, beside, NULL), 0);
	for (size_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	if (beside != NULL)
		cr_assert_eq(pthread_join(other, NULL), 0);
}

static weir_tensor *all_rows(void)
{
	static int32_t rows[ELEMENTS];
	weir_tensor *tensor;

	for (int32_t i = 0; i < ELEMENTS; i++)
		rows[i] = i;
	cr_assert_eq(weir_tensor_copy_of(WEIR_I32, &(weir_shape){1, {ELEMENTS}}, rows, &variables_memory, &tensor),
	             WEIR_OK);
	return tensor;
}

static void open_crowd(int updates)
{
	crowd.var = large_variable();
	crowd.other = variable(0);
	crowd.delta = large(&variables_memory, ELEMENTS, 1);
	crowd.thousand = large(&variables_memory, ELEMENTS, 1000);
	crowd.rows = all_rows();
	crowd.updates = updates;
}

static void close_crowd(void)
{
	weir_tensor_release(crowd.delta);
	weir_tensor_release(crowd.thousand);
	weir_tensor_release(crowd.rows);
	weir_var_destroy(crowd.var, NULL);
	weir_var_destroy(crowd.other, NULL);
	expect_nothing_left();
}

Test(combine, no_update_is_lost_or_made_twice)
{
	uint64_t versions, all = 0;

	open_crowd(50);
	run_crowd(add_many, NULL);
	cr_expect_eq(factor_in(crowd.var), THREADS * 50);
	versions = weir_var_version(crowd.var) - 1;
	for (uint64_t i = 0; i < versions; i++) {
		cr_expect_neq(weiri_load_relaxed(&crowd.versions[i]), 0, "version %" PRIu64 " has no update", i + 2);
		all += weiri_load_relaxed(&crowd.versions[i]);
	}
	cr_expect_eq(all, THREADS * 50, "an update reported a version that does not exist");
	close_crowd();
}

static weir_tensor *changed_by(const weir_tensor *tensor, int64_t sum)
{
	return large(&variables_memory, ELEMENTS, ((const int64_t *)weir_tensor_data(tensor))[0] + sum);
}

static enum weir_status add_thousand(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)context, (void)error;
	*next = changed_by(current->tensor, 1000);
	return WEIR_OK;
}

/* Each of four ways to write adds 1000 to the factor, so that a lost update shows. */
static void write_once(int how)
{
	weir_tensor *next = NULL;
	weir_read read;

	if (how == 3) {
		cr_assert_eq(
			weir_var_scatter(crowd.var, WEIR_SCATTER_ADD, crowd.rows, crowd.thousand, WEIR_NO_DEADLINE, NULL, NULL),
			WEIR_OK);
		return;
	}
	if (how == 0) {
		cr_assert_eq(weir_var_update(crowd.var, add_thousand, NULL, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		return;
	}
	for (enum weir_status status = WEIR_ABORTED; status != WEIR_OK;) {
		cr_assert_eq(weir_var_read(crowd.var, &read), WEIR_OK);
		next = changed_by(read.tensor, 1000);
		if (how == 1) {
			status = weir_var_compare_assign(crowd.var, read.version, next, WEIR_NO_DEADLINE, NULL, NULL);
		} else {
			weir_tensor *small = number(1);
			struct weir_commit_part parts[2] = {{crowd.var, read.version, next},
			                                    {crowd.other, weir_var_version(crowd.other), small}};

			status = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
			weir_tensor_release(small);
		}
		cr_assert(status == WEIR_OK || status == WEIR_ABORTED);
		weir_tensor_release(next);
		weir_read_release(&read);
		/* A writer may lose until the others have ended: this test is not about fairness. */
		if (weiri_load_acquire(&crowd.adding) != 0 && status != WEIR_OK) /* pairs with add_only() */
			(void)sched_yield();
	}
}

enum { OTHER_WRITES = 30 };

static void *write_beside(void *context)
{
	(void)context;
	for (int i = 0; i < OTHER_WRITES; i++)
		write_once(i % 4);
	return NULL;
}

static void *add_only(void *context)
{
	(void)context;
	for (int i = 0; i < crowd.updates; i++)
		cr_assert_eq(weir_var_assign_add(crowd.var, crowd.delta, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	(void)weiri_fetch_sub_release(&crowd.adding, 1u); /* pairs with write_once() and exchange_beside() */
	return NULL;
}

Test(combine, is_exact_beside_updates_compare_assigns_and_commits)
{
	open_crowd(50);
	run_crowd(add_only, write_beside);
	cr_expect_eq(factor_in(crowd.var), THREADS * 50 + OTHER_WRITES * 1000);
	close_crowd();
}

/* The sum of what exchanges took out, which also counts. */
static int64_t taken_out;

static void *exchange_beside(void *context)
{
	weir_tensor *zero = large(&variables_memory, ELEMENTS, 0);

	(void)context;
	do {
		weir_read replaced;

		cr_assert_eq(weir_var_exchange(crowd.var, zero, WEIR_NO_DEADLINE, &replaced, NULL), WEIR_OK);
		taken_out += factor_of(replaced.tensor);
		weir_read_release(&replaced);
	} while (weiri_load_acquire(&crowd.adding) != 0); /* pairs with add_only() */
	weir_tensor_release(zero);
	return NULL;
}

Test(combine, is_exact_beside_exchanges)
{
	open_crowd(50);
	taken_out = 0;
	run_crowd(add_only, exchange_beside);
	cr_expect_eq(taken_out + factor_in(crowd.var), THREADS * 50);
	close_crowd();
}

/* -- stopped anywhere -------------------------------------------------------------------------- */

static struct stopped {
	weir_var *var;
	weir_tensor *one, *ten;
	weir_read published;
	int64_t seen;
} stopped;

static void add_one(void *context)
{
	struct stopped *s = context;

	cr_assert_eq(weir_var_assign_add(s->var, s->one, WEIR_NO_DEADLINE, &s->published, NULL), WEIR_OK);
}

/* Two updates, one after the other, complete whatever the stopped one has claimed. */
static void overtake(struct stopped *s)
{
	weir_read published;

	for (int64_t i = 1; i <= 2; i++) {
		int64_t factor;

		cr_assert_eq(weir_var_assign_add(s->var, s->ten, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
		factor = factor_of(published.tensor);
		cr_expect(factor == 10 * i || factor == 10 * i + 1, "%" PRIi64, factor);
		weir_read_release(&published);
	}
}

static void judge_stopped(struct stopped *s, int64_t others)
{
	int64_t factor = factor_of(s->published.tensor);

	cr_expect_eq(factor_in(s->var), others + 1);
	cr_expect(factor % 10 == 1 && factor <= others + 1);
	cr_expect_leq(s->published.version, weir_var_version(s->var));
	weir_read_release(&s->published);
	weir_tensor_release(s->one);
	weir_tensor_release(s->ten);
	weir_var_destroy(s->var, NULL);
	collect_now();
}

static void open_stopped(struct stopped *s)
{
	s->var = large_variable();
	s->one = large(&variables_memory, ELEMENTS, 1);
	s->ten = large(&variables_memory, ELEMENTS, 10);
}

/*
 * Nearly all instructions of a call compute, and touch no shared data. So the test tries a few
 * dozen of the first and of the last thousand, and a few of those between; with a sanitizer, whose
 * calls are twenty times as long, only one.
 */
static size_t next_place(size_t at, size_t all)
{
	int is_inside = at > 1000 && at + 1000 < all;

	return at + (is_inside ? all / (STEPPED_STRIDE == 1 ? 8 : 2) : stepped_stride(37));
}

static size_t count_instructions(struct stepped *call)
{
	open_stopped(&stopped);
	cr_assert_eq(stepped_start(call, STEPPED_NEVER - 1), 0);
	stepped_finish(call);
	judge_stopped(&stopped, 0);
	return call->count;
}

Test(combine, one_who_is_stopped_anywhere_stops_nobody)
{
	struct stepped call = {.prepare = meet_weir, .call = add_one, .context = &stopped};
	size_t all;

	stepped_or_skip();
	all = count_instructions(&call);
	for (size_t at = 0; at < all; at = next_place(at, all)) {
		open_stopped(&stopped);
		(void)stepped_start(&call, at);
		overtake(&stopped);
		stepped_finish(&call);
		judge_stopped(&stopped, 20);
	}
	expect_nothing_left();
}

/* The stopped update was computed from a version that another writer has replaced. */
Test(combine, one_who_is_overtaken_by_an_assignment_begins_anew)
{
	struct stepped call = {.prepare = meet_weir, .call = add_one, .context = &stopped};
	size_t all;

	stepped_or_skip();
	all = count_instructions(&call);
	for (size_t at = 0; at < all; at = next_place(at, all)) {
		weir_tensor *base;
		int64_t factor;

		open_stopped(&stopped);
		base = large(&variables_memory, ELEMENTS, 100);
		(void)stepped_start(&call, at);
		cr_assert_eq(weir_var_assign(stopped.var, base, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		stepped_finish(&call);
		weir_tensor_release(base);
		factor = factor_of(stopped.published.tensor);
		cr_expect(factor == 101 || factor == 1, "%" PRIi64, factor);
		judge_stopped(&stopped, factor == 101 ? 100 : 99);
	}
	expect_nothing_left();
}
