/*
 * each.c - histories of many objects, each judged alone.
 *
 * Linearizability is local (Herlihy and Wing, 1990): a history is linearizable exactly if for each
 * object the operations on it are linearizable. If objects are independent, one search per object
 * can therefore replace one search over all objects, and a history that is too long for one search
 * may be short for each object. If operations touch several objects, the part that concerns one
 * object must still be linearizable by itself.
 */
#include "history/order.h"

#include <inttypes.h>
#include <stdlib.h>

/* The operation touches the object. */
struct touch {
	uint64_t object;
	uint32_t op;
};

static int by_object(const void *left, const void *right)
{
	const struct touch *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return (a->op > b->op) - (a->op < b->op);
}

struct touches {
	struct touch *touch; /* sorted */
	size_t count;
	uint32_t *everywhere; /* operations without a part */
	size_t everywhere_count;
};

static int touches_init(struct touches *touches, const struct history *history)
{
	*touches = (struct touches){.touch = calloc(history->part_count + 1, sizeof(*touches->touch)),
	                            .everywhere = calloc(history->count + 1, sizeof(*touches->everywhere))};
	if (touches->touch == NULL || touches->everywhere == NULL)
		return 0;
	for (uint32_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];

		if (op->parts == 0)
			touches->everywhere[touches->everywhere_count++] = i;
		for (uint32_t k = 0; k < op->parts; k++)
			touches->touch[touches->count++] = (struct touch){history->part[op->part + k].object, i};
	}
	if (touches->count > 1)
		qsort(touches->touch, touches->count, sizeof(*touches->touch), by_object);
	return 1;
}

static void touches_fini(struct touches *touches)
{
	free(touches->touch);
	free(touches->everywhere);
}

/* Adds the operation with only its parts of that object. */
static int add_projected(const struct history *history, uint32_t i, uint64_t object, struct history *out)
{
	struct history_op op = history->op[i];
	const struct history_part *parts = &history->part[op.part];
	uint32_t count = op.parts;

	op.parts = 0;
	if (!history_add(out, &op, NULL))
		return 0;
	for (uint32_t k = 0; k < count; k++) {
		if (parts[k].object == object && !history_add_part(out, &parts[k]))
			return 0;
	}
	return 1;
}

int history_project(const struct history *history, uint64_t object, struct history *out)
{
	history_init(out);
	for (uint32_t i = 0; i < history->count; i++) {
		const struct history_op *op = &history->op[i];
		int touches = op->parts == 0;

		for (uint32_t k = 0; k < op->parts; k++)
			touches |= history->part[op->part + k].object == object;
		if (touches && !add_projected(history, i, object, out))
			return 0;
	}
	return 1;
}

/*
 * Gathers the operations of touch[from .. to - 1], which belong to one object, and the operations
 * that belong to all objects, in the order of the history.
 */
static int gather(const struct history *history, const struct touches *touches, size_t from, size_t to,
                  struct history *out)
{
	const uint64_t object = touches->touch[from].object;
	size_t next = 0;
	int fine = 1;

	history_init(out);
	for (size_t i = from; fine && i < to; i++) {
		uint32_t op = touches->touch[i].op;

		for (; fine && next < touches->everywhere_count && touches->everywhere[next] < op; next++)
			fine = add_projected(history, touches->everywhere[next], object, out);
		if (fine && (i == from || touches->touch[i - 1].op != op))
			fine = add_projected(history, op, object, out);
	}
	for (; fine && next < touches->everywhere_count; next++)
		fine = add_projected(history, touches->everywhere[next], object, out);
	return fine;
}

/* Returns the index of the operation that has this thread, call and return. */
static size_t place_of(const struct history *history, const struct history_op *op)
{
	size_t i = 0;

	while (i + 1 < history->count && (history->op[i].thread != op->thread || history->op[i].called != op->called ||
	                                  history->op[i].returned != op->returned || history->op[i].kind != op->kind))
		i++;
	return i;
}

static enum history_verdict check_object(const struct history *history, const struct touches *touches, size_t from,
                                         size_t to, const struct history_model *model, const void *context,
                                         size_t budget, struct history_finding *finding)
{
	struct history_finding found;
	struct history alone;
	enum history_verdict verdict;

	if (!gather(history, touches, from, to, &alone)) {
		history_fini(&alone);
		return history_no_memory(finding);
	}
	verdict = history_check_general(&alone, model, context, budget, NULL, &found);
	if (verdict != HISTORY_HOLDS) {
		(void)history_violated(finding, verdict == HISTORY_VIOLATED ? "object" : found.pattern,
		                       "object %" PRIu64 ": %s", touches->touch[from].object, found.what);
		finding->object = touches->touch[from].object;
		for (size_t i = 0; i < found.witnesses; i++)
			history_witness(finding, place_of(history, &alone.op[found.witness[i]]));
	}
	history_fini(&alone);
	return verdict;
}

enum history_verdict history_check_each(const struct history *history, const struct history_model *model,
                                        const void *context, size_t budget, struct history_finding *finding)
{
	enum history_verdict worst = HISTORY_HOLDS;
	struct touches touches;

	if (!touches_init(&touches, history))
		worst = history_no_memory(finding);
	/* An undecided object does not keep other objects from being judged. */
	for (size_t from = 0, to; (worst == HISTORY_HOLDS || worst == HISTORY_UNDECIDED) && from < touches.count;
	     from = to) {
		enum history_verdict verdict;

		for (to = from + 1; to < touches.count && touches.touch[to].object == touches.touch[from].object; to++)
			;
		verdict = check_object(history, &touches, from, to, model, context, budget, finding);
		worst = verdict != HISTORY_HOLDS ? verdict : worst;
	}
	touches_fini(&touches);
	return worst;
}
