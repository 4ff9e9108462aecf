/*
 * cost.c - weir-cost: performs each hot operation several times between two marks.
 *
 * scripts/check_costs runs it under valgrind and counts what happens between the marks:
 * instructions, atomic read-modify-writes, and cache lines written.
 *
 * There is one thread, no contention, and every cache is warm, so that the figures are the cost of
 * an operation alone. The library is linked statically, so that a call is a direct call. A call
 * through the shared library costs one jump more.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/flow/function.h>
#include <weir/flow/kernel.h>
#include <weir/flow/op.h>
#include <weir/flow/callable.h>
#include <weir/flow/session.h>
#include <weir/flow/table.h>
#include <weir/weir.h>

#include "sync/eventcount.h"

enum {
	WARM_UP = 64,
	MEASURED = 64,
	BATCH = 32,
	VARIABLES = 8,
	CAPACITY = 1024,
	NAMES = 1024,
	NODES = 32,  /* of a large step; less the step of 1 no-op, and by 31, it is the cost of a node */
	KEPT = 1024, /* writes until a thread keeps enough blocks */
	MAX_OPERATIONS = 96
};

/*
 * The marks. check_costs finds the stores into them in the trace of memory accesses. Each pair has
 * a cache line of its own, so that no mark counts as a line of the operation.
 */
static struct {
	_Alignas(64) volatile char begin, end;
} marks[MAX_OPERATIONS];

static weir_ring *ring;
static weir_mpsc *mpsc;
static weir_spsc *spsc;
static int shm_file;
static weir_shm_ring *shm_ring;
static weir_shm_latest *shm_latest;
static struct weir_shm_frame shm_frame;
static unsigned char message[64];
static weir_queue *queue;
static weir_priority_queue *priority;
static weir_critical_section *section;
static weir_var *vars[VARIABLES];
static _Alignas(64) weir_read reads[VARIABLES];
static weir_var_cache cache;
static weir_read_section reading = {WEIR_READ_SECTION_INIT};
static weir_tensor *value;
static weir_store *store;
static weir_iterator *iterator;
static uint64_t numbers[BATCH];
static uint64_t inline_version;
static struct weiri_eventcount event;
static volatile uint64_t sink;

static void must(enum weir_status status)
{
	if (status != WEIR_OK)
		exit(3);
}

static void nothing(void)
{
}

/* -- rings ------------------------------------------------------------------------------------- */

static void ring_of(enum weir_ring_format format)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};

	must(weir_ring_create(CAPACITY, &options, &ring, NULL));
}

static void ring_16(void)
{
	ring_of(WEIR_RING_FORMAT_BEST);
}

static void ring_64(void)
{
	ring_of(WEIR_RING_FORMAT_LTQ64);
}

static void ring_spans(void)
{
	ring_of(weir_ring_memsize(
				1, &(struct weir_ring_options){WEIR_RING_OPTIONS_INIT, .format = WEIR_RING_FORMAT_SPAN16}) != 0
	            ? WEIR_RING_FORMAT_SPAN16
	            : WEIR_RING_FORMAT_BEST);
}

static void ring_end(void)
{
	weir_ring_destroy(ring, NULL);
}

static void ring_enqueue(void)
{
	must(weir_ring_try_enqueue(ring, 1));
}

static void ring_dequeue(void)
{
	uint64_t number;

	must(weir_ring_try_dequeue(ring, &number));
}

static void ring_enqueue_many(void)
{
	size_t done;

	must(weir_ring_try_enqueue_many(ring, numbers, BATCH, &done));
}

static void ring_dequeue_many(void)
{
	size_t done;

	must(weir_ring_try_dequeue_many(ring, numbers, BATCH, &done));
}

/* -- one consumer ------------------------------------------------------------------------------ */

static void mpsc_begin(void)
{
	must(weir_mpsc_create(CAPACITY, NULL, &mpsc, NULL));
}

static void mpsc_end(void)
{
	weir_mpsc_destroy(mpsc, NULL);
}

static void mpsc_enqueue(void)
{
	must(weir_mpsc_try_enqueue(mpsc, 1));
}

static void mpsc_dequeue(void)
{
	uint64_t number;

	must(weir_mpsc_try_dequeue(mpsc, &number));
}

