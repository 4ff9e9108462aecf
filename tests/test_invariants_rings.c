/*
 * test_invariants_rings.c - the assertions that guard rings, and what processes share, each fail
 * on a damaged structure.
 */
#include <weir/priority_queue.h>
#include <weir/spsc.h>

#include "ring/layout.h"
#include "ring/ring_list.h"
#include "ring/span16.h"
#include "shm/frames.h"
#include "shm/newest.h"
#include "invariants_kit.h"
#include "spsc_members.h"

/* -- ring -------------------------------------------------------------------------------------- */

static weir_ring *ring_of(enum weir_ring_format format)
{
	struct weir_ring_options options = {WEIR_RING_OPTIONS_INIT, .format = format};
	weir_ring *ring = NULL;

	if (weir_ring_create(4, &options, &ring, NULL) != WEIR_OK)
		_exit(1);
	return ring;
}

static void skip_a_ticket(void)
{
	weir_ring *ring = ring_of(WEIR_RING_FORMAT_LTQ64);
	_Atomic(uint64_t) *words = ring->slots;

	/* The second slot is full, and the first is free. */
	weiri_store_relaxed(&words[1], weiri_load_relaxed(&words[1]) | UINT64_C(1) << ring->cell_bits);
	weir_ring_destroy(ring, NULL);
}

static void take_too_early(void)
{
	weir_ring *ring = ring_of(WEIR_RING_FORMAT_LTQ64);
	_Atomic(uint64_t) *words = ring->slots;

	/* All slots are filled in the first lap, and the last one is free in the next. */
	for (size_t i = 0; i < 4; i++)
		weiri_store_relaxed(&words[i], weiri_load_relaxed(&words[i]) | (i == 3 ? UINT64_C(2) : UINT64_C(1))
		                                                                   << ring->cell_bits);
	weir_ring_destroy(ring, NULL);
}

static void hint_too_far(void)
{
	weir_ring *ring = ring_of(WEIR_RING_FORMAT_BEST);

	weiri_store_relaxed(&ring->tail_hint, 1);
	weir_ring_destroy(ring, NULL);
}

static void lose_the_tail(void)
{
	weir_ring_list *list = NULL;

	if (weir_ring_list_create(NULL, &list, NULL) == WEIR_OK) {
		weiri_store_relaxed(&list->tail, NULL);
		weir_ring_list_destroy(list, NULL);
	}
}

static void link_behind_an_open_ring(void)
{
	weir_ring_list *list = NULL;

	if (weir_ring_list_create(NULL, &list, NULL) == WEIR_OK) {
		struct weiri_ring_segment *first = weiri_load_relaxed(&list->head);

		weiri_store_relaxed(&first->next, first);
		weir_ring_list_destroy(list, NULL);
	}
}

/* The first members are those of priority_queue.c. */
struct priority_node {
	_Atomic(uint64_t) link, ticket;
	_Atomic(int64_t) key;
	_Atomic(uint64_t) value;
};
struct priority_queue {
	_Atomic(uint32_t) closing;
	size_t capacity;
	uint64_t index_mask, one, furthest;
	size_t tall;
	unsigned tag_shift, levels;
	struct priority_node *nodes;
};

static void swap_two_keys(void)
{
	weir_priority_queue *queue = NULL;
	struct priority_queue *inside;

	if (weir_priority_queue_create(2, NULL, &queue, NULL) != WEIR_OK ||
	    weir_priority_queue_try_enqueue(queue, 1, 0) != WEIR_OK ||
	    weir_priority_queue_try_enqueue(queue, 2, 0) != WEIR_OK)
		_exit(1);
	inside = (struct priority_queue *)(void *)queue;
	for (size_t i = 1; i <= 3; i++)
		weiri_store_relaxed(&inside->nodes[i].key, -weiri_load_relaxed(&inside->nodes[i].key));
	weir_priority_queue_destroy(queue, NULL);
}

Test(invariants_rings, priority_queue)
{
	expect_broken("I3", swap_two_keys);
}

