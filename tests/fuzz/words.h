/*
 * words.h - a fuzzer's bytes as the words of a command line.
 */
#ifndef FUZZ_WORDS_H
#define FUZZ_WORDS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 64 };

/*
 * Splits the bytes into words[1], words[2], ...; a zero byte ends each word. The caller sets
 * words[0]. Returns the memory of the words, which the caller frees, or NULL without memory.
 */
static inline char *split_words(const uint8_t *data, size_t size, char *words[static MOST_WORDS + 1], int *count)
{
	char *text = malloc(size + 1);

	*count = 1;
	if (text == NULL)
		return NULL;
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *word = text; word < text + size && *count < MOST_WORDS; word += strlen(word) + 1)
		words[(*count)++] = word;
	return text;
}

#endif
