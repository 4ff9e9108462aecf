/*
 * window_task.h - helpers: tasks of the pool that do what is undone in a window.
 */
#ifndef WEIRI_DATA_WINDOW_TASK_H
#define WEIRI_DATA_WINDOW_TASK_H

#include "data/window_state.h"

/* The task of a struct weiri_window_helper. Its reference to the window ends with it. */
void weiri_window_run_helper(weir_task *task);

#endif
