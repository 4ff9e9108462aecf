/*
 * window.c - elements that are worked on ahead of their taking.
 *
 * Algorithm. A window is a row of `size` slots. On one side is the *consumer*, the thread that polls
 * the stages above. What is to be done on the other side is of two kinds. To *fill*: the thread that
 * has the filler's turn (turn.h) polls the stages below and puts each element into the next free
 * slot. To *work*: if there is work for each element (a map), any thread claims the oldest element
 * on which nobody works, does the work in place, and finishes the slot. At most `at_once` calls of the
 * function run at a time; there are more slots than that, so a thread that has finished an element goes on with
 * another, while the consumer waits for an earlier one or works itself. The consumer takes the slots in the order in which they were filled, or,
 * unordered, in the order in which they were finished.
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
 * comes back so soon that what it does elsewhere during a whole window takes less (hurries()). A helper
 * that runs then rests as soon as the consumer does not wait, and the consumer reads by itself: the
 * elements stay in the caches of one thread, and none is handed over. If an element costs up to WORTH_NS,
 * helpers and consumer share the work; where there is only a turn to share (a prefetch), the consumer
 * leaves it to a helper that runs. A consumer that comes back soon is one of those that work (shares()): with
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
 *   W7  at most `at_once` calls of the work run at a time
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
 *   P10 is_at_limit -> work_on, and the other way round: what is left to those who work; that a call has ended
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
#include <string.h>
#include <weir/time.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/guard.h"
#include "data/turn.h"
#include "run/worker.h"

enum slot_state { EMPTY, AWAITED, DONE };

enum {
	MOST_HELPERS = 32,
	PATIENCE = 64,     /* how often a helper looks before it lets other tasks of the pool go first */
	RUN = 16,          /* elements that a filler without work reads in a row */
	SAMPLE = 8,        /* short work is measured once in so many times */
	SHORT_NS = 10000,  /* a hand-over to a worker and back costs about as much */
	WORTH_NS = 100000, /* a function that takes longer is not run by a consumer that could wait */
	MOST_NS = 256000,  /* what a single sample counts at most: the thread may have been preempted */
	WINDOWS = 16,      /* over so many windows it is measured whether the consumer hurries */
	AWAY_NS = 40000,   /* what a single absence counts at most, for the same reason */
	UNKNOWN_NS = 1000000000
};

struct slot {
	_Atomic(uint32_t) state; /* of an ordered window */
	/* The owner by W1. */
	enum weir_status status;
	weir_tensor **parts;
	struct slot *next; /* in the stack of finished slots */
	uint64_t ordinal;  /* how many elements were read before it */
	weir_error error;
};

struct helper {
	weir_task task;
	struct weiri_window *window; /* constant */
};

struct weiri_window {
	/* Constant. */
	weir_pool *pool;
	const struct weiri_reading *reading;
	struct weiri_consumer *consumer; /* a reference */
	weir_dataset *dataset;           /* a reference, for `work` and messages */
	weiri_work_fn *work;
	size_t size, at_once, width, bytes; /* at_once: how many calls of `work` run at a time */
	size_t helper_count, most_beside;   /* most_beside: helpers beside a consumer that works, too */
	bool is_unordered;
	bool is_known; /* what is read and done ahead is of known length: weiri_dataset_is_known() */
	struct slot *slots;
	_Atomic(size_t) *freed; /* unordered: the index of the slot that the n-th take freed, at n % size */
	struct helper *helpers;
	struct weiri_gauge *gauge;
	struct weiri_gauge own_gauge; /* if the iterator has none left */
	/* Shared. */
	WEIRI_ALIGNED_APART struct weiri_turn turn; /* of the filler */
	_Atomic(size_t) room;                       /* free slots, less those that the filler has filled since it looked */
	_Atomic(size_t) references;
	_Atomic(uint32_t) closed, idle;                      /* idle: a bit for each helper that rests */
	_Atomic(uint32_t) fill_ns, work_ns;                  /* [relaxed] estimates */
	_Atomic(uint32_t) running;                           /* [relaxed] helpers that run; a hint */
	_Atomic(uint32_t) hurries;                           /* [relaxed] see hurries(); a hint */
	_Atomic(uint32_t) waits;                             /* the consumer, or is about to: fall_asleep() */
	WEIRI_ALIGNED_APART _Atomic(struct slot *) finished; /* unordered: a stack, or &awaited */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) begun;         /* elements that were claimed */
	_Atomic(uint64_t) worked;                            /* of these, those whose work has ended */
	/* Filler. */
	WEIRI_ALIGNED_APART struct weiri_consumer as_consumer; /* of the stages below */
	_Atomic(uint64_t) filled;                              /* elements that may be claimed */
	struct weiri_stage *input;
	size_t seen, used;       /* of the room that it saw: left, and filled since */
	uint64_t read, fillings; /* elements; times that the turn was taken */
	/* Consumer. */
	WEIRI_ALIGNED_APART uint64_t taken;
	size_t owed;        /* free slots to be reported */
	struct slot *ready; /* unordered: taken off the stack, oldest first */
	bool has_end;       /* unordered: the end was met, behind `end_at` elements */
	uint64_t end_at;
	uint64_t left_ns; /* when it took an element; 0: it is not measured how long it is away */
	size_t returns;   /* how often it was measured, at most WINDOWS * size */
	double away_ns;   /* in the mean */
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
	weiri_store_relaxed(&window->gauge->name, NULL); /* [relaxed] see struct weiri_gauge */
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
	return weiri_load_relaxed(&window->closed) != 0; /* [relaxed] P3 brings it */
}

