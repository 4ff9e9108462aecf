/*
 * test_stalls.c - what keeps replaced versions: each reader is found, named, and dated.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/reclaim.h>
#include <weir/stall.h>
#include <weir/time.h>
#include <weir/value.h>
#include <weir/var.h>

#include "base/atomic.h"
#include "dump_kit.h"
#include "reclaim/eras.h"
#include "reclaim/section.h"
#include "variables.h"

static const uint64_t patience_ns = UINT64_C(100000000000), forever_ns = UINT64_C(3600000000000);

enum { MOST = 80 };

struct seen {
	size_t count;
	struct weir_stall stall[MOST];
	char name[MOST][64];
};

static void see(void *context, const struct weir_stall *stall)
{
	struct seen *seen = context;

	cr_assert_lt(seen->count, (size_t)MOST);
	seen->stall[seen->count] = *stall;
	(void)strcpy(seen->name[seen->count], stall->variable);
	seen->count++;
}

static size_t look(uint64_t limit_ns, struct seen *seen)
{
	size_t found = 0;

	seen->count = 0;
	cr_assert_eq(weir_stalls_visit(limit_ns, see, seen, &found), WEIR_OK);
	return found;
}

/* Looks until `count` stalls have that age. */
static void await(uint64_t limit_ns, size_t count, struct seen *seen)
{
	uint64_t until = weir_deadline_in(patience_ns);

	while (look(limit_ns, seen) < count)
		cr_assert_lt(weir_now_ns(), until, "%zu of %zu stalls", seen->count, count);
}

Test(stalls, none_of_what_is_newest)
{
	weir_var *var = named_variable("w", 1);
	struct seen seen;
	weir_read read;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_assert_eq(look(0, &seen), (size_t)0);
	weir_read_release(&read);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(stalls, a_handle_on_what_was_replaced)
{
	weir_var *var = named_variable("weights", 1);
	uint64_t replaced_ns;
	struct seen seen;
	weir_read read;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	replaced_ns = weir_now_ns();
	assign(var, 2);
	cr_assert_eq(look(forever_ns, &seen), (size_t)0);
	await(20000000, 1, &seen);
	cr_assert_eq(seen.count, (size_t)1);
	cr_assert_eq(seen.stall[0].kind, WEIR_STALL_HANDLE);
	cr_assert_eq(seen.stall[0].thread, (uint32_t)gettid());
	cr_assert_geq(seen.stall[0].age_ns, UINT64_C(20000000));
	cr_assert_leq(seen.stall[0].age_ns, weir_now_ns() - replaced_ns);
	cr_assert_str_eq(seen.name[0], "weights");
	cr_assert_eq(seen.stall[0].version, read.version);
	cr_assert_geq(seen.stall[0].bytes, sizeof(int64_t));
	weir_read_release(&read);
	cr_assert_eq(look(0, &seen), (size_t)0);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

Test(stalls, a_variable_that_is_gone_has_no_name)
{
	weir_var *var = named_variable("gone", 1), *other = named_variable("other", 1);
	struct seen seen;
	weir_read read;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	await(1, 1, &seen);
	cr_assert_str_eq(seen.name[0], "");
	cr_assert_eq(seen.stall[0].version, read.version);
	weir_read_release(&read);
	cr_assert_eq(weir_var_destroy(other, NULL), WEIR_OK);
}

Test(stalls, each_handle_counts_and_64_are_shown)
{
	enum { HANDLES = 70 };
	weir_var *vars[HANDLES];
	weir_read reads[HANDLES], one_more;
	struct seen seen;
	size_t found;

	for (size_t i = 0; i < HANDLES; i++)
		vars[i] = variable(1);
	/*
	 * There are more handles than a snapshot has slots. The last ones are references, which keep no
	 * version.
	 */
	cr_assert_eq(weir_var_snapshot(vars, HANDLES, reads, NULL), WEIR_OK);
	for (size_t i = 0; i < HANDLES; i++)
		assign(vars[i], 2);
	await(1, 64, &seen);
	found = look(0, &seen);
	cr_assert_eq(found, (size_t)64);
	cr_assert_eq(seen.count, (size_t)WEIR_STALLS_SHOWN);
	cr_assert_eq(weir_var_read(vars[0], &one_more), WEIR_OK);
	assign(vars[0], 3);
	await(1, 65, &seen);
	cr_assert_eq(seen.count, (size_t)WEIR_STALLS_SHOWN);
	weir_read_release(&one_more);
	for (size_t i = 0; i < HANDLES; i++) {
		weir_read_release(&reads[i]);
		cr_assert_eq(weir_var_destroy(vars[i], NULL), WEIR_OK);
	}
}

/* -- other threads ----------------------------------------------------------------------------- */

struct other {
	weir_var *var;
	weir_read read;
	_Atomic(uint32_t) state; /* 1: it holds the version; 2: it may release it */
	uint32_t thread;
};

static void reach(_Atomic(uint32_t) *state, uint32_t value)
{
	uint64_t until = weir_deadline_in(patience_ns);

	while (weiri_load_acquire(state) != value) {
		cr_assert_lt(weir_now_ns(), until);
		(void)sched_yield();
	}
}

static void *hold_and_end(void *context)
{
	struct other *other = context;

	other->thread = (uint32_t)gettid();
	/* The first read of a thread takes a reference. */
	cr_assert_eq(weir_var_read(other->var, &other->read), WEIR_OK);
	weir_read_release(&other->read);
	cr_assert_eq(weir_var_read(other->var, &other->read), WEIR_OK);
	weiri_store_release(&other->state, 1u);
	reach(&other->state, 2);
	return NULL;
}

static void *sit_in_a_section(void *context)
{
	struct other *other = context;
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);

	other->thread = (uint32_t)gettid();
	weiri_store_release(&other->state, 1u);
	reach(&other->state, 2);
	weiri_section_leave(record, outer);
	return NULL;
}

Test(stalls, the_thread_that_took_it_until_it_ends)
{
	struct other other = {.var = named_variable("w", 1)};
	struct seen seen;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, hold_and_end, &other), 0);
	reach(&other.state, 1);
	assign(other.var, 2);
	await(1, 1, &seen);
	cr_assert_eq(seen.stall[0].thread, other.thread);
	weiri_store_release(&other.state, 2u);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	await(1, 1, &seen);
	cr_assert_eq(seen.stall[0].thread, 0u);
	weir_read_release(&other.read);
	cr_assert_eq(weir_var_destroy(other.var, NULL), WEIR_OK);
}

