/*
 * check_reclaim.c - sections and hazard slots while writers retire and collect: nothing is freed
 * while it is read.
 *
 * This is the smallest structure that needs reclamation: one pointer to an object that is replaced.
 * An object that is freed too early shows as a use of freed memory, or as a race with its free. An
 * object that is never freed shows as a leak. Here a thread that waits for memory checks again only
 * if it is woken. A lost wake-up therefore shows as "all threads sleep".
 */
#include <setjmp.h>
#include <stdint.h>
#include <weir/reclaim.h>
#include <weir/time.h>

#include "model/scope.h"
#include "model/threads.h"
#include "reclaim/admit.h"
#include "reclaim/collect.h"
#include "reclaim/magazine.h"
#include "reclaim/settle.h"

/*
 * The size that an object counts for reclamation. LARGE must be collected immediately, with a
 * budget of LITTLE; SMALL is too small to matter.
 */
enum { LARGE = 64 << 10, SMALL = 64, LITTLE = 1 };
enum { THREADS = 3 };

struct object {
	struct weiri_retired retired;
	int data;
	volatile int *freed; /* NULL, or set when it is freed */
};

static struct scene {
	_Atomic(struct object *) head;
	_Atomic(struct weiri_slot *) passed_on;
	_Atomic(uint32_t) retired; /* 1 when `unread` is retired */
	struct object *unread;     /* no thread reads it */
	/* 1 when it is freed; volatile, so that the compiler does not read it too early */
	volatile int freed;
	uint64_t outer;               /* of the section of setup() */
	struct weiri_slot *held;      /* held by a slot of setup() */
	struct weiri_record *sitting; /* the record of the section `outer` */
	struct weiri_record *left;    /* of a thread that ended without releasing it */
	/* Of two threads that wait, and one that does not fence. */
	_Atomic(int) waits[2], freed_some;
	int was_served[2], saw_freed[2], saw_waits[2];
	struct weiri_slot *claimed; /* by a signal handler */
} scene;

static jmp_buf out_of_a_collection;

static void reclaim(struct weiri_retired *retired)
{
	struct object *object = (struct object *)retired;

	if (object->freed != NULL)
		*object->freed = 1;
	weir_model_release(object);
}

static struct object *make(size_t bytes)
{
	struct object *object = weir_model_allocate(sizeof(*object), 64);

	object->data = 1;
	object->freed = NULL;
	weiri_retired_init(&object->retired, bytes, reclaim);
	return object;
}

static void setup(void *context)
{
	(void)context;
	weir_reclaim_set_budget(LITTLE);
	weiri_reclaim_look_again_ns = WEIR_NO_DEADLINE;
	weiri_store_relaxed(&scene.head, make(LARGE));
}

/* The first object is not worth a collection. */
static void setup_small(void *context)
{
	setup(context);
	weir_model_release(weiri_load_relaxed(&scene.head));
	weiri_store_relaxed(&scene.head, make(SMALL));
}

static void finish(void *context)
{
	(void)context;
	weiri_retire(weiri_record_get(), &weiri_exchange_seq_cst(&scene.head, NULL)->retired);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

/* -- writers ----------------------------------------------------------------------------------- */

/* Retires a large object, and therefore collects what this thread retired. */
static void replace(void)
{
	weiri_retire(weiri_record_get(), &weiri_exchange_seq_cst(&scene.head, make(LARGE))->retired);
}

static void replace_twice(void)
{
	replace();
	replace();
}

/* Each object is younger than a section that began before, and is freed immediately. */
static void replace_in_a_new_era_twice(void)
{
	weiri_era_begin();
	replace_twice();
}

/* Collects what other threads retired, too. */
static void replace_and_flush(void)
{
	replace();
	(void)weir_reclaim_flush(0);
}

/*
 * Performs only the beginning of a collection, because a whole one by a third thread would make the
 * scope too large.
 */
static void begin_era(void)
{
	weiri_era_begin();
}

/* -- readers ----------------------------------------------------------------------------------- */

static void look_at_head(struct weiri_record *record)
{
	struct object *object;

	weiri_section_read(record, &scene.head, &object);
	weir_model_assert(object->data == 1);
}

static void read_in_section(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);

	look_at_head(record);
	weiri_section_leave(record, outer);
}

