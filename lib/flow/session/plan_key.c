/*
 * plan_key.c - the key of a plan: feeds, fetches and targets in their order.
 */
#include "session/plan.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 29;
}

static uint64_t mix_output(uint64_t hash, weir_output output)
{
	return mix(hash, (uint64_t)(uintptr_t)output.node + output.index);
}

uint64_t weiri_signature_hash(const struct weiri_signature *signature)
{
	uint64_t hash = mix(mix(signature->feed_count, signature->fetch_count), signature->target_count);

	for (size_t i = 0; i < signature->feed_count; i++)
		hash = mix_output(hash, weiri_signature_feed(signature, i));
	for (size_t i = 0; i < signature->fetch_count; i++)
		hash = mix_output(hash, signature->fetches[i]);
	for (size_t i = 0; i < signature->target_count; i++)
		hash = mix(hash, (uint64_t)(uintptr_t)signature->targets[i]);
	return hash;
}

static bool same_output(weir_output a, weir_output b)
{
	return a.node == b.node && a.index == b.index;
}

bool weiri_plan_matches(const struct weiri_plan *plan, const struct weiri_signature *signature)
{
	if (plan->hash != signature->hash || plan->feed_count != signature->feed_count ||
	    plan->fetch_count != signature->fetch_count || plan->target_count != signature->target_count)
		return false;
	for (size_t i = 0; i < plan->feed_count; i++) {
		if (!same_output(plan->feeds[i], weiri_signature_feed(signature, i)))
			return false;
	}
	for (size_t i = 0; i < plan->fetch_count; i++) {
		if (!same_output(plan->fetches[i], signature->fetches[i]))
			return false;
	}
	for (size_t i = 0; i < plan->target_count; i++) {
		if (plan->targets[i] != signature->targets[i])
			return false;
	}
	return true;
}
