/*
 * mpi_double.c - see mpi_double.h.
 */
#include "mpi_double.h"

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 4096, PROVIDE_NONE = -1, PROVIDE_OVER = -2 };

struct comm {
	int rank, channel;
};

/* What a rank gave to a channel, and gets from it. */
struct share {
	_Alignas(8) char bytes[MOST_BYTES];
	bool given, summed;
	void *to;
	struct comm *comm; /* its address is the request */
};

static struct {
	pthread_mutex_t lock;
	int ranks, level, fail_dup, comms;
	bool fail_iallreduce, fail_testsome, misused;
	int channels[DOUBLE_RANKS]; /* duplicated by each rank */
	struct share shares[DOUBLE_CHANNELS][DOUBLE_RANKS];
	_Atomic(int) inside[DOUBLE_RANKS];
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int own_rank;

void double_begin(int ranks)
{
	pthread_mutex_lock(&world.lock);
	world.ranks = ranks;
	world.level = MPI_THREAD_SERIALIZED;
	world.fail_dup = 0;
	world.comms = 0;
	world.fail_iallreduce = world.fail_testsome = world.misused = false;
	memset(world.channels, 0, sizeof(world.channels));
	memset(world.shares, 0, sizeof(world.shares));
	pthread_mutex_unlock(&world.lock);
}

void double_be_rank(int rank)
{
	own_rank = rank;
}

void double_provide(int level)
{
	world.level = level;
}

void double_fail_iallreduce(void)
{
	world.fail_iallreduce = true;
}

void double_fail_testsome(void)
{
	world.fail_testsome = true;
}

void double_fail_dup(int after)
{
	world.fail_dup = after;
}

int double_comms(void)
{
	return world.comms;
}

int double_shares(void)
{
	int count = 0;

	pthread_mutex_lock(&world.lock);
	for (int c = 0; c < DOUBLE_CHANNELS; c++) {
		for (int r = 0; r < world.ranks; r++)
			count += world.shares[c][r].given;
	}
	pthread_mutex_unlock(&world.lock);
	return count;
}

void double_let_go(void)
{
	pthread_mutex_lock(&world.lock);
	for (int c = 0; c < DOUBLE_CHANNELS; c++) {
		for (int r = 0; r < world.ranks; r++)
			world.shares[c][r].summed |= world.shares[c][r].given;
	}
	pthread_mutex_unlock(&world.lock);
}

bool double_misused(void)
{
	return world.misused;
}

/* Notices a second thread of the rank. */
static void enter(int rank)
{
	if (atomic_fetch_add_explicit(&world.inside[rank], 1, memory_order_relaxed) != 0)
		world.misused = true;
	pthread_mutex_lock(&world.lock);
}

static int leave(int rank, int code)
{
	pthread_mutex_unlock(&world.lock);
	atomic_fetch_sub_explicit(&world.inside[rank], 1, memory_order_relaxed);
	return code;
}

/* -- the calls --------------------------------------------------------------------------------- */

int MPI_Initialized(int *flag)
{
	*flag = world.level != PROVIDE_NONE;
	return MPI_SUCCESS;
}

int MPI_Finalized(int *flag)
{
	*flag = world.level == PROVIDE_OVER;
	return MPI_SUCCESS;
}

int MPI_Query_thread(int *provided)
{
	*provided = world.level;
	return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
	(void)comm;
	*size = world.ranks;
	return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
	(void)comm;
	*rank = own_rank;
	return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
	struct comm *made;

	(void)comm;
	enter(own_rank);
	if (world.fail_dup > 0 && --world.fail_dup == 0)
		return leave(own_rank, MPI_ERR_OTHER);
	made = malloc(sizeof(*made));
	if (made == NULL)
		abort();
	*made = (struct comm){own_rank, world.channels[own_rank]++};
	world.comms++;
	*newcomm = (MPI_Comm)(void *)made;
	return leave(own_rank, MPI_SUCCESS);
}

int MPI_Comm_free(MPI_Comm *comm)
{
	enter(own_rank);
	free(*comm);
	*comm = NULL;
	world.comms--;
	return leave(own_rank, MPI_SUCCESS);
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
	(void)comm, (void)handler;
	return MPI_SUCCESS;
}

int MPI_Error_string(int code, char *string, int *size)
{
	(void)code;
	strcpy(string, "the cable is out");
	*size = (int)strlen(string);
	return MPI_SUCCESS;
}

static size_t size_of(MPI_Datatype type)
{
	return type == MPI_FLOAT || type == MPI_INT32_T ? 4 : 8;
}

static void add_one(void *to, const void *from, int count, MPI_Datatype type, MPI_Op op)
{
	for (int i = 0; i < count; i++) {
		if (op == MPI_MIN && ((const uint64_t *)from)[i] < ((uint64_t *)to)[i])
			((uint64_t *)to)[i] = ((const uint64_t *)from)[i];
		else if (op != MPI_MIN && type == MPI_FLOAT)
			((float *)to)[i] += ((const float *)from)[i];
		else if (op != MPI_MIN && type == MPI_DOUBLE)
			((double *)to)[i] += ((const double *)from)[i];
		else if (op != MPI_MIN && type == MPI_INT32_T)
			((uint32_t *)to)[i] += ((const uint32_t *)from)[i];
		else if (op != MPI_MIN)
			((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
	}
}

/* If all ranks have given their share, each gets the sum. */
static void sum_if_complete(struct share shares[], int count, MPI_Datatype type, MPI_Op op)
{
	for (int r = 0; r < world.ranks; r++) {
		if (!shares[r].given || shares[r].summed)
			return;
	}
	for (int r = 0; r < world.ranks; r++) {
		memcpy(shares[r].to, shares[0].bytes, (size_t)count * size_of(type));
		for (int other = 1; other < world.ranks; other++)
			add_one(shares[r].to, shares[other].bytes, count, type, op);
		shares[r].summed = true;
	}
}

int MPI_Iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
	struct comm *mine = (struct comm *)(void *)comm;
	struct share *shares = world.shares[mine->channel], *share = &shares[mine->rank];

	enter(mine->rank);
	if (world.fail_iallreduce) {
		world.fail_iallreduce = false;
		*request = (MPI_Request)(void *)share; /* what it is after an error is not defined */
		return leave(mine->rank, MPI_ERR_OTHER);
	}
	if (share->given || (size_t)count * size_of(type) > MOST_BYTES) {
		world.misused = true;
		return leave(mine->rank, MPI_ERR_OTHER);
	}
	memcpy(share->bytes, from, (size_t)count * size_of(type));
	share->given = true;
	share->summed = false;
	share->to = to;
	share->comm = mine;
	*request = (MPI_Request)(void *)share;
	sum_if_complete(shares, count, type, op);
	return leave(mine->rank, MPI_SUCCESS);
}

int MPI_Testsome(int count, MPI_Request requests[], int *out, int numbers[], MPI_Status statuses[])
{
	int rank = -1;
	bool any = false;

	(void)statuses;
	for (int i = 0; rank < 0 && i < count; i++) {
		if (requests[i] != MPI_REQUEST_NULL)
			rank = ((struct share *)(void *)requests[i])->comm->rank;
	}
	*out = MPI_UNDEFINED;
	if (rank < 0)
		return MPI_SUCCESS;
	enter(rank);
	if (world.fail_testsome) {
		world.fail_testsome = false;
		return leave(rank, MPI_ERR_OTHER);
	}
	*out = 0;
	for (int i = 0; i < count; i++) {
		struct share *share = (struct share *)(void *)requests[i];

		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		any = true;
		if (!share->summed)
			continue;
		share->given = share->summed = false;
		requests[i] = MPI_REQUEST_NULL;
		numbers[(*out)++] = i;
	}
	if (!any)
		*out = MPI_UNDEFINED;
	any = *out == 0;
	(void)leave(rank, MPI_SUCCESS);
	if (any)
		(void)sched_yield(); /* as MPI does with more ranks than processors */
	return MPI_SUCCESS;
}
