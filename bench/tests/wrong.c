/*
 * wrong.c - contenders that lose, duplicate and tear: weir-bench must not give a figure to any of
 * them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../bench.h"

/* -- queues under a mutex, correct except for one item in FAULT_EVERY -------------------------- */

enum { CAPACITY = 1024, FAULT_EVERY = 100 };

struct queue {
	pthread_mutex_t mutex;
	uint64_t head, tail, puts;
	int closed;
	uint64_t values[CAPACITY];
};

static void *queue_create(size_t capacity)
{
	struct queue *queue = calloc(1, sizeof(*queue));

	(void)capacity;
	if (queue == NULL)
		exit(3);
	(void)pthread_mutex_init(&queue->mutex, NULL);
	return queue;
}

static int dequeue(void *self, uint64_t *value)
{
	struct queue *queue = self;
	int some;

	(void)pthread_mutex_lock(&queue->mutex);
	some = queue->head != queue->tail;
	if (some)
		*value = queue->values[queue->head++ % CAPACITY];
	(void)pthread_mutex_unlock(&queue->mutex);
	return some;
}

/* Enqueues `copies` of every FAULT_EVERY-th item, and one copy of each other item. */
static int enqueue(struct queue *queue, uint64_t value, unsigned copies, uint64_t added)
{
	int room;

	(void)pthread_mutex_lock(&queue->mutex);
	room = queue->tail - queue->head + 2 <= CAPACITY;
	if (room) {
		int faulty = queue->puts++ % FAULT_EVERY == 0;

		for (unsigned i = 0; i < (faulty ? copies : 1); i++)
			queue->values[queue->tail++ % CAPACITY] = value + (faulty ? added : 0);
	}
	(void)pthread_mutex_unlock(&queue->mutex);
	return room;
}

static int enqueue_right(void *self, uint64_t value)
{
	return enqueue(self, value, 1, 0);
}

static int enqueue_losing(void *self, uint64_t value)
{
	return enqueue(self, value, 0, 0);
}

static int enqueue_doubling(void *self, uint64_t value)
{
	return enqueue(self, value, 2, 0);
}

static int enqueue_changing(void *self, uint64_t value)
{
	return enqueue(self, value, 1, 1);
}

static uint64_t pairs_right(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue_right, dequeue);
}

static uint64_t pairs_changing(void *self, uint64_t count)
{
	return bench_pairs(self, count, enqueue_changing, dequeue);
}

static const struct ring_contender right_ring = {
	.about = {.name = "weir right"},
	.create = queue_create,
	.destroy = free,
	.enqueue = enqueue_right,
	.dequeue = dequeue,
	.pairs = pairs_right,
};
static const struct ring_contender losing_ring = {
	.about = {.name = "loses"},
	.create = queue_create,
	.destroy = free,
	.enqueue = enqueue_losing,
	.dequeue = dequeue,
};
static const struct ring_contender doubling_ring = {
	.about = {.name = "doubles"},
	.create = queue_create,
	.destroy = free,
	.enqueue = enqueue_doubling,
	.dequeue = dequeue,
};
static const struct ring_contender changing_ring = {
	.about = {.name = "changes"},
	.create = queue_create,
	.destroy = free,
	.enqueue = enqueue_changing,
	.dequeue = dequeue,
	.pairs = pairs_changing,
};
const struct ring_contender *const bench_rings[] = {&right_ring, &losing_ring, &doubling_ring, &changing_ring, NULL};
const struct ring_contender *const bench_priorities[] = {&losing_ring, NULL};

static void put_losing(void *self, uint64_t value)
{
	while (!enqueue(self, value, 0, 0))
		;
}

static int take(void *self, uint64_t *value)
{
	struct queue *queue = self;

	while (!dequeue(self, value)) {
		int over;

		(void)pthread_mutex_lock(&queue->mutex);
		over = queue->closed && queue->head == queue->tail;
		(void)pthread_mutex_unlock(&queue->mutex);
		if (over)
			return 0;
	}
	return 1;
}

static void close_queue(void *self)
{
	struct queue *queue = self;

	(void)pthread_mutex_lock(&queue->mutex);
	queue->closed = 1;
	(void)pthread_mutex_unlock(&queue->mutex);
}

static int fail_apart(unsigned producers, unsigned consumers, size_t capacity, unsigned duration_ms,
                      struct bench_totals *totals)
{
	(void)producers;
	(void)consumers;
	(void)capacity;
	(void)duration_ms;
	(void)totals;
	return 0;
}

static const struct queue_contender losing_queue = {
	.about = {.name = "loses"},
	.create = queue_create,
	.destroy = free,
	.enqueue = put_losing,
	.dequeue = take,
	.close = close_queue,
};
static const struct queue_contender failing_process = {.about = {.name = "fails apart"}, .run_apart = fail_apart};
const struct queue_contender *const bench_queues[] = {&losing_queue, &failing_process, NULL};
const struct queue_contender *const bench_shuffles[] = {&losing_queue, NULL};

