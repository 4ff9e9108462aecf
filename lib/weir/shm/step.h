/*
 * step.h - where a process may die, for the model checker: nothing in other builds.
 */
#ifndef WEIRI_SHM_STEP_H
#define WEIRI_SHM_STEP_H

/*
 * Stands before each access to shared memory that other processes can notice, so that a scope can
 * end a process there. The function is that of the thread which stands for the process.
 */
#if defined(WEIRI_UNDER_MODEL)
#include "base/compiler.h"

extern WEIRI_TLS void (*weiri_shm_before_step)(void);
#define WEIRI_SHM_STEP() (weiri_shm_before_step != (void (*)(void))0 ? weiri_shm_before_step() : (void)0)
#else
#define WEIRI_SHM_STEP() ((void)0)
#endif

#endif
