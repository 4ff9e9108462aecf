/*
 * test_safetensors.c - headers of safetensors files: which are read, which are refused and why, and
 * which are written.
 */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/header.h"
#include "checkpoint/plain.h"

/* A copy that ends where its memory ends, so that a read past the end shows. */
static char *copy_of(const char *text, size_t size)
{
	char *copy = malloc(size != 0 ? size : 1);

	cr_assert_not_null(copy);
	memcpy(copy, text, size);
	return copy;
}

/* -- headers that are read --------------------------------------------------------------------- */

static void expect_tensor(const struct weiri_saved_header *header, const char *name, const char *dtype,
                          const char *shape, uint64_t begin, uint64_t end)
{
	size_t at = weiri_saved_header_find(header, name);
	struct weiri_saved_tensor tensor;
	char text[WEIR_SHAPE_TEXT_SIZE];

	cr_assert_lt(at, header->count, "no tensor %s", name);
	tensor = weiri_saved_header_at(header, at);
	cr_expect_str_eq(tensor.name, name);
	cr_expect_str_eq(tensor.dtype->name, dtype);
	cr_expect_str_eq(weir_shape_text(&tensor.shape, text, sizeof(text)), shape);
	cr_expect_eq(tensor.begin, begin);
	cr_expect_eq(tensor.end, end);
}

Test(safetensors, a_header_of_another_writer_is_read)
{
	static const char header_text[] =
		"{ \"b\" : {\"shape\":[2,3],\r\n\"data_offsets\" : [ 0 , 24 ] , \"dtype\":\"F32\"},\t"
		"\"__metadata__\":{\"format\":\"pt\",\"note\":\"\\\"\\n\"},"
		"\"half\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[24,26]},"
		"\"none\":{\"dtype\":\"I64\",\"shape\":[4,0],\"data_offsets\":[26,26]},"
		"\"a\\u00e9\\ud83d\\ude00\\/\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[26,27]}}   ";
	char *text = copy_of(header_text, sizeof(header_text) - 1);
	struct weiri_saved_header header;

	cr_assert_eq(weiri_saved_header_read(text, sizeof(header_text) - 1, 27, "f", &header, NULL), WEIR_OK);
	cr_expect_eq(header.count, 4);
	expect_tensor(&header, "b", "F32", "[2,3]", 0, 24);
	expect_tensor(&header, "half", "BF16", "[]", 24, 26);
	expect_tensor(&header, "none", "I64", "[4,0]", 26, 26);
	expect_tensor(&header, "a\xc3\xa9\xf0\x9f\x98\x80/", "U8", "[1]", 26, 27);
	cr_expect_eq(weiri_saved_header_find(&header, "__metadata__"), header.count);
	cr_expect_eq(weiri_saved_header_find(&header, "c"), header.count);
	free(text);
}

Test(safetensors, a_header_without_tensors_is_read)
{
	char *text = copy_of("{}", 2);
	struct weiri_saved_header header;

	cr_assert_eq(weiri_saved_header_read(text, 2, 0, "f", &header, NULL), WEIR_OK);
	cr_expect_eq(header.count, 0);
	cr_expect_eq(weiri_saved_header_find(&header, ""), 0);
	free(text);
}

/* -- headers that are refused ------------------------------------------------------------------ */

#define ONE(fields) "{\"a\":{" fields "}}"
#define TENSOR(name, dtype, shape, begin, end) \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"

struct refusal {
	const char *text;
	const char *message; /* a part of the message */
};

