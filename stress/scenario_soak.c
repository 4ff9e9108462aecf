/*
 * scenario_soak.c - soak: everything at once.
 *
 * Each round has four queues (FIFO, fair, shuffle, a ring) and the variables of bank.h. Workers
 * make any call on any of them, each with a deadline, and some with a token. Meanwhile, as drawn
 * from the seed: guests start, make a few calls and end; workers are stopped at random
 * instructions, and all threads are held for moments; signal handlers read; allocations fail;
 * tokens fire; queues are closed, to drain or to cancel.
 *
 * The checks are those of ledger.h for each queue (each item once, with its memory, in order within
 * a batch), the status of each call (traffic_call.h), and the sums of the bank. At the end of each
 * round every byte must be freed.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <weir/reclaim.h>
#include <weir/ring.h>
#include <weir/time.h>

#include "bank.h"
#include "ledger.h"
#include "poison.h"
#include "scenarios.h"
#include "stop.h"
#include "traffic_call.h"
#include "waiting.h"

enum { FIFO, FAIR, SHUFFLE, QUEUES, RING = QUEUES, LEDGERS, WORKERS = 12, GUESTS = 4, PLACES = WORKERS + GUESTS };
enum { LIMIT = 3000, LAST_WORDS = 8 };

static const uint64_t longest_round_ns = 400000000, longest_stop_ns = 2000000, settle_ns = 100000000000u;

/* A worker, or a place for guests, one after the other. */
struct place {
	unsigned index;
	struct traffic_caller caller[QUEUES];
	struct stress_thread *thread;
	/* it has used variables, so handlers on it may use them */
	_Atomic(uint32_t) may_be_interrupted;
};

static struct {
	struct traffic traffic[QUEUES];
	struct traffic_queue queue[QUEUES];
	weir_ring *ring;
	struct ledger ledger[LEDGERS];
	struct place place[PLACES];
	unsigned workers;
	_Atomic(uint32_t) leave;
} world;

/* Counted over all rounds. */
static struct {
	uint64_t rounds, items, guests, stops, signals, fired, closed;
	_Atomic(uint64_t) reads_in_handlers;
} figures;

/* -- operations of a thread -------------------------------------------------------------------- */

static void put_some(struct stress_thread *self, struct place *place, unsigned queue)
{
	struct ledger_page *page = &world.ledger[queue].producer[place->index];
	struct traffic_call call;

	if (page->count + TRAFFIC_MOST >= world.ledger[queue].limit)
		return;
	traffic_draw(self, &place->caller[queue], TRAFFIC_ENQUEUE_MANY, &call);
	for (size_t i = 0; i < call.wanted; i++)
		call.items[i] = (void *)(uintptr_t)ledger_make(page, i);
	traffic_enqueue(self, &place->caller[queue], &call);
	page->count += call.done;
	traffic_end(&place->caller[queue], &call, "enqueue");
	stress_end(self, 1);
}

static void take_some(struct stress_thread *self, struct place *place, unsigned queue)
{
	struct ledger_page *page = &world.ledger[queue].consumer[place->index];
	uint64_t within[LEDGER_SIDE] = {0};
	struct traffic_call call;

	traffic_draw(self, &place->caller[queue], TRAFFIC_DEQUEUE_MANY, &call);
	traffic_dequeue(self, &place->caller[queue], &call);
	traffic_end(&place->caller[queue], &call, "dequeue");
	for (size_t i = 0; i < call.done; i++)
		ledger_take(&world.ledger[queue], page, within, queue != SHUFFLE, (uintptr_t)call.items[i]);
	stress_end(self, 1);
}

static void turn_ring(struct stress_thread *self, struct place *place)
{
	struct ledger_page *in = &world.ledger[RING].producer[place->index],
					   *out = &world.ledger[RING].consumer[place->index];
	uint64_t value;

	stress_begin(self, "ring");
	if (stress_one_in(self, 2) && in->count + 1 < world.ledger[RING].limit)
		in->count += weir_ring_try_enqueue(world.ring, ledger_make(in, 0)) == WEIR_OK;
	else if (weir_ring_try_dequeue(world.ring, &value) == WEIR_OK)
		ledger_take(&world.ledger[RING], out, out->last, 1, value);
	stress_end(self, 1);
}

static void act(struct stress_thread *self, struct place *place)
{
	unsigned queue = (unsigned)stress_below(self, QUEUES);

	switch (stress_below(self, 8)) {
	case 0:
	case 1: put_some(self, place, queue); break;
	case 2:
	case 3: take_some(self, place, queue); break;
	case 4: turn_ring(self, place); break;
	default: bank_act(self);
	}
	stress_stop_here();
}

