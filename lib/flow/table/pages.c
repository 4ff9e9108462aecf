/*
 * pages.c - making, branching and ending trees of pages; see pages.h.
 */
#include "table/pages.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

/* -- blocks ------------------------------------------------------------------------------------ */

static void *block_allocate(const struct weiri_geometry *geometry, enum weiri_block_kind kind)
{
	return weiri_allocate(&geometry->allocator, geometry->block_bytes[kind], WEIR_TENSOR_ALIGNMENT);
}

static void block_release(const struct weiri_geometry *geometry, enum weiri_block_kind kind, void *block)
{
	weiri_release(&geometry->allocator, block, geometry->block_bytes[kind], WEIR_TENSOR_ALIGNMENT);
}

/* In lists of parts, the lowest bit of the pointer to a block tells its kind. */
static void *tagged(void *block, enum weiri_block_kind kind)
{
	return (char *)block + kind;
}

static enum weiri_block_kind kind_of(const void *tagged)
{
	return (enum weiri_block_kind)((uintptr_t)tagged % 2);
}

/* Of type weiri_parts_dead_fn: keeps the blocks for the thread of the draft. */
static void keep(void *draft, const struct weiri_part parts[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum weiri_block_kind kind = kind_of(parts[i].memory);

		weiri_blocks_push(&((struct weiri_draft *)draft)->blocks[kind], (char *)parts[i].memory - kind);
	}
}

static void release_some(struct weiri_draft *draft, const struct weiri_geometry *geometry, enum weiri_block_kind kind,
                         size_t count)
{
	for (; count > 0; count--)
		block_release(geometry, kind, weiri_blocks_pop(&draft->blocks[kind]));
}

static void blocks_take(struct weiri_draft *draft, struct weiri_geometry *geometry, enum weiri_block_kind kind)
{
	weiri_blocks_take(&draft->blocks[kind], &geometry->free_blocks[kind], geometry->block_bytes[kind]);
}

void weiri_draft_init(struct weiri_draft *draft, struct weiri_geometry *geometry)
{
	draft->root = NULL;
	for (int kind = 0; kind < WEIRI_BLOCK_KINDS; kind++)
		blocks_take(draft, geometry, (enum weiri_block_kind)kind);
}

void weiri_draft_fini(struct weiri_draft *draft, struct weiri_geometry *geometry)
{
	for (int kind = 0; kind < WEIRI_BLOCK_KINDS; kind++) {
		struct weiri_blocks *mine = &draft->blocks[kind];

		release_some(draft, geometry, (enum weiri_block_kind)kind,
		             weiri_blocks_count_kept(mine, geometry->block_bytes[kind]));
		weiri_blocks_put(mine, &geometry->free_blocks[kind]);
	}
}

/* -- geometry ---------------------------------------------------------------------------------- */

static void measure(struct weiri_geometry *geometry)
{
	const struct weiri_rows *rows = &geometry->rows;
	uint64_t parts;

	geometry->page_rows = rows->bytes < WEIRI_PAGE_BYTES ? WEIRI_PAGE_BYTES / rows->bytes : 1;
	if ((uint64_t)rows->count < geometry->page_rows)
		geometry->page_rows = (size_t)rows->count;
	if ((geometry->page_rows & (geometry->page_rows - 1)) == 0)
		geometry->page_shift = (unsigned)__builtin_ctzl(geometry->page_rows);
	else
		geometry->page_shift = WEIRI_NO_SHIFT;
	/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is at least one row. */
	geometry->pages = parts = ((uint64_t)rows->count - 1) / geometry->page_rows + 1;
	for (; parts > WEIRI_ROOT_PARTS; geometry->levels++)
		parts = (parts - 1) / WEIRI_NODE_PARTS + 1;
	geometry->root_parts = (size_t)parts;
	geometry->block_bytes[WEIRI_BLOCK_NODE] = sizeof(struct weiri_node);
	geometry->block_bytes[WEIRI_BLOCK_PAGE] = geometry->page_rows * rows->bytes;
	for (int kind = 0; kind < WEIRI_BLOCK_KINDS; kind++) {
		if (geometry->block_bytes[kind] < sizeof(struct weiri_block))
			geometry->block_bytes[kind] = sizeof(struct weiri_block);
	}
}

struct weiri_geometry *weiri_geometry_create(const struct weiri_rows *rows, const weir_allocator *allocator)
{
	size_t name_size = strlen(rows->name) + 1, size = sizeof(struct weiri_geometry) + name_size;
	struct weiri_geometry *geometry = weiri_allocate_zeroed(allocator, size, alignof(struct weiri_geometry));

