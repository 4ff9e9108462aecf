/*
 * shm_ring.h - bounded lock-free FIFO of items between processes, which survives kill -9.
 *
 * Use it to hand messages or arrays from process to process through shared memory. A process that
 * is killed at any instruction, or stopped, blocks no other process, tears no item and gives none
 * twice. Items have 8 bytes to 1 MiB and are written and read in place. For threads of one process
 * use weir/ring.h or weir/queue.h. If only the newest value matters, use weir/shm_latest.h.
 *
 * | call                 | threads | progress           | blocks on    | allocates | signal-safe |
 * |----------------------|---------|--------------------|--------------|-----------|-------------|
 * | weir_shm_ring_create, _attach | one | system calls  | nothing      | maps      | no          |
 * | weir_shm_ring_destroy | one, last | system calls     | nothing      | no        | no          |
 * | weir_shm_ring_try_reserve | any | lock-free (1)     | nothing      | no        | yes         |
 * | weir_shm_ring_try_publish, _try_take | any | lock-free | nothing   | no        | yes (2)     |
 * | weir_shm_ring_publish, _take | any | lock-free if there is room or an item | room, an item | to wait with a token | no |
 * | weir_shm_ring_release | any    | wait-free          | nothing      | no        | yes         |
 * | weir_shm_ring_try_enqueue, _try_dequeue | any | lock-free (1) | nothing | no   | yes (2)     |
 * | weir_shm_ring_enqueue, _dequeue | any | lock-free (1) if there is room or an item | room, an item | to wait with a token | no |
 * | weir_shm_ring_recover | any    | lock-free, system calls | nothing | no        | no          |
 * | weir_shm_ring_close  | any     | lock-free          | nothing      | no        | yes         |
 * | weir_shm_ring_closed, _size_approx | any | wait-free | nothing    | no        | yes         |
 * | weir_shm_ring_capacity, _item_size | any | wait-free | nothing    | no        | yes         |
 * | weir_shm_ring_set_bell, _ask_bell | any | wait-free | nothing     | no        | yes         |
 *
 * (1) At most frames_per_process frames of a process are in use at a time: by threads that are
 *     between reserve and publish or between take and release, or inside an enqueue or dequeue. A
 *     thread that finds all of them in use gets WEIR_RESOURCE_EXHAUSTED. Threads that are stopped
 *     keep their frames, and other processes are not concerned.
 * (2) The call makes one system call if a thread of some process sleeps, and one to write a bell.
 *
 * A frame. Each process has a few frames of its own. try_reserve lends the caller one of them. The
 * caller writes the item into frame.data and publishes it: the frame goes into the ring, and the
 * process gets a free one from there. take exchanges one of the process's frames for that of the
 * oldest item, which the caller reads in place until it releases the frame. Nothing is copied.
 *
 * Death. A process that dies between reserve and publish leaves no item. One that dies inside
 * try_publish has published its item completely or not at all. An item that was taken dies with its
 * process: it is not given again. The dead process's frames are its own until a recovery gives them
 * back, with its seat: by weir_shm_ring_recover(), or by an attach that finds no free seat. The ring
 * needs no recovery to go on. A process is gone when Linux says so (/proc/PID/stat: pid, start time,
 * state); all processes must be of one pid and one time namespace. A process that executes another
 * program by exec() without weir_shm_ring_destroy() keeps its seat until it ends.
 *
 * Fork. The handle of the parent does not work in a child: its calls return
 * WEIR_FAILED_PRECONDITION there, or 0. The child attaches by the descriptor.
 *
 * Damage. Another process can write anything into shared memory. Then items are wrong or missing,
 * calls refuse, and some return WEIR_DATA_LOSS. But no call accesses memory outside of the mapping,
 * and none raises SIGBUS, for the file is sealed against shrinking (unless the system has no page
 * left for memory that is touched first, with vm.overcommit_memory=2). The bytes of an item can change
 * while they are read, if a process is malicious. Memory is taken from the system when a frame is
 * first written; a process that exceeds the limit of its cgroup is killed, as for any memory.
 *
 * Ordering. What a process wrote before it published an item is visible to the process that takes
 * it. All calls are linearizable in C11, and so are "full" and "empty". A close does not take effect
 * at a single instant, as in weir/ring.h.
 *
 * Source: lib/weir/shm/frames.c describes and proves it; the ring is that of weir/ring.h.
 * @since 0.1
 */
#ifndef WEIR_SHM_RING_H
#define WEIR_SHM_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_shm_ring weir_shm_ring;

