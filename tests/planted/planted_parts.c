/*
 * planted_parts.c - as planted.c, for faults in functions, in control flow, and in steps that end
 * early. Some leave the library in a state in which nothing can be destroyed, so the program exits as
 * soon as the trace was checked.
 *
 * usage: planted_NAME WORK TEXT, as planted.c.
 */
#include <unistd.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "planted_kit.h"

enum { RUNS = 20, TRIES = 20 };
/* A kernel waits at most so long for what only a fault makes happen. */
#define PATIENCE_NS UINT64_C(2000000000)

static weir_graph *graph;
static weir_var *var;
static weir_trace *trace;
static struct planted_findings findings;
static char **command_line;

static weir_output constant(weir_graph *of, float value)
{
	weir_tensor *tensor = number(value);
	weir_output out;
	weir_error e;

	must(weir_op_constant(of, NULL, tensor, &out, &e), &e);
	weir_tensor_release(tensor);
	return out;
}

/* -- the check --------------------------------------------------------------------------------- */

/* Some faults show only with a certain timing of two threads. Runs the program again, at most TRIES times in all. */
static void try_again(void)
{
	const char *so_far = getenv("WEIR_PLANTED_TRIES");
	long tries = so_far != NULL ? strtol(so_far, NULL, 10) : 1;
	char text[24];

	if (tries >= TRIES)
		return;
	(void)fflush(stdout);
	(void)snprintf(text, sizeof(text), "%ld", tries + 1);
	if (setenv("WEIR_PLANTED_TRIES", text, 1) == 0)
		(void)execv("/proc/self/exe", command_line);
}

static void check_and_exit(void)
{
	int status;

	planted_check(trace, &findings);
	if (planted_is_missed(&findings))
		try_again();
	status = planted_status(&findings);
	(void)fflush(stdout);
	_Exit(status);
}

static weir_session *open_session(size_t threads, weir_pool *pool)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .trace = trace, .threads = threads, .pool = pool};
	weir_session *session;
	weir_error e;

	if (pool == NULL && threads == 0) {
		options.flags = WEIR_SESSION_NO_THREADS;
		options.shuffle_seed = 1;
	}
	must(weir_session_create(graph, &options, &session, &e), &e);
	return session;
}

/* -- functions --------------------------------------------------------------------------------- */

static const struct weir_parameter parameters[] = {{"x", WEIR_PARAMETER_TENSOR, WEIR_F32, &weir_shape_scalar},
                                                   {"w", WEIR_PARAMETER_VAR, WEIR_F32, NULL}};

static weir_function *new_function(weir_function_fn *build)
{
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build, .parameters = parameters,
	                                        .parameter_count = 2, .result_count = 1};
	weir_function *function;
	weir_error e;

	must(weir_function_create(&options, &function, &e), &e);
	return function;
}

/* Adds 1 to the variable, then reads it: an automatic edge keeps the order. */
static enum weir_status build_write_read(void *context, weir_graph *body, const struct weir_argument arguments[],
                                         weir_output results[], weir_error *error)
{
	weir_output sum;
	enum weir_status status = weir_op_assign_add(body, "write", arguments[1].var, arguments[0].output, &sum, error);

	(void)context;
	return status == WEIR_OK ? weir_op_read(body, "read", arguments[1].var, &results[0], error) : status;
}

static enum weir_status build_next(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_add(body, "next", arguments[0].output, constant(body, 1), &results[0], error);
}

static enum weir_status build_test(void *context, weir_graph *body, const struct weir_argument arguments[],
                                   weir_output results[], weir_error *error)
{
	(void)context;
	return weir_op_less(body, "less", arguments[0].output, constant(body, 5), &results[0], error);
}

/* Runs `fetch` often. With `counts`, each run finds the variable one larger. */
static void run_often(weir_output fetch, bool counts)
{
	weir_session *session = open_session(0, NULL);
	weir_error e;

	for (int i = 0; i < RUNS; i++) {
		weir_tensor *result;
		char line[96];
		float value;

		must(weir_session_run(session, NULL, 0, &fetch, 1, &result, NULL, 0, WEIR_NO_DEADLINE, NULL, &e), &e);
		value = *(const float *)weir_tensor_data(result);
		(void)snprintf(line, sizeof(line), "run %d found the value %g", i + 1, (double)value);
		if (counts && (int)value != i + 1)
			planted_report(&findings, line);
	}
	check_and_exit();
}

static void run_function(const char *work)
{
	struct weir_argument arguments[2] = {{.output = constant(graph, 1)}, {.var = var}};
	weir_function *functions[2] = {new_function(build_write_read), new_function(build_next)};
	weir_output out, predicate;
	weir_error e;

	if (strcmp(work, "body") == 0) {
		must(weir_op_call(graph, "call", functions[0], arguments, 2, &out, NULL, &e), &e);
	} else if (strcmp(work, "case") == 0) {
		must(weir_op_less(graph, NULL, constant(graph, 1), constant(graph, 2), &predicate, &e), &e);
		must(weir_op_cond(graph, "cond", predicate, functions[0], functions[1], arguments, 2, &out, NULL, &e), &e);
	} else {
		must(weir_op_while(graph, "loop", new_function(build_test), functions[1], arguments, 2, NULL, &out, NULL, &e),
		     &e);
	}
	run_often(out, strcmp(work, "body") == 0);
}

