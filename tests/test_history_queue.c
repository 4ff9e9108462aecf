/*
 * test_history_queue.c - the checkers of queues, pools and priority queues, compared with the
 * general checker and on planted faults.
 */
#include "history_kit.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

enum shape { FIFO, MULTISET, PRIORITY };

struct setting {
	enum shape shape;
	struct history_bounds bounds;
	enum history_equals equals;
	uint64_t keys; /* priority: the number of keys */
	int tell_full; /* puts may answer "full" */
	uint64_t puts; /* of 8 operations */
	int exact;     /* the fast checker is exact */
};

/* -- making histories -------------------------------------------------------------------------- */

/* The sequential structure in its plainest form. */
struct store {
	size_t count;
	struct history_op item[KIT_MOST_OPS];
};

static size_t choose(struct kit_dice *dice, const struct setting *setting, const struct store *store)
{
	size_t best = 0;

	if (setting->shape == MULTISET)
		return (size_t)kit_below(dice, store->count);
	for (size_t i = 1; setting->shape == PRIORITY && i < store->count; i++) {
		int64_t key = (int64_t)store->item[i].result, least = (int64_t)store->item[best].result;

		if (key < least || (key == least && setting->equals == HISTORY_EQUALS_ANY && kit_below(dice, 2) == 0))
			best = i;
	}
	return best;
}

static struct history_op put_into(struct kit_dice *dice, const struct setting *setting, struct store *store,
                                  uint64_t value)
{
	struct history_op op = {.kind = HISTORY_PUT, .argument = value, .result = HISTORY_NONE};

	if (setting->shape == PRIORITY)
		op.result = (uint64_t)((int64_t)kit_below(dice, setting->keys) - 1);
	if (setting->bounds.capacity != 0 && store->count == setting->bounds.capacity)
		op.kind = HISTORY_PUT_FULL;
	else
		store->item[store->count++] = op;
	return op;
}

static struct history_op take_from(struct kit_dice *dice, const struct setting *setting, struct store *store)
{
	struct history_op op = {.kind = HISTORY_TAKE_EMPTY, .argument = HISTORY_NONE, .result = HISTORY_NONE};
	size_t place;

	if (store->count <= setting->bounds.stays)
		return op;
	place = choose(dice, setting, store);
	op.kind = HISTORY_TAKE;
	op.result = store->item[place].argument;
	memmove(&store->item[place], &store->item[place + 1], (store->count - place - 1) * sizeof(op));
	store->count--;
	return op;
}

static void make(struct kit_dice *dice, const struct setting *setting, size_t count, struct history *history)
{
	struct store store = {0};
	uint64_t stretch = 1 + kit_below(dice, 60), value = 1;

	while (history->count < count) {
		struct history_op op = kit_below(dice, 8) < setting->puts ? put_into(dice, setting, &store, value++)
		                                                          : take_from(dice, setting, &store);

		if (op.kind == HISTORY_PUT_FULL && !setting->tell_full)
			continue;
		kit_stretch(dice, &op, history->count, stretch);
		cr_assert(history_add(history, &op, NULL));
	}
}

static void spoil(struct kit_dice *dice, struct history *history)
{
	struct history_op *op = kit_any(dice, history), *other = kit_any(dice, history);
	uint64_t result = op->result;

	switch (kit_below(dice, 6)) {
	case 0: /* two takes trade their values */
	case 1:
		if (op->kind == HISTORY_TAKE && other->kind == HISTORY_TAKE) {
			op->result = other->result;
			other->result = result;
			return;
		}
		break;
	case 2: /* one take got nothing */
		if (op->kind == HISTORY_TAKE) {
			op->kind = HISTORY_TAKE_EMPTY;
			return;
		}
		break;
	case 3: /* a take that got nothing gets a value */
		if (op->kind == HISTORY_TAKE_EMPTY && other->kind == HISTORY_PUT) {
			op->kind = HISTORY_TAKE;
			op->result = other->argument;
			return;
		}
		break;
	case 4: /* a refused put went in */
		if (op->kind == HISTORY_PUT_FULL) {
			op->kind = HISTORY_PUT;
			return;
		}
		break;
	default: break;
	}
	kit_move(dice, history, 1 + kit_below(dice, 40));
}

/* -- the fast checker compared with the general one -------------------------------------------- */

