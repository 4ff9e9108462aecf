/*
 * weir.c - the native half of weir.js: variables and queues for Node.js, by N-API.
 *
 *     cc -shared -fPIC -o weir.node weir.c -I/usr/include/node $(pkg-config --cflags --libs weir)
 *
 * uv.h comes from Node.js or from libuv; the functions are those of the node that loads the module, so it links no
 * libuv. There are no statics: each worker thread of Node.js has objects of its own.
 */
#include <node_api.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>
#include <weir/queue.h>
#include <weir/var.h>

enum { MOST_ARGUMENTS = 2 };

/* ---- errors and arguments ---- */

static napi_value throw_status(napi_env env, enum weir_status status, const weir_error *error)
{
	(void)napi_throw_error(env, weir_status_name(status), error != NULL ? error->message : weir_status_name(status));
	return NULL;
}

/* weir.js passes the right number of arguments, of the right types. */
static void get_arguments(napi_env env, napi_callback_info info, napi_value values[MOST_ARGUMENTS])
{
	size_t count = MOST_ARGUMENTS;

	(void)napi_get_cb_info(env, info, &count, values, NULL, NULL);
}

static void *external_of(napi_env env, napi_value value)
{
	void *data = NULL;

	(void)napi_get_value_external(env, value, &data);
	return data;
}

/* Makes a tensor of a Float64Array. Returns NULL after an exception. */
static weir_tensor *tensor_of(napi_env env, napi_value values)
{
	weir_shape shape = {.rank = 1};
	napi_typedarray_type type;
	weir_tensor *tensor;
	size_t count;
	void *data;

	if (napi_get_typedarray_info(env, values, &type, &count, &data, NULL, NULL) != napi_ok ||
	    type != napi_float64_array) {
		(void)napi_throw_type_error(env, NULL, "a value must be a Float64Array");
		return NULL;
	}
	shape.dims[0] = (int64_t)count;
	if (weir_tensor_copy_of(WEIR_F64, &shape, data, NULL, &tensor) == WEIR_OK)
		return tensor;
	(void)throw_status(env, WEIR_RESOURCE_EXHAUSTED, NULL);
	return NULL;
}

/* ---- views: a handle on a version, or an item of a queue, whose version is 0 ---- */

static void release(weir_read *read)
{
	if (read->version != 0)
		weir_read_release(read);
	else
		weir_tensor_release(read->tensor);
}

/* Runs on the thread of `env`, some time after the collection of the buffer. */
static void finalize_buffer(napi_env env, void *data, void *hint)
{
	(void)env, (void)data;
	release(hint);
	free(hint);
}

static napi_status copy_buffer(napi_env env, const weir_tensor *tensor, napi_value *buffer)
{
	size_t size = weir_tensor_byte_count(tensor);
	void *copy;
	napi_status status = napi_create_arraybuffer(env, size, &copy, buffer);

	if (status == napi_ok && size > 0)
		memcpy(copy, weir_tensor_data(tensor), size);
	return status;
}

/* Makes an ArrayBuffer of the elements in place. A runtime that has a sandbox, such as Electron, refuses it: it gets a copy. */
static napi_status make_buffer(napi_env env, const weir_read *read, bool copy, napi_value *buffer)
{
	size_t size = weir_tensor_byte_count(read->tensor);
	weir_read *kept = copy || size == 0 ? NULL : malloc(sizeof(*kept));
	napi_status status = napi_no_external_buffers_allowed;

	if (kept != NULL) {
		*kept = *read;
		status = napi_create_external_arraybuffer(env, (void *)(uintptr_t)weir_tensor_data(read->tensor), size,
		                                          finalize_buffer, kept, buffer);
		if (status == napi_ok)
			return status;
		free(kept);
	}
	if (status == napi_no_external_buffers_allowed)
		status = copy_buffer(env, read->tensor, buffer);
	if (status == napi_ok) {
		weir_read over = *read;

		release(&over);
	}
	return status;
}

/* Takes the handle over, and returns {buffer, version}. */
static napi_value view_of(napi_env env, weir_read read, bool copy)
{
	napi_value view, buffer, version;

	if (weir_tensor_dtype(read.tensor) != WEIR_F64) {
		release(&read);
		return throw_status(env, WEIR_UNIMPLEMENTED, NULL);
	}
	if (napi_create_object(env, &view) != napi_ok ||
	    napi_create_double(env, (double)read.version, &version) != napi_ok ||
	    napi_set_named_property(env, view, "version", version) != napi_ok ||
	    make_buffer(env, &read, copy, &buffer) != napi_ok) {
		release(&read);
		return throw_status(env, WEIR_RESOURCE_EXHAUSTED, NULL);
	}
	(void)napi_set_named_property(env, view, "buffer", buffer);
	return view;
}

static bool is_true(napi_env env, napi_value value)
{
	bool answer = false;

	(void)napi_get_value_bool(env, value, &answer);
	return answer;
}

/* ---- variables ---- */

static void finalize_var(napi_env env, void *data, void *hint)
{
	(void)env, (void)hint;
	(void)weir_var_destroy(data, NULL);
}

