/*
 * pin.h - pins threads to processors.
 */
#ifndef WEIR_BENCH_PIN_H
#define WEIR_BENCH_PIN_H

#include "options.h"

/* Finds the places for up to `threads` threads. With BENCH_PIN_NONE the kernel places them. */
void bench_pin_prepare(enum bench_pin pin, unsigned threads);
/*
 * Binds the calling thread to the place of thread `index`. Threads share places when there are
 * fewer places than threads.
 */
void bench_pin_thread(unsigned index);

#endif
