/*
 * tensor_text.c - tensors as text, for people.
 */
#include "graph/tensor_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void weiri_text_init(struct weiri_text *text, char *bytes, size_t size)
{
	text->bytes = bytes;
	text->size = size;
	text->used = 0;
	bytes[0] = '\0';
}

void weiri_text_add(struct weiri_text *text, const char *format, ...)
{
	size_t room = text->size - text->used;
	va_list arguments;
	int wanted;

	va_start(arguments, format);
	wanted = vsnprintf(text->bytes + text->used, room, format, arguments);
	va_end(arguments);
	if (wanted > 0)
		text->used += (size_t)wanted < room ? (size_t)wanted : room - 1;
}

/* IEEE binary16: 1 bit sign, 5 bits exponent, 10 bits fraction. */
static double of_f16(uint16_t bits)
{
	unsigned exponent = bits >> 10 & 0x1fu;
	double fraction = (double)(bits & 0x3ffu) / 1024.0;
	double value = exponent == 0 ? fraction / 16384.0 : 1.0 + fraction;

	for (unsigned e = exponent; e > 15; e--)
		value *= 2.0;
	for (unsigned e = exponent; e != 0 && e < 15; e++)
		value /= 2.0;
	if (exponent == 0x1fu)
		value = fraction == 0.0 ? (double)__builtin_huge_val() : (double)__builtin_nan("");
	return (bits & 0x8000u) != 0 ? -value : value;
}

static double of_bf16(uint16_t bits)
{
	uint32_t upper = (uint32_t)bits << 16;
	float value;

	(void)memcpy(&value, &upper, sizeof(value));
	return (double)value;
}

static void add_bytes(struct weiri_text *text, const weir_bytes *string)
{
	weiri_text_add(text, "\"");
	for (size_t i = 0; i < string->size && text->used + 1 < text->size; i++) {
		unsigned char c = (unsigned char)string->data[i];

		if (c < 0x20 || c == 0x7f)
			weiri_text_add(text, "\\x%02x", c);
		else
			weiri_text_add(text, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
	weiri_text_add(text, "\"");
}

static void add_element(struct weiri_text *text, enum weir_dtype dtype, const void *data, size_t at)
{
	switch (dtype) {
	case WEIR_BOOL: weiri_text_add(text, "%s", ((const uint8_t *)data)[at] != 0 ? "true" : "false"); break;
	case WEIR_U8: weiri_text_add(text, "%u", (unsigned)((const uint8_t *)data)[at]); break;
	case WEIR_U16: weiri_text_add(text, "%u", (unsigned)((const uint16_t *)data)[at]); break;
	case WEIR_U32: weiri_text_add(text, "%" PRIu32, ((const uint32_t *)data)[at]); break;
	case WEIR_U64: weiri_text_add(text, "%" PRIu64, ((const uint64_t *)data)[at]); break;
	case WEIR_I8: weiri_text_add(text, "%d", (int)((const int8_t *)data)[at]); break;
	case WEIR_I16: weiri_text_add(text, "%d", (int)((const int16_t *)data)[at]); break;
	case WEIR_I32: weiri_text_add(text, "%" PRId32, ((const int32_t *)data)[at]); break;
	case WEIR_I64: weiri_text_add(text, "%" PRId64, ((const int64_t *)data)[at]); break;
	case WEIR_F16: weiri_text_add(text, "%.4g", of_f16(((const uint16_t *)data)[at])); break;
	case WEIR_BF16: weiri_text_add(text, "%.4g", of_bf16(((const uint16_t *)data)[at])); break;
	case WEIR_F32: weiri_text_add(text, "%.9g", (double)((const float *)data)[at]); break;
	case WEIR_F64: weiri_text_add(text, "%.17g", ((const double *)data)[at]); break;
	case WEIR_BYTES: add_bytes(text, &((const weir_bytes *)data)[at]); break;
	}
}

/* Opens and closes the brackets of each dim whose first or last element is element `at`. */
static void add_brackets(struct weiri_text *text, const weir_shape *shape, size_t at, const char *bracket)
{
	size_t inside = 1;

	for (uint32_t d = shape->rank; d-- > 0;) {
		inside *= (size_t)shape->dims[d];
		if (at % inside != 0)
			return;
		weiri_text_add(text, "%s", bracket);
	}
}

void weiri_text_add_tensor(struct weiri_text *text, const weir_tensor *tensor, size_t most)
{
	const weir_shape *shape = weir_tensor_shape(tensor);
	size_t count = (size_t)weir_tensor_element_count(tensor);
	const void *data = weir_tensor_data(tensor);
	char dims[WEIR_SHAPE_TEXT_SIZE];

	weiri_text_add(text, "%s %s ", weir_dtype_name(weir_tensor_dtype(tensor)),
	               weir_shape_text(shape, dims, sizeof(dims)));
	if (count == 0)
		weiri_text_add(text, "[]");
	for (size_t at = 0; at < count && text->used + 1 < text->size; at++) {
		if (at != 0)
			weiri_text_add(text, " ");
		if (at == most) {
			weiri_text_add(text, "...");
			return;
		}
		add_brackets(text, shape, at, "[");
		add_element(text, weir_tensor_dtype(tensor), data, at);
		add_brackets(text, shape, at + 1, "]");
	}
}