static enum history_verdict check_fast(const struct setting *setting, const struct history *history,
                                       struct history_finding *finding)
{
	switch (setting->shape) {
	case FIFO: return history_check_fifo(history, &setting->bounds, finding);
	case MULTISET: return history_check_multiset(history, &setting->bounds, finding);
	default: return history_check_priority(history, &setting->bounds, setting->equals, finding);
	}
}

static enum history_verdict check_all(const struct setting *setting, const struct history *history,
                                      struct history_finding *finding)
{
	struct history_priority priority = {setting->bounds, setting->equals};

	switch (setting->shape) {
	case FIFO: return history_check_general(history, &history_model_fifo, &setting->bounds, KIT_BUDGET, NULL, finding);
	case MULTISET:
		return history_check_general(history, &history_model_multiset, &setting->bounds, KIT_BUDGET, NULL, finding);
	default: return history_check_general(history, &history_model_priority, &priority, KIT_BUDGET, NULL, finding);
	}
}

/* Gives the order of the times to the history, as sets. */
static void set_before(struct history *history, uint64_t before[])
{
	for (size_t i = 0; i < history->count; i++) {
		before[i] = 0;
		for (size_t j = 0; j < history->count; j++)
			before[i] |= (uint64_t)history_came_before(history, j, i) << j;
	}
	history->before = before;
}

/* Compares both verdicts on many histories, a third of which are not spoilt. */
static void compare(const struct setting *setting, uint64_t seed, unsigned rounds)
{
	struct kit_dice dice = {seed};
	unsigned held = 0, broken = 0, missed = 0;

	for (unsigned round = 0; round < rounds; round++) {
		struct history history;
		struct history_finding finding, exact_finding;
		enum history_verdict fast, exact;
		unsigned spoils = (unsigned)kit_below(&dice, 3);
		uint64_t before[64];

		history_init(&history);
		make(&dice, setting, 2 + (size_t)kit_below(&dice, 9), &history);
		for (unsigned i = 0; i < spoils; i++)
			spoil(&dice, &history);
		fast = check_fast(setting, &history, &finding);
		exact = check_all(setting, &history, &exact_finding);
		cr_assert(exact == HISTORY_HOLDS || exact == HISTORY_VIOLATED, "round %u: %s", round, exact_finding.what);
		cr_assert(spoils != 0 || exact == HISTORY_HOLDS, "round %u: a run of the model does not hold", round);
		if (fast != exact && (setting->exact || fast == HISTORY_VIOLATED))
			history_print(stderr, &history, fast == HISTORY_HOLDS ? &exact_finding : &finding, NULL);
		cr_assert(fast != HISTORY_VIOLATED || exact == HISTORY_VIOLATED, "round %u: wrongly accused: %s", round,
		          finding.what);
		cr_assert(!setting->exact || fast == exact, "round %u: missed", round);
		set_before(&history, before);
		cr_assert(check_all(setting, &history, &finding) == exact, "round %u: sets are judged otherwise", round);
		held += exact == HISTORY_HOLDS;
		broken += exact == HISTORY_VIOLATED;
		missed += fast != exact;
		history_fini(&history);
	}
	cr_assert(held > rounds / 10 && broken > rounds / 10, "%u hold, %u do not: nothing was compared", held, broken);
	cr_assert(missed * 50 <= broken, "%u of %u missed", missed, broken);
}

Test(history_queue, fifo_agrees_with_the_general_checker)
{
	struct setting setting = {.shape = FIFO, .puts = 4, .exact = 1};

	compare(&setting, 1, 20000);
}

Test(history_queue, bounded_fifo_agrees_with_the_general_checker)
{
	struct setting setting = {.shape = FIFO, .puts = 5, .tell_full = 1, .bounds = {.capacity = 2}};

	compare(&setting, 2, 20000);
	setting.bounds.capacity = 1;
	compare(&setting, 3, 20000);
	setting.bounds.capacity = 3;
	setting.tell_full = 0;
	compare(&setting, 4, 20000);
}

Test(history_queue, multiset_agrees_with_the_general_checker)
{
	struct setting setting = {.shape = MULTISET, .puts = 4, .exact = 1};

	compare(&setting, 5, 20000);
	setting.bounds.capacity = 2;
	compare(&setting, 6, 20000);
}

Test(history_queue, multiset_with_what_stays_agrees_with_the_general_checker)
{
	struct setting setting = {.shape = MULTISET, .puts = 5, .tell_full = 1, .bounds = {.capacity = 3, .stays = 1}};

	compare(&setting, 7, 20000);
	setting.bounds.stays = 2;
	compare(&setting, 8, 20000);
}

