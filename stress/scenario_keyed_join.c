/*
 * scenario_keyed_join.c - keyed joins: each key that got all its components is taken once,
 * complete; and a thread is stopped anywhere in a call.
 *
 * Each round uses a new keyed join. Two threads for each component insert all keys, each thread its
 * half, in batches of random size. Some of their inserts name a key that has the component already,
 * and must then have no effect. Takers take random numbers, with deadlines that often pass. The
 * keyed join is closed after everything is inserted, or before; incomplete tuples are then dropped.
 * Freed memory is poisoned.
 */
#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow/keyed_join.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "blocks.h"
#include "poison.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"

enum { COMPONENTS = 2, HALVES = 2, TAKERS = 2, KEYS = 400, MOST = 6, TEXT = 12 };

static const uint64_t patience_ns = 100000000000u;

static struct {
	weir_keyed_join *join;
	const weir_allocator *allocator;
	int cancels;
	_Atomic(uint32_t) inserters;
	_Atomic(uint32_t) taken[KEYS];
} now;

static void open_keyed_join(const weir_allocator *allocator)
{
	static const weir_shape scalar = {.rank = 0};
	struct weir_tensor_component components[] = {{WEIR_I64, &scalar, NULL}, {WEIR_I64, &scalar, NULL}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = components,
	                                          .component_count = COMPONENTS, .allocator = allocator};

	STRESS_CHECK(weir_keyed_join_create(&options, &now.join, NULL) == WEIR_OK, "cannot create a keyed join");
	now.allocator = allocator;
}

static int64_t value_of(size_t component, int64_t key)
{
	return (int64_t)stress_mix((uint64_t)key * COMPONENTS + component);
}

/* Inserts keys `key[0 .. count-1]`. */
static enum weir_status insert(size_t component, const int64_t key[], int64_t count)
{
	const weir_shape shape = {.rank = 1, .dims = {count}};
	weir_tensor *keys, *values;
	char text[MOST][TEXT];
	weir_bytes name[MOST];
	int64_t value[MOST];
	enum weir_status status;

	for (int64_t i = 0; i < count; i++) {
		int length = snprintf(text[i], TEXT, "%" PRId64, key[i]);

		name[i] = (weir_bytes){text[i], (size_t)length};
		value[i] = value_of(component, key[i]);
	}
	STRESS_CHECK(weir_tensor_copy_of(WEIR_BYTES, &shape, name, now.allocator, &keys) == WEIR_OK &&
	                 weir_tensor_copy_of(WEIR_I64, &shape, value, now.allocator, &values) == WEIR_OK,
	             "no memory");
	status = weir_keyed_join_insert_many(now.join, component, keys, values, NULL);
	weir_tensor_release(keys);
	weir_tensor_release(values);
	return status;
}

static int64_t key_at(const struct weir_keyed_join_batch *batch, int64_t row)
{
	const weir_bytes *key = (const weir_bytes *)weir_tensor_data(batch->keys) + row;
	char text[TEXT + 1] = {0};

	STRESS_CHECK(key->size <= TEXT, "a key of %zu bytes", key->size);
	memcpy(text, key->data, key->size);
	return strtoll(text, NULL, 10);
}

static void check_and_release(struct weir_keyed_join_batch *batch)
{
	for (int64_t row = 0; row < (int64_t)batch->count; row++) {
		int64_t key = key_at(batch, row);

		for (size_t i = 0; i < COMPONENTS; i++)
			STRESS_CHECK(((const int64_t *)weir_tensor_data(batch->values[i]))[row] == value_of(i, key),
			             "key %" PRId64 " came out with component %zu of another key", key, i);
		if (key < KEYS)
			STRESS_CHECK(weiri_fetch_add_relaxed(&now.taken[key], 1u) == 0, "key %" PRId64 " came out twice", key);
	}
	weir_tensor_release(batch->indices);
	weir_tensor_release(batch->keys);
	for (size_t i = 0; i < COMPONENTS; i++)
		weir_tensor_release(batch->values[i]);
}

/* -- rounds ------------------------------------------------------------------------------------ */

/*
 * Inserts a batch whose last key may be one that the thread inserted before. The whole batch is
 * refused while that key is incomplete. Once the key is ready, it counts as new, so such a key is
 * one of those above KEYS, which no other thread completes.
 */
static void insert_some(struct stress_thread *self, size_t component, int64_t next, int64_t count, int64_t marker)
{
	int64_t keys[MOST];
	enum weir_status status;

	for (int64_t i = 0; i < count; i++)
		keys[i] = next + i;
	stress_begin(self, "insert_many");
	if (stress_one_in(self, 4)) {
		keys[count] = marker;
		status = insert(component, keys, count + 1);
		STRESS_CHECK(status == WEIR_INVALID_ARGUMENT || (status == WEIR_CANCELLED && now.cancels),
		             "an insert of a component that the key already has: %s", weir_status_name(status));
	}
	status = insert(component, keys, count);
	STRESS_CHECK(status == WEIR_OK || (status == WEIR_CANCELLED && now.cancels), "insert: %s",
	             weir_status_name(status));
	stress_end(self, 1);
}

