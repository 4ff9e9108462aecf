/*
 * traffic.c - see traffic.h.
 */
#include "traffic.h"

#include <string.h>

#include "ledger.h"
#include "traffic_call.h"
#include "waiting.h"

enum { SIDE = 8, LIMIT = 4000 };

struct party {
	struct round *round;
	struct ledger_page *page;
	struct traffic_caller caller;
};

struct round {
	const struct traffic *traffic;
	struct weir_queue_options options;
	struct traffic_queue on;
	struct ledger ledger;
	struct party producer[SIDE], consumer[SIDE];
	_Atomic(uint32_t) ended; /* a single dequeue returned WEIR_OUT_OF_RANGE */
	_Atomic(uint32_t) leave; /* consumers that may leave must leave */
	_Atomic(uint32_t) over;  /* tells the threads that fire that the round ends */
	uint64_t drops;
};

static int has_batches(const struct round *round)
{
	return (round->traffic->calls & TRAFFIC_DEQUEUE_MANY) != 0;
}

/* -- bounds ------------------------------------------------------------------------------------ */

/* Items that a batch returned stay inside although other threads filled their room. */
static void check_not_above_capacity(struct round *round)
{
	uint64_t in = ledger_least_in(&round->ledger);
	uint64_t out = ledger_most_out(&round->ledger);

	STRESS_CHECK(has_batches(round) || in <= out + round->options.capacity,
	             "capacity %zu exceeded: %llu items went in, at most %llu came out", round->options.capacity,
	             (unsigned long long)in, (unsigned long long)out);
}

/*
 * Of FIFO queues a refusal is not exact in two cases: a fair queue refuses if other calls wait, and
 * batches hold items. A shuffle queue may keep a minimum.
 */
static int answers_exactly(const struct round *round)
{
	return round->options.order == WEIR_QUEUE_FIFO && (round->options.flags & WEIR_QUEUE_FAIR) == 0 &&
	       !has_batches(round);
}

static void check_was_full(struct round *round, uint64_t out_before)
{
	uint64_t in = ledger_most_in(&round->ledger);

	STRESS_CHECK(!answers_exactly(round) || in >= out_before + round->options.capacity,
	             "\"full\" was reported, but the capacity is %zu and at most %llu - %llu items were inside",
	             round->options.capacity, (unsigned long long)in, (unsigned long long)out_before);
}

static void check_was_empty(struct round *round, uint64_t in_before)
{
	uint64_t out = ledger_most_out(&round->ledger);

	STRESS_CHECK(!answers_exactly(round) || in_before <= out,
	             "\"empty\" was reported, but at least %llu - %llu items were inside", (unsigned long long)in_before,
	             (unsigned long long)out);
}

/* An item was dequeued from a queue that was open until then. */
static void check_minimum(struct round *round, uint64_t out_before)
{
	uint64_t in = ledger_most_in(&round->ledger);

	/* [seq_cst] not closing yet, so the take came before the close. */
	if (has_batches(round) || weiri_load_seq_cst(&round->on.closing))
		return;
	STRESS_CHECK(in >= out_before + 1 + round->options.min_after_dequeue,
	             "at most %llu - %llu items are left, but the minimum is %zu", (unsigned long long)in,
	             (unsigned long long)(out_before + 1), round->options.min_after_dequeue);
}

/* -- producers --------------------------------------------------------------------------------- */

static void produce(struct stress_thread *self, void *context)
{
	struct party *party = context;
	struct round *round = party->round;
	struct ledger_page *page = party->page;
	struct traffic_call call;
	unsigned spins = 0;

	stress_gives(self, &round->on.object, STRESS_AN_ITEM);
	while (page->count + TRAFFIC_MOST < round->ledger.limit) {
		uint32_t ended = weiri_load_acquire(&round->ended); /* [acquire] set before this call */
		uint64_t out_before = ledger_least_out(&round->ledger);

		traffic_draw(self, &party->caller, TRAFFIC_ENQUEUE_MANY, &call);
		for (size_t i = 0; i < call.wanted; i++)
			call.items[i] = (void *)(uintptr_t)ledger_make(page, i);
		ledger_about_to_move(page, call.wanted);
		traffic_enqueue(self, &party->caller, &call);
		ledger_has_moved(page, call.wanted, call.done);
		page->count += call.done;
		traffic_end(&party->caller, &call, "enqueue");
		STRESS_CHECK(call.done == 0 || !ended, "an enqueue succeeded after a dequeue had reported the end");
		check_not_above_capacity(round);
		stress_end(self, call.done + (call.status != WEIR_WOULD_BLOCK));
		if (call.status == WEIR_CANCELLED && !call.cancelled && !call.fired)
			return;
		if (call.status == WEIR_WOULD_BLOCK) {
			check_was_full(round, out_before);
			stress_back_off(&spins);
		}
	}
}

/* -- consumers --------------------------------------------------------------------------------- */