Test(history_queue, priority_agrees_with_the_general_checker)
{
	struct setting setting = {.shape = PRIORITY, .puts = 4, .keys = 1000000, .exact = 1};

	compare(&setting, 9, 20000);
	setting.keys = 3;
	compare(&setting, 10, 20000);
}

Test(history_queue, priority_with_equals_in_order_agrees_with_the_general_checker)
{
	struct setting setting = {.shape = PRIORITY, .puts = 4, .keys = 3, .equals = HISTORY_EQUALS_FIFO};

	compare(&setting, 11, 20000);
	setting.keys = 1;
	setting.exact = 1;
	compare(&setting, 12, 20000);
}

/* -- planted faults: the checker names each of them -------------------------------------------- */

struct line {
	uint64_t called, returned;
	enum history_kind kind;
	uint64_t number; /* put: the value; take: the value that came out */
	uint64_t key;
};

static void check_pattern(const struct setting *setting, const struct line lines[], size_t count, const char *pattern)
{
	struct history history;
	struct history_finding finding = {0}, exact_finding;

	history_init(&history);
	for (size_t i = 0; i < count; i++) {
		int puts = lines[i].kind == HISTORY_PUT || lines[i].kind == HISTORY_PUT_FULL;
		struct history_op op = {.called = lines[i].called,
		                        .returned = lines[i].returned,
		                        .kind = (uint16_t)lines[i].kind,
		                        .argument = puts ? lines[i].number : HISTORY_NONE,
		                        .result = puts ? lines[i].key : lines[i].number};

		cr_assert(history_add(&history, &op, NULL));
	}
	cr_assert(check_fast(setting, &history, &finding) == HISTORY_VIOLATED, "%s was not found", pattern);
	cr_assert(strcmp(finding.pattern, pattern) == 0, "found %s, not %s: %s", finding.pattern, pattern, finding.what);
	cr_assert(finding.witnesses != 0 && strlen(finding.what) > 10);
	cr_assert(check_all(setting, &history, &exact_finding) == HISTORY_VIOLATED, "%s: the general checker", pattern);
	history_fini(&history);
}
#define CHECK_PATTERN(setting, pattern, ...) \
	check_pattern((setting), (const struct line[]){__VA_ARGS__}, \
	              sizeof((const struct line[]){__VA_ARGS__}) / sizeof(struct line), pattern)

Test(history_queue, each_fault_of_a_queue_is_named)
{
	struct setting fifo = {.shape = FIFO, .bounds = {.capacity = 2}};

	CHECK_PATTERN(&fifo, "never put", {0, 1, HISTORY_TAKE, 7, 0});
	CHECK_PATTERN(&fifo, "taken early", {0, 1, HISTORY_TAKE, 7, 0}, {2, 3, HISTORY_PUT, 7, 0});
	CHECK_PATTERN(&fifo, "taken twice", {0, 1, HISTORY_PUT, 7, 0}, {2, 3, HISTORY_TAKE, 7, 0},
	              {2, 3, HISTORY_TAKE, 7, 0});
	CHECK_PATTERN(&fifo, "order", {0, 1, HISTORY_PUT, 1, 0}, {2, 3, HISTORY_PUT, 2, 0}, {4, 5, HISTORY_TAKE, 2, 0},
	              {6, 7, HISTORY_TAKE, 1, 0});
	CHECK_PATTERN(&fifo, "order", {0, 1, HISTORY_PUT, 1, 0}, {2, 3, HISTORY_PUT, 2, 0}, {4, 5, HISTORY_TAKE, 2, 0});
	/* At each moment one of two values is inside. */
	CHECK_PATTERN(&fifo, "empty", {0, 1, HISTORY_PUT, 1, 0}, {2, 9, HISTORY_TAKE_EMPTY, 0, 0},
	              {3, 4, HISTORY_PUT, 2, 0}, {5, 6, HISTORY_TAKE, 1, 0}, {10, 11, HISTORY_TAKE, 2, 0});
	CHECK_PATTERN(&fifo, "full", {0, 1, HISTORY_PUT, 1, 0}, {2, 3, HISTORY_PUT_FULL, 2, 0});
	CHECK_PATTERN(&fifo, "capacity", {0, 1, HISTORY_PUT, 1, 0}, {2, 3, HISTORY_PUT, 2, 0}, {4, 5, HISTORY_PUT, 3, 0});
}

