/*
 * dump.h - writes which threads wait for what, and which would end the wait, to a descriptor.
 *
 * Use it when a program hangs: from a watchdog, a debug command, or a thread that waits for a
 * signal. It may be called at any time. It covers all queues, critical sections, keyed joins, staging
 * areas and iterators of the process, and whatever keeps replaced versions in memory. For the
 * statistics of one queue, use weir_queue_get_stats(). For a process that cannot make calls any
 * longer, or a core file, use scripts/gdb/weir.py.
 *
 * | call            | threads | progress             | blocks on        | allocates | signal-safe |
 * |-----------------|---------|----------------------|------------------|-----------|-------------|
 * | weir_dump       | any     | lock-free + write(2), /proc | fd, if it blocks | no | no          |
 *
 * For each queue of weir/queue.h, including those inside tensor queues:
 *
 *     queue "frames" (number 3): FIFO, 2 of 8 inside, open, a batch collects
 *       12 in, 10 out, at most 5 inside; 2 enqueues waited 0.013 s, 7 dequeues 1.204 s; 5 wakes, 9 retries
 *       waits for an item: thread 27605 "eater", dequeue of 4, for 12.3 s
 *       waits for room: select of 2 cases, asynchronous, begun by thread 27604 "main", for 0.8 s
 *       fed by: thread 27611 "files-0", as "queue runner files"
 *
 * for each critical section (weir/critical_section.h):
 *
 *     critical section "press" (number 4): taken by thread 27604 "main"
 *       entered 7 times; 2 waited 0.013 s; 1 wakes, 2 retries
 *       waits to enter: thread 27605 "eater", execute, for 12.3 s
 *
 * for each keyed join, staging area and map staging area:
 *
 *     staging area "ahead" (number 5): 2 of 8 tuples, 4096 bytes
 *       waits: thread 27611 "files-0", put, for 0.8 s
 *
 * for each iterator of a dataset (weir/dataset.h), with its first windows:
 *
 *     iterator "digits" (number 6): 12 given; prefetch(4): 1 of 4 ahead, consumer waits; map(2): 2 of 2 ahead
 *       waits: thread 27605 "trainer", next, for 0.8 s
 *
 * for each stall of at least one second (weir/stall.h; this thread runs a collection to find them):
 *
 *     memory: thread 27611 "fill" holds version 7 of variable "w", 65664 bytes, replaced 12.3 s ago
 *     memory: thread 27604 "main" has been inside one call for 3.2 s
 *
 * and the number of queues. If a dequeue waits although there are items, the reason is the batch
 * that collects, or min_after_dequeue.
 */
#ifndef WEIR_DUMP_H
#define WEIR_DUMP_H

#include <weir/api.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

/*
 * Writes the state of all these objects to fd with write(2), a few KiB at a time. The caller keeps
 * fd. The call takes no lock and delays no other thread: it reads the state of a queue piece by
 * piece while others use it. If an object is destroyed while the call reads it, this call returns
 * the memory to its allocator, on this thread, after the destroying call has returned. Objects
 * created meanwhile may be missing. The call shows at most 32 waiters for each side of a queue or
 * area, and at most 32 announcements. The call uses at most 4 KiB of stack, and maps 16 KiB while
 * it runs. As with any write(2) to a pipe or socket without a reader, SIGPIPE is raised unless the
 * program ignores it.
 *
 * Errors: WEIR_INVALID_ARGUMENT if fd is not open for writing. WEIR_DEADLINE_EXCEEDED if fd is
 * non-blocking and accepted nothing for a second. WEIR_DATA_LOSS if write(2) failed otherwise. In
 * both cases the earlier output has been written. WEIR_RESOURCE_EXHAUSTED if there is no memory for
 * the map, or for this thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dump(int fd);

WEIR_END_DECLS

#endif
