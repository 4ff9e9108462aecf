/*
 * json.c - strict tokens of JSON (RFC 8259).
 */
#include "checkpoint/json.h"

#include <string.h>

enum {
	CONTROL = 0x20, /* characters below this one must be escaped */
	HEX_DIGITS = 4, /* of \uXXXX */
	HIGH = 0xd800,  /* the first half of a surrogate pair */
	LOW = 0xdc00,   /* the second */
	PAST_LOW = 0xe000,
	SUPPLEMENT = 0x10000 /* the first character that needs a pair */
};

struct weiri_json weiri_json_over(char *text, size_t size)
{
	return (struct weiri_json){text, text, text + size, NULL};
}

size_t weiri_json_offset(const struct weiri_json *json)
{
	return (size_t)(json->at - json->start);
}

bool weiri_json_wrong(struct weiri_json *json, const char *wanted)
{
	if (json->wanted == NULL)
		json->wanted = wanted;
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void pass_space(struct weiri_json *json)
{
	while (json->at < json->end && is_space(*json->at))
		json->at++;
}

bool weiri_json_take(struct weiri_json *json, char mark)
{
	if (json->wanted != NULL)
		return false;
	pass_space(json);
	if (json->at == json->end || *json->at != mark)
		return false;
	json->at++;
	return true;
}

static const char *name_of_mark(char mark)
{
	switch (mark) {
	case '{': return "'{'";
	case '}': return "',' or '}'";
	case '[': return "'['";
	case ']': return "',' or ']'";
	case ':': return "':'";
	case ',': return "','";
	default: return "a string";
	}
}

bool weiri_json_need(struct weiri_json *json, char mark)
{
	return weiri_json_take(json, mark) || weiri_json_wrong(json, name_of_mark(mark));
}

bool weiri_json_at_end(struct weiri_json *json)
{
	if (json->wanted != NULL)
		return false;
	pass_space(json);
	return json->at == json->end || weiri_json_wrong(json, "nothing more");
}

bool weiri_json_number(struct weiri_json *json, uint64_t *number)
{
	const char *first;
	uint64_t value = 0;

	if (json->wanted != NULL)
		return false;
	pass_space(json);
	for (first = json->at; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*json->at - '0'), &value))
			return weiri_json_wrong(json, "a number below 2^64");
	}
	if (json->at == first || (*first == '0' && json->at - first > 1))
		return weiri_json_wrong(json, "a whole number");
	/* The caller requires a mark next. So '.', 'e' and the like are a fault. */
	*number = value;
	return true;
}

/* -- strings ----------------------------------------------------------------------------------- */

size_t weiri_utf8_length(const char *text, const char *end)
{
	/* The smallest code point for each length in bytes. A smaller code point is overlong. */
	static const uint32_t least[] = {0, 0, 0x80, 0x800, SUPPLEMENT};
	enum { CONTINUES = 0x80, PAYLOAD = 0x3f, LAST = 0x10ffff };
	unsigned char lead = (unsigned char)*text;
	size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 0;
	uint32_t code;

	if (length <= 1)
		return length;
	if (lead >= 0xf8 || (size_t)(end - text) < length)
		return 0;
	code = lead & (0x7fU >> length);
	for (size_t i = 1; i < length; i++) {
		unsigned char byte = (unsigned char)text[i];

		if ((byte & 0xc0) != CONTINUES)
			return 0;
		code = code << 6 | (byte & PAYLOAD);
	}
	return code < least[length] || code > LAST || (code >= HIGH && code < PAST_LOW) ? 0 : length;
}

/* Writes a code point, which takes no more bytes than its escape did. Returns the end. */
static char *put_utf8(char *to, uint32_t code)
{
	if (code < 0x80) {
		*to++ = (char)code;
	} else if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
		*to++ = (char)(0x80 | (code & 0x3f));
	} else if (code < SUPPLEMENT) {
		*to++ = (char)(0xe0 | code >> 12);
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	} else {
		*to++ = (char)(0xf0 | code >> 18);
		*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
		*to++ = (char)(0x80 | (code & 0x3f));
	}
	return to;
}

static bool hex(struct weiri_json *json, uint32_t *code)
{
	*code = 0;
	for (int i = 0; i < HEX_DIGITS; i++, json->at++) {
		char digit = '\0';
		uint32_t value;

		if (json->at < json->end)
			digit = *json->at;
		if (digit >= '0' && digit <= '9')
			value = (uint32_t)(digit - '0');
		else if (digit >= 'a' && digit <= 'f')
			value = (uint32_t)(digit - 'a') + 10;
		else if (digit >= 'A' && digit <= 'F')
			value = (uint32_t)(digit - 'A') + 10;
		else
			return weiri_json_wrong(json, "four hexadecimal digits");
		*code = *code << 4 | value;
	}
	return true;
}

/* Reads what follows \u: one code unit, or two that form a pair. */
static bool code_point(struct weiri_json *json, uint32_t *code)
{
	uint32_t low;

	if (!hex(json, code))
		return false;
	if (*code == 0)
		return weiri_json_wrong(json, "a string without a zero byte");
	if (*code < HIGH || *code >= PAST_LOW)
		return true;
	if (*code >= LOW || json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u')
		return weiri_json_wrong(json, "both halves of a surrogate pair");
	json->at += 2;
	if (!hex(json, &low))
		return false;
	if (low < LOW || low >= PAST_LOW)
		return weiri_json_wrong(json, "both halves of a surrogate pair");
	*code = SUPPLEMENT + ((*code - HIGH) << 10 | (low - LOW));
	return true;
}

/* Reads what follows a backslash. */
static bool escape(struct weiri_json *json, char **to)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *letter;
	uint32_t code;

	if (json->at == json->end)
		return weiri_json_wrong(json, "the end of a string");
	if (*json->at == 'u') {
		json->at++;
		if (!code_point(json, &code))
			return false;
		*to = put_utf8(*to, code);
		return true;
	}
	letter = memchr(letters, *json->at, sizeof(letters) - 1);
	if (letter == NULL)
		return weiri_json_wrong(json, "an escape of JSON");
	*(*to)++ = meanings[letter - letters];
	json->at++;
	return true;
}

/* Copies the next character to the end of the decoded string. */
static bool character(struct weiri_json *json, char **to)
{
	size_t length;

	if (*json->at == '\\') {
		json->at++;
		return escape(json, to);
	}
	if ((unsigned char)*json->at < CONTROL)
		return weiri_json_wrong(json, "a string without control characters");
	length = weiri_utf8_length(json->at, json->end);
	if (length == 0)
		return weiri_json_wrong(json, "UTF-8");
	memmove(*to, json->at, length);
	*to += length;
	json->at += length;
	return true;
}

bool weiri_json_string(struct weiri_json *json, char **text)
{
	char *to;

	if (!weiri_json_need(json, '"'))
		return false;
	*text = to = json->at;
	while (json->at < json->end && *json->at != '"') {
		if (!character(json, &to))
			return false;
	}
	if (json->at == json->end)
		return weiri_json_wrong(json, "the end of a string");
	json->at++;
	/*
	 * Decoding never lengthens a string. So the terminator fits, at the latest in the place of the
	 * closing quotation mark.
	 */
	*to = '\0';
	return true;
}
