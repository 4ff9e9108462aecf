/*
 * dataset.h - sequences of elements that are computed as they are taken: read, mapped, shuffled,
 * batched.
 *
 * A *dataset* is an immutable description: where elements come from, and what happens to them. An
 * *iterator* is one reading of it. An element is a fixed number of tensors, its components. Any
 * number of threads may take from one iterator, and each element goes to one of them. Use it to
 * feed a loop from files, sockets or tables. To hand over items that exist already, use a queue
 * (weir/queue.h); its producers push, while a dataset is pulled.
 *
 *     weir_dataset_range(0, 1000, 1, NULL, &numbers, &error);
 *     weir_dataset_map(numbers, load, files, &at_once_4, &rows, &error);
 *     weir_dataset_batch(rows, 32, NULL, &batches, &error);
 *     weir_iterator_create(batches, &options, &iterator, &error);
 *     while (weir_iterator_next(iterator, WEIR_NO_DEADLINE, NULL, parts, 2, &error) == WEIR_OK)
 *
 * | call                | threads   | progress       | blocks on            | allocates | signal-safe |
 * |---------------------|-----------|----------------|----------------------|-----------|-------------|
 * | weir_dataset_from_slices, _range, _generate | any | allocator | allocator   | yes       | no          |
 * | weir_dataset_map, _filter, _interleave | any | allocator | allocator        | yes       | no          |
 * | weir_dataset_shuffle, _batch, _padded_batch, _prefetch | any | allocator | allocator | yes | no     |
 * | weir_dataset_repeat, _take, _skip | any | allocator | allocator             | yes       | no          |
 * | weir_dataset_zip, _concatenate, _cache | any | allocator | allocator        | yes       | no          |
 * | weir_dataset_retain | any       | wait-free      | nothing              | no        | no          |
 * | weir_dataset_release | any      | wait-free + allocator, dispose | nothing | no     | no          |
 * | weir_dataset_width, _dtype, _seed, _text | any | wait-free | nothing    | no        | no          |
 * | weir_iterator_create | any      | allocator      | allocator            | yes       | no          |
 * | weir_iterator_next  | any       | blocking (1)   | the element, a deadline, a token | yes | no    |
 * | weir_iterator_start_next | any  | lock-free + your functions (3) | nothing | yes    | no          |
 * | weir_iterator_position, _iteration | any | wait-free | nothing          | no        | no          |
 * | weir_iterator_dataset, _name | any | wait-free    | nothing              | no        | no          |
 * | weir_iterator_destroy | one, last | blocking     | your functions that run (2) | no | no          |
 *
 * (1) What must happen in order (a generator, a filter, a batch) is done by one thread at a time.
 *     A thread that stops inside such a function of yours stops the iterator: the next element is
 *     not known without it. Threads that wait for it keep their deadlines and tokens.
 * (2) Calls that wait on other threads, and operations that were started, end with WEIR_CANCELLED.
 *     Functions of yours that run, completions too, are waited for, and no further ones begin.
 * (3) With a pool, your functions run as its tasks, except those declared short
 *     (WEIR_DATASET_SHORT). Without one they run inside the call, or inside the call of another thread
 *     that held the iterator up.
 *
 * What runs ahead. An iterator with a pool (weir/pool.h) runs a map with at_once > 1, a prefetch
 * and an interleave with at_once > 1 by tasks of that pool, as far ahead as their size says: a map
 * by up to twice at_once elements, of which at_once are worked on at a time.
 * Without a pool all functions run inside weir_iterator_next(), one after the other, with the same
 * elements in the same order. Neither a dataset nor an iterator has a thread of its own.
 *
 * Errors take the place of an element. The call that would have given the element returns its
 * status and message, which names the stage ("map(3) of batch(2)"); the next call goes on behind
 * it. An error below a batch comes out by itself, as soon as it is met; the batch goes on with the
 * elements behind it. So if a map of range(0, 13) fails for 5, batch(4) gives 0 1 2 3, the error,
 * 4 6 7 8, and 9 10 11 12. An iterator that has given WEIR_OUT_OF_RANGE, the end, gives it for ever.
 *
 * Ordering. What your function wrote before it returned an element happens before the return of the
 * weir_iterator_next() that gives the element, or what was computed from it.
 *
 * Ownership. A dataset keeps its inputs, and an iterator its dataset; release yours at any time.
 * Contexts of your functions are borrowed until the last dataset and iterator that use them are
 * gone; `dispose` tells when. A failed call leaves *out untouched.
 */
