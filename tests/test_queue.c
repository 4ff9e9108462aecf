/*
 * test_queue.c - one item in, one item out: order, capacity, waiting, giving up, destroying.
 */
#include "queue_kit.h"

#include <weir/ring.h>

#include "ring/layout.h"

/* -- creating ---------------------------------------------------------------------------------- */

/* The options are refused, with a message that contains `word`. */
static void expect_refused(struct weir_queue_options options, const char *word)
{
	weir_queue *queue = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT, "%s", word);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT, "%s", word);
	cr_expect_not_null(strstr(error.message, word), "\"%s\" is not in \"%s\"", word, error.message);
	cr_expect_eq(weir_queue_create(&options, &queue, NULL), WEIR_INVALID_ARGUMENT, "%s", word);
	cr_expect_null(queue);
}

Test(queue, create_refuses_bad_options_and_says_which)
{
	struct weir_queue_options good = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 4}, bad;
	weir_queue *queue = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_queue_create(NULL, &queue, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "options"));
	cr_expect_eq(weir_queue_create(&good, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "out"));
	bad = good;
	bad.struct_size = 0;
	expect_refused(bad, "begin the struct with its initialiser");
	bad.struct_size = SIZE_MAX;
	expect_refused(bad, "options");
	bad = good;
	bad.capacity = 0;
	expect_refused(bad, "queue: capacity is 0, ");
	bad.name = "frames";
	expect_refused(bad, "queue \"frames\": capacity is 0, ");
	bad.capacity = (size_t)WEIR_RING_MAX_CAPACITY + 1;
	expect_refused(bad, "capacity");
	bad = good;
	bad.order = (enum weir_queue_order)7;
	expect_refused(bad, "order");
	bad = good;
	bad.flags = 1u << 31;
	expect_refused(bad, "flag");
	bad = good;
	bad.min_after_dequeue = 1;
	expect_refused(bad, "min_after_dequeue");
	bad.order = WEIR_QUEUE_SHUFFLE;
	bad.min_after_dequeue = 4;
	expect_refused(bad, "min_after_dequeue 4");
	bad.min_after_dequeue = 0;
	bad.capacity = (size_t)WEIRI_DRAW_MAX_CAPACITY + 1;
	expect_refused(bad, "shuffle");
}

Test(queue, the_name_is_copied)
{
	char name[] = "lines of input";
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 1, .name = name});
	weir_queue *unnamed = queue_with((struct weir_queue_options){.capacity = 1});

	name[0] = '?';
	cr_expect_str_eq(weir_queue_name(queue), "lines of input");
	cr_expect_str_eq(weir_queue_name(unnamed), "queue");
	destroy(queue);
	destroy(unnamed);
}

Test(queue, a_new_queue_is_empty_and_open)
{
	weir_queue *queue = fifo(10);

	cr_expect_eq(weir_queue_size_approx(queue), 0);
	cr_expect_eq(weir_queue_capacity(queue), 10);
	cr_expect_eq(weir_queue_closed(queue), 0);
	cr_expect_eq(weir_queue_seed(queue), 0, "only a shuffle queue has a minimum");
	expect_nothing(queue);
	destroy(queue);
}

