/*
 * scenario_dataflow.c - random graphs, run by several threads at once, and proved run by run.
 *
 *   dataflow   a seed makes a graph of ops on values, variables and queues, kernels and a critical
 *              section. Threads run parts of it, with deadlines, a token, a queue that closes and a
 *              session that closes. Every run is recorded. Then one order of all ops explains what
 *              each saw (stress/trace); each value that the seed determines is what an interpreter
 *              computes; and each variable has what the recorded ops have added to it.
 *
 * A node depends only on nodes before it, so that the first n nodes of a graph are a graph. After a
 * fault, the scenario looks for the smallest n with which the same seed shows one again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/critical_section.h>
#include <weir/flow/graph.h>
#include <weir/flow/kernel.h>
#include <weir/flow/op.h>
#include <weir/flow/session.h>
#include <weir/flow/trace.h>
#include <weir/time.h>

#include "harness.h"
#include "scenarios.h"
#include "trace/trace.h"

enum { MOST_NODES = 28, LEAST_NODES = 4, CALLERS = 3, RUNS = 10, VARS = 3, SIGNATURES = 4, SHRINKS = 12 };
/* One run in so many closes the queue or fires the token; or closes the session. */
enum { SELDOM = 4 * RUNS, RARELY = 8 * RUNS };

enum kind {
	CONSTANT,
	FED,
	ADD,
	SUB,
	MUL,
	LESSER, /* select(less(a, b), a, b) */
	KERNEL,
	READ,
	ADD_TO,
	SNAPSHOT,
	ENQUEUE,
	DEQUEUE,
	KINDS
};

struct entry {
	enum kind kind;
	uint32_t a, b; /* earlier nodes that give a value */
	uint32_t var;
	int64_t constant;
	uint32_t after; /* an earlier node that must run before; MOST_NODES: none */
	/* what it became */
	weir_output out;
	weir_node *node;
	bool determined;
	int64_t value;
};

struct signature {
	weir_output fetches[2];
	uint32_t fetched[2];
	size_t fetch_count;
	weir_node *target; /* or NULL */
};

/* One graph, and all that its runs use. */
struct world {
	uint64_t seed;
	uint32_t count;
	uint32_t fed; /* the node that is fed */
	int64_t fed_value;
	struct entry entries[MOST_NODES];
	struct signature signatures[SIGNATURES];
	weir_graph *graph;
	weir_session *session;
	weir_trace *trace;
	weir_var *vars[VARS];
	weir_var *inside; /* only the critical section uses it */
	weir_node *section_node;
	weir_critical_section *section;
	weir_tensor_queue *queue;
	weir_cancel *token;
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

/* -- what the seed says ------------------------------------------------------------------------ */

static bool has_value(enum kind kind)
{
	return kind != ENQUEUE;
}

/* The last node before `index` that gives a value, counted back from a drawn one. Node 0 is a constant. */
static uint32_t draw_input(const struct world *w, uint64_t *state, uint32_t index)
{
	uint32_t i = below(state, index);

	while (!has_value(w->entries[i].kind))
		i--;
	return i;
}

static int64_t kernel_value(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * 3 + (uint64_t)b);
}

/* The interpreter: what the node's value is, if no variable and no queue has a part in it. */
static void interpret(struct world *w, uint32_t index)
{
	struct entry *e = &w->entries[index];
	const struct entry *a = &w->entries[e->a], *b = &w->entries[e->b];
	uint64_t x = (uint64_t)a->value, y = (uint64_t)b->value;

	e->determined = a->determined && b->determined;
	switch (e->kind) {
	case CONSTANT: e->value = e->constant; break;
	case FED: e->value = w->fed_value; break;
	case ADD: e->value = (int64_t)(x + y); break;
	case SUB: e->value = (int64_t)(x - y); break;
	case MUL: e->value = (int64_t)(x * y); break;
	case LESSER: e->value = a->value < b->value ? a->value : b->value; break;
	case KERNEL: e->value = kernel_value(a->value, b->value); break;
	case READ:
	case ADD_TO:
	case SNAPSHOT:
	case ENQUEUE:
	case DEQUEUE:
	case KINDS: e->determined = false; return;
	}
	if (e->kind == CONSTANT || e->kind == FED)
		e->determined = true;
}

