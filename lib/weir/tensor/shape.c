/*
 * shape.c - element types and shapes: sizes, names, comparison, text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <weir/tensor.h>

const weir_shape weir_shape_scalar = {.rank = 0};

static const struct {
	const char *name;
	size_t size;
} dtypes[] = {
	[WEIR_BOOL] = {"bool", 1}, [WEIR_U8] = {"u8", 1},
	[WEIR_I8] = {"i8", 1},     [WEIR_I16] = {"i16", 2},
	[WEIR_I32] = {"i32", 4},   [WEIR_I64] = {"i64", 8},
	[WEIR_F16] = {"f16", 2},   [WEIR_F32] = {"f32", 4},
	[WEIR_F64] = {"f64", 8},   [WEIR_BYTES] = {"bytes", sizeof(weir_bytes)},
	[WEIR_U16] = {"u16", 2},   [WEIR_U32] = {"u32", 4},
	[WEIR_U64] = {"u64", 8},   [WEIR_BF16] = {"bf16", 2},
};

static bool is_dtype(enum weir_dtype dtype)
{
	/*
	 * An enum may hold any number that a caller stored there, and its signedness depends on the
	 * compiler.
	 */
	uint64_t number = (uint64_t)(int64_t)dtype;

	return number < sizeof(dtypes) / sizeof(dtypes[0]) && dtypes[number].name != NULL;
}

size_t weir_dtype_size(enum weir_dtype dtype)
{
	return is_dtype(dtype) ? dtypes[dtype].size : 0;
}

const char *weir_dtype_name(enum weir_dtype dtype)
{
	return is_dtype(dtype) ? dtypes[dtype].name : "unknown";
}

enum weir_status weir_shape_element_count(const weir_shape *shape, int64_t *elements)
{
	int64_t product = 1;
	bool is_empty = false, is_too_large = false;

	if (elements == NULL || shape == NULL || shape->rank > WEIR_MAX_RANK)
		return WEIR_INVALID_ARGUMENT;
	for (uint32_t i = 0; i < shape->rank; i++) {
		if (shape->dims[i] < 0)
			return WEIR_INVALID_ARGUMENT;
		is_empty |= shape->dims[i] == 0;
		is_too_large |= __builtin_mul_overflow(product, shape->dims[i], &product);
	}
	/* The order of the dims does not matter: [0, huge, huge] has no elements either way, and the product is 0. */
	if (is_too_large && !is_empty)
		return WEIR_INVALID_ARGUMENT;
	*elements = product;
	return WEIR_OK;
}

static bool same_rank(const weir_shape *a, const weir_shape *b)
{
	return a != NULL && b != NULL && a->rank == b->rank && a->rank <= WEIR_MAX_RANK;
}

bool weir_shape_equal(const weir_shape *a, const weir_shape *b)
{
	if (!same_rank(a, b))
		return false;
	for (uint32_t i = 0; i < a->rank; i++)
		if (a->dims[i] != b->dims[i])
			return false;
	return true;
}

bool weir_shape_fits(const weir_shape *partial, const weir_shape *shape)
{
	if (!same_rank(partial, shape))
		return false;
	for (uint32_t i = 0; i < shape->rank; i++)
		if (shape->dims[i] < 0 || (partial->dims[i] >= 0 && partial->dims[i] != shape->dims[i]))
			return false;
	return true;
}

_Static_assert(WEIR_MAX_RANK *(sizeof(",9223372036854775807") - 1) + sizeof("[]") <= WEIR_SHAPE_TEXT_SIZE,
               "every shape fits");

/* Writes a dim after its comma; returns the length. */
static size_t write_dim(char *text, size_t size, const char *comma, int64_t dim)
{
	int length = dim < 0 ? snprintf(text, size, "%s?", comma) : snprintf(text, size, "%s%" PRId64, comma, dim);

	return length > 0 ? (size_t)length : 0;
}

char *weir_shape_text(const weir_shape *shape, char *text, size_t size)
{
	/* Room for every possible shape, so that text is truncated in one place. */
	char whole[WEIR_SHAPE_TEXT_SIZE] = "invalid";
	size_t length;

	if (text == NULL || size == 0)
		return text;
	if (shape != NULL && shape->rank <= WEIR_MAX_RANK) {
		size_t at = 0;

		whole[at++] = '[';
		for (uint32_t i = 0; i < shape->rank; i++)
			at += write_dim(whole + at, sizeof(whole) - at, i > 0 ? "," : "", shape->dims[i]);
		whole[at++] = ']';
		whole[at] = '\0';
	}
	length = strlen(whole);
	if (length >= size)
		length = size - 1;
	memcpy(text, whole, length);
	text[length] = '\0';
	return text;
}
