/*
 * named_store.c - objects by name: <weir/store.h>. Files about it are called named_store, because a store is also
 * what keeps the items of a queue (queue/queue.h, stress/model/check_store.c).
 *
 * Algorithm. The store is a set of resources with keys of two parts (sync/hash_list.h): the
 * container and the name. A resource has a node, the texts of its key, the object, and two counts.
 *
 *   references  one for each handle, and one of the store while the name is in the list. The last
 *               release destroys the object at once
 *   holds       one of the list, until no section can see the node; and one of the object, until it
 *               is destroyed. The drop of the last one frees the memory
 *
 * There are two counts because the object and the memory are freed at different times. The object
 * must not wait for a collection. The memory must wait for one: a walk that began before a removal
 * may still compare names and read `references`.
 *
 * Invariants
 *   N1  references never rises from 0: a look-up that finds 0 has found a resource that was removed
 *       during the look-up
 *   N2  the store's reference is dropped once, by the call that removed the node, after the removal
 *   N3  callbacks and destructors run outside sections
 * Pairs
 *   P1  of hash_list.h: the fields, the object
 *   P2  release(references) -> destroy: what the holders did with the object
 *   P3  drop(holds) -> free: the holder of the other hold has finished with the memory
 * Linearization: the points of the list. A look-up that finds references = 0 reports that the name
 * is not there, since it was removed during the call.
 * Progress: lock-free. A find-or-create tries again only when the resource that was in its way has
 * been removed.
 * Checked: tests/test_named_store.c, stress/model/check_named_store.c, weir-stress "named_store",
 * "named_store_stopped", "history_store".
 */
#include <weir/store.h>

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "store/text_hash.h"
#include "sync/hash_list.h"
#include "sync/references.h"

/*
 * A look-up reads one line of a resource with a short name. What comes before that line is for
 * removals and for the end. The allocator follows the texts.
 */
struct weir_resource {
	_Alignas(WEIRI_LINE) _Atomic(uint32_t) holds;
	/* Constant, as all below but the node's link and `references`. */
	size_t container_size; /* with the terminating zero, as the next */
	size_t name_size;
	struct weiri_hash_node node; /* its link begins a line */
	_Atomic(size_t) references;
	const struct weir_resource_type *type;
	void *object;
	size_t texts_size; /* container_size + name_size */
	char texts[];      /* the container, then the name */
};

_Static_assert(sizeof(void *) != 8 || offsetof(struct weir_resource, node.link) == WEIRI_LINE,
               "a look-up begins with a line");

struct weir_store {
	struct weiri_hash_list list;
	/* Constant. */
	size_t memory_size;
	weir_allocator allocator;
	char name[];
};

struct key {
	const char *container, *name;
	size_t container_size, name_size; /* with the terminating zeros */
	uint64_t hash;
};

static weir_resource *resource_of(struct weiri_hash_node *node)
{
	return node != NULL ? WEIRI_CONTAINER_OF(node, weir_resource, node) : NULL;
}

/* -- keys -------------------------------------------------------------------------------------- */

/*
 * Fills *key in place. A returned struct would be copied right after it was written, and the copy
 * would wait for the stores.
 */
static WEIRI_ALWAYS_INLINE void key_of(struct key *key, const char *container, const char *name)
{
	uint64_t hash = WEIRI_TEXT_HASH_BEGIN;

	key->container = container != NULL ? container : "";
	key->name = name;
	key->container_size = 1;
	if (key->container[0] != '\0') {
		key->container_size += strlen(key->container);
		hash = weiri_text_hash_add(hash, key->container, key->container_size - 1);
	}
	key->name_size = strlen(name) + 1;
	key->hash = weiri_text_hash_end(weiri_text_hash_add(hash, name, key->name_size - 1));
}

static struct key key_of_resource(const weir_resource *resource)
{
	return (struct key){resource->texts, resource->texts + resource->container_size, resource->container_size,
	                    resource->name_size, weiri_hash_of_node(&resource->node)};
}

static WEIRI_ALWAYS_INLINE int compare_texts(const char *one, const char *other, size_t size)
{
	return WEIRI_LIKELY(weiri_texts_are_equal(one, other, size)) ? 0 : memcmp(one, other, size);
}

