/*
 * print.c - a history as a table: a column per thread, a line per call or return.
 */
#include "history/keyed.h"
#include "history/order.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 8, CELL = 160 };

/* -- words ------------------------------------------------------------------------------------- */

static void append(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text + used, size - used, format, arguments);
	va_end(arguments);
}

static void describe_part(const struct history_part *part, char *text, size_t size)
{
	append(text, size, " %" PRIu64 ":", part->object);
	if (part->before != HISTORY_NONE)
		append(text, size, "v%" PRIu64, part->before);
	if (part->after != HISTORY_NONE)
		append(text, size, ">v%" PRIu64, part->after);
}

static void describe_parts(const struct history *history, const struct history_op *op, const char *verb, char *text,
                           size_t size)
{
	append(text, size, "%s", verb);
	for (uint32_t i = 0; i < op->parts; i++)
		describe_part(&history->part[op->part + i], text, size);
}

/* For structures with keys, from HISTORY_MAP_PUT on. */
static const char *const keyed_verbs[] = {"put",  "get",   "get any", "peek", "clear", "look",   "insert",
                                          "take", "close", "look",    "add",  "find",  "create", "remove"};

static int is_keyed(const struct history_op *op)
{
	return op->kind >= HISTORY_MAP_PUT && op->kind <= HISTORY_NAME_REMOVE;
}

/*
 * Writes parts such as "7.1=400005": component 1 of key 7. Values that are put appear at the call,
 * and values that are taken at the return.
 */
static void describe_keys(const struct history *history, const struct history_op *op, int returned, char *text,
                          size_t size)
{
	int goes_in = op->kind == HISTORY_MAP_PUT || op->kind == HISTORY_JOIN_INSERT || op->kind == HISTORY_NAME_ADD;

	for (uint32_t i = 0; i < op->parts; i++) {
		const struct history_part *part = &history->part[op->part + i];

		append(text, size, " %" PRIu64 ".%" PRIu64, part->object, part->before);
		if (part->value != HISTORY_NONE && goes_in != returned)
			append(text, size, "=%" PRIu64, part->value);
	}
}

static void describe_keyed(const struct history *history, const struct history_op *op, int returned, char *text,
                           size_t size)
{
	static const char *const answers[] = {"ok", "not now", "refused", "closed"};
	int names_what_came = op->kind == HISTORY_JOIN_TAKE || op->kind == HISTORY_MAP_GET_ANY;

	append(text, size, "%s", returned ? answers[op->result] : keyed_verbs[op->kind - HISTORY_MAP_PUT]);
	if (!returned && op->argument != HISTORY_NONE)
		append(text, size, " %#" PRIx64, op->argument);
	if (returned ? op->result == HISTORY_DONE : !names_what_came)
		describe_keys(history, op, returned, text, size);
}

static void describe_call(const struct history *history, const struct history_op *op, char *text, size_t size)
{
	switch (op->kind) {
	case HISTORY_PUT:
	case HISTORY_PUT_FULL: append(text, size, "put %" PRIu64, op->argument); break;
	case HISTORY_TAKE:
	case HISTORY_TAKE_EMPTY: append(text, size, "take"); break;
	case HISTORY_READ: append(text, size, op->parts == 1 ? "read" : "snapshot"); break;
	case HISTORY_WRITE: append(text, size, "write"); break;
	case HISTORY_ABORTED: describe_parts(history, op, "write on", text, size); break;
	case HISTORY_PUT_CLOSED: append(text, size, "put %" PRIu64, op->argument); break;
	case HISTORY_CLOSE: append(text, size, op->argument == HISTORY_CANCELS ? "close, cancel" : "close"); break;
	case HISTORY_CLEAR: append(text, size, "clear"); break;
	case HISTORY_TAKE_ENDED: append(text, size, "take"); break;
	case HISTORY_LOOK_CLOSED: append(text, size, "closed?"); break;
	case HISTORY_TAKE_BELOW: append(text, size, "take below %" PRId64, (int64_t)op->argument); break;
	case HISTORY_PEEK: append(text, size, "peek"); break;
	default: append(text, size, "%u %" PRIu64, (unsigned)op->kind, op->argument); break;
	}
}

static void describe_return(const struct history *history, const struct history_op *op, char *text, size_t size)
{
	switch (op->kind) {
	case HISTORY_PUT: append(text, size, "ok"); break;
	case HISTORY_PUT_FULL: append(text, size, "full"); break;
	case HISTORY_TAKE_EMPTY: append(text, size, "empty"); break;
	case HISTORY_READ:
	case HISTORY_WRITE: describe_parts(history, op, "", text, size); break;
	case HISTORY_ABORTED: append(text, size, "aborted"); break;
	case HISTORY_CLEAR:
	case HISTORY_CLOSE: append(text, size, "ok"); break;
	case HISTORY_PUT_CLOSED: append(text, size, "closed"); break;
	case HISTORY_TAKE_ENDED: append(text, size, "ended"); break;
	case HISTORY_LOOK_CLOSED: append(text, size, op->result != 0 ? "yes" : "no"); break;
	case HISTORY_TAKE_BELOW: append(text, size, "none"); break;
	default: append(text, size, "%" PRIu64, op->result); break;
	}
}

