/*
 * sort.c - heapsort of elements of any size.
 */
#include "base/sort.h"

static void swap(char *a, char *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* The heap below `parent` is in order but for its top, which sinks to its place. */
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

void weiri_sort(void *elements, size_t count, size_t size, weiri_compare_fn *compare)
{
	char *base = elements;

	for (size_t i = count / 2; i > 0; i--)
		sink(base, i - 1, count, size, compare);
	for (size_t left = count; left > 1; left--) {
		swap(base, base + (left - 1) * size, size);
		sink(base, 0, left - 1, size, compare);
	}
}
