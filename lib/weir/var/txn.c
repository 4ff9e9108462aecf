/*
 * txn.c - transactions over variables.
 *
 * Algorithm. Reads are a snapshot that is extended on demand, with the clock and the stamps of
 * version.h. The transaction has a time T. A version with a stamp up to T can be read immediately.
 * When a read finds a newer version, the transaction advances the clock to the stamp of that
 * version, reads the clock again, and checks whether every variable that it has read is still at
 * the version read. If so, all of these versions were
 * the newest at that later time, which becomes T. If not, there is no time at which all reads hold,
 * and the transaction is *doomed*: it can read, assign and commit nothing more. Assigned values are
 * kept in the transaction until it commits by commit.c. The commit has a part for each variable:
 * the value if the variable was assigned, and a mark if it was only read.
 *
 * Source. Extending a snapshot is LSA (Riegel, Felber, Fetzer, DISC 2006). The commit differs. It
 * locks nothing, and any thread that finds it can complete it. It has no separate phase that
 * validates the reads: the marks do that, as parts of the commit.
 *
 * Invariants
 *   X1  if a variable was read, its entry has the number that the newest version of the variable
 *       had at time T
 *   X2  T is the clock's value at some moment since the transaction began
 *   X3  each entry is of one variable, and each variable has at most one entry
 * Why X1 holds after a read. Let v, with stamp s <= T, be the newest committed version that a read
 * of the head found. Every version with a stamp up to T was at its head before T was read
 * (version.h, "Why a snapshot at time T is one instant"). So the read of the head found that
 * version or a later one: v is not older than the newest at T. A version above v that is still
 * undecided gets its stamp from a later read of the clock, so its stamp is above T.
 * Why X1 holds after an extension to T'. The clock is read as T' or becomes it, and then the head of each
 * variable, where the number n of the entry is found again. The version that was the newest at T'
 * is not above the one found, by the argument for a read. Nor is it below the version at T, which
 * is not later than T'. Numbers never fall along the chain, so all versions in between have number
 * n. Some of these may be marks, which repeat not only the number but also the tensor.
 * Why the commit is right. It succeeds only if, at the instant of its stamp, each variable that was
 * read is still at the number read. At that instant the commit also publishes the values. So all
 * reads and writes share it. A transaction without writes has the instant T.
 * Linearization: of a transaction without writes, the moment at which the clock was read as the
 * last T, or became it; of any other, the linearization point of its commit. The reads of an aborted transaction have the instant T.
 * Progress: lock-free. A read starts again only when a version was stamped after its extension, so
 * another write succeeded. A commit: see commit.c. A transaction is doomed only because another
 * write succeeded. So however many transactions conflict, some write always succeeds.
 * Memory: the thread's snapshot slots, or references, hold the versions read. An entry takes 56
 * bytes, and two places of 2 bytes in the table. Both arrays grow by doubling.
 * Checked: stress/model/check_txn.c, tests/test_txn.c, stress/scenario_history_variable.c
 * (history_txn).
 */
#include <weir/txn.h>

#include <string.h>
#include <weir/time.h>

#include "base/assert.h"
#include "base/error.h"
#include "reclaim/magazine.h"
#include "var/give_way.h"
#include "var/hold.h"
#include "var/install.h"
#include "var/kind.h"

/* One variable of the transaction. */
struct entry {
	weir_var *var;
	uint64_t number;  /* of the version read; WEIRI_ANY_VERSION: only assigned */
	weir_read read;   /* holds that version, unless it has no value */
	weir_value value; /* assigned: a reference, a copy of bytes, or a pointer; or none */
};

struct weir_txn {
	uint64_t now; /* T */
	size_t count, room, writes;
	struct entry *entries;
	/*
	 * Open addressing by the address of the variable, 2 * room places: 0, or 1 plus the index in
	 * `entries`.
	 */
	uint16_t *table;
	/*
	 * Where a read begins to look for a free snapshot slot. Valid for `record`, that of the thread
	 * that read last.
	 */
	struct weiri_record *record;
	size_t next_slot;
	const weir_var *moved; /* not NULL: the transaction is doomed, since this variable moved */
	uint64_t expected, found;
	weir_allocator allocator;
};

enum { FIRST_ROOM = 8 };

/* -- entries ----------------------------------------------------------------------------------- */

