/*
 * test_snapshot.c - snapshots and handles: one instant, any number of variables, and handles beyond
 * the slots, in other threads and after the end of their variables; snapshots in a read section.
 * Snapshots and reads are stopped at each instruction while other threads write and collect.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <string.h>
#include <weir/read_section.h>
#include <weir/var.h>

#include "reclaim/record.h"
#include "stepped.h"
#include "var/version.h"
#include "variables.h"

enum { MANY = 200 };

/* -- how many variables, and which versions ---------------------------------------------------- */

/*
 * A snapshot of `count` variables, each at another version. `by_reference` of the handles find no
 * slot.
 */
static void check_snapshot_of(size_t count, size_t by_reference)
{
	weir_var *vars[MANY];
	weir_read reads[MANY];
	uint64_t misses;

	for (size_t i = 0; i < count; i++) {
		vars[i] = variable((int64_t)i);
		for (size_t more = 0; more < i % 3; more++)
			assign(vars[i], (int64_t)i);
	}
	misses = slot_misses();
	cr_assert_eq(weir_var_snapshot(vars, count, reads, NULL), WEIR_OK);
	cr_expect_eq(slot_misses() - misses, by_reference, "%zu variables", count);
	/* The handles keep their versions although the variables are assigned and destroyed. */
	for (size_t i = 0; i < count; i++) {
		assign(vars[i], -1);
		weir_var_destroy(vars[i], NULL);
	}
	collect_now();
	for (size_t i = 0; i < count; i++) {
		cr_expect_eq(value_of(&reads[i]), (int64_t)i);
		cr_expect_eq(reads[i].version, 1 + i % 3);
	}
	weir_read_release_many(reads, count);
	cr_expect_null(reads[0].tensor, "a released handle is cleared");
	expect_nothing_left();
}

Test(snapshot, of_one_variable)
{
	check_snapshot_of(1, 0);
}

Test(snapshot, of_as_many_as_there_are_slots)
{
	check_snapshot_of(WEIRI_SLOTS, 0);
	check_snapshot_of(WEIRI_SNAPSHOT_SLOTS, 0);
}

Test(snapshot, of_more_than_there_are_slots_takes_references)
{
	check_snapshot_of(WEIRI_SNAPSHOT_SLOTS + 1, 1);
	check_snapshot_of(MANY, MANY - WEIRI_SNAPSHOT_SLOTS);
}

Test(snapshot, a_variable_may_occur_twice)
{
	weir_var *var = variable(7);
	weir_var *vars[3] = {var, variable(8), var};
	weir_read reads[3];

	cr_assert_eq(weir_var_snapshot(vars, 3, reads, NULL), WEIR_OK);
	cr_expect_eq(reads[0].tensor, reads[2].tensor);
	weir_read_release(&reads[0]);
	assign(var, 9);
	collect_now();
	cr_expect_eq(value_of(&reads[2]), 7, "each handle pins its version by itself");
	weir_read_release_many(reads, 3);
	weir_var_destroy(vars[0], NULL);
	weir_var_destroy(vars[1], NULL);
	expect_nothing_left();
}

Test(snapshot, hoarded_snapshots_fall_back_and_released_slots_serve_again)
{
	weir_var *vars[10];
	weir_read reads[10][10];
	uint64_t misses;

	for (size_t i = 0; i < 10; i++)
		vars[i] = variable((int64_t)i);
	misses = slot_misses();
	for (size_t round = 0; round < 10; round++) {
		cr_assert_eq(weir_var_snapshot(vars, 10, reads[round], NULL), WEIR_OK);
		for (size_t i = 0; i < 10; i++)
			assign(vars[i], (int64_t)(10 * (round + 1) + i));
	}
	cr_expect_eq(slot_misses() - misses, 100 - WEIRI_SNAPSHOT_SLOTS);
	collect_now();
	for (size_t round = 0; round < 10; round++) {
		for (size_t i = 0; i < 10; i++)
			cr_expect_eq(value_of(&reads[round][i]), (int64_t)(10 * round + i));
	}
	/* The handles in the middle hold slots, which the next snapshot finds. */
	weir_read_release_many(reads[3], 10);
	misses = slot_misses();
	cr_assert_eq(weir_var_snapshot(vars, 10, reads[3], NULL), WEIR_OK);
	cr_expect_eq(slot_misses(), misses);
	for (size_t round = 0; round < 10; round++)
		weir_read_release_many(reads[round], 10);
	for (size_t i = 0; i < 10; i++)
		weir_var_destroy(vars[i], NULL);
	expect_nothing_left();
}

