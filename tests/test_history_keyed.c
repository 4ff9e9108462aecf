/*
 * test_history_keyed.c - the models of maps, joins and names, and the check of each key alone: on
 * histories of plain sequential structures, on spoilt ones, and on planted faults.
 */
#include "history_kit.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "history/keyed.h"

enum { KEYS = 3, COMPONENTS = 2, ALL = 3, CAPACITY = 2, LIMIT = 5, OPS = 11, READY = OPS, ROUNDS = 3000 };

static const struct history_map map_whole = {COMPONENTS, CAPACITY, LIMIT, 0},
								map_alone = {COMPONENTS, CAPACITY, LIMIT, 1};
static const struct history_join join_whole = {COMPONENTS, 0}, join_alone = {COMPONENTS, 1};

/* -- sequential structures, in their plainest form --------------------------------------------- */

struct tuple {
	uint64_t key, have, index, value[COMPONENTS];
};

struct world {
	struct tuple tuple[KEYS];
	int complete[KEYS];
	struct tuple ready[READY];
	size_t ready_count;
	uint64_t index, closed;
	uint64_t object[KEYS];
	uint64_t value; /* the next value */
};

struct step {
	struct history_op op;
	struct history_part part[KEYS * COMPONENTS];
};

static void name_part(struct step *step, uint64_t key, uint64_t component, uint64_t value)
{
	step->part[step->op.parts++] = (struct history_part){key, component, HISTORY_NONE, value};
}

static size_t number_of(const struct world *world, int complete)
{
	size_t count = 0;

	for (size_t i = 0; i < KEYS; i++)
		count += world->tuple[i].have != 0 && (world->complete[i] != 0) == complete;
	return count;
}

static uint64_t components_inside(const struct world *world)
{
	uint64_t inside = 0;

	for (size_t i = 0; i < KEYS; i++)
		inside += (world->tuple[i].have & 1) + (world->tuple[i].have >> 1);
	return inside;
}

static void map_put(struct world *world, struct step *step, uint64_t key, uint64_t mask)
{
	struct tuple *tuple = &world->tuple[key];
	uint64_t room = LIMIT - components_inside(world);

	for (uint64_t c = 0; c < COMPONENTS; c++) {
		if ((mask >> c & 1) != 0)
			name_part(step, key, c, world->value++);
	}
	step->op.result = HISTORY_DONE;
	if (world->complete[key] || (tuple->have & mask) != 0)
		step->op.result = HISTORY_REFUSED;
	else if (number_of(world, 1) == CAPACITY || step->op.parts > room)
		step->op.result = HISTORY_NOT_NOW;
	for (uint32_t i = 0; step->op.result == HISTORY_DONE && i < step->op.parts; i++) {
		tuple->have |= UINT64_C(1) << step->part[i].before;
		tuple->value[step->part[i].before] = step->part[i].value;
	}
	world->complete[key] = tuple->have == ALL || world->complete[key];
}

static void map_take(struct world *world, struct step *step, uint64_t key, uint64_t mask, int stays)
{
	struct tuple *tuple = &world->tuple[key];
	enum history_answer answer = !world->complete[key]          ? HISTORY_NOT_NOW
	                             : (tuple->have & mask) != mask ? HISTORY_REFUSED
	                                                            : HISTORY_DONE;

	for (uint64_t c = 0; c < COMPONENTS; c++) {
		if ((mask >> c & 1) != 0)
			name_part(step, key, c, answer == HISTORY_DONE ? tuple->value[c] : HISTORY_NONE);
	}
	step->op.result = answer;
	if (answer != HISTORY_DONE || stays)
		return;
	tuple->have &= ~mask;
	world->complete[key] = tuple->have != 0;
}

static void map_take_any(struct world *world, struct step *step, uint64_t mask)
{
	uint64_t key = 0;

	while (key < KEYS && !world->complete[key])
		key++;
	if (key < KEYS)
		map_take(world, step, key, mask, 0);
	else
		step->op.result = HISTORY_NOT_NOW;
	if (step->op.result != HISTORY_DONE)
		step->op.parts = 0;
	step->op.argument = mask;
}

