/*
 * map_entry.h - what a map staging area keeps for a key: a part for each component that is stored.
 *
 * An entry is immutable. A put or a get of some components replaces the entry by another one, which
 * differs only in the parts that were put or taken. Parts are reference-counted, so that the
 * tensors of a get can be released while other threads may still read the old entry.
 *
 * Invariants
 *   M1  the published version holds one reference to each of its parts; a thread that publishes a
 *       version without a part takes over that reference
 *   M2  a part's references never rise from 0. So a peek that finds 0 has read a state that has
 *       been replaced since
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
	weir_tensor *tensor; /* NULL once it is released, which may be before the part is reclaimed */
	size_t bytes;
	struct weiri_map_part *next; /* for the thread that took the part out */
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
	uint64_t mask;        /* a bit for each component */
	size_t bytes;         /* of the parts of a put */
	size_t count, filled; /* of components; of elements of `parts` that are set */
	uint8_t places[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	struct weiri_map_part *parts[WEIR_TENSOR_QUEUE_MAX_COMPONENTS]; /* one reference to each */
};

static inline uint64_t weiri_map_bit(size_t place)
{
	return UINT64_C(1) << place;
}

/* Adds a part with a reference to the tensor. Returns false if there is no memory. */
bool weiri_map_choice_add(struct weiri_map_choice *choice, weir_tensor *tensor, const weir_allocator *allocator);
/*
 * Takes references to the chosen parts of an entry that has them all. Returns true if it took them
 * all; 0, with none taken, if the entry has been replaced (M2). Called in a section.
 */
bool weiri_map_choice_retain(struct weiri_scope *scope, struct weiri_map_choice *choice,
                             const struct weiri_map_entry *entry);
/* As weiri_map_choice_retain(), but takes over the entry's references (M1), so it cannot fail. */
void weiri_map_choice_take(struct weiri_map_choice *choice, const struct weiri_map_entry *entry);
/*
 * Releases the chosen parts. This call and those below that release parts must be made outside
 * sections, because the release of a tensor may run code of its owner.
 */
void weiri_map_choice_let_go(struct weiri_record *record, struct weiri_map_choice *choice);
/* Stores references to the tensors of the chosen parts in tensors[], and releases the parts. */
void weiri_map_choice_open(struct weiri_record *record, struct weiri_map_choice *choice, weir_tensor *tensors[]);
/* Returns the bytes of the chosen parts in an entry that has them all. */
size_t weiri_map_choice_bytes(const struct weiri_map_choice *choice, const struct weiri_map_entry *entry);

/* Releases one reference to each part of a chain. */
void weiri_map_parts_release(struct weiri_record *record, struct weiri_map_part *first);

/*
 * Creates the entry with the parts of a put added. `there` is the present entry of the key, or
 * NULL. Returns NULL if there is no memory.
 */
struct weiri_map_entry *weiri_map_entry_with(const struct weiri_map_choice *put, int64_t key, size_t count,
                                             const struct weiri_map_entry *there, const weir_allocator *allocator);
/* Creates the entry without the parts that are taken. Returns NULL if there is no memory. */
struct weiri_map_entry *weiri_map_entry_without(const struct weiri_map_choice *get,
                                                const struct weiri_map_entry *there);
/* Frees an entry that was never published; it does not own its parts. Accepts NULL. */
void weiri_map_entry_discard(struct weiri_map_entry *entry);
/* Links the entry's parts in front of the chain *first. */
void weiri_map_entry_chain(const struct weiri_map_entry *entry, struct weiri_map_part **first);
/* Frees an entry with its parts. No other thread can see the entry any longer. */
void weiri_map_entry_end(struct weiri_map_entry *entry);

int weiri_map_compare_keys(const void *key, const void *item);

#endif
