/*
 * scenario_dataflow.c - random graphs, run by several threads at once, and proved run by run.
 *
 *   dataflow   a seed makes a graph of ops on values, variables and queues, kernels, critical sections,
 *              calls, cases, loops and maps, which nest (dataflow_graph.h). Threads run parts of it, with
 *              deadlines, a token, a queue that closes and a session that closes. Every run is recorded.
 *              Then one order of all ops explains what each saw (stress/trace), in each frame; each value
 *              that the seed determines is what an interpreter computes; and each variable has what the
 *              recorded ops have added to it.
 *
 * After a fault, the scenario looks for the smallest graph with which the same seed shows one again:
 * first for the least depth of functions, then for the fewest nodes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow/callable.h>
#include <weir/flow/session.h>
#include <weir/flow/trace.h>
#include <weir/time.h>

#include "dataflow_graph.h"
#include "harness.h"
#include "scenarios.h"
#include "trace/trace.h"

enum { CALLERS = 3, RUNS = 8, SIGNATURES = 4, SHRINKS = 12 };
/* One run in so many closes the queue or fires the token; or closes the session. */
enum { SELDOM = 4 * RUNS, RARELY = 8 * RUNS };

struct signature {
	weir_output fetches[2];
	uint32_t fetched[2];
	size_t fetch_count;
	weir_node *target; /* or NULL */
};

/* One graph, and all that its runs use. */
struct world {
	uint64_t seed;
	uint32_t most, depth; /* of flow_draw() */
	struct flow_plan plan;
	struct flow_value values[FLOW_NODES];
	struct signature signatures[SIGNATURES];
	weir_graph *graph;
	weir_session *session;
	weir_trace *trace;
	weir_cancel *token;
	size_t frames;
	char fault[1536];
};

static uint64_t draw(uint64_t *state)
{
	return stress_mix((*state)++);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(draw(state) % n);
}

static void must(enum weir_status status, const weir_error *error)
{
	STRESS_CHECK(status == WEIR_OK, "a call failed: %s", error->message);
}

/* -- building ---------------------------------------------------------------------------------- */

static weir_var *new_var(const char *name)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = name, .dtype = WEIR_I64,
	                                   .shape = &weir_shape_scalar};
	weir_tensor *zero = flow_integer(0);
	weir_error error;
	weir_var *var;

	must(weir_var_create(zero, &options, &var, &error), &error);
	weir_tensor_release(zero);
	return var;
}

static void make_objects(struct flow_objects *objects)
{
	struct weir_tensor_component component = {.dtype = WEIR_I64, .shape = &weir_shape_scalar};
	struct weir_tensor_queue_options queue = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .name = "q",
	                                          .components = &component, .component_count = 1};
	struct weir_critical_section_options section = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "s"};
	static const char *const names[FLOW_VARS] = {"v0", "v1", "v2"};
	weir_error error;

	must(weir_tensor_queue_create(&queue, &objects->queue, &error), &error);
	must(weir_critical_section_create(&section, &objects->section, &error), &error);
	for (size_t i = 0; i < FLOW_VARS; i++)
		objects->vars[i] = new_var(names[i]);
	objects->inside = new_var("inside");
}

static void build(struct world *w)
{
	weir_error error;

	must(weir_graph_create(NULL, &w->graph, &error), &error);
	must(weir_cancel_create(NULL, &w->token, &error), &error);
	make_objects(&w->plan.objects);
	flow_build(&w->plan, w->graph);
	flow_interpret(&w->plan, w->values);
}

/* A node of the root that gives a value, at or before a drawn one. */
static uint32_t draw_fetch(const struct flow_body *root, uint64_t *state)
{
	uint32_t i = below(state, root->count);

	while (!flow_has_value(root->nodes[i].kind))
		i--;
	return i;
}

static void draw_signatures(struct world *w, uint64_t *state)
{
	const struct flow_body *root = &w->plan.bodies[0];

	for (size_t s = 0; s < SIGNATURES; s++) {
		struct signature *one = &w->signatures[s];
		uint32_t target = below(state, root->count);

		one->fetch_count = below(state, 3);
		for (size_t i = 0; i < one->fetch_count; i++) {
			one->fetched[i] = draw_fetch(root, state);
			one->fetches[i] = w->plan.built[one->fetched[i]].out;
		}
		one->target = root->nodes[target].kind != FLOW_INPUT ? w->plan.built[target].node : NULL;
	}
}

