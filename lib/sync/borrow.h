/*
 * borrow.h - whether somebody still reads what was lent for as long as a word is open.
 *
 * Who reads begins, then looks at the word, reads only if that is open, and ends. Who lent it sees the word shut, which it stays, and then asks:
 * not borrowed, then nobody reads it any more, nor will.
 * Pairs
 *   B1  asked -> begin: the word is shut; who begins later sees that
 *   B2  end -> asked: what was read was read before
 * Why. Beginning, ending, and asking are read-modify-writes of one count, and so in one order, in which each sees what the releases before it
 * carry. Who began before it was asked, and had not ended, is in the count.
 * Wait-free. Checked: stress/model/check_sync.c.
 */
#ifndef WEIRI_SYNC_BORROW_H
#define WEIRI_SYNC_BORROW_H

#include <stdint.h>

#include "base/atomic.h"

static inline void weiri_borrow_begin(_Atomic(uint32_t) *borrowers)
{
	/* [B1 acquire] */
	(void)weiri_fetch_add_acquire(borrowers, 1u);
}

static inline void weiri_borrow_end(_Atomic(uint32_t) *borrowers)
{
	/* [B2 release] */
	(void)weiri_fetch_sub_release(borrowers, 1u);
}

static inline int weiri_is_borrowed(_Atomic(uint32_t) *borrowers)
{
	/* [B1 release, B2 acquire] changes nothing: it takes a place in the order, as a load would not. */
	return weiri_fetch_add_acq_rel(borrowers, 0u) != 0;
}

#endif