static const struct refusal refusals[] = {
	/* violations of the grammar */
	{"", "expected '{' at byte 0"},
	{" {}", "expected '{' at byte 0"},
	{"[]", "expected '{' at byte 0"},
	{"{", "expected a string at byte 1"},
	{"{}x", "expected nothing more at byte 2"},
	{"{\"a\"", "expected ':' at byte 4"},
	{"{\"a", "expected the end of a string"},
	{"{\"a\\", "expected the end of a string"},
	{"{\"a\":7}", "tensor \"a\": expected '{' at byte 5"},
	{"{\"a\":{}}", "tensor \"a\": expected a string"},
	{"{" TENSOR("a", "U8", "", "0", "1") ",}", "expected a string"},
	{"{" TENSOR("a", "U8", "", "0", "1") " " TENSOR("b", "U8", "", "0", "1") "}", "expected ',' or '}'"},
	{ONE("\"dtype\":\"U8\",\"shape\":[1]"), "expected a dtype, a shape and data_offsets before"},
	{ONE("\"dtype\":\"U8\",\"dtype\":\"U8\""), "expected each field once"},
	{ONE("\"dtype\":\"U8\",\"stride\":[1]"), "expected \"dtype\", \"shape\" or \"data_offsets\""},
	{ONE("\"dtype\":\"F4\""), "expected a dtype of whole bytes that is known"},
	{ONE("\"dtype\":8"), "expected a string"},
	{ONE("\"shape\":7"), "expected '['"},
	{ONE("\"shape\":[1,]"), "expected a whole number"},
	{ONE("\"shape\":[-1]"), "expected a whole number"},
	{ONE("\"shape\":[01]"), "expected a whole number"},
	{ONE("\"shape\":[1.0]"), "expected ',' or ']'"},
	{ONE("\"shape\":[1e3]"), "expected ',' or ']'"},
	{ONE("\"shape\":[18446744073709551616]"), "expected a number below 2^64"},
	{ONE("\"shape\":[9223372036854775808]"), "expected a dim below 2^63"},
	{ONE("\"shape\":[1,1,1,1,1,1,1,1,1]"), "expected at most 8 dims"},
	{ONE("\"data_offsets\":[0]"), "expected ','"},
	{ONE("\"data_offsets\":[0,1,2]"), "expected ',' or ']'"},
	/* strings */
	{"{\"a\nb\":{", "expected a string without control characters"},
	{"{\"\\x41\":{", "expected an escape of JSON"},
	{"{\"\\u12g4\":{", "expected four hexadecimal digits"},
	{"{\"\\u12", "expected four hexadecimal digits"},
	{"{\"\\u0000\":{", "expected a string without a zero byte"},
	{"{\"\\ud800\":{", "expected both halves of a surrogate pair"},
	{"{\"\\ud800\\u0041\":{", "expected both halves of a surrogate pair"},
	{"{\"\\udc00\":{", "expected both halves of a surrogate pair"},
	{"{\"\xff\":{", "expected UTF-8"},
	{"{\"\xc3", "expected UTF-8"},
	{"{\"\xc0\x80\":{", "expected UTF-8"},
	{"{\"\xed\xa0\x80\":{", "expected UTF-8"},
	{"{\"\xf4\x90\x80\x80\":{", "expected UTF-8"},
	/* metadata */
	{"{\"__metadata__\":{\"a\":1}}", "expected a string"},
	{"{\"__metadata__\":{\"a\":{}}}", "expected a string"},
	{"{\"__metadata__\":{},\"__metadata__\":{}}", "expected one \"__metadata__\""},
	/* sizes and places, with 8 bytes of data */
	{"{" TENSOR("a", "U8", "7", "0", "8") "}", "U8 [7] takes 7 bytes, its offsets are [0,8]"},
	{"{" TENSOR("a", "U8", "7", "8", "1") "}", "U8 [7] takes 7 bytes, its offsets are [8,1]"},
	{"{" TENSOR("a", "F64", "2305843009213693952", "0", "0") "}", "too many bytes"},
	{"{" TENSOR("a", "U8", "4294967296,4294967296", "0", "0") "}", "too many bytes"},
	{"{" TENSOR("a", "U8", "7", "0", "7") "}", "8 bytes of data, its tensors take 7"},
	{"{" TENSOR("a", "U8", "9", "0", "9") "}", "8 bytes of data, its tensors take 9"},
	{"{" TENSOR("a", "U8", "", "9", "10") "}", "\"a\" begins at byte 9 of the data, of which there are 8"},
	{"{" TENSOR("a", "U8", "", "18446744073709551614", "18446744073709551615") "}", "the data, of which there are 8"},
	{"{" TENSOR("a", "U8", "7", "1", "8") "}", "\"a\" begins at byte 1 of the data, expected 0: a gap"},
	{"{" TENSOR("a", "U8", "4", "0", "4") "," TENSOR("b", "U8", "5", "3", "8") "}", "expected 4: two tensors overlap"},
	{"{" TENSOR("a", "U8", "4", "0", "4") "," TENSOR("b", "U8", "4", "0", "4") "}", "expected 4: two tensors overlap"},
	{"{" TENSOR("a", "U8", "4", "0", "4") "," TENSOR("a", "U8", "4", "4", "8") "}", "two tensors are called \"a\""},
	{"{" TENSOR("a", "U8", "8", "0", "8") "," TENSOR("\\u0061", "U8", "0", "8", "8") "}",
     "two tensors are called \"a\""},
};

