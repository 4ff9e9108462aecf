/*
 * wcq.c - wCQ, a queue whose operations end after a bounded number of steps, written anew from its
 * description: Nikolaev and Ravindran, "wCQ: A Fast Wait-Free Queue with Bounded Memory Usage", SPAA 2022.
 *
 * Kept: SCQ (scq.c) as the fast path. An operation that failed PATIENCE times asks for help: its thread's
 * record says what is to be done, and the state of the request, {ticket, DRAWING, FINISHED}, is shared
 * by all that work at it. A ticket is drawn in two phases. First the state becomes {ticket, DRAWING};
 * then one compare-and-swap of two words raises the counter and leaves beside it a pointer to a struct
 * draw, from which anybody can clear DRAWING; the next draw begins only after that. All helpers try the
 * same ticket, and the first change of its entry decides: the index comes in, or the entry's note grows
 * to the cycle, so that it never will. A slow enqueue puts its index "not confirmed"; who takes such an
 * index finishes the request first, so that no helper puts it again.
 *
 * Changed, because otherwise values are lost or come out twice. bench-judge finds each of these changes
 * taken back (C1 only if threads also pause where it says).
 *
 *  C1  A helper that read a draw looks again whether the counter still points there, before it looks whether
 *      the draw is still the same one. Otherwise it can clear DRAWING for a draw that was prepared but
 *      not made: the pointer that it followed belonged to the draw before. The ticket then goes
 *      to another thread, too; both enqueues find the entry filled; one value is lost. (Published:
 *      load_global_help_phase2 compares the sequence numbers of the record only. A pause between its load of
 *      the pointer and its loads of the record shows it.)
 *  C2  For the same reason a thread has one struct draw for head and another for tail. (Published: one
 *      phase2rec. It may still stand beside the tail while its thread prepares a draw of the head.)
 *  C3  An entry of the ticket's cycle without an index was marked by a dequeue, and does not mean "already
 *      put". (Published: try_enq_slow compares the cycles only.)
 *  C4  The owner goes on until the state says FINISHED. (Published: try_deq_slow also ends if it could
 *      not set FINISHED because another helper already drew the next ticket; what is put there then
 *      has no taker.)
 *  C5  A thread whose request another one completed resets the threshold itself: the helper may stand
 *      between its put and its store. Until then "empty" would be wrong.
 *  C6  A helper that drew a ticket looks whether the request is still the one that it read. (Published:
 *      enqueue_slow does not, and puts the last request's index at a ticket of the next. The authors' code
 *      looks.)
 *
 * Left out: lists of such rings, and processors without a compare-and-swap of two words. The capacity is
 * rounded up to a power of two. At most MOST_THREADS threads.
 *
 * Progress: wait-free for each ring of indices. A thread that is stopped between the two rings keeps one place,
 * so "full" is not exact beside it.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rivals.h"

enum { LINE = 64, PER_LINE_BITS = 2 /* entries of a line */, MOST_THREADS = 128 };
#ifdef WCQ_IMPATIENT /* bench-judge: nearly all operations are slow */
enum { ENQUEUE_PATIENCE = 1, DEQUEUE_PATIENCE = 1, HELP_DELAY = 1 };
#else
enum { ENQUEUE_PATIENCE = 16, DEQUEUE_PATIENCE = 64, HELP_DELAY = 16 };
#endif
/* The state of a request: its ticket above two bits. */
enum { FINISHED = 1, DRAWING = 2, STATE_BITS = 2 };
enum { NO_REQUEST, ENQUEUE, DEQUEUE };

#define NO_INDEX UINT64_MAX

/* may_alias: the halves are accessed with their own types, too (lib/weir/ring/ltq16.c says why that works). */
__extension__ typedef unsigned __int128 __attribute__((may_alias)) whole;

/* Two words: {entry, note} and {counter, address of a struct draw}. */
struct pair {
	_Alignas(16) _Atomic(uint64_t) first;
	_Atomic(uint64_t) second;
};

struct words {
	uint64_t first, second;
};

