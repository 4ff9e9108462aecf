/*
 * module.h - what the files of the Python module share.
 *
 * The module uses the limited API of CPython 3.11, so one file serves 3.11 and later. Its state is
 * in the module object: several interpreters can have it at a time. Every object keeps its type, and
 * the type its module, so `state` is valid as long as an object is.
 */
#ifndef WEIRI_PYTHON_MODULE_H
#define WEIRI_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "base/atomic.h"

struct state {
	PyTypeObject *view, *var, *watch, *queue, *ring;
	PyObject *error, *closed, *aborted, *empty, *full;
	PyObject *aiter;           /* weir._aio.Reader, set by the package */
	struct returned *returned; /* lent.c */
	unsigned long main_thread;
};

struct state *state_of_type(PyTypeObject *type);
struct state *state_of_module(PyObject *module);

/* Ends a dealloc: gives back the memory of the object, and its reference to its type. */
static inline void free_object(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_Free(self);
	Py_DECREF(type);
}

/* -- wait.c: arguments, signals, exceptions ------------------------------------------------------- */

/* Returns a deadline, or 0 with an exception: `timeout` is None or a number of seconds, at least 0. */
uint64_t deadline_of(PyObject *timeout);
/* For "O&": the number of a version, an unsigned long long. Unlike "K", it refuses what does not fit. */
int version_of(PyObject *number, void *version);
/* Sets the exception of a status, and returns NULL. `message` may be NULL. */
PyObject *raise_status(const struct state *state, enum weir_status status, const char *message);

/*
 * A call that may block: begin_wait() lets the GIL go, end_wait() takes it again. Between them, on the
 * main thread, a signal runs its Python handler at once. If that raises, the call ends, and end_wait()
 * returns false with the exception set. The call may have been complete nevertheless: its status says
 * so, and the caller must keep or release what it got.
 */
struct wait {
	PyThreadState *saved;
	PyObject *exception[3];
	bool is_main, raised;
};
void begin_wait(const struct state *state, struct wait *wait);
bool end_wait(struct wait *wait);

/*
 * What a call had taken when a handler raised: the next call that takes gets it first. Only the main
 * thread has handlers, and it takes what is there before it waits; so there is at most one.
 */
static inline void keep_unread(_Atomic(PyObject *) *unread, PyObject *item)
{
	Py_XDECREF(weiri_exchange_acq_rel(unread, item)); /* [acq_rel] the item, from thread to thread */
}

static inline PyObject *take_unread(_Atomic(PyObject *) *unread)
{
	/* [relaxed] a look; [acquire] the item that keep_unread() left. */
	return weiri_load_relaxed(unread) != NULL ? weiri_exchange_acquire(unread, (PyObject *)NULL) : NULL;
}

/* -- lent.c: memory of Python in tensors --------------------------------------------------------- */

struct returned *returned_create(void);
/* Called with the interpreter's GIL: gives back what tensors have released since. */
void returned_empty(struct returned *returned);
/* The interpreter ends: gives back what there is, and nothing later. */
void returned_close(struct returned *returned);
/* True if returned_empty() would find something. */
bool returned_has(const struct returned *returned);

/*
 * Returns a tensor with the value of an object: of a View its own; over the memory of a buffer or of
 * an object with __dlpack__; or a scalar of a bool, int or float. NULL with an exception.
 */
weir_tensor *tensor_of(struct state *state, PyObject *value, bool copies);

/* -- view.c ------------------------------------------------------------------------------------- */

/* Returns a View that takes over the handle; if there is no memory, it releases the handle. */
PyObject *view_of_read(const struct state *state, weir_read *read);
/* Returns the tensor of a View, which the View keeps, or NULL with an exception if it was released. */
weir_tensor *view_tensor(PyObject *object);
/* Returns the letter that struct and buffers have for a dtype, or NULL. */
const char *format_of(enum weir_dtype dtype);

/* -- types: each file makes its own --------------------------------------------------------------- */

extern PyType_Spec view_spec, var_spec, watch_spec, queue_spec, ring_spec;
/* Functions of the module that are about variables. */
PyObject *module_snapshot(PyObject *module, PyObject *iterable);
PyObject *module_commit(PyObject *module, PyObject *args, PyObject *keywords);

#endif