Test(safetensors, each_fault_is_refused_and_named)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		size_t size = strlen(refusals[i].text);
		char *text = copy_of(refusals[i].text, size);
		struct weiri_saved_header header;
		weir_error error = {WEIR_OK, ""};

		cr_expect_eq(weiri_saved_header_read(text, size, 8, "/f", &header, &error), WEIR_DATA_LOSS, "%s",
		             refusals[i].text);
		cr_expect_eq(error.code, WEIR_DATA_LOSS);
		cr_expect(strstr(error.message, refusals[i].message) != NULL, "%s: \"%s\" does not say \"%s\"",
		          refusals[i].text, error.message, refusals[i].message);
		cr_expect(strstr(error.message, "checkpoint /f: ") != NULL, "%s", error.message);
		free(text);
	}
}

/*
 * Every prefix of a good header, and every change of one byte of it, is read or refused, and never
 * read past its end. (AddressSanitizer checks that.)
 */
Test(safetensors, a_cut_or_changed_header_is_harmless)
{
	static const char good[] = "{" TENSOR("a\\u00e9", "U8", "2,2", "0", "4") "," TENSOR("b", "F32", "", "4", "8") "}";
	size_t size = sizeof(good) - 1;
	struct weiri_saved_header header;

	for (size_t cut = 0; cut < size; cut++) {
		char *text = copy_of(good, cut);

		cr_expect_eq(weiri_saved_header_read(text, cut, 8, "f", &header, NULL), WEIR_DATA_LOSS, "%zu", cut);
		free(text);
	}
	for (size_t at = 0; at < size * 255; at++) {
		char *text = copy_of(good, size);

		text[at / 255] = (char)(text[at / 255] + (char)(at % 255 + 1));
		(void)weiri_saved_header_read(text, size, 8, "f", &header, NULL);
		free(text);
	}
}

/* -- the table, in the memory of the text ------------------------------------------------------ */

enum { MANY = 5000, LONGEST = 128 };

/* Tensor number i of MANY, in mixed order: its name, and the text that describes it. */
struct sample {
	char name[32];
	uint64_t dims[WEIR_MAX_RANK];
	uint32_t rank;
	uint64_t begin;
	uint64_t end;
};

static size_t append_sample(char *text, const struct sample *sample)
{
	int at = sprintf(text, "\"%s\":{\"dtype\":\"U8\",\"shape\":[", sample->name);

	for (uint32_t i = 0; i < sample->rank; i++)
		at += sprintf(text + at, "%s%llu", i != 0 ? "," : "", (unsigned long long)sample->dims[i]);
	return (size_t)(at + sprintf(text + at, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)sample->begin,
	                             (unsigned long long)sample->end));
}

