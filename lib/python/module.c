/*
 * module.c - the module weir._weir: its state, its types, and the few functions that belong to no
 * type.
 */
#include "module.h"

static struct PyModuleDef definition;

struct state *state_of_module(PyObject *module)
{
	return PyModule_GetState(module);
}

/* The types have no subclasses, so each has the module of its maker. */
struct state *state_of_type(PyTypeObject *type)
{
	return PyType_GetModuleState(type);
}

/* -- functions ---------------------------------------------------------------------------------- */

static PyObject *flush(PyObject *module, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"timeout", NULL};
	struct state *state = state_of_module(module);
	PyObject *timeout = NULL;
	enum weir_status status;
	PyThreadState *saved;
	uint64_t deadline_ns;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:flush", names, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	if (deadline_ns == 0)
		return NULL;
	saved = PyEval_SaveThread();
	status = weir_reclaim_flush(deadline_ns);
	PyEval_RestoreThread(saved);
	returned_empty(state->returned);
	return status == WEIR_OK ? Py_NewRef(Py_None) : raise_status(state, status, NULL);
}

static PyObject *set_budget(PyObject *module, PyObject *bytes)
{
	unsigned long long budget = PyLong_AsUnsignedLongLong(bytes);

	(void)module;
	if (budget == (unsigned long long)-1 && PyErr_Occurred() != NULL)
		return NULL;
	weir_reclaim_set_budget(budget);
	Py_RETURN_NONE;
}

static PyObject *retired_bytes(PyObject *module, PyObject *none)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};
	enum weir_status status = weir_reclaim_get_stats(&stats);

	(void)none;
	return status == WEIR_OK ? PyLong_FromUnsignedLongLong(stats.retired_bytes)
	                         : raise_status(state_of_module(module), status, NULL);
}

/* Called by the package once: what `async for` over a Queue makes. */
static PyObject *set_aiter(PyObject *module, PyObject *maker)
{
	struct state *state = state_of_module(module);
	PyObject *old = state->aiter;

	state->aiter = Py_NewRef(maker);
	Py_XDECREF(old);
	Py_RETURN_NONE;
}

/* The thread that imports need not be the main thread. */
static int find_main_thread(struct state *state)
{
	PyObject *threading = PyImport_ImportModule("threading"), *thread = NULL, *number = NULL;

	if (threading != NULL)
		thread = PyObject_CallMethod(threading, "main_thread", NULL);
	if (thread != NULL)
		number = PyObject_GetAttrString(thread, "ident");
	if (number != NULL)
		state->main_thread = PyLong_AsUnsignedLong(number);
	Py_XDECREF(number);
	Py_XDECREF(thread);
	Py_XDECREF(threading);
	return PyErr_Occurred() != NULL ? -1 : 0;
}

/* The child of a fork has another main thread: the one that forked. */
static PyObject *forked(PyObject *module, PyObject *none)
{
	(void)none;
	return find_main_thread(state_of_module(module)) == 0 ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
	{"snapshot", module_snapshot, METH_O, "snapshot(vars) -> tuple of Views, all as of one instant."},
	{"commit", (PyCFunction)(void (*)(void))module_commit, METH_VARARGS | METH_KEYWORDS,
     "commit(parts, timeout=None) -> tuple of versions. A part is (var, expected version, value); all parts are "
     "published at one instant, or none."},
	{"flush", (PyCFunction)(void (*)(void))flush, METH_VARARGS | METH_KEYWORDS,
     "flush(timeout=None): frees all replaced values that no reader holds."},
	{"set_budget", set_budget, METH_O, "set_budget(bytes): how much replaced memory may wait to be freed."},
	{"retired_bytes", retired_bytes, METH_NOARGS, "Bytes of replaced values that are not freed yet."},
	{"_set_aiter", set_aiter, METH_O, NULL},
	{"_forked", forked, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

/* -- the module --------------------------------------------------------------------------------- */

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type)
{
	*type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
	return *type == NULL ? -1 : PyModule_AddType(module, *type);
}

static int add_exception(PyObject *module, const char *name, const char *doc, PyObject *base, PyObject **exception)
{
	*exception = PyErr_NewExceptionWithDoc(name, doc, base, NULL);
	if (*exception == NULL)
		return -1;
	return PyModule_AddObjectRef(module, name + sizeof("weir.") - 1, *exception);
}

static int add_exceptions(PyObject *module, struct state *state)
{
	PyObject *queue = PyImport_ImportModule("queue");

	if (queue == NULL)
		return -1;
	state->empty = PyObject_GetAttrString(queue, "Empty");
	state->full = PyObject_GetAttrString(queue, "Full");
	Py_DECREF(queue);
	if (state->empty == NULL || state->full == NULL ||
	    add_exception(module, "weir.Error", "What a call of Weir could not do.", PyExc_RuntimeError, &state->error) !=
	        0)
		return -1;
	if (add_exception(module, "weir.Closed", "The queue or ring is closed; the text is the cause.", state->error,
	                  &state->closed) != 0)
		return -1;
	return add_exception(module, "weir.Aborted", "A variable had a newer version.", state->error, &state->aborted);
}

static int execute(PyObject *module)
{
	struct state *state = state_of_module(module);

	state->returned = returned_create();
	if (state->returned == NULL) {
		(void)PyErr_NoMemory();
		return -1;
	}
	if (find_main_thread(state) != 0 || add_exceptions(module, state) != 0)
		return -1;
	if (add_type(module, &view_spec, &state->view) != 0 || add_type(module, &var_spec, &state->var) != 0 ||
	    add_type(module, &watch_spec, &state->watch) != 0 || add_type(module, &queue_spec, &state->queue) != 0 ||
	    add_type(module, &ring_spec, &state->ring) != 0)
		return -1;
	return PyModule_AddStringConstant(module, "version", weir_version_text());
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
	struct state *state = state_of_module(module);

	Py_VISIT(state->view);
	Py_VISIT(state->var);
	Py_VISIT(state->watch);
	Py_VISIT(state->queue);
	Py_VISIT(state->ring);
	Py_VISIT(state->aiter);
	return 0;
}

/* The exceptions stay until the end: objects that live on may still raise them. */
static int clear(PyObject *module)
{
	struct state *state = state_of_module(module);

	Py_CLEAR(state->view);
	Py_CLEAR(state->var);
	Py_CLEAR(state->watch);
	Py_CLEAR(state->queue);
	Py_CLEAR(state->ring);
	Py_CLEAR(state->aiter);
	return 0;
}

static void end(void *module)
{
	struct state *state = state_of_module(module);

	(void)clear(module);
	Py_CLEAR(state->error);
	Py_CLEAR(state->closed);
	Py_CLEAR(state->aborted);
	Py_CLEAR(state->empty);
	Py_CLEAR(state->full);
	if (state->returned != NULL)
		returned_close(state->returned);
	state->returned = NULL;
}

static PyModuleDef_Slot slots[] = {
	{Py_mod_exec, execute},
#if defined(Py_mod_multiple_interpreters)
	{Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if defined(Py_mod_gil)
	{Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
	{0, NULL},
};

static struct PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "weir._weir",
	.m_doc = "Lock-free variables and queues: the compiled part of the package weir.",
	.m_size = sizeof(struct state),
	.m_methods = functions,
	.m_slots = slots,
	.m_traverse = traverse,
	.m_clear = clear,
	.m_free = end,
};

PyMODINIT_FUNC PyInit__weir(void);

PyMODINIT_FUNC PyInit__weir(void)
{
	return PyModuleDef_Init(&definition);
}
