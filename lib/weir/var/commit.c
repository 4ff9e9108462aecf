/*
 * commit.c - several variables change at one instant, if none has moved.
 *
 * Algorithm. Multi-word compare-and-swap with helping (Harris, Fraser, Pratt, DISC 2002), over
 * versions instead of words. The owner makes one undecided version for each variable, all pointing
 * to one cell, and installs them in address order. A thread that finds one of them and wants to
 * write installs the remaining parts first. When all parts are installed, a thread reads the clock,
 * and the cell gets its stamp. If a thread finds that a variable has moved, the cell becomes ABORTED.
 * Nothing is rolled back: an aborted version stays at the head until the next write replaces it, and
 * all threads look through it to its base.
 *
 *   INSTALLING -> stamp                                       no reader has passed
 *   INSTALLING -> PASSED -> READY -> stamp                    a reader has passed
 *   INSTALLING or PASSED -> ABORTED                           no other transition
 *
 * Why readers mark the cell. A reader that finds the cell undecided takes the bases of its versions.
 * So the commit's instant, the read of the clock, must still be to come. Yet a thread may have read
 * the clock already and be about to stamp the cell. The reader therefore changes INSTALLING to PASSED
 * before it takes a base, and that thread's CAS fails. From PASSED the cell first becomes READY, which
 * no reader passes: each thread that finds it reads the clock and stamps it. The reader tries its CAS
 * once. If it fails, the cell is PASSED by another reader, or READY, or decided. A commit that no
 * thread looks at between its first part and its stamp changes its cell once.
 *
 * What differs from Harris, Fraser and Pratt: no second phase replaces descriptors by values, since
 * versions stay; no double-compare single-swap (RDCSS) is needed to install a part, see V1 below;
 * readers install nothing, since they read the base of an undecided version; and the outcome
 * carries a stamp that orders the commit among all writes. An uncontended commit of k parts takes
 * k + 1 read-modify-writes, the least that is possible (Guerraoui, Kogan, Marathe, Zablotchi, DISC
 * 2020), and one more that retires what it has replaced. The mark of a reader is ours.
 *
 * Why each part is installed at most once (V1). A helper reads the head h, then finds the cell
 * undecided, and then replaces h by the part with a CAS. A part leaves the head only after its cell is decided
 * (a writer replaces decided versions only). So when the helper read the state, the part had not
 * been installed and replaced. If the CAS succeeds, the head was h all the time since it was read:
 * heads do not return, and the section pins h, so its address does not return either. So no thread
 * installed the part in between. The load of the state may be relaxed. Suppose that the part had
 * been replaced before h was read. The writer that replaced the part had seen the decision, and
 * released it with its own version. The read of h acquired it, directly or through the heads
 * between that version and h. So the decision happens before the load of the state, which by
 * coherence cannot return an earlier value.
 * A helper may still install a part after the abort. So after an abort the owner ensures that each
 * part is installed, was installed, or never can be installed because its base is gone
 * (pin_aborted_part). Then no thread needs the cell, and it is retired.
 * Why helping ends. A commit is blocked only by an undecided part of another commit, at a higher
 * address than the parts that both have installed. Helping that commit may lead to a third, higher
 * still. So a chain climbs, and its top can be decided. Then the helper starts again at the bottom.
 * It looks at installed parts once more, but needs no stack that grows with the chain.
 *
 * Marks. A part may require that a variable has not moved, without changing it. Its version is then
 * a mark, with the number and the value of its base. So the whole read set of a transaction has
 * one instant, that of the stamp, and the argument for writes covers it. Code that only compares
 * numbers, such as that of readers, does not notice marks.
 * A part is built on one base, not on one number. So a mark that came in between makes the commit
 * abort although the number is the expected one. The commit is then retried with a new cell, and
 * its caller does not notice. The same happens if a part accepts any version. A mark keeps the
 * value of its base alive. So the retired bytes of the base do not include the value, and those
 * of the mark do.
 *
 * Linearization: the CAS that stamps the cell, in the order of stamps. WEIR_ABORTED: the read of
 * the head that had moved.
 * Progress: lock-free. A CAS on a head fails only because another version was installed. An abort
 * is caused by a successful write, or by a mark of another commit that succeeded.
 * Checked: stress/model/check_var.c and check_txn.c, tests/test_commit.c,
 * stress/scenario_variable.c (torn, lost and out-of-order snapshots beside committing threads).
 */
#include "var/commit.h"