/* The place of `var` in the table, or the place where it would be. */
static size_t find_place(const weir_txn *txn, const weir_var *var)
{
	size_t mask = 2 * txn->room - 1;
	/* Multiplicative hashing: variables are at least a line apart. */
	size_t at = (size_t)(((uint64_t)(uintptr_t)var * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & mask;

	while (txn->table[at] != 0 && txn->entries[txn->table[at] - 1].var != var)
		at = (at + 1) & mask;
	return at;
}

static struct entry *find(const weir_txn *txn, const weir_var *var)
{
	uint16_t place = txn->count != 0 ? txn->table[find_place(txn, var)] : 0;

	return place != 0 ? &txn->entries[place - 1] : NULL;
}

static void *allocate(const weir_allocator *allocator, size_t bytes)
{
	return weiri_block_allocate(weiri_record_mine, allocator, weiri_block_size(bytes));
}

static void release_arrays(weir_txn *txn)
{
	if (txn->entries != NULL)
		weiri_block_release(&txn->allocator, txn->entries, weiri_block_size(txn->room * sizeof(*txn->entries)));
	if (txn->table != NULL)
		weiri_block_release(&txn->allocator, txn->table, weiri_block_size(2 * txn->room * sizeof(*txn->table)));
}

/* Doubles the room. Returns false, and changes nothing, if there is no memory. */
static bool grow(weir_txn *txn)
{
	weir_txn next = *txn;

	next.room = txn->room != 0 ? 2 * txn->room : FIRST_ROOM;
	next.entries = allocate(&txn->allocator, next.room * sizeof(*next.entries));
	next.table = allocate(&txn->allocator, 2 * next.room * sizeof(*next.table));
	if (next.entries == NULL || next.table == NULL) {
		release_arrays(&next);
		return false;
	}
	memset(next.table, 0, 2 * next.room * sizeof(*next.table));
	if (txn->count != 0)
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): entries are there if they are counted. */
		memcpy(next.entries, txn->entries, txn->count * sizeof(*next.entries));
	for (size_t i = 0; i < txn->count; i++)
		next.table[find_place(&next, next.entries[i].var)] = (uint16_t)(i + 1);
	release_arrays(txn);
	*txn = next;
	return true;
}

/* Makes room, so that add() cannot fail. */
static enum weir_status make_room(weir_txn *txn, const weir_var *var, weir_error *error)
{
	if (txn->count == WEIR_TXN_MAX_VARIABLES)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED,
		                  "transaction: variable \"%s\" is one too many: a transaction has at most %d", var->name,
		                  WEIR_TXN_MAX_VARIABLES);
	if ((txn->entries == NULL || txn->count == txn->room) && !grow(txn))
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "transaction: no memory for variable \"%s\"", var->name);
	return WEIR_OK;
}

static struct entry *add(weir_txn *txn, weir_var *var, uint64_t number)
{
	struct entry *entry = &txn->entries[txn->count];

	WEIR_ASSERT2(X3, entry != NULL && find(txn, var) == NULL);
	*entry = (struct entry){.var = var, .number = number};
	txn->table[find_place(txn, var)] = (uint16_t)++txn->count;
	return entry;
}

/* -- reading ----------------------------------------------------------------------------------- */

static enum weir_status fail_moved(const weir_txn *txn, weir_error *error)
{
	return weiri_fail(error, WEIR_ABORTED,
	                  "transaction of %zu variable%s: variable \"%s\" is at version %llu and was read at %llu",
	                  txn->count, WEIRI_S(txn->count), weir_var_name(txn->moved), (unsigned long long)txn->found,
	                  (unsigned long long)txn->expected);
}

static void doom(weir_txn *txn, const weir_var *moved, uint64_t expected, uint64_t found)
{
	txn->moved = moved;
	txn->expected = expected;
	txn->found = found;
}

/*
 * Called in a section that has found a version with this stamp. Reads the clock, which is advanced
 * to the stamp if it is behind. Advances T to the clock if every variable is still at the version
 * read. Otherwise returns false: the transaction is doomed.
 */
static bool extend(struct weiri_record *record, weir_txn *txn, uint64_t stamp)
{
	/* [S] before the heads are read. */
	uint64_t now = weiri_load_seq_cst(&weiri_clock);

	if (stamp > now)
		weiri_clock_advance(now++); /* V3: that suffices */
	for (size_t i = 0; i < txn->count; i++) {
		const struct entry *entry = &txn->entries[i];
		uint64_t number;

		if (entry->number == WEIRI_ANY_VERSION)
			continue;
		number = weiri_newest(record, entry->var)->number;
		if (number != entry->number) {
			doom(txn, entry->var, entry->number, number);
			return false;
		}
	}
	WEIR_ASSERT2(X2, txn->now <= now);
	txn->now = now;
	return true;
}

/*
 * Called in a section. Returns the version of var that is the newest at time T. Advances T first if
 * the newest has a later stamp. NULL: doomed.
 */
