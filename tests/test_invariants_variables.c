/*
 * test_invariants_variables.c - the assertions that guard reclamation, tensors, metrics, and
 * variables of all kinds each fail on a damaged structure.
 */
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/store.h>
#include <weir/tensor.h>
#include <weir/txn.h>
#include <weir/value.h>
#include <weir/var.h>
#include <weir/var_cache.h>

#include "metrics/stripes.h"
#include "reclaim/eras.h"
#include "reclaim/budget.h"
#include "reclaim/magazine.h"
#include "table/table.h"
#include "tensor/object.h"
#include "var/combine.h"
#include "var/install.h"
#include "invariants_kit.h"
#include "stepped.h"

/*
 * Runs the call one instruction after the other, and `spoil` between them until `spoil` returns 1.
 */
static void spoil_between_steps(void (*call)(void *context), int (*spoil)(void *context), void *context)
{
	struct stepped stepped = {.call = call, .context = context};
	int stands = stepped_start(&stepped, 0);

	while (stands && !spoil(context))
		stands = stepped_next(&stepped);
	stepped_finish(&stepped);
}

/* -- reclaim ----------------------------------------------------------------------------------- */

static void read_outside_a_section(void)
{
	_Atomic(void *) place = NULL;
	void *found;

	weiri_section_read(weiri_record_get(), &place, &found);
	(void)found;
}

static void end_a_reservation_early(void)
{
	struct weiri_scope scope = enter();
	_Atomic(void *) place = NULL;
	void *found;

	weiri_store_relaxed(&scope.record->hi, 0);
	weiri_section_read(scope.record, &place, &found);
	(void)found;
}

static void forget_an_announcement(void)
{
	struct weiri_scope scope = enter();
	_Atomic(void *) place = NULL;
	void *found;

	weiri_store_relaxed(&scope.record->fenced, 1u);
	weiri_store_relaxed(&scope.record->announced, 0u);
	weiri_section_read(scope.record, &place, &found);
	(void)found;
}

static void settle_an_era_to_come(void)
{
	struct weiri_record *other = weiri_record_lend();

	weiri_store_relaxed(&other->announced, 1u);
	weiri_announcements_settle(weiri_load_relaxed(&weiri_era) + 1);
}

static void retire_the_unborn(void)
{
	static struct weiri_retired object;

	weiri_retired_init(&object, 1, do_nothing);
	object.birth = UINT64_MAX;
	weiri_retire(weiri_record_get(), &object);
}

static void note_again_and_again(void *unused)
{
	(void)unused;
	for (;;) /* until the next tick, which needs a note */
		weiri_eras_note();
}

/* Some of the steps are between the load of the era and its check. */
static int turn_back_the_era(void *unused)
{
	(void)unused;
	weiri_store_relaxed(&weiri_era, weiri_load_relaxed(&weiri_era) - 1);
	return 0;
}

static void note_an_era_to_come(void)
{
	weiri_store_relaxed(&weiri_era, UINT64_C(1) << 40);
	spoil_between_steps(note_again_and_again, turn_back_the_era, NULL);
}

Test(invariants_variables, eras)
{
	stepped_or_skip();
	expect_broken("E1", note_an_era_to_come);
}

Test(invariants_variables, section)
{
	expect_broken("I1", read_outside_a_section);
	expect_broken("I2", end_a_reservation_early);
	expect_broken("N1", forget_an_announcement);
	expect_broken("N2", settle_an_era_to_come);
}

Test(invariants_variables, collect)
{
	expect_broken("I1", retire_the_unborn);
}

/* -- tensor, metrics --------------------------------------------------------------------------- */

static void release_twice(void)
{
	weir_tensor *tensor = NULL;

	if (weir_tensor_scalar_i64(1, &tensor) == WEIR_OK) {
		weiri_store_relaxed(&tensor->value.references, 0);
		weir_tensor_release(tensor);
	}
}

