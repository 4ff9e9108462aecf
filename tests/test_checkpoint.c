/*
 * test_checkpoint.c - variables saved to a file and restored from it: what goes in comes out, at one instant, or is refused; and the
 * file is the old one or the new one wherever a save is stopped.
 */
#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/checkpoint.h>

#include "checkpoint/save.h"
#include "variables.h"

enum { PATH_ROOM = 128 };

/* -- a folder of the test's own ----------------------------------------------------------------------------------------------- */

struct folder {
	char path[64];
	char file[PATH_ROOM];
};

static struct folder make_folder(void)
{
	struct folder folder = {"/tmp/weir_checkpoint_XXXXXX", ""};

	cr_assert_not_null(mkdtemp(folder.path));
	(void)snprintf(folder.file, sizeof(folder.file), "%s/saved.safetensors", folder.path);
	return folder;
}

/* How many files of other names than the checkpoint's are there; they are removed. */
static int sweep(const struct folder *folder)
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

static void remove_folder(const struct folder *folder)
{
	cr_expect_eq(sweep(folder), 0, "a temporary file was left");
	(void)unlink(folder->file);
	cr_expect_eq(rmdir(folder->path), 0);
}

static void write_file(const char *path, const void *bytes, size_t count)
{
	FILE *file = fopen(path, "wb");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, count, file), count);
	cr_assert_eq(fclose(file), 0);
}

/* A file of this header, with its right length, and this data. */
static void write_header(const char *path, const char *header, const void *data, size_t count)
{
	unsigned char bytes[1024] = {(unsigned char)strlen(header), (unsigned char)(strlen(header) >> 8)};

	cr_assert_leq(8 + strlen(header) + count, sizeof(bytes));
	memcpy(bytes + 8, header, strlen(header));
	memcpy(bytes + 8 + strlen(header), data, count);
	write_file(path, bytes, 8 + strlen(header) + count);
}

/* -- what goes in comes out --------------------------------------------------------------------------------------------------- */

static weir_var *variable_of(enum weir_dtype dtype, const weir_shape *shape, const void *data, const char *name)
{
	struct weir_var_options options = {
		.struct_size = sizeof(options), .dtype = dtype, .name = name, .allocator = &variables_memory};
	weir_tensor *tensor = NULL;
	weir_var *var = NULL;

	if (data != NULL)
		cr_assert_eq(weir_tensor_copy_of(dtype, shape, data, &variables_memory, &tensor), WEIR_OK);
	cr_assert_eq(weir_var_create(&options, tensor, &var, NULL), WEIR_OK);
	weir_tensor_release(tensor);
	return var;
}

static const enum weir_dtype numbers[] = {WEIR_BOOL, WEIR_U8,  WEIR_I8,  WEIR_I16, WEIR_I32,
                                          WEIR_I64,  WEIR_F16, WEIR_F32, WEIR_F64};
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

