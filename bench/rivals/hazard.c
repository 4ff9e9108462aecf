/*
 * hazard.c - plain hazard pointers (Michael, 2004), which no C package of Debian offers. A reader
 * announces the pointer and checks that it is still current; a writer frees values that no reader
 * announces.
 *
 * There are two forms. In one, the reader runs a fence between the announcement and the check. In
 * the other, the reader has only a compiler barrier there, and the writer calls membarrier(2)
 * before it looks at the announcements.
 */
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "published.h"

enum { MAX_THREADS = 1024 };

struct hazard {
	_Alignas(64) _Atomic(const uint64_t *) pointer;
	_Atomic(int) taken;
};

struct cell {
	struct published published;
	_Alignas(64) _Atomic(int) used; /* no thread has ever used a hazard with this index or a higher one */
	struct hazard hazards[MAX_THREADS];
};

static _Thread_local struct hazard *mine;

static void *create(size_t bytes)
{
	struct cell *cell = aligned_alloc(64, sizeof(*cell));

	if (cell == NULL)
		exit(3);
	for (int i = 0; i < MAX_THREADS; i++) {
		atomic_init(&cell->hazards[i].pointer, NULL);
		atomic_init(&cell->hazards[i].taken, 0);
	}
	atomic_init(&cell->used, 0);
	published_init(&cell->published, bytes);
	return cell;
}

static void *create_membarrier(size_t bytes)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
		exit(3);
	return create(bytes);
}

static void destroy(void *self)
{
	struct cell *cell = self;

	published_fini(&cell->published);
	free(cell);
}

static void thread_begin(void *self)
{
	struct cell *cell = self;
	int used = atomic_load_explicit(&cell->used, memory_order_acquire), at = 0;

	while (at < MAX_THREADS && atomic_exchange_explicit(&cell->hazards[at].taken, 1, memory_order_acq_rel))
		at++;
	if (at == MAX_THREADS)
		exit(3);
	mine = &cell->hazards[at];
	while (used <= at && !atomic_compare_exchange_weak_explicit(&cell->used, &used, at + 1, memory_order_seq_cst,
	                                                            memory_order_acquire))
		;
}

static void thread_end(void *self)
{
	(void)self;
	atomic_store_explicit(&mine->taken, 0, memory_order_release);
}

typedef void fence_fn(void);

static inline void fence(void)
{
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void compiler_barrier(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static inline __attribute__((always_inline)) const uint64_t *acquire(struct cell *cell, struct hazard *hazard,
                                                                     fence_fn *between)
{
	const uint64_t *words = atomic_load_explicit(&cell->published.current, memory_order_relaxed), *again;

	for (;;) {
		atomic_store_explicit(&hazard->pointer, words, memory_order_relaxed);
		between();
		again = atomic_load_explicit(&cell->published.current, memory_order_acquire);
		if (again == words)
			return words;
		words = again;
	}
}

static inline void release(struct hazard *hazard)
{
	atomic_store_explicit(&hazard->pointer, NULL, memory_order_release);
}

static inline __attribute__((always_inline)) uint64_t read_many(struct cell *cell, uint64_t count, fence_fn *between)
{
	struct hazard *hazard = mine;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		sum += *acquire(cell, hazard, between);
		release(hazard);
	}
	return sum;
}

static inline __attribute__((always_inline)) uint64_t scan_many(struct cell *cell, uint64_t count, fence_fn *between)
{
	struct hazard *hazard = mine;
	uint64_t torn = 0;

	for (uint64_t i = 0; i < count; i++) {
		torn += (uint64_t)bench_torn(acquire(cell, hazard, between), cell->published.bytes);
		release(hazard);
	}
	return torn;
}

static int announced(struct cell *cell, const uint64_t *words)
{
	int used = atomic_load_explicit(&cell->used, memory_order_seq_cst);

	for (int i = 0; i < used; i++) {
		if (atomic_load_explicit(&cell->hazards[i].pointer, memory_order_acquire) == words)
			return 1;
	}
	return 0;
}

/*
 * Frees the values that no reader announces. The others stay for the next collection. The writer's
 * fence after unlinking pairs with the reader's fence after announcing.
 */
static void collect(struct published *p)
{
	struct cell *cell = (struct cell *)p;
	unsigned kept = 0;

	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < p->waiting; i++) {
		if (announced(cell, p->retired[i]))
			p->retired[kept++] = p->retired[i];
		else
			free(p->retired[i]);
	}
	p->waiting = kept;
}

static void collect_after_membarrier(struct published *p)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
		exit(3);
	collect(p);
}

static uint64_t fence_read_many(void *self, uint64_t count)
{
	return read_many(self, count, fence);
}

static uint64_t fence_scan_many(void *self, uint64_t count)
{
	return scan_many(self, count, fence);
}

static void fence_replace(void *self, uint64_t value)
{
	published_replace(self, value, collect);
}

static uint64_t membarrier_read_many(void *self, uint64_t count)
{
	return read_many(self, count, compiler_barrier);
}

static uint64_t membarrier_scan_many(void *self, uint64_t count)
{
	return scan_many(self, count, compiler_barrier);
}

static void membarrier_replace(void *self, uint64_t value)
{
	published_replace(self, value, collect_after_membarrier);
}

const struct read_contender hazard_fence_read_contender = {
	.about = {.name = "hazard pointer, fence", .lock_free = 1},
	.create = create,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = fence_read_many,
	.scan_many = fence_scan_many,
	.write = fence_replace,
};

const struct read_contender hazard_membarrier_read_contender = {
	.about = {.name = "hazard pointer, membarrier", .lock_free = 1},
	.create = create_membarrier,
	.destroy = destroy,
	.thread_begin = thread_begin,
	.thread_end = thread_end,
	.read_many = membarrier_read_many,
	.scan_many = membarrier_scan_many,
	.write = membarrier_replace,
};
