/*
 * test_gradient.c - gradients: every rule against differences, in f64; what is refused, by name.
 */
#include <math.h>

#include <weir/flow.h>

#include "failing_allocator.h"
#include "graph_kit.h"

enum { MOST_XS = 3, MOST_ELEMENTS = 64 };

#define OK(call) cr_assert_eq((call), WEIR_OK, "%s: %s", #call, error.message)

/* -- the rules, against differences ---------------------------------------------------------------- */

typedef enum weir_status unary_fn(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                  weir_error *error);
typedef enum weir_status binary_fn(weir_graph *graph, const char *name, weir_output a, weir_output b, weir_output *out,
                                   weir_error *error);
typedef void build_fn(weir_graph *graph, const weir_output x[], weir_output *y);

static void build_sum_axis(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_reduce_sum_axis(graph, NULL, x[0], 1, y, &error));
}

static void build_mean_axis(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_reduce_mean_axis(graph, NULL, x[0], 0, y, &error));
}

static void build_max_axis(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_reduce_max_axis(graph, NULL, x[0], 1, y, &error));
}

static void build_min_axis(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_reduce_min_axis(graph, NULL, x[0], 2, y, &error));
}

static void build_matmul(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_matmul(graph, NULL, x[0], x[1], 0, y, &error));
}

static void build_matmul_ta(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_matmul(graph, NULL, x[0], x[1], WEIR_MATMUL_TRANSPOSE_A, y, &error));
}

static void build_matmul_tb(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_matmul(graph, NULL, x[0], x[1], WEIR_MATMUL_TRANSPOSE_B, y, &error));
}

static void build_matmul_tab(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_matmul(graph, NULL, x[0], x[1], WEIR_MATMUL_TRANSPOSE_A | WEIR_MATMUL_TRANSPOSE_B, y, &error));
}

static void build_reshape(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_shape shape = kit_shape(3, 2, -1, 2);
	weir_error error;

	OK(weir_op_reshape(graph, NULL, x[0], &shape, y, &error));
}

static void build_rows(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_rows(graph, NULL, x[0], 1, WEIR_REST, y, &error));
}

static void build_slice(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_slice(graph, NULL, x[0], 1, 1, 2, y, &error));
}

static void build_transpose(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_transpose(graph, NULL, x[0], NULL, 0, y, &error));
}

static void build_permute(weir_graph *graph, const weir_output x[], weir_output *y)
{
	const uint32_t order[] = {2, 0, 1};
	weir_error error;

	OK(weir_op_transpose(graph, NULL, x[0], order, 3, y, &error));
}

static void build_concat(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_concat(graph, NULL, x, 3, 1, y, &error));
}

static void build_concat_rows(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_concat(graph, NULL, x, 2, 0, y, &error));
}

/* Of three parts one is not used. */
static void build_split(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_output parts[3];
	weir_error error;

	OK(weir_op_split(graph, NULL, x[0], 1, 3, parts, &error));
	OK(weir_op_mul(graph, NULL, parts[0], parts[2], y, &error));
}

/* Row 2 is taken twice, and row 1 never. */
static void build_gather_rows(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_output indices = kit_constant(graph, kit_tensor(WEIR_I64, kit_shape(2, 2, 2), (const int64_t[]){2, 0, 3, 2}));
	weir_error error;

	OK(weir_op_gather_rows(graph, NULL, x[0], indices, y, &error));
}

static void build_select(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_output condition;
	weir_error error;

	OK(weir_op_greater(graph, NULL, x[0], x[1], &condition, &error));
	OK(weir_op_select(graph, NULL, condition, x[0], x[1], y, &error));
	OK(weir_op_mul(graph, NULL, *y, x[1], y, &error));
}

static void build_cross_entropy(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_output labels = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 2), (const int32_t[]){2, 0}));
	weir_error error;

	OK(weir_op_softmax_cross_entropy(graph, NULL, x[0], labels, y, NULL, &error));
}

/* There and back through f32 would lose digits; so only f64 to f64. */
static void build_cast(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_error error;

	OK(weir_op_cast(graph, NULL, x[0], WEIR_F64, y, &error));
}