static void mpsc_enqueue_many(void)
{
	size_t done;

	must(weir_mpsc_try_enqueue_many(mpsc, numbers, BATCH, &done));
}

static void mpsc_dequeue_many(void)
{
	size_t done;

	must(weir_mpsc_try_dequeue_many(mpsc, numbers, BATCH, &done));
}

/* -- one producer, one consumer ---------------------------------------------------------------- */

static void spsc_begin(void)
{
	must(weir_spsc_create(CAPACITY, NULL, &spsc, NULL));
}

static void spsc_end(void)
{
	weir_spsc_destroy(spsc, NULL);
}

static void spsc_enqueue(void)
{
	must(weir_spsc_try_enqueue(spsc, 1));
}

static void spsc_dequeue(void)
{
	uint64_t number;

	must(weir_spsc_try_dequeue(spsc, &number));
}

static void spsc_enqueue_many(void)
{
	size_t done;

	must(weir_spsc_try_enqueue_many(spsc, numbers, BATCH, &done));
}

static void spsc_dequeue_many(void)
{
	size_t done;

	must(weir_spsc_try_dequeue_many(spsc, numbers, BATCH, &done));
}

/* -- between processes ------------------------------------------------------------------------- */

static void shm_begin(void)
{
	shm_file = memfd_create("weir-cost", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (shm_file < 0)
		exit(3);
}

static void shm_ring_begin(void)
{
	shm_begin();
	must(weir_shm_ring_create(shm_file, CAPACITY, sizeof(message), NULL, &shm_ring, NULL));
}

static void shm_ring_end(void)
{
	must(weir_shm_ring_destroy(shm_ring, NULL));
	(void)close(shm_file);
}

static void shm_enqueue(void)
{
	must(weir_shm_ring_enqueue(shm_ring, message, sizeof(message), WEIR_NO_DEADLINE, NULL, NULL));
}

static void shm_dequeue(void)
{
	size_t size;

	must(weir_shm_ring_dequeue(shm_ring, message, sizeof(message), &size, WEIR_NO_DEADLINE, NULL, NULL));
}

static void shm_reserve_publish(void)
{
	must(weir_shm_ring_try_reserve(shm_ring, &shm_frame));
	must(weir_shm_ring_try_publish(shm_ring, &shm_frame, sizeof(message)));
}

static void shm_take_release(void)
{
	must(weir_shm_ring_try_take(shm_ring, &shm_frame));
	must(weir_shm_ring_release(shm_ring, &shm_frame));
}

static void shm_latest_begin(void)
{
	shm_begin();
	must(weir_shm_latest_create(shm_file, sizeof(message), NULL, &shm_latest, NULL));
	must(weir_shm_latest_write(shm_latest, message, sizeof(message), NULL, NULL));
}

static void shm_latest_end(void)
{
	must(weir_shm_latest_destroy(shm_latest, NULL));
	(void)close(shm_file);
}

static void shm_write(void)
{
	must(weir_shm_latest_write(shm_latest, message, sizeof(message), NULL, NULL));
}

static void shm_read(void)
{
	uint64_t version;
	size_t size;

	must(weir_shm_latest_try_read(shm_latest, 0, message, sizeof(message), &size, &version));
}

/* -- queues ------------------------------------------------------------------------------------ */

static void queue_begin(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY};

	must(weir_queue_create(&options, &queue, NULL));
}

static void queue_for_batches_begin(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY, .flags = WEIR_QUEUE_BATCHES};

	must(weir_queue_create(&options, &queue, NULL));
}

static void queue_end(void)
{
	must(weir_queue_destroy(queue, NULL));
}

static void queue_try_enqueue(void)
{
	must(weir_queue_try_enqueue(queue, numbers));
}

static void queue_try_dequeue(void)
{
	void *item;

	must(weir_queue_try_dequeue(queue, &item));
}

static void queue_try_enqueue_many(void)
{
	void *items[BATCH] = {0};
	size_t done;

	must(weir_queue_try_enqueue_many(queue, items, BATCH, &done));
}

static void queue_try_dequeue_many(void)
{
	void *items[BATCH];
	size_t done;

	must(weir_queue_try_dequeue_many(queue, items, BATCH, &done));
}

