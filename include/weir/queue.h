/*
 * queue.h - bounded queues of pointers in which threads can wait: FIFO, shuffled or by priority.
 *
 * Use it to pass work between threads that may sleep. While there is room or an item, calls are
 * lock-free; a thread sleeps only if the queue is full or empty. If no thread should ever wait, use
 * weir/ring.h. For tuples of tensors with a checked spec, use weir/flow/tensor_queue.h.
 *
 * A producer, the end of the input, and a consumer, which ends after the last item:
 *
 *     status = weir_queue_enqueue(queue, item, WEIR_NO_DEADLINE, NULL, &error);
 *
 *     weir_queue_close(queue, WEIR_CLOSE_DRAIN, NULL);
 *
 *     while ((status = weir_queue_dequeue(queue, &item, WEIR_NO_DEADLINE, NULL, &error)) ==
 *            WEIR_OK)
 *         work_on(item);
 *
 * The last status is WEIR_OUT_OF_RANGE: the queue is drained.
 *
 * | call                 | threads | progress              | blocks on | allocates  | signal-safe |
 * |----------------------|---------|-----------------------|-----------|------------|-------------|
 * | weir_queue_create    | any     | lock-free + allocator | allocator | yes        | no          |
 * | weir_queue_destroy   | one, last | lock-free + allocator (1) | nothing | record (2) | no      |
 * | weir_queue_try_enqueue, _try_dequeue | any | lock-free | nothing   | record (2) | no          |
 * | weir_queue_try_enqueue_many, _try_dequeue_many | any | lock-free | nothing | record (2) | no |
 * | weir_queue_enqueue[_many] | any | lock-free if there is room | room (3) | to wait | no        |
 * | weir_queue_dequeue   | any     | lock-free if there is an item | items (3) | to wait | no     |
 * | weir_queue_dequeue_many, _up_to | any | lock-free if there are items | items (3) | yes | no   |
 * | weir_queue_start     | any     | lock-free + allocator | nothing   | yes        | no          |
 * | weir_queue_readable_fd, _writable_fd | any | lock-free + system | nothing | first time | no   |
 * | weir_queue_close     | any     | lock-free             | nothing   | record (2) | no          |
 * | weir_queue_get_stats | any     | wait-free             | nothing   | no         | yes         |
 * | weir_queue_size_approx, _closed, _capacity | any | wait-free | nothing | no     | yes         |
 * | weir_queue_seed, _name | any   | wait-free             | nothing   | no         | yes         |
 *
 * (1) And the calls of drop().
 * (2) A thread's first call of Weir allocates its record.
 * (3) Up to the deadline.
 *
 * Full and empty. weir_queue_try_enqueue() and _try_dequeue() report the state of the store. Of
 * FIFO and shuffle queues both answers are exact (weir/ring.h). Of a priority queue they are as exact
 * as those of weir/priority_queue.h. They are weaker while a batch that cannot be filled returns its
 * items: see lib/weir/queue/contents.c.
 *
 * Stalled threads. A thread that is stalled inside a call delays no call that does not wait. What
 * it can delay are waiting operations, because threads complete these for each other:
 *
 * - the one operation that it was completing, which then does not end even at its deadline; or two
 *   operations, if it was cancelling one;
 * - if that operation is the batch dequeue that collects: also the batch dequeues that wait for
 *   their turn, and the answer that a closed queue is drained;
 * - if its call lets several operations go on, because it moved several items or closed the queue:
 *   the operations that it has not reached, until another call changes the queue, closes it, or
 *   waits in it.
 *
 * Meanwhile, if others wait, try_ calls on a fair queue return WEIR_WOULD_BLOCK.
 *
 * Waiting. Before a call waits, it yields the processor up to three times and tries again, unless
 * the queue is fair or yielding was slow recently. Waiters of one direction are served in order of
 * arrival. A newcomer that finds room or an item does not wait behind them, unless the queue is
 * fair. One batch dequeue collects at a time; the others wait for their turn.
 *
 * Ordering. What a thread wrote before it enqueued an item is visible to the thread that dequeues
 * it. What a thread wrote before it closed the queue is visible to every thread that finds it
 * closed.
 *
 * Ownership. The queue owns an item from the moment its enqueue succeeds until its dequeue
 * succeeds. After any other outcome of an enqueue the caller still owns the item.
 */
