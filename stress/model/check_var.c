/*
 * check_var.c - variables and reclamation: reads during writes and collections, snapshots during
 * writes and commits.
 *
 * The results of assigns, reads, looks, snapshots and commits must be linearizable (judged.h). In
 * finish() everything must be freed.
 */
#include <stdio.h>
#include <string.h>
#include <weir/var_cache.h>

#include "model/judged.h"
#include "model/variable_scopes.h"
#include "reclaim/admit.h"
#include "var/install.h"
#include "var/tensor_value.h"

enum { MOST = 4 };

static struct scene {
	weir_var *x, *y;
	enum weir_status status[MOST];
	uint64_t version[MOST];
	int64_t saw[MOST][2];
	size_t writes; /* of the writer */
	enum size size;
	_Atomic(uint32_t) flag;
	_Atomic(void *) passed_on; /* a weir_read */
	weir_read handle;
} scene;

static weir_tensor *number(int64_t value)
{
	return number_of_size(value, scene.size);
}

static weir_var *variable(int64_t value)
{
	return variable_of_size(value, scene.size);
}

static void setup(void *context)
{
	(void)context;
	weir_reclaim_set_budget(8 * LARGE * sizeof(int64_t));
	scene.x = variable(0);
	scene.y = variable(0);
	judged_as_variables();
	setup_ends();
}

/* An aborted commit's version is at the head of x. */
static void setup_aborted(void *context)
{
	struct weiri_version *version;

	setup(context);
	version = weiri_version_of_tensor(weiri_record_get(), scene.x, number(9));
	weiri_version_set_base(version, weiri_load_relaxed(&scene.x->head));
	weiri_store_relaxed(&version->stamp, WEIRI_STAMP_ABORTED);
	weiri_store_relaxed(&scene.x->head, version);
	setup_ends();
}

static void finish(void *context)
{
	(void)context;
	weir_var_destroy(scene.x, NULL);
	weir_var_destroy(scene.y, NULL);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static uint64_t place_of(const weir_var *var)
{
	return var == scene.y;
}

static void assign(weir_var *var, int64_t value)
{
	weir_tensor *tensor = number(value);
	weir_read published;

	weir_model_call_begins(6);
	weir_model_assert(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, &published, NULL) == WEIR_OK);
	weir_model_call_ends(6);
	judged_write(place_of(var), published.version, (uint64_t)value);
	weir_read_release(&published);
	weir_tensor_release(tensor);
}

/* A read whose number of steps is not checked against a bound. */
static void read_now(weir_var *var, weir_read *read)
{
	weir_model_call_begins(7);
	weir_model_assert(weir_var_read(var, read) == WEIR_OK);
	weir_model_call_ends(7);
	judged_read(place_of(var), read->version, (uint64_t)value_of(read));
}

static void snapshot_of_x(weir_read *read)
{
	weir_model_call_begins(2);
	weir_model_assert(weir_var_snapshot(&scene.x, 1, read, NULL) == WEIR_OK);
	weir_model_call_ends(2);
	judged_read(0, read->version, (uint64_t)value_of(read));
}

/*
 * The bound of a release applies to handles with a slot. The release of a handle without a slot is
 * not wait-free if it drops the last reference.
 */
static void release(weir_read *read)
{
	bool by_slot = read->hold != NULL && weiri_hold_value_of(read) == NULL;

	if (by_slot)
		weir_model_call_begins(1);
	weir_read_release(read);
	if (by_slot)
		weir_model_call_ends(1);
}

static int64_t read_once(weir_var *var)
{
	weir_read read;
	int64_t value;

	weir_model_call_begins(0);
	weir_model_assert(weir_var_read(var, &read) == WEIR_OK);
	weir_model_call_ends(0);
	value = value_of(&read);
	judged_read(place_of(var), read.version, (uint64_t)value);
	weir_model_assert((int64_t)read.version == value + 1);
	release(&read);
	return value;
}

static uint64_t look_at_version(void)
{
	uint64_t version;

	(void)weiri_record_get(); /* the bound applies to a thread that has a record */
	weir_model_call_begins(4);
	version = weir_var_version(scene.x);
	weir_model_call_ends(4);
	judged_read(0, version, HISTORY_NONE);
	return version;
}

/* -- read during assign ------------------------------------------------------------------------ */

static void write_x(void)
{
	for (size_t i = 1; i <= scene.writes; i++)
		assign(scene.x, (int64_t)i);
}

