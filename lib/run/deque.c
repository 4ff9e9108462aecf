/*
 * deque.c - the Chase-Lev work-stealing deque.
 *
 * Algorithm. Chase and Lev, "Dynamic circular work-stealing deque" (SPAA 2005), in the C11 form of Lê, Pop, Cohen and Zappa Nardelli,
 * "Correct and efficient work-stealing for weak memory models" (PPoPP 2013). Ours differs in two points. The two standalone
 * seq_cst fences are ordered accesses here, so that ThreadSanitizer sees every order; and a CAS of take's that fails acquires
 * (below). Arrays that were outgrown are kept until fini: a thief may still read one, and together they are smaller than the current one.
 *
 * Item i lives in slot i mod capacity of the current array. Items top .. bottom-1 are in the deque.
 * Invariants
 *   I1  top only grows, by one CAS per item
 *   I2  bottom - top <= capacity of the current array
 *   I3  the slot of an item i >= top is overwritten only after top has moved past i
 * Pairs
 *   P1  push (bottom) -> steal: the item's slot, what it points to, and that the array has been replaced, if it has
 *   P2  steal or take (top) -> push: the slots below top are free
 *   P3  grow (array) -> steal: the array's capacity and slots, for a thief that sees it before it sees the new bottom
 *   F1  take: bottom stored, then top loaded     F2  steal: top loaded, then bottom loaded; all four, and the CAS, seq_cst
 *
 * Why F1/F2. The owner takes item b without a CAS when it sees top < b after it has announced bottom = b. Suppose a thief steals b
 * all the same: it loaded top = b and then a bottom > b that is older than the announcement, so in the one order of all seq_cst operations its
 * loads, and the CAS that made top = b, come before the announcement and thus before the owner's load of top; which then saw
 * top >= b, a contradiction. A bottom > b that is newer than the announcement comes from a push that put a new item b, and P1
 * brings that item's slot.
 * Why a bottom that take puts back releases nothing. It says b + 1 where the owner has seen or made top = b + 1, so no item is to be
 * had for it. A thief that reads it and has an older top t <= b fails its CAS: had that CAS come before top = b + 1 in the order of
 * changes, the owner, who acquired top = b + 1, would have put bottom back after the CAS and so after the thief's look at it.
 * Why a thief's slot is right. It reads the slot before its CAS top = t -> t+1. Whoever overwrites that slot saw top > t by P2, so
 * its store happens after the CAS and the thief cannot have read it. An array newer than the thief's bottom may lack item t, but
 * only when its maker saw top > t, and then the CAS fails.
 *
 * Linearization: push at the store of bottom; take at the announcement of bottom; steal at its CAS, but a steal that gets the last
 * item after the owner announced it counts as of that announcement (it was under way then: a steal that starts later sees
 * bottom = b). Empty: at the load of bottom.
 * Progress: push and take have no loop: at most 5 atomic accesses (without growing) and 7; a steal has 5. A steal that answers LOST
 * means that another steal or take succeeded.
 * Checked: tests/test_deque.c (plain, TSan, ASan); stress/model/check_deque.c (2 pushes, 2 takes, 2 thieves with 2 tries each;
 * growing; slots used again: all executions).
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
	/* Cleared because a thief may look at a slot that was never filled; its CAS fails then. */
	array = weiri_allocate_zeroed(allocator, array_size(capacity), _Alignof(struct weiri_deque_array));
	if (array == NULL)
		return NULL;
	array->capacity = capacity;
	array->older = NULL;
	return array;
}

int weiri_deque_init(struct weiri_deque *deque, size_t capacity, const weir_allocator *allocator)
{
	struct weiri_deque_array *array = create_array(allocator, capacity);

	if (array == NULL)
		return 0;
	deque->allocator = allocator;
	/* [relaxed] not shared yet; whoever publishes the deque publishes these. */
	weiri_store_relaxed(&deque->top, 0);
	weiri_store_relaxed(&deque->bottom, 0);
	weiri_store_relaxed(&deque->array, array);
	return 1;
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

/* An array twice as large that holds items top .. bottom-1, or NULL. */
static WEIRI_COLD struct weiri_deque_array *grow(struct weiri_deque *deque, struct weiri_deque_array *old, int64_t top,
                                                 int64_t bottom)
{
	struct weiri_deque_array *array = create_array(deque->allocator, old->capacity * 2);

	if (array == NULL)
		return NULL;
	array->older = old;
	for (int64_t i = top; i < bottom; i++)
		/* [relaxed] the owner wrote the old slots, and the next store of bottom publishes the new ones. */
		weiri_store_relaxed(slot_of(array, i), weiri_load_relaxed(slot_of(old, i)));
	/* [P3 release] pairs with steal(). */
	weiri_store_release(&deque->array, array);
	return array;
}

int weiri_deque_push(struct weiri_deque *deque, void *item)
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
			return 0;
	}
	/* [relaxed] published by bottom. */
	weiri_store_relaxed(slot_of(array, bottom), item);
	/* [P1 release] pairs with the load of bottom in steal(). */
	weiri_store_release(&deque->bottom, bottom + 1);
	return 1;
}

void *weiri_deque_take(struct weiri_deque *deque)
{
	/* [relaxed] only the owner writes bottom and array. */
	int64_t bottom = weiri_load_relaxed(&deque->bottom) - 1;
	struct weiri_deque_array *array = weiri_load_relaxed(&deque->array);
	int64_t top;
	void *item;

	/* [seq_cst F1] announce, then look: Dekker with F2 in steal(). */
	weiri_store_seq_cst(&deque->bottom, bottom);
	top = weiri_load_seq_cst(&deque->top);
	if (top > bottom) {
		/* [relaxed] empty again at the old place: why that hands nothing over, see above. */
		weiri_store_relaxed(&deque->bottom, bottom + 1);
		return NULL;
	}
	/* [relaxed] the owner wrote it. */
	item = weiri_load_relaxed(slot_of(array, bottom));
	if (top < bottom)
		return item;
	/* [seq_cst F1, P2 release] the last item: thieves may want it too. A failure acquires: see above. */
	item = weiri_cas_seq_cst(&deque->top, &top, top + 1) ? item : NULL;
	/* [relaxed] empty, after the item: as above. */
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
	/* [P3 acquire] pairs with grow(). P1 has it that this is no older than the array that item `top` was put in. */
	array = weiri_load_acquire(&deque->array);
	/* [relaxed] the CAS says whether it was still item `top`. */
	found = weiri_load_relaxed(slot_of(array, top));
	/* [seq_cst F2, P2 release] pairs with push(): the slot has been read. */
	if (!weiri_cas_seq_cst(&deque->top, &top, top + 1))
		return WEIRI_STEAL_LOST;
	*item = found;
	return WEIRI_STEAL_TAKEN;
}

size_t weiri_deque_size_approx(const struct weiri_deque *deque)
{
	/* [relaxed] a hint; the two loads need not be of one moment. */
	int64_t top = weiri_load_relaxed(&deque->top);
	int64_t bottom = weiri_load_relaxed(&deque->bottom);

	return bottom > top ? (size_t)(bottom - top) : 0;
}
