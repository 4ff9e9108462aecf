/*
 * visit.c - a run or a step in a life, and the recovery when a life is lost.
 *
 * A visit enters the gate, calls its function, and leaves. If the function failed and that recovers,
 * the visit replaces the life, unless another thread has done so, and begins again. A thread that
 * finds the gate closed goes the same way: it waits in `changes` for the thread that replaces the
 * life, or takes its place.
 */
#include <string.h>
#include <weir/time.h>

#include "base/assert.h"
#include "base/compiler.h"
#include "base/error.h"
#include "graph/op.h"
#include "monitored/monitored.h"

/* -- what the thread is in --------------------------------------------------------------------- */

enum weiri_inside_monitored weiri_monitored_inside(const weir_monitored *monitored)
{
	struct weiri_mark *mark = weiri_mark_find(WEIRI_MARK_MONITORED, monitored);

	return mark != NULL ? WEIRI_CONTAINER_OF(mark, struct weiri_monitored_mark, mark)->where : WEIRI_OUTSIDE;
}

void weiri_monitored_mark(struct weiri_monitored_mark *mark, const weir_monitored *monitored,
                          enum weiri_inside_monitored where)
{
	mark->where = where;
	weiri_mark_enter(&mark->mark, WEIRI_MARK_MONITORED, monitored);
}

void weiri_monitored_unmark(const struct weiri_monitored_mark *mark)
{
	weiri_mark_leave(&mark->mark);
}

/* -- replacing the life ------------------------------------------------------------------------ */

struct change {
	weir_monitored *monitored;
	uint64_t number; /* of the life that is lost; 0: the gate was closed */
	weir_error cause;
};

/* In `changes`. */
static enum weir_status replace(void *context, weir_error *error)
{
	const struct change *change = context;
	weir_monitored *monitored = change->monitored;
	struct weiri_life *life = &monitored->life;

	if (weiri_latch_is_set(&monitored->closed))
		return WEIR_OK; /* the visit finds that it is closed */
	if (life->open && life->number != change->number)
		return WEIR_OK; /* another thread has begun the next life */
	if (life->open) {
		weiri_latch_set(&life->replaced);
		(void)weir_coordinator_request_stop(life->coordinator, &change->cause);
		(void)weir_session_close(life->session, &change->cause);
		weiri_life_drain(monitored);
	}
	return weiri_life_begin(monitored, error);
}

/* One call of weir_monitored_run() or _step(). */
struct visit {
	weir_monitored *monitored;
	uint64_t deadline_ns;
	weir_cancel *cancel;
	uint64_t recovered; /* how often */
	weir_error last;    /* why this visit failed last, or a life could not begin */
};

/*
 * Replaces life `number`, which visit->last has ended. Returns WEIR_OK if the visit is to begin again;
 * it may then find that the gate is closed still.
 */
static enum weir_status recover(struct visit *visit, uint64_t number, weir_error *error)
{
	weir_monitored *monitored = visit->monitored;
	struct change change = {monitored, number, visit->last};
	weir_error why = {WEIR_OK, ""};
	enum weir_status status;

	if (visit->last.code != WEIR_OK && monitored->settings.recover_limit != 0 &&
	    visit->recovered >= monitored->settings.recover_limit) {
		if (error != NULL)
			*error = visit->last;
		return visit->last.code;
	}
	visit->recovered += visit->last.code != WEIR_OK;
	if (visit->deadline_ns != WEIR_NO_DEADLINE && weir_now_ns() >= visit->deadline_ns)
		return weiri_fail(error, WEIR_DEADLINE_EXCEEDED,
		                  "monitored session \"%s\": the deadline passed in a recovery%s%s", monitored->settings.name,
		                  visit->last.code != WEIR_OK ? " from: " : "", visit->last.message);
	status =
		weir_critical_section_execute(monitored->changes, replace, &change, visit->deadline_ns, visit->cancel, &why);
	if (status == WEIR_OK) {
		visit->last.code = WEIR_OK; /* a failure counts once */
		return WEIR_OK;
	}
	if (weiri_settings_recover(&monitored->settings, status)) {
		visit->last = why;
		return WEIR_OK;
	}
	if (error != NULL)
		*error = why;
	return status;
}

