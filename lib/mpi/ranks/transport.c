/*
 * transport.c - a transport whose ranks are processes, which MPI connects.
 *
 * MPI adds up and tells the order; here is only who calls it, and when. MPI wants one thread at a time
 * (MPI_THREAD_SERIALIZED), and collectives of one communicator in the same order on all ranks. So:
 *
 *   - A start counts its transfer in `pending`, and puts it into an inbox. One task, the driver, takes
 *     it out, calls MPI_Iallreduce(), tests what is under way, and submits itself again until it has
 *     counted `pending` down to 0. The start that made it 1 submits the task. So there is one driver
 *     at a time, and none when nothing is under way.
 *   - Each channel has a communicator of its own, and one reduction at a time. So channels may begin in
 *     any order on each rank.
 *
 * The first reduction of an open channel is preceded by one of 16 bytes: the smallest digest of what
 * the ranks opened it for and of the divisor, and the smallest complement. Both are a rank's own only if
 * all are equal. Later reductions of the channel have the same divisor: another one is refused, since
 * this rank cannot tell the others that it wants to compare again.
 *
 * Cancelling. What the driver has not given to MPI yet is dropped. What MPI has cannot be taken back:
 * the transfer is told its end, but its memory stays until MPI is finished with it, and the rank is
 * `broken`: it may have missed a step that the others make.
 *
 * Invariants
 *   D1  one thread at a time is the driver: it owns requests, flights, and the state of channels
 *   D2  a transfer is told once, by the driver, and `pending` is counted down for it once
 *   D3  a driver that has counted `pending` down to 0 accesses nothing of the transport afterwards,
 *       but for the transfers that it tells, each of which keeps the transport
 * Pairs
 *   P1  start (put) -> driver (take): the transfer, and what open() stored (run/handoff.h)
 *   P2  pending: the driver that leaves -> the start that makes it 1, destroy: what the driver owns (D1). The
 *       next driver is submitted by that start, and so ordered after it
 *   P3  cancel (latch) -> driver: the cause
 * Progress: start and cancel are lock-free and wait-free; the driver never blocks. A driver that is
 *   stopped stops the reductions of this rank, and so the job: whoever waits for other ranks waits
 *   for each of them. The start that made `pending` 1 counts as the driver until it has submitted the
 *   task: if it is stopped there, other starts of this rank succeed, and their reductions wait.
 * Checked: tests/test_mpi_double.c, also under the sanitizers; examples/train_digits/check_mpi.
 */
#include <weir/mpi.h>

#include <limits.h>
#include <mpi.h>
#include <stdalign.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "run/countdown.h"
#include "run/handoff.h"
#include "run/numbers.h"
#include "tensor/pairs.h"

_Static_assert((int)WEIR_MPI_MAX_CHANNELS <= (int)WEIRI_NUMBERS_MAX, "each channel has a number");

enum { DEFAULT_CHANNELS = 8 };

struct weir_transfer {
	weir_task link;                    /* in the inbox; later in a list of transfers to tell */
	struct weiri_countdown references; /* the rank that started, and the driver */
	struct weiri_latch cancelled;
	weir_error cause;   /* once `cancelled` is set */
	weir_error failure; /* of a transfer that has ended without a sum; the driver's */
	struct weir_reduction reduction;
	weir_allocator allocator;
	weir_tensor_builder *sum;
	enum weir_status status;
	bool told; /* the driver has counted it down */
};

struct channel {
	MPI_Comm comm;
	enum weir_dtype dtype;
	weir_shape shape;
	uint64_t digest;  /* of what it is open for */
	uint64_t divisor; /* of the reduction that was compared; the driver's */
	bool compared;    /* with those of the other ranks; the driver's */
	bool compares;    /* the request is the comparison, not the sum; the driver's */
	uint64_t own[2], least[2];
	weir_transfer *flight; /* under way, or what MPI still has of one that was cancelled; the driver's */
};

struct weir_mpi {
	weir_transport transport; /* first: its address is that of the rank */
	weir_allocator allocator;
	size_t bytes;
	struct weiri_countdown users; /* the owner, open channels, transfers */
	weir_pool *pool;
	weir_task driver;
	struct weiri_handoff inbox;
	_Atomic(uint64_t) pending;
	struct weiri_numbers open;
	bool broken; /* the driver's */
	uint32_t channel_count;
	MPI_Request requests[WEIR_MPI_MAX_CHANNELS]; /* by channel */
	struct channel channels[];
};

