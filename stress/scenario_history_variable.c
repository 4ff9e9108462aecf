/*
 * scenario_history_variable.c - histories of variables, snapshots and commits, judged for
 * linearizability.
 *
 * Each operation is recorded with the versions that it saw and published, and the times of its call
 * and return. There must be one order of all operations on all variables that explains every
 * version seen and agrees with real time. Snapshots and commits are single points of this order,
 * and a commit that was aborted follows a write that replaced one of its versions.
 *
 * A transaction is one operation, from its begin to its end. An aborted one is recorded twice: as
 * an abort, and as a read of what it had read, which must have existed at one instant (opacity).
 * The variables stay from round to round. A round counts versions from those that it found.
 */
#include "harness.h"

#include <inttypes.h>
#include <weir/reclaim.h>
#include <weir/time.h>
#include <weir/txn.h>
#include <weir/var.h>

#include "burst.h"
#include "poison.h"
#include "scenarios.h"

enum { VARIABLES = 4, INITIAL = 1, KEPT = 2 };

static const uint64_t flush_ns = 100000000000u;
static const uint64_t initial_version = INITIAL;

static struct {
	weir_var *var[VARIABLES];
	uint64_t variables;       /* in use */
	uint64_t base[VARIABLES]; /* the versions that the round found */
	/* What each thread saw last, in the round's numbers. Its writes are based on this. */
	struct {
		WEIRI_ALIGNED_APART uint64_t version[VARIABLES];
	} seen[BURST_MOST_THREADS];
} under_test;

static uint64_t in_round(uint64_t object, uint64_t version)
{
	return version - under_test.base[object] + INITIAL;
}

static uint64_t outside(uint64_t object, uint64_t version)
{
	return version - INITIAL + under_test.base[object];
}

static uint64_t tag_of(const struct history_log *log, uint64_t number, uint64_t object)
{
	return ((uint64_t)log->thread << 32) + (number << 2) + object;
}

static weir_tensor *draw_payload(struct stress_thread *self, uint64_t tag)
{
	return stress_payload(tag, 1 + (size_t)stress_below(self, 4));
}

/* -- one variable ------------------------------------------------------------------------------ */

static void note_one(struct history_log *log, enum history_kind kind, struct history_part part, uint64_t called,
                     uint64_t returned)
{
	uint64_t newest = part.after != HISTORY_NONE ? part.after : part.before;

	if (kind != HISTORY_ABORTED)
		under_test.seen[log->thread].version[part.object] = newest;
	history_note_parts(log, kind, &part, 1, HISTORY_NONE, called, returned);
}

static void read_one(struct history_log *log, uint64_t object)
{
	weir_read read;
	uint64_t called = history_call(log);
	enum weir_status status = weir_var_read(under_test.var[object], &read);
	uint64_t returned = history_return(log), tag;

	STRESS_CHECK(status == WEIR_OK, "weir_var_read: %s", weir_status_name(status));
	tag = stress_payload_check(read.tensor, "read");
	note_one(log, HISTORY_READ, (struct history_part){object, in_round(object, read.version), HISTORY_NONE, tag},
	         called, returned);
	weir_read_release(&read);
}

static void ask_version(struct history_log *log, uint64_t object)
{
	uint64_t called = history_call(log), version = weir_var_version(under_test.var[object]);
	uint64_t returned = history_return(log);

	note_one(log, HISTORY_READ, (struct history_part){object, in_round(object, version), HISTORY_NONE, HISTORY_NONE},
	         called, returned);
}

static void assign(struct stress_thread *self, struct history_log *log, uint64_t object, uint64_t tag)
{
	weir_tensor *value = draw_payload(self, tag);
	weir_read published = {.hold = NULL};
	uint64_t called = history_call(log);
	enum weir_status status = weir_var_assign(under_test.var[object], value, WEIR_NO_DEADLINE, &published, NULL);
	uint64_t returned = history_return(log), version = published.version;

	STRESS_CHECK(status == WEIR_OK, "weir_var_assign: %s", weir_status_name(status));
	weir_read_release(&published);
	weir_tensor_release(value);
	note_one(log, HISTORY_WRITE, (struct history_part){object, HISTORY_NONE, in_round(object, version), tag}, called,
	         returned);
}