Test(checkpoint, every_dtype_comes_back_as_it_was)
{
	struct folder folder = make_folder();
	struct weir_checkpoint_part from[NUMBERS], to[NUMBERS];
	unsigned char bytes[6 * 8];

	for (size_t i = 0; i < NUMBERS; i++) {
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (unsigned char)(numbers[i] == WEIR_BOOL ? (i + j) % 2 : 17 * i + 5 * j + 1);
		from[i] = (struct weir_checkpoint_part){
			NULL, variable_of(numbers[i], &(weir_shape){2, {3, 2}}, bytes, weir_dtype_name(numbers[i]))};
		to[i] = (struct weir_checkpoint_part){weir_dtype_name(numbers[i]), variable_of(numbers[i], NULL, NULL, "to")};
	}
	cr_assert_eq(weir_checkpoint_save(from, NUMBERS, NULL, folder.file, NULL), WEIR_OK);
	cr_assert_eq(weir_checkpoint_restore(to, NUMBERS, NULL, folder.file, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	for (size_t i = 0; i < NUMBERS; i++) {
		weir_read was, is;

		cr_assert_eq(weir_var_read(from[i].var, &was) || weir_var_read(to[i].var, &is), 0);
		cr_expect_eq(is.version, 1);
		cr_expect(weir_shape_equal(weir_tensor_shape(was.tensor), weir_tensor_shape(is.tensor)));
		cr_expect_arr_eq(weir_tensor_data(is.tensor), weir_tensor_data(was.tensor), weir_tensor_nbytes(was.tensor));
		weir_read_release(&was);
		weir_read_release(&is);
		weir_var_destroy(from[i].var);
		weir_var_destroy(to[i].var);
	}
	remove_folder(&folder);
	expect_nothing_left();
}

/* The bytes, not only what our own reader makes of them: little-endian, the largest elements first, data at a multiple of 64. */
Test(checkpoint, the_file_is_what_the_format_says)
{
	struct folder folder = make_folder();
	struct weir_checkpoint_tensor tensors[2] = {{"small", NULL}, {"large", NULL}};
	static const char header[] = "{\"__metadata__\":{\"writer\":\"weir\"},"
								 "\"large\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
								 "\"small\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[8,12]}}";
	unsigned char file[512];
	weir_tensor *small, *large;
	size_t size, length;
	FILE *input;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I16, &(weir_shape){1, {2}}, (int16_t[]){0x0102, 0x0304}, NULL, &small),
	             WEIR_OK);
	cr_assert_eq(weir_tensor_scalar_i64(0x05060708090a0b0c, &large), WEIR_OK);
	tensors[0].tensor = small;
	tensors[1].tensor = large;
	cr_assert_eq(weir_checkpoint_save_tensors(tensors, 2, NULL, folder.file, NULL), WEIR_OK);
	input = fopen(folder.file, "rb");
	cr_assert_not_null(input);
	size = fread(file, 1, sizeof(file), input);
	(void)fclose(input);
	length = file[0] | (size_t)file[1] << 8;
	cr_expect_eq((8 + length) % 64, 0);
	cr_assert_eq(size, 8 + length + 12);
	cr_expect_eq(memcmp(file + 8, header, sizeof(header) - 1), 0, "%.*s", (int)length, (const char *)file + 8);
	for (size_t i = sizeof(header) - 1; i < length; i++)
		cr_expect_eq(file[8 + i], ' ');
	cr_expect_eq(memcmp(file + 8 + length, "\x0c\x0b\x0a\x09\x08\x07\x06\x05\x02\x01\x04\x03", 12), 0);
	weir_tensor_release(small);
	weir_tensor_release(large);
	remove_folder(&folder);
}

