/*
 * padded_batches.c - sentences of any length in batches, through a padding queue shared by name.
 *
 * A reader enqueues sentences as vectors of word numbers, by the names of the components. A trainer
 * takes them in batches. A batch is as wide as its longest sentence, and shorter sentences end in
 * zeros. Reader and trainer share only the name of the queue.
 */
#include <pthread.h>
#include <stdio.h>
#include <weir/flow.h>

enum { SENTENCES = 10, BATCH = 4 };

/*
 * Both threads request the same queue. A request for a different queue of that name fails, and its
 * message says what differs.
 */
static weir_resource *find_sentences(weir_store *store, weir_error *error)
{
	static const weir_shape any_length = {.rank = 1, .dims = {-1}};
	static const struct weir_tensor_component components[] = {{WEIR_I32, &any_length, "words"},
	                                                          {WEIR_I64, &weir_shape_scalar, "label"}};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 8,
	                                            .flags = WEIR_TENSOR_QUEUE_PADDING, .components = components,
	                                            .component_count = 2};
	weir_resource *resource = NULL;

	(void)weir_tensor_queue_find_or_create(store, NULL, "sentences", &options, &resource, error);
	return resource;
}

/* Sentence i has 1 + i % 5 words, which are all i + 1. Its label is i. */
static enum weir_status put_sentence(weir_tensor_queue *queue, int32_t i)
{
	weir_shape length = {.rank = 1, .dims = {1 + i % 5}};
	weir_tensor *words = NULL, *label = NULL, *tuple[2];
	int32_t numbers[5] = {i + 1, i + 1, i + 1, i + 1, i + 1};
	enum weir_status status = weir_tensor_copy_of(WEIR_I32, &length, numbers, NULL, &words);

	if (status == WEIR_OK)
		status = weir_tensor_scalar_i64(i, &label);
	if (status == WEIR_OK)
		status = weir_tensor_queue_arrange(queue, (struct weir_named_tensor[]){{"label", label}, {"words", words}}, 2,
		                                   tuple, 2, NULL);
	if (status == WEIR_OK)
		status = weir_tensor_queue_enqueue(queue, tuple, 2, WEIR_NO_DEADLINE, NULL, NULL);
	weir_tensor_release(words);
	weir_tensor_release(label);
	return status;
}

static void *read_sentences(void *context)
{
	weir_error error;
	weir_resource *resource = find_sentences(context, &error);
	int32_t i = 0;

	if (resource == NULL)
		return NULL;
	while (i < SENTENCES && put_sentence(weir_resource_object(resource), i) == WEIR_OK)
		i++;
	(void)weir_tensor_queue_close(weir_resource_object(resource), WEIR_CLOSE_DRAIN, NULL);
	weir_resource_release(resource);
	return NULL;
}

/* Prints a batch; returns the number of errors in it. */
static int look_at(const weir_tensor *words, const weir_tensor *labels)
{
	const weir_shape *shape = weir_tensor_shape(words);
	const int32_t *word = weir_tensor_data(words);
	const int64_t *label = weir_tensor_data(labels);
	int wrong = 0;

	printf("a batch of %d, %d wide:\n", (int)shape->dims[0], (int)shape->dims[1]);
	for (int64_t row = 0; row < shape->dims[0]; row++) {
		for (int64_t k = 0; k < shape->dims[1]; k++) {
			int32_t expected = k < 1 + label[row] % 5 ? (int32_t)label[row] + 1 : 0;

			printf(" %2d", *word);
			wrong += *word++ != expected;
		}
		printf("  label %d\n", (int)label[row]);
	}
	return wrong;
}

int main(void)
{
	weir_store *store = NULL;
	weir_resource *resource;
	weir_tensor *batch[2];
	weir_error error;
	pthread_t reader;
	int64_t count = 0;
	int wrong = 0;

	if (weir_store_create(NULL, &store, &error) != WEIR_OK)
		return 1;
	resource = find_sentences(store, &error);
	if (resource == NULL || pthread_create(&reader, NULL, read_sentences, store) != 0)
		return 1;
	/* The last batch has what remains. */
	while (weir_tensor_queue_dequeue_up_to(weir_resource_object(resource), BATCH, batch, 2, WEIR_NO_DEADLINE, NULL,
	                                       &error) == WEIR_OK) {
		wrong += look_at(batch[0], batch[1]);
		count += weir_tensor_shape(batch[0])->dims[0];
		weir_tensor_release(batch[0]);
		weir_tensor_release(batch[1]);
	}
	printf("the end: %s\n", error.message);
	wrong += error.code != WEIR_OUT_OF_RANGE || count != SENTENCES;
	(void)pthread_join(reader, NULL);
	weir_resource_release(resource);
	weir_store_destroy(store, NULL);
	return wrong == 0 ? 0 : 1;
}
