/*
 * plain.h - names and paths as messages show them: truncated, and without control characters, since
 * files may come from anywhere.
 */
#ifndef WEIRI_CHECKPOINT_PLAIN_H
#define WEIRI_CHECKPOINT_PLAIN_H

struct weiri_plain {
	char text[80];
};

/* Keeps the beginning of a name. */
struct weiri_plain weiri_plain_name(const char *name);
/* Keeps the end of a path. */
struct weiri_plain weiri_plain_path(const char *path);

#endif
