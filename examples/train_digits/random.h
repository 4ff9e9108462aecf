/*
 * random.h - random numbers, and variables' first values from them: the same on all machines.
 */
#ifndef TRAIN_DIGITS_RANDOM_H
#define TRAIN_DIGITS_RANDOM_H

#include <stdint.h>
#include <weir/tensor.h>

/* Returns the next number, and moves *state on. */
uint64_t next_random(uint64_t *state);

/* Makes an f32 tensor of this shape; its elements are uniform in (-scale, scale). */
enum weir_status random_tensor(const weir_shape *shape, float scale, uint64_t *state, weir_tensor **out);

#endif