/* "Nothing newer" means that what the thread has seen is still the newest. */
static void read_newer(struct history_log *log, uint64_t object)
{
	weir_read read;
	uint64_t seen = under_test.seen[log->thread].version[object], called = history_call(log);
	enum weir_status status = weir_var_try_read_newer(under_test.var[object], outside(object, seen), &read);
	uint64_t returned = history_return(log), tag = HISTORY_NONE;

	STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "weir_var_try_read_newer: %s",
	             weir_status_name(status));
	if (status == WEIR_OK) {
		STRESS_CHECK(in_round(object, read.version) > seen, "version %" PRIu64 " is not newer", read.version);
		seen = in_round(object, read.version);
		tag = stress_payload_check(read.tensor, "read_if_newer");
		weir_read_release(&read);
	}
	note_one(log, HISTORY_READ, (struct history_part){object, seen, HISTORY_NONE, tag}, called, returned);
}

static void exchange(struct stress_thread *self, struct history_log *log, uint64_t object, uint64_t tag)
{
	weir_tensor *value = draw_payload(self, tag);
	weir_read old;
	uint64_t before, called = history_call(log), returned;
	enum weir_status status = weir_var_exchange(under_test.var[object], value, WEIR_NO_DEADLINE, &old, NULL);

	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK, "weir_var_exchange: %s", weir_status_name(status));
	weir_tensor_release(value);
	(void)stress_payload_check(old.tensor, "exchange");
	before = in_round(object, old.version);
	weir_read_release(&old);
	note_one(log, HISTORY_WRITE, (struct history_part){object, before, before + 1, tag}, called, returned);
}

/* Only every second variable keeps its history. */
static uint32_t kept_of(uint64_t object)
{
	return object % 2 != 0 ? KEPT : 0;
}

/*
 * The version before the one that the thread has seen is kept, unless newer versions were published
 * since.
 */
static void read_version(struct history_log *log, uint64_t object)
{
	uint64_t number = outside(object, under_test.seen[log->thread].version[object]) - 1;
	weir_read read;
	enum weir_status status = number != 0 ? weir_var_read_version(under_test.var[object], number, &read) : WEIR_OK;

	if (number == 0)
		return;
	STRESS_CHECK(status == WEIR_OK ||
	                 (status == WEIR_NOT_FOUND && weir_var_version(under_test.var[object]) > number + kept_of(object)),
	             "weir_var_read_version: %s", weir_status_name(status));
	if (status == WEIR_OK) {
		STRESS_CHECK(read.version == number, "version %" PRIu64 " instead of %" PRIu64, read.version, number);
		(void)stress_payload_check(read.tensor, "read_version");
		weir_read_release(&read);
	}
}

/* A compare_assign that failed has seen the current version. */
static void compare_assign(struct stress_thread *self, struct history_log *log, uint64_t object, uint64_t tag)
{
	weir_tensor *value = draw_payload(self, tag);
	uint64_t expected = under_test.seen[log->thread].version[object], called = history_call(log);
	weir_read published = {.hold = NULL};
	enum weir_status status = weir_var_compare_assign(under_test.var[object], outside(object, expected), value,
	                                                  WEIR_NO_DEADLINE, &published, NULL);
	uint64_t returned = history_return(log), there = in_round(object, published.version);

	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "weir_var_compare_assign: %s", weir_status_name(status));
	weir_read_release(&published);
	weir_tensor_release(value);
	if (status == WEIR_OK) {
		note_one(log, HISTORY_WRITE, (struct history_part){object, expected, there, tag}, called, returned);
	} else {
		STRESS_CHECK(there > expected, "aborted on version %" PRIu64 ", expected %" PRIu64, there, expected);
		note_one(log, HISTORY_READ, (struct history_part){object, there, HISTORY_NONE, HISTORY_NONE}, called, returned);
	}
}

