/*
 * chunks.h - trees of chunks that versions of a table share.
 *
 * Structure. A version is a root, which points to nodes, which point to chunks. A chunk is 64 KiB
 * of whole rows, or one larger row. The thread that makes the next version copies the root. It then
 * copies the node and the chunk on the path to each row that it changes, and each of these only
 * once.
 *
 *     root (one for each version) -> nodes of 128 chunks -> chunks of 64 KiB
 *
 * Why two levels. For a table of 1 GiB a plain array of chunks has 16,384 pointers. An update of
 * one row would copy these 128 KiB and take 16,384 references. With two levels it copies 128 + 128
 * pointers and takes as many references. A third level would save 100 ns of an update that copies
 * 64 KiB anyway, and would cost each read a cache line.
 *
 * Invariants
 *   T1  what a published root can reach is never written again, except the reference counts
 *   T2  the count of a node is the number of pointers to it in roots, that of a chunk the number of
 *       pointers to it in nodes, that of a geometry the number of its roots plus 1 for its table.
 *       Each is freed when its count is 0
 *   T3  a thread that takes a reference to an object can reach the object through a root that it
 *       keeps alive. So the count is not 0 then
 * Why a version lives as long as it is read. The root is the memory of a tensor, which is the value
 * of a variable (table.c). The tensor's release function destroys the root. It runs only when no
 * handle, hazard slot or section can reach that version (reclaim/section.h).
 * Pairs
 *   P1  release(count) -> the last release: the accesses of other threads come before the free
 *   The variable publishes a root together with the new nodes and chunks below it: P1 of version.h.
 *   A reference is taken with a relaxed operation, which T3 allows.
 * Progress: the only loops are over pointers. A branch takes one reference for each node of the
 * root, and 128 for each node that it copies. Destroying a version drops one reference for each
 * node, and descends only into the nodes that it frees.
 * Memory: see weir/flow/table.h; an update of k rows allocates at most k (chunk + node) + root.
 * Source: path copying (Driscoll, Sarnak, Sleator, Tarjan, STOC 1986).
 * Checked: stress/model/check_table.c (chunks of 2 rows, nodes of 2 chunks),
 * stress/scenario_table.c, tests/test_table.c.
 */
#ifndef WEIRI_VAR_CHUNKS_H
#define WEIRI_VAR_CHUNKS_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "tensor/indices.h"

/* What all versions of a table share. */
struct weiri_geometry {
	_Atomic(size_t) references; /* T2 */
	/* Constant. */
	struct weiri_rows rows; /* the name of the rows is stored behind this struct */
	size_t chunk_rows;      /* rows of a chunk */
	size_t chunk_bytes;     /* bytes of the rows of a chunk */
	size_t nodes;           /* nodes of a root */
	size_t size;            /* bytes of this allocation */
	weir_allocator allocator;
};

struct weiri_chunk {
	_Alignas(WEIR_TENSOR_ALIGNMENT) _Atomic(size_t) references; /* T2 */
	_Alignas(WEIR_TENSOR_ALIGNMENT) char bytes[];
};

/* The size of a chunk with its head. Allocators can serve this size without waste. */
#ifdef WEIRI_UNDER_MODEL
enum { WEIRI_CHUNK_BYTES = sizeof(struct weiri_chunk) + 16, WEIRI_NODE_CHUNKS = 2 };
#else
enum { WEIRI_CHUNK_BYTES = 64 << 10, WEIRI_NODE_CHUNKS = 128 };
#endif

struct weiri_node {
	_Atomic(size_t) references; /* T2 */
	struct weiri_chunk *chunks[WEIRI_NODE_CHUNKS];
};

struct weiri_root {
	struct weiri_geometry *geometry; /* one reference */
	size_t own_bytes;                /* bytes allocated for this version: they count in the budget */
	struct weiri_node *nodes[];      /* one reference each */
};

/*
 * Creates a geometry with one reference, and copies rows->name. Returns NULL if there is no memory,
 * or if the size of the table overflows size_t.
 */
struct weiri_geometry *weiri_geometry_create(const struct weiri_rows *rows, const weir_allocator *allocator);
void weiri_geometry_release(struct weiri_geometry *geometry);

/*
 * Creates the first version: a copy of the rows at `initial`, or zeros if that is NULL. Returns
 * NULL if there is no memory.
 */
struct weiri_root *weiri_root_create(struct weiri_geometry *geometry, const char *initial);
/*
 * Creates a root that shares everything with `from`. The caller changes it and then publishes it.
 * Returns NULL if there is no memory.
 */
struct weiri_root *weiri_root_branch(const struct weiri_root *from);
/*
 * Returns a row of `root`, an unpublished branch of `from`, for writing; NULL if there is no
 * memory.
 */
char *weiri_root_row_to_write(struct weiri_root *root, const struct weiri_root *from, size_t index);
/* Called when no thread can reach the root any more. */
void weiri_root_destroy(struct weiri_root *root);

static inline const char *weiri_root_row(const struct weiri_root *root, size_t index)
{
	const struct weiri_geometry *geometry = root->geometry;
	size_t chunk = index / geometry->chunk_rows;
	const struct weiri_node *node = root->nodes[chunk / WEIRI_NODE_CHUNKS];

	return node->chunks[chunk % WEIRI_NODE_CHUNKS]->bytes + index % geometry->chunk_rows * geometry->rows.bytes;
}

static inline size_t weiri_root_size(const struct weiri_geometry *geometry)
{
	return sizeof(struct weiri_root) + geometry->nodes * sizeof(struct weiri_node *);
}

#endif