#ifndef WEIR_DATASET_H
#define WEIR_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/cancel.h>
#include <weir/pending.h>
#include <weir/pool.h>
#include <weir/status.h>
#include <weir/tensor.h>
#include <weir/time.h>

WEIR_BEGIN_DECLS

typedef struct weir_dataset weir_dataset;
typedef struct weir_iterator weir_iterator;

enum weir_dataset_limits {
	WEIR_DATASET_MAX_WIDTH = 16, /* components of an element */
	WEIR_DATASET_MAX_INPUTS = 256,
	WEIR_DATASET_MAX_AHEAD = 65536, /* at_once, and the size of a prefetch */
	WEIR_DATASET_TEXT_SIZE = 96
};

enum weir_dataset_flags {
	WEIR_DATASET_UNORDERED = 1,      /* map, interleave: elements as they are ready, not in order */
	WEIR_DATASET_SAME_EACH_TIME = 2, /* shuffle: the same order in each pass of each iterator */
	WEIR_DATASET_DROP_REMAINDER = 4, /* batch: no batch that is smaller than the others */
	/*
	 * generate, map: each call of the functions takes a few microseconds at most. They may then run
	 * inside calls that do not wait for others, such as weir_iterator_start_next(): a deadline, a token
	 * or a cancel does not interrupt them there.
	 */
	WEIR_DATASET_SHORT = 8
};

/*
 * NULL means all defaults. Each call below says which fields it reads besides `allocator`; the
 * others must be 0, else WEIR_INVALID_ARGUMENT. A call that names none reads `allocator` alone:
 * from_slices, range, prefetch, repeat, take, skip, zip, concatenate, cache.
 */
struct weir_dataset_options {
	size_t struct_size;   /* WEIR_DATASET_OPTIONS_INIT sets it */
	uint32_t flags;       /* of enum weir_dataset_flags */
	size_t at_once;       /* how many elements, or inputs, are worked on at a time; 0 is 1 */
	size_t cycle;         /* interleave: how many inputs take turns; 0 is 1 */
	size_t block;         /* interleave: how many elements of one input in a row; 0 is 1 */
	const uint64_t *seed; /* shuffle; NULL: a random one is drawn when the dataset is created */
	/* What the function gives: `width` dtypes. width 0: as the input. */
	const enum weir_dtype *dtypes;
	size_t width;
	void (*dispose)(void *context); /* called when the dataset is freed; may be NULL */
	const weir_allocator *allocator;
};
#define WEIR_DATASET_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_dataset_options)

/* -- where elements come from ------------------------------------------------------------------ */

/*
 * Element i is row i of each of `count` tensors: views, no copy. All must have the same first
 * dimension; if it is 0, the dataset is empty. The dataset takes references of its own.
 * Errors of this call and of all that create a dataset: WEIR_INVALID_ARGUMENT (the message names
 * the argument and what was expected), WEIR_RESOURCE_EXHAUSTED.
 * Here: a NULL tensor, a scalar, rows that differ (both counts), count 0 or above
 * WEIR_DATASET_MAX_WIDTH.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_from_slices(weir_tensor *const tensors[], size_t count,
                                                   const struct weir_dataset_options *options,
                                                   weir_dataset **out, weir_error *error);

/*
 * The i64 scalars first, first + step, ... as long as they are below `last` (above it, if step is
 * negative). Errors: step is 0.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_range(int64_t first, int64_t last, int64_t step,
                                             const struct weir_dataset_options *options,
                                             weir_dataset **out, weir_error *error);

/*
 * A source of your own: a file, a socket, a table. Each pass of each iterator calls open once, then
 * next for each element, one call at a time, then close. close is called for each open that
 * returned WEIR_OK, also if the pass ends early.
 */
struct weir_dataset_generator {
	size_t struct_size; /* WEIR_DATASET_GENERATOR_INIT sets it */
	/* Sets *state. May be NULL: *state is then NULL. An error ends the pass at its first element. */
	enum weir_status (*open)(void *context, void **state, weir_error *error);
	/*
	 * Gives references to `width` tensors in `out`, or returns WEIR_OUT_OF_RANGE at the end. Any
	 * other status is an error in the place of an element; next is called again for the one behind.
	 */
	enum weir_status (*next)(void *context, void *state, weir_tensor *out[], weir_error *error);
	void (*close)(void *context, void *state); /* may be NULL */
	void *context;
};
#define WEIR_DATASET_GENERATOR_INIT WEIR_STRUCT_SIZE(struct weir_dataset_generator)

