/*
 * scenario_tensor_queue.c - queues of tuples: the components of a tuple stay together through
 * batches, closes and deadlines.
 *
 * Producers enqueue tuples of a number and of a row computed from it, singly and stacked. Consumers
 * dequeue singly and in batches, and compare row and number. In half of the rounds the queue pads:
 * rows have any length, and batches end in zeros. In some rounds the number is the priority, so
 * each batch is sorted. A batch that reaches its deadline returns what it holds. Each number is
 * dequeued once, or is left inside at the end and dropped with the queue.
 */
#include <stdio.h>
#include <string.h>
#include <weir/reclaim.h>
#include <weir/flow/tensor_queue.h>
#include <weir/time.h>

#include "ledger.h"
#include "poison.h"
#include "scenarios.h"

enum { COMPONENTS = 2, ROW = 3, MOST = 4, SIDE = 4, LIMIT = 4000 };

static const uint64_t patience_ns = 100000000000u, longest_round_ns = 20000000, longest_wait_ns = 300000;

static struct {
	weir_tensor_queue *queue;
	struct stress_object object;
	struct ledger ledger;
	int pads;
	enum weir_queue_order order;
} belt;

enum { A_TUPLE = 1, ROOM = 2 };

static void describe(const void *structure, char *text, size_t size)
{
	(void)structure;
	(void)snprintf(text, size, "%zu of %zu inside", weir_tensor_queue_size_approx(belt.queue),
	               weir_tensor_queue_capacity(belt.queue));
}

static weir_tensor *tensor_of(const weir_shape *shape, const int64_t values[])
{
	weir_tensor *tensor = NULL;

	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, shape, values, stress_poison(), &tensor) == WEIR_OK,
	             "no memory for a tensor");
	return tensor;
}

/* Makes `count` tuples, stacked; 0: one tuple, not stacked. Their rows have `length` elements. */
static void make_tuple(struct ledger_page *page, size_t count, int64_t length, weir_tensor *tuple[])
{
	weir_shape numbers = {.rank = 0}, rows = {1, {length}};
	int64_t number[MOST], row[MOST * ROW];

	for (size_t i = 0; i < (count == 0 ? 1 : count); i++) {
		number[i] = (int64_t)ledger_make(page, i);
		for (int64_t k = 0; k < length; k++)
			row[(int64_t)i * length + k] = number[i] * (k + 1);
	}
	if (count != 0) {
		numbers = (weir_shape){1, {(int64_t)count}};
		rows = (weir_shape){2, {(int64_t)count, length}};
	}
	tuple[0] = tensor_of(&numbers, number);
	tuple[1] = tensor_of(&rows, row);
}

static void release(weir_tensor *tuple[])
{
	for (size_t i = 0; i < COMPONENTS; i++)
		weir_tensor_release(tuple[i]);
}

static int is_over(enum weir_status status)
{
	STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED || status == WEIR_CANCELLED ||
	                 status == WEIR_OUT_OF_RANGE,
	             "a call ended with %s", weir_status_name(status));
	return status == WEIR_CANCELLED || status == WEIR_OUT_OF_RANGE;
}

static uint64_t draw_deadline(struct stress_thread *self)
{
	return stress_one_in(self, 2) ? WEIR_NO_DEADLINE : weir_deadline_in(stress_below(self, longest_wait_ns));
}

static void produce(struct stress_thread *self, void *context)
{
	struct ledger_page *page = context;
	enum weir_status status = WEIR_OK;

	stress_gives(self, &belt.object, A_TUPLE);
	while (page->count + MOST < belt.ledger.limit && !is_over(status)) {
		size_t count = stress_one_in(self, 2) ? 0 : 1 + (size_t)stress_below(self, MOST);
		weir_tensor *tuple[COMPONENTS];
		size_t done = 0;

		make_tuple(page, count, belt.pads ? 1 + (int64_t)stress_below(self, ROW) : ROW, tuple);
		stress_begin_on(self, count == 0 ? "enqueue" : "enqueue_many", &belt.object, ROOM);
		if (count == 0) {
			status = weir_tensor_queue_enqueue(belt.queue, tuple, COMPONENTS, draw_deadline(self), NULL, NULL);
			done = status == WEIR_OK;
		} else {
			status =
				weir_tensor_queue_enqueue_many(belt.queue, tuple, COMPONENTS, draw_deadline(self), NULL, &done, NULL);
		}
		page->count += (uint64_t)done;
		release(tuple);
		stress_end(self, 1);
	}
}

/*
 * Checks the row of a number: it must be complete. In a queue that pads, it may be any part of it
 * followed by zeros.
 */
static void check_row(int64_t number, const int64_t row[], int64_t width)
{
	int64_t length = width;

	while (belt.pads && length > 1 && row[length - 1] == 0)
		length--;
	STRESS_CHECK(belt.pads ? width <= ROW : width == ROW, "a row of %lld elements", (long long)width);
	for (int64_t k = 0; k < length; k++)
		STRESS_CHECK(row[k] == number * (k + 1), "a row of another tuple: %lld beside number %lld", (long long)row[k],
		             (long long)number);
}

