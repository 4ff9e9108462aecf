/*
 * check_host.c - readers in sections that Weir does not see: what such a section has found is not
 * freed before the section ends, and is freed after a grace period.
 *
 * The foreign sections are those of foreign_sections.h. If a grace period has not ended, the host does not
 * advance. So no thread waits, and a thread may be stopped anywhere: one that is stopped in its section keeps
 * what it may read, and blocks no other.
 *
 * An object is written when it is freed, and freed memory may not be read, so a free that comes too
 * early shows as a race or as an access to freed memory.
 */
#include <weir/reclaim.h>
#include <weir/time.h>

#include "base/atomic.h"
#include "model/foreign_sections.h"
#include "model/scope.h"
#include "reclaim/admit.h"
#include "reclaim/host.h"

enum { THREADS = 3 };

struct object {
	struct weiri_retired retired; /* first */
	int whole;
};

enum first { ATTACHED, BEFORE_ATTACHING, OVER_THE_BUDGET };

static struct scene {
	const char *calls[THREADS];
	enum first first;
	struct weiri_record *host;
	_Atomic(uint32_t) attached;
	_Atomic(uint32_t) inside[THREADS]; /* the reader is in a foreign section */
	_Atomic(struct object *) newest;
	_Atomic(int) freed;
	int prepared; /* what the host's program wrote before it asked to be told of collections */
} scene;

static void reclaim(struct weiri_retired *retired)
{
	struct object *object = (struct object *)retired;

	object->whole = 0;
	weir_model_release(object);
	weiri_fetch_add_relaxed(&scene.freed, 1);
}

static struct object *new_object(void)
{
	struct object *object = weir_model_allocate(sizeof(*object), 64);

	weir_model_assert(object != NULL);
	weiri_retired_init(&object->retired, sizeof(*object), reclaim);
	object->whole = 1;
	return object;
}

static void attach(void)
{
	scene.host = weiri_host_open();
	weir_model_assert(scene.host != NULL);
	weiri_store_release(&scene.attached, 1u); /* the program lets its readers begin */
}

/* Its record is for the next thread that comes. */
static void detach(void)
{
	weiri_store_release(&scene.attached, 0u);
	weiri_host_close(scene.host);
}

/* Two looks, so that the second one shows whether the object of the first is still there. */
static void read_twice(size_t me)
{
	const struct object *first, *second;

	if (weiri_load_acquire(&scene.attached) == 0)
		return;
	foreign_enter(&scene.inside[me]);
	first = weiri_load_seq_cst(&scene.newest);
	weir_model_assert(first->whole == 1);
	second = weiri_load_seq_cst(&scene.newest);
	weir_model_assert(second->whole == 1 && first->whole == 1);
	foreign_leave(&scene.inside[me]);
}

static void replace(void)
{
	struct object *old = weiri_exchange_seq_cst(&scene.newest, new_object());

	weiri_retire(weiri_record_get(), &old->retired);
}

static void wait_for_readers(void)
{
	uint64_t era;

	if (weiri_load_acquire(&scene.attached) == 0)
		return;
	era = weiri_era_begin();
	if (foreign_grace_period(scene.inside, THREADS))
		weiri_host_advance(scene.host, era);
}

static void collect(void)
{
	(void)weir_reclaim_flush(0);
}

/* Woken when the host has advanced: see retire_over_the_budget(). */
static void wait_for_memory(void)
{
	weir_model_assert(weiri_reclaim_admit(weiri_record_get(), WEIR_NO_DEADLINE) == WEIR_OK);
}

static void wanted(void)
{
	weir_model_assert(scene.prepared == 1);
}

static void ask_to_be_told(void)
{
	scene.prepared = 1;
	weiri_host_set_wanted(wanted);
}

/* The record of this thread becomes vacant at its end. */
static void read_in_a_section_of_weir(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);
	const struct object *object;

	weiri_section_read(record, &scene.newest, &object);
	weir_model_assert(object->whole == 1);
	weiri_section_leave(record, outer);
}

