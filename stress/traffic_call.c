/*
 * traffic_call.c - see traffic_call.h.
 */
#include "traffic_call.h"

#include <string.h>
#include <weir/time.h>

#include "sync/park.h"
#include "waiting.h"

/* -- drawing ----------------------------------------------------------------------------------- */

/* Draws a token of its own, which is offered to the threads that fire, or the shared token. */
static weir_cancel *draw_token(struct stress_thread *self, struct traffic_caller *caller)
{
	struct traffic_queue *queue = caller->on;
	weir_cancel *token = NULL;

	if (queue->traffic->token_one_in == 0 || !stress_one_in(self, queue->traffic->token_one_in))
		return NULL;
	if (stress_one_in(self, 2)) {
		(void)pthread_mutex_lock(&queue->lock);
		token = weir_cancel_retain(queue->shared);
		(void)pthread_mutex_unlock(&queue->lock);
		return token;
	}
	STRESS_CHECK(weir_cancel_create(NULL, &token, NULL) == WEIR_OK, "no memory for a token");
	/* [release] pairs with the firing thread. */
	weiri_store_release(&caller->offered, weir_cancel_retain(token));
	return token;
}

static uint64_t draw_deadline(struct stress_thread *self, const struct traffic *traffic)
{
	if (traffic->deadline_one_in == 0 || !stress_one_in(self, traffic->deadline_one_in))
		return WEIR_NO_DEADLINE;
	switch (stress_below(self, 4)) {
	case 0: return 0;
	case 1: return weir_now_ns();
	case 2: return weir_deadline_in(stress_below(self, 2000000));
	default: return weir_deadline_in(stress_below(self, 60000));
	}
}

void traffic_draw(struct stress_thread *self, struct traffic_caller *caller, unsigned several,
                  struct traffic_call *call)
{
	unsigned calls = caller->on->traffic->calls, kind;

	memset(call, 0, sizeof(*call));
	do
		kind = 1u << stress_below(self, 3);
	while ((calls & kind) == 0);
	call->tries = kind == TRAFFIC_TRY;
	call->asynchronous = kind == TRAFFIC_ASYNC;
	call->many = !call->tries && (calls & several) != 0 && stress_one_in(self, 2);
	call->up_to = call->many && stress_one_in(self, 2);
	call->wanted = call->many ? 1 + (size_t)stress_below(self, TRAFFIC_MOST) : 1;
	call->deadline_ns = draw_deadline(self, caller->on->traffic);
	call->token = call->tries ? NULL : draw_token(self, caller);
}

static void on_done(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct traffic_completion *completion = context;

	(void)error, (void)items;
	completion->status = status;
	completion->done = done;
	/* [release] the outcome; pairs with the wait. */
	(void)weiri_fetch_add_release(&completion->count, 1u);
	weiri_park_wake(&completion->count, 1);
}

static struct traffic_completion *next_completion(struct traffic_caller *caller)
{
	struct traffic_completion *completion = &caller->completions[caller->next_completion++ % TRAFFIC_COMPLETIONS];

	/* [acquire] the outcome of an earlier call. */
	STRESS_CHECK(caller->next_completion <= TRAFFIC_COMPLETIONS || weiri_load_acquire(&completion->count) == 1,
	             "an asynchronous call completed %u times", weiri_load_acquire(&completion->count));
	weiri_store_relaxed(&completion->count, 0u); /* [relaxed] no call yet */
	return completion;
}

/* Starts the operation, and cancels it at the call's deadline. */
static void call_asynchronously(struct traffic_caller *caller, struct traffic_call *call, enum weir_queue_op_kind kind)
{
	struct traffic_completion *completion = next_completion(caller);
	weir_pending *op = NULL;
	enum weir_status status =
		weir_queue_start(caller->on->queue, kind, call->items, call->wanted, on_done, completion, &op, NULL);

	STRESS_CHECK(status == WEIR_OK, "weir_queue_start: %s", weir_status_name(status));
	if (weiri_park_wait(&completion->count, 0, call->deadline_ns) == WEIRI_PARK_TIMEOUT) {
		call->cancelled = 1;
		weir_pending_cancel(op, NULL);
		(void)weiri_park_wait(&completion->count, 0, WEIR_NO_DEADLINE);
	}
	weir_pending_release(op);
	call->status = completion->status;
	call->done = completion->done;
}

static void check_outcome(struct traffic_queue *queue, const struct traffic_call *call, const char *what)
{
	int closing = weiri_load_seq_cst(&queue->closing) != 0; /* [seq_cst] set before a close */

	switch (call->status) {
	case WEIR_OK: return;
	case WEIR_WOULD_BLOCK:
		STRESS_CHECK(call->tries, "%s: a call that may wait returned WEIR_WOULD_BLOCK", what);
		return;
	case WEIR_CANCELLED:
		STRESS_CHECK(call->cancelled || weir_cancel_fired(call->token) || (closing && strcmp(what, "enqueue") == 0),
		             "%s: cancelled although no thread cancelled it", what);
		return;
	case WEIR_DEADLINE_EXCEEDED:
		STRESS_CHECK(call->deadline_ns <= weir_now_ns(), "%s: ended by its deadline, which has not passed", what);
		return;
	case WEIR_OUT_OF_RANGE:
		STRESS_CHECK(closing && strcmp(what, "dequeue") == 0,
		             "%s: reported the end although no thread closed the queue", what);
		return;
	default: stress_fail("%s: %s", what, weir_status_name(call->status));
	}
}

