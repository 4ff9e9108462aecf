/*
 * window.c - elements that are worked on ahead of their taking.
 *
 * Files. window_state.h has the parts. window_fill.c reads ahead; window_work.c does the work, or the filling;
 * window_task.c is who does both for a pool, window_undone.c calls them. window_take.c gives elements in their
 * order, or as they come; window_pass.c gives those that need no slot. window_cost.h measures, and says who works.
 * Here: opening, closing, freeing.
 *
 * Algorithm. A window is a row of `size` slots. On one side is the *consumer*, the thread that polls
 * the stages above. What is to be done on the other side is of two kinds. To *fill*: the thread that
 * has the filler's turn (turn.h) polls the stages below and puts each element into the next free
 * slot. To *work*: if there is work for each element (a map), any thread claims the oldest element
 * on which nobody works, does the work in place, and finishes the slot. At most `at_once` calls of the
 * function run at a time; there are more slots than that, so a thread that has finished an element goes on with
 * another, while the consumer waits for an earlier one or works itself. The consumer takes the slots in the
 * order in which they were filled, or, unordered, in the order in which they were finished.
 *
 * Whoever comes does what is undone: it claims an element if there is one, else it fills. *Helpers*
 * are tasks of the pool that do this again and again until nothing is undone, then rest. So one task
 * handles many elements. A thread that leaves something undone for others summons a helper. Nothing
 * is ever in the hands of a task that has not begun to run: a turn and a claim belong to a running
 * thread.
 *
 * The consumer that finds its slot unfinished may do what is undone, too (enum weiri_help). A worker
 * of the pool always does, and so needs no other thread. A thread outside does if the work is short, which
 * is measured, and if it waits without deadline and token, or the work is of known length: stages of Weir,
 * and functions that the user declared short. If the whole window costs less than to wake a worker and to
 * be woken (SHORT_NS), it summons no helper at all; nor if only the reading runs ahead, and the consumer
 * comes back so soon that what it does elsewhere during a whole window takes less (it *hurries*). A helper
 * that runs then rests as soon as the consumer does not wait, and the consumer reads by itself: the
 * elements stay in the caches of one thread, and none is handed over. If an element costs up to WORTH_NS,
 * helpers and consumer share the work; where there is only a turn to share (a prefetch), the consumer
 * leaves it to a helper that runs. A consumer that comes back soon is one of those that work (it *shares*): with
 * it no more helpers are awake than processors are left. One more would take turns with the others, and each
 * element would cost sleeps and wakes. Otherwise the consumer summons a helper, marks the slot AWAITED and
 * returns WEIR_WOULD_BLOCK; whoever finishes the slot wakes it. So no function of unknown length runs where
 * a deadline, a token or a cancelled handle would have to interrupt it, and none that was measured to take
 * long where the end of the iterator would. The elements of an unordered window, which may overtake each
 * other, are left to the helpers.
 *
 * Elements *pass* while the window is short, nothing is under way, and the consumer may help: it takes the
 * filler's turn, reads an element, does the work, and gives it, all before it gives the turn up. No element is
 * published and claimed, and none finished for another thread: that would cost as much as a short function. The
 * number of the element is used up; the slot is free before and after. So the slots that are free stay as many,
 * and are those behind the next number: the one that passed is now one of those that the consumer has not
 * reported, and the oldest of these is one that the filler may fill, to which the turn brings it.
 *
 * Neither side waits. The filler that finds no free slot, or nothing below, leaves its turn stuck;
 * the consumer that frees slots, or the window below, resumes it. The consumer reports free slots
 * half a window at a time, or when it finds nothing.
 *
 * A consumer that is done with the window (the end of an iterator, of a pass, of a take) closes it
 * while work is under way. The window then belongs to the helpers that still run, and the last one
 * frees it, with the elements that nobody took.
 *
 * Slots
 *   EMPTY     free, being filled, or worked on
 *   AWAITED   the same, and the consumer is to be woken (ordered windows)
 *   DONE      finished: status, and parts or a message
 *   EMPTY -> AWAITED (consumer), EMPTY, AWAITED -> DONE (worker or filler), DONE -> EMPTY (consumer)
 * Unordered windows have a stack of finished slots instead, whose word is NONE, AWAITED or the top.
 *
 * Invariants
 *   W1  a slot belongs to the filler from the report that it is free to its filling, then to the one
 *       thread that claims it, and to the consumer from DONE to the next report, or until as many elements
 *       have passed. A thread that passes elements is both
 *   W2  `size` = free slots that were not reported + room + slots that are filled
 *   W3  no wake-up is lost: the consumer looks at a slot that is not DONE, and the filler at a room
 *       of 0, by read-modify-writes. turn.h says what follows from that
 *   W4  ordered: the n-th element taken is the n-th that the filler read. Unordered: each element
 *       read is taken once, and the end only after all of them
 *   W5  the window outlives each helper and each wake of its filler: each holds a reference
 *   W6  if something is undone and the consumer waits, a helper is awake or summoned
 *   W7  at most `at_once` calls of the work run at a time. A call is counted as ended before its element is
 *       finished. So where nothing is under way, and elements pass, begun = worked, and no count comes later
 * Why W6 holds. Something becomes undone when a filler publishes an element or leaves its turn FREE,
 *   and when a stuck turn is resumed. A filler is a helper or the consumer, and looks again after
 *   that. The consumer looks once more after it has marked its slot, and summons. A resume summons.
 *   A helper that finds nothing first sets its bit in `idle` and then looks again; a summoner first
 *   leaves the thing and then looks for a bit. Both change `idle` by read-modify-writes. If the bit
 *   is set first, the summoner finds it. Otherwise the helper acquires what the summoner left.
 *   A summoner that finds as many helpers awake as are of use leaves it to them: each of them sets its bit
 *   later, and the last one of them goes on.
 *   Elements beyond the limit of W7 are not undone. Something becomes undone when a call ends: the thread that
 *   ends it looks again. A thread that leaves something because of the limit has looked at `worked` after it,
 *   by a read-modify-write, and so does the end of a call: a call that ends later acquires what was left.
 *   A helper that leaves a free turn to a consumer that hurries looks at `waits` after that. The
 *   consumer sets `waits` before it looks at what is undone. Both do so by read-modify-writes, and so
 *   does the finish that wakes the consumer and clears it. If the consumer is first, the helper goes on.
 *   Otherwise the consumer acquires the free turn and the helper's bit, and summons.
 *   A finish may clear a later wait than that for its slot: something else has resumed the consumer, which
 *   has taken the slot, and waits for the next one. The clear acquires this wait, so the wake that follows
 *   finds the turn with which the consumer waits, or a later state (T2 of turn.h), and the consumer looks
 *   again. With a relaxed clear it could find the turn FREE, as the consumer left it between its two waits.
 * Pairs
 *   P1  finish -> poll: the slot
 *   P2  report (room) -> filler: the freed slots
 *   P3  close -> filler: that the window is closed; through the turn, which close() seizes after it has said
 *       so: a filler that leaves the turn acquires the seize. (For helpers it is a hint: one that misses it
 *       does work that nobody takes)
 *   P4  the last reference given back: what all holders did
 *   P5  fill -> claim: the element. Pass -> claim: that it is claimed already
 *   P6  summon -> rest: what is undone
 *   P7  claim -> later claims, and through them the takes: where the slot is was read. The n-th take,
 *       from 0, writes freed[n % size] over what the claim of element n reads. It takes one of n + 1
 *       finished elements, so one of them was claimed with n or after it
 *   P8  rest -> fall_asleep: the turn that is left to a consumer that hurries;
 *       fall_asleep -> finish: the turn of the wait that the finish clears
 *   P9  rest -> take_helper: the helper's task is not used any more
 *   P10 is_at_limit -> work_on: what is left to those who work. That a call has ended, the other way round,
 *       needs no pair: who finds it goes on by itself
 * Linearization: an element is taken at the consumer's read of DONE, with the consumer's turn.
 * Progress: polls, finishes and closes are lock-free, apart from the stages below and the functions
 *   of the user. A stopped thread holds back the element that it claimed; in an ordered window also
 *   those behind it, and everything once the window is full. That is what "in order" means.
 * Memory: one block: `size` slots of some 310 bytes (twice `at_once`, at most 32 more; without work as many as
 *   elements ahead), 8 bytes for each component and slot, and 24 bytes for each helper. The tensors of up to
 *   `size` elements.
 * Source. The slots are a single-producer, single-consumer ring; out-of-order completion in slots
 *   that retire in order is the reorder buffer of processors (Smith, Pleszkun, ISCA 1985). That
 *   those who would wait do the work themselves is helping as in Cilk's and TBB's joins, here with
 *   tasks of the own window only.
 * Checked: stress/model/check_window.c; tests/test_dataset_ahead.c; weir-stress "dataset".
 */
