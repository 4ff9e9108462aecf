/*
 * queue.h - bounded queues of pointers that wait, close and cancel: FIFO, shuffle and by priority.
 *
 * Use it to pass work between threads that may sleep. The fast path is lock-free (a ring, a shuffle store, or a priority
 * queue); a thread sleeps only when the queue is full or empty. For a value that is never waited for use weir/ring.h; for
 * tuples of tensors with a checked spec use weir/tensor_queue.h.
 *
 * | call                           | threads | progress                     | blocks on          | allocates       | signal-safe |
 * |--------------------------------|---------|------------------------------|--------------------|-----------------|-------------|
 * | weir_queue_create              | any     | lock-free + allocator        | allocator          | yes             | no          |
 * | weir_queue_destroy             | one, last | lock-free + allocator + drop | nothing          | at a thread's first use of Weir | no |
 * | weir_queue_try_enqueue, _try_dequeue | any | lock-free                    | nothing            | at a thread's first use of Weir | no |
 * | weir_queue_enqueue[_many]      | any     | lock-free while there is room | room, up to the deadline | when it waits | no     |
 * | weir_queue_dequeue[_many,_up_to] | any   | lock-free while there are items | items, up to the deadline | when it waits; batches always | no |
 * | weir_queue_start               | any     | lock-free + allocator        | nothing            | yes             | no          |
 * | weir_queue_op_cancel           | any     | lock-free + the completion   | nothing            | at a thread's first use of Weir | no |
 * | weir_queue_op_release          | any     | wait-free + allocator        | nothing            | no              | no          |
 * | weir_queue_readable_fd, _writable_fd | any | lock-free + system     | nothing            | the first time  | no          |
 * | weir_queue_close               | any     | lock-free                    | nothing            | at a thread's first use of Weir | no |
 * | weir_queue_get_stats           | any     | wait-free                    | nothing            | no              | yes         |
 * | weir_queue_size, _closed, _capacity, _seed, _name | any | wait-free               | nothing            | no              | yes         |
 *
 * "Full" and "empty", as weir_queue_try_enqueue and _try_dequeue say them, are those of the store, in C11: exact of a FIFO
 * queue (weir/ring.h), of one by priority as of weir/priority_queue.h; of a shuffle queue they are exact only while no other
 * call is under way. While a batch that cannot be filled gives its items back they are less than that: lib/queue/store.c.
 *
 * A thread that is stopped inside a call holds up nobody who does not wait. Of those who wait it holds up the one operation
 * that it was carrying on at that moment, which then not even its deadline ends (two, when it was cancelling one); and, if that
 * is the batch that collects, the batch dequeues behind it and the news that a closed queue is drained. In a fair queue try_
 * calls say WEIR_WOULD_BLOCK meanwhile, if others wait.
 *
 * A call that would have to wait first yields the processor, up to three times, and looks again, unless that was slow of late
 * or the queue is fair. Waiters of one direction are served in arrival order; a newcomer that finds room or an item does not
 * wait behind them unless the queue is fair. Batch dequeues take turns: one collects at a time. Ordering: what was written
 * before an item was enqueued is visible to whoever dequeues it, and what was written before a close to whoever is told that
 * the queue is closed.
 *
 * Ownership: an item belongs to the queue from the moment its enqueue succeeded until its dequeue succeeds. On any other
 * outcome of an enqueue the caller still owns it.
 */
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/status.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_queue weir_queue;
typedef struct weir_queue_op weir_queue_op;

enum weir_queue_order {
	WEIR_QUEUE_FIFO = 0,
	WEIR_QUEUE_SHUFFLE = 1, /* a dequeue takes an item uniformly at random from those stored */
	WEIR_QUEUE_PRIORITY = 2 /* the item with the smallest key leaves first, equal keys in the order they came */
};

enum { WEIR_QUEUE_FAIR = 1 }; /* flags: a newcomer goes behind those who wait */

/* Called for each item that is still inside when the queue is destroyed. */
typedef void weir_queue_drop_fn(void *context, void *item);

/*
 * The key of an item of a priority queue: always the same while the item is on its way in. Called inside the calls that enqueue,
 * start an enqueue or a select, on their thread and before the item is in, once or more often; never for an item that is in or
 * may have left. It must not block. It may call Weir.
 */
