/*
 * test_completions.c - the order of completions: an operation that ends inside a completion
 * takes effect at once, and its own completion runs after the other one, even if that ends its
 * thread or forks. Only a completion that waits lets those behind it run.
 */
#include "queue_kit.h"

#include <sys/wait.h>
#include <weir/select.h>
#include <weir/var.h>

#include "reclaim/settle.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/lsan_interface.h>
#endif

enum { STORY = 8 };

/* What happened, in order, with a letter for each event. */
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

/*
 * The operations that this completion starts and serves take effect at once. Their completions run
 * afterwards.
 */
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

/* Waits, although a completion must not, for an item that only a completion behind it brings. */
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

/* Ends its thread, by an exit or a cancellation, while b and c are due. */
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
	/* A completion on another thread runs at once. */
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

/* -- what a call still had to do when one of its completions ended the thread ------------------ */

static void exit_thread(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	(void)status, (void)error, (void)items, (void)done;
	write_down(context, '(');
	pthread_exit(NULL);
}

/* The operation of a completion that does not return leaks. */
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

/* The second one calls pthread_exit() on a thread that is already ending. */
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
	/* The array was on the stack of the ended thread, so at most item 2 was put. */
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

/*
 * A cancelled batch returns the one item that it has. The dequeue behind it takes the item, and its
 * completion ends the thread.
 */
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

/* The release of its first value ends the thread that frees the value. */
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
	struct story story; /* must be first */
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

/* Serving the dequeue of the second queue retires its operation, and that begins a collection. */
static void serve_and_collect(void *context, enum weir_status status, const weir_error *error, void **items,
                              size_t done)
{
	struct story *story = context;

	(void)status, (void)error, (void)items, (void)done;
	write_down(story, '(');
	/* The collection then settles what other threads announced long ago, and frees the fatal value. */
	weiri_settle_after_fork(); /* gives it a turn */
	(void)weiri_fetch_add_seq_cst(&weiri_era, UINT64_C(8));
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

/* The completions b and c run both in the child and in the parent. */
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
