/*
 * test_ring_list.c - rings that are linked one behind the other.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <weir/reclaim.h>
#include <weir/ring_list.h>

#include "failing_allocator.h"
#include "stepped.h"

static weir_ring_list *make(size_t segment, const weir_allocator *allocator)
{
	struct weir_ring_list_options options = {WEIR_RING_LIST_OPTIONS_INIT, .segment = segment, .allocator = allocator};
	weir_ring_list *list = NULL;

	cr_assert_eq(weir_ring_list_create(&options, &list, NULL), WEIR_OK);
	return list;
}

static uint64_t take(weir_ring_list *list)
{
	uint64_t value;

	cr_assert_eq(weir_ring_list_try_dequeue(list, &value), WEIR_OK);
	return value;
}

Test(ring_list, is_fifo_across_any_number_of_rings)
{
	for (size_t segment = 1; segment <= 5; segment++) {
		weir_ring_list *list = make(segment, NULL);
		uint64_t value = 77;

		cr_assert_eq(weir_ring_list_try_dequeue(list, &value), WEIR_WOULD_BLOCK);
		cr_assert_eq(value, 77);
		for (uint64_t lap = 0; lap < 3; lap++) {
			for (uint64_t i = 0; i < 20; i++) {
				cr_assert_eq(weir_ring_list_enqueue(list, UINT64_MAX - i), WEIR_OK);
				cr_assert_eq(weir_ring_list_size_approx(list), i + 1);
			}
			for (uint64_t i = 0; i < 20; i++)
				cr_assert_eq(take(list), UINT64_MAX - i);
			cr_assert_eq(weir_ring_list_try_dequeue(list, &value), WEIR_WOULD_BLOCK);
			cr_assert_eq(weir_ring_list_size_approx(list), 0);
		}
		weir_ring_list_destroy(list, NULL);
	}
}

Test(ring_list, batches_span_rings)
{
	weir_ring_list *list = make(4, NULL);
	uint64_t in[23], out[23];
	size_t done;

	for (size_t i = 0; i < 23; i++)
		in[i] = i * i;
	cr_assert_eq(weir_ring_list_enqueue_many(list, in, 3, &done), WEIR_OK);
	cr_assert_eq(done, 3);
	cr_assert_eq(weir_ring_list_enqueue_many(list, in + 3, 20, &done), WEIR_OK);
	cr_assert_eq(done, 20);
	cr_assert_eq(weir_ring_list_try_dequeue_many(list, out, 10, &done), WEIR_OK);
	cr_assert_eq(done, 10);
	cr_assert_eq(weir_ring_list_try_dequeue_many(list, out + 10, 23, &done), WEIR_OK);
	cr_assert_eq(done, 13);
	cr_assert_arr_eq(out, in, sizeof(in));
	cr_assert_eq(weir_ring_list_try_dequeue_many(list, out, 1, &done), WEIR_WOULD_BLOCK);
	cr_assert_eq(weir_ring_list_try_dequeue_many(list, NULL, 0, &done), WEIR_OK);
	cr_assert_eq(weir_ring_list_enqueue_many(list, NULL, 0, &done), WEIR_OK);
	weir_ring_list_destroy(list, NULL);
}

Test(ring_list, a_closed_one_gives_what_it_has_and_ends)
{
	for (uint64_t inside = 0; inside <= 5; inside++) {
		weir_ring_list *list = make(2, NULL);
		uint64_t value;
		size_t done;

		for (uint64_t i = 0; i < inside; i++)
			cr_assert_eq(weir_ring_list_enqueue(list, i), WEIR_OK);
		cr_assert_eq(weir_ring_list_closed(list), 0);
		cr_assert_eq(weir_ring_list_close(list), WEIR_OK);
		cr_assert_eq(weir_ring_list_close(list), WEIR_OK);
		cr_assert_eq(weir_ring_list_closed(list), 1);
		cr_assert_eq(weir_ring_list_enqueue(list, 9), WEIR_CANCELLED);
		value = 9;
		cr_assert_eq(weir_ring_list_enqueue_many(list, &value, 1, &done), WEIR_CANCELLED);
		cr_assert_eq(done, 0);
		for (uint64_t i = 0; i < inside; i++)
			cr_assert_eq(take(list), i);
		cr_assert_eq(weir_ring_list_try_dequeue(list, &value), WEIR_OUT_OF_RANGE);
		cr_assert_eq(weir_ring_list_enqueue(list, 9), WEIR_CANCELLED);
		cr_assert_eq(weir_ring_list_try_dequeue_many(list, &value, 1, &done), WEIR_OUT_OF_RANGE);
		weir_ring_list_destroy(list, NULL);
	}
}

Test(ring_list, bad_arguments_are_refused)
{
	struct weir_ring_list_options options = {WEIR_RING_LIST_OPTIONS_INIT, .flags = 1};
	weir_ring_list *list = NULL;
	uint64_t value;
	size_t done;

	cr_assert_eq(weir_ring_list_create(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_create(&options, &list, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.segment = (size_t)WEIR_RING_MAX_CAPACITY + 1;
	cr_assert_eq(weir_ring_list_create(&options, &list, NULL), WEIR_INVALID_ARGUMENT);
	options.segment = 0;
	options.format = (enum weir_ring_format)9;
	cr_assert_eq(weir_ring_list_create(&options, &list, NULL), WEIR_INVALID_ARGUMENT);
	options.format = WEIR_RING_FORMAT_BEST;
	options.struct_size = sizeof(size_t) - 1;
	cr_assert_eq(weir_ring_list_create(&options, &list, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(list);
	cr_assert_eq(weir_ring_list_create(NULL, &list, NULL), WEIR_OK);
	cr_assert_eq(weir_ring_list_enqueue(NULL, 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_enqueue_many(list, NULL, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_enqueue_many(list, &value, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_try_dequeue(NULL, &value), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_try_dequeue(list, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_try_dequeue_many(list, NULL, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_try_dequeue_many(list, &value, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_close(NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_list_closed(NULL), 0);
	cr_assert_eq(weir_ring_list_size_approx(NULL), 0);
	weir_ring_list_destroy(list, NULL);
	weir_ring_list_destroy(NULL, NULL);
}

/* -- memory ------------------------------------------------------------------------------------ */

