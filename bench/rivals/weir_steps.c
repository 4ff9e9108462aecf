/*
 * weir_steps.c - contenders of the suite `data`: each element is taken by a step of a graph, which has a
 * deadline. So no function of the user may hold the step up, except one that is declared short.
 */
#include <stdlib.h>
#include <weir/flow/callable.h>
#include <weir/flow/dataset.h>
#include <weir/weir.h>

#include "bench.h"
#include "data_work.h"
#include "rivals.h"

struct steps {
	weir_pool *pool;
	weir_iterator *iterator;
	weir_graph *graph;
	weir_session *session;
	weir_callable *callable;
	int64_t next; /* of the reader */
};

static void must(enum weir_status status)
{
	if (status != WEIR_OK)
		exit(3);
}

static enum weir_status read_number(void *context, void *state, weir_tensor *out[], weir_error *error)
{
	struct steps *self = context;

	(void)state, (void)error;
	return weir_tensor_scalar_i64(self->next++, &out[0]);
}

static weir_dataset *reader(struct steps *self, uint32_t flags)
{
	static const enum weir_dtype dtype = WEIR_I64;
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .flags = flags, .dtypes = &dtype, .width = 1};
	struct weir_dataset_generator generator = {WEIR_DATASET_GENERATOR_INIT, .next = read_number, .context = self};
	weir_dataset *numbers;

	must(weir_dataset_generate(&generator, &options, &numbers, NULL));
	return numbers;
}

static weir_dataset *range(void)
{
	weir_dataset *numbers;

	must(weir_dataset_range(0, INT64_MAX, 1, NULL, &numbers, NULL));
	return numbers;
}

static void *begin(struct steps *self, weir_dataset *numbers)
{
	struct weir_pool_options threads = {WEIR_POOL_OPTIONS_INIT, .threads = WORKERS};
	struct weir_session_options own = {WEIR_SESSION_OPTIONS_INIT};
	struct weir_iterator_options reading = {WEIR_ITERATOR_OPTIONS_INIT};
	weir_dataset *ahead;
	weir_output number;

	must(weir_pool_create(&threads, &self->pool, NULL));
	must(weir_dataset_prefetch(numbers, AHEAD, NULL, &ahead, NULL));
	reading.pool = own.pool = self->pool;
	must(weir_iterator_create(ahead, &reading, &self->iterator, NULL));
	must(weir_graph_create(NULL, &self->graph, NULL));
	must(weir_op_next(self->graph, "next", self->iterator, &number, 1, NULL, NULL));
	must(weir_session_create(self->graph, &own, &self->session, NULL));
	must(weir_session_compile(self->session, NULL, 0, &number, 1, NULL, 0, NULL, &self->callable, NULL));
	weir_dataset_release(numbers);
	weir_dataset_release(ahead);
	return self;
}

static struct steps *allocate(void)
{
	struct steps *self = calloc(1, sizeof(*self));

	if (self == NULL)
		exit(3);
	return self;
}

static void *create_of_range(enum data_job job)
{
	(void)job;
	return begin(allocate(), range());
}

static void *create_of_reader(enum data_job job)
{
	struct steps *self = allocate();

	(void)job;
	return begin(self, reader(self, 0));
}

static void *create_of_short_reader(enum data_job job)
{
	struct steps *self = allocate();

	(void)job;
	return begin(self, reader(self, WEIR_DATASET_SHORT));
}

static void destroy(void *data)
{
	struct steps *self = data;

	weir_callable_release(self->callable);
	must(weir_session_destroy(self->session, NULL));
	must(weir_graph_destroy(self->graph, NULL));
	must(weir_iterator_destroy(self->iterator, NULL));
	must(weir_pool_destroy(self->pool, NULL));
	free(self);
}

static unsigned take(void *data, uint64_t *sum)
{
	struct steps *self = data;
	weir_tensor *number;

	must(weir_callable_run(self->callable, NULL, &number, weir_deadline_in(UINT64_C(10000000000)), NULL, NULL, NULL));
	*sum += *(const uint64_t *)weir_tensor_data(number);
	weir_tensor_release(number);
	return 1;
}

const struct data_contender steps_data_contender = {
	.about = {"weir", NULL, NULL, 1},
	.jobs = 1 << DATA_STEPS,
	.create = create_of_range,
	.destroy = destroy,
	.take = take,
};
const struct data_contender reader_steps_data_contender = {
	.about = {"weir, a reader", NULL, NULL, 1},
	.jobs = 1 << DATA_STEPS,
	.create = create_of_reader,
	.destroy = destroy,
	.take = take,
};
const struct data_contender short_steps_data_contender = {
	.about = {"weir, a short reader", NULL, NULL, 1},
	.jobs = 1 << DATA_STEPS,
	.create = create_of_short_reader,
	.destroy = destroy,
	.take = take,
};
