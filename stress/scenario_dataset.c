/*
 * scenario_dataset.c - random pipelines, read by several threads ahead of themselves, give what one
 * thread reads in order.
 *
 * Each round draws a pipeline of two to six stages from the seed and reads it once without a pool.
 * Then several threads take from an iterator with a pool, some elements by operations, with deadlines,
 * tokens and cancels that end some of their waits. What they took together must be what was read in order: each element once, the end
 * after all. In some rounds the takers stop early, and the iterator is destroyed while elements are
 * under way; then no element may be there twice. At the end no memory is held.
 */
#include "harness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <weir/dataset.h>
#include <weir/reclaim.h>

#include "poison.h"
#include "scenarios.h"

enum { MOST_ELEMENTS = 4096, MOST_TAKERS = 4, FAIL_EVERY = 17 };

static const uint64_t flush_ns = 100000000000u;

struct taken {
	size_t count;
	int64_t at[MOST_ELEMENTS];
};

/* A round, which the takers share. */
static weir_iterator *iterator;
static struct taken taken[MOST_TAKERS];
static _Atomic(uint64_t) round_number, ended;
static _Atomic(int) stops;
static unsigned takers;

static const weir_allocator *memory(void)
{
	return stress_poison();
}

/* -- pipelines --------------------------------------------------------------------------------- */

static int64_t number_of(const weir_tensor *tensor)
{
	int64_t number;

	memcpy(&number, weir_tensor_data(tensor), sizeof(number));
	return number;
}

static enum weir_status mix(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	int64_t number = number_of(in[0]);

	(void)context, (void)error;
	return number % FAIL_EVERY == 3 ? WEIR_DATA_LOSS : weir_tensor_scalar_i64(number ^ 1, &out[0]);
}

static enum weir_status keep_most(void *context, weir_tensor *const in[], bool *keep, weir_error *error)
{
	(void)context, (void)error;
	*keep = number_of(in[0]) % 5 != 0;
	return WEIR_OK;
}

/* Three numbers for each: its own, and two that no other has. */
static enum weir_status three_of(void *context, weir_tensor *const in[], weir_dataset **out, weir_error *error)
{
	int64_t number = number_of(in[0]);
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .allocator = memory()};

	(void)context;
	return weir_dataset_range(number, number + 3 * INT64_C(100000), 100000, &options, out, error);
}

struct drawing {
	unsigned grows;    /* how many more stages may make elements */
	bool is_unordered; /* which elements come first is not determined, so none may be taken or skipped */
};

static enum weir_status draw_stage(struct stress_thread *self, struct drawing *drawing, weir_dataset *input,
                                   weir_dataset **out, weir_error *error)
{
	const uint64_t seed = stress_random(self);
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .allocator = memory()}, seeded = options;
	size_t size = 1 + (size_t)stress_below(self, 9);
	uint64_t kind = stress_below(self, drawing->grows > 0 ? 9 : 7);
	uint32_t is_short = stress_one_in(self, 2) ? (uint32_t)WEIR_DATASET_SHORT : 0;

	seeded.seed = &seed;
	if (drawing->is_unordered && (kind == 3 || kind == 4))
		kind = 1;
	switch (kind) {
	case 0: return weir_dataset_filter(input, keep_most, NULL, &options, out, error);
	case 1: return weir_dataset_prefetch(input, size, &options, out, error);
	case 2: return weir_dataset_shuffle(input, size, &seeded, out, error);
	case 3: return weir_dataset_take(input, stress_below(self, 400), &options, out, error);
	case 4: return weir_dataset_skip(input, stress_below(self, 40), &options, out, error);
	case 5: return weir_dataset_cache(input, &options, out, error);
	case 7:
		drawing->grows--;
		return weir_dataset_repeat(input, 1 + (int64_t)stress_below(self, 2), &options, out, error);
	default: break;
	}
	options.at_once = size;
	options.flags = stress_one_in(self, 3) ? (uint32_t)WEIR_DATASET_UNORDERED : 0;
	drawing->is_unordered |= options.flags != 0;
	if (kind == 6) {
		options.flags |= is_short;
		return weir_dataset_map(input, mix, NULL, &options, out, error);
	}
	drawing->grows--;
	options.cycle = 1 + (size_t)stress_below(self, 4);
	options.block = 1 + (size_t)stress_below(self, 3);
	return weir_dataset_interleave(input, three_of, NULL, &options, out, error);
}

