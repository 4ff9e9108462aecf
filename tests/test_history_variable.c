/*
 * test_history_variable.c - the checkers of registers, snapshots and transactions, compared with
 * the general checker and on planted faults.
 */
#include "history_kit.h"

#include <criterion/criterion.h>
#include <inttypes.h>

enum { MOST_OBJECTS = 3, INITIAL = 1 };

struct setting {
	uint64_t objects;
	int single; /* one part per operation */
	int aborts;
};

/* -- making histories -------------------------------------------------------------------------- */

struct world {
	uint64_t version[MOST_OBJECTS], value[MOST_OBJECTS];
};

/* Draws distinct objects, and returns their number. */
static uint32_t draw_objects(struct kit_dice *dice, const struct setting *setting, uint64_t objects[])
{
	uint32_t wanted = setting->single ? 1 : 1 + (uint32_t)kit_below(dice, setting->objects), count = 0;

	for (uint64_t o = kit_below(dice, setting->objects); count < wanted; o = (o + 1) % setting->objects)
		objects[count++] = o;
	return count;
}

static void read_part(const struct world *world, uint64_t object, struct history_part *part)
{
	*part = (struct history_part){object, world->version[object], HISTORY_NONE, world->value[object]};
}

static void write_part(struct kit_dice *dice, struct world *world, uint64_t object, struct history_part *part)
{
	uint64_t before = kit_below(dice, 2) == 0 ? world->version[object] : HISTORY_NONE;

	world->value[object] = kit_below(dice, 100);
	*part = (struct history_part){object, before, ++world->version[object], world->value[object]};
}

static void make_one(struct kit_dice *dice, const struct setting *setting, struct world *world, struct history_op *op,
                     struct history_part parts[])
{
	uint64_t objects[MOST_OBJECTS], choice = kit_below(dice, setting->aborts ? 5 : 4);
	int moved = 0;

	op->parts = (uint16_t)draw_objects(dice, setting, objects);
	op->kind = choice < 2 ? HISTORY_READ : HISTORY_WRITE;
	for (uint32_t i = 0; i < op->parts; i++) {
		read_part(world, objects[i], &parts[i]);
		moved |= world->version[objects[i]] > INITIAL;
	}
	if (choice == 4 && moved) {
		op->kind = HISTORY_ABORTED;
		for (uint32_t i = 0; i < op->parts; i++)
			parts[i].before -= parts[i].before > INITIAL && (op->parts == 1 || kit_below(dice, 2) == 0);
		moved = 0;
		for (uint32_t i = 0; i < op->parts; i++)
			moved |= parts[i].before < world->version[objects[i]];
		/* At least one version is old. */
		for (uint32_t i = 0; i < op->parts && !moved; i++)
			moved = parts[i].before > INITIAL ? (parts[i].before--, 1) : 0;
		return;
	}
	for (uint32_t i = 0; i < op->parts && op->kind == HISTORY_WRITE; i++) {
		if (setting->single || i == 0 || kit_below(dice, 3) != 0)
			write_part(dice, world, objects[i], &parts[i]);
	}
}

static void make(struct kit_dice *dice, const struct setting *setting, size_t count, struct history *history)
{
	struct world world = {{INITIAL, INITIAL, INITIAL}, {0, 0, 0}};
	uint64_t stretch = 1 + kit_below(dice, 60);

	while (history->count < count) {
		struct history_op op = {.argument = HISTORY_NONE, .result = KIT_STEP * (history->count + 1)};
		struct history_part parts[MOST_OBJECTS];

		make_one(dice, setting, &world, &op, parts);
		kit_stretch(dice, &op, history->count, stretch);
		cr_assert(history_add(history, &op, parts));
	}
}

/* Returns the write that published a version, or NULL. */
static struct history_part *publisher(struct history *history, uint64_t object, uint64_t version)
{
	for (size_t i = 0; i < history->part_count; i++) {
		if (history->part[i].object == object && history->part[i].after == version)
			return &history->part[i];
	}
	return NULL;
}