/* As a read section begins (var/read_section.c), whose rare case is a call of its own. */
static uint64_t enter_in_two_steps(struct weiri_record *record)
{
	uint64_t outer, era = weiri_section_reserve(record, &outer);

	if (era != 0)
		weiri_announce(record, era);
	return outer;
}

/* The object that was read first still exists after a second one was read. */
static void read_twice_in_section(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = enter_in_two_steps(record);
	struct object *first;

	weiri_section_read(record, &scene.head, &first);
	look_at_head(record);
	weir_model_assert(first->data == 1);
	weiri_section_leave(record, outer);
}

/* The object that the outer section has read still exists after an inner section has ended. */
static void read_in_nested_section(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record), inner;
	struct object *first;

	weiri_section_read(record, &scene.head, &first);
	inner = weiri_section_enter(record);
	look_at_head(record);
	weiri_section_leave(record, inner);
	weir_model_assert(first->data == 1);
	weiri_section_leave(record, outer);
}

static void read_in_two_sections(void)
{
	read_in_section();
	read_in_section();
}

static struct weiri_slot *claim_head(struct weiri_record *record)
{
	struct object *object = weiri_load_seq_cst(&scene.head);
	struct weiri_slot *slot = weiri_slot_find(record);

	weiri_slot_claim(slot, object);
	if (weiri_load_seq_cst(&scene.head) == object &&
	    (weiri_slot_counts(record) || weiri_load_seq_cst(&scene.head) == object)) {
		weir_model_assert(object->data == 1);
		return slot;
	}
	weiri_slot_clear(slot);
	return NULL;
}

static void read_by_slot(void)
{
	struct weiri_slot *slot = claim_head(weiri_record_get());

	if (slot != NULL)
		weiri_slot_clear(slot);
}

/* The second read may find the era announced, and then runs no fence. */
static void read_by_slot_twice(void)
{
	read_by_slot();
	read_by_slot();
}

/*
 * The slot is claimed in an era that is announced already, so without a fence. The section may then
 * announce the next era. Whoever sees this announcement must see the slot.
 */
static void read_by_slot_around_a_section(void)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_slot *slot;

	read_by_slot();
	slot = claim_head(record);
	weiri_section_leave(record, weiri_section_enter(record));
	if (slot == NULL)
		return;
	weir_model_assert(((struct object *)weiri_load_relaxed(&slot->object))->data == 1);
	weiri_slot_clear(slot);
}

/* Another thread may clear the slot, and this thread may then claim the same slot again. */
static void pass_slot_on_and_read(void)
{
	struct weiri_slot *slot = claim_head(weiri_record_get());

	weiri_store_release(&scene.passed_on, slot);
	read_by_slot();
}

static void clear_passed_on(void)
{
	struct weiri_slot *slot = weiri_load_acquire(&scene.passed_on);

	if (slot == NULL)
		return;
	weir_model_assert(((struct object *)weiri_load_relaxed(&slot->object))->data == 1);
	weiri_store_relaxed(&scene.passed_on, NULL);
	weiri_slot_clear(slot);
}

static void finish_passed_on(void *context)
{
	clear_passed_on(); /* The thread that should do it may have come too early. */
	finish(context);
}

/* -- a signal handler -------------------------------------------------------------------------- */

/*
 * Membarriers have had their turns, so announcements go on counting. (Time stands still here.) A record that is not used
 * any more has an announcement for which the setup runs one.
 */
