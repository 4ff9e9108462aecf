/*
 * newest.c - the newest value in shared memory: wait-free for its writer and its readers, whichever
 * of them die.
 *
 * Algorithm. Chen and Burns ("A fully asynchronous reader/writer mechanism for multiprocessor
 * real-time systems", 1997). There are two buffers more than claims. The word `published` names the
 * newest version and its buffer. A reader announces its claim, reads `published`, and claims the
 * buffer by CAS; the writer, before it chooses a buffer, answers every announced claim with the
 * newest buffer, by CAS too. One of the two CASes succeeds, so the reader has a buffer after one
 * attempt, and the writer knows which.
 *
 *   claim:  0 none     1 announced     b + 2: buffer b is being read
 *
 *   read:   claim = 1; p = published; CAS claim from 1 to p.buffer + 2; failed: the claim holds the
 *           writer's answer; copy the buffer; claim = 0
 *   write:  for each claim: read it; if 1, CAS to published.buffer + 2; remember what it is
 *           choose a buffer that no claim has and `published` does not name; write the value
 *           published = {version + 1, buffer}
 *
 * Differences. Theirs answers the claims after it publishes; here the next write does so, before it
 * chooses. It is the same moment for the proof, and a writer that takes over from a dead one needs no
 * repair: its first write answers what the dead one has not. The writer is one process at a time: a
 * word holds its seat, and another takes the role when that process is gone.
 *
 * Invariants
 *   N1  the writer writes to no buffer that `published` names, or that a reader may read
 *   N2  versions grow by one
 *   N3  a number of a buffer from shared memory is used only if it is below the process's own count
 *   N4  only the process publishes that the word `writer` names
 * Why N1 holds. Let the writer choose b after it has read claim c of reader r. All accesses to
 *   `published` and the claims are seq_cst. If the writer read 0 (or an older claim's end), r announces
 *   later, so r reads `published` later and finds what the writer saw there, or a later version: b
 *   only when b is complete. If it read 1 and its CAS succeeded, r's CAS fails, and r uses the buffer
 *   that `published` named, which is not b. If that CAS failed, or it read b' + 2, r reads b', and b' is
 *   not chosen. There are two buffers more than claims, so one is always left.
 * Death. A reader that dies pins one buffer; there are enough. A writer that dies before it
 *   publishes has changed nothing that a reader can see; afterwards everything. Who takes the seat
 *   of a dead process resets its claims; nobody else writes to them, except the writer's answers to
 *   claims that are 1.
 * Why N4 holds. `writer` holds a seat. A process takes the role by CAS from a word whose seat is free,
 *   or of a process that is gone; each take counts, so no word repeats. A seat that passes on to the
 *   next process could make that one seem to be the writer. So it ends the role of the seat's last
 *   process before it takes the seat. It found that process gone before, so that one takes no role
 *   afterwards; and if another process has had the seat meanwhile, the CAS of the seat fails.
 * Pairs
 *   P1  publish -> read: the value; also through the writer's answer
 *   P2  let go (claim = 0) -> the writer's look at the claim: the reader has finished with the buffer
 *   P3  publish -> takeover of the role: what the writer before wrote
 *   S   published and claims: seq_cst
 * Linearization. A read: its load of `published`; if the writer answered, the writer's CAS (what it
 *   answers was the newest then). A write: its store to `published`. Progress: wait-free, both; a
 *   write looks at each claim.
 * Memory: claims + 2 buffers, of which only those are ever written that are needed: the writer
 *   takes the lowest number.
 * Damaged memory: N3, and a size is clamped. Sizes and addresses are private.
 * Checked: stress/model/check_shm.c, tests/test_shm_latest.c, tests/fuzz/fuzz_shm.c.
 */
#include "shm/newest.h"

#include "base/assert.h"
#include "shm/step.h"

enum { NONE = 0, ANNOUNCED = 1, FIRST_BUFFER = 2 };

static uint32_t buffer_of(const struct weiri_newest *newest, uint64_t published)
{
	return (uint32_t)(published & ((UINT64_C(1) << newest->bits) - 1));
}

static uint64_t version_of(const struct weiri_newest *newest, uint64_t published)
{
	return published >> newest->bits;
}