#include "data/window.h"

#include <stdalign.h>

#include "base/memory.h"
#include "data/window_fill.h"
#include "data/window_task.h"
#include "data/window_undone.h"

/* -- references -------------------------------------------------------------------------------- */

static void free_window(struct weiri_window *window)
{
	weir_allocator allocator = window->reading->allocator;
	struct weiri_consumer *consumer = window->consumer;
	weir_dataset *dataset = window->dataset;

	for (size_t i = 0; i < window->size; i++)
		weiri_parts_release(window->slots[i].parts, window->width);
	weiri_store_relaxed(&window->gauge->name, NULL); /* [relaxed] see struct weiri_gauge */
	weiri_release(&allocator, window, window->bytes, alignof(struct weiri_window));
	weir_dataset_release(dataset);
	consumer->release(consumer);
}

void weiri_window_release(struct weiri_window *window)
{
	/* [P4 acq_rel] pairs with itself */
	if (weiri_fetch_sub_acq_rel(&window->references, (size_t)1) == 1)
		free_window(window);
}

/* -- opening ----------------------------------------------------------------------------------- */

static size_t helper_count(const struct weiri_stage *stage, const struct weiri_window_plan *plan)
{
	size_t count = weir_pool_thread_count(stage->reading->pool);

	if (plan->work == NULL)
		return 1;
	if (count == 0 || count > WEIRI_WINDOW_MOST_HELPERS)
		count = WEIRI_WINDOW_MOST_HELPERS;
	return plan->at_once < count ? plan->at_once : count;
}

