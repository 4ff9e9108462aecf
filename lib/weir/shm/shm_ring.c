/*
 * shm_ring.c - the public face of the ring between processes: files, seats, and frames that are
 * lent.
 *
 * frames.c moves and recovers frames, doorbell.c waits, seats.c knows which process is gone, mapping.c maps. The
 * handle is the beginning of the private memory before the mapping, and the constants of the ring
 * are its end.
 */
#include <weir/shm_ring.h>

#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "shm/doorbell.h"
#include "shm/frames.h"
#include "shm/mapping.h"
#include "shm/seats.h"

static const char what[] = "shm_ring";

enum { DEFAULT_PROCESSES = 16, DEFAULT_FRAMES = 4 };

struct weir_shm_ring {
	struct weiri_frames frames; /* frames.ring is NULL in the child of a fork, where all is 0 */
	struct weiri_bell bells[2]; /* by enum weir_shm_ring_side */
	uint64_t identity;          /* of this process */
	uint32_t seat;
	struct weiri_mapping mapping;
};

_Static_assert((int)WEIR_SHM_RING_MAX_CAPACITY == (int)WEIRI_FRAMES_MAX_CAPACITY &&
                   (int)WEIR_SHM_RING_MIN_ITEM == (int)WEIRI_FRAMES_MIN_ITEM &&
                   (int)WEIR_SHM_RING_MAX_ITEM == (int)WEIRI_FRAMES_MAX_ITEM &&
                   (int)WEIR_SHM_RING_MAX_PROCESSES == (int)WEIRI_FRAMES_MAX_SEATS &&
                   (int)WEIR_SHM_RING_MAX_FRAMES == (int)WEIRI_FRAMES_MAX_HANDS,
               "what the header promises");

/* What precedes the hints: the handle, and the constants of the ring. */
enum { PRIVATE_LEAST = sizeof(struct weir_shm_ring) + offsetof(weir_ring, tail_hint) };

static bool is_forked(const weir_shm_ring *ring)
{
	return WEIRI_UNLIKELY(ring->frames.ring == NULL);
}

/* -- create and attach ------------------------------------------------------------------------- */

static enum weir_status read_options(size_t capacity, size_t item_size, const struct weir_shm_ring_options *options,
                                     struct weiri_mapping_head *head, weir_error *error)
{
	struct weir_shm_ring_options given;
	enum weir_status status;

	if (capacity == 0 || capacity > WEIR_SHM_RING_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: capacity is %zu, must be 1 to %d", what, capacity,
		                  WEIR_SHM_RING_MAX_CAPACITY);
	if (item_size < WEIR_SHM_RING_MIN_ITEM || item_size > WEIR_SHM_RING_MAX_ITEM)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: item_size is %zu, must be %d to %d", what, item_size,
		                  WEIR_SHM_RING_MIN_ITEM, WEIR_SHM_RING_MAX_ITEM);
	status = weiri_options_read(what, options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags(what, given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	if (given.processes > WEIR_SHM_RING_MAX_PROCESSES || given.frames_per_process > WEIR_SHM_RING_MAX_FRAMES)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT,
		                  "%s: %u processes with %u frames each, must be at most %d with %d", what,
		                  (unsigned)given.processes, (unsigned)given.frames_per_process, WEIR_SHM_RING_MAX_PROCESSES,
		                  WEIR_SHM_RING_MAX_FRAMES);
	*head = (struct weiri_mapping_head){
		.kind = WEIRI_MAPPING_RING,
		.version = WEIRI_MAPPING_VERSION,
		.capacity = (uint32_t)capacity,
		.item_size = (uint32_t)item_size,
		.seats = given.processes != 0 ? given.processes : DEFAULT_PROCESSES,
		.hands = given.frames_per_process != 0 ? given.frames_per_process : DEFAULT_FRAMES,
		.namespace = weiri_seats_namespace(),
	};
	return WEIR_OK;
}

