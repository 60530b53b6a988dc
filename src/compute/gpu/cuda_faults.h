/* cuda_faults.h - what the codes of CUDA's driver mean, as a table.
 *
 * Rows: code, name, our code, whether it lasts, and a text for people (NULL: the name says it). A
 * kernel fault lasts: from then on every context of the process, even a new one, returns it. */
#ifndef ACRE_COMPUTE_GPU_CUDA_FAULTS_H
#define ACRE_COMPUTE_GPU_CUDA_FAULTS_H

/* clang-format off */
#define CUDA_FAULTS(X) \
    X(1, INVALID_VALUE, INVALID, false, NULL) \
    X(2, OUT_OF_MEMORY, NOMEM, false, "the GPU is out of memory") \
    X(3, NOT_INITIALIZED, UNAVAILABLE, true, \
      "the driver is not initialized, or the process was forked afterwards") \
    X(4, DEINITIALIZED, UNAVAILABLE, true, "the driver has shut down") \
    X(34, STUB_LIBRARY, UNAVAILABLE, false, \
      "libcuda.so.1 is the toolkit's stub, not the driver's") \
    X(46, DEVICE_UNAVAILABLE, UNAVAILABLE, false, "the GPU is in use exclusively, or not ready") \
    X(100, NO_DEVICE, UNAVAILABLE, false, "there is no NVIDIA GPU here, or none is visible") \
    X(101, INVALID_DEVICE, INVALID, false, NULL) \
    X(200, INVALID_IMAGE, CORRUPT, false, "not a compiled program") \
    X(201, INVALID_CONTEXT, UNAVAILABLE, false, NULL) \
    X(209, NO_BINARY_FOR_GPU, CORRUPT, false, "the program was compiled for another GPU") \
    X(214, ECC_UNCORRECTABLE, UNAVAILABLE, true, \
      "uncorrectable error in the GPU's memory") \
    X(218, INVALID_PTX, CORRUPT, false, "the program's PTX is invalid") \
    X(220, NVLINK_UNCORRECTABLE, UNAVAILABLE, true, \
      "uncorrectable NVLink error") \
    X(221, JIT_COMPILER_NOT_FOUND, UNSUPPORTED, false, \
      "the driver's PTX compiler is not installed") \
    X(222, UNSUPPORTED_PTX_VERSION, CORRUPT, false, \
      "the program was compiled by a newer CUDA than the driver supports") \
    X(226, CONTAINED, UNAVAILABLE, true, "a contained error in the GPU's memory") \
    X(300, INVALID_SOURCE, CORRUPT, false, "the program's PTX is invalid") \
    X(304, OPERATING_SYSTEM, UNAVAILABLE, false, "the operating system refused the driver") \
    X(400, INVALID_HANDLE, INVALID, false, NULL) \
    X(500, NOT_FOUND, NOTFOUND, false, NULL) \
    X(700, ILLEGAL_ADDRESS, UNAVAILABLE, true, "a kernel read or wrote outside its memory") \
    X(701, LAUNCH_OUT_OF_RESOURCES, INVALID, false, \
      "the group is too large for the registers or local memory the kernel needs") \
    X(702, LAUNCH_TIMEOUT, UNAVAILABLE, true, "a kernel ran longer than the driver allows") \
    X(709, CONTEXT_IS_DESTROYED, UNAVAILABLE, true, NULL) \
    X(710, ASSERT, UNAVAILABLE, true, "an assert in a kernel failed") \
    X(712, HOST_MEMORY_ALREADY_REGISTERED, CONFLICT, false, \
      "the host memory is already registered") \
    X(713, HOST_MEMORY_NOT_REGISTERED, INVALID, false, NULL) \
    X(714, HARDWARE_STACK_ERROR, UNAVAILABLE, true, "a kernel corrupted its stack") \
    X(715, ILLEGAL_INSTRUCTION, UNAVAILABLE, true, \
      "a kernel executed an illegal instruction, or trapped") \
    X(716, MISALIGNED_ADDRESS, UNAVAILABLE, true, \
      "a kernel read or wrote at a misaligned address") \
    X(717, INVALID_ADDRESS_SPACE, UNAVAILABLE, true, \
      "a kernel used an address of the wrong memory space") \
    X(718, INVALID_PC, UNAVAILABLE, true, "a kernel jumped outside its code") \
    X(719, LAUNCH_FAILED, UNAVAILABLE, true, \
      "a kernel failed on the GPU (a trap, or local memory out of bounds)") \
    X(721, TENSOR_MEMORY_LEAK, UNAVAILABLE, true, \
      "a kernel ended without freeing its tensor memory") \
    X(801, NOT_SUPPORTED, UNSUPPORTED, false, NULL) \
    X(802, SYSTEM_NOT_READY, UNAVAILABLE, false, \
      "the GPU's fabric is not ready (is nvidia-fabricmanager running?)") \
    X(803, SYSTEM_DRIVER_MISMATCH, UNAVAILABLE, false, \
      "libcuda.so.1 and the kernel driver have different versions") \
    X(804, COMPAT_NOT_SUPPORTED_ON_DEVICE, UNAVAILABLE, false, \
      "the driver is too old for this libcuda.so.1 on this GPU") \
    X(805, MPS_CONNECTION_FAILED, UNAVAILABLE, true, "the MPS daemon does not answer") \
    X(806, MPS_RPC_FAILURE, UNAVAILABLE, true, "the MPS server has ended") \
    X(807, MPS_SERVER_NOT_READY, UNAVAILABLE, false, "the MPS server is not ready") \
    X(808, MPS_MAX_CLIENTS_REACHED, UNAVAILABLE, false, \
      "the MPS server has no room for another client") \
    X(810, MPS_CLIENT_TERMINATED, UNAVAILABLE, true, "MPS terminated this client") \
    X(909, TIMEOUT, TIMEOUT, false, NULL) \
    X(911, EXTERNAL_DEVICE, UNAVAILABLE, true, NULL) \
    X(999, UNKNOWN, UNAVAILABLE, true, "the driver failed for an unknown reason")
/* clang-format on */

#endif
