/*
 * bank.c - see bank.h.
 */
#include "bank.h"

#include <inttypes.h>
#include <weir/var.h>

#include "poison.h"

enum { ACCOUNTS = 6, OPENING = 100, REFUSE_ONE_IN = 6, LARGEST = 1 << 30 };

static struct {
	_Atomic(uint64_t) asked, refused;
	_Atomic(uint32_t) refuses;
	weir_var *counter;
	weir_var *account[ACCOUNTS];
	_Atomic(uint64_t) added; /* increments that succeeded */
} bank;

/* -- memory ------------------------------------------------------------------------------------ */

static void *allocate_or_not(void *context, size_t size, size_t alignment)
{
	/* [relaxed] a ticket and a count. */
	uint64_t ticket = weiri_fetch_add_relaxed(&bank.asked, 1u);

	if (weiri_load_relaxed(&bank.refuses) != 0 && stress_mix(ticket) % REFUSE_ONE_IN == 0) {
		(void)weiri_fetch_add_relaxed(&bank.refused, 1u);
		return NULL;
	}
	return stress_poison()->allocate(context, size, alignment);
}

static void release(void *context, void *memory, size_t size, size_t alignment)
{
	stress_poison()->release(context, memory, size, alignment);
}

const weir_allocator *bank_allocator(void)
{
	static const weir_allocator allocator = {allocate_or_not, release, NULL};

	return &allocator;
}

int bank_judge(enum weir_status status, enum weir_status also, const char *call)
{
	STRESS_CHECK(status == WEIR_OK || status == WEIR_RESOURCE_EXHAUSTED || status == also, "%s: %s", call,
	             weir_status_name(status));
	return status == WEIR_OK;
}

weir_tensor *bank_make(int64_t value)
{
	weir_shape scalar = {.rank = 0};
	weir_tensor *tensor = NULL;

	(void)bank_judge(weir_tensor_copy_of(WEIR_I64, &scalar, &value, bank_allocator(), &tensor), WEIR_OK,
	                 "weir_tensor_copy_of");
	return tensor;
}

static int64_t value_of(const weir_read *read)
{
	return *(const int64_t *)weir_tensor_data(read->tensor);
}

/* -- operations of threads --------------------------------------------------------------------- */

static void count_up(struct stress_thread *self)
{
	weir_tensor *one = bank_make(1);
	weir_read published = {.hold = NULL}, *wanted = stress_one_in(self, 2) ? &published : NULL;

	stress_begin(self, "assign_add");
	if (one != NULL &&
	    bank_judge(weir_var_assign_add(bank.counter, one, WEIR_NO_DEADLINE, wanted, NULL), WEIR_OK, "assign_add")) {
		(void)weiri_fetch_add_relaxed(&bank.added, 1u); /* [relaxed] read after the join */
		STRESS_CHECK(wanted == NULL || value_of(&published) == (int64_t)published.version - 1,
		             "version %" PRIu64 " of the counter is %" PRId64, published.version, value_of(&published));
	}
	weir_read_release(&published);
	weir_tensor_release(one);
}

static void move_money(struct stress_thread *self)
{
	size_t first = (size_t)stress_below(self, ACCOUNTS), step = 1 + (size_t)stress_below(self, ACCOUNTS - 1);
	weir_var *vars[2] = {bank.account[first], bank.account[(first + step) % ACCOUNTS]};
	struct weir_commit_part parts[2];
	weir_read reads[2];
	int64_t amount;

	stress_begin(self, "commit");
	STRESS_CHECK(weir_var_snapshot(vars, 2, reads, NULL) == WEIR_OK,
	             "a snapshot failed, although it allocates nothing");
	amount = (int64_t)stress_below(self, 50);
	for (size_t i = 0; i < 2; i++)
		parts[i] = (struct weir_commit_part){vars[i], reads[i].version,
		                                     bank_make(value_of(&reads[i]) + (i == 0 ? amount : -amount))};
	weir_read_release_many(reads, 2);
	if (parts[0].value != NULL && parts[1].value != NULL)
		(void)bank_judge(weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL), WEIR_ABORTED, "weir_var_commit");
	for (size_t i = 0; i < 2; i++)
		weir_tensor_release(parts[i].value);
}

static void audit(struct stress_thread *self)
{
	weir_read reads[ACCOUNTS];
	int64_t sum = 0;

	stress_begin(self, "snapshot");
	STRESS_CHECK(weir_var_snapshot(bank.account, ACCOUNTS, reads, NULL) == WEIR_OK,
	             "a snapshot failed, although it allocates nothing");
	for (size_t i = 0; i < ACCOUNTS; i++)
		sum += value_of(&reads[i]);
	weir_read_release_many(reads, ACCOUNTS);
	STRESS_CHECK(sum == (int64_t)ACCOUNTS * OPENING, "a snapshot sums to %" PRId64 ", not %d", sum, ACCOUNTS * OPENING);
}

void bank_act(struct stress_thread *self)
{
	switch (stress_below(self, 4)) {
	case 0: audit(self); break;
	case 1: count_up(self); break;
	default: move_money(self);
	}
	stress_end(self, 1);
}

void bank_look(const char *who)
{
	for (size_t i = 0; i < ACCOUNTS; i++) {
		weir_read read;

		STRESS_CHECK(weir_var_read(bank.account[i], &read) == WEIR_OK, "%s: a read failed", who);
		/* A value in poisoned memory would be outside. */
		STRESS_CHECK(value_of(&read) < LARGEST && value_of(&read) > -LARGEST, "%s: an account shows 0x%" PRIx64, who,
		             (uint64_t)value_of(&read));
		weir_read_release(&read);
	}
}

/* -- opening and closing ----------------------------------------------------------------------- */

static weir_var *create(int64_t value)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .allocator = bank_allocator()};
	weir_tensor *initial = bank_make(value);
	weir_var *var = NULL;

	STRESS_CHECK(weir_var_create(initial, &options, &var, NULL) == WEIR_OK, "weir_var_create failed");
	weir_tensor_release(initial);
	return var;
}

void bank_open(void)
{
	bank_refuse(0);
	weiri_store_relaxed(&bank.added, 0u); /* [relaxed] no thread yet */
	bank.counter = create(0);
	for (size_t i = 0; i < ACCOUNTS; i++)
		bank.account[i] = create(OPENING);
}

void bank_refuse(int refuses)
{
	weiri_store_relaxed(&bank.refuses, (uint32_t)refuses); /* [relaxed] a switch */
}

void bank_close(struct stress_thread *self)
{
	weir_read read;

	bank_refuse(0);
	audit(self);
	STRESS_CHECK(weir_var_read(bank.counter, &read) == WEIR_OK, "the counter cannot be read");
	/* [relaxed] joined. */
	STRESS_CHECK(value_of(&read) == (int64_t)weiri_load_relaxed(&bank.added),
	             "%" PRIu64 " increments succeeded, but the counter is %" PRId64, weiri_load_relaxed(&bank.added),
	             value_of(&read));
	weir_read_release(&read);
	weir_var_destroy(bank.counter, NULL);
	for (size_t i = 0; i < ACCOUNTS; i++)
		weir_var_destroy(bank.account[i], NULL);
}

uint64_t bank_increments(void)
{
	return weiri_load_relaxed(&bank.added); /* [relaxed] joined */
}

uint64_t bank_refused(void)
{
	return weiri_load_relaxed(&bank.refused); /* [relaxed] joined */
}
