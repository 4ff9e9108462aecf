/*
 * frames.c - a ring of frames in shared memory that survives the death of any process at any
 * instruction.
 *
 * Algorithm. The ring is LTQ (ring/algorithm.h), unchanged; this file says how a slot holds a frame.
 * A slot's word is {state, frame number}, as a slot of ltq64.c is {state, cell}. Every slot always
 * has a frame: full ones an item, free ones an empty frame. Each process has a seat with a few hands,
 * and each hand always has exactly one frame. A producer writes its item into the frame of a hand.
 * One CAS of a slot then exchanges two frames: {free(lap), x} becomes {full(lap), f}, and the hand
 * has x. A consumer does the same with a full slot: {full(lap), x} becomes {free(lap + 1), f}. The
 * hand then has the item's frame, reads it in place, and puts that frame into a slot with its next
 * exchange. So there is no list of free frames, nothing is copied, and giving an item back is no
 * access to shared memory. No hand borrows from another: unlike LTQ64, where 64 enqueues that are
 * stalled make others wait, here stalled processes keep only their own hands.
 *
 * Death. Nothing breaks when a process is killed: the ring goes on, by the argument for stalled
 * threads. Only the hands of its seat are lost until a recovery says which frames they have. A
 * hand with frame f that died inside an exchange with {s, x} in slot i has f if its CAS did not
 * happen, and x if it did. Records tell which, and any process can read them:
 *
 *   hand.kept   {round, frame}: in this round the hand has this frame unless an exchange succeeded
 *   hand.at     {round, slot}: an exchange of this round may be under way; another round: none
 *   hand.from   the word {s, x} that this exchange replaces
 *   hand.wants  the token that x had when the hand saw x in that slot
 *   frame.token {round, hand}: the last hand that got this frame, in which round. Never repeats.
 *
 *   exchange by hand h, round r, frame f, slot i, which was seen as {s, x}:
 *     1 read x.token, look again at the slot: still {s, x}, so the token was x's while in the slot
 *     2 from = {s, x}     3 wants = x.token     4 at = {r, i}
 *     5 CAS slot i from {s, x} to {s + 1, f}; failed: the exchange is over, h has f
 *     6 x.token = {r + 1, h}     7 kept = {r + 1, x}
 *
 *   did the CAS of a dead hand h in round r happen? (only if at = {r, i})
 *     A the slot is {s + 1, f}: yes; only h puts f anywhere while f.token is {r, h}
 *     B its state is at most s, or it is {s + 1, not f}: no; h never executes again
 *     C its state is beyond s + 1: yes if some hand wants the token {r, h}, for by step 1 that
 *       token was seen in a slot; yes if f.token differs from {r, h}; otherwise no
 *
 * Why C is right. If the CAS happened, and the state is beyond s + 1, some hand q replaced
 *   {s + 1, f}. q stored {r, h} in q.wants before its CAS, which the look at the slot acquired. q
 *   overwrites q.wants only after step 6, so a scan that misses it acquires step 6 of q or of a later
 *   hand, and f.token, read after the scan, differs from {r, h}. No token repeats, so the answer
 *   does not depend on when, or by how many, the question is asked: A, B and C agree at all times.
 * Records of two attempts. An exchange that failed leaves its `at`, of the same round, while the next
 *   attempt writes from and wants. A hand that dies there has done no CAS with f, so f is in no slot
 *   and has the token {r, h}, which no hand saw in a slot: A and C say no, whatever the records say.
 * Recovery of a hand. If the CAS happened: x.token by CAS from wants to {r + 1, h}, then kept by CAS
 *   to {r + 1, x}. If not: kept by CAS to {r + 1, f}, then f.token by CAS from {r, h} to {r + 1, h}.
 *   If no exchange is under way: f.token by CAS from {r - 1, h} to {r, h}, for a recovery that died
 *   between those two. Reads count only if kept is the same after them, and then the seat is still the
 *   dead process's. Otherwise a recovery that stalls, and goes on when another has finished and the
 *   next process has the seat, would take that process's records for those of the dead one; or it
 *   would take a token that another recovery has written for the proof that the CAS happened. Every
 *   CAS expects a value that never repeats, so it fails if it comes late. So recovery can die at any
 *   step, run twice and beside others. Only after it is the seat given to another process.
 *
 * Invariants
 *   X1  each frame is named by exactly one slot, or is the frame of exactly one hand
 *   X2  the token of a frame in a slot is that of the hand and round that put it there, and differs
 *       from every token that the frame had before
 *   X3  a frame is written only by the process of the hand that has it
 *   X4  a number of a frame from shared memory is used only if it is below the process's own count
 *       of frames; an index of a slot is masked, and there are as many slots as the mask can name
 * Pairs: P1 to P4 and S of algorithm.h, through the slot's word.
 *   H1  step 6, or a token of recovery -> step 1, question C: the exchange of that hand is done
 *   H2  drop -> pick: the hand's private copy (between threads of a process)
 *   H3  steps 2 to 4 and 7 -> recovery: the records. Each is a release, because they must become
 *       visible in this order; a killed process leaves a prefix of them.
 *   H4  wants (3) -> question C, before the CAS: through the slot's word
 * Linearization: as in algorithm.h. Progress: lock-free, as LTQ; all records are plain stores.
 *   Recovery is wait-free: a look at each hand, for each hand of the seat.
 * Memory: capacity + seats * hands frames. Bounded by the geometry, which does not change.
 * Damaged memory. Another process can write anything anywhere. The constants of the ring (shape,
 *   addresses) are private memory. What is read from shared memory is a state, compared only; a frame
 *   number (X4); a hint, whose index is masked; a token, compared only. A slot with an impossible
 *   frame looks like a tombstone, so a walk ends there. So damage makes data wrong, or a call
 *   refuse, and no access is outside of the mapping.
 * ABA: a round has 64 - b bits where frames have numbers of b bits, at least 44; a token keeps 52
 *   of them. A value repeats after 2^44 exchanges of one hand, of which the process that compares
 *   would have to sleep through all but none: at 10 million a second 20 days, to the exact one.
 * Checked: stress/model/check_shm.c (hands over, recovery beside owners, each step a death),
 *   tests/test_shm_ring.c (kill -9 at each instruction), tests/fuzz/fuzz_shm.c.
 */
