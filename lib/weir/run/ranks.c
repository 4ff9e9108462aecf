/*
 * ranks.c - the ranks of one process: transports that add up in shared memory.
 *
 * Each channel is a meeting (meeting.h) with a place for each rank. A rank that starts a reduction
 * puts its transfer into its place, and comes. The rank that comes last adds up the inputs of all
 * places, opens the next meeting, clears the places, and tells all ranks. So nobody waits: a start
 * either ends with what all need, or leaves that to a later one. Completions run one after the other
 * on each thread (sync/delivery.h), so those that start the next reduction need a small stack.
 *
 * Invariants
 *   K1  a place has one transfer at a time: it is taken by a CAS from NULL, and cleared by the holder
 *       or by the rank that left
 *   K2  a transfer is told once: by the holder of the meeting to which it came, or by the cancel that
 *       left that meeting. weiri_meeting_leave() and the fullness of the word exclude each other
 *   K3  a place is cleared before its rank is told, so a completion may start the next reduction
 *   K4  a start touches neither its transfer nor *transfer once it has come: another thread may have
 *       told the rank, which has released the transfer, or started again
 * Pairs
 *   P1  clear of a place -> the next CAS of the place: the rank has left, or the meeting was held
 *   P2  release of a transfer: the other user's accesses (sync by run/countdown.h)
 * Progress: as meeting.h; the holder also adds up and runs the completions of all ranks: after the
 *   completion in which it started, if it did.
 * Memory: channels x ranks places of 16 bytes, and one block for each transfer under way, with a
 *   reference to its input. A sum is in memory of the ranks' allocator, as all ranks share it.
 * Checked: stress/model/check_meeting.c; tests/test_ranks.c; weir-stress "ranks".
 */
#include <weir/transport.h>

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "run/countdown.h"
#include "run/meeting.h"
#include "run/numbers.h"
#include "sync/delivery.h"
#include "tensor/pairs.h"

_Static_assert((int)WEIR_RANKS_MAX <= (int)WEIRI_MEETING_PARTIES, "a bit for each rank");

enum { DEFAULT_CHANNELS = 16, CHANNEL_NAME_SIZE = 64 };

struct weir_transfer {
	struct weiri_countdown references; /* the rank that started, and whoever tells its end */
	struct weir_reduction reduction;   /* with a reference to the input */
	weir_allocator allocator;
	struct rank *rank;
	uint64_t meeting; /* its number; written by the rank before it comes */
	/* The outcome, written by whoever tells it. */
	struct weiri_delivery delivery;
	weir_tensor *sum;
	weir_error error; /* the code: WEIR_OK, and there is a sum */
};

struct place {
	_Atomic(weir_transfer *) transfer;
	/* what the rank opened the channel for: written by open(), before any start */
	enum weir_dtype dtype;
	char name[CHANNEL_NAME_SIZE];
};

struct channel {
	struct weiri_meeting meeting;
	struct place places[WEIR_RANKS_MAX];
};

struct rank {
	weir_transport transport; /* first: its address is that of the rank */
	weir_ranks *ranks;
	struct weiri_numbers open; /* the channels that this rank has open */
};

struct weir_ranks {
	weir_allocator allocator;
	size_t bytes;
	struct weiri_countdown users; /* the owner, open channels, transfers */
	char *name;
	uint32_t size, channel_count;
	struct channel *channels;
	struct rank ranks[];
};

static struct rank *rank_of(weir_transport *transport)
{
	return (struct rank *)(void *)transport;
}

static struct place *place_of(const struct rank *rank, uint32_t channel)
{
	return &rank->ranks->channels[channel].places[rank->transport.rank];
}

/* -- channels ---------------------------------------------------------------------------------- */

static enum weir_status open_channel(weir_transport *transport, const struct weir_channel *what, uint32_t *number,
                                     weir_error *error)
{
	struct rank *rank = rank_of(transport);
	enum weir_status status;
	struct place *place;
	uint32_t taken;

	if (what == NULL || number == NULL || what->name == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks \"%s\": NULL argument", rank->ranks->name);
	status = weiri_pairs_check(what->dtype, false, error);
	if (status != WEIR_OK)
		return status;
	if (!weiri_number_take(&rank->open, rank->ranks->channel_count, &taken))
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "ranks \"%s\": all %u channels are open", rank->ranks->name,
		                  rank->ranks->channel_count);
	weiri_countdown_join(&rank->ranks->users);
	place = place_of(rank, taken);
	place->dtype = what->dtype;
	(void)snprintf(place->name, sizeof(place->name), "%s", what->name);
	*number = taken;
	return WEIR_OK;
}

