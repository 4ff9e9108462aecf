/*
 * numbered.h - all things of one kind that there are in the process, by number: queues for a dump, variables for a report.
 *
 * Each gets the next number when it is entered, from 1. Entering and leaving touch a few neighbours in the list and no lock; who looks goes from
 * number to number, or asks for one. The list and its promises are those of hash_list.h; marks come from the default allocator and stay.
 */
#ifndef WEIRI_SYNC_NUMBERED_H
#define WEIRI_SYNC_NUMBERED_H

#include "sync/hash_list.h"

/* Embedded in the thing. */
struct weiri_numbered {
	struct weiri_hash_node node;
	uint64_t number; /* constant once entered */
};

struct weiri_numbering {
	struct weiri_hash_list list;
	_Atomic(uint64_t) given;
};

/* A numbering begins as this; scripts/gdb/weir.py reads the one of queues. */
#define WEIRI_NUMBERING \
	{ \
		.list = {.allocator = WEIRI_NUMBERING_MARKS, .compare = weiri_numbered_compare } \
	}
#define WEIRI_NUMBERING_MARKS \
	{ \
		weiri_numbered_allocate_mark, weiri_numbered_release_mark, NULL \
	}
void *weiri_numbered_allocate_mark(void *context, size_t size, size_t alignment);
void weiri_numbered_release_mark(void *context, void *memory, size_t size, size_t alignment);
int weiri_numbered_compare(const void *number, struct weiri_hash_node *node);

/* Numbers a thing of so many bytes and enters it; ended() is called once, after it left and no section can see it any more. */
void weiri_numbered_enter(struct weiri_scope *scope, struct weiri_numbering *all, struct weiri_numbered *thing,
                          size_t bytes, void (*ended)(struct weiri_retired *retired));
/* Once. The caller's part of it is over; the thing stays what it is until ended(). */
void weiri_numbered_leave(struct weiri_scope *scope, struct weiri_numbering *all, struct weiri_numbered *thing);

/* The one of this number, or the next one in the list's order (0: the first), or NULL. It may leave at any time; it is good until the scope ends. */
struct weiri_numbered *weiri_numbered_find(struct weiri_scope *scope, struct weiri_numbering *all, uint64_t number);
struct weiri_numbered *weiri_numbered_after(struct weiri_scope *scope, struct weiri_numbering *all, uint64_t number);

static inline struct weiri_numbered *weiri_numbered_of_retired(struct weiri_retired *retired)
{
	struct weiri_hash_node *node = WEIRI_CONTAINER_OF(retired, struct weiri_hash_node, retired);

	return WEIRI_CONTAINER_OF(node, struct weiri_numbered, node);
}

#endif
