/*
 * mutant.c - chooses the mutant of a program and records which mutants it reaches; only in mutated
 * copies of the library.
 *
 * WEIR_MUTANT is the number of the mutant. WEIR_MUTANTS_REACHED names a file with a byte for each
 * mutant, which becomes 1 when execution reaches the mutant. The file is mapped, so that it is
 * written even if the process crashes or is killed.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MUTANTS = 65536, CHOSEN = 1, LOOKED_FOR = 2 };

/* mutant.h, which this file includes too, declares weiri_mutants const: here it has another name. */
WEIRI_MUTANT_SHARED extern unsigned char table[];
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
