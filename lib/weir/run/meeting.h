/*
 * meeting.h - each of n parties comes to a meeting, and the last one to come holds it. A party may
 * leave again as long as not all have come. Meetings follow one another in the same memory.
 *
 * Algorithm (ours). One word has a bit for each party that has come, and the number of the meeting:
 *
 *     | number: 48 bits | who has come: 16 bits |
 *
 * A party comes by setting its bit. The party that makes the word full is the holder; it alone goes
 * on, until it opens the next meeting with no bit set. A party leaves by a compare-and-swap that
 * clears its bit, and that fails once the word is full. The number keeps a party that wants to leave
 * meeting k, and is late, from leaving meeting k + 1.
 *
 * Invariants
 *   E1  a meeting has one holder: only the change that makes the word full makes one, and a full word
 *       is changed by its holder alone
 *   E2  a party comes only if its bit is clear: it does not come twice before it has left, or the
 *       meeting has been held (the caller's promise; ranks.c keeps it by a place for each party)
 * Pairs
 *   P1  come -> the last come: what each party brought
 *   P2  next -> come of the next meeting: what the holder did to the places of the parties
 * Linearization: come at the fetch-and-or; leave at the CAS, or at the load that found it too late.
 * Progress: come and next are wait-free. Leave is lock-free: its CAS fails only because another party
 *   came or left. A meeting that is not full waits for its parties; that is what it is for. A holder
 *   that is stopped stops this meeting, and nothing else.
 * Wrap-around: a late leave would have to sleep through exactly 2^48 meetings.
 * Checked: stress/model/check_meeting.c; tests/test_ranks.c; weir-stress "ranks".
 */
#ifndef WEIRI_MEETING_H
#define WEIRI_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/atomic.h"

enum { WEIRI_MEETING_PARTIES = 16 };

struct weiri_meeting {
	_Atomic(uint64_t) word;
};

static inline uint64_t weiri_meeting_all(uint32_t parties)
{
	return (UINT64_C(1) << parties) - 1;
}

static inline void weiri_meeting_init(struct weiri_meeting *meeting)
{
	/* [relaxed] not shared yet. */
	weiri_store_relaxed(&meeting->word, 0);
}

/* For a party that has not come: returns the number of its next meeting, which cannot end without it. */
static inline uint64_t weiri_meeting_number(const struct weiri_meeting *meeting)
{
	/* [relaxed] a party knows by its last meeting, or by P2, of each `next` before; there is none until it comes. */
	return weiri_load_relaxed(&meeting->word) >> WEIRI_MEETING_PARTIES;
}

/*
 * Comes as party `who` of `parties`, and sets *number to that of the meeting. Returns true if all have
 * come now; the caller then holds the meeting, and ends it with weiri_meeting_next().
 */
static inline bool weiri_meeting_come(struct weiri_meeting *meeting, uint32_t who, uint32_t parties, uint64_t *number)
{
	const uint64_t all = weiri_meeting_all(parties);
	const uint64_t mine = UINT64_C(1) << who;
	/* [P1, P2 acq_rel] gives what the caller brought to the holder; the holder acquires what all brought. */
	uint64_t before = weiri_fetch_or_acq_rel(&meeting->word, mine);

	WEIR_ASSERT1(E2, (before & mine) == 0);
	*number = before >> WEIRI_MEETING_PARTIES;
	return ((before | mine) & all) == all;
}

/* Returns true if the party has left meeting `number`, to which it came; false if all have come, or had. */
static inline bool weiri_meeting_leave(struct weiri_meeting *meeting, uint32_t who, uint32_t parties, uint64_t number)
{
	const uint64_t all = weiri_meeting_all(parties);
	/* [relaxed] the CAS decides; if the meeting is over, the caller learns no more than that. */
	uint64_t word = weiri_load_relaxed(&meeting->word);

	do {
		if (word >> WEIRI_MEETING_PARTIES != number || (word & all) == all)
			return false;
		/* [relaxed] it carries nothing: the place of the party is given up afterwards, and by itself. A come
		   that reads this word continues the release sequences of the comes before. */
	} while (!weiri_cas_relaxed(&meeting->word, &word, word & ~(UINT64_C(1) << who)));
	return true;
}

/* Called by the holder: opens the next meeting. From here on parties may come again. */
static inline void weiri_meeting_next(struct weiri_meeting *meeting, uint64_t number)
{
	/* [P2 release] pairs with come. */
	weiri_store_release(&meeting->word, (number + 1) << WEIRI_MEETING_PARTIES);
}

#endif
