/*
 * read_section_kit.h - for tests of read sections: sections that begin and end, and what they show.
 */
#ifndef READ_SECTION_KIT_H
#define READ_SECTION_KIT_H

#include <criterion/criterion.h>

#include <sched.h>
#include <string.h>
#include <weir/read_section.h>

#include "reclaim/record.h"
#include "reclaim/section.h"
#include "var/tensor_value.h"
#include "variables.h"

static inline void destroy(weir_var *var)
{
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	expect_nothing_left();
}

static inline weir_read_section begun(void)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	return section;
}

static inline void end(weir_read_section *section)
{
	cr_assert_eq(weir_read_section_end(section), WEIR_OK);
}

static inline void begin(weir_read_section *section)
{
	cr_assert_eq(weir_read_section_begin(section), WEIR_OK);
}

static inline void expect_open(uint32_t sections)
{
	const struct weiri_record *record = weiri_record_mine;

	cr_expect_eq(weiri_load_relaxed(&record->read_sections), sections);
	cr_expect_eq(weiri_load_relaxed(&record->lo) != 0, sections != 0);
	cr_expect(sections == 0 || weiri_load_relaxed(&record->lo) <= weiri_load_relaxed(&record->hi));
}

/* The inlined code and the function of the library show the same. */
static inline const weir_read *expect_peek(const weir_read_section *section, weir_var *var, int64_t value,
                                           uint64_t version)
{
	const weir_read *read = weir_read_section_peek(section, var);

	cr_assert_not_null(read);
	cr_expect_eq(value_of(read), value);
	cr_expect_eq(read->version, version);
	cr_expect(!weiri_hold_has_slot(read) && weiri_hold_value_of(read) == NULL, "it is not a handle");
	cr_expect_eq(weir_read_section_find(section, var), read);
	return read;
}

static inline void expect_snapshot(const weir_read_section *section, weir_var *one, weir_var *other, int64_t value)
{
	weir_var *vars[] = {one, other};
	const weir_read *reads[2];

	cr_assert_eq(weir_read_section_snapshot(section, vars, 2, reads, NULL), WEIR_OK);
	cr_expect_eq(value_of(reads[0]), value);
	cr_expect_eq(value_of(reads[1]), value);
}

static inline void expect_no_snapshot(const weir_read_section *section, weir_var *const vars[], enum weir_status status,
                                      const char *why)
{
	const weir_read *reads[] = {(const weir_read *)section, (const weir_read *)section};
	weir_error error = {WEIR_OK, ""};

	cr_expect_eq(weir_read_section_snapshot(section, vars, 2, reads, &error), status, "%s", why);
	cr_expect_not_null(strstr(error.message, why), "%s", error.message);
	cr_expect(reads[0] == NULL && reads[1] == NULL, "%s", why);
	cr_expect_eq(weir_read_section_snapshot(section, vars, 2, reads, NULL), status, "%s", why);
}

/* Waits until *state is at least `value`. */
static inline void reach(_Atomic(uint32_t) *state, uint32_t value)
{
	uint64_t until = weir_deadline_in(variables_patience_ns);

	while (weiri_load_acquire(state) < value) {
		(void)sched_yield();
		cr_assert_lt(weir_now_ns(), until);
	}
}

#endif
