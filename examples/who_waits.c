/*
 * who_waits.c - a program that hangs, and two questions: what waits, and what keeps memory.
 *
 * A consumer waits in a queue that has no producer, and a reader has forgotten a handle on a
 * version that was replaced long ago. weir_dump() reports both; weir_stalls_visit() passes the
 * second to the program. Call them from a watchdog, or from a thread that waits for a signal.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

static const uint64_t patience_ns = 20000000000;

static weir_queue *frames;
static weir_cancel *token;

static void *eat(void *unused)
{
	weir_queue_announcement *announcement;
	void *frame;

	/* The announcement lets the dump show which thread should have emptied the queue. */
	if (weir_queue_announce(frames, WEIR_QUEUE_CONSUMER, "eater", &announcement, NULL) != WEIR_OK)
		return unused;
	(void)weir_queue_dequeue(frames, &frame, WEIR_NO_DEADLINE, token, NULL);
	weir_queue_withdraw(announcement);
	return unused;
}

/* Returns 0 if no thread began to wait in time. */
static int a_thread_waits(void)
{
	struct weir_queue_stats stats = {WEIR_QUEUE_STATS_INIT};
	uint64_t deadline = weir_deadline_in(patience_ns);

	while (weir_queue_get_stats(frames, &stats) == WEIR_OK && stats.waiting == 0 && weir_now_ns() < deadline)
		(void)sched_yield();
	return stats.waiting != 0;
}

/* Creates a variable whose version 1 is held although it was replaced. */
static int forget_a_handle(weir_var **var, weir_read *forgotten)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "weights", .dtype = WEIR_I64};
	weir_tensor *value;
	weir_error error;
	int right;

	if (weir_tensor_scalar_i64(1, &value) != WEIR_OK)
		return 0;
	/*
	 * The first read of a thread holds a reference instead of a slot, and is not a stall. The
	 * thread therefore reads once before.
	 */
	right = weir_var_create(value, &options, var, &error) == WEIR_OK && weir_var_read(*var, forgotten) == WEIR_OK;
	if (right) {
		weir_read_release(forgotten);
		right = weir_var_read(*var, forgotten) == WEIR_OK &&
		        weir_var_assign(*var, value, WEIR_NO_DEADLINE, NULL, &error) == WEIR_OK;
	}
	weir_tensor_release(value);
	return right;
}

static void tell(void *context, const struct weir_stall *stall)
{
	if (stall->kind == WEIR_STALL_HANDLE && strcmp(stall->variable, "weights") == 0) {
		printf("version %" PRIu64 " of \"%s\" is held, %" PRIu64 " bytes\n", stall->version, stall->variable,
		       stall->bytes);
		++*(int *)context;
	}
}

int main(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 8, .name = "frames"};
	weir_read forgotten = {0};
	pthread_t eater;
	weir_var *var = NULL;
	weir_error error;
	size_t found;
	int named = 0, wrong = 0;

	if (weir_queue_create(&options, &frames, &error) != WEIR_OK || weir_cancel_create(NULL, &token, NULL) != WEIR_OK ||
	    pthread_create(&eater, NULL, eat, NULL) != 0)
		return 1;
	wrong += !a_thread_waits() || !forget_a_handle(&var, &forgotten);

	wrong += weir_stalls_visit(0, tell, &named, &found) != WEIR_OK || named != 1;
	(void)fflush(stdout); /* the next output does not go through stdio */
	wrong += weir_dump(STDOUT_FILENO) != WEIR_OK;

	(void)weir_cancel_fire(token, NULL);
	(void)pthread_join(eater, NULL);
	weir_read_release(&forgotten);
	/* the released handle is not found again */
	wrong += weir_stalls_visit(0, tell, &named, &found) != WEIR_OK || named != 1;
	wrong += weir_var_destroy(var, NULL) != WEIR_OK || weir_queue_destroy(frames, &error) != WEIR_OK;
	weir_cancel_release(token);
	printf("%s\n", wrong == 0 ? "both were found" : "wrong");
	return wrong == 0 ? 0 : 1;
}
