/*
 * history.h - records what threads did to a structure and when, and checks whether that is
 * linearizable.
 *
 * Use it to check a structure of your own. Record the calls and results of each thread, join the
 * threads, and ask whether a sequential order of the operations explains all results and keeps each
 * operation between its call and its return (Herlihy and Wing, TOPLAS 1990). It does not depend on
 * Weir, so it may be copied. docs/checking.md has a worked example, and says what a verdict means.
 *
 * | part                   | for                            | operations | time                   |
 * |------------------------|--------------------------------|------------|------------------------|
 * | history_recorder_*     | recording                      | any number | constant per operation |
 * | history_check_fifo     | queues, bounded or not         | millions   | O(n log n)             |
 * | history_check_multiset | pools, shuffle queues          | millions   | O(n log n)             |
 * | history_check_priority | priority queues                | millions   | O(n log n)             |
 * | history_check_register | versioned variables, one per operation | millions | O(n log n)       |
 * | history_check_serial   | snapshots and transactions     | millions   | O(n log n) in parts    |
 * | history_check_stamps   | the same, if operations give stamps | millions | O(n log n) in parts |
 * | history_check_general  | anything that a model can describe | tens   | exponential at worst   |
 * | history_check_each  | the same, for many independent objects | tens each | n log n, and those |
 *
 * Only one thread at a time may use the checkers, which keep no state between calls. Fast checkers
 * require that every operation has returned. One operation precedes another if its return time is
 * strictly smaller than the other's call time. Equal times mean overlap, so a coarse clock can hide
 * a violation but never invent one.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "history/clock.h"

/* -- histories -- */

enum history_kind {
	/* Collections. Values are unique: each is put at most once. */
	HISTORY_PUT = 1,    /* argument was put; for a priority queue, result is its key (int64_t) */
	HISTORY_PUT_FULL,   /* not put: there was no room */
	HISTORY_TAKE,       /* result was taken */
	HISTORY_TAKE_EMPTY, /* not taken: nothing (that may leave) was stored */
	/* Variables: the parts say what was read and published. */
	HISTORY_READ,
	HISTORY_WRITE,   /* with or without reading; all parts at one instant */
	HISTORY_ABORTED, /* nothing was published: some part had gone beyond version `before` */
	/* Structures with keys: history/keyed.h. */
	HISTORY_MAP_PUT,
	HISTORY_MAP_GET,
	HISTORY_MAP_GET_ANY,
	HISTORY_MAP_PEEK,
	HISTORY_MAP_CLEAR,
	HISTORY_MAP_LOOK,
	HISTORY_JOIN_INSERT,
	HISTORY_JOIN_TAKE,
	HISTORY_JOIN_CLOSE,
	HISTORY_JOIN_LOOK,
	HISTORY_NAME_ADD,
	HISTORY_NAME_FIND,
	HISTORY_NAME_CREATE,
	HISTORY_NAME_REMOVE,
	/* Collections, for the general checker only. */
	/* argument 0: stored values can still be taken; HISTORY_CANCELS: they are dropped */
	HISTORY_CLOSE,
	HISTORY_PUT_CLOSED,  /* argument was not put: it is closed */
	HISTORY_TAKE_ENDED,  /* nothing was taken, and nothing ever will be */
	HISTORY_LOOK_CLOSED, /* result: whether it is closed */
	HISTORY_TAKE_BELOW,  /* by priority: there was no key below argument (int64_t) */
	HISTORY_CLEAR,       /* all stored values are dropped */
	HISTORY_PEEK,        /* result stays and is the next to leave; by priority, result is its key */
	/* Free for your own kinds; the general checker passes them to your model. */
	HISTORY_USER = 32
};

#define HISTORY_NONE UINT64_MAX
enum { HISTORY_CANCELS = 1 };

/* What an operation did to one variable. */
struct history_part {
	uint64_t object;
	uint64_t before; /* the version that was read or built on; HISTORY_NONE: none */
	uint64_t after;  /* the version published; HISTORY_NONE: none */
	uint64_t value;  /* the value that was published, or else read; HISTORY_NONE: unknown */
};

