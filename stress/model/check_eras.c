/*
 * check_eras.c - I1 of reclaim/section.h, which structures must ensure. Suppose that a section
 * finds an object that another thread unlinks. The era that the unlinking thread then reads is no
 * older than the era in which the section began.
 *
 * There are three threads: one removes the object and retires it, one looks for it in a section,
 * and one begins an era. Nothing is collected, so an object that was found still exists at the end.
 * Its retirement era can then be compared with the era in which the section began. If it were
 * older, a collector in between would free the object. A violation takes four steps in a certain
 * order; in a scope with a collection it would take a hundred.
 */
#include <weir/reclaim.h>

#include "model/variable_scopes.h"
#include "queue/putback.h"
#include "areas/tree.h"
#include "reclaim/lineage.h"
#include "reclaim/scope.h"
#include "ring/ring_list.h"
#include "sync/hash_list.h"
#include "sync/list.h"
#include "tensor/object.h"
#include "var/combine.h"
#include "var/commit.h"
#include "var/install.h"

enum { HASH = 2 };

static struct scene {
	/* What the section found, and the era in which it began. */
	struct weiri_retired *found;
	uint64_t lo;
	struct weiri_list list;
	struct weiri_list_node list_node, other_node;
	struct weiri_hash_list hash_list;
	struct weiri_hash_node hash_node;
	_Atomic(struct weiri_retired *) state;
	struct weiri_retired states[2];
	weir_ring_list *rings;
	struct weiri_putback putback;
	weir_var *var;
	struct weiri_commit *commit;
	struct weiri_lineage lineage;
	struct weiri_generation generation;
} scene;

static void ended(struct weiri_retired *retired)
{
	(void)retired;
}

static void begin_era(void)
{
	weiri_era_begin();
}

/* -- a list ------------------------------------------------------------------------------------ */

static void setup_list(void *context)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	weiri_store_relaxed(&scene.list.first, 0u);
	weiri_list_node_init(&scene.list_node, sizeof(scene.list_node), ended);
	weiri_list_append(&scope, &scene.list, &scene.list_node);
	weiri_scope_leave(&scope);
}

static void remove_from_list(struct weiri_scope *scope)
{
	weir_model_assert(weiri_list_remove(scope, &scene.list, &scene.list_node));
}

static struct weiri_retired *look_at_list(struct weiri_scope *scope)
{
	struct weiri_list_node *node = weiri_list_next(scope, &scene.list, NULL);

	return node != NULL ? &node->retired : NULL;
}

/* Objects that one scope has retired get their death together. */
static void setup_list_of_2(void *context)
{
	struct weiri_scope scope;

	setup_list(context);
	scope = weiri_scope_enter(weiri_record_get());
	weiri_list_node_init(&scene.other_node, sizeof(scene.other_node), ended);
	weiri_list_append(&scope, &scene.list, &scene.other_node);
	weiri_scope_leave(&scope);
}

static void remove_2_from_list(struct weiri_scope *scope)
{
	remove_from_list(scope);
	weir_model_assert(weiri_list_remove(scope, &scene.list, &scene.other_node));
}

/* -- a hash list ------------------------------------------------------------------------------- */

static int compare(const void *key, struct weiri_hash_node *node)
{
	(void)key, (void)node;
	return 0;
}

static void setup_hash_list(void *context)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	weiri_hash_list_init(&scene.hash_list, compare, weir_default_allocator());
	weiri_hash_node_init(&scene.hash_node, HASH, sizeof(scene.hash_node), ended);
	weir_model_assert(weiri_hash_list_insert(&scope, &scene.hash_list, &scene.hash_node, HASH, "") == NULL);
	weiri_scope_leave(&scope);
}

static void remove_from_hash_list(struct weiri_scope *scope)
{
	weir_model_assert(weiri_hash_list_remove(scope, &scene.hash_list, &scene.hash_node, HASH, ""));
}

static struct weiri_retired *look_at_hash_list(struct weiri_scope *scope)
{
	struct weiri_hash_node *node = weiri_hash_list_find(scope, &scene.hash_list, HASH, "");

	return node != NULL ? &node->retired : NULL;
}