/* -- values that are torn, lost and outdated --------------------------------------------------- */

struct value {
	size_t bytes;
	_Atomic(uint64_t) words[512];
};

static void *value_create(size_t bytes)
{
	struct value *value = calloc(1, sizeof(*value));

	if (value == NULL || bytes > sizeof(value->words))
		exit(3);
	value->bytes = bytes;
	return value;
}

static uint64_t value_read_many(void *self, uint64_t count)
{
	struct value *value = self;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++)
		sum += atomic_load_explicit(&value->words[0], memory_order_relaxed);
	return sum;
}

/* Reads the words one after the other, while a writer changes them. */
static uint64_t value_scan_many(void *self, uint64_t count)
{
	struct value *value = self;
	uint64_t torn = 0, words[512];

	for (uint64_t i = 0; i < count; i++) {
		for (size_t w = 0; w < value->bytes / sizeof(uint64_t); w++)
			words[w] = atomic_load_explicit(&value->words[w], memory_order_relaxed);
		torn += (uint64_t)bench_torn(words, value->bytes);
	}
	return torn;
}

/*
 * Writes different words at different times, so that even a reader that has its processor to itself
 * sees one without the other.
 */
static void value_write(void *self, uint64_t number)
{
	struct value *value = self;

	for (size_t w = 0; w < value->bytes / sizeof(uint64_t); w++)
		atomic_store_explicit(&value->words[w], number + (w == 1), memory_order_relaxed);
}

static void forget_write(void *self, uint64_t number)
{
	(void)self;
	(void)number;
}

static const struct read_contender torn_reader = {
	.about = {.name = "tears"},
	.create = value_create,
	.destroy = free,
	.read_many = value_read_many,
	.scan_many = value_scan_many,
	.write = value_write,
};
static const struct read_contender forgetful_reader = {
	.about = {.name = "forgets"},
	.create = value_create,
	.destroy = free,
	.read_many = value_read_many,
	.write = forget_write,
};
const struct read_contender *const bench_readers[] = {&torn_reader, &forgetful_reader, NULL};

static void *update_create(void)
{
	return value_create(sizeof(uint64_t));
}

static void update_many(void *self, uint64_t count)
{
	struct value *value = self;

	for (uint64_t i = 1; i < count; i++) /* one fewer than it should */
		atomic_fetch_add_explicit(&value->words[0], 1, memory_order_relaxed);
}

static uint64_t update_value(void *self)
{
	return value_read_many(self, 1);
}

static const struct update_contender losing_update = {
	.about = {.name = "loses"},
	.create = update_create,
	.destroy = free,
	.update_many = update_many,
	.value = update_value,
};
const struct update_contender *const bench_updates[] = {&losing_update, NULL};

static void *snapshot_create(size_t variables)
{
	return value_create(variables * sizeof(uint64_t));
}

/* Two words represent a large value. */
static void *snapshot_create_of_one(size_t bytes)
{
	(void)bytes;
	return value_create(2 * sizeof(uint64_t));
}

static const struct snapshot_contender torn_snapshot = {
	.about = {.name = "tears"},
	.create = snapshot_create,
	.destroy = free,
	.take_many = value_scan_many,
	.commit = value_write,
};
const struct snapshot_contender *const bench_snapshots[] = {&torn_snapshot, NULL};

const struct snapshot_contender *const bench_transactions[] = {&torn_snapshot, NULL};

static uint64_t all_copies_are_kept(void *self)
{
	(void)self;
	return 0;
}

static void *addition_create(size_t bytes, unsigned threads)
{
	(void)threads;
	return snapshot_create_of_one(bytes);
}

static void add_nothing_at_all(void *self, unsigned thread)
{
	(void)self, (void)thread;
}

static const struct addition_contender losing_addition = {
	.about = {.name = "loses"},
	.create = addition_create,
	.destroy = free,
	.add_one = add_nothing_at_all,
	.value = update_value,
	.wasted = all_copies_are_kept,
};
const struct addition_contender *const bench_additions[] = {&losing_addition, NULL};

static const struct train_contender losing_trainer = {
	.about = {.name = "loses"},
	.create = addition_create,
	.destroy = free,
	.step = add_nothing_at_all,
	.steps = update_value,
};
const struct train_contender *const bench_trains[] = {&losing_trainer, NULL};

static const struct publish_contender torn_publisher = {
	.about = {.name = "tears"},
	.create = snapshot_create_of_one,
	.destroy = free,
	.read_many = value_scan_many,
	.publish = value_write,
};
const struct publish_contender *const bench_publishers[] = {&torn_publisher, NULL};

