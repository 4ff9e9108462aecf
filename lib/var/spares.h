/*
 * spares.h - memory of values that are gone, kept for the next values of the same variable.
 *
 * A large block that goes back to an allocator is often given back to the system, and each of its pages is a fault when it is written next.
 * So a variable whose values the library makes (combine.c) keeps a few of them. An allocator for values lies above the variable's own; blocks
 * that are released come back here, whoever holds them longest, and go out again when they have the right size. Small ones, as a view of a
 * value takes from its value's allocator, only pass through.
 *
 * Invariants
 *   K1  a block is out, or in one place, or with one thread that is between the two
 *   K2  references counts the variable's and one for each block that is out: the last frees what is kept, and this
 * Pairs
 *   S1  keep(place) -> take(place): the last use of the block comes before the next; its size
 * Progress: wait-free but for the allocator below: each place is tried once.
 * Memory: kept are at most WEIRI_SPARES blocks a variable, and of all variables an eighth of the retire budget.
 * Under AddressSanitizer nothing is kept: what is used after it was released shall show.
 * Checked: stress/model/check_spares.c, check_combine.c, tests/test_combine.c.
 */
#ifndef WEIRI_VAR_SPARES_H
#define WEIRI_VAR_SPARES_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>

/* Threads that take turns have about so many values between a release and the next use. */
enum { WEIRI_SPARES = 4 };

struct weiri_spares;

/* With one reference, for weiri_spares_end(). `below` is copied. Blocks of fewer bytes than `least` are not kept. NULL: no memory. */
struct weiri_spares *weiri_spares_create(const weir_allocator *below, size_t least);
/* For values that may outlive the variable. */
const weir_allocator *weiri_spares_allocator(const struct weiri_spares *spares);
/* The variable is gone. Gives back what is kept; what is out comes back to the allocator below. */
void weiri_spares_end(struct weiri_spares *spares);

/* The budget's part of what may be kept: one divided by this; 0: nothing. Constant, but for tests that want to see every release. */
extern uint64_t weiri_spares_share;

#endif
