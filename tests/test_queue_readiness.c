/*
 * test_queue_readiness.c - descriptors that poll and epoll find readable while a call on the queue
 * would not wait.
 */
#include "queue_kit.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "failing_allocator.h"
#include "stepped.h"
#include "queue/queue.h"

static int readable_fd(weir_queue *queue)
{
	weir_error error = {0};
	int fd = -1;

	cr_assert_eq(weir_queue_readable_fd(queue, &fd, &error), WEIR_OK, "%s", error.message);
	return fd;
}

static int writable_fd(weir_queue *queue)
{
	weir_error error = {0};
	int fd = -1;

	cr_assert_eq(weir_queue_writable_fd(queue, &fd, &error), WEIR_OK, "%s", error.message);
	return fd;
}

static int is_lit(int fd)
{
	struct pollfd entry = {fd, POLLIN, 0};

	return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

static weir_queue *shuffle(size_t capacity, size_t min_after_dequeue)
{
	return queue_with((struct weir_queue_options){.capacity = capacity,
	                                              .order = WEIR_QUEUE_SHUFFLE,
	                                              .min_after_dequeue = min_after_dequeue,
	                                              .seed = 1,
	                                              .name = "test"});
}

/* The larger number is more urgent. */
static int64_t key_of(void *context, void *item)
{
	(void)context;
	return -(int64_t)number_of(item);
}

static weir_queue *by_key(size_t capacity)
{
	return queue_with(
		(struct weir_queue_options){.capacity = capacity, .order = WEIR_QUEUE_PRIORITY, .key = key_of, .name = "test"});
}

static void take_any(weir_queue *queue)
{
	void *got;

	cr_assert_eq(weir_queue_try_dequeue(queue, &got), WEIR_OK);
}

/* -- states ------------------------------------------------------------------------------------ */

Test(queue_readiness, is_readable_exactly_while_an_item_is_inside)
{
	weir_queue *queue = fifo(2);
	int fd = readable_fd(queue);

	for (int round = 0; round < 20; round++) {
		cr_assert(!is_lit(fd), "round %d", round);
		put(queue, 1, 2);
		cr_assert(is_lit(fd));
		expect_next(queue, 1, 1);
		cr_assert(is_lit(fd), "the second item is still there");
		expect_next(queue, 2, 1);
	}
	cr_assert(!is_lit(fd));
	destroy(queue);
}

Test(queue_readiness, is_writable_exactly_while_there_is_room)
{
	weir_queue *queue = fifo(2);
	int fd = writable_fd(queue);

	for (int round = 0; round < 20; round++) {
		cr_assert(is_lit(fd), "round %d", round);
		put(queue, 1, 1);
		cr_assert(is_lit(fd), "one more goes in");
		put(queue, 2, 1);
		cr_assert(!is_lit(fd));
		expect_next(queue, 1, 2);
	}
	destroy(queue);
}

Test(queue_readiness, tells_what_was_so_before_it_was_asked_for)
{
	weir_queue *queue = fifo(1);

	put(queue, 1, 1);
	cr_expect(is_lit(readable_fd(queue)));
	cr_expect(!is_lit(writable_fd(queue)));
	destroy(queue);
}

Test(queue_readiness, follows_the_long_way_round_of_the_ring)
{
	weir_queue *queue = fifo(3); /* not a power of two */
	int readable = readable_fd(queue), writable = writable_fd(queue);

	for (size_t i = 1; i < 200; i++) {
		size_t inside = i % 4;

		put(queue, i, inside);
		cr_assert_eq(is_lit(readable), inside != 0, "%zu", i);
		cr_assert_eq(is_lit(writable), inside != 3, "%zu", i);
		expect_next(queue, i, inside);
		cr_assert(!is_lit(readable) && is_lit(writable), "%zu", i);
	}
	destroy(queue);
}

Test(queue_readiness, follows_min_after_dequeue_of_a_shuffle_queue)
{
	weir_queue *queue = shuffle(4, 2);
	int readable = readable_fd(queue), writable = writable_fd(queue);

	put(queue, 1, 2);
	cr_expect(!is_lit(readable), "two have to stay");
	put(queue, 3, 1);
	cr_expect(is_lit(readable));
	cr_expect(is_lit(writable));
	put(queue, 4, 1);
	cr_expect(!is_lit(writable));
	take_any(queue);
	take_any(queue);
	cr_expect(!is_lit(readable));
	cr_expect(is_lit(writable));
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect(is_lit(readable), "a close lifts the minimum");
	destroy(queue);
}

Test(queue_readiness, follows_a_queue_by_priority)
{
	weir_queue *queue = by_key(2);
	int readable = readable_fd(queue), writable = writable_fd(queue);

	for (int round = 0; round < 20; round++) {
		cr_assert(!is_lit(readable) && is_lit(writable), "round %d", round);
		put(queue, 1, 1);
		cr_assert(is_lit(readable) && is_lit(writable));
		put(queue, 2, 1);
		cr_assert(is_lit(readable) && !is_lit(writable));
		expect_next(queue, 2, 1);
		cr_assert(is_lit(readable) && is_lit(writable), "the first item is still there");
		expect_next(queue, 1, 1);
	}
	destroy(queue);
}

static void end_of(weir_queue *queue, enum weir_close_mode mode)
{
	int readable = readable_fd(queue), writable = writable_fd(queue);

	put(queue, 1, 1);
	cr_expect(!is_lit(writable));
	cr_assert_eq(weir_queue_close(queue, mode, NULL), WEIR_OK);
	cr_expect(is_lit(writable), "an enqueue returns at once");
	cr_expect(is_lit(readable));
	take_any(queue);
	cr_expect(is_lit(readable), "drained: a dequeue returns at once");
	expect_drained(queue);
	cr_expect(is_lit(readable) && is_lit(writable), "for ever");
	destroy(queue);
}

Test(queue_readiness, both_wake_at_the_end)
{
	end_of(fifo(1), WEIR_CLOSE_DRAIN);
	end_of(fifo(1), WEIR_CLOSE_CANCEL);
	end_of(shuffle(1, 0), WEIR_CLOSE_DRAIN);
	end_of(shuffle(1, 0), WEIR_CLOSE_CANCEL);
	end_of(by_key(1), WEIR_CLOSE_DRAIN);
	end_of(by_key(1), WEIR_CLOSE_CANCEL);
}

Test(queue_readiness, a_closed_queue_is_not_drained_while_an_admitted_enqueue_waits)
{
	weir_queue *queue = fifo(1);
	int readable = readable_fd(queue);
	struct call producer = {.kind = ENQUEUE, .queue = queue, .items = {item(2)}};

	put(queue, 1, 1);
	begin_waiting_call(&producer, 1);
	cr_assert_eq(weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	expect_next(queue, 1, 1); /* the pump puts 2 in */
	cr_assert_eq(end_call(&producer), WEIR_OK);
	cr_expect(is_lit(readable));
	expect_next(queue, 2, 1);
	cr_expect(is_lit(readable));
	expect_drained(queue);
	destroy(queue);
}

/*
 * The batch gathers both items of a queue of two, and wants one more. `first` is the item that
 * leaves first afterwards; 0: either.
 */
static void give_back_two(weir_queue *queue, size_t first)
{
	int readable = readable_fd(queue);
	weir_cancel *token;
	struct call batch = {.kind = DEQUEUE_MANY, .queue = queue, .count = 3};

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	batch.token = token;
	begin_waiting_call(&batch, 1);
	put(queue, 1, 2);
	await(weir_queue_size_approx(queue) == 0);
	cr_expect(!is_lit(readable), "the batch has them");
	(void)weir_cancel_fire(token, NULL);
	cr_assert_eq(end_call(&batch), WEIR_CANCELLED);
	cr_expect(is_lit(readable));
	if (first != 0)
		expect_next(queue, first, 1);
	else
		take_any(queue);
	cr_expect(is_lit(readable), "the other one");
	if (first != 0)
		expect_next(queue, 3 - first, 1);
	else
		take_any(queue);
	cr_expect(!is_lit(readable));
	weir_cancel_release(token);
	destroy(queue);
}

Test(queue_readiness, what_a_cancelled_batch_gives_back_is_readable)
{
	give_back_two(fifo(2), 1);
	give_back_two(shuffle(2, 0), 0);
	give_back_two(by_key(2), 2);
}

Test(queue_readiness, a_waiter_that_takes_the_item_leaves_nothing_to_read)
{
	weir_queue *queue = fifo(1);
	int readable = readable_fd(queue), writable = writable_fd(queue);
	struct call consumer = {.kind = DEQUEUE, .queue = queue};

	begin_waiting_call(&consumer, 1);
	put(queue, 7, 1);
	cr_assert_eq(end_call(&consumer), WEIR_OK);
	cr_expect(!is_lit(readable) && is_lit(writable));
	destroy(queue);
}

Test(queue_readiness, a_fair_queue_takes_no_descriptor_for_somebody_who_waits)
{
	weir_queue *queue =
		queue_with((struct weir_queue_options){.capacity = 2, .flags = WEIR_QUEUE_FAIR, .name = "fair"});
	int readable = readable_fd(queue), writable = writable_fd(queue);
	void *got;

	put(queue, 1, 2);
	cr_expect(is_lit(readable) && !is_lit(writable));
	expect_next(queue, 1, 1);
	cr_assert_eq(weir_queue_dequeue(queue, &got, in_good_time(), NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_enqueue(queue, item(3), in_good_time(), NULL, NULL), WEIR_OK);
	cr_expect(is_lit(readable) && is_lit(writable));
	destroy(queue);
}

/* -- the descriptor ---------------------------------------------------------------------------- */

Test(queue_readiness, there_is_one_for_each_direction)
{
	weir_queue *queue = fifo(1);
	int readable = readable_fd(queue), writable = writable_fd(queue);

	cr_expect_neq(readable, writable);
	cr_expect_eq(readable_fd(queue), readable);
	cr_expect_eq(writable_fd(queue), writable);
	cr_expect_neq(fcntl(readable, F_GETFD) & FD_CLOEXEC, 0);
	destroy(queue);
	cr_expect_eq(fcntl(readable, F_GETFD), -1, "closed with the queue");
	cr_expect_eq(fcntl(writable, F_GETFD), -1);
}

Test(queue_readiness, nothing_follows_the_queue_before_it_is_asked_for)
{
	weir_queue *queue = fifo(1);

	put(queue, 1, 1);
	cr_expect(weiri_waiters_flags(&queue->consumers) == 0 && weiri_waiters_flags(&queue->producers) == 0);
	(void)readable_fd(queue);
	cr_expect_eq(weiri_waiters_flags(&queue->consumers), WEIRI_WAITERS_FOLLOWED);
	cr_expect_eq(weiri_waiters_flags(&queue->producers), WEIRI_WAITERS_FOLLOWED);
	destroy(queue);
}

/* After a time without waiters a look clears the post, and nothing else. */
Test(queue_readiness, goes_on_after_the_posts_of_waiters_are_cleared)
{
	weir_queue *queue = fifo(1);
	int readable = readable_fd(queue);
	struct call consumer = {.kind = DEQUEUE, .queue = queue};

	begin_waiting_call(&consumer, 1);
	put(queue, 7, 1);
	cr_assert_eq(end_call(&consumer), WEIR_OK);
	for (int i = 0; i < 1000; i++) {
		put(queue, 1, 1);
		cr_assert(is_lit(readable), "item %d", i);
		take_any(queue);
		cr_assert(!is_lit(readable), "item %d", i);
	}
	cr_expect_eq(weiri_waiters_flags(&queue->consumers), WEIRI_WAITERS_FOLLOWED, "no post stands");
	destroy(queue);
}

Test(queue_readiness, refuses_nothing)
{
	weir_queue *queue = fifo(1);
	weir_error error = {0};
	int fd = -5;

	cr_expect_eq(weir_queue_readable_fd(queue, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_queue_readable_fd(NULL, &fd, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "queue"));
	cr_expect_eq(weir_queue_writable_fd(queue, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "fd"));
	cr_expect_eq(fd, -5);
	destroy(queue);
}

Test(queue_readiness, says_when_there_are_no_descriptors_left_and_the_queue_goes_on)
{
	weir_queue *queue = fifo(1);
	struct rlimit before, none;
	weir_error error = {0};
	int fd = -5;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(weir_queue_readable_fd(queue, &fd, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	cr_expect_not_null(strstr(error.message, "\"test\""), "%s", error.message);
	cr_expect_eq(fd, -5);
	put(queue, 1, 1);
	cr_expect(is_lit(readable_fd(queue)));
	destroy(queue);
}

static enum weir_status create_and_request(const weir_allocator *allocator, void *context)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .allocator = allocator};
	weir_queue *queue = NULL;
	enum weir_status status = weir_queue_create(&options, &queue, NULL);
	int fd;

	(void)context;
	if (status != WEIR_OK)
		return status;
	status = weir_queue_readable_fd(queue, &fd, NULL);
	destroy(queue);
	return status;
}

Test(queue_readiness, survives_every_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(create_and_request, NULL), 4, "three for a queue, one for a descriptor");
}

/*
 * An allocator that, within a request for a descriptor, makes a second request, as another thread
 * may.
 */
struct rivalry {
	struct failing_allocator memory; /* never fails */
	weir_queue *queue;               /* not NULL: at the next allocation */
	int fd;                          /* of the other request */
};

static void *allocate_beside_a_rival(void *context, size_t size, size_t alignment)
{
	struct rivalry *rivalry = context;
	weir_queue *queue = rivalry->queue;

	rivalry->queue = NULL;
	if (queue != NULL)
		rivalry->fd = readable_fd(queue);
	return failing_allocate(&rivalry->memory, size, alignment);
}

static void release_beside_a_rival(void *context, void *memory, size_t size, size_t alignment)
{
	struct rivalry *rivalry = context;

	failing_release(&rivalry->memory, memory, size, alignment);
}

Test(queue_readiness, two_requests_at_once_get_the_same_one_and_leave_nothing_behind)
{
	struct rivalry rivalry = {.fd = -1};
	weir_allocator allocator = {allocate_beside_a_rival, release_beside_a_rival, &rivalry};
	weir_queue *queue = queue_with((struct weir_queue_options){.capacity = 1, .allocator = &allocator});
	int fd;

	rivalry.queue = queue;
	fd = readable_fd(queue);
	cr_expect_eq(fd, rivalry.fd);
	cr_expect_not(is_lit(fd));
	put(queue, 1, 1);
	cr_expect(is_lit(fd));
	take_any(queue);
	cr_expect_not(is_lit(fd));
	destroy(queue);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&rivalry.memory), "balanced", "%s",
	                 failing_allocator_verdict(&rivalry.memory));
}

/*
 * Runs in the child. Returns 0, or the line of the check that failed. Its calls must not change the
 * parent's count.
 */
static int in_the_child(weir_queue *queue, int parents)
{
	int own = -1;
	void *got;

	if (weir_queue_try_dequeue(queue, &got) != WEIR_OK || !is_lit(parents))
		return __LINE__;
	if (weir_queue_readable_fd(queue, &own, NULL) != WEIR_OK || own == parents || is_lit(own))
		return __LINE__;
	if (weir_queue_try_enqueue(queue, item(1)) != WEIR_OK || !is_lit(own))
		return __LINE__;
	if (weir_queue_try_dequeue(queue, &got) != WEIR_OK || is_lit(own) || !is_lit(parents))
		return __LINE__;
	return weir_queue_destroy(queue, NULL) == WEIR_OK ? 0 : __LINE__;
}

Test(queue_readiness, the_child_of_a_fork_leaves_the_parents_alone_and_may_have_its_own)
{
	weir_queue *queue = fifo(2);
	int fd = readable_fd(queue), status = 0;
	pid_t child;

	put(queue, 1, 1);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		int line;

		(void)alarm(60);
		line = in_the_child(queue, fd);
		_exit(line & 255);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
	cr_expect(is_lit(fd), "the parent's item is still there");
	expect_next(queue, 1, 1);
	cr_expect(!is_lit(fd));
	destroy(queue);
}

/* -- threads that are stopped ------------------------------------------------------------------ */

struct stopped_call {
	weir_queue *queue;
	size_t number; /* of the item that it enqueues */
	void *got;
	enum weir_status status;
};

static void enqueue_it(void *context)
{
	struct stopped_call *call = context;

	call->status = weir_queue_try_enqueue(call->queue, item(call->number));
}

static void dequeue_it(void *context)
{
	struct stopped_call *call = context;

	call->status = weir_queue_try_dequeue(call->queue, &call->got);
}

static void have_a_record(void *context)
{
	(void)context;
	(void)weiri_record_get();
}

static enum weir_status take_many(weir_queue *queue, size_t *done)
{
	void *items[8];

	return weir_queue_try_dequeue_many(queue, items, 8, done);
}

static enum weir_status take_one(weir_queue *queue, size_t *done)
{
	void *item;
	enum weir_status status = weir_queue_try_dequeue(queue, &item);

	*done = status == WEIR_OK;
	return status;
}

typedef enum weir_status take_fn(weir_queue *queue, size_t *done);

/*
 * A poller takes what there is, and finds nothing at most once: a stopped producer leaves the
 * descriptor readable for no second poll.
 */
static size_t take_as_a_poller_does(weir_queue *queue, take_fn *take, int readable, size_t at)
{
	size_t taken = 0, done = 0;
	int in_vain = 0;

	while (is_lit(readable)) {
		enum weir_status status = take(queue, &done);

		taken += done;
		in_vain += status == WEIR_WOULD_BLOCK;
		cr_assert_leq(in_vain, 1, "stopped at %zu: polls for nothing", at);
	}
	return taken;
}

static void poll_beside_a_stopped_producer(weir_queue *(*make)(void), take_fn *take)
{
	int stands = 1;

	for (size_t at = 0; stands; at += stepped_stride(5)) {
		struct stopped_call producer = {.queue = make(), .number = 1};
		struct stepped call = {.prepare = have_a_record, .call = enqueue_it, .context = &producer};
		int readable = readable_fd(producer.queue);
		size_t taken;

		stands = stepped_start(&call, at);
		taken = take_as_a_poller_does(producer.queue, take, readable, at);
		put(producer.queue, 2, 1);
		cr_assert(is_lit(readable), "stopped at %zu: the item of another producer is not shown", at);
		taken += take_as_a_poller_does(producer.queue, take, readable, at);
		stepped_finish(&call);
		cr_assert_eq(producer.status, WEIR_OK);
		taken += take_as_a_poller_does(producer.queue, take, readable, at);
		cr_assert_eq(taken, 2, "stopped at %zu", at);
		cr_assert(!is_lit(readable), "stopped at %zu", at);
		destroy(producer.queue);
	}
}

static weir_queue *fifo_of_4(void)
{
	return fifo(4);
}

static weir_queue *by_key_of_4(void)
{
	return by_key(4);
}

Test(queue_readiness, a_producer_stopped_anywhere_makes_no_poller_spin)
{
	stepped_or_skip();
	poll_beside_a_stopped_producer(fifo_of_4, take_many);
	poll_beside_a_stopped_producer(fifo_of_4, take_one);
	poll_beside_a_stopped_producer(by_key_of_4, take_many);
	poll_beside_a_stopped_producer(by_key_of_4, take_one);
}

/*
 * The producer is overtaken, and then stands still before each of its further instructions. So it may add to a
 * descriptor that others have made dark again. A call that finds nothing takes that back.
 */
static void poll_beside_a_stepping_producer(take_fn *take)
{
	int stands = 1;

	for (size_t at = 0; stands; at += stepped_stride(5)) {
		struct stopped_call producer = {.queue = fifo(4), .number = 1};
		struct stepped call = {.prepare = have_a_record, .call = enqueue_it, .context = &producer};
		int readable = readable_fd(producer.queue), goes_on;
		size_t taken;

		goes_on = stands = stepped_start(&call, at);
		put(producer.queue, 2, 1);
		taken = take_as_a_poller_does(producer.queue, take, readable, at);
		while (goes_on) {
			goes_on = stepped_next(&call);
			taken += take_as_a_poller_does(producer.queue, take, readable, at);
		}
		stepped_finish(&call);
		cr_assert_eq(producer.status, WEIR_OK);
		taken += take_as_a_poller_does(producer.queue, take, readable, at);
		cr_assert_eq(taken, 2, "stopped at %zu", at);
		cr_assert(!is_lit(readable), "stopped at %zu", at);
		destroy(producer.queue);
	}
}

Test(queue_readiness, a_producer_that_was_overtaken_makes_no_poller_spin)
{
	stepped_or_skip();
	poll_beside_a_stepping_producer(take_one);
	poll_beside_a_stepping_producer(take_many);
}

/* Another poller of the same descriptor is stopped while it takes the last item. */
Test(queue_readiness, a_poller_stopped_anywhere_hides_no_item_from_another)
{
	int stands = 1;

	stepped_or_skip();
	for (size_t at = 0; stands; at += stepped_stride(5)) {
		struct stopped_call poller = {.queue = fifo(4)};
		struct stepped call = {.prepare = have_a_record, .call = dequeue_it, .context = &poller};
		int readable = readable_fd(poller.queue), writable = writable_fd(poller.queue);

		put(poller.queue, 1, 1);
		stands = stepped_start(&call, at);
		put(poller.queue, 2, 1);
		cr_assert(is_lit(readable), "stopped at %zu", at);
		put(poller.queue, 3, 2);
		cr_assert(is_lit(readable), "stopped at %zu", at);
		stepped_finish(&call);
		cr_assert_eq(poller.status, WEIR_OK);
		cr_assert(is_lit(readable) && is_lit(writable), "stopped at %zu", at);
		take_any(poller.queue);
		take_any(poller.queue);
		take_any(poller.queue);
		cr_assert(!is_lit(readable), "stopped at %zu", at);
		destroy(poller.queue);
	}
}

/* -- races ------------------------------------------------------------------------------------- */

enum { THREADS = 3, EACH = 4000 };

struct crowd {
	weir_queue *queue;
	int readable, writable, with_epoll;
	/* Sums of the values. */
	_Atomic(uint64_t) in, out;
	_Atomic(uint32_t) producing;
	/* Polls that no descriptor ended in good time. */
	_Atomic(int) in_vain;
};

static const int patience_ms = 100000;

static void wait_with_poll(struct crowd *crowd, int fd)
{
	struct pollfd entry = {fd, POLLIN, 0};

	if (poll(&entry, 1, patience_ms) != 1)
		weiri_store_relaxed(&crowd->in_vain, 1);
}

static void wait_with_epoll(struct crowd *crowd, int set)
{
	struct epoll_event event;

	if (epoll_wait(set, &event, 1, patience_ms) != 1)
		weiri_store_relaxed(&crowd->in_vain, 1);
}

static int epoll_of(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0)
		return set;
	return -1;
}

