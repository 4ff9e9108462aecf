/*
 * dlpack.h - tensors to and from DLPack, the exchange format of array libraries, without a copy.
 *
 * Use it where NumPy, PyTorch, JAX, CuPy, ONNX Runtime or another library with DLPack takes or gives
 * arrays, from any language. The structs have the layout of DLPack 1.0, version 0 included; so a
 * pointer to a DLManagedTensor of dlpack.h may be cast to struct weir_dlpack_managed, and back. For
 * memory of your own, weir_tensor_wrap() is enough.
 *
 * | call                                  | threads | progress  | blocks on | allocates | signal-safe |
 * |---------------------------------------|---------|-----------|-----------|-----------|-------------|
 * | weir_dlpack_export, _export_versioned | any     | allocator | allocator | yes       | no          |
 * | weir_dlpack_import, _import_versioned | any     | allocator | allocator | yes       | no          |
 *
 * Ordering: as for tensors. An export holds a reference to its tensor until its deleter is called,
 * which any thread may do; a consumer that never calls it leaks the tensor. The deleter of an import
 * is called once, on the thread that drops the last reference to the memory (weir_tensor_release_fn).
 */
#ifndef WEIR_DLPACK_H
#define WEIR_DLPACK_H

#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

/* DLDeviceType: where the memory is. Only these two can be imported. */
enum weir_dlpack_device_type {
	WEIR_DLPACK_CPU = 1,
	WEIR_DLPACK_CUDA_HOST = 3 /* pinned memory of the host */
};

/* DLDataTypeCode. */
enum weir_dlpack_type_code {
	WEIR_DLPACK_INT = 0,
	WEIR_DLPACK_UINT = 1,
	WEIR_DLPACK_FLOAT = 2,
	WEIR_DLPACK_BFLOAT = 4,
	WEIR_DLPACK_BOOL = 6
};

/* DLPACK_FLAG_BITMASK_*, of the versioned form. */
enum weir_dlpack_flags { WEIR_DLPACK_READ_ONLY = 1, WEIR_DLPACK_COPIED = 2 };

/* The major version that the versioned form has here. Another one has another layout. */
enum weir_dlpack_version { WEIR_DLPACK_MAJOR = 1, WEIR_DLPACK_MINOR = 0 };

/* DLDataType, DLDevice and DLTensor. */
struct weir_dlpack_type {
	uint8_t code; /* enum weir_dlpack_type_code */
	uint8_t bits;
	uint16_t lanes;
};

struct weir_dlpack_device {
	int32_t type; /* enum weir_dlpack_device_type */
	int32_t id;
};

struct weir_dlpack_tensor {
	void *data;
	struct weir_dlpack_device device;
	int32_t rank;
	struct weir_dlpack_type type;
	int64_t *dims;    /* `rank` of them */
	int64_t *strides; /* in elements; NULL: row-major */
	uint64_t byte_offset;
};

/* DLManagedTensor. `deleter` (may be NULL) is called once, with the struct, when it is not needed. */
struct weir_dlpack_managed {
	struct weir_dlpack_tensor tensor;
	void *context;
	void (*deleter)(struct weir_dlpack_managed *self);
};

/* DLManagedTensorVersioned. */
struct weir_dlpack_versioned {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct weir_dlpack_versioned *self);
	uint64_t flags; /* enum weir_dlpack_flags */
	struct weir_dlpack_tensor tensor;
};

/*
 * Creates *out, which shows the elements of `tensor` in place, row-major, and holds a reference. The
 * caller owns *out, and ends it by its deleter. The bytes of a tensor never change: the versioned
 * form says so (WEIR_DLPACK_READ_ONLY); the consumer of the older one must be known not to write.
 * The struct comes from the tensor's allocator.
 *
 * Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, WEIR_UNIMPLEMENTED for WEIR_BYTES,
 * WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dlpack_export(weir_tensor *tensor, struct weir_dlpack_managed **out,
                                             weir_error *error);
WEIR_API enum weir_status weir_dlpack_export_versioned(weir_tensor *tensor,
                                                       struct weir_dlpack_versioned **out,
                                                       weir_error *error);

/*
 * Creates a tensor over the memory of `managed`, without a copy, and takes `managed` over: its
 * deleter is called when the last reference to the memory is dropped. Nobody may write to the memory
 * from now on. allocator may be NULL.
 *
 * Errors, after which the caller still owns `managed`: WEIR_INVALID_ARGUMENT if an argument is NULL,
 * a dim is negative, the elements are not row-major, or the data is NULL or not aligned to its
 * elements. WEIR_UNIMPLEMENTED for memory of a device, a type that weir has not, several lanes, a
 * rank above WEIR_MAX_RANK, or (versioned) another major version. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dlpack_import(struct weir_dlpack_managed *managed,
                                             const weir_allocator *allocator, weir_tensor **out,
                                             weir_error *error);
WEIR_API enum weir_status weir_dlpack_import_versioned(struct weir_dlpack_versioned *managed,
                                                       const weir_allocator *allocator,
                                                       weir_tensor **out, weir_error *error);

WEIR_END_DECLS

#endif
