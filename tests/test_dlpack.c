/*
 * test_dlpack.c - tensors to and from DLPack.
 */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>
#include <weir/dlpack.h>

#include "failing_allocator.h"

#define SHAPE(...) (&(weir_shape){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})

/* What an out parameter holds before a call that fails. */
static int64_t marker;
static void *const untouched = &marker;

static weir_tensor *six(enum weir_dtype dtype)
{
	static const int64_t bytes[6] = {1, 2, 3, 4, 5, 6};
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(dtype, SHAPE(2, 3), bytes, NULL, &tensor), WEIR_OK);
	return tensor;
}

/* Foreign memory as another library would give it. */
struct lent {
	float data[6];
	int64_t dims[2], strides[2];
	int ends;
	struct weir_dlpack_managed managed;
	struct weir_dlpack_versioned versioned;
};

static void end_managed(struct weir_dlpack_managed *self)
{
	((struct lent *)self->context)->ends++;
}

static void end_versioned(struct weir_dlpack_versioned *self)
{
	((struct lent *)self->context)->ends++;
}

static void lend(struct lent *lent)
{
	struct weir_dlpack_tensor tensor = {.data = lent->data,
	                                    .device = {WEIR_DLPACK_CPU, 0},
	                                    .rank = 2,
	                                    .type = {WEIR_DLPACK_FLOAT, 32, 1},
	                                    .dims = lent->dims,
	                                    .strides = lent->strides};

	*lent = (struct lent){.data = {1, 2, 3, 4, 5, 6}, .dims = {2, 3}, .strides = {3, 1}};
	lent->managed = (struct weir_dlpack_managed){tensor, lent, end_managed};
	lent->versioned = (struct weir_dlpack_versioned){WEIR_DLPACK_MAJOR, 3, lent, end_versioned, 0, tensor};
}

/* -- layout ------------------------------------------------------------------------------------ */

/* DLPack 1.0 on a machine with pointers of 8 bytes. */
Test(dlpack, the_structs_have_the_layout_of_the_standard)
{
	if (sizeof(void *) != 8)
		return;
	cr_expect_eq(sizeof(struct weir_dlpack_tensor), 48);
	cr_expect_eq(offsetof(struct weir_dlpack_tensor, device), 8);
	cr_expect_eq(offsetof(struct weir_dlpack_tensor, rank), 16);
	cr_expect_eq(offsetof(struct weir_dlpack_tensor, type), 20);
	cr_expect_eq(offsetof(struct weir_dlpack_tensor, dims), 24);
	cr_expect_eq(offsetof(struct weir_dlpack_tensor, strides), 32);
	cr_expect_eq(offsetof(struct weir_dlpack_tensor, byte_offset), 40);
	cr_expect_eq(offsetof(struct weir_dlpack_managed, context), 48);
	cr_expect_eq(offsetof(struct weir_dlpack_managed, deleter), 56);
	cr_expect_eq(offsetof(struct weir_dlpack_versioned, context), 8);
	cr_expect_eq(offsetof(struct weir_dlpack_versioned, deleter), 16);
	cr_expect_eq(offsetof(struct weir_dlpack_versioned, flags), 24);
	cr_expect_eq(offsetof(struct weir_dlpack_versioned, tensor), 32);
}

/* -- export ------------------------------------------------------------------------------------ */

Test(dlpack, an_export_shows_the_elements_in_place)
{
	weir_tensor *tensor = six(WEIR_I32);
	struct weir_dlpack_managed *old = NULL;
	struct weir_dlpack_versioned *now = NULL;

	cr_assert_eq(weir_dlpack_export(tensor, &old, NULL), WEIR_OK);
	cr_assert_eq(weir_dlpack_export_versioned(tensor, &now, NULL), WEIR_OK);
	cr_expect_eq(now->major, 1);
	cr_expect_eq(now->flags, WEIR_DLPACK_READ_ONLY);
	for (int i = 0; i < 2; i++) {
		const struct weir_dlpack_tensor *shown = i == 0 ? &old->tensor : &now->tensor;

		cr_expect_eq(shown->data, weir_tensor_data(tensor));
		cr_expect_eq(shown->device.type, WEIR_DLPACK_CPU);
		cr_expect_eq(shown->rank, 2);
		cr_expect(shown->dims[0] == 2 && shown->dims[1] == 3);
		cr_expect(shown->strides[0] == 3 && shown->strides[1] == 1);
		cr_expect(shown->type.code == WEIR_DLPACK_INT && shown->type.bits == 32 && shown->type.lanes == 1);
		cr_expect_eq(shown->byte_offset, 0);
	}
	/* The exports keep the tensor. */
	weir_tensor_release(tensor);
	cr_expect_eq(((const int32_t *)now->tensor.data)[0], 1);
	old->deleter(old);
	now->deleter(now);
}

