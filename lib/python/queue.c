/*
 * queue.c - Queue: any Python objects, for any number of threads, and for event loops.
 *
 * A call first tries with the GIL, which takes tens of nanoseconds. Only if it would wait does it let
 * the GIL go. An item in the queue is a reference. The cyclic collector does not see it; so a cycle
 * that goes through a queue stays until the queue is emptied.
 *
 * The end of a queue ends what is in it, and that may be a queue, and so on. So that a long chain needs a small stack,
 * CPython lets a container that ends inside many others wait until the outermost one has ended (its "trashcan"). The
 * limited API has this for the containers of CPython only. So the queue of C belongs to a capsule, and the capsule to a
 * tuple, which ends with the object Queue: tuple, capsule, queue, item, tuple, and the tuples are what CPython counts.
 * An item that a signal kept from being returned (`unread`) ends through a list in that tuple, for the same reason.
 * They are made with the Queue, so an end needs no memory; and nothing of it is kept for a thread, on which greenlets
 * may have several stacks.
 */
#include "module.h"

struct queue {
	PyObject_HEAD
	weir_queue *queue;
	PyObject *owner;             /* of the queue of C: a tuple of a capsule, and a list for the last item */
	_Atomic(PyObject *) waiters; /* a dict of the package: what waits in event loops; made when it is first needed */
	_Atomic(PyObject *) unread;
};

static const char capsule_name[] = "weir_queue";

static weir_queue *queue_of(PyObject *self)
{
	return ((struct queue *)(void *)self)->queue;
}

/* -- life --------------------------------------------------------------------------------------- */

/* Called by destroy, with the GIL. */
static void drop_item(void *context, void *item)
{
	(void)context;
	Py_DECREF((PyObject *)item);
}

static void end_queue(PyObject *capsule)
{
	(void)weir_queue_destroy(PyCapsule_GetPointer(capsule, capsule_name), NULL); /* each call holds the Queue */
}

/* Takes the queue over. Returns a tuple, with which it ends, or NULL with an exception. */
static PyObject *owner_of(weir_queue *queue)
{
	PyObject *capsule = PyCapsule_New(queue, capsule_name, end_queue), *last, *owner;

	if (capsule == NULL) {
		(void)weir_queue_destroy(queue, NULL);
		return NULL;
	}
	last = Py_BuildValue("[O]", Py_None);
	owner = last != NULL ? PyTuple_Pack(2, capsule, last) : NULL;
	Py_XDECREF(last);
	Py_DECREF(capsule);
	return owner;
}

static PyObject *queue_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"capacity", "name", NULL};
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .drop = drop_item};
	enum weir_status status;
	Py_ssize_t capacity;
	weir_queue *queue;
	weir_error error;
	PyObject *owner, *self;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "n|$z:Queue", names, &capacity, &options.name))
		return NULL;
	options.capacity = capacity > 0 ? (size_t)capacity : 0;
	status = weir_queue_create(&options, &queue, &error);
	if (status != WEIR_OK)
		return raise_status(state_of_type(type), status, error.message);
	owner = owner_of(queue);
	self = owner != NULL ? PyType_GenericAlloc(type, 0) : NULL;
	if (self == NULL) {
		Py_XDECREF(owner);
		return NULL;
	}
	((struct queue *)(void *)self)->queue = queue;
	((struct queue *)(void *)self)->owner = owner;
	return self;
}

/* What waits in a loop may lead back to the queue. The items are not visited: other threads move them without the GIL. */
static int queue_traverse(PyObject *self, visitproc visit, void *arg)
{
	/* [relaxed] the GIL, or the collector that stops all threads, orders it. */
	PyObject *waiters = weiri_load_relaxed(&((struct queue *)(void *)self)->waiters);

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(waiters);
	return 0;
}