struct history_op {
	uint64_t called, returned;
	uint64_t argument, result;
	uint32_t thread;
	uint16_t kind;
	uint16_t parts; /* their number, from history.part[part] on */
	uint32_t part;
};

/* All operations, in the order of their calls if it comes from a recorder. */
struct history {
	struct history_op *op;
	size_t count, room;
	struct history_part *part;
	size_t part_count, part_room;
	/*
	 * 1: operations were removed, so a version without a publisher is no fault (set by
	 * history_shrink)
	 */
	int partial;
	/*
	 * For the general checker: the order of the operations, if their times mean nothing. NULL: the
	 * times give the order. The operations that precede operation i are those whose bits are set
	 * from before[i * words] on, with words = (count + 63) / 64. The caller owns the array, and a
	 * copy of the history has none.
	 */
	const uint64_t *before;
};

void history_init(struct history *history);
void history_fini(struct history *history);
/*
 * Returns 0 when there is no memory, or when there are more than 2^31 - 1 operations or parts.
 * parts[] is copied; op->part is unused.
 */
int history_add(struct history *history, const struct history_op *op, const struct history_part parts[]);
/* Sorts by call, then by return. Earlier indices of operations become invalid. */
void history_sort(struct history *history);

/* -- recording -- */

/*
 * The log of one thread, which only that thread writes. For each operation it calls these functions
 * in turn: call, the operation itself, return.
 */
struct history_log {
	struct history_op *op;
	size_t count, room;
	struct history_part *part;
	size_t part_count, part_room;
	uint32_t thread;
	enum history_clock clock;
	_Atomic(uint64_t) *counter;
	/* operations that found the log full; a history with lost operations cannot be judged */
	uint64_t lost;
};

struct history_recorder;

/*
 * Creates `threads` logs with room for this many operations and parts each. Their memory is touched
 * now, so that recording never faults. HISTORY_CLOCK_BEST chooses by history_clock_best(). Returns
 * NULL when there is no memory.
 */
struct history_recorder *history_recorder_create(unsigned threads, size_t operations, size_t parts,
                                                 enum history_clock clock);
void history_recorder_destroy(struct history_recorder *recorder);
struct history_log *history_recorder_log(struct history_recorder *recorder, unsigned thread);
/* Empties all logs. No thread may be recording. */
void history_recorder_reset(struct history_recorder *recorder);

/*
 * Adds the recorded operations to `out`, sorted. No thread may be recording. Returns 0 when there
 * is no memory, or operations were lost.
 */
int history_recorder_collect(const struct history_recorder *recorder, struct history *out);

/* To be called immediately before the operation: returns the time of its call. */
static inline uint64_t history_call(const struct history_log *log)
{
	return history_clock_before(log->clock, log->counter);
}

/*
 * To be called immediately after the operation: returns the time of its return. If the operation
 * takes effect by a plain store (not a read-modify-write), use history_return_drained(). Otherwise
 * the store may still be in the store buffer when the time is taken, and a correct structure looks
 * wrong.
 */
static inline uint64_t history_return(const struct history_log *log)
{
	return history_clock_after(log->clock, log->counter);
}

static inline uint64_t history_return_drained(const struct history_log *log)
{
	history_clock_drain();
	return history_clock_after(log->clock, log->counter);
}

/* Records the operation. */
static inline void history_note(struct history_log *log, enum history_kind kind, uint64_t argument, uint64_t result,
                                uint64_t called, uint64_t returned)
{
	if (log->count == log->room) {
		log->lost++;
		return;
	}
	log->op[log->count++] = (struct history_op){called, returned, argument, result, log->thread, (uint16_t)kind, 0, 0};
}

/* The same for operations on variables; `stamp` is the stamp of the operation if it has one. */
void history_note_parts(struct history_log *log, enum history_kind kind, const struct history_part parts[],
                        size_t count, uint64_t stamp, uint64_t called, uint64_t returned);

/* -- verdicts -- */

