/*
 * graph_kernel.c - a graph with a kernel of your own, and a run that ends at its deadline.
 *
 * A run executes only nodes that a fetch needs, so a kernel with side effects runs only when it is
 * needed.
 */
#include <stdio.h>
#include <weir/flow.h>

/* x -> 2x, for an f64 scalar. `context` counts the calls. */
static enum weir_status twice(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	(void)error;
	++*(int *)context;
	return weir_tensor_scalar_f64(2 * *(const double *)weir_tensor_data(call->inputs[0]), &call->outputs[0]);
}
static const struct weir_kernel twice_kernel = {WEIR_KERNEL_INIT, .name = "twice", .run = twice};

struct program {
	weir_graph *graph;
	weir_session *session;
	weir_tensor_queue *queue;
	weir_output x, doubled, plus, item;
	int calls;
};

static enum weir_status build(struct program *p, weir_error *error)
{
	struct weir_output_type type = {WEIR_F64, &weir_shape_scalar};
	struct weir_tensor_component component = {WEIR_F64, &weir_shape_scalar, NULL};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 1, .name = "empty",
	                                            .components = &component, .component_count = 1};

	/* WEIR_OK is 0, so calls can be chained. A call that failed has filled *error. */
	return weir_tensor_queue_create(&options, &p->queue, error) || weir_graph_create(NULL, &p->graph, error) ||
	               weir_op_placeholder(p->graph, "x", WEIR_F64, &weir_shape_scalar, &p->x, error) ||
	               weir_op_kernel(p->graph, "twice", &twice_kernel, &p->calls, &p->x, 1, &type, 1, NULL, 0, &p->doubled,
	                              NULL, error) ||
	               weir_op_add(p->graph, "plus", p->x, p->x, &p->plus, error) ||
	               weir_op_dequeue(p->graph, "take", p->queue, &p->item, 1, NULL, error) ||
	               weir_session_create(p->graph, NULL, &p->session, error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status run(struct program *p, weir_output fetch, double x, uint64_t deadline_ns, double *result,
                            weir_error *error)
{
	weir_tensor *value, *fetched;
	enum weir_status status = weir_tensor_scalar_f64(x, &value);

	if (status != WEIR_OK)
		return status;
	status = weir_session_run(p->session, &(struct weir_feed){p->x, value}, 1, &fetch, 1, &fetched, NULL, 0,
	                          deadline_ns, NULL, error);
	weir_tensor_release(value);
	if (status != WEIR_OK)
		return status;
	*result = *(const double *)weir_tensor_data(fetched);
	weir_tensor_release(fetched);
	return WEIR_OK;
}

int main(void)
{
	struct program p = {.calls = 0};
	weir_error error;
	double result = 0;
	int wrong = 0;

	if (build(&p, &error) != WEIR_OK) {
		(void)fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	wrong += run(&p, p.plus, 3, WEIR_NO_DEADLINE, &result, &error) != WEIR_OK || result != 6 || p.calls != 0;
	wrong += run(&p, p.doubled, 4, WEIR_NO_DEADLINE, &result, &error) != WEIR_OK || result != 8 || p.calls != 1;
	wrong += run(&p, p.item, 0, weir_deadline_in(20000000), &result, &error) != WEIR_DEADLINE_EXCEEDED;
	printf("from an empty queue: %s\n", error.message);
	if (weir_session_destroy(p.session, NULL) || weir_graph_destroy(p.graph, NULL) ||
	    weir_tensor_queue_destroy(p.queue, NULL))
		return 1;
	printf("%s\n", wrong == 0 ? "all results are right" : "wrong");
	return wrong == 0 ? 0 : 1;
}