/* -- a state that is replaced ------------------------------------------------------------------ */

static void setup_state(void *context)
{
	(void)context;
	for (size_t i = 0; i < 2; i++)
		weiri_retired_init(&scene.states[i], sizeof(scene.states[i]), ended);
	weiri_store_relaxed(&scene.state, &scene.states[0]);
}

static void replace_state(struct weiri_scope *scope)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(weir_default_allocator());
	struct weiri_retired *state;
	enum weir_status status;

	weiri_section_read(scope->record, &scene.state, &state);
	weir_model_assert(weiri_tree_publish(&edit, scope, &scene.state, state, &scene.states[1], &status));
}

static struct weiri_retired *look_at_state(struct weiri_scope *scope)
{
	struct weiri_retired *state;

	weiri_section_read(scope->record, &scene.state, &state);
	return state;
}

/* -- rings in a list --------------------------------------------------------------------------- */

static void put(uint64_t value)
{
	weir_model_assert(weir_ring_list_enqueue(scene.rings, value) == WEIR_OK);
}

static void take(uint64_t value)
{
	uint64_t taken;

	weir_model_assert(weir_ring_list_try_dequeue(scene.rings, &taken) == WEIR_OK && taken == value);
}

/* The first segment is empty, and the next dequeue leaves it. */
static void setup_rings(void *context)
{
	struct weir_ring_list_options options = {WEIR_RING_LIST_OPTIONS_INIT, .segment = 1};

	(void)context;
	weir_model_assert(weir_ring_list_create(&options, &scene.rings, NULL) == WEIR_OK);
	put(1);
	put(2);
	take(1);
}

static void drop_first(void)
{
	take(2);
}

static struct weiri_retired *look_at_rings(struct weiri_scope *scope)
{
	struct weiri_ring_segment *segment;

	weiri_section_read(scope->record, &scene.rings->head, &segment);
	return &segment->retired;
}

static void finish_rings(void)
{
	weir_ring_list_destroy(scene.rings, NULL);
}

/* -- what batches returned --------------------------------------------------------------------- */

static size_t take_1(struct weiri_scope *scope)
{
	uint64_t item;

	return weiri_putback_take(scope, &scene.putback, &item, 1);
}

/* A segment from which all items were taken. */
static void setup_putback(void *context)
{
	struct weiri_segment *segment = weiri_segment_create(1, WEIRI_SEGMENT_PLAIN, weir_default_allocator());
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	(void)context;
	weiri_putback_push(&scope, &scene.putback, segment, 1);
	weir_model_assert(take_1(&scope) == 1);
	weiri_scope_leave(&scope);
}

static void unlink_segment(struct weiri_scope *scope)
{
	weir_model_assert(take_1(scope) == 0);
}

static struct weiri_retired *look_at_putback(struct weiri_scope *scope)
{
	struct weiri_segment *top;

	weiri_section_read(scope->record, &scene.putback.top, &top);
	return top != NULL ? &top->retired : NULL;
}

/* -- a version --------------------------------------------------------------------------------- */

static void setup_variable(void *context)
{
	(void)context;
	scene.var = variable_of_size(1, SMALL_VALUES);
	setup_ends();
}

static void write(void)
{
	assign_tensor(scene.var, number_of_size(2, SMALL_VALUES));
}

static struct weiri_retired *look_at_variable(struct weiri_scope *scope)
{
	struct weiri_version *head;

	weiri_section_read(scope->record, &scene.var->head, &head);
	return &head->retired;
}

static void finish_variable(void)
{
	weir_model_assert(weir_var_destroy(scene.var, NULL) == WEIR_OK);
}

/* -- the round of combined updates ------------------------------------------------------------- */

