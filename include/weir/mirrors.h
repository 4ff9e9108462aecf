/*
 * mirrors.h - n copies of a set of variables, for n workers that train one model together.
 *
 * Each worker reads its own copy, its mirror. All mirrors change at one instant: by one commit of all
 * variables of all mirrors. So no snapshot shows two mirrors that differ, and a write that fails
 * changes none. Functions that run once for each mirror are called by weir_op_replicate()
 * (weir/flow/replicas.h). The copies of a value are references to one immutable tensor until a write
 * gives them values of their own. For one worker, plain variables do.
 *
 * | call                  | threads   | progress    | blocks on  | allocates | signal-safe |
 * |-----------------------|-----------|-------------|------------|-----------|-------------|
 * | weir_mirrors_create   | any       | lock-free + allocator | allocator | yes | no       |
 * | weir_mirrors_destroy  | one, last | lock-free + allocator | nothing | no    | no       |
 * | weir_mirrors_size, _variable_count, _var, _vars | any | wait-free | nothing | no | yes |
 * | weir_mirrors_assign   | any       | lock-free (1) | budget (2) | yes     | no          |
 *
 * (1) After its allocation. A commit that another one comes before is made again.
 * (2) As weir_var_commit(), up to the deadline.
 *
 * Names. The variables of mirror 0 have the names that the options give, those of mirror i the name
 * and "/mirror_i". So a checkpoint of mirror 0 is one of the model.
 *
 * Writes that keep mirrors equal: weir_mirrors_assign(); weir_var_commit() or a transaction of all of
 * weir_mirrors_vars(); and in a graph weir_op_commit() of all of them. A write of one copy alone is
 * possible, since each is a variable, and makes the mirrors differ.
 *
 * Ordering. As weir/var.h: an assign is one commit.
 * @since 0.1
 */
#ifndef WEIR_MIRRORS_H
#define WEIR_MIRRORS_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

typedef struct weir_mirrors weir_mirrors;

struct weir_mirrored {
	const char *name;        /* copied; not NULL */
	weir_tensor *initial;    /* version 1 of each copy; its dtype is that of the variable */
	const weir_shape *shape; /* that every value must fit; copied; NULL: that of `initial` */
};

struct weir_mirrors_options {
	size_t struct_size; /* WEIR_MIRRORS_OPTIONS_INIT sets it */
	const struct weir_mirrored *variables;
	size_t variable_count;           /* needed; with n mirrors at most WEIR_COMMIT_MAX_PARTS / n */
	const weir_allocator *allocator; /* for mirrors and variables; NULL: the default allocator */
};
#define WEIR_MIRRORS_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_mirrors_options)

/*
 * Creates `n` mirrors of the variables that the options list. Errors: WEIR_INVALID_ARGUMENT if options
 * or out is NULL, struct_size is wrong, n or variable_count is 0, there are more copies than a commit
 * has parts, a variable has no name or no initial value, the value does not fit the shape, or a name
 * occurs twice. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mirrors_create(size_t n, const struct weir_mirrors_options *options,
                                              weir_mirrors **out, weir_error *error);

/*
 * Destroys the mirrors and their variables, as weir_var_destroy() does. No other call on them may be
 * under way. Accepts NULL. Errors: those of weir_var_destroy(). Variables that come before the one
 * that is named may then be gone; the call may be made again, and nothing else.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mirrors_destroy(weir_mirrors *mirrors, weir_error *error);

/* The number of mirrors; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_mirrors_size(const weir_mirrors *mirrors);
/* The number of variables of each mirror; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_mirrors_variable_count(const weir_mirrors *mirrors);
/* Variable `variable` of mirror `mirror`, a part of the mirrors; NULL if there is none. @since 0.1 */
WEIR_API weir_var *weir_mirrors_var(const weir_mirrors *mirrors, size_t mirror, size_t variable);

/*
 * All copies: of variable j, mirror i at [j * n + i]. This is the order in which weir_op_replicate()
 * gives its results, and weir_op_all_reduce() its outputs, if result j is about variable j.
 * @since 0.1
 */
WEIR_API weir_var *const *weir_mirrors_vars(const weir_mirrors *mirrors);

/*
 * Publishes values[j] as the next version of variable j in all mirrors, by one commit. Each variable
 * takes its own reference. Errors: WEIR_INVALID_ARGUMENT if an argument is NULL, or a value does not
 * fit. WEIR_RESOURCE_EXHAUSTED also at the deadline, as weir_var_assign(). After an error no mirror
 * has changed.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mirrors_assign(weir_mirrors *mirrors, weir_tensor *const values[],
                                              uint64_t deadline_ns, weir_error *error);

WEIR_END_DECLS

#endif