typedef int64_t weir_queue_key_fn(void *context, void *item);

struct weir_queue_options {
	size_t struct_size; /* sizeof(struct weir_queue_options) */
	/* Items, 1 .. WEIR_RING_MAX_CAPACITY (weir/ring.h); shuffle: .. 2^24 - 1; priority: .. 2^24 - 2; required. */
	size_t capacity;
	enum weir_queue_order order;
	uint32_t flags;
	size_t min_after_dequeue; /* shuffle only: items that stay behind while open; < capacity */
	uint64_t seed;            /* shuffle only: 0 draws one; weir_queue_seed() reads it back */
	const char *name;         /* copied, for messages; NULL: "queue" */
	weir_queue_key_fn *key;   /* priority only, and required there */
	void *key_context;
	weir_queue_drop_fn *drop; /* NULL: items left inside are forgotten */
	void *drop_context;
	const weir_allocator *allocator; /* NULL: the default one */
};

/*
 * WEIR_INVALID_ARGUMENT (NULL, capacity 0 or too large, min_after_dequeue >= capacity or not of a shuffle queue, no key for a
 * priority queue or one for another, unknown order or flag, bad struct_size; *error says which), WEIR_RESOURCE_EXHAUSTED. error
 * may be NULL, here and everywhere. @since 0.1
 */
WEIR_API enum weir_status weir_queue_create(const struct weir_queue_options *options, weir_queue **out,
                                            weir_error *error);
/*
 * WEIR_FAILED_PRECONDITION, and nothing happens, while an operation waits in the queue, or its completion is due (see
 * weir_queue_done_fn): close and let them end first; or while a thread is announced (weir/dump.h).
 * Otherwise items left inside go to drop(). No other thread may be using the queue, nor may calls of this thread, but for the
 * one that runs the completion in which it is destroyed. NULL: WEIR_OK.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_destroy(weir_queue *queue, weir_error *error);

/*
 * WEIR_OK, WEIR_WOULD_BLOCK (full), WEIR_CANCELLED (closed), WEIR_INVALID_ARGUMENT (queue NULL), WEIR_RESOURCE_EXHAUSTED (no
 * memory for this thread's record). @since 0.1
 */
WEIR_API enum weir_status weir_queue_try_enqueue(weir_queue *queue, void *item);
/*
 * WEIR_OK, WEIR_WOULD_BLOCK (nothing may leave now), WEIR_OUT_OF_RANGE (closed and drained), WEIR_INVALID_ARGUMENT,
 * WEIR_RESOURCE_EXHAUSTED as above.
 * Of a shuffle queue, WEIR_WOULD_BLOCK of either try_ call may come early: an enqueue or dequeue that is under way can hold
 * back one item, or the room for one, until it ends. Of a priority queue that of an enqueue may: each enqueue that is under way
 * takes the room for one item.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_try_dequeue(weir_queue *queue, void **item);

/*
 * Waits for room until deadline_ns (absolute) or until `cancel` (may be NULL) fires. WEIR_CANCELLED (closed before the call, or
 * with WEIR_CLOSE_CANCEL while it waited, or the token fired), WEIR_DEADLINE_EXCEEDED, WEIR_RESOURCE_EXHAUSTED (no memory to
 * wait with), WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_enqueue(weir_queue *queue, void *item, uint64_t deadline_ns, weir_cancel *cancel,
                                             weir_error *error);
/*
 * Item by item, in order, as room appears; *done (may be NULL) says how many are in, whatever the outcome: those belong to the
 * queue, the rest to the caller. count may exceed the capacity; 0 succeeds at once. Statuses as weir_queue_enqueue.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_enqueue_many(weir_queue *queue, void *const items[], size_t count,
                                                  uint64_t deadline_ns, weir_cancel *cancel, size_t *done,
                                                  weir_error *error);

/*
 * Waits for an item. WEIR_OUT_OF_RANGE (closed and drained; the message tells who closed it and why), WEIR_CANCELLED (token),
 * WEIR_DEADLINE_EXCEEDED, WEIR_RESOURCE_EXHAUSTED, WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_dequeue(weir_queue *queue, void **item, uint64_t deadline_ns, weir_cancel *cancel,
                                             weir_error *error);
/*
 * Exactly `count` items into items[], taken as they arrive, so count may exceed the capacity; of a priority queue the smallest
 * at each moment, and sorted in the end. On any failure what was taken goes back, in order, ahead of anything newer (by
 * priority: of newer items of its key), and items[] is untouched. What it took made room for others, so a queue into which it
 * goes back may hold more than its capacity: up to `count` more. count 0 succeeds at once. WEIR_OUT_OF_RANGE when the closed
 * queue can no longer give `count`; the others as weir_queue_dequeue. @since 0.1
 */
