/*
 * op_matmul.c - the matrix product, by CBLAS if Weir is built with it and the product is large
 * enough, otherwise by plain loops.
 *
 * Small products use the loops even with CBLAS, because a call of CBLAS costs about a microsecond
 * and may take a lock inside. Only one thread at a time calls CBLAS. The reason: an OpenBLAS built
 * for one thread (Debian's libopenblas0-serial) shares its buffers between callers without a lock,
 * so two concurrent calls compute wrong products. A thread that finds CBLAS in use takes the loops,
 * so no thread waits.
 */
#include "graph/node.h"

#include <limits.h>
#include <string.h>

#ifdef WEIR_HAVE_CBLAS
#include <cblas.h>
#endif

#include "base/error.h"
#include "base/try_token.h"

struct product {
	size_t n, k, m;
	bool transpose_a, transpose_b;
	/* Strides of a[i][p] and b[p][j]. */
	size_t a_row, a_column, b_row, b_column;
};

/* A product with fewer multiplications than this uses the loops. */
enum { CBLAS_WORTH = 8 * 1024 };

static void f32_product(const struct product *p, const float *restrict a, const float *restrict b, float *restrict out)
{
	for (size_t i = 0; i < p->n; i++) {
		float *restrict row = out + i * p->m;

		for (size_t k = 0; k < p->k; k++) {
			float factor = a[i * p->a_row + k * p->a_column];
			const float *restrict b_row = b + k * p->b_row;

			if (p->b_column == 1) {
				for (size_t j = 0; j < p->m; j++)
					row[j] += factor * b_row[j];
			} else {
				for (size_t j = 0; j < p->m; j++)
					row[j] += factor * b_row[j * p->b_column];
			}
		}
	}
}

static void f64_product(const struct product *p, const double *restrict a, const double *restrict b,
                        double *restrict out)
{
	for (size_t i = 0; i < p->n; i++) {
		double *restrict row = out + i * p->m;

		for (size_t k = 0; k < p->k; k++) {
			double factor = a[i * p->a_row + k * p->a_column];
			const double *restrict b_row = b + k * p->b_row;

			if (p->b_column == 1) {
				for (size_t j = 0; j < p->m; j++)
					row[j] += factor * b_row[j];
			} else {
				for (size_t j = 0; j < p->m; j++)
					row[j] += factor * b_row[j * p->b_column];
			}
		}
	}
}

#ifdef WEIR_HAVE_CBLAS
/* One token serves the whole process, because CBLAS's buffers do. */
static struct weiri_try_token cblas_token;

/*
 * Returns true if CBLAS computed the product. Returns false if the product is too small or too
 * large for CBLAS, or if another thread is using CBLAS.
 */
static bool cblas_product(const struct product *p, enum weir_dtype dtype, const void *a, const void *b, void *out)
{
	const enum CBLAS_TRANSPOSE ta = p->transpose_a ? CblasTrans : CblasNoTrans;
	const enum CBLAS_TRANSPOSE tb = p->transpose_b ? CblasTrans : CblasNoTrans;
	const int lda = (int)(p->transpose_a ? p->n : p->k);
	const int ldb = (int)(p->transpose_b ? p->k : p->m);

	if (p->n > INT_MAX || p->k > INT_MAX || p->m > INT_MAX || (double)p->n * (double)p->k * (double)p->m < CBLAS_WORTH)
		return false;
	if (!weiri_try_token_take(&cblas_token))
		return false;
	if (dtype == WEIR_F32)
		cblas_sgemm(CblasRowMajor, ta, tb, (int)p->n, (int)p->m, (int)p->k, 1.0f, a, lda, b, ldb, 0.0f, out, (int)p->m);
	else
		cblas_dgemm(CblasRowMajor, ta, tb, (int)p->n, (int)p->m, (int)p->k, 1.0, a, lda, b, ldb, 0.0, out, (int)p->m);
	weiri_try_token_give(&cblas_token);
	return true;
}
#else
static bool cblas_product(const struct product *p, enum weir_dtype dtype, const void *a, const void *b, void *out)
{
	(void)p;
	(void)dtype;
	(void)a;
	(void)b;
	(void)out;
	return false;
}
#endif

static enum weir_status compute(const struct weiri_call *call, void *const data[])
{
	const uint32_t flags = *(const uint32_t *)call->node->attribute;
	const int64_t *a_dims = weir_tensor_shape(call->inputs[0])->dims;
	const int64_t *b_dims = weir_tensor_shape(call->inputs[1])->dims;
	const void *a = weir_tensor_data(call->inputs[0]);
	const void *b = weir_tensor_data(call->inputs[1]);
	enum weir_dtype dtype = weir_tensor_dtype(call->inputs[0]);
	struct product p;

	p.transpose_a = (flags & WEIR_MATMUL_TRANSPOSE_A) != 0;
	p.transpose_b = (flags & WEIR_MATMUL_TRANSPOSE_B) != 0;
	p.n = (size_t)a_dims[p.transpose_a];
	p.k = (size_t)a_dims[!p.transpose_a];
	p.m = (size_t)b_dims[!p.transpose_b];
	p.a_row = p.transpose_a ? 1 : p.k;
	p.a_column = p.transpose_a ? p.n : 1;
	p.b_row = p.transpose_b ? 1 : p.m;
	p.b_column = p.transpose_b ? p.k : 1;
	if (cblas_product(&p, dtype, a, b, data[0]))
		return WEIR_OK;
	(void)memset(data[0], 0, p.n * p.m * weir_dtype_size(dtype)); /* the loops add to it */
	if (dtype == WEIR_F32)
		f32_product(&p, a, b, data[0]);
	else
		f64_product(&p, a, b, data[0]);
	return WEIR_OK;
}