struct next {
	uint64_t based_on; /* by the last attempt */
	weir_tensor *value;
};

static enum weir_status replace(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	struct next *ours = context;

	(void)error;
	ours->based_on = current->version;
	weir_tensor_retain(ours->value);
	*next = ours->value;
	return WEIR_OK;
}

static void update(struct stress_thread *self, struct history_log *log, uint64_t object, uint64_t tag)
{
	struct next next = {0, draw_payload(self, tag)};
	weir_read published;
	uint64_t called = history_call(log), returned;
	enum weir_status status =
		weir_var_update(under_test.var[object], replace, &next, WEIR_NO_DEADLINE, &published, NULL);

	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK, "weir_var_update: %s", weir_status_name(status));
	note_one(log, HISTORY_WRITE,
	         (struct history_part){object, in_round(object, next.based_on), in_round(object, published.version), tag},
	         called, returned);
	weir_read_release(&published);
	weir_tensor_release(next.value);
}

/* -- several variables ------------------------------------------------------------------------- */

/* Draws different objects, at least `least`, in a random rotation. Returns their number. */
static size_t draw_objects(struct stress_thread *self, uint64_t objects[], uint64_t least)
{
	uint64_t count = least + stress_below(self, under_test.variables - least + 1);
	uint64_t start = stress_below(self, under_test.variables);
	int backwards = stress_one_in(self, 2);

	for (uint64_t i = 0; i < count; i++)
		objects[i] = (start + (backwards ? under_test.variables - i : i)) % under_test.variables;
	return (size_t)count;
}

static void snapshot(struct stress_thread *self, struct history_log *log)
{
	struct history_part parts[VARIABLES];
	weir_var *vars[VARIABLES];
	weir_read reads[VARIABLES];
	uint64_t objects[VARIABLES], called, returned;
	size_t count = draw_objects(self, objects, 1);
	enum weir_status status;

	for (size_t i = 0; i < count; i++)
		vars[i] = under_test.var[objects[i]];
	called = history_call(log);
	status = weir_var_snapshot(vars, count, reads, NULL);
	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK, "weir_var_snapshot: %s", weir_status_name(status));
	for (size_t i = 0; i < count; i++) {
		uint64_t version = in_round(objects[i], reads[i].version);

		under_test.seen[log->thread].version[objects[i]] = version;
		parts[i] =
			(struct history_part){objects[i], version, HISTORY_NONE, stress_payload_check(reads[i].tensor, "snapshot")};
	}
	weir_read_release_many(reads, count);
	history_note_parts(log, HISTORY_READ, parts, count, HISTORY_NONE, called, returned);
}

/*
 * Makes a commit based on what the thread saw last. After an abort the thread reads the newest
 * versions; otherwise it would never succeed again.
 */
static void commit(struct stress_thread *self, struct history_log *log, uint64_t number)
{
	struct history_part parts[VARIABLES];
	struct weir_commit_part wanted[VARIABLES];
	uint64_t objects[VARIABLES], called, returned;
	weir_read published[VARIABLES];
	size_t count = draw_objects(self, objects, 2);
	enum weir_status status;

	for (size_t i = 0; i < count; i++) {
		uint64_t o = objects[i], expected = under_test.seen[log->thread].version[o], tag = tag_of(log, number, o);

		wanted[i] = (struct weir_commit_part){under_test.var[o], outside(o, expected), draw_payload(self, tag)};
		parts[i] = (struct history_part){o, expected, HISTORY_NONE, tag};
	}
	called = history_call(log);
	status = weir_var_commit(wanted, count, WEIR_NO_DEADLINE, published, NULL);
	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "weir_var_commit: %s", weir_status_name(status));
	for (size_t i = 0; i < count; i++) {
		weir_tensor_release(wanted[i].value);
		if (status == WEIR_OK)
			parts[i].after = under_test.seen[log->thread].version[objects[i]] =
				in_round(objects[i], published[i].version);
	}
	if (status == WEIR_OK)
		weir_read_release_many(published, count);
	history_note_parts(log, status == WEIR_OK ? HISTORY_WRITE : HISTORY_ABORTED, parts, count, HISTORY_NONE, called,
	                   returned);
	for (size_t i = 0; i < count && status == WEIR_ABORTED; i++)
		ask_version(log, objects[i]);
}

