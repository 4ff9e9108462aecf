/*
 * nblfq.c - NBLFQ, written anew from public descriptions: Denis and Goedefroit, "NBLFQ: a lock-free
 * MPMC queue optimized for low contention", IPDPS 2025. Its abstract and public implementations were
 * at hand, not the text of the paper.
 *
 * Kept: a slot is {counter, value}, and one compare-and-swap of a slot is the whole operation. An
 * enqueue leaves the counter, a dequeue raises it and leaves no value. A slot of index i whose
 * counter is c waits for, or holds, item c * n + i. Neighbouring slots show where the ends are: at
 * the head of the queue the item of a slot is older than that of the slot before it, and at the
 * tail a slot without a value follows one with a value. An operation walks, slot by slot, from an
 * index that was stored without a compare-and-swap after an earlier operation and may be old.
 *
 * Ours: the slot before is read first, which makes "full" and "empty" exact. A slot is read by
 * halves, the counter twice. Left out: the form with the counter in the upper bits of a pointer.
 * The capacity is at least 2.
 *
 * Progress: lock-free.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

enum { LINE = 64, NOTHING = 0 };

/* may_alias: the halves are read with their own types (lib/weir/ring/ltq16.c says why that works). */
__extension__ typedef unsigned __int128 __attribute__((may_alias)) whole;

struct slot {
	_Alignas(16) _Atomic(uint64_t) counter;
	_Atomic(uint64_t) value;
};

struct content {
	uint64_t counter, value;
};

struct nblfq {
	_Alignas(LINE) _Atomic(size_t) tail; /* where an enqueue begins to look: a hint */
	_Alignas(LINE) _Atomic(size_t) head; /* the same for a dequeue */
	_Alignas(LINE) size_t size;
	struct slot *slots;
};

static inline struct content read_slot(struct nblfq *queue, size_t index)
{
	struct slot *slot = &queue->slots[index];
	uint64_t again = atomic_load_explicit(&slot->counter, memory_order_seq_cst);
	struct content content;

	do {
		content.counter = again;
		content.value = atomic_load_explicit(&slot->value, memory_order_seq_cst);
		again = atomic_load_explicit(&slot->counter, memory_order_seq_cst);
	} while (again != content.counter);
	return content;
}

static inline int swap(struct nblfq *queue, size_t index, struct content from, struct content to)
{
	return __sync_bool_compare_and_swap((whole *)(void *)&queue->slots[index], (whole)from.value << 64 | from.counter,
	                                    (whole)to.value << 64 | to.counter);
}

static inline size_t after(const struct nblfq *queue, size_t index)
{
	return index + 1 != queue->size ? index + 1 : 0;
}

static inline size_t before(const struct nblfq *queue, size_t index)
{
	return index != 0 ? index - 1 : queue->size - 1;
}

/* Returns 1 if the slot's item is older than that of the slot before it: the oldest item of all. */
static inline int is_oldest(struct content previous, struct content seen, size_t index)
{
	/* Across the end of the array the counter grows by one. */
	return index != 0 ? seen.counter < previous.counter : seen.counter <= previous.counter;
}

static int enqueue(void *self, uint64_t value)
{
	struct nblfq *queue = self;

	for (;;) {
		size_t index = atomic_load_explicit(&queue->tail, memory_order_acquire);
		struct content previous = read_slot(queue, before(queue, index)), seen = read_slot(queue, index);

		while (seen.value != NOTHING || previous.value == NOTHING) {
			if (is_oldest(previous, seen, index)) {
				if (previous.value != NOTHING)
					return 0; /* full: the newest stands before the oldest */
				if (seen.value == NOTHING)
					break; /* empty */
			}
			index = after(queue, index);
			previous = read_slot(queue, before(queue, index));
			seen = read_slot(queue, index);
		}
		/* The item that follows that of the slot before, which an empty queue has given away. */
		seen.counter = previous.counter - (previous.value == NOTHING) + (index == 0);
		seen.value = NOTHING;
		if (!swap(queue, index, seen, (struct content){seen.counter, value}))
			continue;
		atomic_store_explicit(&queue->tail, after(queue, index), memory_order_release);
		return 1;
	}
}

static int dequeue(void *self, uint64_t *value)
{
	struct nblfq *queue = self;

	for (;;) {
		size_t index = atomic_load_explicit(&queue->head, memory_order_acquire);
		struct content previous = read_slot(queue, before(queue, index)), seen = read_slot(queue, index);

		while (!is_oldest(previous, seen, index)) {
			index = after(queue, index);
			previous = read_slot(queue, before(queue, index));
			seen = read_slot(queue, index);
		}
		if (seen.value == NOTHING) /* then the slot before has given its item away, too */
			return 0;
		if (!swap(queue, index, seen, (struct content){seen.counter + 1, NOTHING}))
			continue;
		atomic_store_explicit(&queue->head, after(queue, index), memory_order_release);
		*value = seen.value;
		return 1;
	}
}

/* The slots wait for items n .. 2n - 1, so that no counter is below 0. */
static void *create(size_t capacity)
{
	struct nblfq *queue = aligned_alloc(LINE, sizeof(*queue));

	if (queue == NULL)
		exit(3);
	queue->size = capacity > 1 ? capacity : 2;
	queue->slots = aligned_alloc(LINE, (queue->size * sizeof(struct slot) + LINE - 1) / LINE * LINE);
	if (queue->slots == NULL)
		exit(3);
	for (size_t i = 0; i < queue->size; i++) {
		atomic_init(&queue->slots[i].counter, 1);
		atomic_init(&queue->slots[i].value, NOTHING);
	}
	atomic_init(&queue->head, 0);
	atomic_init(&queue->tail, 0);
	return queue;
}

static void destroy(void *self)
{
	struct nblfq *queue = self;

	free(queue->slots);
	free(queue);
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

const struct ring_contender nblfq_ring_contender = {
	.about = {.name = "NBLFQ (by descriptions)",
              .version = "Denis, Goedefroit 2025",
              .lacks = "the value 0",
              .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pairs = pairs,
};
