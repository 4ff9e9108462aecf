/*
 * test_op_queue.c - queues as nodes: waiting without a thread, cancelling, closing, deadlines.
 */
#include <pthread.h>
#include <stdio.h>
#include <weir/queue.h>
#include <weir/reclaim.h>

#include "asleep.h"
#include "base/atomic.h"
#include "graph_kit.h"
#include "reclaim/record.h"
#include "stepped.h"

static const weir_shape scalar = {.rank = 0, .dims = {0}};

static void open_line(struct kit_line *line, size_t capacity, size_t threads)
{
	kit_open_line(line, kit_queue("input", capacity, WEIR_F32, &scalar), WEIR_F32, threads);
}

static void close_line(struct kit_line *line)
{
	kit_end(line->session, line->graph);
	kit_queue_end(line->queue);
}

static enum weir_status put(struct kit_line *line, float value, const struct kit_bounds *options, weir_error *error)
{
	const struct kit_bounds bounds = options != NULL ? *options : (struct kit_bounds){WEIR_NO_DEADLINE, NULL};
	weir_tensor *tensor;
	struct weir_feed feed;
	enum weir_status status = weir_tensor_scalar_f32(value, &tensor);

	if (status != WEIR_OK)
		return status;
	feed = (struct weir_feed){line->x, tensor};
	status = weir_session_run(line->session, &feed, 1, NULL, 0, NULL, &line->put, 1, bounds.deadline_ns, bounds.cancel,
	                          error);
	weir_tensor_release(tensor);
	return status;
}

/* A run on a thread of its own. */
struct background {
	struct kit_line *line;
	int puts;
	float value;
	const struct kit_bounds *options;
	weir_error error;
	enum weir_status status;
	_Atomic(int) number; /* of the thread, as Linux numbers it */
	_Atomic(int) ended;
	pthread_t thread;
};

static void *run_background(void *context)
{
	struct background *b = context;
	const struct kit_bounds bounds = b->options != NULL ? *b->options : (struct kit_bounds){WEIR_NO_DEADLINE, NULL};
	weir_tensor *result = NULL;

	weiri_store_release(&b->number, gettid());
	if (b->puts) {
		b->status = put(b->line, b->value, b->options, &b->error);
		return NULL;
	}
	b->status = weir_session_run(b->line->session, NULL, 0, &b->line->taken, 1, &result, NULL, 0, bounds.deadline_ns,
	                             bounds.cancel, &b->error);
	if (b->status == WEIR_OK)
		b->value = *(const float *)weir_tensor_data(result);
	weir_tensor_release(result);
	weiri_store_release(&b->ended, 1);
	return NULL;
}

static void start(struct background *b, struct kit_line *line, int puts, float value, const struct kit_bounds *options)
{
	(void)memset(b, 0, sizeof(*b));
	b->line = line;
	b->puts = puts;
	b->value = value;
	b->options = options;
	cr_assert_eq(pthread_create(&b->thread, NULL, run_background, b), 0);
}

static void join(struct background *b)
{
	cr_assert_eq(pthread_join(b->thread, NULL), 0);
}

Test(op_queue, items_come_out_in_the_order_they_went_in)
{
	struct kit_line line;

	open_line(&line, 10, 1);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(put(&line, (float)i, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_i64(line.session, line.size), 5);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(kit_fetch_f32(line.session, line.taken), (float)i);
	cr_expect_eq(kit_fetch_i64(line.session, line.size), 0);
	close_line(&line);
}

/*
 * A completion that makes runs. An operation that ends inside a completion is delivered after it,
 * except to a run that waits there.
 */
static void run_inside(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct background *puts = context, *takes = puts + 1;
	struct kit_bounds options = {.deadline_ns = weir_deadline_in(KIT_PATIENCE_NS)};

	(void)status, (void)error, (void)items, (void)done;
	puts->options = takes->options = &options;
	(void)run_background(puts);
	(void)run_background(takes);
}

Test(op_queue, a_run_inside_of_a_completion_ends)
{
	for (size_t threads = 0; threads <= 1; threads++) {
		struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1};
		struct kit_line line;
		struct background runs[2] = {{.line = &line, .puts = 1, .value = 7}, {.line = &line}};
		weir_queue *queue = NULL;
		void *items[1] = {NULL};

		open_line(&line, 10, threads);
		cr_assert_eq(weir_queue_create(&options, &queue, NULL), WEIR_OK);
		cr_assert_eq(weir_queue_start(queue, WEIR_QUEUE_OP_ENQUEUE, items, 1, run_inside, runs, NULL, NULL), WEIR_OK);
		for (int i = 0; i < 2; i++)
			cr_expect_eq(runs[i].status, WEIR_OK, "%s", runs[i].error.message);
		cr_expect_eq(runs[1].value, 7);
		cr_expect_eq(weir_queue_destroy(queue, NULL), WEIR_OK);
		close_line(&line);
	}
}

