/*
 * training.c - see training.h.
 */
#include "training.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

/* -- the input --------------------------------------------------------------------------------- */

/* Each epoch has another order; the batches do not end with an epoch. */
static enum weir_status describe_input(const struct training *training, const struct digits *digits, weir_dataset **out,
                                       weir_error *error)
{
	const struct weir_dataset_options seeded = {WEIR_DATASET_OPTIONS_INIT, .seed = &training->settings.seed};
	weir_dataset *input = weir_dataset_retain(digits->rows), *outer = NULL;

	if (dataset_become(&input, weir_dataset_shuffle(input, SHUFFLED, &seeded, &outer, error), &outer) ||
	    dataset_become(&input, weir_dataset_repeat(input, training->settings.epochs, NULL, &outer, error), &outer) ||
	    dataset_become(&input, weir_dataset_batch(input, BATCH_SIZE, NULL, &outer, error), &outer) ||
	    dataset_become(&input, weir_dataset_prefetch(input, READY_BATCHES, NULL, &outer, error), &outer))
		return error->code;
	*out = input;
	return WEIR_OK;
}

/*
 * The same seed, iteration and position give the same batches: so a training goes on where another
 * ended. After a kill the checkpoint tells how many steps were made, not of which batches. Of those that
 * trainers had under way, one each, as many may be trained on twice as are left out; the numbers of steps
 * and images that the report has are right all the same.
 */
static enum weir_status open_input(struct training *training, const struct digits *digits, weir_error *error)
{
	struct weir_iterator_options options = {WEIR_ITERATOR_OPTIONS_INIT, .pool = training->pool, .iteration = 1,
	                                        .position = (uint64_t)training->first_step, .name = "batches"};
	weir_dataset *input = NULL;
	enum weir_status status = describe_input(training, digits, &input, error);

	if (status != WEIR_OK)
		return status;
	status = weir_iterator_create(input, &options, &training->batches, error);
	weir_dataset_release(input);
	return status;
}

/* -- the graph --------------------------------------------------------------------------------- */

static enum weir_status build_graph(struct training *training, weir_error *error)
{
	weir_graph *graph = training->graph;
	weir_output batch[2], results[TRAIN_RESULTS];
	struct weir_argument arguments[TRAIN_ARGUMENTS];

	if (weir_op_next(graph, "next_batch", training->batches, batch, 2, NULL, error) ||
	    weir_op_placeholder(graph, "rate", WEIR_F32, &weir_shape_scalar, &training->rate, error))
		return error->code;
	arguments[IMAGES] = (struct weir_argument){.output = batch[0]};
	arguments[LABELS] = (struct weir_argument){.output = batch[1]};
	arguments[RATE] = (struct weir_argument){.output = training->rate};
	if (weir_op_call(graph, "train", training->model->train, arguments, TRAIN_ARGUMENTS, results, NULL, error))
		return error->code;
	training->labels = batch[1];
	training->loss = results[TRAIN_LOSS];
	training->step = results[TRAIN_STEP];
	for (int i = 0; i < PARAMETERS; i++)
		training->published[i] = results[TRAIN_PUBLISHED + i];
	return WEIR_OK;
}

/* -- the hooks --------------------------------------------------------------------------------- */

/*
 * The rate falls during the training. With a constant rate, the last few batches would have too
 * much influence.
 */
static enum weir_status feed_rate(void *context, weir_monitored_call *call, weir_error *error)
{
	const struct training *training = context;
	float done = (float)weir_iterator_position(training->batches) / (float)training->last_step;
	weir_tensor *rate;
	enum weir_status status = weir_tensor_scalar_f32(0.005f - 0.0045f * done, &rate);

	if (status != WEIR_OK)
		return failure(error, status, "there is no memory for the learning rate");
	status = weir_monitored_call_feed(call, training->rate, rate, error);
	weir_tensor_release(rate);
	return status;
}

/* What the hook of the fingerprints fetches, in this order; it is the only one that fetches. */
enum { FETCHED_STEP, FETCHED_PARAMETERS };

static enum weir_status fetch_published(void *context, weir_monitored_call *call, weir_error *error)
{
	const struct training *training = context;
	enum weir_status status = weir_monitored_call_fetch(call, training->step, NULL, error);

	for (int i = 0; status == WEIR_OK && i < PARAMETERS; i++)
		status = weir_monitored_call_fetch(call, training->published[i], NULL, error);
	return status;
}

