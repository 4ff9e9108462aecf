/*
 * test_staging.c - staging areas: order, bounds by number and bytes, peeks without taking; waits
 * that end by a deadline, a token or a handle.
 */
#include "area_kit.h"

#include <weir/flow/staging.h>

#include "stepped.h"

/* -- areas ------------------------------------------------------------------------------------- */

static weir_staging *area_with(struct weir_staging_options options)
{
	weir_staging *staging = NULL;
	weir_error error = {0};

	options.struct_size = sizeof(options);
	options.name = "test";
	cr_assert_eq(weir_staging_create(&options, &staging, &error), WEIR_OK, "%s", error.message);
	return staging;
}

/* An area of i32 scalars. */
static weir_staging *area_of_scalars(size_t capacity)
{
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "label"};

	return area_with(
		(struct weir_staging_options){.capacity = capacity, .components = &component, .component_count = 1});
}

static void end(weir_staging *staging)
{
	weir_error error = {0};

	cr_assert_eq(weir_staging_destroy(staging, &error), WEIR_OK, "%s", error.message);
	expect_no_tensor_left();
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
}

/* Releases the reference. */
static enum weir_status put_until(weir_staging *staging, weir_tensor *tensor, uint64_t deadline_ns)
{
	enum weir_status status = weir_staging_put(staging, &tensor, 1, deadline_ns, NULL, NULL);

	weir_tensor_release(tensor);
	return status;
}

static void stage(weir_staging *staging, int32_t value)
{
	cr_assert_eq(put_until(staging, number(value), 0), WEIR_OK);
}

static int32_t fetch(weir_staging *staging)
{
	weir_tensor *tensor = NULL;
	int32_t value;

	cr_assert_eq(weir_staging_get(staging, &tensor, 1, 0, NULL, NULL), WEIR_OK);
	value = value_of(tensor);
	weir_tensor_release(tensor);
	return value;
}

static int32_t peek(weir_staging *staging, size_t index)
{
	weir_tensor *tensor = NULL;
	int32_t value;

	cr_assert_eq(weir_staging_peek(staging, index, &tensor, 1, 0, NULL, NULL), WEIR_OK);
	value = value_of(tensor);
	weir_tensor_release(tensor);
	return value;
}

static size_t size_of(const weir_staging *staging)
{
	size_t size = SIZE_MAX;

	cr_assert_eq(weir_staging_size(staging, &size, NULL), WEIR_OK);
	return size;
}

static size_t bytes_of(const weir_staging *staging)
{
	size_t bytes = SIZE_MAX;

	cr_assert_eq(weir_staging_size(staging, NULL, &bytes), WEIR_OK);
	return bytes;
}

/* -- calls on threads of their own ------------------------------------------------------------- */

/* '+' put, '-' get, 'p' peek, at index `key` */
static enum weir_status call(struct caller *c, weir_tensor **tensor)
{
	switch (c->what) {
	case '+':
		*tensor = number(c->value);
		return weir_staging_put(c->area, tensor, 1, c->deadline_ns, c->token, &c->error);
	case '-': return weir_staging_get(c->area, tensor, 1, c->deadline_ns, c->token, &c->error);
	default: return weir_staging_peek(c->area, (size_t)c->key, tensor, 1, c->deadline_ns, c->token, &c->error);
	}
}

/* -- the rows of the reference ----------------------------------------------------------------- */

Test(staging, STG_001_each_get_returns_the_put_before)
{
	weir_staging *staging = area_of_scalars(0);

	stage(staging, -1);
	for (int32_t i = 0; i < 10; i++) {
		stage(staging, i);
		cr_assert_eq(fetch(staging), i - 1);
	}
	cr_assert_eq(fetch(staging), 9);
	end(staging);
}

Test(staging, STG_002_the_same_with_two_components)
{
	weir_shape pair = vector_shape(2);
	struct weir_tensor_component components[] = {{WEIR_I32, &pair, NULL}, {WEIR_I32, &scalar_shape, NULL}};
	weir_staging *staging = area_with((struct weir_staging_options){.components = components, .component_count = 2});

	for (int32_t i = 0; i < 10; i++) {
		weir_tensor *in[] = {numbers_of(pair, 10 * i), number(i)}, *out[2];

		cr_assert_eq(weir_staging_put(staging, in, 2, 0, NULL, NULL), WEIR_OK);
		weir_tensor_release(in[0]);
		weir_tensor_release(in[1]);
		if (i == 0)
			continue;
		cr_assert_eq(weir_staging_get(staging, out, 2, 0, NULL, NULL), WEIR_OK);
		expect_values(out[0], pair, (const int32_t[]){10 * (i - 1), 10 * (i - 1) + 1});
		cr_assert_eq(value_of(out[1]), i - 1);
		weir_tensor_release(out[0]);
		weir_tensor_release(out[1]);
	}
	end(staging);
}

