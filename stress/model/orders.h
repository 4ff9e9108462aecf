/*
 * orders.h - short names for programs as small as litmus tests: names of orders, and of accesses
 * with an order to a member of `state`, which the program defines.
 */
#ifndef WEIR_MODEL_ORDERS_H
#define WEIR_MODEL_ORDERS_H

#include <stdatomic.h>

#define RLX memory_order_relaxed
#define ACQ memory_order_acquire
#define REL memory_order_release
#define SC memory_order_seq_cst
#define LOAD(v, order) atomic_load_explicit(&state.v, order)
#define STORE(v, value, order) atomic_store_explicit(&state.v, value, order)
#define ADD(v, value, order) atomic_fetch_add_explicit(&state.v, value, order)
#define FENCE(order) atomic_thread_fence(order)

#endif
