/*
 * stage.h - datasets, and the stages that read them.
 *
 * A dataset is a description. It is immutable, counted, and refers to its inputs. A *stage* is the
 * state of one reading of it; each stage has the stages of its inputs, so an iterator is a tree of
 * stages. Elements are pulled: weiri_stage_poll() of the root polls the stages below.
 *
 * A poll never waits. It returns
 *   WEIR_OK              an element: references in parts[0 .. width-1]
 *   WEIR_OUT_OF_RANGE    the end; each further poll says so too
 *   WEIR_WOULD_BLOCK     what it needs is being computed by a task of the pool (window.h). The
 *                        consumer of the stage will be woken, and the poll is then to be repeated. A
 *                        stage keeps what it has gathered meanwhile: the rows of half a batch
 *   WEIRI_POLL_AGAIN     memory was missing, as *error says; no element was lost, and the next poll
 *                        tries again. Nobody counts it as an element
 *   another status       an error in the place of an element; the next poll goes on behind it
 * and after any of them the stage can be polled again or closed. A consumer that takes no more
 * elements is `over`: each poll for it returns WEIR_WOULD_BLOCK, so that a stage that looks for an
 * element in an endless input ends.
 *
 * Between two windows all stages are polled by one thread at a time, which has the turn of their
 * *consumer*: the filler of the window above, or the iterator. So stages need no atomics.
 */
#ifndef WEIRI_DATA_STAGE_H
#define WEIRI_DATA_STAGE_H

#include <weir/dataset.h>

#include "base/atomic.h"
#include "base/compiler.h"

/* Which fields of the options a kind reads. */
enum weiri_dataset_uses {
	WEIRI_USES_AT_ONCE = 1,
	WEIRI_USES_CYCLE = 2, /* and block */
	WEIRI_USES_SEED = 4,
	WEIRI_USES_TYPES = 8,
	WEIRI_USES_DISPOSE = 16,
	/* Not a field: a poll polls the input once at most, calls a function once at most, and closes nothing. */
	WEIRI_IS_BRIEF = 32
};

/* A status of polls only; the iterator turns it into WEIR_RESOURCE_EXHAUSTED. */
#define WEIRI_POLL_AGAIN ((enum weir_status)64)

struct weiri_stage;

struct weiri_dataset_kind {
	const char *name;
	uint32_t uses, flags; /* of the options */
	size_t stage_size;
	/* Opens the inputs. If it fails, close() runs for what is there: the rest of the stage is zero. */
	enum weir_status (*open)(struct weiri_stage *stage, weir_error *error);
	enum weir_status (*poll)(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error);
	void (*close)(struct weiri_stage *stage);
	void (*dispose)(weir_dataset *dataset); /* what the kind holds besides its inputs; may be NULL */
	/*
	 * Gives the next `count` elements stacked, at no cost for each: views [count, shape...]. Returns
	 * false, and has done nothing, if it cannot. NULL: never.
	 */
	bool (*poll_rows)(struct weiri_stage *stage, size_t count, weir_tensor *parts[]);
};

/* The first member of each kind's dataset. Constant, except for the counts. */
struct weir_dataset {
	_Atomic(size_t) references;
	_Atomic(uint64_t) iterations; /* how many iterators have drawn a number */
	const struct weiri_dataset_kind *kind;
	size_t size; /* of the block */
	weir_allocator allocator;
	void (*dispose)(void *context); /* the user's; may be NULL */
	void *context;
	uint64_t number;              /* what stands in parentheses behind the name in messages */
	bool is_numbered, runs_ahead; /* runs_ahead: with a pool its stage is a window */
	bool is_short;                /* the user declared its function short */
	size_t width;
	enum weir_dtype dtypes[WEIR_DATASET_MAX_WIDTH];
	size_t input_count;
	weir_dataset **inputs;     /* behind the kind's struct, in the same block */
	weir_dataset *next_unused; /* while it is freed */
};

/*
 * Whether a poll may do the work that it finds undone in a window, instead of leaving it to the pool
 * (window.c).
 */
enum weiri_help {
	WEIRI_HELP_NEVER,    /* a deadline or a token may end it, of which a function of the user does not know */
	WEIRI_HELP_IF_KNOWN, /* the same, but only what is of known length is undone: as IF_SHORT; else NEVER */
	WEIRI_HELP_IF_SHORT, /* if less is lost by working than by waiting */
	WEIRI_HELP_ALWAYS    /* the caller is a worker of the pool, or there are none */
};

/* Whoever polls a tree of stages. Windows keep references. */
struct weiri_consumer {
	void (*wake)(struct weiri_consumer *consumer); /* any thread: a poll that found nothing may find something now */
	void (*retain)(struct weiri_consumer *consumer);
	void (*release)(struct weiri_consumer *consumer);
	_Atomic(uint32_t) over; /* 1: it takes no more elements. A hint: a late look polls once more */
	_Atomic(uint32_t) help; /* enum weiri_help; written with the turn, and a hint for threads without it */
};

/*
 * What a dump shows of a window. It belongs to the iterator, since a dump must not follow pointers
 * to windows, which come and go. All members are relaxed: they are only displayed.
 */
