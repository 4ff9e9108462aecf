/*
 * test_completions.c - what a completion may do: start the next operation however often, end what it belongs to, end its thread; and when
 * those are told whose operations end meanwhile.
 */
#include "tensor_queue_kit.h"

#include <limits.h>
#include <sys/wait.h>
#include <weir/barrier.h>
#include <weir/critical_section.h>
#include <weir/map_staging.h>
#include <weir/select.h>
#include <weir/staging.h>
#include <weir/tensor_select.h>
#include <weir/watch.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || __has_feature(thread_sanitizer) || \
	__has_feature(address_sanitizer)
/* Frames are several times as large, and calls as slow. One inside of the other, a thousand would be too many. */
enum { STACK = 512 << 10, SHARE = 50 };
#else
enum { STACK = 64 << 10, SHARE = 1 };
#endif
enum { TEN_MILLION = 10000000 / SHARE, MILLION = 1000000 / SHARE, BACKLOG = 64 };

/* Runs it on a thread with little stack. */
static void on_a_small_stack(void *(*body)(void *), void *context)
{
	pthread_attr_t attributes;
	pthread_t thread;

	cr_assert_eq(pthread_attr_init(&attributes), 0);
	cr_assert_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
	cr_assert_eq(pthread_create(&thread, &attributes, body, context), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	(void)pthread_attr_destroy(&attributes);
}

/* -- one after the other, each started by the completion before -------------------------------- */

/* Keeps its queue filled, and takes from it. */
struct chain {
	weir_queue *queue;
	void *items[1];
	size_t wanted, told, failed;
	int inside, nested; /* completions that run; how often one began inside another */
	weir_pending *handle;
};

static void begin_told(struct chain *chain)
{
	chain->nested += chain->inside++ != 0;
	chain->told++;
}

static void take_another(void *context, enum weir_status status, const weir_error *error, void **items, size_t done);

static void *start_taking(void *context)
{
	struct chain *chain = context;

	chain->failed += weir_queue_start(chain->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, chain->items, 1, take_another, chain,
	                                  NULL, NULL) != WEIR_OK;
	return NULL;
}

static void take_another(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct chain *chain = context;

	(void)error;
	begin_told(chain);
	chain->failed += status != WEIR_OK || done != 1;
	chain->failed += weir_queue_try_enqueue(chain->queue, items[0]) != WEIR_OK;
	if (chain->told < chain->wanted)
		(void)start_taking(chain);
	chain->inside--;
}

static void expect_chain(struct weir_queue_options options, size_t wanted)
{
	struct chain chain = {.queue = queue_with(options), .wanted = wanted};

	put(chain.queue, 1, BACKLOG);
	on_a_small_stack(start_taking, &chain);
	cr_expect_eq(chain.told, wanted, "%zu of %zu were told", chain.told, wanted);
	cr_expect_eq(chain.failed, 0);
	cr_expect_eq(chain.nested, 0, "a completion began inside of another");
	cr_expect_eq(weir_queue_size_approx(chain.queue), BACKLOG);
	destroy(chain.queue);
}

Test(completions, ten_million_dequeues_of_a_backlog_follow_each_other_on_a_small_stack)
{
	expect_chain((struct weir_queue_options){.capacity = BACKLOG + 1}, TEN_MILLION);
}

Test(completions, dequeues_of_a_fair_queue_follow_each_other_on_a_small_stack)
{
	expect_chain((struct weir_queue_options){.capacity = BACKLOG + 1, .flags = WEIR_QUEUE_FAIR}, MILLION);
}

Test(completions, dequeues_of_a_shuffle_queue_follow_each_other_on_a_small_stack)
{
	expect_chain((struct weir_queue_options){.capacity = BACKLOG + 1, .order = WEIR_QUEUE_SHUFFLE}, MILLION);
}

static int64_t key_of(void *context, void *any)
{
	(void)context;
	return (int64_t)number_of(any);
}

Test(completions, dequeues_of_a_priority_queue_follow_each_other_on_a_small_stack)
{
	expect_chain((struct weir_queue_options){.capacity = BACKLOG + 1, .order = WEIR_QUEUE_PRIORITY, .key = key_of},
	             MILLION);
}

/* Enqueue, dequeue, and so on. */
static void move_another(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct chain *chain = context;
	enum weir_queue_op_kind kind = chain->told % 2 == 0 ? WEIR_QUEUE_OP_DEQUEUE_UP_TO : WEIR_QUEUE_OP_ENQUEUE;

	(void)error, (void)items, (void)done;
	begin_told(chain);
	chain->failed += status != WEIR_OK;
	if (chain->told < chain->wanted)
		chain->failed +=
			weir_queue_start(chain->queue, kind, chain->items, 1, move_another, chain, NULL, NULL) != WEIR_OK;
	chain->inside--;
}

static void *start_moving(void *context)
{
	struct chain *chain = context;

	chain->failed += weir_queue_start(chain->queue, WEIR_QUEUE_OP_ENQUEUE, chain->items, 1, move_another, chain, NULL,
	                                  NULL) != WEIR_OK;
	return NULL;
}

Test(completions, enqueues_and_dequeues_follow_each_other_on_a_small_stack)
{
	struct chain chain = {.queue = fifo(1), .wanted = MILLION};

	on_a_small_stack(start_moving, &chain);
	cr_expect_eq(chain.told, chain.wanted);
	cr_expect_eq(chain.failed, 0);
	cr_expect_eq(chain.nested, 0);
	destroy(chain.queue);
}

/* Two of these: what the completion of one takes it puts into the other, in which the other's next operation waits. */
struct player {
	struct chain chain;
	struct player *other;
	int waits; /* by a call that would wait for room */
};

static void pass_on(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct player *player = context;
	struct chain *chain = &player->chain;
	weir_queue *to = player->other->chain.queue;
	void *ball = items[0];

	(void)error, (void)done;
	begin_told(chain);
	chain->failed += status != WEIR_OK;
	if (status == WEIR_OK && chain->told < chain->wanted) {
		chain->failed += weir_queue_start(chain->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, chain->items, 1, pass_on, player,
		                                  NULL, NULL) != WEIR_OK;
		chain->failed += (player->waits ? weir_queue_enqueue(to, ball, in_good_time(), NULL, NULL)
		                                : weir_queue_try_enqueue(to, ball)) != WEIR_OK;
	}
	chain->inside--;
}

static void *serve_first(void *context)
{
	struct player *players = context;

	(void)weir_queue_try_enqueue(players[0].chain.queue, item(1));
	return NULL;
}

static void play(int waits)
{
	enum { ROUNDS = MILLION / 2 };
	struct player players[2] = {{{.queue = fifo(1), .wanted = ROUNDS}, &players[1], waits},
	                            {{.queue = fifo(1), .wanted = ROUNDS}, &players[0], waits}};

	for (int i = 0; i < 2; i++)
		cr_assert_eq(weir_queue_start(players[i].chain.queue, WEIR_QUEUE_OP_DEQUEUE_MANY, players[i].chain.items, 1,
		                              pass_on, &players[i], NULL, NULL),
		             WEIR_OK);
	on_a_small_stack(serve_first, players);
	cr_expect_eq(players[0].chain.told, ROUNDS);
	cr_expect_eq(players[1].chain.told, ROUNDS - 1);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(players[i].chain.failed, 0);
		cr_expect_eq(players[i].chain.nested, 0);
		(void)weir_queue_close(players[i].chain.queue, WEIR_CLOSE_CANCEL, NULL);
		destroy(players[i].chain.queue);
	}
}

