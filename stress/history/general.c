/*
 * general.c - judges any history by any sequential model, by search.
 *
 * Wing and Gong's algorithm (1993). A list holds the calls and returns that are not explained yet.
 * The next operation of the order is one whose call comes before every return in the list. The
 * search tries such an operation; if the model refuses it, the search tries the next one. At a
 * return no further operation can be next, so the search undoes its last choice.
 *
 * Lowe's improvement (2017): the search remembers pairs of a set of explained operations and a
 * state. A pair that was tried before need not be tried again. These pairs are kept whole, not only
 * as hashes, so that a collision cannot become a verdict.
 *
 * If times do not tell which operations precede an operation, the history has a set of the
 * preceding operations for each operation. An operation can then be next if its set is explained
 * completely; the rest of the search is the same. Times cannot represent such sets. For example,
 * the calls of four threads may be ordered in two pairs, a before b and c before d, with no order
 * between the pairs. Times always order a before d or c before b.
 */
#include "history/order.h"

#include <stdlib.h>
#include <string.h>

/*
 * Calls and returns in time order; node 0 is the head. Explaining an operation unlinks both of its
 * nodes.
 */
struct node {
	uint32_t previous, next;
	uint32_t op;
	uint32_t partner; /* the return of this call; 0: this node is a return */
};

#define NO_OP UINT32_MAX

struct search {
	const struct history *history;
	const struct history_model *model;
	const void *context;
	struct history_order order;
	struct node *node;
	uint32_t *chosen; /* operations, in the order of the choices */
	uint32_t depth, deepest, stuck;
	size_t set_size, state_size, key_size; /* bytes; key: the set, then the state */
	unsigned char *key;                    /* the current set and state */
	unsigned char *undo;                   /* for each depth, the state before the choice */
	/* The pairs that were tried: an arena of keys and a table of indices + 1. */
	unsigned char *met;
	size_t met_count, met_room, budget;
	uint32_t *slot;
	size_t mask;
};

static unsigned char *state_of(struct search *search)
{
	return search->key + search->set_size;
}

/* -- what was tried ---------------------------------------------------------------------------- */

static uint64_t hash(const unsigned char *bytes, size_t size)
{
	uint64_t sum = UINT64_C(0x9e3779b97f4a7c15);

	for (; size >= sizeof(uint64_t); bytes += sizeof(uint64_t), size -= sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
		sum ^= sum >> 32;
	}
	return sum;
}

static uint32_t *find_slot(const struct search *search, const unsigned char *key)
{
	size_t place = (size_t)hash(key, search->key_size) & search->mask;

	while (search->slot[place] != 0 &&
	       memcmp(search->met + (search->slot[place] - 1) * search->key_size, key, search->key_size) != 0)
		place = (place + 1) & search->mask;
	return &search->slot[place];
}

static int grow(struct search *search)
{
	size_t room = search->met_room == 0 ? 256 : 2 * search->met_room;
	unsigned char *met = realloc(search->met, room * search->key_size);
	uint32_t *slot = calloc(4 * room, sizeof(*slot));

	if (met != NULL)
		search->met = met;
	if (met == NULL || slot == NULL) {
		free(slot);
		return 0;
	}
	free(search->slot);
	search->slot = slot;
	search->mask = 4 * room - 1;
	search->met_room = room;
	for (size_t i = 0; i < search->met_count; i++)
		*find_slot(search, search->met + i * search->key_size) = (uint32_t)(i + 1);
	return 1;
}

/*
 * Returns 1 if the current pair is new, and remembers it. Returns 0 if the pair was tried before,
 * and -1 if there is no memory or budget left.
 */
static int remember(struct search *search)
{
	uint32_t *slot;

	if (search->met_count == search->met_room &&
	    (search->met_count >= search->budget || search->met_count >= UINT32_MAX / 8 || !grow(search)))
		return -1;
	slot = find_slot(search, search->key);
	if (*slot != 0)
		return 0;
	if (search->met_count >= search->budget)
		return -1;
	memcpy(search->met + search->met_count++ * search->key_size, search->key, search->key_size);
	*slot = (uint32_t)search->met_count;
	return 1;
}

/* -- the list ---------------------------------------------------------------------------------- */

