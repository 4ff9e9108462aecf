/*
 * bench.h - what contenders are to the tool: Weir and its rivals, each through one small table of functions.
 *
 * The harness code around a table is the same for all. To add a rival: write bench/rivals/<name>.c or .cc with its table, name the
 * file in bench/meson.build and the table in contenders.c. A rival does the same work on the same workload, or `lacks` says what
 * it leaves out. Out of memory an adapter ends the program with exit(3).
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
	const char *version; /* "Boost 1_74"; NULL: Weir's own, or libc's */
	const char *lacks;   /* what it leaves out that the others do, in a few words; NULL: nothing */
	int lock_free;       /* a thread that is stopped anywhere stops no other */
};

/* Prepares and cleans up a thread that will use the contender; NULL when there is nothing to do. */
typedef void bench_thread_fn(void *self);

/* What a whole run of a queue moved. */
struct bench_totals {
	uint64_t put, put_sum, got, got_sum;
	uint64_t elapsed_ns;
};

/* A queue of 64-bit values other than 0 that never waits: enqueue and dequeue return 1, or 0 when full or empty. */
struct ring_contender {
	struct bench_about about;
	int unbounded;                 /* the capacity is a hint; the harness sees to it that not much more is inside */
	unsigned producers, consumers; /* the most of each at a time; 0: any number */
	void *(*create)(size_t capacity);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	int (*enqueue)(void *self, uint64_t value);
	int (*dequeue)(void *self, uint64_t *value);
	/* How many of `count` went in or came out; NULL: it has no such call, and the harness loops. */
	size_t (*enqueue_many)(void *self, const uint64_t *values, size_t count);
	size_t (*dequeue_many)(void *self, uint64_t *values, size_t count);
	uint64_t (*pairs)(void *self, uint64_t count); /* enqueues and dequeues 1 .. count: bench_pairs() */
};

/* The sum of what came out. Compiled into each adapter, so that no contender is called through a pointer here. */
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

/* The key under which a priority queue takes a value: the same for all, and random (the finish of SplitMix64). */
static inline int64_t bench_key_of(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
	return (int64_t)((value ^ value >> 31) >> 1);
}

/* A queue of 64-bit values other than 0 whose calls wait; FIFO in bench_queues, in random order in bench_shuffles. */
struct queue_contender {
	struct bench_about about;
	int unbounded;
	unsigned producers, consumers;
	void *(*create)(size_t capacity);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*enqueue)(void *self, uint64_t value);
	int (*dequeue)(void *self, uint64_t *value); /* 0: closed and drained */
	/* NULL: it cannot be closed. Consumers then end at a value 0 each, enqueued last; of a shuffle queue it is required. */
	void (*close)(void *self);
	/* For a contender in a process of its own: the whole run there, 1 on success. Then all else above may be NULL. */
	int (*run_apart)(unsigned producers, unsigned consumers, size_t capacity, unsigned duration_ms,
	                 struct bench_totals *totals);
};

/* A shared value of `bytes` (a multiple of 8, at least 64), all of whose words are equal; 0 at first. */
struct read_contender {
	struct bench_about about;
	void *(*create)(size_t bytes);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/* Loops are the contender's, so that nothing but the read is timed. The sum of the first words of `count` reads. */
	uint64_t (*read_many)(void *self, uint64_t count);
	/* The same, looking at every word of each: how many had words that differ. NULL: its value is one word. */
	uint64_t (*scan_many)(void *self, uint64_t count);
	void (*write)(void *self, uint64_t value);
};

/* 1 when the words of a value differ. */
static inline int bench_torn(const uint64_t *words, size_t bytes)
{
	uint64_t differ = 0;

	for (size_t i = 1; i < bytes / sizeof(*words); i++)
		differ |= words[i] ^ words[0];
	return differ != 0;
}

/* A shared value of eight equal words to which threads add 1 at a time; 0 at first. */
struct update_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*update_many)(void *self,
	                    uint64_t count); /* replaces the value by one whose words are 1 higher, `count` times */
	uint64_t (*value)(void *self);       /* its first word, when nobody else is at work */
};

