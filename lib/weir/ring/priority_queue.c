/*
 * priority_queue.c - a sorted list of recycled nodes, and towers of hints into it.
 *
 * Algorithm. All nodes, one more than the capacity, stay on one chain:
 *
 *     oldest -> free -> free -> ... -> free -> DUMMY -> smallest -> ... -> largest -> none
 *               `----- links TAKEN ------'     `------------- links not TAKEN ------------'
 *
 *   take      sets TAKEN in the link that names the first item; that item's node becomes the dummy,
 *             and the old dummy becomes free
 *   put       claims the node at `oldest` by advancing `oldest`, fills it, and links it behind the
 *             last node whose key is not above its own
 *   head      some node from `oldest` to the dummy; moves to the dummy when `oldest` reaches head
 *   near      the node that became the dummy in a recent take: a hint, from which the dummy is a
 *             few steps away
 *
 * Towers. Node i takes part in level l if i <= nodes / 8^l, rounded up. The first chain is
 * shuffled, so that towers stand at random places. A level is a list like that of a skip list, but
 * only a hint. Each of its words names a node and the ticket with which that node was filled. A
 * reader that finds the node with that ticket knows that the node has been in the list, and no
 * more. All decisions are made at the links of the chain. A lost hint makes a walk longer, and is
 * replaced as nodes come and go. A node that is linked into an empty queue raises no tower, because
 * nothing would be passed over on the way to it.
 *
 * Source. The bit in a node's own link that says "my successor is taken" is the idea of Linden and
 * Jonsson (OPODIS 2013): a put that would insert before the first item changes the same link, so a
 * take cannot miss it. Their queue unlinks prefixes and leaves memory to epochs. Here the taken
 * prefix is the free list, as in the queue of Michael and Scott (PODC 1996): a node is free at the
 * moment its successor is taken, without another step, so a stalled thread loses nothing. The
 * levels are those of a skip list (Pugh, CACM 1990), reduced to hints. We know of no publication of
 * this combination.
 *
 * Words: tag | index | one bit.
 *   oldest      the tag counts the nodes handed out, and is the ticket of the last one; bit: CLOSED
 *   link        the tag grows with each change and never restarts; bit: TAKEN
 *   head, near  the tag counts the takes up to that node: its *position*
 *   level       the tag is a ticket
 * The index has as many bits as the capacity needs, the tag has the rest: at least 39. A CAS is
 * deceived only if its thread stalls while one word changes a multiple of 2^39 times. A comparison
 * of a position with head's is deceived only if the thread stalls during 2^39 takes, give or take
 * the capacity.
 *
 * Invariants
 *   I1  `oldest`, head and dummy stand on the chain in this order, and each moves only forward.
 *       Suppose that a thread knows a node by its position, and then finds head not beyond that
 *       position. Then the node had not been handed out again
 *   I2  a node's ticket, key and value change only while the node is not on the chain. On the chain
 *       its link changes only by a CAS
 *   I3  behind the dummy, keys do not decrease
 *   I4  a thread that finds a node's link not TAKEN, and then the ticket with which the node was
 *       linked, has seen the dummy or an item
 *   I5  a node's tower names the successors that it had when the tower was raised; `front` names no
 *       node that has been handed out again, except through raises that a long stall has delayed
 *
 * Pairs
 *   P1  link (put) -> load of a link: the node that it names, and the nodes behind it
 *   P2  TAKEN -> load of a link or of `oldest`: the take has finished with the node. So a thread
 *       that sees what a later filler wrote also sees that the link, or head, by which it came has
 *       changed (fill() releases; the reads of ticket, key and link acquire)
 *   P3  head, near -> load of head, near: what was seen of the links up to that node
 *   P4  oldest -> load of oldest: head was beyond the nodes handed out before (I1)
 *   P5  close -> put, take, closed: what the closer did before
 *   P6  level -> load of a level: the ticket was linked
 *   P7  ended -> all_is_linked(): the links of all puts
 *   S   the CAS of a link, by put and take, and the two loads that say "empty" and "full": seq_cst
 *
 * Linearization
 *   Put: the CAS of the link. Its node then stands in (key, arrival) order among the items, since
 *     the link still named the one item behind it, and by I4 the node before it is an item or was
 *     the last one taken.
 *   Take: the CAS that sets TAKEN; the item is the first one at that moment.
 *   "Empty": the load of the dummy's link that names no node.
 *   "Full": the load of the link of `oldest` that is not TAKEN. The dummy is then the oldest node,
 *     so no node is free. A put that has a node and has not linked it counts as an item.
 *   "Closed": the load of `oldest` with CLOSED.
 *   The end: closed, and all nodes were on the chain, so no put was running; then "empty". The take
 *     that finds this walks along the whole chain; later takes read `ended`.
 * Why S. "Full" and "empty" are read in the links of different nodes. A put that then says "full"
 *   and a take that then says "empty" could each miss the other's CAS, and no order has both: store
 *   buffering, as between two slots of the ring (algorithm.h). In S each of the two loads reads the
 *   last change of its link.
 * Progress: lock-free. If a link, head or `oldest` changed, another call made progress. A walk
 *   along a level goes to greater (key, ticket) only, and cleaning a level is bounded. A stalled
 *   put keeps its node; a stalled take keeps nothing.
 * Memory: capacity + 1 nodes of 32 bytes, and 8 / 7 bytes a node for towers, for the queue's life.
 * Alternatives. All operations on a heap meet at its root, and lock-free heaps pay for that with
 *   several CAS per operation or with descriptors. Skip lists whose towers must be exact (Shavit
 *   and Lotan 2000; Sundell and Tsigas 2003) need marks in each level, and epochs or hazard
 *   pointers. Epochs let a stalled thread keep memory, which a fixed number of nodes does not
 *   allow. Here a put is one CAS for the node and one for the link, a take is one CAS, and the rest
 *   are hints.
 * Checked: tests/test_priority_queue.c, stress/model/check_priority.c, weir-stress
 *   (history_priority, priority_stopped).
 */
