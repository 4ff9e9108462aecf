/*
 * history.h - what threads did to a structure and when: recorded, then checked for linearizability.
 *
 * Use it to check a structure of your own: record what each thread calls and gets, join the threads, and ask whether
 * some order of the operations explains all results, keeps each operation between its call and its return, and is one
 * that a single thread could have made (Herlihy and Wing, TOPLAS 1990). It needs nothing of Weir, so it may be copied.
 * A worked example and what a verdict does and does not mean: docs/checking.md.
 *
 * | part                        | for                                          | operations  | time                  |
 * |-----------------------------|----------------------------------------------|-------------|-----------------------|
 * | history_recorder_*          | recording                                    | any number  | constant per operation |
 * | history_check_fifo          | queues, bounded or not                       | millions    | O(n log n)            |
 * | history_check_multiset      | pools, shuffle queues                        | millions    | O(n log n)            |
 * | history_check_priority      | priority queues                              | millions    | O(n log n)            |
 * | history_check_register      | variables, one per operation, with versions  | millions    | O(n log n)            |
 * | history_check_serial        | snapshots, transactions, with versions       | millions    | O(n log n), n parts   |
 * | history_check_stamps        | the same when operations tell their stamps   | millions    | O(n log n), n parts   |
 * | history_check_general       | anything that a model can be written for     | tens        | exponential at worst  |
 * | history_check_each          | the same, many objects apart from each other | tens a piece | n log n, and those   |
 *
 * The checkers are for one thread at a time; none keeps state between calls. Fast checkers want every operation to have
 * returned. Times are compared as "returned strictly before the other was called"; a tie means overlap, so a coarse
 * clock can hide a violation but never make one.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "history/clock.h"

/* -- histories ------------------------------------------------------------------------------------------------------------- */

enum history_kind {
	/* Collections. Values are unique: each goes in at most once. */
	HISTORY_PUT = 1,    /* argument went in; result is its key in a priority queue (int64_t) */
	HISTORY_PUT_FULL,   /* nothing went in, there was no room */
	HISTORY_TAKE,       /* result came out */
	HISTORY_TAKE_EMPTY, /* nothing came out, there was nothing (that may leave) */
	/* Variables: the parts tell what was read and published. */
	HISTORY_READ,
	HISTORY_WRITE,   /* with or without reading; all parts at one instant */
	HISTORY_ABORTED, /* nothing was published as some part was beyond version `before` */
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
	HISTORY_CLOSE,       /* argument 0: what is inside is to come out; HISTORY_CANCELS: it is gone */
	HISTORY_PUT_CLOSED,  /* argument did not go in, it is closed */
	HISTORY_TAKE_ENDED,  /* nothing came out, and nothing ever will */
	HISTORY_LOOK_CLOSED, /* result: whether it is closed */
	HISTORY_TAKE_BELOW,  /* by priority: nothing with a key below argument was there (int64_t) */
	HISTORY_CLEAR,       /* all that was inside is gone */
	HISTORY_PEEK,        /* result stays and is the next to leave; by priority result is its key */
	/* From here on yours; the general checker passes them to your model. */
	HISTORY_USER = 32
};

#define HISTORY_NONE UINT64_MAX
enum { HISTORY_CANCELS = 1 };

/* What an operation did to one variable. */
struct history_part {
	uint64_t object;
	uint64_t before; /* the version it read or was based on; HISTORY_NONE: it did not look */
	uint64_t after;  /* the version it published; HISTORY_NONE: none */
	uint64_t value;  /* what it published, else what it read; HISTORY_NONE: unknown */
};

struct history_op {
	uint64_t called, returned;
	uint64_t argument, result;
	uint32_t thread;
	uint16_t kind;
	uint16_t parts; /* how many, from history.part[part] on */
	uint32_t part;
};

/* All operations, in the order of their calls when it comes from a recorder. */
struct history {
	struct history_op *op;
	size_t count, room;
	struct history_part *part;
	size_t part_count, part_room;
	int partial; /* operations were left out: a version that nobody published is no fault (history_shrink sets it) */
	/*
	 * For the general checker, where times say nothing (NULL: they do). What came before operation i are those whose bits are
	 * set from before[i * words] on, words = (count + 63) / 64. It is the caller's, and a copy of the history has none.
	 */
	const uint64_t *before;
};

void history_init(struct history *history);
void history_fini(struct history *history);
/* 0: no memory (or more than 2^31 - 1 operations or parts). parts[] is copied; op->part is ignored. */
int history_add(struct history *history, const struct history_op *op, const struct history_part parts[]);
/* By call, then by return. Earlier places of operations are void. */
void history_sort(struct history *history);

/* -- recording ------------------------------------------------------------------------------------------------------------- */

/* One thread's log; written by its thread only. Call, do, return: */
struct history_log {
	struct history_op *op;
	size_t count, room;
	struct history_part *part;
	size_t part_count, part_room;
	uint32_t thread;
	enum history_clock clock;
	_Atomic(uint64_t) *counter;
	uint64_t lost; /* operations that found the log full; a history with lost operations cannot be judged */
};