/*
 * Without workers, the thread that completes an operation hands the rest of the step to the waiting
 * caller.
 */
Test(op_queue, a_blocked_dequeue_is_completed_by_an_enqueue)
{
	for (size_t threads = 0; threads <= 2; threads++) {
		struct background taker;
		struct kit_line line;

		open_line(&line, 10, threads);
		for (int i = 0; i < 50; i++) {
			start(&taker, &line, 0, 0, NULL);
			cr_assert_eq(put(&line, (float)i, NULL, NULL), WEIR_OK);
			join(&taker);
			cr_assert_eq(taker.status, WEIR_OK, "%s", taker.error.message);
			cr_assert_eq(taker.value, (float)i);
		}
		close_line(&line);
	}
}

Test(op_queue, a_blocked_enqueue_is_completed_by_a_dequeue)
{
	struct background putter;
	struct kit_line line;

	open_line(&line, 1, 1);
	for (int i = 0; i < 50; i++) {
		cr_assert_eq(put(&line, 1, NULL, NULL), WEIR_OK);
		start(&putter, &line, 1, 2, NULL);
		cr_assert_eq(kit_fetch_f32(line.session, line.taken), 1.0f);
		join(&putter);
		cr_assert_eq(putter.status, WEIR_OK);
		cr_assert_eq(kit_fetch_f32(line.session, line.taken), 2.0f);
	}
	close_line(&line);
}

/* A kernel that reports that its step has come this far. */
static enum weir_status tell(void *context, const struct weir_kernel_call *call, weir_error *error)
{
	_Atomic(int) *to_come = context;

	(void)call;
	(void)error;
	(void)weiri_fetch_sub_relaxed(to_come, 1);
	return WEIR_OK;
}

static int all_arrived(void *context)
{
	_Atomic(int) *to_come = context;

	return weiri_load_relaxed(to_come) == 0;
}

Test(op_queue, blocked_operations_hold_no_worker)
{
	enum { BLOCKED = 6 };
	struct background takers[BLOCKED];
	_Atomic(int) to_come = BLOCKED;
	struct kit_line line;
	weir_node *marker;
	weir_output never;
	float sum = 0;

	open_line(&line, 10, 1);
	cr_assert_eq(weir_op_kernel(line.graph, "marker", KIT_KERNEL(tell), &to_come, NULL, 0, NULL, 0, NULL, 0, NULL,
	                            &marker, NULL),
	             WEIR_OK);
	cr_assert_eq(weir_graph_add_control(line.graph, marker, line.taken.node, NULL), WEIR_OK);
	cr_assert_eq(weir_op_identity(line.graph, NULL, line.taken, &never, NULL), WEIR_OK);
	/*
	 * The only worker runs each marker and starts the dequeue behind it. It must then be free for
	 * the next one.
	 */
	for (int i = 0; i < BLOCKED; i++)
		start(&takers[i], &line, 0, 0, NULL);
	kit_wait_for(all_arrived, &to_come, "the only worker");
	for (int i = 0; i < BLOCKED; i++)
		cr_assert_eq(put(&line, 1, NULL, NULL), WEIR_OK);
	for (int i = 0; i < BLOCKED; i++) {
		join(&takers[i]);
		cr_expect_eq(takers[i].status, WEIR_OK);
		sum += takers[i].value;
	}
	cr_expect_eq(sum, (float)BLOCKED);
	close_line(&line);
}

