/*
 * blas_threads.c - a program that meson runs. It exits with 0 if the CBLAS to which it is linked
 * starts no threads when it is loaded.
 */
#include <cblas.h>
#include <dirent.h>
#include <stddef.h>

int main(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int entries = 0;
	float one = 1.0f;

	/* A function of CBLAS is called, so that the linker keeps the library. */
	if (tasks == NULL || cblas_sdot(1, &one, 1, &one, 1) != 1.0f)
		return 2;
	while (readdir(tasks) != NULL)
		entries++;
	(void)closedir(tasks);
	return entries == 3 ? 0 : 1; /* ".", ".." and this thread */
}
