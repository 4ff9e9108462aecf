/*
 * replicas.c - see replicas.h.
 */
#include "replicas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/flow.h>

#include "failure.h"
#include "random.h"
#include "ranks.h"

enum { HIDDEN_WEIGHTS, HIDDEN_BIAS, WEIGHTS, BIAS, PARAMETERS };
enum { HIDDEN_UNITS = 64, BATCH = 32, MOST_VARIABLES = 512, LINES = 10 };

static const weir_shape shapes[PARAMETERS] = {
	{2, {DIGIT_PIXELS, HIDDEN_UNITS}}, {1, {HIDDEN_UNITS}}, {2, {HIDDEN_UNITS, DIGIT_CLASSES}}, {1, {DIGIT_CLASSES}}};
static const char *const names[PARAMETERS] = {"hidden_weights", "hidden_bias", "weights", "bias"};

struct team {
	struct replicas_settings settings;
	const struct digits *training, *held_out;
	weir_pool *pool;
	weir_transport *transport;    /* NULL: no other rank */
	size_t rank, ranks, mirrored; /* mirrored: in this process */
	weir_mirrors *mirrors;
	weir_optimizer *optimizer;
	weir_function *gradients;
	weir_graph *graph;
	weir_monitored *monitored;
	weir_trace *trace;
	weir_output images, labels, loss, step, digests, all_digests, held_out_images, best;
	weir_node *train;
	int64_t *order; /* of the images in this epoch */
	int64_t ordered_epoch;
	int64_t digest; /* of what this rank holds */
	weir_error error;
};

/* -- the order of the images ------------------------------------------------------------------- */

/* The order depends on the seed and the epoch alone, so all ranks have the same, also after a restart. */
static void order_epoch(struct team *team, int64_t epoch)
{
	uint64_t state = team->settings.seed * UINT64_C(1000003) + (uint64_t)epoch;

	if (team->ordered_epoch == epoch)
		return;
	team->ordered_epoch = epoch;
	for (int64_t i = 0; i < team->training->count; i++)
		team->order[i] = i;
	for (int64_t i = team->training->count - 1; i > 0; i--) {
		int64_t j = (int64_t)(next_random(&state) % (uint64_t)(i + 1));
		int64_t kept = team->order[i];

		team->order[i] = team->order[j];
		team->order[j] = kept;
	}
}

/* -- the graph --------------------------------------------------------------------------------- */

