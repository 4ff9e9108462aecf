/*
 * first_of_several.c - one thread takes items from several queues until the last queue is drained.
 *
 * A select waits for all its cases and carries out one. The case of a drained queue can proceed,
 * too, so the end of a queue arrives like an item. Its case is then removed.
 */
#include <pthread.h>
#include <stdio.h>
#include <weir/select.h>

enum { SOURCES = 3, EACH = 4000 };

struct source {
	weir_queue *queue;
	pthread_t thread;
	int items[EACH], taken;
};

static struct source sources[SOURCES];

static void *produce(void *context)
{
	struct source *source = context;

	for (int i = 0; i < EACH; i++) {
		source->items[i] = i;
		if (weir_queue_enqueue(source->queue, &source->items[i], WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
			break;
	}
	(void)weir_queue_close(source->queue, WEIR_CLOSE_DRAIN, NULL);
	return NULL;
}

static struct source *source_of(const weir_queue *queue)
{
	struct source *source = sources;

	while (source->queue != queue)
		source++;
	return source;
}

/* Takes items until all queues are drained. Returns 1 if the items of each queue were in order. */
static int take_all(void)
{
	struct weir_select_case cases[SOURCES];
	size_t left = SOURCES, chosen;
	weir_error error;

	for (size_t i = 0; i < SOURCES; i++)
		cases[i] = (struct weir_select_case){.queue = sources[i].queue, .kind = WEIR_SELECT_DEQUEUE};
	while (left > 0) {
		enum weir_status status = weir_select(cases, left, WEIR_NO_DEADLINE, NULL, &chosen, &error);
		struct source *source;

		/* no case proceeded, for example because there is no memory to wait with */
		if (status != WEIR_OK) {
			(void)fprintf(stderr, "select: %s: %s\n", weir_status_name(status), error.message);
			return 0;
		}
		source = source_of(cases[chosen].queue);
		if (cases[chosen].status == WEIR_OUT_OF_RANGE) {
			printf("%s\n", error.message);
			cases[chosen] = cases[--left];
		} else if (cases[chosen].status != WEIR_OK || *(const int *)cases[chosen].item != source->taken++) {
			return 0;
		}
	}
	return 1;
}

int main(void)
{
	static const char *const names[SOURCES] = {"sea", "air", "land"};
	weir_error error;
	int right, count = 0;

	for (int i = 0; i < SOURCES; i++) {
		struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 8, .name = names[i]};

		if (weir_queue_create(&options, &sources[i].queue, &error) != WEIR_OK) {
			(void)fprintf(stderr, "%s\n", error.message);
			return 1;
		}
	}
	for (int i = 0; i < SOURCES; i++) {
		if (pthread_create(&sources[i].thread, NULL, produce, &sources[i]) != 0)
			return 1;
	}
	right = take_all();
	for (int i = 0; i < SOURCES; i++) {
		/* a producer might otherwise wait for ever */
		(void)weir_queue_close(sources[i].queue, WEIR_CLOSE_CANCEL, NULL);
		(void)pthread_join(sources[i].thread, NULL);
		count += sources[i].taken;
		right &= weir_queue_destroy(sources[i].queue, &error) == WEIR_OK;
	}
	printf("%d of %d items\n", count, SOURCES * EACH);
	return right && count == SOURCES * EACH ? 0 : 1;
}
