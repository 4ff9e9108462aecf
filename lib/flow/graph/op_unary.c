/*
 * op_unary.c - ops of one operand, element by element: neg, abs, sign, square, relu, exp, log, sqrt, tanh,
 * sigmoid.
 */
#include "graph/node.h"

#include <math.h>

#include "base/compiler.h"
#include "base/error.h"
#include "graph/gradient.h"

/* Those from EXP on are for floats only. */
enum unary { NEG, ABS, SIGN, SQUARE, RELU, EXP, LOG, SQRT, TANH, SIGMOID };

/*
 * One function for each type. Each call below passes a constant operation and is inlined, so that
 * each case becomes a loop of its own. A NaN stays one in all of them.
 */
static WEIRI_ALWAYS_INLINE float f32_of(enum unary op, float x)
{
	switch (op) {
	case NEG: return -x;
	case ABS: return fabsf(x);
	case SIGN: return x > 0 ? 1 : x < 0 ? -1 : x * 0;
	case SQUARE: return x * x;
	case RELU: return x < 0 ? 0 : x;
	case EXP: return expf(x);
	case LOG: return logf(x);
	case SQRT: return sqrtf(x);
	case TANH: return tanhf(x);
	case SIGMOID: break;
	}
	return 1 / (1 + expf(-x));
}

static WEIRI_ALWAYS_INLINE double f64_of(enum unary op, double x)
{
	switch (op) {
	case NEG: return -x;
	case ABS: return fabs(x);
	case SIGN: return x > 0 ? 1 : x < 0 ? -1 : x * 0;
	case SQUARE: return x * x;
	case RELU: return x < 0 ? 0 : x;
	case EXP: return exp(x);
	case LOG: return log(x);
	case SQRT: return sqrt(x);
	case TANH: return tanh(x);
	case SIGMOID: break;
	}
	return 1 / (1 + exp(-x));
}

/* The arithmetic is unsigned, so that integers wrap. */
static WEIRI_ALWAYS_INLINE uint32_t i32_of(enum unary op, uint32_t x)
{
	bool negative = x >> 31 != 0;

	switch (op) {
	case NEG: return 0 - x;
	case ABS: return negative ? 0 - x : x;
	case SIGN: return negative ? UINT32_MAX : x != 0;
	case SQUARE: return x * x;
	default: return negative ? 0 : x; /* RELU */
	}
}

static WEIRI_ALWAYS_INLINE uint64_t i64_of(enum unary op, uint64_t x)
{
	bool negative = x >> 63 != 0;

	switch (op) {
	case NEG: return 0 - x;
	case ABS: return negative ? 0 - x : x;
	case SIGN: return negative ? UINT64_MAX : x != 0;
	case SQUARE: return x * x;
	default: return negative ? 0 : x; /* RELU */
	}
}

static WEIRI_ALWAYS_INLINE void f32_loop(enum unary op, const float *x, float *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = f32_of(op, x[i]);
}

static WEIRI_ALWAYS_INLINE void f64_loop(enum unary op, const double *x, double *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = f64_of(op, x[i]);
}

static WEIRI_ALWAYS_INLINE void i32_loop(enum unary op, const uint32_t *x, uint32_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = i32_of(op, x[i]);
}

static WEIRI_ALWAYS_INLINE void i64_loop(enum unary op, const uint64_t *x, uint64_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = i64_of(op, x[i]);
}

static WEIRI_ALWAYS_INLINE void float_loop(enum unary op, enum weir_dtype dtype, const void *x, void *out, size_t n)
{
	if (dtype == WEIR_F32)
		f32_loop(op, x, out, n);
	else
		f64_loop(op, x, out, n);
}

static WEIRI_ALWAYS_INLINE void typed_loop(enum unary op, enum weir_dtype dtype, const void *x, void *out, size_t n)
{
	if (dtype == WEIR_I32)
		i32_loop(op, x, out, n);
	else if (dtype == WEIR_I64)
		i64_loop(op, x, out, n);
	else
		float_loop(op, dtype, x, out, n);
}

static enum weir_status compute(const struct weiri_call *call, void *const data[])
{
	const weir_tensor *x = call->inputs[0];
	enum weir_dtype dtype = weir_tensor_dtype(x);
	size_t n = (size_t)weir_tensor_element_count(x);
	const void *from = weir_tensor_data(x);

	switch ((enum unary) * (const unsigned *)call->node->attribute) {
	case NEG: typed_loop(NEG, dtype, from, data[0], n); break;
	case ABS: typed_loop(ABS, dtype, from, data[0], n); break;
	case SIGN: typed_loop(SIGN, dtype, from, data[0], n); break;
	case SQUARE: typed_loop(SQUARE, dtype, from, data[0], n); break;
	case RELU: typed_loop(RELU, dtype, from, data[0], n); break;
	case EXP: float_loop(EXP, dtype, from, data[0], n); break;
	case LOG: float_loop(LOG, dtype, from, data[0], n); break;
	case SQRT: float_loop(SQRT, dtype, from, data[0], n); break;
	case TANH: float_loop(TANH, dtype, from, data[0], n); break;
	case SIGMOID: float_loop(SIGMOID, dtype, from, data[0], n); break;
	}
	return WEIR_OK;
}

static enum weir_status infer(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                              weir_error *error)
{
	bool floats_only = *(const unsigned *)attribute >= EXP;