static void take(struct ledger_page *page, weir_tensor *tuple[], int64_t count)
{
	const int64_t *number = weir_tensor_data(tuple[0]), *row = weir_tensor_data(tuple[1]);
	int64_t width = weir_tensor_element_count(tuple[1]) / count;
	uint64_t within[LEDGER_SIDE] = {0};

	for (int64_t i = 0; i < count; i++) {
		STRESS_CHECK(belt.order != WEIR_QUEUE_PRIORITY || i == 0 || number[i - 1] < number[i],
		             "a batch by priority has %lld before %lld", (long long)number[i - 1], (long long)number[i]);
		check_row(number[i], row + i * width, width);
		ledger_take(&belt.ledger, page, within, 1, (uint64_t)number[i]);
	}
	release(tuple);
}

static void consume(struct stress_thread *self, void *context)
{
	enum weir_status status = WEIR_OK;

	stress_gives(self, &belt.object, ROOM);
	for (;;) {
		uint64_t kind = stress_below(self, 3), deadline_ns = draw_deadline(self);
		size_t wanted = 1 + (size_t)stress_below(self, MOST);
		weir_tensor *tuple[COMPONENTS];

		stress_begin_on(self, kind == 0 ? "dequeue" : "dequeue of many", &belt.object, A_TUPLE);
		if (kind == 0)
			status = weir_tensor_queue_dequeue(belt.queue, tuple, COMPONENTS, deadline_ns, NULL, NULL);
		else if (kind == 1)
			status = weir_tensor_queue_dequeue_many(belt.queue, wanted, tuple, COMPONENTS, deadline_ns, NULL, NULL);
		else
			status = weir_tensor_queue_dequeue_up_to(belt.queue, wanted, tuple, COMPONENTS, deadline_ns, NULL, NULL);
		if (status == WEIR_OK)
			take(context, tuple, kind == 0 ? 1 : kind == 1 ? (int64_t)wanted : weir_tensor_shape(tuple[0])->dims[0]);
		stress_end(self, 1);
		/* A batch that is too large for what is left also reports that the end has come. */
		if (is_over(status) && (kind != 1 || wanted == 1))
			return;
	}
}

static void set_up(struct stress_thread *self)
{
	static const weir_shape number = {.rank = 0}, row = {1, {ROW}}, any = {1, {-1}};
	struct weir_tensor_component components[COMPONENTS] = {{WEIR_I64, &number, "number"}, {WEIR_I64, &row, "row"}};
	uint32_t fair = stress_one_in(self, 3) ? WEIR_QUEUE_FAIR : 0;
	struct weir_tensor_queue_options options;

	belt.order = stress_one_in(self, 3) ? WEIR_QUEUE_PRIORITY : WEIR_QUEUE_FIFO;
	options = (struct weir_tensor_queue_options){WEIR_TENSOR_QUEUE_OPTIONS_INIT,
	                                             .capacity = 1 + (size_t)stress_below(self, 10),
	                                             .order = belt.order,
	                                             .flags = fair,
	                                             .components = components,
	                                             .component_count = COMPONENTS,
	                                             .allocator = stress_poison()};

	belt.pads = stress_one_in(self, 2) ? 1 : 0;
	if (belt.pads) {
		options.flags |= WEIR_TENSOR_QUEUE_PADDING;
		components[1].shape = &any;
	}
	STRESS_CHECK(weir_tensor_queue_create(&options, &belt.queue, NULL) == WEIR_OK, "no queue");
	belt.object = (struct stress_object){"tensor queue", "under test", {"a tuple", "room"}, describe, belt.queue};
	ledger_open(&belt.ledger, 1 + (unsigned)stress_below(self, SIDE), 1 + (unsigned)stress_below(self, SIDE),
	            stress_scaled(LIMIT) + 2 * (uint64_t)MOST);
}

static void play(struct stress_thread *self)
{
	for (unsigned i = 0; i < belt.ledger.producers; i++)
		(void)stress_start("producer", produce, &belt.ledger.producer[i]);
	for (unsigned i = 0; i < belt.ledger.consumers; i++)
		(void)stress_start("consumer", consume, &belt.ledger.consumer[i]);
	stress_begin(self, "waiting to close");
	stress_let_pass(stress_below(self, longest_round_ns));
	STRESS_CHECK(weir_tensor_queue_close(belt.queue, stress_one_in(self, 2) ? WEIR_CLOSE_DRAIN : WEIR_CLOSE_CANCEL,
	                                     NULL) == WEIR_OK,
	             "a close failed");
	stress_begin(self, "joining");
	stress_join();
	stress_end(self, 1);
}

void scenario_tensor_queue(void)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0, tuples = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		set_up(self);
		play(self);
		STRESS_CHECK(weir_tensor_queue_size_approx(belt.queue) == 0, "%zu tuples are left after the end",
		             weir_tensor_queue_size_approx(belt.queue));
		STRESS_CHECK(weir_tensor_queue_destroy(belt.queue, NULL) == WEIR_OK,
		             "the queue reports waiting operations, but all have ended");
		ledger_check_each_once(&belt.ledger);
		for (unsigned i = 0; i < belt.ledger.producers; i++)
			tuples += belt.ledger.producer[i].count;
		ledger_close(&belt.ledger);
		STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
		             "the flush failed: memory is still held");
		stress_poison_check_empty();
	}
	stress_note("rounds", rounds);
	stress_note("tuples", tuples);
}