Test(completions, two_queues_feed_each_other_from_completions_on_a_small_stack)
{
	play(0);
}

Test(completions, two_queues_feed_each_other_by_calls_that_may_wait_on_a_small_stack)
{
	play(1);
}

/* Waits in a queue that stays empty; its completion starts the next and cancels that. */
static void cancel_another(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct chain *chain = context;

	(void)error, (void)items, (void)done;
	begin_told(chain);
	chain->failed += status != WEIR_CANCELLED;
	if (chain->told < chain->wanted) {
		weir_pending_release(chain->handle);
		chain->failed += weir_queue_start(chain->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, chain->items, 1, cancel_another,
		                                  chain, &chain->handle, NULL) != WEIR_OK;
		weir_pending_cancel(chain->handle, NULL);
	}
	chain->inside--;
}

static void *cancel_first(void *context)
{
	struct chain *chain = context;

	weir_pending_cancel(chain->handle, NULL);
	return NULL;
}

Test(completions, cancelled_operations_follow_each_other_on_a_small_stack)
{
	struct chain chain = {.queue = fifo(1), .wanted = MILLION / 4};

	cr_assert_eq(weir_queue_start(chain.queue, WEIR_QUEUE_OP_DEQUEUE_MANY, chain.items, 1, cancel_another, &chain,
	                              &chain.handle, NULL),
	             WEIR_OK);
	on_a_small_stack(cancel_first, &chain);
	cr_expect_eq(chain.told, chain.wanted);
	cr_expect_eq(chain.failed, 0);
	cr_expect_eq(chain.nested, 0);
	weir_pending_release(chain.handle);
	destroy(chain.queue);
}

/* -- select ------------------------------------------------------------------------------------ */

struct selecting {
	struct chain chain;
	struct weir_select_case cases[2];
};

static void *select_first(void *context);

static void select_another(void *context, enum weir_status status, const weir_error *error,
                           struct weir_select_case cases[], size_t chosen)
{
	struct selecting *selecting = context;
	struct chain *chain = &selecting->chain;

