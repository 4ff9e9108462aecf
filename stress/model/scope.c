/*
 * scope.c - prints one line for each scope, and a table for a failure.
 */
#include "model/scope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/replay.h"

enum {
	FIRST = 100000, /* executions of a search that the short form does not finish */
	/* approximate number of places at which threads are stopped; each place has its own search */
	PLACES = 20,
};

static const char *wanted = "";
static const char *replay;
static int symmetric;
static void (*const *functions)(void); /* of the scope that is run */
static unsigned long seen;             /* number of wanted scopes that were asked about */

int scope_long(void)
{
	return getenv("WEIR_MODEL_LONG") != NULL;
}

/*
 * Returns the number of executions of each search in a quick look, which proves nothing if it
 * passes.
 */
static uint64_t first_look(void)
{
	const char *text = getenv("WEIR_MODEL_FIRST");

	return text != NULL ? strtoull(text, NULL, 10) : 0;
}

/*
 * Returns the limit of executions for a search that requests `executions` (0: all) and is one of
 * `searches` in its scope. Only a quick look gives it fewer than it requests.
 */
static uint64_t at_most(uint64_t executions, uint64_t searches)
{
	uint64_t most = (first_look() + searches - 1) / searches;

	return most != 0 && (executions == 0 || executions > most) ? most : executions;
}

void scope_arguments(int argc, char **argv)
{
	wanted = argc > 1 ? argv[1] : "";
	if (strcmp(wanted, "--letters") == 0)
		exit(0); /* this program has no letters */
	replay = argc > 2 ? argv[2] : NULL;
	if (replay != NULL && !replay_is_sound(replay)) {
		(void)fprintf(stderr, "not a replay string: %s\n", replay);
		exit(2);
	}
}

void scope_letters(int argc, char **argv, const struct scope_letter letters[])
{
	if (argc < 2 || strcmp(argv[1], "--letters") != 0)
		return;
	for (; letters->letter != '\0'; letters++)
		(void)printf("%c\t%s\n", letters->letter, letters->does);
	exit(0);
}

void scope_symmetric(int on)
{
	symmetric = on;
}

void scope_calls(size_t me, const char *calls, void (*call)(size_t me, char what))
{
	for (; *calls != '\0'; calls++)
		call(me, *calls);
}

size_t scope_threads(const char *const calls[], size_t most)
{
	size_t threads = 0;

	while (threads < most && calls[threads] != NULL)
		threads++;
	return threads;
}

size_t scope_functions(void (*const of[])(void), size_t most)
{
	size_t threads = 0;

	functions = of;
	while (threads < most && of[threads] != NULL)
		threads++;
	return threads;
}

void scope_function(void *state, size_t number)
{
	(void)state;
	functions[number]();
}

/*
 * A printed line has the name and how the scope was explored (_complete, ...). The command line may
 * also have a name as it was printed, with this end.
 */
static int is_wanted(const char *name)
{
	size_t length = strlen(name);

	return strstr(name, wanted) != NULL || (strncmp(wanted, name, length) == 0 && wanted[length] == '_');
}

/* Returns 1 if WEIR_MODEL_PART=I/K puts scope `number` into part I. */
static int is_in_part(unsigned long number)
{
	const char *text = getenv("WEIR_MODEL_PART");
	unsigned long part, parts;
	char *end;

	if (text == NULL)
		return 1;
	part = strtoul(text, &end, 10);
	parts = *end == '/' ? strtoul(end + 1, &end, 10) : 0;
	if (*end != '\0' || part < 1 || part > parts) {
		(void)fprintf(stderr, "WEIR_MODEL_PART must be I/K with 1 <= I <= K, not %s\n", text);
		exit(2);
	}
	return number % parts == part - 1;
}

int scope_chosen(const char *name)
{
	if (!is_wanted(name))
		return 0;
	if (getenv("WEIR_MODEL_NAMES") != NULL) {
		(void)printf("%s%s\n", name, symmetric ? "_symmetric" : "");
		return 0;
	}
	return is_in_part(seen++);
}

