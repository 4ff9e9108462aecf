/*
 * tensor_text.h - tensors as text, for people: "f32 [2,3] [[1 2 3] [4 5 6]]".
 */
#ifndef WEIRI_TENSOR_TEXT_H
#define WEIRI_TENSOR_TEXT_H

#include <stddef.h>
#include <weir/tensor.h>

#include "base/compiler.h"

/* Text that grows up to the size of its buffer. What does not fit is left out. */
struct weiri_text {
	char *bytes;
	size_t size; /* of the buffer; at least 1 */
	size_t used; /* without the terminator */
};

/* `bytes` has room for `size` characters, the terminator included. */
void weiri_text_init(struct weiri_text *text, char *bytes, size_t size);
void weiri_text_add(struct weiri_text *text, const char *format, ...) WEIR_PRINTF(2, 3);
/* Adds dtype, shape and at most `most` elements; "..." stands for the others. */
void weiri_text_add_tensor(struct weiri_text *text, const weir_tensor *tensor, size_t most);

#endif
