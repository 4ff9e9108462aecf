/*
 * stop_together.c - threads of one job end together: the first error stops all, and is reported.
 *
 * The other threads may be computing (they poll should_stop) or waiting (the token of the
 * coordinator ends the wait).
 */
#include <stdio.h>
#include <string.h>
#include <weir/coordinator.h>
#include <weir/queue.h>

static weir_queue *empty;

static enum weir_status compute(weir_coordinator *coordinator, void *rounds, weir_error *error)
{
	(void)error;
	while (!weir_coordinator_should_stop(coordinator))
		++*(unsigned long long *)rounds;
	return WEIR_OK;
}

/* No item ever arrives. */
static enum weir_status wait_for_work(weir_coordinator *coordinator, void *unused, weir_error *error)
{
	void *item;

	(void)unused;
	return weir_queue_dequeue(empty, &item, WEIR_NO_DEADLINE, weir_coordinator_cancel(coordinator), error);
}

static enum weir_status fail(weir_coordinator *coordinator, void *unused, weir_error *error)
{
	(void)unused;
	(void)weir_coordinator_wait_for_stop(coordinator, weir_deadline_in(20000000)); /* some work */
	(void)snprintf(error->message, sizeof(error->message), "sensor 7 does not answer");
	return WEIR_DATA_LOSS;
}

int main(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1, .name = "never filled"};
	unsigned long long rounds = 0;
	weir_coordinator *coordinator;
	enum weir_status status;
	weir_error error;

	if (weir_queue_create(&options, &empty, &error) || weir_coordinator_create(NULL, &coordinator, &error) ||
	    weir_coordinator_start_thread(coordinator, "compute", compute, &rounds, &error) ||
	    weir_coordinator_start_thread(coordinator, "wait", wait_for_work, NULL, &error) ||
	    weir_coordinator_start_thread(coordinator, "fail", fail, NULL, &error)) {
		(void)fprintf(stderr, "%s\n", error.message);
		return 1;
	}
	status = weir_coordinator_join(coordinator, WEIR_NO_DEADLINE, WEIR_COORDINATOR_GRACE_NS, 0, &error);
	printf("joined after %llu rounds: %s: %s\n", rounds, weir_status_name(status), error.message);
	if (weir_coordinator_destroy(coordinator, NULL) != WEIR_OK || weir_queue_destroy(empty, NULL) != WEIR_OK)
		return 1;
	return status == WEIR_DATA_LOSS && strstr(error.message, "sensor 7") != NULL ? 0 : 1;
}
