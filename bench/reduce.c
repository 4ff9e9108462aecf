/*
 * reduce.c - weir-reduce: all-reduce beside what it is measured against.
 *
 *     weir-reduce                              the sum of two tensors of 1 MiB in a graph, beside a plain loop
 *     mpirun -np 4 --oversubscribe weir-reduce mpi [TRACE]    across ranks, beside MPI_Allreduce() of the same bytes;
 *                                              and a trace of sums beside matrix products
 *
 * Both sides of a comparison take turns, and the best of many short rounds counts, so that load on the
 * machine disturbs both alike. A ratio above 1 means that Weir is faster. Every result is checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow.h>

#ifdef WEIR_REDUCE_MPI
#include <mpi.h>
#include <weir/mpi.h>
#endif

enum { MIB = 1 << 20, ROUNDS = 300 };

static weir_error error;

static void must(enum weir_status status)
{
	if (status != WEIR_OK) {
		(void)fprintf(stderr, "weir-reduce: %s (%s)\n", error.message, weir_status_name(status));
		exit(1);
	}
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static weir_tensor *filled(size_t elements, float value)
{
	weir_shape shape = {1, {(int64_t)elements}};
	weir_tensor_builder *builder;
	weir_tensor *tensor;
	float *data;

	must(weir_tensor_builder_create(WEIR_F32, &shape, NULL, &builder, &error));
	data = weir_tensor_builder_data(builder);
	for (size_t i = 0; i < elements; i++)
		data[i] = value;
	must(weir_tensor_builder_finish(builder, &tensor));
	return tensor;
}

static void check(const weir_tensor *tensor, float expected)
{
	const float *data = weir_tensor_data(tensor);
	size_t last = (size_t)weir_tensor_element_count(tensor) - 1;

	if (data[0] == expected && data[last] == expected)
		return;
	(void)fprintf(stderr, "weir-reduce: wrong sum: %g and %g instead of %g\n", (double)data[0], (double)data[last],
	              (double)expected);
	exit(1);
}

/* -- in one graph ------------------------------------------------------------------------------ */

/* A function of its own, so that the compiler knows nothing of the arrays. gcc -O2 vectorises the inner loop. */
__attribute__((noinline)) static void plain_sum(const float *restrict a, const float *restrict b, float *restrict out,
                                                size_t n)
{
	for (size_t i = 0; i < n; i += 64) {
		for (size_t j = 0; j < 64; j++)
			out[i + j] = a[i + j] + b[i + j];
	}
}

static void compare_with_loop(void)
{
	const size_t n = MIB / sizeof(float);
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};
	weir_tensor *values[2] = {filled(n, 1), filled(n, 2)}, *sum;
	float *out = malloc(MIB);
	double ours = 1e9, theirs = 1e9;
	weir_output inputs[2], sums[2];
	weir_callable *callable;
	weir_session *session;
	weir_graph *graph;

	must(weir_graph_create(NULL, &graph, &error));
	for (int i = 0; i < 2; i++)
		must(weir_op_constant(graph, NULL, values[i], &inputs[i], &error));
	must(weir_op_all_reduce(graph, NULL, WEIR_REDUCE_SUM, inputs, 2, NULL, sums, &error));
	must(weir_session_create(graph, &options, &session, &error));
	must(weir_session_compile(session, NULL, 0, sums, 1, NULL, 0, NULL, &callable, &error));
	for (int round = 0; out != NULL && round < ROUNDS; round++) {
		uint64_t begin = weir_now_ns();

		plain_sum(weir_tensor_data(values[0]), weir_tensor_data(values[1]), out, n);
		theirs = smaller(theirs, (double)(weir_now_ns() - begin));
		begin = weir_now_ns();
		must(weir_callable_run(callable, NULL, &sum, WEIR_NO_DEADLINE, NULL, NULL, &error));
		ours = smaller(ours, (double)(weir_now_ns() - begin));
		check(sum, 3);
		weir_tensor_release(sum);
	}
	free(out);
	(void)printf("all-reduce of 1 MiB by 2 in a graph: %.1f us; a plain sum of two buffers: %.1f us; ratio %.2f\n",
	             ours / 1e3, theirs / 1e3, theirs / ours);
	weir_callable_release(callable);
	must(weir_session_destroy(session, &error));
	must(weir_graph_destroy(graph, &error));
	for (int i = 0; i < 2; i++)
		weir_tensor_release(values[i]);
}