static struct weiri_frames_geometry geometry_of(const struct weiri_mapping_head *head)
{
	return (struct weiri_frames_geometry){head->capacity, head->item_size, head->seats, head->hands};
}

/* Makes the handle in the private memory. */
static weir_shm_ring *open_mapping(const struct weiri_mapping *mapping, const struct weiri_frames_geometry *geometry,
                                   const struct weiri_frames_layout *layout, uint64_t identity)
{
	weir_shm_ring *ring = (weir_shm_ring *)(void *)mapping->base;

	ring->mapping = *mapping;
	ring->identity = identity;
	for (size_t i = 0; i < 2; i++) {
		/* cppcheck-suppress AssignmentAddressToInteger ; the word is a pointer */
		ring->bells[i].word = (_Atomic(uint32_t) *)(void *)(mapping->shared + layout->bells + i * WEIRI_APART);
		weiri_store_relaxed(&ring->bells[i].eventfd, -1); /* [relaxed] not published yet */
	}
	weiri_frames_open(&ring->frames, (weir_ring *)(void *)(mapping->shared - offsetof(weir_ring, tail_hint)), geometry,
	                  layout);
	return ring;
}

static enum weir_status sit_down(weir_shm_ring *ring, weir_error *error)
{
	const uint32_t seats = ring->frames.geometry.seats;
	weiri_seat *words = weiri_frames_seats(&ring->frames);
	int seat = weiri_seats_take(words, seats, ring->identity);
	size_t freed;

	if (seat < 0) {
		(void)weiri_frames_recover_gone(&ring->frames, ring->identity, &freed);
		seat = weiri_seats_take(words, seats, ring->identity);
	}
	if (seat < 0)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: %u process%s attached, and no more can be", what,
		                  (unsigned)seats, seats == 1 ? " is" : "es are");
	ring->seat = (uint32_t)seat;
	if (weiri_frames_sit(&ring->frames, ring->seat))
		return WEIR_OK;
	(void)weiri_seats_leave(&words[seat], ring->identity);
	return weiri_fail(error, WEIR_DATA_LOSS, "%s: seat %d is damaged", what, seat);
}

static enum weir_status know_self(uint64_t *identity, weir_error *error)
{
	*identity = weiri_seats_self();
	if (*identity == 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: /proc does not tell when this process started", what);
	return WEIR_OK;
}

/* Makes the handle, sits down, and publishes the head unless fd is -1. Unmaps on failure. */
static enum weir_status start(int fd, const struct weiri_mapping *mapping, const struct weiri_mapping_head *head,
                              uint64_t identity, weir_shm_ring **out, weir_error *error)
{
	const struct weiri_frames_geometry geometry = geometry_of(head);
	struct weiri_frames_layout layout;
	enum weir_status status;
	weir_shm_ring *ring;

	(void)weiri_frames_lay_out(&geometry, &layout); /* the caller has checked the geometry */
	ring = open_mapping(mapping, &geometry, &layout, identity);
	if (fd >= 0)
		weiri_frames_fill(&geometry, &layout, mapping->shared);
	status = sit_down(ring, error);
	if (status == WEIR_OK && fd >= 0)
		status = weiri_mapping_publish(what, fd, head, error);
	if (status == WEIR_OK) {
		*out = ring;
	} else {
		weiri_mapping_close(mapping);
	}
	return status;
}

enum weir_status weir_shm_ring_create(int fd, size_t capacity, size_t item_size,
                                      const struct weir_shm_ring_options *options, weir_shm_ring **out,
                                      weir_error *error)
{
	struct weiri_mapping_head head;
	struct weiri_frames_geometry geometry;
	struct weiri_frames_layout layout;
	struct weiri_mapping mapping;
	enum weir_status status;
	uint64_t identity;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	status = read_options(capacity, item_size, options, &head, error);
	if (status == WEIR_OK)
		status = know_self(&identity, error);
	if (status != WEIR_OK)
		return status;
	geometry = geometry_of(&head);
	if (!weiri_frames_lay_out(&geometry, &layout))
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "%s: the frames do not fit into the address space", what);
	head.size = layout.size;
	status = weiri_mapping_create(what, fd, &head, PRIVATE_LEAST, &mapping, error);
	return status == WEIR_OK ? start(fd, &mapping, &head, identity, out, error) : status;
}

