/*
 * trace.c - see trace.h.
 */
#include "session/trace.h"

#include <string.h>

#include <weir/time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/layout.h"
#include "graph/node_map.h"
#include "graph/writer.h"
#include "session/function.h"
#include "session/session.h"
#include "session/step.h"

enum { DEFAULT_BYTES = 64 * 1024 * 1024, LEAST_BYTES = 128 * 1024 };

/* -- the object -------------------------------------------------------------------------------- */

enum weir_status weir_trace_create(const struct weir_trace_options *options, weir_trace **out, weir_error *error)
{
	struct weir_trace_options given;
	enum weir_status status;
	weir_allocator allocator;
	weir_trace *trace;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_trace_create: out is NULL");
	status = weiri_options_read("weir_trace_create", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("weir_trace_create", given.flags, WEIR_TRACE_CHECKSUMS, error);
	if (status != WEIR_OK)
		return status;
	if (given.bytes_per_thread != 0 && given.bytes_per_thread < LEAST_BYTES)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "weir_trace_create: bytes_per_thread is %zu, must be at least %d", given.bytes_per_thread,
		                  LEAST_BYTES);
	allocator = weiri_allocator_or_default(given.allocator);
	trace = weiri_allocate_zeroed(&allocator, sizeof(*trace), _Alignof(weir_trace));
	if (trace == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "weir_trace_create: no memory");
	trace->allocator = allocator;
	trace->flags = given.flags;
	weiri_trace_buffers_init(&trace->buffers, &allocator,
	                         given.bytes_per_thread != 0 ? given.bytes_per_thread : DEFAULT_BYTES);
	for (size_t i = 0; i < WEIRI_TRACE_PLAN_LISTS; i++)
		weiri_published_init(&trace->plans[i]);
	weiri_serial_init(&trace->plan_numbers);
	weiri_serial_init(&trace->frames);
	weiri_countdown_init(&trace->users, 1);
	*out = trace;
	return WEIR_OK;
}

static struct weiri_traced_plan *traced_of(struct weiri_published *link)
{
	return WEIRI_CONTAINER_OF(link, struct weiri_traced_plan, link);
}

static void free_plans(weir_trace *trace, const struct weiri_published_list *list)
{
	struct weiri_published *next;

	for (struct weiri_published *link = weiri_published_first(list); link != NULL; link = next) {
		next = link->next;
		weiri_release(&trace->allocator, traced_of(link), traced_of(link)->bytes, WEIRI_LAYOUT_ALIGNMENT);
	}
}

enum weir_status weir_trace_destroy(weir_trace *trace, weir_error *error)
{
	weir_allocator allocator;

	if (trace == NULL)
		return WEIR_OK;
	if (!weiri_countdown_arrive(&trace->users)) {
		weiri_countdown_join(&trace->users);
		return weiri_fail(error, WEIR_FAILED_PRECONDITION,
		                  "weir_trace_destroy: a session or a run still has the trace");
	}
	for (size_t i = 0; i < WEIRI_TRACE_PLAN_LISTS; i++)
		free_plans(trace, &trace->plans[i]);
	weiri_trace_buffers_fini(&trace->buffers);
	allocator = trace->allocator;
	weiri_release(&allocator, trace, sizeof(*trace), _Alignof(weir_trace));
	return WEIR_OK;
}

uint64_t weir_trace_dropped(const weir_trace *trace)
{
	return trace != NULL ? weiri_trace_dropped(&trace->buffers) : 0;
}

/* -- writing ----------------------------------------------------------------------------------- */

static enum weir_status write_words(weir_write_fn *write, void *context, const uint64_t words[], size_t count,
                                    weir_error *error)
{
	enum { AT_ONCE = 512 };
	char bytes[AT_ONCE * sizeof(uint64_t) + 1];
	enum weir_status status = WEIR_OK;

	while (status == WEIR_OK && count != 0) {
		size_t now = count < AT_ONCE ? count : AT_ONCE;

		for (size_t i = 0; i < now * 8; i++)
			bytes[i] = (char)(words[i / 8] >> i % 8 * 8 & 0xff);
		bytes[now * 8] = '\0';
		status = weiri_write(write, context, bytes, now * 8, "weir_trace_write", error);
		words += now;
		count -= now;
	}
	return status;
}

/*
 * Looks for the next chunk before it looks how much is used: a chunk that has a next one does not grow
 * any more. So what is written has no gap, and a brief record follows the one to which it refers.
 */