static void take_all(struct round *round, struct ledger_page *page, const struct traffic_call *call)
{
	int fifo = round->options.order == WEIR_QUEUE_FIFO, alone = round->ledger.consumers == 1 || !has_batches(round);
	uint64_t within[LEDGER_SIDE] = {0};

	/*
	 * If batches return items, one of several consumers may see an older item later. A batch itself
	 * is in order.
	 */
	for (size_t i = 0; i < call->done; i++)
		ledger_take(&round->ledger, page, fifo && alone ? page->last : within, fifo, (uintptr_t)call->items[i]);
}

static void consume(struct stress_thread *self, void *context)
{
	struct party *party = context;
	struct round *round = party->round;
	struct ledger_page *page = party->page;
	struct traffic_call call;
	unsigned spins = 0;

	stress_gives(self, &round->on.object, STRESS_ROOM);
	/* [acquire] as above. */
	while (!weiri_load_acquire(&round->leave)) {
		uint32_t ended = weiri_load_acquire(&round->ended);
		uint64_t in_before = ledger_least_in(&round->ledger);
		uint64_t out_before = ledger_least_out(&round->ledger);

		traffic_draw(self, &party->caller, TRAFFIC_DEQUEUE_MANY, &call);
		ledger_about_to_move(page, call.wanted);
		traffic_dequeue(self, &party->caller, &call);
		ledger_has_moved(page, call.wanted, call.done);
		traffic_end(&party->caller, &call, "dequeue");
		STRESS_CHECK(call.done == 0 || !ended, "an item came out after a dequeue had reported the end");
		take_all(round, page, &call);
		if (call.done == 1)
			check_minimum(round, out_before);
		stress_end(self, call.done + (call.status != WEIR_WOULD_BLOCK));
		if (call.status == WEIR_OUT_OF_RANGE && (call.wanted == 1 || call.up_to)) {
			/* [release] pairs with the looks before calls */
			weiri_store_release(&round->ended, 1u);
			return;
		}
		if (call.status == WEIR_WOULD_BLOCK) {
			check_was_empty(round, in_before);
			stress_back_off(&spins);
		}
	}
}

/* -- threads that fire and close --------------------------------------------------------------- */

static void fire(struct stress_thread *self, void *context)
{
	struct round *round = context;

	/* [acquire] pairs with the end of the round. */
	while (!weiri_load_acquire(&round->over)) {
		traffic_fire(self, &round->producer[stress_below(self, round->ledger.producers)].caller);
		traffic_fire(self, &round->consumer[stress_below(self, round->ledger.consumers)].caller);
		if (stress_one_in(self, 8))
			traffic_fire_shared(self, &round->on);
		stress_let_pass(stress_below(self, 30000));
	}
}

static void close_it(struct stress_thread *self, void *context)
{
	struct round *round = context;
	weir_error cause = {WEIR_ABORTED, "the round is over"};

	stress_gives(self, &round->on.object, STRESS_AN_ITEM | STRESS_ROOM);
	stress_begin(self, "waiting to close");
	stress_let_pass(stress_below(self, round->traffic->round_ns));
	/* [seq_cst] before what it closes; pairs with the looks after calls */
	weiri_store_seq_cst(&round->on.closing, 1u);
	stress_begin(self, "close");
	STRESS_CHECK(weir_queue_close(round->on.queue, stress_one_in(self, 2) ? WEIR_CLOSE_DRAIN : WEIR_CLOSE_CANCEL,
	                              stress_one_in(self, 2) ? &cause : NULL) == WEIR_OK,
	             "a close failed");
	STRESS_CHECK(weir_queue_closed(round->on.queue), "the queue is open after a close");
	STRESS_CHECK(weir_queue_try_enqueue(round->on.queue, NULL) == WEIR_CANCELLED, "an enqueue succeeded after a close");
	stress_gives(self, &round->on.object, 0);
	stress_end(self, 1);
}

/* -- a round ----------------------------------------------------------------------------------- */

static void on_drop(void *context, void *item)
{
	struct round *round = context;

	round->drops++;
	ledger_drop(&round->ledger, (uintptr_t)item);
}

static int64_t few_keys(void *context, void *item)
{
	(void)context;
	return (int64_t)((uintptr_t)item % 5);
}

static weir_queue *make_queue(struct round *round, struct stress_thread *self)
{
	weir_queue *queue = NULL;
	weir_error error = {0};

	round->options =
		(struct weir_queue_options){WEIR_QUEUE_OPTIONS_INIT,
	                                .capacity = 1 + (size_t)stress_below(self, stress_one_in(self, 4) ? 100 : 8),
	                                .order = round->traffic->order,
	                                .flags = stress_one_in(self, 3) ? WEIR_QUEUE_FAIR : 0,
	                                .drop = on_drop,
	                                .drop_context = round};
	if (round->traffic->order == WEIR_QUEUE_FIFO && stress_one_in(self, 2))
		round->options.flags |= WEIR_QUEUE_BATCHES;
	if (round->traffic->order == WEIR_QUEUE_PRIORITY)
		round->options.key = few_keys;
	if (round->traffic->order == WEIR_QUEUE_SHUFFLE)
		round->options.min_after_dequeue = (size_t)stress_below(self, round->options.capacity);
	STRESS_CHECK(weir_queue_create(&round->options, &queue, &error) == WEIR_OK, "%s", error.message);
	return queue;
}