/* CBLAS and the loops do several multiplications in a nanosecond. */
static uint64_t cost(const weir_node *node, weir_tensor *const inputs[])
{
	enum { MULTIPLICATIONS_PER_NS = 4 };
	const uint32_t flags = *(const uint32_t *)node->attribute;
	uint64_t rows;

	if (inputs[0] == NULL || inputs[1] == NULL)
		return 0;
	rows = (uint64_t)weir_tensor_shape(inputs[0])->dims[(flags & WEIR_MATMUL_TRANSPOSE_A) != 0];
	return rows * (uint64_t)weir_tensor_element_count(inputs[1]) / MULTIPLICATIONS_PER_NS;
}

/*
 * Sets dims[] to the dims of a matrix after its transposition, or to -1 if the rank is not known.
 * Returns false if the rank is known and not 2.
 */
static bool matrix_dims(const struct weiri_spec *spec, bool transposed, int64_t dims[2])
{
	dims[0] = dims[1] = -1;
	if (!spec->ranked)
		return true;
	if (spec->shape.rank != 2)
		return false;
	dims[0] = spec->shape.dims[transposed];
	dims[1] = spec->shape.dims[!transposed];
	return true;
}

static enum weir_status infer(const void *attribute, const struct weiri_spec inputs[], struct weiri_spec outputs[],
                              weir_error *error)
{
	const uint32_t flags = *(const uint32_t *)attribute;
	enum weir_dtype dtype = inputs[0].dtype;
	enum weir_status status = weiri_float_check(dtype, error);
	int64_t a[2];
	int64_t b[2];
	char text_a[WEIRI_SPEC_TEXT_SIZE];
	char text_b[WEIRI_SPEC_TEXT_SIZE];

	if (status != WEIR_OK)
		return status;
	if (!matrix_dims(&inputs[0], (flags & WEIR_MATMUL_TRANSPOSE_A) != 0, a) ||
	    !matrix_dims(&inputs[1], (flags & WEIR_MATMUL_TRANSPOSE_B) != 0, b) || !weiri_dim_compatible(a[1], b[0]) ||
	    inputs[1].dtype != dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "expected [n,k] and [k,m] of one dtype, got %s%s and %s%s",
		                  weiri_spec_text(&inputs[0], text_a), flags & WEIR_MATMUL_TRANSPOSE_A ? " transposed" : "",
		                  weiri_spec_text(&inputs[1], text_b), flags & WEIR_MATMUL_TRANSPOSE_B ? " transposed" : "");
	outputs[0] = weiri_spec_vector(dtype, a[0]);
	outputs[0].shape.rank = 2;
	outputs[0].shape.dims[1] = b[1];
	return WEIR_OK;
}

enum { A, B };

/*
 * The gradients are products again. With A and B as they are multiplied, by A it is G B', by B it is
 * A' G; each is transposed if its operand was.
 */
static enum weir_status matmul_gradient(const weir_node *node, const struct weir_gradient_request *r,
                                        weir_output into[], weir_error *error)
{
	const uint32_t flags = *(const uint32_t *)node->attribute;
	bool ta = (flags & WEIR_MATMUL_TRANSPOSE_A) != 0, tb = (flags & WEIR_MATMUL_TRANSPOSE_B) != 0;
	weir_output g = r->of_outputs[0], a = r->inputs[A], b = r->inputs[B];
	enum weir_status status = WEIR_OK;

	if (r->needed[A])
		status = ta ? weir_op_matmul(r->graph, NULL, b, g,
		                             (tb ? WEIR_MATMUL_TRANSPOSE_A : 0u) | WEIR_MATMUL_TRANSPOSE_B, &into[A], error)
		            : weir_op_matmul(r->graph, NULL, g, b, tb ? 0u : WEIR_MATMUL_TRANSPOSE_B, &into[A], error);
	if (status == WEIR_OK && r->needed[B])
		status = tb ? weir_op_matmul(r->graph, NULL, g, a,
		                             WEIR_MATMUL_TRANSPOSE_A | (ta ? WEIR_MATMUL_TRANSPOSE_B : 0u), &into[B], error)
		            : weir_op_matmul(r->graph, NULL, a, g, ta ? 0u : WEIR_MATMUL_TRANSPOSE_A, &into[B], error);
	return status;
}

static const struct weiri_op matmul_op = {.name = "matmul",
                                          .traits = WEIRI_OP_HEAVY,
                                          .cost = cost,
                                          .infer = infer,
                                          .compute = compute,
                                          .run = weiri_math_run,
                                          .gradient = matmul_gradient};

enum weir_status weir_op_matmul(weir_graph *graph, const char *name, weir_output a, weir_output b, uint32_t flags,
                                weir_output *out, weir_error *error)
{
	weir_output inputs[2];

	if (flags & ~(uint32_t)(WEIR_MATMUL_TRANSPOSE_A | WEIR_MATMUL_TRANSPOSE_B))
		return weiri_node_fail(error, WEIR_INVALID_ARGUMENT, &matmul_op, name, "unknown flags 0x%x", flags);
	inputs[0] = a;
	inputs[1] = b;
	return weiri_math_build(graph, &matmul_op, name, inputs, 2, &flags, sizeof(flags), 1, out, error);
}
