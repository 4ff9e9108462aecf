/*
 * store.h - objects by name: the first request for a name creates its object, later ones share it.
 *
 * Use it to share variables, queues and objects of your own between parts of a program that know
 * only each other's names. Names live in containers, so that all names of one part can be removed
 * together. If the creator of an object can pass a pointer, do not use a store.
 *
 * | call               | threads   | progress           | blocks on    | allocates  | signal-safe |
 * |--------------------|-----------|--------------------|--------------|------------|-------------|
 * | weir_store_create  | one       | allocator          | allocator    | yes        | no          |
 * | weir_store_destroy | one, last | allocator, destructors | allocator | no        | no          |
 * | weir_store_find, _next | any   | lock-free          | nothing      | record (1) | no          |
 * | weir_store_add     | any       | lock-free + allocator | allocator | yes        | no          |
 * | weir_store_find_or_create | any | lock-free + allocator (2) | allocator (2) | to create | no  |
 * | weir_store_remove, _clear | any | lock-free + destructors | destructors | record (1) | no     |
 * | weir_store_size_approx | any   | wait-free          | nothing      | no         | yes         |
 * | weir_resource_retain, _object, _type_of | any | wait-free | nothing | no        | yes         |
 * | weir_resource_name, _container | any | wait-free    | nothing      | no         | yes         |
 * | weir_resource_release | any    | wait-free + destructor | destructor | no       | no          |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) And the callbacks.
 *
 * A stalled thread delays no other, even if it is stalled inside a callback or destructor.
 *
 * Lifetime. A look-up gives a counted reference to a *resource*: a name with its object. After its
 * name is removed, no look-up finds it. The object is destroyed with the last reference, on the
 * thread that releases it, and never inside a lock or a section of Weir. References may outlive the
 * store. A call that finds an object of another type, or a name that is taken, releases what it
 * found. If the name was removed meanwhile, the destructor may run in that call.
 *
 * Ordering. What a thread wrote before it added an object is visible to each thread that finds it.
 * What a thread wrote before it released a reference is visible to the destructor. Calls on one
 * name are linearizable; lib/weir/sync/hash_list.h has the proof.
 */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_store weir_store;
typedef struct weir_resource weir_resource;

/*
 * A kind of object. It is identified by the address of this struct: define one constant per kind.
 */
struct weir_resource_type {
	const char *name;              /* for messages: "variable" */
	void (*destroy)(void *object); /* called once, with the last reference; NULL: nothing to do */
};

struct weir_store_options {
	size_t struct_size; /* WEIR_STORE_OPTIONS_INIT sets it */
	uint32_t flags;     /* must be 0 */
	const char *name;   /* copied, for messages; NULL: "store" */
	/*
	 * NULL: the default allocator. It may get memory back after the store is destroyed:
	 * weir/reclaim.h
	 */
	const weir_allocator *allocator;
};
#define WEIR_STORE_OPTIONS_INIT WEIR_STRUCT_SIZE(struct weir_store_options)

/*
 * Creates a store. options may be NULL. Errors: WEIR_INVALID_ARGUMENT if out is NULL, a flag is
 * unknown, or struct_size is wrong. WEIR_RESOURCE_EXHAUSTED.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_create(const struct weir_store_options *options,
                                            weir_store **out, weir_error *error);

/*
 * Removes every name and frees the store. No other thread may use it. References to its resources
 * stay valid. Accepts NULL. Never fails.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_destroy(weir_store *store, weir_error *error);

/*
 * In all calls below, `container` NULL is the container "", `name` must not be empty, and both are
 * copied if kept. `error` may be NULL.
 *
 * Common errors: WEIR_INVALID_ARGUMENT if the store, the name, the type or the place for the answer
 * is NULL. WEIR_RESOURCE_EXHAUSTED if there is no memory, also for this thread's record; then
 * nothing was done.
 */

/*
 * Adds an object, which the store then owns. *out (may be NULL) is a reference that the caller
 * releases.
 *
 * Errors: WEIR_ALREADY_EXISTS if the name is taken. After every error the caller still owns the
 * object.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_add(weir_store *store, const char *container, const char *name,
                                         const struct weir_resource_type *type, void *object,
                                         weir_resource **out, weir_error *error);

/*
 * Finds an object; *out is a reference. Errors: WEIR_NOT_FOUND. WEIR_INVALID_ARGUMENT if the object
 * has another type, which the message names.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_find(weir_store *store, const char *container,
                                          const char *name, const struct weir_resource_type *type,
                                          weir_resource **out, weir_error *error);

/*
 * How weir_store_find_or_create() creates an object, and decides whether an existing one will do. The
 * `error` of the callbacks is never NULL.
 */
struct weir_store_maker {
	/*
	 * Creates *object. Its error becomes the error of the call. If another thread adds the name
	 * while this runs, that thread's object is kept, and the object created here is destroyed.
	 */
	enum weir_status (*create)(void *context, void **object, weir_error *error);
	/*
	 * Returns WEIR_OK if the existing object will do for the caller. Otherwise it returns the
	 * status of the call, with a message that names the property, what was expected and what is
	 * there. NULL: every object of the type will do.
	 */
	enum weir_status (*compatible)(void *context, void *object, weir_error *error);
	void *context;
};

/*
 * Finds or creates the object of that name; *out is a reference to its resource. An existing object
 * must be compatible. However many threads ask at one time, a name has one object.
 *
 * Errors: WEIR_INVALID_ARGUMENT if the existing object has another type, or maker or create is
 * NULL; and the errors of the callbacks.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_find_or_create(weir_store *store, const char *container,
                                                    const char *name,
                                                    const struct weir_resource_type *type,
                                                    const struct weir_store_maker *maker,
                                                    weir_resource **out, weir_error *error);

/*
 * Removes a name. The object is destroyed with its last reference, which may happen in this call.
 * Errors: WEIR_NOT_FOUND.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_remove(weir_store *store, const char *container,
                                            const char *name, weir_error *error);

/*
 * Removes every name that the container had when the call began, and perhaps later ones. *removed
 * (may be NULL) is the number of removed names.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_clear(weir_store *store, const char *container,
                                           size_t *removed);

/*
 * Visits the resources one by one, in an order that the store chooses. `after` NULL gives the first
 * one; a resource of this store, removed or not, gives the next one. *out is a reference, and the
 * caller keeps `after`. A resource that is in the store from the first call to the last is visited
 * exactly once; one that is added or removed meanwhile, at most once.
 *
 * Errors: WEIR_OUT_OF_RANGE if there is no next one.
 * @since 0.1
 */
WEIR_API enum weir_status weir_store_next(weir_store *store, const weir_resource *after,
                                          weir_resource **out);
/* The number of names. Exact while no other thread uses the store, else approximate. @since 0.1 */
WEIR_API size_t weir_store_size_approx(const weir_store *store);

/* Adds a reference and returns `resource` (NULL for NULL). @since 0.1 */
WEIR_API weir_resource *weir_resource_retain(weir_resource *resource);
/* Gives a reference back. Accepts NULL. @since 0.1 */
WEIR_API void weir_resource_release(weir_resource *resource);

/*
 * Properties of a resource. They never change, and the texts are valid as long as the resource
 * exists.
 * @since 0.1
 */
WEIR_API void *weir_resource_object(const weir_resource *resource);
WEIR_API const struct weir_resource_type *weir_resource_type_of(const weir_resource *resource);
WEIR_API const char *weir_resource_name(const weir_resource *resource);
WEIR_API const char *weir_resource_container(const weir_resource *resource);

WEIR_END_DECLS

#endif