/* Waits until the descriptor is in this state. */
static void wait_for(struct crowd *crowd, int fd, int set)
{
	if (set >= 0)
		wait_with_epoll(crowd, set);
	else
		wait_with_poll(crowd, fd);
}

static void *produce(void *argument)
{
	struct crowd *crowd = argument;
	int set = crowd->with_epoll ? epoll_of(crowd->writable) : -1;

	for (size_t i = 1; i <= EACH && !weiri_load_relaxed(&crowd->in_vain);) {
		if (weir_queue_try_enqueue(crowd->queue, item(i)) == WEIR_OK)
			(void)weiri_fetch_add_relaxed(&crowd->in, i++);
		else
			wait_for(crowd, crowd->writable, set);
	}
	if (set >= 0)
		(void)close(set);
	if (weiri_fetch_sub_relaxed(&crowd->producing, 1u) == 1)
		(void)weir_queue_close(crowd->queue, WEIR_CLOSE_DRAIN, NULL);
	return NULL;
}

static void *consume(void *argument)
{
	struct crowd *crowd = argument;
	int set = crowd->with_epoll ? epoll_of(crowd->readable) : -1;
	enum weir_status status = WEIR_OK;
	void *got;

	while (status != WEIR_OUT_OF_RANGE && !weiri_load_relaxed(&crowd->in_vain)) {
		status = weir_queue_try_dequeue(crowd->queue, &got);
		if (status == WEIR_OK)
			(void)weiri_fetch_add_relaxed(&crowd->out, number_of(got));
		else if (status == WEIR_WOULD_BLOCK)
			wait_for(crowd, crowd->readable, set);
	}
	if (set >= 0)
		(void)close(set);
	return NULL;
}

