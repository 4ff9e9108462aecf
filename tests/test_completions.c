/*
 * test_completions.c - the order of telling: operations that end inside of a completion are done at
 * once and told after it, even if the completion waits, ends its thread, or forks.
 */
#include "queue_kit.h"

#include <sys/wait.h>

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

/* What this completion starts, and what it serves, is done at once. It is told afterwards. */
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

/* Waits, though a completion must not, for what only a completion behind it brings. */
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

/* Ends its thread, in one of the two ways, while b and c are due. */
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
	/* The next thread, which adopts the record of the last one, tells at once. */
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

/* b and c are told both in the child and in the parent. */
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
