/*
 * weir.c - the native methods of weir.Weir: variables and queues for Java, by JNI.
 *
 *     javac -h . -d . weir/Weir.java weir/Var.java weir/Queue.java weir/View.java weir/WeirException.java
 *     cc -shared -fPIC -o libweir_jni.so weir.c -I. -I$JAVA_HOME/include -I$JAVA_HOME/include/linux \
 *         $(pkg-config --cflags --libs weir)
 *
 * Objects are numbers here: the address of a weir_var, of a weir_queue, or of a weir_read in memory of malloc().
 * Nothing is kept between calls, so any thread may make any call. A thread that waits is in native code, where the
 * garbage collector does not wait for it.
 */
#include <stdlib.h>
#include <string.h>
#include <weir/queue.h>
#include <weir/var.h>

#include "weir_Weir.h" /* javac writes it */

static void *pointer_of(jlong address)
{
	return (void *)(intptr_t)address;
}

static jlong address_of(const void *pointer)
{
	return (jlong)(intptr_t)pointer;
}

/* A text that was cut may end within a letter (of 2 or 3 bytes), which JNI does not take. */
static void end_with_letter(char *text)
{
	size_t length = strlen(text), begin = length;

	while (begin > 0 && ((unsigned char)text[begin - 1] & 0xC0) == 0x80)
		begin--; /* bytes that go on with a letter */
	if (begin > 0 && (unsigned char)text[begin - 1] >= 0xC0 &&
	    length - begin < ((unsigned char)text[begin - 1] >= 0xE0 ? 2 : 1))
		text[begin - 1] = '\0';
}

/* Returns NULL after an exception. */
static jstring message_of(JNIEnv *env, const weir_error *error)
{
	weir_error whole = {.message = ""};

	if (error != NULL)
		whole = *error;
	end_with_letter(whole.message);
	return (*env)->NewStringUTF(env, whole.message);
}

/* Where a call of JNI fails, an exception is pending already, and no other call may be made. */
static void throw_status(JNIEnv *env, enum weir_status status, const weir_error *error)
{
	jstring words = (*env)->NewStringUTF(env, weir_status_name(status));
	jstring message = words == NULL ? NULL : message_of(env, error);
	jclass type = message == NULL ? NULL : (*env)->FindClass(env, "weir/WeirException");
	jmethodID create =
		type == NULL ? NULL : (*env)->GetMethodID(env, type, "<init>", "(Ljava/lang/String;Ljava/lang/String;)V");
	jobject exception = create == NULL ? NULL : (*env)->NewObject(env, type, create, words, message);

	if (exception != NULL)
		(void)(*env)->Throw(env, exception);
}

/* Returns NULL after an exception. */
static weir_tensor *tensor_of(JNIEnv *env, jdoubleArray values)
{
	const weir_shape shape = {1, {(*env)->GetArrayLength(env, values)}};
	weir_tensor_builder *builder;
	weir_tensor *tensor;
	weir_error error;
	enum weir_status status = weir_tensor_builder_create(WEIR_F64, &shape, NULL, &builder, &error);

	if (status != WEIR_OK) {
		throw_status(env, status, &error);
		return NULL;
	}
	(*env)->GetDoubleArrayRegion(env, values, 0, (jsize)shape.dims[0], weir_tensor_builder_data(builder));
	(void)weir_tensor_builder_finish(builder, &tensor);
	return tensor;
}

/* ---- views: a handle on a version, or an item of a queue, whose version is 0 ---- */

static void release(weir_read *read)
{
	if (read->version != 0)
		weir_read_release(read);
	else
		weir_tensor_release(read->tensor);
}

/* Takes the handle over. Returns 0 after an exception. */
static jlong view_of(JNIEnv *env, weir_read read)
{
	weir_read *view = malloc(sizeof(*view));

	if (view == NULL) {
		release(&read);
		throw_status(env, WEIR_RESOURCE_EXHAUSTED, NULL);
		return 0;
	}
	*view = read;
	return address_of(view);
}

JNIEXPORT void JNICALL Java_weir_Weir_viewRelease(JNIEnv *env, jclass type, jlong view)
{
	(void)env, (void)type;
	release(pointer_of(view));
	free(pointer_of(view));
}

JNIEXPORT jlong JNICALL Java_weir_Weir_viewVersion(JNIEnv *env, jclass type, jlong view)
{
	(void)env, (void)type;
	return (jlong)((const weir_read *)pointer_of(view))->version;
}

/* The bytes in place. Java must not write to them. */
JNIEXPORT jobject JNICALL Java_weir_Weir_viewBytes(JNIEnv *env, jclass type, jlong view)
{
	static char none; /* JNI takes no NULL for a buffer without bytes */
	const weir_tensor *tensor = ((const weir_read *)pointer_of(view))->tensor;
	size_t size = weir_tensor_byte_count(tensor);

	(void)type;
	if (weir_tensor_dtype(tensor) != WEIR_F64) {
		throw_status(env, WEIR_UNIMPLEMENTED, NULL);
		return NULL;
	}
	return (*env)->NewDirectByteBuffer(env, size > 0 ? (void *)(intptr_t)weir_tensor_data(tensor) : &none, (jlong)size);
}

