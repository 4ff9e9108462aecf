/*
 * test_map_staging.c - map staging areas: tuples by key, in parts; bounds by number and bytes;
 * waits that end by a deadline, a token or a handle.
 */
#include "area_kit.h"

#include <weir/flow/map_staging.h>

#include "stepped.h"

/* -- areas ------------------------------------------------------------------------------------- */

static weir_map_staging *area_with(struct weir_map_staging_options options)
{
	weir_map_staging *map = NULL;
	weir_error error = {0};

	options.struct_size = sizeof(options);
	options.name = "test";
	cr_assert_eq(weir_map_staging_create(&options, &map, &error), WEIR_OK, "%s", error.message);
	return map;
}

/* An area of i32 scalars. */
static weir_map_staging *area_of_scalars(size_t capacity)
{
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "label"};

	return area_with(
		(struct weir_map_staging_options){.capacity = capacity, .components = &component, .component_count = 1});
}

enum { X, V, F, THREE };

/* Three i32 scalars: x, v, f. */
static weir_map_staging *area_of_three(void)
{
	struct weir_tensor_component components[] = {
		{WEIR_I32, &scalar_shape, "x"}, {WEIR_I32, &scalar_shape, "v"}, {WEIR_I32, &scalar_shape, "f"}};

	return area_with((struct weir_map_staging_options){.components = components, .component_count = THREE});
}

