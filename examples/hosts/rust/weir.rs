//! Weir in Rust: variables that are read in place, and queues of their values.
//!
//! A value is a row of `f64`. A [`View`] borrows nothing: it may outlive its variable, and be dropped by another thread. Everything
//! here is `Send` and `Sync`, because every call of Weir may come from any thread; `Drop` runs when no other call is under way,
//! which is what `weir_var_destroy` and `weir_queue_destroy` ask for.

use std::ffi::{c_void, CStr};
use std::fmt;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::time::Duration;

/// What the headers declare. An options struct may end early: the fields that it lacks are 0.
pub mod ffi {
    use std::ffi::c_void;
    use std::os::raw::{c_char, c_int};

    #[repr(C)]
    pub struct Var {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Queue {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Tensor {
        _opaque: [u8; 0],
    }

    #[repr(C)]
    pub struct Read {
        pub tensor: *mut Tensor,
        pub version: u64,
        pub hold: *mut c_void,
    }

    #[repr(C)]
    pub struct Error {
        pub code: c_int,
        pub message: [c_char; 252],
    }

    #[repr(C)]
    pub struct Shape {
        pub rank: u32,
        pub dims: [i64; 8],
    }

    #[repr(C)]
    pub struct VarOptions {
        pub struct_size: usize,
        pub name: *const c_char,
        pub dtype: c_int,
    }

    #[repr(C)]
    pub struct QueueOptions {
        pub struct_size: usize,
        pub capacity: usize,
        pub order: c_int,
        pub flags: u32,
        pub min_after_dequeue: usize,
        pub seed: u64,
        pub name: *const c_char,
        pub key: *const c_void,
        pub key_context: *mut c_void,
        pub drop: unsafe extern "C" fn(context: *mut c_void, item: *mut c_void),
    }

    pub const OK: c_int = 0;
    pub const CANCELLED: c_int = 1;
    pub const WOULD_BLOCK: c_int = 13;
    pub const F64: c_int = 9;
    pub const CLOSE_DRAIN: c_int = 0;
    pub const NO_DEADLINE: u64 = u64::MAX;

