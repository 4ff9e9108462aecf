/*
 * scenario_combine.c - combined updates of large values: no update is lost or applied twice,
 * whichever thread computes, while all other kinds of writes run; and a thread that stops anywhere
 * in an update blocks no other thread.
 *
 * All elements of a value are the same number. An amount is added to the whole value, or to each of
 * its rows. A thread that adds counts what it added; a thread that takes out by an exchange counts
 * what it took. At the end the sum of the additions is what was taken out and what is left, and all
 * memory was freed.
 */
#include <inttypes.h>
#include <weir/reclaim.h>
#include <weir/scatter.h>
#include <weir/time.h>
#include <weir/var.h>

#include "blocks.h"
#include "harness.h"
#include "poison.h"
#include "scenarios.h"
#include "stop.h"
#include "stopping.h"
#include "var/combine.h"
#include "var/spares.h"

enum {
	BYTES = 64 << 10,
	ELEMENTS = BYTES / sizeof(int64_t),
	MOST_AMOUNT = 5,
	ROUNDS_OF = 40,
	WRITERS = 2,
	STOPS = 300
};

static const uint64_t patience_ns = 100000000000u;
static const uint64_t small_budget = 1 << 21;

static struct {
	weir_var *var, *other;
	weir_tensor *amounts[MOST_AMOUNT + 1], *word, *rows; /* rows: indices of all rows */
	const weir_allocator *memory;
	_Atomic(int64_t) added, taken; /* added: net of what was subtracted; taken: by exchanges */
	_Atomic(uint64_t) adding;
} now;

static weir_tensor *value_of(int64_t number)
{
	weir_tensor_builder *builder;
	weir_tensor *tensor;
	int64_t *data;

	STRESS_CHECK(weir_tensor_builder_create(WEIR_I64, &(weir_shape){1, {ELEMENTS}}, now.memory, &builder, NULL) ==
	                 WEIR_OK,
	             "there is no memory for a value");
	data = weir_tensor_builder_data(builder);
	for (size_t i = 0; i < ELEMENTS; i++)
		data[i] = number;
	STRESS_CHECK(weir_tensor_builder_finish(builder, &tensor) == WEIR_OK, "builder");
	return tensor;
}

static int64_t number_in(const weir_tensor *tensor)
{
	const int64_t *data = weir_tensor_data(tensor);
	int64_t differ = 0;

	for (size_t i = 1; i < ELEMENTS; i++)
		differ |= data[i] ^ data[0];
	STRESS_CHECK(differ == 0, "a value mixes two versions");
	return data[0];
}

static weir_tensor *all_rows(void)
{
	static int32_t rows[ELEMENTS];
	weir_tensor *tensor;

	for (int32_t i = 0; i < ELEMENTS; i++)
		rows[i] = i;
	STRESS_CHECK(weir_tensor_copy_of(WEIR_I32, &(weir_shape){1, {ELEMENTS}}, rows, now.memory, &tensor) == WEIR_OK,
	             "no memory for indices");
	return tensor;
}

static void open_variable(const weir_allocator *memory)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = memory};
	int64_t one = 1;

	now.memory = memory;
	weiri_combine_from = BYTES;
	/* kept memory does not reveal a late use */
	weiri_spares_share = stress_one_in(stress_self(), 2) ? 8 : 0;
	weiri_store_relaxed(&now.added, 0); /* [relaxed] before the threads */
	weiri_store_relaxed(&now.taken, 0);
	for (int64_t i = 0; i <= MOST_AMOUNT; i++)
		now.amounts[i] = value_of(i);
	now.rows = all_rows();
	STRESS_CHECK(weir_var_create(now.amounts[0], &options, &now.var, NULL) == WEIR_OK, "cannot create a variable");
	STRESS_CHECK(weir_tensor_copy_of(WEIR_I64, &(weir_shape){.rank = 0}, &one, memory, &now.word) == WEIR_OK,
	             "no memory for a word");
	STRESS_CHECK(weir_var_create(now.word, &options, &now.other, NULL) == WEIR_OK, "cannot create a variable");
}

static void close_variable(void)
{
	weir_read read;

	STRESS_CHECK(weir_var_read(now.var, &read) == WEIR_OK, "read");
	/* [relaxed] the threads were joined. */
	STRESS_CHECK(number_in(read.tensor) + weiri_load_relaxed(&now.taken) == weiri_load_relaxed(&now.added),
	             "%" PRIi64 " were added, %" PRIi64 " taken out, %" PRIi64 " are left", weiri_load_relaxed(&now.added),
	             weiri_load_relaxed(&now.taken), number_in(read.tensor));
	weir_read_release(&read);
	for (size_t i = 0; i <= MOST_AMOUNT; i++)
		weir_tensor_release(now.amounts[i]);
	weir_tensor_release(now.word);
	weir_tensor_release(now.rows);
	weir_var_destroy(now.var, NULL);
	weir_var_destroy(now.other, NULL);
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
}

/*
 * *last is the version number that this thread saw last. What it publishes later has a larger
 * number.
 */
