/*
 * scenario_snapshot.c - a snapshot belongs to one instant and agrees with real time; a commit takes
 * effect completely or not at all.
 *
 * snapshot_torn. Groups of variables change only together, by commits that add one to a number that
 * each variable of the group carries. Each writer also has a variable of its own, to which it
 * assigns what it has just committed. Checked:
 *   torn        all variables of a group carry one number, which fits their version
 *   real time   a snapshot is no older than any snapshot, read or commit that had ended before it
 *               began, on any thread
 *   causality   a snapshot that shows a writer's own variable at n shows the group at n or later
 *   lost        at the end each group's number is the number of commits that succeeded
 *
 * commit_conflict. Accounts with a constant total; transfers over random overlapping sets, in
 * random order, during single writes that change only the version. Every snapshot sums to the
 * total; versions count the writes that succeeded.
 */
#include "harness.h"

#include <inttypes.h>
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/var.h>

#include "poison.h"
#include "scenarios.h"

static const uint64_t flush_ns = 100000000000u;

static weir_var *create(uint64_t tag)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_poison()};
	weir_tensor *initial = stress_payload(tag, 1);
	weir_error error = {WEIR_OK, ""};
	weir_var *var = NULL;
	enum weir_status status = weir_var_create(initial, &options, &var, &error);

	STRESS_CHECK(status == WEIR_OK, "weir_var_create: %s", error.message);
	weir_tensor_release(initial);
	return var;
}

static void destroy_all(weir_var *vars[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		weir_var_destroy(vars[i], NULL);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(flush_ns)) == WEIR_OK, "the flush failed: memory is still held");
	stress_poison_check_empty();
}

static void snapshot(struct stress_thread *self, weir_var *const vars[], size_t count, weir_read reads[])
{
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;

	stress_begin(self, "snapshot");
	status = weir_var_snapshot(vars, count, reads, &error);
	STRESS_CHECK(status == WEIR_OK, "weir_var_snapshot: %s: %s", weir_status_name(status), error.message);
	stress_end(self, 1);
}

/* Returns 1 if the commit succeeded, 0 if it was aborted. Releases the values. */
static int commit(struct stress_thread *self, struct weir_commit_part parts[], size_t count, uint64_t versions[])
{
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;

	stress_begin(self, "commit");
	status = weir_var_commit(parts, count, WEIR_NO_DEADLINE, NULL, &error);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "weir_var_commit: %s: %s", weir_status_name(status),
	             error.message);
	stress_end(self, 1);
	for (size_t i = 0; i < count; i++) {
		if (versions != NULL)
			versions[i] = parts[i].expected + 1; /* if the commit succeeded */
		weir_tensor_release(parts[i].value);
	}
	return status == WEIR_OK;
}

static size_t draw_words(struct stress_thread *self)
{
	return 1 + (size_t)stress_below(self, 12);
}

static void shuffle_parts(struct stress_thread *self, struct weir_commit_part parts[], size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)stress_below(self, i);
		struct weir_commit_part part = parts[i - 1];

		parts[i - 1] = parts[j];
		parts[j] = part;
	}
}

static void raise_to(_Atomic(uint64_t) *floor, uint64_t value)
{
	uint64_t seen = weiri_load_seq_cst(floor);

	/* [seq_cst] a load of this value must include everything that ended before it. */
	while (seen < value && !weiri_cas_seq_cst(floor, &seen, value))
		;
}

/* -- snapshot_torn ----------------------------------------------------------------------------- */

enum {
	GROUPS = 2,
	MAX_GROUP = 5,
	MAX_OWN = 8,
	MAX_VARIABLES = GROUPS * MAX_GROUP + MAX_OWN,
	MOST_SHOWN = 2 * MAX_VARIABLES,
	OWN_GROUP_BIT = 56
};

static struct {
	size_t size[GROUPS];
	weir_var *group[GROUPS][MAX_GROUP];
	weir_var *own[MAX_OWN];
	unsigned writers;
	_Atomic(uint64_t) floor[GROUPS];   /* the largest number that an ended operation showed */
	_Atomic(uint64_t) applied[GROUPS]; /* commits that succeeded */
	_Atomic(uint64_t) aborted;
} torn;

