/*
 * test_keyed_join.c - keyed joins: parts that come in any order leave as whole tuples, inserts
 * happen completely or not at all, closes end waits.
 */
#include "tensor_queue_kit.h"

#include <weir/flow/keyed_join.h>
#include <weir/store.h>

#include "dump_kit.h"
#include "failing_allocator.h"
#include "late_failure.h"
#include "stepped.h"

/* -- keyed joins ------------------------------------------------------------------------------- */

static weir_keyed_join *keyed_join_with(struct weir_keyed_join_options options)
{
	weir_keyed_join *join = NULL;
	weir_error error = {0};

	options.struct_size = sizeof(options);
	options.name = "test";
	cr_assert_eq(weir_keyed_join_create(&options, &join, &error), WEIR_OK, "%s", error.message);
	return join;
}

/* A keyed join of two i32 scalars. */
static weir_keyed_join *pair_keyed_join(void)
{
	struct weir_tensor_component components[] = {{WEIR_I32, &scalar_shape, "a"}, {WEIR_I32, &scalar_shape, "b"}};

	return keyed_join_with((struct weir_keyed_join_options){.components = components, .component_count = 2});
}

static void end(weir_keyed_join *join)
{
	weir_error error = {0};

	cr_assert_eq(weir_keyed_join_destroy(join, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	expect_no_tensor_left();
}

/* Returns `count` keys, from "<prefix><first>" on. */
static weir_tensor *keys_of(char prefix, int first, int count)
{
	weir_shape shape = vector_shape(count);
	weir_tensor *tensor;
	char text[100][12];
	weir_bytes keys[100];

	cr_assert_leq(count, 100);
	for (int i = 0; i < count; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "%c%d", prefix, first + i);
		keys[i] = (weir_bytes){text[i], strlen(text[i])};
	}
	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, &shape, keys, NULL, &tensor), WEIR_OK);
	return tensor;
}

/* Key i of `prefix` gets value + i, for `count` keys from `first` on. */
static enum weir_status insert(weir_keyed_join *join, size_t component, char prefix, int first, int count, int value)
{
	weir_tensor *keys = keys_of(prefix, first, count), *values = numbers_of(vector_shape(count), value + first);
	enum weir_status status = weir_keyed_join_insert_many(join, component, keys, values, NULL);

	weir_tensor_release(keys);
	weir_tensor_release(values);
	return status;
}

static void insert_both(weir_keyed_join *join, int first, int count)
{
	cr_assert_eq(insert(join, 0, 'k', first, count, 100), WEIR_OK);
	cr_assert_eq(insert(join, 1, 'k', first, count, 200), WEIR_OK);
}

static size_t ready(const weir_keyed_join *join)
{
	size_t size = SIZE_MAX;

	cr_assert_eq(weir_keyed_join_size(join, &size, NULL), WEIR_OK);
	return size;
}

static size_t incomplete(const weir_keyed_join *join)
{
	size_t size = SIZE_MAX;

	cr_assert_eq(weir_keyed_join_size(join, NULL, &size), WEIR_OK);
	return size;
}

static void release(struct weir_keyed_join_batch *batch)
{
	weir_tensor_release(batch->indices);
	weir_tensor_release(batch->keys);
	for (size_t i = 0; batch->values[i] != NULL; i++)
		weir_tensor_release(batch->values[i]);
}

static int64_t index_at(const struct weir_keyed_join_batch *batch, int64_t row)
{
	return ((const int64_t *)weir_tensor_data(batch->indices))[row];
}

static int number_at(const struct weir_keyed_join_batch *batch, int64_t row)
{
	const weir_bytes *key = (const weir_bytes *)weir_tensor_data(batch->keys) + row;
	int number = -1;
	char text[12] = {0};

	memcpy(text, key->data, key->size);
	cr_assert_eq(sscanf(text, "%*c%d", &number), 1);
	return number;
}

/* Each key stands beside its own values. */
static void expect_matched(const struct weir_keyed_join_batch *batch)
{
	for (int64_t row = 0; row < (int64_t)batch->count; row++) {
		cr_assert_eq(((const int32_t *)weir_tensor_data(batch->values[0]))[row], 100 + number_at(batch, row));
		cr_assert_eq(((const int32_t *)weir_tensor_data(batch->values[1]))[row], 200 + number_at(batch, row));
	}
}

static enum weir_status take(weir_keyed_join *join, size_t n, uint32_t flags)
{
	struct weir_keyed_join_batch batch;
	enum weir_status status = weir_keyed_join_take_many(join, n, flags, 0, NULL, &batch, NULL);

	if (status == WEIR_OK) {
		expect_matched(&batch);
		cr_assert(batch.count == n || flags != 0);
		release(&batch);
	}
	return status;
}

/* -- takes on threads of their own ------------------------------------------------------------- */

struct taker {
	weir_keyed_join *join;
	size_t n;
	uint32_t flags;
	uint64_t deadline_ns;
	weir_cancel *token;
	enum weir_status status;
	struct weir_keyed_join_batch batch;
	weir_error error;
	pthread_t thread;
};

