/*
 * weir_urcu.c - our variables, read in sections of liburcu's flavour memb: weir/urcu.h. A writer
 * that the budget refuses waits for a grace period itself.
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#include <stdlib.h>
#include <weir/urcu.h>

#include "rivals.h"
#include "urcu_thread.h"
#include "weir_value.h"

struct shared {
	weir_var *var;
	weir_urcu *host;
	size_t bytes;
};

static void *create(size_t bytes)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};
	weir_tensor *first = tensor_of(0, bytes, NULL);
	struct shared *shared = malloc(sizeof(*shared));

	if (shared == NULL || weir_var_create(first, &options, &shared->var, NULL) != WEIR_OK ||
	    weir_urcu_attach(&rcu_flavor, NULL, &shared->host, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(first);
	shared->bytes = bytes;
	return shared;
}

static void destroy(void *self)
{
	struct shared *shared = self;

	weir_urcu_detach(shared->host, NULL);
	weir_var_destroy(shared->var, NULL);
	free(shared);
}

/* The n-th value written is version n + 1. */
static uint64_t read_many(void *self, uint64_t count)
{
	weir_var *var = ((struct shared *)self)->var;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		rcu_read_lock();
		sum += weir_urcu_peek(var)->version - 1;
		rcu_read_unlock();
	}
	return sum;
}

static uint64_t scan_many(void *self, uint64_t count)
{
	struct shared *shared = self;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		rcu_read_lock();
		torn += (uint64_t)bench_torn(weir_tensor_data(weir_urcu_peek(shared->var)->tensor), shared->bytes);
		rcu_read_unlock();
	}
	return torn;
}

static void replace(void *self, uint64_t value)
{
	struct shared *shared = self;
	weir_tensor *tensor = tensor_of(value, shared->bytes, NULL);
	enum weir_status status;

	while ((status = weir_var_assign(shared->var, tensor, 0, NULL, NULL)) == WEIR_RESOURCE_EXHAUSTED)
		weir_urcu_synchronize(shared->host);
	if (status != WEIR_OK)
		exit(3);
	weir_tensor_release(tensor);
}

const struct read_contender weir_urcu_read_contender = {
	.about = {.name = "weir peek in liburcu-memb",
              .version = "liburcu " WEIR_BENCH_URCU_VERSION,
              .lacks = "a stopped reader stops all freeing"},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = replace,
};
