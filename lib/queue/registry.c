/*
 * registry.c - see registry.h.
 *
 * Algorithm. A set of entries by the queues' numbers (sync/hash_list.h), one for the process. An entry counts who needs its queue.
 *
 * Invariants
 *   G1  `holds` counts the queue's owner, from add() to remove(), and each walk that looks at the queue. The queue is freed by whoever gives
 *       back the last, once; 0 stays 0 (references.h)
 *   G2  an entry outlives its queue: it is freed when no section can see it, and who holds it is in a section
 * Pairs: those of hash_list.h: the entry, and the queue as its creator left it. P1 let_go, remove -> remove, let_go: what was read of the queue,
 *   or done to it, before it is freed; in weiri_references_give().
 * Linearization: those of the list; that a queue is held, at the CAS that counts it.
 * Progress: add and remove are lock-free, next() and let_go() too; a dump never makes a destroy wait, it takes the freeing over.
 * Memory: an entry of 80 bytes for each queue and what hash_list.h says, from the default allocator; the marks of the list are never given back.
 * Fork: the child has the parent's queues, and their entries. A walk that was under way in another thread holds one of them for ever.
 * Checked: tests/test_dump.c, stress/model/check_registry.c, weir-stress "queue_dump".
 */
#include "queue/registry.h"

#include <stdalign.h>

#include "base/memory.h"
#include "sync/hash_list.h"
#include "sync/references.h"

struct weiri_registered {
	struct weiri_hash_node node;
	_Atomic(size_t) holds;
	/* Constant. */
	uint64_t number;
	weir_queue *queue;
};

static struct weiri_registered *entry_of(struct weiri_hash_node *node)
{
	return node != NULL ? WEIRI_CONTAINER_OF(node, struct weiri_registered, node) : NULL;
}

static void *allocate_mark(void *context, size_t size, size_t alignment)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);

	(void)context;
	return weiri_allocate(&allocator, size, alignment);
}

static void release_mark(void *context, void *memory, size_t size, size_t alignment)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);

	(void)context;
	weiri_release(&allocator, memory, size, alignment);
}

/* Numbers next to each other in far buckets, so that each bucket has few: a multiplication by 2^64 / phi, whose high bits are the good ones. */
static uint64_t hash_of(uint64_t number)
{
	uint64_t hash = number * UINT64_C(0x9E3779B97F4A7C15);

	return hash ^ hash >> 32;
}

static int compare_numbers(const void *key, struct weiri_hash_node *node)
{
	uint64_t number = *(const uint64_t *)key, other = entry_of(node)->number;

	return (number > other) - (number < other);
}

/* Zero but for these is what weiri_hash_list_init() makes. scripts/gdb/weir.py reads it. */
static struct weiri_hash_list all_queues = {
	.allocator = {allocate_mark, release_mark, NULL},
	.compare = compare_numbers,
};
static _Atomic(uint64_t) numbers_given;

static void free_entry(struct weiri_registered *entry)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);

	weiri_release(&allocator, entry, sizeof(*entry), alignof(struct weiri_registered));
}

static void out_of_sight(struct weiri_retired *retired)
{
	free_entry(entry_of(WEIRI_CONTAINER_OF(retired, struct weiri_hash_node, retired)));
}

struct weiri_registered *weiri_registry_add(struct weiri_record *record, weir_queue *queue)
{
	weir_allocator allocator = weiri_allocator_or_default(NULL);
	struct weiri_registered *entry = weiri_allocate(&allocator, sizeof(*entry), alignof(struct weiri_registered));
	struct weiri_scope scope;

	if (entry == NULL)
		return NULL;
	scope = weiri_scope_enter(record);
	/* [relaxed] a number of its own for each; the list carries the rest. */
	entry->number = weiri_fetch_add_relaxed(&numbers_given, UINT64_C(1)) + 1;
	entry->queue = queue;
	weiri_store_relaxed(&entry->holds, (size_t)1); /* [relaxed] not shared yet */
	weiri_hash_node_init(&entry->node, hash_of(entry->number), sizeof(*entry), out_of_sight);
	(void)weiri_hash_list_insert(&scope, &all_queues, &entry->node, hash_of(entry->number), &entry->number);
	weiri_scope_leave(&scope);
	return entry;
}

int weiri_registry_remove(struct weiri_record *record, struct weiri_registered *entry)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	int last;

	(void)weiri_hash_list_remove(&scope, &all_queues, &entry->node, hash_of(entry->number), &entry->number);
	last = weiri_references_give(&entry->holds); /* P1, G2: before the scope retires the entry */
	weiri_scope_leave(&scope);
	return last;
}

struct weiri_registered *weiri_registry_next(struct weiri_scope *scope, struct weiri_registry_place *place)
{
	struct weiri_registered *entry;

	do {
		entry = entry_of(weiri_hash_list_after(scope, &all_queues, hash_of(place->number),
		                                       place->number != 0 ? &place->number : NULL));
		if (entry != NULL)
			place->number = entry->number;
	} while (entry != NULL && !weiri_references_try_take(&entry->holds)); /* G1: that one is being destroyed */
	return entry;
}

weir_queue *weiri_registered_queue(const struct weiri_registered *entry)
{
	return entry->queue;
}

int weiri_registry_let_go(struct weiri_registered *entry)
{
	return weiri_references_give(&entry->holds); /* P1 */
}
