/*
 * test_queue_races.c - interleavings that once went wrong, or might go wrong: each is provoked many
 * times within a bounded time.
 */
#include "queue_kit.h"
#include "stepped.h"

/* How long each test provokes its race. */
static uint64_t a_while(void)
{
	return weir_deadline_in(UINT64_C(300000000));
}

/* -- a token that fires while the operation ends, and the queue is destroyed right after ------- */

struct owner {
	weir_cancel *token;
	/* Not NULL: the thread waits, or is about to. */
	_Atomic(weir_queue *) queue;
	_Atomic(int) stop;
	enum weir_status status;
};

/*
 * Makes a queue, waits in it, and destroys it as soon as the wait is over. No other thread knows
 * the queue.
 */
static void *wait_and_destroy(void *argument)
{
	struct owner *owner = argument;
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .name = "short-lived"};
	weir_queue *queue;
	void *got;

	if (weir_queue_create(&options, &queue, NULL) != WEIR_OK)
		return NULL;
	weiri_store_release(&owner->queue, queue);
	owner->status = weir_queue_dequeue(queue, &got, in_good_time(), owner->token, NULL);
	(void)weir_queue_destroy(queue, NULL);
	return NULL;
}

Test(queue_races, a_fired_token_leaves_the_queue_alone_once_its_operation_has_ended)
{
	uint64_t until = a_while();

	while (weir_now_ns() < until) {
		struct owner owner = {0};
		pthread_t thread;

		cr_assert_eq(weir_cancel_create(NULL, &owner.token, NULL), WEIR_OK);
		cr_assert_eq(pthread_create(&thread, NULL, wait_and_destroy, &owner), 0);
		await(weiri_load_acquire(&owner.queue) != NULL);
		cr_assert_eq(weir_cancel_fire(owner.token, NULL), 1);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(owner.status, WEIR_CANCELLED);
		weir_cancel_release(owner.token);
	}
}

static void meet_weir(void *context)
{
	(void)context;
	cr_assert_not_null(weiri_record_get());
}

/*
 * The cost of a trial, for stepped_stride(). With a sanitizer more places are tried, as only it
 * sees a use after free.
 */
enum { COST = STEPPED_STRIDE == 1 ? 16 : 4 };

static void fire(void *context)
{
	(void)weir_cancel_fire(context, NULL);
}

/*
 * The thread that fires the token is stopped. An item ends the wait meanwhile, or the fire has
 * claimed the operation and ends it when it goes on. The memory of an ended operation is freed
 * meanwhile, so a sanitizer sees a later use.
 */
Test(queue_races, a_fire_that_stands_anywhere_leaves_alone_what_has_ended_meanwhile)
{
	size_t got = 0, cancelled = 0;
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		struct call wait = {.kind = DEQUEUE, .queue = fifo(1)};
		struct stepped call = {.prepare = meet_weir, .call = fire};

		cr_assert_eq(weir_cancel_create(NULL, &wait.token, NULL), WEIR_OK);
		call.context = wait.token;
		begin_waiting_call(&wait, 1);
		stands = stepped_start(&call, at);
		put(wait.queue, 7, 1);
		await(has_ended(&wait) || is_asleep(&wait));
		(void)weir_reclaim_flush(0);
		stepped_finish(&call);
		if (end_call(&wait) == WEIR_OK) {
			cr_assert_eq(number_of(wait.items[0]), 7);
			got++;
		} else {
			cr_assert_eq(wait.status, WEIR_CANCELLED);
			expect_next(wait.queue, 7, 1);
			cancelled++;
		}
		destroy(wait.queue);
		weir_cancel_release(wait.token);
	}
	cr_expect(got != 0 && cancelled != 0, "%zu got the item, %zu were cancelled", got, cancelled);
}

/* -- a storm of calls that give up ------------------------------------------------------------- */

enum { PRODUCERS = 3, MOST_CONSUMERS = 3, MOST = 1 << 18, MOST_AT_ONCE = 8 };

/* Items are numbers: producer * MOST / PRODUCERS + a number that counts up. */
struct storm {
	weir_queue *queue;
	size_t consumers;
	_Atomic(int) stop; /* for the producers */
	/* The tokens of calls that wait. The thread that fires a token takes it out. */
	_Atomic(weir_cancel *) tokens[PRODUCERS + MOST_CONSUMERS];
	_Atomic(int) worker;
	_Atomic(int) disorder;
	/* Calls that returned an impossible status. */
	_Atomic(int) strange;
	_Atomic(size_t) given_up;
	_Atomic(unsigned char) in[MOST], out[MOST];
};

