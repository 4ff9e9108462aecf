/*
 * test_mpi_double.c - the transport of MPI, with ranks that are threads and an MPI that fails when
 * told to (mpi_double.h). tests/mpi_ranks.c runs it with the MPI that is installed.
 */
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <weir/flow/replicas.h>
#include <weir/mpi.h>
#include <weir/reclaim.h>

#include "graph_kit.h"
#include "failing_allocator.h"
#include "late_failure.h"
#include "mpi_double.h"
#include "stepped.h"

/* A rank: w += the mean of all ranks' x; and y is the sum of all ranks' x squared, in a channel of its own. */
struct rank {
	int number;
	size_t workers;
	const char *name; /* of the node for the mean */
	weir_pool *pool;
	weir_mpi *mpi;
	weir_graph *graph;
	weir_session *session;
	weir_var *w;
	weir_output x, mean, published, y;
	float value;
	uint64_t deadline_ns;
	int steps;
	enum weir_status status;
	weir_error error;
	float y_value;
};

static void build(struct rank *rank)
{
	struct weir_all_reduce_options options = {WEIR_ALL_REDUCE_OPTIONS_INIT, .transport = weir_mpi_transport(rank->mpi)};
	weir_error *error = &rank->error;
	weir_output square;

	rank->graph = kit_graph();
	rank->w = kit_var("w", kit_f32(0));
	rank->x = kit_placeholder(rank->graph, "x", WEIR_F32, kit_shape(0));
	cr_assert_eq(
		weir_op_all_reduce(rank->graph, rank->name, WEIR_REDUCE_MEAN, &rank->x, 1, &options, &rank->mean, error),
		WEIR_OK, "%s", error->message);
	cr_assert_eq(weir_op_assign_add(rank->graph, "w", rank->w, rank->mean, &rank->published, error), WEIR_OK);
	cr_assert_eq(weir_op_square(rank->graph, NULL, rank->x, &square, error), WEIR_OK);
	cr_assert_eq(weir_op_all_reduce(rank->graph, "y", WEIR_REDUCE_SUM, &square, 1, &options, &rank->y, error), WEIR_OK,
	             "%s", error->message);
}

static void open_rank(struct rank *rank, int number, size_t workers, const char *name)
{
	struct weir_pool_options pool = {WEIR_POOL_OPTIONS_INIT, .threads = workers,
	                                 .flags = workers == 0 ? WEIR_POOL_NO_THREADS : 0};
	struct weir_session_options session = {WEIR_SESSION_OPTIONS_INIT};
	struct weir_mpi_options options = {WEIR_MPI_OPTIONS_INIT, .channels = 2};
	weir_error *error = &rank->error;

	*rank = (struct rank){.number = number, .name = name, .deadline_ns = WEIR_NO_DEADLINE, .steps = 1, .value = 1.0f};
	cr_assert_eq(weir_pool_create(&pool, &rank->pool, error), WEIR_OK);
	options.pool = rank->pool;
	double_be_rank(number);
	cr_assert_eq(weir_mpi_create(&options, &rank->mpi, error), WEIR_OK, "%s", error->message);
	cr_assert_eq(weir_mpi_transport(rank->mpi)->rank, (size_t)number);
	build(rank);
	session.pool = rank->pool;
	cr_assert_eq(weir_session_create(rank->graph, &session, &rank->session, error), WEIR_OK);
}

static void close_graph(struct rank *rank)
{
	kit_end(rank->session, rank->graph);
	cr_assert_eq(weir_var_destroy(rank->w, NULL), WEIR_OK);
}

/* A rank with shares that no other rank answers. */
static void close_transport(struct rank *rank)
{
	double_let_go();
	double_be_rank(rank->number);
	cr_assert_eq(weir_mpi_destroy(rank->mpi, &rank->error), WEIR_OK, "%s", rank->error.message);
	cr_assert_eq(weir_pool_destroy(rank->pool, NULL), WEIR_OK);
}

