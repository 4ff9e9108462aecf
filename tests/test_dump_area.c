/*
 * test_dump_area.c - what a dump says of keyed joins, staging areas and map staging areas: what
 * they hold, and what waits in them.
 */
#include <weir/flow/keyed_join.h>
#include <weir/flow/map_staging.h>
#include <weir/flow/staging.h>

#include "area_kit.h"
#include "dump_kit.h"
#include "areas/area.h"
#include "sync/registry.h"

static const struct weir_tensor_component number_component = {WEIR_I32, NULL, NULL};

static weir_staging *a_staging(const char *name, size_t capacity, size_t memory_limit, const weir_allocator *allocator)
{
	struct weir_staging_options options = {
		WEIR_STAGING_OPTIONS_INIT,       .capacity = capacity, .memory_limit = memory_limit, .name = name,
		.components = &number_component, .component_count = 1, .allocator = allocator};
	weir_staging *staging = NULL;
	weir_error error;

	cr_assert_eq(weir_staging_create(&options, &staging, &error), WEIR_OK, "%s", error.message);
	return staging;
}

static void put_number(weir_staging *staging, int32_t value)
{
	weir_tensor *tensor = number(value);

	cr_assert_eq(weir_staging_put(staging, &tensor, 1, 0, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

static void staging_ended(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple,
                          size_t count)
{
	(void)context, (void)status, (void)error, (void)tuple, (void)count;
}

/* Expects the line "^  waits: <verb>, asynchronous, begun by" this thread. */
static void expect_begun_here(const char *name, const char *verb)
{
	char line[160];

	(void)snprintf(line, sizeof(line), "^  waits: %s, asynchronous, begun by thread %d \".*\", for [0-9.]+ s$", verb,
	               gettid());
	expect_line(name, line);
}

/* -- what a dump says -------------------------------------------------------------------------- */

struct getter {
	weir_staging *staging;
	_Atomic(int) thread;
	enum weir_status status;
};

static void *get_number(void *context)
{
	struct getter *getter = context;
	weir_tensor *tensor = NULL;

	weiri_store_release(&getter->thread, gettid());
	getter->status = weir_staging_get(getter->staging, &tensor, 1, WEIR_NO_DEADLINE, NULL, NULL);
	weir_tensor_release(tensor);
	return NULL;
}

Test(dump_area, says_what_a_staging_area_holds_and_who_waits)
{
	weir_staging *bounded = a_staging("bounded", 2, 1000, NULL), *open = a_staging("open", 0, 0, NULL);
	struct getter getter = {.staging = open};
	weir_pending *op;
	pthread_t thread;
	char line[160];
	weir_tensor *third = number(3);

	expect_line("open", "^staging area \"open\" \\(number [0-9]+\\): 0 tuples, 0 bytes$");
	put_number(bounded, 1);
	put_number(bounded, 2);
	cr_assert_eq(weir_staging_start_put(bounded, &third, 1, staging_ended, NULL, &op, NULL), WEIR_OK);
	weir_tensor_release(third);
	expect_line("bounded", "^staging area \"bounded\" \\(number [0-9]+\\): 2 of 2 tuples, 8 of 1000 bytes$");
	expect_begun_here("bounded", "put");
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	expect_no_line("bounded", "waits");
	cr_assert_eq(pthread_create(&thread, NULL, get_number, &getter), 0);
	await(waiters_dumped("open") == 1);
	(void)snprintf(line, sizeof(line), "^  waits: thread %d \".*\", get, for [0-9.]+ s$",
	               weiri_load_acquire(&getter.thread));
	expect_line("open", line);
	put_number(open, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(getter.status, WEIR_OK);
	expect_no_line("open", "waits");
	cr_assert_eq(weir_staging_destroy(open, NULL), WEIR_OK);
	cr_assert_eq(weir_staging_destroy(bounded, NULL), WEIR_OK);
	expect_no_line("open", "open");
}

Test(dump_area, says_how_many_more_wait_than_it_shows)
{
	enum { MANY = 40 };
	weir_staging *staging = a_staging("many", 0, 0, NULL);
	weir_pending *ops[MANY];
	char *part;
	size_t shown = 0;

	for (int i = 0; i < MANY; i++)
		cr_assert_eq(weir_staging_start_get(staging, staging_ended, NULL, &ops[i], NULL), WEIR_OK);
	part = part_dumped("many");
	for (const char *at = part; (at = strstr(at, "  waits: get, ")) != NULL; at++)
		shown++;
	cr_expect_eq(shown, 32);
	cr_expect(matches(part, "^  and others, of 40$"), "%s", part);
	free(part);
	for (int i = 0; i < MANY; i++) {
		weir_pending_cancel(ops[i], NULL);
		weir_pending_release(ops[i]);
	}
	cr_assert_eq(weir_staging_destroy(staging, NULL), WEIR_OK);
}

static void map_ended(void *context, enum weir_status status, const weir_error *error, int64_t key,
                      weir_tensor **tensors, size_t count)
{
	(void)context, (void)status, (void)error, (void)key, (void)tensors, (void)count;
}

Test(dump_area, says_what_a_map_staging_area_holds_and_who_waits)
{
	struct weir_tensor_component pair[2] = {number_component, number_component};
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .capacity = 5, .name = "map",
	                                           .components = pair, .component_count = 2};
	weir_map_staging *map = NULL;
	weir_pending *op;
	weir_tensor *tensors[2] = {number(1), number(2)};
	size_t places[2] = {0, 1};

	cr_assert_eq(weir_map_staging_create(&options, &map, NULL), WEIR_OK);
	cr_assert_eq(weir_map_staging_put(map, 1, places, tensors, 2, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_map_staging_put(map, 2, places, tensors, 1, 0, NULL, NULL), WEIR_OK);
	expect_line("map", "^map staging area \"map\" \\(number [0-9]+\\): 1 of 5 complete, 1 incomplete, 12 bytes$");
	cr_assert_eq(weir_map_staging_start_get(map, 2, places, 2, map_ended, NULL, &op, NULL), WEIR_OK);
	expect_begun_here("map", "get");
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	expect_no_line("map", "waits");
	weir_tensor_release(tensors[0]);
	weir_tensor_release(tensors[1]);
	cr_assert_eq(weir_map_staging_destroy(map, NULL), WEIR_OK);
}

static void keyed_join_ended(void *context, enum weir_status status, const weir_error *error,
                             const struct weir_keyed_join_batch *batch)
{
	(void)context, (void)status, (void)error, (void)batch;
}

Test(dump_area, says_what_a_keyed_join_holds_and_who_waits)
{
	static const weir_shape scalar = {.rank = 0};
	struct weir_tensor_component pair[2] = {{WEIR_I32, &scalar, NULL}, {WEIR_I32, &scalar, NULL}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .name = "join", .components = pair,
	                                          .component_count = 2};
	static const weir_bytes names[3] = {{"a", 1}, {"b", 1}, {"c", 1}};
	weir_keyed_join *join = NULL;
	weir_pending *op;
	weir_shape three = vector_shape(3), one = vector_shape(1);
	weir_tensor *keys, *key, *values = numbers_of(three, 1), *value = numbers_of(one, 1);

	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, &three, names, NULL, &keys), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_BYTES, &one, names, NULL, &key), WEIR_OK);
	cr_assert_eq(weir_keyed_join_create(&options, &join, NULL), WEIR_OK);
	cr_assert_eq(weir_keyed_join_insert_many(join, 0, keys, values, NULL), WEIR_OK);
	cr_assert_eq(weir_keyed_join_insert_many(join, 1, key, value, NULL), WEIR_OK);
	expect_line("join", "^keyed join \"join\" \\(number [0-9]+\\): 1 ready, 2 incomplete, open$");
	cr_assert_eq(weir_keyed_join_start_take_many(join, 2, 0, keyed_join_ended, NULL, &op, NULL), WEIR_OK);
	expect_begun_here("join", "take_many");
	weir_pending_cancel(op, NULL);
	weir_pending_release(op);
	cr_assert_eq(weir_keyed_join_close(join, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	expect_line("join", "1 ready, 2 incomplete, closed$");
	expect_no_line("join", "waits");
	weir_tensor_release(keys);
	weir_tensor_release(key);
	weir_tensor_release(values);
	weir_tensor_release(value);
	cr_assert_eq(weir_keyed_join_destroy(join, NULL), WEIR_OK);
}

/* -- beside others ----------------------------------------------------------------------------- */

static bool is_area(const struct weiri_registered *entry, const char *name)
{
	const struct weiri_registered_kind *kind = weiri_registered_kind(entry);

	return kind->waitable != NULL && strcmp(kind->waitable(weiri_registered_object(entry))->name, name) == 0;
}

static struct weiri_registered *hold(const char *name)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
	struct weiri_registry_place place = {0};
	struct weiri_registered *entry;

	while ((entry = weiri_registry_next(&scope, &place)) != NULL && !is_area(entry, name))
		(void)weiri_registry_let_go(entry);
	weiri_scope_leave(&scope);
	return entry;
}

Test(dump_area, one_that_is_destroyed_while_it_is_looked_at_goes_with_the_look)
{
	struct failing_allocator memory = {0};
	weir_allocator hooks = failing_allocator_hooks(&memory);
	weir_staging *staging = a_staging("held", 0, 0, &hooks);
	struct weiri_registered *entry;
	struct weiri_area *area;
	struct weiri_scope scope;
	char *part;

	put_number(staging, 1);
	entry = hold("held");
	cr_assert_not_null(entry);
	area = weiri_registered_object(entry);
	scope = weiri_scope_enter(weiri_record_get());
	cr_assert_eq(weir_staging_destroy(staging, NULL), WEIR_OK);
	cr_expect_neq(weiri_load_relaxed(&memory.outstanding), (size_t)0, "the walk still holds it");
	cr_expect_str_eq(area->name, "held");
	part = part_dumped("held");
	cr_expect_str_eq(part, "", "a later dump does not find the area");
	free(part);
	cr_expect_eq(weiri_registry_let_go(entry), 1);
	weiri_scope_leave(&scope);
	weiri_area_free(area);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
}