static void setup_unsettled(void *context)
{
	struct weiri_record *mine = weiri_record_get(), *other = weiri_record_register();

	setup_small(context);
	weiri_section_leave(other, weiri_section_enter(other));
	weiri_record_mine = mine;
	weiri_settle_pause_ns = 1;
	(void)weiri_era_begin();
	weiri_settle_mine(mine, weiri_era_begin());
}

/* In a section of its own the handler reserves the era in which the object was born, and claims a slot. */
static void replace_and_claim(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);
	struct object *object;

	(void)weiri_era_begin();
	replace(); /* an object too small to be worth a collection */
	weiri_section_read(record, &scene.head, &object);
	scene.claimed = weiri_slot_find(record);
	weiri_slot_claim(scene.claimed, object);
	weiri_section_leave(record, outer);
}

/* The interrupted thread reserves fewer eras again. Who sees that must see the slot. */
static void enter_where_a_handler_claims(void)
{
	struct weiri_record *record = weiri_record_get();

	read_in_section();
	weir_model_interrupt(replace_and_claim);
	weiri_section_leave(record, weiri_section_enter(record));
	weir_model_interrupt(NULL);
	if (scene.claimed == NULL)
		return;
	weir_model_assert(((struct object *)weiri_load_relaxed(&scene.claimed->object))->data == 1);
	weiri_slot_clear(scene.claimed);
}

/* -- a crowd: more separate sections than a scan has room for ---------------------------------- */

/*
 * The setup enters a section that began before all other sections and pins no object that they
 * read.
 */
static void setup_crowd(void *context)
{
	scene.outer = weiri_section_enter(weiri_record_get());
	weiri_era_begin();
	weiri_era_begin();
	setup(context);
}

static void finish_crowd(void *context)
{
	weiri_section_leave(weiri_record_get(), scene.outer);
	finish(context);
}

/* A section that ends while the thread holds a slot. */
static void read_in_section_and_hold(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);
	struct weiri_slot *slot = weiri_slot_find(record);
	struct object *object;

	weiri_section_read(record, &scene.head, &object);
	weiri_slot_claim(slot, object);
	weiri_section_leave(record, outer);
	weir_model_assert(object->data == 1);
	weiri_slot_clear(slot);
}

/* The second section may find the era announced, and then runs no fence. */
static void read_in_sections_and_hold(void)
{
	read_in_section();
	read_in_section_and_hold();
}

/* -- flush ------------------------------------------------------------------------------------- */

static void setup_unread(void *context)
{
	setup(context);
	scene.unread = make(SMALL);
	scene.unread->freed = &scene.freed;
}

/*
 * Retires `unread`, signals that it is retired, and then collects it together with another object.
 */
static void retire_unread_and_collect(void)
{
	weiri_retire(weiri_record_get(), &scene.unread->retired);
	weiri_store_release(&scene.retired, 1u);
	replace();
}

/*
 * WEIR_OK means that everything that was retired before is freed, including what another thread was
 * about to free.
 */
static void flush_means_freed(void)
{
	if (weiri_load_acquire(&scene.retired) != 0 && weir_reclaim_flush(0) == WEIR_OK)
		weir_model_assert(scene.freed);
}

/* The retired object is held during the whole execution. */
static void setup_held(void *context)
{
	struct weiri_record *record = weiri_record_get();

	setup_small(context);
	scene.held = weiri_slot_find(record);
	weiri_slot_claim(scene.held, weiri_load_relaxed(&scene.head));
	weiri_retire(record, &weiri_exchange_seq_cst(&scene.head, make(SMALL))->retired);
}

/* Takes the object and puts it back. */
static void collect_in_vain(void)
{
	weiri_collect_everybodys(weiri_record_get(), NULL, NULL);
}

/*
 * The flush must also fail if a collector has the object in hand only while the flush reads the
 * stacks.
 */
static void flush_in_vain(void)
{
	weir_model_assert(weir_reclaim_flush(0) == WEIR_DEADLINE_EXCEEDED);
}

