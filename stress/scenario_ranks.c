/*
 * scenario_ranks.c - ranks of one process that add up, of which some take their share back and come
 * again; and mirrors that change by what they computed, and never differ in a snapshot.
 *
 * Each rank makes the same number of reductions, in two channels in turn. Each sum must
 * have the share of each rank in this round, once. Rank 0 gives the sum to all mirrors. The other ranks
 * take snapshots of the mirrors meanwhile. At the end no memory is held.
 */
#include "harness.h"

#include <string.h>
#include <weir/mirrors.h>
#include <weir/reclaim.h>
#include <weir/transport.h>

#include "poison.h"
#include "scenarios.h"

enum { MOST_RANKS = 4, CHANNELS = 2, REDUCTIONS = 150, MIRRORS = 3 };

static const uint64_t flush_ns = 100000000000u;

static weir_ranks *group;
static weir_mirrors *mirrors;
static unsigned size;
static _Atomic(uint64_t) withdrawn;

/* One reduction of one rank. */
struct ending {
	_Atomic(uint64_t) told;
	enum weir_status status;
	int64_t sum;
};

static void note(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	struct ending *ending = context;

	(void)error;
	ending->status = status;
	if (status == WEIR_OK)
		memcpy(&ending->sum, weir_tensor_data(sum), sizeof(ending->sum));
	weir_tensor_release(sum);
	/* [release] pairs with the wait of the rank */
	(void)weiri_fetch_add_release(&ending->told, 1u);
}

static int64_t share_of(unsigned rank, uint64_t round, uint32_t channel)
{
	return (int64_t)(stress_mix(round * MOST_RANKS + rank + (uint64_t)channel * 1000003) >> 8);
}

static int64_t sum_of(uint64_t round, uint32_t channel)
{
	int64_t sum = 0;

	for (unsigned r = 0; r < size; r++)
		sum += share_of(r, round, channel);
	return sum;
}

/* Starts, and perhaps takes the share back. Returns true with the sum; false if the share was taken back. */
static bool reduce_once(struct stress_thread *self, weir_transport *at, uint64_t round, uint32_t channel)
{
	struct ending ending = {.status = WEIR_OK};
	struct weir_reduction reduction = {
		.channel = channel, .divisor = 1, .allocator = stress_poison(), .done = note, .context = &ending};
	weir_transfer *transfer = NULL;
	unsigned spins = 0;

	STRESS_CHECK(weir_tensor_scalar_i64(share_of((unsigned)at->rank, round, channel), &reduction.input) == WEIR_OK,
	             "no tensor");
	stress_begin(self, "start");
	STRESS_CHECK(at->start(at, &reduction, &transfer, NULL) == WEIR_OK, "a start was refused");
	weir_tensor_release(reduction.input);
	if (stress_one_in(self, 3)) {
		for (uint64_t n = stress_below(self, 4); n > 0; n--)
			stress_back_off(&spins);
		stress_begin(self, "cancel");
		at->cancel(at, transfer, NULL);
	}
	stress_begin(self, "waiting for the other ranks");
	/* [acquire] pairs with note() */
	while (weiri_load_acquire(&ending.told) == 0)
		stress_back_off(&spins);
	at->release(at, transfer);
	stress_end(self, 1);
	if (ending.status == WEIR_CANCELLED) {
		(void)weiri_fetch_add_relaxed(&withdrawn, 1u); /* [relaxed] a count */
		return false;
	}
	STRESS_CHECK(ending.status == WEIR_OK, "a reduction ended with %s", weir_status_name(ending.status));
	STRESS_CHECK(ending.sum == sum_of(round, channel), "round %llu of channel %u has a wrong sum",
	             (unsigned long long)round, channel);
	return true;
}

static void give_to_mirrors(struct stress_thread *self, int64_t sum)
{
	weir_tensor *values[2] = {NULL, NULL};

	STRESS_CHECK(weir_tensor_scalar_i64(sum, &values[0]) == WEIR_OK &&
	                 weir_tensor_scalar_i64(-sum, &values[1]) == WEIR_OK,
	             "no tensors");
	stress_begin(self, "assign");
	STRESS_CHECK(weir_mirrors_assign(mirrors, values, WEIR_NO_DEADLINE, NULL) == WEIR_OK, "an assign failed");
	stress_end(self, 1);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(values[i]);
}