static void close_channel(weir_transport *transport, uint32_t number)
{
	struct rank *rank = rank_of(transport);

	weiri_number_give(&rank->open, number);
	(void)weiri_countdown_arrive(&rank->ranks->users);
}

/* -- the end of transfers ---------------------------------------------------------------------- */

static void release_transfer(weir_transport *transport, weir_transfer *transfer)
{
	weir_allocator allocator;

	if (transfer == NULL || !weiri_countdown_finish(&transfer->references, 1))
		return;
	allocator = transfer->allocator;
	weir_tensor_release(transfer->reduction.input);
	weiri_release(&allocator, transfer, sizeof(*transfer), alignof(weir_transfer));
	(void)weiri_countdown_arrive(&rank_of(transport)->ranks->users);
}

/*
 * Gives the end of a transfer to its rank. The reference of the teller is given back before: once the
 * rank knows, it may destroy the ranks.
 */
static void tell(struct weiri_delivery *delivery)
{
	weir_transfer *transfer = WEIRI_CONTAINER_OF(delivery, weir_transfer, delivery);
	weir_reduced_fn *done = transfer->reduction.done;
	void *context = transfer->reduction.context;
	weir_tensor *sum = transfer->sum;
	weir_error error = transfer->error;

	release_transfer(&transfer->rank->transport, transfer);
	done(context, error.code, error.code != WEIR_OK ? &error : NULL, sum);
}

/* -- adding up --------------------------------------------------------------------------------- */

/* Returns WEIR_OK if all ranks started the same reduction. */
static enum weir_status compare(const weir_ranks *ranks, const struct channel *channel, weir_transfer *const all[],
                                weir_error *error)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): K1. */
	const weir_tensor *first = all[0]->reduction.input;
	char expected[WEIR_SHAPE_TEXT_SIZE], got[WEIR_SHAPE_TEXT_SIZE];

	for (uint32_t i = 1; i < ranks->size; i++) {
		const weir_tensor *other = all[i]->reduction.input;

		if (strcmp(channel->places[0].name, channel->places[i].name) != 0)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT,
			                  "ranks \"%s\": rank 0 is at \"%s\" in this channel, and rank %u at \"%s\"", ranks->name,
			                  channel->places[0].name, i, channel->places[i].name);
		if (weir_tensor_dtype(other) != weir_tensor_dtype(first) ||
		    !weir_shape_equal(weir_tensor_shape(other), weir_tensor_shape(first)))
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks \"%s\": rank 0 gave %s %s, and rank %u %s %s",
			                  ranks->name, weir_dtype_name(weir_tensor_dtype(first)),
			                  weir_shape_text(weir_tensor_shape(first), expected, sizeof(expected)), i,
			                  weir_dtype_name(weir_tensor_dtype(other)),
			                  weir_shape_text(weir_tensor_shape(other), got, sizeof(got)));
		if (all[i]->reduction.divisor != all[0]->reduction.divisor)
			return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks \"%s\": rank 0 divides by %llu, and rank %u by %llu",
			                  ranks->name, (unsigned long long)all[0]->reduction.divisor, i,
			                  (unsigned long long)all[i]->reduction.divisor);
	}
	return WEIR_OK;
}

/* The sum belongs to all ranks, of which any may be the last to need it: so it is in none's memory. */
static enum weir_status add_up(const weir_ranks *ranks, weir_transfer *const all[], uint32_t size, weir_tensor **sum,
                               weir_error *error)
{
	const weir_tensor *first = all[0]->reduction.input;
	const void *arrays[WEIR_RANKS_MAX];
	weir_tensor_builder *builder;

	if (weir_tensor_builder_create_unfilled(weir_tensor_dtype(first), weir_tensor_shape(first), &ranks->allocator,
	                                        &builder, NULL) != WEIR_OK)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "ranks \"%s\": no memory for the sum", ranks->name);
	for (uint32_t i = 0; i < size; i++)
		arrays[i] = weir_tensor_data(all[i]->reduction.input);
	weiri_pairs_sum(weir_tensor_dtype(first), arrays, size, all[0]->reduction.divisor,
	                weir_tensor_builder_data(builder), (size_t)weir_tensor_element_count(first));
	return weir_tensor_builder_finish(builder, sum);
}

