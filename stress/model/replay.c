/*
 * replay.c - see replay.h.
 */
#include "model/replay.h"

#include <inttypes.h>
#include <stdio.h>

char *replay_write(char *text, struct replay_choice choice)
{
	int length = choice.is_value
	                 ? snprintf(text, REPLAY_MOST_TEXT, "%" PRIu32 ".", choice.number)
	                 : snprintf(text, REPLAY_MOST_TEXT, "%c", (char)('a' + (choice.number - 1) % REPLAY_THREADS));

	return text + length;
}

const char *replay_read(const char *text, struct replay_choice *choice)
{
	uint64_t number = 0;

	if (*text >= 'a' && *text <= 'z') {
		*choice = (struct replay_choice){0, (uint32_t)(*text - 'a') + 1};
		return text + 1;
	}
	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		number = number * 10 + (uint64_t)(*text - '0');
		if (number > UINT32_MAX)
			return NULL;
	}
	*choice = (struct replay_choice){1, (uint32_t)number};
	return *text == '.' ? text + 1 : NULL;
}

int replay_is_sound(const char *text)
{
	struct replay_choice choice;

	while (text != NULL && *text != '\0')
		text = replay_read(text, &choice);
	return text != NULL;
}
