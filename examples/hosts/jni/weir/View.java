package weir;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;

/** A value in place, without a copy: a version of a variable, or an item of a queue, whose version is 0. It stays as it is. */
public final class View {
    private final long version;
    private final DoubleBuffer values;

    View(long view) {
        version = Weir.viewVersion(view);
        values = valuesOf(view);
    }

    private static DoubleBuffer valuesOf(long view) {
        boolean kept = false;
        try {
            // Every buffer made from `bytes` refers to it. So the value is let go when none of them is reachable; an earlier
            // end, such as close(), would leave buffers that show memory of others.
            ByteBuffer bytes = Weir.viewBytes(view);
            Weir.CLEANER.register(bytes, () -> Weir.viewRelease(view));
            kept = true;
            return bytes.asReadOnlyBuffer().order(ByteOrder.nativeOrder()).asDoubleBuffer();
        } finally {
            if (!kept) {
                Weir.viewRelease(view); // elements that are not of f64, or no memory
            }
        }
    }

    public long version() {
        return version;
    }

    /** The elements, read-only, with a position of its own. It may be kept longer than the view. */
    public DoubleBuffer values() {
        return values.duplicate();
    }
}
