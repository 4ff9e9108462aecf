/*
 * optimizer_rules.c - the loops of the optimizers.
 *
 * They are compiled with more optimisation than the rest, and without errno for square roots, so that
 * they are vectorised; and a second time for wider vectors (tensor/wide.h). Each operation is rounded as
 * it is written, so all variants give the same bits.
 */
#include <math.h>

#include "base/compiler.h"
#include "graph/optimizer.h"
#include "tensor/wide.h"

/* The numbers of a rule, in the dtype of its loop. */
struct f32_factors {
	float rate, momentum, beta1, beta2, rest1, rest2, epsilon;
};
struct f64_factors {
	double rate, momentum, beta1, beta2, rest1, rest2, epsilon;
};

static WEIRI_ALWAYS_INLINE void f32_descent(struct f32_factors f, size_t n, const float *restrict g,
                                            const float *restrict w, float *restrict w_to)
{
	for (size_t i = 0; i < n; i++)
		w_to[i] = w[i] - f.rate * g[i];
}

static WEIRI_ALWAYS_INLINE void f64_descent(struct f64_factors f, size_t n, const double *restrict g,
                                            const double *restrict w, double *restrict w_to)
{
	for (size_t i = 0; i < n; i++)
		w_to[i] = w[i] - f.rate * g[i];
}

static WEIRI_ALWAYS_INLINE void f32_momentum(struct f32_factors f, size_t n, const float *restrict g,
                                             const float *restrict w, float *restrict w_to, const float *restrict a,
                                             float *restrict a_to)
{
	for (size_t i = 0; i < n; i++) {
		float next = f.momentum * a[i] + g[i];

		a_to[i] = next;
		w_to[i] = w[i] - f.rate * next;
	}
}

static WEIRI_ALWAYS_INLINE void f64_momentum(struct f64_factors f, size_t n, const double *restrict g,
                                             const double *restrict w, double *restrict w_to, const double *restrict a,
                                             double *restrict a_to)
{
	for (size_t i = 0; i < n; i++) {
		double next = f.momentum * a[i] + g[i];

		a_to[i] = next;
		w_to[i] = w[i] - f.rate * next;
	}
}

static WEIRI_ALWAYS_INLINE void f32_adam(struct f32_factors f, size_t n, const float *restrict g,
                                         const float *restrict w, float *restrict w_to, const float *restrict m,
                                         float *restrict m_to, const float *restrict v, float *restrict v_to)
{
	for (size_t i = 0; i < n; i++) {
		float first = f.beta1 * m[i] + f.rest1 * g[i];
		float second = f.beta2 * v[i] + f.rest2 * g[i] * g[i];

		m_to[i] = first;
		v_to[i] = second;
		w_to[i] = w[i] - f.rate * first / (sqrtf(second) + f.epsilon);
	}
}

static WEIRI_ALWAYS_INLINE void f64_adam(struct f64_factors f, size_t n, const double *restrict g,
                                         const double *restrict w, double *restrict w_to, const double *restrict m,
                                         double *restrict m_to, const double *restrict v, double *restrict v_to)
{
	for (size_t i = 0; i < n; i++) {
		double first = f.beta1 * m[i] + f.rest1 * g[i];
		double second = f.beta2 * v[i] + f.rest2 * g[i] * g[i];

		m_to[i] = first;
		v_to[i] = second;
		w_to[i] = w[i] - f.rate * first / (sqrt(second) + f.epsilon);
	}
}

static WEIRI_ALWAYS_INLINE void f32_apply(const struct weir_optimizer_options *o, const struct weiri_rule_step *s,
                                          size_t first, size_t n)
{
	const struct f32_factors f = {(float)s->rate,        (float)o->momentum,    (float)o->beta1,  (float)o->beta2,
	                              (float)(1 - o->beta1), (float)(1 - o->beta2), (float)o->epsilon};
	const float *g = (const float *)s->gradient + first;
	const float *w = (const float *)s->from[0] + first;
	float *w_to = (float *)s->to[0] + first;

	switch (o->kind) {
	case WEIR_OPTIMIZER_DESCENT: f32_descent(f, n, g, w, w_to); break;
	case WEIR_OPTIMIZER_MOMENTUM:
		f32_momentum(f, n, g, w, w_to, (const float *)s->from[1] + first, (float *)s->to[1] + first);
		break;
	case WEIR_OPTIMIZER_ADAM:
		f32_adam(f, n, g, w, w_to, (const float *)s->from[1] + first, (float *)s->to[1] + first,
		         (const float *)s->from[2] + first, (float *)s->to[2] + first);
		break;
	}
}

static WEIRI_ALWAYS_INLINE void f64_apply(const struct weir_optimizer_options *o, const struct weiri_rule_step *s,
                                          size_t first, size_t n)
{
	const struct f64_factors f = {s->rate, o->momentum, o->beta1, o->beta2, 1 - o->beta1, 1 - o->beta2, o->epsilon};
	const double *g = (const double *)s->gradient + first;
	const double *w = (const double *)s->from[0] + first;
	double *w_to = (double *)s->to[0] + first;

	switch (o->kind) {
	case WEIR_OPTIMIZER_DESCENT: f64_descent(f, n, g, w, w_to); break;
	case WEIR_OPTIMIZER_MOMENTUM:
		f64_momentum(f, n, g, w, w_to, (const double *)s->from[1] + first, (double *)s->to[1] + first);
		break;
	case WEIR_OPTIMIZER_ADAM:
		f64_adam(f, n, g, w, w_to, (const double *)s->from[1] + first, (double *)s->to[1] + first,
		         (const double *)s->from[2] + first, (double *)s->to[2] + first);
		break;
	}
}

static WEIRI_ALWAYS_INLINE void apply(const struct weir_optimizer_options *o, const struct weiri_rule_step *s,
                                      size_t first, size_t n)
{
	if (s->dtype == WEIR_F32)
		f32_apply(o, s, first, n);
	else
		f64_apply(o, s, first, n);
}

WEIRI_WIDE static void apply_wide(const struct weir_optimizer_options *o, const struct weiri_rule_step *s, size_t first,
                                  size_t n)
{
	apply(o, s, first, n);
}

void weiri_rule_apply(const struct weir_optimizer_options *options, const struct weiri_rule_step *step, size_t first,
                      size_t end)
{
	if (weiri_is_wide())
		apply_wide(options, step, first, end - first);
	else
		apply(options, step, first, end - first);
}
