/*
 * test_ring.c - the ring, in every format.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/ring_port.h>

#include "base/atomic.h"
#include "failing_allocator.h"
#include "ring/back_off.h"
#include "ring/in_step.h"
#include "ring/ring.h"
#include "ring/span16.h"

static const enum weir_ring_format formats[] = {WEIR_RING_FORMAT_LTQ16, WEIR_RING_FORMAT_LTQ64,
                                                WEIR_RING_FORMAT_SPAN16};
enum { FORMATS = 3 };

/* Returns NULL if this machine does not have the format. */
static weir_ring *make(enum weir_ring_format format, size_t capacity)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};
	weir_ring *ring = NULL;
	enum weir_status status = weir_ring_create(capacity, &options, &ring, NULL);

	cr_assert(status == WEIR_OK || (status == WEIR_UNIMPLEMENTED && format != WEIR_RING_FORMAT_LTQ64));
	return ring;
}

/* Runs a check on a ring of each format. */
static void each_format(size_t capacity, void (*check)(weir_ring *ring, size_t capacity))
{
	for (int i = 0; i < FORMATS; i++) {
		weir_ring *ring = make(formats[i], capacity);

		if (ring != NULL)
			check(ring, capacity);
		weir_ring_destroy(ring, NULL);
	}
}

static void fill_and_drain(weir_ring *ring, size_t capacity)
{
	uint64_t value = 77;

	for (int lap = 0; lap < 3; lap++) {
		for (size_t i = 0; i < capacity; i++) {
			cr_assert_eq(weir_ring_size_approx(ring), i);
			cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		}
		cr_assert_eq(weir_ring_try_enqueue(ring, 1), WEIR_WOULD_BLOCK, "full at exactly %zu", capacity);
		cr_assert_eq(weir_ring_size_approx(ring), capacity);
		for (size_t i = 0; i < capacity; i++) {
			cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
			cr_assert_eq(value, i);
		}
		value = 77;
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_WOULD_BLOCK);
		cr_assert_eq(value, 77, "untouched");
	}
}

Test(ring, what_any_process_wrote_into_a_hint_makes_no_tombstone)
{
	struct weiri_race race = {0};
	_Atomic(uint64_t) hint = (UINT64_C(1) << 63) + 1;

	cr_expect_eq(weiri_step_aside(&hint, 0, &race), 1, "shm/frames.c, X4");
}

Test(ring, holds_exactly_its_capacity_in_order)
{
	const size_t capacities[] = {1, 2, 3, 7, 8, 9, 64, 1000, 1024};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
		each_format(capacities[i], fill_and_drain);
}

static void pass_one_by_one(weir_ring *ring, size_t capacity)
{
	uint64_t value;

	(void)capacity;
	for (uint64_t i = 0; i < 10000; i++) {
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
		cr_assert_eq(value, i);
	}
	cr_assert_eq(weir_ring_size_approx(ring), 0);
}

Test(ring, keeps_its_order_over_many_laps)
{
	each_format(1, pass_one_by_one);
	each_format(5, pass_one_by_one);
	each_format(16, pass_one_by_one);
}

static void pass_special_values(weir_ring *ring, size_t capacity)
{
	const uint64_t values[] = {0, UINT64_MAX, 1, UINT64_C(1) << 63, UINT64_C(1) << 62};
	uint64_t value;

	(void)capacity;
	for (size_t i = 0; i < 5; i++)
		cr_assert_eq(weir_ring_try_enqueue(ring, values[i]), WEIR_OK);
	for (size_t i = 0; i < 5; i++) {
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
		cr_assert_eq(value, values[i]);
	}
}

Test(ring, carries_any_64_bits)
{
	each_format(5, pass_special_values);
}

static void pass_batches(weir_ring *ring, size_t capacity)
{
	uint64_t in[20], out[20];
	size_t done;

	for (size_t i = 0; i < 20; i++)
		in[i] = i;
	for (int round = 0; round < 50; round++) {
		cr_assert_eq(weir_ring_try_enqueue_many(ring, in, 20, &done), WEIR_OK);
		cr_assert_eq(done, capacity, "no more than the capacity");
		cr_assert_eq(weir_ring_try_enqueue_many(ring, in, 1, &done), WEIR_WOULD_BLOCK);
		cr_assert_eq(done, 0);
		cr_assert_eq(weir_ring_try_dequeue_many(ring, out, 5, &done), WEIR_OK);
		cr_assert_eq(done, 5);
		cr_assert_eq(weir_ring_try_dequeue_many(ring, out + 5, 15, &done), WEIR_OK);
		cr_assert_eq(done, capacity - 5);
		cr_assert_arr_eq(out, in, capacity * sizeof(in[0]));
		cr_assert_eq(weir_ring_try_dequeue_many(ring, out, 3, &done), WEIR_WOULD_BLOCK);
	}
	cr_assert_eq(weir_ring_try_enqueue_many(ring, NULL, 0, &done), WEIR_OK);
	cr_assert_eq(weir_ring_try_dequeue_many(ring, NULL, 0, &done), WEIR_OK);
	cr_assert_eq(done, 0);
}

