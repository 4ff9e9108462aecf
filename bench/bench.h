/*
 * bench.h - the interface of contenders: Weir and each rival are one small table of functions.
 *
 * The harness code around a table is the same for all. To add a rival, write bench/rivals/<name>.c
 * or .cc with its table, add the file to bench/meson.build, and add the table to contenders.c. A
 * rival does the same work on the same workload, or `lacks` says what it leaves out. An adapter
 * that runs out of memory ends the program with exit(3).
 */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first member of every table. */
struct bench_about {
	const char *name;
	const char *version; /* "Boost 1_74"; NULL: part of Weir or of libc */
	const char *lacks;   /* what it leaves out that the others do, in a few words; NULL: nothing */
	int lock_free;       /* a thread that is stopped anywhere blocks no other thread */
};

/* Prepares or cleans up a thread that will use the contender; NULL when there is nothing to do. */
typedef void bench_thread_fn(void *self);

/* The totals of one run of a queue. */
struct bench_totals {
	uint64_t put, put_sum, got, got_sum;
	uint64_t elapsed_ns;
};

/*
 * A queue of 64-bit values other than 0 that never waits. Enqueue and dequeue return 1, or 0 when
 * the queue is full or empty.
 */
struct ring_contender {
	struct bench_about about;
	/* the capacity is a hint; the harness keeps the backlog near it */
	int unbounded;
	unsigned producers, consumers; /* the maximum of each at a time; 0: any number */
	void *(*create)(size_t capacity);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	int (*enqueue)(void *self, uint64_t value);
	int (*dequeue)(void *self, uint64_t *value);
	/*
	 * Return how many of `count` values went in or came out. NULL: there is no such call, and the
	 * harness loops.
	 */
	size_t (*enqueue_many)(void *self, const uint64_t *values, size_t count);
	size_t (*dequeue_many)(void *self, uint64_t *values, size_t count);
	uint64_t (*pairs)(void *self, uint64_t count); /* see bench_pairs() */
};

/*
 * Enqueues and dequeues 1 .. count, and returns the sum of the values that came out. It is compiled
 * into each adapter, so that no contender is called through a pointer here.
 */
static inline __attribute__((always_inline)) uint64_t bench_pairs(void *self, uint64_t count,
                                                                  int (*enqueue)(void *, uint64_t),
                                                                  int (*dequeue)(void *, uint64_t *))
{
	uint64_t sum = 0, value = 0;

	for (uint64_t i = 1; i <= count; i++) {
		if (!enqueue(self, i) || !dequeue(self, &value))
			return UINT64_MAX;
		sum += value;
	}
	return sum;
}

/*
 * The key of a value in a priority queue: random, and the same for all contenders (the finalizer of
 * SplitMix64).
 */
static inline int64_t bench_key_of(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
	return (int64_t)((value ^ value >> 31) >> 1);
}

/*
 * A queue of 64-bit values other than 0 whose calls wait. The order is FIFO in bench_queues and
 * random in bench_shuffles.
 */
struct queue_contender {
	struct bench_about about;
	int unbounded;
	unsigned producers, consumers;
	void *(*create)(size_t capacity);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*enqueue)(void *self, uint64_t value);
	int (*dequeue)(void *self, uint64_t *value); /* 0: closed and drained */
	/*
	 * NULL: the queue cannot be closed; each consumer then ends when it dequeues a 0, and the zeros
	 * are enqueued last. A shuffle queue needs this function.
	 */
	void (*close)(void *self);
	/*
	 * For a contender that runs in a process of its own: does the whole run there, and returns 1 on
	 * success. All functions above may then be NULL.
	 */
	int (*run_apart)(unsigned producers, unsigned consumers, size_t capacity, unsigned duration_ms,
	                 struct bench_totals *totals);
};

/*
 * A shared value of `bytes` (a multiple of 8, at least 64). All its words are equal, and 0 at
 * first.
 */
struct read_contender {
	struct bench_about about;
	void *(*create)(size_t bytes);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/*
	 * Returns the sum of the first words of `count` reads. The loop is part of the contender, so
	 * that only the read is timed.
	 */
	uint64_t (*read_many)(void *self, uint64_t count);
	/*
	 * Like read_many, but looks at every word of each value, and returns how many values had words
	 * that differ. NULL: the value is one word.
	 */
	uint64_t (*scan_many)(void *self, uint64_t count);
	void (*write)(void *self, uint64_t value);
	size_t most_bytes; /* 0: a value may have any size */
};

/*
 * Returns 1 when the words of a value differ. In vectors and eight words at a time, as rustc compiles the same
 * loop in bench/rivals/rust: at -O2, gcc 12 takes a word at a time, and that would be most of a read of
 * 4 KiB.
 */
typedef uint64_t bench_two_words __attribute__((vector_size(16), aligned(8), may_alias));