/* Orders keys of the same hash. Any order will do, since few keys share a hash. */
static int compare_keys(const void *context, struct weiri_hash_node *node)
{
	const struct key *key = context;
	const weir_resource *resource = resource_of(node);
	size_t size = key->container_size + key->name_size;
	int side;

	if (size != resource->texts_size)
		return size < resource->texts_size ? -1 : 1;
	/*
	 * If the containers are equal, so are their zeros, and the names begin at the same place. The
	 * container "" is the most frequent.
	 */
	if (key->container_size == 1)
		side = resource->texts[0] != '\0' ? -1 : 0;
	else
		side = compare_texts(key->container, resource->texts, key->container_size);
	return side != 0 ? side : compare_texts(key->name, resource->texts + key->container_size, key->name_size);
}

/* -- assertions -------------------------------------------------------------------------------- */

static WEIRI_UNSEEN void assert_outside_sections(void)
{
	const struct weiri_record *mine = weiri_record_mine;

	WEIR_ASSERT2(N3, mine == NULL || weiri_peek(&mine->lo) == 0 || weiri_peek(&mine->read_sections) != 0);
}

/* The store's reference is still to be dropped. */
static WEIRI_UNSEEN void assert_is_kept(const weir_resource *resource)
{
	WEIR_ASSERT2(N2, weiri_peek(&resource->references) != 0);
}

/* -- resources --------------------------------------------------------------------------------- */

/* The allocator's place follows the texts and has no alignment. */
static size_t memory_size(size_t texts_size)
{
	return sizeof(struct weir_resource) + texts_size + sizeof(weir_allocator);
}

static void resource_free(weir_resource *resource)
{
	weir_allocator allocator;

	memcpy(&allocator, resource->texts + resource->texts_size, sizeof(allocator));
	weiri_release(&allocator, resource, memory_size(resource->texts_size), alignof(struct weir_resource));
}

static void drop_hold(weir_resource *resource)
{
	/* [P3 acq_rel] */
	if (weiri_fetch_sub_acq_rel(&resource->holds, 1u) == 1)
		resource_free(resource);
}

/* Called when no section can see the node any more. */
static void out_of_sight(struct weiri_retired *retired)
{
	drop_hold(resource_of(WEIRI_CONTAINER_OF(retired, struct weiri_hash_node, retired)));
}

/*
 * Makes a resource that is not in the list yet. One reference is for the store and one for the
 * caller. Returns NULL if there is no memory.
 */
static weir_resource *resource_create(const weir_store *store, const struct key *key,
                                      const struct weir_resource_type *type, void *object)
{
	size_t texts_size = key->container_size + key->name_size, size = memory_size(texts_size);
	weir_resource *resource = weiri_allocate(&store->allocator, size, alignof(struct weir_resource));

	if (resource == NULL)
		return NULL;
	weiri_hash_node_init(&resource->node, key->hash, size, out_of_sight);
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&resource->references, (size_t)2);
	weiri_store_relaxed(&resource->holds, 2u);
	resource->type = type;
	resource->object = object;
	resource->container_size = key->container_size;
	resource->name_size = key->name_size;
	resource->texts_size = texts_size;
	memcpy(resource->texts, key->container, key->container_size);
	memcpy(resource->texts + key->container_size, key->name, key->name_size);
	memcpy(resource->texts + texts_size, &store->allocator, sizeof(store->allocator));
	return resource;
}

/* Takes a reference. Returns false if there was none left: the object is destroyed (N1). */
static bool try_retain(weir_resource *resource)
{
	return weiri_references_try_take(&resource->references);
}

weir_resource *weir_resource_retain(weir_resource *resource)
{
	if (resource != NULL)
		/* [relaxed] the caller has a reference. */
		(void)weiri_fetch_add_relaxed(&resource->references, (size_t)1);
	return resource;
}

void weir_resource_release(weir_resource *resource)
{
	if (resource == NULL || !weiri_references_give(&resource->references)) /* P2 */
		return;
	WEIR_ASSERT_LOOK(assert_outside_sections());
	if (resource->type->destroy != NULL)
		resource->type->destroy(resource->object);
	drop_hold(resource);
}

void *weir_resource_object(const weir_resource *resource)
{
	return resource != NULL ? resource->object : NULL;
}

const struct weir_resource_type *weir_resource_type_of(const weir_resource *resource)
{
	return resource != NULL ? resource->type : NULL;
}

const char *weir_resource_name(const weir_resource *resource)
{
	return resource != NULL ? resource->texts + resource->container_size : NULL;
}

