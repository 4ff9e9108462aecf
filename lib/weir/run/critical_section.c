/*
 * critical_section.c - critical sections.
 *
 * Algorithm. A section is a binary semaphore (Dijkstra, 1965): a word, the right to be inside
 * (queue/right.h), and a list of waiters. A thread enters by taking the right, and leaves by giving
 * it back. Both go straight to the word; a leave then checks whether a thread or an operation
 * waits. A thread that finds the right taken first looks for a while, with growing pauses (look()).
 * The waiting itself is that of queues: the right is the store of a queue. The operations of
 * the queue provide deadlines, tokens, asynchronous waiting, arrival order, and the waiters in a
 * dump. This file ensures that the right always returns, and that no thread waits for itself.
 *
 * Source. Mutexes on futexes work in the same way (Franke, Russell and Kirkwood, OLS 2002): by a
 * word that is taken by CAS, and a list of the threads that did not get it.
 *
 * Invariants
 *   C1  the right is free, or one execution that is inside has it. So at most one execution is
 *       inside
 *   C2  the taker of the right gives it back once: execute() and run_inside() after fn returned, a
 *       step of a session when each node of the body has ended or was skipped (graph/op_section.c)
 *   C3  a thread that is inside a section never waits for the same section: the sections that it is
 *       inside are linked on its stack
 * Pairs: those of the right and the queue. With the right, each execution that enters receives what
 *   the execution before it did inside.
 * Linearization: that of the right.
 * Progress: see weir/critical_section.h. A thread without a record can wake no waiter. If there is
 *   no memory for the record, the leave is retried. Only a thread that did not enter by itself can
 *   be in this situation: the worker that runs a body, or the thread that ends a step.
 * Memory: a queue, and a word in cache lines of its own; for each asynchronous waiter 112 bytes and
 *   an operation of the queue.
 * Checked: tests/test_critical_section.c, stress/model/check_critical_section.c, weir-stress
 *   "critical_section".
 */
#include "run/critical_section.h"

#include <stdalign.h>
#include <string.h>
#include <weir/time.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/thread.h"
#include "queue/right.h"
#include "reclaim/interrupt.h"
#include "run/pool_submission.h"
#include "sync/look.h"
#include "sync/pending.h"

struct weir_critical_section {
	/* Constant. */
	weir_queue *queue;
	struct weiri_right *right; /* the queue's store */
	uint32_t flags;
	weir_allocator allocator;
	/* The execution that is inside (C1). */
	uint64_t entries; /* that asked for a number, for a trace */
};

/* An execution without a thread: first it enters, then a worker of the pool runs it. */
struct execution {
	weir_task task;
	weir_pending *pending; /* the operation of the entry; it ends together with the execution */
	void *room;            /* where the operation stores the right */
	weir_critical_section *section;
	weir_pool *pool;
	weir_critical_section_fn *fn;
	void *context;
	weir_critical_section_done_fn *done;
	weir_allocator allocator;
};

/* -- the sections that a thread is inside ------------------------------------------------------ */

static bool is_inside(const weir_critical_section *section)
{
	return weiri_mark_of(WEIRI_MARK_SECTION, section) != NULL;
}

/* The list is this thread's own. */
static WEIRI_UNSEEN void assert_outside(const weir_critical_section *section)
{
	WEIR_ASSERT2(C3, !is_inside(section));
}

void weiri_inside_begin(struct weiri_inside *inside, const weir_critical_section *section)
{
	WEIR_ASSERT_LOOK(assert_outside(section));
	weiri_mark_begin(&inside->mark, WEIRI_MARK_SECTION, section);
}

void weiri_inside_end(const struct weiri_inside *inside)
{
	weiri_mark_end(&inside->mark);
}

/* -- entering and leaving ---------------------------------------------------------------------- */

