/*
 * memory.c - the memory that the program sees: histories, views, races.
 *
 * A store is appended to its location's history with the writer's view if it releases (or follows a release fence, or continues a
 * release sequence by a read-modify-write). A load may return any store from the thread's own lower bound on; an acquire joins
 * the store's view. A read-modify-write reads the last store.
 * seq_cst: the order of execution is the order S. A view of S collects the seq_cst stores and what the seq_cst fences had seen; a
 * seq_cst load returns nothing older than that, a seq_cst fence joins it. It carries no happens-before: plain accesses on both
 * sides of two fences still race unless a load reads from a store.
 * A view says, for each location, the oldest store that may still be read, and, for each thread, how far its plain accesses are known.
 *
 * Mixed sizes. A location that is ever accessed by sixteen bytes is one location, also for accesses of its halves: a half load
 * returns a part of some store of the whole, a half store or compare-and-swap stores the whole with the other half as it was.
 * This is how x86-64 behaves, where both are ordered by the cache line (lib/ring/ltq16.c); ISO C leaves it undefined.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/checkpoint.h"
#include "model/engine.h"
#include "model/view.h"

enum { GRAIN = 4, GRANULES = 1 << 14, STORES = 1 << 15, VIEWS = 1 << 13, WIDE = 64 };

struct store {
	value_t value;
	uint32_t view;     /* 1 + index into views; 0: not a release */
	uint32_t previous; /* index of the store before it, of the same location */
	uint32_t number;   /* in the location's history */
	uint32_t node;     /* of the operation, + 1; 0: before the threads */
	uint32_t step;
	uint8_t thread;
};

/* With states merged: the threads that read and wrote somewhere, plainly and atomically, in any execution so far, as sets. */
struct uses {
	uint8_t did[4];
};
enum { PLAIN_READ, PLAIN_WRITE, ATOMIC_READ, ATOMIC_WRITE };

struct location {
	char *address; /* NULL: forgotten */
	uint32_t size;
	uint32_t next;                  /* 1 + the next location in the same granule */
	uint32_t last;                  /* index into stores */
	uint32_t number;                /* of the last store */
	uint32_t atomic_clock[THREADS]; /* when each thread last accessed it atomically: for races with plain accesses */
	uint32_t written_clock[THREADS];
	uint64_t key;     /* its name in a state */
	struct uses uses; /* of its granules */
};

/* Four bytes: plain accesses to them, and the locations in them. A cache line. */
struct granule {
	_Alignas(64) uintptr_t key;
	uint32_t generation;
	uint16_t location; /* 1 + the first */
	uint16_t users;    /* index into users; 0: none yet */
	uint32_t write_clock;
	uint8_t write_thread, write_mask, written;
	uint8_t readers; /* threads, as a set */
	uint32_t read_clock[THREADS];
	uint8_t read_mask[THREADS];
};
_Static_assert(sizeof(struct granule) == 64, "a cache line");

struct users {
	uintptr_t key; /* of the granule */
	struct uses uses;
};

static struct location locations[LOCATIONS];
static uint32_t location_count;
static struct store stores[STORES];
static uint32_t store_count;
static struct view views[VIEWS];
static uint32_t view_count;
static struct granule granules[GRANULES];
static uint32_t generation = 1;
static uintptr_t written[GRANULES]; /* keys */
static uint32_t written_count;
static uint32_t granule_count;
static struct users users[GRANULES + 1]; /* kept for the whole search; [0]: of nobody */
static uint16_t users_at[2 * GRANULES];  /* by hash of the key: index; 0: none */
static uint32_t users_count;
static int users_learned;                    /* in this execution */
static uint32_t used_granules[GRANULES / 2]; /* indices */
static const char *wide[WIDE];               /* locations of sixteen bytes; kept for the whole search */
static uint32_t wide_count;

/* How often in a row each thread read the same old store of a location: after STALE_READS times it must read a newer one. */
enum { STALE_READS = 8 };
static struct {
	uint32_t number;
	uint8_t times;
} stale[LOCATIONS][THREADS];

static struct view now[THREADS];      /* what each thread sees */
static struct view pending[THREADS];  /* what its relaxed loads read, for a later acquire fence */
static struct view released[THREADS]; /* its view at its last release fence */
static int has_released[THREADS];
static struct view in_s; /* what the seq_cst order S obliges a seq_cst load or fence to see; clocks unused */

void memory_begin(void)
{
	wide_count = users_count = 0;
	memset(users_at, 0, sizeof(users_at));
}

void memory_reset(void)
{
	generation++;
	location_count = store_count = view_count = written_count = granule_count = 0;
	users_learned = 0;
	for (unsigned t = 0; t <= model_program->threads; t++) {
		view_clear(&now[t]);
		view_clear(&pending[t]);
		has_released[t] = 0;
	}
	view_clear(&in_s);
	now[0].clock[0] = 1;
}

