/*
 * scenario_spsc.c - rings of one producer and one consumer: each item that is enqueued is dequeued
 * once, in order, with its memory; the capacity is exact. A third thread reads sizes meanwhile.
 */
#include <weir/spsc.h>

#include "ledger.h"
#include "scenarios.h"

enum { MOST = 12, LIMIT = 20000 };

static struct {
	weir_spsc *ring;
	size_t capacity;
	struct ledger ledger;
	_Atomic(uint32_t) over; /* the producer has ended */
} pipe;

static void produce(struct stress_thread *self, void *context)
{
	struct ledger_page *page = &pipe.ledger.producer[0];
	unsigned spins = 0;

	(void)context;
	while (page->count + MOST < pipe.ledger.limit && stress_goes_on()) {
		uint64_t values[MOST], out_before = ledger_least_out(&pipe.ledger);
		size_t wanted = stress_one_in(self, 2) ? 1 : 1 + (size_t)stress_below(self, MOST), done = 0;

		for (size_t i = 0; i < wanted; i++)
			values[i] = ledger_make(page, i);
		stress_begin(self, "enqueue");
		if (wanted == 1)
			done = weir_spsc_try_enqueue(pipe.ring, values[0]) == WEIR_OK;
		else
			(void)weir_spsc_try_enqueue_many(pipe.ring, values, wanted, &done);
		page->count += done;
		/* An enqueue may be refused only if the ring was full at some moment of the call. */
		STRESS_CHECK(done == wanted || page->count >= out_before + pipe.capacity,
		             "\"full\" was reported, but the capacity is %zu and at most %llu - %llu items were inside",
		             pipe.capacity, (unsigned long long)page->count, (unsigned long long)out_before);
		STRESS_CHECK(weir_spsc_size_approx(pipe.ring) <= pipe.capacity, "capacity %zu exceeded", pipe.capacity);
		stress_end(self, done);
		if (done == 0)
			stress_back_off(&spins);
	}
	weiri_store_release(&pipe.over, 1u); /* [release] pairs with consume() */
}

static void consume(struct stress_thread *self, void *context)
{
	struct ledger_page *page = &pipe.ledger.consumer[0];
	unsigned spins = 0;

	(void)context;
	for (;;) {
		/* [acquire] everything that the producer enqueued is visible */
		uint32_t over = weiri_load_acquire(&pipe.over);
		size_t wanted = stress_one_in(self, 2) ? 1 : 1 + (size_t)stress_below(self, MOST), done = 0;
		uint64_t values[MOST];

		stress_begin(self, "dequeue");
		ledger_about_to_move(page, wanted);
		if (wanted == 1)
			done = weir_spsc_try_dequeue(pipe.ring, values) == WEIR_OK;
		else
			(void)weir_spsc_try_dequeue_many(pipe.ring, values, wanted, &done);
		ledger_has_moved(page, wanted, done);
		for (size_t i = 0; i < done; i++)
			ledger_take(&pipe.ledger, page, page->last, 1, values[i]);
		stress_end(self, done);
		if (done == 0 && over)
			return;
		if (done == 0)
			stress_back_off(&spins);
	}
}

static void observe(struct stress_thread *self, void *context)
{
	unsigned spins = 0;

	(void)context;
	/* [acquire] pairs with produce(), though nothing depends on it */
	while (!weiri_load_acquire(&pipe.over)) {
		size_t size;

		stress_begin(self, "size");
		size = weir_spsc_size_approx(pipe.ring);
		stress_end(self, 0);
		STRESS_CHECK(size <= pipe.capacity, "%zu values inside, but the capacity is %zu", size, pipe.capacity);
		stress_back_off(&spins); /* the others need the processor more */
	}
}

void scenario_spsc(void)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0, items = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		pipe.capacity = 1 + (size_t)stress_below(self, stress_one_in(self, 2) ? 4 : 300);
		STRESS_CHECK(weir_spsc_create(pipe.capacity, NULL, &pipe.ring, NULL) == WEIR_OK, "no ring");
		ledger_open(&pipe.ledger, 1, 1, stress_scaled(LIMIT));
		weiri_store_relaxed(&pipe.over, 0u); /* [relaxed] no thread yet */
		(void)stress_start("producer", produce, NULL);
		(void)stress_start("consumer", consume, NULL);
		(void)stress_start("observer", observe, NULL);
		stress_join();
		ledger_check_each_once(&pipe.ledger);
		items += pipe.ledger.producer[0].count;
		ledger_close(&pipe.ledger);
		weir_spsc_destroy(pipe.ring, NULL);
	}
	stress_note("rounds", rounds);
	stress_note("items", items);
}
