/*
 * announce.c - see announce.h, and weir/announce.h.
 */
#include "queue/announce.h"

#include <stdalign.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "queue/queue.h"

static weir_queue_announcement *announcement_of(struct weiri_list_node *node)
{
	return node != NULL ? WEIRI_CONTAINER_OF(node, weir_queue_announcement, node) : NULL;
}

static void free_announcement(weir_queue_announcement *announcement)
{
	weir_allocator allocator = announcement->allocator;

	weiri_release(&allocator, announcement, sizeof(*announcement), alignof(weir_queue_announcement));
}

static void announcement_ended(struct weiri_retired *retired)
{
	free_announcement(announcement_of(WEIRI_CONTAINER_OF(retired, struct weiri_list_node, retired)));
}

static void append(struct weiri_record *record, weir_queue_announcement *announcement)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	weiri_list_node_init(&announcement->node, sizeof(*announcement), announcement_ended);
	weiri_list_append(&scope, &announcement->queue->announced, &announcement->node);
	weiri_scope_leave(&scope);
}

enum weir_status weir_queue_announce(weir_queue *queue, enum weir_queue_role role, const char *as,
                                     weir_queue_announcement **out, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	weir_queue_announcement *announcement;

	if (queue == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s is NULL", queue == NULL ? "queue" : "out");
	if (role != WEIR_QUEUE_PRODUCER && role != WEIR_QUEUE_CONSUMER)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "queue \"%s\": %d is not a role", queue->name, (int)role);
	announcement = record != NULL
	                   ? weiri_allocate(&queue->allocator, sizeof(*announcement), alignof(weir_queue_announcement))
	                   : NULL;
	if (announcement == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "queue \"%s\": no memory for an announcement", queue->name);
	weiri_store_relaxed(&announcement->withdrawn, 0u); /* [relaxed] not shared yet */
	announcement->queue = queue;
	announcement->role = role;
	announcement->thread = (uint32_t)gettid();
	announcement->allocator = queue->allocator;
	(void)snprintf(announcement->as, sizeof(announcement->as), "%s", as != NULL ? as : "");
	append(record, announcement);
	*out = announcement;
	return WEIR_OK;
}

void weir_queue_withdraw(weir_queue_announcement *announcement)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_scope scope;

	if (announcement == NULL)
		return;
	/* [relaxed] only shown in dumps. */
	weiri_store_relaxed(&announcement->withdrawn, 1u);
	if (record == NULL) /* no memory for a record: the announcement stays on the list as long as the queue */
		return;
	scope = weiri_scope_enter(record);
	(void)weiri_list_remove(&scope, &announcement->queue->announced, &announcement->node);
	weiri_scope_leave(&scope);
}

size_t weiri_queue_announced(struct weiri_record *record, weir_queue *queue)
{
	weir_queue_announcement *one = NULL;
	struct weiri_scope scope;
	size_t count = 0;

	if (!weiri_list_occupied(&queue->announced))
		return 0;
	scope = weiri_scope_enter(record);
	while ((one = weiri_announced_next(&scope, queue, one)) != NULL)
		count++;
	weiri_scope_leave(&scope);
	return count;
}

bool weiri_queue_is_fed(weir_queue *queue)
{
	struct weiri_record *record = weiri_record_get();
	weir_queue_announcement *one = NULL;
	struct weiri_scope scope;
	bool fed = false;

	if (record == NULL)
		return true;
	scope = weiri_scope_enter(record);
	while (!fed && (one = weiri_announced_next(&scope, queue, one)) != NULL)
		fed = one->role == WEIR_QUEUE_PRODUCER;
	weiri_scope_leave(&scope);
	return fed;
}

weir_queue_announcement *weiri_announced_next(struct weiri_scope *scope, weir_queue *queue,
                                              const weir_queue_announcement *after)
{
	struct weiri_list_node *node = weiri_list_next(scope, &queue->announced, after != NULL ? &after->node : NULL);

	/* [relaxed] a caller that needs certainty has ordered the withdrawal before its call. */
	while (node != NULL && weiri_load_relaxed(&announcement_of(node)->withdrawn) != 0)
		node = weiri_list_next(scope, &queue->announced, node);
	return announcement_of(node);
}

void weiri_announced_free(weir_queue *queue)
{
	/* [relaxed] no other thread uses the queue. */
	uintptr_t link = weiri_load_relaxed(&queue->announced.first);

	while (link != 0) {
		weir_queue_announcement *one = announcement_of((struct weiri_list_node *)link);

		link = weiri_load_relaxed(&one->node.next);
		free_announcement(one);
	}
}
