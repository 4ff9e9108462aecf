/*
 * check_reclaim.c - sections and hazard slots beside a writer that retires and collects: nothing is freed while it is read.
 *
 * The smallest structure that needs reclamation: one pointer to an object that is replaced. An object that is freed too early
 * shows as a use of freed memory or as a race with its free; one that is never freed as a leak.
 */
#include <stdint.h>
#include <weir/reclaim.h>

#include "model/scope.h"
#include "reclaim/collect.h"

struct object {
	struct weiri_retired retired;
	int data;
};

static struct scene {
	_Atomic(struct object *) head;
	size_t rounds;   /* of each writer */
	size_t writers;  /* the first threads */
	int reads_twice; /* in one section */
} scene;

static void reclaim(struct weiri_retired *retired)
{
	weir_model_release(retired);
}

static struct object *make(int data)
{
	struct object *object = weir_model_allocate(sizeof(*object), 64);

	object->data = data;
	weiri_retired_init(&object->retired, sizeof(*object), reclaim);
	return object;
}

static void setup(void *context)
{
	(void)context;
	weiri_store_relaxed(&scene.head, make(1));
}

static void finish(void *context)
{
	(void)context;
	weiri_retire(weiri_record_get(), &weiri_exchange_seq_cst(&scene.head, NULL)->retired);
	weir_model_assert(weir_reclaim_flush(0) == WEIR_OK);
}

static void replace(void)
{
	for (size_t i = 0; i < scene.rounds; i++) {
		struct object *old = weiri_exchange_seq_cst(&scene.head, make((int)i + 2));

		weiri_retire(weiri_record_get(), &old->retired);
		(void)weir_reclaim_flush(0);
	}
}

static void read_in_section(void)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer = weiri_section_enter(record);
	struct object *first, *second;

	weiri_section_read(record, &scene.head, &first);
	weir_model_assert(first->data >= 1);
	if (scene.reads_twice) {
		weiri_section_read(record, &scene.head, &second);
		weir_model_assert(second->data >= 1 && first->data >= 1);
	}
	weiri_section_leave(record, outer);
}

static void read_by_slot(void)
{
	struct weiri_record *record = weiri_record_get();
	struct object *object = weiri_load_seq_cst(&scene.head);
	struct weiri_slot *slot = weiri_slot_find(record);

	weiri_slot_claim(slot, object);
	if (weiri_load_seq_cst(&scene.head) == object)
		weir_model_assert(object->data >= 1);
	weiri_slot_clear(slot);
}

static void sections(void *context, size_t who)
{
	(void)context;
	if (who < scene.writers)
		replace();
	else
		read_in_section();
}

static void slots(void *context, size_t who)
{
	(void)context;
	if (who < scene.writers)
		replace();
	else
		read_by_slot();
}

static int check(const char *name, void (*thread)(void *, size_t), size_t threads, size_t writers, size_t rounds,
                 int twice)
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), setup, thread, finish};

	scene = (struct scene){.rounds = rounds, .writers = writers, .reads_twice = twice};
	return scope_as_far_as(&program, scope_long() ? 10000000 : 30000) |
	       scope_stops(&program, scope_long() ? 1000 : 30, NULL, NULL);
}

static int check_all(void)
{
	int bad = 0;

	bad |= check("section_beside_1_writer_x1", sections, 2, 1, 1, 0);
	bad |= check("section_read_twice_beside_1_writer_x1", sections, 2, 1, 1, 1);
	bad |= check("section_beside_1_writer_x2", sections, 2, 1, 2, 0);
	bad |= check("section_read_twice_beside_1_writer_x2", sections, 2, 1, 2, 1);
	bad |= check("section_beside_2_writers_x1", sections, 3, 2, 1, 0);
	bad |= check("hazard_slot_beside_1_writer_x1", slots, 2, 1, 1, 0);
	bad |= check("hazard_slot_beside_1_writer_x2", slots, 2, 1, 2, 0);
	bad |= check("hazard_slots_of_2_readers_beside_1_writer_x1", slots, 3, 1, 1, 0);
	return bad;
}

int main(int argc, char **argv)
{
	int bad;

	scope_arguments(argc, argv);
	bad = check_all();
	scope_symmetric(1);
	return bad | check_all();
}