static struct weiri_version *read_at_one_time(struct weiri_record *record, weir_txn *txn, weir_var *var)
{
	for (;;) {
		struct weiri_version *version = weiri_newest(record, var);
		uint64_t stamp = weiri_version_resolve(version);

		if (stamp <= txn->now)
			return version;
		if (!extend(record, txn, stamp))
			return NULL;
	}
}

static void hold(struct weiri_record *record, weir_txn *txn, struct weiri_version *version, weir_read *read)
{
	if (txn->record != record)
		txn->next_slot = 0;
	txn->record = record;
	weiri_hold_by_snapshot_slot(record, version, &txn->next_slot, read);
}

/* Reads a variable for the first time; there is room for its entry. NULL: doomed. */
static struct entry *read_first(struct weiri_record *record, weir_txn *txn, weir_var *var)
{
	uint64_t outer = weiri_section_enter(record);
	struct weiri_version *version = read_at_one_time(record, txn, var);
	struct entry *entry = NULL;

	if (version != NULL) {
		entry = add(txn, var, version->number);
		if (version->value != NULL)
			hold(record, txn, version, &entry->read);
	}
	weiri_section_leave(record, outer);
	return entry;
}

/* Sets *entry to that of var, reading var if necessary. */
static enum weir_status find_or_read(weir_txn *txn, weir_var *var, struct entry **entry, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status;

	*entry = find(txn, var);
	if (*entry != NULL)
		return WEIR_OK;
	status = make_room(txn, var, error);
	if (status != WEIR_OK)
		return status;
	record = weiri_record_get();
	if (record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for this thread's record",
		                  var->name);
	*entry = read_first(record, txn, var);
	return *entry != NULL ? WEIR_OK : fail_moved(txn, error);
}

static enum weir_status fail_null_read(const weir_txn *txn, const weir_var *var, weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "transaction: %s is NULL",
	                  txn == NULL   ? "it"
	                  : var == NULL ? "the variable to read"
	                                : "the place for the value");
}

static enum weir_status read_value(weir_txn *txn, weir_var *var, weir_value *value, weir_error *error)
{
	struct entry *entry;
	enum weir_status status;

	if (txn->moved != NULL)
		return fail_moved(txn, error);
	status = find_or_read(txn, var, &entry, error);
	if (status != WEIR_OK)
		return status;
	if (weiri_value_is_none(&entry->value) && entry->read.data == NULL)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "variable \"%s\" is not initialized", var->name);
	*value = weiri_value_is_none(&entry->value) ? weiri_value_shown(var, entry->read.data) : entry->value;
	return WEIR_OK;
}

/* What is read is a value that can be written. A root has one owner, so that of a table's variable is shown only to the table. */
enum weir_status weir_txn_read_value(weir_txn *txn, weir_var *var, weir_value *value, weir_error *error)
{
	if (txn == NULL || var == NULL || value == NULL)
		return fail_null_read(txn, var, error);
	if (var->kind == WEIR_VAR_TABLE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "variable \"%s\" has versions of a table: use weir_table_txn_read()", var->name);
	return read_value(txn, var, value, error);
}

enum weir_status weiri_txn_read_root(weir_txn *txn, weir_var *var, void **root, weir_error *error)
{
	weir_value value;
	enum weir_status status = read_value(txn, var, &value, error);

	if (status == WEIR_OK)
		*root = value.pointer;
	return status;
}

enum weir_status weir_txn_read(weir_txn *txn, weir_var *var, weir_tensor **value, weir_error *error)
{
	enum weir_status status;
	weir_value found;

	if (txn == NULL || var == NULL || value == NULL)
		return fail_null_read(txn, var, error);
	status = weiri_kind_check_tensors(var, "weir_txn_read()", error);
	if (status == WEIR_OK)
		status = weir_txn_read_value(txn, var, &found, error);
	if (status == WEIR_OK)
		*value = found.tensor;
	return status;
}

uint64_t weir_txn_version(const weir_txn *txn, const weir_var *var)
{
	const struct entry *entry = txn != NULL ? find(txn, var) : NULL;

	return entry != NULL && entry->number != WEIRI_ANY_VERSION ? entry->number : 0;
}

/* -- writing ----------------------------------------------------------------------------------- */

/* Gives up what is assigned, if anything is. */
static void drop_assigned(weir_txn *txn, struct entry *entry)
{
	if (weiri_value_is_none(&entry->value))
		return;
	if (entry->value.kind == WEIR_VAR_INLINE)
		weiri_block_release(&txn->allocator, entry->value.room, weiri_block_size(entry->value.size));
	else
		weiri_value_drop(entry->var, &entry->value);
	entry->value.data = NULL;
}