static int queue_clear(PyObject *self)
{
	/* [acquire] what queue_waiters() has made. */
	Py_XDECREF(weiri_exchange_acquire(&((struct queue *)(void *)self)->waiters, (PyObject *)NULL));
	return 0;
}

static void queue_dealloc(PyObject *self)
{
	struct queue *queue = (struct queue *)(void *)self;
	PyTypeObject *type = Py_TYPE(self);
	PyObject *owner = queue->owner, *unread = take_unread(&queue->unread);

	PyObject_GC_UnTrack(self);
	(void)queue_clear(self);
	if (unread != NULL)
		(void)PyList_SetItem(PyTuple_GetItem(owner, 1), 0, unread); /* takes the reference */
	PyObject_GC_Del(self);
	Py_DECREF(type);
	Py_DECREF(owner);
}

/* -- one item ----------------------------------------------------------------------------------- */

static PyObject *cannot(const struct state *state, enum weir_status status, const weir_error *error)
{
	if (status == WEIR_DEADLINE_EXCEEDED || status == WEIR_WOULD_BLOCK)
		return raise_status(state, status, NULL);
	return raise_status(state, status, error != NULL ? error->message : NULL);
}

/* The message of a closed queue has the cause. A deadline in the past makes no call wait. */
static PyObject *closed_put(const struct state *state, PyObject *self)
{
	weir_error error = {.message = ""};
	enum weir_status status = weir_queue_enqueue(queue_of(self), self, 0, NULL, &error);

	if (status == WEIR_OK) { /* cannot be: a queue is never opened again */
		Py_INCREF(self);
		status = WEIR_CANCELLED;
	}
	return cannot(state, status, &error);
}

static PyObject *full(const struct state *state)
{
	PyErr_SetNone(state->full);
	return NULL;
}

static PyObject *empty(const struct state *state)
{
	PyErr_SetNone(state->empty);
	return NULL;
}

static PyObject *put_slowly(PyObject *self, PyObject *item, uint64_t deadline_ns)
{
	struct state *state = state_of_type(Py_TYPE(self));
	enum weir_status status;
	struct wait wait;
	weir_error error;

	Py_INCREF(item);
	begin_wait(state, &wait);
	status = weir_queue_enqueue(queue_of(self), item, deadline_ns, NULL, &error);
	if (!end_wait(&wait)) {
		if (status != WEIR_OK)
			Py_DECREF(item);
		return NULL;
	}
	if (status == WEIR_OK)
		Py_RETURN_NONE;
	Py_DECREF(item);
	return status == WEIR_DEADLINE_EXCEEDED ? full(state) : cannot(state, status, &error);
}

static PyObject *put_now(PyObject *self, PyObject *item, bool *must_wait)
{
	enum weir_status status;

	Py_INCREF(item);
	status = weir_queue_try_enqueue(queue_of(self), item);
	*must_wait = status == WEIR_WOULD_BLOCK;
	if (status == WEIR_OK)
		Py_RETURN_NONE;
	Py_DECREF(item);
	if (*must_wait)
		return NULL;
	return status == WEIR_CANCELLED ? closed_put(state_of_type(Py_TYPE(self)), self)
	                                : raise_status(state_of_type(Py_TYPE(self)), status, NULL);
}

static PyObject *queue_put(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	uint64_t deadline_ns = WEIR_NO_DEADLINE;
	PyObject *result;
	bool must_wait;

	if (count < 1 || count > 2) {
		PyErr_SetString(PyExc_TypeError, "put(item, timeout=None) takes one or two arguments, by position");
		return NULL;
	}
	result = put_now(self, args[0], &must_wait);
	if (!must_wait)
		return result;
	if (count == 2)
		deadline_ns = deadline_of(args[1]);
	return deadline_ns != 0 ? put_slowly(self, args[0], deadline_ns) : NULL;
}

static PyObject *queue_put_nowait(PyObject *self, PyObject *item)
{
	bool must_wait;
	PyObject *result = put_now(self, item, &must_wait);

	return must_wait ? full(state_of_type(Py_TYPE(self))) : result;
}