/* A network, and a value with several uses. */
static void build_network(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_output hidden, out;
	weir_error error;

	OK(weir_op_matmul(graph, NULL, x[0], x[1], 0, &hidden, &error));
	OK(weir_op_add(graph, NULL, hidden, x[2], &hidden, &error));
	OK(weir_op_tanh(graph, NULL, hidden, &hidden, &error));
	OK(weir_op_matmul(graph, NULL, hidden, x[1], WEIR_MATMUL_TRANSPOSE_B, &out, &error));
	OK(weir_op_softmax(graph, NULL, out, &out, &error));
	OK(weir_op_mul(graph, NULL, out, x[0], y, &error));
}

/* The gradient of a gradient: of the square of that of exp(x) * y. */
static void build_twice(weir_graph *graph, const weir_output x[], weir_output *y)
{
	weir_output product, first[2];
	weir_error error;

	OK(weir_op_exp(graph, NULL, x[0], &product, &error));
	OK(weir_op_mul(graph, NULL, product, x[1], &product, &error));
	OK(weir_gradients(graph, &product, 1, x, 2, first, &error));
	OK(weir_op_mul(graph, NULL, first[0], first[0], y, &error));
	OK(weir_op_add(graph, NULL, *y, first[1], y, &error));
}

/* One of the three builders. */
struct rule {
	const char *name;
	unary_fn *unary;
	binary_fn *binary;
	build_fn *build;
	size_t count;
	weir_shape shapes[MOST_XS];
	double low, high;
};