/* The second phase of a draw, for others to complete. Valid while both numbers are equal. */
struct draw {
	_Atomic(uint64_t) begun;
	_Atomic(_Atomic(uint64_t) *) state;
	_Atomic(uint64_t) ticket;
	_Atomic(uint64_t) prepared;
};

struct record {
	_Alignas(LINE) unsigned until_help, next; /* owner */
	struct draw of_tail, of_head;
	_Alignas(LINE) _Atomic(uint64_t) ended; /* the number of the request to come, or of that which is open */
	_Atomic(unsigned) kind;
	_Atomic(uint64_t) index, first_ticket;
	_Atomic(uint64_t) tail, head; /* states; what they show only grows */
	_Atomic(uint64_t) opened;     /* the number of the last request */
};

struct indices {
	_Alignas(LINE) struct pair head;
	_Alignas(LINE) _Atomic(int64_t) threshold;
	_Alignas(LINE) struct pair tail;
	_Alignas(LINE) unsigned order; /* 2n is 1 << order */
	struct pair *entries;
	struct record *records;
};

struct wcq {
	struct indices used, free;
	uint64_t *values;
};

/* ---- threads ---- */

static _Atomic(unsigned) taken[MOST_THREADS], ever_taken;
static _Thread_local unsigned my_number; /* from 1; 0: none yet */

static unsigned take_number(void)
{
	for (unsigned i = 0; i < MOST_THREADS; i++) {
		unsigned free = 0, most = atomic_load_explicit(&ever_taken, memory_order_seq_cst);

		if (!atomic_compare_exchange_strong_explicit(&taken[i], &free, 1, memory_order_seq_cst, memory_order_seq_cst))
			continue;
		while (most <= i && !atomic_compare_exchange_strong_explicit(&ever_taken, &most, i + 1, memory_order_seq_cst,
		                                                             memory_order_seq_cst))
			continue;
		return i + 1;
	}
	exit(3);
}

static inline struct record *my_record(const struct indices *ring)
{
	if (my_number == 0)
		my_number = take_number();
	return &ring->records[my_number - 1];
}

static void thread_end(void *self)
{
	(void)self;
	if (my_number != 0)
		atomic_store_explicit(&taken[my_number - 1], 0, memory_order_seq_cst);
	my_number = 0;
}

/* ---- words ---- */

static inline uint64_t load(_Atomic(uint64_t) *place)
{
	return atomic_load_explicit(place, memory_order_seq_cst);
}

static inline void store(_Atomic(uint64_t) *place, uint64_t value)
{
	atomic_store_explicit(place, value, memory_order_seq_cst);
}

static inline int swap_word(_Atomic(uint64_t) *place, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(place, &from, to, memory_order_seq_cst, memory_order_seq_cst);
}

static inline int swap_pair(struct pair *pair, struct words from, struct words to)
{
	return __sync_bool_compare_and_swap((whole *)(void *)pair, (whole)from.second << 64 | from.first,
	                                    (whole)to.second << 64 | to.first);
}

/* An entry: the cycle above the bits "is safe" and "is confirmed" above the index. */
static inline uint64_t no_index(const struct indices *ring) /* taken out */
{
	return (UINT64_C(1) << ring->order) - 1;
}

static inline uint64_t never_index(const struct indices *ring) /* a dequeue came first */
{
	return no_index(ring) - 1;
}

static inline uint64_t confirmed_bit(const struct indices *ring)
{
	return UINT64_C(1) << ring->order;
}

static inline uint64_t safe_bit(const struct indices *ring)
{
	return UINT64_C(2) << ring->order;
}

static inline uint64_t index_of(const struct indices *ring, uint64_t entry)
{
	return entry & no_index(ring);
}

static inline int has_index(const struct indices *ring, uint64_t entry)
{
	return index_of(ring, entry) < never_index(ring);
}

static inline uint64_t cycle_of_entry(const struct indices *ring, uint64_t entry)
{
	return entry >> (ring->order + 2);
}

