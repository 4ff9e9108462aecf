/*
 * value.h - counted, immutable values: what versions hold and handles show.
 *
 * A value is a part of a larger object, which its kind knows: a tensor, for example. Variables need
 * no more than this part: they count references, ask for bytes, and end a value.
 *
 * Invariants
 *   O1  references >= 1 while any thread may use the value
 * Pairs
 *   P1  release -> last release, is_sole: every use of the value by a thread that released it comes
 *       before its end, or before the owner of the only reference changes it
 *
 * This file does not order how the contents first reach another thread. The structure that passes
 * the pointer on (a variable, a queue) orders that. The count cannot overflow: each reference is a
 * pointer somewhere in an address space of SIZE_MAX bytes.
 *
 * Progress: a retain is one read-modify-write, and a release at most one; the last release runs the
 * end of the kind.
 * Checked: tests/test_tensor.c, plain, ASan + UBSan and TSan; stress/model/check_value.c.
 */
#ifndef WEIRI_RECLAIM_VALUE_H
#define WEIRI_RECLAIM_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"

struct weiri_record;
struct weiri_value;

struct weiri_value_kind {
	/* Ends a value without references: frees its memory and what it owns. */
	void (*end)(struct weiri_value *value);
	/*
	 * Retires a value without references, so that the next collection ends it. Lock-free and
	 * signal-safe.
	 */
	void (*retire)(struct weiri_record *record, struct weiri_value *value);
	/* Returns the bytes that the value counts in the budget when a retired object holds it. */
	size_t (*footprint)(const struct weiri_value *value);
};

struct weiri_value {
	_Atomic(size_t) references;
	const struct weiri_value_kind *kind; /* constant */
};

/* Gives a value, which is not shared yet, its first reference. */
static inline void weiri_value_init(struct weiri_value *value, const struct weiri_value_kind *kind)
{
	value->kind = kind;
	/* [relaxed] not shared yet; the first handover orders this. */
	weiri_store_relaxed(&value->references, (size_t)1);
}

/* Takes one more reference. */
static inline void weiri_value_retain(struct weiri_value *value)
{
	/*
	 * [relaxed] The caller has a reference, or a section protects one. So the value cannot end
	 * meanwhile, and a count publishes nothing.
	 */
	size_t before = weiri_fetch_add_relaxed(&value->references, (size_t)1);

	WEIR_ASSERT1(O1, before >= 1);
	(void)before;
}

/*
 * Returns true if the caller's reference is the only one. Then no other thread can use the value
 * until the caller passes it on, and the caller may change the contents.
 */
static inline bool weiri_value_is_sole(const struct weiri_value *value)
{
	/* [P1 acquire] Pairs with let_go(): every use by a thread that released it comes before. */
	return weiri_load_acquire(&value->references) == 1;
}

/* Drops one reference. Returns true if it was the last; the caller then ends the value. */
static inline bool weiri_value_let_go(struct weiri_value *value)
{
	/*
	 * [P1 acq_rel] Pairs with itself: the release half passes this thread's uses on; the acquire
	 * half of the last call receives the uses of all threads. This is one operation, not a release
	 * followed by an acquire fence in the last call only, because ThreadSanitizer does not see
	 * fences.
	 */
	size_t before;

	/*
	 * [P1 acquire] If the caller has the only reference, no other thread can take one: it would need
	 * a reference or a section that protects one. So no read-modify-write is needed. Mostly the
	 * version of a value has its only reference.
	 */
	if (weiri_load_acquire(&value->references) == 1) {
		weiri_store_relaxed(&value->references, (size_t)0); /* [relaxed] no other thread reads it; for O1 */
		return true;
	}
	before = weiri_fetch_sub_acq_rel(&value->references, (size_t)1);
	WEIR_ASSERT1(O1, before >= 1);
	return before == 1;
}

/* Drops one reference, and ends the value with the last one. Accepts NULL. */
static inline void weiri_value_release(struct weiri_value *value)
{
	if (value != NULL && weiri_value_let_go(value))
		value->kind->end(value);
}

/* Returns the bytes that the value counts in the budget; 0 for NULL. */
static inline size_t weiri_value_footprint(const struct weiri_value *value)
{
	return value != NULL ? value->kind->footprint(value) : 0;
}

/*
 * weiri_value_release() for a signal handler: if the reference is the last one, the next collection
 * ends the value. The value counts in the budget until then. Lock-free. Accepts NULL.
 */
void weiri_value_release_later(struct weiri_value *value);

#endif
