/*
 * record.c - registering threads, adopting and giving up records; owners that end without giving
 * up; fork.
 *
 * Pairs
 *   P1  publish(register) -> walk(collector), publish(register): the fields of a listed record are
 *       initialized; its number
 *   P2  vacate(thread exit, or a thread that finds the owner ended) -> adopt(register): the next
 *       owner sees the writes of the last
 *   P3  end(thread) -> the heavy fence of is_owned(), after the kernel's answer: the writes of an
 *       owner that ended without giving the record up
 *
 * Progress: registering is lock-free apart from its allocation. It happens once for each thread.
 *
 * Bound: count the threads that have a record or are registering. If each thread gives up its own
 * record, there are never more records than there were such threads at one time. This needs a
 * proof, since a thread that looks for a vacant record may pass one just before it becomes vacant.
 * All threads walk the records in the same order, newest first.
 *   Claim: if a walk finds k records in use, then at one moment of the walk k other threads were
 *   registered or registering, namely the owner seen in each of the k records. The walker is one
 *   more. If it makes a new record, there are k+1 records and k+1 such threads, which is within the
 *   bound.
 *   Proof by induction on k. Let u be the owner seen in the last of the k records. If u began to
 *   register before the walk began, it was there throughout. The claim for the first k-1 records,
 *   none of which belongs to u, gives the moment. Otherwise u has itself walked past the first k-1
 *   records during this walk and found them in use. The claim for u's walk gives a moment with k-1
 *   owners, and u was there too. The walker is not among them, since it has no record. (u did not
 *   make the last record: that one was listed when the walk began.)
 *
 * Owners that do not give up. A thread gives its record up in a destructor of thread-specific data.
 * The destructor does not run if all keys were taken before Weir made its own, or if there was no
 * memory for the key's value. Nor does it run again if another destructor uses Weir in the last
 * round of destructors that the system grants. So, from time to time, a thread that finds no vacant
 * record asks the kernel which owners still exist. It vacates the records of the owners that have
 * ended.
 *   Why no living thread loses its record. Only the owner writes its own thread id to `owner`.
 *   Above the id the word counts the ownerships, so each ownership has another word. The checking
 *   thread reads the word, then asks the kernel, then changes the word by a CAS. Suppose that the
 *   kernel finds no thread of that id in the process. Then the owner of that word has ended or had
 *   already given the record up, since a living owner keeps its id. Suppose that the owner gave the
 *   record up, and perhaps another thread owns it now, even one with the same id. Then the word is
 *   another one and the CAS fails. If the id belongs to a new thread when the kernel is asked, the
 *   kernel says that the thread exists. Then the record stays in use until that thread has ended
 *   too, which is late but safe.
 *   Why all writes of the owner are seen. It no longer runs, and the heavy fence after the answer
 *   orders everything that any thread of the process did before it.
 *   Bound: the kernel is asked when there are at least LEAST records, and twice as many as there
 *   were living owners the last time. So there are never more records than LEAST, or twice the
 *   number of threads at one time, and a registration asks about twice on average.
 * Checked: tests/test_reclaim.c, test_reclaim_threads.c, test_records.c,
 * stress/model/check_reclaim.c, stress scenario thread_churn.
 */
#include "reclaim/record.h"

#include <pthread.h>
#include <stddef.h>
#include <weir/reclaim.h>

#include "base/asymmetric.h"
#include "base/eventfd.h"
#include "base/memory.h"
#include "base/pin.h"
#include "base/thread.h"
#include "reclaim/announce.h"
#include "reclaim/collect.h"
#include "reclaim/magazine.h"
#include "reclaim/settle.h"

_Atomic(uint32_t) weiri_ways_asked;
WEIRI_TLS struct weiri_record *weiri_record_mine;
/* The same variable, for the inlined code of weir/read_section.h. */
WEIR_API extern WEIRI_TLS struct weiri_record *weir_reader_mine __attribute__((alias("weiri_record_mine")));
_Atomic(struct weiri_record *) weiri_records;

static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool exit_key_made;

enum {
#if defined(WEIRI_UNDER_MODEL)
	LEAST = 5 /* stress/model has few threads */
#else
	LEAST = 16 /* records, below which no thread checks whether their owners still exist */
#endif
};

/* In `owner`, above the id of the thread. */
static const uint64_t one_owner = UINT64_C(1) << 32;

static uint64_t without_thread(uint64_t owner)
{
	return owner & ~(one_owner - 1);
}

/* The next value of `owner`, with the thread of this id as the owner. */
static uint64_t next_owner(uint64_t owner, uint32_t thread)
{
	return (without_thread(owner) + one_owner) | thread;
}