/* Reports why an entry failed; the queue's own message would speak of dequeues. */
static enum weir_status fail_to_enter(const weir_critical_section *section, enum weir_status status,
                                      const weir_cancel *cancel, weir_error *error)
{
	const char *name = weir_queue_name(section->queue);
	weir_error cause = weiri_interrupt_cause; /* unless the token fired */

	switch (status) {
	case WEIR_DEADLINE_EXCEEDED:
		return weiri_fail(error, status, "critical section \"%s\": the deadline passed before it was free", name);
	case WEIR_CANCELLED:
		(void)weir_cancel_cause(cancel, &cause);
		return weiri_fail(error, status, "critical section \"%s\": the entry was cancelled; %s: %.120s", name,
		                  weir_status_name(cause.code), cause.message);
	default: return weiri_fail(error, status, "critical section \"%s\": no memory to enter", name);
	}
}

/* Returns true if a newcomer must go behind operations that already wait. */
static bool others_first(const weir_critical_section *section)
{
	return (section->flags & WEIR_CRITICAL_SECTION_FAIR) != 0 && weiri_list_occupied(&section->queue->consumers.list);
}

/* -- looking before waiting -- */

static const uint64_t look_ns = 100000;
enum { LOOKS_BEFORE_YIELD = 1, UNHURRIED = 64 };

static uint64_t entries_of(const struct weiri_right *right)
{
	return weiri_load_relaxed(&right->entered); /* [relaxed] a count */
}

/*
 * Looks whether the section becomes free (sync/look.h), and returns true if this thread has entered. If
 * one execution was inside all the time, those of this section are long: the thread's next waits do
 * without looks.
 */
static WEIRI_NOINLINE bool look(struct weiri_own *own, struct weiri_right *right, uint64_t deadline_ns)
{
	const uint64_t entries = entries_of(right);
	struct weiri_looks looks;

	if (deadline_ns <= weir_now_ns())
		return false;
	weiri_looks_begin(&looks, own, look_ns, deadline_ns, LOOKS_BEFORE_YIELD);
	while (weiri_looks_go_on(&looks)) {
		if (weiri_right_take(right))
			return true;
	}
	if (weiri_looks_in_vain(&looks) && entries_of(right) - entries <= 1)
		own->unlooked = UNHURRIED;
	return false;
}

/* Enters through the queue, and waits there if another execution is inside. */
static enum weir_status enter_by_queue(weir_critical_section *section, uint64_t deadline_ns, weir_cancel *cancel)
{
	enum weir_status status;
	void *right;

	if (deadline_ns != 0 || cancel != NULL)
		return weir_queue_dequeue(section->queue, &right, deadline_ns, cancel, NULL);
	status = weir_queue_try_dequeue(section->queue, &right);
	return status == WEIR_WOULD_BLOCK ? WEIR_DEADLINE_EXCEEDED : status;
}

/* The section is taken, or the call must not enter past the queue. */
static WEIRI_NOINLINE enum weir_status enter_taken(weir_critical_section *section, uint64_t deadline_ns,
                                                   weir_cancel *cancel)
{
	struct weiri_own *own = weiri_record_mine->own;

	if (cancel == NULL && deadline_ns != 0 && weiri_may_look() && (section->flags & WEIR_CRITICAL_SECTION_FAIR) == 0) {
		if (own->unlooked != 0)
			own->unlooked--;
		else if (look(own, section->right, deadline_ns))
			return WEIR_OK;
	}
	return enter_by_queue(section, deadline_ns, cancel);
}

static WEIRI_ALWAYS_INLINE enum weir_status enter(weir_critical_section *section, uint64_t deadline_ns,
                                                  weir_cancel *cancel)
{
	if (WEIRI_UNLIKELY(weiri_record_get() == NULL)) /* before the entry, because the leave needs a record */
		return WEIR_RESOURCE_EXHAUSTED;
	/* A call with a token goes through the queue: no thread may enter after the token has fired. */
	if (WEIRI_LIKELY(cancel == NULL && !others_first(section) && weiri_right_take(section->right)))
		return WEIR_OK;
	return enter_taken(section, deadline_ns, cancel);
}

