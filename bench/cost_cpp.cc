/*
 * cost_cpp.cc - weir-cost: a view of weir.hpp and its span, and the C calls that these make.
 */
#include <weir/weir.hpp>

#include "cost.h"

namespace
{

volatile std::uint64_t sink;
weir::var var;

void begin()
{
	var = std::move(*weir::var::create(*weir::tensor::scalar(std::uint64_t{1})));
}

void end()
{
	var = weir::var();
}

void by_view()
{
	const auto now = var.read();

	sink = (*now->as<std::uint64_t>())[0];
}

/* The same questions: is it there, are they such elements, how many, where. */
void by_calls()
{
	weir_read now;

	if (weir_var_read(var.get(), &now) != WEIR_OK)
		return;
	if (weir_tensor_dtype(now.tensor) == WEIR_U64 && weir_tensor_element_count(now.tensor) > 0)
		sink = *static_cast<const std::uint64_t *>(weir_tensor_data(now.tensor));
	weir_read_release(&now);
}

const struct cost_operation operations[] = {
	{"weir.hpp view and span", begin, nothing, by_view, nothing, end},
	{"the C calls of a view and span", begin, nothing, by_calls, nothing, end},
};

} // namespace

const struct cost_group cost_cpp = COST_GROUP(operations);