/* Adds the logits of the images. */
static enum weir_status add_logits(weir_graph *graph, const weir_output parameters[], weir_output images,
                                   weir_output *logits, weir_error *error)
{
	weir_output hidden;

	return weir_op_matmul(graph, NULL, images, parameters[HIDDEN_WEIGHTS], 0, &hidden, error) ||
	               weir_op_add(graph, NULL, hidden, parameters[HIDDEN_BIAS], &hidden, error) ||
	               weir_op_relu(graph, NULL, hidden, &hidden, error) ||
	               weir_op_matmul(graph, NULL, hidden, parameters[WEIGHTS], 0, logits, error) ||
	               weir_op_add(graph, NULL, *logits, parameters[BIAS], logits, error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status add_reads(weir_graph *graph, weir_var *const vars[], weir_output parameters[],
                                  weir_error *error)
{
	enum weir_status status = WEIR_OK;

	for (int i = 0; status == WEIR_OK && i < PARAMETERS; i++)
		status = weir_op_read(graph, NULL, vars[i], &parameters[i], error);
	return status;
}

/* Adds the mean loss, and its gradients by the parameters. */
static enum weir_status add_gradients(weir_graph *graph, weir_var *const vars[], weir_output images, weir_output labels,
                                      weir_output results[], weir_error *error)
{
	weir_output parameters[PARAMETERS], logits = {NULL, 0}, losses;
	enum weir_status status = add_reads(graph, vars, parameters, error);

	if (status == WEIR_OK)
		status = add_logits(graph, parameters, images, &logits, error);
	if (status != WEIR_OK)
		return status;
	return weir_op_softmax_cross_entropy(graph, NULL, logits, labels, &losses, NULL, error) ||
	               weir_op_reduce_mean(graph, NULL, losses, &results[PARAMETERS], error) ||
	               weir_gradients(graph, &results[PARAMETERS], 1, parameters, PARAMETERS, results, error)
	           ? error->code
	           : WEIR_OK;
}

static enum weir_status build_function(void *context, weir_graph *body, const struct weir_argument arguments[],
                                       weir_output results[], weir_error *error)
{
	weir_var *vars[PARAMETERS];

	(void)context;
	for (int i = 0; i < PARAMETERS; i++)
		vars[i] = arguments[i].var;
	return add_gradients(body, vars, arguments[PARAMETERS].output, arguments[PARAMETERS + 1].output, results, error);
}

static enum weir_status create_function(struct team *team)
{
	struct weir_parameter parameters[PARAMETERS + 2];
	struct weir_function_options options = {WEIR_FUNCTION_OPTIONS_INIT,        .name = "gradients",
	                                        .build = build_function,           .parameters = parameters,
	                                        .parameter_count = PARAMETERS + 2, .result_count = PARAMETERS + 1};

	for (int i = 0; i < PARAMETERS; i++)
		parameters[i] = (struct weir_parameter){names[i], WEIR_PARAMETER_VAR, WEIR_F32, &shapes[i]};
	parameters[PARAMETERS] = (struct weir_parameter){"images", WEIR_PARAMETER_TENSOR, WEIR_F32, NULL};
	parameters[PARAMETERS + 1] = (struct weir_parameter){"labels", WEIR_PARAMETER_TENSOR, WEIR_I64, NULL};
	return weir_function_create(&options, &team->gradients, &team->error);
}

/*
 * Adds the gradients of all mirrors: gradient j of mirror i at [j * mirrored + i], and then the losses. A
 * process with one mirror has the nodes in the graph itself, so that the sum of one gradient begins
 * while the next one is computed.
 */
static enum weir_status add_all_gradients(struct team *team, weir_output gradients[])
{
	const weir_output inputs[2] = {team->images, team->labels};
	weir_var *vars[PARAMETERS];

	if (team->mirrored > 1)
		return weir_op_replicate(team->graph, "gradients", team->gradients, team->mirrors, inputs, 2, gradients, NULL,
		                         &team->error);
	for (size_t j = 0; j < PARAMETERS; j++)
		vars[j] = weir_mirrors_var(team->mirrors, 0, j);
	return add_gradients(team->graph, vars, team->images, team->labels, gradients, &team->error);
}

static enum weir_status add_means(struct team *team, const weir_output gradients[], weir_output means[])
{
	struct weir_all_reduce_options reduce = {WEIR_ALL_REDUCE_OPTIONS_INIT, .transport = team->transport};
	size_t n = team->mirrored;
	enum weir_status status = WEIR_OK;

	/* The last layer's gradient is ready first. */
	for (size_t j = PARAMETERS; status == WEIR_OK && j-- > 0;) {
		char name[64];

		(void)snprintf(name, sizeof(name), "mean of %s", names[j]);
		status = weir_op_all_reduce(team->graph, name, WEIR_REDUCE_MEAN, &gradients[j * n], n, &reduce, &means[j * n],
		                            &team->error);
	}
	return status;
}

/* Each rank gives a vector with its digest at its place; the sum has those of all. */
static enum weir_status add_digests(struct team *team)
{
	struct weir_all_reduce_options reduce = {WEIR_ALL_REDUCE_OPTIONS_INIT, .transport = team->transport};
	weir_shape shape = {1, {(int64_t)team->ranks}};

	return weir_op_placeholder(team->graph, "digest", WEIR_I64, &shape, &team->digests, &team->error) ||
	               weir_op_all_reduce(team->graph, "digests", WEIR_REDUCE_SUM, &team->digests, 1, &reduce,
	                                  &team->all_digests, &team->error)
	           ? team->error.code
	           : WEIR_OK;
}

static enum weir_status add_evaluation(struct team *team)
{
	static const weir_shape images = {2, {-1, DIGIT_PIXELS}};
	weir_output parameters[PARAMETERS], logits;
	weir_var *vars[PARAMETERS];

	for (size_t j = 0; j < PARAMETERS; j++)
		vars[j] = weir_mirrors_var(team->mirrors, 0, j);
	return weir_op_placeholder(team->graph, "held_out", WEIR_F32, &images, &team->held_out_images, &team->error) ||
	               add_reads(team->graph, vars, parameters, &team->error) ||
	               add_logits(team->graph, parameters, team->held_out_images, &logits, &team->error) ||
	               weir_op_argmax(team->graph, "best", logits, &team->best, &team->error)
	           ? team->error.code
	           : WEIR_OK;
}

static enum weir_status build_graph(struct team *team)
{
	static const weir_shape images = {2, {-1, DIGIT_PIXELS}}, labels = {1, {-1}};
	size_t n = team->mirrored, count = n * PARAMETERS;
	weir_output *outputs = calloc(2 * count + n, sizeof(*outputs)); /* gradients and losses, then means */
	enum weir_status status;

	if (outputs == NULL)
		return failure(&team->error, WEIR_RESOURCE_EXHAUSTED, "there is no memory for the gradients");
	status = weir_op_placeholder(team->graph, "images", WEIR_F32, &images, &team->images, &team->error);
	if (status == WEIR_OK)
		status = weir_op_placeholder(team->graph, "labels", WEIR_I64, &labels, &team->labels, &team->error);
	if (status == WEIR_OK)
		status = add_all_gradients(team, outputs);
	if (status == WEIR_OK)
		status = add_means(team, outputs, outputs + count + n);
	if (status == WEIR_OK)
		status = weir_op_apply(team->graph, "step", team->optimizer, weir_mirrors_vars(team->mirrors),
		                       outputs + count + n, count, &team->step, &team->train, &team->error);
	team->loss = outputs[count];
	free(outputs);
	if (status == WEIR_OK)
		status = add_digests(team);
	return status == WEIR_OK ? add_evaluation(team) : status;
}

/* -- creating and ending ----------------------------------------------------------------------- */

static enum weir_status create_mirrors(struct team *team)
{
	struct weir_mirrored variables[PARAMETERS];
	struct weir_mirrors_options options = {WEIR_MIRRORS_OPTIONS_INIT, .variables = variables,
	                                       .variable_count = PARAMETERS};
	uint64_t state = team->settings.seed;
	enum weir_status status = WEIR_OK;

	for (int i = 0; i < PARAMETERS; i++) {
		variables[i] = (struct weir_mirrored){names[i], NULL, NULL};
		if (status == WEIR_OK)
			status = random_tensor(&shapes[i], 0.15f, &state, &variables[i].initial);
	}
	if (status == WEIR_OK)
		status = weir_mirrors_create(team->mirrored, &options, &team->mirrors, &team->error);
	else
		(void)failure(&team->error, status, "there is no memory for the parameters");
	for (int i = 0; i < PARAMETERS; i++)
		weir_tensor_release(variables[i].initial);
	return status;
}

static enum weir_status create_pool(struct team *team)
{
	/* The main thread is one that works. A rank drives MPI in it, while it waits. */
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT};

	options.threads = (team->settings.threads != 0 ? team->settings.threads : team->mirrored) - 1;
	options.flags = options.threads == 0 ? WEIR_POOL_NO_THREADS : 0;
	return weir_pool_create(&options, &team->pool, &team->error);
}

static enum weir_status create(struct team *team)
{
	struct weir_optimizer_options adam = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = WEIR_OPTIMIZER_ADAM, .rate = 0.003};
	enum weir_status status = create_pool(team);

	if (status == WEIR_OK && team->settings.count == 0)
		status = ranks_open(team->pool, &team->transport, &team->error);
	if (status != WEIR_OK)
		return status;
	if (team->transport != NULL) {
		team->rank = team->transport->rank;
		team->ranks = team->transport->size;
	}
	team->order = calloc((size_t)team->training->count, sizeof(*team->order));
	if (team->order == NULL)
		return failure(&team->error, WEIR_RESOURCE_EXHAUSTED, "there is no memory for the order of the images");
	return create_mirrors(team) || weir_optimizer_create(&adam, &team->optimizer, &team->error) ||
	               create_function(team) || weir_graph_create(NULL, &team->graph, &team->error) || build_graph(team)
	           ? team->error.code
	           : WEIR_OK;
}

