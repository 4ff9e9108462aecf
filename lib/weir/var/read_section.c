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
 * Binary interface. The inlined code knows: the fields `era`, `reserved`, `stamp_at` and `read_at` of
 * the section; that the first word of a variable leads to its newest version; that a version may be
 * shown if the era is at most *reserved and its stamp is above 0 as a signed number; that a weir_read
 * is at read_at, directly behind the stamp. (A program of an earlier day asks whether the stamp less 1
 * is below 2^64 - 2, which is the same for all stamps that there are, and uses read_at.) The offsets are
 * given at run time, so versions may be laid out anew. If one of the other facts changes, so does the
 * size of the section. In a section of another size than today's, `reserved` leads to 0: its program was
 * compiled with the header of an earlier or a later release, whose code may rely on other facts, so it
 * calls the library for each read. The same is done for sections that have ended.
 *
 * Nesting. `depth` of a section is the number of sections that were open on the thread when it began,
 * itself included. It must be the number of open sections when it ends. A handler that interrupts
 * the count leaves it as it was.
 *
 * Invariants
 *   R1  while `read_sections` of a record is not 0, its owner is in a section: lo is not 0
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
_Static_assert(offsetof(struct weiri_version, read) == offsetof(struct weiri_version, stamp) + 8,
               "programs contain this");

/* The size of the section in the first release: no later release has a shorter one. */
enum { FIRST_SIZE = offsetof(weir_read_section, depth) + sizeof(uint64_t) };

/* Where `reserved` leads to if the inlined code shall ask the library. */
static const uint64_t no_era = 0;

static void shut(weir_read_section *section)
{
	section->record = NULL;
	section->reserved = &no_era; /* which finds no record */
}

static WEIRI_COLD enum weir_status fail_for_memory(weir_read_section *section)
{
	section->era = (const uint64_t *)(uintptr_t)&weiri_era;
	shut(section);
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

static inline enum weir_status begin_in(weir_read_section *section, struct weiri_record *record)
{
	uint64_t outer, era = weiri_section_reserve(record, &outer);

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
	enum weir_status status;

	if (section == NULL || !is_of_a_release(section))
		return WEIR_INVALID_ARGUMENT;
	if (section->record != NULL)
		return WEIR_FAILED_PRECONDITION;
	record = weiri_record_get();
	if (record == NULL)
		return fail_for_memory(section);
	status = begin_in(section, record);
	if (section->struct_size != sizeof(*section))
		section->reserved = &no_era; /* which finds the version */
	return status;
}

/* As in read.c, what is rare ends in a call that returns for this function, which so saves no registers. */
enum weir_status weir_read_section_begin(weir_read_section *section)
{
	struct weiri_record *record = weiri_record_mine;

	if (WEIRI_UNLIKELY(record == NULL || section == NULL || section->struct_size != sizeof(*section)))
		return begin_rarely(section);
	if (WEIRI_UNLIKELY(section->record != NULL))
		return WEIR_FAILED_PRECONDITION;
	return begin_in(section, record);
}

/* Called by the owner, with a section open. */
static WEIRI_UNSEEN void assert_in_a_section(const struct weiri_record *record)
{
	WEIR_ASSERT2(R1, weiri_peek(&record->read_sections) != 0 && weiri_peek(&record->lo) != 0);
}

const weir_read *weir_read_section_find(const weir_read_section *section, weir_var *var)
{
	struct weiri_record *record = section != NULL ? weiri_read_section_record(section) : NULL;
	const struct weiri_version *version;

	if (record == NULL || var == NULL)
		return NULL;
	WEIR_ASSERT_LOOK(assert_in_a_section(record));
	version = weiri_newest(record, var);
	return version->shown != NULL ? &version->read : NULL;
}

enum weir_status weir_read_section_end(weir_read_section *section)
{
	struct weiri_record *record;
	uint32_t depth;

	if (section == NULL)
		return WEIR_INVALID_ARGUMENT;
	record = weiri_read_section_record(section);
	if (record == NULL)
		return WEIR_FAILED_PRECONDITION;
	depth = weiri_load_relaxed(&record->read_sections); /* [relaxed] own field, here and below */
	if (depth != section->depth)
		return WEIR_FAILED_PRECONDITION;
	WEIR_ASSERT_LOOK(assert_in_a_section(record));
	shut(section);
	weiri_store_relaxed(&record->read_sections, depth - 1);
	weiri_section_leave(record, section->outer);
	weiri_look_for_memory_waiters(record);
	return WEIR_OK;
}
