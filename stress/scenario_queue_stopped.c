/*
 * scenario_queue_stopped.c - a thread that stops at a random instruction of a queue's calls holds up no more than weir/queue.h says.
 *
 * Workers make calls of all kinds on one queue: that try, wait (with short deadlines), are asynchronous and cancelled, collect
 * batches, and fire each other's tokens. Again and again one is stopped at a random moment, for as long as it takes the others to
 * complete so many enqueues and so many single dequeues. And of the others no more than two may stand still: the call that
 * the stopped thread was carrying on for its owner, or the two when it was cancelling one. How often that happened, and how often batches waited
 * for a stopped one that collects, is in the report. Nothing is lost over all this. Beside it a queue of a mutex and two condition
 * variables goes through the same: there all others stand still, which shows that the check can fail.
 */
#include "harness.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <weir/queue.h>

#include "blocks.h"
#include "scenarios.h"
#include "stop.h"
#include "sync/park.h"

enum { WORKERS = 6, CAPACITY = 8, SEVERAL = 4, MAY_STAND = 2, WARM_UP = 50 };
enum kind { ENQUEUES, DEQUEUES, BATCHES, KINDS, NEITHER = KINDS };

static const char *const kind_name[KINDS] = {"enqueue", "dequeue", "batch"};
static const uint64_t wanted = 50, patience_ns = 8000000000u, grace_ns = 40000000, look_again_ns = 50000;
static const uint64_t longest_wait_ns = 500000;

struct subject {
	enum kind (*work)(struct stress_thread *self, unsigned worker);
	uint64_t patience_ns;
};

struct worker {
	const struct subject *subject;
	unsigned index;
	WEIRI_ALIGNED_APART _Atomic(uint64_t) completed[KINDS];
	_Atomic(uint64_t) in, out;
	_Atomic(weir_cancel *) offered;
	_Atomic(uint32_t) completion;
	size_t done;
};

static struct worker workers[WORKERS];
static struct stress_thread *threads[WORKERS];
static _Atomic(uint32_t) quit;
static weir_queue *queue;

/* A count that only one thread writes. */
static void count(_Atomic(uint64_t) *counter, uint64_t more)
{
	weiri_store_relaxed(counter, weiri_load_relaxed(counter) + more); /* [relaxed] a count */
}

/* -- calls -------------------------------------------------------------------------------------------------------------------- */

static weir_cancel *offer_token(struct stress_thread *self, struct worker *worker)
{
	weir_cancel *token;

	if (!stress_one_in(self, 4))
		return NULL;
	STRESS_CHECK(weir_cancel_create(stress_blocks(), &token) == WEIR_OK, "no memory for a token");
	weiri_store_release(&worker->offered, weir_cancel_retain(token)); /* [release] pairs with fire_one() */
	return token;
}

static void withdraw_token(struct worker *worker, weir_cancel *token)
{
	if (token == NULL)
		return;
	weir_cancel_release(weiri_exchange_acq_rel(&worker->offered, NULL));
	weir_cancel_release(token);
}

static enum kind fire_one(struct stress_thread *self)
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
	weir_queue_op *op = NULL;

	stress_begin(self, "start");
	weiri_store_relaxed(&worker->completion, 0u); /* [relaxed] not started yet */
	STRESS_CHECK(weir_queue_start(queue, kind, items, several, on_done, worker, &op, NULL) == WEIR_OK, "no start");
	stress_begin(self, "asynchronous call");
	if (weiri_park_wait(&worker->completion, 0, weir_deadline_in(stress_below(self, longest_wait_ns))) ==
	    WEIRI_PARK_TIMEOUT) {
		stress_begin(self, "cancel");
		weir_queue_op_cancel(op, NULL);
		(void)weiri_park_wait(&worker->completion, 0, WEIR_NO_DEADLINE);
	}
	weir_queue_op_release(op);
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

static enum kind work_on_queue(struct stress_thread *self, unsigned index)
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
	return done != 0 ? kind : NEITHER;
}

/* -- the control: a mutex, two condition variables ---------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t room, item;
	unsigned size;
} locked = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static enum kind work_on_locked(struct stress_thread *self, unsigned index)
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
	return done ? kind : NEITHER;
}

/* -- workers ------------------------------------------------------------------------------------------------------------------ */