static weir_mpi *mpi_of(weir_transport *transport)
{
	return (weir_mpi *)(void *)transport;
}

static weir_transfer *transfer_of(weir_task *link)
{
	return WEIRI_CONTAINER_OF(link, weir_transfer, link);
}

static enum weir_status mpi_failed(int code, const char *call, weir_error *error)
{
	char words[MPI_MAX_ERROR_STRING] = "";
	int size = 0;

	if (MPI_Error_string(code, words, &size) != MPI_SUCCESS)
		words[0] = '\0';
	return weiri_fail(error, WEIR_INTERNAL, "mpi: %s: %.180s", call, words);
}

static MPI_Datatype type_of(enum weir_dtype dtype)
{
	switch (dtype) {
	case WEIR_F32: return MPI_FLOAT;
	case WEIR_F64: return MPI_DOUBLE;
	case WEIR_I32: return MPI_INT32_T;
	default: return MPI_INT64_T;
	}
}

/* -- transfers --------------------------------------------------------------------------------- */

static void release_transfer(weir_transport *transport, weir_transfer *transfer)
{
	weir_allocator allocator;

	if (transfer == NULL || !weiri_countdown_finish(&transfer->references, 1))
		return;
	allocator = transfer->allocator;
	weir_tensor_builder_discard(transfer->sum);
	weir_tensor_release(transfer->reduction.input);
	weiri_release(&allocator, transfer, sizeof(*transfer), alignof(weir_transfer));
	(void)weiri_countdown_arrive(&mpi_of(transport)->users);
}

/*
 * Tells the end of a transfer. The driver's reference is given back before: once the rank knows, it may
 * destroy the transport.
 */
static void tell(weir_transport *transport, weir_transfer *transfer)
{
	weir_reduced_fn *done = transfer->reduction.done;
	void *context = transfer->reduction.context;
	enum weir_status status = transfer->status;
	weir_tensor *sum = NULL;
	weir_error error;

	if (status == WEIR_OK) {
		weir_tensor_builder *built = transfer->sum;

		transfer->sum = NULL;
		status = weir_tensor_builder_finish(built, &sum);
	} else {
		error = transfer->failure;
	}
	release_transfer(transport, transfer);
	done(context, status, status != WEIR_OK ? &error : NULL, sum);
}

/* Transfers that have ended and are not told yet, and how many they are. */
struct ended {
	weir_task *first;
	uint64_t count;
};

static void end(struct ended *ended, weir_transfer *transfer, enum weir_status status)
{
	WEIR_ASSERT1(D2, !transfer->told);
	transfer->told = true;
	transfer->status = status;
	transfer->link.next = ended->first;
	ended->first = &transfer->link;
	ended->count++;
}

/* [P3] The caller has seen the latch. */
static void end_cancelled(struct ended *ended, weir_transfer *transfer)
{
	transfer->failure = transfer->cause;
	end(ended, transfer, transfer->cause.code);
}

/* -- the driver -------------------------------------------------------------------------------- */

/* What a channel has under way has failed, or is finished. */
static void land(weir_mpi *mpi, uint32_t number, struct ended *ended, enum weir_status status)
{
	struct channel *channel = &mpi->channels[number];
	weir_transfer *transfer = channel->flight;

	channel->flight = NULL;
	mpi->requests[number] = MPI_REQUEST_NULL;
	if (transfer->told)
		release_transfer(&mpi->transport, transfer); /* it was cancelled, and MPI had its memory */
	else
		end(ended, transfer, status);
}

/* FNV-1a. */
static uint64_t digest_bytes(uint64_t hash, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(1099511628211);
	return hash;
}

static int send_digest(weir_mpi *mpi, uint32_t number)
{
	struct channel *channel = &mpi->channels[number];

	channel->compares = true;
	channel->divisor = channel->flight->reduction.divisor;
	channel->own[0] = digest_bytes(channel->digest, &channel->divisor, sizeof(channel->divisor));
	channel->own[1] = ~channel->own[0];
	return MPI_Iallreduce(channel->own, channel->least, 2, MPI_UINT64_T, MPI_MIN, channel->comm,
	                      &mpi->requests[number]);
}

static int send_share(weir_mpi *mpi, uint32_t number)
{
	struct channel *channel = &mpi->channels[number];
	const weir_tensor *input = channel->flight->reduction.input;

	channel->compares = false;
	return MPI_Iallreduce(weir_tensor_data(input), weir_tensor_builder_data(channel->flight->sum),
	                      (int)weir_tensor_element_count(input), type_of(weir_tensor_dtype(input)), MPI_SUM,
	                      channel->comm, &mpi->requests[number]);
}