static struct weiri_buffer *buffer_at(const struct weiri_newest *newest, uint32_t number)
{
	WEIR_ASSERT1(N3, number < newest->count);
	return (struct weiri_buffer *)(void *)(newest->shared + newest->layout.buffers + number * newest->layout.stride);
}

/* -- read -------------------------------------------------------------------------------------- */

uint64_t weiri_newest_version(const struct weiri_newest *newest)
{
	/* [seq_cst S] in the order of the bell, too (doorbell.h). */
	return version_of(newest, weiri_load_seq_cst(newest->published));
}

static int pick_claim(struct weiri_newest *newest)
{
	/* [relaxed] the CAS acquires. */
	uint64_t idle = weiri_load_relaxed(&newest->idle);

	while (idle != 0) {
		/* [acquire] pairs with the release in weiri_newest_let_go(), between threads of a process. */
		if (weiri_cas_acquire(&newest->idle, &idle, idle & (idle - 1)))
			return __builtin_ctzll(idle);
	}
	return -1;
}

static _Atomic(uint64_t) *claim_word(const struct weiri_newest *newest, int claim)
{
	return &newest->claims[newest->seat * newest->geometry.claims + (uint32_t)claim].word;
}

const struct weiri_buffer *weiri_newest_claim(struct weiri_newest *newest, int *claim)
{
	uint64_t published, mine = ANNOUNCED;
	_Atomic(uint64_t) *word;
	uint32_t number;

	*claim = pick_claim(newest);
	if (*claim < 0)
		return NULL;
	word = claim_word(newest, *claim);
	WEIRI_SHM_STEP();
	/* [seq_cst S] before the load: Dekker's pattern with publish, then a look at the claims. */
	weiri_store_seq_cst(word, (uint64_t)ANNOUNCED);
	WEIRI_SHM_STEP();
	/* [seq_cst S; P1 acquire] pairs with weiri_newest_publish(). */
	published = weiri_load_seq_cst(newest->published);
	number = buffer_of(newest, published);
	WEIRI_SHM_STEP();
	/* [seq_cst S; P1 acquire on failure] pairs with the writer's answer. */
	if (version_of(newest, published) != 0 && !weiri_cas_seq_cst(word, &mine, (uint64_t)number + FIRST_BUFFER))
		number = (uint32_t)(mine - FIRST_BUFFER);
	if (version_of(newest, published) == 0 || number >= newest->count) { /* [N3] */
		weiri_newest_let_go(newest, *claim);
		return NULL;
	}
	return buffer_at(newest, number);
}

void weiri_newest_let_go(struct weiri_newest *newest, int claim)
{
	WEIRI_SHM_STEP();
	/* [P2 release] pairs with the writer's look: the copy is complete. */
	weiri_store_release(claim_word(newest, claim), (uint64_t)NONE);
	/* [release] pairs with pick_claim(). */
	(void)weiri_fetch_or_release(&newest->idle, UINT64_C(1) << claim);
}

/* -- write ------------------------------------------------------------------------------------- */

/* Answers the claim if it is announced. Returns what it is afterwards. */
static uint64_t answer(_Atomic(uint64_t) *word, uint64_t buffer)
{
	/* [seq_cst S; P2 acquire] pairs with weiri_newest_claim() and _let_go(). */
	uint64_t claim = weiri_load_seq_cst(word);

	WEIRI_SHM_STEP();
	/* [seq_cst S; P1 release] pairs with the reader's CAS. It fails if the reader has a buffer now. */
	if (claim == ANNOUNCED && weiri_cas_seq_cst(word, &claim, buffer + FIRST_BUFFER))
		return buffer + FIRST_BUFFER;
	return claim;
}

struct weiri_buffer *weiri_newest_prepare(struct weiri_newest *newest, uint32_t *number)
{
	/* [relaxed] only the writer writes it; P3 showed this process what the writer before wrote. */
	const uint64_t published = weiri_load_relaxed(newest->published);
	const uint32_t current = buffer_of(newest, published), claims = newest->geometry.seats * newest->geometry.claims;
	bool taken[WEIRI_NEWEST_MAX_BUFFERS] = {false};
	uint32_t chosen = 0;

