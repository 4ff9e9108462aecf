/*
 * window.c - elements that are worked on ahead of their taking.
 *
 * Algorithm. A window is a row of `size` slots between two sides. On one side is the *consumer*, the
 * thread that polls the stages above. On the other is the *filler*, a task of the pool that polls
 * the stages below. The filler puts each element into the next free slot. If there is work to do for
 * each element (a map), it submits the slot as a task of its own; so up to `size` calls of the
 * function run at a time. The consumer takes the slots in the order in which they were filled, or,
 * unordered, in the order in which they were finished.
 *
 * Neither side waits. The filler that finds no free slot, or nothing below, leaves its turn stuck
 * (turn.h) and ends; the consumer that frees slots, or the window below, resumes it, and it is
 * submitted again. The consumer that finds its slot unfinished marks the slot AWAITED and returns
 * WEIR_WOULD_BLOCK; whoever finishes the slot wakes it. The consumer reports free slots half a
 * window at a time, or when it has to wait. So in a steady flow neither side wakes the other for
 * each element.
 *
 * A consumer that is done with the window (the end of an iterator, of a pass, of a take) closes it
 * while work is under way. The window then belongs to the tasks that still run. Each of them skips
 * what has not begun, and the last one frees it.
 *
 * Slots
 *   EMPTY     free, being filled, or worked on
 *   AWAITED   the same, and the consumer is to be woken (ordered windows)
 *   DONE      finished: status, and parts or a message
 *   EMPTY -> AWAITED (consumer), EMPTY, AWAITED -> DONE (filler or task), DONE -> EMPTY (consumer)
 * Unordered windows have a stack of finished slots instead, whose word is NONE, AWAITED or the top.
 *
 * Invariants
 *   W1  a slot belongs to the filler from the report that it is free to its filling, then to its
 *       task, and to the consumer from DONE to the next report
 *   W2  `size` = free slots that were not reported + room + slots that are filled
 *   W3  no wake-up is lost: the consumer looks at a slot that is not DONE, and the filler at a room
 *       of 0, by read-modify-writes. turn.h says what follows from that
 *   W4  ordered: the n-th element taken is the n-th that the filler read. Unordered: each element
 *       read is taken once, and the end only after all of them
 *   W5  the window outlives each task of it and each wake of its filler: each holds a reference
 * Pairs
 *   P1  finish -> poll: the slot
 *   P2  report (room) -> filler: the freed slots
 *   P3  close -> filler, tasks: that the window is closed (a hint for tasks: one that misses it does
 *       work that nobody takes)
 *   P4  the last reference given back: what all holders did
 * Linearization: an element is taken at the consumer's read of DONE, with the consumer's turn.
 * Progress: polls, finishes and closes are lock-free, apart from the stages below and the functions
 *   of the user. A stopped task holds back its element; in an ordered window also those behind it,
 *   and everything once the window is full. That is what "in order" means.
 * Memory: one block: `size` slots of some 350 bytes, and 8 bytes for each component and slot. The
 *   tensors of up to `size` elements.
 * Source. The slots are a single-producer, single-consumer ring; out-of-order completion in slots
 *   that retire in order is the reorder buffer of processors (Smith, Pleszkun, ISCA 1985).
 * Checked: stress/model/check_window.c; tests/test_dataset_ahead.c; weir-stress "dataset".
 */
#include "data/window.h"

#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/guard.h"
#include "data/turn.h"

enum slot_state { EMPTY, AWAITED, DONE };

struct slot {
	_Atomic(uint32_t) state; /* of an ordered window */
	/* The owner by W1. */
	enum weir_status status;
	weir_tensor **parts;
	struct weiri_window *window; /* constant */
	weir_task task;
	struct slot *next; /* in the stack of finished slots */
	uint64_t ordinal;  /* how many elements were read before it */
	weir_error error;
};

struct weiri_window {
	/* Constant. */
	weir_pool *pool;
	const struct weiri_reading *reading;
	struct weiri_consumer *consumer; /* a reference */
	weir_dataset *dataset;           /* a reference, for `work` and messages */
	weiri_work_fn *work;
	size_t size, width, bytes;
	bool is_unordered;
	struct slot *slots;
	size_t *freed; /* unordered: the index of the slot that the n-th element had, at n % size */
	/* Shared. */
	WEIRI_ALIGNED_APART struct weiri_turn turn; /* of the filler */
	_Atomic(size_t) room;                       /* free slots, less those that the filler has filled since it looked */
	_Atomic(size_t) references;
	_Atomic(uint32_t) closed;
	WEIRI_ALIGNED_APART _Atomic(struct slot *) finished; /* unordered: a stack, or &awaited */
	/* Filler. */
	WEIRI_ALIGNED_APART struct weiri_consumer as_consumer; /* of the stages below */
	weir_task task;
	struct weiri_stage *input;
	size_t seen, used; /* of the room that it saw: left, and filled since */
	uint64_t read;     /* elements */
	/* Consumer. */
	WEIRI_ALIGNED_APART uint64_t taken;
	size_t owed;        /* free slots to be reported */
	struct slot *ready; /* unordered: taken off the stack, oldest first */
	bool has_end;       /* unordered: the end was met, behind `end_at` elements */
	uint64_t end_at;
};

