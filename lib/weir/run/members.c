/*
 * members.c - claiming, starting, ending and naming members.
 *
 * Source. Hazard-pointer records (Michael, TPDS 2004) are kept in such a list, which only grows and
 * whose records are reused. A name of several words that is checked against a count of claims is a
 * sequence lock (Boehm, MSPC 2012).
 *
 * Invariants
 *   I1  a member that was pushed stays in the list until fini, so a walk needs no protection
 *   I2  between two claims of a member its name does not change
 *   I3  at fini every member is free: nothing of it is used any more
 * Pairs
 *   P1  push (first) -> walk: the member and its next
 *   P2  free (state) -> claim: the previous user has finished with the member
 *   P3  start (state) -> end -> join_ended, or end -> start -> join_ended: the thread's id, which
 *       the system may write when the thread already runs
 *   P4  write_name (state after BUSY; name words) -> read_name: a name that belongs to the state
 *       that was read
 * Progress: claim walks a list that only grows. It fails a CAS only if another claim or push has
 *   succeeded.
 * Checked: tests/test_coordinator.c (plain, TSan, ASan); stress/model/check_members.c.
 */
#include "run/members.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/uncancelled.h"

enum { FREE = 0, BUSY = 1, FOREIGN = 2, STARTING = 3, RUNNING = 4, ENDED_EARLY = 5, ENDED = 6 };
enum { STATE_MASK = 7, ONE_CLAIM = 8 };

static uint32_t with_state(uint32_t word, uint32_t state)
{
	return (word & ~(uint32_t)STATE_MASK) | state;
}

/* Returns true if this call moved the member from `from` to `to`. */
static bool step(weir_coordinator_member *member, uint32_t from, uint32_t to)
{
	/*
	 * [P3 acquire] pairs with the previous step, even if this one fails: the ending thread passes
	 * on the id that its starter wrote.
	 */
	uint32_t word = weiri_load_acquire(&member->state);

	/*
	 * [P3 release, acquire when it fails] likewise. The count of claims grows with each step from
	 * FREE, so there is no ABA.
	 */
	return (word & STATE_MASK) == from && weiri_cas_release_or_acquire(&member->state, &word, with_state(word, to));
}

/* Only for the one thread that may move the member out of its state. */
static void set_state(weir_coordinator_member *member, uint32_t state)
{
	/*
	 * [relaxed] no other thread changes the state now. [P2 P3 P4 release] pairs with step(),
	 * claim_free() and read_name().
	 */
	weiri_store_release(&member->state, with_state(weiri_load_relaxed(&member->state), state));
}

/* The caller has claimed the member, and no other thread changes its state now. */
static WEIRI_UNSEEN void assert_claimed(const weir_coordinator_member *member)
{
	WEIR_ASSERT2(I2, (weiri_peek(&member->state) & STATE_MASK) == BUSY);
}

static WEIRI_UNSEEN void assert_listed(const struct weiri_members *members, const weir_coordinator_member *member)
{
	const weir_coordinator_member *other = weiri_peek(&members->first);

	while (other != NULL && other != member)
		other = other->next;
	WEIR_ASSERT3(I1, other == member);
}

static void write_name(weir_coordinator_member *member, const char *name)
{
	uint64_t words[WEIRI_MEMBER_NAME_WORDS] = {0};

	WEIR_ASSERT_LOOK(assert_claimed(member));
	(void)snprintf((char *)words, sizeof(words), "%s", name);
	for (int i = 0; i < WEIRI_MEMBER_NAME_WORDS; i++)
		/*
		 * [P4 release] pairs with read_name(): a reader of a word of this name sees the claim
		 * before it.
		 */
		weiri_store_release(&member->name[i], words[i]);
}

void weiri_member_name(const weir_coordinator_member *member, char name[WEIRI_MEMBER_NAME_SIZE])
{
	uint64_t words[WEIRI_MEMBER_NAME_WORDS];

	for (int i = 0; i < WEIRI_MEMBER_NAME_WORDS; i++)
		/* [P4 acquire] pairs with write_name(). */
		words[i] = weiri_load_acquire(&member->name[i]);
	memcpy(name, words, sizeof(words));
}

void weiri_members_init(struct weiri_members *members, const weir_allocator *allocator)
{
	members->allocator = allocator;
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&members->first, NULL);
}

