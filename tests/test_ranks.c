/*
 * test_ranks.c - ranks of one process: sums by pairs, channels, ranks that withdraw or disagree.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/transport.h>

#include "failing_allocator.h"
#include "stepped.h"
#include "tensor/pairs.h"

enum { MOST = 4 };

/* -- sums by pairs ----------------------------------------------------------------------------- */

/* The definition, one element at a time. */
static float tree(const float *const arrays[], size_t count, size_t at)
{
	size_t half = 1;

	if (count == 1)
		return arrays[0][at];
	while (half * 2 < count)
		half *= 2;
	return tree(arrays, half, at) + tree(arrays + half, count - half, at);
}

/* Numbers of very different sizes, so that another order gives other bits. */
static float number(size_t array, size_t at)
{
	static const float sizes[] = {1.0f, 1e7f, -1e7f, 3e-4f, 1.5e3f};

	return sizes[(array + at) % 5] * (float)(1 + (array * 7 + at * 3) % 11);
}

enum { ARRAYS = 9, ELEMENTS = 2500 };

Test(pairs, sums_have_the_bits_of_the_tree)
{
	static float data[ARRAYS][ELEMENTS], sum[ELEMENTS];
	const float *arrays[ARRAYS];
	const void *untyped[ARRAYS];

	for (size_t a = 0; a < ARRAYS; a++) {
		arrays[a] = data[a];
		untyped[a] = data[a];
	}
	for (size_t count = 1; count <= ARRAYS; count++) {
		for (int in_place = 0; in_place < 2; in_place++) {
			float *to = in_place ? data[0] : sum;
			float expected[ELEMENTS];

			for (size_t a = 0; a < ARRAYS; a++) {
				for (size_t i = 0; i < ELEMENTS; i++)
					data[a][i] = number(a, i);
			}
			for (size_t i = 0; i < ELEMENTS; i++)
				expected[i] = tree(arrays, count, i) / 3.0f;
			weiri_pairs_sum(WEIR_F32, untyped, count, 3, to, ELEMENTS);
			cr_assert_arr_eq(to, expected, sizeof(expected), "%zu arrays", count);
		}
	}
}

Test(pairs, each_dtype)
{
	const int32_t i32[3][2] = {{INT32_MAX, 1}, {1, 2}, {0, 3}};
	const int64_t i64[3][2] = {{INT64_MAX, 1}, {1, 2}, {0, 3}};
	const double f64[3][2] = {{0.5, 1}, {0.25, 2}, {0, 3}};
	int32_t a[2];
	int64_t b[2];
	double c[2];

	weiri_pairs_sum(WEIR_I32, (const void *[]){i32[0], i32[1], i32[2]}, 3, 1, a, 2);
	weiri_pairs_sum(WEIR_I64, (const void *[]){i64[0], i64[1], i64[2]}, 3, 1, b, 2);
	weiri_pairs_sum(WEIR_F64, (const void *[]){f64[0], f64[1], f64[2]}, 3, 2, c, 2);
	cr_expect(a[0] == INT32_MIN && a[1] == 6);
	cr_expect(b[0] == INT64_MIN && b[1] == 6);
	cr_expect(c[0] == 0.375 && c[1] == 3);
	cr_expect_eq(weiri_pairs_check(WEIR_I64, true, NULL), WEIR_UNIMPLEMENTED);
	cr_expect_eq(weiri_pairs_check(WEIR_BOOL, false, NULL), WEIR_UNIMPLEMENTED);
}

/* -- reductions -------------------------------------------------------------------------------- */

/* What a rank's reduction came to. */
struct outcome {
	_Atomic(int) told;
	enum weir_status status;
	weir_error error;
	weir_tensor *sum;
};

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct outcome *outcome = context;

	outcome->status = status;
	outcome->sum = sum;
	if (error != NULL)
		outcome->error = *error;
	atomic_fetch_add_explicit(&outcome->told, 1, memory_order_release);
}

static int told(struct outcome *outcome)
{
	return atomic_load_explicit(&outcome->told, memory_order_acquire);
}

