/*
 * op_map.c - a node that runs a body for each row of its inputs, several rows at a time.
 *
 * Rows are run by lanes. A lane has a frame, and takes one row after the other, each the next that no
 * lane has taken. All lanes begin on the thread of the node, one after the other: a lane that must
 * wait holds no thread, so the next one begins. If the rows are worth it, the lanes but the first
 * begin in the pool. Each lane ends once; the last to end joins the results and ends the node.
 *
 * Invariants
 *   M1  a row is run by one lane, which stores the results of the row at the place of the row
 *   M2  the thread that ends a lane touches the map only if it was the last lane. So a thread that
 *       begins lanes counts as one more, until it has begun the last
 *   M3  at most `limit` frames of the node exist
 */
#include "session/child.h"

#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "graph/layout.h"
#include "session/session.h"

enum { DEFAULT_AT_ONCE = 8 };
/* Rows of less weight than this are not worth a hand-over to another thread. See WEIRI_LOOK_WEIGHT. */
enum { WORTH_A_LANE = 1024 };

struct map;

struct lane {
	weir_task task;
	struct map *map;
	struct weiri_frame *child;
	weir_tensor **feeds; /* room for those of a row */
	uint64_t row;
};

/* The state of a node, but for the parts that depend on the number of rows. */
struct map {
	struct weiri_frame *frame;
	uint32_t unit, index;
	uint64_t rows;
	struct weiri_serial next;
	struct weiri_countdown running; /* lanes, and the thread that begins them */
	uint32_t lane_count;
	struct lane *lanes;
	weir_tensor **results; /* result j of row i at j * rows + i */
	void *block;
	size_t bytes;
};

static size_t state_size(const weir_node *node)
{
	(void)node;
	return sizeof(struct map);
}

static const weir_node *node_of(const struct map *map)
{
	return map->frame->plan->nodes[map->index].node;
}

static struct weiri_body *body_of(const struct map *map)
{
	return weiri_calls_of(node_of(map))->bodies[0];
}

static weir_tensor **inputs_of(const struct map *map)
{
	return map->frame->inputs + map->frame->plan->nodes[map->index].inputs;
}

/* -- the end ----------------------------------------------------------------------------------- */

/* Makes the output for no rows: dims that are not known are 0. */
static enum weir_status make_empty(const struct map *map, const struct weiri_spec *spec, weir_tensor **out)
{
	weir_shape shape = {.rank = spec->ranked ? spec->shape.rank : 1};
	weir_tensor_builder *builder;
	enum weir_status status;

	for (uint32_t i = 1; i < shape.rank; i++)
		shape.dims[i] = spec->shape.dims[i] > 0 ? spec->shape.dims[i] : 0;
	status = weir_tensor_builder_create(spec->dtype, &shape, &map->frame->step->session->allocator, &builder, NULL);
	return status == WEIR_OK ? weir_tensor_builder_finish(builder, out) : status;
}

static enum weir_status join_results(const struct weiri_site *site, const struct map *map)
{
	const struct weiri_plan_node *p = &site->frame->plan->nodes[site->index];
	enum weir_status status = WEIR_OK;

	for (uint32_t j = 0; status == WEIR_OK && j < p->node->output_count; j++) {
		weir_tensor **out = site->frame->values + p->outputs + j;

		if (map->rows == 0)
			status = make_empty(map, &p->node->specs[j], out);
		else
			status = weir_tensor_stack(map->results + j * map->rows, (size_t)map->rows,
			                           &map->frame->step->session->allocator, out);
		if (status == WEIR_INVALID_ARGUMENT)
			(void)weiri_site_failed(site, status, "result %u differs in shape between rows", j);
		else if (status != WEIR_OK)
			(void)weiri_site_failed(site, status, "no memory for result %u", j);
	}
	return status;
}

/* All lanes have ended. */
static bool end(const struct weiri_site *site, struct map *map)
{
	size_t count = (size_t)map->rows * node_of(map)->output_count; /* allocate() saw that it fits */

	if (!weiri_latch_is_set(&map->frame->step->incomplete))
		(void)join_results(site, map);
	for (size_t i = 0; map->results != NULL && i < count; i++)
		weir_tensor_release(map->results[i]);
	for (uint32_t i = 0; i < map->lane_count; i++)
		weiri_child_destroy(map->lanes[i].child);
	weiri_release(&map->frame->step->session->allocator, map->block, map->bytes, WEIRI_LAYOUT_ALIGNMENT);
	return true;
}

static bool leave(const struct weiri_site *site, struct map *map)
{
	return weiri_countdown_finish(&map->running, 1) && end(site, map);
}

/* -- lanes ------------------------------------------------------------------------------------- */

