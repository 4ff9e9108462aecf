/*
 * missing_edge.c - a graph that lacks a control edge. A shuffled order of its nodes reveals this.
 *
 * A step adds to a balance and reads it. The read should come after the sum, but no edge says so.
 * Without a seed, the nodes run in the same order in every step, so the program seems right until
 * the graph changes.
 */
#include <stdio.h>
#include <weir/flow.h>

enum { STEPS = 20 };

struct program {
	weir_var *balance;
	weir_graph *graph;
	weir_node *sum;
	weir_output seen;
};

static enum weir_status build(struct program *p, weir_error *error)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "balance", .dtype = WEIR_I64,
	                                   .shape = &weir_shape_scalar};
	weir_tensor *zero = NULL;
	weir_output amount, sum;
	enum weir_status status = weir_tensor_scalar_i64(0, &zero);

	if (status == WEIR_OK)
		status = weir_var_create(zero, &options, &p->balance, error);
	weir_tensor_release(zero);
	if (status != WEIR_OK)
		return status;
	/* WEIR_OK is 0, so calls can be chained. A call that failed has filled *error. */
	if (weir_graph_create(NULL, &p->graph, error) ||
	    weir_op_placeholder(p->graph, "amount", WEIR_I64, &weir_shape_scalar, &amount, error) ||
	    weir_op_read(p->graph, "seen", p->balance, &p->seen, error) ||
	    weir_op_assign_add(p->graph, "sum", p->balance, amount, &sum, error))
		return error->code;
	p->sum = sum.node;
	return WEIR_OK;
}

/* Runs one step, by the names of its nodes. *seen is the balance that the step read. */
static enum weir_status deposit(weir_session *session, int64_t amount, int64_t *seen, weir_error *error)
{
	const char *const fetch = "seen", *const target = "sum";
	struct weir_named_feed feed = {.name = "amount"};
	enum weir_status status = weir_tensor_scalar_i64(amount, &feed.value);
	weir_tensor *result;

	if (status != WEIR_OK)
		return status;
	status = weir_session_run_named(session, &feed, 1, &fetch, 1, &result, &target, 1, WEIR_NO_DEADLINE, NULL, error);
	weir_tensor_release(feed.value);
	if (status != WEIR_OK)
		return status;
	*seen = *(const int64_t *)weir_tensor_data(result);
	weir_tensor_release(result);
	return WEIR_OK;
}

/* *stale: how many of STEPS steps read the balance before they added to it. */
static enum weir_status count_stale(struct program *p, uint64_t seed, int *stale, weir_error *error)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS,
	                                       .shuffle_seed = seed};
	weir_session *session = NULL;
	enum weir_status status = weir_session_create(p->graph, &options, &session, error);
	int64_t seen, last = 0;

	*stale = 0;
	if (status == WEIR_OK)
		status = deposit(session, 0, &last, error);
	for (int i = 0; status == WEIR_OK && i < STEPS; i++) {
		status = deposit(session, 1, &seen, error);
		*stale += status == WEIR_OK && seen == last++;
	}
	(void)weir_session_destroy(session, NULL);
	return status;
}

int main(void)
{
	struct program p = {NULL, NULL, NULL, {NULL, 0}};
	int without_seed, with_seed, wrong = 0;
	weir_error error;

	if (build(&p, &error) || count_stale(&p, 0, &without_seed, &error) || count_stale(&p, 1, &with_seed, &error)) {
		(void)fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	printf("stale reads in %d steps: %d in the usual order, %d shuffled\n", STEPS, without_seed, with_seed);
	wrong += without_seed != 0 && without_seed != STEPS;
	wrong += with_seed == 0 || with_seed == STEPS;
	(void)weir_graph_destroy(p.graph, NULL);
	weir_var_destroy(p.balance, NULL);

	/*
	 * The same graph with the edge. A graph that has run accepts no edge that would change its
	 * steps.
	 */
	if (build(&p, &error) || weir_graph_add_control(p.graph, p.sum, p.seen.node, &error) ||
	    count_stale(&p, 1, &with_seed, &error)) {
		(void)fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	printf("with the edge: %d shuffled\n", with_seed);
	wrong += with_seed != 0;
	(void)weir_graph_destroy(p.graph, NULL);
	weir_var_destroy(p.balance, NULL);
	return wrong != 0;
}
