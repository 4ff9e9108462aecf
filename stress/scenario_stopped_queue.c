/*
 * scenario_stopped_queue.c - a thread that stops at a random instruction of a queue's calls delays
 * no more than weir/queue.h states.
 *
 * Workers make calls of all kinds on one queue: calls that try, that wait (with short deadlines),
 * that are asynchronous and cancelled, that collect batches, and that fire each other's tokens. One
 * worker after the other is stopped at a random moment, until the others have completed a number of
 * enqueues and a number of single dequeues. Of the others at most two may stand still: the call
 * that the stopped thread was completing for its owner, or two calls if it was cancelling one. The
 * report tells how often this happened, and how often batches waited for a stopped batch that
 * collects. No item is lost.
 *
 * In addition, a queue with a mutex and two condition variables goes through the same. There all
 * other threads stand still, which shows that the check can fail.
 */
#include "harness.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <weir/queue.h>

#include "blocks.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"
#include "sync/park.h"

enum { WORKERS = 6, STOPS = 500, CAPACITY = 8, SEVERAL = 4, MAY_STAND = 2 };
enum kind { ENQUEUES, DEQUEUES, BATCHES, NEITHER = -1 };

static const uint64_t wanted = 50, longest_wait_ns = 500000;

struct worker {
	WEIRI_ALIGNED_APART _Atomic(uint64_t) in;
	_Atomic(uint64_t) out;
	_Atomic(weir_cancel *) offered;
	_Atomic(uint32_t) completion;
	size_t done;
};

static struct worker workers[WORKERS];
static weir_queue *queue;

/* A count that only one thread writes. */
static void count(_Atomic(uint64_t) *counter, uint64_t more)
{
	weiri_store_relaxed(counter, weiri_load_relaxed(counter) + more); /* [relaxed] a count */
}

/* -- calls ------------------------------------------------------------------------------------- */

static weir_cancel *offer_token(struct stress_thread *self, struct worker *worker)
{
	weir_cancel *token;

	if (!stress_one_in(self, 4))
		return NULL;
	STRESS_CHECK(weir_cancel_create(stress_blocks(), &token, NULL) == WEIR_OK, "no memory for a token");
	/* [release] pairs with fire_one() */
	weiri_store_release(&worker->offered, weir_cancel_retain(token));
	return token;
}

static void withdraw_token(struct worker *worker, weir_cancel *token)
{
	if (token == NULL)
		return;
	weir_cancel_release(weiri_exchange_acq_rel(&worker->offered, NULL));
	weir_cancel_release(token);
}

static int fire_one(struct stress_thread *self)
{
	/* [acq_rel] pairs with the offer. */
	weir_cancel *token = weiri_exchange_acq_rel(&workers[stress_below(self, WORKERS)].offered, NULL);

	stress_begin(self, "fire");
	(void)weir_cancel_fire(token, NULL);
	weir_cancel_release(token);
	return NEITHER;
}

static void on_done(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct worker *worker = context;

	(void)status, (void)error, (void)items;
	worker->done = done;
	weiri_store_release(&worker->completion, 1u); /* [release] pairs with the wait */
	weiri_park_wake(&worker->completion, 1);
}

static size_t start_and_cancel(struct stress_thread *self, struct worker *worker, enum weir_queue_op_kind kind,
                               void *items[], size_t several)
{
	weir_pending *op = NULL;

	stress_begin(self, "start");
	weiri_store_relaxed(&worker->completion, 0u); /* [relaxed] not started yet */
	STRESS_CHECK(weir_queue_start(queue, kind, items, several, on_done, worker, &op, NULL) == WEIR_OK,
	             "an operation did not start");
	stress_begin(self, "asynchronous call");
	if (weiri_park_wait(&worker->completion, 0, weir_deadline_in(stress_below(self, longest_wait_ns))) ==
	    WEIRI_PARK_TIMEOUT) {
		stress_begin(self, "cancel");
		weir_pending_cancel(op, NULL);
		(void)weiri_park_wait(&worker->completion, 0, WEIR_NO_DEADLINE);
	}
	weir_pending_release(op);
	return worker->done;
}

static size_t put_some(struct stress_thread *self, struct worker *worker)
{
	uint64_t deadline_ns = weir_deadline_in(stress_below(self, longest_wait_ns));
	void *items[SEVERAL] = {worker, worker, worker, worker};
	weir_cancel *token = NULL;
	size_t done = 0;

	switch (stress_below(self, 4)) {
	case 0: stress_begin(self, "try_enqueue"); return weir_queue_try_enqueue(queue, worker) == WEIR_OK;
	case 1: return start_and_cancel(self, worker, WEIR_QUEUE_OP_ENQUEUE, items, SEVERAL);
	case 2:
		token = offer_token(self, worker);
		stress_begin(self, "enqueue");
		done = weir_queue_enqueue(queue, worker, deadline_ns, token, NULL) == WEIR_OK;
		break;
	default:
		token = offer_token(self, worker);
		stress_begin(self, "enqueue_many");
		(void)weir_queue_enqueue_many(queue, items, SEVERAL, deadline_ns, token, &done, NULL);
	}
	withdraw_token(worker, token);
	return done;
}

