package weir;

import java.nio.DoubleBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;

/** The tests of the glue. Ends with exit code 1, and a stack trace, at the first fault. */
final class Test {
    private static final long PATIENCE_NANOSECONDS = 20_000_000_000L;

    private static void check(boolean right, String what) {
        if (!right) {
            throw new AssertionError(what);
        }
    }

    private static WeirException failureOf(Runnable call) {
        try {
            call.run();
        } catch (WeirException failure) {
            return failure;
        }
        throw new AssertionError("the call did not fail");
    }

    private static void aViewIsNoCopyAndKeepsItsVersion() {
        Var var = new Var(1, 2, 3);
        View first = var.read();
        check(Camera.address(first.values()) == Camera.address(var.read().values()), "views of a version show the same memory");
        check(var.assign(4, 5, 6) == 2, "the next version is 2");
        View second = var.read();
        check(first.version() == 1 && first.values().equals(DoubleBuffer.wrap(new double[] {1, 2, 3})), "version 1 stays");
        check(second.version() == 2 && second.values().get(2) == 6, "version 2 is there");
        try {
            second.values().put(0, 7);
            throw new AssertionError("a view can be written to");
        } catch (ReadOnlyBufferException expected) {
            check(var.read().values().get(0) == 4, "nothing was written");
        }
        check(new Var().read().values().remaining() == 0, "a value without elements");
    }

    private static void aForeignThreadFeedsTheQueueAndItsCauseArrives() {
        Queue queue = new Queue(8);
        long camera = Camera.start(queue.queue, 1000, "the camera was unplugged");
        for (int i = 0; i < 1000; i++) {
            View frame = queue.get();
            check(frame.version() == 0 && frame.values().get(0) == i && frame.values().get(3) == i, "frame " + i);
        }
        WeirException drained = failureOf(queue::get);
        check(drained.status.equals("WEIR_OUT_OF_RANGE") && drained.getMessage().contains("the camera was unplugged"), drained.getMessage());
        check(Camera.stop(camera) == 1000, "all frames were sent");
        WeirException closed = failureOf(() -> queue.put(1));
        check(closed.status.equals("WEIR_CANCELLED") && closed.getMessage().contains("the camera was unplugged"), closed.getMessage());
    }

    private static void aCloseAndATimeoutEndAWait() throws Exception {
        Queue queue = new Queue(1);
        check(failureOf(() -> queue.get(Duration.ZERO)).status.equals("WEIR_DEADLINE_EXCEEDED"), "a timeout");
        check(failureOf(() -> queue.get(Duration.ofMillis(1))).status.equals("WEIR_DEADLINE_EXCEEDED"), "a timeout");
        FutureTask<WeirException> waiting = new FutureTask<>(() -> failureOf(queue::get));
        new Thread(waiting).start();
        queue.close("no more work");
        check(waiting.get().getMessage().contains("no more work"), waiting.get().getMessage());
        Queue cut = new Queue(1);
        cut.close("a" + "\u00e9".repeat(400)); // longer than a message, which ends within a letter
        check(failureOf(cut::get).getMessage().contains("a\u00e9\u00e9"), "a cause that is cut is still text");
        for (Runnable call : new Runnable[] {() -> new Var((double[]) null), () -> queue.put((double[]) null), () -> queue.close(null)}) {
            try {
                call.run();
                throw new AssertionError("null was accepted");
            } catch (NullPointerException expected) {
                check(true, "null is refused");
            }
        }
        check(failureOf(() -> new Queue(0)).status.equals("WEIR_INVALID_ARGUMENT"), "a capacity of 0");
    }

    private static void aThousandShortThreadsRead() throws Exception {
        Var var = new Var(7, 7, 7, 7);
        for (int started = 0; started < 1000; started += 50) {
            List<FutureTask<Double>> reads = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                reads.add(new FutureTask<>(() -> var.read().values().get(3)));
                new Thread(reads.get(i)).start();
            }
            for (FutureTask<Double> read : reads) {
                check(read.get() == 7, "a short thread read");
            }
        }
    }

    /** Returns when the Cleaner has ended what was not reachable at the call. */
    private static void awaitCleaner() {
        for (int twice = 0; twice < 2; twice++) { // what one collection finds is cleaned in any order
            AtomicBoolean cleaned = new AtomicBoolean();
            Weir.CLEANER.register(new Object(), () -> cleaned.set(true));
            for (long deadline = System.nanoTime() + PATIENCE_NANOSECONDS; !cleaned.get(); Thread.yield()) {
                check(System.nanoTime() < deadline, "the Cleaner does not clean");
                System.gc();
            }
        }
    }

    /** Takes the newest version and replaces it. The buffer alone keeps the value. */
    private static int takeVersion(Var var) {
        check(Camera.show(var.var, 9), "a frame is shown");
        DoubleBuffer values = var.read().values();
        var.assign(1);
        awaitCleaner();
        check(Camera.framesAlive() == 1 && values.get(0) == 9, "a buffer keeps its version");
        return Camera.thisThread();
    }

    private static int takeItems(Queue queue) {
        DoubleBuffer[] values = new DoubleBuffer[3];
        for (int i = 0; i < 3; i++) {
            values[i] = queue.get().values();
        }
        awaitCleaner();
        check(Camera.framesAlive() == 3 && values[0].get(0) == 0 && values[2].get(3) == 2, "buffers keep their items");
        return Camera.thisThread();
    }

    /** The thread that takes the values ends before they are released. */
    private static void theCleanerReleasesOnAnotherThread() throws Exception {
        awaitNoFrames(); // of the tests before
        Var var = new Var(0);
        FutureTask<Integer> taker = new FutureTask<>(() -> takeVersion(var));
        new Thread(taker).start();
        taker.get();
        awaitNoFrames(); // this thread collects what the Cleaner let go

        Queue queue = new Queue(3);
        long camera = Camera.start(queue.queue, 3, "over");
        taker = new FutureTask<>(() -> takeItems(queue));
        new Thread(taker).start();
        int takenBy = taker.get();
        Camera.stop(camera);
        awaitNoFrames();
        check(Camera.releasedBy() != takenBy && Camera.releasedBy() != Camera.thisThread(), "the Cleaner's thread released the items");
    }

    private static void awaitNoFrames() {
        for (long deadline = System.nanoTime() + PATIENCE_NANOSECONDS; Camera.framesAlive() != 0; Thread.yield()) {
            check(System.nanoTime() < deadline, "frames were never given back");
            System.gc();
        }
    }

    public static void main(String[] arguments) throws Exception {
        aViewIsNoCopyAndKeepsItsVersion();
        aForeignThreadFeedsTheQueueAndItsCauseArrives();
        aCloseAndATimeoutEndAWait();
        aThousandShortThreadsRead();
        theCleanerReleasesOnAnotherThread();
    }
}
