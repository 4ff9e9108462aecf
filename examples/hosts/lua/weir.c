/*
 * weir.c - Weir in Lua 5.4: variables that are read in place, and queues of their values.
 *
 *     cc -shared -fPIC -o weir.so weir.c $(pkg-config --cflags --libs weir lua5.4)
 *
 * A value is a row of numbers (f64). Calls that can fail at run time return nil, a message and the
 * name of the status, as those of Lua's io library do. A Lua state may pass from thread to thread,
 * so views are released by whichever thread collects them. States share a variable or a queue by its
 * address: the state that created it must outlive the others.
 */
#include <lauxlib.h>
#include <lua.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <weir/queue.h>
#include <weir/var.h>

#define VIEW "weir.view"
#define VAR "weir.var"
#define QUEUE "weir.queue"

/* A variable or a queue. */
struct shared {
	void *object;
	bool owned; /* by this state */
};

static int failed(lua_State *L, enum weir_status status, const weir_error *error)
{
	luaL_pushfail(L);
	lua_pushstring(L, error != NULL && error->message[0] != '\0' ? error->message : weir_status_name(status));
	lua_pushstring(L, weir_status_name(status));
	return 3;
}

/* Pushes an empty object. This may raise an error, so it comes before anything that must be released. */
static void *push_new(lua_State *L, size_t size, const char *type)
{
	void *object = lua_newuserdatauv(L, size, 0);

	memset(object, 0, size);
	luaL_setmetatable(L, type);
	return object;
}

/* Makes a tensor of the table of numbers at `index`. */
static weir_tensor *to_tensor(lua_State *L, int index)
{
	weir_shape shape = {.rank = 1};
	weir_tensor_builder *builder;
	weir_tensor *tensor;
	double *elements;

	luaL_checktype(L, index, LUA_TTABLE);
	shape.dims[0] = (int64_t)lua_rawlen(L, index);
	if (weir_tensor_builder_create(WEIR_F64, &shape, NULL, &builder, NULL) != WEIR_OK) {
		luaL_error(L, "not enough memory");
		return NULL;
	}
	elements = weir_tensor_builder_data(builder);
	for (int64_t i = 0; i < shape.dims[0]; i++) {
		int is_number;

		lua_rawgeti(L, index, i + 1);
		elements[i] = lua_tonumberx(L, -1, &is_number);
		lua_pop(L, 1);
		if (!is_number) {
			weir_tensor_builder_discard(builder);
			luaL_error(L, "element %I is not a number", (LUAI_UACINT)(i + 1));
			return NULL;
		}
	}
	(void)weir_tensor_builder_finish(builder, &tensor);
	return tensor;
}

/* ---- views ---- */

/* A view of a version has its handle; a view of an item of a queue has the tensor, and version 0. */
static int view_release(lua_State *L)
{
	weir_read *read = luaL_checkudata(L, 1, VIEW);

	if (read->version != 0)
		weir_read_release(read);
	else
		weir_tensor_release(read->tensor);
	*read = (weir_read){0};
	return 0;
}

static weir_read *to_view(lua_State *L)
{
	weir_read *read = luaL_checkudata(L, 1, VIEW);

	luaL_argcheck(L, read->tensor != NULL, 1, "the view is released");
	luaL_argcheck(L, weir_tensor_dtype(read->tensor) == WEIR_F64, 1, "the elements are not of f64");
	return read;
}

static int view_version(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)to_view(L)->version);
	return 1;
}

static int view_length(lua_State *L)
{
	lua_pushinteger(L, weir_tensor_element_count(to_view(L)->tensor));
	return 1;
}

