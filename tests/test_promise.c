/*
 * test_promise.c - kernels that only start: what ends their node, also if they end it twice or
 * never; and what a kind of kernel tells about its nodes.
 */
#include <pthread.h>
#include <weir/critical_section.h>
#include <weir/pool.h>

#include "failing_allocator.h"
#include "graph_kit.h"
#include "run/countdown.h"

/* What a started kernel does, and what it saw. */
struct keeper {
	enum { FULFILLS, FAILS, GIVES_NOTHING, GIVES_AN_INTEGER, FORGETS, REFUSES, KEEPS, FULFILLS_AND_REFUSES } does;
	weir_promise *kept;
	struct weiri_latch started; /* set once `kept` is */
	enum weir_status second;    /* of a second call on the promise */
};

static enum weir_status fulfill(weir_promise *promise, weir_tensor *value, weir_error *error)
{
	enum weir_status status = weir_promise_fulfill(promise, &value, 1, error);

	if (status != WEIR_OK)
		weir_tensor_release(value);
	return status;
}

static enum weir_status refuse(weir_error *error)
{
	*error = (weir_error){WEIR_DATA_LOSS, "no card in the slot"};
	return WEIR_DATA_LOSS;
}

static enum weir_status start(void *context, const struct weir_kernel_call *call, weir_promise *promise,
                              weir_error *error)
{
	struct keeper *keeper = context;
	weir_error cause = {WEIR_DATA_LOSS, "the card was pulled"};

	(void)call;
	switch (keeper->does) {
	case REFUSES: return refuse(error);
	case FULFILLS_AND_REFUSES: keeper->second = fulfill(promise, kit_f32(3), NULL); return refuse(error);
	case KEEPS:
		keeper->kept = promise;
		weiri_latch_set(&keeper->started);
		return WEIR_OK;
	case FULFILLS:
		cr_expect_eq(fulfill(promise, kit_f32(2), NULL), WEIR_OK);
		keeper->second = fulfill(promise, kit_f32(3), NULL);
		break;
	case FAILS:
		cr_expect_eq(weir_promise_fail(promise, &cause, NULL), WEIR_OK);
		keeper->second = weir_promise_fail(promise, &cause, NULL);
		break;
	case GIVES_NOTHING: keeper->second = weir_promise_fulfill(promise, NULL, 0, NULL); break;
	case GIVES_AN_INTEGER: keeper->second = fulfill(promise, kit_i64(1), NULL); break;
	default: break;
	}
	weir_promise_release(promise);
	return WEIR_OK;
}

static const struct weir_kernel keeper_kernel = {WEIR_KERNEL_INIT, .name = "keeper", .start = start};

static weir_output a_keeper(weir_graph *graph, struct keeper *keeper)
{
	weir_shape scalar = kit_shape(0);
	struct weir_output_type type = {WEIR_F32, &scalar};
	weir_output out;

	weiri_latch_init(&keeper->started);
	cr_assert_eq(weir_op_kernel(graph, "slot", &keeper_kernel, keeper, NULL, 0, &type, 1, NULL, 0, &out, NULL, NULL),
	             WEIR_OK);
	return out;
}

static void expect_end(struct keeper keeper, enum weir_status status, const char *message, enum weir_status second)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		weir_graph *graph = kit_graph();
		weir_session *session = kit_session(graph, threads);
		weir_output out = a_keeper(graph, &keeper);
		weir_tensor *result = NULL;
		weir_error error = {WEIR_OK, ""};

		cr_expect_eq(weir_session_run(session, NULL, 0, &out, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &error),
		             status, "%s", error.message);
		cr_expect_str_eq(error.message, message);
		cr_expect_eq(keeper.second, second);
		weir_tensor_release(result);
		kit_end(session, graph);
	}
}

Test(promise, a_start_may_end_its_node_and_a_second_end_is_refused)
{
	expect_end((struct keeper){.does = FULFILLS}, WEIR_OK, "", WEIR_FAILED_PRECONDITION);
	expect_end((struct keeper){.does = FAILS}, WEIR_DATA_LOSS, "keeper \"slot\": the card was pulled",
	           WEIR_FAILED_PRECONDITION);
	expect_end((struct keeper){.does = FULFILLS_AND_REFUSES}, WEIR_OK, "", WEIR_OK);
}

