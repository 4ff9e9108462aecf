//! Shared values: arc-swap, once with a guard (load) and once with a reference (load_full), and crossbeam-epoch. As in reads.hh, the
//! number of words is compiled in. The choice of the number costs a call through a table per loop of reads, not per read.

use arc_swap::ArcSwap;
use crossbeam_epoch::{self as epoch, Atomic, Owned};
use std::os::raw::c_void;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::Arc;

trait Shared {
    fn read_many(&self, count: u64) -> u64;
    fn scan_many(&self, count: u64) -> u64;
    fn replace(&self, value: u64);
}

fn torn<const N: usize>(words: &[u64; N]) -> u64 {
    u64::from(words.iter().fold(0, |differ, word| differ | (word ^ words[0])) != 0)
}

struct Guarded<const N: usize>(ArcSwap<[u64; N]>);

impl<const N: usize> Shared for Guarded<N> {
    fn read_many(&self, count: u64) -> u64 {
        (0..count).fold(0, |sum, _| sum + self.0.load()[0])
    }
    fn scan_many(&self, count: u64) -> u64 {
        (0..count).fold(0, |sum, _| sum + torn(&**self.0.load()))
    }
    fn replace(&self, value: u64) {
        self.0.store(Arc::new([value; N]));
    }
}

struct Counted<const N: usize>(ArcSwap<[u64; N]>);

impl<const N: usize> Shared for Counted<N> {
    fn read_many(&self, count: u64) -> u64 {
        (0..count).fold(0, |sum, _| sum + self.0.load_full()[0])
    }
    fn scan_many(&self, count: u64) -> u64 {
        (0..count).fold(0, |sum, _| sum + torn(&*self.0.load_full()))
    }
    fn replace(&self, value: u64) {
        self.0.store(Arc::new([value; N]));
    }
}

struct Epochs<const N: usize>(Atomic<[u64; N]>);

impl<const N: usize> Shared for Epochs<N> {
    fn read_many(&self, count: u64) -> u64 {
        (0..count).fold(0, |sum, _| {
            let guard = epoch::pin();
            sum + unsafe { self.0.load(Acquire, &guard).deref() }[0]
        })
    }
    fn scan_many(&self, count: u64) -> u64 {
        (0..count).fold(0, |sum, _| {
            let guard = epoch::pin();
            sum + torn(unsafe { self.0.load(Acquire, &guard).deref() })
        })
    }
    fn replace(&self, value: u64) {
        let guard = epoch::pin();
        let old = self.0.swap(Owned::new([value; N]), AcqRel, &guard);
        unsafe { guard.defer_destroy(old) };
    }
}

impl<const N: usize> Drop for Epochs<N> {
    fn drop(&mut self) {
        let last = std::mem::replace(&mut self.0, Atomic::null());
        // No other thread is at work.
        drop(unsafe { last.into_owned() });
    }
}

fn guarded<const N: usize>() -> Box<dyn Shared> {
    Box::new(Guarded(ArcSwap::from_pointee([0u64; N])))
}

fn counted<const N: usize>() -> Box<dyn Shared> {
    Box::new(Counted(ArcSwap::from_pointee([0u64; N])))
}

fn epochs<const N: usize>() -> Box<dyn Shared> {
    Box::new(Epochs(Atomic::new([0u64; N])))
}

/// The sizes that the suites use.
fn of_size(bytes: usize, makers: [fn() -> Box<dyn Shared>; 4]) -> *mut c_void {
    let shared = match bytes / 8 {
        8 => makers[0](),
        64 => makers[1](),
        512 => makers[2](),
        8192 => makers[3](),
        _ => std::process::exit(3),
    };
    Box::into_raw(Box::new(shared)).cast()
}

#[no_mangle]
pub extern "C" fn rust_arc_swap_load_create(bytes: usize) -> *mut c_void {
    of_size(bytes, [guarded::<8>, guarded::<64>, guarded::<512>, guarded::<8192>])
}

#[no_mangle]
pub extern "C" fn rust_arc_swap_load_full_create(bytes: usize) -> *mut c_void {
    of_size(bytes, [counted::<8>, counted::<64>, counted::<512>, counted::<8192>])
}

#[no_mangle]
pub extern "C" fn rust_epoch_create(bytes: usize) -> *mut c_void {
    of_size(bytes, [epochs::<8>, epochs::<64>, epochs::<512>, epochs::<8192>])
}

#[no_mangle]
pub unsafe extern "C" fn rust_shared_destroy(shared: *mut c_void) {
    drop(Box::from_raw(shared.cast::<Box<dyn Shared>>()));
}

#[no_mangle]
pub unsafe extern "C" fn rust_shared_read_many(shared: *mut c_void, count: u64) -> u64 {
    (*shared.cast::<Box<dyn Shared>>()).read_many(count)
}

#[no_mangle]
pub unsafe extern "C" fn rust_shared_scan_many(shared: *mut c_void, count: u64) -> u64 {
    (*shared.cast::<Box<dyn Shared>>()).scan_many(count)
}

#[no_mangle]
pub unsafe extern "C" fn rust_shared_replace(shared: *mut c_void, value: u64) {
    (*shared.cast::<Box<dyn Shared>>()).replace(value)
}

/// A value of 64 bytes that each update replaces by one computed from it, with arc-swap's rcu().
type Words = ArcSwap<[u64; 8]>;

#[no_mangle]
pub extern "C" fn rust_rcu_create() -> *mut c_void {
    Box::into_raw(Box::new(Words::from_pointee([0; 8]))).cast()
}

#[no_mangle]
pub unsafe extern "C" fn rust_rcu_destroy(words: *mut c_void) {
    drop(Box::from_raw(words.cast::<Words>()));
}

#[no_mangle]
pub unsafe extern "C" fn rust_rcu_update_many(words: *mut c_void, count: u64) {
    for _ in 0..count {
        (*words.cast::<Words>()).rcu(|old| old.map(|word| word + 1));
    }
}

#[no_mangle]
pub unsafe extern "C" fn rust_rcu_value(words: *mut c_void) -> u64 {
    (*words.cast::<Words>()).load()[0]
}