static void read_beside_assign(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		write_x();
	} else {
		int64_t first = read_once(scene.x);

		weir_model_assert(read_once(scene.x) >= first);
	}
}

/*
 * Reads only a version that is newer than `version`. If the call returns "none", `version` was the
 * newest.
 */
static uint64_t read_newer_than(uint64_t version)
{
	weir_read read;
	enum weir_status status;

	weir_model_call_begins(5);
	status = weir_var_try_read_newer(scene.x, version, &read);
	weir_model_call_ends(5);
	weir_model_assert(status == WEIR_OK || status == WEIR_WOULD_BLOCK);
	judged_read(0, status == WEIR_OK ? read.version : version,
	            status == WEIR_OK ? (uint64_t)value_of(&read) : HISTORY_NONE);
	if (status == WEIR_WOULD_BLOCK)
		return version;
	weir_model_assert(read.version > version && value_of(&read) + 1 == (int64_t)read.version);
	version = read.version;
	release(&read);
	return version;
}

static void read_if_newer_beside_assign(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		write_x();
	} else {
		uint64_t first = read_newer_than(1), second = read_newer_than(first);

		weir_model_assert(look_at_version() >= second);
	}
}

/*
 * Each thread gets a version that no other thread gets, and keeps it while the other threads
 * continue.
 */
static void exchange(void *context, size_t who)
{
	weir_tensor *tensor = number((int64_t)who + 1);
	weir_read old;
	struct history_part part = {0, 0, 0, (uint64_t)who + 1};

	(void)context;
	weir_model_call_begins(6);
	weir_model_assert(weir_var_exchange(scene.x, tensor, WEIR_NO_DEADLINE, &old, NULL) == WEIR_OK);
	weir_model_call_ends(6);
	part.before = old.version;
	part.after = old.version + 1;
	weir_model_answer_parts(HISTORY_WRITE, 0, 0, &part, 1);
	weir_tensor_release(tensor);
	scene.version[who] = old.version;
	scene.saw[who][0] = value_of(&old);
	weir_model_assert(old.version != 1 || scene.saw[who][0] == 0);
	release(&old);
}

/*
 * The first write replaced the initial version, and the second write replaced the version of the
 * first.
 */
static void each_replaced_another(void *context)
{
	size_t first = scene.version[0] == 1 ? 0 : 1;

	weir_model_assert(scene.version[first] == 1 && scene.version[1 - first] == 2);
	weir_model_assert(scene.saw[1 - first][0] == (int64_t)first + 1);
	weir_model_assert(weir_var_version(scene.x) == 3);
	finish(context);
}

/* x keeps one version behind the newest. */
static void setup_history(void *context)
{
	setup(context);
	weir_model_assert(weir_var_destroy(scene.x, NULL) == WEIR_OK);
	scene.x = variable_that_keeps(0, scene.size, 1);
	setup_ends();
}

/*
 * A version may be missing only if it did not exist before, or if two newer versions exist
 * afterwards.
 */
static void read_number(uint64_t number)
{
	uint64_t before = weir_var_version(scene.x);
	weir_read read;
	enum weir_status status = weir_var_read_version(scene.x, number, &read);

	if (status == WEIR_OK) {
		weir_model_assert(read.version == number && value_of(&read) + 1 == (int64_t)number);
		weir_read_release(&read);
	} else if (status == WEIR_OUT_OF_RANGE) {
		weir_model_assert(before < number);
	} else {
		weir_model_assert(status == WEIR_NOT_FOUND && weir_var_version(scene.x) > number + 1);
	}
}

static void read_version_beside_assign(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		write_x();
	} else {
		read_number(1);
		read_number(2);
	}
}

/* Each thread retires a different version, once. */
static void assigns_to_history(void *context, size_t who)
{
	(void)context;
	assign(scene.x, (int64_t)who + 1);
	if (who == 0)
		assign(scene.x, 3);
}

/*
 * A handle is kept while later versions come and go. The thread that releases it is not the one
 * that retired its version.
 */
static void read_kept(void *context, size_t who)
{
	weir_read read;

	(void)context;
	if (who == 0) {
		write_x();
		return;
	}
	(void)weiri_record_get(); /* a thread's first read takes no slot */
	read_now(scene.x, &read);
	scene.saw[who][0] = value_of(&read);
	weir_model_assert(look_at_version() >= read.version);
	weir_model_assert(value_of(&read) == scene.saw[who][0]);
	weir_read_release(&read);
}