	(void)error;
	begin_told(chain);
	chain->failed += status != WEIR_OK || cases[chosen].status != WEIR_OK;
	if (cases[chosen].kind == WEIR_SELECT_DEQUEUE)
		chain->failed += weir_queue_try_enqueue(chain->queue, cases[chosen].item) != WEIR_OK;
	if (chain->told < chain->wanted)
		(void)select_first(selecting);
	chain->inside--;
}

static void *select_first(void *context)
{
	struct selecting *selecting = context;

	selecting->chain.failed += weir_select_start(selecting->cases, 2, select_another, selecting, NULL, NULL) != WEIR_OK;
	return NULL;
}

Test(completions, selects_follow_each_other_on_a_small_stack)
{
	struct selecting selecting = {.chain = {.queue = fifo(BACKLOG + 1), .wanted = MILLION}};
	weir_queue *never = fifo(1);

	put(selecting.chain.queue, 1, BACKLOG);
	selecting.cases[0] = (struct weir_select_case){.queue = never, .kind = WEIR_SELECT_DEQUEUE};
	selecting.cases[1] = (struct weir_select_case){.queue = selecting.chain.queue, .kind = WEIR_SELECT_DEQUEUE};
	on_a_small_stack(select_first, &selecting);
	cr_expect_eq(selecting.chain.told, MILLION);
	cr_expect_eq(selecting.chain.failed, 0);
	cr_expect_eq(selecting.chain.nested, 0);
	destroy(never);
	destroy(selecting.chain.queue);
}

/* -- tensors ----------------------------------------------------------------------------------- */

static const struct weir_tensor_component one_number = {.dtype = WEIR_I32, .shape = &scalar_shape};

struct tensor_chain {
	struct chain chain;
	weir_tensor_queue *queue;
	weir_staging *staging;
	weir_map_staging *map;
	weir_barrier *barrier;
	weir_var *var;
	weir_tensor *tensor;
	uint32_t batch;
};

static void *put_or_take_tensor(void *context);

static void tensor_moved(void *context, enum weir_status status, const weir_error *error, weir_tensor *const tuple[],
                         size_t count)
{
	struct tensor_chain *c = context;

	(void)error;
	begin_told(&c->chain);
	c->chain.failed += status != WEIR_OK;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tuple[i]);
	if (c->chain.told < c->chain.wanted)
		(void)put_or_take_tensor(c);
	c->chain.inside--;
}

static void *put_or_take_tensor(void *context)
{
	struct tensor_chain *c = context;
	enum weir_status status;

	switch (c->chain.told % 4) {
	case 0:
	case 1: status = weir_tensor_queue_start_enqueue(c->queue, &c->tensor, 1, tensor_moved, c, NULL, NULL); break;
	case 2: status = weir_tensor_queue_start_dequeue(c->queue, tensor_moved, c, NULL, NULL); break;
	default:
		status =
			weir_tensor_queue_start_dequeue_many(c->queue, WEIR_QUEUE_OP_DEQUEUE_MANY, 1, tensor_moved, c, NULL, NULL);
	}
	c->chain.failed += status != WEIR_OK;
	return NULL;
}

static void expect_told(struct tensor_chain *c)
{
	cr_expect_eq(c->chain.told, c->chain.wanted);
	cr_expect_eq(c->chain.failed, 0);
	cr_expect_eq(c->chain.nested, 0);
	weir_tensor_release(c->tensor);
}

Test(completions, operations_of_a_tensor_queue_follow_each_other_on_a_small_stack)
{
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 2,
	                                            .components = &one_number, .component_count = 1};
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .tensor = number(1)};

	cr_assert_eq(weir_tensor_queue_create(&options, &c.queue, NULL), WEIR_OK);
	on_a_small_stack(put_or_take_tensor, &c);
	expect_told(&c);
	cr_expect_eq(weir_tensor_queue_destroy(c.queue, NULL), WEIR_OK);
}

static void *stage_another(void *context);

static void staged(void *context, enum weir_status status, const weir_error *error, weir_tensor **tuple, size_t count)
{
	struct tensor_chain *c = context;

	(void)error;
	begin_told(&c->chain);
	c->chain.failed += status != WEIR_OK;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tuple[i]);
	if (c->chain.told < c->chain.wanted)
		(void)stage_another(c);
	c->chain.inside--;
}

static void *stage_another(void *context)
{
	struct tensor_chain *c = context;
	enum weir_status status;

	switch (c->chain.told % 3) {
	case 0: status = weir_staging_start_put(c->staging, &c->tensor, 1, staged, c, NULL, NULL); break;
	case 1: status = weir_staging_start_peek(c->staging, 0, staged, c, NULL, NULL); break;
	default: status = weir_staging_start_get(c->staging, staged, c, NULL, NULL);
	}
	c->chain.failed += status != WEIR_OK;
	return NULL;
}

