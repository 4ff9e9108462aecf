/*
 * 003_6.c - the training loop that reports its own errors: the end of the input is a clean stop, and
 * any other error comes out of the join, once.
 *
 * In the first run the examples end, so the loop gets WEIR_OUT_OF_RANGE and the join returns WEIR_OK.
 * In the second run a step fails. The loop reports the error, and again requests a stop, as in a
 * `finally`: that is safe, and the first error stays.
 */
#include "training.h"

enum { EXAMPLES = 800, FAILS_AT = 20 };

/* A train op of which one step fails, as if its data were damaged. */
static enum weir_status train(struct training_run *run, struct training *training, int step, int fails_at,
                              weir_error *error)
{
	if (step == fails_at) {
		error->code = WEIR_DATA_LOSS;
		(void)snprintf(error->message, sizeof(error->message), "step %d: the batch is damaged", step);
		return WEIR_DATA_LOSS;
	}
	return weir_session_run(run->session, NULL, 0, NULL, 0, NULL, &training->train_op, 1, WEIR_NO_DEADLINE, NULL,
	                        error);
}

/* Returns what the join returns, and stores the number of steps. */
static enum weir_status train_until_the_end(struct training *training, int fails_at, int *steps, weir_error *error)
{
	struct training_run run;
	enum weir_status status = WEIR_OK;

	begin_training(&run, training);
	for (*steps = 0; !weir_coordinator_should_stop(run.coordinator); ++*steps) {
		weir_error failure;

		status = train(&run, training, *steps, fails_at, &failure);
		if (status == WEIR_OK)
			continue;
		/* Report exceptions to the coordinator. */
		must(weir_coordinator_request_stop(run.coordinator, &failure));
		break;
	}
	/* Terminate as usual. It is safe to call it twice. */
	must(weir_coordinator_request_stop(run.coordinator, NULL));
	status = join_training(&run, error);
	close_training(&run);
	return status;
}

int main(void)
{
	struct training training;
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;
	int steps;

	build_training(&training, EXAMPLES);
	status = train_until_the_end(&training, -1, &steps, &error);
	printf("the input ended after %d steps: the join returns %s\n", steps, weir_status_name(status));
	expect(status == WEIR_OK, "the end of the input must be a clean stop");
	expect(steps == EXAMPLES / BATCH_SIZE, "each example must have been in one batch");
	expect(model_of(&training) == (int64_t)EXAMPLES * (EXAMPLES - 1) / 2, "and the model must have them all");
	end_training(&training);

	build_training(&training, 0);
	status = train_until_the_end(&training, FAILS_AT, &steps, &error);
	printf("an error: the join returns %s, \"%s\"\n", weir_status_name(status), error.message);
	expect(status == WEIR_DATA_LOSS && steps == FAILS_AT, "the error of the loop must come out of the join");
	expect(strcmp(error.message, "step 20: the batch is damaged") == 0, "with its message");
	end_training(&training);
	return 0;
}