static enum weir_status destroy(struct team *team)
{
	free(team->order);
	return weir_monitored_destroy(team->monitored, &team->error) || weir_graph_destroy(team->graph, &team->error) ||
	               weir_function_destroy(team->gradients, &team->error) ||
	               weir_optimizer_destroy(team->optimizer, &team->error) ||
	               weir_mirrors_destroy(team->mirrors, &team->error) || weir_trace_destroy(team->trace, &team->error) ||
	               (team->transport != NULL && ranks_close(&team->error)) || weir_pool_destroy(team->pool, &team->error)
	           ? team->error.code
	           : WEIR_OK;
}

/* -- around the steps -------------------------------------------------------------------------- */

static int64_t steps_made(const struct team *team)
{
	weir_read read;
	int64_t step;

	if (weir_var_read(weir_optimizer_step(team->optimizer), &read) != WEIR_OK)
		return 0;
	step = *(const int64_t *)weir_tensor_data(read.tensor);
	weir_read_release(&read);
	return step;
}

/* FNV-1a over the parameters of all mirrors, which are equal if the digests of the ranks are. */
static enum weir_status digest(struct team *team, weir_error *error)
{
	size_t count = team->mirrored * PARAMETERS;
	weir_read reads[MOST_VARIABLES];
	uint64_t hash = UINT64_C(14695981039346656037);
	enum weir_status status = weir_var_snapshot(weir_mirrors_vars(team->mirrors), count, reads, error);