#include "ring/priority_queue.h"

#include <stdalign.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/options.h"

#define FLAG UINT64_C(1)
#define TAKEN FLAG  /* in a link */
#define CLOSED FLAG /* in `oldest` */

#if defined(WEIRI_UNDER_MODEL) /* stress/model: there few nodes make levels, and few calls bring a tag round */
enum { LEVEL_BITS = 1, MOST_TAG_BITS = 4, FIRST_PAUSES = 0 };
#else
enum {
	LEVEL_BITS = 3, /* a level has 1 / 8 of the nodes of the one below it */
	MOST_TAG_BITS = 64,
	FIRST_PAUSES = 64 /* 1.6 us on an AMD EPYC, 3 us on an Intel Xeon */
};
#endif

enum {
	MOST_LEVELS = 8,  /* 8^8 nodes at most */
	CLEAN_MOST = 256, /* towers passed over in one cleaning of a level */
	RAISE_TRIES = 3,  /* of a tower, per level */
	MOST_DOUBLINGS = 4
};

struct node {
	_Atomic(uint64_t) link;
	_Atomic(uint64_t) ticket;
	_Atomic(int64_t) key;
	_Atomic(uint64_t) value;
};

struct weir_priority_queue {
	/* Constant, except `closing`, which says that a close is under way or done. */
	_Atomic(uint32_t) closing;
	size_t capacity;
	uint64_t index_mask; /* of a word: the index and the bit */
	uint64_t one;        /* the least tag */
	uint64_t furthest;   /* a tag: what a position can be ahead of head */
	size_t tall;         /* nodes beyond this one have no tower */
	unsigned tag_shift;
	unsigned levels;
	struct node *nodes;                        /* 1 .. capacity + 1; there is no node 0 */
	_Atomic(uint64_t) *level[MOST_LEVELS + 1]; /* level[l][i]: of node i */
	size_t memory_size;
	weir_allocator allocator;

	/* Producers. */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) oldest;
	_Atomic(uint32_t) ended;                                      /* closed, and no put was under way */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) front[MOST_LEVELS + 1]; /* the first tower of each level */
	/* Written by producers, now and then; read by all threads. */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) head;
	/* Consumers. */
	WEIRI_ALIGNED_APART _Atomic(uint64_t) near;
	WEIRI_ALIGNED_APART char end[];
};

/* A node as a walk has met it. index 0: before all towers. */
struct place {
	size_t index;
	uint64_t ticket;
	int64_t key;
};

/* Per level, the place behind which a key belongs, and the word found there. */
struct path {
	struct place at[MOST_LEVELS + 1];
	uint64_t word[MOST_LEVELS + 1];
};

/* The dummy, or how far a walk to it got. */
struct dummy {
	uint64_t position;
	size_t index;
	uint64_t link;
};

/* -- words ------------------------------------------------------------------------------------- */

static size_t index_of(const weir_priority_queue *queue, uint64_t word)
{
	return (size_t)(word & queue->index_mask) >> 1;
}

/*
 * Returns a tag where it stands in a word, with zeros below: tags are compared, and positions and
 * tickets kept, in that form. It saves shifts, and the truncation of differences.
 */
static uint64_t tag_of(const weir_priority_queue *queue, uint64_t word)
{
	return word & ~queue->index_mask;
}

/* How many steps of a tag lie between 0 and this one. */
static uint64_t count_of(const weir_priority_queue *queue, uint64_t tag)
{
	return tag >> queue->tag_shift;
}

static uint64_t word_of(size_t index, uint64_t tag)
{
	return tag | (uint64_t)index << 1;
}

/* Returns the word that may replace `word`: it has the next tag. */
static uint64_t word_after(const weir_priority_queue *queue, uint64_t word, size_t index)
{
	return word_of(index, (word | queue->index_mask) + 1);
}

static struct node *node_of(const weir_priority_queue *queue, size_t index)
{
	return &queue->nodes[index];
}

static size_t nodes_in_level(size_t nodes, unsigned level)
{
	return (nodes + (((size_t)1 << LEVEL_BITS * level) - 1)) >> LEVEL_BITS * level;
}

/* Returns how many levels a node takes part in: most nodes in none. */
static WEIRI_ALWAYS_INLINE unsigned height_of(const weir_priority_queue *queue, size_t index)
{
	unsigned height = 1;

	if (WEIRI_LIKELY(index > queue->tall))
		return 0;
	while (height < queue->levels && index <= nodes_in_level(queue->capacity + 1, height + 1))
		height++;
	return height;
}

