/*
 * peek.c - the newest version of a variable, inside a section of the program's own.
 *
 * The section is one of a flavour that is attached. So U1 of reclaim/host.h protects what a section
 * of Weir would protect, and the read is that of var/hold.h, without a record and without an era to
 * reserve: the host reserves all.
 *
 * Linearization: the load of the head; if the version there was undecided, the read of its cell.
 * Progress: wait-free.
 * Checked: stress/model/check_urcu.c, tests/test_urcu.c.
 */
#include <weir/urcu.h>

#include "base/compiler.h"
#include "var/version.h"

const weir_read *weir_urcu_peek(weir_var *var)
{
	const struct weiri_version *newest;
	struct weiri_version *head;

	if (WEIRI_UNLIKELY(var == NULL))
		return NULL;
	head = weiri_load_seq_cst(&var->head); /* [S, P1] of version.h */
	/* The base of an undecided or aborted version counts instead; it is committed (V2). */
	newest = WEIRI_LIKELY(weiri_stamp_is_committed(weiri_version_resolve(head))) ? head : head->base;
	return WEIRI_LIKELY(newest->shown != NULL) ? &newest->read : NULL;
}
