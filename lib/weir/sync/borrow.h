/*
 * borrow.h - a reader count: whether any thread still reads what was lent for as long as a word is
 * open.
 *
 * A reader begins, then reads the word, uses what was lent only if the word is open, and ends. The
 * lender sees the word shut, which it stays, and then asks. If the answer is "not borrowed", no
 * thread reads what was lent any more, nor will.
 * Pairs
 *   B1  asked -> begin: the word is shut, and a reader that begins later sees that
 *   B2  end -> asked: the reads were made before
 * Why. Begin, end and ask are read-modify-writes of one count. So they have one order, and each of
 * them sees what the releases before it carry. A reader that began before the lender asked, and had
 * not ended, is in the count.
 * Progress: wait-free.
 * Checked: stress/model/check_sync.c.
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
	/* [B1 release, B2 acquire] adds 0: unlike a load, it takes a place in the order. */
	return weiri_fetch_add_acq_rel(borrowers, 0u) != 0;
}

#endif