/* Copies the bytes of an inline value, and sets value->room to the copy. */
static enum weir_status copy_bytes(weir_txn *txn, const weir_var *var, weir_value *value, weir_error *error)
{
	void *room = allocate(&txn->allocator, value->size);

	if (room == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "transaction: no memory for variable \"%s\"", var->name);
	value->room = memcpy(room, value->data, value->size);
	return WEIR_OK;
}

enum weir_status weir_txn_assign(weir_txn *txn, weir_var *var, weir_tensor *value, weir_error *error)
{
	return weir_txn_assign_value(txn, var, weir_value_tensor(value), error);
}

enum weir_status weir_txn_assign_value(weir_txn *txn, weir_var *var, weir_value value, weir_error *error)
{
	struct entry *entry;
	enum weir_status status;

	if (txn == NULL || var == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "transaction: %s is NULL",
		                  txn == NULL ? "it" : "the variable to assign");
	if (txn->moved != NULL)
		return fail_moved(txn, error);
	status = weiri_value_check(var, &value, error);
	entry = find(txn, var);
	if (status == WEIR_OK && entry == NULL)
		status = make_room(txn, var, error);
	if (status == WEIR_OK && value.kind == WEIR_VAR_INLINE)
		status = copy_bytes(txn, var, &value, error);
	if (status != WEIR_OK)
		return status;
	if (entry == NULL)
		entry = add(txn, var, WEIRI_ANY_VERSION);
	if (weiri_value_is_none(&entry->value))
		txn->writes++;
	if (value.kind == WEIR_VAR_TENSOR)
		(void)weir_tensor_retain(value.tensor); /* first, because the value dropped next may be the same */
	drop_assigned(txn, entry);
	entry->value = value;
	return WEIR_OK;
}

void *weiri_txn_table_root(const weir_txn *txn, const weir_var *var)
{
	const struct entry *entry = find(txn, var);

	return entry != NULL ? entry->value.pointer : NULL;
}

/* -- beginning and ending ---------------------------------------------------------------------- */

enum weir_status weir_txn_begin(const weir_allocator *allocator, weir_txn **out, weir_error *error)
{
	weir_allocator memory = weiri_allocator_or_default(allocator);
	weir_txn *txn;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "transaction: out is NULL");
	txn = allocate(&memory, sizeof(*txn));
	if (txn == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "transaction: no memory");
	*txn = (struct weir_txn){.allocator = memory};
	/* [S] X2. */
	txn->now = weiri_load_seq_cst(&weiri_clock);
	*out = txn;
	return WEIR_OK;
}

/* Releases everything that the transaction read or would write. */
static void forget(weir_txn *txn)
{
	for (size_t i = 0; i < txn->count; i++) {
		if (txn->entries[i].read.data != NULL)
			weir_read_release(&txn->entries[i].read);
		drop_assigned(txn, &txn->entries[i]);
	}
	if (txn->count != 0)
		memset(txn->table, 0, 2 * txn->room * sizeof(*txn->table));
	txn->count = txn->writes = txn->next_slot = 0;
	txn->moved = NULL;
}

/* Prepares another attempt in the same memory. */
static void begin_again(weir_txn *txn)
{
	forget(txn);
	/* [S] X2. */
	txn->now = weiri_load_seq_cst(&weiri_clock);
}

void weir_txn_abort(weir_txn *txn)
{
	weir_allocator allocator;

	if (txn == NULL)
		return;
	forget(txn);
	release_arrays(txn);
	allocator = txn->allocator;
	weiri_block_release(&allocator, txn, weiri_block_size(sizeof(*txn)));
}

/* For several variables, some read, some assigned. */
static enum weir_status commit_parts(weir_txn *txn, struct weir_value_part parts[], uint64_t deadline_ns,
                                     weir_error *error)
{
	struct weiri_parts wanted = {.of_values = parts, .count = txn->count};
	struct weiri_record *record;
	struct weiri_moved moved;
	enum weir_status status = weiri_write_admit(txn->entries[0].var, deadline_ns, &record, error);

	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < txn->count; i++) {
		const struct entry *entry = &txn->entries[i];

		weiri_give_way(entry->var, deadline_ns);
		parts[i] = (struct weir_value_part){entry->var, entry->number, entry->value};
	}
	status = weiri_commit(record, &wanted, NULL, &moved);
	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_fail(error, status, "transaction of %zu variable%s: no memory for its commit", txn->count,
		                  WEIRI_S(txn->count));
	if (status == WEIR_ABORTED) {
		doom(txn, moved.var, moved.expected, moved.found);
		return fail_moved(txn, error);
	}
	return status;
}