static weir_dataset *draw_pipeline(struct stress_thread *self)
{
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .allocator = memory()};
	weir_error error = {.message = ""};
	weir_dataset *dataset = NULL;
	uint64_t stages = 1 + stress_below(self, 5);
	struct drawing drawing = {.grows = 2};

	STRESS_CHECK(weir_dataset_range(0, (int64_t)stress_below(self, 200), 1, &options, &dataset, &error) == WEIR_OK,
	             "%s", error.message);
	for (uint64_t i = 0; i < stages; i++) {
		weir_dataset *outer = NULL;
		enum weir_status status = draw_stage(self, &drawing, dataset, &outer, &error);

		STRESS_CHECK(status == WEIR_OK, "a stage: %s", error.message);
		weir_dataset_release(dataset);
		dataset = outer;
	}
	return dataset;
}

/* -- taking ------------------------------------------------------------------------------------ */

static void have(struct taken *mine, int64_t number)
{
	STRESS_CHECK(mine->count < MOST_ELEMENTS, "more elements than the pipeline has");
	mine->at[mine->count++] = number;
}

/* What an operation gave. */
struct given {
	struct taken *mine;
	enum weir_status status;
	weir_error error;
};

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor *const parts[],
                 size_t count)
{
	struct given *given = context;

	STRESS_CHECK(count == (status == WEIR_OK ? 1 : 0), "%zu components", count);
	given->status = status;
	if (status == WEIR_OK) {
		have(given->mine, number_of(parts[0]));
		weir_tensor_release(parts[0]);
	} else {
		given->error = *error;
	}
}

/* Takes one by an operation, which may be cancelled. Returns false at the end. */
static bool take_by_operation(struct stress_thread *self, weir_iterator *from, struct taken *mine)
{
	struct given given = {.mine = mine};
	weir_pending *operation = NULL;
	weir_error error;
	bool cancels = stress_one_in(self, 4);

	STRESS_CHECK(weir_iterator_start_next(from, note, &given, &operation, &error) == WEIR_OK, "%s", error.message);
	if (cancels)
		weir_pending_cancel(operation, NULL);
	(void)weir_pending_wait(operation, WEIR_NO_DEADLINE, NULL, NULL);
	weir_pending_release(operation);
	if (given.status == WEIR_DATA_LOSS)
		have(mine, -1);
	STRESS_CHECK(given.status == WEIR_OK || given.status == WEIR_DATA_LOSS || given.status == WEIR_OUT_OF_RANGE ||
	                 (given.status == WEIR_CANCELLED && cancels),
	             "%s: %s", weir_status_name(given.status), given.error.message);
	return given.status != WEIR_OUT_OF_RANGE;
}

/* Takes one. Errors of elements stand as -1. Returns false at the end. */
static bool take(struct stress_thread *self, weir_iterator *from, struct taken *mine)
{
	uint64_t deadline_ns =
		self != NULL && stress_one_in(self, 4) ? weir_deadline_in(stress_below(self, 20000)) : WEIR_NO_DEADLINE;
	weir_cancel *token = NULL;
	weir_tensor *part = NULL;
	weir_error error;
	enum weir_status status;

	if (self != NULL && stress_one_in(self, 5))
		return take_by_operation(self, from, mine);
	if (self != NULL && stress_one_in(self, 8)) {
		STRESS_CHECK(weir_cancel_create(NULL, &token, NULL) == WEIR_OK, "no memory for a token");
		if (stress_one_in(self, 2))
			(void)weir_cancel_fire(token, NULL);
	}
	status = weir_iterator_next(from, deadline_ns, token, &part, 1, &error);
	STRESS_CHECK(status != WEIR_CANCELLED || token != NULL, "%s", error.message);
	weir_cancel_release(token);
	switch (status) {
	case WEIR_OK:
		have(mine, number_of(part));
		weir_tensor_release(part);
		return true;
	case WEIR_DATA_LOSS: have(mine, -1); return true;
	case WEIR_OUT_OF_RANGE: return false;
	case WEIR_DEADLINE_EXCEEDED: STRESS_CHECK(deadline_ns != WEIR_NO_DEADLINE, "%s", error.message); return true;
	case WEIR_CANCELLED: return true;
	default: stress_fail("next: %s: %s", weir_status_name(status), error.message);
	}
}

