/*
 * traffic.c - see traffic.h.
 *
 * Bounds. Each thread counts on its own line what it may have moved (raised before a call by all that the call could move) and what it
 * has moved for certain (raised after it). So "certainly in" less "possibly out" is never above what was inside at some moment, and
 * "possibly in" less "certainly out" never below.
 */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>
#include <weir/cancel.h>
#include <weir/time.h>

#include "sync/park.h"

enum { MAX_SIDE = 8, MOST = 6, NUMBER_BITS = 24, COMPLETIONS = 8, LIMIT = 4000 };

/* An asynchronous call's completion. Kept after the call: a second one would be seen. */
struct completion {
	_Atomic(uint32_t) count;
	enum weir_status status;
	size_t done;
};

struct party {
	struct round *round;
	unsigned index;
	WEIRI_ALIGNED_APART _Atomic(uint64_t) most;
	_Atomic(uint64_t) least;
	uint64_t count; /* producer: numbers 0 .. count-1 are in. Consumer: entries of the log */
	uint64_t *log;
	uint64_t *payload;
	_Atomic(weir_cancel *) offered; /* the token of the call under way; taken by who fires it */
	struct completion completions[COMPLETIONS];
	unsigned next_completion;
};

struct round {
	const struct traffic *traffic;
	struct weir_queue_options options;
	weir_queue *queue;
	uint64_t limit;
	unsigned producers, consumers;
	struct party producer[MAX_SIDE], consumer[MAX_SIDE];
	_Atomic(uint32_t) closing; /* a close may have begun */
	_Atomic(uint32_t) ended;   /* a single dequeue answered WEIR_OUT_OF_RANGE */
	_Atomic(uint32_t) leave;   /* consumers that may, leave */
	_Atomic(uint32_t) over;    /* for those who fire */
	/* A token of many calls, replaced when it was fired. The lock is the harness's, around no call under test. */
	pthread_mutex_t lock;
	weir_cancel *shared;
	uint64_t drops;
};

/* One call: what was asked and what came of it. */
struct call {
	int many, up_to, asynchronous, tries;
	size_t wanted, done;
	uint64_t deadline_ns;
	weir_cancel *token;
	int cancelled; /* asynchronous: we cancelled it */
	enum weir_status status;
	void *items[MOST];
};

static void *item_of(unsigned producer, uint64_t number)
{
	return (void *)(uintptr_t)((uint64_t)(producer + 1) << NUMBER_BITS | number);
}

static uint64_t payload_of(unsigned producer, uint64_t number)
{
	return stress_mix((uint64_t)producer << NUMBER_BITS | number);
}

static int has_batches(const struct round *round)
{
	return (round->traffic->calls & TRAFFIC_DEQUEUE_MANY) != 0;
}

/* -- bounds ------------------------------------------------------------------------------------------------------------------- */

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

static void about_to_move(struct party *party, uint64_t wanted)
{
	(void)weiri_fetch_add_seq_cst(&party->most, wanted);
}

static void has_moved(struct party *party, uint64_t wanted, uint64_t moved)
{
	(void)weiri_fetch_add_seq_cst(&party->least, moved);
	(void)weiri_fetch_sub_seq_cst(&party->most, wanted - moved);
}

/* What a batch gave back stays inside though others filled its room. */
static void check_not_above_capacity(struct round *round)
{
	uint64_t in = sum_least(round->producer, round->producers);
	uint64_t out = sum_most(round->consumer, round->consumers);

	STRESS_CHECK(has_batches(round) || in <= out + round->options.capacity,
	             "capacity %zu exceeded: %llu are in, at most %llu out", round->options.capacity,
	             (unsigned long long)in, (unsigned long long)out);
}

/* A queue that is fair answers so when others wait; a shuffle queue when a put or take is under way; batches hold items. */
static int answers_exactly(const struct round *round)
{
	return round->options.order == WEIR_QUEUE_FIFO && round->options.flags == 0 && !has_batches(round);
}

static void check_was_full(struct round *round, uint64_t out_before)
{
	uint64_t in = sum_most(round->producer, round->producers);

	STRESS_CHECK(!answers_exactly(round) || in >= out_before + round->options.capacity,
	             "told full, but of capacity %zu at most %llu - %llu were in", round->options.capacity,
	             (unsigned long long)in, (unsigned long long)out_before);
}

