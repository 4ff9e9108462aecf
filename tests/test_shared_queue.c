/*
 * test_shared_queue.c - tensor queues by name: the rows of shared queues (conformance_rows.tsv),
 * and behaviours beyond them.
 */
#include <weir/log.h>

#include "conformance_queue.h"
#include "failing_allocator.h"

static weir_store *a_store(void)
{
	weir_store *store = NULL;

	cr_assert_eq(weir_store_create(NULL, &store, NULL), WEIR_OK);
	return store;
}

static weir_tensor_queue *queue_in(weir_resource *resource)
{
	return weir_resource_object(resource);
}

/* The queue that the tests ask for. Its component is a vector [3]. */
struct asked {
	weir_shape shape;
	struct weir_tensor_component components[2];
	struct weir_tensor_queue_options options;
};

static void ask(struct asked *asked, const struct kind *kind)
{
	*asked = (struct asked){.shape = vector_shape(3)};
	asked->components[0] = (struct weir_tensor_component){WEIR_I32, &asked->shape, "vector"};
	asked->components[1] = (struct weir_tensor_component){WEIR_I32, &asked->shape, "other"};
	asked->options = (struct weir_tensor_queue_options){
		WEIR_TENSOR_QUEUE_OPTIONS_INIT,  .capacity = 10,      .order = kind->order, .flags = kind->flags,
		.components = asked->components, .component_count = 1};
}

static weir_resource *find_or_create(weir_store *store, const struct asked *asked)
{
	weir_resource *resource = NULL;
	weir_error error = {0};

	cr_assert_eq(weir_tensor_queue_find_or_create(store, NULL, "shared", &asked->options, &resource, &error), WEIR_OK,
	             "%s", error.message);
	return resource;
}

/*
 * Asking for a queue that differs from the existing one is refused, and the message says how they
 * differ. Resets `asked`.
 */
