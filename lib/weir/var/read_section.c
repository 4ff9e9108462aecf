/*
 * read_section.c - sections that a program opens, and reads in them.
 *
 * Algorithm. A read section is a section of reclaim/section.h that lasts from one call to another.
 * It reserves an interval of eras, and each read extends the interval to the current era if that has
 * moved. So a read needs no slot, and nothing that it returns is freed before the section ends: it
 * was not retired before the section's lo, and was born no later than its hi.
 *
 * The common case of a read is inlined in programs (weir/read_section.h). It is weiri_newest() of
 * hold.h for a version that has its stamp, while the era has not moved beyond the section's hi. It
 * reads hi, the head, the era, and the stamp, in this order. weiri_section_read() says why hi comes
 * first and the era comes after the head. The head is followed only after the era was compared. In
 * every other case the program calls weir_read_section_find(), which does all of it.
 *   The order of the first load is relaxed in weiri_section_read(), with a compiler barrier behind
 *   it. In the header it is acquire, which keeps the compiler from moving the next load before it.
 *
 * Binary interface. The inlined code knows: the fields `era` and `reserved` of the section; that the
 * first word of a variable leads to its newest version; that a version may be shown if the era is at most
 * *reserved and its stamp, at weir_version_stamp_at, is above 0 as a signed number; that a weir_read is
 * directly behind the stamp. (Programs of earlier days take the offset from `stamp_at`. The first ask whether
 * the stamp less 1 is below 2^64 - 2, which is the same for all stamps that there are, and use read_at.) The
 * offsets are given at run time, so versions may be laid out anew. If one of the other facts changes, so does the
 * size of the section. In a section of another size than today's, `reserved` leads to 0: its program was
 * compiled with the header of an earlier or a later release, whose code may rely on other facts, so it
 * calls the library for each read. The same is done for sections that have ended.
 *
 * Begin and end, inlined. A program for x86-64 that begins a section again on the thread that ended it does
 * so without a call (weir/read_section.h). Its code does what begin_in() and weir_read_section_end() do in
 * the usual case, in the same order and with the same orders of memory, so what section.h and announce.h
 * prove of a section holds for it. It knows the first fields of the record's second line (struct
 * weir_reader), and finds the record as the library does, by the thread-local variable weiri_record_mine,
 * of which weir_reader_mine is another name.
 *   `reserved` of an open section leads to hi of `record`. When it has ended, `reserved` leads to `shut` of
 *   the record, which is 0. So a section is open if `record` is not NULL and `reserved` does not lead to its
 *   `shut`. The inlined begin compares it with the address of `shut` in the record of the
 *   calling thread, and the inlined end with that of hi. So one comparison tells that the section was ended
 *   (begun) in this record, and that the thread has a record. All other sections go to the library, which
 *   checks them: fresh ones, those that are open, those of another record, so of another thread, and those
 *   of another size, in which `reserved` leads to neither word (R3). If another thread has adopted the
 *   record of a thread that has ended, it is that thread's, and so may the sections be that were ended
 *   in it: nothing in them tells of the earlier owner.
 *   What the orders are for. The begin stores lo before it compares `fenced`: a handler may fork, and the child takes
 * the announcement back, so that it would read in a section that is neither visible nor announced. It stores hi before
 * lo for I2 of section.h; no collector relies on that (collect.c). The release of hi is for slots that a handler has
 * claimed (section.h).
 *   The releases of lo, also where it is taken back, are for P1. A thread may announce an era in the middle of a section,
 * by a read with a handle. A collector that sees this announcement, and the lo of the next section, holds no longer
 * what the first section has shown before, so it must see the end of that section.
 *   The load of the era is seq_cst as in the library. Here relaxed would do: the thread has loaded the same era before,
 * with seq_cst, when it announced it, and I1 goes with that load; for another era, the library begins the section.
 *   The end lets `reserved` lead to `shut` before lo is 0, so that a handler is shown nothing by a section that reserves
 * nothing; it stores `open` before lo for R1, lo with release for P1 of section.h, and lo before it looks at `poke`,
 * for F1. The signal fences keep compilers from undoing this.
 *   The begin takes the usual case to be: no section is open on the thread (lo is 0), and the era is
 *   announced. It stores hi and lo and then compares, as weiri_section_write() and weiri_is_announced() do.
 *   If the era is not announced, nothing was read yet: lo becomes 0 again, and the library begins the
 *   section. It must find lo 0, or it would take the section for a nested one, which announces nothing.
 *   R2 says what the begin relies on and does not store.
 *   The end takes the usual case to be: this is the only open section (`read_sections` is 1), no section
 *   of the library is around it (`outer` is 0), and a light fence is none. `fenced` tells the last: it is not 0
 *   only if the owner has announced an era, and it does so only if this process uses membarrier.
 *   The kind of fence. It never changes from membarrier to fences of the readers while the process lives
 *   (asymmetric.c), so neither begin nor end can meet a collector of the other kind. Where membarrier was
 *   refused from the beginning, `fenced` stays 0, no era is 0, and the library begins and ends all sections,
 *   with fences. Where it is refused later, weiri_fence_heavy() says so: a collector then settles no
 *   announcement, so what is read without a fence stays covered by the announcement, and a writer that
 *   waits looks again by itself. A fork decides anew, and sets `fenced` to 0 in all records: the library
 *   ends the section that is open in the child, and begins the next. Suppose that a signal handler forks between
 *   the comparison of `fenced` and the store of lo in an end, membarrier is refused in the child, and it has
 *   a second thread at once: then the child's writer may miss one wake-up, and looks again.
 *   If a writer waits for memory, the program begins and ends an empty section by the library, whose end
 *   wakes it. Whatever that section reserves for a moment, the woken writer no longer finds reserved.
 *   Signal handlers. A handler may run between any two accesses, and leaves lo and `read_sections` as they
 *   were. lo is not 0 while `read_sections` is not, nor while `reserved` leads to hi, as in the library. A
 *   handler that finds lo set begins by the library, in a section; one that finds it 0 begins
 *   an outermost section, and may announce another era. That is seen because `fenced` is loaded after lo
 *   was stored (announce.h).
 *   A thread that is stopped between two of the stores, for good or for long. Before lo, it reserves nothing.
 *   From lo to the end's store of 0, it reserves what existed when it stopped, and no more, since hi grows
 *   only by its own reads. Behind that store, it reserves nothing; a writer that waits misses its wake-up,
 *   as it does if the thread is stopped in weiri_look_for_memory_waiters(), and looks again.
 *   Hosts (reclaim/host.h) have records of their own, which no thread's sections use.
 *   Machines. The orders are C11's, and no step relies on x86-64. The code is for x86-64 only because of
 *   the thread-local: on other machines compilers keep its address over calls, and a coroutine would begin in
 *   the record of the thread on which it ran before (record.h, weiri_record_get_anew()).
 *
 * Nesting. `depth` of a section is the number of sections that were open on the thread when it began,
 * itself included. It must be the number of open sections when it ends. A handler that interrupts
 * the count leaves it as it was.
 *
 * Invariants
 *   R1  while `read_sections` of a record is not 0, its owner is in a section: lo is not 0
 *   R2  of a section whose `reserved` leads to `shut` of its record, outer is 0, depth is 1, and era and the offsets are
 *       those that each section has
 *   R3  `reserved` of an open section of another size than this library's leads to 0
 * Linearization: the load of the head; if the version there was undecided, the read of its cell.
 * Progress: wait-free; see weiri_section_read().
 * Checked: stress/model/check_read_section.c, tests/test_read_section.c; programs of other releases:
 * tests/older/uses.h, scripts/check_releases.
 */
