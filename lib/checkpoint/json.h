/*
 * json.h - the tokens of JSON that a safetensors header is made of: marks, strings, whole numbers.
 */
#ifndef WEIRI_CHECKPOINT_JSON_H
#define WEIRI_CHECKPOINT_JSON_H

#include <stddef.h>
#include <stdint.h>

/* Text that is read once, from its start to its end. After the first fault every call fails. */
struct weiri_json {
	char *start;
	char *at;
	char *end;
	const char *wanted; /* what was to come where the text is wrong; NULL: nothing is wrong yet */
};

struct weiri_json weiri_json_over(char *text, size_t size);

/* Passes white space, and `mark` if that is next: 1, else 0, which is no fault. */
int weiri_json_take(struct weiri_json *json, char mark);
/* The same, and a fault when it is not next. */
int weiri_json_need(struct weiri_json *json, char mark);
/*
 * A string, decoded where it stands and ended by a zero byte: *text. 0: none, or one that is no UTF-8, holds a zero byte or half
 * of a surrogate pair.
 */
int weiri_json_string(struct weiri_json *json, char **text);
/* A whole number up to UINT64_MAX, without sign, fraction, exponent or leading zeros. */
int weiri_json_number(struct weiri_json *json, uint64_t *number);
/* Nothing but white space is left. */
int weiri_json_at_end(struct weiri_json *json);
/* Where the text was read up to. */
size_t weiri_json_offset(const struct weiri_json *json);
/* Notes the first fault; returns 0. */
int weiri_json_wrong(struct weiri_json *json, const char *wanted);

/* The bytes of the UTF-8 sequence at `text`, none of them past `end`; 0 when it is none: too long, a surrogate, above U+10FFFF. */
size_t weiri_utf8_length(const char *text, const char *end);

#endif
