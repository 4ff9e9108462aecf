/*
 * deque.c - the Chase-Lev work-stealing deque.
 *
 * Algorithm. Item i is in slot i mod capacity of the current array. Items top .. bottom-1 are in
 * the deque. The owner pushes and takes at bottom; thieves steal at top, by CAS.
 *
 * Source. Chase and Lev, "Dynamic circular work-stealing deque" (SPAA 2005), in the C11 form of Lê,
 * Pop, Cohen and Zappa Nardelli, "Correct and efficient work-stealing for weak memory models"
 * (PPoPP 2013). This file differs in two points. The two standalone seq_cst fences of that paper
 * are ordered accesses here, so that ThreadSanitizer sees every order. And the CAS of take acquires
 * if it fails (see below). Outgrown arrays are kept until fini: a thief may still read one, and
 * together they are smaller than the current one.
 *
 * Invariants
 *   I1  top only grows, by one CAS per item
 *   I2  bottom - top <= capacity of the current array
 *   I3  the slot of an item i >= top is overwritten only after top has moved past i
 * Pairs
 *   P1  push (bottom) -> steal: the item's slot, what it points to, and the new array if it was
 *       replaced
 *   P2  steal or take (top) -> push: the slots below top are free
 *   P3  grow (array) -> steal: the array's capacity and slots, for a thief that sees the array
 *       before it sees the new bottom
 *   F1  take: bottom stored, then top loaded
 *   F2  steal: top loaded, then bottom loaded. These four accesses, and the CAS, are seq_cst
 *
 * Why F1 and F2. The owner takes item b without a CAS if it sees top < b after it has announced
 * bottom = b. Suppose that a thief steals b nevertheless. Then it loaded top = b, and after that a
 * bottom that is larger than b.
 * - This bottom is older than the announcement. Then, in the total order of seq_cst operations, the
 *   thief's loads and the CAS that made top = b come before the announcement, and so before the
 *   owner's load of top. So the owner saw top >= b, a contradiction.
 * - This bottom is newer than the announcement. Then it comes from a push that stored a new item b,
 *   and P1 makes that item's slot visible.
 * Why the bottom that take restores needs no release. take stores bottom = b + 1 only after it has
 * seen or made top = b + 1, so this bottom offers no item. A thief that reads it and has an older
 * top t <= b fails its CAS. For suppose that the CAS succeeded. Then it precedes top = b + 1 in the
 * modification order. The owner acquired top = b + 1, so it restored bottom after the CAS, and so
 * after the thief's load of bottom: a contradiction.
 * Why a thief's slot is right. The thief reads the slot before its CAS top = t -> t + 1. An owner
 * that overwrites the slot saw top > t (P2), so its store happens after the CAS, and the thief
 * cannot have read it. An array that is newer than the thief's bottom may lack item t, but only if
 * the owner saw top > t when it created the array, and then the CAS fails.
 *
 * Linearization: push at the store of bottom; take at the announcement of bottom; steal at its CAS,
 *   with one exception. A steal that gets the last item after the owner announced it takes effect
 *   at that announcement. (It was under way then: a steal that starts later sees bottom = b.)
 *   Empty: at the load of bottom.
 * Progress: there is no loop. push makes at most 5 atomic accesses if it does not grow, take 7,
 *   steal 5. If a steal returns LOST, another steal or a take has succeeded.
 * Checked: tests/test_deque.c (plain, TSan, ASan); stress/model/check_deque.c (2 pushes, 2 takes, 2
 *   thieves with 2 tries each; growing; slots used again: all executions).
 */
#include "run/deque.h"

#include "base/assert.h"
#include "base/memory.h"

struct weiri_deque_array {
	size_t capacity;                 /* a power of two */
	struct weiri_deque_array *older; /* owner only */
	_Atomic(void *) slots[];
};

static size_t array_size(size_t capacity)
{
	return sizeof(struct weiri_deque_array) + capacity * sizeof(_Atomic(void *));
}

static _Atomic(void *) *slot_of(struct weiri_deque_array *array, int64_t index)
{
	return &array->slots[(size_t)index & (array->capacity - 1)];
}

static struct weiri_deque_array *create_array(const weir_allocator *allocator, size_t capacity)
{
	struct weiri_deque_array *array;

	if (capacity > (PTRDIFF_MAX - sizeof(*array)) / sizeof(_Atomic(void *)))
		return NULL;
	/* Zeroed because a thief may read a slot that was never filled; its CAS fails then. */
	array = weiri_allocate_zeroed(allocator, array_size(capacity), _Alignof(struct weiri_deque_array));
	if (array == NULL)
		return NULL;
	array->capacity = capacity;
	array->older = NULL;
	return array;
}

bool weiri_deque_init(struct weiri_deque *deque, size_t capacity, const weir_allocator *allocator)
{
	struct weiri_deque_array *array = create_array(allocator, capacity);

	if (array == NULL)
		return false;
	deque->allocator = allocator;
	/* [relaxed] not shared yet; published together with the deque. */
	weiri_store_relaxed(&deque->top, 0);
	weiri_store_relaxed(&deque->bottom, 0);
	weiri_store_relaxed(&deque->array, array);
	return true;
}

