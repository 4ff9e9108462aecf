/*
 * test_tensor_select.c - one of several tensor queue operations.
 */
#include <weir/flow/tensor_select.h>

#include "late_failure.h"
#include "tensor_queue_kit.h"

static struct weir_tensor_select_case dequeue_of(weir_tensor_queue *queue, weir_tensor *tuple[], size_t count)
{
	return (struct weir_tensor_select_case){queue, WEIR_SELECT_DEQUEUE, tuple, count, WEIR_INTERNAL};
}

static struct weir_tensor_select_case enqueue_of(weir_tensor_queue *queue, weir_tensor *tuple[], size_t count)
{
	return (struct weir_tensor_select_case){queue, WEIR_SELECT_ENQUEUE, tuple, count, WEIR_INTERNAL};
}

Test(tensor_select, takes_the_tuple_of_the_queue_that_has_one)
{
	weir_tensor_queue *empty = scalar_queue(2), *pairs = pair_queue(2, WEIR_QUEUE_FIFO);
	weir_tensor *one[1] = {NULL}, *two[2] = {NULL, NULL};
	struct weir_tensor_select_case cases[] = {dequeue_of(empty, one, 1), dequeue_of(pairs, two, 2)};
	size_t chosen = 9;

	put_tuple(pairs, numbers_of(vector_shape(2), 10), number(7));
	cr_assert_eq(weir_tensor_select(cases, 2, 0, NULL, &chosen, NULL), WEIR_OK);
	cr_expect_eq(chosen, 1);
	cr_expect_eq(cases[1].status, WEIR_OK);
	cr_expect_eq(cases[0].status, WEIR_INTERNAL, "untouched");
	expect_values(two[0], vector_shape(2), (int32_t[]){10, 11});
	cr_expect_eq(value_of(two[1]), 7);
	cr_expect_null(one[0]);
	weir_tensor_release(two[0]);
	weir_tensor_release(two[1]);
	destroy_tensors(empty);
	destroy_tensors(pairs);
	expect_no_tensor_left();
}

/* The queue takes its own references to the tuple that goes in. The other case keeps none. */
Test(tensor_select, puts_one_tuple_and_keeps_no_reference_to_the_other)
{
	weir_tensor_queue *full = scalar_queue(1), *free_one = scalar_queue(1);
	weir_tensor *first[1] = {number(1)}, *second[1] = {number(2)};
	struct weir_tensor_select_case cases[] = {enqueue_of(full, first, 1), enqueue_of(free_one, second, 1)};
	size_t chosen = 9;

	put_numbers(full, 0, 1);
	cr_assert_eq(weir_tensor_select(cases, 2, 0, NULL, &chosen, NULL), WEIR_OK);
	cr_expect_eq(chosen, 1);
	weir_tensor_release(first[0]);
	weir_tensor_release(second[0]);
	cr_expect_eq(living_tensors, 2, "the tuple inside each queue");
	expect_next_numbers(full, 0, 1);
	expect_next_numbers(free_one, 2, 1);
	destroy_tensors(full);
	destroy_tensors(free_one);
	expect_no_tensor_left();
}

