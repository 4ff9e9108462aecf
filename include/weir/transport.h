/*
 * transport.h - what ranks add their tensors up with: within one process, by MPI, by one of yours.
 *
 * Ranks run the same program on their own data. A reduction takes one tensor of each rank, and gives
 * each the sum of all, the same bits for all. A transport is one rank's connection to the others.
 * The transports of weir_ranks_create() connect ranks of one process, such as sessions on threads;
 * those of weir/mpi.h connect processes. A graph uses a transport through weir_op_all_reduce()
 * (weir/flow/replicas.h), and few programs call its functions themselves. To add tensors up that
 * one graph has, no transport is needed.
 *
 * | call                | threads   | progress             | blocks on | allocates | signal-safe |
 * |---------------------|-----------|----------------------|-----------|-----------|-------------|
 * | weir_ranks_create   | any       | allocator            | allocator | yes       | no          |
 * | weir_ranks_destroy  | one, last | wait-free            | nothing   | no        | no          |
 * | weir_ranks_transport | any      | wait-free            | nothing   | no        | no          |
 *
 * The functions of a transport of weir_ranks_create():
 * | function            | threads   | progress             | blocks on | allocates | signal-safe |
 * |---------------------|-----------|----------------------|-----------|-----------|-------------|
 * | open, close         | any       | lock-free            | nothing   | no        | no          |
 * | start               | any       | lock-free + the sum (1) | allocator | yes    | no          |
 * | cancel              | any       | lock-free + done     | nothing   | no        | no          |
 * | release             | any       | wait-free            | nothing   | no        | no          |
 *
 * (1) The rank that comes last adds up, and runs the `done` of all ranks. A thread that is stopped
 *     there stops this reduction, and no other: what ranks wait for is each other.
 *
 * Channels. Several reductions may be under way at one time, and ranks may start them in different
 * orders. Each has a channel, and in one channel the ranks' first, second, third starts belong
 * together. Ranks open their channels in the same order, so that they get the same numbers. In a
 * channel a rank has one reduction at a time.
 *
 * Order of the sum. By pairs: of four ranks (0 + 1) + (2 + 3); in general the sum of the largest
 * power of two of the ranks that is less than all, plus the sum of the others. It depends on nothing
 * else, so the result has the same bits in each run. (A transport may have another order, which it
 * states; all ranks still get the same bits.) Floating-point sums are in the dtype itself; integers
 * wrap.
 *
 * Ordering. What a rank did before `start` happens before the `done` of each rank.
 * @since 0.1
 */
#ifndef WEIR_TRANSPORT_H
#define WEIR_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>
#include <weir/tensor.h>

WEIR_BEGIN_DECLS

typedef struct weir_transport weir_transport;
/* One reduction of one rank, under way. */
typedef struct weir_transfer weir_transfer;

/*
 * The end of a reduction, called once. With WEIR_OK, `sum` is a reference that the callee releases,
 * and `error` is NULL; ranks of one process may get the same tensor. Otherwise `sum` is NULL. It may
 * run inside `start` or `cancel`, on any thread, and must not block. If a completion of Weir runs on
 * that thread, ranks of one process are told after it. So any number of reductions, each started by
 * the completion of the one before, run on a small stack.
 */
typedef void weir_reduced_fn(void *context, enum weir_status status, const weir_error *error,
                             weir_tensor *sum);

/* What reductions of one channel are about. Ranks that open it must agree about all of it. */
struct weir_channel {
	const char
		*name; /* copied, as far as the transport compares it: its first 63 bytes, or a digest */
	enum weir_dtype dtype;
	const weir_shape *shape; /* may have unknown dims, or be NULL, if the transport accepts that */
};

/* What a rank gives to a reduction. */
struct weir_reduction {
	uint32_t channel;
	weir_tensor *input; /* f32, f64, i32 or i64; the transport takes its own reference */
	uint64_t divisor;   /* of the sum, the same on all ranks; 1: none; of integers always 1 */
	/* for the transfer, and for the sum if the rank gets one of its own; NULL: the default allocator */
	const weir_allocator *allocator;
	weir_reduced_fn *done;
	void *context;
};

