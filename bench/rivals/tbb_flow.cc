/*
 * tbb_flow.cc - TBB's flow graph. A lightweight node runs inside the node before it, if TBB finds that
 * possible, instead of as a task.
 */
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/version.h>

#include <memory>
#include <numeric>
#include <vector>

#include "rivals.h"

namespace
{

namespace flow = tbb::flow;

const char version[] = "oneTBB " TBB_VERSION_STRING;
enum { BUFFER_FLOATS = 1 << 18 };

using plain_node = flow::continue_node<flow::continue_msg>;
using lightweight_node = flow::continue_node<flow::continue_msg, flow::lightweight>;

struct graph_of {
	explicit graph_of(unsigned threads) : limit(tbb::global_control::max_allowed_parallelism, threads)
	{
	}
	virtual ~graph_of() = default;
	virtual void run() = 0;
	virtual uint64_t count() const
	{
		return ran;
	}

	tbb::global_control limit;
	flow::graph graph;
	uint64_t ran = 0;
};

/* Nodes that note that they ran, in a chain or behind one that starts all. */
template <class node> struct signals : graph_of {
	signals(unsigned count, unsigned threads, bool chained) : graph_of(threads), start(graph), marks(count)
	{
		for (unsigned i = 0; i < count; i++) {
			uint64_t *mark = &marks[i];

			nodes.emplace_back(new node(graph, [mark](const flow::continue_msg &) { ++*mark; }));
			if (chained && i != 0)
				flow::make_edge(*nodes[i - 1], *nodes[i]);
			else
				flow::make_edge(start, *nodes[i]);
		}
	}

	void run() override
	{
		start.try_put(flow::continue_msg());
		graph.wait_for_all();
	}

	uint64_t count() const override
	{
		return std::accumulate(marks.begin(), marks.end(), uint64_t{0});
	}

	flow::broadcast_node<flow::continue_msg> start;
	std::vector<std::unique_ptr<node>> nodes;
	std::vector<uint64_t> marks;
};

/* 1 is added to a value from node to node. */
template <class value, class policy> struct additions : graph_of {
	using node = flow::function_node<value, value, policy>;

	additions(unsigned count, unsigned threads, value (*add)(value), value (*first)(),
	          uint64_t (*result)(const value &))
		: graph_of(threads), begin(first), tell(result), end(graph, flow::serial, [this](const value &last) {
			  ran += tell(last);
			  return flow::continue_msg();
		  })
	{
		for (unsigned i = 0; i < count; i++) {
			nodes.emplace_back(new node(graph, flow::serial, add));
			if (i != 0)
				flow::make_edge(*nodes[i - 1], *nodes[i]);
		}
		flow::make_edge(*nodes.back(), end);
	}

	void run() override
	{
		nodes.front()->try_put(begin());
		graph.wait_for_all();
	}

	value (*begin)();
	uint64_t (*tell)(const value &);
	std::vector<std::unique_ptr<node>> nodes;
	flow::function_node<value> end;
};

float add_float(float value)
{
	return value + 1;
}

float first_float()
{
	return 0;
}

uint64_t float_result(const float &value)
{
	return static_cast<uint64_t>(value);
}

using buffer = std::shared_ptr<std::vector<float>>;

buffer add_buffer(buffer values)
{
	for (float &value : *values)
		value += 1;
	return values;
}

buffer first_buffer()
{
	return std::make_shared<std::vector<float>>(BUFFER_FLOATS);
}

uint64_t buffer_result(const buffer &values)
{
	return static_cast<uint64_t>(values->back());
}

/* Builds and frees a graph in each run. */
struct building : graph_of {
	using node = plain_node;

	building(unsigned many, unsigned threads, bool as_group) : graph_of(threads), count(many), group(as_group)
	{
	}

	void run() override
	{
		flow::graph built;
		std::vector<std::unique_ptr<node>> nodes;
		node last(built, [](const flow::continue_msg &) {});

		nodes.reserve(count);
		for (unsigned i = 0; i < count; i++) {
			nodes.emplace_back(new node(built, [](const flow::continue_msg &) {}));
			if (group)
				flow::make_edge(*nodes[i], last);
			else if (i != 0)
				flow::make_edge(*nodes[i - 1], *nodes[i]);
		}
		ran += nodes.size();
	}

	unsigned count;
	bool group;
};

template <class node, class function_policy> void *create(enum bench_dataflow kind, unsigned nodes, unsigned threads)
{
	switch (kind) {
	case BENCH_ADDS:
		return static_cast<graph_of *>(
			new additions<float, function_policy>(nodes, threads, add_float, first_float, float_result));
	case BENCH_BUFFERS:
		return static_cast<graph_of *>(
			new additions<buffer, function_policy>(nodes, threads, add_buffer, first_buffer, buffer_result));
	case BENCH_BUILD:
	case BENCH_GROUP: return static_cast<graph_of *>(new building(nodes, threads, kind == BENCH_GROUP));
	default: return static_cast<graph_of *>(new signals<node>(nodes, threads, kind != BENCH_WIDE));
	}
}

void run(void *self)
{
	static_cast<graph_of *>(self)->run();
}

uint64_t ran(void *self)
{
	return static_cast<graph_of *>(self)->count();
}

void destroy(void *self)
{
	delete static_cast<graph_of *>(self);
}

uint64_t bytes(void *)
{
	return BUFFER_FLOATS * sizeof(float);
}

dataflow_contender contender(enum bench_dataflow kind, bool lightweight)
{
	dataflow_contender c = {};

	c.about = {lightweight ? "tbb::flow, lightweight" : "tbb::flow", version, "no stop, no deadline", 0};
	c.kind = kind;
	c.create = lightweight ? create<lightweight_node, flow::queueing_lightweight> : create<plain_node, flow::queueing>;
	c.destroy = destroy;
	c.run = run;
	c.ran = ran;
	c.most_bytes = kind == BENCH_BUFFERS ? bytes : nullptr;
	return c;
}

} // namespace

extern "C" {
const dataflow_contender tbb_chain_contender = contender(BENCH_CHAIN, false);
const dataflow_contender tbb_light_chain_contender = contender(BENCH_CHAIN, true);
const dataflow_contender tbb_wide_contender = contender(BENCH_WIDE, false);
const dataflow_contender tbb_light_wide_contender = contender(BENCH_WIDE, true);
const dataflow_contender tbb_one_contender = contender(BENCH_ONE, false);
const dataflow_contender tbb_light_one_contender = contender(BENCH_ONE, true);
const dataflow_contender tbb_kernel_contender = contender(BENCH_KERNEL, false);
const dataflow_contender tbb_light_kernel_contender = contender(BENCH_KERNEL, true);
const dataflow_contender tbb_adds_contender = contender(BENCH_ADDS, false);
const dataflow_contender tbb_light_adds_contender = contender(BENCH_ADDS, true);
const dataflow_contender tbb_buffers_contender = contender(BENCH_BUFFERS, false);
const dataflow_contender tbb_build_contender = contender(BENCH_BUILD, false);
const dataflow_contender tbb_group_contender = contender(BENCH_GROUP, false);
}
