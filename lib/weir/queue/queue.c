/*
 * queue.c - creating, destroying and closing queues.
 */
#include <stdalign.h>
#include <string.h>
#include <weir/time.h>

#include "base/error.h"
#include "base/options.h"
#include "queue/announce.h"
#include "queue/operation.h"
#include "sync/registry.h"

static enum weir_status check_options(const struct weir_queue_options *options, weir_error *error)
{
	enum weir_status status = weiri_options_flags("queue", options->flags, WEIR_QUEUE_FAIR | WEIR_QUEUE_BATCHES, error);
	const struct weiri_store_kind *store = weiri_store_for(options->order);

	if (status != WEIR_OK)
		return status;
	if (store == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: %d is not an order", (int)options->order);
	if (options->capacity == 0 || options->capacity > WEIR_RING_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: capacity is %zu, must be 1 to %d", options->capacity,
		                  WEIR_RING_MAX_CAPACITY);
	if (options->capacity > store->max_capacity)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: capacity is %zu, a %s queue holds at most %zu",
		                  options->capacity, store->name, store->max_capacity);
	if (store->has_keys != (options->key != NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: key is %s",
		                  options->key != NULL ? "for priority queues" : "NULL, a priority queue needs one");
	if ((options->flags & WEIR_QUEUE_BATCHES) != 0 && options->order != WEIR_QUEUE_FIFO)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: WEIR_QUEUE_BATCHES is for FIFO queues");
	if (!store->has_draws && options->min_after_dequeue != 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: min_after_dequeue is for shuffle queues");
	if (options->min_after_dequeue >= options->capacity)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: min_after_dequeue %zu must be below the capacity %zu",
		                  options->min_after_dequeue, options->capacity);
	return WEIR_OK;
}

static uint64_t choose_seed(const struct weir_queue_options *options, const weir_queue *queue)
{
	uint64_t seed = options->seed;

	if (!queue->store->has_draws)
		return 0;
	/*
	 * Two queues that are created in the same nanosecond differ by their address. The seed is never
	 * 0, because a caller that reads it back would take 0 for "none".
	 */
	return seed != 0 ? seed : ((weir_now_ns() ^ (uint64_t)(uintptr_t)queue << 20) | 1);
}

void weiri_queue_free(weir_queue *queue)
{
	weir_allocator allocator = queue->allocator;

	weiri_queue_put_out(queue);
	weiri_announced_free(queue);
	queue->store->destroy(queue);
	weiri_release(&allocator, queue->name, queue->name_size, 1);
	weiri_release(&allocator, queue, sizeof(*queue), alignof(weir_queue));
}

static enum weir_status fill(weir_queue *queue, const struct weir_queue_options *options)
{
	const char *name = options->name != NULL ? options->name : "queue";

	queue->flags = options->flags;
	queue->capacity = options->capacity;
	queue->level_mask = weiri_level_step(options->capacity) - 1;
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
	return queue->store->create(queue, options);
}

static void free_registered(void *queue)
{
	weiri_queue_free(queue);
}

const struct weiri_registered_kind weiri_queue_registered = {.free = free_registered};

/* Adds the queue to the registry, so that a dump finds it. */
static enum weir_status enter_registry(weir_queue *queue)
{
	struct weiri_record *record = weiri_record_get();

	queue->registered = record != NULL ? weiri_registry_add(record, &weiri_queue_registered, queue) : NULL;
	return queue->registered != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}

enum weir_status weiri_queue_create(const struct weir_queue_options *options, const struct weiri_store_kind *store,
                                    weir_queue **out, weir_error *error)
{
	weir_allocator allocator = weiri_allocator_or_default(options->allocator);
	weir_queue *queue = weiri_allocate_zeroed(&allocator, sizeof(*queue), alignof(weir_queue));
	enum weir_status status = WEIR_RESOURCE_EXHAUSTED;

	if (queue != NULL) {
		queue->store = store;
		queue->allocator = allocator;
		status = fill(queue, options);
		if (status == WEIR_OK)
			status = enter_registry(queue);
	}
	if (queue == NULL || status != WEIR_OK) {
		if (queue != NULL)
			weiri_queue_free(queue);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue: no memory for %zu item%s", options->capacity,
		                  WEIRI_S(options->capacity));
	}
	*out = queue;
	return WEIR_OK;
}

enum weir_status weir_queue_create(const struct weir_queue_options *options, weir_queue **out, weir_error *error)
{
	struct weir_queue_options given;
	enum weir_status status;

