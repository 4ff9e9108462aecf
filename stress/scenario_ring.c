/*
 * scenario_ring.c - rings: nothing lost, doubled or reordered, exact capacity, closing is final.
 *
 * Rounds on fresh rings of random capacity. Producers enqueue numbered values, singly and in batches, until the ring closes at a
 * random moment; consumers dequeue until they are told that the ring is closed and drained. Checked:
 *   loss, duplicate   each number that an enqueue accepted was dequeued exactly once
 *   order             each consumer sees the numbers of one producer grow: a FIFO that is linearizable guarantees it
 *   publication       what a producer wrote to plain memory before its enqueue is what the consumer reads there
 *   end               no enqueue succeeds that starts after close() returned, or after a dequeue answered WEIR_OUT_OF_RANGE
 *   capacity          every second round counts, on both sides, what may have happened and what certainly has; from these follow
 *                     bounds on the number of items inside at some moment: never above the capacity, and at the capacity
 *                     when a producer was told "full", at 0 when a consumer was told "empty"
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <weir/ring.h>

#include "scenarios.h"

enum { MAX_SIDE = 16, MAX_BATCH = 24, NUMBER_BITS = 40 };

static const uint64_t numbers_per_producer = 20000;

/* One thread of a round. */
struct party {
	struct round *round;
	unsigned index;
	/* Bounds of the number of its operations that took effect: read by the other side's checks. */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) most;
	_Atomic(uint64_t) least;
	/* Producer: the numbers that went in are 0 .. count-1. Consumer: what came out, in order. */
	uint64_t count;
	uint64_t *log;
	uint64_t *payload; /* producer: what the consumer of number i finds at [i] */
};

struct round {
	weir_ring *ring;
	size_t capacity;
	uint64_t mask;  /* laid over the values, so that all bits are used */
	uint64_t limit; /* numbers per producer */
	int counts;
	unsigned producers, consumers;
	struct party producer[MAX_SIDE], consumer[MAX_SIDE];
	_Atomic(uint32_t) closed; /* close() returned */
	_Atomic(uint32_t) ended;  /* a dequeue answered WEIR_OUT_OF_RANGE */
};

static uint64_t value_of(const struct round *round, unsigned producer, uint64_t number)
{
	return ((uint64_t)producer << NUMBER_BITS | number) ^ round->mask;
}

static uint64_t payload_of(unsigned producer, uint64_t number)
{
	return stress_mix((uint64_t)producer << NUMBER_BITS | number);
}

/* -- bounds on what is inside ------------------------------------------------------------------------------------------------- */

/* [seq_cst] throughout: a bound holds because of the order in which the counters are read. */
static uint64_t sum_most(struct party parties[], unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += weiri_load_seq_cst(&parties[i].most);
	return sum;
}

static uint64_t sum_least(struct party parties[], unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += weiri_load_seq_cst(&parties[i].least);
	return sum;
}

static void about_to_move(struct party *self, uint64_t wanted)
{
	if (self->round->counts)
		(void)weiri_fetch_add_seq_cst(&self->most, wanted);
}

static void has_moved(struct party *self, uint64_t wanted, uint64_t moved)
{
	if (!self->round->counts)
		return;
	(void)weiri_fetch_add_seq_cst(&self->least, moved);
	(void)weiri_fetch_sub_seq_cst(&self->most, wanted - moved);
}

/* What went in for certain by now, less what may have come out by then: no more than fits. */
static void check_not_above_capacity(struct round *round)
{
	uint64_t in, out;

	if (!round->counts)
		return;
	in = sum_least(round->producer, round->producers);
	out = sum_most(round->consumer, round->consumers);
	STRESS_CHECK(in <= out + round->capacity, "capacity %zu exceeded: %llu enqueued, at most %llu dequeued",
	             round->capacity, (unsigned long long)in, (unsigned long long)out);
}

/* out_before: what had certainly come out before the enqueue that found the ring full. */
static void check_was_full(struct round *round, uint64_t out_before)
{
	uint64_t in = round->counts ? sum_most(round->producer, round->producers) : 0;

	STRESS_CHECK(!round->counts || in >= out_before + round->capacity,
	             "told full, but of capacity %zu at most %llu - %llu were in", round->capacity, (unsigned long long)in,
	             (unsigned long long)out_before);
}

