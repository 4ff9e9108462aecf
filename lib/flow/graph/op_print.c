/*
 * op_print.c - print and assert: nodes that show values to people.
 */
#include "graph/node.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/tensor_text.h"

enum { DEFAULT_ELEMENTS = 8 };
/* The first input that is shown. */
enum { PRINTED = 0, ASSERTED = 1 };

/* The attribute of both nodes. The text follows it, with its terminator. */
struct shown {
	weir_write_fn *write; /* NULL: assert */
	void *context;
	size_t elements;
	char message[];
};

static void add_values(struct weiri_text *text, const struct weiri_call *call, uint32_t first, size_t elements)
{
	for (uint32_t i = first; i < call->node->input_count; i++) {
		weiri_text_add(text, "%s", text->used == 0 ? "" : i == first ? " " : ", ");
		weiri_text_add_tensor(text, call->inputs[i], elements);
	}
}

/* One call of the writer, so that the lines of several threads do not mix. */
static enum weir_status run_print(const struct weiri_call *call)
{
	const struct shown *shown = call->node->attribute;
	char line[WEIR_PRINT_LINE_SIZE];
	struct weiri_text text;

	weiri_text_init(&text, line, sizeof(line) - 1);
	weiri_text_add(&text, "%s", shown->message);
	add_values(&text, call, PRINTED, shown->elements);
	line[text.used] = '\n';
	line[text.used + 1] = '\0';
	return shown->write(shown->context, line, text.used + 1, call->error);
}

/* In the body of a function they run always, and in the order in which they were built. */
static bool touches(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	*resource = (struct weiri_resource){.kind = "state", .name = node->name, .writes = true};
	return i == 0;
}

static const struct weiri_op print_op = {
	.name = "print", .traits = WEIRI_OP_USER, .run = run_print, .touches = touches};

static enum weir_status run_assert(const struct weiri_call *call)
{
	const struct shown *shown = call->node->attribute;
	const weir_tensor *condition = call->inputs[0];
	size_t count = (size_t)weir_tensor_element_count(condition);
	const uint8_t *holds = weir_tensor_data(condition);
	char message[WEIR_ERROR_MESSAGE_SIZE];
	struct weiri_text text;
	size_t at = 0;

	while (at < count && holds[at] != 0)
		at++;
	if (at == count)
		return WEIR_OK;
	weiri_text_init(&text, message, sizeof(message));
	weiri_text_add(&text, "%s%s", shown->message, call->node->input_count > 1 ? ":" : "");
	add_values(&text, call, ASSERTED, DEFAULT_ELEMENTS);
	return weiri_fail(call->error, WEIR_INVALID_ARGUMENT, "%s", message);
}

static const struct weiri_op assert_op = {.name = "assert", .run = run_assert, .touches = touches};

static enum weir_status build(weir_graph *graph, const struct weiri_op *op, const char *name, struct shown shown,
                              const char *message, const weir_output inputs[], size_t count, weir_node **node,
                              weir_error *error)
{
	size_t size = sizeof(shown) + strlen(message) + 1;
	struct weiri_node_request request;
	struct shown *attribute;
	enum weir_status status;
	weir_node *built;

	if (graph == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, op, name, "graph is NULL");
	attribute = weiri_allocate(&graph->allocator, size, _Alignof(struct shown));
	if (attribute == NULL)
		return weiri_node_fail(error, WEIR_RESOURCE_EXHAUSTED, op, name, "no memory");
	*attribute = shown;
	(void)memcpy(attribute->message, message, strlen(message) + 1);
	(void)memset(&request, 0, sizeof(request));
	request.op = op;
	request.name = name;
	request.inputs = inputs;
	request.input_count = count;
	request.attribute = attribute;
	request.attribute_size = size;
	status = weiri_node_build(graph, &request, &built, error);
	weiri_release(&graph->allocator, attribute, size, _Alignof(struct shown));
	if (status == WEIR_OK && node != NULL)
		*node = built;
	return status;
}

enum weir_status weir_op_print(weir_graph *graph, const char *name, const struct weir_print_options *options,
                               const weir_output inputs[], size_t count, weir_node **node, weir_error *error)
{
	struct weir_print_options given;
	struct shown shown = {.elements = DEFAULT_ELEMENTS};
	weir_error inner;

	if (weiri_options_read("options", options, &given, sizeof(given), &inner) != WEIR_OK)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &print_op, name, "%s", inner.message);
	if (given.write == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &print_op, name, "write is NULL");
	shown.write = given.write;
	shown.context = given.context;
	if (given.elements != 0)
		shown.elements = given.elements;
	return build(graph, &print_op, name, shown, given.message != NULL ? given.message : "", inputs, count, node, error);
}

static enum weir_status check_condition(const weir_graph *graph, const char *name, weir_output condition,
                                        weir_error *error)
{
	/* weiri_node_build() reports an output that is not one of this graph. */
	if (weiri_output_check(graph, condition, "condition", NULL) != WEIR_OK ||
	    weiri_output_spec(condition)->dtype == WEIR_BOOL)
		return WEIR_OK;
	return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &assert_op, name, "expected a condition of bool, got %s",
	                       weir_dtype_name(weiri_output_spec(condition)->dtype));
}

enum weir_status weir_op_assert(weir_graph *graph, const char *name, weir_output condition, const char *message,
                                const weir_output values[], size_t count, weir_node **node, weir_error *error)
{
	weir_output inputs[1 + WEIR_ASSERT_MAX_VALUES];
	enum weir_status status;

	if (count > WEIR_ASSERT_MAX_VALUES)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &assert_op, name, "%zu values; at most %d are possible",
		                       count, WEIR_ASSERT_MAX_VALUES);
	if (count != 0 && values == NULL)
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &assert_op, name, "values is NULL");
	status = check_condition(graph, name, condition, error);
	if (status != WEIR_OK)
		return status;
	inputs[0] = condition;
	if (count != 0)
		(void)memcpy(inputs + 1, values, count * sizeof(values[0]));
	return build(graph, &assert_op, name, (struct shown){.write = NULL}, message != NULL ? message : "it does not hold",
	             inputs, count + 1, node, error);
}
