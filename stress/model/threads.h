/*
 * threads.h - threads that library code under test may start (pthread_create takes one that the
 * checked program lends), and threads that end without notice.
 */
#ifndef WEIR_MODEL_THREADS_H
#define WEIR_MODEL_THREADS_H

#include <stddef.h>
#include <stdint.h>

/*
 * For setup: the number of threads that are lent, at most 4 (the default). A further pthread_create
 * fails.
 */
void weiri_model_lend_at_most(uint32_t threads);
/*
 * Lends the calling thread. pthread_create() takes lent threads in the order of their numbers, from
 * 0 on. Returns when the created thread has ended.
 */
void weiri_model_lend(size_t number);
/*
 * To be called when no thread creates threads any longer. Lent threads that were not taken then
 * return from weiri_model_lend().
 */
void weiri_model_give_back(void);

enum { WEIRI_MODEL_NO_THREAD = 9 }; /* a number that the system never gave to a thread */

/*
 * Ends the calling thread here, in the middle of any call. No destructor of thread-specific data
 * runs, as if the library had got no key. From here on weiri_thread_is_gone() returns 1 for this
 * thread. Must not be called in setup or finish.
 */
__attribute__((noreturn)) void weiri_model_vanish(void);

/*
 * Provided by the checker: the number of the calling thread, which is 0 in setup and finish, and
 * its end.
 */
uint32_t weiri_model_thread_number(void);
__attribute__((noreturn)) void weiri_model_end_thread(void);

#endif