static void close_rank(struct rank *rank)
{
	close_graph(rank);
	cr_assert_eq(double_shares(), 0);
	close_transport(rank);
}

static enum weir_status step(struct rank *rank, float value)
{
	struct weir_feed feed = {rank->x, NULL};
	weir_tensor *y = NULL;
	enum weir_status status = weir_tensor_scalar_f32(value, &feed.value);

	if (status == WEIR_OK)
		status = weir_session_run(rank->session, &feed, 1, &rank->y, 1, &y, &rank->published.node, 1, rank->deadline_ns,
		                          NULL, &rank->error);
	weir_tensor_release(feed.value);
	if (status == WEIR_OK)
		rank->y_value = *(const float *)weir_tensor_data(y);
	weir_tensor_release(y);
	return status;
}

static void *run_rank(void *context)
{
	struct rank *rank = context;

	rank->status = WEIR_OK;
	for (int i = 0; rank->status == WEIR_OK && i < rank->steps; i++)
		rank->status = step(rank, rank->value + (float)i);
	return NULL;
}

static void run_all(struct rank ranks[], int count)
{
	pthread_t threads[DOUBLE_RANKS];

	for (int i = 0; i < count; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, run_rank, &ranks[i]), 0);
	for (int i = 0; i < count; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
}

/* Two ranks drive in their callers, two in a worker of their pools. */
Test(mpi_double, all_ranks_get_the_sum_whoever_drives)
{
	enum { RANKS = 4, STEPS = 40 };
	struct rank ranks[RANKS];

	double_begin(RANKS);
	for (int i = 0; i < RANKS; i++) {
		open_rank(&ranks[i], i, (size_t)i / 2, "mean");
		ranks[i].value = (float)i;
		ranks[i].steps = STEPS;
	}
	run_all(ranks, RANKS);
	for (int i = 0; i < RANKS; i++) {
		const float last = STEPS - 1;

		cr_expect_eq(ranks[i].status, WEIR_OK, "%s", ranks[i].error.message);
		cr_expect_eq(weir_var_version(ranks[i].w), 1 + STEPS);
		cr_expect_eq(kit_var_f32(ranks[i].w, 0), 1.5f * (float)STEPS + (float)(STEPS * (STEPS - 1) / 2));
		cr_expect_eq(ranks[i].y_value, 4 * last * last + 12 * last + 14);
	}
	for (int i = 0; i < RANKS; i++)
		close_rank(&ranks[i]);
	cr_expect_eq(double_comms(), 0);
	cr_expect_not(double_misused());
}

Test(mpi_double, ranks_with_other_graphs_are_told)
{
	struct rank ranks[2];

	double_begin(2);
	for (int i = 0; i < 2; i++)
		open_rank(&ranks[i], i, 0, i == 0 ? "mean" : "average");
	run_all(ranks, 2);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ranks[i].status, WEIR_INVALID_ARGUMENT);
		cr_expect_not_null(strstr(ranks[i].error.message, "have not built the same graph"), "%s",
		                   ranks[i].error.message);
		cr_expect_eq(weir_var_version(ranks[i].w), 1);
		close_graph(&ranks[i]);
	}
	/* The sum of y may be with MPI still, on a rank whose step ended first. */
	for (int i = 0; i < 2; i++)
		close_transport(&ranks[i]);
	cr_expect_not(double_misused());
}

