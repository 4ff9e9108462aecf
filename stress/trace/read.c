/*
 * read.c - from the bytes of a file to tables.
 *
 * The records of one thread are in order, but those of several threads are not. So all records are
 * read first, then sorted by number, and only then is found what they refer to.
 */
#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct end {
	uint64_t number; /* of an event or a frame */
	uint64_t time_ns;
	uint32_t argument, thread;
};

struct list {
	void *items;
	size_t count, room, size;
};

struct reader {
	struct trace *trace;
	size_t at; /* the record that is read */
	uint32_t thread;
	bool has_thread;
	struct list plans, frames, events, effects, values, event_ends, frame_ends, nodes;
	size_t object_count;
	uint64_t *next_seen;
	char *next_text;
	/* of the thread that is read: what a brief record refers to */
	uint64_t last_event, last_frame, last_end_ns;
	weir_error *error;
};

/* A node whose plan may come later in the file. */
struct loose_node {
	uint64_t plan;
	uint32_t index;
	size_t at;
	struct trace_node node;
};

static enum weir_status fault(struct reader *r, enum weir_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static enum weir_status fault(struct reader *r, enum weir_status status, const char *format, ...)
{
	char text[WEIR_ERROR_MESSAGE_SIZE];
	va_list arguments;

	if (r->error == NULL)
		return status;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	r->error->code = status;
	(void)snprintf(r->error->message, sizeof(r->error->message), "word %zu: %.200s", r->at, text);
	return status;
}

static void *append(struct list *list)
{
	if (list->count == list->room) {
		size_t room = list->room != 0 ? list->room * 2 : 64;
		void *more = realloc(list->items, room * list->size);

		if (more == NULL)
			return NULL;
		list->items = more;
		list->room = room;
	}
	return memset((char *)list->items + list->count++ * list->size, 0, list->size);
}

static enum weir_status no_memory(struct reader *r)
{
	return fault(r, WEIR_RESOURCE_EXHAUSTED, "no memory");
}

/* -- records ----------------------------------------------------------------------------------- */

static uint64_t word(const struct reader *r, size_t i)
{
	return r->trace->words[r->at + i];
}

static uint32_t argument(const struct reader *r)
{
	return (uint32_t)(word(r, 0) >> 32);
}

/* Reads the text at word *i of the record, which ends before word `end`. Returns NULL if it does not. */
static const char *read_text(struct reader *r, size_t *i, size_t end)
{
	char *text = r->next_text;
	uint64_t stated;
	size_t size;

	if (*i >= end)
		return NULL;
	stated = word(r, (*i)++);
	if (stated > (end - *i) * 8)
		return NULL;
	size = (size_t)stated;
	for (size_t b = 0; b < size; b++)
		text[b] = (char)(word(r, *i + b / 8) >> b % 8 * 8 & 0xff);
	text[size] = '\0';
	r->next_text += size + 1;
	*i += (size + 7) / 8;
	return text;
}

static enum weir_status read_node(struct reader *r, size_t words)
{
	uint64_t dependencies = word(r, 3), objects = word(r, 4), bodies = word(r, 5);
	size_t i = WEIRI_TRACE_NODE_WORDS;
	struct loose_node *loose;

	if (dependencies > words - i || bodies > words - i - dependencies || objects > words - i - dependencies - bodies)
		return fault(r, WEIR_DATA_LOSS, "the node is shorter than its parts");
	loose = append(&r->nodes);
	if (loose == NULL)
		return no_memory(r);
	loose->plan = word(r, 1);
	loose->index = argument(r);
	loose->at = r->at;
	loose->node.known = true;
	loose->node.flags = word(r, 2);
	loose->node.dependencies = r->trace->words + r->at + i;
	loose->node.dependency_count = (size_t)dependencies;
	loose->node.bodies = loose->node.dependencies + dependencies;
	loose->node.body_count = (size_t)bodies;
	loose->node.objects = r->trace->objects + r->object_count;
	loose->node.object_count = (size_t)objects;
	i += (size_t)(dependencies + bodies);
	for (uint64_t o = 0; o < objects; o++) {
		struct trace_object *object = &r->trace->objects[r->object_count++];

		if (i >= words)
			return fault(r, WEIR_DATA_LOSS, "object %llu of the node is missing", (unsigned long long)o);
		object->address = word(r, i++);
		object->kind = read_text(r, &i, words);
		object->name = object->kind != NULL ? read_text(r, &i, words) : NULL;
		if (object->name == NULL)
			return fault(r, WEIR_DATA_LOSS, "a text is longer than the node");
	}
	loose->node.name = read_text(r, &i, words);
	loose->node.op = loose->node.name != NULL ? read_text(r, &i, words) : NULL;
	if (loose->node.op == NULL || i != words)
		return fault(r, WEIR_DATA_LOSS, "the texts of the node do not end where it ends");
	return WEIR_OK;
}

static enum weir_status read_plan(struct reader *r)
{
	struct trace_plan *plan = append(&r->plans);

	if (plan == NULL)
		return no_memory(r);
	plan->number = word(r, 1);
	plan->node_count = argument(r);
	/* Each node has a record. */
	if (plan->node_count > r->trace->word_count)
		return fault(r, WEIR_DATA_LOSS, "the plan has more nodes than the file has words");
	return WEIR_OK;
}

static enum weir_status read_frame(struct reader *r)
{
	struct trace_frame *frame = append(&r->frames);

	if (frame == NULL)
		return no_memory(r);
	frame->kind = argument(r);
	frame->number = word(r, 1);
	frame->plan_number = word(r, 2);
	frame->part_of_number = word(r, 3);
	frame->iteration = word(r, 4);
	frame->begin_ns = word(r, 5);
	frame->thread = r->thread;
	return WEIR_OK;
}

static enum weir_status read_start(struct reader *r, size_t words)
{
	struct trace_event *event = append(&r->events);

	if (event == NULL)
		return no_memory(r);
	event->node = argument(r);
	event->number = word(r, 1);
	event->frame_number = word(r, 2);
	event->start_ns = word(r, 3);
	event->thread = r->thread;
	event->seen = r->trace->words + r->at + WEIRI_TRACE_START_WORDS;
	event->seen_count = words - WEIRI_TRACE_START_WORDS;
	r->last_event = event->number;
	r->last_frame = event->frame_number;
	return WEIR_OK;
}

/* A start and an end in one. */
static enum weir_status read_brief(struct reader *r)
{
	struct trace_event *event;
	size_t count = argument(r) >> WEIRI_TRACE_BRIEF_COUNT_SHIFT;

	if (count > WEIRI_TRACE_BRIEF_MOST)
		return fault(r, WEIR_DATA_LOSS, "a brief record has %zu dependencies", count);
	if (r->last_event == 0 || r->last_end_ns == 0)
		return fault(r, WEIR_DATA_LOSS, "a brief record follows no event of its thread that ended");
	event = append(&r->events);
	if (event == NULL)
		return no_memory(r);
	event->node = argument(r) & (WEIRI_TRACE_BRIEF_NODES - 1);
	event->number = ++r->last_event;
	event->frame_number = r->last_frame;
	event->start_ns = r->last_end_ns;
	r->last_end_ns += (uint32_t)word(r, 1);
	event->end_ns = r->last_end_ns;
	event->thread = r->thread;
	event->end_thread = r->thread;
	event->ends = 1;
	event->status = WEIR_OK;
	event->seen = r->next_seen;
	event->seen_count = count;
	for (size_t i = 0; i < count; i++) {
		uint64_t less = word(r, 1) >> (WEIRI_TRACE_BRIEF_SEEN_SHIFT + i * WEIRI_TRACE_BRIEF_SEEN_BITS) & 0xffff;

		*r->next_seen++ = less != 0 ? event->number - less : 0;
	}
	return WEIR_OK;
}

static enum weir_status read_end(struct reader *r, struct list *ends)
{
	struct end *end = append(ends);

	if (end == NULL)
		return no_memory(r);
	end->number = word(r, 1);
	end->time_ns = word(r, 2);
	end->argument = argument(r);
	end->thread = r->thread;
	return WEIR_OK;
}

static enum weir_status read_effect(struct reader *r)
{
	struct trace_effect *effect = append(&r->effects);

	if (effect == NULL)
		return no_memory(r);
	effect->kind = argument(r);
	effect->event_number = word(r, 1);
	effect->object = word(r, 2);
	effect->number = word(r, 3);
	return WEIR_OK;
}

static enum weir_status read_value(struct reader *r)
{
	struct trace_value *value = append(&r->values);

	if (value == NULL)
		return no_memory(r);
	value->kind = argument(r);
	value->frame_number = word(r, 1);
	value->which = word(r, 2);
	value->sum = word(r, 3);
	return WEIR_OK;
}

/* The length of each kind of record; a node and a start are at least so long. */
static const size_t lengths[] = {[WEIRI_TRACE_THREAD] = WEIRI_TRACE_THREAD_WORDS,
                                 [WEIRI_TRACE_PLAN] = WEIRI_TRACE_PLAN_WORDS,
                                 [WEIRI_TRACE_NODE] = WEIRI_TRACE_NODE_WORDS,
                                 [WEIRI_TRACE_FRAME] = WEIRI_TRACE_FRAME_WORDS,
                                 [WEIRI_TRACE_FRAME_END] = WEIRI_TRACE_FRAME_END_WORDS,
                                 [WEIRI_TRACE_START] = WEIRI_TRACE_START_WORDS,
                                 [WEIRI_TRACE_END] = WEIRI_TRACE_END_WORDS,
                                 [WEIRI_TRACE_EFFECT] = WEIRI_TRACE_EFFECT_WORDS,
                                 [WEIRI_TRACE_VALUE] = WEIRI_TRACE_VALUE_WORDS,
                                 [WEIRI_TRACE_BRIEF] = WEIRI_TRACE_BRIEF_WORDS};

static enum weir_status read_record(struct reader *r, unsigned kind, size_t words)
{
	if (kind == WEIRI_TRACE_THREAD) {
		r->thread = argument(r);
		r->has_thread = true;
		r->last_event = 0;
		r->last_end_ns = 0;
		return WEIR_OK;
	}
	if (!r->has_thread)
		return fault(r, WEIR_DATA_LOSS, "a record of no thread");
	switch (kind) {
	case WEIRI_TRACE_PLAN: return read_plan(r);
	case WEIRI_TRACE_NODE: return read_node(r, words);
	case WEIRI_TRACE_FRAME: return read_frame(r);
	case WEIRI_TRACE_FRAME_END: return read_end(r, &r->frame_ends);
	case WEIRI_TRACE_START: return read_start(r, words);
	case WEIRI_TRACE_BRIEF: return read_brief(r);
	case WEIRI_TRACE_END: r->last_end_ns = word(r, 2); return read_end(r, &r->event_ends);
	case WEIRI_TRACE_EFFECT: return read_effect(r);
	default: return read_value(r);
	}
}

static enum weir_status read_records(struct reader *r)
{
	enum weir_status status = WEIR_OK;

	for (r->at = WEIRI_TRACE_HEAD_WORDS; status == WEIR_OK && r->at < r->trace->word_count;) {
		unsigned kind = (unsigned)(word(r, 0) & 0xff);
		size_t words = (size_t)(word(r, 0) >> 8 & 0xffffff);
		bool open = kind == WEIRI_TRACE_NODE || kind == WEIRI_TRACE_START;

		if (kind == 0 || kind >= sizeof(lengths) / sizeof(lengths[0]))
			return fault(r, WEIR_DATA_LOSS, "%u is not a kind of record", kind);
		if (words < lengths[kind] || (!open && words != lengths[kind]))
			return fault(r, WEIR_DATA_LOSS, "a record of kind %u has %zu words, expected %zu", kind, words,
			             lengths[kind]);
		if (words > r->trace->word_count - r->at)
			return fault(r, WEIR_DATA_LOSS, "the file ends within a record");
		status = read_record(r, kind, words);
		r->at += words;
	}
	return status;
}

/* -- references -------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_plan(const void *a, const void *b)
{
	return compare(((const struct trace_plan *)a)->number, ((const struct trace_plan *)b)->number);
}

static int by_frame(const void *a, const void *b)
{
	return compare(((const struct trace_frame *)a)->number, ((const struct trace_frame *)b)->number);
}

static int by_event(const void *a, const void *b)
{
	return compare(((const struct trace_event *)a)->number, ((const struct trace_event *)b)->number);
}

static int by_event_of_effect(const void *a, const void *b)
{
	const struct trace_effect *x = a, *y = b;

	if (x->event_number != y->event_number)
		return compare(x->event_number, y->event_number);
	return x->kind != y->kind ? compare(x->kind, y->kind) : compare(x->object, y->object);
}

/* Stable: of equal ones, the effect that comes later lies behind. */
static int by_place_of_effect(const void *a, const void *b)
{
	int order = by_event_of_effect(a, b);

	return order != 0 ? order
	                  : compare(((const struct trace_effect *)a)->event, ((const struct trace_effect *)b)->event);
}

static int by_place_of_value(const void *a, const void *b)
{
	const struct trace_value *x = a, *y = b;

	if (x->frame_number != y->frame_number)
		return compare(x->frame_number, y->frame_number);
	return x->kind != y->kind ? compare(x->kind, y->kind) : compare(x->which, y->which);
}

static void sort(const struct list *list, int (*order)(const void *, const void *))
{
	if (list->count != 0)
		qsort(list->items, list->count, list->size, order);
}

static size_t find(const void *items, size_t count, size_t size, const void *key,
                   int (*order)(const void *, const void *))
{
	const char *found = count != 0 ? bsearch(key, items, count, size, order) : NULL;

	return found != NULL ? (size_t)(found - (const char *)items) / size : TRACE_NONE;
}

size_t trace_find_event(const struct trace *trace, uint64_t number)
{
	struct trace_event key = {.number = number};

	return find(trace->events, trace->event_count, sizeof(key), &key, by_event);
}

size_t trace_find_frame(const struct trace *trace, uint64_t number)
{
	struct trace_frame key = {.number = number};

	return find(trace->frames, trace->frame_count, sizeof(key), &key, by_frame);
}

const struct trace_effect *trace_find_effect(const struct trace *trace, const struct trace_event *event, uint32_t kind,
                                             uint64_t object)
{
	struct trace_effect key = {.event_number = event->number, .kind = kind, .object = object};
	const struct trace_effect *effects;
	size_t at;

	if (event->effect_count == 0)
		return NULL;
	effects = &trace->effects[event->first_effect];
	at = find(effects, event->effect_count, sizeof(key), &key, by_event_of_effect);
	if (at == TRACE_NONE)
		return NULL;
	while (at > 0 && by_event_of_effect(&effects[at - 1], &key) == 0)
		at--;
	return &effects[at];
}

static size_t find_plan(const struct trace *trace, uint64_t number)
{
	struct trace_plan key = {.number = number};

	return find(trace->plans, trace->plan_count, sizeof(key), &key, by_plan);
}

/* Two records of one number make the tables ambiguous. */
static enum weir_status refuse_twins(struct reader *r, const struct list *list, const char *what)
{
	for (size_t i = 1; i < list->count; i++) {
		/* The number is the first member of each. */
		const uint64_t *before = (const void *)((const char *)list->items + (i - 1) * list->size);
		const uint64_t *here = (const void *)((const char *)list->items + i * list->size);

		if (*before == *here)
			return fault(r, WEIR_DATA_LOSS, "%s %llu occurs twice", what, (unsigned long long)*here);
	}
	return WEIR_OK;
}

static enum weir_status place_nodes(struct reader *r)
{
	struct trace *trace = r->trace;
	const struct loose_node *loose = r->nodes.items;
	size_t total = 0;

	for (size_t i = 0; i < trace->plan_count; i++) {
		total += trace->plans[i].node_count;
		if (total > trace->word_count)
			return fault(r, WEIR_DATA_LOSS, "the plans have more nodes than the file has words");
		trace->plans[i].nodes = calloc((size_t)trace->plans[i].node_count + 1, sizeof(struct trace_node));
		if (trace->plans[i].nodes == NULL)
			return no_memory(r);
	}
	for (size_t i = 0; i < r->nodes.count; i++) {
		size_t plan = find_plan(trace, loose[i].plan);

		r->at = loose[i].at;
		if (plan == TRACE_NONE || loose[i].index >= trace->plans[plan].node_count)
			return fault(r, WEIR_DATA_LOSS, "a node of no plan");
		if (trace->plans[plan].nodes[loose[i].index].known)
			return fault(r, WEIR_DATA_LOSS, "the node occurs twice");
		for (size_t d = 0; d < loose[i].node.dependency_count; d++) {
			if ((uint32_t)loose[i].node.dependencies[d] >= trace->plans[plan].node_count)
				return fault(r, WEIR_DATA_LOSS, "the node depends on one that the plan does not have");
		}
		trace->plans[plan].nodes[loose[i].index] = loose[i].node;
	}
	return WEIR_OK;
}

static void place_ends(struct trace *trace, const struct reader *r)
{
	const struct end *ends = r->event_ends.items;

	for (size_t i = 0; i < r->event_ends.count; i++) {
		size_t at = trace_find_event(trace, ends[i].number);
		struct trace_event *event = at != TRACE_NONE ? &trace->events[at] : NULL;

		if (event == NULL)
			continue;
		event->ends++;
		event->end_ns = ends[i].time_ns;
		event->end_thread = ends[i].thread;
		event->status = ends[i].argument;
	}
	ends = r->frame_ends.items;
	for (size_t i = 0; i < r->frame_ends.count; i++) {
		size_t at = trace_find_frame(trace, ends[i].number);

		if (at == TRACE_NONE)
			continue;
		trace->frames[at].ends++;
		trace->frames[at].end_ns = ends[i].time_ns;
		trace->frames[at].end_thread = ends[i].thread;
		trace->frames[at].complete = ends[i].argument != 0;
	}
}

static void place_effects(struct trace *trace)
{
	for (size_t i = 0; i < trace->effect_count; i++) {
		size_t event = trace_find_event(trace, trace->effects[i].event_number);

		trace->effects[i].event = event;
		if (event == TRACE_NONE)
			continue;
		if (trace->events[event].effect_count++ == 0)
			trace->events[event].first_effect = i;
	}
}

static void place_values(struct trace *trace)
{
	for (size_t i = 0; i < trace->value_count; i++) {
		size_t frame = trace_find_frame(trace, trace->values[i].frame_number);

		if (frame != TRACE_NONE && trace->frames[frame].value_count++ == 0)
			trace->frames[frame].first_value = i;
	}
}

static enum weir_status resolve(struct reader *r)
{
	struct trace *trace = r->trace;
	enum weir_status status;

	/* Until the effects are sorted, `event` is the place in the file. */
	for (size_t i = 0; i < trace->effect_count; i++)
		trace->effects[i].event = i;
	sort(&r->plans, by_plan);
	sort(&r->frames, by_frame);
	sort(&r->events, by_event);
	sort(&r->effects, by_place_of_effect);
	sort(&r->values, by_place_of_value);
	status = refuse_twins(r, &r->plans, "plan");
	if (status == WEIR_OK)
		status = refuse_twins(r, &r->frames, "frame");
	if (status == WEIR_OK)
		status = refuse_twins(r, &r->events, "event");
	if (status == WEIR_OK)
		status = place_nodes(r);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; i < trace->frame_count; i++) {
		trace->frames[i].plan = find_plan(trace, trace->frames[i].plan_number);
		trace->frames[i].part_of = trace_find_event(trace, trace->frames[i].part_of_number);
	}
	for (size_t i = 0; i < trace->event_count; i++)
		trace->events[i].frame = trace_find_frame(trace, trace->events[i].frame_number);
	place_ends(trace, r);
	place_effects(trace);
	place_values(trace);
	return WEIR_OK;
}