void history_describe(const struct history *history, const struct history_op *op, int returned, char *text, size_t size)
{
	text[0] = '\0';
	if (is_keyed(op))
		describe_keyed(history, op, returned, text, size);
	else if (returned)
		describe_return(history, op, text, size);
	else
		describe_call(history, op, text, size);
}

/* -- the table --------------------------------------------------------------------------------- */

/* The threads in the order of their numbers. Threads beyond the last column share it. */
struct columns {
	uint32_t thread[MOST_COLUMNS];
	unsigned count;
	unsigned width;
	uint32_t under_way[MOST_COLUMNS]; /* operations under way */
};

static unsigned column_of(const struct columns *columns, uint32_t thread)
{
	unsigned i = 0;

	while (i + 1 < columns->count && columns->thread[i] != thread)
		i++;
	return i;
}

static void add_column(struct columns *columns, uint32_t thread)
{
	unsigned place = 0;

	while (place < columns->count && columns->thread[place] < thread)
		place++;
	if ((place < columns->count && columns->thread[place] == thread) || columns->count == MOST_COLUMNS)
		return;
	memmove(&columns->thread[place + 1], &columns->thread[place], (columns->count - place) * sizeof(thread));
	columns->thread[place] = thread;
	columns->count++;
}

static int is_witness(const struct history_finding *finding, uint32_t op)
{
	for (size_t i = 0; finding != NULL && i < finding->witnesses; i++) {
		if (finding->witness[i] == op)
			return 1;
	}
	return 0;
}

/* Writes "[ take" at a call, "] 5" at a return, with "*" before it for a witness. */
static void write_event(const struct history *history, const struct history_finding *finding,
                        history_describe_fn *describe, uint32_t event, char cell[CELL])
{
	char words[CELL - 8];

	describe(history, &history->op[event / 2], (int)(event & 1), words, sizeof(words));
	(void)snprintf(cell, CELL, "%c%c %s", is_witness(finding, event / 2) ? '*' : ' ', (event & 1) != 0 ? ']' : '[',
	               words);
}

static void set_up_columns(struct columns *columns, const struct history *history, size_t count,
                           history_describe_fn *describe)
{
	memset(columns, 0, sizeof(*columns));
	columns->width = 12;
	for (uint32_t i = 0; i < count; i++) {
		add_column(columns, history->op[i].thread);
		for (uint32_t event = 2 * i; event <= 2 * i + 1; event++) {
			char cell[CELL];
			unsigned width;

			write_event(history, NULL, describe, event, cell);
			width = (unsigned)strlen(cell) + 2;
			columns->width = width > columns->width ? width : columns->width;
		}
	}
}

static void print_line(FILE *file, struct columns *columns, const struct history *history, uint32_t event,
                       const char *cell)
{
	unsigned at = column_of(columns, history->op[event / 2].thread), last = at;

	for (unsigned i = 0; i < columns->count; i++) {
		if (columns->under_way[i] != 0 && i > last)
			last = i;
	}
	for (unsigned i = 0; i <= last; i++) {
		const char *text = i == at ? cell : columns->under_way[i] != 0 ? " |" : "";

		(void)fprintf(file, "%-*s", i < last ? (int)columns->width : 0, text);
	}
	(void)fprintf(file, "\n");
	columns->under_way[at] += (event & 1) == 0;
	columns->under_way[at] -= (event & 1);
}

void history_print(FILE *file, const struct history *history, const struct history_finding *finding,
                   history_describe_fn *describe)
{
	size_t count = history->count < HISTORY_MOST_PRINTED ? history->count : HISTORY_MOST_PRINTED;
	struct history shown = *history;
	struct history_finding unused;
	struct history_order order;
	struct columns columns;

	if (describe == NULL)
		describe = history_describe;
	shown.count = count;
	if (history_order_init(&order, &shown, &unused) == HISTORY_HOLDS && count != 0) {
		uint64_t start = shown.op[order.event[0] / 2].called;

		set_up_columns(&columns, &shown, count, describe);
		(void)fprintf(file, "%12s  ", "time");
		for (unsigned i = 0; i < columns.count; i++)
			(void)fprintf(file, "thread %-*" PRIu32, i + 1 < columns.count ? (int)columns.width - 7 : 0,
			              columns.thread[i]);
		(void)fprintf(file, "\n");
		for (uint32_t e = 0; e < order.events; e++) {
			uint32_t event = order.event[e];
			const struct history_op *op = &shown.op[event / 2];
			char cell[CELL];

			write_event(&shown, finding, describe, event, cell);
			(void)fprintf(file, "%12" PRIu64 "  ", ((event & 1) != 0 ? op->returned : op->called) - start);
			print_line(file, &columns, &shown, event, cell);
		}
	}
	history_order_fini(&order);
	if (count < history->count)
		(void)fprintf(file, "and %zu more\n", history->count - count);
}
