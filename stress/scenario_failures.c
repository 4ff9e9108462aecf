/*
 * scenario_failures.c - allocation_failures: memory runs out at random in every call that
 * allocates; and destroy_in_use.
 *
 * allocation_failures. Variables, tensors and queues have an allocator that sometimes refuses, on
 * all threads at once. A refused call returns WEIR_RESOURCE_EXHAUSTED and has done nothing. So the
 * counters are the sums of what successful calls added, money that commits move is conserved in
 * every snapshot, and each item is dequeued once. At the end every byte was freed.
 *
 * destroy_in_use. A queue with a waiter cannot be destroyed: the call reports it, and the queue
 * continues to work. The values of a variable's handles outlive the variable. A thread that helps a
 * commit may still read a variable of that commit when its owner destroys it.
 */
#include "harness.h"

#include <inttypes.h>
#include <weir/queue.h>
#include <weir/reclaim.h>
#include <weir/var.h>

#include "bank.h"
#include "poison.h"
#include "scenarios.h"

static const uint64_t patience_ns = 100000000000u;

static void settle(void)
{
	STRESS_CHECK(weir_reclaim_flush(weir_deadline_in(patience_ns)) == WEIR_OK,
	             "the flush failed: memory is still held");
	stress_poison_check_empty();
}

/* -- allocation_failures ----------------------------------------------------------------------- */

enum { ROOM = 8 };

static struct {
	weir_queue *queue;
	_Atomic(uint64_t) into, into_sum; /* items that went into the queue, and their sum */
	_Atomic(uint64_t) out, out_sum;   /* items that came out of the queue, and their sum */
} scarce;

static void add(_Atomic(uint64_t) *sum, uint64_t more)
{
	(void)weiri_fetch_add_relaxed(sum, more); /* [relaxed] read after the join */
}

/*
 * Enqueues and dequeues. A call waits for a moment if the queue is full or empty, which needs
 * memory.
 */
static void pass_items(struct stress_thread *self)
{
	uint64_t deadline = weir_deadline_in(200000);
	uint64_t item = 1 + stress_below(self, 1000);
	void *items[3] = {(void *)(uintptr_t)item, (void *)(uintptr_t)(item + 1), (void *)(uintptr_t)(item + 2)}, *got[3];
	size_t done = 0;
	int out = 0;

	switch (stress_below(self, 4)) {
	case 0:
		stress_begin(self, "enqueue");
		done = bank_judge(weir_queue_enqueue(scarce.queue, items[0], deadline, NULL, NULL), WEIR_DEADLINE_EXCEEDED,
		                  "weir_queue_enqueue") != 0;
		break;
	case 1:
		stress_begin(self, "enqueue_many");
		(void)bank_judge(weir_queue_enqueue_many(scarce.queue, items, 3, deadline, NULL, &done, NULL),
		                 WEIR_DEADLINE_EXCEEDED, "weir_queue_enqueue_many");
		break;
	case 2:
		stress_begin(self, "dequeue");
		out = bank_judge(weir_queue_dequeue(scarce.queue, &got[0], deadline, NULL, NULL), WEIR_DEADLINE_EXCEEDED,
		                 "weir_queue_dequeue");
		break;
	default:
		stress_begin(self, "dequeue_many");
		out = 3 * bank_judge(weir_queue_dequeue_many(scarce.queue, got, 3, deadline, NULL, NULL),
		                     WEIR_DEADLINE_EXCEEDED, "weir_queue_dequeue_many");
	}
	for (size_t i = 0; i < done; i++)
		add(&scarce.into_sum, (uintptr_t)items[i]);
	for (int i = 0; i < out; i++)
		add(&scarce.out_sum, (uintptr_t)got[i]);
	add(&scarce.into, done);
	add(&scarce.out, (uint64_t)out);
}

