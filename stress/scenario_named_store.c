/*
 * scenario_named_store.c - objects by name, and a thread that is stopped anywhere in a store's
 * call.
 *
 * Each round uses a new store. Each thread has names of its own, and knows at every moment whether
 * they are in the store. All threads share some other names, which they create or get, find and
 * remove at random. Checked:
 *
 *   presence   a thread's own name is found, also by a walk, from its add until its removal, and
 *              not afterwards
 *   one        the number of objects created under shared names that are missing at the end is the
 *              number of removals
 *   lifetime   a reference's object is intact until the reference is released; each object is
 *              destroyed once, and none is left at the end
 *   walks      find no name twice
 *
 * Freed memory is poisoned.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/store.h>
#include <weir/time.h>

#include "blocks.h"
#include "poison.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"

enum { OWN = 40, SHARED = 6, HELD = 4, PER_ROUND = 3000, TEXT = 24, ALIVE = 0x600d, DEAD = 0xdead };

static const uint64_t patience_ns = 100000000000u;

struct object {
	uint32_t state, number; /* plain */
	const void *maker;
};

static struct {
	weir_store *store;
	_Atomic(uint64_t) alive, created, removed; /* objects; of shared names */
} now;

static void count(_Atomic(uint64_t) *counter)
{
	(void)weiri_fetch_add_relaxed(counter, (uint64_t)1); /* [relaxed] read after the join */
}

static void destroy(void *context)
{
	struct object *object = context;

	STRESS_CHECK(object->state == ALIVE, "destroyed %s",
	             object->state == DEAD ? "an object twice" : "memory that is no object");
	object->state = DEAD;
	free(object);
	(void)weiri_fetch_sub_relaxed(&now.alive, (uint64_t)1); /* [relaxed] read after the join */
}

static const struct weir_resource_type type = {"object", destroy};

static struct object *make_object(const void *maker, uint32_t number)
{
	struct object *object = malloc(sizeof(*object));

	STRESS_CHECK(object != NULL, "the harness has no memory");
	*object = (struct object){ALIVE, number, maker};
	count(&now.alive);
	return object;
}

static void check_whole(const weir_resource *resource, uint32_t number)
{
	const struct object *object = weir_resource_object(resource);

	STRESS_CHECK(object->state == ALIVE && object->number == number, "\"%s\" gave an object that is %s, of number %u",
	             weir_resource_name(resource), object->state == ALIVE ? "alive" : "dead", object->number);
}

/* -- a thread's own names ---------------------------------------------------------------------- */

struct owner {
	char container[TEXT];
	int there[OWN];
};

static const char *own_name(char text[static TEXT], uint32_t number)
{
	(void)snprintf(text, TEXT, "own %u", number);
	return text;
}

static void flip_own(struct stress_thread *self, struct owner *owner)
{
	uint32_t number = (uint32_t)stress_below(self, OWN);
	char text[TEXT];
	const char *name = own_name(text, number);
	struct object *object;
	enum weir_status status;

	if (owner->there[number]) {
		stress_begin(self, "remove");
		status = weir_store_remove(now.store, owner->container, name, NULL);
	} else {
		stress_begin(self, "add");
		object = make_object(owner, number);
		status = weir_store_add(now.store, owner->container, name, &type, object, NULL, NULL);
	}
	STRESS_CHECK(status == WEIR_OK, "a thread's own name: %s returned %s", owner->there[number] ? "remove" : "add",
	             weir_status_name(status));
	owner->there[number] = !owner->there[number];
}

static void find_own(struct stress_thread *self, struct owner *owner)
{
	uint32_t number = (uint32_t)stress_below(self, OWN);
	char text[TEXT];
	weir_resource *resource = NULL;
	enum weir_status status;

	stress_begin(self, "find");
	status = weir_store_find(now.store, owner->container, own_name(text, number), &type, &resource, NULL);
	STRESS_CHECK(status == (owner->there[number] ? WEIR_OK : WEIR_NOT_FOUND),
	             "a lookup of a name that is %s returned %s", owner->there[number] ? "there" : "not there",
	             weir_status_name(status));
	if (resource == NULL)
		return;
	check_whole(resource, number);
	weir_resource_release(resource);
}

static void walk(struct stress_thread *self, const struct owner *owner)
{
	weir_resource *at = NULL, *next;
	int met[OWN] = {0};

	stress_begin(self, "walk");
	for (; weir_store_next(now.store, at, &next) == WEIR_OK; at = next) {
		const struct object *object = weir_resource_object(next);

		check_whole(next, object->number);
		if (object->maker == owner)
			met[object->number]++;
		weir_resource_release(at);
	}
	weir_resource_release(at);
	for (unsigned i = 0; i < OWN; i++)
		STRESS_CHECK(met[i] == owner->there[i], "a walk found a name %d times that is %s", met[i],
		             owner->there[i] ? "there" : "not there");
}

/* -- shared names ------------------------------------------------------------------------------ */

struct wish {
	uint32_t number;
	struct object *made;
};

static enum weir_status create(void *context, void **object, weir_error *error)
{
	struct wish *wish = context;

	(void)error;
	*object = wish->made = make_object(NULL, wish->number);
	return WEIR_OK;
}