/* -- the file ---------------------------------------------------------------------------------- */

static enum weir_status read_words(struct reader *r, const uint8_t *bytes, size_t size)
{
	struct trace *trace = r->trace;

	if (size % 8 != 0 || size < WEIRI_TRACE_HEAD_WORDS * 8)
		return fault(r, WEIR_DATA_LOSS, "%zu bytes are not the words of a trace", size);
	trace->word_count = size / 8;
	trace->words = malloc(size);
	/* A text takes a word for its length, and so has room for its terminator. An object takes three words. */
	trace->texts = malloc(size);
	trace->objects = calloc(trace->word_count, sizeof(struct trace_object));
	/* A brief record has two words, and says what was seen of at most two dependencies. */
	trace->brief_seen = calloc(trace->word_count, sizeof(uint64_t));
	if (trace->words == NULL || trace->texts == NULL || trace->objects == NULL || trace->brief_seen == NULL)
		return no_memory(r);
	r->next_text = trace->texts;
	r->next_seen = trace->brief_seen;
	for (size_t i = 0; i < trace->word_count; i++) {
		trace->words[i] = 0;
		for (unsigned b = 0; b < 8; b++)
			trace->words[i] |= (uint64_t)bytes[i * 8 + b] << b * 8;
	}
	if (trace->words[WEIRI_TRACE_HEAD_MAGIC] != WEIRI_TRACE_MAGIC)
		return fault(r, WEIR_DATA_LOSS, "this is not a trace of Weir");
	if (trace->words[WEIRI_TRACE_HEAD_VERSION] != WEIRI_TRACE_VERSION)
		return fault(r, WEIR_UNIMPLEMENTED, "the trace has version %llu, expected %d",
		             (unsigned long long)trace->words[WEIRI_TRACE_HEAD_VERSION], WEIRI_TRACE_VERSION);
	trace->flags = trace->words[WEIRI_TRACE_HEAD_FLAGS];
	trace->dropped = trace->words[WEIRI_TRACE_HEAD_DROPPED];
	return WEIR_OK;
}