/* The caller's rank came last, and holds the meeting. */
static void hold(weir_ranks *ranks, struct channel *channel, uint64_t number)
{
	weir_transfer *all[WEIR_RANKS_MAX] = {NULL};
	const uint32_t size = ranks->size; /* the last tell may end the ranks */
	weir_tensor *sum = NULL;
	weir_error error = {WEIR_OK, ""};
	bool outer;

	for (uint32_t i = 0; i < size; i++) {
		/* [relaxed] the come of each rank released its place, and the caller's acquired it (P1 of meeting.h). */
		all[i] = weiri_load_relaxed(&channel->places[i].transfer);
		WEIR_ASSERT1(K1, all[i] != NULL);
	}
	error.code = compare(ranks, channel, all, &error);
	if (error.code == WEIR_OK)
		error.code = add_up(ranks, all, size, &sum, &error);
	weiri_meeting_next(&channel->meeting, number);
	for (uint32_t i = 0; i < size; i++)
		weiri_store_release(&channel->places[i].transfer, NULL); /* [P1 release] K3 */
	outer = weiri_deliver_hold(); /* all are due before the first is told: it may end the thread */
	for (uint32_t i = 0; i < size; i++) {
		all[i]->error = error;
		all[i]->sum = weir_tensor_retain(sum);
		(void)weiri_deliver(&all[i]->delivery, tell);
	}
	weir_tensor_release(sum);
	weiri_deliver_held(outer);
}

/* -- starting and cancelling ------------------------------------------------------------------- */

static enum weir_status check_start(const struct rank *rank, const struct weir_reduction *r, weir_error *error)
{
	if (r == NULL || r->input == NULL || r->done == NULL || r->divisor == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "ranks \"%s\": the reduction lacks an input, a divisor or `done`", rank->ranks->name);
	if (r->channel >= rank->ranks->channel_count || !weiri_number_is_taken(&rank->open, r->channel))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks \"%s\": channel %u is not open", rank->ranks->name,
		                  r->channel);
	if (weir_tensor_dtype(r->input) != place_of(rank, r->channel)->dtype)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks \"%s\": \"%s\" is of %s, got %s", rank->ranks->name,
		                  place_of(rank, r->channel)->name, weir_dtype_name(place_of(rank, r->channel)->dtype),
		                  weir_dtype_name(weir_tensor_dtype(r->input)));
	return weiri_pairs_check(weir_tensor_dtype(r->input), r->divisor != 1, error);
}

static weir_transfer *create_transfer(struct rank *rank, const struct weir_reduction *reduction)
{
	weir_allocator allocator = weiri_allocator_or_default(reduction->allocator);
	weir_transfer *transfer = weiri_allocate(&allocator, sizeof(*transfer), alignof(weir_transfer));

	if (transfer == NULL)
		return NULL;
	weiri_countdown_init(&transfer->references, 2);
	transfer->reduction = *reduction;
	transfer->allocator = allocator;
	transfer->rank = rank;
	transfer->sum = NULL;
	weir_tensor_retain(reduction->input);
	weiri_countdown_join(&rank->ranks->users);
	return transfer;
}

static enum weir_status start(weir_transport *transport, const struct weir_reduction *reduction,
                              weir_transfer **transfer, weir_error *error)
{
	struct rank *rank = rank_of(transport);
	weir_ranks *ranks = rank->ranks;
	enum weir_status status = check_start(rank, reduction, error);
	weir_transfer *none = NULL, *own;
	struct channel *channel;
	uint64_t number;

	if (status != WEIR_OK || transfer == NULL)
		return status != WEIR_OK
		           ? status
		           : weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks \"%s\": transfer is NULL", ranks->name);
	channel = &ranks->channels[reduction->channel];
	/* The record: for the completions of all. */
	own = weiri_record_get() != NULL ? create_transfer(rank, reduction) : NULL;
	if (own == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "ranks \"%s\": no memory for a reduction", ranks->name);
	/* [P1 acquire] the place is free, and the meeting is the next; the come below releases the transfer. */
	if (!weiri_cas_acquire(&channel->places[transport->rank].transfer, &none, own)) {
		release_transfer(transport, own);
		release_transfer(transport, own);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "ranks \"%s\": \"%s\" of rank %zu is under way in another run; one runs at a time",
		                  ranks->name, channel->places[transport->rank].name, transport->rank);
	}
	own->meeting = weiri_meeting_number(&channel->meeting);
	*transfer = own;
	/* K4 */
	if (weiri_meeting_come(&channel->meeting, (uint32_t)transport->rank, ranks->size, &number))
		hold(ranks, channel, number);
	return WEIR_OK;
}

