/*
 * test_tensor_view.c - tensors over foreign memory and over other tensors.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <weir/tensor.h>

#include "failing_allocator.h"

#define SHAPE(...) (&(weir_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

static const weir_shape scalar_shape = {.rank = 0};

/* What an out parameter holds before a call that fails. */
static int64_t marker;
static void *const untouched = &marker;

/* Foreign memory that notes how it was released, and is then overwritten. */
struct lent {
	int32_t data[12];
	int releases;
	void *released;
	pthread_t thread;
};

static void give_back(void *context, void *data)
{
	struct lent *lent = context;

	lent->releases++;
	lent->released = data;
	lent->thread = pthread_self();
	memset(lent->data, 0xdd, sizeof(lent->data));
}

static struct lent numbers(void)
{
	return (struct lent){.data = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
}

static weir_tensor *wrap(struct lent *lent, const weir_shape *shape, const weir_allocator *allocator)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_wrap(WEIR_I32, shape, lent->data, give_back, lent, allocator, &tensor), WEIR_OK);
	return tensor;
}

static weir_tensor *counting(const weir_shape *shape, const weir_allocator *allocator)
{
	struct lent source = numbers();
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I32, shape, source.data, allocator, &tensor), WEIR_OK);
	return tensor;
}

static weir_tensor *slice(weir_tensor *tensor, int64_t begin, int64_t count)
{
	weir_tensor *view = NULL;

	cr_assert_eq(weir_tensor_slice(tensor, begin, count, &view), WEIR_OK);
	return view;
}

static weir_tensor *row(weir_tensor *tensor, int64_t index)
{
	weir_tensor *view = NULL;

	cr_assert_eq(weir_tensor_row(tensor, index, &view), WEIR_OK);
	return view;
}

static int32_t first(const weir_tensor *tensor)
{
	return *(const int32_t *)weir_tensor_data(tensor);
}

/* ---- wrap ---- */

Test(tensor_wrap, shows_the_foreign_memory_itself)
{
	struct lent lent = numbers();
	weir_tensor *tensor = wrap(&lent, SHAPE(3, 4), NULL);

	cr_expect_eq(weir_tensor_data(tensor), lent.data);
	cr_expect_eq(weir_tensor_byte_count(tensor), sizeof(lent.data));
	cr_expect_eq(lent.releases, 0);
	weir_tensor_release(tensor);
	cr_expect_eq(lent.releases, 1);
	cr_expect_eq(lent.released, lent.data);
}

Test(tensor_wrap, is_given_back_once_and_only_by_the_last_reference)
{
	struct lent lent = numbers();
	weir_tensor *tensor = wrap(&lent, SHAPE(12), NULL);

	(void)weir_tensor_retain(tensor);
	weir_tensor_release(tensor);
	cr_expect_eq(lent.releases, 0);
	weir_tensor_release(tensor);
	cr_expect_eq(lent.releases, 1);
}

struct borrower {
	weir_tensor *tensor;
	/* Set when this thread holds the only reference. */
	_Atomic(int) alone;
	int32_t seen;
};

static void *use_alone_then_release(void *argument)
{
	struct borrower *borrower = argument;

	/*
	 * [relaxed] on purpose: the order that this test looks for must come from the release of the
	 * tensor alone
	 */
	while (!weiri_load_relaxed(&borrower->alone))
		(void)sched_yield();
	borrower->seen = first(borrower->tensor);
	weir_tensor_release(borrower->tensor);
	return NULL;
}

Test(tensor_wrap, is_given_back_on_the_thread_that_dropped_the_last_reference)
{
	struct lent lent = numbers();
	struct borrower borrower = {.tensor = wrap(&lent, SHAPE(12), NULL)};
	weir_tensor *ours = weir_tensor_retain(borrower.tensor);
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, use_alone_then_release, &borrower), 0);
	cr_expect_eq(first(ours), 0);
	weir_tensor_release(ours);
	/* [relaxed] as above */
	weiri_store_relaxed(&borrower.alone, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(borrower.seen, 0);
	cr_expect_eq(lent.releases, 1);
	cr_expect(pthread_equal(lent.thread, thread));
}

static void *read_then_release(void *argument)
{
	weir_tensor *tensor = argument;
	weir_tensor *view = slice(tensor, 11, 1);

	weir_tensor_release(tensor);
	cr_assert_eq(first(view), 11);
	weir_tensor_release(view);
	return NULL;
}

