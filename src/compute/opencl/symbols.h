/* symbols.h - the functions of OpenCL that the back end calls. Private to it; see abi.h. Optional
 * ones exist from version 2.0 on: shared virtual memory. */
#ifndef ACRE_COMPUTE_OPENCL_SYMBOLS_H
#define ACRE_COMPUTE_OPENCL_SYMBOLS_H

#include "opencl/query.h"

typedef struct _cl_context *opencl_context;
typedef struct _cl_command_queue *opencl_queue;
typedef struct _cl_mem *opencl_mem;
typedef struct _cl_program *opencl_program;
typedef struct _cl_kernel *opencl_kernel_object;
typedef struct _cl_event *opencl_event;

/* clang-format off */
#define OPENCL_WAITS uint32_t, const opencl_event *, opencl_event *

#define OPENCL_SYMBOLS(X)                                                                        \
    /* required, result, member, symbol, arguments */                                            \
    X(true, opencl_context, create_context, clCreateContext,                                     \
      (const intptr_t *, uint32_t, const opencl_device *,                                        \
       void (*)(const char *, const void *, size_t, void *), void *, int32_t *))                 \
    X(true, int32_t, release_context, clReleaseContext, (opencl_context))                        \
    X(true, opencl_queue, create_queue, clCreateCommandQueue,                                    \
      (opencl_context, opencl_device, uint64_t, int32_t *))                                      \
    X(true, int32_t, release_queue, clReleaseCommandQueue, (opencl_queue))                       \
    X(true, int32_t, flush, clFlush, (opencl_queue))                                             \
    X(true, int32_t, finish, clFinish, (opencl_queue))                                           \
    X(true, opencl_mem, create_buffer, clCreateBuffer,                                           \
      (opencl_context, uint64_t, size_t, void *, int32_t *))                                     \
    X(true, opencl_mem, create_sub_buffer, clCreateSubBuffer,                                    \
      (opencl_mem, uint64_t, uint32_t, const void *, int32_t *))                                 \
    X(true, int32_t, retain_mem, clRetainMemObject, (opencl_mem))                                \
    X(true, int32_t, release_mem, clReleaseMemObject, (opencl_mem))                              \
    X(true, int32_t, read, clEnqueueReadBuffer,                                                  \
      (opencl_queue, opencl_mem, uint32_t, size_t, size_t, void *, OPENCL_WAITS))                \
    X(true, int32_t, write, clEnqueueWriteBuffer,                                                \
      (opencl_queue, opencl_mem, uint32_t, size_t, size_t, const void *, OPENCL_WAITS))          \
    X(true, int32_t, copy, clEnqueueCopyBuffer,                                                  \
      (opencl_queue, opencl_mem, opencl_mem, size_t, size_t, size_t, OPENCL_WAITS))              \
    X(true, int32_t, fill, clEnqueueFillBuffer,                                                  \
      (opencl_queue, opencl_mem, const void *, size_t, size_t, size_t, OPENCL_WAITS))            \
    X(true, int32_t, marker, clEnqueueMarkerWithWaitList, (opencl_queue, OPENCL_WAITS))          \
    X(true, int32_t, barrier, clEnqueueBarrierWithWaitList, (opencl_queue, OPENCL_WAITS))        \
    X(true, opencl_event, create_user_event, clCreateUserEvent, (opencl_context, int32_t *))     \
    X(true, int32_t, set_user_event, clSetUserEventStatus, (opencl_event, int32_t))              \
    X(true, int32_t, on_event, clSetEventCallback,                                               \
      (opencl_event, int32_t, void (*)(opencl_event, int32_t, void *), void *))                  \
    X(true, int32_t, release_event, clReleaseEvent, (opencl_event))                              \
    X(true, int32_t, event_times, clGetEventProfilingInfo,                                       \
      (opencl_event, uint32_t, size_t, void *, size_t *))                                        \
    X(true, opencl_program, create_program, clCreateProgramWithSource,                           \
      (opencl_context, uint32_t, const char **, const size_t *, int32_t *))                      \
    X(true, opencl_program, create_program_of_binary, clCreateProgramWithBinary,                 \
      (opencl_context, uint32_t, const opencl_device *, const size_t *,                          \
       const unsigned char **, int32_t *, int32_t *))                                            \
    X(true, int32_t, build, clBuildProgram,                                                      \
      (opencl_program, uint32_t, const opencl_device *, const char *,                            \
       void (*)(opencl_program, void *), void *))                                                \
    X(true, int32_t, program_info, clGetProgramInfo,                                             \
      (opencl_program, uint32_t, size_t, void *, size_t *))                                      \
    X(true, int32_t, build_info, clGetProgramBuildInfo,                                          \
      (opencl_program, opencl_device, uint32_t, size_t, void *, size_t *))                       \
    X(true, int32_t, release_program, clReleaseProgram, (opencl_program))                        \
    X(true, opencl_kernel_object, create_kernel, clCreateKernel,                                 \
      (opencl_program, const char *, int32_t *))                                                 \
    X(true, int32_t, release_kernel, clReleaseKernel, (opencl_kernel_object))                    \
    X(true, int32_t, set_arg, clSetKernelArg,                                                    \
      (opencl_kernel_object, uint32_t, size_t, const void *))                                    \
    X(true, int32_t, kernel_info, clGetKernelWorkGroupInfo,                                      \
      (opencl_kernel_object, opencl_device, uint32_t, size_t, void *, size_t *))                 \
    X(true, int32_t, launch, clEnqueueNDRangeKernel,                                             \
      (opencl_queue, opencl_kernel_object, uint32_t, const size_t *, const size_t *,             \
       const size_t *, OPENCL_WAITS))                                                            \
    X(false, void *, svm_alloc, clSVMAlloc, (opencl_context, uint64_t, size_t, uint32_t))        \
    X(false, void, svm_free, clSVMFree, (opencl_context, void *))                                \
    X(false, int32_t, svm_copy, clEnqueueSVMMemcpy,                                              \
      (opencl_queue, uint32_t, void *, const void *, size_t, OPENCL_WAITS))                      \
    X(false, int32_t, svm_fill, clEnqueueSVMMemFill,                                             \
      (opencl_queue, void *, const void *, size_t, size_t, OPENCL_WAITS))                        \
    X(false, int32_t, set_arg_svm, clSetKernelArgSVMPointer,                                     \
      (opencl_kernel_object, uint32_t, const void *))
/* clang-format on */

#endif