static WEIRI_UNSEEN void assert_held(const weir_critical_section *section)
{
	WEIR_ASSERT2(C2, weiri_peek(&section->right->holder) != WEIRI_RIGHT_FREE);
}

uint64_t weiri_critical_section_entry(weir_critical_section *section, bool begins)
{
	WEIR_ASSERT_LOOK(assert_held(section));
	section->entries += begins;
	return section->entries;
}

static WEIRI_ALWAYS_INLINE void leave(weir_critical_section *section)
{
	struct weiri_record *record;

	WEIR_ASSERT_LOOK(assert_held(section));
	while (WEIRI_UNLIKELY((record = weiri_record_get()) == NULL))
		(void)sched_yield();
	weiri_right_give(section->right);
	if (WEIRI_UNLIKELY(weiri_waiters_posted(&section->queue->consumers)))
		weiri_queue_pump(record, section->queue);
}

void weiri_critical_section_leave(weir_critical_section *section)
{
	leave(section);
}

/* The previous execution has left, and this one has not stored its thread yet. */
static WEIRI_UNSEEN void assert_alone(const weir_critical_section *section)
{
	WEIR_ASSERT2(C1, weiri_peek(&section->right->holder) == WEIRI_RIGHT_TAKEN);
}

/* What fn said of its failure, completed. */
static WEIRI_NOINLINE enum weir_status failed_inside(enum weir_status status, weir_error *error)
{
	error->code = status;
	if (error->message[0] == '\0')
		(void)weiri_fail(error, status, "what ran inside failed with %s", weir_status_name(status));
	return status;
}

/*
 * Runs fn inside and then leaves. The caller has the right. Inline, because in a free section the
 * calls between its parts would be a fifth of its instructions.
 */
static WEIRI_ALWAYS_INLINE enum weir_status run_inside(weir_critical_section *section, weir_critical_section_fn *fn,
                                                       void *context, weir_error *error)
{
	struct weiri_inside inside;
	enum weir_status status;

	WEIR_ASSERT_LOOK(assert_alone(section));
	error->code = WEIR_OK;
	error->message[0] = '\0';
	weiri_right_held_by(section->right, weiri_record_my_thread());
	weiri_inside_begin(&inside, section);
	status = fn(context, error);
	weiri_error_end(error);
	weiri_inside_end(&inside);
	leave(section);
	return WEIRI_LIKELY(status == WEIR_OK) ? status : failed_inside(status, error);
}

enum weir_status weir_critical_section_execute(weir_critical_section *section, weir_critical_section_fn *fn,
                                               void *context, uint64_t deadline_ns, weir_cancel *cancel,
                                               weir_error *error)
{
	weir_error ours;
	enum weir_status status;

	if (section == NULL || fn == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "critical section: %s is NULL",
		                  section == NULL ? "section" : "fn");
	if (WEIRI_UNLIKELY(is_inside(section))) /* C3 */
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "critical section \"%s\": executed inside itself, which would wait for ever",
		                  weir_queue_name(section->queue));
	status = enter(section, deadline_ns, cancel);
	if (WEIRI_UNLIKELY(status != WEIR_OK))
		return fail_to_enter(section, status, cancel, error);
	status = run_inside(section, fn, context, &ours);
	if (WEIRI_UNLIKELY(status != WEIR_OK) && error != NULL)
		*error = ours;
	return status;
}

static enum weir_status prepare_entry(weir_critical_section *section, void **room, weir_queue_done_fn *done,
                                      void *context, weir_pending **pending, weir_error *error)
{
	enum weir_status status =
		weiri_queue_prepare(section->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, room, 1, done, context, pending, NULL);

	return status == WEIR_OK ? WEIR_OK : fail_to_enter(section, status, NULL, error);
}

enum weir_status weiri_critical_section_start_enter(weir_critical_section *section, void **room,
                                                    weir_queue_done_fn *done, void *context, weir_pending **handle,
                                                    weir_error *error)
{
	weir_pending *pending;
	enum weir_status status = prepare_entry(section, room, done, context, &pending, error);

	if (status == WEIR_OK)
		weiri_pending_begin(weiri_record_get(), pending, handle);
	return status;
}

