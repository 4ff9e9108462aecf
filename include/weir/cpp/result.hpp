/*
 * result.hpp - a value, or the status and message of a failure; part of weir/weir.hpp.
 */
#ifndef WEIR_CPP_RESULT_HPP
#define WEIR_CPP_RESULT_HPP

#include <cstring>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include <weir/status.h>

#if __cplusplus < 201703L
#error "weir/weir.hpp needs C++17"
#endif
#if defined(__cpp_exceptions)
#define WEIR_HPP_HAS_EXCEPTIONS 1
#else
#define WEIR_HPP_HAS_EXCEPTIONS 0
#endif

namespace weir
{

using status = enum ::weir_status;

/* What value() throws. what() is the message of Weir, or the name of the status if there is none. */
class failure : public std::exception
{
  public:
	explicit failure(const weir_error &error) noexcept : error_(error)
	{
	}
	const char *what() const noexcept override
	{
		return error_.message[0] != '\0' ? error_.message : weir_status_name(error_.code);
	}
	status code() const noexcept
	{
		return error_.code;
	}

  private:
	weir_error error_;
};

/*
 * A value, or the status and message of a failure. After a failure the value is there, too, and empty:
 * so a result has no union to look after, and costs the calls in which it is returned nothing.
 */
template <class T> class [[nodiscard]] result
{
	static_assert(std::is_nothrow_default_constructible_v<T> &&
	                  std::is_nothrow_move_constructible_v<T>,
	              "what Weir returns can be empty, and moves without exceptions");

  public:
	/* cppcheck-suppress uninitMemberVar ; error_ is read only after a failure, and to clear it takes time */
	result(T &&value) noexcept : value_(std::move(value)), code_(WEIR_OK)
	{
	}
	/* Made in place, for a call that fills the value, and then calls fail() or not. */
	/* cppcheck-suppress uninitMemberVar ; error_ is read only after a failure, and to clear it takes time */
	explicit result(std::in_place_t place) noexcept : value_(place), code_(WEIR_OK)
	{
	}
	explicit result(const weir_error &error) noexcept : value_(), code_(error.code), error_(error)
	{
	}
	/* A failure without a message. */
	explicit result(enum weir_status code) noexcept : value_()
	{
		fail(code);
	}
	result(result &&other) noexcept : value_(std::move(other.value_)), code_(other.code_)
	{
		copy_error(other);
	}
	result &operator=(result &&other) noexcept
	{
		if (this != &other) {
			code_ = other.code_;
			value_ = std::move(other.value_);
			copy_error(other);
		}
		return *this;
	}
	result(const result &) = delete;
	result &operator=(const result &) = delete;
	~result() = default;

	/* Says that the call failed, without a message. */
	void fail(enum weir_status code) noexcept
	{
		code_ = code;
		error_.code = code;
		error_.message[0] = '\0';
	}

	explicit operator bool() const noexcept
	{
		return code_ == WEIR_OK;
	}
	enum weir_status code() const noexcept
	{
		return code_;
	}
	/* "" if there is none. */
	const char *message() const noexcept
	{
		return code_ == WEIR_OK ? "" : error_.message;
	}
	T &operator*() &noexcept
	{
		return value_;
	}
	const T &operator*() const &noexcept
	{
		return value_;
	}
	T &&operator*() &&noexcept
	{
		return std::move(value_);
	}
	T *operator->() noexcept
	{
		return &value_;
	}
	const T *operator->() const noexcept
	{
		return &value_;
	}
#if WEIR_HPP_HAS_EXCEPTIONS
	T &value() &
	{
		check();
		return value_;
	}
	T &&value() &&
	{
		check();
		return std::move(value_);
	}
#endif

  private:
#if WEIR_HPP_HAS_EXCEPTIONS
	void check() const
	{
		if (code_ != WEIR_OK)
			throw failure(error_);
	}
#endif
	/* The error is not written, nor read, after a success. */
	void copy_error(const result &other) noexcept
	{
		if (code_ != WEIR_OK)
			std::memcpy(&error_, &other.error_, sizeof(error_));
	}

	T value_; /* first, so that what C fills lies as if it were alone */
	enum weir_status code_;
	weir_error error_;
};

/* Nothing, or the status and message of a failure. */
template <> class [[nodiscard]] result<void>
{
  public:
	/* The message is read only if the code is none of success. */
	result(enum weir_status code, const weir_error &error) noexcept
	{
		error_.code = code;
		error_.message[0] = '\0';
		if (code != WEIR_OK)
			std::memcpy(error_.message, error.message, sizeof(error_.message));
	}
	explicit result(enum weir_status code = WEIR_OK) noexcept
	{
		error_.code = code;
		error_.message[0] = '\0';
	}

	explicit operator bool() const noexcept
	{
		return error_.code == WEIR_OK;
	}
	enum weir_status code() const noexcept
	{
		return error_.code;
	}
	const char *message() const noexcept
	{
		return error_.message;
	}
#if WEIR_HPP_HAS_EXCEPTIONS
	void value() const
	{
		if (error_.code != WEIR_OK)
			throw failure(error_);
	}
#endif

  private:
	weir_error error_;
};

} // namespace weir

#endif