static inline int bench_torn(const uint64_t *words, size_t bytes)
{
	const bench_two_words *pair = (const bench_two_words *)words, first = {words[0], words[0]};
	bench_two_words differ = {0, 0}, differ_too = {0, 0};
	size_t count = bytes / sizeof(*words); /* of words */

	for (const bench_two_words *end = pair + count / 8 * 4; pair != end; pair += 4) {
		differ |= pair[0] ^ first;
		differ_too |= pair[1] ^ first;
		differ |= pair[2] ^ first;
		differ_too |= pair[3] ^ first;
	}
	differ |= differ_too;
	for (size_t rest = count % 8; rest != 0; rest--)
		differ[0] |= words[count - rest] ^ words[0];
	return (differ[0] | differ[1]) != 0;
}

/* Where a reader keeps a value of eight words: what the contender needs for that. */
struct bench_kept {
	uint64_t words[8];
};

/* A shared value of eight equal words, 0 at first. Each update adds 1 to all of them. */
struct update_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/* Replaces the value by one whose words are 1 higher, `count` times. */
	void (*update_many)(void *self, uint64_t count);
	uint64_t (*value)(void *self); /* the first word, while no other thread is at work */
	/*
	 * Keeps the value that is current at `place`, and returns its words, which stay as they are until
	 * drop(). NULL: what a reader of this contender keeps does not stay as it is, or ends with its
	 * section.
	 */
	const uint64_t *(*keep)(void *self, struct bench_kept *place);
	void (*drop)(struct bench_kept *place);
};

/*
 * A shared value of `bytes`, made of i64 elements that are 0 at first. Threads add 1 to all
 * elements; each thread adds a value of its own.
 */
struct addition_contender {
	struct bench_about about;
	void *(*create)(size_t bytes, unsigned threads);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*add_one)(void *self, unsigned thread); /* adds 1 to each element */
	/* What each element holds while no other thread is at work; UINT64_MAX: the elements differ. */
	uint64_t (*value)(void *self);
	/* copies of the value that were discarded; NULL: there are none */
	uint64_t (*wasted)(void *self);
};

/* Weights of f32 that threads change by steps of Adam: see rivals/train_model.h. */
struct train_contender {
	struct bench_about about;
	void *(*create)(size_t count, unsigned threads);
	void (*destroy)(void *self);
	void (*step)(void *self, unsigned thread);
	/* How many steps the weights show while no other thread is at work; UINT64_MAX: they are wrong. */
	uint64_t (*steps)(void *self);
};

/*
 * A shared value of `bytes` whose words are all equal. Each new value is allocated by
 * bench_value_allocate().
 */
struct publish_contender {
	struct bench_about about;
	void *(*create)(size_t bytes);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/* Looks at both ends of each value, and returns how many values had ends that differ. */
	uint64_t (*read_many)(void *self, uint64_t count);
	void (*publish)(void *self, uint64_t value); /* called by one thread */
};

/* Reference-counted objects by name. Here each object is a number other than 0. */
struct names_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	void (*add)(void *self, const char *name, uint64_t number); /* the name is not there yet */
	/*
	 * For each name: takes a reference to the object, reads its number (0: not there), and releases
	 * it.
	 */
	void (*find_many)(void *self, const char *const names[], uint64_t found[], size_t count);
	/* Removes the name and adds it again with a new object. */
	void (*renew)(void *self, const char *name, uint64_t number);
};

/* Lets one thread in at a time. */
struct section_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	void (*execute)(void *self, void (*body)(void *context), void *context);
};

/* A count to which threads add 1; 0 at first. */
struct counter_contender {
	struct bench_about about;
	int reads_alone; /* it cannot be read while other threads add */
	void *(*create)(void);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*add_many)(void *self, uint64_t count); /* adds 1, `count` times */
	uint64_t (*read)(void *self);
};

/* A table of rows of i64, all 0 at first. */
struct scatter_contender {
	struct bench_about about;
	size_t most_bytes; /* it takes no part with larger tables */
	void *(*create)(uint64_t rows, size_t row_bytes);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/* Adds 1 to each element of these rows, at one instant. */
	void (*add_one)(void *self, const int64_t *rows, size_t count);
	/* Returns the sum of the first elements of all rows, while no other thread is at work. */
	uint64_t (*sum)(void *self);
	/* Returns the sum of all words of a version of all rows. NULL: as another contender does. */
	uint64_t (*sum_all)(void *self);
};

enum data_job { DATA_RANGE, DATA_NOTHING, DATA_AHEAD, DATA_WORK, DATA_DIGITS, DATA_ROWS, DATA_STEPS };

/* A pipeline without an end. */
struct data_contender {
	struct bench_about about;
	unsigned jobs; /* bit j: it does enum data_job j */
	void *(*create)(enum data_job job);
	void (*destroy)(void *self);
	/* Takes one element. Returns the number of its rows, and adds the number that it is to *sum. */
	unsigned (*take)(void *self, uint64_t *sum);
};

/* Several shared values that are changed and read at one instant. */
struct snapshot_contender {
	struct bench_about about;
	void *(*create)(size_t variables);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/* Takes `count` snapshots, and returns how many were not of one instant. */
	uint64_t (*take_many)(void *self, uint64_t count);
	/* sets all variables; one thread at a time */
	void (*commit)(void *self, uint64_t value);
};

