/*
 * scenario_map_staging.c - map staging areas: each component of each key is taken once, with its
 * key; and a thread is stopped anywhere in a call.
 *
 * Each round uses a new area of small capacity. One thread per component puts it under each key, in
 * order, with deadlines that often pass. One taker takes whole tuples, whichever key is first.
 * Another takes some keys one component at a time, and must find the second component once it has
 * the first. A watcher reads the sizes and peeks. Freed memory is poisoned.
 */
#include "harness.h"

#include <inttypes.h>
#include <weir/flow/map_staging.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "blocks.h"
#include "poison.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"

enum { COMPONENTS = 2, KEYS = 400, MOST_ROOM = 8, STRIDE = 4 };

static const uint64_t patience_ns = 100000000000u;

static struct {
	weir_map_staging *map;
	const weir_allocator *allocator;
	size_t capacity;
	_Atomic(uint32_t) left; /* components that were not taken yet */
	_Atomic(uint32_t) taken[KEYS][COMPONENTS];
} now;

static void open_map(size_t capacity, const weir_allocator *allocator)
{
	struct weir_tensor_component components[] = {{WEIR_I64, NULL, NULL}, {WEIR_I64, NULL, NULL}};
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .capacity = capacity,
	                                           .components = components, .component_count = COMPONENTS,
	                                           .allocator = allocator};

	STRESS_CHECK(weir_map_staging_create(&options, &now.map, NULL) == WEIR_OK, "no map staging area");
	now.allocator = allocator;
	now.capacity = capacity;
}

static int64_t value_of(int64_t key, size_t component)
{
	return (int64_t)stress_mix((uint64_t)key * COMPONENTS + component);
}

static weir_tensor *make(int64_t key, size_t component)
{
	static const weir_shape scalar = {.rank = 0};
	int64_t value = value_of(key, component);
	weir_tensor *tensor;

	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &scalar, &value, now.allocator, &tensor) == WEIR_OK, "no memory");
	return tensor;
}

static void check_and_release(int64_t key, size_t component, weir_tensor *tensor)
{
	STRESS_CHECK(*(const int64_t *)weir_tensor_data(tensor) == value_of(key, component),
	             "key %" PRId64 " came out with component %zu of another key", key, component);
	weir_tensor_release(tensor);
}

static void take(int64_t key, size_t component, weir_tensor *tensor)
{
	check_and_release(key, component, tensor);
	STRESS_CHECK(weiri_fetch_add_relaxed(&now.taken[key][component], 1u) == 0,
	             "component %zu of key %" PRId64 " came out twice", component, key);
	(void)weiri_fetch_sub_relaxed(&now.left, 1u); /* [relaxed] a count */
}

/* -- rounds ------------------------------------------------------------------------------------ */

static void produce(struct stress_thread *self, void *context)
{
	size_t component = (size_t)(uintptr_t)context;

	for (int64_t key = 0; key < KEYS; key++) {
		weir_tensor *tensor = make(key, component);
		enum weir_status status;

		do {
			stress_begin(self, "put");
			status = weir_map_staging_put(now.map, key, &component, &tensor, 1,
			                              weir_deadline_in(stress_below(self, 200000)), NULL, NULL);
			STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED, "put: %s", weir_status_name(status));
		} while (status != WEIR_OK);
		if (stress_one_in(self, 8))
			STRESS_CHECK(weir_map_staging_put(now.map, KEYS, (const size_t[]){0, 0}, &tensor, 2, 0, NULL, NULL) ==
			                 WEIR_INVALID_ARGUMENT,
			             "a put that names a component twice was not refused");
		weir_tensor_release(tensor);
		stress_end(self, 1);
	}
}

/*
 * Takes whole tuples. get_any() is refused while another thread has taken a part of the first key.
 */
static void take_any(struct stress_thread *self, void *context)
{
	(void)context;
	while (weiri_load_relaxed(&now.left) != 0) { /* [relaxed] a count */
		weir_tensor *tensors[COMPONENTS];
		enum weir_status status;
		int64_t key;

		stress_begin(self, "get_any");
		status = weir_map_staging_get_any(now.map, NULL, &key, tensors, COMPONENTS,
		                                  weir_deadline_in(stress_below(self, 200000)), NULL, NULL);
		STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED || status == WEIR_INVALID_ARGUMENT,
		             "get_any: %s", weir_status_name(status));
		for (size_t i = 0; status == WEIR_OK && i < COMPONENTS; i++)
			take(key, i, tensors[i]);
		stress_end(self, 1);
	}
}

static void take_parts(struct stress_thread *self, void *context)
{
	(void)context;
	/* [relaxed] a count */
	for (int64_t key = 0; key < KEYS && weiri_load_relaxed(&now.left) != 0; key += STRIDE) {
		const size_t first = (size_t)stress_below(self, COMPONENTS), second = 1 - first;
		weir_tensor *tensor;
		enum weir_status status;

		stress_begin(self, "get");
		status = weir_map_staging_get(now.map, key, &first, &tensor, 1, weir_deadline_in(stress_below(self, 200000)),
		                              NULL, NULL);
		STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED, "get: %s", weir_status_name(status));
		if (status == WEIR_OK) {
			take(key, first, tensor);
			STRESS_CHECK(weir_map_staging_get(now.map, key, &first, &tensor, 1, 0, NULL, NULL) == WEIR_INVALID_ARGUMENT,
			             "a component came out twice");
			STRESS_CHECK(weir_map_staging_get(now.map, key, &second, &tensor, 1, 0, NULL, NULL) == WEIR_OK,
			             "the rest of a key is missing");
			take(key, second, tensor);
		}
		stress_end(self, 1);
	}
}