Test(promise, a_kernel_that_breaks_its_word_fails_the_step)
{
	expect_end((struct keeper){.does = GIVES_NOTHING}, WEIR_INVALID_ARGUMENT,
	           "keeper \"slot\": the kernel gave 0 outputs, expected 1", WEIR_INVALID_ARGUMENT);
	expect_end((struct keeper){.does = GIVES_AN_INTEGER}, WEIR_INVALID_ARGUMENT,
	           "keeper \"slot\": the kernel promised f32 [] as output 0, and gave i64 []", WEIR_INVALID_ARGUMENT);
	expect_end((struct keeper){.does = FORGETS}, WEIR_INVALID_ARGUMENT,
	           "keeper \"slot\": the kernel released its promise and had not fulfilled it", WEIR_OK);
	expect_end((struct keeper){.does = REFUSES}, WEIR_DATA_LOSS, "keeper \"slot\": no card in the slot", WEIR_OK);
}

struct run {
	weir_session *session;
	weir_output fetch;
	uint64_t deadline_ns;
	weir_tensor *result;
	weir_error error;
	enum weir_status status;
};

static void *run_once(void *context)
{
	struct run *run = context;

	run->status = weir_session_run(run->session, NULL, 0, &run->fetch, 1, &run->result, NULL, 0, run->deadline_ns, NULL,
	                               &run->error);
	return NULL;
}

static int has_started(void *context)
{
	return weiri_latch_is_set(context);
}

Test(promise, a_promise_is_fulfilled_on_another_thread)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		weir_graph *graph = kit_graph();
		struct keeper keeper = {.does = KEEPS};
		struct run run = {kit_session(graph, threads), a_keeper(graph, &keeper), WEIR_NO_DEADLINE, NULL, {0}, WEIR_OK};
		pthread_t thread;

		cr_assert_eq(pthread_create(&thread, NULL, run_once, &run), 0);
		kit_wait_for(has_started, &keeper.started, "the kernel to start");
		cr_expect_eq(fulfill(weir_promise_retain(keeper.kept), kit_f32(5), NULL), WEIR_OK);
		weir_promise_release(keeper.kept);
		cr_assert_eq(pthread_join(thread, NULL), 0);
		cr_assert_eq(run.status, WEIR_OK, "%s", run.error.message);
		cr_expect_eq(kit_f32_at(run.result, 0), 5.0f);
		weir_tensor_release(run.result);
		/* The step has gone; the promise has not. */
		cr_expect_eq(fulfill(keeper.kept, kit_f32(6), NULL), WEIR_FAILED_PRECONDITION);
		weir_promise_release(keeper.kept);
		kit_end(run.session, graph);
	}
}

Test(promise, a_deadline_leaves_a_kernel_behind_that_never_ends)
{
	weir_graph *graph = kit_graph();
	struct keeper keeper = {.does = KEEPS};
	struct run run = {kit_session(graph, 1), a_keeper(graph, &keeper), 0, NULL, {0}, WEIR_OK};

	for (uint64_t length_ns = 10000000; !weiri_latch_is_set(&keeper.started); length_ns *= 2) {
		cr_assert(length_ns < KIT_PATIENCE_NS);
		run.deadline_ns = weir_deadline_in(length_ns);
		(void)run_once(&run);
		cr_expect_eq(run.status, WEIR_DEADLINE_EXCEEDED);
	}
	/* The session waits for the promise, which still may be kept. */
	weir_promise_release(keeper.kept);
	kit_end(run.session, graph);
}

/* -- kinds ------------------------------------------------------------------------------------- */

static enum weir_status note_thread(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)call;
	(void)error;
	*(pthread_t *)context = pthread_self();
	return WEIR_OK;
}

Test(promise, a_short_kernel_runs_where_its_inputs_ended)
{
	const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "note", .flags = WEIR_KERNEL_SHORT,
	                                   .run = note_thread};
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 2);
	weir_node *node;
	pthread_t thread;

	cr_assert_eq(weir_op_kernel(graph, NULL, &kernel, &thread, NULL, 0, NULL, 0, NULL, 0, NULL, &node, NULL), WEIR_OK);
	cr_expect_str_eq(weir_node_op(node), "note");
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(kit_run_target(session, node, NULL), WEIR_OK);
		cr_expect(pthread_equal(thread, pthread_self()));
	}
	kit_end(session, graph);
}

static enum weir_status infer_rows(void *context, const struct weir_kernel_spec inputs[], size_t input_count,
                                   struct weir_kernel_spec outputs[], size_t output_count, weir_error *error)
{
	(void)context;
	if (input_count != 1 || output_count != 1 || !inputs[0].ranked || inputs[0].shape.rank == 0) {
		*error = (weir_error){WEIR_INVALID_ARGUMENT, "a matrix is needed"};
		return WEIR_INVALID_ARGUMENT;
	}
	outputs[0] = (struct weir_kernel_spec){.dtype = WEIR_I64, .ranked = true};
	outputs[0].shape.rank = 1;
	outputs[0].shape.dims[0] = inputs[0].shape.dims[0];
	return WEIR_OK;
}

