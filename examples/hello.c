/*
 * hello.c - the smallest program: a value that is replaced while a handle on it is held.
 */
#include <inttypes.h>
#include <stdio.h>
#include <weir/weir.h>

int main(void)
{
	struct weir_var_options options = {WEIR_VAR_OPTIONS_INIT, .name = "answer", .dtype = WEIR_I64};
	weir_tensor *first, *second;
	weir_var *answer;
	weir_read old, now;

	if (weir_tensor_scalar_i64(41, &first) || weir_tensor_scalar_i64(42, &second) ||
	    weir_var_create(first, &options, &answer, NULL) || weir_var_read(answer, &old) ||
	    weir_var_assign(answer, second, WEIR_NO_DEADLINE, NULL, NULL) || weir_var_read(answer, &now))
		return 1;
	/* No call waited for another: a reader keeps the version that it has. */
	printf("version %" PRIu64 " is %" PRId64 ", ", old.version, *(const int64_t *)weir_tensor_data(old.tensor));
	printf("version %" PRIu64 " is %" PRId64 "\n", now.version, *(const int64_t *)weir_tensor_data(now.tensor));

	weir_read_release(&old);
	weir_read_release(&now);
	weir_var_destroy(answer, NULL);
	weir_tensor_release(first);
	weir_tensor_release(second);
	return 0;
}