static void look(void)
{
	size_t complete, incomplete, bytes;

	STRESS_CHECK(weir_map_staging_size(now.map, &complete, &incomplete, &bytes) == WEIR_OK, "look");
	STRESS_CHECK(complete <= now.capacity, "%zu keys are complete, but the bound is %zu", complete, now.capacity);
	STRESS_CHECK(bytes >= (complete + incomplete) * sizeof(int64_t) &&
	                 bytes <= (complete * COMPONENTS + incomplete) * sizeof(int64_t),
	             "%zu complete and %zu incomplete keys have %zu bytes", complete, incomplete, bytes);
}

static void watch(struct stress_thread *self, void *context)
{
	(void)context;
	while (weiri_load_relaxed(&now.left) != 0) { /* [relaxed] a count */
		int64_t key = (int64_t)stress_below(self, KEYS);
		weir_tensor *tensors[COMPONENTS];

		stress_begin(self, "look, peek");
		look();
		for (int64_t i = key; i < KEYS && i < key + MOST_ROOM; i++) {
			if (weir_map_staging_peek(now.map, i, NULL, tensors, COMPONENTS, 0, NULL, NULL) != WEIR_OK)
				continue;
			for (size_t component = 0; component < COMPONENTS; component++)
				check_and_release(i, component, tensors[component]);
		}
		stress_end(self, 1);
	}
}

static void play(struct stress_thread *self)
{
	weiri_store_relaxed(&now.left, (uint32_t)(KEYS * COMPONENTS)); /* [relaxed] no thread yet */
	for (size_t i = 0; i < KEYS; i++) {
		for (size_t component = 0; component < COMPONENTS; component++)
			weiri_store_relaxed(&now.taken[i][component], 0u);
	}
	for (uintptr_t i = 0; i < COMPONENTS; i++)
		(void)stress_start("producer", produce, (void *)i);
	(void)stress_start("taker", take_any, NULL);
	(void)stress_start("taker of parts", take_parts, NULL);
	(void)stress_start("watcher", watch, NULL);
	stress_begin(self, "waiting for the threads");
	stress_join();
	stress_end(self, 1);
}

static void close_map(void)
{
	size_t complete = 1, incomplete = 1, bytes = 1;

	STRESS_CHECK(weir_map_staging_size(now.map, &complete, &incomplete, &bytes) == WEIR_OK, "look");
	STRESS_CHECK(complete == 0 && incomplete == 0 && bytes == 0,
	             "%zu complete and %zu incomplete keys are left, with %zu bytes", complete, incomplete, bytes);
	STRESS_CHECK(weir_map_staging_destroy(now.map, NULL) == WEIR_OK, "destroy");
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

void scenario_map_staging(void)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		open_map(1 + (size_t)stress_below(self, MOST_ROOM), stress_poison());
		play(self);
		close_map();
	}
	stress_note("rounds", rounds);
}

/* -- stops ------------------------------------------------------------------------------------- */

enum { WORKERS = 4, STOPS = 300 };

static int work_on_map(struct stress_thread *self, unsigned worker)
{
	static int64_t next[STOPPING_WORKERS];
	weir_tensor *tensors[COMPONENTS];
	enum weir_status status;
	int64_t key;

	if (stress_one_in(self, 8)) {
		stress_begin(self, "look");
		look();
		return 2;
	}
	if (stress_one_in(self, 2)) {
		stress_begin(self, "get_any");
		status = weir_map_staging_get_any(now.map, NULL, &key, tensors, COMPONENTS, 0, NULL, NULL);
		for (size_t i = 0; status == WEIR_OK && i < COMPONENTS; i++)
			check_and_release(key, i, tensors[i]);
		return status == WEIR_OK ? 1 : -1;
	}
	key = (int64_t)worker + STOPPING_WORKERS * next[worker];
	stress_begin(self, "put");
	for (size_t i = 0; i < COMPONENTS; i++)
		tensors[i] = make(key, i);
	status = weir_map_staging_put(now.map, key, NULL, tensors, COMPONENTS, 0, NULL, NULL);
	for (size_t i = 0; i < COMPONENTS; i++)
		weir_tensor_release(tensors[i]);
	next[worker] += status == WEIR_OK;
	return status == WEIR_OK ? 0 : -1;
}

void scenario_map_staging_stopped(void)
{
	const struct stopping subject = {"map staging area", WORKERS, {"put", "get_any", "look"}, 3, 0, work_on_map, 50};
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	open_map(MOST_ROOM, stress_blocks());
	(void)stopping_must_go_on(self, &subject, stress_scaled(STOPS), stopping_part_end(1));
	STRESS_CHECK(weir_map_staging_destroy(now.map, NULL) == WEIR_OK, "destroy");
}
