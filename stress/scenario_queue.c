/*
 * scenario_queue.c - queues under the traffic of traffic.c. Each scenario shapes it so that one
 * kind of difficulty is frequent.
 */
#include "traffic.h"

#include "scenarios.h"

enum {
	SINGLE = TRAFFIC_TRY | TRAFFIC_WAIT | TRAFFIC_ASYNC,
	ALL = SINGLE | TRAFFIC_ENQUEUE_MANY | TRAFFIC_DEQUEUE_MANY
};

static const uint64_t long_ns = 20000000, short_ns = 300000;

/* No item is lost, duplicated or reordered, and the bounds are exact. */
void scenario_queue_fifo(void)
{
	stress_traffic(&(struct traffic){.calls = SINGLE | TRAFFIC_ENQUEUE_MANY, .closers = 1, .round_ns = long_ns});
}

void scenario_queue_shuffle(void)
{
	stress_traffic(&(struct traffic){
		.order = WEIR_QUEUE_SHUFFLE, .calls = SINGLE | TRAFFIC_ENQUEUE_MANY, .closers = 1, .round_ns = long_ns});
}

/* Uses all calls at the same time. Items that batches return leave among newer items. */
void scenario_queue_priority(void)
{
	stress_traffic(&(struct traffic){.order = WEIR_QUEUE_PRIORITY,
	                                 .calls = ALL,
	                                 .token_one_in = 6,
	                                 .deadline_one_in = 3,
	                                 .closers = 1,
	                                 .round_ns = long_ns,
	                                 .may_leave = 1});
}

/*
 * Batches end by deadlines, by tokens and at the end of the queue. They return what they hold, in
 * order.
 */
void scenario_queue_batch(void)
{
	stress_traffic(
		&(struct traffic){.calls = TRAFFIC_WAIT | TRAFFIC_ASYNC | TRAFFIC_ENQUEUE_MANY | TRAFFIC_DEQUEUE_MANY,
	                      .token_one_in = 6,
	                      .deadline_one_in = 3,
	                      .closers = 1,
	                      .round_ns = long_ns / 2,
	                      .one_consumer = stress_one_in(stress_self(), 2)});
}

/* Short rounds that consist mostly of closes, several at a time and of both kinds. */
void scenario_queue_close(void)
{
	stress_traffic(&(struct traffic){.order = stress_one_in(stress_self(), 3) ? WEIR_QUEUE_SHUFFLE : WEIR_QUEUE_FIFO,
	                                 .calls = ALL,
	                                 .closers = 3,
	                                 .round_ns = short_ns,
	                                 .may_leave = 1});
}

void scenario_queue_cancel(void)
{
	stress_traffic(
		&(struct traffic){.calls = ALL, .token_one_in = 1, .closers = 1, .round_ns = long_ns, .may_leave = 1});
}

void scenario_queue_deadline(void)
{
	stress_traffic(
		&(struct traffic){.calls = ALL, .deadline_one_in = 1, .closers = 1, .round_ns = long_ns, .may_leave = 1});
}
