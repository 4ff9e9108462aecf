/*
 * var.c - Var, snapshots and commits, and Watch.
 *
 * Reading is wait-free and keeps the GIL. Writes may collect, wait for the budget or call release
 * functions of other libraries, so they let it go.
 */
#include "module.h"

struct var {
	PyObject_HEAD
	weir_var *var;
	struct state *state; /* reading looks it up no more */
};

struct watch {
	PyObject_HEAD
	weir_watch *watch;
	PyObject *var; /* the watch must not outlive it */
};

static weir_var *var_of(PyObject *self)
{
	return ((struct var *)(void *)self)->var;
}

/* The elements that any call may have given back since the last one. */
static struct state *entered(struct state *state)
{
	if (returned_has(state->returned))
		returned_empty(state->returned);
	return state;
}

static struct state *enter(PyObject *self)
{
	return entered(((struct var *)(void *)self)->state);
}

/* -- life --------------------------------------------------------------------------------------- */

static PyObject *var_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"initial", "name", "history", "copy", NULL};
	struct state *state = state_of_type(type);
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT};
	PyObject *initial, *self;
	unsigned long long history = 0;
	enum weir_status status;
	weir_tensor *tensor;
	weir_error error;
	int copies = 0;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$zO&p:Var", names, &initial, &options.name, version_of,
	                                 &history, &copies))
		return NULL;
	tensor = tensor_of(state, initial, copies != 0);
	self = tensor != NULL ? PyType_GenericAlloc(type, 0) : NULL;
	if (self == NULL) {
		weir_tensor_release(tensor);
		return NULL;
	}
	((struct var *)(void *)self)->state = state;
	options.dtype = weir_tensor_dtype(tensor);
	options.history = (size_t)history;
	status = weir_var_create(tensor, &options, &((struct var *)(void *)self)->var, &error);
	weir_tensor_release(tensor);
	if (status == WEIR_OK)
		return self;
	Py_DECREF(self);
	return raise_status(state, status, error.message);
}

/* A Watch and a call keep a reference, so nothing is on the variable any more. */
static void var_dealloc(PyObject *self)
{
	weir_var *var = var_of(self);
	PyThreadState *saved;

	saved = PyEval_SaveThread();
	(void)weir_var_destroy(var, NULL);
	PyEval_RestoreThread(saved);
	free_object(self);
}

/* A signal's handler has raised. What the call had got is released. */
static PyObject *interrupted(enum weir_status status, weir_read *read)
{
	if (status == WEIR_OK)
		weir_read_release(read);
	return NULL;
}

/* -- reading ------------------------------------------------------------------------------------ */

static PyObject *var_read(PyObject *self, PyObject *none)
{
	struct state *state = enter(self);
	enum weir_status status;
	weir_read read;

	(void)none;
	status = weir_var_read(var_of(self), &read);
	return status == WEIR_OK ? view_of_read(state, &read) : raise_status(state, status, NULL);
}

static PyObject *var_read_version(PyObject *self, PyObject *number)
{
	struct state *state = enter(self);
	unsigned long long version;
	enum weir_status status;
	weir_read read;

	if (!version_of(number, &version))
		return NULL;
	status = weir_var_read_version(var_of(self), version, &read);
	if (status == WEIR_OUT_OF_RANGE || status == WEIR_NOT_FOUND)
		return PyErr_Format(PyExc_LookupError, "version %llu is %s", version,
		                    status == WEIR_NOT_FOUND ? "gone" : "not published yet");
	return status == WEIR_OK ? view_of_read(state, &read) : raise_status(state, status, NULL);
}

static PyObject *var_try_read_newer(PyObject *self, PyObject *number)
{
	struct state *state = enter(self);
	unsigned long long version;
	enum weir_status status;
	weir_read read;

	if (!version_of(number, &version))
		return NULL;
	status = weir_var_try_read_newer(var_of(self), version, &read);
	if (status == WEIR_WOULD_BLOCK)
		Py_RETURN_NONE;
	return status == WEIR_OK ? view_of_read(state, &read) : raise_status(state, status, NULL);
}

