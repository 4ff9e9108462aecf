/*
 * node_map.h - numbers nodes in the order in which they are added. Only one thread may use a map at
 * a time.
 */
#ifndef WEIRI_NODE_MAP_H
#define WEIRI_NODE_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/flow/graph.h>

struct weiri_node_map {
	weir_allocator allocator;
	weir_node **nodes; /* by number */
	uint32_t *slots;   /* open addressing: number + 1, or 0 */
	size_t count;
	size_t slot_count; /* a power of two, or 0; nodes has half as many places */
};

void weiri_node_map_init(struct weiri_node_map *map, const weir_allocator *allocator);
void weiri_node_map_fini(struct weiri_node_map *map);
/*
 * Adds the node unless the map has it already. Returns true; or false if there is no memory, and
 * then the map has not changed.
 */
bool weiri_node_map_add(struct weiri_node_map *map, weir_node *node);
/* Sets *number and returns true, or returns false if the map lacks the node. */
bool weiri_node_map_find(const struct weiri_node_map *map, const weir_node *node, uint32_t *number);

#endif