static weir_ranks *a_group(size_t size, size_t channels)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .name = "group", .channels = channels};
	weir_ranks *ranks = NULL;
	weir_error error;

	cr_assert_eq(weir_ranks_create(size, &options, &ranks, &error), WEIR_OK, "%s", error.message);
	return ranks;
}

static void end_group(weir_ranks *ranks)
{
	weir_error error;

	cr_assert_eq(weir_ranks_destroy(ranks, &error), WEIR_OK, "%s", error.message);
}

static uint32_t open_f32(weir_transport *t, const char *name)
{
	struct weir_channel what = {name, WEIR_F32, NULL};
	uint32_t channel = 99;
	weir_error error;

	cr_assert_eq(t->open(t, &what, &channel, &error), WEIR_OK, "%s", error.message);
	return channel;
}

static weir_tensor *f32(float value)
{
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_scalar_f32(value, &tensor), WEIR_OK);
	return tensor;
}

/* Starts with a scalar, whose reference is taken over. */
static enum weir_status begin(weir_transport *t, uint32_t channel, weir_tensor *input, uint64_t divisor,
                              struct outcome *outcome, weir_transfer **transfer, weir_error *error)
{
	struct weir_reduction reduction = {
		.channel = channel, .input = input, .divisor = divisor, .done = note, .context = outcome};
	enum weir_status status;

	*outcome = (struct outcome){.status = WEIR_OK};
	status = t->start(t, &reduction, transfer, error);
	weir_tensor_release(input);
	return status;
}

static float take_sum(struct outcome *outcome)
{
	float value;

	cr_assert_eq(told(outcome), 1);
	cr_assert_eq(outcome->status, WEIR_OK, "%s", outcome->error.message);
	value = *(const float *)weir_tensor_data(outcome->sum);
	weir_tensor_release(outcome->sum);
	return value;
}

struct three {
	weir_ranks *ranks;
	weir_transport *at[3];
	struct outcome outcomes[3];
	weir_transfer *transfers[3];
	weir_error error;
};

static void open_three(struct three *three, const char *const names[3])
{
	*three = (struct three){.ranks = a_group(3, 2)};
	for (size_t i = 0; i < 3; i++) {
		three->at[i] = weir_ranks_transport(three->ranks, i);
		cr_assert_eq(three->at[i]->rank, i);
		cr_assert_eq(open_f32(three->at[i], names[i]), 0);
	}
}

static void start_three(struct three *three, size_t i, float value, uint64_t divisor)
{
	cr_assert_eq(begin(three->at[i], 0, f32(value), divisor, &three->outcomes[i], &three->transfers[i], &three->error),
	             WEIR_OK, "%s", three->error.message);
}

static void release_three(struct three *three, size_t i)
{
	three->at[i]->release(three->at[i], three->transfers[i]);
}

static void close_three(struct three *three)
{
	for (size_t i = 0; i < 3; i++)
		three->at[i]->close(three->at[i], 0);
	end_group(three->ranks);
}

static const char *const one_name[3] = {"w", "w", "w"};

Test(ranks, the_order_of_arrival_does_not_matter)
{
	static const size_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
	const float values[3] = {1e8f, 3.0f, -1e8f};
	struct three three;

	open_three(&three, one_name);
	cr_assert_null(weir_ranks_transport(three.ranks, 3));
	for (size_t o = 0; o < 4; o++) {
		for (size_t i = 0; i < 3; i++) {
			cr_assert_eq(told(&three.outcomes[orders[o][2]]), 0);
			start_three(&three, orders[o][i], values[orders[o][i]], 2);
		}
		for (size_t i = 0; i < 3; i++) {
			float sum = take_sum(&three.outcomes[i]);

			cr_expect_eq(sum, ((values[0] + values[1]) + values[2]) / 2.0f);
			release_three(&three, i);
			three.outcomes[i] = (struct outcome){.status = WEIR_OK};
		}
	}
	close_three(&three);
}

