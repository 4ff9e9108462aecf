/*
 * multi_queue.c - several strict priority queues; a dequeue draws two of them and takes the smaller
 * of their first keys.
 *
 * Algorithm. MultiQueues (Rihani, Sanders, Dementiev, SPAA 2015). A put goes into a lane drawn at
 * random. A take compares the first keys of two random lanes and takes from the lane with the
 * smaller one. With stickiness s (Williams, Sanders, Dementiev, ESA 2021) a thread draws again only
 * after s calls, so that lanes stay in its cache. If the two lanes are empty, the take looks into the
 * lane of its thread's last put. If several draws find nothing, it tries all lanes in turn. The
 * difference: the lanes of those papers have locks. These lanes are lock-free queues
 * (priority_queue.c), so a stalled thread blocks no lane.
 *
 * Order: strict among the items of one lane. How many smaller keys a take passes over depends on
 *   the number of lanes, not on the number of items.
 * Linearization: that of the lane's operations. As a whole the queue is a multiset that returns
 *   some item: "full" and "empty" are the answers of all lanes, one after the other.
 * Closing: lane by lane, the last lane last. A call that meets a closed lane closes the others
 *   before it answers "closed". Hence once any call has answered "closed", all lanes are closed.
 *   "Closed" is the answer of the last lane.
 * Progress: lock-free. A take draws a few times, then tries each lane once, by calls that are
 *   lock-free.
 * Memory: that of the lanes; 40 bytes a thread.
 * Checked: tests/test_multi_queue.c, stress/model/check_multi_queue.c, weir-rank (rank errors),
 *   weir-stress priority_stopped.
 */
#include <weir/multi_queue.h>

#include <stdalign.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"
#include "reclaim/record.h"
#include "ring/priority_queue.h"

enum { DRAWS = 4 };

struct weir_multi_queue {
	uint64_t number; /* no other queue of this process has it */
	size_t capacity;
	uint32_t lanes;
	size_t stickiness;
	weir_allocator allocator;
	weir_priority_queue *lane[];
};

static _Atomic(uint64_t) queues_made, threads_drawing;

/* -- creating ---------------------------------------------------------------------------------- */

static size_t queue_size(size_t lanes)
{
	return sizeof(struct weir_multi_queue) + lanes * sizeof(weir_priority_queue *);
}

static size_t lanes_for(size_t capacity, const struct weir_multi_queue_options *options)
{
	long online;
	size_t lanes;

	if (options->lanes != 0)
		return options->lanes;
	online = sysconf(_SC_NPROCESSORS_ONLN);
	lanes = WEIR_MULTI_QUEUE_LANES_A_PROCESSOR * (online > 0 ? (size_t)online : 1);
	if (lanes > WEIR_MULTI_QUEUE_MAX_LANES)
		lanes = WEIR_MULTI_QUEUE_MAX_LANES;
	return lanes < capacity ? lanes : capacity;
}

static size_t share_of(const weir_multi_queue *queue, uint32_t lane)
{
	return queue->capacity / queue->lanes + (lane < queue->capacity % queue->lanes);
}

static bool make_lanes(weir_multi_queue *queue)
{
	struct weir_priority_queue_options options = {WEIR_PRIORITY_QUEUE_OPTIONS_INIT, .allocator = &queue->allocator};

	for (uint32_t i = 0; i < queue->lanes; i++) {
		if (weir_priority_queue_create(share_of(queue, i), &options, &queue->lane[i], NULL) != WEIR_OK)
			return false;
	}
	return true;
}

