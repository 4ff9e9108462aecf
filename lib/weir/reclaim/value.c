/*
 * value.c - see value.h.
 */
#include "reclaim/value.h"

#include "reclaim/record.h"

void weiri_value_release_later(struct weiri_value *value)
{
	struct weiri_record *record = weiri_record_mine;

	/*
	 * A thread without a record has not used Weir before. So this is not a signal handler: a
	 * handler may read variables only on a thread that has a record.
	 */
	if (record == NULL)
		weiri_value_release(value);
	else if (value != NULL && weiri_value_let_go(value))
		value->kind->retire(record, value);
}