/* -- without a thread -------------------------------------------------------------------------- */

/* Calls `done`, and frees the execution. */
static void end_execution(struct execution *execution, enum weir_status status, const weir_error *error)
{
	weir_allocator allocator = execution->allocator;

	weiri_pending_set_outcome(execution->pending, status, error);
	execution->done(execution->context, status, error);
	weiri_release(&allocator, execution, sizeof(*execution), alignof(struct execution));
}

/*
 * Runs the execution as a task of the pool, and not on the thread that left the section. That
 * thread may be inside other sections, or hold what the body waits for.
 */
static void run_task(weir_task *task)
{
	struct execution *execution = WEIRI_CONTAINER_OF(task, struct execution, task);
	weir_pending *pending = execution->pending;
	weir_error error;
	enum weir_status status = run_inside(execution->section, execution->fn, execution->context, &error);

	end_execution(execution, status, &error);
	weiri_pending_told_later(pending);
}

static void on_entered(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct execution *execution = context;
	weir_error why;

	(void)error, (void)items, (void)done;
	if (status == WEIR_OK) {
		weiri_pending_defer(execution->pending);
		execution->task.run = run_task;
		/* `done` may have been called, and the pool be destroyed, before this call returns. */
		weiri_pool_submit_counted(execution->pool, &execution->task);
		return;
	}
	(void)fail_to_enter(execution->section, status, NULL, &why);
	end_execution(execution, status, &why);
}

static enum weir_status check_start(const weir_critical_section *section, const weir_pool *pool,
                                    weir_critical_section_fn *fn, weir_critical_section_done_fn *done,
                                    weir_error *error)
{
	const char *missing = NULL;

	if (section == NULL)
		missing = "section";
	else if (pool == NULL)
		missing = "pool";
	else if (fn == NULL)
		missing = "fn";
	else if (done == NULL)
		missing = "done";
	return missing == NULL ? WEIR_OK
	                       : weiri_fail(error, WEIR_INVALID_ARGUMENT, "critical section: %s is NULL", missing);
}

enum weir_status weir_critical_section_start(weir_critical_section *section, weir_pool *pool,
                                             weir_critical_section_fn *fn, void *context,
                                             weir_critical_section_done_fn *done, weir_pending **handle,
                                             weir_error *error)
{
	enum weir_status status = check_start(section, pool, fn, done, error);
	struct execution *execution;

	if (status != WEIR_OK)
		return status;
	execution = weiri_allocate_zeroed(&section->allocator, sizeof(*execution), alignof(struct execution));
	if (execution == NULL)
		return fail_to_enter(section, WEIR_RESOURCE_EXHAUSTED, NULL, error);
	execution->section = section;
	execution->pool = pool;
	execution->fn = fn;
	execution->context = context;
	execution->done = done;
	execution->allocator = section->allocator;
	status = prepare_entry(section, &execution->room, on_entered, execution, &execution->pending, error);
	if (status == WEIR_OK)
		weiri_pending_begin(weiri_record_get(), execution->pending, handle);
	else
		weiri_release(&section->allocator, execution, sizeof(*execution), alignof(struct execution));
	return status;
}

/* -- creating and destroying ------------------------------------------------------------------- */

static enum weir_status read_options(const struct weir_critical_section_options *options,
                                     struct weir_critical_section_options *given, weir_error *error)
{
	enum weir_status status = weiri_options_read("critical section", options, given, sizeof(*given), error);

	if (status == WEIR_OK)
		status = weiri_options_flags("critical section", given->flags, WEIR_CRITICAL_SECTION_FAIR, error);
	return status;
}

static void section_free(weir_critical_section *section)
{
	weir_allocator allocator = section->allocator;

	weiri_release(&allocator, section, sizeof(*section), alignof(weir_critical_section));
}

