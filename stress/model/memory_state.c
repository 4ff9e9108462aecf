/*
 * memory_state.c - the part of a state that memory contributes.
 *
 * The number stands for everything in the memory that may still matter. It leaves out what no
 * thread can notice any longer: stores that no thread may read, what views know of such stores, and
 * how often a clock has ticked between two accesses with which a race is possible.
 *
 * The executions so far tell which threads read a location, and between which threads a race is
 * possible. If a thread never accesses a location, it does not matter what the thread knows of the
 * stores and accesses there. The thread may still pass that knowledge on. This does not matter
 * either, if every thread that does access the location has the knowledge already.
 *
 * Suppose that two states are merged, and that from the second state a thread can come to an access
 * that no execution has shown so far. Then the thread can come to it from the first state as well,
 * because the states differ in nothing that the thread reads before that access. An execution on
 * the way to the access may end at a third state that is merged with its own. The rest of the way
 * then continues from that state, and becomes shorter each time. So some execution comes to the
 * access, and then the search begins again.
 */
#include "model/answers.h"
#include "model/memory.h"

enum { STAMPS = 64 };

static struct {
	uint32_t known; /* accesses up to this clock are known to all others */
	uint32_t count; /* STAMPS: there are too many, and clocks are used as they are */
	uint32_t clock[STAMPS];
} stamps[THREADS];

static uint32_t bound[LOCATIONS];      /* the oldest store that some thread may read */
static uint32_t telling[GRANULES / 2]; /* indices of granules that may be part of the state */
static uint32_t telling_count;
static unsigned going; /* threads that may do something, as a set */

static int goes_on(unsigned thread)
{
	/* A membarrier also affects threads that have ended. */
	return model_threads[thread].status != ENDED || explore_has_membarrier();
}

static void find_bound(uint32_t location)
{
	const struct uses *uses = &memory_locations[location].uses;
	unsigned left = going & (uses->did[ATOMIC_READ] | uses->did[ATOMIC_WRITE]);

	bound[location] = memory_locations[location].number;
	for (; left != 0; left &= left - 1) {
		uint32_t oldest = view_get(&memory_now[__builtin_ctz(left)], location);

		bound[location] = oldest < bound[location] ? oldest : bound[location];
	}
}

/* Returns the clock up to which all other threads of a set know the accesses by `thread`. */
static uint32_t known_to(unsigned set, unsigned thread)
{
	uint32_t known_to_all = UINT32_MAX;

	for (unsigned left = set & going & ~(1u << thread); left != 0; left &= left - 1) {
		uint32_t clock = memory_now[__builtin_ctz(left)].clock[thread];

		known_to_all = clock < known_to_all ? clock : known_to_all;
	}
	return known_to_all;
}

static void find_bounds(void)
{
	going = 0;
	for (unsigned t = 1; t <= model_program->threads; t++)
		going |= goes_on(t) ? 1u << t : 0u;
	for (uint32_t i = 0; i < memory_location_count; i++)
		find_bound(i);
	for (unsigned t = 1; t <= model_program->threads; t++) {
		stamps[t].count = 0;
		stamps[t].known = known_to(going, t);
	}
}

/* Returns the threads that may race with such an access, as a set. */
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

/* Keeps the clocks sorted. */
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

/*
 * Returns how many of the relevant accesses of `thread` are known to a view that knows its clock up
 * to `clock`.
 */
static uint32_t rank(unsigned thread, uint32_t clock)
{
	uint32_t at = 0;

	if (stamps[thread].count == STAMPS)
		return clock;
	while (at < stamps[thread].count && stamps[thread].clock[at] <= clock)
		at++;
	return at;
}

/* A call that ended counts as a plain write that any thread may read when it begins a call. */
static void add_ends(void)
{
	for (uint32_t i = 0; i < model_answer_count; i++)
		add_stamp(model_answers[i].thread, model_answers[i].end, ~0u);
}

static uint64_t state_of_ends(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < model_answer_count; i++) {
		const struct answer *answer = &model_answers[i];

		if (may_race(answer->thread, answer->end, ~0u))
			sum += state_mix((uint64_t)answer->thread << 32 | answer->number, rank(answer->thread, answer->end));
	}
	return state_part(STATE_ANSWERS, sum);
}