static void spoil(struct kit_dice *dice, struct history *history)
{
	struct history_op *op = kit_any(dice, history);
	struct history_part *part = &history->part[op->part + kit_below(dice, op->parts)], *other;
	uint64_t step = kit_below(dice, 2);

	switch (kit_below(dice, 6)) {
	case 0: /* a read sees a neighbouring version, with its value */
	case 1:
		other = publisher(history, part->object, part->before + 1 - 2 * step);
		if (op->kind == HISTORY_READ && other != NULL) {
			part->before = other->after;
			part->value = other->value;
			return;
		}
		break;
	case 2: /* an abort names another version */
		if (op->kind == HISTORY_ABORTED) {
			part->before += 1;
			return;
		}
		break;
	case 3: /* another value was seen */
		if (kit_below(dice, 4) == 0) {
			part->value += 1;
			return;
		}
		break;
	default: break;
	}
	kit_move(dice, history, 1 + kit_below(dice, 40));
}

/* -- the fast checker compared with the general one -------------------------------------------- */

/* The order that the checker gives respects real time, and the model agrees with it. */
static void check_order(const struct history *history, const uint32_t order[])
{
	struct history ordered;
	struct history_finding finding;
	uint64_t initial = INITIAL;

	history_init(&ordered);
	for (size_t i = 0; i < history->count; i++) {
		struct history_op op = history->op[order[i]];

		for (size_t k = i + 1; k < history->count; k++)
			cr_assert(history->op[order[k]].returned >= op.called, "the order is against real time");
		op.called = op.returned = i;
		cr_assert(history_add(&ordered, &op, &history->part[op.part]));
	}
	cr_assert(history_check_general(&ordered, &history_model_variables, &initial, KIT_BUDGET, NULL, &finding) ==
	          HISTORY_HOLDS);
	history_fini(&ordered);
}

static enum history_verdict check_fast(const struct setting *setting, const struct history *history,
                                       struct history_finding *finding)
{
	uint32_t order[KIT_MOST_OPS];
	enum history_verdict serial = history_check_serial(history, INITIAL, order, finding);

	if (serial == HISTORY_HOLDS)
		check_order(history, order);
	if (setting->single) {
		struct history_finding other;
		enum history_verdict alone = history_check_register(history, INITIAL, &other);

		cr_assert(alone == serial, "register says %d (%s), serial %d (%s)", (int)alone,
		          alone == HISTORY_HOLDS ? "" : other.what, (int)serial, serial == HISTORY_HOLDS ? "" : finding->what);
	}
	return serial;
}

static void compare(const struct setting *setting, uint64_t seed, unsigned rounds)
{
	struct kit_dice dice = {seed};
	unsigned held = 0, broken = 0;
	uint64_t initial = INITIAL;

	for (unsigned round = 0; round < rounds; round++) {
		struct history history;
		struct history_finding finding, exact_finding;
		enum history_verdict fast, exact;
		unsigned spoils = (unsigned)kit_below(&dice, 3);

		history_init(&history);
		make(&dice, setting, 2 + (size_t)kit_below(&dice, 9), &history);
		for (unsigned i = 0; i < spoils; i++)
			spoil(&dice, &history);
		exact = history_check_general(&history, &history_model_variables, &initial, KIT_BUDGET, NULL, &exact_finding);
		fast = check_fast(setting, &history, &finding);
		if (fast != exact)
			history_print(stderr, &history, fast == HISTORY_HOLDS ? &exact_finding : &finding, NULL);
		cr_assert(exact == HISTORY_HOLDS || exact == HISTORY_VIOLATED, "round %u: %s", round, exact_finding.what);
		cr_assert(spoils != 0 || exact == HISTORY_HOLDS, "round %u: a run of the model does not hold", round);
		cr_assert(fast == exact, "round %u: fast says %d (%s), general %d", round, (int)fast,
		          fast == HISTORY_HOLDS ? "" : finding.what, (int)exact);
		held += exact == HISTORY_HOLDS;
		broken += exact == HISTORY_VIOLATED;
		history_fini(&history);
	}
	cr_assert(held > rounds / 10 && broken > rounds / 10, "%u hold, %u do not: nothing was compared", held, broken);
}

