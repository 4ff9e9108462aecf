/*
 * keyed_join_part.c - see keyed_join_part.h.
 */
#include "areas/keyed_join_part.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "tensor/object.h"

static void part_reclaim(struct weiri_retired *retired)
{
	struct weiri_keyed_join_part *part = WEIRI_CONTAINER_OF(retired, struct weiri_keyed_join_part, retired);
	weir_allocator allocator = part->allocator;

	WEIR_ASSERT1(B3, part->tensor != NULL);
	weir_tensor_release(part->tensor);
	weiri_release(&allocator, part, sizeof(*part) + part->key_size, alignof(struct weiri_keyed_join_part));
}

struct weiri_keyed_join_part *weiri_keyed_join_part_create(const weir_allocator *allocator, size_t component,
                                                           const weir_bytes *key, weir_tensor *values, int64_t row)
{
	size_t size = sizeof(struct weiri_keyed_join_part) + key->size;
	struct weiri_keyed_join_part *part = weiri_allocate(allocator, size, alignof(struct weiri_keyed_join_part));

	if (part == NULL)
		return NULL;
	part->allocator = *allocator;
	part->component = component;
	part->key_size = key->size;
	if (key->size != 0)
		memcpy(part->key, key->data, key->size);
	if (weir_tensor_row(values, row, &part->tensor) != WEIR_OK) {
		weiri_release(allocator, part, size, alignof(struct weiri_keyed_join_part));
		return NULL;
	}
	weiri_retired_init(&part->retired, size + weiri_tensor_footprint(part->tensor), part_reclaim);
	return part;
}

void weiri_keyed_join_parts_free(struct weiri_keyed_join_part *first)
{
	while (first != NULL) {
		struct weiri_keyed_join_part *next = first->next;

		part_reclaim(&first->retired);
		first = next;
	}
}

void weiri_keyed_join_tuple_end(struct weiri_scope *scope, struct weiri_keyed_join_part *tuple)
{
	while (tuple != NULL) {
		struct weiri_keyed_join_part *before = tuple->before;

		if (scope != NULL)
			weiri_scope_retire(scope, &tuple->retired);
		else
			part_reclaim(&tuple->retired);
		tuple = before;
	}
}

weir_tensor *weiri_keyed_join_tuple_tensor(const struct weiri_keyed_join_part *tuple, size_t component)
{
	while (tuple->component != component)
		tuple = tuple->before;
	return tuple->tensor;
}

int weiri_keyed_join_compare_keys(const void *key, const void *item)
{
	const struct weiri_keyed_join_part *a = key, *b = item;

	if (a->key_size != b->key_size)
		return a->key_size < b->key_size ? -1 : 1;
	return a->key_size != 0 ? memcmp(a->key, b->key, a->key_size) : 0;
}

int weiri_keyed_join_compare_order(const void *key, const void *item)
{
	const struct weiri_keyed_join_part *a = key, *b = item;

	if (a->index != b->index)
		return a->index < b->index ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

uint64_t weiri_keyed_join_seed(const struct weiri_keyed_join_part *part)
{
	uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */

	for (size_t i = 0; i < part->key_size; i++)
		hash = (hash ^ (unsigned char)part->key[i]) * UINT64_C(0x100000001B3);
	return hash;
}
