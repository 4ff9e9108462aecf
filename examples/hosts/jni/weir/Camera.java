package weir;

import java.nio.Buffer;

/** The foreign thread of the tests: camera.h. */
final class Camera {
    static {
        System.loadLibrary("camera_jni");
    }

    private Camera() {}

    static native long start(long queue, int count, String cause);
    static native int stop(long camera);
    static native boolean show(long var, double pixel);
    static native int framesAlive();
    static native int releasedBy();
    static native int thisThread();
    static native long address(Buffer buffer);
}