enum weir_status weir_shm_ring_attach(int fd, weir_shm_ring **out, weir_error *error)
{
	struct weiri_mapping_head head;
	struct weiri_frames_geometry geometry;
	struct weiri_frames_layout layout;
	struct weiri_mapping mapping;
	enum weir_status status;
	uint64_t identity;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "%s: out is NULL", what);
	status = weiri_mapping_read(what, fd, WEIRI_MAPPING_RING, &head, error);
	if (status == WEIR_OK)
		status = know_self(&identity, error);
	if (status != WEIR_OK)
		return status;
	geometry = geometry_of(&head);
	if (!weiri_frames_lay_out(&geometry, &layout) || head.size != layout.size)
		return weiri_fail(error, WEIR_DATA_LOSS, "%s: the head describes no ring", what);
	status = weiri_mapping_open(what, fd, &head, PRIVATE_LEAST, &mapping, error);
	return status == WEIR_OK ? start(-1, &mapping, &head, identity, out, error) : status;
}

enum weir_status weir_shm_ring_destroy(weir_shm_ring *ring, weir_error *error)
{
	struct weiri_mapping mapping;
	uint64_t all;

	if (ring == NULL)
		return WEIR_OK;
	if (is_forked(ring))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: the handle belongs to the parent of this process",
		                  what);
	/* [acquire] pairs with the hook's last access (doorbell.c). */
	if (weiri_load_acquire(&ring->bells[0].tokens) != 0 || weiri_load_acquire(&ring->bells[1].tokens) != 0)
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: a token that is being fired still wakes a waiter",
		                  what);
	all = UINT64_MAX >> (WEIRI_FRAMES_MAX_HANDS - ring->frames.geometry.hands);
	/* [H2 acquire] what the last user of each frame did. */
	if (!weiri_cas_acquire(&ring->frames.idle, &all, UINT64_C(0)))
		return weiri_fail(error, WEIR_FAILED_PRECONDITION, "%s: a frame is reserved or taken", what);
	(void)weiri_seats_leave(&weiri_frames_seats(&ring->frames)[ring->seat], ring->identity);
	mapping = ring->mapping;
	weiri_mapping_close(&mapping);
	return WEIR_OK;
}

/* -- frames ------------------------------------------------------------------------------------ */

static WEIRI_COLD enum weir_status no_hand(const weir_shm_ring *ring)
{
	return is_forked(ring) ? WEIR_FAILED_PRECONDITION : WEIR_RESOURCE_EXHAUSTED;
}

static bool is_lent(const weir_shm_ring *ring, const struct weir_shm_frame *frame)
{
	/* [relaxed] the caller has the frame, so its bit is clear as of before. */
	return frame->hand < ring->frames.geometry.hands &&
	       (weiri_load_relaxed(&ring->frames.idle) >> frame->hand & 1) == 0;
}

static void lend(const weir_shm_ring *ring, uint32_t hand, size_t size, struct weir_shm_frame *frame)
{
	frame->data = weiri_frames_payload(&ring->frames, weiri_frames_of(&ring->frames, hand));
	frame->size = size;
	frame->hand = hand;
}

/* Read once: a process that writes it meanwhile makes the item wrong, but never larger than its frame. */
static size_t size_of_item(const weir_shm_ring *ring, uint32_t hand)
{
	const size_t most = ring->frames.geometry.item_size;
	/* [relaxed] the publisher wrote it before it published the frame (P1). */
	uint64_t size = weiri_load_relaxed(&weiri_frames_of(&ring->frames, hand)->size);

	return size < most ? (size_t)size : most;
}

