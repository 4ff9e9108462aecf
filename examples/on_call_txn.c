/*
 * on_call_txn.c - doctors go on and off call by transactions, so that at least one is always on
 * call.
 *
 * A doctor goes off call only if another doctor is on call. Without transactions, two doctors could
 * read each other's state at the same time and both go off call. This is write skew, which a commit
 * of the written variables alone would permit. A transaction commits only if everything that it
 * read is still current; otherwise weir_txn_run() repeats it. Meanwhile, a thread follows one
 * variable and waits for each change.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <weir/txn.h>
#include <weir/watch.h>

enum { DOCTORS = 4, DECISIONS = 20000 };

static weir_var *on_call[DOCTORS]; /* 0 or 1 */
static weir_tensor *yes, *no;

struct doctor {
	int number, failed;
	pthread_t thread;
};

static int64_t count_of(weir_tensor *tensor)
{
	return *(const int64_t *)weir_tensor_data(tensor);
}

/* Goes on call, or goes off call if another doctor is on call. */
static enum weir_status decide(void *context, weir_txn *txn, weir_error *error)
{
	const struct doctor *doctor = context;
	int64_t others = 0, mine = 0;

	for (int i = 0; i < DOCTORS; i++) {
		weir_tensor *value;
		enum weir_status status = weir_txn_read(txn, on_call[i], &value, error);

		if (status != WEIR_OK)
			return status;
		if (i == doctor->number)
			mine = count_of(value);
		else
			others += count_of(value);
	}
	if (mine == 0)
		return weir_txn_assign(txn, on_call[doctor->number], yes, error);
	return others > 0 ? weir_txn_assign(txn, on_call[doctor->number], no, error) : WEIR_OK;
}

static void *work(void *context)
{
	struct doctor *doctor = context;

	for (int i = 0; i < DECISIONS && !doctor->failed; i++)
		doctor->failed = weir_txn_run(NULL, decide, doctor, WEIR_NO_DEADLINE, NULL) != WEIR_OK;
	return NULL;
}

/* Returns how many doctors are on call at one instant. */
static int64_t look(void)
{
	weir_read now[DOCTORS];
	int64_t sum = 0;

	if (weir_var_snapshot(on_call, DOCTORS, now, NULL) != WEIR_OK)
		return 0;
	for (int i = 0; i < DOCTORS; i++)
		sum += count_of(now[i].tensor);
	weir_read_release_many(now, DOCTORS);
	return sum;
}

/*
 * Follows the first doctor's changes until none comes for a while. Returns how often no doctor was
 * on call.
 */
static int follow(int *seen)
{
	uint64_t version = 0;
	int uncovered = 0;
	weir_read read;

	while (weir_var_wait(on_call[0], version, weir_deadline_in(50000000), NULL, &read, NULL) == WEIR_OK) {
		version = read.version;
		weir_read_release(&read);
		uncovered += look() == 0;
		++*seen;
	}
	return uncovered;
}

int main(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "on call", .dtype = WEIR_I64};
	struct doctor doctors[DOCTORS];
	int seen = 0, wrong = 0;

	if (weir_tensor_scalar_i64(1, &yes) != WEIR_OK || weir_tensor_scalar_i64(0, &no) != WEIR_OK)
		return 1;
	for (int i = 0; i < DOCTORS; i++) {
		if (weir_var_create(yes, &options, &on_call[i], NULL) != WEIR_OK)
			return 1;
	}
	for (int i = 0; i < DOCTORS; i++) {
		doctors[i] = (struct doctor){.number = i};
		if (pthread_create(&doctors[i].thread, NULL, work, &doctors[i]) != 0)
			return 1;
	}
	wrong += follow(&seen);
	for (int i = 0; i < DOCTORS; i++) {
		(void)pthread_join(doctors[i].thread, NULL);
		wrong += doctors[i].failed;
	}
	wrong += look() == 0;
	for (int i = 0; i < DOCTORS; i++)
		wrong += weir_var_destroy(on_call[i], NULL) != WEIR_OK;
	weir_tensor_release(yes);
	weir_tensor_release(no);
	printf("%d decisions, %d changes of the first doctor seen, %d wrong\n", DOCTORS * DECISIONS, seen, wrong);
	return wrong == 0 ? 0 : 1;
}