#include "shm/frames.h"

#include "ring/algorithm.h"
#include "shm/step.h"

#if defined(WEIRI_UNDER_MODEL)
WEIRI_TLS void (*weiri_shm_before_step)(void);
#endif

/* TOMB in a word: its top bit, which no state reaches. */
#define WORD_TOMB (UINT64_C(1) << 63)

static WEIRI_ALWAYS_INLINE struct weiri_frames *frames_of(const weir_ring *ring)
{
	return ring->spares;
}

static WEIRI_ALWAYS_INLINE _Atomic(uint64_t) *word_at(const weir_ring *ring, size_t index)
{
	return (_Atomic(uint64_t) *)ring->slots + index;
}

/* {state, frame}, {round, frame} and {round, slot} are divided at the same bit. */
static WEIRI_ALWAYS_INLINE uint64_t join(const weir_ring *ring, uint64_t upper, uint64_t lower)
{
	return upper << ring->cell_bits | lower;
}

static WEIRI_ALWAYS_INLINE uint32_t lower_of(const weir_ring *ring, uint64_t word)
{
	return (uint32_t)(word & ((UINT64_C(1) << ring->cell_bits) - 1));
}

static WEIRI_ALWAYS_INLINE uint64_t round_of(const weir_ring *ring, uint64_t word)
{
	return word >> ring->cell_bits;
}

/* Without the mark of a tombstone, which keeps its state and frame. */
static WEIRI_ALWAYS_INLINE uint64_t state_of(const weir_ring *ring, uint64_t word)
{
	return (word & ~WORD_TOMB) >> ring->cell_bits;
}

static WEIRI_ALWAYS_INLINE uint64_t token_of(uint64_t round, uint32_t hand)
{
	return round << WEIRI_FRAMES_HAND_BITS | hand;
}

/* -- exchange ---------------------------------------------------------------------------------- */

static WEIRI_ALWAYS_INLINE struct look look(const weir_ring *ring, size_t index)
{
	/* [seq_cst S; P1, P2 acquire] pairs with exchange(). */
	uint64_t word = weiri_load_seq_cst(word_at(ring, index));

	/* [X4] an impossible frame ends a walk, as a tombstone does. */
	if (WEIRI_UNLIKELY((word & WORD_TOMB) != 0 || lower_of(ring, word) >= frames_of(ring)->count))
		return (struct look){STATE_TOMB | state_of(ring, word), word, 0, NULL};
	return (struct look){word >> ring->cell_bits, word, 0, NULL};
}

