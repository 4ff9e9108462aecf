/*
 * check_inbox.c - the pool's inbox: each task is taken once, and the taker sees what was written
 * before the put. This holds even if rings are full, if two threads create the next ring at the
 * same time, and if tasks are on the chain. Here the inbox has two rings, for 1 and 4 tasks.
 */
#include <stdio.h>
#include <weir/alloc.h>

#include "model/scope.h"
#include "run/inbox.h"

enum { ROOM = 5, MOST = 9 };

struct job {
	weir_task task;
	int data;
	int had;
};

static struct scene {
	struct weiri_inbox inbox;
	struct job jobs[MOST];
	size_t inside; /* number of tasks that are inside at the start */
	/* how many of these the setup took out of the rings again; the others are on the chain */
	size_t rings;
	size_t putters, takes;
} scene;

static void put(size_t number)
{
	scene.jobs[number].data = 7;
	weiri_inbox_put(&scene.inbox, &scene.jobs[number].task);
}

static int take(unsigned turn)
{
	bool moved = false;
	struct job *job = (struct job *)weiri_inbox_take(&scene.inbox, turn, &moved);

	if (job == NULL)
		return 0;
	weir_model_assert(job->data == 7);
	job->had++; /* races if two threads have it */
	return 1;
}

static void setup(void *context)
{
	(void)context;
	weir_model_assert(weiri_inbox_init(&scene.inbox, weir_default_allocator()));
	for (size_t i = 0; i < scene.inside; i++)
		put(i);
	for (size_t i = 0; i < scene.rings; i++)
		weir_model_assert(take(0));
}

/* The first threads put a task each; the other threads take. */
static void thread(void *context, size_t who)
{
	(void)context;
	if (who < scene.putters) {
		put(scene.inside + who);
	} else {
		for (size_t i = 0; i < scene.takes; i++)
			(void)take((unsigned)(who + i));
	}
}

static void each_once(void *context)
{
	(void)context;
	while (take(0))
		;
	for (size_t i = 0; i < MOST; i++)
		weir_model_assert(scene.jobs[i].had == (i < scene.inside + scene.putters));
	weiri_inbox_fini(&scene.inbox);
}

static struct weir_model_program scope(const char *name, size_t inside, size_t putters, size_t takers, size_t takes)
{
	scene = (struct scene){.inside = inside, .rings = inside > ROOM ? ROOM : 0, .putters = putters, .takes = takes};
	return (struct weir_model_program){name, putters + takers, &scene, sizeof(scene), setup, thread, each_once};
}

static int check(const char *name, size_t inside, size_t putters, size_t takers, size_t takes)
{
	struct weir_model_program program = scope(name, inside, putters, takers, takes);

	return scope_as_far_as(&program, scope_long() ? 0 : 20000);
}

static int check_progress(const char *name, size_t inside, size_t putters, size_t takers)
{
	struct weir_model_program program = scope(name, inside, putters, takers, 1);

	return scope_stops(&program, scope_long() ? 0 : 200, NULL, NULL);
}

int main(int argc, char **argv)
{
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check("inbox_1_put_1_take", 0, 1, 1, 1);
	bad |= check("inbox_2_puts_into_a_new_ring", 1, 2, 0, 0);
	bad |= check("inbox_1_put_into_a_new_ring_1_take_x2", 1, 1, 1, 2);
	bad |= check("inbox_2_puts_into_a_new_ring_1_take_x2", 1, 2, 1, 2);
	bad |= check("inbox_full_2_puts", ROOM, 2, 0, 0);
	bad |= check("inbox_full_2_puts_1_take_x2", ROOM, 2, 1, 2);
	bad |= check("inbox_full_1_put_1_take_x6", ROOM, 1, 1, 6);
	bad |= check("inbox_chain_of_2_2_takes_x2", ROOM + 2, 0, 2, 2);
	bad |= check("inbox_chain_of_2_1_put_1_take_x2", ROOM + 2, 1, 1, 2);
	bad |= check("inbox_chain_of_3_1_put_2_takes", ROOM + 3, 1, 2, 1);
	bad |= check_progress("inbox_2_puts_into_a_new_ring_1_take", 1, 2, 1);
	bad |= check_progress("inbox_chain_of_2_1_put_2_takes", ROOM + 2, 1, 2);
	return bad;
}