void memory_thread_starts(unsigned thread)
{
	view_copy(&now[thread], &now[0]);
	now[thread].clock[thread] = 1;
}

void memory_all_join(void)
{
	for (unsigned t = 1; t <= model_program->threads; t++)
		view_join(&now[0], &now[t]);
	now[0].clock[0]++;
}

/* -- granules ----------------------------------------------------------------------------------------------------------------- */

static struct granule *new_granule(struct granule *granule, uintptr_t key)
{
	if (++granule_count > GRANULES / 2)
		model_fail("more than %d bytes are accessed in one execution", GRANULES / 2 * GRAIN);
	used_granules[granule_count - 1] = (uint32_t)(granule - granules);
	*granule = (struct granule){.key = key, .generation = generation};
	return granule;
}

static inline uint32_t place_of(uintptr_t key)
{
	return (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 50) % GRANULES;
}

static inline struct granule *granule_at(uintptr_t key)
{
	uint32_t slot = place_of(key);

	while (granules[slot].generation == generation && granules[slot].key != key)
		slot = (slot + 1) % GRANULES;
	return granules[slot].generation == generation ? &granules[slot] : new_granule(&granules[slot], key);
}

static inline void note_written(struct granule *granule)
{
	state_forgets((const char *)(granule->key * GRAIN));
	if (granule->written)
		return;
	granule->written = 1;
	written[written_count++] = granule->key;
}

/*
 * Who uses what is learned on the way, as states leave out what nobody uses (see below); when more is learned, the search begins again.
 */
static uint16_t users_of(uintptr_t key)
{
	uint32_t slot = 2 * place_of(key);

	while (users_at[slot] != 0 && users[users_at[slot]].key != key)
		slot = (slot + 1) % (2 * GRANULES);
	if (users_at[slot] == 0) {
		if (users_count == GRANULES)
			model_fail("more than %d bytes are accessed in a search", GRANULES * GRAIN);
		users[++users_count] = (struct users){.key = key};
		users_at[slot] = (uint16_t)users_count;
	}
	return users_at[slot];
}

/* What one of threads that are alike does, the others will. */
static void learn_use(uint8_t *did)
{
	unsigned first = model_thread, last = model_thread;

	while ((model_options.alike >> (first - 1) & 1) != 0)
		first--;
	while ((model_options.alike >> last & 1) != 0)
		last++;
	*did |= (uint8_t)((2u << last) - (1u << first));
	users_learned = 1;
}

static inline void note_use(struct granule *granule, unsigned use)
{
	uint8_t *did;

	if (!model_running || !model_options.merge_states)
		return;
	if (granule->users == 0)
		granule->users = users_of(granule->key);
	did = &users[granule->users].uses.did[use];
	if ((*did >> model_thread & 1) == 0)
		learn_use(did);
}

int memory_has_learned(void)
{
	return users_learned;
}

void memory_each_written(void (*visit)(char *address))
{
	for (uint32_t i = 0; i < written_count; i++)
		visit((char *)(written[i] * GRAIN));
}

/* -- locations ---------------------------------------------------------------------------------------------------------------- */

static value_t read_raw(const void *address, size_t size)
{
	switch (size) {
	case 4: return *(const uint32_t *)address;
	case 8: return *(const uint64_t *)address;
	default: break;
	}
	value_t value = 0;

	memcpy(&value, address, size);
	return value;
}

static void write_raw(void *address, size_t size, value_t value)
{
	switch (size) {
	case 4: *(uint32_t *)address = (uint32_t)value; break;
	case 8: *(uint64_t *)address = (uint64_t)value; break;
	default: memcpy(address, &value, size);
	}
}

static int is_wide(const char *address)
{
	for (uint32_t i = 0; i < wide_count; i++) {
		if (wide[i] == address)
			return 1;
	}
	return 0;
}

static void learn_wide(const char *address)
{
	if (wide_count == WIDE)
		model_fail("more than %d locations of sixteen bytes", WIDE);
	wide[wide_count++] = address;
	model_begin_again();
}

static void add_uses(struct uses *to, const struct uses *from)
{
	for (unsigned use = 0; use < sizeof(to->did); use++)
		to->did[use] |= from->did[use];
}

