/*
 * test_spsc.c - one producer, one consumer.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <weir/spsc.h>

#include "failing_allocator.h"
#include "ring/in_step.h"
#include "spsc_members.h"

Test(spsc, holds_exactly_its_capacity_in_order)
{
	const size_t capacities[] = {1, 2, 3, 4, 7, 8, 1000, 1024};

	for (size_t c = 0; c < sizeof(capacities) / sizeof(capacities[0]); c++) {
		weir_spsc *spsc;
		uint64_t value;

		cr_assert_eq(weir_spsc_create(capacities[c], NULL, &spsc, NULL), WEIR_OK);
		cr_assert_eq(weir_spsc_capacity(spsc), capacities[c]);
		for (int lap = 0; lap < 3; lap++) {
			for (size_t i = 0; i < capacities[c]; i++)
				cr_assert_eq(weir_spsc_try_enqueue(spsc, UINT64_MAX - i), WEIR_OK);
			cr_assert_eq(weir_spsc_try_enqueue(spsc, 0), WEIR_WOULD_BLOCK);
			cr_assert_eq(weir_spsc_size_approx(spsc), capacities[c]);
			for (size_t i = 0; i < capacities[c]; i++) {
				cr_assert_eq(weir_spsc_try_dequeue(spsc, &value), WEIR_OK);
				cr_assert_eq(value, UINT64_MAX - i);
			}
			cr_assert_eq(weir_spsc_try_dequeue(spsc, &value), WEIR_WOULD_BLOCK);
		}
		weir_spsc_destroy(spsc, NULL);
	}
}

Test(spsc, batches_go_in_and_out_in_part)
{
	uint64_t in[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, out[10];
	weir_spsc *spsc;
	size_t done;

	cr_assert_eq(weir_spsc_create(6, NULL, &spsc, NULL), WEIR_OK);
	cr_assert_eq(weir_spsc_try_enqueue_many(spsc, in, 10, &done), WEIR_OK);
	cr_assert_eq(done, 6);
	cr_assert_eq(weir_spsc_try_enqueue_many(spsc, in, 1, &done), WEIR_WOULD_BLOCK);
	cr_assert_eq(weir_spsc_try_dequeue_many(spsc, out, 10, &done), WEIR_OK);
	cr_assert_eq(done, 6);
	cr_assert_arr_eq(out, in, 6 * sizeof(in[0]));
	cr_assert_eq(weir_spsc_try_dequeue_many(spsc, out, 1, &done), WEIR_WOULD_BLOCK);
	cr_assert_eq(weir_spsc_try_dequeue_many(spsc, NULL, 0, &done), WEIR_OK);
	cr_assert_eq(weir_spsc_try_enqueue_many(spsc, NULL, 0, &done), WEIR_OK);
	weir_spsc_destroy(spsc, NULL);
}

Test(spsc, a_batch_of_a_part_leaves_the_rest_and_what_lies_behind_it)
{
	uint64_t in[4] = {1, 2, 3, 4}, out[3] = {0, 0, 77}, next;
	weir_spsc *spsc;
	size_t done;

	cr_assert_eq(weir_spsc_create(4, NULL, &spsc, NULL), WEIR_OK);
	cr_assert_eq(weir_spsc_try_enqueue_many(spsc, in, 4, &done), WEIR_OK);
	cr_assert_eq(weir_spsc_try_dequeue_many(spsc, out, 2, &done), WEIR_OK);
	cr_expect_eq(done, 2);
	cr_expect(out[0] == 1 && out[1] == 2 && out[2] == 77);
	cr_assert_eq(weir_spsc_try_dequeue(spsc, &next), WEIR_OK);
	cr_expect_eq(next, 3);
	weir_spsc_destroy(spsc, NULL);
}

/* Batches of each length begin at each slot, and leave in batches of another length. */
Test(spsc, batches_of_each_length_go_around_the_ring_in_order)
{
	enum { CAPACITY = 20, SLOTS = 32 };
	weir_spsc *spsc;

	cr_assert_eq(weir_spsc_create(CAPACITY, NULL, &spsc, NULL), WEIR_OK);
	for (size_t length = 1; length <= CAPACITY; length++) {
		uint64_t in = 0, out = 0;

		while (in < (uint64_t)SLOTS * length) {
			uint64_t values[CAPACITY] = {0}, taken[CAPACITY + 1] = {0};
			size_t done;

			for (size_t i = 0; i < length; i++)
				values[i] = in + i;
			cr_assert_eq(weir_spsc_try_enqueue_many(spsc, values, length, &done), WEIR_OK);
			in += done;
			cr_assert_eq(weir_spsc_size_approx(spsc), in - out);
			taken[CAPACITY - length / 2] = 77;
			cr_assert_eq(weir_spsc_try_dequeue_many(spsc, taken, CAPACITY - length / 2, &done), WEIR_OK);
			cr_assert_eq(taken[CAPACITY - length / 2], 77);
			for (size_t i = 0; i < done; i++)
				cr_assert_eq(taken[i], out + i, "batches of %zu", length);
			out += done;
		}
		while (weir_spsc_try_dequeue(spsc, &in) == WEIR_OK)
			cr_assert_eq(in, out++);
	}
	weir_spsc_destroy(spsc, NULL);
}

