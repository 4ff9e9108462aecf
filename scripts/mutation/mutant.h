/*
 * mutant.h - what every file of a mutated copy is compiled with: one program has many mutants, and one of them is chosen when it starts.
 *
 * The table is const to all but mutant.c, so that ThreadSanitizer's instrumentation, which the model checker answers, leaves it alone.
 */
#ifndef WEIRI_MUTANT_H
#define WEIRI_MUTANT_H

enum { WEIRI_MUTANTS = 65536 };

extern const unsigned char weiri_mutants[];

int weiri_mutant_here(unsigned mutant);

#define WEIRI_MUTANT(n) (__builtin_expect(weiri_mutants[n] != 0, 0) && weiri_mutant_here(n))

#endif
