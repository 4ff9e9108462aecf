/*
 * ck_epoch.c - Concurrency Kit's ck_epoch. Each thread has a record in the epoch, and a read is a
 * section of that record. A section begins with a fence.
 */
#include <ck_epoch.h>

#include "published.h"

struct cell {
	struct published published;
	ck_epoch_t epoch;
};

enum { MAX_THREADS = 1024 };

/*
 * The record of this thread. The epoch never takes a record out of its list, so a thread that ends
 * leaves its record to the next thread.
 */
static _Thread_local ck_epoch_record_t *mine;

static void *create(size_t bytes)
{
	struct cell *cell = aligned_alloc(64, sizeof(*cell));

	if (cell == NULL)
		exit(3);
	ck_epoch_init(&cell->epoch);
	published_init(&cell->published, bytes);
	return cell;
}

static void destroy(void *self)
{
	struct cell *cell = self;
	ck_epoch_record_t *records[MAX_THREADS];
	size_t count = 0;

	/*
	 * No record is in use any more. Each record is a node of the epoch's list, so all are collected
	 * first and freed afterwards.
	 */
	while ((records[count] = ck_epoch_recycle(&cell->epoch, NULL)) != NULL)
		count++;
	while (count != 0)
		free(records[--count]);
	published_fini(&cell->published);
	free(cell);
}

static void thread_begin(void *self)
{
	struct cell *cell = self;

	mine = ck_epoch_recycle(&cell->epoch, NULL);
	if (mine != NULL)
		return;
	if ((mine = aligned_alloc(64, sizeof(*mine))) == NULL)
		exit(3);
	ck_epoch_register(&cell->epoch, mine, NULL);
}

static void thread_end(void *self)
{
	(void)self;
	ck_epoch_unregister(mine);
}

static inline void begin(struct published *p)
{
	(void)p;
	ck_epoch_begin(mine, NULL);
}

static inline void end(struct published *p)
{
	(void)p;
	(void)ck_epoch_end(mine, NULL);
}

static void collect(struct published *p)
{
	ck_epoch_synchronize(mine);
	published_free_retired(p);
}

static uint64_t read_many(void *self, uint64_t count)
{
	return published_read_many(self, count, begin, end);
}

static uint64_t scan_many(void *self, uint64_t count)
{
	return published_scan_many(self, count, begin, end);
}

static void replace(void *self, uint64_t value)
{
	published_replace(self, value, collect);
}

const struct read_contender ck_epoch_read_contender = {
	.about = {.name = "ck_epoch", .version = "Concurrency Kit " CK_VERSION, .lacks = "takes no reference"},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = replace,
};
