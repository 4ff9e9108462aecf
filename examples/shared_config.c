/*
 * shared_config.c - a struct that many threads read all the time and one thread replaces
 * occasionally.
 *
 * A read costs a few nanoseconds. A reader never waits for the writer, and the writer never waits
 * for a reader. A reader that keeps an old version for long keeps only that version alive.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <weir/value.h>

enum { READERS = 4, LIMITS = 14, REPLACEMENTS = 2000 };

struct config {
	uint64_t revision;
	uint64_t workers;
	uint64_t limits[LIMITS];
};

static weir_var *config;
static _Atomic(int) over;

/* All fields of version v hold v, so that a reader can detect a mixture. */
static struct config make_config(uint64_t value)
{
	struct config next = {.revision = value, .workers = value};

	for (int i = 0; i < LIMITS; i++)
		next.limits[i] = value;
	return next;
}

static int is_whole(const struct config *now, uint64_t version)
{
	for (int i = 0; i < LIMITS; i++) {
		if (now->limits[i] != version)
			return 0;
	}
	return now->revision == version && now->workers == version;
}

/* Looks at the struct where it is, or takes a copy, in turn. Counts errors in *wrong. */
static void *read_often(void *wrong)
{
	uint64_t last = 0, version;
	struct config copy;
	weir_read now;

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		if (weir_var_read(config, &now) != WEIR_OK || !is_whole(now.data, now.version) || now.version < last)
			++*(int *)wrong;
		last = now.version;
		weir_read_release(&now);
		if (weir_var_read_into(config, &copy, sizeof(copy), &version, NULL) != WEIR_OK || !is_whole(&copy, version) ||
		    version < last)
			++*(int *)wrong;
		last = version;
	}
	return NULL;
}

int main(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "config", .kind = WEIR_VAR_INLINE,
	                                   .size = sizeof(struct config)};
	struct config next = make_config(1);
	int wrong[READERS + 1] = {0}, sum = 0;
	pthread_t threads[READERS];
	weir_read first;

	if (weir_var_create_value(WEIR_VALUE_OF(next), &options, &config, NULL) || weir_var_read(config, &first))
		return 1;
	for (int i = 0; i < READERS; i++) {
		if (pthread_create(&threads[i], NULL, read_often, &wrong[i]) != 0)
			return 1;
	}
	for (uint64_t i = 2; i <= REPLACEMENTS; i++) {
		next = make_config(i);
		if (weir_var_assign_value(config, WEIR_VALUE_OF(next), WEIR_NO_DEADLINE, NULL, NULL))
			return 1;
	}
	atomic_store_explicit(&over, 1, memory_order_relaxed);
	for (int i = 0; i < READERS; i++)
		(void)pthread_join(threads[i], NULL);
	wrong[READERS] = first.version != 1 || !is_whole(first.data, 1); /* held during the whole run */
	weir_read_release(&first);
	for (int i = 0; i <= READERS; i++)
		sum += wrong[i];
	printf("version %llu after %d replacements; %d reads were wrong\n", (unsigned long long)weir_var_version(config),
	       REPLACEMENTS - 1, sum);
	sum += weir_var_version(config) != REPLACEMENTS;
	weir_var_destroy(config, NULL);
	return sum == 0 ? 0 : 1;
}
