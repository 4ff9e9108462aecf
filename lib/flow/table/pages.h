/*
 * pages.h - trees of pages that versions of a table share.
 *
 * Structure. A version is a root, which points to nodes of 32 pointers, which point to further
 * nodes or to pages. A page is at most 512 bytes of whole rows, or one larger row. All pages are equally
 * deep. The root has up to 256 pointers, so that the upper levels are one block.
 *
 *     root (one for each version) -> 0 or more levels of nodes -> pages
 *
 * The thread that makes the next version copies the root. It then copies the nodes and the page on
 * the path to each row that it changes, each of these once. Beside each pointer is the number of
 * the version for which the block was made; so a block with the number of the new version is
 * already its own.
 *
 * Why no reference counts. With counts, a copy of a node takes a reference of 32 blocks, each on a
 * cache line of its own: 100 rows of a table of 1 GiB would cost 10,000 read-modify-writes. But
 * versions form a line, so a block is in consecutive versions. The version that replaces a block
 * lists it, and reclaim/lineage.h finds out when all earlier versions that had it have ended.
 *
 * Why these sizes. 100 rows of 256 bytes, of a table of 1 GiB, in microseconds of processor time on
 * an AMD EPYC; pages of 256, 512 and 1,024 bytes: with nodes of 16 pointers 14.9, 14.8, 17.0; with
 * nodes of 32 pointers 13.3, 14.7, 16.6; with nodes of 8 pointers 16.8 to 18.2. Pages of one row are
 * fastest to update, but have the most pointers, and a reader of all rows misses most often. With later
 * changes nodes of 16 pointers won a tenth for 32 MiB and nothing for 1 GiB, and a reader of all rows took
 * 1.2 to 1.4 times as long as one of an array, and not 1.1 to 1.3. To prefetch the blocks of later rows, in
 * any order and number, made updates slower: docs/profiling.md.
 *
 * Zeros. A table without initial values begins with one page of zeros and one node for each level,
 * to which all pointers lead. They have birth 0: they belong to the geometry and are never listed.
 *
 * Invariants
 *   T1  what a published root can reach is never written again
 *   T2  below a root, a block whose birth is not 0 has one place, and its birth is no larger than
 *       the number of the root. A node is no older than what is below it
 *   T3  a block whose birth is the number of a root that is not sealed belongs to the thread that
 *       makes that root. A root is sealed when a version is made of it
 * Why a version lives as long as it is read. The root is the value of a version of a variable
 * (table.c, var/table_var.h). The end of that value ends the generation of the root. It runs only
 * when no handle, hazard slot or section can reach that version (reclaim/section.h).
 * Pairs
 *   The variable publishes a root together with the new blocks below it: P1 of version.h. Blocks
 *   come back by P2 and P3 of lineage.h, and by P1 of block_pile.h.
 * Progress: the only loops are over pointers and indices. No step of an update depends on the size
 * of the table, except by the number of levels.
 * Memory: see weir/flow/table.h.
 * Source: path copying (Driscoll, Sarnak, Sleator, Tarjan, STOC 1986).
 * Checked: stress/model/check_table.c (pages of 2 rows, nodes of 2 pointers),
 * stress/scenario_table.c, tests/test_table.c.
 */
#ifndef WEIRI_TABLE_PAGES_H
#define WEIRI_TABLE_PAGES_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "reclaim/block_pile.h"
#include "reclaim/lineage.h"
#include "tensor/indices.h"

#ifdef WEIRI_UNDER_MODEL
enum { WEIRI_PAGE_BYTES = 16, WEIRI_NODE_BITS = 1, WEIRI_ROOT_PARTS = 2 };
#else
enum { WEIRI_PAGE_BYTES = 512, WEIRI_NODE_BITS = 5, WEIRI_ROOT_PARTS = 256 };
#endif
enum { WEIRI_NODE_PARTS = 1 << WEIRI_NODE_BITS, WEIRI_MOST_LEVELS = 64 / WEIRI_NODE_BITS };

struct weiri_node {
	struct weiri_part parts[WEIRI_NODE_PARTS];
};

/* The sizes of blocks. */
enum weiri_block_kind { WEIRI_BLOCK_PAGE, WEIRI_BLOCK_NODE, WEIRI_BLOCK_KINDS };

enum { WEIRI_NO_SHIFT = 64 };

