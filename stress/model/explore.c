/*
 * explore.c - directs each execution on another path, until all paths are covered.
 *
 * An execution is a path of nodes. At a schedule node a thread was chosen to perform its next
 * visible operation; at a value node one of several values was chosen. The next execution takes the
 * same path up to the last node that has something left to try.
 *
 * Which threads are worth trying at a schedule node is found during the search, by dynamic
 * partial-order reduction with source sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014). Suppose
 * that operation b conflicts with an earlier operation a of another thread, and the two are not
 * ordered by other conflicts. Then an execution must be tried that has b before a. Such an
 * execution leaves the old path at the node of a. It performs the operations that ran after a and
 * do not depend on a, and then it performs b. Any thread that can begin this sequence is suitable.
 * If one of these threads is tried already, or sleeps, such executions are covered. It is not
 * enough to try the thread of b alone. That thread may sleep because b was tried first at an
 * earlier node. The missing executions then begin with an operation of a third thread, on which b
 * depends (check_reduction.c, seeds 34 and 1316). A thread that was tried at a node sleeps until
 * another thread performs an operation that conflicts with the sleeper's next one.
 *
 * Conflicts. Two operations on one location conflict if one of them writes. seq_cst fences conflict
 * with each other and with seq_cst accesses, with which they share S. A membarrier conflicts with
 * everything. A load that is not seq_cst may return old stores. "A store, then a load that returns
 * an older store" therefore equals "the load, then the store", and such a pair must be reversed in
 * one direction only. If the load came first, the store must be tried before the load; the load
 * then need not return the values that it could return before (`fresh`). If the store came first,
 * the other order need not be tried. Such a load depends on the store that it reads, not on the
 * newer stores that it ignores. For the same reason a store that sleeps need not wake for such a
 * load. A compare-and-swap that fails is such a load.
 *
 * With states merged (state.c) all threads are tried at a schedule node, and the work is reduced in
 * another way. A load that is not seq_cst can also happen later. Operations of other threads in
 * between do not take away any store that it could read, and no other thread can tell whether the
 * load has happened. The same is true of a compare-and-swap that fails as such a load. Such an
 * operation is therefore combined with its thread's next operation. The checker switches from a
 * thread only after an operation that other threads can notice: a write, a fence, a seq_cst load.
 * It also switches if since its last operation the thread allocated or freed memory or read the
 * clock, because other threads change which block is free and what time it is. (At most MOST_AS_ONE
 * operations are combined in a row, because a loop may wait for another thread.) A membarrier can
 * tell whether a load has happened, because it makes the stores of other threads visible to the
 * thread that loads. When the search meets a membarrier, it begins again, with a choice after each
 * operation.
 *
 * A write is also combined with the operation that follows it, if no other thread has accessed that
 * location in any execution so far. If another thread can access the location, the search still
 * finds out: before its first such access that thread does not depend on the write, so it comes to
 * the access whether or not the write has happened. Then the search begins again (memory.c). The
 * path has a node for such a write, because a replay knows nothing of earlier executions and makes
 * a choice there.
 *
 * With a bound on preemptions, a reversal may exceed the bound at the node where it is found. It is
 * then also tried at the node where the running thread began to run (conservative points). With
 * such a bound no thread sleeps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/checkpoint.h"
#include "model/engine.h"
#include "model/replay.h"

enum { NO_CHANGE = 15, MOST_AS_ONE = 32 };

struct node {
	uint8_t is_value;
	/* a schedule node without a choice: no other thread looks at what this thread wrote last */
	uint8_t forced;
	/* for a schedule node; sets of threads */
	uint8_t thread;         /* chosen */
	uint8_t previous;       /* ran before */
	uint8_t enabled;        /* could run */
	uint8_t todo, done;     /* worth trying; tried */
	uint8_t asleep;         /* when the node was reached */
	uint8_t preemptions;    /* before it */
	uint32_t number;        /* number of this operation among its thread's operations */
	uint32_t count, chosen; /* value node */
};

/*
 * For each location and thread: the last node + 1 at which the thread accessed the location, wrote
 * it, or performed a futex wait or wake on it.
 */
struct history {
	uint32_t access[THREADS], write[THREADS], futex[THREADS];
};

