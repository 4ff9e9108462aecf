/*
 * test_invariants.c - each assertion that guards a structure fails on a damaged structure.
 *
 * This program is only in builds with assertions (assert_level 3). Each test plants a violation in
 * a child, which the assertion must end with the invariant's name.
 */
#include <criterion/criterion.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/flow/keyed_join.h>
#include <weir/cancel.h>
#include <weir/coordinator.h>
#include <weir/critical_section.h>
#include <weir/flow/map_staging.h>
#include <weir/metrics.h>
#include <weir/mpsc.h>
#include <weir/priority_queue.h>
#include <weir/queue_runner.h>
#include <weir/read_section.h>
#include <weir/reclaim.h>
#include <weir/spsc.h>
#include <weir/flow/staging.h>
#include <weir/store.h>
#include <weir/flow/op.h>
#include <weir/tensor.h>
#include <weir/transport.h>
#include <weir/txn.h>
#include <weir/value.h>
#include <weir/var.h>
#include <weir/var_cache.h>
#include <weir/watch.h>

#include "base/assert.h"
#include "session/session.h"
#include "session/step.h"
#include "metrics/stripes.h"
#include "areas/area.h"
#include "areas/keyed_join_part.h"
#include "areas/map_entry.h"
#include "monitored/monitored.h"
#include "areas/tree.h"
#include "reclaim/eras.h"
#include "reclaim/magazine.h"
#include "reclaim/scope.h"
#include "ring/layout.h"
#include "ring/ring_list.h"
#include "ring/span16.h"
#include "run/countdown.h"
#include "run/critical_section.h"
#include "run/deque.h"
#include "sync/pending.h"
#include "run/inbox.h"
#include "run/meeting.h"
#include "run/numbers.h"
#include "run/members.h"
#include "shm/frames.h"
#include "shm/newest.h"
#include "sync/delivery.h"
#include "sync/eventcount.h"
#include "sync/hash_list.h"
#include "sync/references.h"
#include "sync/waiters.h"
#include "tensor/object.h"
#include "table/table.h"
#include "var/combine.h"
#include "var/install.h"

#include "stepped.h"

#if WEIR_ASSERT_LEVEL < 3
#error "for builds with -Dassert_level=3"
#endif

enum { SAID = 4096, LONGEST_S = 60 };

/* Runs a child. Returns its status and what it printed before it ended. */
static int run_child(void (*plant)(void), char said[SAID])
{
	int ends[2], status = 0;
	size_t length = 0;
	ssize_t more;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		(void)alarm(LONGEST_S);
		(void)signal(SIGABRT, SIG_DFL);
		(void)dup2(ends[1], STDERR_FILENO);
		plant();
		_exit(0);
	}
	(void)close(ends[1]);
	while (length < SAID - 1 && (more = read(ends[0], said + length, SAID - 1 - length)) > 0)
		length += (size_t)more;
	said[length] = '\0';
	(void)close(ends[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

static void expect_broken(const char *invariant, void (*plant)(void))
{
	char said[SAID], wanted[64];
	int status = run_child(plant, said);

	(void)snprintf(wanted, sizeof(wanted), "invariant %s broken", invariant);
	cr_expect_not_null(strstr(said, wanted), "%s was not found broken: %s", invariant, said);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "%s: the child ended with status %d", invariant,
	          status);
}

static struct weiri_scope enter(void)
{
	return weiri_scope_enter(weiri_record_get());
}

/*
 * Runs the call one instruction after the other, and `spoil` between them until `spoil` returns 1.
 */
static void spoil_between_steps(void (*call)(void *context), int (*spoil)(void *context), void *context)
{
	struct stepped stepped = {.call = call, .context = context};
	int stands = stepped_start(&stepped, 0);

	while (stands && !spoil(context))
		stands = stepped_next(&stepped);
	stepped_finish(&stepped);
}

/* -- operations that wait ---------------------------------------------------------------------- */

static void ignore_read(void *context, enum weir_status status, const weir_error *error, weir_read *read)
{
	(void)context, (void)status, (void)error, (void)read;
}

static weir_pending *pending_wait(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I32};
	weir_pending *pending = NULL;
	weir_var *var;

	if (weir_var_create(NULL, &options, &var, NULL) != WEIR_OK ||
	    weir_var_start_wait(var, 0, ignore_read, NULL, &pending, NULL) != WEIR_OK)
		_exit(1);
	return pending;
}

static void plant_attempt_without_claim(void)
{
	struct weiri_scope scope = enter();
	bool moved = false;

	(void)weiri_pending_drive(&scope, pending_wait(), &moved);
}

static void plant_second_completion(void)
{
	weir_pending *pending = pending_wait();

	weir_pending_cancel(pending, NULL);
	weiri_pending_complete(pending);
}

static void plant_uncounted_wait(void)
{
	weir_pending *pending = pending_wait();

	pending->entries->counted = 0;
	weir_pending_cancel(pending, NULL);
}

Test(invariants, pending)
{
	expect_broken("O1", plant_attempt_without_claim);
	expect_broken("O3", plant_second_completion);
	expect_broken("O4", plant_uncounted_wait);
}

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

