/*
 * blas_threads.c - run by meson: exits with 0 when the CBLAS it is linked to starts no threads as it is loaded.
 */
#include <cblas.h>
#include <dirent.h>
#include <stddef.h>

int main(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int entries = 0;
	float one = 1.0f;

	/* Called, so that the linker keeps the library. */
	if (tasks == NULL || cblas_sdot(1, &one, 1, &one, 1) != 1.0f)
		return 2;
	while (readdir(tasks) != NULL)
		entries++;
	(void)closedir(tasks);
	return entries == 3 ? 0 : 1; /* ".", ".." and this thread */
}
