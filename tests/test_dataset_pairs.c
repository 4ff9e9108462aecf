/*
 * test_dataset_pairs.c - what one thread of a program hands to another by a dataset, and by nothing else: the
 * threads begin together, and tell each other when to go on without any memory order. So ThreadSanitizer sees
 * a race if the dataset lacks one.
 */
#include "dataset_kit.h"

#include <sched.h>
#include <weir/time.h>

/* How far the threads are. */
struct play {
	_Atomic(uint32_t) act;
	weir_dataset *dataset;
	_Atomic(uint32_t) mapped;
	int64_t written[2], disposed;
};

static void await(struct play *play, uint32_t act)
{
	uint64_t deadline = weir_deadline_in(UINT64_C(100000000000));

	/* [relaxed] it must order nothing. */
	while (weiri_load_relaxed(&play->act) != act) {
		cr_assert_lt(weir_now_ns(), deadline, "the other thread did not go on");
		(void)sched_yield();
	}
}

static void go_on(struct play *play, uint32_t act)
{
	weiri_store_relaxed(&play->act, act); /* [relaxed] it must order nothing. */
}

static void run_both(struct play *play, void *(*first)(void *), void *(*second)(void *))
{
	pthread_t threads[2];

	cr_assert_eq(pthread_create(&threads[0], NULL, first, play), 0);
	cr_assert_eq(pthread_create(&threads[1], NULL, second, play), 0);
	for (size_t i = 0; i < 2; i++)
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
}

/* -- caches ------------------------------------------------------------------------------------ */

enum { NUMBERS = 10 };

static enum weir_status count_calls(void *context, weir_tensor *const in[], weir_tensor *out[], weir_error *error)
{
	(void)error;
	(void)weiri_fetch_add_relaxed(&((struct play *)context)->mapped, 1u);
	out[0] = weir_tensor_retain(in[0]);
	return WEIR_OK;
}

static void read_all(weir_iterator *iterator)
{
	int64_t number = -1;

	for (int64_t i = 0; i < NUMBERS; i++) {
		cr_assert_eq(data_next(iterator, &number, NULL), WEIR_OK);
		cr_expect_eq(number, i);
	}
	cr_expect_eq(data_next(iterator, &number, NULL), WEIR_OUT_OF_RANGE);
}

static void *fill_cache(void *context)
{
	struct play *play = context;
	weir_iterator *iterator = data_iterate(play->dataset, NULL);

	read_all(iterator);
	go_on(play, 1);
	await(play, 2);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	return NULL;
}

static void *read_cache(void *context)
{
	struct play *play = context;
	weir_iterator *iterator;

	await(play, 1);
	iterator = data_iterate(play->dataset, NULL);
	read_all(iterator);
	cr_expect_eq(weir_iterator_destroy(iterator, NULL), WEIR_OK);
	go_on(play, 2);
	return NULL;
}

Test(dataset_pairs, a_cache_gives_its_elements_to_another_thread)
{
	struct play play = {.act = 0};

	play.dataset = data_cache(data_map(data_range(0, NUMBERS), count_calls, &play, 1, 0));
	run_both(&play, fill_cache, read_cache);
	cr_expect_eq(weiri_load_relaxed(&play.mapped), NUMBERS, "the second thread reads what is kept");
	weir_dataset_release(play.dataset);
}

/* -- references -------------------------------------------------------------------------------- */

static void dispose(void *context)
{
	struct play *play = context;

	play->disposed = play->written[0] + play->written[1];
}

static void *leave_first(void *context)
{
	struct play *play = context;

	play->written[0] = 1;
	weir_dataset_release(play->dataset);
	go_on(play, 1);
	return NULL;
}

static void *leave_last(void *context)
{
	struct play *play = context;

	play->written[1] = 2;
	await(play, 1);
	weir_dataset_release(play->dataset);
	return NULL;
}

Test(dataset_pairs, dispose_sees_what_all_holders_did)
{
	struct play play = {.act = 0};
	struct weir_dataset_options options = {WEIR_DATASET_OPTIONS_INIT, .dispose = dispose};
	weir_dataset *input = data_range(0, NUMBERS);

	cr_assert_eq(weir_dataset_map(input, count_calls, &play, &options, &play.dataset, NULL), WEIR_OK);
	weir_dataset_release(input);
	(void)weir_dataset_retain(play.dataset);
	run_both(&play, leave_first, leave_last);
	cr_expect_eq(play.disposed, 1 + 2);
}
