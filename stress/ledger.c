/*
 * ledger.c - see ledger.h.
 */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

static uint64_t item_of(unsigned producer, uint64_t number)
{
	return (uint64_t)(producer + 1) << LEDGER_NUMBER_BITS | number;
}

static uint64_t number_of(uint64_t item)
{
	return item & ((UINT64_C(1) << LEDGER_NUMBER_BITS) - 1);
}

static uint64_t payload_of(uint64_t item)
{
	return stress_mix(item);
}

static uint64_t *numbers(uint64_t count)
{
	uint64_t *memory = calloc((size_t)count, sizeof(*memory));

	STRESS_CHECK(memory != NULL, "the harness has no memory");
	return memory;
}

void ledger_open(struct ledger *ledger, unsigned producers, unsigned consumers, uint64_t limit)
{
	STRESS_CHECK(producers > 0 && consumers > 0 && limit > 0, "a ledger needs threads and items");
	memset(ledger, 0, sizeof(*ledger));
	ledger->producers = producers < LEDGER_SIDE ? producers : LEDGER_SIDE;
	ledger->consumers = consumers < LEDGER_SIDE ? consumers : LEDGER_SIDE;
	ledger->limit = limit;
	for (unsigned i = 0; i < ledger->producers; i++) {
		ledger->producer[i].index = i;
		ledger->producer[i].payload = numbers(limit);
	}
	for (unsigned i = 0; i < ledger->consumers; i++) {
		ledger->consumer[i].index = i;
		ledger->consumer[i].log = numbers(limit * ledger->producers);
	}
}

void ledger_close(struct ledger *ledger)
{
	for (unsigned i = 0; i < ledger->producers; i++)
		free(ledger->producer[i].payload);
	for (unsigned i = 0; i < ledger->consumers; i++)
		free(ledger->consumer[i].log);
}

/* -- items ------------------------------------------------------------------------------------- */

uint64_t ledger_make(struct ledger_page *producer, uint64_t ahead)
{
	uint64_t number = producer->count + ahead, item = item_of(producer->index, number);

	producer->payload[number] = payload_of(item);
	return item;
}

void ledger_take(struct ledger *ledger, struct ledger_page *consumer, uint64_t last[], int ordered, uint64_t item)
{
	uint64_t producer = (item >> LEDGER_NUMBER_BITS) - 1, number = number_of(item);

	STRESS_CHECK(producer < ledger->producers && number < ledger->limit,
	             "an item came out that no thread enqueued: 0x%llx", (unsigned long long)item);
	STRESS_CHECK(!ordered || number + 1 > last[producer],
	             "out of order: producer %llu's number %llu came after its %llu", (unsigned long long)producer,
	             (unsigned long long)number, (unsigned long long)(last[producer] - 1));
	last[producer] = number + 1;
	STRESS_CHECK(ledger->producer[producer].payload[number] == payload_of(item),
	             "producer %llu's memory for number %llu was not visible", (unsigned long long)producer,
	             (unsigned long long)number);
	STRESS_CHECK(consumer->count < ledger->limit * ledger->producers, "more items came out than could go in");
	consumer->log[consumer->count++] = item;
}

void ledger_drop(struct ledger *ledger, uint64_t item)
{
	uint64_t last[LEDGER_SIDE] = {0};

	ledger_take(ledger, &ledger->consumer[0], last, 0, item);
}

/* Marks the items of this producer that the consumer took, and returns their number. */
static uint64_t mark(const struct ledger_page *consumer, const struct ledger_page *producer, unsigned char marks[])
{
	uint64_t found = 0;

	for (uint64_t i = 0; i < consumer->count; i++) {
		uint64_t number = number_of(consumer->log[i]);

		if (consumer->log[i] != item_of(producer->index, number))
			continue;
		STRESS_CHECK(number < producer->count, "producer %u's number %llu came out, although its enqueue had failed",
		             producer->index, (unsigned long long)number);
		STRESS_CHECK(!marks[number]++, "producer %u's number %llu came out twice", producer->index,
		             (unsigned long long)number);
		found++;
	}
	return found;
}

void ledger_check_each_once(const struct ledger *ledger)
{
	for (unsigned p = 0; p < ledger->producers; p++) {
		uint64_t count = ledger->producer[p].count, found = 0;
		unsigned char *marks = calloc((size_t)count + 1, 1);

		STRESS_CHECK(marks != NULL, "the harness has no memory");
		for (unsigned c = 0; c < ledger->consumers; c++)
			found += mark(&ledger->consumer[c], &ledger->producer[p], marks);
		STRESS_CHECK(found == count, "producer %u: %llu items went in, but %llu came out", p, (unsigned long long)count,
		             (unsigned long long)found);
		free(marks);
	}
}

/* -- bounds ------------------------------------------------------------------------------------ */

/* [seq_cst] throughout: a bound holds because of the order in which the counters are read. */
static uint64_t sum_most(const struct ledger_page pages[], unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += weiri_load_seq_cst(&pages[i].most);
	return sum;
}

static uint64_t sum_least(const struct ledger_page pages[], unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += weiri_load_seq_cst(&pages[i].least);
	return sum;
}

void ledger_about_to_move(struct ledger_page *page, uint64_t wanted)
{
	(void)weiri_fetch_add_seq_cst(&page->most, wanted);
}

void ledger_has_moved(struct ledger_page *page, uint64_t wanted, uint64_t moved)
{
	(void)weiri_fetch_add_seq_cst(&page->least, moved);
	(void)weiri_fetch_sub_seq_cst(&page->most, wanted - moved);
}

uint64_t ledger_most_in(const struct ledger *ledger)
{
	return sum_most(ledger->producer, ledger->producers);
}

uint64_t ledger_least_in(const struct ledger *ledger)
{
	return sum_least(ledger->producer, ledger->producers);
}

uint64_t ledger_most_out(const struct ledger *ledger)
{
	return sum_most(ledger->consumer, ledger->consumers);
}

uint64_t ledger_least_out(const struct ledger *ledger)
{
	return sum_least(ledger->consumer, ledger->consumers);
}