Test(ranks, a_rank_withdraws_and_comes_again)
{
	weir_error cause = {WEIR_DEADLINE_EXCEEDED, "too late"};
	struct three three;

	open_three(&three, one_name);
	start_three(&three, 0, 1.0f, 1);
	start_three(&three, 1, 2.0f, 1);
	three.at[0]->cancel(three.at[0], three.transfers[0], &cause);
	cr_expect_eq(told(&three.outcomes[0]), 1);
	cr_expect_eq(three.outcomes[0].status, WEIR_DEADLINE_EXCEEDED);
	cr_expect_str_eq(three.outcomes[0].error.message, "too late");
	release_three(&three, 0);
	start_three(&three, 2, 4.0f, 1);
	cr_expect_eq(told(&three.outcomes[1]) + told(&three.outcomes[2]), 0);
	start_three(&three, 0, 8.0f, 1);
	for (size_t i = 0; i < 3; i++) {
		float sum = take_sum(&three.outcomes[i]);

		cr_expect_eq(sum, 14.0f);
		/* It is too late for this. */
		three.at[i]->cancel(three.at[i], three.transfers[i], NULL);
		cr_expect_eq(told(&three.outcomes[i]), 1);
		release_three(&three, i);
	}
	close_three(&three);
}

static void expect_all_refused(struct three *three, const char *words)
{
	for (size_t i = 0; i < 3; i++) {
		cr_expect_eq(three->outcomes[i].status, WEIR_INVALID_ARGUMENT);
		cr_expect_not_null(strstr(three->outcomes[i].error.message, words), "%s", three->outcomes[i].error.message);
		release_three(three, i);
	}
	close_three(three);
}

Test(ranks, ranks_that_disagree_are_all_told)
{
	static const char *const names[3] = {"w", "w", "bias"};
	const float pair[2] = {1, 2};
	const weir_shape two = {.rank = 1, .dims = {2}};
	weir_tensor *vector = NULL;
	struct three three;

	open_three(&three, names);
	for (size_t i = 0; i < 3; i++)
		start_three(&three, i, 1.0f, 1);
	expect_all_refused(&three, "rank 0 is at \"w\" in this channel, and rank 2 at \"bias\"");

	open_three(&three, one_name);
	for (size_t i = 0; i < 3; i++)
		start_three(&three, i, 1.0f, i == 1 ? 3 : 1);
	expect_all_refused(&three, "rank 0 divides by 1, and rank 1 by 3");

	open_three(&three, one_name);
	start_three(&three, 0, 1.0f, 1);
	start_three(&three, 1, 1.0f, 1);
	cr_assert_eq(weir_tensor_copy_of(WEIR_F32, &two, pair, NULL, &vector), WEIR_OK);
	cr_assert_eq(begin(three.at[2], 0, vector, 1, &three.outcomes[2], &three.transfers[2], &three.error), WEIR_OK);
	expect_all_refused(&three, "rank 0 gave f32 [], and rank 2 f32 [2]");
}

/* A rank may end, with the memory that it gave, while another still needs the sum. */
Test(ranks, the_sum_is_in_memory_of_no_rank)
{
	weir_ranks *ranks = a_group(2, 1);
	struct failing_allocator memories[2] = {{0}, {0}};
	struct outcome outcomes[2];
	weir_transfer *transfers[2];
	weir_transport *at[2];
	uint32_t channel = 9;

	for (size_t i = 0; i < 2; i++) {
		weir_allocator hooks = failing_allocator_hooks(&memories[i]);
		struct weir_reduction reduction = {
			.input = f32(1.5f), .divisor = 1, .allocator = &hooks, .done = note, .context = &outcomes[i]};

		outcomes[i] = (struct outcome){.status = WEIR_OK};
		at[i] = weir_ranks_transport(ranks, i);
		channel = open_f32(at[i], "w");
		reduction.channel = channel;
		cr_assert_eq(at[i]->start(at[i], &reduction, &transfers[i], NULL), WEIR_OK);
		weir_tensor_release(reduction.input);
	}
	for (size_t i = 0; i < 2; i++) {
		at[i]->release(at[i], transfers[i]);
		at[i]->close(at[i], channel);
		cr_expect_eq(memories[i].asked, 1, "the transfer");
		cr_expect_str_eq(failing_allocator_verdict(&memories[i]), "balanced");
	}
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(take_sum(&outcomes[i]), 3.0f);
	end_group(ranks);
}