/* Nobody takes elements any more. */
static bool is_over(const struct weiri_window *window)
{
	/* [relaxed] hints */
	return is_closed(window) || weiri_load_relaxed(&window->consumer->over) != 0;
}

/* -- what an element costs, and who works on it ------------------------------------------------- */

static enum weiri_help help_of(const struct weiri_window *window)
{
	/* [relaxed] written by the holder of the turn before it polls; helpers take it as a hint */
	return (enum weiri_help)weiri_load_relaxed(&window->consumer->help);
}

/* The consumer may do what is short. */
static bool is_free_to_help(const struct weiri_window *window)
{
	enum weiri_help help = help_of(window);

	return help == WEIRI_HELP_IF_KNOWN ? window->is_known : help != WEIRI_HELP_NEVER;
}

static uint64_t cost_ns(const struct weiri_window *window)
{
	/* [relaxed] estimates */
	return (uint64_t)weiri_load_relaxed(&window->fill_ns) + weiri_load_relaxed(&window->work_ns);
}

#if defined(WEIRI_UNDER_MODEL)
/* stress/model: nothing is measured, so everything is long. */
static bool is_sample(const struct weiri_window *window, uint64_t n)
{
	(void)window, (void)n;
	return false;
}

/* check_window.c sets these. */
bool weiri_window_hurries, weiri_window_passes;
size_t weiri_window_run = RUN;

static bool hurries(const struct weiri_window *window)
{
	return weiri_window_hurries && window->work == NULL;
}

static bool shares(const struct weiri_window *window)
{
	return weiri_window_hurries && window->work != NULL;
}

static bool passes(const struct weiri_window *window)
{
	return weiri_window_passes && window->work != NULL && !window->is_unordered;
}

static size_t run_length(void)
{
	return weiri_window_run;
}
#else
static bool is_short(const struct weiri_window *window);

static bool is_sample(const struct weiri_window *window, uint64_t n)
{
	return n % SAMPLE == 0 || !is_short(window);
}

/*
 * What the consumer does between two polls takes less, for all elements of the window, than a hand-over.
 * It is the mean over WINDOWS windows: a consumer that takes up to 4 windows in a row, and then is away for
 * long, does not hurry. And it may do itself what is undone.
 */
static bool comes_back_soon(const struct weiri_window *window)
{
	/* [relaxed] a hint */
	return weiri_load_relaxed(&window->hurries) != 0 && cost_ns(window) < WORTH_NS && is_free_to_help(window);
}

/* Only the reading runs ahead: a helper would save less than it costs. */
static bool hurries(const struct weiri_window *window)
{
	return window->work == NULL && comes_back_soon(window);
}

/* The consumer is one of those that work. */
static bool shares(const struct weiri_window *window)
{
	return window->work != NULL && !window->is_unordered && comes_back_soon(window);
}

/* The consumer alone would fill a slot and empty it. */
static bool passes(const struct weiri_window *window)
{
	return window->work != NULL && !window->is_unordered && is_short(window);
}

