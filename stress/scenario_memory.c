/*
 * scenario_memory.c - checks the bound of docs/memory.md, with stalled readers and a hoarder of
 * handles.
 *
 * One thread is inside a section from the beginning to the end, like a thread that was stopped in
 * the middle of a snapshot. Readers hold handles for random times, and one reader after the other
 * is stopped at a random instruction for a whole turn. Writers replace large versions under a small
 * budget. A hoarder takes handles, in turns:
 *
 *   few     the handles pin a quarter of the budget: every write must succeed
 *   hoard   the hoarder takes handles on different versions until they pin more than the budget:
 *           no write may succeed then
 *   let go  the hoarder releases all handles: every write must succeed again
 *
 * Meanwhile a sampler compares the existing memory with the bound. "memory_resident" does so with
 * versions of 1 MiB, and with the resident memory of the process.
 */
#include "harness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/var.h>

#include "poison.h"
#include "reclaim/section.h"
#include "scenarios.h"
#include "stop.h"

enum {
	VARIABLES = 2,
	WRITERS = 2,
	READERS = 2,
	BUDGET_VERSIONS = 16,
	FEW = BUDGET_VERSIONS / 4,
	PINNED_BY_SITTER = VARIABLES + 1,
	ENOUGH = BUDGET_VERSIONS - PINNED_BY_SITTER,
	/* There cannot be more different versions: writers would exceed the budget. */
	HOARD = BUDGET_VERSIONS + WRITERS + 3,
	NOT_COUNTED_YET = 64 << 10,
	/*
	 * Other resident memory of the harness. Versions are mapped, and unmapped when they are freed.
	 */
	OUR_OWN = 2 << 20
};

enum turn { TURN_FEW, TURN_HOARD, TURN_LET_GO };

static const uint64_t must_succeed_ns = 100000000000u, may_fail_ns = 5000000;

static size_t words, version_bytes; /* of each version; version_bytes includes all headers */

static weir_var *variables[VARIABLES];
static _Atomic(uint32_t) turn;    /* enum turn */
static _Atomic(uint64_t) refused; /* writes that were refused */
static _Atomic(uint64_t) written; /* writes that succeeded */
static _Atomic(uint64_t) handles; /* how many handles the hoarder holds, or is about to take */
static _Atomic(uint32_t) sitting; /* the section has begun */
static _Atomic(uint32_t) reading; /* readers that hold handles, or are about to */
static struct stress_thread *readers[READERS];
static uint64_t resident_before; /* 0: resident memory is not checked */
static _Atomic(uint32_t) done;

static uint64_t budget(void)
{
	return BUDGET_VERSIONS * version_bytes;
}

static int finished(void)
{
	return weiri_load_acquire(&done) != 0; /* [acquire] only the end of a turn is passed, no data */
}

/* -- the thread that stays inside a section ---------------------------------------------------- */

static void sit(struct stress_thread *self, void *context)
{
	struct weiri_record *record = weiri_record_get();
	uint64_t outer;

	(void)context;
	STRESS_CHECK(record != NULL, "no record");
	outer = weiri_section_enter(record);
	weiri_store_release(&sitting, 1u); /* [release] pairs with let_sit() */
	stress_begin(self, "sitting inside a section");
	while (!finished())
		stress_let_pass(1000000);
	weiri_section_leave(record, outer);
}

/*
 * The section pins what existed when it began, and what is created before the next collection
 * begins. A collection immediately after its beginning limits this to PINNED_BY_SITTER versions,
 * however late the first collection of the writers is.
 */