/* Steps 1 to 7. Returns false if the slot has changed. */
static WEIRI_ALWAYS_INLINE bool exchange(weir_ring *ring, size_t index, const struct look *seen, size_t number)
{
	struct weiri_frames *frames = frames_of(ring);
	struct weiri_own_hand *own = &frames->own[number];
	uint32_t hand_number = frames->first_hand + (uint32_t)number, got = lower_of(ring, seen->raw);
	struct weiri_hand *hand = &frames->hands[hand_number];
	struct weiri_shared_frame *frame = weiri_frames_at(frames, got);
	uint64_t word = seen->raw;
	/* [H1 acquire] pairs with the store below: a token of a later exchange shows that exchange. */
	uint64_t token = weiri_load_acquire(&frame->token);

	WEIR_ASSERT1(X4, got < frames->count && own->frame < frames->count && index <= ring->shape.mask);
	/* [relaxed] after the acquire: if the word is the same, the token was the frame's in this slot. */
	if (WEIRI_UNLIKELY(weiri_load_relaxed(word_at(ring, index)) != word))
		return false;
	WEIRI_SHM_STEP();
	/* [H3 release] three times: a killed process leaves a prefix of these stores. */
	weiri_store_release(&hand->from, word);
	WEIRI_SHM_STEP();
	weiri_store_release(&hand->wants, token);
	WEIRI_SHM_STEP();
	weiri_store_release(&hand->at, join(ring, own->round, index));
	WEIRI_SHM_STEP();
	/* [seq_cst S; P1, P2 release] pairs with look(). [H4 release] pairs with recovery's look. */
	if (!weiri_cas_seq_cst(word_at(ring, index), &word, join(ring, seen->state + 1, own->frame)))
		return false;
	own->round++;
	own->frame = got;
	WEIRI_SHM_STEP();
	/* [H1 release] pairs with the load above and with question C. */
	weiri_store_release(&frame->token, token_of(own->round, hand_number));
	WEIRI_SHM_STEP();
	/* [H3 release] pairs with recovery. */
	weiri_store_release(&hand->kept, join(ring, own->round, got));
	return true;
}

/* `value` is the number of an own hand, here and below. */
static WEIRI_ALWAYS_INLINE bool fill(weir_ring *ring, size_t index, const struct look *seen, uint64_t value)
{
	return exchange(ring, index, seen, (size_t)value);
}

/* *value is the number of an own hand; the walk stores nothing else there. */
static WEIRI_ALWAYS_INLINE bool drain(weir_ring *ring, size_t index, const struct look *seen, uint64_t *value)
{
	return exchange(ring, index, seen, (size_t)*value);
}

static WEIRI_ALWAYS_INLINE bool bury(weir_ring *ring, size_t index, const struct look *seen)
{
	uint64_t word = seen->raw;

	/*
	 * [P3 release] pairs with look(): passes on the close. No acquire: look() acquired this word,
	 * and after a failure the caller looks again.
	 */
	return weiri_cas_release(word_at(ring, index), &word, word | WORD_TOMB);
}

static const struct slot_format format = {look, fill, drain, bury};

/* A walk that ends at a tombstone in a ring that is not closed met an impossible frame. */
static enum weir_status judge(const weir_ring *ring, enum weir_status status)
{
	bool at_tomb = status == WEIR_CANCELLED || status == WEIR_OUT_OF_RANGE;

	return at_tomb && !is_closed(ring) ? WEIR_DATA_LOSS : status;
}

/*
 * Begins a walk. [X4] A hint is what any process has written. Without its upper bits no ticket has the
 * state of a tombstone, by which look() reports an impossible frame.
 */
static WEIRI_ALWAYS_INLINE uint64_t begin_at(const _Atomic(uint64_t) *hint)
{
	return begin(hint) & (STATE_TOMB / 2 - 1);
}

static WEIRI_NOINLINE enum weir_status publish_from(weir_ring *ring, uint32_t own, uint64_t ticket)
{
	uint64_t value = own;
	enum weir_status status;

	(void)walk_enqueue(ring, &format, ticket, &value, 1, &status);
	return judge(ring, status);
}

enum weir_status weiri_frames_publish(struct weiri_frames *frames, uint32_t own)
{
	weir_ring *ring = frames->ring;
	uint64_t ticket = begin_at(&ring->tail_hint);

	if (WEIRI_UNLIKELY(is_closed(ring)))
		return WEIR_CANCELLED;
	return WEIRI_LIKELY(enqueue_at(ring, &format, ticket, own)) ? WEIR_OK : publish_from(ring, own, ticket);
}