/* Each number is of one step. */
static enum weir_status note_published(void *context, weir_monitored_call *call, weir_error *error)
{
	struct training *training = context;
	int64_t number = *(const int64_t *)weir_tensor_data(weir_monitored_call_result(call, FETCHED_STEP));
	weir_tensor *published[PARAMETERS];

	for (size_t i = 0; i < PARAMETERS; i++)
		published[i] = weir_monitored_call_result(call, FETCHED_PARAMETERS + i);
	if (number <= training->first_step || number > training->last_step ||
	    atomic_exchange_explicit(&training->applied[number], model_fingerprint(published), memory_order_relaxed) != 0)
		return failure(error, WEIR_INTERNAL, "two steps have the number %lld", (long long)number);
	return WEIR_OK;
}

static enum weir_status measure(void *context, weir_session *session, weir_error *error)
{
	struct training *training = context;
	weir_read reads[VARIABLES];
	enum weir_status status = weir_var_snapshot(training->model->variables, VARIABLES, reads, error);

	if (status != WEIR_OK)
		return status;
	status = model_evaluate(training->model, session, reads, &training->final, error);
	weir_read_release_many(reads, VARIABLES);
	return status;
}

/* -- the session ------------------------------------------------------------------------------- */

static enum weir_status make(void *context, weir_session **session, weir_error *error)
{
	const struct training *training = context;
	const struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .pool = training->pool,
	                                             .trace = training->trace};

	return weir_session_create(training->graph, &options, session, error);
}

enum { MOST_VARIABLES = 4 * PARAMETERS };

/* All variables of the model, and of its optimizer. Returns how many they are. */
static size_t list_variables(const struct model *model, struct weir_checkpoint_part parts[])
{
	size_t own = weir_optimizer_variable_count(model->optimizer);
	weir_var *vars[MOST_VARIABLES];

	if (own > MOST_VARIABLES || weir_optimizer_variables(model->optimizer, vars, own, NULL) != WEIR_OK)
		return 0;
	for (size_t i = 0; i < PARAMETERS; i++)
		parts[i] = (struct weir_checkpoint_part){NULL, model->variables[i]};
	for (size_t i = 0; i < own; i++)
		parts[PARAMETERS + i] = (struct weir_checkpoint_part){NULL, vars[i]};
	return PARAMETERS + own;
}

static enum weir_status begin_session(struct training *training, weir_error *error)
{
	const struct weir_monitored_hook rate = {WEIR_MONITORED_HOOK_INIT, .name = "rate", .context = training,
	                                         .before_run = feed_rate};
	const struct weir_monitored_hook fingerprints = {WEIR_MONITORED_HOOK_INIT, .name = "fingerprints",
	                                                 .context = training, .before_run = fetch_published,
	                                                 .after_run = note_published};
	const struct weir_monitored_hook final = {WEIR_MONITORED_HOOK_INIT, .name = "final score", .context = training,
	                                          .end = measure};
	const struct weir_monitored_hook *hooks[] = {&rate, &fingerprints, &final};
	struct weir_checkpoint_part variables[PARAMETERS + MOST_VARIABLES];
	struct weir_monitored_options options = {WEIR_MONITORED_OPTIONS_INIT,
	                                         .make = make,
	                                         .context = training,
	                                         .hooks = hooks,
	                                         .hook_count = sizeof(hooks) / sizeof(hooks[0]),
	                                         .name = "training"};

	if (training->settings.checkpoint != NULL) {
		options.path = training->settings.checkpoint;
		options.save_every_runs = STEPS_BETWEEN_SAVES;
		options.variables = variables;
		options.variable_count = list_variables(training->model, variables);
	}
	return weir_monitored_create(&options, &training->monitored, error);
}

/* -- creating and ending ----------------------------------------------------------------------- */

static enum weir_status create_pool(struct training *training, weir_error *error)
{
	const struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .threads = training->settings.threads};

	return weir_pool_create(&options, &training->pool, error);
}

/* Finds the step at which the training goes on: that of the checkpoint, if there is one. */
static enum weir_status find_first_step(struct training *training, weir_error *error)
{
	const struct weir_checkpoint_part step = {NULL, training->model->variables[STEP]};
	const struct weir_checkpoint_options options = {WEIR_CHECKPOINT_OPTIONS_INIT,
	                                                .flags = WEIR_CHECKPOINT_ALLOW_OTHERS};
	enum weir_status status;
	weir_read read;

