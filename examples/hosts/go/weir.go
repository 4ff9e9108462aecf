// Package weir is Weir in Go: variables that are read in place, and queues of their values.
//
// A value is a row of float64. A view keeps its value until Release, or until the garbage collector
// finds it; both may happen on any thread. A goroutine that waits in a queue waits in Go's netpoller, as
// for a socket, and holds no thread.
package weir

/*
#cgo pkg-config: weir
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <weir/queue.h>
#include <weir/var.h>

static enum weir_status create_var(weir_tensor *initial, weir_var **out, weir_error *error)
{
	const struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F64};

	return weir_var_create(initial, &options, out, error);
}

static void drop_item(void *context, void *item)
{
	(void)context;
	weir_tensor_release(item);
}

static enum weir_status create_queue(size_t capacity, weir_queue **out, weir_error *error)
{
	const struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity, .drop = drop_item};

	return weir_queue_create(&options, out, error);
}

// The queue keeps its descriptor; the caller closes the duplicate.
static int duplicate(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static weir_tensor *version_tensor(const weir_read *read)
{
	return read->tensor;
}

static int is_readable(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, 0) == 1;
}
*/
import "C"

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Error is a status that is not WEIR_OK, and its message, in which the cause of a close appears.
type Error struct {
	Status  int
	Message string
}

// Error returns the name of the status and the message.
func (e *Error) Error() string {
	return C.GoString(C.weir_status_name(uint32(e.Status))) + ": " + e.Message
}

// Is makes errors.Is compare statuses: errors.Is(err, weir.ErrDrained).
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Status == e.Status
}

// For errors.Is.
var (
	ErrDrained = &Error{Status: C.WEIR_OUT_OF_RANGE, Message: "the queue is closed and empty"}
	ErrClosed  = &Error{Status: C.WEIR_CANCELLED, Message: "the queue is closed"}
)

func check(status uint32, err *C.weir_error) error {
	if status == C.WEIR_OK {
		return nil
	}
	return &Error{int(status), C.GoString(&err.message[0])}
}

// newTensor returns a tensor with a copy of the values.
func newTensor(values []float64) (*C.weir_tensor, error) {
	shape := C.weir_shape{rank: 1}
	shape.dims[0] = C.int64_t(len(values))
	var data unsafe.Pointer
	if len(values) > 0 {
		data = unsafe.Pointer(&values[0])
	}
	var tensor *C.weir_tensor
	status := C.weir_tensor_copy_of(C.WEIR_F64, &shape, data, nil, &tensor)
	return tensor, check(status, &C.weir_error{})
}

// View is a value in place, without a copy: a version of a variable, or an item of a queue, whose version is 0.
type View struct {
	read   C.weir_read
	tensor *C.weir_tensor
}

func newView(read C.weir_read, tensor *C.weir_tensor) *View {
	view := &View{read, tensor}
	runtime.SetFinalizer(view, (*View).Release)
	return view
}

// Release ends the view: its slices must not be used any more. Without it, the garbage collector does it, which does not
// know how large the value is: release large ones.
func (v *View) Release() {
	if v.read.version != 0 {
		C.weir_read_release(&v.read)
	} else {
		C.weir_tensor_release(v.tensor)
	}
	v.read, v.tensor = C.weir_read{}, nil
	runtime.SetFinalizer(v, nil)
}

// Version returns the number of the version.
func (v *View) Version() uint64 { return uint64(v.read.version) }

// Values shows the value to use. The slice is valid, and must not be written to, until use returns: a slice of memory
// that Go did not allocate does not keep the view alive.
func (v *View) Values(use func([]float64)) {
	if v.tensor == nil || C.weir_tensor_dtype(v.tensor) != C.WEIR_F64 {
		panic("weir: the view is released, or not of float64")
	}
	use(unsafe.Slice((*float64)(C.weir_tensor_data(v.tensor)), int(C.weir_tensor_element_count(v.tensor))))
	runtime.KeepAlive(v)
}

// Var is a variable.
type Var struct{ c *C.weir_var }

// NewVar returns a variable with the first version.
func NewVar(values []float64) (*Var, error) {
	first, err := newTensor(values)
	if err != nil {
		return nil, err
	}
	defer C.weir_tensor_release(first) // the variable takes a reference of its own
	v := &Var{}
	var why C.weir_error
	if err := check(C.create_var(first, &v.c, &why), &why); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(v, func(v *Var) { C.weir_var_destroy(v.c, nil) })
	return v, nil
}

// Read returns the newest version. It never waits.
func (v *Var) Read() (*View, error) {
	var read C.weir_read
	if err := check(C.weir_var_read(v.c, &read), &C.weir_error{}); err != nil {
		return nil, err
	}
	runtime.KeepAlive(v) // destroyed only after the last call
	return newView(read, C.version_tensor(&read)), nil
}