static weir_staging *staging_area(void)
{
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .capacity = 1, .components = &one_number,
	                                       .component_count = 1};
	weir_staging *staging = NULL;

	cr_assert_eq(weir_staging_create(&options, &staging, NULL), WEIR_OK);
	return staging;
}

Test(completions, operations_of_a_staging_area_follow_each_other_on_a_small_stack)
{
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .staging = staging_area(), .tensor = number(1)};

	on_a_small_stack(stage_another, &c);
	expect_told(&c);
	cr_expect_eq(weir_staging_destroy(c.staging, NULL), WEIR_OK);
}

static void *map_another(void *context);

static const size_t first_place[] = {0};

static void map_staged(void *context, enum weir_status status, const weir_error *error, int64_t key,
                       weir_tensor **tensors, size_t count)
{
	struct tensor_chain *c = context;

	(void)error, (void)key;
	begin_told(&c->chain);
	c->chain.failed += status != WEIR_OK;
	for (size_t i = 0; i < count; i++)
		weir_tensor_release(tensors[i]);
	if (c->chain.told < c->chain.wanted)
		(void)map_another(c);
	c->chain.inside--;
}

static void *map_another(void *context)
{
	struct tensor_chain *c = context;
	enum weir_status status;

	switch (c->chain.told % 4) {
	case 0:
	case 2:
		status = weir_map_staging_start_put(c->map, 7, first_place, &c->tensor, 1, map_staged, c, NULL, NULL);
		break;
	case 1: status = weir_map_staging_start_get(c->map, 7, first_place, 1, map_staged, c, NULL, NULL); break;
	default: status = weir_map_staging_start_get_any(c->map, first_place, 1, map_staged, c, NULL, NULL);
	}
	c->chain.failed += status != WEIR_OK;
	return NULL;
}

static weir_map_staging *map_area(void)
{
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .components = &one_number,
	                                           .component_count = 1};
	weir_map_staging *map = NULL;

	cr_assert_eq(weir_map_staging_create(&options, &map, NULL), WEIR_OK);
	return map;
}

Test(completions, operations_of_a_map_staging_area_follow_each_other_on_a_small_stack)
{
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .map = map_area(), .tensor = number(1)};

	on_a_small_stack(map_another, &c);
	expect_told(&c);
	cr_expect_eq(weir_map_staging_destroy(c.map, NULL), WEIR_OK);
}

static void *take_none(void *context);

static void none_taken(void *context, enum weir_status status, const weir_error *error,
                       const struct weir_barrier_batch *batch)
{
	struct tensor_chain *c = context;

	(void)error;
	begin_told(&c->chain);
	c->chain.failed += status != WEIR_OK || batch->count != 0;
	if (status == WEIR_OK) {
		weir_tensor_release(batch->indices);
		weir_tensor_release(batch->keys);
		weir_tensor_release(batch->values[0]);
	}
	if (c->chain.told < c->chain.wanted)
		(void)take_none(c);
	c->chain.inside--;
}

static void *take_none(void *context)
{
	struct tensor_chain *c = context;

	c->chain.failed += weir_barrier_start_take_many(c->barrier, 0, 0, none_taken, c, NULL, NULL) != WEIR_OK;
	return NULL;
}

static weir_barrier *a_barrier(void)
{
	struct weir_barrier_options options = {WEIR_BARRIER_OPTIONS_INIT, .components = &one_number, .component_count = 1};
	weir_barrier *barrier = NULL;

	cr_assert_eq(weir_barrier_create(&options, &barrier, NULL), WEIR_OK);
	return barrier;
}

Test(completions, takes_from_a_barrier_follow_each_other_on_a_small_stack)
{
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .barrier = a_barrier()};

	on_a_small_stack(take_none, &c);
	expect_told(&c);
	cr_expect_eq(weir_barrier_destroy(c.barrier, NULL), WEIR_OK);
}

static void *wait_for_newer(void *context);

static void newer(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	struct tensor_chain *c = context;

	(void)error;
	begin_told(&c->chain);
	c->chain.failed += status != WEIR_OK;
	weir_read_release(read);
	if (c->chain.told < c->chain.wanted)
		(void)wait_for_newer(c);
	c->chain.inside--;
}

static void *wait_for_newer(void *context)
{
	struct tensor_chain *c = context;

	c->chain.failed += weir_var_start_wait(c->var, 0, newer, c, NULL, NULL) != WEIR_OK;
	return NULL;
}

static weir_var *a_variable(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I32};
	weir_tensor *first = number(0);
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(first);
	return var;
}

