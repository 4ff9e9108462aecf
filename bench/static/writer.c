/*
 * writer.c - writes a JSON document, for weir-bench-static (cjson/cJSON.h). Without memory it ends the
 * program: what was measured would be lost in any case.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { OBJECT, ARRAY, NUMBER, STRING, TRUTH };

struct cJSON {
	enum kind kind;
	double number;
	char *name, *text;
	cJSON *first, *last, *next;
};

static void *own(void *memory)
{
	if (memory == NULL)
		exit(3);
	return memory;
}

static cJSON *create(enum kind kind)
{
	cJSON *item = own(calloc(1, sizeof(*item)));

	item->kind = kind;
	return item;
}

cJSON *cJSON_CreateObject(void)
{
	return create(OBJECT);
}

cJSON *cJSON_CreateArray(void)
{
	return create(ARRAY);
}

cJSON *cJSON_CreateNumber(double number)
{
	cJSON *item = create(NUMBER);

	item->number = number;
	return item;
}

cJSON *cJSON_CreateString(const char *text)
{
	cJSON *item = create(STRING);

	item->text = own(strdup(text));
	return item;
}

int cJSON_AddItemToArray(cJSON *array, cJSON *item)
{
	if (array->last != NULL)
		array->last->next = item;
	else
		array->first = item;
	array->last = item;
	return 1;
}

cJSON *cJSON_CreateDoubleArray(const double *numbers, int count)
{
	cJSON *array = create(ARRAY);

	for (int i = 0; i < count; i++)
		(void)cJSON_AddItemToArray(array, cJSON_CreateNumber(numbers[i]));
	return array;
}

int cJSON_AddItemToObject(cJSON *object, const char *name, cJSON *item)
{
	item->name = own(strdup(name));
	return cJSON_AddItemToArray(object, item);
}

static cJSON *add(cJSON *object, const char *name, cJSON *item)
{
	(void)cJSON_AddItemToObject(object, name, item);
	return item;
}

cJSON *cJSON_AddArrayToObject(cJSON *object, const char *name)
{
	return add(object, name, create(ARRAY));
}

cJSON *cJSON_AddObjectToObject(cJSON *object, const char *name)
{
	return add(object, name, create(OBJECT));
}

cJSON *cJSON_AddBoolToObject(cJSON *object, const char *name, int truth)
{
	cJSON *item = create(TRUTH);

	item->number = truth;
	return add(object, name, item);
}

cJSON *cJSON_AddNumberToObject(cJSON *object, const char *name, double number)
{
	return add(object, name, cJSON_CreateNumber(number));
}

cJSON *cJSON_AddStringToObject(cJSON *object, const char *name, const char *text)
{
	return add(object, name, cJSON_CreateString(text));
}

static void print_text(FILE *out, const char *text)
{
	(void)fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			(void)fprintf(out, "\\%c", *c);
		else if (*c < ' ')
			(void)fprintf(out, "\\u%04x", (unsigned)*c);
		else
			(void)fputc(*c, out);
	}
	(void)fputc('"', out);
}

static void print_number(FILE *out, double number)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%.15g", number);
	if (!isfinite(number))
		(void)fputs("null", out);
	else
		(void)fprintf(out, strtod(text, NULL) == number ? "%.15g" : "%.17g", number);
}

static void print(FILE *out, const cJSON *item)
{
	switch (item->kind) {
	case NUMBER: print_number(out, item->number); return;
	case STRING: print_text(out, item->text); return;
	case TRUTH: (void)fputs(item->number != 0 ? "true" : "false", out); return;
	default: break;
	}
	(void)fputc(item->kind == OBJECT ? '{' : '[', out);
	for (const cJSON *child = item->first; child != NULL; child = child->next) {
		if (child != item->first)
			(void)fputc(',', out);
		if (item->kind == OBJECT) {
			print_text(out, child->name);
			(void)fputc(':', out);
		}
		print(out, child); /* NOLINT(misc-no-recursion): as deep as the document, which is five */
	}
	(void)fputc(item->kind == OBJECT ? '}' : ']', out);
}

char *cJSON_PrintUnformatted(const cJSON *item)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = own(open_memstream(&text, &size));

	print(out, item);
	if (fclose(out) != 0)
		exit(3);
	return text;
}

void cJSON_Delete(cJSON *item)
{
	while (item != NULL) {
		cJSON *next = item->next;

		cJSON_Delete(item->first); /* NOLINT(misc-no-recursion): likewise */
		free(item->name);
		free(item->text);
		free(item);
		item = next;
	}
}
