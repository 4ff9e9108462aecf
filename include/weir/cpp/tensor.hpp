/*
 * tensor.hpp - immutable tensors, and spans of their elements; part of weir/weir.hpp.
 */
#ifndef WEIR_CPP_TENSOR_HPP
#define WEIR_CPP_TENSOR_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/tensor.h>
#include <weir/cpp/result.hpp>

namespace weir
{

/* Elements of a tensor, in row-major order. A std::span is made from it (C++20). */
template <class T> class span
{
  public:
	using element_type = T;
	using value_type = std::remove_cv_t<T>;

	constexpr span() noexcept = default;
	constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size)
	{
	}
	constexpr T *data() const noexcept
	{
		return data_;
	}
	constexpr std::size_t size() const noexcept
	{
		return size_;
	}
	constexpr bool empty() const noexcept
	{
		return size_ == 0;
	}
	constexpr T *begin() const noexcept
	{
		return data_;
	}
	constexpr T *end() const noexcept
	{
		return data_ + size_;
	}
	constexpr T &operator[](std::size_t index) const noexcept
	{
		return data_[index];
	}

  private:
	T *data_ = nullptr;
	std::size_t size_ = 0;
};

namespace detail
{

template <class T> constexpr weir_dtype number_of() noexcept
{
	static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, long double>,
	              "no dtype has such elements");
	if constexpr (std::is_same_v<T, bool>)
		return WEIR_BOOL;
	else if constexpr (std::is_floating_point_v<T>)
		return sizeof(T) == 4 ? WEIR_F32 : WEIR_F64;
	else if constexpr (std::is_signed_v<T>)
		return sizeof(T) == 1   ? WEIR_I8
		       : sizeof(T) == 2 ? WEIR_I16
		       : sizeof(T) == 4 ? WEIR_I32
		                        : WEIR_I64;
	else
		return sizeof(T) == 1   ? WEIR_U8
		       : sizeof(T) == 2 ? WEIR_U16
		       : sizeof(T) == 4 ? WEIR_U32
		                        : WEIR_U64;
}

/* What a call says that wanted elements of another type, or has no tensor. */
inline weir_error other_elements(const weir_tensor *tensor, weir_dtype wanted) noexcept
{
	weir_error error;

	error.code = WEIR_INVALID_ARGUMENT;
	if (tensor == nullptr)
		(void)std::snprintf(error.message, sizeof(error.message), "the object is empty");
	else
		(void)std::snprintf(error.message, sizeof(error.message), "the elements are %s, not %s",
		                    weir_dtype_name(weir_tensor_dtype(tensor)), weir_dtype_name(wanted));
	return error;
}

/* The elements of a tensor, if they are of type T. */
template <class T> result<span<const T>> elements_of(const weir_tensor *tensor) noexcept
{
	if (tensor == nullptr || weir_tensor_dtype(tensor) != number_of<T>())
		return result<span<const T>>(other_elements(tensor, number_of<T>()));
	return span<const T>(static_cast<const T *>(weir_tensor_data(tensor)),
	                     static_cast<std::size_t>(weir_tensor_element_count(tensor)));
}

} // namespace detail

/* The dtype of elements of type T: bool, the integers and floats of 1 to 8 bytes. */
template <class T> inline constexpr weir_dtype dtype_of = detail::number_of<std::remove_cv_t<T>>();

/* A shape; more than WEIR_MAX_RANK dims make one that every call refuses. */
inline weir_shape shape(std::initializer_list<std::int64_t> dims) noexcept
{
	weir_shape made = {};
	std::uint32_t rank = 0;

	for (const std::int64_t dim : dims) {
		if (rank < WEIR_MAX_RANK)
			made.dims[rank] = dim;
		rank++;
	}
	made.rank = rank;
	return made;
}