Test(tensor_wrap, is_given_back_once_when_many_threads_drop_it_together)
{
	enum { THREADS = 4, ROUNDS = 200 };

	for (int round = 0; round < ROUNDS; round++) {
		struct lent lent = numbers();
		weir_tensor *tensor = wrap(&lent, SHAPE(12), NULL);
		pthread_t threads[THREADS];

		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, read_then_release, weir_tensor_retain(tensor)), 0);
		weir_tensor_release(tensor);
		for (int i = 0; i < THREADS; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_eq(lent.releases, 1, "round %d", round);
	}
}

Test(tensor_wrap, nobody_need_be_told_of_the_end)
{
	struct lent lent = numbers();
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_wrap(WEIR_I32, SHAPE(12), lent.data, NULL, NULL, NULL, &tensor), WEIR_OK);
	weir_tensor_release(tensor);
	cr_expect_eq(lent.data[11], 11);
}

Test(tensor_wrap, without_elements_needs_no_data_and_is_still_given_back)
{
	struct lent lent = {.released = untouched};
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_wrap(WEIR_I32, SHAPE(0, 3), NULL, give_back, &lent, NULL, &tensor), WEIR_OK);
	weir_tensor_release(slice(tensor, 0, 0));
	cr_expect_eq(lent.releases, 0);
	weir_tensor_release(tensor);
	cr_expect_eq(lent.releases, 1);
	cr_expect_null(lent.released);
}

static void expect_no_wrap(enum weir_dtype dtype, const weir_shape *shape, void *data, enum weir_status expected)
{
	struct lent lent = numbers();
	weir_tensor *tensor = untouched;

	cr_expect_eq(weir_tensor_wrap(dtype, shape, data, give_back, &lent, NULL, &tensor), expected);
	cr_expect_eq(tensor, untouched);
	cr_expect_eq(lent.releases, 0, "a failed wrap took the memory");
}

Test(tensor_wrap, what_cannot_be_wrapped_is_not_given_back)
{
	struct lent lent = numbers();

	expect_no_wrap(WEIR_I32, SHAPE(12), NULL, WEIR_INVALID_ARGUMENT);
	expect_no_wrap(WEIR_I32, SHAPE(2), (char *)lent.data + 2, WEIR_INVALID_ARGUMENT);
	expect_no_wrap(WEIR_I32, SHAPE(-1), lent.data, WEIR_INVALID_ARGUMENT);
	expect_no_wrap(WEIR_BYTES, &scalar_shape, &(weir_bytes){"x", 1}, WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_tensor_wrap(WEIR_I32, SHAPE(12), lent.data, NULL, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
}

static enum weir_status wrap_once(const weir_allocator *allocator, void *context)
{
	struct lent lent = numbers();
	weir_tensor *tensor = NULL;
	enum weir_status status = weir_tensor_wrap(WEIR_I32, SHAPE(12), lent.data, give_back, &lent, allocator, &tensor);

	(void)context;
	cr_expect_eq(lent.releases, 0);
	weir_tensor_release(tensor);
	cr_expect_eq(lent.releases, status == WEIR_OK);
	return status;
}

Test(tensor_wrap, no_memory_for_the_header_leaves_the_data_with_its_owner)
{
	cr_expect_eq(fail_each_allocation(wrap_once, NULL), 1);
}

/*
 * An allocator that lives in the wrapped memory. The release function may end the allocator, so
 * nothing may be released after that.
 */
static void end_the_allocator(void *context, void *data)
{
	struct failing_allocator *state = context;

	(void)data;
	cr_expect_str_eq(failing_allocator_verdict(state), "balanced", "the header must be gone before the memory is");
	memset(state, 0xdd, sizeof(*state));
}

Test(tensor_wrap, the_release_function_may_end_the_allocator)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_wrap(WEIR_U8, SHAPE(1), &state, end_the_allocator, &state, &allocator, &tensor), WEIR_OK);
	weir_tensor_release(tensor);
}

/* ---- slice and row ---- */

Test(tensor_slice, shows_rows_without_a_copy)
{
	weir_tensor *tensor = counting(SHAPE(4, 3), NULL);
	weir_tensor *view = slice(tensor, 1, 2);

	cr_expect(weir_shape_equal(weir_tensor_shape(view), SHAPE(2, 3)));
	cr_expect_eq(weir_tensor_dtype(view), WEIR_I32);
	cr_expect_eq(weir_tensor_byte_count(view), 6 * sizeof(int32_t));
	cr_expect_eq(weir_tensor_data(view), (const int32_t *)weir_tensor_data(tensor) + 3);
	weir_tensor_release(view);
	weir_tensor_release(tensor);
}