static void check_was_empty(struct round *round, uint64_t in_before)
{
	uint64_t out = sum_most(round->consumer, round->consumers);

	STRESS_CHECK(!answers_exactly(round) || in_before <= out, "told empty, but at least %llu - %llu were in",
	             (unsigned long long)in_before, (unsigned long long)out);
}

/* One has come out, of a queue that was open all the time. */
static void check_minimum(struct round *round, uint64_t out_before)
{
	uint64_t in = sum_most(round->producer, round->producers);

	/* [seq_cst] not closing yet: the take came before the close. */
	if (has_batches(round) || weiri_load_seq_cst(&round->closing))
		return;
	STRESS_CHECK(in >= out_before + 1 + round->options.min_after_dequeue,
	             "at most %llu - %llu are left, the minimum is %zu", (unsigned long long)in,
	             (unsigned long long)(out_before + 1), round->options.min_after_dequeue);
}

/* -- calls -------------------------------------------------------------------------------------------------------------------- */

/* A token of its own, which is offered to those who fire, or the one of many. */
static weir_cancel *draw_token(struct stress_thread *self, struct party *party)
{
	struct round *round = party->round;
	weir_cancel *token = NULL;

	if (round->traffic->token_one_in == 0 || !stress_one_in(self, round->traffic->token_one_in))
		return NULL;
	if (stress_one_in(self, 2)) {
		(void)pthread_mutex_lock(&round->lock);
		token = weir_cancel_retain(round->shared);
		(void)pthread_mutex_unlock(&round->lock);
		return token;
	}
	STRESS_CHECK(weir_cancel_create(NULL, &token) == WEIR_OK, "no memory for a token");
	/* [release] pairs with the firing thread. */
	weiri_store_release(&party->offered, weir_cancel_retain(token));
	return token;
}

static uint64_t draw_deadline(struct stress_thread *self, const struct traffic *traffic)
{
	if (traffic->deadline_one_in == 0 || !stress_one_in(self, traffic->deadline_one_in))
		return WEIR_NO_DEADLINE;
	switch (stress_below(self, 4)) {
	case 0: return 0;
	case 1: return weir_now_ns();
	case 2: return weir_deadline_in(stress_below(self, 2000000));
	default: return weir_deadline_in(stress_below(self, 60000));
	}
}

static void draw_call(struct stress_thread *self, struct party *party, unsigned several, struct call *call)
{
	unsigned calls = party->round->traffic->calls, kind;

	memset(call, 0, sizeof(*call));
	do
		kind = 1u << stress_below(self, 3);
	while ((calls & kind) == 0);
	call->tries = kind == TRAFFIC_TRY;
	call->asynchronous = kind == TRAFFIC_ASYNC;
	call->many = !call->tries && (calls & several) != 0 && stress_one_in(self, 2);
	call->up_to = call->many && stress_one_in(self, 2);
	call->wanted = call->many ? 1 + (size_t)stress_below(self, MOST) : 1;
	call->deadline_ns = draw_deadline(self, party->round->traffic);
	call->token = call->tries ? NULL : draw_token(self, party);
}

static void on_done(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct completion *completion = context;

	(void)error, (void)items;
	completion->status = status;
	completion->done = done;
	/* [release] the outcome; pairs with the wait. */
	(void)weiri_fetch_add_release(&completion->count, 1u);
	weiri_park_wake(&completion->count, 1);
}

static struct completion *next_completion(struct party *party)
{
	struct completion *completion = &party->completions[party->next_completion++ % COMPLETIONS];

	/* [acquire] an earlier call's. */
	STRESS_CHECK(party->next_completion <= COMPLETIONS || weiri_load_acquire(&completion->count) == 1,
	             "an asynchronous call completed %u times", weiri_load_acquire(&completion->count));
	weiri_store_relaxed(&completion->count, 0u); /* [relaxed] no call yet */
	return completion;
}

/* Starts it, and cancels it at the call's deadline. */
static void call_asynchronously(struct party *party, struct call *call, enum weir_queue_op_kind kind)
{
	struct completion *completion = next_completion(party);
	weir_queue_op *op = NULL;
	enum weir_status status =
		weir_queue_start(party->round->queue, kind, call->items, call->wanted, on_done, completion, &op, NULL);

	STRESS_CHECK(status == WEIR_OK, "weir_queue_start: %s", weir_status_name(status));
	if (weiri_park_wait(&completion->count, 0, call->deadline_ns) == WEIRI_PARK_TIMEOUT) {
		call->cancelled = 1;
		weir_queue_op_cancel(op, NULL);
		(void)weiri_park_wait(&completion->count, 0, WEIR_NO_DEADLINE);
	}
	weir_queue_op_release(op);
	call->status = completion->status;
	call->done = completion->done;
}