static void finish_held(void *context)
{
	weiri_slot_clear(scene.held);
	finish(context);
}

/* -- one look at the readers for everything that a collection takes ---------------------------- */

static void setup_portions(void *context)
{
	setup_small(context);
	weir_reclaim_set_budget(0); /* nothing is collected unless requested */
}

/*
 * The thread's own objects are one portion of the collection. The objects that other threads
 * retired come after it.
 */
static void retire_a_portion_and_collect(void)
{
	struct weiri_record *record = weiri_record_get();

	for (int i = 0; i < 2; i++)
		weiri_retire(record, &make(LARGE)->retired);
	weiri_collect_everybodys(record, NULL, NULL);
}

/*
 * Retires an object that its slot holds. A collection that has looked at the readers before may
 * take the object now, and must not free it.
 */
static void claim_replace_and_look(void)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_slot *slot = claim_head(record);
	struct object *object;

	if (slot == NULL)
		return;
	object = weiri_load_relaxed(&slot->object);
	weiri_retire(record, &weiri_exchange_seq_cst(&scene.head, make(SMALL))->retired);
	weir_model_assert(object->data == 1);
	weiri_slot_clear(slot);
}

/* -- what a section holds is put aside until it ends ------------------------------------------- */

/* Pins immediately, as if each object had survived a collection before. */
static void collect_and_pin(void)
{
	struct weiri_record *record = weiri_record_get();

	record->own->last_era = UINT64_MAX;
	weiri_collect_everybodys(record, NULL, NULL);
}

static void enter_outer(void)
{
	scene.outer = weiri_section_enter(scene.sitting);
}

static void end_outer(void)
{
	weiri_section_leave(scene.sitting, scene.outer);
}

/* The section began before the object was created, and has read nothing yet. */
static void setup_older_section(void *context)
{
	scene.sitting = weiri_record_get();
	enter_outer();
	weiri_era_begin();
	setup(context);
}

static void read_in_outer(void)
{
	look_at_head(scene.sitting);
	end_outer();
}

/* A section holds what was retired in it. */
static void setup_pinned(void *context)
{
	setup_unread(context);
	weir_reclaim_set_budget(0);
	scene.sitting = weiri_record_get();
	enter_outer();
	weiri_retire(scene.sitting, &scene.unread->retired);
	weiri_era_begin();
}

/*
 * The section holds two objects. One is already on the stack of pinned objects, and the other must
 * go onto the same stack.
 */
static void setup_pinned_before(void *context)
{
	setup_pinned(context);
	collect_and_pin();
	scene.sitting->stack = 0;
	weiri_retire(scene.sitting, &weiri_exchange_seq_cst(&scene.head, make(SMALL))->retired);
	weiri_era_begin();
}

/* The section has ended, and the object that it held is still on the stack of pinned objects. */
static void setup_left_pinned(void *context)
{
	setup_pinned(context);
	collect_and_pin();
	end_outer();
	weiri_store_relaxed(&scene.retired, 1u);
}

/* The section ends, and another one begins, which holds another object; that is pinned. */
static void begin_next_section_and_pin(void)
{
	end_outer();
	enter_outer();
	weiri_retire(weiri_record_get(), &weiri_exchange_seq_cst(&scene.head, make(SMALL))->retired);
	collect_and_pin();
}

static void end_outer_and_collect(void)
{
	end_outer();
	collect_and_pin();
}

/* A collection can find everything that is left. */
static void finish_pinned(void *context)
{
	end_outer();
	finish(context);
	weir_model_assert(scene.freed);
}

/* The same while the next section continues. */
static void finish_next_section(void *context)
{
	weir_model_assert(weir_reclaim_flush(0) == WEIR_DEADLINE_EXCEEDED);
	weir_model_assert(scene.freed);
	finish_pinned(context);
}

/* -- waiting for memory ------------------------------------------------------------------------ */

