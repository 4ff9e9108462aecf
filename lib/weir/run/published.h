/*
 * published.h - a list that only grows at its front, read by any number of threads while it grows.
 *
 * For items that readers find by walking and that stay as long as there are readers: names,
 * compiled plans, edges. Items embed the link as a member and are immutable once pushed. A sealed
 * list accepts no more items.
 *
 * Pairs
 *   P1  push -> first, seal: the item and all items after it
 * Linearization: the CAS on the front. No ABA: no item is ever removed.
 * Progress: first and seal are wait-free, push is lock-free (a failed CAS means that another push
 *   or a seal succeeded).
 */
#ifndef WEIRI_PUBLISHED_H
#define WEIRI_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

struct weiri_published {
	struct weiri_published *next; /* written before the push, then never */
};

struct weiri_published_list {
	_Atomic(uintptr_t) front; /* bit 0: sealed */
};

enum { WEIRI_PUBLISHED_SEALED = 1 };

static inline struct weiri_published *weiri_published_item(uintptr_t front)
{
	return (struct weiri_published *)(front &
	                                  ~(uintptr_t)WEIRI_PUBLISHED_SEALED); /* NOLINT(performance-no-int-to-ptr) */
}

static inline void weiri_published_init(struct weiri_published_list *list)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&list->front, 0);
}

/* Returns the newest item or NULL. ->next leads to the next older one. */
static inline struct weiri_published *weiri_published_first(const struct weiri_published_list *list)
{
	/* [P1 acquire] pairs with the pushes. */
	return weiri_published_item(weiri_load_acquire(&list->front));
}

/*
 * Pushes `item` if `first` is still the newest item. The caller has examined the list from `first`
 * on and found no reason against the push. Returns true, or false if another item was pushed
 * meanwhile or the list is sealed.
 */
static inline bool weiri_published_push_after(struct weiri_published_list *list, struct weiri_published *item,
                                              struct weiri_published *first)
{
	uintptr_t expected = (uintptr_t)first;

	item->next = first;
	/*
	 * [P1 release] pairs with weiri_published_first(). The older items were published by their own
	 * pushes: a release sequence.
	 */
	return weiri_cas_release(&list->front, &expected, (uintptr_t)item);
}

static inline bool weiri_published_sealed(const struct weiri_published_list *list)
{
	/* [relaxed] a hint for the message; the push itself decides. */
	return (weiri_load_relaxed(&list->front) & WEIRI_PUBLISHED_SEALED) != 0;
}

/* Makes all later pushes fail. Returns the newest item or NULL. Idempotent. */
static inline struct weiri_published *weiri_published_seal(struct weiri_published_list *list)
{
	/*
	 * [P1 acquire] pairs with the pushes. An acquire of the sealed word reads from the release
	 * sequence of the pushes.
	 */
	return weiri_published_item(weiri_fetch_or_acquire(&list->front, (uintptr_t)WEIRI_PUBLISHED_SEALED));
}

#endif