static void check_outcome(struct round *round, const struct call *call, const char *what)
{
	int closing = weiri_load_seq_cst(&round->closing) != 0; /* [seq_cst] set before a close */

	switch (call->status) {
	case WEIR_OK: return;
	case WEIR_WOULD_BLOCK: STRESS_CHECK(call->tries, "%s: a call that waits would block", what); return;
	case WEIR_CANCELLED:
		STRESS_CHECK(call->cancelled || weir_cancel_fired(call->token) || (closing && strcmp(what, "enqueue") == 0),
		             "%s: cancelled, though nobody did", what);
		return;
	case WEIR_DEADLINE_EXCEEDED:
		STRESS_CHECK(call->deadline_ns <= weir_now_ns(), "%s: its deadline has not passed", what);
		return;
	case WEIR_OUT_OF_RANGE:
		STRESS_CHECK(closing && strcmp(what, "dequeue") == 0, "%s: the end, though nobody closed", what);
		return;
	default: stress_fail("%s: %s", what, weir_status_name(call->status));
	}
}

static void end_call(struct party *party, struct call *call)
{
	if (call->token == NULL)
		return;
	weir_cancel_release(weiri_exchange_acq_rel(&party->offered, NULL));
	weir_cancel_release(call->token);
}

/* -- producers ---------------------------------------------------------------------------------------------------------------- */

static void enqueue(struct stress_thread *self, struct party *party, struct call *call)
{
	weir_queue *queue = party->round->queue;

	if (call->tries) {
		stress_begin(self, "try_enqueue");
		call->status = weir_queue_try_enqueue(queue, call->items[0]);
	} else if (call->asynchronous) {
		stress_begin(self, "start of an enqueue");
		call_asynchronously(party, call, WEIR_QUEUE_OP_ENQUEUE);
	} else if (call->many) {
		stress_begin(self, "enqueue_many");
		call->status = weir_queue_enqueue_many(queue, call->items, call->wanted, call->deadline_ns, call->token,
		                                       &call->done, NULL);
	} else {
		stress_begin(self, "enqueue");
		call->status = weir_queue_enqueue(queue, call->items[0], call->deadline_ns, call->token, NULL);
	}
	if (!call->asynchronous && !call->many)
		call->done = call->status == WEIR_OK;
	STRESS_CHECK(call->done <= call->wanted && (call->done == call->wanted) == (call->status == WEIR_OK),
	             "enqueue of %zu: %s, but %zu went in", call->wanted, weir_status_name(call->status), call->done);
}

static void produce(struct stress_thread *self, void *context)
{
	struct party *party = context;
	struct round *round = party->round;
	unsigned spins = 0;
	struct call call;

	while (party->count + MOST < round->limit) {
		uint32_t ended = weiri_load_acquire(&round->ended); /* [acquire] set before our call */
		uint64_t out_before = sum_least(round->consumer, round->consumers);

		draw_call(self, party, TRAFFIC_ENQUEUE_MANY, &call);
		for (size_t i = 0; i < call.wanted; i++) {
			party->payload[party->count + i] = payload_of(party->index, party->count + i);
			call.items[i] = item_of(party->index, party->count + i);
		}
		about_to_move(party, call.wanted);
		enqueue(self, party, &call);
		has_moved(party, call.wanted, call.done);
		party->count += call.done;
		check_outcome(round, &call, "enqueue");
		STRESS_CHECK(call.done == 0 || !ended, "an enqueue succeeded after a dequeue had said that the end had come");
		check_not_above_capacity(round);
		stress_end(self, call.done + (call.status != WEIR_WOULD_BLOCK));
		if (call.status == WEIR_CANCELLED && !call.cancelled && !weir_cancel_fired(call.token)) {
			end_call(party, &call);
			return;
		}
		end_call(party, &call);
		if (call.status == WEIR_WOULD_BLOCK) {
			check_was_full(round, out_before);
			stress_back_off(&spins);
		}
	}
}

/* -- consumers ---------------------------------------------------------------------------------------------------------------- */