/* -- across ranks ------------------------------------------------------------------------------ */

#ifdef WEIR_REDUCE_MPI

struct rig {
	weir_pool *pool;
	weir_mpi *mpi;
	weir_graph *graph;
	weir_session *session;
	weir_callable *callable;
	int rank, size;
};

static void open_rig(struct rig *rig, weir_tensor *value, size_t workers)
{
	struct weir_pool_options pool = {WEIR_POOL_OPTIONS_INIT, .threads = workers,
	                                 .flags = workers == 0 ? WEIR_POOL_NO_THREADS : 0};
	struct weir_session_options session = {WEIR_SESSION_OPTIONS_INIT};
	struct weir_mpi_options options = {WEIR_MPI_OPTIONS_INIT, .channels = 1};
	struct weir_all_reduce_options reduce = {WEIR_ALL_REDUCE_OPTIONS_INIT};
	weir_output input, sum;

	must(weir_pool_create(&pool, &rig->pool, &error));
	session.pool = options.pool = rig->pool;
	must(weir_mpi_create(&options, &rig->mpi, &error));
	reduce.transport = weir_mpi_transport(rig->mpi);
	must(weir_graph_create(NULL, &rig->graph, &error));
	must(weir_op_constant(rig->graph, NULL, value, &input, &error));
	must(weir_op_all_reduce(rig->graph, "sum", WEIR_REDUCE_SUM, &input, 1, &reduce, &sum, &error));
	must(weir_session_create(rig->graph, &session, &rig->session, &error));
	must(weir_session_compile(rig->session, NULL, 0, &sum, 1, NULL, 0, NULL, &rig->callable, &error));
}

static void close_rig(struct rig *rig)
{
	weir_callable_release(rig->callable);
	must(weir_session_destroy(rig->session, &error));
	must(weir_graph_destroy(rig->graph, &error));
	must(weir_mpi_destroy(rig->mpi, &error));
	must(weir_pool_destroy(rig->pool, &error));
}

static double time_ours(struct rig *rig, int calls)
{
	double begin;

	(void)MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < calls; i++) {
		weir_tensor *sum;

		must(weir_callable_run(rig->callable, NULL, &sum, WEIR_NO_DEADLINE, NULL, NULL, &error));
		check(sum, (float)(rig->size * (rig->size + 1) / 2));
		weir_tensor_release(sum);
	}
	return (MPI_Wtime() - begin) / calls;
}

static double time_plain(const weir_tensor *value, float *out, int calls)
{
	double begin;

	(void)MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	for (int i = 0; i < calls; i++)
		(void)MPI_Allreduce(weir_tensor_data(value), out, (int)weir_tensor_element_count(value), MPI_FLOAT, MPI_SUM,
		                    MPI_COMM_WORLD);
	return (MPI_Wtime() - begin) / calls;
}

static void compare_with_mpi(size_t bytes, int calls, size_t workers)
{
	struct rig rig;
	weir_tensor *value;
	float *out = malloc(bytes);
	double ours = 1e9, theirs = 1e9;

	(void)MPI_Comm_rank(MPI_COMM_WORLD, &rig.rank);
	(void)MPI_Comm_size(MPI_COMM_WORLD, &rig.size);
	value = filled(bytes / sizeof(float), (float)(rig.rank + 1));
	open_rig(&rig, value, workers);
	for (int round = 0; out != NULL && round < ROUNDS; round++) {
		theirs = smaller(theirs, time_plain(value, out, calls));
		ours = smaller(ours, time_ours(&rig, calls));
	}
	free(out);
	if (rig.rank == 0)
		(void)printf("all-reduce of %zu KiB by %d ranks, driven by %s: %.1f us; MPI_Allreduce: %.1f us; ratio %.2f\n",
		             bytes / 1024, rig.size, workers == 0 ? "its caller" : "a worker", ours * 1e6, theirs * 1e6,
		             theirs / ours);
	close_rig(&rig);
	weir_tensor_release(value);
}

/* -- beside computation ------------------------------------------------------------------------ */

enum { SIDE = 256, PRODUCTS = 8 };

static enum weir_status write_bytes(void *file, const char *bytes, size_t size, weir_error *e)
{
	(void)e;
	return fwrite(bytes, 1, size, file) == size ? WEIR_OK : WEIR_INTERNAL;
}

