/*
 * weir.hpp - Weir for C++17 and later: tensors, variables, views, snapshots and queues as objects that
 * release themselves. Header only, over the C calls, which stay usable beside it: get() gives the C
 * object of a tensor, a view, a var and a cancel token, and raw() that of a queue.
 *
 * Use it in C++ programs. It adds ownership, spans, chrono and std::stop_token; what a call does, its
 * progress and its errors are those of the C call that it names. From C use weir/weir.h.
 *
 *     weir::var config = weir::var::create(weir::tensor::copy_of<float>({1, 2, 3}).value()).value();
 *
 *     if (auto now = config.read())               // codes: a result is true or has a status
 *         use(now->as<float>().value());          // exceptions: value() throws weir::failure
 *
 * | call                     | C call                  | allocates beyond it                        |
 * |--------------------------|-------------------------|--------------------------------------------|
 * | tensor::copy_of, scalar  | weir_tensor_copy_of     | nothing                                    |
 * | tensor::wrap             | weir_tensor_wrap        | an object to keep the vector               |
 * | var::read, view::as      | weir_var_read, weir_tensor_data | nothing                            |
 * | var::assign, compare_assign, update | those of weir_var | nothing                               |
 * | take_snapshot            | weir_var_snapshot       | nothing                                    |
 * | queue::put, get, try_*   | weir_queue_enqueue, ... | nothing                                    |
 * | queue::put, get with a std::stop_token | the same  | a token, if the call has to wait           |
 * | queue::emplace           | weir_queue_enqueue      | the item                                   |
 *
 * Results. Each call that can fail returns a result<T>: a value, or a status with a message. It is
 * [[nodiscard]]. value() throws weir::failure; it exists only where exceptions are enabled. Without
 * exceptions, test the result and use *. The value of a failure is an empty object.
 *
 * Moved-from objects are empty: tests are false, and calls on them return WEIR_INVALID_ARGUMENT. They
 * can be assigned to and destroyed. Threads: as in C; one object (not what it refers to) is used by one
 * thread at a time, unless all calls on it are const. Calls on a var and a queue are const.
 *
 * Exceptions of your functions. A function that update() calls may throw: nothing is published, and the
 * exception leaves update(). Destructors of tensors and items run on any thread that releases, writes or
 * collects, inside of C: they must not throw (a vector's and a T's do not, or the program is ill-formed).
 * @since 0.1
 */
#ifndef WEIR_WEIR_HPP
#define WEIR_WEIR_HPP

#include <weir/cpp/deadline.hpp>
#include <weir/cpp/queue.hpp>
#include <weir/cpp/result.hpp>
#include <weir/cpp/tensor.hpp>
#include <weir/cpp/var.hpp>

#endif
