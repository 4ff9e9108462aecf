/*
 * mpi_double.h - stands in for MPI: ranks that are threads of one process, and calls that fail when
 * told to. With it the sanitizers see lib/mpi whole, which they do not see behind a real MPI.
 *
 * It has those functions that lib/mpi calls. The rank of a communicator is that of the thread that
 * duplicates it: see double_be_rank(). Links in place of Open MPI, whose header it uses.
 */
#ifndef MPI_DOUBLE_H
#define MPI_DOUBLE_H

#include <stdbool.h>

enum { DOUBLE_RANKS = 4, DOUBLE_CHANNELS = 8 };

/* Begins anew, with so many ranks. */
void double_begin(int ranks);
/* This thread is a rank from now on. */
void double_be_rank(int rank);
/* What MPI_Init_thread() gave; -1: it was not called; -2: MPI is finalized. */
void double_provide(int level);

/* Each fails the next call of its kind, once. */
void double_fail_iallreduce(void);
void double_fail_testsome(void);
/* The so-manieth duplication from now on fails. */
void double_fail_dup(int after);

/* Communicators that exist. */
int double_comms(void);
/* Shares that MPI has, and whose sum some rank has not fetched. */
int double_shares(void);
/* Ends all that MPI has, as if the other ranks had come, so that a test can clean up. */
void double_let_go(void);
/* Were two threads of one rank in MPI at a time, or one request used twice? */
bool double_misused(void);

#endif