/*
 * Gives *channel the lowest number that this rank has free. Errors: WEIR_INVALID_ARGUMENT,
 * WEIR_RESOURCE_EXHAUSTED if all numbers are taken.
 */
typedef enum weir_status weir_transport_open_fn(weir_transport *transport,
                                                const struct weir_channel *what, uint32_t *channel,
                                                weir_error *error);
/* No reduction of this rank is under way in the channel. */
typedef void weir_transport_close_fn(weir_transport *transport, uint32_t channel);
/*
 * Starts a reduction and does not wait. If this succeeds, done() is called once, and *transfer is a
 * handle that the caller gives back with `release`; if it fails, done() is not called. If ranks
 * disagree about the channel, the shape or the divisor, all get WEIR_INVALID_ARGUMENT. Errors of the
 * call: WEIR_FAILED_PRECONDITION if a reduction of this rank is under way in the channel.
 * WEIR_RESOURCE_EXHAUSTED.
 */
typedef enum weir_status weir_transport_start_fn(weir_transport *transport,
                                                 const struct weir_reduction *reduction,
                                                 weir_transfer **transfer, weir_error *error);
/*
 * Ends a reduction whose sum is not being made yet: done() gets the cause, and the other ranks go on
 * waiting for this one. If it is too late for that, the reduction ends as it would have. (A
 * transport that cannot withdraw what it has sent says what happens then.) Called at most once for a
 * transfer, before `release`.
 */
typedef void weir_transport_cancel_fn(weir_transport *transport, weir_transfer *transfer,
                                      const weir_error *cause);
typedef void weir_transport_release_fn(weir_transport *transport, weir_transfer *transfer);

/* A transport of yours is a struct that begins with this one. All fields are constant. */
struct weir_transport {
	size_t struct_size; /* WEIR_TRANSPORT_INIT sets it */
	const char *name;   /* for messages */
	size_t size;        /* ranks */
	size_t rank;        /* of them, this one: 0 .. size-1 */
	weir_transport_open_fn *open;
	weir_transport_close_fn *close;
	weir_transport_start_fn *start;
	weir_transport_cancel_fn *cancel;
	weir_transport_release_fn *release;
};
#define WEIR_TRANSPORT_INIT WEIR_STRUCT_SIZE(struct weir_transport)

/* Ranks of one process. */
typedef struct weir_ranks weir_ranks;

enum weir_ranks_limits { WEIR_RANKS_MAX = 16, WEIR_RANKS_MAX_CHANNELS = 64 };

struct weir_ranks_options {
	size_t struct_size; /* WEIR_RANKS_OPTIONS_INIT sets it */
	const char *name;   /* for messages; copied; NULL: "ranks" */
	size_t channels;    /* at most WEIR_RANKS_MAX_CHANNELS; 0: 16 */
	/*
	 * For the ranks, and for the sums, which all ranks share and which may outlast them; NULL: the
	 * default allocator.
	 */
	const weir_allocator *allocator;
};
#define WEIR_RANKS_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_ranks_options)

/*
 * Creates `size` ranks, 1 to WEIR_RANKS_MAX. options may be NULL. Errors: WEIR_INVALID_ARGUMENT if
 * out is NULL, struct_size is wrong, or there are too many ranks or channels, or no ranks.
 * WEIR_RESOURCE_EXHAUSTED.
 *
 * Source: lib/weir/run/ranks.c.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ranks_create(size_t size, const struct weir_ranks_options *options,
                                            weir_ranks **out, weir_error *error);

/*
 * Frees the ranks and their transports. Accepts NULL. Errors: WEIR_FAILED_PRECONDITION, and nothing
 * happens, while a channel is open or a transfer is not released.
 * @since 0.1
 */
WEIR_API enum weir_status weir_ranks_destroy(weir_ranks *ranks, weir_error *error);

/* The transport of rank `rank`, a part of `ranks`; NULL if there is no such rank. @since 0.1 */
WEIR_API weir_transport *weir_ranks_transport(weir_ranks *ranks, size_t rank);

WEIR_END_DECLS

#endif
