/*
 * print.c - weir_graph_print: the nodes of a graph as lines of text, or as a digraph for Graphviz.
 *
 * The list of nodes has the newest first, and nodes are printed oldest first. So they are collected
 * in an array, which has room for those that are there when the call begins.
 */
#include "graph/node.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/writer.h"

struct printer {
	weir_write_fn *write;
	void *context;
	enum weir_status status; /* the first failure of the writer */
	weir_error *error;
};

static void put(struct printer *to, const char *text)
{
	if (to->status == WEIR_OK && text[0] != '\0')
		to->status = weiri_write(to->write, to->context, text, strlen(text), "weir_graph_print", to->error);
}

static void WEIR_PRINTF(2, 3) put_format(struct printer *to, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	put(to, text);
}

/* A name in double quotes. Graphviz reads a backslash as the escape of the character behind it. */
static void put_quoted(struct printer *to, const char *name)
{
	char text[128];
	size_t used = 0;

	put(to, "\"");
	for (; *name != '\0'; name++) {
		if (used + 3 > sizeof(text)) {
			text[used] = '\0';
			put(to, text);
			used = 0;
		}
		if (*name == '"' || *name == '\\')
			text[used++] = '\\';
		text[used] = ' ';
		if (*name != '\n')
			text[used] = *name;
		used++;
	}
	text[used] = '\0';
	put(to, text);
	put(to, "\"");
}

static bool resource_at(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return node->op->touches != NULL && node->op->touches(node, i, resource);
}

/* -- text -------------------------------------------------------------------------------------- */

static void print_line(struct printer *to, const weir_node *node)
{
	struct weiri_resource resource;
	char text[WEIRI_SPEC_TEXT_SIZE];
	const char *between = " after ";

	put_quoted(to, node->name);
	put_format(to, " = %s(", node->op->name);
	for (uint32_t i = 0; i < node->input_count; i++) {
		put(to, i != 0 ? ", " : "");
		put_quoted(to, node->inputs[i].node->name);
		put_format(to, ":%" PRIu32, node->inputs[i].index);
	}
	put(to, ")");
	for (uint32_t i = 0; i < node->output_count; i++)
		put_format(to, "%s%s", i != 0 ? ", " : " -> ", weiri_spec_text(&node->specs[i], text));
	for (size_t i = 0; resource_at(node, i, &resource); i++) {
		put_format(to, "%s%s ", i != 0 ? ", " : " on ", resource.kind);
		put_quoted(to, resource.name);
	}
	for (struct weiri_published *link = weiri_published_first(&node->controls); link != NULL; link = link->next) {
		put(to, between);
		put_quoted(to, weiri_control_of(link)->before->name);
		between = ", ";
	}
	put(to, "\n");
}

/* -- DOT --------------------------------------------------------------------------------------- */

static void print_dot(struct printer *to, const weir_node *node)
{
	struct weiri_resource resource;
	char text[WEIRI_SPEC_TEXT_SIZE];

	put_format(to, "  n%" PRIu64 " [label=", node->id);
	put_quoted(to, node->name);
	put_format(to, "+\"\\n%s\"", node->op->name);
	for (size_t i = 0; resource_at(node, i, &resource); i++) {
		put_format(to, "+\"\\n%s \"+", resource.kind);
		put_quoted(to, resource.name);
	}
	put(to, "];\n");
	for (uint32_t i = 0; i < node->input_count; i++) {
		weir_output from = node->inputs[i];

		put_format(to, "  n%" PRIu64 " -> n%" PRIu64 " [label=\"%s\"];\n", from.node->id, node->id,
		           weiri_spec_text(weiri_output_spec(from), text));
	}
	for (struct weiri_published *link = weiri_published_first(&node->controls); link != NULL; link = link->next)
		put_format(to, "  n%" PRIu64 " -> n%" PRIu64 " [style=dashed];\n", weiri_control_of(link)->before->id,
		           node->id);
}

/* -- all nodes --------------------------------------------------------------------------------- */

static enum weir_status print_all(struct printer *to, enum weir_graph_format format, const weir_node *const nodes[],
                                  size_t count)
{
	put(to, format == WEIR_GRAPH_DOT ? "digraph weir {\n  node [shape=box];\n" : "");
	for (size_t i = count; i-- > 0;) {
		if (format == WEIR_GRAPH_DOT)
			print_dot(to, nodes[i]);
		else
			print_line(to, nodes[i]);
	}
	put(to, format == WEIR_GRAPH_DOT ? "}\n" : "");
	return to->status;
}

enum weir_status weir_graph_print(const weir_graph *graph, enum weir_graph_format format, weir_write_fn *write,
                                  void *context, weir_error *error)
{
	struct printer to = {write, context, WEIR_OK, error};
	struct weiri_published *newest;
	enum weir_status status;
	const weir_node **nodes;
	size_t count = 0, bytes, at = 0;

	if (graph == NULL || write == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_print: %s is NULL",
		                  graph == NULL ? "graph" : "write");
	if (format != WEIR_GRAPH_TEXT && format != WEIR_GRAPH_DOT)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_graph_print: %d is not a format", (int)format);
	newest = weiri_published_first(&graph->nodes);
	for (struct weiri_published *link = newest; link != NULL; link = link->next)
		count++;
	bytes = (count + 1) * sizeof(nodes[0]);
	nodes = weiri_allocate(&graph->allocator, bytes, _Alignof(const weir_node *));
	if (nodes == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_graph_print: no memory");
	for (struct weiri_published *link = newest; link != NULL; link = link->next)
		nodes[at++] = WEIRI_CONTAINER_OF(link, weir_node, link);
	status = print_all(&to, format, nodes, count);
	weiri_release(&graph->allocator, nodes, bytes, _Alignof(const weir_node *));
	return status;
}