Test(tensor_slice, keeps_its_parent_alive)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_tensor *tensor = counting(SHAPE(4, 3), &allocator);
	weir_tensor *view = slice(tensor, 3, 1);

	weir_tensor_release(tensor);
	cr_expect_eq(first(view), 9);
	cr_expect_eq(weiri_load_relaxed(&state.outstanding), 2, "the header of a view comes from its tensor's allocator");
	weir_tensor_release(view);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

Test(tensor_slice, of_wrapped_memory_defers_giving_it_back)
{
	struct lent lent = numbers();
	weir_tensor *tensor = wrap(&lent, SHAPE(12), NULL);
	weir_tensor *view = slice(tensor, 5, 2);

	weir_tensor_release(tensor);
	cr_expect_eq(lent.releases, 0);
	cr_expect_eq(first(view), 5);
	weir_tensor_release(view);
	cr_expect_eq(lent.releases, 1);
	cr_expect_eq(lent.released, lent.data, "not where the slice began");
}

Test(tensor_slice, a_long_chain_holds_only_the_first_and_itself)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_tensor *view = counting(SHAPE(12), &allocator);

	for (int i = 0; i < 1000; i++) {
		weir_tensor *next = slice(view, i % 100 == 0, weir_tensor_shape(view)->dims[0] - (i % 100 == 0));

		weir_tensor_release(view);
		view = next;
	}
	cr_expect_eq(weiri_load_relaxed(&state.outstanding), 2);
	cr_expect_eq(first(view), 10);
	weir_tensor_release(view);
	cr_expect_str_eq(failing_allocator_verdict(&state), "balanced");
}

Test(tensor_slice, of_no_rows_has_no_elements)
{
	weir_tensor *tensor = counting(SHAPE(4, 3), NULL);

	for (int64_t begin = 0; begin <= 4; begin += 2) {
		weir_tensor *view = slice(tensor, begin, 0);

		cr_expect_eq(weir_tensor_element_count(view), 0);
		cr_expect_eq(weir_tensor_byte_count(view), 0);
		cr_expect(weir_shape_equal(weir_tensor_shape(view), SHAPE(0, 3)));
		weir_tensor_release(view);
	}
	weir_tensor_release(tensor);
}

static void expect_no_slice(weir_tensor *tensor, int64_t begin, int64_t count, enum weir_status expected)
{
	weir_tensor *view = untouched;

	cr_expect_eq(weir_tensor_slice(tensor, begin, count, &view), expected, "%d + %d", (int)begin, (int)count);
	cr_expect_eq(view, untouched);
}

static void expect_no_row(weir_tensor *tensor, int64_t index, enum weir_status expected)
{
	weir_tensor *view = untouched;

	cr_expect_eq(weir_tensor_row(tensor, index, &view), expected, "row %d", (int)index);
	cr_expect_eq(view, untouched);
}