	if (training->settings.checkpoint == NULL)
		return WEIR_OK;
	status = weir_checkpoint_restore(&step, 1, training->settings.checkpoint, &options, WEIR_NO_DEADLINE, error);
	if (status != WEIR_OK)
		return status == WEIR_NOT_FOUND ? WEIR_OK : status;
	status = weir_var_read(step.var, &read);
	if (status != WEIR_OK)
		return failure(error, status, "cannot read the number of steps");
	training->first_step = *(const int64_t *)weir_tensor_data(read.tensor);
	weir_read_release(&read);
	if (training->first_step < 0 || training->first_step > training->last_step)
		return failure(error, WEIR_FAILED_PRECONDITION, "%s: %lld steps were made, and this training has %lld",
		               training->settings.checkpoint, (long long)training->first_step, (long long)training->last_step);
	return WEIR_OK;
}

static enum weir_status create_records(struct training *training, weir_error *error)
{
	size_t count = (size_t)training->last_step + 1;

	training->applied = calloc(count, sizeof(*training->applied));
	return training->applied != NULL
	           ? WEIR_OK
	           : failure(error, WEIR_RESOURCE_EXHAUSTED, "there is no memory for the records of %zu steps", count);
}

enum weir_status training_create(struct training *training, const struct training_settings *settings,
                                 const struct digits *digits, struct model *model, weir_error *error)
{
	*training = (struct training){.settings = *settings, .model = model};
	training->row_count = settings->epochs * digits->count;
	training->last_step = (training->row_count + BATCH_SIZE - 1) / BATCH_SIZE;
	if ((settings->trace != NULL && weir_trace_create(NULL, &training->trace, error)) ||
	    create_records(training, error) || create_pool(training, error) || find_first_step(training, error) ||
	    open_input(training, digits, error) || weir_graph_create(NULL, &training->graph, error) ||
	    build_graph(training, error) || begin_session(training, error)) {
		(void)training_destroy(training, NULL); /* the first failure is the one to report */
		return error->code;
	}
	return WEIR_OK;
}

enum weir_status training_close(struct training *training, enum weir_status loop, weir_error *error)
{
	return weir_monitored_close(training->monitored, loop, error);
}

enum weir_status training_destroy(struct training *training, weir_error *error)
{
	enum weir_status status = weir_monitored_destroy(training->monitored, error);

	if (status == WEIR_OK)
		status = weir_graph_destroy(training->graph, error);
	if (status == WEIR_OK)
		status = weir_iterator_destroy(training->batches, error);
	if (status == WEIR_OK)
		status = weir_pool_destroy(training->pool, error);
	if (status == WEIR_OK)
		status = weir_trace_destroy(training->trace, error);
	if (status != WEIR_OK)
		return status;
	free(training->applied);
	*training = (struct training){.model = NULL};
	return WEIR_OK;
}

/* -- steps ------------------------------------------------------------------------------------- */

enum weir_status training_step(struct training *training, struct training_step *step, weir_error *error)
{
	weir_output fetches[] = {training->loss, training->labels};
	weir_tensor *results[2];
	/* There is no cancel token: a batch that was taken is always trained on. */
	enum weir_status status = weir_monitored_run(training->monitored, NULL, 0, fetches, 2, results, NULL, 0,
	                                             WEIR_NO_DEADLINE, NULL, NULL, error);

	if (status != WEIR_OK)
		return status;
	step->loss = *(const float *)weir_tensor_data(results[0]);
	step->examples = weir_tensor_element_count(results[1]);
	weir_tensor_release(results[0]);
	weir_tensor_release(results[1]);
	return WEIR_OK;
}

int64_t training_batches(const struct training *training)
{
	return (int64_t)weir_iterator_position(training->batches) - training->first_step;
}

/* -- the trace --------------------------------------------------------------------------------- */

static enum weir_status write_bytes(void *file, const char *bytes, size_t size, weir_error *error)
{
	return fwrite(bytes, 1, size, file) == size
	           ? WEIR_OK
	           : failure(error, WEIR_INTERNAL, "the trace cannot be written: %s", strerror(errno));
}

enum weir_status training_write_trace(const struct training *training, weir_error *error)
{
	enum weir_status status;
	FILE *file;

	if (training->trace == NULL)
		return WEIR_OK;
	file = fopen(training->settings.trace, "wb");
	if (file == NULL)
		return failure(error, WEIR_NOT_FOUND, "cannot write %s: %s", training->settings.trace, strerror(errno));
	status = weir_trace_write(training->trace, write_bytes, file, error);
	if (fclose(file) != 0 && status == WEIR_OK)
		status = failure(error, WEIR_INTERNAL, "cannot write %s: %s", training->settings.trace, strerror(errno));
	return status;
}