static void add_once(struct stress_thread *self, uint64_t *last)
{
	int64_t amount = 1 + (int64_t)stress_below(self, MOST_AMOUNT);
	int subtracts = stress_one_in(self, 3);
	weir_read published = {.hold = NULL};
	enum weir_status status;

	stress_begin(self, "add");
	if (stress_one_in(self, 4))
		status = weir_var_scatter(now.var, subtracts ? WEIR_SCATTER_SUB : WEIR_SCATTER_ADD, now.rows,
		                          now.amounts[amount], WEIR_NO_DEADLINE, &published, NULL);
	else
		status = (subtracts ? weir_var_assign_sub : weir_var_assign_add)(now.var, now.amounts[amount], WEIR_NO_DEADLINE,
		                                                                 &published, NULL);
	STRESS_CHECK(status == WEIR_OK, "an update failed: %s", weir_status_name(status));
	/* [relaxed] a sum. */
	(void)weiri_fetch_add_relaxed(&now.added, subtracts ? -amount : amount);
	(void)number_in(published.tensor);
	STRESS_CHECK(published.version > *last, "version %" PRIu64 " after %" PRIu64, published.version, *last);
	*last = published.version;
	weir_read_release(&published);
}

/* -- during other writes ----------------------------------------------------------------------- */

static void adder(struct stress_thread *self, void *context)
{
	uint64_t last = 0;

	(void)context;
	for (uint64_t i = 0; i < stress_scaled(ROUNDS_OF); i++) {
		add_once(self, &last);
		stress_end(self, 1);
	}
	(void)weiri_fetch_sub_release(&now.adding, 1u); /* pairs with writer() */
}

static void exchange(struct stress_thread *self)
{
	weir_read replaced;

	stress_begin(self, "exchange");
	STRESS_CHECK(weir_var_exchange(now.var, now.amounts[0], WEIR_NO_DEADLINE, &replaced, NULL) == WEIR_OK, "exchange");
	(void)weiri_fetch_add_relaxed(&now.taken, number_in(replaced.tensor)); /* [relaxed] a sum */
	weir_read_release(&replaced);
}

/*
 * Publishes a value that is larger by one, unless another write comes first. Uses compare_assign,
 * or a commit to two variables.
 */
static void change_if_unmoved(struct stress_thread *self)
{
	enum weir_status status;
	weir_tensor *next;
	weir_read read;

	stress_begin(self, "change if unmoved");
	STRESS_CHECK(weir_var_read(now.var, &read) == WEIR_OK, "read");
	next = value_of(number_in(read.tensor) + 1);
	if (stress_one_in(self, 2)) {
		status = weir_var_compare_assign(now.var, read.version, next, WEIR_NO_DEADLINE, NULL, NULL);
	} else {
		struct weir_commit_part parts[2] = {{now.var, read.version, next},
		                                    {now.other, weir_var_version(now.other), now.word}};

		status = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
	}
	STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "change: %s", weir_status_name(status));
	(void)weiri_fetch_add_relaxed(&now.added, status == WEIR_OK ? 1 : 0); /* [relaxed] a sum */
	weir_tensor_release(next);
	weir_read_release(&read);
}

/* Makes commits of the other writer abort, so that aborted versions are at the head. */
static void assign_other(struct stress_thread *self)
{
	stress_begin(self, "assign the other one");
	STRESS_CHECK(weir_var_assign(now.other, now.word, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK, "assign");
}

static void writer(struct stress_thread *self, void *context)
{
	(void)context;
	while (weiri_load_acquire(&now.adding) != 0) { /* pairs with adder() */
		switch (stress_below(self, 3)) {
		case 0: exchange(self); break;
		case 1: change_if_unmoved(self); break;
		default: assign_other(self); break;
		}
		stress_end(self, 1);
	}
}

void scenario_combine(void)
{
	struct stress_thread *self = stress_self();
	uint64_t rounds = 0;

	stress_disturb();
	for (; rounds == 0 || stress_goes_on(); rounds++) {
		unsigned adders = 1 + (unsigned)stress_below(self, stress_threads(WRITERS + 2) - WRITERS);
		unsigned writers = (unsigned)stress_below(self, WRITERS + 1);

		open_variable(stress_poison());
		weiri_store_relaxed(&now.adding, (uint64_t)adders); /* [relaxed] before the threads */
		for (unsigned i = 0; i < adders; i++)
			(void)stress_start("adder", adder, NULL);
		for (unsigned i = 0; i < writers; i++)
			(void)stress_start("writer", writer, NULL);
		stress_join();
		close_variable();
		stress_poison_check_empty();
	}
	stress_note("rounds", rounds);
}

/* -- stopped anywhere -------------------------------------------------------------------------- */

static int work(struct stress_thread *self, unsigned worker)
{
	uint64_t last = 0;
	weir_read read;

	(void)worker;
	if (!stress_one_in(self, 4)) {
		add_once(self, &last);
		return 0;
	}
	stress_begin(self, "read");
	STRESS_CHECK(weir_var_read(now.var, &read) == WEIR_OK, "a read failed");
	(void)number_in(read.tensor);
	weir_read_release(&read);
	return 1;
}

void scenario_combine_stopped(void)
{
	const struct stopping subject = {"variable", 4, {"add", "read"}, 2, 0, work, 20};

	stress_stop_prepare();
	weir_reclaim_set_budget(small_budget);
	open_variable(stress_blocks());
	(void)stopping_must_go_on(stress_self(), &subject, stress_scaled(STOPS), stopping_part_end(1));
	weir_reclaim_set_budget(0);
	close_variable();
	STRESS_CHECK(stress_blocks_bytes() == 0, "%llu bytes were not freed", stress_blocks_bytes());
}