/* What the last owner had under way concerns no later one. */
static void forget_calls(struct weiri_own *own)
{
	own->deliveries = (struct weiri_deliveries){.first = NULL};
	own->drawn = (struct weiri_drawn){.queue = 0};
	own->interrupt = (struct weiri_interrupt){.fn = NULL};
	own->tells_of_stalls = false;
	own->skip = 0;
	own->yields_from_ns = 0;
	own->unlooked = 0;
	/* [relaxed] A count, here and below. The requests end by time. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(&own->ways_asked) != 0))
		(void)weiri_fetch_sub_relaxed(&weiri_ways_asked, weiri_exchange_relaxed(&own->ways_asked, 0u));
}

/*
 * The caller owns the record, or has found its owner ended, perhaps in the middle of an operation or
 * a call.
 */
static void vacate(struct weiri_record *record)
{
	forget_calls(record->own);
	weiri_collect_abandoned(record);
	weiri_announce_nothing(record);
	weiri_magazine_end(record);
	/* [relaxed] only the owner changes it. [P2 release] pairs with adopt(). */
	weiri_store_release(&record->owner, without_thread(weiri_load_relaxed(&record->owner)));
}

/*
 * Runs when the thread ends. If a later destructor uses Weir, it registers the thread again, and
 * pthreads calls this function again.
 */
static void give_up(void *record_pointer)
{
	weiri_record_mine = NULL;
	vacate(record_pointer);
}

/*
 * Only the forking thread survives in the child. The sections of the other threads are over. Their
 * handles may have been passed to this thread, so their slots stay. Their retired lists are atomic
 * stacks, which are consistent at every instant.
 */
static void after_fork_in_child(void)
{
	/* [relaxed] there is one thread. */
	struct weiri_record *record = weiri_load_relaxed(&weiri_records);

	weiri_fence_after_fork();
	weiri_settle_after_fork();
	weiri_eventfd_after_fork();
	for (; record != NULL; record = record->next) {
		weiri_announce_after_fork(record);
		if (record == weiri_record_mine) {
			weiri_store_relaxed(&record->owner,
			                    without_thread(weiri_load_relaxed(&record->owner)) | weiri_thread_ask());
			continue;
		}
		if (weiri_record_thread(record) == WEIRI_RECORD_OF_HOST)
			continue; /* the child has the host too */
		weiri_store_relaxed(&record->lo, 0u);
		weiri_store_relaxed(&record->read_sections, 0u);
		weiri_store_relaxed(&record->picking, 0u);
		forget_calls(record->own);
		weiri_store_relaxed(&record->owner, without_thread(weiri_load_relaxed(&record->owner)));
	}
	/* [relaxed] as above. A thread of the parent may have counted its request in one of the two places only. */
	weiri_store_relaxed(&weiri_ways_asked,
	                    weiri_record_mine != NULL ? weiri_load_relaxed(&weiri_record_mine->own->ways_asked) : 0u);
	weiri_collect_after_fork(weiri_record_mine);
	weiri_magazines_after_fork();
}

static void prepare_process(void)
{
	weiri_pin_self(); /* first: from here on a thread that ends may run give_up() */
	weiri_fence_setup();
	exit_key_made = pthread_key_create(&exit_key, give_up) == 0;
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

/*
 * Adopts a vacant record for the thread of this id and returns it. If none is vacant, returns NULL and sets *records to the
 * number of records.
 */
static struct weiri_record *adopt(uint32_t thread, uint32_t *records)
{
	/* [P1 acquire] pairs with publish(). */
	struct weiri_record *record = weiri_load_acquire(&weiri_records);

	*records = 0;
	for (; record != NULL; record = record->next, ++*records) {
		/* [relaxed] a first look before the CAS. */
		uint64_t owner = weiri_load_relaxed(&record->owner);

		/* [P2 acquire] pairs with vacate(). */
		if ((uint32_t)owner == 0 && weiri_cas_acquire(&record->owner, &owner, next_owner(owner, thread)))
			return record;
	}
	return NULL;
}

/* From this many records on, it is time to check whether their owners still exist. */
static _Atomic(uint32_t) ask_at = LEAST;

/* Returns true if the owner still exists, as far as is known. */
static bool is_owned(struct weiri_record *record)
{
	/* [relaxed] an identity; the CAS decides. */
	uint64_t owner = weiri_load_relaxed(&record->owner);

	if ((uint32_t)owner == 0)
		return false;
	if ((uint32_t)owner == WEIRI_RECORD_OF_HOST)
		return true;
	/* P3 */
	if (!weiri_thread_is_gone((uint32_t)owner) || !weiri_fence_heavy())
		return true;
	/*
	 * [P2 acquire] for the writes of earlier owners: the owner's own CAS in adopt() continues the
	 * release sequence of the vacate() before it. The fence ordered the owner's own writes (P3). No
	 * word comes twice, so the CAS changes the word that was read before the fence. If the CAS
	 * fails, another thread was first.
	 */
	if (weiri_cas_acquire(&record->owner, &owner, next_owner(owner, weiri_thread_ask())))
		vacate(record);
	return false;
}

/* Vacates the records whose owners have ended without giving them up. */
static WEIRI_COLD void ask_after_owners(void)
{
	/* [P1 acquire] pairs with publish(). */
	struct weiri_record *record = weiri_load_acquire(&weiri_records);
	uint32_t owned = 0;

	for (; record != NULL; record = record->next)
		owned += (uint32_t)is_owned(record);
	/* [relaxed] a number. */
	weiri_store_relaxed(&ask_at, owned < LEAST / 2 ? (uint32_t)LEAST : 2 * owned);
}

/*
 * Called when there are this many records and none is vacant. Returns true if these are enough to
 * check their owners.
 */
static bool is_time_to_ask(uint32_t records)
{
	return records >= LEAST && records >= weiri_load_relaxed(&ask_at); /* [relaxed] a number */
}

static void publish(struct weiri_record *record)
{
	/* [P1 acquire] for the head's number; pairs with the CAS below. */
	struct weiri_record *head = weiri_load_acquire(&weiri_records);

	do {
		record->next = head;
		record->number = head != NULL ? head->number + 1 : 0;
		/*
		 * [P1 release] Pairs with every walk of the list. [P1 acquire] If another thread was first:
		 * for the number of its record.
		 */
	} while (!weiri_cas_release_or_acquire(&weiri_records, &head, record));
}

static struct weiri_record *make(uint32_t thread)
{
	const weir_allocator *allocator = weir_default_allocator();
	struct weiri_record *record = weiri_allocate_zeroed(allocator, sizeof(*record), alignof(struct weiri_record));

	if (record == NULL)
		return NULL;
	record->own = weiri_allocate_zeroed(allocator, sizeof(*record->own), alignof(struct weiri_own));
	if (record->own == NULL) {
		weiri_release(allocator, record, sizeof(*record), alignof(struct weiri_record));
		return NULL;
	}
	/* [relaxed] not listed yet. */
	weiri_store_relaxed(&record->owner, next_owner(0, thread));
	publish(record);
	return record;
}

/* Adopts or makes a record for the thread of this id. */
static struct weiri_record *find_one_for(uint32_t thread)
{
	struct weiri_record *record;
	uint32_t records;

	(void)pthread_once(&process_once, prepare_process);
	record = adopt(thread, &records);
	if (record == NULL && is_time_to_ask(records)) {
		ask_after_owners();
		record = adopt(thread, &records);
	}
	return record != NULL ? record : make(thread);
}

/* The thread owns each record for a moment. If it then ends, is_owned() finds that. */
WEIRI_COLD void weiri_record_clear_vacant(void)
{
	/* [P1 acquire] pairs with publish(). */
	struct weiri_record *record = weiri_load_acquire(&weiri_records);

	for (; record != NULL; record = record->next) {
		/* [relaxed] first looks before the CAS. */
		uint64_t owner = weiri_load_relaxed(&record->owner);

		if ((uint32_t)owner != 0 || weiri_load_relaxed(&record->magazine_grant) == 0)
			continue;
		/* [P2 acquire] pairs with vacate(). */
		if (weiri_cas_acquire(&record->owner, &owner, next_owner(owner, weiri_record_my_thread())))
			vacate(record);
	}
}

struct weiri_record *weiri_record_lend(void)
{
	return find_one_for(WEIRI_RECORD_OF_HOST);
}

void weiri_record_take_back(struct weiri_record *record)
{
	vacate(record);
}

WEIRI_COLD struct weiri_record *weiri_record_register(void)
{
	struct weiri_record *record = find_one_for(weiri_thread_ask());

	/*
	 * Without a key, or without room for its value, nothing reports the end of this thread. Other
	 * threads check for it.
	 */
	if (record != NULL && exit_key_made)
		(void)pthread_setspecific(exit_key, record);
	weiri_record_mine = record;
	return record;
}

WEIRI_NOINLINE struct weiri_record *weiri_record_get_anew(void)
{
	weiri_compiler_barrier(); /* so that no optimizer of the whole program joins two calls */
	return weiri_record_get();
}

enum weir_status weir_reclaim_prepare_thread(void)
{
	return weiri_record_get() != NULL ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED;
}
