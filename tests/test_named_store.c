/*
 * test_named_store.c - objects by name: at most one object has a name, references outlive the name,
 * and refusals say what is wrong.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <weir/reclaim.h>
#include <weir/store.h>

#include "failing_allocator.h"
#include "stepped.h"

struct thing {
	int size;
	_Atomic(int) destroyed;
};

static void destroy_thing(void *object)
{
	struct thing *thing = object;

	atomic_fetch_add_explicit(&thing->destroyed, 1, memory_order_relaxed);
}

static const struct weir_resource_type things = {"thing", destroy_thing}, others = {"other", NULL};

static weir_store *make_store(const weir_allocator *allocator)
{
	struct weir_store_options options = {WEIR_STORE_OPTIONS_INIT, .name = "names", .allocator = allocator};
	weir_store *store = NULL;

	cr_assert_eq(weir_store_create(&options, &store, NULL), WEIR_OK);
	return store;
}

static weir_resource *find(weir_store *store, const char *container, const char *name)
{
	weir_resource *resource = NULL;
	enum weir_status status = weir_store_find(store, container, name, &things, &resource, NULL);

	cr_assert((status == WEIR_OK) == (resource != NULL));
	cr_assert(status == WEIR_OK || status == WEIR_NOT_FOUND);
	return resource;
}

Test(named_store, what_was_added_is_found_by_its_name_and_container)
{
	struct thing a = {.size = 1}, b = {.size = 2};
	weir_store *store = make_store(NULL);
	weir_resource *resource;

	cr_assert_eq(weir_store_add(store, NULL, "x", &things, &a, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_store_add(store, "part", "x", &things, &b, &resource, NULL), WEIR_OK);
	cr_assert_eq(weir_resource_object(resource), &b);
	cr_assert_eq(weir_resource_type_of(resource), &things);
	cr_assert_str_eq(weir_resource_name(resource), "x");
	cr_assert_str_eq(weir_resource_container(resource), "part");
	weir_resource_release(resource);
	resource = find(store, "", "x");
	cr_assert_eq(weir_resource_object(resource), &a, "NULL and \"\" are one container");
	weir_resource_release(resource);
	cr_assert_null(find(store, "part", "y"));
	cr_assert_null(find(store, "par", "tx"), "the boundary of container and name counts");
	cr_assert_eq(weir_store_size_approx(store), 2);
	weir_store_destroy(store, NULL);
	cr_assert_eq(a.destroyed, 1);
	cr_assert_eq(b.destroyed, 1);
}

/* The bytes after the terminating zero are not part of the name. */
Test(named_store, a_text_ends_with_its_zero)
{
	static const char containers[2][8] = {"part\0a", "part\0b"}, names[2][4] = {"x\0c", "x\0d"};
	struct thing a = {.size = 1};
	weir_store *store = make_store(NULL);
	weir_resource *resource;

	cr_assert_eq(weir_store_add(store, containers[0], names[0], &things, &a, NULL, NULL), WEIR_OK);
	resource = find(store, containers[1], names[1]);
	cr_assert_eq(weir_resource_object(resource), &a);
	weir_resource_release(resource);
	weir_store_destroy(store, NULL);
}

/*
 * These names have the same hash in the container "", where the machine's order of bytes is little
 * endian. The store tells names with one hash apart.
 */
Test(named_store, names_of_one_hash_are_told_apart)
{
	static const char one[] = "tensor/a0A00HADB", other[] = "F1LqTIL3kdekTgLx";
	struct thing a = {.size = 1}, b = {.size = 2};
	weir_store *store = make_store(NULL);
	weir_resource *resource;

	cr_assert_eq(weir_store_add(store, NULL, one, &things, &a, NULL, NULL), WEIR_OK);
	cr_assert_null(find(store, NULL, other));
	cr_assert_eq(weir_store_add(store, NULL, other, &things, &b, NULL, NULL), WEIR_OK);
	resource = find(store, NULL, one);
	cr_assert_eq(weir_resource_object(resource), &a);
	weir_resource_release(resource);
	cr_assert_eq(weir_store_remove(store, NULL, one, NULL), WEIR_OK);
	cr_assert_null(find(store, NULL, one));
	resource = find(store, NULL, other);
	cr_assert_eq(weir_resource_object(resource), &b);
	weir_resource_release(resource);
	weir_store_destroy(store, NULL);
	cr_assert_eq(b.destroyed, 1);
}