static void taker(struct stress_thread *self, void *context)
{
	struct taken *mine = context;
	uint64_t seen = 0;
	unsigned spins = 0;

	for (;;) {
		/* [acquire] the iterator of the round; UINT64_MAX: there are no more */
		uint64_t now = weiri_load_acquire(&round_number);

		if (now == UINT64_MAX)
			return;
		stress_begin(self, "take");
		stress_end(self, 1);
		if (now == seen) {
			stress_back_off(&spins);
			continue;
		}
		seen = now;
		spins = 0;
		/* [relaxed] a late look takes one element more */
		while (weiri_load_relaxed(&stops) == 0 && take(self, iterator, mine))
			stress_end(self, 1);
		/* [release] what this thread took */
		(void)weiri_fetch_add_release(&ended, UINT64_C(1));
	}
}

/* -- rounds ------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void read_in_order(weir_dataset *dataset, struct taken *all)
{
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .iteration = 1, .allocator = memory()};
	weir_iterator *alone = NULL;

	STRESS_CHECK(weir_iterator_create(dataset, &options, &alone, NULL) == WEIR_OK, "no iterator");
	all->count = 0;
	while (take(NULL, alone, all))
		;
	STRESS_CHECK(weir_iterator_destroy(alone, NULL) == WEIR_OK, "destroy");
	qsort(all->at, all->count, sizeof(all->at[0]), compare);
}

static void check_round(const struct taken *expected, bool was_cut, const weir_dataset *dataset)
{
	static struct taken all;
	char text[WEIR_DATASET_TEXT_SIZE];
	size_t k = 0;

	all.count = 0;
	for (unsigned i = 0; i < takers; i++) {
		for (size_t n = 0; n < taken[i].count; n++)
			have(&all, taken[i].at[n]);
	}
	qsort(all.at, all.count, sizeof(all.at[0]), compare);
	(void)weir_dataset_text(dataset, text, sizeof(text));
	STRESS_CHECK(was_cut || all.count == expected->count, "%s: %zu elements, expected %zu", text, all.count,
	             expected->count);
	for (size_t i = 0; i < all.count; i++, k++) {
		while (was_cut && k < expected->count && expected->at[k] < all.at[i])
			k++;
		STRESS_CHECK(k < expected->count && expected->at[k] == all.at[i], "%s: %" PRId64 " was taken too often", text,
		             all.at[i]);
	}
}

static void play_round(struct stress_thread *self, weir_pool *pool)
{
	static struct taken expected;
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .pool = pool, .iteration = 1,
	                                        .allocator = memory()};
	weir_dataset *dataset = draw_pipeline(self);
	bool is_cut = stress_one_in(self, 4);
	unsigned spins = 0;

	read_in_order(dataset, &expected);
	for (unsigned i = 0; i < takers; i++)
		taken[i].count = 0;
	STRESS_CHECK(weir_iterator_create(dataset, &options, &iterator, NULL) == WEIR_OK, "no iterator");
	/* [relaxed] the next change publishes them */
	weiri_store_relaxed(&ended, UINT64_C(0));
	weiri_store_relaxed(&stops, 0);
	/* [release] pairs with the takers */
	(void)weiri_fetch_add_release(&round_number, UINT64_C(1));
	if (is_cut) {
		stress_let_pass(stress_below(self, 200000));
		weiri_store_relaxed(&stops, 1); /* [relaxed] a hint */
	}
	/* [acquire] what the takers took */
	while (weiri_load_acquire(&ended) != takers)
		stress_back_off(&spins);
	stress_begin(self, "destroy");
	STRESS_CHECK(weir_iterator_destroy(iterator, NULL) == WEIR_OK, "destroy");
	stress_end(self, 1);
	check_round(&expected, is_cut, dataset);
	weir_dataset_release(dataset);
}

void scenario_dataset(void)
{
	struct weir_pool_options workers = {WEIR_POOL_OPTIONS_INIT, .threads = 2};
	weir_pool *pool = NULL;
	uint64_t rounds = 0;

	takers = stress_threads(2) < MOST_TAKERS ? stress_threads(2) : MOST_TAKERS;
	weiri_store_relaxed(&round_number, UINT64_C(0)); /* [relaxed] before the threads */
	STRESS_CHECK(weir_pool_create(&workers, &pool, NULL) == WEIR_OK, "cannot create a pool");
	for (unsigned i = 0; i < takers; i++)
		(void)stress_start("taker", taker, &taken[i]);
	stress_disturb();
	for (; stress_goes_on(); rounds++)
		play_round(stress_self(), pool);
	weiri_store_relaxed(&round_number, UINT64_MAX); /* [relaxed] no round */
	stress_join();
	STRESS_CHECK(weir_pool_destroy(pool, NULL) == WEIR_OK, "the pool cannot be destroyed");
	stress_note("pipelines", rounds);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(flush_ns)) == WEIR_OK, "the flush failed: memory is still held");
	stress_poison_check_empty();
}
