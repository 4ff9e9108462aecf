/*
 * chunks.c - making, branching and destroying trees of chunks; see chunks.h.
 */
#include "table/chunks.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"

/* -- references -------------------------------------------------------------------------------- */

static void take(_Atomic(size_t) *references)
{
	size_t before = weiri_fetch_add_relaxed(references, 1u); /* [relaxed] T3 */

	WEIR_ASSERT1(T3, before != 0);
	(void)before;
}

/* Gives a reference back. Returns true if it was the last. */
static bool give(_Atomic(size_t) *references)
{
	/* [P1 acq_rel] pairs with itself. */
	size_t before = weiri_fetch_sub_acq_rel(references, 1u);

	WEIR_ASSERT1(T2, before != 0);
	return before == 1;
}

/* -- geometry ---------------------------------------------------------------------------------- */

struct weiri_geometry *weiri_geometry_create(const struct weiri_rows *rows, const weir_allocator *allocator)
{
	size_t name_size = strlen(rows->name) + 1, size = sizeof(struct weiri_geometry) + name_size;
	const size_t room = WEIRI_CHUNK_BYTES - sizeof(struct weiri_chunk);
	size_t chunk_rows = rows->bytes < room ? room / rows->bytes : 1;
	uint64_t chunks = ((uint64_t)rows->count - 1) / chunk_rows + 1;
	uint64_t nodes = (chunks - 1) / WEIRI_NODE_CHUNKS + 1;
	struct weiri_geometry *geometry;

	/*
	 * The last chunk and the last node may extend past the rows. So the number of nodes is computed
	 * in 64 bits, and the size of a root is checked here.
	 */
	if (nodes > (SIZE_MAX - sizeof(struct weiri_root)) / sizeof(struct weiri_node *))
		return NULL;
	geometry = weiri_allocate(allocator, size, alignof(struct weiri_geometry));
	if (geometry == NULL)
		return NULL;
	*geometry = (struct weiri_geometry){.rows = *rows,
	                                    .chunk_rows = chunk_rows,
	                                    .chunk_bytes = chunk_rows * rows->bytes,
	                                    .nodes = (size_t)nodes,
	                                    .size = size,
	                                    .allocator = *allocator};
	weiri_store_relaxed(&geometry->references, 1u); /* [relaxed] not shared yet */
	geometry->rows.name = memcpy(geometry + 1, rows->name, name_size);
	return geometry;
}

void weiri_geometry_release(struct weiri_geometry *geometry)
{
	if (give(&geometry->references)) {
		weir_allocator allocator = geometry->allocator;

		weiri_release(&allocator, geometry, geometry->size, alignof(struct weiri_geometry));
	}
}

/* -- chunks ------------------------------------------------------------------------------------ */

static struct weiri_chunk *chunk_create(const struct weiri_geometry *geometry)
{
	struct weiri_chunk *chunk =
		weiri_allocate(&geometry->allocator, sizeof(*chunk) + geometry->chunk_bytes, alignof(struct weiri_chunk));

	if (chunk != NULL)
		weiri_store_relaxed(&chunk->references, 1u); /* [relaxed] not shared yet */
	return chunk;
}

static void chunk_release(const struct weiri_geometry *geometry, struct weiri_chunk *chunk)
{
	if (chunk != NULL && give(&chunk->references))
		weiri_release(&geometry->allocator, chunk, sizeof(*chunk) + geometry->chunk_bytes, alignof(struct weiri_chunk));
}

static struct weiri_chunk *chunk_copy(const struct weiri_geometry *geometry, const struct weiri_chunk *from)
{
	struct weiri_chunk *chunk = chunk_create(geometry);

	if (chunk != NULL)
		memcpy(chunk->bytes, from->bytes, geometry->chunk_bytes);
	return chunk;
}

/* -- nodes ------------------------------------------------------------------------------------- */

/* Creates a node without chunks. */
static struct weiri_node *node_create(const struct weiri_geometry *geometry)
{
	struct weiri_node *node = weiri_allocate_zeroed(&geometry->allocator, sizeof(*node), alignof(struct weiri_node));

	if (node != NULL)
		weiri_store_relaxed(&node->references, 1u); /* [relaxed] not shared yet */
	return node;
}

static void node_release(const struct weiri_geometry *geometry, struct weiri_node *node)
{
	if (node == NULL || !give(&node->references))
		return;
	for (size_t i = 0; i < WEIRI_NODE_CHUNKS; i++)
		chunk_release(geometry, node->chunks[i]);
	weiri_release(&geometry->allocator, node, sizeof(*node), alignof(struct weiri_node));
}

static struct weiri_node *node_copy(const struct weiri_geometry *geometry, const struct weiri_node *from)
{
	struct weiri_node *node = node_create(geometry);

	for (size_t i = 0; node != NULL && i < WEIRI_NODE_CHUNKS; i++) {
		node->chunks[i] = from->chunks[i];
		if (node->chunks[i] != NULL)
			take(&node->chunks[i]->references);
	}
	return node;
}

/* -- roots ------------------------------------------------------------------------------------- */

/* Creates a root without nodes. */
static struct weiri_root *root_create(struct weiri_geometry *geometry)
{
	size_t size = weiri_root_size(geometry);
	struct weiri_root *root = weiri_allocate_zeroed(&geometry->allocator, size, alignof(struct weiri_root));