/* The number that a variable of a group carries. */
static uint64_t number_of(const weir_read *read, const char *who)
{
	uint64_t number = stress_payload_check(read->tensor, who);

	STRESS_CHECK(read->version == number + 1, "%s: version %" PRIu64 " of a group's variable carries %" PRIu64, who,
	             read->version, number);
	return number;
}

/* One snapshot of some of all variables, in any order, some of them twice. */
struct picture {
	size_t count;
	weir_var *vars[MOST_SHOWN];
	int group[MOST_SHOWN]; /* -1: a writer's own variable */
	weir_read reads[MOST_SHOWN];
	int shown[GROUPS];
	uint64_t number[GROUPS];
};

static void add_to_picture(struct picture *picture, weir_var *var, int group)
{
	picture->vars[picture->count] = var;
	picture->group[picture->count++] = group;
}

static void draw_picture(struct stress_thread *self, struct picture *picture)
{
	size_t wanted = 1 + (size_t)stress_below(self, MOST_SHOWN);

	picture->count = 0;
	while (picture->count < wanted) {
		unsigned g = (unsigned)stress_below(self, GROUPS + 1);

		if (g < GROUPS)
			add_to_picture(picture, torn.group[g][stress_below(self, torn.size[g])], (int)g);
		else
			add_to_picture(picture, torn.own[stress_below(self, torn.writers)], -1);
	}
}

static void judge_groups(struct picture *picture, const uint64_t floor[])
{
	for (unsigned g = 0; g < GROUPS; g++)
		picture->shown[g] = 0;
	for (size_t i = 0; i < picture->count; i++) {
		int g = picture->group[i];
		uint64_t number;

		if (g < 0)
			continue;
		number = number_of(&picture->reads[i], "snapshot");
		STRESS_CHECK(!picture->shown[g] || picture->number[g] == number,
		             "torn: one snapshot shows group %d at %" PRIu64 " and also at %" PRIu64, g, picture->number[g],
		             number);
		STRESS_CHECK(number >= floor[g],
		             "a snapshot shows group %d at %" PRIu64 ", but %" PRIu64 " had been seen before it began", g,
		             number, floor[g]);
		picture->shown[g] = 1;
		picture->number[g] = number;
	}
}

static void judge_causality(const struct picture *picture)
{
	for (size_t i = 0; i < picture->count; i++) {
		uint64_t tag, number;
		unsigned g;

		if (picture->group[i] >= 0)
			continue;
		tag = stress_payload_check(picture->reads[i].tensor, "snapshot");
		g = (unsigned)(tag >> OWN_GROUP_BIT);
		number = tag & ((UINT64_C(1) << OWN_GROUP_BIT) - 1);
		STRESS_CHECK(!picture->shown[g] || picture->number[g] >= number,
		             "a snapshot shows what was assigned after commit %" PRIu64
		             " of group %u, but the group at %" PRIu64,
		             number, g, picture->number[g]);
	}
}

static void judge_picture(struct picture *picture, const uint64_t floor[])
{
	judge_groups(picture, floor);
	judge_causality(picture);
}

static void take_by_handles(struct stress_thread *self, struct picture *picture, const uint64_t floor[])
{
	snapshot(self, picture->vars, picture->count, picture->reads);
	judge_picture(picture, floor);
	weir_read_release_many(picture->reads, picture->count);
}

/* The section is some time older than the snapshot, and what it shows is looked at some time later. */
static void take_in_a_section(struct stress_thread *self, struct picture *picture, const uint64_t floor[])
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *shown[MOST_SHOWN];
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;

	stress_begin(self, "snapshot in a section");
	STRESS_CHECK(weir_read_section_begin(&section) == WEIR_OK, "no section");
	if (stress_one_in(self, 8))
		stress_let_pass(stress_below(self, 20000));
	status = weir_read_section_snapshot(&section, picture->vars, picture->count, shown, &error);
	STRESS_CHECK(status == WEIR_OK, "weir_read_section_snapshot: %s: %s", weir_status_name(status), error.message);
	if (stress_one_in(self, 8))
		stress_let_pass(stress_below(self, 20000));
	for (size_t i = 0; i < picture->count; i++)
		picture->reads[i] = *shown[i]; /* not a handle */
	judge_picture(picture, floor);
	STRESS_CHECK(weir_read_section_end(&section) == WEIR_OK, "a section does not end");
	stress_end(self, 1);
}

