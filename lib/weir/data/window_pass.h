/*
 * window_pass.h - elements that need not stay in the window.
 */
#ifndef WEIRI_DATA_WINDOW_PASS_H
#define WEIRI_DATA_WINDOW_PASS_H

#include "data/window_state.h"

/* With the consumer's turn: gives an element that need not stay. Returns WEIR_WOULD_BLOCK if there is none. */
enum weir_status weiri_window_pass(struct weiri_window *window, weir_tensor *parts[], weir_error *error);

#endif
