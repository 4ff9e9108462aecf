/*
 * var.hpp - variables of tensors, views of their versions, snapshots; part of weir/weir.hpp.
 */
#ifndef WEIR_CPP_VAR_HPP
#define WEIR_CPP_VAR_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <type_traits>
#include <utility>

#include <weir/var.h>
#include <weir/cpp/deadline.hpp>
#include <weir/cpp/tensor.hpp>

namespace weir
{

/* Keeps one version of a variable alive. Not copied; copy its tensor() to keep the value longer. */
class view
{
  public:
	view() noexcept : read_()
	{
	}
	/* Takes over a handle. */
	static view adopt(const weir_read &read) noexcept
	{
		return view(read);
	}
	view(view &&other) noexcept : read_(std::exchange(other.read_, weir_read()))
	{
	}
	view &operator=(view &&other) noexcept
	{
		if (this != &other) {
			weir_read_release(&read_);
			read_ = std::exchange(other.read_, weir_read());
		}
		return *this;
	}
	view(const view &) = delete;
	view &operator=(const view &) = delete;
	~view()
	{
		if (read_.tensor != nullptr)
			weir_read_release(&read_);
	}

	explicit operator bool() const noexcept
	{
		return read_.tensor != nullptr;
	}
	/* The elements, valid as long as this object. Errors as tensor::as(). */
	template <class T> result<span<const T>> as() const noexcept
	{
		return detail::elements_of<T>(read_.tensor);
	}
	/* A reference that outlives this object. */
	weir::tensor tensor() const noexcept
	{
		return weir::tensor::share(read_.tensor);
	}
	std::uint64_t version() const noexcept
	{
		return read_.version;
	}
	const weir_read &get() const noexcept
	{
		return read_;
	}

  private:
	friend class var;
	friend class result<view>;
	explicit view(const weir_read &read) noexcept : read_(read)
	{
	}
	/* Not cleared yet: a read fills it, or clears it when it fails. */
	/* cppcheck-suppress uninitMemberVarPrivate ; so that a read that succeeds does not clear it first */
	explicit view(std::in_place_t) noexcept
	{
	}
	weir_read read_;
};

/* What a variable is created with: see struct weir_var_options. */
struct var_options {
	const char *name = nullptr;
	const weir_shape *shape = nullptr;
	std::size_t history = 0;
};

/*
 * A variable of tensors. The destructor destroys it; if a watch is still on it, which is a fault of the
 * program, it leaks instead.
 */
class var
{
  public:
	var() noexcept = default;
	/* The dtype is that of `initial`. */
	static result<var> create(const tensor &initial, const var_options &chosen = {}) noexcept
	{
		struct weir_var_options options = {};
		weir_error error;
		weir_var *made;

		if (!initial)
			return result<var>(WEIR_INVALID_ARGUMENT);
		options.struct_size = sizeof(options);
		options.name = chosen.name;
		options.dtype = weir_tensor_dtype(initial.get());
		options.shape = chosen.shape;
		options.history = chosen.history;
		if (weir_var_create(initial.get(), &options, &made, &error) != WEIR_OK)
			return result<var>(error);
		return var(made);
	}
	/* Takes over a variable. */
	static var adopt(weir_var *made) noexcept
	{
		return var(made);
	}
	var(var &&other) noexcept : var_(std::exchange(other.var_, nullptr))
	{
	}
	var &operator=(var &&other) noexcept
	{
		if (this != &other) {
			(void)weir_var_destroy(var_, nullptr);
			var_ = std::exchange(other.var_, nullptr);
		}
		return *this;
	}
	var(const var &) = delete;
	var &operator=(const var &) = delete;
	~var()
	{
		(void)weir_var_destroy(var_, nullptr);
	}