Test(snapshot, reads_and_snapshots_do_not_take_each_others_slots)
{
	weir_var *var = variable(1);
	weir_read singles[WEIRI_SLOTS], read, shot;
	uint64_t misses = slot_misses();

	for (size_t i = 0; i < WEIRI_SLOTS; i++)
		cr_assert_eq(weir_var_read(var, &singles[i]), WEIR_OK);
	cr_assert_eq(weir_var_snapshot(&var, 1, &shot, NULL), WEIR_OK);
	cr_expect_eq(slot_misses(), misses);
	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_expect_eq(slot_misses(), misses + 1, "the ninth handle is a reference");
	weir_read_release(&read);
	weir_read_release(&singles[3]);
	cr_assert_eq(weir_var_read(var, &singles[3]), WEIR_OK);
	cr_expect_eq(slot_misses(), misses + 1, "a free slot is found among taken ones");
	weir_read_release_many(singles, WEIRI_SLOTS);
	weir_read_release(&shot);
	weir_var_destroy(var, NULL);
	expect_nothing_left();
}

Test(snapshot, a_slot_that_is_taken_again_does_not_hide_the_ones_behind_it)
{
	weir_var *vars[] = {variable(1), variable(2)};
	weir_read reads[2], again;
	uint64_t live = live_versions();

	cr_assert_eq(weir_var_snapshot(vars, 2, reads, NULL), WEIR_OK);
	weir_read_release(&reads[0]);
	cr_assert_eq(weir_var_snapshot(vars, 1, &again, NULL), WEIR_OK);
	assign(vars[1], 3);
	collect_now();
	cr_assert_eq(live_versions(), live + 1, "the handle on the second still holds its version");
	cr_expect_eq(value_of(&reads[1]), 2);
	weir_read_release(&reads[1]);
	weir_read_release(&again);
	weir_var_destroy(vars[0], NULL);
	weir_var_destroy(vars[1], NULL);
	expect_nothing_left();
}

/* -- statuses ---------------------------------------------------------------------------------- */

Test(snapshot, bad_arguments_are_named)
{
	weir_var *vars[2] = {variable(1), NULL};
	weir_read reads[2];
	weir_error error;

	cr_expect_eq(weir_var_snapshot(NULL, 0, NULL, NULL), WEIR_OK, "nothing to do");
	cr_expect_eq(weir_var_snapshot(NULL, 1, reads, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "vars is NULL"));
	cr_expect_eq(weir_var_snapshot(vars, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "reads is NULL"));
	cr_expect_eq(weir_var_snapshot(vars, 2, reads, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "variable 1 is NULL"));
	cr_expect_eq(weir_var_snapshot(&vars[1], 1, reads, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "variable 0 is NULL"));
	weir_var_destroy(vars[0], NULL);
	expect_nothing_left();
}