#ifndef WEIR_QUEUE_H
#define WEIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/pending.h>
#include <weir/status.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_queue weir_queue;

enum weir_queue_order {
	WEIR_QUEUE_FIFO = 0,
	WEIR_QUEUE_SHUFFLE = 1, /* a dequeue draws one of the stored items uniformly at random */
	WEIR_QUEUE_PRIORITY = 2 /* the smallest key leaves first, equal keys in FIFO order */
};

enum weir_queue_flags {
	WEIR_QUEUE_FAIR = 1, /* a newcomer goes behind the waiters */
	/*
	 * FIFO only. For queues whose items mostly move in batches: the ring inside has the format SPAN16
	 * (weir/ring.h) if the machine has it. There a batch of up to 256 items that finds room goes in
	 * by one compare-and-swap, and a batch comes out by one for each 64; otherwise each item takes
	 * one. Single items are slower between threads at full speed, and the ring takes about 100 bytes
	 * for each item of the capacity, and up to 40 KiB, instead of 16 bytes.
	 */
	WEIR_QUEUE_BATCHES = 2
};

/* Called for each item that is still stored when the queue is destroyed. */
typedef void weir_queue_drop_fn(void *context, void *item);

/*
 * Returns the key of an item of a priority queue. The key must not change while the item is being
 * enqueued. The function is called one or more times by the calls that enqueue, start an enqueue or
 * select, on their thread and before the item is stored; never for an item that is stored or may
 * have been dequeued. It must not block. It may call Weir.
 */
typedef int64_t weir_queue_key_fn(void *context, void *item);

struct weir_queue_options {
	size_t struct_size; /* WEIR_QUEUE_OPTIONS_INIT sets it */
	/*
	 * Items; required. 1 .. WEIR_RING_MAX_CAPACITY (weir/ring.h); shuffle: at most 2^24 - 1;
	 * priority: at most 2^24 - 2.
	 */
	size_t capacity;
	enum weir_queue_order order;
	uint32_t flags;
	size_t min_after_dequeue; /* shuffle only: items that remain while open; < capacity */
	uint64_t seed;            /* shuffle only; 0: random, see weir_queue_seed() */
	const char *name;         /* copied, for messages; NULL: "queue" */
	weir_queue_key_fn *key;   /* priority only, and required there */
	void *key_context;
	weir_queue_drop_fn *drop; /* NULL: items that remain are forgotten */
	void *drop_context;
	const weir_allocator *allocator; /* NULL: the default allocator */
};
#define WEIR_QUEUE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_queue_options)