/* All slots except two are held, so that each search for a slot passes many. */
static void read_with_two_slots_left(void *context, size_t who)
{
	struct weiri_record *record = weiri_record_get();

	(void)context;
	if (who == 0) {
		write_x();
		return;
	}
	for (size_t i = 0; i < WEIRI_SLOTS - 2; i++)
		weiri_store_relaxed(&record->slots[i].object, record);
	weir_model_assert(read_once(scene.x) <= (int64_t)scene.writes);
	for (size_t i = 0; i < WEIRI_SLOTS - 2; i++)
		weiri_store_relaxed(&record->slots[i].object, NULL);
}

/*
 * With no budget a writer waits until the reader's handle is released, and is woken then: it does not
 * look again by itself.
 */
static void over_the_budget(void *context, size_t who)
{
	if (who == 0) {
		weiri_reclaim_look_again_ns = WEIR_NO_DEADLINE;
		weir_reclaim_set_budget(1);
	}
	read_kept(context, who);
}

/* Two writers that expect version 1: one succeeds. */
static void compare_assign(void *context, size_t who)
{
	weir_tensor *tensor = number(1);
	weir_read published;

	(void)context;
	weir_model_call_begins(6);
	scene.status[who] = weir_var_compare_assign(scene.x, 1, tensor, WEIR_NO_DEADLINE, &published, NULL);
	weir_model_call_ends(6);
	scene.version[who] = published.version;
	weir_read_release(&published);
	if (scene.status[who] == WEIR_OK)
		judged_write(0, scene.version[who], 1);
	else
		judged_read(0, scene.version[who], HISTORY_NONE);
	weir_tensor_release(tensor);
}

static void one_won(void *context)
{
	weir_model_assert((scene.status[0] == WEIR_OK) + (scene.status[1] == WEIR_OK) == 1);
	weir_model_assert((scene.status[0] == WEIR_ABORTED) + (scene.status[1] == WEIR_ABORTED) == 1);
	weir_model_assert(scene.version[0] == 2 && scene.version[1] == 2);
	finish(context);
}

static void two_assigns(void *context, size_t who)
{
	(void)context;
	if (who < 2)
		assign(scene.x, 7);
	else
		scene.version[2] = look_at_version();
}

static void three_versions(void *context)
{
	weir_model_assert(weir_var_version(scene.x) == 3 && scene.version[2] <= 3);
	finish(context);
}

/*
 * The program has a seq_cst flag besides the variable. One thread sets the flag and then reads the
 * variable. Another thread writes the variable and then reads the flag. In the total order of
 * seq_cst operations one of the two reads comes last, and it sees the write of the other thread.
 */
static void around_a_flag(size_t who, int64_t (*look)(void))
{
	if (who == 0) {
		(void)weiri_record_get(); /* a thread's first read takes no slot */
		weiri_store_seq_cst(&scene.flag, 1u);
		scene.saw[who][0] = look();
	} else {
		assign(scene.x, 1);
		scene.saw[who][0] = weiri_load_seq_cst(&scene.flag);
	}
}

static void one_saw_the_other(void *context)
{
	weir_model_assert(scene.saw[0][0] == 1 || scene.saw[1][0] == 1);
	finish(context);
}

static int64_t by_read(void)
{
	return read_once(scene.x);
}

static int64_t by_version(void)
{
	return (int64_t)look_at_version() - 1;
}

static int64_t by_snapshot(void)
{
	weir_read read;
	int64_t value;

	snapshot_of_x(&read);
	value = value_of(&read);
	weir_read_release(&read);
	return value;
}

static void read_around_a_flag(void *context, size_t who)
{
	(void)context;
	around_a_flag(who, by_read);
}

/* The first read announces the era, so that the second one takes a slot without a fence. */
static void second_read_around_a_flag(void *context, size_t who)
{
	if (who == 0)
		(void)by_read();
	read_around_a_flag(context, who);
}

static void version_around_a_flag(void *context, size_t who)
{
	(void)context;
	around_a_flag(who, by_version);
}

static void snapshot_around_a_flag(void *context, size_t who)
{
	(void)context;
	around_a_flag(who, by_snapshot);
}

/* -- snapshots --------------------------------------------------------------------------------- */

static void judge_parts(enum history_kind kind, struct history_part one, struct history_part other)
{
	weir_model_answer_parts(kind, 0, 0, (struct history_part[]){one, other}, 2);
}

