/*
 * wcq.c - wCQ, a wait-free form of SCQ, written anew from its paper: Nikolaev and Ravindran, "wCQ: A
 * Fast Wait-Free Queue with Bounded Memory Usage", SPAA 2022.
 *
 * Kept: SCQ (scq.c has its words) is the fast path. An operation that has failed with a number of
 * tickets publishes a request in its thread's record, and goes on with *slow* tickets, which the
 * thread and all helpers of the request share; every thread looks for requests now and then.
 *
 *   slow ticket   The word `local` of the request is the ticket that all its threads try. One of them
 *                 moves it: {old} -> {new, INC} by CAS, then the global counter -> new + 1 by a CAS of
 *                 two words that also names a *phase 2* record, then {new, INC} -> {new}. Each thread
 *                 that finds such a record in the global word first ends its phase 2.
 *   FIN           in `local`: the request is done, with the ticket beside it
 *   note          of an entry: a thread of a request has given this cycle up; a late helper must not
 *                 use the entry for it
 *   enq           of an entry: 0 between the insertion by a slow enqueue and FIN. A dequeue that finds
 *                 0 sets FIN itself, so that no helper inserts the index twice
 *   taken         the index of an entry that was dequeued; `none`: no index was there
 *
 * Changed: `local` also has the number of the request, so that a helper that was delayed until the
 * record has a newer request finds that out at once. Left out: lists of such queues. The capacity is
 * rounded up to a power of two, at least 2. At most MOST_THREADS - 1 threads use a queue at a time.
 *
 * Progress: wait-free in the paper. A thread that is stopped between the two rings keeps one place,
 * so "full" is not exact beside it.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "rivals.h"

#ifdef WEIR_BENCH_WCQ_IMPATIENT /* for the test: all operations are slow, and helpers come often */
enum { PATIENCE = 0, HELP_DELAY = 0, MOST_THREADS = 8 };
#else
enum { PATIENCE = 16, HELP_DELAY = 16, MOST_THREADS = 256 };
#endif

enum { LINE = 64, PER_LINE_BITS = 2 /* entries of a line */ };
enum { NUMBER_SHIFT = 48 }; /* `local`: number of the request, FIN, INC, ticket */
#define FIN (UINT64_C(1) << 47)
#define INC (UINT64_C(1) << 46)
#define TICKET (INC - 1)
#define NO_INDEX UINT64_MAX

/* may_alias: the halves are also used alone (lib/weir/ring/ltq16.c says why that works). */
__extension__ typedef unsigned __int128 __attribute__((may_alias)) whole;

struct pair {
	_Alignas(16) _Atomic(uint64_t) low;
	_Atomic(uint64_t) high;
};

struct content {
	uint64_t low, high;
};

/* What a slow ticket needs of the thread that draws it: helpers end its phase 2 by it. */
struct phase2 {
	_Atomic(uint64_t) number1;
	_Atomic(_Atomic(uint64_t) *) local;
	_Atomic(uint64_t) word; /* what `local` holds: {new, INC} */
	_Atomic(uint64_t) number2;
};

struct record {
	_Alignas(LINE) struct phase2 phase2;
	unsigned next_check, next_thread; /* of its thread alone */
	/* The request. It may be read while number1 is number2. */
	_Alignas(LINE) _Atomic(uint64_t) number1;
	_Atomic(uint64_t) local;
	_Atomic(uint64_t) first; /* the first value of `local` */
	_Atomic(uint64_t) index; /* an enqueue: what goes in */
	_Atomic(int) enqueues, pending;
	_Atomic(uint64_t) number2;
};

struct indices {
	_Alignas(LINE) struct pair head; /* low: the counter; high: a struct phase2 * */
	_Alignas(LINE) _Atomic(int64_t) threshold;
	_Alignas(LINE) struct pair tail;
	_Alignas(LINE) unsigned order; /* 2n is 1 << order */
	struct pair *entries;          /* low: the entry; high: its note */
	struct record records[MOST_THREADS];
};

struct wcq {
	struct indices used, free;
	uint64_t *values;
};

static _Atomic(int) taken_records[MOST_THREADS];
static _Thread_local unsigned my_record; /* 0: of the thread that creates a queue */

/* -- words ------------------------------------------------------------------------------------- */

static inline uint64_t load(const _Atomic(uint64_t) *word)
{
	return atomic_load_explicit(word, memory_order_seq_cst);
}

static inline void store(_Atomic(uint64_t) *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_seq_cst);
}

static inline int swap(_Atomic(uint64_t) *word, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(word, &from, to, memory_order_seq_cst, memory_order_seq_cst);
}