/* -- calling ----------------------------------------------------------------------------------- */

void traffic_enqueue(struct stress_thread *self, struct traffic_caller *caller, struct traffic_call *call)
{
	weir_queue *queue = caller->on->queue;

	if (call->tries) {
		stress_begin_on(self, "try_enqueue", &caller->on->object, STRESS_ROOM);
		call->status = weir_queue_try_enqueue(queue, call->items[0]);
	} else if (call->asynchronous) {
		stress_begin_on(self, "start of an enqueue", &caller->on->object, STRESS_ROOM);
		call_asynchronously(caller, call, WEIR_QUEUE_OP_ENQUEUE);
	} else if (call->many) {
		stress_begin_on(self, "enqueue_many", &caller->on->object, STRESS_ROOM);
		call->status = weir_queue_enqueue_many(queue, call->items, call->wanted, call->deadline_ns, call->token,
		                                       &call->done, NULL);
	} else {
		stress_begin_on(self, "enqueue", &caller->on->object, STRESS_ROOM);
		call->status = weir_queue_enqueue(queue, call->items[0], call->deadline_ns, call->token, NULL);
	}
	if (!call->asynchronous && !call->many)
		call->done = call->status == WEIR_OK;
	STRESS_CHECK(call->done <= call->wanted && (call->done == call->wanted) == (call->status == WEIR_OK),
	             "enqueue of %zu: %s, but %zu went in", call->wanted, weir_status_name(call->status), call->done);
}

void traffic_dequeue(struct stress_thread *self, struct traffic_caller *caller, struct traffic_call *call)
{
	weir_queue *queue = caller->on->queue;

	if (call->tries) {
		stress_begin_on(self, "try_dequeue", &caller->on->object, STRESS_AN_ITEM);
		call->status = weir_queue_try_dequeue(queue, &call->items[0]);
	} else if (call->asynchronous) {
		stress_begin_on(self, "start of a dequeue", &caller->on->object, STRESS_AN_ITEM);
		call_asynchronously(caller, call, call->up_to ? WEIR_QUEUE_OP_DEQUEUE_UP_TO : WEIR_QUEUE_OP_DEQUEUE_MANY);
	} else if (call->up_to) {
		stress_begin_on(self, "dequeue_up_to", &caller->on->object, STRESS_AN_ITEM);
		call->status = weir_queue_dequeue_up_to(queue, call->items, call->wanted, call->deadline_ns, call->token,
		                                        &call->done, NULL);
	} else if (call->many) {
		stress_begin_on(self, "dequeue_many", &caller->on->object, STRESS_AN_ITEM);
		call->status = weir_queue_dequeue_many(queue, call->items, call->wanted, call->deadline_ns, call->token, NULL);
	} else {
		stress_begin_on(self, "dequeue", &caller->on->object, STRESS_AN_ITEM);
		call->status = weir_queue_dequeue(queue, &call->items[0], call->deadline_ns, call->token, NULL);
	}
	if (!call->asynchronous && !call->up_to)
		call->done = call->status == WEIR_OK ? call->wanted : 0;
	STRESS_CHECK(call->status == WEIR_OK ? call->done == call->wanted || (call->up_to && call->done != 0)
	                                     : call->done == 0,
	             "dequeue of %zu: %s, but %zu came out", call->wanted, weir_status_name(call->status), call->done);
}

void traffic_end(struct traffic_caller *caller, struct traffic_call *call, const char *what)
{
	check_outcome(caller->on, call, what);
	call->fired = weir_cancel_fired(call->token);
	if (call->token == NULL)
		return;
	weir_cancel_release(weiri_exchange_acq_rel(&caller->offered, NULL));
	weir_cancel_release(call->token);
}

/* -- firing ------------------------------------------------------------------------------------ */

void traffic_fire(struct stress_thread *self, struct traffic_caller *caller)
{
	/* [acq_rel] pairs with the offer. */
	weir_cancel *token = weiri_exchange_acq_rel(&caller->offered, NULL);

	if (token == NULL)
		return;
	stress_begin(self, "fire");
	(void)weir_cancel_fire(token, NULL);
	weir_cancel_release(token);
	stress_end(self, 1);
}

void traffic_fire_shared(struct stress_thread *self, struct traffic_queue *queue)
{
	weir_cancel *fresh, *old;

	STRESS_CHECK(weir_cancel_create(NULL, &fresh, NULL) == WEIR_OK, "no memory for a token");
	(void)pthread_mutex_lock(&queue->lock);
	old = queue->shared;
	queue->shared = fresh;
	(void)pthread_mutex_unlock(&queue->lock);
	stress_begin(self, "fire for many");
	STRESS_CHECK(weir_cancel_fire(old, NULL) == 1, "another thread fired the token");
	weir_cancel_release(old);
	stress_end(self, 1);
}

void traffic_check_completions(const struct traffic_caller *caller)
{
	for (unsigned i = 0; i < TRAFFIC_COMPLETIONS && i < caller->next_completion; i++) {
		uint32_t count = weiri_load_acquire(&caller->completions[i].count); /* [acquire] joined */

		STRESS_CHECK(count == 1, "an asynchronous call completed %u times", count);
	}
}
