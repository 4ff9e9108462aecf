/*
 * test_mpsc.c - rings for one consumer, in every format.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/mpsc.h>

#include "failing_allocator.h"
#include "stepped.h"

static const enum weir_ring_format formats[] = {WEIR_RING_FORMAT_LTQ16, WEIR_RING_FORMAT_LTQ64,
                                                WEIR_RING_FORMAT_SPAN16};
enum { FORMATS = 3 };

/* Returns NULL if this machine does not have the format. */
static weir_mpsc *make(enum weir_ring_format format, size_t capacity)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};
	weir_mpsc *mpsc = NULL;
	enum weir_status status = weir_mpsc_create(capacity, &options, &mpsc, NULL);

	cr_assert(status == WEIR_OK || (status == WEIR_UNIMPLEMENTED && format != WEIR_RING_FORMAT_LTQ64));
	return mpsc;
}

static void each_format(size_t capacity, void (*check)(weir_mpsc *mpsc, size_t capacity))
{
	for (int i = 0; i < FORMATS; i++) {
		weir_mpsc *mpsc = make(formats[i], capacity);

		if (mpsc != NULL)
			check(mpsc, capacity);
		weir_mpsc_destroy(mpsc, NULL);
	}
}

static uint64_t take(weir_mpsc *mpsc)
{
	uint64_t value;

	cr_assert_eq(weir_mpsc_try_dequeue(mpsc, &value), WEIR_OK);
	return value;
}

static void fill_and_drain(weir_mpsc *mpsc, size_t capacity)
{
	uint64_t value = 77;

	cr_assert_eq(weir_mpsc_capacity(mpsc), capacity);
	for (uint64_t lap = 0; lap < 4; lap++) {
		for (uint64_t i = 0; i < capacity; i++) {
			cr_assert_eq(weir_mpsc_size_approx(mpsc), i);
			cr_assert_eq(weir_mpsc_try_enqueue(mpsc, UINT64_MAX - (lap << 32) - i), WEIR_OK);
		}
		cr_assert_eq(weir_mpsc_try_enqueue(mpsc, 1), WEIR_WOULD_BLOCK, "full at exactly %zu", capacity);
		for (uint64_t i = 0; i < capacity; i++)
			cr_assert_eq(take(mpsc), UINT64_MAX - (lap << 32) - i);
		cr_assert_eq(weir_mpsc_try_dequeue(mpsc, &value), WEIR_WOULD_BLOCK);
		cr_assert_eq(value, 77, "untouched");
		cr_assert_eq(weir_mpsc_size_approx(mpsc), 0);
		cr_assert_eq(weir_mpsc_try_enqueue(mpsc, 0), WEIR_OK, "a lap may begin at any slot");
		cr_assert_eq(take(mpsc), 0);
	}
}

Test(mpsc, holds_exactly_its_capacity_in_order)
{
	const size_t capacities[] = {1, 2, 3, 7, 8, 9, 1000, 1024};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
		each_format(capacities[i], fill_and_drain);
}

static void pass_batches(weir_mpsc *mpsc, size_t capacity)
{
	uint64_t in[20], out[20];
	size_t done;

	for (size_t i = 0; i < 20; i++)
		in[i] = i;
	for (int round = 0; round < 50; round++) {
		cr_assert_eq(weir_mpsc_try_enqueue_many(mpsc, in, 20, &done), WEIR_OK);
		cr_assert_eq(done, capacity, "no more than the capacity");
		cr_assert_eq(weir_mpsc_try_dequeue_many(mpsc, out, 5, &done), WEIR_OK);
		cr_assert_eq(done, 5);
		cr_assert_eq(weir_mpsc_try_dequeue_many(mpsc, out + 5, 15, &done), WEIR_OK);
		cr_assert_eq(done, capacity - 5);
		cr_assert_arr_eq(out, in, capacity * sizeof(in[0]));
		cr_assert_eq(weir_mpsc_try_dequeue_many(mpsc, out, 3, &done), WEIR_WOULD_BLOCK);
		cr_assert_eq(done, 0);
	}
	cr_assert_eq(weir_mpsc_try_dequeue_many(mpsc, NULL, 0, &done), WEIR_OK);
	cr_assert_eq(done, 0);
}