static void add_stamps(void)
{
	add_ends();
	for (uint32_t i = 0; i < memory_location_count; i++) {
		unsigned with_atomic = rivals(&memory_locations[i].uses, ATOMIC_READ),
				 with_write = rivals(&memory_locations[i].uses, ATOMIC_WRITE);

		for (unsigned t = 1; memory_locations[i].address != NULL && t <= model_program->threads; t++) {
			add_stamp(t, memory_locations[i].atomic_clock[t], with_atomic);
			add_stamp(t, memory_locations[i].written_clock[t], with_write);
		}
	}
	telling_count = 0;
	for (uint32_t i = 0; i < memory_granule_count; i++) {
		const struct granule *granule = &memory_granules[memory_used_granules[i]];
		const struct uses *of = &memory_users[granule->users].uses;
		unsigned with_read = rivals(of, PLAIN_READ), with_write = rivals(of, PLAIN_WRITE);

		if (!granule->written && with_read == 0)
			continue;
		telling[telling_count++] = memory_used_granules[i];
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
		if (view->oldest[i] > bound[i] && memory_locations[i].address != NULL)
			sum += state_mix(memory_locations[i].key, view->oldest[i] - bound[i]);
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

/* The knowledge of stores and of accesses, as parts of the state. */
static uint64_t state_of_view(const struct view *view, enum state_part of_stores, enum state_part of_accesses)
{
	return state_part(of_stores, stores_of_view(view)) + state_part(of_accesses, clocks_of_view(view));
}

/* The knowledge after an acquire fence. */
static uint64_t state_of_pending(unsigned thread)
{
	static struct view sum;

	view_copy(&sum, &memory_pending[thread]);
	view_join(&sum, &memory_now[thread]);
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
	const struct uses *of = &memory_users[granule->users].uses;
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
	const struct location *l = &memory_locations[location];
	uint64_t state = l->key;

	for (unsigned t = 1; t <= model_program->threads; t++) {
		state = state_of_access(state, t, l->atomic_clock[t], 1, rivals(&l->uses, ATOMIC_READ));
		state = state_of_access(state, t, l->written_clock[t], 2, rivals(&l->uses, ATOMIC_WRITE));
		if (model_threads[t].as_one && model_threads[t].status != ENDED && memory_stale[location][t].times != 0 &&
		    memory_stale[location][t].number >= bound[location])
			state = state_mix(state, (uint64_t)(memory_stale[location][t].number - bound[location]) << 32 |
			                             (uint64_t)memory_stale[location][t].times << 8 | t);
	}
	if (l->number == bound[location] && memory_stores[l->last].view == 0 && state == l->key)
		return 0; /* as if it had not been accessed: its value is in the memory */
	for (uint32_t i = l->last;; i = memory_stores[i].previous) {
		uint64_t value = state_mix((uint64_t)memory_stores[i].value, (uint64_t)(memory_stores[i].value >> 64));
		uint64_t view = memory_stores[i].view != 0
		                    ? state_of_view(&memory_views[memory_stores[i].view - 1], STATE_STORES, STATE_STORES_CLOCKS)
		                    : 0;

		state = state_mix(state, state_part(i == l->last ? STATE_MEMORY : STATE_HISTORIES, value));
		state = state_mix(state, view);
		if (memory_stores[i].number <= bound[location])
			return state;
	}
}

uint64_t memory_state(void)
{
	uint64_t state;

	find_bounds();
	add_stamps();
	state = state_of_ends();
	for (uint32_t i = 0; i < telling_count; i++)
		state += state_of_granule(&memory_granules[telling[i]]);
	for (uint32_t i = 0; i < memory_location_count; i++)
		state += memory_locations[i].address != NULL ? state_of_location(i) : 0;
	for (unsigned t = 1; t <= model_program->threads; t++) {
		if (!goes_on(t))
			continue;
		state += state_mix(t, state_of_view(&memory_now[t], STATE_VIEWS, STATE_VIEWS_CLOCKS));
		state += state_mix(t + 100, state_of_pending(t));
		if (memory_has_released[t])
			state += state_part(STATE_RELEASED,
			                    state_mix(t + 200, state_of_view(&memory_released[t], STATE_RELEASED, STATE_RELEASED)));
	}
	return state + state_mix(3, state_part(STATE_S, stores_of_view(&memory_in_s)));
}