static void wait_for_memory(void)
{
	weir_model_assert(weiri_reclaim_admit(weiri_record_get(), WEIR_NO_DEADLINE) == WEIR_OK);
}

static void replace_and_wait(void)
{
	replace();
	wait_for_memory();
}

/* An object is retired and held, and half of the budget is kept: so the object exceeds what is left. */
static void setup_kept(void *context)
{
	setup_held(context);
	finish_held(context);
	weir_reclaim_set_budget(LARGE);
	weir_model_assert(weiri_budget_keep(WEIRI_KEPT_SPARES, LARGE / 2, LARGE));
	weiri_store_relaxed(&scene.head, make(LARGE));
	weiri_slot_claim(scene.held, weiri_load_relaxed(&scene.head));
	replace();
}

static void give_what_is_kept(void)
{
	weiri_budget_give(WEIRI_KEPT_SPARES, LARGE / 2);
}

static void raise_the_budget(void)
{
	weir_reclaim_set_budget(LARGE + LARGE / 2);
}

static void finish_raised(void *context)
{
	give_what_is_kept();
	finish_held(context);
}

/* -- a membarrier that threads share ----------------------------------------------------------- */

static void settle_as(int number)
{
	weiri_store_relaxed(&scene.waits[number], 1);
	scene.was_served[number] = weiri_settle_to_wait(weiri_era_begin());
	scene.saw_freed[number] = weiri_load_relaxed(&scene.freed_some);
}

static void settle_first(void)
{
	settle_as(0);
}

static void settle_second(void)
{
	settle_as(1);
}

static void look_without_a_fence(void)
{
	weiri_store_relaxed(&scene.freed_some, 1);
	weiri_fence_light();
	for (int i = 0; i < 2; i++)
		scene.saw_waits[i] = weiri_load_relaxed(&scene.waits[i]);
}

static void setup_nothing(void *context)
{
	(void)context;
}

/* Whoever ran the membarrier: of each pair, one has seen the other. One of the two is served. */
static void finish_shared(void *context)
{
	(void)context;
	for (int i = 0; i < 2; i++)
		weir_model_assert(!scene.was_served[i] || scene.saw_freed[i] || scene.saw_waits[i]);
	weir_model_assert(scene.was_served[0] || scene.was_served[1]);
}

/* -- records ----------------------------------------------------------------------------------- */

/* Creates a record, or adopts the record of an ended thread, and uses it. */
static void retire_one(void)
{
	weiri_retire(weiri_record_get(), &make(SMALL)->retired);
}

/* -- threads that end in the middle ------------------------------------------------------------ */

/* The destructor releases the record and ends the section. */
static void end_in_a_section(void)
{
	struct weiri_record *record = weiri_record_get();

	(void)weiri_section_enter(record);
	look_at_head(record);
}

/*
 * If a thread finds no free record and there are LEAST records, it checks the owners of all
 * records. The setup makes one record less.
 */
static void setup_records(void *context)
{
	enum { LEAST = 5 }; /* see record.c */
	struct weiri_record *mine = weiri_record_get();

	setup_portions(context);
	for (int records = 1; records < LEAST - 1; records++)
		(void)weiri_record_register();
	weiri_record_mine = mine;
}

/* The setup makes exactly LEAST records. */
static void setup_many_records(void *context)
{
	struct weiri_record *mine = weiri_record_get();

	setup_records(context);
	(void)weiri_record_register();
	weiri_record_mine = mine;
}

/* As in the child of a fork: there are vacant records whose magazines were left behind. */
static void setup_left_behind(void *context)
{
	struct weiri_record *mine = weiri_record_get();

	setup(context);
	for (size_t i = 0; i < 2; i++) {
		struct weiri_record *left = weiri_record_register();

		weiri_store_relaxed(&left->magazine_grant, (uint32_t)WEIRI_MAGAZINE_UNIT);
		weiri_store_relaxed(&left->owner, UINT64_C(1) << 32);
	}
	weiri_magazines_after_fork();
	weiri_record_mine = mine;
}