static void worker(struct stress_thread *self, void *context)
{
	struct place *place = context;

	bank_look("a worker's first read");
	weiri_store_release(&place->may_be_interrupted, 1u); /* [release] pairs with interrupt_one() */
	/* [acquire] only the end is passed, no data */
	while (!weiri_load_acquire(&world.leave))
		act(self, place);
}

static void guest(struct stress_thread *self, void *context)
{
	for (unsigned i = 0; i < LAST_WORDS; i++)
		act(self, context);
}

/* -- disturbances ------------------------------------------------------------------------------ */

static void read_in_handler(int signal_number)
{
	int saved_errno = errno;

	(void)signal_number;
	bank_look("a handler");
	(void)weiri_fetch_add_relaxed(&figures.reads_in_handlers, 1u); /* [relaxed] a count */
	errno = saved_errno;
}

static struct place *draw_worker(struct stress_thread *self)
{
	return &world.place[stress_below(self, world.workers)];
}

static void interrupt_one(struct stress_thread *self)
{
	struct place *place = draw_worker(self);

	if (!weiri_load_acquire(&place->may_be_interrupted)) /* [acquire] pairs with worker() */
		return;
	STRESS_CHECK(pthread_kill(place->thread->thread, SIGRTMIN) == 0, "cannot send a signal");
	figures.signals++;
}

static void stop_one(struct stress_thread *self)
{
	/*
	 * ThreadSanitizer delivers signals only at calls of the C library, and a worker may take a long
	 * time to reach one.
	 */
	if (STRESS_TSAN)
		return;
	stress_begin(self, "stopping a worker");
	stress_stop(draw_worker(self)->thread);
	stress_let_pass(stress_below(self, longest_stop_ns));
	stress_stop_release();
	figures.stops++;
}

static void receive_guest(struct stress_thread *self)
{
	struct place *place = &world.place[world.workers + stress_below(self, GUESTS)];

	stress_begin(self, "joining a guest");
	if (place->thread != NULL)
		stress_join_one(place->thread);
	place->thread = stress_start("guest", guest, place);
	figures.guests++;
}

static void fire_some(struct stress_thread *self)
{
	for (unsigned i = 0; i < QUEUES; i++)
		traffic_fire(self, &draw_worker(self)->caller[i]);
	if (stress_one_in(self, 4))
		traffic_fire_shared(self, &world.queue[stress_below(self, QUEUES)]);
	figures.fired++;
}

/* Closes one queue late in a round, so that there is time before and after it. */
static void close_one(struct stress_thread *self)
{
	struct traffic_queue *queue = &world.queue[stress_below(self, QUEUES)];

	stress_begin(self, "close");
	/* [seq_cst] before what it closes; pairs with the looks after calls */
	weiri_store_seq_cst(&queue->closing, 1u);
	STRESS_CHECK(weir_queue_close(queue->queue, stress_one_in(self, 2) ? WEIR_CLOSE_DRAIN : WEIR_CLOSE_CANCEL, NULL) ==
	                 WEIR_OK,
	             "a close failed");
	if (stress_one_in(self, 4))
		weir_ring_close(world.ring);
	figures.closed++;
}

static void make_trouble(struct stress_thread *self, int late)
{
	switch (stress_below(self, 8)) {
	case 0: stop_one(self); break;
	case 1: bank_refuse(stress_one_in(self, 2)); break;
	case 2:
	case 3: receive_guest(self); break;
	case 4: fire_some(self); break;
	case 5:
		if (late)
			close_one(self);
		break;
	default: interrupt_one(self);
	}
	stress_end(self, 1);
	stress_let_pass(stress_below(self, 200000));
}

/* -- rounds ------------------------------------------------------------------------------------ */

static void on_drop(void *context, void *item)
{
	ledger_drop(context, (uintptr_t)item);
}

