/*
 * lent.c - memory that belongs to Python objects, in tensors.
 *
 * A tensor over such memory may be released on any thread: by a reader, a writer or a collection,
 * without the GIL, even by another interpreter. Only the interpreter that lent the memory may give
 * it back to its object. So a release pushes the loan to a list of that interpreter, and its next
 * call into the module empties the list.
 *
 * Invariants
 *   L1  each loan is in one place: with its tensor, or in the list, or given back
 *   L2  `returned` outlives its loans: each holds a reference, and so does the module
 * Pairs
 *   P1  push (release) -> empty (acquire): what the tensor's users did with the memory
 *   P2  the last reference given back: what all holders did
 * A list that is only pushed to and taken as a whole has no ABA problem. Progress: a push is
 * lock-free, taking the list is wait-free.
 * The end. returned_close() empties the list once more. What comes later is not given back: its
 * interpreter is gone, and the memory with it or the process is about to be.
 */
#include "module.h"

#include <weir/dlpack.h>

struct loan {
	struct loan *next;
	struct returned *returned;
	Py_buffer buffer; /* buffer.obj is NULL if the memory came by DLPack */
	void *managed;    /* DLPack: what the exporter gave */
	bool is_versioned;
	union { /* what Weir gets in its place */
		struct weir_dlpack_managed old;
		struct weir_dlpack_versioned versioned;
	} ours;
};

struct returned {
	_Atomic(struct loan *) top;
	_Atomic(size_t) references;
};

/* -- the list ----------------------------------------------------------------------------------- */

struct returned *returned_create(void)
{
	struct returned *returned = calloc(1, sizeof(*returned));

	if (returned != NULL)
		weiri_store_relaxed(&returned->references, (size_t)1); /* [relaxed] not shared yet */
	return returned;
}

static void drop(struct returned *returned)
{
	/* [P2 acq_rel] */
	if (weiri_fetch_sub_acq_rel(&returned->references, (size_t)1) == 1)
		free(returned);
}

bool returned_has(const struct returned *returned)
{
	/* [relaxed] a look; taking the list acquires. */
	return weiri_load_relaxed(&returned->top) != NULL;
}

/* Any thread, without the GIL. */
static void push(struct loan *loan)
{
	struct returned *returned = loan->returned;
	/* [relaxed] the CAS publishes the loan; nothing of the old top is read. */
	struct loan *top = weiri_load_relaxed(&returned->top);

	do
		loan->next = top;
	while (!weiri_cas_release(&returned->top, &top, loan)); /* [P1 release] pairs with returned_empty() */
	drop(returned);
}

static void give_back(struct loan *loan)
{
	if (loan->buffer.obj != NULL) {
		PyBuffer_Release(&loan->buffer);
	} else if (loan->is_versioned) {
		struct weir_dlpack_versioned *managed = loan->managed;

		if (managed->deleter != NULL)
			managed->deleter(managed);
	} else {
		struct weir_dlpack_managed *managed = loan->managed;

		if (managed->deleter != NULL)
			managed->deleter(managed);
	}
	free(loan);
}

void returned_empty(struct returned *returned)
{
	/* [P1 acquire] pairs with push(). */
	struct loan *loan = weiri_exchange_acquire(&returned->top, (struct loan *)NULL);

	while (loan != NULL) {
		struct loan *next = loan->next;

		give_back(loan);
		loan = next;
	}
}

void returned_close(struct returned *returned)
{
	returned_empty(returned);
	drop(returned);
}

static struct loan *new_loan(struct returned *returned)
{
	struct loan *loan = calloc(1, sizeof(*loan));

	if (loan == NULL) {
		(void)PyErr_NoMemory();
		return NULL;
	}
	loan->returned = returned;
	(void)weiri_fetch_add_relaxed(&returned->references, (size_t)1); /* [relaxed] the module has one */
	return loan;
}

/* Weir did not take it. */
static void cancel_loan(struct loan *loan)
{
	struct returned *returned = loan->returned;

	give_back(loan);
	drop(returned);
}

/* -- buffers ------------------------------------------------------------------------------------ */

static void release_buffer(void *context, void *data)
{
	(void)data;
	push(context);
}