static void take_picture(struct stress_thread *self, struct picture *picture)
{
	uint64_t floor[GROUPS];

	draw_picture(self, picture);
	for (unsigned g = 0; g < GROUPS; g++)
		floor[g] = weiri_load_seq_cst(&torn.floor[g]); /* [seq_cst] before the snapshot */
	if (stress_one_in(self, 2))
		take_by_handles(self, picture, floor);
	else
		take_in_a_section(self, picture, floor);
	for (unsigned g = 0; g < GROUPS; g++) {
		if (picture->shown[g])
			raise_to(&torn.floor[g], picture->number[g]);
	}
}

static void read_one(struct stress_thread *self)
{
	unsigned g = (unsigned)stress_below(self, GROUPS);
	uint64_t floor = weiri_load_seq_cst(&torn.floor[g]), number; /* [seq_cst] before the read */
	weir_read read;

	stress_begin(self, "read");
	STRESS_CHECK(weir_var_read(torn.group[g][stress_below(self, torn.size[g])], &read) == WEIR_OK, "a read failed");
	number = number_of(&read, "read");
	STRESS_CHECK(number >= floor, "a read shows group %u at %" PRIu64 ", but %" PRIu64 " had been seen before", g,
	             number, floor);
	weir_read_release(&read);
	raise_to(&torn.floor[g], number);
	stress_end(self, 1);
}

static void torn_reader(struct stress_thread *self, void *context)
{
	struct picture picture;

	(void)context;
	while (stress_goes_on()) {
		if (stress_one_in(self, 4))
			read_one(self);
		else
			take_picture(self, &picture);
	}
}