static void move_the_only_head(void)
{
	weir_mpsc *inbox = NULL;
	uint64_t value;

	if (weir_mpsc_create(4, NULL, &inbox, NULL) == WEIR_OK) {
		weiri_store_relaxed(&((weir_ring *)(void *)inbox)->head_hint, UINT64_C(1) << 10);
		(void)weir_mpsc_try_dequeue(inbox, &value);
	}
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
	uint64_t index_mask;
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

Test(invariants, priority_queue)
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

Test(invariants, ring_of_spans)
{
	if (!weiri_ltq16_available())
		return;
	expect_broken("N2", leave_a_gap_behind_the_tail);
	expect_broken("N3", move_the_head_beyond_the_tail);
	expect_broken("N4", publish_more_than_fits);
	expect_broken("N5", promise_too_much_room);
	expect_broken("N6", lose_the_span_of_the_head);
}

Test(invariants, ring)
{
	expect_broken("I2", skip_a_ticket);
	expect_broken("I3", take_too_early);
	expect_broken("I4", hint_too_far);
	expect_broken("M1", move_the_only_head);
}

/* The members are those of spsc.c. */
struct spsc_side {
	_Atomic(size_t) index;
	size_t seen, fenced;
};
struct spsc {
	size_t capacity, mask, memory_size;
	weir_allocator allocator;
	WEIRI_ALIGNED_APART struct spsc_side producer;
	WEIRI_ALIGNED_APART struct spsc_side consumer;
};

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

Test(invariants, spsc)
{
	expect_broken("I1", enqueue_too_many);
	expect_broken("I1", move_the_head_behind_the_tail);
	expect_broken("I2", copy_a_head_that_is_still_to_come);
	expect_broken("I2", copy_a_tail_that_is_still_to_come);
	expect_broken("I3", need_no_fence_with_room);
	expect_broken("I3", need_no_fence_with_values);
}

Test(invariants, ring_list)
{
	expect_broken("I1", link_behind_an_open_ring);
	expect_broken("I2", lose_the_tail);
}

/* -- reclaim ----------------------------------------------------------------------------------- */

static void read_outside_a_section(void)
{
	_Atomic(void *) place = NULL;
	void *found;

	weiri_section_read(weiri_record_get(), &place, &found);
	(void)found;
}

static void end_a_reservation_early(void)
{
	struct weiri_scope scope = enter();
	_Atomic(void *) place = NULL;
	void *found;

	weiri_store_relaxed(&scope.record->hi, 0);
	weiri_section_read(scope.record, &place, &found);
	(void)found;
}

static void forget_an_announcement(void)
{
	struct weiri_scope scope = enter();
	_Atomic(void *) place = NULL;
	void *found;

	weiri_store_relaxed(&scope.record->fenced, 1u);
	weiri_store_relaxed(&scope.record->announced, 0u);
	weiri_section_read(scope.record, &place, &found);
	(void)found;
}

static void settle_an_era_to_come(void)
{
	struct weiri_record *other = weiri_record_lend();

	weiri_store_relaxed(&other->announced, 1u);
	weiri_announcements_settle(weiri_record_get(), weiri_load_relaxed(&weiri_era) + 1, true);
}

static void do_nothing(struct weiri_retired *object)
{
	(void)object;
}

static void retire_the_unborn(void)
{
	static struct weiri_retired object;

	weiri_retired_init(&object, 1, do_nothing);
	object.birth = UINT64_MAX;
	weiri_retire(weiri_record_get(), &object);
}

static void note_again_and_again(void *unused)
{
	(void)unused;
	for (;;) /* until the next tick, which needs a note */
		weiri_eras_note();
}

/* Some of the steps are between the load of the era and its check. */
static int turn_back_the_era(void *unused)
{
	(void)unused;
	weiri_store_relaxed(&weiri_era, weiri_load_relaxed(&weiri_era) - 1);
	return 0;
}

static void note_an_era_to_come(void)
{
	weiri_store_relaxed(&weiri_era, UINT64_C(1) << 40);
	spoil_between_steps(note_again_and_again, turn_back_the_era, NULL);
}

Test(invariants, eras)
{
	stepped_or_skip();
	expect_broken("E1", note_an_era_to_come);
}

Test(invariants, section)
{
	expect_broken("I1", read_outside_a_section);
	expect_broken("I2", end_a_reservation_early);
	expect_broken("N1", forget_an_announcement);
	expect_broken("N2", settle_an_era_to_come);
}

Test(invariants, collect)
{
	expect_broken("I1", retire_the_unborn);
}

/* -- sync -------------------------------------------------------------------------------------- */

static int compare_none(const void *key, struct weiri_hash_node *node)
{
	(void)key, (void)node;
	return 0;
}

static void end_none(struct weiri_hash_node *node)
{
	(void)node;
}

static void unsort(void)
{
	static struct weiri_hash_list list;
	static struct weiri_hash_node nodes[2];
	struct weiri_scope scope = enter();

	weiri_hash_list_init(&list, compare_none, weir_default_allocator());
	for (uint64_t i = 0; i < 2; i++) {
		weiri_hash_node_init(&nodes[i], i, sizeof(nodes[i]), do_nothing);
		(void)weiri_hash_list_insert(&scope, &list, &nodes[i], i, &nodes[i]);
	}
	weiri_store_relaxed(&nodes[0].link.order, UINT64_MAX);
	weiri_scope_leave(&scope);
	weiri_hash_list_fini(&list, end_none);
}

static void fence_without_a_post(void)
{
	static struct weiri_waiters waiters;

	weiri_waiters_init(&waiters);
	weiri_store_relaxed(&waiters.word, WEIRI_WAITERS_FENCED);
	(void)weiri_waiters_post(&waiters);
}

static void cancel_without_prepare(void)
{
	struct weiri_eventcount event;

	weiri_eventcount_init(&event);
	weiri_eventcount_cancel(&event);
}

static void tell_none(struct weiri_delivery *delivery)
{
	(void)delivery;
}

static void deliver_twice(void)
{
	static struct weiri_delivery delivery;

	(void)weiri_record_get();
	(void)weiri_deliver_hold();
	(void)weiri_deliver(&delivery, tell_none);
	(void)weiri_deliver(&delivery, tell_none);
}

static void deliver_in_a_section(void)
{
	static struct weiri_delivery delivery;

	(void)enter();
	(void)weiri_deliver(&delivery, tell_none);
}

static void give_back_twice(void)
{
	_Atomic(size_t) references = 1;

	(void)weiri_references_give(&references);
	(void)weiri_references_give(&references);
}

/* The first members are those of cancel.c. */
struct token {
	_Atomic(uint32_t) references, word;
};

static void fire_by_halves(void)
{
	weir_cancel *token = NULL;

	if (weir_cancel_create(NULL, &token, NULL) == WEIR_OK) {
		weiri_store_relaxed(&((struct token *)(void *)token)->word, 1);
		(void)weir_cancel_fire(token, NULL);
	}
}

Test(invariants, hash_list)
{
	expect_broken("H1", unsort);
}

Test(invariants, waiters)
{
	expect_broken("W3", fence_without_a_post);
}

Test(invariants, eventcount)
{
	expect_broken("I1", cancel_without_prepare);
}

Test(invariants, delivery)
{
	expect_broken("D2", deliver_twice);
	expect_broken("D4", deliver_in_a_section);
}

Test(invariants, references)
{
	expect_broken("R1", give_back_twice);
}

Test(invariants, cancel)
{
	expect_broken("C2", fire_by_halves);
}

/* -- tensor, metrics --------------------------------------------------------------------------- */

static void release_twice(void)
{
	weir_tensor *tensor = NULL;

	if (weir_tensor_scalar_i64(1, &tensor) == WEIR_OK) {
		weiri_store_relaxed(&tensor->value.references, 0);
		weir_tensor_release(tensor);
	}
}

static void write_to_a_stripe(void)
{
	_Atomic(uint64_t) word = 1;

	weiri_stripe_assert_own(&word, 2);
}

Test(invariants, tensor)
{
	expect_broken("O1", release_twice);
}

Test(invariants, stripes)
{
	expect_broken("S1", write_to_a_stripe);
}

/* -- var --------------------------------------------------------------------------------------- */

static weir_var *variable(uint32_t history)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "v", .dtype = WEIR_I64, .history = history};
	weir_tensor *first;
	weir_var *var;

	if (weir_tensor_scalar_i64(1, &first) != WEIR_OK || weir_var_create(first, &options, &var, NULL) != WEIR_OK)
		_exit(1);
	return var;
}