Test(history_queue, a_value_that_was_put_twice_is_named)
{
	struct history history;
	struct history_finding finding;
	struct history_bounds none = {0, 0};
	struct history_op op = {.called = 1, .returned = 2, .kind = HISTORY_PUT, .argument = 5};

	history_init(&history);
	cr_assert(history_add(&history, &op, NULL) && history_add(&history, &op, NULL));
	cr_assert(history_check_fifo(&history, &none, &finding) == HISTORY_VIOLATED);
	cr_assert(strcmp(finding.pattern, "put twice") == 0);
	history_fini(&history);
}

Test(history_queue, each_fault_of_a_pool_is_named)
{
	struct setting pool = {.shape = MULTISET, .bounds = {.capacity = 3, .stays = 1}};

	CHECK_PATTERN(&pool, "stays", {0, 1, HISTORY_PUT, 1, 0}, {2, 3, HISTORY_TAKE, 1, 0});
	CHECK_PATTERN(&pool, "empty", {0, 1, HISTORY_PUT, 1, 0}, {0, 1, HISTORY_PUT, 2, 0},
	              {2, 3, HISTORY_TAKE_EMPTY, 0, 0});
	CHECK_PATTERN(&pool, "full", {0, 1, HISTORY_PUT, 1, 0}, {2, 3, HISTORY_PUT, 2, 0}, {4, 5, HISTORY_PUT_FULL, 3, 0});
	CHECK_PATTERN(&pool, "taken twice", {0, 1, HISTORY_PUT, 1, 0}, {0, 1, HISTORY_PUT, 2, 0},
	              {2, 3, HISTORY_TAKE, 1, 0}, {2, 3, HISTORY_TAKE, 1, 0});
}

Test(history_queue, each_fault_of_a_priority_queue_is_named)
{
	struct setting queue = {.shape = PRIORITY, .equals = HISTORY_EQUALS_FIFO};

	CHECK_PATTERN(&queue, "urgent", {0, 1, HISTORY_PUT, 1, 10}, {2, 3, HISTORY_PUT, 2, 5}, {4, 5, HISTORY_TAKE, 1, 0});
	/* Negative keys come before positive ones. */
	CHECK_PATTERN(&queue, "urgent", {0, 1, HISTORY_PUT, 1, 10}, {2, 3, HISTORY_PUT, 2, (uint64_t)INT64_C(-5)},
	              {4, 5, HISTORY_TAKE, 1, 0});
	CHECK_PATTERN(&queue, "order", {0, 1, HISTORY_PUT, 1, 5}, {2, 3, HISTORY_PUT, 2, 5}, {4, 5, HISTORY_TAKE, 2, 0},
	              {6, 7, HISTORY_TAKE, 1, 0});
	CHECK_PATTERN(&queue, "empty", {0, 1, HISTORY_PUT, 1, 5}, {2, 3, HISTORY_TAKE_EMPTY, 0, 0});
	/* No single smaller key is inside all the time, but two smaller keys take turns. */
	CHECK_PATTERN(&queue, "urgent", {0, 1, HISTORY_PUT, 9, 9}, {0, 1, HISTORY_PUT, 1, 1}, {2, 9, HISTORY_TAKE, 9, 0},
	              {3, 4, HISTORY_PUT, 2, 2}, {5, 6, HISTORY_TAKE, 1, 0}, {10, 11, HISTORY_TAKE, 2, 0});
}

Test(history_queue, what_is_no_history_is_refused)
{
	struct history history;
	struct history_finding finding;
	struct history_bounds none = {0, 0};
	struct history_op backwards = {.called = 2, .returned = 1, .kind = HISTORY_PUT, .argument = 5};
	struct history_op unknown = {.called = 1, .returned = 2, .kind = HISTORY_READ};

	history_init(&history);
	cr_assert(history_check_fifo(&history, &none, &finding) == HISTORY_HOLDS, "an empty history holds");
	cr_assert(history_add(&history, &backwards, NULL));
	cr_assert(history_check_fifo(&history, &none, &finding) == HISTORY_MALFORMED);
	history.op[0] = unknown;
	cr_assert(history_check_fifo(&history, &none, &finding) == HISTORY_MALFORMED);
	history_fini(&history);
}
