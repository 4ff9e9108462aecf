package weir

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 20 * time.Second // until a test that waits for the garbage collector fails

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (v *View) at(i int) (value float64) {
	v.Values(func(values []float64) { value = values[i] })
	return value
}

func TestAViewIsNoCopyAndKeepsItsVersion(t *testing.T) {
	v := must(NewVar([]float64{1, 2, 3}))
	first, same := must(v.Read()), must(v.Read())
	first.Values(func(a []float64) {
		same.Values(func(b []float64) {
			if len(a) != 3 || &a[0] != &b[0] {
				t.Error("two views of a version do not show the same memory")
			}
		})
	})
	if version := must(v.Assign([]float64{4, 5, 6})); version != 2 {
		t.Error("version", version)
	}
	second := must(v.Read())
	if first.Version() != 1 || first.at(2) != 3 || second.Version() != 2 || second.at(2) != 6 {
		t.Error("a version changed")
	}
	second.Release()
	second.Release() // does nothing
	defer func() {
		if recover() == nil {
			t.Error("a view that is released shows something")
		}
	}()
	second.at(0)
}

func TestAForeignThreadFeedsTheQueueAndItsCauseArrives(t *testing.T) {
	q := must(NewQueue(8))
	camera := startCamera(q, 1000, "the camera was unplugged")
	for i := 0; i < 1000; i++ {
		frame := must(q.Get())
		if frame.Version() != 0 || frame.at(0) != float64(i) || frame.at(3) != float64(i) {
			t.Fatal("frame", i, "is", frame.at(0))
		}
		frame.Release()
	}
	_, err := q.Get()
	if !errors.Is(err, ErrDrained) || !strings.Contains(err.Error(), "the camera was unplugged") {
		t.Error(err)
	}
	if sent := camera.stop(); sent != 1000 {
		t.Error("the camera sent", sent)
	}
	err = q.Put([]float64{1})
	if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "the camera was unplugged") {
		t.Error(err)
	}
}

// change makes the descriptor readable while a goroutine waits for that. So the netpoller has reported it, and will not again.
func (p *poller) seeChange(change func()) {
	waits, done := make(chan struct{}), make(chan error)
	looks := 0
	go func() {
		done <- p.conn.Read(func(uintptr) bool {
			if looks++; looks == 1 {
				close(waits)
			}
			return looks > 1
		})
	}()
	<-waits
	change()
	must(0, <-done)
}

// An item may come just after a call found none, while the descriptor still shows the one before it: then nothing changes, and the
// netpoller alone would wait for ever. Here the first call only says that it found none, so the test need not hit that moment.
func TestAWaitBeginsWithALookAtTheDescriptor(t *testing.T) {
	q := must(NewQueue(1))
	q.readable.seeChange(func() { must(0, q.Put([]float64{1})) })
	endsAtOnce(t, q.readable)
	q.writable.seeChange(func() { must(q.Get()).Release() })
	endsAtOnce(t, q.writable)
}

func endsAtOnce(t *testing.T, p *poller) {
	must(0, p.file.SetReadDeadline(time.Now().Add(patience)))
	calls := 0
	status, err := p.until(func() uint32 {
		if calls++; calls == 1 {
			return wouldBlock
		}
		return 0
	})
	if status != 0 || err != nil || calls != 2 {
		t.Fatal("the wait ended with status", status, "and", err, "after", calls, "calls")
	}
}

func threadsOfProcess() int { return len(must(os.ReadDir("/proc/self/task"))) }

func TestGoroutinesThatWaitHoldNoThread(t *testing.T) {
	const waiters = 1000
	q, full := must(NewQueue(8)), must(NewQueue(1))
	must(0, full.Put([]float64{0}))
	var waiting sync.WaitGroup
	sums := make(chan float64, waiters)
	waiting.Add(2 * waiters)
	for i := 0; i < waiters; i++ {
		go func() { defer waiting.Done(); sums <- must(q.Get()).at(0) }()
		go func() {
			defer waiting.Done()
			if err := full.Put([]float64{1}); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}()
	}
	for i := 0; i < waiters; i++ {
		must(0, q.Put([]float64{float64(i)}))
		if i == waiters/2 && threadsOfProcess() > 100 {
			t.Error(threadsOfProcess(), "threads")
		}
	}
	must(0, full.Close("the shop is shut"))
	waiting.Wait()
	sum := 0.0
	for i := 0; i < waiters; i++ {
		sum += <-sums
	}
	if sum != waiters*(waiters-1)/2 {
		t.Error("sum", sum)
	}
}

// A goroutine that ends with a locked thread ends this thread.
func onThreadThatEnds(run func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer close(done)
		run()
	}()
	<-done
}

func TestAThousandShortThreads(t *testing.T) {
	v := must(NewVar([]float64{7, 7, 7, 7}))
	for i := 0; i < 1000; i++ {
		onThreadThatEnds(func() {
			view := must(v.Read())
			defer view.Release()
			if view.at(0)+view.at(3) != 14 {
				t.Error("a short thread read", view.at(0))
			}
		})
	}
}

func TestTheFinalizerReleasesOnAnotherThread(t *testing.T) {
	v, q := must(NewVar([]float64{0})), must(NewQueue(3))
	camera := startCamera(q, 3, "over")
	taker := 0
	onThreadThatEnds(func() {
		taker = thisThread()
		if !v.show(9) {
			t.Error("no frame")
		}
		views := []*View{must(v.Read()), must(q.Get()), must(q.Get()), must(q.Get())}
		must(v.Assign([]float64{1}))
		if alive := framesAlive(); alive != 4 || views[0].at(0) != 9 || views[3].at(0) != 2 {
			t.Error(alive, "frames are alive, not 4")
		}
		runtime.KeepAlive(views)
	})
	camera.stop()
	for deadline := time.Now().Add(patience); framesAlive() != 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal(framesAlive(), "frames were never given back")
		}
	}
	if releasedBy() == taker {
		t.Error("released by the thread that took the views")
	}
}