const char *weir_resource_container(const weir_resource *resource)
{
	return resource != NULL ? resource->texts : NULL;
}

/* -- creating and destroying ------------------------------------------------------------------- */

enum weir_status weir_store_create(const struct weir_store_options *options, weir_store **out, weir_error *error)
{
	struct weir_store_options given;
	enum weir_status status;
	const char *name;
	weir_allocator allocator;
	weir_store *store;
	size_t size;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "store: out is NULL");
	status = weiri_options_read("store", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("store", given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	name = given.name != NULL ? given.name : "store";
	allocator = weiri_allocator_or_default(given.allocator);
	size = sizeof(*store) + strlen(name) + 1;
	store = weiri_record_get() != NULL ? weiri_allocate(&allocator, size, WEIRI_APART) : NULL;
	if (store == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "store \"%s\": no memory", name);
	store->memory_size = size;
	store->allocator = allocator;
	memcpy(store->name, name, strlen(name) + 1);
	weiri_hash_list_init(&store->list, compare_keys, &allocator);
	*out = store;
	return WEIR_OK;
}

static void end_with_store(struct weiri_hash_node *node)
{
	weir_resource *resource = resource_of(node);

	weir_resource_release(resource);
	drop_hold(resource); /* the list's: no section is open */
}

enum weir_status weir_store_destroy(weir_store *store, weir_error *error)
{
	weir_allocator allocator;

	(void)error; /* it never fails */
	if (store == NULL)
		return WEIR_OK;
	weiri_hash_list_fini(&store->list, end_with_store);
	allocator = store->allocator;
	weiri_release(&allocator, store, store->memory_size, WEIRI_APART);
	return WEIR_OK;
}

/* -- names ------------------------------------------------------------------------------------- */

/* A call that takes a name has failed its checks, or is the first of its thread. */
static WEIRI_COLD enum weir_status check_again(const weir_store *store, const char *name, struct weiri_record **record,
                                               weir_error *error)
{
	if (store == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "store: NULL");
	if (name == NULL || name[0] == '\0')
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "store \"%s\": a name must not be %s", store->name,
		                  name == NULL ? "NULL" : "empty");
	*record = weiri_record_get();
	if (*record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "store \"%s\": no memory for this thread's record",
		                  store->name);
	return WEIR_OK;
}

/* Every call that takes a name begins with these checks. */
static WEIRI_ALWAYS_INLINE enum weir_status check_call(const weir_store *store, const char *name,
                                                       struct weiri_record **record, weir_error *error)
{
	*record = weiri_record_mine;
	if (WEIRI_LIKELY(store != NULL && name != NULL && name[0] != '\0' && *record != NULL))
		return WEIR_OK;
	return check_again(store, name, record, error);
}

static WEIRI_COLD enum weir_status fail_untyped(const weir_store *store, const char *name, weir_error *error)
{
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "store \"%s\": \"%s\" needs a type, got NULL", store->name, name);
}

static WEIRI_ALWAYS_INLINE enum weir_status check_typed_call(const weir_store *store, const char *name,
                                                             const struct weir_resource_type *type,
                                                             struct weiri_record **record, weir_error *error)
{
	enum weir_status status = check_call(store, name, record, error);

	return WEIRI_LIKELY(status != WEIR_OK || type != NULL) ? status : fail_untyped(store, name, error);
}

static WEIRI_COLD enum weir_status fail_key(const weir_store *store, enum weir_status status, const struct key *key,
                                            const char *what, weir_error *error)
{
	return weiri_fail(error, status, "store \"%s\": \"%s\" in container \"%s\" %s", store->name, key->name,
	                  key->container, what);
}

/* Returns the resource with a reference, or NULL. */
static inline weir_resource *look_up(weir_store *store, struct weiri_record *record, const struct key *key)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	weir_resource *resource = resource_of(weiri_hash_list_find(&scope, &store->list, key->hash, key));

	if (resource != NULL && !try_retain(resource))
		resource = NULL;
	weiri_scope_leave(&scope);
	return resource;
}

/*
 * Returns NULL if the resource was inserted. Otherwise returns the resource that was there, with a
 * reference.
 */
static weir_resource *put(weir_store *store, struct weiri_record *record, weir_resource *resource)
{
	const struct key key = key_of_resource(resource);
	struct weiri_scope scope = weiri_scope_enter(record);
	weir_resource *there;

	do {
		there = resource_of(weiri_hash_list_insert(&scope, &store->list, &resource->node, key.hash, &key));
	} while (there != NULL && !try_retain(there));
	weiri_scope_leave(&scope);
	return there;
}