static void map_random(struct kit_dice *dice, struct world *world, struct step *step)
{
	static const uint16_t kinds[] = {HISTORY_MAP_PUT,     HISTORY_MAP_PUT,  HISTORY_MAP_PUT,  HISTORY_MAP_GET,
	                                 HISTORY_MAP_GET_ANY, HISTORY_MAP_PEEK, HISTORY_MAP_LOOK, HISTORY_MAP_CLEAR};
	uint64_t key = kit_below(dice, KEYS), mask = 1 + kit_below(dice, ALL);

	step->op.kind = kinds[kit_below(dice, sizeof(kinds) / sizeof(kinds[0]))];
	switch (step->op.kind) {
	case HISTORY_MAP_PUT: map_put(world, step, key, mask); break;
	case HISTORY_MAP_GET:
	case HISTORY_MAP_PEEK: map_take(world, step, key, mask, step->op.kind == HISTORY_MAP_PEEK); break;
	case HISTORY_MAP_GET_ANY: map_take_any(world, step, mask); break;
	case HISTORY_MAP_LOOK:
		step->op.argument =
			(uint64_t)number_of(world, 1) << 32 | (uint64_t)number_of(world, 0) << 16 | components_inside(world);
		break;
	default: memset(world->tuple, 0, sizeof(world->tuple)); memset(world->complete, 0, sizeof(world->complete));
	}
}

static void join_insert(struct kit_dice *dice, struct world *world, struct step *step)
{
	uint64_t component = kit_below(dice, COMPONENTS), first = kit_below(dice, KEYS), count = 1 + kit_below(dice, KEYS);
	int is_new = 0;

	step->op.result = world->closed == HISTORY_JOIN_CANCELLED ? HISTORY_CLOSED : HISTORY_DONE;
	for (uint64_t i = 0; i < count; i++) {
		const struct tuple *tuple = &world->tuple[(first + i) % KEYS];

		name_part(step, (first + i) % KEYS, component, world->value++);
		if (step->op.result == HISTORY_DONE && tuple->have == 0 && world->closed)
			step->op.result = HISTORY_CLOSED;
		else if (step->op.result == HISTORY_DONE && (tuple->have >> component & 1) != 0)
			step->op.result = HISTORY_REFUSED;
	}
	for (uint64_t i = 0; step->op.result == HISTORY_DONE && i < count; i++) {
		struct tuple *tuple = &world->tuple[step->part[i].object];

		if (tuple->have == 0) {
			tuple->key = step->part[i].object;
			tuple->index = world->index;
			is_new = 1;
		}
		tuple->have |= UINT64_C(1) << component;
		tuple->value[component] = step->part[i].value;
		if (tuple->have == ALL) {
			world->ready[world->ready_count++] = *tuple;
			tuple->have = 0;
		}
	}
	world->index += (uint64_t)is_new;
}

/* The tuple that leaves next. */
static size_t first_ready(const struct world *world)
{
	size_t best = 0;

	for (size_t i = 1; i < world->ready_count; i++) {
		if (world->ready[i].index < world->ready[best].index)
			best = i;
	}
	return best;
}

static void join_take(struct kit_dice *dice, struct world *world, struct step *step)
{
	uint64_t n = 1 + kit_below(dice, 2), small = kit_below(dice, 2);
	size_t there = world->ready_count + (small ? 0 : number_of(world, 0));

	step->op.argument = n | (small ? HISTORY_JOIN_SMALL : 0);
	step->op.result = HISTORY_DONE;
	if (world->closed && there < (small ? 1 : n))
		step->op.result = HISTORY_CLOSED;
	else if (world->ready_count < n && !(world->closed && small))
		step->op.result = HISTORY_NOT_NOW;
	for (; step->op.result == HISTORY_DONE && n > 0 && world->ready_count > 0; n--) {
		size_t place = first_ready(world);
		struct tuple tuple = world->ready[place];

		for (uint64_t c = 0; c < COMPONENTS; c++) {
			name_part(step, tuple.key, c, tuple.value[c]);
			step->part[step->op.parts - 1].after = tuple.index;
		}
		memmove(&world->ready[place], &world->ready[place + 1], (--world->ready_count - place) * sizeof(tuple));
	}
}