/* Options: dtypes and width (both required), SHORT, dispose. @since 0.1 */
WEIR_API enum weir_status weir_dataset_generate(const struct weir_dataset_generator *generator,
                                                const struct weir_dataset_options *options,
                                                weir_dataset **out, weir_error *error);

/* -- what happens to each element -------------------------------------------------------------- */

/*
 * Computes an element from an element. The inputs are borrowed. Gives references in `out` (an input
 * may be retained and given). With at_once > 1, calls run at the same time. A status other than
 * WEIR_OK takes the place of the element; what is in `out` is then released, if it is not NULL.
 * WEIR_OUT_OF_RANGE does not end the dataset: it becomes WEIR_FAILED_PRECONDITION.
 *
 * `error` is never NULL in a function of a dataset, and its message is empty. The function may write a
 * message, which the taker gets behind the name of the stage; without one it gets the name of the
 * status. The code in *error is not read: the returned status counts.
 */
typedef enum weir_status weir_dataset_map_fn(void *context, weir_tensor *const in[],
                                             weir_tensor *out[], weir_error *error);

/*
 * fn for each element. An element whose number of components or dtypes are not those promised is
 * refused with WEIR_INVALID_ARGUMENT in its place; the message has both. Options: at_once,
 * UNORDERED, SHORT, dtypes and width (0: those of the input), dispose.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_map(weir_dataset *input, weir_dataset_map_fn *fn,
                                           void *context,
                                           const struct weir_dataset_options *options,
                                           weir_dataset **out, weir_error *error);

/* Sets *keep. */
typedef enum weir_status weir_dataset_filter_fn(void *context, weir_tensor *const in[], bool *keep,
                                                weir_error *error);

/* The elements that fn keeps. Options: dispose. @since 0.1 */
WEIR_API enum weir_status weir_dataset_filter(weir_dataset *input, weir_dataset_filter_fn *fn,
                                              void *context,
                                              const struct weir_dataset_options *options,
                                              weir_dataset **out, weir_error *error);

/* Gives a reference to a dataset for an element. */
typedef enum weir_status weir_dataset_flat_fn(void *context, weir_tensor *const in[],
                                              weir_dataset **out, weir_error *error);

/*
 * fn gives a dataset for each element of the input. `cycle` of them take turns, in the order of
 * their elements, each with `block` elements; an ended one is replaced at its next turn by that of
 * the next input element. An error of the input or of fn takes one turn. With at_once > 1 all
 * `cycle` of them run ahead, each by `block` elements;
 * UNORDERED lets one that is ready overtake one whose turn it is. Options: cycle, block, at_once,
 * UNORDERED, dtypes and width (0: those of the input), dispose.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_interleave(weir_dataset *input, weir_dataset_flat_fn *fn,
                                                  void *context,
                                                  const struct weir_dataset_options *options,
                                                  weir_dataset **out, weir_error *error);

/* -- the order, the number and the size -------------------------------------------------------- */

/*
 * Keeps up to `buffer` elements, and gives one of them at random: each with the same probability.
 * An element never comes more than buffer - 1 places early. The order depends on the seed, the
 * iteration of the iterator and the number of the pass (see weir_dataset_repeat), or on the seed
 * alone with SAME_EACH_TIME. Options: seed, SAME_EACH_TIME. Errors: buffer is 0.
 * Source: each draw is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of seed, pass and number of the
 * draw, without a state; scaled to the buffer's size by Lemire's method (ACM TOMACS 2019).
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_shuffle(weir_dataset *input, size_t buffer,
                                               const struct weir_dataset_options *options,
                                               weir_dataset **out, weir_error *error);

/*
 * `size` elements, stacked under a new first dimension; each row is copied once. The last batch may
 * be smaller, unless DROP_REMAINDER is set (the only option). Elements of a batch must have equal shapes; else the
 * batch is refused with WEIR_INVALID_ARGUMENT, and the message names component, element and both
 * shapes. Errors: size is 0.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_batch(weir_dataset *input, size_t size,
                                             const struct weir_dataset_options *options,
                                             weir_dataset **out, weir_error *error);
/* The same for elements of one rank: smaller ones are padded as weir_tensor_stack_padded() does. */
WEIR_API enum weir_status weir_dataset_padded_batch(weir_dataset *input, size_t size,
                                                    const struct weir_dataset_options *options,
                                                    weir_dataset **out, weir_error *error);