static const struct rule rules[] = {
	{"neg", weir_op_neg, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"abs", weir_op_abs, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"sign", weir_op_sign, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"square", weir_op_square, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"relu", weir_op_relu, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"exp", weir_op_exp, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"log", weir_op_log, NULL, NULL, 1, {{2, {2, 3}}}, 0.5, 2},
	{"sqrt", weir_op_sqrt, NULL, NULL, 1, {{2, {2, 3}}}, 0.5, 2},
	{"tanh", weir_op_tanh, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"sigmoid", weir_op_sigmoid, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"softmax", weir_op_softmax, NULL, NULL, 1, {{3, {2, 2, 3}}}, -2, 2},
	{"identity", weir_op_identity, NULL, NULL, 1, {{1, {3}}}, -2, 2},
	{"cast", NULL, NULL, build_cast, 1, {{1, {3}}}, -2, 2},
	{"reduce_sum", weir_op_reduce_sum, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"reduce_sum_axis", NULL, NULL, build_sum_axis, 1, {{3, {2, 3, 2}}}, -2, 2},
	{"reduce_mean", weir_op_reduce_mean, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"reduce_mean_axis", NULL, NULL, build_mean_axis, 1, {{3, {2, 3, 2}}}, -2, 2},
	{"reduce_max", weir_op_reduce_max, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"reduce_max_axis", NULL, NULL, build_max_axis, 1, {{3, {2, 3, 2}}}, -2, 2},
	{"reduce_min", weir_op_reduce_min, NULL, NULL, 1, {{2, {2, 3}}}, -2, 2},
	{"reduce_min_axis", NULL, NULL, build_min_axis, 1, {{3, {2, 3, 2}}}, -2, 2},
	{"add", NULL, weir_op_add, NULL, 2, {{2, {2, 3}}, {2, {2, 3}}}, -2, 2},
	{"add, repeated", NULL, weir_op_add, NULL, 2, {{2, {2, 3}}, {1, {3}}}, -2, 2},
	{"sub", NULL, weir_op_sub, NULL, 2, {{1, {3}}, {2, {2, 3}}}, -2, 2},
	{"mul, by a scalar", NULL, weir_op_mul, NULL, 2, {{0, {0}}, {2, {2, 3}}}, -2, 2},
	{"mul", NULL, weir_op_mul, NULL, 2, {{3, {2, 2, 3}}, {2, {2, 3}}}, -2, 2},
	{"div", NULL, weir_op_div, NULL, 2, {{2, {2, 3}}, {1, {3}}}, 0.5, 2},
	{"div, of a scalar", NULL, weir_op_div, NULL, 2, {{0, {0}}, {2, {2, 3}}}, 0.5, 2},
	{"maximum", NULL, weir_op_maximum, NULL, 2, {{2, {2, 3}}, {1, {3}}}, -2, 2},
	{"minimum", NULL, weir_op_minimum, NULL, 2, {{1, {3}}, {2, {2, 3}}}, -2, 2},
	{"mean_squared_error", NULL, weir_op_mean_squared_error, NULL, 2, {{2, {2, 3}}, {2, {2, 3}}}, -2, 2},
	{"matmul", NULL, NULL, build_matmul, 2, {{2, {2, 3}}, {2, {3, 4}}}, -2, 2},
	{"matmul, a transposed", NULL, NULL, build_matmul_ta, 2, {{2, {3, 2}}, {2, {3, 4}}}, -2, 2},
	{"matmul, b transposed", NULL, NULL, build_matmul_tb, 2, {{2, {2, 3}}, {2, {4, 3}}}, -2, 2},
	{"matmul, both transposed", NULL, NULL, build_matmul_tab, 2, {{2, {3, 2}}, {2, {4, 3}}}, -2, 2},
	{"reshape", NULL, NULL, build_reshape, 1, {{2, {2, 6}}}, -2, 2},
	{"rows", NULL, NULL, build_rows, 1, {{2, {3, 2}}}, -2, 2},
	{"slice", NULL, NULL, build_slice, 1, {{3, {2, 4, 2}}}, -2, 2},
	{"transpose", NULL, NULL, build_transpose, 1, {{2, {2, 3}}}, -2, 2},
	{"transpose, in an order", NULL, NULL, build_permute, 1, {{3, {2, 3, 4}}}, -2, 2},
	{"concat", NULL, NULL, build_concat, 3, {{2, {2, 1}}, {2, {2, 3}}, {2, {2, 2}}}, -2, 2},
	{"concat, rows", NULL, NULL, build_concat_rows, 2, {{2, {1, 2}}, {2, {3, 2}}}, -2, 2},
	{"split", NULL, NULL, build_split, 1, {{2, {2, 6}}}, -2, 2},
	{"gather_rows", NULL, NULL, build_gather_rows, 1, {{2, {4, 3}}}, -2, 2},
	{"select", NULL, NULL, build_select, 2, {{2, {2, 3}}, {2, {2, 3}}}, -2, 2},
	{"softmax_cross_entropy", NULL, NULL, build_cross_entropy, 1, {{2, {2, 4}}}, -2, 2},
	{"a network", NULL, NULL, build_network, 3, {{2, {2, 3}}, {2, {3, 4}}, {1, {4}}}, -1, 1},
	{"a gradient of a gradient", NULL, NULL, build_twice, 2, {{2, {2, 3}}, {1, {3}}}, -1, 1},
};

struct checked {
	const struct rule *rule;
	weir_graph *graph;
	weir_session *session;
	weir_output x[MOST_XS], loss, gradients[MOST_XS];
	double values[MOST_XS][MOST_ELEMENTS];
};

/* Different numbers, none near another or near 0, so that no kink is between x - h and x + h. */
static void draw_values(struct checked *c)
{
	unsigned at = 1;

	for (size_t k = 0; k < c->rule->count; k++) {
		for (size_t i = 0; i < MOST_ELEMENTS; i++)
			c->values[k][i] = c->rule->low + (c->rule->high - c->rule->low) * (((at++ * 37) % 101) + 0.25) / 101;
	}
}

static void fill_feeds(struct checked *c, struct weir_feed feeds[])
{
	for (size_t k = 0; k < c->rule->count; k++)
		feeds[k] = (struct weir_feed){c->x[k], kit_tensor(WEIR_F64, c->rule->shapes[k], c->values[k])};
}

static void run_checked(struct checked *c, const weir_output fetches[], size_t count, weir_tensor *results[])
{
	struct weir_feed feeds[MOST_XS];
	weir_error error;

	fill_feeds(c, feeds);
	cr_assert_eq(weir_session_run(c->session, feeds, c->rule->count, fetches, count, results, NULL, 0, WEIR_NO_DEADLINE,
	                              NULL, &error),
	             WEIR_OK, "%s: %s", c->rule->name, error.message);
	for (size_t k = 0; k < c->rule->count; k++)
		weir_tensor_release(feeds[k].value);
}