/* The caller gets the reference that was in the queue. */
static PyObject *get_slowly(PyObject *self, uint64_t deadline_ns)
{
	struct state *state = state_of_type(Py_TYPE(self));
	enum weir_status status;
	struct wait wait;
	weir_error error;
	void *item;

	begin_wait(state, &wait);
	status = weir_queue_dequeue(queue_of(self), &item, deadline_ns, NULL, &error);
	if (!end_wait(&wait)) {
		if (status == WEIR_OK)
			keep_unread(&((struct queue *)(void *)self)->unread, item);
		return NULL;
	}
	if (status == WEIR_OK)
		return item;
	return status == WEIR_DEADLINE_EXCEEDED ? empty(state) : cannot(state, status, &error);
}

static PyObject *queue_get(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	uint64_t deadline_ns = WEIR_NO_DEADLINE;
	void *item;

	if (count > 1) {
		PyErr_SetString(PyExc_TypeError, "get(timeout=None) takes at most one argument, by position");
		return NULL;
	}
	item = take_unread(&((struct queue *)(void *)self)->unread);
	if (item != NULL || weir_queue_try_dequeue(queue_of(self), &item) == WEIR_OK)
		return item;
	if (count == 1)
		deadline_ns = deadline_of(args[0]);
	return deadline_ns != 0 ? get_slowly(self, deadline_ns) : NULL;
}

static PyObject *queue_get_nowait(PyObject *self, PyObject *none)
{
	enum weir_status status;
	void *item;

	(void)none;
	item = take_unread(&((struct queue *)(void *)self)->unread);
	if (item != NULL)
		return item;
	status = weir_queue_try_dequeue(queue_of(self), &item);
	if (status == WEIR_OK)
		return item;
	return status == WEIR_WOULD_BLOCK ? empty(state_of_type(Py_TYPE(self)))
	                                  : get_slowly(self, weir_deadline_in(1)); /* for the message: it does not wait */
}

/* -- many --------------------------------------------------------------------------------------- */

static PyObject *put_items(PyObject *self, PyObject *tuple, uint64_t deadline_ns)
{
	struct state *state = state_of_type(Py_TYPE(self));
	size_t count = (size_t)PyTuple_Size(tuple), done = 0;
	void **items = calloc(count + 1, sizeof(*items));
	enum weir_status status;
	struct wait wait;
	weir_error error;
	bool whole;

	if (items == NULL)
		return PyErr_NoMemory();
	for (size_t i = 0; i < count; i++)
		items[i] = Py_NewRef(PyTuple_GetItem(tuple, (Py_ssize_t)i));
	begin_wait(state, &wait);
	status = weir_queue_enqueue_many(queue_of(self), items, count, deadline_ns, NULL, &done, &error);
	whole = end_wait(&wait);
	for (size_t i = done; i < count; i++)
		Py_DECREF((PyObject *)items[i]);
	free(items);
	if (!whole)
		return NULL;
	/* The number tells what belongs to the queue; nothing of it is an exception. */
	if (status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED || done > 0)
		return PyLong_FromSize_t(done);
	return cannot(state, status, &error);
}

static PyObject *queue_put_many(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"items", "timeout", NULL};
	PyObject *iterable, *timeout = NULL, *tuple, *result;
	uint64_t deadline_ns;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:put_many", names, &iterable, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	tuple = deadline_ns != 0 ? PySequence_Tuple(iterable) : NULL;
	if (tuple == NULL)
		return NULL;
	result = put_items(self, tuple, deadline_ns);
	Py_DECREF(tuple);
	return result;
}