static napi_value var_create(napi_env env, napi_callback_info info)
{
	const struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F64};
	napi_value values[MOST_ARGUMENTS], result;
	enum weir_status status;
	weir_tensor *first;
	weir_error error;
	weir_var *var;

	get_arguments(env, info, values);
	first = tensor_of(env, values[0]);
	if (first == NULL)
		return NULL;
	status = weir_var_create(first, &options, &var, &error);
	weir_tensor_release(first);
	if (status != WEIR_OK)
		return throw_status(env, status, &error);
	if (napi_create_external(env, var, finalize_var, NULL, &result) == napi_ok)
		return result;
	(void)weir_var_destroy(var, NULL);
	return throw_status(env, WEIR_RESOURCE_EXHAUSTED, NULL);
}

static napi_value var_read(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS];
	enum weir_status status;
	weir_read read;

	get_arguments(env, info, values);
	status = weir_var_read(external_of(env, values[0]), &read);
	return status == WEIR_OK ? view_of(env, read, is_true(env, values[1])) : throw_status(env, status, NULL);
}

/* With a deadline of 0 the call does not wait for memory. */
static napi_value var_assign(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS], version = NULL;
	enum weir_status status;
	weir_read published;
	weir_tensor *next;
	weir_error error;

	get_arguments(env, info, values);
	next = tensor_of(env, values[1]);
	if (next == NULL)
		return NULL;
	status = weir_var_assign(external_of(env, values[0]), next, 0, &published, &error);
	weir_tensor_release(next);
	if (status != WEIR_OK)
		return throw_status(env, status, &error);
	(void)napi_create_double(env, (double)published.version, &version);
	weir_read_release(&published);
	return version;
}

/* ---- queues of tensors ---- */

struct queue {
	weir_queue *queue; /* first, for calls in C that get the external */
	napi_env env;
	uv_poll_t poll; /* of the queue's descriptor; active while a call of JavaScript waits */
	napi_ref callback;
	napi_async_context context;
	napi_async_cleanup_hook_handle hook;
	bool closing;
	int owners; /* the external and the poll: the last one frees this */
};

static void drop_item(void *context, void *item)
{
	(void)context;
	weir_tensor_release(item);
}

static void disown(struct queue *self)
{
	if (--self->owners == 0)
		free(self);
}

static void poll_closed(uv_handle_t *handle)
{
	struct queue *self = handle->data;

	(void)weir_queue_destroy(self->queue, NULL); /* closes the descriptor, too */
	(void)napi_remove_async_cleanup_hook(self->hook);
	disown(self);
}

static void close_poll(struct queue *self)
{
	if (!self->closing)
		uv_close((uv_handle_t *)&self->poll, poll_closed);
	self->closing = true;
}

/* Runs before the loop of a worker thread ends, which waits until the hook is removed. */
static void at_end(napi_async_cleanup_hook_handle hook, void *data)
{
	(void)hook;
	close_poll(data);
}

static void finalize_queue(napi_env env, void *data, void *hint)
{
	(void)env, (void)hint;
	close_poll(data);
	disown(data);
}

/* Takes over the queue. Everything that comes after the poll is closed with it. */
static napi_value finish_queue(napi_env env, struct queue *self, uv_loop_t *loop, int fd)
{
	napi_value result;

	if (uv_poll_init(loop, &self->poll, fd) != 0) {
		(void)weir_queue_destroy(self->queue, NULL);
		free(self);
		return NULL;
	}
	self->poll.data = self;
	self->owners = 1;
	if (napi_add_async_cleanup_hook(env, at_end, self, &self->hook) != napi_ok ||
	    napi_create_external(env, self, finalize_queue, NULL, &result) != napi_ok) {
		close_poll(self);
		return NULL;
	}
	self->owners = 2;
	return result;
}

static napi_value queue_create(napi_env env, napi_callback_info info)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .drop = drop_item};
	napi_value values[MOST_ARGUMENTS], result;
	struct queue *self = calloc(1, sizeof(*self));
	enum weir_status status = WEIR_RESOURCE_EXHAUSTED;
	weir_error error = {.message = "out of memory"};
	uint32_t capacity = 0;
	uv_loop_t *loop;
	int fd;

	get_arguments(env, info, values);
	(void)napi_get_value_uint32(env, values[0], &capacity);
	options.capacity = capacity;
	if (self != NULL && napi_get_uv_event_loop(env, &loop) == napi_ok) {
		self->env = env;
		status = weir_queue_create(&options, &self->queue, &error);
		if (status == WEIR_OK)
			status = weir_queue_readable_fd(self->queue, &fd, &error);
		if (status == WEIR_OK) {
			result = finish_queue(env, self, loop, fd);
			return result != NULL ? result : throw_status(env, WEIR_RESOURCE_EXHAUSTED, NULL);
		}
		(void)weir_queue_destroy(self->queue, NULL);
	}
	free(self);
	return throw_status(env, status, &error);
}

