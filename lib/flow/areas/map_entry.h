/*
 * map_entry.h - what a map staging area keeps for a key: a part for each component that is stored.
 *
 * An entry is immutable. A put or a get of some components replaces the entry by another one with
 * the same parts, except for those that were put or taken. Parts are reference-counted, so that a
 * get's tensors can be released while the old entry may still be read.
 *
 * Invariants
 *   M1  the published version holds one reference to each of its parts; a thread that publishes a
 *       version without a part takes over that reference
 *   M2  a part's references never rise from 0: a peek that finds 0 has read a state that was
 *       replaced since
 * Pair P2 release(references) -> the end of a part: what its users did with its tensor.
 */
#ifndef WEIRI_QUEUE_MAP_ENTRY_H
#define WEIRI_QUEUE_MAP_ENTRY_H

#include <weir/flow/tensor_queue.h>

#include "reclaim/scope.h"

/* One component of one key. */
struct weiri_map_part {
	struct weiri_retired retired; /* first */
	_Atomic(size_t) references;
	weir_tensor *tensor; /* NULL: released before the part is reclaimed */
	size_t bytes;
	struct weiri_map_part *next; /* of the thread that took it out */
	weir_allocator allocator;
};

struct weiri_map_entry {
	struct weiri_retired retired; /* first */
	int64_t key;
	uint64_t have; /* a bit for each component that is stored */
	size_t bytes, count;
	weir_allocator allocator;
	struct weiri_map_part *parts[]; /* count of them; NULL: not stored */
};

/* Some components of a key, and parts for them. */
struct weiri_map_choice {
	uint64_t mask;        /* a bit for each */
	size_t bytes;         /* of the parts of a put */
	size_t count, filled; /* filled: of `parts` */
	uint8_t places[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct weiri_map_part *parts[WEIR_TENSOR_QUEUE_MAX_COMPONENTS]; /* a reference each */
};

static inline uint64_t weiri_map_bit(size_t place)
{
	return UINT64_C(1) << place;
}

/* Adds a part that refers to the tensor. 0: no memory. */
int weiri_map_choice_add(struct weiri_map_choice *choice, weir_tensor *tensor, const weir_allocator *allocator);
/*
 * Takes references to the parts of an entry that the choice names, which the entry has: to all of
 * them, or returns 0 (M2). In a section.
 */
int weiri_map_choice_retain(struct weiri_scope *scope, struct weiri_map_choice *choice,
                            const struct weiri_map_entry *entry);
/* The same parts, but takes over the entry's references: M1. */
void weiri_map_choice_take(struct weiri_map_choice *choice, const struct weiri_map_entry *entry);
/*
 * Releases the parts. Outside sections, here and below: the end of a tensor may run its owner's
 * code.
 */
void weiri_map_choice_let_go(struct weiri_record *record, struct weiri_map_choice *choice);
/* The same, in exchange for references to their tensors. */
void weiri_map_choice_open(struct weiri_record *record, struct weiri_map_choice *choice, weir_tensor *tensors[]);
/* The bytes of the chosen parts in an entry that has them. */
size_t weiri_map_choice_bytes(const struct weiri_map_choice *choice, const struct weiri_map_entry *entry);

/* Releases one reference to each part of a chain. */
void weiri_map_parts_release(struct weiri_record *record, struct weiri_map_part *first);

/* The entry with the put parts added; `there` is the key's entry, or NULL. NULL: no memory. */
struct weiri_map_entry *weiri_map_entry_with(const struct weiri_map_choice *put, int64_t key, size_t count,
                                             const struct weiri_map_entry *there, const weir_allocator *allocator);
/* The entry without the taken parts. NULL: no memory. */
struct weiri_map_entry *weiri_map_entry_without(const struct weiri_map_choice *get,
                                                const struct weiri_map_entry *there);
/* Frees an entry that was never published; it does not own its parts. Accepts NULL. */
void weiri_map_entry_discard(struct weiri_map_entry *entry);
/* Puts its parts before *first. */
void weiri_map_entry_chain(const struct weiri_map_entry *entry, struct weiri_map_part **first);
/* Frees an entry with its parts; no other thread can see it any longer. */
void weiri_map_entry_end(struct weiri_map_entry *entry);

int weiri_map_compare_keys(const void *key, const void *item);

#endif