/* Gives the channel's flight to MPI. */
static void send(weir_mpi *mpi, uint32_t number, struct ended *ended)
{
	struct channel *channel = &mpi->channels[number];
	int code = channel->compared ? send_share(mpi, number) : send_digest(mpi, number);

	if (code != MPI_SUCCESS)
		land(mpi, number, ended, mpi_failed(code, "MPI_Iallreduce", &channel->flight->failure));
}

static void begin(weir_mpi *mpi, weir_transfer *transfer, struct ended *ended)
{
	uint32_t number = transfer->reduction.channel;
	struct channel *channel = &mpi->channels[number];

	if (weiri_latch_is_set(&transfer->cancelled)) {
		end_cancelled(ended, transfer);
	} else if (mpi->broken) {
		end(ended, transfer,
		    weiri_fail(&transfer->failure, WEIR_FAILED_PRECONDITION,
		               "mpi: rank %zu has left a reduction that the other ranks make, so the ranks may differ; end "
		               "the job, and start again from a checkpoint",
		               mpi->transport.rank));
	} else if (channel->flight != NULL) {
		end(ended, transfer,
		    weiri_fail(&transfer->failure, WEIR_FAILED_PRECONDITION,
		               "mpi: a reduction of rank %zu in channel %u is under way in another run; one runs at a time",
		               mpi->transport.rank, number));
	} else if (channel->compared && channel->divisor != transfer->reduction.divisor) {
		/* MPI would pair the next share with that of the others for this reduction. */
		mpi->broken = true;
		end(ended, transfer,
		    weiri_fail(&transfer->failure, WEIR_INVALID_ARGUMENT,
		               "mpi: channel %u of rank %zu is open for the divisor %llu, got %llu", number,
		               mpi->transport.rank, (unsigned long long)channel->divisor,
		               (unsigned long long)transfer->reduction.divisor));
	} else {
		channel->flight = transfer;
		send(mpi, number, ended);
	}
}

static void begin_all(weir_mpi *mpi, struct ended *ended)
{
	weir_task *link = weiri_handoff_take_all(&mpi->inbox);

	while (link != NULL) {
		weir_task *next = link->next;

		begin(mpi, transfer_of(link), ended);
		link = next;
	}
}

/*
 * Tells the end of a transfer that MPI has not finished with. Its memory stays until it lands: the flight
 * gets a reference of its own.
 */
static void abandon(weir_mpi *mpi, weir_transfer *transfer, struct ended *ended)
{
	weiri_countdown_join(&transfer->references);
	mpi->broken = true;
	end(ended, transfer, transfer->failure.code);
}

static void drop_cancelled(weir_mpi *mpi, struct ended *ended)
{
	for (uint32_t i = 0; i < mpi->channel_count; i++) {
		weir_transfer *transfer = mpi->channels[i].flight;

		if (transfer == NULL || transfer->told || !weiri_latch_is_set(&transfer->cancelled))
			continue;
		transfer->failure = transfer->cause; /* P3 */
		abandon(mpi, transfer, ended);
	}
}

static void finish(weir_mpi *mpi, uint32_t number, struct ended *ended)
{
	struct channel *channel = &mpi->channels[number];
	const struct weir_reduction *reduction = &channel->flight->reduction;

	if (!channel->compares) {
		void *data = weir_tensor_builder_data(channel->flight->sum);

		/* Nobody gets the sum of a run that was told; its channel may have been opened again, with another dtype. */
		if (!channel->flight->told)
			weiri_pairs_sum(weir_tensor_dtype(reduction->input), (const void *[]){data}, 1, reduction->divisor, data,
			                (size_t)weir_tensor_element_count(reduction->input));
		land(mpi, number, ended, WEIR_OK);
	} else if (memcmp(channel->own, channel->least, sizeof(channel->own)) != 0) {
		weir_error unread;

		/* The thread that tells a flight its end may still read its failure. */
		land(mpi, number, ended,
		     weiri_fail(channel->flight->told ? &unread : &channel->flight->failure, WEIR_INVALID_ARGUMENT,
		                "mpi: the ranks have not built the same graph: channel %u of rank %zu has another name, dtype, "
		                "shape or divisor than that of some other rank",
		                number, mpi->transport.rank));
	} else {
		channel->compared = true;
		if (!channel->flight->told)
			send(mpi, number, ended);
		else
			land(mpi, number, ended, WEIR_OK);
	}
}

