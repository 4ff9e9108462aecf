/*
 * replay.h - the choices of an execution as a text, from which it can be replayed.
 *
 * A thread is a letter, and a value is a number with a point. For example, ab1.a means that thread
 * 1 runs, then thread 2, which reads the store before the last one, and then thread 1.
 */
#ifndef MODEL_REPLAY_H
#define MODEL_REPLAY_H

#include <stdint.h>

enum { REPLAY_MOST_TEXT = 16, REPLAY_THREADS = 26 };

struct replay_choice {
	int is_value;
	uint32_t number; /* of a thread, from 1, or of a value, from 0 */
};

/* Writes a choice and a zero byte, within REPLAY_MOST_TEXT. Returns where the next choice goes. */
char *replay_write(char *text, struct replay_choice choice);
/*
 * Reads the choice at the start of a text. Returns where the next choice begins, or NULL if the
 * text does not start with a choice.
 */
const char *replay_read(const char *text, struct replay_choice *choice);
/* Returns 1 if the text consists only of choices. */
int replay_is_sound(const char *text);

#endif