static struct storm storm;

static uint32_t draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

/* Draws a deadline: one that has passed, up to a hundred microseconds, or sometimes a long one. */
static uint64_t draw_deadline(uint64_t *state)
{
	uint32_t chance = draw(state) % 8;

	return chance == 0 ? 0 : chance == 1 ? weir_deadline_in(2000000) : weir_deadline_in(draw(state) % 100000);
}

/* Offers a token for one call, which any thread may fire. Most calls get NULL. */
static weir_cancel *offer_token(_Atomic(weir_cancel *) *place, uint64_t *state)
{
	weir_cancel *token = NULL;

	if (draw(state) % 4 == 0 && weir_cancel_create(NULL, &token, NULL) == WEIR_OK)
		weiri_store_release(place, weir_cancel_retain(token));
	return token;
}

static void withdraw_token(_Atomic(weir_cancel *) *place, weir_cancel *token)
{
	weir_cancel_release(weiri_exchange_acq_rel(place, NULL));
	weir_cancel_release(token);
}

static void *fire_tokens(void *unused)
{
	(void)unused;
	while (!weiri_load_relaxed(&storm.stop)) {
		for (size_t i = 0; i < PRODUCERS + MOST_CONSUMERS; i++) {
			weir_cancel *token = weiri_exchange_acq_rel(&storm.tokens[i], NULL);

			(void)weir_cancel_fire(token, NULL);
			weir_cancel_release(token);
		}
		(void)sched_yield();
	}
	return NULL;
}

static void judge(enum weir_status status)
{
	int gave_up = status == WEIR_DEADLINE_EXCEEDED || status == WEIR_CANCELLED;

	weiri_fetch_add_relaxed(&storm.given_up, gave_up != 0);
	weiri_fetch_add_relaxed(&storm.strange, status != WEIR_OK && !gave_up);
}

static void *produce_at_random(void *unused)
{
	size_t worker = (size_t)weiri_fetch_add_relaxed(&storm.worker, 1) % PRODUCERS;
	size_t next = worker * (MOST / PRODUCERS), end = next + MOST / PRODUCERS;
	uint64_t state = worker + 1;

	(void)unused;
	while (!weiri_load_relaxed(&storm.stop) && next + MOST_AT_ONCE < end) {
		struct call call = {.kind = draw(&state) % 2 != 0 ? ENQUEUE : ENQUEUE_MANY, .queue = storm.queue};

		call.count = 1 + draw(&state) % MOST_AT_ONCE;
		for (size_t i = 0; i < call.count; i++)
			call.items[i] = item(next + i);
		call.token = offer_token(&storm.tokens[worker], &state);
		call.deadline_ns = draw_deadline(&state) + 1;
		call.status = call_now(&call);
		withdraw_token(&storm.tokens[worker], call.token);
		judge(call.status);
		if (call.kind == ENQUEUE)
			call.done = call.status == WEIR_OK;
		for (size_t i = 0; i < call.done; i++)
			weiri_store_relaxed(&storm.in[next + i], 1);
		/* An item that is not in will not come out, and is not tried again. */
		next += call.kind == ENQUEUE ? 1 : call.count;
	}
	return NULL;
}

/*
 * A single consumer sees the items of each producer in their order, whatever was put back
 * meanwhile.
 */
static void receive(const struct call *call, size_t count, size_t newest[PRODUCERS])
{
	for (size_t i = 0; i < count; i++) {
		size_t number = number_of(call->items[i]), *newest_of_it = &newest[number / (MOST / PRODUCERS)];

		if (storm.consumers == 1 && storm.queue->ring != NULL)
			weiri_fetch_add_relaxed(&storm.disorder, number < *newest_of_it);
		*newest_of_it = number + 1;
		weiri_fetch_add_relaxed(&storm.out[number], 1);
	}
}

