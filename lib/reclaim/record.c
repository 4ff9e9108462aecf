/*
 * record.c - registering, adopting and giving up records; owners that end without that; fork.
 *
 * Pairs
 *   P1  publish(register) -> walk(collector), publish(register): a listed record is initialized; its number
 *   P2  vacate(thread exit, or who found that it has ended) -> adopt(register): what the last owner wrote is seen by the next
 *
 * Progress: registering is lock-free apart from its allocation; it happens once a thread.
 *
 * Bound: there are never more records than there were threads at one time that had one or were registering, if each gives up its own. That
 * wants a proof, since a thread that looks for a vacant record may pass one just before it becomes vacant. All look in the same order,
 * newest first.
 *   Claim: if a walk finds k records in use, then at one moment of it k others, each the owner that it saw in one of them, were
 *   registered or registering. Adding the walker, a new record makes k + 1, which is then within the bound.
 *   By induction on k. Let u be the owner seen in the last one. If u had begun to register before the walk began, it was there all
 *   along, and the claim for the first k - 1 records, none of which is u's, gives the moment. If not, u has walked past the first k - 1
 *   records meanwhile and found them in use; the claim for its walk gives a moment with k - 1 owners, u being there too. The
 *   walker is none of them: it has no record. (u did not make the last record: that one was listed when the walk began.)
 *
 * Owners that do not give up. A thread gives its record up in a destructor of thread-specific data. That does not run when all keys were
 * taken before Weir's was made, when there was no memory for the key's value, or when another destructor uses Weir in the last round of
 * destructors that the system grants. So, now and then, a thread that finds no vacant record asks the kernel for each owner whether such
 * a thread is still there, and vacates the records of those that are gone.
 *   Why no living thread loses its record. `owner` is written by the owner itself, with its own number; one word, and the count above
 *   the number makes each ownership another word. The one who looks reads the word, then asks the kernel, then changes the word by
 *   a CAS. If the kernel says that the process has no thread of that number, the owner of that word has ended, or had given the record up:
 *   a living owner keeps its number. Has it given the record up, or has the record another owner since, even one that was given the
 *   same number, then the word is another one and the CAS fails. If the number belongs to a new thread when the kernel is asked,
 *   the answer is "there", and the record stays as it is until that one has ended, too: late, but safe.
 *   Why all that the owner did is seen. It is not running any more, and the heavy fence after the answer orders what every thread of
 *   the process did before it.
 *   Bound: the kernel is asked when there are at least LEAST records, and twice as many as living owners were found the last time. So
 *   there are never more records than LEAST, or twice the threads at one time, and a registration asks twice or so on average.
 * Checked: tests/test_reclaim.c, tests/test_records.c, stress/model/check_reclaim.c, stress scenario thread_churn.
 */
#include "reclaim/record.h"

#include <pthread.h>
#include <stddef.h>
#include <weir/reclaim.h>

#include "base/asymmetric.h"
#include "base/eventfd.h"
#include "base/thread.h"
#include "base/memory.h"
#include "reclaim/collect.h"

WEIRI_TLS struct weiri_record *weiri_record_mine;
_Atomic(struct weiri_record *) weiri_records;

static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static int exit_key_made;

enum {
	LEAST = 16 /* records, below which nobody asks whether their owners are still there */
};

/* Above the number of the thread, in `owner`. */
static const uint64_t one_owner = UINT64_C(1) << 32;

static uint64_t without_thread(uint64_t owner)
{
	return owner & ~(one_owner - 1);
}

/* This thread, as the next owner. */
static uint64_t next_owner(uint64_t owner)
{
	return (without_thread(owner) + one_owner) | weiri_thread_id();
}

/* The caller owns it, or is what is left of its owner, which may have ended in the middle of anything. */
static void vacate(struct weiri_record *record)
{
	weiri_collect_abandoned(record);
	/* [relaxed] only the owner changes it. [P2 release] pairs with adopt(). */
	weiri_store_release(&record->owner, without_thread(weiri_load_relaxed(&record->owner)));
}

/* The thread ends. A later destructor that uses Weir again registers again, and pthreads calls us again. */
static void give_up(void *record_pointer)
{
	weiri_record_mine = NULL;
	vacate(record_pointer);
}

/*
 * Only the forking thread lives on. The sections of the others are over; their handles may have been passed to us, so their
 * slots stay. Their retired lists are atomic stacks, whole at every instant.
 */
