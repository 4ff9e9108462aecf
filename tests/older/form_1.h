/*
 * form_1.h - the inlined code of the headers until 26 November 2026: a peek has two offsets, and a cache
 * asks whether it holds anything.
 *
 * Never edit this file: calls.h says why.
 */
#ifndef OLDER_FORM_1_H
#define OLDER_FORM_1_H

#include "calls.h"

static inline const weir_read *weir_read_section_peek(const weir_read_section *section, weir_var *var)
{
#if defined(__GNUC__) && UINTPTR_MAX > UINT32_MAX
	if (__builtin_expect(var != NULL, 1)) {
		/* The order of the loads matters: lib/weir/var/read_section.c. */
		uint64_t reserved = __atomic_load_n(section->reserved, __ATOMIC_ACQUIRE);
		const char *version = __atomic_load_n((const char *const *)(const void *)var, __ATOMIC_SEQ_CST);

		if (__builtin_expect(__atomic_load_n(section->era, __ATOMIC_RELAXED) <= reserved, 1)) {
			const uint64_t *stamp = (const uint64_t *)(const void *)(version + section->stamp_at);
			const weir_read *read = (const weir_read *)(const void *)(version + section->read_at);

			if (__builtin_expect(__atomic_load_n(stamp, __ATOMIC_ACQUIRE) - 1 < UINT64_MAX - 1 && read->tensor != NULL,
			                     1))
				return read;
		}
	}
#endif
	return weir_read_section_find(section, var);
}

static inline const weir_read *weir_var_cache_read(weir_var_cache *cache)
{
	/* The version that was seen is pinned, so no other version has its address. */
	if (cache->seen != NULL && __atomic_load_n(cache->word, __ATOMIC_SEQ_CST) == cache->seen)
		return &cache->read;
	return weir_var_cache_refresh(cache);
}

#endif