static void dequeue(struct stress_thread *self, struct party *party, struct call *call)
{
	weir_queue *queue = party->round->queue;

	if (call->tries) {
		stress_begin(self, "try_dequeue");
		call->status = weir_queue_try_dequeue(queue, &call->items[0]);
	} else if (call->asynchronous) {
		stress_begin(self, "start of a dequeue");
		call_asynchronously(party, call, call->up_to ? WEIR_QUEUE_OP_DEQUEUE_UP_TO : WEIR_QUEUE_OP_DEQUEUE_MANY);
	} else if (call->up_to) {
		stress_begin(self, "dequeue_up_to");
		call->status = weir_queue_dequeue_up_to(queue, call->items, call->wanted, call->deadline_ns, call->token,
		                                        &call->done, NULL);
	} else if (call->many) {
		stress_begin(self, "dequeue_many");
		call->status = weir_queue_dequeue_many(queue, call->items, call->wanted, call->deadline_ns, call->token, NULL);
	} else {
		stress_begin(self, "dequeue");
		call->status = weir_queue_dequeue(queue, &call->items[0], call->deadline_ns, call->token, NULL);
	}
	if (!call->asynchronous && !call->up_to)
		call->done = call->status == WEIR_OK ? call->wanted : 0;
	STRESS_CHECK(call->status == WEIR_OK ? call->done == call->wanted || (call->up_to && call->done != 0)
	                                     : call->done == 0,
	             "dequeue of %zu: %s, but %zu came out", call->wanted, weir_status_name(call->status), call->done);
}

/* last[] counts from 1. */
static void take_note(struct party *party, uint64_t last[], int ordered, void *item)
{
	struct round *round = party->round;
	uint64_t bits = (uint64_t)(uintptr_t)item, producer = (bits >> NUMBER_BITS) - 1;
	uint64_t number = bits & ((UINT64_C(1) << NUMBER_BITS) - 1);

	STRESS_CHECK(producer < round->producers && number < round->limit, "dequeued 0x%llx, which nobody enqueued",
	             (unsigned long long)bits);
	STRESS_CHECK(!ordered || number + 1 > last[producer],
	             "out of order: producer %llu's number %llu came after its %llu", (unsigned long long)producer,
	             (unsigned long long)number, (unsigned long long)(last[producer] - 1));
	last[producer] = number + 1;
	STRESS_CHECK(round->producer[producer].payload[number] == payload_of((unsigned)producer, number),
	             "producer %llu's memory for number %llu was not visible", (unsigned long long)producer,
	             (unsigned long long)number);
	STRESS_CHECK(party->count < round->limit * round->producers, "more items came out than could go in");
	party->log[party->count++] = bits;
}

static void take_notes(struct party *party, uint64_t last[], const struct call *call)
{
	const struct round *round = party->round;
	int fifo = round->options.order == WEIR_QUEUE_FIFO, alone = round->consumers == 1 || !has_batches(round);
	uint64_t within[MAX_SIDE] = {0};

	/* Beside batches that give back, one consumer of several may see an older item later; a batch itself is in order. */
	for (size_t i = 0; i < call->done; i++)
		take_note(party, fifo && alone ? last : within, fifo, call->items[i]);
}

static void consume(struct stress_thread *self, void *context)
{
	struct party *party = context;
	struct round *round = party->round;
	uint64_t last[MAX_SIDE] = {0};
	unsigned spins = 0;
	struct call call;

	/* [acquire] as the others. */
	while (!weiri_load_acquire(&round->leave)) {
		uint32_t ended = weiri_load_acquire(&round->ended);
		uint64_t in_before = sum_least(round->producer, round->producers);
		uint64_t out_before = sum_least(round->consumer, round->consumers);

		draw_call(self, party, TRAFFIC_DEQUEUE_MANY, &call);
		about_to_move(party, call.wanted);
		dequeue(self, party, &call);
		has_moved(party, call.wanted, call.done);
		check_outcome(round, &call, "dequeue");
		end_call(party, &call);
		STRESS_CHECK(call.done == 0 || !ended, "an item came out after a dequeue had said that the end had come");
		take_notes(party, last, &call);
		if (call.done == 1)
			check_minimum(round, out_before);
		stress_end(self, call.done + (call.status != WEIR_WOULD_BLOCK));
		if (call.status == WEIR_OUT_OF_RANGE && (call.wanted == 1 || call.up_to)) {
			weiri_store_release(&round->ended, 1u); /* [release] pairs with the looks before calls */
			return;
		}
		if (call.status == WEIR_WOULD_BLOCK) {
			check_was_empty(round, in_before);
			stress_back_off(&spins);
		}
	}
}