static inline uint64_t cycle_of(const struct indices *ring, uint64_t ticket)
{
	return ticket >> ring->order;
}

static inline uint64_t first_bits(const struct indices *ring, uint64_t ticket)
{
	return cycle_of(ring, ticket) << (ring->order + 2);
}

static inline struct pair *entry_of(const struct indices *ring, uint64_t ticket)
{
	uint64_t at = ticket & no_index(ring);

	if (ring->order > PER_LINE_BITS)
		at = (at << PER_LINE_BITS & no_index(ring)) | at >> (ring->order - PER_LINE_BITS);
	return &ring->entries[at];
}

static inline int64_t full_threshold(const struct indices *ring)
{
	return (int64_t)(UINT64_C(3) << ring->order >> 1) - 1;
}

static inline void reset_threshold(struct indices *ring)
{
	if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) != full_threshold(ring))
		atomic_store_explicit(&ring->threshold, full_threshold(ring), memory_order_seq_cst);
}

/* An entry of an earlier cycle into which the enqueue of the ticket may put its index. */
static inline int takes(struct indices *ring, uint64_t entry, uint64_t ticket)
{
	return !has_index(ring, entry) && ((entry & safe_bit(ring)) != 0 || load(&ring->head.first) <= ticket);
}

/* What a dequeue makes of an entry of an earlier cycle: no enqueue of its ticket may use it. */
static inline uint64_t marked(const struct indices *ring, uint64_t entry, uint64_t ticket)
{
	if (has_index(ring, entry))
		return entry & ~safe_bit(ring);
	return first_bits(ring, ticket) | (entry & safe_bit(ring)) | confirmed_bit(ring) | never_index(ring);
}

/* The heads have overtaken the tail: moves it, so that enqueues need not try each ticket. */
static void catch_up(struct indices *ring, uint64_t tail, uint64_t head)
{
	while (tail < head && !swap_word(&ring->tail.first, tail, head)) {
		head = load(&ring->head.first);
		tail = load(&ring->tail.first);
	}
}

/* ---- tickets of slow operations ---- */

static inline void finish(_Atomic(uint64_t) *state, uint64_t ticket)
{
	(void)swap_word(state, ticket << STATE_BITS, ticket << STATE_BITS | FINISHED);
}

/*
 * Completes the draw that stands beside the counter, if one does. Returns the counter at a moment before which
 * all draws were complete: it is read before the pointer.
 */
static uint64_t settle(struct pair *counter)
{
	for (;;) {
		uint64_t count = load(&counter->first), address = load(&counter->second), prepared, ticket;
		struct draw *draw = (struct draw *)(uintptr_t)address;
		_Atomic(uint64_t) *state;

		if (draw == NULL)
			return count;
		prepared = load(&draw->prepared);
		state = atomic_load_explicit(&draw->state, memory_order_seq_cst);
		ticket = load(&draw->ticket);
		/* C1. A thread prepares a draw only while the counter does not point to its last one. */
		count = load(&counter->first);
		if (load(&counter->second) != address || load(&draw->begun) != prepared)
			continue;
		(void)swap_word(state, ticket << STATE_BITS | DRAWING, ticket << STATE_BITS);
		(void)swap_pair(counter, (struct words){count, address}, (struct words){count, 0});
	}
}

static void prepare(struct draw *draw, _Atomic(uint64_t) *state, uint64_t ticket)
{
	uint64_t number = load(&draw->begun) + 1;

	store(&draw->begun, number);
	atomic_store_explicit(&draw->state, state, memory_order_seq_cst);
	store(&draw->ticket, ticket);
	store(&draw->prepared, number);
}

/*
 * Goes on from *seen to the next ticket of the request. Several threads may do so, and get the same
 * ticket. Returns 0 if the request is finished.
 */
static int draw_ticket(struct pair *counter, _Atomic(uint64_t) *state, uint64_t *seen, _Atomic(int64_t) *threshold,
                       struct draw *draw)
{
	struct words drawn = {0, (uint64_t)(uintptr_t)draw};
	uint64_t ticket;

