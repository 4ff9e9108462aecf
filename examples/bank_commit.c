/*
 * bank_commit.c - threads move money between accounts by commits; an auditor counts all of it
 * meanwhile.
 *
 * A transfer reads two accounts, computes, and commits on the condition that neither has changed.
 * WEIR_ABORTED means that another transfer came first: read again, compute again. So no money is
 * lost, and every sum that the auditor finds is correct.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/var.h>

enum { ACCOUNTS = 6, TELLERS = 4, TRANSFERS = 3000, START = 1000 };

static weir_var *accounts[ACCOUNTS];
static _Atomic(int) failures;
static _Atomic(uint64_t) retries;

static int64_t balance(const weir_read *read)
{
	return *(const int64_t *)weir_tensor_data(read->tensor);
}

/* One attempt. */
static enum weir_status try_transfer(weir_var *from, weir_var *to, int64_t amount)
{
	weir_read now[2];
	weir_tensor *less = NULL, *more = NULL;
	enum weir_status status = weir_var_snapshot((weir_var *[]){from, to}, 2, now, NULL);

	if (status != WEIR_OK)
		return status;
	status = weir_tensor_scalar_i64(balance(&now[0]) - amount, &less);
	if (status == WEIR_OK)
		status = weir_tensor_scalar_i64(balance(&now[1]) + amount, &more);
	if (status == WEIR_OK) {
		struct weir_commit_part parts[] = {{from, now[0].version, less}, {to, now[1].version, more}};

		status = weir_var_commit(parts, 2, WEIR_NO_DEADLINE, NULL, NULL);
	}
	weir_tensor_release(less);
	weir_tensor_release(more);
	weir_read_release_many(now, 2);
	return status;
}

static void *work(void *number)
{
	uint64_t random = *(const uint64_t *)number;

	for (int i = 0; i < TRANSFERS; i++) {
		size_t from, to;
		enum weir_status status;

		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		from = (size_t)(random >> 33) % ACCOUNTS;
		to = (from + 1 + (size_t)(random >> 40) % (ACCOUNTS - 1)) % ACCOUNTS;
		while ((status = try_transfer(accounts[from], accounts[to], (int64_t)(random >> 59))) == WEIR_ABORTED)
			atomic_fetch_add_explicit(&retries, 1, memory_order_relaxed);
		if (status != WEIR_OK)
			atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
	}
	return NULL;
}

/* All accounts at one instant. */
static int64_t audit(void)
{
	weir_read now[ACCOUNTS];
	int64_t sum = 0;

	if (weir_var_snapshot(accounts, ACCOUNTS, now, NULL) != WEIR_OK)
		return -1;
	for (int i = 0; i < ACCOUNTS; i++)
		sum += balance(&now[i]);
	weir_read_release_many(now, ACCOUNTS);
	return sum;
}

int main(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "account", .dtype = WEIR_I64};
	uint64_t numbers[TELLERS], versions = 0;
	pthread_t threads[TELLERS];
	weir_tensor *start;
	int audits = 0, wrong = 0;

	if (weir_tensor_scalar_i64(START, &start) != WEIR_OK)
		return 1;
	for (int i = 0; i < ACCOUNTS; i++) {
		if (weir_var_create(start, &options, &accounts[i], NULL) != WEIR_OK)
			return 1;
	}
	weir_tensor_release(start);
	for (int i = 0; i < TELLERS; i++) {
		numbers[i] = (uint64_t)i;
		if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0)
			return 1;
	}
	/* Every transfer makes one version of each of two accounts. */
	while (versions < ACCOUNTS + 2 * TELLERS * TRANSFERS &&
	       atomic_load_explicit(&failures, memory_order_relaxed) == 0) {
		wrong += audit() != ACCOUNTS * START;
		audits++;
		versions = 0;
		for (int i = 0; i < ACCOUNTS; i++)
			versions += weir_var_version(accounts[i]);
	}
	for (int i = 0; i < TELLERS; i++)
		(void)pthread_join(threads[i], NULL);
	wrong += audit() != ACCOUNTS * START || atomic_load_explicit(&failures, memory_order_relaxed) != 0;
	for (int i = 0; i < ACCOUNTS; i++)
		weir_var_destroy(accounts[i], NULL);
	printf("%d transfers, %" PRIu64 " attempts aborted; %d audits, %d wrong\n", TELLERS * TRANSFERS,
	       atomic_load_explicit(&retries, memory_order_relaxed), audits, wrong);
	return wrong == 0 ? 0 : 1;
}