/* view[i] reads element i, from 1, where it is; other keys are methods. */
static int view_index(lua_State *L)
{
	const weir_tensor *tensor;
	int is_integer;
	lua_Integer i = lua_tointegerx(L, 2, &is_integer);

	if (!is_integer) {
		(void)luaL_checkudata(L, 1, VIEW); /* a script may call __index with anything */
		(void)luaL_getmetafield(L, 1, "methods");
		lua_pushvalue(L, 2);
		lua_rawget(L, -2);
		return 1;
	}
	tensor = to_view(L)->tensor;
	if (i < 1 || i > weir_tensor_element_count(tensor))
		return 0;
	lua_pushnumber(L, ((const double *)weir_tensor_data(tensor))[i - 1]);
	return 1;
}

/* ---- variables ---- */

static weir_var *to_var(lua_State *L)
{
	return ((struct shared *)luaL_checkudata(L, 1, VAR))->object;
}

static int var_new(lua_State *L)
{
	const struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F64};
	struct shared *var = push_new(L, sizeof(*var), VAR);
	weir_tensor *first = to_tensor(L, 1);
	enum weir_status status = weir_var_create(first, &options, (weir_var **)&var->object, NULL);

	weir_tensor_release(first);
	var->owned = status == WEIR_OK;
	return status == WEIR_OK ? 1 : failed(L, status, NULL);
}

static int var_read(lua_State *L)
{
	weir_var *var = to_var(L);
	weir_read *read = push_new(L, sizeof(*read), VIEW);
	enum weir_status status = weir_var_read(var, read);

	return status == WEIR_OK ? 1 : failed(L, status, NULL);
}

/* Returns the number of the version that it published. */
static int var_assign(lua_State *L)
{
	weir_var *var = to_var(L);
	weir_tensor *next = to_tensor(L, 2);
	weir_read published;
	weir_error error;
	enum weir_status status = weir_var_assign(var, next, WEIR_NO_DEADLINE, &published, &error);

	weir_tensor_release(next);
	if (status != WEIR_OK)
		return failed(L, status, &error);
	lua_pushinteger(L, (lua_Integer)published.version);
	weir_read_release(&published);
	return 1;
}

static int var_collect(lua_State *L)
{
	struct shared *var = luaL_checkudata(L, 1, VAR);

	if (var->owned)
		(void)weir_var_destroy(var->object, NULL);
	*var = (struct shared){0}; /* other finalizers may still see it: its calls fail then */
	return 0;
}

/* ---- queues ---- */

static weir_queue *to_queue(lua_State *L)
{
	return ((struct shared *)luaL_checkudata(L, 1, QUEUE))->object;
}

static void drop_item(void *context, void *item)
{
	(void)context;
	weir_tensor_release(item);
}

static int queue_new(lua_State *L)
{
	const struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = (size_t)luaL_checkinteger(L, 1),
	                                           .drop = drop_item};
	struct shared *queue = push_new(L, sizeof(*queue), QUEUE);
	weir_error error;
	enum weir_status status = weir_queue_create(&options, (weir_queue **)&queue->object, &error);

	queue->owned = status == WEIR_OK;
	return status == WEIR_OK ? 1 : failed(L, status, &error);
}

/* The moment that is argument `index` seconds from now; without it the call waits for as long as it takes. */
static uint64_t to_deadline(lua_State *L, int index)
{
	lua_Number seconds = luaL_optnumber(L, index, HUGE_VAL);

	if (!(seconds > 0))
		return 0; /* tries once */
	return seconds < 1e9 ? weir_deadline_in((uint64_t)(seconds * 1e9)) : WEIR_NO_DEADLINE;
}

static int queue_put(lua_State *L)
{
	weir_queue *queue = to_queue(L);
	uint64_t deadline_ns = to_deadline(L, 3);
	weir_tensor *item = to_tensor(L, 2);
	weir_error error;
	enum weir_status status = weir_queue_enqueue(queue, item, deadline_ns, NULL, &error);

	if (status != WEIR_OK) {
		weir_tensor_release(item);
		return failed(L, status, &error);
	}
	lua_pushboolean(L, 1);
	return 1;
}

