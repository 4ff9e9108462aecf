package weir;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;

/** The calls of libweir: weir.c. */
final class Weir {
    /** Its thread ends what is not reachable any more. A cleaning action must not refer to its object. */
    static final Cleaner CLEANER = Cleaner.create();

    static {
        System.loadLibrary("weir_jni");
    }

    private Weir() {}

    static native void viewRelease(long view);
    static native long viewVersion(long view);
    static native ByteBuffer viewBytes(long view);

    static native long varCreate(double[] values);
    static native void varDestroy(long var);
    static native long varRead(long var);
    static native long varAssign(long var, double[] values);

    static native long queueCreate(int capacity);
    static native void queueDestroy(long queue);
    static native void queuePut(long queue, double[] values, long nanoseconds);
    static native long queueGet(long queue, long nanoseconds);
    static native void queueClose(long queue, String cause);
}