static void draw_graph(struct world *w, uint64_t seed, uint32_t most)
{
	uint64_t state = seed;

	(void)memset(w, 0, sizeof(*w));
	w->seed = seed;
	w->count = LEAST_NODES + below(&state, MOST_NODES - LEAST_NODES + 1);
	w->fed = 1;
	w->fed_value = (int64_t)below(&state, 1000);
	for (uint32_t i = 0; i < w->count; i++) {
		struct entry *e = &w->entries[i];

		e->kind = i == 0 ? CONSTANT : i == 1 ? FED : (enum kind)(ADD + below(&state, KINDS - ADD));
		e->constant = (int64_t)below(&state, 100);
		e->var = below(&state, VARS);
		e->a = i != 0 ? draw_input(w, &state, i) : 0;
		e->b = i != 0 ? draw_input(w, &state, i) : 0;
		e->after = i > 2 && below(&state, 3) == 0 ? 2 + below(&state, i - 2) : MOST_NODES;
		interpret(w, i);
	}
	if (most < w->count)
		w->count = most;
}

/* -- building ---------------------------------------------------------------------------------- */

static void must(enum weir_status status, const weir_error *error)
{
	STRESS_CHECK(status == WEIR_OK, "a call failed: %s", error->message);
}

static weir_tensor *integer(int64_t value)
{
	weir_tensor *tensor;

	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &weir_shape_scalar, &value, NULL, &tensor) == WEIR_OK, "no tensor");
	return tensor;
}

static int64_t value_of(const weir_tensor *tensor)
{
	return *(const int64_t *)weir_tensor_data(tensor);
}

static weir_output constant_node(struct world *w, int64_t value)
{
	weir_tensor *tensor = integer(value);
	weir_output out;
	weir_error error;

	must(weir_op_constant(w->graph, NULL, tensor, &out, &error), &error);
	weir_tensor_release(tensor);
	return out;
}

static enum weir_status run_kernel(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)context;
	(void)error;
	call->outputs[0] = integer(kernel_value(value_of(call->inputs[0]), value_of(call->inputs[1])));
	return WEIR_OK;
}

static const struct weir_kernel mixing_kernel = {WEIR_KERNEL_INIT, .name = "kernel", .run = run_kernel};

static void build_kernel(struct world *w, struct entry *e, const char *name, const weir_output inputs[2])
{
	struct weir_output_type type = {WEIR_I64, &weir_shape_scalar};
	weir_error error;

	must(weir_op_kernel(w->graph, name, &mixing_kernel, NULL, inputs, 2, &type, 1, NULL, 0, &e->out, NULL, &error),
	     &error);
}

static void build_node(struct world *w, uint32_t index)
{
	struct entry *e = &w->entries[index];
	weir_output inputs[2] = {w->entries[e->a].out, w->entries[e->b].out}, both[VARS + 1], less;
	weir_var *var = w->vars[e->var];
	weir_graph *graph = w->graph;
	weir_error error;
	char name[32];

	(void)snprintf(name, sizeof(name), "n%" PRIu32, index);
	switch (e->kind) {
	case CONSTANT: e->out = constant_node(w, e->constant); break;
	case FED: must(weir_op_placeholder(graph, name, WEIR_I64, &weir_shape_scalar, &e->out, &error), &error); break;
	case ADD: must(weir_op_add(graph, name, inputs[0], inputs[1], &e->out, &error), &error); break;
	case SUB: must(weir_op_sub(graph, name, inputs[0], inputs[1], &e->out, &error), &error); break;
	case MUL: must(weir_op_mul(graph, name, inputs[0], inputs[1], &e->out, &error), &error); break;
	case LESSER:
		must(weir_op_less(graph, NULL, inputs[0], inputs[1], &less, &error), &error);
		must(weir_op_select(graph, name, less, inputs[0], inputs[1], &e->out, &error), &error);
		break;
	case KERNEL: build_kernel(w, e, name, inputs); break;
	case READ: must(weir_op_read(graph, name, var, &e->out, &error), &error); break;
	case ADD_TO:
		must(weir_op_assign_add(graph, name, var, constant_node(w, e->constant), &e->out, &error), &error);
		break;
	case SNAPSHOT:
		must(weir_op_snapshot(graph, name, w->vars, VARS, both, &error), &error);
		e->out = both[e->var];
		break;
	case ENQUEUE: must(weir_op_enqueue(graph, name, w->queue, &inputs[0], 1, &e->node, &error), &error); break;
	case DEQUEUE:
	case KINDS: must(weir_op_dequeue(graph, name, w->queue, &e->out, 1, NULL, &error), &error); break;
	}
	if (e->node == NULL)
		e->node = e->out.node;
	if (e->after != MOST_NODES && e->kind != CONSTANT)
		must(weir_graph_add_control(graph, w->entries[e->after].node, e->node, &error), &error);
}

