/*
 * test_checkpoint.c - variables saved to a file and restored from it: a save is of one instant, and
 * so is a restore, unless the file is refused.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weir/flow/checkpoint.h>

#include "checkpoint_kit.h"
#include "sandbox.h"

/* -- saved values come back -------------------------------------------------------------------- */

static weir_var *variable_of(enum weir_dtype dtype, const weir_shape *shape, const void *data, const char *name)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = dtype, .name = name,
	                                   .allocator = &variables_memory};
	weir_tensor *tensor = NULL;
	weir_var *var = NULL;

	if (data != NULL)
		cr_assert_eq(weir_tensor_copy_of(dtype, shape, data, &variables_memory, &tensor), WEIR_OK);
	cr_assert_eq(weir_var_create(tensor, &options, &var, NULL), WEIR_OK);
	weir_tensor_release(tensor);
	return var;
}

static const enum weir_dtype numbers[] = {WEIR_BOOL, WEIR_U8,  WEIR_I8,  WEIR_I16, WEIR_I32, WEIR_I64, WEIR_F16,
                                          WEIR_F32,  WEIR_F64, WEIR_U16, WEIR_U32, WEIR_U64, WEIR_BF16};
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
	cr_assert_eq(weir_checkpoint_save(from, NUMBERS, folder.file, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_checkpoint_restore(to, NUMBERS, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	for (size_t i = 0; i < NUMBERS; i++) {
		weir_read was, is;

		cr_assert_eq(weir_var_read(from[i].var, &was) || weir_var_read(to[i].var, &is), 0);
		cr_expect_eq(is.version, 1);
		cr_expect(weir_shape_equal(weir_tensor_shape(was.tensor), weir_tensor_shape(is.tensor)));
		cr_expect_arr_eq(weir_tensor_data(is.tensor), weir_tensor_data(was.tensor), weir_tensor_byte_count(was.tensor));
		weir_read_release(&was);
		weir_read_release(&is);
		weir_var_destroy(from[i].var, NULL);
		weir_var_destroy(to[i].var, NULL);
	}
	remove_folder(&folder);
	expect_nothing_left();
}

/*
 * Each read asks for at least one byte. So a tensor without bytes at the end of the data must not
 * be read at all.
 */
Test(checkpoint, tensors_of_one_byte_and_of_none_come_back)
{
	struct folder folder = make_folder();
	weir_var *one = variable_of(WEIR_U8, &(weir_shape){.rank = 0}, "\x2a", "one");
	weir_var *none = variable_of(WEIR_I64, &(weir_shape){2, {0, 3}}, "", "none");
	struct weir_checkpoint_part parts[2] = {{NULL, one}, {NULL, none}};
	weir_error error = {WEIR_OK, ""};
	weir_read read;

	cr_assert_eq(weir_checkpoint_save(parts, 2, folder.file, NULL, &error), WEIR_OK, "%s", error.message);
	cr_assert_eq(weir_checkpoint_restore(parts, 2, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	cr_assert_eq(weir_var_read(one, &read), WEIR_OK);
	cr_expect_eq(*(const unsigned char *)weir_tensor_data(read.tensor), 42);
	cr_expect_eq(read.version, 2);
	weir_read_release(&read);
	cr_assert_eq(weir_var_read(none, &read), WEIR_OK);
	cr_expect_eq(weir_tensor_element_count(read.tensor), 0);
	cr_expect_eq(read.version, 2);
	weir_read_release(&read);
	/* Another writer may say that the tensor begins at the end of the data. */
	write_header(folder.file,
	             "{\"one\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
	             "\"none\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[1,1]}}",
	             "\x2b", 1);
	cr_expect_eq(weir_checkpoint_restore(parts, 2, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_OK, "%s",
	             error.message);
	weir_var_destroy(one, NULL);
	weir_var_destroy(none, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

/*
 * This checks the bytes, because our reader might share a mistake of our writer: little-endian, the
 * largest elements first, the data at a multiple of 64.
 */
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
	cr_assert_eq(weir_checkpoint_save_tensors(tensors, 2, folder.file, NULL, NULL), WEIR_OK);
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
	cr_assert_eq(weir_checkpoint_restore(parts, 2, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_expect_eq(value_in(one), 7);
	cr_expect_eq(value_in(two), -2);
	cr_expect_eq(weir_var_version(one), 1);
	cr_expect_eq(weir_var_version(two), 2);
	weir_var_destroy(one, NULL);
	weir_var_destroy(two, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- refusals ---------------------------------------------------------------------------------- */

/*
 * Restoring `var`, which is i64 and holds 5, from the file fails with this status and message, and
 * changes nothing.
 */
static void expect_refused(const struct folder *folder, const char *name, weir_var *var, enum weir_status status,
                           const char *message)
{
	struct weir_checkpoint_part part = {name, var};
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_checkpoint_restore(&part, 1, folder->file, NULL, WEIR_NO_DEADLINE, &error), status, "%s: %s",
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
	struct weir_var_options scalar = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "v",
	                                  .shape = &(weir_shape){.rank = 0}, .allocator = &variables_memory};
	weir_tensor *five = number(5);
	weir_var *var;
	unsigned char zeros[64] = {0};

	cr_assert_eq(weir_var_create(five, &scalar, &var, NULL), WEIR_OK);
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
	cr_expect_eq(weir_checkpoint_restore(&(struct weir_checkpoint_part){NULL, var}, 1, folder.file,
	                                     &(struct weir_checkpoint_options){WEIR_CHECKPOINT_OPTIONS_INIT,
	                                                                       .flags = WEIR_CHECKPOINT_ALLOW_OTHERS,
	                                                                       .allocator = &variables_memory},
	                                     WEIR_NO_DEADLINE, NULL),
	             WEIR_OK);
	cr_expect_eq(value_in(var), 0);
	weir_var_destroy(var, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

static int open_files(void)
{
	DIR *all = opendir("/proc/self/fd");
	int count = 0;

	cr_assert_not_null(all);
	while (readdir(all) != NULL)
		count++;
	(void)closedir(all);
	return count;
}

Test(checkpoint, a_refused_file_is_closed)
{
	struct folder folder = make_folder();
	weir_var *var = variable(5);
	int before = open_files();
	unsigned char zeros[8] = {0};

	write_header(folder.file, "{nonsense", zeros, 0);
	expect_refused(&folder, NULL, var, WEIR_DATA_LOSS, "expected a string");
	cr_expect_eq(open_files(), before);
	weir_var_destroy(var, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

enum { LONG = 4096 };

/*
 * Cuts the file when the memory for its tensor is allocated. Only the first bytes of the tensor are
 * left.
 */
static void *cut_and_allocate(void *context, size_t size, size_t alignment)
{
	const struct folder *folder = context;

	if (size >= LONG)
		cr_expect_eq(truncate(folder->file, 200), 0);
	return variables_memory.allocate(variables_memory.context, size, alignment);
}

static void release_cut(void *context, void *memory, size_t size, size_t alignment)
{
	(void)context;
	variables_memory.release(variables_memory.context, memory, size, alignment);
}

Test(checkpoint, a_file_that_becomes_shorter_while_it_is_read_is_refused)
{
	static const char zeros[LONG];
	struct folder folder = make_folder();
	weir_allocator cutting = {cut_and_allocate, release_cut, &folder};
	struct weir_checkpoint_options options = {WEIR_CHECKPOINT_OPTIONS_INIT, .allocator = &cutting};
	weir_var *var = variable_of(WEIR_U8, &(weir_shape){1, {LONG}}, zeros, "v");
	struct weir_checkpoint_part part = {NULL, var};
	weir_error error = {WEIR_OK, ""};

	cr_assert_eq(weir_checkpoint_save(&part, 1, folder.file, NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, folder.file, &options, WEIR_NO_DEADLINE, &error), WEIR_DATA_LOSS);
	cr_expect_not_null(strstr(error.message, "saved.safetensors: became shorter while it was read: no byte 200"), "%s",
	                   error.message);
	cr_expect_eq(weir_var_version(var), 1);
	weir_var_destroy(var, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

/* Runs in a child, in which pread() fails. */
static int restore_without_a_disk(void)
{
	static struct folder folder;
	struct weir_checkpoint_part part = {"x", variable(5)};
	weir_error error = {WEIR_OK, ""};
	enum weir_status status;
	int64_t value;

	folder = make_folder();
	if (weir_checkpoint_save(&part, 1, folder.file, NULL, NULL) != WEIR_OK)
		return 3;
	if (!sandbox_refuses(SYS_pread64, EIO))
		return SANDBOX_NOT_HERE;
	assign(part.var, 6);
	status = weir_checkpoint_restore(&part, 1, folder.file, NULL, WEIR_NO_DEADLINE, &error);
	value = value_in(part.var);
	(void)unlink(folder.file);
	(void)rmdir(folder.path);
	(void)weir_var_destroy(part.var, NULL);
	if (status != WEIR_INTERNAL || value != 6)
		return 1;
	return strstr(error.message, "saved.safetensors: read: Input/output error") != NULL ? SANDBOX_HELD : 2;
}

Test(checkpoint, a_read_that_fails_is_told_with_its_reason)
{
	in_a_sandbox(restore_without_a_disk);
}

Test(checkpoint, a_bool_is_0_or_1)
{
	struct folder folder = make_folder();
	weir_var *var = variable_of(WEIR_BOOL, NULL, NULL, "b");
	struct weir_checkpoint_part part = {NULL, var};
	weir_error error;

	write_header(folder.file, HEADER("b", "BOOL", "[3]", "3"), "\0\1\2", 3);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, folder.file, NULL, WEIR_NO_DEADLINE, &error), WEIR_DATA_LOSS);
	cr_expect(strstr(error.message, "tensor \"b\": element 2 is 2, expected 0 or 1") != NULL, "%s", error.message);
	cr_expect_eq(weir_var_version(var), 0);
	weir_var_destroy(var, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

Test(checkpoint, one_part_that_does_not_fit_keeps_all_from_being_restored)
{
	struct folder folder = make_folder();
	weir_var *good = variable(5), *bad = variable_of(WEIR_F32, NULL, NULL, "bad");
	struct weir_checkpoint_part parts[2] = {{"v", good}, {"v", bad}};

	write_header(folder.file, HEADER("v", "I64", "[]", "8"), "\1\0\0\0\0\0\0\0", 8);
	cr_expect_eq(weir_checkpoint_restore(parts, 2, folder.file, NULL, WEIR_NO_DEADLINE, NULL),
	             WEIR_FAILED_PRECONDITION);
	cr_expect_eq(value_in(good), 5);
	parts[1].var = good;
	cr_expect_eq(weir_checkpoint_restore(parts, 2, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT,
	             "a variable twice");
	parts[1].var = NULL;
	cr_expect_eq(weir_checkpoint_restore(parts, 2, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(value_in(good), 5);
	weir_var_destroy(good, NULL);
	weir_var_destroy(bad, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

/* The message says which checkpoint, and what is wrong with the call. */
static void expect_names(const weir_error *error, const struct folder *folder, const char *words)
{
	char begin[PATH_ROOM + 16];

	(void)snprintf(begin, sizeof(begin), "checkpoint %s: ", folder->file);
	cr_expect(strncmp(error->message, begin, strlen(begin)) == 0 && strstr(error->message, words) != NULL, "%s",
	          error->message);
}

/* The call is refused before it opens the file: there is none. */
Test(checkpoint, a_restore_that_makes_no_sense_is_refused)
{
	struct folder folder = make_folder();
	weir_var *var = variable(5);
	struct weir_checkpoint_part part = {"v", var};
	struct weir_checkpoint_options odd = {WEIR_CHECKPOINT_OPTIONS_INIT, .flags = 8};
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_checkpoint_restore(&part, 1, NULL, NULL, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_checkpoint_restore(NULL, 1, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_checkpoint_restore(&part, 0, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, folder.file, &odd, WEIR_NO_DEADLINE, &error), WEIR_INVALID_ARGUMENT);
	expect_names(&error, &folder, "unknown flags 0x8");
	odd = (struct weir_checkpoint_options){.struct_size = 1};
	cr_expect_eq(weir_checkpoint_restore(&part, 1, folder.file, &odd, WEIR_NO_DEADLINE, &error), WEIR_INVALID_ARGUMENT);
	expect_names(&error, &folder, "struct_size of the options is 1");
	cr_expect_eq(value_in(var), 5);
	weir_var_destroy(var, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

/* Saving these parts fails with this status and message, and makes no file. */
static void expect_not_saved(const struct folder *folder, const struct weir_checkpoint_part parts[], size_t count,
                             enum weir_status status, const char *message)
{
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_checkpoint_save(parts, count, folder->file, NULL, &error), status, "%s: %s", message,
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
	struct weir_checkpoint_options odd = {WEIR_CHECKPOINT_OPTIONS_INIT, .flags = 8};
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
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, folder.file, &odd, NULL),
	             WEIR_INVALID_ARGUMENT);
	odd = (struct weir_checkpoint_options){.struct_size = 1};
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, folder.file, &odd, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, NULL, NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_checkpoint_save(&(struct weir_checkpoint_part){NULL, var}, 1, "", NULL, NULL),
	             WEIR_INVALID_ARGUMENT);
	weir_var_destroy(var, NULL);
	weir_var_destroy(other, NULL);
	weir_var_destroy(empty, NULL);
	weir_var_destroy(words, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- memory ------------------------------------------------------------------------------------ */

static enum weir_status save_and_restore(const weir_allocator *allocator, void *context)
{
	const struct folder *folder = context;
	struct weir_checkpoint_options options = {WEIR_CHECKPOINT_OPTIONS_INIT, .allocator = allocator};
	weir_var *var = variable(4), *into = variable(1);
	struct weir_checkpoint_part saved = {"x", var}, restored = {"x", into};
	enum weir_status status = weir_checkpoint_save(&saved, 1, folder->file, &options, NULL);

	if (status == WEIR_OK)
		status = weir_checkpoint_restore(&restored, 1, folder->file, &options, WEIR_NO_DEADLINE, NULL);
	cr_expect_eq(value_in(into), status == WEIR_OK ? 4 : 1);
	weir_var_destroy(var, NULL);
	weir_var_destroy(into, NULL);
	cr_expect_eq(weir_reclaim_flush(weir_deadline_in(variables_patience_ns)), WEIR_OK);
	return status;
}

Test(checkpoint, both_ways_survive_every_allocation_failing)
{
	struct folder folder = make_folder();

	cr_expect_eq(fail_each_allocation(save_and_restore, &folder), 7);
	remove_folder(&folder);
	expect_nothing_left();
}

/* The bytes that are allocated now, and the most that were allocated at any time. */
struct counted {
	size_t bytes;
	size_t most;
};

static void *allocate_counted(void *context, size_t size, size_t alignment)
{
	struct counted *counted = context;

	counted->bytes += size;
	if (counted->bytes > counted->most)
		counted->most = counted->bytes;
	return variables_memory.allocate(variables_memory.context, size, alignment);
}

static void release_counted(void *context, void *memory, size_t size, size_t alignment)
{
	struct counted *counted = context;

	counted->bytes -= size;
	variables_memory.release(variables_memory.context, memory, size, alignment);
}

/*
 * Writes the header of one tensor "x" and of `others` empty tensors, with the data of "x". Returns
 * the size of the file.
 */
static size_t write_crowd(const char *path, size_t others)
{
	enum { LENGTH_BYTES = 8 };
	static const unsigned char data[8] = {4};
	unsigned char length[LENGTH_BYTES] = {0};
	FILE *file = fopen(path, "wb");
	size_t size;

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(length, 1, LENGTH_BYTES, file), LENGTH_BYTES);
	(void)fprintf(file, "{\"x\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}");
	for (size_t i = 0; i < others; i++)
		(void)fprintf(file, ",\"%zx\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[8,8]}", i);
	(void)fprintf(file, "}");
	size = (size_t)ftell(file);
	cr_assert_eq(fwrite(data, 1, sizeof(data), file), sizeof(data));
	for (size_t i = 0; i < LENGTH_BYTES; i++)
		length[i] = (unsigned char)((size - LENGTH_BYTES) >> 8 * i & 0xff);
	cr_assert_eq(fseek(file, 0, SEEK_SET), 0);
	cr_assert_eq(fwrite(length, 1, LENGTH_BYTES, file), LENGTH_BYTES);
	cr_assert_eq(fclose(file), 0);
	return size + sizeof(data);
}

Test(checkpoint, a_header_of_many_tensors_takes_no_more_memory_than_the_file_has_bytes)
{
	enum { FEW = 1000, MANY = 50000 };
	struct folder folder = make_folder();
	size_t over[2];

	for (size_t i = 0; i < 2; i++) {
		struct counted counted = {0, 0};
		const weir_allocator allocator = {allocate_counted, release_counted, &counted};
		struct weir_checkpoint_options options = {WEIR_CHECKPOINT_OPTIONS_INIT, .flags = WEIR_CHECKPOINT_ALLOW_OTHERS,
		                                          .allocator = &allocator};
		weir_var *var = variable(1);
		size_t size = write_crowd(folder.file, i == 0 ? FEW : MANY);

		cr_assert_eq(weir_checkpoint_restore(&(struct weir_checkpoint_part){"x", var}, 1, folder.file, &options,
		                                     WEIR_NO_DEADLINE, NULL),
		             WEIR_OK);
		cr_expect_eq(value_in(var), 4);
		cr_assert_geq(counted.most, size - 16, "the memory holds the text of the header");
		over[i] = counted.most - (size - 16);
		weir_var_destroy(var, NULL);
		expect_nothing_left();
	}
	/* The rest is the restored tensor with its head, and the memory of the commit. */
	cr_expect_lt(over[0], 1024, "%zu", over[0]);
	cr_expect_eq(over[1], over[0], "%zu and %zu", over[1], over[0]);
	remove_folder(&folder);
}

/* -- one instant ------------------------------------------------------------------------------- */

/* A thread that writes to all variables until it is told to stop. */
struct writer {
	weir_var *vars[VARS];
	_Atomic(int) stop;
};

/* Commits the same number to each variable. */
static void *keep_committing(void *context)
{
	struct writer *writer = context;

	/* [relaxed] the thread is joined before anything is concluded */
	for (uint64_t at = 1; !weiri_load_relaxed(&writer->stop); at++)
		cr_assert_eq(commit_all(writer->vars, VARS, at, (int64_t)at + 1, NULL), WEIR_OK);
	return NULL;
}

/*
 * Each variable appears many times. A save that read them one by one would take so long that the
 * test would notice it.
 */
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
		cr_assert_eq(weir_checkpoint_save(from, ALIASES, folder.file, NULL, NULL), WEIR_OK);
		cr_assert_eq(weir_checkpoint_restore(to, ALIASES, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		cr_expect_geq(value_in(apart[0]), last);
		last = value_in(apart[0]);
		for (size_t j = 0; j < ALIASES; j++)
			cr_assert_eq(value_in(apart[j]), last, "tensor %zu is of another instant", j);
	}
	/* [relaxed] the thread is joined below */
	weiri_store_relaxed(&writer.stop, 1);
	(void)pthread_join(thread, NULL);
	for (size_t i = 0; i < ALIASES; i++)
		weir_var_destroy(apart[i], NULL);
	destroy_all(writer.vars);
	remove_folder(&folder);
	expect_nothing_left();
}

/* Compares the first and the last of many variables that are restored together. */
struct onlooker {
	weir_var *ends[2];
	_Atomic(int) stop;
	int torn, looks;
};

static void *keep_looking(void *context)
{
	struct onlooker *onlooker = context;

	/* [relaxed] the thread is joined before anything is concluded */
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
	cr_assert_eq(weir_checkpoint_save(parts, ALIASES, path, NULL, NULL), WEIR_OK);
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

		cr_assert_eq(weir_checkpoint_restore(parts, ALIASES, from->file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_OK);
		cr_assert_eq(value_in(parts[i].var), 1 + i % 2);
	}
	/* [relaxed] the thread is joined below */
	weiri_store_relaxed(&onlooker.stop, 1);
	(void)pthread_join(reader, NULL);
	cr_expect_eq(onlooker.torn, 0, "of %d looks", onlooker.looks);
	for (size_t i = 0; i < ALIASES; i++)
		weir_var_destroy(parts[i].var, NULL);
	destroy_all(vars);
	remove_folder(&ones);
	remove_folder(&twos);
	expect_nothing_left();
}
