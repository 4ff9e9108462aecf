/*
 * graph.c - the graph, its nodes and their names.
 *
 * Names are in a tree that only grows (run/published_tree.h), so no two threads can take the same
 * name. A node that got its name joins the list of all nodes. Nodes are freed with the graph.
 */
#include "graph/node.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/layout.h"

/* A name that is generated is the kind of the node, cut to so many bytes, "_", and a number. */
enum { KIND_IN_NAME = 40, NUMBER_IN_NAME = 20 };

enum weir_status weir_graph_create(const struct weir_graph_options *options, weir_graph **out, weir_error *error)
{
	struct weir_graph_options given;
	enum weir_status status;
	weir_allocator allocator;
	weir_graph *graph;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_create: out is NULL");
	status = weiri_options_read("weir_graph_create", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("weir_graph_create", given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	graph = weiri_allocate(&allocator, sizeof(*graph), _Alignof(weir_graph));
	if (graph == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_graph_create: no memory");
	graph->allocator = allocator;
	graph->backward_controls = 0;
	graph->function = NULL;
	graph->caller = NULL;
	graph->complete = false;
	weiri_serial_init(&graph->ids);
	weiri_countdown_init(&graph->users, 1);
	weiri_published_tree_init(&graph->names);
	weiri_published_init(&graph->nodes);
	*out = graph;
	return WEIR_OK;
}

static weir_node *node_of(struct weiri_published *link)
{
	return link != NULL ? WEIRI_CONTAINER_OF(link, weir_node, link) : NULL;
}

static void free_node(weir_node *node)
{
	const weir_allocator *allocator = &node->graph->allocator;
	struct weiri_published *next;

	for (struct weiri_published *link = weiri_published_first(&node->controls); link != NULL; link = next) {
		next = link->next;
		weiri_release(allocator, weiri_control_of(link), sizeof(struct weiri_control), _Alignof(struct weiri_control));
	}
	if (node->op->drop != NULL)
		node->op->drop(node->attribute);
	weiri_release(allocator, node, node->bytes, WEIRI_LAYOUT_ALIGNMENT);
}

enum weir_status weir_graph_destroy(weir_graph *graph, weir_error *error)
{
	struct weiri_published *next;
	weir_allocator allocator;

	if (graph == NULL)
		return WEIR_OK;
	if (!weiri_countdown_arrive(&graph->users)) {
		weiri_countdown_join(&graph->users);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "weir_graph_destroy: a session still uses the graph");
	}
	for (struct weiri_published *link = weiri_published_first(&graph->nodes); link != NULL; link = next) {
		next = link->next;
		free_node(node_of(link));
	}
	allocator = graph->allocator;
	weiri_release(&allocator, graph, sizeof(*graph), _Alignof(weir_graph));
	return WEIR_OK;
}

struct name {
	const char *bytes;
	size_t size;
};

/* FNV-1a, and a last step that spreads the bits, since the tree uses the low ones first. */
static uint64_t hash_bytes(const char *bytes, size_t size)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)bytes[i]) * UINT64_C(1099511628211);
	return hash ^ hash >> 32;
}

/*
 * Most names are numbered, and nodes are built in the order of their numbers. So the names that differ
 * only in the last two digits have the first bits in common, and these lead to one part of the tree,
 * which stays in the cache. In return a small graph, whose names would fit in a few levels, has ten more
 * where they have the first bits in common.
 */
static uint64_t hash_of(struct name name)
{
	enum { SERIES_BITS = 20, PLACE_BITS = 7 };
	uint64_t series, place = 100; /* distinguishes "x_1" from "x_01" */
	size_t digits = 0;

	while (digits < 2 && digits < name.size && isdigit((unsigned char)name.bytes[name.size - 1 - digits]) != 0)
		digits++;
	series = hash_bytes(name.bytes, name.size - digits);
	if (digits == 0)
		return series;
	if (digits == 2)
		place = 10 * (uint64_t)(name.bytes[name.size - 2] - '0');
	place += (uint64_t)(name.bytes[name.size - 1] - '0');
	return (series & ((UINT64_C(1) << SERIES_BITS) - 1)) | place << SERIES_BITS |
	       series >> SERIES_BITS << (SERIES_BITS + PLACE_BITS);
}

static weir_node *named(const struct weiri_branch *branch)
{
	return (weir_node *)((char *)(uintptr_t)branch - offsetof(weir_node, by_name));
}

static bool has_name(const void *key, const struct weiri_branch *branch)
{
	const struct name *name = key;
	const char *other = named(branch)->name;

	return strncmp(other, name->bytes, name->size) == 0 && other[name->size] == '\0';
}