/* The halves may be of two moments; then the swap fails. */
static inline struct content load_both(const struct pair *pair)
{
	struct content content;

	do {
		content.low = load(&pair->low);
		content.high = load(&pair->high);
	} while (load(&pair->low) != content.low);
	return content;
}

static inline int swap_both(struct pair *pair, struct content from, struct content to)
{
	return __sync_bool_compare_and_swap((whole *)(void *)pair, (whole)from.high << 64 | from.low,
	                                    (whole)to.high << 64 | to.low);
}

/* An entry: cycle, is safe, enq, index. The two greatest indices are `none` and, above it, `taken`. */
static inline uint64_t taken_index(const struct indices *ring)
{
	return (UINT64_C(1) << ring->order) - 1;
}

static inline uint64_t none_index(const struct indices *ring)
{
	return taken_index(ring) - 1;
}

static inline uint64_t enq_bit(const struct indices *ring)
{
	return UINT64_C(1) << ring->order;
}

static inline uint64_t safe_bit(const struct indices *ring)
{
	return UINT64_C(2) << ring->order;
}

static inline uint64_t index_in(const struct indices *ring, uint64_t entry)
{
	return entry & taken_index(ring);
}

static inline int has_index(const struct indices *ring, uint64_t entry)
{
	return index_in(ring, entry) < none_index(ring);
}

static inline uint64_t cycle_in(const struct indices *ring, uint64_t entry)
{
	return entry >> (ring->order + 2);
}

static inline uint64_t cycle_of(const struct indices *ring, uint64_t ticket)
{
	return ticket >> ring->order;
}

static inline uint64_t entry_with(const struct indices *ring, uint64_t ticket, uint64_t bits, uint64_t index)
{
	return cycle_of(ring, ticket) << (ring->order + 2) | bits | index;
}

static inline struct pair *entry_of(struct indices *ring, uint64_t ticket)
{
	uint64_t at = ticket & taken_index(ring);

	if (ring->order > PER_LINE_BITS)
		at = (at << PER_LINE_BITS & taken_index(ring)) | at >> (ring->order - PER_LINE_BITS);
	return &ring->entries[at];
}

/* -- the fast path: SCQ ------------------------------------------------------------------------ */

static inline int64_t full_threshold(const struct indices *ring)
{
	return (int64_t)(UINT64_C(3) << ring->order >> 1) - 1;
}

static inline void raise_threshold(struct indices *ring)
{
	if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) != full_threshold(ring))
		atomic_store_explicit(&ring->threshold, full_threshold(ring), memory_order_seq_cst);
}

static inline int64_t lower_threshold(struct indices *ring)
{
	return atomic_fetch_sub_explicit(&ring->threshold, 1, memory_order_seq_cst);
}

static inline uint64_t draw(struct pair *counter)
{
	return atomic_fetch_add_explicit(&counter->low, 1, memory_order_seq_cst);
}

static void catch_up(struct indices *ring, uint64_t tail, uint64_t head)
{
	while (!swap(&ring->tail.low, tail, head)) {
		head = load(&ring->head.low);
		tail = load(&ring->tail.low);
		if (tail >= head)
			break;
	}
}

/* Sets FIN for the slow enqueue that has inserted at `ticket` and has not said so yet. */
static void finish_enqueue(struct indices *ring, uint64_t ticket)
{
	for (unsigned i = 0; i < MOST_THREADS; i++) {
		uint64_t word = load(&ring->records[i].local);

		if (atomic_load_explicit(&ring->records[i].enqueues, memory_order_seq_cst) && (word & TICKET) == ticket &&
		    (word & (FIN | INC)) == 0)
			(void)swap(&ring->records[i].local, word, word | FIN);
	}
}

static inline uint64_t consume(struct indices *ring, uint64_t ticket, struct pair *place, uint64_t entry)
{
	if ((entry & enq_bit(ring)) == 0)
		finish_enqueue(ring, ticket);
	atomic_fetch_or_explicit(&place->low, enq_bit(ring) | taken_index(ring), memory_order_seq_cst);
	return index_in(ring, entry);
}

static inline int is_usable(struct indices *ring, uint64_t entry, uint64_t ticket)
{
	return !has_index(ring, entry) && ((entry & safe_bit(ring)) != 0 || load(&ring->head.low) <= ticket);
}