/* -- those who fire and close ------------------------------------------------------------------------------------------------- */

static void fire_one(struct stress_thread *self, struct party *party)
{
	/* [acq_rel] pairs with the offer. */
	weir_cancel *token = weiri_exchange_acq_rel(&party->offered, NULL);

	if (token == NULL)
		return;
	stress_begin(self, "fire");
	(void)weir_cancel_fire(token, NULL);
	weir_cancel_release(token);
	stress_end(self, 1);
}

static void fire_the_shared(struct stress_thread *self, struct round *round)
{
	weir_cancel *fresh, *old;

	STRESS_CHECK(weir_cancel_create(NULL, &fresh) == WEIR_OK, "no memory for a token");
	(void)pthread_mutex_lock(&round->lock);
	old = round->shared;
	round->shared = fresh;
	(void)pthread_mutex_unlock(&round->lock);
	stress_begin(self, "fire for many");
	STRESS_CHECK(weir_cancel_fire(old, NULL) == 1, "somebody else fired");
	weir_cancel_release(old);
	stress_end(self, 1);
}

static void fire(struct stress_thread *self, void *context)
{
	struct round *round = context;

	/* [acquire] pairs with the end of the round. */
	while (!weiri_load_acquire(&round->over)) {
		fire_one(self, &round->producer[stress_below(self, round->producers)]);
		fire_one(self, &round->consumer[stress_below(self, round->consumers)]);
		if (stress_one_in(self, 8))
			fire_the_shared(self, round);
		stress_let_pass(stress_below(self, 30000));
	}
}

static void close_it(struct stress_thread *self, void *context)
{
	struct round *round = context;
	weir_error cause = {WEIR_ABORTED, "the round is over"};

	stress_begin(self, "waiting to close");
	stress_let_pass(stress_below(self, round->traffic->round_ns));
	weiri_store_seq_cst(&round->closing, 1u); /* [seq_cst] before what it closes; pairs with the looks after calls */
	stress_begin(self, "close");
	STRESS_CHECK(weir_queue_close(round->queue, stress_one_in(self, 2) ? WEIR_CLOSE_DRAIN : WEIR_CLOSE_CANCEL,
	                              stress_one_in(self, 2) ? &cause : NULL) == WEIR_OK,
	             "a close failed");
	STRESS_CHECK(weir_queue_closed(round->queue), "open after a close");
	STRESS_CHECK(weir_queue_try_enqueue(round->queue, NULL) == WEIR_CANCELLED, "an enqueue went in after a close");
	stress_end(self, 1);
}

/* -- a round ------------------------------------------------------------------------------------------------------------------ */

static void on_drop(void *context, void *item)
{
	struct round *round = context;

	round->drops++;
	round->consumer[0].log[round->consumer[0].count++] = (uint64_t)(uintptr_t)item;
}