/*
 * A shared value of `bytes`. Each new value is allocated by bench_value_allocate(), and a stopped
 * reader may keep it from being freed.
 */
struct memory_contender {
	struct bench_about about;
	void *(*create)(size_t bytes);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/*
	 * One read, by the reader's thread. It calls bench_stop_here() in its middle. If `by_signal` is
	 * set, it is instead called repeatedly, and the harness stops it at a random instruction.
	 */
	void (*read)(void *self);
	int by_signal;
	/*
	 * Publishes one new value. It may wait for the reader, which goes on at the end of the run.
	 * Returns 0 when it was refused for lack of memory.
	 */
	int (*publish)(void *self, uint64_t deadline_ns);
};
void bench_stop_here(void);
void *bench_value_allocate(size_t bytes); /* aligned to 64; not NULL */
void bench_value_free(void *value, size_t bytes);
uint64_t bench_value_bytes(void); /* allocated and not yet freed */

/*
 * A bounded queue of values other than 0 for an event loop of one thread. Enqueue returns 1, or 0
 * when the queue is full. poll_and_take sleeps in one poll of the loop, and then takes at most `most`
 * values (up to 256); it returns how many there were, 0 after a poll for nothing.
 */
struct loop_contender {
	struct bench_about about;
	void *(*create)(size_t capacity);
	void (*destroy)(void *self);
	int (*enqueue)(void *self, uint64_t value);
	size_t (*poll_and_take)(void *self, uint64_t *values, size_t most);
};

/*
 * The same for a value that each enqueue replaces: it always returns 1, and poll_and_take takes the
 * newest value, if it is newer than the one before.
 */
extern const struct loop_contender *const bench_watches[];

/*
 * Carries messages of one size between processes. The object is created before the processes are
 * forked; all of them use it, and may be killed.
 */
struct carrier_contender {
	struct bench_about about;
	int no_kills; /* it takes no part where senders are killed */
	void *(*create)(size_t capacity, size_t bytes);
	void (*join)(void *self); /* called once by each child; NULL: nothing to do */
	void (*destroy)(void *self);
	/* Both wait. */
	void (*send)(void *self, const void *message);
	void (*receive)(void *self, void *message);
	/*
	 * For a contender that does not run in C: messages per second, and the kills that it survived (at
	 * most `most`). All functions above may then be NULL.
	 */
	double (*rate_apart)(size_t capacity, size_t bytes, unsigned duration_ms);
	double (*kills_apart)(size_t capacity, size_t bytes, unsigned most);
};

/* A thread that sleeps and is woken. Each wake ends one wait, now or later. */
struct wake_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*wait)(void *self);
	void (*wake)(void *self);
};

/* What one run of a dataflow contender does: suite_dataflow.c. */
enum bench_dataflow {
	BENCH_CHAIN,
	BENCH_WIDE,
	BENCH_ONE,
	BENCH_KERNEL,
	BENCH_ADDS,
	BENCH_QUEUE,
	BENCH_BUFFERS,
	BENCH_BUILD,
	BENCH_GROUP,
	BENCH_CALLS,
	BENCH_LOOP,
	BENCH_ROWS,
	BENCH_STEPS
};

/* A graph, and threads that run its nodes. */
struct dataflow_contender {
	struct bench_about about;
	enum bench_dataflow kind;
	void *(*create)(enum bench_dataflow kind, unsigned nodes, unsigned threads);
	void (*destroy)(void *self);
	/* Runs the graph once, and waits for its end. Several threads may do so at the same time. */
	void (*run)(void *self);
	/* How many nodes have run, while no other thread is at work. NULL: nothing tells. */
	uint64_t (*ran)(void *self);
	uint64_t (*most_bytes)(void *self); /* that values used at one time; NULL: not known */
};

/* Defined in contenders.c: ours first; NULL ends each list. */
extern const struct ring_contender *const bench_rings[];
extern const struct ring_contender *const bench_priorities[]; /* keys: bench_key_of() */
extern const struct queue_contender *const bench_queues[];
extern const struct queue_contender *const bench_shuffles[];
extern const struct ring_contender *const bench_shuffle_tries[];
extern const struct read_contender *const bench_readers[];
extern const struct update_contender *const bench_updates[];
extern const struct addition_contender *const bench_additions[];
extern const struct train_contender *const bench_trains[];
extern const struct snapshot_contender *const bench_snapshots[];
extern const struct snapshot_contender *const bench_transactions[];
extern const struct publish_contender *const bench_publishers[];
extern const struct names_contender *const bench_names[];
extern const struct section_contender *const bench_sections[];
extern const struct counter_contender *const bench_counters[];
extern const struct scatter_contender *const bench_scatters[];
extern const struct data_contender *const bench_data[];
extern const struct memory_contender *const bench_memories[];
extern const struct wake_contender *const bench_wakes[];
extern const struct loop_contender *const bench_loops[];
extern const struct carrier_contender *const bench_carriers[];
extern const struct dataflow_contender *const bench_dataflows[];
extern const char *const bench_absent[]; /* rivals that are not installed, with their packages */

#ifdef __cplusplus
}
#endif

#endif
