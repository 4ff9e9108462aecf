/*
 * test_completion_ends.c - completions that destroy the objects of their operations: queues, areas,
 * keyed joins, variables and watches.
 */
#include "completion_kit.h"

#include <weir/select.h>
#include <weir/flow/tensor_select.h>
#include <weir/watch.h>

struct ending {
	weir_queue *queue;
	weir_staging *staging;
	weir_map_staging *map;
	weir_keyed_join *join;
	weir_var *var;
	/* Operations whose completions are still to come, including this one. */
	int left;
	int ended;
	void *items[4];
};

/* The last completion destroys the queue. */
static void end_queue(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct ending *ending = context;

	(void)status, (void)error, (void)items, (void)done;
	if (--ending->left == 0)
		ending->ended = weir_queue_destroy(ending->queue, NULL) == WEIR_OK;
}

static void start_ending(struct ending *ending, enum weir_queue_op_kind kind, size_t count, weir_pending **op)
{
	cr_assert_eq(weir_queue_start(ending->queue, kind, ending->items, count, end_queue, ending, op, NULL), WEIR_OK);
}

Test(completions, a_queue_is_destroyed_inside_of_the_start)
{
	struct ending ending = {.queue = fifo(2), .left = 1};

	start_ending(&ending, WEIR_QUEUE_OP_ENQUEUE, 1, NULL);
	cr_expect(ending.ended);
	ending = (struct ending){.queue = fifo(2), .left = 1};
	put(ending.queue, 1, 2);
	start_ending(&ending, WEIR_QUEUE_OP_DEQUEUE_MANY, 2, NULL);
	cr_expect(ending.ended);
}

Test(completions, a_queue_with_descriptors_is_destroyed_inside_of_the_start)
{
	struct ending ending = {.queue = fifo(2), .left = 1};
	int fd = -1;

	cr_assert_eq(weir_queue_readable_fd(ending.queue, &fd, NULL), WEIR_OK);
	start_ending(&ending, WEIR_QUEUE_OP_ENQUEUE, 1, NULL);
	cr_expect(ending.ended);
}

Test(completions, a_queue_is_destroyed_inside_of_the_start_that_lets_another_go_on)
{
	struct ending ending = {.queue = fifo(2), .left = 2};
	weir_pending *handle = NULL;

	start_ending(&ending, WEIR_QUEUE_OP_DEQUEUE_MANY, 1, NULL);
	start_ending(&ending, WEIR_QUEUE_OP_ENQUEUE, 1, &handle);
	cr_expect(ending.ended);
	weir_pending_cancel(handle, NULL);
	weir_pending_release(handle);
}

Test(completions, a_queue_is_destroyed_inside_of_the_call_that_brings_the_item)
{
	void *two[2] = {item(1), item(2)};
	size_t in = 0;

	for (int how = 0; how < 3; how++) {
		struct ending ending = {.queue = fifo(1), .left = 1};

		start_ending(&ending, WEIR_QUEUE_OP_DEQUEUE_MANY, 1, NULL);
		if (how == 0)
			cr_expect_eq(weir_queue_try_enqueue(ending.queue, item(1)), WEIR_OK);
		else if (how == 1)
			cr_expect_eq(weir_queue_enqueue(ending.queue, item(1), in_good_time(), NULL, NULL), WEIR_OK);
		else
			cr_expect_eq(weir_queue_enqueue_many(ending.queue, two, 2, 0, NULL, &in, NULL), WEIR_DEADLINE_EXCEEDED);
		cr_expect(ending.ended, "in way %d", how);
	}
	cr_expect_eq(in, 1);
}

Test(completions, a_queue_is_destroyed_inside_of_the_call_that_makes_room)
{
	struct ending ending = {.queue = fifo(1), .left = 1};
	void *got = NULL;

	put(ending.queue, 1, 1);
	start_ending(&ending, WEIR_QUEUE_OP_ENQUEUE, 1, NULL);
	cr_expect_eq(weir_queue_dequeue(ending.queue, &got, in_good_time(), NULL, NULL), WEIR_OK);
	cr_expect(ending.ended);
}