static void set_up(struct round *round, struct stress_thread *self, const struct traffic *traffic)
{
	unsigned side = (stress_threads(4) + 1) / 2 < SIDE ? (stress_threads(4) + 1) / 2 : SIDE - 1;
	unsigned producers = 1 + (unsigned)stress_below(self, side + 1),
			 consumers = 1 + (unsigned)stress_below(self, side + 1);

	memset(round, 0, sizeof(*round));
	round->traffic = round->on.traffic = traffic;
	if (traffic->one_consumer || stress_one_in(self, 4))
		consumers = 1;
	ledger_open(&round->ledger, producers, consumers, stress_scaled(LIMIT) + 2 * (uint64_t)TRAFFIC_MOST);
	round->on.queue = make_queue(round, self);
	round->on.object = stress_queue_object("under test", round->on.queue);
	STRESS_CHECK(weir_cancel_create(NULL, &round->on.shared, NULL) == WEIR_OK, "no memory for a token");
	(void)pthread_mutex_init(&round->on.lock, NULL);
	for (unsigned i = 0; i < producers; i++)
		round->producer[i] = (struct party){round, &round->ledger.producer[i], {.on = &round->on}};
	for (unsigned i = 0; i < consumers; i++)
		round->consumer[i] = (struct party){round, &round->ledger.consumer[i], {.on = &round->on}};
}

static void tear_down(struct round *round)
{
	weir_cancel_release(round->on.shared);
	(void)pthread_mutex_destroy(&round->on.lock);
	ledger_close(&round->ledger);
}

/* Consumers that leave do so when a close comes, so that no call waits for ever. */
static void play(struct round *round, struct stress_thread *self)
{
	struct stress_thread *threads[2 * SIDE], *firer = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < round->ledger.producers; i++)
		threads[count++] = stress_start("producer", produce, &round->producer[i]);
	for (unsigned i = 0; i < round->ledger.consumers; i++)
		threads[count++] = stress_start("consumer", consume, &round->consumer[i]);
	if (round->traffic->token_one_in != 0)
		firer = stress_start("firer", fire, round);
	for (unsigned i = 1; i < round->traffic->closers; i++)
		(void)stress_start("closer", close_it, round);
	close_it(self, round);
	if (round->traffic->may_leave && stress_one_in(self, 2)) {
		/*
		 * Items that are left are dropped. Enqueues that still wait need a cancel, because no
		 * thread dequeues any longer.
		 */
		weiri_store_release(&round->leave, 1u); /* [release] pairs with consume() */
		STRESS_CHECK(weir_queue_close(round->on.queue, WEIR_CLOSE_CANCEL, NULL) == WEIR_OK, "a close failed");
	}
	stress_begin(self, "joining");
	for (unsigned i = 0; i < count; i++)
		stress_join_one(threads[i]);
	weiri_store_release(&round->over, 1u); /* [release] pairs with fire() */
	if (firer != NULL)
		stress_join_one(firer);
	stress_join();
	stress_end(self, 1);
}

static void judge(struct round *round)
{
	weir_error error = {0};
	enum weir_status status = weir_queue_destroy(round->on.queue, &error);

	STRESS_CHECK(status == WEIR_OK, "at the end: %s", error.message);
	/* [relaxed] all are joined. */
	STRESS_CHECK(weiri_load_relaxed(&round->ended) == 0 || round->drops == 0,
	             "a dequeue reported the end although %llu items were left", (unsigned long long)round->drops);
	ledger_check_each_once(&round->ledger);
	for (unsigned i = 0; i < round->ledger.producers; i++)
		traffic_check_completions(&round->producer[i].caller);
	for (unsigned i = 0; i < round->ledger.consumers; i++)
		traffic_check_completions(&round->consumer[i].caller);
}

void stress_traffic(const struct traffic *traffic)
{
	/* [plain] too large for the stack; one scenario runs at a time. */
	static struct round round;
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0, items = 0, dropped = 0;

	stress_disturb();
	while (stress_goes_on()) {
		set_up(&round, self, traffic);
		play(&round, self);
		judge(&round);
		for (unsigned i = 0; i < round.ledger.producers; i++)
			items += round.ledger.producer[i].count;
		dropped += round.drops;
		rounds++;
		tear_down(&round);
	}
	stress_note("rounds", rounds);
	stress_note("items", items);
	if (traffic->may_leave)
		stress_note("dropped", dropped);
}
