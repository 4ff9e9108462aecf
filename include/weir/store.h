/*
 * store.h - objects by name: whoever asks for "shard/3" first makes it, all others get the same one.
 *
 * Use it to share variables, queues and objects of your own between parts of a program that know each other's names only. Names
 * live in containers, so that a part's names can go at once. For objects whose makers can pass a pointer a store is a detour.
 *
 * | call                       | threads   | progress                        | blocks on | allocates                      | signal-safe |
 * |----------------------------|-----------|---------------------------------|-----------|--------------------------------|-------------|
 * | weir_store_create          | one       | allocator                       | allocator | yes                            | no          |
 * | weir_store_destroy         | one, last | allocator, destructors          | allocator | no                             | no          |
 * | weir_store_find, _next     | any       | lock-free                       | nothing   | at a thread's first use of Weir | no         |
 * | weir_store_add             | any       | lock-free + allocator           | allocator | yes                            | no          |
 * | weir_store_find_or_create  | any       | lock-free + allocator, callbacks | allocator, callbacks | when it creates    | no          |
 * | weir_store_remove, _clear  | any       | lock-free + destructors         | destructors | at a thread's first use of Weir | no        |
 * | weir_store_size_approx     | any       | wait-free                       | nothing   | no                             | yes         |
 * | weir_resource_retain, _object, _type_of, _name, _container | any | wait-free | nothing   | no                             | yes         |
 * | weir_resource_release      | any       | wait-free + destructor          | destructor | no                            | no          |
 *
 * A thread that is stopped anywhere, also inside a callback or destructor, stops no other one.
 *
 * Lifetime. What a look-up gives is a counted reference to a *resource*: a name with its object. Removing the name ends
 * look-ups; the object is destroyed with the last reference, on the thread that releases it, and never inside a lock or a
 * section of ours. References outlive the store. A call that finds another type, or a name that is taken, lets go of what it
 * found: if that was removed meanwhile, the destructor may run there.
 *
 * Ordering: what a thread wrote before it added an object is visible to whoever finds it, and what it wrote before it released a
 * reference to the object's destructor. Each call on one name is linearizable; the argument heads lib/sync/hash_list.h.
 */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <stddef.h>
#include <weir/alloc.h>
#include <weir/status.h>

WEIR_BEGIN_DECLS

typedef struct weir_store weir_store;
typedef struct weir_resource weir_resource;

/* A kind of objects, told from others by the address of this: one constant in the program for each. */
struct weir_resource_type {
	const char *name;              /* for messages: "variable" */
	void (*destroy)(void *object); /* with the last reference, once; NULL: nothing to do */
};

struct weir_store_options {
	size_t struct_size; /* sizeof(struct weir_store_options) */
	unsigned flags;     /* must be 0 */
	const char *name;   /* copied, for messages; NULL: "store" */
	const weir_allocator
		*allocator; /* NULL: the default one. Its memory may come back after the store is destroyed: weir/reclaim.h */
};

/* options may be NULL. WEIR_INVALID_ARGUMENT (out NULL, unknown flag, bad struct_size), WEIR_RESOURCE_EXHAUSTED. @since 0.1 */
WEIR_API enum weir_status weir_store_create(const struct weir_store_options *options, weir_store **out,
                                            weir_error *error);
/* Removes every name. No other thread may be using the store; references to its resources stay good. Accepts NULL. @since 0.1 */
WEIR_API void weir_store_destroy(weir_store *store);

/*
 * In every call: `container` may be NULL, which is the container ""; `name` is not empty; both are copied where they are kept.
 * `error` may be NULL. WEIR_INVALID_ARGUMENT for a NULL store, name, type or place for the answer; WEIR_RESOURCE_EXHAUSTED for
 * want of memory, also for this thread's record: nothing was done then.
 */

/*
 * WEIR_OK: the name is there and *out (may be NULL) is a reference, the caller's to release. The object is the store's from
 * then on. WEIR_ALREADY_EXISTS: the name was taken; the object is still the caller's, as after every error. @since 0.1
 */
WEIR_API enum weir_status weir_store_add(weir_store *store, const char *container, const char *name,
                                         const struct weir_resource_type *type, void *object, weir_resource **out,
                                         weir_error *error);
/*
 * WEIR_OK: *out is a reference. WEIR_NOT_FOUND; WEIR_INVALID_ARGUMENT: it is of another type, which the message names. @since 0.1
 */
WEIR_API enum weir_status weir_store_find(weir_store *store, const char *container, const char *name,
                                          const struct weir_resource_type *type, weir_resource **out,
                                          weir_error *error);

/* How weir_store_find_or_create() makes an object, and judges one that is there. */
struct weir_store_maker {
	/*
	 * Makes *object. What it fails with, the call fails with. May run though another thread's object wins: that of this one is
	 * then destroyed.
	 */
	enum weir_status (*create)(void *context, void **object, weir_error *error);
	/*
	 * WEIR_OK when the object that is there will do for what the caller wants; else the status of the call, and a message that
	 * names the property, what was expected and what is there. NULL: every object of the type will do.
	 */
	enum weir_status (*compatible)(void *context, void *object, weir_error *error);
	void *context;
};
/*
 * WEIR_OK: *out is a reference to the resource of that name: the one that was there, if it is compatible, or the one that this
 * call made. One object at a time has the name, however many threads ask at once. WEIR_INVALID_ARGUMENT: there is one of
 * another type, or maker or create is NULL; and what the callbacks fail with. @since 0.1
 */
WEIR_API enum weir_status weir_store_find_or_create(weir_store *store, const char *container, const char *name,
                                                    const struct weir_resource_type *type,
                                                    const struct weir_store_maker *maker, weir_resource **out,
                                                    weir_error *error);

/* The name is free. The object goes with its last reference, which may be here. WEIR_NOT_FOUND. @since 0.1 */
WEIR_API enum weir_status weir_store_remove(weir_store *store, const char *container, const char *name,
                                            weir_error *error);
/*
 * Removes every name of the container that was there when the call began, and perhaps later ones; *removed (may be NULL): how
 * many. @since 0.1
 */
WEIR_API enum weir_status weir_store_clear(weir_store *store, const char *container, size_t *removed);

/*
 * The resources one after the other, in an order of the store's own: `after` NULL gives the first, else a resource of this
 * store, removed or not, gives the next one. WEIR_OK: *out is a reference, and `after` still the caller's. WEIR_OUT_OF_RANGE:
 * that was the last. Each is met once; one that is there from the first call to the last is met, one that comes or goes
 * meanwhile may be. @since 0.1
 */
WEIR_API enum weir_status weir_store_next(weir_store *store, const weir_resource *after, weir_resource **out);
/* Names in the store if nobody is using it, else near it. @since 0.1 */
WEIR_API size_t weir_store_size_approx(const weir_store *store);

/* One more reference; returns `resource` (NULL in, NULL out). @since 0.1 */
WEIR_API weir_resource *weir_resource_retain(weir_resource *resource);
/* One reference less. Accepts NULL. @since 0.1 */
WEIR_API void weir_resource_release(weir_resource *resource);
/* None changes for the life of the resource; the texts live as long. @since 0.1 */
WEIR_API void *weir_resource_object(const weir_resource *resource);
WEIR_API const struct weir_resource_type *weir_resource_type_of(const weir_resource *resource);
WEIR_API const char *weir_resource_name(const weir_resource *resource);
WEIR_API const char *weir_resource_container(const weir_resource *resource);

WEIR_END_DECLS

#endif