struct history_recorder;

/*
 * `threads` logs with room for so many operations and parts each; their memory is touched now, so that recording never
 * faults. NULL: no memory. HISTORY_CLOCK_BEST chooses by history_clock_best().
 */
struct history_recorder *history_recorder_create(unsigned threads, size_t operations, size_t parts,
                                                 enum history_clock clock);
void history_recorder_destroy(struct history_recorder *recorder);
struct history_log *history_recorder_log(struct history_recorder *recorder, unsigned thread);
/* Empties all logs. No thread may be recording. */
void history_recorder_reset(struct history_recorder *recorder);
/* Adds what was recorded to `out`, sorted; 0: no memory, or operations were lost. No thread may be recording. */
int history_recorder_collect(const struct history_recorder *recorder, struct history *out);

/* Immediately before the operation: the time of its call. */
static inline uint64_t history_call(const struct history_log *log)
{
	return history_clock_before(log->clock, log->counter);
}

/*
 * Immediately after the operation: the time of its return. Where the effect of an operation may be a plain store (not a
 * read-modify-write), use history_return_drained, or the store may still be on its way to the others when the time is
 * taken: then a correct structure looks wrong.
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

/* Writes the operation down. */
static inline void history_note(struct history_log *log, enum history_kind kind, uint64_t argument, uint64_t result,
                                uint64_t called, uint64_t returned)
{
	if (log->count == log->room) {
		log->lost++;
		return;
	}
	log->op[log->count++] = (struct history_op){called, returned, argument, result, log->thread, (uint16_t)kind, 0, 0};
}

/* The same for operations on variables; `stamp` is the operation's stamp if there is one. */
void history_note_parts(struct history_log *log, enum history_kind kind, const struct history_part parts[],
                        size_t count, uint64_t stamp, uint64_t called, uint64_t returned);

/* -- verdicts -------------------------------------------------------------------------------------------------------------- */

enum history_verdict {
	HISTORY_HOLDS = 0,     /* no violation; whether that means linearizable is said at each checker */
	HISTORY_VIOLATED = 1,  /* not linearizable, always right */
	HISTORY_UNDECIDED = 2, /* no memory, or the general checker's budget is used up */
	HISTORY_MALFORMED = 3  /* not a history: a return before its call, an unknown kind, an operation without an end */
};

enum { HISTORY_WITNESSES = 16 };

/* What is wrong. Set by a checker whose verdict is not HISTORY_HOLDS. */
struct history_finding {
	const char *pattern; /* one of few fixed words, for programs */
	char what[256];      /* a sentence, for people */
	size_t witness[HISTORY_WITNESSES];
	size_t witnesses; /* places in history.op of the operations that cannot be explained together */
	uint64_t object;  /* of history_check_each: whose operations they are */
};

/* -- fast checkers --------------------------------------------------------------------------------------------------------- */

struct history_bounds {
	uint64_t capacity; /* 0: no bound */
	uint64_t stays;    /* multiset: a take leaves so many behind, else it answers "empty" (min_after_dequeue) */
};

/*
 * HISTORY_HOLDS means linearizable for histories without HISTORY_PUT_FULL on a queue without capacity. With them, what
 * is wrong is certainly wrong, but a rare violation that needs several operations' bounds at once passes; the general
 * checker finds it. Patterns: "put twice", "taken twice", "never put", "taken early", "order", "empty", "full",
 * "capacity".
 */
enum history_verdict history_check_fifo(const struct history *history, const struct history_bounds *bounds,
                                        struct history_finding *finding);
/*
 * HISTORY_HOLDS means linearizable when stays is 0 and there is no HISTORY_PUT_FULL; otherwise as above. Patterns: as
 * above without "order", and "stays".
 */
enum history_verdict history_check_multiset(const struct history *history, const struct history_bounds *bounds,
                                            struct history_finding *finding);

enum history_equals { HISTORY_EQUALS_ANY, HISTORY_EQUALS_FIFO };
/*
 * The smallest key comes out first; among equal keys any, or the one that went in first. HISTORY_HOLDS means
 * linearizable without a capacity and HISTORY_PUT_FULL, when keys differ or equals may come in any order. Patterns: as
 * above, and "urgent".
 */
enum history_verdict history_check_priority(const struct history *history, const struct history_bounds *bounds,
                                            enum history_equals equals, struct history_finding *finding);

/*
 * Variables whose versions are numbered without gaps from `initial` on. Every operation has one part; variables are
 * independent, so each is judged alone. HISTORY_HOLDS means linearizable.
 * Patterns: "version twice", "version missing", "value", "not based", "order", "abort".
 */
enum history_verdict history_check_register(const struct history *history, uint64_t initial,
                                            struct history_finding *finding);
