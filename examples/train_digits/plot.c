/*
 * plot.c - see plot.h. gnuplot reads its script and the data from a temporary file; no shell is
 * involved.
 */
#include "plot.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.h"

extern char **environ;

/* Writes a string of gnuplot in single quotes; a quote inside is doubled. */
static void write_quoted(FILE *script, const char *text)
{
	(void)fputc('\'', script);
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			(void)fputc('\'', script);
		(void)fputc(*text, script);
	}
	(void)fputc('\'', script);
}

static void write_script(FILE *script, const struct curve_point points[], size_t count, const char *path)
{
	(void)fputs("$curve << END\n", script);
	for (size_t i = 0; i < count; i++)
		(void)fprintf(script, "%.4f %.6f %.6f\n", points[i].epoch, points[i].loss, points[i].accuracy);
	(void)fputs("END\n"
	            "set terminal svg size 800,480 background 'white'\n"
	            "set output ",
	            script);
	write_quoted(script, path);
	(void)fputs("\nset title 'Handwritten digits: measured by snapshots during the training'\n"
	            "set xlabel 'epoch'\nset ylabel 'accuracy on held-out images'\nset y2label 'loss on held-out images'\n"
	            "set yrange [0:1]\nset y2range [0:*]\nset ytics nomirror\nset y2tics\nset grid\nset key right center\n"
	            "plot $curve using 1:3 with lines linewidth 2 title 'accuracy', "
	            "$curve using 1:2 axes x1y2 with lines linewidth 2 title 'loss'\n",
	            script);
}

/* Starts gnuplot with `input` as its standard input. Returns 0 or an errno. */
static int start(int input, pid_t *process)
{
	char *words[] = {(char[]){"gnuplot"}, NULL};
	posix_spawn_file_actions_t actions;
	int failed = posix_spawn_file_actions_init(&actions);

	if (failed != 0)
		return failed;
	failed = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
	if (failed == 0)
		failed = posix_spawnp(process, "gnuplot", &actions, NULL, words, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static enum weir_status await(pid_t process, weir_error *error)
{
	int status;

	while (waitpid(process, &status, 0) < 0) {
		if (errno != EINTR)
			return failure(error, WEIR_INTERNAL, "cannot wait for gnuplot: %s", strerror(errno));
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? WEIR_OK : failure(error, WEIR_INTERNAL, "gnuplot failed");
}

static enum weir_status draw(FILE *script, const struct curve_point points[], size_t count, const char *path,
                             weir_error *error)
{
	pid_t process;
	int failed;

	write_script(script, points, count, path);
	if (fflush(script) != 0 || fseek(script, 0, SEEK_SET) != 0)
		return failure(error, WEIR_INTERNAL, "cannot write the script for gnuplot: %s", strerror(errno));
	failed = start(fileno(script), &process);
	if (failed == ENOENT)
		return failure(error, WEIR_NOT_FOUND, "there is no gnuplot here, so %s was not drawn", path);
	if (failed != 0)
		return failure(error, WEIR_INTERNAL, "cannot start gnuplot: %s", strerror(failed));
	return await(process, error);
}

enum weir_status plot_curve(const struct curve_point points[], size_t count, const char *path, weir_error *error)
{
	FILE *script = tmpfile();
	enum weir_status status;

	if (script == NULL)
		return failure(error, WEIR_INTERNAL, "cannot create a temporary file for gnuplot: %s", strerror(errno));
	status = draw(script, points, count, path, error);
	(void)fclose(script);
	return status;
}