/* -- the visit --------------------------------------------------------------------------------- */

static enum weir_status refuse(const weir_monitored *monitored, const char *why, weir_error *error)
{
	return weiri_fail(error, WEIR_FAILED_PRECONDITION, "monitored session \"%s\": %s", monitored->settings.name, why);
}

/* Returns true if the coordinator of the life has stopped so that the life is to be replaced. Inside the gate. */
static bool is_lost(weir_monitored *monitored, weir_error *cause)
{
	weir_error reported = {WEIR_OK, ""};

	if (!weiri_settings_recover(&monitored->settings, weir_coordinator_status(monitored->life.coordinator, &reported)))
		return false;
	*cause = reported;
	return true;
}

bool weiri_belongs_to_life(const weir_monitored *monitored)
{
	return weiri_inside_kernel() || weiri_mark_find(WEIRI_MARK_GROUP, monitored) != NULL;
}

/* Returns true if a visit that failed is to be repeated in the next life. Inside the gate. */
static bool must_repeat(weir_monitored *monitored, weir_error *failure)
{
	if (weiri_belongs_to_life(monitored))
		return false;
	if (weiri_latch_is_set(&monitored->life.replaced) || is_lost(monitored, failure))
		return true;
	return weiri_settings_recover(&monitored->settings, failure->code) &&
	       !weir_coordinator_should_stop(monitored->life.coordinator);
}

/* Enters the gate of a life that is not lost. On failure the caller is outside. */
static enum weir_status enter(struct visit *visit, weir_error *error)
{
	weir_monitored *monitored = visit->monitored;
	enum weir_status status = WEIR_OK;

	while (status == WEIR_OK) {
		uint64_t number = 0;

		if (weiri_latch_is_set(&monitored->closed))
			return refuse(monitored, "is closed", error);
		if (weiri_latch_is_set(&monitored->stop))
			return refuse(monitored, "a stop was requested", error);
		if (weiri_gate_enter(&monitored->life.gate)) {
			if (weiri_belongs_to_life(monitored) || !is_lost(monitored, &visit->last))
				return WEIR_OK;
			number = monitored->life.number;
			weiri_gate_leave(&monitored->life.gate);
		} else if (weiri_belongs_to_life(monitored)) {
			return weiri_fail(
				error, WEIR_CANCELLED, "monitored session \"%s\": a recovery is under way, and %s cannot wait for it",
				monitored->settings.name, weiri_inside_kernel() ? "a kernel" : "a thread of its coordinator");
		}
		status = recover(visit, number, error);
	}
	return status;
}

static enum weir_status visit_within(weir_monitored *monitored, weiri_visit_fn *fn, void *context, weir_error *failure)
{
	struct weiri_monitored_mark mark;
	enum weir_status status;

	failure->message[0] = '\0';
	weiri_monitored_mark(&mark, monitored, WEIRI_IN_STEP);
	status = fn(monitored, context, failure);
	weiri_monitored_unmark(&mark);
	weiri_error_end(failure);
	failure->code = status;
	return status;
}

enum weir_status weiri_visit(weir_monitored *monitored, weiri_visit_fn *fn, void *context, uint64_t deadline_ns,
                             weir_cancel *cancel, weir_error *error)
{
	struct visit visit = {.monitored = monitored, .deadline_ns = deadline_ns, .cancel = cancel};

	for (;;) {
		enum weir_status status = enter(&visit, error);
		uint64_t number;
		bool repeat;

		if (status != WEIR_OK)
			return status;
		WEIR_ASSERT1(M2, monitored->life.open);
		number = monitored->life.number;
		status = visit_within(monitored, fn, context, &visit.last);
		repeat = status != WEIR_OK && must_repeat(monitored, &visit.last);
		weiri_gate_leave(&monitored->life.gate);
		if (!repeat) {
			if (status != WEIR_OK && error != NULL)
				*error = visit.last;
			return status;
		}
		status = recover(&visit, number, error);
		if (status != WEIR_OK)
			return status;
	}
}