Test(checkpoint, a_file_of_another_writer_is_restored)
{
	struct folder folder = make_folder();
	weir_var *one = empty_variable("one"), *two = variable(5);
	struct weir_checkpoint_part parts[2] = {{"one", one}, {"t\xc3\xa9", two}};

	write_header(folder.file,
	             "{\"t\\u00e9\": {\"data_offsets\":[8, 16],\"dtype\":\"I64\",\"shape\":[]}, "
	             "\"one\": {\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}",
	             "\x07\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff", 16);
	cr_assert_eq(weir_checkpoint_restore(parts, 2, NULL, folder.file, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_expect_eq(value_in(one), 7);
	cr_expect_eq(value_in(two), -2);
	cr_expect_eq(weir_var_version(one), 1);
	cr_expect_eq(weir_var_version(two), 2);
	weir_var_destroy(one);
	weir_var_destroy(two);
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- refusals ----------------------------------------------------------------------------------------------------------------- */

/* Restoring `var`, which is i64 and holds 5, from the file fails so, says so, and changes nothing. */
static void expect_refused(const struct folder *folder, const char *name, weir_var *var, enum weir_status status,
                           const char *message)
{
	struct weir_checkpoint_part part = {name, var};
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_checkpoint_restore(&part, 1, NULL, folder->file, WEIR_NO_DEADLINE, &error), status, "%s: %s",
	             message, error.message);
	cr_expect(strstr(error.message, message) != NULL, "\"%s\" does not say \"%s\"", error.message, message);
	cr_expect(strstr(error.message, "saved.safetensors") != NULL, "%s", error.message);
	cr_expect_eq(value_in(var), 5);
	cr_expect_eq(weir_var_version(var), 1);
}

#define HEADER(name, dtype, shape, end) \
	"{\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[0," end "]}}"

Test(checkpoint, a_file_that_does_not_fit_changes_nothing)
{
	struct folder folder = make_folder();
	struct weir_var_options scalar = {.struct_size = sizeof(scalar),
	                                  .dtype = WEIR_I64,
	                                  .name = "v",
	                                  .shape = &(weir_shape){.rank = 0},
	                                  .allocator = &variables_memory};
	weir_tensor *five = number(5);
	weir_var *var;
	unsigned char zeros[64] = {0};

	cr_assert_eq(weir_var_create(&scalar, five, &var, NULL), WEIR_OK);
	weir_tensor_release(five);
	expect_refused(&folder, NULL, var, WEIR_NOT_FOUND, "open: ");
	write_file(folder.file, zeros, 7);
	expect_refused(&folder, NULL, var, WEIR_DATA_LOSS, "7 bytes, expected at least 8");
	write_file(folder.file, zeros, 8);
	expect_refused(&folder, NULL, var, WEIR_DATA_LOSS, "the header is empty");
	write_file(folder.file, "\x10\0\0\0\0\0\0\0{}", 10);
	expect_refused(&folder, NULL, var, WEIR_DATA_LOSS, "a header of 16 bytes");
	write_file(folder.file, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
	expect_refused(&folder, NULL, var, WEIR_DATA_LOSS, "a header of 18446744073709551615 bytes");
	write_header(folder.file, "{nonsense", zeros, 0);
	expect_refused(&folder, NULL, var, WEIR_DATA_LOSS, "expected a string at byte 1");
	write_header(folder.file, HEADER("w", "I64", "[]", "8"), zeros, 8);
	expect_refused(&folder, NULL, var, WEIR_FAILED_PRECONDITION, "no tensor \"v\" among its 1");
	write_header(folder.file, HEADER("v", "U64", "[]", "8"), zeros, 8);
	expect_refused(&folder, NULL, var, WEIR_FAILED_PRECONDITION, "tensor \"v\" is of U64, variable \"v\" expects i64");
	write_header(folder.file, HEADER("v", "I64", "[1]", "8"), zeros, 8);
	expect_refused(&folder, NULL, var, WEIR_FAILED_PRECONDITION,
	               "tensor \"v\" has shape [1], variable \"v\" expects []");
	write_header(folder.file, HEADER("v", "I64", "[]", "8"), zeros, 7);
	expect_refused(&folder, NULL, var, WEIR_DATA_LOSS, "7 bytes of data, its tensors take 8");
	write_header(folder.file,
	             "{\"v\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
	             "\"x\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[8,10]}}",
	             zeros, 10);
	expect_refused(&folder, NULL, var, WEIR_FAILED_PRECONDITION, "nothing takes its tensor \"x\"");
	cr_expect_eq(
		weir_checkpoint_restore(&(struct weir_checkpoint_part){NULL, var}, 1,
	                            &(struct weir_checkpoint_options){.struct_size = sizeof(struct weir_checkpoint_options),
	                                                              .flags = WEIR_CHECKPOINT_ALLOW_OTHERS,
	                                                              .allocator = &variables_memory},
	                            folder.file, WEIR_NO_DEADLINE, NULL),
		WEIR_OK);
	cr_expect_eq(value_in(var), 0);
	weir_var_destroy(var);
	remove_folder(&folder);
	expect_nothing_left();
}

Test(checkpoint, a_bool_is_0_or_1)
{
	struct folder folder = make_folder();
	weir_var *var = variable_of(WEIR_BOOL, NULL, NULL, "b");
	struct weir_checkpoint_part part = {NULL, var};
	weir_error error;

	write_header(folder.file, HEADER("b", "BOOL", "[3]", "3"), "\0\1\2", 3);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, NULL, folder.file, WEIR_NO_DEADLINE, &error), WEIR_DATA_LOSS);
	cr_expect(strstr(error.message, "tensor \"b\": element 2 is 2, expected 0 or 1") != NULL, "%s", error.message);
	cr_expect_eq(weir_var_version(var), 0);
	weir_var_destroy(var);
	remove_folder(&folder);
	expect_nothing_left();
}

Test(checkpoint, one_part_that_does_not_fit_keeps_all_from_being_restored)
{
	struct folder folder = make_folder();
	weir_var *good = variable(5), *bad = variable_of(WEIR_F32, NULL, NULL, "bad");
	struct weir_checkpoint_part parts[2] = {{"v", good}, {"v", bad}};

	write_header(folder.file, HEADER("v", "I64", "[]", "8"), "\1\0\0\0\0\0\0\0", 8);
	cr_expect_eq(weir_checkpoint_restore(parts, 2, NULL, folder.file, WEIR_NO_DEADLINE, NULL),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_eq(value_in(good), 5);
	parts[1].var = good;
	cr_expect_eq(weir_checkpoint_restore(parts, 2, NULL, folder.file, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT,
	             "a variable twice");
	parts[1].var = NULL;
	cr_expect_eq(weir_checkpoint_restore(parts, 2, NULL, folder.file, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(value_in(good), 5);
	weir_var_destroy(good);
	weir_var_destroy(bad);
	remove_folder(&folder);
	expect_nothing_left();
}

/* Saving these parts fails so, says so, and makes no file. */
static void expect_not_saved(const struct folder *folder, const struct weir_checkpoint_part parts[], size_t count,
                             enum weir_status status, const char *message)
{
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_checkpoint_save(parts, count, NULL, folder->file, &error), status, "%s: %s", message,
	             error.message);
	cr_expect(strstr(error.message, message) != NULL, "\"%s\" does not say \"%s\"", error.message, message);
	cr_expect_neq(access(folder->file, F_OK), 0);
}

Test(checkpoint, what_cannot_be_saved_is_refused_by_name)
{
	struct folder folder = make_folder();
	weir_var *var = variable(1), *other = variable(2), *empty = empty_variable("blank");
	weir_bytes word = {"hello", 5};
	weir_var *words = variable_of(WEIR_BYTES, &(weir_shape){1, {1}}, &word, "words");
	struct weir_checkpoint_options odd = {.struct_size = sizeof(odd), .flags = 8};
	struct folder nowhere = {"", "/nonexistent/folder/saved.safetensors"};

	expect_not_saved(&folder, NULL, 1, WEIR_INVALID_ARGUMENT, "at NULL");
	expect_not_saved(&folder, &(struct weir_checkpoint_part){NULL, var}, 0, WEIR_INVALID_ARGUMENT,
	                 "expected 1 to 1024");
	expect_not_saved(&folder, &(struct weir_checkpoint_part){"x", NULL}, 1, WEIR_INVALID_ARGUMENT,
	                 "variable 0 is NULL");
	expect_not_saved(&folder, &(struct weir_checkpoint_part){"", var}, 1, WEIR_INVALID_ARGUMENT,
	                 "part 0 is called \"\"");
	expect_not_saved(&folder, &(struct weir_checkpoint_part){"__metadata__", var}, 1, WEIR_INVALID_ARGUMENT,
	                 "not __metadata__");
	expect_not_saved(&folder, &(struct weir_checkpoint_part){"\xff", var}, 1, WEIR_INVALID_ARGUMENT, "expected UTF-8");
	expect_not_saved(&folder, (struct weir_checkpoint_part[]){{"x", var}, {"y", var}, {"x", other}}, 3,
	                 WEIR_INVALID_ARGUMENT, "two parts are called \"x\"");
	expect_not_saved(&folder, &(struct weir_checkpoint_part){NULL, empty}, 1, WEIR_FAILED_PRECONDITION, "\"blank\"");
	expect_not_saved(&folder, &(struct weir_checkpoint_part){NULL, words}, 1, WEIR_UNIMPLEMENTED,
	                 "tensor \"words\" is of bytes");
	expect_not_saved(&nowhere, &(struct weir_checkpoint_part){NULL, var}, 1, WEIR_NOT_FOUND, "temporary file");
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, &odd, folder.file, NULL),
	             WEIR_INVALID_ARGUMENT);
	odd = (struct weir_checkpoint_options){.struct_size = 1};
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, &odd, folder.file, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, NULL, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, NULL, "", NULL),
	             WEIR_INVALID_ARGUMENT);
	weir_var_destroy(var);
	weir_var_destroy(other);
	weir_var_destroy(empty);
	weir_var_destroy(words);
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- memory ------------------------------------------------------------------------------------------------------------------- */

static enum weir_status save_and_restore(const weir_allocator *allocator, void *context)
{
	const struct folder *folder = context;
	struct weir_checkpoint_options options = {.struct_size = sizeof(options), .allocator = allocator};
	weir_var *var = variable(4), *into = variable(1);
	struct weir_checkpoint_part saved = {"x", var}, restored = {"x", into};
	enum weir_status status = weir_checkpoint_save(&saved, 1, &options, folder->file, NULL);

	if (status == WEIR_OK)
		status = weir_checkpoint_restore(&restored, 1, &options, folder->file, WEIR_NO_DEADLINE, NULL);
	cr_expect_eq(value_in(into), status == WEIR_OK ? 4 : 1);
	weir_var_destroy(var);
	weir_var_destroy(into);
	cr_expect_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	return status;
}

Test(checkpoint, both_ways_survive_every_allocation_failing)
{
	struct folder folder = make_folder();

	cr_expect_eq(fail_each_allocation(save_and_restore, &folder), 8);
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- one instant -------------------------------------------------------------------------------------------------------------- */

enum { VARS = 5 };

/* Works on all of them, until told to stop. */
struct writer {
	weir_var *vars[VARS];
	_Atomic(int) stop;
};

/* The same number to each. */
static void *keep_committing(void *context)
{
	struct writer *writer = context;

	/* [relaxed] joined before anything is concluded from it. */
	for (uint64_t at = 1; !weiri_load_relaxed(&writer->stop); at++)
		cr_assert_eq(commit_all(writer->vars, VARS, at, (int64_t)at + 1, NULL), WEIR_OK);
	return NULL;
}

/* What a file holds: the same number in all its tensors, which is the result. */
static int64_t number_in_file(const struct folder *folder)
{
	static const char *const names[VARS] = {"0", "1", "2", "3", "4"};
	struct weir_checkpoint_part parts[VARS];
	weir_error error = {WEIR_OK, ""};
	int64_t first;

	for (size_t i = 0; i < VARS; i++)
		parts[i] = (struct weir_checkpoint_part){names[i], empty_variable(names[i])};
	cr_assert_eq(weir_checkpoint_restore(parts, VARS, NULL, folder->file, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	first = value_in(parts[0].var);
	for (size_t i = 0; i < VARS; i++) {
		cr_expect_eq(value_in(parts[i].var), first, "tensor %zu is of another instant", i);
		weir_var_destroy(parts[i].var);
	}
	return first;
}

static void make_numbered(weir_var *vars[VARS], int64_t value)
{
	for (size_t i = 0; i < VARS; i++) {
		char name[2] = {(char)('0' + i), '\0'};

		vars[i] = named_variable(name, value);
	}
}

static void destroy_all(weir_var *const vars[VARS])
{
	for (size_t i = 0; i < VARS; i++)
		weir_var_destroy(vars[i]);
}

/* Each variable many times over, so that taking them one by one would take long enough to be caught. */
enum { ALIASES = 600 };

static void alias_parts(weir_var *const vars[VARS], char names[ALIASES][8], struct weir_checkpoint_part parts[ALIASES])
{
	for (size_t i = 0; i < ALIASES; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "%zu", i);
		parts[i] = (struct weir_checkpoint_part){names[i], vars[i % VARS]};
	}
}

Test(checkpoint, a_save_beside_a_writer_is_of_one_instant)
{
	enum { SAVES = 20 };
	struct folder folder = make_folder();
	struct writer writer = {.stop = 0};
	static struct weir_checkpoint_part from[ALIASES], to[ALIASES];
	static weir_var *apart[ALIASES];
	static char names[ALIASES][8];
	pthread_t thread;
	int64_t last = 0;

	make_numbered(writer.vars, 1);
	alias_parts(writer.vars, names, from);
	memcpy(to, from, sizeof(to));
	for (size_t i = 0; i < ALIASES; i++)
		to[i].var = apart[i] = empty_variable("to");
	cr_assert_eq(pthread_create(&thread, NULL, keep_committing, &writer), 0);
	for (int i = 0; i < SAVES; i++) {
		cr_assert_eq(weir_checkpoint_save(from, ALIASES, NULL, folder.file, NULL), WEIR_OK);
		cr_assert_eq(weir_checkpoint_restore(to, ALIASES, NULL, folder.file, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		cr_expect_geq(value_in(apart[0]), last);
		last = value_in(apart[0]);
		for (size_t j = 0; j < ALIASES; j++)
			cr_assert_eq(value_in(apart[j]), last, "tensor %zu is of another instant", j);
	}
	weiri_store_relaxed(&writer.stop, 1); /* [relaxed] joined below */
	(void)pthread_join(thread, NULL);
	for (size_t i = 0; i < ALIASES; i++)
		weir_var_destroy(apart[i]);
	destroy_all(writer.vars);
	remove_folder(&folder);
	expect_nothing_left();
}

/* The first and the last of many variables that are restored together. */
struct onlooker {
	weir_var *ends[2];
	_Atomic(int) stop;
	int torn, looks;
};

static void *keep_looking(void *context)
{
	struct onlooker *onlooker = context;

	/* [relaxed] joined before anything is concluded from it. */
	while (!weiri_load_relaxed(&onlooker->stop)) {
		weir_read reads[2];

		if (weir_var_snapshot(onlooker->ends, 2, reads, NULL) != WEIR_OK)
			continue;
		onlooker->torn += value_of(&reads[0]) != value_of(&reads[1]);
		onlooker->looks++;
		weir_read_release_many(reads, 2);
	}
	return NULL;
}

static void save_all_as(int64_t value, struct weir_checkpoint_part parts[ALIASES], const char *path)
{
	for (size_t i = 0; i < ALIASES; i++)
		assign(parts[i].var, value);
	cr_assert_eq(weir_checkpoint_save(parts, ALIASES, NULL, path, NULL), WEIR_OK);
}

Test(checkpoint, a_restore_beside_a_reader_is_of_one_instant)
{
	enum { RESTORES = 100 };
	struct folder ones = make_folder(), twos = make_folder();
	static struct weir_checkpoint_part parts[ALIASES];
	static char names[ALIASES][8];
	struct onlooker onlooker = {.stop = 0};
	weir_var *vars[VARS];
	pthread_t reader;

	make_numbered(vars, 0);
	alias_parts(vars, names, parts);
	for (size_t i = 0; i < ALIASES; i++)
		parts[i].var = variable(0);
	save_all_as(1, parts, ones.file);
	save_all_as(2, parts, twos.file);
	onlooker.ends[0] = parts[0].var;
	onlooker.ends[1] = parts[ALIASES - 1].var;
	cr_assert_eq(pthread_create(&reader, NULL, keep_looking, &onlooker), 0);
	for (int i = 0; i < RESTORES; i++) {
		const struct folder *from = i % 2 == 0 ? &ones : &twos;

		cr_assert_eq(weir_checkpoint_restore(parts, ALIASES, NULL, from->file, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		cr_assert_eq(value_in(parts[i].var), 1 + i % 2);
	}
	weiri_store_relaxed(&onlooker.stop, 1); /* [relaxed] joined below */
	(void)pthread_join(reader, NULL);
	cr_expect_eq(onlooker.torn, 0, "of %d looks", onlooker.looks);
	for (size_t i = 0; i < ALIASES; i++)
		weir_var_destroy(parts[i].var);
	destroy_all(vars);
	remove_folder(&ones);
	remove_folder(&twos);
	expect_nothing_left();
}

/* -- stopped anywhere --------------------------------------------------------------------------------------------------------- */

/* What the disk may have kept of what was not synced when the machine stopped. */
enum loss {
	NOTHING_LOST, /* the process was killed, no more */
	DATA_LOST,    /* new names are on the disk, the data behind them is not */
	NAMES_LOST,   /* the other way round */
	LOSSES
};

/* A disk that stops its process before its stop-th call, and takes `most` bytes at a time. */
struct stopping {
	int calls;
	int stop; /* 0: never */
	size_t most;
	enum loss loss;
	const struct folder *folder;
	char temporary[PATH_ROOM];
	char old[PATH_ROOM]; /* what a lost rename brings back */
	off_t written, synced;
	int file;
	int renamed, folder_synced;
};

/* Does to the folder what a loss of power would. */
static void lose(const struct stopping *disk)
{
	if (disk->loss == DATA_LOST && disk->temporary[0] != '\0' && disk->synced < disk->written)
		(void)truncate(disk->renamed ? disk->folder->file : disk->temporary, disk->synced);
	if (disk->loss == NAMES_LOST && disk->renamed && !disk->folder_synced)
		(void)rename(disk->old, disk->folder->file);
}

static void step(struct stopping *disk)
{
	if (++disk->calls != disk->stop)
		return;
	lose(disk);
	_exit(0);
}

static int stopping_open(void *context, const char *path, int flags, mode_t mode)
{
	struct stopping *disk = context;
	int file;

	step(disk);
	file = open(path, flags, mode);
	if ((flags & O_CREAT) != 0) {
		disk->file = file;
		(void)snprintf(disk->temporary, sizeof(disk->temporary), "%s", path);
	}
	return file;
}

static ssize_t stopping_write(void *context, int file, const void *bytes, size_t count)
{
	struct stopping *disk = context;
	ssize_t written;

	step(disk);
	written = write(file, bytes, count < disk->most ? count : disk->most);
	disk->written += written;
	return written;
}

static int stopping_sync(void *context, int file)
{
	struct stopping *disk = context;

	step(disk);
	if (file == disk->file)
		disk->synced = disk->written;
	else
		disk->folder_synced = disk->renamed;
	return fsync(file);
}

static int stopping_close(void *context, int file)
{
	struct stopping *disk = context;

	step(disk);
	if (file == disk->file)
		disk->file = -1;
	return close(file);
}

static int stopping_rename(void *context, const char *from, const char *to)
{
	struct stopping *disk = context;

	step(disk);
	(void)snprintf(disk->old, sizeof(disk->old), "%s/old", disk->folder->path);
	(void)link(to, disk->old);
	disk->renamed = 1;
	return rename(from, to);
}

static int stopping_unlink(void *context, const char *path)
{
	step(context);
	return unlink(path);
}

static struct weiri_disk disk_of(struct stopping *disk)
{
	return (struct weiri_disk){stopping_open,   stopping_write,  stopping_sync, stopping_close,
	                           stopping_rename, stopping_unlink, disk};
}

static enum weir_status save_number(const struct folder *folder, int64_t value, const struct weiri_disk *disk,
                                    weir_error *error)
{
	static const char *const names[VARS] = {"0", "1", "2", "3", "4"};
	struct weir_checkpoint_tensor tensors[VARS];
	weir_tensor *tensor = number(value);
	enum weir_status status;

	for (size_t i = 0; i < VARS; i++)
		tensors[i] = (struct weir_checkpoint_tensor){names[i], tensor};
	status = weiri_checkpoint_save_on(disk, tensors, VARS, NULL, folder->file, error);
	weir_tensor_release(tensor);
	return status;
}

/* In a child: saves 2, and is stopped. The exit code: 0 stopped, 1 it came to its end, 2 it failed. */
static int save_and_stop(const struct folder *folder, int stop, enum loss loss)
{
	struct stopping stopping = {.stop = stop, .most = 200, .loss = loss, .folder = folder, .file = -1};
	struct weiri_disk disk = disk_of(&stopping);
	pid_t child;
	int status;

	(void)fflush(NULL);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		int failed = save_number(folder, 2, &disk, NULL) != WEIR_OK;

		lose(&stopping);
		_exit(failed ? 2 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* Stopped before each of its calls to the system, and with each loss: the old file or the new one; once it has returned, the new one. */
static void check_every_stop(enum loss loss)
{
	struct folder folder = make_folder();
	int64_t found = 1;
	int ended = 0, stop;

	for (stop = 1; !ended; stop++) {
		int64_t before = found;

		cr_assert_eq(save_number(&folder, 1, &weiri_real_disk, NULL), WEIR_OK);
		ended = save_and_stop(&folder, stop, loss);
		cr_assert_neq(ended, 2, "a save failed");
		found = number_in_file(&folder);
		cr_expect(found == 1 || found == 2, "%d: %lld", stop, (long long)found);
		cr_expect_geq(found, before, "stopped before call %d: a save that was done is undone", stop);
		(void)sweep(&folder);
	}
	cr_expect_eq(found, 2, "a save that has returned may be lost");
	/* open, 2 or more writes of the header, one of each tensor, sync, close, rename; open, sync, close of the folder */
	cr_expect_geq(stop, 12, "only %d calls", stop);
	remove_folder(&folder);
}

Test(checkpoint, killed_before_any_call_the_file_is_the_old_or_the_new)
{
	check_every_stop(NOTHING_LOST);
	expect_nothing_left();
}

Test(checkpoint, without_power_and_without_the_data_not_synced_the_file_is_the_old_or_the_new)
{
	check_every_stop(DATA_LOST);
	expect_nothing_left();
}

Test(checkpoint, without_power_and_without_the_names_not_synced_the_file_is_the_old_or_the_new)
{
	check_every_stop(NAMES_LOST);
	expect_nothing_left();
}

/* Child: saves ever larger numbers, until it is killed. */
static _Noreturn void save_for_ever(const struct folder *folder)
{
	struct stopping slow = {.most = 30, .folder = folder, .file = -1};
	struct weiri_disk disk = disk_of(&slow);

	/* Its own link of the old file is in the way of the next. */
	for (int64_t i = 1;; i++) {
		(void)unlink(slow.old);
		if (save_number(folder, i, &disk, NULL) != WEIR_OK)
			_exit(1);
	}
}

Test(checkpoint, killed_at_a_random_moment_the_file_is_whole)
{
	enum { ROUNDS = 20 };
	struct folder folder = make_folder();
	uint32_t seed = 42;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t reached = 0;
		pid_t child;
		int status;

		cr_assert_eq(save_number(&folder, 0, &weiri_real_disk, NULL), WEIR_OK);
		(void)fflush(NULL);
		child = fork();
		cr_assert_geq(child, 0);
		if (child == 0)
			save_for_ever(&folder);
		/* Some saves, and a part of one. Whoever reads beside them finds whole files, too. */
		while (reached < 1 + round % 5) {
			int64_t found = number_in_file(&folder);

			cr_expect_geq(found, reached);
			reached = found;
			cr_assert_eq(waitpid(child, &status, WNOHANG), 0, "the child ended");
		}
		seed = seed * 1664525 + 1013904223;
		for (uint32_t spin = seed >> 14; spin > 0; spin--)
			weiri_pause();
		cr_assert_eq(kill(child, SIGKILL), 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_geq(number_in_file(&folder), reached);
		(void)sweep(&folder);
	}
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- a disk that fails -------------------------------------------------------------------------------------------------------- */

/* The fail-th call fails with `reason`. */
struct failing {
	int calls;
	int fail;
	int reason;
	int interrupted; /* a write was, once */
};

static int fails(struct failing *disk)
{
	if (++disk->calls != disk->fail)
		return 0;
	errno = disk->reason;
	return 1;
}

static int failing_open(void *context, const char *path, int flags, mode_t mode)
{
	return fails(context) ? -1 : open(path, flags, mode);
}

static ssize_t failing_write(void *context, int file, const void *bytes, size_t count)
{
	struct failing *disk = context;

	if (!disk->interrupted) {
		disk->interrupted = 1;
		errno = EINTR;
		return -1;
	}
	/* Full disks take what still fits, and then say so; some take nothing and say nothing. */
	if (fails(context))
		return disk->reason == ENOSPC ? -1 : 0;
	return write(file, bytes, count < 100 ? count : 100);
}

static int failing_sync(void *context, int file)
{
	return fails(context) ? -1 : fsync(file);
}

static int failing_close(void *context, int file)
{
	int failed = fails(context);
	int reason = errno;

	(void)close(file);
	errno = reason;
	return failed ? -1 : 0;
}

static int failing_rename(void *context, const char *from, const char *to)
{
	return fails(context) ? -1 : rename(from, to);
}

static int failing_unlink(void *context, const char *path)
{
	(void)context;
	return unlink(path);
}

Test(checkpoint, whatever_call_fails_the_old_file_stays_and_nothing_beside_it)
{
	struct folder folder = make_folder();
	int last_failed = 0, succeeded = 0, calls = 0;

	for (int fail = 1; !succeeded; fail++) {
		struct failing failing = {.fail = fail, .reason = ENOSPC};
		struct weiri_disk disk = {failing_open,   failing_write,  failing_sync, failing_close,
		                          failing_rename, failing_unlink, &failing};
		weir_error error = {WEIR_OK, ""};
		enum weir_status status;

		cr_assert_eq(save_number(&folder, 1, &weiri_real_disk, NULL), WEIR_OK);
		status = save_number(&folder, 2, &disk, &error);
		succeeded = failing.calls < fail;
		calls = fail;
		if (status == WEIR_OK) {
			cr_expect_eq(number_in_file(&folder), 2);
		} else {
			last_failed = fail;
			cr_expect_eq(status, WEIR_RESOURCE_EXHAUSTED, "%s", error.message);
			cr_expect(strstr(error.message, "No space left on device") != NULL, "%s", error.message);
			cr_expect_eq(number_in_file(&folder), strstr(error.message, "is in place") != NULL ? 2 : 1);
		}
		cr_expect_eq(sweep(&folder), 0, "call %d: a temporary file was left", fail);
	}
	/* Only that the closing of the folder fails changes nothing. */
	cr_expect_eq(last_failed, calls - 2);
	remove_folder(&folder);
	expect_nothing_left();
}

Test(checkpoint, a_write_that_takes_nothing_fails)
{
	struct folder folder = make_folder();
	struct failing failing = {.fail = 3, .reason = 0};
	struct weiri_disk disk = {failing_open,   failing_write,  failing_sync, failing_close,
	                          failing_rename, failing_unlink, &failing};
	weir_error error;

	cr_expect_eq(save_number(&folder, 2, &disk, &error), WEIR_INTERNAL);
	cr_expect(strstr(error.message, ": write: ") != NULL, "%s", error.message);
	remove_folder(&folder);
	expect_nothing_left();
}

/* Of a process that had this one's number. */
Test(checkpoint, a_temporary_file_that_was_left_behind_is_not_touched)
{
	enum { STALE = 20 };
	struct folder folder = make_folder();
	char path[PATH_ROOM + 32];
	struct stat about;

	for (int i = 0; i < STALE; i++) {
		(void)snprintf(path, sizeof(path), "%s.%ld-%d.tmp", folder.file, (long)getpid(), i);
		write_file(path, "mine", 4);
	}
	cr_expect_eq(save_number(&folder, 7, &weiri_real_disk, NULL), WEIR_OK);
	cr_expect_eq(number_in_file(&folder), 7);
	for (int i = 0; i < STALE; i++) {
		(void)snprintf(path, sizeof(path), "%s.%ld-%d.tmp", folder.file, (long)getpid(), i);
		cr_expect(stat(path, &about) == 0 && about.st_size == 4, "%s is gone or changed", path);
	}
	cr_expect_eq(sweep(&folder), STALE);
	remove_folder(&folder);
	expect_nothing_left();
}

Test(checkpoint, a_path_without_a_folder_is_in_the_current_one)
{
	struct folder folder = make_folder();
	weir_var *var = variable(3);
	struct weir_checkpoint_part part = {"x", var};
	char here[PATH_MAX];

	cr_assert_not_null(getcwd(here, sizeof(here)));
	cr_assert_eq(chdir(folder.path), 0);
	cr_expect_eq(weir_checkpoint_save(&part, 1, NULL, "saved.safetensors", NULL), WEIR_OK);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, NULL, "saved.safetensors", WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_assert_eq(chdir(here), 0);
	cr_expect_eq(access(folder.file, R_OK), 0);
	/* A folder is no file; a pipe that nobody writes to must not hang. */
	cr_expect_eq(weir_checkpoint_restore(&part, 1, NULL, folder.path, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(unlink(folder.file), 0);
	cr_assert_eq(mkfifo(folder.file, 0600), 0);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, NULL, folder.file, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	weir_var_destroy(var);
	remove_folder(&folder);
	expect_nothing_left();
}
