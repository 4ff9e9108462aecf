/*
 * box.h - a version and its value in one block: see kind.h.
 */
#ifndef WEIRI_VAR_BOX_H
#define WEIRI_VAR_BOX_H

#include <string.h>

#include "base/fetch.h"
#include "reclaim/magazine.h"
#include "var/version.h"

struct weiri_box {
	struct weiri_version version; /* first */
	struct weiri_value value;
	/* Bytes of an inline value follow, or a held pointer. */
};

_Static_assert(sizeof(struct weiri_box) % 16 == 0, "inline values are aligned to 16");
_Static_assert((sizeof(struct weiri_box) + WEIR_VAR_MAX_INLINE + WEIRI_LINE - 1) / WEIRI_LINE <= UINT8_MAX,
               "box_lines counts the lines of a block");

/* Of the values of inline variables. */
extern const struct weiri_value_kind weiri_bytes_kind;

/* Returns a box with room for `size` bytes, and `more` bytes to count in the budget, or NULL. */
static WEIRI_ALWAYS_INLINE struct weiri_box *weiri_box_create(struct weiri_record *record, const weir_var *var,
                                                              size_t size, size_t more,
                                                              const struct weiri_value_kind *kind)
{
	size_t lines = (sizeof(struct weiri_box) + size + WEIRI_LINE - 1) / WEIRI_LINE;
	struct weiri_box *box = weiri_block_allocate(record, &var->allocator, lines * WEIRI_LINE);

	if (WEIRI_UNLIKELY(box == NULL))
		return NULL;
	weiri_value_init(&box->value, kind);
	weiri_version_init(record, &box->version, var, &box->value, lines * WEIRI_LINE + more);
	box->version.box_lines = (uint8_t)lines;
	return box;
}

/* weiri_version_of_bytes(), inlined. */
static WEIRI_ALWAYS_INLINE struct weiri_version *weiri_box_of_bytes(struct weiri_record *record, const weir_var *var,
                                                                    const void *bytes)
{
	struct weiri_box *box = weiri_box_create(record, var, var->size, 0, &weiri_bytes_kind);

	if (WEIRI_UNLIKELY(box == NULL))
		return NULL;
	box->version.shown = memcpy(box + 1, bytes, var->size);
	return &box->version;
}

static inline size_t weiri_box_size(const struct weiri_box *box)
{
	return (size_t)box->version.box_lines * WEIRI_LINE;
}

/* The first line of a box behind that of the stamp. */
enum { WEIRI_BOX_BYTES_FROM = offsetof(struct weiri_version, stamp) / WEIRI_LINE + 1 };

/*
 * Frees a box of whose value there is no reference. `record` is this thread's, or NULL. Readers may have the lines of the stamp
 * and of the bytes in their caches. The stamp's is taken from them when the count is cleared
 * (weiri_value_let_go()); here, the others. A collection frees many boxes, so these lines come side by side, and the
 * next writer finds them. It would wait for each.
 */
static inline void weiri_box_free(struct weiri_record *record, struct weiri_box *box)
{
	for (size_t line = WEIRI_BOX_BYTES_FROM; line < box->version.box_lines; line++)
		weiri_fetch_to_write((char *)box + line * WEIRI_LINE);
	weiri_block_release_by(record, &box->version.allocator, box, weiri_box_size(box));
}

/* For assertions: B1 holds. */
void weiri_box_assert_has_reference(const struct weiri_box *box);

/* Drops the reference that the version of a box has of the value in it. `record` is this thread's, or NULL. */
static inline void weiri_box_release(struct weiri_record *record, struct weiri_box *box)
{
	WEIR_ASSERT_LOOK(weiri_box_assert_has_reference(box));
	if (!weiri_value_let_go(&box->value))
		return;
	if (WEIRI_LIKELY(box->value.kind == &weiri_bytes_kind))
		weiri_box_free(record, box);
	else
		box->value.kind->end(&box->value);
}

#endif
