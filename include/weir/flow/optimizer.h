/*
 * optimizer.h - variables that change by their gradients: one step is one commit.
 *
 * An optimizer has a rule, a number of steps, and for each variable the slots that the rule needs.
 * weir_op_apply() adds a node that makes one step: it computes new values from the newest values of
 * all variables and slots and from the gradients, and publishes them together with the number of the
 * step, at one instant. If another write of one of them was first, it computes them again from the
 * newest values. The forward and backward pass do not run again: their gradients are inputs. So with
 * any number of threads no step is lost, none is seen half, and none ends with WEIR_ABORTED. A
 * gradient may have been computed from values that are some steps older (asynchronous training); to
 * compute everything from one version, use weir_op_snapshot() and weir_op_commit().
 *
 *     struct weir_optimizer_options options = {WEIR_OPTIMIZER_OPTIONS_INIT,
 *                                              .kind = WEIR_OPTIMIZER_ADAM, .rate = 0.001};
 *     weir_optimizer_create(&options, &adam, &error) ||
 *         weir_gradients(graph, &loss, 1, values, 2, gradients, &error) ||
 *         weir_op_apply(graph, "train", adam, variables, gradients, 2, &step, NULL, &error)
 *
 * | call             | threads   | progress             | blocks on      | allocates | signal-safe |
 * |------------------|-----------|----------------------|----------------|-----------|-------------|
 * | weir_optimizer_create | any  | allocator            | allocator      | yes       | no          |
 * | weir_optimizer_destroy | one, last | lock-free + allocator | nothing  | record    | no          |
 * | weir_optimizer_step, _variable_count, _variables | any | wait-free | nothing  | no        | no          |
 * | weir_op_apply, _apply_at | any | allocator, lock-free | allocator     | yes       | no          |
 * | a step, when it runs | any   | lock-free (1)        | budget, turn (2) | yes     | no          |
 *
 * (1) After its allocations. It computes again only because another write succeeded.
 * (2) The budget as weir_var_commit(). Steps of 256 KiB and more take turns, so that they do not
 *     compute in vain: a step waits for the one under way, for a bounded time, and then computes. So a
 *     stalled thread stops no other.
 *
 * Memory. A step has the next values of all variables and slots while it is under way. Of values of
 * 256 KiB and more, up to two blocks for each variable and slot are kept for the next steps.
 */
#ifndef WEIR_OPTIMIZER_H
#define WEIR_OPTIMIZER_H

#include <stddef.h>
#include <weir/alloc.h>
#include <weir/flow/graph.h>
#include <weir/status.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_optimizer weir_optimizer;

/*
 * How a step changes a variable w by its gradient g. Operations on f32 are done in f32.
 *
 *     DESCENT   w -= rate g
 *     MOMENTUM  a = momentum a + g,  w -= rate a                                     slot "a"
 *     ADAM      m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g g,
 *               w -= rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)  slots "m", "v"
 *
 * where t is the number of the step, from 1 on. Sources: Polyak 1964; Kingma and Ba, ICLR 2015.
 */
enum weir_optimizer_kind {
	WEIR_OPTIMIZER_DESCENT = 1,
	WEIR_OPTIMIZER_MOMENTUM = 2,
	WEIR_OPTIMIZER_ADAM = 3
};

struct weir_optimizer_options {
	size_t struct_size;              /* WEIR_OPTIMIZER_OPTIONS_INIT sets it */
	enum weir_optimizer_kind kind;   /* needed */
	const char *name;                /* copied; NULL: "descent", "momentum" or "adam" */
	double rate;                     /* of weir_op_apply(); 0: 0.01, of Adam 0.001 */
	double momentum;                 /* below 1; 0: 0.9 */
	double beta1, beta2;             /* below 1; 0: 0.9 and 0.999 */
	double epsilon;                  /* 0: 1e-8 */
	const weir_allocator *allocator; /* for slots and new values too; NULL: the default allocator */
};
#define WEIR_OPTIMIZER_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_optimizer_options)

