/*
 * queue.c - creating, destroying and closing queues.
 */
#include <stdalign.h>
#include <string.h>
#include <weir/time.h>

#include "base/error.h"
#include "queue/announce.h"
#include "queue/op.h"
#include "queue/registry.h"

static enum weir_status check_options(const struct weir_queue_options *options, weir_error *error)
{
	if (options == NULL || options->struct_size != sizeof(*options))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: options are NULL or of another size");
	if (options->order != WEIR_QUEUE_FIFO && options->order != WEIR_QUEUE_SHUFFLE &&
	    options->order != WEIR_QUEUE_PRIORITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: %d is no order", (int)options->order);
	if ((options->flags & ~(uint32_t)WEIR_QUEUE_FAIR) != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: unknown flags 0x%x", options->flags);
	if (options->capacity == 0 || options->capacity > WEIR_RING_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: capacity is %zu, must be 1 to %d", options->capacity,
		                  WEIR_RING_MAX_CAPACITY);
	if (options->order == WEIR_QUEUE_SHUFFLE && options->capacity > WEIRI_SHUFFLE_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: capacity is %zu, a shuffle queue holds at most %d",
		                  options->capacity, WEIRI_SHUFFLE_MAX_CAPACITY);
	if (options->order == WEIR_QUEUE_PRIORITY && options->capacity > WEIR_PRIORITY_QUEUE_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: capacity is %zu, a priority queue holds at most %d",
		                  options->capacity, WEIR_PRIORITY_QUEUE_MAX_CAPACITY);
	if ((options->order == WEIR_QUEUE_PRIORITY) != (options->key != NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: key is %s",
		                  options->key != NULL ? "for priority queues" : "NULL, a priority queue needs one");
	if (options->order != WEIR_QUEUE_SHUFFLE && options->min_after_dequeue != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: min_after_dequeue is for shuffle queues");
	if (options->min_after_dequeue >= options->capacity)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: min_after_dequeue %zu must be below the capacity %zu",
		                  options->min_after_dequeue, options->capacity);
	return WEIR_OK;
}

static uint64_t choose_seed(const struct weir_queue_options *options, const weir_queue *queue)
{
	uint64_t seed = options->seed;

	if (options->order != WEIR_QUEUE_SHUFFLE)
		return 0;
	/* Two queues made in one nanosecond differ by their address. Never 0, which would read back as "none". */
	return seed != 0 ? seed : ((weir_now_ns() ^ (uint64_t)(uintptr_t)queue << 20) | 1);
}

static enum weir_status make_store(weir_queue *queue, const struct weir_queue_options *options)
{
	struct weir_ring_options ring = {.struct_size = sizeof(ring), .allocator = &queue->allocator};

	queue->bag = weiri_bag_of(options->order);
	return queue->bag != NULL ? queue->bag->create(queue, options)
	                          : weir_ring_create(options->capacity, &ring, &queue->ring);
}

void weiri_queue_free(weir_queue *queue)
{
	weir_allocator allocator = queue->allocator;

	weiri_queue_put_out(queue);
	weiri_announced_free(queue);
	weir_ring_destroy(queue->ring);
	if (queue->bag != NULL)
		queue->bag->destroy(queue);
	weiri_release(&allocator, queue->name, queue->name_size, 1);
	weiri_release(&allocator, queue, sizeof(*queue), alignof(weir_queue));
}

static enum weir_status fill(weir_queue *queue, const struct weir_queue_options *options)
{
	const char *name = options->name != NULL ? options->name : "queue";

	queue->order = options->order;
	queue->flags = options->flags;
	queue->capacity = options->capacity;
	queue->level_mask = weiri_level_step(options->capacity) - 1;
	if ((options->flags & WEIRI_QUEUE_OF_SECTION) != 0)
		queue->level_mask = SIZE_MAX; /* how full it is says nothing, and nobody reads it */
	queue->seed = choose_seed(options, queue);
	queue->key = options->key;
	queue->key_context = options->key_context;
	queue->drop = options->drop;
	queue->drop_context = options->drop_context;
	queue->name_size = strlen(name) + 1;
	queue->name = weiri_allocate(&queue->allocator, queue->name_size, 1);
	if (queue->name == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	memcpy(queue->name, name, queue->name_size);
	return make_store(queue, options);
}

/* From here on a dump finds it. */
static enum weir_status enter_registry(weir_queue *queue)
{
	struct weiri_record *record = weiri_record_get();

	queue->registered = record != NULL ? weiri_registry_add(record, queue, NULL) : NULL;
	return queue->registered != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}

enum weir_status weiri_queue_create(const struct weir_queue_options *options, weir_queue **out, weir_error *error)
{
	weir_allocator allocator = weiri_allocator_or_default(options->allocator);
	weir_queue *queue = weiri_allocate_zeroed(&allocator, sizeof(*queue), alignof(weir_queue));
	enum weir_status status = WEIR_RESOURCE_EXHAUSTED;

	if (queue != NULL) {
		queue->allocator = allocator;
		status = fill(queue, options);
		if (status == WEIR_OK)
			status = enter_registry(queue);
	}
	if (queue == NULL || status != WEIR_OK) {
		if (queue != NULL)
			weiri_queue_free(queue);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue: no memory for %zu items", options->capacity);
	}
	*out = queue;
	return WEIR_OK;
}

enum weir_status weir_queue_create(const struct weir_queue_options *options, weir_queue **out, weir_error *error)
{
	enum weir_status status = check_options(options, error);

	if (status == WEIR_OK && out == NULL)
		status = weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: out is NULL");
	return status == WEIR_OK ? weiri_queue_create(options, out, error) : status;
}

static void drop_all(struct weiri_record *record, weir_queue *queue)
{
	struct weiri_scope scope = weiri_queue_unentered(record);
	enum weir_status status;
	uint64_t item;

	/* Closing lifts min_after_dequeue. */
	(void)weir_queue_close(queue, WEIR_CLOSE_CANCEL, NULL);
	while (weiri_queue_take(&scope, queue, &item, 1, 0, &status) != 0) {
		if (queue->drop != NULL)
			queue->drop(queue->drop_context, weiri_item_pointer(item));
	}
	weiri_queue_retire_gathered(&scope);
}

/* Refuses while somebody is known to need it. Sets *record. */
static enum weir_status check_destroy(weir_queue *queue, struct weiri_record **record, weir_error *error)
{
	size_t waiting, announced;

	/* [relaxed] a count. That an operation has ended its caller knows from its completion, which comes after it was subtracted. */
	waiting = weiri_load_relaxed(&queue->waiting);
	if (waiting != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "queue \"%s\": %zu operations wait in it; close it first",
		                  queue->name, waiting);
	*record = weiri_record_get();
	if (*record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for this thread's record",
		                  queue->name);
	announced = weiri_queue_announced(*record, queue);
	if (announced != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "queue \"%s\": %zu threads are announced to feed or drain it; withdraw that first",
		                  queue->name, announced);
	return WEIR_OK;
}

enum weir_status weir_queue_destroy(weir_queue *queue, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status;

	if (queue == NULL)
		return WEIR_OK;
	status = check_destroy(queue, &record, error);
	if (status != WEIR_OK)
		return status;
	drop_all(record, queue);
	weiri_visits_end_of(queue); /* a completion may destroy it: the call that runs that goes on */
	if (weiri_registry_remove(record, queue->registered)) /* 0: a dump looks at it, and frees it */
		weiri_queue_free(queue);
	return WEIR_OK;
}

/* -- closing ------------------------------------------------------------------------------------------------------------------ */

static void note_cause(weir_queue *queue, const weir_error *cause)
{
	/* [relaxed] the first one; cause_ready carries what it says. */
	if (cause == NULL || cause->code == WEIR_OK || weiri_exchange_relaxed(&queue->cause_taken, 1u) != 0)
		return;
	queue->cause = weiri_error_kept(cause);
	/* [release] pairs with weiri_queue_cause(). */
	weiri_store_release(&queue->cause_ready, 1u);
}

/* An enqueue on the list that nobody has cancelled yet, held for the caller; NULL: none. */
static weir_queue_op *find_uncancelled(struct weiri_record *record, weir_queue *queue)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_list_node *node = NULL;
	weir_queue_op *found = NULL;

	while (found == NULL && (node = weiri_list_next(&scope, &queue->producers.list, node)) != NULL) {
		weir_queue_op *op = WEIRI_CONTAINER_OF(node, weir_queue_op, node);

		/* [relaxed] a look; weiri_op_cancel decides. */
		if ((weiri_load_relaxed(&op->state) & (WEIRI_OP_CANCEL | WEIRI_OP_DONE)) == 0) {
			weiri_op_retain(op);
			found = op;
		}
	}
	weiri_scope_leave(&scope);
	return found;
}

/* Up to the end of the visit: a completion may destroy the queue. */
static void cancel_waiting_enqueues(struct weiri_record *record, weir_queue *queue, const struct weiri_visit *visit)
{
	weir_queue_op *op;

	while (!weiri_visit_is_over(visit) && (op = find_uncancelled(record, queue)) != NULL) {
		weiri_op_cancel(op, WEIRI_OP_FOR_CLOSE);
		weiri_op_release(op);
	}
}

enum weir_status weir_queue_close(weir_queue *queue, enum weir_close_mode mode, const weir_error *cause)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t bits = WEIRI_GATE_CLOSED | (mode == WEIR_CLOSE_CANCEL ? WEIRI_GATE_CANCEL : 0);
	struct weiri_visit visit;

	if (queue == NULL || (mode != WEIR_CLOSE_DRAIN && mode != WEIR_CLOSE_CANCEL))
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	note_cause(queue, cause);
	/* The store first: linearization of the close. */
	if (queue->bag == NULL)
		weir_ring_close(queue->ring);
	else
		queue->bag->close(queue);
	/* [seq_cst] Dekker with put_on_list(): it appends, then looks at the gate; we set it, then walk. */
	(void)weiri_fetch_or_seq_cst(&queue->gate, bits);
	weiri_visit_begin(&visit, queue);
	if (mode == WEIR_CLOSE_CANCEL)
		cancel_waiting_enqueues(record, queue, &visit);
	if (!weiri_visit_is_over(&visit))
		weiri_queue_pump(record, queue);
	weiri_visit_end(&visit);
	return WEIR_OK;
}

/* -- looking ------------------------------------------------------------------------------------------------------------------ */

int weir_queue_closed(const weir_queue *queue)
{
	return queue != NULL && weiri_queue_store_closed(queue);
}

size_t weir_queue_size(const weir_queue *queue)
{
	return queue != NULL ? weiri_queue_size(queue) : 0;
}

size_t weir_queue_capacity(const weir_queue *queue)
{
	return queue != NULL ? queue->capacity : 0;
}

uint64_t weir_queue_seed(const weir_queue *queue)
{
	return queue != NULL ? queue->seed : 0;
}

const char *weir_queue_name(const weir_queue *queue)
{
	return queue != NULL ? queue->name : "(null)";
}
