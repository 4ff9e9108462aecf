/*
 * test_checkpoint_disk.c - wherever a save is stopped, and whichever of its system calls fails, the
 * file is the old one or the new one.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weir/flow/checkpoint.h>

#include "checkpoint/save.h"
#include "checkpoint_kit.h"

/* -- stopped anywhere -------------------------------------------------------------------------- */

/* Which unsynced changes are lost when the machine stops. */
enum loss {
	NOTHING_LOST, /* only the process was killed */
	DATA_LOST,    /* the new names are on the disk, the data behind them is not */
	NAMES_LOST,   /* the data is on the disk, the new names are not */
	LOSSES
};

/*
 * A disk that ends its process before call number `stop`, and takes at most `most` bytes at a time.
 */
struct stopping {
	int calls;
	int stop; /* 0: never */
	size_t most;
	enum loss loss;
	const struct folder *folder;
	char temporary[PATH_ROOM];
	char old[PATH_ROOM]; /* the file that a lost rename brings back */
	off_t written, synced;
	int file;
	int renamed, folder_synced;
};

/* Changes the folder as a loss of power would. */
static void lose(const struct stopping *disk)
{
	if (disk->loss == DATA_LOST && disk->temporary[0] != '\0' && disk->synced < disk->written)
		(void)truncate(disk->renamed ? disk->folder->file : disk->temporary, disk->synced);
	if (disk->loss == NAMES_LOST && disk->renamed && !disk->folder_synced)
		(void)rename(disk->old, disk->folder->file);
}

static void step(struct stopping *disk)
{
	if (++disk->calls != disk->stop)
		return;
	lose(disk);
	_exit(0);
}

static int stopping_open(void *context, const char *path, int flags, mode_t mode)
{
	struct stopping *disk = context;
	int file;

	step(disk);
	file = open(path, flags, mode);
	if ((flags & O_CREAT) != 0) {
		disk->file = file;
		(void)snprintf(disk->temporary, sizeof(disk->temporary), "%s", path);
	}
	return file;
}

static ssize_t stopping_write(void *context, int file, const void *bytes, size_t count)
{
	struct stopping *disk = context;
	ssize_t written;

	step(disk);
	written = write(file, bytes, count < disk->most ? count : disk->most);
	disk->written += written;
	return written;
}

static int stopping_sync(void *context, int file)
{
	struct stopping *disk = context;

	step(disk);
	if (file == disk->file)
		disk->synced = disk->written;
	else
		disk->folder_synced = disk->renamed;
	return fsync(file);
}

static int stopping_close(void *context, int file)
{
	struct stopping *disk = context;

	step(disk);
	if (file == disk->file)
		disk->file = -1;
	return close(file);
}

static int stopping_rename(void *context, const char *from, const char *to)
{
	struct stopping *disk = context;

	step(disk);
	(void)snprintf(disk->old, sizeof(disk->old), "%s/old", disk->folder->path);
	(void)link(to, disk->old);
	disk->renamed = 1;
	return rename(from, to);
}

static int stopping_unlink(void *context, const char *path)
{
	step(context);
	return unlink(path);
}

static struct weiri_disk disk_of(struct stopping *disk)
{
	return (struct weiri_disk){stopping_open,   stopping_write,  stopping_sync, stopping_close,
	                           stopping_rename, stopping_unlink, disk};
}

static enum weir_status save_number(const struct folder *folder, int64_t value, const struct weiri_disk *disk,
                                    weir_error *error)
{
	static const char *const names[VARS] = {"0", "1", "2", "3", "4"};
	struct weir_checkpoint_tensor tensors[VARS];
	weir_tensor *tensor = number(value);
	enum weir_status status;

	for (size_t i = 0; i < VARS; i++)
		tensors[i] = (struct weir_checkpoint_tensor){names[i], tensor};
	status = weiri_checkpoint_save_on(disk, tensors, NULL, VARS, NULL, folder->file, error);
	weir_tensor_release(tensor);
	return status;
}

