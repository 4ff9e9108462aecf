/*
 * mutant.c - which mutant a program is, and which ones it could notice; only in mutated copies of the library.
 *
 * WEIR_MUTANT is the number of the mutant. WEIR_MUTANTS_REACHED names a file with a byte for each: of those that execution comes to, it
 * becomes 1. The file is mapped, so that processes which crash or are killed have written it, too.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MUTANTS = 65536, CHOSEN = 1, LOOKED_FOR = 2 };

/* By its own name it is const: mutant.h, which this file is compiled with, too. */
extern unsigned char table[];
unsigned char table[MUTANTS] __asm__("weiri_mutants");

static volatile unsigned char *reached;

__attribute__((noinline, no_sanitize("thread"))) int weiri_mutant_here(unsigned mutant)
{
	if (reached != NULL)
		reached[mutant] = 1;
	return table[mutant] == CHOSEN;
}

__attribute__((constructor(101), no_sanitize("thread"))) static void choose(void)
{
	const char *chosen = getenv("WEIR_MUTANT");
	const char *path = getenv("WEIR_MUTANTS_REACHED");
	int file;

	if (chosen != NULL)
		table[strtoul(chosen, NULL, 10) % MUTANTS] = CHOSEN;
	table[0] = 0;
	file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (file < 0)
		return;
	reached = mmap(NULL, MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	(void)close(file);
	if (reached == MAP_FAILED)
		abort();
	for (unsigned i = 1; i < MUTANTS; i++)
		table[i] = LOOKED_FOR;
}