/* Returns true if this call removed the name. */
static bool take_away(weir_store *store, struct weiri_record *record, weir_resource *resource)
{
	const struct key key = key_of_resource(resource);
	struct weiri_scope scope = weiri_scope_enter(record);
	bool mine = weiri_hash_list_remove(&scope, &store->list, &resource->node, key.hash, &key);

	weiri_scope_leave(&scope);
	if (mine) {
		WEIR_ASSERT_LOOK(assert_is_kept(resource));
		weir_resource_release(resource); /* N2 */
	}
	return mine;
}

static WEIRI_COLD enum weir_status fail_type(const weir_store *store, weir_resource *resource,
                                             const struct weir_resource_type *type, weir_error *error)
{
	enum weir_status status = weiri_fail(
		error, WEIR_INVALID_ARGUMENT, "store \"%s\": \"%s\" in container \"%s\": type must be %s, got %s", store->name,
		weir_resource_name(resource), weir_resource_container(resource), type->name, resource->type->name);

	weir_resource_release(resource);
	return status;
}

/* Passes the caller's reference to *out if the resource has the type; otherwise releases it. */
static WEIRI_ALWAYS_INLINE enum weir_status give(const weir_store *store, weir_resource *resource,
                                                 const struct weir_resource_type *type, weir_resource **out,
                                                 weir_error *error)
{
	if (WEIRI_UNLIKELY(resource->type != type))
		return fail_type(store, resource, type, error);
	*out = resource;
	return WEIR_OK;
}

