/*
 * 001_3.c - two replicas of a dense layer train on one dataset: each on its half of every batch, with
 * the mean of both gradients, in one commit.
 *
 * Both replicas begin with the same values, and both change by the same gradients at one instant. So
 * they hold the same bits after each step, whatever the timing, and no snapshot sees them differ. The
 * mean of the two halves is, up to rounding, the gradient of the whole batch.
 */
#include "listing.h"

enum { ROWS = 100, WIDTH = 10, UNITS = 10, BATCH = 20, REPLICAS = 2, PASSES = 4 };

struct program {
	weir_var *kernel[REPLICAS], *bias[REPLICAS];
	weir_optimizer *sgd;
	weir_output inputs, labels; /* fed: a batch */
	weir_output loss[REPLICAS];
	weir_node *train;
};

/* A tensor of numbers between -1 and 1 that have nothing to do with each other. */
static weir_tensor *noise(int64_t rows, int64_t columns, uint32_t seed)
{
	weir_shape shape = {.rank = columns > 0 ? 2 : 1, .dims = {rows, columns}};
	float values[ROWS * WIDTH];
	weir_tensor *tensor;

	for (int64_t i = 0; i < rows * (columns > 0 ? columns : 1); i++) {
		seed = seed * 1664525u + 1013904223u;
		values[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
	}
	must(weir_tensor_copy_of(WEIR_F32, &shape, values, NULL, &tensor));
	return tensor;
}

/* A label for each unit: labels [n, 1] x ones [1, UNITS]. */
static weir_output labels_of_units(weir_graph *graph, weir_output labels)
{
	weir_shape shape = {.rank = 2, .dims = {1, UNITS}};
	weir_output wide;
	float ones[UNITS];
	weir_tensor *row;

	for (int i = 0; i < UNITS; i++)
		ones[i] = 1.0f;
	must(weir_tensor_copy_of(WEIR_F32, &shape, ones, NULL, &row));
	must(weir_op_matmul(graph, NULL, labels, constant(graph, row), 0, &wide, &listing_error));
	return wide;
}

/* predictions = inputs x kernel + bias; loss = the mean of (predictions - labels)^2. */
static weir_output loss_of(weir_graph *graph, weir_output inputs, weir_output labels, weir_output kernel,
                           weir_output bias)
{
	weir_output product, predictions, difference, square, loss;

	must(weir_op_matmul(graph, NULL, inputs, kernel, 0, &product, &listing_error));
	must(weir_op_add(graph, NULL, product, bias, &predictions, &listing_error));
	must(weir_op_sub(graph, NULL, predictions, labels_of_units(graph, labels), &difference, &listing_error));
	must(weir_op_square(graph, NULL, difference, &square, &listing_error));
	must(weir_op_reduce_mean(graph, NULL, square, &loss, &listing_error));
	return loss;
}

static weir_output mean_of(weir_graph *graph, weir_output a, weir_output b)
{
	weir_output sum, mean;

	must(weir_op_add(graph, NULL, a, b, &sum, &listing_error));
	must(weir_op_mul(graph, NULL, sum, constant(graph, f32(0.5f)), &mean, &listing_error));
	return mean;
}

/* Each replica computes from its own variables and its half of the batch. */
static void build(struct program *p, weir_graph *graph)
{
	weir_shape inputs = {.rank = 2, .dims = {BATCH, WIDTH}}, labels = {.rank = 2, .dims = {BATCH, 1}};
	weir_output halves[REPLICAS], targets[REPLICAS], gradients[REPLICAS][2], mean[2 * REPLICAS] = {{0}}, step;
	weir_var *variables[2 * REPLICAS];

	must(weir_op_placeholder(graph, "inputs", WEIR_F32, &inputs, &p->inputs, &listing_error));
	must(weir_op_placeholder(graph, "labels", WEIR_F32, &labels, &p->labels, &listing_error));
	must(weir_op_split(graph, NULL, p->inputs, 0, REPLICAS, halves, &listing_error));
	must(weir_op_split(graph, NULL, p->labels, 0, REPLICAS, targets, &listing_error));
	for (int i = 0; i < REPLICAS; i++) {
		weir_output values[2];

		must(weir_op_read(graph, NULL, p->kernel[i], &values[0], &listing_error));
		must(weir_op_read(graph, NULL, p->bias[i], &values[1], &listing_error));
		p->loss[i] = loss_of(graph, halves[i], targets[i], values[0], values[1]);
		must(weir_gradients(graph, &p->loss[i], 1, values, 2, gradients[i], &listing_error));
	}
	for (int i = 0; i < REPLICAS; i++) {
		variables[2 * i] = p->kernel[i];
		variables[2 * i + 1] = p->bias[i];
		for (int j = 0; j < 2; j++)
			mean[2 * i + j] = i == 0 ? mean_of(graph, gradients[0][j], gradients[1][j]) : mean[j];
	}
	must(
		weir_op_apply(graph, "train", p->sgd, variables, mean, (size_t)2 * REPLICAS, &step, &p->train, &listing_error));
}

/* Checks at one instant that both replicas hold the same bits. */
static void expect_equal_replicas(struct program *p)
{
	weir_var *const variables[] = {p->kernel[0], p->kernel[1], p->bias[0], p->bias[1]};
	weir_read reads[4];

	must(weir_var_snapshot(variables, 4, reads, &listing_error));
	for (int i = 0; i < 4; i += 2)
		expect(memcmp(weir_tensor_data(reads[i].tensor), weir_tensor_data(reads[i + 1].tensor),
		              weir_tensor_byte_count(reads[i].tensor)) == 0,
		       "both replicas must hold the same bits");
	weir_read_release_many(reads, 4);
}

/* Trains on all batches of the dataset. Returns the mean loss. */
static float train(struct program *p, weir_session *session, weir_dataset *batches)
{
	weir_iterator *iterator;
	weir_tensor *batch[2], *losses[REPLICAS];
	float sum = 0;
	int count = 0;

	must(weir_iterator_create(batches, NULL, &iterator, &listing_error));
	while (weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, batch, 2, &listing_error) == WEIR_OK) {
		struct weir_feed feeds[2] = {{p->inputs, batch[0]}, {p->labels, batch[1]}};

		must(weir_session_run(session, feeds, 2, p->loss, REPLICAS, losses, &p->train, 1, WEIR_NO_DEADLINE, NULL,
		                      &listing_error));
		expect_equal_replicas(p);
		for (int i = 0; i < REPLICAS; i++) {
			sum += *(const float *)weir_tensor_data(losses[i]);
			count++;
			weir_tensor_release(losses[i]);
			weir_tensor_release(batch[i]);
		}
	}
	must(weir_iterator_destroy(iterator, &listing_error));
	expect(count == REPLICAS * ROWS / BATCH, "each row must be in one half of one batch");
	return sum / (float)count;
}

