/*
 * wait.c - arguments, signals and exceptions.
 *
 * Signals. CPython runs the handlers of Python on the main thread only. While the main thread waits
 * in Weir, its interrupt (weir/thread.h) takes the GIL after each signal and lets CPython run them.
 * No wait wakes up to look. Other threads have no interrupt: PyErr_CheckSignals() does nothing there,
 * and a thread that is taken away at exit must not be inside of a wait of Weir when that happens.
 */
#include "module.h"

#include <math.h>

uint64_t deadline_of(PyObject *timeout)
{
	double seconds;

	if (timeout == NULL || timeout == Py_None)
		return WEIR_NO_DEADLINE;
	seconds = PyFloat_AsDouble(timeout);
	if (seconds == -1 && PyErr_Occurred() != NULL)
		return 0;
	if (!(seconds >= 0)) {
		PyErr_SetString(PyExc_ValueError, "timeout must be None or a number that is not negative");
		return 0;
	}
	if (seconds > 1e9)
		return WEIR_NO_DEADLINE;
	return weir_deadline_in((uint64_t)(seconds * 1e9));
}

int version_of(PyObject *number, void *version)
{
	unsigned long long value = PyLong_AsUnsignedLongLong(number);

	if (value == (unsigned long long)-1 && PyErr_Occurred() != NULL)
		return 0;
	*(unsigned long long *)version = value;
	return 1;
}

PyObject *raise_status(const struct state *state, enum weir_status status, const char *message)
{
	const char *text = message != NULL && message[0] != '\0' ? message : weir_status_name(status);
	PyObject *type = state->error, *words;

	switch (status) {
	case WEIR_RESOURCE_EXHAUSTED: type = PyExc_MemoryError; break;
	case WEIR_INVALID_ARGUMENT: type = PyExc_ValueError; break;
	case WEIR_UNIMPLEMENTED: type = PyExc_NotImplementedError; break;
	case WEIR_DEADLINE_EXCEEDED: type = PyExc_TimeoutError; break;
	case WEIR_NOT_FOUND: type = PyExc_LookupError; break;
	case WEIR_CANCELLED:
	case WEIR_OUT_OF_RANGE: type = state->closed; break;
	case WEIR_ABORTED: type = state->aborted; break;
	default: break;
	}
	/* A message may have been cut inside a letter. */
	words = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
	if (words != NULL)
		PyErr_SetObject(type, words);
	Py_XDECREF(words);
	return NULL;
}

/* Called by a wait of Weir, after a signal handler of C has run on this thread. */
static int run_handlers(void *context)
{
	struct wait *wait = context;

	if (wait->raised)
		return 1;
	PyEval_RestoreThread(wait->saved);
	if (PyErr_CheckSignals() != 0) {
		wait->raised = true;
		PyErr_Fetch(&wait->exception[0], &wait->exception[1], &wait->exception[2]);
	}
	(void)weir_thread_set_interrupt(run_handlers, wait); /* a handler that waited has taken it away */
	wait->saved = PyEval_SaveThread();
	return wait->raised;
}

void begin_wait(const struct state *state, struct wait *wait)
{
	wait->raised = false;
	wait->is_main = PyThread_get_thread_ident() == state->main_thread;
	if (wait->is_main)
		(void)weir_thread_set_interrupt(run_handlers, wait); /* without a record the call fails anyway */
	wait->saved = PyEval_SaveThread();
}

bool end_wait(struct wait *wait)
{
	PyEval_RestoreThread(wait->saved);
	if (wait->is_main)
		(void)weir_thread_set_interrupt(NULL, NULL);
	if (wait->raised)
		PyErr_Restore(wait->exception[0], wait->exception[1], wait->exception[2]);
	return !wait->raised;
}