// Assign publishes the next version, and returns its number.
func (v *Var) Assign(values []float64) (uint64, error) {
	next, err := newTensor(values)
	if err != nil {
		return 0, err
	}
	defer C.weir_tensor_release(next)
	var published C.weir_read
	var why C.weir_error
	if err := check(C.weir_var_assign(v.c, next, C.WEIR_NO_DEADLINE, &published, &why), &why); err != nil {
		return 0, err
	}
	runtime.KeepAlive(v)
	version := uint64(published.version)
	C.weir_read_release(&published)
	return version, nil
}

// Queue is a bounded queue in which goroutines can wait.
type Queue struct {
	c                  *C.weir_queue
	readable, writable *poller
}

// NewQueue returns a queue.
func NewQueue(capacity int) (*Queue, error) {
	q := &Queue{}
	var why C.weir_error
	if err := check(C.create_queue(C.size_t(capacity), &q.c, &why), &why); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(q, func(q *Queue) { C.weir_queue_destroy(q.c, nil) })
	var readable, writable C.int
	if err := check(C.weir_queue_readable_fd(q.c, &readable, &why), &why); err != nil {
		return nil, err
	}
	if err := check(C.weir_queue_writable_fd(q.c, &writable, &why), &why); err != nil {
		return nil, err
	}
	var err error
	if q.readable, err = newPoller(readable); err != nil {
		return nil, err
	}
	if q.writable, err = newPoller(writable); err != nil {
		return nil, err
	}
	return q, nil
}

// Get waits for an item. The error of a queue that is closed and empty is ErrDrained, with the cause of the close.
func (q *Queue) Get() (*View, error) {
	var item unsafe.Pointer
	status, err := q.readable.until(func() uint32 { return C.weir_queue_try_dequeue(q.c, &item) })
	if err != nil {
		return nil, err
	}
	if status != C.WEIR_OK {
		return nil, q.failure(status)
	}
	runtime.KeepAlive(q)
	return newView(C.weir_read{}, (*C.weir_tensor)(item)), nil
}

// Put waits for room. The error of a queue that is closed is ErrClosed, with the cause of the close.
func (q *Queue) Put(values []float64) error {
	item, err := newTensor(values)
	if err != nil {
		return err
	}
	status, err := q.writable.until(func() uint32 { return C.weir_queue_try_enqueue(q.c, unsafe.Pointer(item)) })
	if err == nil && status != C.WEIR_OK {
		err = q.failure(status)
	}
	if err != nil {
		C.weir_tensor_release(item)
	}
	runtime.KeepAlive(q)
	return err
}

// failure asks a call that has messages for that of a status, because a try_ call has none. Of a closed queue, neither waits.
func (q *Queue) failure(status uint32) error {
	why := C.weir_error{code: status}
	var item unsafe.Pointer
	switch status {
	case C.WEIR_OUT_OF_RANGE:
		status = C.weir_queue_dequeue(q.c, &item, 0, nil, &why)
	case C.WEIR_CANCELLED:
		status = C.weir_queue_enqueue(q.c, nil, 0, nil, &why)
	}
	runtime.KeepAlive(q)
	return check(status, &why)
}

// Close lets no item in any more. What is inside comes out; then Get fails with a message that has the cause.
func (q *Queue) Close(cause string) error {
	why := C.weir_error{code: C.WEIR_CANCELLED}
	for i := 0; i < len(cause) && i < len(why.message)-1; i++ {
		why.message[i] = C.char(cause[i])
	}
	defer runtime.KeepAlive(q)
	return check(C.weir_queue_close(q.c, C.WEIR_CLOSE_DRAIN, &why), &C.weir_error{})
}

// poller waits for one of a queue's descriptors in Go's netpoller.
type poller struct {
	file *os.File
	conn syscall.RawConn
}

func newPoller(fd C.int) (*poller, error) {
	duplicate, err := C.duplicate(fd)
	if duplicate < 0 {
		return nil, err
	}
	file := os.NewFile(uintptr(duplicate), "weir.Queue") // the descriptor does not block, so this registers it
	conn, err := file.SyscallConn()
	return &poller{file, conn}, err
}

// until makes the call until it does not return WEIR_WOULD_BLOCK, and waits before each further one.
func (p *poller) until(call func() uint32) (status uint32, err error) {
	err = p.conn.Read(func(fd uintptr) bool {
		for {
			if status = call(); status != C.WEIR_WOULD_BLOCK {
				return true
			}
			// The netpoller is edge-triggered: it waits for the next change. So wait only if the descriptor is not
			// readable now. If it is, an item came during the call, or the call of another thread that took the
			// last one has not ended.
			if C.is_readable(C.int(fd)) == 0 {
				return false
			}
			runtime.Gosched()
		}
	})
	return status, err
}