#include "base/error.h"
#include "base/sort.h"
#include "reclaim/magazine.h"
#include "var/box.h"
#include "var/give_way.h"
#include "var/hold.h"
#include "var/install.h"
#include "var/kind.h"

uint64_t weiri_commit_resolve(struct weiri_commit *commit)
{
	uint64_t state = weiri_load_seq_cst(&commit->state); /* [S] */

	/* [S] The commit's instant comes after this CAS. If it fails, `state` is what the cell is. */
	if (state == WEIRI_COMMIT_INSTALLING && weiri_cas_seq_cst(&commit->state, &state, WEIRI_COMMIT_PASSED))
		return WEIRI_STAMP_NONE;
	if (state == WEIRI_COMMIT_PASSED)
		return WEIRI_STAMP_NONE;
	return state == WEIRI_COMMIT_READY ? weiri_stamp_now(&commit->state, WEIRI_COMMIT_READY) : state;
}

/* -- deciding, by the owner and by helpers ----------------------------------------------------- */

static bool undecided(struct weiri_commit *commit)
{
	/* [relaxed] After the acquire of a head: V1 above. */
	uint64_t state = weiri_load_relaxed(&commit->state);

	return state == WEIRI_COMMIT_INSTALLING || state == WEIRI_COMMIT_PASSED;
}

/* All parts are at their heads, or were there. */
static void decide_for(struct weiri_commit *commit)
{
	uint64_t state = weiri_stamp_now(&commit->state, WEIRI_COMMIT_INSTALLING);

	/* [S] Fails if another helper was first. The next look at the cell stamps it. */
	if (state == WEIRI_COMMIT_PASSED)
		(void)weiri_cas_seq_cst(&commit->state, &state, WEIRI_COMMIT_READY);
}

/*
 * ABORTED has no place among the instants: all threads look through the versions to their bases, as if it
 * were undecided, and they acquired the bases with the heads. So it needs no S. An owner that finds an
 * older `moved` tries once more in vain.
 */
static void decide_against(struct weiri_commit *commit)
{
	uint64_t state = WEIRI_COMMIT_INSTALLING;

	/* [P3 release] Fails if another helper was first, or if a reader has passed; there is no way back. */
	if (!weiri_cas_release(&commit->state, &state, WEIRI_COMMIT_ABORTED) && state == WEIRI_COMMIT_PASSED)
		(void)weiri_cas_release(&commit->state, &state, WEIRI_COMMIT_ABORTED); /* [P3 release] as above */
}

enum installed { IN, DECIDED, BLOCKED };

/*
 * Installs a part at the head of its variable. Returns IN if the part is there, DECIDED if the cell
 * is decided, and BLOCKED if an undecided part of another commit is at the head; *other is then
 * that commit.
 */
static enum installed install_part(struct weiri_scope *scope, struct weiri_commit *commit, size_t index,
                                   struct weiri_commit **other)
{
	const struct weiri_commit_part *part = &commit->parts[index];

	for (;;) {
		struct weiri_version *head, *base;
		uint64_t stamp;

		weiri_section_read(scope->record, &part->var->head, &head); /* [S, P1] */
		if (head == part->version)
			return IN;
		if (!undecided(commit)) /* after the read of the head: V1 */
			return DECIDED;
		stamp = weiri_version_resolve(head);
		if (stamp == WEIRI_STAMP_NONE) {
			*other = head->commit;
			return BLOCKED;
		}
		base = stamp == WEIRI_STAMP_ABORTED ? head->base : head;
		/*
		 * The part's version may be read here: it was made before any part was shared, and is
		 * retired after the decision, as the cell is. Positions are compared, not addresses: if the
		 * owner ended in the middle, or a fork left it behind, no section keeps the part's base, and
		 * another version may have its address.
		 */
		if (base->position + 1 != part->version->position) {
			/* [relaxed] A note for the owner, which may miss it. */
			weiri_store_relaxed(&commit->moved, index);
			decide_against(commit);
			return DECIDED;
		}
		if (weiri_write_replace(scope, part->var, head, base, part->version))
			return IN;
	}
}

/*
 * Installs the parts, and then decides. Returns NULL if the commit is decided, otherwise the
 * undecided commit that must be helped first.
 */
static struct weiri_commit *install_parts(struct weiri_scope *scope, struct weiri_commit *commit)
{
	for (size_t i = 0; i < commit->count; i++) {
		struct weiri_commit *other = NULL;
		enum installed installed = install_part(scope, commit, i, &other);

		if (installed != IN)
			return other;
	}
	decide_for(commit);
	return NULL;
}