static void *take_on_thread(void *context)
{
	struct taker *taker = context;

	taker->status = weir_keyed_join_take_many(taker->join, taker->n, taker->flags,
	                                          taker->deadline_ns != 0 ? taker->deadline_ns : WEIR_NO_DEADLINE,
	                                          taker->token, &taker->batch, &taker->error);
	return NULL;
}

static void begin(struct taker *taker, size_t waiting)
{
	cr_assert_eq(pthread_create(&taker->thread, NULL, take_on_thread, taker), 0);
	await(waiters_dumped("test") == waiting);
}

/* Joins the thread, and checks and releases its batch. */
static enum weir_status join_taker(struct taker *taker)
{
	(void)pthread_join(taker->thread, NULL);
	if (taker->status == WEIR_OK) {
		expect_matched(&taker->batch);
		release(&taker->batch);
	}
	return taker->status;
}

/* -- the rows of the reference ----------------------------------------------------------------- */

Test(keyed_join, BAR_001_what_it_was_made_with_is_read_back)
{
	weir_shape vector = vector_shape(8);
	struct weir_tensor_component components[] = {{WEIR_I32, &scalar_shape, "x"}, {WEIR_F32, &vector, NULL}}, out;
	weir_keyed_join *join =
		keyed_join_with((struct weir_keyed_join_options){.components = components, .component_count = 2});

	cr_assert_eq(weir_keyed_join_component_count(join), 2);
	cr_assert_eq(weir_keyed_join_component(join, 0, &out), WEIR_OK);
	cr_assert(out.dtype == WEIR_I32 && out.shape->rank == 0 && strcmp(out.name, "x") == 0);
	cr_assert_eq(weir_keyed_join_component(join, 1, &out), WEIR_OK);
	cr_assert(out.dtype == WEIR_F32 && weir_shape_equal(out.shape, &vector) && out.name == NULL);
	cr_assert_eq(weir_keyed_join_component(join, 2, &out), WEIR_OUT_OF_RANGE);
	end(join);
}

Test(keyed_join, BAR_002_keys_are_ready_with_their_last_component)
{
	weir_keyed_join *join = pair_keyed_join();

	cr_assert_eq(ready(join), 0);
	cr_assert_eq(insert(join, 0, 'k', 0, 3, 100), WEIR_OK);
	cr_assert(ready(join) == 0 && incomplete(join) == 3);
	cr_assert_eq(insert(join, 1, 'k', 0, 3, 200), WEIR_OK);
	cr_assert(ready(join) == 3 && incomplete(join) == 0);
	end(join);
}