static void join_random(struct kit_dice *dice, struct world *world, struct step *step)
{
	uint64_t what = kit_below(dice, 16);

	step->op.kind = what < 9    ? HISTORY_JOIN_INSERT
	                : what < 13 ? HISTORY_JOIN_TAKE
	                : what < 15 ? HISTORY_JOIN_LOOK
	                            : HISTORY_JOIN_CLOSE;
	switch (step->op.kind) {
	case HISTORY_JOIN_INSERT: join_insert(dice, world, step); break;
	case HISTORY_JOIN_TAKE: join_take(dice, world, step); break;
	case HISTORY_JOIN_LOOK:
		step->op.argument = (uint64_t)world->ready_count << 32 | (uint64_t)number_of(world, 0);
		break;
	default:
		step->op.argument = 1 + kit_below(dice, 2);
		world->closed = step->op.argument > world->closed ? step->op.argument : world->closed;
		if (world->closed == HISTORY_JOIN_CANCELLED)
			memset(world->tuple, 0, sizeof(world->tuple));
	}
}

static void names_random(struct kit_dice *dice, struct world *world, struct step *step)
{
	uint64_t name = kit_below(dice, KEYS), *there = &world->object[name];

	step->op.kind = (uint16_t)(HISTORY_NAME_ADD + (int)kit_below(dice, 4));
	step->op.result = HISTORY_DONE;
	name_part(step, name, 0, *there);
	switch (step->op.kind) {
	case HISTORY_NAME_ADD:
		step->part[0].value = world->value++;
		step->op.result = *there != 0 ? HISTORY_REFUSED : HISTORY_DONE;
		*there = *there != 0 ? *there : step->part[0].value;
		break;
	case HISTORY_NAME_CREATE:
		step->op.argument = kit_below(dice, 2) == 0 || *there == 0 ? world->value++ : HISTORY_NONE;
		*there = *there != 0 ? *there : step->op.argument;
		step->part[0].value = *there;
		break;
	case HISTORY_NAME_FIND: step->op.result = *there != 0 ? HISTORY_DONE : HISTORY_REFUSED; break;
	default:
		step->op.result = *there != 0 ? HISTORY_DONE : HISTORY_REFUSED;
		step->part[0].value = HISTORY_NONE;
		*there = 0;
	}
}

/* -- each key alone, compared with the whole history ------------------------------------------- */

struct structure {
	void (*random)(struct kit_dice *dice, struct world *world, struct step *step);
	const struct history_model *model;
	const void *whole, *alone;
	int exact; /* judging each key alone is exact */
};

static const struct structure map = {map_random, &history_model_map, &map_whole, &map_alone, 0},
							  join = {join_random, &history_model_join, &join_whole, &join_alone, 0},
							  names = {names_random, &history_model_names, NULL, NULL, 1};

static void make(struct kit_dice *dice, const struct structure *structure, struct history *history)
{
	struct world world = {.value = 1};
	uint64_t stretch = 1 + kit_below(dice, 40);
	size_t count = 2 + (size_t)kit_below(dice, OPS - 2);

	for (size_t i = 0; i < count; i++) {
		struct step step = {.op = {.argument = HISTORY_NONE}};

		structure->random(dice, &world, &step);
		kit_stretch(dice, &step.op, i, stretch);
		cr_assert(history_add(history, &step.op, step.part));
	}
}

/* Two operations trade a value, or one gets another answer or another time. */
static void spoil(struct kit_dice *dice, struct history *history)
{
	struct history_op *op = kit_any(dice, history), *other = kit_any(dice, history);

	switch (kit_below(dice, 3)) {
	case 0:
		if (op->parts != 0 && other->parts != 0) {
			struct history_part *a = &history->part[op->part], *b = &history->part[other->part];
			uint64_t value = a->value;

			a->value = b->value;
			b->value = value;
		}
		break;
	case 1:
		if (op->parts != 0 && op->result <= HISTORY_REFUSED)
			op->result = kit_below(dice, 3);
		break;
	default: kit_move(dice, history, 1 + kit_below(dice, 40));
	}
}

static enum history_verdict judge_whole(const struct structure *structure, const struct history *history)
{
	struct history_finding finding;

	return history_check_general(history, structure->model, structure->whole, KIT_BUDGET, NULL, &finding);
}

static enum history_verdict judge_each(const struct structure *structure, const struct history *history,
                                       struct history_finding *finding)
{
	return history_check_each(history, structure->model, structure->alone, KIT_BUDGET, finding);
}