Test(queue, null_is_refused_everywhere)
{
	weir_queue *queue = fifo(1);
	void *items[1] = {NULL};
	size_t done = 9;

	cr_expect_eq(weir_queue_try_enqueue(NULL, item(1)), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_try_dequeue(NULL, items), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_try_dequeue(queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_enqueue(NULL, item(1), 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_dequeue(NULL, items, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_dequeue(queue, NULL, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_enqueue_many(NULL, items, 1, 0, NULL, &done, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_enqueue_many(queue, NULL, 1, 0, NULL, &done, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_dequeue_many(NULL, items, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_dequeue_many(queue, NULL, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_dequeue_up_to(NULL, items, 1, 0, NULL, &done, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_dequeue_up_to(queue, NULL, 1, 0, NULL, &done, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_dequeue_up_to(queue, items, 1, 0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_close(NULL, WEIR_CLOSE_DRAIN, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_close(queue, (enum weir_close_mode)2, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_closed(queue), 0);
	cr_expect_eq(weir_queue_destroy(NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_size_approx(NULL), 0);
	cr_expect_eq(weir_queue_capacity(NULL), 0);
	cr_expect_eq(weir_queue_closed(NULL), 0);
	cr_expect_eq(weir_queue_seed(NULL), 0);
	cr_expect_not_null(weir_queue_name(NULL));
	destroy(queue);
}

/* -- order and capacity ------------------------------------------------------------------------ */

Test(queue, items_come_out_in_the_order_they_went_in)
{
	static const size_t capacities[] = {1, 2, 3, 7, 8, 64, 100};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		weir_queue *queue = fifo(capacities[i]);
		size_t in = 0, out = 0;

		/* The fill level goes up and down, many times around the ring. */
		for (size_t level = 0; level < 300; level++) {
			size_t room = capacities[i] - (in - out), more = level * 7 % (room + 1), less;

			put(queue, in, more);
			in += more;
			less = level * 5 % (in - out + 1);
			expect_next(queue, out, less);
			out += less;
		}
		expect_next(queue, out, in - out);
		expect_nothing(queue);
		destroy(queue);
	}
}

Test(queue, a_queue_holds_exactly_its_capacity)
{
	static const size_t capacities[] = {1, 2, 3, 7, 8, 64, 100};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		weir_queue *queue = fifo(capacities[i]);

		for (size_t round = 0; round < 3; round++) {
			put(queue, 1, capacities[i]);
			cr_expect_eq(weir_queue_try_enqueue(queue, item(0)), WEIR_WOULD_BLOCK);
			cr_expect_eq(weir_queue_size_approx(queue), capacities[i]);
			expect_next(queue, 1, capacities[i]);
			expect_nothing(queue);
		}
		destroy(queue);
	}
}

Test(queue, null_and_all_ones_are_items_like_any_other)
{
	weir_queue *queue = fifo(2);

	put(queue, 0, 1);
	put(queue, SIZE_MAX, 1);
	expect_next(queue, 0, 1);
	expect_next(queue, SIZE_MAX, 1);
	destroy(queue);
}

Test(queue, looking_at_the_size_loses_nothing)
{
	weir_queue *queue = fifo(3);

	put(queue, 1, 2);
	for (int i = 0; i < 500; i++)
		cr_assert_eq(weir_queue_size_approx(queue), 2);
	expect_next(queue, 1, 2);
	destroy(queue);
}

Test(queue, two_queues_share_nothing)
{
	weir_queue *one = fifo(2), *other = fifo(2);

	put(one, 1, 2);
	put(other, 7, 1);
	cr_expect_eq(weir_queue_close(other, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	expect_next(one, 1, 1);
	put(one, 3, 1);
	expect_next(other, 7, 1);
	expect_next(one, 2, 2);
	destroy(one);
	destroy(other);
}

/* -- waiting ----------------------------------------------------------------------------------- */

Test(queue, a_dequeue_that_waits_gets_what_comes)
{
	weir_queue *queue = fifo(1);
	struct call call = {.kind = DEQUEUE, .queue = queue};

	begin_waiting_call(&call, 1);
	put(queue, 5, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	cr_expect_eq(number_of(call.items[0]), 5);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue, an_enqueue_that_waits_goes_in_behind_what_is_there)
{
	weir_queue *queue = fifo(3);
	struct call call = {.kind = ENQUEUE, .queue = queue, .items = {item(4)}};

	put(queue, 1, 3);
	begin_waiting_call(&call, 1);
	cr_expect_eq(weir_queue_size_approx(queue), 3, "items of waiting operations are not counted");
	expect_next(queue, 1, 1);
	cr_expect_eq(end_call(&call), WEIR_OK);
	expect_next(queue, 2, 3);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue, dequeues_that_wait_are_served_in_arrival_order)
{
	weir_queue *queue = fifo(4);
	struct call calls[4] = {{.kind = DEQUEUE}, {.kind = DEQUEUE}, {.kind = DEQUEUE}, {.kind = DEQUEUE}};

	for (size_t i = 0; i < 4; i++) {
		calls[i].queue = queue;
		begin_waiting_call(&calls[i], i + 1);
	}
	for (size_t i = 0; i < 4; i++) {
		put(queue, 10 + i, 1);
		cr_expect_eq(end_call(&calls[i]), WEIR_OK);
		cr_expect_eq(number_of(calls[i].items[0]), 10 + i);
		cr_expect_eq(idle_in(queue), 3 - i);
	}
	destroy(queue);
}

Test(queue, enqueues_that_wait_are_served_in_arrival_order)
{
	weir_queue *queue = fifo(1);
	struct call calls[4] = {{.kind = ENQUEUE}, {.kind = ENQUEUE}, {.kind = ENQUEUE}, {.kind = ENQUEUE}};

	put(queue, 1, 1);
	for (size_t i = 0; i < 4; i++) {
		calls[i].queue = queue;
		calls[i].items[0] = item(2 + i);
		begin_waiting_call(&calls[i], i + 1);
	}
	expect_next(queue, 1, 5);
	for (size_t i = 0; i < 4; i++)
		cr_expect_eq(end_call(&calls[i]), WEIR_OK);
	expect_nothing(queue);
	destroy(queue);
}

/* -- giving up --------------------------------------------------------------------------------- */

Test(queue, a_deadline_of_zero_tries_once)
{
	weir_queue *queue = fifo(1);
	weir_error error = {0};
	void *got = item(4711);

	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(error.code, WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "\"test\""), "%s", error.message);
	cr_expect_eq(number_of(got), 4711);
	cr_expect_eq(weir_queue_enqueue(queue, item(1), 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_enqueue(queue, item(2), 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(error.message, "\"test\""), "%s", error.message);
	cr_expect_eq(weir_queue_dequeue(queue, &got, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(number_of(got), 1);
	expect_nothing(queue);
	destroy(queue);
}

Test(queue, a_wait_ends_at_its_deadline_and_changes_nothing)
{
	weir_queue *queue = fifo(1);
	uint64_t deadline_ns = weir_deadline_in(2000000);
	struct call out = {.kind = DEQUEUE, .queue = queue, .deadline_ns = deadline_ns, .items = {item(4711)}};
	struct call in = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};

	cr_expect_eq(call_now(&out), WEIR_DEADLINE_EXCEEDED);
	cr_expect_geq(weir_now_ns(), deadline_ns);
	cr_expect_eq(out.error.code, WEIR_DEADLINE_EXCEEDED);
	cr_expect_not_null(strstr(out.error.message, "\"test\""), "%s", out.error.message);
	cr_expect_eq(number_of(out.items[0]), 4711);
	put(queue, 1, 1);
	in.deadline_ns = weir_deadline_in(2000000);
	cr_expect_eq(call_now(&in), WEIR_DEADLINE_EXCEEDED);
	/* A call that gave up takes no item, and puts none in later. */
	expect_next(queue, 1, 1);
	expect_nothing(queue);
	put(queue, 37, 1);
	expect_next(queue, 37, 1);
	destroy(queue);
}

Test(queue, a_token_that_has_fired_ends_a_call_before_it_begins)
{
	weir_queue *queue = fifo(2);
	weir_cancel *token;
	weir_error error = {0};
	void *got = item(4711);

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	put(queue, 1, 1);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(weir_queue_dequeue(queue, &got, in_good_time(), token, &error), WEIR_CANCELLED);
	cr_expect_eq(error.code, WEIR_CANCELLED);
	cr_expect_not_null(strstr(error.message, "\"test\""), "%s", error.message);
	cr_expect_eq(weir_queue_enqueue(queue, item(2), in_good_time(), token, NULL), WEIR_CANCELLED);
	cr_expect_eq(number_of(got), 4711);
	expect_next(queue, 1, 1);
	expect_nothing(queue);
	weir_cancel_release(token);
	destroy(queue);
}

Test(queue, a_token_that_fires_ends_all_who_wait_with_it_and_nobody_else)
{
	weir_queue *queue = fifo(1);
	weir_cancel *token, *other;
	struct call calls[3] = {
		{.kind = DEQUEUE, .queue = queue}, {.kind = DEQUEUE, .queue = queue}, {.kind = DEQUEUE, .queue = queue}};

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	cr_assert_eq(weir_cancel_create(NULL, &other, NULL), WEIR_OK);
	calls[0].token = token;
	calls[1].token = other;
	calls[2].token = token;
	for (size_t i = 0; i < 3; i++)
		begin_waiting_call(&calls[i], i + 1);
	cr_expect_eq(weir_cancel_fire(token, NULL), 1);
	cr_expect_eq(end_call(&calls[0]), WEIR_CANCELLED);
	cr_expect_eq(end_call(&calls[2]), WEIR_CANCELLED);
	cr_expect_eq(calls[0].error.code, WEIR_CANCELLED);
	cr_expect_not_null(strstr(calls[0].error.message, "\"test\""), "%s", calls[0].error.message);
	cr_expect_eq(idle_in(queue), 1);
	put(queue, 1, 1);
	cr_expect_eq(end_call(&calls[1]), WEIR_OK);
	cr_expect_eq(number_of(calls[1].items[0]), 1);
	weir_cancel_release(token);
	weir_cancel_release(other);
	destroy(queue);
}

/* The message names the queue, the operation, the code and the reason. */
static void expect_tells(const char *message, const char *operation)
{
	const char *parts[] = {"\"test\"", operation, "WEIR_ABORTED", "the pump broke"};

	for (size_t i = 0; i < 4; i++)
		cr_expect_not_null(strstr(message, parts[i]), "no %s in: %s", parts[i], message);
}

Test(queue, a_call_that_a_token_ends_tells_the_cause)
{
	weir_queue *queue = fifo(1);
	weir_cancel *token;
	weir_error cause = {WEIR_ABORTED, "the pump broke"}, error = {0};
	struct call in = {.kind = ENQUEUE_MANY, .queue = queue, .items = {item(1), item(2)}, .count = 2};
	struct call out = {.kind = DEQUEUE_MANY, .queue = fifo(2), .count = 2};
	void *got;

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	in.token = out.token = token;
	begin_waiting_call(&in, 1);
	begin_waiting_call(&out, 1);
	cr_expect_eq(weir_cancel_fire(token, &cause), 1);
	cr_expect_eq(end_call(&in), WEIR_CANCELLED);
	expect_tells(in.error.message, "enqueue");
	cr_expect_eq(in.done, 1);
	cr_expect_eq(end_call(&out), WEIR_CANCELLED);
	expect_tells(out.error.message, "dequeue");
	/* The same for a call that never began. */
	cr_expect_eq(weir_queue_dequeue(queue, &got, in_good_time(), token, &error), WEIR_CANCELLED);
	expect_tells(error.message, "dequeue");
	cr_expect_eq(weir_queue_enqueue(queue, item(3), in_good_time(), token, &error), WEIR_CANCELLED);
	expect_tells(error.message, "enqueue");
	expect_next(queue, 1, 1);
	expect_nothing(queue);
	weir_cancel_release(token);
	destroy(queue);
	destroy(out.queue);
}

/* A hook that stops the thread that fires the token. */
struct obstacle {
	weir_cancel *token;
	_Atomic(int) reached, removed;
};

static void stand_in_the_way(void *context)
{
	struct obstacle *obstacle = context;

	weiri_store_release(&obstacle->reached, 1);
	while (!weiri_load_acquire(&obstacle->removed))
		(void)sched_yield();
}

static void *run_into_it(void *argument)
{
	struct obstacle *obstacle = argument;

	(void)weir_cancel_fire(obstacle->token, NULL);
	return NULL;
}

Test(queue, a_call_that_finds_its_token_fired_ends_those_whom_a_stopped_fire_has_left)
{
	weir_queue *queue = fifo(1), *another = fifo(1);
	struct obstacle obstacle = {0};
	struct call calls[2] = {{.kind = DEQUEUE, .queue = queue}, {.kind = DEQUEUE, .queue = queue}};
	weir_cancel_hook *hook;
	pthread_t thread;
	void *got;

	cr_assert_eq(weir_cancel_create(NULL, &obstacle.token, NULL), WEIR_OK);
	for (size_t i = 0; i < 2; i++) {
		calls[i].token = obstacle.token;
		begin_waiting_call(&calls[i], i + 1);
	}
	/* The newest hook runs first. */
	cr_assert_eq(weir_cancel_on(obstacle.token, stand_in_the_way, &obstacle, &hook), WEIR_OK);
	cr_assert_eq(pthread_create(&thread, NULL, run_into_it, &obstacle), 0);
	await(weiri_load_acquire(&obstacle.reached));
	cr_expect_eq(weir_queue_dequeue(another, &got, in_good_time(), obstacle.token, NULL), WEIR_CANCELLED);
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(end_call(&calls[i]), WEIR_CANCELLED);
	weiri_store_release(&obstacle.removed, 1);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(weir_cancel_off(hook), 0);
	weir_cancel_release(obstacle.token);
	destroy(queue);
	destroy(another);
}

Test(queue, a_cancelled_enqueue_leaves_its_item_to_the_caller)
{
	weir_queue *queue = fifo(1);
	weir_cancel *token;
	struct call call = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	call.token = token;
	put(queue, 1, 1);
	begin_waiting_call(&call, 1);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(end_call(&call), WEIR_CANCELLED);
	expect_next(queue, 1, 1);
	expect_nothing(queue);
	weir_cancel_release(token);
	destroy(queue);
}

/* -- destroying -------------------------------------------------------------------------------- */

struct dropped {
	size_t count;
	size_t sum;
};

static void drop(void *context, void *any)
{
	struct dropped *dropped = context;

	dropped->count++;
	dropped->sum += number_of(any);
}

Test(queue, destroy_drops_what_is_left_inside_once)
{
	struct dropped dropped = {0};
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 8, .drop = drop, .drop_context = &dropped});

	put(queue, 1, 5);
	expect_next(queue, 1, 2);
	cr_expect_eq(dropped.count, 0, "the caller owns the items that came out");
	destroy(queue);
	cr_expect_eq(dropped.count, 3);
	cr_expect_eq(dropped.sum, 3 + 4 + 5);
}

Test(queue, destroy_drops_also_what_a_batch_gave_back)
{
	struct dropped dropped = {0};
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 8, .drop = drop, .drop_context = &dropped});
	void *items[4];

	put(queue, 1, 3);
	cr_expect_eq(weir_queue_dequeue_many(queue, items, 4, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	put(queue, 4, 1);
	destroy(queue);
	cr_expect_eq(dropped.count, 4);
	cr_expect_eq(dropped.sum, 1 + 2 + 3 + 4);
}

Test(queue, destroy_without_a_drop_function_forgets)
{
	weir_queue *queue = fifo(2);

	put(queue, 1, 2);
	destroy(queue);
}

Test(queue, destroy_is_refused_while_an_operation_waits)
{
	weir_queue *queue = fifo(1);
	struct call out[2] = {{.kind = DEQUEUE, .queue = queue}, {.kind = DEQUEUE, .queue = queue}};
	struct call in = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};
	weir_error error = {0};

	begin_waiting_call(&out[0], 1);
	begin_waiting_call(&out[1], 2);
	cr_expect_eq(weir_queue_destroy(queue, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "2 waiting operations"), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "\"test\""), "%s", error.message);
	cr_expect_eq(weir_queue_closed(queue), 0, "nothing happened");
	put(queue, 1, 1);
	cr_expect_eq(end_call(&out[0]), WEIR_OK);
	put(queue, 1, 1);
	cr_expect_eq(end_call(&out[1]), WEIR_OK);
	put(queue, 1, 1);
	begin_waiting_call(&in, 1);
	cr_expect_eq(weir_queue_destroy(queue, NULL), WEIR_FAILED_PRECONDITION);
	expect_next(queue, 1, 1);
	cr_expect_eq(end_call(&in), WEIR_OK);
	destroy(queue);
}

/* -- many threads ------------------------------------------------------------------------------ */

enum { SIDES = 4, EACH = 4000 };

/* Plain memory: written before the enqueue, read after the dequeue. */
struct parcel {
	size_t sender;
	size_t number;
};

struct traffic {
	weir_queue *queue;
	struct parcel *parcels;
	_Atomic(size_t) senders;
	_Atomic(size_t) seen[SIDES * EACH];
	_Atomic(size_t) wrong;
};

static void *send_all(void *argument)
{
	struct traffic *traffic = argument;
	size_t sender = weiri_fetch_add_relaxed(&traffic->senders, 1);

	for (size_t i = 0; i < EACH; i++) {
		struct parcel *parcel = &traffic->parcels[sender * EACH + i];

		*parcel = (struct parcel){sender, i};
		if (weir_queue_enqueue(traffic->queue, parcel, in_good_time(), NULL, NULL) != WEIR_OK)
			weiri_fetch_add_relaxed(&traffic->wrong, 1);
	}
	return NULL;
}

static void *receive_all(void *argument)
{
	struct traffic *traffic = argument;
	size_t next[SIDES] = {0};
	void *got;

	while (weir_queue_dequeue(traffic->queue, &got, in_good_time(), NULL, NULL) == WEIR_OK) {
		struct parcel *parcel = got;

		/* The items of one sender come in order. */
		if (parcel->number < next[parcel->sender])
			weiri_fetch_add_relaxed(&traffic->wrong, 1);
		next[parcel->sender] = parcel->number + 1;
		weiri_fetch_add_relaxed(&traffic->seen[parcel->sender * EACH + parcel->number], 1);
	}
	return NULL;
}

static void run_traffic(struct weir_queue_options options)
{
	static struct parcel parcels[SIDES * EACH];
	static struct traffic traffic;
	pthread_t senders[SIDES], receivers[SIDES];

	memset(&traffic, 0, sizeof(traffic));
	traffic.queue = queue_with(options);
	traffic.parcels = parcels;
	for (size_t i = 0; i < SIDES; i++) {
		cr_assert_eq(pthread_create(&senders[i], NULL, send_all, &traffic), 0);
		cr_assert_eq(pthread_create(&receivers[i], NULL, receive_all, &traffic), 0);
	}
	for (size_t i = 0; i < SIDES; i++)
		cr_assert_eq(pthread_join(senders[i], NULL), 0);
	cr_assert_eq(weir_queue_close(traffic.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	for (size_t i = 0; i < SIDES; i++)
		cr_assert_eq(pthread_join(receivers[i], NULL), 0);
	cr_expect_eq(traffic.wrong, 0);
	for (size_t i = 0; i < SIDES * EACH; i++)
		cr_assert_eq(traffic.seen[i], 1, "parcel %zu came %zu times", i, traffic.seen[i]);
	destroy(traffic.queue);
}

Test(queue, each_item_of_many_threads_comes_out_once_and_in_its_senders_order)
{
	run_traffic((struct weir_queue_options){.capacity = 16});
}

Test(queue, a_queue_of_one_place_loses_no_wake_up)
{
	run_traffic((struct weir_queue_options){.capacity = 1});
}

Test(queue, a_fair_queue_loses_no_wake_up)
{
	run_traffic((struct weir_queue_options){.capacity = 3, .flags = WEIR_QUEUE_FAIR});
}