/* Unordered: the consumer waits for a finished slot. Only its address is used. */
static struct slot awaited;

/* -- references -------------------------------------------------------------------------------- */

static void retain(struct weiri_window *window)
{
	/* [relaxed] the caller has a reference */
	(void)weiri_fetch_add_relaxed(&window->references, (size_t)1);
}

static void free_window(struct weiri_window *window)
{
	weir_allocator allocator = window->reading->allocator;
	struct weiri_consumer *consumer = window->consumer;
	weir_dataset *dataset = window->dataset;

	for (size_t i = 0; i < window->size; i++)
		weiri_parts_release(window->slots[i].parts, window->width);
	weiri_release(&allocator, window, window->bytes, alignof(struct weiri_window));
	weir_dataset_release(dataset);
	consumer->release(consumer);
}

static void release(struct weiri_window *window)
{
	/* [P4 acq_rel] pairs with itself */
	if (weiri_fetch_sub_acq_rel(&window->references, (size_t)1) == 1)
		free_window(window);
}

static bool is_closed(const struct weiri_window *window)
{
	/* [P3 acquire] pairs with weiri_window_close() */
	return weiri_load_acquire(&window->closed) != 0;
}

/* -- finishing a slot -------------------------------------------------------------------------- */

/* Returns true if the consumer waits for it. */
static bool push_finished(struct weiri_window *window, struct slot *slot)
{
	/* [relaxed] the compare-and-swap orders it */
	struct slot *top = weiri_load_relaxed(&window->finished);

	do {
		slot->next = top == &awaited ? NULL : top;
		/* [P1 acq_rel] pairs with take_finished() */
	} while (!weiri_cas_acq_rel(&window->finished, &top, slot));
	return top == &awaited;
}

/* The caller has a reference to the window. */
static void finish(struct slot *slot)
{
	struct weiri_window *window = slot->window;
	bool is_awaited;

	if (window->is_unordered) {
		is_awaited = push_finished(window, slot);
	} else {
		/* [P1 acq_rel] pairs with the look of the consumer */
		is_awaited = weiri_exchange_acq_rel(&slot->state, DONE) == AWAITED;
	}
	if (is_awaited)
		window->consumer->wake(window->consumer);
}

static void run_slot(weir_task *task)
{
	struct slot *slot = WEIRI_CONTAINER_OF(task, struct slot, task);
	struct weiri_window *window = slot->window;

	/* [relaxed] a hint, as the look at `closed` */
	if (is_closed(window) || weiri_load_relaxed(&window->consumer->over) != 0) {
		slot->status = WEIR_CANCELLED;
	} else {
		struct weiri_guard guard;

		slot->error.message[0] = '\0';
		weiri_guard_begin(&guard, window->reading->iterator);
		slot->status = window->work(window->dataset, slot->parts, &slot->error);
		weiri_guard_end(&guard);
	}
	finish(slot);
	release(window);
}

/* -- the filler -------------------------------------------------------------------------------- */

static void submit_filler(struct weiri_window *window)
{
	(void)weir_pool_submit(window->pool, &window->task); /* fails only for invalid arguments */
}

/* Returns true if there is a free slot. */
static bool has_room(struct weiri_window *window)
{
	if (window->seen != 0)
		return true;
	/*
	 * [P2 acquire, release for W3] pairs with report(). A read-modify-write even if nothing was used.
	 */
	window->seen = weiri_fetch_sub_acq_rel(&window->room, window->used) - window->used;
	window->used = 0;
	WEIR_ASSERT1(W2, window->seen <= window->size);
	return window->seen != 0;
}

static struct slot *free_slot(struct weiri_window *window)
{
	size_t turn = (size_t)(window->read % window->size);

	return &window->slots[window->is_unordered && window->read >= window->size ? window->freed[turn] : turn];
}

/* Reads one element into a slot. Returns WEIR_WOULD_BLOCK if there is none now. */
static enum weir_status fill_one(struct weiri_window *window)
{
	struct slot *slot = free_slot(window);
	struct weiri_guard guard;
	enum weir_status status;

