/*
 * area.h - the common part of staging areas, map staging areas and keyed joins: a state that is
 * published as a whole, a spec, a name, and the means to wait.
 *
 * Algorithm. An area is one atomic pointer to its state. A state is immutable. It consists of a
 * header and a content, which each kind defines: versions of sorted collections (tree.h), and sums.
 * A change reads the state in a section, builds another content from it, and publishes the new
 * state by one CAS. So a change is atomic however much it modifies, and each read sees one instant.
 * An operation that waits attempts such a change repeatedly (sync/waitable.h).
 *
 * Source. Herlihy's method for small objects (TOPLAS 1993) computes a new state from a private copy
 * and publishes it by one CAS of a root pointer. With path copying in place of a full copy, it is
 * the usual way to share persistent structures between threads.
 *
 * Invariants
 *   A1  the content of a published state never changes; the pointer never returns to a state while
 *       a section may know that state
 * Pairs
 *   P1  publish(state) -> read: the content, and everything that it leads to
 *   S   the pointer is read and replaced seq_cst, as reclaim/section.h requires
 * Progress: lock-free, except for the allocator: a publish fails only if another thread's change
 *   came first.
 */
#ifndef WEIRI_QUEUE_AREA_H
#define WEIRI_QUEUE_AREA_H

#include <stddef.h>
#include <weir/flow/tensor_queue.h>

#include "sync/waitable.h"
#include "tuples/components.h"
#include "areas/tree.h"

struct weiri_area_state {
	/* The first member. It is written after the state was replaced; readers use only `content`. */
	struct weiri_retired retired;
	size_t size;
	weir_allocator allocator;
	_Alignas(max_align_t) char content[];
};

struct weiri_area;

/* What differs from one kind to another. */
struct weiri_area_kind {
	const char *name; /* for messages: staging area "name" */
	size_t size;      /* of its struct */
	size_t content_size;
	const void *content; /* of the first state */
	/* Writes what the area holds, for a dump: "2 of 8 tuples". Called in a section. */
	void (*tell)(const struct weiri_area *area, const void *content, char *text, size_t size); /* size >= 128 */
	/* Releases what the last state holds. No thread uses that state any longer. */
	void (*empty)(struct weiri_area *area, const void *content);
};

/* The first member of each kind's struct. */
struct weiri_area {
	_Alignas(WEIRI_APART) _Atomic(struct weiri_retired *) state;
	_Alignas(WEIRI_APART) struct weiri_waitable waitable;
	/* Constant. */
	const struct weiri_area_kind *kind;
	const char *name;
	size_t count, memory_size;
	struct weiri_component *components; /* count of them */
	struct weiri_registered *registered;
	weir_allocator allocator;
};

/* The options of a new area, copied from those of its kind. The caller owns what they point to. */
struct weiri_area_plan {
	const char *name; /* NULL: the kind's name */
	const struct weir_tensor_component *components;
	size_t count;
	const weir_allocator *allocator;
};

/*
 * Allocates an area. The members that its kind adds are zero. Fails with WEIR_INVALID_ARGUMENT (a
 * bad component) or WEIR_RESOURCE_EXHAUSTED.
 */
enum weir_status weiri_area_create(const struct weiri_area_kind *kind, const struct weiri_area_plan *plan,
                                   struct weiri_area **out, weir_error *error);
/*
 * Registers the area, so that a dump finds it. The kind has set its members before. If the call
 * fails (WEIR_RESOURCE_EXHAUSTED), it frees the area.
 */
enum weir_status weiri_area_enter(struct weiri_area *area, weir_error *error);
/*
 * Destroys the area, which only dumps may then still use. Fails with WEIR_FAILED_PRECONDITION if an
 * operation waits, and with WEIR_RESOURCE_EXHAUSTED if there is no memory for this thread's record.
 */
enum weir_status weiri_area_destroy(struct weiri_area *area, weir_error *error);
/* Frees an area that no thread uses or can find any longer. Not to be called in a section. */
void weiri_area_free(struct weiri_area *area);

/* Sets *record to the calling thread's record. Fails with WEIR_RESOURCE_EXHAUSTED. */
enum weir_status weiri_area_record(const struct weiri_area *area, struct weiri_record **record, weir_error *error);
/* Returns WEIR_RESOURCE_EXHAUSTED, with the message "no memory to `verb`". */
enum weir_status weiri_area_no_memory(const struct weiri_area *area, const char *verb, weir_error *error);
/* Returns WEIR_INVALID_ARGUMENT if `done` is NULL, otherwise WEIR_OK. */
enum weir_status weiri_area_check_done(const struct weiri_area *area, bool has_done, weir_error *error);

/* Writes "2 of 8" to `text`; or "2" if `most` is 0, which means no bound. Returns `text`. */
enum { WEIRI_AREA_NUMBER_SIZE = 48 };
const char *weiri_area_number(char text[WEIRI_AREA_NUMBER_SIZE], size_t number, size_t most);

/* Returns the current state. Called in a section. */
static inline struct weiri_area_state *weiri_area_read(const struct weiri_scope *scope, const struct weiri_area *area)
{
	struct weiri_retired *state;

	weiri_section_read(scope->record, &area->state, &state); /* [S, P1] */
	return WEIRI_CONTAINER_OF(state, struct weiri_area_state, retired);
}

/* As weiri_tree_publish(), for a new state with this content. */
bool weiri_area_publish(struct weiri_scope *scope, struct weiri_area *area, struct weiri_area_state *state,
                        const void *content, struct weiri_tree_edit *edit, enum weir_status *status);

#endif
