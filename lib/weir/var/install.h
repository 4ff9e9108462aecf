/*
 * install.h - putting a version at the head of its variable: the only way in which variables
 * change.
 */
#ifndef WEIRI_VAR_INSTALL_H
#define WEIRI_VAR_INSTALL_H

#include "base/assert.h"
#include "reclaim/scope.h"
#include "var/commit.h"
#include "var/history.h"

/* The slow half of weiri_write_base(), which has read *head and found this stamp. */
struct weiri_version *weiri_write_base_slowly(struct weiri_scope *scope, weir_var *var, struct weiri_version **head,
                                              uint64_t stamp);

/*
 * Returns the newest committed version, which is stamped. Sets *head to the version that is at the
 * head: the returned one, or an aborted one above it. Helps undecided commits to complete.
 * Lock-free.
 */
static inline struct weiri_version *weiri_write_base(struct weiri_scope *scope, weir_var *var,
                                                     struct weiri_version **head)
{
	uint64_t stamp;

	weiri_section_read(scope->record, &var->head, head); /* [S, P1] */
	stamp = weiri_version_resolve(*head);
	if (WEIRI_LIKELY(weiri_stamp_is_committed(stamp)))
		return *head;
	return weiri_write_base_slowly(scope, var, head, stamp);
}

/*
 * Replaces `head`, which weiri_write_base() found, by `version`. Returns true on success. An
 * aborted head is then retired with the scope; `base` is not retired.
 */
static inline bool weiri_write_replace(struct weiri_scope *scope, weir_var *var, struct weiri_version *head,
                                       struct weiri_version *base, struct weiri_version *version)
{
	struct weiri_version *aborted = head != base ? head : NULL;

	if (aborted != NULL)
		/*
		 * [relaxed] Set before the version leaves the head: the CAS releases the flag to the read
		 * of the head in pin_aborted_part().
		 */
		weiri_store_relaxed(&aborted->seen_at_head, 1u);
	WEIR_ASSERT_LOOK(weiri_version_assert_fits(version, base));
	/* [S, P1 release] Linearization point of a single write, up to the order of stamps. */
	if (!weiri_cas_seq_cst(&var->head, &head, version))
		return false;
	WEIR_ASSERT_INSTANT(weiri_version_assert_first_time(version));
	if (aborted != NULL)
		weiri_scope_retire(scope, &aborted->retired); /* V5 */
	return true;
}

/* Called before publication: sets the version on which `version` is built. */
static inline void weiri_version_set_base(struct weiri_version *version, struct weiri_version *base)
{
	version->base = base;
	version->base_birth = base->retired.birth;
	version->number = base->number + 1;
	version->position = base->position + 1;
	version->older = base;
}

/* Installs as many parts as are needed for the decision, and decides. Lock-free. */
void weiri_commit_help(struct weiri_scope *scope, struct weiri_commit *commit);

/*
 * Makes a single write. Returns WEIR_OK if `version` is published and stamped; *number is then its
 * number. Returns WEIR_ABORTED if the newest version does not have the expected number. Then
 * *number is the number that was found, and `version` still belongs to the caller.
 * WEIRI_ANY_VERSION never aborts.
 */
enum weir_status weiri_install(struct weiri_record *record, weir_var *var, uint64_t expected,
                               struct weiri_version *version, uint64_t *number);
/*
 * The same without an expected number. Returns a handle on the replaced version. The handle is
 * cleared if that version had no value.
 */
weir_read weiri_install_and_hold(struct weiri_record *record, weir_var *var, struct weiri_version *version);
/* As weiri_install(), but weiri_waitable_pump() must follow if the status is WEIR_OK. */
enum weir_status weiri_install_unannounced(struct weiri_record *record, weir_var *var, uint64_t expected,
                                           struct weiri_version *version, uint64_t *number);

/* Returns WEIR_INVALID_ARGUMENT unless a variable can be created with these options. */
enum weir_status weiri_var_read_options(const struct weir_var_options *options, struct weir_var_options *given,
                                        weir_error *error);
/*
 * Admits a write when slow writes have been let pass (give_way.h) and there is memory, and sets *record to the
 * record of this thread. Returns WEIR_OK, or a failure that `error` explains.
 */
enum weir_status weiri_write_admit(weir_var *var, uint64_t deadline_ns, struct weiri_record **record,
                                   weir_error *error);
/* The same for a write that gives no way: it is combined with the slow ones, or has asked itself. */
enum weir_status weiri_write_admit_at_once(const weir_var *var, uint64_t deadline_ns, struct weiri_record **record,
                                           weir_error *error);

#endif
