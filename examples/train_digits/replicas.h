/*
 * replicas.h - training by replicas that change together: threads with mirrors of one model, or
 * processes that MPI connects.
 *
 * Each step takes a batch, of which each replica gets a shard. The gradients are averaged, and one
 * commit changes all copies of the parameters, the slots of the optimizer and the number of steps. Ranks
 * compare digests of what they hold after each step. With a checkpoint, the training goes on where the
 * file says, and ends with the same bits as one that was never interrupted.
 */
#ifndef TRAIN_DIGITS_REPLICAS_H
#define TRAIN_DIGITS_REPLICAS_H

#include <stddef.h>
#include <stdint.h>
#include <weir/status.h>

#include "data.h"

struct replicas_settings {
	size_t count;   /* mirrors in this process; 0: this process is a rank of MPI, with one */
	size_t threads; /* that compute; 0: one for each mirror */
	int64_t epochs;
	uint64_t seed;
	const char *checkpoint; /* written after each step, and read at the start if it exists; NULL: none */
	const char *trace;      /* written at the end, by rank 0; NULL: none */
};

/* Returns the exit code of the program. */
int replicas_train(const struct replicas_settings *settings, const struct digits *training,
                   const struct digits *held_out);

#endif
