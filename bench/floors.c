/*
 * floors.c - weir-floors: what a writer beside a reader that keeps old values costs at least.
 *
 * usage: weir-floors [MILLISECONDS [REPETITIONS]]
 *
 * One thread updates a value of 64 bytes, and another reads it as fast as it can and keeps the last 8
 * values, as in the row "1 writer beside a reader that keeps 8 values" of weir-bench. The program has
 * that row for a variable and for a mutex, and for accesses without a library; and the writer alone. Such a writer fills the
 * blocks of a ring in turn and publishes each by a compare-and-swap. It frees nothing, so it needs no
 * reclamation. Its reader stores the pointer into a slot and looks at it once more, without a fence, so
 * nothing protects what it keeps. A library that keeps what was read does all this and more. A writer
 * that only stores the pointer would lose what another writer has published; that row shows how much of
 * the time is spent by the compare-and-swap that waits for the line.
 *
 * Three rows are those of a rival that has memory from malloc() and hands what it replaces to another thread,
 * as call_rcu() of liburcu does, but waits for no reader: nobody frees it during the run, or the other thread
 * does. A line behind the table says how much waited at most. An update of a variable has three locked
 * instructions, and so has that rival; a bare writer with as many is there, too.
 *
 * The last rows are those of two writers, without a reader. There each bare writer has blocks of its own, and the
 * head has a count besides the block, so that it never returns to an earlier value.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weir/time.h>
#include <weir/value.h>

enum {
	WORDS = 8,
	KEPT = 8,
	LINE = 64,
	BLOCKS = 205, /* as many as a variable's collection has */
	WRITERS = 2,
	AT_ONCE = 16, /* operations between two looks at the clock of the run */
	MOST_REPETITIONS = 64,
	DEFAULT_MILLISECONDS = 10,
	DEFAULT_REPETITIONS = 40
};

struct block {
	_Alignas(LINE) _Atomic(uint64_t) stamp;
	_Alignas(LINE) _Atomic(uint64_t) words[WORDS];
};

struct inline_words {
	uint64_t words[WORDS];
};

struct row {
	const char *name;
	bool is_base; /* the rates of the rows behind it are compared with its rate */
	void (*update)(void);
	void (*read)(size_t at);  /* what the other thread does; NULL: it updates, too */
	uint64_t (*newest)(void); /* the value; each update adds 1 */
};

/* What the two threads share: each on lines of its own. */
static struct {
	struct block blocks[BLOCKS];
	_Alignas(LINE) _Atomic(struct block *) head;
	_Alignas(LINE) _Atomic(struct block *) slots[KEPT];
	_Alignas(LINE) pthread_mutex_t mutex;
	_Alignas(LINE) struct inline_words under_mutex;
	_Alignas(LINE) weir_var *var;
	const struct row *row; /* that is measured */
	_Alignas(LINE) _Atomic(int) ready, stop;
	/* Of two bare writers: how often it changed, and of which writer the newest block is, and which. */
	_Alignas(LINE) _Atomic(uint64_t) counted_head;
	struct block blocks_of[WRITERS][BLOCKS];
	/* The writer's. */
	_Alignas(LINE) uint64_t updates;
	size_t next_block;
	/* The reader's, or the second writer's. */
	_Alignas(LINE) uint64_t reads;
	uint64_t looked_at; /* a sum, so that no compiler leaves a read out */
	weir_read handles[KEPT];
	struct inline_words copies[KEPT];
	const struct block *kept[KEPT];
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void fail(const char *what)
{
	(void)fprintf(stderr, "weir-floors: %s failed\n", what);
	exit(1);
}

/* -- a variable -------------------------------------------------------------------------------- */

static enum weir_status add_in_place(void *context, const weir_read *current, weir_value *next, weir_error *error)
{
	struct inline_words *value = next->room;