static void test_all(weir_mpi *mpi, struct ended *ended)
{
	int numbers[WEIR_MPI_MAX_CHANNELS];
	int count = 0;
	int code = MPI_Testsome((int)mpi->channel_count, mpi->requests, &count, numbers, MPI_STATUSES_IGNORE);

	for (uint32_t i = 0; code != MPI_SUCCESS && i < mpi->channel_count; i++) {
		weir_transfer *transfer = mpi->channels[i].flight;

		if (transfer == NULL || transfer->told)
			continue;
		(void)mpi_failed(code, "MPI_Testsome", &transfer->failure);
		abandon(mpi, transfer, ended);
	}
	for (int i = 0; code == MPI_SUCCESS && count != MPI_UNDEFINED && i < count; i++)
		finish(mpi, (uint32_t)numbers[i], ended);
}

static void drive(weir_task *task)
{
	weir_mpi *mpi = WEIRI_CONTAINER_OF(task, weir_mpi, driver);
	weir_transport *transport = &mpi->transport;
	struct ended ended = {NULL, 0};

	begin_all(mpi, &ended);
	drop_cancelled(mpi, &ended);
	test_all(mpi, &ended);
	/* Whether a test that found nothing gives the processor away is MPI's decision (mpi_yield_when_idle). */
	/* [P2 release] D3 */
	if (weiri_fetch_sub_release(&mpi->pending, ended.count) != ended.count)
		(void)weir_pool_submit(mpi->pool, &mpi->driver);
	while (ended.first != NULL) {
		weir_transfer *transfer = transfer_of(ended.first);

		ended.first = ended.first->next;
		tell(transport, transfer);
	}
}

/* -- the functions of the transport ------------------------------------------------------------ */

static uint64_t digest_of(const struct weir_channel *what)
{
	uint64_t hash = digest_bytes(UINT64_C(14695981039346656037), what->name, strlen(what->name) + 1);
	uint64_t numbers[2] = {(uint64_t)what->dtype, what->shape->rank};

	hash = digest_bytes(hash, numbers, sizeof(numbers));
	return digest_bytes(hash, what->shape->dims, what->shape->rank * sizeof(what->shape->dims[0]));
}

static enum weir_status check_channel(const struct weir_channel *what, weir_error *error)
{
	enum weir_status status;
	int64_t elements = 0;

	if (what == NULL || what->name == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: the channel has no name");
	status = weiri_pairs_check(what->dtype, false, error);
	if (status != WEIR_OK)
		return status;
	if (what->shape == NULL || weir_shape_element_count(what->shape, &elements) != WEIR_OK)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: the shape of \"%s\" is not known", what->name);
	if (elements > INT_MAX)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: \"%s\" has more than %d elements", what->name, INT_MAX);
	return WEIR_OK;
}

static enum weir_status open_channel(weir_transport *transport, const struct weir_channel *what, uint32_t *number,
                                     weir_error *error)
{
	weir_mpi *mpi = mpi_of(transport);
	enum weir_status status = check_channel(what, error);
	struct channel *channel;
	uint32_t taken;

	if (status != WEIR_OK)
		return status;
	if (number == NULL || !weiri_number_take(&mpi->open, mpi->channel_count, &taken))
		return weiri_fail(error, number == NULL ? WEIR_INVALID_ARGUMENT : WEIR_RESOURCE_EXHAUSTED,
		                  number == NULL ? "mpi: channel is NULL" : "mpi: all %u channels are open",
		                  mpi->channel_count);
	weiri_countdown_join(&mpi->users);
	channel = &mpi->channels[taken];
	channel->dtype = what->dtype;
	channel->shape = *what->shape;
	channel->digest = digest_of(what);
	channel->compared = false;
	*number = taken;
	return WEIR_OK;
}

static void close_channel(weir_transport *transport, uint32_t number)
{
	weir_mpi *mpi = mpi_of(transport);

	weiri_number_give(&mpi->open, number);
	(void)weiri_countdown_arrive(&mpi->users);
}

static enum weir_status check_start(weir_mpi *mpi, const struct weir_reduction *r, weir_error *error)
{
	const struct channel *channel;