static void print_line(const char *verdict, const char *name, const char *form, const struct weir_model_result *result)
{
	double seconds = (double)result->nanoseconds / 1e9;

	if (first_look() != 0 && !result->failed)
		form = "_first_look";
	(void)printf("%s %s%s%s: %llu executions, %llu pruned, %.2f s, %.0f executions/s%s%s", verdict, name,
	             symmetric ? "_symmetric" : "", form, (unsigned long long)result->executions,
	             (unsigned long long)result->pruned, seconds, seconds > 0 ? (double)result->executions / seconds : 0.0,
	             result->message[0] != '\0' ? ", " : "", result->message);
	if (result->states != 0)
		(void)printf(", %llu states", (unsigned long long)result->states);
	(void)putchar('\n');
	(void)fflush(stdout);
}

static void print_table(const struct weir_model_program *program, const struct weir_model_options *given,
                        const char *path)
{
	struct weir_model_options options = *given;
	struct weir_model_result result;

	(void)printf("  replay: %s %s\n", program->name, path);
	options.replay = path;
	(void)weir_model_check(program, &options, &result);
	free(result.replay);
}

static int run(const struct weir_model_program *program, struct weir_model_options *options, const char *form)
{
	struct weir_model_result result;
	int right;

	options->replay = replay;
	options->max_executions = at_most(options->max_executions, 1);
	options->symmetric = (unsigned)symmetric;
	options->max_steps = 2000;
	right = !weir_model_check(program, options, &result);
	right = right && (result.complete || options->max_executions != 0 || replay != NULL);
	print_line(right ? "PASS" : "FAIL", program->name, form, &result);
	if (result.failed && replay == NULL)
		print_table(program, options, result.replay);
	free(result.replay);
	return !right;
}

static int run_completely(const struct weir_model_program *program)
{
	return run(program, &(struct weir_model_options){0}, "_complete");
}

static int run_at_random(const struct weir_model_program *program, uint64_t executions)
{
	struct weir_model_options options = {.random_seed = 1, .max_executions = executions};
	char form[32];

	(void)snprintf(form, sizeof(form), "_random_%llu", (unsigned long long)executions);
	return run(program, &options, form);
}

int scope_complete(const struct weir_model_program *program)
{
	return scope_chosen(program->name) ? run_completely(program) : 0;
}

unsigned scope_alike(const char *const calls[], size_t threads)
{
	unsigned alike = 0;

	for (size_t t = 1; t < threads; t++)
		alike |= strcmp(calls[t], calls[t - 1]) == 0 ? 1u << t : 0;
	return alike;
}

int scope_merged(const struct weir_model_program *program, uint64_t executions)
{
	return scope_merged_alike(program, executions, 0);
}

int scope_merged_alike(const struct weir_model_program *program, uint64_t executions, unsigned alike)
{
	struct weir_model_options options = {.merge_states = 1,
	                                     .alike = alike,
	                                     .max_executions = at_most(executions, 1),
	                                     .max_steps = 2000,
	                                     .symmetric = (unsigned)symmetric};
	struct weir_model_result result;
	int bad;

	if (!scope_chosen(program->name))
		return 0;
	options.replay = replay;
	bad = weir_model_check(program, &options, &result);
	print_line(bad ? "FAIL" : "PASS", program->name, result.complete ? "_merged_complete" : "_merged_depth_first",
	           &result);
	if (bad && replay == NULL)
		print_table(program, &options, result.replay);
	free(result.replay);
	return bad;
}

int scope_preemptions(const struct weir_model_program *program, unsigned most)
{
	struct weir_model_options options = {.preemptions = most + 1, .max_executions = scope_long() ? 0 : FIRST};
	char form[48];

	if (!scope_chosen(program->name))
		return 0;
	(void)snprintf(form, sizeof(form), scope_long() ? "_preemptions_%u" : "_preemptions_%u_first_%d", most, FIRST);
	return run(program, &options, form);
}

int scope_random(const struct weir_model_program *program, uint64_t executions)
{
	return scope_chosen(program->name) ? run_at_random(program, executions) : 0;
}