Test(keyed_join, BAR_003_a_shape_without_elements_is_refused)
{
	weir_shape none = vector_shape(0), unknown = {.rank = 1, .dims = {-1}};
	struct weir_tensor_component components[] = {{WEIR_I32, &scalar_shape, NULL}, {WEIR_I32, &none, NULL}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = components,
	                                          .component_count = 2};
	weir_keyed_join *join = NULL;
	weir_error error;

	cr_assert_eq(weir_keyed_join_create(&options, &join, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join: component 1: the shape must be known and have elements, got [0]");
	components[1].shape = &unknown;
	cr_assert_eq(weir_keyed_join_create(&options, &join, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(join);
}

Test(keyed_join, BAR_004_values_without_elements_are_refused)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_tensor *keys = keys_of('k', 0, 2), *values = numbers_of(matrix_shape(2, 0), 0);
	weir_error error;

	cr_assert_eq(weir_keyed_join_insert_many(join, 0, keys, values, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"test\": component 0 (a): shape must be [2] + [], got [2,0]");
	cr_assert_eq(incomplete(join), 0);
	weir_tensor_release(keys);
	weir_tensor_release(values);
	end(join);
}

Test(keyed_join, BAR_005_a_negative_number_is_refused)
{
	weir_keyed_join *join = pair_keyed_join();
	struct weir_keyed_join_batch batch;
	weir_error error;

	cr_assert_eq(weir_keyed_join_take_many(join, SIZE_MAX, 0, 0, NULL, &batch, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(
		error.message,
		"keyed join \"test\": requested 18446744073709551615 elements, must be at most 9223372036854775807");
	end(join);
}

Test(keyed_join, BAR_006_a_take_gives_keys_beside_their_values)
{
	weir_keyed_join *join = pair_keyed_join();
	struct weir_keyed_join_batch batch;
	int seen = 0;

	insert_both(join, 0, 3);
	cr_assert_eq(weir_keyed_join_take_many(join, 3, 0, 0, NULL, &batch, NULL), WEIR_OK);
	cr_assert_eq(batch.count, 3);
	expect_matched(&batch);
	for (int64_t row = 0; row < 3; row++) {
		cr_assert_eq(index_at(&batch, row), INT64_MIN);
		seen |= 1 << number_at(&batch, row);
	}
	cr_assert_eq(seen, 7);
	release(&batch);
	end(join);
}

Test(keyed_join, BAR_007_small_batches_of_a_closed_keyed_join)
{
	weir_keyed_join *join = pair_keyed_join();
	struct weir_keyed_join_batch batch;

	insert_both(join, 0, 3);
	cr_assert_eq(insert(join, 0, 'k', 3, 1, 100), WEIR_OK);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_assert(ready(join) == 3 && incomplete(join) == 1);
	cr_assert_eq(insert(join, 1, 'k', 3, 1, 200), WEIR_OK, "an incomplete tuple may still become complete");
	cr_assert(ready(join) == 4 && incomplete(join) == 0);
	cr_assert_eq(insert(join, 0, 'k', 0, 0, 0), WEIR_OK, "a batch without keys has no new key");
	cr_assert_eq(insert(join, 0, 'k', 0, 1, 100), WEIR_CANCELLED, "a finished key would be new");
	cr_assert_eq(weir_keyed_join_take_many(join, 3, WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH, 0, NULL, &batch, NULL), WEIR_OK);
	cr_assert_eq(batch.count, 3);
	release(&batch);
	cr_assert_eq(weir_keyed_join_take_many(join, 3, WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH, 0, NULL, &batch, NULL), WEIR_OK);
	cr_assert_eq(batch.count, 1);
	release(&batch);
	cr_assert_eq(take(join, 3, WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_CANCEL, NULL), WEIR_OK);
	cr_assert_eq(insert(join, 0, 'k', 0, 0, 0), WEIR_CANCELLED, "now even a batch without keys is refused");
	end(join);
}

Test(keyed_join, BAR_008_components_with_shapes)
{
	weir_shape shapes[] = {matrix_shape(2, 2), vector_shape(8)};
	struct weir_tensor_component components[] = {{WEIR_I32, &shapes[0], NULL}, {WEIR_I32, &shapes[1], NULL}};
	weir_keyed_join *join =
		keyed_join_with((struct weir_keyed_join_options){.components = components, .component_count = 2});
	weir_tensor *keys = keys_of('k', 0, 2);
	weir_tensor *squares = numbers_of((weir_shape){.rank = 3, .dims = {2, 2, 2}}, 0);
	weir_tensor *vectors = numbers_of(matrix_shape(2, 8), 50);
	struct weir_keyed_join_batch batch;

	cr_assert_eq(weir_keyed_join_insert_many(join, 1, keys, vectors, NULL), WEIR_OK);
	cr_assert_eq(weir_keyed_join_insert_many(join, 0, keys, squares, NULL), WEIR_OK);
	cr_assert_eq(weir_keyed_join_take_many(join, 2, 0, 0, NULL, &batch, NULL), WEIR_OK);
	cr_assert(weir_shape_equal(weir_tensor_shape(batch.values[0]), weir_tensor_shape(squares)));
	for (int64_t row = 0; row < 2; row++) {
		cr_assert_eq(((const int32_t *)weir_tensor_data(batch.values[0]))[4 * row + 3], 4 * number_at(&batch, row) + 3);
		cr_assert_eq(((const int32_t *)weir_tensor_data(batch.values[1]))[8 * row], 50 + 8 * number_at(&batch, row));
	}
	release(&batch);
	weir_tensor_release(keys);
	weir_tensor_release(squares);
	weir_tensor_release(vectors);
	end(join);
}

Test(keyed_join, a_take_of_none_has_the_shapes_of_the_components)
{
	weir_shape shapes[] = {matrix_shape(2, 3), vector_shape(8)};
	struct weir_tensor_component components[] = {{WEIR_I32, &shapes[0], NULL}, {WEIR_F64, &shapes[1], NULL}};
	weir_keyed_join *join =
		keyed_join_with((struct weir_keyed_join_options){.components = components, .component_count = 2});
	struct weir_keyed_join_batch batch;

	cr_assert_eq(weir_keyed_join_take_many(join, 0, 0, 0, NULL, &batch, NULL), WEIR_OK);
	cr_assert_eq(batch.count, 0);
	cr_expect(weir_shape_equal(weir_tensor_shape(batch.values[0]), &(weir_shape){.rank = 3, .dims = {0, 2, 3}}));
	cr_expect(weir_shape_equal(weir_tensor_shape(batch.values[1]), &(weir_shape){.rank = 2, .dims = {0, 8}}));
	cr_expect_eq(weir_tensor_dtype(batch.values[1]), WEIR_F64);
	cr_expect_eq(weir_tensor_element_count(batch.keys), 0);
	cr_expect_eq(weir_tensor_element_count(batch.indices), 0);
	release(&batch);
	end(join);
}

Test(keyed_join, BAR_010_takes_at_once_share_the_keys)
{
	weir_keyed_join *join = pair_keyed_join();
	struct taker takers[10];
	int seen = 0;

	insert_both(join, 0, 10);
	for (int i = 0; i < 10; i++) {
		takers[i] = (struct taker){.join = join, .n = 1};
		cr_assert_eq(pthread_create(&takers[i].thread, NULL, take_on_thread, &takers[i]), 0);
	}
	for (int i = 0; i < 10; i++) {
		(void)pthread_join(takers[i].thread, NULL);
		cr_assert_eq(takers[i].status, WEIR_OK);
		expect_matched(&takers[i].batch);
		cr_assert_eq(index_at(&takers[i].batch, 0), INT64_MIN);
		seen |= 1 << number_at(&takers[i].batch, 0);
		release(&takers[i].batch);
	}
	cr_assert_eq(seen, 1023);
	end(join);
}

Test(keyed_join, BAR_011_a_take_waits_and_gives_keys_in_the_order_of_their_inserts)
{
	weir_keyed_join *join = pair_keyed_join();
	struct taker taker = {.join = join, .n = 10};

	begin(&taker, 1);
	for (int i = 0; i < 10; i++)
		insert_both(join, i, 1);
	(void)pthread_join(taker.thread, NULL);
	cr_assert_eq(taker.status, WEIR_OK);
	expect_matched(&taker.batch);
	for (int row = 0; row < 10; row++) {
		cr_assert_eq(number_at(&taker.batch, row), row);
		cr_assert_eq(index_at(&taker.batch, row), INT64_MIN + row);
	}
	release(&taker.batch);
	end(join);
}

Test(keyed_join, BAR_013_close)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_error cause = {WEIR_OK, "the reader ended"}, error;
	struct weir_keyed_join_batch batch;

	cr_assert_eq(insert(join, 0, 'k', 0, 3, 100), WEIR_OK);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	cr_assert_eq(insert(join, 0, 'f', 0, 1, 100), WEIR_CANCELLED);
	cr_assert_eq(insert(join, 1, 'k', 0, 3, 200), WEIR_OK);
	cr_assert_eq(ready(join), 3);
	cr_assert_eq(weir_keyed_join_take_many(join, 4, 0, WEIR_NO_DEADLINE, NULL, &batch, &error), WEIR_OUT_OF_RANGE);
	cr_assert_str_eq(
		error.message,
		"keyed join \"test\" is closed and has insufficient elements (requested 4, 3 ready, 0 incomplete); "
		"closed because of WEIR_OK: the reader ended");
	cr_assert_eq(take(join, 3, 0), WEIR_OK);
	cr_assert_eq(take(join, 1, 0), WEIR_OUT_OF_RANGE);
	end(join);
}

Test(keyed_join, BAR_014_cancel)
{
	weir_keyed_join *join = pair_keyed_join();

	insert_both(join, 0, 2);
	cr_assert_eq(insert(join, 0, 'k', 2, 1, 100), WEIR_OK);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_CANCEL, NULL), WEIR_OK);
	cr_assert(ready(join) == 2 && incomplete(join) == 0);
	cr_assert_eq(insert(join, 0, 'f', 0, 1, 100), WEIR_CANCELLED);
	cr_assert_eq(insert(join, 1, 'k', 2, 1, 200), WEIR_CANCELLED);
	cr_assert_eq(take(join, 3, 0), WEIR_OUT_OF_RANGE);
	cr_assert_eq(take(join, 2, 0), WEIR_OK);
	end(join);
}

Test(keyed_join, BAR_015_nothing_in_a_closed_keyed_join_is_no_small_batch)
{
	static const enum weir_close_mode modes[] = {WEIR_CLOSE_DRAIN, WEIR_CLOSE_CANCEL};

	for (int i = 0; i < 2; i++) {
		weir_keyed_join *join = pair_keyed_join();

		cr_assert_eq(weir_keyed_join_close(join, modes[i], NULL), WEIR_OK);
		cr_assert_eq(take(join, 1, WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH), WEIR_OUT_OF_RANGE);
		cr_assert_eq(take(join, 0, WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH), WEIR_OUT_OF_RANGE);
		end(join);
	}
}

enum { BATCHES = 50, OF = 10 };

/* 50 takers of 10 wait. 25 inserts of 10 keys come before the close, and 25 after it. */
static void close_halfway(enum weir_close_mode mode)
{
	weir_keyed_join *join = pair_keyed_join();
	static struct taker takers[BATCHES];
	int full = 0, ended = 0;

	for (int i = 0; i < BATCHES; i++) {
		takers[i] = (struct taker){.join = join, .n = OF};
		begin(&takers[i], (size_t)i + 1);
	}
	for (int i = 0; i < BATCHES / 2; i++)
		insert_both(join, i * OF, OF);
	cr_assert_eq(weir_keyed_join_close(join, mode, NULL), WEIR_OK);
	for (int i = BATCHES / 2; i < BATCHES; i++) {
		cr_assert_eq(insert(join, 0, 'k', i * OF, OF, 100), WEIR_CANCELLED);
		cr_assert_eq(insert(join, 1, 'k', i * OF, OF, 200), WEIR_CANCELLED);
	}
	for (int i = 0; i < BATCHES; i++) {
		enum weir_status status = join_taker(&takers[i]);

		full += status == WEIR_OK && takers[i].batch.count == OF;
		ended += status == WEIR_OUT_OF_RANGE;
	}
	cr_assert(full == BATCHES / 2 && ended == BATCHES / 2);
	end(join);
}

Test(keyed_join, BAR_016_a_close_halfway_ends_the_takers_that_are_left)
{
	close_halfway(WEIR_CLOSE_DRAIN);
}

Test(keyed_join, BAR_017_a_cancel_halfway_ends_the_takers_that_are_left)
{
	close_halfway(WEIR_CLOSE_CANCEL);
}

/*
 * The first components come before the close and the second ones after it, while 100 takers wait.
 * Returns how many of these got a full batch.
 */
static int takers_that_got(enum weir_close_mode mode, enum weir_status rest)
{
	weir_keyed_join *join = pair_keyed_join();
	static struct taker takers[2 * BATCHES];
	int full = 0, ended = 0;

	for (int i = 0; i < 2 * BATCHES; i++) {
		takers[i] = (struct taker){.join = join, .n = OF};
		begin(&takers[i], (size_t)i + 1);
	}
	for (int i = 0; i < 2 * BATCHES; i++)
		cr_assert_eq(insert(join, 0, 'k', i * OF, OF, 100), WEIR_OK);
	cr_assert_eq(weir_keyed_join_close(join, mode, NULL), WEIR_OK);
	for (int i = 0; i < 2 * BATCHES; i++)
		cr_assert_eq(insert(join, 1, 'k', i * OF, OF, 200), rest);
	for (int i = 0; i < 2 * BATCHES; i++) {
		enum weir_status status = join_taker(&takers[i]);

		full += status == WEIR_OK && takers[i].batch.count == OF;
		ended += status == WEIR_OUT_OF_RANGE;
	}
	cr_assert_eq(full + ended, 2 * BATCHES);
	end(join);
	return full;
}

Test(keyed_join, BAR_018_what_was_begun_before_a_close_reaches_all_takers)
{
	cr_assert_eq(takers_that_got(WEIR_CLOSE_DRAIN, WEIR_OK), 2 * BATCHES);
}

Test(keyed_join, BAR_019_a_cancel_drops_what_was_begun)
{
	cr_assert_eq(takers_that_got(WEIR_CLOSE_CANCEL, WEIR_CANCELLED), 0);
}

/* -- shared by name ---------------------------------------------------------------------------- */

struct wish {
	const struct weir_tensor_component *components;
	size_t count;
};

static enum weir_status make_shared(void *context, void **object, weir_error *error)
{
	const struct wish *wish = context;
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .name = "shared",
	                                          .components = wish->components, .component_count = wish->count};
	weir_keyed_join *join;
	enum weir_status status = weir_keyed_join_create(&options, &join, error);

	if (status == WEIR_OK)
		*object = join;
	return status;
}

static enum weir_status match_shared(void *context, void *object, weir_error *error)
{
	const struct wish *wish = context;

	return weir_keyed_join_matches(object, wish->components, wish->count, error);
}

static void destroy_shared(void *object)
{
	cr_assert_eq(weir_keyed_join_destroy(object, NULL), WEIR_OK);
}

Test(keyed_join, BAR_020_another_keyed_join_of_the_same_name_is_refused)
{
	static const struct weir_resource_type type = {"keyed join", destroy_shared};
	weir_shape vector = vector_shape(2);
	struct weir_tensor_component components[] = {{WEIR_I32, &scalar_shape, NULL}, {WEIR_F32, &vector, NULL}};
	struct wish wish = {components, 2};
	struct weir_store_maker maker = {make_shared, match_shared, &wish};
	weir_resource *first, *second, *none = NULL;
	weir_store *store;
	weir_error error;

	cr_assert_eq(weir_store_create(NULL, &store, NULL), WEIR_OK);
	cr_assert_eq(weir_store_find_or_create(store, NULL, "b", &type, &maker, &first, NULL), WEIR_OK);
	cr_assert_eq(weir_store_find_or_create(store, NULL, "b", &type, &maker, &second, NULL), WEIR_OK);
	cr_assert_eq(first, second);
	components[0].dtype = WEIR_I64;
	cr_assert_eq(weir_store_find_or_create(store, NULL, "b", &type, &maker, &none, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"shared\": component 0 must have dtype i64, has i32");
	components[0].dtype = WEIR_I32;
	vector = vector_shape(3);
	cr_assert_eq(weir_store_find_or_create(store, NULL, "b", &type, &maker, &none, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"shared\": component 1 must have shape [3], has [2]");
	wish.count = 1;
	cr_assert_eq(weir_store_find_or_create(store, NULL, "b", &type, &maker, &none, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"shared\" must have 1 component, has 2");
	cr_assert_null(none);
	weir_resource_release(first);
	weir_resource_release(second);
	weir_store_destroy(store, NULL);
}

/* -- beyond the reference ---------------------------------------------------------------------- */

Test(keyed_join, an_insert_that_fails_at_its_last_key_has_done_nothing)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_tensor *keys = keys_of('k', 1, 3), *values = numbers_of(vector_shape(3), 201);
	weir_error error;

	cr_assert_eq(insert(join, 0, 'k', 1, 3, 100), WEIR_OK);
	cr_assert_eq(insert(join, 1, 'k', 3, 1, 200), WEIR_OK);
	cr_assert_eq(insert(join, 0, 'k', 3, 1, 100), WEIR_OK, "k3 was ready and has left, so it is new again");
	cr_assert_eq(insert(join, 1, 'k', 3, 1, 200), WEIR_OK);
	cr_assert_eq(insert(join, 1, 'j', 3, 1, 200), WEIR_OK);
	cr_assert_eq(insert(join, 1, 'k', 3, 1, 200), WEIR_OK);
	/* k1 and k2 would become complete, but k3 has component 1 already. */
	cr_assert_eq(weir_keyed_join_insert_many(join, 1, keys, values, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"test\": key \"k3\" has component 1 (b) already");
	cr_assert(ready(join) == 2 && incomplete(join) == 4);
	weir_tensor_release(keys);
	weir_tensor_release(values);
	end(join);
}

Test(keyed_join, a_key_twice_in_one_insert_is_refused)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_shape shape = vector_shape(2);
	const weir_bytes same[] = {{"k", 1}, {"k", 1}};
	weir_tensor *keys, *values = numbers_of(shape, 0);

	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, &shape, same, NULL, &keys), WEIR_OK);
	cr_assert_eq(weir_keyed_join_insert_many(join, 0, keys, values, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(incomplete(join), 0);
	weir_tensor_release(keys);
	weir_tensor_release(values);
	end(join);
}

/* The reference never ends the wait of this taker. */
Test(keyed_join, a_taker_that_wants_too_much_ends_when_the_last_key_completes_elsewhere)
{
	weir_keyed_join *join = pair_keyed_join();
	struct taker greedy = {.join = join, .n = 2};

	cr_assert_eq(insert(join, 0, 'k', 0, 2, 100), WEIR_OK);
	begin(&greedy, 1);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_assert_eq(waiters_dumped("test"), 1, "two may still come");
	cr_assert_eq(insert(join, 1, 'k', 0, 1, 200), WEIR_OK);
	cr_assert_eq(take(join, 1, WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH), WEIR_OK);
	cr_assert_eq(join_taker(&greedy), WEIR_OUT_OF_RANGE);
	end(join);
}

Test(keyed_join, a_take_ends_at_its_deadline_or_when_its_token_fires)
{
	weir_keyed_join *join = pair_keyed_join();
	struct taker late = {.join = join, .n = 2, .deadline_ns = weir_deadline_in(50000000)},
				 cancelled = {.join = join, .n = 2};

	insert_both(join, 0, 1);
	cr_assert_eq(pthread_create(&late.thread, NULL, take_on_thread, &late), 0);
	cr_assert_eq(join_taker(&late), WEIR_DEADLINE_EXCEEDED);
	cr_assert_str_eq(late.error.message, "keyed join \"test\": the deadline passed in take_many");
	cr_assert_eq(weir_cancel_create(NULL, &cancelled.token, NULL), WEIR_OK);
	begin(&cancelled, 1);
	cr_assert_eq(weir_cancel_fire(cancelled.token, NULL), 1);
	cr_assert_eq(join_taker(&cancelled), WEIR_CANCELLED);
	weir_cancel_release(cancelled.token);
	cr_assert_eq(take(join, 1, 0), WEIR_OK, "nothing was lost");
	end(join);
}

struct outcome {
	int calls;
	enum weir_status status;
	int64_t count;
};

static void note(void *context, enum weir_status status, const weir_error *error,
                 const struct weir_keyed_join_batch *batch)
{
	struct outcome *outcome = context;

	(void)error;
	outcome->calls++;
	outcome->status = status;
	if (batch != NULL) {
		struct weir_keyed_join_batch mine = *batch;

		outcome->count = (int64_t)mine.count;
		expect_matched(&mine);
		release(&mine);
	}
}

Test(keyed_join, takes_wait_without_a_thread_and_complete_once)
{
	weir_keyed_join *join = pair_keyed_join();
	struct outcome first = {0}, second = {0};
	weir_pending *op;
	weir_error error;

	cr_assert_eq(weir_keyed_join_start_take_many(join, 2, 0, note, &first, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_keyed_join_start_take_many(join, 1, 0, note, &second, &op, NULL), WEIR_OK);
	cr_assert_eq(weir_keyed_join_destroy(join, &error), WEIR_FAILED_PRECONDITION);
	weir_pending_cancel(op, NULL);
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	cr_assert(second.calls == 1 && second.status == WEIR_CANCELLED && first.calls == 0);
	insert_both(join, 0, 2);
	cr_assert(first.calls == 1 && first.status == WEIR_OK && first.count == 2);
	end(join);
}

Test(keyed_join, a_cause_that_comes_later_than_the_close_is_kept_too)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_error late = {WEIR_DATA_LOSS, "the disk is gone"}, error;
	struct weir_keyed_join_batch batch;

	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_CANCEL, NULL), WEIR_OK);
	cr_assert_eq(weir_keyed_join_take_many(join, 1, 0, 0, NULL, &batch, &error), WEIR_OUT_OF_RANGE);
	cr_assert_null(strstr(error.message, "because"), "%s", error.message);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, &late), WEIR_OK);
	cr_assert_eq(weir_keyed_join_take_many(join, 1, 0, 0, NULL, &batch, &error), WEIR_OUT_OF_RANGE);
	cr_assert_not_null(strstr(error.message, "; closed because of WEIR_DATA_LOSS: the disk is gone"), "%s",
	                   error.message);
	end(join);
}