	(void)context, (void)current, (void)error;
	for (size_t i = 0; i < WORDS; i++)
		value->words[i]++;
	return WEIR_OK;
}

static void update_variable(void)
{
	if (weir_var_update_value(shared.var, add_in_place, NULL, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		fail("an update");
}

static uint64_t sum_of(const uint64_t words[])
{
	uint64_t sum = 0;

	for (size_t i = 0; i < WORDS; i++)
		sum += words[i];
	return sum;
}

static void read_variable(size_t at)
{
	const uint64_t *kept = shared.handles[at].data;

	if (kept != NULL) {
		if (sum_of(kept) != WORDS * kept[0])
			fail("a kept value changed, so its check");
		weir_read_release(&shared.handles[at]);
	}
	if (weir_var_read(shared.var, &shared.handles[at]) != WEIR_OK)
		fail("a read");
	shared.looked_at += *(const uint64_t *)shared.handles[at].data;
}

static uint64_t newest_in_variable(void)
{
	weir_read read;
	uint64_t value;

	if (weir_var_read(shared.var, &read) != WEIR_OK)
		fail("a read");
	value = *(const uint64_t *)read.data;
	weir_read_release(&read);
	return value;
}

/* -- a mutex ----------------------------------------------------------------------------------- */

static void update_under_mutex(void)
{
	(void)pthread_mutex_lock(&shared.mutex);
	for (size_t i = 0; i < WORDS; i++)
		shared.under_mutex.words[i]++;
	(void)pthread_mutex_unlock(&shared.mutex);
}

static void read_under_mutex(size_t at)
{
	shared.looked_at += sum_of(shared.copies[at].words);
	(void)pthread_mutex_lock(&shared.mutex);
	shared.copies[at] = shared.under_mutex;
	(void)pthread_mutex_unlock(&shared.mutex);
}

static uint64_t newest_under_mutex(void)
{
	return shared.under_mutex.words[0];
}

/* -- bare accesses ----------------------------------------------------------------------------- */

/* Fills the next block of the ring with a value that is 1 higher than that of the newest, *base. */
static struct block *fill_block(struct block **base)
{
	struct block *block = &shared.blocks[shared.next_block];

	shared.next_block = (shared.next_block + 1) % BLOCKS;
	*base = atomic_load_explicit(&shared.head, memory_order_relaxed);
	for (size_t i = 0; i < WORDS; i++) {
		uint64_t word = atomic_load_explicit(&(*base)->words[i], memory_order_relaxed);

		atomic_store_explicit(&block->words[i], word + 1, memory_order_relaxed);
	}
	atomic_store_explicit(&block->stamp, (uint64_t)1, memory_order_relaxed);
	return block;
}

static void update_by_exchange(void)
{
	struct block *base, *block = fill_block(&base);

	if (!atomic_compare_exchange_strong_explicit(&shared.head, &base, block, memory_order_acq_rel,
	                                             memory_order_relaxed))
		fail("the compare-and-swap of the only writer");
}

static void update_by_store(void)
{
	struct block *base;

	atomic_store_explicit(&shared.head, fill_block(&base), memory_order_release);
}

static void look_at_head(size_t at)
{
	(void)at;
	shared.looked_at += (uintptr_t)atomic_load_explicit(&shared.head, memory_order_acquire);
}

/* Takes a reference in slot `at` of what is newest. */
static const struct block *take_reference(size_t at)
{
	struct block *newest = atomic_load_explicit(&shared.head, memory_order_acquire), *claimed;

	do {
		claimed = newest;
		atomic_store_explicit(&shared.slots[at], claimed, memory_order_release);
		newest = atomic_load_explicit(&shared.head, memory_order_acquire);
	} while (newest != claimed);
	return claimed;
}

static void keep(size_t at)
{
	const struct block *block = shared.kept[at];

	for (size_t i = 0; block != NULL && i < WORDS; i++)
		shared.looked_at += atomic_load_explicit(&block->words[i], memory_order_relaxed);
	shared.kept[at] = take_reference(at);
	shared.looked_at += atomic_load_explicit(&shared.kept[at]->words[0], memory_order_relaxed);
}

static void keep_and_ask_stamp(size_t at)
{
	keep(at);
	shared.looked_at += atomic_load_explicit(&shared.kept[at]->stamp, memory_order_relaxed);
}

static uint64_t newest_bare(void)
{
	return atomic_load_explicit(&atomic_load_explicit(&shared.head, memory_order_relaxed)->words[0],
	                            memory_order_relaxed);
}

/* -- replaced blocks for another thread -------------------------------------------------------- */

struct handed {
	struct handed *next;
	struct inline_words value;
};

/* Each on a line of its own. */
static struct {
	_Alignas(LINE) _Atomic(struct handed *) current;
	_Alignas(LINE) _Atomic(struct handed *) list; /* that was replaced */
	_Alignas(LINE) _Atomic(uint64_t) waiting;     /* of them */
	_Alignas(LINE) uint64_t most_freed;           /* at once, by the other thread: so many waited */
} handing;

static struct handed *allocate_handed(void)
{
	struct handed *block = malloc(sizeof(*block));

	if (block == NULL)
		fail("malloc");
	return block;
}

static void push_handed(struct handed *block)
{
	block->next = atomic_load_explicit(&handing.list, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&handing.list, &block->next, block, memory_order_release,
	                                              memory_order_relaxed))
		;
}

/* Three locked instructions, as with call_rcu(): the head, the list, the count of the list. */
static void update_and_hand_over(void)
{
	struct handed *next = allocate_handed(), *old = atomic_load_explicit(&handing.current, memory_order_relaxed);

	for (size_t i = 0; i < WORDS; i++)
		next->value.words[i] = old->value.words[i] + 1;
	if (!atomic_compare_exchange_strong_explicit(&handing.current, &old, next, memory_order_acq_rel,
	                                             memory_order_relaxed))
		fail("the compare-and-swap of the only writer");
	push_handed(old);
	(void)atomic_fetch_add_explicit(&handing.waiting, (uint64_t)1, memory_order_relaxed);
}

static void free_handed(size_t at)
{
	struct handed *block = atomic_exchange_explicit(&handing.list, NULL, memory_order_acquire);
	uint64_t freed = 0;

	for (struct handed *next; block != NULL; block = next, freed++) {
		next = block->next;
		free(block);
	}
	(void)atomic_fetch_sub_explicit(&handing.waiting, freed, memory_order_relaxed);
	if (at < KEPT && freed > handing.most_freed)
		handing.most_freed = freed;
}

/* Called between runs: frees the rest. */
static uint64_t newest_handed(void)
{
	free_handed(KEPT);
	return atomic_load_explicit(&handing.current, memory_order_relaxed)->value.words[0];
}

/* -- two bare writers -------------------------------------------------------------------------- */

enum { NUMBER_BITS = 16 }; /* of the writer and the block in counted_head */

/* The running thread's. */
static _Thread_local struct {
	size_t writer, next_block;
	_Alignas(LINE) _Atomic(uint64_t) retired; /* stands for the stack of what it has replaced */
} mine;

static struct block *block_of(uint64_t head)
{
	size_t number = head % ((uint64_t)1 << NUMBER_BITS);

	return &shared.blocks_of[number / BLOCKS][number % BLOCKS];
}

/* Makes a block that is 1 higher than that of `head`. Returns the head that publishes it. */
static uint64_t follow(uint64_t head)
{
	uint64_t count = (head >> NUMBER_BITS) + 1, number = mine.writer * BLOCKS + mine.next_block;
	struct block *block = block_of(number);
	const struct block *base = block_of(head);

	for (size_t i = 0; i < WORDS; i++) {
		uint64_t word = atomic_load_explicit(&base->words[i], memory_order_relaxed);

		atomic_store_explicit(&block->words[i], word + 1, memory_order_relaxed);
	}
	atomic_store_explicit(&block->stamp, (uint64_t)0, memory_order_relaxed);
	return count << NUMBER_BITS | number;
}

/* Returns the block that it has published. */
static struct block *publish_by_exchange(void)
{
	uint64_t head = atomic_load_explicit(&shared.counted_head, memory_order_acquire), next;

	do {
		next = follow(head);
	} while (!atomic_compare_exchange_strong_explicit(&shared.counted_head, &head, next, memory_order_acq_rel,
	                                                  memory_order_acquire));
	mine.next_block = (mine.next_block + 1) % BLOCKS;
	return block_of(next);
}

static void update_by_exchange_of_two(void)
{
	(void)publish_by_exchange();
}

/* The same number of locked instructions as an update of a variable: the head, a stamp, what was replaced. */
static void update_by_three_exchanges(void)
{
	uint64_t none = 0;
	struct block *block = publish_by_exchange();

	(void)atomic_compare_exchange_strong_explicit(&block->stamp, &none, (uint64_t)1, memory_order_acq_rel,
	                                              memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&mine.retired, (uint64_t)1, memory_order_release);
}

static uint64_t newest_of_two(void)
{
	return atomic_load_explicit(&block_of(atomic_load_explicit(&shared.counted_head, memory_order_relaxed))->words[0],
	                            memory_order_relaxed);
}

/* -- the other thread -------------------------------------------------------------------------- */

/* No reader. */
static void rest(size_t at)
{
	(void)at;
}

/* -- the measurement --------------------------------------------------------------------------- */

static void wait_for_both(void)
{
	(void)atomic_fetch_add_explicit(&shared.ready, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&shared.ready, memory_order_acquire) < 2)
		;
}

static bool is_over(void)
{
	return atomic_load_explicit(&shared.stop, memory_order_relaxed) != 0;
}

/* Returns the number of its updates. */
static uint64_t update_until_it_is_over(void)
{
	const struct row *row = shared.row;
	uint64_t updates = 0;

	do {
		for (int i = 0; i < AT_ONCE; i++)
			row->update();
		updates += AT_ONCE;
	} while (!is_over());
	return updates;
}

static void *write_on(void *context)
{
	wait_for_both();
	shared.updates = update_until_it_is_over();
	return context;
}

static void *write_as_second(void *context)
{
	mine.writer = 1;
	wait_for_both();
	shared.reads = update_until_it_is_over();
	return context;
}

static void *read_on(void *context)
{
	const struct row *row = shared.row;
	uint64_t reads = 0;

	wait_for_both();
	do {
		row->read(reads++ % KEPT);
	} while (!is_over());
	shared.reads = reads;
	for (size_t at = 0; at < KEPT; at++)
		weir_read_release(&shared.handles[at]);
	return context;
}

static void sleep_until(uint64_t moment)
{
	uint64_t now = weir_now_ns();

	if (now < moment)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)(moment - now)}, NULL);
}

