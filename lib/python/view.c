/*
 * view.c - View: one version of a variable, read in place.
 *
 * A View holds a handle, so its version stays as it is whatever writers do. memoryview(), NumPy and
 * DLPack see the elements without a copy, read-only.
 */
#include "module.h"

#include <weir/dlpack.h>

struct view {
	PyObject_HEAD
	weir_read read;          /* cleared by release() */
	_Atomic(size_t) exports; /* buffers that show it */
};

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "dims are shown as they are");

PyObject *view_of_read(const struct state *state, weir_read *read)
{
	struct view *view = NULL;

	if (state->view != NULL)
		view = (struct view *)(void *)PyType_GenericAlloc(state->view, 0);
	else
		PyErr_SetString(PyExc_RuntimeError, "the module weir is gone");
	if (view == NULL)
		weir_read_release(read);
	else
		view->read = *read;
	return (PyObject *)view;
}

weir_tensor *view_tensor(PyObject *object)
{
	struct view *view = (struct view *)(void *)object;

	if (view->read.tensor == NULL)
		PyErr_SetString(PyExc_ValueError, "the view is released");
	return view->read.tensor;
}

static void view_dealloc(PyObject *self)
{
	weir_read_release(&((struct view *)(void *)self)->read);
	free_object(self);
}

static PyObject *view_release(PyObject *self, PyObject *none)
{
	struct view *view = (struct view *)(void *)self;

	(void)none;
	/* [relaxed] the GIL, or the caller, orders it. */
	if (weiri_load_relaxed(&view->exports) != 0) {
		PyErr_SetString(PyExc_BufferError, "a buffer still shows the view");
		return NULL;
	}
	weir_read_release(&view->read);
	Py_RETURN_NONE;
}

static PyObject *view_enter(PyObject *self, PyObject *none)
{
	(void)none;
	return Py_NewRef(self);
}

static PyObject *view_exit(PyObject *self, PyObject *args)
{
	(void)args;
	return view_release(self, NULL);
}

/* -- buffer ------------------------------------------------------------------------------------- */

const char *format_of(enum weir_dtype dtype)
{
	switch (dtype) {
	case WEIR_BOOL: return "?";
	case WEIR_U8: return "B";
	case WEIR_I8: return "b";
	case WEIR_I16: return "h";
	case WEIR_U16: return "H";
	case WEIR_I32: return "i";
	case WEIR_U32: return "I";
	case WEIR_I64: return "q";
	case WEIR_U64: return "Q";
	case WEIR_F16: return "e";
	case WEIR_F32: return "f";
	case WEIR_F64: return "d";
	default: return NULL;
	}
}

static int view_getbuffer(PyObject *self, Py_buffer *buffer, int flags)
{
	struct view *view = (struct view *)(void *)self;
	const weir_tensor *tensor = view_tensor(self);
	const weir_shape *shape;
	Py_ssize_t *strides;

	buffer->obj = NULL;
	if (tensor == NULL)
		return -1;
	shape = weir_tensor_shape(tensor);
	if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && shape->rank > 1) {
		PyErr_SetString(PyExc_BufferError, "the elements of a view are row-major");
		return -1;
	}
	if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE || format_of(weir_tensor_dtype(tensor)) == NULL) {
		(void)PyErr_Format(PyExc_BufferError, "a view %s %s",
		                   format_of(weir_tensor_dtype(tensor)) == NULL ? "shows no buffer of" : "cannot be written:",
		                   weir_dtype_name(weir_tensor_dtype(tensor)));
		return -1;
	}
	strides = calloc(WEIR_MAX_RANK, sizeof(*strides));
	if (strides == NULL) {
		(void)PyErr_NoMemory();
		return -1;
	}
	memcpy(&buffer->buf, &(const void *){weir_tensor_data(tensor)}, sizeof(buffer->buf));
	buffer->len = (Py_ssize_t)weir_tensor_byte_count(tensor);
	buffer->itemsize = (Py_ssize_t)weir_dtype_size(weir_tensor_dtype(tensor));
	buffer->readonly = 1;
	buffer->ndim = (int)shape->rank;
	buffer->format = NULL;
	if ((flags & PyBUF_FORMAT) == PyBUF_FORMAT)
		memcpy(&buffer->format, &(const char *){format_of(weir_tensor_dtype(tensor))}, sizeof(buffer->format));
	buffer->shape = NULL;
	if ((flags & PyBUF_ND) == PyBUF_ND)
		memcpy(&buffer->shape, &(const int64_t *){shape->dims}, sizeof(buffer->shape));
	buffer->strides = NULL;
	if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES) {
		Py_ssize_t stride = buffer->itemsize;

		for (int i = buffer->ndim; i-- > 0;) {
			strides[i] = stride;
			/* Where there are no elements, the other dims may be so large that no stride is. */
			if (__builtin_mul_overflow(stride, shape->dims[i] != 0 ? shape->dims[i] : 1, &stride))
				stride = buffer->itemsize;
		}
		buffer->strides = strides;
	}
	buffer->suboffsets = NULL;
	buffer->internal = strides;
	(void)weiri_fetch_add_relaxed(&view->exports, (size_t)1); /* [relaxed] see view_release() */
	buffer->obj = Py_NewRef(self);
	return 0;
}

static void view_releasebuffer(PyObject *self, Py_buffer *buffer)
{
	free(buffer->internal);
	(void)weiri_fetch_sub_release(&((struct view *)(void *)self)->exports, (size_t)1); /* [release] as above */
}

/* -- DLPack ------------------------------------------------------------------------------------- */