static double loss_of(struct checked *c)
{
	weir_tensor *result;
	double loss;

	run_checked(c, &c->loss, 1, &result);
	loss = *(const double *)weir_tensor_data(result);
	weir_tensor_release(result);
	return loss;
}

/* The loss is the sum of sin(y), so that the gradients by the elements of y differ. It is y * y + y here. */
static void build_checked(struct checked *c, bool shapes_known)
{
	weir_output y, square;
	weir_error error;

	c->graph = kit_graph();
	for (size_t k = 0; k < c->rule->count; k++) {
		weir_shape shape = c->rule->shapes[k];

		for (uint32_t i = 0; i < shape.rank && !shapes_known; i++)
			shape.dims[i] = -1;
		c->x[k] = kit_placeholder(c->graph, NULL, WEIR_F64, shape);
	}
	if (c->rule->unary != NULL)
		OK(c->rule->unary(c->graph, NULL, c->x[0], &y, &error));
	else if (c->rule->binary != NULL)
		OK(c->rule->binary(c->graph, NULL, c->x[0], c->x[1], &y, &error));
	else
		c->rule->build(c->graph, c->x, &y);
	OK(weir_op_square(c->graph, NULL, y, &square, &error));
	OK(weir_op_add(c->graph, NULL, square, y, &y, &error));
	OK(weir_op_reduce_sum(c->graph, NULL, y, &c->loss, &error));
	cr_assert_eq(weir_gradients(c->graph, &c->loss, 1, c->x, c->rule->count, c->gradients, &error), WEIR_OK, "%s: %s",
	             c->rule->name, error.message);
	c->session = kit_session(c->graph, 0);
}

static void compare(struct checked *c, size_t k, const weir_tensor *gradient)
{
	const double h = 1e-5;

	cr_assert(weir_shape_equal(weir_tensor_shape(gradient), &c->rule->shapes[k]), "%s: the gradient has another shape",
	          c->rule->name);
	for (size_t i = 0; i < (size_t)weir_tensor_element_count(gradient); i++) {
		double x = c->values[k][i], got = ((const double *)weir_tensor_data(gradient))[i], expected;

		c->values[k][i] = x + h;
		expected = loss_of(c);
		c->values[k][i] = x - h;
		expected = (expected - loss_of(c)) / (2 * h);
		c->values[k][i] = x;
		cr_expect(fabs(got - expected) <= 1e-6 * (1 + fabs(expected)),
		          "%s: d / d x%zu[%zu] is %.9g, by differences %.9g", c->rule->name, k, i, got, expected);
	}
}

static void check_rule(const struct rule *rule, bool shapes_known)
{
	struct checked c = {.rule = rule};
	weir_tensor *results[MOST_XS];

	draw_values(&c);
	build_checked(&c, shapes_known);
	run_checked(&c, c.gradients, rule->count, results);
	for (size_t k = 0; k < rule->count; k++) {
		compare(&c, k, results[k]);
		weir_tensor_release(results[k]);
	}
	kit_end(c.session, c.graph);
}

Test(gradient, of_every_op_is_that_of_differences)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		check_rule(&rules[i], i % 2 == 0);
}

/* Where the shapes are known, fewer nodes are needed; so the other half of the rules is built so. */
Test(gradient, of_every_op_needs_no_shapes)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		check_rule(&rules[i], i % 2 != 0);
}

/* -- kernels, and values that count as constant ------------------------------------------------------ */

/* x * x * x, by a kernel; and its rule. */
static enum weir_status cube(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	double x = *(const double *)weir_tensor_data(call->inputs[0]);

	(void)context;
	(void)error;
	return weir_tensor_scalar_f64(x * x * x, &call->outputs[0]);
}

