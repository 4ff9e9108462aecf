/*
 * monitored_job.c - a job that survives the loss of its session, and is found again after its end.
 *
 * Each run adds the next number, 1 to 20, to `sum`, and is followed by a checkpoint. A hook counts the
 * runs and stops the loop after 10 of them. Before the 5th the session is lost, as if a device had
 * gone: the next one begins at the last checkpoint, and the loop does not notice. Then the job is
 * begun again, as by a new process, takes up the sum where it was, and goes on to the end of the
 * numbers. For a job with queue runners see listings/003_1.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/flow.h>

enum { NUMBERS = 20, HALF = 10, LOST_AT = 4 };

static weir_error failure;

static void must(enum weir_status status)
{
	if (status == WEIR_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", weir_status_name(status), failure.message);
	exit(1);
}

static void expect(int right, const char *what)
{
	if (right)
		return;
	(void)fprintf(stderr, "wrong: %s\n", what);
	exit(1);
}

struct job {
	weir_graph *graph;
	weir_var *sum;
	weir_node *add;
	int next;     /* the number that comes next */
	int sessions; /* made so far */
	int runs;     /* that succeeded in this part */
	int lost;     /* whether the session was lost */
};

static enum weir_status make(void *context, weir_session **session, weir_error *error)
{
	struct job *job = context;

	job->sessions++;
	return weir_session_create(job->graph, NULL, session, error);
}

/* -- the hook ---------------------------------------------------------------------------------- */

static enum weir_status lose_the_session_once(void *context, weir_monitored_call *call, weir_error *error)
{
	struct job *job = context;

	(void)call;
	if (job->lost || job->runs < LOST_AT)
		return WEIR_OK;
	job->lost = 1;
	error->code = WEIR_UNAVAILABLE;
	(void)snprintf(error->message, sizeof(error->message), "the device is gone");
	return WEIR_UNAVAILABLE;
}

static enum weir_status count_and_stop(void *context, weir_monitored_call *call, weir_error *error)
{
	struct job *job = context;

	(void)error;
	if (++job->runs == HALF)
		return weir_monitored_request_stop(weir_monitored_call_owner(call));
	return WEIR_OK;
}

/* -- the graph --------------------------------------------------------------------------------- */

static enum weir_status next_number(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	struct job *job = context;

	if (job->next > NUMBERS) {
		(void)snprintf(error->message, sizeof(error->message), "there are %d numbers", NUMBERS);
		return WEIR_OUT_OF_RANGE;
	}
	return weir_tensor_scalar_i64(job->next++, &call->outputs[0]);
}

static void build(struct job *job)
{
	static const struct weir_kernel kernel = {WEIR_KERNEL_INIT, .name = "next_number", .run = next_number};
	struct weir_output_type number = {WEIR_I64, &weir_shape_scalar};
	struct weir_var_options of_sum = {WEIR_VAR_OPTIONS_INIT, .name = "sum", .dtype = WEIR_I64,
	                                  .shape = &weir_shape_scalar};
	weir_output source, sum;
	weir_tensor *zero;

	must(weir_tensor_scalar_i64(0, &zero));
	must(weir_var_create(zero, &of_sum, &job->sum, &failure));
	weir_tensor_release(zero);
	must(weir_graph_create(NULL, &job->graph, &failure));
	must(weir_op_kernel(job->graph, "source", &kernel, job, NULL, 0, &number, 1, NULL, 0, &source, NULL, &failure));
	must(weir_op_assign_add(job->graph, "add", job->sum, source, &sum, &failure));
	job->add = sum.node;
	job->next = 1;
}

static int64_t sum_now(const struct job *job)
{
	weir_read read;
	int64_t value;

	must(weir_var_read(job->sum, &read));
	value = *(const int64_t *)weir_tensor_data(read.tensor);
	weir_read_release(&read);
	return value;
}

/* -- the job ----------------------------------------------------------------------------------- */

/* Runs until a hook stops the loop, or the numbers end. */
static void run_part(struct job *job, const char *path, int stops)
{
	const struct weir_monitored_hook hook = {WEIR_MONITORED_HOOK_INIT, .name = "progress", .context = job,
	                                         .before_run = lose_the_session_once,
	                                         .after_run = stops ? count_and_stop : NULL};
	const struct weir_monitored_hook *hooks[] = {&hook};
	const struct weir_checkpoint_part sum = {NULL, job->sum};
	struct weir_monitored_options options = {
		WEIR_MONITORED_OPTIONS_INIT, .make = make,        .context = job, .hooks = hooks,       .hook_count = 1,
		.variables = &sum,           .variable_count = 1, .path = path,   .save_every_runs = 1, .name = "job"};
	enum weir_status status = WEIR_OK;
	weir_monitored *monitored;

	must(weir_monitored_create(&options, &monitored, &failure));
	while (status == WEIR_OK && !weir_monitored_should_stop(monitored))
		status =
			weir_monitored_run(monitored, NULL, 0, NULL, 0, NULL, &job->add, 1, WEIR_NO_DEADLINE, NULL, NULL, &failure);
	must(weir_monitored_close(monitored, status, &failure));
	must(weir_monitored_destroy(monitored, &failure));
}

int main(void)
{
	char folder[] = "/tmp/weir_monitored_XXXXXX", path[64];
	struct job job = {.sessions = 0};
	weir_tensor *wrong;

	expect(mkdtemp(folder) != NULL, "there must be a folder for the checkpoint");
	(void)snprintf(path, sizeof(path), "%s/job.safetensors", folder);
	build(&job);
	run_part(&job, path, 1);
	printf("%d runs in %d sessions: the sum is %d\n", job.runs, job.sessions, (int)sum_now(&job));
	expect(job.runs == HALF && job.sessions == 2, "the loop must have gone on in a second session");
	expect(sum_now(&job) == HALF * (HALF + 1) / 2, "each number must have been added once");

	/* As in a new process: the value comes from the checkpoint. */
	must(weir_tensor_scalar_i64(-1, &wrong));
	must(weir_var_assign(job.sum, wrong, WEIR_NO_DEADLINE, NULL, &failure));
	weir_tensor_release(wrong);
	run_part(&job, path, 0);
	printf("to the end of the numbers: the sum is %d\n", (int)sum_now(&job));
	expect(sum_now(&job) == NUMBERS * (NUMBERS + 1) / 2, "the sum must have been taken up where it was");

	must(weir_graph_destroy(job.graph, &failure));
	must(weir_var_destroy(job.sum, &failure));
	expect(unlink(path) == 0 && rmdir(folder) == 0, "only the checkpoint may be left");
	return 0;
}