/* A chain of products, each with a sum of 8 KiB across ranks that does not depend on the products after it. */
static weir_node *add_layers(weir_graph *graph, weir_transport *transport, weir_tensor *value)
{
	weir_shape square = {2, {SIDE, SIDE}};
	weir_output product, factor, sums[PRODUCTS];
	weir_node *end;
	weir_tensor *matrix, *flat = filled(SIDE * SIDE, 1.0f / SIDE);

	must(weir_tensor_reshape(flat, &square, &matrix));
	must(weir_op_constant(graph, NULL, matrix, &factor, &error));
	must(weir_op_no_op(graph, "step", &end, &error));
	product = factor;
	for (int i = 0; i < PRODUCTS; i++) {
		struct weir_all_reduce_options reduce = {WEIR_ALL_REDUCE_OPTIONS_INIT, .transport = transport};
		weir_output input;
		char name[16];

		(void)snprintf(name, sizeof(name), "sum %d", i);
		must(weir_op_matmul(graph, NULL, product, factor, 0, &product, &error));
		must(weir_op_constant(graph, NULL, value, &input, &error));
		must(weir_op_identity(graph, NULL, input, &input, &error));
		must(weir_graph_add_control(graph, product.node, input.node, &error));
		must(weir_op_all_reduce(graph, name, WEIR_REDUCE_SUM, &input, 1, &reduce, &sums[i], &error));
		must(weir_graph_add_control(graph, sums[i].node, end, &error));
	}
	weir_tensor_release(matrix);
	weir_tensor_release(flat);
	return end;
}

/* Writes a trace of rank 0, of which `weir-trace hidden FILE all_reduce` tells how much was hidden. */
static void trace_beside_products(const char *path)
{
	struct weir_pool_options pool_options = {WEIR_POOL_OPTIONS_INIT, .threads = 1};
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT};
	struct weir_mpi_options mpi_options = {WEIR_MPI_OPTIONS_INIT};
	weir_tensor *value = filled(2048, 1);
	weir_session *session;
	weir_graph *graph;
	weir_trace *trace;
	weir_pool *pool;
	weir_mpi *mpi;
	weir_node *end;

	must(weir_pool_create(&pool_options, &pool, &error));
	options.pool = mpi_options.pool = pool;
	must(weir_mpi_create(&mpi_options, &mpi, &error));
	must(weir_trace_create(NULL, &trace, &error));
	options.trace = trace;
	must(weir_graph_create(NULL, &graph, &error));
	end = add_layers(graph, weir_mpi_transport(mpi), value);
	must(weir_session_create(graph, &options, &session, &error));
	for (int i = 0; i < ROUNDS / 10; i++)
		must(weir_session_run(session, NULL, 0, NULL, 0, NULL, &end, 1, WEIR_NO_DEADLINE, NULL, &error));
	if (weir_mpi_transport(mpi)->rank == 0) {
		FILE *file = fopen(path, "wb");

		if (file == NULL || weir_trace_write(trace, write_bytes, file, &error) != WEIR_OK || fclose(file) != 0)
			(void)fprintf(stderr, "weir-reduce: cannot write %s\n", path);
	}
	must(weir_session_destroy(session, &error));
	must(weir_graph_destroy(graph, &error));
	must(weir_trace_destroy(trace, &error));
	must(weir_mpi_destroy(mpi, &error));
	must(weir_pool_destroy(pool, &error));
	weir_tensor_release(value);
}

static int by_mpi(const char *trace)
{
	int provided;

	(void)MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	for (size_t workers = 0; workers < 2; workers++) {
		compare_with_mpi(8 * 1024, 5, workers);
		compare_with_mpi(MIB, 1, workers);
	}
	if (trace != NULL)
		trace_beside_products(trace);
	(void)MPI_Finalize();
	return 0;
}

#else

static int by_mpi(const char *trace)
{
	(void)trace;
	(void)fprintf(stderr, "weir-reduce: built without MPI (meson option -Dmpi=enabled)\n");
	return 2;
}

#endif

int main(int count, char *words[])
{
	if (count > 1 && strcmp(words[1], "mpi") == 0)
		return by_mpi(count > 2 ? words[2] : NULL);
	compare_with_loop();
	return 0;
}
