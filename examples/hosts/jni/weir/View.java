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
        ByteBuffer bytes = Weir.viewBytes(view);
        // Every buffer made from `bytes` refers to it. So the value is let go when none of them is reachable; an earlier
        // end, such as close(), would leave buffers that show memory of others.
        Weir.CLEANER.register(bytes, () -> Weir.viewRelease(view));
        values = bytes.asReadOnlyBuffer().order(ByteOrder.nativeOrder()).asDoubleBuffer();
    }

    public long version() {
        return version;
    }

    /** The elements, read-only, with a position of its own. It may be kept longer than the view. */
    public DoubleBuffer values() {
        return values.duplicate();
    }
}