Test(history_variable, register_agrees_with_the_general_checker)
{
	struct setting setting = {.objects = 2, .single = 1};

	compare(&setting, 1, 20000);
	setting.aborts = 1;
	compare(&setting, 2, 20000);
}

Test(history_variable, serial_agrees_with_the_general_checker)
{
	struct setting setting = {.objects = 3};

	compare(&setting, 3, 20000);
	setting.aborts = 1;
	compare(&setting, 4, 20000);
}

/*
 * The stamps of a run explain its history, and so do stamps in the order that the serial checker
 * gives. If a spoilt history has no such order, its stamps are refused.
 */
Test(history_variable, stamps_agree_with_the_order_that_they_name)
{
	struct setting setting = {.objects = 3};
	struct kit_dice dice = {5};
	unsigned held = 0, refused = 0;

	for (unsigned round = 0; round < 20000; round++) {
		struct history history;
		struct history_finding finding;
		uint32_t order[KIT_MOST_OPS];
		enum history_verdict serial;

		history_init(&history);
		make(&dice, &setting, 2 + (size_t)kit_below(&dice, 9), &history);
		cr_assert(history_check_stamps(&history, INITIAL, &finding) == HISTORY_HOLDS, "%s", finding.what);
		spoil(&dice, &history);
		serial = history_check_serial(&history, INITIAL, order, &finding);
		for (uint32_t i = 0; serial == HISTORY_HOLDS && i < history.count; i++)
			history.op[order[i]].result = i;
		if (serial == HISTORY_HOLDS)
			cr_assert(history_check_stamps(&history, INITIAL, &finding) == HISTORY_HOLDS, "round %u: %s", round,
			          finding.what);
		else
			cr_assert(history_check_stamps(&history, INITIAL, &finding) == HISTORY_VIOLATED, "round %u", round);
		held += serial == HISTORY_HOLDS;
		refused += serial != HISTORY_HOLDS;
		history_fini(&history);
	}
	cr_assert(held > 2000 && refused > 2000, "%u hold, %u do not", held, refused);
}

/* -- planted faults: the checker names each of them -------------------------------------------- */

static void add(struct history *history, uint64_t called, uint64_t returned, enum history_kind kind, uint64_t stamp,
                uint16_t count, const struct history_part parts[])
{
	struct history_op op = {
		.called = called, .returned = returned, .kind = (uint16_t)kind, .result = stamp, .parts = count};

	cr_assert(history_add(history, &op, parts));
}
#define ADD(history, called, returned, kind, ...) \
	add((history), (called), (returned), (kind), 0, \
	    (uint16_t)(sizeof((const struct history_part[]){__VA_ARGS__}) / sizeof(struct history_part)), \
	    (const struct history_part[]){__VA_ARGS__})
#define SAW(object, version) \
	{ \
		(object), (version), HISTORY_NONE, (version) \
	}
#define SET(object, version) \
	{ \
		(object), HISTORY_NONE, (version), (version) \
	}

static void expect(struct history *history, const char *pattern)
{
	struct history_finding finding = {0}, other = {0};

	cr_assert(history_check_serial(history, INITIAL, NULL, &finding) == HISTORY_VIOLATED, "%s: serial", pattern);
	cr_assert(strcmp(finding.pattern, pattern) == 0, "found %s, not %s: %s", finding.pattern, pattern, finding.what);
	cr_assert(finding.witnesses != 0);
	if (history_check_register(history, INITIAL, &other) != HISTORY_MALFORMED)
		cr_assert(other.pattern != NULL && strcmp(other.pattern, pattern) == 0, "register found %s, not %s",
		          other.pattern, pattern);
	history_fini(history);
}