static void snapshot(size_t who)
{
	weir_var *const vars[] = {scene.x, scene.y};
	weir_read reads[2];

	weir_model_call_begins(2);
	weir_model_assert(weir_var_snapshot(vars, 2, reads, NULL) == WEIR_OK);
	weir_model_call_ends(2);
	for (size_t i = 0; i < 2; i++)
		scene.saw[who][i] = value_of(&reads[i]);
	judge_parts(HISTORY_READ, (struct history_part){0, reads[0].version, HISTORY_NONE, (uint64_t)scene.saw[who][0]},
	            (struct history_part){1, reads[1].version, HISTORY_NONE, (uint64_t)scene.saw[who][1]});
	weir_read_release_many(reads, 2);
}

/* x is written before y: a snapshot with the new y has the new x. */
static void snapshot_beside_writer(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		assign(scene.x, 1);
		assign(scene.y, 1);
	} else {
		snapshot(who);
		weir_model_assert(scene.saw[who][1] <= scene.saw[who][0]);
	}
}

/*
 * The version that was newest when the snapshot began may have been replaced and collected, and so
 * may its successor.
 */
static void snapshot_beside_collector(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		write_x();
	else
		weir_model_assert(by_snapshot() <= 2);
}

/*
 * The same where the snapshot advances the clock at once. The first version that is assigned is born
 * in an era that the snapshot has not reserved, and is freed when the second one replaces it.
 */
static void snapshot_ahead_beside_collector(void *context, size_t who)
{
	if (who == 0)
		(void)weiri_era_begin();
	else
		weiri_store_relaxed(&weiri_record_get()->snapshots_ahead, 1u);
	snapshot_beside_collector(context, who);
}

/* A handle of a snapshot is released by another thread, and its slot serves the next snapshot. */
static void snapshot_passed_on(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		write_x();
	} else if (who == 1) {
		snapshot_of_x(&scene.handle);
		weiri_store_release(&scene.passed_on, &scene.handle);
		(void)by_snapshot();
	} else {
		weir_read *read = weiri_load_acquire(&scene.passed_on);

		if (read == NULL)
			return;
		weir_model_assert(value_of(read) <= 1);
		weir_read_release(read);
	}
}

static void finish_passed_on(void *context)
{
	weir_read_release(&scene.handle); /* thread 2 may have looked before the handle was passed on */
	finish(context);
}

/* Two writers, two snapshots: the snapshots agree about which write came first. */
static void snapshots_beside_writers(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		assign(scene.x, 1);
	else if (who == 1)
		assign(scene.y, 1);
	else
		snapshot(who);
}

static void snapshots_agree(void *context)
{
	int apart = scene.saw[2][0] > scene.saw[3][0] && scene.saw[2][1] < scene.saw[3][1];

	apart |= scene.saw[2][0] < scene.saw[3][0] && scene.saw[2][1] > scene.saw[3][1];
	weir_model_assert(!apart);
	finish(context);
}

/* -- commits ----------------------------------------------------------------------------------- */

static void commit_both(size_t who)
{
	weir_tensor *one = number((int64_t)who + 1), *two = number((int64_t)who + 1);
	struct weir_commit_part parts[] = {{scene.x, 1, one}, {scene.y, 1, two}};

	weir_model_call_begins(3);
	scene.status[who] = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
	weir_model_call_ends(3);
	if (scene.status[who] == WEIR_OK)
		judge_parts(HISTORY_WRITE, (struct history_part){0, 1, 2, (uint64_t)who + 1},
		            (struct history_part){1, 1, 2, (uint64_t)who + 1});
	else
		judge_parts(HISTORY_ABORTED, (struct history_part){0, 1, HISTORY_NONE, HISTORY_NONE},
		            (struct history_part){1, 1, HISTORY_NONE, HISTORY_NONE});
	weir_tensor_release(one);
	weir_tensor_release(two);
}

static void commit_beside_snapshot(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		commit_both(who);
		weir_model_assert(scene.status[0] == WEIR_OK);
	} else {
		snapshot(who);
		weir_model_assert(scene.saw[who][0] == scene.saw[who][1]);
	}
}

static void tick(void)
{
	weiri_clock_advance(weiri_load_seq_cst(&weiri_clock));
}

/*
 * Another snapshot advances the clock to the stamp that the commit may get. This alone must not
 * make the commit visible.
 */
static void commit_beside_tick_and_snapshot(void *context, size_t who)
{
	if (who == 2)
		tick();
	else
		commit_beside_snapshot(context, who);
}

