/*
 * window_task.c - see window_task.h.
 */
#include "data/window_task.h"

#include "data/window_undone.h"
#include "data/window_work.h"

enum { PATIENCE = 64 /* how often a helper looks before it lets other tasks of the pool go first */ };

/* Whether a helper that has set its bit in `idle` is to go on. */
static bool needs_helper(struct weiri_window *window)
{
	if (weiri_window_is_over(window) || !weiri_window_is_undone(window))
		return false;
	/* [P8 release] pairs with fall_asleep() */
	return !weiri_window_is_hurried(window) || weiri_fetch_or_release(&window->waits, 0u) != 0;
}

/*
 * The helper found nothing that it can do, or leaves it to the consumer. Returns a helper that goes on in
 * its place, or NULL.
 */
static struct weiri_window_helper *rest(struct weiri_window *window, const struct weiri_window_helper *helper)
{
	struct weiri_window_helper *next = NULL;

	(void)weiri_fetch_sub_relaxed(&window->running, 1u); /* [relaxed] a hint */
	/* [P6 acquire, P9 release] pairs with weiri_window_take_helper() */
	(void)weiri_fetch_or_acq_rel(&window->idle, 1u << (helper - window->helpers));
	if (needs_helper(window))
		next = weiri_window_take_helper(window);
	if (next == NULL)
		weiri_window_release(window);
	else
		(void)weiri_fetch_add_relaxed(&window->running, 1u); /* [relaxed] a hint */
	return next;
}

/* The consumer works, too, since this helper was summoned. */
static bool is_one_too_many(const struct weiri_window *window)
{
	/* [relaxed] a hint */
	return weiri_window_count_awake(window, weiri_load_relaxed(&window->idle)) > weiri_window_most_awake(window);
}

void weiri_window_run_helper(weir_task *task)
{
	struct weiri_window_helper *helper = WEIRI_CONTAINER_OF(task, struct weiri_window_helper, task);
	struct weiri_window *window = helper->window;

	(void)weiri_fetch_add_relaxed(&window->running, 1u); /* [relaxed] a hint */
	/* While a worker rests, no task waits for this one. */
	for (uint32_t looks = 0; looks < PATIENCE || weiri_pool_has_rest(window->pool); looks++) {
		if (weiri_window_is_over(window) || is_one_too_many(window) ||
		    !weiri_window_do_one(window, WEIRI_HELP_ALWAYS) || weiri_window_is_hurried(window))
			helper = rest(window, helper);
		if (helper == NULL)
			return;
	}
	(void)weiri_fetch_sub_relaxed(&window->running, 1u); /* [relaxed] a hint */
	/* The task may get a worker late. Until then a consumer that left all to it may work itself. */
	if (weiri_window_may_help(window) && weiri_window_is_undone(window))
		window->consumer->wake(window->consumer);
	(void)weir_pool_submit(window->pool, &helper->task); /* fails only for invalid arguments */
}
