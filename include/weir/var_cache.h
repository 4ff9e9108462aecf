/*
 * var_cache.h - a handle that a thread keeps, and that follows a variable at the cost of one load.
 *
 * Use it where a thread reads the same variable again and again and the variable changes rarely:
 * configuration, routing tables, parameters. While the variable has not changed, a read is one load
 * and one comparison, which are inlined. For a single read use weir_var_read().
 *
 *     static _Thread_local weir_var_cache cache;
 *
 *     weir_var_cache_init(&cache, config);
 *     for (;;) {
 *         const weir_read *now = weir_var_cache_read(&cache);
 *
 *         ...
 *     }
 *     weir_var_cache_release(&cache);
 *
 * | call                   | threads      | progress  | blocks on | allocates  | signal-safe |
 * |------------------------|--------------|-----------|-----------|------------|-------------|
 * | weir_var_cache_init    | one          | wait-free | nothing   | no         | no          |
 * | weir_var_cache_read    | one          | wait-free | nothing   | record (1) | no          |
 * | weir_var_cache_refresh | one          | wait-free | nothing   | record (1) | no          |
 * | weir_var_cache_release | one, last    | wait-free (2) | nothing | no       | no          |
 *
 * (1) A thread's first call of Weir allocates its record.
 * (2) As weir_read_release().
 *
 * Memory. A cache pins one version: the one that it read last, until the next read that finds a
 * newer one, or until it is released. A thread that stops reading keeps that version in memory, and
 * weir/stall.h reports it as any handle. So does a thread that ends without releasing its cache;
 * another thread may then release it. In the child of a fork the caches of the thread that forked
 * come along. A thread can keep 64 versions by caches, snapshots and transactions together. Beyond
 * that a cache stays right, and reads anew each time.
 *
 * Ordering. As weir_var_read(): a read returns the newest version at some moment of the call.
 *
 * Source: the cached reader of arc-swap (Vaner) has the same interface. There, the cache holds a
 * reference. Here, it holds a hazard slot, so that a refresh writes nothing that threads share.
 * @since 0.1
 */
#ifndef WEIR_VAR_CACHE_H
#define WEIR_VAR_CACHE_H

#include <stddef.h>
#include <weir/var.h>

WEIR_BEGIN_DECLS

/*
 * All fields are private. The layout is part of the binary interface: programs contain the inlined
 * code that compares *word with seen.
 */
typedef struct weir_var_cache {
	const void *const *word; /* tells the newest version; only compared */
	const void *seen;        /* *word when `read` was taken; NULL, which no *word is: read anew */
	weir_var *var;
	weir_read read;
} weir_var_cache;

/*
 * Makes *cache a cache of `var` that holds nothing. `cache` was never used, or was released. The
 * variable must exist until the cache is released. Does nothing if `cache` is NULL; with var NULL
 * every read fails.
 * @since 0.1
 */
WEIR_API void weir_var_cache_init(weir_var_cache *cache, weir_var *var);

/*
 * Reads the newest version, whatever the cache holds. Returns the handle, or NULL; see
 * weir_var_cache_read(), which calls this when the variable has changed.
 * @since 0.1
 */
WEIR_API const weir_read *weir_var_cache_refresh(weir_var_cache *cache);

/*
 * Returns a handle on the newest version. It belongs to the cache, which was initialized, and is
 * valid until the next call on the cache. Returns NULL if the variable is not initialized, if there
 * is no memory for this thread's record, or if the variable of the cache is NULL; the cache then
 * holds what it held.
 * @since 0.1
 */
static inline const weir_read *weir_var_cache_read(weir_var_cache *cache)
{
	/* The version that was seen is pinned, so no other version has its address. */
	if (__builtin_expect(__atomic_load_n(cache->word, __ATOMIC_SEQ_CST) == cache->seen, 1))
		return &cache->read;
	return weir_var_cache_refresh(cache);
}

/*
 * Releases what the cache holds. weir_var_cache_init() makes it usable again. Accepts NULL, a
 * released cache, and one whose bytes are all 0.
 * @since 0.1
 */
WEIR_API void weir_var_cache_release(weir_var_cache *cache);

WEIR_END_DECLS

#endif