static void work(struct stress_thread *self, void *context)
{
	struct worker *worker = context;

	while (weiri_load_relaxed(&quit) == 0) { /* [relaxed] joined afterwards */
		enum kind kind = worker->subject->work(self, worker->index);

		if (kind != NEITHER)
			count(&worker->completed[kind], 1);
		stress_end(self, 1); /* a call that ended at its deadline has not stood still */
		if (stress_one_in(self, 256))
			(void)sched_yield(); /* more threads than processors: otherwise a stop waits for its victim's turn */
		stress_stop_here();
	}
}

/* A thread's first call makes its record: from malloc, which may hold a lock. No stop before that. */
static void await_first_calls(void)
{
	for (unsigned i = 0; i < WORKERS; i++) {
		while (weiri_load_relaxed(&threads[i]->operations) < WARM_UP) /* [relaxed] a count */
			stress_let_pass(look_again_ns);
	}
}

static void start_workers(const struct subject *subject)
{
	weiri_store_relaxed(&quit, 0u); /* [relaxed] before the threads exist */
	for (unsigned i = 0; i < WORKERS; i++)
		workers[i] = (struct worker){.subject = subject, .index = i};
	for (unsigned i = 0; i < WORKERS; i++)
		threads[i] = stress_start("worker", work, &workers[i]);
	await_first_calls();
}

static void stop_workers(void)
{
	weiri_store_relaxed(&quit, 1u); /* [relaxed] joined afterwards */
	stress_join();
}

/* -- stops -------------------------------------------------------------------------------------------------------------------- */

/* What the others have done, by the moment of a stop. */
struct moment {
	unsigned victim;
	uint64_t completed[KINDS];
	uint64_t calls[WORKERS];
};

static uint64_t completed_by_others(unsigned victim, enum kind kind)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		sum += i != victim ? weiri_load_relaxed(&workers[i].completed[kind]) : 0; /* [relaxed] a count */
	return sum;
}

static uint64_t calls_of(unsigned worker)
{
	return weiri_load_relaxed(&threads[worker]->operations); /* [relaxed] a count */
}

static struct moment look(unsigned victim)
{
	struct moment moment = {.victim = victim};

	for (unsigned kind = 0; kind < KINDS; kind++)
		moment.completed[kind] = completed_by_others(victim, (enum kind)kind);
	for (unsigned i = 0; i < WORKERS; i++)
		moment.calls[i] = calls_of(i);
	return moment;
}

static unsigned standing_since(const struct moment *moment)
{
	unsigned standing = 0;

	for (unsigned i = 0; i < WORKERS; i++)
		standing += i != moment->victim && calls_of(i) == moment->calls[i];
	return standing;
}

/* Enough of a kind; 0: not within the patience. */
static int goes_on(const struct subject *subject, const struct moment *moment, enum kind kind)
{
	uint64_t deadline = weir_deadline_in(subject->patience_ns);

	while (completed_by_others(moment->victim, kind) - moment->completed[kind] < stress_scaled(wanted)) {
		if (weir_now_ns() > deadline)
			return 0;
		stress_let_pass(look_again_ns);
	}
	return 1;
}

/* How many still stand after a while: no more than `few`, or the patience has ended. */
static unsigned count_standing(const struct moment *moment, unsigned few, uint64_t within_ns)
{
	uint64_t deadline = weir_deadline_in(within_ns);
	unsigned standing;

	while ((standing = standing_since(moment)) > few && weir_now_ns() < deadline)
		stress_let_pass(look_again_ns);
	return standing;
}

/* One that is on a processor now, so that the signal meets it inside a call; any if there is none. */
static unsigned pick_running(struct stress_thread *self)
{
	unsigned first = (unsigned)stress_below(self, WORKERS);
	uint64_t before[WORKERS];

	for (unsigned i = 0; i < WORKERS; i++)
		before[i] = calls_of(i);
	stress_let_pass(3000);
	for (unsigned i = 0; i < WORKERS; i++) {
		if (calls_of((first + i) % WORKERS) != before[(first + i) % WORKERS])
			return (first + i) % WORKERS;
	}
	return first;
}

