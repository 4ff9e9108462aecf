/*
 * plain.h - names and paths as messages show them. A file may come from anywhere, so its names are
 * truncated and have no control characters.
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
