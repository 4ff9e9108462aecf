/*
 * cJSON.h - the few calls of cJSON that write a document, for weir-bench-static: Debian has cJSON as a
 * shared library only. The calls do what those of cJSON do; writer.c has them.
 */
#ifndef WEIR_BENCH_STATIC_CJSON_H
#define WEIR_BENCH_STATIC_CJSON_H

typedef struct cJSON cJSON;

cJSON *cJSON_CreateObject(void);
cJSON *cJSON_CreateArray(void);
cJSON *cJSON_CreateNumber(double number);
cJSON *cJSON_CreateString(const char *text);
cJSON *cJSON_CreateDoubleArray(const double *numbers, int count);
/* The list owns the item. Return 1. */
int cJSON_AddItemToArray(cJSON *array, cJSON *item);
int cJSON_AddItemToObject(cJSON *object, const char *name, cJSON *item);
cJSON *cJSON_AddArrayToObject(cJSON *object, const char *name);
cJSON *cJSON_AddObjectToObject(cJSON *object, const char *name);
cJSON *cJSON_AddBoolToObject(cJSON *object, const char *name, int truth);
cJSON *cJSON_AddNumberToObject(cJSON *object, const char *name, double number);
cJSON *cJSON_AddStringToObject(cJSON *object, const char *name, const char *text);
/* The caller frees the text with free(). */
char *cJSON_PrintUnformatted(const cJSON *item);
void cJSON_Delete(cJSON *item);

#endif
