/*
 * deadline.hpp - until when a call may wait, from chrono; tokens that end a wait; part of weir/weir.hpp.
 */
#ifndef WEIR_CPP_DEADLINE_HPP
#define WEIR_CPP_DEADLINE_HPP

#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <weir/cancel.h>
#include <weir/time.h>
#include <weir/cpp/result.hpp>

namespace weir
{

/*
 * Until when a call may wait. A duration counts from now, a time point of steady_clock
 * (CLOCK_MONOTONIC) is absolute. What lies in the past is "try once"; what does not fit is never.
 */
class deadline
{
  public:
	constexpr deadline() noexcept : ns_(WEIR_NO_DEADLINE)
	{
	}
	template <class Rep, class Period>
	deadline(std::chrono::duration<Rep, Period> wait) noexcept
		: ns_(wait.count() > 0 ? weir_deadline_in(nanoseconds_of(wait)) : 0)
	{
	}
	template <class Duration>
	deadline(std::chrono::time_point<std::chrono::steady_clock, Duration> point) noexcept
		: ns_(point.time_since_epoch().count() > 0 ? nanoseconds_of(point.time_since_epoch()) : 0)
	{
	}
	/* Tries once. */
	static constexpr deadline now() noexcept
	{
		return deadline(0, 0);
	}
	constexpr std::uint64_t ns() const noexcept
	{
		return ns_;
	}

  private:
	constexpr deadline(std::uint64_t ns, int) noexcept : ns_(ns)
	{
	}
	template <class Rep, class Period>
	static std::uint64_t nanoseconds_of(std::chrono::duration<Rep, Period> positive) noexcept
	{
		const long double ns =
			static_cast<long double>(positive.count()) * Period::num * 1000000000.0L / Period::den;

		/* Also for NaN: never. */
		if (!(ns < 9223372036854775807.0L))
			return WEIR_NO_DEADLINE;
		if constexpr (std::is_integral_v<Rep>)
			return static_cast<std::uint64_t>(
				std::chrono::ceil<std::chrono::duration<std::int64_t, std::nano>>(positive)
					.count());
		else
			return static_cast<std::uint64_t>(ns) + 1;
	}

	std::uint64_t ns_;
};

inline constexpr deadline no_deadline{};

/* A token (weir/cancel.h). Copies refer to the same token. */
class cancel
{
  public:
	cancel() noexcept = default;
	static result<cancel> create() noexcept
	{
		weir_cancel *token;
		weir_error error;
		const status code = weir_cancel_create(nullptr, &token, &error);

		if (code != WEIR_OK)
			return result<cancel>(error);
		return cancel(token);
	}
	cancel(const cancel &other) noexcept
		: token_(other.token_ != nullptr ? weir_cancel_retain(other.token_) : nullptr)
	{
	}
	cancel(cancel &&other) noexcept : token_(std::exchange(other.token_, nullptr))
	{
	}
	cancel &operator=(cancel other) noexcept
	{
		std::swap(token_, other.token_);
		return *this;
	}
	~cancel()
	{
		weir_cancel_release(token_);
	}
	/* Returns true for the first call. */
	bool fire() const noexcept
	{
		return token_ != nullptr && weir_cancel_fire(token_, nullptr);
	}
	bool fired() const noexcept
	{
		return weir_cancel_fired(token_);
	}
	weir_cancel *get() const noexcept
	{
		return token_;
	}

  private:
	explicit cancel(weir_cancel *token) noexcept : token_(token)
	{
	}
	weir_cancel *token_ = nullptr;
};

} // namespace weir

#endif
