/*
 * optimizer.h - optimizers, and the rules by which a step changes a value.
 */
#ifndef WEIRI_OPTIMIZER_H
#define WEIRI_OPTIMIZER_H

#include <weir/flow/optimizer.h>

#include "base/try_token.h"
#include "run/countdown.h"
#include "run/published.h"
#include "var/spares.h"

enum { WEIRI_MOST_SLOTS = 2, WEIRI_MOST_ARRAYS = 1 + WEIRI_MOST_SLOTS };

/* Spares are kept of values of this size, and such steps take turns. */
enum { WEIRI_LARGE_STEP = 256 << 10 };
/* One value is under way, and one or two are retired and not yet free. */
enum { WEIRI_STEP_SPARES = 2 };

/* What an optimizer has for one variable. */
struct weiri_slots {
	struct weiri_published link; /* in optimizer->slots */
	weir_optimizer *optimizer;
	weir_var *var;                                  /* borrowed; with the number, the key */
	uint64_t var_number;                            /* its id: a later variable may have its address */
	weir_var *slots[WEIRI_MOST_SLOTS];              /* the first slot_count */
	struct weiri_spares *spares[WEIRI_MOST_ARRAYS]; /* for values of the variable, and of its slots */
};

struct weir_optimizer {
	weir_allocator allocator;
	size_t bytes;
	const char *name;
	struct weir_optimizer_options options; /* with the defaults filled in */
	size_t slot_count;                     /* of each variable */
	weir_var *step;
	struct weiri_published_list slots;
	struct weiri_countdown users; /* the owner, and nodes */
	struct weiri_try_token turn;  /* of a large step that computes: op_apply.c */
};

/* Sets *out to the slots of `var`, which are created if there are none. */
enum weir_status weiri_optimizer_slots(weir_optimizer *optimizer, weir_var *var, struct weiri_slots **out,
                                       weir_error *error);

/* --- optimizer_rules.c --- */

/* What a step knows: w and slots before and after, of `elements` elements. No arrays overlap. */
struct weiri_rule_step {
	enum weir_dtype dtype; /* f32 or f64 */
	const void *gradient;
	const void *from[WEIRI_MOST_ARRAYS];
	void *to[WEIRI_MOST_ARRAYS];
	double rate; /* of Adam, times sqrt(1 - beta2^t) / (1 - beta1^t) */
};

/* Changes elements first .. end - 1. */
void weiri_rule_apply(const struct weir_optimizer_options *options, const struct weiri_rule_step *step, size_t first,
                      size_t end);

#endif
