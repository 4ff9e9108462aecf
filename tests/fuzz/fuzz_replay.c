/*
 * fuzz_replay.c - any text as a replay string of the model checker: it is refused, or it is read
 * and written again as the same choices.
 */
#include <stdlib.h>
#include <string.h>

#include "model/replay.h"

static void check(int condition)
{
	if (!condition)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), again[REPLAY_MOST_TEXT];
	const char *at = text, *next;
	struct replay_choice choice, same;

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (; *at != '\0' && (next = replay_read(at, &choice)) != NULL; at = next) {
		check(next > at && next <= text + strlen(text));
		check(choice.is_value || (choice.number >= 1 && choice.number <= REPLAY_THREADS));
		check(replay_write(again, choice) < again + sizeof(again));
		check(replay_read(again, &same) != NULL && same.is_value == choice.is_value && same.number == choice.number);
	}
	check(replay_is_sound(text) == (*at == '\0'));
	free(text);
	return 0;
}
