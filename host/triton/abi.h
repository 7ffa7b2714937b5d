// SPDX-License-Identifier: MIT
// The functions of Triton Inference Server that this backend calls, and those of its own that the
// server calls, declared by itself.
//
// Names, arguments and numbers are those of the server's public C interface, version 1.16 and
// later; all of them are in server 2.51. A function that gives an error gives NULL when it went
// well. The symbols are found in the server when it opens this library.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRITON_OPAQUE(name) typedef struct Triton##name Triton##name;
TRITON_OPAQUE(Error)
TRITON_OPAQUE(Message)
TRITON_OPAQUE(Backend)
TRITON_OPAQUE(BackendAttribute)
TRITON_OPAQUE(Model)
TRITON_OPAQUE(Instance)
TRITON_OPAQUE(Request)
TRITON_OPAQUE(Response)
TRITON_OPAQUE(Factory)
TRITON_OPAQUE(Input)
TRITON_OPAQUE(Output)
TRITON_OPAQUE(State)
#undef TRITON_OPAQUE

enum { TRITON_API_MAJOR = 1, TRITON_API_MINOR = 16 };
enum triton_code {
    TRITON_UNKNOWN,
    TRITON_INTERNAL,
    TRITON_NOT_FOUND,
    TRITON_INVALID_ARGUMENT,
    TRITON_UNAVAILABLE,
    TRITON_UNSUPPORTED,
    TRITON_ALREADY_EXISTS,
    TRITON_CANCELLED,
};
enum triton_type {
    TRITON_NO_TYPE,
    TRITON_BOOL,
    TRITON_UINT8,
    TRITON_UINT16,
    TRITON_UINT32,
    TRITON_UINT64,
    TRITON_INT8,
    TRITON_INT16,
    TRITON_INT32,
    TRITON_INT64,
    TRITON_FP16,
    TRITON_FP32,
    TRITON_FP64,
    TRITON_BYTES,
    TRITON_BF16,
};
enum { TRITON_MEMORY_CPU, TRITON_MEMORY_PINNED, TRITON_MEMORY_GPU };
enum { TRITON_KIND_AUTO, TRITON_KIND_CPU, TRITON_KIND_GPU, TRITON_KIND_MODEL };
enum { TRITON_LOG_INFO, TRITON_LOG_WARNING, TRITON_LOG_ERROR, TRITON_LOG_VERBOSE };
enum { TRITON_FINAL = 1 };       // no more responses follow
enum { TRITON_RELEASE_ALL = 1 }; // of a request

// clang-format off
// --- errors, logs, messages ---
TritonError *TRITONSERVER_ErrorNew(int code, const char *text);
void TRITONSERVER_ErrorDelete(TritonError *);
const char *TRITONSERVER_ErrorMessage(TritonError *);
TritonError *TRITONSERVER_LogMessage(int level, const char *file, int line, const char *text);
TritonError *TRITONSERVER_MessageNewFromSerializedJson(TritonMessage **out, const char *text, size_t size);
TritonError *TRITONSERVER_MessageSerializeToJson(TritonMessage *, const char **text, size_t *size);
TritonError *TRITONSERVER_MessageDelete(TritonMessage *);

// --- the backend, models, their instances ---
TritonError *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor);
TritonError *TRITONBACKEND_BackendName(TritonBackend *, const char **);
TritonError *TRITONBACKEND_BackendConfig(TritonBackend *, TritonMessage **);
TritonError *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(TritonBackendAttribute *, int kind, uint64_t count, const uint64_t *devices, uint64_t device_count);
TritonError *TRITONBACKEND_ModelName(TritonModel *, const char **);
TritonError *TRITONBACKEND_ModelVersion(TritonModel *, uint64_t *);
TritonError *TRITONBACKEND_ModelRepository(TritonModel *, int *artifact, const char **path);
TritonError *TRITONBACKEND_ModelConfig(TritonModel *, uint32_t version, TritonMessage **);
TritonError *TRITONBACKEND_ModelAutoCompleteConfig(TritonModel *, bool *);
TritonError *TRITONBACKEND_ModelSetConfig(TritonModel *, uint32_t version, TritonMessage *);
TritonError *TRITONBACKEND_ModelBackend(TritonModel *, TritonBackend **);
TritonError *TRITONBACKEND_ModelState(TritonModel *, void **);
TritonError *TRITONBACKEND_ModelSetState(TritonModel *, void *);
TritonError *TRITONBACKEND_ModelInstanceName(TritonInstance *, const char **);
TritonError *TRITONBACKEND_ModelInstanceKind(TritonInstance *, int *);
TritonError *TRITONBACKEND_ModelInstanceDeviceId(TritonInstance *, int32_t *);
TritonError *TRITONBACKEND_ModelInstanceModel(TritonInstance *, TritonModel **);
TritonError *TRITONBACKEND_ModelInstanceState(TritonInstance *, void **);
TritonError *TRITONBACKEND_ModelInstanceSetState(TritonInstance *, void *);
TritonError *TRITONBACKEND_ModelInstanceReportStatistics(TritonInstance *, TritonRequest *, bool success, uint64_t start, uint64_t compute_start, uint64_t compute_end, uint64_t end);
TritonError *TRITONBACKEND_ModelInstanceReportBatchStatistics(TritonInstance *, uint64_t size, uint64_t start, uint64_t compute_start, uint64_t compute_end, uint64_t end);