/* Commits the group's next number; returns it, or 0 if the commit was aborted. */
static uint64_t commit_group(struct stress_thread *self, unsigned g)
{
	struct weir_commit_part parts[MAX_GROUP];
	weir_read reads[MAX_GROUP];
	uint64_t versions[MAX_GROUP], next;
	size_t count = torn.size[g];

	snapshot(self, torn.group[g], count, reads);
	next = number_of(&reads[0], "snapshot") + 1;
	for (size_t i = 0; i < count; i++)
		parts[i] =
			(struct weir_commit_part){torn.group[g][i], reads[i].version, stress_payload(next, draw_words(self))};
	weir_read_release_many(reads, count);
	shuffle_parts(self, parts, count);
	if (!commit(self, parts, count, versions)) {
		(void)weiri_fetch_add_relaxed(&torn.aborted, 1u); /* [relaxed] a figure */
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		STRESS_CHECK(versions[i] == next + 1, "a commit returned version %" PRIu64 ", expected %" PRIu64, versions[i],
		             next + 1);
	(void)weiri_fetch_add_relaxed(&torn.applied[g], 1u); /* [relaxed] read after the join */
	raise_to(&torn.floor[g], next);
	return next;
}

static void assign_own(struct stress_thread *self, unsigned writer, unsigned g, uint64_t number)
{
	weir_tensor *value = stress_payload((uint64_t)g << OWN_GROUP_BIT | number, draw_words(self));

	stress_begin(self, "assign");
	STRESS_CHECK(weir_var_assign(torn.own[writer], value, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK, "an assign failed");
	weir_tensor_release(value);
	stress_end(self, 1);
}

static void torn_writer(struct stress_thread *self, void *context)
{
	unsigned writer = (unsigned)(uintptr_t)context;
	struct picture picture;

	while (stress_goes_on()) {
		unsigned g = (unsigned)stress_below(self, GROUPS);
		uint64_t number = commit_group(self, g);

		if (number == 0)
			continue;
		if (stress_one_in(self, 2))
			assign_own(self, writer, g, number);
		if (stress_one_in(self, 4))
			/* includes this thread's commit, because the floor has reached it */
			take_picture(self, &picture);
	}
}

static void check_torn_end(void)
{
	uint64_t applied = 0;

	for (unsigned g = 0; g < GROUPS; g++) {
		weir_read reads[MAX_GROUP];
		uint64_t expected = weiri_load_relaxed(&torn.applied[g]); /* [relaxed] joined */

		snapshot(stress_self(), torn.group[g], torn.size[g], reads);
		for (size_t i = 0; i < torn.size[g]; i++) {
			uint64_t number = number_of(&reads[i], "the end");

			STRESS_CHECK(number == expected, "%" PRIu64 " commits of group %u succeeded, but it is at %" PRIu64,
			             expected, g, number);
		}
		weir_read_release_many(reads, torn.size[g]);
		applied += expected;
	}
	stress_note("commits", applied);
	stress_note("aborted", weiri_load_relaxed(&torn.aborted)); /* [relaxed] joined */
}

static void set_up_torn(struct stress_thread *self)
{
	for (unsigned g = 0; g < GROUPS; g++) {
		torn.size[g] = 2 + (size_t)stress_below(self, MAX_GROUP - 1);
		weiri_store_relaxed(&torn.floor[g], 0u); /* [relaxed] no other thread yet */
		weiri_store_relaxed(&torn.applied[g], 0u);
	}
	weiri_store_relaxed(&torn.aborted, 0u); /* [relaxed] the same */
	/* Creates them in turns, so that the addresses of the groups interleave. */
	for (size_t i = 0; i < MAX_GROUP; i++) {
		for (unsigned g = 0; g < GROUPS; g++) {
			if (i < torn.size[g])
				torn.group[g][i] = create(0);
		}
	}
	for (unsigned w = 0; w < torn.writers; w++)
		torn.own[w] = create(0);
}

static void destroy_torn(void)
{
	weir_var *all[MAX_VARIABLES];
	size_t count = 0;

	for (unsigned g = 0; g < GROUPS; g++) {
		for (size_t i = 0; i < torn.size[g]; i++)
			all[count++] = torn.group[g][i];
	}
	for (unsigned w = 0; w < torn.writers; w++)
		all[count++] = torn.own[w];
	destroy_all(all, count);
}

void scenario_snapshot_torn(void)
{
	unsigned threads = stress_threads(3);

	torn.writers = (threads + 1) / 2 < MAX_OWN ? (threads + 1) / 2 : MAX_OWN;
	set_up_torn(stress_self());
	stress_disturb();
	for (unsigned i = 0; i < torn.writers; i++)
		(void)stress_start("writer", torn_writer, (void *)(uintptr_t)i);
	for (unsigned i = torn.writers; i < threads; i++)
		(void)stress_start("reader", torn_reader, NULL);
	stress_join();
	check_torn_end();
	destroy_torn();
}

/* -- commit_conflict --------------------------------------------------------------------------- */

enum { ACCOUNTS = 12, MAX_TRANSFER = 6 };

static const uint64_t opening_balance = 1000;

static struct {
	weir_var *account[ACCOUNTS];
	_Atomic(uint64_t) writes[ACCOUNTS]; /* that succeeded */
	_Atomic(uint64_t) transfers, aborted;
} bank;

/* Draws `count` different accounts, in random order. */
static void draw_accounts(struct stress_thread *self, unsigned chosen[], size_t count)
{
	unsigned all[ACCOUNTS];

	for (unsigned i = 0; i < ACCOUNTS; i++)
		all[i] = i;
	for (size_t i = 0; i < count; i++) {
		size_t j = i + (size_t)stress_below(self, ACCOUNTS - i);

		chosen[i] = all[j];
		all[j] = all[i];
	}
}

/* Moves random amounts between balances; their sum does not change. */
static void redistribute(struct stress_thread *self, uint64_t balance[], size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		uint64_t amount = stress_below(self, balance[i] + 1);

		balance[i] -= amount;
		balance[i + 1] += amount;
	}
}

static void transfer(struct stress_thread *self)
{
	size_t count = 2 + (size_t)stress_below(self, MAX_TRANSFER - 1);
	struct weir_commit_part parts[MAX_TRANSFER];
	weir_var *vars[MAX_TRANSFER];
	weir_read reads[MAX_TRANSFER];
	uint64_t balance[MAX_TRANSFER];
	unsigned chosen[MAX_TRANSFER];

	draw_accounts(self, chosen, count);
	for (size_t i = 0; i < count; i++)
		vars[i] = bank.account[chosen[i]];
	snapshot(self, vars, count, reads);
	for (size_t i = 0; i < count; i++)
		balance[i] = stress_payload_check(reads[i].tensor, "snapshot for a transfer");
	redistribute(self, balance, count);
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct weir_commit_part){vars[i], reads[i].version, stress_payload(balance[i], draw_words(self))};
	weir_read_release_many(reads, count);
	if (!commit(self, parts, count, NULL)) {
		(void)weiri_fetch_add_relaxed(&bank.aborted, 1u); /* [relaxed] a figure */
		return;
	}
	(void)weiri_fetch_add_relaxed(&bank.transfers, 1u); /* [relaxed] a figure */
	for (size_t i = 0; i < count; i++)
		/* [relaxed] read after the join */
		(void)weiri_fetch_add_relaxed(&bank.writes[chosen[i]], 1u);
}