/*
 * Creates a queue. error may be NULL, here and everywhere.
 *
 * Errors: WEIR_RESOURCE_EXHAUSTED, and WEIR_INVALID_ARGUMENT (*error says which) if
 * - an argument is NULL, struct_size is wrong, or the order or a flag is unknown;
 * - the capacity is 0 or too large;
 * - min_after_dequeue is not less than the capacity, or the queue does not shuffle;
 * - WEIR_QUEUE_BATCHES is set, and the queue is not FIFO;
 * - a priority queue has no key, or another queue has one.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_create(const struct weir_queue_options *options,
                                            weir_queue **out, weir_error *error);

/*
 * Destroys the queue, and calls drop() for the items that remain. No other thread may use the
 * queue. Another call of this thread must not use it either, except the call that runs the
 * completion in which the queue is destroyed. Accepts NULL.
 *
 * Errors: WEIR_FAILED_PRECONDITION, and nothing happens, while an operation waits in the queue, its
 * completion is due (see weir_queue_done_fn), or a thread is announced (weir/announce.h). Close the
 * queue and let the operations end first.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_destroy(weir_queue *queue, weir_error *error);

/*
 * Enqueues an item if there is room now.
 *
 * Errors: WEIR_WOULD_BLOCK if the queue is full, WEIR_CANCELLED if it is closed,
 * WEIR_INVALID_ARGUMENT if queue is NULL, WEIR_RESOURCE_EXHAUSTED if there is no memory for this
 * thread's record.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_try_enqueue(weir_queue *queue, void *item);

/*
 * Dequeues an item if one may leave now.
 *
 * Errors: WEIR_WOULD_BLOCK if none may leave now, WEIR_OUT_OF_RANGE if the queue is drained,
 * WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED as above.
 *
 * In a priority queue, each enqueue under way occupies the room for one item, so that enqueues get
 * WEIR_WOULD_BLOCK early. In a shuffle queue, each dequeue under way may hold one item that no other
 * dequeue can draw until it ends.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_try_dequeue(weir_queue *queue, void **item);

/*
 * Enqueues items[0 .. *done-1], in order: as many of the `count` items as there is room for now.
 * Those belong to the queue, the rest to the caller. Succeeds if at least one item went in, or
 * count is 0; `done` must not be NULL.
 *
 * Errors, with *done 0: as for weir_queue_try_enqueue(). After WEIR_INVALID_ARGUMENT and
 * WEIR_RESOURCE_EXHAUSTED *done is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_try_enqueue_many(weir_queue *queue, void *const items[],
                                                      size_t count, size_t *done);

/*
 * Dequeues what is there now into items[0 .. *done-1], at most `count` items, in the order in which
 * they leave the queue. For event loops: one call takes all that made a descriptor readable.
 * Succeeds if at least one item came out, or count is 0; `done` must not be NULL.
 *
 * Unlike weir_queue_dequeue_many() it never returns items to the queue. So the items of one call are
 * not always neighbours: another consumer may have taken what was between them.
 *
 * Errors, with *done 0: as for weir_queue_try_dequeue(). After WEIR_INVALID_ARGUMENT and
 * WEIR_RESOURCE_EXHAUSTED *done is untouched.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_try_dequeue_many(weir_queue *queue, void *items[],
                                                      size_t count, size_t *done);

/*
 * Enqueues an item. Waits for room until deadline_ns (absolute) or until `cancel` (may be NULL)
 * fires.
 *
 * Errors: WEIR_CANCELLED if the queue was closed before the call, was closed with WEIR_CLOSE_CANCEL
 * while the call waited, or the token fired. WEIR_DEADLINE_EXCEEDED. WEIR_RESOURCE_EXHAUSTED if
 * there is no memory to wait with. WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_enqueue(weir_queue *queue, void *item, uint64_t deadline_ns,
                                             weir_cancel *cancel, weir_error *error);

/*
 * Enqueues items one by one, in order, as room appears. Whatever the outcome, *done (may be NULL)
 * is the number of items enqueued: those belong to the queue, the rest to the caller. count may
 * exceed the capacity; 0 succeeds immediately. Errors as for weir_queue_enqueue().
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_enqueue_many(weir_queue *queue, void *const items[],
                                                  size_t count, uint64_t deadline_ns,
                                                  weir_cancel *cancel, size_t *done,
                                                  weir_error *error);

/*
 * Dequeues an item. Waits for one until deadline_ns (absolute) or until `cancel` (may be NULL)
 * fires.
 *
 * Errors: WEIR_OUT_OF_RANGE if the queue is drained; the message says by whom and why it was
 * closed. WEIR_CANCELLED if the token fired. WEIR_DEADLINE_EXCEEDED, WEIR_RESOURCE_EXHAUSTED,
 * WEIR_INVALID_ARGUMENT.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_dequeue(weir_queue *queue, void **item, uint64_t deadline_ns,
                                             weir_cancel *cancel, weir_error *error);

/*
 * Dequeues exactly `count` items into items[]. Items are taken as they arrive, so count may exceed
 * the capacity; 0 succeeds immediately. From a priority queue the call takes the smallest key of
 * each moment, and sorts the result.
 *
 * On any failure the items taken return to the queue in their order, ahead of newer items (in a
 * priority queue: ahead of newer items with the same key), and items[] is untouched. Taking them
 * made room for others, so the queue may then hold up to `count` items more than its capacity.
 *
 * Errors: WEIR_OUT_OF_RANGE if the closed queue can no longer supply `count` items; the others as
 * weir_queue_dequeue().
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_dequeue_many(weir_queue *queue, void *items[], size_t count,
                                                  uint64_t deadline_ns, weir_cancel *cancel,
                                                  weir_error *error);

/*
 * Like weir_queue_dequeue_many() while the queue is open. Once it is closed, the call takes what
 * remains, 1 .. count items, and returns WEIR_OUT_OF_RANGE if nothing remains. *done (must not be
 * NULL) is the number of items taken, 0 on failure.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_dequeue_up_to(weir_queue *queue, void *items[], size_t count,
                                                   uint64_t deadline_ns, weir_cancel *cancel,
                                                   size_t *done, weir_error *error);

enum weir_queue_op_kind {
	WEIR_QUEUE_OP_ENQUEUE = 1,      /* enqueues items[0 .. count-1] */
	WEIR_QUEUE_OP_DEQUEUE_MANY = 2, /* all of count, or none */
	WEIR_QUEUE_OP_DEQUEUE_UP_TO = 3
};