Test(ring, batches_go_in_and_out_in_part)
{
	each_format(13, pass_batches);
	each_format(16, pass_batches);
}

static void close_and_drain(weir_ring *ring, size_t capacity)
{
	uint64_t value;
	size_t done;

	for (size_t i = 0; i < capacity; i++)
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
	cr_assert_not(weir_ring_closed(ring));
	weir_ring_close(ring);
	weir_ring_close(ring);
	cr_assert(weir_ring_closed(ring));
	cr_assert_eq(weir_ring_try_enqueue(ring, 9), WEIR_CANCELLED);
	cr_assert_eq(weir_ring_try_enqueue_many(ring, &value, 1, &done), WEIR_CANCELLED);
	for (size_t i = 0; i < capacity; i++) {
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
		cr_assert_eq(value, i);
	}
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OUT_OF_RANGE);
		cr_assert_eq(weir_ring_try_dequeue_many(ring, &value, 1, &done), WEIR_OUT_OF_RANGE);
		cr_assert_eq(weir_ring_try_enqueue(ring, 9), WEIR_CANCELLED);
	}
	cr_assert_eq(weir_ring_size_approx(ring), 0);
}

static void close_while_empty(weir_ring *ring, size_t capacity)
{
	uint64_t value;

	(void)capacity;
	weir_ring_close(ring);
	cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_ring_try_enqueue(ring, 1), WEIR_CANCELLED);
}

static void close_after_traffic(weir_ring *ring, size_t capacity)
{
	uint64_t value;

	(void)capacity;
	for (uint64_t i = 0; i < 13; i++) {
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
	}
	cr_assert_eq(weir_ring_try_enqueue(ring, 13), WEIR_OK);
	weir_ring_close(ring);
	cr_assert_eq(weir_ring_size_approx(ring), 1);
	cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
	cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_ring_size_approx(ring), 0);
}

/*
 * The tombstone hid the lap of its slot, so the walk to the end of the ring stopped at an earlier
 * ticket of that slot.
 */
Test(ring, a_small_ring_that_was_sealed_counts_as_empty)
{
	each_format(1, close_after_traffic);
	each_format(2, close_after_traffic);
	each_format(3, close_after_traffic);
}

Test(ring, closed_gives_what_it_holds_and_then_the_end_for_ever)
{
	each_format(1, close_and_drain);
	each_format(4, close_and_drain);
	each_format(11, close_and_drain);
	each_format(4, close_while_empty);
}