/* A share that MPI has cannot be taken back. */
Test(mpi_double, a_rank_that_leaves_too_late_is_broken)
{
	struct rank ranks[2];

	double_begin(2);
	for (int i = 0; i < 2; i++)
		open_rank(&ranks[i], i, 0, "mean");
	ranks[0].deadline_ns = weir_deadline_in(2000000);
	(void)run_rank(&ranks[0]);
	cr_expect_eq(ranks[0].status, WEIR_DEADLINE_EXCEEDED, "%s", ranks[0].error.message);
	cr_expect_eq(double_shares(), 2);
	cr_expect_eq(weir_var_version(ranks[0].w), 1);
	ranks[0].deadline_ns = WEIR_NO_DEADLINE;
	(void)run_rank(&ranks[0]);
	cr_expect_eq(ranks[0].status, WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(ranks[0].error.message, "rank 0 has left a reduction that the other ranks make"), "%s",
	                   ranks[0].error.message);
	close_graph(&ranks[0]);
	double_be_rank(0);
	cr_expect_eq(weir_mpi_destroy(ranks[0].mpi, &ranks[0].error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(ranks[0].error.message, "MPI still has a share of rank 0"), "%s", ranks[0].error.message);
	/* The comparison of the channels comes first; rank 1 then waits for a share that does not come. */
	ranks[1].deadline_ns = weir_deadline_in(2000000);
	(void)run_rank(&ranks[1]);
	cr_expect_eq(ranks[1].status, WEIR_DEADLINE_EXCEEDED);
	close_graph(&ranks[1]);
	for (int i = 0; i < 2; i++)
		close_transport(&ranks[i]);
	cr_expect_not(double_misused());
}

/* A share that waits for the driver can. */
Test(mpi_double, a_rank_that_leaves_in_time_comes_again)
{
	struct rank ranks[2];
	weir_error cause = {WEIR_CANCELLED, "not now"};

	double_begin(2);
	for (int i = 0; i < 2; i++)
		open_rank(&ranks[i], i, 0, "mean");
	for (int i = 0; i < 2; i++) {
		weir_cancel *token = NULL;
		struct weir_feed feed = {ranks[0].x, kit_f32(5)};

		/* The token has fired when the step begins, or fires before the driver looks. */
		cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
		(void)weir_cancel_fire(token, &cause);
		cr_expect_eq(weir_session_run(ranks[0].session, &feed, 1, NULL, 0, NULL, &ranks[0].published.node, 1,
		                              WEIR_NO_DEADLINE, token, &ranks[0].error),
		             WEIR_CANCELLED);
		weir_cancel_release(token);
		weir_tensor_release(feed.value);
	}
	cr_expect_eq(double_shares(), 0);
	run_all(ranks, 2);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ranks[i].status, WEIR_OK, "%s", ranks[i].error.message);
		close_rank(&ranks[i]);
	}
}

/* The transport itself, without a graph: what a step cannot bring about on purpose. */
struct outcome {
	_Atomic(int) told;
	enum weir_status status;
	weir_error error;
};

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct outcome *outcome = context;

	outcome->status = status;
	if (error != NULL)
		outcome->error = *error;
	weir_tensor_release(sum);
	atomic_fetch_add_explicit(&outcome->told, 1, memory_order_release);
}

struct alone {
	weir_pool *pool;
	weir_mpi *mpi;
	weir_transport *at;
	uint32_t channel;
	struct outcome outcome;
	weir_transfer *transfer;
	weir_error error;
};

/* NULL: the default */
static const weir_allocator *memory_of_alone;

static void open_transport(struct alone *alone, int rank)
{
	struct weir_pool_options pool = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_mpi_options options = {WEIR_MPI_OPTIONS_INIT, .channels = 1};
	const weir_shape scalar = kit_shape(0);
	struct weir_channel what = {"s", WEIR_F32, &scalar};

	*alone = (struct alone){.channel = 9};
	double_be_rank(rank);
	cr_assert_eq(weir_pool_create(&pool, &alone->pool, NULL), WEIR_OK);
	options.pool = alone->pool;
	options.allocator = memory_of_alone;
	cr_assert_eq(weir_mpi_create(&options, &alone->mpi, NULL), WEIR_OK);
	alone->at = weir_mpi_transport(alone->mpi);
	cr_assert_eq(alone->at->open(alone->at, &what, &alone->channel, NULL), WEIR_OK);
}