static void produce(struct stress_thread *self, void *context)
{
	size_t number = (size_t)(uintptr_t)context, component = number % COMPONENTS;
	int64_t next = (int64_t)(number / COMPONENTS) * (KEYS / HALVES), end = next + KEYS / HALVES;
	int64_t marker = KEYS + (int64_t)number;
	enum weir_status status = insert(component, &marker, 1);

	STRESS_CHECK(status == WEIR_OK || (status == WEIR_CANCELLED && now.cancels), "insert: %s",
	             weir_status_name(status));
	while (next < end) {
		int64_t left = end - next, count = 1 + (int64_t)stress_below(self, MOST - 1);

		count = count < left ? count : left;
		insert_some(self, component, next, count, marker);
		next += count;
	}
	weiri_fetch_sub_release(&now.inserters, 1u); /* [release] pairs with play() */
}

static void take(struct stress_thread *self, void *context)
{
	(void)context;
	for (;;) {
		size_t n = 1 + (size_t)stress_below(self, MOST);
		uint32_t flags = stress_one_in(self, 2) ? WEIR_KEYED_JOIN_ALLOW_SMALL_BATCH : 0;
		struct weir_keyed_join_batch batch;
		enum weir_status status;

		stress_begin(self, "take_many");
		status = weir_keyed_join_take_many(now.join, n, flags, weir_deadline_in(stress_below(self, 200000)), NULL,
		                                   &batch, NULL);
		STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED || status == WEIR_OUT_OF_RANGE, "take: %s",
		             weir_status_name(status));
		if (status == WEIR_OK)
			check_and_release(&batch);
		stress_end(self, 1);
		/*
		 * The markers stay incomplete when the keyed join drains, so only a small batch shows that
		 * nothing is ready.
		 */
		if (status == WEIR_OUT_OF_RANGE && flags != 0 && weiri_load_acquire(&now.inserters) == 0)
			return;
	}
}

static void play(struct stress_thread *self)
{
	unsigned spins = 0;

	now.cancels = stress_one_in(self, 3);
	/* [relaxed] no thread yet */
	weiri_store_relaxed(&now.inserters, (uint32_t)(COMPONENTS * HALVES));
	for (unsigned i = 0; i < KEYS; i++)
		weiri_store_relaxed(&now.taken[i], 0u);
	for (uintptr_t i = 0; i < (uintptr_t)COMPONENTS * HALVES; i++)
		(void)stress_start("producer", produce, (void *)i);
	for (unsigned i = 0; i < TAKERS; i++)
		(void)stress_start("taker", take, NULL);
	stress_begin(self, "waiting to close");
	if (now.cancels)
		stress_let_pass(stress_below(self, 2000000));
	else
		while (weiri_load_acquire(&now.inserters) != 0) /* [acquire] all keys are inserted */
			stress_back_off(&spins);
	STRESS_CHECK(weir_keyed_join_close(now.join, now.cancels ? WEIR_CLOSE_CANCEL : WEIR_CLOSE_DRAIN, NULL) == WEIR_OK,
	             "close");
	stress_join();
	stress_end(self, 1);
}

static void check_end(void)
{
	size_t ready = 1, incomplete = 0;
	unsigned taken = 0;

	for (unsigned i = 0; i < KEYS; i++)
		taken += weiri_load_relaxed(&now.taken[i]); /* [relaxed] joined */
	STRESS_CHECK(weir_keyed_join_size(now.join, &ready, &incomplete) == WEIR_OK, "weir_keyed_join_size failed");
	STRESS_CHECK(ready == 0 && (now.cancels || taken == KEYS), "%u of %d keys came out, and %zu are still ready", taken,
	             KEYS, ready);
	STRESS_CHECK(incomplete == (now.cancels ? 0 : COMPONENTS * HALVES), "%zu keys are incomplete", incomplete);
	STRESS_CHECK(weir_keyed_join_destroy(now.join, NULL) == WEIR_OK, "destroy");
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

void scenario_keyed_join(void)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		open_keyed_join(stress_poison());
		play(self);
		check_end();
	}
	stress_note("rounds", rounds);
}

/* -- stops ------------------------------------------------------------------------------------- */

/* No thread inserts above ENOUGH ready tuples. */
enum { WORKERS = 4, STOPS = 300, ENOUGH = 64 };
/* A take that waits may stand still while the stopped thread completes it. No other call may. */
enum { MAY_STAND = 1 };

static int work_on_keyed_join(struct stress_thread *self, unsigned worker)
{
	static int64_t next[STOPPING_WORKERS];
	struct weir_keyed_join_batch batch;
	size_t ready = 0;
	int64_t key;

	STRESS_CHECK(weir_keyed_join_size(now.join, &ready, NULL) == WEIR_OK, "look");
	if (ready > ENOUGH || stress_one_in(self, 2)) {
		uint64_t deadline_ns = stress_one_in(self, 2) ? 0 : weir_deadline_in(stress_below(self, 200000));

		stress_begin(self, "take_many");
		if (weir_keyed_join_take_many(now.join, 1, 0, deadline_ns, NULL, &batch, NULL) != WEIR_OK)
			return -1;
		check_and_release(&batch);
		return 1;
	}
	key = KEYS + (int64_t)worker + STOPPING_WORKERS * next[worker]++;
	stress_begin(self, "insert_many");
	for (size_t i = 0; i < COMPONENTS; i++)
		STRESS_CHECK(insert(i, &key, 1) == WEIR_OK, "insert");
	return 0;
}

void scenario_keyed_join_stopped(void)
{
	const struct stopping subject = {"keyed_join", WORKERS, {"insert", "take"}, 2, MAY_STAND, work_on_keyed_join, 50};
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	open_keyed_join(stress_blocks());
	(void)stopping_must_go_on(self, &subject, stress_scaled(STOPS), stopping_part_end(1));
	STRESS_CHECK(weir_keyed_join_destroy(now.join, NULL) == WEIR_OK, "destroy");
}