	do {
		uint64_t now;

		if ((load(state) & FINISHED) != 0)
			return 0;
		ticket = settle(counter);
		now = *seen;
		if (atomic_compare_exchange_strong_explicit(state, &now, ticket << STATE_BITS | DRAWING, memory_order_seq_cst,
		                                            memory_order_seq_cst)) {
			*seen = ticket << STATE_BITS | DRAWING;
		} else {
			*seen = now;
			if ((now & FINISHED) != 0)
				return 0;
			if ((now & DRAWING) == 0)
				return 1;
			ticket = now >> STATE_BITS;
		}
		prepare(draw, state, ticket);
		drawn.first = ticket + 1;
	} while (!swap_pair(counter, (struct words){ticket, 0}, drawn));
	if (threshold != NULL)
		(void)atomic_fetch_sub_explicit(threshold, 1, memory_order_seq_cst);
	(void)swap_word(state, *seen, ticket << STATE_BITS);
	(void)swap_pair(counter, drawn, (struct words){drawn.first, 0});
	*seen = ticket << STATE_BITS;
	return 1;
}

/* ---- slow operations, by owners and helpers ---- */

/* Both words at one moment: notes only grow. */
static struct words read_entry(struct pair *entry)
{
	struct words words;

	do {
		words.second = load(&entry->second);
		words.first = load(&entry->first);
	} while (load(&entry->second) != words.second);
	return words;
}

/* Tries to put the index at a ticket. All that do so agree about the outcome. */
static void put_at(struct indices *ring, _Atomic(uint64_t) *state, uint64_t ticket, uint64_t index)
{
	struct pair *place = entry_of(ring, ticket);
	uint64_t cycle = cycle_of(ring, ticket), ours = first_bits(ring, ticket) | safe_bit(ring) | index;

	for (;;) {
		struct words seen = read_entry(place);

		if (cycle_of_entry(ring, seen.first) == cycle && index_of(ring, seen.first) != never_index(ring)) /* C3 */
			finish(state, ticket);
		if (cycle_of_entry(ring, seen.first) >= cycle || seen.second >= cycle)
			return;
		if (!takes(ring, seen.first, ticket)) {
			if (swap_pair(place, seen, (struct words){seen.first, cycle}))
				return;
			continue;
		}
		if (!swap_pair(place, seen, (struct words){ours, seen.second}))
			continue;
		finish(state, ticket);
		(void)swap_word(&place->first, ours, ours | confirmed_bit(ring));
		reset_threshold(ring);
		return;
	}
}

/* Tries to find an index at a ticket, which the owner takes out. */
static void find_at(struct indices *ring, _Atomic(uint64_t) *state, uint64_t ticket)
{
	struct pair *place = entry_of(ring, ticket);
	uint64_t cycle = cycle_of(ring, ticket), tail;

	for (;;) {
		struct words seen = read_entry(place), after;

		if (cycle_of_entry(ring, seen.first) == cycle && index_of(ring, seen.first) != never_index(ring)) {
			finish(state, ticket);
			return;
		}
		if (cycle_of_entry(ring, seen.first) >= cycle)
			break;
		after.first = marked(ring, seen.first, ticket);
		after.second = has_index(ring, seen.first) && seen.second < cycle ? cycle : seen.second;
		if ((after.first == seen.first && after.second == seen.second) || swap_pair(place, seen, after))
			break;
	}
	tail = load(&ring->tail.first);
	if (tail <= ticket + 1)
		catch_up(ring, tail, ticket + 1);
	if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) < 0)
		finish(state, ticket);
}

/* Works at a request until it is finished, or, as a helper, until another request has begun. */
static void work_at(struct indices *ring, struct record *record, unsigned kind, uint64_t number, uint64_t index,
                    uint64_t first_ticket)
{
	struct record *mine = my_record(ring);
	uint64_t seen = first_ticket << STATE_BITS;

	if (kind == ENQUEUE) {
		while (draw_ticket(&ring->tail, &record->tail, &seen, NULL, &mine->of_tail)) {
			if (load(&record->ended) != number) /* C6 */
				return;
			put_at(ring, &record->tail, seen >> STATE_BITS, index);
		}
	} else {
		while (draw_ticket(&ring->head, &record->head, &seen, &ring->threshold, &mine->of_head)) {
			if (load(&record->ended) != number)
				return;
			find_at(ring, &record->head, seen >> STATE_BITS);
		}
	}
}

