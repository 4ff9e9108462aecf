/*
 * urcu_flavour.c - a section of liburcu. meson compiles it for each flavour (bp, memb, mb, qsbr),
 * once with an inlined read side (_LGPL_SOURCE) and once with calls.
 *
 * In qsbr a section does nothing. Instead, each thread reports from time to time that it holds
 * nothing, here after every 64 reads.
 */
#define URCU_API_MAP
#include WEIR_BENCH_URCU_HEADER

#include "published.h"
#include "urcu_thread.h"

static void *create(size_t bytes)
{
	struct published *p = aligned_alloc(64, sizeof(*p));

	if (p == NULL)
		exit(3);
	published_init(p, bytes);
	return p;
}

static void destroy(void *self)
{
	published_fini(self);
	free(self);
}

static inline void begin(struct published *p)
{
	(void)p;
	rcu_read_lock();
}

static inline void end(struct published *p)
{
	(void)p;
	rcu_read_unlock();
}

static void collect(struct published *p)
{
	synchronize_rcu();
	published_free_retired(p);
}

static void replace(void *self, uint64_t value)
{
	published_replace(self, value, collect);
}

#ifdef WEIR_BENCH_URCU_QSBR

enum { READS_BETWEEN = 64 };

static uint64_t read_many(void *self, uint64_t count)
{
	uint64_t sum = 0;

	for (; count > READS_BETWEEN; count -= READS_BETWEEN) {
		sum += published_read_many(self, READS_BETWEEN, begin, end);
		rcu_quiescent_state();
	}
	sum += published_read_many(self, count, begin, end);
	rcu_quiescent_state();
	return sum;
}

static uint64_t scan_many(void *self, uint64_t count)
{
	uint64_t torn = 0;

	for (; count > READS_BETWEEN; count -= READS_BETWEEN) {
		torn += published_scan_many(self, READS_BETWEEN, begin, end);
		rcu_quiescent_state();
	}
	torn += published_scan_many(self, count, begin, end);
	rcu_quiescent_state();
	return torn;
}

#else

static uint64_t read_many(void *self, uint64_t count)
{
	return published_read_many(self, count, begin, end);
}

static uint64_t scan_many(void *self, uint64_t count)
{
	return published_scan_many(self, count, begin, end);
}

#endif

extern const struct read_contender WEIR_BENCH_URCU_TABLE;
const struct read_contender WEIR_BENCH_URCU_TABLE = {
	.about = {.name = "liburcu-" WEIR_BENCH_URCU_NAME,
              .version = "liburcu " WEIR_BENCH_URCU_VERSION,
              .lacks = "takes no reference"},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = read_many,
	.scan_many = scan_many,
	.write = replace,
};