static uint32_t new_location(char *address, size_t size)
{
	struct location *l = &locations[location_count];

	if (location_count == LOCATIONS)
		model_fail("more than %d atomic locations", LOCATIONS);
	memset(l, 0, sizeof(*l));
	l->address = address;
	l->size = (uint32_t)size;
	l->last = store_count;
	l->key = state_mix(1, (uint64_t)(uintptr_t)address);
	memset(stale[location_count], 0, sizeof(stale[0]));
	for (uintptr_t key = (uintptr_t)address / GRAIN; key * GRAIN < (uintptr_t)address + size; key++) {
		struct granule *granule = granule_at(key);

		l->next = granule->location;
		granule->location = location_count + 1;
		if (model_options.merge_states)
			add_uses(&l->uses, &users[users_of(key)].uses);
	}
	/* What the memory holds is its first store; it is ordered by the race check against the plain writes that made it. */
	stores[store_count++] = (struct store){.value = read_raw(address, size)};
	return location_count++;
}

uint32_t memory_location(const void *pointer, size_t size)
{
	char *address = (char *)(uintptr_t)pointer, *whole = (char *)((uintptr_t)pointer & ~(uintptr_t)15);
	uint32_t i = granule_at((uintptr_t)address / GRAIN)->location;

	for (; i != 0; i = locations[i - 1].next) {
		const struct location *l = &locations[i - 1];

		if (l->address != NULL && address >= l->address && address + size <= l->address + l->size)
			return i - 1;
	}
	if (size == 16 && !is_wide(address))
		learn_wide(address);
	if (size < 16 && wide_count != 0 && is_wide(whole))
		return new_location(whole, 16);
	return new_location(address, size);
}

uint32_t memory_last(uint32_t location)
{
	return locations[location].number;
}

static void append(uint32_t location, value_t value, uint32_t view)
{
	struct location *l = &locations[location];

	if (store_count == STORES)
		model_fail("more than %d stores in one execution", STORES);
	stores[store_count] = (struct store){.value = value,
	                                     .view = view,
	                                     .previous = l->last,
	                                     .number = ++l->number,
	                                     .node = explore_node(),
	                                     .step = (uint32_t)model_steps,
	                                     .thread = (uint8_t)model_thread};
	l->last = store_count++;
	write_raw(l->address, l->size, value);
	for (uintptr_t key = (uintptr_t)l->address / GRAIN; key * GRAIN < (uintptr_t)l->address + l->size; key++)
		note_written(granule_at(key));
}

/* -- races -------------------------------------------------------------------------------------------------------------------- */

static int known(unsigned thread, uint32_t clock)
{
	return clock <= now[model_thread].clock[thread];
}

static void check_writer(const struct granule *granule, uint8_t mask, const void *address, const char *what)
{
	char text[32];

	if ((granule->write_mask & mask) != 0 && granule->write_thread != model_thread &&
	    !known(granule->write_thread, granule->write_clock))
		model_fail("data race: %s of %s and a plain write by thread %u", what, heap_name(address, text),
		           granule->write_thread);
}

static void check_readers(const struct granule *granule, uint8_t mask, const void *address, const char *what)
{
	char text[32];

	for (unsigned others = granule->readers & ~(1u << model_thread); others != 0; others &= others - 1) {
		unsigned t = (unsigned)__builtin_ctz(others);

		if ((granule->read_mask[t] & mask) != 0 && !known(t, granule->read_clock[t]))
			model_fail("data race: %s of %s and a plain read by thread %u", what, heap_name(address, text), t);
	}
}

/* The part of [at, end) in the first granule, as a set of its bytes; *next is where the second begins. */
static inline uint8_t part(uintptr_t at, uintptr_t end, uintptr_t *next)
{
	*next = (at / GRAIN + 1) * GRAIN;
	return (uint8_t)(((1u << ((*next < end ? *next : end) - at)) - 1) << at % GRAIN);
}

/* A plain access of a place that has been accessed atomically. */
static void check_atomics(struct granule *granule, uintptr_t address, size_t size, int is_write)
{
	char text[32];

	for (uint32_t i = granule->location; i != 0; i = locations[i - 1].next) {
		struct location *l = &locations[i - 1];

		if (l->address == NULL || (uintptr_t)l->address >= address + size || address >= (uintptr_t)l->address + l->size)
			continue;
		for (unsigned t = 0; t < THREADS; t++) {
			if (t != model_thread && !known(t, is_write ? l->atomic_clock[t] : l->written_clock[t]))
				model_fail("data race: a plain %s of %s and an atomic access by thread %u", is_write ? "write" : "read",
				           heap_name(l->address, text), t);
		}
		if (is_write) /* initialization anew: the history begins again */
			l->address = NULL;
	}
}

