/*
 * check_members.c - members of a coordinator: a read of names does not tear, only one thread reuses
 * a member that left, and ended threads are joined once.
 */
#include <stdio.h>
#include <string.h>
#include <weir/alloc.h>

#include "model/scope.h"
#include "model/threads.h"
#include "run/members.h"

/* Longer than a word, so that a read can tear. */
static const char *const names[] = {"aaaaaaaaaaa", "bbbbbbbbbbb", "ccccccccccc"};

static struct scene {
	struct weiri_members members;
	weir_coordinator_member *first;
	size_t inside; /* members at the start */
	int joined[2];
} scene;

static weir_coordinator_member *enter(size_t name)
{
	weir_coordinator_member *member = weiri_members_claim(&scene.members, names[name]);

	weir_model_assert(member != NULL);
	member->loops = (int)name; /* races if the previous user still uses the member */
	weiri_member_enter(member);
	return member;
}

static void setup(void *context)
{
	(void)context;
	weiri_members_init(&scene.members, weir_default_allocator());
	if (scene.inside != 0)
		scene.first = enter(0);
}

static void look(const char *const *allowed, size_t count)
{
	char text[64];
	size_t found = weiri_members_list_names(&scene.members, text, sizeof(text));

	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, allowed[i]) == 0) {
			weir_model_assert(found == (size_t)(text[0] != '\0') + (strchr(text, ',') != NULL));
			return;
		}
	}
	weir_model_fail("a list of names with a name that no member had, or with a name twice");
}

/* Thread 0 leaves, and enters under another name; thread 1 reads the names. */
static void rename_beside_look(void *context, size_t who)
{
	static const char *const allowed[] = {"", "aaaaaaaaaaa", "bbbbbbbbbbb"};

	(void)context;
	if (who == 0) {
		weiri_member_leave(scene.first);
		scene.first = enter(1);
	} else {
		look(allowed, 3);
	}
}

static void leave_first(void *context)
{
	(void)context;
	weiri_member_leave(scene.first);
	weiri_members_fini(&scene.members);
}

static void enter_and_leave(void *context, size_t who)
{
	static const char *const allowed[] = {"", "aaaaaaaaaaa", "bbbbbbbbbbb", "aaaaaaaaaaa, bbbbbbbbbbb",
	                                      "bbbbbbbbbbb, aaaaaaaaaaa"};

	(void)context;
	if (who < 2)
		weiri_member_leave(enter(who));
	else
		look(allowed, 5);
}

/* One member is free, and two threads claim it at the same time. */
static void setup_free(void *context)
{
	setup(context);
	weiri_member_leave(enter(2));
}

static void fini(void *context)
{
	(void)context;
	weiri_members_fini(&scene.members);
}

static void *run(void *member)
{
	weiri_member_end(member);
	return NULL;
}

/* Thread 0 starts thread 2, while thread 1 joins ended threads. */
static void start_beside_join(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		scene.first = weiri_members_claim(&scene.members, names[0]);
		weir_model_assert(scene.first != NULL && weiri_member_start(scene.first, run));
		weiri_members_join_ended(&scene.members);
	} else if (who == 1) {
		weiri_members_join_ended(&scene.members);
	} else {
		weiri_model_lend(0);
	}
}

static void join_and_fini(void *context)
{
	weir_coordinator_member *again;

	weiri_members_join_ended(&scene.members);
	again = weiri_members_claim(&scene.members, names[1]);
	weir_model_assert(again == scene.first); /* it was joined, and is free */
	weiri_member_enter(again);
	weiri_member_leave(again);
	weir_model_assert(weiri_members_list_names(&scene.members, (char[8]){0}, 8) == 0);
	fini(context);
}

/* The system refuses to create a thread. */
static void setup_none_lent(void *context)
{
	setup(context);
	weiri_model_lend_at_most(0);
}

static void start_fails(void *context, size_t who)
{
	(void)context;
	if (who == 0) {
		scene.first = weiri_members_claim(&scene.members, names[0]);
		weir_model_assert(scene.first != NULL && !weiri_member_start(scene.first, run));
	} else {
		weiri_members_join_ended(&scene.members);
	}
}

static int check(struct weir_model_program program, size_t inside)
{
	scene = (struct scene){.inside = inside};
	return scope_as_far_as(&program, scope_long() ? 0 : 50000);
}

static int check_progress(const char *name, void (*prepare)(void *), size_t threads)
{
	struct weir_model_program program = {name, threads, &scene, sizeof(scene), prepare, enter_and_leave, fini};

	scene = (struct scene){.inside = 0};
	return scope_stops(&program, scope_long() ? 0 : 500, NULL, NULL);
}

int main(int argc, char **argv)
{
	const size_t size = sizeof(scene);
	int bad = 0;

	scope_arguments(argc, argv);
	bad |= check((struct weir_model_program){"members_leave_and_enter_beside_names", 2, &scene, size, setup,
	                                         rename_beside_look, leave_first},
	             1);
	bad |= check((struct weir_model_program){"members_2_enter_and_leave_none_free", 2, &scene, size, setup,
	                                         enter_and_leave, fini},
	             0);
	bad |= check((struct weir_model_program){"members_2_enter_and_leave_1_free", 2, &scene, size, setup_free,
	                                         enter_and_leave, fini},
	             0);
	bad |= check((struct weir_model_program){"members_2_enter_and_leave_beside_names", 3, &scene, size, setup,
	                                         enter_and_leave, fini},
	             0);
	bad |= check((struct weir_model_program){"members_start_and_join_beside_join", 3, &scene, size, setup,
	                                         start_beside_join, join_and_fini},
	             0);
	bad |= check((struct weir_model_program){"members_start_without_thread_beside_join", 2, &scene, size,
	                                         setup_none_lent, start_fails, join_and_fini},
	             0);
	bad |= check_progress("members_2_enter_and_leave_1_free_beside_names", setup_free, 3);
	return bad;
}