static void open_alone(struct alone *alone)
{
	open_transport(alone, 0);
}

static enum weir_status start_divided(struct alone *alone, weir_tensor *input, uint64_t divisor,
                                      weir_transfer **transfer)
{
	struct weir_reduction reduction = {
		.channel = alone->channel, .input = input, .divisor = divisor, .done = note, .context = &alone->outcome};
	enum weir_status status;

	reduction.allocator = memory_of_alone;
	alone->outcome = (struct outcome){.status = WEIR_OK};
	status = alone->at->start(alone->at, &reduction, transfer, &alone->error);
	weir_tensor_release(input);
	return status;
}

static enum weir_status start_alone(struct alone *alone, weir_tensor *input, weir_transfer **transfer)
{
	return start_divided(alone, input, 1, transfer);
}

static void help(struct alone *alone)
{
	while (atomic_load_explicit(&alone->outcome.told, memory_order_acquire) == 0)
		(void)weir_pool_help(alone->pool, 1);
}

static void close_alone(struct alone *alone)
{
	alone->at->close(alone->at, alone->channel);
	cr_assert_eq(weir_mpi_destroy(alone->mpi, &alone->error), WEIR_OK, "%s", alone->error.message);
	cr_assert_eq(weir_pool_destroy(alone->pool, NULL), WEIR_OK);
}

/* The threads below begin together, and tell each other when to go on without any memory order. */
struct relay {
	struct alone alone;
	_Atomic(int) act;
};

static void go_on(struct relay *relay)
{
	atomic_store_explicit(&relay->act, 1, memory_order_relaxed);
}

static void await(struct relay *relay)
{
	while (atomic_load_explicit(&relay->act, memory_order_relaxed) == 0)
		(void)sched_yield();
}

static void *drive_first(void *context)
{
	struct relay *relay = context;
	weir_transfer *transfer = NULL;

	cr_assert_eq(start_alone(&relay->alone, kit_f32(1), &transfer), WEIR_OK);
	help(&relay->alone);
	relay->alone.at->release(relay->alone.at, transfer);
	go_on(relay);
	return NULL;
}

static void *drive_next(void *context)
{
	struct relay *relay = context;
	struct alone mine;

	await(relay);
	mine = (struct alone){.pool = relay->alone.pool, .at = relay->alone.at, .channel = relay->alone.channel};
	cr_assert_eq(start_alone(&mine, kit_f32(1), &mine.transfer), WEIR_OK);
	help(&mine);
	cr_expect_eq(mine.outcome.status, WEIR_OK);
	mine.at->release(mine.at, mine.transfer);
	return NULL;
}

static void *destroy_too_early(void *context)
{
	struct relay *relay = context;
	weir_error error;

	await(relay);
	cr_expect_eq(weir_mpi_destroy(relay->alone.mpi, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "a channel is open"), "%s", error.message);
	return NULL;
}