	weiri_guard_begin(&guard, window->reading->iterator);
	status = weiri_stage_poll(window->input, slot->parts, &slot->error);
	weiri_guard_end(&guard);
	if (status == WEIR_WOULD_BLOCK)
		return status;
	slot->status = status;
	slot->ordinal = window->read++;
	window->seen--;
	window->used++;
	if (status == WEIR_OK && window->work != NULL) {
		retain(window);
		slot->task.run = run_slot;
		(void)weir_pool_submit(window->pool, &slot->task);
	} else {
		finish(slot);
	}
	return status;
}

/* The filler has no more to do. It keeps the turn, so that nobody submits it again. */
static void retire(struct weiri_window *window)
{
	struct weiri_guard guard;

	weiri_guard_begin(&guard, window->reading->iterator);
	weiri_stage_close(window->input);
	weiri_guard_end(&guard);
	window->input = NULL;
	release(window);
}

static void run_filler(weir_task *task)
{
	struct weiri_window *window = WEIRI_CONTAINER_OF(task, struct weiri_window, task);

	for (;;) {
		enum weir_status status = WEIR_WOULD_BLOCK;

		while (!is_closed(window) && has_room(window)) {
			status = fill_one(window);
			if (status == WEIR_WOULD_BLOCK || status == WEIR_OUT_OF_RANGE)
				break;
			status = WEIR_WOULD_BLOCK;
		}
		if (is_closed(window) || status == WEIR_OUT_OF_RANGE) {
			retire(window);
			return;
		}
		if (weiri_turn_stick(&window->turn))
			return; /* it may run on another thread already */
	}
}

static void resume_filler(struct weiri_window *window)
{
	if (weiri_turn_resume(&window->turn, WEIRI_TURN_TAKEN))
		submit_filler(window);
}

/* The filler as the consumer of the stages below. */
static struct weiri_window *window_of(struct weiri_consumer *consumer)
{
	return WEIRI_CONTAINER_OF(consumer, struct weiri_window, as_consumer);
}

static void wake_filler(struct weiri_consumer *consumer)
{
	resume_filler(window_of(consumer));
}

static void retain_filler(struct weiri_consumer *consumer)
{
	retain(window_of(consumer));
}

static void release_filler(struct weiri_consumer *consumer)
{
	release(window_of(consumer));
}

/* -- the consumer ------------------------------------------------------------------------------ */

/* Reports the free slots to the filler. */
static void report(struct weiri_window *window)
{
	size_t owed = window->owed;

	window->owed = 0;
	/* [P2 release, acquire for W3] pairs with has_room(). A filler that saw room does not need a word. */
	if (owed != 0 && weiri_fetch_add_acq_rel(&window->room, owed) == 0)
		resume_filler(window);
}

void weiri_window_begin(struct weiri_window *window)
{
	report(window);
}

/* Returns the next slot of an ordered window, or NULL if it is not finished; it is then awaited. */
static struct slot *next_in_order(struct weiri_window *window)
{
	struct slot *slot = &window->slots[window->taken % window->size];
	/* [P1 acquire] pairs with finish() */
	uint32_t state = weiri_load_acquire(&slot->state);

	if (state == DONE)
		return slot;
	report(window);
	/* [P1 acquire from finish(); release for W3] a read-modify-write, also if it is AWAITED already */
	while (state != DONE && !weiri_cas_acq_rel_or_acquire(&slot->state, &state, AWAITED))
		;
	return state == DONE ? slot : NULL;
}

/* Takes all finished slots, and returns the oldest, or NULL if there is none; one is then awaited. */
static struct slot *take_finished(struct weiri_window *window)
{
	/* [P1 acquire] pairs with push_finished() */
	struct slot *top = weiri_load_acquire(&window->finished), *oldest = NULL;

	if (top == NULL || top == &awaited) {
		report(window);
		/* [as in next_in_order()] */
		while ((top == NULL || top == &awaited) && !weiri_cas_acq_rel_or_acquire(&window->finished, &top, &awaited))
			;
		if (top == NULL || top == &awaited)
			return NULL;
	}
	/* [P1 acquire] pairs with push_finished() */
	top = weiri_exchange_acquire(&window->finished, NULL);
	while (top != NULL) {
		struct slot *next = top->next;

		top->next = oldest;
		oldest = top;
		top = next;
	}
	return oldest;
}

/* Returns the next slot of an unordered window that is not the end, or NULL. */
static struct slot *next_as_ready(struct weiri_window *window)
{
	for (;;) {
		struct slot *slot;

		if (window->has_end && window->taken == window->end_at)
			return NULL;
		if (window->ready == NULL)
			window->ready = take_finished(window);
		slot = window->ready;
		if (slot == NULL)
			return NULL;
		window->ready = slot->next;
		if (slot->status != WEIR_OUT_OF_RANGE)
			return slot;
		window->has_end = true;
		window->end_at = slot->ordinal;
	}
}