enum weir_status trace_read(const void *bytes, size_t size, struct trace *out, weir_error *error)
{
	struct reader r = {
		.trace = out,
		.plans.size = sizeof(struct trace_plan),
		.frames.size = sizeof(struct trace_frame),
		.events.size = sizeof(struct trace_event),
		.effects.size = sizeof(struct trace_effect),
		.values.size = sizeof(struct trace_value),
		.event_ends.size = sizeof(struct end),
		.frame_ends.size = sizeof(struct end),
		.nodes.size = sizeof(struct loose_node),
		.error = error,
	};
	enum weir_status status;

	(void)memset(out, 0, sizeof(*out));
	status = read_words(&r, bytes, size);
	if (status == WEIR_OK)
		status = read_records(&r);
	out->plans = r.plans.items;
	out->plan_count = r.plans.count;
	out->frames = r.frames.items;
	out->frame_count = r.frames.count;
	out->events = r.events.items;
	out->event_count = r.events.count;
	out->effects = r.effects.items;
	out->effect_count = r.effects.count;
	out->values = r.values.items;
	out->value_count = r.values.count;
	if (status == WEIR_OK)
		status = resolve(&r);
	free(r.event_ends.items);
	free(r.frame_ends.items);
	free(r.nodes.items);
	if (status != WEIR_OK)
		trace_free(out);
	return status;
}

