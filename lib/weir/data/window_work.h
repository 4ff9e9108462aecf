/*
 * window_work.h - doing what is undone: the work on an element, or the filling.
 */
#ifndef WEIRI_DATA_WINDOW_WORK_H
#define WEIRI_DATA_WINDOW_WORK_H

#include "data/window_state.h"

/* Runs the work on an element that was read without an error. The caller claimed it, or has both turns. */
void weiri_window_call_work(struct weiri_window *window, struct weiri_window_slot *slot);
/* Does one thing of what is undone. Returns false if there is nothing that it can do. */
bool weiri_window_do_one(struct weiri_window *window, enum weiri_help help);

#endif