static enum weir_status write_chunks(const struct weiri_trace_chunk *chunk, weir_write_fn *write, void *context,
                                     weir_error *error)
{
	enum weir_status status = WEIR_OK;

	while (status == WEIR_OK && chunk != NULL) {
		const struct weiri_trace_chunk *next = weiri_trace_next(chunk);

		status = write_words(write, context, chunk->words, weiri_trace_used(chunk), error);
		chunk = next;
	}
	return status;
}

enum weir_status weir_trace_write(const weir_trace *trace, weir_write_fn *write, void *context, weir_error *error)
{
	uint64_t head[WEIRI_TRACE_HEAD_WORDS] = {WEIRI_TRACE_MAGIC, WEIRI_TRACE_VERSION};
	enum weir_status status;

	if (trace == NULL || write == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "weir_trace_write: %s is NULL",
		                  trace == NULL ? "trace" : "write");
	head[WEIRI_TRACE_HEAD_FLAGS] = trace->flags;
	head[WEIRI_TRACE_HEAD_DROPPED] = weiri_trace_dropped(&trace->buffers);
	status = write_words(write, context, head, WEIRI_TRACE_HEAD_WORDS, error);
	for (struct weiri_published *link = weiri_published_first(&trace->buffers.list); status == WEIR_OK && link != NULL;
	     link = link->next) {
		const struct weiri_trace_buffer *buffer = WEIRI_CONTAINER_OF(link, struct weiri_trace_buffer, link);
		uint64_t thread[WEIRI_TRACE_THREAD_WORDS];

		thread[0] = weiri_trace_head(WEIRI_TRACE_THREAD, WEIRI_TRACE_THREAD_WORDS, buffer->thread);
		thread[1] = buffer->number;
		status = write_words(write, context, thread, WEIRI_TRACE_THREAD_WORDS, error);
		if (status == WEIR_OK)
			status = write_chunks(buffer->first, write, context, error);
	}
	return status;
}

/* -- plans ------------------------------------------------------------------------------------- */

static bool is_fed(const struct weiri_plan *plan, weir_output output)
{
	for (size_t i = 0; i < plan->feed_count; i++) {
		if (plan->feeds[i].node == output.node && plan->feeds[i].index == output.index)
			return true;
	}
	return false;
}

/* Marks the nodes of the plan that the run asks for. */
static void find_wanted(const struct weiri_plan *plan, const struct weiri_node_map *numbers, bool wanted[])
{
	uint32_t number;

	for (size_t i = 0; i < plan->target_count; i++) {
		if (weiri_node_map_find(numbers, plan->targets[i], &number))
			wanted[number] = true;
	}
	for (size_t i = 0; i < plan->fetch_count; i++) {
		if (weiri_node_map_find(numbers, plan->fetches[i].node, &number) && !is_fed(plan, plan->fetches[i]))
			wanted[number] = true;
	}
}

/* Calls visit() with each dependency on a node of the plan, as a word of the format. */
typedef void visit_fn(void *context, uint64_t dependency);

static void for_each_dependency(const struct weiri_plan *plan, const struct weiri_node_map *numbers,
                                const weir_node *node, visit_fn *visit, void *context)
{
	uint32_t number;

	for (uint32_t i = 0; i < node->input_count; i++) {
		if (weiri_node_map_find(numbers, node->inputs[i].node, &number) && !is_fed(plan, node->inputs[i]))
			visit(context, number | (uint64_t)node->inputs[i].index << 32);
	}
	for (struct weiri_published *link = weiri_published_first(&node->controls); link != NULL; link = link->next) {
		if (weiri_node_map_find(numbers, weiri_control_of(link)->before, &number))
			visit(context, number | WEIRI_TRACE_CONTROL);
	}
}

static void count_dependency(void *context, uint64_t dependency)
{
	(void)dependency;
	++*(uint32_t *)context;
}

static void store_dependency(void *context, uint64_t dependency)
{
	uint32_t **at = context;

	*(*at)++ = (uint32_t)dependency;
}

static void store_word(void *context, uint64_t dependency)
{
	uint64_t **at = context;

	*(*at)++ = dependency;
}

static size_t text_words(const char *text)
{
	return 1 + (strlen(text) + 7) / 8;
}

static void store_text(uint64_t **at, const char *text)
{
	size_t size = strlen(text);
	uint64_t *words = *at;

	words[0] = size;
	(void)memset(words + 1, 0, (size + 7) / 8 * 8);
	for (size_t i = 0; i < size; i++)
		words[1 + i / 8] |= (uint64_t)(uint8_t)text[i] << i % 8 * 8;
	*at += text_words(text);
}