static PyObject *var_wait(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"newer_than", "timeout", NULL};
	struct state *state = enter(self);
	unsigned long long newer_than;
	PyObject *timeout = NULL;
	enum weir_status status;
	uint64_t deadline_ns;
	struct wait wait;
	weir_error error;
	weir_read read;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&|O:wait", names, version_of, &newer_than, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	if (deadline_ns == 0)
		return NULL;
	begin_wait(state, &wait);
	status = weir_var_wait(var_of(self), newer_than, deadline_ns, NULL, &read, &error);
	if (!end_wait(&wait))
		return interrupted(status, &read);
	return status == WEIR_OK ? view_of_read(state, &read) : raise_status(state, status, error.message);
}

/* -- writing ------------------------------------------------------------------------------------ */

/* What the writes have in common: the value, and how long to wait for the budget. */
struct write {
	weir_tensor *value;
	uint64_t deadline_ns;
};

static bool parse_write(struct state *state, struct write *write, PyObject *value, PyObject *timeout, int copies)
{
	write->deadline_ns = deadline_of(timeout);
	write->value = write->deadline_ns != 0 ? tensor_of(state, value, copies != 0) : NULL;
	return write->value != NULL;
}

/* Returns the number of the version, and releases it. */
static PyObject *published(const struct state *state, enum weir_status status, const weir_error *error, weir_read *read)
{
	uint64_t version;

	if (status != WEIR_OK)
		return raise_status(state, status, error->message);
	version = read->version;
	weir_read_release(read);
	return PyLong_FromUnsignedLongLong(version);
}

typedef enum weir_status write_fn(weir_var *var, weir_tensor *value, uint64_t deadline_ns, weir_read *read,
                                  weir_error *error);

/* What a write has returned. */
struct written {
	struct state *state;
	enum weir_status status;
	weir_error error;
	weir_read read;
};

/* False with an exception: the arguments are wrong, or a signal's handler has raised. */
static bool write_by(write_fn *fn, const char *format, PyObject *self, PyObject *args, PyObject *keywords,
                     struct written *out)
{
	static char *names[] = {"value", "timeout", "copy", NULL};
	PyObject *value, *timeout = NULL;
	struct write write;
	struct wait wait;
	int copies = 0;

	out->state = enter(self);
	if (!PyArg_ParseTupleAndKeywords(args, keywords, format, names, &value, &timeout, &copies) ||
	    !parse_write(out->state, &write, value, timeout, copies))
		return false;
	begin_wait(out->state, &wait);
	out->status = fn(var_of(self), write.value, write.deadline_ns, &out->read, &out->error);
	weir_tensor_release(write.value);
	if (end_wait(&wait))
		return true;
	(void)interrupted(out->status, &out->read);
	return false;
}

static PyObject *publish_by(write_fn *fn, const char *format, PyObject *self, PyObject *args, PyObject *keywords)
{
	struct written w;

	return write_by(fn, format, self, args, keywords, &w) ? published(w.state, w.status, &w.error, &w.read) : NULL;
}

static PyObject *var_assign(PyObject *self, PyObject *args, PyObject *keywords)
{
	return publish_by(weir_var_assign, "O|O$p:assign", self, args, keywords);
}

static PyObject *var_assign_add(PyObject *self, PyObject *args, PyObject *keywords)
{
	return publish_by(weir_var_assign_add, "O|O$p:assign_add", self, args, keywords);
}

static PyObject *var_assign_sub(PyObject *self, PyObject *args, PyObject *keywords)
{
	return publish_by(weir_var_assign_sub, "O|O$p:assign_sub", self, args, keywords);
}

static PyObject *var_compare_assign(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"expected", "value", "timeout", "copy", NULL};
	struct state *state = enter(self);
	PyObject *value, *timeout = NULL;
	unsigned long long expected;
	enum weir_status status;
	struct write write;
	struct wait wait;
	weir_error error;
	weir_read read;
	int copies = 0;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&O|O$p:compare_assign", names, version_of, &expected, &value,
	                                 &timeout, &copies) ||
	    !parse_write(state, &write, value, timeout, copies))
		return NULL;
	begin_wait(state, &wait);
	status = weir_var_compare_assign(var_of(self), expected, write.value, write.deadline_ns, &read, &error);
	weir_tensor_release(write.value);
	if (!end_wait(&wait))
		return interrupted(status, &read);
	return published(state, status, &error, &read);
}

