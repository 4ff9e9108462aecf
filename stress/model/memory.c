/*
 * memory.c - the memory that the program sees: histories, views, races.
 *
 * A store is appended to its location's history with the writer's view if it releases (or follows a release fence, or continues a
 * release sequence by a read-modify-write). A load may return any store from the thread's own lower bound on; an acquire joins
 * the store's view. A read-modify-write reads the last store. seq_cst: a load also returns nothing older than the last seq_cst store
 * of its location; a seq_cst fence joins the thread's view with that of all earlier ones, both ways.
 * A view says, for each location, the oldest store that may still be read, and, for each thread, how far its plain accesses are known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/engine.h"

enum { LOCATIONS = 512, TABLE = 4096, GRANULES = 1 << 16, STORES = 1 << 15, VIEWS = 1 << 13 };

struct view {
	uint32_t clock[THREADS];
	uint32_t count; /* entries of oldest[] in use; the rest is 0 */
	uint32_t oldest[LOCATIONS];
};

struct store {
	value_t value;
	uint32_t view;     /* 1 + index into views; 0: not a release */
	uint32_t previous; /* index of the store before it, of the same location */
	uint32_t number;   /* in the location's history */
	uint32_t step;
	uint8_t thread;
};

struct location {
	void *address;
	uint32_t size;
	uint32_t last;                  /* index into stores */
	uint32_t number;                /* of the last store */
	uint32_t seq_cst;               /* number of the last seq_cst store */
	uint32_t atomic_clock[THREADS]; /* when each thread last accessed it atomically: for races with plain accesses */
	uint32_t written_clock[THREADS];
};

/* Plain accesses to eight bytes. */
struct granule {
	uint32_t generation;
	uint8_t write_thread, write_mask, has_atomic;
	uint32_t write_clock;
	uint32_t read_clock[THREADS];
	uint8_t read_mask[THREADS];
};

static struct location locations[LOCATIONS];
static uint32_t location_count;
static struct {
	uint32_t generation, location;
} table[TABLE];
static struct store stores[STORES];
static uint32_t store_count;
static struct view views[VIEWS];
static uint32_t view_count;
static struct granule granules[GRANULES];
static uintptr_t granule_key[GRANULES];
static uint32_t generation = 1;

static struct view now[THREADS];      /* what each thread sees */
static struct view pending[THREADS];  /* what its relaxed loads read, for a later acquire fence */
static struct view released[THREADS]; /* its view at its last release fence */
static int has_released[THREADS];
static struct view fences; /* what the seq_cst fences so far have seen */

static void view_clear(struct view *view)
{
	memset(view, 0, offsetof(struct view, oldest));
}

static uint32_t view_get(const struct view *view, uint32_t location)
{
	return location < view->count ? view->oldest[location] : 0;
}

static void view_set(struct view *view, uint32_t location, uint32_t number)
{
	while (view->count <= location)
		view->oldest[view->count++] = 0;
	if (view->oldest[location] < number)
		view->oldest[location] = number;
}

static void view_join(struct view *to, const struct view *from)
{
	for (unsigned t = 0; t < THREADS; t++)
		to->clock[t] = to->clock[t] > from->clock[t] ? to->clock[t] : from->clock[t];
	for (uint32_t i = 0; i < from->count; i++)
		view_set(to, i, from->oldest[i]);
}

static void view_copy(struct view *to, const struct view *from)
{
	memcpy(to, from, offsetof(struct view, oldest) + from->count * sizeof(from->oldest[0]));
}

void memory_reset(void)
{
	generation++;
	location_count = store_count = view_count = 0;
	for (unsigned t = 0; t < THREADS; t++) {
		view_clear(&now[t]);
		view_clear(&pending[t]);
		has_released[t] = 0;
	}
	view_clear(&fences);
	now[0].clock[0] = 1;
}

void memory_thread_starts(unsigned thread)
{
	view_copy(&now[thread], &now[0]);
	now[thread].clock[thread] = 1;
}

void memory_all_join(void)
{
	for (unsigned t = 1; t < THREADS; t++)
		view_join(&now[0], &now[t]);
	now[0].clock[0]++;
}

/* -- locations ---------------------------------------------------------------------------------------------------------------- */

static value_t read_raw(const void *address, size_t size)
{
	value_t value = 0;

	memcpy(&value, address, size);
	return value;
}