	if (geometry == NULL)
		return NULL;
	geometry->rows = *rows;
	geometry->rows.name = memcpy(geometry + 1, rows->name, name_size);
	geometry->size = size;
	geometry->allocator = *allocator;
	measure(geometry);
	if (!weiri_lineage_init(&geometry->lineage, allocator)) {
		weiri_release(allocator, geometry, size, alignof(struct weiri_geometry));
		return NULL;
	}
	return geometry;
}

/* -- walks through a tree ---------------------------------------------------------------------- */

/*
 * Keeps all blocks below a part that were born at `since` or later, and the block itself. `height`
 * is the number of levels below it: 0 for a page.
 */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which has a few levels. */
static void keep_tree(struct weiri_draft *draft, const struct weiri_part *part, unsigned height, uint64_t since)
{
	/* A node is no older than what is below it (T2). A part may be empty in the last node. */
	if (part->memory == NULL || part->birth < since)
		return;
	if (height > 0) {
		for (size_t i = 0; i < WEIRI_NODE_PARTS; i++)
			keep_tree(draft, &((struct weiri_node *)part->memory)->parts[i], height - 1, since);
	}
	weiri_blocks_push(&draft->blocks[height > 0 ? WEIRI_BLOCK_NODE : WEIRI_BLOCK_PAGE], part->memory);
}

static void keep_root(struct weiri_draft *draft, const struct weiri_root *root, uint64_t since)
{
	for (size_t i = 0; i < root->geometry->root_parts; i++)
		keep_tree(draft, &root->parts[i], root->geometry->levels, since);
}

/* -- ending ------------------------------------------------------------------------------------ */

static void end_geometry(struct weiri_geometry *geometry)
{
	weir_allocator allocator = geometry->allocator;
	struct weiri_root *newest = geometry->newest;
	struct weiri_draft rest;

	weiri_draft_init(&rest, geometry);
	if (newest != NULL)
		keep_root(&rest, newest, 1);
	weiri_lineage_end(&geometry->lineage, newest != NULL ? &newest->generation : NULL, keep, &rest);
	for (int kind = 0; kind < WEIRI_BLOCK_KINDS; kind++)
		release_some(&rest, geometry, (enum weiri_block_kind)kind, rest.blocks[kind].count);
	for (unsigned level = 0; level <= geometry->levels; level++)
		block_release(geometry, level > 0 ? WEIRI_BLOCK_NODE : WEIRI_BLOCK_PAGE, geometry->zeros[level]);
	weiri_release(&allocator, geometry, geometry->size, alignof(struct weiri_geometry));
}

void weiri_geometry_release(struct weiri_geometry *geometry)
{
	if (weiri_lineage_give(&geometry->lineage))
		end_geometry(geometry);
}

static void root_free(struct weiri_root *root)
{
	weir_allocator allocator = root->allocator;

	weiri_release(&allocator, root, root->size, alignof(struct weiri_root));
}

static void root_reclaim(struct weiri_retired *object)
{
	struct weiri_generation *generation = WEIRI_CONTAINER_OF(object, struct weiri_generation, retired);

	root_free(WEIRI_CONTAINER_OF(generation, struct weiri_root, generation));
}

/* Frees a root that was not published, and what was made for it. */
static void root_discard(struct weiri_root *root)
{
	struct weiri_geometry *geometry = root->geometry;
	struct weiri_draft rest = {.root = NULL};

	keep_root(&rest, root, root->generation.number);
	weiri_replaced_release(root->generation.replaced, &geometry->allocator);
	root_free(root);
	weiri_draft_fini(&rest, geometry);
}

void weiri_root_end(struct weiri_root *root, bool published)
{
	struct weiri_geometry *geometry = root->geometry;

	if (published)
		weiri_generation_end(&root->generation);
	else
		root_discard(root);
	weiri_geometry_release(geometry);
}

/* -- the first version ------------------------------------------------------------------------- */

/* Creates a root without blocks. */
static struct weiri_root *root_create(struct weiri_geometry *geometry, struct weiri_generation *older)
{
	size_t size = sizeof(struct weiri_root) + geometry->root_parts * sizeof(struct weiri_part);
	struct weiri_root *root = weiri_allocate(&geometry->allocator, size, alignof(struct weiri_root));

	if (root == NULL)
		return NULL;
	weiri_generation_init(&root->generation, &geometry->lineage, older, size, root_reclaim);
	root->geometry = geometry;
	root->allocator = geometry->allocator;
	root->size = size;
	root->own_bytes = size;
	root->sealed = false;
	return root;
}