static enum weir_status fill(weir_critical_section *section, const struct weir_critical_section_options *given)
{
	struct weir_queue_options options = {
		WEIR_QUEUE_OPTIONS_INIT,
		.capacity = 1,
		.flags = (given->flags & WEIR_CRITICAL_SECTION_FAIR) != 0 ? (uint32_t)WEIR_QUEUE_FAIR : 0,
		.name = given->name != NULL ? given->name : "critical section",
		.allocator = given->allocator,
	};
	enum weir_status status = weiri_queue_create(&options, &weiri_right_store, &section->queue, NULL);

	if (status == WEIR_OK)
		section->right = section->queue->right;
	return status;
}

enum weir_status weir_critical_section_create(const struct weir_critical_section_options *options,
                                              weir_critical_section **out, weir_error *error)
{
	struct weir_critical_section_options given;
	enum weir_status status = read_options(options, &given, error);
	weir_critical_section *section;
	weir_allocator allocator;

	if (status != WEIR_OK || out == NULL)
		return status != WEIR_OK ? status : weiri_fail(error, WEIR_INVALID_ARGUMENT, "critical section: out is NULL");
	allocator = weiri_allocator_or_default(given.allocator);
	section = weiri_allocate_zeroed(&allocator, sizeof(*section), alignof(weir_critical_section));
	if (section != NULL) {
		section->flags = given.flags;
		section->allocator = allocator;
		status = fill(section, &given);
	}
	if (section == NULL || status != WEIR_OK) {
		if (section != NULL)
			section_free(section);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "critical section: no memory");
	}
	*out = section;
	return WEIR_OK;
}

enum weir_status weir_critical_section_destroy(weir_critical_section *section, weir_error *error)
{
	enum weir_status status;

	if (section == NULL)
		return WEIR_OK;
	if (weiri_right_holder(section->right) != WEIRI_RIGHT_FREE)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "critical section \"%s\": an execution is inside",
		                  weir_queue_name(section->queue));
	status = weir_queue_destroy(section->queue, error);
	if (status == WEIR_OK)
		section_free(section);
	return status;
}

const char *weir_critical_section_name(const weir_critical_section *section)
{
	return section != NULL ? weir_queue_name(section->queue) : "(null)";
}

/* -- by name ----------------------------------------------------------------------------------- */

static enum weir_status create(void *context, void **object, weir_error *error)
{
	weir_critical_section *section;
	enum weir_status status = weir_critical_section_create(context, &section, error);

	if (status == WEIR_OK)
		*object = section;
	return status;
}

static enum weir_status compatible(void *context, void *object, weir_error *error)
{
	const struct weir_critical_section_options *asked = context;
	const weir_critical_section *there = object;

	if (there->flags == asked->flags)
		return WEIR_OK;
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "critical section \"%s\": flags are 0x%x, asked for 0x%x",
	                  weir_queue_name(there->queue), there->flags, asked->flags);
}

/*
 * A section that is in use is not freed: its memory is lost, which is better than use after free.
 */
static void destroy(void *object)
{
	weir_error error;

	if (weir_critical_section_destroy(object, &error) != WEIR_OK)
		weiri_log(WEIR_LOG_ERROR, "the last reference to a shared critical section is gone, and its memory is lost: %s",
		          error.message);
}

static const struct weir_resource_type critical_section_type = {"critical section", destroy};

const struct weir_resource_type *weir_critical_section_type(void)
{
	return &critical_section_type;
}

enum weir_status weir_critical_section_find_or_create(weir_store *store, const char *container, const char *name,
                                                      const struct weir_critical_section_options *options,
                                                      weir_resource **out, weir_error *error)
{
	struct weir_critical_section_options asked;
	struct weir_store_maker maker = {create, compatible, &asked};
	enum weir_status status = read_options(options, &asked, error);

	if (status != WEIR_OK)
		return status;
	if (asked.name == NULL)
		asked.name = name;
	return weir_store_find_or_create(store, container, name, &critical_section_type, &maker, out, error);
}