Test(snapshot, a_variable_without_a_value_is_named_and_no_handle_is_held)
{
	weir_var *vars[3] = {variable(1), empty_variable("weights"), variable(3)};
	weir_read reads[3];
	weir_error error;

	cr_expect_eq(weir_var_snapshot(vars, 3, reads, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(error.code, WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "\"weights\" is not initialized"), "%s", error.message);
	assign(vars[1], 2);
	cr_expect_eq(weir_var_snapshot(vars, 3, reads, &error), WEIR_OK);
	cr_expect_eq(reads[1].version, 1);
	weir_read_release_many(reads, 3);
	for (size_t i = 0; i < 3; i++)
		weir_var_destroy(vars[i], NULL);
	/* Not even a handle that the first snapshot had taken is left. */
	expect_nothing_left();
}

Test(snapshot, a_read_that_fails_leaves_the_handle_alone)
{
	weir_var *var = empty_variable("v");
	weir_read read = {.version = 42}, many[WEIRI_SLOTS];
	weir_var *other = variable(1);

	cr_expect_eq(weir_var_read(var, &read), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(read.version, 42);
	for (size_t i = 0; i < WEIRI_SLOTS; i++)
		cr_assert_eq(weir_var_read(other, &many[i]), WEIR_OK, "the failed snapshot took no slot");
	cr_expect_eq(weir_var_read(var, &read), WEIR_FAILED_PRECONDITION);
	cr_expect_eq(read.version, 42, "without a slot, too");
	weir_read_release_many(many, WEIRI_SLOTS);
	weir_var_destroy(var, NULL);
	weir_var_destroy(other, NULL);
	expect_nothing_left();
}

/* -- handles in other threads ------------------------------------------------------------------ */

static void *look_and_release(void *context)
{
	weir_read *reads = context;
	int64_t sum = 0;

	for (size_t i = 0; i < MANY; i++)
		sum += value_of(&reads[i]);
	weir_read_release_many(reads, MANY);
	return (void *)(intptr_t)sum;
}

Test(snapshot, handles_may_be_released_by_another_thread_after_the_variables_have_gone)
{
	weir_var *vars[MANY];
	weir_read reads[MANY];
	pthread_t thread;
	void *sum;

	for (size_t i = 0; i < MANY; i++)
		vars[i] = variable((int64_t)i);
	cr_assert_eq(weir_var_snapshot(vars, MANY, reads, NULL), WEIR_OK);
	for (size_t i = 0; i < MANY; i++)
		weir_var_destroy(vars[i], NULL);
	collect_now();
	cr_assert_eq(pthread_create(&thread, NULL, look_and_release, reads), 0);
	cr_assert_eq(pthread_join(thread, &sum), 0);
	cr_expect_eq((intptr_t)sum, MANY * (MANY - 1) / 2);
	expect_nothing_left();
}

struct taken {
	weir_var *var;
	weir_read reads[WEIRI_SLOTS + 1];
};

static void *take_and_end(void *context)
{
	struct taken *taken = context;

	for (size_t i = 0; i < WEIRI_SLOTS; i++)
		(void)weir_var_read(taken->var, &taken->reads[i]);
	(void)weir_var_snapshot(&taken->var, 1, &taken->reads[WEIRI_SLOTS], NULL);
	return NULL;
}

Test(snapshot, handles_outlive_the_thread_that_took_them)
{
	struct taken first = {.var = variable(5)}, second = {.var = first.var};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, take_and_end, &first), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	assign(first.var, 6);
	/* The thread adopts the record, of which all slots for reads are taken. */
	cr_assert_eq(pthread_create(&thread, NULL, take_and_end, &second), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	assign(first.var, 7);
	collect_now();
	for (size_t i = 0; i <= WEIRI_SLOTS; i++) {
		cr_expect_eq(value_of(&first.reads[i]), 5);
		cr_expect_eq(value_of(&second.reads[i]), 6);
	}
	weir_read_release_many(first.reads, WEIRI_SLOTS + 1);
	weir_read_release_many(second.reads, WEIRI_SLOTS + 1);
	weir_var_destroy(first.var, NULL);
	expect_nothing_left();
}

/* -- stopped at each instruction --------------------------------------------------------------- */

enum { PAIR = 2 };

/* Two variables that change together, the call that is stopped, and what it saw. */
struct scene {
	weir_var *vars[PAIR];
	int64_t written; /* both variables hold it */
	weir_var *other;
	weir_read hoard[WEIRI_SLOTS];
	/* `written` when the call began, and when it ended. */
	int64_t first, last;
	weir_read reads[PAIR];
	enum weir_status status;
	bool ticks;     /* the clock is advanced after each commit, as by snapshots of other threads */
	size_t commits; /* at each stop, each at a tick of its own and all in one era; 0: one, in an era of its own */
	/* The handle that a handler kept. */
	weir_read kept;
	/* Of the call's thread; what a snapshot in it showed, looked at before it ended. */
	weir_read_section section;
	struct {
		int64_t value;
		uint64_t version;
	} shown[PAIR];
};

static struct scene *open_scene(void)
{
	static struct scene scene;

	stepped_or_skip();
	scene = (struct scene){.vars = {variable(0), variable(0)}, .other = variable(0)};
	return &scene;
}

static void close_scene(struct scene *scene)
{
	for (size_t i = 0; i < PAIR; i++)
		weir_var_destroy(scene->vars[i], NULL);
	weir_var_destroy(scene->other, NULL);
	expect_nothing_left();
}

/* A collection begins an era, if there is something to collect. */
static void begin_era(struct scene *scene)
{
	assign(scene->other, 0);
	collect_now();
}

static void commit_next(struct scene *scene)
{
	scene->written++;
	cr_assert_eq(commit_all(scene->vars, PAIR, (uint64_t)scene->written, scene->written, NULL), WEIR_OK);
}

static void tick(void)
{
	weiri_clock_advance(weiri_load_seq_cst(&weiri_clock));
}

/*
 * Commits in an era that no earlier reservation can include. The replaced versions are freed if
 * possible, and nothing is allocated afterwards, so that a use of freed memory shows.
 *   Commits of one era all leave their versions to a snapshot, which walks back past each of them.
 */
static void overtake(struct scene *scene)
{
	for (size_t i = 0; i < scene->commits; i++) {
		tick();
		commit_next(scene);
	}
	if (scene->commits != 0)
		return;
	begin_era(scene);
	commit_next(scene);
	if (scene->ticks)
		tick();
	collect_now();
}

static void take_snapshot(void *context)
{
	struct scene *scene = context;

	scene->status = weir_var_snapshot(scene->vars, PAIR, scene->reads, NULL);
}

static void take_read(void *context)
{
	struct scene *scene = context;

	scene->status = weir_var_read(scene->vars[0], &scene->reads[0]);
}

/* All slots are taken, so a read goes through a section. */
static void take_all_slots(void *context)
{
	struct scene *scene = context;

	/* The first read of a thread takes no slot. */
	meet_weir(scene);
	for (size_t i = 0; i < WEIRI_SLOTS; i++) {
		cr_assert_eq(weir_var_read(scene->other, &scene->hoard[i]), WEIR_OK);
		cr_assert_not_null(scene->hoard[i].hold);
	}
}

/*
 * Does what a signal handler may do. It keeps its first handle. One of the other reads finds no
 * slot and enters a section.
 */
static void read_in_handler(void *context)
{
	struct scene *scene = context;
	weir_read reads[WEIRI_SLOTS];

	cr_assert_eq(weir_var_read(scene->vars[0], &scene->kept), WEIR_OK);
	for (size_t i = 0; i < WEIRI_SLOTS; i++)
		cr_assert_eq(weir_var_read(scene->vars[0], &reads[i]), WEIR_OK);
	weir_read_release_many(reads, WEIRI_SLOTS);
}

static void judge_one(const struct scene *scene, int64_t value, uint64_t version, size_t at)
{
	cr_assert_eq(value, (int64_t)version - 1, "stopped at %zu: version %" PRIu64 " is %" PRId64, at, version, value);
	cr_assert(value >= scene->first && value <= scene->last,
	          "stopped at %zu: %" PRId64 " is not of [%" PRId64 ", %" PRId64 "]", at, value, scene->first, scene->last);
}

static void judge(struct scene *scene, size_t count, size_t at)
{
	cr_assert_eq(scene->status, WEIR_OK);
	overtake(scene);
	for (size_t i = 0; i < count; i++) {
		int64_t value = value_of(&scene->reads[i]);

		judge_one(scene, value, scene->reads[i].version, at);
		cr_assert_eq(value, value_of(&scene->reads[0]), "stopped at %zu: torn", at);
	}
	weir_read_release_many(scene->reads, count);
	overtake(scene);
	if (scene->kept.tensor != NULL)
		cr_assert_eq(value_of(&scene->kept), (int64_t)scene->kept.version - 1,
		             "stopped at %zu: the handle of a handler", at);
	weir_read_release(&scene->kept);
}

/*
 * Runs the call, stopped at instruction `at` and at the next stops - 1 ones. A handler runs after
 * the last stop. Returns 0 if the call ended before `at`.
 */
static int overtake_at(struct scene *scene, struct stepped call, size_t at, size_t stops)
{
	void (*in_handler)(void *) = call.in_handler;
	int stood, stands;

	call.context = scene;
	scene->first = scene->written;
	call.in_handler = NULL;
	stood = stands = stepped_start(&call, at);
	for (size_t stop = 1; stands; stop++) {
		overtake(scene);
		if (stop == stops) {
			call.in_handler = in_handler;
			break;
		}
		stands = stepped_next(&call);
	}
	stepped_finish(&call);
	scene->last = scene->written;
	return stood;
}

/* Calls overtake_at() for each instruction and for several numbers of stops. */
static void overtake_everywhere(struct scene *scene, struct stepped call, size_t count,
                                void (*judge_it)(struct scene *, size_t count, size_t at))
{
	static const size_t stops[] = {1, 2, 9};

	for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
		size_t at = 0;
		int stood;

		do {
			stood = overtake_at(scene, call, at, stops[i]);
			judge_it(scene, count, at);
			weir_read_release_many(scene->hoard, WEIRI_SLOTS);
			at += stepped_stride(stops[i] > 2 ? 5 : 1);
		} while (stood);
	}
}

Test(snapshot, stopped_anywhere_it_is_of_one_instant)
{
	struct scene *scene = open_scene();

	overtake_everywhere(scene, (struct stepped){.prepare = meet_weir, .call = take_snapshot}, PAIR, judge);
	close_scene(scene);
}

Test(snapshot, interrupted_anywhere_by_a_handler_that_reads_it_is_of_one_instant)
{
	struct scene *scene = open_scene();

	overtake_everywhere(scene,
	                    (struct stepped){.prepare = meet_weir, .call = take_snapshot, .in_handler = read_in_handler},
	                    PAIR, judge);
	close_scene(scene);
}

Test(snapshot, a_read_stopped_anywhere_gives_a_version_that_was_newest)
{
	struct scene *scene = open_scene();
	struct stepped read = {.prepare = meet_weir, .call = take_read};

	overtake_everywhere(scene, read, 1, judge);
	read.in_handler = read_in_handler;
	overtake_everywhere(scene, read, 1, judge);
	close_scene(scene);
}

Test(snapshot, a_read_in_a_section_stopped_anywhere_gives_a_version_that_was_newest)
{
	struct scene *scene = open_scene();
	struct stepped read = {.prepare = take_all_slots, .call = take_read};

	overtake_everywhere(scene, read, 1, judge);
	read.in_handler = read_in_handler;
	overtake_everywhere(scene, read, 1, judge);
	close_scene(scene);
}

/* -- in a read section ------------------------------------------------------------------------- */

/* The section is older than all that the call meets. */
static void begin_section(void *context)
{
	struct scene *scene = context;

	meet_weir(scene);
	scene->section = (weir_read_section){WEIR_READ_SECTION_INIT};
	cr_assert_eq(weir_read_section_begin(&scene->section), WEIR_OK);
}

/* The snapshots before it make the next ones advance the clock at once. */
static void begin_section_ahead(void *context)
{
	begin_section(context);
	weiri_store_relaxed(&weiri_record_mine->snapshots_ahead, 4u);
}

/* It is stopped between the snapshot and the looks, too: the section protects what was shown. */
static void show(void *context)
{
	struct scene *scene = context;
	const weir_read *reads[PAIR];

	scene->status = weir_read_section_snapshot(&scene->section, scene->vars, PAIR, reads, NULL);
	for (size_t i = 0; scene->status == WEIR_OK && i < PAIR; i++) {
		scene->shown[i].value = value_of(reads[i]);
		scene->shown[i].version = reads[i]->version;
	}
	if (weir_read_section_end(&scene->section) != WEIR_OK)
		scene->status = WEIR_INTERNAL;
}

static void judge_shown(struct scene *scene, size_t count, size_t at)
{
	cr_assert_eq(scene->status, WEIR_OK);
	for (size_t i = 0; i < count; i++) {
		judge_one(scene, scene->shown[i].value, scene->shown[i].version, at);
		cr_assert_eq(scene->shown[i].value, scene->shown[0].value, "stopped at %zu: torn", at);
	}
	overtake(scene);
}

/* Takes a snapshot in a section of its own, and one in that of the code that it interrupts, if that is still open. */
static void show_in_handler(void *context)
{
	struct scene *scene = context;
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *reads[PAIR], *others[PAIR];

	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	cr_assert_eq(weir_read_section_snapshot(&section, scene->vars, PAIR, reads, NULL), WEIR_OK);
	cr_assert_eq(value_of(reads[0]), value_of(reads[1]));
	if (weir_read_section_snapshot(&scene->section, scene->vars, PAIR, others, NULL) == WEIR_OK)
		cr_assert(value_of(others[0]) == value_of(others[1]) && value_of(others[0]) >= value_of(reads[0]));
	cr_assert_eq(weir_read_section_end(&section), WEIR_OK);
}

Test(snapshot, in_a_section_stopped_anywhere_it_is_of_one_instant_and_stays)
{
	struct scene *scene = open_scene();

	overtake_everywhere(scene, (struct stepped){.prepare = begin_section, .call = show}, PAIR, judge_shown);
	overtake_everywhere(scene, (struct stepped){.prepare = begin_section_ahead, .call = show}, PAIR, judge_shown);
	scene->ticks = true;
	overtake_everywhere(scene, (struct stepped){.prepare = begin_section, .call = show}, PAIR, judge_shown);
	close_scene(scene);
}

/* The clock is ahead of that of the snapshot by more than one. */
Test(snapshot, stopped_anywhere_it_passes_all_that_is_newer)
{
	struct scene *scene = open_scene();

	scene->commits = 3;
	overtake_everywhere(scene, (struct stepped){.prepare = meet_weir, .call = take_snapshot}, PAIR, judge);
	overtake_everywhere(scene, (struct stepped){.prepare = begin_section, .call = show}, PAIR, judge_shown);
	close_scene(scene);
}

Test(snapshot, in_a_section_interrupted_anywhere_by_a_handler_that_takes_one_it_is_of_one_instant)
{
	struct scene *scene = open_scene();
	struct stepped call = {.prepare = begin_section, .call = show, .in_handler = show_in_handler};

	overtake_everywhere(scene, call, PAIR, judge_shown);
	close_scene(scene);
}
