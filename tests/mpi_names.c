/*
 * mpi_names.c - what Open MPI's header calls its predefined objects. Only their addresses count, so
 * here each is a byte. They stand apart from mpi.h, which declares them as structs that it does not
 * define.
 */
char ompi_mpi_comm_world, ompi_request_null, ompi_mpi_errors_return, ompi_mpi_op_sum, ompi_mpi_op_min, ompi_mpi_float,
	ompi_mpi_double, ompi_mpi_int32_t, ompi_mpi_int64_t, ompi_mpi_uint64_t;
