/*
 * test_commit.c - commits: they happen completely or not at all, and say what they refuse. A commit
 * that is stopped at any instruction blocks no kind of writer.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <string.h>
#include <weir/var.h>

#include "stepped.h"
#include "var/commit.h"
#include "variables.h"

/* -- statuses ---------------------------------------------------------------------------------- */

Test(commit, changes_all_and_says_the_numbers_in_the_order_of_parts)
{
	weir_var *a = variable(1), *b = variable(2);
	weir_tensor *nine = number(9), *eight = number(8);
	struct weir_commit_part parts[2] = {{b, 3, nine}, {a, 1, eight}};
	weir_read published[2];

	assign(b, 3);
	assign(b, 4);
	cr_assert_eq(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, published, NULL), WEIR_OK);
	cr_expect_eq(published[0].version, 4);
	cr_expect_eq(published[1].version, 2);
	cr_expect_eq(published[0].tensor, nine);
	cr_expect_eq(published[1].tensor, eight);
	weir_read_release_many(published, 2);
	cr_expect_eq(value_in(b), 9);
	cr_expect_eq(value_in(a), 8);
	weir_tensor_release(nine);
	weir_tensor_release(eight);
	weir_var_destroy(a, NULL);
	weir_var_destroy(b, NULL);
	expect_nothing_left();
}

Test(commit, an_abort_names_the_variable_its_version_and_the_expected_one)
{
	weir_var *vars[2] = {variable(1), named_variable("bias", 1)};
	weir_read published[2] = {{.version = 42}, {.version = 42}};
	weir_tensor *two = number(2);
	struct weir_commit_part parts[2] = {{vars[0], 1, two}, {vars[1], 5, two}};
	weir_error error = {WEIR_OK, ""};

	assign(vars[1], 7);
	cr_expect_eq(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, published, &error), WEIR_ABORTED);
	cr_expect_eq(error.code, WEIR_ABORTED);
	cr_expect_str_eq(error.message, "commit of 2 variables: variable \"bias\" is at version 2, expected 5");
	cr_expect_eq(published[0].version, 42, "untouched");
	cr_expect_eq(value_in(vars[0]), 1);
	cr_expect_eq(value_in(vars[1]), 7);
	weir_tensor_release(two);
	weir_var_destroy(vars[0], NULL);
	weir_var_destroy(vars[1], NULL);
	expect_nothing_left();
}

Test(commit, a_part_conditional_on_an_old_version_aborts_though_the_value_came_back)
{
	weir_var *vars[2] = {variable(1), variable(1)};

	assign(vars[1], 2);
	assign(vars[1], 1);
	cr_expect_eq(commit_all(vars, 2, 1, 5, NULL), WEIR_ABORTED);
	cr_expect_eq(value_in(vars[0]), 1);
	cr_expect_eq(value_in(vars[1]), 1);
	weir_var_destroy(vars[0], NULL);
	weir_var_destroy(vars[1], NULL);
	expect_nothing_left();
}

Test(commit, initializes_variables_that_have_no_value)
{
	weir_var *vars[2] = {empty_variable("a"), empty_variable("b")};

	cr_expect_eq(commit_all(vars, 2, 1, 5, NULL), WEIR_ABORTED);
	cr_expect_eq(commit_all(vars, 2, 0, 5, NULL), WEIR_OK);
	cr_expect_eq(weir_var_version(vars[1]), 1);
	cr_expect_eq(value_in(vars[1]), 5);
	cr_expect_eq(commit_all(vars, 2, 0, 6, NULL), WEIR_ABORTED);
	weir_var_destroy(vars[0], NULL);
	weir_var_destroy(vars[1], NULL);
	expect_nothing_left();
}

static void expect_refused(const struct weir_commit_part parts[], size_t count, const char *message)
{
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_var_commit(parts, count, WEIR_NO_DEADLINE, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, message), "\"%s\" is not in \"%s\"", message, error.message);
}