/* Tries a new ticket. Returns 1 if the index is in. */
static inline int try_put(struct indices *ring, uint64_t index, uint64_t *ticket)
{
	struct pair *place;
	uint64_t entry;

	*ticket = draw(&ring->tail);
	place = entry_of(ring, *ticket);
	entry = load(&place->low);
	while (cycle_in(ring, entry) < cycle_of(ring, *ticket) && is_usable(ring, entry, *ticket)) {
		if (swap(&place->low, entry, entry_with(ring, *ticket, safe_bit(ring) | enq_bit(ring), index))) {
			raise_threshold(ring);
			return 1;
		}
		entry = load(&place->low);
	}
	return 0;
}

/* Tries a new ticket. Returns 1 if that ended the dequeue: with an index, or NO_INDEX. */
static inline int try_take(struct indices *ring, uint64_t *index, uint64_t *ticket)
{
	struct pair *place;
	uint64_t entry, marked, tail;

	*ticket = draw(&ring->head);
	place = entry_of(ring, *ticket);
	do {
		entry = load(&place->low);
		if (cycle_in(ring, entry) == cycle_of(ring, *ticket)) {
			*index = consume(ring, *ticket, place, entry);
			return 1;
		}
		if (cycle_in(ring, entry) > cycle_of(ring, *ticket))
			break;
		marked = has_index(ring, entry)
		             ? entry & ~safe_bit(ring)
		             : entry_with(ring, *ticket, (entry & safe_bit(ring)) | enq_bit(ring), none_index(ring));
	} while (!swap(&place->low, entry, marked));
	*index = NO_INDEX;
	tail = load(&ring->tail.low);
	if (tail <= *ticket + 1) {
		catch_up(ring, tail, *ticket + 1);
		(void)lower_threshold(ring);
		return 1;
	}
	return lower_threshold(ring) <= 0;
}

/* -- slow tickets ------------------------------------------------------------------------------ */

static int is_done(const _Atomic(uint64_t) *local, uint64_t word)
{
	uint64_t now = load(local);

	return (now & FIN) != 0 || now >> NUMBER_SHIFT != word >> NUMBER_SHIFT;
}

/* Ends the phase 2 that the record describes, unless the record has a newer one by now. */
static void end_phase2(struct phase2 *phase2)
{
	uint64_t number = load(&phase2->number2);
	_Atomic(uint64_t) *local = atomic_load_explicit(&phase2->local, memory_order_seq_cst);
	uint64_t drawn = load(&phase2->word);

	if (load(&phase2->number1) == number)
		(void)swap(local, drawn, drawn & ~INC);
}

/*
 * Reads the global counter, and first ends the phase 2 that it names. Returns 0 if the request that
 * *word is of is done.
 */
static int read_counter(struct pair *counter, const _Atomic(uint64_t) *local, uint64_t word, uint64_t *value)
{
	while (!is_done(local, word)) {
		struct content seen = load_both(counter);

		*value = seen.low;
		if (seen.high == 0)
			return 1;
		end_phase2((struct phase2 *)(uintptr_t)seen.high);
		if (swap_both(counter, seen, (struct content){seen.low, 0}))
			return 1;
	}
	return 0;
}

static void begin_phase2(struct phase2 *phase2, _Atomic(uint64_t) *local, uint64_t word)
{
	uint64_t number = load(&phase2->number1) + 1;

	store(&phase2->number1, number);
	atomic_store_explicit(&phase2->local, local, memory_order_seq_cst);
	store(&phase2->word, word);
	store(&phase2->number2, number);
}

/*
 * Moves the request from the ticket in *word, which was of no use, to its next one. Returns 0 if it is
 * done. `lowers`: it is a dequeue, and each ticket lowers the threshold once.
 */
static int next_ticket(struct indices *ring, struct pair *counter, _Atomic(uint64_t) *local, uint64_t *word, int lowers)
{
	struct phase2 *phase2 = &ring->records[my_record].phase2;
	const uint64_t number = *word >> NUMBER_SHIFT << NUMBER_SHIFT;
	uint64_t value = 0;

	do {
		if (read_counter(counter, local, *word, &value) && swap(local, *word, number | INC | value)) {
			*word = number | INC | value;
		} else if (is_done(local, *word)) {
			return 0;
		} else {
			uint64_t now = load(local);

			if (now >> NUMBER_SHIFT << NUMBER_SHIFT != number || (now & FIN) != 0)
				return 0;
			*word = now;
			if ((now & INC) == 0)
				return 1; /* another thread has moved it */
			value = now & TICKET;
		}
		begin_phase2(phase2, local, *word);
	} while (!swap_both(counter, (struct content){value, 0}, (struct content){value + 1, (uint64_t)(uintptr_t)phase2}));
	if (lowers)
		(void)lower_threshold(ring);
	(void)swap(local, *word, *word & ~INC);
	(void)swap_both(counter, (struct content){value + 1, (uint64_t)(uintptr_t)phase2}, (struct content){value + 1, 0});
	*word &= ~INC;
	return 1;
}