static void run_relay(void *(*next)(void *))
{
	struct relay relay = {.act = 0};
	pthread_t threads[2];

	double_begin(1);
	open_alone(&relay.alone);
	cr_assert_eq(pthread_create(&threads[0], NULL, drive_first, &relay), 0);
	cr_assert_eq(pthread_create(&threads[1], NULL, next, &relay), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
	close_alone(&relay.alone);
	cr_expect_not(double_misused());
}

Test(mpi_double, a_driver_goes_on_where_that_of_another_thread_has_left)
{
	run_relay(drive_next);
}

Test(mpi_double, a_destroy_looks_at_what_the_driver_of_another_thread_has_left)
{
	run_relay(destroy_too_early);
}

Test(mpi_double, a_cancel_before_the_driver_takes_the_share_back)
{
	weir_error cause = {WEIR_ABORTED, "changed its mind"};
	struct alone alone;

	double_begin(1);
	open_alone(&alone);
	cr_assert_eq(start_alone(&alone, kit_f32(1), &alone.transfer), WEIR_OK);
	alone.at->cancel(alone.at, alone.transfer, &cause);
	help(&alone);
	cr_expect_eq(alone.outcome.status, WEIR_ABORTED);
	cr_expect_str_eq(alone.outcome.error.message, "changed its mind");
	alone.at->release(alone.at, alone.transfer);
	cr_expect_eq(double_shares(), 0);
	cr_assert_eq(start_alone(&alone, kit_f32(1), &alone.transfer), WEIR_OK);
	help(&alone);
	cr_expect_eq(alone.outcome.status, WEIR_OK, "the rank is not broken");
	alone.at->release(alone.at, alone.transfer);
	close_alone(&alone);
}

Test(mpi_double, failures_of_mpi_are_the_status)
{
	struct alone alone;

	double_begin(1);
	open_alone(&alone);
	double_fail_iallreduce();
	cr_assert_eq(start_alone(&alone, kit_f32(1), &alone.transfer), WEIR_OK);
	help(&alone);
	cr_expect_eq(alone.outcome.status, WEIR_INTERNAL);
	cr_expect_str_eq(alone.outcome.error.message, "mpi: MPI_Iallreduce: the cable is out");
	alone.at->release(alone.at, alone.transfer);

	double_fail_testsome();
	cr_assert_eq(start_alone(&alone, kit_f32(1), &alone.transfer), WEIR_OK);
	help(&alone);
	cr_expect_eq(alone.outcome.status, WEIR_INTERNAL);
	cr_expect_str_eq(alone.outcome.error.message, "mpi: MPI_Testsome: the cable is out");
	alone.at->release(alone.at, alone.transfer);
	cr_assert_eq(start_alone(&alone, kit_f32(1), &alone.transfer), WEIR_OK);
	help(&alone);
	cr_expect_eq(alone.outcome.status, WEIR_FAILED_PRECONDITION);
	alone.at->release(alone.at, alone.transfer);
	close_alone(&alone);
}

/* A reduction of two ranks with these divisors, which both are told to end so. */
static void reduce_two(struct alone ranks[2], uint64_t first, uint64_t second, enum weir_status expected)
{
	for (int i = 0; i < 2; i++)
		cr_assert_eq(start_divided(&ranks[i], kit_f32(1), i == 0 ? first : second, &ranks[i].transfer), WEIR_OK);
	while (atomic_load_explicit(&ranks[0].outcome.told, memory_order_acquire) == 0 ||
	       atomic_load_explicit(&ranks[1].outcome.told, memory_order_acquire) == 0) {
		(void)weir_pool_help(ranks[0].pool, 1);
		(void)weir_pool_help(ranks[1].pool, 1);
	}
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ranks[i].outcome.status, expected, "rank %d: %s", i, weir_status_name(ranks[i].outcome.status));
		ranks[i].at->release(ranks[i].at, ranks[i].transfer);
	}
}

