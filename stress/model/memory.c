/*
 * memory.c - the memory that the program under test accesses: histories, views, races.
 *
 * A store is appended to its location's history. A store carries the writer's view if it releases,
 * if it follows a release fence, or if it continues a release sequence by a read-modify-write. A
 * load may return any store from the thread's own lower bound on. An acquire load joins the view of
 * the store that it reads. A read-modify-write reads the last store.
 *
 * seq_cst: the order of execution is the order S. One view, the view of S, collects the seq_cst
 * stores and the stores that threads had seen at their seq_cst fences. A seq_cst load returns no
 * store older than those in the view of S, and a seq_cst fence joins that view. It carries no
 * happens-before: plain accesses on both sides of two fences still race, unless a load reads from a
 * store.
 *
 * A view holds, for each location, the oldest store that may still be read, and, for each thread,
 * the clock up to which its plain accesses are known.
 *
 * Mixed sizes. A location that is ever accessed by sixteen bytes is one location, also for accesses
 * to its halves. A half load returns a part of some store of the whole. A half store or
 * compare-and-swap stores the whole, with the other half unchanged. This is how x86-64 behaves,
 * where both are ordered by the cache line (lib/weir/ring/ltq16.c); ISO C leaves it undefined.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/checkpoint.h"
#include "model/memory.h"

enum { WIDE = 64 };

struct location memory_locations[LOCATIONS];
uint32_t memory_location_count;
struct store memory_stores[STORES];
static uint32_t store_count;
struct view memory_views[VIEWS];
static uint32_t view_count;
struct granule memory_granules[GRANULES];
uint32_t memory_used_granules[GRANULES / 2];
uint32_t memory_granule_count;
static uint32_t generation = 1;
static uintptr_t written[GRANULES]; /* keys */
static uint32_t written_count;
struct users memory_users[GRANULES + 1];
static uint16_t users_at[2 * GRANULES]; /* by hash of the key: index; 0: none */
static uint32_t users_count;
static int users_learned;      /* 1 if something was learned in this execution */
static const char *wide[WIDE]; /* locations of sixteen bytes; kept for the whole search */
static uint32_t wide_count;
struct stale memory_stale[LOCATIONS][THREADS];
struct view memory_now[THREADS], memory_pending[THREADS], memory_released[THREADS], memory_in_s;
int memory_has_released[THREADS];

void memory_begin(void)
{
	wide_count = users_count = 0;
	memset(users_at, 0, sizeof(users_at));
}

void memory_reset(void)
{
	generation++;
	memory_location_count = store_count = view_count = written_count = memory_granule_count = 0;
	users_learned = 0;
	for (unsigned t = 0; t <= model_program->threads; t++) {
		view_clear(&memory_now[t]);
		view_clear(&memory_pending[t]);
		memory_has_released[t] = 0;
	}
	view_clear(&memory_in_s);
	memory_now[0].clock[0] = 1;
}

void memory_thread_starts(unsigned thread)
{
	view_copy(&memory_now[thread], &memory_now[0]);
	memory_now[thread].clock[thread] = 1;
}

void memory_all_join(void)
{
	for (unsigned t = 1; t <= model_program->threads; t++)
		view_join(&memory_now[0], &memory_now[t]);
	memory_now[0].clock[0]++;
}

/* -- granules ---------------------------------------------------------------------------------- */

static struct granule *new_granule(struct granule *granule, uintptr_t key)
{
	if (++memory_granule_count > GRANULES / 2)
		model_fail("more than %d bytes are accessed in one execution", GRANULES / 2 * GRAIN);
	memory_used_granules[memory_granule_count - 1] = (uint32_t)(granule - memory_granules);
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

	while (memory_granules[slot].generation == generation && memory_granules[slot].key != key)
		slot = (slot + 1) % GRANULES;
	return memory_granules[slot].generation == generation ? &memory_granules[slot]
	                                                      : new_granule(&memory_granules[slot], key);
}

static inline void note_written(struct granule *granule)
{
	const char *address = (const char *)(granule->key * GRAIN);

	state_forgets(address);
	if (granule->written)
		return;
	granule->written = 1;
	written[written_count++] = granule->key;
	if (model_running && heap_extent(address) == 0 && fiber_of(address) < 0)
		checkpoint_rule_out();
}