Test(ring, bad_arguments_are_refused)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT};
	weir_ring *ring = NULL;
	uint64_t value;
	size_t done;

	cr_assert_eq(weir_ring_create(0, NULL, &ring, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_create((size_t)WEIR_RING_MAX_CAPACITY + 1, NULL, &ring, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_create(4, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 1;
	cr_assert_eq(weir_ring_create(4, &options, &ring, NULL), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.format = (enum weir_ring_format)9;
	cr_assert_eq(weir_ring_create(4, &options, &ring, NULL), WEIR_INVALID_ARGUMENT);
	options.format = WEIR_RING_FORMAT_BEST;
	options.struct_size = 3;
	cr_assert_eq(weir_ring_create(4, &options, &ring, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(ring);
	cr_assert_eq(weir_ring_create(4, NULL, &ring, NULL), WEIR_OK);
	cr_assert_neq(weir_ring_format(ring), WEIR_RING_FORMAT_BEST);
	cr_assert_eq(weir_ring_capacity(ring), 4);
	cr_assert_eq(weir_ring_try_enqueue(NULL, 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_try_dequeue(NULL, &value), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_try_dequeue(ring, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_try_enqueue_many(NULL, &value, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_try_enqueue_many(ring, NULL, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_try_enqueue_many(ring, &value, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_try_dequeue_many(ring, NULL, 1, &done), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_try_dequeue_many(ring, &value, 1, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_size_approx(NULL), 0);
	cr_assert_eq(weir_ring_capacity(NULL), 0);
	cr_assert_not(weir_ring_closed(NULL));
	weir_ring_close(NULL);
	weir_ring_destroy(ring, NULL);
	weir_ring_destroy(NULL, NULL);
}

static enum weir_status make_with(const weir_allocator *allocator, void *context)
{
	const enum weir_ring_format *format = context;
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = *format, .allocator = allocator};
	weir_ring *ring;
	enum weir_status status = weir_ring_create(100, &options, &ring, NULL);

	if (status == WEIR_OK)
		weir_ring_destroy(ring, NULL);
	return status;
}

Test(ring, create_survives_every_allocation_failing)
{
	for (int i = 0; i < FORMATS; i++) {
		enum weir_ring_format format = formats[i];
		weir_ring *ring = make(format, 1);

		if (ring != NULL)
			cr_assert_eq(fail_each_allocation(make_with, &format), 1);
		weir_ring_destroy(ring, NULL);
	}
}

/* -- many threads ------------------------------------------------------------------------------ */

enum { PRODUCERS = 3, CONSUMERS = 3, PER_PRODUCER = 20000 };

struct traffic {
	weir_ring *ring;
	_Atomic(uint64_t) next_producer;
	uint64_t sum[CONSUMERS], count[CONSUMERS];
	int disorder[CONSUMERS];
	_Atomic(uint64_t) next_consumer;
	int batches;
	const weir_ring_port *port; /* singles only; NULL: by calls */
};

static enum weir_status put_some(const struct traffic *traffic, const uint64_t values[], size_t count, size_t *done)
{
	enum weir_status status;

	if (traffic->port == NULL)
		return weir_ring_try_enqueue_many(traffic->ring, values, count, done);
	status = weir_ring_port_try_enqueue(traffic->port, values[0]);
	*done = status == WEIR_OK;
	return status;
}

static enum weir_status take_some(const struct traffic *traffic, uint64_t values[], size_t count, size_t *done)
{
	enum weir_status status;

	if (traffic->port == NULL)
		return weir_ring_try_dequeue_many(traffic->ring, values, count, done);
	status = weir_ring_port_try_dequeue(traffic->port, values);
	*done = status == WEIR_OK;
	return status;
}

static void *produce(void *context)
{
	struct traffic *traffic = context;
	uint64_t me = atomic_fetch_add_explicit(&traffic->next_producer, 1, memory_order_acq_rel), values[7];
	size_t n = 0, done;

	for (uint64_t i = 1; i <= PER_PRODUCER; i++) {
		values[n++] = me << 32 | i;
		if (n < (traffic->batches ? 7u : 1u) && i < PER_PRODUCER)
			continue;
		for (size_t in = 0; in < n; in += done) {
			if (put_some(traffic, values + in, n - in, &done) != WEIR_OK)
				(void)sched_yield();
		}
		n = 0;
	}
	return NULL;
}

static void *consume(void *context)
{
	struct traffic *traffic = context;
	uint64_t me = atomic_fetch_add_explicit(&traffic->next_consumer, 1, memory_order_acq_rel), last[PRODUCERS] = {0},
			 values[5];
	enum weir_status status;
	size_t done;

	do {
		status = take_some(traffic, values, traffic->batches ? 5 : 1, &done);
		if (status == WEIR_WOULD_BLOCK)
			(void)sched_yield();
		for (size_t i = 0; status == WEIR_OK && i < done; i++) {
			uint64_t producer = values[i] >> 32, number = values[i] & UINT32_MAX;

			traffic->disorder[me] |= number <= last[producer];
			last[producer] = number;
			traffic->sum[me] += number;
			traffic->count[me]++;
		}
	} while (status != WEIR_OUT_OF_RANGE);
	return NULL;
}

static void run_traffic(weir_ring *ring, int batches, const weir_ring_port *port)
{
	struct traffic traffic = {.ring = ring, .batches = batches, .port = port};
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];
	uint64_t sum = 0, count = 0;

	for (int i = 0; i < PRODUCERS; i++)
		cr_assert_eq(pthread_create(&producers[i], NULL, produce, &traffic), 0);
	for (int i = 0; i < CONSUMERS; i++)
		cr_assert_eq(pthread_create(&consumers[i], NULL, consume, &traffic), 0);
	for (int i = 0; i < PRODUCERS; i++)
		(void)pthread_join(producers[i], NULL);
	weir_ring_close(ring);
	for (int i = 0; i < CONSUMERS; i++)
		(void)pthread_join(consumers[i], NULL);
	for (int i = 0; i < CONSUMERS; i++) {
		sum += traffic.sum[i];
		count += traffic.count[i];
		cr_expect_not(traffic.disorder[i], "a consumer saw one producer's values out of order");
	}
	cr_assert_eq(count, (uint64_t)PRODUCERS * PER_PRODUCER);
	cr_assert_eq(sum, (uint64_t)PRODUCERS * PER_PRODUCER * (PER_PRODUCER + 1) / 2);
}

static void traffic_of_singles(weir_ring *ring, size_t capacity)
{
	(void)capacity;
	run_traffic(ring, 0, NULL);
}

static void traffic_of_batches(weir_ring *ring, size_t capacity)
{
	(void)capacity;
	run_traffic(ring, 1, NULL);
}

static void traffic_by_a_port(weir_ring *ring, size_t capacity)
{
	weir_ring_port port;

	(void)capacity;
	weir_ring_port_init(&port, ring);
	run_traffic(ring, 0, &port);
}

Test(ring, many_threads_lose_nothing_and_keep_each_producers_order)
{
	each_format(1, traffic_of_singles);
	each_format(3, traffic_of_singles);
	each_format(64, traffic_of_singles);
	each_format(3, traffic_of_batches);
	each_format(64, traffic_of_batches);
}

Test(ring, many_threads_share_a_port)
{
	each_format(64, traffic_by_a_port);
}

/* -- ports ------------------------------------------------------------------------------------- */

static void fill_and_drain_by_a_port(weir_ring *ring, size_t capacity)
{
	uint64_t value = 77;
	weir_ring_port port;

	weir_ring_port_init(&port, ring);
	for (int lap = 0; lap < 3; lap++) {
		for (size_t i = 0; i < capacity; i++)
			cr_assert_eq(i % 3 == 2 ? weir_ring_try_enqueue(ring, i) : weir_ring_port_try_enqueue(&port, i), WEIR_OK);
		cr_assert_eq(weir_ring_port_try_enqueue(&port, 1), WEIR_WOULD_BLOCK, "full at exactly %zu", capacity);
		cr_assert_eq(weir_ring_size_approx(ring), capacity);
		for (size_t i = 0; i < capacity; i++) {
			cr_assert_eq(i % 5 == 2 ? weir_ring_try_dequeue(ring, &value) : weir_ring_port_try_dequeue(&port, &value),
			             WEIR_OK);
			cr_assert_eq(value, i);
		}
		value = 77;
		cr_assert_eq(weir_ring_port_try_dequeue(&port, &value), WEIR_WOULD_BLOCK);
		cr_assert_eq(value, 77, "untouched");
	}
	cr_assert_eq(weir_ring_port_try_enqueue(&port, UINT64_MAX), WEIR_OK);
	cr_assert_eq(weir_ring_port_try_dequeue(&port, NULL), WEIR_INVALID_ARGUMENT, "as the call");
	weir_ring_close(ring);
	cr_assert_eq(weir_ring_port_try_enqueue(&port, 1), WEIR_CANCELLED);
	cr_assert_eq(weir_ring_port_try_dequeue(&port, &value), WEIR_OK);
	cr_assert_eq(value, UINT64_MAX);
	cr_assert_eq(weir_ring_port_try_dequeue(&port, &value), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_ring_port_try_enqueue(&port, 1), WEIR_CANCELLED);
}

Test(ring, a_port_does_what_the_calls_do_and_mixes_with_them)
{
	const size_t capacities[] = {1, 2, 3, 8, 1000};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
		each_format(capacities[i], fill_and_drain_by_a_port);
}

/* Where the inlined code does not know the ring, it finds a slot that is never free nor full. */
Test(ring, a_port_leads_to_the_slots_only_where_its_code_knows_them)
{
	for (int i = 0; i < FORMATS; i++) {
		for (size_t capacity = 3; capacity <= 4; capacity++) {
			weir_ring *ring = make(formats[i], capacity);
			weir_ring_port port;

			weir_ring_port_init(&port, ring);
			cr_assert_eq(port.ring, ring);
			if (ring != NULL && formats[i] == WEIR_RING_FORMAT_LTQ16 && capacity == 4)
				cr_assert_eq((void *)port.slots, ring->slots);
			else
				cr_assert(port.slots[0] == UINT64_MAX && port.mask == 0 && *port.tail == 0 && *port.head == 0);
			weir_ring_destroy(ring, NULL);
		}
	}
}

/*
 * A frame that compilers address from a register of its own, often rbx: the instruction of an enqueue
 * uses that register, too.
 */
static __attribute__((noinline)) size_t enqueue_from_an_aligned_frame(const weir_ring_port *port, size_t bytes)
{
	_Alignas(64) unsigned char aligned[64] = {1};
	unsigned char *sized = __builtin_alloca(bytes);
	size_t sum = 0;

	memset(sized, 2, bytes);
	cr_assert_eq(weir_ring_port_try_enqueue(port, 9), WEIR_OK);
	/* The compiler may not know what the bytes are. */
	__asm__ volatile("" : : "r"(aligned), "r"(sized) : "memory");
	for (size_t i = 0; i < bytes; i++)
		sum += (size_t)sized[i];
	return sum + (size_t)aligned[0];
}

static void enqueue_by_a_port_in_a_frame(weir_ring *ring, size_t capacity)
{
	weir_ring_port port;
	uint64_t value;

	weir_ring_port_init(&port, ring);
	for (size_t i = 0; i < capacity + 1; i++) {
		cr_assert_eq(enqueue_from_an_aligned_frame(&port, 10 + i), 2 * (10 + i) + 1);
		cr_assert_eq(weir_ring_port_try_dequeue(&port, &value), WEIR_OK);
		cr_assert_eq(value, 9);
	}
}

Test(ring, a_port_leaves_the_frame_of_its_caller_alone)
{
	each_format(4, enqueue_by_a_port_in_a_frame);
}

Test(ring, a_port_without_a_ring_refuses)
{
	weir_ring_port port;
	uint64_t value = 77;

	weir_ring_port_init(NULL, NULL);
	weir_ring_port_init(&port, NULL);
	cr_assert_eq(weir_ring_port_try_enqueue(&port, 1), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_ring_port_try_dequeue(&port, &value), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(value, 77);
}

Test(ring, lives_in_memory_of_the_callers)
{
	static _Alignas(WEIR_RING_ALIGNMENT) unsigned char memory[16384];

	for (int i = 0; i < FORMATS; i++) {
		struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = formats[i]};
		size_t size = weir_ring_memsize(5, &options);
		weir_ring *ring = NULL;
		uint64_t value;

		if (size == 0) /* the machine has no 16-byte compare-and-swap */
			continue;
		cr_assert_leq(size, sizeof(memory));
		memset(memory, 0xa5, sizeof(memory));
		cr_assert_eq(weir_ring_init(memory, size - 1, 5, &options, &ring, NULL), WEIR_INVALID_ARGUMENT);
		cr_assert_eq(weir_ring_init(memory + 8, size, 5, &options, &ring, NULL), WEIR_INVALID_ARGUMENT);
		cr_assert_eq(weir_ring_init(NULL, size, 5, &options, &ring, NULL), WEIR_INVALID_ARGUMENT);
		cr_assert_null(ring);
		cr_assert_eq(weir_ring_init(memory, size, 5, &options, &ring, NULL), WEIR_OK);
		for (uint64_t k = 0; k < 5; k++)
			cr_assert_eq(weir_ring_try_enqueue(ring, k), WEIR_OK);
		cr_assert_eq(weir_ring_try_enqueue(ring, 5), WEIR_WOULD_BLOCK);
		for (uint64_t k = 0; k < 5; k++) {
			cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
			cr_assert_eq(value, k);
		}
		for (size_t k = size; k < sizeof(memory); k++)
			cr_assert_eq(memory[k], 0xa5);
		weir_ring_destroy(ring, NULL);
	}
	cr_assert_eq(weir_ring_memsize(0, NULL), 0);
	cr_assert_eq(weir_ring_memsize((size_t)WEIR_RING_MAX_CAPACITY + 1, NULL), 0);
}

/*
 * A thread that is stopped before it stores its hint later stores a ticket that was new at an
 * earlier time.
 */
static void check_old_hints(weir_ring *ring, size_t capacity)
{
	uint64_t tails[400], heads[400], value, in = 0, out = 0;

	for (size_t i = 0; i < 400; i++) {
		size_t fill = i * 7919 % (capacity + 1);

		tails[i] = weiri_load_relaxed(&ring->tail_hint);
		heads[i] = weiri_load_relaxed(&ring->head_hint);
		weiri_store_relaxed(&ring->tail_hint, tails[i * i % (i + 1)]);
		weiri_store_relaxed(&ring->head_hint, heads[i * 31 % (i + 1)]);
		cr_assert_eq(weir_ring_size_approx(ring), in - out);
		while (in - out < fill)
			cr_assert_eq(weir_ring_try_enqueue(ring, in++), WEIR_OK);
		weiri_store_relaxed(&ring->head_hint, heads[i / 2]);
		for (; in - out > fill / 2; out++) {
			cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
			cr_assert_eq(value, out);
		}
		weiri_store_relaxed(&ring->tail_hint, tails[i / 2]);
		if (in - out == capacity)
			cr_assert_eq(weir_ring_try_enqueue(ring, in), WEIR_WOULD_BLOCK);
		weiri_store_relaxed(&ring->head_hint, heads[i / 3]);
		if (in == out)
			cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_WOULD_BLOCK);
	}
}

/* One hint is old and the other is not. The size is still the number of values. */
static void check_one_old_hint(weir_ring *ring, size_t capacity)
{
	uint64_t old = weiri_load_relaxed(&ring->tail_hint), tail, head, value;

	for (uint64_t i = 0; i < 20; i++) {
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
	}
	for (size_t inside = 0; inside <= capacity; inside++) {
		tail = weiri_load_relaxed(&ring->tail_hint);
		head = weiri_load_relaxed(&ring->head_hint);
		weiri_store_relaxed(&ring->head_hint, old);
		cr_assert_eq(weir_ring_size_approx(ring), inside);
		weiri_store_relaxed(&ring->head_hint, head);
		weiri_store_relaxed(&ring->tail_hint, old);
		cr_assert_eq(weir_ring_size_approx(ring), inside);
		weiri_store_relaxed(&ring->tail_hint, tail);
		if (inside < capacity)
			cr_assert_eq(weir_ring_try_enqueue(ring, inside), WEIR_OK);
	}
}

/* From hints of any age, an operation finds the end of the ring. */
static void check_old_hints_at_the_end(weir_ring *ring, size_t capacity)
{
	uint64_t old = weiri_load_relaxed(&ring->tail_hint), value = 0;
	enum weir_status status;

	for (uint64_t i = 0; i < 20 + capacity / 2; i++) {
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
	}
	weir_ring_close(ring);
	cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OUT_OF_RANGE);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_ring_size_approx(ring), 0);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OUT_OF_RANGE);
		cr_assert_eq(weiri_ring_enqueue(ring, &value, 1, 1, &status), 0, "behind the tombstone");
		cr_assert_eq(status, WEIR_CANCELLED);
		weiri_store_relaxed(&ring->tail_hint, old);
		weiri_store_relaxed(&ring->head_hint, old);
	}
}

Test(ring, old_hints_change_neither_size_nor_end)
{
	static const size_t capacities[] = {1, 2, 3, 8, 20, 64};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		each_format(capacities[i], check_one_old_hint);
		each_format(capacities[i], check_old_hints_at_the_end);
	}
}

Test(ring, hints_that_go_back_lose_nothing_and_stay_exact)
{
	static const size_t capacities[] = {1, 2, 3, 5, 8, 64, 1000};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
		each_format(capacities[i], check_old_hints);
}

/*
 * A hint is 2^20 tickets old, in a ring of 4. Step by step, each of these operations would look at
 * a million slots.
 */
static void check_leap(weir_ring *ring, size_t capacity)
{
	uint64_t value;

	for (uint64_t i = 0; i < UINT64_C(1) << 20; i++) {
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
	}
	for (uint64_t i = 0; i < UINT64_C(1) << 13; i++) {
		weiri_store_relaxed(&ring->tail_hint, i % capacity);
		weiri_store_relaxed(&ring->head_hint, i % capacity);
		cr_assert_eq(weir_ring_size_approx(ring), 0);
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
		cr_assert_eq(value, i);
	}
}

Test(ring, an_old_hint_costs_the_logarithm_of_its_age)
{
	each_format(4, check_leap);
}

/* -- in step ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* As weiri_step() keeps it: the ticket, the time, and whether threads are to pause. */
static uint64_t refused_at(uint64_t ticket, uint32_t time)
{
	return ticket << 32 | time;
}

Test(ring, a_side_in_step_pauses_once_and_rests_after_a_pause_in_vain)
{
	_Atomic(uint64_t) hint = 7, refused = 0;
	uint64_t in_vain;

	/* A refusal long after the one before. */
	weiri_store_relaxed(&refused, refused_at(6, weiri_step_time() - (1u << 30)));
	cr_assert_eq(weiri_step(&hint, &refused, WEIRI_STEP_FIRST), WEIRI_STEP_OVER);
	cr_assert_eq(weiri_load_relaxed(&refused) >> 32, 7);
	cr_assert_eq(weiri_load_relaxed(&refused) & 1, 0, "nobody is to pause");
	/* One soon after it, at a later ticket. This thread may be late, so it tries again. */
	do
		weiri_store_relaxed(&refused, refused_at(6, weiri_step_time()));
	while (weiri_step(&hint, &refused, WEIRI_STEP_FIRST) != WEIRI_STEP_PAUSED);
	cr_assert_eq(weiri_load_relaxed(&refused) >> 32, 7);
	cr_assert_eq(weiri_load_relaxed(&refused) & 1, 0, "the pause is over");
	cr_assert_eq(weiri_step(&hint, &refused, WEIRI_STEP_FIRST), WEIRI_STEP_OVER, "one pause for a ticket");
	/* It was in vain, so the side rests. */
	do {
		weiri_store_relaxed(&hint, 7);
		weiri_store_relaxed(&refused, refused_at(7, weiri_step_time()));
		cr_assert_eq(weiri_step(&hint, &refused, WEIRI_STEP_PAUSED), WEIRI_STEP_OVER);
		in_vain = weiri_load_relaxed(&refused);
		weiri_store_relaxed(&hint, 8);
	} while (weiri_step(&hint, &refused, WEIRI_STEP_FIRST) != WEIRI_STEP_OVER ||
	         weiri_load_relaxed(&refused) != in_vain);
	/* Progress during a pause: that was not in vain. */
	weiri_store_relaxed(&refused, refused_at(7, 0));
	cr_assert_eq(weiri_step(&hint, &refused, WEIRI_STEP_PAUSED), WEIRI_STEP_OVER);
	cr_assert_eq(weiri_load_relaxed(&refused), refused_at(7, 0));
}

/* Returns true if a side, of which this is the word, is to make no pause for some time. */
static bool rests(const _Atomic(uint64_t) *refused)
{
	return (uint32_t)weiri_load_relaxed(refused) - weiri_step_time() < REST_TICKS;
}

/* A side rests only after a pause. This thread may be late each time: before the call, or before it looks. */
static void check_calls_in_step(weir_ring *ring, size_t capacity)
{
	uint64_t value;
	int tries = 1000000;

	do {
		cr_assert_neq(tries--, 0, "no pause in vain");
		weiri_store_relaxed(&ring->empty_at, refused_at(77777, weiri_step_time()));
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_WOULD_BLOCK);
	} while (!rests(&ring->empty_at));
	for (size_t i = 0; i < capacity; i++)
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
	do {
		cr_assert_neq(tries--, 0, "no pause in vain");
		weiri_store_relaxed(&ring->full_at, refused_at(77777, weiri_step_time()));
		cr_assert_eq(weir_ring_try_enqueue(ring, 1), WEIR_WOULD_BLOCK);
	} while (!rests(&ring->full_at));
}

Test(ring, calls_of_one_value_in_step_pause_before_they_are_refused)
{
	each_format(4, check_calls_in_step);
}
#endif

/* -- batches ----------------------------------------------------------------------------------- */

enum { LONGEST_BATCH = 600 };

/* Batches of all lengths, taken in other lengths, beside single values; all ends are exact. */
static void pass_batches_of_all_lengths(weir_ring *ring, size_t capacity)
{
	static uint64_t values[LONGEST_BATCH];
	uint64_t in = 0, out = 0, value;
	size_t done;

	for (size_t i = 0; i < 250; i++) {
		size_t count = 1 + i * i * 31 % LONGEST_BATCH, room = capacity - (size_t)(in - out);

		for (size_t k = 0; k < count; k++)
			values[k] = in + k;
		cr_assert_eq(weir_ring_try_enqueue_many(ring, values, count, &done), room != 0 ? WEIR_OK : WEIR_WOULD_BLOCK);
		cr_assert_eq(done, count < room ? count : room, "the exact room");
		in += done;
		cr_assert_eq(weir_ring_size_approx(ring), in - out);
		if (i % 3 == 0 && weir_ring_try_dequeue(ring, &value) == WEIR_OK)
			cr_assert_eq(value, out++);
		if (i % 5 == 0 && weir_ring_try_enqueue(ring, in) == WEIR_OK)
			in++;
		count = 1 + i * 57 % LONGEST_BATCH;
		if (weir_ring_try_dequeue_many(ring, values, count, &done) != WEIR_OK)
			done = 0;
		cr_assert_eq(done, count < in - out ? count : in - out, "exactly what is inside");
		for (size_t k = 0; k < done; k++)
			cr_assert_eq(values[k], out++);
	}
}

Test(ring, batches_of_all_lengths_are_exact)
{
	static const size_t capacities[] = {1, 2, 3, 5, 100, 255, 256, 257, 1000, 2048};

	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
		each_format(capacities[i], pass_batches_of_all_lengths);
}

/* A hint that is the end of an early span finds the tail behind spans of many lengths. */
static void check_old_hint_behind_spans(weir_ring *ring, size_t capacity)
{
	static uint64_t values[LONGEST_BATCH];
	uint64_t old = weiri_load_relaxed(&ring->tail_hint), value;
	size_t done;

	for (size_t i = 0; i < 500; i++) {
		size_t count = 1 + i * 7 % (capacity / 2);

		cr_assert_eq(weir_ring_try_enqueue_many(ring, values, count, &done), WEIR_OK);
		weiri_store_relaxed(&ring->tail_hint, old);
		cr_assert_eq(weir_ring_size_approx(ring), count);
		cr_assert_eq(weir_ring_try_enqueue(ring, i), WEIR_OK);
		if (i % 50 == 0)
			old = weiri_load_relaxed(&ring->tail_hint);
		cr_assert_eq(weir_ring_try_dequeue_many(ring, values, count, &done), WEIR_OK);
		cr_assert_eq(done, count);
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
		cr_assert_eq(value, i);
	}
}

Test(ring, old_hints_find_the_tail_behind_spans)
{
	each_format(8, check_old_hint_behind_spans);
	each_format(700, check_old_hint_behind_spans);
}

/* The words of the span ring are used up after 2^56 values. It then says "full" for ever. */
Test(ring, a_span_ring_without_tickets_stays_full)
{
	weir_ring *ring = make(WEIR_RING_FORMAT_SPAN16, 8);
	uint64_t last = (UINT64_C(1) << TICKET_BITS) - LONGEST, values[8] = {1, 2, 3, 4, 5}, value;
	size_t done;

	if (ring == NULL)
		return;
	weiri_store_relaxed(&ring->tail_hint, last - 3);
	weiri_store_relaxed(&ring->limit, last - 3);
	weiri_store_relaxed(&ring->head, (last - 3) << OFFSET_BITS);
	cr_assert_eq(weir_ring_try_enqueue_many(ring, values, 5, &done), WEIR_OK);
	cr_assert_eq(done, 3);
	for (uint64_t i = 1; i <= 3; i++) {
		cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_OK);
		cr_assert_eq(value, i);
	}
	cr_assert_eq(weir_ring_try_dequeue(ring, &value), WEIR_WOULD_BLOCK);
	cr_assert_eq(weir_ring_try_enqueue(ring, 1), WEIR_WOULD_BLOCK);
	cr_assert_eq(weir_ring_try_enqueue_many(ring, values, 5, &done), WEIR_WOULD_BLOCK);
	weir_ring_destroy(ring, NULL);
}

/* Producers that are stalled inside an enqueue keep all arenas. Batches still go in, one by one. */
Test(ring, batches_go_in_while_all_arenas_are_borrowed)
{
	weir_ring *ring = make(WEIR_RING_FORMAT_SPAN16, 16);
	uint64_t values[16];
	size_t done;

	if (ring == NULL)
		return;
	for (size_t i = 0; i < ARENAS; i++)
		weiri_store_relaxed(&((struct arena *)ring->spares)[i].next, NO_CELL);
	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 16; i++)
			values[i] = i + 1;
		cr_assert_eq(weir_ring_try_enqueue_many(ring, values, 16, &done), WEIR_OK);
		cr_assert_eq(done, 16);
		cr_assert_eq(weir_ring_try_enqueue_many(ring, values, 1, &done), WEIR_WOULD_BLOCK);
		memset(values, 0, sizeof(values));
		cr_assert_eq(weir_ring_try_dequeue_many(ring, values, 16, &done), WEIR_OK);
		for (uint64_t i = 0; i < 16; i++)
			cr_assert_eq(values[i], i + 1);
	}
	weir_ring_destroy(ring, NULL);
}