	if (status != WEIR_OK)
		return status;
	for (size_t k = 0; status == WEIR_OK && k < count; k++) {
		const weir_tensor *first = reads[k / team->mirrored * team->mirrored].tensor;
		const uint8_t *bytes = weir_tensor_data(reads[k].tensor);

		if (memcmp(bytes, weir_tensor_data(first), weir_tensor_byte_count(first)) != 0)
			status = failure(error, WEIR_INTERNAL, "two mirrors of \"%s\" differ", names[k / team->mirrored]);
		for (size_t i = 0; k % team->mirrored == 0 && i < weir_tensor_byte_count(first); i++)
			hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	}
	weir_read_release_many(reads, count);
	team->digest = (int64_t)(hash >> 1);
	return status;
}

/* Gives this rank's digest to all, and compares. */
static enum weir_status compare_digests(struct team *team, weir_session *session, weir_error *error)
{
	weir_shape shape = {1, {(int64_t)team->ranks}};
	int64_t *vector = calloc(team->ranks, sizeof(*vector));
	struct weir_feed feed = {team->digests, NULL};
	weir_tensor *all = NULL;
	enum weir_status status;

	if (vector == NULL)
		return failure(error, WEIR_RESOURCE_EXHAUSTED, "there is no memory for the digests");
	vector[team->rank] = team->digest;
	status = weir_tensor_copy_of(WEIR_I64, &shape, vector, NULL, &feed.value);
	free(vector);
	if (status == WEIR_OK)
		status =
			weir_session_run(session, &feed, 1, &team->all_digests, 1, &all, NULL, 0, WEIR_NO_DEADLINE, NULL, error);
	weir_tensor_release(feed.value);
	for (size_t r = 0; status == WEIR_OK && r < team->ranks; r++) {
		if (((const int64_t *)weir_tensor_data(all))[r] != team->digest)
			status = failure(error, WEIR_INTERNAL, "after step %" PRId64 " ranks %zu and %zu differ", steps_made(team),
			                 team->rank, r);
	}
	weir_tensor_release(all);
	return status;
}

/* A hook, so that a step that went wrong somewhere is not saved. */
static enum weir_status compare_ranks(void *context, weir_monitored_call *call, weir_error *error)
{
	enum weir_status status = digest(context, error);

	return status == WEIR_OK ? compare_digests(context, weir_monitored_call_session(call), error) : status;
}

static enum weir_status evaluate(void *context, weir_session *session, weir_error *error)
{
	struct team *team = context;
	const struct digits *held_out = team->held_out;
	struct weir_feed feed = {team->held_out_images, held_out->images};
	const int64_t *labels = weir_tensor_data(held_out->labels);
	weir_tensor *best = NULL;
	int64_t right = 0;
	enum weir_status status =
		weir_session_run(session, &feed, 1, &team->best, 1, &best, NULL, 0, WEIR_NO_DEADLINE, NULL, error);

	for (int64_t i = 0; status == WEIR_OK && i < held_out->count; i++)
		right += ((const int64_t *)weir_tensor_data(best))[i] == labels[i];
	weir_tensor_release(best);
	if (status == WEIR_OK && team->rank == 0)
		(void)printf("held-out accuracy %.1f %%\n", 100.0 * (double)right / (double)held_out->count);
	if (status == WEIR_OK && team->settings.epochs >= 10 && right * 10 < held_out->count * 9)
		status = failure(error, WEIR_INTERNAL, "the model has learned too little");
	return status;
}