static void assign(weir_var *var)
{
	weir_tensor *next;

	if (weir_tensor_scalar_i64(2, &next) != WEIR_OK)
		_exit(1);
	(void)weir_var_assign(var, next, WEIR_NO_DEADLINE, NULL, NULL);
}

static void build_on_another(void)
{
	weir_var *var = variable(0);
	struct weiri_scope scope = enter();
	struct weiri_version *head, *base = weiri_write_base(&scope, var, &head);
	struct weiri_version *next = weiri_version_create(scope.record, var, NULL, NULL);

	weiri_version_set_base(next, base);
	next->number = base->number + 7;
	(void)weiri_write_replace(&scope, var, head, base, next);
}

static void renumber_the_oldest(void)
{
	weir_var *var = variable(1);

	assign(var);
	weiri_load_relaxed(&var->head)->older->number = 77;
	assign(var);
}

/* A table of two versions, of which `draft` has its own copy of row 0, and is not sealed. */
struct tree {
	struct weiri_geometry *geometry;
	struct weiri_root *root;
	struct weiri_draft draft;
};

static struct tree tree(void)
{
	static const int64_t initial[2];
	struct weiri_rows rows = {.what = "table", .name = "t", .dtype = WEIR_I64, .count = 2, .elements = 1, .bytes = 8};
	struct tree tree = {.geometry = weiri_geometry_create(&rows, weir_default_allocator())};

	tree.root = weiri_root_create(tree.geometry, (const char *)initial);
	(void)weiri_root_seal(NULL, tree.root);
	weiri_draft_init(&tree.draft, tree.geometry);
	if (!weiri_draft_from(&tree.draft, tree.root) || weiri_draft_row(&tree.draft, 0) == NULL)
		_exit(1);
	return tree;
}

static void write_to_a_sealed_root(void)
{
	struct tree it = tree();

	(void)weiri_root_seal(NULL, it.draft.root);
	(void)weiri_draft_row(&it.draft, 0);
}

static void replace_a_block_of_a_later_version(void)
{
	struct tree it = tree();

	it.draft.root->parts[0].birth = 7;
	(void)weiri_draft_row(&it.draft, 0);
}

static void end_a_generation_twice(void)
{
	struct tree it = tree();

	weiri_generation_end(&it.root->generation);
	weiri_generation_end(&it.root->generation);
}