/* -- assertions -------------------------------------------------------------------------------- */

/*
 * Walks from `oldest` to the end: head is not behind the dummy, after which keys never decrease.
 */
static WEIRI_UNSEEN void assert_chain(const weir_priority_queue *queue)
{
	const size_t head = index_of(queue, weiri_peek(&queue->head));
	size_t index = index_of(queue, weiri_peek(&queue->oldest)), count = 0, items = 0;
	bool passed_head = false, passed_dummy = false;
	int64_t last = INT64_MIN;

	while (index != 0 && count++ <= queue->capacity) {
		uint64_t link = weiri_peek(&node_of(queue, index)->link);

		WEIR_ASSERT3(I1, index != head || !passed_dummy);
		WEIR_ASSERT3(I1, !passed_dummy || (link & TAKEN) == 0);
		WEIR_ASSERT3(I3, items == 0 || weiri_peek(&node_of(queue, index)->key) >= last);
		passed_head |= index == head;
		passed_dummy |= (link & TAKEN) == 0;
		items += (size_t)passed_dummy;
		last = items > 1 ? weiri_peek(&node_of(queue, index)->key) : last;
		index = index_of(queue, link);
	}
	WEIR_ASSERT3(I1, index == 0 && passed_head);
	for (unsigned l = 1; l <= queue->levels; l++)
		WEIR_ASSERT3(I5, index_of(queue, weiri_peek(&queue->front[l])) <= nodes_in_level(queue->capacity + 1, l));
}

static WEIRI_UNSEEN void assert_off_chain(const weir_priority_queue *queue, size_t node)
{
	size_t index = index_of(queue, weiri_peek(&queue->oldest)), count = 0;

	for (; index != 0 && count++ <= queue->capacity; index = index_of(queue, weiri_peek(&node_of(queue, index)->link)))
		WEIR_ASSERT3(I2, index != node);
}

/* -- creating ---------------------------------------------------------------------------------- */

static unsigned levels_for(size_t nodes)
{
	unsigned levels = 0;

	while ((size_t)1 << LEVEL_BITS * levels < nodes)
		levels++;
	return levels;
}

static unsigned tag_shift_for(size_t nodes)
{
	unsigned shift = (unsigned)(64 - __builtin_clzll(nodes)) + 1;

	return shift > 64 - MOST_TAG_BITS ? shift : 64 - MOST_TAG_BITS;
}

static size_t memory_for(size_t nodes)
{
	size_t words = 0;

	for (unsigned l = 1; l <= levels_for(nodes); l++)
		words += nodes_in_level(nodes, l) + 1;
	return sizeof(struct weir_priority_queue) + (nodes + 1) * sizeof(struct node) + words * sizeof(uint64_t);
}

static void lay_out(weir_priority_queue *queue, size_t nodes)
{
	_Atomic(uint64_t) *words;

	queue->nodes = (struct node *)(void *)queue->end;
	words = (_Atomic(uint64_t) *)(void *)(queue->nodes + nodes + 1);
	for (unsigned l = 1; l <= queue->levels; l++) {
		queue->level[l] = words;
		words += nodes_in_level(nodes, l) + 1;
	}
}

/*
 * Builds the first chain: all nodes in one fixed random order, so that tall towers stand anywhere.
 * The shuffle (Fisher and Yates) works in the nodes' values, which no thread reads yet. The random
 * numbers are the high bits of a linear congruential generator (Knuth's MMIX constants).
 */
static void chain_nodes(weir_priority_queue *queue, size_t nodes)
{
	uint64_t random = 1;

	for (size_t i = 1; i <= nodes; i++) {
		size_t j;

		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		j = 1 + (size_t)((random >> 33) % i);
		/* [relaxed] not shared yet, here and below. */
		weiri_store_relaxed(&node_of(queue, i)->value, weiri_load_relaxed(&node_of(queue, j)->value));
		weiri_store_relaxed(&node_of(queue, j)->value, (uint64_t)i);
	}
	for (size_t i = 1; i < nodes; i++) {
		size_t this = (size_t)weiri_load_relaxed(&node_of(queue, i)->value);
		size_t next = (size_t)weiri_load_relaxed(&node_of(queue, i + 1)->value);

		weiri_store_relaxed(&node_of(queue, this)->link, word_of(next, queue->one) | TAKEN);
	}
	weiri_store_relaxed(&queue->oldest, word_of((size_t)weiri_load_relaxed(&node_of(queue, 1)->value), 0));
	weiri_store_relaxed(&queue->head, word_of((size_t)weiri_load_relaxed(&node_of(queue, nodes)->value), 0));
	weiri_store_relaxed(&queue->near, weiri_load_relaxed(&queue->head));
}

