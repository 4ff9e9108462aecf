/*
 * cancel.c - cancel tokens.
 *
 * A token has a flag and a list of hooks. Firing sets the flag, then walks the hooks; registering appends, then looks at the flag:
 * one of the two runs the hook, and the hook's own state, changed once, makes it run once. Who registers runs no hook but its own:
 * those that were there before are run when fire() returns.
 *
 * Pairs
 *   P1  fire(cause) -> fired(acquire): the cause
 *   S   append(hook), flag: seq_cst. Two-variable reason: append then look, set then walk (Dekker).
 *   P2  last release -> free
 * Memory: a hook is held by the list (until it is unlinked and unseen) and by its owner (until weir_cancel_off); the second to let go frees
 * it. Each hook holds a reference of its token.
 * Progress: as in weir/cancel.h; lock-free throughout.
 */
#include <weir/cancel.h>

#include <stdalign.h>
#include <stddef.h>

#include "base/error.h"
#include "base/memory.h"
#include "sync/list.h"

enum { FIRE_OPEN, FIRE_TAKEN, FIRE_DONE };
enum { HOOK_ARMED, HOOK_RUN, HOOK_OFF };

struct weir_cancel {
	_Atomic(uint32_t) references;
	_Atomic(uint32_t) state; /* FIRE_* */
	weir_error cause;        /* written once, between TAKEN and DONE */
	struct weiri_list hooks;
	weir_allocator allocator;
};

struct weir_cancel_hook {
	struct weiri_list_node node;
	_Atomic(uint32_t) state; /* HOOK_* */
	_Atomic(uint32_t) holds; /* the list, the owner */
	weir_cancel_fn *fn;
	void *context;
	weir_cancel *token;
};

enum weir_status weir_cancel_create(const weir_allocator *allocator, weir_cancel **out)
{
	weir_allocator chosen = weiri_allocator_or_default(allocator);
	weir_cancel *token;