static void keep_nothing(void *context, void *memory)
{
	(void)context;
	(void)memory;
}

/* Seals the draft, damages something, and sweeps. */
static void sweep_after(void (*damage)(struct tree *it))
{
	struct tree it = tree();

	(void)weiri_root_seal(NULL, it.draft.root);
	damage(&it);
	weiri_lineage_sweep(weiri_record_get(), &it.geometry->lineage, &it.draft.root->generation, keep_nothing, NULL);
}

static void skip_a_number(struct tree *it)
{
	it->draft.root->generation.number = 3;
}

static void sweep_with_a_gap(void)
{
	sweep_after(skip_a_number);
}

static void make_a_part_too_young(struct tree *it)
{
	it->draft.root->generation.replaced->part[0].birth = 2;
}

static void pin_what_is_too_young(void)
{
	sweep_after(make_a_part_too_young);
}

static void list_again(struct tree *it)
{
	struct weiri_lineage *lineage = &it->geometry->lineage;

	weiri_lineage_sweep(weiri_record_get(), lineage, &it->draft.root->generation, keep_nothing, NULL);
	(void)weiri_replaced_grow(&it->draft.root->generation.replaced, weir_default_allocator());
	weiri_lineage_end(lineage, &it->draft.root->generation, keep_nothing, NULL);
}

static void end_with_a_part_on_two_lists(void)
{
	sweep_after(list_again);
}

/* The first members are those of combine.c. */
struct combined {
	struct weiri_retired retired;
	_Atomic(size_t) users;
};

/* Returns the result in the variable's round, or NULL if the round is not sealed. */
static struct combined *combined_in(weir_var *var)
{
	struct weiri_round *round = weiri_load_relaxed(&var->round);
	uintptr_t word = round != NULL ? weiri_load_relaxed(&round->word) : 0;

	return (word & 1) != 0 && word != 1 ? (struct combined *)(word - 1) : NULL;
}

static void add_one(void *var)
{
	weir_tensor *one;

	if (weir_tensor_scalar_i64(1, &one) == WEIR_OK)
		(void)weir_var_assign_add(var, one, WEIR_NO_DEADLINE, NULL, NULL);
}

static int forget_the_users(void *var)
{
	struct combined *combined = combined_in(var);

	if (combined != NULL)
		weiri_store_relaxed(&combined->users, 0);
	return combined != NULL;
}

static void use_what_has_no_users(void)
{
	weiri_combine_from = 1;
	spoil_between_steps(add_one, forget_the_users, variable(0));
}

/*
 * Opens the round after the last user has given the result back, and before it retires its request.
 */
static int open_once_more(void *var)
{
	const struct combined *combined = combined_in(var);
	int is_over = combined != NULL && weiri_load_relaxed(&combined->users) == 0;

	if (is_over)
		weiri_store_relaxed(&weiri_load_relaxed(&((weir_var *)var)->round)->word, (uintptr_t)0);
	return is_over;
}

static void retire_from_an_open_round(void)
{
	weiri_combine_from = 1;
	spoil_between_steps(add_one, open_once_more, variable(0));
}

/* The first member is that of txn.c. */
struct txn {
	uint64_t now;
};

static void read_of_the_future(void)
{
	weir_var *var = variable(0);
	weir_tensor *value;
	weir_txn *txn;

	weiri_store_relaxed(&weiri_clock, 100u);
	if (weir_txn_begin(NULL, &txn, NULL) != WEIR_OK)
		_exit(1);
	assign(var); /* newer than the transaction */
	weiri_store_relaxed(&weiri_clock, ((struct txn *)(void *)txn)->now - 2);
	(void)weir_txn_read(txn, var, &value, NULL);
}

static void destroy_nothing(void *object)
{
	(void)object;
}

static void end_in_a_section(void)
{
	static const struct weir_resource_type type = {"thing", destroy_nothing};
	weir_resource *resource = NULL;
	weir_store *store;

	if (weir_store_create(NULL, &store, NULL) == WEIR_OK &&
	    weir_store_add(store, NULL, "a", &type, &resource, &resource, NULL) == WEIR_OK &&
	    weir_store_remove(store, NULL, "a", NULL) == WEIR_OK) {
		(void)enter();
		weir_resource_release(resource);
	}
}

/* A variable of bytes or of a pointer, with one version that will be reclaimed by value_replaced(). */
static weir_var *value_variable(enum weir_var_kind kind)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .kind = kind, .size = sizeof(uint64_t)};
	static uint64_t first;
	weir_value value = kind == WEIR_VAR_INLINE ? WEIR_VALUE_OF(first) : weir_value_pointer(&first);
	weir_var *var;

	if (weir_var_create_value(value, &options, &var, NULL) != WEIR_OK)
		_exit(1);
	return var;
}

static void replace_value(weir_var *var)
{
	static uint64_t next = 1;
	weir_value value = var->kind == WEIR_VAR_INLINE ? WEIR_VALUE_OF(next) : weir_value_pointer(&next);

	if (weir_var_assign_value(var, value, WEIR_NO_DEADLINE, NULL, NULL) != WEIR_OK)
		_exit(1);
	(void)weir_reclaim_flush(0);
}

/* The reference of a version is given up behind its back. */
static void drop_the_reference_of_a_version(void)
{
	weir_var *var = value_variable(WEIR_VAR_INLINE);

	weiri_store_relaxed(&weiri_load_relaxed(&var->head)->value->references, (size_t)0);
	replace_value(var);
}

