/*
 * queue.hpp - FIFO queues of objects that have one owner; part of weir/weir.hpp.
 */
#ifndef WEIR_CPP_QUEUE_HPP
#define WEIR_CPP_QUEUE_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <weir/queue.h>
#include <weir/cpp/deadline.hpp>

#if __cplusplus >= 202002L && defined(__has_include)
#if __has_include(<stop_token>)
#include <stop_token>
#endif
#endif
#if defined(__cpp_lib_jthread)
#define WEIR_HPP_HAS_STOP_TOKEN 1
#else
#define WEIR_HPP_HAS_STOP_TOKEN 0
#endif

namespace weir
{

struct queue_options {
	std::size_t capacity = 0; /* required */
	const char *name = nullptr;
	bool fair = false;
};

/*
 * A FIFO queue of objects that have one owner. It moves pointers, never a T: so a T whose move throws,
 * or that cannot be moved, is no special case. An item that a call could not enqueue stays the caller's.
 * The destructor destroys the items that remain. It is a fault of the program, and leaks, if an
 * operation still waits in the queue.
 */
template <class T> class queue
{
	static_assert(std::is_nothrow_destructible_v<T>, "items are destroyed inside of C");

  public:
	queue() noexcept = default;
	static result<queue> create(const queue_options &chosen) noexcept
	{
		struct weir_queue_options options = {};
		weir_error error;
		weir_queue *made;

		options.struct_size = sizeof(options);
		options.capacity = chosen.capacity;
		options.flags = chosen.fair ? std::uint32_t{WEIR_QUEUE_FAIR} : 0;
		options.name = chosen.name;
		options.drop = drop;
		if (weir_queue_create(&options, &made, &error) != WEIR_OK)
			return result<queue>(error);
		return queue(made);
	}
	queue(queue &&other) noexcept : queue_(std::exchange(other.queue_, nullptr))
	{
	}
	queue &operator=(queue &&other) noexcept
	{
		if (this != &other) {
			(void)weir_queue_destroy(queue_, nullptr);
			queue_ = std::exchange(other.queue_, nullptr);
		}
		return *this;
	}
	queue(const queue &) = delete;
	queue &operator=(const queue &) = delete;
	~queue()
	{
		(void)weir_queue_destroy(queue_, nullptr);
	}

	explicit operator bool() const noexcept
	{
		return queue_ != nullptr;
	}
	/* Errors also: WEIR_INVALID_ARGUMENT if there is no item. `item` is empty after success only. */
	status try_put(std::unique_ptr<T> &item) const noexcept
	{
		const status code =
			item != nullptr ? weir_queue_try_enqueue(queue_, item.get()) : WEIR_INVALID_ARGUMENT;

		return given(code, item);
	}
	status try_put(std::unique_ptr<T> &&item) const noexcept
	{
		return try_put(item);
	}
	result<std::unique_ptr<T>> try_get() const noexcept
	{
		void *item;
		const status code = weir_queue_try_dequeue(queue_, &item);

		if (code != WEIR_OK)
			return result<std::unique_ptr<T>>(code);
		return owned(item);
	}
	result<void> put(std::unique_ptr<T> &item, deadline until = {},
	                 const cancel &token = {}) const noexcept
	{
		return put_with(item, until, token.get());
	}
	result<void> put(std::unique_ptr<T> &&item, deadline until = {},
	                 const cancel &token = {}) const noexcept
	{
		return put_with(item, until, token.get());
	}
	result<std::unique_ptr<T>> get(deadline until = {}, const cancel &token = {}) const noexcept
	{
		return get_with(until, token.get());
	}
#if WEIR_HPP_HAS_STOP_TOKEN
	/* A request to stop ends the wait with WEIR_CANCELLED. Errors also: WEIR_RESOURCE_EXHAUSTED. */
	result<void> put(std::unique_ptr<T> &item, const std::stop_token &stop,
	                 deadline until = {}) const
	{
		const status code = stop.stop_requested() ? WEIR_CANCELLED : try_put(item);

		if (code != WEIR_WOULD_BLOCK)
			return result<void>(code);
		result<cancel> token = cancel::create();
		if (!token)
			return result<void>(token.code());
		std::stop_callback fire(stop, [&token]() noexcept { (void)token->fire(); });
		return put_with(item, until, token->get());
	}
	result<void> put(std::unique_ptr<T> &&item, const std::stop_token &stop,
	                 deadline until = {}) const
	{
		return put(item, stop, until);
	}
	result<std::unique_ptr<T>> get(const std::stop_token &stop, deadline until = {}) const
	{
		if (stop.stop_requested())
			return result<std::unique_ptr<T>>(WEIR_CANCELLED);
		result<std::unique_ptr<T>> got = try_get();
		if (got.code() != WEIR_WOULD_BLOCK)
			return got;
		result<cancel> token = cancel::create();
		if (!token)
			return result<std::unique_ptr<T>>(token.code());
		std::stop_callback fire(stop, [&token]() noexcept { (void)token->fire(); });
		return get_with(until, token->get());
	}
#endif
	/* Makes the item in place and puts it. An exception of its constructor leaves the queue as it was. */
	template <class... Arguments> result<void> emplace(Arguments &&...arguments) const
	{
		std::unique_ptr<T> item(new (std::nothrow) T(std::forward<Arguments>(arguments)...));

		return item != nullptr ? put_with(item, no_deadline, nullptr)
		                       : result<void>(WEIR_RESOURCE_EXHAUSTED);
	}
	/* Later puts return WEIR_CANCELLED, gets WEIR_OUT_OF_RANGE after the last item. */
	status close(enum weir_close_mode mode = WEIR_CLOSE_DRAIN,
	             const weir_error *cause = nullptr) const noexcept
	{
		return weir_queue_close(queue_, mode, cause);
	}
	bool closed() const noexcept
	{
		return weir_queue_closed(queue_);
	}
	std::size_t size_approx() const noexcept
	{
		return weir_queue_size_approx(queue_);
	}
	weir_queue *raw() const noexcept
	{
		return queue_;
	}

  private:
	static void drop(void *, void *item) noexcept
	{
		delete static_cast<T *>(item);
	}
	static std::unique_ptr<T> owned(void *item) noexcept
	{
		return std::unique_ptr<T>(static_cast<T *>(item));
	}
	/* After success the item is the queue's. */
	static status given(status code, std::unique_ptr<T> &item) noexcept
	{
		if (code == WEIR_OK)
			(void)item.release();
		return code;
	}
	result<void> put_with(std::unique_ptr<T> &item, deadline until,
	                      weir_cancel *token) const noexcept
	{
		weir_error error;

		if (item == nullptr)
			return result<void>(WEIR_INVALID_ARGUMENT);
		return result<void>(
			given(weir_queue_enqueue(queue_, item.get(), until.ns(), token, &error), item), error);
	}
	result<std::unique_ptr<T>> get_with(deadline until, weir_cancel *token) const noexcept
	{
		weir_error error;
		void *item;

		if (weir_queue_dequeue(queue_, &item, until.ns(), token, &error) != WEIR_OK)
			return result<std::unique_ptr<T>>(error);
		return owned(item);
	}

	explicit queue(weir_queue *made) noexcept : queue_(made)
	{
	}
	weir_queue *queue_ = nullptr;
};

} // namespace weir

#endif