void weiri_commit_help(struct weiri_scope *scope, struct weiri_commit *commit)
{
	struct weiri_commit *current = commit;

	/* The section protects every cell that was found in it. */
	for (;;) {
		struct weiri_commit *other = install_parts(scope, current);

		if (other != NULL)
			current = other;
		else if (current != commit)
			current = commit;
		else
			return;
	}
}

/* -- the owner's part -------------------------------------------------------------------------- */

/*
 * Ensures that no helper can install the part any more. Returns true if the part is or was at the
 * head of its variable. The thread that replaces it there then retires it.
 */
static bool pin_aborted_part(struct weiri_scope *scope, const struct weiri_commit_part *part)
{
	struct weiri_version *head, *base;

	do {
		base = weiri_write_base(scope, part->var, &head);
		/*
		 * [relaxed] The thread that replaces the part sets the flag before its CAS of the head, see
		 * weiri_write_replace(). The read of the head above acquires that CAS. If this load sees
		 * the flag before the CAS, the thread that set the flag had found the part at the head.
		 */
		if (head == part->version || weiri_load_relaxed(&part->version->seen_at_head))
			return true;
		if (base != part->version->base)
			return false;
	} while (!weiri_write_replace(scope, part->var, head, base, part->version));
	return true;
}

static WEIRI_COLD void finish_aborted(struct weiri_scope *scope, struct weiri_commit *commit)
{
	for (size_t i = 0; i < commit->count; i++) {
		struct weiri_version *version = commit->parts[i].version;

		weiri_version_disown(version);
		/*
		 * No thread needs the cell to learn the outcome. [relaxed] The stamp carries nothing: who finds it
		 * looks through the version to its base. A section that may miss it holds the cell, since P6 of
		 * collect.c carries it to all others.
		 */
		weiri_store_relaxed(&version->stamp, WEIRI_STAMP_ABORTED);
		if (!pin_aborted_part(scope, &commit->parts[i]))
			weiri_scope_retire(scope, &version->retired); /* V5; a slow helper may still use it */
	}
}

static inline void finish_committed(struct weiri_scope *scope, struct weiri_commit *commit, uint64_t stamp)
{
	for (size_t i = 0; i < commit->count; i++) {
		struct weiri_version *version = commit->parts[i].version, *base = version->base;

		/* [P2 release] no thread needs the cell to learn the outcome. */
		weiri_store_release(&version->stamp, stamp);
		if (version->is_mark) /* this thread retires the base; the mark counts for the value */
			base->retired.bytes -= weiri_value_footprint(base->value);
		weiri_history_retire(scope, commit->parts[i].var, version, base); /* V5: after the stamp */
	}
}

/* Called once by the owner, with what the decided cell was resolved to. */
static inline void finish(struct weiri_scope *scope, struct weiri_commit *commit, uint64_t stamp)
{
	if (WEIRI_UNLIKELY(stamp == WEIRI_COMMIT_ABORTED))
		finish_aborted(scope, commit);
	else
		finish_committed(scope, commit, stamp);
}

void weiri_commit_end(struct weiri_scope *scope, struct weiri_commit *commit)
{
	finish(scope, commit, weiri_commit_resolve(commit));
}

static size_t cell_size(size_t count)
{
	return weiri_block_size(sizeof(struct weiri_commit) + count * sizeof(struct weiri_commit_part));
}

void weiri_commit_free(struct weiri_commit *commit)
{
	weiri_block_release(&commit->allocator, commit, cell_size(commit->count));
}

static void commit_reclaim(struct weiri_retired *object)
{
	weiri_commit_free(WEIRI_CONTAINER_OF(object, struct weiri_commit, retired));
}

/* Frees a commit that was never shared, and its versions. `size` is that of its block. */
static void commit_discard(struct weiri_commit *commit, size_t size)
{
	weir_allocator allocator = commit->allocator;

	for (size_t i = 0; i < commit->count; i++) {
		weiri_version_disown(commit->parts[i].version);
		weiri_version_discard(commit->parts[i].version);
	}
	weiri_block_release(&allocator, commit, size);
}

static int by_address(const void *a, const void *b)
{
	uintptr_t left = (uintptr_t)((const struct weiri_commit_part *)a)->var;
	uintptr_t right = (uintptr_t)((const struct weiri_commit_part *)b)->var;

	return (left > right) - (left < right);
}