enum history_verdict {
	HISTORY_HOLDS = 0,     /* no violation; each checker says whether this means linearizable */
	HISTORY_VIOLATED = 1,  /* not linearizable; this verdict is always correct */
	HISTORY_UNDECIDED = 2, /* no memory, or the budget of the general checker is exhausted */
	/* not a history: a return before its call, an unknown kind, an operation without an end */
	HISTORY_MALFORMED = 3
};

enum { HISTORY_WITNESSES = 16 };

/* What is wrong. Set by a checker whose verdict is not HISTORY_HOLDS. */
struct history_finding {
	const char *pattern; /* one of few fixed words, for programs */
	char what[256];      /* a sentence for the user */
	size_t witness[HISTORY_WITNESSES];
	/* indices in history.op of the operations that cannot be explained together */
	size_t witnesses;
	uint64_t object; /* from history_check_each: the object of these operations */
};

/* -- fast checkers -- */

struct history_bounds {
	uint64_t capacity; /* 0: no bound */
	/* multiset: a take leaves at least this many, or else returns "empty" (min_after_dequeue) */
	uint64_t stays;
};

/*
 * For histories without HISTORY_PUT_FULL of a queue without capacity, HISTORY_HOLDS means
 * linearizable. For other histories a reported violation is always correct, but a rare kind of
 * violation is missed: a violation that only the bounds of several operations together show. The
 * general checker finds it. Patterns: "put twice", "taken twice", "never put", "taken early",
 * "order", "empty", "full", "capacity".
 */
enum history_verdict history_check_fifo(const struct history *history, const struct history_bounds *bounds,
                                        struct history_finding *finding);

/*
 * HISTORY_HOLDS means linearizable if stays is 0 and there is no HISTORY_PUT_FULL; otherwise as
 * above. Patterns: as above without "order", and "stays".
 */
enum history_verdict history_check_multiset(const struct history *history, const struct history_bounds *bounds,
                                            struct history_finding *finding);

enum history_equals { HISTORY_EQUALS_ANY, HISTORY_EQUALS_FIFO };

/*
 * The smallest key leaves first. Of values with equal keys any one leaves first
 * (HISTORY_EQUALS_ANY), or the oldest (HISTORY_EQUALS_FIFO). HISTORY_HOLDS means linearizable if
 * there is neither a capacity nor a HISTORY_PUT_FULL, and if keys differ or equal keys may leave in
 * any order. Patterns: as above, and "urgent".
 */
enum history_verdict history_check_priority(const struct history *history, const struct history_bounds *bounds,
                                            enum history_equals equals, struct history_finding *finding);

/*
 * For variables whose versions are numbered without gaps from `initial` on. Every operation has one
 * part. Variables are independent, so each is judged alone. HISTORY_HOLDS means linearizable.
 * Patterns: "version twice", "version missing", "value", "not based", "order", "abort".
 */
enum history_verdict history_check_register(const struct history *history, uint64_t initial,
                                            struct history_finding *finding);

/*
 * The same for operations with any number of parts. Each operation must take effect at one instant
 * for all its parts (strict serializability). HISTORY_HOLDS means linearizable. order[] (may be
 * NULL; room for history->count) receives the operations in an order that explains all of them.
 * Patterns as above. The witnesses of "order" are a cycle of operations, each of which must come
 * after the next one.
 */
enum history_verdict history_check_serial(const struct history *history, uint64_t initial, uint32_t order[],
                                          struct history_finding *finding);

/*
 * The same if op.result of each operation is its stamp: a write of stamp s takes effect at s, and a
 * read of stamp s sees every write up to s. This is stricter than history_check_serial(): the
 * stamps themselves must be an explanation. HISTORY_ABORTED is ignored.
 */
enum history_verdict history_check_stamps(const struct history *history, uint64_t initial,
                                          struct history_finding *finding);

/* -- the general checker -- */

/* A sequential structure. Its state is a block of bytes; equal states must be equal bytes. */
struct history_model {
	size_t (*state_size)(const struct history *history, const void *context);
	void (*start)(const struct history *history, const void *context, void *state);
	/*
	 * Returns 1 if the operation may come next with its result; *state then becomes the state after
	 * it. Returns 0 if it may not.
	 */
	int (*step)(const struct history *history, const struct history_op *op, const void *context, void *state);
};