static weir_resource *create_or_get(struct stress_thread *self)
{
	struct wish wish = {(uint32_t)stress_below(self, SHARED), NULL};
	struct weir_store_maker maker = {create, NULL, &wish};
	weir_resource *resource = NULL;
	char text[TEXT];
	enum weir_status status;

	(void)snprintf(text, TEXT, "shared %u", wish.number);
	stress_begin(self, "find_or_create");
	status = weir_store_find_or_create(now.store, NULL, text, &type, &maker, &resource, NULL);
	STRESS_CHECK(status == WEIR_OK, "find_or_create: %s", weir_status_name(status));
	check_whole(resource, wish.number);
	if (weir_resource_object(resource) == wish.made)
		count(&now.created);
	return resource;
}

static void remove_shared(struct stress_thread *self)
{
	char text[TEXT];
	enum weir_status status;

	(void)snprintf(text, TEXT, "shared %u", (uint32_t)stress_below(self, SHARED));
	stress_begin(self, "remove");
	status = weir_store_remove(now.store, NULL, text, NULL);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_NOT_FOUND, "remove: %s", weir_status_name(status));
	if (status == WEIR_OK)
		count(&now.removed);
}

/* References are held across other calls, including removals of their names. */
static void hold(struct stress_thread *self, weir_resource *held[static HELD])
{
	weir_resource **place = &held[stress_below(self, HELD)];

	if (*place != NULL)
		check_whole(*place, ((const struct object *)weir_resource_object(*place))->number);
	weir_resource_release(*place);
	*place = create_or_get(self);
}

/* -- rounds ------------------------------------------------------------------------------------ */

static void work(struct stress_thread *self, void *context)
{
	struct owner owner = {.container = ""};
	weir_resource *held[HELD] = {NULL};

	(void)context;
	(void)snprintf(owner.container, TEXT, "thread %u", self->number);
	for (uint64_t i = stress_scaled(PER_ROUND); i > 0; i--) {
		switch (stress_below(self, 64)) {
		case 0: walk(self, &owner); break;
		default:
			switch (stress_below(self, 5)) {
			case 0: flip_own(self, &owner); break;
			case 1: find_own(self, &owner); break;
			case 2: remove_shared(self); break;
			default: hold(self, held);
			}
		}
		stress_end(self, 1);
	}
	for (unsigned i = 0; i < HELD; i++)
		weir_resource_release(held[i]);
	STRESS_CHECK(weir_store_clear(now.store, owner.container, NULL) == WEIR_OK, "clear");
}

static void check_end(void)
{
	uint64_t created = weiri_load_relaxed(&now.created),
			 removed = weiri_load_relaxed(&now.removed); /* [relaxed] joined */

	STRESS_CHECK(created - removed == weir_store_size_approx(now.store),
	             "%llu objects were created and %llu removed, but %zu are in the store", (unsigned long long)created,
	             (unsigned long long)removed, weir_store_size_approx(now.store));
	weir_store_destroy(now.store, NULL);
	STRESS_CHECK(weiri_load_relaxed(&now.alive) == 0, "%llu objects outlived the store",
	             (unsigned long long)weiri_load_relaxed(&now.alive));
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

static void open_store(const weir_allocator *allocator)
{
	struct weir_store_options options = {WEIR_STORE_OPTIONS_INIT, .allocator = allocator};

	STRESS_CHECK(weir_store_create(&options, &now.store, NULL) == WEIR_OK, "no store");
	weiri_store_relaxed(&now.created, (uint64_t)0); /* [relaxed] no thread yet */
	weiri_store_relaxed(&now.removed, (uint64_t)0);
}

void scenario_named_store(void)
{
	uint64_t rounds = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		open_store(stress_poison());
		for (unsigned i = stress_threads(4); i > 0; i--)
			(void)stress_start("worker", work, NULL);
		stress_join();
		check_end();
	}
	stress_note("rounds", rounds);
}

/* -- stops ------------------------------------------------------------------------------------- */

enum { WORKERS = 4, STOPS = 1000 };

static struct object still = {ALIVE, 0, NULL};
static const struct weir_resource_type stills = {"still", NULL};

static enum weir_status give_still(void *context, void **object, weir_error *error)
{
	(void)context, (void)error;
	*object = &still;
	return WEIR_OK;
}

static int work_on_names(struct stress_thread *self, unsigned worker)
{
	static const struct weir_store_maker maker = {give_still, NULL, NULL};
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	const char *name = names[stress_below(self, 5)];
	weir_resource *resource = NULL;
	int kind = (int)stress_below(self, 3);

	(void)worker;
	switch (kind) {
	case 0:
		stress_begin(self, "find_or_create");
		STRESS_CHECK(weir_store_find_or_create(now.store, NULL, name, &stills, &maker, &resource, NULL) == WEIR_OK,
		             "find_or_create");
		break;
	case 1:
		stress_begin(self, "find");
		(void)weir_store_find(now.store, NULL, name, &stills, &resource, NULL);
		break;
	default: stress_begin(self, "remove"); (void)weir_store_remove(now.store, NULL, name, NULL);
	}
	weir_resource_release(resource);
	return kind;
}

void scenario_named_store_stopped(void)
{
	const struct stopping subject = {"store", WORKERS, {"create or get", "find", "remove"}, 3, 0, work_on_names, 300};
	struct stress_thread *self = stress_self();

	stress_stop_prepare();
	open_store(stress_blocks());
	(void)stopping_must_go_on(self, &subject, stress_scaled(STOPS), stopping_part_end(1));
	weir_store_destroy(now.store, NULL);
}
