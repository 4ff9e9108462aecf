/*
 * machine.c - describes the processor, caches, kernel, compiler and build.
 */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "crew.h"

/* Copies the first line of a file, or `otherwise`. */
static void first_line(const char *path, char *text, size_t size, const char *otherwise)
{
	FILE *in = fopen(path, "r");

	(void)snprintf(text, size, "%s", otherwise);
	if (in == NULL)
		return;
	if (fgets(text, (int)size, in) != NULL)
		text[strcspn(text, "\n")] = '\0';
	(void)fclose(in);
}

/* Copies the text after the colon of the first line that starts with `key`. */
static void value_of(const char *path, const char *key, char *text, size_t size)
{
	FILE *in = fopen(path, "r");
	char line[4096];

	(void)snprintf(text, size, "unknown");
	while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
		char *value = strchr(line, ':');

		if (strncmp(line, key, strlen(key)) != 0 || value == NULL)
			continue;
		line[strcspn(line, "\n")] = '\0';
		(void)snprintf(text, size, "%s", value + 1 + strspn(value + 1, " \t"));
		break;
	}
	if (in != NULL)
		(void)fclose(in);
}

static cJSON *caches(void)
{
	cJSON *list = cJSON_CreateArray();

	for (int i = 0; i < 8; i++) {
		static const char *const files[] = {"level", "type", "size", "shared_cpu_list"};
		cJSON *cache;
		char path[128], text[128];

		(void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level", i);
		if (access(path, R_OK) != 0)
			break;
		cache = cJSON_CreateObject();
		for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
			(void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, files[f]);
			first_line(path, text, sizeof(text), "unknown");
			(void)cJSON_AddStringToObject(cache, files[f], text);
		}
		(void)cJSON_AddItemToArray(list, cache);
	}
	return list;
}

/* The cost of one reading of the clock in nanoseconds; every latency includes it. */
static double clock_cost(void)
{
	enum { READINGS = 10000 };
	uint64_t start = bench_now_ns();

	for (int i = 0; i < READINGS; i++)
		(void)bench_now_ns();
	return (double)(bench_now_ns() - start) / READINGS;
}

/* The shortest time that the clock can distinguish from 0. */
static double clock_step(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t start = bench_now_ns(), now = start;

		while (now == start)
			now = bench_now_ns();
		if (now - start < least)
			least = now - start;
	}
	return (double)least;
}

static void add_file(cJSON *machine, const char *name, const char *path)
{
	char text[256];

	first_line(path, text, sizeof(text), "unknown");
	(void)cJSON_AddStringToObject(machine, name, text);
}

cJSON *bench_machine(void)
{
	static const char governor[] = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
	cJSON *machine = cJSON_CreateObject();
	char text[4096], when[32];
	struct utsname name;
	time_t now = time(NULL);
	struct tm parts;
	const char *commit = getenv("WEIR_BENCH_COMMIT");

	value_of("/proc/cpuinfo", "model name", text, sizeof(text));
	(void)cJSON_AddStringToObject(machine, "processor", text);
	value_of("/proc/cpuinfo", "cpu family", text, sizeof(text));
	(void)cJSON_AddStringToObject(machine, "family", text);
	value_of("/proc/cpuinfo", "model\t", text, sizeof(text));
	(void)cJSON_AddStringToObject(machine, "model", text);
	(void)cJSON_AddNumberToObject(machine, "processors", bench_processors());
	value_of("/proc/cpuinfo", "flags", text, sizeof(text));
	(void)cJSON_AddStringToObject(machine, "virtual", strstr(text, " hypervisor") != NULL ? "yes" : "not known to be");
	value_of("/proc/meminfo", "MemTotal", text, sizeof(text));
	(void)cJSON_AddStringToObject(machine, "memory", text);
	(void)cJSON_AddItemToObject(machine, "caches", caches());
	(void)uname(&name);
	(void)snprintf(text, sizeof(text), "%s %s %s", name.sysname, name.release, name.machine);
	(void)cJSON_AddStringToObject(machine, "kernel", text);
	first_line(governor, text, sizeof(text), "none (the machine or its host decides)");
	(void)cJSON_AddStringToObject(machine, "governor", text);
	add_file(machine, "load", "/proc/loadavg");
	add_file(machine, "huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
	(void)cJSON_AddNumberToObject(machine, "clock_ns", clock_cost());
	(void)cJSON_AddNumberToObject(machine, "clock_step_ns", clock_step());
	(void)cJSON_AddStringToObject(machine, "compiler", WEIR_BENCH_COMPILER);
	(void)cJSON_AddStringToObject(machine, "flags", WEIR_BENCH_FLAGS);
	(void)cJSON_AddStringToObject(machine, "version", WEIR_BENCH_VERSION);
	(void)cJSON_AddStringToObject(machine, "commit", commit != NULL && *commit != '\0' ? commit : "unknown");
	(void)strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &parts));
	(void)cJSON_AddStringToObject(machine, "date", when);
	return machine;
}

void bench_machine_line(char *text, unsigned size)
{
	char model[256];
	struct utsname name;

	value_of("/proc/cpuinfo", "model name", model, sizeof(model));
	(void)uname(&name);
	(void)snprintf(text, size, "%s, %u processors, %s %s, %s", model, bench_processors(), name.sysname, name.release,
	               WEIR_BENCH_COMPILER);
}

void bench_machine_warn(void)
{
	char text[256];

	first_line("/proc/loadavg", text, sizeof(text), "0");
	if (strtod(text, NULL) > 0.2 * bench_processors())
		(void)printf(
			"WARNING: other programs kept %.1f of the %u processors busy in the last minute; the figures suffer.\n",
			strtod(text, NULL), bench_processors());
	first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof(text), "performance");
	if (strcmp(text, "performance") != 0)
		(void)printf("WARNING: the frequency governor is \"%s\"; \"performance\" gives steadier figures.\n", text);
}