Test(commit, bad_arguments_are_named_and_change_nothing)
{
	static struct weir_commit_part too_many[WEIR_COMMIT_MAX_PARTS + 1];
	weir_var *a = named_variable("a", 1), *b = named_variable("b", 1);
	weir_tensor *two = number(2), *wrong = NULL;
	struct weir_commit_part parts[3] = {{a, 1, two}, {b, 1, two}, {a, 1, two}};

	cr_assert_eq(weir_tensor_scalar_f32(1, &wrong), WEIR_OK);
	expect_refused(NULL, 1, "commit: parts is NULL");
	expect_refused(parts, 0, "commit: 0 parts");
	expect_refused(too_many, WEIR_COMMIT_MAX_PARTS + 1, "commit: 1025 parts");
	expect_refused(parts, 3, "variable \"a\" occurs twice");
	parts[1].value = wrong;
	expect_refused(parts, 2, "variable \"b\": dtype must be i64, got f32");
	parts[1].value = NULL;
	expect_refused(parts, 2, "variable \"b\": value is NULL");
	parts[1] = (struct weir_commit_part){NULL, 1, two};
	expect_refused(parts, 2, "the variable of part 1 is NULL");
	parts[1] = (struct weir_commit_part){b, UINT64_MAX, two};
	expect_refused(parts, 2, "the expected version of part 1 is not a version number");
	cr_expect_eq(weir_var_version(a), 1);
	cr_expect_eq(weir_var_version(b), 1);
	weir_tensor_release(two);
	weir_tensor_release(wrong);
	weir_var_destroy(a, NULL);
	weir_var_destroy(b, NULL);
	expect_nothing_left();
}

Test(commit, a_shape_that_does_not_fit_is_refused)
{
	weir_shape pair = {1, {2}}, triple = {1, {3}};
	int64_t numbers[3] = {1, 2, 3};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "p", .shape = &pair};
	weir_tensor *value = NULL;
	weir_var *var = NULL;

	options.allocator = &variables_memory;
	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &triple, numbers, &variables_memory, &value), WEIR_OK);
	expect_refused(&(struct weir_commit_part){var, 0, value}, 1, "shape must fit");
	weir_tensor_release(value);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

Test(commit, takes_as_many_parts_as_it_says)
{
	static struct weir_commit_part parts[WEIR_COMMIT_MAX_PARTS];
	static weir_read published[WEIR_COMMIT_MAX_PARTS];
	weir_error error;

	/* The order is neither that of the addresses nor its reverse. */
	for (size_t i = 0; i < WEIR_COMMIT_MAX_PARTS; i++)
		parts[i * 389 % WEIR_COMMIT_MAX_PARTS].var = variable(0);
	for (size_t i = 0; i < WEIR_COMMIT_MAX_PARTS; i++) {
		parts[i].expected = 1;
		parts[i].value = number((int64_t)i);
	}
	cr_assert_eq(weir_var_commit(parts, WEIR_COMMIT_MAX_PARTS, WEIR_NO_DEADLINE, published, NULL), WEIR_OK);
	for (size_t i = 0; i < WEIR_COMMIT_MAX_PARTS; i++) {
		cr_assert_eq(value_in(parts[i].var), (int64_t)i);
		cr_assert_eq(published[i].version, 2);
		weir_read_release(&published[i]);
		parts[i].expected = i == 700 ? 1 : 2;
	}
	cr_expect_eq(weir_var_commit(parts, WEIR_COMMIT_MAX_PARTS, WEIR_NO_DEADLINE, published, &error), WEIR_ABORTED);
	for (size_t i = 0; i < WEIR_COMMIT_MAX_PARTS; i++) {
		cr_assert_eq(weir_var_version(parts[i].var), 2);
		weir_tensor_release(parts[i].value);
		weir_var_destroy(parts[i].var, NULL);
	}
	expect_nothing_left();
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Commits to three variables, which are destroyed before it returns. */
static enum weir_status commit_with(const weir_allocator *allocator, void *context)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = allocator};
	weir_tensor *value = context;
	weir_var *vars[3] = {NULL, NULL, NULL};
	enum weir_status status = WEIR_OK;

	for (size_t i = 0; i < 3 && status == WEIR_OK; i++)
		status = weir_var_create(value, &options, &vars[i], NULL);
	if (status == WEIR_OK) {
		struct weir_commit_part parts[3] = {{vars[0], 1, value}, {vars[1], 1, value}, {vars[2], 1, value}};

		status = weir_var_commit(parts, 3, WEIR_NO_DEADLINE, NULL, NULL);
		for (size_t i = 0; i < 3; i++)
			cr_assert_eq(weir_var_version(vars[i]), status == WEIR_OK ? 2 : 1);
	}
	for (size_t i = 0; i < 3; i++)
		weir_var_destroy(vars[i], NULL);
	return weir_reclaim_flush(weir_deadline_in(variables_patience_ns)) == WEIR_OK ? status : WEIR_INTERNAL;
}

