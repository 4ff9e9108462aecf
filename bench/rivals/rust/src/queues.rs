//! crossbeam's queues of 64-bit values: ArrayQueue (bounded), SegQueue (unbounded), and a bounded channel, which can also wait.

use crossbeam_channel::{Receiver, Sender};
use crossbeam_queue::{ArrayQueue, SegQueue};
use std::os::raw::{c_int, c_void};

trait Ring {
    fn with_capacity(capacity: usize) -> Self;
    fn enqueue(&self, value: u64) -> bool;
    fn dequeue(&self) -> Option<u64>;
}

impl Ring for ArrayQueue<u64> {
    fn with_capacity(capacity: usize) -> Self {
        ArrayQueue::new(capacity)
    }
    fn enqueue(&self, value: u64) -> bool {
        self.push(value).is_ok()
    }
    fn dequeue(&self) -> Option<u64> {
        self.pop()
    }
}

impl Ring for SegQueue<u64> {
    fn with_capacity(_: usize) -> Self {
        SegQueue::new()
    }
    fn enqueue(&self, value: u64) -> bool {
        self.push(value);
        true
    }
    fn dequeue(&self) -> Option<u64> {
        self.pop()
    }
}

struct Channel {
    sender: Sender<u64>,
    receiver: Receiver<u64>,
}

impl Ring for Channel {
    fn with_capacity(capacity: usize) -> Self {
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
        Channel { sender, receiver }
    }
    fn enqueue(&self, value: u64) -> bool {
        self.sender.try_send(value).is_ok()
    }
    fn dequeue(&self) -> Option<u64> {
        self.receiver.try_recv().ok()
    }
}

fn create<R: Ring>(capacity: usize) -> *mut c_void {
    Box::into_raw(Box::new(R::with_capacity(capacity))).cast()
}

unsafe fn destroy<R: Ring>(ring: *mut c_void) {
    drop(Box::from_raw(ring.cast::<R>()));
}

#[inline(always)]
unsafe fn enqueue<R: Ring>(ring: *mut c_void, value: u64) -> c_int {
    c_int::from((*ring.cast::<R>()).enqueue(value))
}

#[inline(always)]
unsafe fn dequeue<R: Ring>(ring: *mut c_void, value: *mut u64) -> c_int {
    match (*ring.cast::<R>()).dequeue() {
        Some(got) => {
            *value = got;
            1
        }
        None => 0,
    }
}

/// The same as bench_pairs() of bench.h.
unsafe fn pairs<R: Ring>(ring: *mut c_void, count: u64) -> u64 {
    let ring = &*ring.cast::<R>();
    let mut sum = 0u64;
    for value in 1..=count {
        if !ring.enqueue(value) {
            return u64::MAX;
        }
        match ring.dequeue() {
            Some(got) => sum = sum.wrapping_add(got),
            None => return u64::MAX,
        }
    }
    sum
}

macro_rules! ring {
    ($queue:ty, $create:ident, $destroy:ident, $enqueue:ident, $dequeue:ident, $pairs:ident) => {
        #[no_mangle]
        pub extern "C" fn $create(capacity: usize) -> *mut c_void {
            create::<$queue>(capacity)
        }
        #[no_mangle]
        pub unsafe extern "C" fn $destroy(ring: *mut c_void) {
            destroy::<$queue>(ring)
        }
        #[no_mangle]
        pub unsafe extern "C" fn $enqueue(ring: *mut c_void, value: u64) -> c_int {
            enqueue::<$queue>(ring, value)
        }
        #[no_mangle]
        pub unsafe extern "C" fn $dequeue(ring: *mut c_void, value: *mut u64) -> c_int {
            dequeue::<$queue>(ring, value)
        }
        #[no_mangle]
        pub unsafe extern "C" fn $pairs(ring: *mut c_void, count: u64) -> u64 {
            pairs::<$queue>(ring, count)
        }
    };
}

ring!(ArrayQueue<u64>, rust_array_create, rust_array_destroy, rust_array_enqueue, rust_array_dequeue, rust_array_pairs);
ring!(SegQueue<u64>, rust_seg_create, rust_seg_destroy, rust_seg_enqueue, rust_seg_dequeue, rust_seg_pairs);
ring!(Channel, rust_channel_create, rust_channel_destroy, rust_channel_enqueue, rust_channel_dequeue, rust_channel_pairs);

/// Waits for room.
#[no_mangle]
pub unsafe extern "C" fn rust_channel_send(channel: *mut c_void, value: u64) {
    // The object holds both ends of the channel, so the channel cannot be disconnected.
    let _ = (*channel.cast::<Channel>()).sender.send(value);
}

/// Waits for a value.
#[no_mangle]
pub unsafe extern "C" fn rust_channel_receive(channel: *mut c_void, value: *mut u64) -> c_int {
    match (*channel.cast::<Channel>()).receiver.recv() {
        Ok(got) => {
            *value = got;
            1
        }
        Err(_) => 0,
    }
}