// --- requests ---
TritonError *TRITONBACKEND_RequestIsCancelled(TritonRequest *, bool *);
TritonError *TRITONBACKEND_RequestInputCount(TritonRequest *, uint32_t *);
TritonError *TRITONBACKEND_RequestInput(TritonRequest *, const char *name, TritonInput **);
TritonError *TRITONBACKEND_RequestOutputCount(TritonRequest *, uint32_t *);
TritonError *TRITONBACKEND_RequestOutputName(TritonRequest *, uint32_t index, const char **);
TritonError *TRITONBACKEND_RequestRelease(TritonRequest *, uint32_t flags);
TritonError *TRITONBACKEND_InputProperties(TritonInput *, const char **name, int *type, const int64_t **lens, uint32_t *rank, uint64_t *size, uint32_t *buffers);
TritonError *TRITONBACKEND_InputBuffer(TritonInput *, uint32_t index, const void **, uint64_t *size, int *memory, int64_t *device);

// --- responses ---
TritonError *TRITONBACKEND_ResponseNew(TritonResponse **, TritonRequest *);
TritonError *TRITONBACKEND_ResponseDelete(TritonResponse *);
TritonError *TRITONBACKEND_ResponseOutput(TritonResponse *, TritonOutput **, const char *name, int type, const int64_t *lens, uint32_t rank);
TritonError *TRITONBACKEND_OutputBuffer(TritonOutput *, void **, uint64_t size, int *memory, int64_t *device);
TritonError *TRITONBACKEND_ResponseSend(TritonResponse *, uint32_t flags, TritonError *);
TritonError *TRITONBACKEND_ResponseFactoryNew(TritonFactory **, TritonRequest *);
TritonError *TRITONBACKEND_ResponseFactoryDelete(TritonFactory *);
TritonError *TRITONBACKEND_ResponseFactorySendFlags(TritonFactory *, uint32_t flags);
TritonError *TRITONBACKEND_ResponseFactoryIsCancelled(TritonFactory *, bool *);
TritonError *TRITONBACKEND_ResponseNewFromFactory(TritonResponse **, TritonFactory *);

// --- what a sequence keeps between its requests ---
TritonError *TRITONBACKEND_StateNew(TritonState **, TritonRequest *, const char *name, int type, const int64_t *lens, uint32_t rank);
TritonError *TRITONBACKEND_StateBuffer(TritonState *, void **, uint64_t size, int *memory, int64_t *device);
TritonError *TRITONBACKEND_StateUpdate(TritonState *);

// --- this backend's own, which the server calls ---
#define TRITON_EXPORT __attribute__((visibility("default")))
TRITON_EXPORT TritonError *TRITONBACKEND_Initialize(TritonBackend *);
TRITON_EXPORT TritonError *TRITONBACKEND_GetBackendAttribute(TritonBackend *, TritonBackendAttribute *);
TRITON_EXPORT TritonError *TRITONBACKEND_ModelInitialize(TritonModel *);
TRITON_EXPORT TritonError *TRITONBACKEND_ModelFinalize(TritonModel *);
TRITON_EXPORT TritonError *TRITONBACKEND_ModelInstanceInitialize(TritonInstance *);
TRITON_EXPORT TritonError *TRITONBACKEND_ModelInstanceFinalize(TritonInstance *);
TRITON_EXPORT TritonError *TRITONBACKEND_ModelInstanceExecute(TritonInstance *, TritonRequest **, uint32_t count);
// clang-format on