static int queue_get(lua_State *L)
{
	weir_queue *queue = to_queue(L);
	uint64_t deadline_ns = to_deadline(L, 2);
	weir_read *view = push_new(L, sizeof(*view), VIEW);
	weir_error error;
	void *item;
	enum weir_status status = weir_queue_dequeue(queue, &item, deadline_ns, NULL, &error);

	if (status != WEIR_OK)
		return failed(L, status, &error);
	view->tensor = item;
	return 1;
}

/* Items that are inside still come out; then get() returns nil and a message with the cause. */
static int queue_close(lua_State *L)
{
	weir_error cause = {.code = WEIR_CANCELLED};
	enum weir_status status;

	(void)snprintf(cause.message, sizeof(cause.message), "%s", luaL_checkstring(L, 2));
	status = weir_queue_close(to_queue(L), WEIR_CLOSE_DRAIN, &cause);
	return status == WEIR_OK ? 0 : failed(L, status, NULL);
}

/* A queue in which a thread still waits stays, because that thread uses it. */
static int queue_collect(lua_State *L)
{
	struct shared *queue = luaL_checkudata(L, 1, QUEUE);

	if (queue->owned)
		(void)weir_queue_destroy(queue->object, NULL);
	*queue = (struct shared){0};
	return 0;
}

/* ---- the module ---- */

/* A light userdata for weir.borrow_var() or _queue() in another state, or for C. */
static int address(lua_State *L)
{
	const struct shared *shared = luaL_testudata(L, 1, VAR);

	if (shared == NULL)
		shared = luaL_checkudata(L, 1, QUEUE);
	lua_pushlightuserdata(L, shared->object);
	return 1;
}

static int borrow(lua_State *L, const char *type)
{
	void *object = lua_touserdata(L, 1);

	luaL_checktype(L, 1, LUA_TLIGHTUSERDATA);
	((struct shared *)push_new(L, sizeof(struct shared), type))->object = object;
	return 1;
}

static int borrow_var(lua_State *L)
{
	return borrow(L, VAR);
}

static int borrow_queue(lua_State *L)
{
	return borrow(L, QUEUE);
}

static void make_type(lua_State *L, const char *type, const luaL_Reg *methods, const luaL_Reg *events)
{
	luaL_newmetatable(L, type);
	lua_newtable(L);
	luaL_setfuncs(L, methods, 0);
	lua_pushvalue(L, -1);
	lua_setfield(L, -3, "methods");
	lua_setfield(L, -2, "__index");
	luaL_setfuncs(L, events, 0); /* those of a view replace __index */
	lua_pop(L, 1);
}

int luaopen_weir(lua_State *L);

int luaopen_weir(lua_State *L)
{
	static const luaL_Reg view_methods[] = {{"release", view_release}, {"version", view_version}, {NULL, NULL}};
	static const luaL_Reg view_events[] = {{"__index", view_index},
	                                       {"__len", view_length},
	                                       {"__gc", view_release},
	                                       {"__close", view_release},
	                                       {NULL, NULL}};
	static const luaL_Reg var_methods[] = {
		{"read", var_read}, {"assign", var_assign}, {"address", address}, {NULL, NULL}};
	static const luaL_Reg var_events[] = {{"__gc", var_collect}, {NULL, NULL}};
	static const luaL_Reg queue_methods[] = {
		{"put", queue_put}, {"get", queue_get}, {"close", queue_close}, {"address", address}, {NULL, NULL}};
	static const luaL_Reg queue_events[] = {{"__gc", queue_collect}, {NULL, NULL}};
	static const luaL_Reg functions[] = {{"var", var_new},
	                                     {"queue", queue_new},
	                                     {"borrow_var", borrow_var},
	                                     {"borrow_queue", borrow_queue},
	                                     {NULL, NULL}};

	make_type(L, VIEW, view_methods, view_events);
	make_type(L, VAR, var_methods, var_events);
	make_type(L, QUEUE, queue_methods, queue_events);
	luaL_newlib(L, functions);
	return 1;
}