/* The pointer of a version looks as if its release function had run. */
static void end_a_pointer_twice(void)
{
	weir_var *var = value_variable(WEIR_VAR_POINTER);

	*(void **)(void *)(weiri_load_relaxed(&var->head)->value + 1) = NULL;
	replace_value(var);
}

/* A magazine has blocks that it does not count. */
static void keep_more_than_is_counted(void)
{
	weir_var *var = value_variable(WEIR_VAR_INLINE);

	weiri_magazine_most = 64 << 10;
	replace_value(var);
	weiri_store_relaxed(&weiri_record_get()->magazine_bytes, 0u);
	replace_value(var);
	replace_value(var);
}

/* The slot of the cache is released behind its back. */
static void forget_the_slot_of_a_cache(void)
{
	weir_var *var = variable(0);
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	(void)weir_var_cache_read(&cache);
	weir_read_release(&cache.read);
	(void)weir_var_cache_refresh(&cache);
}

/* The section of the record ends, and the read section does not. */
static void leave_a_read_section(void)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	if (weir_read_section_begin(&section) != WEIR_OK)
		_exit(1);
	weiri_section_leave(weiri_record_get(), 0);
	(void)weir_read_section_end(&section);
}

Test(invariants, value)
{
	expect_broken("B1", drop_the_reference_of_a_version);
	expect_broken("B2", end_a_pointer_twice);
}

Test(invariants, magazine)
{
	expect_broken("M1", keep_more_than_is_counted);
}

Test(invariants, var_cache)
{
	expect_broken("D1", forget_the_slot_of_a_cache);
}

Test(invariants, read_section)
{
	expect_broken("R1", leave_a_read_section);
}

Test(invariants, version)
{
	expect_broken("V2", build_on_another);
}

Test(invariants, history)
{
	expect_broken("H1", renumber_the_oldest);
}

Test(invariants, combine)
{
	stepped_or_skip();
	expect_broken("C1", retire_from_an_open_round);
	expect_broken("C5", use_what_has_no_users);
}

Test(invariants, txn)
{
	expect_broken("X2", read_of_the_future);
}

Test(invariants, pages)
{
	expect_broken("T2", replace_a_block_of_a_later_version);
	expect_broken("T3", write_to_a_sealed_root);
}

Test(invariants, lineage)
{
	expect_broken("L1", sweep_with_a_gap);
	expect_broken("L3", pin_what_is_too_young);
	expect_broken("L4", end_with_a_part_on_two_lists);
	expect_broken("L5", end_a_generation_twice);
}

Test(invariants, named_store)
{
	expect_broken("N3", end_in_a_section);
}

/* -- queue ------------------------------------------------------------------------------------- */

static int compare_numbers(const void *key, const void *item)
{
	int a = *(const int *)key, b = *(const int *)item;

	return a < b ? -1 : a > b;
}

static struct weiri_tree *tree_of(struct weiri_tree_edit *edit, int numbers[], int count)
{
	struct weiri_tree *tree = NULL;

	for (int i = 0; i < count; i++) {
		numbers[i] = i;
		tree = weiri_tree_insert(edit, tree, compare_numbers, &numbers[i], (uint64_t)i, &numbers[i]);
	}
	return tree;
}

static void publish(struct weiri_tree_edit *edit)
{
	static struct weiri_retired state, next;
	_Atomic(struct weiri_retired *) current = &state;
	struct weiri_scope scope = enter();
	enum weir_status status;

	weiri_retired_init(&state, 1, do_nothing);
	weiri_retired_init(&next, 1, do_nothing);
	(void)weiri_tree_publish(edit, &scope, &current, &state, &next, &status);
}

static void miscount(void)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(weir_default_allocator());
	int numbers[3];

	tree_of(&edit, numbers, 3)->count = 7;
	publish(&edit);
}

static void edit_what_is_published(void)
{
	struct weiri_tree_edit edit = weiri_tree_edit_begin(weir_default_allocator());
	struct weiri_tree *tree;
	int numbers[3], more = 9;

	tree = tree_of(&edit, numbers, 3);
	publish(&edit);
	/* Makes the edit take the tree for its own, but not the tree's children. */
	tree->published = 0;
	edit = weiri_tree_edit_begin(weir_default_allocator());
	tree->origin = tree;
	tree->next_made = NULL;
	edit.made = tree;
	(void)more;
	publish(&edit);
}

/* The first members are those of map_staging.c and keyed_join.c. */
struct map_content {
	struct weiri_tree *complete, *incomplete;
	size_t bytes;
};
struct keyed_join_content {
	struct weiri_tree *incomplete, *ready;
};
struct staging_content {
	struct weiri_tree *tuples;
};
struct staging_tuple {
	struct weiri_retired retired;
	_Atomic(size_t) references;
};

static void *content_of(void *area)
{
	return WEIRI_CONTAINER_OF(weiri_load_relaxed(&((struct weiri_area *)area)->state), struct weiri_area_state, retired)
	    ->content;
}

static const struct weir_tensor_component pair[] = {{.name = "a", .dtype = WEIR_I64}, {.name = "b", .dtype = WEIR_I64}};