/* -- transactions ------------------------------------------------------------------------------ */

/* Reads one variable, and assigns to it every second time. WEIR_ABORTED: *part is not set. */
static enum weir_status touch(struct stress_thread *self, weir_txn *txn, uint64_t object, uint64_t tag,
                              struct history_part *part)
{
	weir_var *var = under_test.var[object];
	weir_tensor *read, *value;
	uint64_t version;
	enum weir_status status = weir_txn_read(txn, var, &read, NULL);

	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "weir_txn_read: %s", weir_status_name(status));
	if (status != WEIR_OK)
		return status;
	version = in_round(object, weir_txn_version(txn, var));
	*part = (struct history_part){object, version, HISTORY_NONE, stress_payload_check(read, "txn")};
	if (stress_one_in(self, 2)) {
		value = draw_payload(self, tag);
		status = weir_txn_assign(txn, var, value, NULL);
		STRESS_CHECK(status == WEIR_OK, "weir_txn_assign: %s", weir_status_name(status));
		weir_tensor_release(value);
		part->after = version + 1;
		part->value = tag;
	}
	return WEIR_OK;
}

/*
 * Records an aborted transaction: what it read existed at one instant, and one of these variables
 * moved.
 */
static void note_aborted(struct history_log *log, struct history_part parts[], size_t count, uint64_t called,
                         uint64_t returned)
{
	for (size_t i = 0; i < count; i++) {
		if (parts[i].after != HISTORY_NONE)
			/* the value that it was to write, not the one that it read */
			parts[i].value = HISTORY_NONE;
		parts[i].after = HISTORY_NONE;
	}
	history_note_parts(log, HISTORY_READ, parts, count, HISTORY_NONE, called, returned);
	history_note_parts(log, HISTORY_ABORTED, parts, count, HISTORY_NONE, called, returned);
}

static void transact(struct stress_thread *self, struct history_log *log, uint64_t number)
{
	struct history_part parts[VARIABLES];
	uint64_t objects[VARIABLES], called, returned;
	size_t wanted = draw_objects(self, objects, 1), count = 0;
	int writes = 0;
	enum weir_status status;
	weir_txn *txn;

	called = history_call(log);
	status = weir_txn_begin(stress_poison(), &txn, NULL);
	STRESS_CHECK(status == WEIR_OK, "weir_txn_begin: %s", weir_status_name(status));
	for (; count < wanted && status == WEIR_OK; count += status == WEIR_OK)
		status = touch(self, txn, objects[count], tag_of(log, number, objects[count]), &parts[count]);
	if (status == WEIR_OK)
		status = weir_txn_commit(txn, WEIR_NO_DEADLINE, NULL);
	else
		weir_txn_abort(txn);
	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "weir_txn_commit: %s", weir_status_name(status));
	if (status == WEIR_ABORTED) {
		note_aborted(log, parts, count, called, returned);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		int is_write = parts[i].after != HISTORY_NONE;

		writes |= is_write;
		under_test.seen[log->thread].version[parts[i].object] = is_write ? parts[i].after : parts[i].before;
	}
	history_note_parts(log, writes ? HISTORY_WRITE : HISTORY_READ, parts, count, HISTORY_NONE, called, returned);
}

/* -- scenarios --------------------------------------------------------------------------------- */

static void act_on_one(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	uint64_t object = stress_below(self, under_test.variables), tag = tag_of(log, number, object);

	(void)context;
	stress_begin(self, "variable");
	switch (stress_below(self, 12)) {
	case 0: assign(self, log, object, tag); break;
	case 1:
	case 2: compare_assign(self, log, object, tag); break;
	case 3: update(self, log, object, tag); break;
	case 4: ask_version(log, object); break;
	case 5: exchange(self, log, object, tag); break;
	case 6: read_newer(log, object); break;
	case 7: read_version(log, object); break;
	default: read_one(log, object); break;
	}
}