/* A shuffle queue in which a draw has a choice. */
static void shuffle_begin(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY, .order = WEIR_QUEUE_SHUFFLE,
	                                     .seed = 1};

	must(weir_queue_create(&options, &queue, NULL));
	queue_try_enqueue_many();
}

static void priority_enqueue(void)
{
	static uint64_t draw = 1;

	draw = draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	must(weir_priority_queue_try_enqueue(priority, (int64_t)(draw >> 40), 1));
}

static void priority_dequeue(void)
{
	int64_t key;
	uint64_t number;

	must(weir_priority_queue_try_dequeue(priority, &key, &number));
}

static void priority_begin(void)
{
	must(weir_priority_queue_create(CAPACITY, NULL, &priority, NULL));
	for (int i = 0; i < BATCH; i++)
		priority_enqueue();
}

static void priority_end(void)
{
	must(weir_priority_queue_destroy(priority, NULL));
}

static void queue_enqueue(void)
{
	must(weir_queue_enqueue(queue, numbers, WEIR_NO_DEADLINE, NULL, NULL));
}

static void queue_dequeue(void)
{
	void *item;

	must(weir_queue_dequeue(queue, &item, WEIR_NO_DEADLINE, NULL, NULL));
}

/* -- critical sections ------------------------------------------------------------------------- */

static void section_begin(void)
{
	must(weir_critical_section_create(NULL, &section, NULL));
}

static void section_end(void)
{
	must(weir_critical_section_destroy(section, NULL));
}

static enum weir_status inside(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

static void section_execute(void)
{
	must(weir_critical_section_execute(section, inside, NULL, WEIR_NO_DEADLINE, NULL, NULL));
}

static void notify(void)
{
	weiri_eventcount_notify(&event, 1);
}

/* -- variables --------------------------------------------------------------------------------- */

static void vars_begin(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};

	must(weir_tensor_scalar_i64(1, &value));
	for (int i = 0; i < VARIABLES; i++)
		must(weir_var_create(value, &options, &vars[i], NULL));
	weir_var_cache_init(&cache, vars[0]);
}

static void vars_end(void)
{
	weir_var_cache_release(&cache);
	for (int i = 0; i < VARIABLES; i++)
		weir_var_destroy(vars[i], NULL);
	weir_tensor_release(value);
}

static void read_release(void)
{
	must(weir_var_read(vars[0], &reads[0]));
	weir_read_release(&reads[0]);
}

static void read_cached(void)
{
	sink = weir_var_cache_read(&cache)->version;
}

static void reading_begin(void)
{
	vars_begin();
	must(weir_read_section_begin(&reading));
}

static void reading_end(void)
{
	must(weir_read_section_end(&reading));
	vars_end();
}

static void read_peek(void)
{
	sink = weir_read_section_peek(&reading, vars[0])->version;
}

static void read_section_of_16(void)
{
	uint64_t sum = 0;

	must(weir_read_section_begin(&reading));
	for (int i = 0; i < 16; i++)
		sum += weir_read_section_peek(&reading, vars[i % VARIABLES])->version;
	must(weir_read_section_end(&reading));
	sink = sum;
}

static void read_look_release(void)
{
	must(weir_var_read(vars[0], &reads[0]));
	sink = *(const uint64_t *)weir_tensor_data(reads[0].tensor);
	weir_read_release(&reads[0]);
}

static void assign(void)
{
	must(weir_var_assign(vars[0], value, WEIR_NO_DEADLINE, NULL, NULL));
}

static void snapshot(size_t count)
{
	must(weir_var_snapshot(vars, count, reads, NULL));
	weir_read_release_many(reads, count);
}

static void snapshot_2(void)
{
	snapshot(2);
}

static void snapshot_8(void)
{
	snapshot(8);
}

static void commit_2(void)
{
	struct weir_commit_part parts[2];

	for (int i = 0; i < 2; i++)
		parts[i] = (struct weir_commit_part){vars[i], weir_var_version(vars[i]), value};
	must(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL));
}

/* -- names ------------------------------------------------------------------------------------- */

static const struct weir_resource_type things = {"thing", NULL};

