/*
 * json.h - the tokens of JSON in a safetensors header: marks, strings, whole numbers.
 */
#ifndef WEIRI_CHECKPOINT_JSON_H
#define WEIRI_CHECKPOINT_JSON_H

#include <stdbool.h>
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
 * Skips white space, and then `mark` if it is next. Returns true if it was next; otherwise false,
 * which is not a fault.
 */
bool weiri_json_take(struct weiri_json *json, char mark);
/* As weiri_json_take(), but it is a fault if `mark` is not next. */
bool weiri_json_need(struct weiri_json *json, char mark);
/*
 * Reads a string, decodes it in place, terminates it by a zero byte and sets *text to it. Returns
 * false if there is no string, or if it is not UTF-8, contains a zero byte, or contains half of a
 * surrogate pair.
 */
bool weiri_json_string(struct weiri_json *json, char **text);
/* Reads a whole number up to UINT64_MAX, without sign, fraction, exponent or leading zeros. */
bool weiri_json_number(struct weiri_json *json, uint64_t *number);
/* Returns true if only white space is left. Other text is a fault. */
bool weiri_json_at_end(struct weiri_json *json);
/* Returns the number of bytes that were read. */
size_t weiri_json_offset(const struct weiri_json *json);
/* Records a fault, if it is the first. Returns false. */
bool weiri_json_wrong(struct weiri_json *json, const char *wanted);

/*
 * Returns the length of the UTF-8 sequence at `text`; 0 if it is not valid: overlong, a surrogate,
 * above U+10FFFF, or extends past `end`.
 */
size_t weiri_utf8_length(const char *text, const char *end);

#endif