/* Makes a page of zeros and a node above for each level. Returns false without memory. */
static bool make_zeros(struct weiri_geometry *geometry)
{
	for (unsigned level = 0; level <= geometry->levels; level++) {
		enum weiri_block_kind kind = level > 0 ? WEIRI_BLOCK_NODE : WEIRI_BLOCK_PAGE;
		void *block = geometry->zeros[level] = block_allocate(geometry, kind);

		if (block == NULL)
			return false;
		if (level == 0) {
			memset(block, 0, geometry->block_bytes[kind]);
			continue;
		}
		for (size_t i = 0; i < WEIRI_NODE_PARTS; i++)
			((struct weiri_node *)block)->parts[i] = (struct weiri_part){geometry->zeros[level - 1], 0};
	}
	return true;
}

/* The rows that are still to be copied. */
struct source {
	struct weiri_geometry *geometry;
	const char *from;
	size_t left; /* bytes */
};

static void fill_page(struct source *source, char *page)
{
	size_t size = source->geometry->block_bytes[WEIRI_BLOCK_PAGE];
	size_t room = source->geometry->page_rows * source->geometry->rows.bytes;
	size_t bytes = source->left < room ? source->left : room;

	memcpy(page, source->from, bytes);
	/* The rest is set too, because a copy of a page reads all of its bytes. */
	memset(page + bytes, 0, size - bytes);
	source->from += bytes;
	source->left -= bytes;
}

/*
 * Makes the block of a part, of which *part is empty, and all below. Returns false without memory.
 */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, which has a few levels. */
static bool fill(struct source *source, struct weiri_part *part, unsigned height)
{
	enum weiri_block_kind kind = height > 0 ? WEIRI_BLOCK_NODE : WEIRI_BLOCK_PAGE;

	if (source->left == 0)
		return true;
	*part = (struct weiri_part){block_allocate(source->geometry, kind), 1};
	if (part->memory == NULL)
		return false;
	if (height == 0) {
		fill_page(source, part->memory);
		return true;
	}
	memset(part->memory, 0, sizeof(struct weiri_node));
	for (size_t i = 0; i < WEIRI_NODE_PARTS; i++) {
		if (!fill(source, &((struct weiri_node *)part->memory)->parts[i], height - 1))
			return false;
	}
	return true;
}

static bool fill_root(struct weiri_root *root, const char *initial)
{
	struct weiri_geometry *geometry = root->geometry;
	struct source source = {geometry, initial, (size_t)geometry->rows.count * geometry->rows.bytes};
	bool made = initial != NULL || make_zeros(geometry);

	memset(root->parts, 0, geometry->root_parts * sizeof(root->parts[0]));
	for (size_t i = 0; made && i < geometry->root_parts; i++) {
		if (initial != NULL)
			made = fill(&source, &root->parts[i], geometry->levels);
		else
			root->parts[i] = (struct weiri_part){geometry->zeros[geometry->levels], 0};
	}
	return made;
}

struct weiri_root *weiri_root_create(struct weiri_geometry *geometry, const char *initial)
{
	struct weiri_root *root = root_create(geometry, NULL);

	/*
	 * own_bytes stays the size of the root alone: the pages of the first version are counted in the
	 * versions that replace them.
	 */
	if (root != NULL && !fill_root(root, initial)) {
		weiri_root_end(root, false);
		return NULL;
	}
	return root;
}

/* -- branching --------------------------------------------------------------------------------- */

bool weiri_draft_from(struct weiri_draft *draft, const struct weiri_root *from)
{
	struct weiri_geometry *geometry = from->geometry;

	/* Its fields are const for readers; the next generation keeps a pointer to it. */
	draft->root = root_create(geometry, (struct weiri_generation *)(uintptr_t)&from->generation);
	if (draft->root == NULL)
		return false;
	memcpy(draft->root->parts, from->parts, geometry->root_parts * sizeof(from->parts[0]));
	return true;
}

/* Returns a block, or NULL if there is no memory. */
static WEIRI_NOINLINE void *block_get_anew(struct weiri_draft *draft, struct weiri_geometry *geometry,
                                           enum weiri_block_kind kind)
{
	struct weiri_blocks *mine = &draft->blocks[kind];
	void *block;

	/* Other threads, or an attempt that failed, may have put blocks back. */
	blocks_take(draft, geometry, kind);
	block = weiri_blocks_pop(mine);
	return block != NULL ? block : block_allocate(geometry, kind);
}