static void expect_mismatch(weir_store *store, struct asked *asked, const struct kind *kind, const char *why)
{
	weir_resource *resource = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_find_or_create(store, NULL, "shared", &asked->options, &resource, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_null(resource);
	cr_expect_not_null(strstr(error.message, "\"shared\""), "%s", error.message);
	cr_expect_not_null(strstr(error.message, why), "\"%s\" is not in \"%s\"", why, error.message);
	ask(asked, kind);
}

/* -- the same queue ---------------------------------------------------------------------------- */

static void two_handles_are_one_queue(const struct kind *kind)
{
	weir_store *store = a_store();
	weir_resource *one, *other;
	struct asked asked;
	weir_tensor *got;

	ask(&asked, kind);
	one = find_or_create(store, &asked);
	put_tuple(queue_in(one), numbers_of(vector_shape(3), 10), NULL);
	other = find_or_create(store, &asked);
	cr_expect_eq(queue_in(other), queue_in(one));
	cr_expect_str_eq(weir_tensor_queue_name(queue_in(other)), "shared");
	cr_expect_eq(weir_tensor_queue_size_approx(queue_in(other)), 1);
	cr_assert_eq(weir_tensor_queue_dequeue(queue_in(other), &got, 1, 0, NULL, NULL), WEIR_OK);
	expect_values(got, vector_shape(3), (int32_t[]){10, 11, 12});
	weir_tensor_release(got);
	put_tuple(queue_in(other), numbers_of(vector_shape(3), 20), NULL);
	cr_expect_eq(weir_tensor_queue_size_approx(queue_in(one)), 1);
	/* The last reference destroys the queue and the items inside. */
	weir_store_destroy(store, NULL);
	weir_resource_release(one);
	cr_expect_eq(weir_tensor_queue_size_approx(queue_in(other)), 1);
	weir_resource_release(other);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	expect_no_tensor_left();
}

Test(shared_queue, FIFO_036_shared_queue_same_session)
{
	two_handles_are_one_queue(&fifo_kind);
}

Test(shared_queue, PAD_062_shared_queue_same_session)
{
	two_handles_are_one_queue(&padding_kind);
}

/* Also with the same seed. */
Test(shared_queue, RSQ_047_shared_queue_same_session)
{
	weir_store *store = a_store();
	weir_resource *one, *other;
	struct asked asked;

	two_handles_are_one_queue(&shuffle_kind);
	ask(&asked, &shuffle_kind);
	one = find_or_create(store, &asked);
	asked.options.seed = weir_tensor_queue_seed(queue_in(one));
	cr_assert_neq(asked.options.seed, 0);
	other = find_or_create(store, &asked);
	cr_expect_eq(queue_in(other), queue_in(one));
	weir_resource_release(one);
	weir_resource_release(other);
	weir_store_destroy(store, NULL);
}

Test(shared_queue, RSQ_048_no_seed_accepts_any)
{
	weir_store *store = a_store();
	weir_resource *one, *other;
	struct asked asked;

	ask(&asked, &shuffle_kind);
	asked.options.seed = 98765432;
	one = find_or_create(store, &asked);
	asked.options.seed = 0;
	other = find_or_create(store, &asked);
	cr_expect_eq(queue_in(other), queue_in(one));
	cr_expect_eq(weir_tensor_queue_seed(queue_in(other)), 98765432);
	weir_resource_release(one);
	weir_resource_release(other);
	weir_store_destroy(store, NULL);
}

/* -- another queue ----------------------------------------------------------------------------- */

/* Mismatches of every kind: capacity, dtype, shape, number of components, names, flags. */
static void mismatches_name_the_property(weir_store *store, const struct kind *kind)
{
	weir_shape longer = vector_shape(4), deeper = matrix_shape(3, 1);
	struct asked asked;

	ask(&asked, kind);
	asked.options.capacity = 20;
	expect_mismatch(store, &asked, kind, "capacity is 10, asked for 20");
	asked.components[0].dtype = WEIR_F32;
	expect_mismatch(store, &asked, kind, "dtype of component 0 is i32, asked for f32");
	asked.components[0].shape = &longer;
	expect_mismatch(store, &asked, kind, "shape of component 0 is [3], asked for [4]");
	asked.components[0].shape = &deeper;
	expect_mismatch(store, &asked, kind, "shape of component 0 is [3], asked for [3,1]");
	asked.options.component_count = 2;
	expect_mismatch(store, &asked, kind, "components are 1, asked for 2");
	asked.components[0].name = "tensor";
	expect_mismatch(store, &asked, kind, "name of component 0 is vector, asked for tensor");
	asked.components[0].name = NULL;
	expect_mismatch(store, &asked, kind, "name of component 0 is vector, asked for none");
	asked.options.flags |= WEIR_QUEUE_FAIR;
	expect_mismatch(store, &asked, kind, "flags are");
}

/* A store with the queue that ask() asks for. A request for another queue of that name fails. */
static weir_store *store_with(const struct kind *kind, size_t min_after_dequeue, uint64_t seed)
{
	weir_store *store = a_store();
	struct asked asked;

	ask(&asked, kind);
	asked.options.min_after_dequeue = min_after_dequeue;
	asked.options.seed = seed;
	weir_resource_release(find_or_create(store, &asked));
	return store;
}

Test(shared_queue, FIFO_037_incompatible_shared_queue_errors)
{
	weir_store *store = store_with(&fifo_kind, 0, 0), *shapeless = a_store();
	struct asked asked;

	mismatches_name_the_property(store, &fifo_kind);
	ask(&asked, &fifo_kind);
	asked.components[0].shape = NULL;
	weir_resource_release(find_or_create(shapeless, &asked));
	expect_mismatch(store, &asked, &fifo_kind, "shape of component 0 is [3], asked for none");
	expect_mismatch(shapeless, &asked, &fifo_kind, "shape of component 0 is none, asked for [3]");
	asked.shape = vector_shape(-1);
	expect_mismatch(store, &asked, &fifo_kind, "shape of component 0 is [3], asked for [?]");
	ask(&asked, &shuffle_kind);
	expect_mismatch(store, &asked, &fifo_kind, "it is a FIFO queue, asked for a shuffle queue");
	ask(&asked, &padding_kind);
	expect_mismatch(store, &asked, &fifo_kind, "it is a FIFO queue, asked for a FIFO queue that pads");
	weir_store_destroy(store, NULL);
	weir_store_destroy(shapeless, NULL);
}

/* Shapes need only be compatible: an unknown dim may be anything. */
Test(shared_queue, PAD_063_incompatible_shared_queue_errors)
{
	weir_store *store = store_with(&padding_kind, 0, 0);
	struct asked asked;

	mismatches_name_the_property(store, &padding_kind);
	ask(&asked, &padding_kind);
	asked.shape = vector_shape(-1);
	weir_resource_release(find_or_create(store, &asked));
	ask(&asked, &shuffle_kind);
	expect_mismatch(store, &asked, &padding_kind, "it is a FIFO queue that pads, asked for a shuffle queue");
	weir_store_destroy(store, NULL);
}

Test(shared_queue, RSQ_049_incompatible_shared_queue_errors)
{
	weir_store *store = store_with(&shuffle_kind, 5, 12);
	struct asked asked;

	ask(&asked, &shuffle_kind);
	asked.options.min_after_dequeue = 4;
	expect_mismatch(store, &asked, &shuffle_kind, "min_after_dequeue is 5, asked for 4");
	asked.options.min_after_dequeue = 5;
	asked.options.seed = 21;
	expect_mismatch(store, &asked, &shuffle_kind, "seed is 12, asked for 21");
	weir_store_destroy(store, NULL);
	store = store_with(&shuffle_kind, 0, 12);
	mismatches_name_the_property(store, &shuffle_kind);
	ask(&asked, &fifo_kind);
	expect_mismatch(store, &asked, &shuffle_kind, "it is a shuffle queue, asked for a FIFO queue");
	weir_store_destroy(store, NULL);
}

/* A priority queue also differs from others. */
Test(shared_queue, a_priority_queue_is_no_fifo)
{
	static const struct kind by_priority = {WEIR_QUEUE_PRIORITY, 0, 0};
	weir_store *store = store_with(&fifo_kind, 0, 0), *other = a_store();
	struct asked asked;

	ask(&asked, &by_priority);
	asked.components[0] = (struct weir_tensor_component){WEIR_I64, &scalar_shape, "priority"};
	weir_resource_release(find_or_create(other, &asked));
	weir_resource_release(find_or_create(other, &asked));
	expect_mismatch(store, &asked, &fifo_kind, "it is a FIFO queue, asked for a priority queue");
	ask(&asked, &padding_kind);
	expect_mismatch(other, &asked, &padding_kind, "it is a priority queue, asked for a FIFO queue that pads");
	weir_store_destroy(store, NULL);
	weir_store_destroy(other, NULL);
}

/* -- beyond the rows --------------------------------------------------------------------------- */

Test(shared_queue, a_queue_of_the_store_is_found_by_its_type)
{
	static const struct weir_resource_type other = {"another thing", NULL};
	weir_store *store = store_with(&fifo_kind, 0, 0);
	weir_resource *resource = NULL;
	int object = 0;
	struct asked asked;
	weir_error error;

	cr_assert_eq(weir_store_find(store, NULL, "shared", weir_tensor_queue_type(), &resource, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_capacity(queue_in(resource)), 10);
	weir_resource_release(resource);
	cr_assert_eq(weir_store_remove(store, NULL, "shared", NULL), WEIR_OK);
	cr_assert_eq(weir_store_add(store, NULL, "shared", &other, &object, NULL, NULL), WEIR_OK);
	ask(&asked, &fifo_kind);
	resource = NULL;
	cr_expect_eq(weir_tensor_queue_find_or_create(store, NULL, "shared", &asked.options, &resource, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "another thing"), "%s", error.message);
	cr_expect_null(resource);
	weir_store_destroy(store, NULL);
}

Test(shared_queue, bad_arguments_are_refused)
{
	weir_store *store = store_with(&fifo_kind, 0, 0);
	weir_resource *resource = NULL;
	struct asked asked;

	ask(&asked, &fifo_kind);
	cr_expect_eq(weir_tensor_queue_find_or_create(store, NULL, "shared", NULL, &resource, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_find_or_create(NULL, NULL, "shared", &asked.options, &resource, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_find_or_create(store, NULL, "", &asked.options, &resource, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_find_or_create(store, NULL, "shared", &asked.options, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	/* If the queue does not exist yet, the message is that of its creation. */
	asked.options.capacity = 0;
	cr_expect_eq(weir_tensor_queue_find_or_create(store, NULL, "new", &asked.options, &resource, NULL),
	             WEIR_INVALID_ARGUMENT);
	ask(&asked, &fifo_kind);
	asked.options.components = NULL;
	cr_expect_eq(weir_tensor_queue_find_or_create(store, NULL, "shared", &asked.options, &resource, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_null(resource);
	cr_expect_eq(weir_store_size_approx(store), 1);
	weir_store_destroy(store, NULL);
}

/* A name that equals the component's number counts as a name. */
Test(shared_queue, a_number_for_a_name_is_one)
{
	weir_store *store = a_store();
	struct asked asked;

	ask(&asked, &fifo_kind);
	asked.components[0].name = NULL;
	weir_resource_release(find_or_create(store, &asked));
	asked.components[0].name = "0";
	expect_mismatch(store, &asked, &fifo_kind, "name of component 0 is none, asked for 0");
	weir_store_destroy(store, NULL);
}

static enum weir_status find_or_create_with(const weir_allocator *allocator, void *context)
{
	struct asked asked;
	weir_resource *resource = NULL;
	enum weir_status status;

	ask(&asked, &fifo_kind);
	asked.options.allocator = allocator;
	status = weir_tensor_queue_find_or_create(context, NULL, "shared", &asked.options, &resource, NULL);
	cr_assert_eq(resource != NULL, status == WEIR_OK);
	cr_assert_eq(weir_store_size_approx(context), status == WEIR_OK ? 1 : 0);
	if (status == WEIR_OK)
		cr_assert_eq(weir_store_remove(context, NULL, "shared", NULL), WEIR_OK);
	weir_resource_release(resource);
	return status;
}

Test(shared_queue, each_allocation_of_the_queue_may_fail)
{
	weir_store *store = a_store();

	cr_expect_eq(fail_each_allocation(find_or_create_with, store), 4);
	weir_store_destroy(store, NULL);
}

static char logged[512];

static void listen(void *context, enum weir_log_level level, const char *message)
{
	(void)context;
	cr_expect_eq(level, WEIR_LOG_ERROR);
	(void)snprintf(logged, sizeof(logged), "%s", message);
}

static const weir_log_hook listen_hook = {listen, NULL};

static void forget(void *context, enum weir_status status, const weir_error *error, weir_tensor *const tuple[],
                   size_t count)
{
	(void)error;
	(void)tuple;
	(void)count;
	*(enum weir_status *)context = status;
}

/* An operation that waits holds no reference, but keeps the queue; a log message reports it. */
Test(shared_queue, a_queue_in_which_somebody_waits_outlives_its_last_reference)
{
	weir_store *store = store_with(&fifo_kind, 0, 0);
	enum weir_status status = WEIR_OK;
	weir_resource *resource = NULL;
	weir_tensor_queue *queue;
	weir_pending *op = NULL;

	cr_assert_eq(weir_store_find(store, NULL, "shared", weir_tensor_queue_type(), &resource, NULL), WEIR_OK);
	queue = queue_in(resource);
	cr_assert_eq(weir_tensor_queue_start_dequeue(queue, forget, &status, &op, NULL), WEIR_OK);
	weir_log_set_hook(&listen_hook);
	weir_store_destroy(store, NULL);
	cr_expect_str_eq(logged, "");
	weir_resource_release(resource);
	weir_log_set_hook(NULL);
	cr_expect_not_null(strstr(logged, "\"shared\""), "%s", logged);
	weir_pending_cancel(op, NULL);
	cr_expect_eq(status, WEIR_CANCELLED);
	weir_pending_release(op);
	destroy_tensors(queue);
}

/* Threads that ask at the same time get one queue, and each thread sees what the others enqueue. */
struct asker {
	weir_store *store;
	weir_resource *resource;
	enum weir_status status;
	pthread_t thread;
};

static void *ask_and_put(void *context)
{
	struct asker *asker = context;
	weir_tensor *tensor = NULL;
	weir_shape shape = vector_shape(3);
	struct asked asked;

	ask(&asked, &fifo_kind);
	asker->status =
		weir_tensor_queue_find_or_create(asker->store, "threads", "shared", &asked.options, &asker->resource, NULL);
	if (asker->status == WEIR_OK)
		asker->status = weir_tensor_copy_of(WEIR_I32, &shape, (int32_t[]){1, 2, 3}, NULL, &tensor);
	if (asker->status == WEIR_OK)
		asker->status = weir_tensor_queue_enqueue(queue_in(asker->resource), &tensor, 1, in_good_time(), NULL, NULL);
	weir_tensor_release(tensor);
	return NULL;
}

Test(shared_queue, threads_that_ask_at_once_share_one)
{
	for (int round = 0; round < 50; round++) {
		weir_store *store = a_store();
		struct asker askers[KIT_THREADS] = {{.store = NULL}};

		for (size_t i = 0; i < KIT_THREADS; i++) {
			askers[i].store = store;
			cr_assert_eq(pthread_create(&askers[i].thread, NULL, ask_and_put, &askers[i]), 0);
		}
		for (size_t i = 0; i < KIT_THREADS; i++) {
			cr_assert_eq(pthread_join(askers[i].thread, NULL), 0);
			cr_assert_eq(askers[i].status, WEIR_OK);
			cr_assert_eq(queue_in(askers[i].resource), queue_in(askers[0].resource));
		}
		cr_assert_eq(weir_tensor_queue_size_approx(queue_in(askers[0].resource)), KIT_THREADS);
		for (size_t i = 0; i < KIT_THREADS; i++)
			weir_resource_release(askers[i].resource);
		weir_store_destroy(store, NULL);
	}
}