static enum weir_status fill_and_drain(const weir_allocator *allocator, void *context)
{
	struct weir_ring_list_options options = {WEIR_RING_LIST_OPTIONS_INIT, .segment = 2, .allocator = allocator};
	weir_ring_list *list;
	enum weir_status status = weir_ring_list_create(&options, &list, NULL);
	uint64_t in = 0;

	(void)context;
	if (status != WEIR_OK)
		return status;
	while (in < 7 && (status = weir_ring_list_enqueue(list, in)) == WEIR_OK)
		in++;
	/* A refused value is not inside, and no other value is lost. */
	for (uint64_t i = 0; i < in; i++)
		cr_assert_eq(take(list), i);
	cr_assert_eq(weir_ring_list_try_dequeue(list, &in), WEIR_WOULD_BLOCK);
	weir_ring_list_destroy(list, NULL);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(UINT64_C(100000000000))), WEIR_OK);
	return status;
}

Test(ring_list, survives_every_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(fill_and_drain, NULL), 5, "a list and four rings of two");
}

Test(ring_list, goes_on_where_an_allocation_failed)
{
	struct failing_allocator counts = {0};
	weir_allocator allocator = failing_allocator_hooks(&counts);
	weir_ring_list *list = make(2, &allocator);
	size_t asked = 2;

	cr_assert_eq(weir_ring_list_enqueue(list, 1), WEIR_OK);
	cr_assert_eq(weir_ring_list_enqueue(list, 2), WEIR_OK);
	counts.fail_at = asked + 1;
	cr_assert_eq(weir_ring_list_enqueue(list, 3), WEIR_RESOURCE_EXHAUSTED);
	cr_assert_eq(take(list), 1);
	cr_assert_eq(weir_ring_list_enqueue(list, 4), WEIR_OK, "the ring has room and was not closed");
	cr_assert_eq(weir_ring_list_enqueue(list, 5), WEIR_OK);
	cr_assert_eq(take(list), 2);
	cr_assert_eq(take(list), 4);
	cr_assert_eq(take(list), 5);
	weir_ring_list_destroy(list, NULL);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(UINT64_C(100000000000))), WEIR_OK);
	cr_assert_str_eq(failing_allocator_verdict(&counts), "balanced");
}

Test(ring_list, memory_follows_the_backlog_down)
{
	struct failing_allocator counts = {0};
	weir_allocator allocator = failing_allocator_hooks(&counts);
	weir_ring_list *list = make(16, &allocator);
	size_t empty = weiri_load_relaxed(&counts.bytes);

	for (uint64_t i = 0; i < 16000; i++)
		cr_assert_eq(weir_ring_list_enqueue(list, i), WEIR_OK);
	cr_assert_gt(weiri_load_relaxed(&counts.bytes), 900 * (empty / 2));
	for (uint64_t i = 0; i < 16000; i++)
		cr_assert_eq(take(list), i);
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(UINT64_C(100000000000))), WEIR_OK);
	cr_assert_leq(weiri_load_relaxed(&counts.bytes), empty);
	weir_ring_list_destroy(list, NULL);
	cr_assert_str_eq(failing_allocator_verdict(&counts), "balanced");
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { PRODUCERS = 3, CONSUMERS = 3, EACH = 20000, PRODUCER_SHIFT = 32 };

struct crowd {
	weir_ring_list *list;
	_Atomic(unsigned) arrived;
	uint64_t count[CONSUMERS], sum[CONSUMERS];
	int ordered[CONSUMERS];
};

struct member {
	struct crowd *crowd;
	unsigned number;
};

static void *produce(void *context)
{
	struct member *me = context;
	uint64_t batch[5];
	size_t done;

	for (uint64_t i = 0; i < EACH; i += 6) {
		uint64_t base = (uint64_t)me->number << PRODUCER_SHIFT;

		if (weir_ring_list_enqueue(me->crowd->list, base | i) != WEIR_OK)
			return NULL;
		for (uint64_t k = 0; k < 5; k++)
			batch[k] = base | (i + 1 + k);
		if (weir_ring_list_enqueue_many(me->crowd->list, batch, 5, &done) != WEIR_OK || done != 5)
			return NULL;
	}
	return me;
}