enum weir_status weir_priority_queue_create(size_t capacity, const struct weir_priority_queue_options *options,
                                            weir_priority_queue **out, weir_error *error)
{
	struct weir_priority_queue_options given;
	size_t nodes = capacity + 1;
	weir_allocator allocator;
	weir_priority_queue *queue;
	enum weir_status status;

	if (out == NULL)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "priority queue: out is NULL");
	if (capacity == 0 || capacity > WEIR_PRIORITY_QUEUE_MAX_CAPACITY)
		return weiri_fail(error, WEIR_INVALID_ARGUMENT, "priority queue: capacity is %zu, must be 1 to %d", capacity,
		                  WEIR_PRIORITY_QUEUE_MAX_CAPACITY);
	status = weiri_options_read("priority queue", options, &given, sizeof(given), error);
	if (status == WEIR_OK)
		status = weiri_options_flags("priority queue", given.flags, 0, error);
	if (status != WEIR_OK)
		return status;
	allocator = weiri_allocator_or_default(given.allocator);
	queue = weiri_allocate_zeroed(&allocator, memory_for(nodes), WEIRI_APART);
	if (queue == NULL)
		return weiri_fail(error, WEIR_RESOURCE_EXHAUSTED, "priority queue: no memory for %zu values", capacity);
	queue->capacity = capacity;
	queue->tag_shift = tag_shift_for(nodes);
	queue->one = UINT64_C(1) << queue->tag_shift;
	queue->index_mask = queue->one - 1;
	queue->furthest = (uint64_t)capacity << queue->tag_shift;
	queue->tall = nodes_in_level(nodes, 1);
	queue->levels = levels_for(nodes);
	queue->memory_size = memory_for(nodes);
	queue->allocator = allocator;
	lay_out(queue, nodes);
	chain_nodes(queue, nodes);
	*out = queue;
	return WEIR_OK;
}

enum weir_status weir_priority_queue_destroy(weir_priority_queue *queue, weir_error *error)
{
	(void)error; /* it never fails */
	if (queue != NULL) {
		weir_allocator allocator = queue->allocator;

		WEIR_ASSERT_WALK(assert_chain(queue));
		weiri_release(&allocator, queue, queue->memory_size, WEIRI_APART);
	}
	return WEIR_OK;
}

/* -- the dummy --------------------------------------------------------------------------------- */

/* Returns true if head is beyond `position`: the node there may have been handed out again. */
static bool is_passed(const weir_priority_queue *queue, uint64_t position)
{
	/*
	 * [relaxed] P2: if this thread has read a later filler's write to the node, that filler knew
	 * that head was beyond the node, and released that knowledge.
	 */
	uint64_t head = weiri_load_relaxed(&queue->head);

	/*
	 * I1: a position is ahead of head by no more than the number of nodes. A test of the sign would
	 * not do: after a long stall the difference is arbitrary.
	 */
	return position - tag_of(queue, head) > queue->furthest;
}

/*
 * Walks to the dummy from the node that `word`, read from head or near, names; `most` steps at
 * most. Returns false if head has overtaken the walk.
 */
static WEIRI_ALWAYS_INLINE bool walk_from(const weir_priority_queue *queue, uint64_t word, struct dummy *dummy,
                                          size_t most)
{
	dummy->position = tag_of(queue, word);
	dummy->index = index_of(queue, word);
	for (size_t steps = 0;; steps++, dummy->position += queue->one) {
		/* [seq_cst S; P1, P2 acquire] */
		dummy->link = weiri_load_seq_cst(&node_of(queue, dummy->index)->link);
		if (is_passed(queue, dummy->position))
			return false;
		if ((dummy->link & TAKEN) == 0 || steps == most)
			return true;
		dummy->index = index_of(queue, dummy->link);
	}
}

static WEIRI_ALWAYS_INLINE void find_dummy(const weir_priority_queue *queue, struct dummy *dummy)
{
	/* [P3 acquire] both */
	if (WEIRI_LIKELY(walk_from(queue, weiri_load_acquire(&queue->near), dummy, SIZE_MAX)))
		return;
	while (!walk_from(queue, weiri_load_acquire(&queue->head), dummy, SIZE_MAX))
		; /* head has moved on, so other threads have dequeued */
}

/* -- towers ------------------------------------------------------------------------------------ */

static _Atomic(uint64_t) *level_word(weir_priority_queue *queue, unsigned level, size_t index)
{
	return index == 0 ? &queue->front[level] : &queue->level[level][index];
}

/* Moves the front of a level past nodes that have been taken. Returns the front's word. */
static uint64_t clean_front(weir_priority_queue *queue, unsigned level)
{
	/* [P6 acquire] */
	uint64_t word = weiri_load_acquire(&queue->front[level]), next;

	for (int i = 0; i < CLEAN_MOST && index_of(queue, word) != 0; i++) {
		size_t index = index_of(queue, word);
		/* [relaxed] a look: a stale one loses a hint, or leaves it to the next cleaning. */
		uint64_t link = weiri_load_relaxed(&node_of(queue, index)->link);

		/* [P2, P6 acquire] before the ticket. */
		next = weiri_load_acquire(&queue->level[level][index]);
		/* [relaxed] P2: the ticket differs if what was read comes from a later filler. */
		if (weiri_load_relaxed(&node_of(queue, index)->ticket) != tag_of(queue, word))
			next = word_of(0, tag_of(queue, word)); /* the rest of the level is lost */
		else if ((link & TAKEN) == 0)
			return word;
		/* [P6 release] passes on what came with `next`; a failed CAS acquires. */
		if (weiri_cas_release_or_acquire(&queue->front[level], &word, next))
			word = next;
	}
	return word;
}