static enum weir_status publish_hand(weir_shm_ring *ring, uint32_t hand, size_t size)
{
	enum weir_status status;

	weiri_store_relaxed(&weiri_frames_of(&ring->frames, hand)->size, size); /* [relaxed] X3; P1 publishes it */
	status = weiri_frames_publish(&ring->frames, hand);
	if (WEIRI_LIKELY(status == WEIR_OK))
		weiri_bell_ring(&ring->bells[WEIR_SHM_RING_ITEMS]);
	return status;
}

static enum weir_status take_hand(weir_shm_ring *ring, uint32_t hand)
{
	enum weir_status status = weiri_frames_take(&ring->frames, hand);

	if (WEIRI_LIKELY(status == WEIR_OK))
		weiri_bell_ring(&ring->bells[WEIR_SHM_RING_ROOM]);
	return status;
}

enum weir_status weir_shm_ring_try_reserve(weir_shm_ring *ring, struct weir_shm_frame *frame)
{
	int hand;

	if (WEIRI_UNLIKELY(ring == NULL || frame == NULL))
		return WEIR_INVALID_ARGUMENT;
	hand = weiri_frames_pick(&ring->frames);
	if (WEIRI_UNLIKELY(hand < 0))
		return no_hand(ring);
	lend(ring, (uint32_t)hand, ring->frames.geometry.item_size, frame);
	return WEIR_OK;
}

enum weir_status weir_shm_ring_try_publish(weir_shm_ring *ring, struct weir_shm_frame *frame, size_t size)
{
	enum weir_status status;

	if (WEIRI_UNLIKELY(ring == NULL || frame == NULL))
		return WEIR_INVALID_ARGUMENT;
	if (is_forked(ring))
		return WEIR_FAILED_PRECONDITION;
	if (WEIRI_UNLIKELY(!is_lent(ring, frame) || size > ring->frames.geometry.item_size))
		return WEIR_INVALID_ARGUMENT;
	status = publish_hand(ring, frame->hand, size);
	if (WEIRI_LIKELY(status == WEIR_OK))
		weiri_frames_drop(&ring->frames, frame->hand);
	return status;
}

enum weir_status weir_shm_ring_try_take(weir_shm_ring *ring, struct weir_shm_frame *frame)
{
	enum weir_status status;
	int hand;

	if (WEIRI_UNLIKELY(ring == NULL || frame == NULL))
		return WEIR_INVALID_ARGUMENT;
	hand = weiri_frames_pick(&ring->frames);
	if (WEIRI_UNLIKELY(hand < 0))
		return no_hand(ring);
	status = take_hand(ring, (uint32_t)hand);
	if (WEIRI_LIKELY(status == WEIR_OK)) {
		lend(ring, (uint32_t)hand, size_of_item(ring, (uint32_t)hand), frame);
	} else {
		weiri_frames_drop(&ring->frames, (uint32_t)hand);
	}
	return status;
}

enum weir_status weir_shm_ring_release(weir_shm_ring *ring, struct weir_shm_frame *frame)
{
	if (WEIRI_UNLIKELY(ring == NULL || frame == NULL || is_forked(ring) || !is_lent(ring, frame)))
		return WEIR_INVALID_ARGUMENT;
	weiri_frames_drop(&ring->frames, frame->hand);
	return WEIR_OK;
}

/* -- copies ------------------------------------------------------------------------------------ */

enum weir_status weir_shm_ring_try_enqueue(weir_shm_ring *ring, const void *data, size_t size)
{
	struct weir_shm_frame frame;
	enum weir_status status;

