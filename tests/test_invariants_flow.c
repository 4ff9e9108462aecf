/*
 * test_invariants_flow.c - the assertions that guard areas, steps, ranks and monitored sessions
 * each fail on a damaged structure.
 */
#include <weir/flow/keyed_join.h>
#include <weir/flow/map_staging.h>
#include <weir/flow/staging.h>
#include <weir/flow/op.h>
#include <weir/tensor.h>
#include <weir/transport.h>

#include "areas/area.h"
#include "areas/keyed_join_part.h"
#include "areas/map_entry.h"
#include "areas/tree.h"
#include "monitored/monitored.h"
#include "run/countdown.h"
#include "run/meeting.h"
#include "run/numbers.h"
#include "session/child.h"
#include "session/session.h"
#include "session/step.h"
#include "tensor/object.h"
#include "invariants_kit.h"

/* -- areas ------------------------------------------------------------------------------------- */

static int compare_numbers(const void *key, const void *item)
{
	int a = *(const int *)key, b = *(const int *)item;

	return a < b ? -1 : a > b;
}

static struct weiri_tree *tree_of(struct weiri_tree_edit *edit, int numbers[], int count)
{
	struct weiri_tree *tree = NULL;

	for (int i = 0; i < count; i++) {
		numbers[i] = i;
		tree = weiri_tree_insert(edit, tree, compare_numbers, &numbers[i], (uint64_t)i, &numbers[i]);
	}
	return tree;
}

static void publish(struct weiri_tree_edit *edit)
{
	static struct weiri_retired state, next;
	_Atomic(struct weiri_retired *) current = &state;
	struct weiri_scope scope = enter();
	enum weir_status status;

	weiri_retired_init(&state, 1, do_nothing);
	weiri_retired_init(&next, 1, do_nothing);
	(void)weiri_tree_publish(edit, &scope, &current, &state, &next, &status);
}

static void miscount(void)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(weir_default_allocator());
	int numbers[3];

	tree_of(&edit, numbers, 3)->count = 7;
	publish(&edit);
}

static void edit_what_is_published(void)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(weir_default_allocator());
	struct weiri_tree *tree;
	int numbers[3], more = 9;

	tree = tree_of(&edit, numbers, 3);
	publish(&edit);
	/* Makes the edit take the tree for its own, but not the tree's children. */
	tree->published = 0;
	edit = weiri_tree_edit_begin(weir_default_allocator());
	tree->origin = tree;
	tree->next_made = NULL;
	edit.made = tree;
	(void)more;
	publish(&edit);
}

/* The first members are those of map_staging.c and keyed_join.c. */
struct map_content {
	struct weiri_tree *complete, *incomplete;
	size_t bytes;
};
struct keyed_join_content {
	struct weiri_tree *incomplete, *ready;
};
struct staging_content {
	struct weiri_tree *tuples;
};
struct staging_tuple {
	struct weiri_retired retired;
	_Atomic(size_t) references;
};

static void *content_of(void *area)
{
	return WEIRI_CONTAINER_OF(weiri_load_relaxed(&((struct weiri_area *)area)->state), struct weiri_area_state, retired)
	    ->content;
}

static const struct weir_tensor_component pair[] = {{.name = "a", .dtype = WEIR_I64}, {.name = "b", .dtype = WEIR_I64}};

static weir_map_staging *map_with_half_a_tuple(void)
{
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .components = pair, .component_count = 2};
	const size_t first = 0;
	weir_map_staging *map;
	weir_tensor *value;

	if (weir_map_staging_create(&options, &map, NULL) != WEIR_OK || weir_tensor_scalar_i64(1, &value) != WEIR_OK ||
	    weir_map_staging_put(map, 5, &first, &value, 1, 0, NULL, NULL) != WEIR_OK)
		_exit(1);
	return map;
}

static void miscount_bytes(void)
{
	weir_map_staging *map = map_with_half_a_tuple();

	((struct map_content *)content_of(map))->bytes++;
	(void)weir_map_staging_destroy(map, NULL);
}

static void complete_an_incomplete_entry(void)
{
	weir_map_staging *map = map_with_half_a_tuple();
	struct weiri_map_entry *entry = ((struct map_content *)content_of(map))->incomplete->item;

	entry->have = 3;
	(void)weir_map_staging_destroy(map, NULL);
}

static void keep_a_part(void)
{
	weir_map_staging *map = map_with_half_a_tuple();
	struct weiri_map_entry *entry = ((struct map_content *)content_of(map))->incomplete->item;

	weiri_store_relaxed(&entry->parts[0]->references, 2);
	(void)weir_map_staging_destroy(map, NULL);
}

static void keep_a_tuple(void)
{
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .components = pair, .component_count = 2};
	weir_tensor *value, *values[2];
	weir_staging *staging;

	if (weir_staging_create(&options, &staging, NULL) != WEIR_OK || weir_tensor_scalar_i64(1, &value) != WEIR_OK)
		_exit(1);
	values[0] = values[1] = value;
	if (weir_staging_put(staging, values, 2, 0, NULL, NULL) != WEIR_OK)
		_exit(1);
	weiri_store_relaxed(
		&((struct staging_tuple *)((struct staging_content *)content_of(staging))->tuples->item)->references, 2);
	(void)weir_staging_destroy(staging, NULL);
}

