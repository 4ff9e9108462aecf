/*
 * tree.c - see tree.h.
 */
#include "areas/tree.h"

#include <stdalign.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/memory.h"

void *weiri_tree_find(const struct weiri_tree *tree, weiri_tree_compare *compare, const void *key)
{
	while (tree != NULL) {
		int side = compare(key, tree->item);

		if (side == 0)
			return tree->item;
		tree = side < 0 ? tree->left : tree->right;
	}
	return NULL;
}

void *weiri_tree_at(const struct weiri_tree *tree, size_t rank)
{
	while (tree != NULL) {
		size_t left = weiri_tree_count(tree->left);

		if (rank == left)
			return tree->item;
		tree = rank < left ? tree->left : tree->right;
		rank -= rank < left ? 0 : left + 1;
	}
	return NULL;
}

/* -- nodes ------------------------------------------------------------------------------------- */

static void node_free(struct weiri_tree *node)
{
	weir_allocator allocator = node->allocator;

	weiri_release(&allocator, node, sizeof(*node), alignof(struct weiri_tree));
}

static void node_reclaim(struct weiri_retired *retired)
{
	node_free(WEIRI_CONTAINER_OF(retired, struct weiri_tree, retired));
}

struct weiri_tree_edit weiri_tree_edit_begin(const weir_allocator *allocator)
{
	return (struct weiri_tree_edit){allocator, NULL, false};
}

static struct weiri_tree *make(struct weiri_tree_edit *edit)
{
	struct weiri_tree *node =
		edit->failed ? NULL : weiri_allocate_zeroed(edit->allocator, sizeof(*node), alignof(struct weiri_tree));

	if (node == NULL) {
		edit->failed = true;
		return NULL;
	}
	weiri_retired_init(&node->retired, sizeof(*node), node_reclaim);
	node->allocator = *edit->allocator;
	node->next_made = edit->made;
	edit->made = node;
	return node;
}

/*
 * Returns `node` itself if the edit owns it, otherwise a copy that replaces it; NULL if there is no
 * memory.
 */
static struct weiri_tree *own(struct weiri_tree_edit *edit, struct weiri_tree *node)
{
	struct weiri_tree *copy;

	if (!node->published)
		return node;
	copy = make(edit);
	if (copy == NULL)
		return NULL;
	copy->left = node->left;
	copy->right = node->right;
	copy->item = node->item;
	copy->weight = node->weight;
	copy->count = node->count;
	copy->origin = node;
	return copy;
}

/* Records that the edit removes `node` (T3): no later version has it. */
static void drop(struct weiri_tree_edit *edit, struct weiri_tree *node)
{
	struct weiri_tree *note = node->published ? make(edit) : node;

	if (note == NULL)
		return;
	if (node->published)
		note->origin = node;
	note->dropped = true;
}

static void recount(struct weiri_tree *node)
{
	WEIR_ASSERT1(T1, !node->published);
	node->count = weiri_tree_count(node->left) + 1 + weiri_tree_count(node->right);
}

/* -- edits ------------------------------------------------------------------------------------- */