void weiri_deque_fini(struct weiri_deque *deque)
{
	/* [relaxed] the only thread. */
	struct weiri_deque_array *array = weiri_load_relaxed(&deque->array);

	while (array != NULL) {
		struct weiri_deque_array *older = array->older;

		weiri_release(deque->allocator, array, array_size(array->capacity), _Alignof(struct weiri_deque_array));
		array = older;
	}
}

/* Returns an array twice as large that holds items top .. bottom-1; NULL: there is no memory. */
static WEIRI_COLD struct weiri_deque_array *grow(struct weiri_deque *deque, struct weiri_deque_array *old, int64_t top,
                                                 int64_t bottom)
{
	struct weiri_deque_array *array = create_array(deque->allocator, old->capacity * 2);

	if (array == NULL)
		return NULL;
	array->older = old;
	for (int64_t i = top; i < bottom; i++)
		/*
		 * [relaxed] the owner wrote the old slots, and the next store of bottom publishes the new
		 * ones.
		 */
		weiri_store_relaxed(slot_of(array, i), weiri_load_relaxed(slot_of(old, i)));
	/* [P3 release] pairs with steal(). */
	weiri_store_release(&deque->array, array);
	return array;
}

bool weiri_deque_push(struct weiri_deque *deque, void *item)
{
	/* [relaxed] only the owner writes bottom and array. */
	int64_t bottom = weiri_load_relaxed(&deque->bottom);
	struct weiri_deque_array *array = weiri_load_relaxed(&deque->array);
	/* [P2 acquire] pairs with the CAS in steal(): a slot that is reused has been read. */
	int64_t top = weiri_load_acquire(&deque->top);

	WEIR_ASSERT2(I2, (uint64_t)(bottom - top) <= array->capacity);
	if (WEIRI_UNLIKELY((size_t)(bottom - top) == array->capacity)) {
		array = grow(deque, array, top, bottom);
		if (array == NULL)
			return false;
	}
	WEIR_ASSERT2(I3, (uint64_t)(bottom - top) < array->capacity);
	/* [relaxed] published by bottom. */
	weiri_store_relaxed(slot_of(array, bottom), item);
	/* [P1 release] pairs with the load of bottom in steal(). */
	weiri_store_release(&deque->bottom, bottom + 1);
	return true;
}

void *weiri_deque_take(struct weiri_deque *deque)
{
	/* [relaxed] only the owner writes bottom and array. */
	int64_t bottom = weiri_load_relaxed(&deque->bottom) - 1;
	struct weiri_deque_array *array = weiri_load_relaxed(&deque->array);
	int64_t top;
	void *item;

	/* [seq_cst F1] announce, then load top: Dekker with F2 in steal(). */
	weiri_store_seq_cst(&deque->bottom, bottom);
	top = weiri_load_seq_cst(&deque->top);
	WEIR_ASSERT2(I1, top <= bottom + 1);
	if (top > bottom) {
		/*
		 * [relaxed] the deque is empty again, at the old bottom. The essay shows why this needs no
		 * release.
		 */
		weiri_store_relaxed(&deque->bottom, bottom + 1);
		return NULL;
	}
	/* [relaxed] the owner wrote it. */
	item = weiri_load_relaxed(slot_of(array, bottom));
	if (top < bottom)
		return item;
	/*
	 * [seq_cst F1, P2 release] the last item: thieves contend for it. A failed CAS acquires: see
	 * the essay.
	 */
	item = weiri_cas_seq_cst(&deque->top, &top, top + 1) ? item : NULL;
	/*
	 * [relaxed] the deque is empty, at the bottom after the item. No release is needed, as above.
	 */
	weiri_store_relaxed(&deque->bottom, bottom + 1);
	return item;
}

enum weiri_steal weiri_deque_steal(struct weiri_deque *deque, void **item)
{
	/* [seq_cst F2] top, then bottom: Dekker with F1 in take(). */
	int64_t top = weiri_load_seq_cst(&deque->top);
	/* [seq_cst F2, P1 acquire] pairs with push(): the slot, the item behind it, the array. */
	int64_t bottom = weiri_load_seq_cst(&deque->bottom);
	struct weiri_deque_array *array;
	void *found;

	if (top >= bottom)
		return WEIRI_STEAL_EMPTY;
	/*
	 * [P3 acquire] pairs with grow(). By P1 this is no older than the array into which item `top`
	 * was pushed.
	 */
	array = weiri_load_acquire(&deque->array);
	/* [relaxed] the CAS decides whether it was still item `top`. */
	found = weiri_load_relaxed(slot_of(array, top));
	/* [seq_cst F2, P2 release] pairs with push(): the slot has been read. */
	if (!weiri_cas_seq_cst(&deque->top, &top, top + 1))
		return WEIRI_STEAL_LOST;
	*item = found;
	return WEIRI_STEAL_TAKEN;
}

size_t weiri_deque_size_approx(const struct weiri_deque *deque)
{
	/* [relaxed] a hint; the two loads may be of different moments. */
	int64_t top = weiri_load_relaxed(&deque->top);
	int64_t bottom = weiri_load_relaxed(&deque->bottom);

	return bottom > top ? (size_t)(bottom - top) : 0;
}