/*
 * Up to `size` elements are computed before they are asked for, by tasks of the iterator's pool,
 * beginning with the first call that asks for one. 0: none. Options: none. Callers of
 * weir_iterator_next() without deadline and token that come back at once, over many elements, compute
 * them themselves if each takes less than 0.1 ms: nothing would be gained by handing them over. That
 * ends when they take longer to come back. Calls with a deadline or a token compute them only on a
 * thread of the pool, or if it has none. weir_iterator_start_next() computes them as a call without
 * deadline does, but only ranges, slices, and generators and maps that are declared short
 * (WEIR_DATASET_SHORT): what an element of another stage takes has no bound that is known.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_prefetch(weir_dataset *input, size_t size,
                                                const struct weir_dataset_options *options,
                                                weir_dataset **out, weir_error *error);

/*
 * The input `times` times, one pass after the other; -1: for ever. A pass without elements ends the
 * endless repetition. Errors: times is below -1.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_repeat(weir_dataset *input, int64_t times,
                                              const struct weir_dataset_options *options,
                                              weir_dataset **out, weir_error *error);
/* The first `count` elements; all but the first `count`. An error counts as an element. @since 0.1 */
WEIR_API enum weir_status weir_dataset_take(weir_dataset *input, uint64_t count,
                                            const struct weir_dataset_options *options,
                                            weir_dataset **out, weir_error *error);
WEIR_API enum weir_status weir_dataset_skip(weir_dataset *input, uint64_t count,
                                            const struct weir_dataset_options *options,
                                            weir_dataset **out, weir_error *error);

/*
 * Element i has the components of element i of each input; it ends with the shortest. An error of
 * one input takes the place of the whole element. Errors: no input, more than
 * WEIR_DATASET_MAX_INPUTS, or more than WEIR_DATASET_MAX_WIDTH components.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_zip(weir_dataset *const inputs[], size_t count,
                                           const struct weir_dataset_options *options,
                                           weir_dataset **out, weir_error *error);
/* One input after the other. Errors: their dtypes differ (both are named). @since 0.1 */
WEIR_API enum weir_status weir_dataset_concatenate(weir_dataset *const inputs[], size_t count,
                                                   const struct weir_dataset_options *options,
                                                   weir_dataset **out, weir_error *error);

/*
 * Keeps references to all elements of the first pass that ends, if it had no error; later passes of
 * all iterators of this dataset give those again, and the input is not read. Passes that began
 * before go on by themselves.
 * @since 0.1
 */
WEIR_API enum weir_status weir_dataset_cache(weir_dataset *input,
                                             const struct weir_dataset_options *options,
                                             weir_dataset **out, weir_error *error);

/* -- datasets ---------------------------------------------------------------------------------- */

/* Adds a reference and returns the dataset (NULL for NULL). @since 0.1 */
WEIR_API weir_dataset *weir_dataset_retain(weir_dataset *dataset);
/* Gives a reference back; the last one frees the dataset. Accepts NULL. @since 0.1 */
WEIR_API void weir_dataset_release(weir_dataset *dataset);
/* The number of components of an element; 0 for NULL. @since 0.1 */
WEIR_API size_t weir_dataset_width(const weir_dataset *dataset);
/* The dtype of a component; 0 for NULL or if there is no such component. @since 0.1 */
WEIR_API enum weir_dtype weir_dataset_dtype(const weir_dataset *dataset, size_t component);
/* The seed in use, given or drawn. WEIR_NOT_FOUND if the dataset is no shuffle. @since 0.1 */
WEIR_API enum weir_status weir_dataset_seed(const weir_dataset *dataset, uint64_t *seed);
/*
 * Writes "batch(32) of map(4) of range" into text (size bytes) and returns text. A long text is cut
 * behind a whole name.
 * @since 0.1
 */
WEIR_API char *weir_dataset_text(const weir_dataset *dataset, char *text, size_t size);

/* -- iterators --------------------------------------------------------------------------------- */

struct weir_iterator_options {
	size_t struct_size; /* WEIR_ITERATOR_OPTIONS_INIT sets it */
	weir_pool *pool;    /* NULL: nothing runs ahead. It must outlive the iterator */
	/*
	 * Which iteration of the dataset this is: it decides the orders of shuffles. 0: the next one of
	 * this dataset, from 1.
	 */
	uint64_t iteration;
	uint64_t position; /* begins behind so many elements: they are computed and dropped */
	const char *name;  /* for messages; copied; NULL: the text of the dataset */
	const weir_allocator *allocator;
};
#define WEIR_ITERATOR_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_iterator_options)

/*
 * Creates an iterator. options may be NULL. Errors: WEIR_INVALID_ARGUMENT (NULL, struct_size),
 * WEIR_RESOURCE_EXHAUSTED. An error of the elements before `position` is dropped with them.
 * @since 0.1
 */