/* Takes a taken node off the fronts before it is handed out again: I5. */
static void leave_fronts(weir_priority_queue *queue, size_t index, unsigned height)
{
	for (unsigned l = 1; l <= height; l++) {
		/* [relaxed] a look. */
		if (index_of(queue, weiri_load_relaxed(&queue->front[l])) == index)
			(void)clean_front(queue, l);
	}
}

static bool is_before(const struct place *a, int64_t key, uint64_t ticket)
{
	return a->index == 0 || a->key < key || (a->key == key && a->ticket < ticket);
}

/*
 * Goes along a level from `at` to the last tower whose key is not above `key`. Returns the word
 * there, which names the next tower.
 */
static WEIRI_ALWAYS_INLINE uint64_t walk_level(weir_priority_queue *queue, unsigned level, int64_t key,
                                               struct place *at)
{
	for (;;) {
		/* [P6 acquire] */
		uint64_t word =
			at->index == 0 ? clean_front(queue, level) : weiri_load_acquire(&queue->level[level][at->index]);
		size_t index = index_of(queue, word);
		int64_t next_key;

		if (index == 0)
			return word;
		/* [P2 acquire] before the ticket. */
		next_key = weiri_load_acquire(&node_of(queue, index)->key);
		/* [relaxed] P2: the ticket differs if the key comes from a later filler. */
		if (next_key > key || weiri_load_relaxed(&node_of(queue, index)->ticket) != tag_of(queue, word) ||
		    !is_before(at, next_key, tag_of(queue, word)))
			return word;
		*at = (struct place){index, tag_of(queue, word), next_key};
	}
}

/* Keeps the path of the levels up to `height`, where a tower will be raised, and the place below. */
static void walk_towers(weir_priority_queue *queue, int64_t key, unsigned height, struct path *path)
{
	struct place at = {0, 0, 0};
	unsigned l = queue->levels;

	/* While few items are inside, most levels are empty. [relaxed] a look. */
	while (l > height && index_of(queue, weiri_load_relaxed(&queue->front[l])) == 0)
		l--;
	for (; l >= 1; l--) {
		uint64_t word = walk_level(queue, l, key, &at);

		if (l <= height) {
			path->word[l] = word;
			path->at[l] = at;
		}
	}
	path->at[0] = at;
}

/* Links node `index` into a level behind path->at[level]. Returns false if it gives up. */
static bool raise_to(weir_priority_queue *queue, struct path *path, unsigned level, size_t index, uint64_t ticket,
                     int64_t key)
{
	for (int i = 0; i < RAISE_TRIES; i++) {
		uint64_t next = path->word[level];

		/* [relaxed] a look: a word that names no current node is not passed on. */
		if (index_of(queue, next) != 0 &&
		    weiri_load_relaxed(&node_of(queue, index_of(queue, next))->ticket) != tag_of(queue, next))
			next = word_of(0, ticket);
		/*
		 * [P6 release] The release is not left to the CAS: if this raise was delayed until the node
		 * was filled again, it overwrites a hint that other threads read.
		 */
		weiri_store_release(&queue->level[level][index], next);
		/* [P6 release] */
		if (weiri_cas_release(level_word(queue, level, path->at[level].index), &path->word[level],
		                      word_of(index, ticket)))
			return true;
		path->word[level] = walk_level(queue, level, key, &path->at[level]);
	}
	return false;
}

static void raise_tower(weir_priority_queue *queue, struct path *path, size_t index, unsigned height, uint64_t ticket,
                        int64_t key)
{
	for (unsigned l = 1; l <= height; l++) {
		if (!raise_to(queue, path, l, index, ticket, key))
			return;
	}
}

/* -- put --------------------------------------------------------------------------------------- */

/* Moves head from the word `head` to the dummy. */
static WEIRI_COLD void move_head(weir_priority_queue *queue, uint64_t head)
{
	struct dummy dummy;

	find_dummy(queue, &dummy);
	/* [P3 release] The CAS fails if another thread has moved head. */
	(void)weiri_cas_release(&queue->head, &head, word_of(dummy.index, dummy.position));
}

/*
 * Keeps I1: if head is at node `index`, the oldest one, moves head to the dummy. Node `index` is
 * not the dummy.
 */
static WEIRI_ALWAYS_INLINE void pass_by(weir_priority_queue *queue, size_t index)
{
	/*
	 * [relaxed] coherence: a thread that acquires what this call writes into the node finds a head
	 * no older than this one.
	 */
	uint64_t head = weiri_load_relaxed(&queue->head);

	if (WEIRI_UNLIKELY(index_of(queue, head) == index))
		move_head(queue, head);
}