    extern "C" {
        pub fn weir_status_name(status: c_int) -> *const c_char;
        pub fn weir_deadline_in(nanoseconds: u64) -> u64;
        pub fn weir_tensor_copy_of(
            dtype: c_int,
            shape: *const Shape,
            data: *const c_void,
            allocator: *const c_void,
            out: *mut *mut Tensor,
        ) -> c_int;
        pub fn weir_tensor_dtype(tensor: *const Tensor) -> c_int;
        pub fn weir_tensor_element_count(tensor: *const Tensor) -> i64;
        pub fn weir_tensor_data(tensor: *const Tensor) -> *const c_void;
        pub fn weir_tensor_release(tensor: *mut Tensor);
        pub fn weir_var_create(initial: *mut Tensor, options: *const VarOptions, out: *mut *mut Var, error: *mut Error) -> c_int;
        pub fn weir_var_destroy(var: *mut Var, error: *mut Error) -> c_int;
        pub fn weir_var_read(var: *mut Var, read: *mut Read) -> c_int;
        pub fn weir_var_assign(var: *mut Var, value: *mut Tensor, deadline_ns: u64, published: *mut Read, error: *mut Error) -> c_int;
        pub fn weir_read_release(read: *mut Read);
        pub fn weir_queue_create(options: *const QueueOptions, out: *mut *mut Queue, error: *mut Error) -> c_int;
        pub fn weir_queue_destroy(queue: *mut Queue, error: *mut Error) -> c_int;
        pub fn weir_queue_enqueue(queue: *mut Queue, item: *mut c_void, deadline_ns: u64, cancel: *mut c_void, error: *mut Error) -> c_int;
        pub fn weir_queue_dequeue(
            queue: *mut Queue,
            item: *mut *mut c_void,
            deadline_ns: u64,
            cancel: *mut c_void,
            error: *mut Error,
        ) -> c_int;
        pub fn weir_queue_close(queue: *mut Queue, mode: c_int, cause: *const Error) -> c_int;
    }
}

/// A status that is not `WEIR_OK`, and its message, in which the cause of a close appears.
#[derive(Debug, Clone)]
pub struct Error {
    pub status: i32,
    pub message: String,
}

impl Error {
    /// The name of the status, such as "WEIR_OUT_OF_RANGE".
    pub fn status_name(&self) -> &'static str {
        // The names are static, and ASCII.
        unsafe { CStr::from_ptr(ffi::weir_status_name(self.status)) }.to_str().unwrap_or("?")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status_name(), self.message)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

/// Makes a call that may fill an error.
fn check(call: impl FnOnce(*mut ffi::Error) -> i32) -> Result<()> {
    let mut error = ffi::Error { code: ffi::OK, message: [0; 252] };
    match call(&mut error) {
        ffi::OK => Ok(()),
        // A message is always terminated.
        status => Err(Error { status, message: unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy().into_owned() }),
    }
}

/// A reference to a tensor.
struct Tensor(NonNull<ffi::Tensor>);

impl Tensor {
    fn copy_of(values: &[f64]) -> Result<Tensor> {
        let mut dims = [0; 8];
        dims[0] = values.len() as i64;
        let shape = ffi::Shape { rank: 1, dims };
        let mut out = ptr::null_mut();
        check(|_| unsafe { ffi::weir_tensor_copy_of(ffi::F64, &shape, values.as_ptr().cast(), ptr::null(), &mut out) })?;
        Ok(Tensor(NonNull::new(out).expect("weir_tensor_copy_of succeeded")))
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        unsafe { ffi::weir_tensor_release(self.0.as_ptr()) }
    }
}

/// A value in place, without a copy: a version of a variable, or an item of a queue, whose version is 0. It stays as it is.
pub struct View(ffi::Read);

// A tensor never changes, and any thread may release a handle.
unsafe impl Send for View {}
unsafe impl Sync for View {}

impl View {
    pub fn version(&self) -> u64 {
        self.0.version
    }
}

impl Deref for View {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        unsafe {
            assert_eq!(ffi::weir_tensor_dtype(self.0.tensor), ffi::F64);
            match ffi::weir_tensor_element_count(self.0.tensor) {
                0 => &[], // the data may be NULL
                count => std::slice::from_raw_parts(ffi::weir_tensor_data(self.0.tensor).cast(), count as usize),
            }
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        match self.0.version {
            0 => unsafe { ffi::weir_tensor_release(self.0.tensor) },
            _ => unsafe { ffi::weir_read_release(&mut self.0) },
        }
    }
}

pub struct Var(NonNull<ffi::Var>);

unsafe impl Send for Var {}
unsafe impl Sync for Var {}

impl Var {
    pub fn new(values: &[f64]) -> Result<Var> {
        let options = ffi::VarOptions { struct_size: std::mem::size_of::<ffi::VarOptions>(), name: ptr::null(), dtype: ffi::F64 };
        let initial = Tensor::copy_of(values)?; // the variable takes a reference of its own
        let mut out = ptr::null_mut();
        check(|error| unsafe { ffi::weir_var_create(initial.0.as_ptr(), &options, &mut out, error) })?;
        Ok(Var(NonNull::new(out).expect("weir_var_create succeeded")))
    }

    /// The newest version. Never waits. Panics if there is no memory for the first call of a thread.
    pub fn read(&self) -> View {
        let mut read = ffi::Read { tensor: ptr::null_mut(), version: 0, hold: ptr::null_mut() };
        let status = unsafe { ffi::weir_var_read(self.0.as_ptr(), &mut read) };
        assert_eq!(status, ffi::OK, "no memory for the first call of this thread");
        View(read)
    }