/* ---- variables ---- */

JNIEXPORT jlong JNICALL Java_weir_Weir_varCreate(JNIEnv *env, jclass type, jdoubleArray values)
{
	const struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .dtype = WEIR_F64};
	weir_tensor *first = tensor_of(env, values);
	enum weir_status status;
	weir_error error;
	weir_var *var;

	(void)type;
	if (first == NULL)
		return 0;
	status = weir_var_create(first, &options, &var, &error);
	weir_tensor_release(first);
	if (status == WEIR_OK)
		return address_of(var);
	throw_status(env, status, &error);
	return 0;
}

JNIEXPORT void JNICALL Java_weir_Weir_varDestroy(JNIEnv *env, jclass type, jlong var)
{
	(void)env, (void)type;
	(void)weir_var_destroy(pointer_of(var), NULL);
}

JNIEXPORT jlong JNICALL Java_weir_Weir_varRead(JNIEnv *env, jclass type, jlong var)
{
	weir_read read;
	enum weir_status status = weir_var_read(pointer_of(var), &read);

	(void)type;
	if (status == WEIR_OK)
		return view_of(env, read);
	throw_status(env, status, NULL);
	return 0;
}

JNIEXPORT jlong JNICALL Java_weir_Weir_varAssign(JNIEnv *env, jclass type, jlong var, jdoubleArray values)
{
	weir_tensor *next = tensor_of(env, values);
	enum weir_status status;
	weir_read published;
	weir_error error;
	uint64_t version;

	(void)type;
	if (next == NULL)
		return 0;
	status = weir_var_assign(pointer_of(var), next, WEIR_NO_DEADLINE, &published, &error);
	weir_tensor_release(next);
	if (status != WEIR_OK) {
		throw_status(env, status, &error);
		return 0;
	}
	version = published.version;
	weir_read_release(&published);
	return (jlong)version;
}

/* ---- queues of tensors ---- */

static void drop_item(void *context, void *item)
{
	(void)context;
	weir_tensor_release(item);
}

/* A negative number of nanoseconds means for as long as it takes. */
static uint64_t deadline_in(jlong nanoseconds)
{
	return nanoseconds < 0 ? WEIR_NO_DEADLINE : nanoseconds == 0 ? 0 : weir_deadline_in((uint64_t)nanoseconds);
}

JNIEXPORT jlong JNICALL Java_weir_Weir_queueCreate(JNIEnv *env, jclass type, jint capacity)
{
	const struct weir_queue_options options = {WEIR_QUEUE_OPTIONS_INIT, .capacity = capacity > 0 ? (size_t)capacity : 0,
	                                           .drop = drop_item};
	weir_error error;
	weir_queue *queue;
	enum weir_status status = weir_queue_create(&options, &queue, &error);

	(void)type;
	if (status == WEIR_OK)
		return address_of(queue);
	throw_status(env, status, &error);
	return 0;
}

JNIEXPORT void JNICALL Java_weir_Weir_queueDestroy(JNIEnv *env, jclass type, jlong queue)
{
	(void)env, (void)type;
	(void)weir_queue_destroy(pointer_of(queue), NULL);
}

JNIEXPORT void JNICALL Java_weir_Weir_queuePut(JNIEnv *env, jclass type, jlong queue, jdoubleArray values,
                                               jlong nanoseconds)
{
	weir_tensor *item = tensor_of(env, values);
	enum weir_status status;
	weir_error error;

	(void)type;
	if (item == NULL)
		return;
	status = weir_queue_enqueue(pointer_of(queue), item, deadline_in(nanoseconds), NULL, &error);
	if (status != WEIR_OK) {
		weir_tensor_release(item);
		throw_status(env, status, &error);
	}
}

JNIEXPORT jlong JNICALL Java_weir_Weir_queueGet(JNIEnv *env, jclass type, jlong queue, jlong nanoseconds)
{
	weir_error error;
	void *item;
	enum weir_status status = weir_queue_dequeue(pointer_of(queue), &item, deadline_in(nanoseconds), NULL, &error);

	(void)type;
	if (status == WEIR_OK)
		return view_of(env, (weir_read){.tensor = item});
	throw_status(env, status, &error);
	return 0;
}

JNIEXPORT void JNICALL Java_weir_Weir_queueClose(JNIEnv *env, jclass type, jlong queue, jstring cause)
{
	const char *text = (*env)->GetStringUTFChars(env, cause, NULL);
	weir_error error = {.code = WEIR_CANCELLED};
	enum weir_status status;

	(void)type;
	if (text == NULL)
		return;
	strncpy(error.message, text, sizeof(error.message) - 1);
	end_with_letter(error.message);
	(*env)->ReleaseStringUTFChars(env, cause, text);
	status = weir_queue_close(pointer_of(queue), WEIR_CLOSE_DRAIN, &error);
	if (status != WEIR_OK)
		throw_status(env, status, NULL);
}