static struct history history[LOCATIONS];
static uint32_t history_used;
static uint32_t heavy_node[THREADS], fence_node[THREADS], seq_cst_node[THREADS], last_node[THREADS];

static struct node path[PATH];
static uint32_t seen_at[PATH]
					   /*
					    * the number of operations of each thread on which the node's depends
					    * (itself included)
					    */
					   [THREADS];
static uint32_t seen[THREADS][THREADS]; /* the same for each thread's last operation */
static uint32_t path_length, path_at;
static int goes_back; /* this execution takes the path of the previous one, up to a choice */
static uint32_t turn; /* that choice, or the last one of a thread before it */
/*
 * number of nodes at the start of the path that equal the previous execution: their races are known
 */
static uint32_t replayed;
static unsigned last_thread, preemptions;
static uint8_t asleep;

static int has_membarrier; /* with states merged: 1 if there was one */

static uint64_t random_state;
static uint32_t priority[THREADS];
static uint64_t change_at[NO_CHANGE];
static unsigned changes;
static uint64_t longest; /* steps of the random executions so far */

/* Returns 1 if nothing is left out except what follows a state that was reached before. */
static int explores_all(void)
{
	return model_options.no_reduction || model_options.merge_states;
}

static int merges(void)
{
	return model_options.merge_states && model_options.random_seed == 0 && model_options.replay == NULL;
}

static uint8_t bit(unsigned thread)
{
	return (uint8_t)(1u << thread);
}

/* -- what conflicts ---------------------------------------------------------------------------- */

static int writes(const struct operation *operation)
{
	return operation->kind == OP_STORE || operation->kind == OP_RMW || operation->kind == OP_CAS;
}

static int waits_or_wakes(const struct operation *operation)
{
	return operation->kind == OP_WAIT || operation->kind == OP_WAKE;
}

/* An access that is itself part of S. */
static int in_s(const struct operation *operation)
{
	return operation->order == SEQ_CST && operation->kind <= OP_CAS;
}

/*
 * Returns 1 for an operation that may return an old value: a load, or a CAS that fails. Only
 * afterwards is it known whether it did.
 */
static int may_be_stale(const struct operation *operation)
{
	return (operation->kind == OP_LOAD || operation->kind == OP_CAS) && operation->failure != SEQ_CST;
}

