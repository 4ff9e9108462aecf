/*
 * asymmetric.c - membarrier(2), or plain fences if the kernel refuses it.
 *
 * The kind of fence is decided once, by the first attempt to register, even if a later attempt
 * would have another result. If the kind could still change, a heavy side that relied on plain
 * fences might meet a light side that has already left its fence out.
 * A thread that reads a stale 0 in weiri_fence_asymmetric is safe: it runs a full fence, which is
 * at least as strong. A thread that reads 1 is safe too: the word is set to 1 only after the
 * registration has succeeded, and from then on every heavy side uses membarrier.
 */
#include "base/asymmetric.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { UNDECIDED, SYMMETRIC, ASYMMETRIC };

_Atomic(int) weiri_fence_asymmetric;
static _Atomic(int) decided; /* enum kind */
static _Atomic(uint64_t) membarriers;

static long membarrier(int command)
{
	int saved_errno = errno;
	long result = syscall(SYS_membarrier, command, 0, 0);

	errno = saved_errno;
	return result;
}

static bool register_membarrier(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

static enum kind find_out(void)
{
	return register_membarrier() ? ASYMMETRIC : SYMMETRIC;
}

static WEIRI_COLD enum kind decide(void)
{
	enum kind ours = find_out();
	int theirs = UNDECIDED;

	/*
	 * [relaxed] no data travels with it; a thread that loses the race uses the winner's decision.
	 */
	if (!weiri_cas_relaxed(&decided, &theirs, (int)ours))
		ours = (enum kind)theirs;
	if (ours == ASYMMETRIC)
		weiri_store_relaxed(&weiri_fence_asymmetric, 1);
	return ours;
}

static enum kind kind(void)
{
	/* [relaxed] it changes once, from UNDECIDED. */
	enum kind now = (enum kind)weiri_load_relaxed(&decided);

	return WEIRI_LIKELY(now != UNDECIDED) ? now : decide();
}

void weiri_fence_setup(void)
{
	(void)kind();
}

bool weiri_fence_heavy(void)
{
	if (kind() == ASYMMETRIC) {
		weiri_fetch_add_relaxed(&membarriers, 1u); /* [relaxed] a count */
		return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
	}
	weiri_fence_seq_cst();
	return true;
}

uint64_t weiri_fence_membarriers(void)
{
	return weiri_load_relaxed(&membarriers); /* [relaxed] a count */
}

void weiri_fence_after_fork(void)
{
	enum kind now = find_out();

	/* [relaxed] the only thread. */
	weiri_store_relaxed(&decided, (int)now);
	weiri_store_relaxed(&weiri_fence_asymmetric, now == ASYMMETRIC);
}