/* What all versions of a table share. */
struct weiri_geometry {
	struct weiri_lineage lineage;
	weiri_block_stack free_blocks[WEIRI_BLOCK_KINDS];
	/* Constant. */
	struct weiri_rows rows; /* the name of the rows is stored behind this struct */
	size_t page_rows;       /* rows of a page */
	unsigned page_shift;    /* its logarithm, or WEIRI_NO_SHIFT if it is no power of 2 */
	unsigned levels;        /* of nodes, between the root and the pages */
	size_t root_parts;      /* pointers of a root */
	uint64_t pages;
	size_t block_bytes[WEIRI_BLOCK_KINDS];
	size_t size; /* bytes of this allocation */
	weir_allocator allocator;
	/* zeros[0] is the page, zeros[i] a node i levels above. NULL: not made. */
	void *zeros[WEIRI_MOST_LEVELS + 1];
	struct weiri_root *newest; /* set by the destroy of the table */
};

struct weiri_root {
	struct weiri_generation generation;
	struct weiri_geometry *geometry; /* a reference of the lineage, until the generation ends */
	weir_allocator allocator;        /* a copy: the root may be freed after the geometry */
	size_t size;                     /* bytes of this allocation */
	size_t own_bytes;                /* bytes allocated for this version: they count in the budget */
	bool sealed;                     /* T3 */
	struct weiri_part parts[];
};

/* Creates a geometry with one reference, and copies rows->name. Returns NULL if there is no memory. */
struct weiri_geometry *weiri_geometry_create(const struct weiri_rows *rows, const weir_allocator *allocator);
/* Gives a reference back. The last one frees all versions, if `newest` was set. */
void weiri_geometry_release(struct weiri_geometry *geometry);

/*
 * Creates the first version: a copy of the rows at `initial`, or zeros if that is NULL. Returns
 * NULL if there is no memory.
 */
struct weiri_root *weiri_root_create(struct weiri_geometry *geometry, const char *initial);
/*
 * No thread can reach the root any more. If it was not published, frees it and what was made for it.
 */
void weiri_root_end(struct weiri_root *root, bool published);

/* A root under construction. */
struct weiri_draft {
	struct weiri_root *root;
	struct weiri_blocks blocks[WEIRI_BLOCK_KINDS]; /* free ones, of this thread */
};

/* Takes what free blocks there are. Must be ended by weiri_draft_fini(). */
void weiri_draft_init(struct weiri_draft *draft, struct weiri_geometry *geometry);
/*
 * Begins a root that shares everything with `from`. The caller changes it and then publishes it.
 * Returns false if there is no memory.
 */
bool weiri_draft_from(struct weiri_draft *draft, const struct weiri_root *from);
/* Returns a row of the root for writing; NULL if there is no memory. */
char *weiri_draft_row(struct weiri_draft *draft, size_t index);
/* `newest` is a version that the caller holds, or is built on. Sweeps if that is due. */
void weiri_draft_sweep(struct weiri_draft *draft, struct weiri_root *newest);
/* Puts free blocks back. */
void weiri_draft_fini(struct weiri_draft *draft, struct weiri_geometry *geometry);

/* Where a row is. */
struct weiri_place {
	uint64_t page;
	size_t row; /* of the page */
};

static inline struct weiri_place weiri_place_of(const struct weiri_geometry *geometry, size_t index)
{
	unsigned shift = geometry->page_shift;

	/* A division takes 10 to 20 cycles before the first load. */
	if (WEIRI_LIKELY(shift != WEIRI_NO_SHIFT))
		return (struct weiri_place){index >> shift, index & (((size_t)1 << shift) - 1)};
	return (struct weiri_place){index / geometry->page_rows, index % geometry->page_rows};
}

/* Returns the pointer that leads to a page: in the root, or in a node of the lowest level. */
static inline const struct weiri_part *weiri_root_part(const struct weiri_root *root, uint64_t page)
{
	unsigned shift = root->geometry->levels * WEIRI_NODE_BITS;
	const struct weiri_part *part = &root->parts[page >> shift];

	while (shift > 0) {
		shift -= WEIRI_NODE_BITS;
		part = &((const struct weiri_node *)part->memory)->parts[(page >> shift) % WEIRI_NODE_PARTS];
	}
	return part;
}

static inline const char *weiri_root_row(const struct weiri_root *root, size_t index)
{
	const struct weiri_geometry *geometry = root->geometry;
	struct weiri_place place = weiri_place_of(geometry, index);
	const char *page = weiri_root_part(root, place.page)->memory;

	return page + place.row * geometry->rows.bytes;
}

/*
 * Returns a row, and sets *count to the number of rows, from this one on, that lie one behind the
 * other. Begins to load what follows.
 */
const char *weiri_root_rows(const struct weiri_root *root, size_t index, size_t *count);

#endif