Test(keyed_join, closing_is_idempotent_and_the_first_cause_stays)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_error first = {WEIR_CANCELLED, "first"}, second = {WEIR_OK, "second"}, error;
	struct weir_keyed_join_batch batch;

	cr_assert_eq(take(join, 0, 0), WEIR_OK, "a batch of none");
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, i == 0 ? &first : &second), WEIR_OK);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_CANCEL, &second), WEIR_OK);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, &second), WEIR_OK);
	cr_assert_eq(weir_keyed_join_take_many(join, 1, 0, 0, NULL, &batch, &error), WEIR_OUT_OF_RANGE);
	cr_assert_str_eq(
		error.message,
		"keyed join \"test\" is closed and has insufficient elements (requested 1, 0 ready, 0 incomplete); closed "
		"because of WEIR_CANCELLED: first");
	cr_assert_eq(weir_keyed_join_close(join, (enum weir_close_mode)7, NULL), WEIR_INVALID_ARGUMENT);
	end(join);
}

Test(keyed_join, a_cause_whose_message_is_not_terminated_is_kept_terminated)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_error endless = {.code = WEIR_ABORTED}, error;
	struct weir_keyed_join_batch batch;

	memset(endless.message, 'x', sizeof(endless.message));
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, &endless), WEIR_OK);
	/* AddressSanitizer would report a read beyond the copy. */
	cr_assert_eq(weir_keyed_join_take_many(join, 4, 0, WEIR_NO_DEADLINE, NULL, &batch, &error), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, ": xxx"), "%s", error.message);
	end(join);
}