/* -- steps ------------------------------------------------------------------------------------- */

static _Atomic(int) begun, fired, go_on, later_ran, never;
static weir_cancel *token;

static void wait_for(_Atomic(int) *flag)
{
	uint64_t deadline_ns = weir_deadline_in(PATIENCE_NS);

	while (weiri_load_acquire(flag) == 0 && weir_now_ns() < deadline_ns)
		;
}

static enum weir_status run_later(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call, (void)error;
	weiri_store_release(&later_ran, 1);
	return WEIR_OK;
}

/* Takes until the kernel that must come later has run. */
static enum weir_status run_slow(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call, (void)error;
	wait_for(&later_ran);
	return WEIR_OK;
}

static enum weir_status run_quick(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call, (void)error;
	return WEIR_OK;
}

/* In the first run, stops the run, and goes on when the second run has begun; which then does not end. */
static enum weir_status run_first(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context, (void)call, (void)error;
	if (weiri_fetch_add_acq_rel(&begun, 1) != 0) {
		weiri_store_release(&go_on, 1);
		wait_for(&never);
		return WEIR_OK;
	}
	(void)weir_cancel_fire(token, NULL);
	weiri_store_release(&fired, 1);
	wait_for(&go_on);
	return WEIR_OK;
}

static weir_node *add_kernel(const char *name, weir_kernel_fn *run)
{
	struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "kernel", .run = run};
	weir_node *node;
	weir_error e;

	must(weir_op_kernel(graph, name, &kernel, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, &node, &e), &e);
	return node;
}

static weir_node *add_later(weir_node *const before[], size_t count)
{
	weir_node *later = add_kernel("later", run_later);
	weir_error e;

	for (size_t i = 0; i < count; i++)
		must(weir_graph_add_control(graph, before[i], later, &e), &e);
	return later;
}

/* Two kernels on two workers, and one that waits for both. */
static void run_join(void)
{
	weir_node *before[2] = {add_kernel("slow", run_slow), add_kernel("quick", run_quick)};
	weir_node *later = add_later(before, 2);
	weir_session *session = open_session(3, NULL);
	weir_error e;

	(void)weir_session_run(session, NULL, 0, NULL, 0, NULL, &later, 1, weir_deadline_in(2 * PATIENCE_NS), NULL, &e);
	check_and_exit();
}

/* A run that its caller leaves, while its kernel goes on; and another run. */
static void run_left(void)
{
	weir_node *first = add_kernel("first", run_first), *later = add_later(&first, 1);
	weir_session *session = open_session(3, NULL);
	weir_error e;

	must(weir_cancel_create(NULL, &token, &e), &e);
	(void)weir_session_run(session, NULL, 0, NULL, 0, NULL, &later, 1, WEIR_NO_DEADLINE, token, &e);
	wait_for(&fired);
	(void)weir_session_run(session, NULL, 0, NULL, 0, NULL, &later, 1, weir_deadline_in(PATIENCE_NS), NULL, &e);
	check_and_exit();
}

/* A dequeue that waits in a run that is cancelled. */
static void run_cancelled(void)
{
	struct weir_tensor_component component = {.dtype = WEIR_F32, .shape = &weir_shape_scalar};
	struct weir_tensor_queue_options line = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .name = "q",
	                                         .components = &component, .component_count = 1};
	struct weir_pool_options none = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_callable_options late = {WEIR_CALLABLE_OPTIONS_INIT, .flags = WEIR_CALLABLE_LATE_FEEDS};
	weir_tensor_queue *queue;
	weir_session *session;
	weir_callable *callable;
	weir_output item;
	weir_pool *pool;
	weir_run *run;
	weir_error e;

	must(weir_pool_create(&none, &pool, &e), &e);
	must(weir_tensor_queue_create(&line, &queue, &e), &e);
	must(weir_op_dequeue(graph, "take", queue, &item, 1, NULL, &e), &e);
	session = open_session(0, pool);
	must(weir_session_compile(session, NULL, 0, &item, 1, NULL, 0, &late, &callable, &e), &e);
	must(weir_run_open(callable, NULL, NULL, &run, &e), &e);
	weir_run_cancel(run, NULL);
	while (weir_pool_help(pool, 1) > 0)
		;
	check_and_exit();
}

int main(int argc, char *argv[])
{
	struct weir_trace_options options = {WEIR_TRACE_OPTIONS_INIT, .flags = WEIR_TRACE_CHECKSUMS};
	struct weir_var_options named = {WEIR_VAR_OPTIONS_INIT, .name = "w", .dtype = WEIR_F32,
	                                 .shape = &weir_shape_scalar};
	weir_error e;

	if (argc != 3)
		return 1;
	findings.expected = argv[2];
	command_line = argv;
	must(weir_graph_create(NULL, &graph, &e), &e);
	must(weir_var_create(number(0), &named, &var, &e), &e);
	must(weir_trace_create(&options, &trace, &e), &e);
	if (strcmp(argv[1], "join") == 0)
		run_join();
	if (strcmp(argv[1], "left") == 0)
		run_left();
	if (strcmp(argv[1], "cancelled") == 0)
		run_cancelled();
	run_function(argv[1]);
}