/* Gets the oldest free node, and how many levels it takes part in. */
static WEIRI_ALWAYS_INLINE enum weir_status claim_node(weir_priority_queue *queue, bool admitted, size_t *index,
                                                       unsigned *height, uint64_t *ticket)
{
	for (;;) {
		/* [P4, P5 acquire] */
		uint64_t oldest = weiri_load_acquire(&queue->oldest), link;

		if ((oldest & CLOSED) != 0 && !admitted)
			return WEIR_CANCELLED;
		*index = index_of(queue, oldest);
		/* [seq_cst S; P1, P2 acquire] */
		link = weiri_load_seq_cst(&node_of(queue, *index)->link);
		/*
		 * [relaxed] P2: if the link comes from a later filler, this load sees that `oldest` has
		 * moved.
		 */
		if (weiri_load_relaxed(&queue->oldest) != oldest)
			continue;
		if ((link & TAKEN) == 0)
			return WEIR_WOULD_BLOCK;
		pass_by(queue, *index);
		*height = height_of(queue, *index);
		leave_fronts(queue, *index, *height);
		*ticket = tag_of(queue, word_after(queue, oldest, 0));
		/* The next put's node: a taker wrote to it last, so it is in another processor's cache. */
		__builtin_prefetch(node_of(queue, index_of(queue, link)), 1);
		/* [P4 release] */
		if (weiri_cas_release(&queue->oldest, &oldest,
		                      word_after(queue, oldest, index_of(queue, link)) | (oldest & CLOSED)))
			return WEIR_OK;
	}
}

/* A thread that comes by an old word sees the ticket change before, or together with, the rest. */
static WEIRI_ALWAYS_INLINE void fill(weir_priority_queue *queue, size_t index, unsigned height, uint64_t ticket,
                                     int64_t key, uint64_t value)
{
	struct node *node = node_of(queue, index);

	WEIR_ASSERT_INSTANT(assert_off_chain(queue, index));
	/* [P2 release] both, see the head of this file. */
	weiri_store_release(&node->ticket, ticket);
	weiri_store_release(&node->key, key);
	/* [relaxed] published by the link, P1. */
	weiri_store_relaxed(&node->value, value);
	/* [relaxed] no hint: a thread that reads it in place of an old one goes down a level. */
	for (unsigned l = 1; l <= height; l++)
		weiri_store_relaxed(&queue->level[l][index], word_of(0, ticket));
}

/*
 * Walks from `at`, or from the dummy if *from_dummy, to the last node whose key is not above `key`,
 * or to the dummy; returns its link. *from_dummy says whether that node was the dummy, and not an
 * item, even if the item has become the dummy since. If a CAS of a dummy's link fails, the next
 * walk begins at the dummy again.
 */
static WEIRI_ALWAYS_INLINE uint64_t find_place(const weir_priority_queue *queue, int64_t key, struct place *at,
                                               bool *from_dummy)
{
	for (;;) {
		uint64_t link, next_ticket;
		const struct node *next;
		int64_t next_key;

		if (*from_dummy) {
			struct dummy dummy;

			/* The node was the dummy when its link was read, and is as long as the link stays the same. */
			find_dummy(queue, &dummy);
			at->index = dummy.index;
			link = dummy.link;
		} else {
			/* [P1, P2 acquire] */
			link = weiri_load_acquire(&node_of(queue, at->index)->link);
			/* [relaxed] P2, I4. */
			*from_dummy = weiri_load_relaxed(&node_of(queue, at->index)->ticket) != at->ticket || (link & TAKEN) != 0;
			if (*from_dummy)
				continue;
		}
		if (WEIRI_LIKELY(index_of(queue, link) == 0))
			return link;
		next = node_of(queue, index_of(queue, link));
		/* [P2 acquire] before the link again. */
		next_key = weiri_load_acquire(&next->key);
		next_ticket = weiri_load_acquire(&next->ticket);
		/*
		 * [relaxed] P2: the link is unchanged, so `next` stood there, and no later filler wrote to
		 * it.
		 */
		if (weiri_load_relaxed(&node_of(queue, at->index)->link) != link)
			continue;
		if (next_key > key)
			return link;
		*at = (struct place){index_of(queue, link), next_ticket, next_key};
		*from_dummy = false;
	}
}

/* Links node `index` behind a place that is at or after `at`. Returns true if no other item was inside. */
static WEIRI_ALWAYS_INLINE bool link_in(weir_priority_queue *queue, size_t index, int64_t key, struct place *at)
{
	struct node *node = node_of(queue, index);
	/* [relaxed] only this thread writes it. */
	uint64_t own = weiri_load_relaxed(&node->link), link;
	bool from_dummy = at->index == 0;

	do {
		link = find_place(queue, key, at, &from_dummy);
		own = word_after(queue, own, index_of(queue, link));
		/* [P2 release] after the ticket. */
		weiri_store_release(&node->link, own);
		/* [seq_cst S; P1 release] */
	} while (!weiri_cas_seq_cst(&node_of(queue, at->index)->link, &link, word_after(queue, link, index)));
	WEIR_ASSERT_INSTANT(assert_chain(queue));
	return index_of(queue, link) == 0 && from_dummy;
}

/* Links a filled node with the help of the levels, and raises its tower. */
static WEIRI_NOINLINE void link_by_towers(weir_priority_queue *queue, size_t index, unsigned height, uint64_t ticket,
                                          int64_t key)
{
	struct path path;

	walk_towers(queue, key, height, &path);
	/* Nothing is passed over on the way to an item that is alone, so it needs no tower. */
	if (!link_in(queue, index, key, &path.at[0]) && height != 0)
		raise_tower(queue, &path, index, height, ticket, key);
}

