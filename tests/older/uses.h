/*
 * uses.h - what a program of older headers does with the library of today. It includes no header of
 * the library: tests/test_older_1.c to _4.c have chosen a form, and calls.h says what forms are.
 *
 * scripts/check_releases also runs these tests with a later library, in which the section and other
 * structs have grown; OLDER_THAN_ITS_LIBRARY is defined there.
 */
#ifndef OLDER_USES_H
#define OLDER_USES_H

#include <criterion/criterion.h>

#include <pthread.h>

#if defined(__GNUC__) && UINTPTR_MAX > UINT32_MAX && !defined(OLDER_THAN_ITS_LIBRARY)
enum { PEEKS_BY_ITSELF = 1 };
#else
enum { PEEKS_BY_ITSELF = 0 };
#endif

enum { WRITES = 3000, READS = 16 };

static const uint64_t nothing = 0;

static weir_tensor *number(int64_t value)
{
	weir_shape scalar = {.rank = 0};
	weir_tensor *tensor = NULL;

	cr_assert_eq(weir_tensor_copy_of(WEIR_I64, &scalar, &value, NULL, &tensor), WEIR_OK);
	return tensor;
}

static weir_var *empty_variable(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_I64};
	weir_var *var = NULL;

	cr_assert_eq(weir_var_create(NULL, &options, &var, NULL), WEIR_OK);
	return var;
}