static void check_was_empty(struct round *round, uint64_t in_before)
{
	uint64_t out = round->counts ? sum_most(round->consumer, round->consumers) : 0;

	STRESS_CHECK(!round->counts || in_before <= out, "told empty, but at least %llu - %llu were in",
	             (unsigned long long)in_before, (unsigned long long)out);
}

/* -- producers ---------------------------------------------------------------------------------------------------------------- */

static enum weir_status enqueue(struct stress_thread *self, struct party *party, size_t wanted, size_t *moved)
{
	struct round *round = party->round;
	uint64_t values[MAX_BATCH];
	enum weir_status status;

	for (size_t i = 0; i < wanted; i++) {
		party->payload[party->count + i] = payload_of(party->index, party->count + i);
		values[i] = value_of(round, party->index, party->count + i);
	}
	*moved = 0;
	about_to_move(party, wanted);
	stress_begin(self, wanted == 1 ? "try_enqueue" : "try_enqueue_many");
	if (wanted == 1) {
		status = weir_ring_try_enqueue(round->ring, values[0]);
		*moved = status == WEIR_OK;
	} else {
		status = weir_ring_try_enqueue_many(round->ring, values, wanted, moved);
	}
	has_moved(party, wanted, *moved);
	STRESS_CHECK(*moved <= wanted && (*moved != 0) == (status == WEIR_OK), "enqueue of %zu: %s, but %zu went in",
	             wanted, weir_status_name(status), *moved);
	return status;
}

static void produce(struct stress_thread *self, void *context)
{
	struct party *party = context;
	struct round *round = party->round;
	unsigned spins = 0;

	while (party->count < round->limit) {
		uint64_t left = round->limit - party->count, batch = 1 + stress_below(self, MAX_BATCH);
		size_t wanted = stress_one_in(self, 2) ? 1 : (size_t)(batch < left ? batch : left), moved;
		/* [acquire] what was read before the call was set before it. */
		uint32_t ended = weiri_load_acquire(&round->ended), closed = weiri_load_acquire(&round->closed);
		uint64_t out_before = round->counts ? sum_least(round->consumer, round->consumers) : 0;
		enum weir_status status = enqueue(self, party, wanted, &moved);

		STRESS_CHECK(moved == 0 || !ended, "an enqueue succeeded after a dequeue had answered WEIR_OUT_OF_RANGE");
		STRESS_CHECK(moved == 0 || !closed, "an enqueue succeeded that began after close() returned");
		party->count += moved;
		if (status == WEIR_OK) {
			stress_end(self, moved);
			spins = 0;
			check_not_above_capacity(round);
		} else if (status == WEIR_WOULD_BLOCK) {
			STRESS_CHECK(!closed, "a closed ring answered \"full\" to an enqueue");
			check_was_full(round, out_before);
			stress_back_off(&spins);
		} else {
			STRESS_CHECK(status == WEIR_CANCELLED, "an enqueue answered %s", weir_status_name(status));
			return;
		}
	}
}

/* -- consumers ---------------------------------------------------------------------------------------------------------------- */

static void take_note(struct party *party, uint64_t last[], uint64_t value)
{
	struct round *round = party->round;
	uint64_t bare = value ^ round->mask, producer = bare >> NUMBER_BITS;
	uint64_t number = bare & ((UINT64_C(1) << NUMBER_BITS) - 1);

	STRESS_CHECK(producer < round->producers && number < round->limit, "dequeued 0x%llx, which nobody enqueued",
	             (unsigned long long)value);
	/* last[] counts from 1: 0 is none yet. */
	STRESS_CHECK(number + 1 > last[producer], "out of order: producer %llu's number %llu came after its %llu",
	             (unsigned long long)producer, (unsigned long long)number, (unsigned long long)(last[producer] - 1));
	last[producer] = number + 1;
	STRESS_CHECK(round->producer[producer].payload[number] == payload_of((unsigned)producer, number),
	             "producer %llu's memory for number %llu was not visible", (unsigned long long)producer,
	             (unsigned long long)number);
	STRESS_CHECK(party->count < round->limit * round->producers, "more values came out than could go in");
	party->log[party->count++] = bare;
}