static enum weir_status take(struct weiri_window *window, struct slot *slot, weir_tensor *parts[], weir_error *error)
{
	enum weir_status status = slot->status;

	WEIR_ASSERT1(W4, window->is_unordered || slot->ordinal == window->taken);
	if (status == WEIR_OK)
		weiri_parts_move(parts, slot->parts, window->dataset->width);
	else
		*error = slot->error;
	/* [relaxed] report() hands the slot on */
	weiri_store_relaxed(&slot->state, EMPTY);
	if (window->is_unordered)
		window->freed[window->taken % window->size] = (size_t)(slot - window->slots);
	window->taken++;
	window->owed++;
	if (window->owed * 2 >= window->size)
		report(window);
	return status;
}

enum weir_status weiri_window_poll(struct weiri_window *window, weir_tensor *parts[], weir_error *error)
{
	struct slot *slot = window->is_unordered ? next_as_ready(window) : next_in_order(window);

	if (slot == NULL)
		return window->has_end && window->taken == window->end_at ? WEIR_OUT_OF_RANGE : WEIR_WOULD_BLOCK;
	if (slot->status == WEIR_OUT_OF_RANGE)
		return WEIR_OUT_OF_RANGE; /* and the slot stays as it is */
	return take(window, slot, parts, error);
}

void weiri_window_close(struct weiri_window *window)
{
	if (window == NULL)
		return;
	/* [P3 release] pairs with is_closed() */
	weiri_store_release(&window->closed, 1);
	weiri_store_relaxed(&window->as_consumer.over, 1u); /* [relaxed] a hint */
	if (weiri_turn_resume(&window->turn, WEIRI_TURN_TAKEN))
		retire(window);
	release(window);
}

/* -- opening ----------------------------------------------------------------------------------- */

/* Lays the block out: the window, its slots, their parts, the list of freed slots. */
static struct weiri_window *allocate(const struct weiri_stage *stage, const struct weiri_window_plan *plan)
{
	size_t width = plan->input->width > stage->dataset->width ? plan->input->width : stage->dataset->width;
	size_t parts_at = sizeof(struct weiri_window) + plan->size * sizeof(struct slot);
	size_t freed_at = parts_at + plan->size * width * sizeof(weir_tensor *);
	size_t bytes = freed_at + (plan->is_unordered ? plan->size * sizeof(size_t) : 0);
	struct weiri_window *window =
		weiri_allocate_zeroed(&stage->reading->allocator, bytes, alignof(struct weiri_window));
	weir_tensor **parts;

	if (window == NULL)
		return NULL;
	window->bytes = bytes;
	window->width = width;
	window->slots = (struct slot *)(void *)(window + 1);
	window->freed = (size_t *)(void *)((char *)window + freed_at);
	parts = (weir_tensor **)(void *)((char *)window + parts_at);
	for (size_t i = 0; i < plan->size; i++) {
		window->slots[i].window = window;
		window->slots[i].parts = parts + i * width;
	}
	return window;
}

enum weir_status weiri_window_open(struct weiri_stage *stage, const struct weiri_window_plan *plan,
                                   struct weiri_window **out, weir_error *error)
{
	struct weiri_window *window = allocate(stage, plan);
	enum weir_status status;

	if (window == NULL)
		return weiri_dataset_fail(stage->dataset, error, WEIR_RESOURCE_EXHAUSTED,
		                          "no memory to read %zu elements ahead", plan->size);
	window->pool = stage->reading->pool;
	window->reading = stage->reading;
	window->consumer = stage->consumer;
	window->dataset = weir_dataset_retain(stage->dataset);
	window->work = plan->work;
	window->size = plan->size;
	window->is_unordered = plan->is_unordered;
	window->owed = plan->size; /* reported by the first poll, which begins the filling */
	window->task.run = run_filler;
	window->as_consumer = (struct weiri_consumer){wake_filler, retain_filler, release_filler, 0};
	weiri_turn_init(&window->turn, WEIRI_TURN_STUCK);
	weiri_store_relaxed(&window->references, (size_t)2); /* [relaxed] not shared yet: consumer, filler */
	window->consumer->retain(window->consumer);
	status = weiri_stage_open(plan->input, stage->reading, &window->as_consumer, plan->pass, &window->input, error);
	if (status != WEIR_OK)
		weiri_window_close(window);
	else
		*out = window;
	return status;
}
