/*
 * test.c - runs the tests of test.lua, each on a thread of its own, and then 1,000 short threads that each
 * have a Lua state and read one variable.
 *
 * usage: test TEST.LUA    with weir.so in LUA_CPATH
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../camera.h"

enum { SHORT_THREADS = 1000, AT_ONCE = 50 };

static const char *const tests[] = {
	"a_view_is_no_copy_and_keeps_its_version",
	"a_foreign_thread_feeds_the_queue_and_its_cause_arrives",
	"a_wait_ends_at_its_deadline",
	"views_are_taken_by_this_thread",
	"and_released_by_this_one",
};

static camera *running;
static weir_var *shared;
static atomic_int faults;

static int start(lua_State *L)
{
	running = camera_start(lua_touserdata(L, 1), (int)luaL_checkinteger(L, 2), luaL_checkstring(L, 3));
	return running != NULL ? 0 : luaL_error(L, "no thread");
}

static int stop(lua_State *L)
{
	lua_pushinteger(L, camera_stop(running));
	return 1;
}

static int show(lua_State *L)
{
	lua_pushboolean(L, camera_show(lua_touserdata(L, 1), luaL_checknumber(L, 2)));
	return 1;
}

static int alive(lua_State *L)
{
	lua_pushinteger(L, camera_frames_alive());
	return 1;
}

static int released_by(lua_State *L)
{
	lua_pushinteger(L, camera_released_by());
	return 1;
}

static int this_thread(lua_State *L)
{
	lua_pushinteger(L, camera_this_thread());
	return 1;
}

/* Where the elements of a view are. */
static int data(lua_State *L)
{
	const weir_read *view = luaL_checkudata(L, 1, "weir.view");

	lua_pushlightuserdata(L, (void *)(uintptr_t)weir_tensor_data(view->tensor));
	return 1;
}

static const luaL_Reg functions[] = {{"start", start},
                                     {"stop", stop},
                                     {"show", show},
                                     {"alive", alive},
                                     {"released_by", released_by},
                                     {"this_thread", this_thread},
                                     {"data", data},
                                     {NULL, NULL}};

static int report(lua_State *L, const char *name)
{
	(void)fprintf(stderr, "%s: %s\n", name, lua_tostring(L, -1));
	atomic_fetch_add_explicit(&faults, 1, memory_order_relaxed);
	lua_settop(L, 0);
	return 1;
}

struct call {
	lua_State *L;
	const char *name;
};

/* The table of tests is at the bottom of the stack. */
static void *run_test(void *context)
{
	const struct call *call = context;

	lua_getfield(call->L, 1, call->name);
	if (lua_pcall(call->L, 0, 0, 0) != LUA_OK) {
		(void)fprintf(stderr, "%s: %s\n", call->name, lua_tostring(call->L, -1));
		lua_settop(call->L, 1);
		atomic_fetch_add_explicit(&faults, 1, memory_order_relaxed);
	}
	return NULL;
}

static void *read_once(void *unused)
{
	static const char chunk[] = "local var = require('weir').borrow_var(...)\n"
								"local view <close> = var:read()\n"
								"assert(#view == 4 and view[1] == 7 and view[4] == 7)\n";
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	if (luaL_loadstring(L, chunk) == LUA_OK) {
		lua_pushlightuserdata(L, shared);
		(void)lua_pcall(L, 1, 0, 0);
	}
	if (lua_gettop(L) != 0)
		report(L, "a short thread");
	lua_close(L);
	return unused;
}

static void run_short_threads(void)
{
	for (int started = 0; started < SHORT_THREADS; started += AT_ONCE) {
		pthread_t threads[AT_ONCE];

		for (int i = 0; i < AT_ONCE; i++) {
			if (pthread_create(&threads[i], NULL, read_once, NULL) != 0) {
				atomic_fetch_add_explicit(&faults, 1, memory_order_relaxed);
				threads[i] = pthread_self();
			}
		}
		for (int i = 0; i < AT_ONCE; i++) {
			if (!pthread_equal(threads[i], pthread_self()))
				(void)pthread_join(threads[i], NULL);
		}
	}
}

int main(int argc, char *argv[])
{
	const struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F64};
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	luaL_newlib(L, functions);
	lua_setglobal(L, "camera");
	if (argc != 2 || luaL_dofile(L, argv[1]))
		return report(L, "test.lua");
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct call call = {L, tests[i]};
		pthread_t thread;

		if (pthread_create(&thread, NULL, run_test, &call) != 0)
			return 1;
		(void)pthread_join(thread, NULL);
	}
	lua_close(L);

	if (weir_var_create(NULL, &options, &shared, NULL) != WEIR_OK || !camera_show(shared, 7))
		return 1;
	run_short_threads();
	(void)weir_var_destroy(shared, NULL);
	if (camera_frames_alive() != 0)
		atomic_fetch_add_explicit(&faults, 1, memory_order_relaxed);
	return atomic_load_explicit(&faults, memory_order_relaxed) == 0 ? 0 : 1;
}
