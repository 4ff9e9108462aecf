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
 * Lends the calling thread as the number-th to be taken, from 0. Returns when the created thread
 * has ended.
 */
void weiri_model_lend(size_t number);
/* Called once no thread creates threads any longer. The lent threads that were not taken end. */
void weiri_model_give_back(void);

enum { WEIRI_MODEL_NO_THREAD = 9 }; /* a number that the system never gave to a thread */

/*
 * Ends the calling thread here, in the middle of any call, without destructors of thread-specific
 * data, as if all keys were taken. From here on the system has no thread of its number. Not for
 * setup or finish.
 */
__attribute__((noreturn)) void weiri_model_vanish(void);

/*
 * Provided by the checker: the number of the calling thread, which is 0 in setup and finish, and
 * its end.
 */
uint32_t weiri_model_thread_number(void);
__attribute__((noreturn)) void weiri_model_end_thread(void);

#endif