static void names_begin(void)
{
	char name[16];

	must(weir_store_create(NULL, &store, NULL));
	for (int i = 0; i < NAMES; i++) {
		(void)snprintf(name, sizeof(name), "variable/%d", i);
		must(weir_store_add(store, NULL, name, &things, &marks, NULL, NULL));
	}
}

static void names_end(void)
{
	weir_store_destroy(store, NULL);
}

static void find_release(void)
{
	weir_resource *resource;

	must(weir_store_find(store, NULL, "variable/523", &things, &resource, NULL));
	weir_resource_release(resource);
}

/* -- datasets ---------------------------------------------------------------------------------- */

static void range_begin(void)
{
	weir_dataset *range;

	must(weir_dataset_range(0, INT64_MAX, 1, NULL, &range, NULL));
	must(weir_iterator_create(range, NULL, &iterator, NULL));
	weir_dataset_release(range);
}

static void range_end(void)
{
	must(weir_iterator_destroy(iterator, NULL));
}

static void next_release(void)
{
	weir_tensor *part;

	must(weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, &part, 1, NULL));
	weir_tensor_release(part);
}

/* -- tables of rows of 256 bytes ------------------------------------------------------------------ */

enum { ROWS = 100 };

static weir_table *rows;
static weir_tensor *plus_one, *few, *many;

static void rows_begin(int64_t count)
{
	struct weir_table_options options = {WEIR_TABLE_OPTIONS_INIT, .dtype = WEIR_I64, .rows = count,
	                                     .row = &(weir_shape){1, {32}}};
	int64_t indices[ROWS];

	for (int64_t i = 0; i < ROWS; i++)
		indices[i] = i * (count / ROWS);
	must(weir_table_create(NULL, &options, &rows, NULL));
	must(weir_tensor_scalar_i64(1, &plus_one));
	must(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {1}}, indices, NULL, &few));
	must(weir_tensor_copy_of(WEIR_I64, &(weir_shape){1, {ROWS}}, indices, NULL, &many));
}

static void rows_begin_32_mib(void)
{
	rows_begin((int64_t)1 << 17);
}

static void rows_begin_1_gib(void)
{
	rows_begin((int64_t)1 << 22);
}

static void rows_end(void)
{
	weir_tensor_release(plus_one);
	weir_tensor_release(few);
	weir_tensor_release(many);
	must(weir_table_destroy(rows, NULL));
}

static void update_1_row(void)
{
	must(weir_table_scatter(rows, WEIR_SCATTER_ADD, few, plus_one, WEIR_NO_DEADLINE, NULL, NULL));
}

static void update_100_rows(void)
{
	must(weir_table_scatter(rows, WEIR_SCATTER_ADD, many, plus_one, WEIR_NO_DEADLINE, NULL, NULL));
}

/* -- variables of bytes ------------------------------------------------------------------------ */

struct words {
	uint64_t word[8];
};

static void inline_assign(void)
{
	struct words next = {{1}};

	must(weir_var_assign_value(vars[0], WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL));
}

static enum weir_status add_one(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	(void)context, (void)current, (void)error;
	((struct words *)next->room)->word[0]++;
	return WEIR_OK;
}

static void inline_update(void)
{
	must(weir_var_update_value(vars[0], add_one, NULL, WEIR_NO_DEADLINE, NULL, NULL));
}

static void inline_copy(void)
{
	struct words copy;

	must(weir_var_read_into(vars[0], &copy, sizeof(copy), NULL, NULL));
	sink = copy.word[0];
}

static void inline_commit(void)
{
	struct words next = {{1}};
	struct weir_value_part parts[2];

	for (int i = 0; i < 2; i++)
		parts[i] = (struct weir_value_part){vars[i], inline_version, WEIR_VALUE_OF(next)};
	must(weir_var_commit_values(parts, 2, WEIR_NO_DEADLINE, NULL, NULL));
	inline_version++;
}

/* Writes until the thread keeps enough blocks, so that the allocator has no part in what follows. */
static void inline_begin(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(struct words)};
	struct words first = {{0}};

	for (int i = 0; i < VARIABLES; i++)
		must(weir_var_create_value(WEIR_VALUE_OF(first), &options, &vars[i], NULL));
	inline_version = 1;
	for (int i = 0; i < KEPT; i++)
		inline_commit();
}