static void plain(struct granule *granule, uint8_t mask, const void *address, int is_write)
{
	uint32_t clock = now[model_thread].clock[model_thread];

	check_writer(granule, mask, address, is_write ? "a plain write" : "a plain read");
	/*
	 * Of accesses of different bytes those at the last one's clock count, and of writes those of the last thread. The others are known to
	 * be older, so nothing is reported wrongly.
	 */
	if (!is_write) {
		mask |= granule->read_clock[model_thread] == clock ? granule->read_mask[model_thread] : 0;
		granule->readers |= (uint8_t)(1u << model_thread);
		granule->read_mask[model_thread] = mask;
		granule->read_clock[model_thread] = clock;
		return;
	}
	check_readers(granule, mask, address, "a plain write");
	mask |= granule->write_thread == model_thread && granule->write_clock == clock ? granule->write_mask : 0;
	granule->write_mask = mask;
	granule->write_thread = (uint8_t)model_thread;
	granule->write_clock = clock;
	note_written(granule);
}

void memory_plain(const void *address, size_t size, int is_write)
{
	uintptr_t end = (uintptr_t)address + size, next;

	if (!model_active || system_is_local(address))
		return;
	heap_check(address, is_write ? "a plain write" : "a plain read");
	if (!model_running && !is_write)
		return; /* before or after all threads: nobody to race with */
	for (uintptr_t at = (uintptr_t)address; at < end; at = next) {
		struct granule *granule = granule_at(at / GRAIN);
		uint8_t mask = part(at, end, &next);

		note_use(granule, is_write ? PLAIN_WRITE : PLAIN_READ);
		plain(granule, mask, (const void *)at, is_write);
		if (granule->location != 0)
			check_atomics(granule, (uintptr_t)address, size, is_write);
	}
}