	explicit operator bool() const noexcept
	{
		return var_ != nullptr;
	}
	/* The newest version. */
	result<view> read() const noexcept
	{
		result<view> taken{std::in_place};
		const status code = weir_var_read(var_, &taken->read_);

		if (code != WEIR_OK) {
			taken->read_ = weir_read();
			taken.fail(code);
		}
		return taken;
	}
	/* WEIR_WOULD_BLOCK if there is no version above `version`. */
	result<view> try_read_newer(std::uint64_t version) const noexcept
	{
		result<view> taken{std::in_place};
		const status code = weir_var_try_read_newer(var_, version, &taken->read_);

		if (code != WEIR_OK) {
			taken->read_ = weir_read();
			taken.fail(code);
		}
		return taken;
	}
	std::uint64_t version() const noexcept
	{
		return weir_var_version(var_);
	}
	result<void> assign(const tensor &value, deadline until = {}) const noexcept
	{
		weir_error error;

		return result<void>(weir_var_assign(var_, value.get(), until.ns(), nullptr, &error), error);
	}
	/* If the newest version has the number `expected`; otherwise WEIR_ABORTED. */
	result<void> compare_assign(std::uint64_t expected, const tensor &value,
	                            deadline until = {}) const noexcept
	{
		weir_error error;

		return result<void>(
			weir_var_compare_assign(var_, expected, value.get(), until.ns(), nullptr, &error),
			error);
	}
	/*
	 * Replaces the value by fn(current), atomically; fn is called again if another thread was first. It
	 * gets the current tensor and returns a tensor or a result<tensor>, whose failure ends the update.
	 */
	template <class Function> result<void> update(Function &&fn, deadline until = {}) const
	{
		updating<std::remove_reference_t<Function>> work{fn};
		weir_error error;
		const status code = weir_var_update(var_, work.run, &work, until.ns(), nullptr, &error);

#if WEIR_HPP_HAS_EXCEPTIONS
		if (work.thrown)
			std::rethrow_exception(work.thrown);
#endif
		return result<void>(code, error);
	}
	weir_var *get() const noexcept
	{
		return var_;
	}

  private:
	template <class Function> struct updating {
		Function &fn;
#if WEIR_HPP_HAS_EXCEPTIONS
		std::exception_ptr thrown = nullptr;
#endif
		/* No exception passes through the C library. */
		static status run(void *context, const weir_read *current, weir_tensor **next,
		                  weir_error *error) noexcept
		{
			auto *self = static_cast<updating *>(context);

#if WEIR_HPP_HAS_EXCEPTIONS
			try {
				return self->compute(current, next, error);
			} catch (...) {
				self->thrown = std::current_exception();
				return WEIR_CANCELLED;
			}
#else
			return self->compute(current, next, error);
#endif
		}
		status compute(const weir_read *current, weir_tensor **next, weir_error *error)
		{
			result<tensor> computed = fn(tensor::share(current->tensor));

			if (!computed || !*computed) {
				const status code = computed ? WEIR_INVALID_ARGUMENT : computed.code();

				if (error != nullptr) {
					error->code = code;
					std::memcpy(error->message, computed ? "" : computed.message(),
					            std::strlen(computed ? "" : computed.message()) + 1);
				}
				return code;
			}
			*next = weir_tensor_retain(computed->get());
			return WEIR_OK;
		}
	};

	explicit var(weir_var *made) noexcept : var_(made)
	{
	}
	weir_var *var_ = nullptr;
};

/* Versions of several variables as of one instant. */
template <std::size_t N> class snapshot
{
  public:
	snapshot() noexcept : reads_()
	{
	}
	snapshot(snapshot &&other) noexcept : reads_(std::exchange(other.reads_, {}))
	{
	}
	snapshot &operator=(snapshot &&other) noexcept
	{
		if (this != &other) {
			weir_read_release_many(reads_.data(), N);
			reads_ = std::exchange(other.reads_, {});
		}
		return *this;
	}
	snapshot(const snapshot &) = delete;
	snapshot &operator=(const snapshot &) = delete;
	~snapshot()
	{
		weir_read_release_many(reads_.data(), N);
	}

	/* Of variable `index`, in the order of the arguments of take_snapshot(). Errors as tensor::as(). */
	template <class T> result<span<const T>> as(std::size_t index) const noexcept
	{
		return detail::elements_of<T>(index < N ? reads_[index].tensor : nullptr);
	}
	std::uint64_t version(std::size_t index) const noexcept
	{
		return index < N ? reads_[index].version : 0;
	}

	static result<snapshot> take(const std::array<weir_var *, N> &vars) noexcept
	{
		snapshot taken;
		weir_error error;

		if (weir_var_snapshot(vars.data(), N, taken.reads_.data(), &error) != WEIR_OK) {
			taken.reads_ = {}; /* on failure no handle is held */
			return result<snapshot>(error);
		}
		return taken;
	}

  private:
	std::array<weir_read, N> reads_;
};

template <class... Vars>
result<snapshot<sizeof...(Vars)>> take_snapshot(const Vars &...vars) noexcept
{
	static_assert((std::is_same_v<Vars, var> && ...), "a snapshot is of variables");
	return snapshot<sizeof...(Vars)>::take({vars.get()...});
}

} // namespace weir

#endif