/* Owns each of these records for a moment. */
static void end_what_was_left_behind(void)
{
	(void)weiri_record_get();
	weiri_record_clear_vacant();
}

/* Nobody else ends the section, or makes the record vacant. */
static void keep_record(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);

	weir_model_assert(weiri_record_thread(record) != 0 && weiri_load_relaxed(&record->lo) != 0);
	weiri_section_leave(record, outer);
}

static void finish_left_behind(void *context)
{
	finish(context);
	for (struct weiri_record *record = weiri_record_first(); record != NULL; record = record->next)
		weir_model_assert(weiri_record_thread(record) != 0 || weiri_load_relaxed(&record->magazine_grant) == 0);
}

static void reclaim_and_vanish(struct weiri_retired *retired)
{
	reclaim(retired);
	weiri_model_vanish();
}

static void reclaim_and_jump(struct weiri_retired *retired)
{
	reclaim(retired);
	longjmp(out_of_a_collection, 1);
}

/*
 * Collects two objects, `unread` and another one. `last` reclaims the other one and ends the thread
 * at that point, when the collection has already taken `unread`.
 */
static void collect_until(void (*last)(struct weiri_retired *retired))
{
	struct object *object = make(SMALL);

	scene.unread = make(SMALL);
	scene.unread->freed = &scene.freed;
	scene.left = weiri_record_get();
	object->retired.reclaim = last;
	weiri_retire(scene.left, &scene.unread->retired);
	weiri_retire(scene.left, &object->retired);
	weiri_collect_everybodys(scene.left, NULL, NULL);
}

static void end_in_a_collection(void)
{
	collect_until(reclaim_and_vanish);
}

static void collect_until_a_jump(void)
{
	if (setjmp(out_of_a_collection) == 0)
		collect_until(reclaim_and_jump);
}

/* A thread has ended in a collection, before the scope begins. */
static void setup_ended_in_a_collection(void *context)
{
	struct weiri_record *mine = weiri_record_get();

	setup_records(context);
	(void)weiri_record_register();
	collect_until_a_jump();
	weiri_record_mine->owner = (uint64_t)1 << 32 | WEIRI_MODEL_NO_THREAD;
	weiri_record_mine = mine;
	weiri_store_relaxed(&scene.retired, 1u);
}

/* What it held exceeds the budget, and cannot be freed while it holds that. */
static void setup_ended_over_the_budget(void *context)
{
	setup_ended_in_a_collection(context);
	weir_reclaim_set_budget(LITTLE);
}

static void end_for_good_in_a_section(void)
{
	scene.left = weiri_record_get();
	end_in_a_section();
	weiri_model_vanish();
}

static int is_in_the_middle(const struct weiri_record *record)
{
	return weiri_is_collecting(record) || weiri_load_relaxed(&record->lo) != 0;
}

/*
 * Registers threads until one of them has checked the owners. Then no retired object is lost, and
 * the record of the ended thread holds nothing any longer.
 */
static void finish_left(void *context)
{
	enum { ENOUGH = 16 };
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};
	struct weiri_record *mine = weiri_record_get();

	for (int i = 0; i < ENOUGH && is_in_the_middle(scene.left); i++)
		(void)weiri_record_register();
	weir_model_assert(!is_in_the_middle(scene.left));
	weiri_record_mine = mine;
	finish(context);
	weir_model_assert(weir_reclaim_get_stats(&stats) == WEIR_OK && stats.retired_bytes == 0);
}