Test(history_variable, each_fault_of_versions_is_named)
{
	struct history history;
	struct history_finding finding;

	history_init(&history);
	ADD(&history, 0, 1, HISTORY_WRITE, SET(0, 2));
	ADD(&history, 2, 3, HISTORY_WRITE, SET(0, 2));
	cr_assert(history_check_serial(&history, INITIAL, NULL, &finding) == HISTORY_VIOLATED);
	cr_assert(finding.witnesses == 2, "both are shown");
	expect(&history, "version twice");
	ADD(&history, 0, 1, HISTORY_WRITE, SET(0, 3));
	expect(&history, "version missing");
	ADD(&history, 0, 1, HISTORY_READ, SAW(0, 2));
	expect(&history, "version missing");
	ADD(&history, 0, 1, HISTORY_WRITE, {0, HISTORY_NONE, 2, 50});
	ADD(&history, 2, 3, HISTORY_READ, {0, 2, HISTORY_NONE, 51});
	expect(&history, "value");
	ADD(&history, 0, 1, HISTORY_WRITE, SET(0, 2));
	ADD(&history, 2, 3, HISTORY_WRITE, {0, 1, 3, 0});
	expect(&history, "not based");
	ADD(&history, 0, 1, HISTORY_WRITE, SET(0, 2));
	ADD(&history, 2, 3, HISTORY_READ, SAW(0, 1));
	expect(&history, "order");
	/* An abort before the first write, and an abort without any write. */
	ADD(&history, 0, 1, HISTORY_ABORTED, SAW(0, 1));
	ADD(&history, 2, 3, HISTORY_WRITE, SET(0, 2));
	expect(&history, "order");
	ADD(&history, 0, 1, HISTORY_ABORTED, SAW(0, 1));
	expect(&history, "abort");
}

Test(history_variable, a_torn_snapshot_is_found)
{
	struct history history;

	history_init(&history);
	ADD(&history, 0, 9, HISTORY_WRITE, SET(0, 2), SET(1, 2));
	ADD(&history, 1, 8, HISTORY_READ, SAW(0, 2), SAW(1, 1));
	expect(&history, "order");
	/* Two snapshots see two writes in opposite orders. */
	ADD(&history, 0, 9, HISTORY_WRITE, SET(0, 2));
	ADD(&history, 0, 9, HISTORY_WRITE, SET(1, 2));
	ADD(&history, 1, 8, HISTORY_READ, SAW(0, 2), SAW(1, 1));
	ADD(&history, 1, 8, HISTORY_READ, SAW(0, 1), SAW(1, 2));
	expect(&history, "order");
}

Test(history_variable, write_skew_is_found)
{
	struct history history;

	history_init(&history);
	ADD(&history, 0, 9, HISTORY_WRITE, SAW(0, 1), SET(1, 2));
	ADD(&history, 0, 9, HISTORY_WRITE, SAW(1, 1), SET(0, 2));
	expect(&history, "order");
}

Test(history_variable, stamps_that_explain_nothing_are_refused)
{
	struct history history;
	struct history_finding finding;
	struct history_part write = SET(0, 2), old = SAW(0, 1), fresh = SAW(0, 2);

	history_init(&history);
	add(&history, 0, 9, HISTORY_WRITE, 5, 1, &write);
	add(&history, 0, 9, HISTORY_READ, 5, 1, &fresh);
	add(&history, 0, 9, HISTORY_READ, 4, 1, &old);
	cr_assert(history_check_stamps(&history, INITIAL, &finding) == HISTORY_HOLDS, "%s", finding.what);
	history.op[2].result = 5;
	cr_assert(history_check_stamps(&history, INITIAL, &finding) == HISTORY_VIOLATED,
	          "an old version at the write's stamp");
	history.op[2].result = 4;
	history.op[1].result = 4;
	cr_assert(history_check_stamps(&history, INITIAL, &finding) == HISTORY_VIOLATED, "a version before its stamp");
	history.op[1].result = 5;
	history.op[2].called = history.op[2].returned = 20;
	cr_assert(history_check_stamps(&history, INITIAL, &finding) == HISTORY_VIOLATED,
	          "a small stamp after a larger one");
	cr_assert(strcmp(finding.pattern, "order") == 0);
	history_fini(&history);
}