Test(commit, survives_every_allocation_failing)
{
	weir_tensor *value = number(3);

	/*
	 * For each of three variables: the variable, its name and its version. Then three versions and
	 * the cell.
	 */
	cr_assert_eq(fail_each_allocation(commit_with, value), 13);
	weir_tensor_release(value);
	expect_nothing_left();
}

Test(commit, over_the_budget_it_waits_until_its_deadline_and_changes_nothing)
{
	weir_shape large = {1, {100000}};
	weir_var *vars[2] = {variable(1), NULL};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_U8, .name = "large",
	                                   .allocator = &variables_memory};
	weir_tensor_builder *builder;
	weir_tensor *value = NULL, *two = number(2);
	struct weir_commit_part parts[2];
	weir_error error = {WEIR_OK, ""};
	weir_read read;

	cr_assert_eq(weir_tensor_builder_create(WEIR_U8, &large, &variables_memory, &builder, NULL), WEIR_OK);
	memset(weir_tensor_builder_data(builder), 7, 100000);
	cr_assert_eq(weir_tensor_builder_finish(builder, &value), WEIR_OK);
	cr_assert_eq(weir_var_create(value, &options, &vars[1], NULL), WEIR_OK);
	cr_assert_eq(weir_var_read(vars[1], &read), WEIR_OK);
	cr_assert_eq(weir_var_assign(vars[1], value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_reclaim_set_budget(1000);
	parts[0] = (struct weir_commit_part){vars[0], 1, two};
	parts[1] = (struct weir_commit_part){vars[1], 2, value};
	cr_expect_eq(weir_var_commit(parts, 2, weir_deadline_in(3000000), NULL, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_not_null(strstr(error.message, "budget"), "%s", error.message);
	cr_expect_eq(weir_var_version(vars[0]), 1);
	weir_read_release(&read);
	cr_expect_eq(weir_var_commit(parts, 2, weir_deadline_in(variables_patience_ns), NULL, &error), WEIR_OK);
	weir_reclaim_set_budget(0);
	weir_tensor_release(value);
	weir_tensor_release(two);
	weir_var_destroy(vars[0], NULL);
	weir_var_destroy(vars[1], NULL);
	expect_nothing_left();
}

/* -- stopped at each instruction --------------------------------------------------------------- */

enum { PAIR = 2, OURS = 100, THEIRS = 200, COST = 29 };

/*
 * Two variables, first the one with the lower address, at version 1 with value 0; and the outcome
 * of a commit of OURS to both, which is stopped.
 */
struct scene {
	weir_var *vars[PAIR];
	enum weir_status status;
	weir_error error;
};

static struct scene *open_scene(void)
{
	static struct scene scene;
	weir_var *a = variable(0), *b = variable(0);

	scene = (struct scene){.vars = {(uintptr_t)a < (uintptr_t)b ? a : b, (uintptr_t)a < (uintptr_t)b ? b : a}};
	return &scene;
}

static void close_scene(struct scene *scene)
{
	for (size_t i = 0; i < PAIR; i++)
		weir_var_destroy(scene->vars[i], NULL);
	expect_nothing_left();
}

static void commit_ours(void *context)
{
	struct scene *scene = context;

	scene->status = commit_all(scene->vars, PAIR, 1, OURS, &scene->error);
}

static int64_t values_now(struct scene *scene, int64_t values[])
{
	weir_read reads[PAIR];

	cr_assert_eq(weir_var_snapshot(scene->vars, PAIR, reads, NULL), WEIR_OK);
	for (size_t i = 0; i < PAIR; i++)
		values[i] = value_of(&reads[i]);
	weir_read_release_many(reads, PAIR);
	return values[0];
}

/*
 * Runs our commit, stopped at each of its instructions in turn. While it stands still, `meanwhile`
 * and a collection run to their ends. If the commit blocked them, the test would not end. `judge`
 * checks the outcome of the commit.
 */
static void stop_commit_everywhere(void (*meanwhile)(struct scene *scene),
                                   void (*judge)(struct scene *scene, size_t at))
{
	struct stepped commit = {.prepare = meet_weir, .call = commit_ours};
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		struct scene *scene = open_scene();

		commit.context = scene;
		stands = stepped_start(&commit, at);
		meanwhile(scene);
		collect_now();
		stepped_finish(&commit);
		judge(scene, at);
		close_scene(scene);
	}
}

/* The visible value is 0 and, from some moment on, OURS. */
static void check_seen(int64_t *last, int64_t value, const char *who)
{
	cr_assert(value == 0 || value == OURS, "%s: %" PRId64, who, value);
	cr_assert_geq(value, *last, "%s goes back", who);
	*last = value;
}

/*
 * The first snapshot either comes before the commit or helps it to its end. After that nothing
 * changes, because the commit stands still.
 */
static void look_around(struct scene *scene)
{
	int64_t values[PAIR], last = 0;

	for (int round = 0; round < 2; round++) {
		check_seen(&last, values_now(scene, values), "snapshot");
		cr_assert_eq(values[0], values[1], "torn: %" PRId64 ", %" PRId64, values[0], values[1]);
		for (size_t i = 0; i < PAIR; i++) {
			check_seen(&last, value_in(scene->vars[i]), "read");
			check_seen(&last, weir_var_version(scene->vars[i]) == 2 ? OURS : 0, "version");
			cr_assert_eq(last, value_in(scene->vars[0]), "the first read decides the commit");
		}
	}
}

static void expect_committed(struct scene *scene, size_t at)
{
	cr_assert_eq(scene->status, WEIR_OK, "stopped at %zu: readers never abort a commit", at);
	for (size_t i = 0; i < PAIR; i++) {
		cr_assert_eq(value_in(scene->vars[i]), OURS);
		cr_assert_eq(weir_var_version(scene->vars[i]), 2);
	}
}

Test(commit, stopped_anywhere_readers_see_all_or_nothing)
{
	stop_commit_everywhere(look_around, expect_committed);
}

static void assign_low(struct scene *scene)
{
	assign(scene->vars[0], THEIRS);
}

static void assign_high(struct scene *scene)
{
	assign(scene->vars[1], THEIRS);
}

/*
 * Either our commit came first and then the assignment, or the assignment came first and our commit
 * failed and said why.
 */
static void expect_one_order(struct scene *scene, size_t at, size_t assigned)
{
	int64_t values[PAIR];
	int ours = scene->status == WEIR_OK;

	values_now(scene, values);
	cr_assert_eq(values[assigned], THEIRS, "stopped at %zu: the assignment is lost", at);
	cr_assert_eq(values[1 - assigned], ours ? OURS : 0, "stopped at %zu", at);
	cr_assert_eq(weir_var_version(scene->vars[assigned]), ours ? 3 : 2);
	cr_assert_eq(weir_var_version(scene->vars[1 - assigned]), ours ? 2 : 1);
	if (ours)
		return;
	cr_assert_eq(scene->status, WEIR_ABORTED);
	cr_assert_str_eq(scene->error.message, "commit of 2 variables: variable \"v\" is at version 2, expected 1");
	/* What the commit left behind hinders no other call. */
	cr_assert_eq(value_in(scene->vars[1 - assigned]), 0);
	assign(scene->vars[1 - assigned], 7);
	cr_assert_eq(value_in(scene->vars[1 - assigned]), 7);
	cr_assert_eq(weir_var_version(scene->vars[1 - assigned]), 2);
}

static void expect_low_assigned(struct scene *scene, size_t at)
{
	expect_one_order(scene, at, 0);
}

static void expect_high_assigned(struct scene *scene, size_t at)
{
	expect_one_order(scene, at, 1);
}

Test(commit, stopped_anywhere_a_single_write_goes_on_and_is_not_lost)
{
	stop_commit_everywhere(assign_low, expect_low_assigned);
	stop_commit_everywhere(assign_high, expect_high_assigned);
}

/* The outcome of the other commit, which the thread of the test makes. */
static enum weir_status theirs;

static void commit_theirs(struct scene *scene)
{
	weir_var *turned[PAIR] = {scene->vars[1], scene->vars[0]};

	theirs = commit_all(turned, PAIR, 1, THEIRS, NULL);
}

static void expect_one_of_two(struct scene *scene, size_t at)
{
	int64_t values[PAIR];

	values_now(scene, values);
	cr_assert_eq(values[0], values[1], "stopped at %zu: torn", at);
	cr_assert_eq(scene->status == WEIR_OK, theirs == WEIR_ABORTED, "stopped at %zu: one of two succeeds", at);
	cr_assert_eq(scene->status == WEIR_ABORTED, theirs == WEIR_OK, "stopped at %zu: one of two succeeds", at);
	cr_assert_eq(values[0], scene->status == WEIR_OK ? OURS : THEIRS);
	cr_assert_eq(weir_var_version(scene->vars[0]), 2);
}

Test(commit, stopped_anywhere_another_over_the_same_variables_in_the_opposite_order_goes_on)
{
	stop_commit_everywhere(commit_theirs, expect_one_of_two);
}

/*
 * The commit aborts, unless it has succeeded. Its version may stay at the head of the low variable,
 * and reads look through it.
 */
static void abort_it_and_look(struct scene *scene)
{
	weir_read reads[20];
	int64_t values[PAIR];

	assign(scene->vars[1], THEIRS);
	values_now(scene, values);
	for (size_t i = 0; i < 20; i++) { /* more than there are hazard slots */
		cr_assert_eq(weir_var_read(scene->vars[0], &reads[i]), WEIR_OK);
		cr_assert_eq(value_of(&reads[i]), values[0]);
		collect_now();
	}
	weir_read_release_many(reads, 20);
}

Test(commit, stopped_anywhere_and_aborted_it_is_looked_through)
{
	stop_commit_everywhere(abort_it_and_look, expect_high_assigned);
}

static int is_half_way(weir_var *low)
{
	/* [seq_cst] as in a writer */
	struct weiri_version *head = weiri_load_seq_cst(&low->head);

	/*
	 * A head without a stamp belongs to the commit that stands still, so its cell is not freed. The
	 * cell of an earlier, aborted commit may be freed.
	 */
	return weiri_load_seq_cst(&head->stamp) == WEIRI_STAMP_NONE && head->commit != NULL &&
	       weiri_load_seq_cst(&head->commit->state) == WEIRI_COMMIT_INSTALLING;
}

/*
 * Stops a commit when its part at `low` is installed and nothing is decided, wherever the compiler
 * put that moment.
 */
static void stop_half_way(struct stepped *commit, weir_var *low)
{
	enum { ABOUT = 24 };
	/* The instruction at which it was found the last time; the search begins shortly before. */
	static size_t found;
	int stands = stepped_start(commit, found > ABOUT ? found - ABOUT : 0);

	while (stands && !is_half_way(low))
		stands = stepped_next(commit);
	cr_assert(stands, "a commit of two parts never stands with one part installed");
	found = commit->count;
}

struct helper {
	weir_var *var;
	enum weir_status status;
};

static void assign_and_help(void *context)
{
	struct helper *helper = context;
	weir_tensor *tensor = number(THEIRS);

	helper->status = weir_var_assign(helper->var, tensor, WEIR_NO_DEADLINE, NULL, NULL);
	weir_tensor_release(tensor);
}

/* Our commit ends while a helper stands still. Then one of these happens to its variables. */
enum after { AFTER_COMMIT, AFTER_ABORT, AFTER_TWO_ABORTS, AFTER_DESTROY };

static int aborted_another;

/*
 * Commits to the low variable, if the helper has not changed it yet, and to another one, which
 * changes before the commit reaches it.
 */
static void abort_another(struct scene *scene)
{
	struct scene another = *scene;
	struct stepped commit = {.prepare = meet_weir, .call = commit_ours, .context = &another};
	weir_var *high = variable(0);

	another.vars[1] = high;
	if ((uintptr_t)high > (uintptr_t)another.vars[0] && weir_var_version(another.vars[0]) == 1) {
		stop_half_way(&commit, another.vars[0]);
		assign(high, 1);
		stepped_finish(&commit);
		cr_assert_eq(another.status, WEIR_ABORTED);
		aborted_another = 1;
	}
	weir_var_destroy(high, NULL);
}

static void end_commit(struct scene *scene, struct stepped *commit, enum after after)
{
	if (after == AFTER_ABORT || after == AFTER_TWO_ABORTS)
		assign(scene->vars[1], 1);
	stepped_finish(commit);
	collect_now();
	if (after == AFTER_TWO_ABORTS)
		abort_another(scene);
	if (after == AFTER_DESTROY) {
		weir_var_destroy(scene->vars[1], NULL);
		scene->vars[1] = NULL;
	}
	collect_now();
	/*
	 * Publishes new versions, perhaps at old addresses, of the variables in which the helper may
	 * still try to install the old parts.
	 */
	for (size_t i = 0; i < PAIR && after <= AFTER_ABORT; i++)
		assign(scene->vars[i], 5);
	collect_now();
}

/*
 * A writer helps the commit and is stopped at each instruction of the help. What it does after the
 * commit has ended must change nothing.
 */
static void stop_helper_everywhere(enum after after)
{
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		struct scene *scene = open_scene();
		struct helper helper = {.var = scene->vars[0]};
		struct stepped help = {.prepare = meet_weir, .call = assign_and_help, .context = &helper};
		struct stepped commit = {.prepare = meet_weir, .call = commit_ours, .context = scene};
		uint64_t version;

		stop_half_way(&commit, scene->vars[0]);
		stands = stepped_start(&help, at);
		end_commit(scene, &commit, after);
		stepped_finish(&help);
		cr_assert_eq(helper.status, WEIR_OK);
		/*
		 * The versions are the first one, that of the helper, that of our commit if it succeeded,
		 * and that of the assignment of 5 if there was one.
		 */
		version = 2u + (scene->status == WEIR_OK ? 1u : 0u) + (after <= AFTER_ABORT ? 1u : 0u);
		cr_assert_eq(weir_var_version(scene->vars[0]), version, "stopped at %zu", at);
		if (after <= AFTER_ABORT)
			cr_assert_eq(value_in(scene->vars[1]), 5, "stopped at %zu: a helper brought back an old part", at);
		else
			cr_assert_eq(value_in(scene->vars[0]), THEIRS);
		close_scene(scene);
	}
}

Test(commit, a_helper_stopped_anywhere_changes_nothing_when_it_comes_late)
{
	stop_helper_everywhere(AFTER_COMMIT);
}

Test(commit, a_helper_stopped_anywhere_changes_nothing_when_the_commit_was_aborted)
{
	stop_helper_everywhere(AFTER_ABORT);
	stop_helper_everywhere(AFTER_TWO_ABORTS);
	cr_assert(aborted_another);
}

Test(commit, a_helper_stopped_anywhere_may_look_at_a_variable_that_was_destroyed)
{
	stop_helper_everywhere(AFTER_DESTROY);
}

enum { CHAIN = 20 };

struct link {
	weir_var *vars[PAIR];
	enum weir_status status;
};

static void commit_link(void *context)
{
	struct link *link = context;

	link->status = commit_all(link->vars, PAIR, 1, OURS, NULL);
}

static void create_by_address(weir_var *vars[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		weir_var *var = variable(0);
		size_t j = i;

		for (; j > 0 && (uintptr_t)vars[j - 1] > (uintptr_t)var; j--)
			vars[j] = vars[j - 1];
		vars[j] = var;
	}
}

/*
 * Each commit stands still after it has installed its low part. Its high variable is the low one of
 * the next commit. A write to the lowest variable helps all of them: the topmost commit can have
 * both of its variables, so the one below aborts, so the one below that succeeds, and so on down.
 */
Test(commit, a_chain_of_stopped_commits_is_helped_to_its_end)
{
	static struct stepped commits[CHAIN];
	static struct link links[CHAIN];
	weir_var *vars[CHAIN + 1];

	stepped_or_skip();
	create_by_address(vars, CHAIN + 1);
	for (size_t i = 0; i < CHAIN; i++) {
		links[i] = (struct link){.vars = {vars[i], vars[i + 1]}};
		commits[i] = (struct stepped){.prepare = meet_weir, .call = commit_link, .context = &links[i]};
		stop_half_way(&commits[i], vars[i]);
	}
	assign(vars[0], THEIRS);
	cr_expect_eq(value_in(vars[0]), THEIRS);
	for (size_t i = 1; i <= CHAIN; i++)
		cr_expect_eq(value_in(vars[i]), OURS, "variable %zu", i);
	for (size_t i = 0; i < CHAIN; i++) {
		stepped_finish(&commits[i]);
		cr_expect_eq(links[i].status, i % 2 == (CHAIN - 1) % 2 ? WEIR_OK : WEIR_ABORTED, "commit %zu", i);
	}
	for (size_t i = 0; i <= CHAIN; i++)
		weir_var_destroy(vars[i], NULL);
	expect_nothing_left();
}

/* -- beside others at full speed --------------------------------------------------------------- */

enum { ADDERS = 3, ADDS = 400 };

struct adder {
	weir_var *vars[PAIR];
	int attempts;
};

/*
 * Adds one to both variables, with the parts in its own order, until ADDS commits have succeeded.
 */
static void *add_to_both(void *context)
{
	struct adder *adder = context;

	for (int done = 0; done < ADDS; adder->attempts++) {
		weir_read reads[PAIR];
		struct weir_commit_part parts[PAIR];

		cr_assert_eq(weir_var_snapshot(adder->vars, PAIR, reads, NULL), WEIR_OK);
		cr_assert_eq(value_of(&reads[0]), value_of(&reads[1]), "torn");
		for (size_t i = 0; i < PAIR; i++)
			parts[i] = (struct weir_commit_part){adder->vars[i], reads[i].version, number(value_of(&reads[i]) + 1)};
		weir_read_release_many(reads, PAIR);
		done += weir_var_commit(parts, PAIR, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK;
		for (size_t i = 0; i < PAIR; i++)
			weir_tensor_release(parts[i].value);
	}
	return NULL;
}

Test(commit, overlapping_commits_in_opposite_orders_lose_no_update)
{
	struct scene *scene = open_scene();
	struct adder adders[ADDERS];
	pthread_t threads[ADDERS];
	int64_t values[PAIR];

	for (size_t i = 0; i < ADDERS; i++) {
		adders[i] = (struct adder){{scene->vars[i % PAIR], scene->vars[1 - i % PAIR]}, 0};
		cr_assert_eq(pthread_create(&threads[i], NULL, add_to_both, &adders[i]), 0);
	}
	for (size_t i = 0; i < ADDERS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	values_now(scene, values);
	for (size_t i = 0; i < PAIR; i++) {
		cr_expect_eq(values[i], ADDERS * ADDS);
		cr_expect_eq(weir_var_version(scene->vars[i]), 1 + ADDERS * ADDS);
	}
	close_scene(scene);
}

/* -- compare_assign ---------------------------------------------------------------------------- */

struct exchange {
	weir_var *var;
	weir_tensor *value, *original;
	uint64_t found;
	enum weir_status status;
};

static void compare_and_assign(void *context)
{
	struct exchange *exchange = context;

	weir_read published = {.hold = NULL};

	exchange->status = weir_var_compare_assign(exchange->var, 1, exchange->value, WEIR_NO_DEADLINE, &published, NULL);
	exchange->found = published.version;
	weir_read_release(&published);
}

/*
 * The variable gets another value and then the same tensor again. The new versions may get the
 * memory of freed ones.
 */
Test(commit, compare_assign_stopped_anywhere_is_not_deceived_by_a_value_that_came_back)
{
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST / 2)) {
		struct exchange exchange = {.original = number(1), .value = number(3)};
		struct stepped call = {.prepare = meet_weir, .call = compare_and_assign, .context = &exchange};
		struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &variables_memory};

		cr_assert_eq(weir_var_create(exchange.original, &options, &exchange.var, NULL), WEIR_OK);
		stands = stepped_start(&call, at);
		assign(exchange.var, 2);
		collect_now();
		cr_assert_eq(weir_var_assign(exchange.var, exchange.original, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
		collect_now();
		stepped_finish(&call);
		cr_assert_eq(value_in(exchange.var), 1, "stopped at %zu: %s", at, weir_status_name(exchange.status));
		if (exchange.status == WEIR_ABORTED)
			cr_assert_eq(exchange.found, 3);
		else
			cr_assert_eq(exchange.found, 2);
		cr_assert_eq(weir_var_version(exchange.var), exchange.status == WEIR_OK ? 4 : 3);
		weir_var_destroy(exchange.var, NULL);
		weir_tensor_release(exchange.original);
		weir_tensor_release(exchange.value);
		expect_nothing_left();
	}
}

/* -- update ------------------------------------------------------------------------------------ */

static enum weir_status refuse(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)current, (void)error;
	*next = number(9); /* released all the same */
	return *(const enum weir_status *)context;
}

Test(commit, an_update_ends_with_the_status_of_its_function_whatever_that_is)
{
	weir_var *var = variable(1);

	for (enum weir_status status = WEIR_CANCELLED; status <= WEIR_UNAVAILABLE; status++)
		cr_expect_eq(weir_var_update(var, refuse, &status, WEIR_NO_DEADLINE, NULL, NULL), status);
	cr_expect_eq(weir_var_version(var), 1);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

struct interloper {
	weir_var *var;
	int calls;
};

/* Another write intervenes in each of the first two attempts. */
static enum weir_status add_one(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	struct interloper *interloper = context;

	(void)error;
	if (++interloper->calls <= 2)
		assign(interloper->var, 10 * interloper->calls);
	*next = number(value_of(current) + 1);
	return WEIR_OK;
}

Test(commit, an_update_that_lost_computes_again_from_the_newer_value)
{
	struct interloper interloper = {variable(1), 0};
	weir_read published;

	cr_assert_eq(weir_var_update(interloper.var, add_one, &interloper, WEIR_NO_DEADLINE, &published, NULL), WEIR_OK);
	cr_expect_eq(interloper.calls, 3);
	cr_expect_eq(value_of(&published), 21);
	cr_expect_eq(published.version, 4);
	weir_read_release(&published);
	weir_var_destroy(interloper.var, NULL);
	expect_nothing_left();
}