/* Up to this many parts are sorted as they are added. */
enum { FEW = 8 };

/* Adds a part to a commit that will have `count`, in its place if these are few. */
static inline void add_part(struct weiri_commit *commit, size_t count, struct weiri_commit_part part)
{
	size_t at = commit->count++;

	for (; count <= FEW && at > 0 && by_address(&commit->parts[at - 1], &part) > 0; at--)
		commit->parts[at] = commit->parts[at - 1];
	commit->parts[at] = part;
}

static WEIRI_ALWAYS_INLINE struct weiri_version *create_version(struct weiri_record *record,
                                                                const struct weir_value_part *part)
{
	if (WEIRI_LIKELY(part->var->kind == WEIR_VAR_INLINE && !weiri_value_is_none(&part->value)))
		return weiri_box_of_bytes(record, part->var, part->value.data);
	if (weiri_value_is_none(&part->value)) /* a mark gets its value with its base */
		return weiri_version_create(record, part->var, NULL, NULL);
	return weiri_version_of_value(record, part->var, &part->value);
}

/* The parts are given by value, here and below, so that a compiler knows which of the two arrays there is. */
static WEIRI_ALWAYS_INLINE struct weiri_commit *create(struct weiri_record *record, struct weiri_parts parts)
{
	const weir_allocator *allocator = &weiri_part_var(&parts, 0)->allocator;
	size_t count = parts.count, size = cell_size(count);
	struct weiri_commit *commit = weiri_block_allocate(record, allocator, size);

	if (commit == NULL)
		return NULL;
	weiri_retired_init(&commit->retired, size, commit_reclaim);
	weiri_store_relaxed(&commit->state, WEIRI_COMMIT_INSTALLING); /* [relaxed] not shared yet, both */
	weiri_store_relaxed(&commit->moved, (size_t)0);
	commit->count = 0;
	commit->allocator = *allocator;
	for (size_t i = 0; i < count; i++) {
		struct weir_value_part made;
		const struct weir_value_part *part = weiri_part(&parts, i, &made);
		struct weiri_version *version = create_version(record, part);

		if (version == NULL) {
			commit_discard(commit, size);
			return NULL;
		}
		version->commit = commit;
		version->is_mark = weiri_value_is_none(&part->value);
		add_part(commit, count, (struct weiri_commit_part){part->var, version, part->expected});
	}
	if (count > FEW)
		weiri_sort(commit->parts, count, sizeof(commit->parts[0]), by_address);
	return commit;
}

struct weiri_commit *weiri_commit_create(struct weiri_record *record, const struct weir_commit_part parts[],
                                         size_t count)
{
	return create(record, (struct weiri_parts){.of_tensors = parts, .count = count});
}

static void set_base(struct weiri_version *version, struct weiri_version *base)
{
	weiri_version_set_base(version, base);
	if (!version->is_mark)
		return;
	version->number = base->number;
	version->older = base->older;
	version->value = base->value;
	version->shown = base->shown;
	if (base->value != NULL)
		weiri_value_retain(base->value);
	version->retired.bytes += weiri_value_footprint(base->value);
}

static bool is_as_expected(const struct weiri_commit_part *part, const struct weiri_version *base)
{
	return part->expected == WEIRI_ANY_VERSION || part->expected == base->number;
}

/*
 * Sets the bases in address order, up to the first part whose variable is not at its expected
 * version. Returns that variable, or none if there is no such part.
 */
static struct weiri_moved take_bases(struct weiri_scope *scope, struct weiri_commit *commit)
{
	for (size_t i = 0; i < commit->count; i++) {
		const struct weiri_commit_part *part = &commit->parts[i];
		struct weiri_version *head, *base = weiri_write_base(scope, part->var, &head);

		if (!is_as_expected(part, base))
			return (struct weiri_moved){part->var, part->expected, base->number};
		set_base(part->version, base);
	}
	return (struct weiri_moved){NULL, 0, 0};
}

/*
 * Returns why a commit aborted. Returns no variable if the one that is noted is at its expected
 * version: a mark came in between, or the part accepts any version, or the note is an old one. The
 * next attempt begins with a look at all variables.
 */