Test(ring, a_span_ring_knows_whether_there_is_room_and_a_value)
{
	weir_ring *ring = make(WEIR_RING_FORMAT_SPAN16, 4);
	const struct weiri_ring_ops *ops = ring != NULL ? weiri_ring_ops_of(ring) : NULL;
	uint64_t values[4] = {1, 2, 3, 4};
	enum weir_status status;
	size_t done;

	if (ring == NULL)
		return;
	cr_assert(ops->has_room(ring) && !ops->has_value(ring));
	cr_assert_eq(weir_ring_try_enqueue_many(ring, values, 4, &done), WEIR_OK);
	cr_assert(!ops->has_room(ring) && ops->has_value(ring));
	cr_assert_eq(weir_ring_try_dequeue_many(ring, values, 3, &done), WEIR_OK);
	cr_assert(ops->has_room(ring) && ops->has_value(ring), "in the middle of a span");
	weir_ring_close(ring);
	cr_assert_eq(weiri_ring_enqueue(ring, values, 2, true, &status), 2, "admitted before the close");
	cr_assert_eq(weiri_ring_dequeue(ring, values, 4, WEIRI_RING_LEAVE, NULL, &status), 3);
	cr_assert_eq(status, WEIR_WOULD_BLOCK, "not sealed");
	cr_assert(!ops->has_value(ring));
	cr_assert_eq(weir_ring_try_dequeue(ring, values), WEIR_OUT_OF_RANGE);
	cr_assert(!ops->has_room(ring) && !ops->has_value(ring));
	weir_ring_destroy(ring, NULL);
}