Test(op_queue, a_deadline_ends_a_blocked_dequeue_and_the_queue_stays_usable)
{
	struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
	struct kit_line line;
	weir_tensor *result = NULL;
	weir_error error = {.message = ""};

	open_line(&line, 10, 1);
	/*
	 * The deadline may pass before the dequeue has begun. Then it did not wait, and the test tries
	 * a later deadline.
	 */
	for (uint64_t length_ns = 20000000; strstr(error.message, "dequeue \"take\" of queue \"input\" had waited") == NULL;
	     length_ns *= 2) {
		cr_assert(length_ns < KIT_PATIENCE_NS, "%s", error.message);
		options.deadline_ns = weir_deadline_in(length_ns);
		cr_expect_eq(weir_session_run(line.session, NULL, 0, &line.taken, 1, &result, NULL, 0, options.deadline_ns,
		                              options.cancel, &error),
		             WEIR_DEADLINE_EXCEEDED);
	}
	cr_expect_null(result);
	cr_assert_eq(put(&line, 3, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(line.session, line.taken), 3.0f);
	close_line(&line);
}

Test(op_queue, the_timeout_of_the_session_ends_runs_without_a_deadline)
{
	struct weir_session_options session = {WEIR_SESSION_OPTIONS_INIT, .threads = 1, .operation_timeout_ns = 20000000};
	struct kit_line line;
	weir_error error;

	open_line(&line, 10, 1);
	cr_assert_eq(weir_session_destroy(line.session, NULL), WEIR_OK);
	cr_assert_eq(weir_session_create(line.graph, &session, &line.session, NULL), WEIR_OK);
	cr_expect_eq(kit_run_target(line.session, line.taken.node, &error), WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(put(&line, 3, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(line.session, line.taken), 3.0f);
	close_line(&line);
}

Test(op_queue, a_token_ends_a_blocked_dequeue_with_its_cause)
{
	struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
	weir_error cause = {WEIR_CANCELLED, "enough"};
	struct kit_line line;

	open_line(&line, 10, 1);
	for (int i = 0; i < 50; i++) {
		struct background taker;

		cr_assert_eq(weir_cancel_create(NULL, &options.cancel, NULL), WEIR_OK);
		start(&taker, &line, 0, 0, &options);
		(void)weir_cancel_fire(options.cancel, &cause);
		join(&taker);
		cr_expect_eq(taker.status, WEIR_CANCELLED);
		cr_expect_eq(strstr(taker.error.message, "the run was cancelled by its token; WEIR_CANCELLED: enough"),
		             taker.error.message, "%s", taker.error.message);
		weir_cancel_release(options.cancel);
	}
	cr_assert_eq(put(&line, 3, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(line.session, line.taken), 3.0f);
	close_line(&line);
}

static int sleeps_or_has_ended(void *context)
{
	struct background *b = context;

	return weiri_load_acquire(&b->ended) || thread_is_asleep(weiri_load_acquire(&b->number));
}

static int waits_for_an_item(void *context)
{
	struct background *b = context;
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};

	cr_assert_eq(weir_tensor_queue_get_stats(b->line->queue, &stats), WEIR_OK);
	return stats.waiting != 0 && thread_is_asleep(weiri_load_acquire(&b->number));
}

static void meet_weir(void *context)
{
	(void)context;
	cr_assert_not_null(weiri_record_get());
}

static void fire(void *context)
{
	(void)weir_cancel_fire(context, NULL);
}

/*
 * The cost of a trial, for stepped_stride(). With a sanitizer more places are tried, as only it
 * sees a use after free.
 */
enum { COST = STEPPED_STRIDE == 1 ? 32 : 4 };

/*
 * The thread that fires the step's token is stopped. An item ends the dequeue, or the fire does
 * when it goes on.
 */
Test(op_queue, a_fire_that_stands_anywhere_leaves_alone_what_has_ended_meanwhile)
{
	struct kit_line line;
	weir_tensor *seven = kit_f32(7);
	size_t got = 0;
	int stands = 1;

	stepped_or_skip();
	open_line(&line, 1, 0);
	for (size_t at = 0; stands; at += stepped_stride(COST)) {
		struct kit_bounds options = {WEIR_NO_DEADLINE, NULL};
		struct stepped call = {.prepare = meet_weir, .call = fire};
		struct background taker;

		cr_assert_eq(weir_cancel_create(NULL, &options.cancel, NULL), WEIR_OK);
		call.context = options.cancel;
		start(&taker, &line, 0, 0, &options);
		kit_wait_for(waits_for_an_item, &taker, "a dequeue that waits");
		stands = stepped_start(&call, at);
		cr_assert_eq(weir_tensor_queue_enqueue(line.queue, &seven, 1, 0, NULL, NULL), WEIR_OK);
		kit_wait_for(sleeps_or_has_ended, &taker, "the step to end, or to wait for the fire");
		(void)weir_reclaim_flush(0);
		stepped_finish(&call);
		join(&taker);
		if (weir_tensor_queue_size_approx(line.queue) == 0)
			got++;
		else
			cr_assert_eq(kit_fetch_f32(line.session, line.taken), 7.0f);
		cr_assert(taker.status == WEIR_CANCELLED || taker.status == WEIR_OK, "%s", taker.error.message);
		weir_cancel_release(options.cancel);
	}
	cr_expect_neq(got, 0);
	weir_tensor_release(seven);
	close_line(&line);
}

Test(op_queue, closing_the_session_ends_blocked_steps)
{
	enum { BLOCKED = 4 };

	for (size_t threads = 0; threads <= 2; threads++) {
		struct background takers[BLOCKED];
		struct kit_line line;

		open_line(&line, 10, threads);
		for (int i = 0; i < BLOCKED; i++)
			start(&takers[i], &line, 0, 0, NULL);
		cr_expect_eq(weir_session_close(line.session, NULL), WEIR_OK);
		for (int i = 0; i < BLOCKED; i++) {
			join(&takers[i]);
			/* The queue was closed while the call ran, or before. */
			cr_expect(takers[i].status == WEIR_CANCELLED || takers[i].status == WEIR_FAILED_PRECONDITION, "%d",
			          (int)takers[i].status);
			cr_expect_not_null(strstr(takers[i].error.message, "closed"), "%s", takers[i].error.message);
		}
		close_line(&line);
	}
}

Test(op_queue, a_closed_queue_ends_dequeues_with_its_cause_and_the_name_of_the_op)
{
	weir_error cause = {WEIR_OUT_OF_RANGE, "30 epochs done"};
	struct kit_line line;
	weir_error error;

	open_line(&line, 10, 1);
	cr_assert_eq(put(&line, 3, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_close(line.queue, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	cr_expect_eq(kit_fetch_f32(line.session, line.taken), 3.0f);
	cr_expect_eq(kit_run_target(line.session, line.taken.node, &error), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, "dequeue \"take\""), "%s", error.message);
	cr_expect_not_null(strstr(error.message, "30 epochs done"), "%s", error.message);
	cr_expect_eq(put(&line, 3, NULL, &error), WEIR_CANCELLED);
	cr_expect_not_null(strstr(error.message, "enqueue \"put\""), "%s", error.message);
	close_line(&line);
}

Test(op_queue, the_close_node_closes)
{
	struct kit_line line;
	weir_node *close = NULL;
	weir_error error;

	open_line(&line, 10, 1);
	cr_expect_eq(weir_op_queue_close(line.graph, NULL, line.queue, (enum weir_close_mode)9, NULL, &close, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_queue_close(line.graph, NULL, NULL, WEIR_CLOSE_DRAIN, NULL, &close, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_op_queue_close(line.graph, "close", line.queue, WEIR_CLOSE_CANCEL, NULL, &close, &error),
	             WEIR_OK);
	cr_expect_eq(kit_run_target(line.session, close, NULL), WEIR_OK);
	cr_expect_eq(kit_run_target(line.session, close, NULL), WEIR_OK);
	cr_expect(weir_tensor_queue_closed(line.queue));
	cr_expect_eq(put(&line, 1, NULL, &error), WEIR_CANCELLED);
	cr_expect_not_null(strstr(error.message, "closed because of WEIR_CANCELLED: node \"close\" closed it"), "%s",
	                   error.message);
	close_line(&line);
}

Test(op_queue, the_close_node_gives_its_cause)
{
	weir_error why = {WEIR_DATA_LOSS, "the disk is gone"};
	struct kit_line line;
	weir_node *close = NULL;
	weir_error error;

	open_line(&line, 10, 1);
	cr_assert_eq(weir_op_queue_close(line.graph, "end", line.queue, WEIR_CLOSE_DRAIN, &why, &close, &error), WEIR_OK);
	(void)snprintf(why.message, sizeof(why.message), "changed after the node was built");
	cr_expect_eq(kit_run_target(line.session, close, NULL), WEIR_OK);
	cr_expect_eq(put(&line, 1, NULL, &error), WEIR_CANCELLED);
	cr_expect_not_null(strstr(error.message, "closed because of WEIR_DATA_LOSS: node \"end\": the disk is gone"), "%s",
	                   error.message);
	close_line(&line);
}

Test(op_queue, batches_are_stacked_and_unstacked)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_shape pair = kit_shape(1, 2);
	weir_tensor_queue *queue = kit_queue("pairs", 10, WEIR_F32, &pair);
	weir_output rows = kit_constant(graph, kit_tensor(WEIR_F32, kit_shape(2, 3, 2), (const float[]){1, 2, 3, 4, 5, 6}));
	weir_output two = kit_constant(graph, kit_i64(2));
	weir_output many, up_to;
	weir_tensor *result;
	weir_node *put_rows;
	weir_error error;

	cr_assert_eq(weir_op_enqueue_many(graph, NULL, queue, &rows, 1, &put_rows, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_op_dequeue_many(graph, "many", queue, two, &many, 1, NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_op_dequeue_up_to(graph, NULL, queue, two, &up_to, 1, NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(kit_run_target(session, put_rows, &error), WEIR_OK, "%s", error.message);
	result = kit_fetch(session, many);
	cr_expect_eq(weir_tensor_shape(result)->dims[0], 2);
	cr_expect_eq(kit_f32_at(result, 3), 4.0f);
	weir_tensor_release(result);
	cr_assert_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(kit_run_target(session, many.node, &error), WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, "dequeue_many \"many\""), "%s", error.message);
	result = kit_fetch(session, up_to);
	cr_expect_eq(weir_tensor_shape(result)->dims[0], 1);
	cr_expect_eq(kit_f32_at(result, 0), 5.0f);
	weir_tensor_release(result);
	kit_end(session, graph);
	kit_queue_end(queue);
}

Test(op_queue, the_size_of_a_batch_may_come_from_another_queue)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_tensor_queue *numbers = kit_queue("numbers", 10, WEIR_I32, &scalar);
	weir_tensor_queue *items = kit_queue("items", 10, WEIR_I32, &scalar);
	const int32_t sizes[] = {2, 3};
	const int32_t values[] = {1, 2, 3, 4, 5};
	weir_output size_rows = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 2), sizes));
	weir_output item_rows = kit_constant(graph, kit_tensor(WEIR_I32, kit_shape(1, 5), values));
	weir_node *puts[2];
	weir_output n, batch;

	cr_assert_eq(weir_op_enqueue_many(graph, NULL, numbers, &size_rows, 1, &puts[0], NULL), WEIR_OK);
	cr_assert_eq(weir_op_enqueue_many(graph, NULL, items, &item_rows, 1, &puts[1], NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue(graph, NULL, numbers, &n, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_op_dequeue_many(graph, NULL, items, n, &batch, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_session_run(session, NULL, 0, NULL, 0, NULL, puts, 2, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	for (int i = 0; i < 2; i++) {
		weir_tensor *result = kit_fetch(session, batch);

		cr_expect_eq(weir_tensor_element_count(result), sizes[i]);
		cr_expect_eq(((const int32_t *)weir_tensor_data(result))[0], i == 0 ? 1 : 3);
		weir_tensor_release(result);
	}
	kit_end(session, graph);
	kit_queue_end(numbers);
	kit_queue_end(items);
}

Test(op_queue, builders_check_against_the_queue)
{
	weir_graph *graph = kit_graph();
	weir_tensor_queue *queue = kit_queue("input", 4, WEIR_F32, &scalar);
	weir_tensor_queue *shapeless = kit_queue("shapeless", 4, WEIR_F32, NULL);
	weir_output f = kit_placeholder(graph, "f", WEIR_F32, kit_shape(0));
	weir_output i = kit_placeholder(graph, "i", WEIR_I64, kit_shape(0));
	weir_output nothing = {NULL, 0};
	weir_output outs[2];
	weir_output both[2] = {f, f};
	weir_node *node;
	weir_error error;

	cr_expect_eq(weir_op_enqueue(graph, "e", queue, &i, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "queue \"input\" expects f32 [] as component 0"), "%s", error.message);
	cr_expect_eq(weir_op_enqueue(graph, NULL, queue, both, 2, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "expects 1 component, got 2"), "%s", error.message);
	cr_expect_eq(weir_op_enqueue(graph, NULL, queue, &nothing, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue(graph, NULL, NULL, &f, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue(graph, NULL, queue, NULL, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_enqueue_many(graph, NULL, queue, &f, 1, &node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue(graph, NULL, queue, outs, 2, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue(graph, NULL, NULL, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue(NULL, NULL, queue, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_many(graph, NULL, queue, f, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_many(graph, NULL, queue, nothing, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_many(graph, NULL, shapeless, i, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "specified shapes"), "%s", error.message);
	cr_expect_eq(weir_op_dequeue_up_to(graph, NULL, shapeless, i, outs, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_queue_size(graph, NULL, NULL, outs, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_queue_size(graph, NULL, queue, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_op_dequeue_many(graph, NULL, queue, i, outs, 1, NULL, &error), WEIR_OK);
	cr_assert_eq(weir_graph_destroy(graph, NULL), WEIR_OK);
	kit_queue_end(queue);
	kit_queue_end(shapeless);
}

/* Only the run shows that the batch is negative. */
Test(op_queue, a_negative_batch_fails_the_step)
{
	weir_graph *graph = kit_graph();
	weir_session *session = kit_session(graph, 1);
	weir_tensor_queue *queue = kit_queue("input", 4, WEIR_F32, &scalar);
	weir_output n = kit_constant(graph, kit_i64(-1));
	weir_output batch;
	weir_error error;

	cr_assert_eq(weir_op_dequeue_many(graph, "batch", queue, n, &batch, 1, NULL, NULL), WEIR_OK);
	cr_expect_eq(kit_run_target(session, batch.node, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "dequeue_many \"batch\""), "%s", error.message);
	kit_end(session, graph);
	kit_queue_end(queue);
}

/*
 * If one op fails, another one that waits is cancelled. The second failure is derived, so the
 * message is that of the first op.
 */
Test(op_queue, an_error_elsewhere_cancels_a_blocked_operation_of_the_same_step)
{
	struct kit_line line;
	weir_tensor_queue *closed = kit_queue("closed", 4, WEIR_F32, &scalar);
	weir_output other;
	weir_node *targets[2];
	weir_error error;

	open_line(&line, 4, 2);
	cr_assert_eq(weir_op_dequeue(line.graph, "culprit", closed, &other, 1, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_close(closed, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	targets[0] = line.taken.node;
	targets[1] = other.node;
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(weir_session_run(line.session, NULL, 0, NULL, 0, NULL, targets, 2, WEIR_NO_DEADLINE, NULL, &error),
		             WEIR_OUT_OF_RANGE);
		cr_expect_not_null(strstr(error.message, "\"culprit\""), "%s", error.message);
		targets[0] = other.node;
		targets[1] = line.taken.node;
	}
	close_line(&line);
	kit_queue_end(closed);
}

enum { PRODUCERS = 3, CONSUMERS = 3, ITEMS = 400 };

struct worker {
	struct kit_line *line;
	double sum;
	enum weir_status status;
};

static void *produce(void *context)
{
	struct worker *worker = context;

	for (int i = 0; i < ITEMS && worker->status == WEIR_OK; i++)
		worker->status = put(worker->line, (float)i, NULL, NULL);
	return NULL;
}

static void *consume(void *context)
{
	struct worker *worker = context;

	while (worker->status == WEIR_OK) {
		weir_tensor *result = NULL;

		worker->status = weir_session_run(worker->line->session, NULL, 0, &worker->line->taken, 1, &result, NULL, 0,
		                                  WEIR_NO_DEADLINE, NULL, NULL);
		if (worker->status == WEIR_OK)
			worker->sum += (double)*(const float *)weir_tensor_data(result);
		weir_tensor_release(result);
	}
	return NULL;
}

Test(op_queue, producers_and_consumers_over_a_small_queue_lose_nothing)
{
	for (size_t workers = 0; workers <= 2; workers++) {
		struct worker producers[PRODUCERS];
		struct worker consumers[CONSUMERS];
		pthread_t threads[PRODUCERS + CONSUMERS];
		struct kit_line line;
		double sum = 0;

		open_line(&line, 3, workers);
		for (int i = 0; i < PRODUCERS; i++) {
			producers[i] = (struct worker){&line, 0, WEIR_OK};
			cr_assert_eq(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
		}
		for (int i = 0; i < CONSUMERS; i++) {
			consumers[i] = (struct worker){&line, 0, WEIR_OK};
			cr_assert_eq(pthread_create(&threads[PRODUCERS + i], NULL, consume, &consumers[i]), 0);
		}
		for (int i = 0; i < PRODUCERS; i++) {
			cr_assert_eq(pthread_join(threads[i], NULL), 0);
			cr_expect_eq(producers[i].status, WEIR_OK);
		}
		cr_assert_eq(weir_tensor_queue_close(line.queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
		for (int i = 0; i < CONSUMERS; i++) {
			cr_assert_eq(pthread_join(threads[PRODUCERS + i], NULL), 0);
			cr_expect_eq(consumers[i].status, WEIR_OUT_OF_RANGE);
			sum += consumers[i].sum;
		}
		cr_expect_eq(sum, (double)(PRODUCERS * (ITEMS - 1) * ITEMS / 2));
		close_line(&line);
	}
}

Test(op_queue, a_dequeue_hands_out_its_node_as_an_enqueue_does)
{
	weir_tensor_queue *queue = kit_queue("input", 4, WEIR_F32, &weir_shape_scalar);
	weir_output x, taken, batch, n;
	weir_graph *graph = kit_graph();
	weir_session *session;
	weir_node *puts, *take, *take_many, *found;
	weir_error error;

	x = kit_constant(graph, kit_f32(1));
	n = kit_constant(graph, kit_i64(1));
	cr_assert_eq(weir_op_enqueue(graph, "put", queue, &x, 1, NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_graph_find(graph, "put", &puts, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, &take, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(take, taken.node);
	cr_assert_eq(weir_op_dequeue_many(graph, NULL, queue, n, &batch, 1, &take_many, &error), WEIR_OK);
	cr_expect_eq(take_many, batch.node);
	cr_assert_eq(weir_op_queue_close(graph, "end", queue, WEIR_CLOSE_DRAIN, NULL, NULL, &error), WEIR_OK);
	cr_assert_eq(weir_graph_find(graph, "end", &found, &error), WEIR_OK);

	cr_assert_eq(weir_graph_add_control(graph, puts, take, &error), WEIR_OK, "%s", error.message);
	session = kit_session(graph, 0);
	cr_expect_eq(kit_run_target(session, take, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	found = take;
	cr_expect_eq(weir_op_dequeue(graph, "take", queue, &taken, 1, &found, &error), WEIR_ALREADY_EXISTS);
	cr_expect_eq(found, take);
	kit_end(session, graph);
	kit_queue_end(queue);
}
