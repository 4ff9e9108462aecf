//! The tests of the glue. Those of whole values and of a queue between threads also run with arc-swap and crossbeam.

use arc_swap::ArcSwap;
use std::os::raw::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use weir::{ffi, Queue, Var};

#[link(name = "hosts_camera")]
extern "C" {
    fn camera_start(queue: *mut ffi::Queue, count: c_int, cause: *const c_char) -> *mut c_void;
    fn camera_stop(camera: *mut c_void) -> c_int;
    fn camera_show(var: *mut ffi::Var, pixel: f64) -> bool;
    fn camera_frames_alive() -> c_int;
    fn camera_released_by() -> c_int;
    fn camera_this_thread() -> c_int;
}

/// Frames of the camera are counted, so only one test may have any at a time.
static CAMERA: Mutex<()> = Mutex::new(());

#[test]
fn a_view_is_no_copy_and_keeps_its_version() {
    let var = Var::new(&[1.0, 2.0, 3.0]).unwrap();
    let (first, same) = (var.read(), var.read());
    assert_eq!(first.as_ptr(), same.as_ptr());
    assert_eq!(var.assign(&[4.0, 5.0, 6.0]).unwrap(), 2);
    let second = var.read();
    drop(var);
    assert_eq!((first.version(), &first[..]), (1, &[1.0, 2.0, 3.0][..]));
    assert_eq!((second.version(), &second[..]), (2, &[4.0, 5.0, 6.0][..]));
    assert!(Var::new(&[]).unwrap().read().is_empty());
}

#[test]
fn a_foreign_thread_feeds_the_queue_and_its_cause_arrives() {
    let _alone = CAMERA.lock().unwrap();
    let queue = Queue::new(8).unwrap();
    let camera = unsafe { camera_start(queue.as_ptr(), 1000, b"the camera was unplugged\0".as_ptr().cast()) };
    let mut seen = 0;
    for frame in queue.iter() {
        assert_eq!((frame.version(), &frame[..]), (0, &[f64::from(seen); 4][..]));
        seen += 1;
    }
    assert_eq!((seen, unsafe { camera_stop(camera) }), (1000, 1000));
    let error = queue.get().err().unwrap();
    assert_eq!(error.status_name(), "WEIR_OUT_OF_RANGE");
    assert!(error.to_string().contains("the camera was unplugged"), "{error}");
    let error = queue.put(&[1.0]).unwrap_err();
    assert_eq!(error.status_name(), "WEIR_CANCELLED");
    assert!(error.message.contains("the camera was unplugged"), "{error}");
}

#[test]
fn a_close_and_a_deadline_end_a_wait() {
    let queue = Queue::new(1).unwrap();
    assert_eq!(queue.get_within(Duration::ZERO).err().unwrap().status_name(), "WEIR_DEADLINE_EXCEEDED");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.get().err().unwrap());
        queue.close("no more work").unwrap();
        assert!(waiting.join().unwrap().message.contains("no more work"));
    });
    assert!(Queue::new(0).is_err());
}

#[test]
fn a_thousand_short_threads_read() {
    let var = Var::new(&[7.0; 4]).unwrap();
    for _ in 0..20 {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..50).map(|_| scope.spawn(|| var.read().iter().sum::<f64>())).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 28.0));
        });
    }
}

#[test]
fn views_are_dropped_by_another_thread() {
    let _alone = CAMERA.lock().unwrap();
    let var = Arc::new(Var::new(&[0.0]).unwrap());
    let queue = Queue::new(3).unwrap();
    let camera = unsafe { camera_start(queue.as_ptr(), 3, b"over\0".as_ptr().cast()) };
    assert!(unsafe { camera_show(var.as_ptr(), 9.0) });
    // The thread that takes the views ends before they are dropped.
    let views = thread::scope(|scope| scope.spawn(|| (var.read(), queue.iter().collect::<Vec<_>>())).join().unwrap());
    assert_eq!(unsafe { camera_stop(camera) }, 3);
    var.assign(&[1.0]).unwrap();
    assert_eq!(unsafe { camera_frames_alive() }, 4);
    assert_eq!((views.0[3], views.1[2][0]), (9.0, 2.0));
    thread::scope(|scope| {
        scope.spawn(|| {
            drop(views);
            assert_eq!(unsafe { (camera_frames_alive(), camera_released_by()) }, (0, unsafe { camera_this_thread() }));
        });
    });
}

/// Two threads look while this one publishes. Values are whole, and never go back.
fn readers_see_whole_values(name: &str, publish: impl Fn(f64), look: impl Fn(&mut dyn FnMut(&[f64])) + Sync) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = || {
            let (mut last, mut reads, start) = (0.0, 0, Instant::now());
            while !over.load(Relaxed) || reads == 0 {
                look(&mut |value| {
                    assert!(value.iter().all(|element| *element == value[0]) && value[0] >= last);
                    last = value[0];
                    reads += 1;
                });
            }
            start.elapsed().as_nanos() / reads
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        (1..=2000).for_each(|number| publish(f64::from(number)));
        over.store(true, Relaxed);
        println!("{name}: {:?} ns for a read", readers.map(|reader| reader.join().unwrap()));
    });
    look(&mut |value| assert_eq!(value[..], [2000.0; 64]));
}

#[test]
fn weir_readers_see_whole_values() {
    let var = Var::new(&[0.0; 64]).unwrap();
    readers_see_whole_values("weir::Var", |number| drop(var.assign(&[number; 64]).unwrap()), |see| see(&var.read()));
}

#[test]
fn arc_swap_readers_see_whole_values() {
    let shared = ArcSwap::from_pointee([0.0; 64]);
    readers_see_whole_values("ArcSwap", |number| shared.store(Arc::new([number; 64])), |see| see(&**shared.load()));
}

/// Two threads put 1 to 1000 each, and two get until the end.
fn all_arrive(name: &str, put: impl Fn(f64) + Sync, get: impl Fn() -> Option<f64> + Sync, close: impl FnOnce()) {
    let start = Instant::now();
    let sum: f64 = thread::scope(|scope| {
        let getters = [(); 2].map(|_| scope.spawn(|| std::iter::from_fn(&get).sum::<f64>()));
        let putters = [(); 2].map(|_| scope.spawn(|| (1..=1000).for_each(|number| put(f64::from(number)))));
        putters.into_iter().for_each(|putter| putter.join().unwrap());
        close();
        getters.into_iter().map(|getter| getter.join().unwrap()).sum()
    });
    println!("{name}: {} ns for an item", start.elapsed().as_nanos() / 2000);
    assert_eq!(sum, 1_001_000.0);
}

#[test]
fn all_arrive_through_weir() {
    let queue = Queue::new(16).unwrap();
    let get = || queue.get().ok().map(|item| item[0]);
    all_arrive("weir::Queue", |number| queue.put(&[number; 64]).unwrap(), get, || queue.close("done").unwrap());
}

#[test]
fn all_arrive_through_crossbeam() {
    let (sender, receiver) = crossbeam_channel::bounded::<Box<[f64; 64]>>(16);
    let sender = Mutex::new(Some(sender)); // the channel closes when its last sender is gone
    let put = |number| {
        let mine = sender.lock().unwrap().clone().unwrap();
        mine.send(Box::new([number; 64])).unwrap();
    };
    all_arrive("crossbeam_channel", put, || receiver.recv().ok().map(|item| item[0]), || drop(sender.lock().unwrap().take()));
}