Test(tensor_select, without_a_case_that_can_nothing_is_touched)
{
	weir_tensor_queue *empty = scalar_queue(1), *full = scalar_queue(1);
	weir_tensor *marker = number(9), *got[1] = {marker}, *given[1] = {number(1)};
	struct weir_tensor_select_case cases[] = {dequeue_of(empty, got, 1), enqueue_of(full, given, 1)};
	weir_cancel *token;
	weir_error error;
	size_t chosen = 9;

	put_numbers(full, 0, 1);
	cr_expect_eq(weir_tensor_select(cases, 2, 0, NULL, &chosen, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_tensor_select(cases, 2, weir_deadline_in(1000000), NULL, &chosen, &error),
	             WEIR_DEADLINE_EXCEEDED);
	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(weir_tensor_select(cases, 2, in_good_time(), token, &chosen, &error), WEIR_CANCELLED);
	weir_cancel_release(token);
	cr_expect_eq(chosen, 9);
	cr_expect_eq(got[0], marker);
	cr_expect_eq(weir_tensor_queue_size_approx(empty), 0);
	cr_expect_eq(weir_tensor_queue_size_approx(full), 1);
	weir_tensor_release(marker);
	weir_tensor_release(given[0]);
	destroy_tensors(empty);
	destroy_tensors(full);
	expect_no_tensor_left();
}

Test(tensor_select, a_closed_queue_is_chosen_and_says_why)
{
	weir_tensor_queue *closed = scalar_queue(1), *empty = scalar_queue(1);
	weir_tensor *got[1] = {NULL}, *given[1] = {number(1)};
	struct weir_tensor_select_case takes[] = {dequeue_of(empty, got, 1), dequeue_of(closed, got, 1)};
	struct weir_tensor_select_case puts[] = {enqueue_of(closed, given, 1)};
	weir_error cause = {WEIR_ABORTED, "no more lines"}, error = {0};
	size_t chosen = 9;

	cr_assert_eq(weir_tensor_queue_close(closed, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	cr_expect_eq(weir_tensor_select(takes, 2, 0, NULL, &chosen, &error), WEIR_OK);
	cr_expect_eq(chosen, 1);
	cr_expect_eq(takes[1].status, WEIR_OUT_OF_RANGE);
	cr_expect_not_null(strstr(error.message, "no more lines"), "%s", error.message);
	cr_expect_null(got[0]);
	cr_expect_eq(weir_tensor_select(puts, 1, 0, NULL, &chosen, &error), WEIR_OK);
	cr_expect_eq(chosen, 0);
	cr_expect_eq(puts[0].status, WEIR_CANCELLED);
	weir_tensor_release(given[0]);
	destroy_tensors(closed);
	destroy_tensors(empty);
	expect_no_tensor_left();
}

static void expect_refused(struct weir_tensor_select_case cases[], size_t count, const char *why)
{
	weir_error error = {0};
	size_t chosen = 9;

	cr_expect_eq(weir_tensor_select(cases, count, 0, NULL, &chosen, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, why), "\"%s\" is not in \"%s\"", why, error.message);
	cr_expect_eq(chosen, 9);
}

Test(tensor_select, refuses_and_names_what_is_wrong)
{
	weir_tensor_queue *queue = scalar_queue(2);
	weir_tensor *good[1] = {number(1)}, *wrong[1] = {numbers_of(vector_shape(3), 0)}, *none[1] = {NULL};
	struct weir_tensor_select_case cases[] = {enqueue_of(queue, good, 1), enqueue_of(queue, wrong, 1)};

	expect_refused(NULL, 1, "no cases");
	expect_refused(cases, 0, "no cases");
	expect_refused(cases, 2, "case 1: queue \"test\": component 0 (label): shape must be [], got [3]");
	cases[1] = enqueue_of(queue, none, 1);
	expect_refused(cases, 2, "case 1: queue \"test\": component 0 (label) is NULL");
	cases[1] = enqueue_of(queue, good, 2);
	expect_refused(cases, 2, "case 1: queue \"test\": a tuple has 1 component, got 2");
	cases[1] = dequeue_of(queue, none, 2);
	expect_refused(cases, 2, "case 1: queue \"test\": a tuple has 1 component, room for 2");
	cases[1] = dequeue_of(queue, NULL, 1);
	expect_refused(cases, 2, "room for 0");
	cases[1] = dequeue_of(NULL, none, 1);
	expect_refused(cases, 2, "case 1: queue is NULL");
	cases[1] = (struct weir_tensor_select_case){queue, (enum weir_select_kind)7, none, 1, WEIR_OK};
	expect_refused(cases, 2, "case 1: 7 is not a kind");
	cases[0].queue = NULL;
	expect_refused(cases, 1, "case 0: queue is NULL");
	cases[0] = enqueue_of(queue, good, 1);
	cr_expect_eq(weir_tensor_select(cases, 1, 0, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	weir_tensor_release(good[0]);
	weir_tensor_release(wrong[0]);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

/* A select on a thread of its own, with a dequeue of each of two queues. */
struct waiting {
	weir_tensor_queue *queues[2];
	weir_tensor *got[2];
	size_t chosen;
	enum weir_status status;
	pthread_t thread;
};

static void *select_either(void *context)
{
	struct waiting *waiting = context;
	struct weir_tensor_select_case cases[] = {dequeue_of(waiting->queues[0], &waiting->got[0], 1),
	                                          dequeue_of(waiting->queues[1], &waiting->got[1], 1)};

	waiting->status = weir_tensor_select(cases, 2, in_good_time(), NULL, &waiting->chosen, NULL);
	return NULL;
}

Test(tensor_select, waits_for_the_first_of_two)
{
	for (size_t which = 0; which < 2; which++) {
		struct waiting waiting = {.queues = {scalar_queue(2), scalar_queue(2)}, .chosen = 9};

		cr_assert_eq(pthread_create(&waiting.thread, NULL, select_either, &waiting), 0);
		await(weiri_list_occupied(&waiting.queues[0]->queue->consumers.list) &&
		      weiri_list_occupied(&waiting.queues[1]->queue->consumers.list));
		put_numbers(waiting.queues[which], 5, 1);
		cr_assert_eq(pthread_join(waiting.thread, NULL), 0);
		cr_expect_eq(waiting.status, WEIR_OK);
		cr_expect_eq(waiting.chosen, which);
		cr_expect_eq(value_of(waiting.got[which]), 5);
		cr_expect_null(waiting.got[1 - which]);
		weir_tensor_release(waiting.got[which]);
		destroy_tensors(waiting.queues[0]);
		destroy_tensors(waiting.queues[1]);
	}
	expect_no_tensor_left();
}

/*
 * An enqueue into each of two queues, of which only the second has room, and a dequeue from the
 * second, which is empty.
 */
static enum weir_status select_with(const weir_allocator *allocator, void *context)
{
	struct late_failure late = {.under_test = NULL};
	weir_allocator memory = late_failure_hooks(&late);
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "label"};
	struct weir_tensor_queue_options options = {
		.capacity = 1, .components = &component, .component_count = 1, .allocator = &memory};
	weir_tensor_queue *full = tensor_queue_with(options), *room = tensor_queue_with(options);
	weir_tensor *given[1] = {number(1)}, *got[1] = {NULL};
	struct weir_tensor_select_case cases[] = {enqueue_of(full, given, 1), enqueue_of(room, given, 1),
	                                          dequeue_of(room, got, 1)};
	enum weir_status status;
	size_t chosen = 9;

	(void)context;
	put_numbers(full, 0, 1);
	late.under_test = allocator;
	status = weir_tensor_select(cases, 3, 0, NULL, &chosen, NULL);
	late.under_test = NULL;
	cr_assert_eq(chosen, status == WEIR_OK ? 1 : 9);
	cr_assert_eq(weir_tensor_queue_size_approx(room), status == WEIR_OK ? 1 : 0);
	weir_tensor_release(given[0]);
	destroy_tensors(full);
	destroy_tensors(room);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_assert_eq(living_tensors, 0);
	late_failure_end(&late);
	return status;
}

Test(tensor_select, survives_every_allocation_failing)
{
	cr_expect_eq(fail_each_allocation(select_with, NULL), 3, "the cases, and a tuple for each enqueue");
}
