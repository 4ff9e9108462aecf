/*
 * critical_section.c - critical sections.
 *
 * Algorithm. A binary semaphore (Dijkstra, 1965): a weir_queue of capacity 1 that holds one item, the right to be inside. To enter is to
 * dequeue it, to leave is to enqueue it again; deadlines, tokens, waiting without a thread, and what a dump says of those who wait are the
 * queue's. What is here: that there is one right, that it comes back whatever happens, and that no thread waits for itself.
 *
 * Invariants
 *   C1  there is one right per section, made with it: in the queue, or with who is inside. So at most one is inside
 *   C2  who has taken it gives it back once: execute() after fn returned, run_inside() the same, a step of a session when the body's nodes
 *       have all ended or been passed over (flow/op_section.c)
 *   C3  an enqueue of the right finds room: "full" is exact for a ring, and the one item is outside of it
 *   C4  a thread that is inside does not wait for the same section: the sections that it is inside of are listed on its stack
 * Pairs: those of the ring and the queue; the right carries what was done inside from each who leaves to the next who enters.
 * Linearization: of entering and leaving, the CAS on the ring's slot by which the right goes out and in.
 * Progress: see weir/critical_section.h. Leaving is retried while there is no memory for the thread's record, without which nobody could be
 *   woken. Only a thread that has not entered by itself can meet that: the worker that runs a body, or ends a step.
 * Memory: a queue, a ring of one slot, and a scalar; 112 bytes and a queue's operation for each that waits without a thread.
 * Checked: tests/test_critical_section.c, stress/model/check_critical_section.c, weir-stress "critical_section".
 */
#include "run/critical_section.h"

#include <sched.h>
#include <stdalign.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "sync/references.h"

struct weir_critical_section {
	weir_queue *queue;
	weiri_right *right;
	uint32_t flags;
	weir_allocator allocator;
};

struct weir_critical_section_op {
	weir_task task;
	void *right; /* once inside */
	weir_critical_section *section;
	weir_pool *pool;
	weir_critical_section_fn *fn;
	void *context;
	weir_critical_section_done_fn *done;
	weir_queue_op *entry; /* with a handle of the caller's */
	_Atomic(size_t) references;
	weir_allocator allocator;
};

/* -- what a thread is inside of ----------------------------------------------------------------------------------------------- */

static WEIRI_TLS struct weiri_inside *innermost;

void weiri_inside_begin(struct weiri_inside *inside, const weir_critical_section *section)
{
	*inside = (struct weiri_inside){section, innermost};
	innermost = inside;
}

void weiri_inside_end(const struct weiri_inside *inside)
{
	innermost = inside->outer;
}

static int is_inside(const weir_critical_section *section)
{
	const struct weiri_inside *at = innermost;

	while (at != NULL && at->section != section)
		at = at->outer;
	return at != NULL;
}

/* -- entering and leaving ----------------------------------------------------------------------------------------------------- */

/* Why who wanted to enter did not; the queue's words are of dequeues. */
static enum weir_status fail_to_enter(const weir_critical_section *section, enum weir_status status,
                                      const weir_cancel *cancel, weir_error *error)
{
	const char *name = weir_queue_name(section->queue);
	weir_error cause = {WEIR_CANCELLED, "cancelled"};

	switch (status) {
	case WEIR_DEADLINE_EXCEEDED:
		return weiri_fail(error, status, "critical section \"%s\": the deadline passed before it was free", name);
	case WEIR_CANCELLED:
		(void)weir_cancel_cause(cancel, &cause);
		return weiri_fail(error, status, "critical section \"%s\": to enter was cancelled; %s: %.120s", name,
		                  weir_status_name(cause.code), cause.message);
	default: return weiri_fail(error, status, "critical section \"%s\": no memory to enter", name);
	}
}

static enum weir_status enter(weir_critical_section *section, uint64_t deadline_ns, weir_cancel *cancel)
{
	enum weir_status status = WEIR_WOULD_BLOCK;
	void *right;

	if (WEIRI_LIKELY(cancel == NULL)) /* one that has fired lets nobody in */
		status = weir_queue_try_dequeue(section->queue, &right);
	if (WEIRI_LIKELY(status == WEIR_OK))
		return WEIR_OK;
	if (status == WEIR_WOULD_BLOCK && deadline_ns == 0 && cancel == NULL)
		return WEIR_DEADLINE_EXCEEDED;
	return weir_queue_dequeue(section->queue, &right, deadline_ns, cancel, NULL);
}

void weiri_critical_section_leave(weir_critical_section *section)
{
	/* [relaxed] for dumps alone. */
	weiri_store_relaxed(&section->queue->occupant, 0u);
	while (weir_queue_try_enqueue(section->queue, section->right) != WEIR_OK) /* C3: no memory for a record */
		(void)sched_yield();
}

/* With the right. */
static enum weir_status run_inside(weir_critical_section *section, weir_critical_section_fn *fn, void *context,
                                   weir_error *error)
{
	struct weiri_inside inside;
	enum weir_status status;

	error->code = WEIR_OK;
	error->message[0] = '\0';
	weiri_store_relaxed(&section->queue->occupant, weiri_thread_id()); /* [relaxed] as above */
	weiri_inside_begin(&inside, section);
	status = fn(context, error);
	weiri_error_end(error);
	weiri_inside_end(&inside);
	weiri_critical_section_leave(section);
	if (status != WEIR_OK)
		error->code = status;
	if (status != WEIR_OK && error->message[0] == '\0')
		(void)weiri_fail(error, status, "what ran inside failed with %s", weir_status_name(status));
	return status;
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
	if (WEIRI_UNLIKELY(is_inside(section))) /* C4 */
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "critical section \"%s\": executed inside of itself, which would wait for ever",
		                  weir_queue_name(section->queue));
	status = enter(section, deadline_ns, cancel);
	if (WEIRI_UNLIKELY(status != WEIR_OK))
		return fail_to_enter(section, status, cancel, error);
	return run_inside(section, fn, context, error != NULL ? error : &ours);
}

