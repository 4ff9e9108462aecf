/*
 * test_op_softmax.c - softmax cross-entropy: its loss, and its gradient compared with differences.
 */
#include <math.h>

#include "graph_kit.h"

enum { ROWS = 3, CLASSES = 4 };

struct model {
	weir_graph *graph;
	weir_session *session;
	weir_output logits, labels, loss, gradient;
};

static void open_model(struct model *m, enum weir_dtype dtype)
{
	weir_error error;

	m->graph = kit_graph();
	m->logits = kit_placeholder(m->graph, "logits", dtype, kit_shape(2, -1, CLASSES));
	m->labels = kit_placeholder(m->graph, "labels", WEIR_I64, kit_shape(1, -1));
	cr_assert_eq(weir_op_softmax_cross_entropy(m->graph, "xent", m->logits, m->labels, &m->loss, &m->gradient, &error),
	             WEIR_OK, "%s", error.message);
	m->session = kit_session(m->graph, 0);
}

static enum weir_status run_model(struct model *m, weir_tensor *logits, const int64_t labels[], weir_tensor *results[2],
                                  weir_error *error)
{
	weir_tensor *label_tensor = kit_tensor(WEIR_I64, kit_shape(1, ROWS), labels);
	struct weir_feed feeds[2] = {{m->logits, logits}, {m->labels, label_tensor}};
	weir_output fetches[2] = {m->loss, m->gradient};
	enum weir_status status =
		weir_session_run(m->session, feeds, 2, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, error);

	weir_tensor_release(label_tensor);
	weir_tensor_release(logits);
	return status;
}

static double loss_of(struct model *m, const double logits[], const int64_t labels[])
{
	weir_tensor *results[2];
	double sum = 0;

	cr_assert_eq(run_model(m, kit_tensor(WEIR_F64, kit_shape(2, ROWS, CLASSES), logits), labels, results, NULL),
	             WEIR_OK);
	for (size_t i = 0; i < ROWS; i++)
		sum += ((const double *)weir_tensor_data(results[0]))[i];
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	return sum;
}

Test(op_softmax, the_gradient_agrees_with_differences_of_the_loss)
{
	const int64_t labels[ROWS] = {2, 0, 3};
	double logits[ROWS * CLASSES] = {0.1, -1.2, 0.7, 2.0, 1.5, 0.2, -0.3, 0.9, -2.0, 0.0, 0.4, 0.4};
	const double step = 1e-5;
	weir_tensor *results[2];
	struct model m;

	open_model(&m, WEIR_F64);
	cr_assert_eq(run_model(&m, kit_tensor(WEIR_F64, kit_shape(2, ROWS, CLASSES), logits), labels, results, NULL),
	             WEIR_OK);
	for (size_t i = 0; i < ROWS * CLASSES; i++) {
		double above, below;

		logits[i] += step;
		above = loss_of(&m, logits, labels);
		logits[i] -= 2 * step;
		below = loss_of(&m, logits, labels);
		logits[i] += step;
		cr_expect_float_eq(((const double *)weir_tensor_data(results[1]))[i], (above - below) / (2 * step), 1e-8,
		                   "element %zu", i);
	}
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	kit_end(m.session, m.graph);
}

Test(op_softmax, equal_logits_lose_the_logarithm_of_the_classes)
{
	const int64_t labels[ROWS] = {0, 1, 2};
	const float logits[ROWS * CLASSES] = {0};
	weir_tensor *results[2];
	struct model m;

	open_model(&m, WEIR_F32);
	cr_assert_eq(run_model(&m, kit_tensor(WEIR_F32, kit_shape(2, ROWS, CLASSES), logits), labels, results, NULL),
	             WEIR_OK);
	cr_expect_float_eq(kit_f32_at(results[0], 1), logf(CLASSES), 1e-6f);
	cr_expect_float_eq(kit_f32_at(results[1], 0), 0.25f - 1.0f, 1e-6f);
	cr_expect_float_eq(kit_f32_at(results[1], 1), 0.25f, 1e-6f);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	kit_end(m.session, m.graph);
}

Test(op_softmax, huge_logits_do_not_overflow)
{
	const int64_t labels[ROWS] = {0, 1, 0};
	const float logits[ROWS * CLASSES] = {1000, 0, 0, 0, 1000, 0, 0, 0, -1000, -1000, -1000, -1000};
	weir_tensor *results[2];
	struct model m;

	open_model(&m, WEIR_F32);
	cr_assert_eq(run_model(&m, kit_tensor(WEIR_F32, kit_shape(2, ROWS, CLASSES), logits), labels, results, NULL),
	             WEIR_OK);
	cr_expect_float_eq(kit_f32_at(results[0], 0), 0.0f, 1e-6f);
	cr_expect_float_eq(kit_f32_at(results[0], 1), 1000.0f, 1e-3f);
	for (size_t i = 0; i < ROWS * CLASSES; i++)
		cr_expect(isfinite(kit_f32_at(results[1], i)), "element %zu", i);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	kit_end(m.session, m.graph);
}

Test(op_softmax, a_label_out_of_range_names_itself_and_the_op)
{
	const int64_t labels[ROWS] = {0, 4, 0};
	const float logits[ROWS * CLASSES] = {0};
	weir_tensor *results[2] = {NULL, NULL};
	weir_error error;
	struct model m;

	open_model(&m, WEIR_F32);
	cr_assert_eq(run_model(&m, kit_tensor(WEIR_F32, kit_shape(2, ROWS, CLASSES), logits), labels, results, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "softmax_cross_entropy \"xent\": labels[1] = 4"), "%s", error.message);
	cr_expect_null(results[0]);
	cr_expect_null(results[1]);
	kit_end(m.session, m.graph);
}

Test(op_softmax, shapes_and_dtypes_are_checked_when_built)
{
	weir_graph *graph = kit_graph();
	weir_output logits = kit_placeholder(graph, "logits", WEIR_F32, kit_shape(2, 8, 10));
	weir_output ints = kit_placeholder(graph, "ints", WEIR_I32, kit_shape(2, 8, 10));
	weir_output labels = kit_placeholder(graph, "labels", WEIR_I32, kit_shape(1, 8));
	weir_output seven = kit_placeholder(graph, "seven", WEIR_I32, kit_shape(1, 7));
	weir_output floats = kit_placeholder(graph, "floats", WEIR_F32, kit_shape(1, 8));
	weir_output loss, gradient;
	weir_error error;

	cr_expect_eq(weir_op_softmax_cross_entropy(graph, NULL, logits, seven, &loss, &gradient, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_softmax_cross_entropy(graph, NULL, logits, floats, &loss, &gradient, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_softmax_cross_entropy(graph, NULL, ints, labels, &loss, &gradient, &error),
	             WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_softmax_cross_entropy(graph, NULL, labels, labels, &loss, &gradient, &error),
	             WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_op_softmax_cross_entropy(graph, NULL, logits, labels, NULL, &gradient, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_softmax_cross_entropy(graph, NULL, logits, labels, &loss, NULL, &error), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
}