static void inline_end(void)
{
	for (int i = 0; i < VARIABLES; i++)
		weir_var_destroy(vars[i], NULL);
}

/* -- steps ------------------------------------------------------------------------------------- */

static weir_graph *graph;
static weir_session *session;
static weir_tensor_queue *tuples;
static weir_node *targets[NODES];
static weir_output fetch;
static size_t target_count;
static size_t fetch_count;

/* No pool: each step runs on this thread, as the steps of an idle pool's caller do. */
static void steps_begin(void)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};

	must(weir_graph_create(NULL, &graph, NULL));
	must(weir_session_create(graph, &options, &session, NULL));
	target_count = 0;
	fetch_count = 0;
}

static void steps_end(void)
{
	must(weir_session_destroy(session, NULL));
	must(weir_graph_destroy(graph, NULL));
}

static void no_ops(size_t count, bool chained)
{
	steps_begin();
	for (size_t i = 0; i < count; i++) {
		must(weir_op_no_op(graph, NULL, &targets[i], NULL));
		if (chained && i != 0)
			must(weir_graph_add_control(graph, targets[i - 1], targets[i], NULL));
	}
	target_count = count;
}

static void one_no_op(void)
{
	no_ops(1, false);
}

static void chain_of_no_ops(void)
{
	no_ops(NODES, true);
}

static void row_of_no_ops(void)
{
	no_ops(NODES, false);
}

static void chain_of_adds(void)
{
	weir_output one;
	weir_tensor *scalar;

	steps_begin();
	must(weir_tensor_scalar_f32(1, &scalar));
	must(weir_op_constant(graph, NULL, scalar, &one, NULL));
	weir_tensor_release(scalar);
	fetch = one;
	for (int i = 0; i < NODES; i++)
		must(weir_op_add(graph, NULL, fetch, one, &fetch, NULL));
	fetch_count = 1;
}

/* One enqueue and, after it, one dequeue. */
static void through_a_queue(void)
{
	struct weir_tensor_component component = {.dtype = WEIR_F32};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 1, .components = &component,
	                                            .component_count = 1};
	weir_tensor *scalar;
	weir_output one;

	steps_begin();
	must(weir_tensor_queue_create(&options, &tuples, NULL));
	must(weir_tensor_scalar_f32(1, &scalar));
	must(weir_op_constant(graph, NULL, scalar, &one, NULL));
	weir_tensor_release(scalar);
	must(weir_op_enqueue(graph, NULL, tuples, &one, 1, &targets[0], NULL));
	must(weir_op_dequeue(graph, NULL, tuples, &fetch, 1, &targets[1], NULL));
	must(weir_graph_add_control(graph, targets[0], targets[1], NULL));
	fetch_count = 1;
}

static void through_a_queue_end(void)
{
	steps_end();
	must(weir_tensor_queue_destroy(tuples, NULL));
}

/* -- functions: their steps compare with the step of 1 no-op ------------------------------------ */

static weir_function *condition;
static weir_function *function;
static weir_tensor *answers[2];
static int turns;

/* The result is the argument. */
static enum weir_status build_pass(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_identity(body, NULL, arguments[0].output, &results[0], error);
}

/* True 31 times, then false. */
static enum weir_status again(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	turns = (turns + 1) % NODES;
	call->outputs[0] = weir_tensor_retain(answers[turns != 0]);
	return WEIR_OK;
}

static const struct weir_kernel again_kernel = {WEIR_KERNEL_INIT, .name = "again", .flags = WEIR_KERNEL_SHORT,
                                                .run = again};

static enum weir_status build_again(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	struct weir_output_type type = {WEIR_BOOL, &weir_shape_scalar};

	(void)context;
	(void)arguments;
	return weir_op_kernel(body, NULL, &again_kernel, NULL, NULL, 0, &type, 1, NULL, 0, results, NULL, error);
}

static weir_function *function_of(weir_function_fn *build)
{
	static const struct weir_parameter parameter = {.name = "x"};
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build, .parameters = &parameter,
	                                        .parameter_count = 1, .result_count = 1};
	weir_function *made;

	must(weir_function_create(&options, &made, NULL));
	return made;
}