Test(promise, a_kind_infers_the_specs_of_its_nodes)
{
	const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "lengths", .run = note_thread, .infer = infer_rows};
	weir_graph *graph = kit_graph();
	weir_output matrix = kit_placeholder(graph, "m", WEIR_F32, kit_shape(2, 7, -1));
	weir_output scalar = kit_placeholder(graph, "s", WEIR_F32, kit_shape(0));
	enum weir_dtype dtype;
	weir_shape shape;
	weir_output out;
	weir_error error;

	cr_assert_eq(weir_op_kernel(graph, NULL, &kernel, NULL, &matrix, 1, NULL, 1, NULL, 0, &out, NULL, &error), WEIR_OK,
	             "%s", error.message);
	cr_assert_eq(weir_output_spec(out, &dtype, &shape, NULL), WEIR_OK);
	cr_expect_eq(dtype, WEIR_I64);
	cr_expect(shape.rank == 1 && shape.dims[0] == 7);
	cr_expect_eq(weir_op_kernel(graph, "n", &kernel, NULL, &scalar, 1, NULL, 1, NULL, 0, &out, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "kernel \"n\": a matrix is needed");
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

static void expect_refused(const struct weir_kernel *kernel, const struct weir_use *uses, size_t count,
                           const char *message)
{
	weir_graph *graph = kit_graph();
	weir_error error;

	cr_expect_eq(weir_op_kernel(graph, "n", kernel, NULL, NULL, 0, NULL, 0, uses, count, NULL, NULL, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, message);
	cr_expect_eq(weir_graph_node_count(graph), 0);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}

Test(promise, bad_kinds_and_uses_are_refused)
{
	const struct weir_kernel good = {WEIR_KERNEL_INIT, .name = "note", .run = note_thread};
	struct weir_kernel bad = good;
	struct weir_use use = {NULL, WEIR_ACCESS_READ, NULL};

	bad.name = NULL;
	expect_refused(&bad, NULL, 0, "kernel \"n\": the kernel has no name");
	bad = good;
	bad.run = NULL;
	expect_refused(&bad, NULL, 0, "kernel \"n\": kernel \"note\" must have either run or start");
	bad = good;
	bad.start = start;
	expect_refused(&bad, NULL, 0, "kernel \"n\": kernel \"note\" must have either run or start");
	bad = good;
	bad.flags = 64;
	expect_refused(&bad, NULL, 0, "kernel \"n\": kernel \"note\" has unknown flags 0x40");
	expect_refused(&good, &use, 1, "kernel \"n\": use 0 has no object");
	use = (struct weir_use){&use, (enum weir_access)0, NULL};
	expect_refused(&good, &use, 1, "kernel \"n\": use 0: 0 is not an access");
	expect_refused(&good, NULL, 1, "kernel \"n\": uses is NULL");
	expect_refused(&good, &use, WEIR_KERNEL_MAX_USES + 1, "kernel \"n\": 65 uses; at most 64 are possible");
	cr_expect_eq(weir_promise_fulfill(NULL, NULL, 0, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_promise_fail(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(weir_promise_retain(NULL));
	weir_promise_release(NULL);
}

Test(promise, sections_know_what_kernels_use)
{
	const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "note", .run = note_thread};
	struct weir_use use = {&kernel, WEIR_ACCESS_WRITE, "the table"};
	weir_critical_section *sections[2];
	weir_graph *graph = kit_graph();
	weir_node *node;
	weir_error error;

	for (int i = 0; i < 2; i++) {
		cr_assert_eq(weir_critical_section_create(NULL, &sections[i], NULL), WEIR_OK);
		cr_assert_eq(weir_op_kernel(graph, NULL, &kernel, NULL, NULL, 0, NULL, 0, &use, 1, NULL, &node, NULL), WEIR_OK);
		cr_expect_eq(weir_op_critical_section(graph, NULL, sections[i], 0, &node, 1, NULL, 0, NULL, NULL, &error),
		             i == 0 ? WEIR_OK : WEIR_INVALID_ARGUMENT);
	}
	cr_expect(strstr(error.message, "object \"the table\" is also used") != NULL, "%s", error.message);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_critical_section_destroy(sections[i], NULL), WEIR_OK);
}