/* Sets FIN. Fails if it is set, or if another thread has moved the request to the next ticket. */
static inline int finish(struct record *record, uint64_t word)
{
	return swap(&record->local, word, word | FIN);
}

/* Tries the ticket of the request. No thread inserts after another one has given the ticket up. */
static void try_slow_put(struct indices *ring, struct record *record, uint64_t word, uint64_t index)
{
	uint64_t ticket = word & TICKET, cycle = cycle_of(ring, ticket);
	struct pair *place = entry_of(ring, ticket);

	for (;;) {
		struct content seen = load_both(place), next = seen;

		if (cycle_in(ring, seen.low) == cycle && index_in(ring, seen.low) != none_index(ring)) {
			(void)finish(record, word); /* another thread has inserted it */
			return;
		}
		if (cycle_in(ring, seen.low) >= cycle || seen.high >= cycle)
			return;
		if (!is_usable(ring, seen.low, ticket)) {
			next.high = cycle;
			if (swap_both(place, seen, next))
				return;
			continue;
		}
		next.low = entry_with(ring, ticket, safe_bit(ring), index);
		if (!swap_both(place, seen, next))
			continue;
		if (finish(record, word))
			(void)swap_both(place, next, (struct content){next.low | enq_bit(ring), next.high});
		return;
	}
}

static void put_slowly(struct indices *ring, struct record *record, uint64_t word, uint64_t index)
{
	while (next_ticket(ring, &ring->tail, &record->local, &word, 0))
		try_slow_put(ring, record, word, index);
	raise_threshold(ring);
}

/* Marks the entry of the ticket, unless it has an index for it. Returns 1 if it has. */
static int is_filled_or_mark(struct indices *ring, uint64_t ticket)
{
	uint64_t cycle = cycle_of(ring, ticket);
	struct pair *place = entry_of(ring, ticket);

	for (;;) {
		struct content seen = load_both(place), next = seen;

		if (cycle_in(ring, seen.low) >= cycle)
			return cycle_in(ring, seen.low) == cycle && index_in(ring, seen.low) != none_index(ring);
		if (has_index(ring, seen.low)) {
			next.low &= ~safe_bit(ring);
			next.high = seen.high < cycle ? cycle : seen.high;
		} else {
			next.low = entry_with(ring, ticket, (seen.low & safe_bit(ring)) | enq_bit(ring), none_index(ring));
		}
		if (swap_both(place, seen, next))
			return 0;
	}
}

/* Tries the ticket of the request. The owner finds the outcome in the entry of the ticket with FIN. */
static void try_slow_take(struct indices *ring, struct record *record, uint64_t word)
{
	uint64_t ticket = word & TICKET, tail;

	if (!is_filled_or_mark(ring, ticket)) {
		tail = load(&ring->tail.low);
		if (tail <= ticket + 1)
			catch_up(ring, tail, ticket + 1);
		else if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) >= 0)
			return;
	}
	(void)finish(record, word);
}

static void take_slowly(struct indices *ring, struct record *record, uint64_t word)
{
	while (next_ticket(ring, &ring->head, &record->local, &word, 1))
		try_slow_take(ring, record, word);
}

/* -- requests ---------------------------------------------------------------------------------- */

/* Every now and then looks at the next thread's record, and helps with its request. */
static void help(struct indices *ring)
{
	struct record *mine = &ring->records[my_record], *record;
	uint64_t number, first, index;
	int enqueues;

	if (mine->next_check-- != 0)
		return;
	mine->next_check = HELP_DELAY;
	mine->next_thread = (mine->next_thread + 1) % MOST_THREADS;
	record = &ring->records[mine->next_thread];
	if (record == mine || !atomic_load_explicit(&record->pending, memory_order_seq_cst))
		return;
	number = load(&record->number2);
	enqueues = atomic_load_explicit(&record->enqueues, memory_order_seq_cst);
	first = load(&record->first);
	index = load(&record->index);
	if (load(&record->number1) != number)
		return;
	if (enqueues)
		put_slowly(ring, record, first, index);
	else
		take_slowly(ring, record, first);
}

/* Begins a request after `ticket` failed. Returns the first value of `local`. */
static uint64_t begin_request(struct record *mine, uint64_t ticket, int enqueues, uint64_t index)
{
	uint64_t number = load(&mine->number1) + 1, word = number << NUMBER_SHIFT | ticket;

	store(&mine->number1, number); /* helpers of the last request stop */
	atomic_store_explicit(&mine->enqueues, enqueues, memory_order_seq_cst);
	store(&mine->local, word);
	store(&mine->first, word);
	store(&mine->index, index);
	store(&mine->number2, number);
	atomic_store_explicit(&mine->pending, 1, memory_order_seq_cst);
	return word;
}