static void cancel(weir_transport *transport, weir_transfer *transfer, const weir_error *cause)
{
	struct rank *rank = rank_of(transport);
	weir_ranks *ranks = rank->ranks;
	struct channel *channel = &ranks->channels[transfer->reduction.channel];

	/* K2 */
	if (!weiri_meeting_leave(&channel->meeting, (uint32_t)transport->rank, ranks->size, transfer->meeting))
		return;
	if (weiri_is_cause(cause) && cause->code != WEIR_OK)
		transfer->error = weiri_error_kept(cause);
	else
		(void)weiri_fail(&transfer->error, WEIR_CANCELLED, "cancelled");
	weiri_store_release(&channel->places[transport->rank].transfer, NULL); /* [P1 release] K3 */
	/* A thread without a record runs no completion. */
	if (weiri_record_get() != NULL)
		(void)weiri_deliver(&transfer->delivery, tell);
	else
		tell(&transfer->delivery);
}

/* -- creating and destroying ------------------------------------------------------------------- */

static enum weir_status read_options(size_t size, const struct weir_ranks_options *options,
                                     struct weir_ranks_options *given, weir_error *error)
{
	enum weir_status status = weiri_options_read("ranks", options, given, sizeof(*given), error);

	if (status != WEIR_OK)
		return status;
	if (given->channels == 0)
		given->channels = DEFAULT_CHANNELS;
	if (given->name == NULL)
		given->name = "ranks";
	if (size == 0 || size > WEIR_RANKS_MAX)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks: expected 1 to %d, got %zu", WEIR_RANKS_MAX, size);
	if (given->channels > WEIR_RANKS_MAX_CHANNELS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks: at most %d channels, got %zu", WEIR_RANKS_MAX_CHANNELS,
		                  given->channels);
	return WEIR_OK;
}

static void init_rank(weir_ranks *ranks, uint32_t number)
{
	struct rank *rank = &ranks->ranks[number];

	rank->ranks = ranks;
	weiri_numbers_init(&rank->open);
	rank->transport = (weir_transport){
		WEIR_TRANSPORT_INIT, .name = ranks->name,  .size = ranks->size,
		.rank = number,      .open = open_channel, .close = close_channel,
		.start = start,      .cancel = cancel,     .release = release_transfer,
	};
}

enum weir_status weir_ranks_create(size_t size, const struct weir_ranks_options *options, weir_ranks **out,
                                   weir_error *error)
{
	struct weir_ranks_options given;
	enum weir_status status = read_options(size, options, &given, error);
	size_t fixed, names, bytes;
	weir_allocator allocator;
	weir_ranks *ranks;

	if (status != WEIR_OK || out == NULL)
		return status != WEIR_OK ? status : weiri_fail(error, WEIR_INVALID_ARGUMENT, "ranks: out is NULL");
	allocator = weiri_allocator_or_default(given.allocator);
	fixed = offsetof(weir_ranks, ranks) + size * sizeof(struct rank);
	fixed = (fixed + alignof(struct channel) - 1) / alignof(struct channel) * alignof(struct channel);
	names = fixed + given.channels * sizeof(struct channel);
	bytes = names + strlen(given.name) + 1;
	ranks = weiri_allocate_zeroed(&allocator, bytes, alignof(weir_ranks));
	if (ranks == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "ranks: no memory");
	ranks->allocator = allocator;
	ranks->bytes = bytes;
	weiri_countdown_init(&ranks->users, 1);
	ranks->size = (uint32_t)size;
	ranks->channel_count = (uint32_t)given.channels;
	ranks->channels = (struct channel *)(void *)((char *)ranks + fixed);
	ranks->name = (char *)ranks + names;
	memcpy(ranks->name, given.name, strlen(given.name) + 1);
	for (size_t c = 0; c < given.channels; c++)
		weiri_meeting_init(&ranks->channels[c].meeting);
	for (uint32_t i = 0; i < size; i++)
		init_rank(ranks, i);
	*out = ranks;
	return WEIR_OK;
}

enum weir_status weir_ranks_destroy(weir_ranks *ranks, weir_error *error)
{
	weir_allocator allocator;

	if (ranks == NULL)
		return WEIR_OK;
	if (!weiri_countdown_arrive(&ranks->users)) {
		weiri_countdown_join(&ranks->users);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "ranks \"%s\" has an open channel or a reduction under way",
		                  ranks->name);
	}
	allocator = ranks->allocator;
	weiri_release(&allocator, ranks, ranks->bytes, alignof(weir_ranks));
	return WEIR_OK;
}

weir_transport *weir_ranks_transport(weir_ranks *ranks, size_t rank)
{
	return ranks != NULL && rank < ranks->size ? &ranks->ranks[rank].transport : NULL;
}
