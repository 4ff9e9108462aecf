/*
 * node_map.c - open addressing with linear probes, at most half full.
 */
#include "graph/node_map.h"

#include <string.h>

#include "base/memory.h"

enum { FIRST_SLOTS = 64 };

void weiri_node_map_init(struct weiri_node_map *map, const weir_allocator *allocator)
{
	(void)memset(map, 0, sizeof(*map));
	map->allocator = *allocator;
}

void weiri_node_map_fini(struct weiri_node_map *map)
{
	weiri_release(&map->allocator, map->nodes, map->slot_count / 2 * sizeof(weir_node *), _Alignof(weir_node *));
	weiri_release(&map->allocator, map->slots, map->slot_count * sizeof(uint32_t), _Alignof(uint32_t));
}

/* Fibonacci hashing of the address. */
static size_t hash_of(const weir_node *node)
{
	return (size_t)((uint64_t)(uintptr_t)node * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static uint32_t *slot_for(const struct weiri_node_map *map, const weir_node *node)
{
	size_t mask = map->slot_count - 1;
	size_t i = hash_of(node) & mask;

	while (map->slots[i] != 0 && map->nodes[map->slots[i] - 1] != node)
		i = (i + 1) & mask;
	return &map->slots[i];
}

static bool grow(struct weiri_node_map *map)
{
	struct weiri_node_map larger = *map;

	larger.slot_count = map->slot_count != 0 ? 2 * map->slot_count : FIRST_SLOTS;
	larger.slots = weiri_allocate_zeroed(&map->allocator, larger.slot_count * sizeof(uint32_t), _Alignof(uint32_t));
	larger.nodes = weiri_allocate(&map->allocator, larger.slot_count / 2 * sizeof(weir_node *), _Alignof(weir_node *));
	if (larger.slots == NULL || larger.nodes == NULL) {
		weiri_node_map_fini(&larger);
		return false;
	}
	for (size_t i = 0; i < map->count; i++) {
		larger.nodes[i] = map->nodes[i];
		*slot_for(&larger, map->nodes[i]) = (uint32_t)i + 1;
	}
	weiri_node_map_fini(map);
	*map = larger;
	return true;
}

bool weiri_node_map_add(struct weiri_node_map *map, weir_node *node)
{
	uint32_t *slot;

	if (2 * (map->count + 1) > map->slot_count && !grow(map))
		return false;
	slot = slot_for(map, node);
	if (*slot == 0) {
		map->nodes[map->count++] = node;
		*slot = (uint32_t)map->count;
	}
	return true;
}

bool weiri_node_map_find(const struct weiri_node_map *map, const weir_node *node, uint32_t *number)
{
	uint32_t found = map->slot_count != 0 ? *slot_for(map, node) : 0;

	if (found == 0)
		return false;
	*number = found - 1;
	return true;
}