void weiri_members_fini(struct weiri_members *members)
{
	/* [relaxed] the only thread: the threads that pushed have left since. */
	weir_coordinator_member *member = weiri_load_relaxed(&members->first);

	while (member != NULL) {
		weir_coordinator_member *next = member->next;

		/* [relaxed] the only thread. */
		WEIR_ASSERT1(I3, (weiri_load_relaxed(&member->state) & STATE_MASK) == FREE);
		weiri_release(members->allocator, member, sizeof(*member), _Alignof(weir_coordinator_member));
		member = next;
	}
}

static void push(struct weiri_members *members, weir_coordinator_member *member)
{
	/*
	 * [relaxed] readers follow `next` only through `first`, by P1. No ABA: members are never
	 * removed (I1).
	 */
	weir_coordinator_member *first = weiri_load_relaxed(&members->first);

	do {
		member->next = first;
		/* [P1 release] pairs with the walks. */
	} while (!weiri_cas_release(&members->first, &first, member));
}

/* Moves some member from FREE to BUSY and returns it; NULL: no member is FREE. */
static weir_coordinator_member *claim_free(struct weiri_members *members)
{
	/* [P1 acquire] pairs with push(). */
	weir_coordinator_member *member = weiri_load_acquire(&members->first);

	for (; member != NULL; member = member->next) {
		/* [relaxed] the CAS checks it. */
		uint32_t word = weiri_load_relaxed(&member->state);

		/*
		 * [P2 acquire] pairs with the step to FREE. The claim is released with each word of its
		 * name (P4).
		 */
		if ((word & STATE_MASK) == FREE && weiri_cas_acquire(&member->state, &word, with_state(word + ONE_CLAIM, BUSY)))
			return member;
	}
	return NULL;
}

weir_coordinator_member *weiri_members_claim(struct weiri_members *members, const char *name)
{
	weir_coordinator_member *member = claim_free(members);

	if (member == NULL) {
		member = weiri_allocate_zeroed(members->allocator, sizeof(*member), _Alignof(weir_coordinator_member));
		if (member == NULL)
			return NULL;
		/* [relaxed] published by push(). */
		weiri_store_relaxed(&member->state, BUSY);
		push(members, member);
	}
	WEIR_ASSERT_INSTANT(assert_listed(members, member));
	write_name(member, name);
	return member;
}

void weiri_member_enter(weir_coordinator_member *member)
{
	set_state(member, FOREIGN);
}

void weiri_member_leave(weir_coordinator_member *member)
{
	set_state(member, FREE);
}

bool weiri_member_start(weir_coordinator_member *member, void *(*main)(void *member))
{
	set_state(member, STARTING);
	if (pthread_create(&member->thread, NULL, main, member) != 0) {
		set_state(member, FREE);
		return false;
	}
	/* Either step makes the id readable for join_ended (P3). */
	if (!step(member, STARTING, RUNNING))
		set_state(member, ENDED);
	return true;
}

void weiri_member_end(weir_coordinator_member *member)
{
	if (!step(member, STARTING, ENDED_EARLY))
		set_state(member, ENDED);
}

void weiri_members_join_ended(struct weiri_members *members)
{
	/* [P1 acquire] pairs with push(). */
	weir_coordinator_member *member = weiri_load_acquire(&members->first);

	for (; member != NULL; member = member->next) {
		if (step(member, ENDED, BUSY)) {
			weiri_thread_join(member->thread);
			set_state(member, FREE);
		}
	}
}

/* Returns true if the member has not ended and `name` is its name. */
static bool read_name(const weir_coordinator_member *member, char name[WEIRI_MEMBER_NAME_SIZE])
{
	/* [P4 acquire] pairs with the step after BUSY: the name is written. */
	uint32_t word = weiri_load_acquire(&member->state);
	uint32_t state = word & STATE_MASK;

	if (state != FOREIGN && state != STARTING && state != RUNNING)
		return false;
	weiri_member_name(member, name);
	/* [relaxed] P4: if a word were from a later claim, this load would see that claim. */
	return (weiri_load_relaxed(&member->state) & ~(uint32_t)STATE_MASK) == (word & ~(uint32_t)STATE_MASK);
}

size_t weiri_members_list_names(const struct weiri_members *members, char *text, size_t size)
{
	/* [P1 acquire] pairs with push(). */
	const weir_coordinator_member *member = weiri_load_acquire(&members->first);
	char name[WEIRI_MEMBER_NAME_SIZE];
	size_t count = 0;
	size_t used = 0;

	text[0] = '\0';
	for (; member != NULL; member = member->next) {
		if (!read_name(member, name))
			continue;
		if (used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", count != 0 ? ", " : "", name);
		count++;
	}
	return count;
}
