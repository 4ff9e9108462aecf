/*
 * calls_u64.c - the calls whose items are numbers, by those whose items are pointers.
 *
 * An array of numbers is used as an array of pointers of the same size. The language does not let
 * one object be read as a uint64_t and written as a void *, so a compiler that saw both could
 * reorder them. The empty instructions below may change all memory, as far as the compiler knows.
 * So it stores the caller's numbers before, and loads them anew behind, even where it inlines these
 * calls into a program (-flto).
 */
#include <weir/queue_u64.h>

#if UINTPTR_MAX >= UINT64_MAX

#include "base/compiler.h"

_Static_assert(sizeof(void *) == sizeof(uint64_t), "an array of numbers serves as an array of pointers");

/* Returns the same address: a pointer of which the compiler knows nothing. */
static WEIRI_ALWAYS_INLINE void *seen_as_pointers(const uint64_t items[])
{
	void *pointers = (void *)(uintptr_t)items;

	__asm__ volatile("" : "+r"(pointers) : : "memory");
	return pointers;
}

/* What was written as pointers may be read as numbers from here on. */
static WEIRI_ALWAYS_INLINE enum weir_status seen_as_numbers(enum weir_status status)
{
	__asm__ volatile("" : : : "memory");
	return status;
}

enum weir_status weir_queue_try_enqueue_u64(weir_queue *queue, uint64_t item)
{
	return weir_queue_try_enqueue(queue, (void *)(uintptr_t)item);
}

enum weir_status weir_queue_try_dequeue_u64(weir_queue *queue, uint64_t *item)
{
	return seen_as_numbers(weir_queue_try_dequeue(queue, seen_as_pointers(item)));
}

enum weir_status weir_queue_try_enqueue_many_u64(weir_queue *queue, const uint64_t items[], size_t count, size_t *done)
{
	return weir_queue_try_enqueue_many(queue, seen_as_pointers(items), count, done);
}

enum weir_status weir_queue_try_dequeue_many_u64(weir_queue *queue, uint64_t items[], size_t count, size_t *done)
{
	return seen_as_numbers(weir_queue_try_dequeue_many(queue, seen_as_pointers(items), count, done));
}

enum weir_status weir_queue_enqueue_u64(weir_queue *queue, uint64_t item, uint64_t deadline_ns, weir_cancel *cancel,
                                        weir_error *error)
{
	return weir_queue_enqueue(queue, (void *)(uintptr_t)item, deadline_ns, cancel, error);
}

enum weir_status weir_queue_enqueue_many_u64(weir_queue *queue, const uint64_t items[], size_t count,
                                             uint64_t deadline_ns, weir_cancel *cancel, size_t *done, weir_error *error)
{
	return weir_queue_enqueue_many(queue, seen_as_pointers(items), count, deadline_ns, cancel, done, error);
}

enum weir_status weir_queue_dequeue_u64(weir_queue *queue, uint64_t *item, uint64_t deadline_ns, weir_cancel *cancel,
                                        weir_error *error)
{
	return seen_as_numbers(weir_queue_dequeue(queue, seen_as_pointers(item), deadline_ns, cancel, error));
}

enum weir_status weir_queue_dequeue_many_u64(weir_queue *queue, uint64_t items[], size_t count, uint64_t deadline_ns,
                                             weir_cancel *cancel, weir_error *error)
{
	return seen_as_numbers(weir_queue_dequeue_many(queue, seen_as_pointers(items), count, deadline_ns, cancel, error));
}

enum weir_status weir_queue_dequeue_up_to_u64(weir_queue *queue, uint64_t items[], size_t count, uint64_t deadline_ns,
                                              weir_cancel *cancel, size_t *done, weir_error *error)
{
	return seen_as_numbers(
		weir_queue_dequeue_up_to(queue, seen_as_pointers(items), count, deadline_ns, cancel, done, error));
}

#endif