#include "var/read_section.h"

#include "base/assert.h"
#include "base/options.h"
#include "var/hold.h"

_Static_assert(offsetof(struct weir_var, head) == 0, "programs contain this");
_Static_assert(offsetof(weir_read_section, reserved) == 2 * sizeof(void *), "programs contain this");
_Static_assert(offsetof(weir_read_section, stamp_at) == 3 * sizeof(void *), "programs contain this");
_Static_assert(offsetof(weir_read_section, read_at) == 3 * sizeof(void *) + 4, "programs contain this");
_Static_assert(offsetof(struct weir_reader, lo) == offsetof(struct weiri_record, lo), "programs contain this");
_Static_assert(offsetof(struct weir_reader, hi) == offsetof(struct weiri_record, hi), "programs contain this");
_Static_assert(offsetof(struct weir_reader, fenced) == offsetof(struct weiri_record, fenced), "programs contain this");
_Static_assert(offsetof(struct weir_reader, shut) == offsetof(struct weiri_record, shut), "programs contain this");
_Static_assert(offsetof(struct weir_reader, open) == offsetof(struct weiri_record, read_sections),
               "programs contain this");
_Static_assert(offsetof(struct weir_reader, poke) == offsetof(struct weiri_record, poke), "programs contain this");
_Static_assert(offsetof(struct weiri_version, read) == offsetof(struct weiri_version, stamp) + 8,
               "programs contain this");