/*
 * The thread has looked at one of the parts before. So its snapshot may find a cell that a reader has
 * passed already, and does not mark it anew.
 */
static void commit_beside_tick_and_look_and_snapshot(void *context, size_t who)
{
	if (who == 1)
		(void)weir_var_version(scene.x);
	commit_beside_tick_and_snapshot(context, who);
}

/* A snapshot that was delayed while it advanced the clock does not put the clock back. */
static void snapshot_of_own_assign_beside_tick(void *context, size_t who)
{
	(void)context;
	tick();
	if (who == 0)
		return;
	tick();
	assign(scene.x, 1);
	snapshot(who);
	weir_model_assert(scene.saw[who][0] == 1);
}

static void commit_beside_commit(void *context, size_t who)
{
	(void)context;
	if (who < 2) {
		commit_both(who);
	} else {
		snapshot(who);
		weir_model_assert(scene.saw[who][0] == scene.saw[who][1]);
	}
}

/*
 * The number of versions of the two variables that were made, including those of commits that did
 * not succeed.
 */
static uint64_t versions_made(void)
{
	const struct weiri_record *record = weiri_load_acquire(&weiri_records);
	uint64_t made = 0;

	for (; record != NULL; record = record->next)
		made += weiri_load_relaxed(&record->created);
	return made;
}

/* A commit that is too late reports this at its first attempt, and makes no other attempt. */
static void one_committed(void *context)
{
	weir_model_assert(versions_made() == 2 + 2 + 2);
	weir_model_assert((scene.status[0] == WEIR_OK) + (scene.status[1] == WEIR_OK) == 1);
	snapshot(3);
	weir_model_assert(scene.saw[3][0] == scene.saw[3][1]);
	weir_model_assert(scene.saw[3][0] == (scene.status[0] == WEIR_OK ? 1 : 2));
	finish(context);
}

static void commit_beside_assign(void *context, size_t who)
{
	(void)context;
	if (who == 0)
		commit_both(0);
	else
		assign(scene.y, 7);
}

static void commit_or_assign(void *context)
{
	snapshot(3);
	/* One attempt, and an assign. */
	weir_model_assert(versions_made() == 2 + 2 + 1);
	/* The assign took effect; the commit took effect completely before it, or not at all. */
	weir_model_assert(scene.saw[3][0] == (scene.status[0] == WEIR_OK));
	weir_model_assert(scene.saw[3][1] == 7);
	finish(context);
}

static void commit_one(weir_var *var)
{
	weir_tensor *tensor = number(1);
	struct weir_commit_part part = {var, 1, tensor};
	const struct history_part judged = {place_of(var), 1, 2, 1};

	weir_model_call_begins(3);
	weir_model_assert(weir_var_commit(&part, 1, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_model_call_ends(3);
	weir_model_answer_parts(HISTORY_WRITE, 0, 0, &judged, 1);
	weir_tensor_release(tensor);
}

/*
 * A thread finds the commit's part without a stamp and reads the cell, in a section that begins in
 * a new era. Meanwhile the owner of the commit retires the cell. The era of that retirement must
 * not be older than the era in which the section began (pair S2 of var/version.h).
 */
static void look_at_x(void)
{
	weir_model_assert(look_at_version() <= 2);
}

static void commit_beside_look_and_era(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		commit_one(scene.x);
	} else if (who == 1) {
		look_at_x();
	} else {
		weiri_era_begin();
	}
}

/* The same, but y may move, so that the commit is aborted with x's part installed. */
static void aborted_commit_beside_look_and_era(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		commit_both(0);
	} else if (who == 1) {
		assign(scene.y, 7);
		look_at_x();
	} else {
		weiri_era_begin();
	}
}

/* -- store buffering, and writes that two threads see in opposite orders ----------------------- */

/*
 * Each of the first two threads writes one variable and reads the other; each of the other two
 * reads both, in opposite orders.
 */
static void around_reads(size_t who, void (*write)(weir_var *var))
{
	weir_var *const own = who % 2 == 0 ? scene.x : scene.y, *const other = who % 2 == 0 ? scene.y : scene.x;

	if (who < 2)
		write(own);
	else
		(void)read_once(own);
	(void)read_once(other);
}

static void assign_one(weir_var *var)
{
	assign(var, 1);
}

static void assigns_around_reads(void *context, size_t who)
{
	(void)context;
	around_reads(who, assign_one);
}