	if (out == NULL)
		return WEIR_INVALID_ARGUMENT;
	token = weiri_allocate_zeroed(&chosen, sizeof(*token), alignof(weir_cancel));
	if (token == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	weiri_store_relaxed(&token->references, 1u); /* [relaxed] not shared yet */
	token->allocator = chosen;
	*out = token;
	return WEIR_OK;
}

weir_cancel *weir_cancel_retain(weir_cancel *token)
{
	if (token != NULL)
		weiri_fetch_add_relaxed(&token->references, 1u); /* [relaxed] the caller has one already */
	return token;
}

void weir_cancel_release(weir_cancel *token)
{
	/* [P2 acq_rel] the last one sees all that the others did. */
	if (token != NULL && weiri_fetch_sub_acq_rel(&token->references, 1u) == 1) {
		weir_allocator allocator = token->allocator;

		weiri_release(&allocator, token, sizeof(*token), alignof(weir_cancel));
	}
}

static void let_go(weir_cancel_hook *hook)
{
	/* [P2 acq_rel] as for the token. */
	if (weiri_fetch_sub_acq_rel(&hook->holds, 1u) == 1) {
		weir_cancel *token = hook->token;

		weiri_release(&token->allocator, hook, sizeof(*hook), alignof(weir_cancel_hook));
		weir_cancel_release(token);
	}
}

static void list_let_go(struct weiri_retired *retired)
{
	let_go(WEIRI_CONTAINER_OF(WEIRI_CONTAINER_OF(retired, struct weiri_list_node, retired), weir_cancel_hook, node));
}

/* 1 when this thread is the one that runs, or takes off, the hook. */
static int claim(weir_cancel_hook *hook, uint32_t outcome)
{
	uint32_t armed = HOOK_ARMED;

	/* [acq_rel] exactly one outcome. */
	return weiri_cas_acq_rel(&hook->state, &armed, outcome);
}

static void take_off_list(struct weiri_record *record, weir_cancel_hook *hook)
{
	struct weiri_scope scope = weiri_scope_enter(record);

	(void)weiri_list_remove(&scope, &hook->token->hooks, &hook->node);
	weiri_scope_leave(&scope);
}

/* The next hook that is still armed, claimed for running and held; NULL when none is left. */
static weir_cancel_hook *claim_next(struct weiri_record *record, weir_cancel *token)
{
	struct weiri_scope scope = weiri_scope_enter(record);
	struct weiri_list_node *node = NULL;
	weir_cancel_hook *found = NULL;

	while (found == NULL && (node = weiri_list_next(&scope, &token->hooks, node)) != NULL) {
		weir_cancel_hook *hook = WEIRI_CONTAINER_OF(node, weir_cancel_hook, node);

		if (!claim(hook, HOOK_RUN))
			continue;
		weiri_fetch_add_relaxed(&hook->holds, 1u); /* [relaxed] the list holds it while we are in this scope */
		(void)weiri_list_remove(&scope, &token->hooks, &hook->node);
		found = hook;
	}
	weiri_scope_leave(&scope);
	return found;
}

static void run_hooks(weir_cancel *token)
{
	struct weiri_record *record = weiri_record_get();
	weir_cancel_hook *hook;

	/* No record: then no memory, and whoever registered a hook had one. It looks at the flag before it waits, and at its deadline. */
	while (record != NULL && (hook = claim_next(record, token)) != NULL) {
		hook->fn(hook->context);
		let_go(hook);
	}
}

/* By whoever registers it, and so has a hold on it. */
static void run_if_armed(struct weiri_record *record, weir_cancel_hook *hook)
{
	if (!claim(hook, HOOK_RUN))
		return;
	weiri_fetch_add_relaxed(&hook->holds, 1u); /* [relaxed] fn may take the hook off */
	take_off_list(record, hook);
	hook->fn(hook->context);
	let_go(hook);
}

int weir_cancel_fire(weir_cancel *token, const weir_error *cause)
{
	uint32_t open = FIRE_OPEN;

	if (token == NULL || !weiri_cas_acq_rel(&token->state, &open, FIRE_TAKEN))
		return 0;
	if (cause != NULL && cause->code != WEIR_OK)
		token->cause = *cause;
	else
		(void)weiri_fail(&token->cause, WEIR_CANCELLED, "cancelled");
	/* [S, P1 release] */
	weiri_store_seq_cst(&token->state, (uint32_t)FIRE_DONE);
	run_hooks(token);
	return 1;
}

int weir_cancel_fired(const weir_cancel *token)
{
	/* [S, P1 acquire] */
	return token != NULL && weiri_load_seq_cst(&token->state) == FIRE_DONE;
}

enum weir_status weir_cancel_cause(const weir_cancel *token, weir_error *error)
{
	if (!weir_cancel_fired(token))
		return WEIR_OK;
	if (error != NULL)
		*error = token->cause;
	return token->cause.code;
}

enum weir_status weir_cancel_on(weir_cancel *token, weir_cancel_fn *fn, void *context, weir_cancel_hook **out)
{
	struct weiri_record *record;
	struct weiri_scope scope;
	weir_cancel_hook *hook;

	if (token == NULL || fn == NULL || out == NULL)
		return WEIR_INVALID_ARGUMENT;
	record = weiri_record_get();
	hook = record != NULL ? weiri_allocate_zeroed(&token->allocator, sizeof(*hook), alignof(weir_cancel_hook)) : NULL;
	if (hook == NULL)
		return WEIR_RESOURCE_EXHAUSTED;
	weiri_list_node_init(&hook->node, list_let_go);
	weiri_store_relaxed(&hook->holds, 2u); /* [relaxed] not shared yet */
	hook->fn = fn;
	hook->context = context;
	hook->token = weir_cancel_retain(token);
	scope = weiri_scope_enter(record);
	weiri_list_append(&scope, &token->hooks, &hook->node); /* [S] */
	weiri_scope_leave(&scope);
	*out = hook;
	if (weir_cancel_fired(token)) /* [S] fired, perhaps before we were on the list */
		run_if_armed(record, hook);
	return WEIR_OK;
}

int weir_cancel_off(weir_cancel_hook *hook)
{
	struct weiri_record *record;
	int never_runs;

	if (hook == NULL)
		return 1;
	record = weiri_record_get();
	never_runs = claim(hook, HOOK_OFF);
	if (never_runs && record != NULL)
		take_off_list(record, hook);
	let_go(hook);
	return never_runs;
}
