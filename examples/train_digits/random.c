/*
 * random.c - see random.h.
 */
#include "random.h"

/* SplitMix64: small, and the same on all machines. */
uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

enum weir_status random_tensor(const weir_shape *shape, float scale, uint64_t *state, weir_tensor **out)
{
	weir_tensor_builder *builder;
	int64_t elements;
	enum weir_status status = weir_shape_element_count(shape, &elements);
	float *data;

	if (status == WEIR_OK)
		status = weir_tensor_builder_create(WEIR_F32, shape, NULL, &builder, NULL);
	if (status != WEIR_OK)
		return status;
	data = weir_tensor_builder_data(builder);
	for (int64_t i = 0; i < elements; i++)
		data[i] = scale * ((float)(next_random(state) >> 40) / (float)(1 << 23) - 1.0f);
	return weir_tensor_builder_finish(builder, out);
}