static void assign(weir_var *var, int64_t value)
{
	weir_tensor *tensor = number(value);

	cr_assert_eq(weir_var_assign(var, tensor, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	weir_tensor_release(tensor);
}

/* Its version is always one more than its value. */
static weir_var *variable(void)
{
	weir_var *var = empty_variable();

	assign(var, 0);
	return var;
}

static void destroy(weir_var *var)
{
	cr_assert_eq(weir_var_destroy(var, NULL), WEIR_OK);
	cr_assert_eq(weir_reclaim_flush(0), WEIR_OK);
}

static int64_t value_of(const weir_read *read)
{
	return *(const int64_t *)weir_tensor_data(read->tensor);
}

static void expect_value(const weir_read *read, int64_t value)
{
	cr_assert_not_null(read);
	cr_expect_eq(value_of(read), value);
	cr_expect_eq(read->version, (uint64_t)value + 1);
}

/* -- read sections ----------------------------------------------------------------------------- */

static weir_read_section begun(void)
{
	weir_read_section section = {WEIR_READ_SECTION_INIT};

	cr_assert_eq(weir_read_section_begin(&section), WEIR_OK);
	return section;
}

static void begin(weir_read_section *section)
{
	cr_assert_eq(weir_read_section_begin(section), WEIR_OK);
}

static void end(weir_read_section *section)
{
	cr_assert_eq(weir_read_section_end(section), WEIR_OK);
}

Test(older, a_peek_shows_the_newest_version)
{
	weir_var *var = variable(), *empty = empty_variable();
	weir_read_section section = begun();

	for (int64_t i = 0; i < 100; i++) {
		expect_value(weir_read_section_peek(&section, var), i);
		assign(var, i + 1);
	}
	cr_expect_null(weir_read_section_peek(&section, empty));
	cr_expect_null(weir_read_section_peek(&section, NULL));
	end(&section);
	cr_expect_null(weir_read_section_peek(&section, var), "it has ended");
	section = begun();
	expect_value(weir_read_section_peek(&section, var), 100);
	end(&section);
	cr_assert_eq(weir_var_destroy(empty, NULL), WEIR_OK);
	destroy(var);
}

/* Without a record the library finds nothing, so what is found then is found by the inlined code. */
Test(older, a_peek_finds_a_version_without_a_call)
{
	weir_var *var = variable();
	weir_read_section section = begun(), unknown;
	const weir_read *read = weir_read_section_peek(&section, var);

	expect_value(read, 0);
	cr_expect_eq(*section.reserved != 0, PEEKS_BY_ITSELF || UINTPTR_MAX == UINT32_MAX);
	unknown = section;
	unknown.record = NULL;
	cr_expect_null(weir_read_section_find(&unknown, var));
	cr_expect_eq(weir_read_section_peek(&unknown, var), PEEKS_BY_ITSELF ? read : NULL);
	end(&section);
	destroy(var);
}

/* What the library does should it no longer keep versions in a way that the inlined code knows. */
Test(older, a_peek_calls_where_reserved_leads_to_0)
{
	weir_var *var = variable(), *empty = empty_variable();
	weir_read_section section = begun(), asking = section;

	asking.reserved = &nothing;
	asking.stamp_at = asking.read_at = UINT32_MAX - 7;
	for (int64_t i = 0; i < 100; i++) {
		expect_value(weir_read_section_peek(&asking, var), i);
		cr_expect_eq(weir_read_section_peek(&asking, var), weir_read_section_find(&section, var));
		assign(var, i + 1);
	}
	cr_expect_null(weir_read_section_peek(&asking, empty));
	cr_expect_null(weir_read_section_peek(&asking, NULL));
	end(&section);
	cr_assert_eq(weir_var_destroy(empty, NULL), WEIR_OK);
	destroy(var);
}

Test(older, a_section_begins_again)
{
	weir_var *var = variable();
	weir_read_section section = begun(), inner = {WEIR_READ_SECTION_INIT};

	end(&section);
	for (int64_t i = 0; i < 100; i++) {
		begin(&section);
		cr_expect_eq(weir_read_section_begin(&section), WEIR_FAILED_PRECONDITION);
		expect_value(weir_read_section_peek(&section, var), i);
		begin(&inner);
		assign(var, i + 1);
		expect_value(weir_read_section_peek(&inner, var), i + 1);
		cr_expect_eq(weir_read_section_end(&section), WEIR_FAILED_PRECONDITION, "the inner one is open");
		end(&inner);
		expect_value(weir_read_section_peek(&section, var), i + 1);
		end(&section);
		cr_expect_null(weir_read_section_peek(&section, var), "it has ended");
		cr_expect_eq(weir_read_section_end(&section), WEIR_FAILED_PRECONDITION);
	}
	destroy(var);
}

/* A section of a header that is later than both this program's and the library's. */
struct longer {
	weir_read_section section;
	uint64_t later[2];
};

static struct longer longer_section(void)
{
	return (struct longer){.section.struct_size = sizeof(struct longer)};
}

static void read_in_a_longer_section(weir_var *var, int64_t from)
{
	struct longer longer = longer_section();
	weir_read_section inner;

	for (int64_t i = from; i < from + 10; i++) {
		cr_assert_eq(weir_read_section_begin(&longer.section), WEIR_OK);
		cr_expect_eq(*longer.section.reserved, 0, "the inlined code calls");
		cr_expect_eq(weir_read_section_begin(&longer.section), WEIR_FAILED_PRECONDITION);
		expect_value(weir_read_section_peek(&longer.section, var), i);
		inner = begun();
		assign(var, i + 1);
		expect_value(weir_read_section_peek(&inner, var), i + 1);
		cr_expect_eq(weir_read_section_end(&longer.section), WEIR_FAILED_PRECONDITION, "the inner one is open");
		end(&inner);
		expect_value(weir_read_section_peek(&longer.section, var), i + 1);
		end(&longer.section);
		cr_expect_null(weir_read_section_peek(&longer.section, var), "it has ended");
		cr_expect_eq(weir_read_section_end(&longer.section), WEIR_FAILED_PRECONDITION);
	}
}

static void *read_first_in_a_longer_section(void *var)
{
	read_in_a_longer_section(var, 10);
	return NULL;
}

Test(older, a_section_of_a_later_header_calls_for_each_peek)
{
	weir_var *var = variable();
	pthread_t thread;

	read_in_a_longer_section(var, 0);
	cr_assert_eq(pthread_create(&thread, NULL, read_first_in_a_longer_section, var), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	destroy(var);
}

Test(older, a_section_that_asks_for_what_the_library_lacks_is_refused)
{
	struct longer longer = longer_section();

	longer.later[1] = 1;
	cr_expect_eq(weir_read_section_begin(&longer.section), WEIR_INVALID_ARGUMENT);
	longer.later[1] = 0;
	cr_expect_eq(weir_read_section_begin(&longer.section), WEIR_OK);
	end(&longer.section);
}

Test(older, a_section_of_no_release_is_refused)
{
	const size_t sizes[] = {0, 8, sizeof(weir_read_section) - 8, sizeof(weir_read_section) + 1, 4104, SIZE_MAX};
	weir_read_section section = begun();

	end(&section); /* this thread is known */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct longer longer = {.section.struct_size = sizes[i]};

		cr_expect_eq(weir_read_section_begin(&longer.section), WEIR_INVALID_ARGUMENT, "%zu bytes", sizes[i]);
		cr_expect_null(longer.section.record);
	}
}

static void *write_versions(void *var)
{
	for (int64_t i = 1; i <= WRITES; i++)
		assign(var, i);
	return NULL;
}

/* Peeks in the section until it ends. Returns the last value. */
static int64_t last_of_peeks(const weir_read_section *section, weir_var *var, int64_t last)
{
	for (int i = 0; i < READS; i++) {
		const weir_read *read = weir_read_section_peek(section, var);

		cr_assert_not_null(read);
		cr_assert_geq(value_of(read), last, "a peek never goes back");
		cr_assert_eq(read->version, (uint64_t)value_of(read) + 1);
		last = value_of(read);
	}
	return last;
}

Test(older, peeks_follow_a_writer)
{
	weir_var *var = variable();
	struct longer longer = longer_section();
	weir_read_section section, again = {WEIR_READ_SECTION_INIT};
	pthread_t writer;
	int64_t last = 0;

	cr_assert_eq(pthread_create(&writer, NULL, write_versions, var), 0);
	while (last < WRITES) {
		section = begun();
		last = last_of_peeks(&section, var, last);
		end(&section);
		begin(&again);
		last = last_of_peeks(&again, var, last);
		end(&again);
		cr_assert_eq(weir_read_section_begin(&longer.section), WEIR_OK);
		last = last_of_peeks(&longer.section, var, last);
		end(&longer.section);
	}
	cr_assert_eq(pthread_join(writer, NULL), 0);
	destroy(var);
}

/* -- caches ------------------------------------------------------------------------------------ */

Test(older, a_cache_follows_each_version)
{
	weir_var *var = empty_variable();
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	cr_expect_null(weir_var_cache_read(&cache), "there is no value yet");
	for (int64_t i = 0; i < 100; i++) {
		assign(var, i);
		expect_value(weir_var_cache_read(&cache), i);
		expect_value(weir_var_cache_read(&cache), i);
	}
	weir_var_cache_release(&cache);
	cr_expect_null(weir_var_cache_read(&cache), "it is released");
	weir_var_cache_init(&cache, NULL);
	cr_expect_null(weir_var_cache_read(&cache), "it has no variable");
	destroy(var);
}

/* Without the variable the library finds nothing. */
Test(older, a_cache_returns_what_it_holds_without_a_call)
{
	weir_var *var = variable();
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	expect_value(weir_var_cache_read(&cache), 0);
	cache.var = NULL;
	cr_expect_null(weir_var_cache_refresh(&cache));
	cr_expect_eq(weir_var_cache_read(&cache), &cache.read);
	assign(var, 1);
	cr_expect_null(weir_var_cache_read(&cache), "the variable has changed");
	cache.var = var;
	expect_value(weir_var_cache_read(&cache), 1);
	weir_var_cache_release(&cache);
	destroy(var);
}

/* What the library does should a word no longer tell the version. */
Test(older, a_cache_calls_where_it_has_seen_nothing)
{
	weir_var *var = variable();
	weir_var_cache cache;

	weir_var_cache_init(&cache, var);
	for (int64_t i = 0; i < 100; i++) {
		expect_value(weir_var_cache_read(&cache), i);
		cache.seen = NULL;
		cache.var = NULL;
		cr_expect_null(weir_var_cache_read(&cache), "it calls");
		cache.var = var;
		expect_value(weir_var_cache_read(&cache), i);
		assign(var, i + 1);
	}
	weir_var_cache_release(&cache);
	destroy(var);
}

Test(older, a_cache_follows_a_writer)
{
	weir_var *var = variable();
	weir_var_cache cache;
	pthread_t writer;
	int64_t last = 0;

	weir_var_cache_init(&cache, var);
	cr_assert_eq(pthread_create(&writer, NULL, write_versions, var), 0);
	while (last < WRITES) {
		const weir_read *read = weir_var_cache_read(&cache);

		cr_assert_not_null(read);
		cr_assert_geq(value_of(read), last, "a read never goes back");
		cr_assert_eq(read->version, (uint64_t)value_of(read) + 1);
		last = value_of(read);
	}
	cr_assert_eq(pthread_join(writer, NULL), 0);
	weir_var_cache_release(&cache);
	destroy(var);
}

/* -- values of each kind ----------------------------------------------------------------------- */

struct pair {
	uint64_t first, second;
};

static void count_release(void *context, void *pointer)
{
	*(size_t *)context += *(size_t *)pointer;
}

/* Peeks, a cache and a handle show the values of the two variables. */
static void expect_values(weir_var *bytes, weir_var *pointers, uint64_t first, void *pointer)
{
	weir_read_section section = begun();
	const struct pair *pair = weir_read_section_peek(&section, bytes)->data;
	weir_var_cache cache;
	weir_read read;

	cr_expect(pair->first == first && pair->second == first + 1);
	cr_expect_eq(weir_read_section_peek(&section, pointers)->pointer, pointer);
	end(&section);
	weir_var_cache_init(&cache, bytes);
	pair = weir_var_cache_read(&cache)->data;
	cr_expect(pair->first == first && pair->second == first + 1);
	weir_var_cache_release(&cache);
	cr_assert_eq(weir_var_read(pointers, &read), WEIR_OK);
	cr_expect_eq(read.pointer, pointer);
	weir_read_release(&read);
}

Test(older, values_of_each_kind_are_passed_and_shown)
{
	size_t released = 0, weights[] = {1, 10, 100};
	struct weir_var_options of_bytes = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_INLINE, .size = sizeof(struct pair)};
	struct weir_var_options of_pointers = {WEIR_VAR_OPTIONS_INIT, .kind = WEIR_VAR_POINTER, .release = count_release,
	                                       .context = &released};
	weir_var *bytes = NULL, *pointers = NULL, *tensors = variable();
	weir_tensor *tensor = number(1);
	struct pair pair = {5, 6};
	weir_read_section section;
	struct weir_value_part parts[3];

	cr_assert_eq(weir_var_create_value(weir_value_inline(&pair, sizeof(pair)), &of_bytes, &bytes, NULL), WEIR_OK);
	cr_assert_eq(weir_var_create_value(weir_value_pointer(&weights[0]), &of_pointers, &pointers, NULL), WEIR_OK);
	expect_values(bytes, pointers, 5, &weights[0]);
	pair = (struct pair){7, 8};
	cr_assert_eq(weir_var_assign_value(bytes, weir_value_inline(&pair, sizeof(pair)), 0, NULL, NULL), WEIR_OK);
	cr_assert_eq(weir_var_assign_value(pointers, weir_value_pointer(&weights[1]), 0, NULL, NULL), WEIR_OK);
	expect_values(bytes, pointers, 7, &weights[1]);
	pair = (struct pair){9, 10};
	parts[0] = (struct weir_value_part){bytes, 2, weir_value_inline(&pair, sizeof(pair))};
	parts[1] = (struct weir_value_part){pointers, 2, weir_value_pointer(&weights[2])};
	parts[2] = (struct weir_value_part){tensors, 1, weir_value_tensor(tensor)};
	cr_assert_eq(weir_var_commit_values(parts, 3, WEIR_NO_DEADLINE, NULL, NULL), WEIR_OK);
	expect_values(bytes, pointers, 9, &weights[2]);
	section = begun();
	expect_value(weir_read_section_peek(&section, tensors), 1);
	end(&section);
	weir_tensor_release(tensor);
	cr_assert_eq(weir_var_destroy(bytes, NULL), WEIR_OK);
	cr_assert_eq(weir_var_destroy(tensors, NULL), WEIR_OK);
	destroy(pointers);
	cr_expect_eq(released, 111);
}

/* -- ports of rings ---------------------------------------------------------------------------- */

static weir_ring *ring_of(size_t capacity)
{
	weir_ring *ring = NULL;

	cr_assert_eq(weir_ring_create(capacity, NULL, &ring, NULL), WEIR_OK);
	return ring;
}

/* Fills and drains it, three times, by the port. */
static void expect_capacity(const weir_ring_port *port, size_t capacity)
{
	uint64_t value = 0;

	for (int lap = 0; lap < 3; lap++) {
		for (uint64_t i = 0; i < capacity; i++)
			cr_assert_eq(weir_ring_port_try_enqueue(port, i), WEIR_OK);
		cr_assert_eq(weir_ring_port_try_enqueue(port, 1), WEIR_WOULD_BLOCK);
		for (uint64_t i = 0; i < capacity; i++) {
			cr_assert_eq(weir_ring_port_try_dequeue(port, &value), WEIR_OK);
			cr_assert_eq(value, i);
		}
		cr_assert_eq(weir_ring_port_try_dequeue(port, &value), WEIR_WOULD_BLOCK);
	}
}

/* Without the ring the library refuses. The slot of a new ring is free if the port leads to it. */
Test(older, a_port_moves_values_without_a_call)
{
	weir_ring *ring = ring_of(4);
	weir_ring_port port, alone;
	uint64_t value = 0;
#if defined(WEIRI_RING_PORT_INLINE)
	enum weir_status expected;

	weir_ring_port_init(&port, ring);
	expected = port.slots[0] == 0 ? WEIR_OK : WEIR_INVALID_ARGUMENT;
#else
	enum weir_status expected = WEIR_INVALID_ARGUMENT;

	weir_ring_port_init(&port, ring);
#endif
	alone = port;
	alone.ring = NULL;
	cr_expect_eq(weir_ring_port_try_enqueue(&alone, 42), expected);
	cr_expect_eq(weir_ring_port_try_dequeue(&alone, &value), expected);
	cr_expect_eq(value, expected == WEIR_OK ? 42 : 0);
	expect_capacity(&port, 4);
	cr_assert_eq(weir_ring_destroy(ring, NULL), WEIR_OK);
}

/* What the library does for rings that the inlined code does not know, and would do should slots change. */
Test(older, a_port_calls_where_its_slot_is_neither_free_nor_full)
{
	static const uint64_t nowhere[2] = {UINT64_MAX, 0};

	for (size_t capacity = 3; capacity <= 4; capacity++) {
		weir_ring *ring = ring_of(capacity);
		weir_ring_port port;

		weir_ring_port_init(&port, ring);
		expect_capacity(&port, capacity);
		port.slots = (uint64_t *)(uintptr_t)nowhere;
		port.tail = port.head = (uint64_t *)(uintptr_t)&nothing;
		port.closed = (const uint32_t *)(uintptr_t)&nothing;
		port.mask = port.shift = 0;
		expect_capacity(&port, capacity);
		cr_assert_eq(weir_ring_destroy(ring, NULL), WEIR_OK);
	}
}

#endif