static void write_to_a_stripe(void)
{
	_Atomic(uint64_t) word = 1;

	weiri_stripe_assert_own(&word, 2);
}

Test(invariants_variables, tensor)
{
	expect_broken("O1", release_twice);
}

Test(invariants_variables, stripes)
{
	expect_broken("S1", write_to_a_stripe);
}

/* -- var --------------------------------------------------------------------------------------- */

static weir_var *variable(uint32_t history)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "v", .dtype = WEIR_I64, .history = history};
	weir_tensor *first;
	weir_var *var;

	if (weir_tensor_scalar_i64(1, &first) != WEIR_OK || weir_var_create(first, &options, &var, NULL) != WEIR_OK)
		_exit(1);
	return var;
}

static void assign(weir_var *var)
{
	weir_tensor *next;

	if (weir_tensor_scalar_i64(2, &next) != WEIR_OK)
		_exit(1);
	(void)weir_var_assign(var, next, WEIR_NO_DEADLINE, NULL, NULL);
}

static void build_on_another(void)
{
	weir_var *var = variable(0);
	struct weiri_scope scope = enter();
	struct weiri_version *head, *base = weiri_write_base(&scope, var, &head);
	struct weiri_version *next = weiri_version_create(scope.record, var, NULL, NULL);

	weiri_version_set_base(next, base);
	next->number = base->number + 7;
	(void)weiri_write_replace(&scope, var, head, base, next);
}

static void renumber_the_oldest(void)
{
	weir_var *var = variable(1);

	assign(var);
	weiri_load_relaxed(&var->head)->older->number = 77;
	assign(var);
}

/* A table of two versions, of which `draft` has its own copy of row 0, and is not sealed. */
struct tree {
	struct weiri_geometry *geometry;
	struct weiri_root *root;
	struct weiri_draft draft;
};

static struct tree tree(void)
{
	static const int64_t initial[2];
	struct weiri_rows rows = {.what = "table", .name = "t", .dtype = WEIR_I64, .count = 2, .elements = 1, .bytes = 8};
	struct tree tree = {.geometry = weiri_geometry_create(&rows, weir_default_allocator())};

	tree.root = weiri_root_create(tree.geometry, (const char *)initial);
	(void)weiri_root_seal(NULL, tree.root);
	weiri_draft_init(&tree.draft, tree.geometry);
	if (!weiri_draft_from(&tree.draft, tree.root) || weiri_draft_row(&tree.draft, 0) == NULL)
		_exit(1);
	return tree;
}

static void write_to_a_sealed_root(void)
{
	struct tree it = tree();

	(void)weiri_root_seal(NULL, it.draft.root);
	(void)weiri_draft_row(&it.draft, 0);
}

static void replace_a_block_of_a_later_version(void)
{
	struct tree it = tree();

	it.draft.root->parts[0].birth = 7;
	(void)weiri_draft_row(&it.draft, 0);
}

static void end_a_generation_twice(void)
{
	struct tree it = tree();

	weiri_generation_end(&it.root->generation);
	weiri_generation_end(&it.root->generation);
}

static void keep_nothing(void *context, const struct weiri_part parts[], size_t count)
{
	(void)context;
	(void)parts;
	(void)count;
}

/* Seals the draft, damages something, and sweeps. */
static void sweep_after(void (*damage)(struct tree *it))
{
	struct tree it = tree();

	(void)weiri_root_seal(NULL, it.draft.root);
	damage(&it);
	weiri_lineage_sweep(weiri_record_get(), &it.geometry->lineage, &it.draft.root->generation, keep_nothing, NULL);
}

static void skip_a_number(struct tree *it)
{
	it->draft.root->generation.number = 3;
}

static void sweep_with_a_gap(void)
{
	sweep_after(skip_a_number);
}

static void make_a_part_too_young(struct tree *it)
{
	it->draft.root->generation.replaced->part[0].birth = 2;
}

