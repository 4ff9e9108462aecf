/*
 * history.c - see history.h.
 */
#include "var/history.h"

#include "var/hold.h"

/* The caller's section protects both versions. */
static WEIRI_UNSEEN void assert_is_oldest(const weir_var *var, const struct weiri_version *oldest,
                                          const struct weiri_version *base)
{
	WEIR_ASSERT2(H1, oldest->number + var->history == base->number);
}

void weiri_history_retire_oldest(struct weiri_scope *scope, const weir_var *var, struct weiri_version *base)
{
	struct weiri_version *oldest = base;

	for (size_t i = 0; i < var->history && oldest != NULL; i++)
		oldest = oldest->older;
	if (oldest != NULL) {
		WEIR_ASSERT_LOOK(assert_is_oldest(var, oldest, base));
		weiri_scope_retire(scope, &oldest->retired); /* H1 */
	}
}

void weiri_history_end(struct weiri_record *record, const weir_var *var, struct weiri_version *newest)
{
	struct weiri_version *version = newest;

	/*
	 * Versions behind the history were retired when newer ones were committed, and may have been
	 * freed.
	 */
	for (uint32_t i = 0; version != NULL; i++) {
		struct weiri_version *older = i < var->history ? version->older : NULL;

		weiri_retire(record, &version->retired);
		version = older;
	}
}

/*
 * Called in a section. `number` is not above that of `newest`. Returns the version with this
 * number, or NULL if the history does not have it.
 */
static struct weiri_version *find(const weir_var *var, struct weiri_version *newest, uint64_t number)
{
	struct weiri_version *version = newest;

	if (newest->number - number > var->history)
		return NULL;
	while (version != NULL && version->number > number)
		version = version->older;
	return version;
}

enum weir_status weir_var_read_version(weir_var *var, uint64_t number, weir_read *read)
{
	struct weiri_record *record;
	struct weiri_version *newest, *version;
	enum weir_status status = WEIR_OK;
	uint64_t outer;

	if (var == NULL || read == NULL)
		return WEIR_INVALID_ARGUMENT;
	record = weiri_record_get();
	if (record == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	outer = weiri_section_enter(record);
	newest = weiri_newest(record, var);
	version = number <= newest->number ? find(var, newest, number) : NULL;
	if (number > newest->number)
		status = WEIR_OUT_OF_RANGE;
	else if (version == NULL || version->value == NULL)
		status = WEIR_NOT_FOUND;
	else
		weiri_hold(record, version, read); /* H2 */
	weiri_section_leave(record, outer);
	return status;
}
