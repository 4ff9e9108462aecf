/*
 * scenario_ring.c - rings, in each format: no item is lost, duplicated or reordered, the capacity is
 * exact, closing is final.
 *
 * Rounds on new rings of random capacity. Producers enqueue numbered values, singly and in batches,
 * until the ring closes at a random moment; singly by calls and by a port. Consumers dequeue until the ring is closed and drained.
 * Checked:
 *   loss, duplicate   each number that an enqueue accepted was dequeued exactly once
 *   order             each consumer sees the numbers of one producer grow, as a linearizable FIFO
 *                     guarantees
 *   publication       what a producer wrote to plain memory before its enqueue is what the consumer
 *                     reads there
 *   end               no enqueue succeeds that starts after close() returned, or after a dequeue
 *                     returned WEIR_OUT_OF_RANGE
 *   capacity          every second round counts, on both sides, what may have happened and what
 *                     certainly has. This gives bounds on the number of items inside at some
 *                     moment: never above the capacity, at the capacity if a producer got "full",
 *                     and at 0 if a consumer got "empty"
 */
#include "harness.h"

#include <stdio.h>
#include <weir/ring_port.h>

#include "ledger.h"
#include "scenarios.h"

enum { MAX_BATCH = 24 };

static const uint64_t numbers_per_producer = 20000;

struct round {
	weir_ring *ring;
	weir_ring_port port;
	struct stress_object object; /* the ring, for the watchdog */
	size_t capacity;
	uint64_t mask; /* combined with the values, so that all bits are used */
	int counts;
	struct ledger ledger;
	_Atomic(uint32_t) closed; /* close() returned */
	_Atomic(uint32_t) ended;  /* a dequeue returned WEIR_OUT_OF_RANGE */
};

enum { AN_ITEM = 1, ROOM = 2 };

/* One scenario runs at a time. */
static struct round now;

/* -- bounds on what is inside ------------------------------------------------------------------ */

static void about_to_move(struct ledger_page *page, uint64_t wanted)
{
	if (now.counts)
		ledger_about_to_move(page, wanted);
}

static void has_moved(struct ledger_page *page, uint64_t wanted, uint64_t moved)
{
	if (now.counts)
		ledger_has_moved(page, wanted, moved);
}

/*
 * The number of items that were certainly enqueued by now, less what may have been dequeued by
 * then, must not exceed the capacity.
 */
static void check_not_above_capacity(void)
{
	uint64_t in, out;

	if (!now.counts)
		return;
	in = ledger_least_in(&now.ledger);
	out = ledger_most_out(&now.ledger);
	STRESS_CHECK(in <= out + now.capacity, "capacity %zu exceeded: %llu items were enqueued, at most %llu dequeued",
	             now.capacity, (unsigned long long)in, (unsigned long long)out);
}

/*
 * out_before: how many items had certainly been dequeued before the enqueue that found the ring
 * full.
 */
static void check_was_full(uint64_t out_before)
{
	uint64_t in = now.counts ? ledger_most_in(&now.ledger) : 0;

	STRESS_CHECK(!now.counts || in >= out_before + now.capacity,
	             "\"full\" was reported, but the capacity is %zu and at most %llu - %llu items were inside",
	             now.capacity, (unsigned long long)in, (unsigned long long)out_before);
}

static void check_was_empty(uint64_t in_before)
{
	uint64_t out = now.counts ? ledger_most_out(&now.ledger) : 0;

	STRESS_CHECK(!now.counts || in_before <= out, "\"empty\" was reported, but at least %llu - %llu items were inside",
	             (unsigned long long)in_before, (unsigned long long)out);
}

/* -- producers --------------------------------------------------------------------------------- */

static enum weir_status enqueue(struct stress_thread *self, struct ledger_page *page, size_t wanted, size_t *moved)
{
	uint64_t values[MAX_BATCH];
	enum weir_status status;

	for (size_t i = 0; i < wanted; i++)
		values[i] = ledger_make(page, i) ^ now.mask;
	*moved = 0;
	about_to_move(page, wanted);
	stress_begin_on(self, wanted == 1 ? "try_enqueue" : "try_enqueue_many", &now.object, ROOM);
	if (wanted == 1) {
		status = stress_one_in(self, 2) ? weir_ring_port_try_enqueue(&now.port, values[0])
		                                : weir_ring_try_enqueue(now.ring, values[0]);
		*moved = status == WEIR_OK;
	} else {
		status = weir_ring_try_enqueue_many(now.ring, values, wanted, moved);
	}
	has_moved(page, wanted, *moved);
	STRESS_CHECK(*moved <= wanted && (*moved != 0) == (status == WEIR_OK), "enqueue of %zu: %s, but %zu went in",
	             wanted, weir_status_name(status), *moved);
	return status;
}