void memory_forget(const void *address, size_t size)
{
	uintptr_t end = (uintptr_t)address + size, next;

	for (uintptr_t at = (uintptr_t)address; at < end; at = next) {
		struct granule *granule = granule_at(at / GRAIN);

		for (uint32_t i = granule->location; i != 0; i = locations[i - 1].next)
			locations[i - 1].address = NULL;
		granule->location = 0;
		/* Whoever does not know of the allocation may as well look at what was here before, and that is freed. */
		granule->write_mask = part(at, end, &next);
		granule->write_thread = (uint8_t)model_thread;
		granule->write_clock = now[model_thread].clock[model_thread];
		granule->readers = 0;
		memset(granule->read_mask, 0, sizeof(granule->read_mask));
		note_use(granule, PLAIN_WRITE);
		note_written(granule);
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

/* Where an access lies in its location. */
struct span {
	uint32_t location;
	unsigned shift;
	value_t mask;
};

static value_t part_of(const struct span *span, value_t whole)
{
	return whole >> span->shift & span->mask;
}

static struct span arrive(char *address, size_t size, enum kind kind, enum order order, enum order failure)
{
	unsigned me = model_thread;
	struct location *l;
	struct span span;
	uintptr_t end = (uintptr_t)address + size, next;

	heap_check(address, "an atomic access");
	if (model_running) {
		span.location = memory_location(address, size);
		model_schedule(&(struct operation){kind, order, failure, locations[span.location].address, span.location});
		/* The address may have been freed, and its location forgotten, while others ran. */
		heap_check(address, "an atomic access");
	}
	span.location = memory_location(address, size);
	for (uintptr_t at = (uintptr_t)address; at < end; at = next) {
		struct granule *granule = granule_at(at / GRAIN);
		uint8_t mask = part(at, end, &next);

		note_use(granule, kind != OP_LOAD ? ATOMIC_WRITE : ATOMIC_READ);
		check_writer(granule, mask, (const void *)at, "an atomic access");
		if (kind != OP_LOAD)
			check_readers(granule, mask, (const void *)at, "an atomic write");
	}
	l = &locations[span.location];
	l->atomic_clock[me] = now[me].clock[me];
	if (kind != OP_LOAD)
		l->written_clock[me] = now[me].clock[me];
	span.shift = (unsigned)(address - l->address) * 8;
	span.mask = size == 16 ? ~(value_t)0 : ((value_t)1 << size * 8) - 1;
	return span;
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

/* The number of the oldest store that this thread may read. */
static uint32_t oldest_readable(uint32_t location, enum order order)
{
	uint32_t oldest = view_get(&now[model_thread], location), obliged = view_get(&in_s, location);

	return order == SEQ_CST && obliged > oldest ? obliged : oldest;
}

static void note_stale(uint32_t location, const struct store *store)
{
	uint8_t times = stale[location][model_thread].times;

	if (store->number == locations[location].number)
		times = 0;
	else
		times = times != 0 && stale[location][model_thread].number == store->number ? (uint8_t)(times + 1) : 1;
	stale[location][model_thread].times = times;
	stale[location][model_thread].number = store->number;
}

/* The index of the store that is read, of those from number `oldest` on. */
static uint32_t choose_store(uint32_t location, uint32_t oldest)
{
	unsigned me = model_thread;
	uint32_t i = locations[location].last, fresh = model_threads[me].fresh;

	if (!model_running)
		return i;
	if (fresh > oldest)
		oldest = fresh < locations[location].number ? fresh : locations[location].number;
	if (stale[location][me].times >= STALE_READS && stale[location][me].number >= oldest)
		oldest = stale[location][me].number + 1;
	for (uint32_t back = explore_value(locations[location].number - oldest + 1); back != 0; back--)
		i = stores[i].previous;
	note_stale(location, &stores[i]);
	return i;
}

static void trace_read(const char *what, const void *address, const struct span *span, const struct store *store)
{
	char text[32];

	if (!trace_on)
		return;
	if (store->node == 0)
		trace_step("%s %s = %llx, the first", what, heap_name(address, text),
		           (unsigned long long)part_of(span, store->value));
	else
		trace_step("%s %s = %llx of %u at %u%s", what, heap_name(address, text),
		           (unsigned long long)part_of(span, store->value), store->thread, store->step,
		           store->number < locations[span->location].number ? ", stale" : "");
}

static void trace_write(const char *what, const void *address, value_t value)
{
	char text[32];

	if (trace_on)
		trace_step("%s %s <- %llx", what, heap_name(address, text), (unsigned long long)value);
}

value_t memory_load(void *address, size_t size, enum order order)
{
	if (system_is_constant(address))
		return read_raw(address, size);

	struct span span = arrive(address, size, OP_LOAD, order, order);
	const struct store *store = &stores[choose_store(span.location, oldest_readable(span.location, order))];

	if (model_running)
		explore_reads_from(store->node);
	take(store, span.location, order);
	trace_read("load", address, &span, store);
	return part_of(&span, store->value);
}

/* The whole with this access's part replaced. */
static value_t replaced(const struct span *span, value_t whole, value_t value)
{
	return (whole & ~(span->mask << span->shift)) | (value & span->mask) << span->shift;
}

static void put(uint32_t location, value_t whole, enum order order, uint32_t continued)
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
	append(location, whole, view);
	mine->clock[model_thread]++; /* what comes after the store is not released by it */
	if (order == SEQ_CST)
		view_set(&in_s, location, locations[location].number);
}

void memory_store(void *address, size_t size, value_t value, enum order order)
{
	struct span span = arrive(address, size, OP_STORE, order, order);

	put(span.location, replaced(&span, stores[locations[span.location].last].value, value), order, 0);
	trace_write("store", address, value);
}

/* Is there a store, older than the last, that this thread may read and that would let its CAS succeed? */
static int could_succeed(const struct span *span, uint32_t oldest, value_t expected)
{
	uint32_t i = locations[span->location].last;

	while (stores[i].number > oldest) {
		i = stores[i].previous;
		if (part_of(span, stores[i].value) == expected)
			return 1;
	}
	return 0;
}

int memory_cas(void *address, size_t size, value_t expected, value_t desired, enum order success, enum order failure,
               value_t *old)
{
	struct span span = arrive(address, size, OP_CAS, success, failure);
	struct location *l = &locations[span.location];
	uint32_t oldest = oldest_readable(span.location, failure), i = choose_store(span.location, oldest);
	const struct store *store = &stores[i];

	expected &= span.mask;
	/*
	 * A failing CAS is a load and may read an older store, if that is not what was expected. If it is, then reading it would make
	 * the CAS succeed, which reads the last one.
	 */
	if (i != l->last && part_of(&span, store->value) == expected)
		store = &stores[l->last];
	*old = part_of(&span, store->value);
	if (*old != expected) {
		if (model_running && could_succeed(&span, oldest, expected))
			explore_cas_could_succeed();
		if (model_running)
			explore_reads_from(store->node);
		take(store, span.location, failure);
		trace_read("failed cas", address, &span, store);
		return 0;
	}
	if (model_running)
		explore_cas_succeeds();
	l->written_clock[model_thread] = now[model_thread].clock[model_thread];
	take(store, span.location, success);
	trace_read("cas", address, &span, store);
	put(span.location, replaced(&span, store->value, desired), success, store->view);
	trace_write("...", address, desired & span.mask);
	return 1;
}

value_t memory_update(void *address, size_t size, value_t (*update)(value_t, value_t), value_t operand,
                      enum order order)
{
	struct span span = arrive(address, size, OP_RMW, order, order);
	const struct store *last = &stores[locations[span.location].last];
	value_t old = part_of(&span, last->value), value = update(old, operand) & span.mask;

	take(last, span.location, order);
	trace_read("rmw", address, &span, last);
	put(span.location, replaced(&span, last->value, value), order, last->view);
	trace_write("...", address, value);
	return old;
}

void memory_observe(uint32_t location)
{
	note_use(granule_at((uintptr_t)locations[location].address / GRAIN), ATOMIC_READ);
	view_set(&now[model_thread], location, locations[location].number);
}

static void seq_cst_fence(unsigned thread)
{
	view_join(&now[thread], &pending[thread]);
	view_join_stores(&in_s, &now[thread]);
	view_join_stores(&now[thread], &in_s);
	view_copy(&released[thread], &now[thread]);
	has_released[thread] = 1;
	now[thread].clock[thread]++;
}

void memory_fence(enum order order)
{
	unsigned me = model_thread;

	if (order == SEQ_CST) {
		/* The other kinds concern this thread's view only; this one has a place in S. */
		model_schedule(&(struct operation){.kind = OP_FENCE, .order = order});
		trace_step("fence");
		seq_cst_fence(me);
		return;
	}
	if (acquires(order))
		view_join(&now[me], &pending[me]);
	if (releases(order)) {
		view_copy(&released[me], &now[me]);
		has_released[me] = 1;
		now[me].clock[me]++;
	}
}

void memory_heavy_fence(void)
{
	explore_meets_membarrier();
	model_schedule(&(struct operation){.kind = OP_HEAVY, .order = SEQ_CST});
	trace_step("membarrier");
	/* Ours, theirs, ours: what they stored we see, what we stored they see. */
	for (int round = 0; round < 2; round++) {
		for (unsigned t = 0; t <= model_program->threads; t++)
			seq_cst_fence(t);
	}
}

/* -- the state ---------------------------------------------------------------------------------------------------------------- */

/*
 * What of the memory may matter from here on, as a number. What nobody can tell any more is left out: stores that no thread may
 * read, what views know of them, and how often a clock has ticked between two accesses that a race could be with.
 *
 * Who may read a location, and whose accesses a race could be with, is what threads have done in the executions so far. That a thread
 * does not know of a store, or of an access, is nothing to it where it never looks; what it knows it may still pass on, which changes
 * nothing for those who all know it. Were two states taken for one, and only from the second could a thread come to a place where it was
 * not known to come: then it could from the first, as they differ in nothing that it sees until then; where an execution on the way
 * there ends at a third state that is taken for its own, the rest of the way goes on from that one, and gets shorter each time; and
 * when the thread comes there, the search begins again.
 */
enum { STAMPS = 64 };

static struct {
	uint32_t known; /* accesses up to this clock are known to all others */
	uint32_t count; /* STAMPS: too many, clocks count as they are */
	uint32_t clock[STAMPS];
} stamps[THREADS];

static uint32_t bound[LOCATIONS];      /* the oldest store that some thread may read */
static uint32_t telling[GRANULES / 2]; /* indices of granules that may be part of the state */
static uint32_t telling_count;
static unsigned going; /* threads that may do something, as a set */

static int goes_on(unsigned thread)
{
	/* A membarrier asks also those that have ended. */
	return model_threads[thread].status != ENDED || explore_has_membarrier();
}

static void find_bound(uint32_t location)
{
	const struct uses *uses = &locations[location].uses;
	unsigned left = going & (uses->did[ATOMIC_READ] | uses->did[ATOMIC_WRITE]);

	bound[location] = locations[location].number;
	for (; left != 0; left &= left - 1) {
		uint32_t oldest = view_get(&now[__builtin_ctz(left)], location);

		bound[location] = oldest < bound[location] ? oldest : bound[location];
	}
}

/* Up to which clock accesses by `thread` are known to all others of a set. */
static uint32_t known_to(unsigned set, unsigned thread)
{
	uint32_t known_to_all = UINT32_MAX;

	for (unsigned left = set & going & ~(1u << thread); left != 0; left &= left - 1) {
		uint32_t clock = now[__builtin_ctz(left)].clock[thread];

		known_to_all = clock < known_to_all ? clock : known_to_all;
	}
	return known_to_all;
}

static void find_bounds(void)
{
	going = 0;
	for (unsigned t = 1; t <= model_program->threads; t++)
		going |= goes_on(t) ? 1u << t : 0u;
	for (uint32_t i = 0; i < location_count; i++)
		find_bound(i);
	for (unsigned t = 1; t <= model_program->threads; t++) {
		stamps[t].count = 0;
		stamps[t].known = known_to(going, t);
	}
}

/* Who may race with such an access, as a set. */
static unsigned rivals(const struct uses *of, unsigned use)
{
	switch (use) {
	case PLAIN_READ: return of->did[PLAIN_WRITE] | of->did[ATOMIC_WRITE];
	case PLAIN_WRITE: return of->did[PLAIN_READ] | of->did[PLAIN_WRITE] | of->did[ATOMIC_READ] | of->did[ATOMIC_WRITE];
	case ATOMIC_READ: return of->did[PLAIN_WRITE];
	default: return of->did[PLAIN_READ] | of->did[PLAIN_WRITE];
	}
}

static int may_race(unsigned thread, uint32_t clock, unsigned with)
{
	return thread != 0 && clock > stamps[thread].known && clock > known_to(with, thread);
}

/* Keeps the clocks in order. */
static void add_stamp(unsigned thread, uint32_t clock, unsigned with)
{
	uint32_t at = stamps[thread].count, *clocks = stamps[thread].clock;

	if (at == STAMPS || !may_race(thread, clock, with))
		return;
	for (uint32_t i = 0; i < at; i++) {
		if (clocks[i] == clock)
			return;
	}
	for (; at > 0 && clocks[at - 1] > clock; at--)
		clocks[at] = clocks[at - 1];
	clocks[at] = clock;
	stamps[thread].count++;
}

/* How many of the accesses that matter are known to who knows `clock`. */
static uint32_t rank(unsigned thread, uint32_t clock)
{
	uint32_t at = 0;

	if (stamps[thread].count == STAMPS)
		return clock;
	while (at < stamps[thread].count && stamps[thread].clock[at] <= clock)
		at++;
	return at;
}

static void add_stamps(void)
{
	for (uint32_t i = 0; i < location_count; i++) {
		unsigned with_atomic = rivals(&locations[i].uses, ATOMIC_READ),
				 with_write = rivals(&locations[i].uses, ATOMIC_WRITE);

		for (unsigned t = 1; locations[i].address != NULL && t <= model_program->threads; t++) {
			add_stamp(t, locations[i].atomic_clock[t], with_atomic);
			add_stamp(t, locations[i].written_clock[t], with_write);
		}
	}
	telling_count = 0;
	for (uint32_t i = 0; i < granule_count; i++) {
		const struct granule *granule = &granules[used_granules[i]];
		const struct uses *of = &users[granule->users].uses;
		unsigned with_read = rivals(of, PLAIN_READ), with_write = rivals(of, PLAIN_WRITE);

		if (!granule->written && with_read == 0)
			continue;
		telling[telling_count++] = used_granules[i];
		if (granule->write_mask != 0)
			add_stamp(granule->write_thread, granule->write_clock, with_write);
		for (unsigned left = granule->readers; left != 0; left &= left - 1)
			add_stamp((unsigned)__builtin_ctz(left), granule->read_clock[__builtin_ctz(left)], with_read);
	}
}

static uint64_t stores_of_view(const struct view *view)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < view->count; i++) {
		if (view->oldest[i] > bound[i] && locations[i].address != NULL)
			sum += state_mix(locations[i].key, view->oldest[i] - bound[i]);
	}
	return sum;
}

