/*
 * camera_node.c - the foreign thread of the tests, for JavaScript.
 */
#include <node_api.h>

#include "../camera.h"

enum { MOST_ARGUMENTS = 3, CAUSE_SIZE = 100 };

static void *external_of(napi_env env, napi_value value)
{
	void *data = NULL;

	(void)napi_get_value_external(env, value, &data);
	return data;
}

static void get_arguments(napi_env env, napi_callback_info info, napi_value values[MOST_ARGUMENTS])
{
	size_t count = MOST_ARGUMENTS;

	(void)napi_get_cb_info(env, info, &count, values, NULL, NULL);
}

static napi_value number(napi_env env, double value)
{
	napi_value result = NULL;

	(void)napi_create_double(env, value, &result);
	return result;
}

static napi_value start(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS], result = NULL;
	char cause[CAUSE_SIZE];
	int32_t count = 0;

	get_arguments(env, info, values);
	(void)napi_get_value_int32(env, values[1], &count);
	(void)napi_get_value_string_utf8(env, values[2], cause, sizeof(cause), NULL);
	(void)napi_create_external(env, camera_start(*(weir_queue **)external_of(env, values[0]), count, cause), NULL, NULL,
	                           &result);
	return result;
}

static napi_value stop(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS];

	get_arguments(env, info, values);
	return number(env, camera_stop(external_of(env, values[0])));
}

static napi_value show(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS];
	double pixel = 0;

	get_arguments(env, info, values);
	(void)napi_get_value_double(env, values[1], &pixel);
	return number(env, camera_show(external_of(env, values[0]), pixel));
}

static napi_value short_threads(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS];
	int32_t count = 0;

	get_arguments(env, info, values);
	(void)napi_get_value_int32(env, values[1], &count);
	return number(env, camera_short_threads(external_of(env, values[0]), count));
}

static napi_value frames_alive(napi_env env, napi_callback_info info)
{
	(void)info;
	return number(env, camera_frames_alive());
}

static napi_value released_by(napi_env env, napi_callback_info info)
{
	(void)info;
	return number(env, camera_released_by());
}

static napi_value this_thread(napi_env env, napi_callback_info info)
{
	(void)info;
	return number(env, camera_this_thread());
}

static napi_value address(napi_env env, napi_callback_info info)
{
	napi_value values[MOST_ARGUMENTS];
	void *data = NULL;

	get_arguments(env, info, values);
	(void)napi_get_arraybuffer_info(env, values[0], &data, NULL);
	return number(env, (double)(uintptr_t)data);
}

NAPI_MODULE_INIT()
{
	const napi_property_descriptor calls[] = {
		{"start", NULL, start, NULL, NULL, NULL, napi_default, NULL},
		{"stop", NULL, stop, NULL, NULL, NULL, napi_default, NULL},
		{"show", NULL, show, NULL, NULL, NULL, napi_default, NULL},
		{"shortThreads", NULL, short_threads, NULL, NULL, NULL, napi_default, NULL},
		{"framesAlive", NULL, frames_alive, NULL, NULL, NULL, napi_default, NULL},
		{"releasedBy", NULL, released_by, NULL, NULL, NULL, napi_default, NULL},
		{"thisThread", NULL, this_thread, NULL, NULL, NULL, napi_default, NULL},
		{"address", NULL, address, NULL, NULL, NULL, napi_default, NULL},
	};

	(void)napi_define_properties(env, exports, sizeof(calls) / sizeof(calls[0]), calls);
	return exports;
}