	if (r == NULL || r->input == NULL || r->done == NULL || r->divisor == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: the reduction lacks an input, a divisor or `done`");
	if (r->channel >= mpi->channel_count || !weiri_number_is_taken(&mpi->open, r->channel))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: channel %u is not open", r->channel);
	channel = &mpi->channels[r->channel];
	if (weir_tensor_dtype(r->input) != channel->dtype ||
	    !weir_shape_equal(weir_tensor_shape(r->input), &channel->shape))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "mpi: the input does not have the dtype and shape of channel %u", r->channel);
	return weiri_pairs_check(channel->dtype, r->divisor != 1, error);
}

static weir_transfer *create_transfer(weir_mpi *mpi, const struct weir_reduction *reduction)
{
	weir_allocator allocator = weiri_allocator_or_default(reduction->allocator);
	weir_transfer *transfer = weiri_allocate_zeroed(&allocator, sizeof(*transfer), alignof(weir_transfer));

	if (transfer == NULL)
		return NULL;
	if (weir_tensor_builder_create_unfilled(weir_tensor_dtype(reduction->input), weir_tensor_shape(reduction->input),
	                                        &allocator, &transfer->sum, NULL) != WEIR_OK) {
		weiri_release(&allocator, transfer, sizeof(*transfer), alignof(weir_transfer));
		return NULL;
	}
	weiri_countdown_init(&transfer->references, 2);
	weiri_latch_init(&transfer->cancelled);
	transfer->reduction = *reduction;
	transfer->allocator = allocator;
	weir_tensor_retain(reduction->input);
	weiri_countdown_join(&mpi->users);
	return transfer;
}

static enum weir_status start(weir_transport *transport, const struct weir_reduction *reduction,
                              weir_transfer **transfer, weir_error *error)
{
	weir_mpi *mpi = mpi_of(transport);
	enum weir_status status = check_start(mpi, reduction, error);
	bool was_idle;

	if (status != WEIR_OK || transfer == NULL)
		return status != WEIR_OK ? status : weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: transfer is NULL");
	*transfer = create_transfer(mpi, reduction);
	if (*transfer == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "mpi: no memory for a reduction");
	/* [P2 acquire] pairs with the driver that left. It comes before the put: a driver counts down what it takes. */
	was_idle = weiri_fetch_add_acquire(&mpi->pending, 1) == 0;
	weiri_handoff_put(&mpi->inbox, &(*transfer)->link);
	if (was_idle)
		(void)weir_pool_submit(mpi->pool, &mpi->driver);
	return WEIR_OK;
}

static void cancel(weir_transport *transport, weir_transfer *transfer, const weir_error *cause)
{
	(void)transport;
	if (!weiri_latch_claim(&transfer->cancelled))
		return;
	if (weiri_is_cause(cause) && cause->code != WEIR_OK)
		transfer->cause = weiri_error_kept(cause);
	else
		(void)weiri_fail(&transfer->cause, WEIR_CANCELLED, "cancelled");
	weiri_latch_set(&transfer->cancelled); /* P3 */
}

/* -- creating and destroying ------------------------------------------------------------------- */

static enum weir_status check_mpi(weir_error *error)
{
	int is_initialized = 0, is_finalized = 0, provided = MPI_THREAD_SINGLE;

	if (MPI_Initialized(&is_initialized) != MPI_SUCCESS || !is_initialized)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "mpi: call MPI_Init_thread() first");
	if (MPI_Finalized(&is_finalized) != MPI_SUCCESS || is_finalized)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "mpi: MPI is finalized");
	if (MPI_Query_thread(&provided) != MPI_SUCCESS || provided < MPI_THREAD_SERIALIZED)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "mpi: MPI does not provide MPI_THREAD_SERIALIZED; ask MPI_Init_thread() for it");
	return WEIR_OK;
}