/* Returns the node whose name is the first `size` bytes of `bytes`, or NULL. */
static weir_node *find(weir_graph *graph, const char *bytes, size_t size)
{
	struct name name = {bytes, size};
	struct weiri_branch *branch = weiri_published_tree_find(&graph->names, hash_of(name), has_name, &name);

	return branch != NULL ? named(branch) : NULL;
}

/* Returns false if the graph has a node of that name already. */
static bool publish(weir_graph *graph, weir_node *node)
{
	struct name name = {node->name, strlen(node->name)};

	weiri_branch_init(&node->by_name, hash_of(name));
	if (weiri_published_tree_insert(&graph->names, &node->by_name, has_name, &name) != NULL)
		return false;
	while (!weiri_published_push_after(&graph->nodes, &node->link, weiri_published_first(&graph->nodes)))
		;
	return true;
}

enum weir_status weir_graph_find(weir_graph *graph, const char *name, weir_node **out, weir_error *error)
{
	weir_node *node;

	if (graph == NULL || name == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_find: NULL argument");
	node = find(graph, name, strlen(name));
	if (node == NULL)
		return weiri_fail(error, WEIR_NOT_FOUND, "weir_graph_find: the graph has no node \"%s\"", name);
	*out = node;
	return WEIR_OK;
}

/* Returns true and sets the two parts if `name` reads "NODE:INDEX"; otherwise returns false. */
static bool split(const char *name, size_t *node_size, uint32_t *index)
{
	enum { MOST_DIGITS = 9 };
	const char *colon = strrchr(name, ':');
	size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;

	if (digits == 0 || digits > MOST_DIGITS || colon[1 + digits] != '\0')
		return false;
	*node_size = (size_t)(colon - name);
	*index = (uint32_t)strtoul(colon + 1, NULL, 10);
	return true;
}

enum weir_status weiri_graph_output(weir_graph *graph, const char *name, weir_output *out, weir_error *error)
{
	size_t size = strlen(name);
	uint32_t index = 0;
	weir_node *node = find(graph, name, size);

	if (node == NULL && split(name, &size, &index))
		node = find(graph, name, size);
	if (node == NULL)
		return weiri_fail(error, WEIR_NOT_FOUND, "the graph has no node \"%.*s\"", (int)size, name);
	if (index >= node->output_count)
		return weiri_fail(error, WEIR_OUT_OF_RANGE, "\"%s\" has %u output%s, there is no output %u", node->name,
		                  node->output_count, WEIRI_S(node->output_count), index);
	*out = (weir_output){node, index};
	return WEIR_OK;
}

enum weir_status weir_graph_find_output(weir_graph *graph, const char *name, weir_output *out, weir_error *error)
{
	enum weir_status status;
	weir_error inner;