static enum weir_status cube_gradient(void *context, const struct weir_gradient_request *r, weir_output gradients[],
                                      weir_error *error)
{
	weir_output three, square;

	*(int *)context += r->needed[0];
	return weir_op_square(r->graph, NULL, r->inputs[0], &square, error) ||
	               weir_op_mul(r->graph, NULL, square, r->of_outputs[0], &square, error) ||
	               weir_op_add(r->graph, NULL, square, square, &three, error) ||
	               weir_op_add(r->graph, NULL, three, square, &gradients[0], error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status wrong_gradient(void *context, const struct weir_gradient_request *r, weir_output gradients[],
                                       weir_error *error)
{
	weir_shape two = {1, {2}};

	(void)context;
	return weir_op_random_normal(r->graph, NULL, WEIR_F64, &two, 0, 1, 0, gradients, error);
}

static weir_output add_kernel(weir_graph *graph, weir_kernel_gradient_fn *rule, void *context, weir_output x)
{
	struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "cube", .run = cube, .gradient = rule};
	struct weir_output_type type = {WEIR_F64, &weir_shape_scalar};
	weir_output y;
	weir_error error;

	OK(weir_op_kernel(graph, "my_cube", &kernel, context, &x, 1, &type, 1, NULL, 0, &y, NULL, &error));
	return y;
}

static weir_output f64_constant(weir_graph *graph, double value)
{
	return kit_constant(graph, kit_tensor(WEIR_F64, kit_shape(0), &value));
}

static double fetch_f64(weir_session *session, weir_output out)
{
	weir_tensor *result = kit_fetch(session, out);
	double value = *(const double *)weir_tensor_data(result);

	weir_tensor_release(result);
	return value;
}

Test(gradient, a_kernel_brings_its_rule)
{
	weir_graph *graph = kit_graph();
	weir_output x = f64_constant(graph, 2), y, gradient;
	weir_session *session;
	weir_error error;
	int asked = 0;

	y = add_kernel(graph, cube_gradient, &asked, x);
	OK(weir_gradients(graph, &y, 1, &x, 1, &gradient, &error));
	cr_expect_eq(asked, 1);
	session = kit_session(graph, 0);
	cr_expect_float_eq(fetch_f64(session, gradient), 12, 1e-12);
	kit_end(session, graph);
}

Test(gradient, losses_are_summed_and_an_x_may_be_a_loss)
{
	weir_graph *graph = kit_graph();
	weir_output x = f64_constant(graph, 3), losses[3], gradients[2], xs[2];
	weir_session *session;
	weir_error error;

	OK(weir_op_square(graph, NULL, x, &losses[0], &error));
	losses[1] = x;
	losses[2] = losses[0];
	xs[0] = x;
	xs[1] = losses[0];
	OK(weir_gradients(graph, losses, 3, xs, 2, gradients, &error));
	session = kit_session(graph, 0);
	cr_expect_float_eq(fetch_f64(session, gradients[0]), 13, 1e-12);
	cr_expect_float_eq(fetch_f64(session, gradients[1]), 2, 1e-12);
	kit_end(session, graph);
}

/* -- calls ------------------------------------------------------------------------------------------- */

static enum weir_status ignore(void *context, const char *text, size_t size, weir_error *error)
{
	(void)text;
	(void)size;
	(void)error;
	++*(int *)context;
	return WEIR_OK;
}

/* tanh(x * w), which is also printed, if there is a context. */
static enum weir_status build_layer(void *context, weir_graph *body, const struct weir_argument arguments[],
                                    weir_output results[], weir_error *error)
{
	struct weir_print_options print = {WEIR_PRINT_OPTIONS_INIT, .write = ignore, .context = context};
	weir_output product;

	return weir_op_mul(body, "product", arguments[0].output, arguments[1].output, &product, error) ||
	               (context != NULL && weir_op_print(body, NULL, &print, &product, 1, NULL, error)) ||
	               weir_op_tanh(body, NULL, product, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

/* The layer, twice. */
static enum weir_status build_two_layers(void *context, weir_graph *body, const struct weir_argument arguments[],
                                         weir_output results[], weir_error *error)
{
	struct weir_argument inner[2] = {arguments[0], arguments[1]};

	return weir_op_call(body, "first", context, inner, 2, &inner[0].output, NULL, error) ||
	               weir_op_call(body, "second", context, inner, 2, &results[0], NULL, error) ||
	               weir_op_identity(body, NULL, arguments[1].output, &results[1], error)
	           ? error->code
	           : WEIR_OK;
}

/* Reads the variable, and counts the call. */
static enum weir_status build_reading(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	weir_output w;

	(void)context;
	return weir_op_read(body, "w", arguments[1].var, &w, error) ||
	               weir_op_mul(body, NULL, w, arguments[0].output, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status build_drawing(void *context, weir_graph *body, const struct weir_argument arguments[],
                                      weir_output results[], weir_error *error)
{
	weir_output noise;

	(void)context;
	return weir_op_random_normal(body, "noise", WEIR_F64, &weir_shape_scalar, 0, 1, 0, &noise, error) ||
	               weir_op_mul(body, NULL, noise, arguments[0].output, &results[0], error)
	           ? error->code
	           : WEIR_OK;
}

static weir_function *function_of(const char *name, weir_function_fn *build, void *context,
                                  enum weir_parameter_kind second, size_t results)
{
	const struct weir_parameter parameters[] = {{"x", WEIR_PARAMETER_TENSOR, 0, NULL}, {"w", second, 0, NULL}};

	return kit_function(name, build, context, parameters, 2, results);
}

static void destroy_function(weir_function *function)
{
	weir_error error;

	OK(weir_function_destroy(function, &error));
}

/* Runs y and its gradients by x and w at x = 0.7, w = 0.5, and compares them with the expected values. */
static void expect_gradients(weir_graph *graph, weir_output x, weir_output w, weir_output y, const double expected[3])
{
	weir_output fetches[3] = {y};
	weir_tensor *results[3], *value = kit_tensor(WEIR_F64, kit_shape(0), (const double[]){0.7});
	weir_session *session;
	weir_error error;

	OK(weir_gradients(graph, &y, 1, (weir_output[]){x, w}, 2, &fetches[1], &error));
	session = kit_session(graph, 0);
	OK(weir_session_run(session, &(struct weir_feed){x, value}, 1, fetches, 3, results, NULL, 0, WEIR_NO_DEADLINE, NULL,
	                    &error));
	for (int i = 0; i < 3; i++) {
		cr_expect_float_eq(*(const double *)weir_tensor_data(results[i]), expected[i], 1e-12, "value %d", i);
		weir_tensor_release(results[i]);
	}
	weir_tensor_release(value);
	OK(weir_session_destroy(session, &error));
}

Test(gradient, calls_are_followed)
{
	weir_function *layer = function_of("layer", build_layer, NULL, WEIR_PARAMETER_TENSOR, 1);
	weir_function *two = function_of("two", build_two_layers, layer, WEIR_PARAMETER_TENSOR, 2);
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F64, kit_shape(0)), w = f64_constant(graph, 0.5), outs[2];
	struct weir_argument arguments[2] = {{.output = x}, {.output = w}};
	double t = tanh(0.7 * 0.5), u = tanh(t * 0.5);
	weir_error error;

	OK(weir_op_call(graph, "net", two, arguments, 2, outs, NULL, &error));
	expect_gradients(
		graph, x, w, outs[0],
		(const double[]){u, (1 - u * u) * 0.5 * (1 - t * t) * 0.5, (1 - u * u) * (t + 0.5 * (1 - t * t) * 0.7)});
	OK(weir_graph_destroy(graph, &error));
	destroy_function(two);
	destroy_function(layer);
}

Test(gradient, effects_of_a_call_happen_once)
{
	int printed = 0;
	weir_function *layer = function_of("layer", build_layer, &printed, WEIR_PARAMETER_TENSOR, 1);
	weir_function *two = function_of("two", build_two_layers, layer, WEIR_PARAMETER_TENSOR, 2);
	weir_graph *graph = kit_graph();
	weir_output x = kit_placeholder(graph, "x", WEIR_F64, kit_shape(0)), w = f64_constant(graph, 0.5), outs[2];
	weir_output gradient = {NULL, 0};
	struct weir_argument arguments[2] = {{.output = x}, {.output = w}};
	double t = tanh(0.7 * 0.5);
	weir_error error;

	OK(weir_op_call(graph, NULL, layer, arguments, 2, outs, NULL, &error));
	expect_gradients(graph, x, w, outs[0], (const double[]){t, (1 - t * t) * 0.5, (1 - t * t) * 0.7});
	cr_expect_eq(printed, 1, "the layer printed %d times", printed);
	/* A call inside cannot run again without its effects. */
	OK(weir_op_call(graph, "net", two, arguments, 2, outs, NULL, &error));
	cr_expect_eq(weir_gradients(graph, outs, 1, &x, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_not_null(strstr(error.message, "would compute call \"first\" again"), "%s", error.message);
	OK(weir_graph_destroy(graph, &error));
	destroy_function(two);
	destroy_function(layer);
}

Test(gradient, a_call_whose_values_would_not_be_the_same_again_is_refused)
{
	weir_function *reading = function_of("reading", build_reading, NULL, WEIR_PARAMETER_VAR, 1);
	weir_function *drawing = function_of("drawing", build_drawing, NULL, WEIR_PARAMETER_TENSOR, 1);
	weir_var *var = kit_var("w", kit_tensor(WEIR_F64, kit_shape(0), (const double[]){2}));
	weir_graph *graph = kit_graph();
	weir_output x = f64_constant(graph, 1), y, gradient = {NULL, 0};
	struct weir_argument arguments[2] = {{.output = x}, {.var = var}};
	weir_error error;

	OK(weir_op_call(graph, "call", reading, arguments, 2, &y, NULL, &error));
	cr_expect_eq(weir_gradients(graph, &y, 1, &x, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_not_null(strstr(error.message, "the gradient of call \"call\" would compute read \"w\" again"), "%s",
	                   error.message);
	arguments[1].output = x;
	OK(weir_op_call(graph, "draws", drawing, arguments, 2, &y, NULL, &error));
	cr_expect_eq(weir_gradients(graph, &y, 1, &x, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_not_null(strstr(error.message, "random_normal \"noise\" again"), "%s", error.message);
	cr_expect_null(gradient.node);
	OK(weir_graph_destroy(graph, &error));
	destroy_function(reading);
	destroy_function(drawing);
	weir_var_destroy(var, NULL);
}

/* -- refusals ---------------------------------------------------------------------------------------- */

Test(gradient, what_has_none_is_refused_by_name)
{
	int printed = 0;
	weir_function *layer = function_of("layer", build_layer, &printed, WEIR_PARAMETER_TENSOR, 1);
	weir_graph *graph = kit_graph(), *other = kit_graph();
	weir_output x = f64_constant(graph, 1), foreign = f64_constant(other, 1), whole = kit_constant(graph, kit_i64(1));
	weir_output y, loss, gradient = {NULL, 0}, truth;
	struct weir_argument arguments[2] = {{.output = x}, {.output = x}};
	weir_error error;

	OK(weir_op_less(graph, "less", x, x, &truth, &error));
	OK(weir_op_cond(graph, "branch", truth, layer, layer, arguments, 2, &y, NULL, &error));
	cr_expect_eq(weir_gradients(graph, &y, 1, &x, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_str_eq(error.message, "weir_gradients: cond \"branch\" has no gradient");
	y = add_kernel(graph, NULL, NULL, x);
	OK(weir_op_square(graph, "loss", y, &loss, &error));
	cr_expect_eq(weir_gradients(graph, &loss, 1, &x, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_str_eq(error.message, "weir_gradients: kernel cube \"my_cube\" has no gradient rule");
	OK(weir_op_cast(graph, "count", x, WEIR_I64, &y, &error));
	OK(weir_op_cast(graph, NULL, y, WEIR_F64, &loss, &error));
	cr_expect_eq(weir_gradients(graph, &loss, 1, &x, 1, &gradient, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "no loss depends on x 0"), "%s", error.message);
	cr_expect_eq(weir_gradients(graph, &loss, 1, &whole, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_gradients(graph, &whole, 1, &x, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weir_gradients(graph, &loss, 1, &foreign, 1, &gradient, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_gradients(graph, NULL, 0, &x, 1, &gradient, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_gradients(graph, &loss, 1, NULL, 0, &gradient, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_gradients(NULL, &loss, 1, &x, 1, &gradient, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_gradients(graph, &loss, 1, &x, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_null(gradient.node);
	OK(weir_graph_destroy(graph, &error));
	OK(weir_graph_destroy(other, &error));
	destroy_function(layer);
}

Test(gradient, a_rule_that_gives_another_shape_is_refused)
{
	weir_graph *graph = kit_graph();
	weir_output x = f64_constant(graph, 1), y = add_kernel(graph, wrong_gradient, NULL, x), gradient = {NULL, 0};
	weir_error error;

	cr_expect_eq(weir_gradients(graph, &y, 1, &x, 1, &gradient, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(
		error.message,
		"weir_gradients: the rule of cube \"my_cube\" gave f64 [2] as the gradient by input 0, which is f64 []");
	OK(weir_graph_destroy(graph, &error));
}

/* A cross-entropy whose gradient output is used, too: that output has no gradient. */
Test(gradient, the_second_output_of_a_cross_entropy_has_none)
{
	weir_graph *graph = kit_graph();
	weir_output x = kit_constant(graph, kit_tensor(WEIR_F64, kit_shape(2, 1, 2), (const double[]){1, 2}));
	weir_output labels = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 1), (const int32_t[]){1}));
	weir_output losses[2], gradient;
	weir_error error;

	OK(weir_op_softmax_cross_entropy(graph, "entropy", x, labels, &losses[0], &losses[1], &error));
	cr_expect_eq(weir_gradients(graph, losses, 2, &x, 1, &gradient, &error), WEIR_UNIMPLEMENTED);
	cr_expect_not_null(strstr(error.message, "output 1 of softmax_cross_entropy \"entropy\""), "%s", error.message);
	OK(weir_graph_destroy(graph, &error));
}

static enum weir_status differentiate(const weir_allocator *allocator, void *context)
{
	struct weir_graph_options options = {WEIR_GRAPH_OPTIONS_INIT, .allocator = allocator};
	weir_output x, y = {0}, parts[2], gradient;
	weir_shape shape = kit_shape(2, 2, 2);
	struct weir_argument arguments[2];
	weir_graph *graph;
	enum weir_status status = weir_graph_create(&options, &graph, NULL);

	if (status != WEIR_OK)
		return status;
	status = weir_op_placeholder(graph, NULL, WEIR_F64, &shape, &x, NULL);
	if (status == WEIR_OK)
		status = weir_op_split(graph, NULL, x, 1, 2, parts, NULL);
	if (status == WEIR_OK)
		status = weir_op_concat(graph, NULL, parts, 2, 0, &y, NULL);
	arguments[0].output = arguments[1].output = y;
	if (status == WEIR_OK)
		status = weir_op_call(graph, NULL, context, arguments, 2, &y, NULL, NULL);
	if (status == WEIR_OK)
		status = weir_gradients(graph, &y, 1, &x, 1, &gradient, NULL);
	cr_expect_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	return status;
}

/* The function has another allocator, for its bodies outlive the graph. */
Test(gradient, survives_every_allocation_failing)
{
	int printed = 0;
	weir_function *layer = function_of("layer", build_layer, &printed, WEIR_PARAMETER_TENSOR, 1);

	cr_expect_gt(fail_each_allocation(differentiate, layer), 10);
	destroy_function(layer);
}

static enum weir_status differentiate_call(const weir_allocator *allocator, void *context)
{
	const struct weir_parameter parameters[] = {{"x", WEIR_PARAMETER_TENSOR, 0, NULL},
	                                            {"w", WEIR_PARAMETER_TENSOR, 0, NULL}};
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT, .build = build_layer, .context = context,
	                                        .parameters = parameters,   .parameter_count = 2, .result_count = 1,
	                                        .allocator = allocator};
	weir_function *function;
	enum weir_status status = weir_function_create(&options, &function, NULL);

	if (status != WEIR_OK)
		return status;
	status = differentiate(allocator, function);
	cr_expect_eq(weir_function_destroy(function, NULL), WEIR_OK);
	return status;
}

Test(gradient, of_a_call_survives_every_allocation_failing)
{
	int printed = 0;

	cr_expect_gt(fail_each_allocation(differentiate_call, &printed), 50);
}