/* Gives the frame of the lane its row. Returns false if the node fails. */
static bool begin_row(const struct weiri_site *site, struct lane *lane)
{
	struct map *map = lane->map;
	const struct weiri_calls *calls = weiri_calls_of(node_of(map));
	size_t count = lane->child->plan->feed_count;
	weir_tensor **feeds = lane->feeds;
	size_t given = 0;

	for (; given < count; given++) {
		weir_tensor *input = inputs_of(map)[given];

		if (given + calls->whole >= count)
			feeds[given] = weir_tensor_retain(input);
		else if (weir_tensor_row(input, (int64_t)lane->row, &feeds[given]) != WEIR_OK)
			break;
	}
	if (given == count && (!calls->check || weiri_site_accepts(site, calls->bodies[0], feeds))) {
		lane->child->number = lane->row;
		weiri_frame_begin_with(lane->child, feeds);
		weiri_child_begun(lane->child, WEIRI_TRACE_ROW, lane->row);
		return true;
	}
	if (given != count)
		(void)weiri_site_failed(site, WEIR_RESOURCE_EXHAUSTED, "no memory for row %llu", (unsigned long long)lane->row);
	while (given > 0)
		weir_tensor_release(feeds[--given]);
	return false;
}

/* Stores the results of the lane's row. Returns false if there are none. */
static bool end_row(struct lane *lane)
{
	struct map *map = lane->map;
	weir_tensor *results[WEIR_FUNCTION_MAX_RESULTS];

	if (!weiri_child_take_results(lane->child, results))
		return false;
	for (uint32_t j = 0; j < node_of(map)->output_count; j++) {
		weir_tensor **at = &map->results[j * map->rows + lane->row];

		WEIR_ASSERT2(M1, *at == NULL);
		*at = results[j];
	}
	return true;
}

/* Runs rows until there are no more. Returns true if the node has ended. */
static bool run_lane(const struct weiri_site *site, struct lane *lane)
{
	struct map *map = lane->map;

	for (;;) {
		if (weiri_site_must_stop(site))
			break;
		lane->row = weiri_serial_take(&map->next);
		if (lane->row >= map->rows || !begin_row(site, lane))
			break;
		if (!weiri_site_run(site, lane->child))
			return false;
		if (!end_row(lane))
			break;
	}
	return leave(site, map);
}

static bool child_ended(const struct weiri_site *site, struct weiri_frame *child)
{
	struct lane *lane = child->owner;

	return end_row(lane) ? run_lane(site, lane) : leave(site, lane->map);
}

static void run_lane_task(weir_task *task)
{
	struct lane *lane = WEIRI_CONTAINER_OF(task, struct lane, task);
	struct map *map = lane->map;
	int32_t credit = 0;
	struct weiri_site site = {
		.frame = map->frame, .unit = map->unit, .index = map->index, .credit = &credit, .on_worker = true};

	if (run_lane(&site, lane))
		weiri_step_call_ended(&site);
}

/* -- the beginning ----------------------------------------------------------------------------- */

/* Sets the number of rows. Returns false if the node fails. */
static bool count_rows(const struct weiri_site *site, const struct weiri_call *call, struct map *map)
{
	uint32_t count = call->node->input_count - weiri_calls_of(call->node)->whole;

	for (uint32_t i = 0; i < count; i++) {
		const weir_shape *shape = weir_tensor_shape(call->inputs[i]);
		const char *parameter = weiri_body_parameter(body_of(map), i)->name;

		if (shape->rank == 0) {
			(void)weiri_site_failed(site, WEIR_INVALID_ARGUMENT, "parameter \"%s\" gets rows, and is a scalar",
			                        parameter);
			return false;
		}
		if (i == 0)
			map->rows = (uint64_t)shape->dims[0];
		if (map->rows == (uint64_t)shape->dims[0])
			continue;
		(void)weiri_site_failed(site, WEIR_INVALID_ARGUMENT, "parameter \"%s\" gets %lld rows, and \"%s\" %llu",
		                        parameter, (long long)shape->dims[0], weiri_body_parameter(body_of(map), 0)->name,
		                        (unsigned long long)map->rows);
		return false;
	}
	return true;
}

static bool allocate(const struct weiri_site *site, struct map *map, uint64_t limit)
{
	struct weiri_layout layout = {0};
	size_t rows = (size_t)map->rows, lanes = map->rows < limit ? rows : (size_t)limit;
	size_t feed_count = body_of(map)->plan->feed_count;
	size_t results = 0, at_lanes, at_feeds, at_results;

	/* Rows without elements may be more than a size_t of 32 bits counts. */
	if (rows != map->rows || !weiri_multiply(rows, node_of(map)->output_count, &results))
		return false;
	at_feeds = weiri_layout_add(&layout, lanes * feed_count, sizeof(weir_tensor *));
	at_lanes = weiri_layout_add(&layout, lanes, sizeof(struct lane));
	at_results = weiri_layout_add(&layout, results + 1, sizeof(weir_tensor *));
	map->bytes = layout.size;
	map->block = weiri_allocate_zeroed(&map->frame->step->session->allocator, map->bytes, WEIRI_LAYOUT_ALIGNMENT);
	if (map->block == NULL)
		return false;
	map->lanes = weiri_layout_at(map->block, at_lanes);
	map->results = weiri_layout_at(map->block, at_results);
	for (; map->lane_count < lanes; map->lane_count++) {
		struct lane *lane = &map->lanes[map->lane_count];

		lane->map = map;
		lane->feeds = (weir_tensor **)weiri_layout_at(map->block, at_feeds) + map->lane_count * feed_count;
		lane->task.run = run_lane_task;
		lane->child = weiri_child_create(site, body_of(map));
		if (lane->child == NULL)
			return false;
		lane->child->owner = lane;
	}
	return true;
}