static void commits_around_reads(void *context, size_t who)
{
	(void)context;
	around_reads(who, commit_one);
}

/* The comparison is inlined here, as in programs: the header's own code. */
static int64_t read_by_cache(weir_var_cache *cache)
{
	const weir_read *read = weir_var_cache_read(cache);

	weir_model_assert(read != NULL);
	judged_read(place_of(cache->var), read->version, (uint64_t)value_of(read));
	return value_of(read);
}

/* A read finds the cached version at the head, or takes a newer one, and never a freed one. */
static void cache_beside_assigns(void *context, size_t who)
{
	weir_var_cache cache;

	(void)context;
	if (who == 0) {
		assign(scene.x, 1);
		assign(scene.x, 2);
		return;
	}
	weir_var_cache_init(&cache, scene.x);
	(void)read_by_cache(&cache);
	(void)read_by_cache(&cache);
	weir_var_cache_release(&cache);
}

/* As read_around_a_flag(): the cache holds the first version, and only compares. */
static void cache_around_a_flag(void *context, size_t who)
{
	weir_var_cache cache;

	(void)context;
	if (who != 0) {
		assign(scene.x, 1);
		scene.saw[who][0] = weiri_load_seq_cst(&scene.flag);
		return;
	}
	weir_var_cache_init(&cache, scene.x);
	(void)read_by_cache(&cache);
	weiri_store_seq_cst(&scene.flag, 1u);
	scene.saw[who][0] = read_by_cache(&cache);
	weir_var_cache_release(&cache);
}

/* 0, 1: write; 2, 3: read both. */
static void iriw(void *context, size_t who)
{
	(void)context;
	if (who < 2)
		assign_one(who == 0 ? scene.x : scene.y);
	else
		around_reads(who, NULL);
}

static void iriw_of_commits(void *context, size_t who)
{
	if (who < 2)
		commit_one(who == 0 ? scene.x : scene.y);
	else
		iriw(context, who);
}

/* Each thread writes one variable, and reads both at one instant. */
static void assigns_around_snapshots(void *context, size_t who)
{
	(void)context;
	assign_one(who == 0 ? scene.x : scene.y);
	snapshot(who);
}

/*
 * A planted fault: a look after the thread's own write that returns the version before that write.
 */
static void wrong_look(void *context, size_t who)
{
	weir_var *var = who == 0 ? scene.x : scene.y;

	(void)context;
	if (who == 0)
		assign_one(var);
	else
		commit_one(var);
	weir_model_call_begins(4);
	weir_model_call_ends(4);
	judged_read(place_of(var), 1, HISTORY_NONE);
}

/* A planted fault: a snapshot that has one part of a commit and not the other. */
static void wrong_snapshot(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		commit_both(0);
		return;
	}
	weir_model_call_begins(2);
	weir_model_call_ends(2);
	judge_parts(HISTORY_READ, (struct history_part){0, 2, HISTORY_NONE, HISTORY_NONE},
	            (struct history_part){1, 1, HISTORY_NONE, HISTORY_NONE});
}

static int check_planted(void)
{
	const struct weir_model_program look = {"var_a_wrong_look", 2, &scene, sizeof(scene), setup, wrong_look, finish};
	const struct weir_model_program part = {
		"snapshot_of_half_a_commit", 2, &scene, sizeof(scene), setup, wrong_snapshot, finish};
	int bad;

	scene = (struct scene){.size = SMALL_VALUES};
	bad = scope_finds(&look, judged_wrong);
	scene = (struct scene){.size = SMALL_VALUES};
	return bad | scope_finds(&part, judged_wrong);
}

enum progress { WAITS, GOES_ON };
enum { SYMMETRIC = 7 }; /* this many scopes, from the first, are also run with membarrier refused */