/* Prints the longest duration of each call. Returns 1 if none exceeded its bound. */
static int print_calls(const struct weir_model_result *result, const char *const calls[], const uint32_t bounds[])
{
	int within = 1;

	for (unsigned i = 0; i < WEIR_MODEL_CALLS && calls != NULL && calls[i] != NULL; i++) {
		if (result->longest_call[i] == 0)
			continue;
		(void)printf(" %s took at most %u steps", calls[i], result->longest_call[i]);
		if (bounds[i] == 0)
			(void)printf(" (no bound in accesses is documented);");
		else if (result->longest_call[i] <= bounds[i])
			(void)printf(" of %u documented;", bounds[i]);
		else
			(void)printf(" TOO MANY of %u documented;", bounds[i]);
		within = within && (bounds[i] == 0 || result->longest_call[i] <= bounds[i]);
	}
	return within;
}

static void too_long(const char *name)
{
	(void)printf("FAIL %s: a call is longer than it is documented to be\n", name);
}

int scope_as_far_as(const struct weir_model_program *program, uint64_t executions)
{
	return scope_within(program, executions, NULL, NULL);
}

int scope_within(const struct weir_model_program *program, uint64_t executions, const char *const calls[],
                 const uint32_t bounds[])
{
	struct weir_model_options options = {
		.max_executions = at_most(executions, 1), .max_steps = 2000, .symmetric = (unsigned)symmetric};
	struct weir_model_result result;
	int bad = 0;

	if (!scope_chosen(program->name))
		return 0;
	if (replay != NULL)
		return run_completely(program);
	if (weir_model_check(program, &options, &result)) {
		print_line("FAIL", program->name, "", &result);
		print_table(program, &options, result.replay);
		free(result.replay);
		return 1;
	}
	print_line("PASS", program->name, result.complete ? "_complete" : "_depth_first", &result);
	if (calls != NULL) {
		(void)printf(" ");
		bad = !print_calls(&result, calls, bounds);
		(void)putchar('\n');
		if (bad)
			too_long(program->name);
	}
	return bad | (result.complete ? 0 : run_at_random(program, scope_long() ? executions : executions / 4));
}

int scope_finds(const struct weir_model_program *program, const char *text)
{
	struct weir_model_options options = {.max_steps = 600, .symmetric = (unsigned)symmetric};
	struct weir_model_result result, again;
	int right;

	if (!scope_chosen(program->name))
		return 0;
	(void)weir_model_check(program, &options, &result);
	right = result.failed && strstr(result.message, text) != NULL;
	if (result.failed) { /* The replay string that it printed leads there again. */
		options.replay = result.replay;
		(void)weir_model_check(program, &options, &again);
		right = right && again.failed && strcmp(result.message, again.message) == 0;
		free(again.replay);
	}
	print_line(right ? "PASS" : "FAIL", program->name, "_is_found", &result);
	free(result.replay);
	return !right;
}

int scope_stops(const struct weir_model_program *program, uint64_t executions, const char *const calls[],
                const uint32_t bounds[])
{
	struct weir_model_options options = {
		.max_executions = at_most(executions, PLACES), .max_steps = 2000, .symmetric = (unsigned)symmetric};
	struct weir_model_result result;
	char form[80] = "_each_thread_stopped_at_each_step_complete";
	int right, within;

	if (!scope_chosen(program->name))
		return 0;
	if (executions != 0)
		(void)snprintf(form, sizeof(form), "_each_thread_stopped_at_each_step_first_%llu_each",
		               (unsigned long long)executions);
	right = !weir_model_check_stops(program, &options, &result);
	print_line(right ? "PASS" : "FAIL", program->name, form, &result);
	(void)printf("  %d places to stop;", result.stopped);
	within = print_calls(&result, calls, bounds);
	(void)putchar('\n');
	if (!within)
		too_long(program->name);
	free(result.replay);
	return !(right && within);
}

static int run_plan(scope_preparation *prepare, size_t index)
{
	struct scope_plan plan = prepare(index);
	int bad = scope_as_far_as(&plan.program, scope_long() ? plan.long_executions : plan.executions);

	if (plan.stopped != 0) {
		plan = prepare(index);
		bad |= scope_stops(&plan.program, scope_long() ? plan.long_stopped : plan.stopped, NULL, NULL);
	}
	return bad;
}

int scope_all(scope_preparation *prepare, size_t count)
{
	int bad = 0;

	for (size_t i = 0; i < count; i++)
		bad |= run_plan(prepare, i);
	return bad;
}