/* A constant with NODES rows, or a scalar. */
static struct weir_argument constant_of(bool in_rows)
{
	static const float zeros[NODES];
	weir_shape shape = {.rank = in_rows, .dims = {NODES}};
	struct weir_argument argument = {.tensor = NULL};
	weir_tensor *tensor;

	must(weir_tensor_copy_of(WEIR_F32, &shape, zeros, NULL, &tensor));
	must(weir_op_constant(graph, NULL, tensor, &argument.output, NULL));
	weir_tensor_release(tensor);
	return argument;
}

static void functions_begin(void)
{
	steps_begin();
	turns = 0;
	must(weir_tensor_scalar_bool(false, &answers[0]));
	must(weir_tensor_scalar_bool(true, &answers[1]));
	condition = function_of(build_again);
	function = function_of(build_pass);
	fetch_count = 1;
}

static void functions_end(void)
{
	steps_end();
	must(weir_function_destroy(condition, NULL));
	must(weir_function_destroy(function, NULL));
	weir_tensor_release(answers[0]);
	weir_tensor_release(answers[1]);
}

static void chain_of_calls(void)
{
	struct weir_argument argument;

	functions_begin();
	argument = constant_of(false);
	for (int i = 0; i < NODES; i++) {
		must(weir_op_call(graph, NULL, function, &argument, 1, &fetch, NULL, NULL));
		argument.output = fetch;
	}
}

static void loop(void)
{
	struct weir_argument argument;

	functions_begin();
	argument = constant_of(false);
	must(weir_op_while(graph, NULL, condition, function, &argument, 1, NULL, &fetch, NULL, NULL));
}

static void map_of_rows(void)
{
	struct weir_argument argument;

	functions_begin();
	argument = constant_of(true);
	must(weir_op_map(graph, NULL, function, &argument, 1, NULL, &fetch, NULL, NULL));
}

static void step_until(uint64_t deadline_ns)
{
	weir_tensor *result;

	must(weir_session_run(session, NULL, 0, &fetch, fetch_count, &result, targets, target_count, deadline_ns, NULL,
	                      NULL));
	if (fetch_count != 0)
		weir_tensor_release(result);
}

static void step(void)
{
	step_until(WEIR_NO_DEADLINE);
}

static void step_in_time(void)
{
	step_until(WEIR_NO_DEADLINE - 1);
}

static weir_callable *callable;

static void callable_begin(void)
{
	no_ops(1, false);
	must(weir_session_compile(session, NULL, 0, NULL, 0, targets, 1, NULL, &callable, NULL));
}

static void callable_end(void)
{
	weir_callable_release(callable);
	steps_end();
}