WEIR_API enum weir_status weir_queue_dequeue_many(weir_queue *queue, void *items[], size_t count, uint64_t deadline_ns,
                                                  weir_cancel *cancel, weir_error *error);
/*
 * As weir_queue_dequeue_many while the queue is open; once closed it gives what is left, 1 .. count items, and WEIR_OUT_OF_RANGE
 * when nothing is. *done (not NULL) says how many: 0 on failure.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_dequeue_up_to(weir_queue *queue, void *items[], size_t count, uint64_t deadline_ns,
                                                   weir_cancel *cancel, size_t *done, weir_error *error);

enum weir_queue_op_kind {
	WEIR_QUEUE_OP_ENQUEUE = 1,      /* items[0 .. count-1] go in */
	WEIR_QUEUE_OP_DEQUEUE_MANY = 2, /* all of count, or none */
	WEIR_QUEUE_OP_DEQUEUE_UP_TO = 3
};

/*
 * The one completion of an asynchronous operation, on the thread that made it possible (or inside the starting call). `done`
 * items went in or came out. items is the array given at the start. It may:
 *
 * * start the next operation, and so may that one's completion, any number of times: on each thread completions, those of
 *   weir/select.h, staging.h and others like them included, run one after the other, not one inside the other. What ends while
 *   one runs (in a start, a try_ call, a close, a cancel) is done when that call returns; its completion is due, and called
 *   after the one that runs has returned, before the outermost call does. Those that are due are called in the order in which
 *   their operations ended.
 * * destroy the queue, when no other operation waits and no other call uses it: the call in which it runs takes notice.
 * * end its thread (pthread_exit, pthread_cancel): first those are called that are due on it.
 *
 * It must not block; above all it must not wait for another completion, which may be due on its own thread. (Calls of Weir that
 * wait in a queue, an area, for a variable or for a run of a session call those first that are due. Waits of your own do not.)
 */
typedef void weir_queue_done_fn(void *context, enum weir_status status, const weir_error *error, void **items,
                                size_t done);

/*
 * Starts an operation that holds no thread while it waits. items[] must stay valid until `done` has been called, which happens
 * exactly once. *op (out may be NULL) is the caller's until weir_queue_op_release, and serves to cancel. When the call itself
 * fails (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED) `done` is not called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_start(weir_queue *queue, enum weir_queue_op_kind kind, void *items[], size_t count,
                                           weir_queue_done_fn *done, void *context, weir_queue_op **op,
                                           weir_error *error);
/*
 * Ends it with WEIR_CANCELLED and `cause` (may be NULL) unless it is completing already. Never blocks; idempotent. Accepts NULL.
 * When there is no memory for this thread's record, it takes nothing more and completes when another call comes to it.
 * @since 0.1
 */
WEIR_API void weir_queue_op_cancel(weir_queue_op *op, const weir_error *cause);
/* Gives the handle back; the operation itself goes on. Accepts NULL. @since 0.1 */
WEIR_API void weir_queue_op_release(weir_queue_op *op);

enum weir_close_mode {
	WEIR_CLOSE_DRAIN = 0, /* enqueues that were waiting still go in as room appears */
	WEIR_CLOSE_CANCEL = 1 /* enqueues that wait end with WEIR_CANCELLED */
};
/*
 * Marks the queue closed and returns; never waits. Later enqueues get WEIR_CANCELLED; dequeues take what is left, then
 * get WEIR_OUT_OF_RANGE with `cause` (may be NULL; the first cause wins) in its message. Idempotent; CANCEL may follow DRAIN.
 * WEIR_INVALID_ARGUMENT (queue NULL, unknown mode), WEIR_RESOURCE_EXHAUSTED (no memory for this thread's record; nothing was
 * done). @since 0.1
 */
WEIR_API enum weir_status weir_queue_close(weir_queue *queue, enum weir_close_mode mode, const weir_error *cause);