/*
 * Helpers that work beside the consumer: with it as many as calls may run at a time, or as there are
 * processors.
 */
static size_t most_beside(const struct weiri_window *window)
{
	size_t most = window->pool->processors;

	if (most > window->at_once)
		most = window->at_once;
	most = most > 1 ? most - 1 : 1;
	return most < window->helper_count ? most : window->helper_count;
}

/*
 * Those that are worked on, and as many that are finished and wait for their turn; no more than threads
 * can have finished meanwhile.
 */
static size_t slot_count(const struct weiri_window_plan *plan)
{
	if (plan->work == NULL)
		return plan->at_once;
	return plan->at_once + (plan->at_once < WEIRI_WINDOW_MOST_HELPERS ? plan->at_once : WEIRI_WINDOW_MOST_HELPERS);
}

/* Lays the block out: the window, its slots, its helpers, the parts, the list of freed slots. */
static struct weiri_window *allocate(const struct weiri_stage *stage, const struct weiri_window_plan *plan)
{
	size_t width = plan->input->width > stage->dataset->width ? plan->input->width : stage->dataset->width;
	size_t helpers = helper_count(stage, plan), size = slot_count(plan);
	size_t helpers_at = sizeof(struct weiri_window) + size * sizeof(struct weiri_window_slot);
	size_t parts_at = helpers_at + helpers * sizeof(struct weiri_window_helper);
	size_t freed_at = parts_at + size * width * sizeof(weir_tensor *);
	size_t bytes = freed_at + (plan->is_unordered ? size * sizeof(size_t) : 0);
	struct weiri_window *window =
		weiri_allocate_zeroed(&stage->reading->allocator, bytes, alignof(struct weiri_window));
	weir_tensor **parts;

