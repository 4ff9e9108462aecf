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
 * Words end with a zero byte. words[0] is the caller's; returns the memory of the others, NULL:
 * there is none.
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