Test(staging, STG_003_components_are_found_by_their_names)
{
	struct weir_tensor_component components[] = {{WEIR_I32, &scalar_shape, "x"}, {WEIR_I32, &scalar_shape, "v"}};
	weir_staging *staging = area_with((struct weir_staging_options){.components = components, .component_count = 2});
	weir_tensor *in[2], *out[2];
	size_t x = 9, v = 9, none = 9;

	cr_assert_eq(weir_staging_place(staging, "x", &x), WEIR_OK);
	cr_assert_eq(weir_staging_place(staging, "v", &v), WEIR_OK);
	cr_assert_eq(weir_staging_place(staging, "w", &none), WEIR_NOT_FOUND);
	cr_assert(x == 0 && v == 1 && none == 9);
	in[x] = number(3);
	in[v] = number(4);
	cr_assert_eq(weir_staging_put(staging, in, 2, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_staging_get(staging, out, 2, 0, NULL, NULL), WEIR_OK);
	cr_assert(out[x] == in[x] && out[v] == in[v]);
	for (int i = 0; i < 2; i++) {
		weir_tensor_release(in[i]);
		weir_tensor_release(out[i]);
	}
	end(staging);
}

Test(staging, STG_005_a_peek_shows_any_tuple_and_takes_none)
{
	weir_staging *staging = area_of_scalars(0);

	for (int32_t i = 0; i < 10; i++)
		stage(staging, i);
	for (size_t i = 0; i < 10; i++)
		cr_assert_eq(peek(staging, i), (int32_t)i);
	cr_assert_eq(size_of(staging), 10);
	for (int32_t i = 0; i < 10; i++)
		cr_assert_eq(fetch(staging), i);
	end(staging);
}

Test(staging, STG_006_size_and_clear)
{
	weir_staging *staging = area_of_scalars(0);

	stage(staging, -1);
	cr_assert_eq(size_of(staging), 1);
	stage(staging, 1);
	cr_assert_eq(size_of(staging), 2);
	cr_assert_eq(bytes_of(staging), 8);
	cr_assert_eq(weir_staging_clear(staging), WEIR_OK);
	expect_no_tensor_left();
	cr_assert_eq(size_of(staging), 0);
	cr_assert_eq(bytes_of(staging), 0);
	stage(staging, 2);
	cr_assert_eq(fetch(staging), 2);
	end(staging);
}

Test(staging, STG_007_the_fourth_put_waits_at_capacity_3)
{
	weir_staging *staging = area_of_scalars(3);
	struct caller puts[5];

	for (int32_t i = 0; i < 3; i++)
		stage(staging, i);
	for (int32_t i = 0; i < 5; i++) {
		puts[i] = (struct caller){.area = staging, .what = '+', .value = 3 + i};
		begin(call, &puts[i], (size_t)i + 1);
	}
	cr_assert_eq(size_of(staging), 3);
	for (int32_t i = 0; i < 8; i++)
		cr_assert_eq(fetch(staging), i, "waiting calls are served in the order in which they came");
	for (int i = 0; i < 5; i++)
		cr_assert_eq(join(&puts[i]), WEIR_OK);
	cr_assert_eq(size_of(staging), 0);
	end(staging);
}

enum { CHUNK = 50000 /* i32: 200,000 bytes */ };

Test(staging, STG_008_the_third_put_waits_at_the_memory_limit)
{
	weir_shape shape = vector_shape(CHUNK);
	struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	weir_staging *staging = area_with(
		(struct weir_staging_options){.memory_limit = 512 << 10, .components = &component, .component_count = 1});

	for (int32_t i = 0; i < 2; i++)
		cr_assert_eq(put_until(staging, numbers_of(shape, i), 0), WEIR_OK);
	cr_assert_eq(bytes_of(staging), 2 * CHUNK * sizeof(int32_t));
	cr_assert_eq(put_until(staging, numbers_of(shape, 2), 0), WEIR_DEADLINE_EXCEEDED);
	/* A small tuple fits. */
	stage(staging, 2);
	cr_assert_eq(fetch(staging), 0);
	cr_assert_eq(put_until(staging, numbers_of(shape, 3), 0), WEIR_OK);
	for (int32_t i = 1; i < 4; i++)
		cr_assert_eq(fetch(staging), i);
	for (int32_t i = 4; i < 8; i++) {
		cr_assert_eq(put_until(staging, numbers_of(shape, i), 0), WEIR_OK);
		cr_assert_eq(fetch(staging), i);
	}
	end(staging);
}

/* -- waiting ----------------------------------------------------------------------------------- */

Test(staging, a_get_waits_for_a_put_and_a_peek_for_as_many_as_it_asks_for)
{
	weir_staging *staging = area_of_scalars(0);
	struct caller first = {.area = staging, .what = 'p', .key = 1}, second = {.area = staging, .what = '-'};

	begin(call, &first, 1);
	stage(staging, 5);
	cr_assert_eq(waiters_dumped("test"), 1, "one tuple is not enough for a peek at index 1");
	stage(staging, 6);
	cr_assert_eq(join(&first), WEIR_OK);
	cr_assert_eq(first.value, 6);
	cr_assert_eq(fetch(staging), 5);
	cr_assert_eq(fetch(staging), 6);
	begin(call, &second, 1);
	stage(staging, 7);
	cr_assert_eq(join(&second), WEIR_OK);
	cr_assert_eq(second.value, 7);
	end(staging);
}

Test(staging, clear_lets_puts_go_on_that_wait_for_room)
{
	weir_staging *staging = area_of_scalars(1);
	struct caller waiting = {.area = staging, .what = '+', .value = 2};

	stage(staging, 1);
	begin(call, &waiting, 1);
	cr_assert_eq(weir_staging_clear(staging), WEIR_OK);
	cr_assert_eq(join(&waiting), WEIR_OK);
	cr_assert_eq(fetch(staging), 2);
	end(staging);
}

/* The tuple that waits longest may be too large for the room. A smaller one then comes first. */
Test(staging, a_small_tuple_does_not_wait_behind_a_large_one)
{
	struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	weir_staging *staging =
		area_with((struct weir_staging_options){.memory_limit = 12, .components = &component, .component_count = 1});
	weir_tensor *large = numbers_of(vector_shape(3), 7);
	weir_error error;

	stage(staging, 1);
	cr_assert_eq(weir_staging_put(staging, &large, 1, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	weir_tensor_release(large);
	stage(staging, 2);
	large = numbers_of(vector_shape(4), 7);
	/* Often enough that collections run inside the refusals. */
	for (int i = 0; i < 1000; i++) {
		cr_assert_eq(weir_staging_put(staging, &large, 1, WEIR_NO_DEADLINE, NULL, &error), WEIR_RESOURCE_EXHAUSTED);
		cr_assert_str_eq(error.message, "staging area \"test\": a tuple of 16 bytes, the limit of all is 12");
	}
	weir_tensor_release(large);
	end(staging);
}

Test(staging, a_wait_ends_at_its_deadline_or_when_its_token_fires)
{
	weir_staging *staging = area_of_scalars(1);
	struct caller late = {.area = staging, .what = '-', .deadline_ns = weir_deadline_in(50000000)},
				  cancelled = {.area = staging, .what = 'p', .key = 3};
	weir_tensor *tensor;

	expect_waits_end(call, &late, "staging area \"test\": the deadline passed in get", &cancelled,
	                 "staging area \"test\": peek was cancelled: the reason");
	cr_assert_eq(weir_staging_get(staging, &tensor, 1, WEIR_NO_DEADLINE, cancelled.token, NULL), WEIR_CANCELLED);
	weir_cancel_release(cancelled.token);
	cr_assert_eq(waiters_dumped("test"), 0);
	stage(staging, 4);
	cr_assert_eq(fetch(staging), 4, "nothing was lost");
	end(staging);
}

/* -- asynchronous operations ------------------------------------------------------------------- */

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple, size_t count)
{
	note_outcome(context, status, error, 0, tuple, count);
}

Test(staging, operations_wait_without_a_thread_and_complete_once)
{
	weir_staging *staging = area_of_scalars(1);
	struct outcome got = {0}, seen = {0}, in = {0}, behind = {0};
	weir_tensor *one = number(1), *two = number(2);

	cr_assert_eq(weir_staging_start_peek(staging, 0, note, &seen, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_staging_start_get(staging, note, &got, NULL, NULL), WEIR_OK);
	cr_assert(got.calls == 0 && seen.calls == 0);
	cr_assert_eq(weir_staging_start_put(staging, &one, 1, note, &in, NULL, NULL), WEIR_OK);
	cr_assert(in.calls == 1 && in.status == WEIR_OK);
	cr_assert(seen.calls == 1 && seen.status == WEIR_OK && seen.value == 1);
	cr_assert(got.calls == 1 && got.status == WEIR_OK && got.value == 1);
	stage(staging, 5);
	cr_assert_eq(weir_staging_start_put(staging, &two, 1, note, &behind, NULL, NULL), WEIR_OK);
	cr_assert_eq(behind.calls, 0);
	cr_assert_eq(fetch(staging), 5);
	cr_assert(behind.calls == 1 && behind.status == WEIR_OK);
	cr_assert_eq(fetch(staging), 2);
	weir_tensor_release(one);
	weir_tensor_release(two);
	end(staging);
}

Test(staging, an_operation_is_cancelled_by_its_handle_once)
{
	weir_staging *staging = area_of_scalars(1);
	struct outcome got = {0}, in = {0};
	weir_pending *get_op, *put_op;
	weir_tensor *one = number(1);
	weir_error error;

	cr_assert_eq(weir_staging_start_get(staging, note, &got, &get_op, NULL), WEIR_OK);
	cr_assert_eq(weir_staging_destroy(staging, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_str_eq(error.message, "staging area \"test\": 1 waiting operation");
	weir_pending_cancel(get_op, NULL);
	weir_pending_cancel(get_op, NULL);
	weir_pending_release(get_op);
	cr_assert(got.calls == 1 && got.status == WEIR_CANCELLED);
	cr_assert_str_eq(got.message, "staging area \"test\": get was cancelled: cancelled");
	stage(staging, 5);
	cr_assert_eq(weir_staging_start_put(staging, &one, 1, note, &in, &put_op, NULL), WEIR_OK);
	weir_tensor_release(one);
	weir_pending_cancel(put_op, NULL);
	weir_pending_release(put_op);
	cr_assert(in.calls == 1 && in.status == WEIR_CANCELLED);
	cr_assert_eq(fetch(staging), 5);
	end(staging);
}

/* -- refusals ---------------------------------------------------------------------------------- */

Test(staging, bad_arguments_are_refused_by_name)
{
	weir_shape pair = {.rank = 1, .dims = {-1}};
	struct weir_tensor_component component = {WEIR_I32, &pair, "image"};
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .flags = 1, .components = &component,
	                                       .component_count = 1};
	weir_staging *staging = NULL;
	weir_tensor *scalar = number(1), *vector = numbers_of(vector_shape(3), 1), *out[2] = {NULL, NULL};
	weir_tensor *real = NULL, *pairs[2] = {vector, vector};
	weir_error error;

	cr_assert_eq(weir_staging_create(&options, &staging, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.component_count = 0;
	cr_assert_eq(weir_staging_create(&options, &staging, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_create(NULL, &staging, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(staging);
	options.component_count = 1;
	staging = area_with(options);
	cr_assert_eq(weir_staging_put(staging, &vector, 1, 0, NULL, NULL), WEIR_OK, "an unknown dim may be anything");
	cr_assert_eq(weir_staging_put(staging, &scalar, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "staging area \"test\": component 0 (image): shape must be [?], got []");
	cr_assert_eq(weir_tensor_scalar_f32(1, &real), WEIR_OK);
	cr_assert_eq(weir_staging_put(staging, &real, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "staging area \"test\": component 0 (image): dtype must be i32, got f32");
	cr_assert_eq(weir_staging_put(staging, pairs, 2, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "staging area \"test\": a tuple has 1 component, got 2");
	cr_assert_eq(weir_staging_get(staging, out, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(size_of(staging), 1, "nothing was taken");
	cr_assert_eq(weir_staging_get(staging, NULL, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_put(NULL, &scalar, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_start_get(staging, NULL, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_start_get(NULL, note, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_clear(NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_size(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_place(staging, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_staging_place(staging, "x", NULL), WEIR_INVALID_ARGUMENT);
	weir_pending_cancel(NULL, NULL);
	weir_pending_release(NULL);
	cr_assert_eq(weir_staging_destroy(NULL, NULL), WEIR_OK);
	weir_tensor_release(scalar);
	weir_tensor_release(vector);
	weir_tensor_release(real);
	end(staging);
}

static enum weir_status use_with(const weir_allocator *allocator, void *context)
{
	struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .components = &component, .component_count = 1,
	                                       .allocator = allocator};
	weir_staging *staging;
	enum weir_status status = weir_staging_create(&options, &staging, NULL);
	weir_tensor *tensor = context, *out;

	if (status != WEIR_OK)
		return status;
	for (int i = 0; status == WEIR_OK && i < 3; i++)
		status = weir_staging_put(staging, &tensor, 1, 0, NULL, NULL);
	if (status == WEIR_OK)
		status = weir_staging_peek(staging, 2, &out, 1, 0, NULL, NULL);
	if (status == WEIR_OK) {
		weir_tensor_release(out);
		status = weir_staging_get(staging, &out, 1, 0, NULL, NULL);
	}
	if (status == WEIR_OK) {
		weir_tensor_release(out);
		status = weir_staging_clear(staging);
	}
	cr_assert_eq(weir_staging_destroy(staging, NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	return status;
}

Test(staging, every_call_survives_every_allocation_failing)
{
	expect_survives_each_allocation(use_with);
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { PUTTERS = 3, GETTERS = 2, PER_PUTTER = 2000 };

struct traffic {
	weir_staging *staging;
	_Atomic(int32_t) next;
	int64_t sum[GETTERS];
	int disorder[GETTERS];
};

static void *put_many(void *context)
{
	struct traffic *traffic = context;
	int32_t me = weiri_fetch_add_relaxed(&traffic->next, 1);

	for (int32_t i = 1; i <= PER_PUTTER; i++) {
		if (put_until(traffic->staging, number(me << 20 | i), WEIR_NO_DEADLINE) != WEIR_OK)
			abort();
	}
	return NULL;
}

static void *get_many(void *context)
{
	struct traffic *traffic = context;
	int32_t me = weiri_fetch_add_relaxed(&traffic->next, 1) - PUTTERS, last[PUTTERS] = {0};

	for (int i = 0; i < PUTTERS * PER_PUTTER / GETTERS; i++) {
		weir_tensor *tensor;
		int32_t value;

		if (weir_staging_get(traffic->staging, &tensor, 1, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			abort();
		value = value_of(tensor);
		traffic->disorder[me] |= (value & 0xfffff) <= last[value >> 20];
		last[value >> 20] = value & 0xfffff;
		traffic->sum[me] += value & 0xfffff;
		weir_tensor_release(tensor);
	}
	return NULL;
}

Test(staging, many_threads_lose_nothing_and_keep_each_putters_order)
{
	static struct traffic traffic;
	pthread_t threads[PUTTERS + GETTERS];

	traffic = (struct traffic){.staging = area_of_scalars(4)};
	for (int i = 0; i < PUTTERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, put_many, &traffic), 0);
	await(weiri_load_relaxed(&traffic.next) == PUTTERS);
	for (int i = PUTTERS; i < PUTTERS + GETTERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, get_many, &traffic), 0);
	for (int i = 0; i < PUTTERS + GETTERS; i++)
		(void)pthread_join(threads[i], NULL);
	cr_assert_eq(traffic.sum[0] + traffic.sum[1], (int64_t)PUTTERS * PER_PUTTER * (PER_PUTTER + 1) / 2);
	cr_assert_not(traffic.disorder[0] || traffic.disorder[1]);
	cr_assert_eq(size_of(traffic.staging), 0);
	end(traffic.staging);
}

/* -- a call stopped anywhere ------------------------------------------------------------------- */

static void get_one(void *context)
{
	weir_tensor *tensor;

	cr_assert_eq(weir_staging_get(context, &tensor, 1, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

Test(staging, a_get_stopped_anywhere_stops_nobody_who_does_not_wait)
{
	struct stepped call_of = {.call = get_one};
	size_t at = 0;

	stepped_or_skip();
	for (int goes_on = 1; goes_on; at += stepped_stride(13)) {
		weir_staging *staging = area_of_scalars(0);
		size_t left;

		for (int32_t i = 0; i < 4; i++)
			stage(staging, i);
		call_of.context = staging;
		goes_on = stepped_start(&call_of, at);
		stage(staging, 4);
		left = size_of(staging);
		cr_assert(left == 4 || left == 5);
		cr_assert_eq(fetch(staging), left == 5 ? 0 : 1);
		stepped_finish(&call_of);
		cr_assert_eq(size_of(staging), 3);
		cr_assert_eq(fetch(staging), 2);
		end(staging);
	}
}
