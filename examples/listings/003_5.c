/*
 * 003_5.c - a queue runner on four threads feeds a training loop, until the loop has had enough.
 *
 * The runner's threads are blocked in the full queue when the loop ends. The request for a stop closes
 * the queue, which ends their enqueues, so the join returns at once. The listing makes 1,000,000
 * steps; 100 show the same.
 */
#include "training.h"

enum { STEPS = 100 };

int main(void)
{
	struct training training;
	struct training_run run;
	int steps = 0;

	build_training(&training, 0);
	begin_training(&run, &training);
	for (int step = 0; step < STEPS; step++) {
		if (weir_coordinator_should_stop(run.coordinator))
			break;
		must(weir_session_run(run.session, NULL, 0, NULL, 0, NULL, &training.train_op, 1, WEIR_NO_DEADLINE, NULL,
		                      &listing_error));
		steps++;
	}
	/* When done, ask the threads to stop. And wait for them to actually do it. */
	must(weir_coordinator_request_stop(run.coordinator, NULL));
	must(join_training(&run, &listing_error));
	printf("%d steps, %d threads joined, the queue is %s\n", steps, RUNNER_THREADS,
	       weir_tensor_queue_closed(training.queue) ? "closed" : "open");
	expect(steps == STEPS, "nothing but the loop may end it");
	expect(weir_queue_runner_running_count(run.runner) == 0, "all threads must have ended");
	expect(weir_tensor_queue_closed(training.queue), "the stop must have closed the queue");
	expect(weir_iterator_position(training.examples) >= STEPS * BATCH_SIZE,
	       "each step must have had a batch of its own");
	close_training(&run);
	end_training(&training);
	return 0;
}