/* Opens a request of this thread, and works at it until it is finished (C4). */
static void request(struct indices *ring, unsigned kind, _Atomic(uint64_t) *state, uint64_t index, uint64_t ticket)
{
	struct record *mine = my_record(ring);
	uint64_t number = load(&mine->ended);

	store(state, ticket << STATE_BITS);
	store(&mine->first_ticket, ticket);
	store(&mine->index, index);
	atomic_store_explicit(&mine->kind, kind, memory_order_seq_cst);
	store(&mine->opened, number);
	work_at(ring, mine, kind, number, index, ticket);
	atomic_store_explicit(&mine->kind, NO_REQUEST, memory_order_seq_cst);
	store(&mine->ended, number + 1);
}

/* Looks at another thread's record, after every HELP_DELAY operations. */
static void help(struct indices *ring, struct record *mine)
{
	struct record *other = &ring->records[mine->next];
	uint64_t number, index, first_ticket;
	unsigned kind;

	mine->until_help = HELP_DELAY;
	mine->next = (mine->next + 1) % atomic_load_explicit(&ever_taken, memory_order_seq_cst);
	if (other == mine || atomic_load_explicit(&other->kind, memory_order_seq_cst) == NO_REQUEST)
		return;
	number = load(&other->opened);
	kind = atomic_load_explicit(&other->kind, memory_order_seq_cst);
	index = load(&other->index);
	first_ticket = load(&other->first_ticket);
	if (kind != NO_REQUEST && load(&other->ended) == number)
		work_at(ring, other, kind, number, index, first_ticket);
}

static inline void help_at_times(struct indices *ring)
{
	struct record *mine = my_record(ring);

	if (--mine->until_help == 0)
		help(ring, mine);
}

/* ---- operations ---- */

static void put_index(struct indices *ring, uint64_t index)
{
	uint64_t ticket;
	struct record *mine;

	help_at_times(ring);
	for (int patience = ENQUEUE_PATIENCE; patience > 0; patience--) {
		_Atomic(uint64_t) *place;
		uint64_t entry, ours;

		ticket = atomic_fetch_add_explicit(&ring->tail.first, 1, memory_order_seq_cst);
		place = &entry_of(ring, ticket)->first;
		entry = load(place);
		ours = first_bits(ring, ticket) | safe_bit(ring) | confirmed_bit(ring) | index;
		while (cycle_of_entry(ring, entry) < cycle_of(ring, ticket) && takes(ring, entry, ticket)) {
			if (!atomic_compare_exchange_strong_explicit(place, &entry, ours, memory_order_seq_cst,
			                                             memory_order_seq_cst))
				continue;
			reset_threshold(ring);
			return;
		}
	}
	mine = my_record(ring);
	request(ring, ENQUEUE, &mine->tail, index, ticket);
	reset_threshold(ring); /* C5 */
}

/* The enqueue that put its index at the ticket, and did not confirm it, is finished before the index goes out. */
static void finish_enqueue(struct indices *ring, uint64_t ticket)
{
	unsigned threads = atomic_load_explicit(&ever_taken, memory_order_seq_cst);

	for (unsigned i = 0; i < threads; i++) {
		if (load(&ring->records[i].tail) >> STATE_BITS == ticket) {
			finish(&ring->records[i].tail, ticket);
			return;
		}
	}
}

static inline uint64_t take_out(struct indices *ring, uint64_t ticket, uint64_t entry)
{
	if ((entry & confirmed_bit(ring)) == 0)
		finish_enqueue(ring, ticket);
	(void)atomic_fetch_or_explicit(&entry_of(ring, ticket)->first, no_index(ring) | confirmed_bit(ring),
	                               memory_order_seq_cst);
	return index_of(ring, entry);
}

