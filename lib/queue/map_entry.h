/*
 * map_entry.h - what a map staging area keeps of a key: a part for each component that is there.
 *
 * An entry is immutable. A put of some components, or a get of some, makes another entry in the place of the old, with the same parts but for
 * those that came or went. Parts are counted, so that what a get takes can be released while the old entry may still be looked at.
 *
 * Invariants
 *   M1  a part in the published version is referenced once for that; who publishes a version without it takes the reference over
 *   M2  a part's references never rise from 0: a peek that meets 0 has read a state that was replaced since
 * Pair P2 release(references) -> the end of a part: what its users did with its tensor.
 */
#ifndef WEIRI_QUEUE_MAP_ENTRY_H
#define WEIRI_QUEUE_MAP_ENTRY_H

#include <weir/tensor_queue.h>

#include "reclaim/scope.h"

/* One component of one key. */
struct weiri_map_part {
	struct weiri_retired retired; /* first */
	_Atomic(size_t) references;
	weir_tensor *tensor; /* NULL: released before the part is reclaimed */
	size_t bytes;
	struct weiri_map_part *next; /* of who took it out */
	weir_allocator allocator;
};

struct weiri_map_entry {
	struct weiri_retired retired; /* first */
	int64_t key;
	uint64_t have; /* a bit for each component that is there */
	size_t bytes, count;
	weir_allocator allocator;
	struct weiri_map_part *parts[]; /* count of them; NULL: not there */
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
/* References to the parts that the choice names of an entry which has them: all, or 0 (M2). In a section. */
int weiri_map_choice_retain(struct weiri_scope *scope, struct weiri_map_choice *choice,
                            const struct weiri_map_entry *entry);
/* The same parts, whose references were the entry's: M1. */
void weiri_map_choice_take(struct weiri_map_choice *choice, const struct weiri_map_entry *entry);
/* Gives up the parts. Outside of sections, here and below: the end of a tensor may run its owner's code. */
void weiri_map_choice_let_go(struct weiri_record *record, struct weiri_map_choice *choice);
/* The same, for references to their tensors. */
void weiri_map_choice_open(struct weiri_record *record, struct weiri_map_choice *choice, weir_tensor *tensors[]);
/* Their bytes in an entry that has them. */
size_t weiri_map_choice_bytes(const struct weiri_map_choice *choice, const struct weiri_map_entry *entry);

/* One reference of a chain of parts, each. */
void weiri_map_parts_release(struct weiri_record *record, struct weiri_map_part *first);

/* With what is put as well; `there` is what the key has, or NULL. NULL: no memory. */
struct weiri_map_entry *weiri_map_entry_with(const struct weiri_map_choice *put, int64_t key, size_t count,
                                             const struct weiri_map_entry *there, const weir_allocator *allocator);
/* Without what is taken. NULL: no memory. */
struct weiri_map_entry *weiri_map_entry_without(const struct weiri_map_choice *get,
                                                const struct weiri_map_entry *there);
/* It was never published; its parts are not its own. NULL: nothing. */
void weiri_map_entry_discard(struct weiri_map_entry *entry);
/* Puts its parts before *first. */
void weiri_map_entry_chain(const struct weiri_map_entry *entry, struct weiri_map_part **first);
/* With its parts; nobody else can see it any more. */
void weiri_map_entry_end(struct weiri_map_entry *entry);

int weiri_map_compare_keys(const void *key, const void *item);

#endif