/* A ring of 4 values in the SPAN16 format, with a span of 3 inside. */
static weir_ring *ring_of_a_span(void)
{
	weir_ring *ring = ring_of(WEIR_RING_FORMAT_SPAN16);
	uint64_t values[3] = {1, 2, 3};
	size_t done;

	if (weir_ring_try_enqueue_many(ring, values, 3, &done) != WEIR_OK || done != 3)
		_exit(1);
	return ring;
}

static void leave_a_gap_behind_the_tail(void)
{
	weir_ring *ring = ring_of_a_span();
	uint64_t beyond = weiri_load_relaxed(&ring->tail_hint) + 1;

	weiri_store_relaxed(&slot_of(ring, beyond)->state, base_of(ring, beyond) + 1);
	weir_ring_destroy(ring, NULL);
}

static void move_the_head_beyond_the_tail(void)
{
	weir_ring *ring = ring_of_a_span();

	weiri_store_relaxed(&ring->head, (first_ticket(ring) << OFFSET_BITS) + 4);
	weir_ring_destroy(ring, NULL);
}

static void publish_more_than_fits(void)
{
	weir_ring *ring = ring_of_a_span();
	uint64_t first = first_ticket(ring);

	weiri_store_relaxed(&slot_of(ring, first)->state, base_of(ring, first) + 5);
	weir_ring_destroy(ring, NULL);
}

static void promise_too_much_room(void)
{
	weir_ring *ring = ring_of_a_span();

	weiri_store_relaxed(&ring->limit, weiri_load_relaxed(&ring->limit) + 1);
	weir_ring_destroy(ring, NULL);
}

static void lose_the_span_of_the_head(void)
{
	weir_ring *ring = ring_of_a_span();

	weiri_store_relaxed(&ring->head, (first_ticket(ring) + 3) << OFFSET_BITS | 1);
	weir_ring_destroy(ring, NULL);
}

Test(invariants_rings, ring_of_spans)
{
	if (!weiri_ltq16_available())
		return;
	expect_broken("N2", leave_a_gap_behind_the_tail);
	expect_broken("N3", move_the_head_beyond_the_tail);
	expect_broken("N4", publish_more_than_fits);
	expect_broken("N5", promise_too_much_room);
	expect_broken("N6", lose_the_span_of_the_head);
}

Test(invariants_rings, ring)
{
	expect_broken("I2", skip_a_ticket);
	expect_broken("I3", take_too_early);
	expect_broken("I4", hint_too_far);
}

/* The ring has room for 2 values, and one has passed through it. */
static struct spsc *spsc_of_two(void)
{
	weir_spsc *spsc = NULL;
	uint64_t value;

	if (weir_spsc_create(2, NULL, &spsc, NULL) != WEIR_OK || weir_spsc_try_enqueue(spsc, 1) != WEIR_OK ||
	    weir_spsc_try_dequeue(spsc, &value) != WEIR_OK)
		_exit(1);
	return (struct spsc *)(void *)spsc;
}

static void enqueue_too_many(void)
{
	struct spsc *spsc = spsc_of_two();

	weiri_store_relaxed(&spsc->producer.index, weiri_load_relaxed(&spsc->consumer.index) + 3);
	(void)weir_spsc_try_enqueue((weir_spsc *)(void *)spsc, 1);
}

static void move_the_head_behind_the_tail(void)
{
	struct spsc *spsc = spsc_of_two();
	uint64_t value;

	weiri_store_relaxed(&spsc->consumer.index, weiri_load_relaxed(&spsc->producer.index) + 1);
	(void)weir_spsc_try_dequeue((weir_spsc *)(void *)spsc, &value);
}

static void copy_a_head_that_is_still_to_come(void)
{
	struct spsc *spsc = spsc_of_two();

	spsc->producer.seen = weiri_load_relaxed(&spsc->consumer.index) + 1;
	(void)weir_spsc_try_enqueue((weir_spsc *)(void *)spsc, 1);
}

static void copy_a_tail_that_is_still_to_come(void)
{
	struct spsc *spsc = spsc_of_two();
	uint64_t value;

	spsc->consumer.seen = weiri_load_relaxed(&spsc->producer.index) + 1;
	(void)weir_spsc_try_dequeue((weir_spsc *)(void *)spsc, &value);
}