static size_t run_length(void)
{
	return RUN;
}
#endif

/* A mean that forgets: each sample counts a quarter. */
static void note(_Atomic(uint32_t) *mean_ns, uint64_t began_ns, uint64_t count)
{
	uint64_t sample = (weir_now_ns() - began_ns) / count;
	/* [relaxed] an estimate; of two threads that write at a time one counts */
	uint32_t mean = weiri_load_relaxed(mean_ns);

	if (sample > MOST_NS)
		sample = MOST_NS;
	mean = mean == UNKNOWN_NS ? (uint32_t)sample : mean - mean / 4 + (uint32_t)sample / 4;
	weiri_store_relaxed(mean_ns, mean);
}

/* The consumer alone works through the window in less time than a hand-over takes. */
static bool is_short(const struct weiri_window *window)
{
	return cost_ns(window) * window->size < SHORT_NS;
}

/* The consumer does alone what is undone, unless it must not. */
static bool is_alone(const struct weiri_window *window)
{
	return is_short(window) || hurries(window);
}

/*
 * How long a consumer is away at most that comes back soon. If the calls of `work` may use all processors, a
 * helper more would take turns with the consumer, unless that is away for longer than an element takes.
 */
static double soon_ns(const struct weiri_window *window)
{
	double soon = (double)SHORT_NS / (double)window->at_once, cost = (double)cost_ns(window);

	return window->work != NULL && window->at_once >= window->pool->processors && cost > soon ? cost : soon;
}

/* The consumer has come back. */
static void note_return(struct weiri_window *window)
{
	double away_ns = (double)(weir_now_ns() - window->left_ns);

	if (away_ns > (double)AWAY_NS)
		away_ns = (double)AWAY_NS;
	window->left_ns = 0;
	if (window->returns < WINDOWS * window->size)
		window->returns++;
	window->away_ns += (away_ns - window->away_ns) / (double)window->returns;
	/* [relaxed] a hint */
	if (window->returns >= window->size)
		weiri_store_relaxed(&window->hurries, (uint32_t)(window->away_ns < soon_ns(window)));
}

/*
 * The consumer would take the turn from a helper that fills in a row, which then rests, and must be
 * woken again. A summoned helper that no worker has begun to run helps nobody.
 */
static bool is_left_to_helper(const struct weiri_window *window)
{
	/* [relaxed] a hint */
	return window->work == NULL && !is_alone(window) && weiri_load_relaxed(&window->running) != 0;
}

static bool may_help(const struct weiri_window *window)
{
	return help_of(window) == WEIRI_HELP_ALWAYS || (is_free_to_help(window) && !window->is_unordered &&
	                                                cost_ns(window) < WORTH_NS && !is_left_to_helper(window));
}

/* -- helpers ----------------------------------------------------------------------------------- */

static bool has_unbegun(const struct weiri_window *window)
{
	/* [relaxed] looks: P5 and P6 order what matters */
	return weiri_load_relaxed(&window->begun) < weiri_load_relaxed(&window->filled);
}

/* As many calls run at element `begun` as may: W7. Those that end them look again. */
static bool is_at_limit(struct weiri_window *window, uint64_t begun)
{
	int64_t limit = (int64_t)window->at_once;

	/* [relaxed] only a count: an old one shows too many calls. `begun` may be older: too few, and the claim fails */
	if (window->work == NULL || (int64_t)(begun - weiri_load_relaxed(&window->worked)) < limit)
		return false;
	/* [P10 acq_rel] pairs with work_on(): a read-modify-write, which the end of a call follows or precedes */
	return (int64_t)(begun - weiri_fetch_or_acq_rel(&window->worked, UINT64_C(0))) >= limit;
}

static bool is_undone(struct weiri_window *window)
{
	/* [relaxed] as in has_unbegun() */
	return (weiri_turn_is_free(&window->turn) || has_unbegun(window)) &&
	       !is_at_limit(window, weiri_load_relaxed(&window->begun));
}

/* How many helpers are awake while those of `idle` rest, and how many are of use. */
static size_t count_awake(const struct weiri_window *window, uint32_t idle)
{
	return window->helper_count - (size_t)__builtin_popcount(idle);
}

static size_t most_awake(const struct weiri_window *window)
{
	return shares(window) ? window->most_beside : window->helper_count;
}

