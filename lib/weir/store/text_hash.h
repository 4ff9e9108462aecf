/*
 * text_hash.h - the hash of a name, and whether two names are equal, eight bytes at a time.
 *
 * Algorithm. Each word of a text is added by exclusive or, and the sum is multiplied by an odd
 * number. A product carries a difference upwards only, so its bytes are then reversed: the best
 * ones come down, where the next product and the table look first. A step is one to one, so texts
 * of up to 8 bytes and of one size have different hashes. The last word of a longer text overlaps
 * the one before, so no bytes are gathered one by one.
 * The hash depends on the machine's order of bytes; it never leaves the process. It is no defence
 * against a party that chooses names in order to make them collide.
 * Checked: tests/test_hash_list.c: the spread of names as programs make them.
 */
#ifndef WEIRI_STORE_TEXT_HASH_H
#define WEIRI_STORE_TEXT_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#define WEIRI_TEXT_HASH_BEGIN UINT64_C(0xCBF29CE484222325)

static WEIRI_ALWAYS_INLINE uint64_t weiri_text_word(const char *text)
{
	uint64_t word;

	memcpy(&word, text, sizeof(word));
	return word;
}

static WEIRI_ALWAYS_INLINE uint64_t weiri_text_half(const char *text)
{
	uint32_t half;

	memcpy(&half, text, sizeof(half));
	return half;
}

/* Returns the bytes of a text of fewer than 8. Different texts of one size give different words. */
static WEIRI_ALWAYS_INLINE uint64_t weiri_text_short(const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;

	if (size >= 4)
		return weiri_text_half(text) | weiri_text_half(text + size - 4) << 32;
	if (size == 0)
		return 0;
	return bytes[0] | (uint64_t)bytes[size / 2] << 8 | (uint64_t)bytes[size - 1] << 16;
}

static WEIRI_ALWAYS_INLINE uint64_t weiri_text_mix(uint64_t hash, uint64_t word)
{
	return __builtin_bswap64((hash ^ word) * UINT64_C(0x9E3779B97F4A7C15));
}

/* Adds a text to a hash. The sizes count, so "ab", "c" and "a", "bc" differ. */
static WEIRI_ALWAYS_INLINE uint64_t weiri_text_hash_add(uint64_t hash, const char *text, size_t size)
{
	hash ^= size;
	if (size < 8)
		return weiri_text_mix(hash, weiri_text_short(text, size));
	for (size_t i = 0; i + 8 < size; i += 8)
		hash = weiri_text_mix(hash, weiri_text_word(text + i));
	return weiri_text_mix(hash, weiri_text_word(text + size - 8));
}

/* Returns the hash of all texts that were added. */
static WEIRI_ALWAYS_INLINE uint64_t weiri_text_hash_end(uint64_t hash)
{
	return weiri_text_mix(hash, 0);
}

/* For texts that are mostly too short to be worth a call of memcmp(). */
static WEIRI_ALWAYS_INLINE bool weiri_texts_are_equal(const char *one, const char *other, size_t size)
{
	if (size < 8)
		return weiri_text_short(one, size) == weiri_text_short(other, size);
	for (size_t i = 0; i + 8 < size; i += 8) {
		if (weiri_text_word(one + i) != weiri_text_word(other + i))
			return false;
	}
	return weiri_text_word(one + size - 8) == weiri_text_word(other + size - 8);
}

#endif