static const struct scope {
	const char *name;
	size_t threads;
	void (*thread)(void *, size_t);
	void (*setup)(void *);
	void (*finish)(void *);
	size_t writes;
	enum size size;
	enum progress progress; /* while a thread is stopped */
} scopes[] = {
	{"var_1_assign_1_reader_x2", 2, read_beside_assign, setup, finish, 1, SMALL_VALUES, GOES_ON},
	{"var_1_assign_and_collect_1_reader_x2", 2, read_beside_assign, setup, finish, 1, LARGE_VALUES, GOES_ON},
	{"var_2_assigns_and_collects_1_reader_x1", 2, read_kept, setup, finish, 2, LARGE_VALUES, GOES_ON},
	{"var_1_assign_and_collect_2_readers_x1", 3, read_kept, setup, finish, 1, LARGE_VALUES, GOES_ON},
	{"var_aborted_1_assign_and_collect_1_reader_x2", 2, read_beside_assign, setup_aborted, finish, 1, LARGE_VALUES,
     GOES_ON},
	{"var_aborted_2_assigns_1_reader_x1_two_slots_left", 2, read_with_two_slots_left, setup_aborted, finish, 2,
     SMALL_VALUES, GOES_ON},
	{"var_3_assigns_over_the_budget_1_reader_pokes", 2, over_the_budget, setup, finish, 3, LARGE_VALUES, WAITS},
	{"var_2_compare_assigns", 2, compare_assign, setup, one_won, 0, SMALL_VALUES, GOES_ON},
	{"var_history_of_1_2_assigns_1_read_version_x2", 2, read_version_beside_assign, setup_history, finish, 2,
     SMALL_VALUES, GOES_ON},
	{"var_history_of_1_3_assigns_and_collects_1_read_version_x2", 2, read_version_beside_assign, setup_history, finish,
     3, LARGE_VALUES, GOES_ON},
	{"var_history_of_1_3_assigns_and_collects_of_2", 2, assigns_to_history, setup_history, finish, 0, LARGE_VALUES,
     GOES_ON},
	{"var_2_exchanges", 2, exchange, setup, each_replaced_another, 0, SMALL_VALUES, GOES_ON},
	{"var_2_exchanges_and_collects", 2, exchange, setup, each_replaced_another, 0, LARGE_VALUES, GOES_ON},
	{"var_2_assigns_1_read_if_newer_x2", 2, read_if_newer_beside_assign, setup, finish, 2, SMALL_VALUES, GOES_ON},
	{"var_2_assigns_1_look_at_the_version", 3, two_assigns, setup, three_versions, 0, SMALL_VALUES, GOES_ON},
	{"var_cache_x2_beside_2_assigns", 2, cache_beside_assigns, setup, finish, 0, SMALL_VALUES, GOES_ON},
	{"var_cache_x2_beside_2_assigns_and_collects", 2, cache_beside_assigns, setup, finish, 0, LARGE_VALUES, GOES_ON},
	{"var_aborted_cache_x2_beside_2_assigns", 2, cache_beside_assigns, setup_aborted, finish, 0, SMALL_VALUES, GOES_ON},
	{"var_cache_and_assign_around_a_flag", 2, cache_around_a_flag, setup, one_saw_the_other, 0, SMALL_VALUES, GOES_ON},
	{"var_read_and_assign_around_a_flag", 2, read_around_a_flag, setup, one_saw_the_other, 0, SMALL_VALUES, GOES_ON},
	{"var_aborted_read_and_assign_around_a_flag", 2, read_around_a_flag, setup_aborted, one_saw_the_other, 0,
     SMALL_VALUES, GOES_ON},
	{"var_aborted_second_read_and_assign_around_a_flag", 2, second_read_around_a_flag, setup_aborted, one_saw_the_other,
     0, SMALL_VALUES, GOES_ON},
	{"var_version_and_assign_around_a_flag", 2, version_around_a_flag, setup, one_saw_the_other, 0, SMALL_VALUES,
     GOES_ON},
	{"snapshot_and_assign_around_a_flag", 2, snapshot_around_a_flag, setup, one_saw_the_other, 0, SMALL_VALUES,
     GOES_ON},
	{"snapshot_of_2_beside_2_assigns_in_order", 2, snapshot_beside_writer, setup, finish, 0, SMALL_VALUES, GOES_ON},
	{"snapshots_of_2_x2_beside_2_writers", 4, snapshots_beside_writers, setup, snapshots_agree, 0, SMALL_VALUES,
     GOES_ON},
	{"snapshot_of_1_beside_2_assigns_and_collects", 2, snapshot_beside_collector, setup, finish, 2, LARGE_VALUES,
     GOES_ON},
	{"snapshot_ahead_of_1_beside_a_new_era_2_assigns_and_collects", 2, snapshot_ahead_beside_collector, setup, finish,
     2, LARGE_VALUES, GOES_ON},
	{"snapshot_of_1_passed_on_beside_1_assign_and_collect", 3, snapshot_passed_on, setup, finish_passed_on, 1,
     LARGE_VALUES, GOES_ON},
	{"commit_of_2_beside_snapshot", 2, commit_beside_snapshot, setup, finish, 0, SMALL_VALUES, GOES_ON},
	{"commit_of_2_beside_tick_and_snapshot", 3, commit_beside_tick_and_snapshot, setup, finish, 0, SMALL_VALUES,
     GOES_ON},
	{"commit_of_2_beside_tick_and_look_and_snapshot", 3, commit_beside_tick_and_look_and_snapshot, setup, finish, 0,
     SMALL_VALUES, GOES_ON},
	{"snapshot_of_own_assign_beside_tick", 2, snapshot_of_own_assign_beside_tick, setup, finish, 0, SMALL_VALUES,
     GOES_ON},
	{"commit_of_2_beside_commit_of_2", 2, commit_beside_commit, setup, one_committed, 0, SMALL_VALUES, GOES_ON},
	{"commit_of_2_beside_commit_of_2_and_snapshot", 3, commit_beside_commit, setup, one_committed, 0, SMALL_VALUES,
     GOES_ON},
	{"var_store_buffering_2_assigns_around_reads", 2, assigns_around_reads, setup, finish, 0, SMALL_VALUES, GOES_ON},
	{"var_iriw_2_assigns_2_who_read_both", 4, iriw, setup, finish, 0, SMALL_VALUES, GOES_ON},
	{"snapshot_store_buffering_2_assigns_around_snapshots", 2, assigns_around_snapshots, setup, finish, 0, SMALL_VALUES,
     GOES_ON},
	{"commit_store_buffering_2_commits_around_reads", 2, commits_around_reads, setup, finish, 0, SMALL_VALUES, GOES_ON},
	{"commit_iriw_2_commits_2_who_read_both", 4, iriw_of_commits, setup, finish, 0, SMALL_VALUES, GOES_ON},
	{"commit_of_2_beside_assign", 2, commit_beside_assign, setup, commit_or_assign, 0, SMALL_VALUES, GOES_ON},
	{"commit_of_1_and_collect_beside_look_and_a_new_era", 3, commit_beside_look_and_era, setup, finish, 0, LARGE_VALUES,
     GOES_ON},
	{"commit_of_2_and_collect_beside_assign_look_and_a_new_era", 3, aborted_commit_beside_look_and_era, setup, finish,
     0, LARGE_VALUES, GOES_ON},
};