Test(completions, waits_for_a_variable_follow_each_other_on_a_small_stack)
{
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .var = a_variable()};

	on_a_small_stack(wait_for_newer, &c);
	expect_told(&c);
	cr_expect_eq(weir_var_destroy(c.var, NULL), WEIR_OK);
}

/* -- critical sections ------------------------------------------------------------------------- */

struct entering {
	struct chain chain;
	weir_critical_section *section;
	weir_pool *pool;
};

static enum weir_status inside(void *context, weir_error *error)
{
	(void)context, (void)error;
	return WEIR_OK;
}

static void enter_another(void *context, enum weir_status status, const weir_error *error)
{
	struct entering *e = context;

	(void)error;
	begin_told(&e->chain);
	e->chain.failed += status != WEIR_OK;
	if (e->chain.told < e->chain.wanted)
		e->chain.failed +=
			weir_critical_section_start(e->section, e->pool, inside, e, enter_another, NULL, NULL) != WEIR_OK;
	e->chain.inside--;
}

static void *enter_first(void *context)
{
	struct entering *e = context;

	e->chain.failed +=
		weir_critical_section_start(e->section, e->pool, inside, e, enter_another, NULL, NULL) != WEIR_OK;
	(void)weir_pool_help(e->pool, SIZE_MAX);
	return NULL;
}

Test(completions, executions_of_a_critical_section_follow_each_other_on_a_small_stack)
{
	struct weir_pool_options options = {WEIR_POOL_OPTIONS_INIT, .flags = WEIR_POOL_NO_THREADS};
	struct entering e = {.chain = {.wanted = MILLION}};

	cr_assert_eq(weir_pool_create(&options, &e.pool, NULL), WEIR_OK);
	cr_assert_eq(weir_critical_section_create(NULL, &e.section, NULL), WEIR_OK);
	on_a_small_stack(enter_first, &e);
	cr_expect_eq(e.chain.told, e.chain.wanted);
	cr_expect_eq(e.chain.failed, 0);
	cr_expect_eq(e.chain.nested, 0);
	cr_expect_eq(weir_critical_section_destroy(e.section, NULL), WEIR_OK);
	cr_expect_eq(weir_pool_destroy(e.pool, NULL), WEIR_OK);
}

/* -- when they are told ------------------------------------------------------------------------ */

enum { STORY = 8 };

/* What happened, in order: a letter each. */
struct story {
	char text[STORY + 1];
	size_t length;
	weir_queue *queues[3];
	void *items[3];
	enum weir_status refused;
	weir_error error;
	weir_pending *op;
};

static void write_down(struct story *story, char letter)
{
	if (story->length < STORY)
		story->text[story->length++] = letter;
}

static void tell_b(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items, (void)done;
	write_down(context, status == WEIR_OK ? 'b' : 'x');
}

static void tell_c(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items, (void)done;
	write_down(context, status == WEIR_OK ? 'c' : 'y');
}

/* What it starts, and what it lets go on, is done at once; it is told afterwards. */
static void tell_a(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct story *story = context;

	(void)status, (void)error, (void)items, (void)done;
	write_down(story, '(');
	story->items[1] = item(7);
	if (weir_queue_start(story->queues[1], WEIR_QUEUE_OP_ENQUEUE, &story->items[1], 1, tell_b, story, NULL, NULL) ==
	        WEIR_OK &&
	    weir_queue_size_approx(story->queues[1]) == 1)
		write_down(story, '1');
	if (weir_queue_try_enqueue(story->queues[2], item(9)) == WEIR_OK && weir_queue_size_approx(story->queues[2]) == 0 &&
	    number_of(story->items[2]) == 9)
		write_down(story, '2');
	story->refused = weir_queue_destroy(story->queues[2], &story->error);
	write_down(story, ')');
}

static void start_story(struct story *story, int queue, weir_queue_done_fn *done)
{
	cr_assert_eq(weir_queue_start(story->queues[queue], WEIR_QUEUE_OP_DEQUEUE_MANY, &story->items[queue], 1, done,
	                              story, NULL, NULL),
	             WEIR_OK);
}

Test(completions, what_ends_inside_of_one_is_done_at_once_and_told_after_it_in_order)
{
	struct story story = {.queues = {fifo(1), fifo(1), fifo(1)}};

	start_story(&story, 0, tell_a);
	start_story(&story, 2, tell_c);
	put(story.queues[0], 1, 1);
	cr_expect_str_eq(story.text, "(12)bc");
	cr_expect_eq(story.refused, WEIR_FAILED_PRECONDITION, "destroyed while a completion was due");
	cr_expect_not_null(strstr(story.error.message, "1 waiting operation"), "%s", story.error.message);
	for (int i = 0; i < 3; i++)
		destroy(story.queues[i]);
}