const size_t weir_version_stamp_at = offsetof(struct weiri_version, stamp);

/* The size of the section in the first release: no later release has a shorter one. */
enum { FIRST_SIZE = offsetof(weir_read_section, depth) + sizeof(uint64_t) };

/* Where `reserved` leads to if the inlined code shall ask the library. */
static const uint64_t no_era = 0;

/* The inlined code asks the library for all, which finds no record. */
static void forget(weir_read_section *section)
{
	section->record = NULL;
	section->reserved = &no_era; /* which finds no record */
}

static WEIRI_COLD enum weir_status fail_for_memory(weir_read_section *section)
{
	section->era = (const uint64_t *)(uintptr_t)&weiri_era;
	forget(section);
	return WEIR_RESOURCE_EXHAUSTED;
}

/* The thread is in a section of the library. */
static inline enum weir_status open_in(weir_read_section *section, struct weiri_record *record, uint64_t outer)
{
	/* [relaxed] Own field; reports read it. */
	uint32_t depth = weiri_load_relaxed(&record->read_sections) + 1;

	weiri_store_relaxed(&record->read_sections, depth);
	section->era = (const uint64_t *)(uintptr_t)&weiri_era;
	section->reserved = (const uint64_t *)(uintptr_t)&record->hi;
	section->stamp_at = offsetof(struct weiri_version, stamp);
	section->read_at = offsetof(struct weiri_version, read);
	section->record = record;
	section->outer = outer;
	section->depth = depth;
	return WEIR_OK;
}

static WEIRI_NOINLINE enum weir_status begin_in_another_era(weir_read_section *section, struct weiri_record *record,
                                                            uint64_t era)
{
	weiri_announce(record, era); /* F1 of reclaim/section.h */
	return open_in(section, record, 0);
}

static WEIRI_UNSEEN void assert_shut(const weir_read_section *section)
{
	WEIR_ASSERT2(R2, section->record == NULL || (section->outer == 0 && section->depth == 1 &&
	                                             section->era == (const uint64_t *)(uintptr_t)&weiri_era &&
	                                             section->stamp_at == offsetof(struct weiri_version, stamp) &&
	                                             section->read_at == offsetof(struct weiri_version, read)));
}

/* The section is not open. */
static inline enum weir_status begin_in(weir_read_section *section, struct weiri_record *record)
{
	uint64_t outer, era = weiri_section_reserve(record, &outer);

	WEIR_ASSERT_LOOK(assert_shut(section));
	return WEIRI_UNLIKELY(era != 0) ? begin_in_another_era(section, record, era) : open_in(section, record, outer);
}

