/*
 * test_options.c - every call that takes options: one rule for struct_size, and one message.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/flow.h>

/*
 * Creates and destroys one object with these options. Returns the status and the message of the
 * creation.
 */
typedef enum weir_status create_fn(const void *options, weir_error *error);

static enum weir_status create_ring(const void *options, weir_error *error)
{
	weir_ring *made = NULL;
	enum weir_status status = weir_ring_create(4, options, &made, error);

	return weir_ring_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_ring_in_memory(const void *options, weir_error *error)
{
	static _Alignas(WEIR_RING_ALIGNMENT) unsigned char memory[1 << 14];
	weir_ring *made = NULL;
	enum weir_status status = weir_ring_init(memory, sizeof(memory), 4, options, &made, error);

	cr_expect_eq(weir_ring_memsize(4, options) != 0, status == WEIR_OK);
	return weir_ring_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_spsc(const void *options, weir_error *error)
{
	weir_spsc *made = NULL;
	enum weir_status status = weir_spsc_create(4, options, &made, error);

	return weir_spsc_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_priority_queue(const void *options, weir_error *error)
{
	weir_priority_queue *made = NULL;
	enum weir_status status = weir_priority_queue_create(4, options, &made, error);

	return weir_priority_queue_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_multi_queue(const void *options, weir_error *error)
{
	weir_multi_queue *made = NULL;
	enum weir_status status = weir_multi_queue_create(4, options, &made, error);

	return weir_multi_queue_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_ring_list(const void *options, weir_error *error)
{
	weir_ring_list *made = NULL;
	enum weir_status status = weir_ring_list_create(options, &made, error);

	return weir_ring_list_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_queue(const void *options, weir_error *error)
{
	weir_queue *made = NULL;
	enum weir_status status = weir_queue_create(options, &made, error);

	return weir_queue_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_tensor_queue(const void *options, weir_error *error)
{
	weir_tensor_queue *made = NULL;
	enum weir_status status = weir_tensor_queue_create(options, &made, error);

	return weir_tensor_queue_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_staging(const void *options, weir_error *error)
{
	weir_staging *made = NULL;
	enum weir_status status = weir_staging_create(options, &made, error);

	return weir_staging_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_map_staging(const void *options, weir_error *error)
{
	weir_map_staging *made = NULL;
	enum weir_status status = weir_map_staging_create(options, &made, error);

	return weir_map_staging_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_keyed_join(const void *options, weir_error *error)
{
	weir_keyed_join *made = NULL;
	enum weir_status status = weir_keyed_join_create(options, &made, error);

	return weir_keyed_join_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_var(const void *options, weir_error *error)
{
	weir_var *made = NULL;
	enum weir_status status = weir_var_create(NULL, options, &made, error);

	return weir_var_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_table(const void *options, weir_error *error)
{
	weir_table *made = NULL;
	enum weir_status status = weir_table_create(NULL, options, &made, error);

	return weir_table_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_store(const void *options, weir_error *error)
{
	weir_store *made = NULL;
	enum weir_status status = weir_store_create(options, &made, error);

	return weir_store_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_counter(const void *options, weir_error *error)
{
	weir_counter *made = NULL;
	enum weir_status status = weir_counter_create(options, &made, error);

	return weir_counter_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_histogram(const void *options, weir_error *error)
{
	weir_histogram *made = NULL;
	enum weir_status status = weir_histogram_create(options, &made, error);

	return weir_histogram_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_summary(const void *options, weir_error *error)
{
	weir_summary *made = NULL;
	enum weir_status status = weir_summary_create(options, &made, error);

	return weir_summary_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_batch(const void *options, weir_error *error)
{
	weir_dataset *range = NULL, *batch = NULL;
	enum weir_status status;

	cr_assert_eq(weir_dataset_range(0, 1, 1, NULL, &range, NULL), WEIR_OK);
	status = weir_dataset_batch(range, 1, options, &batch, error);
	weir_dataset_release(batch);
	weir_dataset_release(range);
	return status;
}

static enum weir_status create_iterator(const void *options, weir_error *error)
{
	weir_dataset *range = NULL;
	weir_iterator *iterator = NULL;
	enum weir_status status;

	cr_assert_eq(weir_dataset_range(0, 1, 1, NULL, &range, NULL), WEIR_OK);
	status = weir_iterator_create(range, options, &iterator, error);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	weir_dataset_release(range);
	return status;
}

static enum weir_status create_pool(const void *options, weir_error *error)
{
	weir_pool *made = NULL;
	enum weir_status status = weir_pool_create(options, &made, error);

	return weir_pool_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_coordinator(const void *options, weir_error *error)
{
	weir_coordinator *made = NULL;
	enum weir_status status = weir_coordinator_create(options, &made, error);

	return weir_coordinator_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_queue_runner(const void *options, weir_error *error)
{
	weir_queue_runner *made = NULL;
	enum weir_status status = weir_queue_runner_create(options, &made, error);

	return weir_queue_runner_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_critical_section(const void *options, weir_error *error)
{
	weir_critical_section *made = NULL;
	enum weir_status status = weir_critical_section_create(options, &made, error);

	return weir_critical_section_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_graph(const void *options, weir_error *error)
{
	weir_graph *made = NULL;
	enum weir_status status = weir_graph_create(options, &made, error);

	return weir_graph_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_session(const void *options, weir_error *error)
{
	weir_graph *graph = NULL;
	weir_session *made = NULL;
	enum weir_status status;

	cr_assert_eq(weir_graph_create(NULL, &graph, NULL), WEIR_OK);
	status = weir_session_create(graph, options, &made, error);
	cr_expect_eq(weir_session_destroy(made, NULL), WEIR_OK);
	cr_expect_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	return status;
}

static enum weir_status create_trace(const void *options, weir_error *error)
{
	weir_trace *made = NULL;
	enum weir_status status = weir_trace_create(options, &made, error);

	return weir_trace_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_ranks(const void *options, weir_error *error)
{
	weir_ranks *made = NULL;
	enum weir_status status = weir_ranks_create(1, options, &made, error);

	return weir_ranks_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_function(const void *options, weir_error *error)
{
	weir_function *made = NULL;
	enum weir_status status = weir_function_create(options, &made, error);

	return weir_function_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_print(const void *options, weir_error *error)
{
	weir_tensor *one = NULL;
	weir_graph *graph = NULL;
	weir_output input;
	weir_node *node;
	enum weir_status status;

	cr_assert_eq(weir_tensor_scalar_i64(1, &one), WEIR_OK);
	cr_assert_eq(weir_graph_create(NULL, &graph, NULL), WEIR_OK);
	cr_assert_eq(weir_op_constant(graph, NULL, one, &input, NULL), WEIR_OK);
	status = weir_op_print(graph, NULL, options, &input, 1, &node, error);
	cr_expect_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	weir_tensor_release(one);
	return status;
}

static enum weir_status create_shm_ring(const void *options, weir_error *error)
{
	int file = memfd_create("ring", MFD_ALLOW_SEALING);
	weir_shm_ring *made = NULL;
	enum weir_status status = weir_shm_ring_create(file, 4, 8, options, &made, error);

	(void)close(file);
	return weir_shm_ring_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

static enum weir_status create_shm_latest(const void *options, weir_error *error)
{
	int file = memfd_create("latest", MFD_ALLOW_SEALING);
	weir_shm_latest *made = NULL;
	enum weir_status status = weir_shm_latest_create(file, 8, options, &made, error);

	(void)close(file);
	return weir_shm_latest_destroy(made, NULL) == WEIR_OK ? status : WEIR_INTERNAL;
}

/* Creates no object but a file, which has a name of its own. */
static enum weir_status save_checkpoint(const void *options, weir_error *error)
{
	struct weir_checkpoint_tensor part = {.name = "one"};
	char path[] = "/tmp/weir-options-XXXXXX";
	weir_tensor *one = NULL;
	enum weir_status status;
	int file = mkstemp(path);

	cr_assert_geq(file, 0);
	cr_assert_eq(weir_tensor_scalar_i64(1, &one), WEIR_OK);
	part.tensor = one;
	status = weir_checkpoint_save_tensors(&part, 1, path, options, error);
	weir_tensor_release(one);
	(void)close(file);
	(void)unlink(path);
	return status;
}

static enum weir_status step(void *context, weir_cancel *cancel, weir_error *error)
{
	(void)context, (void)cancel, (void)error;
	return WEIR_OUT_OF_RANGE;
}

static enum weir_status build(void *context, weir_graph *body, const struct weir_argument arguments[],
                              weir_output results[], weir_error *error)
{
	(void)context, (void)body, (void)arguments, (void)results, (void)error;
	return WEIR_OK;
}

static enum weir_status write_nowhere(void *context, const char *text, size_t size, weir_error *error)
{
	(void)context, (void)text, (void)size, (void)error;
	return WEIR_OK;
}

static const weir_shape pair = {.rank = 1, .dims = {2}};
static const struct weir_tensor_component component = {.dtype = WEIR_F32, .shape = &pair};
static const struct weir_queue_runner_step steps[] = {{step, NULL, NULL}};

/* Options with the required fields only. */
static const struct weir_queue_options queue = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 4};
static const struct weir_tensor_queue_options tensor_queue = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4,
                                                              .components = &component, .component_count = 1};
static const struct weir_staging_options staging = {WEIR_STAGING_OPTIONS_INIT, .components = &component,
                                                    .component_count = 1};
static const struct weir_map_staging_options map_staging = {WEIR_MAP_STAGING_OPTIONS_INIT, .components = &component,
                                                            .component_count = 1};
static const struct weir_keyed_join_options join = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = &component,
                                                    .component_count = 1};
static const struct weir_var_options var = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F32};
static const struct weir_table_options table = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_F32, .rows = 2};
static const struct weir_queue_runner_options queue_runner = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = steps,
                                                              .step_count = 1};
static const struct weir_function_options function = {WEIR_FUNCTION_OPTIONS_INIT, .build = build};
static const struct weir_print_options print = {WEIR_PRINT_OPTIONS_INIT, .write = write_nowhere};
static const size_t nothing = sizeof(size_t);

static const struct call {
	const char *name;
	create_fn *create;
	const void *options; /* at least `earlier` bytes */
	size_t earlier;      /* the size of a struct that ends after the required fields */
	size_t size;
} calls[] = {
	{"ring", create_ring, &nothing, sizeof(size_t), sizeof(struct weir_ring_options)},
	{"ring in memory", create_ring_in_memory, &nothing, sizeof(size_t), sizeof(struct weir_ring_options)},
	{"spsc", create_spsc, &nothing, sizeof(size_t), sizeof(struct weir_spsc_options)},
	{"priority queue", create_priority_queue, &nothing, sizeof(size_t), sizeof(struct weir_priority_queue_options)},
	{"multi queue", create_multi_queue, &nothing, sizeof(size_t), sizeof(struct weir_multi_queue_options)},
	{"ring list", create_ring_list, &nothing, sizeof(size_t), sizeof(struct weir_ring_list_options)},
	{"queue", create_queue, &queue, offsetof(struct weir_queue_options, order), sizeof(queue)},
	{"tensor queue", create_tensor_queue, &tensor_queue, offsetof(struct weir_tensor_queue_options, allocator),
     sizeof(tensor_queue)},
	{"staging area", create_staging, &staging, offsetof(struct weir_staging_options, allocator), sizeof(staging)},
	{"map staging area", create_map_staging, &map_staging, offsetof(struct weir_map_staging_options, allocator),
     sizeof(map_staging)},
	{"keyed join", create_keyed_join, &join, offsetof(struct weir_keyed_join_options, allocator), sizeof(join)},
	{"variable", create_var, &var, offsetof(struct weir_var_options, shape), sizeof(var)},
	{"table", create_table, &table, offsetof(struct weir_table_options, row), sizeof(table)},
	{"store", create_store, &nothing, sizeof(size_t), sizeof(struct weir_store_options)},
	{"counter", create_counter, &nothing, sizeof(size_t), sizeof(struct weir_metrics_options)},
	{"histogram", create_histogram, &nothing, sizeof(size_t), sizeof(struct weir_histogram_options)},
	{"summary", create_summary, &nothing, sizeof(size_t), sizeof(struct weir_histogram_options)},
	{"pool", create_pool, &nothing, sizeof(size_t), sizeof(struct weir_pool_options)},
	{"batch", create_batch, &nothing, sizeof(size_t), sizeof(struct weir_dataset_options)},
	{"weir_iterator_create", create_iterator, &nothing, sizeof(size_t), sizeof(struct weir_iterator_options)},
	{"coordinator", create_coordinator, &nothing, sizeof(size_t), sizeof(struct weir_coordinator_options)},
	{"queue runner", create_queue_runner, &queue_runner, offsetof(struct weir_queue_runner_options, threads_per_step),
     sizeof(queue_runner)},
	{"critical section", create_critical_section, &nothing, sizeof(size_t),
     sizeof(struct weir_critical_section_options)},
	{"graph", create_graph, &nothing, sizeof(size_t), sizeof(struct weir_graph_options)},
	{"session", create_session, &nothing, sizeof(size_t), sizeof(struct weir_session_options)},
	{"trace", create_trace, &nothing, sizeof(size_t), sizeof(struct weir_trace_options)},
	{"ranks", create_ranks, &nothing, sizeof(size_t), sizeof(struct weir_ranks_options)},
	{"function", create_function, &function, offsetof(struct weir_function_options, context), sizeof(function)},
	{"print", create_print, &print, offsetof(struct weir_print_options, context), sizeof(print)},
	{"shm ring", create_shm_ring, &nothing, sizeof(size_t), sizeof(struct weir_shm_ring_options)},
	{"shm latest", create_shm_latest, &nothing, sizeof(size_t), sizeof(struct weir_shm_latest_options)},
	{"checkpoint", save_checkpoint, &nothing, sizeof(size_t), sizeof(struct weir_checkpoint_options)},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]), ROOM = 256 };

/* The options of a call, followed by bytes that no call may read. */
struct given {
	_Alignas(max_align_t) unsigned char bytes[ROOM];
};

static struct given given_to(const struct call *call, size_t struct_size)
{
	struct given given;

	memset(given.bytes, 0xee, sizeof(given.bytes));
	memcpy(given.bytes, call->options, call->earlier);
	memcpy(given.bytes, &struct_size, sizeof(struct_size));
	return given;
}

Test(options, a_smaller_struct_is_accepted_and_the_rest_is_default)
{
	for (size_t i = 0; i < CALLS; i++) {
		struct given given = given_to(&calls[i], calls[i].earlier);
		weir_error error = {0};

		cr_expect_eq(calls[i].create(given.bytes, &error), WEIR_OK, "%s: %s", calls[i].name, error.message);
	}
}

static void expect_refused(const struct call *call, struct given *given, const char *why)
{
	weir_error error = {0};
	char expected[WEIR_ERROR_MESSAGE_SIZE];
	size_t struct_size;

	memcpy(&struct_size, given->bytes, sizeof(struct_size));
	(void)snprintf(expected, sizeof(expected), ": struct_size of the options is %zu, expected %zu, %s", struct_size,
	               call->size, why);
	cr_expect_eq(call->create(given->bytes, &error), WEIR_INVALID_ARGUMENT, "%s, %zu", call->name, struct_size);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT, "%s", call->name);
	cr_expect_not_null(strstr(error.message, expected), "%s: %s", call->name, error.message);
}

/* The bytes behind these structs are not there: a call that read them would end in a signal. */
Test(options, a_size_that_no_release_has_is_refused_unread)
{
	static const size_t sizes[] = {0, 1, sizeof(size_t) - 1, 4097, (size_t)1 << 31, SIZE_MAX - 7, SIZE_MAX};
	const size_t page = 4096;
	unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(pages, MAP_FAILED);
	cr_assert_eq(mprotect(pages + page, page, PROT_NONE), 0);
	for (size_t i = 0; i < CALLS; i++) {
		unsigned char *last = pages + page - sizeof(size_t);

		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			weir_error error = {0};

			memcpy(last, &sizes[s], sizeof(sizes[s]));
			cr_expect_eq(calls[i].create(last, &error), WEIR_INVALID_ARGUMENT, "%s, %zu", calls[i].name, sizes[s]);
			cr_expect_not_null(strstr(error.message, ", or another from "), "%s: %s", calls[i].name, error.message);
		}
	}
	cr_assert_eq(munmap(pages, 2 * page), 0);
}

/* A program of a later release, which leaves its new fields alone, or asks for something there. */
Test(options, a_larger_struct_is_accepted_if_the_rest_is_0)
{
	for (size_t i = 0; i < CALLS; i++) {
		const size_t size = calls[i].size, later = size + 8;
		struct given given = given_to(&calls[i], later);
		weir_error error = {0};
		char why[64];

		cr_assert_leq(later + 8, (size_t)ROOM);
		memset(given.bytes + calls[i].earlier, 0, later - calls[i].earlier);
		cr_expect_eq(calls[i].create(given.bytes, &error), WEIR_OK, "%s: %s", calls[i].name, error.message);
		for (size_t at = size; at < later; at++) {
			given.bytes[at] = 1;
			(void)snprintf(why, sizeof(why), "and byte %zu is not 0", at);
			expect_refused(&calls[i], &given, why);
			given.bytes[at] = 0;
		}
		given = given_to(&calls[i], size);
		memset(given.bytes + calls[i].earlier, 0, size - calls[i].earlier);
		cr_expect_eq(calls[i].create(given.bytes, &error), WEIR_OK, "%s: %s", calls[i].name, error.message);
	}
}

Test(options, statistics_of_a_later_release_are_0)
{
	struct {
		struct weir_reclaim_stats known;
		uint64_t unknown[2];
	} stats;

	memset(&stats, 0xee, sizeof(stats));
	stats.known.struct_size = sizeof(stats.known) + 8;
	cr_expect_eq(weir_reclaim_get_stats(&stats.known), WEIR_OK);
	cr_expect_eq(stats.known.struct_size, sizeof(stats.known) + 8);
	cr_expect_neq(stats.known.copies_wasted, UINT64_C(0xeeeeeeeeeeeeeeee));
	cr_expect_eq(stats.unknown[0], 0);
	cr_expect_eq(stats.unknown[1], UINT64_C(0xeeeeeeeeeeeeeeee));
	stats.known.struct_size = 4097;
	cr_expect_eq(weir_reclaim_get_stats(&stats.known), WEIR_INVALID_ARGUMENT);
}

Test(options, statistics_are_filled_up_to_the_size_of_the_caller)
{
	struct weir_reclaim_stats stats;
	const size_t earlier = offsetof(struct weir_reclaim_stats, collections);

	memset(&stats, 0xee, sizeof(stats));
	stats.struct_size = earlier;
	cr_expect_eq(weir_reclaim_get_stats(&stats), WEIR_OK);
	cr_expect_eq(stats.struct_size, earlier);
	cr_expect_neq(stats.peak_retired_bytes, UINT64_C(0xeeeeeeeeeeeeeeee));
	cr_expect_eq(stats.collections, UINT64_C(0xeeeeeeeeeeeeeeee));
}