static enum weir_status same_balance(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)error;
	*next = stress_payload(stress_payload_check(current->tensor, "update"), draw_words(context));
	return WEIR_OK;
}

/*
 * Makes a single write during commits that are under way. It replaces what aborted commits left
 * behind.
 */
static void touch(struct stress_thread *self)
{
	unsigned i = (unsigned)stress_below(self, ACCOUNTS);

	stress_begin(self, "update");
	STRESS_CHECK(weir_var_update(bank.account[i], same_balance, self, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK,
	             "an update failed");
	(void)weiri_fetch_add_relaxed(&bank.writes[i], 1u); /* [relaxed] read after the join */
	stress_end(self, 1);
}

static void audit(struct stress_thread *self)
{
	weir_read reads[ACCOUNTS];
	uint64_t sum = 0;

	snapshot(self, bank.account, ACCOUNTS, reads);
	for (size_t i = 0; i < ACCOUNTS; i++)
		sum += stress_payload_check(reads[i].tensor, "audit");
	weir_read_release_many(reads, ACCOUNTS);
	STRESS_CHECK(sum == ACCOUNTS * opening_balance, "a snapshot sums to %" PRIu64 ", not %" PRIu64, sum,
	             ACCOUNTS * opening_balance);
}

/* Single reads see only committed balances, so none is above the total. */
static void look(struct stress_thread *self)
{
	weir_read read;

	stress_begin(self, "read");
	STRESS_CHECK(weir_var_read(bank.account[stress_below(self, ACCOUNTS)], &read) == WEIR_OK, "a read failed");
	STRESS_CHECK(stress_payload_check(read.tensor, "read") <= ACCOUNTS * opening_balance,
	             "a balance is above the total");
	weir_read_release(&read);
	stress_end(self, 1);
}

static void bank_writer(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		if (stress_one_in(self, 8))
			touch(self);
		else
			transfer(self);
	}
}

static void bank_reader(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		if (stress_one_in(self, 4))
			audit(self);
		else
			look(self);
	}
}

void scenario_commit_conflict(void)
{
	unsigned threads = stress_threads(4);

	for (size_t i = 0; i < ACCOUNTS; i++) {
		bank.account[i] = create(opening_balance);
		weiri_store_relaxed(&bank.writes[i], 0u); /* [relaxed] no other thread yet */
	}
	weiri_store_relaxed(&bank.transfers, 0u); /* [relaxed] the same */
	weiri_store_relaxed(&bank.aborted, 0u);
	stress_disturb();
	for (unsigned i = 0; i < threads; i++)
		(void)stress_start(i % 4 == 3 ? "auditor" : "writer", i % 4 == 3 ? bank_reader : bank_writer, NULL);
	stress_join();
	audit(stress_self());
	for (size_t i = 0; i < ACCOUNTS; i++) {
		uint64_t version = weir_var_version(bank.account[i]);
		uint64_t writes = weiri_load_relaxed(&bank.writes[i]); /* [relaxed] joined */

		STRESS_CHECK(version == writes + 1, "account %zu: %" PRIu64 " writes succeeded, but it is at version %" PRIu64,
		             i, writes, version);
	}
	stress_note("transfers", weiri_load_relaxed(&bank.transfers)); /* [relaxed] joined */
	stress_note("aborted", weiri_load_relaxed(&bank.aborted));
	destroy_all(bank.account, ACCOUNTS);
}