Test(mpsc, batches_go_in_and_out_in_part)
{
	each_format(13, pass_batches);
	each_format(16, pass_batches);
}

static void close_and_drain(weir_mpsc *mpsc, size_t capacity)
{
	uint64_t value;
	size_t done;

	for (uint64_t i = 0; i < capacity; i++)
		cr_assert_eq(weir_mpsc_try_enqueue(mpsc, i), WEIR_OK);
	cr_assert_not(weir_mpsc_closed(mpsc));
	weir_mpsc_close(mpsc);
	weir_mpsc_close(mpsc);
	cr_assert(weir_mpsc_closed(mpsc));
	cr_assert_eq(weir_mpsc_try_enqueue(mpsc, 9), WEIR_CANCELLED);
	for (uint64_t i = 0; i < capacity; i++)
		cr_assert_eq(take(mpsc), i);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_mpsc_try_dequeue(mpsc, &value), WEIR_OUT_OF_RANGE);
		cr_assert_eq(weir_mpsc_try_dequeue_many(mpsc, &value, 1, &done), WEIR_OUT_OF_RANGE);
		cr_assert_eq(weir_mpsc_try_enqueue(mpsc, 9), WEIR_CANCELLED);
	}
	cr_assert_eq(weir_mpsc_size_approx(mpsc), 0);
}

Test(mpsc, closed_gives_what_it_holds_and_then_the_end_for_ever)
{
	each_format(1, close_and_drain);
	each_format(4, close_and_drain);
	each_format(11, close_and_drain);
}