enum weir_shm_ring_limits {
	WEIR_SHM_RING_MAX_CAPACITY = 524288, /* 2^19 */
	WEIR_SHM_RING_MIN_ITEM = 8,          /* bytes */
	WEIR_SHM_RING_MAX_ITEM = 1048576,    /* bytes; 2^20 */
	WEIR_SHM_RING_MAX_PROCESSES = 64,
	WEIR_SHM_RING_MAX_FRAMES = 64 /* of a process */
};

struct weir_shm_ring_options {
	size_t struct_size;          /* WEIR_SHM_RING_OPTIONS_INIT sets it */
	uint32_t processes;          /* that can be attached at a time; 0: 16; at most 64 */
	uint32_t frames_per_process; /* that its threads can use at a time; 0: 4; at most 64 */
	uint32_t flags;              /* must be 0 */
};
#define WEIR_SHM_RING_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_shm_ring_options)

/*
 * A frame that a call lends. `data` is aligned to 64 bytes, or to 16 if the ring's items have at most
 * 48 bytes. size: after a reserve the room, which is the item size of the ring; after a take the
 * size of the item. `hand` belongs to the ring.
 */
struct weir_shm_frame {
	void *data;
	size_t size; /* bytes */
	uint32_t hand;
};

/*
 * Creates a ring in the memory of `fd`: an empty memfd, made with memfd_create(name,
 * MFD_ALLOW_SEALING). The call makes it as large as necessary and seals it against shrinking. It
 * holds exactly `capacity` items of up to item_size bytes each, and capacity + processes *
 * frames_per_process frames. The creator is attached. It may close fd afterwards; other processes
 * get it by inheritance or by SCM_RIGHTS. options may be NULL.
 *
 * Errors: WEIR_INVALID_ARGUMENT if out is NULL, a number is out of bounds, a flag is unknown, or
 * struct_size is wrong. WEIR_FAILED_PRECONDITION if the file is not empty, cannot be sealed, or
 * /proc is not mounted. WEIR_RESOURCE_EXHAUSTED (memory, address space, or RLIMIT_FSIZE, without the
 * signal SIGXFSZ).
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_create(int fd, size_t capacity, size_t item_size,
                                               const struct weir_shm_ring_options *options,
                                               weir_shm_ring **out, weir_error *error);

/*
 * Attaches this process to the ring in fd. It gets a seat; if none is free, the call first recovers
 * those of processes that are gone.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL, or fd holds another kind of object).
 * WEIR_FAILED_PRECONDITION if the file holds no complete ring (yet), is not sealed and cannot be,
 * belongs to another pid namespace, or /proc is not mounted. WEIR_UNIMPLEMENTED if another version
 * of the layout is in it. WEIR_DATA_LOSS if it is damaged or too small. WEIR_RESOURCE_EXHAUSTED if
 * all seats are taken, or address space is missing.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_attach(int fd, weir_shm_ring **out, weir_error *error);

/*
 * Detaches this process: gives back its seat and unmaps the memory. The ring remains for the other
 * processes, and in the descriptor. Accepts NULL. Errors: WEIR_FAILED_PRECONDITION if a frame is
 * reserved or taken, if a thread that fires a token is still about to wake a waiter, and in the child
 * of a fork.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_destroy(weir_shm_ring *ring, weir_error *error);

/*
 * Lends the caller one of the process's frames. Errors: WEIR_RESOURCE_EXHAUSTED if all are in use.
 * WEIR_INVALID_ARGUMENT (NULL). WEIR_FAILED_PRECONDITION in the child of a fork.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_try_reserve(weir_shm_ring *ring,
                                                    struct weir_shm_frame *frame);

/*
 * Publishes the first `size` bytes of a frame, reserved or taken, as the newest item. On WEIR_OK the
 * frame is no longer the caller's. On an error the caller still has it.
 *
 * Errors: WEIR_WOULD_BLOCK if the ring held `capacity` items. WEIR_CANCELLED if it is closed.
 * WEIR_INVALID_ARGUMENT if an argument is NULL, size is larger than the item size, or the frame is
 * not lent. WEIR_FAILED_PRECONDITION in the child of a fork. WEIR_DATA_LOSS.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_try_publish(weir_shm_ring *ring,
                                                    struct weir_shm_frame *frame, size_t size);
/*
 * The same; waits for room. Errors also: WEIR_DEADLINE_EXCEEDED, WEIR_CANCELLED if the token fired
 * (cancel may be NULL), WEIR_RESOURCE_EXHAUSTED if there is no memory to wait with a token. A sleeper
 * looks again every 100 ms, because a process that should wake it may have died.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_publish(weir_shm_ring *ring, struct weir_shm_frame *frame,
                                                size_t size, uint64_t deadline_ns,
                                                weir_cancel *cancel, weir_error *error);

/*
 * Takes the oldest item. The caller reads it in frame->data and releases the frame.
 *
 * Errors: WEIR_WOULD_BLOCK if the ring is empty. WEIR_OUT_OF_RANGE if it is drained.
 * WEIR_RESOURCE_EXHAUSTED if all frames of the process are in use. WEIR_INVALID_ARGUMENT (NULL).
 * WEIR_FAILED_PRECONDITION in the child of a fork. WEIR_DATA_LOSS. *frame is then untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_try_take(weir_shm_ring *ring, struct weir_shm_frame *frame);
/* The same; waits for an item. Errors also as for weir_shm_ring_publish(). @since 0.1 */
WEIR_API enum weir_status weir_shm_ring_take(weir_shm_ring *ring, struct weir_shm_frame *frame,
                                             uint64_t deadline_ns, weir_cancel *cancel,
                                             weir_error *error);