/* Takes the references over. */
static PyObject *list_of(void *items[], size_t count)
{
	PyObject *list = PyList_New((Py_ssize_t)count);

	for (size_t i = 0; i < count; i++) {
		if (list == NULL)
			Py_DECREF((PyObject *)items[i]);
		else if (PyList_SetItem(list, (Py_ssize_t)i, items[i]) != 0)
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *queue_get_many(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"most", "timeout", NULL};
	struct state *state = state_of_type(Py_TYPE(self));
	PyObject *timeout = NULL, *list = NULL, *first;
	uint64_t deadline_ns;
	size_t done = 0;
	Py_ssize_t most;
	void **items;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "n|O:get_many", names, &most, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	if (deadline_ns == 0)
		return NULL;
	if (most < 1)
		return raise_status(state, WEIR_INVALID_ARGUMENT, "most must be at least 1");
	items = calloc((size_t)most, sizeof(*items));
	if (items == NULL)
		return PyErr_NoMemory();
	first = take_unread(&((struct queue *)(void *)self)->unread);
	if (first == NULL && weir_queue_try_dequeue_many(queue_of(self), items, (size_t)most, &done) == WEIR_OK) {
		list = list_of(items, done);
	} else {
		if (first == NULL)
			first = get_slowly(self, deadline_ns);
		if (first != NULL) {
			items[0] = first;
			done = 0;
			(void)weir_queue_try_dequeue_many(queue_of(self), items + 1, (size_t)most - 1, &done);
			list = list_of(items, done + 1);
		}
	}
	free(items);
	return list;
}

/* -- ends --------------------------------------------------------------------------------------- */

static PyObject *queue_close(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"cause", "cancel", NULL};
	weir_error cause = {.code = WEIR_CANCELLED};
	const char *text = NULL;
	int cancels = 0;
	PyThreadState *saved;
	enum weir_status status;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|z$p:close", names, &text, &cancels))
		return NULL;
	if (text != NULL)
		(void)PyOS_snprintf(cause.message, sizeof(cause.message), "%s", text);
	saved = PyEval_SaveThread();
	status =
		weir_queue_close(queue_of(self), cancels ? WEIR_CLOSE_CANCEL : WEIR_CLOSE_DRAIN, text != NULL ? &cause : NULL);
	PyEval_RestoreThread(saved);
	return status == WEIR_OK ? Py_NewRef(Py_None) : raise_status(state_of_type(Py_TYPE(self)), status, NULL);
}

/* -- iteration and event loops ------------------------------------------------------------------ */

static PyObject *queue_iter(PyObject *self)
{
	return Py_NewRef(self);
}

/* The end of a closed queue is the end of the iteration. */
static PyObject *queue_iternext(PyObject *self)
{
	PyObject *item = queue_get(self, NULL, 0);

	if (item == NULL && PyErr_ExceptionMatches(state_of_type(Py_TYPE(self))->closed))
		PyErr_Clear();
	return item;
}

static PyObject *queue_aiter(PyObject *self)
{
	struct state *state = state_of_type(Py_TYPE(self));

	if (state->aiter == NULL) {
		PyErr_SetString(PyExc_RuntimeError, "import the package weir, not weir._weir");
		return NULL;
	}
	return PyObject_CallFunctionObjArgs(state->aiter, self, NULL);
}

static PyObject *fileno_by(enum weir_status (*get)(weir_queue *, int *, weir_error *), PyObject *self)
{
	enum weir_status status;
	weir_error error;
	int file;

	status = get(queue_of(self), &file, &error);
	return status == WEIR_OK ? PyLong_FromLong(file)
	                         : raise_status(state_of_type(Py_TYPE(self)), status, error.message);
}

static PyObject *queue_fileno(PyObject *self, PyObject *none)
{
	(void)none;
	return fileno_by(weir_queue_readable_fd, self);
}

static PyObject *queue_writable_fileno(PyObject *self, PyObject *none)
{
	(void)none;
	return fileno_by(weir_queue_writable_fd, self);
}