enum weir_status weir_multi_queue_create(size_t capacity, const struct weir_multi_queue_options *options,
                                         weir_multi_queue **out, weir_error *error)
{
	struct weir_multi_queue_options given;
	weir_allocator allocator;
	weir_multi_queue *queue;
	enum weir_status status;
	size_t lanes;

	if (out == NULL || capacity == 0)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "multi queue: %s",
		                  out == NULL ? "out is NULL" : "capacity is 0");
	status = weiri_options_read("multi queue", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("multi queue", given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	lanes = lanes_for(capacity, &given);
	if (lanes > WEIR_MULTI_QUEUE_MAX_LANES || lanes > capacity ||
	    (capacity - 1) / lanes >= WEIR_PRIORITY_QUEUE_MAX_CAPACITY)
		return weiri_fail(
			error, WEIR_INVALID_ARGUMENT,
			"multi queue: %zu lanes for a capacity of %zu; must be 1 to %d, at most the capacity, and hold "
			"at most %d values each",
			lanes, capacity, WEIR_MULTI_QUEUE_MAX_LANES, WEIR_PRIORITY_QUEUE_MAX_CAPACITY);
	queue = weiri_allocate_zeroed(&allocator, queue_size(lanes), alignof(weir_multi_queue));
	if (queue == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "multi queue: no memory for %zu lanes", lanes);
	/* [relaxed] each queue gets a number of its own. */
	queue->number = weiri_fetch_add_relaxed(&queues_made, 1u) + 1;
	queue->capacity = capacity;
	queue->lanes = (uint32_t)lanes;
	queue->stickiness = given.stickiness != 0 ? given.stickiness : 1;
	queue->allocator = allocator;
	if (!make_lanes(queue)) {
		(void)weir_multi_queue_destroy(queue, NULL);
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "multi queue: no memory for %zu values", capacity);
	}
	*out = queue;
	return WEIR_OK;
}

enum weir_status weir_multi_queue_destroy(weir_multi_queue *queue, weir_error *error)
{
	weir_allocator allocator;

	(void)error; /* it never fails */
	if (queue == NULL)
		return WEIR_OK;
	for (uint32_t i = 0; i < queue->lanes; i++)
		(void)weir_priority_queue_destroy(queue->lane[i], NULL);
	allocator = queue->allocator;
	weiri_release(&allocator, queue, queue_size(queue->lanes), alignof(weir_multi_queue));
	return WEIR_OK;
}

/* -- drawing ----------------------------------------------------------------------------------- */

/*
 * xorshift (Marsaglia, 2003). Lanes are few, so the high half of the product is near enough to
 * uniform.
 */
static uint32_t draw_below(struct weiri_drawn *drawn, uint32_t lanes)
{
	drawn->random ^= drawn->random << 13;
	drawn->random ^= drawn->random >> 7;
	drawn->random ^= drawn->random << 17;
	return (uint32_t)((drawn->random >> 32) * lanes >> 32);
}

/* Draws two lanes, which differ if there are at least two. */
static void draw_two(struct weiri_drawn *drawn, const weir_multi_queue *queue)
{
	drawn->take_lanes[0] = draw_below(drawn, queue->lanes);
	drawn->take_lanes[1] = queue->lanes > 1 ? draw_below(drawn, queue->lanes - 1) : 0;
	if (drawn->take_lanes[1] >= drawn->take_lanes[0] && queue->lanes > 1)
		drawn->take_lanes[1]++;
}

/*
 * Called first in every call. Returns this thread's draws, and starts anew if they are those of
 * another queue. Without memory for a record, each call draws anew, in *without.
 */
static WEIRI_ALWAYS_INLINE struct weiri_drawn *draw_for(const weir_multi_queue *queue, struct weiri_drawn *without)
{
	struct weiri_record *record = weiri_record_get();
	struct weiri_drawn *drawn = without;

	if (WEIRI_LIKELY(record != NULL)) {
		drawn = &record->own->drawn;
		if (WEIRI_LIKELY(drawn->queue == queue->number))
			return drawn;
	}
	/* [relaxed] each thread gets a number of its own. */
	*drawn = (struct weiri_drawn){.queue = queue->number,
	                              .random = (weiri_fetch_add_relaxed(&threads_drawing, 1u) + 1) *
	                                        UINT64_C(0x9E3779B97F4A7C15)};
	drawn->put_lane = draw_below(drawn, queue->lanes); /* a thread that only takes begins anywhere, too */
	return drawn;
}

/* -- put --------------------------------------------------------------------------------------- */

enum weir_status weir_multi_queue_try_enqueue(weir_multi_queue *queue, int64_t key, uint64_t value)
{
	enum weir_status status = WEIR_WOULD_BLOCK;
	struct weiri_drawn without, *drawn;

