/*
 * weir_value.h - the value of one of our variables: a tensor of equal words.
 */
#ifndef WEIR_BENCH_WEIR_VALUE_H
#define WEIR_BENCH_WEIR_VALUE_H

#include <stdlib.h>
#include <weir/tensor.h>

static inline weir_tensor *tensor_of(uint64_t value, size_t bytes, const weir_allocator *allocator)
{
	const weir_shape shape = {1, {(int64_t)(bytes / sizeof(uint64_t))}};
	weir_tensor_builder *builder;
	weir_tensor *tensor;
	uint64_t *words;

	if (weir_tensor_builder_create(WEIR_I64, &shape, allocator, &builder, NULL) != WEIR_OK)
		exit(3);
	words = weir_tensor_builder_data(builder);
	for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
		words[i] = value;
	if (weir_tensor_builder_finish(builder, &tensor) != WEIR_OK)
		exit(3);
	return tensor;
}

#endif