static void need_no_fence_with_room(void)
{
	struct spsc *spsc = spsc_of_two();

	spsc->producer.fenced = weiri_load_relaxed(&spsc->producer.index);
	weir_spsc_destroy((weir_spsc *)(void *)spsc, NULL);
}

static void need_no_fence_with_values(void)
{
	struct spsc *spsc = spsc_of_two();

	weiri_store_relaxed(&spsc->consumer.index, weiri_load_relaxed(&spsc->consumer.index) - 1);
	spsc->consumer.fenced = weiri_load_relaxed(&spsc->consumer.index);
	weir_spsc_destroy((weir_spsc *)(void *)spsc, NULL);
}

Test(invariants_rings, spsc)
{
	expect_broken("I1", enqueue_too_many);
	expect_broken("I1", move_the_head_behind_the_tail);
	expect_broken("I2", copy_a_head_that_is_still_to_come);
	expect_broken("I2", copy_a_tail_that_is_still_to_come);
	expect_broken("I3", need_no_fence_with_room);
	expect_broken("I3", need_no_fence_with_values);
}

Test(invariants_rings, ring_list)
{
	expect_broken("I1", link_behind_an_open_ring);
	expect_broken("I2", lose_the_tail);
}

/* -- between processes ------------------------------------------------------------------------- */

static char frames_memory[16384] __attribute__((aligned(128)));

/* A ring of 2 frames and a hand for 1 process, which has its seat. */
static struct weiri_frames *frames_begin(void)
{
	static struct weiri_frames frames;
	const struct weiri_frames_geometry geometry = {2, 8, 1, 1};
	struct weiri_frames_layout layout;

	if (!weiri_frames_lay_out(&geometry, &layout) || layout.size > sizeof(frames_memory) / 2)
		_exit(1);
	weiri_frames_fill(&geometry, &layout, frames_memory + offsetof(weir_ring, tail_hint));
	weiri_frames_open(&frames, (weir_ring *)(void *)frames_memory, &geometry, &layout);
	if (!weiri_frames_sit(&frames, 0))
		_exit(1);
	return &frames;
}

static void hand_with_an_impossible_frame(void)
{
	struct weiri_frames *frames = frames_begin();

	frames->own[0].frame = frames->count;
	(void)weiri_frames_publish(frames, 0);
}

/* The newest value for 1 process with 1 claim: 3 buffers. */
static struct weiri_newest *newest_begin(void)
{
	static struct weiri_newest newest;
	const struct weiri_newest_geometry geometry = {8, 1, 1};
	struct weiri_newest_layout layout;

	if (!weiri_newest_lay_out(&geometry, &layout) || layout.size > sizeof(frames_memory))
		_exit(1);
	weiri_newest_open(&newest, &geometry, &layout, frames_memory);
	if (!weiri_newest_sit(&newest, 1) || !weiri_newest_become_writer(&newest))
		_exit(1);
	return &newest;
}

static void write_newest(struct weiri_newest *newest)
{
	uint32_t number;

	(void)weiri_newest_prepare(newest, &number);
	(void)weiri_newest_publish(newest, number);
}

static void no_buffer_left_to_write(void)
{
	struct weiri_newest *newest = newest_begin();
	int claim;

	write_newest(newest);
	(void)weiri_newest_claim(newest, &claim);
	write_newest(newest);
	newest->count = 2; /* one is read, and one is the newest */
	write_newest(newest);
}

static void buffer_beyond_the_last(void)
{
	struct weiri_newest *newest = newest_begin();

	(void)weiri_newest_publish(newest, newest->count);
}

static void publish_without_the_role(void)
{
	struct weiri_newest *newest = newest_begin();

	weiri_store_relaxed(newest->writer, UINT64_C(7) << 32 | 1);
	write_newest(newest);
}

Test(invariants_rings, of_shared_memory)
{
	expect_broken("X4", hand_with_an_impossible_frame);
	expect_broken("N1", no_buffer_left_to_write);
	expect_broken("N3", buffer_beyond_the_last);
	expect_broken("N4", publish_without_the_role);
}
