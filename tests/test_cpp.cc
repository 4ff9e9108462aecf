/*
 * test_cpp.cc - weir.hpp: ownership, results, deadlines, exceptions, moved-from objects.
 *
 * It is a program of its own, because it is built by several compilers, with and without exceptions. It
 * prints the checks that fail, and returns 1 then.
 */
#include <weir/weir.hpp>

#include <weir/reclaim.h>

#include <atomic>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace
{

std::atomic<int> failed{0};

#define CHECK(condition) \
	((condition) ? static_cast<void>(0) \
	             : static_cast<void>((failed++, std::fprintf(stderr, "FAIL line %d: %s\n", __LINE__, #condition))))

using namespace std::chrono_literals;

weir::tensor numbers(std::initializer_list<int> values)
{
	auto made = weir::tensor::copy_of(values);

	CHECK(made);
	return *std::move(made);
}

int first_of(const weir::view &view)
{
	auto elements = view.as<int>();

	return elements && !elements->empty() ? (*elements)[0] : -1;
}

/* -- tensors ----------------------------------------------------------------------------------- */

void tensors_show_their_elements()
{
	weir::tensor one = numbers({1, 2, 3}), two = one, moved = std::move(one);
	auto elements = two.as<int>();

	CHECK(elements && elements->size() == 3 && (*elements)[2] == 3);
	CHECK(elements->data() == moved.as<int>()->data());
	CHECK(two.as<float>().code() == WEIR_INVALID_ARGUMENT);
	CHECK(std::string(two.as<float>().message()) == "the elements are i32, not f32");
	CHECK(two.shape().rank == 1 && two.shape().dims[0] == 3);
	CHECK(!one && one.as<int>().code() == WEIR_INVALID_ARGUMENT); // NOLINT: moved from
	one = two;
	CHECK(one && first_of(weir::view()) == -1);
	int sum = 0;
	for (int value : *elements)
		sum += value;
	CHECK(sum == 6);
#if __cplusplus >= 202002L
	std::span<const int> standard(*elements);
	CHECK(standard.size() == 3 && standard.data() == elements->data());
#endif
	CHECK(weir::tensor::copy_of(elements->data(), 3, weir::shape({2, 2})).code() == WEIR_INVALID_ARGUMENT);
	CHECK(weir::tensor::copy_of(elements->data(), 1, weir::shape({1, 1, 1, 1, 1, 1, 1, 1, 1})).code() ==
	      WEIR_INVALID_ARGUMENT);
	CHECK(weir::tensor::scalar(2.5)->as<double>().code() == WEIR_OK);
	CHECK(weir::dtype_of<long long> == WEIR_I64 && weir::dtype_of<const bool> == WEIR_BOOL &&
	      weir::dtype_of<unsigned char> == WEIR_U8);
}

void a_vector_becomes_a_tensor_without_a_copy()
{
	std::vector<double> values(1000, 1.5);
	const double *data = values.data();
	CHECK(weir::tensor::wrap(std::move(values), weir::shape({7})).code() == WEIR_INVALID_ARGUMENT);
	CHECK(values.size() == 1000); // NOLINT: on failure it is unchanged
	auto made = weir::tensor::wrap(std::move(values), weir::shape({10, 100}));
	CHECK(made && made->as<double>()->data() == data && values.empty()); // NOLINT
	auto nothing = weir::tensor::wrap(std::vector<float>());
	CHECK(nothing && nothing->as<float>()->empty());
}

/* -- variables --------------------------------------------------------------------------------- */

void views_keep_their_version()
{
	auto made = weir::var::create(numbers({1}));
	CHECK(made);
	weir::var var = *std::move(made);
	weir::view before = *var.read();
	CHECK(var.assign(numbers({2})));
	CHECK(first_of(before) == 1 && before.version() == 1 && var.version() == 2);
	weir::tensor kept = before.tensor();
	before = *var.read();
	CHECK(first_of(before) == 2 && (*kept.as<int>())[0] == 1);
	weir::view moved = std::move(before);
	CHECK(moved.version() == 2 && before.version() == 0 && !weir::view()); // NOLINT: moved from
	CHECK(!before && before.as<int>().code() == WEIR_INVALID_ARGUMENT);    // NOLINT: moved from
	CHECK(var.try_read_newer(2).code() == WEIR_WOULD_BLOCK && var.try_read_newer(1));
	CHECK(var.compare_assign(1, numbers({9})).code() == WEIR_ABORTED);
	CHECK(var.compare_assign(2, numbers({9})));
	auto refused = var.assign(*weir::tensor::scalar(1.0F));
	CHECK(refused.code() == WEIR_INVALID_ARGUMENT && std::string(refused.message()).find("f32") != std::string::npos);
	weir::var other = std::move(var);
	CHECK(!var && var.read().code() == WEIR_INVALID_ARGUMENT); // NOLINT: moved from
	CHECK(var.assign(numbers({1})).code() == WEIR_INVALID_ARGUMENT && var.version() == 0);
	CHECK(other.assign(weir::tensor()).code() == WEIR_INVALID_ARGUMENT);
	CHECK(weir::var::create(weir::tensor()).code() == WEIR_INVALID_ARGUMENT);
	var = std::move(other);
	CHECK(first_of(*var.read()) == 9);
	{
		weir::view outlives = *var.read();
		var = weir::var();
		CHECK(first_of(outlives) == 9);
	}
}

void updates_are_of_the_current_value()
{
	weir::var var = *weir::var::create(numbers({0}));
	std::thread threads[2];

	for (std::thread &thread : threads) {
		thread = std::thread([&var] {
			for (int i = 0; i < 500; i++) {
				CHECK(var.update([](const weir::tensor &now) { return weir::tensor::scalar((*now.as<int>())[0] + 1); })
				          .code() == WEIR_OK);
			}
		});
	}
	for (std::thread &thread : threads)
		thread.join();
	CHECK(first_of(*var.read()) == 1000);
	CHECK(var.update([](const weir::tensor &) { return weir::tensor(); }).code() == WEIR_INVALID_ARGUMENT);
	CHECK(var.update([](const weir::tensor &) { return weir::result<weir::tensor>(WEIR_NOT_FOUND); }).code() ==
	      WEIR_NOT_FOUND);
}

void a_snapshot_is_of_one_instant()
{
	weir::var a = *weir::var::create(numbers({1})), b = *weir::var::create(*weir::tensor::scalar(2.0));
	auto taken = weir::take_snapshot(a, b);
	CHECK(taken && (*taken->as<int>(0))[0] == 1 && (*taken->as<double>(1))[0] == 2.0);
	CHECK(taken->as<int>(1).code() == WEIR_INVALID_ARGUMENT && taken->as<int>(2).code() == WEIR_INVALID_ARGUMENT);
	CHECK(a.assign(numbers({5})) && taken->version(0) == 1);
	weir::snapshot<2> moved = *std::move(taken);
	CHECK((*moved.as<int>(0))[0] == 1 && taken->as<int>(0).code() == WEIR_INVALID_ARGUMENT);
	weir::var empty;
	CHECK(weir::take_snapshot(a, empty).code() == WEIR_INVALID_ARGUMENT);
}

/* -- queues ------------------------------------------------------------------------------------ */

std::atomic<int> living{0};

/* It cannot be moved without an exception, nor copied. */
struct stubborn {
	explicit stubborn(int given) : number(given)
	{
#if WEIR_HPP_HAS_EXCEPTIONS
		if (given < 0)
			throw std::invalid_argument("negative");
#endif
		living++;
	}
	stubborn(stubborn &&other) : number(other.number) // NOLINT: that is the point
	{
#if WEIR_HPP_HAS_EXCEPTIONS
		throw std::runtime_error("moved");
#endif
	}
	~stubborn()
	{
		living--;
	}
	int number;
};

void items_have_one_owner()
{
	weir::queue_options options;
	options.capacity = 2;
	auto made = weir::queue<stubborn>::create(options);
	CHECK(made);
	weir::queue<stubborn> queue = *std::move(made);
	CHECK(queue.emplace(1) && queue.put(std::make_unique<stubborn>(2)));
	auto third = std::make_unique<stubborn>(3);
	CHECK(queue.try_put(third) == WEIR_WOULD_BLOCK && third != nullptr);
	CHECK(queue.put(third, 1ms).code() == WEIR_DEADLINE_EXCEEDED && third != nullptr);
	CHECK(queue.put(third, weir::deadline::now()).code() == WEIR_DEADLINE_EXCEEDED && third != nullptr);
	CHECK((*queue.get())->number == 1 && (*queue.try_get())->number == 2);
	CHECK(queue.try_get().code() == WEIR_WOULD_BLOCK);
	CHECK(queue.try_put(std::unique_ptr<stubborn>()) == WEIR_INVALID_ARGUMENT);
	CHECK(queue.put(std::unique_ptr<stubborn>()).code() == WEIR_INVALID_ARGUMENT);
	CHECK(queue.put(third) && third == nullptr && queue.size_approx() == 1);
	weir::queue<stubborn> moved = std::move(queue);
	third = std::make_unique<stubborn>(4);
	CHECK(!queue && queue.try_put(third) == WEIR_INVALID_ARGUMENT && third != nullptr); // NOLINT: moved from
	CHECK(queue.get().code() == WEIR_INVALID_ARGUMENT && queue.close() == WEIR_INVALID_ARGUMENT);
	CHECK(moved.close() == WEIR_OK && moved.closed());
	CHECK(moved.put(third).code() == WEIR_CANCELLED && third != nullptr);
	CHECK((*moved.get())->number == 3 && moved.get().code() == WEIR_OUT_OF_RANGE);
	CHECK(weir::queue<int>::create({}).code() == WEIR_INVALID_ARGUMENT);
	weir::queue<stubborn> forgotten = *weir::queue<stubborn>::create(options);
	CHECK(forgotten.emplace(5) && living == 2);
	forgotten = weir::queue<stubborn>();
	CHECK(living == 1);
	third.reset();
	CHECK(living == 0);
}

void a_token_ends_a_wait()
{
	weir::queue_options options;
	options.capacity = 1;
	weir::queue<int> queue = *weir::queue<int>::create(options);
	weir::cancel token = *weir::cancel::create(), copy = token;
	std::thread thread([copy] { CHECK(copy.fire()); });
	CHECK(queue.get({}, token).code() == WEIR_CANCELLED && token.fired());
	thread.join();
	CHECK(!token.fire() && !weir::cancel().fired() && !weir::cancel().fire());
#if WEIR_HPP_HAS_STOP_TOKEN
	std::jthread worker([&queue](const std::stop_token &stop) {
		int sum = 0;
		for (;;) {
			auto item = queue.get(stop);
			if (!item) {
				CHECK(item.code() == WEIR_CANCELLED && sum == 6);
				return;
			}
			sum += **item;
		}
	});
	for (int i = 1; i <= 3; i++)
		CHECK(queue.put(std::make_unique<int>(i)));
	while (queue.size_approx() != 0)
		std::this_thread::yield();
	worker.request_stop();
	worker.join();
	CHECK(queue.put(std::make_unique<int>(1), worker.get_stop_token()).code() == WEIR_CANCELLED);
	CHECK(queue.put(std::make_unique<int>(1), std::stop_token()));
	CHECK(queue.put(std::make_unique<int>(1), std::stop_token(), 1ms).code() == WEIR_DEADLINE_EXCEEDED);
#endif
}

void deadlines_come_from_chrono()
{
	using clock = std::chrono::steady_clock;

	CHECK(weir::deadline().ns() == WEIR_NO_DEADLINE && weir::no_deadline.ns() == WEIR_NO_DEADLINE);
	CHECK(weir::deadline(0s).ns() == 0 && weir::deadline(-5s).ns() == 0 && weir::deadline::now().ns() == 0);
	CHECK(weir::deadline(std::chrono::hours::max()).ns() == WEIR_NO_DEADLINE);
	CHECK(weir::deadline(std::chrono::duration<double>(std::numeric_limits<double>::infinity())).ns() ==
	      WEIR_NO_DEADLINE);
	CHECK(weir::deadline(clock::time_point::max()).ns() == WEIR_NO_DEADLINE);
	CHECK(weir::deadline(clock::time_point::min()).ns() == 0);
	const auto point = clock::now() + 2h;
	CHECK(weir::deadline(point).ns() ==
	      static_cast<std::uint64_t>(
			  std::chrono::duration_cast<std::chrono::nanoseconds>(point.time_since_epoch()).count()));
	const std::uint64_t before = weir_now_ns(), until = weir::deadline(1500us).ns();
	CHECK(until >= before + 1500000 && until <= weir_now_ns() + 1500000);
	CHECK(weir::deadline(std::chrono::duration<double>(0.25)).ns() >= before + 250000000);
}

/* -- exceptions -------------------------------------------------------------------------------- */

#if WEIR_HPP_HAS_EXCEPTIONS
void value_throws_what_went_wrong()
{
	weir::var var = weir::var::create(numbers({1})).value();
	bool thrown = false;

	try {
		var.assign(weir::tensor::scalar(1.0).value()).value();
	} catch (const weir::failure &failure) {
		thrown =
			failure.code() == WEIR_INVALID_ARGUMENT && std::string(failure.what()).find("f64") != std::string::npos;
	}
	CHECK(thrown);
	thrown = false;
	try {
		(void)weir::var().read().value();
	} catch (const std::exception &failure) {
		thrown = std::string(failure.what()) == "WEIR_INVALID_ARGUMENT";
	}
	CHECK(thrown);
}

void exceptions_of_functions_pass_around_the_library()
{
	weir::var var = *weir::var::create(numbers({1}));
	weir::queue_options options;
	bool thrown = false;

	try {
		(void)var.update([](const weir::tensor &) -> weir::tensor { throw std::runtime_error("mine"); });
	} catch (const std::runtime_error &error) {
		thrown = std::string(error.what()) == "mine";
	}
	CHECK(thrown && var.version() == 1);
	options.capacity = 1;
	weir::queue<stubborn> queue = *weir::queue<stubborn>::create(options);
	thrown = false;
	try {
		(void)queue.emplace(-1);
	} catch (const std::invalid_argument &) {
		thrown = true;
	}
	CHECK(thrown && queue.size_approx() == 0 && living == 0);
}
#endif

} // namespace

int main()
{
	tensors_show_their_elements();
	a_vector_becomes_a_tensor_without_a_copy();
	views_keep_their_version();
	updates_are_of_the_current_value();
	a_snapshot_is_of_one_instant();
	items_have_one_owner();
	a_token_ends_a_wait();
	deadlines_come_from_chrono();
#if WEIR_HPP_HAS_EXCEPTIONS
	value_throws_what_went_wrong();
	exceptions_of_functions_pass_around_the_library();
#endif
	(void)weir_reclaim_flush(WEIR_NO_DEADLINE);
	if (failed == 0)
		std::printf("PASS cpp\n");
	return failed == 0 ? 0 : 1;
}