Test(ranks, one_reduction_of_a_rank_in_a_channel)
{
	struct outcome other;
	weir_transfer *transfer = NULL;
	struct three three;

	open_three(&three, one_name);
	start_three(&three, 0, 1.0f, 1);
	cr_expect_eq(begin(three.at[0], 0, f32(1), 1, &other, &transfer, &three.error), WEIR_FAILED_PRECONDITION);
	cr_expect_null(transfer, "a start that fails gives no handle");
	cr_expect_not_null(strstr(three.error.message, "\"w\" of rank 0 is under way"), "%s", three.error.message);
	cr_expect_eq(begin(three.at[0], 1, f32(1), 1, &other, &transfer, &three.error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(three.error.message, "channel 1 is not open"), "%s", three.error.message);
	cr_expect_eq(weir_ranks_destroy(three.ranks, &three.error), WEIR_FAILED_PRECONDITION);
	for (size_t i = 1; i < 3; i++)
		start_three(&three, i, 1.0f, 1);
	for (size_t i = 0; i < 3; i++) {
		float sum = take_sum(&three.outcomes[i]);

		cr_expect_eq(sum, 3.0f);
		release_three(&three, i);
	}
	close_three(&three);
}

Test(ranks, channels_get_the_lowest_free_number)
{
	struct weir_channel what = {"x", WEIR_F32, NULL}, bad = {"x", WEIR_BYTES, NULL}, nameless = {NULL, WEIR_F32, NULL};
	weir_ranks *ranks = a_group(1, 2);
	weir_transport *t = weir_ranks_transport(ranks, 0);
	uint32_t channel = 99;
	weir_error error;

	cr_expect_eq(open_f32(t, "a"), 0);
	cr_expect_eq(open_f32(t, "b"), 1);
	cr_expect_eq(t->open(t, &what, &channel, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_str_eq(error.message, "ranks \"group\": all 2 channels are open");
	t->close(t, 0);
	cr_expect_eq(t->open(t, &bad, &channel, &error), WEIR_UNIMPLEMENTED);
	cr_expect_eq(t->open(t, &nameless, &channel, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(channel, 99);
	cr_expect_eq(open_f32(t, "c"), 0);
	t->close(t, 0);
	t->close(t, 1);
	end_group(ranks);
}

/* A completion that starts the next reduction, and tells that of the last. */
struct chain {
	weir_transport *at;
	weir_transfer *first, *second;
	int ends;
	float sum;
};

static void start_next(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct chain *chain = context;
	struct weir_reduction next = {.input = sum, .divisor = 1, .done = start_next, .context = chain};

	if (status != WEIR_OK) {
		cr_log_error("%s", error->message);
		return;
	}
	chain->sum = *(const float *)weir_tensor_data(sum);
	if (++chain->ends == 1)
		cr_assert_eq(chain->at->start(chain->at, &next, &chain->second, NULL), WEIR_OK);
	weir_tensor_release(sum);
}

Test(ranks, a_completion_starts_the_next)
{
	weir_ranks *ranks = a_group(2, 1);
	struct chain chains[2];

	for (size_t i = 0; i < 2; i++) {
		chains[i] = (struct chain){.at = weir_ranks_transport(ranks, i)};
		(void)open_f32(chains[i].at, "w");
	}
	for (size_t i = 0; i < 2; i++) {
		struct weir_reduction r = {.input = f32(1), .divisor = 1, .done = start_next, .context = &chains[i]};

		cr_assert_eq(chains[i].at->start(chains[i].at, &r, &chains[i].first, NULL), WEIR_OK);
		weir_tensor_release(r.input);
	}
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(chains[i].ends, 2);
		cr_expect_eq(chains[i].sum, 4.0f);
		chains[i].at->release(chains[i].at, chains[i].first);
		chains[i].at->release(chains[i].at, chains[i].second);
		chains[i].at->close(chains[i].at, 0);
	}
	end_group(ranks);
}

/* -- a chain of reductions, each started by the completion of the one before --------------------- */

enum { LINKS = 2000, CHAIN_STACK = 64 << 10 };

struct long_chain {
	weir_transport *at;
	weir_transfer *transfer;
	const char *outermost; /* the frame of the test; AddressSanitizer may keep variables elsewhere */
	size_t deepest;        /* how far below it completions ran */
	int ends;
};

static void start_one_more(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct long_chain *chain = context;
	struct weir_reduction next = {.input = sum, .divisor = 1, .done = start_one_more, .context = chain};
	size_t depth = (size_t)(chain->outermost - (const char *)__builtin_frame_address(0));

	cr_assert_eq(status, WEIR_OK, "%s", error != NULL ? error->message : "");
	chain->deepest = depth > chain->deepest ? depth : chain->deepest;
	chain->at->release(chain->at, chain->transfer); /* `start` has written it before */
	if (++chain->ends < LINKS)
		cr_assert_eq(chain->at->start(chain->at, &next, &chain->transfer, NULL), WEIR_OK);
	weir_tensor_release(sum);
}

Test(ranks, a_long_chain_of_reductions_needs_a_small_stack)
{
	weir_ranks *ranks = a_group(1, 1);
	struct long_chain chain = {.at = weir_ranks_transport(ranks, 0), .outermost = __builtin_frame_address(0)};
	weir_tensor *one = f32(1);
	struct weir_reduction first = {.input = one, .divisor = 1, .done = start_one_more, .context = &chain};

	(void)open_f32(chain.at, "w");
	cr_assert_eq(chain.at->start(chain.at, &first, &chain.transfer, NULL), WEIR_OK);
	cr_expect_eq(chain.ends, LINKS);
	cr_expect_lt(chain.deepest, (size_t)CHAIN_STACK);
	weir_tensor_release(one);
	chain.at->close(chain.at, 0);
	end_group(ranks);
}

Test(ranks, bad_input)
{
	struct weir_ranks_options many = {WEIR_RANKS_OPTIONS_INIT, .channels = WEIR_RANKS_MAX_CHANNELS + 1};
	struct weir_reduction without = {.divisor = 1}, whole = {.divisor = 1, .done = note};
	weir_ranks *ranks = NULL;
	weir_transfer *transfer;
	weir_tensor *other = NULL;
	struct outcome outcome;
	weir_transport *t;
	weir_error error;

	cr_expect_eq(weir_ranks_create(0, NULL, &ranks, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_ranks_create(WEIR_RANKS_MAX + 1, NULL, &ranks, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_ranks_create(2, &many, &ranks, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_ranks_create(2, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_ranks_destroy(NULL, &error), WEIR_OK);
	ranks = a_group(1, 1);
	t = weir_ranks_transport(ranks, 0);
	(void)open_f32(t, "x");
	cr_expect_eq(t->start(t, &without, &transfer, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(begin(t, 0, f32(1), 0, &outcome, &transfer, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_tensor_scalar_i64(1, &other), WEIR_OK);
	cr_expect_eq(begin(t, 0, other, 1, &outcome, &transfer, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "ranks \"group\": \"x\" is of f32, got i64");
	whole.input = f32(1);
	cr_expect_eq(t->start(t, &whole, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_str_eq(error.message, "ranks \"group\": transfer is NULL");
	weir_tensor_release(whole.input);
	t->close(t, 0);
	end_group(ranks);
}

/* -- the ends of things ------------------------------------------------------------------------ */

Test(ranks, as_many_ranks_as_there_may_be)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .name = "largest", .channels = 1};
	struct outcome outcomes[WEIR_RANKS_MAX];
	weir_transfer *transfers[WEIR_RANKS_MAX];
	weir_ranks *ranks = NULL;
	weir_error error;

	cr_assert_eq(weir_ranks_create(WEIR_RANKS_MAX, &options, &ranks, &error), WEIR_OK, "%s", error.message);
	for (size_t i = 0; i < WEIR_RANKS_MAX; i++) {
		weir_transport *t = weir_ranks_transport(ranks, i);

		cr_assert_eq(begin(t, open_f32(t, "w"), f32((float)i), 1, &outcomes[i], &transfers[i], &error), WEIR_OK);
	}
	for (size_t i = 0; i < WEIR_RANKS_MAX; i++) {
		weir_transport *t = weir_ranks_transport(ranks, i);
		float sum = take_sum(&outcomes[i]);

		cr_expect_eq(sum, (float)(WEIR_RANKS_MAX * (WEIR_RANKS_MAX - 1) / 2));
		t->release(t, transfers[i]);
		cr_expect_eq(weir_ranks_destroy(ranks, &error), WEIR_FAILED_PRECONDITION);
		cr_expect_not_null(strstr(error.message, "\"largest\""), "the name is as it was: %s", error.message);
		t->close(t, 0);
	}
	end_group(ranks);
}

/* A group of one rank, all in memory that is looked at. */
struct alone {
	struct failing_allocator state;
	weir_allocator memory;
	weir_ranks *ranks;
	weir_transport *at;
	weir_transfer *transfer;
	uint32_t channel;
	int ends;
};

static void open_alone(struct alone *alone)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .channels = 1};

	*alone = (struct alone){.state = {.fail_at = 0}};
	alone->memory = failing_allocator_hooks(&alone->state);
	options.allocator = &alone->memory;
	cr_assert_eq(weir_ranks_create(1, &options, &alone->ranks, NULL), WEIR_OK);
	alone->at = weir_ranks_transport(alone->ranks, 0);
	alone->channel = open_f32(alone->at, "w");
}

static void start_alone(struct alone *alone, weir_reduced_fn *done)
{
	struct weir_reduction reduction = {.channel = alone->channel,
	                                   .input = f32(2),
	                                   .divisor = 1,
	                                   .allocator = &alone->memory,
	                                   .done = done,
	                                   .context = alone};

	cr_assert_eq(alone->at->start(alone->at, &reduction, &alone->transfer, NULL), WEIR_OK);
	weir_tensor_release(reduction.input);
}

static void end_all(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct alone *alone = context;

	(void)error;
	cr_assert_eq(status, WEIR_OK);
	cr_expect_eq(*(const float *)weir_tensor_data(sum), 2.0f);
	weir_tensor_release(sum);
	alone->at->release(alone->at, alone->transfer);
	alone->at->close(alone->at, alone->channel);
	cr_expect_eq(weir_ranks_destroy(alone->ranks, NULL), WEIR_OK);
	cr_expect_str_eq(failing_allocator_verdict(&alone->state), "balanced");
	alone->ends++;
}

/* Whoever tells the last rank holds nothing any more. */
Test(ranks, the_last_completion_may_end_the_ranks_and_their_memory)
{
	struct alone alone;

	open_alone(&alone);
	start_alone(&alone, end_all);
	cr_expect_eq(alone.ends, 1);
}

static void let_go(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct alone *alone = context;

	(void)error;
	cr_assert_eq(status, WEIR_OK);
	weir_tensor_release(sum);
	alone->ends++;
}

static void end_the_last_use(void *context)
{
	struct alone *alone = context;

	if (alone->transfer != NULL)
		alone->at->release(alone->at, alone->transfer);
	else
		alone->at->close(alone->at, alone->channel);
}

/* Whatever their last user does stands still at each instruction, and the ranks are destroyed as soon as it lets. */
static void destroy_beside_the_last_use(struct alone *alone)
{
	struct stepped use = {.call = end_the_last_use, .context = alone};
	enum weir_status status = WEIR_FAILED_PRECONDITION;
	int stands = stepped_start(&use, 0);

	for (; stands && status != WEIR_OK; stands = stepped_next(&use))
		status = weir_ranks_destroy(alone->ranks, NULL);
	if (status != WEIR_OK)
		status = weir_ranks_destroy(alone->ranks, NULL);
	cr_assert_eq(status, WEIR_OK);
	cr_assert_str_eq(failing_allocator_verdict(&alone->state), "balanced");
	stepped_finish(&use);
}

Test(ranks, the_last_user_leaves_nothing_behind_a_destroy)
{
	struct alone alone;

	stepped_or_skip();
	open_alone(&alone);
	destroy_beside_the_last_use(&alone);
	open_alone(&alone);
	start_alone(&alone, let_go);
	cr_assert_eq(alone.ends, 1);
	alone.at->close(alone.at, alone.channel);
	destroy_beside_the_last_use(&alone);
}

static enum weir_status add_two(const weir_allocator *allocator, void *context)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .allocator = allocator};
	weir_ranks *ranks = NULL;
	struct outcome outcomes[2];
	weir_transfer *transfers[2] = {NULL, NULL};
	enum weir_status status = weir_ranks_create(2, &options, &ranks, NULL);

	(void)context;
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < 2; i++) {
		weir_transport *t = weir_ranks_transport(ranks, i);
		struct weir_reduction reduction = {.channel = open_f32(t, "w"),
		                                   .input = f32(1),
		                                   .divisor = 1,
		                                   .allocator = allocator,
		                                   .done = note,
		                                   .context = &outcomes[i]};

		outcomes[i] = (struct outcome){.status = WEIR_OK};
		if (status == WEIR_OK)
			status = t->start(t, &reduction, &transfers[i], NULL);
		weir_tensor_release(reduction.input);
	}
	if (status == WEIR_OK)
		status = outcomes[0].status;
	for (size_t i = 0; i < 2; i++) {
		weir_transport *t = weir_ranks_transport(ranks, i);

		if (transfers[i] != NULL && told(&outcomes[i]) == 0)
			t->cancel(t, transfers[i], NULL);
		t->release(t, transfers[i]);
		t->close(t, 0);
		if (told(&outcomes[i]) != 0)
			weir_tensor_release(outcomes[i].sum);
	}
	end_group(ranks);
	return status;
}

Test(ranks, each_allocation_may_fail)
{
	cr_expect_eq(fail_each_allocation(add_two, NULL), 4, "the ranks, two transfers, and the sum");
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { ROUNDS = 300 };

struct worker {
	weir_transport *at;
	uint32_t channel;
	size_t wrong;
};

/* Each rank gives its number plus the round, in a rank's own rhythm: now and then it withdraws first. */
static void *reduce_many(void *context)
{
	struct worker *worker = context;
	size_t size = worker->at->size, rank = worker->at->rank;

	for (size_t round = 0, last = SIZE_MAX; round < ROUNDS; round++) {
		struct outcome outcome;
		weir_transfer *transfer = NULL;
		weir_error error;
		bool again = last != round && (round * 5 + rank * 3) % 7 == 0;

		last = round;
		if (begin(worker->at, worker->channel, f32((float)(rank + round)), 1, &outcome, &transfer, &error) != WEIR_OK) {
			worker->wrong++;
			continue;
		}
		if (again)
			worker->at->cancel(worker->at, transfer, NULL);
		while (told(&outcome) == 0)
			(void)sched_yield();
		worker->at->release(worker->at, transfer);
		if (outcome.status == WEIR_CANCELLED) {
			worker->wrong += !again;
			round--; /* once more */
			continue;
		}
		worker->wrong += outcome.status != WEIR_OK ||
		                 *(const float *)weir_tensor_data(outcome.sum) != (float)(size * round + size * (size - 1) / 2);
		weir_tensor_release(outcome.sum);
	}
	return NULL;
}

Test(ranks, each_round_has_one_share_of_each_rank)
{
	weir_ranks *ranks = a_group(MOST, 1);
	struct worker workers[MOST];
	pthread_t threads[MOST];

	for (size_t i = 0; i < MOST; i++) {
		workers[i] = (struct worker){.at = weir_ranks_transport(ranks, i)};
		workers[i].channel = open_f32(workers[i].at, "w");
		cr_assert_eq(pthread_create(&threads[i], NULL, reduce_many, &workers[i]), 0);
	}
	for (size_t i = 0; i < MOST; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_expect_eq(workers[i].wrong, 0);
		workers[i].at->close(workers[i].at, workers[i].channel);
	}
	end_group(ranks);
}