static uint64_t clocks_of_view(const struct view *view)
{
	uint64_t sum = 0;

	for (unsigned t = 1; t <= model_program->threads; t++)
		sum += state_mix(t, rank(t, view->clock[t]));
	return sum;
}

/* What is known of stores, and of accesses, as parts of the state. */
static uint64_t state_of_view(const struct view *view, enum state_part of_stores, enum state_part of_accesses)
{
	return state_part(of_stores, stores_of_view(view)) + state_part(of_accesses, clocks_of_view(view));
}

/* What is known after an acquire fence. */
static uint64_t state_of_pending(unsigned thread)
{
	static struct view sum;

	view_copy(&sum, &pending[thread]);
	view_join(&sum, &now[thread]);
	return state_of_view(&sum, STATE_PENDING, STATE_PENDING);
}

static uint64_t state_of_access(uint64_t state, unsigned thread, uint32_t clock, unsigned what, unsigned with)
{
	if (!may_race(thread, clock, with))
		return state;
	return state_mix(state, state_part(STATE_ACCESSES, (uint64_t)rank(thread, clock) << 32 | thread << 16 | what));
}

static uint64_t state_of_granule(const struct granule *granule)
{
	const uint64_t key = state_mix(2, granule->key);
	const struct uses *of = &users[granule->users].uses;
	uint64_t state = key;

	if (granule->written && fiber_of((const char *)(granule->key * GRAIN)) < 0)
		state = state_mix(state, state_part(STATE_MEMORY, *(const uint32_t *)(granule->key * GRAIN)));
	if (granule->write_mask != 0)
		state = state_of_access(state, granule->write_thread, granule->write_clock, granule->write_mask,
		                        rivals(of, PLAIN_WRITE));
	for (unsigned left = granule->readers; left != 0; left &= left - 1) {
		unsigned t = (unsigned)__builtin_ctz(left);

		state = state_of_access(state, t, granule->read_clock[t], 256u + granule->read_mask[t], rivals(of, PLAIN_READ));
	}
	return state != key ? state : 0;
}

