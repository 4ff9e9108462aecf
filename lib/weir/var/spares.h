/*
 * spares.h - memory of released values, kept for the next values of the same variable.
 *
 * An allocator often returns a large released block to the system, and each of its pages then
 * causes a page fault when it is written next. So a variable whose values the library makes
 * (combine.c) keeps a few blocks. An allocator for values lies above the variable's own. Blocks
 * return here when their last holder releases them, and are used again for values of the same size.
 * Small blocks pass through, such as those that a view of a value takes from the value's allocator.
 *
 * Invariants
 *   K1  a block is in use, or kept in one place, or with one thread that moves it between the two
 *   K2  `references` counts the variable's reference and one for each block in use. The last
 *       release frees the kept blocks and this object
 * Pairs
 *   S1  keep(place) -> take(place): the last use of the block comes before the next; its size
 * Progress: wait-free apart from the allocator below: each place is tried once.
 * Memory: at most WEIRI_SPARES blocks are kept for each variable, and an eighth of the retire
 * budget for all variables together.
 * Under AddressSanitizer nothing is kept, so that a use after release is reported.
 * Checked: stress/model/check_spares.c, check_combine.c, tests/test_combine.c.
 */
#ifndef WEIRI_VAR_SPARES_H
#define WEIRI_VAR_SPARES_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>

/* Threads that update in turn have about this many values between a release and the next use. */
enum { WEIRI_SPARES = 4 };

struct weiri_spares;

/*
 * Has one reference, which weiri_spares_end() drops. `below` is copied. Blocks smaller than `least`
 * bytes are not kept. NULL: no memory.
 */
struct weiri_spares *weiri_spares_create(const weir_allocator *below, size_t least);
/* An allocator for values that may outlive the variable. */
const weir_allocator *weiri_spares_allocator(const struct weiri_spares *spares);
/*
 * Called when the variable is destroyed. Frees the kept blocks; blocks in use return to the
 * allocator below.
 */
void weiri_spares_end(struct weiri_spares *spares);

/*
 * The share of the budget that may be kept: the budget divided by this; 0: nothing is kept.
 * Constant, except in tests that want to see every release.
 */
extern uint64_t weiri_spares_share;

#endif