/* A shared value of `bytes` of i64, all 0 at first, to whose elements threads add 1, each from a value of its own. */
struct addition_contender {
	struct bench_about about;
	void *(*create)(size_t bytes, unsigned threads);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*add_one)(void *self, unsigned thread); /* 1 to each element */
	uint64_t (*value)(void *self);  /* of each element, when nobody else is at work; UINT64_MAX: they differ */
	uint64_t (*wasted)(void *self); /* copies of the value that were thrown away; NULL: there are none */
};

/* A shared value of `bytes` all of whose words are equal, each new one allocated by bench_value_allocate. */
struct publish_contender {
	struct bench_about about;
	void *(*create)(size_t bytes);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	uint64_t (*read_many)(void *self, uint64_t count); /* looks at both ends; how many had words that differ */
	void (*publish)(void *self, uint64_t value);       /* one thread */
};

/* Objects by name, counted; here each object is a number other than 0. */
struct names_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	void (*add)(void *self, const char *name, uint64_t number); /* a name that is not there */
	/* Takes a reference to each object, reads its number (0: not there), and lets go. */
	void (*find_many)(void *self, const char *const names[], uint64_t found[], size_t count);
	void (*renew)(void *self, const char *name, uint64_t number); /* removes the name, and adds it with a new object */
};

/* What lets one thread in at a time. */
struct section_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	void (*execute)(void *self, void (*body)(void *context), void *context);
};

/* A count that threads add 1 to; 0 at first. */
struct counter_contender {
	struct bench_about about;
	int reads_alone; /* it cannot be read while others add */
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
	void (*add_one)(void *self, const int64_t *rows, size_t count); /* to each element of these rows, at one instant */
	uint64_t (*sum)(void *self); /* of the first element of each row, when nobody else is at work */
};

/* Several shared values, changed and read at one instant. */
struct snapshot_contender {
	struct bench_about about;
	void *(*create)(size_t variables);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	uint64_t (*take_many)(void *self, uint64_t count); /* snapshots; how many of them did not belong together */
	void (*commit)(void *self, uint64_t value);        /* sets all variables; one thread at a time */
};

/* A shared value of `bytes`, each new one allocated by bench_value_allocate, which a stopped reader may keep from being freed. */
struct memory_contender {
	struct bench_about about;
	void *(*create)(size_t bytes);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	/*
	 * One read, by the reader's thread. It calls bench_stop_here() in the middle of it; or, if `by_signal`, it is called again and
	 * again and the harness stops it at an instruction of chance.
	 */
	void (*read)(void *self);
	int by_signal;
	/* One new value. It may wait for the reader, who goes on at the end of the run; 0: refused, for lack of memory. */
	int (*publish)(void *self, uint64_t deadline_ns);
};
void bench_stop_here(void);
void *bench_value_allocate(size_t bytes); /* aligned to 64; not NULL */
void bench_value_free(void *value, size_t bytes);
uint64_t bench_value_bytes(void); /* allocated, and not freed */

/* A thread that sleeps and is woken: each wake ends one wait, now or later. */
struct wake_contender {
	struct bench_about about;
	void *(*create)(void);
	void (*destroy)(void *self);
	bench_thread_fn *thread_begin, *thread_end;
	void (*wait)(void *self);
	void (*wake)(void *self);
};

/* contenders.c: ours first; NULL ends each. */
extern const struct ring_contender *const bench_rings[];
extern const struct ring_contender *const bench_priorities[]; /* keys: bench_key_of() */
extern const struct queue_contender *const bench_queues[];
extern const struct queue_contender *const bench_shuffles[];
extern const struct ring_contender *const bench_shuffle_tries[];
extern const struct read_contender *const bench_readers[];
extern const struct update_contender *const bench_updates[];
extern const struct addition_contender *const bench_additions[];
extern const struct snapshot_contender *const bench_snapshots[];
extern const struct snapshot_contender *const bench_transactions[];
extern const struct publish_contender *const bench_publishers[];
extern const struct names_contender *const bench_names[];
extern const struct section_contender *const bench_sections[];
extern const struct counter_contender *const bench_counters[];
extern const struct scatter_contender *const bench_scatters[];
extern const struct memory_contender *const bench_memories[];
extern const struct wake_contender *const bench_wakes[];
extern const char *const bench_absent[]; /* rivals not installed, with their packages */

#ifdef __cplusplus
}
#endif

#endif