static struct weiri_moved find_moved(struct weiri_scope *scope, struct weiri_commit *commit)
{
	/*
	 * [relaxed] A helper may have decided, and the load may miss what it noted. So the variable of the
	 * part that is named here need not have moved, or has moved again.
	 */
	const struct weiri_commit_part *part = &commit->parts[weiri_load_relaxed(&commit->moved)];
	struct weiri_version *head, *base = weiri_write_base(scope, part->var, &head);

	if (is_as_expected(part, base))
		return (struct weiri_moved){NULL, 0, 0};
	return (struct weiri_moved){part->var, part->expected, base->number};
}

static const struct weiri_commit_part *find_twice(const struct weiri_commit *commit)
{
	for (size_t i = 1; i < commit->count; i++) {
		if (commit->parts[i].var == commit->parts[i - 1].var)
			return &commit->parts[i];
	}
	return NULL;
}

/* Returns the version of the part for this variable. */
static const struct weiri_version *version_for(const struct weiri_commit *commit, const weir_var *var)
{
	size_t from = 0, to = commit->count;

	while (to - from > 1) {
		size_t middle = from + (to - from) / 2;

		if ((uintptr_t)commit->parts[middle].var <= (uintptr_t)var)
			from = middle;
		else
			to = middle;
	}
	return commit->parts[from].version;
}

/*
 * Called in the section of the owner, which protects the versions. A handle has a reference of the
 * value, so it pins no version.
 */
static void hold_published(const struct weiri_commit *commit, const struct weiri_parts *parts, weir_read published[])
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct weiri_version *version = version_for(commit, weiri_part_var(parts, i));

		published[i] = weiri_hold_value(version->value, version->shown, version->number);
	}
}

/*
 * Runs a commit whose parts are complete; frees or retires it and its versions. Returns
 * WEIR_ABORTED without a moved variable if the caller must retry.
 */
static WEIRI_NOINLINE enum weir_status run(struct weiri_record *record, struct weiri_commit *commit,
                                           struct weiri_parts parts, weir_read published[], struct weiri_moved *moved)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	uint64_t stamp;

	*moved = take_bases(&scope, commit);
	if (moved->var != NULL) {
		weiri_scope_leave(&scope);
		commit_discard(commit, cell_size(commit->count));
		return WEIR_ABORTED;
	}
	weiri_commit_help(&scope, commit);
	stamp = weiri_commit_resolve(commit);
	if (WEIRI_UNLIKELY(stamp == WEIRI_COMMIT_ABORTED))
		*moved = find_moved(&scope, commit);
	else if (published != NULL)
		hold_published(commit, &parts, published);
	finish(&scope, commit, stamp);
	weiri_commit_retire(&scope, commit);
	weiri_scope_leave(&scope);
	return stamp == WEIRI_COMMIT_ABORTED ? WEIR_ABORTED : WEIR_OK;
}

/*
 * A completion may destroy any of the variables. So completions run only after the waiters of all
 * variables were served.
 */
static WEIRI_ALWAYS_INLINE void serve_waiters(struct weiri_record *record, struct weiri_parts parts)
{
	bool outer = false, holds = false;

	for (size_t i = 0; i < parts.count; i++) {
		weir_var *var = weiri_part_var(&parts, i);

		/* A mark publishes nothing. */
		if (WEIRI_LIKELY(!weiri_waiters_posted(&var->waitable.waiters)) || weiri_part_is_mark(&parts, i))
			continue;
		if (!holds)
			outer = weiri_deliver_hold();
		holds = true;
		weiri_waitable_pump(record, &var->waitable);
	}
	if (holds)
		weiri_deliver_held(outer);
}

/* weiri_commit(), compiled for each of the two arrays that the parts may be. */
static WEIRI_ALWAYS_INLINE enum weir_status commit_from(struct weiri_record *record, struct weiri_parts parts,
                                                        weir_read published[], struct weiri_moved *moved)
{
	enum weir_status status;

	do {
		struct weiri_commit *commit = create(record, parts);
		const struct weiri_commit_part *twice;

		if (commit == NULL)
			return WEIR_RESOURCE_EXHAUSTED;
		twice = find_twice(commit);
		if (twice != NULL) {
			*moved = (struct weiri_moved){twice->var, 0, 0};
			commit_discard(commit, cell_size(commit->count));
			return WEIR_INVALID_ARGUMENT;
		}
		status = run(record, commit, parts, published, moved);
	} while (status == WEIR_ABORTED && moved->var == NULL);
	if (status == WEIR_OK)
		serve_waiters(record, parts);
	return status;
}

