/*
 * dump_kit.h - what weir_dump() says of one object.
 */
#ifndef DUMP_KIT_H
#define DUMP_KIT_H

#include <criterion/criterion.h>

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/dump.h>

static inline int file_for_a_dump(void)
{
	int file = memfd_create("dump", MFD_CLOEXEC);

	cr_assert_geq(file, 0);
	return file;
}

/* Returns what was written to the file, and closes the file. The caller frees the text. */
static inline char *text_of(int file)
{
	off_t length = lseek(file, 0, SEEK_END);
	char *text = calloc((size_t)length + 1, 1);

	cr_assert_eq(pread(file, text, (size_t)length, 0), length);
	(void)close(file);
	return text;
}

/* Returns what weir_dump() writes. The caller frees the text. */
static inline char *dumped(void)
{
	int file = file_for_a_dump();

	cr_assert_eq(weir_dump(file), WEIR_OK);
	return text_of(file);
}

static inline int matches(const char *text, const char *pattern)
{
	regex_t compiled;
	int found;

	cr_assert_eq(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE), 0, "%s", pattern);
	found = regexec(&compiled, text, 0, NULL, 0) == 0;
	regfree(&compiled);
	return found;
}

/*
 * Returns the lines about the object of that name. The caller frees them. The text is empty if
 * there is no such object.
 */
static inline char *part_of(const char *text, const char *name)
{
	char start[128];
	const char *begin, *end;

	(void)snprintf(start, sizeof(start), " \"%s\" (number ", name);
	begin = strstr(text, start);
	if (begin == NULL)
		return strdup("");
	cr_assert_null(strstr(begin + 1, start), "the dump shows it twice:\n%s", text);
	while (begin != text && begin[-1] != '\n')
		begin--;
	end = strchr(begin, '\n') + 1;
	while (strncmp(end, "  ", 2) == 0)
		end = strchr(end, '\n') + 1;
	return strndup(begin, (size_t)(end - begin));
}

static inline char *part_dumped(const char *name)
{
	char *text = dumped(), *part = part_of(text, name);

	free(text);
	return part;
}

/* Returns the number of operations that wait in the area of that name. */
static inline size_t waiters_dumped(const char *name)
{
	char *part = part_dumped(name);
	const char *rest = strstr(part, "\n  and others, of ");
	size_t count = 0;

	/* If many operations wait, a dump shows only some of them, and says how many there are. */
	if (rest == NULL || sscanf(rest, " and others, of %zu", &count) != 1) {
		for (const char *at = part; (at = strstr(at, "\n  waits")) != NULL; at++)
			count++;
	}
	free(part);
	return count;
}

/* Expects a line for each pattern. */
static inline void expect_lines(const char *name, const char *const patterns[], size_t count)
{
	char *part = part_dumped(name);

	for (size_t i = 0; i < count; i++)
		cr_expect(matches(part, patterns[i]), "no line matches %s:\n%s", patterns[i], part);
	free(part);
}

static inline void expect_line(const char *name, const char *pattern)
{
	expect_lines(name, &pattern, 1);
}

static inline void expect_no_line(const char *name, const char *pattern)
{
	char *part = part_dumped(name);

	cr_expect_not(matches(part, pattern), "a line matches %s:\n%s", pattern, part);
	free(part);
}

#endif
