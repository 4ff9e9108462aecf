/*
 * pin.h - keeping the code of this library in memory after dlclose().
 *
 * A thread that used Weir runs code of Weir when it ends (reclaim/record.c), perhaps after the
 * object that contains Weir was closed. libweir.so is linked with -z nodelete, so dlclose() leaves
 * it mapped. But libweir.a becomes part of an object of the user's: of a plug-in, say, which knows
 * nothing of this. So the first call of Weir in a process looks for the object that contains its
 * own code, and opens it once more, to stay (RTLD_NODELETE). This opens nothing new (RTLD_NOLOAD),
 * and has no effect on a program or on what is pinned already.
 */
#ifndef WEIRI_PIN_H
#define WEIRI_PIN_H

/*
 * Called once in a process. It takes the loader's lock for a moment. errno is as it was. No
 * failure is reported: then the object is as if it had not been pinned.
 */
void weiri_pin_self(void);

#endif