static void make_queue(struct stress_thread *self, unsigned i)
{
	static const char *const names[] = {"fifo", "fair", "shuffle"};
	struct traffic_queue *queue = &world.queue[i];
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT,
	                                     .capacity = 1 + (size_t)stress_below(self, 12),
	                                     .order = i == SHUFFLE ? WEIR_QUEUE_SHUFFLE : WEIR_QUEUE_FIFO,
	                                     .flags = i == FAIR ? WEIR_QUEUE_FAIR : 0,
	                                     .drop = on_drop,
	                                     .drop_context = &world.ledger[i]};

	if (i == SHUFFLE)
		options.min_after_dequeue = (size_t)stress_below(self, options.capacity);
	world.traffic[i] = (struct traffic){.order = options.order,
	                                    .calls = TRAFFIC_TRY | TRAFFIC_WAIT | TRAFFIC_ASYNC | TRAFFIC_ENQUEUE_MANY |
	                                             TRAFFIC_DEQUEUE_MANY,
	                                    .token_one_in = 3,
	                                    .deadline_one_in = 1};
	queue->traffic = &world.traffic[i];
	STRESS_CHECK(weir_queue_create(&options, &queue->queue, NULL) == WEIR_OK, "no queue");
	STRESS_CHECK(weir_cancel_create(NULL, &queue->shared, NULL) == WEIR_OK, "no memory for a token");
	(void)pthread_mutex_init(&queue->lock, NULL);
	queue->object = stress_queue_object(names[i], queue->queue);
}

static void set_up(struct stress_thread *self)
{
	unsigned workers = stress_threads(3);

	memset(&world, 0, sizeof(world));
	world.workers = workers < WORKERS ? workers : WORKERS;
	for (unsigned i = 0; i < LEDGERS; i++)
		ledger_open(&world.ledger[i], world.workers + GUESTS, world.workers + GUESTS,
		            stress_scaled(LIMIT) + LAST_WORDS);
	for (unsigned i = 0; i < QUEUES; i++)
		make_queue(self, i);
	STRESS_CHECK(weir_ring_create(1 + (size_t)stress_below(self, 20), NULL, &world.ring, NULL) == WEIR_OK, "no ring");
	for (unsigned i = 0; i < world.workers + GUESTS; i++) {
		world.place[i].index = i;
		for (unsigned k = 0; k < QUEUES; k++)
			world.place[i].caller[k].on = &world.queue[k];
	}
	bank_open();
}

static void play(struct stress_thread *self)
{
	uint64_t length = stress_below(self, longest_round_ns), now = weir_now_ns(), late = now + length / 2;

	for (unsigned i = 0; i < world.workers; i++)
		world.place[i].thread = stress_start("worker", worker, &world.place[i]);
	do {
		now = weir_now_ns();
		make_trouble(self, now > late);
	} while (now < late + length / 2);
	weiri_store_release(&world.leave, 1u); /* [release] pairs with worker() */
	stress_begin(self, "joining");
	stress_join();
}

static void judge_queue(unsigned i)
{
	struct traffic_queue *queue = &world.queue[i];
	weir_error error = {0};

	for (unsigned p = 0; p < world.workers + GUESTS; p++)
		traffic_check_completions(&world.place[p].caller[i]);
	STRESS_CHECK(weir_queue_destroy(queue->queue, &error) == WEIR_OK, "at the end: %s", error.message);
	weir_cancel_release(queue->shared);
	(void)pthread_mutex_destroy(&queue->lock);
}

static void judge(struct stress_thread *self)
{
	uint64_t value;

	for (unsigned i = 0; i < QUEUES; i++)
		judge_queue(i);
	while (weir_ring_try_dequeue(world.ring, &value) == WEIR_OK)
		ledger_drop(&world.ledger[RING], value);
	weir_ring_destroy(world.ring, NULL);
	for (unsigned i = 0; i < LEDGERS; i++) {
		ledger_check_each_once(&world.ledger[i]);
		for (unsigned p = 0; p < world.ledger[i].producers; p++)
			figures.items += world.ledger[i].producer[p].count;
		ledger_close(&world.ledger[i]);
	}
	bank_close(self);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(settle_ns)) == WEIR_OK, "the flush failed: memory is still held");
	stress_poison_check_empty();
	figures.rounds++;
}

void scenario_soak(void)
{
	struct sigaction action = {.sa_handler = read_in_handler, .sa_flags = SA_RESTART};
	struct stress_thread *self = stress_self();
	uint64_t refused = bank_refused();

	memset(&figures, 0, sizeof(figures));
	stress_stop_prepare();
	STRESS_CHECK(sigaction(SIGRTMIN, &action, NULL) == 0, "cannot install the signal handler");
	stress_disturb();
	while (figures.rounds == 0 || stress_goes_on()) {
		set_up(self);
		play(self);
		judge(self);
	}
	stress_note("rounds", figures.rounds);
	stress_note("items", figures.items);
	stress_note("guests", figures.guests);
	stress_note("stops", figures.stops);
	stress_note("closes", figures.closed);
	stress_note("storms of tokens", figures.fired);
	/* [relaxed] joined */
	stress_note("reads in handlers", weiri_load_relaxed(&figures.reads_in_handlers));
	stress_note("allocations refused", bank_refused() - refused);
}
