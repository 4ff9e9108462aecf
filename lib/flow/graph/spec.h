/*
 * spec.h - what is known about a tensor before it exists: its dtype, and perhaps a part of its
 * shape.
 */
#ifndef WEIRI_SPEC_H
#define WEIRI_SPEC_H

#include <weir/tensor.h>

struct weiri_spec {
	enum weir_dtype dtype;
	bool ranked;      /* false: not even the rank is known */
	weir_shape shape; /* if ranked; a negative dim is not known */
};

enum { WEIRI_SPEC_TEXT_SIZE = 96 };

/* If `shape` is NULL, the rank is not known. */
struct weiri_spec weiri_spec_of(enum weir_dtype dtype, const weir_shape *shape);
struct weiri_spec weiri_spec_scalar(enum weir_dtype dtype);
/* The spec of a tensor of rank 1. If `size` is -1, the dim is not known. */
struct weiri_spec weiri_spec_vector(enum weir_dtype dtype, int64_t size);
struct weiri_spec weiri_spec_of_tensor(const weir_tensor *tensor);

/* Returns true if each dim is known. */
bool weiri_spec_known(const struct weiri_spec *spec);
/* Returns true if a tensor can exist that fits both, otherwise false. */
bool weiri_spec_compatible(const struct weiri_spec *a, const struct weiri_spec *b);
/* Returns true if the tensor is what `expected` says, otherwise false. */
bool weiri_spec_fits(const struct weiri_spec *expected, const weir_tensor *tensor);
/* Returns true if the dims may be equal. A negative dim is not known. */
bool weiri_dim_compatible(int64_t a, int64_t b);
/* Returns the known one of two compatible dims; a negative number if neither is known. */
int64_t weiri_dim_merge(int64_t a, int64_t b);

/*
 * Returns true if a partial shape may have this rank: at most WEIR_MAX_RANK. Any dims are accepted.
 */
bool weiri_partial_shape_ok(const weir_shape *shape);

/* Writes "f32 [2,?]", for messages, to `text` of WEIRI_SPEC_TEXT_SIZE bytes. Returns `text`. */
const char *weiri_spec_text(const struct weiri_spec *spec, char text[]);

#endif