static bool object_at(const weir_node *node, size_t i, struct weiri_resource *resource)
{
	return node->op->touches != NULL && node->op->touches(node, i, resource);
}

static struct weiri_published_list *list_of(weir_trace *trace, const struct weiri_plan *plan)
{
	return &trace->plans[plan->id % WEIRI_TRACE_PLAN_LISTS];
}

static struct weiri_traced_plan *find_traced(struct weiri_published *link, const struct weiri_plan *plan)
{
	while (link != NULL && traced_of(link)->id != plan->id)
		link = link->next;
	return link != NULL ? traced_of(link) : NULL;
}

static const struct weiri_traced_plan *plan_in(weir_trace *trace, const struct weiri_plan *plan);

/* Describes the bodies that the node may run, so that its record can name their plans. Returns how many they are. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as bodies lie in each other, which are built. */
static uint32_t describe_bodies(weir_trace *trace, const weir_node *node)
{
	uint32_t count = (node->op->traits & WEIRI_OP_CALLS) != 0 ? weiri_calls_of(node)->body_count : 0;

	for (uint32_t b = 0; b < count; b++) {
		if (plan_in(trace, weiri_calls_of(node)->bodies[b]->plan) == NULL)
			weiri_trace_lose(&trace->buffers);
	}
	return count;
}

static uint64_t number_of_body(weir_trace *trace, const weir_node *node, uint32_t b)
{
	const struct weiri_plan *plan = weiri_calls_of(node)->bodies[b]->plan;
	const struct weiri_traced_plan *traced = find_traced(weiri_published_first(list_of(trace, plan)), plan);

	return traced != NULL ? traced->number : 0;
}