static void *consume_at_random(void *unused)
{
	static const enum call_kind kinds[] = {DEQUEUE, DEQUEUE_MANY, DEQUEUE_UP_TO};
	size_t worker = (size_t)weiri_fetch_add_relaxed(&storm.worker, 1) % MOST_CONSUMERS + PRODUCERS;
	size_t newest[PRODUCERS] = {0};
	uint64_t state = worker + 1;

	(void)unused;
	for (;;) {
		struct call call = {.kind = kinds[draw(&state) % 3], .queue = storm.queue};

		call.count = call.kind == DEQUEUE ? 1 : 1 + draw(&state) % MOST_AT_ONCE;
		call.token = offer_token(&storm.tokens[worker], &state);
		call.deadline_ns = draw_deadline(&state) + 1;
		call.status = call_now(&call);
		withdraw_token(&storm.tokens[worker], call.token);
		if (call.status == WEIR_OUT_OF_RANGE && (call.kind != DEQUEUE_MANY || call.count == 1))
			return NULL;
		if (call.status == WEIR_OUT_OF_RANGE)
			continue;
		judge(call.status);
		receive(&call, call.status != WEIR_OK ? 0 : call.kind == DEQUEUE_UP_TO ? call.done : call.count, newest);
	}
}

static void storm_over(struct weir_queue_options options, size_t consumers)
{
	pthread_t producers[PRODUCERS], takers[MOST_CONSUMERS], canceller;
	uint64_t until = a_while();
	size_t lost = 0, twice = 0;

	memset(&storm, 0, sizeof(storm));
	storm.queue = queue_with(options);
	storm.consumers = consumers;
	for (size_t i = 0; i < PRODUCERS; i++)
		cr_assert_eq(pthread_create(&producers[i], NULL, produce_at_random, NULL), 0);
	await(weiri_load_relaxed(&storm.worker) == PRODUCERS);
	for (size_t i = 0; i < consumers; i++)
		cr_assert_eq(pthread_create(&takers[i], NULL, consume_at_random, NULL), 0);
	cr_assert_eq(pthread_create(&canceller, NULL, fire_tokens, NULL), 0);
	while (weir_now_ns() < until)
		(void)sched_yield();
	weiri_store_relaxed(&storm.stop, 1);
	for (size_t i = 0; i < PRODUCERS; i++)
		cr_assert_eq(pthread_join(producers[i], NULL), 0);
	cr_assert_eq(weir_queue_close(storm.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (size_t i = 0; i < consumers; i++)
		cr_assert_eq(pthread_join(takers[i], NULL), 0);
	cr_assert_eq(pthread_join(canceller, NULL), 0);
	for (size_t i = 0; i < MOST; i++) {
		lost += storm.in[i] > storm.out[i];
		twice += storm.in[i] < storm.out[i];
	}
	cr_expect_eq(lost, 0, "%zu items were lost", lost);
	cr_expect_eq(twice, 0, "%zu items came out twice or were never in", twice);
	cr_expect_eq(storm.disorder, 0);
	cr_expect_eq(storm.strange, 0);
	cr_expect_gt(storm.given_up, 0, "no call gave up");
	cr_expect_eq(storm.queue->turn % 2, 0, "a batch still has the turn");
	destroy(storm.queue);
}

Test(queue_races, calls_that_give_up_lose_nothing_and_keep_the_order)
{
	storm_over((struct weir_queue_options){.capacity = 4}, 1);
}

Test(queue_races, calls_of_many_that_give_up_lose_nothing)
{
	storm_over((struct weir_queue_options){.capacity = 3}, MOST_CONSUMERS);
}

Test(queue_races, calls_that_give_up_in_a_fair_queue_lose_nothing_and_keep_the_order)
{
	storm_over((struct weir_queue_options){.capacity = 4, .flags = WEIR_QUEUE_FAIR}, 1);
}

Test(queue_races, calls_that_give_up_in_a_shuffle_queue_lose_nothing)
{
	storm_over((struct weir_queue_options){.capacity = 6, .order = WEIR_QUEUE_SHUFFLE, .min_after_dequeue = 2},
	           MOST_CONSUMERS);
}

/* -- no wake-up is lost ------------------------------------------------------------------------ */

/*
 * Two queues with one place, between which a token goes round. Each hand-over wakes a sleeper, so a
 * lost wake-up stops everything.
 */
struct pair {
	weir_queue *there, *back;
	_Atomic(size_t) rounds;
	_Atomic(int) failed;
	int batches;
};

static int hand_over(struct pair *pair, weir_queue *from, weir_queue *to)
{
	void *items[2];

	if (pair->batches)
		return weir_queue_dequeue_many(from, items, 2, in_good_time(), NULL, NULL) == WEIR_OK &&
		       weir_queue_enqueue_many(to, items, 2, in_good_time(), NULL, NULL, NULL) == WEIR_OK;
	return weir_queue_dequeue(from, items, in_good_time(), NULL, NULL) == WEIR_OK &&
	       weir_queue_enqueue(to, items[0], in_good_time(), NULL, NULL) == WEIR_OK;
}

static void *send_back(void *argument)
{
	struct pair *pair = argument;

	while (hand_over(pair, pair->there, pair->back))
		;
	return NULL;
}

static void go_round(int batches)
{
	struct pair pair = {.there = fifo(1), .back = fifo(1), .batches = batches};
	uint64_t until = a_while();
	void *items[2] = {item(1), item(2)};
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, send_back, &pair), 0);
	cr_assert_eq(weir_queue_enqueue_many(pair.there, items, 1 + (size_t)batches, in_good_time(), NULL, NULL, NULL),
	             WEIR_OK);
	while (weir_now_ns() < until)
		cr_assert(hand_over(&pair, pair.back, pair.there), "a wake-up was lost");
	cr_assert_eq(weir_queue_close(pair.there, WEIR_CLOSE_CANCEL, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_close(pair.back, WEIR_CLOSE_CANCEL, NULL), WEIR_OK);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	destroy(pair.there);
	destroy(pair.back);
}

Test(queue_races, a_token_goes_round_two_queues_without_a_lost_wake_up)
{
	go_round(0);
	go_round(1);
}

/* -- asynchronous operations that other threads cancel ----------------------------------------- */

enum { OPERATIONS = 64 };

struct operation {
	weir_pending *op;
	void *items[3];
	size_t done;
	_Atomic(int) completions;
	enum weir_status status;
};

struct asynchronous {
	weir_queue *queue;
	struct operation operations[OPERATIONS];
	_Atomic(int) ready;
	_Atomic(size_t) put;
};

static void note(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct operation *operation = context;

	(void)error, (void)items;
	operation->status = status;
	operation->done = done;
	(void)weiri_fetch_add_release(&operation->completions, 1);
}

static void meet(struct asynchronous *all)
{
	(void)weiri_fetch_add_acq_rel(&all->ready, 1);
	while (weiri_load_acquire(&all->ready) < 3)
		(void)sched_yield();
}

static void *cancel_each_other_one(void *argument)
{
	struct asynchronous *all = argument;

	meet(all);
	for (size_t i = 0; i < OPERATIONS; i += 2)
		weir_pending_cancel(all->operations[i].op, NULL);
	return NULL;
}

static void *bring_some(void *argument)
{
	struct asynchronous *all = argument;

	meet(all);
	for (size_t i = 0; i < OPERATIONS; i++)
		weiri_fetch_add_relaxed(&all->put, weir_queue_try_enqueue(all->queue, item(i)) == WEIR_OK);
	return NULL;
}

static void race_operations(size_t round)
{
	static struct asynchronous all;
	pthread_t threads[2];
	size_t out = 0;

	memset(&all, 0, sizeof(all));
	all.queue = fifo(OPERATIONS);
	for (size_t i = 0; i < OPERATIONS; i++) {
		struct operation *operation = &all.operations[i];

		cr_assert_eq(weir_queue_start(all.queue, WEIR_QUEUE_OP_DEQUEUE_MANY, operation->items, 1 + (i + round) % 3,
		                              note, operation, &operation->op, NULL),
		             WEIR_OK);
	}
	cr_assert_eq(pthread_create(&threads[0], NULL, cancel_each_other_one, &all), 0);
	cr_assert_eq(pthread_create(&threads[1], NULL, bring_some, &all), 0);
	meet(&all);
	if (round % 3 == 0)
		cr_assert_eq(weir_queue_close(all.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_assert_eq(weir_queue_close(all.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (size_t i = 0; i < OPERATIONS; i++) {
		cr_assert_eq(all.operations[i].completions, 1, "operation %zu: %d", i, all.operations[i].completions);
		out += all.operations[i].done;
		weir_pending_release(all.operations[i].op);
	}
	cr_assert_eq(out + weir_queue_size_approx(all.queue), all.put);
	destroy(all.queue);
}

Test(queue_races, each_operation_completes_once_though_items_cancels_and_a_close_come_at_once)
{
	uint64_t until = a_while();

	for (size_t round = 0; weir_now_ns() < until; round++)
		race_operations(round);
}