static weir_map_staging *map_with_half_a_tuple(void)
{
	struct weir_map_staging_options options = {WEIR_MAP_STAGING_OPTIONS_INIT, .components = pair, .component_count = 2};
	const size_t first = 0;
	weir_map_staging *map;
	weir_tensor *value;

	if (weir_map_staging_create(&options, &map, NULL) != WEIR_OK || weir_tensor_scalar_i64(1, &value) != WEIR_OK ||
	    weir_map_staging_put(map, 5, &first, &value, 1, 0, NULL, NULL) != WEIR_OK)
		_exit(1);
	return map;
}

static void miscount_bytes(void)
{
	weir_map_staging *map = map_with_half_a_tuple();

	((struct map_content *)content_of(map))->bytes++;
	(void)weir_map_staging_destroy(map, NULL);
}

static void complete_an_incomplete_entry(void)
{
	weir_map_staging *map = map_with_half_a_tuple();
	struct weiri_map_entry *entry = ((struct map_content *)content_of(map))->incomplete->item;

	entry->have = 3;
	(void)weir_map_staging_destroy(map, NULL);
}

static void keep_a_part(void)
{
	weir_map_staging *map = map_with_half_a_tuple();
	struct weiri_map_entry *entry = ((struct map_content *)content_of(map))->incomplete->item;

	weiri_store_relaxed(&entry->parts[0]->references, 2);
	(void)weir_map_staging_destroy(map, NULL);
}

static void keep_a_tuple(void)
{
	struct weir_staging_options options = {WEIR_STAGING_OPTIONS_INIT, .components = pair, .component_count = 2};
	weir_tensor *value, *values[2];
	weir_staging *staging;

	if (weir_staging_create(&options, &staging, NULL) != WEIR_OK || weir_tensor_scalar_i64(1, &value) != WEIR_OK)
		_exit(1);
	values[0] = values[1] = value;
	if (weir_staging_put(staging, values, 2, 0, NULL, NULL) != WEIR_OK)
		_exit(1);
	weiri_store_relaxed(
		&((struct staging_tuple *)((struct staging_content *)content_of(staging))->tuples->item)->references, 2);
	(void)weir_staging_destroy(staging, NULL);
}

static void complete_an_incomplete_tuple(void)
{
	static const weir_shape scalar = {.rank = 0};
	static const struct weir_tensor_component known[] = {{.name = "a", .dtype = WEIR_I64, .shape = &scalar},
	                                                     {.name = "b", .dtype = WEIR_I64, .shape = &scalar}};
	struct weir_keyed_join_options options = {WEIR_KEYED_JOIN_OPTIONS_INIT, .components = known, .component_count = 2};
	const weir_shape one = {.rank = 1, .dims = {1}};
	const weir_bytes key = {"k", 1};
	const int64_t number = 1;
	weir_tensor *keys, *values;
	weir_keyed_join *join;

	if (weir_keyed_join_create(&options, &join, NULL) != WEIR_OK ||
	    weir_tensor_copy_of(WEIR_BYTES, &one, &key, NULL, &keys) != WEIR_OK ||
	    weir_tensor_copy_of(WEIR_I64, &one, &number, NULL, &values) != WEIR_OK ||
	    weir_keyed_join_insert_many(join, 0, keys, values, NULL) != WEIR_OK)
		_exit(1);
	((struct weiri_keyed_join_part *)((struct keyed_join_content *)content_of(join))->incomplete->item)->have = 3;
	(void)weir_keyed_join_destroy(join, NULL);
}

Test(invariants, tree)
{
	expect_broken("T4", miscount);
	expect_broken("T3", edit_what_is_published);
}

Test(invariants, map_staging)
{
	expect_broken("M4", miscount_bytes);
	expect_broken("M3", complete_an_incomplete_entry);
	expect_broken("M1", keep_a_part);
}

Test(invariants, staging)
{
	expect_broken("G1", keep_a_tuple);
}

Test(invariants, keyed_join)
{
	expect_broken("B4", complete_an_incomplete_tuple);
}

/* -- run --------------------------------------------------------------------------------------- */

static void push_beyond_capacity(void)
{
	struct weiri_deque deque;

	if (!weiri_deque_init(&deque, 2, weir_default_allocator()))
		_exit(1);
	weiri_store_relaxed(&deque.bottom, 9);
	(void)weiri_deque_push(&deque, &deque);
}

static void end_with_a_member(void)
{
	struct weiri_members members;

	weiri_members_init(&members, weir_default_allocator());
	(void)weiri_members_claim(&members, "who");
	weiri_members_fini(&members);
}

static void arrive_twice(void)
{
	struct weiri_countdown countdown;

	weiri_countdown_init(&countdown, 1);
	(void)weiri_countdown_arrive(&countdown);
	(void)weiri_countdown_arrive(&countdown);
}

static void leave_a_gap(void)
{
	struct weiri_inbox inbox;

	if (!weiri_inbox_init(&inbox, weir_default_allocator()))
		_exit(1);
	weiri_store_relaxed(&inbox.rings[2], weiri_load_relaxed(&inbox.rings[0]));
	weiri_inbox_fini(&inbox);
}

static weir_critical_section *section(void)
{
	weir_critical_section *made = NULL;

	if (weir_critical_section_create(NULL, &made, NULL) != WEIR_OK)
		_exit(1);
	return made;
}

static void return_the_right_twice(void)
{
	weiri_critical_section_leave(section());
}

static void be_inside_twice(void)
{
	weir_critical_section *made = section();
	struct weiri_inside outer, inner;

	weiri_inside_begin(&outer, made);
	weiri_inside_begin(&inner, made);
}

