package weir;

import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;

/** A bounded queue of values, in which threads can wait. A wait ends by an item, a close or a timeout; not by Thread.interrupt(). */
public final class Queue {
    private static final long AS_LONG_AS_IT_TAKES = -1;
    final long queue;

    public Queue(int capacity) {
        long created = Weir.queueCreate(capacity);
        queue = created;
        Weir.CLEANER.register(this, () -> Weir.queueDestroy(created));
    }

    /** Waits for room. */
    public void put(double... values) {
        try {
            Weir.queuePut(queue, Objects.requireNonNull(values), AS_LONG_AS_IT_TAKES);
        } finally {
            Reference.reachabilityFence(this); // it is not destroyed during the call
        }
    }

    /** Waits for an item. Of a queue that is closed and empty the status is WEIR_OUT_OF_RANGE, and the message has the cause. */
    public View get() {
        return get(AS_LONG_AS_IT_TAKES);
    }

    /** The same, up to the timeout; then the status is WEIR_DEADLINE_EXCEEDED. */
    public View get(Duration timeout) {
        return get(Math.max(0, timeout.toNanos()));
    }

    private View get(long nanoseconds) {
        try {
            return new View(Weir.queueGet(queue, nanoseconds));
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Lets no item in any more. What is inside comes out. */
    public void close(String cause) {
        try {
            Weir.queueClose(queue, Objects.requireNonNull(cause));
        } finally {
            Reference.reachabilityFence(this);
        }
    }
}
