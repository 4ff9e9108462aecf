/*
 * ring.c - Ring: messages between processes, in shared memory (weir/shm_ring.h).
 */
#include "module.h"

#include <weir/shm_ring.h>

struct ring {
	PyObject_HEAD
	weir_shm_ring *ring;
	_Atomic(PyObject *) unread; /* a message that a call had got when a signal's handler raised */
};

static weir_shm_ring *ring_of(PyObject *self)
{
	return ((struct ring *)(void *)self)->ring;
}

/* -- life --------------------------------------------------------------------------------------- */

static PyObject *made(PyTypeObject *type, PyObject *self, enum weir_status status, const weir_error *error)
{
	if (status == WEIR_OK)
		return self;
	Py_DECREF(self);
	return raise_status(state_of_type(type), status, error->message);
}

static PyObject *ring_create(PyObject *class, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"file", "capacity", "item_size", "processes", "frames_per_process", NULL};
	struct weir_shm_ring_options options = {WEIR_SHM_RING_OPTIONS_INIT};
	unsigned processes = 0, frames = 0;
	Py_ssize_t capacity, item_size;
	weir_error error;
	PyObject *self;
	int file;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "inn|$II:create", names, &file, &capacity, &item_size, &processes,
	                                 &frames))
		return NULL;
	options.processes = processes;
	options.frames_per_process = frames;
	self = PyType_GenericAlloc((PyTypeObject *)class, 0);
	if (self == NULL)
		return NULL;
	return made((PyTypeObject *)class, self,
	            weir_shm_ring_create(file, capacity > 0 ? (size_t)capacity : 0, item_size > 0 ? (size_t)item_size : 0,
	                                 &options, &((struct ring *)(void *)self)->ring, &error),
	            &error);
}

static PyObject *ring_attach(PyObject *class, PyObject *number)
{
	long file = PyLong_AsLong(number);
	weir_error error;
	PyObject *self;

	if (file == -1 && PyErr_Occurred() != NULL)
		return NULL;
	self = PyType_GenericAlloc((PyTypeObject *)class, 0);
	if (self == NULL)
		return NULL;
	return made((PyTypeObject *)class, self,
	            weir_shm_ring_attach((int)file, &((struct ring *)(void *)self)->ring, &error), &error);
}

static void ring_dealloc(PyObject *self)
{
	(void)weir_shm_ring_destroy(ring_of(self), NULL); /* each call holds a reference to the object */
	Py_XDECREF(take_unread(&((struct ring *)(void *)self)->unread));
	free_object(self);
}

/* -- messages ----------------------------------------------------------------------------------- */

static PyObject *ring_put(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"message", "timeout", NULL};
	struct state *state = state_of_type(Py_TYPE(self));
	PyObject *timeout = NULL;
	enum weir_status status;
	uint64_t deadline_ns;
	struct wait wait;
	weir_error error;
	Py_buffer message;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "y*|O:put", names, &message, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	if (deadline_ns == 0) {
		PyBuffer_Release(&message);
		return NULL;
	}
	status = weir_shm_ring_try_enqueue(ring_of(self), message.len > 0 ? message.buf : "", (size_t)message.len);
	if (status == WEIR_OK) {
		PyBuffer_Release(&message);
		Py_RETURN_NONE;
	}
	begin_wait(state, &wait);
	status = weir_shm_ring_enqueue(ring_of(self), message.len > 0 ? message.buf : "", (size_t)message.len, deadline_ns,
	                               NULL, &error);
	if (!end_wait(&wait)) {
		PyBuffer_Release(&message);
		return NULL;
	}
	PyBuffer_Release(&message);
	if (status == WEIR_DEADLINE_EXCEEDED) {
		PyErr_SetNone(state->full);
		return NULL;
	}
	return status == WEIR_OK ? Py_NewRef(Py_None) : raise_status(state, status, error.message);
}

/* The frame is copied into the bytes, and given back. */
static PyObject *bytes_of(PyObject *self, struct weir_shm_frame *frame)
{
	PyObject *bytes = PyBytes_FromStringAndSize(frame->data, (Py_ssize_t)frame->size);

	(void)weir_shm_ring_release(ring_of(self), frame);
	return bytes;
}