static WEIRI_NOINLINE enum weir_status take_from(weir_ring *ring, uint32_t own, uint64_t ticket)
{
	uint64_t value = own;
	enum weir_status status;

	(void)walk_dequeue(ring, &format, ticket, &value, 1, WEIRI_RING_SEAL, NULL, &status);
	return judge(ring, status);
}

enum weir_status weiri_frames_take(struct weiri_frames *frames, uint32_t own)
{
	weir_ring *ring = frames->ring;
	uint64_t ticket = begin_at(&ring->head_hint), value = own;

	return WEIRI_LIKELY(dequeue_at(ring, &format, ticket, NULL, &value)) ? WEIR_OK : take_from(ring, own, ticket);
}

void weiri_frames_close(struct weiri_frames *frames)
{
	/* [P3 release] see algorithm.h. */
	weiri_store_release(&frames->ring->closed, 1u);
}

bool weiri_frames_closed(const struct weiri_frames *frames)
{
	return is_closed(frames->ring);
}

size_t weiri_frames_size_approx(const struct weiri_frames *frames)
{
	struct weiri_ring_counts counts = walk_counts(frames->ring, &format);
	uint64_t size = counts.in > counts.out ? counts.in - counts.out : 0;

	return size < frames->geometry.capacity ? (size_t)size : frames->geometry.capacity;
}

/* -- recovery ---------------------------------------------------------------------------------- */

/* What the records of a dead hand say. */
struct records {
	uint64_t kept, at, from, wants;
};

static struct records read_records(const struct weiri_hand *hand)
{
	struct records found;

	/* [H3 acquire] four times: pairs with exchange() and with another recovery. */
	found.kept = weiri_load_acquire(&hand->kept);
	found.at = weiri_load_acquire(&hand->at);
	found.from = weiri_load_acquire(&hand->from);
	found.wants = weiri_load_acquire(&hand->wants);
	return found;
}

/* Returns true if some hand saw in a slot the frame that had this token there. */
static bool is_wanted(const struct weiri_frames *frames, uint64_t token)
{
	for (uint32_t i = 0; i < frames->geometry.seats * frames->geometry.hands; i++) {
		/* [H4, H1 acquire] a later value shows the exchange that the hand has finished since. */
		if (weiri_load_acquire(&frames->hands[i].wants) == token)
			return true;
	}
	return false;
}

/* Question A, B, C. */
static bool has_happened(const struct weiri_frames *frames, const struct records *found, uint32_t hand)
{
	const weir_ring *ring = frames->ring;
	uint64_t token = token_of(round_of(ring, found->kept), hand), before = state_of(ring, found->from), now;
	uint32_t frame = lower_of(ring, found->kept);
	/* [H4 acquire] pairs with the CAS in exchange(). Not in S: it refuses nothing. */
	uint64_t word = weiri_load_acquire(word_at(ring, lower_of(ring, found->at) & ring->shape.mask));

	now = state_of(ring, word);
	if (now <= before)
		return false;
	if (now == before + 1)
		return lower_of(ring, word) == frame;
	/* [H1 acquire] after the scan: pairs with the token in exchange(). */
	return is_wanted(frames, token) || weiri_load_acquire(&weiri_frames_at(frames, frame)->token) != token;
}

/* By CAS, so that a call that comes late changes nothing. */
static void change(_Atomic(uint64_t) *word, uint64_t from, uint64_t to)
{
	WEIRI_SHM_STEP();
	/*
	 * [H1, H3 release] as the owner's stores. No acquire: a call that fails has read what another
	 * recovery stored, so the next process of the seat reads that, or a later value (coherence).
	 */
	(void)weiri_cas_release(word, &from, to);
}

/* A hand of the seat to recover, and what is known of it. */
struct patient {
	struct weiri_frames *frames;
	uint32_t hand, seat;
	uint64_t identity;
};

/* Whether what was read belongs together, and to the dead process. */
enum reading { WHOLE, CHANGED, OVER };

static enum reading judge_reading(const struct patient *patient, uint64_t kept)
{
	const struct weiri_frames *frames = patient->frames;
	const weiri_seat *seats = (const weiri_seat *)(const void *)(frames->shared + frames->layout.seats);