#define LETTERS(LETTER) \
	LETTER('o', "attach the host", attach()) \
	LETTER('x', "detach the host", detach()) \
	LETTER('r', "read twice in a foreign section", read_twice(me)) \
	LETTER('w', "replace the object, and retire the old one", replace()) \
	LETTER('g', "a grace period; if it ends at once, the host advances", wait_for_readers()) \
	LETTER('f', "free what was retired", collect()) \
	LETTER('s', "read in a section of Weir", read_in_a_section_of_weir()) \
	LETTER('W', "wait for memory", wait_for_memory()) \
	LETTER('t', "ask to be told of collections", ask_to_be_told())

static void call(size_t me, char what)
{
	switch (what) {
		LETTERS(LETTER_CASE)
	default: weir_model_assert(!"a letter of the table");
	}
}

/* One object is retired and more than the budget; only the host holds it. */
static void retire_over_the_budget(void)
{
	weir_reclaim_set_budget(1);
	weiri_reclaim_look_again_ns = WEIR_NO_DEADLINE;
	replace();
	collect();
}

static void thread(void *context, size_t me)
{
	(void)context;
	scope_calls(me, scene.calls[me], call);
}

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weiri_record_get() != NULL);
	weiri_host_set_wanted(NULL);
	weiri_store_relaxed(&scene.newest, new_object());
	if (scene.first != BEFORE_ATTACHING)
		attach();
	if (scene.first == OVER_THE_BUDGET)
		retire_over_the_budget();
}

/* After one more grace period nothing is kept. */
static void finish(void *context)
{
	struct object *last = weiri_exchange_seq_cst(&scene.newest, NULL);

	(void)context;
	wait_for_readers();
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
	if (weiri_load_acquire(&scene.attached) != 0)
		weiri_host_close(scene.host);
	weir_model_release(last);
}

static const struct row {
	const char *name;
	const char *calls[THREADS];
	enum first first;
	uint64_t stopped; /* see struct scope_plan; 0: a call may wait for the stopped thread */
} rows[] = {
	{"host_read_beside_replacement_and_collection", {"r", "wgf"}, ATTACHED, 30},
	{"host_read_beside_replacement_beside_grace_period", {"r", "wf", "g"}, ATTACHED, 30},
	{"host_read_beside_grace_period_and_replacement", {"r", "gwf"}, ATTACHED, 30},
	{"host_read_beside_2_grace_periods", {"r", "wg", "gf"}, ATTACHED, 30},
	{"host_is_attached_beside_replacement_and_collection", {"or", "wf"}, BEFORE_ATTACHING, 30},
	{"host_read_of_another_thread_after_the_attachment", {"o", "r", "wf"}, BEFORE_ATTACHING, 30},
	{"host_advances_beside_1_that_waits_for_memory", {"W", "g"}, OVER_THE_BUDGET, 0},
	{"host_in_a_record_that_read_beside_replacement", {"s", "o", "wf"}, BEFORE_ATTACHING, 30},
	{"host_is_detached_beside_read_in_its_record_and_replacement", {"x", "s", "wf"}, ATTACHED, 30},
	{"host_is_told_of_a_collection", {"t", "wf"}, ATTACHED, 30},
};

static bool is_symmetric; /* membarrier is refused */

static struct scope_plan prepare(size_t index)
{
	const struct row *row = &rows[index];

	scene = (struct scene){.calls = {row->calls[0], row->calls[1], row->calls[2]}, .first = row->first};
	return (struct scope_plan){
		.program = {row->name, scope_threads(row->calls, THREADS), &scene, sizeof(scene), setup, thread, finish},
		.executions = 60000,
		.stopped = is_symmetric ? 0 : row->stopped,
		.long_stopped = 5000};
}

int main(int argc, char **argv)
{
	static const struct scope_letter letters[] = {LETTERS(LETTER_ROW){0, NULL}};
	int bad;

	scope_letters(argc, argv, letters);
	scope_arguments(argc, argv);
	bad = scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
	scope_symmetric(1);
	is_symmetric = true;
	return bad | scope_all(prepare, sizeof(rows) / sizeof(rows[0]));
}
