/*
 * sort.h - sorting in place, without malloc: qsort() may call it.
 */
#ifndef WEIRI_SORT_H
#define WEIRI_SORT_H

#include <stddef.h>

/* Below, at or above 0 as a comes before b, is its equal, or comes after it. */
typedef int weiri_compare_fn(const void *a, const void *b);

/*
 * Heapsort (Williams 1964), insertion for few: O(n log n) for every order of the elements, also one that somebody chose. Equal ones come
 * in any order.
 */
void weiri_sort(void *elements, size_t count, size_t size, weiri_compare_fn *compare);

#endif
