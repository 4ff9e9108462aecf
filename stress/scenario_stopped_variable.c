/*
 * scenario_stopped_variable.c - a thread that stops anywhere in a variable's call, or in a read section,
 * blocks no reader, writer or commit.
 */
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/time.h>
#include <weir/var.h>
#include <weir/var_cache.h>

#include "blocks.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"

enum { WORKERS = 4, STOPS = 1000, VARIABLES = 5, MAX_WORDS = 250 };

static const uint64_t small_budget = 1 << 21;

static weir_var *variables[VARIABLES];

static weir_tensor *make_value(struct stress_thread *self)
{
	static const uint64_t zeros[MAX_WORDS];
	weir_shape shape = {1, {1 + (int64_t)stress_below(self, MAX_WORDS)}};
	weir_tensor *value = NULL;
	enum weir_status status = weir_tensor_copy_of(WEIR_I64, &shape, zeros, stress_blocks(), &value);

	STRESS_CHECK(status == WEIR_OK, "no memory for a value: 64 MiB are in use");
	return value;
}

static enum weir_status next_value(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	(void)current, (void)error;
	*next = make_value(context);
	return WEIR_OK;
}

static void check_write(enum weir_status status, const char *call)
{
	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "%s: %s", call, weir_status_name(status));
}

static void write_one(struct stress_thread *self)
{
	weir_var *var = variables[stress_below(self, VARIABLES)];
	weir_tensor *value;

	if (stress_one_in(self, 2)) {
		stress_begin(self, "update");
		check_write(weir_var_update(var, next_value, self, WEIR_NO_DEADLINE, NULL, NULL), "weir_var_update");
		return;
	}
	stress_begin(self, "assign");
	value = make_value(self);
	check_write(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), "weir_var_assign");
	weir_tensor_release(value);
}

static int commit_some(struct stress_thread *self)
{
	size_t first = (size_t)stress_below(self, VARIABLES), count = 2 + (size_t)stress_below(self, VARIABLES - 1);
	struct weir_commit_part parts[VARIABLES];
	enum weir_status status;

	stress_begin(self, "commit");
	for (size_t i = 0; i < count; i++) {
		weir_var *var = variables[(first + i) % VARIABLES];

		parts[i] = (struct weir_commit_part){var, weir_var_version(var), make_value(self)};
	}
	status = weir_var_commit(parts, count, WEIR_NO_DEADLINE, NULL, NULL);
	check_write(status, "weir_var_commit");
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(parts[i].value);
	return status == WEIR_OK;
}

static void read_one(struct stress_thread *self)
{
	weir_read read;

	stress_begin(self, "read");
	STRESS_CHECK(weir_var_read(variables[stress_below(self, VARIABLES)], &read) == WEIR_OK, "a read failed");
	weir_read_release(&read);
}

static void read_all(struct stress_thread *self)
{
	weir_read reads[VARIABLES];

	stress_begin(self, "snapshot");
	STRESS_CHECK(weir_var_snapshot(variables, VARIABLES, reads, NULL) == WEIR_OK, "a snapshot failed");
	weir_read_release_many(reads, VARIABLES);
}

/* A thread that is stopped in it keeps what lived then. The budget is small, so writers would soon notice more. */
static void read_in_a_section(struct stress_thread *self)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	stress_begin(self, "section");
	STRESS_CHECK(weir_read_section_begin(&section) == WEIR_OK, "a section did not begin");
	for (int i = 0; i < 3; i++) {
		const weir_read *read = weir_read_section_peek(&section, variables[stress_below(self, VARIABLES)]);

		STRESS_CHECK(read != NULL && *(const uint64_t *)weir_tensor_data(read->tensor) == 0, "a peek failed");
	}
	STRESS_CHECK(weir_read_section_end(&section) == WEIR_OK, "a section did not end");
}

static void read_by_a_cache(struct stress_thread *self)
{
	weir_var_cache cache;

	stress_begin(self, "cache");
	weir_var_cache_init(&cache, variables[stress_below(self, VARIABLES)]);
	for (int i = 0; i < 3; i++) {
		const weir_read *read = weir_var_cache_read(&cache);

		STRESS_CHECK(read != NULL && *(const uint64_t *)weir_tensor_data(read->tensor) == 0, "a cache shows nothing");
	}
	weir_var_cache_release(&cache);
}

/* A thread that is stopped in it is stopped in its section. */
static void show_all(struct stress_thread *self)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};
	const weir_read *shown[VARIABLES];

	stress_begin(self, "snapshot in a section");
	STRESS_CHECK(weir_read_section_begin(&section) == WEIR_OK, "no section");
	STRESS_CHECK(weir_read_section_snapshot(&section, variables, VARIABLES, shown, NULL) == WEIR_OK,
	             "a snapshot failed");
	STRESS_CHECK(weir_read_section_end(&section) == WEIR_OK, "a section does not end");
}

static int work_on_variables(struct stress_thread *self, unsigned worker)
{
	(void)worker;
	/* Every second worker only reads, so that reads continue while all writers wait. */
	switch (stress_below(self, self->number % 2 ? 5 : 7)) {
	case 0: read_one(self); return 0;
	case 1: read_all(self); return 0;
	case 2: read_in_a_section(self); return 0;
	case 3: read_by_a_cache(self); return 0;
	case 4: show_all(self); return 0;
	case 5: write_one(self); return 1;
	default: return commit_some(self) ? 1 : -1;
	}
}

void scenario_variable_stopped(void)
{
	const struct stopping subject = {"variable", WORKERS, {"read", "write"}, 2, 0, work_on_variables, 300};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_blocks()};
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	weir_reclaim_set_budget(small_budget);
	for (size_t i = 0; i < VARIABLES; i++) {
		weir_tensor *value = make_value(self);

		STRESS_CHECK(weir_var_create(value, &options, &variables[i], NULL) == WEIR_OK, "no variable");
		weir_tensor_release(value);
	}
	(void)stopping_must_go_on(self, &subject, stress_scaled(STOPS), stopping_part_end(1));
	for (size_t i = 0; i < VARIABLES; i++)
		weir_var_destroy(variables[i], NULL);
	weir_reclaim_set_budget(0);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(100000000000u)) == WEIR_OK,
	             "the flush failed: memory is still held");
	STRESS_CHECK(stress_blocks_bytes() == 0, "%llu bytes were not freed", stress_blocks_bytes());
}