/* Native sizes: '@' is the default of struct, and '=' and '<' mean the same here for single letters of that size. */
static bool dtype_of_format(const char *format, Py_ssize_t size, enum weir_dtype *dtype)
{
	static const enum weir_dtype signed_of[9] = {[1] = WEIR_I8, [2] = WEIR_I16, [4] = WEIR_I32, [8] = WEIR_I64};
	static const enum weir_dtype unsigned_of[9] = {[1] = WEIR_U8, [2] = WEIR_U16, [4] = WEIR_U32, [8] = WEIR_U64};
	const unsigned one = 1;
	const bool is_little = *(const unsigned char *)&one == 1;

	if (format == NULL)
		format = "B";
	if (format[0] == '@' || format[0] == '=' || format[0] == (is_little ? '<' : '>'))
		format++;
	if (format[0] == '\0' || format[1] != '\0' || size < 1 || size > 8)
		return false;
	*dtype = 0;
	if (strchr("bhilqn", format[0]) != NULL)
		*dtype = signed_of[size];
	else if (strchr("BHILQN", format[0]) != NULL)
		*dtype = unsigned_of[size];
	else if (format[0] == '?')
		*dtype = size == 1 ? WEIR_BOOL : 0;
	else if (format[0] == 'e')
		*dtype = size == 2 ? WEIR_F16 : 0;
	else if (format[0] == 'f')
		*dtype = size == 4 ? WEIR_F32 : 0;
	else if (format[0] == 'd')
		*dtype = size == 8 ? WEIR_F64 : 0;
	return *dtype != 0;
}

static bool shape_of_buffer(const Py_buffer *buffer, enum weir_dtype *dtype, weir_shape *shape)
{
	if (!dtype_of_format(buffer->format, buffer->itemsize, dtype)) {
		(void)PyErr_Format(PyExc_TypeError, "no dtype has elements of format '%s'",
		                   buffer->format != NULL ? buffer->format : "B");
		return false;
	}
	if (buffer->ndim > WEIR_MAX_RANK) {
		(void)PyErr_Format(PyExc_ValueError, "the array has %d dims, must be at most %d", buffer->ndim, WEIR_MAX_RANK);
		return false;
	}
	*shape = weir_shape_scalar;
	shape->rank = (uint32_t)buffer->ndim;
	for (int i = 0; i < buffer->ndim; i++)
		shape->dims[i] = buffer->shape != NULL ? buffer->shape[i] : buffer->len / buffer->itemsize;
	return true;
}

static weir_tensor *finish(const struct state *state, enum weir_status status, const char *message, weir_tensor *tensor)
{
	if (status == WEIR_OK)
		return tensor;
	(void)raise_status(state, status, message);
	return NULL;
}

static weir_tensor *tensor_of_buffer(struct state *state, PyObject *value)
{
	struct loan *loan = new_loan(state->returned);
	enum weir_status status;
	weir_tensor *tensor = NULL;
	enum weir_dtype dtype;
	weir_shape shape;

	if (loan == NULL)
		return NULL;
	if (PyObject_GetBuffer(value, &loan->buffer, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
		drop(loan->returned);
		free(loan);
		return NULL;
	}
	if (!PyBuffer_IsContiguous(&loan->buffer, 'C')) {
		PyErr_SetString(PyExc_ValueError, "the array is strided: its elements are not row-major without gaps");
		cancel_loan(loan);
		return NULL;
	}
	if (!shape_of_buffer(&loan->buffer, &dtype, &shape)) {
		cancel_loan(loan);
		return NULL;
	}
	if ((uintptr_t)loan->buffer.buf % weir_dtype_size(dtype) != 0) {
		status = weir_tensor_copy_of(dtype, &shape, loan->buffer.buf, NULL, &tensor);
		cancel_loan(loan);
		return finish(state, status, NULL, tensor);
	}
	status = weir_tensor_wrap(dtype, &shape, loan->buffer.buf, release_buffer, loan, NULL, &tensor);
	if (status != WEIR_OK)
		cancel_loan(loan);
	return finish(state, status, NULL, tensor);
}

/* -- DLPack ------------------------------------------------------------------------------------- */

static void release_old(struct weir_dlpack_managed *self)
{
	push(self->context);
}

static void release_versioned(struct weir_dlpack_versioned *self)
{
	push(self->context);
}

/* The exporter's struct without its deleter, which only this interpreter may call. */
static enum weir_status import(struct loan *loan, weir_tensor **tensor, weir_error *error)
{
	if (!loan->is_versioned) {
		memcpy(&loan->ours.old, loan->managed, sizeof(loan->ours.old));
		loan->ours.old.context = loan;
		loan->ours.old.deleter = release_old;
		return weir_dlpack_import(&loan->ours.old, NULL, tensor, error);
	}
	memcpy(&loan->ours.versioned, loan->managed, sizeof(loan->ours.versioned));
	loan->ours.versioned.context = loan;
	loan->ours.versioned.deleter = release_versioned;
	return weir_dlpack_import_versioned(&loan->ours.versioned, NULL, tensor, error);
}

static PyObject *capsule_of(PyObject *value)
{
	PyObject *method = PyObject_GetAttrString(value, "__dlpack__"), *none = PyTuple_New(0);
	PyObject *keywords = Py_BuildValue("{s(ii)}", "max_version", WEIR_DLPACK_MAJOR, WEIR_DLPACK_MINOR);
	PyObject *capsule = NULL;

	if (method != NULL && none != NULL && keywords != NULL) {
		capsule = PyObject_Call(method, none, keywords);
		if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) { /* an exporter of version 0 */
			PyErr_Clear();
			capsule = PyObject_Call(method, none, NULL);
		}
	}
	Py_XDECREF(keywords);
	Py_XDECREF(none);
	Py_XDECREF(method);
	return capsule;
}