/* Objects whose creation fails half way leave no memory behind. */
static void create_and_destroy(struct stress_thread *self)
{
	struct weir_var_options of_var = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "short-lived",
	                                  .allocator = bank_allocator()};
	struct weir_queue_options of_queue = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 1 + (size_t)stress_below(self, 20),
	                                      .order = stress_one_in(self, 2) ? WEIR_QUEUE_SHUFFLE : WEIR_QUEUE_FIFO,
	                                      .allocator = bank_allocator()};
	weir_tensor *value = bank_make(1);
	weir_queue *queue = NULL;
	weir_var *var = NULL;

	stress_begin(self, "create");
	(void)bank_judge(weir_var_create(value, &of_var, &var, NULL), WEIR_OK, "weir_var_create");
	(void)bank_judge(weir_queue_create(&of_queue, &queue, NULL), WEIR_OK, "weir_queue_create");
	if (var != NULL && value != NULL)
		(void)bank_judge(weir_var_compare_assign(var, 1, value, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK,
		                 "weir_var_compare_assign");
	stress_begin(self, "destroy");
	weir_var_destroy(var, NULL);
	STRESS_CHECK(weir_queue_destroy(queue, NULL) == WEIR_OK, "weir_queue_destroy failed");
	weir_tensor_release(value);
}

static void live_in_scarcity(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		switch (stress_below(self, 8)) {
		case 0: create_and_destroy(self); break;
		case 1: pass_items(self); break;
		default: bank_act(self);
		}
		stress_end(self, 1);
	}
}

static void drain_and_compare(void)
{
	void *item;

	while (weir_queue_try_dequeue(scarce.queue, &item) == WEIR_OK) {
		add(&scarce.out, 1);
		add(&scarce.out_sum, (uintptr_t)item);
	}
	/* [relaxed] joined. */
	STRESS_CHECK(weiri_load_relaxed(&scarce.into) == weiri_load_relaxed(&scarce.out) &&
	                 weiri_load_relaxed(&scarce.into_sum) == weiri_load_relaxed(&scarce.out_sum),
	             "%" PRIu64 " items of sum %" PRIu64 " went in, %" PRIu64 " of sum %" PRIu64 " came out",
	             weiri_load_relaxed(&scarce.into), weiri_load_relaxed(&scarce.into_sum),
	             weiri_load_relaxed(&scarce.out), weiri_load_relaxed(&scarce.out_sum));
}

void scenario_allocation_failures(void)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = ROOM, .allocator = bank_allocator()};
	uint64_t refused = bank_refused();

	bank_open();
	STRESS_CHECK(weir_queue_create(&options, &scarce.queue, NULL) == WEIR_OK, "weir_queue_create failed");
	bank_refuse(1);
	for (unsigned i = 0; i < stress_threads(4); i++)
		(void)stress_start("worker", live_in_scarcity, NULL);
	stress_join();
	bank_close(stress_self());
	drain_and_compare();
	STRESS_CHECK(weir_queue_destroy(scarce.queue, NULL) == WEIR_OK, "weir_queue_destroy failed");
	settle();
	stress_note("increments", bank_increments());
	stress_note("allocations refused", bank_refused() - refused);
}

/* -- destroy_in_use ---------------------------------------------------------------------------- */

/*
 * The objects of a round. The stable variable exists in all rounds, and commits connect it with the
 * variable that is destroyed.
 */
static struct {
	weir_var *stable;
	_Atomic(uint64_t) refusals;
} use;

static void count_end(void *context, enum weir_status status, const weir_error *error, void **items, size_t done)
{
	/* cppcheck-suppress AssignmentAddressToInteger ; cppcheck takes _Atomic(T) * for a number */
	_Atomic(uint32_t) *ends = context;

	(void)error, (void)items;
	STRESS_CHECK(status == WEIR_OUT_OF_RANGE && done == 0, "a waiting dequeue ended with %s", weir_status_name(status));
	(void)weiri_fetch_add_release(ends, 1u); /* [release] pairs with the look in destroy_queue() */
}