/*
 * Wing and Gong's search (1993) with Lowe's memory of what was tried (2017). The verdict is exact,
 * unless it is HISTORY_UNDECIDED: the search then met more than `budget` pairs of a set of
 * operations and a state. Pattern: "none fits". order[] as above.
 */
enum history_verdict history_check_general(const struct history *history, const struct history_model *model,
                                           const void *context, size_t budget, uint32_t order[],
                                           struct history_finding *finding);

/*
 * Judges the operations of each object alone, by the parts that name it. Operations without parts
 * belong to all objects. HISTORY_HOLDS means linearizable if the model of one object does not
 * depend on other objects, and each operation touches one object. HISTORY_VIOLATED is always
 * correct if the model permits everything that another object may explain. The budget is per
 * object. Pattern: "object".
 */
enum history_verdict history_check_each(const struct history *history, const struct history_model *model,
                                        const void *context, size_t budget, struct history_finding *finding);

/*
 * Copies the operations that history_check_each() judges for that object. The call initializes
 * `out`; end it with history_fini(). Returns 0 when there is no memory.
 */
int history_project(const struct history *history, uint64_t object, struct history *out);

/*
 * Models of the structures that the fast checkers know, and of closing. Their contexts are struct
 * history_bounds, the same, struct history_priority, and uint64_t initial. A put that was called
 * before a close returned may take effect after the close, unless a take returned
 * HISTORY_TAKE_ENDED: a close concerns later puts, as in Weir.
 */
struct history_priority {
	struct history_bounds bounds;
	enum history_equals equals;
};
extern const struct history_model history_model_fifo, history_model_multiset, history_model_priority,
	history_model_variables;
/* For models: returns 1 if `one` had returned when `other` was called, by times or by `before`. */
int history_came_before(const struct history *history, size_t one, size_t other);

/* -- minimizing and printing a failure -- */

/* Returns 1 if `history` still fails. */
typedef int history_fails_fn(const struct history *history, void *context);

/* Operations of one unit are removed together. Those of HISTORY_STAYS are never removed. */
enum { HISTORY_STAYS = 0 };

/*
 * Sets units whose removal makes no linearizable history fail by the pattern of `finding`. A
 * smaller history that fails by this pattern is therefore a part of the original failure. (fails()
 * must compare the pattern.) The put and the take of a value are one unit, and any other operation
 * is a unit. If the finding says that too few values were stored ("full", "stays", or a search with
 * such results), values stay.
 */
void history_units_of_values(const struct history *history, const struct history_bounds *bounds,
                             const struct history_finding *finding, uint32_t unit[]);

/*
 * The same for variables. Each operation is one unit; this is sound because the reduced history is
 * marked partial.
 */
void history_units_of_versions(const struct history *history, uint32_t unit[]);

/*
 * Delta debugging (Zeller and Hildebrandt, TSE 2002) on units: finds a history that fails, but no
 * longer fails if any one unit is removed. The call initializes `out`. Returns 0 when there is no
 * memory, or `history` does not fail.
 */
int history_shrink(const struct history *history, const uint32_t unit[], history_fails_fn *fails, void *context,
                   struct history *out);

/* Writes the arguments of the operation (returned is 0) or its result (returned is 1). */
typedef void history_describe_fn(const struct history *history, const struct history_op *op, int returned, char *text,
                                 size_t size);
/* Describes the kinds above. */
void history_describe(const struct history *history, const struct history_op *op, int returned, char *text,
                      size_t size);
enum { HISTORY_MOST_PRINTED = 1000 };

/*
 * Prints a column per thread and a line per call or return, in order of time. Marks the witnesses
 * of `finding` (may be NULL) with a star. If `describe` is NULL, it uses history_describe(). Prints
 * at most HISTORY_MOST_PRINTED operations.
 */
void history_print(FILE *file, const struct history *history, const struct history_finding *finding,
                   history_describe_fn *describe);

#endif