static void move_through(weir_queue *queue, int with_epoll)
{
	struct crowd crowd = {.queue = queue, .with_epoll = with_epoll};
	pthread_t threads[2 * THREADS];

	crowd.readable = readable_fd(queue);
	crowd.writable = writable_fd(queue);
	weiri_store_relaxed(&crowd.producing, THREADS);
	for (size_t i = 0; i < 2 * THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, i % 2 == 0 ? produce : consume, &crowd), 0);
	for (size_t i = 0; i < 2 * THREADS; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	cr_assert_eq(weiri_load_relaxed(&crowd.in_vain), 0, "%llu in, %llu out",
	             (unsigned long long)weiri_load_relaxed(&crowd.in), (unsigned long long)weiri_load_relaxed(&crowd.out));
	cr_assert_eq(weiri_load_relaxed(&crowd.in), (uint64_t)THREADS * EACH * (EACH + 1) / 2);
	cr_assert_eq(weiri_load_relaxed(&crowd.in), weiri_load_relaxed(&crowd.out));
	destroy(queue);
}

Test(queue_readiness, pollers_of_both_directions_move_everything)
{
	move_through(fifo(1), 0);
	move_through(fifo(8), 0);
	move_through(shuffle(8, 3), 0);
}

Test(queue_readiness, epoll_of_both_directions_moves_everything)
{
	move_through(fifo(1), 1);
	move_through(shuffle(3, 0), 1);
}