static PyObject *queue_waiters(PyObject *self, void *closure)
{
	struct queue *queue = (struct queue *)(void *)self;
	/* [acquire] the dict that another thread has made. */
	PyObject *waiters = weiri_load_acquire(&queue->waiters), *made;

	(void)closure;
	if (waiters != NULL)
		return Py_NewRef(waiters);
	made = PyDict_New();
	if (made == NULL)
		return NULL;
	/* [release, acquire] as above. Without a GIL, threads may come here at a time. */
	if (weiri_cas_release_or_acquire(&queue->waiters, &waiters, made))
		return Py_NewRef(made);
	Py_DECREF(made);
	return Py_NewRef(waiters);
}

/* -- properties --------------------------------------------------------------------------------- */

static Py_ssize_t queue_length(PyObject *self)
{
	/* [relaxed] a number */
	const bool has_unread = weiri_load_relaxed(&((struct queue *)(void *)self)->unread) != NULL;

	return (Py_ssize_t)weir_queue_size_approx(queue_of(self)) + has_unread;
}

static PyObject *queue_closed(PyObject *self, void *closure)
{
	(void)closure;
	return PyBool_FromLong(weir_queue_closed(queue_of(self)));
}

static PyObject *queue_capacity(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromSize_t(weir_queue_capacity(queue_of(self)));
}

static PyObject *queue_name(PyObject *self, void *closure)
{
	(void)closure;
	return PyUnicode_FromString(weir_queue_name(queue_of(self)));
}

#define FAST(fn) (PyCFunction)(void (*)(void))(fn), METH_FASTCALL
#define WITH_KEYWORDS(fn) (PyCFunction)(void (*)(void))(fn), METH_VARARGS | METH_KEYWORDS

static PyMethodDef methods[] = {
	{"put", FAST(queue_put), "put(item, timeout=None, /): waits for room; queue.Full after the timeout."},
	{"put_nowait", queue_put_nowait, METH_O, "put_nowait(item): queue.Full if there is no room."},
	{"get", FAST(queue_get), "get(timeout=None, /): waits for an item; queue.Empty after the timeout."},
	{"get_nowait", queue_get_nowait, METH_NOARGS, "get_nowait(): queue.Empty if there is none."},
	{"put_many", WITH_KEYWORDS(queue_put_many), "put_many(items, timeout=None): how many of them went in, in order."},
	{"get_many", WITH_KEYWORDS(queue_get_many),
     "get_many(most, timeout=None): waits for one item, and takes what else there is."},
	{"close", WITH_KEYWORDS(queue_close),
     "close(cause=None, *, cancel=False): no item goes in any more; with cancel, "
     "puts that wait end, too."},
	{"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, "For annotations: Queue[int]."},
	{"fileno", queue_fileno, METH_NOARGS, "A descriptor that is readable while get() would not wait."},
	{"writable_fileno", queue_writable_fileno, METH_NOARGS,
     "A descriptor that is readable while put() would not wait."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
	{"closed", queue_closed, NULL, NULL, NULL},
	{"capacity", queue_capacity, NULL, NULL, NULL},
	{"name", queue_name, NULL, NULL, NULL},
	{"_waiters", queue_waiters, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
	{Py_tp_doc, "Queue(capacity, *, name=None)\n\nA bounded FIFO queue of objects, for threads and event loops."},
	{Py_tp_new, queue_new},
	{Py_tp_traverse, queue_traverse},
	{Py_tp_clear, queue_clear},
	{Py_tp_dealloc, queue_dealloc},
	{Py_tp_iter, queue_iter},
	{Py_tp_iternext, queue_iternext},
	{Py_am_aiter, queue_aiter},
	{Py_sq_length, queue_length},
	{Py_tp_methods, methods},
	{Py_tp_getset, properties},
	{0, NULL},
};

PyType_Spec queue_spec = {
	.name = "weir.Queue",
	.basicsize = sizeof(struct queue),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = slots,
};
