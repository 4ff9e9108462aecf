/*
 * scenario_staging.c - staging areas: recorded histories are those of a FIFO with a bound; and a
 * thread is stopped anywhere in a call.
 *
 * Threads put, get and clear; some of the calls wait a little. Each result, including "full" and
 * "empty", is recorded and judged as in scenario_history_queue.c. Looks and peeks are checked
 * immediately: a look belongs to one instant, so its bytes and its number agree.
 */
#include "harness.h"

#include <weir/reclaim.h>
#include <weir/flow/staging.h>
#include <weir/time.h>

#include "blocks.h"
#include "burst_values.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"

enum { NUMBERS = 100000 };

static const uint64_t patience_ns = 50000;

static struct {
	struct history_bounds bounds;
	weir_staging *staging;
} under_test;

static void open_area(size_t capacity, size_t memory_limit, const weir_allocator *allocator)
{
	struct weir_tensor_component component = {WEIR_I64, NULL, NULL};
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT,    .capacity = capacity,
	                                       .memory_limit = memory_limit, .components = &component,
	                                       .component_count = 1,         .allocator = allocator};

	STRESS_CHECK(weir_staging_create(&options, &under_test.staging, NULL) == WEIR_OK, "no staging area");
}

static void close_area(void)
{
	STRESS_CHECK(weir_staging_destroy(under_test.staging, NULL) == WEIR_OK,
	             "an operation still waits in the staging area");
}

static weir_tensor *make(uint64_t value, const weir_allocator *allocator)
{
	static const weir_shape scalar = {.rank = 0};
	weir_tensor *tensor;

	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &scalar, &value, allocator, &tensor) == WEIR_OK, "no memory");
	return tensor;
}

static uint64_t value_of(weir_tensor *tensor)
{
	uint64_t value = *(const uint64_t *)weir_tensor_data(tensor);

	weir_tensor_release(tensor);
	return value;
}

/* -- histories --------------------------------------------------------------------------------- */

static void set_up(struct stress_thread *self, void *context)
{
	(void)context;
	under_test.bounds = (struct history_bounds){.capacity = burst_draw_capacity(self)};
	/* A bound by number or by bytes; for scalars both mean the same. */
	if (stress_one_in(self, 2))
		open_area((size_t)under_test.bounds.capacity, 0, NULL);
	else
		open_area(0, (size_t)under_test.bounds.capacity * sizeof(uint64_t), NULL);
}

static void tear_down(struct stress_thread *self, void *context)
{
	(void)self, (void)context;
	close_area();
}

static void put(struct history_log *log, uint64_t number, uint64_t deadline)
{
	uint64_t value = (uint64_t)log->thread * NUMBERS + number + 1, called, returned;
	weir_tensor *tensor = make(value, NULL);
	enum weir_status status;

	called = history_call(log);
	status = weir_staging_put(under_test.staging, &tensor, 1, deadline, NULL, NULL);
	returned = history_return(log);
	weir_tensor_release(tensor);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED, "put: %s", weir_status_name(status));
	if (status == WEIR_OK)
		history_note(log, HISTORY_PUT, value, HISTORY_NONE, called, returned);
	else if (deadline == 0)
		history_note(log, HISTORY_PUT_FULL, value, HISTORY_NONE, called, returned);
}

static void get(struct history_log *log, uint64_t deadline)
{
	uint64_t called = history_call(log), returned;
	weir_tensor *tensor;
	enum weir_status status = weir_staging_get(under_test.staging, &tensor, 1, deadline, NULL, NULL);

	returned = history_return(log);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED, "get: %s", weir_status_name(status));
	if (status == WEIR_OK)
		history_note(log, HISTORY_TAKE, HISTORY_NONE, value_of(tensor), called, returned);
	else if (deadline == 0)
		history_note(log, HISTORY_TAKE_EMPTY, HISTORY_NONE, HISTORY_NONE, called, returned);
}

static void look(void)
{
	size_t size = 0, bytes = 0;
	weir_tensor *tensor;

	STRESS_CHECK(weir_staging_size(under_test.staging, &size, &bytes) == WEIR_OK, "look");
	STRESS_CHECK(bytes == size * sizeof(uint64_t) && size <= under_test.bounds.capacity, "%zu tuples of %zu bytes",
	             size, bytes);
	if (weir_staging_peek(under_test.staging, size / 2, &tensor, 1, 0, NULL, NULL) == WEIR_OK)
		STRESS_CHECK(value_of(tensor) != 0, "a peek returned an invalid tuple");
}

static void act(struct stress_thread *self, struct history_log *log, uint64_t number, void *context)
{
	uint64_t deadline = stress_one_in(self, 8) ? weir_deadline_in(patience_ns) : 0;

	(void)context;
	stress_begin(self, "staging area");
	switch (stress_below(self, 16)) {
	case 0: look(); break;
	default:
		if (stress_one_in(self, 2))
			put(log, number, deadline);
		else
			get(log, deadline);
	}
}

void scenario_history_staging(void)
{
	burst_run_fifo((struct burst){.set_up = set_up, .act = act, .tear_down = tear_down}, &under_test.bounds);
}

/* -- stops ------------------------------------------------------------------------------------- */

enum { WORKERS = 4, STOPS = 1000, ROOM = 8 };

static int work_on_area(struct stress_thread *self, unsigned worker)
{
	weir_tensor *tensor = NULL;
	enum weir_status status;
	size_t size;

	(void)worker;
	switch (stress_below(self, 5)) {
	case 0:
		stress_begin(self, "clear");
		STRESS_CHECK(weir_staging_clear(under_test.staging) == WEIR_OK, "clear");
		return 2;
	case 1:
		stress_begin(self, "look");
		STRESS_CHECK(weir_staging_size(under_test.staging, &size, NULL) == WEIR_OK && size <= ROOM, "look");
		return 2;
	case 2:
		stress_begin(self, "get");
		status = weir_staging_get(under_test.staging, &tensor, 1, 0, NULL, NULL);
		weir_tensor_release(tensor);
		return status == WEIR_OK ? 1 : -1;
	default:
		stress_begin(self, "put");
		tensor = make(1, stress_blocks());
		status = weir_staging_put(under_test.staging, &tensor, 1, 0, NULL, NULL);
		weir_tensor_release(tensor);
		return status == WEIR_OK ? 0 : -1;
	}
}

void scenario_staging_stopped(void)
{
	const struct stopping subject = {"staging area", WORKERS, {"put", "get", "clear, look"}, 3, 0, work_on_area, 100};
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	open_area(ROOM, 0, stress_blocks());
	(void)stopping_must_go_on(self, &subject, stress_scaled(STOPS), stopping_part_end(1));
	close_area();
}