struct asker {
	weir_queue *queue;
	_Atomic(int) *go;
	int fd;
};

static void *ask(void *argument)
{
	struct asker *asker = argument;

	while (!weiri_load_acquire(asker->go))
		(void)sched_yield();
	if (weir_queue_readable_fd(asker->queue, &asker->fd, NULL) != WEIR_OK)
		asker->fd = -1;
	return NULL;
}

static void put_one(weir_queue *queue)
{
	put(queue, 1, 1);
}

static void find_nothing(weir_queue *queue)
{
	void *got;

	cr_assert_eq(weir_queue_try_dequeue(queue, &got), WEIR_WOULD_BLOCK);
}

/*
 * The first call that follows a queue reads the ready descriptor of a thread that it has met nowhere
 * else. ThreadSanitizer sees whether it may.
 */
static void request_then(void (*call)(weir_queue *queue), size_t inside)
{
	weir_queue *queue = fifo(2);
	_Atomic(int) go = 1;
	struct asker asker = {queue, &go, -1};
	pthread_t thread;

	put(queue, 1, inside);
	cr_assert_eq(pthread_create(&thread, NULL, ask, &asker), 0);
	await(weiri_waiters_flags(&queue->consumers) != 0);
	call(queue);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(is_lit(asker.fd), weir_queue_size_approx(queue) != 0);
	destroy(queue);
}

Test(queue_readiness, a_call_may_read_what_another_thread_has_requested)
{
	request_then(put_one, 0);
	request_then(take_any, 1);
	request_then(find_nothing, 0);
}

/*
 * Simultaneous requests get the same descriptor, and it shows an item that goes in meanwhile.
 */
Test(queue_readiness, requests_beside_an_enqueue)
{
	for (int round = 0; round < 100; round++) {
		weir_queue *queue = fifo(1);
		_Atomic(int) go = 0;
		struct asker askers[2] = {{queue, &go, -1}, {queue, &go, -1}};
		pthread_t threads[2];

		for (int i = 0; i < 2; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
		weiri_store_release(&go, 1);
		put(queue, 1, 1);
		for (int i = 0; i < 2; i++)
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_geq(askers[0].fd, 0);
		cr_assert_eq(askers[0].fd, askers[1].fd);
		cr_assert(is_lit(askers[0].fd), "round %d", round);
		take_any(queue);
		cr_assert(!is_lit(askers[0].fd), "round %d", round);
		destroy(queue);
	}
}