/*
 * The completion of an asynchronous operation. It is called exactly once, on the thread that made
 * the operation possible, which may be inside the starting call. `done` is the number of items
 * enqueued or dequeued. items is the array given at the start. A completion may:
 *
 * - start the next operation. So may the completion of that one, any number of times, because each
 *   thread runs its completions one after the other and never one inside another. This includes the
 *   completions of weir/select.h, weir/flow/staging.h and the like. An operation that ends inside a
 *   completion (in a start, a try_ call, a close or a cancel) has ended when that call returns. Its
 *   own completion is then due: it runs after the current completion has returned, and before the
 *   outermost call returns. Completions that are due run in the order in which their operations
 *   ended.
 * - destroy the queue, if no other operation waits and no other call uses it. The call in which the
 *   completion runs notices that the queue is gone.
 * - end its thread by pthread_exit() or pthread_cancel(). The completions due on the thread run
 *   first.
 *
 * A completion must not block. In particular it must not wait for another completion, which may be
 * due on its own thread. Calls of Weir that wait (in a queue or an area, for a variable, for a run
 * of a session) first run the completions that are due. Other ways to wait do not.
 */
typedef void weir_queue_done_fn(void *context, enum weir_status status, const weir_error *error,
                                void **items, size_t done);

/*
 * Starts an operation that holds no thread while it waits. items[] must stay valid until `done` has
 * been called, which happens exactly once. *handle (may be NULL) is a handle to cancel the
 * operation with; the caller gives it back with weir_pending_release(). If this call itself fails
 * (WEIR_INVALID_ARGUMENT, WEIR_RESOURCE_EXHAUSTED), `done` is not called.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_start(weir_queue *queue, enum weir_queue_op_kind kind,
                                           void *items[], size_t count, weir_queue_done_fn *done,
                                           void *context, weir_pending **handle, weir_error *error);

enum weir_close_mode {
	WEIR_CLOSE_DRAIN = 0, /* waiting enqueues still succeed as room appears */
	WEIR_CLOSE_CANCEL = 1 /* waiting enqueues end with WEIR_CANCELLED */
};

/*
 * Closes the queue and never waits. Later enqueues return WEIR_CANCELLED. Dequeues take what
 * remains and then return WEIR_OUT_OF_RANGE. The messages of both have the cause (may be NULL; the
 * first one that is given is kept). Idempotent; WEIR_CLOSE_CANCEL may follow WEIR_CLOSE_DRAIN.
 *
 * Errors: WEIR_INVALID_ARGUMENT if queue is NULL or the mode is unknown. WEIR_RESOURCE_EXHAUSTED if
 * there is no memory for this thread's record; then nothing was done.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_close(weir_queue *queue, enum weir_close_mode mode,
                                           const weir_error *cause);

/*
 * Gives a level-triggered descriptor for poll(), select() or epoll. The descriptor of
 * weir_queue_readable_fd() is readable (POLLIN) exactly while a dequeue of one item would not wait;
 * the descriptor of weir_queue_writable_fd() is readable exactly while an enqueue would not wait.
 * This includes the end: the first is readable once the queue is drained, so that a poller gets
 * WEIR_OUT_OF_RANGE, and the second once the queue is closed.
 *
 * When the descriptor is readable, call weir_queue_try_dequeue_many() or _try_dequeue() (or
 * _try_enqueue()), and poll again. WEIR_WOULD_BLOCK then means that another thread was faster, or
 * that the call of another thread which took the last item has not returned yet. While a dequeue
 * could proceed, the descriptor is unreadable only as long as the very call that made the dequeue
 * possible is under way; if an operation waited, that is the call that completed it. A call that
 * returns WEIR_WOULD_BLOCK has made the descriptor unreadable, unless there is an item again; or
 * unless another thread, which found that the last one was gone, stands just before its system call.
 * In a fair queue the descriptors do not regard operations that wait: while one waits, a try_ call
 * may return WEIR_WOULD_BLOCK although the descriptor is readable.
 *
 * The queue owns the descriptors, one for each direction. It makes one at the first request, and
 * weir_queue_destroy() and exec close it. Do not read, write or close it. From the first request
 * on, every call that moves items pays a fence and some loads, and a system call if the answer
 * changes; before that, nothing. A call that takes the last item yields the processor up to three
 * times before it makes the descriptor unreadable, unless yielding was slow recently. In the child
 * of a fork the descriptor no longer changes: request one of the child's own there.
 *
 * Errors: WEIR_INVALID_ARGUMENT (NULL). WEIR_RESOURCE_EXHAUSTED (memory or file descriptors).
 * WEIR_FAILED_PRECONDITION if Linux granted membarrier(2) earlier and refuses it now.
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_readable_fd(weir_queue *queue, int *fd, weir_error *error);
WEIR_API enum weir_status weir_queue_writable_fd(weir_queue *queue, int *fd, weir_error *error);

/* Returns true after a close, else false. @since 0.1 */
WEIR_API bool weir_queue_closed(const weir_queue *queue);