/* For one variable, a single write suffices. */
static enum weir_status commit_one(const struct entry *entry, uint64_t deadline_ns, weir_error *error)
{
	if (entry->number == WEIRI_ANY_VERSION)
		return weir_var_assign_value(entry->var, entry->value, deadline_ns, NULL, error);
	return weir_var_compare_assign_value(entry->var, entry->number, entry->value, deadline_ns, NULL, error);
}

static enum weir_status commit_many(weir_txn *txn, uint64_t deadline_ns, weir_error *error)
{
	size_t size = txn->count * sizeof(struct weir_value_part);
	struct weir_value_part *parts = allocate(&txn->allocator, size);
	enum weir_status status;

	if (parts == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "transaction of %zu variable%s: no memory for its commit",
		                  txn->count, WEIRI_S(txn->count));
	status = commit_parts(txn, parts, deadline_ns, error);
	weiri_block_release(&txn->allocator, parts, weiri_block_size(size));
	return status;
}

/* The versions took over the pointers. */
static void forget_pointers(weir_txn *txn)
{
	for (size_t i = 0; i < txn->count; i++) {
		enum weir_var_kind kind = txn->entries[i].var->kind;

		if (kind == WEIR_VAR_POINTER || kind == WEIR_VAR_TABLE)
			txn->entries[i].value.pointer = NULL;
	}
}

static enum weir_status commit(weir_txn *txn, uint64_t deadline_ns, weir_error *error)
{
	enum weir_status status;

	if (txn->moved != NULL)
		return fail_moved(txn, error);
	if (txn->writes == 0)
		return WEIR_OK;
	if (txn->count == 1)
		status = commit_one(&txn->entries[0], deadline_ns, error);
	else
		status = commit_many(txn, deadline_ns, error);
	if (status == WEIR_OK)
		forget_pointers(txn);
	return status;
}

enum weir_status weir_txn_commit(weir_txn *txn, uint64_t deadline_ns, weir_error *error)
{
	enum weir_status status;

	if (txn == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "transaction: txn is NULL");
	status = commit(txn, deadline_ns, error);
	weir_txn_abort(txn);
	return status;
}

/* -- retrying until the commit succeeds -------------------------------------------------------- */

/*
 * Pauses a random number of times. The limit of that number doubles with each attempt, up to 2,048,
 * which takes some 100 us.
 */
static void back_off(const weir_txn *txn, unsigned attempt)
{
	uint64_t limit = UINT64_C(1) << (attempt < 11 ? attempt : 11);
	/* Differs between threads by the address, and between attempts by the clock. */
	uint64_t mixed = ((uint64_t)(uintptr_t)txn ^ txn->now) * UINT64_C(0x9e3779b97f4a7c15);

	for (uint64_t i = (mixed >> 32) % limit; i > 0; i--)
		weiri_pause();
}

/* WEIR_ABORTED: another attempt may succeed. For any other failure, *error has the reason. */
static enum weir_status attempt(weir_txn *txn, weir_txn_fn *fn, void *context, uint64_t deadline_ns, weir_error *error)
{
	enum weir_status status;

	weiri_error_begin(error);
	status = fn(context, txn, error);
	if (status == WEIR_OK)
		return commit(txn, deadline_ns, error);
	if (!weiri_error_explains(error, status))
		(void)weiri_fail(error, status, "transaction: its function returned %s", weir_status_name(status));
	return status;
}

static enum weir_status run(weir_txn *txn, weir_txn_fn *fn, void *context, uint64_t deadline_ns, weir_error *error)
{
	weir_error last;
	enum weir_status status;

	for (unsigned attempts = 1; (status = attempt(txn, fn, context, deadline_ns, &last)) == WEIR_ABORTED; attempts++) {
		if (weir_now_ns() >= deadline_ns)
			return weiri_fail(error, WEIR_DEADLINE_EXCEEDED, "the deadline passed after %u attempt%s; the last: %.160s",
			                  attempts, WEIRI_S(attempts), last.message);
		begin_again(txn);
		back_off(txn, attempts);
	}
	if (status != WEIR_OK && error != NULL)
		*error = last;
	return status;
}

enum weir_status weir_txn_run(const weir_allocator *allocator, weir_txn_fn *fn, void *context, uint64_t deadline_ns,
                              weir_error *error)
{
	enum weir_status status;
	weir_txn *txn;

	if (fn == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "transaction: function is NULL");
	status = weir_txn_begin(allocator, &txn, error);
	if (status != WEIR_OK)
		return status;
	status = run(txn, fn, context, deadline_ns, error);
	weir_txn_abort(txn);
	return status;
}