	if (options == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue: %s is NULL", options == NULL ? "options" : "out");
	status = weiri_options_read("queue", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = check_options(&given, error);
	if (status != WEIR_OK)
		weiri_error_name(error, "queue", given.name);
	return status == WEIR_OK ? weiri_queue_create(&given, weiri_store_for(given.order), out, error) : status;
}

static void drop_all(struct weiri_record *record, weir_queue *queue)
{
	struct weiri_scope scope = weiri_queue_unentered(record);
	enum weir_status status;
	uint64_t item;

	/* Closing sets min_after_dequeue to 0. */
	(void)weir_queue_close(queue, WEIR_CLOSE_CANCEL, NULL);
	while (weiri_queue_take(&scope, queue, &item, 1, false, &status) != 0) {
		if (queue->drop != NULL)
			queue->drop(queue->drop_context, weiri_item_pointer(item));
	}
	weiri_queue_retire_gathered(&scope);
}

/* Refuses while the queue is known to be in use. Sets *record. */
static enum weir_status check_destroy(weir_queue *queue, struct weiri_record **record, weir_error *error)
{
	size_t waiting, announced;

	/*
	 * [relaxed] a count. The owner of an operation learns from the completion that the operation
	 * has ended, and the completion comes after the subtraction from this count.
	 */
	waiting = weiri_load_relaxed(&queue->waiting);
	if (waiting != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "queue \"%s\": %zu waiting operation%s; close it first",
		                  queue->name, waiting, WEIRI_S(waiting));
	*record = weiri_record_get();
	if (*record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for this thread's record",
		                  queue->name);
	announced = weiri_queue_announced(*record, queue);
	if (announced != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "queue \"%s\": %zu announced producer or consumer thread%s; withdraw the announcement first",
		                  queue->name, announced, WEIRI_S(announced));
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
	weiri_visits_end_of(queue); /* a completion may destroy the queue: the call that runs the completion continues */
	if (weiri_registry_remove(record, queue->registered)) /* false: a dump reads the queue, and frees it afterwards */
		weiri_queue_free(queue);
	return WEIR_OK;
}

/* -- closing ----------------------------------------------------------------------------------- */

static void note_cause(weir_queue *queue, const weir_error *cause)
{
	/* [relaxed] it only selects the first closer; cause_ready publishes the cause. */
	if (!weiri_is_cause(cause) || weiri_exchange_relaxed(&queue->cause_taken, 1u) != 0)
		return;
	queue->cause = weiri_error_kept(cause);
	/* [release] pairs with weiri_queue_cause(). */
	weiri_store_release(&queue->cause_ready, 1u);
}

/*
 * Returns an enqueue on the list that is not cancelled yet, with a reference for the caller. NULL:
 * there is none.
 */
static weir_pending *find_uncancelled(struct weiri_record *record, weir_queue *queue)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_list_node *node = NULL;
	weir_pending *found = NULL;

	while (found == NULL && (node = weiri_list_next(&scope, &queue->producers.list, node)) != NULL) {
		weir_pending *pending = weiri_pending_entry_of(node)->pending;

		/*
		 * [relaxed] a look; weiri_pending_cancel() decides. A select reads the admission word
		 * itself.
		 */
		if (pending->kind == &weiri_queue_kind &&
		    (weiri_load_relaxed(&pending->state) & (WEIRI_PENDING_CANCEL | WEIRI_PENDING_DONE)) == 0) {
			weiri_pending_retain(pending);
			found = pending;
		}
	}
	weiri_scope_leave(&scope);
	return found;
}

/*
 * Cancels the enqueues that wait, and serves the other operations. A completion may destroy the
 * queue.
 */
static void serve_cancelled(struct weiri_record *record, void *object, struct weiri_served *served)
{
	weir_queue *queue = object;
	weir_pending *pending;
	struct weiri_visit visit;

	weiri_visit_begin(&visit, queue, serve_cancelled);
	while (!weiri_visit_is_over(&visit) && (pending = find_uncancelled(record, queue)) != NULL) {
		weiri_pending_cancel(pending, WEIRI_PENDING_FOR_CLOSE);
		weiri_pending_release(pending);
	}
	if (!weiri_visit_is_over(&visit))
		weiri_queue_serve(record, queue, served);
	weiri_visit_end(&visit);
}

enum weir_status weir_queue_close(weir_queue *queue, enum weir_close_mode mode, const weir_error *cause)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t bits = WEIRI_ADMISSION_CLOSED | (mode == WEIR_CLOSE_CANCEL ? WEIRI_ADMISSION_CANCEL : 0);

	if (queue == NULL || (mode != WEIR_CLOSE_DRAIN && mode != WEIR_CLOSE_CANCEL))
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	note_cause(queue, cause);
	/* The store is closed first. The close linearizes there. */
	queue->store->close(queue);
	/*
	 * [seq_cst] Dekker with join() of operation.c: it appends, then reads the admission word; the
	 * close sets the admission word, then walks the list.
	 */
	(void)weiri_fetch_or_seq_cst(&queue->admission, bits);
	weiri_pending_pump(record, queue, mode == WEIR_CLOSE_CANCEL ? serve_cancelled : weiri_queue_serve);
	return WEIR_OK;
}

/* -- looking ----------------------------------------------------------------------------------- */

bool weir_queue_closed(const weir_queue *queue)
{
	return queue != NULL && weiri_queue_store_closed(queue);
}

size_t weir_queue_size_approx(const weir_queue *queue)
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