static void compare(const struct structure *structure, uint64_t seed)
{
	struct kit_dice dice = {seed};
	size_t violated = 0, by_each = 0;

	for (size_t round = 0; round < ROUNDS; round++) {
		struct history_finding finding = {.what = ""};
		enum history_verdict whole, each;
		struct history history;

		history_init(&history);
		make(&dice, structure, &history);
		cr_assert_eq(judge_whole(structure, &history), HISTORY_HOLDS, "round %zu", round);
		cr_assert_eq(judge_each(structure, &history, &finding), HISTORY_HOLDS, "round %zu: %s", round, finding.what);
		spoil(&dice, &history);
		whole = judge_whole(structure, &history);
		each = judge_each(structure, &history, &finding);
		cr_assert(each == whole || (!structure->exact && each == HISTORY_HOLDS), "round %zu: %s", round, finding.what);
		violated += whole == HISTORY_VIOLATED;
		by_each += each == HISTORY_VIOLATED;
		history_fini(&history);
	}
	cr_assert(violated > ROUNDS / 20 && by_each > ROUNDS / 40, "%zu and %zu of %d were spoilt", violated, by_each,
	          ROUNDS);
}

Test(history_keyed, maps_as_a_whole_and_key_by_key)
{
	compare(&map, 1);
}

Test(history_keyed, joins_as_a_whole_and_key_by_key)
{
	compare(&join, 2);
}

Test(history_keyed, names_as_a_whole_and_one_by_one_are_the_same)
{
	compare(&names, 3);
}

/* -- planted faults ---------------------------------------------------------------------------- */

/* Adds an operation after the last one. */
static void add(struct history *history, uint16_t kind, uint64_t argument, enum history_answer answer,
                const struct history_part *parts, size_t count)
{
	struct history_op op = {.called = 10 * history->count + 1,
	                        .returned = 10 * history->count + 9,
	                        .argument = argument,
	                        .result = answer,
	                        .kind = kind,
	                        .parts = (uint16_t)count};

	cr_assert(history_add(history, &op, parts));
}

#define ADD(history, kind, argument, answer, ...) \
	add(history, kind, argument, answer, (const struct history_part[]){__VA_ARGS__}, \
	    sizeof((const struct history_part[]){__VA_ARGS__}) / sizeof(struct history_part))

/* A part with its key, component and value. */
static struct history_part part(uint64_t key, uint64_t component, uint64_t value)
{
	return (struct history_part){key, component, HISTORY_NONE, value};
}

static struct history_part taken(uint64_t key, uint64_t component, uint64_t index, uint64_t value)
{
	return (struct history_part){key, component, index, value};
}

/*
 * The violation is found in the whole history. With `by_key` it is also found in the history of
 * `key` alone.
 */
static void expect_violated(struct history *history, const struct structure *structure, int by_key, uint64_t key)
{
	struct history_finding finding = {.what = ""};
	enum history_verdict each = judge_each(structure, history, &finding);

	cr_expect_eq(judge_whole(structure, history), HISTORY_VIOLATED);
	cr_expect_eq(each, by_key ? HISTORY_VIOLATED : HISTORY_HOLDS, "%s", finding.what);
	if (by_key && each == HISTORY_VIOLATED) {
		cr_expect_str_eq(finding.pattern, "object");
		cr_expect_eq(finding.object, key);
		cr_expect_eq(finding.witnesses, 1);
		cr_expect_eq(finding.witness[0], history->count - 1, "the last operation does not fit");
	}
	history_fini(history);
	history_init(history);
}

