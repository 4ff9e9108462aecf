/*
 * sort.h - sorting in place without malloc, which qsort() may call.
 */
#ifndef WEIRI_SORT_H
#define WEIRI_SORT_H

#include <stddef.h>

#include "base/compiler.h"

/*
 * Returns a negative number, 0 or a positive one, if a comes before b, is equal to b, or comes
 * after b.
 */
typedef int weiri_compare_fn(const void *a, const void *b);

/*
 * Heapsort (Williams 1964), and insertion sort for few elements. O(n log n) for every order of the
 * elements, also one chosen by an adversary. Not stable.
 */
WEIRI_SHARED void weiri_sort(void *elements, size_t count, size_t size, weiri_compare_fn *compare);

#endif