WEIR_API enum weir_status weir_iterator_create(weir_dataset *dataset,
                                               const struct weir_iterator_options *options,
                                               weir_iterator **out, weir_error *error);

/*
 * Takes the next element: `count` references in parts, which the caller releases.
 * `count` must be the width of the dataset. Errors:
 *   WEIR_OUT_OF_RANGE        the end
 *   WEIR_DEADLINE_EXCEEDED   deadline_ns (weir/time.h; 0: does not wait for other threads) passed
 *   WEIR_CANCELLED           `cancel` (may be NULL) fired, or the iterator is being destroyed
 *   WEIR_INVALID_ARGUMENT    a NULL argument, count, or an element that breaks a promise
 *   WEIR_RESOURCE_EXHAUSTED  memory; if the message says "again", no element was lost
 *   WEIR_FAILED_PRECONDITION a function of this iterator's pipeline calls it
 *   any status of your functions, in the place of an element
 * After the deadline or the token nothing is lost: the next call gets what this one waited for.
 *
 * Inside a task of the iterator's pool, and if that pool has no threads, the call does all work that
 * its element needs and no other thread has begun; it looks at its deadline and token only when it
 * waits. Elsewhere a call without deadline and token does so if the functions were measured to take
 * less than 0.1 ms, and no task of a prefetch is at it; a function that suddenly takes longer then
 * delays the end of this call. Before it returns, a call may also read elements for operations that
 * wait (weir_iterator_start_next()), where all stages are known or short.
 * @since 0.1
 */
WEIR_API enum weir_status weir_iterator_next(weir_iterator *iterator, uint64_t deadline_ns,
                                             weir_cancel *cancel, weir_tensor *parts[],
                                             size_t count, weir_error *error);

/*
 * The completion of an operation that was started. It is called exactly once. With WEIR_OK, `parts`
 * has `count` references, the width of the dataset, which the callee releases; the array is not
 * its own. Otherwise parts is NULL, count is 0, and *error says why. The rules of
 * weir_queue_done_fn (weir/queue.h) apply, but it must not destroy the iterator, nor end its thread.
 */
typedef void weir_iterator_done_fn(void *context, enum weir_status status, const weir_error *error,
                                   weir_tensor *const parts[], size_t count);

/*
 * weir_iterator_next() as an asynchronous operation, which holds no thread while it waits. `done`
 * may be called inside this call, inside another call on the iterator, or by a task of its pool.
 * *operation (may be NULL) is a handle to cancel the operation with; the caller gives it back with
 * weir_pending_release(). An operation that is cancelled loses no element: the next call gets it.
 * Operations that wait get their elements about in the order in which they were started; two that get
 * theirs at one time, or one that was just started, may be first. Errors of this
 * call, after which `done` is not called: WEIR_INVALID_ARGUMENT (NULL), WEIR_RESOURCE_EXHAUSTED,
 * WEIR_CANCELLED (the iterator is being destroyed). Statuses of the operation: as
 * weir_iterator_next().
 * @since 0.1
 */
WEIR_API enum weir_status weir_iterator_start_next(weir_iterator *iterator,
                                                   weir_iterator_done_fn *done, void *context,
                                                   weir_pending **operation, weir_error *error);

/*
 * How many elements, errors included, weir_iterator_next() has given, and
 * options.position. With the same seeds, iteration and position, another iterator gives the
 * same rest, if no stage is UNORDERED. 0 for NULL.
 * @since 0.1
 */
WEIR_API uint64_t weir_iterator_position(const weir_iterator *iterator);
/* The iteration, given or counted; 0 for NULL. @since 0.1 */
WEIR_API uint64_t weir_iterator_iteration(const weir_iterator *iterator);
/* The dataset that it reads, borrowed; its name. NULL and "(null)" for NULL. @since 0.1 */
WEIR_API weir_dataset *weir_iterator_dataset(const weir_iterator *iterator);
WEIR_API const char *weir_iterator_name(const weir_iterator *iterator);

/*
 * Ends the iterator: see (2) above. Accepts NULL. No call on the iterator may begin after this one.
 * Inside a task of the iterator's pool it runs tasks of the pool while it waits. Errors:
 * WEIR_FAILED_PRECONDITION, and nothing happens, if a function of the iterator's own pipeline or a
 * completion of it calls it, or a completion of another object that runs inside a call of the
 * iterator. Elsewhere in a completion it first runs the completions that are due on this thread.
 * @since 0.1
 */
WEIR_API enum weir_status weir_iterator_destroy(weir_iterator *iterator, weir_error *error);

WEIR_END_DECLS

#endif
