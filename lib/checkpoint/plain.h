/*
 * plain.h - names and paths, as messages show them: cut, and without control characters, for files may come from anywhere.
 */
#ifndef WEIRI_CHECKPOINT_PLAIN_H
#define WEIRI_CHECKPOINT_PLAIN_H

struct weiri_plain {
	char text[80];
};

/* The beginning of a name. */
struct weiri_plain weiri_plain_name(const char *name);
/* The end of a path. */
struct weiri_plain weiri_plain_path(const char *path);

#endif
