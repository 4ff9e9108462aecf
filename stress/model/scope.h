/*
 * scope.h - what the checks of this folder share: run a scope, print one line on it, and a failure's table.
 *
 * A name that ends in _complete was explored completely (_merged: an execution ends where another has been); _preemptions_N covers
 * every execution with at most N preemptions (with _first_M: those M of them that come first); _random_N tries N random ones.
 * scope_long() says whether the long form is asked for (environment WEIR_MODEL_LONG). WEIR_MODEL_FIRST=N: of each search N executions at
 * most, a look for a fault that shows soon.
 */
#ifndef WEIR_MODEL_SCOPE_H
#define WEIR_MODEL_SCOPE_H

#include <weir/model.h>

int scope_long(void);

/* Of the command line, which main() passes: only scopes with its first word in their names, or of the name it was printed as, are run. */
void scope_arguments(int argc, char **argv);

/* From here on: membarrier is refused, and names end in _symmetric. 0: it is granted. */
void scope_symmetric(int on);

/* How many threads a scope has, given a row of calls for each: those before the first NULL, of `most`. */
size_t scope_threads(const char *const calls[], size_t most);
/* What a thread does: a letter a call. */
void scope_calls(size_t me, const char *calls, void (*call)(size_t me, char what));

/* No execution may fail. Return 1 when the outcome is wrong. */
int scope_complete(const struct weir_model_program *program);
int scope_preemptions(const struct weir_model_program *program, unsigned most);
int scope_random(const struct weir_model_program *program, uint64_t executions);
/* With states merged: completely, if that is done within `executions` (0: no limit). */
int scope_merged(const struct weir_model_program *program, uint64_t executions);
/* The same; `alike`: see struct weir_model_options. */
int scope_merged_alike(const struct weir_model_program *program, uint64_t executions, unsigned alike);
/* Threads whose calls are those of the thread before, as such a set. */
unsigned scope_alike(const char *const calls[], size_t threads);
/* Completely, if that is done within `executions`; else those, and as many random ones. */
int scope_as_far_as(const struct weir_model_program *program, uint64_t executions);
/* The same; and in those (not in the random ones) call i may take bounds[i] atomic accesses, see scope_stops(). */
int scope_within(const struct weir_model_program *program, uint64_t executions, const char *const calls[],
                 const uint32_t bounds[]);

/* Some execution must fail, and say so with `text` in its message. */
int scope_finds(const struct weir_model_program *program, const char *text);

/*
 * Each thread is stopped for good at each of its steps; the others must end, in the first `executions` for each such place (0: in
 * all). bounds[i]: the longest that call i may take, in atomic accesses; 0: no bound is documented.
 */
int scope_stops(const struct weir_model_program *program, uint64_t executions, const char *const calls[],
                const uint32_t bounds[]);

enum { SCOPE_NAME = 96 }; /* bytes for a name that is put together */

/*
 * A scope of a check's table, with its scene set, and how far it is explored, in the short form and in the long one (there 0: without
 * a limit).
 */
struct scope_plan {
	struct weir_model_program program;
	uint64_t executions, long_executions; /* of scope_as_far_as() */
	uint64_t stopped, long_stopped;       /* of scope_stops(), for each place; `stopped` 0: no thread is stopped */
};

typedef struct scope_plan scope_preparation(size_t index);

/* Explores those of index 0 to count - 1. Before threads are stopped the scene is set anew. */
int scope_all(scope_preparation *prepare, size_t count);

/* Of threads that have a function each, how many there are: those before the first NULL, of `most`. scope_function() runs them. */
size_t scope_functions(void (*const functions[])(void), size_t most);
void scope_function(void *state, size_t number);

#endif
