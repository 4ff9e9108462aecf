/*
 * ranks_mpi.c - see ranks.h; built where libweir-mpi is.
 */
#include "ranks.h"

#include <mpi.h>
#include <weir/mpi.h>

#include "failure.h"

static weir_mpi *mpi;

enum weir_status ranks_open(weir_pool *pool, weir_transport **transport, weir_error *error)
{
	struct weir_mpi_options options = {WEIR_MPI_OPTIONS_INIT, .pool = pool};
	enum weir_status status;
	int provided;

	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
		return failure(error, WEIR_INTERNAL, "MPI cannot be initialized");
	status = weir_mpi_create(&options, &mpi, error);
	if (status == WEIR_OK)
		*transport = weir_mpi_transport(mpi);
	return status;
}

enum weir_status ranks_close(weir_error *error)
{
	enum weir_status status = weir_mpi_destroy(mpi, error);

	if (status == WEIR_OK && MPI_Finalize() != MPI_SUCCESS)
		status = failure(error, WEIR_INTERNAL, "MPI cannot be finalized");
	return status;
}

void ranks_abort(void)
{
	(void)MPI_Abort(MPI_COMM_WORLD, 1);
}
