/*
 * members.h - the list of the threads that are registered with a coordinator, and their names.
 *
 * A member stays in the list from its push until fini. A free member is reused, so the list is as
 * long as the largest number of members at one time.
 *
 * | state       | meaning                                      | next                            |
 * |-------------|----------------------------------------------|---------------------------------|
 * | FREE        | free to be claimed                           | BUSY (claimed)                  |
 * | BUSY        | one thread sets it up or takes it apart      | FOREIGN, STARTING, FREE         |
 * | FOREIGN     | registers a thread not started here          | FREE (leave)                    |
 * | STARTING    | the thread may run, its id is not written    | RUNNING, ENDED_EARLY, FREE      |
 * | RUNNING     | the thread runs, its id is written           | ENDED                           |
 * | ENDED_EARLY | the thread has ended, its id is not written  | ENDED                           |
 * | ENDED       | the thread has ended and must be joined      | BUSY (joined), then FREE        |
 *
 * STARTING -> FREE: pthread_create() failed.
 *
 * | call                     | threads           | progress              | blocks on           |
 * |--------------------------|-------------------|-----------------------|---------------------|
 * | claim                    | any               | lock-free + allocator | allocator           |
 * | join_ended               | any               | blocking              | exit of ended threads |
 * | list_names               | any               | lock-free             | nothing             |
 * | all others               | the member's own  | wait-free             | nothing             |
 */
#ifndef WEIRI_MEMBERS_H
#define WEIRI_MEMBERS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/coordinator.h>

#include "base/atomic.h"

#if defined(WEIRI_UNDER_MODEL) /* stress/model: two words can tear as well as six */
enum { WEIRI_MEMBER_NAME_WORDS = 2 };
#else
enum { WEIRI_MEMBER_NAME_WORDS = 6 };
#endif
enum { WEIRI_MEMBER_NAME_SIZE = 8 * WEIRI_MEMBER_NAME_WORDS };

struct weir_coordinator_member {
	_Atomic(uint32_t) state;                         /* the state as above; the higher bits count claims */
	_Atomic(uint64_t) name[WEIRI_MEMBER_NAME_WORDS]; /* written while BUSY */
	struct weir_coordinator_member *next;            /* constant once in the list */
	weir_coordinator *coordinator;                   /* this and the next four are constant after BUSY */
	weir_coordinator_fn *fn;
	void *context;
	uint64_t interval_ns;
	bool loops;
	pthread_t thread; /* only the starter uses it until RUNNING or ENDED */
};

struct weiri_members {
	_Atomic(weir_coordinator_member *) first;
	const weir_allocator *allocator; /* constant */
};

void weiri_members_init(struct weiri_members *members, const weir_allocator *allocator);
/* All members must be FREE. */
void weiri_members_fini(struct weiri_members *members);

/* Returns a BUSY member with this name, or NULL if there is no memory. */
weir_coordinator_member *weiri_members_claim(struct weiri_members *members, const char *name);
/* BUSY -> FOREIGN. */
void weiri_member_enter(weir_coordinator_member *member);
/* FOREIGN -> FREE. */
void weiri_member_leave(weir_coordinator_member *member);
/*
 * Starts main(member) on a new thread: BUSY -> RUNNING or later. Returns false if the system gives
 * no thread: BUSY -> FREE.
 */
bool weiri_member_start(weir_coordinator_member *member, void *(*main)(void *member));
/*
 * A started thread calls it as its last action but one: RUNNING -> ENDED, or STARTING ->
 * ENDED_EARLY.
 */
void weiri_member_end(weir_coordinator_member *member);
/* Copies the name. Only the thread of the member may call it. */
void weiri_member_name(const weir_coordinator_member *member, char name[WEIRI_MEMBER_NAME_SIZE]);

/* Joins the threads of all members that are ENDED, and makes these members FREE. */
void weiri_members_join_ended(struct weiri_members *members);
/*
 * Writes the names of all members that have not ended, as "a, b, c", cut to size. Returns how many
 * such members there are.
 */
size_t weiri_members_list_names(const struct weiri_members *members, char *text, size_t size);

#endif