/*
 * The number of stored items, approximate while other threads use the queue. Items of a batch that
 * is being collected and items of waiting enqueues do not count.
 * @since 0.1
 */
WEIR_API size_t weir_queue_size_approx(const weir_queue *queue);
/* The capacity that the queue was created with; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_queue_capacity(const weir_queue *queue);
/* The seed in use (shuffle), else 0. @since 0.1 */
WEIR_API uint64_t weir_queue_seed(const weir_queue *queue);
/* The name of the queue, valid as long as the queue exists. @since 0.1 */
WEIR_API const char *weir_queue_name(const weir_queue *queue);

/*
 * What happened in a queue since it was created. A call that finds room or an item immediately pays
 * only for reading one word of its own. The stores know what was enqueued and dequeued; everything
 * else is counted where a call waits or completes a waiting operation.
 */
struct weir_queue_stats {
	size_t struct_size; /* WEIR_QUEUE_STATS_INIT sets it */
	/*
	 * Items enqueued and dequeued. Exact if no call is under way. Otherwise each number was correct
	 * at some moment of the call, and the moment of items_out was not later than that of items_in.
	 * A batch that is being collected counts as dequeued, and the items it returns do not. In a
	 * priority queue both restart at 2^39, or later if the queue is small.
	 */
	uint64_t items_in;
	uint64_t items_out;
	/*
	 * The largest number of items seen at one time: a lower bound. Every 64th enqueue looks (four
	 * times per capacity, if that is below 512), and the number is exact once an enqueue found the
	 * queue full. So with one producer it is less than 64 below the truth. Each producer that is
	 * stalled between its enqueue and its look may lose one look.
	 */
	uint64_t high_water;
	/*
	 * Operations that had to wait, asynchronous ones included; a select counts once per case.
	 * Exact.
	 */
	uint64_t enqueue_waits;
	uint64_t dequeue_waits;
	/* The total time of these waits in nanoseconds, of operations that have ended. */
	uint64_t enqueue_blocked_ns;
	uint64_t dequeue_blocked_ns;
	/* System calls that woke a waiting thread; at most one per operation that waited. Exact. */
	uint64_t wakes;
	/*
	 * How often a thread tried to complete a waiting operation that could not end yet. One or two
	 * per wait are usual. Many more mean that newcomers are faster than waiters. Retries of a
	 * failed compare-and-swap do not count.
	 */
	uint64_t retries;
	uint64_t waiting; /* operations that wait now */
};
#define WEIR_QUEUE_STATS_INIT WEIR_STRUCT_SIZE(struct weir_queue_stats)

/*
 * Fills *stats, up to its struct_size. The numbers are of different moments if other threads use
 * the queue. Errors: WEIR_INVALID_ARGUMENT (NULL, struct_size).
 * @since 0.1
 */
WEIR_API enum weir_status weir_queue_get_stats(weir_queue *queue, struct weir_queue_stats *stats);

WEIR_END_DECLS

#endif