static void complete_an_incomplete_tuple(void)
{
	static const weir_shape scalar = {.rank = 0};
	static const struct weir_tensor_component known[] = {{.name = "a", .dtype = WEIR_I64, .shape = &scalar},
	                                                     {.name = "b", .dtype = WEIR_I64, .shape = &scalar}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = known, .component_count = 2};
	const weir_shape one = {.rank = 1, .dims = {1}};
	const weir_bytes key = {"k", 1};
	const int64_t number = 1;
	weir_tensor *keys, *values;
	weir_keyed_join *join;

	if (weir_keyed_join_create(&options, &join, NULL) != WEIR_OK ||
	    weir_tensor_copy_of(WEIR_BYTES, &one, &key, NULL, &keys) != WEIR_OK ||
	    weir_tensor_copy_of(WEIR_I64, &one, &number, NULL, &values) != WEIR_OK ||
	    weir_keyed_join_insert_many(join, 0, keys, values, NULL) != WEIR_OK)
		_exit(1);
	((struct weiri_keyed_join_part *)((struct keyed_join_content *)content_of(join))->incomplete->item)->have = 3;
	(void)weir_keyed_join_destroy(join, NULL);
}

Test(invariants_flow, tree)
{
	expect_broken("T4", miscount);
	expect_broken("T3", edit_what_is_published);
}

Test(invariants_flow, map_staging)
{
	expect_broken("M4", miscount_bytes);
	expect_broken("M3", complete_an_incomplete_entry);
	expect_broken("M1", keep_a_part);
}

Test(invariants_flow, staging)
{
	expect_broken("G1", keep_a_tuple);
}

Test(invariants_flow, keyed_join)
{
	expect_broken("B4", complete_an_incomplete_tuple);
}

/* -- steps, ranks ------------------------------------------------------------------------------ */

static void end_a_step_twice(void)
{
	static struct weiri_plan plan; /* without nodes */
	static weir_session session;
	static struct weiri_step step = {.session = &session, .plan = &plan, .frame = {.step = &step, .plan = &plan}};

	weiri_latch_set(&step.ended);
	weiri_step_begin(&step);
}

static weir_tensor *a_scalar(void)
{
	weir_tensor *scalar = NULL;

	(void)weir_tensor_scalar_f32(1, &scalar);
	return scalar;
}

/* One run of one + one, squared, and of one + (one + one). Spoils the plan before a second one. */
static void run_spoiled(void (*spoil)(struct weiri_plan *plan))
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};
	weir_graph *graph = NULL;
	weir_session *session = NULL;
	weir_output one, two, fetches[2];
	weir_tensor *results[2];

	(void)weir_graph_create(NULL, &graph, NULL);
	(void)weir_session_create(graph, &options, &session, NULL);
	(void)weir_op_constant(graph, NULL, a_scalar(), &one, NULL);
	(void)weir_op_add(graph, NULL, one, one, &two, NULL);
	(void)weir_op_square(graph, NULL, two, &fetches[0], NULL);
	(void)weir_op_add(graph, NULL, one, two, &fetches[1], NULL);
	for (int run = 0; run < 2; run++) {
		(void)weir_session_run(session, NULL, 0, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
		for (int i = 0; run == 0 && i < WEIRI_SESSION_BUCKETS; i++) {
			struct weiri_published *link = weiri_published_first(&session->plans[i]);

			if (link != NULL)
				spoil(WEIRI_CONTAINER_OF(link, struct weiri_plan, link));
		}
	}
}

static void leave_a_value(struct weiri_plan *plan)
{
	struct weiri_step *step = weiri_spare_take(&plan->spare);

	step->frame.values[plan->slot_count - 1] = a_scalar();
	(void)weiri_spare_put(&plan->spare, step);
}

static void use_a_frame_with_a_value(void)
{
	run_spoiled(leave_a_value);
}

/* Both users of the sum believe that they are the last. */
static void end_every_use(struct weiri_plan *plan)
{
	for (uint32_t i = 0; i < plan->use_count; i++) {
		if (plan->uses[i].ends != WEIRI_ENDS_NOTHING)
			plan->uses[i].ends = WEIRI_ENDS_VALUE;
	}
}

static void use_a_value_after_its_end(void)
{
	run_spoiled(end_every_use);
}

/* A place in a straight frame of `plan`, whose node has a body of that plan. */
static void take_room(bool is_taken, bool body_stays)
{
	static const struct weiri_op op = {.name = "call"};
	static const weir_node node = {.op = &op};
	static struct weiri_plan_node nodes[] = {{.node = &node}};
	static struct weiri_plan plan = {.nodes = nodes, .node_count = 1, .room = sizeof(struct weiri_frame)};
	static struct weiri_plan of_body = {.child = {.size = sizeof(struct weiri_frame)}};
	static struct weiri_body body = {.plan = &of_body};
	static struct weiri_step step;
	static struct weiri_frame room = {.plan = &of_body, .step = &step, .in_room = true, .empty = true};
	static struct weiri_frame frame = {.plan = &plan, .step = &step, .room = &room};
	const struct weiri_site site = {
		.frame = &frame, .runner = (struct weiri_runner *)(void *)&plan, .is_straight = true};

	room.empty = !is_taken;
	of_body.stays = body_stays;
	(void)weiri_site_run(&site, weiri_child_create_only(&site, &body));
}