/* -- the session ------------------------------------------------------------------------------- */

/* Lists the variables of all mirrors and of the optimizer. Returns how many they are; 0: there is no room. */
static size_t list_parts(struct team *team, struct weir_checkpoint_part parts[])
{
	size_t mirrored = team->mirrored * PARAMETERS, own = weir_optimizer_variable_count(team->optimizer);
	weir_var *vars[MOST_VARIABLES];

	if (mirrored + own > MOST_VARIABLES ||
	    weir_optimizer_variables(team->optimizer, vars, MOST_VARIABLES, NULL) != WEIR_OK)
		return 0;
	for (size_t i = 0; i < mirrored; i++)
		parts[i] = (struct weir_checkpoint_part){NULL, weir_mirrors_vars(team->mirrors)[i]};
	for (size_t i = 0; i < own; i++)
		parts[mirrored + i] = (struct weir_checkpoint_part){NULL, vars[i]};
	return mirrored + own;
}

static enum weir_status make(void *context, weir_session **session, weir_error *error)
{
	const struct team *team = context;
	const struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .pool = team->pool, .trace = team->trace};

	return weir_session_create(team->graph, &options, session, error);
}

/*
 * Begins the session. All ranks begin with the values of one file. Rank 0 saves it after each step, before
 * the step is told; at the beginning and at the end all do, with the same contents.
 */
static enum weir_status begin_session(struct team *team)
{
	const struct weir_monitored_hook digests = {WEIR_MONITORED_HOOK_INIT, .name = "digests", .context = team,
	                                            .after_run = compare_ranks};
	const struct weir_monitored_hook score = {WEIR_MONITORED_HOOK_INIT, .name = "score", .context = team,
	                                          .end = evaluate};
	const struct weir_monitored_hook *hooks[] = {&digests, &score};
	struct weir_checkpoint_part parts[MOST_VARIABLES];
	struct weir_monitored_options options = {
		WEIR_MONITORED_OPTIONS_INIT, .make = make, .context = team, .hooks = hooks, .hook_count = 2,
		.name = "replicas"};

	if (team->settings.trace != NULL && team->rank == 0 && weir_trace_create(NULL, &team->trace, &team->error))
		return team->error.code;
	if (team->settings.checkpoint != NULL) {
		options.path = team->settings.checkpoint;
		options.save_every_runs = team->rank == 0;
		options.variables = parts;
		options.variable_count = list_parts(team, parts);
	}
	return weir_monitored_create(&options, &team->monitored, &team->error);
}

/* -- steps ------------------------------------------------------------------------------------- */

/* The rows of this rank in the batch of a step: `per_rank` from the order of the epoch. */
static enum weir_status take_rows(struct team *team, int64_t step, int64_t per_rank, int64_t steps_of_epoch,
                                  weir_tensor *batch[2])
{
	int64_t first = (step % steps_of_epoch) * per_rank * (int64_t)team->ranks + per_rank * (int64_t)team->rank;
	weir_shape images = {2, {per_rank, DIGIT_PIXELS}}, labels = {1, {per_rank}};
	const float *pixels = weir_tensor_data(team->training->images);
	const int64_t *digits = weir_tensor_data(team->training->labels);
	weir_tensor_builder *builders[2] = {NULL, NULL};

	order_epoch(team, step / steps_of_epoch);
	if (weir_tensor_builder_create(WEIR_F32, &images, NULL, &builders[0], NULL) != WEIR_OK ||
	    weir_tensor_builder_create(WEIR_I64, &labels, NULL, &builders[1], NULL) != WEIR_OK) {
		weir_tensor_builder_discard(builders[0]);
		return failure(&team->error, WEIR_RESOURCE_EXHAUSTED, "there is no memory for a batch");
	}
	for (int64_t i = 0; i < per_rank; i++) {
		int64_t row = team->order[first + i];

		memcpy((float *)weir_tensor_builder_data(builders[0]) + i * DIGIT_PIXELS, pixels + row * DIGIT_PIXELS,
		       DIGIT_PIXELS * sizeof(float));
		((int64_t *)weir_tensor_builder_data(builders[1]))[i] = digits[row];
	}
	(void)weir_tensor_builder_finish(builders[0], &batch[0]);
	return weir_tensor_builder_finish(builders[1], &batch[1]);
}