static napi_value queue_try_put(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS], answer = NULL;
	enum weir_status status;
	weir_tensor *item;
	weir_error error;

	get_arguments(env, info, values);
	item = tensor_of(env, values[1]);
	if (item == NULL)
		return NULL;
	status = weir_queue_enqueue(((struct queue *)external_of(env, values[0]))->queue, item, 0, NULL, &error);
	if (status != WEIR_OK)
		weir_tensor_release(item);
	if (status != WEIR_OK && status != WEIR_DEADLINE_EXCEEDED)
		return throw_status(env, status, &error);
	(void)napi_get_boolean(env, status == WEIR_OK, &answer);
	return answer;
}

/* Returns a view, or undefined if the queue is empty now. */
static napi_value queue_try_get(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS];
	enum weir_status status;
	weir_error error;
	weir_queue *queue;
	void *item;

	get_arguments(env, info, values);
	queue = ((struct queue *)external_of(env, values[0]))->queue;
	status = weir_queue_try_dequeue(queue, &item);
	if (status == WEIR_OUT_OF_RANGE) /* this one has a message, and does not wait either */
		status = weir_queue_dequeue(queue, &item, 0, NULL, &error);
	if (status == WEIR_OK)
		return view_of(env, (weir_read){.tensor = item}, is_true(env, values[1]));
	return status == WEIR_WOULD_BLOCK ? NULL : throw_status(env, status, status == WEIR_OUT_OF_RANGE ? &error : NULL);
}

static napi_value queue_close(napi_env env, napi_callback_info info)
{
	weir_error cause = {.code = WEIR_CANCELLED};
	napi_value values[MOST_ARGUMENTS];
	enum weir_status status;

	get_arguments(env, info, values);
	(void)napi_get_value_string_utf8(env, values[1], cause.message, sizeof(cause.message), NULL);
	status = weir_queue_close(((struct queue *)external_of(env, values[0]))->queue, WEIR_CLOSE_DRAIN, &cause);
	return status == WEIR_OK ? NULL : throw_status(env, status, NULL);
}

/* The loop calls this when the queue has an item, or is drained. */
static void on_readable(uv_poll_t *poll, int unused_status, int unused_events)
{
	struct queue *self = poll->data;
	napi_async_context context = self->context;
	napi_value callback, receiver, exception;
	napi_env env = self->env;
	napi_handle_scope scope;

	(void)unused_status, (void)unused_events;
	(void)uv_poll_stop(poll);
	if (napi_open_handle_scope(env, &scope) != napi_ok)
		return;
	(void)napi_get_reference_value(env, self->callback, &callback);
	(void)napi_delete_reference(env, self->callback);
	(void)napi_get_global(env, &receiver);
	if (napi_make_callback(env, context, receiver, callback, 0, NULL, NULL) == napi_pending_exception &&
	    napi_get_and_clear_last_exception(env, &exception) == napi_ok)
		(void)napi_fatal_exception(env, exception);
	(void)napi_async_destroy(env, context);
	(void)napi_close_handle_scope(env, scope);
}

/* Calls the function once, when try_get() is worthwhile. One call may wait at a time; weir.js sees to it. */
static napi_value queue_poll(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS], name;
	struct queue *self;

	get_arguments(env, info, values);
	self = external_of(env, values[0]);
	if (napi_create_string_utf8(env, "weir.Queue", NAPI_AUTO_LENGTH, &name) != napi_ok ||
	    napi_create_reference(env, values[1], 1, &self->callback) != napi_ok)
		return throw_status(env, WEIR_RESOURCE_EXHAUSTED, NULL);
	if (napi_async_init(env, NULL, name, &self->context) != napi_ok) {
		(void)napi_delete_reference(env, self->callback);
		return throw_status(env, WEIR_RESOURCE_EXHAUSTED, NULL);
	}
	(void)uv_poll_start(&self->poll, UV_READABLE, on_readable);
	return NULL;
}

/* Lets go a buffer at once: its arrays have no elements then. */
static napi_value detach(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS];

	get_arguments(env, info, values);
	(void)napi_detach_arraybuffer(env, values[0]);
	return NULL;
}

NAPI_MODULE_INIT()
{
	const napi_property_descriptor calls[] = {
		{"varCreate", NULL, var_create, NULL, NULL, NULL, napi_default, NULL},
		{"varRead", NULL, var_read, NULL, NULL, NULL, napi_default, NULL},
		{"varAssign", NULL, var_assign, NULL, NULL, NULL, napi_default, NULL},
		{"queueCreate", NULL, queue_create, NULL, NULL, NULL, napi_default, NULL},
		{"queueTryPut", NULL, queue_try_put, NULL, NULL, NULL, napi_default, NULL},
		{"queueTryGet", NULL, queue_try_get, NULL, NULL, NULL, napi_default, NULL},
		{"queueClose", NULL, queue_close, NULL, NULL, NULL, napi_default, NULL},
		{"queuePoll", NULL, queue_poll, NULL, NULL, NULL, napi_default, NULL},
		{"detach", NULL, detach, NULL, NULL, NULL, napi_default, NULL},
	};

	(void)napi_define_properties(env, exports, sizeof(calls) / sizeof(calls[0]), calls);
	return exports;
}