    /// Publishes the next version, and returns its number.
    pub fn assign(&self, values: &[f64]) -> Result<u64> {
        let next = Tensor::copy_of(values)?;
        let mut published = ffi::Read { tensor: ptr::null_mut(), version: 0, hold: ptr::null_mut() };
        check(|error| unsafe { ffi::weir_var_assign(self.0.as_ptr(), next.0.as_ptr(), ffi::NO_DEADLINE, &mut published, error) })?;
        Ok(View(published).version())
    }

    /// For calls in C. Valid as long as the variable.
    pub fn as_ptr(&self) -> *mut ffi::Var {
        self.0.as_ptr()
    }
}

impl Drop for Var {
    fn drop(&mut self) {
        unsafe { ffi::weir_var_destroy(self.0.as_ptr(), ptr::null_mut()) };
    }
}

/// A bounded queue in which threads can wait.
pub struct Queue(NonNull<ffi::Queue>);

unsafe impl Send for Queue {}
unsafe impl Sync for Queue {}

unsafe extern "C" fn drop_item(_: *mut c_void, item: *mut c_void) {
    ffi::weir_tensor_release(item.cast());
}

impl Queue {
    pub fn new(capacity: usize) -> Result<Queue> {
        let options = ffi::QueueOptions {
            struct_size: std::mem::size_of::<ffi::QueueOptions>(),
            capacity,
            order: 0,
            flags: 0,
            min_after_dequeue: 0,
            seed: 0,
            name: ptr::null(),
            key: ptr::null(),
            key_context: ptr::null_mut(),
            drop: drop_item,
        };
        let mut out = ptr::null_mut();
        check(|error| unsafe { ffi::weir_queue_create(&options, &mut out, error) })?;
        Ok(Queue(NonNull::new(out).expect("weir_queue_create succeeded")))
    }

    /// Waits for room.
    pub fn put(&self, values: &[f64]) -> Result<()> {
        let item = Tensor::copy_of(values)?;
        let pointer = item.0.as_ptr().cast();
        check(|error| unsafe { ffi::weir_queue_enqueue(self.0.as_ptr(), pointer, ffi::NO_DEADLINE, ptr::null_mut(), error) })?;
        std::mem::forget(item); // it belongs to the queue
        Ok(())
    }

    /// Waits for an item.
    pub fn get(&self) -> Result<View> {
        self.get_until(ffi::NO_DEADLINE)
    }

    pub fn get_within(&self, patience: Duration) -> Result<View> {
        let nanoseconds = u64::try_from(patience.as_nanos()).unwrap_or(ffi::NO_DEADLINE);
        self.get_until(unsafe { ffi::weir_deadline_in(nanoseconds) })
    }

    fn get_until(&self, deadline_ns: u64) -> Result<View> {
        let mut item = ptr::null_mut();
        check(|error| unsafe { ffi::weir_queue_dequeue(self.0.as_ptr(), &mut item, deadline_ns, ptr::null_mut(), error) })?;
        Ok(View(ffi::Read { tensor: item.cast(), version: 0, hold: ptr::null_mut() }))
    }

    /// The items up to the close of the queue.
    pub fn iter(&self) -> impl Iterator<Item = View> + '_ {
        std::iter::from_fn(|| self.get().ok())
    }

    /// Lets no item in any more. What is inside comes out; then `get` fails with a message that has the cause.
    pub fn close(&self, cause: &str) -> Result<()> {
        let mut error = ffi::Error { code: ffi::CANCELLED, message: [0; 252] };
        for (place, byte) in error.message[..251].iter_mut().zip(cause.bytes()) {
            *place = byte as _;
        }
        check(|_| unsafe { ffi::weir_queue_close(self.0.as_ptr(), ffi::CLOSE_DRAIN, &error) })
    }

    /// For calls in C. Valid as long as the queue.
    pub fn as_ptr(&self) -> *mut ffi::Queue {
        self.0.as_ptr()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        unsafe { ffi::weir_queue_destroy(self.0.as_ptr(), ptr::null_mut()) };
    }
}
