/*
 * record.c - registering, adopting and giving up records; fork.
 *
 * Pairs
 *   P1  publish(register) -> walk(collector), publish(register): a listed record is initialized; its number
 *   P2  give_up(thread exit) -> adopt(register): what the last owner wrote is seen by the next
 *
 * Progress: registering is lock-free apart from its allocation; it happens once a thread.
 *
 * Bound: there are never more records than there were threads at one time that had one or were registering. That wants a proof, since
 * a thread that looks for a vacant record may pass one just before it becomes vacant. All look in the same order, newest first.
 *   Claim: if a walk finds k records in use, then at one moment of it k others, each the owner that it saw in one of them, were
 *   registered or registering. Adding the walker, a new record makes k + 1, which is then within the bound.
 *   By induction on k. Let u be the owner seen in the last one. If u had begun to register before the walk began, it was there all
 *   along, and the claim for the first k - 1 records, none of which is u's, gives the moment. If not, u has walked past the first k - 1
 *   records meanwhile and found them in use; the claim for its walk gives a moment with k - 1 owners, u being there too. The
 *   walker is none of them: it has no record. (u did not make the last record: that one was listed when the walk began.)
 */
#include "reclaim/record.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>
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

/* The thread ends. A later destructor that uses Weir again registers again, and pthreads calls us again. */
static void give_up(void *record_pointer)
{
	struct weiri_record *record = record_pointer;

	weiri_record_mine = NULL;
	/* [P2 release] pairs with adopt(). */
	weiri_store_release(&record->in_use, 0u);
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
			weiri_store_relaxed(&record->thread, (uint32_t)gettid());
			continue;
		}
		weiri_store_relaxed(&record->lo, 0u);
		weiri_store_relaxed(&record->picking, 0u);
		weiri_store_relaxed(&record->in_use, 0u);
	}
	weiri_collect_after_fork(weiri_record_mine);
}

static void prepare_process(void)
{
	weiri_fence_setup();
	exit_key_made = pthread_key_create(&exit_key, give_up) == 0;
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

static struct weiri_record *adopt(void)
{
	/* [P1 acquire] pairs with publish(). */
	struct weiri_record *record = weiri_load_acquire(&weiri_records);

	for (; record != NULL; record = record->next) {
		uint32_t vacant = 0;

		/* [relaxed] a look before the CAS; [P2 acquire] pairs with give_up(). */
		if (weiri_load_relaxed(&record->in_use) == 0 && weiri_cas_acquire(&record->in_use, &vacant, 1u))
			return record;
	}
	return NULL;
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
	weiri_store_relaxed(&record->in_use, 1u);
	publish(record);
	return record;
}

WEIRI_COLD struct weiri_record *weiri_record_register(void)
{
	struct weiri_record *record;

	(void)pthread_once(&process_once, prepare_process);
	record = adopt();
	if (record == NULL)
		record = make();
	/* Without a key, or without room for its value, the record would never be given up: a leak, but a safe one. */
	if (record != NULL && exit_key_made)
		(void)pthread_setspecific(exit_key, record);
	if (record != NULL)
		weiri_store_relaxed(&record->thread, (uint32_t)gettid()); /* [relaxed] for people */
	weiri_record_mine = record;
	return record;
}

enum weir_status weir_reclaim_prepare_thread(void)
{
	return weiri_record_get() != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}