static int64_t number_of(const weir_read *read)
{
	int64_t number;

	memcpy(&number, weir_tensor_data(read->tensor), sizeof(number));
	return number;
}

static void look_at_mirrors(struct stress_thread *self)
{
	weir_read reads[2 * MIRRORS];

	stress_begin(self, "snapshot");
	STRESS_CHECK(weir_var_snapshot(weir_mirrors_vars(mirrors), (size_t)2 * MIRRORS, reads, NULL) == WEIR_OK,
	             "a snapshot failed");
	for (size_t k = 0; k < (size_t)2 * MIRRORS; k++)
		STRESS_CHECK(reads[k].version == reads[0].version &&
		                 number_of(&reads[k]) == (k < MIRRORS ? 1 : -1) * number_of(&reads[0]),
		             "a snapshot shows mirrors that differ");
	weir_read_release_many(reads, (size_t)2 * MIRRORS);
	stress_end(self, 1);
}

static void be_a_rank(struct stress_thread *self, void *context)
{
	weir_transport *at = context;
	uint64_t rounds[CHANNELS] = {0, 0};

	while (rounds[0] < REDUCTIONS || rounds[1] < REDUCTIONS) {
		/* A rank ends the round of one channel before it begins that of the other: else ranks could wait in a ring. */
		uint32_t channel = rounds[0] <= rounds[1] ? 0 : 1;

		if (!reduce_once(self, at, rounds[channel], channel))
			continue; /* the share was taken back: the same round again */
		if (at->rank == 0)
			give_to_mirrors(self, sum_of(rounds[channel], channel));
		else
			look_at_mirrors(self);
		rounds[channel]++;
	}
}

static void open_all(void)
{
	struct weir_ranks_options options = {WEIR_RANKS_OPTIONS_INIT, .channels = CHANNELS, .allocator = stress_poison()};
	struct weir_mirrored variables[2] = {{"sum", NULL, NULL}, {"negated", NULL, NULL}};
	struct weir_mirrors_options mirrored = {WEIR_MIRRORS_OPTIONS_INIT, .variables = variables, .variable_count = 2,
	                                        .allocator = stress_poison()};

	STRESS_CHECK(weir_ranks_create(size, &options, &group, NULL) == WEIR_OK, "no ranks");
	for (size_t r = 0; r < size; r++) {
		weir_transport *at = weir_ranks_transport(group, r);

		for (uint32_t c = 0; c < CHANNELS; c++) {
			struct weir_channel what = {c == 0 ? "a" : "b", WEIR_I64, &weir_shape_scalar};
			uint32_t number;

			STRESS_CHECK(at->open(at, &what, &number, NULL) == WEIR_OK && number == c, "no channel");
		}
	}
	for (int i = 0; i < 2; i++)
		STRESS_CHECK(weir_tensor_scalar_i64(0, &variables[i].initial) == WEIR_OK, "no tensor");
	STRESS_CHECK(weir_mirrors_create(MIRRORS, &mirrored, &mirrors, NULL) == WEIR_OK, "no mirrors");
	for (int i = 0; i < 2; i++)
		weir_tensor_release(variables[i].initial);
}

static void close_all(void)
{
	for (size_t r = 0; r < size; r++) {
		weir_transport *at = weir_ranks_transport(group, r);

		for (uint32_t c = 0; c < CHANNELS; c++)
			at->close(at, c);
	}
	STRESS_CHECK(weir_ranks_destroy(group, NULL) == WEIR_OK, "the ranks are in use");
	STRESS_CHECK(weir_mirrors_destroy(mirrors, NULL) == WEIR_OK, "the mirrors are in use");
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(flush_ns)) == WEIR_OK, "memory is held");
}

void scenario_ranks(void)
{
	uint64_t games = 0;

	stress_disturb();
	for (; games == 0 || stress_goes_on(); games++) {
		size = 2 + (unsigned)stress_below(stress_self(), MOST_RANKS - 1);
		open_all();
		for (size_t r = 0; r < size; r++)
			(void)stress_start("rank", be_a_rank, weir_ranks_transport(group, r));
		stress_begin(stress_self(), "joining");
		stress_join();
		close_all();
	}
	stress_note("games", games);
	stress_note("shares taken back", weiri_load_relaxed(&withdrawn)); /* [relaxed] joined */
}
