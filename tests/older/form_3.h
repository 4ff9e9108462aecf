/*
 * form_3.h - the inlined code of the headers since 27 November 2026: that of form_2.h, and in programs for
 * x86-64 the begin and the end of a section that begins again on its thread.
 *
 * Never edit this file: calls.h says why.
 */
#ifndef OLDER_FORM_3_H
#define OLDER_FORM_3_H

#include "form_2.h"

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
