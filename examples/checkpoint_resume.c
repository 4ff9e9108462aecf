/*
 * checkpoint_resume.c - a counter and its square, saved while a thread changes them, and restored.
 *
 * A commit always changes both together. They must therefore also agree in the file, whatever the
 * thread was doing during the save. A second run continues from the file.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/flow.h>

enum { STEPS = 20000 };

static weir_error error;

static int failed(enum weir_status status)
{
	if (status != WEIR_OK)
		(void)fprintf(stderr, "%s: %s\n", weir_status_name(status), error.message);
	return status != WEIR_OK;
}

/* The variable is not initialized: the first step or a checkpoint gives it a value. */
static weir_var *variable(const char *name)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = name, .dtype = WEIR_I64};
	weir_var *var;

	if (failed(weir_var_create(NULL, &options, &var, &error)))
		exit(1);
	return var;
}

static int64_t value_of(weir_var *var)
{
	weir_read read;
	int64_t value;

	if (weir_var_read(var, &read) != WEIR_OK)
		exit(1);
	value = *(const int64_t *)weir_tensor_data(read.tensor);
	weir_read_release(&read);
	return value;
}

/* Changes both at one instant. */
static void set(weir_var *const vars[2], int64_t number)
{
	weir_tensor *value, *square;
	struct weir_commit_part parts[2];

	if (weir_tensor_scalar_i64(number, &value) || weir_tensor_scalar_i64(number * number, &square))
		exit(1);
	parts[0] = (struct weir_commit_part){vars[0], weir_var_version(vars[0]), value};
	parts[1] = (struct weir_commit_part){vars[1], weir_var_version(vars[1]), square};
	if (failed(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, &error)))
		exit(1);
	weir_tensor_release(value);
	weir_tensor_release(square);
}

static void *count(void *context)
{
	weir_var *const *vars = context;

	for (int64_t i = value_of(vars[0]) + 1; i <= STEPS; i++)
		set(vars, i);
	return NULL;
}

int main(void)
{
	char path[] = "/tmp/weir_resume_XXXXXX";
	weir_var *first[2] = {variable("number"), variable("square")},
			 *second[2] = {variable("number"), variable("square")};
	struct weir_checkpoint_part kept[2] = {{NULL, first[0]}, {NULL, first[1]}},
								found[2] = {{NULL, second[0]}, {NULL, second[1]}};
	pthread_t counter;
	int64_t reached;

	if (close(mkstemp(path)) != 0)
		return 1;
	set(first, 1);
	if (pthread_create(&counter, NULL, count, first) != 0)
		return 1;
	/* The thread goes on counting; it never waits for the save. */
	if (failed(weir_checkpoint_save(kept, 2, path, NULL, &error)))
		return 1;
	(void)pthread_join(counter, NULL);

	/* A later run: its variables are new. */
	if (failed(weir_checkpoint_restore(found, 2, path, NULL, WEIR_NO_DEADLINE, &error)))
		return 1;
	reached = value_of(second[0]);
	printf("saved at %" PRId64 " of %d, with the square %" PRId64 "\n", reached, STEPS, value_of(second[1]));
	if (reached < 1 || value_of(second[1]) != reached * reached)
		return 1;
	(void)count(second);
	printf("resumed, and counted to %" PRId64 "\n", value_of(second[0]));
	(void)unlink(path);
	reached = value_of(second[0]);
	for (int i = 0; i < 2; i++) {
		weir_var_destroy(first[i], NULL);
		weir_var_destroy(second[i], NULL);
	}
	return reached == STEPS ? 0 : 1;
}