static void let_sit(void)
{
	weir_tensor *value = stress_payload(VARIABLES, words);

	(void)stress_start("sitter", sit, NULL);
	while (weiri_load_acquire(&sitting) == 0) /* [acquire] pairs with sit() */
		stress_let_pass(20000);
	STRESS_CHECK(weir_var_assign(variables[0], value, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK,
	             "the first assign failed");
	weir_tensor_release(value);
	STRESS_CHECK(weir_reclaim_flush(0) == WEIR_DEADLINE_EXCEEDED, "a flush freed what a section pins");
}

/* Counts are [seq_cst], because the hoarder and the writers read each other's counts. */

/* -- writers ----------------------------------------------------------------------------------- */

static void write_one(struct stress_thread *self, uint64_t number)
{
	uint32_t now = weiri_load_seq_cst(&turn); /* [seq_cst] before the write begins */
	weir_tensor *value = stress_payload(number, words);
	enum weir_status status;

	stress_begin(self, now == TURN_HOARD ? "assign, may be refused" : "assign");
	status = weir_var_assign(variables[stress_below(self, VARIABLES)], value,
	                         weir_deadline_in(now == TURN_HOARD ? may_fail_ns : must_succeed_ns), NULL, NULL);
	weir_tensor_release(value);
	stress_end(self, 1);
	STRESS_CHECK(status == WEIR_OK || status == WEIR_RESOURCE_EXHAUSTED, "an assign: %s", weir_status_name(status));
	/* [seq_cst] the hoarder looks at both. */
	(void)weiri_fetch_add_seq_cst(status == WEIR_OK ? &written : &refused, 1u);
	STRESS_CHECK(status == WEIR_OK || now == TURN_HOARD || weiri_load_seq_cst(&turn) == TURN_HOARD,
	             "refused for %" PRIu64 " s although %" PRIu64 " handles pin less than the budget of %d versions",
	             must_succeed_ns / 1000000000u, weiri_load_seq_cst(&handles), (int)BUDGET_VERSIONS);
}

static void writer(struct stress_thread *self, void *context)
{
	uint64_t number = (uint64_t)self->number << 32;

	(void)context;
	while (!finished())
		write_one(self, number++);
}

/* -- readers ----------------------------------------------------------------------------------- */

static void read_some(struct stress_thread *self)
{
	weir_read reads[VARIABLES];

	stress_begin(self, "snapshot");
	STRESS_CHECK(weir_var_snapshot(variables, VARIABLES, reads, NULL) == WEIR_OK, "a snapshot failed");
	stress_let_pass(stress_below(self, 2000000));
	(void)stress_payload_check(reads[stress_below(self, VARIABLES)].tensor, "a reader");
	weir_read_release_many(reads, VARIABLES);
	stress_end(self, 1);
}

/*
 * While handles are hoarded, the other readers hold none, because a handle that they release could
 * let a write succeed.
 */
static void reader(struct stress_thread *self, void *context)
{
	(void)context;
	while (!finished()) {
		/* [seq_cst] before the turn is looked at; see let_no_thread_read() */
		(void)weiri_fetch_add_seq_cst(&reading, 1u);
		if (weiri_load_seq_cst(&turn) != TURN_HOARD)
			read_some(self);
		(void)weiri_fetch_sub_seq_cst(&reading, 1u);
		stress_stop_here();
		stress_let_pass(20000);
	}
}

/*
 * A thread that is stopped while it starts might hold locks of libc, or of a sanitizer, that other
 * threads need.
 */
static void let_all_read(void)
{
	for (unsigned i = 0; i < READERS; i++) {
		while (weiri_load_relaxed(&readers[i]->operations) == 0) /* [relaxed] a count */
			stress_let_pass(20000);
	}
}

/* Only for the hoarder, which has the turn. */
static void let_no_thread_read(void)
{
	while (weiri_load_seq_cst(&reading) != 0)
		stress_let_pass(20000);
}

/* -- the sampler ------------------------------------------------------------------------------- */

/*
 * The bound: one current version per variable; one per writer that is made and not published; and
 * the retired bytes. These are the budget, one version per writer that was admitted, 64 KiB per
 * thread that are not counted yet, and as much per writer that is freed but still counted. What the
 * stalled section pins is retired, so it is included.
 */
static uint64_t bound(void)
{
	return budget() + (VARIABLES + (uint64_t)2 * WRITERS) * version_bytes +
	       (uint64_t)(WRITERS + READERS + 4) * NOT_COUNTED_YET;
}

static void check_resident(void)
{
	uint64_t resident = stress_resident_bytes(), allowed = resident_before + bound() + OUR_OWN;

	STRESS_CHECK(resident <= allowed, "%" PRIu64 " bytes are resident; the bound is %" PRIu64, resident, allowed);
}

static void sample(struct stress_thread *self, void *context)
{
	(void)context;
	stress_begin(self, "sampling");
	while (!finished()) {
		uint64_t bytes = stress_poison_bytes();

		STRESS_CHECK(bytes <= bound(), "%" PRIu64 " bytes exist; the bound is %" PRIu64, bytes, bound());
		if (resident_before != 0)
			check_resident();
		stress_let_pass(100000);
	}
}

/* -- the hoarder ------------------------------------------------------------------------------- */

static void take_handle(struct stress_thread *self, weir_var *var, weir_read *read)
{
	(void)weiri_fetch_add_seq_cst(&handles, 1u); /* [seq_cst] before it is taken; see write_one() */
	stress_begin(self, "snapshot");
	/*
	 * This is a snapshot of one variable, because a snapshot has 64 slots. A handle that found no
	 * slot keeps its tensor by a reference, outside the budget.
	 */
	STRESS_CHECK(weir_var_snapshot(&var, 1, read, NULL) == WEIR_OK, "a snapshot failed");
	(void)stress_payload_check(read->tensor, "snapshot");
	stress_end(self, 1);
}

static void give_back(weir_read *read)
{
	(void)stress_payload_check(read->tensor, "a hoarded handle");
	weir_read_release(read);
}

static void wait_for_writes(uint64_t more)
{
	uint64_t before = weiri_load_seq_cst(&written);

	while (weiri_load_seq_cst(&written) - before < more)
		stress_let_pass(20000);
}

static void wait_for_refusals(uint64_t more)
{
	uint64_t before = weiri_load_seq_cst(&refused);

	while (weiri_load_seq_cst(&refused) - before < more)
		stress_let_pass(20000);
}

static void give_back_all(weir_read reads[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		give_back(&reads[i]);
	weiri_store_seq_cst(&handles, 0u);
}

/* One reader stands still during this turn, wherever it was stopped. */
static void play_few(struct stress_thread *self)
{
	weir_read reads[FEW];

	stress_stop(readers[stress_below(self, READERS)]);
	for (size_t i = 0; i < FEW; i++) {
		take_handle(self, variables[stress_below(self, VARIABLES)], &reads[i]);
		wait_for_writes(4);
	}
	wait_for_writes((uint64_t)2 * BUDGET_VERSIONS);
	give_back_all(reads, FEW);
	stress_stop_release();
}

/*
 * Takes handles on different versions of one variable, in addition to the `count` handles that the
 * hoarder has, until writers are refused. They may be refused earlier for a moment, while a
 * preempted collector owns the other objects. They may not be refused for long while the handles
 * pin less than the budget.
 */
static size_t hoard(struct stress_thread *self, weir_read reads[], size_t count)
{
	uint64_t refusals = weiri_load_seq_cst(&refused), since = weir_now_ns();

	while (count < ENOUGH || weiri_load_seq_cst(&refused) - refusals < (uint64_t)4 * WRITERS) {
		STRESS_CHECK(count < HOARD, "there are %zu handles on different versions, but no writer was refused", count);
		take_handle(self, variables[0], &reads[count]);
		if (count == 0 || reads[count].version != reads[count - 1].version) {
			count++;
			refusals = weiri_load_seq_cst(&refused);
			since = weir_now_ns();
			continue;
		}
		give_back(&reads[count]);
		(void)weiri_fetch_sub_seq_cst(&handles, 1u);
		STRESS_CHECK(count >= ENOUGH || weir_now_ns() - since < must_succeed_ns,
		             "refused for %" PRIu64 " s although %zu handles pin less than the budget of %d versions",
		             must_succeed_ns / 1000000000u, count, (int)BUDGET_VERSIONS);
		stress_let_pass(20000);
	}
	return count;
}

static void play_hoard(struct stress_thread *self)
{
	weir_read reads[HOARD];
	uint64_t before;
	size_t count = 0;

	weiri_store_seq_cst(&turn, (uint32_t)TURN_HOARD);
	let_no_thread_read();
	do {
		count = hoard(self, reads, count);
		before = weiri_load_seq_cst(&written);
		wait_for_refusals((uint64_t)4 * WRITERS);
		/*
		 * Each writer may have been admitted before and end only now. If there are more writes, the
		 * refusal was only momentary, and there are new versions to take.
		 */
	} while (weiri_load_seq_cst(&written) - before > WRITERS);
	weiri_store_seq_cst(&turn, (uint32_t)TURN_LET_GO);
	give_back_all(reads, count);
	wait_for_writes((uint64_t)2 * BUDGET_VERSIONS);
}

static void start_all(void)
{
	for (unsigned i = 0; i < VARIABLES; i++) {
		struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_poison()};
		weir_tensor *initial = stress_payload(i, words);

		STRESS_CHECK(weir_var_create(initial, &options, &variables[i], NULL) == WEIR_OK, "no variable");
		weir_tensor_release(initial);
	}
	weiri_store_relaxed(&done, 0u); /* [relaxed] no other thread yet */
	weiri_store_relaxed(&sitting, 0u);
	weiri_store_relaxed(&handles, 0u);
	weiri_store_relaxed(&refused, 0u);
	weiri_store_relaxed(&written, 0u);
	weiri_store_relaxed(&reading, 0u);
	weiri_store_relaxed(&turn, (uint32_t)TURN_FEW);
	let_sit();
	(void)stress_start("sampler", sample, NULL);
	for (unsigned i = 0; i < READERS; i++)
		readers[i] = stress_start("reader", reader, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		(void)stress_start("writer", writer, NULL);
	let_all_read();
}

static void play(size_t version_words)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0;

	words = version_words;
	version_bytes = words * sizeof(int64_t) + 1024;
	stress_stop_prepare();
	weir_reclaim_set_budget(budget());
	stress_poison_reset_peak();
	start_all();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		weiri_store_seq_cst(&turn, (uint32_t)TURN_FEW);
		play_few(self);
		play_hoard(self);
	}
	weiri_store_release(&done, 1u); /* [release] pairs with finished() */
	stress_join();
	for (unsigned i = 0; i < VARIABLES; i++)
		weir_var_destroy(variables[i], NULL);
	weir_reclaim_set_budget(0);
	stress_note("rounds", rounds);
	stress_note("versions at the peak", stress_poison_peak() / version_bytes);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(must_succeed_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

void scenario_memory_bound(void)
{
	resident_before = 0;
	play(8 << 10); /* 64 KiB */
}

/*
 * A sanitizer keeps memory of its own, and freed memory. An emulator (scripts/cross_setup) keeps
 * the code that it has translated.
 */
void scenario_memory_resident(void)
{
	int others_too = STRESS_ASAN || STRESS_TSAN || getenv("WEIR_EMULATED") != NULL;

	resident_before = others_too ? 0 : stress_resident_bytes();
	play(128 << 10); /* 1 MiB */
}