	if (queue == NULL)
		return WEIR_INVALID_ARGUMENT;
	drawn = draw_for(queue, &without);
	if (drawn->puts_left-- == 0) {
		drawn->put_lane = draw_below(drawn, queue->lanes);
		drawn->puts_left = queue->stickiness - 1;
	}
	/* The drawn lane; if it is full, the others in turn. */
	for (uint32_t i = 0; i < queue->lanes && status == WEIR_WOULD_BLOCK; i++) {
		uint32_t lane = drawn->put_lane;

		status = weir_priority_queue_try_enqueue(queue->lane[lane], key, value);
		if (status == WEIR_WOULD_BLOCK)
			drawn->put_lane = lane + 1 < queue->lanes ? lane + 1 : 0;
	}
	if (status == WEIR_CANCELLED)
		weir_multi_queue_close(queue);
	return status;
}

/* -- take -------------------------------------------------------------------------------------- */

/* Returns the lane with the smaller first key, or the number of lanes if both are empty. */
static uint32_t better_lane(const weir_multi_queue *queue, uint32_t a, uint32_t b)
{
	int64_t key_a, key_b;
	bool has_a = weiri_priority_queue_peek(queue->lane[a], &key_a);
	bool has_b = weiri_priority_queue_peek(queue->lane[b], &key_b);

	if (has_a && has_b)
		return key_b < key_a ? b : a;
	return has_a ? a : has_b ? b : queue->lanes;
}

/*
 * Takes from lanes that it draws. If both are empty, so are most: it looks into the lane of this
 * thread's last put, which is near, and where a thread that takes what it has put finds it.
 */
static enum weir_status take_drawn(const weir_multi_queue *queue, struct weiri_drawn *drawn, int64_t *key,
                                   uint64_t *value)
{
	for (int i = 0; i < DRAWS; i++) {
		uint32_t lane;

		if (drawn->takes_left-- == 0) {
			draw_two(drawn, queue);
			drawn->takes_left = queue->stickiness - 1;
		}
		lane = better_lane(queue, drawn->take_lanes[0], drawn->take_lanes[1]);
		if (lane == queue->lanes)
			lane = drawn->put_lane;
		if (weiri_priority_queue_take(queue->lane[lane], NULL, key, value) == WEIR_OK)
			return WEIR_OK;
		drawn->takes_left = 0;
	}
	return WEIR_WOULD_BLOCK;
}

/* Takes from the first lane that has an item, beginning at a random lane. */
static enum weir_status take_any(const weir_multi_queue *queue, struct weiri_drawn *drawn, int64_t *key,
                                 uint64_t *value)
{
	enum weir_status all = WEIR_OUT_OF_RANGE;
	uint32_t lane = draw_below(drawn, queue->lanes);

	for (uint32_t i = 0; i < queue->lanes; i++) {
		enum weir_status status = weiri_priority_queue_take(queue->lane[lane], NULL, key, value);

		if (status == WEIR_OK)
			return WEIR_OK;
		if (status == WEIR_WOULD_BLOCK)
			all = WEIR_WOULD_BLOCK;
		lane = lane + 1 < queue->lanes ? lane + 1 : 0;
	}
	return all;
}

enum weir_status weir_multi_queue_try_dequeue(weir_multi_queue *queue, int64_t *key, uint64_t *value)
{
	struct weiri_drawn without, *drawn;
	enum weir_status status;
	int64_t found;

	if (queue == NULL || value == NULL)
		return WEIR_INVALID_ARGUMENT;
	drawn = draw_for(queue, &without);
	status = take_drawn(queue, drawn, &found, value);
	if (status != WEIR_OK)
		status = take_any(queue, drawn, &found, value);
	if (status == WEIR_OK && key != NULL)
		*key = found;
	return status;
}

/* -- closing and looking ----------------------------------------------------------------------- */

void weir_multi_queue_close(weir_multi_queue *queue)
{
	for (uint32_t i = 0; queue != NULL && i < queue->lanes; i++)
		weir_priority_queue_close(queue->lane[i]);
}

bool weir_multi_queue_closed(const weir_multi_queue *queue)
{
	return queue != NULL && weir_priority_queue_closed(queue->lane[queue->lanes - 1]);
}

size_t weir_multi_queue_capacity(const weir_multi_queue *queue)
{
	return queue != NULL ? queue->capacity : 0;
}

size_t weir_multi_queue_lane_count(const weir_multi_queue *queue)
{
	return queue != NULL ? queue->lanes : 0;
}

size_t weir_multi_queue_size_approx(const weir_multi_queue *queue)
{
	size_t size = 0;

	for (uint32_t i = 0; queue != NULL && i < queue->lanes; i++)
		size += weir_priority_queue_size_approx(queue->lane[i]);
	return size;
}