/* The first members are those of coordinator.c. */
struct coordinator {
	_Atomic(uintptr_t) outcome;
	_Atomic(uint32_t) crowd;
};

static void leave_when_all_have_left(void)
{
	weir_coordinator *coordinator;
	weir_coordinator_member *member;

	if (weir_coordinator_create(NULL, &coordinator, NULL) != WEIR_OK ||
	    weir_coordinator_enter(coordinator, "one", &member, NULL) != WEIR_OK)
		_exit(1);
	weiri_store_relaxed(&((struct coordinator *)(void *)coordinator)->crowd, 0);
	weir_coordinator_leave(member);
}

/* The members are those of queue_runner.c. */
struct queue_runner {
	weir_allocator allocator;
	void *threads;
	size_t thread_count;
	uint64_t end_codes;
	weir_queue_runner_close_fn *close, *cancel;
	void *queue, *own, *kept;
	size_t kept_size;
	char name[32];
	void *coordinator, *hook;
	_Atomic(uint32_t) running, left;
};

static enum weir_status forget_who_runs(void *context, weir_cancel *cancel, weir_error *error)
{
	struct queue_runner **runner = context;

	(void)cancel, (void)error;
	weiri_store_relaxed(&(*runner)->running, 0);
	return WEIR_OUT_OF_RANGE;
}

static enum weir_status forget_who_is_left(void *context, weir_cancel *cancel, weir_error *error)
{
	struct queue_runner **runner = context;

	(void)cancel, (void)error;
	weiri_store_relaxed(&(*runner)->left, 0);
	return WEIR_OUT_OF_RANGE;
}

static void run_once(weir_queue_runner_fn *step)
{
	static weir_queue_runner *runner;
	struct weir_queue_runner_step only = {step, &runner, "only"};
	struct weir_queue_runner_options options = {WEIR_QUEUE_RUNNER_OPTIONS_INIT, .steps = &only, .step_count = 1};

	if (weir_queue_runner_create(&options, &runner, NULL) != WEIR_OK ||
	    weir_queue_runner_start(runner, NULL, NULL) != WEIR_OK)
		_exit(1);
	(void)weir_queue_runner_join(runner, WEIR_NO_DEADLINE);
	for (;;)
		(void)pause(); /* the thread violates the invariant, which ends the process */
}

static void end_a_run_twice(void)
{
	run_once(forget_who_runs);
}

static void be_left_twice(void)
{
	run_once(forget_who_is_left);
}

static void end_a_step_twice(void)
{
	static struct weiri_plan plan; /* without nodes */
	static weir_session session;
	static struct weiri_step step = {.session = &session, .plan = &plan, .frame = {.step = &step, .plan = &plan}};

	weiri_latch_set(&step.ended);
	weiri_step_begin(&step);
}

Test(invariants, coordinator)
{
	expect_broken("I3", leave_when_all_have_left);
}

Test(invariants, queue_runner)
{
	expect_broken("I1", end_a_run_twice);
	expect_broken("I2", be_left_twice);
}

static weir_tensor *a_scalar(void)
{
	weir_tensor *scalar = NULL;

	(void)weir_tensor_scalar_f32(1, &scalar);
	return scalar;
}

/* One run of one + one, squared, and of one + (one + one). Spoils the plan before a second one. */
static void run_spoiled(void (*spoil)(struct weiri_plan *plan))
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};
	weir_graph *graph = NULL;
	weir_session *session = NULL;
	weir_output one, two, fetches[2];
	weir_tensor *results[2];

	(void)weir_graph_create(NULL, &graph, NULL);
	(void)weir_session_create(graph, &options, &session, NULL);
	(void)weir_op_constant(graph, NULL, a_scalar(), &one, NULL);
	(void)weir_op_add(graph, NULL, one, one, &two, NULL);
	(void)weir_op_square(graph, NULL, two, &fetches[0], NULL);
	(void)weir_op_add(graph, NULL, one, two, &fetches[1], NULL);
	for (int run = 0; run < 2; run++) {
		(void)weir_session_run(session, NULL, 0, fetches, 2, results, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL);
		for (int i = 0; run == 0 && i < WEIRI_SESSION_BUCKETS; i++) {
			struct weiri_published *link = weiri_published_first(&session->plans[i]);

			if (link != NULL)
				spoil(WEIRI_CONTAINER_OF(link, struct weiri_plan, link));
		}
	}
}

static void leave_a_value(struct weiri_plan *plan)
{
	struct weiri_step *step = weiri_spare_take(&plan->spare);

	step->frame.values[plan->slot_count - 1] = a_scalar();
	(void)weiri_spare_put(&plan->spare, step);
}

static void use_a_frame_with_a_value(void)
{
	run_spoiled(leave_a_value);
}

/* Both users of the sum believe that they are the last. */
static void end_every_use(struct weiri_plan *plan)
{
	for (uint32_t i = 0; i < plan->use_count; i++) {
		if (plan->uses[i].ends != WEIRI_ENDS_NOTHING)
			plan->uses[i].ends = WEIRI_ENDS_VALUE;
	}
}

static void use_a_value_after_its_end(void)
{
	run_spoiled(end_every_use);
}

static void be_incomplete_without_a_halt(void)
{
	static struct weiri_step step;

	weiri_latch_set(&step.incomplete);
	(void)weiri_step_outcome(&step, NULL);
}