static enum weir_status dequeue(struct stress_thread *self, struct party *party, uint64_t values[], size_t wanted,
                                size_t *moved)
{
	enum weir_status status;

	*moved = 0;
	about_to_move(party, wanted);
	stress_begin(self, wanted == 1 ? "try_dequeue" : "try_dequeue_many");
	if (wanted == 1) {
		status = weir_ring_try_dequeue(party->round->ring, values);
		*moved = status == WEIR_OK;
	} else {
		status = weir_ring_try_dequeue_many(party->round->ring, values, wanted, moved);
	}
	has_moved(party, wanted, *moved);
	STRESS_CHECK(*moved <= wanted && (*moved != 0) == (status == WEIR_OK), "dequeue of %zu: %s, but %zu came out",
	             wanted, weir_status_name(status), *moved);
	return status;
}

static void consume(struct stress_thread *self, void *context)
{
	struct party *party = context;
	struct round *round = party->round;
	uint64_t last[MAX_SIDE] = {0}, values[MAX_BATCH];
	unsigned spins = 0;

	for (;;) {
		size_t wanted = stress_one_in(self, 2) ? 1 : (size_t)(1 + stress_below(self, MAX_BATCH)), moved;
		uint32_t ended = weiri_load_acquire(&round->ended); /* [acquire] set before our call */
		uint64_t in_before = round->counts ? sum_least(round->producer, round->producers) : 0;
		enum weir_status status = dequeue(self, party, values, wanted, &moved);

		STRESS_CHECK(moved == 0 || !ended, "a dequeue succeeded after another had answered WEIR_OUT_OF_RANGE");
		for (size_t i = 0; i < moved; i++)
			take_note(party, last, values[i]);
		stress_end(self, moved);
		if (status == WEIR_OUT_OF_RANGE) {
			weiri_store_release(&round->ended, 1u); /* [release] pairs with the looks before calls */
			return;
		}
		STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "a dequeue answered %s",
		             weir_status_name(status));
		if (status == WEIR_WOULD_BLOCK) {
			check_was_empty(round, in_before);
			stress_back_off(&spins);
		} else {
			spins = 0;
		}
	}
}

/* -- a round ------------------------------------------------------------------------------------------------------------------ */

static void check_each_once(struct round *round)
{
	for (unsigned p = 0; p < round->producers; p++) {
		uint64_t count = round->producer[p].count, seen = 0;
		unsigned char *marks = calloc((size_t)count + 1, 1);

		STRESS_CHECK(marks != NULL, "the harness has no memory");
		for (unsigned c = 0; c < round->consumers; c++) {
			const struct party *consumer = &round->consumer[c];

			for (uint64_t i = 0; i < consumer->count; i++) {
				uint64_t number = consumer->log[i] & ((UINT64_C(1) << NUMBER_BITS) - 1);

				if (consumer->log[i] >> NUMBER_BITS != p)
					continue;
				STRESS_CHECK(number < count, "producer %u's number %llu came out, its enqueue had failed", p,
				             (unsigned long long)number);
				STRESS_CHECK(!marks[number]++, "producer %u's number %llu came out twice", p,
				             (unsigned long long)number);
				seen++;
			}
		}
		STRESS_CHECK(seen == count, "producer %u: %llu went in, %llu came out", p, (unsigned long long)count,
		             (unsigned long long)seen);
		free(marks);
	}
}

static void check_end_is_final(struct round *round)
{
	uint64_t value;
	enum weir_status enqueued = weir_ring_try_enqueue(round->ring, 1);
	enum weir_status dequeued = weir_ring_try_dequeue(round->ring, &value);

	STRESS_CHECK(enqueued == WEIR_CANCELLED && dequeued == WEIR_OUT_OF_RANGE, "at the end: enqueue %s, dequeue %s",
	             weir_status_name(enqueued), weir_status_name(dequeued));
	STRESS_CHECK(weir_ring_size_approx(round->ring) == 0, "at the end the size is %zu",
	             weir_ring_size_approx(round->ring));
}

static uint64_t *numbers(uint64_t count)
{
	uint64_t *memory = calloc((size_t)count, sizeof(*memory));

	STRESS_CHECK(memory != NULL, "the harness has no memory");
	return memory;
}