static weir_tensor *tensor_of_dlpack(struct state *state, PyObject *value)
{
	PyObject *capsule = capsule_of(value);
	weir_error error = {.message = ""};
	weir_tensor *tensor = NULL;
	enum weir_status status;
	struct loan *loan;
	const char *name;

	if (capsule == NULL)
		return NULL;
	name = PyCapsule_IsValid(capsule, "dltensor_versioned") ? "dltensor_versioned" : "dltensor";
	loan = PyCapsule_IsValid(capsule, name) ? new_loan(state->returned) : NULL;
	if (loan == NULL) {
		if (PyErr_Occurred() == NULL)
			PyErr_SetString(PyExc_TypeError, "__dlpack__ gave no capsule of DLPack");
		Py_DECREF(capsule);
		return NULL;
	}
	loan->is_versioned = name[sizeof("dltensor") - 1] != '\0';
	loan->managed = PyCapsule_GetPointer(capsule, name);
	status = import(loan, &tensor, &error);
	if (status == WEIR_OK) {
		/* From now on the deleter is ours to call. */
		(void)PyCapsule_SetName(capsule, loan->is_versioned ? "used_dltensor_versioned" : "used_dltensor");
	} else {
		drop(loan->returned);
		free(loan);
	}
	Py_DECREF(capsule);
	return finish(state, status, error.message, tensor);
}

/* -- any object --------------------------------------------------------------------------------- */

static weir_tensor *scalar_of(const struct state *state, PyObject *value)
{
	weir_tensor *tensor = NULL;
	enum weir_status status;

	if (PyBool_Check(value)) {
		status = weir_tensor_scalar_bool(value == Py_True, &tensor);
	} else if (PyFloat_Check(value)) {
		status = weir_tensor_scalar_f64(PyFloat_AsDouble(value), &tensor);
	} else {
		long long number = PyLong_AsLongLong(value);

		if (number == -1 && PyErr_Occurred() != NULL)
			return NULL;
		status = weir_tensor_scalar_i64(number, &tensor);
	}
	return finish(state, status, NULL, tensor);
}

static weir_tensor *tensor_in_place(struct state *state, PyObject *value)
{
	if (Py_TYPE(value) == state->view)
		return weir_tensor_retain(view_tensor(value));
	if (PyObject_CheckBuffer(value))
		return tensor_of_buffer(state, value);
	if (PyBool_Check(value) || PyLong_Check(value) || PyFloat_Check(value))
		return scalar_of(state, value);
	if (PyObject_HasAttrString(value, "__dlpack__"))
		return tensor_of_dlpack(state, value);
	(void)PyErr_Format(PyExc_TypeError, "a value needs a buffer or __dlpack__, or is a number; %R is none of these",
	                   (PyObject *)Py_TYPE(value));
	return NULL;
}

weir_tensor *tensor_of(struct state *state, PyObject *value, bool copies)
{
	weir_tensor *tensor, *copy = NULL;
	enum weir_status status;

	if (returned_has(state->returned))
		returned_empty(state->returned);
	tensor = tensor_in_place(state, value);
	if (tensor == NULL || !copies)
		return tensor;
	status = weir_tensor_copy_of(weir_tensor_dtype(tensor), weir_tensor_shape(tensor), weir_tensor_data(tensor), NULL,
	                             &copy);
	weir_tensor_release(tensor);
	return finish(state, status, NULL, copy);
}
