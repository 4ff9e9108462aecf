/*
 * begins.h - what a program does whose headers inline begin and end of a section that begins again on its
 * thread: form_3.h and later. The test programs include it after a form and uses.h.
 */
#ifndef OLDER_BEGINS_H
#define OLDER_BEGINS_H

#if defined(__GNUC__) && defined(__x86_64__) && defined(__LP64__) && (!defined(__PIC__) || defined(__PIE__))

#if defined(__OPTIMIZE__) && !defined(OLDER_THAN_ITS_LIBRARY)
/* Where membarrier is refused, nothing is announced, and each begin and end calls. */
static int begins_by_itself(void)
{
	return weir_reader_mine->fenced != 0;
}
#else
static int begins_by_itself(void)
{
	return 0;
}
#endif

/* With another record, or none, the library refuses, so what succeeds then is done by the inlined code. */
Test(older, a_section_begins_again_and_ends_without_a_call)
{
	weir_var *var = variable();
	weir_read_section section = begun();
	struct weir_reader elsewhere = {.lo = 0};
	void *record;

	end(&section);
	for (int64_t i = 0; i < 10; i++) {
		record = section.record;
		section.record = &elsewhere;
		cr_expect_eq(weir_read_section_begin(&section), begins_by_itself() ? WEIR_OK : WEIR_FAILED_PRECONDITION);
		section.record = record;
		if (!begins_by_itself())
			begin(&section);
		record = section.record;
		expect_value(weir_read_section_peek(&section, var), i);
		section.record = NULL;
		cr_expect_eq(weir_read_section_end(&section), begins_by_itself() ? WEIR_OK : WEIR_FAILED_PRECONDITION);
		section.record = record;
		if (!begins_by_itself())
			end(&section);
		cr_expect_null(weir_read_section_peek(&section, var), "it has ended");
		assign(var, i + 1);
		begin(&section); /* the write may have begun an era */
		end(&section);
	}
	destroy(var);
}

/* What the library does should it no longer keep what the inlined code knows. */
Test(older, a_section_calls_where_reserved_leads_to_another_0)
{
	weir_var *var = variable();
	weir_read_section section = begun();
	const uint64_t *reserved = section.reserved;

	for (int64_t i = 0; i < 10; i++) {
		section.reserved = &nothing;
		cr_expect_eq(weir_read_section_begin(&section), WEIR_FAILED_PRECONDITION);
		expect_value(weir_read_section_peek(&section, var), i);
		end(&section);
		cr_expect_eq(weir_reader_mine->lo, 0);
		cr_expect_eq(weir_reader_mine->open, 0);
		cr_expect_eq(*section.reserved, 0);
		begin(&section);
		cr_expect_eq(section.reserved, reserved);
		assign(var, i + 1);
	}
	end(&section);
	destroy(var);
}

/* `reserved` of a longer one leads to neither word of the thread, so all is left to the library. */
Test(older, a_section_of_a_later_header_calls_at_begin_and_end)
{
	struct longer longer = longer_section();
	weir_var *var = variable();
	weir_read_section section = begun();

	end(&section);
	for (int i = 0; i < 10; i++) {
		cr_assert_eq(weir_read_section_begin(&longer.section), WEIR_OK);
		cr_expect_eq(weir_reader_mine->open, 1);
		cr_expect_neq(longer.section.reserved, &weir_reader_mine->hi);
		expect_value(weir_read_section_peek(&longer.section, var), 0);
		end(&longer.section);
		cr_expect_eq(weir_reader_mine->open, 0);
		cr_expect_neq(longer.section.reserved, &weir_reader_mine->shut);
		cr_expect_eq(*longer.section.reserved, 0);
	}
	destroy(var);
}

#endif

#endif
