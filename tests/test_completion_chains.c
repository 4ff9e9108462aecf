/*
 * test_completion_chains.c - operations of every kind, each started by the completion of the one
 * before: any number of them follow each other on a small stack.
 */
#include "completion_kit.h"

#include <limits.h>
#include <weir/critical_section.h>
#include <weir/select.h>
#include <weir/watch.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || __has_feature(thread_sanitizer) || \
	__has_feature(address_sanitizer)
/* A sanitizer makes frames several times as large, and calls several times as slow. */
enum { STACK = 512 << 10, SHARE = 50 };
#else
enum { STACK = 64 << 10, SHARE = 1 };
#endif
enum { TEN_MILLION = 10000000 / SHARE, MILLION = 1000000 / SHARE, BACKLOG = 64 };

/* Runs `body` on a thread with a small stack. */
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

/* Takes items from a queue, and puts each of them back. */
struct chain {
	weir_queue *queue;
	void *items[1];
	size_t wanted, told, failed;
	/* The number of completions that run now, and how often one began inside another. */
	int inside, nested;
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
	cr_expect_eq(chain.told, wanted, "%zu of %zu completions ran", chain.told, wanted);
	cr_expect_eq(chain.failed, 0);
	cr_expect_eq(chain.nested, 0, "a completion began inside another");
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

/* Enqueues, dequeues, and so on. */
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

/*
 * There are two of these. The completion of each puts the item that it took into the queue in which
 * the next operation of the other waits.
 */
struct player {
	struct chain chain;
	struct player *other;
	int waits; /* puts the item by a call that can wait for room */
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

/* Waits in a queue that stays empty. Its completion starts the next operation and cancels that. */
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

struct tensor_chain {
	struct chain chain;
	weir_tensor_queue *queue;
	weir_staging *staging;
	weir_map_staging *map;
	weir_keyed_join *join;
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

Test(completions, operations_of_a_staging_area_follow_each_other_on_a_small_stack)
{
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .staging = staging_area(), .tensor = number(1)};

	on_a_small_stack(stage_another, &c);
	expect_told(&c);
	cr_expect_eq(weir_staging_destroy(c.staging, NULL), WEIR_OK);
}

static void *map_another(void *context);

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

Test(completions, operations_of_a_map_staging_area_follow_each_other_on_a_small_stack)
{
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .map = map_area(), .tensor = number(1)};

	on_a_small_stack(map_another, &c);
	expect_told(&c);
	cr_expect_eq(weir_map_staging_destroy(c.map, NULL), WEIR_OK);
}

static void *take_none(void *context);

static void none_taken(void *context, enum weir_status status, const weir_error *error,
                       const struct weir_keyed_join_batch *batch)
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

	c->chain.failed += weir_keyed_join_start_take_many(c->join, 0, 0, none_taken, c, NULL, NULL) != WEIR_OK;
	return NULL;
}

Test(completions, takes_from_a_keyed_join_follow_each_other_on_a_small_stack)
{
	struct tensor_chain c = {.chain = {.wanted = MILLION}, .join = a_keyed_join()};

	on_a_small_stack(take_none, &c);
	expect_told(&c);
	cr_expect_eq(weir_keyed_join_destroy(c.join, NULL), WEIR_OK);
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