enum weir_status weir_store_find(weir_store *store, const char *container, const char *name,
                                 const struct weir_resource_type *type, weir_resource **out, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check_typed_call(store, name, type, &record, error);
	weir_resource *resource;
	struct key key;

	if (status != WEIR_OK)
		return status;
	if (WEIRI_UNLIKELY(out == NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "store \"%s\": out is NULL", store->name);
	key_of(&key, container, name);
	resource = look_up(store, record, &key);
	if (resource == NULL)
		return fail_key(store, WEIR_NOT_FOUND, &key, "does not exist", error);
	return give(store, resource, type, out, error);
}

enum weir_status weir_store_add(weir_store *store, const char *container, const char *name,
                                const struct weir_resource_type *type, void *object, weir_resource **out,
                                weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check_typed_call(store, name, type, &record, error);
	weir_resource *resource, *there;
	struct key key;

	if (status != WEIR_OK)
		return status;
	key_of(&key, container, name);
	resource = resource_create(store, &key, type, object);
	if (resource == NULL)
		return fail_key(store, WEIR_RESOURCE_EXHAUSTED, &key, "cannot be added: no memory", error);
	there = put(store, record, resource);
	if (there != NULL) {
		weir_resource_release(there);
		resource_free(resource); /* never in the list; the caller keeps the object */
		return fail_key(store, WEIR_ALREADY_EXISTS, &key, "already exists", error);
	}
	if (out != NULL)
		*out = resource;
	else
		weir_resource_release(resource);
	return WEIR_OK;
}

/* -- find or create ---------------------------------------------------------------------------- */

/* A function of the maker returned `status`: *error gets what it said of that. */
static WEIRI_COLD enum weir_status fail_as_said(const weir_store *store, const weir_resource *there,
                                                const struct key *key, enum weir_status status, weir_error *said,
                                                weir_error *error)
{
	if (!weiri_error_explains(said, status))
		return weiri_fail(error, status, "store \"%s\": \"%s\" in container \"%s\": the maker's %s returned %s",
		                  store->name, key->name, key->container, there != NULL ? "compatible" : "create",
		                  weir_status_name(status));
	if (error != NULL)
		*error = *said;
	return status;
}

static enum weir_status give_if_compatible(const weir_store *store, weir_resource *resource, const struct key *key,
                                           const struct weir_resource_type *type, const struct weir_store_maker *maker,
                                           weir_resource **out, weir_error *error)
{
	weir_error said;
	weir_resource *given = NULL;
	enum weir_status status = give(store, resource, type, &given, error);

	if (status == WEIR_OK && maker->compatible != NULL) {
		weiri_error_begin(&said);
		status = maker->compatible(maker->context, given->object, &said);
		if (status != WEIR_OK)
			status = fail_as_said(store, given, key, status, &said, error);
	}
	if (status == WEIR_OK)
		*out = given;
	else
		weir_resource_release(given);
	return status;
}

static enum weir_status make(const weir_store *store, const struct key *key, const struct weir_resource_type *type,
                             const struct weir_store_maker *maker, weir_resource **out, weir_error *error)
{
	enum weir_status status;
	weir_error said;
	void *object;

	weiri_error_begin(&said);
	status = maker->create(maker->context, &object, &said);
	if (status != WEIR_OK)
		return fail_as_said(store, NULL, key, status, &said, error);
	*out = resource_create(store, key, type, object);
	if (*out != NULL)
		return WEIR_OK;
	if (type->destroy != NULL)
		type->destroy(object);
	return fail_key(store, WEIR_RESOURCE_EXHAUSTED, key, "cannot be added: no memory", error);
}

enum weir_status weir_store_find_or_create(weir_store *store, const char *container, const char *name,
                                           const struct weir_resource_type *type, const struct weir_store_maker *maker,
                                           weir_resource **out, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check_typed_call(store, name, type, &record, error);
	weir_resource *made = NULL, *there;
	struct key key;

	if (status != WEIR_OK)
		return status;
	if (maker == NULL || maker->create == NULL || out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "store \"%s\": \"%s\": %s is NULL", store->name, name,
		                  out == NULL ? "out" : "the maker's create");
	key_of(&key, container, name);
	there = look_up(store, record, &key);
	if (there == NULL) {
		status = make(store, &key, type, maker, &made, error);
		if (status != WEIR_OK)
			return status;
		there = put(store, record, made);
	}
	if (there == NULL) {
		*out = made;
		return WEIR_OK;
	}
	if (made != NULL) { /* another thread inserted first */
		if (type->destroy != NULL)
			type->destroy(made->object);
		resource_free(made);
	}
	return give_if_compatible(store, there, &key, type, maker, out, error);
}

/* -- removing and walking ---------------------------------------------------------------------- */

enum weir_status weir_store_remove(weir_store *store, const char *container, const char *name, weir_error *error)
{
	struct weiri_record *record;
	enum weir_status status = check_call(store, name, &record, error);
	weir_resource *resource;
	struct key key;
	bool mine;

	if (status != WEIR_OK)
		return status;
	key_of(&key, container, name);
	resource = look_up(store, record, &key);
	mine = resource != NULL && take_away(store, record, resource);
	weir_resource_release(resource);
	/* If this call did not remove the name, another call removed it meanwhile. */
	return mine ? WEIR_OK : fail_key(store, WEIR_NOT_FOUND, &key, "does not exist", error);
}

enum weir_status weir_store_next(weir_store *store, const weir_resource *after, weir_resource **out)
{
	struct weiri_record *record = store != NULL && out != NULL ? weiri_record_get() : NULL;
	struct key key = {.hash = 0};
	struct weiri_scope scope;
	weir_resource *next = NULL;

	if (store == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	scope = weiri_scope_enter(record);
	do {
		/* A resource that was removed meanwhile stays readable in the scope. */
		const weir_resource *from = next != NULL ? next : after;

		if (from != NULL)
			key = key_of_resource(from);
		next = resource_of(weiri_hash_list_after(&scope, &store->list, key.hash, from != NULL ? &key : NULL));
	} while (next != NULL && !try_retain(next));
	weiri_scope_leave(&scope);
	if (next == NULL)
		return WEIR_OUT_OF_RANGE;
	*out = next;
	return WEIR_OK;
}

enum weir_status weir_store_clear(weir_store *store, const char *container, size_t *removed)
{
	weir_resource *at = NULL, *next;
	enum weir_status status;
	size_t count = 0;

	while ((status = weir_store_next(store, at, &next)) == WEIR_OK) {
		weir_resource_release(at);
		at = next;
		if (strcmp(weir_resource_container(at), container != NULL ? container : "") == 0)
			count += (size_t)take_away(store, weiri_record_get(), at);
	}
	weir_resource_release(at);
	if (removed != NULL)
		*removed = count;
	return status == WEIR_OUT_OF_RANGE ? WEIR_OK : status;
}

size_t weir_store_size_approx(const weir_store *store)
{
	return store != NULL ? weiri_hash_list_count(&store->list) : 0;
}