	for (uint32_t i = 0; i < claims; i++) {
		uint64_t claim = version_of(newest, published) != 0 ? answer(&newest->claims[i].word, current) : NONE;

		if (claim >= FIRST_BUFFER && claim - FIRST_BUFFER < newest->count) /* [N3] */
			taken[claim - FIRST_BUFFER] = true;
	}
	if (version_of(newest, published) != 0 && current < newest->count)
		taken[current] = true;
	while (chosen + 1 < newest->count && taken[chosen])
		chosen++;
	WEIR_ASSERT1(N1, !taken[chosen]);
	*number = chosen;
	return buffer_at(newest, chosen);
}

static WEIRI_UNSEEN bool is_writer(const struct weiri_newest *newest)
{
	return weiri_peek(newest->writer) == newest->role;
}

uint64_t weiri_newest_publish(struct weiri_newest *newest, uint32_t number)
{
	/* [relaxed] only the writer writes it. */
	uint64_t version = version_of(newest, weiri_load_relaxed(newest->published)) + 1;

	WEIR_ASSERT2(N4, is_writer(newest));
	/* [relaxed] the buffer is the writer's; P1 publishes it. */
	weiri_store_relaxed(&buffer_at(newest, number)->version, version);
	WEIRI_SHM_STEP();
	/* [seq_cst S; P1 release] before the next look at the claims, and before the look at the bell. */
	weiri_store_seq_cst(newest->published, version << newest->bits | number);
	return version;
}

/* -- the role of the writer, and seats ---------------------------------------------------------- */

/* The role: seat + 1 of the process that has it, and above it how often it was taken. */
static uint32_t seat_of_role(uint64_t role)
{
	return (uint32_t)(role & UINT32_MAX) - 1;
}

/* No process has it. The count stays, so that no word of a role repeats. */
static uint64_t without_seat(uint64_t role)
{
	return role >> 32 << 32;
}

/* Returns true if the role is free, or its process is gone. */
static bool is_role_free(const struct weiri_newest *newest, uint64_t role)
{
	uint32_t seat = seat_of_role(role);
	uint64_t owner = seat < newest->geometry.seats ? weiri_seats_owner(&newest->seats[seat]) : 0;

	return owner == 0 || weiri_seats_is_gone(owner);
}

/*
 * Returns false if another process is the writer. *role: as it was loaded; afterwards that of no
 * process, or of one that is gone.
 */
static bool find_role_free(const struct weiri_newest *newest, uint64_t *role)
{
	while (!is_role_free(newest, *role)) {
		/*
		 * [P3 acquire] as the load before. If the seat of a writer that is gone has a new process, that
		 * one has ended the role before, and Q2 shows it here.
		 */
		uint64_t now = weiri_load_acquire(newest->writer);

		if (now == *role)
			return false;
		*role = now;
	}
	return true;
}

bool weiri_newest_become_writer(struct weiri_newest *newest)
{
	/* [P3 acquire] pairs with weiri_newest_leave(); a dead writer's stores are visible when it is gone. */
	uint64_t role = weiri_load_acquire(newest->writer), mine;

	do {
		if (!find_role_free(newest, &role))
			return false;
		mine = ((role >> 32) + 1) << 32 | (newest->seat + 1);
		WEIRI_SHM_STEP();
		/*
		 * [P3 release] a process that reads the role sees that the seat is this process's. [acquire on
		 * failure] as the load. It fails if another process took the role, or ended that of a dead one.
		 */
	} while (!weiri_cas_release_or_acquire(newest->writer, &role, mine));
	newest->role = mine;
	return true;
}

void weiri_newest_leave(struct weiri_newest *newest, uint64_t identity)
{
	uint64_t mine = newest->role;

	if (mine != 0)
		/* [P3 release] pairs with weiri_newest_become_writer(). */
		(void)weiri_cas_release(newest->writer, &mine, without_seat(mine));
	newest->role = 0;
	(void)weiri_seats_leave(&newest->seats[newest->seat], identity);
}