/* Inline in the two calls. A queue of few items has no tower: its puts need neither the levels nor a path. */
static WEIRI_ALWAYS_INLINE enum weir_status put(weir_priority_queue *queue, int64_t key, uint64_t value, bool admitted)
{
	struct place from = {0, 0, 0};
	uint64_t ticket;
	size_t index;
	unsigned height;
	enum weir_status status = claim_node(queue, admitted, &index, &height, &ticket);

	if (WEIRI_UNLIKELY(status != WEIR_OK))
		return status;
	fill(queue, index, height, ticket, key, value);
	/* [relaxed] a look. */
	if (height != 0 || index_of(queue, weiri_load_relaxed(&queue->front[1])) != 0)
		link_by_towers(queue, index, height, ticket, key);
	else
		(void)link_in(queue, index, key, &from);
	return WEIR_OK;
}

enum weir_status weiri_priority_queue_put(weir_priority_queue *queue, int64_t key, uint64_t value, bool admitted)
{
	return put(queue, key, value, admitted);
}

enum weir_status weir_priority_queue_try_enqueue(weir_priority_queue *queue, int64_t key, uint64_t value)
{
	return WEIRI_LIKELY(queue != NULL) ? put(queue, key, value, false) : WEIR_INVALID_ARGUMENT;
}

/* -- take -------------------------------------------------------------------------------------- */

/* Returns true if the queue is closed and no put is under way. */
static WEIRI_COLD bool all_is_linked(weir_priority_queue *queue)
{
	/* [P5 acquire] */
	uint64_t oldest = weiri_load_acquire(&queue->oldest);
	size_t index = index_of(queue, oldest), count = 0;

	if ((oldest & CLOSED) == 0)
		return false;
	/* [P7 acquire] */
	if (weiri_load_acquire(&queue->ended))
		return true;
	for (; index != 0 && count <= queue->capacity; count++) {
		/* [relaxed] coherence: a thread that acquires `ended` finds links no older than these. */
		index = index_of(queue, weiri_load_relaxed(&node_of(queue, index)->link));
	}
	/*
	 * [relaxed] P2: `oldest` is unchanged, so all these nodes were on the chain at one moment. A
	 * put that is under way has a node that is not on the chain.
	 */
	if (count != queue->capacity + 1 || weiri_load_relaxed(&queue->oldest) != oldest)
		return false;
	/* [P7 release] */
	weiri_store_release(&queue->ended, 1u);
	return true;
}

bool weiri_priority_queue_is_ended(weir_priority_queue *queue)
{
	/*
	 * [relaxed] sees a close that came before this call. While the queue is open, the producers'
	 * cache line is not touched.
	 */
	if (WEIRI_LIKELY(!weiri_load_relaxed(&queue->closing)))
		return false;
	return all_is_linked(queue);
}

/* Returns the node of the first item, or 0; *status then says why there is none. */
static WEIRI_ALWAYS_INLINE size_t find_first(weir_priority_queue *queue, struct dummy *dummy, enum weir_status *status)
{
	for (bool last = false;; last = true) {
		size_t first;

		find_dummy(queue, dummy);
		first = index_of(queue, dummy->link);
		if (first != 0)
			return first;
		*status = last ? WEIR_OUT_OF_RANGE : WEIR_WOULD_BLOCK;
		if (last || !weiri_priority_queue_is_ended(queue))
			return 0;
	}
}

/*
 * Called between the look at the link that names the first item and a second look at that link, or
 * its change. Returns true if *place is as expected. [acquire] the pair is that of the place's
 * owner.
 */
static WEIRI_ALWAYS_INLINE bool is_alone(const struct weiri_priority_beside *beside)
{
	return beside == NULL || weiri_load_acquire(beside->place) == beside->expected;
}

/*
 * Tries once; returns false if another take, or a put in front of the first item, has overtaken it.
 * Inline, because most calls have nothing beside the queue and are not overtaken.
 */
static WEIRI_ALWAYS_INLINE bool take_once(weir_priority_queue *queue, const struct weiri_priority_beside *beside,
                                          int64_t *key, uint64_t *value, enum weir_status *status)
{
	struct dummy dummy;
	size_t first;

	while ((first = find_first(queue, &dummy, status)) != 0) {
		_Atomic(uint64_t) *link = &node_of(queue, dummy.index)->link;
		/* [P2 acquire] before the look at the link below. */
		int64_t found_key = weiri_load_acquire(&node_of(queue, first)->key);
		/* [relaxed] P1. If the value comes from a later filler, the CAS fails. */
		uint64_t found = weiri_load_relaxed(&node_of(queue, first)->value);

		*status = WEIR_ABORTED;
		if (!is_alone(beside))
			return true;
		if (beside != NULL && beside->below != NULL && found_key >= *beside->below) {
			*status = WEIR_WOULD_BLOCK;
			/* [relaxed] P2: the link is unchanged, so it was the first item's key. */
			if (weiri_load_relaxed(link) == dummy.link)
				return true;
			continue;
		}
		/* [seq_cst S; P2 release] */
		if (!weiri_cas_seq_cst(link, &dummy.link, word_after(queue, dummy.link, first) | TAKEN))
			return false;
		WEIR_ASSERT_INSTANT(assert_chain(queue));
		/* [P3 release] */
		weiri_store_release(&queue->near, word_of(first, dummy.position + queue->one));
		*key = found_key;
		*value = found;
		*status = WEIR_OK;
		return true;
	}
	if (!is_alone(beside))
		*status = WEIR_ABORTED;
	return true;
}