/* Reads, adds one and assigns, in three ops: only the section makes that one update. */
static void build_section(struct world *w)
{
	weir_output one = constant_node(w, 1), now, next, stored;
	weir_error error;

	must(weir_op_read(w->graph, "now", w->inside, &now, &error), &error);
	must(weir_op_add(w->graph, "next", now, one, &next, &error), &error);
	must(weir_op_assign(w->graph, "stored", w->inside, next, &stored, &error), &error);
	must(weir_op_critical_section(w->graph, "section", w->section, 0, (weir_node *[]){now.node, next.node, stored.node},
	                              3, NULL, 0, NULL, &w->section_node, &error),
	     &error);
}

static weir_var *new_var(const char *name)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = name, .dtype = WEIR_I64,
	                                   .shape = &weir_shape_scalar};
	weir_tensor *zero = integer(0);
	weir_error error;
	weir_var *var;

	must(weir_var_create(zero, &options, &var, &error), &error);
	weir_tensor_release(zero);
	return var;
}

static void build(struct world *w)
{
	struct weir_tensor_component component = {.dtype = WEIR_I64, .shape = &weir_shape_scalar};
	struct weir_tensor_queue_options queue = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .name = "q",
	                                          .components = &component, .component_count = 1};
	struct weir_critical_section_options section = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "s"};
	static const char *const names[VARS] = {"v0", "v1", "v2"};
	weir_error error;

	must(weir_graph_create(NULL, &w->graph, &error), &error);
	must(weir_tensor_queue_create(&queue, &w->queue, &error), &error);
	must(weir_critical_section_create(&section, &w->section, &error), &error);
	must(weir_cancel_create(NULL, &w->token, &error), &error);
	for (size_t i = 0; i < VARS; i++)
		w->vars[i] = new_var(names[i]);
	w->inside = new_var("inside");
	for (uint32_t i = 0; i < w->count; i++)
		build_node(w, i);
	build_section(w);
}