/*
 * Creates an optimizer, with the number of its steps, 0, in a variable "NAME/step". Errors:
 * WEIR_INVALID_ARGUMENT if an argument is NULL, struct_size is wrong, there is no such kind, or a
 * number is negative, not finite, or not below 1 where it must be. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_optimizer_create(const struct weir_optimizer_options *options,
                                                weir_optimizer **out, weir_error *error);

/*
 * Destroys the optimizer with its slots. Accepts NULL. Errors: WEIR_FAILED_PRECONDITION, and nothing
 * happens, while a graph has a step of it, or an operation waits for one of its variables.
 * @since 0.1
 */
WEIR_API enum weir_status weir_optimizer_destroy(weir_optimizer *optimizer, weir_error *error);

/* The variable with the number of steps, an i64 scalar. NULL for NULL. @since 0.1 */
WEIR_API weir_var *weir_optimizer_step(const weir_optimizer *optimizer);

/*
 * The variables that belong to the optimizer, for a checkpoint: that of the steps, and the slots that
 * exist so far. Slots have names such as "weights/adam/m", and start with zeros. They exist until the
 * optimizer is destroyed, also those of variables that have ended. So a variable that follows another
 * of the same name needs an optimizer of its own to be saved in a checkpoint. vars has room for
 * `count`, which weir_optimizer_variable_count() tells. Errors: WEIR_INVALID_ARGUMENT (NULL).
 * WEIR_OUT_OF_RANGE if there are more than `count`.
 * @since 0.1
 */
WEIR_API size_t weir_optimizer_variable_count(const weir_optimizer *optimizer);
WEIR_API enum weir_status weir_optimizer_variables(const weir_optimizer *optimizer,
                                                   weir_var *vars[], size_t count,
                                                   weir_error *error);

enum weir_optimizer_limits { WEIR_APPLY_MAX_VARIABLES = 256 };

/*
 * Adds a node that makes one step: changes vars[0 .. count-1], of f32 or f64, by gradients[0 ..
 * count-1]. Creates the slots that do not exist yet; all nodes of one optimizer share them. *step is
 * the number of the step that was made, an i64 scalar; *node (may be NULL) is the node, whose output
 * 1 + i (weir_node_output()) is the very value of vars[i] that the step published. The optimizer and
 * the variables are borrowed: they must outlive every session of the graph. weir_op_apply_at() takes
 * the rate from an output, an f32 or f64 scalar.
 *
 * Errors: the common ones of weir/flow/op.h. WEIR_INVALID_ARGUMENT if there are no variables or more
 * than WEIR_APPLY_MAX_VARIABLES, one occurs twice, or a gradient cannot fit. WEIR_UNIMPLEMENTED if a
 * dtype is not f32 or f64. WEIR_FAILED_PRECONDITION if a variable has no value, and so its slots no
 * shape. In a step: WEIR_FAILED_PRECONDITION if a variable is not initialized, WEIR_INVALID_ARGUMENT
 * if a gradient or a slot (after a restore, say) has another shape than its variable, and those of
 * weir_var_commit() except WEIR_ABORTED. WEIR_DEADLINE_EXCEEDED if other writes were first until the
 * deadline of the run. After an error nothing has changed.
 * @since 0.1
 */
WEIR_API enum weir_status weir_op_apply(weir_graph *graph, const char *name,
                                        weir_optimizer *optimizer, weir_var *const vars[],
                                        const weir_output gradients[], size_t count,
                                        weir_output *step, weir_node **node, weir_error *error);
WEIR_API enum weir_status weir_op_apply_at(weir_graph *graph, const char *name,
                                           weir_optimizer *optimizer, weir_output rate,
                                           weir_var *const vars[], const weir_output gradients[],
                                           size_t count, weir_output *step, weir_node **node,
                                           weir_error *error);

WEIR_END_DECLS

#endif