	/* [H3 acquire] changed: another recovery has gone on, and a token that was read may be its. */
	if (weiri_load_acquire(&frames->hands[patient->hand].kept) != kept)
		return weiri_seats_owner(&seats[patient->seat]) == patient->identity ? CHANGED : OVER;
	/* After all reads, which acquire: if the next process wrote what was read, it has the seat here. */
	return weiri_seats_owner(&seats[patient->seat]) == patient->identity ? WHOLE : OVER;
}

/* Writes what is known: the hand has this frame, and no exchange is under way. */
static void settle(const struct patient *patient, const struct records *found, bool under_way, bool happened)
{
	struct weiri_frames *frames = patient->frames;
	const weir_ring *ring = frames->ring;
	struct weiri_hand *hand = &frames->hands[patient->hand];
	uint64_t round = round_of(ring, found->kept);
	uint32_t kept = lower_of(ring, found->kept), wanted = lower_of(ring, found->from);
	_Atomic(uint64_t) *token = &weiri_frames_at(frames, happened ? wanted : kept)->token;

	if (happened) {
		change(token, found->wants, token_of(round + 1, patient->hand));
		change(&hand->kept, found->kept, join(ring, round + 1, wanted));
	} else if (under_way) {
		change(&hand->kept, found->kept, join(ring, round + 1, kept));
		change(token, token_of(round, patient->hand), token_of(round + 1, patient->hand));
	} else {
		change(token, token_of(round - 1, patient->hand), token_of(round, patient->hand));
	}
}

/* Returns false if the records are damaged. */
static bool recover_hand(const struct patient *patient)
{
	enum { MOST = 4 }; /* only one of all recoveries of a dead hand changes `kept` */
	struct weiri_frames *frames = patient->frames;
	const weir_ring *ring = frames->ring;

	for (int i = 0; i < MOST; i++) {
		const struct records found = read_records(&frames->hands[patient->hand]);
		bool under_way = round_of(ring, found.at) == round_of(ring, found.kept), happened;
		enum reading reading;

		if (lower_of(ring, found.kept) >= frames->count ||
		    (under_way && lower_of(ring, found.from) >= frames->count)) /* [X4] */
			return judge_reading(patient, found.kept) == OVER;
		happened = under_way && has_happened(frames, &found, patient->hand);
		reading = judge_reading(patient, found.kept);
		if (reading == WHOLE)
			settle(patient, &found, under_way, happened);
		if (reading != CHANGED)
			return true;
	}
	return false;
}

bool weiri_frames_recover_hands(struct weiri_frames *frames, uint32_t seat, uint64_t identity)
{
	bool whole = true;

	for (uint32_t i = 0; i < frames->geometry.hands; i++) {
		const struct patient patient = {frames, seat * frames->geometry.hands + i, seat, identity};

		whole &= recover_hand(&patient);
	}
	return whole;
}

bool weiri_frames_recover_seat(struct weiri_frames *frames, uint32_t seat, uint64_t self, size_t *freed)
{
	weiri_seat *word = weiri_frames_seats(frames) + seat;
	uint64_t owner = weiri_seats_owner(word);

	if (owner == 0 || owner == self || !weiri_seats_is_gone(owner))
		return true;
	if (!weiri_frames_recover_hands(frames, seat, owner))
		return false;
	*freed += weiri_seats_leave(word, owner);
	return true;
}

bool weiri_frames_recover_gone(struct weiri_frames *frames, uint64_t self, size_t *freed)
{
	bool whole = true;

	*freed = 0;
	for (uint32_t i = 0; i < frames->geometry.seats; i++)
		whole &= weiri_frames_recover_seat(frames, i, self, freed);
	return whole;
}

/* -- layout ------------------------------------------------------------------------------------ */

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) / to * to;
}

static uint32_t count_of(const struct weiri_frames_geometry *geometry)
{
	return geometry->capacity + geometry->seats * geometry->hands;
}

static struct weiri_ring_shape shape_of(uint32_t capacity)
{
	struct weiri_ring_shape shape = {.shift = 0};

	while (UINT32_C(1) << shape.shift < capacity)
		shape.shift++;
	shape.mask = ((size_t)1 << shape.shift) - 1;
	shape.end_index = capacity & shape.mask;
	return shape;
}

static unsigned cell_bits_of(uint32_t count)
{
	unsigned bits = 0;

	while (UINT32_C(1) << bits < count)
		bits++;
	return bits;
}