	if (graph == NULL || name == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_find_output: %s is NULL",
		                  graph == NULL  ? "graph"
		                  : name == NULL ? "name"
		                                 : "out");
	status = weiri_graph_output(graph, name, out, &inner);
	return status == WEIR_OK ? WEIR_OK : weiri_fail(error, status, "weir_graph_find_output: %s", inner.message);
}

size_t weir_graph_node_count(const weir_graph *graph)
{
	size_t count = 0;

	if (graph == NULL)
		return 0;
	for (struct weiri_published *link = weiri_published_first(&graph->nodes); link != NULL; link = link->next)
		count++;
	return count;
}

void weiri_node_describe(weir_error *error, enum weir_status code, const struct weiri_op *op, const char *name,
                         const char *format, ...)
{
	char message[WEIR_ERROR_MESSAGE_SIZE];
	va_list arguments;

	if (error == NULL)
		return;
	va_start(arguments, format);
	(void)vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	if (name != NULL)
		weiri_describe(error, code, "%s \"%s\": %s", op->name, name, message);
	else
		weiri_describe(error, code, "%s: %s", op->name, message);
}

enum weir_status weiri_output_check(const weir_graph *graph, weir_output output, const char *what, weir_error *error)
{
	if (output.node == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s is not an output: its node is NULL", what);
	if (output.node->graph != graph)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s, \"%s\", belongs to another graph", what,
		                  output.node->name);
	if (output.index >= output.node->output_count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: \"%s\" has %u output%s, there is no output %u", what,
		                  output.node->name, output.node->output_count, WEIRI_S(output.node->output_count),
		                  output.index);
	return WEIR_OK;
}

static enum weir_status check_inputs(const weir_graph *graph, const struct weiri_node_request *request,
                                     weir_error *error)
{
	if (request->input_count > WEIRI_NODE_MAX_INPUTS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%zu input%s; at most %d are possible", request->input_count,
		                  WEIRI_S(request->input_count), WEIRI_NODE_MAX_INPUTS);
	if (request->input_count > 0 && request->inputs == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "inputs is NULL");
	for (size_t i = 0; i < request->input_count; i++) {
		char what[32];
		enum weir_status status;

		(void)snprintf(what, sizeof(what), "input %zu", i);
		status = weiri_output_check(graph, request->inputs[i], what, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

static enum weir_status infer(const struct weiri_node_request *request, struct weiri_spec outputs[], weir_error *error)
{
	struct weiri_spec inputs[WEIRI_MATH_MAX_INPUTS];

	for (size_t i = 0; i < request->input_count; i++)
		inputs[i] = *weiri_output_spec(request->inputs[i]);
	return request->op->infer(request->attribute, inputs, outputs, error);
}

static void copy_array(void *to, const void *from, size_t bytes)
{
	if (bytes != 0)
		(void)memcpy(to, from, bytes);
}

static bool all_known(const struct weiri_node_request *request, const struct weiri_spec specs[])
{
	bool known = true;

	for (size_t i = 0; known && i < request->input_count; i++)
		known = weiri_spec_known(weiri_output_spec(request->inputs[i]));
	for (size_t i = 0; known && i < request->output_count; i++)
		known = weiri_spec_known(&specs[i]);
	return known;
}

/* Returns node->like_output. */
static uint64_t find_like_output(const weir_node *node)
{
	uint64_t found = 0;

	for (uint32_t i = 0; node->specs_known && node->output_count != 0 && i < node->input_count && i < 64; i++) {
		const struct weiri_spec *input = weiri_output_spec(node->inputs[i]);

		if (input->dtype == node->specs[0].dtype && weir_shape_equal(&input->shape, &node->specs[0].shape))
			found |= UINT64_C(1) << i;
	}
	return found;
}

/* Makes a node that lacks only the bytes of its name. */
static weir_node *allocate_node(weir_graph *graph, const struct weiri_node_request *request,
                                const struct weiri_spec specs[], size_t name_size, char **name)
{
	struct weiri_layout layout = {0};
	size_t at_node = weiri_layout_add(&layout, 1, sizeof(weir_node));
	size_t at_inputs = weiri_layout_add(&layout, request->input_count, sizeof(weir_output));
	size_t at_specs = weiri_layout_add(&layout, request->output_count, sizeof(struct weiri_spec));
	size_t at_attribute = weiri_layout_add(&layout, 1, request->attribute_size);
	size_t at_name = weiri_layout_add(&layout, 1, name_size);
	char *block = weiri_allocate_zeroed(&graph->allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	weir_node *node;

	if (block == NULL)
		return NULL;
	node = weiri_layout_at(block, at_node);
	node->graph = graph;
	node->op = request->op;
	node->kind = request->kind != NULL ? request->kind : request->op->name;
	node->bytes = layout.size;
	node->inputs = weiri_layout_at(block, at_inputs);
	node->specs = weiri_layout_at(block, at_specs);
	node->attribute = weiri_layout_at(block, at_attribute);
	node->attribute_size = request->attribute_size;
	node->input_count = (uint32_t)request->input_count;
	node->output_count = (uint32_t)request->output_count;
	node->hold_count = (uint32_t)request->hold_count;
	node->specs_known = all_known(request, specs);
	weiri_published_init(&node->controls);
	copy_array(node->inputs, request->inputs, request->input_count * sizeof(weir_output));
	copy_array(node->specs, specs, request->output_count * sizeof(struct weiri_spec));
	node->like_output = find_like_output(node);
	copy_array(node->attribute, request->attribute, request->attribute_size);
	*name = weiri_layout_at(block, at_name);
	node->name = *name;
	return node;
}

static size_t kind_in_name(const char *kind)
{
	return strnlen(kind, KIND_IN_NAME);
}

/* As snprintf() would, which takes a third of the time in which a node is built. */
static void generate_name(const char *kind, uint64_t number, char *name)
{
	size_t size = kind_in_name(kind);
	char digits[NUMBER_IN_NAME];
	char *first = digits + sizeof(digits);

	do {
		*--first = (char)('0' + number % 10);
		number /= 10;
	} while (number != 0);
	(void)memcpy(name, kind, size);
	name[size++] = '_';
	(void)memcpy(name + size, first, (size_t)(digits + sizeof(digits) - first));
	name[size + (size_t)(digits + sizeof(digits) - first)] = '\0';
}

/* The bytes that the name needs, with its end. */
static size_t name_size_of(const struct weiri_node_request *request)
{
	if (request->name != NULL)
		return strlen(request->name) + 1;
	return kind_in_name(request->kind != NULL ? request->kind : request->op->name) + 1 + NUMBER_IN_NAME + 1;
}

/*
 * Takes the node's id, so that it is larger than the ids of the inputs: the caller has handles of
 * the inputs, which therefore have their ids already.
 */
static enum weir_status name_and_publish(weir_graph *graph, weir_node *node, const char *wanted, char *name,
                                         size_t name_size, weir_error *error)
{
	if (wanted != NULL) {
		(void)memcpy(name, wanted, name_size);
		node->id = weiri_serial_take(&graph->ids);
		if (publish(graph, node))
			return WEIR_OK;
		return weiri_fail(error, WEIR_ALREADY_EXISTS, "the graph already has a node of this name");
	}
	do {
		node->id = weiri_serial_take(&graph->ids);
		generate_name(node->kind, node->id, name);
	} while (!publish(graph, node));
	return WEIR_OK;
}

static enum weir_status build(weir_graph *graph, const struct weiri_node_request *request, weir_node **out,
                              weir_error *error)
{
	struct weiri_spec inferred[WEIRI_MATH_MAX_OUTPUTS];
	const struct weiri_spec *specs = request->specs;
	size_t name_size = name_size_of(request);
	enum weir_status status = check_inputs(graph, request, error);
	weir_node *node;
	char *name;

	if (status == WEIR_OK && graph->complete)
		status = weiri_fail(error, WEIR_FAILED_PRECONDITION, "the body of the function is complete");
	if (status == WEIR_OK && request->name != NULL && request->name[0] == '\0')
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "the name is empty");
	if (status == WEIR_OK && request->op->infer != NULL) {
		status = infer(request, inferred, error);
		specs = inferred;
	}
	if (status != WEIR_OK)
		return status;
	node = allocate_node(graph, request, specs, name_size, &name);
	if (node == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "no memory");
	status = name_and_publish(graph, node, request->name, name, name_size, error);
	if (status != WEIR_OK)
		weiri_release(&graph->allocator, node, node->bytes, WEIRI_LAYOUT_ALIGNMENT);
	else
		*out = node;
	return status;
}

enum weir_status weiri_node_check(weir_graph *graph, const struct weiri_node_request *request, weir_error *error)
{
	weir_error inner;
	enum weir_status status;

	if (graph == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, request->op, request->name, "graph is NULL");
	status = check_inputs(graph, request, &inner);
	return status == WEIR_OK ? WEIR_OK
	                         : weiri_node_fail(error, status, request->op, request->name, "%s", inner.message);
}

enum weir_status weiri_node_build(weir_graph *graph, const struct weiri_node_request *request, weir_node **out,
                                  weir_error *error)
{
	weir_error inner;
	enum weir_status status;

	if (graph == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, request->op, request->name, "graph is NULL");
	inner.message[0] = '\0';
	status = build(graph, request, out, &inner);
	if (status != WEIR_OK)
		return weiri_node_fail(error, status, request->op, request->name, "%s", inner.message);
	return WEIR_OK;
}

const char *weir_node_name(const weir_node *node)
{
	return node != NULL ? node->name : NULL;
}

const char *weir_node_op(const weir_node *node)
{
	return node != NULL ? node->kind : NULL;
}

size_t weir_node_output_count(const weir_node *node)
{
	return node != NULL ? node->output_count : 0;
}

enum weir_status weir_node_output(weir_node *node, uint32_t index, weir_output *out, weir_error *error)
{
	if (node == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_node_output: NULL argument");
	if (index >= node->output_count)
		return weiri_fail(error, WEIR_OUT_OF_RANGE, "weir_node_output: \"%s\" has %u output%s, there is no output %u",
		                  node->name, node->output_count, WEIRI_S(node->output_count), index);
	out->node = node;
	out->index = index;
	return WEIR_OK;
}

enum weir_status weir_output_spec(weir_output output, enum weir_dtype *dtype, weir_shape *shape, weir_error *error)
{
	const struct weiri_spec *spec;

	if (output.node == NULL || output.index >= output.node->output_count)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_output_spec: no such output");
	spec = weiri_output_spec(output);
	if (dtype != NULL)
		*dtype = spec->dtype;
	if (!spec->ranked)
		return weiri_fail(error, WEIR_NOT_FOUND, "weir_output_spec: the rank of \"%s\" is not known",
		                  output.node->name);
	if (shape != NULL)
		*shape = spec->shape;
	return WEIR_OK;
}