Test(invariants, step)
{
	expect_broken("S1", end_a_step_twice);
	expect_broken("S4", be_incomplete_without_a_halt);
}

Test(invariants, frame)
{
	expect_broken("F2", use_a_frame_with_a_value);
	expect_broken("plan L2", use_a_value_after_its_end);
}

Test(invariants, deque)
{
	expect_broken("I2", push_beyond_capacity);
}

Test(invariants, members)
{
	expect_broken("I3", end_with_a_member);
}

Test(invariants, countdown)
{
	expect_broken("C1", arrive_twice);
}

static void forget_sum(void *context, enum weir_status status, const weir_error *error, weir_tensor *sum)
{
	(void)context, (void)status, (void)error;
	weir_tensor_release(sum);
}

/* The first members are those of ranks.c. */
struct group_of_ranks {
	weir_allocator allocator;
	size_t bytes;
	struct weiri_countdown users;
	char *name;
	uint32_t size, channel_count;
	struct weiri_meeting *meeting; /* the first member of a channel */
};

static void spoil_meeting(weir_ranks *ranks)
{
	weiri_store_relaxed(&((struct group_of_ranks *)(void *)ranks)->meeting->word, 1);
}

static void come_twice(void)
{
	struct weiri_meeting meeting;
	uint64_t number;

	weiri_meeting_init(&meeting);
	(void)weiri_meeting_come(&meeting, 1, 3, &number);
	(void)weiri_meeting_come(&meeting, 1, 3, &number);
}

static void give_a_number_twice(void)
{
	struct weiri_numbers numbers;
	uint32_t number;

	weiri_numbers_init(&numbers);
	if (!weiri_number_take(&numbers, 4, &number))
		_exit(1);
	weiri_number_give(&numbers, number);
	weiri_number_give(&numbers, number);
}

/* The first rank is told to be in the meeting, and has put no transfer into its place. */
static void hold_a_meeting_without_a_transfer(void)
{
	struct weir_channel what = {"w", WEIR_F32, NULL};
	struct weir_reduction reduction = {.divisor = 1, .done = forget_sum};
	weir_ranks *ranks;
	weir_transport *second;
	weir_transfer *transfer;

	if (weir_ranks_create(2, NULL, &ranks, NULL) != WEIR_OK || weir_tensor_scalar_f32(1, &reduction.input) != WEIR_OK)
		_exit(1);
	second = weir_ranks_transport(ranks, 1);
	if (second->open(second, &what, &reduction.channel, NULL) != WEIR_OK)
		_exit(1);
	spoil_meeting(ranks);
	(void)second->start(second, &reduction, &transfer, NULL);
}

Test(invariants, ranks)
{
	expect_broken("E2", come_twice);
	expect_broken("N1", give_a_number_twice);
	expect_broken("K1", hold_a_meeting_without_a_transfer);
}

Test(invariants, inbox)
{
	expect_broken("I1", leave_a_gap);
}

Test(invariants, critical_section)
{
	expect_broken("C2", return_the_right_twice);
	expect_broken("C3", be_inside_twice);
}

static void break_nothing(void)
{
}

Test(invariants, a_sound_structure_breaks_none)
{
	char said[SAID];

	cr_assert_eq(run_child(break_nothing, said), 0, "%s", said);
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

Test(invariants, of_shared_memory)
{
	expect_broken("X4", hand_with_an_impossible_frame);
	expect_broken("N1", no_buffer_left_to_write);
	expect_broken("N3", buffer_beyond_the_last);
	expect_broken("N4", publish_without_the_role);
}

static weir_graph *monitored_graph;

static enum weir_status make_monitored_session(void *context, weir_session **session, weir_error *error)
{
	struct weir_session_options options = {WEIR_SESSION_OPTIONS_INIT, .flags = WEIR_SESSION_NO_THREADS};

	(void)context;
	return weir_session_create(monitored_graph, &options, session, error);
}

static weir_monitored *monitored_begin(void)
{
	struct weir_monitored_options options = {WEIR_MONITORED_OPTIONS_INIT, .make = make_monitored_session};
	weir_monitored *monitored = NULL;

	if (weir_graph_create(NULL, &monitored_graph, NULL) != WEIR_OK ||
	    weir_monitored_create(&options, &monitored, NULL) != WEIR_OK)
		_exit(1);
	return monitored;
}

static void end_a_life_with_calls_inside(void)
{
	(void)weiri_life_end(monitored_begin(), NULL);
}

static void enter_a_life_that_is_not_open(void)
{
	weir_monitored *monitored = monitored_begin();

	monitored->life.open = false;
	(void)weir_monitored_run(monitored, NULL, 0, NULL, 0, NULL, NULL, 0, WEIR_NO_DEADLINE, NULL, NULL, NULL);
}

static void begin_a_life_beside_a_runner(void)
{
	weir_monitored *monitored = monitored_begin();

	weiri_life_drain(monitored);
	(void)weiri_life_end(monitored, NULL);
	monitored->life.runner_count = 1;
	(void)weiri_life_begin(monitored, NULL);
}

Test(invariants, of_monitored_sessions)
{
	expect_broken("M1", end_a_life_with_calls_inside);
	expect_broken("M2", enter_a_life_that_is_not_open);
	expect_broken("M3", begin_a_life_beside_a_runner);
}