static uint64_t weight_of(uint64_t seed)
{
	seed = (seed ^ seed >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
	seed = (seed ^ seed >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
	return seed ^ seed >> 33;
}

static struct weiri_tree *leaf(struct weiri_tree_edit *edit, uint64_t seed, void *item)
{
	struct weiri_tree *node = make(edit);

	if (node == NULL)
		return NULL;
	node->item = item;
	node->weight = weight_of(seed);
	node->count = 1;
	return node;
}

/* Rotates the child above its parent if the child is heavier. The edit owns both. */
static struct weiri_tree *heavier_first(struct weiri_tree *parent, struct weiri_tree *child)
{
	WEIR_ASSERT1(T2, !parent->published && !child->published);
	if (child->weight <= parent->weight) {
		recount(parent);
		return parent;
	}
	if (child == parent->left) {
		parent->left = child->right;
		child->right = parent;
	} else {
		parent->right = child->left;
		child->left = parent;
	}
	recount(parent);
	recount(child);
	return child;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which is about 2 log2 of its items. */
struct weiri_tree *weiri_tree_insert(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key, uint64_t seed, void *item)
{
	struct weiri_tree *node, *child;
	bool left;

	if (tree == NULL)
		return leaf(edit, seed, item);
	node = own(edit, tree);
	if (node == NULL)
		return tree;
	left = compare(key, node->item) < 0;
	child = weiri_tree_insert(edit, left ? node->left : node->right, compare, key, seed, item);
	if (edit->failed)
		return tree;
	if (left)
		node->left = child;
	else
		node->right = child;
	return heavier_first(node, child);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which is about 2 log2 of its items. */
struct weiri_tree *weiri_tree_replace(struct weiri_tree_edit *edit, struct weiri_tree *tree,
                                      weiri_tree_compare *compare, const void *key, void *item)
{
	struct weiri_tree *node = own(edit, tree);
	int side = compare(key, tree->item);

	if (node == NULL)
		return tree;
	if (side == 0)
		node->item = item;
	else if (side < 0)
		node->left = weiri_tree_replace(edit, node->left, compare, key, item);
	else
		node->right = weiri_tree_replace(edit, node->right, compare, key, item);
	return node;
}

/* Joins two trees. Every key of `low` is before every key of `high`. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the trees. */
static struct weiri_tree *join(struct weiri_tree_edit *edit, struct weiri_tree *low, struct weiri_tree *high)
{
	struct weiri_tree *node;

	if (low == NULL || high == NULL)
		return low != NULL ? low : high;
	node = own(edit, low->weight >= high->weight ? low : high);
	if (node == NULL)
		return low;
	if (low->weight >= high->weight)
		node->right = join(edit, node->right, high);
	else
		node->left = join(edit, low, node->left);
	recount(node);
	return node;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which is about 2 log2 of its items. */
struct weiri_tree *weiri_tree_remove(struct weiri_tree_edit *edit, struct weiri_tree *tree, weiri_tree_compare *compare,
                                     const void *key)
{
	int side = compare(key, tree->item);
	struct weiri_tree *node;

	if (side == 0) {
		node = join(edit, tree->left, tree->right);
		drop(edit, tree);
		return node;
	}
	node = own(edit, tree);
	if (node == NULL)
		return tree;
	if (side < 0)
		node->left = weiri_tree_remove(edit, node->left, compare, key);
	else
		node->right = weiri_tree_remove(edit, node->right, compare, key);
	recount(node);
	return node;
}

/* -- ends -------------------------------------------------------------------------------------- */

/* Called before the nodes are published. The published nodes to which they lead never change. */
static WEIRI_UNSEEN void assert_sound(const struct weiri_tree_edit *edit)
{
	for (const struct weiri_tree *node = edit->made; node != NULL; node = node->next_made) {
		WEIR_ASSERT2(T3, node->origin == NULL || node->origin->published);
		if (node->dropped)
			continue;
		WEIR_ASSERT2(T4, node->count == weiri_tree_count(node->left) + 1 + weiri_tree_count(node->right));
		WEIR_ASSERT2(T4, node->left == NULL || node->left->weight <= node->weight);
		WEIR_ASSERT2(T4, node->right == NULL || node->right->weight <= node->weight);
	}
}

/* Prepares the CAS that publishes the nodes. From here on they never change (T1). */
static void seal(struct weiri_tree_edit *edit, const struct weiri_scope *scope)
{
	uint64_t reserved = weiri_section_reserved(scope->record);

	/*
	 * The edit's nodes may have been born after the eras that the caller's section has reserved. As
	 * soon as they are published, another thread may replace and retire them, while
	 * retire_replaced() still reads them. So the section must reserve their birth eras too.
	 */
	(void)weiri_section_raise(scope->record, &reserved, 0);
	WEIR_ASSERT_LOOK(assert_sound(edit));
	for (struct weiri_tree *node = edit->made; node != NULL; node = node->next_made)
		node->published = true;
}

static void retire_replaced(struct weiri_tree_edit *edit, struct weiri_scope *scope)
{
	struct weiri_tree *node = edit->made;

	while (node != NULL) {
		/* Another thread may have replaced and retired the node, but not freed it: see seal(). */
		struct weiri_tree *next = node->next_made, *origin = node->origin;

		if (node->dropped)
			node_free(node);
		if (origin != NULL)
			weiri_scope_retire(scope, &origin->retired);
		node = next;
	}
}

void weiri_tree_discard(struct weiri_tree_edit *edit)
{
	while (edit->made != NULL) {
		struct weiri_tree *node = edit->made;

		edit->made = node->next_made;
		node_free(node);
	}
}

bool weiri_tree_publish(struct weiri_tree_edit *edit, struct weiri_scope *scope,
                        _Atomic(struct weiri_retired *) *current, struct weiri_retired *state,
                        struct weiri_retired *next, enum weir_status *status)
{
	*status = edit->failed || next == NULL ? WEIR_RESOURCE_EXHAUSTED : WEIR_OK;
	if (*status == WEIR_OK) {
		struct weiri_retired *expected = state;

		seal(edit, scope);
		/*
		 * [seq_cst] as reclaim/section.h requires of pointers that are read in sections. It is also
		 * the release of everything that `next` leads to.
		 */
		if (weiri_cas_seq_cst(current, &expected, next)) {
			retire_replaced(edit, scope);
			weiri_scope_retire(scope, state);
			return true;
		}
	}
	weiri_tree_discard(edit);
	if (next != NULL)
		next->reclaim(next);
	return *status != WEIR_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which is about 2 log2 of its items. */
void weiri_tree_end(struct weiri_tree *tree, struct weiri_scope *scope, void (*each)(void *context, void *item),
                    void *context)
{
	if (tree == NULL)
		return;
	weiri_tree_end(tree->left, scope, each, context);
	weiri_tree_end(tree->right, scope, each, context);
	if (each != NULL)
		each(context, tree->item);
	if (scope != NULL)
		weiri_scope_retire(scope, &tree->retired);
	else
		node_free(tree);
}