enum weir_status weiri_commit(struct weiri_record *record, const struct weiri_parts *parts, weir_read published[],
                              struct weiri_moved *moved)
{
	struct weiri_parts of_values = {.of_values = parts->of_values, .count = parts->count};
	struct weiri_parts of_tensors = {.of_tensors = parts->of_tensors, .count = parts->count};

	if (WEIRI_LIKELY(parts->of_tensors == NULL))
		return commit_from(record, of_values, published, moved);
	return commit_from(record, of_tensors, published, moved);
}

/* -- the public call --------------------------------------------------------------------------- */

static WEIRI_ALWAYS_INLINE enum weir_status check_part(const struct weir_value_part *part, size_t i, weir_error *error)
{
	if (part->var == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "commit: the variable of part %zu is NULL", i);
	if (part->expected == WEIRI_ANY_VERSION)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "commit: the expected version of part %zu is not a version number", i);
	return weiri_value_fits_inline(part->var, &part->value) ? WEIR_OK
	                                                        : weiri_value_check(part->var, &part->value, error);
}

static WEIRI_COLD enum weir_status fail_no_parts(const struct weiri_parts *parts, weir_error *error)
{
	if (parts->of_tensors == NULL && parts->of_values == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "commit: parts is NULL");
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "commit: %zu parts, must be 1 to %d", parts->count,
	                  WEIR_COMMIT_MAX_PARTS);
}

static WEIRI_ALWAYS_INLINE enum weir_status check_parts(const struct weiri_parts *parts, weir_error *error)
{
	if (WEIRI_UNLIKELY((parts->of_tensors == NULL && parts->of_values == NULL) || parts->count == 0 ||
	                   parts->count > WEIR_COMMIT_MAX_PARTS))
		return fail_no_parts(parts, error);
	for (size_t i = 0; i < parts->count; i++) {
		struct weir_value_part made;
		enum weir_status status = check_part(weiri_part(parts, i, &made), i, error);

		if (WEIRI_UNLIKELY(status != WEIR_OK))
			return status;
	}
	return WEIR_OK;
}

static WEIRI_COLD enum weir_status fail_commit(enum weir_status status, size_t count, const struct weiri_moved *moved,
                                               weir_error *error)
{
	if (status == WEIR_RESOURCE_EXHAUSTED)
		return weiri_fail(error, status, "commit: no memory for %zu parts", count);
	if (status == WEIR_INVALID_ARGUMENT)
		return weiri_fail(error, status, "commit: variable \"%s\" occurs twice", moved->var->name);
	return weiri_fail(error, status, "commit of %zu variable%s: variable \"%s\" is at version %llu, expected %llu",
	                  count, WEIRI_S(count), moved->var->name, (unsigned long long)moved->found,
	                  (unsigned long long)moved->expected);
}

/* The first part was admitted. */
static WEIRI_COLD void give_way_with_all(const struct weiri_parts *parts, uint64_t deadline_ns)
{
	for (size_t i = 1; i < parts->count; i++)
		weiri_give_way(weiri_part_var(parts, i), deadline_ns);
}

static WEIRI_ALWAYS_INLINE enum weir_status commit_parts(const struct weiri_parts *parts, uint64_t deadline_ns,
                                                         weir_read published[], weir_error *error)
{
	enum weir_status status = check_parts(parts, error);
	struct weiri_record *record;
	struct weiri_moved moved;

	if (status == WEIR_OK)
		status = weiri_write_admit(weiri_part_var(parts, 0), deadline_ns, &record, error);
	if (status != WEIR_OK)
		return status;
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&weiri_ways_asked) != 0)) /* [relaxed] W1 of give_way.h */
		give_way_with_all(parts, deadline_ns);
	status = weiri_commit(record, parts, published, &moved);
	return status == WEIR_OK ? WEIR_OK : fail_commit(status, parts->count, &moved, error);
}

enum weir_status weir_var_commit(const struct weir_commit_part parts[], size_t count, uint64_t deadline_ns,
                                 weir_read published[], weir_error *error)
{
	struct weiri_parts wanted = {.of_tensors = parts, .count = count};

	return commit_parts(&wanted, deadline_ns, published, error);
}

enum weir_status weir_var_commit_values(const struct weir_value_part parts[], size_t count, uint64_t deadline_ns,
                                        weir_read published[], weir_error *error)
{
	struct weiri_parts wanted = {.of_values = parts, .count = count};

	return commit_parts(&wanted, deadline_ns, published, error);
}
