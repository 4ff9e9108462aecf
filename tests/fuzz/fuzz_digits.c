/*
 * fuzz_digits.c - any bytes as a table of digits: it is read whole, or refused with the number of
 * the wrong line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data.h"

static void check(int condition)
{
	if (!condition)
		abort();
}

static void check_digits(struct digits *digits)
{
	const float *pixels;
	const int64_t *labels;

	check(digits_stack(digits, NULL) == WEIR_OK);
	pixels = weir_tensor_data(digits->images);
	labels = weir_tensor_data(digits->labels);
	check(weir_tensor_element_count(digits->labels) == digits->count);
	for (int64_t i = 0; i < digits->count * DIGIT_PIXELS; i++)
		check(pixels[i] >= 0 && pixels[i] <= 1);
	for (int64_t i = 0; i < digits->count; i++)
		check(labels[i] >= 0 && labels[i] < DIGIT_CLASSES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct digits training, held_out;
	weir_error error = {.message = ""};
	char path[32];
	int file = memfd_create("digits", 0);

	check(file >= 0 && write(file, data, size) == (ssize_t)size);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (digits_read(path, &training, &held_out, &error) == WEIR_OK) {
		check(training.count > 0 && held_out.count > 0);
		check_digits(&training);
		check_digits(&held_out);
	} else {
		check(strstr(error.message, ": line ") != NULL);
		check(training.rows == NULL && held_out.rows == NULL);
	}
	digits_release(&training);
	digits_release(&held_out);
	(void)close(file);
	return 0;
}
