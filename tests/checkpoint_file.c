/*
 * checkpoint_file.c - one side of scripts/check_safetensors: saves a checkpoint that another
 * program reads, and restores one that another program wrote.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/flow/checkpoint.h>
#include <weir/time.h>

enum { PARTS = 3, ROWS = 300, COLUMNS = 7 };

static const struct {
	const char *name;
	enum weir_dtype dtype;
	weir_shape shape;
} kinds[PARTS] = {
	{"weights \"1\"", WEIR_F32, {2, {ROWS, COLUMNS}}},
	{"pas/\xc3\xa9t\xc3\xa9", WEIR_I64, {0, {0}}},
	{"mask", WEIR_BOOL, {1, {COLUMNS}}},
};

/* Element i is i / 4 in part 0, -3 in part 1, and whether i is odd in part 2. */
static void fill(size_t part, void *data, int64_t elements)
{
	for (int64_t i = 0; i < elements; i++) {
		if (part == 0)
			((float *)data)[i] = (float)i / 4;
		else if (part == 1)
			((int64_t *)data)[i] = -3;
		else
			((unsigned char *)data)[i] = (unsigned char)(i % 2);
	}
}

static weir_tensor *expected(size_t part)
{
	weir_tensor_builder *builder;
	weir_tensor *tensor = NULL;
	int64_t elements;

	if (weir_tensor_builder_create(kinds[part].dtype, &kinds[part].shape, NULL, &builder, NULL) ||
	    weir_shape_element_count(&kinds[part].shape, &elements))
		return NULL;
	fill(part, weir_tensor_builder_data(builder), elements);
	(void)weir_tensor_builder_finish(builder, &tensor);
	return tensor;
}

static int matches(weir_var *var, size_t part)
{
	weir_tensor *wanted = expected(part);
	weir_read read;
	int same;

	if (wanted == NULL || weir_var_read(var, &read) != WEIR_OK)
		return 0;
	same = weir_shape_equal(weir_tensor_shape(wanted), weir_tensor_shape(read.tensor)) &&
	       memcmp(weir_tensor_data(wanted), weir_tensor_data(read.tensor), weir_tensor_byte_count(wanted)) == 0;
	weir_read_release(&read);
	weir_tensor_release(wanted);
	return same;
}

int main(int count, char *words[])
{
	int save = count == 3 && strcmp(words[1], "save") == 0;
	struct weir_checkpoint_part parts[PARTS];
	weir_error error = {WEIR_OK, ""};
	int result = 0;

	if (!save && (count != 3 || strcmp(words[1], "restore") != 0))
		return 2;
	for (size_t i = 0; i < PARTS; i++) {
		struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = kinds[i].name, .dtype = kinds[i].dtype,
		                                   .shape = &kinds[i].shape};
		weir_tensor *initial = save ? expected(i) : NULL;

		parts[i].name = NULL;
		if (weir_var_create(initial, &options, &parts[i].var, &error))
			return 2;
		weir_tensor_release(initial);
	}
	result = save ? weir_checkpoint_save(parts, PARTS, words[2], NULL, &error) != WEIR_OK
	              : weir_checkpoint_restore(parts, PARTS, words[2], NULL, WEIR_NO_DEADLINE, &error) != WEIR_OK;
	if (result != 0)
		printf("%s\n", error.message);
	for (size_t i = 0; i < PARTS; i++) {
		result |= result == 0 && !matches(parts[i].var, i);
		weir_var_destroy(parts[i].var, NULL);
	}
	return result;
}
