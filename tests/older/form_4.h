/*
 * form_4.h - the inlined code of the headers since the evening of 27 November 2026: that of form_3.h, but a
 * peek takes the offset of the stamp from a constant of the library.
 *
 * Never edit this file: calls.h says why.
 */
#ifndef OLDER_FORM_4_H
#define OLDER_FORM_4_H

#include "calls.h"

extern const size_t weir_version_stamp_at;

static inline const weir_read *weir_read_section_peek(const weir_read_section *section, weir_var *var)
{
#if defined(__GNUC__) && UINTPTR_MAX > UINT32_MAX
	if (__builtin_expect(var != NULL, 1)) {
		/* The order of the loads matters: lib/weir/var/read_section.c. */
		uint64_t reserved = __atomic_load_n(section->reserved, __ATOMIC_ACQUIRE);
		const char *version = __atomic_load_n((const char *const *)(const void *)var, __ATOMIC_SEQ_CST);

		if (__builtin_expect(__atomic_load_n(section->era, __ATOMIC_RELAXED) <= reserved, 1)) {
			/* What handles show is behind the stamp. The stamp is 0 or -1 if it may not be shown. */
			const int64_t *stamp = (const int64_t *)(const void *)(version + weir_version_stamp_at);
			const weir_read *read = (const weir_read *)(const void *)(stamp + 1);

			if (__builtin_expect(__atomic_load_n(stamp, __ATOMIC_ACQUIRE) > 0 && read->tensor != NULL, 1))
				return read;
		}
	}
#endif
	return weir_read_section_find(section, var);
}

static inline const weir_read *weir_var_cache_read(weir_var_cache *cache)
{
	/* The version that was seen is pinned, so no other version has its address. */
	if (__builtin_expect(__atomic_load_n(cache->word, __ATOMIC_SEQ_CST) == cache->seen, 1))
		return &cache->read;
	return weir_var_cache_refresh(cache);
}

struct weir_reader {
	uint64_t others[8];
	uint64_t lo;
	uint64_t hi;
	uint64_t fenced;
	uint64_t shut;
	uint32_t open;
	uint32_t poke;
};

#if defined(__GNUC__) && defined(__x86_64__) && defined(__LP64__) && (!defined(__PIC__) || defined(__PIE__))
extern __thread struct weir_reader *weir_reader_mine;

enum weir_status weir_read_section_begin_by_call(weir_read_section *section);
enum weir_status weir_read_section_end_by_call(weir_read_section *section);

extern inline __attribute__((gnu_inline)) enum weir_status weir_read_section_begin(weir_read_section *section)
{
	struct weir_reader *reader = weir_reader_mine;

	if (__builtin_expect(section != NULL && section->era != NULL &&
	                         (uintptr_t)section->reserved == (uintptr_t)reader + offsetof(struct weir_reader, shut) &&
	                         __atomic_load_n(&reader->lo, __ATOMIC_RELAXED) == 0,
	                     1)) {
		uint64_t era = __atomic_load_n(section->era, __ATOMIC_SEQ_CST);

		__atomic_store_n(&reader->hi, era, __ATOMIC_RELEASE);
		__atomic_store_n(&reader->lo, era, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&reader->fenced, __ATOMIC_RELAXED) == era, 1)) {
			__atomic_store_n(&reader->open, 1u, __ATOMIC_RELAXED);
			section->reserved = &reader->hi;
			return WEIR_OK;
		}
		__atomic_store_n(&reader->lo, 0u, __ATOMIC_RELEASE);
	}
	return weir_read_section_begin_by_call(section);
}

extern inline __attribute__((gnu_inline)) enum weir_status weir_read_section_end(weir_read_section *section)
{
	struct weir_reader *reader = weir_reader_mine;

	if (__builtin_expect(section != NULL && section->reserved != NULL &&
	                         (uintptr_t)section->reserved == (uintptr_t)reader + offsetof(struct weir_reader, hi) &&
	                         __atomic_load_n(&reader->open, __ATOMIC_RELAXED) == 1 &&
	                         __atomic_load_n(&reader->fenced, __ATOMIC_RELAXED) != 0 && section->outer == 0,
	                     1)) {
		section->reserved = &reader->shut;
		__atomic_store_n(&reader->open, 0u, __ATOMIC_RELAXED);
		__atomic_store_n(&reader->lo, 0u, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (__builtin_expect(__atomic_load_n(&reader->poke, __ATOMIC_RELAXED) == 0, 1))
			return WEIR_OK;
		/* The library's end wakes the writer. */
		(void)weir_read_section_begin_by_call(section);
	}
	return weir_read_section_end_by_call(section);
}
#endif

#endif