static uint32_t append(uint32_t location, value_t value, uint32_t view)
{
	struct location *l = &locations[location];

	if (store_count == STORES)
		model_fail("more than %d stores in one execution", STORES);
	stores[store_count] =
		(struct store){value, view, l->last, ++l->number, (uint32_t)model_step(), (uint8_t)model_thread};
	l->last = store_count++;
	memcpy(l->address, &value, l->size);
	return l->number;
}

uint32_t memory_location(const void *address, size_t size)
{
	uint32_t slot = (uint32_t)(((uintptr_t)address >> 2) * 0x9E3779B1u) % TABLE;

	while (table[slot].generation == generation) {
		struct location *l = &locations[table[slot].location];

		if (l->address == address) {
			if (size > l->size)
				l->size = (uint32_t)size;
			return table[slot].location;
		}
		slot = (slot + 1) % TABLE;
	}
	if (location_count == LOCATIONS)
		model_fail("more than %d atomic locations", LOCATIONS);
	table[slot].generation = generation;
	table[slot].location = location_count;
	locations[location_count] = (struct location){.address = (void *)(uintptr_t)address, .size = (uint32_t)size};
	/* What the memory holds is its first store; it is ordered by the race check against the plain writes that made it. */
	stores[store_count] = (struct store){read_raw(address, size), 0, 0, 0, 0, 0};
	locations[location_count].last = store_count++;
	return location_count++;
}

/* -- races -------------------------------------------------------------------------------------------------------------------- */

static struct granule *granule_at(uintptr_t key)
{
	uint32_t slot = (uint32_t)(key * 0x9E3779B1u) % GRANULES;

	while (granules[slot].generation == generation && granule_key[slot] != key)
		slot = (slot + 1) % GRANULES;
	if (granules[slot].generation != generation) {
		memset(&granules[slot], 0, sizeof(granules[slot]));
		granules[slot].generation = generation;
		granule_key[slot] = key;
	}
	return &granules[slot];
}

static int known(unsigned thread, uint32_t clock)
{
	return clock <= now[model_thread].clock[thread];
}

static void check_writer(const struct granule *granule, uint8_t mask, const void *address, const char *what)
{
	if ((granule->write_mask & mask) != 0 && granule->write_thread != model_thread &&
	    !known(granule->write_thread, granule->write_clock))
		model_fail("data race: %s of %p and a plain write by thread %u", what, address, granule->write_thread);
}

static void check_readers(const struct granule *granule, uint8_t mask, const void *address, const char *what)
{
	for (unsigned t = 0; t < THREADS; t++) {
		if (t != model_thread && (granule->read_mask[t] & mask) != 0 && !known(t, granule->read_clock[t]))
			model_fail("data race: %s of %p and a plain read by thread %u", what, address, t);
	}
}

static void for_each_granule(const void *address, size_t size,
                             void (*visit)(struct granule *, uint8_t, const void *, int), int argument)
{
	uintptr_t at = (uintptr_t)address, end = at + size;

	while (at < end) {
		uintptr_t key = at / 8, stop = (key + 1) * 8 < end ? (key + 1) * 8 : end;
		uint8_t mask = (uint8_t)(((1u << (stop - at)) - 1) << at % 8);

		visit(granule_at(key), mask, (const void *)at, argument);
		at = stop;
	}
}

static int plain_meets_atomic;

static void visit_plain(struct granule *granule, uint8_t mask, const void *address, int is_write)
{
	plain_meets_atomic |= granule->has_atomic;
	uint32_t clock = now[model_thread].clock[model_thread];

	check_writer(granule, mask, address, is_write ? "a plain write" : "a plain read");
	if (!is_write) {
		granule->read_mask[model_thread] |= mask;
		granule->read_clock[model_thread] = clock;
		return;
	}
	check_readers(granule, mask, address, "a plain write");
	granule->write_thread = (uint8_t)model_thread;
	granule->write_mask = mask;
	granule->write_clock = clock;
}

/* 0: an atomic load, 1: an atomic write */
static void visit_atomic(struct granule *granule, uint8_t mask, const void *address, int is_write)
{
	granule->has_atomic = 1;
	check_writer(granule, mask, address, "an atomic access");
	if (is_write)
		check_readers(granule, mask, address, "an atomic write");
}