/*
 * Returns the index of the threads that use a granule, as learned during the search. States leave
 * out what no thread uses (memory_state.c). When more is learned, the search begins again.
 */
static uint16_t users_of(uintptr_t key)
{
	uint32_t slot = 2 * place_of(key);

	while (users_at[slot] != 0 && memory_users[users_at[slot]].key != key)
		slot = (slot + 1) % (2 * GRANULES);
	if (users_at[slot] == 0) {
		if (users_count == GRANULES)
			model_fail("more than %d bytes are accessed in a search", GRANULES * GRAIN);
		memory_users[++users_count] = (struct users){.key = key};
		users_at[slot] = (uint16_t)users_count;
	}
	return users_at[slot];
}

/* What one of several identical threads does, the other threads will also do. */
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
	did = &memory_users[granule->users].uses.did[use];
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

/* -- locations --------------------------------------------------------------------------------- */

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
	struct location *l = &memory_locations[memory_location_count];

	if (memory_location_count == LOCATIONS)
		model_fail("more than %d atomic locations", LOCATIONS);
	memset(l, 0, sizeof(*l));
	l->address = address;
	l->size = (uint32_t)size;
	l->last = store_count;
	l->key = state_mix(1, (uint64_t)(uintptr_t)address);
	memset(memory_stale[memory_location_count], 0, sizeof(memory_stale[0]));
	for (uintptr_t key = (uintptr_t)address / GRAIN; key * GRAIN < (uintptr_t)address + size; key++) {
		struct granule *granule = granule_at(key);

		l->next = granule->location;
		granule->location = memory_location_count + 1;
		if (model_options.merge_states)
			add_uses(&l->uses, &memory_users[users_of(key)].uses);
	}
	/*
	 * The value that the memory holds is its first store. The race check orders it against the
	 * plain writes that made it.
	 */
	memory_stores[store_count++] = (struct store){.value = read_raw(address, size)};
	return memory_location_count++;
}