/* Tries the entry of a ticket. Returns its index, or NO_INDEX after it has marked the entry. */
static inline uint64_t take_or_mark(struct indices *ring, uint64_t ticket)
{
	_Atomic(uint64_t) *place = &entry_of(ring, ticket)->first;
	uint64_t entry = load(place);

	do {
		if (cycle_of_entry(ring, entry) == cycle_of(ring, ticket))
			return take_out(ring, ticket, entry);
		if (cycle_of_entry(ring, entry) > cycle_of(ring, ticket))
			break;
	} while (!atomic_compare_exchange_strong_explicit(place, &entry, marked(ring, entry, ticket), memory_order_seq_cst,
	                                                  memory_order_seq_cst));
	return NO_INDEX;
}

static uint64_t take_index_slowly(struct indices *ring, uint64_t ticket)
{
	struct record *mine = my_record(ring);
	uint64_t entry;

	request(ring, DEQUEUE, &mine->head, 0, ticket);
	ticket = load(&mine->head) >> STATE_BITS;
	entry = load(&entry_of(ring, ticket)->first);
	if (cycle_of_entry(ring, entry) == cycle_of(ring, ticket) && has_index(ring, entry))
		return take_out(ring, ticket, entry);
	return NO_INDEX;
}

static uint64_t take_index(struct indices *ring)
{
	uint64_t ticket;

	if (atomic_load_explicit(&ring->threshold, memory_order_seq_cst) < 0)
		return NO_INDEX;
	help_at_times(ring);
	for (int patience = DEQUEUE_PATIENCE; patience > 0; patience--) {
		uint64_t index, tail;

		ticket = atomic_fetch_add_explicit(&ring->head.first, 1, memory_order_seq_cst);
		index = take_or_mark(ring, ticket);
		if (index != NO_INDEX)
			return index;
		tail = load(&ring->tail.first);
		if (tail <= ticket + 1) {
			catch_up(ring, tail, ticket + 1);
			(void)atomic_fetch_sub_explicit(&ring->threshold, 1, memory_order_seq_cst);
			return NO_INDEX;
		}
		if (atomic_fetch_sub_explicit(&ring->threshold, 1, memory_order_seq_cst) <= 0)
			return NO_INDEX;
	}
	return take_index_slowly(ring, ticket);
}

static void *allocate(size_t bytes)
{
	void *memory = aligned_alloc(LINE, (bytes + LINE - 1) / LINE * LINE);

	if (memory == NULL)
		exit(3);
	memset(memory, 0, bytes);
	return memory;
}

/* Cycle 0 is before the first: all entries are free. */
static void indices_init(struct indices *ring, unsigned order)
{
	size_t entries = (size_t)1 << order;

	ring->order = order;
	ring->entries = allocate(entries * sizeof(*ring->entries));
	ring->records = allocate(MOST_THREADS * sizeof(*ring->records));
	for (size_t i = 0; i < entries; i++)
		atomic_init(&ring->entries[i].first, safe_bit(ring) | confirmed_bit(ring) | no_index(ring));
	for (size_t i = 0; i < MOST_THREADS; i++) {
		ring->records[i].until_help = HELP_DELAY;
		atomic_init(&ring->records[i].ended, 1);
	}
	atomic_init(&ring->head.first, entries);
	atomic_init(&ring->tail.first, entries);
	atomic_init(&ring->threshold, -1);
}

static void *create(size_t capacity)
{
	struct wcq *wcq = allocate(sizeof(*wcq));
	unsigned order = 2; /* indices of one bit would be those that mean "none" */

	while ((size_t)1 << order < 2 * capacity)
		order++;
	wcq->values = allocate(((size_t)1 << order >> 1) * sizeof(uint64_t));
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
	free(wcq->used.records);
	free(wcq->free.entries);
	free(wcq->free.records);
	free(wcq->values);
	free(wcq);
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
	.thread_end = thread_end,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pairs = pairs,
};
