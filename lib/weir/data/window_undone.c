/*
 * window_undone.c - see window_undone.h.
 */
#include "data/window_undone.h"

struct weiri_window_helper *weiri_window_take_helper(struct weiri_window *window)
{
	/* [P6 release] pairs with rest(): a read-modify-write, also if none rests */
	uint32_t idle = weiri_fetch_or_release(&window->idle, 0u);

	while (weiri_window_count_awake(window, idle) < weiri_window_most_awake(window)) {
		uint32_t bit = idle & (0 - idle);

		/* [P9 acquire] pairs with rest(), whose task this thread submits again */
		if (weiri_cas_acquire(&window->idle, &idle, idle & ~bit))
			return &window->helpers[__builtin_ctz(bit)];
	}
	return NULL;
}

void weiri_window_summon(struct weiri_window *window)
{
	struct weiri_window_helper *helper = weiri_window_is_over(window) ? NULL : weiri_window_take_helper(window);

	if (helper == NULL)
		return;
	weiri_window_retain(window);
	(void)weir_pool_submit(window->pool, &helper->task); /* fails only for invalid arguments */
}
