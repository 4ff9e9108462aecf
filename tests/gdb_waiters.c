/*
 * gdb_waiters.c - the program that scripts/check_gdb inspects: threads and asynchronous operations
 * that wait in queues.
 *
 * It prints "ready" when all of them wait, and ends when its standard input ends.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
#include <weir/critical_section.h>
#include <weir/announce.h>
#include <weir/dump.h>
#include <weir/select.h>
#include <weir/flow/staging.h>

#include "queue/operation.h"

enum { LISTED = 6 /* entries on lists: see main() */ };

static weir_queue *starved, *full, *stock, *sorted;
static weir_queue *all[2];

static void *dequeue(void *context)
{
	void *item;

	(void)weir_queue_dequeue(starved, &item, WEIR_NO_DEADLINE, NULL, NULL);
	return context;
}

static void *enqueue(void *context)
{
	(void)weir_queue_enqueue(full, &full, WEIR_NO_DEADLINE, NULL, NULL);
	return context;
}

static void *choose(void *context)
{
	struct weir_select_case cases[2] = {{.queue = starved, .kind = WEIR_SELECT_DEQUEUE},
	                                    {.queue = full, .kind = WEIR_SELECT_ENQUEUE, .item = &full}};
	size_t chosen;

	(void)weir_select(cases, 2, WEIR_NO_DEADLINE, NULL, &chosen, NULL);
	return context;
}

static int64_t key_of(void *context, void *item)
{
	(void)context;
	return (int64_t)(intptr_t)item;
}

static void ended(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)context, (void)status, (void)error, (void)items, (void)done;
}

static int begin(const char *name, void *(*body)(void *context))
{
	pthread_t thread;

	return pthread_create(&thread, NULL, body, NULL) == 0 && pthread_setname_np(thread, name) == 0;
}

/* Counts the operations on the lists that no thread has claimed. Each of them really waits. */
static size_t idle(void)
{
	size_t count = 0;

	for (int i = 0; i < 2; i++) {
		struct weiri_list *sides[2] = {&all[i]->producers.list, &all[i]->consumers.list};

		for (int side = 0; side < 2; side++) {
			struct weiri_scope scope = weiri_scope_enter(weiri_record_get());
			struct weiri_list_node *node = NULL;

			while ((node = weiri_list_next(&scope, sides[side], node)) != NULL) {
				const weir_pending *pending = weiri_pending_entry_of(node)->pending;

				/* [acquire] as in every claimer */
				count += pending != NULL && weiri_load_acquire(&pending->state) == 0;
			}
			weiri_scope_leave(&scope);
		}
	}
	return count;
}

static void got(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple, size_t count)
{
	(void)context, (void)status, (void)error, (void)tuple, (void)count;
}

/*
 * Makes objects that are not queues: a critical section, and a staging area in which a get waits.
 * Returns 0 if that fails.
 */
static int begin_others(void)
{
	static const struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	struct weir_critical_section_options press = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "press"};
	struct weir_staging_options ahead = {WEIR_STAGING_OPTIONS_INIT, .name = "ahead", .components = &component,
	                                     .component_count = 1};
	weir_critical_section *section;
	weir_staging *staging;

	return weir_critical_section_create(&press, &section, NULL) == WEIR_OK &&
	       weir_staging_create(&ahead, &staging, NULL) == WEIR_OK &&
	       weir_staging_start_get(staging, got, NULL, NULL, NULL) == WEIR_OK;
}

int main(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 3, .name = "starved"};
	static void *batch[2];
	weir_queue_announcement *announcement;
	static int fd;
	char byte;

	if (weir_queue_create(&options, &starved, NULL) != WEIR_OK)
		return 1;
	options.name = "full";
	options.order = WEIR_QUEUE_SHUFFLE;
	if (weir_queue_create(&options, &full, NULL) != WEIR_OK)
		return 1;
	options.name = "stock";
	options.order = WEIR_QUEUE_FIFO;
	if (weir_queue_create(&options, &stock, NULL) != WEIR_OK)
		return 1;
	options.name = "sorted";
	options.order = WEIR_QUEUE_PRIORITY;
	options.key = key_of;
	if (weir_queue_create(&options, &sorted, NULL) != WEIR_OK)
		return 1;
	for (int i = 0; i < 5; i++) {
		void *item;

		(void)weir_queue_try_enqueue(stock, &stock);
		(void)weir_queue_try_enqueue(sorted, &stock);
		if (i < 3)
			(void)weir_queue_try_dequeue(stock, &item);
		if (i < 4)
			(void)weir_queue_try_dequeue(sorted, &item);
	}
	if (!begin_others())
		return 1;
	(void)weir_queue_close(stock, WEIR_CLOSE_DRAIN, NULL);
	all[0] = starved;
	all[1] = full;
	for (int i = 0; i < 3; i++)
		(void)weir_queue_try_enqueue(full, &full);
	if (weir_queue_announce(starved, WEIR_QUEUE_PRODUCER, "nobody", &announcement, NULL) != WEIR_OK)
		return 1;
	/* A descriptor is not a waiter. */
	if (weir_queue_readable_fd(starved, &fd, NULL) != WEIR_OK)
		return 1;
	if (!begin("eater", dequeue) || !begin("eater", dequeue) || !begin("feeder", enqueue) || !begin("chooser", choose))
		return 1;
	if (weir_queue_start(starved, WEIR_QUEUE_OP_DEQUEUE_MANY, batch, 2, ended, NULL, NULL, NULL) != WEIR_OK)
		return 1;
	while (idle() != LISTED)
		(void)sched_yield();
	(void)puts("ready");
	(void)fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	/* Its threads wait for ever. */
	_exit(0);
}