static void unlink_node(struct node nodes[], uint32_t n)
{
	nodes[nodes[n].previous].next = nodes[n].next;
	nodes[nodes[n].next].previous = nodes[n].previous;
}

static void link_node(struct node nodes[], uint32_t n)
{
	nodes[nodes[n].previous].next = n;
	nodes[nodes[n].next].previous = n;
}

static uint32_t call_node(const struct search *search, uint32_t op)
{
	return search->order.called[op] + 1;
}

static void lift(struct search *search, uint32_t op)
{
	uint32_t call = call_node(search, op);

	unlink_node(search->node, call);
	unlink_node(search->node, search->node[call].partner);
}

/* Puts nodes back in the reverse order of unlinking, so that each node finds its old neighbours. */
static void put_back(struct search *search, uint32_t op)
{
	uint32_t call = call_node(search, op);

	link_node(search->node, search->node[call].partner);
	link_node(search->node, call);
}

static void flip(struct search *search, uint32_t op)
{
	search->key[op / 8] ^= (unsigned char)(1u << op % 8);
}

static void build_list(struct search *search)
{
	uint32_t events = search->order.events;

	for (uint32_t e = 0; e < events; e++) {
		uint32_t op = search->order.event[e] / 2;
		uint32_t partner = (search->order.event[e] & 1) != 0 ? 0 : search->order.returned[op] + 1;

		search->node[e + 1] = (struct node){e, (e + 2) % (events + 1), op, partner};
	}
	search->node[0] = (struct node){events, events != 0, NO_OP, 0};
}

/* -- what may come next ------------------------------------------------------------------------ */

static int is_explained(const struct search *search, uint32_t op)
{
	return search->key[op / 8] >> op % 8 & 1;
}

static int is_free(const struct search *search, uint32_t op)
{
	size_t words = search->set_size / sizeof(uint64_t);

	for (size_t i = 0; i < words; i++) {
		uint64_t explained = 0;

		for (size_t byte = 0; byte < sizeof(explained); byte++)
			explained |= (uint64_t)search->key[i * sizeof(explained) + byte] << 8 * byte;
		if ((search->history->before[op * words + i] & ~explained) != 0)
			return 0;
	}
	return 1;
}

static uint32_t free_from(const struct search *search, uint32_t op)
{
	while (op < search->history->count && (is_explained(search, op) || !is_free(search, op)))
		op++;
	return op < search->history->count ? op : NO_OP;
}

/*
 * Returns the operation of a call, or NO_OP if the node is a return, behind which no operation may
 * be next.
 */
static uint32_t called_at(const struct search *search, uint32_t node)
{
	return search->node[node].partner != 0 ? search->node[node].op : NO_OP;
}

/* Returns the first operation that may be next, or NO_OP. */
static uint32_t first_candidate(const struct search *search)
{
	return search->history->before != NULL ? free_from(search, 0) : called_at(search, search->node[0].next);
}

/* Returns the next operation after `op` that may also be next. */
static uint32_t candidate_after(const struct search *search, uint32_t op)
{
	return search->history->before != NULL ? free_from(search, op + 1)
	                                       : called_at(search, search->node[call_node(search, op)].next);
}

/* Returns the unexplained operation whose return comes first, or the first one. */
static uint32_t first_unexplained(const struct search *search)
{
	uint32_t at = search->history->before != NULL ? 0 : search->node[0].next;

	if (search->history->before == NULL) {
		while (search->node[at].partner != 0)
			at = search->node[at].next;
		return search->node[at].op;
	}
	while (is_explained(search, at))
		at++;
	return at;
}

/* -- the search -------------------------------------------------------------------------------- */

static unsigned char *undo_of(const struct search *search, uint32_t depth)
{
	return search->undo + (size_t)depth * search->state_size;
}

/*
 * Chooses this operation as the next one, and returns 1. Returns 0 if the model refuses it or the
 * resulting pair was tried before, and -1 if there is no memory or budget left.
 */
