/*
 * check_metrics.c - counters, means and histograms while they are read: no addition is counted
 * twice or omitted, a mean's sum fits its count, and stripes pass from thread to thread.
 */
#include <string.h>
#include <weir/metrics.h>

#include "model/scope.h"

enum { THREADS = 3 };

static struct scene {
	weir_counter *counter;
	weir_mean *mean;
	weir_histogram *histogram;
	weir_summary *summary;
	const char *calls[THREADS]; /* LETTERS says what each does */
	/* number of stripes; 0 in the table: one for each thread, and one for finish() */
	uint32_t own;
	int apart; /* 1: only one thread adds to the mean */
	int added[THREADS], means[THREADS];
	int64_t seen[THREADS]; /* the count that the thread read last */
} scene;

static void setup(void *context)
{
	struct weir_metrics_options options = {WEIR_METRICS_OPTIONS_INIT, .threads = scene.own};
	struct weir_histogram_options few = {WEIR_HISTOGRAM_OPTIONS_INIT, .threads = scene.own, .precision = 1,
	                                     .largest = 1};

	(void)context;
	weir_model_assert(weir_counter_create(&options, &scene.counter, NULL) == WEIR_OK);
	weir_model_assert(weir_mean_create(&options, &scene.mean, NULL) == WEIR_OK);
	weir_model_assert(weir_histogram_create(&few, &scene.histogram, NULL) == WEIR_OK);
	weir_model_assert(weir_summary_create(&few, &scene.summary, NULL) == WEIR_OK);
}

static int additions(char of)
{
	int count = 0;

	for (size_t i = 0; i < THREADS; i++) {
		for (const char *call = scene.calls[i]; call != NULL && *call != '\0'; call++)
			count += *call == of;
	}
	return count;
}

/*
 * A count never decreases, is at least what this thread itself added, and is at most all additions.
 */
static void read_counter(size_t me)
{
	int64_t sum = weir_counter_read(scene.counter);

	weir_model_assert(sum >= scene.seen[me]);
	weir_model_assert(sum >= scene.added[me]);
	weir_model_assert(sum <= additions('a'));
	scene.seen[me] = sum;
}

static void read_mean(void)
{
	struct weir_mean_value value = weir_mean_read(scene.mean);

	weir_model_assert(value.count <= (uint64_t)additions('m'));
	/* The sum of 1, 2, 4, ... shows which values were added, and how many. */
	if (scene.apart)
		weir_model_assert(value.sum == (double)((1 << value.count) - 1));
	else
		weir_model_assert(value.sum >= (double)value.count);
}

static void read_histogram(void)
{
	weir_model_assert(weir_histogram_read(scene.histogram, scene.summary, NULL) == WEIR_OK);
	weir_model_assert(weir_summary_count(scene.summary) <= (uint64_t)additions('h'));
}

static void count(size_t me)
{
	weir_counter_add(scene.counter, 1);
	scene.added[me]++;
}

#define LETTERS(LETTER) \
	LETTER('a', "add 1 to the counter", count(me)) \
	LETTER('m', "add the next power of two to the mean, from 1 on", \
	       weir_mean_add(scene.mean, (double)(1 << scene.means[me]++))) \
	LETTER('h', "add a value to the histogram", weir_histogram_add(scene.histogram, me % 2)) \
	LETTER('c', "read the counter", read_counter(me)) \
	LETTER('n', "read the mean", read_mean()) \
	LETTER('q', "read the histogram", read_histogram())

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.calls[me], call);
}

/* Each thread's additions to the mean are 1, 2, 4, ... */
static double expected_sum(void)
{
	double sum = 0;

	for (size_t i = 0; i < THREADS; i++) {
		int means = 0;

		for (const char *call = scene.calls[i]; call != NULL && *call != '\0'; call++) {
			if (*call == 'm')
				sum += (double)(1 << means++);
		}
	}
	return sum;
}

static void finish(void *context)
{
	struct weir_mean_value mean = weir_mean_read(scene.mean);

	(void)context;
	weir_model_assert(weir_counter_read(scene.counter) == additions('a'));
	weir_model_assert(mean.count == (uint64_t)additions('m') && mean.sum == expected_sum());
	weir_model_assert(weir_histogram_read(scene.histogram, scene.summary, NULL) == WEIR_OK);
	weir_model_assert(weir_summary_count(scene.summary) == (uint64_t)additions('h'));
	weir_counter_destroy(scene.counter, NULL);
	weir_mean_destroy(scene.mean, NULL);
	weir_histogram_destroy(scene.histogram, NULL);
	weir_summary_destroy(scene.summary, NULL);
}

static const struct row {
	const char *name;
	const char *calls[THREADS];
	uint32_t own;
	int apart;
} rows[] = {
	{"metrics_counter_2_adders_and_a_reader", {"aa", "a", "cc"}, 4, 0},
	{"metrics_counter_adders_that_read", {"ac", "ac"}, 3, 0},
	{"metrics_counter_line_from_thread_to_thread", {"a", "a", "a"}, 4, 0},
	{"metrics_counter_shared_line", {"aa", "a", "cc"}, 1, 0},
	{"metrics_mean_of_an_adder_and_a_reader", {"mmm", "n"}, 3, 1},
	{"metrics_mean_of_an_adder_and_a_reader_twice", {"mm", "nn"}, 3, 1},
	{"metrics_mean_line_from_thread_to_thread", {"mm", "mm"}, 3, 0},
	{"metrics_mean_shared_line", {"m", "m", "n"}, 1, 0},
	{"metrics_histogram_2_adders_and_a_reader", {"h", "h", "q"}, 4, 0},
};

static struct scope_plan prepare(size_t index)
{
	const struct row *row = &rows[index];

	scene = (struct scene){.own = row->own, .apart = row->apart};
	memcpy(scene.calls, row->calls, sizeof(scene.calls));
	return (struct scope_plan){
		.program = {row->name, scope_threads(row->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 100000,
		.stopped = 200};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	return scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