enum { WEIRI_GAUGES = 6 };
struct weiri_gauge {
	_Atomic(const char *) name; /* of the kind; NULL: no window has this gauge */
	_Atomic(uint64_t) number, size;
	_Atomic(uint32_t) asleep; /* 1: the consumer waits */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) read;
	_Atomic(uint32_t) stuck; /* 1: the filler waits for room or for its input */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) taken;
};

/* What all stages of an iterator share. Constant. */
struct weiri_reading {
	const weir_iterator *iterator;
	weir_pool *pool; /* may be NULL */
	uint64_t iteration;
	weir_allocator allocator;
	struct weiri_gauge *gauges; /* WEIRI_GAUGES; may be NULL */
};

/* The first member of each kind's stage. */
struct weiri_stage {
	const struct weiri_reading *reading;
	struct weiri_consumer *consumer;
	weir_dataset *dataset; /* a reference */
	uint64_t pass;         /* how many times a repetition has begun its input before */
	bool ended;
};

/* -- datasets ---------------------------------------------------------------------------------- */

/*
 * Creates a dataset of a kind of `size` bytes, zero behind the struct weir_dataset, with references
 * to its inputs. Checks the options against the kind, and copies them to *used. Width and dtypes are
 * those of the options if the kind uses and the caller gave them, else those of the first input, if
 * there is one.
 */
WEIRI_MUST_CHECK enum weir_status weiri_dataset_create(const struct weiri_dataset_kind *kind, size_t size,
                                                       weir_dataset *const inputs[], size_t input_count, void *context,
                                                       const struct weir_dataset_options *options,
                                                       struct weir_dataset_options *used, weir_dataset **out,
                                                       weir_error *error);
/* The same for a kind with one input and a number in its name. */
WEIRI_MUST_CHECK enum weir_status weiri_dataset_derive(const struct weiri_dataset_kind *kind, size_t size,
                                                       weir_dataset *input, uint64_t number,
                                                       const struct weir_dataset_options *options,
                                                       struct weir_dataset_options *used, weir_dataset **out,
                                                       weir_error *error);
/* Fails with "batch: out is NULL" and the like. */
enum weir_status weiri_dataset_fail_null(const struct weiri_dataset_kind *kind, const char *what, weir_error *error);
/*
 * Returns true if all that a poll of the dataset's stage calls, up to the windows below, is of known length:
 * the stages of Weir, and functions that the user declared short.
 */
bool weiri_dataset_is_known(const weir_dataset *dataset, const weir_pool *pool);
/* Drops a dataset that was created and cannot be completed: the user's context stays the user's. */
void weiri_dataset_abandon(weir_dataset *dataset);

/* -- messages ---------------------------------------------------------------------------------- */

/* Writes "map(3) of batch(2): " and the message. Returns the status. */
enum weir_status weiri_dataset_fail(const weir_dataset *dataset, weir_error *error, enum weir_status status,
                                    const char *format, ...) WEIR_PRINTF(4, 5);
/* Writes the message with WEIR_RESOURCE_EXHAUSTED. Returns WEIRI_POLL_AGAIN. */
#define weiri_dataset_again(dataset, error, ...) \
	(weiri_dataset_fail((dataset), (error), WEIR_RESOURCE_EXHAUSTED, __VA_ARGS__), WEIRI_POLL_AGAIN)
/*
 * The same with the message of the user's function, in *error. A status with a meaning of its own in
 * a pipeline becomes WEIR_FAILED_PRECONDITION.
 */
enum weir_status weiri_dataset_blame(const weir_dataset *dataset, enum weir_status status, weir_error *error);

/* -- elements ---------------------------------------------------------------------------------- */

void weiri_parts_release(weir_tensor *parts[], size_t width);
static inline void weiri_parts_move(weir_tensor *to[], weir_tensor *from[], size_t width)
{
	for (size_t i = 0; i < width; i++) {
		to[i] = from[i];
		from[i] = NULL;
	}
}
/* Checks an element that a function gave; releases it if it is not as promised. */
enum weir_status weiri_parts_check(const weir_dataset *dataset, weir_tensor *parts[], weir_error *error);

/* -- stages ------------------------------------------------------------------------------------ */

enum weir_status weiri_stage_open(weir_dataset *dataset, const struct weiri_reading *reading,
                                  struct weiri_consumer *consumer, uint64_t pass, struct weiri_stage **out,
                                  weir_error *error);
/* Opens the first input of a stage, for its consumer. */
static inline enum weir_status weiri_stage_open_input(struct weiri_stage *stage, uint64_t pass,
                                                      struct weiri_stage **out, weir_error *error)
{
	return weiri_stage_open(stage->dataset->inputs[0], stage->reading, stage->consumer, pass, out, error);
}
enum weir_status weiri_stage_poll(struct weiri_stage *stage, weir_tensor *parts[], weir_error *error);
/* See poll_rows of the kind. */
static inline bool weiri_stage_poll_rows(struct weiri_stage *stage, size_t count, weir_tensor *parts[])
{
	bool (*poll_rows)(struct weiri_stage *, size_t, weir_tensor *[]) = stage->dataset->kind->poll_rows;

	return poll_rows != NULL && !stage->ended && poll_rows(stage, count, parts);
}
/* Accepts NULL. Waits for nothing: what runs ahead ends by itself. */
void weiri_stage_close(struct weiri_stage *stage);

#endif
