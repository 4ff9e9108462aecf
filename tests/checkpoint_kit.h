/*
 * checkpoint_kit.h - a folder for the checkpoint of one test, and variables to save.
 */
#ifndef CHECKPOINT_KIT_H
#define CHECKPOINT_KIT_H

#include <criterion/criterion.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/flow/checkpoint.h>

#include "variables.h"

enum { PATH_ROOM = 128 };

struct folder {
	char path[64];
	char file[PATH_ROOM];
};

static inline struct folder make_folder(void)
{
	struct folder folder = {"/tmp/weir_checkpoint_XXXXXX", ""};

	cr_assert_not_null(mkdtemp(folder.path));
	(void)snprintf(folder.file, sizeof(folder.file), "%s/saved.safetensors", folder.path);
	return folder;
}

/* Removes all files but the checkpoint, and returns how many there were. */
static inline int sweep(const struct folder *folder)
{
	DIR *files = opendir(folder->path);
	const struct dirent *entry;
	int others = 0;

	cr_assert_not_null(files);
	while ((entry = readdir(files)) != NULL) {
		char path[PATH_ROOM + 256];

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "saved.safetensors") == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", folder->path, entry->d_name);
		cr_expect_eq(unlink(path), 0);
		others++;
	}
	(void)closedir(files);
	return others;
}

static inline void remove_folder(const struct folder *folder)
{
	cr_expect_eq(sweep(folder), 0, "a temporary file was left");
	(void)unlink(folder->file);
	cr_expect_eq(rmdir(folder->path), 0);
}

static inline void write_file(const char *path, const void *bytes, size_t count)
{
	FILE *file = fopen(path, "wb");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, count, file), count);
	cr_assert_eq(fclose(file), 0);
}

/* Writes a file with this header, its correct length, and this data. */
static inline void write_header(const char *path, const char *header, const void *data, size_t count)
{
	unsigned char bytes[1024] = {(unsigned char)strlen(header), (unsigned char)(strlen(header) >> 8)};

	cr_assert_leq(8 + strlen(header) + count, sizeof(bytes));
	memcpy(bytes + 8, header, strlen(header));
	memcpy(bytes + 8 + strlen(header), data, count);
	write_file(path, bytes, 8 + strlen(header) + count);
}

/* -- variables that all have the same value ---------------------------------------------------- */

enum { VARS = 5 };

static inline void make_numbered(weir_var *vars[VARS], int64_t value)
{
	for (size_t i = 0; i < VARS; i++) {
		char name[2] = {(char)('0' + i), '\0'};

		vars[i] = named_variable(name, value);
	}
}

static inline void destroy_all(weir_var *const vars[VARS])
{
	for (size_t i = 0; i < VARS; i++)
		weir_var_destroy(vars[i], NULL);
}

/* Restores the file, and returns the number that all its tensors hold. */
static inline int64_t number_in_file(const struct folder *folder)
{
	static const char *const names[VARS] = {"0", "1", "2", "3", "4"};
	struct weir_checkpoint_part parts[VARS];
	weir_error error = {WEIR_OK, ""};
	int64_t first;

	for (size_t i = 0; i < VARS; i++)
		parts[i] = (struct weir_checkpoint_part){names[i], empty_variable(names[i])};
	cr_assert_eq(weir_checkpoint_restore(parts, VARS, folder->file, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	first = value_in(parts[0].var);
	for (size_t i = 0; i < VARS; i++) {
		cr_expect_eq(value_in(parts[i].var), first, "tensor %zu is of another instant", i);
		weir_var_destroy(parts[i].var, NULL);
	}
	return first;
}

#endif