void trace_free(struct trace *trace)
{
	for (size_t i = 0; i < trace->plan_count; i++)
		free(trace->plans[i].nodes);
	free(trace->plans);
	free(trace->frames);
	free(trace->events);
	free(trace->effects);
	free(trace->values);
	free(trace->objects);
	free(trace->texts);
	free(trace->words);
	free(trace->brief_seen);
	(void)memset(trace, 0, sizeof(*trace));
}

/* -- questions --------------------------------------------------------------------------------- */

const struct trace_node *trace_node_of(const struct trace *trace, const struct trace_event *event)
{
	const struct trace_frame *frame = event->frame != TRACE_NONE ? &trace->frames[event->frame] : NULL;
	const struct trace_plan *plan = frame != NULL && frame->plan != TRACE_NONE ? &trace->plans[frame->plan] : NULL;

	return plan != NULL && event->node < plan->node_count && plan->nodes[event->node].known ? &plan->nodes[event->node]
	                                                                                        : NULL;
}

const struct trace_object *trace_object_of(const struct trace *trace, uint64_t address)
{
	for (size_t i = 0; i < trace->word_count && trace->objects[i].kind != NULL; i++) {
		if (trace->objects[i].address == address)
			return &trace->objects[i];
	}
	return NULL;
}

/* Puts the names of the nodes whose parts the frame is in front: "train/loop/". */
static size_t add_path(const struct trace *trace, size_t frame, char *text, size_t used, int depth)
{
	const struct trace_event *outer;
	const struct trace_node *node;

	if (depth == 0 || frame == TRACE_NONE || trace->frames[frame].part_of == TRACE_NONE)
		return used;
	outer = &trace->events[trace->frames[frame].part_of];
	node = trace_node_of(trace, outer);
	used = add_path(trace, outer->frame, text, used, depth - 1);
	if (node != NULL && used < TRACE_TEXT_SIZE)
		used += (size_t)snprintf(text + used, TRACE_TEXT_SIZE - used, "%.40s/", node->name);
	return used < TRACE_TEXT_SIZE ? used : TRACE_TEXT_SIZE - 1;
}

const char *trace_describe(const struct trace *trace, const struct trace_event *event, char text[TRACE_TEXT_SIZE])
{
	const struct trace_node *node = trace_node_of(trace, event);
	size_t used = (size_t)snprintf(text, TRACE_TEXT_SIZE, "%.40s \"", node != NULL ? node->op : "event");

	used = add_path(trace, event->frame, text, used, 4);
	(void)snprintf(text + used, TRACE_TEXT_SIZE - used, "%.60s\" of frame %llu", node != NULL ? node->name : "?",
	               (unsigned long long)event->frame_number);
	return text;
}