static void add(void)
{
	weir_tensor *delta = number_of_size(1, SMALL_VALUES);

	weir_model_assert(weir_var_assign_add(scene.var, delta, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK);
	weir_tensor_release(delta);
}

/* There is one round, for a version that is no longer the newest. */
static void setup_round(void *context)
{
	setup_variable(context);
	weiri_combine_from = 1;
	add();
	setup_ends();
}

static struct weiri_retired *look_at_round(struct weiri_scope *scope)
{
	struct weiri_round *round;

	weiri_section_read(scope->record, &scene.var->round, &round);
	return (struct weiri_retired *)round; /* its first member */
}

/* -- a request on a round, which is sealed or closed ------------------------------------------- */

static void setup_first_round(void *context)
{
	setup_variable(context);
	weiri_combine_from = 1;
}

static void *allocate_no_value(void *context, size_t size, size_t alignment)
{
	(void)context;
	return size == sizeof(struct weir_tensor) + sizeof(int64_t) ? NULL : weir_model_allocate(size, alignment);
}

static void release(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context, (void)size, (void)alignment;
	weir_model_release(memory);
}

/* A variable that has memory for requests, but not for a value. */
static void setup_poor_variable(void *context)
{
	static const weir_allocator memory = {allocate_no_value, release, NULL};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = &memory};
	weir_tensor *zero = number_of_size(0, SMALL_VALUES);

	(void)context;
	weiri_combine_from = 1;
	weir_model_assert(weir_var_create(zero, &options, &scene.var, NULL) == WEIR_OK);
	weir_tensor_release(zero);
	setup_ends();
}

/*
 * The update pushes a request, finds no memory for the computation, and closes the round. The
 * version stays the newest.
 */