/* Waits, though it must not, for what only a completion behind it brings. */
static void wait_for_b(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct story *story = context;
	void *got = NULL;

	(void)status, (void)error, (void)items, (void)done;
	write_down(story, '(');
	(void)weir_queue_try_enqueue(story->queues[1], item(3));
	if (weir_queue_dequeue(story->queues[2], &got, in_good_time(), NULL, NULL) == WEIR_OK && number_of(got) == 4)
		write_down(story, '4');
	write_down(story, ')');
}

static void bring_four(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct story *story = context;

	(void)status, (void)error, (void)items, (void)done;
	write_down(story, 'b');
	(void)weir_queue_try_enqueue(story->queues[2], item(4));
}

Test(completions, one_that_waits_in_a_queue_lets_those_behind_it_be_told)
{
	struct story story = {.queues = {fifo(1), fifo(1), fifo(1)}};

	start_story(&story, 0, wait_for_b);
	start_story(&story, 1, bring_four);
	put(story.queues[0], 1, 1);
	cr_expect_str_eq(story.text, "(b4)");
	for (int i = 0; i < 3; i++)
		destroy(story.queues[i]);
}

/* Ends its thread, in one way or the other, when b and c are due. */
static void end_thread(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct story *story = context;

	(void)status, (void)error, (void)items, (void)done;
	write_down(story, '(');
	(void)weir_queue_try_enqueue(story->queues[1], item(1));
	(void)weir_queue_try_enqueue(story->queues[2], item(1));
	if (story->op == NULL)
		pthread_exit(NULL);
	(void)pthread_cancel(pthread_self());
	pthread_testcancel();
}

static void *let_it_end(void *context)
{
	struct story *story = context;

	(void)weir_queue_try_enqueue(story->queues[0], item(1));
	write_down(story, '!');
	return NULL;
}

static void expect_told_at_the_end(int is_cancelled)
{
	struct story story = {.queues = {fifo(1), fifo(1), fifo(1)}};
	pthread_t thread;

	start_story(&story, 0, end_thread);
	start_story(&story, 1, tell_b);
	if (is_cancelled)
		cr_assert_eq(weir_queue_start(story.queues[2], WEIR_QUEUE_OP_DEQUEUE_MANY, &story.items[2], 1, tell_c, &story,
		                              &story.op, NULL),
		             WEIR_OK);
	else
		start_story(&story, 2, tell_c);
	cr_assert_eq(pthread_create(&thread, NULL, let_it_end, &story), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_str_eq(story.text, "(bc");
	weir_pending_release(story.op);
	/* The next thread, which takes over what the last one left of itself, tells at once. */
	story.length = 0;
	memset(story.text, 0, sizeof(story.text));
	start_story(&story, 1, tell_b);
	put(story.queues[1], 1, 1);
	cr_expect_str_eq(story.text, "b");
	for (int i = 0; i < 3; i++)
		destroy(story.queues[i]);
}

Test(completions, what_is_due_on_a_thread_that_exits_inside_of_one_is_told)
{
	expect_told_at_the_end(0);
}

Test(completions, what_is_due_on_a_thread_that_is_cancelled_inside_of_one_is_told)
{
	expect_told_at_the_end(1);
}

/* -- what a call still had to do when one of its completions ended the thread ------------------- */

static void exit_thread(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)status, (void)error, (void)items, (void)done;
	write_down(context, '(');
	pthread_exit(NULL);
}

/* The operation of a completion that does not return is lost. */
static void leave_things_behind(void)
{
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
	__lsan_disable();
#endif
}

static void leave_nothing_more_behind(void)
{
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
	__lsan_enable();
#endif
}

static void run_story(void *(*body)(void *), struct story *story)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, body, story), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* The operations have ended, so no queue is in use. */
static void end_story(struct story *story)
{
	weir_pending_release(story->op);
	for (size_t i = 0; i < sizeof(story->queues) / sizeof(story->queues[0]) && story->queues[i] != NULL; i++)
		destroy(story->queues[i]);
}

static void *put_two_at_once(void *context)
{
	struct story *story = context;
	void *two[] = {item(1), item(2)};

	(void)weir_queue_enqueue_many(story->queues[0], two, 2, 0, NULL, NULL, NULL);
	write_down(story, '!');
	return NULL;
}

Test(completions, one_that_exits_leaves_no_operation_behind_it_waiting_for_an_item_that_is_there)
{
	struct story story = {.queues = {fifo(2)}};
	void *room;

	start_story(&story, 0, exit_thread);
	cr_assert_eq(weir_queue_start(story.queues[0], WEIR_QUEUE_OP_DEQUEUE_MANY, &room, 1, tell_b, &story, NULL, NULL),
	             WEIR_OK);
	run_story(put_two_at_once, &story);
	cr_expect_str_eq(story.text, "(b");
	end_story(&story);
}