static PyObject *ring_get(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"timeout", NULL};
	struct state *state = state_of_type(Py_TYPE(self));
	struct weir_shm_frame frame;
	PyObject *timeout = NULL, *message;
	enum weir_status status;
	uint64_t deadline_ns;
	struct wait wait;
	weir_error error;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:get", names, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	if (deadline_ns == 0)
		return NULL;
	message = take_unread(&((struct ring *)(void *)self)->unread);
	if (message != NULL)
		return message;
	if (weir_shm_ring_try_take(ring_of(self), &frame) == WEIR_OK)
		return bytes_of(self, &frame);
	begin_wait(state, &wait);
	status = weir_shm_ring_take(ring_of(self), &frame, deadline_ns, NULL, &error);
	if (!end_wait(&wait)) {
		if (status == WEIR_OK)
			keep_unread(&((struct ring *)(void *)self)->unread, bytes_of(self, &frame));
		return NULL;
	}
	if (status == WEIR_DEADLINE_EXCEEDED) {
		PyErr_SetNone(state->empty);
		return NULL;
	}
	return status == WEIR_OK ? bytes_of(self, &frame) : raise_status(state, status, error.message);
}

/* -- the rest ----------------------------------------------------------------------------------- */

static PyObject *ring_close(PyObject *self, PyObject *none)
{
	(void)none;
	weir_shm_ring_close(ring_of(self));
	Py_RETURN_NONE;
}

static PyObject *ring_recover(PyObject *self, PyObject *none)
{
	size_t seats = 0;
	enum weir_status status = weir_shm_ring_recover(ring_of(self), &seats);

	(void)none;
	return status == WEIR_OK ? PyLong_FromSize_t(seats) : raise_status(state_of_type(Py_TYPE(self)), status, NULL);
}

static Py_ssize_t ring_length(PyObject *self)
{
	return (Py_ssize_t)weir_shm_ring_size_approx(ring_of(self));
}

static PyObject *ring_closed(PyObject *self, void *closure)
{
	(void)closure;
	return PyBool_FromLong(weir_shm_ring_closed(ring_of(self)));
}

static PyObject *ring_capacity(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromSize_t(weir_shm_ring_capacity(ring_of(self)));
}

static PyObject *ring_item_size(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromSize_t(weir_shm_ring_item_size(ring_of(self)));
}

#define WITH_KEYWORDS(fn, flags) (PyCFunction)(void (*)(void))(fn), METH_VARARGS | METH_KEYWORDS | (flags)

static PyMethodDef methods[] = {
	{"create", WITH_KEYWORDS(ring_create, METH_CLASS),
     "create(file, capacity, item_size, *, processes=0, frames_per_process=0): makes a ring in an empty memfd."},
	{"attach", ring_attach, METH_O | METH_CLASS, "attach(file): the ring that another process has made there."},
	{"put", WITH_KEYWORDS(ring_put, 0),
     "put(message, timeout=None): copies the bytes in; queue.Full after the timeout."},
	{"get", WITH_KEYWORDS(ring_get, 0),
     "get(timeout=None): the oldest message as bytes; queue.Empty after the timeout."},
	{"close", ring_close, METH_NOARGS, "Closes the ring for all processes."},
	{"recover", ring_recover, METH_NOARGS, "Gives back what processes that are gone had; returns how many there were."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
	{"closed", ring_closed, NULL, NULL, NULL},
	{"capacity", ring_capacity, NULL, NULL, NULL},
	{"item_size", ring_item_size, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "A bounded FIFO queue of messages between processes. Ring.create() and Ring.attach() make it."},
	{Py_tp_dealloc, ring_dealloc},
	{Py_sq_length, ring_length},
	{Py_tp_methods, methods},
	{Py_tp_getset, properties},
	{0, NULL},
};

PyType_Spec ring_spec = {
	.name = "weir.Ring",
	.basicsize = sizeof(struct ring),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