Test(stalls, a_section_that_does_not_end)
{
	struct other other = {.state = 0};
	struct seen seen;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, sit_in_a_section, &other), 0);
	reach(&other.state, 1);
	(void)weir_reclaim_flush(0);
	await(1, 0, &seen);
	/* An era must have begun since. If something is retired, each look begins one. */
	for (uint64_t until = weir_deadline_in(patience_ns); seen.count == 0; (void)look(5000000, &seen)) {
		weir_var *var = named_variable("passing", 1);

		assign(var, 2);
		cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
		cr_assert_lt(weir_now_ns(), until);
	}
	cr_assert_eq(seen.stall[seen.count - 1].kind, WEIR_STALL_SECTION);
	cr_assert_eq(seen.stall[seen.count - 1].thread, other.thread);
	cr_assert_str_eq(seen.name[seen.count - 1], "");
	weiri_store_release(&other.state, 2u);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* -- the callback ------------------------------------------------------------------------------ */

struct ear {
	_Atomic(uint32_t) told; /* how often */
};

static void hear(void *context, const struct weir_stall *stall)
{
	struct ear *ear = context;

	cr_assert_str_eq(stall->variable, "held");
	cr_assert_geq(stall->age_ns, UINT64_C(10000000));
	(void)weiri_fetch_add_relaxed(&ear->told, 1u);
}