static void set_up_party(struct round *round, struct party *party, unsigned index)
{
	party->round = round;
	party->index = index;
	party->count = 0;
	weiri_store_relaxed(&party->most, 0u); /* [relaxed] no other thread yet */
	weiri_store_relaxed(&party->least, 0u);
}

static size_t draw_capacity(struct stress_thread *self)
{
	switch (stress_below(self, 4)) {
	case 0: return 1 + (size_t)stress_below(self, 3);
	case 1: return 1 + (size_t)stress_below(self, 70);
	case 2: return (size_t)1 << stress_below(self, 11);
	default: return 8;
	}
}

static void set_up(struct round *round, struct stress_thread *self, enum weir_ring_format format)
{
	struct weir_ring_options options = {.struct_size = sizeof(options), .format = format};
	enum weir_status status;

	round->capacity = draw_capacity(self);
	round->mask = stress_random(self) << 50 | stress_below(self, 2);
	round->limit = stress_scaled(numbers_per_producer);
	round->counts = stress_one_in(self, 2);
	round->producers = 1 + (unsigned)stress_below(self, (stress_threads(4) + 1) / 2);
	round->consumers = 1 + (unsigned)stress_below(self, (stress_threads(4) + 1) / 2);
	if (round->producers > MAX_SIDE)
		round->producers = MAX_SIDE;
	if (round->consumers > MAX_SIDE)
		round->consumers = MAX_SIDE;
	weiri_store_relaxed(&round->closed, 0u); /* [relaxed] no other thread yet */
	weiri_store_relaxed(&round->ended, 0u);
	status = weir_ring_create(round->capacity, &options, &round->ring);
	STRESS_CHECK(status == WEIR_OK, "weir_ring_create(%zu): %s", round->capacity, weir_status_name(status));
	for (unsigned i = 0; i < round->producers; i++) {
		set_up_party(round, &round->producer[i], i);
		round->producer[i].payload = numbers(round->limit);
	}
	for (unsigned i = 0; i < round->consumers; i++) {
		set_up_party(round, &round->consumer[i], i);
		round->consumer[i].log = numbers(round->limit * round->producers);
	}
}

static void tear_down(struct round *round)
{
	weir_ring_destroy(round->ring);
	for (unsigned i = 0; i < round->producers; i++)
		free(round->producer[i].payload);
	for (unsigned i = 0; i < round->consumers; i++)
		free(round->consumer[i].log);
}

static void play(struct round *round, struct stress_thread *self)
{
	/* Short rounds are about the end, long ones about the stream. */
	uint64_t close_after_ns = stress_below(self, stress_one_in(self, 2) ? 200000 : 20000000);

	for (unsigned i = 0; i < round->producers; i++)
		(void)stress_start("producer", produce, &round->producer[i]);
	for (unsigned i = 0; i < round->consumers; i++)
		(void)stress_start("consumer", consume, &round->consumer[i]);
	stress_begin(self, "waiting to close");
	stress_let_pass(close_after_ns);
	weir_ring_close(round->ring);
	weiri_store_release(&round->closed, 1u); /* [release] pairs with the looks before enqueues */
	stress_join();
	stress_end(self, 1);
}

static void ring(enum weir_ring_format format)
{
	/* [plain] too large for the stack; one scenario runs at a time. */
	static struct round round;
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0;

	stress_disturb();
	while (stress_goes_on()) {
		set_up(&round, self, format);
		play(&round, self);
		check_each_once(&round);
		check_end_is_final(&round);
		tear_down(&round);
		rounds++;
	}
	stress_note("rounds", rounds);
}

int stress_has_ltq16(void)
{
	weir_ring *one;
	int has;

	STRESS_CHECK(weir_ring_create(1, NULL, &one) == WEIR_OK, "no ring");
	has = weir_ring_format(one) == WEIR_RING_FORMAT_LTQ16;
	weir_ring_destroy(one);
	return has;
}

void scenario_ring_ltq16(void)
{
	if (stress_has_ltq16())
		ring(WEIR_RING_FORMAT_LTQ16);
	else
		stress_skip("no 16-byte compare-and-swap here");
}

void scenario_ring_ltq64(void)
{
	ring(WEIR_RING_FORMAT_LTQ64);
}
