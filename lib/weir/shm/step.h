/*
 * step.h - where a process may die, for the model checker: nothing in other builds.
 */
#ifndef WEIRI_SHM_STEP_H
#define WEIRI_SHM_STEP_H

/*
 * Stands before each access to shared memory that other processes can notice, so that a scope can
 * end a process there.
 */
#if defined(WEIRI_UNDER_MODEL)
extern void (*weiri_shm_before_step)(void);
#define WEIRI_SHM_STEP() (weiri_shm_before_step != (void *)0 ? weiri_shm_before_step() : (void)0)
#else
#define WEIRI_SHM_STEP() ((void)0)
#endif

#endif
