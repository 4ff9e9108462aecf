/*
 * traffic.c - adds up and checks what threads counted.
 */
#include "traffic.h"

#include <stdio.h>

void bench_traffic_init(struct bench_traffic *traffic, const struct bench_workload *workload, const void *contender,
                        void *queue)
{
	*traffic = (struct bench_traffic){.workload = workload, .contender = contender, .queue = queue};
	atomic_init(&traffic->producers_left, workload->left);
	for (unsigned i = 0; workload->latency && i < workload->left + workload->right; i++)
		traffic->ticks[i] = bench_histogram_create();
}

int bench_traffic_put(struct bench_traffic *traffic, const struct bench_tally *tally)
{
	atomic_fetch_add_explicit(&traffic->put, tally->count, memory_order_relaxed);
	atomic_fetch_add_explicit(&traffic->put_sum, tally->sum, memory_order_relaxed);
	return atomic_fetch_sub_explicit(&traffic->producers_left, 1, memory_order_acq_rel) == 1;
}

void bench_traffic_got(struct bench_traffic *traffic, const struct bench_tally *tally)
{
	atomic_fetch_add_explicit(&traffic->got, tally->count, memory_order_relaxed);
	atomic_fetch_add_explicit(&traffic->got_sum, tally->sum, memory_order_relaxed);
}

static uint64_t moved(const struct bench_traffic *traffic, unsigned begin, unsigned end)
{
	uint64_t sum = 0;

	for (unsigned i = begin; i < end; i++)
		sum += atomic_load_explicit(&traffic->lanes[i].moved, memory_order_acquire);
	return sum;
}

int bench_traffic_is_out(const struct bench_traffic *traffic)
{
	unsigned left = traffic->workload->left;

	return moved(traffic, left, left + traffic->workload->right) >=
	       atomic_load_explicit(&traffic->put, memory_order_relaxed);
}

uint64_t bench_traffic_inside(const struct bench_traffic *traffic)
{
	unsigned left = traffic->workload->left;
	/* Consumers are read first: an item that is counted as out is, or will be, counted as in. */
	uint64_t out = moved(traffic, left, left + traffic->workload->right), in = moved(traffic, 0, left);

	return in > out ? in - out : 0;
}

void bench_traffic_judge(const struct bench_totals *totals, const struct bench_workload *workload,
                         struct bench_sample *sample)
{
	if (totals->put != totals->got || totals->put_sum != totals->got_sum) {
		(void)snprintf(sample->wrong, sizeof(sample->wrong), "%llu items in, %llu out; sums %llx and %llx",
		               (unsigned long long)totals->put, (unsigned long long)totals->got,
		               (unsigned long long)totals->put_sum, (unsigned long long)totals->got_sum);
	}
	if (!workload->latency && totals->elapsed_ns != 0)
		sample->value = (double)totals->got * 1000.0 / (double)totals->elapsed_ns;
	sample->operations = (double)totals->got;
}

void bench_traffic_finish(struct bench_traffic *traffic, struct bench_sample *sample)
{
	struct bench_totals totals = {
		.put = atomic_load_explicit(&traffic->put, memory_order_relaxed),
		.put_sum = atomic_load_explicit(&traffic->put_sum, memory_order_relaxed),
		.got = atomic_load_explicit(&traffic->got, memory_order_relaxed),
		.got_sum = atomic_load_explicit(&traffic->got_sum, memory_order_relaxed),
		.elapsed_ns = sample->window_ns,
	};

	for (unsigned i = 0; i < BENCH_MAX_THREADS; i++) {
		if (traffic->ticks[i] == NULL)
			continue;
		bench_histogram_merge(sample->ticks, traffic->ticks[i]);
		bench_histogram_destroy(traffic->ticks[i]);
	}
	bench_traffic_judge(&totals, traffic->workload, sample);
}

static uint64_t intended_ns(const struct bench_crew *crew, unsigned index, uint64_t number)
{
	const struct bench_workload *workload = crew->workload;
	uint64_t interval = UINT64_C(1000000000) / workload->rate;

	return atomic_load_explicit(&crew->start_ns, memory_order_acquire) + number * interval +
	       interval * index / workload->left;
}

void bench_put_paced(struct bench_crew *crew, unsigned index, struct bench_tally *tally,
                     void (*put)(struct bench_traffic *traffic, uint64_t value))
{
	uint64_t end = intended_ns(crew, 0, 0) + crew->workload->duration_ms * UINT64_C(1000000), intended;

	for (uint64_t number = 0; (intended = intended_ns(crew, index, number)) < end; number++) {
		while (bench_now_ns() < intended)
			;
		put(crew->context, (uintptr_t)intended);
		tally->sum += (uintptr_t)intended;
		tally->count++;
	}
}

struct bench_shapes bench_square_shapes(void)
{
	struct bench_shapes shapes = {0};

	for (unsigned side = 1; side <= 8 || (2 * side <= bench_processors() && 2 * side <= BENCH_MAX_THREADS); side *= 2)
		shapes.shape[shapes.count++] = (struct bench_shape){side, side, 1};
	return shapes;
}
