/*
 * urcu_host.c - a program that lives in liburcu's world: its workers read a variable inside their
 * own rcu_read_lock() sections, without handles.
 *
 * Workers route requests by a table. Now and then the control thread publishes a new table. The
 * program has a thread for grace periods: it waits for the readers, so that no writer has to.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#define URCU_API_MAP /* rcu_read_lock() and so on are those of the flavour below */
#include <urcu/urcu-memb.h>
#include <weir/urcu.h>
#include <weir/weir.h>

enum { WORKERS = 3, ROUTES = 1024, TABLES = 200 };

static weir_var *table;
static weir_urcu *host;
static atomic_int stop;
static atomic_long routed, torn;

/* Each table is filled with its own number. */
static weir_tensor *make_table(int64_t number)
{
	static const weir_shape shape = {.rank = 1, .dims = {ROUTES}};
	int64_t routes[ROUTES];
	weir_tensor *tensor = NULL;

	for (int i = 0; i < ROUTES; i++)
		routes[i] = number;
	return weir_tensor_copy_of(WEIR_I64, &shape, routes, NULL, &tensor) == WEIR_OK ? tensor : NULL;
}

static void *work(void *context)
{
	long mine = 0;

	rcu_register_thread();
	while (!stop) {
		const int64_t *routes;

		rcu_read_lock();
		routes = weir_tensor_data(weir_urcu_peek(table)->tensor);
		torn += routes[mine % ROUTES] != routes[(mine + 7) % ROUTES];
		rcu_read_unlock();
		mine++;
	}
	rcu_unregister_thread();
	routed += mine;
	return context;
}

/* The thread that waits for readers. A program that has a call_rcu() thread needs none. */
static void *provide_grace_periods(void *context)
{
	while (!stop)
		weir_urcu_synchronize(host);
	return context;
}

static int publish(void)
{
	for (int64_t number = 1; number <= TABLES; number++) {
		weir_tensor *next = make_table(number);
		enum weir_status status;

		if (next == NULL)
			return 1;
		status = weir_var_assign(table, next, weir_deadline_in(UINT64_C(60000000000)), NULL, NULL);
		weir_tensor_release(next);
		if (status != WEIR_OK)
			return 1;
	}
	return 0;
}

static int run(void)
{
	pthread_t workers[WORKERS], provider;
	int failed = 0, started = 0;

	for (; started < WORKERS && pthread_create(&workers[started], NULL, work, NULL) == 0; started++)
		;
	failed |= started != WORKERS || pthread_create(&provider, NULL, provide_grace_periods, NULL) != 0;
	if (!failed)
		failed = publish();
	stop = 1;
	for (int i = 0; i < started; i++)
		(void)pthread_join(workers[i], NULL);
	if (started == WORKERS)
		(void)pthread_join(provider, NULL);
	return failed;
}

int main(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64, .name = "routes"};
	weir_tensor *first = make_table(0);
	int failed;

	/* A small budget shows that replaced tables are freed: all of them together are 1.6 MiB. */
	weir_reclaim_set_budget(256 << 10);
	if (first == NULL || weir_var_create(first, &options, &table, NULL) != WEIR_OK ||
	    weir_urcu_attach(&rcu_flavor, NULL, &host, NULL) != WEIR_OK)
		return 1;
	weir_tensor_release(first);
	failed = run();
	weir_urcu_detach(host, NULL);
	failed |= weir_reclaim_flush(weir_deadline_in(UINT64_C(60000000000))) != WEIR_OK ||
	          weir_var_destroy(table, NULL) != WEIR_OK;
	(void)printf("%d tables were published; %ld requests were routed, each by one table\n", TABLES, (long)routed);
	return failed || torn != 0;
}
