/*
 * ranks.h - the processes that train together, if MPI connects them.
 */
#ifndef TRAIN_DIGITS_RANKS_H
#define TRAIN_DIGITS_RANKS_H

#include <weir/pool.h>
#include <weir/status.h>
#include <weir/transport.h>

/*
 * Makes this process one of the ranks that mpirun started. The callers that wait for runs on `pool`
 * call MPI. WEIR_UNIMPLEMENTED: this program was built without MPI.
 */
enum weir_status ranks_open(weir_pool *pool, weir_transport **transport, weir_error *error);
enum weir_status ranks_close(weir_error *error);
/* Ends all ranks, because this one cannot go on. */
void ranks_abort(void);

#endif