/* The value that was replaced. */
static PyObject *var_exchange(PyObject *self, PyObject *args, PyObject *keywords)
{
	struct written w;

	if (!write_by(weir_var_exchange, "O|O$p:exchange", self, args, keywords, &w))
		return NULL;
	return w.status == WEIR_OK ? view_of_read(w.state, &w.read) : raise_status(w.state, w.status, w.error.message);
}

/* Computes from the newest value until no other write came between. Returns a version or NULL. */
static PyObject *update_once(struct state *state, PyObject *self, PyObject *fn, uint64_t deadline_ns, bool *again)
{
	PyObject *view = var_read(self, NULL), *value = NULL;
	weir_tensor *tensor = NULL;
	enum weir_status status;
	struct wait wait;
	weir_error error;
	weir_read read;
	uint64_t expected = 0;

	*again = false;
	if (view != NULL) {
		PyObject *number = PyObject_GetAttrString(view, "version");

		expected = number != NULL ? PyLong_AsUnsignedLongLong(number) : 0;
		Py_XDECREF(number);
		value = PyErr_Occurred() == NULL ? PyObject_CallFunctionObjArgs(fn, view, NULL) : NULL;
	}
	if (value != NULL)
		tensor = tensor_of(state, value, false);
	Py_XDECREF(value);
	Py_XDECREF(view);
	if (tensor == NULL)
		return NULL;
	begin_wait(state, &wait);
	status = weir_var_compare_assign(var_of(self), expected, tensor, deadline_ns, &read, &error);
	weir_tensor_release(tensor);
	if (!end_wait(&wait))
		return interrupted(status, &read);
	*again = status == WEIR_ABORTED;
	return *again ? NULL : published(state, status, &error, &read);
}

static PyObject *var_update(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"fn", "timeout", NULL};
	struct state *state = enter(self);
	PyObject *fn, *timeout = NULL, *version;
	uint64_t deadline_ns;
	bool again;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:update", names, &fn, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	if (deadline_ns == 0)
		return NULL;
	do
		version = update_once(state, self, fn, deadline_ns, &again);
	while (again && weir_now_ns() < deadline_ns);
	return again ? raise_status(state, WEIR_DEADLINE_EXCEEDED, "other writes came first each time") : version;
}

/* -- several variables -------------------------------------------------------------------------- */

/* Returns the number of variables, or -1 with an exception. free() frees *vars. */
static Py_ssize_t vars_of(const struct state *state, PyObject *tuple, weir_var ***vars)
{
	Py_ssize_t count = PyTuple_Size(tuple);

	*vars = calloc((size_t)count + 1, sizeof(**vars));
	if (*vars == NULL) {
		(void)PyErr_NoMemory();
		return -1;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *item = PyTuple_GetItem(tuple, i);

		if (Py_TYPE(item) != state->var) {
			(void)PyErr_Format(PyExc_TypeError, "item %zd is %R, must be a Var", i, (PyObject *)Py_TYPE(item));
			return -1;
		}
		(*vars)[i] = var_of(item);
	}
	return count;
}

/* Takes the handles over. */
static PyObject *views_of(const struct state *state, weir_read reads[], Py_ssize_t count)
{
	PyObject *views = PyTuple_New(count);

	for (Py_ssize_t i = 0; i < count; i++) {
		PyObject *view = views != NULL ? view_of_read(state, &reads[i]) : NULL;

		if (view == NULL) {
			weir_read_release(&reads[i]);
			Py_CLEAR(views);
		} else if (PyTuple_SetItem(views, i, view) != 0) {
			Py_CLEAR(views);
		}
	}
	return views;
}

PyObject *module_snapshot(PyObject *module, PyObject *iterable)
{
	struct state *state = state_of_module(module);
	PyObject *tuple = PySequence_Tuple(iterable), *views = NULL;
	weir_var **vars = NULL;
	weir_read *reads = NULL;
	enum weir_status status;
	weir_error error;
	Py_ssize_t count;

	if (tuple == NULL)
		return NULL;
	count = vars_of(state, tuple, &vars);
	if (count >= 0) {
		reads = calloc((size_t)count + 1, sizeof(*reads));
		status = reads != NULL ? weir_var_snapshot(vars, (size_t)count, reads, &error) : WEIR_RESOURCE_EXHAUSTED;
		if (status == WEIR_OK)
			views = views_of(state, reads, count);
		else
			(void)raise_status(state, status, reads != NULL ? error.message : NULL);
		free(reads);
	}
	free(vars);
	Py_DECREF(tuple);
	return views;
}