Test(tensor_slice, rows_that_are_not_there_are_out_of_range)
{
	weir_tensor *tensor = counting(SHAPE(4, 3), NULL);
	weir_tensor *one = counting(&scalar_shape, NULL);

	expect_no_slice(tensor, -1, 1, WEIR_OUT_OF_RANGE);
	expect_no_slice(tensor, 0, 5, WEIR_OUT_OF_RANGE);
	expect_no_slice(tensor, 5, 0, WEIR_OUT_OF_RANGE);
	expect_no_slice(tensor, 0, -1, WEIR_OUT_OF_RANGE);
	expect_no_slice(tensor, 1, INT64_MAX, WEIR_OUT_OF_RANGE);
	expect_no_slice(tensor, INT64_MAX, INT64_MAX, WEIR_OUT_OF_RANGE);
	expect_no_slice(one, 0, 0, WEIR_INVALID_ARGUMENT);
	expect_no_slice(NULL, 0, 0, WEIR_INVALID_ARGUMENT);
	expect_no_row(tensor, -1, WEIR_OUT_OF_RANGE);
	expect_no_row(tensor, 4, WEIR_OUT_OF_RANGE);
	expect_no_row(one, 0, WEIR_INVALID_ARGUMENT);
	expect_no_row(NULL, 0, WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_slice(tensor, 0, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_row(tensor, 0, NULL), WEIR_INVALID_ARGUMENT);
	weir_tensor_release(tensor);
	weir_tensor_release(one);
}

Test(tensor_row, drops_the_first_dimension)
{
	weir_tensor *tensor = counting(SHAPE(2, 3, 2), NULL);
	weir_tensor *matrix = row(tensor, 1);
	weir_tensor *vector = row(matrix, 2);
	weir_tensor *one = row(vector, 1);

	weir_tensor_release(tensor);
	cr_expect(weir_shape_equal(weir_tensor_shape(matrix), SHAPE(3, 2)));
	cr_expect_eq(first(matrix), 6);
	weir_tensor_release(matrix);
	cr_expect(weir_shape_equal(weir_tensor_shape(vector), SHAPE(2)));
	cr_expect_eq(first(vector), 10);
	weir_tensor_release(vector);
	cr_expect_eq(weir_tensor_shape(one)->rank, 0);
	cr_expect_eq(weir_tensor_element_count(one), 1);
	cr_expect_eq(first(one), 11);
	weir_tensor_release(one);
}

Test(tensor_row, of_tensors_without_elements)
{
	weir_tensor *hollow = counting(SHAPE(3, 0), NULL);
	weir_tensor *none = counting(SHAPE(0, 3), NULL);
	weir_tensor *view = row(hollow, 2);

	cr_expect(weir_shape_equal(weir_tensor_shape(view), SHAPE(0)));
	cr_expect_eq(weir_tensor_element_count(view), 0);
	expect_no_row(none, 0, WEIR_OUT_OF_RANGE);
	weir_tensor_release(view);
	weir_tensor_release(hollow);
	weir_tensor_release(none);
}

Test(tensor_row, strings_are_shown_and_counted)
{
	static const weir_bytes strings[] = {{"a", 1}, {"bc", 2}, {"def", 3}, {NULL, 0}};
	weir_tensor *tensor = NULL;
	weir_tensor *second;
	const weir_bytes *shown;

	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, SHAPE(2, 2), strings, NULL, &tensor), WEIR_OK);
	second = row(tensor, 1);
	weir_tensor_release(tensor);
	shown = weir_tensor_data(second);
	cr_expect_eq(weir_tensor_byte_count(second), 2 * sizeof(weir_bytes) + 3);
	cr_expect_eq(shown[0].size, 3);
	cr_expect_arr_eq(shown[0].data, "def", 3);
	cr_expect_eq(shown[1].size, 0);
	weir_tensor_release(second);
}

static enum weir_status view_three_times(const weir_allocator *allocator, void *context)
{
	static const int32_t data[6];
	weir_tensor *tensor = NULL;
	weir_tensor *views[3] = {NULL, NULL, NULL};
	enum weir_status status = weir_tensor_copy_of(WEIR_I32, SHAPE(3, 2), data, allocator, &tensor);

	(void)context;
	if (status == WEIR_OK)
		status = weir_tensor_slice(tensor, 1, 2, &views[0]);
	if (status == WEIR_OK)
		status = weir_tensor_row(views[0], 1, &views[1]);
	if (status == WEIR_OK)
		status = weir_tensor_reshape(views[0], SHAPE(4), &views[2]);
	weir_tensor_release(tensor);
	for (int i = 0; i < 3; i++)
		weir_tensor_release(views[i]);
	return status;
}

Test(tensor_slice, every_allocation_may_fail_and_nothing_leaks)
{
	cr_expect_eq(fail_each_allocation(view_three_times, NULL), 4, "one for each header");
}

/* ---- reshape ---- */

Test(tensor_reshape, shows_the_same_elements_in_another_shape)
{
	weir_tensor *tensor = counting(SHAPE(4, 3), NULL);
	weir_tensor *flat = NULL;

	cr_assert_eq(weir_tensor_reshape(tensor, SHAPE(2, 6), &flat), WEIR_OK);
	cr_expect_eq(weir_tensor_data(flat), weir_tensor_data(tensor));
	cr_expect(weir_shape_equal(weir_tensor_shape(flat), SHAPE(2, 6)));
	weir_tensor_release(tensor);
	cr_expect_eq(((const int32_t *)weir_tensor_data(flat))[11], 11);
	weir_tensor_release(flat);
}

Test(tensor_reshape, another_number_of_elements_is_refused)
{
	weir_tensor *tensor = counting(SHAPE(4, 3), NULL);
	weir_tensor *view = untouched;

	cr_expect_eq(weir_tensor_reshape(tensor, SHAPE(11), &view), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_reshape(tensor, SHAPE(-1, 3), &view), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_reshape(tensor, NULL, &view), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_reshape(NULL, SHAPE(12), &view), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_reshape(tensor, SHAPE(12), NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(view, untouched);
	weir_tensor_release(tensor);
}
