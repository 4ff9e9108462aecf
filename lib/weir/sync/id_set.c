/*
 * id_set.c - see id_set.h.
 *
 * Linearization, progress, memory: those of hash_list.h. An object gets its number before it is in
 *   the list, so numbers may appear out of order.
 * Fork: the child has the parent's objects.
 * Checked: tests/test_dump.c, test_stalls.c, stress/model/check_registry.c, weir-stress
 *   "queue_dump".
 */
#include "sync/id_set.h"

#include "base/memory.h"

void *weiri_id_set_allocate_mark(void *context, size_t size, size_t alignment)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);

	(void)context;
	return weiri_allocate(&allocator, size, alignment);
}

void weiri_id_set_release_mark(void *context, void *memory, size_t size, size_t alignment)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);

	(void)context;
	weiri_release(&allocator, memory, size, alignment);
}

/*
 * Puts neighbouring numbers into distant buckets, so that each bucket holds few. A multiplication
 * by 2^64 / phi does that best in its high bits.
 */
static uint64_t hash_of(uint64_t number)
{
	uint64_t hash = number * UINT64_C(0x9E3779B97F4A7C15);

	return hash ^ hash >> 32;
}

static struct weiri_id_entry *id_entry_of(struct weiri_hash_node *node)
{
	return node != NULL ? WEIRI_CONTAINER_OF(node, struct weiri_id_entry, node) : NULL;
}

int weiri_id_set_compare(const void *number, struct weiri_hash_node *node)
{
	uint64_t asked = *(const uint64_t *)number, there = id_entry_of(node)->number;

	return (asked > there) - (asked < there);
}

void weiri_id_set_enter(struct weiri_scope *scope, struct weiri_id_set *all, struct weiri_id_entry *thing, size_t bytes,
                        void (*ended)(struct weiri_retired *retired))
{
	/* [relaxed] each object gets a number of its own; the list carries the rest. */
	thing->number = weiri_fetch_add_relaxed(&all->given, UINT64_C(1)) + 1;
	weiri_hash_node_init(&thing->node, hash_of(thing->number), bytes, ended);
	(void)weiri_hash_list_insert(scope, &all->list, &thing->node, hash_of(thing->number), &thing->number);
}

void weiri_id_set_leave(struct weiri_scope *scope, struct weiri_id_set *all, struct weiri_id_entry *thing)
{
	(void)weiri_hash_list_remove(scope, &all->list, &thing->node, hash_of(thing->number), &thing->number);
}

struct weiri_id_entry *weiri_id_set_find(struct weiri_scope *scope, struct weiri_id_set *all, uint64_t number)
{
	return id_entry_of(weiri_hash_list_find(scope, &all->list, hash_of(number), &number));
}

struct weiri_id_entry *weiri_id_set_after(struct weiri_scope *scope, struct weiri_id_set *all, uint64_t number)
{
	return id_entry_of(weiri_hash_list_after(scope, &all->list, hash_of(number), number != 0 ? &number : NULL));
}