/* Returns a helper that rested and now does not, or NULL: those that are awake look again. */
static struct helper *take_helper(struct weiri_window *window)
{
	/* [P6 release] pairs with rest(): a read-modify-write, also if none rests */
	uint32_t idle = weiri_fetch_or_release(&window->idle, 0u);

	while (count_awake(window, idle) < most_awake(window)) {
		uint32_t bit = idle & (0 - idle);

		/* [P9 acquire] pairs with rest(), whose task this thread submits again */
		if (weiri_cas_acquire(&window->idle, &idle, idle & ~bit))
			return &window->helpers[__builtin_ctz(bit)];
	}
	return NULL;
}

/* The caller has a reference, and has left something undone. */
static void summon(struct weiri_window *window)
{
	struct helper *helper = is_over(window) ? NULL : take_helper(window);

	if (helper == NULL)
		return;
	retain(window);
	(void)weir_pool_submit(window->pool, &helper->task); /* fails only for invalid arguments */
}

/* What the caller does not do at once is to be done by others, if it is worth a hand-over. */
static void summon_for_rest(struct weiri_window *window)
{
	if (is_undone(window) && (!is_alone(window) || !is_free_to_help(window)))
		summon(window);
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
static void finish(struct weiri_window *window, struct slot *slot)
{
	bool is_awaited;

	if (window->is_unordered) {
		is_awaited = push_finished(window, slot);
	} else {
		/* [P1 acq_rel] pairs with the look of the consumer */
		is_awaited = weiri_exchange_acq_rel(&slot->state, DONE) == AWAITED;
	}
	if (is_awaited) {
		/*
		 * [P8 acq_rel] keeps the sequence, and acquires the wait that it clears: the wake must find that
		 * wait's turn, which may be a later one than the slot's
		 */
		(void)weiri_exchange_acq_rel(&window->waits, 0u);
		window->consumer->wake(window->consumer);
	}
}

static struct slot *slot_of(const struct weiri_window *window, uint64_t n)
{
	size_t turn = (size_t)(n % window->size);

	/* [relaxed] P2 and P5 bring it */
	if (window->is_unordered && n >= window->size)
		turn = weiri_load_relaxed(&window->freed[turn]);
	return &window->slots[turn];
}

/* -- working ----------------------------------------------------------------------------------- */

/* Claims the oldest element on which nobody works. Returns NULL if there is none. */
static struct slot *claim(struct weiri_window *window)
{
	/* [relaxed] the compare-and-swap decides */
	uint64_t n = weiri_load_relaxed(&window->begun);

	for (;;) {
		struct slot *slot;

		/* [P5 acquire] pairs with fill_one() */
		if (n >= weiri_load_acquire(&window->filled))
			return NULL;
		if (is_at_limit(window, n))
			return NULL;
		slot = slot_of(window, n); /* before the claim: after it the consumer may write freed[n % size] */
		/* [P7 acq_rel] pairs with itself */
		if (weiri_cas_acq_rel(&window->begun, &n, n + 1)) {
			/* [relaxed] a count; other calls, which were claimed later, may have ended meanwhile */
			WEIR_ASSERT1(W7, (int64_t)(n + 1 - weiri_load_relaxed(&window->worked)) <= (int64_t)window->at_once);
			return slot;
		}
	}
}

static void call_work(struct weiri_window *window, struct slot *slot)
{
	bool is_timed = is_sample(window, slot->ordinal);
	uint64_t began_ns = is_timed ? weir_now_ns() : 0;
	struct weiri_guard guard;

	slot->error.message[0] = '\0';
	weiri_guard_begin(&guard, window->reading->iterator);
	slot->status = window->work(window->dataset, slot->parts, &slot->error);
	weiri_guard_end(&guard);
	if (is_timed)
		note(&window->work_ns, began_ns, 1);
}

static void work_on(struct weiri_window *window, struct slot *slot)
{
	if (slot->status == WEIR_OK)
		call_work(window, slot);
	/* [P10 acq_rel] pairs with is_at_limit() */
	(void)weiri_fetch_add_acq_rel(&window->worked, UINT64_C(1));
	finish(window, slot);
}

/* -- filling, with the filler's turn ----------------------------------------------------------- */

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

/* Polls the stages below into a slot. */
static enum weir_status poll_input(struct weiri_window *window, struct slot *slot)
{
	struct weiri_guard guard;
	enum weir_status status;

	weiri_guard_begin(&guard, window->reading->iterator);
	status = weiri_stage_poll(window->input, slot->parts, &slot->error);
	weiri_guard_end(&guard);
	return status;
}

/* The slot has an element, an error or the end. */
static void put(struct weiri_window *window, struct slot *slot, enum weir_status status)
{
	slot->status = status;
	slot->ordinal = window->read++;
	window->seen--;
	window->used++;
	weiri_store_relaxed(&window->gauge->read, window->read); /* [relaxed] see struct weiri_gauge */
	if (window->work != NULL)
		weiri_store_release(&window->filled, window->read); /* [P5 release] pairs with claim() */
	else
		finish(window, slot);
}

/* Reads one element into a slot. Returns WEIR_WOULD_BLOCK if there is none now. */
static enum weir_status fill_one(struct weiri_window *window)
{
	struct slot *slot = slot_of(window, window->read);
	enum weir_status status = poll_input(window, slot);

	if (status != WEIR_WOULD_BLOCK)
		put(window, slot, status);
	return status;
}

/* The filler has no more to do. It keeps the turn, so that nobody takes it again. */
static void retire(struct weiri_window *window)
{
	struct weiri_guard guard;

	weiri_guard_begin(&guard, window->reading->iterator);
	weiri_stage_close(window->input);
	weiri_guard_end(&guard);
	window->input = NULL;
	release(window);
}

/* The filler leaves the turn. Returns false if it must look again. */
static bool leave_turn(struct weiri_window *window, bool is_stuck)
{
	weiri_store_relaxed(&window->gauge->stuck, (uint32_t)is_stuck); /* [relaxed] see struct weiri_gauge */
	return is_stuck ? weiri_turn_stick(&window->turn) : weiri_turn_yield(&window->turn);
}

/*
 * Reads up to `most` elements, and then leaves the turn. The caller has a reference of its own.
 * Returns the number of elements.
 */
static size_t read_some(struct weiri_window *window, size_t most)
{
	enum weir_status status = WEIR_OK;
	size_t count = 0;

	/* A turn that cannot be left was seized or resumed: look at `closed`, and go on. */
	while (!is_closed(window) && status != WEIR_OUT_OF_RANGE) {
		bool is_enough = count >= most;

		status = !is_enough && has_room(window) ? fill_one(window) : WEIR_WOULD_BLOCK;
		if (status != WEIR_WOULD_BLOCK)
			count++;
		else if (leave_turn(window, !is_enough))
			return count;
		else if (is_enough)
			most++;
	}
	retire(window);
	return count;
}

static size_t most_to_read(const struct weiri_window *window, enum weiri_help help)
{
	if (is_short(window))
		return window->size;
	return window->work == NULL && help == WEIRI_HELP_ALWAYS ? run_length() : 1;
}

static void fill(struct weiri_window *window, enum weiri_help help)
{
	bool is_timed = is_sample(window, window->fillings++);
	uint64_t began_ns = is_timed ? weir_now_ns() : 0;
	size_t count;

	/* [relaxed] see help_of() and struct weiri_gauge */
	weiri_store_relaxed(&window->as_consumer.help, (uint32_t)help);
	weiri_store_relaxed(&window->gauge->stuck, 0u);
	count = read_some(window, most_to_read(window, help));
	if (is_timed && count != 0)
		note(&window->fill_ns, began_ns, count);
}

/* Does one thing of what is undone. Returns false if there is nothing that it can do. */
static bool do_one(struct weiri_window *window, enum weiri_help help)
{
	struct slot *slot = claim(window);

	if (slot != NULL) {
		summon_for_rest(window);
		work_on(window, slot);
		return true;
	}
	if (!weiri_turn_take(&window->turn))
		return false;
	fill(window, help);
	return true;
}

/* Whether a helper that has set its bit in `idle` is to go on. */
static bool needs_helper(struct weiri_window *window)
{
	if (is_over(window) || !is_undone(window))
		return false;
	/* [P8 acq_rel] pairs with fall_asleep() */
	return !hurries(window) || weiri_fetch_or_acq_rel(&window->waits, 0u) != 0;
}

/*
 * The helper found nothing that it can do, or leaves it to the consumer. Returns a helper that goes on in
 * its place, or NULL.
 */
static struct helper *rest(struct weiri_window *window, const struct helper *helper)
{
	struct helper *next = NULL;

	(void)weiri_fetch_sub_relaxed(&window->running, 1u); /* [relaxed] a hint */
	/* [P6 acquire, P9 release] pairs with take_helper() */
	(void)weiri_fetch_or_acq_rel(&window->idle, 1u << (helper - window->helpers));
	if (needs_helper(window))
		next = take_helper(window);
	if (next == NULL)
		release(window);
	else
		(void)weiri_fetch_add_relaxed(&window->running, 1u); /* [relaxed] a hint */
	return next;
}

/* The consumer works, too, since this helper was summoned. */
static bool is_one_too_many(const struct weiri_window *window)
{
	/* [relaxed] a hint */
	return count_awake(window, weiri_load_relaxed(&window->idle)) > most_awake(window);
}

static void run_helper(weir_task *task)
{
	struct helper *helper = WEIRI_CONTAINER_OF(task, struct helper, task);
	struct weiri_window *window = helper->window;

	(void)weiri_fetch_add_relaxed(&window->running, 1u); /* [relaxed] a hint */
	/* While a worker rests, no task waits for this one. */
	for (uint32_t looks = 0; looks < PATIENCE || weiri_pool_has_rest(window->pool); looks++) {
		if (is_over(window) || is_one_too_many(window) || !do_one(window, WEIRI_HELP_ALWAYS) || hurries(window))
			helper = rest(window, helper);
		if (helper == NULL)
			return;
	}
	(void)weiri_fetch_sub_relaxed(&window->running, 1u); /* [relaxed] a hint */
	/* The task may get a worker late. Until then a consumer that left all to it may work itself. */
	if (may_help(window) && is_undone(window))
		window->consumer->wake(window->consumer);
	(void)weir_pool_submit(window->pool, &helper->task); /* fails only for invalid arguments */
}

/* -- the filler as the consumer of the stages below -------------------------------------------- */

static struct weiri_window *window_of(struct weiri_consumer *consumer)
{
	return WEIRI_CONTAINER_OF(consumer, struct weiri_window, as_consumer);
}

static void wake_filler(struct weiri_consumer *consumer)
{
	struct weiri_window *window = window_of(consumer);

	if (weiri_turn_resume(&window->turn))
		summon(window);
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
	if (owed == 0)
		return;
	/* [P2 release, acquire for W3] pairs with has_room(). A filler that saw room does not need a word. */
	if (weiri_fetch_add_acq_rel(&window->room, owed) == 0)
		(void)weiri_turn_resume(&window->turn);
	summon_for_rest(window);
}

void weiri_window_begin(struct weiri_window *window)
{
	summon(window);
}

/*
 * The consumer is to wait for what it has marked. Returns false if there is something that it may do
 * itself: a helper that is only summoned may get a worker late.
 */
static bool fall_asleep(struct weiri_window *window)
{
	weiri_store_relaxed(&window->gauge->asleep, 1u); /* [relaxed] see struct weiri_gauge */
	/* [P8 acq_rel] pairs with needs_helper() and finish() */
	(void)weiri_exchange_acq_rel(&window->waits, 1u);
	if (!is_undone(window))
		return true;
	summon(window); /* W6 */
	/* A helper that this summons had rested, and no longer counts as one that runs. */
	return !may_help(window) || !is_undone(window);
}

/* Returns the slot if it is finished, or NULL; it is then awaited. */
static WEIRI_COLD struct slot *look_in_order(struct weiri_window *window, struct slot *slot)
{
	enum weiri_help help = help_of(window);

	report(window);
	do {
		uint32_t state = EMPTY;

		if (may_help(window)) {
			/* [P1 acquire] pairs with finish() */
			while (weiri_load_acquire(&slot->state) != DONE && do_one(window, help))
				;
			summon_for_rest(window);
		}
		/* [P1 acquire from finish(); release for W3] a read-modify-write, also if it is AWAITED already */
		while (state != DONE && !weiri_cas_acq_rel_or_acquire(&slot->state, &state, AWAITED))
			;
		if (state == DONE)
			return slot;
	} while (!fall_asleep(window));
	return NULL;
}

/* Returns the next slot of an ordered window, or NULL if it is not finished; it is then awaited. */
static struct slot *next_in_order(struct weiri_window *window)
{
	struct slot *slot = &window->slots[window->taken % window->size];

	/* [P1 acquire] pairs with finish() */
	return WEIRI_LIKELY(weiri_load_acquire(&slot->state) == DONE) ? slot : look_in_order(window, slot);
}

static bool has_finished(const struct slot *top)
{
	return top != NULL && top != &awaited;
}

/* Returns true if there is a finished slot; if not, one is awaited. */
static WEIRI_COLD bool look_for_finished(struct weiri_window *window)
{
	enum weiri_help help = help_of(window);

	report(window);
	do {
		struct slot *top = NULL;

		/* [P1 acquire] pairs with push_finished() */
		while (may_help(window) && !has_finished(weiri_load_acquire(&window->finished)) && do_one(window, help))
			;
		if (may_help(window))
			summon_for_rest(window); /* W6: it may have ended a call */
		/* [as in look_in_order()] */
		while (!has_finished(top) && !weiri_cas_acq_rel_or_acquire(&window->finished, &top, &awaited))
			;
		if (has_finished(top))
			return true;
	} while (!fall_asleep(window));
	return false;
}

/* Takes all finished slots, and returns the oldest, or NULL if there is none; one is then awaited. */
static struct slot *take_finished(struct weiri_window *window)
{
	/* [P1 acquire] pairs with push_finished() */
	struct slot *top = weiri_load_acquire(&window->finished), *oldest = NULL;

	if (!has_finished(top) && !look_for_finished(window))
		return NULL;
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
	/* [relaxed] report() hands the slot on; see struct weiri_gauge */
	weiri_store_relaxed(&slot->state, EMPTY);
	weiri_store_relaxed(&window->gauge->asleep, 0u);
	if (window->is_unordered)
		weiri_store_relaxed(&window->freed[window->taken % window->size], (size_t)(slot - window->slots));
	weiri_store_relaxed(&window->gauge->taken, ++window->taken);
	window->owed++;
	if (window->owed * 2 >= window->size)
		report(window);
	if (!window->is_unordered && !is_short(window))
		window->left_ns = weir_now_ns();
	return status;
}

/* -- elements that pass ------------------------------------------------------------------------ */

/* With both turns. The element of a slot is given; the slot is free as before, and its number is used up. */
static enum weir_status give_passed(struct weiri_window *window, struct slot *slot, weir_tensor *parts[],
                                    weir_error *error)
{
	size_t width = window->dataset->width;
	uint64_t next = slot->ordinal + 1;

	if (slot->status == WEIR_OK)
		weiri_parts_move(parts, slot->parts, width);
	else
		*error = slot->error;
	window->read = window->taken = next;
	/* [relaxed] nobody works; `filled` publishes both */
	weiri_store_relaxed(&window->begun, next);
	weiri_store_relaxed(&window->worked, next);
	weiri_store_release(&window->filled, next); /* [P5 release] pairs with claim(): its claim of this element fails */
	/* [relaxed] see struct weiri_gauge */
	weiri_store_relaxed(&window->gauge->read, next);
	weiri_store_relaxed(&window->gauge->taken, next);
	return slot->status;
}

/* With both turns, while nothing is under way. Returns WEIR_WOULD_BLOCK if nothing passed, also at the end. */
static enum weir_status pass_one(struct weiri_window *window, weir_tensor *parts[], weir_error *error)
{
	struct slot *slot = &window->slots[window->read % window->size];
	bool is_timed = is_sample(window, window->read);
	uint64_t began_ns = is_timed ? weir_now_ns() : 0;
	enum weir_status status;

	do {
		status = poll_input(window, slot);
	} while (status == WEIR_WOULD_BLOCK && !leave_turn(window, true));
	if (status == WEIR_WOULD_BLOCK)
		return WEIR_WOULD_BLOCK; /* the turn is stuck, and the slot not this thread's any more */
	if (status == WEIR_OUT_OF_RANGE) {
		put(window, slot, status);
		retire(window);
		return WEIR_WOULD_BLOCK;
	}
	if (is_timed)
		note(&window->fill_ns, began_ns, 1);
	slot->status = status;
	slot->ordinal = window->read;
	if (status == WEIR_OK)
		call_work(window, slot);
	status = give_passed(window, slot, parts, error);
	weiri_turn_give(&window->turn);
	return status;
}

/* Gives an element that need not stay in the window. Returns WEIR_WOULD_BLOCK if there is none. */
static enum weir_status pass(struct weiri_window *window, weir_tensor *parts[], weir_error *error)
{
	if (!passes(window) || !may_help(window) || !weiri_turn_take(&window->turn))
		return WEIR_WOULD_BLOCK;
	if (window->read == window->taken && has_room(window)) {
		/* [relaxed] see struct weiri_gauge */
		weiri_store_relaxed(&window->gauge->stuck, 0u);
		weiri_store_relaxed(&window->gauge->asleep, 0u);
		/* [relaxed] see help_of() */
		weiri_store_relaxed(&window->as_consumer.help, (uint32_t)help_of(window));
		return pass_one(window, parts, error);
	}
	weiri_turn_give(&window->turn);
	return WEIR_WOULD_BLOCK;
}

enum weir_status weiri_window_poll(struct weiri_window *window, weir_tensor *parts[], weir_error *error)
{
	enum weir_status status = pass(window, parts, error);
	struct slot *slot;

	if (status != WEIR_WOULD_BLOCK)
		return status;

	if (window->left_ns != 0)
		note_return(window);
	slot = window->is_unordered ? next_as_ready(window) : next_in_order(window);
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
	weiri_store_relaxed(&window->closed, 1);            /* [relaxed] the seize publishes it: P3 */
	weiri_store_relaxed(&window->as_consumer.over, 1u); /* [relaxed] a hint */
	if (weiri_turn_seize(&window->turn))
		retire(window);
	release(window);
}

/* -- opening ----------------------------------------------------------------------------------- */

static size_t helper_count(const struct weiri_stage *stage, const struct weiri_window_plan *plan)
{
	size_t count = weir_pool_thread_count(stage->reading->pool);

	if (plan->work == NULL)
		return 1;
	if (count == 0 || count > MOST_HELPERS)
		count = MOST_HELPERS;
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
	return plan->at_once + (plan->at_once < MOST_HELPERS ? plan->at_once : MOST_HELPERS);
}

/* Lays the block out: the window, its slots, its helpers, the parts, the list of freed slots. */
static struct weiri_window *allocate(const struct weiri_stage *stage, const struct weiri_window_plan *plan)
{
	size_t width = plan->input->width > stage->dataset->width ? plan->input->width : stage->dataset->width;
	size_t helpers = helper_count(stage, plan), size = slot_count(plan);
	size_t helpers_at = sizeof(struct weiri_window) + size * sizeof(struct slot);
	size_t parts_at = helpers_at + helpers * sizeof(struct helper);
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
	window->slots = (struct slot *)(void *)(window + 1);
	window->helpers = (struct helper *)(void *)((char *)window + helpers_at);
	window->freed = (_Atomic(size_t) *)(void *)((char *)window + freed_at);
	parts = (weir_tensor **)(void *)((char *)window + parts_at);
	for (size_t i = 0; i < size; i++)
		window->slots[i].parts = parts + i * width;
	for (size_t i = 0; i < helpers; i++)
		window->helpers[i] = (struct helper){{run_helper, NULL}, window};
	/* [relaxed] not shared yet */
	weiri_store_relaxed(&window->idle, helpers == MOST_HELPERS ? UINT32_MAX : (1u << helpers) - 1);
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
	window->as_consumer = (struct weiri_consumer){wake_filler, retain_filler, release_filler, 0, WEIRI_HELP_NEVER};
	window->gauge = take_gauge(window);
	weiri_turn_init(&window->turn, WEIRI_TURN_FREE); /* the first poll begins the filling */
	/* [relaxed] not shared yet. References: consumer, filler */
	weiri_store_relaxed(&window->references, (size_t)2);
	weiri_store_relaxed(&window->room, window->size);
	weiri_store_relaxed(&window->fill_ns, (uint32_t)UNKNOWN_NS);
	weiri_store_relaxed(&window->work_ns, plan->work != NULL ? (uint32_t)UNKNOWN_NS : 0u);
	window->consumer->retain(window->consumer);
	status = weiri_stage_open(plan->input, stage->reading, &window->as_consumer, plan->pass, &window->input, error);
	if (status != WEIR_OK)
		weiri_window_close(window);
	else
		*out = window;
	return status;
}