static void visit_forget(struct granule *granule, uint8_t mask, const void *address, int argument)
{
	(void)address, (void)argument;
	granule->write_mask &= (uint8_t)~mask;
	for (unsigned t = 0; t < THREADS; t++)
		granule->read_mask[t] &= (uint8_t)~mask;
}

/* A plain access to what is also accessed atomically. */
static void check_atomics(const void *address, size_t size, int is_write)
{
	for (uint32_t i = 0; i < location_count; i++) {
		const struct location *l = &locations[i];

		if ((uintptr_t)l->address >= (uintptr_t)address + size || (uintptr_t)address >= (uintptr_t)l->address + l->size)
			continue;
		for (unsigned t = 0; t < THREADS; t++) {
			if (t != model_thread && !known(t, is_write ? l->atomic_clock[t] : l->written_clock[t]))
				model_fail("data race: a plain %s of %p and an atomic access by thread %u", is_write ? "write" : "read",
				           l->address, t);
		}
		if (is_write) /* initialization anew: the history begins again */
			locations[i].size = 0, locations[i].address = NULL;
	}
}

void memory_plain(const void *address, size_t size, int is_write)
{
	if (!model_active)
		return;
	heap_check(address, is_write ? "a plain write" : "a plain read");
	plain_meets_atomic = 0;
	for_each_granule(address, size, visit_plain, is_write);
	if (plain_meets_atomic)
		check_atomics(address, size, is_write);
}

void memory_forget(const void *address, size_t size)
{
	for_each_granule(address, size, visit_forget, 0);
	for (uint32_t i = 0; i < location_count; i++) {
		if ((uintptr_t)locations[i].address - (uintptr_t)address < size)
			locations[i].address = NULL; /* found anew at its next access */
	}
}

/* -- accesses ----------------------------------------------------------------------------------------------------------------- */

static int acquires(enum order order)
{
	return order == ACQUIRE || order == CONSUME || order == ACQ_REL || order == SEQ_CST;
}

static int releases(enum order order)
{
	return order == RELEASE || order == ACQ_REL || order == SEQ_CST;
}

static uint32_t keep_view(const struct view *view)
{
	if (view_count == VIEWS)
		model_fail("more than %d releases in one execution", VIEWS);
	view_copy(&views[view_count], view);
	return ++view_count;
}

static uint32_t arrive(void *address, size_t size, enum kind kind, enum order order)
{
	uint32_t location;

	heap_check(address, "an atomic access");
	location = memory_location(address, size);
	model_schedule(&(struct operation){kind, order, address, location});
	/* The address may have been freed, and its location forgotten, while others ran. */
	heap_check(address, "an atomic access");
	location = memory_location(address, size);
	for_each_granule(address, size, visit_atomic, kind != OP_LOAD);
	locations[location].atomic_clock[model_thread] = now[model_thread].clock[model_thread];
	if (kind != OP_LOAD)
		locations[location].written_clock[model_thread] = now[model_thread].clock[model_thread];
	return location;
}

static void take(const struct store *store, uint32_t location, enum order order)
{
	view_set(&now[model_thread], location, store->number);
	if (store->view == 0)
		return;
	if (acquires(order))
		view_join(&now[model_thread], &views[store->view - 1]);
	else
		view_join(&pending[model_thread], &views[store->view - 1]);
}

value_t memory_load(void *address, size_t size, enum order order)
{
	uint32_t location = arrive(address, size, OP_LOAD, order), i;
	const struct location *l = &locations[location];
	uint32_t oldest = view_get(&now[model_thread], location);
	const struct store *store;
	uint32_t choice;

	if (order == SEQ_CST && oldest < l->seq_cst)
		oldest = l->seq_cst;
	choice = model_running ? model_choose(l->number - oldest + 1) : 0;
	for (i = l->last; choice != 0; choice--)
		i = stores[i].previous;
	store = &stores[i];
	take(store, location, order);
	trace_step("load %p -> %llx%s", address, (unsigned long long)store->value, i != l->last ? " (stale)" : "");
	return store->value & (size == 16 ? ~(value_t)0 : ((value_t)1 << size * 8) - 1);
}