static void check_each_once(struct round *round)
{
	for (unsigned p = 0; p < round->producers; p++) {
		uint64_t count = round->producer[p].count, seen = 0;
		unsigned char *marks = calloc((size_t)count + 1, 1);

		STRESS_CHECK(marks != NULL, "the harness has no memory");
		for (unsigned c = 0; c < round->consumers; c++) {
			for (uint64_t i = 0; i < round->consumer[c].count; i++) {
				uint64_t bits = round->consumer[c].log[i], number = bits & ((UINT64_C(1) << NUMBER_BITS) - 1);

				if ((bits >> NUMBER_BITS) - 1 != p)
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

static void check_completions(const struct party *party)
{
	for (unsigned i = 0; i < COMPLETIONS && i < party->next_completion; i++) {
		uint32_t count = weiri_load_acquire(&party->completions[i].count); /* [acquire] joined */

		STRESS_CHECK(count == 1, "an asynchronous call completed %u times", count);
	}
}

static uint64_t *numbers(uint64_t count)
{
	uint64_t *memory = calloc((size_t)count, sizeof(*memory));

	STRESS_CHECK(memory != NULL, "the harness has no memory");
	return memory;
}

static void set_up(struct round *round, struct stress_thread *self, const struct traffic *traffic)
{
	unsigned side = (stress_threads(4) + 1) / 2 < MAX_SIDE ? (stress_threads(4) + 1) / 2 : MAX_SIDE;
	weir_error error = {0};

	memset(round, 0, sizeof(*round));
	round->traffic = traffic;
	round->limit = stress_scaled(LIMIT) + 2 * (uint64_t)MOST;
	round->producers = 1 + (unsigned)stress_below(self, side + 1);
	round->consumers = traffic->one_consumer || stress_one_in(self, 4) ? 1 : 1 + (unsigned)stress_below(self, side + 1);
	if (round->producers > MAX_SIDE)
		round->producers = MAX_SIDE;
	if (round->consumers > MAX_SIDE)
		round->consumers = MAX_SIDE;
	round->options =
		(struct weir_queue_options){.struct_size = sizeof(round->options),
	                                .capacity = 1 + (size_t)stress_below(self, stress_one_in(self, 4) ? 100 : 8),
	                                .order = traffic->order,
	                                .flags = stress_one_in(self, 3) ? WEIR_QUEUE_FAIR : 0,
	                                .drop = on_drop,
	                                .drop_context = round};
	if (traffic->order == WEIR_QUEUE_SHUFFLE)
		round->options.min_after_dequeue = (size_t)stress_below(self, round->options.capacity);
	STRESS_CHECK(weir_queue_create(&round->options, &round->queue, &error) == WEIR_OK, "%s", error.message);
	STRESS_CHECK(weir_cancel_create(NULL, &round->shared) == WEIR_OK, "no memory for a token");
	(void)pthread_mutex_init(&round->lock, NULL);
	for (unsigned i = 0; i < round->producers; i++) {
		round->producer[i].round = round;
		round->producer[i].index = i;
		round->producer[i].payload = numbers(round->limit);
	}
	for (unsigned i = 0; i < round->consumers; i++) {
		round->consumer[i].round = round;
		round->consumer[i].index = i;
		round->consumer[i].log = numbers(round->limit * round->producers);
	}
}

static void tear_down(struct round *round)
{
	weir_cancel_release(round->shared);
	(void)pthread_mutex_destroy(&round->lock);
	for (unsigned i = 0; i < round->producers; i++)
		free(round->producer[i].payload);
	for (unsigned i = 0; i < round->consumers; i++)
		free(round->consumer[i].log);
}

/* Those who leave do so when a close comes, so that nobody is left behind who waits for ever. */
static void play(struct round *round, struct stress_thread *self)
{
	struct stress_thread *threads[2 * MAX_SIDE], *firer = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < round->producers; i++)
		threads[count++] = stress_start("producer", produce, &round->producer[i]);
	for (unsigned i = 0; i < round->consumers; i++)
		threads[count++] = stress_start("consumer", consume, &round->consumer[i]);
	if (round->traffic->token_one_in != 0)
		firer = stress_start("firer", fire, round);
	for (unsigned i = 1; i < round->traffic->closers; i++)
		(void)stress_start("closer", close_it, round);
	close_it(self, round);
	if (round->traffic->may_leave && stress_one_in(self, 2)) {
		/* What is then left is dropped; enqueues that still wait need a cancel, since nobody takes any more. */
		weiri_store_release(&round->leave, 1u); /* [release] pairs with consume() */
		STRESS_CHECK(weir_queue_close(round->queue, WEIR_CLOSE_CANCEL, NULL) == WEIR_OK, "a close failed");
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
	enum weir_status status = weir_queue_destroy(round->queue, &error);

	STRESS_CHECK(status == WEIR_OK, "at the end: %s", error.message);
	/* [relaxed] all are joined. */
	STRESS_CHECK(weiri_load_relaxed(&round->ended) == 0 || round->drops == 0,
	             "a dequeue said that the end had come, and %llu items were left", (unsigned long long)round->drops);
	check_each_once(round);
	for (unsigned i = 0; i < round->producers; i++)
		check_completions(&round->producer[i]);
	for (unsigned i = 0; i < round->consumers; i++)
		check_completions(&round->consumer[i]);
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
		for (unsigned i = 0; i < round.producers; i++)
			items += round.producer[i].count;
		dropped += round.drops;
		rounds++;
		tear_down(&round);
	}
	stress_note("rounds", rounds);
	stress_note("items", items);
	if (traffic->may_leave)
		stress_note("dropped", dropped);
}