static struct weir_model_program prepare(const struct scope *scope)
{
	scene = (struct scene){.writes = scope->writes, .size = scope->size};
	return (struct weir_model_program){scope->name,  scope->threads, &scene,       sizeof(scene),
	                                   scope->setup, scope->thread,  scope->finish};
}

static const char *const calls[WEIR_MODEL_CALLS + 1] = {"read",    "read_release",  "snapshot", "commit",
                                                        "version", "read_if_newer", NULL};

/*
 * Sets the bounds that include/weir/var.h states for the wait-free calls, less the steps that
 * cannot occur in a scope: further rounds if there are no collections, the waking of writers if
 * none waits, and fences that membarrier saves.
 */
static void bounds_of(const struct scope *scope, int has_fences, uint32_t bounds[WEIR_MODEL_CALLS])
{
	uint32_t rounds = scope->size == LARGE_VALUES ? 2 : 0, wake = scope->progress == WAITS ? 3 : 0,
			 fence = has_fences != 0;

	bounds[0] = 72 + 4 * rounds - 2 * (3 - wake) - 2 * (1 - fence);
	bounds[1] = 6 - (3 - wake) - (1 - fence);
	bounds[5] = 90 + 8 * rounds - 2 * (3 - wake) - 2 * (1 - fence);
	bounds[4] = 18 + 4 * rounds;
}

static int check(const struct scope *scope, int symmetric, uint64_t executions)
{
	struct weir_model_program program = prepare(scope);
	uint32_t bounds[WEIR_MODEL_CALLS] = {0};
	int bad;

	scope_symmetric(symmetric);
	bounds_of(scope, symmetric, bounds);
	bad = scope_within(&program, executions, calls, bounds);
	/* Stopped readers, assigns, snapshots and commits block no other thread. */
	if (!symmetric && scope->progress == GOES_ON)
		bad |= scope_stops(&program, scope_long() ? 5000 : 50, calls, bounds);
	return bad;
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check_planted();
	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
		bad |= check(&scopes[i], 0, scope_long() ? 10000000 : 20000);
	for (size_t i = 0; i < SYMMETRIC; i++)
		bad |= check(&scopes[i], 1, scope_long() ? 10000000 : 10000);
	return bad;
}