	if (window == NULL)
		return NULL;
	window->bytes = bytes;
	window->width = width;
	window->size = size;
	window->helper_count = helpers;
	window->slots = (struct weiri_window_slot *)(void *)(window + 1);
	window->helpers = (struct weiri_window_helper *)(void *)((char *)window + helpers_at);
	window->freed = (_Atomic(size_t) *)(void *)((char *)window + freed_at);
	parts = (weir_tensor **)(void *)((char *)window + parts_at);
	for (size_t i = 0; i < size; i++)
		window->slots[i].parts = parts + i * width;
	for (size_t i = 0; i < helpers; i++)
		window->helpers[i] = (struct weiri_window_helper){{weiri_window_run_helper, NULL}, window};
	/* [relaxed] not shared yet */
	weiri_store_relaxed(&window->idle, helpers == WEIRI_WINDOW_MOST_HELPERS ? UINT32_MAX : (1u << helpers) - 1);
	return window;
}

/* Takes one of the iterator's gauges, if there is one left. */
static struct weiri_gauge *take_gauge(struct weiri_window *window)
{
	struct weiri_gauge *gauges = window->reading->gauges, *gauge = &window->own_gauge;

	for (size_t i = 0; gauges != NULL && i < WEIRI_GAUGES && gauge == &window->own_gauge; i++) {
		const char *none = NULL;

		/* [relaxed] the members are only displayed */
		if (weiri_cas_relaxed(&gauges[i].name, &none, window->dataset->kind->name))
			gauge = &gauges[i];
	}
	weiri_store_relaxed(&gauge->number, window->dataset->number);
	weiri_store_relaxed(&gauge->size, (uint64_t)window->size);
	weiri_store_relaxed(&gauge->read, UINT64_C(0));
	weiri_store_relaxed(&gauge->taken, UINT64_C(0));
	weiri_store_relaxed(&gauge->asleep, 0u);
	weiri_store_relaxed(&gauge->stuck, 0u);
	return gauge;
}

enum weir_status weiri_window_open(struct weiri_stage *stage, const struct weiri_window_plan *plan,
                                   struct weiri_window **out, weir_error *error)
{
	struct weiri_window *window = allocate(stage, plan);
	enum weir_status status;

	if (window == NULL)
		return weiri_dataset_fail(stage->dataset, error, WEIR_RESOURCE_EXHAUSTED,
		                          "no memory to read %zu elements ahead", slot_count(plan));
	window->pool = stage->reading->pool;
	window->reading = stage->reading;
	window->consumer = stage->consumer;
	window->dataset = weir_dataset_retain(stage->dataset);
	window->work = plan->work;
	window->at_once = plan->at_once;
	window->most_beside = most_beside(window);
	window->is_unordered = plan->is_unordered;
	window->is_known =
		(plan->work == NULL || window->dataset->is_short) && weiri_dataset_is_known(plan->input, window->pool);
	window->as_consumer = weiri_window_filler;
	window->gauge = take_gauge(window);
	weiri_turn_init(&window->turn, WEIRI_TURN_FREE); /* the first poll begins the filling */
	/* [relaxed] not shared yet. References: consumer, filler */
	weiri_store_relaxed(&window->references, (size_t)2);
	weiri_store_relaxed(&window->room, window->size);
	weiri_store_relaxed(&window->fill_ns, (uint32_t)WEIRI_WINDOW_UNKNOWN_NS);
	weiri_store_relaxed(&window->work_ns, plan->work != NULL ? (uint32_t)WEIRI_WINDOW_UNKNOWN_NS : 0u);
	window->consumer->retain(window->consumer);
	status = weiri_stage_open(plan->input, stage->reading, &window->as_consumer, plan->pass, &window->input, error);
	if (status != WEIR_OK)
		weiri_window_close(window);
	else
		*out = window;
	return status;
}

/* -- beginning, closing ------------------------------------------------------------------------ */

void weiri_window_begin(struct weiri_window *window)
{
	weiri_window_summon(window);
}

void weiri_window_close(struct weiri_window *window)
{
	if (window == NULL)
		return;
	weiri_store_relaxed(&window->closed, 1);            /* [relaxed] the seize publishes it: P3 */
	weiri_store_relaxed(&window->as_consumer.over, 1u); /* [relaxed] a hint */
	if (weiri_turn_seize(&window->turn))
		weiri_window_retire(window);
	weiri_window_release(window);
}
