/*
 * mirrors.c - copies of a set of variables that change by one commit.
 *
 * The copies are plain variables, and the commit is that of commit.c: all parts take effect at one
 * instant, or none. Nothing here depends on memory order.
 */
#include <weir/mirrors.h>

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

/* A name, "/mirror_", and the number of a mirror. */
enum { MIRROR_NAME_SIZE = 256 };

struct weir_mirrors {
	weir_allocator allocator;
	size_t bytes;
	size_t size, variable_count;
	weir_var *vars[]; /* variable j of mirror i at [j * size + i] */
};

static enum weir_status check_variables(const struct weir_mirrors_options *given, weir_error *error)
{
	for (size_t j = 0; j < given->variable_count; j++) {
		const struct weir_mirrored *variable = &given->variables[j];

		if (variable->name == NULL || variable->name[0] == '\0' ||
		    strlen(variable->name) > MIRROR_NAME_SIZE - sizeof("/mirror_1024"))
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mirrors: the name of variable %zu is missing or too long",
			                  j);
		if (variable->initial == NULL)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mirrors: variable \"%s\" has no initial value",
			                  variable->name);
		for (size_t i = 0; i < j; i++) {
			if (strcmp(given->variables[i].name, variable->name) == 0)
				return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mirrors: two variables have the name \"%s\"",
				                  variable->name);
		}
	}
	return WEIR_OK;
}

static enum weir_status read_options(size_t n, const struct weir_mirrors_options *options,
                                     struct weir_mirrors_options *given, weir_error *error)
{
	enum weir_status status;

	if (options == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mirrors: options is NULL");
	status = weiri_options_read("mirrors", options, given, sizeof(*given), error);
	if (status != WEIR_OK)
		return status;
	if (given->variables == NULL || given->variable_count == 0 || n == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mirrors: there are no %s", n == 0 ? "mirrors" : "variables");
	if (n > WEIR_COMMIT_MAX_PARTS || given->variable_count > WEIR_COMMIT_MAX_PARTS / n)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "mirrors: %zu of %zu variable%s are more than the %d parts of a commit", n,
		                  given->variable_count, WEIRI_S(given->variable_count), WEIR_COMMIT_MAX_PARTS);
	return check_variables(given, error);
}

static enum weir_status create_copy(const struct weir_mirrors *mirrors, const struct weir_mirrored *variable, size_t i,
                                    weir_var **out, weir_error *error)
{
	char name[MIRROR_NAME_SIZE];
	struct weir_var_options options = {
		WEIR_VAR_OPTIONS_INIT, .name = variable->name, .dtype = weir_tensor_dtype(variable->initial),
		.shape = variable->shape != NULL ? variable->shape : weir_tensor_shape(variable->initial),
		.allocator = &mirrors->allocator};

	if (i != 0) {
		(void)snprintf(name, sizeof(name), "%s/mirror_%zu", variable->name, i);
		options.name = name;
	}
	return weir_var_create(variable->initial, &options, out, error);
}

static enum weir_status create_copies(struct weir_mirrors *mirrors, const struct weir_mirrored variables[],
                                      weir_error *error)
{
	enum weir_status status = WEIR_OK;

	for (size_t j = 0; j < mirrors->variable_count; j++) {
		for (size_t i = 0; status == WEIR_OK && i < mirrors->size; i++)
			status = create_copy(mirrors, &variables[j], i, &mirrors->vars[j * mirrors->size + i], error);
	}
	return status;
}

enum weir_status weir_mirrors_create(size_t n, const struct weir_mirrors_options *options, weir_mirrors **out,
                                     weir_error *error)
{
	struct weir_mirrors_options given;
	enum weir_status status = read_options(n, options, &given, error);
	weir_allocator allocator;
	weir_mirrors *mirrors;
	size_t bytes;

	if (status != WEIR_OK || out == NULL)
		return status != WEIR_OK ? status : weiri_fail(error, WEIR_INVALID_ARGUMENT, "mirrors: out is NULL");
	allocator = weiri_allocator_or_default(given.allocator);
	bytes = offsetof(weir_mirrors, vars) + n * given.variable_count * sizeof(weir_var *);
	mirrors = weiri_allocate_zeroed(&allocator, bytes, alignof(weir_mirrors));
	if (mirrors == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "mirrors: no memory");
	mirrors->allocator = allocator;
	mirrors->bytes = bytes;
	mirrors->size = n;
	mirrors->variable_count = given.variable_count;
	status = create_copies(mirrors, given.variables, error);
	if (status == WEIR_OK)
		*out = mirrors;
	else
		(void)weir_mirrors_destroy(mirrors, NULL); /* nobody uses the variables, and this thread has its record */
	return status;
}

enum weir_status weir_mirrors_destroy(weir_mirrors *mirrors, weir_error *error)
{
	weir_allocator allocator;

	if (mirrors == NULL)
		return WEIR_OK;
	for (size_t k = 0; k < mirrors->size * mirrors->variable_count; k++) {
		enum weir_status status = weir_var_destroy(mirrors->vars[k], error);

		if (status != WEIR_OK)
			return status;
		mirrors->vars[k] = NULL;
	}
	allocator = mirrors->allocator;
	weiri_release(&allocator, mirrors, mirrors->bytes, alignof(weir_mirrors));
	return WEIR_OK;
}

size_t weir_mirrors_size(const weir_mirrors *mirrors)
{
	return mirrors != NULL ? mirrors->size : 0;
}

size_t weir_mirrors_variable_count(const weir_mirrors *mirrors)
{
	return mirrors != NULL ? mirrors->variable_count : 0;
}

weir_var *weir_mirrors_var(const weir_mirrors *mirrors, size_t mirror, size_t variable)
{
	return mirror < weir_mirrors_size(mirrors) && variable < mirrors->variable_count
	           ? mirrors->vars[variable * mirrors->size + mirror]
	           : NULL;
}

weir_var *const *weir_mirrors_vars(const weir_mirrors *mirrors)
{
	return mirrors != NULL ? mirrors->vars : NULL;
}

/* Another commit that was first makes the numbers stale. Then this one is made again with newer ones. */
static enum weir_status commit(struct weir_commit_part parts[], size_t count, uint64_t deadline_ns, weir_error *error)
{
	enum weir_status status;

	do {
		for (size_t k = 0; k < count; k++)
			parts[k].expected = weir_var_version(parts[k].var);
		status = weir_var_commit(parts, count, deadline_ns, NULL, error);
	} while (status == WEIR_ABORTED);
	return status;
}

enum weir_status weir_mirrors_assign(weir_mirrors *mirrors, weir_tensor *const values[], uint64_t deadline_ns,
                                     weir_error *error)
{
	struct weir_commit_part *parts;
	size_t count, bytes;
	enum weir_status status;

	if (mirrors == NULL || values == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mirrors: %s is NULL", mirrors == NULL ? "mirrors" : "values");
	count = mirrors->size * mirrors->variable_count;
	bytes = count * sizeof(*parts);
	parts = weiri_allocate(&mirrors->allocator, bytes, alignof(struct weir_commit_part));
	if (parts == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "mirrors: no memory");
	for (size_t k = 0; k < count; k++)
		parts[k] = (struct weir_commit_part){.var = mirrors->vars[k], .value = values[k / mirrors->size]};
	status = commit(parts, count, deadline_ns, error);
	weiri_release(&mirrors->allocator, parts, bytes, alignof(struct weir_commit_part));
	return status;
}
