/*
 * test_tensor_queue.c - tuples of tensors: their spec, their references, batches, and allocations
 * that fail.
 */
#include <poll.h>

#include "tensor_queue_kit.h"

#include "late_failure.h"

/* -- creating ---------------------------------------------------------------------------------- */

static void expect_refused(struct weir_tensor_queue_options options, const char *word)
{
	weir_tensor_queue *queue = NULL;
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_create(&options, &queue, &error), WEIR_INVALID_ARGUMENT, "%s", word);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, word), "\"%s\" is not in \"%s\"", word, error.message);
	cr_expect_eq(weir_tensor_queue_create(&options, &queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_null(queue);
}

Test(tensor_queue, create_refuses_bad_options_and_says_which)
{
	struct weir_tensor_component component = {.dtype = WEIR_F32};
	struct weir_tensor_queue_options good = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .components = &component,
	                                         .component_count = 1};
	struct weir_tensor_queue_options bad = good;
	weir_tensor_queue *queue = NULL;

	cr_expect_eq(weir_tensor_queue_create(NULL, &queue, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_create(&good, NULL, NULL), WEIR_INVALID_ARGUMENT);
	bad.struct_size = 7;
	expect_refused(bad, "struct_size of the options is 7");
	bad = good;
	bad.components = NULL;
	expect_refused(bad, "components is NULL");
	bad = good;
	bad.component_count = 0;
	expect_refused(bad, "components");
	bad.component_count = WEIR_TENSOR_QUEUE_MAX_COMPONENTS + 1;
	expect_refused(bad, "65 components");
	/* Options that the queue of pointers refuses. */
	bad = good;
	bad.capacity = 0;
	expect_refused(bad, "capacity");
	bad = good;
	bad.flags = 16;
	expect_refused(bad, "flag");
	bad = good;
	bad.min_after_dequeue = 1;
	expect_refused(bad, "min_after_dequeue");
	bad = good;
	bad.order = (enum weir_queue_order)9;
	expect_refused(bad, "order");
}

Test(tensor_queue, create_refuses_bad_components_and_says_which)
{
	weir_shape known = vector_shape(3), half = matrix_shape(-1, INT64_MAX), deep = {.rank = WEIR_MAX_RANK};
	weir_shape huge = matrix_shape(INT64_MAX, 2), beyond = {.rank = WEIR_MAX_RANK + 1};
	struct weir_tensor_component components[2] = {{WEIR_F32, &known, NULL}, {WEIR_I32, NULL, NULL}};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .components = components,
	                                            .component_count = 2};
	const weir_shape *bad[] = {&deep, &huge, &beyond};

	expect_refused(options, "component 1");
	for (size_t i = 0; i < 3; i++) {
		components[1].shape = bad[i];
		expect_refused(options, "component 1");
	}
	components[1].shape = &half;
	destroy_tensors(tensor_queue_with(options));
	components[1] = (struct weir_tensor_component){(enum weir_dtype)99, &known, NULL};
	expect_refused(options, "component 1");
	components[0] = (struct weir_tensor_component){(enum weir_dtype)0, &known, NULL};
	expect_refused(options, "component 0");
}

Test(tensor_queue, create_refuses_names_that_cannot_name)
{
	char most[WEIR_TENSOR_QUEUE_NAME_SIZE + 1] = "";
	struct weir_tensor_component components[3] = {
		{WEIR_F32, NULL, "image"}, {WEIR_I32, NULL, NULL}, {WEIR_I32, NULL, "image"}};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .components = components,
	                                            .component_count = 3};
	struct weir_tensor_component got;
	weir_tensor_queue *queue;

	expect_refused(options, "components 0 and 2 are both named \"image\"");
	components[2].name = "";
	expect_refused(options, "component 2: a name has 1 to 63 bytes, got 0");
	(void)memset(most, 'x', sizeof(most) - 1);
	components[2].name = most;
	expect_refused(options, "component 2: a name has 1 to 63 bytes, got 64");
	most[sizeof(most) - 2] = '\0';
	queue = tensor_queue_with(options);
	cr_assert_eq(weir_tensor_queue_component(queue, 2, &got), WEIR_OK);
	cr_expect_str_eq(got.name, most);
	destroy_tensors(queue);
}