	if (WEIRI_UNLIKELY(ring == NULL || data == NULL))
		return WEIR_INVALID_ARGUMENT;
	status = weir_shm_ring_try_reserve(ring, &frame);
	if (WEIRI_UNLIKELY(status != WEIR_OK))
		return status;
	if (WEIRI_LIKELY(size <= frame.size)) {
		memcpy(frame.data, data, size);
		status = publish_hand(ring, frame.hand, size);
	} else {
		status = WEIR_INVALID_ARGUMENT;
	}
	weiri_frames_drop(&ring->frames, frame.hand);
	return status;
}

enum weir_status weir_shm_ring_try_dequeue(weir_shm_ring *ring, void *buffer, size_t room, size_t *size)
{
	struct weir_shm_frame frame;
	enum weir_status status;

	if (WEIRI_UNLIKELY(ring == NULL || buffer == NULL || size == NULL || room < ring->frames.geometry.item_size))
		return WEIR_INVALID_ARGUMENT;
	status = weir_shm_ring_try_take(ring, &frame);
	if (status != WEIR_OK)
		return status;
	memcpy(buffer, frame.data, frame.size);
	*size = frame.size;
	weiri_frames_drop(&ring->frames, frame.hand);
	return WEIR_OK;
}

/* -- waiting ----------------------------------------------------------------------------------- */

/* Which call waits, and its arguments. */
struct waiting {
	weir_shm_ring *ring;
	struct weir_shm_frame *frame;
	void *buffer;
	size_t size, *out_size;
};

static enum weir_status attempt_publish(void *context)
{
	const struct waiting *w = context;

	return weir_shm_ring_try_publish(w->ring, w->frame, w->size);
}

static enum weir_status attempt_take(void *context)
{
	const struct waiting *w = context;

	return weir_shm_ring_try_take(w->ring, w->frame);
}

static enum weir_status attempt_dequeue(void *context)
{
	const struct waiting *w = context;

	return weir_shm_ring_try_dequeue(w->ring, w->buffer, w->size, w->out_size);
}

/* The message of a status that an attempt returned. */
static enum weir_status explain(enum weir_status status, weir_error *error)
{
	switch (status) {
	case WEIR_CANCELLED: return weiri_fail(error, status, "%s: the ring is closed", what);
	case WEIR_OUT_OF_RANGE: return weiri_fail(error, status, "%s: the ring is closed and drained", what);
	case WEIR_RESOURCE_EXHAUSTED: return weiri_fail(error, status, "%s: all frames of this process are in use", what);
	case WEIR_INVALID_ARGUMENT:
		return weiri_fail(error, status, "%s: an argument is NULL, too large or not lent", what);
	case WEIR_FAILED_PRECONDITION:
		return weiri_fail(error, status, "%s: the handle belongs to the parent of this process", what);
	case WEIR_DATA_LOSS: return weiri_fail(error, status, "%s: the shared memory is damaged", what);
	default: return status;
	}
}

static enum weir_status wait_for(enum weir_shm_ring_side side, weiri_bell_attempt *attempt, struct waiting *waiting,
                                 uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	const struct weiri_bell_wait wait = {what, attempt, explain, waiting, deadline_ns, cancel};

	if (waiting->ring == NULL)
		return explain(WEIR_INVALID_ARGUMENT, error);
	return weiri_bell_wait(&waiting->ring->bells[side], &wait, error);
}

enum weir_status weir_shm_ring_publish(weir_shm_ring *ring, struct weir_shm_frame *frame, size_t size,
                                       uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	struct waiting waiting = {.ring = ring, .frame = frame, .size = size};

	return wait_for(WEIR_SHM_RING_ROOM, attempt_publish, &waiting, deadline_ns, cancel, error);
}

enum weir_status weir_shm_ring_take(weir_shm_ring *ring, struct weir_shm_frame *frame, uint64_t deadline_ns,
                                    weir_cancel *cancel, weir_error *error)
{
	struct waiting waiting = {.ring = ring, .frame = frame};

	return wait_for(WEIR_SHM_RING_ITEMS, attempt_take, &waiting, deadline_ns, cancel, error);
}