/*
 * Gives back a frame that was taken, or reserved and not published. Errors: WEIR_INVALID_ARGUMENT
 * (NULL, or the frame is not lent).
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_release(weir_shm_ring *ring, struct weir_shm_frame *frame);

/*
 * Enqueue a copy of data[0 .. size-1]; dequeue the oldest item into buffer, whose `room` must be at
 * least the item size, and store its size in *size. Errors as for reserve and publish, and for take.
 * On an error the buffer is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_try_enqueue(weir_shm_ring *ring, const void *data,
                                                    size_t size);
WEIR_API enum weir_status weir_shm_ring_try_dequeue(weir_shm_ring *ring, void *buffer, size_t room,
                                                    size_t *size);
WEIR_API enum weir_status weir_shm_ring_enqueue(weir_shm_ring *ring, const void *data, size_t size,
                                                uint64_t deadline_ns, weir_cancel *cancel,
                                                weir_error *error);
WEIR_API enum weir_status weir_shm_ring_dequeue(weir_shm_ring *ring, void *buffer, size_t room,
                                                size_t *size, uint64_t deadline_ns,
                                                weir_cancel *cancel, weir_error *error);

/*
 * Gives back the seats, with the frames, of processes that are gone; *seats (may be NULL) is their
 * number. Any number of processes may call it at a time, and be killed inside.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL). WEIR_FAILED_PRECONDITION in the child of a fork.
 * WEIR_DATA_LOSS if a seat is damaged; it stays taken.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_recover(weir_shm_ring *ring, size_t *seats);

/*
 * Closes the ring for all processes, as weir_ring_close(). Wakes all that wait. Idempotent.
 * @since 0.1
 */
WEIR_API void weir_shm_ring_close(weir_shm_ring *ring);
/* Returns true after weir_shm_ring_close(), else false. @since 0.1 */
WEIR_API bool weir_shm_ring_closed(const weir_shm_ring *ring);
/*
 * The number of items, 0 .. capacity; exact while no other thread or process uses the ring.
 * @since 0.1
 */
WEIR_API size_t weir_shm_ring_size_approx(const weir_shm_ring *ring);
/* What the ring was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_shm_ring_capacity(const weir_shm_ring *ring);
WEIR_API size_t weir_shm_ring_item_size(const weir_shm_ring *ring);

/* What a bell tells: that there may be an item, or room. */
enum weir_shm_ring_side { WEIR_SHM_RING_ITEMS = 0, WEIR_SHM_RING_ROOM = 1 };

/*
 * For event loops: an eventfd of the caller's, known to both processes (by inheritance or
 * SCM_RIGHTS), as the bell of one side. weir_shm_ring_set_bell() makes this process's publishes
 * (ITEMS) or takes (ROOM) write to it when a poller has asked; -1 ends that. The eventfd stays the
 * caller's; it must have EFD_NONBLOCK, and may be closed only while no call that could ring is under
 * way. weir_shm_ring_ask_bell() asks for one write, by the next change of any process that has a
 * bell for this side. A poller asks, then tries once more, and polls if there was still nothing. It
 * polls for at most 100 ms or so, because a process can die between its change and the write.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL, the side is unknown, or fd is not open, blocks, or is a pipe or
 * socket, which could raise SIGPIPE). WEIR_FAILED_PRECONDITION in the child of a fork.
 * @since 0.1
 */
WEIR_API enum weir_status weir_shm_ring_set_bell(weir_shm_ring *ring, enum weir_shm_ring_side side,
                                                 int fd);
WEIR_API enum weir_status weir_shm_ring_ask_bell(weir_shm_ring *ring, enum weir_shm_ring_side side);

WEIR_END_DECLS

#endif
