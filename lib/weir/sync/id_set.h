/*
 * id_set.h - the set of all objects of one kind in the process, by id: queues for a dump,
 * variables for a report.
 *
 * The id of an object is a number: the object gets the next one, from 1, when it is entered.
 * Entering and leaving take no lock and touch a few neighbours in a list. A reader goes from number
 * to number, or asks for one number. The list and its guarantees are those of hash_list.h. Its
 * marks come from the default allocator and are never freed.
 */
#ifndef WEIRI_SYNC_ID_SET_H
#define WEIRI_SYNC_ID_SET_H

#include "sync/hash_list.h"

/* Embedded in the object. */
struct weiri_id_entry {
	struct weiri_hash_node node;
	uint64_t number; /* constant once entered */
};

struct weiri_id_set {
	struct weiri_hash_list list;
	_Atomic(uint64_t) given;
};

/* The initial value of a set; scripts/gdb/weir.py reads the set of queues. */
#define WEIRI_ID_SET \
	{ \
		.list = {.allocator = WEIRI_ID_SET_MARKS, .compare = weiri_id_set_compare } \
	}
#define WEIRI_ID_SET_MARKS \
	{ \
		weiri_id_set_allocate_mark, weiri_id_set_release_mark, NULL \
	}
void *weiri_id_set_allocate_mark(void *context, size_t size, size_t alignment);
void weiri_id_set_release_mark(void *context, void *memory, size_t size, size_t alignment);
int weiri_id_set_compare(const void *number, struct weiri_hash_node *node);

/*
 * Numbers an object of `bytes` bytes and enters it. ended() is called once, after the object has
 * left and when no section can see it any more.
 */
void weiri_id_set_enter(struct weiri_scope *scope, struct weiri_id_set *all, struct weiri_id_entry *thing, size_t bytes,
                        void (*ended)(struct weiri_retired *retired));
/*
 * Removes an object; once per object. The caller no longer owns it. Its memory and fields stay
 * until ended().
 */
void weiri_id_set_leave(struct weiri_scope *scope, struct weiri_id_set *all, struct weiri_id_entry *thing);

/*
 * find() returns the object with this number. after() returns the object behind this number in the
 * list's order (0: the first object). Both return NULL if there is none. The object may leave at
 * any time; its memory stays until the scope ends.
 */
struct weiri_id_entry *weiri_id_set_find(struct weiri_scope *scope, struct weiri_id_set *all, uint64_t number);
struct weiri_id_entry *weiri_id_set_after(struct weiri_scope *scope, struct weiri_id_set *all, uint64_t number);

static inline struct weiri_id_entry *weiri_id_entry_of_retired(struct weiri_retired *retired)
{
	struct weiri_hash_node *node = WEIRI_CONTAINER_OF(retired, struct weiri_hash_node, retired);

	return WEIRI_CONTAINER_OF(node, struct weiri_id_entry, node);
}

#endif