/* A hook without a function is none. */
Test(stalls, the_hook_hears_while_somebody_writes)
{
	static struct ear ear;
	static const weir_stall_hook hook = {.fn = hear, .context = &ear}, nobody = {.context = &ear};
	weir_var *held = named_variable("held", 1), *written = named_variable("written", 1);
	uint64_t until = weir_deadline_in(patience_ns), began;
	weir_read read;
	uint32_t calls;

	cr_assert_eq(weir_var_read(held, &read), WEIR_OK);
	assign(held, 2);
	weir_stalls_set_hook(10000000, &hook);
	began = weir_now_ns();
	while (weiri_load_relaxed(&ear.told) < 2) {
		assign(written, 1);
		cr_assert_lt(weir_now_ns(), until);
	}
	/* The callback comes at most once in each limit. */
	cr_assert_leq((uint64_t)weiri_load_relaxed(&ear.told), (weir_now_ns() - began) / 10000000 + 1);
	weir_stalls_set_hook(10000000, &nobody);
	calls = weiri_load_relaxed(&ear.told);
	for (began = weir_now_ns(); weir_now_ns() - began < 30000000;)
		assign(written, 1);
	cr_assert_eq(weiri_load_relaxed(&ear.told), calls);
	weir_read_release(&read);
	cr_assert_eq(weir_var_destroy(held, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(written, NULL), WEIR_OK);
}

static weir_var *written_in_hook;
static int depth, deepest;

/* Writes until it has collected several times, which takes longer than the limit. */
static void hear_and_write(void *context, const struct weir_stall *stall)
{
	(void)context, (void)stall;
	depth++;
	deepest = depth > deepest ? depth : deepest;
	for (int i = 0; depth == 1 && i < 1000; i++)
		assign(written_in_hook, i);
	depth--;
}

Test(stalls, a_hook_that_writes_is_not_called_within_itself)
{
	static const weir_stall_hook hook = {.fn = hear_and_write};
	weir_var *held = named_variable("held", 1);
	uint64_t until = weir_deadline_in(patience_ns);
	weir_read read;

	written_in_hook = named_variable("written", 1);
	cr_assert_eq(weir_var_read(held, &read), WEIR_OK);
	assign(held, 2);
	weir_stalls_set_hook(1, &hook);
	while (deepest == 0) {
		assign(written_in_hook, 1);
		cr_assert_lt(weir_now_ns(), until);
	}
	weir_stalls_set_hook(0, NULL);
	cr_expect_eq(deepest, 1);
	weir_read_release(&read);
	cr_assert_eq(weir_var_destroy(held, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(written_in_hook, NULL), WEIR_OK);
}

/* What the hook does to remove itself; a limit of 0, no hook and no function are the same. */
static const struct removal {
	uint64_t limit_ns;
	bool has_hook, has_function;
} removals[] = {{0, true, true}, {1, false, false}, {1, true, false}};

static struct {
	const struct removal *removal;
	uint32_t told;
} removed;

static void hear_and_remove(void *context, const struct weir_stall *stall)
{
	static const weir_stall_hook without_function = {NULL, NULL};
	static weir_stall_hook itself = {hear_and_remove, NULL};
	const weir_stall_hook *hook = removed.removal->has_function ? &itself : &without_function;

	(void)context, (void)stall;
	removed.told++;
	weir_stalls_set_hook(removed.removal->limit_ns, removed.removal->has_hook ? hook : NULL);
}

static _Atomic(uint32_t) released_by_search;

/* Called in a collection: by a search for stalls, or by a write. */
static void note_who_releases(void *context, void *pointer)
{
	const struct weiri_record *record = weiri_record_mine;

	(void)context, (void)pointer;
	if (record != NULL && record->own->tells_of_stalls)
		(void)weiri_fetch_add_relaxed(&released_by_search, 1u);
}

static void *replace_pointers(void *var)
{
	static int pointed_to;

	for (int i = 0; i < 100; i++)
		cr_assert_eq(weir_var_assign_value(var, weir_value_pointer(&pointed_to), WEIR_NO_DEADLINE, NULL, NULL),
		             WEIR_OK);
	return NULL;
}

/*
 * A hook that removes itself hears of one stall, though the search has found two. No search is made
 * later: what another thread has retired is not freed by one.
 */
Test(stalls, a_hook_that_is_removed_hears_no_more)
{
	static const weir_stall_hook hook = {hear_and_remove, NULL};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT,        .name = "pointer",
	                                   .kind = WEIR_VAR_POINTER,     .size = 8,
	                                   .release = note_who_releases, .allocator = &variables_memory};
	weir_var *held[2] = {named_variable("held", 1), named_variable("held", 1)}, *written = variable(1), *pointer = NULL;
	uint64_t until = weir_deadline_in(patience_ns);
	struct seen seen;
	weir_read reads[2];
	pthread_t thread;

	cr_assert_eq(weir_var_create(NULL, &options, &pointer, NULL), WEIR_OK);
	cr_assert_eq(weir_var_snapshot(held, 2, reads, NULL), WEIR_OK);
	assign(held[0], 2);
	assign(held[1], 2);
	await(1, 2, &seen);
	for (size_t i = 0; i < sizeof(removals) / sizeof(removals[0]); i++) {
		removed.removal = &removals[i];
		removed.told = 0;
		weir_stalls_set_hook(1, &hook);
		while (removed.told == 0) {
			assign(written, 1);
			cr_assert_lt(weir_now_ns(), until);
		}
		cr_expect_eq(removed.told, 1u, "removal %zu", i);
		cr_assert_eq(pthread_create(&thread, NULL, replace_pointers, pointer), 0);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		weiri_store_relaxed(&released_by_search, 0u);
		for (int64_t write = 0; write < 3000; write++)
			assign(written, write);
		cr_expect_eq(removed.told, 1u, "removal %zu", i);
		cr_expect_eq(weiri_load_relaxed(&released_by_search), 0u, "removal %zu", i);
	}
	weir_read_release_many(reads, 2);
	cr_assert_eq(weir_var_destroy(held[0], NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(held[1], NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(written, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(pointer, NULL), WEIR_OK);
}

/* -- in a dump --------------------------------------------------------------------------------- */

static void expect_in_dump(const char *pattern)
{
	uint64_t until = weir_deadline_in(patience_ns);
	char *text = dumped();

	while (!matches(text, pattern)) {
		cr_assert_lt(weir_now_ns(), until, "no %s in:\n%s", pattern, text);
		free(text);
		text = dumped();
	}
	free(text);
}

Test(stalls, a_dump_shows_what_is_a_second_old)
{
	struct other other = {.var = variable(1)};
	pthread_t thread;
	weir_read read;
	char *text;

	cr_assert_eq(pthread_create(&thread, NULL, hold_and_end, &other), 0);
	reach(&other.state, 1);
	assign(other.var, 2);
	(void)pthread_setname_np(thread, "hoarder");
	expect_in_dump(
		"^memory: thread [0-9]+ \"hoarder\" holds version 1 of variable \"v\", [0-9]+ bytes, replaced [0-9.]+ s ago$");
	weiri_store_release(&other.state, 2u);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	expect_in_dump("^memory: a thread that has ended holds version 1 of variable \"v\"");
	/* The newest version is not shown, however long it is held. */
	cr_assert_eq(weir_var_read(other.var, &read), WEIR_OK);
	weir_read_release(&other.read);
	text = dumped();
	cr_assert_eq(matches(text, "^memory: "), 0);
	free(text);
	weir_read_release(&read);
	cr_assert_eq(weir_var_destroy(other.var, NULL), WEIR_OK);
}

/* -- ages -------------------------------------------------------------------------------------- */

/* The time for which this thread has run. */
static uint64_t processor_ns(void)
{
	struct timespec time;

	cr_assert_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

Test(stalls, ages_are_never_too_large_and_half_of_the_truth_at_least)
{
	struct {
		uint64_t era, ended_ns;
	} past[64];
	size_t count = 0;
	uint64_t began = weir_now_ns(), ran = processor_ns(), lost;

	/* At most one era begins each millisecond, and the age of every era is checked all the time. */
	for (uint64_t now = began; now - began < 400000000; now = weir_now_ns()) {
		if (count < 64 && (count == 0 || now - past[count - 1].ended_ns > 1000000)) {
			past[count].era = weiri_load_relaxed(&weiri_era);
			past[count].ended_ns = weir_now_ns();
			weiri_era_begin();
			count++;
		}
		weiri_eras_note();
		now = weir_now_ns();
		for (size_t i = 0; i < count; i++) {
			uint64_t age = weiri_era_age(past[i].era, now), truth = now - past[i].ended_ns;

			cr_assert_leq(age, truth);
		}
	}
	/* Small ages may lack two ticks of 4 ms. They may also lack the time in which this thread did not run. */
	lost = weir_now_ns() - began - (processor_ns() - ran);
	for (size_t i = 0; i < count; i++) {
		uint64_t now = weir_now_ns(), truth = now - past[i].ended_ns;

		cr_assert_geq(weiri_era_age(past[i].era, now) + 10000000 + lost, truth / 2);
	}
}

/*
 * The earlier collections have set the memory aside. All of them ran in the tick of the note. Later
 * collections find nothing else and begin no era. (If the tick ends too early, the earlier
 * collections have made the note.)
 */
Test(stalls, what_a_section_holds_grows_older_though_collections_pass_it_by)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer, death, until = weir_deadline_in(patience_ns);
	weir_var *var = variable(1);

	weiri_eras_note();
	outer = weiri_section_enter(record);
	death = weiri_load_relaxed(&weiri_era);
	assign(var, 2);
	while (weiri_era_age(death, weir_now_ns()) == 0) {
		cr_assert_eq(weir_reclaim_flush(0), WEIR_DEADLINE_EXCEEDED);
		cr_assert_lt(weir_now_ns(), until, "the age was not noted");
	}
	weiri_section_leave(record, outer);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

/* Begins and notes eras for that time. */
static void pass_eras(uint64_t ns)
{
	for (uint64_t began = weir_now_ns(); weir_now_ns() - began < ns;) {
		weiri_era_begin();
		weiri_eras_note();
	}
}

/* 20 ticks of the first level, which has the notes of 16 eras. */
static const uint64_t ticks_20_ns = UINT64_C(20) << 22;

Test(stalls, an_era_that_goes_on_has_no_age)
{
	pass_eras(ticks_20_ns);
	for (uint64_t began = weir_now_ns(); weir_now_ns() - began < ticks_20_ns;) {
		weiri_eras_note();
		cr_assert_eq(weiri_era_age(weiri_load_relaxed(&weiri_era), weir_now_ns()), UINT64_C(0));
	}
}

/* A look reads the clock, and its thread may be stopped afterwards. */
Test(stalls, what_was_noted_later_makes_nothing_older)
{
	uint64_t era = weiri_load_relaxed(&weiri_era), now = weir_now_ns();

	pass_eras(ticks_20_ns);
	cr_assert_eq(weiri_era_age(era, now), UINT64_C(0));
}

Test(stalls, bad_calls_are_refused)
{
	cr_assert_eq(weir_stalls_visit(0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
}
