/*
 * value.c - copying the bytes of an inline variable out.
 *
 * The copy is made inside a section, which protects the version (section.h): no slot, and nothing
 * to release. A thread that stalls in the copy pins what lived then, as in any section.
 * Progress: wait-free: enter 8, the head 3 + 4r, resolving 6 (read.c), leave 1.
 * Linearization: that of a read in a section (read.c).
 */
#include <string.h>

#include "base/error.h"
#include "var/hold.h"
#include "var/kind.h"

static WEIRI_COLD enum weir_status fail_size(const weir_var *var, size_t size, weir_error *error)
{
	char has[WEIRI_KIND_TEXT_SIZE];

	if (var->kind != WEIR_VAR_INLINE)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "variable \"%s\" has %s: weir_var_read_into() needs inline values", var->name,
		                  weiri_kind_text(var, has));
	return weiri_fail(error, WEIR_INVALID_ARGUMENT, "variable \"%s\" has %s, and %zu are to be read", var->name,
	                  weiri_kind_text(var, has), size);
}

enum weir_status weir_var_read_into(weir_var *var, void *to, size_t size, uint64_t *number, weir_error *error)
{
	struct weiri_record *record = weiri_record_get();
	const struct weiri_version *newest;
	uint64_t outer, found;

	if (WEIRI_UNLIKELY(var == NULL || to == NULL))
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "read: %s is NULL", var == NULL ? "variable" : "to");
	if (WEIRI_UNLIKELY(var->kind != WEIR_VAR_INLINE || size != var->size))
		return fail_size(var, size, error);
	if (WEIRI_UNLIKELY(record == NULL))
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for this thread's record",
		                  var->name);
	outer = weiri_section_enter(record);
	newest = weiri_newest(record, var);
	found = newest->number;
	if (WEIRI_LIKELY(newest->shown != NULL))
		memcpy(to, newest->shown, size);
	weiri_section_leave(record, outer);
	if (WEIRI_UNLIKELY(found == 0))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "variable \"%s\" is not initialized", var->name);
	if (number != NULL)
		*number = found;
	return WEIR_OK;
}