Test(mpsc, bad_arguments_are_refused)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .flags = 1};
	weir_mpsc *mpsc = NULL;
	uint64_t value;
	size_t done;

	cr_assert_eq(weir_mpsc_create(0, NULL, &mpsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_create((size_t)WEIR_RING_MAX_CAPACITY + 1, NULL, &mpsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_create(4, &options, &mpsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_create(4, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(mpsc);
	cr_assert_eq(weir_mpsc_create(4, NULL, &mpsc, NULL), WEIR_OK);
	cr_assert_eq(weir_mpsc_try_enqueue(NULL, 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_try_enqueue_many(NULL, &value, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_try_dequeue(NULL, &value), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_try_dequeue(mpsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_try_dequeue_many(NULL, &value, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_try_dequeue_many(mpsc, NULL, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_try_dequeue_many(mpsc, &value, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_size_approx(NULL), 0);
	cr_assert_eq(weir_mpsc_capacity(NULL), 0);
	cr_assert_not(weir_mpsc_closed(NULL));
	weir_mpsc_close(NULL);
	weir_mpsc_destroy(mpsc, NULL);
	weir_mpsc_destroy(NULL, NULL);
}

static enum weir_status make_with(const weir_allocator *allocator, void *context)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .allocator = allocator};
	weir_mpsc *mpsc;
	enum weir_status status = weir_mpsc_create(100, &options, &mpsc, NULL);

	(void)context;
	if (status == WEIR_OK)
		weir_mpsc_destroy(mpsc, NULL);
	return status;
}

Test(mpsc, create_survives_every_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(make_with, NULL), 1);
}

Test(mpsc, lives_in_memory_of_the_callers)
{
	static _Alignas(WEIR_RING_ALIGNMENT) unsigned char memory[16384];
	size_t size = weir_mpsc_memsize(5, NULL);
	weir_mpsc *mpsc = NULL;

	cr_assert(size != 0 && size <= sizeof(memory));
	memset(memory, 0xa5, sizeof(memory));
	cr_assert_eq(weir_mpsc_init(memory, size - 1, 5, NULL, &mpsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_mpsc_init(memory, size, 5, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(mpsc);
	cr_assert_eq(weir_mpsc_init(memory, size, 5, NULL, &mpsc, NULL), WEIR_OK);
	fill_and_drain(mpsc, 5);
	weir_mpsc_destroy(mpsc, NULL);
	for (size_t i = size; i < sizeof(memory); i++)
		cr_assert_eq(memory[i], 0xa5);
	cr_assert_eq(weir_mpsc_memsize(0, NULL), 0);
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { PRODUCERS = 3, PER_PRODUCER = 20000 };

struct traffic {
	weir_mpsc *mpsc;
	_Atomic(uint64_t) next_producer;
	/* plain: a race detector sees whether the queue orders it */
	uint64_t payload[PRODUCERS][PER_PRODUCER + 1];
};

static void *produce(void *context)
{
	struct traffic *traffic = context;
	uint64_t me = atomic_fetch_add_explicit(&traffic->next_producer, 1, memory_order_acq_rel);

	for (uint64_t i = 1; i <= PER_PRODUCER; i++) {
		traffic->payload[me][i] = i * 3;
		while (weir_mpsc_try_enqueue(traffic->mpsc, me << 32 | i) != WEIR_OK)
			(void)sched_yield();
	}
	return NULL;
}

static void run_traffic(weir_mpsc *mpsc, size_t capacity)
{
	static struct traffic traffic;
	pthread_t producers[PRODUCERS];
	uint64_t last[PRODUCERS] = {0}, values[5], wrong = 0, count = 0;
	size_t done;

	traffic = (struct traffic){.mpsc = mpsc};
	for (int i = 0; i < PRODUCERS; i++)
		cr_assert_eq(pthread_create(&producers[i], NULL, produce, &traffic), 0);
	while (count < (uint64_t)PRODUCERS * PER_PRODUCER) {
		if (weir_mpsc_try_dequeue_many(mpsc, values, 1 + capacity % 5, &done) != WEIR_OK)
			(void)sched_yield();
		for (size_t i = 0; i < done; i++) {
			uint64_t producer = values[i] >> 32, number = values[i] & UINT32_MAX;

			wrong += number != ++last[producer] || traffic.payload[producer][number] != number * 3;
		}
		count += done;
	}
	for (int i = 0; i < PRODUCERS; i++)
		(void)pthread_join(producers[i], NULL);
	cr_assert_eq(wrong, 0);
}

Test(mpsc, every_producers_values_come_out_once_in_order_with_what_they_stand_for)
{
	each_format(1, run_traffic);
	each_format(3, run_traffic);
	each_format(64, run_traffic);
}

static void enqueue_one(void *context)
{
	cr_assert_eq(weir_mpsc_try_enqueue(context, 100), WEIR_OK);
}

/*
 * This fails if an enqueue exchanges the tail and links its node afterwards, as in many MPSC
 * queues.
 */
Test(mpsc, what_others_enqueue_comes_out_beside_a_producer_stopped_anywhere)
{
	stepped_or_skip();
	for (int i = 0; i < FORMATS; i++) {
		struct stepped call = {.call = enqueue_one};
		size_t at = 0;

		for (int goes_on = 1; goes_on; at += stepped_stride(1)) {
			weir_mpsc *mpsc = make(formats[i], 4);
			uint64_t value, got = 0;

			if (mpsc == NULL)
				break;
			call.context = mpsc;
			cr_assert_eq(weir_mpsc_try_enqueue(mpsc, 1), WEIR_OK);
			goes_on = stepped_start(&call, at);
			cr_assert_eq(weir_mpsc_try_enqueue(mpsc, 2), WEIR_OK);
			cr_assert_eq(weir_mpsc_try_enqueue(mpsc, 3), WEIR_OK);
			while (weir_mpsc_try_dequeue(mpsc, &value) == WEIR_OK)
				got += value;
			cr_assert(got == 6 || got == 106, "stopped at %zu", at);
			stepped_finish(&call);
			cr_assert(got == 106 || take(mpsc) == 100);
			cr_assert_eq(weir_mpsc_try_dequeue(mpsc, &value), WEIR_WOULD_BLOCK);
			weir_mpsc_destroy(mpsc, NULL);
		}
	}
}
