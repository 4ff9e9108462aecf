/*
 * dlpack.c - tensors to and from DLPack.
 *
 * Both forms of DLPack have the same DLTensor inside. An export is one block with the struct and its
 * dims; an import is a wrapped tensor whose release function calls the deleter.
 */
#include <weir/dlpack.h>

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/object.h"

/* -- types ------------------------------------------------------------------------------------- */

static const struct {
	enum weir_dtype dtype;
	struct weir_dlpack_type type;
} types[] = {
	{WEIR_BOOL, {WEIR_DLPACK_BOOL, 8, 1}},    {WEIR_U8, {WEIR_DLPACK_UINT, 8, 1}},
	{WEIR_I8, {WEIR_DLPACK_INT, 8, 1}},       {WEIR_I16, {WEIR_DLPACK_INT, 16, 1}},
	{WEIR_I32, {WEIR_DLPACK_INT, 32, 1}},     {WEIR_I64, {WEIR_DLPACK_INT, 64, 1}},
	{WEIR_U16, {WEIR_DLPACK_UINT, 16, 1}},    {WEIR_U32, {WEIR_DLPACK_UINT, 32, 1}},
	{WEIR_U64, {WEIR_DLPACK_UINT, 64, 1}},    {WEIR_F16, {WEIR_DLPACK_FLOAT, 16, 1}},
	{WEIR_F32, {WEIR_DLPACK_FLOAT, 32, 1}},   {WEIR_F64, {WEIR_DLPACK_FLOAT, 64, 1}},
	{WEIR_BF16, {WEIR_DLPACK_BFLOAT, 16, 1}},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

/* Returns false if DLPack has no such type. */
static bool type_of(enum weir_dtype dtype, struct weir_dlpack_type *type)
{
	for (size_t i = 0; i < TYPES; i++) {
		if (types[i].dtype == dtype) {
			*type = types[i].type;
			return true;
		}
	}
	return false;
}

/* Returns false if Weir has no such dtype. */
static bool dtype_of(struct weir_dlpack_type type, enum weir_dtype *dtype)
{
	for (size_t i = 0; i < TYPES; i++) {
		if (types[i].type.code == type.code && types[i].type.bits == type.bits && type.lanes == 1) {
			*dtype = types[i].dtype;
			return true;
		}
	}
	return false;
}

/* -- export ------------------------------------------------------------------------------------ */

struct export
{
	union {
		struct weir_dlpack_managed managed;
		struct weir_dlpack_versioned versioned;
	};
	weir_tensor *tensor;
	weir_allocator allocator;
	int64_t dims[WEIR_MAX_RANK], strides[WEIR_MAX_RANK];
};

static void end_export(struct export *export)
{
	weir_allocator allocator = export->allocator;
	weir_tensor *tensor = export->tensor;

	weiri_release(&allocator, export, sizeof(*export), alignof(struct export));
	weir_tensor_release(tensor);
}

static void delete_managed(struct weir_dlpack_managed *self)
{
	end_export(self->context);
}

static void delete_versioned(struct weir_dlpack_versioned *self)
{
	end_export(self->context);
}

/* Strides are always given: consumers of version 0 differ in what NULL means to them. */
static void show(struct export *export, struct weir_dlpack_type type, struct weir_dlpack_tensor *out)
{
	const weir_shape *shape = weir_tensor_shape(export->tensor);
	int64_t stride = 1;

	for (uint32_t i = shape->rank; i-- > 0;) {
		export->dims[i] = shape->dims[i];
		export->strides[i] = stride;
		/* Where there are no elements, the other dims may be so large that no stride is. */
		if (__builtin_mul_overflow(stride, shape->dims[i] != 0 ? shape->dims[i] : 1, &stride))
			stride = 1;
	}
	/* DLPack has no pointer to const; the flags of the versioned form say it. */
	memcpy(&out->data, &(const void *){weir_tensor_data(export->tensor)}, sizeof(out->data));
	out->device.type = WEIR_DLPACK_CPU;
	out->rank = (int32_t)shape->rank;
	out->type = type;
	out->dims = export->dims;
	out->strides = export->strides;
}

static enum weir_status create_export(weir_tensor *tensor, const void *out, struct export **created,
                                      struct weir_dlpack_type *type, weir_error *error)
{
	struct export *export;

	if (tensor == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_dlpack_export: %s is NULL",
		                  tensor == NULL ? "tensor" : "out");
	if (!type_of(weir_tensor_dtype(tensor), type))
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "weir_dlpack_export: DLPack has no type for %s",
		                  weir_dtype_name(weir_tensor_dtype(tensor)));
	export = weiri_allocate_zeroed(&tensor->allocator, sizeof(*export), alignof(struct export));
	if (export == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_dlpack_export: no memory");
	export->allocator = tensor->allocator;
	export->tensor = weir_tensor_retain(tensor);
	*created = export;
	return WEIR_OK;
}

enum weir_status weir_dlpack_export(weir_tensor *tensor, struct weir_dlpack_managed **out, weir_error *error)
{
	struct weir_dlpack_type type;
	struct export *export;
	enum weir_status status = create_export(tensor, out, &export, &type, error);

	if (status != WEIR_OK)
		return status;
	show(export, type, &export->managed.tensor);
	export->managed.context = export;
	export->managed.deleter = delete_managed;
	*out = &export->managed;
	return WEIR_OK;
}

enum weir_status weir_dlpack_export_versioned(weir_tensor *tensor, struct weir_dlpack_versioned **out,
                                              weir_error *error)
{
	struct weir_dlpack_type type;
	struct export *export;
	enum weir_status status = create_export(tensor, out, &export, &type, error);

	if (status != WEIR_OK)
		return status;
	show(export, type, &export->versioned.tensor);
	export->versioned.major = WEIR_DLPACK_MAJOR;
	export->versioned.minor = WEIR_DLPACK_MINOR;
	export->versioned.flags = WEIR_DLPACK_READ_ONLY;
	export->versioned.context = export;
	export->versioned.deleter = delete_versioned;
	*out = &export->versioned;
	return WEIR_OK;
}

/* -- import ------------------------------------------------------------------------------------ */

static void release_managed(void *context, void *data)
{
	struct weir_dlpack_managed *managed = context;

	(void)data;
	if (managed->deleter != NULL)
		managed->deleter(managed);
}

static void release_versioned(void *context, void *data)
{
	struct weir_dlpack_versioned *managed = context;

	(void)data;
	if (managed->deleter != NULL)
		managed->deleter(managed);
}

/* Strides of dims with one element say nothing. */
static bool is_row_major(const struct weir_dlpack_tensor *given)
{
	int64_t stride = 1;

	for (int32_t i = 0; i < given->rank; i++) {
		if (given->dims[i] == 0)
			return true; /* no elements */
	}
	for (int32_t i = given->rank; given->strides != NULL && i-- > 0;) {
		if (given->dims[i] != 1 && given->strides[i] != stride)
			return false;
		stride *= given->dims[i];
	}
	return true;
}

static enum weir_status check(const struct weir_dlpack_tensor *given, enum weir_dtype *dtype, weir_shape *shape,
                              weir_error *error)
{
	int64_t elements;

	if (given->device.type != WEIR_DLPACK_CPU && given->device.type != WEIR_DLPACK_CUDA_HOST)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "weir_dlpack_import: the memory is that of a device of type %d",
		                  (int)given->device.type);
	if (!dtype_of(given->type, dtype))
		return weiri_fail(error, WEIR_UNIMPLEMENTED,
		                  "weir_dlpack_import: there is no dtype for code %u with %u bits and %u lanes",
		                  (unsigned)given->type.code, (unsigned)given->type.bits, (unsigned)given->type.lanes);
	if (given->rank < 0 || given->rank > WEIR_MAX_RANK)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "weir_dlpack_import: the rank is %d, must be 0 to %d",
		                  (int)given->rank, WEIR_MAX_RANK);
	*shape = weir_shape_scalar;
	shape->rank = (uint32_t)given->rank;
	for (int32_t i = 0; i < given->rank; i++)
		shape->dims[i] = given->dims[i];
	if (weir_shape_element_count(shape, &elements) != WEIR_OK)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_dlpack_import: the dims are negative or too large");
	if (!is_row_major(given))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_dlpack_import: the elements are not row-major");
	if ((given->data == NULL && elements != 0) ||
	    ((uintptr_t)given->data + given->byte_offset) % weir_dtype_size(*dtype) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_dlpack_import: the data is %s",
		                  given->data == NULL ? "NULL" : "not aligned to its elements");
	return WEIR_OK;
}