static bool is_worth_workers(const struct map *map)
{
	const struct weiri_plan *plan = body_of(map)->plan;
	uint64_t rows_of_lane = map->lane_count != 0 ? map->rows / map->lane_count : 0;

	WEIR_ASSERT1(M3, map->lane_count <= weiri_calls_of(node_of(map))->limit);
	return map->lane_count > 1 && map->frame->step->workers != 0 && map->frame->step->shuffle == 0 &&
	       (plan->has_user_code || plan->weight >= WORTH_A_LANE || plan->weight * rows_of_lane >= WORTH_A_LANE);
}

static bool begin(const struct weiri_site *site, const struct weiri_call *call)
{
	struct map *map = weiri_site_state(site);
	uint32_t lane_count;
	bool submits;

	*map = (struct map){.frame = site->frame, .unit = site->unit, .index = site->index};
	if (!count_rows(site, call, map))
		return true;
	weiri_site_tell(site, WEIRI_TRACE_ROWS, 0, map->rows);
	if (!allocate(site, map, weiri_calls_of(call->node)->limit)) {
		(void)weiri_site_failed(site, WEIR_RESOURCE_EXHAUSTED, "no memory for %llu rows",
		                        (unsigned long long)map->rows);
		return end(site, map);
	}
	lane_count = map->lane_count;
	submits = is_worth_workers(map);
	if (submits)
		weiri_step_connect(map->frame->step);
	weiri_serial_init(&map->next);
	weiri_countdown_init(&map->running, lane_count + 1); /* M2 */
	for (uint32_t i = 1; submits && i < lane_count; i++)
		weiri_step_submit(site->frame->step, &map->lanes[i].task);
	for (uint32_t i = 0; i < (submits ? 1 : lane_count); i++)
		(void)run_lane(site, &map->lanes[i]);
	return leave(site, map);
}

static const struct weiri_inner map_inner = {
	.parts = WEIRI_TRACE_ROW, .state_size = state_size, .begin = begin, .child_ended = child_ended};
static const struct weiri_op map_op = {.name = "map",
                                       .traits = WEIRI_OP_CALLS,
                                       .drop = weiri_calls_drop,
                                       .touches = weiri_calls_touch,
                                       .inner = &map_inner};

/* -- building ---------------------------------------------------------------------------------- */

#define refuse(r, code, ...) weiri_node_fail((r)->error, (code), (r)->op, (r)->name, __VA_ARGS__)

static enum weir_status map_specs(const struct weiri_call_request *r, struct weiri_calls *calls,
                                  struct weiri_spec specs[], size_t *count)
{
	const struct weiri_body *body = calls->bodies[0];

	*count = body->plan->fetch_count;
	for (size_t i = 0; i < *count; i++) {
		specs[i] = *weiri_body_result(body, i);
		if (!specs[i].ranked)
			continue;
		if (specs[i].shape.rank == WEIR_MAX_RANK)
			return refuse(r, WEIR_INVALID_ARGUMENT, "result %zu of \"%s\" has rank %d; rows of it cannot be joined", i,
			              body->function->name, WEIR_MAX_RANK);
		for (uint32_t d = specs[i].shape.rank++; d > 0; d--)
			specs[i].shape.dims[d] = specs[i].shape.dims[d - 1];
		specs[i].shape.dims[0] = -1;
	}
	return WEIR_OK;
}

enum weir_status weir_op_map(weir_graph *graph, const char *name, weir_function *function,
                             const struct weir_argument rows[], size_t count, const struct weir_map_options *options,
                             weir_output outs[], weir_node **node, weir_error *error)
{
	struct weir_map_options given;
	struct weiri_call_request request = {.graph = graph,
	                                     .op = &map_op,
	                                     .name = name,
	                                     .functions = &function,
	                                     .function_count = 1,
	                                     .arguments = rows,
	                                     .count = count,
	                                     .rows = true,
	                                     .error = error};
	enum weir_status status = weiri_options_read("weir_op_map", options, &given, sizeof(given), error);

	if (status != WEIR_OK)
		return status;
	if (function != NULL && given.whole >= function->tensor_count)
		return refuse(&request, WEIR_INVALID_ARGUMENT, "no tensor of \"%s\" has rows", function->name);
	request.limit = given.at_once != 0 ? given.at_once : DEFAULT_AT_ONCE;
	request.whole = given.whole;
	return weiri_call_build(&request, map_specs, outs, node);
}
