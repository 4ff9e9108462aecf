/*
 * ranks_none.c - see ranks.h; built where libweir-mpi is not.
 */
#include "ranks.h"

#include "failure.h"

enum weir_status ranks_open(weir_pool *pool, weir_transport **transport, weir_error *error)
{
	(void)pool, (void)transport;
	return failure(error, WEIR_UNIMPLEMENTED, "this program was built without MPI (meson option -Dmpi=enabled)");
}

enum weir_status ranks_close(weir_error *error)
{
	(void)error;
	return WEIR_OK;
}

void ranks_abort(void)
{
}
