/*
 * display.c - shows the progress; see report.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "report.h"

enum { LINE_WIDTH = 160, PLAIN_LINES = 10 };

/* The columns of the terminal on standard output. */
static size_t width(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
		return 80;
	return size.ws_col;
}

static int can_redraw(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && terminal != NULL && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0;
}

struct display display_start(void)
{
	int live = can_redraw();

	return (struct display){.live = live, .look_every_ns = live ? 20000000 : 2000000};
}

static void describe(const struct job *job, const struct progress *now, char *line)
{
	char accuracy[16] = "-";

	if (now->accuracy >= 0)
		(void)snprintf(accuracy, sizeof(accuracy), "%.3f", now->accuracy);
	/* Fits 80 columns. The label of the last number is longer if there is room. */
	(void)snprintf(line, LINE_WIDTH, "epoch %.0f/%lld  %.0f examples/s  loss %.2f  accuracy %s  ", now->epoch,
	               (long long)job->settings.training.epochs, now->examples_per_second, now->loss, accuracy);
}

static void redraw(char *line, uint64_t live_versions)
{
	size_t columns = width(), length = strlen(line);

	(void)snprintf(line + length, LINE_WIDTH - length, "%s %llu", columns < length + 20 ? "live" : "live versions",
	               (unsigned long long)live_versions);
	if (strlen(line) >= columns)
		line[columns - 1] = '\0';
	(void)printf("\r%s\033[K", line);
}

void display_update(struct display *display, const struct job *job, const struct progress *progress)
{
	char line[LINE_WIDTH];
	int64_t apart = (job->settings.training.epochs + PLAIN_LINES - 1) / PLAIN_LINES;

	if (progress->steps == 0 || (!display->live && progress->epoch < (double)display->next_line))
		return;
	describe(job, progress, line);
	if (display->live) {
		redraw(line, progress->live_versions);
	} else {
		(void)printf("%slive versions %llu\n", line, (unsigned long long)progress->live_versions);
		while ((double)display->next_line <= progress->epoch)
			display->next_line += apart;
	}
	(void)fflush(stdout);
}

void display_end(const struct display *display)
{
	if (display->live)
		(void)fputs("\r\033[K", stdout);
}