/*
 * The same for operations with any number of parts, each taking effect at one instant for all its parts: strict
 * serializability. HISTORY_HOLDS means linearizable. order[] (may be NULL; room for history->count) gets the operations
 * in an order that explains all. Patterns as above; the witnesses of "order" are a cycle of operations each of which
 * must come after the next.
 */
enum history_verdict history_check_serial(const struct history *history, uint64_t initial, uint32_t order[],
                                          struct history_finding *finding);
/*
 * The same when op.result of each operation is its stamp: a write of stamp s takes effect at s, a read of stamp s sees
 * every write up to s. Stricter than history_check_serial: the stamps themselves must be an explanation.
 * HISTORY_ABORTED is not looked at.
 */
enum history_verdict history_check_stamps(const struct history *history, uint64_t initial,
                                          struct history_finding *finding);

/* -- the general checker --------------------------------------------------------------------------------------------------- */

/* A sequential structure. Its state is a block of bytes; equal states must be equal bytes. */
struct history_model {
	size_t (*state_size)(const struct history *history, const void *context);
	void (*start)(const struct history *history, const void *context, void *state);
	/* 1: the operation may come now with the result that it had, and *state is what follows. 0: it may not. */
	int (*step)(const struct history *history, const struct history_op *op, const void *context, void *state);
};

/*
 * Wing and Gong's search (1993) with Lowe's memory of what was tried (2017). Exact, whatever the verdict, unless it is
 * HISTORY_UNDECIDED: more than `budget` pairs of a set of operations and a state were met. Pattern: "none fits".
 * order[] as above.
 */
enum history_verdict history_check_general(const struct history *history, const struct history_model *model,
                                           const void *context, size_t budget, uint32_t order[],
                                           struct history_finding *finding);

/*
 * Judges the operations of each object alone, by their parts that name it. Operations without parts belong to all. HISTORY_HOLDS means
 * linearizable if what the model says of one object depends on no other and each operation touches one. HISTORY_VIOLATED is always right,
 * if the model lets pass what another object may explain. The budget is each object's. Pattern: "object".
 */
enum history_verdict history_check_each(const struct history *history, const struct history_model *model,
                                        const void *context, size_t budget, struct history_finding *finding);
/* What history_check_each() judges of that object. `out` is initialized by the call, for history_fini(). 0: no memory. */
int history_project(const struct history *history, uint64_t object, struct history *out);

/*
 * Models of what the fast checkers know, and of closing. Contexts: struct history_bounds; the same; struct
 * history_priority; uint64_t initial. A put that was called before a close returned may go in behind it, unless a take
 * was told that nothing will come: closing is an order to later puts, as weir's closes are.
 */
struct history_priority {
	struct history_bounds bounds;
	enum history_equals equals;
};
extern const struct history_model history_model_fifo, history_model_multiset, history_model_priority,
	history_model_variables;
/* For models: `one` had returned when `other` was called, by times or by `before`. */
int history_came_before(const struct history *history, size_t one, size_t other);

/* -- looking at a failure -------------------------------------------------------------------------------------------------- */

/* 1: `history` still fails. */
typedef int history_fails_fn(const struct history *history, void *context);

/* Operations of one unit leave together; HISTORY_STAYS never leaves. */
enum { HISTORY_STAYS = 0 };
/*
 * Units such that what is left of a linearizable history does not fail by the pattern of `finding`; so a smaller
 * history that fails by it is a part of the first failure, and not made by leaving things out. (fails() must compare
 * the pattern.) A value's put and take are one unit, any other operation is one. Where a finding says that too few were
 * inside ("full", "stays", or a search that had such answers), values stay.
 */
void history_units_of_values(const struct history *history, const struct history_bounds *bounds,
                             const struct history_finding *finding, uint32_t unit[]);
/* The same for variables: each operation is one, as what is left is marked partial. */
void history_units_of_versions(const struct history *history, uint32_t unit[]);
/*
 * Delta debugging (Zeller and Hildebrandt, TSE 2002) on units: a history that fails and of which no unit, left out
 * alone, leaves a failure. `out` is initialized by the call. 0: no memory, or `history` does not fail.
 */
int history_shrink(const struct history *history, const uint32_t unit[], history_fails_fn *fails, void *context,
                   struct history *out);

/* What the operation was called with (returned 0) or answered (1). */
typedef void history_describe_fn(const struct history *history, const struct history_op *op, int returned, char *text,
                                 size_t size);
/* Knows the kinds above. */
void history_describe(const struct history *history, const struct history_op *op, int returned, char *text,
                      size_t size);
enum { HISTORY_MOST_PRINTED = 1000 };
/*
 * A column per thread, a line per call or return, in time order; marks the witnesses of `finding` (may be NULL) with a
 * star. describe NULL: history_describe. No more than HISTORY_MOST_PRINTED operations are printed.
 */
void history_print(FILE *file, const struct history *history, const struct history_finding *finding,
                   history_describe_fn *describe);

#endif
