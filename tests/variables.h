/*
 * variables.h - variables of one number, for tests. Their allocator finds a use after free, a leak
 * and a double release (failing_allocator.h).
 */
#ifndef VARIABLES_H
#define VARIABLES_H

#include <criterion/criterion.h>

#include <inttypes.h>
#include <weir/reclaim.h>
#include <weir/tensor.h>
#include <weir/time.h>
#include <weir/var.h>

#include "failing_allocator.h"
#include "reclaim/record.h"

static const uint64_t variables_patience_ns = UINT64_C(100000000000);

/* All functions below allocate from here. */
static struct failing_allocator variables_state;
static const weir_allocator variables_memory = {failing_allocate, failing_release, &variables_state};

static inline weir_tensor *number(int64_t value)
{
	weir_shape scalar = {.rank = 0};
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &scalar, &value, &variables_memory, &tensor), WEIR_OK);
	return tensor;
}

static inline weir_var *named_variable(const char *name, int64_t value)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = name,
	                                   .allocator = &variables_memory};
	weir_tensor *first = number(value);
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(first);
	return var;
}

static inline weir_var *variable(int64_t value)
{
	return named_variable("v", value);
}

static inline weir_var *empty_variable(const char *name)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = name,
	                                   .allocator = &variables_memory};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	return var;
}

static inline int64_t value_of(const weir_read *read)
{
	return *(const int64_t *)weir_tensor_data(read->tensor);
}

/* Returns the number that a read sees now. */
static inline int64_t value_in(weir_var *var)
{
	weir_read read;
	int64_t value;

	cr_assert_eq(weir_var_read(var, &read), WEIR_OK);
	value = value_of(&read);
	weir_read_release(&read);
	return value;
}

static inline void assign(weir_var *var, int64_t value)
{
	weir_tensor *tensor = number(value);

	cr_assert_eq(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

/* Makes the value the next version of each of vars, if all of them are at `expected`. */
static inline enum weir_status commit_all(weir_var *const vars[], size_t count, uint64_t expected, int64_t value,
                                          weir_error *error)
{
	struct weir_commit_part parts[8];
	weir_tensor *tensor = number(value);
	enum weir_status status;

	cr_assert_leq(count, 8);
	for (size_t i = 0; i < count; i++)
		parts[i] = (struct weir_commit_part){vars[i], expected, tensor};
	status = weir_var_commit(parts, count, WEIR_NO_DEADLINE, NULL, error);
	weir_tensor_release(tensor);
	return status;
}

static inline uint64_t live_versions(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	return stats.live_versions;
}

static inline uint64_t slot_misses(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	cr_assert_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	return stats.slot_misses;
}

/* Frees what no handle and no section pins. */
static inline void collect_now(void)
{
	(void)weir_reclaim_flush(0);
}

/*
 * Prepares a thread for a call that runs in steps: registers the thread, and postpones its next
 * collection, which would be thousands of steps. Tests call collect_now() instead.
 */
static inline void meet_weir(void *context)
{
	struct weiri_record *record = weiri_record_get();

	(void)context;
	cr_assert_not_null(record);
	weiri_store_relaxed(&record->since_collection, 0u);
	/* malloc sets up what it keeps for each thread now, and not in a step of the call */
	weir_tensor_release(number(0));
}

/* To be called at the end of a test: no version, tensor or variable is left. */
static inline void expect_nothing_left(void)
{
	cr_assert_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	cr_expect_eq(live_versions(), 0);
	cr_expect_str_eq(failing_allocator_verdict(&variables_state), "balanced");
}

#endif