/* Returns how long the threads ran, in ns. */
static uint64_t run(const struct row *row, uint64_t nanoseconds)
{
	void *(*const bodies[2])(void *) = {write_on, row->read != NULL ? read_on : write_as_second};
	pthread_t threads[2];
	uint64_t began;

	shared.row = row;
	atomic_store_explicit(&shared.ready, 0, memory_order_relaxed);
	atomic_store_explicit(&shared.stop, 0, memory_order_relaxed);
	for (size_t i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, bodies[i], NULL) != 0)
			fail("pthread_create");
	}
	began = weir_now_ns();
	sleep_until(began + nanoseconds);
	atomic_store_explicit(&shared.stop, 1, memory_order_relaxed);
	began = weir_now_ns() - began;
	for (size_t i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	return began;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double samples[], size_t count)
{
	qsort(samples, count, sizeof(*samples), compare);
	return samples[count / 2];
}

static const struct row rows[] = {
	{"alone: mutex", true, update_under_mutex, rest, newest_under_mutex},
	{"alone: bare, CAS", false, update_by_exchange, rest, newest_bare},
	{"alone: bare, CAS, and two on own lines", false, update_by_three_exchanges, rest, newest_of_two},
	{"alone: malloc, CAS, handed over, not freed", false, update_and_hand_over, rest, newest_handed},
	{"alone: the same, freed by the other thread", false, update_and_hand_over, free_handed, newest_handed},
	{"alone: weir_var_update_value", false, update_variable, rest, newest_in_variable},
	{"mutex; the reader copies", true, update_under_mutex, read_under_mutex, newest_under_mutex},
	{"bare, CAS; the reader looks at the head", false, update_by_exchange, look_at_head, newest_bare},
	{"bare, CAS; the reader keeps 8", false, update_by_exchange, keep, newest_bare},
	{"bare, CAS; the reader keeps 8, asks a stamp", false, update_by_exchange, keep_and_ask_stamp, newest_bare},
	{"bare, a store; the reader keeps 8", false, update_by_store, keep, newest_bare},
	{"weir_var_update_value; weir_var_read keeps 8", false, update_variable, read_variable, newest_in_variable},
	{"2 writers: mutex", true, update_under_mutex, NULL, newest_under_mutex},
	{"2 writers: bare, CAS", false, update_by_exchange_of_two, NULL, newest_of_two},
	{"2 writers: bare, CAS, and two on own lines", false, update_by_three_exchanges, NULL, newest_of_two},
	{"2 writers: weir_var_update_value", false, update_variable, NULL, newest_in_variable},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Of one row, in each repetition. */
struct samples {
	double updates[MOST_REPETITIONS], reads[MOST_REPETITIONS];
	double ratio[MOST_REPETITIONS]; /* its updates, in those of the base row in the same repetition */
};

static void measure(uint64_t milliseconds, size_t repetitions)
{
	static struct samples samples[ROWS];

	for (size_t repetition = 0; repetition < repetitions; repetition++) {
		size_t base = 0;

		for (size_t i = 0; i < ROWS; i++) {
			uint64_t before = rows[i].newest();
			double took = (double)run(&rows[i], milliseconds * 1000000);

			if (rows[i].read == NULL) {
				shared.updates += shared.reads;
				shared.reads = 0;
			}
			if (rows[i].newest() - before != shared.updates)
				fail(rows[i].name);
			samples[i].updates[repetition] = (double)shared.updates * 1e3 / took;
			samples[i].reads[repetition] = (double)shared.reads * 1e3 / took;
			base = rows[i].is_base ? i : base;
			samples[i].ratio[repetition] = samples[i].updates[repetition] / samples[base].updates[repetition];
		}
	}
	(void)printf("%-46s %12s %12s %12s\n", "medians", "M updates/s", "of a mutex's", "M reads/s");
	for (size_t i = 0; i < ROWS; i++)
		(void)printf("%-46s %12.1f %12.2f %12.1f\n", rows[i].name, median(samples[i].updates, repetitions),
		             median(samples[i].ratio, repetitions), median(samples[i].reads, repetitions));
	(void)printf("handed over and freed by the other thread: %.1f MiB waited at most\n",
	             (double)(handing.most_freed * sizeof(struct handed)) / (1 << 20));
}

int main(int argc, char **argv)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE,
	                                   .size = sizeof(struct inline_words)};
	uint64_t milliseconds = argc > 1 ? strtoul(argv[1], NULL, 10) : DEFAULT_MILLISECONDS;
	size_t repetitions = argc > 2 ? strtoul(argv[2], NULL, 10) : DEFAULT_REPETITIONS;
	struct inline_words first = {{0}};

	if (argc > 3 || milliseconds == 0 || milliseconds >= 1000 || repetitions == 0 || repetitions > MOST_REPETITIONS) {
		(void)fprintf(stderr, "usage: weir-floors [MILLISECONDS (below 1000) [REPETITIONS (at most %d)]]\n",
		              MOST_REPETITIONS);
		return 2;
	}
	atomic_store_explicit(&shared.head, &shared.blocks[BLOCKS - 1], memory_order_relaxed);
	if (weir_var_create_value(weir_value_inline(&first, sizeof(first)), &options, &shared.var, NULL) != WEIR_OK)
		fail("the creation of a variable");
	atomic_store_explicit(&handing.current, allocate_handed(), memory_order_relaxed);
	atomic_load_explicit(&handing.current, memory_order_relaxed)->value = first;
	measure(milliseconds, repetitions);
	free(atomic_load_explicit(&handing.current, memory_order_relaxed));
	weir_var_destroy(shared.var, NULL);
	return 0;
}