	outputs[0] = inputs[0];
	return floats_only ? weiri_float_check(inputs[0].dtype, error) : weiri_numeric_check(inputs[0].dtype, error);
}

/* -- gradients: x is the input, y the output, g the gradient by y ------------------------------- */

static enum weir_status neg_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	(void)node;
	return weir_op_neg(r->graph, NULL, r->of_outputs[0], into, error);
}

/* g * sign(of), where `of` is x (abs) or y (relu). */
static enum weir_status by_sign(const struct weir_gradient_request *r, weir_output of, weir_output into[],
                                weir_error *error)
{
	weir_output sign;
	enum weir_status status = weir_op_sign(r->graph, NULL, of, &sign, error);

	return status == WEIR_OK ? weir_op_mul(r->graph, NULL, r->of_outputs[0], sign, into, error) : status;
}

static enum weir_status abs_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	(void)node;
	return by_sign(r, r->inputs[0], into, error);
}

static enum weir_status relu_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                      weir_error *error)
{
	(void)node;
	return by_sign(r, r->outputs[0], into, error);
}

static enum weir_status square_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                        weir_output into[], weir_error *error)
{
	weir_output twice;
	enum weir_status status = weir_op_add(r->graph, NULL, r->inputs[0], r->inputs[0], &twice, error);

	(void)node;
	return status == WEIR_OK ? weir_op_mul(r->graph, NULL, r->of_outputs[0], twice, into, error) : status;
}

static enum weir_status exp_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	(void)node;
	return weir_op_mul(r->graph, NULL, r->of_outputs[0], r->outputs[0], into, error);
}

static enum weir_status log_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                     weir_error *error)
{
	(void)node;
	return weir_op_div(r->graph, NULL, r->of_outputs[0], r->inputs[0], into, error);
}

/* g / (2 y) */
static enum weir_status sqrt_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                      weir_error *error)
{
	weir_output twice;
	enum weir_status status = weir_op_add(r->graph, NULL, r->outputs[0], r->outputs[0], &twice, error);

	(void)node;
	return status == WEIR_OK ? weir_op_div(r->graph, NULL, r->of_outputs[0], twice, into, error) : status;
}

/* g - g y y */
static enum weir_status tanh_gradient(const weir_node *node, const struct weir_gradient_request *r, weir_output into[],
                                      weir_error *error)
{
	weir_output square, less;

	(void)node;
	return weir_op_square(r->graph, NULL, r->outputs[0], &square, error) ||
	               weir_op_mul(r->graph, NULL, r->of_outputs[0], square, &less, error) ||
	               weir_op_sub(r->graph, NULL, r->of_outputs[0], less, into, error)
	           ? error->code
	           : WEIR_OK;
}

/* g y - g y y */
static enum weir_status sigmoid_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                         weir_output into[], weir_error *error)
{
	weir_output scaled, less;

	(void)node;
	return weir_op_mul(r->graph, NULL, r->of_outputs[0], r->outputs[0], &scaled, error) ||
	               weir_op_mul(r->graph, NULL, scaled, r->outputs[0], &less, error) ||
	               weir_op_sub(r->graph, NULL, scaled, less, into, error)
	           ? error->code
	           : WEIR_OK;
}

/* -- building ---------------------------------------------------------------------------------- */

#define UNARY(NAME, GRADIENT) \
	{ \
		.name = NAME, .traits = WEIRI_OP_IN_PLACE, .infer = infer, .compute = compute, .run = weiri_math_run, \
		.gradient = GRADIENT \
	}

/* The index is an enum unary. */
static const struct weiri_op ops[] = {
	[NEG] = UNARY("neg", neg_gradient),          [ABS] = UNARY("abs", abs_gradient),
	[SIGN] = UNARY("sign", weiri_gradient_zero), [SQUARE] = UNARY("square", square_gradient),
	[RELU] = UNARY("relu", relu_gradient),       [EXP] = UNARY("exp", exp_gradient),
	[LOG] = UNARY("log", log_gradient),          [SQRT] = UNARY("sqrt", sqrt_gradient),
	[TANH] = UNARY("tanh", tanh_gradient),       [SIGMOID] = UNARY("sigmoid", sigmoid_gradient),
};

static enum weir_status build(weir_graph *graph, unsigned which, const char *name, weir_output x, weir_output *out,
                              weir_error *error)
{
	return weiri_math_build(graph, &ops[which], name, &x, 1, &which, sizeof(which), 1, out, error);
}

enum weir_status weir_op_neg(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, NEG, name, x, out, error);
}

enum weir_status weir_op_abs(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, ABS, name, x, out, error);
}

enum weir_status weir_op_sign(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, SIGN, name, x, out, error);
}

enum weir_status weir_op_square(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, SQUARE, name, x, out, error);
}

enum weir_status weir_op_relu(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, RELU, name, x, out, error);
}

enum weir_status weir_op_exp(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, EXP, name, x, out, error);
}

enum weir_status weir_op_log(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, LOG, name, x, out, error);
}

enum weir_status weir_op_sqrt(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, SQRT, name, x, out, error);
}

enum weir_status weir_op_tanh(weir_graph *graph, const char *name, weir_output x, weir_output *out, weir_error *error)
{
	return build(graph, TANH, name, x, out, error);
}

enum weir_status weir_op_sigmoid(weir_graph *graph, const char *name, weir_output x, weir_output *out,
                                 weir_error *error)
{
	return build(graph, SIGMOID, name, x, out, error);
}
