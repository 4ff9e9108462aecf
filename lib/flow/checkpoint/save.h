/*
 * save.h - declarations that the calls of a checkpoint share.
 */
#ifndef WEIRI_CHECKPOINT_SAVE_H
#define WEIRI_CHECKPOINT_SAVE_H

#include <weir/flow/checkpoint.h>
#include <weir/flow/table.h>

#include "checkpoint/disk.h"

/* Checks the options, count and path of a call. `allowed` are the flags that the call accepts. */
enum weir_status weiri_checkpoint_check(const struct weir_checkpoint_options *options, uint32_t allowed,
                                        const void *array, size_t count, const char *path,
                                        struct weir_checkpoint_options *given, weir_error *error);

/* Returns WEIR_INVALID_ARGUMENT unless the variable, which may be NULL, has tensors or is a table's. */
enum weir_status weiri_checkpoint_check_kind(const weir_var *var, const char *file, weir_error *error);

static inline const char *weiri_checkpoint_name(const struct weir_checkpoint_part *part)
{
	return part->name != NULL || part->var == NULL ? part->name : weir_var_name(part->var);
}

/*
 * As weir_checkpoint_save_tensors(), but with the calls of `disk`. `tables` may be NULL; where
 * tables[i] is a view, the rows of the table take the place of a tensor.
 */
enum weir_status weiri_checkpoint_save_on(const struct weiri_disk *disk, const struct weir_checkpoint_tensor tensors[],
                                          const weir_table_view tables[], size_t count,
                                          const struct weir_checkpoint_options *options, const char *path,
                                          weir_error *error);

#endif