Test(dlpack, every_dtype_but_bytes_comes_back_as_itself)
{
	for (int dtype = WEIR_BOOL; dtype <= WEIR_BF16; dtype++) {
		weir_tensor *tensor, *back = untouched;
		struct weir_dlpack_versioned *managed = untouched;

		if (dtype == WEIR_BYTES)
			continue;
		tensor = six((enum weir_dtype)dtype);
		cr_assert_eq(weir_dlpack_export_versioned(tensor, &managed, NULL), WEIR_OK);
		cr_assert_eq(weir_dlpack_import_versioned(managed, NULL, &back, NULL), WEIR_OK, "%s",
		             weir_dtype_name((enum weir_dtype)dtype));
		cr_expect_eq((int)weir_tensor_dtype(back), dtype);
		cr_expect(weir_shape_equal(weir_tensor_shape(back), weir_tensor_shape(tensor)));
		cr_expect_eq(weir_tensor_data(back), weir_tensor_data(tensor));
		weir_tensor_release(tensor);
		weir_tensor_release(back);
	}
}

Test(dlpack, an_export_of_strings_is_refused)
{
	struct weir_dlpack_managed *managed = untouched;
	weir_tensor *tensor = NULL;
	weir_error error;

	cr_assert_eq(weir_tensor_scalar_bytes("ab", 2, &tensor), WEIR_OK);
	cr_expect_eq(weir_dlpack_export(tensor, &managed, &error), WEIR_UNIMPLEMENTED);
	cr_expect_str_eq(error.message, "weir_dlpack_export: DLPack has no type for bytes");
	cr_expect_eq((void *)managed, untouched);
	weir_tensor_release(tensor);
}

/* -- import ------------------------------------------------------------------------------------ */

Test(dlpack, an_import_is_no_copy_and_ends_once)
{
	struct lent lent;
	weir_tensor *tensor = NULL, *row = NULL;

	for (int versioned = 0; versioned < 2; versioned++) {
		lend(&lent);
		cr_assert_eq(versioned ? weir_dlpack_import_versioned(&lent.versioned, NULL, &tensor, NULL)
		                       : weir_dlpack_import(&lent.managed, NULL, &tensor, NULL),
		             WEIR_OK);
		cr_expect_eq(weir_tensor_data(tensor), (void *)lent.data);
		cr_assert_eq(weir_tensor_row(tensor, 1, &row), WEIR_OK);
		weir_tensor_release(tensor);
		cr_expect_eq(lent.ends, 0, "a view keeps the memory");
		cr_expect_eq(((const float *)weir_tensor_data(row))[2], 6);
		weir_tensor_release(row);
		cr_expect_eq(lent.ends, 1);
	}
}

Test(dlpack, an_import_begins_at_its_offset_and_needs_no_strides_and_no_deleter)
{
	struct lent lent;
	weir_tensor *tensor = NULL;

	lend(&lent);
	lent.managed.tensor.byte_offset = 3 * sizeof(float);
	lent.managed.tensor.strides = NULL;
	lent.managed.deleter = NULL;
	lent.dims[0] = 1;
	cr_assert_eq(weir_dlpack_import(&lent.managed, NULL, &tensor, NULL), WEIR_OK);
	cr_expect_eq(((const float *)weir_tensor_data(tensor))[0], 4);
	weir_tensor_release(tensor);
}

Test(dlpack, strides_of_single_rows_and_of_nothing_do_not_matter)
{
	struct lent lent;
	weir_tensor *tensor = NULL;

	for (int64_t rows = 0; rows < 2; rows++) {
		lend(&lent);
		lent.dims[0] = rows;
		lent.strides[0] = 77;
		cr_assert_eq(weir_dlpack_import(&lent.managed, NULL, &tensor, NULL), WEIR_OK);
		cr_expect_eq(weir_tensor_element_count(tensor), 3 * rows);
		weir_tensor_release(tensor);
	}
}

/* What makes an import fail, and how. */
static void on_a_device(struct weir_dlpack_tensor *tensor)
{
	tensor->device.type = 2;
}

static void complex_type(struct weir_dlpack_tensor *tensor)
{
	tensor->type.code = 5;
}

static void four_lanes(struct weir_dlpack_tensor *tensor)
{
	tensor->type.lanes = 4;
}

static void rank_9(struct weir_dlpack_tensor *tensor)
{
	tensor->rank = WEIR_MAX_RANK + 1;
}