static void take_a_room_twice(void)
{
	take_room(true, true);
}

static void run_straight_what_may_leave(void)
{
	take_room(false, false);
}

static void be_incomplete_without_a_halt(void)
{
	static struct weiri_step step;

	weiri_latch_set(&step.incomplete);
	(void)weiri_step_outcome(&step, NULL);
}

Test(invariants_flow, step)
{
	expect_broken("S1", end_a_step_twice);
	expect_broken("S4", be_incomplete_without_a_halt);
}

Test(invariants_flow, frame)
{
	expect_broken("F2", use_a_frame_with_a_value);
	expect_broken("plan L2", use_a_value_after_its_end);
	expect_broken("plan L4", run_straight_what_may_leave);
}

Test(invariants_flow, child)
{
	expect_broken("H5", take_a_room_twice);
}

static void forget_sum(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	(void)context, (void)status, (void)error;
	weir_tensor_release(sum);
}

/* The first members are those of ranks.c. */
struct group_of_ranks {
	weir_allocator allocator;
	size_t bytes;
	struct weiri_countdown users;
	char *name;
	uint32_t size, channel_count;
	struct weiri_meeting *meeting; /* the first member of a channel */
};

static void spoil_meeting(weir_ranks *ranks)
{
	weiri_store_relaxed(&((struct group_of_ranks *)(void *)ranks)->meeting->word, 1);
}

static void come_twice(void)
{
	struct weiri_meeting meeting;
	uint64_t number;

	weiri_meeting_init(&meeting);
	(void)weiri_meeting_come(&meeting, 1, 3, &number);
	(void)weiri_meeting_come(&meeting, 1, 3, &number);
}

static void give_a_number_twice(void)
{
	struct weiri_numbers numbers;
	uint32_t number;

	weiri_numbers_init(&numbers);
	if (!weiri_number_take(&numbers, 4, &number))
		_exit(1);
	weiri_number_give(&numbers, number);
	weiri_number_give(&numbers, number);
}

/* The first rank is told to be in the meeting, and has put no transfer into its place. */
static void hold_a_meeting_without_a_transfer(void)
{
	struct weir_channel what = {"w", WEIR_F32, NULL};
	struct weir_reduction reduction = {.divisor = 1, .done = forget_sum};
	weir_ranks *ranks;
	weir_transport *second;
	weir_transfer *transfer;

	if (weir_ranks_create(2, NULL, &ranks, NULL) != WEIR_OK || weir_tensor_scalar_f32(1, &reduction.input) != WEIR_OK)
		_exit(1);
	second = weir_ranks_transport(ranks, 1);
	if (second->open(second, &what, &reduction.channel, NULL) != WEIR_OK)
		_exit(1);
	spoil_meeting(ranks);
	(void)second->start(second, &reduction, &transfer, NULL);
}

Test(invariants_flow, ranks)
{
	expect_broken("E2", come_twice);
	expect_broken("N1", give_a_number_twice);
	expect_broken("K1", hold_a_meeting_without_a_transfer);
}

/* -- monitored sessions ------------------------------------------------------------------------ */

static weir_graph *monitored_graph;

static enum weir_status make_monitored_session(void *context, weir_session **session, weir_error *error)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};

	(void)context;
	return weir_session_create(monitored_graph, &options, session, error);
}

static weir_monitored *monitored_begin(void)
{
	struct weir_monitored_options options = {WEIR_MONITORED_OPTIONS_INIT, .make = make_monitored_session};
	weir_monitored *monitored = NULL;

	if (weir_graph_create(NULL, &monitored_graph, NULL) != WEIR_OK ||
	    weir_monitored_create(&options, &monitored, NULL) != WEIR_OK)
		_exit(1);
	return monitored;
}

static void end_a_life_with_calls_inside(void)
{
	(void)weiri_life_end(monitored_begin(), NULL);
}

static void enter_a_life_that_is_not_open(void)
{
	weir_monitored *monitored = monitored_begin();

	monitored->life.open = false;
	(void)weir_monitored_run(monitored, NULL, 0, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL, NULL);
}

static void begin_a_life_beside_a_runner(void)
{
	weir_monitored *monitored = monitored_begin();

	weiri_life_drain(monitored);
	(void)weiri_life_end(monitored, NULL);
	monitored->life.runner_count = 1;
	(void)weiri_life_begin(monitored, NULL);
}

Test(invariants_flow, of_monitored_sessions)
{
	expect_broken("M1", end_a_life_with_calls_inside);
	expect_broken("M2", enter_a_life_that_is_not_open);
	expect_broken("M3", begin_a_life_beside_a_runner);
}
