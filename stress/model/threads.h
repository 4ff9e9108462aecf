/*
 * threads.h - threads that library code under test may start: pthread_create takes one that the checked program lends.
 */
#ifndef WEIR_MODEL_THREADS_H
#define WEIR_MODEL_THREADS_H

#include <stddef.h>
#include <stdint.h>

/* In setup: so many threads are lent, at most 4 (the default); a pthread_create beyond them fails. */
void weiri_model_lend_at_most(uint32_t threads);
/* What a thread of the program does that is the number-th to be taken, from 0. Returns when the thread that was created has ended. */
void weiri_model_lend(size_t number);
/* Once nobody creates threads any more: those that were not taken end. */
void weiri_model_give_back(void);

#endif