/* Frees the role of the writer if the process that is gone, `owner`, has it by this seat. */
static void end_role_of(struct weiri_newest *newest, uint32_t seat, uint64_t owner)
{
	/*
	 * [P3 acquire] if this is already the role of the seat's next process, the look at the seat finds
	 * that process.
	 */
	uint64_t role = weiri_load_acquire(newest->writer);

	if (seat_of_role(role) != seat || weiri_seats_owner(&newest->seats[seat]) != owner)
		return;
	WEIRI_SHM_STEP();
	/* [P3 release] passes the dead writer's stores on. If it fails, another process took the role. */
	(void)weiri_cas_release(newest->writer, &role, without_seat(role));
}

/* Takes a free seat, or that of a process that is gone. Returns -1 if there is none. */
static int find_seat(struct weiri_newest *newest, uint64_t identity)
{
	int seat = weiri_seats_take(newest->seats, newest->geometry.seats, identity);

	for (uint32_t i = 0; i < newest->geometry.seats && seat < 0; i++) {
		uint64_t owner = weiri_seats_owner(&newest->seats[i]);

		if (!weiri_seats_is_gone(owner))
			continue;
		/* First the role, then the seat: a process stopped in between must not seem to be the writer. */
		end_role_of(newest, i, owner);
		WEIRI_SHM_STEP();
		if (weiri_seats_take_over(&newest->seats[i], owner, identity))
			seat = (int)i;
	}
	return seat;
}

bool weiri_newest_sit(struct weiri_newest *newest, uint64_t identity)
{
	int seat = find_seat(newest, identity);

	if (seat < 0)
		return false;
	newest->seat = (uint32_t)seat;
	for (uint32_t i = 0; i < newest->geometry.claims; i++)
		/* [P2 release] the reader before has ended. */
		weiri_store_release(claim_word(newest, (int)i), (uint64_t)NONE);
	/* [relaxed] no other thread of this process knows the object yet. */
	weiri_store_relaxed(&newest->idle,
	                    newest->geometry.claims < 64 ? (UINT64_C(1) << newest->geometry.claims) - 1 : UINT64_MAX);
	return true;
}

/* -- layout ------------------------------------------------------------------------------------ */

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

bool weiri_newest_lay_out(const struct weiri_newest_geometry *geometry, struct weiri_newest_layout *layout)
{
	const size_t claims = (size_t)geometry->seats * geometry->claims;

	if (geometry->value_size < 1 || geometry->value_size > WEIRI_NEWEST_MAX_VALUE || geometry->seats < 1 ||
	    geometry->seats > WEIRI_NEWEST_MAX_SEATS || geometry->claims < 1 || geometry->claims > WEIRI_NEWEST_MAX_CLAIMS)
		return false;
	layout->published = 0;
	layout->bell = WEIRI_APART;
	layout->writer = (size_t)2 * WEIRI_APART;
	layout->seats = (size_t)3 * WEIRI_APART;
	layout->claims = round_up(layout->seats + geometry->seats * sizeof(weiri_seat), WEIRI_APART);
	layout->buffers = layout->claims + claims * sizeof(struct weiri_claim);
	layout->stride = sizeof(struct weiri_buffer) + round_up(geometry->value_size, WEIRI_LINE);
	/* In 64 bits: where addresses have 32, the buffers may be too large for them. */
	if ((uint64_t)(claims + 2) * layout->stride > PTRDIFF_MAX / 2 - layout->buffers)
		return false;
	layout->size = layout->buffers + (claims + 2) * layout->stride;
	return true;
}

void weiri_newest_open(struct weiri_newest *newest, const struct weiri_newest_geometry *geometry,
                       const struct weiri_newest_layout *layout, char *shared)
{
	newest->geometry = *geometry;
	newest->layout = *layout;
	newest->shared = shared;
	newest->published = (_Atomic(uint64_t) *)(void *)(shared + layout->published);
	newest->writer = (_Atomic(uint64_t) *)(void *)(shared + layout->writer);
	newest->seats = (weiri_seat *)(void *)(shared + layout->seats);
	newest->claims = (struct weiri_claim *)(void *)(shared + layout->claims);
	newest->count = geometry->seats * geometry->claims + 2;
	while (UINT32_C(1) << newest->bits < newest->count)
		newest->bits++;
}