/* A reference to an immutable tensor. Copies refer to the same one. */
class tensor
{
  public:
	tensor() noexcept = default;
	/* Takes over a reference. */
	static tensor adopt(weir_tensor *reference) noexcept
	{
		return tensor(reference);
	}
	/* The caller keeps its reference. */
	static tensor share(weir_tensor *reference) noexcept
	{
		return tensor(weir_tensor_retain(reference));
	}
	/* A copy of `count` elements of that shape; errors also: WEIR_INVALID_ARGUMENT for another number. */
	template <class T>
	static result<tensor> copy_of(const T *data, std::size_t count,
	                              const weir_shape &shape) noexcept
	{
		weir_tensor *made;
		std::int64_t elements;
		status code = weir_shape_element_count(&shape, &elements);

		if (code == WEIR_OK && static_cast<std::uint64_t>(elements) != count)
			code = WEIR_INVALID_ARGUMENT;
		if (code == WEIR_OK)
			code = weir_tensor_copy_of(dtype_of<T>, &shape, data, nullptr, &made);
		if (code != WEIR_OK)
			return result<tensor>(code);
		return tensor(made);
	}
	template <class T> static result<tensor> copy_of(const T *data, std::size_t count) noexcept
	{
		return copy_of(data, count, weir::shape({static_cast<std::int64_t>(count)}));
	}
	template <class T> static result<tensor> copy_of(std::initializer_list<T> values) noexcept
	{
		return copy_of(values.begin(), values.size());
	}
	template <class T> static result<tensor> scalar(T value) noexcept
	{
		return copy_of(&value, 1, weir_shape_scalar);
	}
	/*
	 * Moves the elements into a tensor without a copy of them. On failure `elements` is unchanged. The
	 * vector is destroyed with the last reference, on the thread that drops it.
	 */
	template <class T>
	static result<tensor> wrap(std::vector<T> &&elements, const weir_shape &shape) noexcept
	{
		static_assert(!std::is_same_v<T, bool>, "a std::vector<bool> has no elements in memory");
		std::unique_ptr<std::vector<T>> kept(new (std::nothrow) std::vector<T>());
		weir_tensor *made;
		std::int64_t count;
		status code = weir_shape_element_count(&shape, &count);

		if (code == WEIR_OK && static_cast<std::uint64_t>(count) != elements.size())
			code = WEIR_INVALID_ARGUMENT;
		if (code == WEIR_OK && kept == nullptr)
			code = WEIR_RESOURCE_EXHAUSTED;
		if (code == WEIR_OK)
			code = weir_tensor_wrap(dtype_of<T>, &shape, elements.data(), destroy_vector<T>,
			                        kept.get(), nullptr, &made);
		if (code != WEIR_OK)
			return result<tensor>(code);
		kept->swap(elements); /* the elements stay where they are */
		(void)kept.release();
		return tensor(made);
	}
	template <class T> static result<tensor> wrap(std::vector<T> &&elements) noexcept
	{
		const auto count = static_cast<std::int64_t>(elements.size());

		return wrap(std::move(elements), weir::shape({count}));
	}
	tensor(const tensor &other) noexcept : tensor_(weir_tensor_retain(other.tensor_))
	{
	}
	tensor(tensor &&other) noexcept : tensor_(std::exchange(other.tensor_, nullptr))
	{
	}
	tensor &operator=(tensor other) noexcept
	{
		std::swap(tensor_, other.tensor_);
		return *this;
	}
	~tensor()
	{
		weir_tensor_release(tensor_);
	}

	explicit operator bool() const noexcept
	{
		return tensor_ != nullptr;
	}
	/* Errors: WEIR_INVALID_ARGUMENT if the elements have another type, or the object is empty. */
	template <class T> result<span<const T>> as() const noexcept
	{
		return detail::elements_of<T>(tensor_);
	}
	/* Of an object that is not empty. */
	const weir_shape &shape() const noexcept
	{
		return *weir_tensor_shape(tensor_);
	}
	weir_tensor *get() const noexcept
	{
		return tensor_;
	}

  private:
	template <class T> static void destroy_vector(void *context, void *) noexcept
	{
		delete static_cast<std::vector<T> *>(context);
	}
	explicit tensor(weir_tensor *reference) noexcept : tensor_(reference)
	{
	}
	weir_tensor *tensor_ = nullptr;
};

} // namespace weir

#endif
