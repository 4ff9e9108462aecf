/*
 * boost_carrier.cc - boost::interprocess::message_queue: a priority queue under a mutex in shared
 * memory, which has a name.
 */
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/version.hpp>
#include <cstdlib>
#include <new>
#include <string>
#include <unistd.h>

#include "rivals.h"

namespace
{

using boost::interprocess::message_queue;

struct carrier {
	explicit carrier(size_t capacity, size_t size)
		: name("weir-bench-" + std::to_string(getpid())), bytes(size),
		  queue(boost::interprocess::create_only, fresh(), capacity, size)
	{
	}

	~carrier()
	{
		message_queue::remove(name.c_str());
	}

	const char *fresh() const
	{
		message_queue::remove(name.c_str());
		return name.c_str();
	}

	std::string name;
	size_t bytes;
	message_queue queue;
};

void *create(size_t capacity, size_t bytes)
{
	try {
		return new carrier(capacity, bytes);
	} catch (...) {
		std::exit(3);
	}
}

void destroy(void *self)
{
	delete static_cast<carrier *>(self);
}

void send(void *context, const void *message)
{
	carrier *self = static_cast<carrier *>(context);

	self->queue.send(message, self->bytes, 0);
}

void receive(void *context, void *message)
{
	carrier *self = static_cast<carrier *>(context);
	message_queue::size_type size;
	unsigned priority;

	self->queue.receive(message, self->bytes, size, priority);
}

} // namespace

extern "C" const carrier_contender boost_carrier_contender = {
	{"boost::interprocess::message_queue", "Boost " BOOST_LIB_VERSION, nullptr, 0},
	0,
	create,
	nullptr,
	destroy,
	send,
	receive,
	nullptr,
	nullptr,
};