/* Returns false with an exception. */
static bool part_of(struct state *state, PyObject *item, Py_ssize_t i, struct weir_commit_part *part)
{
	unsigned long long expected;
	PyObject *var, *value;

	if (!PyTuple_Check(item) ||
	    !PyArg_ParseTuple(item, "OO&O;a part is (var, expected version, value)", &var, version_of, &expected, &value)) {
		if (PyErr_Occurred() == NULL)
			(void)PyErr_Format(PyExc_TypeError, "part %zd is no tuple (var, expected version, value)", i);
		return false;
	}
	if (Py_TYPE(var) != state->var) {
		(void)PyErr_Format(PyExc_TypeError, "part %zd: %R is no Var", i, (PyObject *)Py_TYPE(var));
		return false;
	}
	part->var = var_of(var);
	part->expected = expected;
	part->value = tensor_of(state, value, false);
	return part->value != NULL;
}

static PyObject *commit_parts(const struct state *state, struct weir_commit_part parts[], weir_read reads[],
                              Py_ssize_t count, uint64_t deadline_ns)
{
	enum weir_status status;
	struct wait wait;
	weir_error error;
	PyObject *versions;

	begin_wait(state, &wait);
	status = weir_var_commit(parts, (size_t)count, deadline_ns, reads, &error);
	if (!end_wait(&wait)) {
		if (status == WEIR_OK)
			weir_read_release_many(reads, (size_t)count);
		return NULL;
	}
	if (status != WEIR_OK)
		return raise_status(state, status, error.message);
	versions = PyTuple_New(count);
	for (Py_ssize_t i = 0; versions != NULL && i < count; i++) {
		PyObject *number = PyLong_FromUnsignedLongLong(reads[i].version);

		if (number == NULL || PyTuple_SetItem(versions, i, number) != 0)
			Py_CLEAR(versions);
	}
	weir_read_release_many(reads, (size_t)count);
	return versions;
}

PyObject *module_commit(PyObject *module, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"parts", "timeout", NULL};
	struct state *state = state_of_module(module);
	PyObject *iterable, *timeout = NULL, *tuple, *versions = NULL;
	struct weir_commit_part *parts;
	uint64_t deadline_ns;
	weir_read *reads;
	Py_ssize_t count, made = 0;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:commit", names, &iterable, &timeout))
		return NULL;
	deadline_ns = deadline_of(timeout);
	tuple = deadline_ns != 0 ? PySequence_Tuple(iterable) : NULL;
	if (tuple == NULL)
		return NULL;
	count = PyTuple_Size(tuple);
	parts = calloc((size_t)count + 1, sizeof(*parts));
	reads = calloc((size_t)count + 1, sizeof(*reads));
	if (parts == NULL || reads == NULL)
		(void)PyErr_NoMemory();
	else
		while (made < count && part_of(state, PyTuple_GetItem(tuple, made), made, &parts[made]))
			made++;
	if (parts != NULL && reads != NULL && PyErr_Occurred() == NULL)
		versions = commit_parts(state, parts, reads, count, deadline_ns);
	while (parts != NULL && made > 0)
		weir_tensor_release(parts[--made].value);
	free(reads);
	free(parts);
	Py_DECREF(tuple);
	return versions;
}

/* -- Watch -------------------------------------------------------------------------------------- */

static PyObject *var_watch(PyObject *self, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"newer_than", NULL};
	struct state *state = enter(self);
	unsigned long long newer_than = 0;
	enum weir_status status;
	struct watch *watch;
	weir_error error;

	if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O&:watch", names, version_of, &newer_than))
		return NULL;
	if (state->watch == NULL) {
		PyErr_SetString(PyExc_RuntimeError, "the module weir is gone");
		return NULL;
	}
	watch = (struct watch *)(void *)PyType_GenericAlloc(state->watch, 0);
	if (watch == NULL)
		return NULL;
	status = weir_watch_create(var_of(self), newer_than, &watch->watch, &error);
	if (status != WEIR_OK) {
		Py_DECREF((PyObject *)watch);
		return raise_status(state, status, error.message);
	}
	watch->var = Py_NewRef(self);
	return (PyObject *)watch;
}

static void watch_dealloc(PyObject *self)
{
	struct watch *watch = (struct watch *)(void *)self;

	(void)weir_watch_destroy(watch->watch, NULL);
	Py_XDECREF(watch->var);
	free_object(self);
}

