/*
 * mpi.h - ranks that are processes: all-reduce across them by MPI.
 *
 * Use it when one machine is too small, or to train with processes instead of threads. Every rank
 * runs the same program, such as
 *
 *     mpirun -np 4 train_digits --replicas mpi
 *
 * and builds the same graph, with weir_op_all_reduce() (weir/flow/replicas.h) on the transport of
 * this header. For threads of one process, see weir_ranks_create() (weir/transport.h). This header
 * belongs to a library of its own, libweir-mpi (pkg-config: weir-mpi), which is built where asked for
 * (-Dmpi=enabled). The program calls MPI_Init_thread() and MPI_Finalize() itself.
 *
 *     MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
 *     struct weir_mpi_options options = {WEIR_MPI_OPTIONS_INIT, .pool = pool};
 *     status = weir_mpi_create(&options, &mpi, &error);
 *     reduce.transport = weir_mpi_transport(mpi);
 *
 * | call               | threads   | progress       | blocks on          | allocates | signal-safe |
 * |--------------------|-----------|----------------|--------------------|-----------|-------------|
 * | weir_mpi_create    | one       | blocking       | all ranks          | yes       | no          |
 * | weir_mpi_destroy   | one, last | blocking       | all ranks          | no        | no          |
 * | weir_mpi_transport | any       | wait-free      | nothing            | no        | no          |
 *
 * The functions of the transport (weir/transport.h):
 * | function            | threads   | progress             | blocks on | allocates | signal-safe |
 * |---------------------|-----------|----------------------|-----------|-----------|-------------|
 * | open, close         | any       | lock-free            | nothing   | no        | no          |
 * | start               | any       | lock-free            | allocator | yes       | no          |
 * | cancel              | any       | wait-free            | nothing   | no        | no          |
 * | release             | any       | wait-free            | nothing   | no        | no          |
 *
 * Who calls MPI. While a reduction is under way, a task of the pool that the options name calls
 * MPI_Iallreduce() and MPI_Testsome(), and submits itself again. With a pool without workers
 * (WEIR_POOL_NO_THREADS), the callers that wait for a run on that pool do it: give the pool to the
 * session too. The start that finds nothing under way submits this task: a thread that is stopped
 * there, or in the task, holds up the reductions of this rank. There is no thread that nobody asked for, and no other call of MPI but in create and
 * destroy. So the program may call MPI itself, in a thread of its own choice, while no reduction is
 * under way; at other times it needs MPI_THREAD_MULTIPLE. What waits for other ranks keeps a
 * processor busy, as MPI does itself.
 *
 * Order of the sum. That of MPI_Iallreduce(), which gives all ranks the same bits. Whether two runs
 * give the same ones depends on the implementation of MPI; those of Open MPI do.
 *
 * A step that ends early. A share that has not been sent is taken back, and the rank can run the
 * step again. One that has been sent cannot: the other ranks get their sum and go on, and this rank
 * did not. So the transport refuses all further reductions with WEIR_FAILED_PRECONDITION, and the
 * program should end the job (MPI_Abort()) and start again from a checkpoint. A step that uses this
 * transport therefore has a deadline only for the case that a rank hangs.
 *
 * A rank that dies. mpirun ends the job, and names the rank. An error that MPI reports is the status
 * WEIR_INTERNAL of the step, with MPI's words.
 * @since 0.1
 */
#ifndef WEIR_MPI_H
#define WEIR_MPI_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/pool.h>
#include <weir/status.h>
#include <weir/transport.h>

WEIR_BEGIN_DECLS

typedef struct weir_mpi weir_mpi;

enum weir_mpi_limits { WEIR_MPI_MAX_CHANNELS = 64 };

struct weir_mpi_options {
	size_t struct_size; /* WEIR_MPI_OPTIONS_INIT sets it */
	weir_pool *pool;    /* needed; borrowed */
	const void *comm;   /* the address of an MPI_Comm, which is duplicated; NULL: MPI_COMM_WORLD */
	size_t channels;    /* all-reduce nodes at one time, at most WEIR_MPI_MAX_CHANNELS; 0: 8 */
	const weir_allocator *allocator; /* for the transport; NULL: the default allocator */
};
#define WEIR_MPI_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_mpi_options)

/*
 * Makes this process a rank. All ranks of the communicator call it, with the same number of channels,
 * of which each gets a communicator of its own. Errors: WEIR_INVALID_ARGUMENT if an argument or the
 * pool is NULL, struct_size is wrong, or there are too many channels. WEIR_FAILED_PRECONDITION if MPI
 * is not initialized, is finalized, or does not provide MPI_THREAD_SERIALIZED. WEIR_INTERNAL with
 * MPI's words. WEIR_RESOURCE_EXHAUSTED. A rank on which it fails should end the job: others may wait
 * for it.
 *
 * Source: lib/mpi/ranks/transport.c.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpi_create(const struct weir_mpi_options *options, weir_mpi **out,
                                          weir_error *error);

/*
 * Frees the transport and its communicators; all ranks call it, before MPI_Finalize(). Accepts NULL.
 * Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while a channel is open, a transfer is not
 * released, or MPI still has a share of this rank.
 * @since 0.1
 */
WEIR_API enum weir_status weir_mpi_destroy(weir_mpi *mpi, weir_error *error);

/*
 * The transport, a part of `mpi`. Its channels need shapes that are known, and each keeps the divisor
 * of its first reduction: one with another divisor gets WEIR_INVALID_ARGUMENT, and as the other ranks may
 * not be refused, later reductions of this rank fail. NULL for NULL.
 * @since 0.1
 */
WEIR_API weir_transport *weir_mpi_transport(weir_mpi *mpi);

WEIR_END_DECLS

#endif