static void act_by_snapshots(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	stress_begin(self, "snapshot");
	switch (stress_below(self, 8)) {
	case 0: commit(self, log, number); break;
	case 1:
	case 2:
	case 3: act_on_one(self, log, number, context); break;
	default: snapshot(self, log); break;
	}
}

static void act_by_commits(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	stress_begin(self, "commit");
	switch (stress_below(self, 8)) {
	case 0: act_on_one(self, log, number, context); break;
	case 1:
	case 2: snapshot(self, log); break;
	default: commit(self, log, number); break;
	}
}

static void act_by_transactions(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	stress_begin(self, "transaction");
	switch (stress_below(self, 8)) {
	case 0: act_on_one(self, log, number, context); break;
	case 1: snapshot(self, log); break;
	case 2: commit(self, log, number); break;
	default: transact(self, log, number); break;
	}
}

static void set_up(struct stress_thread *self, void *context)
{
	(void)self;
	(void)context;
	for (uint64_t o = 0; o < under_test.variables; o++) {
		under_test.base[o] = weir_var_version(under_test.var[o]);
		for (unsigned t = 0; t < BURST_MOST_THREADS; t++)
			under_test.seen[t].version[o] = INITIAL;
	}
}

static void tear_down(struct stress_thread *self, void *context)
{
	(void)self;
	(void)context;
}

static void units(const struct history *history, const struct history_finding *finding, void *context, uint32_t unit[])
{
	(void)finding;
	(void)context;
	history_units_of_versions(history, unit);
}

static const void *initial_of(void *context)
{
	(void)context;
	return &initial_version;
}

static enum history_verdict check_serial(const struct history *history, void *context, struct history_finding *finding)
{
	(void)context;
	return history_check_serial(history, INITIAL, NULL, finding);
}

static enum history_verdict check_register(const struct history *history, void *context,
                                           struct history_finding *finding)
{
	(void)context;
	return history_check_register(history, INITIAL, finding);
}

static void create_all(uint64_t variables)
{
	under_test.variables = variables;
	for (uint64_t o = 0; o < variables; o++) {
		struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .history = kept_of(o),
		                                   .allocator = stress_poison()};
		weir_tensor *initial = stress_payload(o, 1);
		enum weir_status status = weir_var_create(initial, &options, &under_test.var[o], NULL);

		STRESS_CHECK(status == WEIR_OK, "weir_var_create: %s", weir_status_name(status));
		weir_tensor_release(initial);
	}
}

static void destroy_all(void)
{
	for (uint64_t o = 0; o < under_test.variables; o++)
		weir_var_destroy(under_test.var[o], NULL);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(flush_ns)) == WEIR_OK, "the flush failed: memory is still held");
	stress_poison_check_empty();
}

typedef void act_fn(struct stress_thread *self, struct history_log *log, uint64_t number, void *context);
typedef enum history_verdict check_fn(const struct history *history, void *context, struct history_finding *finding);

static void run_rounds(uint64_t variables, act_fn *act, check_fn *check)
{
	const struct burst burst = {.set_up = set_up,
	                            .act = act,
	                            .tear_down = tear_down,
	                            .check = check,
	                            .units = units,
	                            .model = &history_model_variables,
	                            .model_context = initial_of};

	create_all(variables);
	burst_run(&burst);
	destroy_all();
}

void scenario_history_variable(void)
{
	run_rounds(2, act_on_one, check_register);
}

void scenario_history_snapshot(void)
{
	run_rounds(4, act_by_snapshots, check_serial);
}

void scenario_history_commit(void)
{
	run_rounds(3, act_by_commits, check_serial);
}

void scenario_history_txn(void)
{
	run_rounds(4, act_by_transactions, check_serial);
}