Test(history_keyed, a_map_that_does_wrong_is_found)
{
	const uint64_t none = HISTORY_NONE;
	struct history h;

	history_init(&h);
	/* A component of another key came out. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(2, 0, 20), part(2, 1, 21));
	ADD(&h, HISTORY_MAP_GET, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 21));
	expect_violated(&h, &map, 1, 1);
	/* A component came out twice. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	ADD(&h, HISTORY_MAP_GET, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_MAP_GET, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	expect_violated(&h, &map, 1, 1);
	/* An incomplete tuple gave what it had. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_MAP_PEEK, none, HISTORY_DONE, part(1, 0, 10));
	expect_violated(&h, &map, 1, 1);
	/* A component was replaced. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 12));
	expect_violated(&h, &map, 1, 1);
	/* A complete key was not found. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	add(&h, HISTORY_MAP_GET_ANY, ALL, HISTORY_NOT_NOW, NULL, 0);
	cr_assert_eq(h.op[1].parts, 0);
	expect_violated(&h, &map, 1, 1);
	/* A tuple was cleared and is still there. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	add(&h, HISTORY_MAP_CLEAR, none, HISTORY_DONE, NULL, 0);
	ADD(&h, HISTORY_MAP_PEEK, none, HISTORY_DONE, part(1, 1, 11));
	expect_violated(&h, &map, 1, 1);
}

Test(history_keyed, a_map_whose_keys_do_wrong_together_is_found)
{
	const uint64_t none = HISTORY_NONE;
	struct history h;

	history_init(&h);
	/* There are three keys, and the bound is two. */
	for (uint64_t key = 0; key < 3; key++)
		ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(key, 0, 10 * key + 1), part(key, 1, 10 * key + 2));
	expect_violated(&h, &map, 0, 0);
	/* A put was refused although there was room. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_NOT_NOW, part(2, 0, 20), part(2, 1, 21));
	expect_violated(&h, &map, 0, 0);
	/* There are six components, and the bound is five. */
	for (uint64_t key = 0; key < 6; key++)
		ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(key, 0, 10 + key));
	expect_violated(&h, &map, 0, 0);
	/* The smallest key did not come out. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(2, 0, 20), part(2, 1, 21));
	ADD(&h, HISTORY_MAP_GET_ANY, ALL, HISTORY_DONE, part(2, 0, 20), part(2, 1, 21));
	expect_violated(&h, &map, 0, 0);
	/* A look saw half of a put. */
	ADD(&h, HISTORY_MAP_PUT, none, HISTORY_DONE, part(1, 0, 10), part(1, 1, 11));
	add(&h, HISTORY_MAP_LOOK, UINT64_C(1) << 32 | 1, HISTORY_DONE, NULL, 0);
	expect_violated(&h, &map, 0, 0);
}

Test(history_keyed, a_join_that_does_wrong_is_found)
{
	const uint64_t none = HISTORY_NONE;
	struct history h;

	history_init(&h);
	/* A component of another key came out. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10), part(2, 0, 20));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 1, 11), part(2, 1, 21));
	ADD(&h, HISTORY_JOIN_TAKE, 1, HISTORY_DONE, taken(1, 0, 0, 10), taken(1, 1, 0, 21));
	expect_violated(&h, &join, 1, 1);
	/* A tuple came out twice. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 1, 11));
	ADD(&h, HISTORY_JOIN_TAKE, 1, HISTORY_DONE, taken(1, 0, 0, 10), taken(1, 1, 0, 11));
	ADD(&h, HISTORY_JOIN_TAKE, 1, HISTORY_DONE, taken(1, 0, 0, 10), taken(1, 1, 0, 11));
	expect_violated(&h, &join, 1, 1);
	/* A part of a refused insert took effect. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(2, 1, 21));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_REFUSED, part(2, 0, 20), part(1, 0, 12));
	ADD(&h, HISTORY_JOIN_TAKE, 1, HISTORY_DONE, taken(2, 0, 1, 20), taken(2, 1, 1, 21));
	expect_violated(&h, &join, 1, 2);
	/* A close dropped a tuple that is still there. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10));
	add(&h, HISTORY_JOIN_CLOSE, HISTORY_JOIN_CANCELLED, HISTORY_DONE, NULL, 0);
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 1, 11));
	expect_violated(&h, &join, 1, 1);
}

Test(history_keyed, a_join_whose_keys_do_wrong_together_is_found)
{
	const uint64_t none = HISTORY_NONE;
	struct history h;

	history_init(&h);
	/* The tuple with the later index came out first. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(2, 0, 20));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(2, 1, 21), part(1, 1, 11));
	ADD(&h, HISTORY_JOIN_TAKE, 1, HISTORY_DONE, taken(2, 0, 1, 20), taken(2, 1, 1, 21));
	expect_violated(&h, &join, 0, 0);
	/* A tuple came out with another index than its insert had. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 1, 11));
	ADD(&h, HISTORY_JOIN_TAKE, 1, HISTORY_DONE, taken(1, 0, 1, 10), taken(1, 1, 1, 11));
	expect_violated(&h, &join, 0, 0);
	/* A look came between two keys of one insert. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10), part(2, 0, 20));
	add(&h, HISTORY_JOIN_LOOK, 1, HISTORY_DONE, NULL, 0);
	expect_violated(&h, &join, 0, 0);
	/* A batch has fewer tuples than were asked for. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 1, 11));
	ADD(&h, HISTORY_JOIN_TAKE, 2, HISTORY_DONE, taken(1, 0, 0, 10), taken(1, 1, 0, 11));
	expect_violated(&h, &join, 0, 0);
	/* A take reported that there will never be enough tuples, but there may be. */
	ADD(&h, HISTORY_JOIN_INSERT, none, HISTORY_DONE, part(1, 0, 10));
	add(&h, HISTORY_JOIN_CLOSE, HISTORY_JOIN_DRAINS, HISTORY_DONE, NULL, 0);
	add(&h, HISTORY_JOIN_TAKE, 1, HISTORY_CLOSED, NULL, 0);
	expect_violated(&h, &join, 0, 0);
}