static void put(uint32_t location, value_t value, enum order order, uint32_t continued)
{
	struct view *mine = &now[model_thread];
	uint32_t view = 0;

	view_set(mine, location, locations[location].number + 1);
	if (releases(order) || has_released[model_thread] || continued != 0) {
		static struct view sum;

		if (releases(order))
			view_copy(&sum, mine);
		else if (has_released[model_thread])
			view_copy(&sum, &released[model_thread]);
		else
			view_clear(&sum);
		if (continued != 0)
			view_join(&sum, &views[continued - 1]);
		view_set(&sum, location, locations[location].number + 1);
		view = keep_view(&sum);
	}
	(void)append(location, value, view);
	mine->clock[model_thread]++; /* what comes after the store is not released by it */
	if (order == SEQ_CST)
		locations[location].seq_cst = locations[location].number;
}

void memory_store(void *address, size_t size, value_t value, enum order order)
{
	uint32_t location = arrive(address, size, OP_STORE, order);

	put(location, value, order, 0);
	trace_step("store %p <- %llx", address, (unsigned long long)value);
}

int memory_cas(void *address, size_t size, value_t expected, value_t desired, enum order success, enum order failure,
               value_t *old)
{
	uint32_t location = arrive(address, size, OP_RMW, success);
	struct location *l = &locations[location];
	uint32_t oldest = view_get(&now[model_thread], location), choice = 0, i = l->last;
	const struct store *last = &stores[l->last];
	value_t mask = size == 16 ? ~(value_t)0 : ((value_t)1 << size * 8) - 1;

	/* A failing CAS is a load and may read an older store, if that is not what was expected. */
	if (success == SEQ_CST && oldest < l->seq_cst)
		oldest = l->seq_cst;
	if (model_running) {
		choice = model_choose(l->number - oldest + 1);
		for (uint32_t c = choice; c != 0; c--)
			i = stores[i].previous;
		if (choice != 0 && (stores[i].value & mask) == expected)
			i = l->last; /* reading this old store would make it succeed: it reads the last one then; explored already */
	}
	last = &stores[i];
	*old = last->value & mask;
	if (*old != expected) {
		take(last, location, failure);
		trace_step("cas %p failed, saw %llx%s", address, (unsigned long long)*old, i != l->last ? " (stale)" : "");
		return 0;
	}
	take(last, location, success);
	put(location, desired, success, last->view);
	trace_step("cas %p %llx -> %llx", address, (unsigned long long)expected, (unsigned long long)desired);
	return 1;
}

value_t memory_update(void *address, size_t size, value_t (*update)(value_t, value_t), value_t operand,
                      enum order order)
{
	uint32_t location = arrive(address, size, OP_RMW, order);
	const struct store *last = &stores[locations[location].last];
	value_t mask = size == 16 ? ~(value_t)0 : ((value_t)1 << size * 8) - 1, old = last->value & mask;
	uint32_t continued = last->view;

	take(last, location, order);
	put(location, update(old, operand) & mask, order, continued);
	trace_step("rmw %p %llx -> %llx", address, (unsigned long long)old,
	           (unsigned long long)(update(old, operand) & mask));
	return old;
}

static void seq_cst_fence(unsigned thread)
{
	view_join(&now[thread], &pending[thread]);
	view_join(&fences, &now[thread]);
	view_join(&now[thread], &fences);
	view_copy(&released[thread], &now[thread]);
	has_released[thread] = 1;
	now[thread].clock[thread]++;
}

void memory_fence(enum order order)
{
	model_schedule(&(struct operation){OP_FENCE, order, NULL, 0});
	trace_step("fence");
	if (order == SEQ_CST) {
		seq_cst_fence(model_thread);
		return;
	}
	if (acquires(order))
		view_join(&now[model_thread], &pending[model_thread]);
	if (releases(order)) {
		view_copy(&released[model_thread], &now[model_thread]);
		has_released[model_thread] = 1;
		now[model_thread].clock[model_thread]++;
	}
}

void memory_heavy_fence(void)
{
	model_schedule(&(struct operation){OP_HEAVY, SEQ_CST, NULL, 0});
	trace_step("membarrier");
	/* Ours, theirs, ours: what they stored we see, what we stored they see. */
	for (int round = 0; round < 2; round++) {
		for (unsigned t = 0; t < THREADS; t++)
			seq_cst_fence(t);
	}
}