static void end(weir_map_staging *map)
{
	weir_error error = {0};

	cr_assert_eq(weir_map_staging_destroy(map, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	expect_no_tensor_left();
}

/* Component `place` of `key` is 10 * key + place. */
static int32_t content(int64_t key, size_t place)
{
	return (int32_t)(10 * key + (int64_t)place);
}

static enum weir_status put_some(weir_map_staging *map, int64_t key, const size_t places[], size_t count,
                                 weir_error *error)
{
	weir_tensor *tensors[THREE];
	enum weir_status status;

	for (size_t i = 0; i < count; i++)
		tensors[i] = number(content(key, places != NULL ? places[i] : i));
	status = weir_map_staging_put(map, key, places, tensors, count, 0, NULL, error);
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tensors[i]);
	return status;
}

static void stage_some(weir_map_staging *map, int64_t key, const size_t places[], size_t count)
{
	weir_error error = {0};

	cr_assert_eq(put_some(map, key, places, count, &error), WEIR_OK, "%s", error.message);
}

/* Stages all components of the tuple. */
static void stage(weir_map_staging *map, int64_t key, size_t count)
{
	stage_some(map, key, NULL, count);
}

static void expect_content(weir_tensor *tensors[], int64_t key, const size_t places[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cr_assert_eq(value_of(tensors[i]), content(key, places != NULL ? places[i] : i));
		weir_tensor_release(tensors[i]);
	}
}

static void fetch_some(weir_map_staging *map, int64_t key, const size_t places[], size_t count)
{
	weir_tensor *tensors[THREE];
	weir_error error = {0};

	cr_assert_eq(weir_map_staging_get(map, key, places, tensors, count, 0, NULL, &error), WEIR_OK, "%s", error.message);
	expect_content(tensors, key, places, count);
}

static void fetch(weir_map_staging *map, int64_t key, size_t count)
{
	fetch_some(map, key, NULL, count);
}

/* Returns the key that came out. */
static int64_t fetch_any(weir_map_staging *map, const size_t places[], size_t count)
{
	weir_tensor *tensors[THREE];
	int64_t key = INT64_MIN;

	cr_assert_eq(weir_map_staging_get_any(map, places, &key, tensors, count, 0, NULL, NULL), WEIR_OK);
	expect_content(tensors, key, places, count);
	return key;
}

static void peek_some(weir_map_staging *map, int64_t key, const size_t places[], size_t count)
{
	weir_tensor *tensors[THREE];

	cr_assert_eq(weir_map_staging_peek(map, key, places, tensors, count, 0, NULL, NULL), WEIR_OK);
	expect_content(tensors, key, places, count);
}

/* The bytes are those of i32 scalars, of which there are `components`. */
static void expect_sizes(const weir_map_staging *map, size_t complete, size_t incomplete, size_t components)
{
	size_t is_complete = SIZE_MAX, is_incomplete = SIZE_MAX, bytes = SIZE_MAX;

	cr_assert_eq(weir_map_staging_size(map, &is_complete, &is_incomplete, &bytes), WEIR_OK);
	cr_assert_eq(is_complete, complete, "%zu complete, not %zu", is_complete, complete);
	cr_assert_eq(is_incomplete, incomplete, "%zu incomplete, not %zu", is_incomplete, incomplete);
	cr_assert_eq(bytes, components * sizeof(int32_t));
}

/* -- calls on threads of their own ------------------------------------------------------------- */

/* '+' put, '-' get, '*' get any, 'p' peek, each of one component */
static enum weir_status call(struct caller *c, weir_tensor **tensor)
{
	switch (c->what) {
	case '+':
		*tensor = number(content(c->key, 0));
		return weir_map_staging_put(c->area, c->key, NULL, tensor, 1, c->deadline_ns, c->token, &c->error);
	case '-': return weir_map_staging_get(c->area, c->key, NULL, tensor, 1, c->deadline_ns, c->token, &c->error);
	case '*': return weir_map_staging_get_any(c->area, NULL, &c->key, tensor, 1, c->deadline_ns, c->token, &c->error);
	default: return weir_map_staging_peek(c->area, c->key, NULL, tensor, 1, c->deadline_ns, c->token, &c->error);
	}
}

/* -- the rows of the reference ----------------------------------------------------------------- */

Test(map_staging, MST_001_each_get_returns_what_was_put_under_its_key)
{
	weir_map_staging *map = area_of_scalars(0);

	stage(map, -1, 1);
	for (int64_t i = 0; i < 10; i++) {
		stage(map, i, 1);
		fetch(map, i - 1, 1);
	}
	fetch(map, 9, 1);
	expect_sizes(map, 0, 0, 0);
	end(map);
}

Test(map_staging, MST_002_the_same_with_two_components)
{
	weir_shape pair = vector_shape(2);
	struct weir_tensor_component components[] = {{WEIR_I32, &pair, NULL}, {WEIR_I32, &scalar_shape, NULL}};
	weir_map_staging *map =
		area_with((struct weir_map_staging_options){.components = components, .component_count = 2});

	for (int32_t i = 0; i < 10; i++) {
		weir_tensor *in[] = {numbers_of(pair, 10 * i), number(i)}, *out[2];

		cr_assert_eq(weir_map_staging_put(map, i, NULL, in, 2, 0, NULL, NULL), WEIR_OK);
		weir_tensor_release(in[0]);
		weir_tensor_release(in[1]);
		if (i == 0)
			continue;
		cr_assert_eq(weir_map_staging_get(map, i - 1, NULL, out, 2, 0, NULL, NULL), WEIR_OK);
		cr_assert(weir_shape_equal(weir_tensor_shape(out[0]), &pair));
		cr_assert_eq(value_of(out[0]), 10 * (i - 1));
		cr_assert_eq(value_of(out[1]), i - 1);
		weir_tensor_release(out[0]);
		weir_tensor_release(out[1]);
	}
	end(map);
}

Test(map_staging, MST_003_components_are_found_by_their_names)
{
	weir_map_staging *map = area_of_three();
	size_t x = 9, v = 9, none = 9;

	cr_assert_eq(weir_map_staging_place(map, "x", &x), WEIR_OK);
	cr_assert_eq(weir_map_staging_place(map, "v", &v), WEIR_OK);
	cr_assert_eq(weir_map_staging_place(map, "w", &none), WEIR_NOT_FOUND);
	cr_assert(x == X && v == V && none == 9);
	stage_some(map, 3, (const size_t[]){v, F, x}, 3);
	fetch_some(map, 3, (const size_t[]){x, v, F}, 3);
	end(map);
}

Test(map_staging, MST_005_a_peek_shows_the_tuple_of_a_key_and_takes_none)
{
	weir_map_staging *map = area_of_scalars(0);

	for (int64_t i = 0; i < 10; i++)
		stage(map, i, 1);
	for (int64_t i = 9; i >= 0; i--)
		peek_some(map, i, NULL, 1);
	expect_sizes(map, 10, 0, 10);
	for (int64_t i = 0; i < 10; i++)
		fetch(map, i, 1);
	end(map);
}

Test(map_staging, MST_006_size_and_clear)
{
	weir_map_staging *map = area_of_three();

	stage(map, -1, 3);
	expect_sizes(map, 1, 0, 3);
	stage(map, 1, 3);
	stage_some(map, 2, (const size_t[]){V}, 1);
	expect_sizes(map, 2, 1, 7);
	cr_assert_eq(weir_map_staging_clear(map), WEIR_OK);
	expect_no_tensor_left();
	expect_sizes(map, 0, 0, 0);
	stage(map, 1, 3);
	fetch(map, 1, 3);
	end(map);
}

Test(map_staging, MST_007_the_fourth_put_waits_at_capacity_3)
{
	weir_map_staging *map = area_of_scalars(3);
	struct caller puts[5];

	for (int64_t i = 0; i < 3; i++)
		stage(map, i, 1);
	for (int i = 0; i < 5; i++) {
		puts[i] = (struct caller){.area = map, .what = '+', .key = 3 + i};
		begin(call, &puts[i], (size_t)i + 1);
	}
	expect_sizes(map, 3, 0, 3);
	for (int64_t i = 0; i < 8; i++)
		/* Waiting calls are served in the order in which they came. */
		fetch(map, i, 1);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(join(&puts[i]), WEIR_OK);
	expect_sizes(map, 0, 0, 0);
	end(map);
}

Test(map_staging, MST_009_what_was_put_in_descending_order_of_keys_comes_out_ascending)
{
	weir_map_staging *map = area_of_scalars(0);

	for (int64_t key = 50; key >= -50; key--)
		stage(map, key, 1);
	for (int64_t key = -50; key <= 50; key++)
		cr_assert_eq(fetch_any(map, NULL, 1), key);
	end(map);
}

static const size_t x_and_f[] = {X, F}, only_v[] = {V};

Test(map_staging, MST_010_a_key_is_complete_with_its_last_component)
{
	weir_map_staging *map = area_of_three();

	stage_some(map, 0, x_and_f, 2);
	expect_sizes(map, 0, 1, 2);
	stage_some(map, 1, x_and_f, 2);
	expect_sizes(map, 0, 2, 4);
	stage_some(map, 0, only_v, 1);
	expect_sizes(map, 1, 1, 5);
	stage_some(map, 1, only_v, 1);
	expect_sizes(map, 2, 0, 6);
	fetch(map, 0, 3);
	fetch(map, 1, 3);
	expect_sizes(map, 0, 0, 0);
	end(map);
}

Test(map_staging, MST_012_a_key_may_be_looked_at_and_taken_in_parts)
{
	weir_map_staging *map = area_of_three();
	weir_tensor *tensors[2] = {NULL, NULL};
	weir_error error;

	stage_some(map, 0, x_and_f, 2);
	stage_some(map, 0, only_v, 1);
	peek_some(map, 0, x_and_f, 2);
	peek_some(map, 0, only_v, 1);
	expect_sizes(map, 1, 0, 3);
	fetch_some(map, 0, x_and_f, 2);
	expect_sizes(map, 1, 0, 1);
	cr_assert_eq(weir_map_staging_get(map, 0, x_and_f, tensors, 2, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": component 0 (x) of key 0 has already been removed");
	cr_assert_eq(weir_map_staging_peek(map, 0, x_and_f, tensors, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert(tensors[0] == NULL && tensors[1] == NULL);
	fetch_some(map, 0, only_v, 1);
	expect_sizes(map, 0, 0, 0);
	/* The same for a get of any key. */
	stage(map, 7, 3);
	cr_assert_eq(fetch_any(map, x_and_f, 2), 7);
	cr_assert_eq(weir_map_staging_get_any(map, x_and_f, &(int64_t){0}, tensors, 2, 0, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_assert_eq(fetch_any(map, only_v, 1), 7);
	expect_sizes(map, 0, 0, 0);
	end(map);
}

Test(map_staging, MST_013_parts_are_taken_by_their_index)
{
	weir_map_staging *map = area_of_three();

	stage(map, 4, 3);
	for (size_t place = 0; place < 3; place++) {
		expect_sizes(map, 1, 0, 3 - place);
		fetch_some(map, 4, &place, 1);
	}
	expect_sizes(map, 0, 0, 0);
	end(map);
}

/* Keys are int64_t in every call. Here tensors become such keys. */
Test(map_staging, MST_014_a_tensor_that_is_no_scalar_is_no_key)
{
	weir_map_staging *map = area_of_scalars(0);
	int64_t values[] = {5, 6}, key = 9;
	weir_shape pair = vector_shape(2);
	weir_tensor *scalar = NULL, *vector = NULL, *narrow = number(5);
	weir_error error;

	cr_assert_eq(weir_tensor_scalar_i64(5, &scalar), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &pair, values, NULL, &vector), WEIR_OK);
	cr_assert_eq(weir_map_staging_key_of(map, vector, &key, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": a key must be i64 of shape [], got i64 of [2]");
	cr_assert_eq(weir_map_staging_key_of(map, narrow, &key, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": a key must be i64 of shape [], got i32 of []");
	cr_assert_eq(weir_map_staging_key_of(map, NULL, &key, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(key, 9);
	cr_assert_eq(weir_map_staging_key_of(map, scalar, &key, NULL), WEIR_OK);
	cr_assert_eq(key, 5);
	weir_tensor_release(scalar);
	weir_tensor_release(vector);
	weir_tensor_release(narrow);
	end(map);
}

/* -- waiting ----------------------------------------------------------------------------------- */

Test(map_staging, a_get_waits_for_its_own_key_and_get_any_for_one)
{
	weir_map_staging *map = area_of_scalars(0);
	struct caller own = {.area = map, .what = '-', .key = 5}, look = {.area = map, .what = 'p', .key = 5},
				  any = {.area = map, .what = '*', .key = 0};

	begin(call, &look, 1);
	begin(call, &own, 2);
	stage(map, 4, 1);
	cr_assert_eq(waiters_dumped("test"), 2, "another key is not enough");
	fetch(map, 4, 1);
	stage(map, 5, 1);
	cr_assert_eq(join(&look), WEIR_OK);
	cr_assert_eq(join(&own), WEIR_OK);
	cr_assert(look.value == 50 && own.value == 50);
	begin(call, &any, 1);
	stage(map, 6, 1);
	cr_assert_eq(join(&any), WEIR_OK);
	cr_assert(any.key == 6 && any.value == 60);
	end(map);
}

Test(map_staging, an_incomplete_key_is_waited_for)
{
	weir_map_staging *map = area_of_three();
	weir_tensor *tensor = NULL;
	weir_error error;
	int64_t key = 7;

	stage_some(map, 3, x_and_f, 2);
	cr_assert_eq(weir_map_staging_get(map, 3, x_and_f, &tensor, 1, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_assert_str_eq(error.message, "map staging area \"test\": key 3 is not complete at once");
	cr_assert_eq(weir_map_staging_get_any(map, x_and_f, &key, &tensor, 1, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_assert_str_eq(error.message, "map staging area \"test\": no complete key at once");
	cr_assert(key == 7 && tensor == NULL);
	end(map);
}

Test(map_staging, clear_lets_puts_go_on_that_wait_for_room)
{
	weir_map_staging *map = area_of_scalars(1);
	struct caller waiting = {.area = map, .what = '+', .key = 2};

	stage(map, 1, 1);
	begin(call, &waiting, 1);
	cr_assert_eq(weir_map_staging_clear(map), WEIR_OK);
	cr_assert_eq(join(&waiting), WEIR_OK);
	fetch(map, 2, 1);
	end(map);
}

Test(map_staging, a_put_waits_at_the_memory_limit_and_is_refused_where_it_could_never_fit)
{
	struct weir_tensor_component components[] = {{WEIR_I32, NULL, NULL}, {WEIR_I32, NULL, NULL}};
	weir_map_staging *map = area_with(
		(struct weir_map_staging_options){.memory_limit = 12, .components = components, .component_count = 2});
	weir_tensor *two = numbers_of(vector_shape(2), 7), *four = numbers_of(vector_shape(4), 7);
	const size_t first[] = {0}, second[] = {1};
	weir_error error;

	cr_assert_eq(weir_map_staging_put(map, 1, first, &two, 1, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_map_staging_put(map, 2, first, &two, 1, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_assert_str_eq(error.message, "map staging area \"test\": no room at once");
	cr_assert_eq(weir_map_staging_put(map, 2, first, &four, 1, WEIR_NO_DEADLINE, NULL, &error),
	             WEIR_RESOURCE_EXHAUSTED);
	cr_assert_str_eq(error.message, "map staging area \"test\": key 2 would have 16 bytes, the limit of all is 12");
	cr_assert_eq(weir_map_staging_put(map, 1, second, &two, 1, WEIR_NO_DEADLINE, NULL, &error), WEIR_RESOURCE_EXHAUSTED,
	             "what it has counts");
	cr_assert_str_eq(error.message, "map staging area \"test\": key 1 would have 16 bytes, the limit of all is 12");
	stage_some(map, 1, second, 1);
	cr_assert_eq(weir_map_staging_put(map, 2, first, &two, 1, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(weir_map_staging_get(map, 1, first, &two, 1, 0, NULL, NULL), WEIR_OK);
	/* The reference that the get returned: the area held the same tensor. */
	weir_tensor_release(two);
	cr_assert_eq(weir_map_staging_put(map, 2, first, &two, 1, 0, NULL, NULL), WEIR_OK,
	             "a part that has left makes room");
	weir_tensor_release(two);
	weir_tensor_release(four);
	end(map);
}

Test(map_staging, a_wait_ends_at_its_deadline_or_when_its_token_fires)
{
	weir_map_staging *map = area_of_scalars(1);
	struct caller late = {.area = map, .what = '-', .key = 1, .deadline_ns = weir_deadline_in(50000000)},
				  cancelled = {.area = map, .what = 'p', .key = 3};
	weir_tensor *tensor;

	expect_waits_end(call, &late, "map staging area \"test\": the deadline passed in get", &cancelled,
	                 "map staging area \"test\": peek was cancelled: the reason");
	cr_assert_eq(weir_map_staging_get(map, 1, NULL, &tensor, 1, WEIR_NO_DEADLINE, cancelled.token, NULL),
	             WEIR_CANCELLED);
	weir_cancel_release(cancelled.token);
	cr_assert_eq(waiters_dumped("test"), 0);
	stage(map, 1, 1);
	fetch(map, 1, 1);
	end(map);
}

/* -- asynchronous operations ------------------------------------------------------------------- */

static void note(void *context, enum weir_status status, const weir_error *error, int64_t key, weir_tensor **tensors,
                 size_t count)
{
	note_outcome(context, status, error, key, tensors, count);
}

Test(map_staging, operations_wait_without_a_thread_and_complete_once)
{
	weir_map_staging *map = area_of_scalars(1);
	struct outcome got = {0}, seen = {0}, any = {0}, in = {0}, behind = {0};
	weir_tensor *one = number(10), *two = number(20);

	cr_assert_eq(weir_map_staging_start_peek(map, 1, NULL, 1, note, &seen, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_map_staging_start_get(map, 1, NULL, 1, note, &got, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_map_staging_start_get_any(map, NULL, 1, note, &any, NULL, NULL), WEIR_OK);
	cr_assert(got.calls == 0 && seen.calls == 0 && any.calls == 0);
	cr_assert_eq(weir_map_staging_start_put(map, 1, NULL, &one, 1, note, &in, NULL, NULL), WEIR_OK);
	cr_assert(in.calls == 1 && in.status == WEIR_OK && in.count == 0);
	cr_assert(seen.calls == 1 && seen.status == WEIR_OK && seen.key == 1 && seen.value == 10);
	cr_assert(got.calls == 1 && got.status == WEIR_OK && got.key == 1 && got.value == 10);
	stage(map, 5, 1);
	cr_assert(any.calls == 1 && any.status == WEIR_OK && any.key == 5 && any.value == 50);
	stage(map, 6, 1);
	cr_assert_eq(weir_map_staging_start_put(map, 2, NULL, &two, 1, note, &behind, NULL, NULL), WEIR_OK);
	cr_assert_eq(behind.calls, 0);
	fetch(map, 6, 1);
	cr_assert(behind.calls == 1 && behind.status == WEIR_OK);
	fetch(map, 2, 1);
	weir_tensor_release(one);
	weir_tensor_release(two);
	end(map);
}

Test(map_staging, an_operation_is_cancelled_by_its_handle_once)
{
	weir_map_staging *map = area_of_scalars(1);
	struct outcome got = {0}, in = {0};
	weir_pending *get_op, *put_op;
	weir_tensor *one = number(1);
	weir_error error;

	cr_assert_eq(weir_map_staging_start_get(map, 1, NULL, 1, note, &got, &get_op, NULL), WEIR_OK);
	cr_assert_eq(weir_map_staging_destroy(map, &error), WEIR_FAILED_PRECONDITION);
	cr_assert_str_eq(error.message, "map staging area \"test\": 1 waiting operation");
	weir_pending_cancel(get_op, NULL);
	weir_pending_cancel(get_op, NULL);
	weir_pending_release(get_op);
	cr_assert(got.calls == 1 && got.status == WEIR_CANCELLED);
	cr_assert_str_eq(got.message, "map staging area \"test\": get was cancelled: cancelled");
	stage(map, 5, 1);
	cr_assert_eq(weir_map_staging_start_put(map, 2, NULL, &one, 1, note, &in, &put_op, NULL), WEIR_OK);
	weir_tensor_release(one);
	weir_pending_cancel(put_op, NULL);
	weir_pending_release(put_op);
	cr_assert(in.calls == 1 && in.status == WEIR_CANCELLED && in.count == 0);
	fetch(map, 5, 1);
	end(map);
}

Test(map_staging, a_get_that_was_started_waits_for_the_last_component)
{
	weir_map_staging *map = area_of_three();
	struct outcome whole = {0}, refused = {0};

	cr_assert_eq(weir_map_staging_start_get(map, 2, NULL, 3, note, &whole, NULL, NULL), WEIR_OK);
	stage_some(map, 2, x_and_f, 2);
	cr_assert_eq(whole.calls, 0, "not complete yet");
	stage_some(map, 2, only_v, 1);
	cr_assert(whole.calls == 1 && whole.status == WEIR_OK && whole.count == 3 && whole.key == 2);
	stage(map, 1, 3);
	fetch_some(map, 1, only_v, 1);
	cr_assert_eq(weir_map_staging_start_get(map, 1, NULL, 3, note, &refused, NULL, NULL), WEIR_OK);
	cr_assert(refused.calls == 1 && refused.status == WEIR_INVALID_ARGUMENT && refused.count == 0);
	cr_assert_str_eq(refused.message, "map staging area \"test\": component 1 (v) of key 1 has already been removed");
	fetch_some(map, 1, x_and_f, 2);
	end(map);
}

/* Another put may bring the same key meanwhile. */
Test(map_staging, a_put_that_waits_for_room_is_refused_once_its_key_is_there)
{
	struct weir_tensor_component components[] = {{WEIR_I32, NULL, NULL}, {WEIR_I32, NULL, NULL}};
	weir_map_staging *map = area_with(
		(struct weir_map_staging_options){.memory_limit = 12, .components = components, .component_count = 2});
	struct outcome large = {0};
	weir_tensor *two = numbers_of(vector_shape(2), 7);
	const size_t first[] = {0};

	stage(map, 1, 2);
	cr_assert_eq(weir_map_staging_start_put(map, 2, first, &two, 1, note, &large, NULL, NULL), WEIR_OK);
	weir_tensor_release(two);
	cr_assert_eq(large.calls, 0);
	/* A small tensor fits. */
	stage_some(map, 2, first, 1);
	cr_assert(large.calls == 1 && large.status == WEIR_INVALID_ARGUMENT && large.count == 0);
	cr_assert_str_eq(large.message, "map staging area \"test\": key 2 has component 0 (0) already");
	fetch(map, 1, 2);
	end(map);
}

/* -- refusals ---------------------------------------------------------------------------------- */

Test(map_staging, a_component_is_put_once)
{
	weir_map_staging *map = area_of_three();
	weir_error error;

	stage_some(map, -4, only_v, 1);
	cr_assert_eq(put_some(map, -4, (const size_t[]){X, V}, 2, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": key -4 has component 1 (v) already");
	expect_sizes(map, 0, 1, 1);
	stage_some(map, -4, x_and_f, 2);
	cr_assert_eq(put_some(map, -4, only_v, 1, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": key -4 is complete, and not all of it taken yet");
	fetch(map, -4, 3);
	stage(map, -4, 3);
	fetch(map, -4, 3);
	end(map);
}

Test(map_staging, bad_arguments_are_refused_by_name)
{
	weir_shape vector = {.rank = 1, .dims = {-1}};
	struct weir_tensor_component components[] = {{WEIR_I32, &vector, "image"}, {WEIR_I32, &scalar_shape, NULL}};
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .flags = 1, .components = components,
	                                           .component_count = 2};
	weir_map_staging *map = NULL;
	weir_tensor *in[] = {number(1), number(2)}, *out[2] = {NULL, NULL};
	weir_error error;

	cr_assert_eq(weir_map_staging_create(&options, &map, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.component_count = 0;
	cr_assert_eq(weir_map_staging_create(&options, &map, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_create(NULL, &map, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(map);
	options.component_count = 2;
	map = area_with(options);
	cr_assert_eq(weir_map_staging_put(map, 1, NULL, in, 2, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": component 0 (image): shape must be [?], got []");
	cr_assert_eq(weir_map_staging_put(map, 1, NULL, in, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": a tuple has 2 components, got 1");
	cr_assert_eq(weir_map_staging_put(map, 1, (const size_t[]){2}, in, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\" has 2 components, so there is no component 2");
	cr_assert_eq(weir_map_staging_get(map, 1, (const size_t[]){1, 1}, out, 2, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "map staging area \"test\": component 1 (1) is named twice");
	cr_assert_eq(weir_map_staging_get(map, 1, NULL, out, 0, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_get(map, 1, NULL, NULL, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_get_any(map, NULL, NULL, out, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_put(map, 1, NULL, NULL, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_put(NULL, 1, NULL, in, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_start_get(map, 1, NULL, 2, NULL, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_start_get(NULL, 1, NULL, 2, note, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_clear(NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_size(NULL, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_map_staging_place(map, NULL, NULL), WEIR_INVALID_ARGUMENT);
	weir_pending_cancel(NULL, NULL);
	weir_pending_release(NULL);
	cr_assert_eq(weir_map_staging_destroy(NULL, NULL), WEIR_OK);
	expect_sizes(map, 0, 0, 0);
	weir_tensor_release(in[0]);
	weir_tensor_release(in[1]);
	end(map);
}

/* -- allocations that fail --------------------------------------------------------------------- */

static enum weir_status take_and_peek(weir_map_staging *map)
{
	weir_tensor *out[2];
	int64_t key;
	enum weir_status status = weir_map_staging_peek(map, 2, NULL, out, 2, 0, NULL, NULL);

	if (status == WEIR_OK) {
		weir_tensor_release(out[0]);
		weir_tensor_release(out[1]);
		status = weir_map_staging_get_any(map, (const size_t[]){1}, &key, out, 1, 0, NULL, NULL);
	}
	if (status == WEIR_OK) {
		weir_tensor_release(out[0]);
		status = weir_map_staging_get(map, 1, NULL, out, 2, 0, NULL, NULL);
	}
	if (status == WEIR_OK) {
		weir_tensor_release(out[0]);
		weir_tensor_release(out[1]);
		status = weir_map_staging_clear(map);
	}
	return status;
}

static enum weir_status use_with(const weir_allocator *allocator, void *context)
{
	struct weir_tensor_component components[] = {{WEIR_I32, NULL, NULL}, {WEIR_I32, NULL, NULL}};
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .components = components,
	                                           .component_count = 2, .allocator = allocator};
	weir_map_staging *map;
	enum weir_status status = weir_map_staging_create(&options, &map, NULL);
	weir_tensor *tensors[] = {context, context};

	if (status != WEIR_OK)
		return status;
	for (int64_t key = 0; status == WEIR_OK && key < 3; key++)
		status = weir_map_staging_put(map, key, NULL, tensors, 2, 0, NULL, NULL);
	for (size_t place = 0; status == WEIR_OK && place < 2; place++)
		status = weir_map_staging_put(map, 3, &place, tensors, 1, 0, NULL, NULL);
	if (status == WEIR_OK)
		status = take_and_peek(map);
	cr_assert_eq(weir_map_staging_destroy(map, NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	return status;
}

Test(map_staging, every_call_survives_every_allocation_failing)
{
	expect_survives_each_allocation(use_with);
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { KEYS = 2000, TAKERS = 2 };

struct traffic {
	weir_map_staging *map;
	_Atomic(int) takers;
	int64_t sum[TAKERS];
	int torn[TAKERS];
};

static void put_parts(weir_map_staging *map, const size_t places[], size_t count)
{
	for (int64_t key = 0; key < KEYS; key++) {
		weir_tensor *tensors[THREE];

		for (size_t i = 0; i < count; i++)
			tensors[i] = number(content(key, places[i]));
		if (weir_map_staging_put(map, key, places, tensors, count, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			abort();
		for (size_t i = 0; i < count; i++)
			weir_tensor_release(tensors[i]);
	}
}

static void *put_x_and_f(void *context)
{
	put_parts(((struct traffic *)context)->map, x_and_f, 2);
	return NULL;
}

static void *put_v(void *context)
{
	put_parts(((struct traffic *)context)->map, only_v, 1);
	return NULL;
}

static void *take_any(void *context)
{
	struct traffic *traffic = context;
	int me = weiri_fetch_add_relaxed(&traffic->takers, 1);

	for (int i = 0; i < KEYS / TAKERS; i++) {
		weir_tensor *tensors[THREE];
		int64_t key;

		if (weir_map_staging_get_any(traffic->map, NULL, &key, tensors, THREE, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			abort();
		traffic->sum[me] += key;
		for (size_t place = 0; place < THREE; place++) {
			traffic->torn[me] |= value_of(tensors[place]) != content(key, place);
			weir_tensor_release(tensors[place]);
		}
	}
	return NULL;
}

Test(map_staging, threads_that_put_parts_and_take_wholes_lose_nothing)
{
	static struct traffic traffic;
	struct weir_tensor_component components[] = {
		{WEIR_I32, NULL, NULL}, {WEIR_I32, NULL, NULL}, {WEIR_I32, NULL, NULL}};
	pthread_t threads[2 + TAKERS];

	traffic = (struct traffic){.map = area_with((struct weir_map_staging_options){
								   .capacity = 4, .components = components, .component_count = THREE})};
	cr_assert_eq(pthread_create(&threads[0], NULL, put_x_and_f, &traffic), 0);
	cr_assert_eq(pthread_create(&threads[1], NULL, put_v, &traffic), 0);
	for (int i = 0; i < TAKERS; i++)
		cr_assert_eq(pthread_create(&threads[2 + i], NULL, take_any, &traffic), 0);
	for (int i = 0; i < 2 + TAKERS; i++)
		(void)pthread_join(threads[i], NULL);
	cr_assert_eq(traffic.sum[0] + traffic.sum[1], (int64_t)KEYS * (KEYS - 1) / 2);
	cr_assert_not(traffic.torn[0] || traffic.torn[1]);
	expect_sizes(traffic.map, 0, 0, 0);
	end(traffic.map);
}

/* -- a call stopped anywhere ------------------------------------------------------------------- */

static void take_v_of_1(void *context)
{
	weir_tensor *tensor;

	cr_assert_eq(weir_map_staging_get(context, 1, only_v, &tensor, 1, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

Test(map_staging, a_get_stopped_anywhere_stops_nobody_who_does_not_wait)
{
	struct stepped call_of = {.call = take_v_of_1};
	size_t at = 0;

	stepped_or_skip();
	for (int goes_on = 1; goes_on; at += stepped_stride(29)) {
		weir_map_staging *map = area_of_three();

		stage(map, 1, 3);
		stage(map, 2, 3);
		call_of.context = map;
		goes_on = stepped_start(&call_of, at);
		stage(map, 3, 3);
		fetch(map, 2, 3);
		fetch_some(map, 1, x_and_f, 2);
		stepped_finish(&call_of);
		expect_sizes(map, 1, 0, 3);
		end(map);
	}
}
