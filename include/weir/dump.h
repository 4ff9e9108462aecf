/*
 * dump.h - who waits for what, and who would end it: all queues, critical sections, barriers and staging areas of the process,
 * and who keeps memory, written to a file descriptor.
 *
 * Use it when a program hangs, from a watchdog, a debug command or a thread that waits for a signal; it may be called at any
 * time, beside anything. For the numbers of one queue use weir_queue_get_stats(); for a process that cannot call any more, or a
 * core, scripts/gdb/weir.py.
 *
 * | call                           | threads | progress                        | blocks on       | allocates | signal-safe |
 * |--------------------------------|---------|---------------------------------|-----------------|-----------|-------------|
 * | weir_dump                      | any     | lock-free + write(2), /proc     | fd, if it blocks | no       | no          |
 * | weir_queue_announce, weir_tensor_queue_announce | any | lock-free + allocator      | nothing         | yes       | no          |
 * | weir_queue_withdraw            | any     | lock-free                       | nothing         | no        | no          |
 *
 * For each queue of weir/queue.h, those inside of tensor queues among them:
 *
 *     queue "frames" (number 3): FIFO, 2 of 8 inside, open, a batch collects
 *       12 in, 10 out, at most 5 inside; 2 enqueues waited 0.013 s, 7 dequeues 1.204 s; 5 wakes, 9 retries
 *       waits for an item: thread 27605 "eater", dequeue of 4, for 12.3 s
 *       waits for room: select of 2 cases, asynchronous, begun by thread 27604 "main", for 0.8 s
 *       fed by: thread 27611 "files-0", as "queue runner files"
 *
 * of each critical section (weir/critical_section.h), who is inside and who waits:
 *
 *     critical section "press" (number 4): taken by thread 27604 "main"
 *       entered 7 times; 2 waited 0.013 s; 1 wakes, 2 retries
 *       waits to enter: thread 27605 "eater", execute, for 12.3 s
 *
 * of each barrier, staging area and map staging area, what it holds and who waits:
 *
 *     staging area "ahead" (number 5): 2 of 8 tuples, 4096 bytes
 *       waits: thread 27611 "files-0", put, for 0.8 s
 *
 * who keeps replaced versions of variables for a second and more (weir/stall.h: a collection is made on this thread to find
 * them):
 *
 *     memory: thread 27611 "files-0" holds version 7 of variable "weights", 1048704 bytes, replaced 12.3 s ago
 *     memory: thread 27604 "main" has been inside of one call for 3.2 s
 *
 * and how many queues there were. What a dequeue waits for while items are inside is a batch that collects, or min_after_dequeue.
 */
#ifndef WEIR_DUMP_H
#define WEIR_DUMP_H

#include <weir/queue.h>
#include <weir/status.h>
#include <weir/tensor_queue.h>

WEIR_BEGIN_DECLS

/*
 * Writes the state of all of them to fd, which stays the caller's and is written with write(2) only, a few KiB at a time. Takes
 * no lock, and holds nobody up: what it shows of a queue is read piece by piece while others are at work. What is destroyed
 * while it is looked at is given back to its allocator by this call, on this thread, after the call that destroyed it has
 * returned. At most 32 waiters are shown on each side of a queue, or of an area, and 32 announcements. What is made meanwhile
 * may be missing. WEIR_OK; WEIR_INVALID_ARGUMENT: fd is not open for writing. WEIR_DEADLINE_EXCEEDED: fd does not block, and
 * took nothing for a second; WEIR_DATA_LOSS: write(2) failed otherwise; what came before has been written.
 * It takes 4 KiB of stack at most, and maps 16 KiB for itself while it runs. WEIR_RESOURCE_EXHAUSTED: no memory for that, or
 * for this thread's record. As with any write(2) to a pipe or socket without a reader,
 * SIGPIPE is raised unless the program ignores it. @since 0.1
 */
WEIR_API enum weir_status weir_dump(int fd);

/* -- who feeds a queue, and who drains it ------------------------------------------------------------------------------------- */

enum weir_queue_role {
	WEIR_QUEUE_PRODUCER = 1, /* puts items in */
	WEIR_QUEUE_CONSUMER = 2  /* takes items out */
};

typedef struct weir_queue_announcement weir_queue_announcement;

/*
 * Says that the calling thread feeds, or drains, the queue, for weir_dump() and the debugger; nothing else depends on it. `as`
 * (copied, cut to 31 bytes; may be NULL) says what it is there for. *out is withdrawn before the queue is destroyed:
 * weir_queue_destroy() refuses with WEIR_FAILED_PRECONDITION while an announcement stands. Threads of a queue runner that is
 * bound to a queue announce themselves. WEIR_INVALID_ARGUMENT (NULL, unknown role), WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_announce(weir_queue *queue, enum weir_queue_role role, const char *as,
                                              weir_queue_announcement **out, weir_error *error);
WEIR_API enum weir_status weir_tensor_queue_announce(weir_tensor_queue *queue, enum weir_queue_role role,
                                                     const char *as, weir_queue_announcement **out, weir_error *error);
/* By any thread, once. NULL: nothing to do. @since 0.1 */
WEIR_API void weir_queue_withdraw(weir_queue_announcement *announcement);

WEIR_END_DECLS

#endif