static void destroy_queue(struct stress_thread *self)
{
	struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = 4, .allocator = stress_poison()};
	weir_error error = {WEIR_OK, ""};
	_Atomic(uint32_t) ends = 0;
	weir_queue *queue = NULL;
	void *items[2][2];

	stress_begin(self, "destroy of a queue");
	STRESS_CHECK(weir_queue_create(&options, &queue, NULL) == WEIR_OK, "weir_queue_create failed");
	for (size_t i = 0; i < 2; i++)
		STRESS_CHECK(weir_queue_start(queue, WEIR_QUEUE_OP_DEQUEUE_MANY, items[i], 2, count_end, &ends, NULL, NULL) ==
		                 WEIR_OK,
		             "weir_queue_start failed");
	STRESS_CHECK(weir_queue_destroy(queue, &error) == WEIR_FAILED_PRECONDITION &&
	                 error.code == WEIR_FAILED_PRECONDITION,
	             "a queue was destroyed while two operations wait in it");
	STRESS_CHECK(weir_queue_try_enqueue(queue, &use) == WEIR_OK, "the queue no longer works after a refused destroy");
	(void)weir_queue_close(queue, WEIR_CLOSE_CANCEL, NULL);
	/* [acquire] pairs with count_end(). */
	STRESS_CHECK(weiri_load_acquire(&ends) == 2, "only %u of 2 waiting dequeues ended by the close",
	             weiri_load_acquire(&ends));
	STRESS_CHECK(weir_queue_destroy(queue, &error) == WEIR_OK, "weir_queue_destroy: %s", error.message);
	(void)weiri_fetch_add_relaxed(&use.refusals, 1u); /* [relaxed] a figure */
}

static weir_var *create_used(uint64_t tag)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = stress_poison()};
	weir_tensor *initial = stress_payload(tag, 1);
	weir_var *var = NULL;

	STRESS_CHECK(weir_var_create(initial, &options, &var, NULL) == WEIR_OK, "weir_var_create failed");
	weir_tensor_release(initial);
	return var;
}

/*
 * Commits to the stable variable and to a variable of its own, and destroys the latter as soon as
 * the commit has ended. Other threads that write the stable variable help this commit, and may be
 * anywhere in it then.
 */
static void destroy_variable(struct stress_thread *self)
{
	weir_var *own = create_used(1);
	weir_tensor *value = stress_payload(stress_random(self), 1 + (size_t)stress_below(self, 20));
	weir_read read;
	uint64_t tag;

	for (int attempt = 0; attempt < 3; attempt++) {
		struct weir_commit_part parts[2] = {{use.stable, weir_var_version(use.stable), value},
		                                    {own, weir_var_version(own), value}};
		enum weir_status status;

		stress_begin(self, "commit");
		status = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
		STRESS_CHECK(status == WEIR_OK || status == WEIR_ABORTED, "weir_var_commit: %s", weir_status_name(status));
	}
	STRESS_CHECK(weir_var_read(own, &read) == WEIR_OK, "a read failed");
	tag = stress_payload_check(read.tensor, "before its variable is destroyed");
	stress_begin(self, "destroy of a variable");
	weir_var_destroy(own, NULL);
	STRESS_CHECK(stress_payload_check(read.tensor, "after its variable was destroyed") == tag, "a handle changed");
	weir_read_release(&read);
	weir_tensor_release(value);
}

static void write_stable(struct stress_thread *self)
{
	weir_tensor *value = stress_payload(stress_random(self), 1);

	stress_begin(self, "assign");
	STRESS_CHECK(weir_var_assign(use.stable, value, WEIR_NO_DEADLINE, NULL, NULL) == WEIR_OK, "an assign failed");
	weir_tensor_release(value);
}

static void use_and_destroy(struct stress_thread *self, void *context)
{
	(void)context;
	while (stress_goes_on()) {
		switch (stress_below(self, 8)) {
		case 0: destroy_queue(self); break;
		case 1:
		case 2: write_stable(self); break;
		default: destroy_variable(self);
		}
		stress_end(self, 1);
	}
}

void scenario_destroy_in_use(void)
{
	unsigned threads = stress_threads(4);

	use.stable = create_used(0);
	stress_disturb();
	for (unsigned i = 0; i < threads; i++)
		(void)stress_start("destroyer", use_and_destroy, NULL);
	stress_join();
	weir_var_destroy(use.stable, NULL);
	stress_note("refused destroys", weiri_load_relaxed(&use.refusals)); /* [relaxed] joined */
	settle();
}