static void add_in_vain(void)
{
	weir_tensor *delta = number_of_size(1, SMALL_VALUES);

	weir_model_assert(weir_var_assign_add(scene.var, delta, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_RESOURCE_EXHAUSTED);
	weir_tensor_release(delta);
}

/* Does the same as a thread that pushes another request onto the round. */
static struct weiri_retired *look_at_request(struct weiri_scope *scope)
{
	struct weiri_version *head;
	struct weiri_round *round;
	uintptr_t word;

	weiri_section_read(scope->record, &scene.var->head, &head);
	weiri_section_read(scope->record, &scene.var->round, &round);
	if (round == NULL)
		return NULL;
	weiri_section_read(scope->record, &round->word, &word);
	if (word % 2 != 0 || weiri_load_relaxed(&scene.var->head) != head)
		return NULL;
	return (struct weiri_retired *)word; /* its first member */
}

/* -- the cell of a commit ---------------------------------------------------------------------- */

/* The commit's one part is installed, and the commit is decided. */
static void setup_commit(uint64_t outcome)
{
	weir_tensor *value = number_of_size(2, SMALL_VALUES);
	struct weiri_record *record = weiri_record_get();
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_version *head, *base;
	struct weir_commit_part part;

	setup_variable(NULL);
	part = (struct weir_commit_part){scene.var, WEIRI_ANY_VERSION, value};
	scene.commit = weiri_commit_create(record, &part, 1);
	base = weiri_write_base(&scope, scene.var, &head);
	weiri_version_set_base(scene.commit->parts[0].version, base);
	weir_model_assert(weiri_write_replace(&scope, scene.var, head, base, scene.commit->parts[0].version));
	weiri_store_relaxed(&scene.commit->state, outcome);
	(void)weiri_commit_resolve(scene.commit);
	weiri_scope_leave(&scope);
	weir_tensor_release(value);
	setup_ends();
}

static void setup_aborted(void *context)
{
	(void)context;
	setup_commit(WEIRI_COMMIT_ABORTED);
}

static void setup_committed(void *context)
{
	(void)context;
	setup_commit(WEIRI_COMMIT_READY);
}

/* Does the same as the owner of the commit. */
static void end_commit(struct weiri_scope *scope)
{
	weiri_commit_end(scope, scene.commit);
	weiri_commit_retire(scope, scene.commit);
}

/*
 * Does the same as a thread that finds the version. Such a thread reads the stamp, or the cell if
 * the version has no stamp yet (S2 of var/version.h).
 */
static struct weiri_retired *look_at_cell(struct weiri_scope *scope)
{
	struct weiri_version *head;

	weiri_section_read(scope->record, &scene.var->head, &head);
	if (weiri_load_acquire(&head->stamp) != WEIRI_STAMP_NONE)
		return NULL;
	return &head->commit->retired;
}

/* -- the ledger of a lineage ------------------------------------------------------------------- */

static void parts_dead(void *context, const struct weiri_part parts[], size_t count)
{
	(void)context, (void)parts, (void)count;
}

static void setup_lineage(void *context)
{
	(void)context;
	weir_model_assert(weiri_lineage_init(&scene.lineage, weir_default_allocator()));
	weiri_generation_init(&scene.generation, &scene.lineage, NULL, sizeof(scene.generation), ended);
}

/* Replaces the first ledger by one that knows the generation. */
static void sweep(void)
{
	weiri_lineage_sweep(weiri_record_get(), &scene.lineage, &scene.generation, parts_dead, NULL);
}

static struct weiri_retired *look_at_ledger(struct weiri_scope *scope)
{
	struct weiri_ledger *ledger;

	weiri_section_read(scope->record, &scene.lineage.ledger, &ledger);
	return (struct weiri_retired *)ledger; /* its first member */
}

static void finish_lineage(void)
{
	weiri_generation_end(&scene.generation);
	weir_model_assert(!weiri_lineage_give(&scene.lineage) && weiri_lineage_give(&scene.lineage));
	weiri_lineage_end(&scene.lineage, &scene.generation, parts_dead, NULL);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct scope {
	const char *name;
	void (*setup)(void *);
	/* One of the two is set: the first runs in a scope, the second is a call with its own scope. */
	void (*unlink)(struct weiri_scope *);
	void (*call)(void);
	struct weiri_retired *(*look)(struct weiri_scope *);
	void (*finish)(void);
} scopes[] = {
	{"eras_list", setup_list, remove_from_list, NULL, look_at_list, NULL},
	{"eras_list_of_2", setup_list_of_2, remove_2_from_list, NULL, look_at_list, NULL},
	{"eras_hash_list", setup_hash_list, remove_from_hash_list, NULL, look_at_hash_list, NULL},
	{"eras_state", setup_state, replace_state, NULL, look_at_state, NULL},
	{"eras_ring_list", setup_rings, NULL, drop_first, look_at_rings, finish_rings},
	{"eras_putback", setup_putback, unlink_segment, NULL, look_at_putback, NULL},
	{"eras_variable", setup_variable, NULL, write, look_at_variable, finish_variable},
	{"eras_round", setup_round, NULL, add, look_at_round, finish_variable},
	{"eras_request", setup_first_round, NULL, add, look_at_request, finish_variable},
	{"eras_request_in_vain", setup_poor_variable, NULL, add_in_vain, look_at_request, finish_variable},
	{"eras_commit_aborted", setup_aborted, end_commit, NULL, look_at_cell, finish_variable},
	{"eras_commit", setup_committed, end_commit, NULL, look_at_cell, finish_variable},
	{"eras_lineage", setup_lineage, NULL, sweep, look_at_ledger, finish_lineage},
};

static const struct scope *current;

static void find(void)
{
	struct weiri_scope scope = weiri_scope_enter(weiri_record_get());

	scene.found = current->look(&scope);
	scene.lo = weiri_load_relaxed(&scope.record->lo);
	weiri_scope_leave(&scope);
}

static void take_out(void)
{
	struct weiri_scope scope;

	if (current->call != NULL) {
		current->call();
		return;
	}
	scope = weiri_scope_enter(weiri_record_get());
	current->unlink(&scope);
	weiri_scope_leave(&scope);
}

static void thread(void *context, size_t number)
{
	static void (*const rows[])(void) = {take_out, find, begin_era};

	(void)context;
	rows[number]();
}

static void finish(void *context)
{
	(void)context;
	/* 0: the object is not retired. */
	if (scene.found != NULL && scene.found->death != 0)
		weir_model_assert(scene.found->death >= scene.lo);
	if (current->finish != NULL)
		current->finish();
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static struct scope_plan prepare(size_t index)
{
	current = &scopes[index];
	scene = (struct scene){.found = NULL};
	return (struct scope_plan){.program = {current->name, 3, &scene, sizeof(scene), current->setup, thread, finish},
	                           .executions = 50000,
	                           .long_executions = 2000000};
}

int main(int argc, char **argv)
{
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(scopes) / sizeof(scopes[0]));
}
