/*
 * json.h - the tokens of JSON in a safetensors header: marks, strings, whole numbers.
 */
#ifndef WEIRI_CHECKPOINT_JSON_H
#define WEIRI_CHECKPOINT_JSON_H

#include <stddef.h>
#include <stdint.h>

/* Text that is read once, from start to end. After the first fault every call fails. */
struct weiri_json {
	char *start;
	char *at;
	char *end;
	const char *wanted; /* what was expected at the fault; NULL: no fault yet */
};

struct weiri_json weiri_json_over(char *text, size_t size);

/*
 * Skips white space, and `mark` if that is next. Returns 1 if it was, otherwise 0, which is not a
 * fault.
 */
int weiri_json_take(struct weiri_json *json, char mark);
/* The same, except that it is a fault if `mark` is not next. */
int weiri_json_need(struct weiri_json *json, char mark);
/*
 * Reads a string, decodes it in place and terminates it by a zero byte: *text. Returns 0 if there
 * is none, or it is not UTF-8, contains a zero byte, or half of a surrogate pair.
 */
int weiri_json_string(struct weiri_json *json, char **text);
/* Reads a whole number up to UINT64_MAX, without sign, fraction, exponent or leading zeros. */
int weiri_json_number(struct weiri_json *json, uint64_t *number);
/* Whether only white space is left. */
int weiri_json_at_end(struct weiri_json *json);
/* How far the text was read. */
size_t weiri_json_offset(const struct weiri_json *json);
/* Records the first fault; returns 0. */
int weiri_json_wrong(struct weiri_json *json, const char *wanted);

/*
 * The length of the UTF-8 sequence at `text`, which must not extend past `end`. Returns 0 if it is
 * invalid: overlong, a surrogate, above U+10FFFF.
 */
size_t weiri_utf8_length(const char *text, const char *end);

#endif
