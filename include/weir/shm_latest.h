/*
 * shm_latest.h - the newest value of one writer, for any number of reading processes.
 *
 * Use it for state that other processes follow as it changes: parameters, a configuration, a
 * position. A read copies the newest value out; values that come and go between two reads are
 * skipped. A process that is killed at any instruction, or stopped, makes no value torn and blocks
 * no other process. If every value matters, use weir/shm_ring.h. Between threads of one process use
 * weir/var.h and weir/watch.h.
 *
 * | call                  | threads | progress          | blocks on    | allocates | signal-safe |
 * |-----------------------|---------|-------------------|--------------|-----------|-------------|
 * | weir_shm_latest_create, _attach | one | system calls | nothing     | maps      | no          |
 * | weir_shm_latest_destroy | one, last | system calls  | nothing      | no        | no          |
 * | weir_shm_latest_write | one at a time, of one process (1) | wait-free | nothing | no | no      |
 * | weir_shm_latest_try_read | any  | wait-free (2)     | nothing      | no        | yes         |
 * | weir_shm_latest_read  | any     | wait-free if there is a newer value (2) | a newer value | to wait with a token | no |
 * | weir_shm_latest_version, _value_size | any | wait-free | nothing  | no        | yes         |
 * | weir_shm_latest_set_bell, _ask_bell | any | wait-free | nothing   | no        | yes         |
 *
 * (1) The first call of a process makes system calls, to see that no other process is the writer. It
 *     retries when at that moment another one takes that role, or frees that of a dead writer. A write
 *     makes one system call if a thread of some process sleeps, and one to write a bell.
 * (2) At most reads_per_process reads of a process are under way at a time. A thread that finds that
 *     many gets WEIR_RESOURCE_EXHAUSTED. Its process picks one of them by CAS, and may have to retry
 *     when its other threads read at the same time.
 *
 * The writer. The first process that writes is the writer until it detaches or is gone. Meanwhile a
 * write of another process returns WEIR_FAILED_PRECONDITION. After that the next process that writes
 * takes over; the value and the versions go on. Several writers at a time are not supported: send
 * their values to one process with a ring.
 *
 * Death. A writer that dies inside a write has published its value completely or not at all. A
 * reader that dies pins one buffer, and there are enough. So nothing has to be recovered. The seat of
 * a process that is gone is given to the next that attaches and finds no free one. When a process is
 * gone, and what holds after fork() and exec() and for damaged memory: as in weir/shm_ring.h.
 *
 * Ordering. A process that reads a version sees what the writer wrote before it published it.
 *
 * Memory: processes * reads_per_process + 2 buffers of value_size bytes, of which the system gives
 * only those that are written. Without stalled readers these are 2, and one for each read that is
 * under way.
 *
 * Source: Chen and Burns (1997); lib/weir/shm/newest.c describes and proves it.
 * @since 0.1
 */
#ifndef WEIR_SHM_LATEST_H
#define WEIR_SHM_LATEST_H

#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_shm_latest weir_shm_latest;

enum weir_shm_latest_limits {
	WEIR_SHM_LATEST_MAX_VALUE = 1073741824, /* bytes; 2^30 */
	WEIR_SHM_LATEST_MAX_PROCESSES = 64,
	WEIR_SHM_LATEST_MAX_READS = 16 /* of a process */
};

struct weir_shm_latest_options {
	size_t struct_size;         /* WEIR_SHM_LATEST_OPTIONS_INIT sets it */
	uint32_t processes;         /* that can be attached at a time; 0: 16; at most 64 */
	uint32_t reads_per_process; /* that can be under way at a time; 0: 2; at most 16 */
	uint32_t flags;             /* must be 0 */
};
#define WEIR_SHM_LATEST_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_shm_latest_options)

/*
 * Creates it in the memory of `fd`, an empty memfd, as weir_shm_ring_create(). Values have 1 to
 * value_size bytes. There is no value yet. The creator is attached. options may be NULL.
 *
 * Errors: as for weir_shm_ring_create().
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_latest_create(int fd, size_t value_size,
                                                 const struct weir_shm_latest_options *options,
                                                 weir_shm_latest **out, weir_error *error);
/* Attaches this process. Errors: as for weir_shm_ring_attach(). @since 0.1 */
WEIR_API enum weir_status weir_shm_latest_attach(int fd, weir_shm_latest **out, weir_error *error);
/*
 * Detaches this process. The value remains for the others, and in the descriptor. Accepts NULL.
 * Errors: WEIR_FAILED_PRECONDITION if a read or write is under way, if a thread that fires a token is
 * still about to wake a waiter, and in the child of a fork.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_latest_destroy(weir_shm_latest *latest, weir_error *error);

/*
 * Publishes a copy of data[0 .. size-1] as the next version, whose number it stores in *version (may
 * be NULL). Numbers start at 1 and grow by one.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL, or size is 0 or above the value size).
 * WEIR_FAILED_PRECONDITION if another process is the writer, another thread writes now, or this is
 * the child of a fork.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_latest_write(weir_shm_latest *latest, const void *data,
                                                size_t size, uint64_t *version, weir_error *error);

/*
 * Copies the newest value into buffer, whose `room` must be at least the value size, if its version
 * exceeds newer_than. 0 takes any version; the number of the version read last takes the next.
 * Stores the size in *size and the version in *version; each may be NULL.
 *
 * Errors: WEIR_WOULD_BLOCK if there is no newer version. WEIR_INVALID_ARGUMENT (NULL, or too little
 * room). WEIR_RESOURCE_EXHAUSTED: see (2). WEIR_FAILED_PRECONDITION in the child of a fork.
 * WEIR_DATA_LOSS if the shared memory is damaged. On an error the buffer is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_latest_try_read(weir_shm_latest *latest, uint64_t newer_than,
                                                   void *buffer, size_t room, size_t *size,
                                                   uint64_t *version);
/*
 * The same; waits for a newer version. Errors also: WEIR_DEADLINE_EXCEEDED, WEIR_CANCELLED if the
 * token fired (cancel may be NULL), WEIR_RESOURCE_EXHAUSTED if there is no memory to wait with a
 * token. A sleeper looks again every 100 ms, because a writer that should wake it may have died.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_latest_read(weir_shm_latest *latest, uint64_t newer_than,
                                               void *buffer, size_t room, size_t *size,
                                               uint64_t *version, uint64_t deadline_ns,
                                               weir_cancel *cancel, weir_error *error);

/* The number of the newest version; 0: none, or NULL. @since 0.1 */
WEIR_API uint64_t weir_shm_latest_version(const weir_shm_latest *latest);
/* What it was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_shm_latest_value_size(const weir_shm_latest *latest);

/*
 * For event loops: the writer's process sets an eventfd of the caller's, which it writes to when a
 * poller has asked. As weir_shm_ring_set_bell() and weir_shm_ring_ask_bell().
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_latest_set_bell(weir_shm_latest *latest, int fd);
WEIR_API enum weir_status weir_shm_latest_ask_bell(weir_shm_latest *latest);

WEIR_END_DECLS

#endif