static void *take_one(void *context)
{
	struct story *story = context;

	leave_things_behind();
	start_story(story, 0, exit_thread); /* takes one, and makes room */
	write_down(story, '!');
	return NULL;
}

/* They end the thread that is ending once more. */
Test(completions, some_that_exit_one_after_the_other_are_each_told_once)
{
	struct story story = {.queues = {fifo(2), fifo(1)}};
	void *rooms[2];

	start_story(&story, 0, exit_thread);
	cr_assert_eq(
		weir_queue_start(story.queues[0], WEIR_QUEUE_OP_DEQUEUE_MANY, &rooms[0], 1, exit_thread, &story, NULL, NULL),
		WEIR_OK);
	cr_assert_eq(
		weir_queue_start(story.queues[0], WEIR_QUEUE_OP_DEQUEUE_MANY, &rooms[1], 1, tell_b, &story, NULL, NULL),
		WEIR_OK);
	run_story(put_two_at_once, &story);
	cr_expect_str_eq(story.text, "((");
	put(story.queues[0], 1, 1);
	cr_expect_str_eq(story.text, "((b");
	end_story(&story);
}

Test(completions, one_that_exits_inside_of_its_start_lets_those_go_on_for_whom_it_made_room)
{
	struct story story = {.queues = {fifo(1)}};
	void *more = item(3);

	put(story.queues[0], 1, 1);
	cr_assert_eq(weir_queue_start(story.queues[0], WEIR_QUEUE_OP_ENQUEUE, &more, 1, tell_b, &story, NULL, NULL),
	             WEIR_OK);
	run_story(take_one, &story);
	cr_expect_str_eq(story.text, "(b");
	end_story(&story);
}

static void *put_three(void *context)
{
	struct story *story = context;
	void *three[] = {item(1), item(2), item(3)};

	(void)weir_queue_enqueue_many(story->queues[0], three, 3, in_good_time(), NULL, NULL, NULL);
	write_down(story, '!');
	return NULL;
}

Test(completions, a_call_whose_thread_exits_in_one_moves_nothing_afterwards)
{
	struct story story = {.queues = {fifo(1)}};
	void *got;

	start_story(&story, 0, exit_thread);
	run_story(put_three, &story);
	cr_expect_str_eq(story.text, "(");
	/* The array was the thread's. */
	cr_expect_leq(weir_queue_size_approx(story.queues[0]), 1);
	while (weir_queue_try_dequeue(story.queues[0], &got) == WEIR_OK)
		cr_expect_eq(number_of(got), 2);
	end_story(&story);
}

static void tell_select(void *context, enum weir_status status, const weir_error *error,
                        struct weir_select_case cases[], size_t chosen)
{
	(void)error;
	write_down(context, status == WEIR_OK && cases[chosen].status == WEIR_OK ? 's' : 'x');
}

Test(completions, one_that_exits_leaves_no_select_undecided)
{
	struct story story = {.queues = {fifo(2), fifo(1)}};
	struct weir_select_case cases[] = {{.queue = story.queues[0], .kind = WEIR_SELECT_DEQUEUE},
	                                   {.queue = story.queues[1], .kind = WEIR_SELECT_DEQUEUE}};

	cr_assert_eq(weir_select_start(cases, 2, tell_select, &story, NULL, NULL), WEIR_OK);
	start_story(&story, 0, exit_thread);
	run_story(put_two_at_once, &story);
	cr_expect_str_eq(story.text, "(s");
	end_story(&story);
}

static void tell_cancelled(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)error, (void)items, (void)done;
	write_down(context, status == WEIR_CANCELLED ? 'c' : 'x');
}

static void *cancel_it(void *context)
{
	struct story *story = context;

	weir_pending_cancel(story->op, NULL);
	write_down(story, '!');
	return NULL;
}

/* A batch that has one of two items returns it, and the dequeue behind it, which takes it, ends the thread. */
Test(completions, what_is_being_cancelled_when_one_exits_is_told)
{
	struct story story = {.queues = {fifo(1)}};
	void *room[2];

	cr_assert_eq(
		weir_queue_start(story.queues[0], WEIR_QUEUE_OP_DEQUEUE_MANY, room, 2, tell_cancelled, &story, &story.op, NULL),
		WEIR_OK);
	put(story.queues[0], 1, 1);
	start_story(&story, 0, exit_thread);
	run_story(cancel_it, &story);
	cr_expect_str_eq(story.text, "(c");
	end_story(&story);
}

static void release_and_exit(void *context, void *data)
{
	(void)context, (void)data;
	pthread_exit(NULL);
}