static void produce(struct stress_thread *self, void *context)
{
	struct ledger_page *page = context;
	unsigned spins = 0;

	stress_gives(self, &now.object, AN_ITEM);
	while (page->count < now.ledger.limit) {
		uint64_t left = now.ledger.limit - page->count, batch = 1 + stress_below(self, MAX_BATCH);
		size_t wanted = stress_one_in(self, 2) ? 1 : (size_t)(batch < left ? batch : left), moved;
		/* [acquire] what was read before the call was set before it. */
		uint32_t ended = weiri_load_acquire(&now.ended), closed = weiri_load_acquire(&now.closed);
		uint64_t out_before = now.counts ? ledger_least_out(&now.ledger) : 0;
		enum weir_status status = enqueue(self, page, wanted, &moved);

		STRESS_CHECK(moved == 0 || !ended, "an enqueue succeeded after a dequeue had returned WEIR_OUT_OF_RANGE");
		STRESS_CHECK(moved == 0 || !closed, "an enqueue succeeded although it began after close() had returned");
		page->count += moved;
		if (status == WEIR_OK) {
			stress_end(self, moved);
			spins = 0;
			check_not_above_capacity();
		} else if (status == WEIR_WOULD_BLOCK) {
			STRESS_CHECK(!closed, "an enqueue into a closed ring returned \"full\"");
			check_was_full(out_before);
			stress_back_off(&spins);
		} else {
			STRESS_CHECK(status == WEIR_CANCELLED, "an enqueue returned %s", weir_status_name(status));
			return;
		}
	}
}

/* -- consumers --------------------------------------------------------------------------------- */

static enum weir_status dequeue(struct stress_thread *self, struct ledger_page *page, uint64_t values[], size_t wanted,
                                size_t *moved)
{
	enum weir_status status;

	*moved = 0;
	about_to_move(page, wanted);
	stress_begin_on(self, wanted == 1 ? "try_dequeue" : "try_dequeue_many", &now.object, AN_ITEM);
	if (wanted == 1) {
		status = stress_one_in(self, 2) ? weir_ring_port_try_dequeue(&now.port, values)
		                                : weir_ring_try_dequeue(now.ring, values);
		*moved = status == WEIR_OK;
	} else {
		status = weir_ring_try_dequeue_many(now.ring, values, wanted, moved);
	}
	has_moved(page, wanted, *moved);
	STRESS_CHECK(*moved <= wanted && (*moved != 0) == (status == WEIR_OK), "dequeue of %zu: %s, but %zu came out",
	             wanted, weir_status_name(status), *moved);
	return status;
}

static void consume(struct stress_thread *self, void *context)
{
	struct ledger_page *page = context;
	uint64_t values[MAX_BATCH];
	unsigned spins = 0;

	stress_gives(self, &now.object, ROOM);
	for (;;) {
		size_t wanted = stress_one_in(self, 2) ? 1 : (size_t)(1 + stress_below(self, MAX_BATCH)), moved;
		uint32_t ended = weiri_load_acquire(&now.ended); /* [acquire] set before this call */
		uint64_t in_before = now.counts ? ledger_least_in(&now.ledger) : 0;
		enum weir_status status = dequeue(self, page, values, wanted, &moved);

		STRESS_CHECK(moved == 0 || !ended, "a dequeue succeeded after another one had returned WEIR_OUT_OF_RANGE");
		for (size_t i = 0; i < moved; i++)
			ledger_take(&now.ledger, page, page->last, 1, values[i] ^ now.mask);
		stress_end(self, moved);
		if (status == WEIR_OUT_OF_RANGE) {
			weiri_store_release(&now.ended, 1u); /* [release] pairs with the looks before calls */
			return;
		}
		STRESS_CHECK(status == WEIR_OK || status == WEIR_WOULD_BLOCK, "a dequeue returned %s",
		             weir_status_name(status));
		if (status == WEIR_WOULD_BLOCK) {
			check_was_empty(in_before);
			stress_back_off(&spins);
		} else {
			spins = 0;
		}
	}
}

