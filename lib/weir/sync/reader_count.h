/*
 * reader_count.h - tells an owner whether any thread still reads what it lends. It lends for as
 * long as a word is open.
 *
 * A reader begins, then reads the word. It uses what was lent only if the word is open, and then
 * ends. The owner sees the word shut, which is final, and then asks. If the answer is "no readers",
 * no thread reads what was lent any more, and none will.
 * Pairs
 *   B1  asked -> begin: that the word is shut. A reader that begins later sees it
 *   B2  end -> asked: that the reads were made before
 * Why. Begin, end and ask are read-modify-writes of one count. So they have one order, and each of
 * them sees what the releases before it carry. A reader that began before the owner asked and has
 * not ended is in the count.
 * Progress: wait-free.
 * Checked: stress/model/check_sync.c.
 */
#ifndef WEIRI_SYNC_READER_COUNT_H
#define WEIRI_SYNC_READER_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

static inline void weiri_reader_begin(_Atomic(uint32_t) *readers)
{
	/* [B1 acquire] */
	(void)weiri_fetch_add_acquire(readers, 1u);
}

static inline void weiri_reader_end(_Atomic(uint32_t) *readers)
{
	/* [B2 release] */
	(void)weiri_fetch_sub_release(readers, 1u);
}

static inline bool weiri_has_readers(_Atomic(uint32_t) *readers)
{
	/* [B1 release, B2 acquire] adds 0: unlike a load, this takes a place in the order. */
	return weiri_fetch_add_acq_rel(readers, 0u) != 0;
}

#endif