enum weir_status weiri_critical_section_start_enter(weir_critical_section *section, void *items[],
                                                    weir_queue_done_fn *done, void *context, weir_queue_op **op,
                                                    weir_error *error)
{
	enum weir_status status =
		weir_queue_start(section->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items, 1, done, context, op, NULL);

	return status == WEIR_OK ? WEIR_OK : fail_to_enter(section, status, NULL, error);
}

/* -- without a thread --------------------------------------------------------------------------------------------------------- */

static void op_release(struct weir_critical_section_op *op)
{
	weir_allocator allocator = op->allocator;

	if (weiri_references_give(&op->references))
		weiri_release(&allocator, op, sizeof(*op), alignof(struct weir_critical_section_op));
}

static void complete(struct weir_critical_section_op *op, enum weir_status status, const weir_error *error)
{
	op->done(op->context, status, error);
	op_release(op);
}

/* As a task: not on the thread that left, which may be inside of other sections, or hold what the body waits for. */
static void run_task(weir_task *task)
{
	struct weir_critical_section_op *op = WEIRI_CONTAINER_OF(task, struct weir_critical_section_op, task);
	weir_error error;
	enum weir_status status = run_inside(op->section, op->fn, op->context, &error);

	complete(op, status, &error);
}

static void on_entered(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct weir_critical_section_op *op = context;
	weir_error why;

	(void)error, (void)items, (void)done;
	if (status == WEIR_OK) {
		op->task.run = run_task;
		(void)weir_pool_submit(op->pool, &op->task); /* fails for no arguments but bad ones */
		return;
	}
	(void)fail_to_enter(op->section, status, NULL, &why);
	complete(op, status, &why);
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
                                             weir_critical_section_done_fn *done, weir_critical_section_op **out,
                                             weir_error *error)
{
	enum weir_status status = check_start(section, pool, fn, done, error);
	struct weir_critical_section_op *op;

	if (status != WEIR_OK)
		return status;
	op = weiri_allocate_zeroed(&section->allocator, sizeof(*op), alignof(struct weir_critical_section_op));
	if (op == NULL)
		return fail_to_enter(section, WEIR_RESOURCE_EXHAUSTED, NULL, error);
	op->section = section;
	op->pool = pool;
	op->fn = fn;
	op->context = context;
	op->done = done;
	op->allocator = section->allocator;
	weiri_store_relaxed(&op->references, (size_t)(out != NULL ? 2 : 1)); /* [relaxed] not shared yet */
	/* Without a handle it may be gone when the call returns. */
	status =
		weiri_critical_section_start_enter(section, &op->right, on_entered, op, out != NULL ? &op->entry : NULL, error);
	if (status != WEIR_OK)
		weiri_release(&section->allocator, op, sizeof(*op), alignof(struct weir_critical_section_op));
	else if (out != NULL)
		*out = op;
	return status;
}

void weir_critical_section_op_cancel(weir_critical_section_op *op)
{
	if (op != NULL)
		weir_queue_op_cancel(op->entry, NULL);
}

void weir_critical_section_op_release(weir_critical_section_op *op)
{
	if (op == NULL)
		return;
	weir_queue_op_release(op->entry);
	op_release(op);
}

/* -- creating and destroying -------------------------------------------------------------------------------------------------- */

static enum weir_status read_options(const struct weir_critical_section_options *options,
                                     struct weir_critical_section_options *given, weir_error *error)
{
	*given = (struct weir_critical_section_options){.struct_size = sizeof(*given)};
	if (options != NULL && !weiri_options_size_ok(options->struct_size, sizeof(*given)))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "critical section: struct_size is %zu, expected %zu",
		                  options->struct_size, sizeof(*given));
	if (options != NULL)
		memcpy(given, options, options->struct_size);
	if ((given->flags & ~(uint32_t)WEIR_CRITICAL_SECTION_FAIR) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "critical section: unknown flags 0x%x", given->flags);
	return WEIR_OK;
}

static void section_free(weir_critical_section *section)
{
	weir_allocator allocator = section->allocator;

	weir_tensor_release(section->right);
	weiri_release(&allocator, section, sizeof(*section), alignof(weir_critical_section));
}

static enum weir_status fill(weir_critical_section *section, const struct weir_critical_section_options *given)
{
	struct weir_queue_options options = {
		.struct_size = sizeof(options),
		.capacity = 1,
		.flags = WEIRI_QUEUE_OF_SECTION,
		.name = given->name != NULL ? given->name : "critical section",
		.allocator = given->allocator,
	};
	enum weir_status status = weir_tensor_scalar_i32(1, &section->right);

	if ((given->flags & WEIR_CRITICAL_SECTION_FAIR) != 0)
		options.flags |= WEIR_QUEUE_FAIR;
	if (status == WEIR_OK)
		status = weiri_queue_create(&options, &section->queue, NULL);
	if (status == WEIR_OK)
		weiri_critical_section_leave(section); /* C1: creating the queue found a record */
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
	if (weir_queue_size(section->queue) == 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "critical section \"%s\": somebody is inside",
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

/* -- by name ------------------------------------------------------------------------------------------------------------------ */

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

/* One that is in use stays, as its memory is: better lost than used after its end. */
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
