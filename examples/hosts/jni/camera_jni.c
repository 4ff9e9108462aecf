/*
 * camera_jni.c - the native methods of weir.Camera, for the tests.
 */
#include "../camera.h"
#include "weir_Camera.h" /* javac writes it */

JNIEXPORT jlong JNICALL Java_weir_Camera_start(JNIEnv *env, jclass type, jlong queue, jint count, jstring cause)
{
	const char *text = (*env)->GetStringUTFChars(env, cause, NULL);
	camera *started = text != NULL ? camera_start((weir_queue *)(intptr_t)queue, count, text) : NULL;

	(void)type;
	if (text != NULL)
		(*env)->ReleaseStringUTFChars(env, cause, text);
	return (jlong)(intptr_t)started;
}

JNIEXPORT jint JNICALL Java_weir_Camera_stop(JNIEnv *env, jclass type, jlong started)
{
	(void)env, (void)type;
	return camera_stop((camera *)(intptr_t)started);
}

JNIEXPORT jboolean JNICALL Java_weir_Camera_show(JNIEnv *env, jclass type, jlong var, jdouble pixel)
{
	(void)env, (void)type;
	return camera_show((weir_var *)(intptr_t)var, pixel);
}

JNIEXPORT jint JNICALL Java_weir_Camera_framesAlive(JNIEnv *env, jclass type)
{
	(void)env, (void)type;
	return camera_frames_alive();
}

JNIEXPORT jint JNICALL Java_weir_Camera_releasedBy(JNIEnv *env, jclass type)
{
	(void)env, (void)type;
	return camera_released_by();
}

JNIEXPORT jint JNICALL Java_weir_Camera_thisThread(JNIEnv *env, jclass type)
{
	(void)env, (void)type;
	return camera_this_thread();
}

JNIEXPORT jlong JNICALL Java_weir_Camera_address(JNIEnv *env, jclass type, jobject buffer)
{
	(void)type;
	return (jlong)(intptr_t)(*env)->GetDirectBufferAddress(env, buffer);
}
