/*
 * sort.c - see sort.h.
 */
#include "base/sort.h"

#include <stdint.h>
#include <string.h>

/* Swaps word by word, and the rest byte by byte. */
static void swap(char *a, char *b, size_t size)
{
	size_t i = 0;

	for (; size - i >= sizeof(uint64_t); i += sizeof(uint64_t)) {
		uint64_t x, y;

		memcpy(&x, a + i, sizeof(x));
		memcpy(&y, b + i, sizeof(y));
		memcpy(a + i, &y, sizeof(y));
		memcpy(b + i, &x, sizeof(x));
	}
	for (; i < size; i++) {
		char byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/*
 * The heap whose top is `parent` is in order, except for the top. Lets the top sink to its place.
 */
static void sink(char *elements, size_t parent, size_t count, size_t size, weiri_compare_fn *compare)
{
	for (;;) {
		size_t child = 2 * parent + 1;

		if (child >= count)
			return;
		if (child + 1 < count && compare(elements + child * size, elements + (child + 1) * size) < 0)
			child++;
		if (compare(elements + parent * size, elements + child * size) >= 0)
			return;
		swap(elements + parent * size, elements + child * size, size);
		parent = child;
	}
}

static void sort_heap(char *base, size_t count, size_t size, weiri_compare_fn *compare)
{
	for (size_t i = count / 2; i > 0; i--)
		sink(base, i - 1, count, size, compare);
	for (size_t left = count; left > 1; left--) {
		swap(base, base + (left - 1) * size, size);
		sink(base, 0, left - 1, size, compare);
	}
}

/* Insertion sort: faster than the heap for few elements. */
static void insert_in_turn(char *base, size_t count, size_t size, weiri_compare_fn *compare)
{
	for (size_t i = 1; i < count; i++) {
		for (char *here = base + i * size; here != base && compare(here - size, here) > 0; here -= size)
			swap(here - size, here, size);
	}
}

void weiri_sort(void *elements, size_t count, size_t size, weiri_compare_fn *compare)
{
	enum { FEW = 8 };

	if (count <= FEW)
		insert_in_turn(elements, count, size, compare);
	else
		sort_heap(elements, count, size, compare);
}