/* -- a round ----------------------------------------------------------------------------------- */

static void check_end_is_final(void)
{
	uint64_t value;
	enum weir_status enqueued = weir_ring_try_enqueue(now.ring, 1);
	enum weir_status dequeued = weir_ring_try_dequeue(now.ring, &value);

	STRESS_CHECK(enqueued == WEIR_CANCELLED && dequeued == WEIR_OUT_OF_RANGE, "at the end: enqueue %s, dequeue %s",
	             weir_status_name(enqueued), weir_status_name(dequeued));
	STRESS_CHECK(weir_ring_size_approx(now.ring) == 0, "at the end the size is %zu", weir_ring_size_approx(now.ring));
}

static void describe_ring(const void *structure, char *text, size_t size)
{
	(void)structure;
	(void)snprintf(text, size, "about %zu of %zu inside", weir_ring_size_approx(now.ring), now.capacity);
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

static void set_up(struct stress_thread *self, enum weir_ring_format format)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};
	unsigned side = (stress_threads(4) + 1) / 2, producers, consumers;
	enum weir_status status;

	now.capacity = draw_capacity(self);
	now.mask = stress_random(self) << 50 | stress_below(self, 2);
	now.counts = stress_one_in(self, 2);
	producers = 1 + (unsigned)stress_below(self, side);
	consumers = 1 + (unsigned)stress_below(self, side);
	ledger_open(&now.ledger, producers, consumers, stress_scaled(numbers_per_producer));
	weiri_store_relaxed(&now.closed, 0u); /* [relaxed] no other thread yet */
	weiri_store_relaxed(&now.ended, 0u);
	status = weir_ring_create(now.capacity, &options, &now.ring, NULL);
	STRESS_CHECK(status == WEIR_OK, "a ring of %zu: %s", now.capacity, weir_status_name(status));
	weir_ring_port_init(&now.port, now.ring);
	now.object = (struct stress_object){"ring", "under test", {"an item", "room"}, describe_ring, &now};
}

static void play(struct stress_thread *self)
{
	/* Short rounds test the end, and long rounds test the stream. */
	uint64_t close_after_ns = stress_below(self, stress_one_in(self, 2) ? 200000 : 20000000);

	for (unsigned i = 0; i < now.ledger.producers; i++)
		(void)stress_start("producer", produce, &now.ledger.producer[i]);
	for (unsigned i = 0; i < now.ledger.consumers; i++)
		(void)stress_start("consumer", consume, &now.ledger.consumer[i]);
	stress_gives(self, &now.object, AN_ITEM | ROOM); /* the end counts as both */
	stress_begin(self, "waiting to close");
	stress_let_pass(close_after_ns);
	weir_ring_close(now.ring);
	weiri_store_release(&now.closed, 1u); /* [release] pairs with the looks before enqueues */
	stress_join();
	stress_end(self, 1);
}

static void play_rounds(enum weir_ring_format format)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0;

	stress_disturb();
	while (stress_goes_on()) {
		set_up(self, format);
		play(self);
		ledger_check_each_once(&now.ledger);
		check_end_is_final();
		weir_ring_destroy(now.ring, NULL);
		ledger_close(&now.ledger);
		rounds++;
	}
	stress_note("rounds", rounds);
}

int stress_has_ltq16(void)
{
	weir_ring *one;
	int has;

	STRESS_CHECK(weir_ring_create(1, NULL, &one, NULL) == WEIR_OK, "no ring");
	has = weir_ring_format(one) == WEIR_RING_FORMAT_LTQ16;
	weir_ring_destroy(one, NULL);
	return has;
}

void scenario_ring_ltq16(void)
{
	if (stress_has_ltq16())
		play_rounds(WEIR_RING_FORMAT_LTQ16);
	else
		stress_skip("this machine has no 16-byte compare-and-swap");
}

void scenario_ring_ltq64(void)
{
	play_rounds(WEIR_RING_FORMAT_LTQ64);
}

void scenario_ring_span16(void)
{
	if (stress_has_ltq16())
		play_rounds(WEIR_RING_FORMAT_SPAN16);
	else
		stress_skip("this machine has no 16-byte compare-and-swap");
}