/*
 * Pauses after a take that another one has overtaken, `lost` others before it. All takes change the
 * one link that names the first item. Takes that try again at once only move its line, that of
 * `near` and that of the first node between the processors. No take waits for another: the pause
 * ends whatever others do. Puts do not pause: it made them slower (docs/profiling.md). As in
 * var/update.c.
 */
static void back_off(unsigned lost)
{
	unsigned doublings = lost < MOST_DOUBLINGS ? lost : MOST_DOUBLINGS;

	for (unsigned pauses = (unsigned)FIRST_PAUSES << doublings; pauses > 0; pauses--)
		weiri_pause();
}

static WEIRI_NOINLINE enum weir_status take_again(weir_priority_queue *queue,
                                                  const struct weiri_priority_beside *beside, int64_t *key,
                                                  uint64_t *value)
{
	enum weir_status status;
	unsigned lost = 0;

	do
		back_off(lost++);
	while (!take_once(queue, beside, key, value, &status));
	return status;
}

static WEIRI_ALWAYS_INLINE enum weir_status take(weir_priority_queue *queue, const struct weiri_priority_beside *beside,
                                                 int64_t *key, uint64_t *value)
{
	enum weir_status status;

	return WEIRI_LIKELY(take_once(queue, beside, key, value, &status)) ? status : take_again(queue, beside, key, value);
}

enum weir_status weiri_priority_queue_take(weir_priority_queue *queue, const struct weiri_priority_beside *beside,
                                           int64_t *key, uint64_t *value)
{
	return take(queue, beside, key, value);
}

enum weir_status weir_priority_queue_try_dequeue(weir_priority_queue *queue, int64_t *key, uint64_t *value)
{
	int64_t unasked;

	if (queue == NULL || value == NULL)
		return WEIR_INVALID_ARGUMENT;
	return take(queue, NULL, key != NULL ? key : &unasked, value);
}

bool weiri_priority_queue_has_room(const weir_priority_queue *queue)
{
	uint64_t oldest, link;

	do {
		/*
		 * [relaxed] all three, which otherwise are as in claim_node(). A ready descriptor asks, and
		 * its word brings what this look must see (readiness.c).
		 */
		oldest = weiri_load_relaxed(&queue->oldest);
		link = weiri_load_relaxed(&node_of(queue, index_of(queue, oldest))->link);
	} while (weiri_load_relaxed(&queue->oldest) != oldest);
	return (link & TAKEN) != 0;
}

bool weiri_priority_queue_peek(const weir_priority_queue *queue, int64_t *key)
{
	struct dummy dummy;

	do {
		find_dummy(queue, &dummy);
		if (index_of(queue, dummy.link) == 0)
			return false;
		/* [P2 acquire] before the link again. */
		*key = weiri_load_acquire(&node_of(queue, index_of(queue, dummy.link))->key);
		/* [relaxed] P2: the link is unchanged, so it was the first item's key. */
	} while (weiri_load_relaxed(&node_of(queue, dummy.index)->link) != dummy.link);
	return true;
}

/* -- closing and looking ----------------------------------------------------------------------- */

void weir_priority_queue_close(weir_priority_queue *queue)
{
	if (queue == NULL)
		return;
	/*
	 * [relaxed] a hint, which comes first: a closer that stalls between the two has closed nothing.
	 */
	weiri_store_relaxed(&queue->closing, 1u);
	/* [P5 release] a thread that sees CLOSED sees what the closer did before. */
	(void)weiri_fetch_or_release(&queue->oldest, CLOSED);
}

bool weir_priority_queue_closed(const weir_priority_queue *queue)
{
	/* [P5 acquire] pairs with the close. */
	return queue != NULL && (weiri_load_acquire(&queue->oldest) & CLOSED) != 0;
}

size_t weir_priority_queue_capacity(const weir_priority_queue *queue)
{
	return queue != NULL ? queue->capacity : 0;
}

void weiri_priority_queue_counts(const weir_priority_queue *queue, uint64_t *in, uint64_t *out)
{
	struct dummy dummy;
	uint64_t size;

	/* [relaxed] looks. If head overtakes the second walk too, its result is near enough. */
	if (!walk_from(queue, weiri_load_relaxed(&queue->near), &dummy, queue->capacity))
		(void)walk_from(queue, weiri_load_relaxed(&queue->head), &dummy, queue->capacity);
	/* [relaxed] a count. */
	size = count_of(queue, weiri_load_relaxed(&queue->oldest) - dummy.position);
	*out = count_of(queue, dummy.position);
	*in = *out + (size < queue->capacity ? size : queue->capacity);
}

bool weiri_priority_queue_passed(const weir_priority_queue *queue, uint64_t mask, size_t count)
{
	/* [relaxed] a count */
	return (count_of(queue, weiri_load_relaxed(&queue->oldest)) & mask) < count;
}

size_t weir_priority_queue_size_approx(const weir_priority_queue *queue)
{
	uint64_t in = 0, out = 0;

	if (queue != NULL)
		weiri_priority_queue_counts(queue, &in, &out);
	return (size_t)(in - out);
}