/* -- sections ---------------------------------------------------------------------------------- */

static void *no_section_create(void)
{
	return NULL;
}

static void no_section_destroy(void *self)
{
	(void)self;
}

static void execute_twice(void *self, void (*body)(void *context), void *context)
{
	(void)self;
	body(context);
	body(context);
}

static const struct section_contender eager_section = {
	.about = {.name = "executes twice"},
	.create = no_section_create,
	.destroy = no_section_destroy,
	.execute = execute_twice,
};

const struct section_contender *const bench_sections[] = {&eager_section, NULL};

/* -- names ------------------------------------------------------------------------------------- */

static void *no_names_create(void)
{
	return value_create(sizeof(uint64_t));
}

static void add_nothing(void *self, const char *name, uint64_t number)
{
	(void)self, (void)name, (void)number;
}

static void find_another(void *self, const char *const names[], uint64_t found[], size_t count)
{
	(void)self, (void)names;
	for (size_t i = 0; i < count; i++)
		found[i] = 1;
}

static const struct names_contender confused_names = {
	.about = {.name = "changes names"},
	.create = no_names_create,
	.destroy = free,
	.add = add_nothing,
	.find_many = find_another,
	.renew = add_nothing,
};
const struct names_contender *const bench_names[] = {&confused_names, NULL};

/* -- counters ---------------------------------------------------------------------------------- */

static void add_most(void *self, uint64_t count)
{
	struct value *value = self;

	atomic_fetch_add_explicit(&value->words[0], count - 1, memory_order_relaxed);
}

static uint64_t count_read(void *self)
{
	const struct value *value = self;

	return atomic_load_explicit(&value->words[0], memory_order_relaxed);
}

static const struct counter_contender forgetful_counter = {
	.about = {.name = "forgets"},
	.create = no_names_create,
	.destroy = free,
	.add_many = add_most,
	.read = count_read,
};
const struct counter_contender *const bench_counters[] = {&forgetful_counter, NULL};

/* -- tables ------------------------------------------------------------------------------------ */

static void *no_table_create(uint64_t rows, size_t row_bytes)
{
	(void)rows, (void)row_bytes;
	return value_create(sizeof(uint64_t));
}

static void add_to_most(void *self, const int64_t *rows, size_t count)
{
	(void)rows;
	add_most(self, count);
}

static const struct scatter_contender skipping_table = {
	.about = {.name = "skips a row"},
	.most_bytes = SIZE_MAX,
	.create = no_table_create,
	.destroy = free,
	.add_one = add_to_most,
	.sum = count_read,
};
const struct scatter_contender *const bench_scatters[] = {&skipping_table, NULL};

/* -- datasets ---------------------------------------------------------------------------------- */

struct numbers {
	_Atomic(uint64_t) next;
};

static void *numbers_create(enum data_job job)
{
	(void)job;
	return calloc(1, sizeof(struct numbers));
}

/* Gives the number 1 in the place of 0, so that the sum is wrong. */
static unsigned take_twice(void *self, uint64_t *sum)
{
	uint64_t number = atomic_fetch_add_explicit(&((struct numbers *)self)->next, 1, memory_order_relaxed);

	*sum += number == 0 ? 1 : number;
	return 1;
}

static const struct data_contender repeating_data = {
	.about = {.name = "doubles an element"},
	.jobs = 1 << DATA_RANGE,
	.create = numbers_create,
	.destroy = free,
	.take = take_twice,
};
const struct data_contender *const bench_data[] = {&repeating_data, NULL};

/* -- graphs ------------------------------------------------------------------------------------ */

static void *no_graph_create(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	(void)kind, (void)nodes, (void)threads;
	return value_create(sizeof(uint64_t));
}

static void run_one_node(void *self)
{
	struct value *value = self;

	atomic_fetch_add_explicit(&value->words[0], 1, memory_order_relaxed);
}

static const struct dataflow_contender idle_graph = {
	.about = {.name = "loses nodes"},
	.kind = BENCH_CHAIN,
	.create = no_graph_create,
	.destroy = free,
	.run = run_one_node,
	.ran = count_read,
};
const struct dataflow_contender *const bench_dataflows[] = {&idle_graph, NULL};

/* -- suites without wrong contenders ----------------------------------------------------------- */

const struct ring_contender *const bench_shuffle_tries[] = {NULL};
const struct memory_contender *const bench_memories[] = {NULL};
const struct wake_contender *const bench_wakes[] = {NULL};
const struct carrier_contender *const bench_carriers[] = {NULL};
const struct loop_contender *const bench_watches[] = {NULL};
const struct loop_contender *const bench_loops[] = {NULL};
const char *const bench_absent[] = {NULL};
