/*
 * scenario_handles.c - variable_handles: handles pass from thread to thread, are hoarded beyond the
 * number of slots, are released out of order, and outlive the thread that took them and the
 * variable to which they belong.
 *
 * Workers put handles of reads, snapshots and updates into their own bags and onto a shared board,
 * and take out what was stored there before. Some handles belong to variables that were destroyed
 * immediately after the handles were made. Workers end occasionally and leave a part of their bag
 * on the board. Each handle is checked when it is taken and again when it is released: its value
 * must still be the one for which it was taken.
 */
#include "harness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <weir/reclaim.h>
#include <weir/var.h>

#include "poison.h"
#include "scenarios.h"

enum { SHARED = 5, BAG = 100, BOARD = 64, SHOTS = 12, TURNS = 2000 };

/* The upper bits of a tag are the number of a variable. All private variables have this number. */
enum { TAG_BITS = 48, PRIVATE = SHARED };

struct held {
	weir_read read;
	uint64_t tag;
};

static weir_var *shared[SHARED];
static _Atomic(struct held *) board[BOARD];

static void check_ok(enum weir_status status, const char *call)
{
	STRESS_CHECK(status == WEIR_OK, "%s: %s", call, weir_status_name(status));
}

static weir_tensor *draw_payload(struct stress_thread *self, unsigned index)
{
	return stress_payload((uint64_t)index << TAG_BITS | stress_random(self) >> (64 - TAG_BITS),
	                      1 + (size_t)stress_below(self, 60));
}

static void release(struct held *held)
{
	uint64_t tag;

	if (held == NULL)
		return;
	tag = stress_payload_check(held->read.tensor, "a handle that is released");
	STRESS_CHECK(tag == held->tag, "a handle of 0x%" PRIx64 " shows 0x%" PRIx64 " when it is released", held->tag, tag);
	weir_read_release(&held->read);
	free(held);
}

static void put_on_board(struct stress_thread *self, struct held *held)
{
	/* [acq_rel] the handle passes to the thread that takes it. */
	release(weiri_exchange_acq_rel(&board[stress_below(self, BOARD)], held));
}

/*
 * Keeps a handle for a while, in the bag or on the board, and releases the handle that was in its
 * place.
 */
static void keep(struct stress_thread *self, struct held *bag[], const weir_read *read, unsigned index)
{
	struct held *held = malloc(sizeof(*held)), **place = &bag[stress_below(self, BAG)];

	STRESS_CHECK(held != NULL, "the harness has no memory");
	*held = (struct held){*read, stress_payload_check(read->tensor, "a handle that is taken")};
	STRESS_CHECK(held->tag >> TAG_BITS == index, "variable %u returned a value of variable %" PRIu64, index,
	             held->tag >> TAG_BITS);
	if (stress_one_in(self, 3)) {
		put_on_board(self, held);
		return;
	}
	release(*place);
	*place = held;
} /* NOLINT(clang-analyzer-unix.Malloc): release() frees what is on the board or in the bag */

static void read_one(struct stress_thread *self, struct held *bag[], weir_var *var, unsigned index)
{
	weir_read read;

	stress_begin(self, "read");
	check_ok(weir_var_read(var, &read), "weir_var_read");
	keep(self, bag, &read, index);
}

static void take_snapshot(struct stress_thread *self, struct held *bag[])
{
	size_t count = 1 + (size_t)stress_below(self, SHOTS);
	weir_var *vars[SHOTS];
	weir_read reads[SHOTS];
	unsigned chosen[SHOTS];

	for (size_t i = 0; i < count; i++) {
		chosen[i] = (unsigned)stress_below(self, SHARED);
		vars[i] = shared[chosen[i]];
	}
	stress_begin(self, "snapshot");
	check_ok(weir_var_snapshot(vars, count, reads, NULL), "weir_var_snapshot");
	for (size_t i = count; i > 0; i--)
		keep(self, bag, &reads[i - 1], chosen[i - 1]);
}