static enum weir_status import(const struct weir_dlpack_tensor *given, weir_tensor_release_fn *release, void *managed,
                               const weir_allocator *allocator, weir_tensor **out, weir_error *error)
{
	enum weir_dtype dtype;
	weir_shape shape;
	enum weir_status status = check(given, &dtype, &shape, error);
	char *data = given->data;

	if (status != WEIR_OK)
		return status;
	status = weir_tensor_wrap(dtype, &shape, data != NULL ? data + given->byte_offset : NULL, release, managed,
	                          allocator, out);
	return status == WEIR_OK ? status : weiri_fail(error, status, "weir_dlpack_import: no memory, or too many bytes");
}

static enum weir_status fail_null(const char *what, weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_dlpack_import: %s is NULL", what);
}

enum weir_status weir_dlpack_import(struct weir_dlpack_managed *managed, const weir_allocator *allocator,
                                    weir_tensor **out, weir_error *error)
{
	if (managed == NULL || out == NULL)
		return fail_null(managed == NULL ? "managed" : "out", error);
	return import(&managed->tensor, release_managed, managed, allocator, out, error);
}

enum weir_status weir_dlpack_import_versioned(struct weir_dlpack_versioned *managed, const weir_allocator *allocator,
                                              weir_tensor **out, weir_error *error)
{
	if (managed == NULL || out == NULL)
		return fail_null(managed == NULL ? "managed" : "out", error);
	/* Only the version, the context and the deleter lie where they do in all major versions. */
	if (managed->major != WEIR_DLPACK_MAJOR)
		return weiri_fail(error, WEIR_UNIMPLEMENTED, "weir_dlpack_import: the major version is %u, must be %d",
		                  (unsigned)managed->major, WEIR_DLPACK_MAJOR);
	return import(&managed->tensor, release_versioned, managed, allocator, out, error);
}
