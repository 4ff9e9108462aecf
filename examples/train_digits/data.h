/*
 * data.h - handwritten digits: images of 8x8 pixels, and the digit that each shows.
 */
#ifndef TRAIN_DIGITS_DATA_H
#define TRAIN_DIGITS_DATA_H

#include <stdint.h>
#include <weir/dataset.h>
#include <weir/status.h>
#include <weir/tensor.h>

enum { DIGIT_PIXELS = 64, DIGIT_CLASSES = 10, DIGIT_MAX_PIXEL = 16, HELD_OUT_EVERY = 5 };

struct digits {
	int64_t count;
	weir_dataset *rows; /* image f32 [DIGIT_PIXELS], 0 to 1; label i64 scalar */
	/* The same rows stacked; NULL until digits_stack(). */
	weir_tensor *images; /* f32 [count, DIGIT_PIXELS] */
	weir_tensor *labels; /* i64 [count] */
};

/*
 * Reads a file of rows of 65 integers separated by commas, with or without gzip, once; the rows are then
 * in memory. Every HELD_OUT_EVERY-th row goes to *held_out, and the others go to *training.
 * WEIR_NOT_FOUND: there is no such file, or it cannot be opened. WEIR_DATA_LOSS: the message names the
 * line. WEIR_RESOURCE_EXHAUSTED: there is no memory.
 */
enum weir_status digits_read(const char *path, struct digits *training, struct digits *held_out, weir_error *error);
/* Makes two tensors of all rows. */
enum weir_status digits_stack(struct digits *digits, weir_error *error);
void digits_release(struct digits *digits);

/*
 * The dataset becomes *outer, which was made of it with this status. What it was is released; after a
 * failure it is NULL. Returns the status.
 */
enum weir_status dataset_become(weir_dataset **dataset, enum weir_status status, weir_dataset *const *outer);

#endif
