/*
 * waiters.c - see waiters.h.
 */
#include "sync/waiters.h"

#include "base/assert.h"

#define POSTED WEIRI_WAITERS_POSTED
#define FENCED WEIRI_WAITERS_FENCED
#define FOLLOWED WEIRI_WAITERS_FOLLOWED
#define EPOCH UINT64_C(8)        /* one more */
#define LOOK (UINT64_C(1) << 48) /* one more */
#define EPOCHS (LOOK - EPOCH)    /* all of them */

#if defined(WEIRI_UNDER_MODEL) /* stress/model: there two looks end a post */
enum { PATIENCE = 2 };
WEIRI_TLS bool weiri_looks_once; /* look.h */
#else
enum { PATIENCE = 64 }; /* looks cost some nanoseconds each, a post that finds nothing fenced some microseconds */
#endif

void weiri_waiters_init(struct weiri_waiters *waiters)
{
	/* [relaxed] the caller publishes the object that holds it. */
	weiri_store_relaxed(&waiters->list.first, 0u);
	weiri_store_relaxed(&waiters->word, 0u);
}

/*
 * Called after the heavy fence. Notes in the word that later posts need no fence, unless the post
 * in `word` has been cleared meanwhile.
 */
static void note_fence(struct weiri_waiters *waiters, uint64_t word)
{
	const uint64_t epoch = word & EPOCHS;

	while ((word & EPOCHS) == epoch) {
		/* [relaxed, P3, W3] the heavy fence before it is a release. */
		if (weiri_cas_relaxed(&waiters->word, &word, word | FENCED))
			return;
	}
}

bool weiri_waiters_post(struct weiri_waiters *waiters)
{
	/* [relaxed] the CAS decides. */
	uint64_t word = weiri_load_relaxed(&waiters->word), next;

	do {
		next = ((word + EPOCH) & (LOOK - 1)) | POSTED;
		/* [acq_rel: P1, P2, P3] */
	} while (!weiri_cas_acq_rel(&waiters->word, &word, next));
	WEIR_ASSERT2(W3, (word & FENCED) == 0 || (word & POSTED) != 0);
	if ((next & FENCED) != 0)
		return true;
	if (!weiri_fence_heavy()) /* F1 */
		return false;
	note_fence(waiters, next);
	return true;
}

void weiri_waiters_follow(struct weiri_waiters *waiters)
{
	/*
	 * [relaxed] A notifier that finds FOLLOWED runs a seq_cst fence, and looks for what follows. It finds
	 * that, or its change came before the heavy fence of the caller, as if it had missed FOLLOWED.
	 */
	(void)weiri_fetch_or_relaxed(&waiters->word, FOLLOWED);
}

bool weiri_waiters_look(struct weiri_waiters *waiters)
{
	uint64_t word;

	if (!weiri_waiters_posted(waiters))
		return false;
	/* [acq_rel: P1, P2] */
	word = weiri_fetch_add_acq_rel(&waiters->word, LOOK) + LOOK;
	WEIR_ASSERT2(W3, (word & FENCED) == 0 || (word & POSTED) != 0);
	if (weiri_list_occupied(&waiters->list))
		return true;
	/*
	 * [relaxed, W2] carries nothing; the word itself orders a later look of this thread, and any
	 * post. The CAS fails if there was a post or a look meanwhile.
	 */
	if ((word & POSTED) != 0 && word / LOOK >= PATIENCE)
		(void)weiri_cas_relaxed(&waiters->word, &word, (word + EPOCH) & (EPOCHS | FOLLOWED));
	return false;
}