/* Judges operations a and b of different threads. */
static int conflict(const struct operation *a, const struct operation *b)
{
	if (a->kind == OP_HEAVY || b->kind == OP_HEAVY)
		return 1;
	if (a->kind == OP_FENCE)
		return b->kind == OP_FENCE || in_s(b);
	if (b->kind == OP_FENCE)
		return in_s(a);
	if (a->address != b->address)
		return 0;
	if (a->kind == OP_WAKE || b->kind == OP_WAKE)
		return waits_or_wakes(a) && waits_or_wakes(b);
	return writes(a) || writes(b) || (waits_or_wakes(a) && waits_or_wakes(b));
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * Returns the last node + 1 of `other` that conflicts with the operation; 0: none. `as_load`: the
 * operation is a load that may be stale; only membarriers conflict with it.
 */
static uint32_t last_conflict(unsigned other, const struct operation *operation, int as_load)
{
	uint32_t node = heavy_node[other];
	const struct history *past = &history[operation->location];

	if (operation->kind == OP_HEAVY)
		return last_node[other];
	if (operation->kind == OP_FENCE)
		return later(node, later(fence_node[other], seq_cst_node[other]));
	if (as_load)
		return node;
	if (in_s(operation))
		node = later(node, fence_node[other]);
	if (operation->kind == OP_WAKE)
		return later(node, past->futex[other]);
	if (operation->kind == OP_WAIT)
		return later(node, later(past->write[other], past->futex[other]));
	return later(node, writes(operation) ? past->access[other] : past->write[other]);
}

/*
 * Consider the executions that leave the path at node `at` and perform the current operation of
 * `thread` before the operation at `at`. Returns the threads with which they can begin. Take the
 * operations that ran after node `at` and do not depend on the operation there. A thread qualifies
 * if its first such operation depends on no other such operation.
 */
static unsigned initials(uint32_t at, unsigned thread)
{
	const struct node *reversed = &path[at];
	uint32_t first[THREADS] = {0}; /* number of each thread's first such operation; 0: none */
	unsigned found = 0;

	for (uint32_t i = at + 1; i < last_node[thread]; i++) {
		unsigned me = path[i].thread;
		const uint32_t *sees = i + 1 == last_node[thread] ? seen[thread] : seen_at[i];
		int begins = 1;

		if (path[i].is_value || (me != thread && sees[reversed->thread] >= reversed->number) || first[me] != 0)
			continue;
		for (unsigned t = 1; t <= model_program->threads; t++)
			begins &= t == me || first[t] == 0 || sees[t] < first[t];
		first[me] = path[i].number;
		found |= begins ? bit(me) : 0u;
	}
	return found;
}

/*
 * Requests an execution that performs the operation of `thread` before the operation at node `at`,
 * unless such an execution is tried already.
 */
static void try_at(uint32_t at, unsigned thread)
{
	struct node *node = &path[at];
	unsigned begin = model_options.preemptions != 0 ? bit(thread) : initials(at, thread);

	begin &= node->enabled;
	if (begin == 0)
		node->todo |= node->enabled;
	else if (((node->todo | node->asleep) & begin) == 0)
		node->todo |= (begin & bit(thread)) != 0 ? bit(thread) : (uint8_t)(begin & -begin);
}

/* Returns where the thread that ran at node `at` began to run. */
static uint32_t begin_of_run(uint32_t at)
{
	uint32_t begin = at;

	while (at-- > 0) {
		if (path[at].is_value)
			continue;
		if (path[at].thread != path[begin].thread)
			break;
		begin = at;
	}
	return begin;
}

/*
 * `thread` is about to perform its operation. Finds the earlier operations that race with it, so
 * that it must also be tried before them. Returns their number; at[] receives their nodes.
 */
static unsigned find_races(unsigned thread, const struct operation *operation, int as_load, uint32_t at[])
{
	unsigned races = 0;

	if (model_options.random_seed != 0 || model_options.no_reduction || path_at <= replayed)
		return 0;
	for (unsigned other = 1; other <= model_program->threads; other++) {
		uint32_t node = other != thread ? last_conflict(other, operation, as_load) : 0;

		if (node != 0 && seen[thread][other] < path[node - 1].number) /* not ordered */
			at[races++] = node - 1;
	}
	return races;
}

static void reverse_races(unsigned thread, const uint32_t at[], unsigned races)
{
	for (unsigned i = 0; i < races; i++) {
		try_at(at[i], thread);
		if (model_options.preemptions != 0)
			try_at(begin_of_run(at[i]), thread);
	}
}

static void depend_on(unsigned thread, uint32_t node)
{
	if (node == 0)
		return;
	for (unsigned t = 1; t <= model_program->threads; t++)
		seen[thread][t] = later(seen[thread][t], seen_at[node - 1][t]);
}

static void depend_on_conflicts(unsigned thread, const struct operation *operation, int as_load)
{
	for (unsigned other = 1; other <= model_program->threads; other++) {
		if (other != thread)
			depend_on(thread, last_conflict(other, operation, as_load));
	}
	memcpy(seen_at[last_node[thread] - 1], seen[thread], sizeof(seen_at[0]));
}

static void remember_fence(unsigned thread, const struct operation *operation)
{
	if (operation->kind == OP_HEAVY)
		heavy_node[thread] = last_node[thread];
	else
		fence_node[thread] = last_node[thread];
}

static void remember(unsigned thread, const struct operation *operation, int as_load)
{
	struct history *past = &history[operation->location];
	uint32_t node = last_node[thread];

	if (in_s(operation) && !as_load)
		seq_cst_node[thread] = node;
	if (waits_or_wakes(operation))
		past->futex[thread] = node;
	if (operation->kind != OP_WAKE)
		past->access[thread] = node;
	if (writes(operation) && !as_load)
		past->write[thread] = node;
}

/* Sleeping threads that conflict with this operation wake. */
static void wake_sleepers(const struct operation *operation, int as_load)
{
	for (unsigned t = 1; t <= model_program->threads; t++) {
		const struct operation *sleeper = &model_threads[t].next;

		if ((asleep & bit(t)) == 0 || !conflict(sleeper, operation) || (as_load && sleeper->kind != OP_HEAVY))
			continue;
		asleep &= (uint8_t)~bit(t);
		if (may_be_stale(sleeper) && writes(operation))
			model_threads[t].fresh = memory_last(operation->location) + 1;
	}
}

static void settle(unsigned thread, const struct operation *operation, int as_load)
{
	uint32_t at[THREADS];
	unsigned races = find_races(thread, operation, as_load, at);

	depend_on_conflicts(thread, operation, as_load);
	reverse_races(thread, at, races);
	if (operation->kind == OP_HEAVY || operation->kind == OP_FENCE)
		remember_fence(thread, operation);
	else
		remember(thread, operation, as_load);
	if (asleep != 0)
		wake_sleepers(operation, as_load);
}

/* With states merged: `thread` was chosen, for this operation and those combined with it. */
static void begin_row(unsigned thread, uint32_t at)
{
	struct thread *chosen = &model_threads[thread];

	/* Only a loop of loads returns to where it was. The bound on reads of one old store ends it. */
	if (!chosen->as_one)
		memory_forget_stale_reads(thread);
	chosen->done++;
	chosen->as_one = chosen->unseen = 0;
	chosen->row = 0;
	last_node[thread] = at + 1;
}

/*
 * `thread` performs its operation at node `at`. An operation that is not known to write yet is
 * treated as a load.
 */
static void run(unsigned thread, uint32_t at)
{
	const struct operation *operation = &model_threads[thread].next;

	if (model_options.merge_states) {
		begin_row(thread, at);
		model_threads[thread].hidden = 0;
		return;
	}
	for (; history_used <= operation->location; history_used++)
		history[history_used] = (struct history){0};
	/*
	 * The number of this operation is in seen[] before races are searched for. This is correct,
	 * because the search looks only at the numbers of other threads.
	 */
	seen[thread][thread] = path[at].number = ++model_threads[thread].done;
	last_node[thread] = at + 1;
	settle(thread, operation, may_be_stale(operation));
}

void explore_cas_succeeds(void)
{
	const struct operation *operation = &model_threads[model_thread].next;

	model_threads[model_thread].fresh = 0;
	if (may_be_stale(operation) && !model_options.merge_states)
		settle(model_thread, operation, 0);
}

void explore_cas_could_succeed(void)
{
	const struct operation *operation = &model_threads[model_thread].next;

	uint32_t at[THREADS], as_load[THREADS];
	unsigned me = model_thread, races;

	if (!may_be_stale(operation) || model_options.merge_states)
		return;
	races = find_races(me, operation, 0, at);
	if (races == 0)
		return;
	/*
	 * For its races it is treated as if it had succeeded, and then depends on the last write. What
	 * it depends on is restored afterwards.
	 */
	memcpy(as_load, seen[me], sizeof(as_load));
	for (unsigned other = 1; other <= model_program->threads; other++)
		depend_on(me, other != me ? last_conflict(other, operation, 0) : 0);
	reverse_races(me, at, races);
	memcpy(seen[me], as_load, sizeof(as_load));
}

static int goes_with_next(void)
{
	return !has_membarrier && model_options.stop_thread == 0;
}

/*
 * A replay does not know which threads access which locations. In a replay there is therefore a
 * choice after the operation, and the path contains it.
 */
int explore_goes_unseen(void)
{
	return model_threads[model_thread].unseen = goes_with_next() && model_options.replay == NULL;
}

void explore_reads_from(uint32_t node)
{
	unsigned me = model_thread;

	if (model_options.merge_states) {
		model_threads[me].as_one = may_be_stale(&model_threads[me].next) && goes_with_next();
		return;
	}
	model_threads[me].fresh = 0;
	depend_on(me, node);
	memcpy(seen_at[last_node[me] - 1], seen[me], sizeof(seen_at[0]));
}

uint32_t explore_node(void)
{
	return model_running ? last_node[model_thread] : 0;
}

void explore_shows(void)
{
	if (model_running)
		model_threads[model_thread].as_one = model_threads[model_thread].unseen = 0;
}

void explore_learns_nothing(void)
{
	has_membarrier = 0;
}

void explore_meets_membarrier(void)
{
	if (!model_options.merge_states || has_membarrier)
		return;
	has_membarrier = 1;
	model_begin_again();
}

int explore_has_membarrier(void)
{
	return has_membarrier;
}

/* -- choosing ---------------------------------------------------------------------------------- */

static uint64_t next_random(void)
{
	uint64_t z = random_state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static struct node *new_node(void)
{
	if (path_at == PATH)
		model_fail("an execution has more than %d choices", PATH);
	path[path_at] = (struct node){0};
	path_length = path_at + 1;
	return &path[path_at];
}

/* The running thread continues, as if it had been chosen. */
static void force(void)
{
	unsigned me = model_thread;
	struct node *node = &path[path_at];

	if (path_at >= path_length) {
		node = new_node();
		node->thread = (uint8_t)me;
		node->enabled = node->todo = node->done = bit(me);
		node->forced = 1;
	} else if (!node->forced || node->thread != me) {
		model_fail("the path does not fit the program");
	}
	begin_row(me, path_at++);
}

int explore_goes_on(void)
{
	struct thread *me = &model_threads[model_thread];

	if (me->unseen && me->hidden < MOST_AS_ONE) {
		me->hidden++;
		force();
		return 1;
	}
	if (!me->as_one || me->row == MOST_AS_ONE)
		return 0;
	me->row++;
	me->done++;
	me->as_one = 0;
	return 1;
}

static unsigned by_priority(unsigned enabled)
{
	unsigned best = 0;

	for (unsigned i = 0; i < changes; i++) {
		if (change_at[i] == model_steps)
			priority[last_thread] = i;
	}
	for (unsigned t = 1; t <= model_program->threads; t++) {
		if ((enabled & bit(t)) != 0 && (best == 0 || priority[t] > priority[best]))
			best = t;
	}
	return best;
}

static unsigned choose_new(unsigned enabled)
{
	unsigned candidates = enabled & ~(unsigned)asleep;

	if (model_options.random_seed != 0)
		return by_priority(enabled);
	if (candidates == 0)
		return 0;
	return (candidates & bit(last_thread)) != 0 ? last_thread : (unsigned)__builtin_ctz(candidates);
}

unsigned explore_thread(unsigned enabled)
{
	struct node *node = &path[path_at];

	if (path_at < path_length) {
		if (model_options.preemptions == 0 && !explores_all())
			asleep = (uint8_t)(node->asleep | (node->done & ~bit(node->thread)));
		if ((enabled & bit(node->thread)) == 0) {
			model_note_failure("the path does not fit the program");
			return 0;
		}
	} else {
		unsigned thread = choose_new(enabled);

		if (thread == 0 || (merges() && !state_is_new()))
			return 0;
		node = new_node();
		node->enabled = (uint8_t)enabled;
		node->asleep = asleep;
		node->previous = (uint8_t)last_thread;
		node->preemptions = (uint8_t)preemptions;
		node->thread = (uint8_t)thread;
		node->done = bit(thread);
		node->todo = explores_all() ? (uint8_t)enabled : bit(thread);
	}
	if (node->thread != last_thread && (enabled & bit(last_thread)) != 0)
		preemptions++;
	run(node->thread, path_at++);
	last_thread = node->thread;
	return node->thread;
}

/*
 * Returns 0, for the newest value, in at least three of four cases; in at least one of two if
 * executions have the largest number of changes of priority.
 */
static uint32_t value_at_random(uint32_t count)
{
	if (model_options.random_seed == 0 || next_random() % (changes == NO_CHANGE ? 2 : 4) != 0)
		return 0;
	return (uint32_t)(next_random() % count);
}

uint32_t explore_value(uint32_t count)
{
	struct node *node;

	if (count <= 1)
		return 0;
	node = &path[path_at];
	if (path_at >= path_length) {
		node = new_node();
		node->is_value = 1;
		node->count = count;
		node->chosen = value_at_random(count);
	}
	path_at++;
	if (node->chosen >= count)
		model_fail("the path does not fit the program");
	return node->chosen;
}

/* -- executions -------------------------------------------------------------------------------- */

void explore_begin(void)
{
	path_length = 0;
	random_state = model_options.random_seed;
	changes = model_options.random_depth != 0 ? model_options.random_depth - 1 : 2;
	changes = changes < NO_CHANGE ? changes : NO_CHANGE;
	longest = 50;
}

static void begin_random(void)
{
	path_length = 0;
	longest = model_steps > longest ? model_steps : longest;
	for (unsigned t = 0; t < THREADS; t++)
		priority[t] = NO_CHANGE + (uint32_t)(next_random() % 1000);
	for (unsigned i = 0; i < changes; i++)
		change_at[i] = next_random() % longest;
}

static void look_for_turn(void)
{
	turn = replayed;
	while (turn > 0 && (path[turn].is_value || path[turn].forced))
		turn--;
	goes_back = path_length > 0 && model_options.random_seed == 0 && model_options.replay == NULL;
}

int explore_goes_back(void)
{
	return goes_back;
}

uint32_t explore_turn(void)
{
	return turn;
}

int explore_is_at_turn(void)
{
	return goes_back && path_at == turn;
}

void explore_execution(void)
{
	history_used = 0;
	replayed = path_length > 0 ? path_length - 1 : 0;
	look_for_turn();
	memset(heavy_node, 0, sizeof(heavy_node));
	memset(fence_node, 0, sizeof(fence_node));
	memset(seq_cst_node, 0, sizeof(seq_cst_node));
	memset(last_node, 0, sizeof(last_node));
	memset(seen, 0, sizeof(seen));
	path_at = 0;
	last_thread = 0;
	preemptions = 0;
	asleep = 0;
	if (model_options.random_seed != 0 && model_options.replay == NULL)
		begin_random();
}

static unsigned left_to_try(const struct node *node)
{
	unsigned left = node->todo & ~(unsigned)(node->done | node->asleep);

	if (model_options.preemptions == 0 || node->preemptions + 1u < model_options.preemptions)
		return left;
	/* No preemption is left, so the thread that ran continues if it can. */
	return (node->enabled & bit(node->previous)) != 0 ? left & bit(node->previous) : left;
}

int explore_next(void)
{
	path_length = path_at;
	for (; path_length > 0; path_length--) {
		struct node *node = &path[path_length - 1];
		unsigned left;

		if (node->is_value) {
			if (++node->chosen < node->count)
				return 1;
			continue;
		}
		left = left_to_try(node);
		if (left != 0) {
			node->thread = (uint8_t)__builtin_ctz(left);
			node->done |= bit(node->thread);
			return 1;
		}
	}
	return 0;
}

/*
 * path[] and seen_at[] are not kept. Up to the checkpoint's node they are unchanged, except that
 * `todo` may have grown, which must not be undone.
 */
void explore_parts(struct checkpoint *checkpoint)
{
	checkpoint_part(checkpoint, &history_used, sizeof(history_used));
	checkpoint_part(checkpoint, history, history_used * sizeof(history[0]));
	checkpoint_part(checkpoint, heavy_node, sizeof(heavy_node));
	checkpoint_part(checkpoint, fence_node, sizeof(fence_node));
	checkpoint_part(checkpoint, seq_cst_node, sizeof(seq_cst_node));
	checkpoint_part(checkpoint, last_node, sizeof(last_node));
	checkpoint_part(checkpoint, seen, sizeof(seen));
	checkpoint_part(checkpoint, &path_at, sizeof(path_at));
	checkpoint_part(checkpoint, &last_thread, sizeof(last_thread));
	checkpoint_part(checkpoint, &preemptions, sizeof(preemptions));
	checkpoint_part(checkpoint, &asleep, sizeof(asleep));
}

char *explore_path(void)
{
	char *text = malloc((size_t)path_at * REPLAY_MOST_TEXT + 1), *at = text;

	if (text == NULL)
		return NULL;
	*at = '\0';
	for (uint32_t i = 0; i < path_at; i++)
		at = replay_write(at,
		                  (struct replay_choice){path[i].is_value, path[i].is_value ? path[i].chosen : path[i].thread});
	return text;
}

/*
 * A part of the text that is no choice, or no choice of this program, ends the path. The rest is
 * chosen as in a search.
 */
void explore_follow(const char *text)
{
	struct replay_choice choice;

	for (path_length = 0; *text != '\0' && path_length < PATH; path_length++) {
		text = replay_read(text, &choice);
		if (text == NULL || (!choice.is_value && choice.number >= THREADS))
			return;
		path[path_length] = (struct node){.is_value = (uint8_t)choice.is_value};
		if (choice.is_value)
			path[path_length].chosen = choice.number;
		else
			path[path_length].thread = (uint8_t)choice.number;
	}
}