enum weir_status weir_shm_ring_enqueue(weir_shm_ring *ring, const void *data, size_t size, uint64_t deadline_ns,
                                       weir_cancel *cancel, weir_error *error)
{
	struct weir_shm_frame frame;
	enum weir_status status = data == NULL ? WEIR_INVALID_ARGUMENT : weir_shm_ring_try_reserve(ring, &frame);

	if (status != WEIR_OK)
		return explain(status, error);
	if (size <= frame.size)
		memcpy(frame.data, data, size);
	status = weir_shm_ring_publish(ring, &frame, size, deadline_ns, cancel, error);
	if (status != WEIR_OK)
		(void)weir_shm_ring_release(ring, &frame);
	return status;
}

enum weir_status weir_shm_ring_dequeue(weir_shm_ring *ring, void *buffer, size_t room, size_t *size,
                                       uint64_t deadline_ns, weir_cancel *cancel, weir_error *error)
{
	struct waiting waiting = {.ring = ring, .buffer = buffer, .size = room, .out_size = size};

	return wait_for(WEIR_SHM_RING_ITEMS, attempt_dequeue, &waiting, deadline_ns, cancel, error);
}

/* -- the rest ---------------------------------------------------------------------------------- */

enum weir_status weir_shm_ring_recover(weir_shm_ring *ring, size_t *seats)
{
	size_t freed;
	bool whole;

	if (ring == NULL)
		return WEIR_INVALID_ARGUMENT;
	if (is_forked(ring))
		return WEIR_FAILED_PRECONDITION;
	whole = weiri_frames_recover_gone(&ring->frames, ring->identity, &freed);
	if (seats != NULL)
		*seats = freed;
	return whole ? WEIR_OK : WEIR_DATA_LOSS;
}

void weir_shm_ring_close(weir_shm_ring *ring)
{
	if (ring == NULL || is_forked(ring))
		return;
	weiri_frames_close(&ring->frames);
	weiri_bell_ring_slowly(&ring->bells[WEIR_SHM_RING_ITEMS]);
	weiri_bell_ring_slowly(&ring->bells[WEIR_SHM_RING_ROOM]);
}

bool weir_shm_ring_closed(const weir_shm_ring *ring)
{
	return ring != NULL && !is_forked(ring) && weiri_frames_closed(&ring->frames);
}

size_t weir_shm_ring_size_approx(const weir_shm_ring *ring)
{
	return ring != NULL && !is_forked(ring) ? weiri_frames_size_approx(&ring->frames) : 0;
}

size_t weir_shm_ring_capacity(const weir_shm_ring *ring)
{
	return ring != NULL ? ring->frames.geometry.capacity : 0;
}

size_t weir_shm_ring_item_size(const weir_shm_ring *ring)
{
	return ring != NULL ? ring->frames.geometry.item_size : 0;
}

enum weir_status weir_shm_ring_set_bell(weir_shm_ring *ring, enum weir_shm_ring_side side, int fd)
{
	if (ring == NULL || (side != WEIR_SHM_RING_ITEMS && side != WEIR_SHM_RING_ROOM))
		return WEIR_INVALID_ARGUMENT;
	if (is_forked(ring))
		return WEIR_FAILED_PRECONDITION;
	return weiri_bell_set_eventfd(&ring->bells[side], fd);
}

enum weir_status weir_shm_ring_ask_bell(weir_shm_ring *ring, enum weir_shm_ring_side side)
{
	if (ring == NULL || (side != WEIR_SHM_RING_ITEMS && side != WEIR_SHM_RING_ROOM))
		return WEIR_INVALID_ARGUMENT;
	if (is_forked(ring))
		return WEIR_FAILED_PRECONDITION;
	(void)weiri_bell_ask(&ring->bells[side], WEIRI_BELL_POLLER);
	return WEIR_OK;
}