uint32_t memory_location(const void *pointer, size_t size)
{
	char *address = (char *)(uintptr_t)pointer, *whole = (char *)((uintptr_t)pointer & ~(uintptr_t)15);
	uint32_t i = granule_at((uintptr_t)address / GRAIN)->location;

	for (; i != 0; i = memory_locations[i - 1].next) {
		const struct location *l = &memory_locations[i - 1];

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
	return memory_locations[location].number;
}

static void append(uint32_t location, value_t value, uint32_t view)
{
	struct location *l = &memory_locations[location];

	if (store_count == STORES)
		model_fail("more than %d stores in one execution", STORES);
	memory_stores[store_count] = (struct store){.value = value,
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

/* -- races ------------------------------------------------------------------------------------- */

static int known(unsigned thread, uint32_t clock)
{
	return clock <= memory_now[model_thread].clock[thread];
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

/*
 * Returns the part of [at, end) in the first granule, as a set of its bytes. *next is where the
 * second granule begins.
 */
static inline uint8_t part(uintptr_t at, uintptr_t end, uintptr_t *next)
{
	*next = (at / GRAIN + 1) * GRAIN;
	return (uint8_t)(((1u << ((*next < end ? *next : end) - at)) - 1) << at % GRAIN);
}

/* Checks a plain access to a place that was accessed atomically. */
static void check_atomics(struct granule *granule, uintptr_t address, size_t size, int is_write)
{
	char text[32];

	for (uint32_t i = granule->location; i != 0; i = memory_locations[i - 1].next) {
		struct location *l = &memory_locations[i - 1];

		if (l->address == NULL || (uintptr_t)l->address >= address + size || address >= (uintptr_t)l->address + l->size)
			continue;
		for (unsigned t = 0; t < THREADS; t++) {
			if (t != model_thread && !known(t, is_write ? l->atomic_clock[t] : l->written_clock[t]))
				model_fail("data race: a plain %s of %s and an atomic access by thread %u", is_write ? "write" : "read",
				           heap_name(l->address, text), t);
		}
		if (is_write) /* It is initialized again, so the history starts over. */
			l->address = NULL;
	}
}

static void plain(struct granule *granule, uint8_t mask, const void *address, int is_write)
{
	uint32_t clock = memory_now[model_thread].clock[model_thread];

	check_writer(granule, mask, address, is_write ? "a plain write" : "a plain read");
	/*
	 * A granule remembers the reads of each thread at the clock of its last read, and the writes of
	 * the last writing thread at the clock of its last write. Earlier accesses to other bytes are
	 * forgotten. A race with them is not reported, but no false race is.
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
		return; /* before or after all threads, there is no thread to race with */
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

		for (uint32_t i = granule->location; i != 0; i = memory_locations[i - 1].next)
			memory_locations[i - 1].address = NULL;
		granule->location = 0;
		/*
		 * The allocation counts as a write. A thread that does not know of it may still use the
		 * freed object that was here before, and then races.
		 */
		granule->write_mask = part(at, end, &next);
		granule->write_thread = (uint8_t)model_thread;
		granule->write_clock = memory_now[model_thread].clock[model_thread];
		granule->readers = 0;
		memset(granule->read_mask, 0, sizeof(granule->read_mask));
		note_use(granule, PLAIN_WRITE);
		note_written(granule);
	}
}

/* -- accesses ---------------------------------------------------------------------------------- */

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
	view_copy(&memory_views[view_count], view);
	return ++view_count;
}

/* The place of an access in its location. */
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

	model_may_be_interrupted();
	heap_check(address, "an atomic access");
	if (model_running) {
		span.location = memory_location(address, size);
		model_schedule(
			&(struct operation){kind, order, failure, memory_locations[span.location].address, span.location});
		/* The address may have been freed, and its location forgotten, while other threads ran. */
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
	l = &memory_locations[span.location];
	l->atomic_clock[me] = memory_now[me].clock[me];
	if (kind != OP_LOAD)
		l->written_clock[me] = memory_now[me].clock[me];
	span.shift = (unsigned)(address - l->address) * 8;
	span.mask = size == 16 ? ~(value_t)0 : ((value_t)1 << size * 8) - 1;
	return span;
}

static void take(const struct store *store, uint32_t location, enum order order)
{
	view_set(&memory_now[model_thread], location, store->number);
	if (store->view == 0)
		return;
	if (acquires(order))
		view_join(&memory_now[model_thread], &memory_views[store->view - 1]);
	else
		view_join(&memory_pending[model_thread], &memory_views[store->view - 1]);
}

/* The number of the oldest store that this thread may read. */
static uint32_t oldest_readable(uint32_t location, enum order order)
{
	uint32_t oldest = view_get(&memory_now[model_thread], location), obliged = view_get(&memory_in_s, location);

	return order == SEQ_CST && obliged > oldest ? obliged : oldest;
}

static void note_stale(uint32_t location, const struct store *store)
{
	uint8_t times = memory_stale[location][model_thread].times;

	if (store->number == memory_locations[location].number)
		times = 0;
	else
		times = times != 0 && memory_stale[location][model_thread].number == store->number ? (uint8_t)(times + 1) : 1;
	memory_stale[location][model_thread].times = times;
	memory_stale[location][model_thread].number = store->number;
}

/* Returns the index of the store that is read, which is one of those from number `oldest` on. */
static uint32_t choose_store(uint32_t location, uint32_t oldest)
{
	unsigned me = model_thread;
	uint32_t i = memory_locations[location].last, fresh = model_threads[me].fresh;

	if (!model_running)
		return i;
	if (fresh > oldest)
		oldest = fresh < memory_locations[location].number ? fresh : memory_locations[location].number;
	if (memory_stale[location][me].times >= STALE_READS && memory_stale[location][me].number >= oldest)
		oldest = memory_stale[location][me].number + 1;
	for (uint32_t back = explore_value(memory_locations[location].number - oldest + 1); back != 0; back--)
		i = memory_stores[i].previous;
	note_stale(location, &memory_stores[i]);
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
		           store->number < memory_locations[span->location].number ? ", stale" : "");
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
	const struct store *store = &memory_stores[choose_store(span.location, oldest_readable(span.location, order))];

	if (model_running)
		explore_reads_from(store->node);
	take(store, span.location, order);
	trace_read("load", address, &span, store);
	return part_of(&span, store->value);
}

/* Returns the whole value, with the part of this access replaced. */
static value_t replaced(const struct span *span, value_t whole, value_t value)
{
	return (whole & ~(span->mask << span->shift)) | (value & span->mask) << span->shift;
}

/* Returns 1, with states merged, if no other thread has accessed it in any execution so far. */
static int is_mine(uint32_t location)
{
	const uint8_t *did = memory_locations[location].uses.did;
	unsigned users = did[PLAIN_READ] | did[PLAIN_WRITE] | did[ATOMIC_READ] | did[ATOMIC_WRITE];

	return model_running && model_options.merge_states && (users & ~(1u << model_thread)) == 0;
}

static void put(uint32_t location, value_t whole, enum order order, uint32_t continued)
{
	struct view *mine = &memory_now[model_thread];
	uint32_t view = 0;

	view_set(mine, location, memory_locations[location].number + 1);
	if (releases(order) || memory_has_released[model_thread] || continued != 0) {
		static struct view sum;

		if (releases(order))
			view_copy(&sum, mine);
		else if (memory_has_released[model_thread])
			view_copy(&sum, &memory_released[model_thread]);
		else
			view_clear(&sum);
		if (continued != 0)
			view_join(&sum, &memory_views[continued - 1]);
		view_set(&sum, location, memory_locations[location].number + 1);
		view = keep_view(&sum);
	}
	append(location, whole, view);
	if (order == SEQ_CST)
		view_set(&memory_in_s, location, memory_locations[location].number);
	/*
	 * The clock advances so that the store does not release accesses after it. It need not advance
	 * if no other thread acquires from the store.
	 */
	if (!is_mine(location) || !explore_goes_unseen())
		mine->clock[model_thread]++;
}

void memory_store(void *address, size_t size, value_t value, enum order order)
{
	struct span span = arrive(address, size, OP_STORE, order, order);

	put(span.location, replaced(&span, memory_stores[memory_locations[span.location].last].value, value), order, 0);
	trace_write("store", address, value);
}

/*
 * Returns 1 if this thread may read a store that is older than the last one and has the value that
 * its CAS expects.
 */
static int could_succeed(const struct span *span, uint32_t oldest, value_t expected)
{
	uint32_t i = memory_locations[span->location].last;

	while (memory_stores[i].number > oldest) {
		i = memory_stores[i].previous;
		if (part_of(span, memory_stores[i].value) == expected)
			return 1;
	}
	return 0;
}

int memory_cas(void *address, size_t size, value_t expected, value_t desired, enum order success, enum order failure,
               value_t *old)
{
	struct span span = arrive(address, size, OP_CAS, success, failure);
	struct location *l = &memory_locations[span.location];
	uint32_t oldest = oldest_readable(span.location, failure), i = choose_store(span.location, oldest);
	const struct store *store = &memory_stores[i];

	expected &= span.mask;
	/*
	 * A failing CAS is a load and may read an older store, unless that store has the expected
	 * value. Reading such a store would make the CAS succeed, and a successful CAS reads the last
	 * store.
	 */
	if (i != l->last && part_of(&span, store->value) == expected)
		store = &memory_stores[l->last];
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
	l->written_clock[model_thread] = memory_now[model_thread].clock[model_thread];
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
	const struct store *last = &memory_stores[memory_locations[span.location].last];
	value_t old = part_of(&span, last->value), value = update(old, operand) & span.mask;

	take(last, span.location, order);
	trace_read("rmw", address, &span, last);
	put(span.location, replaced(&span, last->value, value), order, last->view);
	trace_write("...", address, value);
	return old;
}

void memory_observe(uint32_t location)
{
	note_use(granule_at((uintptr_t)memory_locations[location].address / GRAIN), ATOMIC_READ);
	view_set(&memory_now[model_thread], location, memory_locations[location].number);
}

static void seq_cst_fence(unsigned thread)
{
	view_join(&memory_now[thread], &memory_pending[thread]);
	view_join_stores(&memory_in_s, &memory_now[thread]);
	view_join_stores(&memory_now[thread], &memory_in_s);
	view_copy(&memory_released[thread], &memory_now[thread]);
	memory_has_released[thread] = 1;
	memory_now[thread].clock[thread]++;
}

void memory_fence(enum order order)
{
	unsigned me = model_thread;

	model_may_be_interrupted();
	if (order == SEQ_CST) {
		/* The other kinds affect only this thread's view. This one is part of S. */
		model_schedule(&(struct operation){.kind = OP_FENCE, .order = order});
		trace_step("fence");
		seq_cst_fence(me);
		return;
	}
	if (acquires(order))
		view_join(&memory_now[me], &memory_pending[me]);
	if (releases(order)) {
		view_copy(&memory_released[me], &memory_now[me]);
		memory_has_released[me] = 1;
		memory_now[me].clock[me]++;
	}
}

void memory_heavy_fence(void)
{
	model_may_be_interrupted();
	explore_meets_membarrier();
	model_schedule(&(struct operation){.kind = OP_HEAVY, .order = SEQ_CST});
	trace_step("membarrier");
	/*
	 * Two rounds over all threads: the first collects the view of each thread in the view of S, and
	 * the second gives all of it to each thread.
	 */
	for (int round = 0; round < 2; round++) {
		for (unsigned t = 0; t <= model_program->threads; t++)
			seq_cst_fence(t);
	}
}

void memory_forget_stale_reads(unsigned t)
{
	for (uint32_t i = 0; i < memory_location_count; i++)
		memory_stale[i][t].times = 0;
}

/* -- checkpoints ------------------------------------------------------------------------------- */

static void view_part(struct checkpoint *checkpoint, struct view *view)
{
	checkpoint_part(checkpoint, view, offsetof(struct view, oldest));
	checkpoint_part(checkpoint, view->oldest, view->count * sizeof(view->oldest[0]));
}

static void parts_of_threads(struct checkpoint *checkpoint)
{
	checkpoint_part(checkpoint, memory_has_released, sizeof(memory_has_released));
	view_part(checkpoint, &memory_in_s);
	for (unsigned t = 0; t <= model_program->threads; t++) {
		view_part(checkpoint, &memory_now[t]);
		view_part(checkpoint, &memory_pending[t]);
		if (memory_has_released[t])
			view_part(checkpoint, &memory_released[t]);
	}
}

/* A restore removes the granules that were added after the checkpoint from the table. */
static void parts_of_granules(struct checkpoint *checkpoint)
{
	uint32_t count = memory_granule_count;

	checkpoint_part(checkpoint, &memory_granule_count, sizeof(memory_granule_count));
	for (uint32_t i = memory_granule_count; i < count; i++)
		memory_granules[memory_used_granules[i]].generation = 0;
	for (uint32_t i = 0; i < memory_granule_count; i++)
		checkpoint_part(checkpoint, &memory_granules[memory_used_granules[i]], sizeof(memory_granules[0]));
}

static void parts_that_are_written(struct checkpoint *checkpoint)
{
	uint32_t count = written_count;

	checkpoint_part(checkpoint, &written_count, sizeof(written_count));
	for (uint32_t i = written_count; i < count; i++)
		heap_put_back((char *)(written[i] * GRAIN));
	for (uint32_t i = 0; i < written_count; i++) {
		char *address = (char *)(written[i] * GRAIN);

		checkpoint_part(checkpoint, address, heap_extent(address));
	}
}

/*
 * Stores, the views that they carry, and the lists of granules only grow, so their counts suffice.
 */
void memory_parts(struct checkpoint *checkpoint)
{
	checkpoint_part(checkpoint, &store_count, sizeof(store_count));
	checkpoint_part(checkpoint, &view_count, sizeof(view_count));
	checkpoint_part(checkpoint, &memory_location_count, sizeof(memory_location_count));
	checkpoint_part(checkpoint, memory_locations, memory_location_count * sizeof(memory_locations[0]));
	checkpoint_part(checkpoint, memory_stale, memory_location_count * sizeof(memory_stale[0]));
	parts_of_threads(checkpoint);
	parts_of_granules(checkpoint);
	parts_that_are_written(checkpoint);
}