/* The dataset of the listing, 100 rows of 10 numbers with a label each, in batches. */
static weir_dataset *batches_of_rows(void)
{
	weir_tensor *rows[2] = {noise(ROWS, WIDTH, 1), noise(ROWS, 1, 2)};
	weir_dataset *slices, *batches;

	must(weir_dataset_from_slices(rows, 2, NULL, &slices, &listing_error));
	must(weir_dataset_batch(slices, BATCH, NULL, &batches, &listing_error));
	weir_dataset_release(slices);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(rows[i]);
	return batches;
}

int main(void)
{
	struct weir_optimizer_options descent = {WEIR_OPTIMIZER_OPTIONS_INIT, .kind = WEIR_OPTIMIZER_DESCENT, .rate = 0.01};
	weir_dataset *batches = batches_of_rows();
	struct program p;
	weir_session *session;
	weir_graph *graph;
	float first = 0, last = 0;

	for (int i = 0; i < REPLICAS; i++) {
		p.kernel[i] = variable(i == 0 ? "kernel_0" : "kernel_1", noise(WIDTH, UNITS, 3));
		p.bias[i] = variable(i == 0 ? "bias_0" : "bias_1", noise(UNITS, 0, 4));
	}
	must(weir_optimizer_create(&descent, &p.sgd, &listing_error));
	must(weir_graph_create(NULL, &graph, &listing_error));
	build(&p, graph);
	must(weir_session_create(graph, NULL, &session, &listing_error));
	for (int pass = 0; pass < PASSES; pass++) {
		last = train(&p, session, batches);
		first = pass == 0 ? last : first;
	}
	printf("loss before: %.3f, after: %.3f\n", (double)first, (double)last);
	printf("both replicas hold the same bits\n");
	expect(last < first, "the loss must fall");

	end_session(session, graph);
	must(weir_optimizer_destroy(p.sgd, &listing_error));
	weir_dataset_release(batches);
	for (int i = 0; i < REPLICAS; i++) {
		weir_var_destroy(p.kernel[i], NULL);
		weir_var_destroy(p.bias[i], NULL);
	}
	return 0;
}
