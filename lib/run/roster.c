/*
 * roster.c - claiming, starting, ending and naming members.
 *
 * Invariants
 *   I1  a member that was put in the list stays until fini, so a walk needs no protection
 *   I2  between two claims of a member its name does not change
 * Pairs
 *   P1  push (first) -> walk: the member and its next
 *   P2  free (state) -> claim: the previous user is done with it
 *   P3  start (state) -> end -> join_ended, or end -> start -> join_ended: the thread's id, which the system may write when the thread
 *       runs already
 *   P4  write_name (state after BUSY; name words) -> read_name: a name that belongs to the state seen
 * Progress: claim walks a list that only grows, and fails a CAS only to another claim or push that succeeded.
 * Checked: tests/test_coordinator.c (plain, TSan, ASan); stress/model/check_roster.c.
 */
#include "run/roster.h"

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

/* 1 when the member went from `from` to `to` by this call. */
static int step(weir_coordinator_member *member, uint32_t from, uint32_t to)
{
	/* [P3 acquire] pairs with the step before, also when this one fails: a thread that ends hands its id on, which its starter wrote. */
	uint32_t word = weiri_load_acquire(&member->state);

	/* [P3 release, acquire when it fails] likewise. The claims change only from FREE, so no ABA. */
	return (word & STATE_MASK) == from && weiri_cas_release_or_acquire(&member->state, &word, with_state(word, to));
}

/* For the one thread that may take the member out of its state. */
static void set_state(weir_coordinator_member *member, uint32_t state)
{
	/* [relaxed] nobody else changes it now. [P2 P3 P4 release] pairs with step(), claim_free() and read_name(). */
	weiri_store_release(&member->state, with_state(weiri_load_relaxed(&member->state), state));
}

static void write_name(weir_coordinator_member *member, const char *name)
{
	uint64_t words[WEIRI_MEMBER_NAME_WORDS] = {0};

	(void)snprintf((char *)words, sizeof(words), "%s", name);
	for (int i = 0; i < WEIRI_MEMBER_NAME_WORDS; i++)
		/* [P4 release] pairs with read_name(): who sees a word of this name sees the claim before it. */
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

void weiri_roster_init(struct weiri_roster *roster, const weir_allocator *allocator)
{
	roster->allocator = allocator;
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&roster->first, NULL);
}

void weiri_roster_fini(struct weiri_roster *roster)
{
	/* [relaxed] the only thread: whoever pushed has left since. */
	weir_coordinator_member *member = weiri_load_relaxed(&roster->first);

	while (member != NULL) {
		weir_coordinator_member *next = member->next;

		/* [relaxed] the only thread. */
		WEIR_ASSERT1(free_at_fini, (weiri_load_relaxed(&member->state) & STATE_MASK) == FREE);
		weiri_release(roster->allocator, member, sizeof(*member), _Alignof(weir_coordinator_member));
		member = next;
	}
}

static void push(struct weiri_roster *roster, weir_coordinator_member *member)
{
	/* [relaxed] followed only through `first`, by P1. No ABA: members are never taken out (I1). */
	weir_coordinator_member *first = weiri_load_relaxed(&roster->first);

	do {
		member->next = first;
		/* [P1 release] pairs with the walks. */
	} while (!weiri_cas_release(&roster->first, &first, member));
}

/* FREE -> BUSY for some member, or NULL. */
static weir_coordinator_member *claim_free(struct weiri_roster *roster)
{
	/* [P1 acquire] pairs with push(). */
	weir_coordinator_member *member = weiri_load_acquire(&roster->first);

	for (; member != NULL; member = member->next) {
		/* [relaxed] the CAS checks it. */
		uint32_t word = weiri_load_relaxed(&member->state);

		/* [P2 acquire] pairs with the step to FREE. The claim is released with each word of its name (P4). */
		if ((word & STATE_MASK) == FREE && weiri_cas_acquire(&member->state, &word, with_state(word + ONE_CLAIM, BUSY)))
			return member;
	}
	return NULL;
}

weir_coordinator_member *weiri_roster_claim(struct weiri_roster *roster, const char *name)
{
	weir_coordinator_member *member = claim_free(roster);

	if (member == NULL) {
		member = weiri_allocate_zeroed(roster->allocator, sizeof(*member), _Alignof(weir_coordinator_member));
		if (member == NULL)
			return NULL;
		/* [relaxed] published by push(). */
		weiri_store_relaxed(&member->state, BUSY);
		write_name(member, name);
		push(roster, member);
		return member;
	}
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

int weiri_member_start(weir_coordinator_member *member, void *(*main)(void *member))
{
	set_state(member, STARTING);
	if (pthread_create(&member->thread, NULL, main, member) != 0) {
		set_state(member, FREE);
		return 0;
	}
	/* Either step makes the id readable for join_ended (P3). */
	if (!step(member, STARTING, RUNNING))
		set_state(member, ENDED);
	return 1;
}

void weiri_member_end(weir_coordinator_member *member)
{
	if (!step(member, STARTING, ENDED_EARLY))
		set_state(member, ENDED);
}

void weiri_roster_join_ended(struct weiri_roster *roster)
{
	/* [P1 acquire] pairs with push(). */
	weir_coordinator_member *member = weiri_load_acquire(&roster->first);

	for (; member != NULL; member = member->next) {
		if (step(member, ENDED, BUSY)) {
			weiri_thread_join(member->thread);
			set_state(member, FREE);
		}
	}
}

/* 1 when the member has not ended; then its name. */
static int read_name(const weir_coordinator_member *member, char name[WEIRI_MEMBER_NAME_SIZE])
{
	/* [P4 acquire] pairs with the step after BUSY: the name is written. */
	uint32_t word = weiri_load_acquire(&member->state);
	uint32_t state = word & STATE_MASK;

	if (state != FOREIGN && state != STARTING && state != RUNNING)
		return 0;
	weiri_member_name(member, name);
	/* [relaxed] P4: had a word been of a later claim, this load would see that claim. */
	return (weiri_load_relaxed(&member->state) & ~(uint32_t)STATE_MASK) == (word & ~(uint32_t)STATE_MASK);
}

size_t weiri_roster_list_names(const struct weiri_roster *roster, char *text, size_t size)
{
	/* [P1 acquire] pairs with push(). */
	const weir_coordinator_member *member = weiri_load_acquire(&roster->first);
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
