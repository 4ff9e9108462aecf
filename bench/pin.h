/*
 * pin.h - which processor a thread runs on.
 */
#ifndef WEIR_BENCH_PIN_H
#define WEIR_BENCH_PIN_H

#include "options.h"

/* 0 when weir-bench was built without hwloc. */
int bench_can_pin(void);
/* Finds the places for up to `threads` threads; BENCH_PIN_NONE: they run wherever the kernel wants. */
void bench_pin_prepare(enum bench_pin pin, unsigned threads);
/* Binds the calling thread to the place of thread `index`; places are used again when there are fewer than threads. */
void bench_pin_thread(unsigned index);

#endif
