/*
 * weir.c - ours, as a user calls it: through the shared library.
 */
#include <stdlib.h>
#include <weir/ring.h>
#include <weir/var.h>

#include "rivals.h"

static void *create(size_t capacity, enum weir_ring_format format)
{
	struct weir_ring_options options = {.struct_size = sizeof(options), .format = format};
	weir_ring *ring;

	if (weir_ring_create(capacity, &options, &ring) != WEIR_OK)
		exit(3);
	return ring;
}

static void *create_16(size_t capacity)
{
	return create(capacity, WEIR_RING_FORMAT_BEST);
}

static void *create_64(size_t capacity)
{
	return create(capacity, WEIR_RING_FORMAT_LTQ64);
}

static void destroy(void *self)
{
	weir_ring_destroy(self);
}

static int enqueue(void *self, uint64_t value)
{
	return weir_ring_try_enqueue(self, value) == WEIR_OK;
}

static int dequeue(void *self, uint64_t *value)
{
	return weir_ring_try_dequeue(self, value) == WEIR_OK;
}

static uint64_t pairs(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue, dequeue);
}

const struct ring_contender weir_ltq16_contender = {
	"weir", "LTQ16, or the best here", 1, create_16, destroy, enqueue, dequeue, pairs};
const struct ring_contender weir_ltq64_contender = {"weir LTQ64", "", 1, create_64, destroy, enqueue, dequeue, pairs};

static weir_tensor *tensor_of(uint64_t value)
{
	const weir_shape shape = {1, {8}};
	struct shared_value words;
	weir_tensor *tensor;

	for (int i = 0; i < 8; i++)
		words.words[i] = value;
	if (weir_tensor_copy_of(WEIR_I64, &shape, &words, NULL, &tensor) != WEIR_OK)
		exit(3);
	return tensor;
}

static void *var_create(void)
{
	struct weir_var_options options = {.struct_size = sizeof(options), .dtype = WEIR_I64};
	weir_tensor *first = tensor_of(0);
	weir_var *var;

	if (weir_var_create(&options, first, &var, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(first);
	return var;
}

static void var_destroy(void *self)
{
	weir_var_destroy(self);
}

static void nothing(void *self)
{
	(void)self;
}

/* Takes a handle and gives it back. */
static uint64_t handle_many(void *self, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		if (weir_var_read(self, &read) != WEIR_OK)
			exit(3);
		sum += read.version;
		weir_read_release(&read);
	}
	return sum;
}

/* And looks at the value, which is one more call into the library. */
static uint64_t look_many(void *self, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		weir_read read;

		if (weir_var_read(self, &read) != WEIR_OK)
			exit(3);
		sum += *(const uint64_t *)weir_tensor_data(read.tensor);
		weir_read_release(&read);
	}
	return sum;
}

static void var_write(void *self, uint64_t value)
{
	weir_tensor *tensor = tensor_of(value);

	if (weir_var_assign(self, tensor, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		exit(3);
	weir_tensor_release(tensor);
}

const struct read_contender weir_read_contender = {"weir handle", "",      1,           var_create, var_destroy,
                                                   nothing,       nothing, handle_many, var_write};
const struct read_contender weir_look_contender = {
	"weir handle + data", "", 1, var_create, var_destroy, nothing, nothing, look_many, var_write};