static struct moment stop_one(struct stress_thread *self)
{
	unsigned victim;

	stress_let_pass(stress_below(self, 100000));
	victim = pick_running(self);
	stress_stop(threads[victim]);
	return look(victim);
}

/* How often how many stood still. */
struct tally {
	uint64_t stops, standing[MAY_STAND + 1], batches;
};

static void stop_once(struct stress_thread *self, const struct subject *subject, struct tally *tally)
{
	struct moment moment = stop_one(self);
	/* [relaxed] for a report. */
	const char *doing = weiri_load_relaxed(&threads[moment.victim]->doing);
	unsigned standing;

	for (unsigned kind = ENQUEUES; kind <= DEQUEUES; kind++)
		STRESS_CHECK(goes_on(subject, &moment, (enum kind)kind),
		             "a thread stopped in \"%s\" (stop %" PRIu64 ") stopped the others: not even %" PRIu64 " of \"%s\"",
		             doing, tally->stops, stress_scaled(wanted), kind_name[kind]);
	if (count_standing(&moment, 0, grace_ns) > MAY_STAND)
		(void)count_standing(&moment, MAY_STAND, subject->patience_ns);
	standing = standing_since(&moment);
	STRESS_CHECK(standing <= MAY_STAND, "a thread stopped in \"%s\" (stop %" PRIu64 ") holds up %u others", doing,
	             tally->stops, standing);
	tally->batches += completed_by_others(moment.victim, BATCHES) == moment.completed[BATCHES];
	stress_stop_release();
	stress_end(self, 1);
	tally->standing[standing]++;
	tally->stops++;
}

static void check_nothing_lost(void)
{
	uint64_t in = 0, out = 0;

	for (unsigned i = 0; i < WORKERS; i++) {
		in += weiri_load_relaxed(&workers[i].in); /* [relaxed] joined */
		out += weiri_load_relaxed(&workers[i].out);
	}
	STRESS_CHECK(in - out == weir_queue_size(queue), "%" PRIu64 " went in, %" PRIu64 " came out, %zu are inside", in,
	             out, weir_queue_size(queue));
}

static void stop_in_queue(struct stress_thread *self, uint32_t flags, uint64_t until, struct tally *tally)
{
	const struct subject subject = {work_on_queue, patience_ns};
	struct weir_queue_options options = {
		.struct_size = sizeof(options), .capacity = CAPACITY, .flags = flags, .allocator = stress_blocks()};

	STRESS_CHECK(weir_queue_create(&options, &queue, NULL) == WEIR_OK, "no queue");
	start_workers(&subject);
	do
		stop_once(self, &subject, tally);
	while (weir_now_ns() < until);
	stop_workers();
	check_nothing_lost();
	STRESS_CHECK(weir_queue_destroy(queue, NULL) == WEIR_OK, "operations wait that nobody started");
}

static void stop_in_control(struct stress_thread *self, uint64_t until)
{
	const struct subject subject = {work_on_locked, 20000000};
	uint64_t stops = 0, frozen = 0;

	start_workers(&subject);
	do {
		struct moment moment = stop_one(self);

		frozen += !goes_on(&subject, &moment, ENQUEUES) || !goes_on(&subject, &moment, DEQUEUES);
		stress_stop_release();
		stress_end(self, 1);
		stops++;
	} while (weir_now_ns() < until);
	stop_workers();
	stress_note("stops of a mutex queue", stops);
	stress_note("froze it", frozen);
}

static uint64_t part_end(double parts)
{
	return weir_deadline_in((uint64_t)(stress_seconds_left() * 1e9 / parts));
}

void scenario_queue_stopped(void)
{
	struct stress_thread *self = stress_self();
	struct tally tally = {0};

	stress_stop_prepare();
	stop_in_queue(self, 0, part_end(3), &tally);
	stop_in_queue(self, WEIR_QUEUE_FAIR, part_end(2), &tally);
	stress_note("stops", tally.stops);
	stress_note("held up one call", tally.standing[1]);
	stress_note("held up two", tally.standing[2]);
	stress_note("held up batches", tally.batches);
	stop_in_control(self, part_end(1));
}