static uint64_t state_of_location(uint32_t location)
{
	const struct location *l = &locations[location];
	uint64_t state = l->key;

	for (unsigned t = 1; t <= model_program->threads; t++) {
		state = state_of_access(state, t, l->atomic_clock[t], 1, rivals(&l->uses, ATOMIC_READ));
		state = state_of_access(state, t, l->written_clock[t], 2, rivals(&l->uses, ATOMIC_WRITE));
		if (model_threads[t].as_one && model_threads[t].status != ENDED && stale[location][t].times != 0 &&
		    stale[location][t].number >= bound[location])
			state = state_mix(state, (uint64_t)(stale[location][t].number - bound[location]) << 32 |
			                             (uint64_t)stale[location][t].times << 8 | t);
	}
	if (l->number == bound[location] && stores[l->last].view == 0 && state == l->key)
		return 0; /* as if it had not been accessed: its value is in the memory */
	for (uint32_t i = l->last;; i = stores[i].previous) {
		uint64_t value = state_mix((uint64_t)stores[i].value, (uint64_t)(stores[i].value >> 64));
		uint64_t view =
			stores[i].view != 0 ? state_of_view(&views[stores[i].view - 1], STATE_STORES, STATE_STORES_CLOCKS) : 0;

		state = state_mix(state, state_part(i == l->last ? STATE_MEMORY : STATE_HISTORIES, value));
		state = state_mix(state, view);
		if (stores[i].number <= bound[location])
			return state;
	}
}

