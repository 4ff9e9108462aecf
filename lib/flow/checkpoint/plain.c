/*
 * plain.c - making external text fit for a message.
 */
#include "checkpoint/plain.h"

#include <string.h>

enum { ROOM = (int)sizeof(((struct weiri_plain *)0)->text), FIRST_PRINTABLE = 0x20, RUBOUT = 0x7f };

static char printable(char byte)
{
	unsigned char code = (unsigned char)byte;

	/* The bytes of UTF-8 above 0x7f stay. */
	if (code < FIRST_PRINTABLE || code == RUBOUT)
		return '?';
	return byte;
}

struct weiri_plain weiri_plain_name(const char *name)
{
	struct weiri_plain plain;
	size_t i = 0;

	for (; i < ROOM - 1 && name[i] != '\0'; i++)
		plain.text[i] = printable(name[i]);
	plain.text[i] = '\0';
	/* Three dots mark the truncation. */
	if (name[i] != '\0')
		memcpy(plain.text + ROOM - 4, "...", 4);
	return plain;
}

struct weiri_plain weiri_plain_path(const char *path)
{
	size_t length = strlen(path);
	struct weiri_plain plain;

	if (length < ROOM)
		return weiri_plain_name(path);
	plain = weiri_plain_name(path + length - (ROOM - 1));
	memcpy(plain.text, "...", 3);
	return plain;
}