/*
 * Puts a copy of the block `old` into *part, and lists the old block. Returns the copy; NULL if there
 * is no memory.
 */
static inline void *own(struct weiri_draft *draft, struct weiri_part *part, struct weiri_part old,
                        enum weiri_block_kind kind)
{
	struct weiri_root *root = draft->root;
	struct weiri_geometry *geometry = root->geometry;
	size_t bytes = geometry->block_bytes[kind];
	void *copy;

	WEIR_ASSERT1(T2, old.birth < root->generation.number);
	if (old.birth != 0 && !weiri_replaced_reserve(&root->generation.replaced, &geometry->allocator))
		return NULL;
	copy = weiri_blocks_pop(&draft->blocks[kind]);
	if (WEIRI_UNLIKELY(copy == NULL)) {
		copy = block_get_anew(draft, geometry, kind);
		if (copy == NULL)
			return NULL;
	}
	memcpy(copy, old.memory, bytes);
	if (old.birth != 0)
		weiri_generation_lacks(&root->generation, (struct weiri_part){tagged(old.memory, kind), old.birth}, bytes);
	*part = (struct weiri_part){copy, root->generation.number};
	root->own_bytes += bytes;
	return copy;
}

char *weiri_draft_row(struct weiri_draft *draft, size_t index)
{
	struct weiri_root *root = draft->root;
	const struct weiri_geometry *geometry = root->geometry;
	struct weiri_place place = weiri_place_of(geometry, index);
	uint64_t number = root->generation.number;
	unsigned shift = geometry->levels * WEIRI_NODE_BITS;
	struct weiri_part *part = &root->parts[place.page >> shift], now = *part;

	WEIR_ASSERT1(T3, !root->sealed);
	while (shift > 0) {
		/*
		 * What is below is read in the old block (T1), and not in the copy: that would wait until the stores of
		 * the copy are done.
		 */
		const struct weiri_node *from = now.memory;
		struct weiri_node *copy = now.memory;
		size_t at;

		if (now.birth != number) {
			copy = own(draft, part, now, WEIRI_BLOCK_NODE);
			if (WEIRI_UNLIKELY(copy == NULL))
				return NULL;
		}
		shift -= WEIRI_NODE_BITS;
		at = (place.page >> shift) % WEIRI_NODE_PARTS;
		part = &copy->parts[at];
		now = from->parts[at];
	}
	if (now.birth != number) {
		now.memory = own(draft, part, now, WEIRI_BLOCK_PAGE);
		if (WEIRI_UNLIKELY(now.memory == NULL))
			return NULL;
	}
	return (char *)now.memory + place.row * geometry->rows.bytes;
}

void weiri_draft_sweep(struct weiri_draft *draft, struct weiri_root *newest)
{
	struct weiri_lineage *lineage = &newest->geometry->lineage;
	struct weiri_record *record = weiri_record_get();

	if (record != NULL && weiri_lineage_is_due(lineage, &newest->generation))
		weiri_lineage_sweep(record, lineage, &newest->generation, keep, draft);
}

/* -- reading ----------------------------------------------------------------------------------- */

static void prefetch_page(const struct weiri_geometry *geometry, const char *page)
{
	for (size_t at = 0; at < geometry->block_bytes[WEIRI_BLOCK_PAGE] && at < WEIRI_PAGE_BYTES; at += WEIRI_LINE)
		__builtin_prefetch(page + at);
}

const char *weiri_root_rows(const struct weiri_root *root, size_t index, size_t *count)
{
	enum { AHEAD = 4 };
	const struct weiri_geometry *geometry = root->geometry;
	struct weiri_place place = weiri_place_of(geometry, index);
	uint64_t page = place.page;
	uint64_t parts = geometry->levels > 0 ? WEIRI_NODE_PARTS - page % WEIRI_NODE_PARTS : geometry->pages - page;
	const struct weiri_part *part = weiri_root_part(root, page);
	const char *rows = part->memory, *end = rows;
	size_t page_bytes = geometry->page_rows * geometry->rows.bytes, found;
	uint64_t run = 0;

	if (parts > geometry->pages - page)
		parts = geometry->pages - page;
	for (; run < parts && part[run].memory == end; run++)
		end += page_bytes;
	for (uint64_t i = run; i < parts && i < run + AHEAD; i++)
		prefetch_page(geometry, part[i].memory);
	found = (size_t)(run * geometry->page_rows - place.row);
	*count = found < (size_t)geometry->rows.count - index ? found : (size_t)geometry->rows.count - index;
	return rows + place.row * geometry->rows.bytes;
}