static void negative_rank(struct weir_dlpack_tensor *tensor)
{
	tensor->rank = -1;
}

static void negative_dim(struct weir_dlpack_tensor *tensor)
{
	tensor->dims[1] = -3;
}

static void by_columns(struct weir_dlpack_tensor *tensor)
{
	tensor->strides[0] = 1;
	tensor->strides[1] = 2;
}

static void no_data(struct weir_dlpack_tensor *tensor)
{
	tensor->data = NULL;
}

static void odd_offset(struct weir_dlpack_tensor *tensor)
{
	tensor->byte_offset = 2;
}

Test(dlpack, what_cannot_be_shown_in_place_is_refused_and_stays_the_callers)
{
	static const struct {
		void (*spoil)(struct weir_dlpack_tensor *tensor);
		enum weir_status status;
		const char *message;
	} cases[] = {
		{on_a_device, WEIR_UNIMPLEMENTED, "the memory is that of a device of type 2"},
		{complex_type, WEIR_UNIMPLEMENTED, "there is no dtype for code 5 with 32 bits and 1 lanes"},
		{four_lanes, WEIR_UNIMPLEMENTED, "there is no dtype for code 2 with 32 bits and 4 lanes"},
		{rank_9, WEIR_UNIMPLEMENTED, "the rank is 9, must be 0 to 8"},
		{negative_rank, WEIR_UNIMPLEMENTED, "the rank is -1, must be 0 to 8"},
		{negative_dim, WEIR_INVALID_ARGUMENT, "the dims are negative or too large"},
		{by_columns, WEIR_INVALID_ARGUMENT, "the elements are not row-major"},
		{no_data, WEIR_INVALID_ARGUMENT, "the data is NULL"},
		{odd_offset, WEIR_INVALID_ARGUMENT, "the data is not aligned to its elements"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		weir_tensor *tensor = untouched;
		weir_error error = {.message = ""};
		struct lent lent;

		lend(&lent);
		cases[i].spoil(&lent.managed.tensor);
		cr_expect_eq(weir_dlpack_import(&lent.managed, NULL, &tensor, &error), cases[i].status);
		cr_expect_str_eq(error.message + strlen("weir_dlpack_import: "), cases[i].message);
		cr_expect_eq((void *)tensor, untouched);
		cr_expect_eq(lent.ends, 0);
	}
}

Test(dlpack, another_major_version_is_refused)
{
	struct lent lent;
	weir_tensor *tensor = untouched;
	weir_error error;

	lend(&lent);
	lent.versioned.major = 2;
	cr_expect_eq(weir_dlpack_import_versioned(&lent.versioned, NULL, &tensor, &error), WEIR_UNIMPLEMENTED);
	cr_expect_str_eq(error.message, "weir_dlpack_import: the major version is 2, must be 1");
	cr_expect(tensor == untouched && lent.ends == 0);
}

Test(dlpack, null_arguments_are_refused)
{
	struct weir_dlpack_managed *old = untouched;
	struct weir_dlpack_versioned *now = untouched;
	weir_tensor *tensor = six(WEIR_F32), *out = untouched;
	struct lent lent;

	lend(&lent);
	cr_expect_eq(weir_dlpack_export(NULL, &old, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dlpack_export(tensor, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dlpack_export_versioned(NULL, &now, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dlpack_export_versioned(tensor, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dlpack_import(NULL, NULL, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dlpack_import(&lent.managed, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dlpack_import_versioned(NULL, NULL, &out, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect_eq(weir_dlpack_import_versioned(&lent.versioned, NULL, NULL, NULL), WEIR_INVALID_ARGUMENT);
	cr_expect((void *)old == untouched && (void *)now == untouched && out == untouched && lent.ends == 0);
	weir_tensor_release(tensor);
}

static enum weir_status there_and_back(const weir_allocator *allocator, void *context)
{
	struct weir_dlpack_managed *managed;
	weir_tensor *tensor, *back;
	enum weir_status status = weir_tensor_copy_of(WEIR_U8, SHAPE(3), "abc", allocator, &tensor);

	(void)context;
	if (status != WEIR_OK)
		return status;
	status = weir_dlpack_export(tensor, &managed, NULL);
	weir_tensor_release(tensor);
	if (status != WEIR_OK)
		return status;
	status = weir_dlpack_import(managed, allocator, &back, NULL);
	if (status != WEIR_OK) {
		managed->deleter(managed);
		return status;
	}
	weir_tensor_release(back);
	return WEIR_OK;
}

Test(dlpack, each_allocation_may_fail)
{
	cr_expect_eq(fail_each_allocation(there_and_back, NULL), 3, "the tensor, the export, the import");
}