Test(completions, a_queue_is_destroyed_inside_of_its_close)
{
	for (int how = 0; how < 2; how++) {
		struct ending ending = {.queue = fifo(1), .left = 3};

		if (how == 1)
			put(ending.queue, 1, 1);
		for (int i = 0; i < 3; i++)
			start_ending(&ending, how == 1 ? WEIR_QUEUE_OP_ENQUEUE : WEIR_QUEUE_OP_DEQUEUE_MANY, 1, NULL);
		cr_expect_eq(weir_queue_close(ending.queue, how == 1 ? WEIR_CLOSE_CANCEL : WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
		cr_expect(ending.ended, "in way %d", how);
	}
}

Test(completions, a_queue_is_destroyed_inside_of_a_cancel)
{
	struct ending ending = {.queue = fifo(1), .left = 1};
	weir_pending *handle = NULL;

	start_ending(&ending, WEIR_QUEUE_OP_DEQUEUE_MANY, 1, &handle);
	weir_pending_cancel(handle, NULL);
	cr_expect(ending.ended);
	weir_pending_release(handle);
}

struct tensor_ending {
	weir_tensor_queue *queue;
	enum weir_status status;
	int told;
};

static void end_tensor_queue(void *context, enum weir_status status, const weir_error *error,
                             weir_tensor *const tuple[], size_t count)
{
	struct tensor_ending *ending = context;

	(void)status, (void)error;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tuple[i]);
	ending->told++;
	ending->status = weir_tensor_queue_destroy(ending->queue, NULL);
}

/*
 * Makes the queue full, with a waiting enqueue whose completion tries to destroy it; or empty, with
 * such a dequeue.
 */
static void prepare_tensor_ending(struct tensor_ending *ending, int full)
{
	weir_tensor *more = number(8);

	*ending = (struct tensor_ending){.queue = scalar_queue(1)};
	if (full) {
		put_numbers(ending->queue, 7, 1);
		cr_assert_eq(weir_tensor_queue_start_enqueue(ending->queue, &more, 1, end_tensor_queue, ending, NULL, NULL),
		             WEIR_OK);
	} else {
		cr_assert_eq(weir_tensor_queue_start_dequeue(ending->queue, end_tensor_queue, ending, NULL, NULL), WEIR_OK);
	}
	weir_tensor_release(more);
}

Test(completions, a_tensor_queue_is_not_destroyed_inside_of_a_call_that_still_needs_it)
{
	struct tensor_ending ending;
	weir_tensor *got = NULL, *given = number(9);
	struct weir_tensor_select_case one = {.kind = WEIR_SELECT_DEQUEUE, .tuple = &got, .count = 1};
	size_t chosen;

	for (int how = 0; how < 4; how++) {
		prepare_tensor_ending(&ending, how != 3);
		one.queue = ending.queue;
		if (how == 0)
			cr_expect_eq(weir_tensor_queue_dequeue(ending.queue, &got, 1, in_good_time(), NULL, NULL), WEIR_OK);
		else if (how == 1)
			cr_expect_eq(weir_tensor_queue_dequeue_many(ending.queue, 1, &got, 1, in_good_time(), NULL, NULL), WEIR_OK);
		else if (how == 2)
			cr_expect_eq(weir_tensor_select(&one, 1, in_good_time(), NULL, &chosen, NULL), WEIR_OK);
		else
			cr_expect_eq(weir_tensor_queue_enqueue(ending.queue, &given, 1, in_good_time(), NULL, NULL), WEIR_OK);
		cr_expect_eq(ending.told, 1, "in way %d", how);
		cr_expect_eq(ending.status, WEIR_FAILED_PRECONDITION, "in way %d", how);
		if (how != 3)
			weir_tensor_release(got);
		destroy_tensors(ending.queue);
	}
	weir_tensor_release(given);
}

Test(completions, a_tensor_queue_is_destroyed_inside_of_its_close)
{
	struct tensor_ending ending;

	prepare_tensor_ending(&ending, 0);
	cr_expect_eq(weir_tensor_queue_close(ending.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(ending.told, 1);
	cr_expect_eq(ending.status, WEIR_OK);
}

static void end_both(void *context, enum weir_status status, const weir_error *error, struct weir_select_case cases[],
                     size_t chosen)
{
	(void)status, (void)error, (void)chosen;
	*(int *)context =
		weir_queue_destroy(cases[0].queue, NULL) == WEIR_OK && weir_queue_destroy(cases[1].queue, NULL) == WEIR_OK;
}

Test(completions, the_queues_of_a_select_are_destroyed_inside_of_its_start)
{
	int ended = 0;
	struct weir_select_case cases[2] = {{.queue = fifo(1), .kind = WEIR_SELECT_DEQUEUE},
	                                    {.queue = fifo(1), .kind = WEIR_SELECT_ENQUEUE, .item = item(1)}};

	cr_assert_eq(weir_select_start(cases, 2, end_both, &ended, NULL, NULL), WEIR_OK);
	cr_expect(ended);
}

Test(completions, the_queues_of_a_select_are_destroyed_inside_of_the_call_that_lets_it_go_on)
{
	int ended = 0;
	struct weir_select_case cases[2] = {{.queue = fifo(1), .kind = WEIR_SELECT_DEQUEUE},
	                                    {.queue = fifo(1), .kind = WEIR_SELECT_DEQUEUE}};

	cr_assert_eq(weir_select_start(cases, 2, end_both, &ended, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_queue_try_enqueue(cases[1].queue, item(1)), WEIR_OK);
	cr_expect(ended);
}

/* A select over two queues, and a completion that destroys both of them, if it may. */
struct early {
	struct weir_select_case cases[2];
	void *items[1];
	int refused, told, ended;
};

static void end_early(struct early *early)
{
	for (int i = 0; i < 2; i++) {
		enum weir_status status = weir_queue_destroy(early->cases[i].queue, NULL);

		early->refused += status == WEIR_FAILED_PRECONDITION;
		early->ended += status == WEIR_OK;
	}
}

static void end_both_early(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)status, (void)error, (void)items, (void)done;
	end_early(context);
}

static void note_select(void *context, enum weir_status status, const weir_error *error,
                        struct weir_select_case cases[], size_t chosen)
{
	struct early *early = context;

	(void)error, (void)chosen;
	early->told += status == WEIR_OK;
	for (int i = 0; early->refused != 0 && i < 2; i++)
		early->ended += weir_queue_destroy(cases[i].queue, NULL) == WEIR_OK;
}

static void prepare_select(struct early *early)
{
	*early = (struct early){
		.cases = {{.queue = fifo(2), .kind = WEIR_SELECT_DEQUEUE}, {.queue = fifo(2), .kind = WEIR_SELECT_DEQUEUE}}};
}

Test(completions, the_queues_of_a_select_whose_completion_is_due_are_not_destroyed)
{
	void *two[2] = {item(1), item(2)};
	struct early early;

	prepare_select(&early);
	cr_assert_eq(weir_select_start(early.cases, 2, note_select, &early, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_queue_start(early.cases[0].queue, WEIR_QUEUE_OP_DEQUEUE_MANY, early.items, 1, end_both_early,
	                              &early, NULL, NULL),
	             WEIR_OK);
	cr_expect_eq(weir_queue_enqueue_many(early.cases[0].queue, two, 2, 0, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(early.refused, 2);
	cr_expect_eq(early.told, 1);
	cr_expect_eq(early.ended, 2);
}

static void select_and_end_early(void *context, enum weir_status status, const weir_error *error, void **items,
                                 size_t done)
{
	struct early *early = context;

	(void)status, (void)error, (void)items, (void)done;
	cr_expect_eq(weir_select_start(early->cases, 2, note_select, early, NULL, NULL), WEIR_OK);
	end_early(early);
}

Test(completions, the_queues_of_a_select_that_ended_inside_of_one_are_not_destroyed_before_it_is_told)
{
	weir_queue *other = fifo(1);
	struct early early;

	prepare_select(&early);
	put(early.cases[0].queue, 1, 1);
	cr_assert_eq(
		weir_queue_start(other, WEIR_QUEUE_OP_DEQUEUE_MANY, early.items, 1, select_and_end_early, &early, NULL, NULL),
		WEIR_OK);
	put(other, 2, 1);
	cr_expect_eq(early.refused, 2);
	cr_expect_eq(early.told, 1);
	cr_expect_eq(early.ended, 2);
	destroy(other);
}

Test(completions, the_queues_of_a_select_are_destroyed_inside_of_its_start_by_another_that_it_lets_go_on)
{
	struct early early;

	prepare_select(&early);
	early.items[0] = item(3);
	put(early.cases[0].queue, 1, 2);
	cr_assert_eq(weir_queue_start(early.cases[0].queue, WEIR_QUEUE_OP_ENQUEUE, early.items, 1, end_both_early, &early,
	                              NULL, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_select_start(early.cases, 2, note_select, &early, NULL, NULL), WEIR_OK);
	cr_expect_eq(early.ended, 2);
	cr_expect_eq(early.told, 1);
}

static void end_areas(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple,
                      size_t count)
{
	struct ending *ending = context;

	(void)status, (void)error;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tuple[i]);
	if (--ending->left == 0)
		ending->ended = weir_staging_destroy(ending->staging, NULL) == WEIR_OK;
}

Test(completions, a_staging_area_is_destroyed_inside_of_the_call_that_lets_the_last_go_on)
{
	struct ending ending = {.staging = staging_area(), .left = 1};
	weir_tensor *tensor = number(1);

	cr_assert_eq(weir_staging_start_put(ending.staging, &tensor, 1, end_areas, &ending, NULL, NULL), WEIR_OK);
	cr_expect(ending.ended, "inside the start");
	ending = (struct ending){.staging = staging_area(), .left = 1};
	cr_assert_eq(weir_staging_start_get(ending.staging, end_areas, &ending, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_staging_put(ending.staging, &tensor, 1, in_good_time(), NULL, NULL), WEIR_OK);
	cr_expect(ending.ended, "inside the put");
	weir_tensor_release(tensor);
}

static void end_map(void *context, enum weir_status status, const weir_error *error, int64_t key, weir_tensor **tensors,
                    size_t count)
{
	struct ending *ending = context;

	(void)status, (void)error, (void)key;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tensors[i]);
	ending->ended = weir_map_staging_destroy(ending->map, NULL) == WEIR_OK;
}

Test(completions, a_map_staging_area_is_destroyed_inside_of_the_put_that_lets_a_get_go_on)
{
	struct ending ending = {.map = map_area()};
	weir_tensor *tensor = number(1);

	cr_assert_eq(weir_map_staging_start_get(ending.map, 1, first_place, 1, end_map, &ending, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_map_staging_put(ending.map, 1, first_place, &tensor, 1, in_good_time(), NULL, NULL), WEIR_OK);
	cr_expect(ending.ended);
	weir_tensor_release(tensor);
}

static void end_keyed_join(void *context, enum weir_status status, const weir_error *error,
                           const struct weir_keyed_join_batch *batch)
{
	struct ending *ending = context;

	(void)error, (void)batch;
	ending->ended = status == WEIR_OUT_OF_RANGE && weir_keyed_join_destroy(ending->join, NULL) == WEIR_OK;
}

Test(completions, a_keyed_join_is_destroyed_inside_of_its_close)
{
	struct ending ending = {.join = a_keyed_join()};

	cr_assert_eq(weir_keyed_join_start_take_many(ending.join, 1, 0, end_keyed_join, &ending, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_keyed_join_close(ending.join, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect(ending.ended);
}

static void end_variable(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	struct ending *ending = context;

	(void)error;
	weir_read_release(read);
	ending->ended = status == WEIR_OK && weir_var_destroy(ending->var, NULL) == WEIR_OK;
}

Test(completions, a_variable_is_destroyed_inside_of_the_start_of_a_wait)
{
	struct ending ending = {.var = a_variable()};

	cr_assert_eq(weir_var_start_wait(ending.var, 0, end_variable, &ending, NULL, NULL), WEIR_OK);
	cr_expect(ending.ended);
}

struct two_variables {
	weir_var *vars[2];
	int ended;
};

/* Frees what this thread has retired: a thread collects for every 256 objects that it retires. */
static void collect_own(void)
{
	weir_var *var = a_variable();
	weir_tensor *value = number(1);

	for (int i = 0; i < 600; i++)
		cr_assert_eq(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(value);
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
}

static void end_two_variables(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	struct two_variables *two = context;

	(void)error;
	if (status == WEIR_OK)
		weir_read_release(read);
	for (int i = 0; i < 2; i++)
		two->ended += weir_var_destroy(two->vars[i], NULL) == WEIR_OK;
	collect_own();
}

Test(completions, the_variables_of_a_commit_are_destroyed_inside_of_it)
{
	struct two_variables two = {.vars = {a_variable(), a_variable()}};
	struct weir_commit_part parts[2] = {{.var = two.vars[0], .expected = 1, .value = number(1)},
	                                    {.var = two.vars[1], .expected = 1, .value = number(2)}};

	cr_assert_eq(weir_var_start_wait(two.vars[0], 1, end_two_variables, &two, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_var_commit(parts, 2, in_good_time(), NULL, NULL), WEIR_OK);
	cr_expect_eq(two.ended, 2);
	for (int i = 0; i < 2; i++)
		weir_tensor_release(parts[i].value);
}

/* A watch has no completion of the user, so it ends at once, even inside a completion. */
static void end_watch(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct ending *ending = context;
	weir_watch *watch = NULL;

	(void)status, (void)error, (void)items, (void)done;
	if (weir_watch_create(ending->var, 0, &watch, NULL) == WEIR_OK) {
		weir_watch_destroy(watch, NULL);
		ending->ended = weir_var_destroy(ending->var, NULL) == WEIR_OK;
	}
}

Test(completions, a_watch_that_is_destroyed_inside_of_one_lets_its_variable_be_destroyed_there)
{
	struct ending ending = {.queue = fifo(1), .var = a_variable()};

	cr_assert_eq(weir_queue_start(ending.queue, WEIR_QUEUE_OP_ENQUEUE, ending.items, 1, end_watch, &ending, NULL, NULL),
	             WEIR_OK);
	cr_expect(ending.ended);
	destroy(ending.queue);
}
