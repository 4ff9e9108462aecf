/*
 * install.c - replacing heads. The essays of version.h and commit.c say why this is right.
 */
#include "var/install.h"

#include <weir/reclaim.h>

#include "base/error.h"
#include "base/probe.h"
#include "reclaim/admit.h"
#include "reclaim/interrupt.h"
#include "var/give_way.h"
#include "var/hold.h"

struct weiri_version *weiri_write_base_slowly(struct weiri_scope *scope, weir_var *var, struct weiri_version **head,
                                              uint64_t stamp)
{
	while (!weiri_stamp_is_committed(stamp)) {
		if (stamp == WEIRI_STAMP_ABORTED)
			return (*head)->base;
		WEIRI_PROBE2(commit_help, var, (*head)->commit);
		weiri_commit_help(scope, (*head)->commit);
		weiri_section_read(scope->record, &var->head, head); /* [S, P1] */
		stamp = weiri_version_resolve(*head);
	}
	return *head;
}

/*
 * Installs `version` at the head and stamps it. Returns its base, or NULL if the newest version was
 * not `expected`; *number is then the number that was found.
 */
static inline struct weiri_version *install(struct weiri_scope *scope, weir_var *var, uint64_t expected,
                                            struct weiri_version *version, uint64_t *number)
{
	struct weiri_version *base, *head;

	do {
		base = weiri_write_base(scope, var, &head);
		*number = base->number;
		if (expected != WEIRI_ANY_VERSION && base->number != expected)
			return NULL;
		weiri_version_set_base(version, base);
	} while (!weiri_write_replace(scope, var, head, base, version));
	*number = version->number;
	(void)weiri_version_resolve(version);
	weiri_history_retire(scope, var, version, base); /* V5: after the stamp */
	return base;
}

static inline enum weir_status install_in_scope(struct weiri_record *record, weir_var *var, uint64_t expected,
                                                struct weiri_version *version, uint64_t *number)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_version *base = install(&scope, var, expected, version, number);

	weiri_scope_leave(&scope);
	return base != NULL ? WEIR_OK : WEIR_ABORTED;
}

enum weir_status weiri_install_unannounced(struct weiri_record *record, weir_var *var, uint64_t expected,
                                           struct weiri_version *version, uint64_t *number)
{
	return install_in_scope(record, var, expected, version, number);
}

enum weir_status weiri_install(struct weiri_record *record, weir_var *var, uint64_t expected,
                               struct weiri_version *version, uint64_t *number)
{
	enum weir_status status = install_in_scope(record, var, expected, version, number);

	if (status == WEIR_OK)
		weiri_waitable_pump(record, &var->waitable);
	return status;
}

weir_read weiri_install_and_hold(struct weiri_record *record, weir_var *var, struct weiri_version *version)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	weir_read replaced = {.hold = NULL};
	uint64_t number;
	struct weiri_version *base = install(&scope, var, WEIRI_ANY_VERSION, version, &number);

	if (base->value != NULL)
		weiri_hold(record, base, &replaced);
	weiri_scope_leave(&scope);
	weiri_waitable_pump(record, &var->waitable);
	return replaced;
}

enum weir_status weiri_write_admit_at_once(const weir_var *var, uint64_t deadline_ns, struct weiri_record **record,
                                           weir_error *error)
{
	enum weir_status status;

	*record = weiri_record_get();
	if (*record == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "variable \"%s\": no memory for this thread's record",
		                  var->name);
	status = weiri_reclaim_admit(*record, deadline_ns);
	if (status == WEIR_CANCELLED)
		return weiri_fail(error, status, "variable \"%s\": the wait for memory was cancelled: %s", var->name,
		                  weiri_interrupt_cause.message);
	if (status != WEIR_OK)
		return weiri_fail(
			error, WEIR_RESOURCE_EXHAUSTED,
			"variable \"%s\": retired versions that readers still hold exceed the budget of %llu bytes%s; "
			"weir_stalls_visit() names these readers",
			var->name, (unsigned long long)weir_reclaim_budget(),
			weiri_load_relaxed(&(*record)->read_sections) != 0 /* [relaxed] own field */
				? "; this thread has a read section open, so the write did not wait"
				: "");
	return WEIR_OK;
}

enum weir_status weiri_write_admit(weir_var *var, uint64_t deadline_ns, struct weiri_record **record, weir_error *error)
{
	weiri_give_way(var, deadline_ns);
	return weiri_write_admit_at_once(var, deadline_ns, record, error);
}
