/*
 * scope.h - the common part of the checks of this folder: runs a scope, prints one line about it,
 * and a table for a failure.
 *
 * A printed name ends in the way in which the scope was explored. _complete: all executions.
 * _merged: with states merged, so that an execution ends at a state that another execution has
 * reached. _preemptions_N: all executions with at most N preemptions; with _first_M, the first M of
 * them. _random_N: N random executions.
 *
 * Environment:
 *   WEIR_MODEL_LONG       the long form, which scope_long() tests
 *   WEIR_MODEL_FIRST=N    at most N executions of each search: a quick look for an obvious fault
 *   WEIR_MODEL_PART=I/K   the scopes are distributed to K parts in turn, and only part I is run, so
 *                         that a long program can be divided
 *   WEIR_MODEL_NAMES      the names of scopes are printed, one on each line, and nothing is run
 */
#ifndef WEIR_MODEL_SCOPE_H
#define WEIR_MODEL_SCOPE_H

#include <weir/model.h>

int scope_long(void);

/*
 * Reads the command line, which main() passes. If its first word is given, only scopes are run
 * whose names contain this word, or whose name was printed so. A program with letters calls
 * scope_letters() before.
 */
void scope_arguments(int argc, char **argv);

/*
 * Returns 1 if the scope of that name must be run. The functions below call this. A program that
 * calls weir_model_check() directly must call it first.
 */
int scope_chosen(const char *name);

/* 1: from here on membarrier is refused, and names end in _symmetric. 0: it is granted. */
void scope_symmetric(int on);

/*
 * Returns the number of threads of a scope that has a row of calls for each: the rows before the
 * first NULL, at most `most`.
 */
size_t scope_threads(const char *const calls[], size_t most);
/*
 * Calls are letters. A program defines its letters in one table, with which it makes the calls and
 * which it prints:
 *
 *     #define LETTERS(LETTER) \
 *         LETTER('e', "enqueue", put(me)) \
 *         LETTER('D', "dequeue, waiting", take(me, WEIR_NO_DEADLINE))
 *
 *     switch (what) {
 *         LETTERS(LETTER_CASE)
 *     ...
 *     static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
 *
 * docs/proof/letters.md has the tables of all programs, and lists the letters that mean the same in
 * all of them.
 */
#define LETTER_CASE(letter, does, call) \
	case letter: \
		call; \
		break;
#define LETTER_ROW(letter, does, call) {letter, does},

struct scope_letter {
	char letter;
	const char *does;
};

/* If the first word of the command line is --letters: prints the letters and exits. */
void scope_letters(int argc, char **argv, const struct scope_letter letters[]);

/* Makes the calls of a thread, one per letter. */
void scope_calls(size_t me, const char *calls, void (*call)(size_t me, char what));

/* No execution may fail. Each function returns 1 if the outcome is wrong. */
int scope_complete(const struct weir_model_program *program);
int scope_preemptions(const struct weir_model_program *program, unsigned most);
int scope_random(const struct weir_model_program *program, uint64_t executions);
/* With states merged. The search is complete if `executions` suffice (0: no limit). */
int scope_merged(const struct weir_model_program *program, uint64_t executions);
/* The same; `alike`: see struct weir_model_options. */
int scope_merged_alike(const struct weir_model_program *program, uint64_t executions, unsigned alike);
/*
 * Returns the set of threads whose calls equal the calls of the thread before, for
 * scope_merged_alike().
 */
unsigned scope_alike(const char *const calls[], size_t threads);
/*
 * Explores completely if `executions` suffice. Otherwise explores that many executions, and as many
 * random ones; in the short form a quarter as many.
 */
int scope_as_far_as(const struct weir_model_program *program, uint64_t executions);
/*
 * The same. In the executions of the search (not in the random ones) call i may take at most
 * bounds[i] atomic accesses; see scope_stops().
 */
int scope_within(const struct weir_model_program *program, uint64_t executions, const char *const calls[],
                 const uint32_t bounds[]);

/* Some execution must fail, with `text` in its message. */
int scope_finds(const struct weir_model_program *program, const char *text);

/*
 * Each thread is stopped for ever at each of its steps, in a search of its own for each step. The
 * other threads must end in the first `executions` of each search (0: in all executions).
 * bounds[i]: the most atomic accesses that call i may take; 0: no bound is documented.
 */
int scope_stops(const struct weir_model_program *program, uint64_t executions, const char *const calls[],
                const uint32_t bounds[]);

enum { SCOPE_NAME = 96 }; /* bytes for a name that is put together */

/*
 * A scope of a check's table, after its scene was set up. The limits say how far it is explored in
 * the short form and in the long form. In the long form 0 means no limit.
 */
struct scope_plan {
	struct weir_model_program program;
	uint64_t executions, long_executions; /* of scope_as_far_as() */
	/* of scope_stops(), for each place; `stopped` 0: no thread is stopped */
	uint64_t stopped, long_stopped;
};

typedef struct scope_plan scope_preparation(size_t index);

/* Explores the scopes 0 to count - 1. Before threads are stopped the scene is set up again. */
int scope_all(scope_preparation *prepare, size_t count);

/*
 * Returns the number of threads, if each has a function: the functions before the first NULL, at
 * most `most`. scope_function() runs them.
 */
size_t scope_functions(void (*const functions[])(void), size_t most);
void scope_function(void *state, size_t number);

#endif