bool weiri_frames_lay_out(const struct weiri_frames_geometry *geometry, struct weiri_frames_layout *layout)
{
	enum { HINTS = sizeof(weir_ring) - offsetof(weir_ring, tail_hint), BELLS = 2 * WEIRI_APART };
	size_t words;

	if (geometry->capacity < 1 || geometry->capacity > WEIRI_FRAMES_MAX_CAPACITY || geometry->seats < 1 ||
	    geometry->seats > WEIRI_FRAMES_MAX_SEATS || geometry->hands < 1 || geometry->hands > WEIRI_FRAMES_MAX_HANDS ||
	    geometry->item_size < WEIRI_FRAMES_MIN_ITEM || geometry->item_size > WEIRI_FRAMES_MAX_ITEM)
		return false;
	words = shape_of(geometry->capacity).mask + 1;
	/* A short item shares the line of its frame's token; a longer one begins with a line. */
	layout->payload = geometry->item_size + sizeof(struct weiri_shared_frame) <= WEIRI_LINE
	                      ? sizeof(struct weiri_shared_frame)
	                      : WEIRI_LINE;
	layout->stride = round_up(layout->payload + geometry->item_size, WEIRI_LINE);
	layout->slots = HINTS;
	layout->bells = round_up(layout->slots + words * sizeof(uint64_t), WEIRI_APART);
	layout->seats = layout->bells + BELLS;
	layout->hands = round_up(layout->seats + geometry->seats * sizeof(uint64_t), WEIRI_APART);
	layout->frames = layout->hands + (size_t)geometry->seats * geometry->hands * sizeof(struct weiri_hand);
	/* In 64 bits: where addresses have 32, the ring may be too large for them. */
	if ((uint64_t)count_of(geometry) * layout->stride > PTRDIFF_MAX / 2 - layout->frames)
		return false;
	layout->size = layout->frames + count_of(geometry) * layout->stride;
	return true;
}

void weiri_frames_fill(const struct weiri_frames_geometry *geometry, const struct weiri_frames_layout *layout,
                       void *shared)
{
	char *memory = shared;
	_Atomic(uint64_t) *slots = (_Atomic(uint64_t) *)(void *)(memory + layout->slots);
	struct weiri_hand *hands = (struct weiri_hand *)(void *)(memory + layout->hands);
	const unsigned bits = cell_bits_of(count_of(geometry));

	/* [relaxed] not published yet. Slot i begins with frame i, hand k with frame capacity + k. */
	for (uint32_t i = 0; i < geometry->capacity; i++)
		weiri_store_relaxed(&slots[i], i);
	for (uint32_t k = 0; k < geometry->seats * geometry->hands; k++) {
		struct weiri_shared_frame *frame =
			(struct weiri_shared_frame *)(void *)(memory + layout->frames + (geometry->capacity + k) * layout->stride);

		weiri_store_relaxed(&hands[k].kept, UINT64_C(1) << bits | (geometry->capacity + k));
		weiri_store_relaxed(&frame->token, token_of(1, k));
	}
}

void weiri_frames_open(struct weiri_frames *frames, weir_ring *ring, const struct weiri_frames_geometry *geometry,
                       const struct weiri_frames_layout *layout)
{
	char *shared = (char *)ring + offsetof(weir_ring, tail_hint);

	ring->capacity = geometry->capacity;
	ring->shape = shape_of(geometry->capacity);
	ring->format = WEIR_RING_FORMAT_LTQ64;
	ring->cell_bits = cell_bits_of(count_of(geometry));
	ring->slots = shared + layout->slots;
	ring->spares = frames;
	frames->geometry = *geometry;
	frames->layout = *layout;
	frames->ring = ring;
	frames->shared = shared;
	frames->hands = (struct weiri_hand *)(void *)(shared + layout->hands);
	frames->count = count_of(geometry);
}

bool weiri_frames_sit(struct weiri_frames *frames, uint32_t seat)
{
	const uint32_t hands = frames->geometry.hands;

	frames->first_hand = seat * hands;
	for (uint32_t i = 0; i < hands; i++) {
		/* [H3 acquire] pairs with the owner before, or with recovery. */
		uint64_t kept = weiri_load_acquire(&frames->hands[frames->first_hand + i].kept);

		frames->own[i] = (struct weiri_own_hand){round_of(frames->ring, kept), lower_of(frames->ring, kept)};
		if (frames->own[i].frame >= frames->count) /* [X4] */
			return false;
	}
	/* [relaxed] no other thread of this process knows the ring yet. */
	weiri_store_relaxed(&frames->idle, hands < 64 ? (UINT64_C(1) << hands) - 1 : UINT64_MAX);
	return true;
}