Test(history_keyed, names_that_do_wrong_are_found)
{
	const uint64_t none = HISTORY_NONE;
	struct history h;

	history_init(&h);
	/* Two objects have one name. */
	ADD(&h, HISTORY_NAME_ADD, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_NAME_CREATE, 11, HISTORY_DONE, part(1, 0, 11));
	expect_violated(&h, &names, 1, 1);
	/* An object was found after its removal. */
	ADD(&h, HISTORY_NAME_ADD, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_NAME_REMOVE, none, HISTORY_DONE, part(1, 0, none));
	ADD(&h, HISTORY_NAME_FIND, none, HISTORY_DONE, part(1, 0, 10));
	expect_violated(&h, &names, 1, 1);
	/* An object was removed twice. */
	ADD(&h, HISTORY_NAME_CREATE, 10, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_NAME_REMOVE, none, HISTORY_DONE, part(1, 0, none));
	ADD(&h, HISTORY_NAME_REMOVE, none, HISTORY_DONE, part(1, 0, none));
	expect_violated(&h, &names, 1, 1);
	/* An object was not found although it was there all the time. */
	ADD(&h, HISTORY_NAME_ADD, none, HISTORY_DONE, part(2, 0, 10));
	ADD(&h, HISTORY_NAME_ADD, none, HISTORY_REFUSED, part(2, 0, 11));
	ADD(&h, HISTORY_NAME_FIND, none, HISTORY_REFUSED, part(2, 0, none));
	expect_violated(&h, &names, 1, 2);
}

/* -- tools ------------------------------------------------------------------------------------- */

static int fails_for_names(const struct history *history, void *context)
{
	struct history_finding finding;

	(void)context;
	return judge_each(&names, history, &finding) == HISTORY_VIOLATED;
}

/*
 * The operations on the failing name remain, without those that changed nothing and do not matter.
 */
Test(history_keyed, a_failure_is_projected_shrunk_and_printed)
{
	const uint64_t none = HISTORY_NONE;
	struct history h, alone, small;
	uint32_t unit[8];
	char text[80];

	history_init(&h);
	ADD(&h, HISTORY_NAME_ADD, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_NAME_ADD, none, HISTORY_DONE, part(2, 0, 20));
	ADD(&h, HISTORY_NAME_FIND, none, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_NAME_CREATE, 12, HISTORY_DONE, part(1, 0, 10));
	ADD(&h, HISTORY_NAME_FIND, none, HISTORY_DONE, part(1, 0, 20));
	cr_assert(history_project(&h, 1, &alone) && alone.count == 4);
	history_units_of_answers(&alone, unit);
	cr_assert(history_shrink(&alone, unit, fails_for_names, NULL, &small));
	cr_assert_eq(small.count, 2);
	cr_expect_eq(small.op[0].kind, HISTORY_NAME_ADD);
	history_describe(&small, &small.op[0], 0, text, sizeof(text));
	cr_expect_str_eq(text, "add 1.0=10");
	history_describe(&small, &small.op[1], 1, text, sizeof(text));
	cr_expect_str_eq(text, "ok 1.0=20");
	history_fini(&h);
	history_fini(&alone);
	history_fini(&small);
}

Test(history_keyed, without_a_budget_nothing_is_decided)
{
	struct history_finding finding;
	struct history h;

	history_init(&h);
	ADD(&h, HISTORY_NAME_ADD, HISTORY_NONE, HISTORY_DONE, part(1, 0, 10));
	cr_expect_eq(history_check_each(&h, &history_model_names, NULL, 0, &finding), HISTORY_UNDECIDED);
	history_fini(&h);
	cr_expect_eq(history_check_each(&h, &history_model_names, NULL, 0, &finding), HISTORY_HOLDS,
	             "an empty history holds");
}