/* The header of these samples, as short as possible, in memory that ends with it. */
static char *text_of(const struct sample samples[], size_t count, size_t *size)
{
	char *long_text = malloc(count * 2 * LONGEST + 2), *text;
	size_t at = 0;

	cr_assert_not_null(long_text);
	long_text[at++] = '{';
	for (size_t i = 0; i < count; i++) {
		if (i != 0)
			long_text[at++] = ',';
		at += append_sample(long_text + at, &samples[i]);
	}
	long_text[at++] = '}';
	text = copy_of(long_text, at);
	free(long_text);
	*size = at;
	return text;
}

static void expect_samples(const struct weiri_saved_header *header, const struct sample samples[], size_t count)
{
	cr_assert_eq(header->count, count);
	for (size_t i = 0; i < count; i++) {
		size_t at = weiri_saved_header_find(header, samples[i].name);
		struct weiri_saved_tensor tensor;

		cr_assert_lt(at, count, "no tensor %s", samples[i].name);
		tensor = weiri_saved_header_at(header, at);
		cr_assert_str_eq(tensor.name, samples[i].name);
		cr_assert_str_eq(tensor.dtype->name, "U8");
		cr_assert_eq(tensor.shape.rank, samples[i].rank);
		cr_assert_arr_eq(tensor.shape.dims, samples[i].dims, samples[i].rank * sizeof(samples[i].dims[0]));
		cr_assert_eq(tensor.begin, samples[i].begin);
		cr_assert_eq(tensor.end, samples[i].end);
	}
}

/*
 * The shortest text of a tensor leaves the least room for its record and its key. AddressSanitizer
 * sees a table that is too long.
 */
Test(safetensors, the_table_of_the_shortest_tensors_has_room_in_their_text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct sample samples[sizeof(letters)] = {{.name = ""}};

	/*
	 * Tensors of one element with the shortest numbers. All but the first ten of these numbers have
	 * two digits.
	 */
	for (size_t i = 0; i < sizeof(letters); i++)
		samples[i] = (struct sample){{i != 0 ? letters[i - 1] : '\0', '\0'}, {0}, 0, i, i + 1};
	for (size_t count = 0; count <= sizeof(letters); count++) {
		struct weiri_saved_header header;
		size_t size;
		char *text = text_of(samples, count, &size);

		cr_assert_eq(weiri_saved_header_read(text, size, count, "f", &header, NULL), WEIR_OK);
		expect_samples(&header, samples, count);
		free(text);
	}
}

/*
 * Shapes of each rank and numbers of each length. The tensors lie in another order than the text
 * names them.
 */
Test(safetensors, a_table_of_many_tensors_holds_what_the_text_said)
{
	struct sample *samples = calloc(MANY, sizeof(*samples));
	struct weiri_saved_header header;
	uint64_t at = 0;
	size_t size;
	char *text;

	cr_assert_not_null(samples);
	for (size_t i = 0; i < MANY; i++) {
		/* 1237 and MANY have no common divisor, so each number comes once. */
		struct sample *sample = &samples[i * 1237 % MANY];
		uint64_t bytes = 1;

		(void)snprintf(sample->name, sizeof(sample->name), "layers.%zu.weight", i);
		sample->rank = (uint32_t)(i % (WEIR_MAX_RANK + 1));
		for (uint32_t d = 0; d < sample->rank; d++) {
			sample->dims[d] = d == 0 ? UINT64_C(1) << i % 40 : (i + d) % 5;
			bytes *= sample->dims[d];
		}
		sample->begin = at;
		sample->end = at += bytes;
	}
	text = text_of(samples, MANY, &size);
	cr_assert_eq(weiri_saved_header_read(text, size, at, "f", &header, NULL), WEIR_OK);
	expect_samples(&header, samples, MANY);
	free(text);
	free(samples);
}