/* The rule of base/options.h. */
static bool is_of_a_release(const weir_read_section *section)
{
	weir_read_section known;

	return section->struct_size >= FIRST_SIZE && section->struct_size % alignof(weir_read_section) == 0 &&
	       weiri_options_read("read section", section, &known, sizeof(known), NULL) == WEIR_OK;
}

/* The first call of a thread, or the section of another release. */
static WEIRI_COLD enum weir_status begin_rarely(weir_read_section *section)
{
	struct weiri_record *record;

	if (section == NULL || !is_of_a_release(section))
		return WEIR_INVALID_ARGUMENT;
	if (weiri_read_section_is_open(section))
		return WEIR_FAILED_PRECONDITION;
	record = weiri_record_get();
	if (record == NULL)
		return fail_for_memory(section);
	(void)begin_in(section, record); /* which cannot fail */
	if (section->struct_size != sizeof(*section))
		section->reserved = &no_era; /* which finds the version */
	return WEIR_OK;
}

/* As in read.c, what is rare ends in a call that returns for this function, which so saves no registers. */
enum weir_status weir_read_section_begin(weir_read_section *section)
{
	struct weiri_record *record = weiri_record_mine;

	if (WEIRI_UNLIKELY(record == NULL || section == NULL || section->struct_size != sizeof(*section)))
		return begin_rarely(section);
	if (WEIRI_UNLIKELY(weiri_read_section_is_open(section)))
		return WEIR_FAILED_PRECONDITION;
	return begin_in(section, record);
}

/* Called by the owner, with the section open. */
static WEIRI_UNSEEN void assert_in_a_section(const weir_read_section *section, const struct weiri_record *record)
{
	WEIR_ASSERT2(R1, weiri_peek(&record->read_sections) != 0 && weiri_peek(&record->lo) != 0);
	WEIR_ASSERT2(R3, section->struct_size == sizeof(*section) || *section->reserved == 0);
}

const weir_read *weir_read_section_find(const weir_read_section *section, weir_var *var)
{
	struct weiri_record *record = section != NULL ? weiri_read_section_record(section) : NULL;
	const struct weiri_version *version;

	if (record == NULL || var == NULL)
		return NULL;
	WEIR_ASSERT_LOOK(assert_in_a_section(section, record));
	version = weiri_newest(record, var);
	return version->shown != NULL ? &version->read : NULL;
}

/* Lets the inlined code begin the section again on this thread, R2, unless it is of another size. */
static inline void shut(weir_read_section *section, const struct weiri_record *record)
{
	if (WEIRI_UNLIKELY(section->struct_size != sizeof(*section))) {
		forget(section);
		return;
	}
	section->reserved = &record->shut;
	section->outer = 0;
	section->depth = 1;
}

enum weir_status weir_read_section_end(weir_read_section *section)
{
	struct weiri_record *record;
	uint64_t outer;
	uint32_t depth;

	if (section == NULL)
		return WEIR_INVALID_ARGUMENT;
	record = weiri_read_section_record(section);
	if (record == NULL)
		return WEIR_FAILED_PRECONDITION;
	depth = weiri_load_relaxed(&record->read_sections); /* [relaxed] own field, here and below */
	if (depth != section->depth)
		return WEIR_FAILED_PRECONDITION;
	WEIR_ASSERT_LOOK(assert_in_a_section(section, record));
	outer = section->outer;
	shut(section, record);
	weiri_store_relaxed(&record->read_sections, depth - 1);
	weiri_section_leave(record, outer);
	weiri_look_for_memory_waiters(record);
	return WEIR_OK;
}

/* Other names, for the inlined code: clang inlines no function that calls itself by its own name in the library. */
WEIR_API enum weir_status weir_read_section_begin_by_call(weir_read_section *section)
	__attribute__((alias("weir_read_section_begin")));
WEIR_API enum weir_status weir_read_section_end_by_call(weir_read_section *section)
	__attribute__((alias("weir_read_section_end")));