static void *consume(void *context)
{
	struct member *me = context;
	struct crowd *crowd = me->crowd;
	uint64_t last[PRODUCERS] = {0}, value;
	enum weir_status status;

	crowd->ordered[me->number] = 1;
	while ((status = weir_ring_list_try_dequeue(crowd->list, &value)) != WEIR_OUT_OF_RANGE) {
		uint64_t producer = value >> PRODUCER_SHIFT, number = (value & UINT32_MAX) + 1;

		if (status != WEIR_OK)
			continue;
		crowd->ordered[me->number] &= producer < PRODUCERS && number > last[producer];
		last[producer < PRODUCERS ? producer : 0] = number;
		crowd->count[me->number]++;
		crowd->sum[me->number] += number;
	}
	return me;
}

Test(ring_list, nothing_is_lost_doubled_or_reordered_among_threads)
{
	for (size_t segment = 1; segment <= 64; segment *= 8) {
		struct crowd crowd = {.list = make(segment, NULL)};
		struct member members[PRODUCERS + CONSUMERS];
		pthread_t threads[PRODUCERS + CONSUMERS];
		uint64_t count = 0, sum = 0, each = (EACH + 5) / 6 * 6;
		void *result;

		for (unsigned i = 0; i < PRODUCERS + CONSUMERS; i++) {
			members[i] = (struct member){&crowd, i < PRODUCERS ? i : i - PRODUCERS};
			cr_assert_eq(pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, &members[i]), 0);
		}
		for (unsigned i = 0; i < PRODUCERS; i++) {
			cr_assert_eq(pthread_join(threads[i], &result), 0);
			cr_assert_not_null(result);
		}
		cr_assert_eq(weir_ring_list_close(crowd.list), WEIR_OK);
		for (unsigned i = 0; i < CONSUMERS; i++) {
			cr_assert_eq(pthread_join(threads[PRODUCERS + i], NULL), 0);
			cr_assert(crowd.ordered[i]);
			count += crowd.count[i];
			sum += crowd.sum[i];
		}
		cr_assert_eq(count, PRODUCERS * each);
		cr_assert_eq(sum, PRODUCERS * (each * (each + 1) / 2));
		weir_ring_list_destroy(crowd.list, NULL);
	}
}

/* -- stopped at each instruction --------------------------------------------------------------- */

static void enqueue_one(void *context)
{
	cr_assert_eq(weir_ring_list_enqueue(context, 100), WEIR_OK);
}

/*
 * With one value to a ring, every enqueue links a ring and every dequeue drops one. A call that is
 * stopped there blocks no other.
 */
Test(ring_list, an_enqueue_stopped_anywhere_stops_nobody)
{
	struct stepped call = {.call = enqueue_one};
	weir_ring_list *list;
	size_t at = 0;

	stepped_or_skip();
	for (int goes_on = 1; goes_on; at += stepped_stride(1)) {
		uint64_t seen = 0, value;

		list = make(1, NULL);
		call.context = list;
		cr_assert_eq(weir_ring_list_enqueue(list, 1), WEIR_OK);
		goes_on = stepped_start(&call, at);
		for (uint64_t i = 2; i < 6; i++)
			cr_assert_eq(weir_ring_list_enqueue(list, i), WEIR_OK);
		for (int i = 0; i < 5; i++) {
			value = take(list);
			seen += value == 100 ? 0 : value;
			if (value == 100)
				i--;
		}
		cr_assert_eq(seen, 1 + 2 + 3 + 4 + 5);
		stepped_finish(&call);
		while (weir_ring_list_try_dequeue(list, &value) == WEIR_OK)
			cr_assert_eq(value, 100);
		weir_ring_list_destroy(list, NULL);
	}
}

static void dequeue_one(void *context)
{
	uint64_t value;

	cr_assert_neq(weir_ring_list_try_dequeue(context, &value), WEIR_OUT_OF_RANGE);
}

Test(ring_list, a_dequeue_stopped_anywhere_stops_nobody)
{
	struct stepped call = {.call = dequeue_one};
	weir_ring_list *list;
	size_t at = 0;

	stepped_or_skip();
	for (int goes_on = 1; goes_on; at += stepped_stride(1)) {
		uint64_t last = 0, value;

		list = make(1, NULL);
		call.context = list;
		for (uint64_t i = 1; i < 4; i++)
			cr_assert_eq(weir_ring_list_enqueue(list, i), WEIR_OK);
		goes_on = stepped_start(&call, at);
		for (uint64_t i = 4; i < 6; i++)
			cr_assert_eq(weir_ring_list_enqueue(list, i), WEIR_OK);
		for (int i = 0; i < 4; i++) {
			value = take(list);
			cr_assert_gt(value, last);
			last = value;
		}
		stepped_finish(&call);
		weir_ring_list_destroy(list, NULL);
	}
}