static void put_index(struct indices *ring, uint64_t index)
{
	struct record *mine = &ring->records[my_record];
	uint64_t ticket = 0;

	help(ring);
	for (int i = 0; i < PATIENCE; i++) {
		if (try_put(ring, index, &ticket))
			return;
	}
	put_slowly(ring, mine, begin_request(mine, ticket, 1, index), index);
	atomic_store_explicit(&mine->pending, 0, memory_order_seq_cst);
}

static uint64_t take_index(struct indices *ring)
{
	struct record *mine = &ring->records[my_record];
	uint64_t ticket = 0, index, entry;
	struct pair *place;

	if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) < 0)
		return NO_INDEX;
	help(ring);
	for (int i = 0; i < PATIENCE; i++) {
		if (try_take(ring, &index, &ticket))
			return index;
	}
	take_slowly(ring, mine, begin_request(mine, ticket, 0, 0));
	atomic_store_explicit(&mine->pending, 0, memory_order_seq_cst);
	ticket = load(&mine->local) & TICKET;
	place = entry_of(ring, ticket);
	entry = load(&place->low);
	if (cycle_in(ring, entry) != cycle_of(ring, ticket) || index_in(ring, entry) == none_index(ring))
		return NO_INDEX;
	return consume(ring, ticket, place, entry);
}

/* -- the queue --------------------------------------------------------------------------------- */

/* Cycle 0 is before the first: all entries are free. */
static void indices_init(struct indices *ring, unsigned order)
{
	size_t entries = (size_t)1 << order;

	ring->order = order;
	ring->entries = aligned_alloc(LINE, entries * sizeof(struct pair));
	if (ring->entries == NULL)
		exit(3);
	for (size_t i = 0; i < entries; i++) {
		atomic_init(&ring->entries[i].low, safe_bit(ring) | enq_bit(ring) | none_index(ring));
		atomic_init(&ring->entries[i].high, 0);
	}
	atomic_init(&ring->head.low, entries);
	atomic_init(&ring->tail.low, entries);
	atomic_init(&ring->head.high, 0);
	atomic_init(&ring->tail.high, 0);
	atomic_init(&ring->threshold, -1);
	for (unsigned i = 0; i < MOST_THREADS; i++)
		ring->records[i] = (struct record){.next_check = HELP_DELAY, .next_thread = i};
}

static void *create(size_t capacity)
{
	struct wcq *wcq = aligned_alloc(LINE, sizeof(*wcq));
	unsigned order = 2;

	while ((size_t)1 << order < 2 * capacity)
		order++;
	if (wcq == NULL || (wcq->values = calloc((size_t)1 << order >> 1, sizeof(uint64_t))) == NULL)
		exit(3);
	indices_init(&wcq->used, order);
	indices_init(&wcq->free, order);
	for (uint64_t i = 0; i < UINT64_C(1) << order >> 1; i++)
		put_index(&wcq->free, i);
	return wcq;
}

static void destroy(void *self)
{
	struct wcq *wcq = self;

	free(wcq->used.entries);
	free(wcq->free.entries);
	free(wcq->values);
	free(wcq);
}

static void thread_begin(void *self)
{
	(void)self;
	for (my_record = 1; my_record < MOST_THREADS; my_record++) {
		if (!atomic_exchange_explicit(&taken_records[my_record], 1, memory_order_acquire))
			return;
	}
	exit(3);
}

static void thread_end(void *self)
{
	(void)self;
	atomic_store_explicit(&taken_records[my_record], 0, memory_order_release);
	my_record = 0;
}

static int enqueue(void *self, uint64_t value)
{
	struct wcq *wcq = self;
	uint64_t index = take_index(&wcq->free);

	if (index == NO_INDEX)
		return 0;
	wcq->values[index] = value;
	put_index(&wcq->used, index);
	return 1;
}

static int dequeue(void *self, uint64_t *value)
{
	struct wcq *wcq = self;
	uint64_t index = take_index(&wcq->used);

	if (index == NO_INDEX)
		return 0;
	*value = wcq->values[index];
	put_index(&wcq->free, index);
	return 1;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

const struct ring_contender wcq_ring_contender = {
	.about = {.name = "wCQ (by the book)",
              .version = "Nikolaev, Ravindran 2022",
              .lacks = "other capacities than powers of two",
              .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pairs = pairs,
};