static size_t take_one(struct stress_thread *self, struct worker *worker)
{
	uint64_t deadline_ns = weir_deadline_in(stress_below(self, longest_wait_ns));
	weir_cancel *token;
	void *item;
	size_t done;

	switch (stress_below(self, 3)) {
	case 0: stress_begin(self, "try_dequeue"); return weir_queue_try_dequeue(queue, &item) == WEIR_OK;
	case 1: return start_and_cancel(self, worker, WEIR_QUEUE_OP_DEQUEUE_MANY, &item, 1);
	default: break;
	}
	token = offer_token(self, worker);
	stress_begin(self, "dequeue");
	done = weir_queue_dequeue(queue, &item, deadline_ns, token, NULL) == WEIR_OK;
	withdraw_token(worker, token);
	return done;
}

static size_t take_batch(struct stress_thread *self, struct worker *worker)
{
	uint64_t deadline_ns = weir_deadline_in(stress_below(self, longest_wait_ns));
	size_t several = 2 + (size_t)stress_below(self, SEVERAL - 1), done = 0;
	weir_cancel *token;
	void *items[SEVERAL];

	if (stress_one_in(self, 3))
		return start_and_cancel(self, worker, WEIR_QUEUE_OP_DEQUEUE_MANY, items, several);
	token = offer_token(self, worker);
	stress_begin(self, "dequeue_many");
	done = weir_queue_dequeue_many(queue, items, several, deadline_ns, token, NULL) == WEIR_OK ? several : 0;
	withdraw_token(worker, token);
	return done;
}

static int work_on_queue(struct stress_thread *self, unsigned index)
{
	struct worker *worker = &workers[index];
	uint64_t draw = stress_below(self, 12);
	enum kind kind = draw < 5 ? ENQUEUES : draw < 9 ? DEQUEUES : BATCHES;
	size_t done;

	if (draw == 11)
		return fire_one(self);
	done = kind == ENQUEUES   ? put_some(self, worker)
	       : kind == DEQUEUES ? take_one(self, worker)
	                          : take_batch(self, worker);
	count(kind == ENQUEUES ? &worker->in : &worker->out, done);
	return done != 0 ? (int)kind : (int)NEITHER;
}

/* -- the control: a mutex, two condition variables --------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t room, item;
	unsigned size;
} locked = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static int work_on_locked(struct stress_thread *self, unsigned index)
{
	enum kind kind = stress_one_in(self, 2) ? ENQUEUES : DEQUEUES;
	unsigned stuck_at = kind == ENQUEUES ? CAPACITY : 0;
	struct timespec until;
	int done;

	(void)index;
	stress_begin(self, "locked call");
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)longest_wait_ns;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	(void)pthread_mutex_lock(&locked.lock);
	if (locked.size == stuck_at)
		(void)pthread_cond_timedwait(kind == ENQUEUES ? &locked.room : &locked.item, &locked.lock, &until);
	done = locked.size != stuck_at;
	if (done) {
		locked.size += kind == ENQUEUES ? 1 : -1u;
		(void)pthread_cond_signal(kind == ENQUEUES ? &locked.item : &locked.room);
	}
	(void)pthread_mutex_unlock(&locked.lock);
	return done ? (int)kind : (int)NEITHER;
}

static void check_nothing_lost(void)
{
	uint64_t in = 0, out = 0;

	for (unsigned i = 0; i < WORKERS; i++) {
		in += weiri_load_relaxed(&workers[i].in); /* [relaxed] joined */
		out += weiri_load_relaxed(&workers[i].out);
	}
	STRESS_CHECK(in - out == weir_queue_size_approx(queue),
	             "%" PRIu64 " items went in and %" PRIu64 " came out, but %zu are inside", in, out,
	             weir_queue_size_approx(queue));
}

static struct stopping_tally stop_in_queue(struct stress_thread *self, const char *name, uint32_t flags, uint64_t until)
{
	const struct stopping subject = {name,          WORKERS, {"enqueue", "dequeue", "batch"}, 2, MAY_STAND,
	                                 work_on_queue, wanted};
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = CAPACITY, .flags = flags,
	                                     .allocator = stress_blocks()};
	struct stopping_tally tally;

	memset(workers, 0, sizeof(workers));
	STRESS_CHECK(weir_queue_create(&options, &queue, NULL) == WEIR_OK, "no queue");
	tally = stopping_must_go_on(self, &subject, stress_scaled(STOPS), until);
	check_nothing_lost();
	STRESS_CHECK(weir_queue_destroy(queue, NULL) == WEIR_OK,
	             "the queue reports waiting operations, but all have ended");
	return tally;
}

void scenario_queue_stopped(void)
{
	const struct stopping locked_queue = {"mutex", WORKERS, {"enqueue", "dequeue"}, 2, WORKERS, work_on_locked, wanted};
	struct stress_thread *self = stress_self();
	uint64_t batches = 0;

	stress_stop_prepare();
	batches += stop_in_queue(self, "queue", 0, stopping_part_end(3)).unmoved[BATCHES];
	batches += stop_in_queue(self, "fair", WEIR_QUEUE_FAIR, stopping_part_end(2)).unmoved[BATCHES];
	stress_note("stops held up batches", batches);
	stopping_must_freeze(self, &locked_queue, stopping_part_end(1));
}
