/*
 * spares.h - memory of released values, kept for the next values of the same variable.
 *
 * An allocator often returns a large released block to the system, and each of its pages then
 * causes a page fault when it is written next. So a variable whose values the library makes
 * (combine.c; the steps of optimizers) keeps a few blocks. An allocator for values lies above the variable's own allocator.
 * When the last holder of a block releases it, the block returns here and is used again for a value
 * of the same size. Small blocks pass through to the allocator below. An example is a block that a
 * view of a value takes from the value's allocator.
 *
 * Invariants
 *   K1  a block is in use, or kept in one place, or with one thread that moves it between the two
 *   K2  `references` counts the variable's reference and one for each block in use. The last
 *       release frees the kept blocks and this object
 * Pairs
 *   S1  keep(place) -> take(place): the last use of the block comes before the next; its size
 * Progress: wait-free apart from the allocator below: each place is tried once.
 * Memory: at most WEIRI_SPARES blocks are kept for each variable, and an eighth of the retire
 * budget for all variables together, which counts in the budget (reclaim/budget.h); besides these, the
 * own places of weiri_spares_create_own().
 * Under AddressSanitizer nothing is kept, so that a use after release is reported.
 * Checked: stress/model/check_spares.c, check_combine.c, tests/test_combine.c.
 */
#ifndef WEIRI_VAR_SPARES_H
#define WEIRI_VAR_SPARES_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>

#include "base/compiler.h"

/* When threads update in turn, about this many values are between their release and next use. */
enum { WEIRI_SPARES = 4 };

struct weiri_spares;

/*
 * Returns an object with one reference, which weiri_spares_end() drops, or NULL if there is no
 * memory. `below` is copied. Blocks smaller than `least` bytes are not kept.
 */
struct weiri_spares *weiri_spares_create(const weir_allocator *below, size_t least);
/*
 * The same for at most `places` blocks (<= WEIRI_SPARES), which do not count among those of all variables:
 * their number is a part of what the user of the object promises.
 */
WEIRI_SHARED struct weiri_spares *weiri_spares_create_own(const weir_allocator *below, size_t least, size_t places);
/* Returns an allocator for values. They may outlive the variable. */
WEIRI_SHARED const weir_allocator *weiri_spares_allocator(const struct weiri_spares *spares);
/*
 * Called when the variable is destroyed. Frees the kept blocks; blocks in use return to the
 * allocator below.
 */
WEIRI_SHARED void weiri_spares_end(struct weiri_spares *spares);

/*
 * At most the retire budget divided by this number is kept. If it is 0, nothing is kept. Constant,
 * except in tests that want to see every release.
 */
extern uint64_t weiri_spares_share;

#endif