static void pin_what_is_too_young(void)
{
	sweep_after(make_a_part_too_young);
}

static void list_again(struct tree *it)
{
	struct weiri_lineage *lineage = &it->geometry->lineage;

	weiri_lineage_sweep(weiri_record_get(), lineage, &it->draft.root->generation, keep_nothing, NULL);
	(void)weiri_replaced_grow(&it->draft.root->generation.replaced, weir_default_allocator());
	weiri_lineage_end(lineage, &it->draft.root->generation, keep_nothing, NULL);
}

static void end_with_a_part_on_two_lists(void)
{
	sweep_after(list_again);
}

/* The first members are those of combine.c. */
struct combined {
	struct weiri_retired retired;
	_Atomic(size_t) users;
};

/* Returns the result in the variable's round, or NULL if the round is not sealed. */
static struct combined *combined_in(weir_var *var)
{
	struct weiri_round *round = weiri_load_relaxed(&var->round);
	uintptr_t word = round != NULL ? weiri_load_relaxed(&round->word) : 0;

	return (word & 1) != 0 && word != 1 ? (struct combined *)(word - 1) : NULL;
}

static void add_one(void *var)
{
	weir_tensor *one;

	if (weir_tensor_scalar_i64(1, &one) == WEIR_OK)
		(void)weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL);
}

static int forget_the_users(void *var)
{
	struct combined *combined = combined_in(var);

	if (combined != NULL)
		weiri_store_relaxed(&combined->users, 0);
	return combined != NULL;
}

static void use_what_has_no_users(void)
{
	weiri_combine_from = 1;
	spoil_between_steps(add_one, forget_the_users, variable(0));
}

/*
 * Opens the round after the last user has given the result back, and before it retires its request.
 */
static int open_once_more(void *var)
{
	const struct combined *combined = combined_in(var);
	int is_over = combined != NULL && weiri_load_relaxed(&combined->users) == 0;

	if (is_over)
		weiri_store_relaxed(&weiri_load_relaxed(&((weir_var *)var)->round)->word, (uintptr_t)0);
	return is_over;
}

static void retire_from_an_open_round(void)
{
	weiri_combine_from = 1;
	spoil_between_steps(add_one, open_once_more, variable(0));
}

/* The first member is that of txn.c. */
struct txn {
	uint64_t now;
};

static void read_of_the_future(void)
{
	weir_var *var = variable(0);
	weir_tensor *value;
	weir_txn *txn;

	weiri_store_relaxed(&weiri_clock, 100u);
	if (weir_txn_begin(NULL, &txn, NULL) != WEIR_OK)
		_exit(1);
	assign(var); /* newer than the transaction */
	weiri_store_relaxed(&weiri_clock, ((struct txn *)(void *)txn)->now - 2);
	(void)weir_txn_read(txn, var, &value, NULL);
}

static void destroy_nothing(void *object)
{
	(void)object;
}

static void end_in_a_section(void)
{
	static const struct weir_resource_type type = {"thing", destroy_nothing};
	weir_resource *resource = NULL;
	weir_store *store;

	if (weir_store_create(NULL, &store, NULL) == WEIR_OK &&
	    weir_store_add(store, NULL, "a", &type, &resource, &resource, NULL) == WEIR_OK &&
	    weir_store_remove(store, NULL, "a", NULL) == WEIR_OK) {
		(void)enter();
		weir_resource_release(resource);
	}
}

/* A variable of bytes or of a pointer, with one version that will be reclaimed by value_replaced(). */
static weir_var *value_variable(enum weir_var_kind kind)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = kind, .size = sizeof(uint64_t)};
	static uint64_t first;
	weir_value value = kind == WEIR_VAR_INLINE ? WEIR_VALUE_OF(first) : weir_value_pointer(&first);
	weir_var *var;

	if (weir_var_create_value(value, &options, &var, NULL) != WEIR_OK)
		_exit(1);
	return var;
}