	if (root == NULL)
		return NULL;
	take(&geometry->references);
	root->geometry = geometry;
	root->own_bytes = size;
	return root;
}

void weiri_root_destroy(struct weiri_root *root)
{
	struct weiri_geometry *geometry = root->geometry;

	for (size_t i = 0; i < geometry->nodes; i++)
		node_release(geometry, root->nodes[i]);
	weiri_release(&geometry->allocator, root, weiri_root_size(geometry), alignof(struct weiri_root));
	weiri_geometry_release(geometry);
}

/*
 * Puts one node in all places, with one chunk in all of its places. Returns false without memory.
 */
static bool fill_with_zeros(struct weiri_root *root)
{
	const struct weiri_geometry *geometry = root->geometry;
	struct weiri_node *node = node_create(geometry);

	if (node == NULL)
		return false;
	root->nodes[0] = node;
	node->chunks[0] = chunk_create(geometry);
	if (node->chunks[0] == NULL)
		return false;
	memset(node->chunks[0]->bytes, 0, geometry->chunk_bytes);
	for (size_t i = 1; i < WEIRI_NODE_CHUNKS; i++) {
		node->chunks[i] = node->chunks[0];
		take(&node->chunks[0]->references);
	}
	for (size_t i = 1; i < geometry->nodes; i++) {
		root->nodes[i] = node;
		take(&node->references);
	}
	return true;
}

static bool fill_from(struct weiri_root *root, const char *initial)
{
	const struct weiri_geometry *geometry = root->geometry;
	size_t left = (size_t)geometry->rows.count * geometry->rows.bytes;

	for (size_t i = 0; left > 0; i++) {
		struct weiri_node **node = &root->nodes[i / WEIRI_NODE_CHUNKS];
		size_t bytes = left < geometry->chunk_bytes ? left : geometry->chunk_bytes;
		struct weiri_chunk *chunk;

		if (*node == NULL)
			*node = node_create(geometry);
		chunk = *node != NULL ? chunk_create(geometry) : NULL;
		if (chunk == NULL)
			return false;
		(*node)->chunks[i % WEIRI_NODE_CHUNKS] = chunk;
		memcpy(chunk->bytes, initial, bytes);
		/* The rest is set too, because a copy of a chunk reads all of its bytes. */
		memset(chunk->bytes + bytes, 0, geometry->chunk_bytes - bytes);
		initial += bytes;
		left -= bytes;
	}
	return true;
}

struct weiri_root *weiri_root_create(struct weiri_geometry *geometry, const char *initial)
{
	struct weiri_root *root = root_create(geometry);

	/*
	 * own_bytes stays the size of the root alone: the chunks of the first version are counted in
	 * the versions that replace them.
	 */
	if (root != NULL && !(initial != NULL ? fill_from(root, initial) : fill_with_zeros(root))) {
		weiri_root_destroy(root);
		return NULL;
	}
	return root;
}

struct weiri_root *weiri_root_branch(const struct weiri_root *from)
{
	struct weiri_geometry *geometry = from->geometry;
	struct weiri_root *root = root_create(geometry);

	for (size_t i = 0; root != NULL && i < geometry->nodes; i++) {
		root->nodes[i] = from->nodes[i];
		take(&root->nodes[i]->references);
	}
	return root;
}

/* T1: a branch changes only a node and a chunk to which no other root leads. */
static WEIRI_UNSEEN void assert_own(const struct weiri_node *node, const struct weiri_chunk *chunk)
{
	WEIR_ASSERT2(T1, weiri_peek(&node->references) == 1);
	WEIR_ASSERT2(T1, weiri_peek(&chunk->references) == 1);
}

/* Returns the branch's own copy of the node, made if necessary; NULL if there is no memory. */
static struct weiri_node *own_node(struct weiri_root *root, const struct weiri_root *from, size_t index)
{
	struct weiri_node *node = root->nodes[index];

	if (node != from->nodes[index])
		return node;
	node = node_copy(root->geometry, node);
	if (node == NULL)
		return NULL;
	node_release(root->geometry, root->nodes[index]);
	root->nodes[index] = node;
	root->own_bytes += sizeof(*node);
	return node;
}

char *weiri_root_row_to_write(struct weiri_root *root, const struct weiri_root *from, size_t index)
{
	const struct weiri_geometry *geometry = root->geometry;
	size_t number = index / geometry->chunk_rows, place = number % WEIRI_NODE_CHUNKS;
	struct weiri_node *node = own_node(root, from, number / WEIRI_NODE_CHUNKS);
	struct weiri_chunk *chunk;

	if (node == NULL)
		return NULL;
	chunk = node->chunks[place];
	if (chunk == from->nodes[number / WEIRI_NODE_CHUNKS]->chunks[place]) {
		struct weiri_chunk *copy = chunk_copy(geometry, chunk);

		if (copy == NULL)
			return NULL;
		chunk_release(geometry, chunk);
		node->chunks[place] = copy;
		root->own_bytes += sizeof(*copy) + geometry->chunk_bytes;
		chunk = copy;
	}
	WEIR_ASSERT_LOOK(assert_own(node, chunk));
	return chunk->bytes + index % geometry->chunk_rows * geometry->rows.bytes;
}
