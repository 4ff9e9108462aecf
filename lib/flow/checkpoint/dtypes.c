/*
 * dtypes.c - the dtypes of the safetensors format, and those of them that Weir has.
 */
#include <string.h>

#include "checkpoint/header.h"

/*
 * Dtypes with elements smaller than a byte are left out, because the offsets of the format count
 * bytes and cannot say where such a tensor ends.
 */
const struct weiri_saved_dtype weiri_saved_dtypes[] = {
	{"BOOL", 1, WEIR_BOOL},
	{"U8", 1, WEIR_U8},
	{"I8", 1, WEIR_I8},
	{"I16", 2, WEIR_I16},
	{"I32", 4, WEIR_I32},
	{"I64", 8, WEIR_I64},
	{"F16", 2, WEIR_F16},
	{"F32", 4, WEIR_F32},
	{"F64", 8, WEIR_F64},
	{"U16", 2, WEIR_U16},
	{"U32", 4, WEIR_U32},
	{"U64", 8, WEIR_U64},
	{"BF16", 2, WEIR_BF16},
	{"C64", 8, (enum weir_dtype)0},
	{"F8_E4M3", 1, (enum weir_dtype)0},
	{"F8_E5M2", 1, (enum weir_dtype)0},
	{"F8_E8M0", 1, (enum weir_dtype)0},
};
enum { DTYPES = sizeof(weiri_saved_dtypes) / sizeof(weiri_saved_dtypes[0]) };

const struct weiri_saved_dtype *weiri_saved_dtype_named(const char *name)
{
	for (size_t i = 0; i < DTYPES; i++) {
		if (strcmp(weiri_saved_dtypes[i].name, name) == 0)
			return &weiri_saved_dtypes[i];
	}
	return NULL;
}

const struct weiri_saved_dtype *weiri_saved_dtype_of(enum weir_dtype dtype)
{
	for (size_t i = 0; i < DTYPES; i++) {
		if (weiri_saved_dtypes[i].dtype == dtype)
			return &weiri_saved_dtypes[i];
	}
	return NULL;
}