static void replace_value(weir_var *var)
{
	static uint64_t next = 1;
	weir_value value = var->kind == WEIR_VAR_INLINE ? WEIR_VALUE_OF(next) : weir_value_pointer(&next);

	if (weir_var_assign_value(var, value, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		_exit(1);
	(void)weir_reclaim_flush(0);
}

/* The reference of a version is given up behind its back. */
static void drop_the_reference_of_a_version(void)
{
	weir_var *var = value_variable(WEIR_VAR_INLINE);

	weiri_store_relaxed(&weiri_load_relaxed(&var->head)->value->references, (size_t)0);
	replace_value(var);
}

/* The pointer of a version looks as if its release function had run. */
static void end_a_pointer_twice(void)
{
	weir_var *var = value_variable(WEIR_VAR_POINTER);

	*(void **)(void *)(weiri_load_relaxed(&var->head)->value + 1) = NULL;
	replace_value(var);
}

static void keep_a_block(void)
{
	const weir_allocator *allocator = weir_default_allocator();
	void *block = weiri_allocate(allocator, WEIRI_LINE, WEIRI_LINE);

	weiri_magazine_most = 64 << 10;
	if (block == NULL || weiri_record_get() == NULL)
		_exit(1);
	weiri_block_release(allocator, block, WEIRI_LINE);
}

/* A magazine has blocks that it does not count. */
static void keep_more_than_is_counted(void)
{
	keep_a_block();
	weiri_store_relaxed(&weiri_record_get()->magazine_bytes, 0u);
	keep_a_block();
}

static void grant_more_than_is_counted(void)
{
	keep_a_block();
	weiri_store_relaxed(&weiri_budget.of_kind[WEIRI_KEPT_MAGAZINES], 0);
	keep_a_block();
}

/* The slot of the cache is released behind its back. */
static void forget_the_slot_of_a_cache(void)
{
	weir_var *var = variable(0);
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	(void)weir_var_cache_read(&cache);
	weir_read_release(&cache.read);
	(void)weir_var_cache_refresh(&cache);
}

/* The section of the record ends, and the read section does not. */
static void leave_a_read_section(void)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	weir_var *var = variable(0);

	if (weir_read_section_begin(&section) != WEIR_OK)
		_exit(1);
	weiri_section_leave(weiri_record_get(), 0);
	(void)weir_read_section_find(&section, var);
}

Test(invariants_variables, value)
{
	expect_broken("B1", drop_the_reference_of_a_version);
	expect_broken("B2", end_a_pointer_twice);
}

Test(invariants_variables, magazine)
{
	expect_broken("M1", keep_more_than_is_counted);
	expect_broken("M2", grant_more_than_is_counted);
}

Test(invariants_variables, var_cache)
{
	expect_broken("D1", forget_the_slot_of_a_cache);
}

Test(invariants_variables, read_section)
{
	expect_broken("R1", leave_a_read_section);
}

Test(invariants_variables, version)
{
	expect_broken("V2", build_on_another);
}

Test(invariants_variables, history)
{
	expect_broken("H1", renumber_the_oldest);
}

Test(invariants_variables, combine)
{
	stepped_or_skip();
	expect_broken("C1", retire_from_an_open_round);
	expect_broken("C5", use_what_has_no_users);
}

Test(invariants_variables, txn)
{
	expect_broken("X2", read_of_the_future);
}

Test(invariants_variables, pages)
{
	expect_broken("T2", replace_a_block_of_a_later_version);
	expect_broken("T3", write_to_a_sealed_root);
}

Test(invariants_variables, lineage)
{
	expect_broken("L1", sweep_with_a_gap);
	expect_broken("L3", pin_what_is_too_young);
	expect_broken("L4", end_with_a_part_on_two_lists);
	expect_broken("L5", end_a_generation_twice);
}

Test(invariants_variables, named_store)
{
	expect_broken("N3", end_in_a_section);
}