static uint64_t node_flags(const weir_node *node, bool wanted)
{
	uint32_t traits = node->op->traits;

	return ((traits & WEIRI_OP_LEAVES) != 0 ? WEIRI_TRACE_NODE_LEAVES : 0u) |
	       ((traits & WEIRI_OP_WAITS) != 0 ? WEIRI_TRACE_NODE_WAITS : 0u) | (wanted ? WEIRI_TRACE_NODE_WANTED : 0u) |
	       ((traits & WEIRI_OP_CALLS) != 0 ? (uint64_t)node->op->inner->parts << WEIRI_TRACE_NODE_PARTS_SHIFT : 0u);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as bodies lie in each other, which are built. */
static void record_node(weir_trace *trace, struct weiri_trace_buffer *buffer, const struct weiri_traced_plan *traced,
                        const struct weiri_plan *plan, const struct weiri_node_map *numbers, uint32_t index,
                        bool wanted)
{
	const weir_node *node = plan->nodes[index].node;
	uint32_t dependencies = traced->starts[index + 1] - traced->starts[index], bodies = describe_bodies(trace, node);
	size_t objects = 0,
		   words = WEIRI_TRACE_NODE_WORDS + dependencies + bodies + text_words(node->name) + text_words(node->op->name);
	struct weiri_resource resource;
	uint64_t *at;

	for (; object_at(node, objects, &resource); objects++)
		words += 1 + text_words(resource.kind) + text_words(resource.name);
	at = weiri_trace_reserve(buffer, words);
	if (at == NULL)
		return;
	*at++ = weiri_trace_head(WEIRI_TRACE_NODE, words, index);
	*at++ = traced->number;
	*at++ = node_flags(node, wanted);
	*at++ = dependencies;
	*at++ = objects;
	*at++ = bodies;
	for_each_dependency(plan, numbers, node, store_word, &at);
	for (uint32_t b = 0; b < bodies; b++)
		*at++ = number_of_body(trace, node, b);
	for (size_t i = 0; object_at(node, i, &resource); i++) {
		*at++ = (uintptr_t)resource.object;
		store_text(&at, resource.kind);
		store_text(&at, resource.name);
	}
	store_text(&at, node->name);
	store_text(&at, node->op->name);
	weiri_trace_commit(buffer, words);
}

/* Only the thread whose description the trace keeps records it. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as bodies lie in each other, which are built. */
static void record_plan(weir_trace *trace, const struct weiri_traced_plan *traced, const struct weiri_plan *plan,
                        const struct weiri_node_map *numbers)
{
	struct weiri_trace_buffer *buffer = weiri_trace_buffer_mine(&trace->buffers);
	uint64_t *at = buffer != NULL ? weiri_trace_reserve(buffer, WEIRI_TRACE_PLAN_WORDS) : NULL;
	size_t bytes = plan->node_count + 1u;
	bool *wanted = at != NULL ? weiri_allocate_zeroed(&plan->allocator, bytes, 1) : NULL;

	if (at != NULL && wanted == NULL)
		weiri_trace_lose(&trace->buffers);
	if (wanted != NULL) {
		find_wanted(plan, numbers, wanted);
		at[0] = weiri_trace_head(WEIRI_TRACE_PLAN, WEIRI_TRACE_PLAN_WORDS, plan->node_count);
		at[1] = traced->number;
		weiri_trace_commit(buffer, WEIRI_TRACE_PLAN_WORDS);
		for (uint32_t i = 0; i < plan->node_count; i++)
			record_node(trace, buffer, traced, plan, numbers, i, wanted[i]);
	}
	weiri_release(&plan->allocator, wanted, bytes, 1);
	if (buffer != NULL)
		weiri_trace_rest(buffer);
}

static struct weiri_traced_plan *describe(const weir_trace *trace, const struct weiri_plan *plan,
                                          const struct weiri_node_map *numbers)
{
	struct weiri_layout layout = {0};
	struct weiri_traced_plan *traced;
	size_t at_traced, at_starts, at_nodes;
	uint32_t count = 0, *at;

	for (uint32_t i = 0; i < plan->node_count; i++)
		for_each_dependency(plan, numbers, plan->nodes[i].node, count_dependency, &count);
	at_traced = weiri_layout_add(&layout, 1, sizeof(*traced));
	at_starts = weiri_layout_add(&layout, (size_t)plan->node_count + 1, sizeof(uint32_t));
	at_nodes = weiri_layout_add(&layout, count, sizeof(uint32_t));
	traced = weiri_allocate(&trace->allocator, layout.size, WEIRI_LAYOUT_ALIGNMENT);
	if (traced == NULL)
		return NULL;
	(void)at_traced;
	traced->bytes = layout.size;
	traced->starts = weiri_layout_at(traced, at_starts);
	traced->nodes = weiri_layout_at(traced, at_nodes);
	at = traced->nodes;
	for (uint32_t i = 0; i < plan->node_count; i++) {
		traced->starts[i] = (uint32_t)(at - traced->nodes);
		for_each_dependency(plan, numbers, plan->nodes[i].node, store_dependency, &at);
	}
	traced->starts[plan->node_count] = count;
	return traced;
}

/* Publishes a new description, unless another thread was first. Returns the one that is kept. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as bodies lie in each other, which are built. */
static struct weiri_traced_plan *publish(weir_trace *trace, const struct weiri_plan *plan,
                                         struct weiri_traced_plan *traced, const struct weiri_node_map *numbers)
{
	struct weiri_published *first;
	struct weiri_traced_plan *other;

	traced->id = plan->id;
	traced->number = weiri_serial_take(&trace->plan_numbers) + 1;
	do {
		first = weiri_published_first(list_of(trace, plan));
		other = find_traced(first, plan);
		if (other != NULL) {
			weiri_release(&trace->allocator, traced, traced->bytes, WEIRI_LAYOUT_ALIGNMENT);
			return other;
		}
	} while (!weiri_published_push_after(list_of(trace, plan), &traced->link, first));
	record_plan(trace, traced, plan, numbers);
	return traced;
}

/* Returns NULL if there is no memory. A body calls only bodies that were complete before it, so this ends. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as bodies lie in each other, which are built. */
static const struct weiri_traced_plan *plan_in(weir_trace *trace, const struct weiri_plan *plan)
{
	struct weiri_traced_plan *traced = find_traced(weiri_published_first(list_of(trace, plan)), plan);
	struct weiri_node_map numbers;
	bool ok = true;

	if (traced != NULL)
		return traced;
	weiri_node_map_init(&numbers, &plan->allocator);
	for (uint32_t i = 0; ok && i < plan->node_count; i++)
		ok = weiri_node_map_add(&numbers, (weir_node *)(uintptr_t)plan->nodes[i].node);
	traced = ok ? describe(trace, plan, &numbers) : NULL;
	if (traced != NULL)
		traced = publish(trace, plan, traced, &numbers);
	weiri_node_map_fini(&numbers);
	return traced;
}

/* -- frames ------------------------------------------------------------------------------------ */

static void record_frame(const struct weiri_frame_trace *of, enum weiri_trace_frame_kind kind, uint64_t part_of,
                         uint64_t iteration)
{
	struct weiri_trace_buffer *buffer = weiri_trace_buffer_mine(&of->trace->buffers);
	uint64_t *at = buffer != NULL ? weiri_trace_reserve(buffer, WEIRI_TRACE_FRAME_WORDS) : NULL;

	if (at != NULL) {
		at[0] = weiri_trace_head(WEIRI_TRACE_FRAME, WEIRI_TRACE_FRAME_WORDS, kind);
		at[1] = of->number;
		at[2] = of->plan->number;
		at[3] = part_of;
		at[4] = iteration;
		at[5] = weir_now_ns();
		weiri_trace_commit(buffer, WEIRI_TRACE_FRAME_WORDS);
	}
	if (buffer != NULL)
		weiri_trace_rest(buffer);
}

/* FNV-1a over dtype, shape and elements. Strings count by their bytes. */
static uint64_t add_bytes(uint64_t sum, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sum = (sum ^ ((const uint8_t *)data)[i]) * UINT64_C(1099511628211);
	return sum;
}

static uint64_t checksum(const weir_tensor *tensor)
{
	const weir_shape *shape = weir_tensor_shape(tensor);
	enum weir_dtype dtype = weir_tensor_dtype(tensor);
	uint64_t sum = add_bytes(UINT64_C(14695981039346656037), &dtype, sizeof(dtype));

	sum = add_bytes(sum, shape->dims, shape->rank * sizeof(shape->dims[0]));
	if (dtype != WEIR_BYTES)
		return add_bytes(sum, weir_tensor_data(tensor), weir_tensor_byte_count(tensor));
	for (int64_t i = 0; i < weir_tensor_element_count(tensor); i++) {
		const weir_bytes *string = (const weir_bytes *)weir_tensor_data(tensor) + i;

		sum = add_bytes(sum, &string->size, sizeof(string->size));
		sum = add_bytes(sum, string->data, string->size);
	}
	return sum;
}

/* Records the checksum of a value that a child frame got or gave, if the trace has them. */
static void record_value(const struct weiri_frame *frame, uint32_t kind, size_t which, const weir_tensor *value)
{
	weir_trace *trace = frame->trace->trace;
	struct weiri_trace_buffer *buffer = NULL;
	uint64_t *at;

	if ((trace->flags & WEIR_TRACE_CHECKSUMS) != 0 && value != NULL)
		buffer = weiri_trace_buffer_mine(&trace->buffers);
	if (buffer == NULL)
		return;
	at = weiri_trace_reserve(buffer, WEIRI_TRACE_VALUE_WORDS);
	if (at != NULL) {
		at[0] = weiri_trace_head(WEIRI_TRACE_VALUE, WEIRI_TRACE_VALUE_WORDS, kind);
		at[1] = frame->trace->number;
		at[2] = which;
		at[3] = checksum(value);
		weiri_trace_commit(buffer, WEIRI_TRACE_VALUE_WORDS);
	}
	weiri_trace_rest(buffer);
}

/* Returns NULL if there is no memory, and then the frame is not recorded. */
static struct weiri_frame_trace *make_frame_trace(weir_trace *trace, struct weiri_plan *plan)
{
	size_t bytes = sizeof(struct weiri_frame_trace) + sizeof(uint64_t) * 2 * plan->node_count;
	const struct weiri_traced_plan *traced = plan_in(trace, plan);
	struct weiri_frame_trace *of =
		traced != NULL ? weiri_allocate_zeroed(&trace->allocator, bytes, _Alignof(struct weiri_frame_trace)) : NULL;

	if (of == NULL) {
		weiri_trace_lose(&trace->buffers);
		return NULL;
	}
	weiri_countdown_join(&trace->users);
	of->trace = trace;
	of->plan = traced;
	of->number = weiri_serial_take(&trace->frames) + 1;
	of->bytes = bytes;
	of->begun = of->ended + plan->node_count;
	return of;
}

void weiri_trace_frame(weir_trace *trace, struct weiri_frame *frame, struct weiri_plan *plan,
                       enum weiri_trace_frame_kind kind, uint64_t part_of, uint64_t iteration)
{
	frame->trace = make_frame_trace(trace, plan);
	if (frame->trace != NULL)
		record_frame(frame->trace, kind, part_of, iteration);
}

void weiri_trace_child(struct weiri_frame *child, enum weiri_trace_frame_kind kind, uint64_t iteration)
{
	const struct weiri_frame_trace *outer = child->parent->trace;

	if (outer == NULL)
		return;
	if (child->trace == NULL) {
		child->trace = make_frame_trace(outer->trace, child->plan);
	} else {
		child->trace->number = weiri_serial_take(&outer->trace->frames) + 1;
		(void)memset(child->trace->ended, 0, sizeof(uint64_t) * 2 * child->plan->node_count);
	}
	if (child->trace == NULL)
		return;
	record_frame(child->trace, kind, outer->begun[child->index], iteration);
	for (size_t i = 0; i < child->plan->feed_count; i++)
		record_value(child, WEIRI_TRACE_GOT, i, child->values[i]);
}

void weiri_trace_child_ended(const struct weiri_frame *child, bool complete)
{
	if (child->trace == NULL)
		return;
	for (size_t i = 0; complete && i < child->plan->fetch_count; i++)
		record_value(child, WEIRI_TRACE_GAVE, i, child->values[child->plan->fetched[i].slot]);
	weiri_trace_frame_ended(child, complete);
}

void weiri_trace_frame_ended(const struct weiri_frame *frame, bool complete)
{
	struct weiri_trace_buffer *buffer = weiri_trace_buffer_mine(&frame->trace->trace->buffers);
	uint64_t *at = buffer != NULL ? weiri_trace_reserve(buffer, WEIRI_TRACE_FRAME_END_WORDS) : NULL;

	if (at != NULL) {
		at[0] = weiri_trace_head(WEIRI_TRACE_FRAME_END, WEIRI_TRACE_FRAME_END_WORDS, complete);
		at[1] = frame->trace->number;
		at[2] = weir_now_ns();
		weiri_trace_commit(buffer, WEIRI_TRACE_FRAME_END_WORDS);
	}
	if (buffer != NULL)
		weiri_trace_rest(buffer);
}

void weiri_trace_frame_free(struct weiri_frame *frame)
{
	struct weiri_frame_trace *of = frame->trace;
	weir_trace *trace = of->trace;

	frame->trace = NULL;
	weiri_release(&trace->allocator, of, of->bytes, _Alignof(struct weiri_frame_trace));
	(void)weiri_countdown_arrive(&trace->users);
}

/* -- nodes ------------------------------------------------------------------------------------- */

struct weiri_trace_buffer *weiri_trace_writer(const struct weiri_frame *frame)
{
	return weiri_trace_buffer_mine(&frame->trace->trace->buffers);
}

/* Stores what the node sees: of each dependency, the event that ended, or 0. */
static void see(const struct weiri_frame_trace *of, uint32_t index, uint64_t seen[])
{
	const uint32_t *from = of->plan->nodes + of->plan->starts[index];
	uint32_t count = of->plan->starts[index + 1] - of->plan->starts[index];

	for (uint32_t i = 0; i < count; i++)
		seen[i] = of->ended[from[i]];
}

/* Returns room for the record of a start, whose words are filled in but for what was seen; or NULL. */
static uint64_t *record_start(const struct weiri_frame_trace *of, uint32_t index, struct weiri_trace_buffer *buffer,
                              uint64_t event, uint64_t start_ns, size_t words)
{
	uint64_t *at = weiri_trace_reserve(buffer, words);

	if (at == NULL)
		return NULL;
	at[0] = weiri_trace_head(WEIRI_TRACE_START, words, index);
	at[1] = event;
	at[2] = of->number;
	at[3] = start_ns;
	return at;
}

/* The record of a start is complete. */
static void commit_start(const struct weiri_frame_trace *of, struct weiri_trace_buffer *buffer, uint64_t event,
                         size_t words)
{
	weiri_trace_commit(buffer, words);
	buffer->known.event = event;
	buffer->known.frame = of->number;
}

static void record_end(struct weiri_trace_buffer *buffer, uint64_t event, uint64_t now_ns, enum weir_status status)
{
	uint64_t *at = weiri_trace_reserve(buffer, WEIRI_TRACE_END_WORDS);

	if (at == NULL)
		return;
	at[0] = weiri_trace_head(WEIRI_TRACE_END, WEIRI_TRACE_END_WORDS, (uint32_t)status);
	at[1] = event;
	at[2] = now_ns;
	weiri_trace_commit(buffer, WEIRI_TRACE_END_WORDS);
	buffer->known.end_ns = now_ns;
}

struct weiri_trace_point weiri_trace_start(const struct weiri_frame *frame, uint32_t index,
                                           struct weiri_trace_buffer *buffer, uint64_t start_ns)
{
	const struct weiri_frame_trace *of = frame->trace;
	size_t words = WEIRI_TRACE_START_WORDS + of->plan->starts[index + 1] - of->plan->starts[index];
	struct weiri_trace_point point = {&of->trace->buffers, 0};
	uint64_t *at;

	if (buffer == NULL)
		return point;
	point.event = weiri_trace_event(buffer);
	of->begun[index] = point.event;
	at = record_start(of, index, buffer, point.event, start_ns, words);
	if (at != NULL) {
		see(of, index, at + WEIRI_TRACE_START_WORDS);
		commit_start(of, buffer, point.event, words);
	}
	weiri_trace_rest(buffer);
	return point;
}

uint64_t weiri_trace_end(const struct weiri_frame *frame, uint32_t index, struct weiri_trace_buffer *buffer,
                         const struct weiri_trace_point *point, enum weir_status status)
{
	uint64_t now_ns = weir_now_ns();

	if (buffer != NULL) {
		record_end(buffer, point->event, now_ns, status);
		weiri_trace_rest(buffer);
	}
	frame->trace->ended[index] = point->event;
	return now_ns;
}

bool weiri_trace_start_brief(const struct weiri_frame *frame, uint32_t index, const struct weiri_trace_buffer *buffer,
                             uint64_t start_ns, struct weiri_trace_brief *brief)
{
	const struct weiri_frame_trace *of = frame->trace;

	brief->start_ns = start_ns;
	brief->seen_count = of->plan->starts[index + 1] - of->plan->starts[index];
	if (buffer == NULL || (of->trace->flags & WEIR_TRACE_CHECKSUMS) != 0 ||
	    brief->seen_count > WEIRI_TRACE_BRIEF_MOST || index >= WEIRI_TRACE_BRIEF_NODES)
		return false;
	see(of, index, brief->seen);
	return true;
}

/*
 * Returns true if the run fits a brief record: a reader knows its event, frame and start from the records
 * before, and what it saw is near. Sets *word to that of the record.
 */
static bool fits_brief(const struct weiri_trace_buffer *buffer, const struct weiri_frame_trace *of, uint64_t event,
                       const struct weiri_trace_brief *brief, uint64_t now_ns, uint64_t *word)
{
	uint64_t far = 0;

	*word = now_ns - brief->start_ns;
	far |= *word >> WEIRI_TRACE_BRIEF_SEEN_SHIFT;
	for (uint32_t i = 0; i < WEIRI_TRACE_BRIEF_MOST && i < brief->seen_count; i++) {
		uint64_t less = brief->seen[i] != 0 ? event - brief->seen[i] : 0;

		far |= less >> WEIRI_TRACE_BRIEF_SEEN_BITS;
		*word |= less << (WEIRI_TRACE_BRIEF_SEEN_SHIFT + i * WEIRI_TRACE_BRIEF_SEEN_BITS);
	}
	return far == 0 && buffer->known.event + 1 == event && buffer->known.frame == of->number &&
	       buffer->known.end_ns == brief->start_ns;
}

/* Writes down a run of two records. */
static void record_whole(const struct weiri_frame_trace *of, uint32_t index, struct weiri_trace_buffer *buffer,
                         uint64_t event, const struct weiri_trace_brief *brief, uint64_t now_ns,
                         enum weir_status status)
{
	size_t words = (size_t)WEIRI_TRACE_START_WORDS + brief->seen_count;
	uint64_t *at = record_start(of, index, buffer, event, brief->start_ns, words);

	if (at != NULL) {
		for (uint32_t i = 0; i < brief->seen_count; i++)
			at[WEIRI_TRACE_START_WORDS + i] = brief->seen[i];
		commit_start(of, buffer, event, words);
	}
	record_end(buffer, event, now_ns, status);
}

uint64_t weiri_trace_end_brief(const struct weiri_frame *frame, uint32_t index, struct weiri_trace_buffer *buffer,
                               const struct weiri_trace_brief *brief, enum weir_status status)
{
	struct weiri_frame_trace *of = frame->trace;
	uint64_t now_ns = weir_now_ns(), event = weiri_trace_event(buffer), word, *at;

	if (WEIRI_LIKELY(status == WEIR_OK && fits_brief(buffer, of, event, brief, now_ns, &word))) {
		at = weiri_trace_reserve(buffer, WEIRI_TRACE_BRIEF_WORDS);
		if (WEIRI_LIKELY(at != NULL)) {
			at[0] = weiri_trace_head(WEIRI_TRACE_BRIEF, WEIRI_TRACE_BRIEF_WORDS,
			                         index | brief->seen_count << WEIRI_TRACE_BRIEF_COUNT_SHIFT);
			at[1] = word;
			weiri_trace_commit(buffer, WEIRI_TRACE_BRIEF_WORDS);
			buffer->known.event = event;
			buffer->known.end_ns = now_ns;
		}
	} else {
		record_whole(of, index, buffer, event, brief, now_ns, status);
	}
	weiri_trace_rest(buffer);
	of->ended[index] = event;
	return now_ns;
}

static void record_checksum(const struct weiri_trace_point *point, uint32_t kind, size_t of, const weir_tensor *tensor)
{
	weiri_trace_effect(point, kind, (const void *)(uintptr_t)of,
	                   checksum(tensor)); /* NOLINT(performance-no-int-to-ptr) */
}

/* Returns true if the node may have passed on or written over the value of the slot. */
static bool may_be_spent(const struct weiri_frame *frame, const struct weiri_plan_node *p, uint32_t slot)
{
	for (uint32_t i = 0; i < p->input_count && i < 64; i++) {
		if ((p->taken >> i & 1) != 0 && frame->plan->uses[p->inputs + i].slot == slot)
			return true;
	}
	return false;
}

void weiri_trace_inputs(const struct weiri_frame *frame, uint32_t index, const struct weiri_trace_point *point,
                        bool after)
{
	const struct weiri_plan_node *p = &frame->plan->nodes[index];
	size_t dependency = 0;

	if ((frame->trace->trace->flags & WEIR_TRACE_CHECKSUMS) == 0)
		return;
	/* The dependencies of a node begin with its inputs, without those that are fed or constant. */
	for (uint32_t i = 0; i < p->input_count; i++) {
		uint32_t slot = frame->plan->uses[p->inputs + i].slot;

		if (slot < frame->plan->feed_count + frame->plan->constant_count)
			continue;
		if (frame->inputs[p->inputs + i] != NULL && !(after && may_be_spent(frame, p, slot)))
			record_checksum(point, WEIRI_TRACE_USED, dependency, frame->inputs[p->inputs + i]);
		dependency++;
	}
}

void weiri_trace_outputs(const struct weiri_frame *frame, uint32_t index, const struct weiri_trace_point *point)
{
	const struct weiri_plan_node *p = &frame->plan->nodes[index];

	if ((frame->trace->trace->flags & WEIR_TRACE_CHECKSUMS) == 0)
		return;
	for (uint32_t i = 0; i < p->node->output_count; i++) {
		if (frame->values[p->outputs + i] != NULL)
			record_checksum(point, WEIRI_TRACE_MADE, i, frame->values[p->outputs + i]);
	}
}

/* -- nodes that run functions ------------------------------------------------------------------ */

static struct weiri_trace_point point_of(const struct weiri_frame *frame, uint32_t index)
{
	return (struct weiri_trace_point){&frame->trace->trace->buffers, frame->trace->begun[index]};
}

void weiri_trace_call_effect(const struct weiri_frame *frame, uint32_t index, enum weiri_trace_effect_kind kind,
                             uint64_t object, uint64_t number)
{
	struct weiri_trace_point point = point_of(frame, index);

	weiri_trace_effect(&point, kind, (const void *)(uintptr_t)object, number); /* NOLINT(performance-no-int-to-ptr) */
}

void weiri_trace_passed(const struct weiri_frame *frame, uint32_t index)
{
	const struct weiri_plan_node *p = &frame->plan->nodes[index];
	size_t count = weiri_calls_of(p->node)->bodies[0]->plan->feed_count;
	struct weiri_trace_point point = point_of(frame, index);

	/* The parts of a map get rows. */
	if ((frame->trace->trace->flags & WEIR_TRACE_CHECKSUMS) == 0 || p->node->op->inner->parts == WEIRI_TRACE_ROW)
		return;
	/* An input before the tensors is the index of a case. */
	for (size_t i = 0; i < count; i++)
		record_checksum(&point, WEIRI_TRACE_PASSED, i, frame->inputs[p->inputs + p->input_count - count + i]);
}

void weiri_trace_call_ended(const struct weiri_frame *frame, uint32_t index)
{
	struct weiri_trace_point point = point_of(frame, index);
	bool complete = !weiri_latch_is_set(&frame->step->incomplete);

	if (complete)
		weiri_trace_outputs(frame, index, &point);
	weiri_trace_inputs(frame, index, &point, true);
	/* If the step has failed or stops, no node runs that depends on this one (S4 of step.h). */
	(void)weiri_trace_end(frame, index, weiri_trace_writer(frame), &point, complete ? WEIR_OK : WEIR_CANCELLED);
}