Test(tensor_queue, a_component_is_read_back_as_it_was_given)
{
	weir_shape shape = {.rank = 3, .dims = {2, -7, 3, 99}}, normal = {.rank = 3, .dims = {2, -1, 3}};
	struct weir_tensor_component components[2] = {{WEIR_F32, &shape, "image"}, {WEIR_BYTES, &scalar_shape, NULL}}, got;
	weir_tensor_queue *queue = tensor_queue_with(
		(struct weir_tensor_queue_options){.capacity = 2, .components = components, .component_count = 2});

	cr_assert_eq(weir_tensor_queue_component(queue, 0, &got), WEIR_OK);
	cr_expect_eq(got.dtype, WEIR_F32);
	cr_expect(weir_shape_equal(got.shape, &normal), "an unknown dim is -1");
	cr_expect_eq(got.shape->dims[3], 0);
	cr_expect_str_eq(got.name, "image");
	cr_assert_eq(weir_tensor_queue_component(queue, 1, &got), WEIR_OK);
	cr_expect_eq(got.dtype, WEIR_BYTES);
	cr_expect_eq(got.shape->rank, 0);
	cr_expect_null(got.name);
	cr_expect_eq(weir_tensor_queue_component(queue, 2, &got), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_queue_component(queue, 0, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_component(NULL, 0, &got), WEIR_INVALID_ARGUMENT);
	cr_expect_null(got.name);
	destroy_tensors(queue);
}

/*
 * Tensors are checked when they are enqueued. There are no batches, because a batch would have no
 * shape.
 */
Test(tensor_queue, unknown_dims_may_be_anything_and_rule_batches_out)
{
	weir_shape shape = matrix_shape(-1, 2);
	struct weir_tensor_component component = {WEIR_I32, &shape, "image"};
	weir_tensor_queue *queue = tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 8, .components = &component, .component_count = 1, .name = "test"});
	weir_tensor *wrong = numbers_of(matrix_shape(2, 3), 0), *flat = numbers_of(vector_shape(2), 0), *got = NULL;
	weir_shape rows_shape = {.rank = 3, .dims = {2, 5, 2}};
	weir_tensor *rows = numbers_of(rows_shape, 0);
	weir_error error = {0};

	put_tuple(queue, numbers_of(matrix_shape(0, 2), 0), NULL);
	put_tuple(queue, numbers_of(matrix_shape(7, 2), 0), NULL);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &rows, 1, 0, NULL, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &wrong, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "must be [?,2], got [2,3]"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &flat, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &flat, 1, 0, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "must be [n] + [?,2], got [2]"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 4);
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 1, &got, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "specified shapes"), "%s", error.message);
	cr_expect_null(got);
	weir_tensor_release(wrong);
	weir_tensor_release(flat);
	weir_tensor_release(rows);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, named_tensors_are_put_into_the_order_of_the_components)
{
	weir_tensor_queue *queue = pair_queue(4, WEIR_QUEUE_FIFO);
	weir_tensor *image = numbers_of(vector_shape(2), 0), *label = number(0), *tuple[2] = {label, image};
	struct weir_named_tensor named[] = {{"label", label}, {"image", image}};

	cr_expect_eq(weir_tensor_queue_arrange(queue, named, 2, tuple, 2, NULL), WEIR_OK);
	cr_expect_eq(tuple[0], image);
	cr_expect_eq(tuple[1], label);
	cr_expect_eq(weir_tensor_queue_arrange(NULL, named, 2, tuple, 2, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_arrange(queue, NULL, 2, tuple, 2, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_arrange(queue, named, 2, NULL, 2, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_arrange(queue, named, 2, tuple, 3, NULL), WEIR_INVALID_ARGUMENT);
	named[0].tensor = NULL;
	cr_expect_eq(weir_tensor_queue_arrange(queue, named, 2, tuple, 2, NULL), WEIR_INVALID_ARGUMENT);
	named[0].name = NULL;
	cr_expect_eq(weir_tensor_queue_arrange(queue, named, 2, tuple, 2, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(tuple[0], image, "untouched");
	weir_tensor_release(image);
	weir_tensor_release(label);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, the_spec_is_copied)
{
	char name[] = "label", queue_name[] = "digits";
	weir_shape shape = scalar_shape;
	struct weir_tensor_component component = {WEIR_I32, &shape, name};
	weir_tensor_queue *queue = tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 7, .components = &component, .component_count = 1, .name = queue_name});
	weir_tensor *wrong = numbers_of(vector_shape(1), 0);
	weir_error error = {0};

	shape = vector_shape(1);
	name[0] = queue_name[0] = '?';
	component.dtype = WEIR_F64;
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &wrong, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_not_null(strstr(error.message, "(label)"), "%s", error.message);
	cr_expect_eq(weir_tensor_queue_capacity(queue), 7);
	cr_expect_eq(weir_tensor_queue_component_count(queue), 1);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
	cr_expect_eq(weir_tensor_queue_closed(queue), 0);
	cr_expect_eq(weir_tensor_queue_seed(queue), 0);
	cr_expect_str_eq(weir_tensor_queue_name(queue), "digits");
	weir_tensor_release(wrong);
	destroy_tensors(queue);
}

/* A dim of zero is known. Only a dim below zero is not. */
Test(tensor_queue, a_component_without_elements_takes_only_such_tensors)
{
	weir_shape none = vector_shape(0), any = vector_shape(-1);
	struct weir_tensor_component components[2] = {{WEIR_I32, &none, "none"}, {WEIR_I32, &any, "any"}};
	weir_tensor_queue *queue = tensor_queue_with(
		(struct weir_tensor_queue_options){.capacity = 4, .components = components, .component_count = 2});
	weir_tensor *empty = numbers_of(vector_shape(0), 0), *three = numbers_of(vector_shape(3), 1);
	weir_tensor *good[2] = {empty, three}, *bad[2] = {three, three}, *got[2];

	cr_expect_eq(weir_tensor_queue_enqueue(queue, bad, 2, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_tensor_queue_enqueue(queue, good, 2, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, NULL), WEIR_OK);
	cr_expect(got[0] == empty && got[1] == three);
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
	weir_tensor_release(empty);
	weir_tensor_release(three);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, a_queue_may_have_the_most_components)
{
	struct weir_tensor_component components[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	weir_tensor *tuple[WEIR_TENSOR_QUEUE_MAX_COMPONENTS], *got[WEIR_TENSOR_QUEUE_MAX_COMPONENTS];
	weir_tensor_queue *queue;

	for (int32_t i = 0; i < WEIR_TENSOR_QUEUE_MAX_COMPONENTS; i++) {
		components[i] = (struct weir_tensor_component){WEIR_I32, &scalar_shape, NULL};
		tuple[i] = number(i);
	}
	queue = tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 4, .components = components, .component_count = WEIR_TENSOR_QUEUE_MAX_COMPONENTS});
	cr_assert_eq(weir_tensor_queue_enqueue(queue, tuple, WEIR_TENSOR_QUEUE_MAX_COMPONENTS, 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 1, got, WEIR_TENSOR_QUEUE_MAX_COMPONENTS, 0, NULL, NULL),
	             WEIR_OK);
	for (int32_t i = 0; i < WEIR_TENSOR_QUEUE_MAX_COMPONENTS; i++) {
		expect_values(got[i], vector_shape(1), &i);
		weir_tensor_release(got[i]);
		weir_tensor_release(tuple[i]);
	}
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, null_is_refused_everywhere)
{
	weir_tensor_queue *queue = scalar_queue(2);
	weir_tensor *tuple[1] = {NULL};
	size_t done = 9;

	cr_expect_eq(weir_tensor_queue_enqueue(NULL, tuple, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, NULL, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_enqueue_many(NULL, tuple, 1, 0, NULL, &done, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, NULL, 1, 0, NULL, &done, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_dequeue(NULL, tuple, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_dequeue(queue, NULL, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_dequeue_many(NULL, 1, tuple, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 1, NULL, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_dequeue_up_to(NULL, 1, tuple, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_dequeue_up_to(queue, 1, NULL, 1, 0, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_close(NULL, WEIR_CLOSE_DRAIN, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_close(queue, (enum weir_close_mode)5, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_closed(NULL), 0);
	cr_expect_eq(weir_tensor_queue_size_approx(NULL), 0);
	cr_expect_eq(weir_tensor_queue_capacity(NULL), 0);
	cr_expect_eq(weir_tensor_queue_seed(NULL), 0);
	cr_expect_eq(weir_tensor_queue_component_count(NULL), 0);
	cr_expect_not_null(weir_tensor_queue_name(NULL));
	cr_expect_eq(weir_tensor_queue_destroy(NULL, NULL), WEIR_OK);
	destroy_tensors(queue);
}

/* -- the spec ---------------------------------------------------------------------------------- */

/* All of the words are in the message. */
static void expect_words(const weir_error *error, const char *const words[])
{
	for (; *words != NULL; words++)
		cr_expect_not_null(strstr(error->message, *words), "\"%s\" is not in \"%s\"", *words, error->message);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect_tuple_refused(weir_tensor_queue *queue, weir_tensor *const tuple[], size_t count,
                                 const char *const words[])
{
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_enqueue(queue, tuple, count, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(error.code, WEIR_INVALID_ARGUMENT);
	expect_words(&error, words);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
}

Test(tensor_queue, a_tuple_that_differs_from_the_spec_is_refused_by_name)
{
	weir_tensor_queue *queue = pair_queue(4, WEIR_QUEUE_FIFO);
	weir_tensor *image = numbers_of(vector_shape(2), 0), *label = number(0), *wide = numbers_of(vector_shape(3), 0),
				*real;

	cr_assert_eq(weir_tensor_scalar_f32(1, &real), WEIR_OK);
	expect_tuple_refused(queue, (weir_tensor *[]){image}, 1, WORDS("\"test\"", "2 components", "got 1"));
	expect_tuple_refused(queue, (weir_tensor *[]){image, label, label}, 3, WORDS("2 components", "got 3"));
	expect_tuple_refused(queue, (weir_tensor *[]){image, NULL}, 2, WORDS("component 1 (label)", "NULL"));
	expect_tuple_refused(queue, (weir_tensor *[]){image, real}, 2, WORDS("component 1 (label)", "i32", "got f32"));
	expect_tuple_refused(queue, (weir_tensor *[]){wide, label}, 2,
	                     WORDS("component 0 (image)", "must be [2]", "got [3]"));
	expect_tuple_refused(queue, (weir_tensor *[]){image, image}, 2,
	                     WORDS("component 1 (label)", "must be []", "got [2]"));
	/* The refusal does not depend on the state of the queue. */
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	expect_tuple_refused(queue, (weir_tensor *[]){wide, label}, 2, WORDS("component 0 (image)"));
	weir_tensor_release(image);
	weir_tensor_release(label);
	weir_tensor_release(wide);
	weir_tensor_release(real);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

static void expect_rows_refused(weir_tensor_queue *queue, weir_tensor *first, weir_tensor *second,
                                const char *const words[])
{
	weir_error error = {0};
	size_t done = 9;

	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, (weir_tensor *[]){first, second}, 2, 0, NULL, &done, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(done, 0);
	expect_words(&error, words);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 0);
}

Test(tensor_queue, rows_that_differ_from_the_spec_are_refused_by_name)
{
	weir_tensor_queue *queue = pair_queue(4, WEIR_QUEUE_FIFO);
	weir_tensor *images = numbers_of(matrix_shape(3, 2), 0), *labels = numbers_of(vector_shape(3), 0),
				*label = number(0);
	weir_tensor *wide = numbers_of(matrix_shape(3, 4), 0), *few = numbers_of(vector_shape(2), 0);

	expect_rows_refused(queue, images, label, WORDS("component 1 (label)", "scalar has no rows"));
	expect_rows_refused(queue, wide, labels, WORDS("component 0 (image)", "[2]", "got [3,4]"));
	expect_rows_refused(queue, images, images, WORDS("component 1 (label)", "got [3,2]"));
	expect_rows_refused(queue, images, few, WORDS("component 1 (label) has 2 rows", "component 0 has 3"));
	expect_rows_refused(queue, images, NULL, WORDS("component 1 (label)", "NULL"));
	weir_tensor_release(images);
	weir_tensor_release(labels);
	weir_tensor_release(label);
	weir_tensor_release(wide);
	weir_tensor_release(few);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, components_without_a_name_are_numbered)
{
	struct weir_tensor_component components[] = {{WEIR_I32, NULL, NULL}, {WEIR_F64, NULL, NULL}};
	weir_tensor_queue *queue = tensor_queue_with(
		(struct weir_tensor_queue_options){.capacity = 2, .components = components, .component_count = 2});
	weir_tensor *one = number(1);

	expect_tuple_refused(queue, (weir_tensor *[]){one, one}, 2, WORDS("component 1 (1)", "f64", "got i32"));
	weir_tensor_release(one);
	destroy_tensors(queue);
}

Test(tensor_queue, without_shapes_each_tuple_has_its_own)
{
	struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	weir_tensor_queue *queue = tensor_queue_with(
		(struct weir_tensor_queue_options){.capacity = 8, .components = &component, .component_count = 1});
	weir_tensor *rows = numbers_of(matrix_shape(2, 2), 7), *got;

	put_tuple(queue, number(1), NULL);
	put_tuple(queue, numbers_of(matrix_shape(1, 2), 2), NULL);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &rows, 1, 0, NULL, NULL, NULL), WEIR_OK);
	weir_tensor_release(rows);
	for (size_t i = 0; i < 4; i++) {
		static const uint32_t ranks[] = {0, 2, 1, 1};

		cr_assert_eq(weir_tensor_queue_dequeue(queue, &got, 1, 0, NULL, NULL), WEIR_OK);
		cr_expect_eq(weir_tensor_shape(got)->rank, ranks[i]);
		weir_tensor_release(got);
	}
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, without_shapes_there_are_no_batches)
{
	struct weir_tensor_component component = {WEIR_I32, NULL, NULL};
	weir_tensor_queue *queue = tensor_queue_with((struct weir_tensor_queue_options){
		.capacity = 8, .components = &component, .component_count = 1, .name = "test"});
	weir_tensor *got = NULL;
	weir_error error = {0};

	for (size_t n = 0; n < 2; n++) {
		for (int round = 0; round < 2; round++) {
			cr_expect_eq(weir_tensor_queue_dequeue_many(queue, n, &got, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
			expect_words(&error, WORDS("\"test\"", "specified shapes"));
			cr_expect_eq(weir_tensor_queue_dequeue_up_to(queue, n, &got, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
			expect_words(&error, WORDS("specified shapes"));
			put_numbers(queue, 1, 1);
		}
	}
	cr_expect_null(got);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 4);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

/* -- tuples in, tuples out --------------------------------------------------------------------- */

Test(tensor_queue, the_components_of_a_tuple_stay_together)
{
	for (int order = WEIR_QUEUE_FIFO; order <= WEIR_QUEUE_SHUFFLE; order++) {
		weir_tensor_queue *queue = pair_queue(16, (enum weir_queue_order)order);
		int32_t sum = 0;

		for (int32_t i = 0; i < 10; i++)
			put_tuple(queue, numbers_of(vector_shape(2), 10 * i), number(i));
		for (int32_t i = 0; i < 10; i++) {
			weir_tensor *got[2];

			cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, NULL), WEIR_OK);
			cr_expect_eq(value_of(got[0]), 10 * value_of(got[1]));
			cr_expect(order == WEIR_QUEUE_SHUFFLE || value_of(got[1]) == i);
			sum += value_of(got[1]);
			weir_tensor_release(got[0]);
			weir_tensor_release(got[1]);
		}
		cr_expect_eq(sum, 45);
		destroy_tensors(queue);
	}
	expect_no_tensor_left();
}

Test(tensor_queue, the_queue_has_references_of_its_own)
{
	weir_tensor_queue *queue = scalar_queue(2);
	weir_tensor *kept = number(5), *given = number(6), *got;

	cr_expect_eq(weir_tensor_queue_enqueue(queue, &kept, 1, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &given, 1, 0, NULL, NULL), WEIR_OK);
	weir_tensor_release(given);
	cr_expect_eq(living_tensors, 2);
	cr_expect_eq(weir_tensor_queue_dequeue(queue, &got, 1, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(got, kept, "not a copy");
	weir_tensor_release(got);
	cr_expect_eq(value_of(kept), 5);
	cr_expect_eq(weir_tensor_queue_dequeue(queue, &got, 1, 0, NULL, NULL), WEIR_OK);
	cr_expect_eq(value_of(got), 6);
	weir_tensor_release(got);
	cr_expect_eq(living_tensors, 1);
	weir_tensor_release(kept);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, an_enqueue_that_fails_keeps_no_reference)
{
	weir_tensor_queue *queue = scalar_queue(1);
	weir_tensor *tuple = number(5), *rows = numbers_of(vector_shape(3), 7);
	weir_cancel *token;
	size_t done = 9;

	cr_assert_eq(weir_cancel_create(NULL, &token, NULL), WEIR_OK);
	(void)weir_cancel_fire(token, NULL);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &tuple, 1, 0, token, NULL), WEIR_CANCELLED);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &rows, 1, 0, token, &done, NULL), WEIR_CANCELLED);
	cr_expect_eq(done, 0);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &rows, 1, 0, NULL, &done, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(done, 1);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &tuple, 1, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	expect_next_numbers(queue, 7, 1);
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue(queue, &tuple, 1, 0, NULL, NULL), WEIR_CANCELLED);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &rows, 1, 0, NULL, &done, NULL), WEIR_CANCELLED);
	cr_expect_eq(done, 0);
	weir_tensor_release(tuple);
	weir_tensor_release(rows);
	expect_no_tensor_left();
	weir_cancel_release(token);
	destroy_tensors(queue);
}

Test(tensor_queue, a_dequeue_that_fails_leaves_the_tuple_alone)
{
	weir_tensor_queue *queue = pair_queue(2, WEIR_QUEUE_FIFO);
	weir_tensor *untouched = number(1), *got[2] = {untouched, untouched};
	weir_error error = {0};

	cr_expect_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, &error), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_tensor_queue_dequeue(queue, got, 1, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	expect_words(&error, WORDS("\"test\"", "2 components", "room for 1"));
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 2, got, 3, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
	expect_words(&error, WORDS("2 components", "room for 3"));
	if (sizeof(size_t) == sizeof(uint64_t)) { /* else there is no such number */
		cr_expect_eq(weir_tensor_queue_dequeue_many(queue, SIZE_MAX, got, 2, 0, NULL, &error), WEIR_INVALID_ARGUMENT);
		expect_words(&error, WORDS("\"test\"", "18446744073709551615", "at most 9223372036854775807"));
		cr_expect_eq(weir_tensor_queue_dequeue_up_to(queue, (size_t)INT64_MAX + 1, got, 2, 0, NULL, &error),
		             WEIR_INVALID_ARGUMENT);
	}
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, SIZE_MAX / 2, got, 2, 0, NULL, &error), WEIR_RESOURCE_EXHAUSTED);
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 2, got, 2, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(weir_tensor_queue_dequeue_up_to(queue, 2, got, 2, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	cr_expect_eq(got[0], untouched);
	cr_expect_eq(got[1], untouched);
	weir_tensor_release(untouched);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, destroy_releases_what_is_inside)
{
	weir_tensor_queue *queue = pair_queue(4, WEIR_QUEUE_SHUFFLE);

	put_tuple(queue, numbers_of(vector_shape(2), 0), number(0));
	put_tuple(queue, numbers_of(vector_shape(2), 0), number(0));
	cr_expect_eq(living_tensors, 4);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

/* Returns 1 if poll() finds the descriptor readable at once. */
static int is_ready(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};

	return poll(&look, 1, 0) == 1 && (look.revents & POLLIN) != 0;
}

Test(tensor_queue, descriptors_say_whether_a_call_would_wait)
{
	weir_tensor_queue *queue = scalar_queue(1);
	int readable = -1, writable = -1;

	cr_assert_eq(weir_tensor_queue_readable_fd(queue, &readable, NULL), WEIR_OK);
	cr_assert_eq(weir_tensor_queue_writable_fd(queue, &writable, NULL), WEIR_OK);
	cr_expect(!is_ready(readable) && is_ready(writable));
	put_numbers(queue, 1, 1);
	cr_expect(is_ready(readable) && !is_ready(writable));
	expect_next_numbers(queue, 1, 1);
	cr_expect(!is_ready(readable) && is_ready(writable));
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect(is_ready(readable), "the end makes the descriptor readable");
	cr_expect_eq(weir_tensor_queue_readable_fd(NULL, &readable, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_writable_fd(NULL, &writable, NULL), WEIR_INVALID_ARGUMENT);
	destroy_tensors(queue);
}

/* -- rows and batches -------------------------------------------------------------------------- */

Test(tensor_queue, enqueue_many_takes_rows_apart_without_a_copy)
{
	weir_tensor_queue *queue = pair_queue(4, WEIR_QUEUE_FIFO);
	weir_tensor *tuple[2] = {numbers_of(matrix_shape(3, 2), 10), numbers_of(vector_shape(3), 70)}, *got[2];
	const int32_t *images = weir_tensor_data(tuple[0]), *labels = weir_tensor_data(tuple[1]);
	size_t done = 9;

	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, tuple, 2, 0, NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 3);
	weir_tensor_release(tuple[0]);
	weir_tensor_release(tuple[1]);
	for (int32_t i = 0; i < 3; i++) {
		cr_assert_eq(weir_tensor_queue_dequeue(queue, got, 2, 0, NULL, NULL), WEIR_OK);
		expect_values(got[0], vector_shape(2), (int32_t[]){10 + 2 * i, 11 + 2 * i});
		expect_values(got[1], scalar_shape, (int32_t[]){70 + i});
		cr_expect_eq(weir_tensor_data(got[0]), images + 2 * i);
		cr_expect_eq(weir_tensor_data(got[1]), labels + i);
		weir_tensor_release(got[0]);
		weir_tensor_release(got[1]);
	}
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, enqueue_many_of_no_rows_does_nothing_whatever_the_state)
{
	weir_tensor_queue *queue = scalar_queue(1);
	weir_tensor *none = numbers_of(vector_shape(0), 0);
	size_t done = 9;

	put_numbers(queue, 1, 1);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &none, 1, 0, NULL, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 0);
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_enqueue_many(queue, &none, 1, 0, NULL, NULL, NULL), WEIR_OK);
	weir_tensor_release(none);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, dequeue_many_stacks_the_rows)
{
	weir_tensor_queue *queue = pair_queue(8, WEIR_QUEUE_FIFO);
	weir_tensor *got[2];

	for (int32_t i = 0; i < 6; i++)
		put_tuple(queue, numbers_of(vector_shape(2), 10 * i), number(i));
	for (int32_t i = 0; i < 6; i += 3) {
		cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 3, got, 2, 0, NULL, NULL), WEIR_OK);
		expect_values(got[0], matrix_shape(3, 2),
		              (int32_t[]){10 * i, 10 * i + 1, 10 * i + 10, 10 * i + 11, 10 * i + 20, 10 * i + 21});
		expect_values(got[1], vector_shape(3), (int32_t[]){i, i + 1, i + 2});
		weir_tensor_release(got[0]);
		weir_tensor_release(got[1]);
	}
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, a_batch_of_none_has_no_rows_open_or_closed)
{
	weir_tensor_queue *queue = pair_queue(8, WEIR_QUEUE_FIFO);
	weir_tensor *got[2];

	for (int round = 0; round < 2; round++) {
		cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 0, got, 2, 0, NULL, NULL), WEIR_OK);
		for (int call = 0; call < 2; call++) {
			weir_shape images = matrix_shape(0, 2), labels = vector_shape(0);

			cr_expect(weir_shape_equal(weir_tensor_shape(got[0]), &images));
			cr_expect(weir_shape_equal(weir_tensor_shape(got[1]), &labels));
			cr_expect_eq(weir_tensor_dtype(got[0]), WEIR_I32);
			weir_tensor_release(got[0]);
			weir_tensor_release(got[1]);
			if (call == 0)
				cr_assert_eq(weir_tensor_queue_dequeue_up_to(queue, 0, got, 2, 0, NULL, NULL), WEIR_OK);
		}
		cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	}
	destroy_tensors(queue);
}

Test(tensor_queue, try_many_moves_the_rows_that_go_at_once)
{
	weir_tensor_queue *queue = scalar_queue(3);
	weir_tensor *rows = numbers_of(vector_shape(5), 10), *none = numbers_of(vector_shape(0), 0), *got = NULL;
	weir_error error = {0};
	size_t done = 9;

	cr_expect_eq(weir_tensor_queue_try_dequeue_many(queue, 4, &got, 1, &error), WEIR_WOULD_BLOCK);
	expect_words(&error, WORDS("no item at once"));
	cr_expect_eq(weir_tensor_queue_try_enqueue_many(queue, &rows, 1, &done, NULL), WEIR_OK);
	cr_expect_eq(done, 3, "there is room for 3");
	cr_expect_eq(weir_tensor_queue_try_enqueue_many(queue, &rows, 1, &done, &error), WEIR_WOULD_BLOCK);
	cr_expect_eq(done, 0);
	expect_words(&error, WORDS("no room at once"));
	cr_expect_eq(weir_tensor_queue_try_enqueue_many(queue, &none, 1, &done, NULL), WEIR_OK, "no rows");
	cr_assert_eq(weir_tensor_queue_try_dequeue_many(queue, 2, &got, 1, NULL), WEIR_OK);
	expect_values(got, vector_shape(2), (int32_t[]){10, 11});
	weir_tensor_release(got);
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, NULL), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_try_enqueue_many(queue, &rows, 1, &done, &error), WEIR_CANCELLED);
	expect_words(&error, WORDS("is closed"));
	cr_assert_eq(weir_tensor_queue_try_dequeue_many(queue, 4, &got, 1, NULL), WEIR_OK);
	expect_values(got, vector_shape(1), (int32_t[]){12});
	weir_tensor_release(got);
	cr_expect_eq(weir_tensor_queue_try_dequeue_many(queue, 4, &got, 1, &error), WEIR_OUT_OF_RANGE);
	expect_words(&error, WORDS("is closed"));
	cr_assert_eq(weir_tensor_queue_try_dequeue_many(queue, 0, &got, 1, NULL), WEIR_OK);
	weir_tensor_release(got);
	weir_tensor_release(rows);
	weir_tensor_release(none);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, try_many_refuses_what_is_missing_by_name)
{
	weir_tensor_queue *queue = scalar_queue(3);
	weir_tensor *rows = numbers_of(vector_shape(2), 10);
	weir_error error = {0};
	size_t done = 9;

	cr_expect_eq(weir_tensor_queue_try_enqueue_many(queue, &rows, 1, NULL, &error), WEIR_INVALID_ARGUMENT);
	expect_words(&error, WORDS("done is NULL"));
	cr_expect_eq(weir_tensor_queue_try_enqueue_many(NULL, &rows, 1, &done, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_try_enqueue_many(queue, &rows, 2, &done, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_tensor_queue_try_dequeue_many(queue, 1, &rows, 2, &error), WEIR_INVALID_ARGUMENT);
	expect_words(&error, WORDS("1 component"));
	cr_expect_eq(weir_tensor_queue_try_dequeue_many(NULL, 1, &rows, 1, &error), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(done, 9);
	weir_tensor_release(rows);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, up_to_stacks_what_is_left_of_a_closed_queue)
{
	weir_tensor_queue *queue = scalar_queue(8);
	weir_tensor *got = NULL;
	weir_error cause = {WEIR_ABORTED, "no more lines"}, error = {0};

	put_numbers(queue, 1, 5);
	cr_assert_eq(weir_tensor_queue_dequeue_up_to(queue, 3, &got, 1, 0, NULL, NULL), WEIR_OK);
	expect_values(got, vector_shape(3), (int32_t[]){1, 2, 3});
	weir_tensor_release(got);
	cr_expect_eq(weir_tensor_queue_dequeue_up_to(queue, 3, &got, 1, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_tensor_queue_close(queue, WEIR_CLOSE_DRAIN, &cause), WEIR_OK);
	cr_expect_eq(weir_tensor_queue_closed(queue), 1);
	cr_assert_eq(weir_tensor_queue_dequeue_up_to(queue, 3, &got, 1, 0, NULL, NULL), WEIR_OK);
	expect_values(got, vector_shape(2), (int32_t[]){4, 5});
	weir_tensor_release(got);
	cr_expect_eq(weir_tensor_queue_dequeue_up_to(queue, 3, &got, 1, 0, NULL, &error), WEIR_OUT_OF_RANGE);
	expect_words(&error, WORDS("no more lines", "WEIR_ABORTED"));
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, a_batch_that_fails_is_back_in_order)
{
	weir_tensor_queue *queue = scalar_queue(8);
	weir_tensor *got = NULL;

	put_numbers(queue, 1, 3);
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 4, &got, 1, 0, NULL, NULL), WEIR_DEADLINE_EXCEEDED);
	cr_expect_eq(weir_tensor_queue_dequeue_many(queue, 4, &got, 1, weir_deadline_in(1000000), NULL, NULL),
	             WEIR_DEADLINE_EXCEEDED);
	cr_expect_null(got);
	cr_expect_eq(weir_tensor_queue_size_approx(queue), 3);
	put_numbers(queue, 4, 1);
	expect_next_numbers(queue, 1, 4);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

Test(tensor_queue, elements_of_high_rank_are_stacked)
{
	weir_shape shape = {.rank = 4, .dims = {2, 1, 3, 2}}, batch = {.rank = 5, .dims = {2, 2, 1, 3, 2}};
	struct weir_tensor_component component = {WEIR_I32, &shape, NULL};
	weir_tensor_queue *queue = tensor_queue_with(
		(struct weir_tensor_queue_options){.capacity = 2, .components = &component, .component_count = 1});
	weir_tensor *got;
	int32_t values[24];

	for (int32_t i = 0; i < 24; i++)
		values[i] = i;
	put_tuple(queue, numbers_of(shape, 0), NULL);
	put_tuple(queue, numbers_of(shape, 12), NULL);
	cr_assert_eq(weir_tensor_queue_dequeue_many(queue, 2, &got, 1, 0, NULL, NULL), WEIR_OK);
	expect_values(got, batch, values);
	weir_tensor_release(got);
	destroy_tensors(queue);
	expect_no_tensor_left();
}

/* -- allocations that fail --------------------------------------------------------------------- */

struct late_queue {
	struct late_failure late;
	weir_allocator memory;
	weir_tensor_queue *queue;
};

/*
 * A queue of pairs, of which the first `inside` are in it. If the queue pads, the image of pair i
 * has 1 + i elements.
 */
static void make_late_with(struct late_queue *self, size_t capacity, int32_t inside, uint32_t flags)
{
	int pads = (flags & WEIR_TENSOR_QUEUE_PADDING) != 0;
	weir_shape image = vector_shape(pads ? -1 : 2);
	struct weir_tensor_component components[] = {{WEIR_I32, &image, "image"}, {WEIR_I32, &scalar_shape, "label"}};

	self->memory = late_failure_hooks(&self->late);
	self->queue = tensor_queue_with((struct weir_tensor_queue_options){.capacity = capacity,
	                                                                   .flags = flags,
	                                                                   .components = components,
	                                                                   .component_count = 2,
	                                                                   .allocator = &self->memory});
	for (int32_t i = 0; i < inside; i++)
		put_tuple(self->queue, numbers_of(vector_shape(pads ? 1 + i : 2), 10 * i), number(i));
}

static void make_late(struct late_queue *self, size_t capacity, int32_t inside)
{
	make_late_with(self, capacity, inside, 0);
}

/* The queue has the pairs 0 .. inside - 1, in order, and nothing else. */
static void end_late(struct late_queue *self, int32_t inside)
{
	cr_assert_eq(weir_tensor_queue_size_approx(self->queue), (size_t)inside);
	for (int32_t i = 0; i < inside; i++) {
		weir_tensor *got[2];

		cr_assert_eq(weir_tensor_queue_dequeue(self->queue, got, 2, 0, NULL, NULL), WEIR_OK);
		cr_assert_eq(value_of(got[0]), 10 * i);
		cr_assert_eq(value_of(got[1]), i);
		weir_tensor_release(got[0]);
		weir_tensor_release(got[1]);
	}
	destroy_tensors(self->queue);
	cr_assert_eq(weir_reclaim_flush(in_good_time()), WEIR_OK);
	cr_assert_eq(living_tensors, 0);
	late_failure_end(&self->late);
}

static enum weir_status create_one(const weir_allocator *allocator, void *context)
{
	struct weir_tensor_component component = {WEIR_I32, &scalar_shape, "label"};
	struct weir_tensor_queue_options options = {WEIR_TENSOR_QUEUE_OPTIONS_INIT, .capacity = 4, .components = &component,
	                                            .component_count = 1, .allocator = allocator};
	weir_tensor_queue *queue = NULL;
	weir_error error = {0};
	enum weir_status status = weir_tensor_queue_create(&options, &queue, &error);

	(void)context;
	cr_assert_eq(queue == NULL, status != WEIR_OK);
	cr_assert_eq(error.code, status);
	cr_assert_eq(weir_tensor_queue_destroy(queue, NULL), WEIR_OK);
	return status;
}

Test(tensor_queue, create_survives_each_allocation_failing)
{
	cr_expect_eq(fail_each_allocation(create_one, NULL), 4);
}

static enum weir_status enqueue_one(const weir_allocator *allocator, void *context)
{
	struct late_queue self = {.queue = NULL};
	weir_tensor *tuple[2];
	enum weir_status status;

	(void)context;
	make_late(&self, 4, 2);
	tuple[0] = numbers_of(vector_shape(2), 20);
	tuple[1] = number(2);
	self.late.under_test = allocator;
	status = weir_tensor_queue_enqueue(self.queue, tuple, 2, 0, NULL, NULL);
	self.late.under_test = NULL;
	weir_tensor_release(tuple[0]);
	weir_tensor_release(tuple[1]);
	end_late(&self, status == WEIR_OK ? 3 : 2);
	return status;
}

Test(tensor_queue, an_enqueue_without_memory_changes_nothing)
{
	cr_expect_eq(fail_each_allocation(enqueue_one, NULL), 2, "the items to move, the tuple");
}

/* The rows come from a tensor of the failing allocator, which also provides their headers. */
static enum weir_status enqueue_rows(const weir_allocator *allocator, void *context)
{
	struct late_queue self = {.queue = NULL};
	weir_shape shapes[2] = {matrix_shape(3, 2), vector_shape(3)};
	int32_t images[] = {20, 0, 30, 0, 40, 0}, labels[] = {2, 3, 4};
	weir_tensor *tuple[2] = {NULL, NULL};
	enum weir_status status;
	size_t done = 9;

	(void)context;
	make_late(&self, 8, 2);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I32, &shapes[0], images, &self.memory, &tuple[0]), WEIR_OK);
	cr_assert_eq(weir_tensor_copy_of(WEIR_I32, &shapes[1], labels, &self.memory, &tuple[1]), WEIR_OK);
	self.late.under_test = allocator;
	status = weir_tensor_queue_enqueue_many(self.queue, tuple, 2, 0, NULL, &done, NULL);
	self.late.under_test = NULL;
	cr_assert_eq(done, status == WEIR_OK ? 3 : 0);
	weir_tensor_release(tuple[0]);
	weir_tensor_release(tuple[1]);
	end_late(&self, status == WEIR_OK ? 5 : 2);
	return status;
}

Test(tensor_queue, an_enqueue_many_without_memory_changes_nothing)
{
	cr_expect_eq(fail_each_allocation(enqueue_rows, NULL), 10, "the items to move; three tuples, each with two rows");
}

struct batch {
	enum call_kind kind;
	uint32_t flags;
	bool at_once;
};

static enum weir_status dequeue_batch(const weir_allocator *allocator, void *context)
{
	const struct batch *batch = context;
	struct late_queue self = {.queue = NULL};
	weir_tensor *got[2] = {NULL, NULL};
	enum weir_status status;

	make_late_with(&self, 8, 3, batch->flags);
	self.late.under_test = allocator;
	if (batch->at_once)
		status = weir_tensor_queue_try_dequeue_many(self.queue, 5, got, 2, NULL);
	else if (batch->kind == DEQUEUE_MANY)
		status = weir_tensor_queue_dequeue_many(self.queue, 3, got, 2, 0, NULL, NULL);
	else
		status = weir_tensor_queue_dequeue_up_to(self.queue, 3, got, 2, 0, NULL, NULL);
	self.late.under_test = NULL;
	cr_assert_eq(got[0] != NULL && got[1] != NULL, status == WEIR_OK);
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
	end_late(&self, status == WEIR_OK ? 0 : 3);
	return status;
}

Test(tensor_queue, a_batch_that_cannot_be_stacked_is_back_in_order)
{
	struct batch batches[] = {{DEQUEUE_MANY, 0, false},
	                          {DEQUEUE_UP_TO, 0, false},
	                          {DEQUEUE_MANY, WEIR_TENSOR_QUEUE_PADDING, false},
	                          {DEQUEUE_UP_TO, WEIR_TENSOR_QUEUE_PADDING, false}};
	struct batch at_once = {.at_once = true};

	/*
	 * The items to move and their places to go back to; the operation and its room; a column; two
	 * tensors.
	 */
	for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
		cr_expect_eq(fail_each_allocation(dequeue_batch, &batches[i]), 7);
	cr_expect_eq(fail_each_allocation(dequeue_batch, &at_once), 5, "without an operation");
}

/* While a section of this thread is open, no thread could free what is retired. */
static enum weir_status dequeue_batch_and_look(const weir_allocator *allocator, void *context)
{
	struct late_queue self = {.queue = NULL};
	weir_tensor *got[2] = {NULL, NULL};
	enum weir_status status;

	(void)context;
	make_late(&self, 8, 3);
	self.late.under_test = allocator;
	status = weir_tensor_queue_dequeue_many(self.queue, 3, got, 2, 0, NULL, NULL);
	self.late.under_test = NULL;
	/* [relaxed] own field */
	cr_assert_eq(weiri_load_relaxed(&weiri_record_get()->lo), 0);
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
	end_late(&self, status == WEIR_OK ? 0 : 3);
	return status;
}

Test(tensor_queue, a_batch_that_cannot_be_stacked_leaves_no_section_open)
{
	(void)fail_each_allocation(dequeue_batch_and_look, NULL);
}

static enum weir_status dequeue_one(const weir_allocator *allocator, void *context)
{
	struct late_queue self = {.queue = NULL};
	weir_tensor *got[2] = {NULL, NULL};
	enum weir_status status;

	(void)context;
	make_late(&self, 8, 1);
	self.late.under_test = allocator;
	status = weir_tensor_queue_dequeue(self.queue, got, 2, 0, NULL, NULL);
	self.late.under_test = NULL;
	weir_tensor_release(got[0]);
	weir_tensor_release(got[1]);
	end_late(&self, status == WEIR_OK ? 0 : 1);
	return status;
}

Test(tensor_queue, a_dequeue_without_memory_changes_nothing)
{
	cr_expect_eq(fail_each_allocation(dequeue_one, NULL), 1, "the items to move");
}
