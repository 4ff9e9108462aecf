/*
 * install.h - putting a version at the head of its variable: the one way in which variables change.
 */
#ifndef WEIRI_VAR_INSTALL_H
#define WEIRI_VAR_INSTALL_H

#include "reclaim/scope.h"
#include "var/commit.h"
#include "var/history.h"

/*
 * The newest committed version, stamped; *head is what is at the head now: that version, or an aborted one above it. Helps undecided
 * commits to an end. Lock-free.
 */
struct weiri_version *weiri_write_base(struct weiri_scope *scope, weir_var *var, struct weiri_version **head);

/* Replaces `head`, as weiri_write_base() found it, by `version`. 1 on success. An aborted head becomes garbage; `base` does not. */
int weiri_write_replace(struct weiri_scope *scope, weir_var *var, struct weiri_version *head,
                        struct weiri_version *base, struct weiri_version *version);

/* Before publication: what `version` is built on. */
static inline void weiri_version_set_base(struct weiri_version *version, struct weiri_version *base)
{
	version->base = base;
	version->base_birth = base->retired.birth;
	version->number = base->number + 1;
	version->older = base;
}

/* Installs as many parts as needed to decide, and decides. Lock-free. */
void weiri_commit_help(struct weiri_scope *scope, struct weiri_commit *commit);

/*
 * A single write. WEIR_OK: `version` is published and stamped, its number set. WEIR_ABORTED (only with an expected number): it is
 * still the caller's, and *number is what was there.
 */
enum weir_status weiri_install(struct weiri_record *record, weir_var *var, uint64_t expected,
                               struct weiri_version *version, uint64_t *number);
/* The same whatever is there; a handle on what it replaced, cleared when that had no value. */
weir_read weiri_install_and_hold(struct weiri_record *record, weir_var *var, struct weiri_version *version);

/* WEIR_INVALID_ARGUMENT unless a variable can be made with these. */
enum weir_status weiri_var_check_options(const struct weir_var_options *options, weir_error *error);
/* WEIR_INVALID_ARGUMENT unless `value` is of the variable's dtype and fits its shape. */
enum weir_status weiri_var_check(const weir_var *var, const weir_tensor *value, weir_error *error);
/* The record of this thread and leave to retire something, or a failure that `error` explains. */
enum weir_status weiri_write_admit(const weir_var *var, uint64_t deadline_ns, struct weiri_record **record,
                                   weir_error *error);

#endif