Test(safetensors, the_largest_numbers_are_kept)
{
	struct sample sample = {"a", {INT64_MAX, INT64_MAX, 0}, 3, 0, 0};
	struct weiri_saved_header header;
	size_t size;
	char *text = text_of(&sample, 1, &size);

	cr_assert_eq(weiri_saved_header_read(text, size, 0, "f", &header, NULL), WEIR_OK);
	expect_samples(&header, &sample, 1);
	free(text);
	sample = (struct sample){"a", {INT64_MAX}, 1, 0, INT64_MAX};
	text = text_of(&sample, 1, &size);
	cr_assert_eq(weiri_saved_header_read(text, size, INT64_MAX, "f", &header, NULL), WEIR_OK);
	expect_samples(&header, &sample, 1);
	free(text);
}

/*
 * These names have the same 64-bit FNV-1a hash. The look-up tells names with one hash apart.
 */
Test(safetensors, names_of_one_hash_are_told_apart)
{
	static const char one[] = "8yn0iYCKYHlIj4-BwPqk", other[] = "GReLUrM4wMqfg9yzV3KQ";
	struct sample samples[] = {{.name = "", .rank = 1}, {.name = "", .rank = 1}}; /* no elements */

	(void)strcpy(samples[0].name, one);
	(void)strcpy(samples[1].name, other);
	for (size_t count = 1; count <= 2; count++) {
		struct weiri_saved_header header;
		size_t size;
		char *text = text_of(samples, count, &size);

		cr_assert_eq(weiri_saved_header_read(text, size, 0, "f", &header, NULL), WEIR_OK);
		expect_samples(&header, samples, count);
		cr_expect_eq(weiri_saved_header_find(&header, other) == header.count, count == 1);
		free(text);
	}
}

/* -- headers that are written ------------------------------------------------------------------ */

Test(safetensors, a_header_is_written_in_whole_lines_of_64_bytes_and_read_again)
{
	struct weiri_saved_tensor tensors[] = {
		{"w", weiri_saved_dtype_of(WEIR_F32), {2, {3, 4}}, 0, 48},
		{"a \"quoted\"\\\n\x01 n\xc3\xa4me", weiri_saved_dtype_of(WEIR_U8), {0, {0}}, 48, 49},
	};
	size_t size = weiri_saved_header_write(tensors, 2, NULL, 0);
	uint64_t length = 0;
	char *text = malloc(size);
	struct weiri_saved_header header;

	cr_assert_not_null(text);
	cr_expect_eq(size % 64, 0);
	cr_expect_eq(weiri_saved_header_write(tensors, 2, text, size), size);
	for (size_t i = 0; i < 8; i++)
		length |= (uint64_t)(unsigned char)text[i] << (8 * i);
	cr_expect_eq(length, size - 8);
	cr_assert_eq(weiri_saved_header_read(text + 8, size - 8, 49, "f", &header, NULL), WEIR_OK);
	expect_tensor(&header, tensors[0].name, "F32", "[3,4]", 0, 48);
	expect_tensor(&header, tensors[1].name, "U8", "[]", 48, 49);
	free(text);
}

Test(safetensors, what_may_be_a_name)
{
	cr_expect(weiri_saved_name_ok("layer/0 \"w\"\n"));
	cr_expect(weiri_saved_name_ok("\xe2\x82\xac"));
	cr_expect_not(weiri_saved_name_ok(""));
	cr_expect_not(weiri_saved_name_ok("__metadata__"));
	cr_expect_not(weiri_saved_name_ok("\xe2\x82"));
	cr_expect_not(weiri_saved_name_ok("\x80"));
}

Test(safetensors, messages_show_names_and_paths_cut_and_printable)
{
	char name[200];

	cr_expect_str_eq(weiri_plain_name("a\tb\x7f\xc3\xa9").text, "a?b?\xc3\xa9");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	cr_expect_eq(strlen(weiri_plain_name(name).text), 79);
	cr_expect_str_eq(weiri_plain_name(name).text + 75, "x...");
	name[sizeof(name) - 2] = 'z';
	cr_expect_eq(strlen(weiri_plain_path(name).text), 79);
	cr_expect_eq(strncmp(weiri_plain_path(name).text, "...x", 4), 0);
	cr_expect_eq(weiri_plain_path(name).text[78], 'z');
}