uint64_t memory_state(void)
{
	uint64_t state = 0;

	find_bounds();
	add_stamps();
	for (uint32_t i = 0; i < telling_count; i++)
		state += state_of_granule(&granules[telling[i]]);
	for (uint32_t i = 0; i < location_count; i++)
		state += locations[i].address != NULL ? state_of_location(i) : 0;
	for (unsigned t = 1; t <= model_program->threads; t++) {
		if (!goes_on(t))
			continue;
		state += state_mix(t, state_of_view(&now[t], STATE_VIEWS, STATE_VIEWS_CLOCKS));
		state += state_mix(t + 100, state_of_pending(t));
		if (has_released[t])
			state += state_part(STATE_RELEASED,
			                    state_mix(t + 200, state_of_view(&released[t], STATE_RELEASED, STATE_RELEASED)));
	}
	return state + state_mix(3, state_part(STATE_S, stores_of_view(&in_s)));
}

void memory_forget_stale_reads(unsigned t)
{
	for (uint32_t i = 0; i < location_count; i++)
		stale[i][t].times = 0;
}

/* -- checkpoints -------------------------------------------------------------------------------------------------------------- */

static void view_part(struct checkpoint *checkpoint, struct view *view)
{
	checkpoint_part(checkpoint, view, offsetof(struct view, oldest));
	checkpoint_part(checkpoint, view->oldest, view->count * sizeof(view->oldest[0]));
}

static void parts_of_threads(struct checkpoint *checkpoint)
{
	checkpoint_part(checkpoint, has_released, sizeof(has_released));
	view_part(checkpoint, &in_s);
	for (unsigned t = 0; t <= model_program->threads; t++) {
		view_part(checkpoint, &now[t]);
		view_part(checkpoint, &pending[t]);
		if (has_released[t])
			view_part(checkpoint, &released[t]);
	}
}

/* Going back, the granules that came last are taken out of the table again: as if they had not been put there. */
static void parts_of_granules(struct checkpoint *checkpoint)
{
	uint32_t count = granule_count;

	checkpoint_part(checkpoint, &granule_count, sizeof(granule_count));
	for (uint32_t i = granule_count; i < count; i++)
		granules[used_granules[i]].generation = 0;
	for (uint32_t i = 0; i < granule_count; i++)
		checkpoint_part(checkpoint, &granules[used_granules[i]], sizeof(granules[0]));
}

static void parts_that_are_written(struct checkpoint *checkpoint)
{
	uint32_t count = written_count;

	checkpoint_part(checkpoint, &written_count, sizeof(written_count));
	for (uint32_t i = written_count; i < count; i++)
		heap_put_back((char *)(written[i] * GRAIN));
	for (uint32_t i = 0; i < written_count; i++)
		checkpoint_part(checkpoint, (char *)(written[i] * GRAIN), GRAIN);
}

/* Stores, the views they carry, and the lists of granules only grow: their counts are enough. */
void memory_parts(struct checkpoint *checkpoint)
{
	checkpoint_part(checkpoint, &store_count, sizeof(store_count));
	checkpoint_part(checkpoint, &view_count, sizeof(view_count));
	checkpoint_part(checkpoint, &location_count, sizeof(location_count));
	checkpoint_part(checkpoint, locations, location_count * sizeof(locations[0]));
	checkpoint_part(checkpoint, stale, location_count * sizeof(stale[0]));
	parts_of_threads(checkpoint);
	parts_of_granules(checkpoint);
	parts_that_are_written(checkpoint);
}