Test(named_store, a_name_that_is_taken_is_refused_and_the_object_stays_the_callers)
{
	struct thing a = {.size = 1}, b = {.size = 2};
	weir_store *store = make_store(NULL);
	weir_error error;

	cr_assert_eq(weir_store_add(store, NULL, "x", &things, &a, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_store_add(store, NULL, "x", &things, &b, NULL, &error), WEIR_ALREADY_EXISTS);
	cr_assert_str_eq(error.message, "store \"names\": \"x\" in container \"\" already exists");
	cr_assert_eq(b.destroyed, 0);
	weir_store_destroy(store, NULL);
	cr_assert_eq(a.destroyed, 1, "the call that was refused keeps no reference");
	cr_assert_eq(b.destroyed, 0);
}

Test(named_store, references_outlive_the_name_and_the_store)
{
	struct thing a = {.size = 1}, b = {.size = 2};
	weir_store *store = make_store(NULL);
	weir_resource *first, *second;

	cr_assert_eq(weir_store_add(store, NULL, "x", &things, &a, &first, NULL), WEIR_OK);
	cr_assert_eq(weir_store_remove(store, NULL, "x", NULL), WEIR_OK);
	cr_assert_eq(weir_store_remove(store, NULL, "x", NULL), WEIR_NOT_FOUND);
	cr_assert_null(find(store, NULL, "x"));
	cr_assert_eq(weir_store_add(store, NULL, "x", &things, &b, &second, NULL), WEIR_OK, "the name is free at once");
	cr_assert_eq(a.destroyed, 0);
	cr_assert_eq(weir_resource_retain(first), first);
	weir_resource_release(first);
	cr_assert_eq(a.destroyed, 0);
	weir_resource_release(first);
	cr_assert_eq(a.destroyed, 1, "destroyed with the last reference, not at a later collection");
	weir_store_destroy(store, NULL);
	cr_assert_eq(b.destroyed, 0);
	cr_assert_str_eq(weir_resource_name(second), "x");
	weir_resource_release(second);
	cr_assert_eq(b.destroyed, 1);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
}

/* -- create or get ----------------------------------------------------------------------------- */

struct order {
	struct thing *thing;
	int size, created;
};

static enum weir_status create_thing(void *context, void **object, weir_error *error)
{
	struct order *order = context;

	(void)error;
	order->created++;
	order->thing->size = order->size;
	*object = order->thing;
	return WEIR_OK;
}

static enum weir_status same_size(void *context, void *object, weir_error *error)
{
	const struct order *order = context;
	const struct thing *thing = object;

	if (thing->size == order->size)
		return WEIR_OK;
	if (error != NULL) {
		error->code = WEIR_INVALID_ARGUMENT;
		(void)snprintf(error->message, sizeof(error->message), "size must be %d, got %d", order->size, thing->size);
	}
	return WEIR_INVALID_ARGUMENT;
}

static enum weir_status cannot_create(void *context, void **object, weir_error *error)
{
	(void)context, (void)object;
	cr_assert_not_null(error);
	return WEIR_UNIMPLEMENTED;
}

static enum weir_status never_the_same(void *context, void *object, weir_error *error)
{
	(void)context, (void)object;
	cr_assert_not_null(error);
	return WEIR_ABORTED;
}

Test(named_store, the_first_creates_and_the_others_get_the_same_if_it_is_compatible)
{
	struct thing a = {0}, b = {0};
	struct order first = {.thing = &a, .size = 7}, second = {.thing = &b, .size = 7};
	struct weir_store_maker maker = {create_thing, same_size, &first};
	weir_store *store = make_store(NULL);
	weir_resource *one, *two, *none = NULL;
	weir_error error;

	cr_assert_eq(weir_store_find_or_create(store, "c", "x", &things, &maker, &one, NULL), WEIR_OK);
	maker.context = &second;
	cr_assert_eq(weir_store_find_or_create(store, "c", "x", &things, &maker, &two, NULL), WEIR_OK);
	cr_assert_eq(one, two);
	cr_assert(first.created == 1 && second.created == 0);
	second.size = 8;
	cr_assert_eq(weir_store_find_or_create(store, "c", "x", &things, &maker, &none, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "size must be 8, got 7");
	cr_assert_eq(weir_store_find_or_create(store, "c", "x", &others, &maker, &none, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "store \"names\": \"x\" in container \"c\": type must be other, got thing");
	cr_assert_eq(weir_store_find(store, "c", "x", &others, &none, NULL), WEIR_INVALID_ARGUMENT);
	maker.create = cannot_create;
	cr_assert_eq(weir_store_find_or_create(store, "c", "y", &things, &maker, &none, NULL), WEIR_UNIMPLEMENTED);
	cr_assert_eq(weir_store_find_or_create(store, "c", "y", &things, &maker, &none, &error), WEIR_UNIMPLEMENTED);
	cr_assert_str_eq(error.message,
	                 "store \"names\": \"y\" in container \"c\": the maker's create returned WEIR_UNIMPLEMENTED");
	cr_assert_eq(error.code, WEIR_UNIMPLEMENTED);
	maker.compatible = never_the_same;
	cr_assert_eq(weir_store_find_or_create(store, "c", "x", &things, &maker, &none, &error), WEIR_ABORTED);
	cr_assert_str_eq(error.message,
	                 "store \"names\": \"x\" in container \"c\": the maker's compatible returned WEIR_ABORTED");
	cr_assert_null(none);
	cr_assert_eq(weir_store_size_approx(store), 1);
	weir_resource_release(one);
	weir_resource_release(two);
	cr_assert_eq(a.destroyed, 0, "refused calls released exactly their own references");
	weir_store_destroy(store, NULL);
	cr_assert_eq(a.destroyed, 1);
}

/* What a function of the maker finds in its error, and what it leaves there. */
struct speech {
	bool is_kind; /* it succeeds */
	size_t length;
};

static enum weir_status say(const struct speech *speech, weir_error *error)
{
	cr_expect_eq(error->code, WEIR_OK);
	cr_expect_str_eq(error->message, "");
	memset(error->message, 'x', speech->length);
	return speech->is_kind ? WEIR_OK : WEIR_DATA_LOSS;
}

static enum weir_status create_and_say(void *context, void **object, weir_error *error)
{
	*object = context;
	return say(context, error);
}

static enum weir_status compare_and_say(void *context, void *object, weir_error *error)
{
	(void)object;
	return say(context, error);
}

/* The first call leaves its words on the stack, where the second one may find them. */
static void speak_twice(weir_store *store, struct speech *speech, weir_error *error)
{
	static const struct weir_resource_type type = {.name = "speech"};
	struct weir_store_maker maker = {create_and_say, compare_and_say, speech};
	weir_resource *resource = NULL;

	for (int i = 0; i < 2; i++) {
		enum weir_status status = weir_store_find_or_create(store, NULL, "x", &type, &maker, &resource, error);

		cr_expect_eq(status, speech->is_kind ? WEIR_OK : WEIR_DATA_LOSS);
		weir_resource_release(resource);
		resource = NULL;
	}
}

Test(named_store, functions_of_a_maker_get_an_empty_error_and_need_not_end_their_message)
{
	weir_store *store = make_store(NULL);
	weir_error error = {WEIR_OK, "as before"};

	for (int is_there = 0; is_there < 2; is_there++) {
		speak_twice(store, &(struct speech){.length = WEIR_ERROR_MESSAGE_SIZE}, NULL);
		speak_twice(store, &(struct speech){.length = WEIR_ERROR_MESSAGE_SIZE}, &error);
		cr_expect_eq(error.code, WEIR_DATA_LOSS);
		cr_assert_eq(error.message[WEIR_ERROR_MESSAGE_SIZE - 1], '\0');
		cr_expect_eq(strspn(error.message, "x"), (size_t)WEIR_ERROR_MESSAGE_SIZE - 1);
		error = (weir_error){WEIR_OK, "as before"};
		speak_twice(store, &(struct speech){.is_kind = true, .length = 3}, &error);
		cr_expect_eq(error.code, WEIR_OK);
		cr_expect_str_eq(error.message, "as before", "words of a function that succeeds tell nothing");
	}
	weir_store_destroy(store, NULL);
}

Test(named_store, a_name_that_comes_again_after_another_creates_nothing)
{
	struct thing thing[3] = {{0}};
	const char *const names[] = {"x", "y", "x"};
	weir_store *store = make_store(NULL);
	weir_resource *got[3];

	for (int i = 0; i < 3; i++) {
		struct order order = {.thing = &thing[i], .size = i};
		struct weir_store_maker maker = {create_thing, NULL, &order};

		cr_assert_eq(weir_store_find_or_create(store, NULL, names[i], &things, &maker, &got[i], NULL), WEIR_OK);
		cr_assert_eq(order.created, i < 2);
		cr_assert_str_eq(weir_resource_name(got[i]), names[i]);
	}
	cr_assert_eq(got[0], got[2]);
	for (int i = 0; i < 3; i++)
		weir_resource_release(got[i]);
	weir_store_destroy(store, NULL);
}

/*
 * Between the look-up and the insert of a create-or-get, a rival adds an object of that name, and
 * in one case removes it again. The call must notice both.
 */
struct rival {
	struct order order;
	weir_store *store;
	struct thing *thing;
	int then_remove;
};

static enum weir_status create_late(void *context, void **object, weir_error *error)
{
	struct rival *rival = context;

	cr_assert_eq(weir_store_add(rival->store, NULL, "x", &things, rival->thing, NULL, NULL), WEIR_OK);
	if (rival->then_remove)
		cr_assert_eq(weir_store_remove(rival->store, NULL, "x", NULL), WEIR_OK);
	return create_thing(&rival->order, object, error);
}

Test(named_store, who_creates_too_late_gets_the_others_and_destroys_its_own)
{
	for (int then_remove = 0; then_remove < 2; then_remove++) {
		struct thing mine = {0}, theirs = {0};
		struct rival rival = {{.thing = &mine, .size = 1}, make_store(NULL), &theirs, then_remove};
		struct weir_store_maker maker = {create_late, NULL, &rival};
		weir_resource *resource;

		cr_assert_eq(weir_store_find_or_create(rival.store, NULL, "x", &things, &maker, &resource, NULL), WEIR_OK);
		cr_assert_eq(weir_resource_object(resource), then_remove ? &mine : &theirs);
		cr_assert_eq(mine.destroyed, !then_remove);
		cr_assert_eq(theirs.destroyed, then_remove);
		weir_resource_release(resource);
		weir_store_destroy(rival.store, NULL);
	}
}

/* -- many names -------------------------------------------------------------------------------- */

enum { NAMES = 3000 };

static void name_of(int number, char name[static 24])
{
	(void)snprintf(name, 24, "name/%d", number);
}

Test(named_store, any_number_of_names_is_found_walked_and_cleared)
{
	static struct thing thing[NAMES];
	weir_store *store = make_store(NULL);
	weir_resource *at = NULL, *next;
	char name[24];
	size_t met = 0, removed;

	for (int i = 0; i < NAMES; i++) {
		thing[i] = (struct thing){.size = i};
		name_of(i, name);
		cr_assert_eq(weir_store_add(store, i % 3 == 0 ? "third" : NULL, name, &things, &thing[i], NULL, NULL), WEIR_OK);
	}
	for (int i = 0; i < NAMES; i++) {
		name_of(i, name);
		at = find(store, i % 3 == 0 ? "third" : NULL, name);
		cr_assert_eq(weir_resource_object(at), &thing[i]);
		weir_resource_release(at);
	}
	cr_assert_eq(weir_store_size_approx(store), NAMES);
	for (at = NULL; weir_store_next(store, at, &next) == WEIR_OK; at = next, met++) {
		((struct thing *)weir_resource_object(next))->size = -1;
		weir_resource_release(at);
	}
	weir_resource_release(at);
	cr_assert_eq(met, NAMES);
	for (int i = 0; i < NAMES; i++)
		cr_assert_eq(thing[i].size, -1, "each was met");
	cr_assert_eq(weir_store_clear(store, "third", &removed), WEIR_OK);
	cr_assert_eq(removed, NAMES / 3);
	for (int i = 0; i < NAMES; i++)
		cr_assert_eq(thing[i].destroyed, i % 3 == 0);
	cr_assert_eq(weir_store_clear(store, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_store_next(store, NULL, &next), WEIR_OUT_OF_RANGE);
	cr_assert_eq(weir_store_size_approx(store), 0);
	weir_store_destroy(store, NULL);
}

Test(named_store, a_walk_goes_on_from_a_name_that_was_removed)
{
	static struct thing thing[8];
	weir_store *store = make_store(NULL);
	weir_resource *at = NULL, *next;
	char name[24];
	size_t met = 0;

	for (int i = 0; i < 8; i++) {
		name_of(i, name);
		cr_assert_eq(weir_store_add(store, NULL, name, &things, &thing[i], NULL, NULL), WEIR_OK);
	}
	for (; weir_store_next(store, at, &next) == WEIR_OK; met++) {
		weir_resource_release(at);
		at = next;
		cr_assert_eq(weir_store_remove(store, NULL, weir_resource_name(at), NULL), WEIR_OK);
	}
	weir_resource_release(at);
	cr_assert_eq(met, 8);
	weir_store_destroy(store, NULL);
}

/* -- refusals ---------------------------------------------------------------------------------- */

Test(named_store, bad_arguments_are_refused_by_name)
{
	struct weir_store_options options = {WEIR_STORE_OPTIONS_INIT, .flags = 1};
	struct weir_store_maker maker = {NULL, NULL, NULL};
	weir_store *store = NULL;
	weir_resource *resource = NULL;
	weir_error error;

	cr_assert_eq(weir_store_create(&options, &store, &error), WEIR_INVALID_ARGUMENT);
	options.flags = 0;
	options.struct_size = 1;
	cr_assert_eq(weir_store_create(&options, &store, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_create(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(store);
	cr_assert_eq(weir_store_create(NULL, &store, NULL), WEIR_OK);
	cr_assert_eq(weir_store_add(NULL, NULL, "x", &things, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_add(store, NULL, "", &things, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "store \"store\": a name must not be empty");
	cr_assert_eq(weir_store_add(store, NULL, NULL, &things, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_add(store, NULL, "x", NULL, NULL, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "store \"store\": \"x\" needs a type, got NULL");
	cr_assert_eq(weir_store_find(store, NULL, "x", &things, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_find(store, NULL, "x", &things, &resource, &error), WEIR_NOT_FOUND);
	cr_assert_str_eq(error.message, "store \"store\": \"x\" in container \"\" does not exist");
	cr_assert_eq(weir_store_find_or_create(store, NULL, "x", &things, &maker, &resource, &error),
	             WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_find_or_create(store, NULL, "x", &things, NULL, &resource, NULL), WEIR_INVALID_ARGUMENT);
	maker.create = cannot_create;
	cr_assert_eq(weir_store_find_or_create(store, NULL, "x", &things, &maker, NULL, &error), WEIR_INVALID_ARGUMENT);
	cr_assert_str_eq(error.message, "store \"store\": \"x\": out is NULL");
	cr_assert_eq(weir_store_remove(store, NULL, "", NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_clear(NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_next(NULL, NULL, &resource), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(weir_store_next(store, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_null(resource);
	cr_assert_null(weir_resource_retain(NULL));
	weir_resource_release(NULL);
	cr_assert_eq(weir_store_size_approx(NULL), 0);
	weir_store_destroy(store, NULL);
	weir_store_destroy(NULL, NULL);
}

static enum weir_status use_with(const weir_allocator *allocator, void *context)
{
	struct weir_store_options options = {WEIR_STORE_OPTIONS_INIT, .allocator = allocator};
	struct thing *thing = context;
	struct order order = {.thing = thing, .size = 1};
	struct weir_store_maker maker = {create_thing, NULL, &order};
	weir_store *store;
	weir_resource *resource;
	enum weir_status status = weir_store_create(&options, &store, NULL);

	if (status != WEIR_OK)
		return status;
	*thing = (struct thing){0};
	status = weir_store_find_or_create(store, NULL, "x", &things, &maker, &resource, NULL);
	if (status == WEIR_OK)
		weir_resource_release(resource);
	else
		cr_assert_eq(thing->destroyed, 1, "an object that was made and not kept is destroyed");
	weir_store_destroy(store, NULL);
	cr_assert_eq(thing->destroyed, 1);
	return status;
}

Test(named_store, creating_survives_every_allocation_failing)
{
	struct thing thing;

	cr_assert_eq(fail_each_allocation(use_with, &thing), 2);
}

/* A larger table only saves time: names go in even without memory for it. */
Test(named_store, grows_as_far_as_memory_lets_it)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	static struct thing thing[100];
	weir_store *store = make_store(&allocator);
	char name[24];
	int in = 0;

	for (int i = 0; i < 100; i++) {
		name_of(i, name);
		/* The allocation after that of the resource fails. */
		state.fail_at = i % 2 == 0 ? 0 : state.asked + 2;
		in += weir_store_add(store, NULL, name, &things, &thing[i], NULL, NULL) == WEIR_OK;
	}
	state.fail_at = 0;
	for (int i = 0; i < 100; i++) {
		weir_resource *resource;

		name_of(i, name);
		resource = find(store, NULL, name);
		in -= resource != NULL;
		weir_resource_release(resource);
	}
	cr_assert_eq(in, 0);
	weir_store_destroy(store, NULL);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	cr_assert_str_eq(failing_allocator_verdict(&state), "balanced");
}

#if defined(CRITERION_IN_PROCESS) /* sanitizers, valgrind, emulators */
enum { VERY_MANY = 20000 };
#else
enum { VERY_MANY = 1000000 };
#endif

Test(named_store, a_million_names)
{
	static struct thing thing;
	weir_store *store = make_store(NULL);
	char name[24];

	for (int i = 0; i < VERY_MANY; i++) {
		name_of(i, name);
		cr_assert_eq(weir_store_add(store, NULL, name, &things, &thing, NULL, NULL), WEIR_OK);
	}
	cr_assert_eq(weir_store_size_approx(store), VERY_MANY);
	for (int i = 0; i < VERY_MANY; i += 2) {
		name_of(i, name);
		cr_assert_eq(weir_store_remove(store, NULL, name, NULL), WEIR_OK);
	}
	for (int i = 0; i < VERY_MANY; i++) {
		weir_resource *resource;

		name_of(i, name);
		resource = find(store, NULL, name);
		cr_assert_eq(resource != NULL, i % 2 != 0);
		weir_resource_release(resource);
	}
	cr_assert_eq(weir_store_size_approx(store), VERY_MANY / 2);
	weir_store_destroy(store, NULL);
	cr_assert_eq(thing.destroyed, VERY_MANY);
}

/* Names that differ in one place, at each place, and prefixes of each other. */
Test(named_store, names_that_differ_in_one_byte_or_in_their_length_are_told_apart)
{
	enum { LONGEST = 40 };
	static struct thing whole[LONGEST + 1], changed[LONGEST + 1];
	weir_store *store = make_store(NULL);
	char name[LONGEST + 1];

	for (size_t size = 1; size <= LONGEST; size++) {
		memset(name, 'x', sizeof(name));
		name[size] = '\0';
		cr_assert_eq(weir_store_add(store, NULL, name, &things, &whole[size], NULL, NULL), WEIR_OK);
		name[size - 1] = 'y';
		cr_assert_eq(weir_store_add(store, NULL, name, &things, &changed[size], NULL, NULL), WEIR_OK);
	}
	for (size_t size = 1; size <= LONGEST; size++) {
		for (size_t place = 0; place < size; place++) {
			weir_resource *resource;

			memset(name, 'x', sizeof(name));
			name[size] = '\0';
			resource = find(store, "", name);
			cr_assert_eq(weir_resource_object(resource), &whole[size]);
			weir_resource_release(resource);
			cr_assert_null(find(store, "x", name));
			name[place] = 'y';
			resource = find(store, NULL, name);
			cr_assert_eq(weir_resource_object(resource), place == size - 1 ? &changed[size] : NULL);
			weir_resource_release(resource);
		}
	}
	weir_store_destroy(store, NULL);
}

/* No thread walks past the name afterwards. */
Test(named_store, what_is_removed_is_unlinked_by_its_removal)
{
	struct failing_allocator state = {0};
	weir_allocator allocator = failing_allocator_hooks(&state);
	weir_store *store = make_store(&allocator);
	struct thing a = {.size = 1};
	size_t before = state.outstanding;

	cr_assert_eq(weir_store_add(store, NULL, "x", &things, &a, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_store_remove(store, NULL, "x", NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
	cr_assert_eq(state.outstanding, before);
	weir_store_destroy(store, NULL);
	cr_assert_eq(a.destroyed, 1);
	cr_assert_str_eq(failing_allocator_verdict(&state), "balanced");
}

/* -- threads ----------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 3000, SHARED = 5 };

struct crowd {
	weir_store *store;
	_Atomic(int) alive;
	int created[THREADS], removed[THREADS], wrong[THREADS];
	_Atomic(int) next;
};

struct counted {
	struct crowd *crowd;
	int number; /* plain: a race detector sees whether the store orders it */
};

static void destroy_counted(void *object)
{
	struct counted *counted = object;

	atomic_fetch_sub_explicit(&counted->crowd->alive, 1, memory_order_relaxed);
	counted->number = -1;
	free(counted);
}

static const struct weir_resource_type counteds = {"counted", destroy_counted};

struct wish {
	struct crowd *crowd;
	int number;
	void *made;
};

static enum weir_status create_counted(void *context, void **object, weir_error *error)
{
	struct wish *wish = context;
	struct counted *counted = malloc(sizeof(*counted));

	(void)error;
	cr_assert_not_null(counted);
	atomic_fetch_add_explicit(&wish->crowd->alive, 1, memory_order_relaxed);
	*counted = (struct counted){wish->crowd, wish->number};
	*object = wish->made = counted;
	return WEIR_OK;
}

static void *jostle(void *context)
{
	struct crowd *crowd = context;
	int me = atomic_fetch_add_explicit(&crowd->next, 1, memory_order_relaxed);

	for (int i = 0; i < ROUNDS; i++) {
		struct wish wish = {crowd, (i * 7 + me) % SHARED, NULL};
		struct weir_store_maker maker = {create_counted, NULL, &wish};
		weir_resource *resource;
		char name[24];

		name_of(wish.number, name);
		if (i % 3 == 0) {
			crowd->removed[me] += weir_store_remove(crowd->store, NULL, name, NULL) == WEIR_OK;
			continue;
		}
		if (weir_store_find_or_create(crowd->store, NULL, name, &counteds, &maker, &resource, NULL) != WEIR_OK) {
			crowd->wrong[me]++;
			continue;
		}
		crowd->wrong[me] += ((struct counted *)weir_resource_object(resource))->number != wish.number;
		crowd->created[me] += weir_resource_object(resource) == wish.made;
		weir_resource_release(resource);
	}
	return NULL;
}

Test(named_store, one_object_at_a_time_has_a_name_and_each_is_destroyed_once)
{
	static struct crowd crowd;
	pthread_t threads[THREADS];
	int created = 0, removed = 0, wrong = 0;

	crowd = (struct crowd){.store = make_store(NULL)};
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, jostle, &crowd), 0);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++) {
		created += crowd.created[i];
		removed += crowd.removed[i];
		wrong += crowd.wrong[i];
	}
	cr_assert_eq(wrong, 0);
	/*
	 * If two objects had one name at a time, more would have been created than were removed and are
	 * left.
	 */
	cr_assert_eq((size_t)(created - removed), weir_store_size_approx(crowd.store));
	cr_assert_eq(crowd.alive, created - removed, "objects that lost the race or were removed are destroyed");
	weir_store_destroy(crowd.store, NULL);
	cr_assert_eq(crowd.alive, 0);
}

/* -- a call stopped anywhere ------------------------------------------------------------------- */

static void remove_b(void *context)
{
	cr_assert_eq(weir_store_remove(context, NULL, "b", NULL), WEIR_OK);
}

Test(named_store, a_removal_stopped_anywhere_stops_nobody)
{
	struct stepped call = {.call = remove_b};
	static struct thing thing[3];
	size_t at = 0;

	stepped_or_skip();
	for (int goes_on = 1; goes_on; at += stepped_stride(3)) {
		const char *const names[] = {"a", "b", "c"};
		weir_store *store = make_store(NULL);
		weir_resource *resource;

		for (int i = 0; i < 3; i++) {
			thing[i] = (struct thing){.size = i};
			cr_assert_eq(weir_store_add(store, NULL, names[i], &things, &thing[i], NULL, NULL), WEIR_OK);
		}
		call.context = store;
		goes_on = stepped_start(&call, at);
		resource = find(store, NULL, "b");
		weir_resource_release(resource);
		cr_assert_eq(weir_store_remove(store, NULL, "a", NULL), WEIR_OK);
		cr_assert_eq(weir_store_remove(store, NULL, "c", NULL), WEIR_OK);
		cr_assert_eq(weir_store_add(store, NULL, "c", &things, &thing[2], NULL, NULL), WEIR_OK);
		weir_resource_release(find(store, NULL, "c"));
		stepped_finish(&call);
		cr_assert_null(find(store, NULL, "b"));
		cr_assert_eq(weir_store_size_approx(store), 1);
		cr_assert_eq(thing[1].destroyed, 1);
		weir_store_destroy(store, NULL);
	}
}