static enum weir_status read_options(const struct weir_mpi_options *options, struct weir_mpi_options *given,
                                     weir_error *error)
{
	enum weir_status status;

	if (options == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: options is NULL");
	status = weiri_options_read("mpi", options, given, sizeof(*given), error);
	if (status != WEIR_OK)
		return status;
	if (given->pool == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: pool is NULL; name the pool that calls MPI");
	if (given->channels > WEIR_MPI_MAX_CHANNELS)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: at most %d channels, got %zu", WEIR_MPI_MAX_CHANNELS,
		                  given->channels);
	if (given->channels == 0)
		given->channels = DEFAULT_CHANNELS;
	return check_mpi(error);
}

static void free_comms(weir_mpi *mpi, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		(void)MPI_Comm_free(&mpi->channels[i].comm);
}

/* Errors of calls on the duplicates are returned; the handler of `comm` itself stays as it is. */
static enum weir_status make_comms(weir_mpi *mpi, MPI_Comm comm, weir_error *error)
{
	for (uint32_t i = 0; i < mpi->channel_count; i++) {
		int code = MPI_Comm_dup(comm, &mpi->channels[i].comm);

		if (code == MPI_SUCCESS)
			code = MPI_Comm_set_errhandler(mpi->channels[i].comm, MPI_ERRORS_RETURN);
		if (code != MPI_SUCCESS) {
			free_comms(mpi, i);
			return mpi_failed(code, "MPI_Comm_dup", error);
		}
	}
	return WEIR_OK;
}

static enum weir_status find_rank(weir_mpi *mpi, MPI_Comm comm, weir_error *error)
{
	int size = 0, rank = 0;
	int code = MPI_Comm_size(comm, &size);

	if (code == MPI_SUCCESS)
		code = MPI_Comm_rank(comm, &rank);
	if (code != MPI_SUCCESS)
		return mpi_failed(code, "MPI_Comm_rank", error);
	mpi->transport = (weir_transport){
		WEIR_TRANSPORT_INIT,    .name = "mpi",  .size = (size_t)size, .rank = (size_t)rank,        .open = open_channel,
		.close = close_channel, .start = start, .cancel = cancel,     .release = release_transfer,
	};
	return WEIR_OK;
}

static void init(weir_mpi *mpi, const struct weir_mpi_options *given)
{
	weiri_countdown_init(&mpi->users, 1);
	mpi->pool = given->pool;
	mpi->driver.run = drive;
	weiri_handoff_init(&mpi->inbox);
	weiri_store_relaxed(&mpi->pending, 0); /* [relaxed] not shared yet. */
	weiri_numbers_init(&mpi->open);
	mpi->channel_count = (uint32_t)given->channels;
	for (size_t i = 0; i < WEIR_MPI_MAX_CHANNELS; i++)
		mpi->requests[i] = MPI_REQUEST_NULL;
}

enum weir_status weir_mpi_create(const struct weir_mpi_options *options, weir_mpi **out, weir_error *error)
{
	struct weir_mpi_options given;
	enum weir_status status = read_options(options, &given, error);
	weir_allocator allocator;
	MPI_Comm comm;
	weir_mpi *mpi;
	size_t bytes;

	if (status != WEIR_OK || out == NULL)
		return status != WEIR_OK ? status : weiri_fail(error, WEIR_INVALID_ARGUMENT, "mpi: out is NULL");
	allocator = weiri_allocator_or_default(given.allocator);
	bytes = offsetof(weir_mpi, channels) + given.channels * sizeof(struct channel);
	mpi = weiri_allocate_zeroed(&allocator, bytes, alignof(weir_mpi));
	if (mpi == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "mpi: no memory");
	mpi->allocator = allocator;
	mpi->bytes = bytes;
	init(mpi, &given);
	comm = given.comm != NULL ? *(const MPI_Comm *)given.comm : MPI_COMM_WORLD;
	status = find_rank(mpi, comm, error);
	if (status == WEIR_OK)
		status = make_comms(mpi, comm, error);
	if (status == WEIR_OK)
		*out = mpi;
	else
		weiri_release(&allocator, mpi, bytes, alignof(weir_mpi));
	return status;
}

/* No driver is there: nothing is pending. MPI may still have what was cancelled. */
static bool has_flight(weir_mpi *mpi)
{
	struct ended ended = {NULL, 0};

	test_all(mpi, &ended);
	for (uint32_t i = 0; i < mpi->channel_count; i++) {
		if (mpi->channels[i].flight != NULL)
			return true;
	}
	return false;
}

enum weir_status weir_mpi_destroy(weir_mpi *mpi, weir_error *error)
{
	weir_allocator allocator;

	if (mpi == NULL)
		return WEIR_OK;
	if (weiri_load_acquire(&mpi->pending) == 0 && has_flight(mpi)) /* [P2 acquire] */
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "mpi: MPI still has a share of rank %zu; end the job",
		                  mpi->transport.rank);
	if (!weiri_countdown_arrive(&mpi->users)) {
		weiri_countdown_join(&mpi->users);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "mpi: a channel is open, or a reduction under way");
	}
	free_comms(mpi, mpi->channel_count);
	allocator = mpi->allocator;
	weiri_release(&allocator, mpi, mpi->bytes, alignof(weir_mpi));
	return WEIR_OK;
}

weir_transport *weir_mpi_transport(weir_mpi *mpi)
{
	return mpi != NULL ? &mpi->transport : NULL;
}
