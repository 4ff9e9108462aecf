/*
 * one_at_a_time.c - a ledger of plain memory, written by a thread and by pool tasks, one at a time.
 *
 * The thread waits for its turn up to a deadline. The executions by tasks are asynchronous: they
 * hold no thread of the pool until they may enter. A call that would wait for itself returns an
 * error.
 */
#include <stdio.h>
#include <weir/critical_section.h>
#include <weir/time.h>

enum { BY_THREAD = 3, BY_TASKS = 5 };

static weir_critical_section *turn;
static struct {
	int count, sum; /* no atomics: only the execution inside accesses them */
} ledger;

static enum weir_status enter_an_amount(void *amount, weir_error *error)
{
	(void)error;
	ledger.count++;
	ledger.sum += *(const int *)amount;
	return WEIR_OK;
}

static enum weir_status wait_for_myself(void *amount, weir_error *error)
{
	return weir_critical_section_execute(turn, enter_an_amount, amount, WEIR_NO_DEADLINE, NULL, error);
}

static void done(void *amount, enum weir_status status, const weir_error *error)
{
	if (status != WEIR_OK)
		printf("%d was not entered: %s\n", *(const int *)amount, error->message);
}

int main(void)
{
	struct weir_critical_section_options options = {WEIR_CRITICAL_SECTION_OPTIONS_INIT, .name = "ledger"};
	static int amounts[BY_THREAD + BY_TASKS] = {1, 2, 3, 10, 20, 30, 40, 50};
	int wrong = 0;
	weir_error error;
	weir_pool *pool;

	if (weir_critical_section_create(&options, &turn, &error) || weir_pool_create(NULL, &pool, &error))
		return 1;
	for (int i = 0; i < BY_TASKS; i++)
		wrong += weir_critical_section_start(turn, pool, enter_an_amount, &amounts[BY_THREAD + i], done, NULL,
		                                     &error) != WEIR_OK;
	for (int i = 0; i < BY_THREAD; i++)
		wrong += weir_critical_section_execute(turn, enter_an_amount, &amounts[i], weir_deadline_in(20000000000), NULL,
		                                       &error) != WEIR_OK;
	wrong += weir_critical_section_execute(turn, wait_for_myself, &amounts[0], WEIR_NO_DEADLINE, NULL, &error) !=
	         WEIR_FAILED_PRECONDITION;
	printf("%s\n", error.message);

	wrong += weir_pool_destroy(pool, &error) != WEIR_OK; /* runs the executions that were started */
	printf("%d amounts, sum %d\n", ledger.count, ledger.sum);
	wrong += ledger.count != BY_THREAD + BY_TASKS || ledger.sum != 156;
	wrong += weir_critical_section_destroy(turn, &error) != WEIR_OK;
	return wrong != 0;
}