/* Its release ends the thread that frees it. */
static weir_var *fatal_variable(void)
{
	static int64_t fatal;
	const weir_shape scalar = {.rank = 0};
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "fatal"};
	weir_tensor *first;
	weir_var *var;

	cr_assert_eq(weir_tensor_wrap(WEIR_I64, &scalar, &fatal, release_and_exit, NULL, NULL, &first), WEIR_OK);
	cr_assert_eq(weir_var_create(first, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(first);
	return var;
}

struct fatal_story {
	struct story story; /* first */
	weir_var *var;
};

static void *retire_the_fatal_one(void *context)
{
	struct fatal_story *fatal = context;
	weir_tensor *next;

	leave_things_behind();
	if (weir_tensor_scalar_i64(1, &next) == WEIR_OK &&
	    weir_var_assign(fatal->var, next, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK) {
		weir_tensor_release(next);
		(void)put_two_at_once(&fatal->story);
	}
	return NULL;
}

/* To serve the dequeue of the second queue retires its operation, and then collects. */
static void serve_and_collect(void *context, enum weir_status status, const weir_error *error, void **items,
                              size_t done)
{
	struct story *story = context;

	(void)status, (void)error, (void)items, (void)done;
	write_down(story, '(');
	weiri_store_relaxed(&weiri_record_mine->since_collection, UINT32_C(1) << 30);
	(void)weir_queue_try_enqueue(story->queues[1], item(1));
	write_down(story, ')');
}

Test(completions, a_release_function_that_exits_in_a_call_of_one_loses_what_that_call_had_claimed_alone)
{
	struct fatal_story fatal = {.story = {.queues = {fifo(2), fifo(1)}}, .var = fatal_variable()};
	struct story *story = &fatal.story;
	void *room;

	leave_things_behind();
	start_story(story, 0, serve_and_collect);
	start_story(story, 1, tell_b);
	leave_nothing_more_behind();
	cr_assert_eq(weir_queue_start(story->queues[0], WEIR_QUEUE_OP_DEQUEUE_MANY, &room, 1, tell_c, story, NULL, NULL),
	             WEIR_OK);
	run_story(retire_the_fatal_one, story);
	cr_expect_str_eq(story->text, "(c");
	destroy(story->queues[0]);
	cr_expect_eq(weir_queue_destroy(story->queues[1], NULL), WEIR_FAILED_PRECONDITION, "the claim stays");
	cr_assert_eq(weir_var_destroy(fatal.var, NULL), WEIR_OK);
}

/* In the child both are told what is due, b and c; the parent goes on with its own. */
static void fork_inside(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	struct story *story = context;

	tell_a(context, status, error, items, done);
	story->refused = (enum weir_status)fork();
}

Test(completions, both_sides_of_a_fork_inside_of_one_tell_what_is_due)
{
	struct story story = {.queues = {fifo(1), fifo(1), fifo(1)}};
	int child, how = -1;

	start_story(&story, 0, fork_inside);
	start_story(&story, 2, tell_c);
	(void)weir_queue_try_enqueue(story.queues[0], item(1));
	child = (int)story.refused;
	if (child == 0)
		_exit(strcmp(story.text, "(12)bc") == 0 ? 0 : 1);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, &how, 0), child);
	cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == 0, "the child ended with %d", how);
	cr_expect_str_eq(story.text, "(12)bc");
	for (int i = 0; i < 3; i++)
		destroy(story.queues[i]);
}

/* -- a completion that ends what it belongs to ------------------------------------------------- */

struct ending {
	weir_queue *queue;
	weir_staging *staging;
	weir_map_staging *map;
	weir_barrier *barrier;
	weir_var *var;
	int left; /* operations whose completions are to come, this one included */
	int ended;
	void *items[4];
};

/* The last of them destroys it. */
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

/* Full, with an enqueue that waits, and will try to destroy it; or empty, with such a dequeue. */
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
	cr_expect(ending.ended, "inside of the start");
	ending = (struct ending){.staging = staging_area(), .left = 1};
	cr_assert_eq(weir_staging_start_get(ending.staging, end_areas, &ending, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_staging_put(ending.staging, &tensor, 1, in_good_time(), NULL, NULL), WEIR_OK);
	cr_expect(ending.ended, "inside of the put");
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

static void end_barrier(void *context, enum weir_status status, const weir_error *error,
                        const struct weir_barrier_batch *batch)
{
	struct ending *ending = context;

	(void)error, (void)batch;
	ending->ended = status == WEIR_OUT_OF_RANGE && weir_barrier_destroy(ending->barrier, NULL) == WEIR_OK;
}

Test(completions, a_barrier_is_destroyed_inside_of_its_close)
{
	struct ending ending = {.barrier = a_barrier()};

	cr_assert_eq(weir_barrier_start_take_many(ending.barrier, 1, 0, end_barrier, &ending, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_barrier_close(ending.barrier, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
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

/* What this thread has retired is freed: it collects for every 256 that it retires. */
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

/* A watch has no completion of users: it ends at once, also inside of one. */
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