/*
 * A descriptor for poll, select or epoll (level-triggered), beside others of an event loop: *fd is readable (POLLIN) exactly
 * while a dequeue of one item would not wait, _writable_fd's while an enqueue would not. That includes the end: readable once
 * the queue is closed and drained, so that a poller comes and is told WEIR_OUT_OF_RANGE; writable once it is closed.
 *
 * A poller that finds it readable calls weir_queue_try_dequeue(), and polls again. WEIR_WOULD_BLOCK then means that another
 * thread was faster; or that the descriptor was found readable while another thread's call that took the last item had not
 * returned yet. It is never left unreadable though a dequeue could proceed, but while a thread stands inside the very call that
 * made it possible.
 *
 * The descriptor is the queue's: one for each direction, made at the first request, closed by weir_queue_destroy() and
 * on exec. Do not read, write or close it. From the first request on every call that moves an item pays for it (a
 * read-modify-write, and a system call whenever the answer changes); before that, nothing. In the child of a fork it stands
 * still: ask again there, for one of the child's own. WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED (memory, or file
 * descriptors), WEIR_FAILED_PRECONDITION (the kernel began to refuse membarrier(2) after it had granted it).
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_readable_fd(weir_queue *queue, int *fd, weir_error *error);
WEIR_API enum weir_status weir_queue_writable_fd(weir_queue *queue, int *fd, weir_error *error);

/* 1 after close, else 0. @since 0.1 */
WEIR_API int weir_queue_closed(const weir_queue *queue);
/* Items stored now (approximate while others work); neither a batch being collected nor waiting enqueues count. @since 0.1 */
WEIR_API size_t weir_queue_size(const weir_queue *queue);
/* As it was made; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_queue_capacity(const weir_queue *queue);
/* The seed in use (shuffle), else 0. @since 0.1 */
WEIR_API uint64_t weir_queue_seed(const weir_queue *queue);
/* The queue's name; lives as long as the queue. @since 0.1 */
WEIR_API const char *weir_queue_name(const weir_queue *queue);

/*
 * What happened in a queue since it was made. Calls that find room or an item at once pay nothing for it, but a look at one
 * word of their own: the stores know what went in and came out, and the rest is counted where a call waits, or lets another go
 * on.
 */
struct weir_queue_stats {
	size_t struct_size; /* set by the caller: sizeof(struct weir_queue_stats) */
	/*
	 * Items that went in and came out: exact when no call is under way; else each was right at some moment of the call, items_out
	 * not later than items_in. A batch that is being collected has come out; what it gives back has not. Of a shuffle queue the
	 * calls that are under way make both inexact; of one by priority both begin anew at 2^39 or, if it is small, later.
	 */
	uint64_t items_in;
	uint64_t items_out;
	/*
	 * The most items that were seen inside at once: a lower bound. Of a shuffle queue what each enqueue sees; else it is looked
	 * for at every 64th item that goes in (four times per capacity, if that is below 512), and right once an enqueue found the
	 * queue full. So with one producer it is less than 64 below the truth; each producer that is stopped between its enqueue
	 * and its look may lose one such look.
	 */
	uint64_t high_water;
	/* Operations that had to wait, a select once for each of its cases; the asynchronous ones, too. Exact. */
	uint64_t enqueue_waits;
	uint64_t dequeue_waits;
	/* For how long, all together, in nanoseconds; of operations that have ended. */
	uint64_t enqueue_blocked_ns;
	uint64_t dequeue_blocked_ns;
	/* System calls that were made to wake a thread that waited: never more than operations that waited. Exact. */
	uint64_t wakes;
	/*
	 * How often a waiting operation was carried on by somebody and still could not end. One or two for each wait are usual;
	 * many more say that others are faster than those who wait. Attempts that a lost compare-and-swap repeats are not among them.
	 */
	uint64_t retries;
	uint64_t waiting; /* operations that wait now */
};
/*
 * Fills *stats, up to its struct_size. The numbers are of different moments if others are at work. WEIR_INVALID_ARGUMENT (NULL,
 * struct_size). @since 0.1
 */
WEIR_API enum weir_status weir_queue_get_stats(weir_queue *queue, struct weir_queue_stats *stats);

WEIR_END_DECLS

#endif