static void callable_run(void)
{
	must(weir_callable_run(callable, NULL, NULL, WEIR_NO_DEADLINE, NULL, NULL, NULL));
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct operation {
	const char *name;
	void (*begin)(void);
	void (*before)(void);
	void (*call)(void); /* runs between the marks */
	void (*after)(void);
	void (*end)(void);
} operations[] = {
	/*
	 * The first is the cost of a call through this table; check_costs subtracts it from all others.
	 */
	{"nothing", nothing, nothing, nothing, nothing, nothing},
	{"ring enqueue", ring_16, nothing, ring_enqueue, ring_dequeue, ring_end},
	{"ring dequeue", ring_16, ring_enqueue, ring_dequeue, nothing, ring_end},
	{"ring enqueue of 32", ring_16, nothing, ring_enqueue_many, ring_dequeue_many, ring_end},
	{"ring dequeue of 32", ring_16, ring_enqueue_many, ring_dequeue_many, nothing, ring_end},
	{"ring LTQ64 enqueue", ring_64, nothing, ring_enqueue, ring_dequeue, ring_end},
	{"ring LTQ64 dequeue", ring_64, ring_enqueue, ring_dequeue, nothing, ring_end},
	{"ring LTQ64 enqueue of 32", ring_64, nothing, ring_enqueue_many, ring_dequeue_many, ring_end},
	{"ring LTQ64 dequeue of 32", ring_64, ring_enqueue_many, ring_dequeue_many, nothing, ring_end},
	{"ring SPAN16 enqueue", ring_spans, nothing, ring_enqueue, ring_dequeue, ring_end},
	{"ring SPAN16 dequeue", ring_spans, ring_enqueue, ring_dequeue, nothing, ring_end},
	{"ring SPAN16 enqueue of 32", ring_spans, nothing, ring_enqueue_many, ring_dequeue_many, ring_end},
	{"ring SPAN16 dequeue of 32", ring_spans, ring_enqueue_many, ring_dequeue_many, nothing, ring_end},
	{"mpsc enqueue", mpsc_begin, nothing, mpsc_enqueue, mpsc_dequeue, mpsc_end},
	{"mpsc dequeue", mpsc_begin, mpsc_enqueue, mpsc_dequeue, nothing, mpsc_end},
	{"mpsc dequeue of 32", mpsc_begin, mpsc_enqueue_many, mpsc_dequeue_many, nothing, mpsc_end},
	{"spsc enqueue", spsc_begin, nothing, spsc_enqueue, spsc_dequeue, spsc_end},
	{"spsc dequeue", spsc_begin, spsc_enqueue, spsc_dequeue, nothing, spsc_end},
	{"spsc enqueue of 32", spsc_begin, nothing, spsc_enqueue_many, spsc_dequeue_many, spsc_end},
	{"spsc dequeue of 32", spsc_begin, spsc_enqueue_many, spsc_dequeue_many, nothing, spsc_end},
	{"shm ring enqueue of 64 bytes", shm_ring_begin, nothing, shm_enqueue, shm_dequeue, shm_ring_end},
	{"shm ring dequeue of 64 bytes", shm_ring_begin, shm_enqueue, shm_dequeue, nothing, shm_ring_end},
	{"shm ring reserve, publish", shm_ring_begin, nothing, shm_reserve_publish, shm_dequeue, shm_ring_end},
	{"shm ring take, release", shm_ring_begin, shm_enqueue, shm_take_release, nothing, shm_ring_end},
	{"shm latest write of 64 bytes", shm_latest_begin, nothing, shm_write, nothing, shm_latest_end},
	{"shm latest read of 64 bytes", shm_latest_begin, nothing, shm_read, nothing, shm_latest_end},
	{"queue try enqueue", queue_begin, nothing, queue_try_enqueue, queue_try_dequeue, queue_end},
	{"queue try dequeue", queue_begin, queue_try_enqueue, queue_try_dequeue, nothing, queue_end},
	{"queue enqueue", queue_begin, nothing, queue_enqueue, queue_dequeue, queue_end},
	{"queue dequeue", queue_begin, queue_enqueue, queue_dequeue, nothing, queue_end},
	{"queue try enqueue of 32", queue_begin, nothing, queue_try_enqueue_many, queue_try_dequeue_many, queue_end},
	{"queue try dequeue of 32", queue_begin, queue_try_enqueue_many, queue_try_dequeue_many, nothing, queue_end},
	{"queue for batches try enqueue of 32", queue_for_batches_begin, nothing, queue_try_enqueue_many,
     queue_try_dequeue_many, queue_end},
	{"queue for batches try dequeue of 32", queue_for_batches_begin, queue_try_enqueue_many, queue_try_dequeue_many,
     nothing, queue_end},
	{"shuffle queue try enqueue", shuffle_begin, nothing, queue_try_enqueue, queue_try_dequeue, queue_end},
	{"shuffle queue try dequeue", shuffle_begin, queue_try_enqueue, queue_try_dequeue, nothing, queue_end},
	{"priority enqueue", priority_begin, nothing, priority_enqueue, priority_dequeue, priority_end},
	{"priority dequeue", priority_begin, priority_enqueue, priority_dequeue, nothing, priority_end},
	{"critical section, free", section_begin, nothing, section_execute, nothing, section_end},
	{"eventcount notify, no waiter", nothing, nothing, notify, nothing, nothing},
	{"variable read, release", vars_begin, nothing, read_release, nothing, vars_end},
	{"variable read, look, release", vars_begin, nothing, read_look_release, nothing, vars_end},
	{"variable read by a cache", vars_begin, nothing, read_cached, nothing, vars_end},
	{"variable assign", vars_begin, nothing, assign, nothing, vars_end},
	{"snapshot of 2, release", vars_begin, nothing, snapshot_2, nothing, vars_end},
	{"snapshot of 8, release", vars_begin, nothing, snapshot_8, nothing, vars_end},
	{"commit of 2", vars_begin, nothing, commit_2, nothing, vars_end},
	{"table of 1 GiB, update of a row", rows_begin_1_gib, nothing, update_1_row, nothing, rows_end},
	{"table of 32 MiB, update of 100 rows", rows_begin_32_mib, nothing, update_100_rows, nothing, rows_end},
	{"table of 1 GiB, update of 100 rows", rows_begin_1_gib, nothing, update_100_rows, nothing, rows_end},
	{"inline assign of 64 bytes", inline_begin, nothing, inline_assign, nothing, inline_end},
	{"inline update of 64 bytes", inline_begin, nothing, inline_update, nothing, inline_end},
	{"inline copy of 64 bytes", inline_begin, nothing, inline_copy, nothing, inline_end},
	{"inline commit of 2 x 64 bytes", inline_begin, nothing, inline_commit, nothing, inline_end},

	{"step of 1 no-op", one_no_op, nothing, step, nothing, steps_end},
	{"run of 1 no-op by a callable", callable_begin, nothing, callable_run, nothing, callable_end},
	{"step of 32 no-ops in a chain", chain_of_no_ops, nothing, step, nothing, steps_end},
	{"step of 32 no-ops in a chain, deadline", chain_of_no_ops, nothing, step_in_time, nothing, steps_end},
	{"step of 32 no-ops without edges", row_of_no_ops, nothing, step, nothing, steps_end},
	{"step of 32 f32 adds in a chain", chain_of_adds, nothing, step, nothing, steps_end},
	{"step of an enqueue and a dequeue", through_a_queue, nothing, step, nothing, through_a_queue_end},
	{"step of 32 calls in a chain", chain_of_calls, nothing, step, nothing, functions_end},
	{"step of a loop of 31 iterations", loop, nothing, step, nothing, functions_end},
	{"step of a map of 32 rows", map_of_rows, nothing, step, nothing, functions_end},
	{"variable read in a section", reading_begin, nothing, read_peek, nothing, reading_end},
	{"section of 16 reads", vars_begin, nothing, read_section_of_16, nothing, vars_end},
	{"name look-up, release", names_begin, nothing, find_release, nothing, names_end},
	{"iterator next of a range, release", range_begin, nothing, next_release, nothing, range_end},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };
_Static_assert((int)OPERATIONS <= (int)MAX_OPERATIONS, "each operation has its marks");

static void perform(const struct operation *operation, size_t index)
{
	operation->begin();
	for (int i = 0; i < WARM_UP + MEASURED; i++) {
		operation->before();
		if (i >= WARM_UP)
			marks[index].begin = 1;
		operation->call();
		if (i >= WARM_UP)
			marks[index].end = 1;
		operation->after();
	}
	operation->end();
}

/*
 * For dl_iterate_phdr(), which names the program itself first: prints where its code lies, and
 * stops.
 */
static int print_place(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t low = UINT64_MAX, high = 0;

	(void)size;
	(void)context;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uint64_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
			continue;
		low = from < low ? from : low;
		high = from + info->dlpi_phdr[i].p_memsz > high ? from + info->dlpi_phdr[i].p_memsz : high;
	}
	(void)printf("code %llx %llx %llx\n", (unsigned long long)info->dlpi_addr, (unsigned long long)low,
	             (unsigned long long)high);
	return 1;
}

int main(void)
{
	weiri_eventcount_init(&event);
	/*
	 * Decides now which kind of fence the process uses, so that all operations are measured with
	 * it. In other processes the first thread that uses Weir does this.
	 */
	weiri_fence_setup();
	(void)printf("compiler %s %s\n", WEIR_BENCH_COMPILER, WEIR_BENCH_MACHINE);
	(void)dl_iterate_phdr(print_place, NULL);
	(void)printf("stack %llx\n", (unsigned long long)(uintptr_t)__builtin_frame_address(0));
	for (size_t i = 0; i < OPERATIONS; i++) {
		(void)printf("operation %llx %llx %d %s\n", (unsigned long long)(uintptr_t)&marks[i].begin,
		             (unsigned long long)(uintptr_t)&marks[i].end, MEASURED, operations[i].name);
	}
	for (size_t i = 0; i < OPERATIONS; i++)
		perform(&operations[i], i);
	return 0;
}