static void finish_left_in_a_collection(void *context)
{
	finish_left(context);
	weir_model_assert(scene.freed);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct scope {
	const char *name;
	void (*threads[THREADS])(void);
	void (*setup)(void *);
	void (*finish)(void *);
	int waits; /* a thread may be left asleep when another is stopped */
} scopes[] = {
	{"section_beside_1_writer_x1", {replace, read_in_section}, setup, finish, 0},
	{"section_read_twice_beside_1_writer_x1", {replace, read_twice_in_section}, setup, finish, 0},
	{"section_in_a_section_beside_1_writer_x1", {replace, read_in_nested_section}, setup, finish, 0},
	{"sections_x2_beside_1_writer_x1", {replace, read_in_two_sections}, setup, finish, 0},
	{"section_beside_1_writer_x2", {replace_twice, read_in_section}, setup, finish, 0},
	{"section_read_twice_beside_1_writer_x2", {replace_twice, read_twice_in_section}, setup, finish, 0},
	{"section_beside_2_writers_x1", {replace, replace_and_flush, read_in_section}, setup, finish, 0},
	{"section_beside_1_writer_x2_in_a_new_era", {replace_in_a_new_era_twice, read_in_section}, setup_small, finish, 0},
	{"section_beside_1_writer_x1_and_a_new_era", {replace, read_in_section, begin_era}, setup, finish, 0},
	{"section_of_an_older_era_beside_1_writer_x1", {replace, read_in_outer}, setup_older_section, finish, 0},
	{"section_in_a_crowd_beside_1_writer_x1", {replace, read_in_section}, setup_crowd, finish_crowd, 0},
	{"section_and_slot_in_a_crowd_beside_1_writer_x1",
     {replace, read_in_section_and_hold},
     setup_crowd,
     finish_crowd,
     0},
	{"hazard_slot_beside_1_writer_x1", {replace, read_by_slot}, setup, finish, 0},
	{"hazard_slot_beside_1_writer_x2", {replace_twice, read_by_slot}, setup, finish, 0},
	{"hazard_slots_of_2_readers_beside_1_writer_x1", {replace, read_by_slot, read_by_slot}, setup, finish, 0},
	{"hazard_slot_passed_on_beside_1_writer_x1",
     {replace, pass_slot_on_and_read, clear_passed_on},
     setup,
     finish_passed_on,
     0},
	{"sections_and_slot_x2_beside_1_writer_x1", {replace, read_in_sections_and_hold}, setup, finish, 0},
	{"sections_x2_beside_1_writer_that_settles", {replace_and_flush, read_in_two_sections}, setup, finish, 0},
	{"sections_and_slot_x2_beside_1_writer_that_settles",
     {replace_and_flush, read_in_sections_and_hold},
     setup,
     finish,
     0},
	{"sections_x2_beside_1_writer_and_1_that_settles",
     {replace, read_in_two_sections, collect_in_vain},
     setup,
     finish,
     0},
	{"sections_x2_in_a_crowd_beside_1_writer_x1", {replace, read_in_two_sections}, setup_crowd, finish_crowd, 0},
	{"hazard_slot_x2_beside_1_writer_x1", {replace, read_by_slot_twice}, setup, finish, 0},
	{"hazard_slot_x2_beside_1_writer_that_settles", {replace_and_flush, read_by_slot_twice}, setup, finish, 0},
	{"hazard_slot_around_a_section_beside_1_writer_x1", {replace, read_by_slot_around_a_section}, setup, finish, 0},
	{"section_where_a_handler_claims_a_slot_beside_1_writer_x1",
     {replace, enter_where_a_handler_claims},
     setup_unsettled,
     finish,
     0},
	{"flush_beside_1_collector", {retire_unread_and_collect, flush_means_freed}, setup_unread, finish, 0},
	{"flush_beside_a_collection_in_vain", {collect_in_vain, flush_in_vain}, setup_held, finish_held, 0},
	{"slot_and_retire_beside_a_collection_of_2_portions",
     {claim_replace_and_look, retire_a_portion_and_collect},
     setup_portions,
     finish,
     0},
	{"flush_beside_1_collector_of_what_was_pinned", {collect_and_pin, flush_means_freed}, setup_left_pinned, finish, 0},
	{"pinned_beside_the_end_of_the_section", {collect_and_pin, end_outer}, setup_pinned, finish_pinned, 0},
	{"pinned_beside_1_that_ends_the_section_and_collects",
     {collect_and_pin, end_outer_and_collect},
     setup_pinned,
     finish_pinned,
     0},
	{"pinned_after_another_beside_1_that_ends_the_section_and_collects",
     {collect_and_pin, end_outer_and_collect},
     setup_pinned_before,
     finish_pinned,
     0},
	{"pinned_beside_the_next_section_and_what_it_pins",
     {collect_and_pin, begin_next_section_and_pin},
     setup_pinned,
     finish_next_section,
     0},
	{"pinned_by_2_beside_1_that_ends_the_section_and_collects",
     {collect_and_pin, end_outer_and_collect, collect_and_pin},
     setup_pinned,
     finish_pinned,
     0},
	{"over_the_budget_until_a_slot_is_cleared", {replace_and_wait, read_by_slot}, setup, finish, 1},
	{"over_the_budget_until_another_has_collected", {replace, wait_for_memory}, setup, finish, 1},
	{"over_the_budget_until_kept_memory_is_given", {give_what_is_kept, wait_for_memory}, setup_kept, finish_held, 1},
	{"over_the_budget_until_it_is_raised", {raise_the_budget, wait_for_memory}, setup_kept, finish_raised, 1},
	{"over_the_budget_until_an_abandoned_collection_is_ended",
     {retire_one, wait_for_memory},
     setup_ended_over_the_budget,
     finish_left_in_a_collection,
     1},
	{"membarrier_shared_by_2_that_wait",
     {settle_first, settle_second, look_without_a_fence},
     setup_nothing,
     finish_shared,
     1},
	{"records_of_3_threads", {retire_one, retire_one, retire_one}, setup, finish, 0},
	{"records_of_2_threads_that_ask_after_owners", {retire_one, retire_one}, setup_many_records, finish, 0},
	{"section_in_a_record_beside_1_that_ends_what_was_left_behind",
     {end_what_was_left_behind, keep_record},
     setup_left_behind,
     finish_left_behind,
     0},
	{"section_of_a_thread_that_ends_beside_1_writer_x1", {replace, end_in_a_section}, setup, finish, 0},
	{"section_of_a_thread_that_is_gone_beside_1_that_asks_and_writes",
     {replace_and_flush, end_for_good_in_a_section},
     setup_records,
     finish_left,
     0},
	{"collection_of_a_thread_that_is_gone_beside_1_that_asks",
     {end_in_a_collection, retire_one},
     setup_records,
     finish_left_in_a_collection,
     0},
	{"flush_beside_1_that_ends_an_abandoned_collection",
     {retire_one, flush_means_freed},
     setup_ended_in_a_collection,
     finish_left_in_a_collection,
     0},
};

/* Enough for what complete.tsv lists. */
static uint64_t most_executions(const struct scope *scope)
{
	if (scope->threads[0] == replace_twice || scope->setup == setup_ended_in_a_collection)
		return 40000;
	return scope->setup == setup_crowd ? 35000 : 30000;
}

static struct scope_plan prepare(size_t index)
{
	const struct scope *scope = &scopes[index];

	scene = (struct scene){.head = NULL};
	return (struct scope_plan){.program = {scope->name, scope_functions(scope->threads, THREADS), &scene, sizeof(scene),
	                                       scope->setup, scope_function, scope->finish},
	                           .executions = most_executions(scope),
	                           .long_executions = 10000000,
	                           .stopped = scope->waits ? 0 : 30,
	                           .long_stopped = 1000};
}

int main(int argc, char **argv)
{
	const size_t count = sizeof(scopes) / sizeof(scopes[0]);
	int bad;

	scope_arguments(argc, argv);
	bad = scope_all(prepare, count);
	scope_symmetric(1);
	return bad | scope_all(prepare, count);
}