/* A consumer renames the capsule, and then calls the deleter itself. */
static void end_old(PyObject *capsule)
{
	struct weir_dlpack_managed *managed;

	if (!PyCapsule_IsValid(capsule, "dltensor"))
		return;
	managed = PyCapsule_GetPointer(capsule, "dltensor");
	managed->deleter(managed);
}

static void end_versioned(PyObject *capsule)
{
	struct weir_dlpack_versioned *managed;

	if (!PyCapsule_IsValid(capsule, "dltensor_versioned"))
		return;
	managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
	managed->deleter(managed);
}

static bool two_numbers(PyObject *tuple, const char *name, int *first, int *second)
{
	if (PyTuple_Check(tuple) && PyTuple_Size(tuple) == 2)
		return PyArg_ParseTuple(tuple, "ii", first, second) != 0;
	(void)PyErr_Format(PyExc_TypeError, "%s must be a tuple of two numbers", name);
	return false;
}

/* The memory cannot go to another device, nor be copied here. */
static bool can_give(PyObject *stream, PyObject *device, PyObject *copy)
{
	int type = WEIR_DLPACK_CPU, id = 0;

	if (device != NULL && device != Py_None && !two_numbers(device, "dl_device", &type, &id))
		return false;
	if (type != WEIR_DLPACK_CPU || copy == Py_True || (stream != NULL && stream != Py_None)) {
		PyErr_SetString(PyExc_BufferError, "a view is memory of the CPU, and is not copied");
		return false;
	}
	return true;
}

static PyObject *view_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
	PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
	struct state *state = state_of_type(Py_TYPE(self));
	struct weir_dlpack_versioned *versioned;
	struct weir_dlpack_managed *managed;
	enum weir_status status;
	weir_tensor *tensor;
	PyObject *capsule;
	weir_error error;
	int major = 0, minor = 0;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &version, &device, &copy))
		return NULL;
	if (version != NULL && version != Py_None && !two_numbers(version, "max_version", &major, &minor))
		return NULL;
	tensor = view_tensor(self);
	if (tensor == NULL || !can_give(stream, device, copy))
		return NULL;
	if (major >= WEIR_DLPACK_MAJOR) {
		status = weir_dlpack_export_versioned(tensor, &versioned, &error);
		if (status != WEIR_OK)
			return raise_status(state, status, error.message);
		capsule = PyCapsule_New(versioned, "dltensor_versioned", end_versioned);
		if (capsule == NULL)
			versioned->deleter(versioned);
		return capsule;
	}
	status = weir_dlpack_export(tensor, &managed, &error);
	if (status != WEIR_OK)
		return raise_status(state, status, error.message);
	capsule = PyCapsule_New(managed, "dltensor", end_old);
	if (capsule == NULL)
		managed->deleter(managed);
	return capsule;
}

static PyObject *view_dlpack_device(PyObject *self, PyObject *none)
{
	(void)self, (void)none;
	return Py_BuildValue("ii", WEIR_DLPACK_CPU, 0);
}

/* -- properties --------------------------------------------------------------------------------- */

static PyObject *view_version(PyObject *self, void *closure)
{
	(void)closure;
	return view_tensor(self) != NULL ? PyLong_FromUnsignedLongLong(((struct view *)(void *)self)->read.version) : NULL;
}

static PyObject *view_dtype(PyObject *self, void *closure)
{
	const weir_tensor *tensor = view_tensor(self);

	(void)closure;
	return tensor != NULL ? PyUnicode_FromString(weir_dtype_name(weir_tensor_dtype(tensor))) : NULL;
}

static PyObject *view_shape(PyObject *self, void *closure)
{
	const weir_tensor *tensor = view_tensor(self);
	const weir_shape *shape;
	PyObject *dims;

	(void)closure;
	if (tensor == NULL)
		return NULL;
	shape = weir_tensor_shape(tensor);
	dims = PyTuple_New((Py_ssize_t)shape->rank);
	for (uint32_t i = 0; dims != NULL && i < shape->rank; i++) {
		PyObject *dim = PyLong_FromLongLong(shape->dims[i]);

		if (dim == NULL || PyTuple_SetItem(dims, (Py_ssize_t)i, dim) != 0)
			Py_CLEAR(dims);
	}
	return dims;
}

static PyObject *view_nbytes(PyObject *self, void *closure)
{
	const weir_tensor *tensor = view_tensor(self);

	(void)closure;
	return tensor != NULL ? PyLong_FromSize_t(weir_tensor_byte_count(tensor)) : NULL;
}

static PyMethodDef methods[] = {
	{"release", view_release, METH_NOARGS, "Gives the version up before the view itself goes."},
	{"__enter__", view_enter, METH_NOARGS, NULL},
	{"__exit__", view_exit, METH_VARARGS, NULL},
	{"__dlpack__", (PyCFunction)(void (*)(void))view_dlpack, METH_VARARGS | METH_KEYWORDS,
     "A capsule of DLPack, read-only if max_version is (1, 0) or later."},
	{"__dlpack_device__", view_dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
	{"version", view_version, NULL, "The number of the version, from 1.", NULL},
	{"dtype", view_dtype, NULL, "The name of the dtype, such as \"f32\".", NULL},
	{"shape", view_shape, NULL, "The dims.", NULL},
	{"nbytes", view_nbytes, NULL, "Bytes of the elements.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "One version of a variable, read in place. Var.read() makes it."},
	{Py_tp_dealloc, view_dealloc},
	{Py_tp_methods, methods},
	{Py_tp_getset, properties},
	{Py_bf_getbuffer, view_getbuffer},
	{Py_bf_releasebuffer, view_releasebuffer},
	{0, NULL},
};

PyType_Spec view_spec = {
	.name = "weir.View",
	.basicsize = sizeof(struct view),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