static void assign(struct stress_thread *self, weir_var *var, unsigned index)
{
	weir_tensor *value = draw_payload(self, index);

	stress_begin(self, "assign");
	check_ok(weir_var_assign(var, value, WEIR_NO_DEADLINE, NULL, NULL), "weir_var_assign");
	weir_tensor_release(value);
}

struct draw {
	struct stress_thread *self;
	unsigned index;
};

static enum weir_status draw_next(void *context, const weir_read *current, weir_tensor **next, weir_error *error)
{
	const struct draw *draw = context;

	(void)current, (void)error;
	*next = draw_payload(draw->self, draw->index);
	return WEIR_OK;
}

static void update(struct stress_thread *self, struct held *bag[])
{
	struct draw draw = {self, (unsigned)stress_below(self, SHARED)};
	weir_read published;

	stress_begin(self, "update");
	check_ok(weir_var_update(shared[draw.index], draw_next, &draw, WEIR_NO_DEADLINE, &published, NULL),
	         "weir_var_update");
	keep(self, bag, &published, draw.index);
}

static weir_var *create(struct stress_thread *self, unsigned index)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_poison()};
	weir_tensor *initial = draw_payload(self, index);
	weir_var *var = NULL;

	check_ok(weir_var_create(initial, &options, &var, NULL), "weir_var_create");
	weir_tensor_release(initial);
	return var;
}

/* Takes handles on two versions of a variable that is destroyed before other threads see them. */
static void outlive(struct stress_thread *self, struct held *bag[])
{
	weir_var *var = create(self, PRIVATE);

	read_one(self, bag, var, PRIVATE);
	assign(self, var, PRIVATE);
	read_one(self, bag, var, PRIVATE);
	stress_begin(self, "destroy");
	weir_var_destroy(var, NULL);
}

static void worker(struct stress_thread *self, void *context)
{
	struct held *bag[BAG] = {NULL};

	(void)context;
	for (uint64_t turn = stress_scaled(TURNS); turn > 0 && stress_goes_on(); turn--) {
		unsigned index = (unsigned)stress_below(self, SHARED);

		switch (stress_below(self, 6)) {
		case 0: take_snapshot(self, bag); break;
		case 1: assign(self, shared[index], index); break;
		case 2: update(self, bag); break;
		case 3: outlive(self, bag); break;
		default: read_one(self, bag, shared[index], index);
		}
		stress_end(self, 1);
	}
	for (size_t i = 0; i < BAG; i++) {
		if (stress_one_in(self, 2))
			put_on_board(self, bag[i]);
		else
			release(bag[i]);
	}
}

static uint64_t slot_misses(void)
{
	struct weir_reclaim_stats stats = {WEIR_RECLAIM_STATS_INIT};

	(void)weir_reclaim_get_stats(&stats);
	return stats.slot_misses;
}

void scenario_variable_handles(void)
{
	struct stress_thread *self = stress_self();
	unsigned threads = stress_threads(3);
	uint64_t generations = 0, misses = slot_misses();

	for (unsigned i = 0; i < SHARED; i++)
		shared[i] = create(self, i);
	stress_disturb();
	for (; generations == 0 || stress_goes_on(); generations++) {
		for (unsigned i = 0; i < threads; i++)
			(void)stress_start("worker", worker, NULL);
		stress_join();
	}
	for (unsigned i = 0; i < SHARED; i++)
		weir_var_destroy(shared[i], NULL);
	for (size_t i = 0; i < BOARD; i++)
		release(weiri_exchange_acq_rel(&board[i], NULL)); /* [acq_rel] as when passed on */
	stress_note("generations of threads", generations);
	stress_note("handles without a slot", slot_misses() - misses);
	STRESS_CHECK(slot_misses() != misses, "every handle had a slot, so nothing was hoarded");
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(100000000000u)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}