Test(mpi_double, ranks_with_other_divisors_are_told)
{
	struct alone ranks[2];

	double_begin(2);
	for (int i = 0; i < 2; i++)
		open_transport(&ranks[i], i);
	reduce_two(ranks, 1, 2, WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(ranks[0].outcome.error.message, "shape or divisor"), "%s",
	                   ranks[0].outcome.error.message);
	reduce_two(ranks, 2, 2, WEIR_OK);
	reduce_two(ranks, 1, 1, WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(ranks[1].outcome.error.message, "mpi: channel 0 of rank 1 is open for the divisor 2, got 1");
	/* Had only one of them been refused, MPI would pair its next share with the refused one of the other. */
	reduce_two(ranks, 2, 2, WEIR_FAILED_PRECONDITION);
	for (int i = 0; i < 2; i++)
		close_alone(&ranks[i]);
	cr_expect_not(double_misused());
}

Test(mpi_double, what_a_channel_refuses)
{
	const weir_shape open = kit_shape(1, -1), scalar = kit_shape(0), huge = kit_shape(2, 1 << 20, 1 << 20);
	struct weir_channel unknown = {"u", WEIR_F32, &open}, none = {"u", WEIR_F32, NULL}, large = {"u", WEIR_F32, &huge};
	struct weir_channel words = {"u", WEIR_BYTES, &scalar}, good = {"u", WEIR_F32, &scalar};
	weir_transfer *second = NULL;
	struct outcome first;
	struct alone alone;
	uint32_t number = 9;

	double_begin(1);
	open_alone(&alone);
	cr_expect_eq(alone.at->open(alone.at, &unknown, &number, &alone.error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(alone.error.message, "mpi: the shape of \"u\" is not known");
	cr_expect_eq(alone.at->open(alone.at, &none, &number, &alone.error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(alone.at->open(alone.at, &large, &number, &alone.error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(alone.at->open(alone.at, &words, &number, &alone.error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(alone.at->open(alone.at, &good, &number, &alone.error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_str_eq(alone.error.message, "mpi: all 1 channels are open");
	cr_expect_eq(number, 9);
	cr_expect_eq(start_alone(&alone, kit_i64(1), &second), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(alone.error.message, "does not have the dtype and shape of channel"), "%s",
	                   alone.error.message);
	cr_expect_eq(weir_mpi_destroy(alone.mpi, &alone.error), WEIR_FAILED_PRECONDITION);

	/* The second of one rank in a channel. */
	cr_assert_eq(start_alone(&alone, kit_f32(1), &alone.transfer), WEIR_OK);
	{
		struct weir_reduction again = {
			.channel = alone.channel, .input = kit_f32(1), .divisor = 1, .done = note, .context = &first};

		first = (struct outcome){.status = WEIR_OK};
		cr_assert_eq(alone.at->start(alone.at, &again, &second, NULL), WEIR_OK);
		weir_tensor_release(again.input);
	}
	help(&alone);
	cr_expect_eq(first.status, WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(first.error.message, "is under way in another run"), "%s", first.error.message);
	alone.at->release(alone.at, alone.transfer);
	alone.at->release(alone.at, second);
	close_alone(&alone);
}

static void end_the_last_use(void *context)
{
	struct alone *alone = context;

	if (alone->transfer != NULL)
		alone->at->release(alone->at, alone->transfer);
	else
		alone->at->close(alone->at, alone->channel);
}

/* Whatever its last user does stands still at each instruction, and the transport is destroyed as soon as it lets. */
static void destroy_beside_the_last_use(struct alone *alone, struct failing_allocator *memory)
{
	struct stepped use = {.call = end_the_last_use, .context = alone};
	enum weir_status status = WEIR_FAILED_PRECONDITION;
	int stands = stepped_start(&use, 0);

	for (; stands && status != WEIR_OK; stands = stepped_next(&use))
		status = weir_mpi_destroy(alone->mpi, &alone->error);
	if (status != WEIR_OK)
		status = weir_mpi_destroy(alone->mpi, &alone->error);
	cr_assert_eq(status, WEIR_OK, "%s", alone->error.message);
	cr_assert_str_eq(failing_allocator_verdict(memory), "balanced");
	stepped_finish(&use);
	cr_assert_eq(weir_pool_destroy(alone->pool, NULL), WEIR_OK);
}

Test(mpi_double, the_last_user_leaves_nothing_behind_a_destroy)
{
	struct failing_allocator state = {.fail_at = 0};
	weir_allocator memory = failing_allocator_hooks(&state);
	struct alone alone;

	stepped_or_skip();
	memory_of_alone = &memory;
	double_begin(1);
	open_alone(&alone);
	destroy_beside_the_last_use(&alone, &state);
	open_alone(&alone);
	cr_assert_eq(start_alone(&alone, kit_f32(1), &alone.transfer), WEIR_OK);
	help(&alone);
	alone.at->close(alone.at, alone.channel);
	destroy_beside_the_last_use(&alone, &state);
	memory_of_alone = NULL;
}

Test(mpi_double, create_refuses)
{
	struct weir_pool_options none = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct weir_mpi_options options = {WEIR_MPI_OPTIONS_INIT}, many;
	weir_pool *pool = NULL;
	weir_mpi *mpi = NULL;
	weir_error error;

	double_begin(1);
	double_be_rank(0);
	cr_assert_eq(weir_pool_create(&none, &pool, NULL), WEIR_OK);
	cr_expect_eq(weir_mpi_create(NULL, &mpi, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_mpi_create(&options, &mpi, &error), WEIR_INVALID_ARGUMENT);
	options.pool = pool;
	many = options;
	many.channels = WEIR_MPI_MAX_CHANNELS + 1;
	cr_expect_eq(weir_mpi_create(&many, &mpi, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_mpi_create(&options, NULL, &error), WEIR_INVALID_ARGUMENT);
	double_provide(-1);
	cr_expect_eq(weir_mpi_create(&options, &mpi, &error), WEIR_FAILED_PRECONDITION);
	double_provide(-2);
	cr_expect_eq(weir_mpi_create(&options, &mpi, &error), WEIR_FAILED_PRECONDITION);
	double_provide(MPI_THREAD_FUNNELED);
	cr_expect_eq(weir_mpi_create(&options, &mpi, &error), WEIR_FAILED_PRECONDITION);
	cr_expect_not_null(strstr(error.message, "MPI_THREAD_SERIALIZED"), "%s", error.message);
	double_provide(MPI_THREAD_MULTIPLE);
	double_fail_dup(3);
	cr_expect_eq(weir_mpi_create(&options, &mpi, &error), WEIR_INTERNAL);
	cr_expect_str_eq(error.message, "mpi: MPI_Comm_dup: the cable is out");
	cr_expect_eq(double_comms(), 0);
	cr_expect(mpi == NULL && weir_mpi_transport(NULL) == NULL);
	cr_expect_eq(weir_mpi_destroy(NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}

static enum weir_status reduce_alone(const weir_allocator *allocator, void *context)
{
	struct weir_mpi_options options = {WEIR_MPI_OPTIONS_INIT, .pool = context, .channels = 1, .allocator = allocator};
	const weir_shape scalar = kit_shape(0);
	struct weir_channel what = {"s", WEIR_F32, &scalar};
	struct outcome outcome = {.status = WEIR_OK};
	struct weir_reduction reduction = {.divisor = 1, .allocator = allocator, .done = note, .context = &outcome};
	weir_transfer *transfer = NULL;
	weir_mpi *mpi = NULL;
	weir_transport *at;
	enum weir_status status = weir_mpi_create(&options, &mpi, NULL);

	if (status != WEIR_OK)
		return status;
	at = weir_mpi_transport(mpi);
	cr_assert_eq(at->open(at, &what, &reduction.channel, NULL), WEIR_OK);
	reduction.input = kit_f32(1);
	status = at->start(at, &reduction, &transfer, NULL);
	weir_tensor_release(reduction.input);
	while (status == WEIR_OK && atomic_load_explicit(&outcome.told, memory_order_acquire) == 0)
		(void)weir_pool_help(context, 1);
	at->release(at, transfer);
	at->close(at, reduction.channel);
	cr_assert_eq(weir_mpi_destroy(mpi, NULL), WEIR_OK);
	return status == WEIR_OK ? outcome.status : status;
}

Test(mpi_double, each_allocation_may_fail)
{
	struct weir_pool_options none = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	weir_pool *pool = NULL;

	double_begin(1);
	double_be_rank(0);
	cr_assert_eq(weir_pool_create(&none, &pool, NULL), WEIR_OK);
	cr_expect_eq(fail_each_allocation(reduce_alone, pool), 3, "the transport, a transfer, and the sum");
	cr_assert_eq(weir_pool_destroy(pool, NULL), WEIR_OK);
}