static void after_fork_in_child(void)
{
	/* [relaxed] there is one thread. */
	struct weiri_record *record = weiri_load_relaxed(&weiri_records);

	weiri_fence_after_fork();
	weiri_eventfd_after_fork();
	weiri_thread_after_fork();
	for (; record != NULL; record = record->next) {
		if (record == weiri_record_mine) {
			weiri_store_relaxed(&record->owner, without_thread(weiri_load_relaxed(&record->owner)) | weiri_thread_id());
			continue;
		}
		weiri_store_relaxed(&record->lo, 0u);
		weiri_store_relaxed(&record->picking, 0u);
		weiri_store_relaxed(&record->owner, without_thread(weiri_load_relaxed(&record->owner)));
	}
	weiri_collect_after_fork(weiri_record_mine);
}

static void prepare_process(void)
{
	weiri_fence_setup();
	exit_key_made = pthread_key_create(&exit_key, give_up) == 0;
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* A vacant one. NULL: none of so many *records is. */
static struct weiri_record *adopt(uint32_t *records)
{
	/* [P1 acquire] pairs with publish(). */
	struct weiri_record *record = weiri_load_acquire(&weiri_records);

	*records = 0;
	for (; record != NULL; record = record->next, ++*records) {
		uint64_t owner = weiri_load_relaxed(&record->owner); /* [relaxed] a look before the CAS */

		/* [P2 acquire] pairs with vacate(). */
		if ((uint32_t)owner == 0 && weiri_cas_acquire(&record->owner, &owner, next_owner(owner)))
			return record;
	}
	return NULL;
}

/* So many records, and it is time to ask after their owners. */
static _Atomic(uint32_t) ask_at = LEAST;

/* 1: its owner is still there, as far as is known. */
static int is_owned(struct weiri_record *record)
{
	uint64_t owner = weiri_load_relaxed(&record->owner); /* [relaxed] a name; the CAS decides */

	if ((uint32_t)owner == 0)
		return 0;
	if (!weiri_thread_is_gone((uint32_t)owner) || !weiri_fence_heavy())
		return 1;
	/* [P2 acquire] pairs with another's vacate(); of the owner all was seen at the fence. A failure: another was first. */
	if (weiri_cas_acquire(&record->owner, &owner, next_owner(owner)))
		vacate(record);
	return 0;
}

/* Vacates the records whose owners have ended and not given them up. */
static WEIRI_COLD void ask_after_owners(void)
{
	/* [P1 acquire] pairs with publish(). */
	struct weiri_record *record = weiri_load_acquire(&weiri_records);
	uint32_t owned = 0;

	for (; record != NULL; record = record->next)
		owned += (uint32_t)is_owned(record);
	weiri_store_relaxed(&ask_at, owned < LEAST / 2 ? (uint32_t)LEAST : 2 * owned); /* [relaxed] a number */
}

/* None of so many records is vacant: they are as many as it takes to look for those that should be. */
static int is_time_to_ask(uint32_t records)
{
	return records >= LEAST && records >= weiri_load_relaxed(&ask_at); /* [relaxed] a number */
}

static void publish(struct weiri_record *record)
{
	/* [P1 acquire] for its number; pairs with the CAS below. */
	struct weiri_record *head = weiri_load_acquire(&weiri_records);

	do {
		record->next = head;
		record->number = head != NULL ? head->number + 1 : 0;
		/* [P1 release] pairs with every walk of the list; [P1 acquire] when another one came first: for its number. */
	} while (!weiri_cas_release_or_acquire(&weiri_records, &head, record));
}

static struct weiri_record *make(void)
{
	struct weiri_record *record =
		weiri_allocate_zeroed(weir_default_allocator(), sizeof(*record), alignof(struct weiri_record));

	if (record == NULL)
		return NULL;
	/* [relaxed] not listed yet. */
	weiri_store_relaxed(&record->owner, next_owner(0));
	publish(record);
	return record;
}

WEIRI_COLD struct weiri_record *weiri_record_register(void)
{
	struct weiri_record *record;
	uint32_t records;

	(void)pthread_once(&process_once, prepare_process);
	record = adopt(&records);
	if (record == NULL && is_time_to_ask(records)) {
		ask_after_owners();
		record = adopt(&records);
	}
	if (record == NULL)
		record = make();
	/* Without a key, or without room for its value, nothing tells that this thread ends: others will ask. */
	if (record != NULL && exit_key_made)
		(void)pthread_setspecific(exit_key, record);
	weiri_record_mine = record;
	return record;
}

enum weir_status weir_reclaim_prepare_thread(void)
{
	return weiri_record_get() != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}