/*
 * Runs in a child: saves 2 and is stopped. The exit code is 0 if it was stopped, 1 if the save
 * succeeded, 2 if it failed.
 */
static int save_and_stop(const struct folder *folder, int stop, enum loss loss)
{
	struct stopping stopping = {.stop = stop, .most = 200, .loss = loss, .folder = folder, .file = -1};
	struct weiri_disk disk = disk_of(&stopping);
	pid_t child;
	int status;

	(void)fflush(NULL);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		int failed = save_number(folder, 2, &disk, NULL) != WEIR_OK;

		lose(&stopping);
		_exit(failed ? 2 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/*
 * A save is stopped before each of its system calls, with this kind of loss. The file is the old
 * one or the new one. Once the save has returned, it is the new one.
 */
static void check_every_stop(enum loss loss)
{
	struct folder folder = make_folder();
	int64_t found = 1;
	int ended = 0, stop;

	for (stop = 1; !ended; stop++) {
		int64_t before = found;

		cr_assert_eq(save_number(&folder, 1, &weiri_real_disk, NULL), WEIR_OK);
		ended = save_and_stop(&folder, stop, loss);
		cr_assert_neq(ended, 2, "a save failed");
		found = number_in_file(&folder);
		cr_expect(found == 1 || found == 2, "%d: %lld", stop, (long long)found);
		cr_expect_geq(found, before, "stopped before call %d: a completed save is undone", stop);
		(void)sweep(&folder);
	}
	cr_expect_eq(found, 2, "a save that has returned may be lost");
	/*
	 * The calls are: open, 2 or more writes of the header, one of each tensor, sync, close, rename;
	 * open, sync and close of the folder.
	 */
	cr_expect_geq(stop, 12, "only %d calls", stop);
	remove_folder(&folder);
}

Test(checkpoint_disk, killed_before_any_call_the_file_is_the_old_or_the_new)
{
	check_every_stop(NOTHING_LOST);
	expect_nothing_left();
}

Test(checkpoint_disk, without_power_and_without_the_data_not_synced_the_file_is_the_old_or_the_new)
{
	check_every_stop(DATA_LOST);
	expect_nothing_left();
}

Test(checkpoint_disk, without_power_and_without_the_names_not_synced_the_file_is_the_old_or_the_new)
{
	check_every_stop(NAMES_LOST);
	expect_nothing_left();
}

/* Runs in a child: saves ever larger numbers until it is killed. */
static _Noreturn void save_for_ever(const struct folder *folder)
{
	struct stopping slow = {.most = 30, .folder = folder, .file = -1};
	struct weiri_disk disk = disk_of(&slow);

	/* The link to the last old file has the name that the next link needs. */
	for (int64_t i = 1;; i++) {
		(void)unlink(slow.old);
		if (save_number(folder, i, &disk, NULL) != WEIR_OK)
			_exit(1);
	}
}

Test(checkpoint_disk, killed_at_a_random_moment_the_file_is_whole)
{
	enum { ROUNDS = 20 };
	struct folder folder = make_folder();
	uint32_t seed = 42;

	for (int round = 0; round < ROUNDS; round++) {
		int64_t reached = 0;
		pid_t child;
		int status;

		cr_assert_eq(save_number(&folder, 0, &weiri_real_disk, NULL), WEIR_OK);
		(void)fflush(NULL);
		child = fork();
		cr_assert_geq(child, 0);
		if (child == 0)
			save_for_ever(&folder);
		/*
		 * Waits for some saves and a part of another. Restores beside the saves find whole files,
		 * too.
		 */
		while (reached < 1 + round % 5) {
			int64_t found = number_in_file(&folder);

			cr_expect_geq(found, reached);
			reached = found;
			cr_assert_eq(waitpid(child, &status, WNOHANG), 0, "the child ended");
		}
		seed = seed * 1664525 + 1013904223;
		for (uint32_t spin = seed >> 14; spin > 0; spin--)
			weiri_pause();
		cr_assert_eq(kill(child, SIGKILL), 0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_geq(number_in_file(&folder), reached);
		(void)sweep(&folder);
	}
	remove_folder(&folder);
	expect_nothing_left();
}

/* -- a disk that fails ------------------------------------------------------------------------- */

/* Call number `fail` fails with `reason`. */
struct failing {
	int calls;
	int fail;
	int reason;
	int interrupted; /* a write was interrupted, once */
};

static int fails(struct failing *disk)
{
	if (++disk->calls != disk->fail)
		return 0;
	errno = disk->reason;
	return 1;
}

static int failing_open(void *context, const char *path, int flags, mode_t mode)
{
	return fails(context) ? -1 : open(path, flags, mode);
}

static ssize_t failing_write(void *context, int file, const void *bytes, size_t count)
{
	struct failing *disk = context;

	if (!disk->interrupted) {
		disk->interrupted = 1;
		errno = EINTR;
		return -1;
	}
	/*
	 * A full disk takes what still fits and then reports an error. Some disks take nothing and
	 * report no error.
	 */
	if (fails(context))
		return disk->reason == ENOSPC ? -1 : 0;
	return write(file, bytes, count < 100 ? count : 100);
}

static int failing_sync(void *context, int file)
{
	return fails(context) ? -1 : fsync(file);
}

static int failing_close(void *context, int file)
{
	int failed = fails(context);
	int reason = errno;

	(void)close(file);
	errno = reason;
	return failed ? -1 : 0;
}

static int failing_rename(void *context, const char *from, const char *to)
{
	return fails(context) ? -1 : rename(from, to);
}

static int failing_unlink(void *context, const char *path)
{
	(void)context;
	return unlink(path);
}

Test(checkpoint_disk, whatever_call_fails_the_old_file_stays_and_nothing_beside_it)
{
	struct folder folder = make_folder();
	int last_failed = 0, succeeded = 0, calls = 0;

	for (int fail = 1; !succeeded; fail++) {
		struct failing failing = {.fail = fail, .reason = ENOSPC};
		struct weiri_disk disk = {failing_open,   failing_write,  failing_sync, failing_close,
		                          failing_rename, failing_unlink, &failing};
		weir_error error = {WEIR_OK, ""};
		enum weir_status status;

		cr_assert_eq(save_number(&folder, 1, &weiri_real_disk, NULL), WEIR_OK);
		status = save_number(&folder, 2, &disk, &error);
		succeeded = failing.calls < fail;
		calls = fail;
		if (status == WEIR_OK) {
			cr_expect_eq(number_in_file(&folder), 2);
		} else {
			last_failed = fail;
			cr_expect_eq(status, WEIR_RESOURCE_EXHAUSTED, "%s", error.message);
			cr_expect(strstr(error.message, "No space left on device") != NULL, "%s", error.message);
			cr_expect_eq(number_in_file(&folder), strstr(error.message, "is in place") != NULL ? 2 : 1);
		}
		cr_expect_eq(sweep(&folder), 0, "call %d: a temporary file was left", fail);
	}
	/* The last call closes the folder. Only its failure does not fail the save. */
	cr_expect_eq(last_failed, calls - 2);
	remove_folder(&folder);
	expect_nothing_left();
}

Test(checkpoint_disk, a_write_that_takes_nothing_fails)
{
	struct folder folder = make_folder();
	struct failing failing = {.fail = 3, .reason = 0};
	struct weiri_disk disk = {failing_open,   failing_write,  failing_sync, failing_close,
	                          failing_rename, failing_unlink, &failing};
	weir_error error;

	cr_expect_eq(save_number(&folder, 2, &disk, &error), WEIR_INTERNAL);
	cr_expect(strstr(error.message, ": write: ") != NULL, "%s", error.message);
	remove_folder(&folder);
	expect_nothing_left();
}

/* write() may take as little as one byte. */
Test(checkpoint_disk, a_disk_that_takes_one_byte_at_a_time_gets_them_all)
{
	struct folder folder = make_folder();
	struct stopping slow = {.most = 1, .folder = &folder, .file = -1};
	struct weiri_disk disk = disk_of(&slow);
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(save_number(&folder, 7, &disk, &error), WEIR_OK, "%s", error.message);
	cr_expect_eq(number_in_file(&folder), 7);
	cr_expect_eq(unlink(slow.old), -1, "there was no file before");
	remove_folder(&folder);
	expect_nothing_left();
}

/* These are the files of an ended process that had the PID of this one. */
Test(checkpoint_disk, a_temporary_file_that_was_left_behind_is_not_touched)
{
	enum { STALE = 20 };
	struct folder folder = make_folder();
	char path[PATH_ROOM + 32];
	struct stat about;

	for (int i = 0; i < STALE; i++) {
		(void)snprintf(path, sizeof(path), "%s.%ld-%d.tmp", folder.file, (long)getpid(), i);
		write_file(path, "mine", 4);
	}
	cr_expect_eq(save_number(&folder, 7, &weiri_real_disk, NULL), WEIR_OK);
	cr_expect_eq(number_in_file(&folder), 7);
	for (int i = 0; i < STALE; i++) {
		(void)snprintf(path, sizeof(path), "%s.%ld-%d.tmp", folder.file, (long)getpid(), i);
		cr_expect(stat(path, &about) == 0 && about.st_size == 4, "%s is gone or changed", path);
	}
	cr_expect_eq(sweep(&folder), STALE);
	remove_folder(&folder);
	expect_nothing_left();
}

/* In a process of its own, for the limit stays. Returns what went wrong, or 0. */
static int save_beyond_the_limit(const struct folder *folder)
{
	const struct rlimit limit = {16, 16};
	weir_error error = {WEIR_OK, ""};
	sigset_t pending, mask;

	if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
		return 1;
	if (save_number(folder, 7, &weiri_real_disk, &error) != WEIR_RESOURCE_EXHAUSTED)
		return 2;
	if (strstr(error.message, ": write: ") == NULL || number_in_file(folder) != 3)
		return 3;
	if (sigpending(&pending) != 0 || sigismember(&pending, SIGXFSZ) != 0)
		return 4;
	return pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGXFSZ) == 0 ? 0 : 5;
}

Test(checkpoint_disk, a_limit_of_file_size_is_a_status_and_no_signal)
{
	struct folder folder = make_folder();
	int state = -1;
	pid_t child;

	cr_expect_eq(save_number(&folder, 3, &weiri_real_disk, NULL), WEIR_OK);
	child = fork();
	if (child == 0)
		_exit(save_beyond_the_limit(&folder));
	cr_assert_eq(waitpid(child, &state, 0), child);
	cr_expect(WIFEXITED(state), "ended by signal %d", WTERMSIG(state));
	cr_expect_eq(WEXITSTATUS(state), 0, "step %d", WEXITSTATUS(state));
	remove_folder(&folder);
	expect_nothing_left();
}

Test(checkpoint_disk, a_path_without_a_folder_is_in_the_current_one)
{
	struct folder folder = make_folder();
	weir_var *var = variable(3);
	struct weir_checkpoint_part part = {"x", var};
	char here[PATH_MAX];

	cr_assert_not_null(getcwd(here, sizeof(here)));
	cr_assert_eq(chdir(folder.path), 0);
	cr_expect_eq(weir_checkpoint_save(&part, 1, "saved.safetensors", NULL, NULL), WEIR_OK);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, "saved.safetensors", NULL, WEIR_NO_DEADLINE, NULL), WEIR_OK);
	cr_assert_eq(chdir(here), 0);
	cr_expect_eq(access(folder.file, R_OK), 0);
	/* A folder is not a file. A pipe without a writer must not make the call hang. */
	cr_expect_eq(weir_checkpoint_restore(&part, 1, folder.path, NULL, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	cr_assert_eq(unlink(folder.file), 0);
	cr_assert_eq(mkfifo(folder.file, 0600), 0);
	cr_expect_eq(weir_checkpoint_restore(&part, 1, folder.file, NULL, WEIR_NO_DEADLINE, NULL), WEIR_INVALID_ARGUMENT);
	weir_var_destroy(var, NULL);
	remove_folder(&folder);
	expect_nothing_left();
}
