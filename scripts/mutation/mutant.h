/*
 * mutant.h - included in every file of a mutated copy: one program contains many mutants, and one of
 * them is chosen when it starts.
 *
 * The table is const except in mutant.c, so that ThreadSanitizer does not instrument its reads. The
 * model checker, which receives the instrumented accesses, must not see them. libweir has both
 * symbols, hides what is not declared visible, and libweir-flow needs them, too.
 */
#ifndef WEIRI_MUTANT_H
#define WEIRI_MUTANT_H

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIRI_MUTANTS = 65536 };

#define WEIRI_MUTANT_SHARED __attribute__((visibility("default")))

WEIRI_MUTANT_SHARED extern const unsigned char weiri_mutants[];

WEIRI_MUTANT_SHARED int weiri_mutant_here(unsigned mutant);

#ifdef __cplusplus
}
#endif

#define WEIRI_MUTANT(n) (__builtin_expect(weiri_mutants[n] != 0, 0) && weiri_mutant_here(n))

#endif