static int choose(struct search *search, uint32_t op)
{
	unsigned char *before = undo_of(search, search->depth);
	int fresh;

	memcpy(before, state_of(search), search->state_size);
	if (!search->model->step(search->history, &search->history->op[op], search->context, state_of(search))) {
		memcpy(state_of(search), before, search->state_size);
		return 0;
	}
	flip(search, op);
	fresh = remember(search);
	if (fresh != 1) {
		flip(search, op);
		memcpy(state_of(search), before, search->state_size);
		return fresh;
	}
	search->chosen[search->depth++] = op;
	if (search->history->before == NULL)
		lift(search, op);
	return 1;
}

/* Undoes the last choice and returns its operation. */
static uint32_t take_back(struct search *search)
{
	uint32_t op = search->chosen[--search->depth];

	memcpy(state_of(search), undo_of(search, search->depth), search->state_size);
	flip(search, op);
	if (search->history->before == NULL)
		put_back(search, op);
	return op;
}

/* No operation can be next. Notes how far the search came, for the finding. */
static void note_stuck(struct search *search)
{
	if (search->depth >= search->deepest) {
		search->deepest = search->depth;
		search->stuck = first_unexplained(search);
	}
}

static enum history_verdict run(struct search *search)
{
	uint32_t op = first_candidate(search);

	while (search->depth < search->history->count) {
		int chosen;

		if (op == NO_OP) {
			note_stuck(search);
			if (search->depth == 0)
				return HISTORY_VIOLATED;
			op = candidate_after(search, take_back(search));
			continue;
		}
		chosen = choose(search, op);
		if (chosen < 0)
			return HISTORY_UNDECIDED;
		op = chosen ? first_candidate(search) : candidate_after(search, op);
	}
	return HISTORY_HOLDS;
}

static int init_search(struct search *search)
{
	size_t count = search->history->count;

	search->set_size = (count + 63) / 64 * 8;
	/* Whole words, so that the hash covers all of it. */
	search->state_size = (search->model->state_size(search->history, search->context) + 7) / 8 * 8;
	search->key_size = search->set_size + search->state_size;
	search->node = calloc(2 * count + 1, sizeof(*search->node));
	search->chosen = calloc(count + 1, sizeof(*search->chosen));
	search->key = calloc(search->key_size + 1, 1);
	search->undo = calloc((count + 1) * search->state_size + 1, 1);
	return search->node != NULL && search->chosen != NULL && search->key != NULL && search->undo != NULL;
}

static void fini_search(struct search *search)
{
	history_order_fini(&search->order);
	free(search->node);
	free(search->chosen);
	free(search->key);
	free(search->undo);
	free(search->met);
	free(search->slot);
}

static enum history_verdict conclude(struct search *search, enum history_verdict verdict, uint32_t order[],
                                     struct history_finding *finding)
{
	if (verdict == HISTORY_VIOLATED) {
		(void)history_violated(finding, "none fits", "no order explains more than %u of %zu operations",
		                       search->deepest, search->history->count);
		history_witness(finding, search->stuck);
	} else if (verdict == HISTORY_UNDECIDED) {
		(void)history_violated(finding, "budget", "the search is undecided after %zu pairs of a set and a state",
		                       search->met_count);
	}
	for (uint32_t i = 0; verdict == HISTORY_HOLDS && order != NULL && i < search->depth; i++)
		order[i] = search->chosen[i];
	return verdict;
}

int history_came_before(const struct history *history, size_t one, size_t other)
{
	size_t words = (history->count + 63) / 64;

	if (history->before == NULL)
		return history->op[one].returned < history->op[other].called;
	return history->before[other * words + one / 64] >> one % 64 & 1;
}

enum history_verdict history_check_general(const struct history *history, const struct history_model *model,
                                           const void *context, size_t budget, uint32_t order[],
                                           struct history_finding *finding)
{
	struct search search = {.history = history, .model = model, .context = context, .budget = budget};
	enum history_verdict verdict = HISTORY_HOLDS;

	if (history->before == NULL)
		verdict = history_order_init(&search.order, history, finding);
	if (verdict == HISTORY_HOLDS && !init_search(&search))
		verdict = history_no_memory(finding);
	if (verdict == HISTORY_HOLDS) {
		if (history->before == NULL)
			build_list(&search);
		model->start(history, context, state_of(&search));
		verdict = conclude(&search, run(&search), order, finding);
	}
	fini_search(&search);
	return verdict;
}