/* Each key needs one value, which must have the shape of the component. */
Test(keyed_join, values_of_another_shape_are_refused)
{
	weir_shape shape = vector_shape(3), wrong[] = {matrix_shape(2, 4), matrix_shape(3, 3), vector_shape(3)};
	struct weir_tensor_component component = {WEIR_I32, &shape, NULL};
	weir_keyed_join *join =
		keyed_join_with((struct weir_keyed_join_options){.components = &component, .component_count = 1});
	weir_tensor *keys = keys_of('k', 0, 2), *values;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		values = numbers_of(wrong[i], 0);
		cr_expect_eq(weir_keyed_join_insert_many(join, 0, keys, values, NULL), WEIR_INVALID_ARGUMENT, "%zu", i);
		weir_tensor_release(values);
	}
	values = numbers_of(matrix_shape(2, 3), 0);
	cr_expect_eq(weir_keyed_join_insert_many(join, 0, keys, values, NULL), WEIR_OK);
	weir_tensor_release(values);
	weir_tensor_release(keys);
	end(join);
}

Test(keyed_join, bad_arguments_are_refused_by_name)
{
	weir_keyed_join *join = pair_keyed_join();
	weir_tensor *keys = keys_of('k', 0, 2), *values = numbers_of(vector_shape(2), 0), *reals = NULL;
	weir_shape pair = vector_shape(2);
	struct weir_keyed_join_batch batch;
	weir_error error;

	cr_assert_eq(weir_keyed_join_insert_many(join, 2, keys, values, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"test\" has 2 components, so there is no component 2");
	cr_assert_eq(weir_keyed_join_insert_many(join, 0, values, values, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"test\": keys must be bytes [n], got i32 [2]");
	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &pair, (const float[]){1, 2}, NULL, &reals), WEIR_OK);
	cr_assert_eq(weir_keyed_join_insert_many(join, 0, keys, reals, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "keyed join \"test\": component 0 (a): dtype must be i32, got f32");
	cr_assert_eq(weir_keyed_join_insert_many(NULL, 0, keys, values, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_insert_many(join, 0, NULL, values, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_take_many(join, 1, 8, 0, NULL, &batch, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_take_many(join, 1, 0, 0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_take_many(NULL, 1, 0, 0, NULL, &batch, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_start_take_many(join, 1, 0, NULL, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_create(NULL, &join, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_size(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_keyed_join_close(NULL, WEIR_CLOSE_DRAIN, NULL), WEIR_INVALID_ARGUMENT);
	weir_pending_cancel(NULL, NULL);
	weir_pending_release(NULL);
	cr_assert_eq(weir_keyed_join_destroy(NULL, NULL), WEIR_OK);
	weir_tensor_release(keys);
	weir_tensor_release(values);
	weir_tensor_release(reals);
	end(join);
}

struct material {
	weir_tensor *keys, *values;
};

static enum weir_status use_with(const weir_allocator *allocator, void *context)
{
	struct weir_tensor_component components[] = {{WEIR_I32, &scalar_shape, "a"}, {WEIR_I32, &scalar_shape, "b"}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = components,
	                                          .component_count = 2, .allocator = allocator};
	const struct material *material = context;
	weir_error cause = {WEIR_OK, "over"};
	struct weir_keyed_join_batch batch;
	weir_keyed_join *join;
	enum weir_status status = weir_keyed_join_create(&options, &join, NULL);
	size_t before, after;

	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; status == WEIR_OK && i < 2; i++)
		status = weir_keyed_join_insert_many(join, i, material->keys, material->values, NULL);
	before = ready(join);
	cr_assert(before == 0 || before == 3, "all or none");
	if (status == WEIR_OK) {
		status = weir_keyed_join_take_many(join, 2, 0, 0, NULL, &batch, NULL);
		after = ready(join);
		cr_assert_eq(after, status == WEIR_OK ? 1 : 3, "a failed allocation loses nothing");
		if (status == WEIR_OK)
			release(&batch);
	}
	if (status == WEIR_OK)
		status = weir_keyed_join_close(join, WEIR_CLOSE_CANCEL, &cause);
	cr_assert_eq(weir_keyed_join_destroy(join, NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	return status;
}

Test(keyed_join, every_call_survives_every_allocation_failing)
{
	struct material material = {keys_of('k', 0, 3), numbers_of(vector_shape(3), 1)};

	cr_assert_gt(fail_each_allocation(use_with, &material), 20);
	weir_tensor_release(material.keys);
	weir_tensor_release(material.values);
	expect_no_tensor_left();
}

/* Each row of the values becomes a tensor, which comes from the allocator of the values. */
static enum weir_status insert_with(const weir_allocator *allocator, void *keys)
{
	struct late_failure late = {.under_test = NULL};
	weir_allocator memory = late_failure_hooks(&late);
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "a"};
	struct weir_keyed_join_options options = {.components = &component, .component_count = 1, .allocator = &memory};
	weir_keyed_join *join = keyed_join_with(options);
	weir_shape three = vector_shape(3);
	weir_tensor *values;
	enum weir_status status;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I32, &three, (const int32_t[]){1, 2, 3}, &memory, &values), WEIR_OK);
	late.under_test = allocator;
	status = weir_keyed_join_insert_many(join, 0, keys, values, NULL);
	late.under_test = NULL;
	cr_assert_eq(ready(join), status == WEIR_OK ? 3 : 0, "all or none");
	weir_tensor_release(values);
	end(join);
	late_failure_end(&late);
	return status;
}

Test(keyed_join, an_insert_survives_every_allocation_failing_those_of_its_values_too)
{
	weir_tensor *keys = keys_of('k', 0, 3);

	cr_assert_geq(fail_each_allocation(insert_with, keys), 6, "three keys, each with a row");
	weir_tensor_release(keys);
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { PARTIES = 2, ROUNDS = 400, EACH = 3 };

struct party {
	weir_keyed_join *join;
	size_t component;
	pthread_t thread;
};

static void *insert_components(void *context)
{
	const struct party *party = context;

	for (int i = 0; i < ROUNDS; i++) {
		if (insert(party->join, party->component, 'k', i * EACH, EACH, party->component == 0 ? 100 : 200) != WEIR_OK)
			abort();
	}
	return NULL;
}

Test(keyed_join, threads_that_insert_components_of_the_same_keys_complete_each_once)
{
	weir_keyed_join *join = pair_keyed_join();
	struct party parties[PARTIES];
	static char seen[ROUNDS * EACH];
	struct weir_keyed_join_batch batch;

	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < PARTIES; i++) {
		parties[i] = (struct party){.join = join, .component = i};
		cr_assert_eq(pthread_create(&parties[i].thread, NULL, insert_components, &parties[i]), 0);
	}
	for (int i = 0; i < ROUNDS * EACH / 4; i++) {
		cr_assert_eq(weir_keyed_join_take_many(join, 4, 0, in_good_time(), NULL, &batch, NULL), WEIR_OK);
		expect_matched(&batch);
		for (int64_t row = 0; row < 4; row++)
			cr_assert_eq(seen[number_at(&batch, row)]++, 0);
		release(&batch);
	}
	for (size_t i = 0; i < PARTIES; i++)
		(void)pthread_join(parties[i].thread, NULL);
	cr_assert(ready(join) == 0 && incomplete(join) == 0);
	end(join);
}

static void insert_two(void *context)
{
	cr_assert_eq(insert(context, 1, 'k', 0, 2, 200), WEIR_OK);
}

Test(keyed_join, an_insert_stopped_anywhere_is_whole_or_not_there)
{
	struct stepped call = {.call = insert_two};
	size_t at = 0;

	stepped_or_skip();
	for (int goes_on = 1; goes_on; at += stepped_stride(13)) {
		weir_keyed_join *join = pair_keyed_join();
		size_t done;

		cr_assert_eq(insert(join, 0, 'k', 0, 2, 100), WEIR_OK);
		call.context = join;
		goes_on = stepped_start(&call, at);
		done = ready(join);
		cr_assert(done == 0 || done == 2);
		insert_both(join, 5, 1);
		cr_assert_eq(take(join, done + 1, 0), WEIR_OK);
		stepped_finish(&call);
		cr_assert_eq(ready(join), 2 - done);
		end(join);
	}
}