Test(spsc, bad_arguments_are_refused)
{
	struct weir_spsc_options options = {WEIR_SPSC_OPTIONS_INIT, .flags = 2};
	weir_spsc *spsc = NULL;
	uint64_t value;
	size_t done;

	cr_assert_eq(weir_spsc_create(0, NULL, &spsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_spsc_create((size_t)WEIR_SPSC_MAX_CAPACITY + 1, NULL, &spsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_spsc_create(1, &options, &spsc, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.struct_size = 1;
	cr_assert_eq(weir_spsc_create(1, &options, &spsc, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_spsc_create(1, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(spsc);
	cr_assert_eq(weir_spsc_try_enqueue(NULL, 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_spsc_try_dequeue(NULL, &value), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_spsc_try_enqueue_many(NULL, &value, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_spsc_try_dequeue_many(NULL, &value, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_spsc_size_approx(NULL), 0);
	cr_assert_eq(weir_spsc_capacity(NULL), 0);
	weir_spsc_destroy(NULL, NULL);
}

static enum weir_status make_with(const weir_allocator *allocator, void *context)
{
	struct weir_spsc_options options = {WEIR_SPSC_OPTIONS_INIT, .allocator = allocator};
	weir_spsc *spsc;
	enum weir_status status = weir_spsc_create(10, &options, &spsc, NULL);

	(void)context;
	if (status == WEIR_OK)
		weir_spsc_destroy(spsc, NULL);
	return status;
}

Test(spsc, create_survives_every_allocation_failing)
{
	cr_assert_eq(fail_each_allocation(make_with, NULL), 1);
}

static size_t bytes_of(size_t capacity)
{
	struct failing_allocator memory = {0};
	weir_allocator allocator = failing_allocator_hooks(&memory);
	struct weir_spsc_options options = {WEIR_SPSC_OPTIONS_INIT, .allocator = &allocator};
	weir_spsc *spsc;
	size_t bytes;

	cr_assert_eq(weir_spsc_create(capacity, &options, &spsc, NULL), WEIR_OK);
	bytes = weiri_load_relaxed(&memory.bytes);
	weir_spsc_destroy(spsc, NULL);
	cr_expect_str_eq(failing_allocator_verdict(&memory), "balanced");
	return bytes;
}

/* The number of slots is the least power of two that is not below the capacity. */
Test(spsc, takes_no_more_memory_than_its_capacity_asks_for)
{
	for (size_t slots = 1; slots <= 1 << 16; slots *= 2) {
		cr_expect_leq(bytes_of(slots), slots * sizeof(uint64_t) + 384, "a capacity of %zu", slots);
		cr_expect_leq(bytes_of(slots + 1), 2 * slots * sizeof(uint64_t) + 384, "a capacity of %zu", slots + 1);
	}
}

enum { PASSED = 100000 };

struct traffic {
	weir_spsc *spsc;
	/* plain: a race detector sees whether the ring orders it */
	uint64_t payload[PASSED];
};

static void *produce(void *context)
{
	struct traffic *traffic = context;

	for (uint64_t i = 0; i < PASSED; i++) {
		traffic->payload[i] = i * 3;
		while (weir_spsc_try_enqueue(traffic->spsc, i) != WEIR_OK)
			(void)sched_yield();
	}
	return NULL;
}

Test(spsc, passes_values_and_what_they_stand_for_between_two_threads)
{
	static struct traffic traffic;
	uint64_t value = 0, wrong = 0;
	pthread_t producer;

	cr_assert_eq(weir_spsc_create(100, NULL, &traffic.spsc, NULL), WEIR_OK);
	cr_assert_eq(pthread_create(&producer, NULL, produce, &traffic), 0);
	for (uint64_t i = 0; i < PASSED; i++) {
		while (weir_spsc_try_dequeue(traffic.spsc, &value) != WEIR_OK)
			(void)sched_yield();
		wrong += value != i || traffic.payload[i] != i * 3;
	}
	(void)pthread_join(producer, NULL);
	cr_assert_eq(wrong, 0);
	weir_spsc_destroy(traffic.spsc, NULL);
}

struct watched {
	weir_spsc *spsc;
	_Atomic(int) over;
	size_t most; /* the largest size that the third thread read */
};

static void *watch_size(void *context)
{
	struct watched *watched = context;

	while (!atomic_load_explicit(&watched->over, memory_order_acquire)) {
		size_t size = weir_spsc_size_approx(watched->spsc);

		if (watched->most < size)
			watched->most = size;
	}
	return NULL;
}

/* Many values may pass between the two loads of weir_spsc_size_approx(). */
Test(spsc, a_third_thread_reads_no_size_above_the_capacity)
{
	static struct watched watched;
	pthread_t third;
	uint64_t value;

	cr_assert_eq(weir_spsc_create(2, NULL, &watched.spsc, NULL), WEIR_OK);
	cr_assert_eq(pthread_create(&third, NULL, watch_size, &watched), 0);
	for (uint64_t i = 0; i < PASSED; i++) {
		cr_assert_eq(weir_spsc_try_enqueue(watched.spsc, i), WEIR_OK);
		cr_assert_eq(weir_spsc_try_dequeue(watched.spsc, &value), WEIR_OK);
	}
	atomic_store_explicit(&watched.over, 1, memory_order_release);
	(void)pthread_join(third, NULL);
	cr_assert_leq(watched.most, 2);
	weir_spsc_destroy(watched.spsc, NULL);
}

enum { ROUNDS = 100000, MOST_DELAY = 256 };

/*
 * The ring holds two values, and one is inside. The producer puts two more while the consumer takes
 * two. No cr_assert stands there, because it would be a barrier.
 */
struct rounds {
	weir_spsc *spsc;
	_Atomic(int) begun, ended; /* the number of the round */
	enum weir_status put[2];
};

/*
 * Spins, so that it goes on at once. It yields now and then, because the other thread may need this
 * processor.
 */
static void wait_for(_Atomic(int) *number, int round)
{
	for (unsigned looks = 1; atomic_load_explicit(number, memory_order_acquire) != round; looks++) {
		if (looks % 1024 == 0)
			(void)sched_yield();
	}
}

static void *produce_two(void *context)
{
	struct rounds *rounds = context;

	for (int round = 1; round <= ROUNDS; round++) {
		wait_for(&rounds->begun, round);
		rounds->put[0] = weir_spsc_try_enqueue(rounds->spsc, 2);
		rounds->put[1] = weir_spsc_try_enqueue(rounds->spsc, 3);
		atomic_store_explicit(&rounds->ended, round, memory_order_release);
	}
	return NULL;
}

static void wait_a_little(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

/*
 * "Full" means that no value had come out when the third one was to go in. "Empty" means that the
 * second one was not in when one had come out.
 */
Test(spsc, full_and_empty_are_not_both_answered_when_two_went_in_and_one_came_out)
{
	static struct rounds rounds;
	int both = 0, wrong = 0;
	pthread_t producer;
	uint64_t value;

	cr_assert_eq(weir_spsc_create(2, NULL, &rounds.spsc, NULL), WEIR_OK);
	cr_assert_eq(pthread_create(&producer, NULL, produce_two, &rounds), 0);
	for (int round = 1; round <= ROUNDS; round++) {
		enum weir_status taken[2];

		wrong += weir_spsc_try_enqueue(rounds.spsc, 1) != WEIR_OK;
		atomic_store_explicit(&rounds.begun, round, memory_order_release);
		wait_a_little(round % MOST_DELAY);
		taken[0] = weir_spsc_try_dequeue(rounds.spsc, &value);
		taken[1] = weir_spsc_try_dequeue(rounds.spsc, &value);
		wait_for(&rounds.ended, round);
		wrong += taken[0] != WEIR_OK || rounds.put[0] != WEIR_OK;
		both += taken[1] == WEIR_WOULD_BLOCK && rounds.put[1] == WEIR_WOULD_BLOCK;
		while (weir_spsc_try_dequeue(rounds.spsc, &value) == WEIR_OK)
			;
	}
	(void)pthread_join(producer, NULL);
	cr_assert_eq(wrong, 0);
	cr_assert_eq(both, 0, "in %d of %d rounds", both, ROUNDS);
	weir_spsc_destroy(rounds.spsc, NULL);
}

/* -- in step ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* Of a thread that may be late each time: before the call, or before it looks. */
enum { TRIES = 1000000 };

/* Returns true if the side is to make no pause for some time. */
static int rests(struct spsc_side *side)
{
	return (uint32_t)weiri_load_relaxed(&side->refused) - weiri_step_time() < REST_TICKS;
}

/* As if this side had been refused just now, at the index before this one. */
static void refuse_before(struct spsc_side *side)
{
	weiri_store_relaxed(&side->refused, (weiri_load_relaxed(&side->index) - 1) << 32 | weiri_step_time());
}

/* After a refusal the rest tells of the pause: no side begins one otherwise. */
Test(spsc, a_side_in_step_pauses_before_it_refuses_and_rests_after_a_pause_in_vain)
{
	weir_spsc *spsc;
	struct spsc *members;
	uint64_t value, before;
	int tries = TRIES;

	cr_assert_eq(weir_spsc_create(1, NULL, &spsc, NULL), WEIR_OK);
	members = (struct spsc *)(void *)spsc;
	weiri_store_relaxed(&members->consumer.refused, (uint32_t)(weiri_step_time() - (1u << 30)));
	cr_assert_eq(weir_spsc_try_dequeue(spsc, &value), WEIR_WOULD_BLOCK);
	cr_assert(!rests(&members->consumer), "long after the refusal before");
	do {
		cr_assert_neq(tries--, 0, "no pause in vain");
		refuse_before(&members->consumer);
		cr_assert_eq(weir_spsc_try_dequeue(spsc, &value), WEIR_WOULD_BLOCK);
	} while (!rests(&members->consumer));
	before = weiri_load_relaxed(&members->consumer.refused);
	cr_assert_eq(weir_spsc_try_dequeue(spsc, &value), WEIR_WOULD_BLOCK);
	if (rests(&members->consumer))
		cr_assert_eq(weiri_load_relaxed(&members->consumer.refused), before, "no other pause");
	cr_assert_eq(weir_spsc_try_enqueue(spsc, 1), WEIR_OK);
	do {
		cr_assert_neq(tries--, 0, "no pause in vain");
		refuse_before(&members->producer);
		cr_assert_eq(weir_spsc_try_enqueue(spsc, 2), WEIR_WOULD_BLOCK);
	} while (!rests(&members->producer));
	cr_assert_eq(weir_spsc_try_dequeue(spsc, &value), WEIR_OK);
	cr_assert_eq(value, 1);
	weir_spsc_destroy(spsc, NULL);
}
#endif