static void open_session(struct world *w, uint64_t *state)
{
	struct weir_trace_options trace = {WEIR_TRACE_OPTIONS_INIT,
	                                   .flags = below(state, 2) == 0 ? (uint32_t)WEIR_TRACE_CHECKSUMS : 0u};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT};
	weir_error error;

	must(weir_trace_create(&trace, &w->trace, &error), &error);
	options.threads = below(state, 4);
	options.flags = options.threads == 0 ? WEIR_SESSION_NO_THREADS : 0;
	options.shuffle_seed = below(state, 2) == 0 ? draw(state) : 0;
	options.trace = w->trace;
	must(weir_session_create(w->graph, &options, &w->session, &error), &error);
}

/* -- running ----------------------------------------------------------------------------------- */

static bool is_expected(enum weir_status status)
{
	return status == WEIR_OK || status == WEIR_DEADLINE_EXCEEDED || status == WEIR_CANCELLED ||
	       status == WEIR_OUT_OF_RANGE || status == WEIR_FAILED_PRECONDITION;
}

static void expect_values(const struct world *w, const struct signature *one, weir_tensor *results[])
{
	for (size_t i = 0; i < one->fetch_count; i++) {
		const struct flow_value *value = &w->values[one->fetched[i]];

		STRESS_CHECK(!value->determined || flow_integer_of(results[i]) == value->value,
		             "node n0.%" PRIu32 " of graph %" PRIx64 " is %" PRId64 ", expected %" PRId64, one->fetched[i],
		             w->seed, flow_integer_of(results[i]), value->value);
		weir_tensor_release(results[i]);
	}
}

static void run_once(struct stress_thread *self, struct world *w)
{
	const struct signature *one = &w->signatures[stress_below(self, SIGNATURES)];
	weir_tensor *fed = flow_integer(w->plan.fed_value), *results[2] = {NULL, NULL};
	struct weir_feed feed = {w->plan.built[1].out, fed};
	weir_node *targets[1] = {one->target};
	bool has_input = w->plan.bodies[0].count > 1;
	weir_error error;
	enum weir_status status;

	status = weir_session_run(w->session, &feed, has_input, one->fetches, one->fetch_count, results, targets,
	                          one->target != NULL, weir_deadline_in(1000 * (200 + stress_below(self, 8000))),
	                          stress_one_in(self, 2) ? w->token : NULL, &error);
	STRESS_CHECK(is_expected(status), "a run of graph %" PRIx64 " failed: %s", w->seed, error.message);
	if (status == WEIR_OK)
		expect_values(w, one, results);
	weir_tensor_release(fed);
}

static void call(struct stress_thread *self, void *context)
{
	struct world *w = context;

	for (int i = 0; i < RUNS; i++) {
		stress_begin(self, "run");
		run_once(self, w);
		stress_end(self, 1);
		if (stress_one_in(self, SELDOM))
			(void)weir_tensor_queue_close(w->plan.objects.queue, WEIR_CLOSE_DRAIN, NULL);
		if (stress_one_in(self, SELDOM))
			(void)weir_cancel_fire(w->token, NULL);
		if (stress_one_in(self, RARELY))
			(void)weir_session_close(w->session, NULL);
	}
}

/* -- proof ------------------------------------------------------------------------------------- */

struct file {
	char *bytes;
	size_t size, room;
};

static enum weir_status append(void *context, const char *bytes, size_t size, weir_error *error)
{
	struct file *file = context;

	(void)error;
	if (file->size + size > file->room) {
		file->room = 2 * (file->size + size);
		file->bytes = realloc(file->bytes, file->room);
		STRESS_CHECK(file->bytes != NULL, "no memory");
	}
	(void)memcpy(file->bytes + file->size, bytes, size);
	file->size += size;
	return WEIR_OK;
}

static void add_line(void *context, const char *line)
{
	struct world *w = context;
	size_t used = strlen(w->fault);

	(void)snprintf(w->fault + used, sizeof(w->fault) - used, "%s\n", line);
}

/* Adds up what the recorded ops have added to a variable. */
static int64_t added(const struct world *w, const struct trace *trace, const weir_var *var)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < trace->event_count; i++) {
		const struct trace_event *event = &trace->events[i];
		const struct trace_node *node = trace_node_of(trace, event);

		if (node == NULL || event->ends == 0 || event->status != WEIR_OK || node->object_count == 0 ||
		    node->objects[0].address != (uintptr_t)var)
			continue;
		if (strcmp(node->op, "assign_add") == 0)
			sum += (uint64_t)flow_added_by(&w->plan, node->name);
		else if (strcmp(node->op, "assign") == 0)
			sum++;
	}
	return (int64_t)sum;
}