static PyObject *watch_fileno(PyObject *self, PyObject *none)
{
	(void)none;
	return PyLong_FromLong(weir_watch_fd(((struct watch *)(void *)self)->watch));
}

static PyObject *watch_try_take(PyObject *self, PyObject *none)
{
	struct state *state = entered(state_of_type(Py_TYPE(self)));
	enum weir_status status;
	weir_read read;

	(void)none;
	status = weir_watch_try_take(((struct watch *)(void *)self)->watch, &read);
	if (status == WEIR_WOULD_BLOCK)
		Py_RETURN_NONE;
	return status == WEIR_OK ? view_of_read(state, &read) : raise_status(state, status, NULL);
}

static PyMethodDef watch_methods[] = {
	{"fileno", watch_fileno, METH_NOARGS, "A descriptor that is readable while there is a newer version."},
	{"try_take", watch_try_take, METH_NOARGS, "A View of the newest version, or None if it was taken already."},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot watch_slots[] = {
	{Py_tp_doc, "Tells event loops that a variable has a newer version. Var.watch() makes it."},
	{Py_tp_dealloc, watch_dealloc},
	{Py_tp_methods, watch_methods},
	{0, NULL},
};

PyType_Spec watch_spec = {
	.name = "weir.Watch",
	.basicsize = sizeof(struct watch),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = watch_slots,
};

/* -- the type ----------------------------------------------------------------------------------- */

static PyObject *var_version(PyObject *self, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLongLong(weir_var_version(var_of(self)));
}

static PyObject *var_name(PyObject *self, void *closure)
{
	(void)closure;
	return PyUnicode_FromString(weir_var_name(var_of(self)));
}

static PyObject *var_dtype(PyObject *self, void *closure)
{
	(void)closure;
	return PyUnicode_FromString(weir_dtype_name(weir_var_dtype(var_of(self))));
}

#define WITH_KEYWORDS(fn) (PyCFunction)(void (*)(void))(fn), METH_VARARGS | METH_KEYWORDS

static PyMethodDef var_methods[] = {
	{"read", var_read, METH_NOARGS, "A View of the newest version. Never waits."},
	{"read_version", var_read_version, METH_O, "A View of that version, if it is the newest or in the history."},
	{"try_read_newer", var_try_read_newer, METH_O, "A View of the newest version if its number is greater, or None."},
	{"wait", WITH_KEYWORDS(var_wait), "wait(newer_than, timeout=None): a View, as soon as there is a newer version."},
	{"assign", WITH_KEYWORDS(var_assign),
     "assign(value, timeout=None, *, copy=False): publishes; returns the version."},
	{"compare_assign", WITH_KEYWORDS(var_compare_assign),
     "compare_assign(expected, value, timeout=None, *, copy=False): publishes if the newest version is `expected`, "
     "else "
     "raises Aborted."},
	{"exchange", WITH_KEYWORDS(var_exchange),
     "exchange(value, timeout=None, *, copy=False): a View of what was replaced."},
	{"assign_add", WITH_KEYWORDS(var_assign_add),
     "assign_add(value, timeout=None, *, copy=False): adds element by element."},
	{"assign_sub", WITH_KEYWORDS(var_assign_sub), "assign_sub(value, timeout=None, *, copy=False): subtracts."},
	{"update", WITH_KEYWORDS(var_update),
     "update(fn, timeout=None): publishes fn(view), computed again if another write came between."},
	{"watch", WITH_KEYWORDS(var_watch), "watch(newer_than=0): a Watch, for event loops."},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef var_properties[] = {
	{"version", var_version, NULL, "The number of the newest version.", NULL},
	{"name", var_name, NULL, NULL, NULL},
	{"dtype", var_dtype, NULL, "The dtype of all values.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot var_slots[] = {
	{Py_tp_doc, "Var(initial, *, name=None, history=0, copy=False)\n\nA value that is read without waiting, and "
                "replaced as a whole."},
	{Py_tp_new, var_new},
	{Py_tp_dealloc, var_dealloc},
	{Py_tp_methods, var_methods},
	{Py_tp_getset, var_properties},
	{0, NULL},
};

PyType_Spec var_spec = {
	.name = "weir.Var",
	.basicsize = sizeof(struct var),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = var_slots,
};