static void draw_signatures(struct world *w, uint64_t *state)
{
	for (size_t s = 0; s < SIGNATURES; s++) {
		struct signature *one = &w->signatures[s];

		one->fetch_count = below(state, 3);
		for (size_t i = 0; i < one->fetch_count; i++) {
			one->fetched[i] = draw_input(w, state, w->count);
			one->fetches[i] = w->entries[one->fetched[i]].out;
		}
		one->target = below(state, 3) == 0 ? w->section_node : w->entries[1 + below(state, w->count - 1)].node;
		if (one->target == w->entries[w->fed].node)
			one->target = NULL;
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

static void run_once(struct stress_thread *self, struct world *w)
{
	const struct signature *one = &w->signatures[stress_below(self, SIGNATURES)];
	weir_tensor *fed = integer(w->fed_value), *results[2] = {NULL, NULL};
	struct weir_feed feed = {w->entries[w->fed].out, fed};
	weir_node *targets[1] = {one->target};
	weir_error error;
	enum weir_status status;

	status = weir_session_run(w->session, &feed, 1, one->fetches, one->fetch_count, results, targets,
	                          one->target != NULL, weir_deadline_in(1000 * (200 + stress_below(self, 4000))),
	                          stress_one_in(self, 2) ? w->token : NULL, &error);
	STRESS_CHECK(is_expected(status), "a run of graph %" PRIx64 " failed: %s", w->seed, error.message);
	for (size_t i = 0; status == WEIR_OK && i < one->fetch_count; i++) {
		const struct entry *e = &w->entries[one->fetched[i]];

		STRESS_CHECK(!e->determined || value_of(results[i]) == e->value,
		             "node n%" PRIu32 " of graph %" PRIx64 " is %" PRId64 ", expected %" PRId64, one->fetched[i],
		             w->seed, value_of(results[i]), e->value);
		weir_tensor_release(results[i]);
	}
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
			(void)weir_tensor_queue_close(w->queue, WEIR_CLOSE_DRAIN, NULL);
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
	int64_t sum = 0;

	for (size_t i = 0; i < trace->event_count; i++) {
		const struct trace_event *event = &trace->events[i];
		const struct trace_node *node = trace_node_of(trace, event);

		if (node == NULL || event->ends == 0 || event->status != WEIR_OK || node->object_count == 0 ||
		    node->objects[0].address != (uintptr_t)var)
			continue;
		if (strcmp(node->op, "assign_add") == 0)
			sum += w->entries[strtoul(node->name + 1, NULL, 10)].constant;
		else if (strcmp(node->op, "assign") == 0)
			sum++;
	}
	return sum;
}

static void check_var(struct world *w, const struct trace *trace, weir_var *var)
{
	weir_read read;
	char line[128];

	STRESS_CHECK(weir_var_read(var, &read) == WEIR_OK, "no read");
	if (value_of(read.tensor) != added(w, trace, var)) {
		(void)snprintf(line, sizeof(line), "variable \"%s\" is %" PRId64 ", and %" PRId64 " was added to it",
		               weir_var_name(var), value_of(read.tensor), added(w, trace, var));
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
	for (size_t i = 0; i < VARS; i++)
		check_var(w, &trace, w->vars[i]);
	check_var(w, &trace, w->inside);
	count = trace.event_count;
	trace_free(&trace);
	return count;
}

static void close_all(struct world *w)
{
	weir_error error;

	must(weir_graph_destroy(w->graph, &error), &error);
	must(weir_trace_destroy(w->trace, &error), &error);
	must(weir_tensor_queue_destroy(w->queue, &error), &error);
	must(weir_critical_section_destroy(w->section, &error), &error);
	weir_cancel_release(w->token);
	for (size_t i = 0; i < VARS; i++)
		must(weir_var_destroy(w->vars[i], &error), &error);
	must(weir_var_destroy(w->inside, &error), &error);
}

/* Plays the first `most` nodes of the graph. Returns the number of ops that ran. */
static size_t play(struct world *w, uint64_t seed, uint32_t most)
{
	uint64_t state = seed ^ UINT64_C(0x5eed);
	weir_error error;
	size_t ops;

	draw_graph(w, seed, most);
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

/* Looks for fewer nodes that show a fault. */
static void shrink(struct world *w, uint64_t seed)
{
	static struct world smaller;
	uint32_t most = w->count;

	for (uint32_t tried = 2; tried < most; tried++) {
		for (int i = 0; i < SHRINKS; i++) {
			(void)play(&smaller, seed, tried);
			if (smaller.fault[0] == '\0')
				continue;
			*w = smaller;
			return;
		}
	}
}

void scenario_dataflow(void)
{
	static struct world world;
	uint64_t graphs = 0, ops = 0;

	stress_disturb();
	for (; graphs == 0 || stress_goes_on(); graphs++) {
		uint64_t seed = stress_below(stress_self(), UINT64_MAX);

		ops += play(&world, seed, MOST_NODES);
		if (world.fault[0] == '\0')
			continue;
		shrink(&world, seed);
		STRESS_CHECK(false, "graph %" PRIx64 " with %" PRIu32 " nodes: %s", seed, world.count, world.fault);
	}
	stress_note("graphs", graphs);
	stress_note("ops", ops);
}