static void check_var(struct world *w, const struct trace *trace, weir_var *var)
{
	weir_read read;
	char line[128];

	STRESS_CHECK(weir_var_read(var, &read) == WEIR_OK, "no read");
	if (flow_integer_of(read.tensor) != added(w, trace, var)) {
		(void)snprintf(line, sizeof(line), "variable \"%s\" is %" PRId64 ", and %" PRId64 " was added to it",
		               weir_var_name(var), flow_integer_of(read.tensor), added(w, trace, var));
		add_line(w, line);
	}
	weir_read_release(&read);
}

/* Returns the number of ops. The faults are in w->fault. */
static size_t prove(struct world *w)
{
	struct file file = {NULL, 0, 0};
	struct trace trace;
	weir_error error;
	size_t count;

	must(weir_trace_write(w->trace, append, &file, &error), &error);
	must(trace_read(file.bytes, file.size, &trace, &error), &error);
	free(file.bytes);
	(void)trace_check(&trace, add_line, w);
	for (size_t i = 0; i < FLOW_VARS; i++)
		check_var(w, &trace, w->plan.objects.vars[i]);
	check_var(w, &trace, w->plan.objects.inside);
	count = trace.event_count;
	w->frames = trace.frame_count;
	trace_free(&trace);
	return count;
}

static void close_all(struct world *w)
{
	struct flow_objects *objects = &w->plan.objects;
	weir_error error;

	must(weir_graph_destroy(w->graph, &error), &error);
	flow_destroy_functions(&w->plan);
	must(weir_trace_destroy(w->trace, &error), &error);
	must(weir_tensor_queue_destroy(objects->queue, &error), &error);
	must(weir_critical_section_destroy(objects->section, &error), &error);
	weir_cancel_release(w->token);
	for (size_t i = 0; i < FLOW_VARS; i++)
		must(weir_var_destroy(objects->vars[i], &error), &error);
	must(weir_var_destroy(objects->inside, &error), &error);
}

/* Plays a graph. Returns the number of ops that ran. */
static size_t play(struct world *w, uint64_t seed, uint32_t most, uint32_t depth)
{
	uint64_t state = seed ^ UINT64_C(0x5eed);
	weir_error error;
	size_t ops;

	w->seed = seed;
	w->most = most;
	w->depth = depth;
	w->fault[0] = '\0';
	flow_draw(&w->plan, seed, most, depth);
	build(w);
	draw_signatures(w, &state);
	open_session(w, &state);
	for (size_t i = 0; i < CALLERS; i++)
		(void)stress_start("caller", call, w);
	stress_begin(stress_self(), "joining");
	stress_join();
	stress_begin(stress_self(), "destroy");
	must(weir_session_destroy(w->session, &error), &error);
	stress_end(stress_self(), 1);
	ops = prove(w);
	close_all(w);
	return ops;
}

/* Plays the graph of that size some times. Returns true, and what it found, if there was a fault. */
static bool shows_fault(uint64_t seed, uint32_t most, uint32_t depth, char fault[], size_t size)
{
	static struct world smaller;

	for (int i = 0; i < SHRINKS; i++) {
		(void)play(&smaller, seed, most, depth);
		if (smaller.fault[0] != '\0') {
			(void)snprintf(fault, size, "%s", smaller.fault);
			return true;
		}
	}
	return false;
}

/* Looks for less depth, and then for fewer nodes, that show a fault. */
static void shrink(struct world *w)
{
	uint32_t depth = 0, most = 2;

	while (depth < w->depth && !shows_fault(w->seed, w->most, depth, w->fault, sizeof(w->fault)))
		depth++;
	w->depth = depth;
	while (most < w->most && !shows_fault(w->seed, most, depth, w->fault, sizeof(w->fault)))
		most++;
	w->most = most;
}

void scenario_dataflow(void)
{
	static struct world world;
	uint64_t graphs = 0, ops = 0, frames = 0;

	stress_disturb();
	for (; graphs == 0 || stress_goes_on(); graphs++) {
		uint64_t seed = stress_below(stress_self(), UINT64_MAX);

		ops += play(&world, seed, FLOW_NODES, FLOW_DEPTH);
		frames += world.frames;
		if (world.fault[0] == '\0')
			continue;
		shrink(&world);
		STRESS_CHECK(false, "graph %" PRIx64 ", %" PRIu32 " nodes, depth %" PRIu32 ": %s", seed, world.most,
		             world.depth, world.fault);
	}
	stress_note("graphs", graphs);
	stress_note("ops", ops);
	stress_note("frames", frames);
}