static enum weir_status make_step(struct team *team, int64_t step, int64_t per_rank, int64_t steps_of_epoch,
                                  float *loss)
{
	weir_tensor *batch[2] = {NULL, NULL}, *results[2] = {NULL, NULL};
	weir_output fetches[2] = {team->loss, team->step};
	enum weir_status status = take_rows(team, step, per_rank, steps_of_epoch, batch);
	struct weir_feed feeds[2] = {{team->images, batch[0]}, {team->labels, batch[1]}};

	if (status == WEIR_OK)
		status = weir_monitored_run(team->monitored, feeds, 2, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL,
		                            NULL, &team->error);
	if (status == WEIR_OK && *(const int64_t *)weir_tensor_data(results[1]) != step + 1)
		status = failure(&team->error, WEIR_INTERNAL, "step %" PRId64 " got another number", step + 1);
	if (status == WEIR_OK)
		*loss = *(const float *)weir_tensor_data(results[0]);
	for (int i = 0; i < 2; i++) {
		weir_tensor_release(batch[i]);
		weir_tensor_release(results[i]);
	}
	return status;
}

static enum weir_status train(struct team *team)
{
	int64_t replicas = (int64_t)(team->ranks * team->mirrored);
	int64_t per_rank = (BATCH + replicas - 1) / replicas * (int64_t)team->mirrored;
	int64_t steps_of_epoch = team->training->count / (per_rank * (int64_t)team->ranks);
	int64_t total = team->settings.epochs * steps_of_epoch;
	enum weir_status status = WEIR_OK;
	float loss = 0;

	if (team->rank == 0)
		(void)printf("%" PRId64 " replicas, from step %" PRId64 " to %" PRId64 "\n", replicas, steps_made(team), total);
	for (int64_t step = steps_made(team); status == WEIR_OK && step < total; step++) {
		status = make_step(team, step, per_rank, steps_of_epoch, &loss);
		if (status == WEIR_OK && team->rank == 0 &&
		    (team->settings.checkpoint != NULL || (step + 1) % (total / LINES + 1) == 0 || step + 1 == total))
			(void)printf("step %" PRId64 ": loss %.3f, all replicas hold %016" PRIx64 "\n", step + 1, (double)loss,
			             (uint64_t)team->digest);
		(void)fflush(stdout);
	}
	return status;
}

/* -- the end ----------------------------------------------------------------------------------- */

static enum weir_status write_bytes(void *file, const char *bytes, size_t size, weir_error *error)
{
	return fwrite(bytes, 1, size, file) == size ? WEIR_OK
	                                            : failure(error, WEIR_INTERNAL, "the trace cannot be written");
}

static enum weir_status write_trace(struct team *team)
{
	enum weir_status status;
	FILE *file;

	if (team->trace == NULL)
		return WEIR_OK;
	file = fopen(team->settings.trace, "wb");
	if (file == NULL)
		return failure(&team->error, WEIR_NOT_FOUND, "cannot write %s", team->settings.trace);
	status = weir_trace_write(team->trace, write_bytes, file, &team->error);
	if (fclose(file) != 0 && status == WEIR_OK)
		status = failure(&team->error, WEIR_INTERNAL, "cannot write %s", team->settings.trace);
	return status;
}

static int give_up(struct team *team)
{
	(void)fprintf(stderr, "train_digits: rank %zu: %s (%s)\n", team->rank, team->error.message,
	              weir_status_name(team->error.code));
	if (team->transport != NULL)
		ranks_abort();
	return EXIT_FAILURE;
}

int replicas_train(const struct replicas_settings *settings, const struct digits *training,
                   const struct digits *held_out)
{
	static struct team team;

	team = (struct team){.settings = *settings,
	                     .training = training,
	                     .held_out = held_out,
	                     .ranks = 1,
	                     .mirrored = settings->count != 0 ? settings->count : 1,
	                     .ordered_epoch = -1};
	if (create(&team) != WEIR_OK)
		return give_up(&team);
	if (team.transport != NULL)
		(void)printf("rank %zu of %zu is process %ld\n", team.rank, team.ranks, (long)getpid());
	(void)fflush(stdout);
	if (begin_session(&team) != WEIR_OK || weir_monitored_close(team.monitored, train(&team), &team.error) != WEIR_OK ||
	    write_trace(&team) != WEIR_OK)
		return give_up(&team);
	return destroy(&team) == WEIR_OK ? EXIT_SUCCESS : give_up(&team);
}
