/*
 * spec.h - what is known about a tensor before it exists: its dtype, and perhaps a part of its
 * shape.
 */
#ifndef WEIRI_SPEC_H
#define WEIRI_SPEC_H

#include <weir/tensor.h>

struct weiri_spec {
	enum weir_dtype dtype;
	int ranked;       /* 0: not even the rank is known */
	weir_shape shape; /* when ranked; negative dims are not known */
};

enum { WEIRI_SPEC_TEXT_SIZE = 96 };

/* shape NULL: unranked. */
struct weiri_spec weiri_spec_of(enum weir_dtype dtype, const weir_shape *shape);
struct weiri_spec weiri_spec_scalar(enum weir_dtype dtype);
/* One dimension; -1: not known. */
struct weiri_spec weiri_spec_vector(enum weir_dtype dtype, int64_t size);
struct weiri_spec weiri_spec_of_tensor(const weir_tensor *tensor);

/* 1 if a tensor can exist that fits both, else 0. */
int weiri_spec_compatible(const struct weiri_spec *a, const struct weiri_spec *b);
/* 1 if the dims may be equal; a negative one is unknown. */
int weiri_dim_compatible(int64_t a, int64_t b);
/* The one of two compatible dims that is known, if any. */
int64_t weiri_dim_merge(int64_t a, int64_t b);

/* 1 if a partial shape may have this rank and these dims: rank <= WEIR_MAX_RANK. */
int weiri_partial_shape_ok(const weir_shape *shape);

/* "f32 [2,?]", for messages; text has WEIRI_SPEC_TEXT_SIZE bytes. Returns text. */
const char *weiri_spec_text(const struct weiri_spec *spec, char text[]);

#endif
