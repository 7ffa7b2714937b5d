// SPDX-License-Identifier: MIT
// What this plugin uses of ONNX Runtime's C interface, declared by itself.
//
// The interface is tables of functions and structures of callbacks that only ever grow at their
// end. A function is known by its place in its table; test/host/ort checks each of these places in
// the versions that are installed. All of them are there from version 1.24 on.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORT_API_OLDEST = 24, // the version that is asked for
    ORT_API_NEWEST = 29, // the version whose structures are laid out below
};

#define ORT_OPAQUE(name) typedef struct Ort##name Ort##name;
ORT_OPAQUE(Status)
ORT_OPAQUE(Value)
ORT_OPAQUE(ValueInfo)
ORT_OPAQUE(TypeInfo)
ORT_OPAQUE(TensorTypeAndShapeInfo)
ORT_OPAQUE(SequenceTypeInfo)
ORT_OPAQUE(OptionalTypeInfo)
ORT_OPAQUE(Graph)
ORT_OPAQUE(Node)
ORT_OPAQUE(OpAttr)
ORT_OPAQUE(ExternalInitializerInfo)
ORT_OPAQUE(KernelContext)
ORT_OPAQUE(NodeComputeContext)
ORT_OPAQUE(SessionOptions)
ORT_OPAQUE(RunOptions)
ORT_OPAQUE(KeyValuePairs)
ORT_OPAQUE(Logger)
ORT_OPAQUE(HardwareDevice)
ORT_OPAQUE(EpDevice)
ORT_OPAQUE(EpGraphSupportInfo)
ORT_OPAQUE(MemoryInfo)
ORT_OPAQUE(MemoryDevice)
ORT_OPAQUE(SyncStream)
ORT_OPAQUE(SyncStreamImpl)
ORT_OPAQUE(ExternalResourceImporterImpl)
ORT_OPAQUE(CustomOpDomain)
ORT_OPAQUE(GraphicsInteropConfig)
ORT_OPAQUE(DeviceEpIncompatibilityDetails)
ORT_OPAQUE(KernelRegistry)
ORT_OPAQUE(KernelDefBuilder)
ORT_OPAQUE(KernelDef)
ORT_OPAQUE(KernelInfo)
ORT_OPAQUE(DataType)
ORT_OPAQUE(ProfilingEvent)
ORT_OPAQUE(ProfilingEventsContainer)
#undef ORT_OPAQUE

typedef struct OrtApiBase {
    const void *const *(*GetApi)(uint32_t version); // NULL: the host is older
    const char *(*GetVersionString)(void);
} OrtApiBase;

enum { ORT_FAIL = 1, ORT_INVALID_ARGUMENT = 2, ORT_NOT_IMPLEMENTED = 9 };
enum { ORT_LOG_INFO = 1, ORT_LOG_WARNING = 2 };
enum { ORT_DEVICE_CPU = 0, ORT_DEVICE_GPU = 1 };      // of hardware and of memory
enum { ORT_MEMORY_DEVICE = 0 };                       // a card's own
enum { ORT_ALLOCATOR_DEVICE = 0 };                    // of a provider's making
enum { ORT_OPERAND_HOST = -2, ORT_RESULT_HOST = -1 }; // of kernels: in the host's memory
enum { ORT_TYPE_TENSOR = 1, ORT_TYPE_SEQUENCE = 2, ORT_TYPE_OPTIONAL = 6 };
enum ort_attribute {
    ORT_ATTR_UNDEFINED,
    ORT_ATTR_INT,
    ORT_ATTR_INTS,
    ORT_ATTR_FLOAT,
    ORT_ATTR_FLOATS,
    ORT_ATTR_STRING,
    ORT_ATTR_STRINGS,
    ORT_ATTR_GRAPH,
    ORT_ATTR_TENSOR,
};

typedef struct OrtKernelImpl {
    uint32_t ort_version_supported, flags;
    OrtStatus *(*Compute)(struct OrtKernelImpl *, OrtKernelContext *);
    void (*Release)(struct OrtKernelImpl *);
    void (*PrePackWeight)(void), (*SetSharedPrePackedWeight)(void); // left out
} OrtKernelImpl;
typedef OrtStatus *(*ort_create_kernel)(void *state, const OrtKernelInfo *, OrtKernelImpl **out);

// --- the tables: place, result, name, arguments ---

// clang-format off
#define ORT_CALLS(X) \
    X(0, OrtStatus *, CreateStatus, (int code, const char *text)) \
    X(2, const char *, GetErrorMessage, (const OrtStatus *)) \
    X(51, OrtStatus *, GetTensorMutableData, (OrtValue *, void **out)) \
    X(53, OrtStatus *, GetStringTensorDataLength, (const OrtValue *, size_t *out)) \
    X(54, OrtStatus *, GetStringTensorContent, (const OrtValue *, void *text, size_t size, size_t *offsets, size_t count)) \
    X(55, OrtStatus *, CastTypeInfoToTensorInfo, (const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **out)) \
    X(56, OrtStatus *, GetOnnxTypeFromTypeInfo, (const OrtTypeInfo *, int *out)) \
    X(60, OrtStatus *, GetTensorElementType, (const OrtTensorTypeAndShapeInfo *, int *out)) \
    X(61, OrtStatus *, GetDimensionsCount, (const OrtTensorTypeAndShapeInfo *, size_t *out)) \
    X(62, OrtStatus *, GetDimensions, (const OrtTensorTypeAndShapeInfo *, int64_t *out, size_t count)) \
    X(63, OrtStatus *, GetSymbolicDimensions, (const OrtTensorTypeAndShapeInfo *, const char **out, size_t count)) \
    X(90, OrtStatus *, KernelContext_GetInput, (const OrtKernelContext *, size_t index, const OrtValue **out)) \
    X(91, OrtStatus *, KernelContext_GetOutput, (OrtKernelContext *, size_t index, const int64_t *dims, size_t rank, OrtValue **out)) \
    X(93, void, ReleaseStatus, (OrtStatus *)) \
    X(94, void, ReleaseMemoryInfo, (OrtMemoryInfo *)) \
    X(96, void, ReleaseValue, (OrtValue *)) \
    X(98, void, ReleaseTypeInfo, (OrtTypeInfo *)) \
    X(104, OrtStatus *, CastTypeInfoToSequenceTypeInfo, (const OrtTypeInfo *, const OrtSequenceTypeInfo **out)) \
    X(107, OrtStatus *, GetSequenceElementType, (const OrtSequenceTypeInfo *, OrtTypeInfo **out)) \
    X(211, OrtStatus *, CreateOpAttr, (const char *name, const void *data, int count, int type, OrtOpAttr **out)) \
    X(212, void, ReleaseOpAttr, (OrtOpAttr *)) \
    X(247, OrtStatus *, Logger_LogMessage, (const OrtLogger *, int severity, const char *text, const char *file, int line, const char *function)) \
    X(250, OrtStatus *, CastTypeInfoToOptionalTypeInfo, (const OrtTypeInfo *, const OrtOptionalTypeInfo **out)) \
    X(251, OrtStatus *, GetOptionalContainedTypeInfo, (const OrtOptionalTypeInfo *, OrtTypeInfo **out)) \
    X(252, OrtStatus *, GetResizedStringTensorElementBuffer, (OrtValue *, size_t index, size_t size, char **out)) \
    X(272, OrtStatus *, ReadOpAttr, (const OrtOpAttr *, int type, void *data, size_t size, size_t *out)) \
    X(289, OrtStatus *, GetValueInfoName, (const OrtValueInfo *, const char **out)) \
    X(290, OrtStatus *, GetValueInfoTypeInfo, (const OrtValueInfo *, const OrtTypeInfo **out)) \
    X(291, const void *const *, GetModelEditorApi, (void)) \
    X(298, void, GetKeyValuePairs, (const OrtKeyValuePairs *, const char *const **keys, const char *const **values, size_t *count)) \
    X(300, void, ReleaseKeyValuePairs, (OrtKeyValuePairs *)) \
    X(307, int, HardwareDevice_Type, (const OrtHardwareDevice *)) \
    X(308, uint32_t, HardwareDevice_VendorId, (const OrtHardwareDevice *)) \
    X(317, const void *const *, GetEpApi, (void)) \
    X(318, OrtStatus *, GetTensorSizeInBytes, (const OrtValue *, size_t *out)) \
    X(320, OrtStatus *, CreateMemoryInfo_V2, (const char *name, int device, uint32_t vendor, int32_t id, int memory, size_t alignment, int allocator, OrtMemoryInfo **out)) \
    X(326, OrtStatus *, ValueInfo_GetInitializerValue, (const OrtValueInfo *, const OrtValue **out)) \
    X(327, OrtStatus *, ValueInfo_GetExternalInitializerInfo, (const OrtValueInfo *, OrtExternalInitializerInfo **out)) \
    X(331, OrtStatus *, ValueInfo_IsConstantInitializer, (const OrtValueInfo *, bool *out)) \
    X(334, OrtStatus *, Graph_GetModelPath, (const OrtGraph *, const char **out)) \
    X(336, OrtStatus *, Graph_GetNumOperatorSets, (const OrtGraph *, size_t *out)) \
    X(337, OrtStatus *, Graph_GetOperatorSets, (const OrtGraph *, const char **domains, int64_t *versions, size_t count)) \
    X(338, OrtStatus *, Graph_GetNumInputs, (const OrtGraph *, size_t *out)) \
    X(339, OrtStatus *, Graph_GetInputs, (const OrtGraph *, const OrtValueInfo **out, size_t count)) \
    X(340, OrtStatus *, Graph_GetNumOutputs, (const OrtGraph *, size_t *out)) \
    X(341, OrtStatus *, Graph_GetOutputs, (const OrtGraph *, const OrtValueInfo **out, size_t count)) \
    X(342, OrtStatus *, Graph_GetNumInitializers, (const OrtGraph *, size_t *out)) \
    X(343, OrtStatus *, Graph_GetInitializers, (const OrtGraph *, const OrtValueInfo **out, size_t count)) \
    X(344, OrtStatus *, Graph_GetNumNodes, (const OrtGraph *, size_t *out)) \
    X(345, OrtStatus *, Graph_GetNodes, (const OrtGraph *, const OrtNode **out, size_t count)) \
    X(346, OrtStatus *, Graph_GetParentNode, (const OrtGraph *, const OrtNode **out)) \
    X(349, OrtStatus *, Node_GetName, (const OrtNode *, const char **out)) \
    X(350, OrtStatus *, Node_GetOperatorType, (const OrtNode *, const char **out)) \
    X(351, OrtStatus *, Node_GetDomain, (const OrtNode *, const char **out)) \
    X(353, OrtStatus *, Node_GetNumInputs, (const OrtNode *, size_t *out)) \
    X(354, OrtStatus *, Node_GetInputs, (const OrtNode *, const OrtValueInfo **out, size_t count)) \
    X(355, OrtStatus *, Node_GetNumOutputs, (const OrtNode *, size_t *out)) \
    X(356, OrtStatus *, Node_GetOutputs, (const OrtNode *, const OrtValueInfo **out, size_t count)) \
    X(357, OrtStatus *, Node_GetNumImplicitInputs, (const OrtNode *, size_t *out)) \
    X(358, OrtStatus *, Node_GetImplicitInputs, (const OrtNode *, const OrtValueInfo **out, size_t count)) \
    X(359, OrtStatus *, Node_GetNumAttributes, (const OrtNode *, size_t *out)) \
    X(360, OrtStatus *, Node_GetAttributes, (const OrtNode *, const OrtOpAttr **out, size_t count)) \
    X(361, OrtStatus *, Node_GetAttributeByName, (const OrtNode *, const char *name, const OrtOpAttr **out)) \
    X(362, OrtStatus *, OpAttr_GetTensorAttributeAsOrtValue, (const OrtOpAttr *, OrtValue **out)) \
    X(363, OrtStatus *, OpAttr_GetType, (const OrtOpAttr *, int *out)) \
    X(364, OrtStatus *, OpAttr_GetName, (const OrtOpAttr *, const char **out)) \
    X(365, OrtStatus *, Node_GetNumSubgraphs, (const OrtNode *, size_t *out)) \
    X(366, OrtStatus *, Node_GetSubgraphs, (const OrtNode *, const OrtGraph **out, size_t count, const char **names)) \
    X(369, void, ReleaseExternalInitializerInfo, (OrtExternalInitializerInfo *)) \
    X(370, const char *, ExternalInitializerInfo_GetFilePath, (const OrtExternalInitializerInfo *)) \
    X(371, int64_t, ExternalInitializerInfo_GetFileOffset, (const OrtExternalInitializerInfo *)) \
    X(372, size_t, ExternalInitializerInfo_GetByteSize, (const OrtExternalInitializerInfo *)) \
    X(378, OrtStatus *, GetTensorData, (const OrtValue *, const void **out)) \
    X(379, OrtStatus *, GetSessionOptionsConfigEntries, (const OrtSessionOptions *, OrtKeyValuePairs **out)) \
    X(390, bool, TensorTypeAndShape_HasShape, (const OrtTensorTypeAndShapeInfo *)) \
    X(414, OrtStatus *, GetTensorElementTypeAndShapeDataReference, (const OrtValue *, int *type, const int64_t **dims, size_t *rank))

#define ORT_EP_CALLS(X) \
    X(0, OrtStatus *, CreateEpDevice, (struct OrtEpFactory *, const OrtHardwareDevice *, const OrtKeyValuePairs *metadata, const OrtKeyValuePairs *options, OrtEpDevice **out)) \
    X(2, OrtStatus *, EpGraphSupportInfo_AddNodesToFuse, (OrtEpGraphSupportInfo *, const OrtNode *const *nodes, size_t count, const struct OrtNodeFusionOptions *)) \
    X(5, OrtStatus *, EpDevice_AddAllocatorInfo, (OrtEpDevice *, const OrtMemoryInfo *)) \
    X(6, const OrtMemoryDevice *, MemoryInfo_GetMemoryDevice, (const OrtMemoryInfo *)) \
    X(7, const OrtMemoryDevice *, Value_GetMemoryDevice, (const OrtValue *)) \
    X(8, bool, MemoryDevice_AreEqual, (const OrtMemoryDevice *, const OrtMemoryDevice *)) \
    X(9, int, MemoryDevice_GetDeviceType, (const OrtMemoryDevice *)) \
    X(16, OrtStatus *, CreateHardwareDevice, (int type, uint32_t vendor, uint32_t id, const char *name, const OrtKeyValuePairs *, OrtHardwareDevice **out)) \
    X(17, void, ReleaseHardwareDevice, (OrtHardwareDevice *)) \
    X(18, OrtStatus *, CreateKernelRegistry, (OrtKernelRegistry **out)) \
    X(19, void, ReleaseKernelRegistry, (OrtKernelRegistry *)) \
    X(20, OrtStatus *, KernelRegistry_AddKernel, (OrtKernelRegistry *, const OrtKernelDef *, ort_create_kernel, void *)) \
    X(21, OrtStatus *, CreateKernelDefBuilder, (OrtKernelDefBuilder **out)) \
    X(22, void, ReleaseKernelDefBuilder, (OrtKernelDefBuilder *)) \
    X(23, OrtStatus *, KernelDefBuilder_SetOperatorType, (OrtKernelDefBuilder *, const char *)) \
    X(24, OrtStatus *, KernelDefBuilder_SetDomain, (OrtKernelDefBuilder *, const char *)) \
    X(25, OrtStatus *, KernelDefBuilder_SetSinceVersion, (OrtKernelDefBuilder *, int first, int last)) \
    X(26, OrtStatus *, KernelDefBuilder_SetExecutionProvider, (OrtKernelDefBuilder *, const char *)) \
    X(27, OrtStatus *, KernelDefBuilder_SetInputMemType, (OrtKernelDefBuilder *, size_t, int)) \
    X(28, OrtStatus *, KernelDefBuilder_SetOutputMemType, (OrtKernelDefBuilder *, size_t, int)) \
    X(29, OrtStatus *, KernelDefBuilder_AddTypeConstraint, (OrtKernelDefBuilder *, const char *, const OrtDataType *const *, size_t)) \
    X(32, OrtStatus *, KernelDefBuilder_Build, (OrtKernelDefBuilder *, OrtKernelDef **out)) \
    X(33, void, ReleaseKernelDef, (OrtKernelDef *)) \
    X(40, OrtStatus *, GetTensorDataType, (int element, const OrtDataType **out))

#define ORT_EP_CALLS_25(X) \
    X(65, OrtStatus *, CreateProfilingEvent, (int category, int32_t process, int32_t thread, const char *name, int64_t begin, int64_t duration, const char *const *keys, const char *const *values, size_t count, OrtProfilingEvent **out)) \
    X(66, void, ReleaseProfilingEvent, (OrtProfilingEvent *)) \
    X(72, OrtStatus *, ProfilingEventsContainer_AddEvents, (OrtProfilingEventsContainer *, const OrtProfilingEvent *const *events, size_t count))

#define ORT_EDITOR_CALLS(X) \
    X(6, OrtStatus *, CreateNode, (const char *op, const char *domain, const char *name, const char *const *inputs, size_t input_count, const char *const *outputs, size_t output_count, OrtOpAttr **attributes, size_t attribute_count, OrtNode **out))
// clang-format on

// --- structures ---

typedef struct OrtNodeFusionOptions {
    uint32_t ort_version_supported;
    bool drop_constant_initializers;
} OrtNodeFusionOptions;

enum { ORT_EVENT_KERNEL = 2 };

typedef struct OrtEpProfilerImpl { // 1.25
    uint32_t ort_version_supported;
    void (*Release)(struct OrtEpProfilerImpl *);
    OrtStatus *(*StartProfiling)(struct OrtEpProfilerImpl *, int64_t offset_ns);
    OrtStatus *(*StartEvent)(struct OrtEpProfilerImpl *, uint64_t id);
    OrtStatus *(*StopEvent)(struct OrtEpProfilerImpl *, uint64_t id, const OrtProfilingEvent *);
    OrtStatus *(*EndProfiling)(struct OrtEpProfilerImpl *, OrtProfilingEventsContainer *);
} OrtEpProfilerImpl;

typedef struct OrtAllocator {
    uint32_t version;
    void *(*Alloc)(struct OrtAllocator *, size_t);
    void (*Free)(struct OrtAllocator *, void *);
    const OrtMemoryInfo *(*Info)(const struct OrtAllocator *);
    void *(*Reserve)(struct OrtAllocator *, size_t); // at a session's beginning
    OrtStatus *(*GetStats)(const struct OrtAllocator *, OrtKeyValuePairs **out);
    void *(*AllocOnStream)(struct OrtAllocator *, size_t, OrtSyncStream *);
    OrtStatus *(*Shrink)(struct OrtAllocator *); // 1.25
} OrtAllocator;

typedef struct OrtDataTransferImpl {
    uint32_t ort_version_supported;
    void (*Release)(struct OrtDataTransferImpl *);
    bool (*CanCopy)(const struct OrtDataTransferImpl *, const OrtMemoryDevice *from,
                    const OrtMemoryDevice *to);
    OrtStatus *(*CopyTensors)(struct OrtDataTransferImpl *, const OrtValue **from, OrtValue **to,
                              OrtSyncStream **streams, size_t count);
} OrtDataTransferImpl;

typedef struct OrtNodeComputeInfo {
    uint32_t ort_version_supported;
    OrtStatus *(*CreateState)(struct OrtNodeComputeInfo *, OrtNodeComputeContext *, void **state);
    OrtStatus *(*Compute)(struct OrtNodeComputeInfo *, void *state, OrtKernelContext *);
    void (*ReleaseState)(struct OrtNodeComputeInfo *, void *state);
} OrtNodeComputeInfo;

// Members that this plugin leaves out are NULL; their types matter to nobody.
typedef void (*ort_unused)(void);

typedef struct OrtEp {
    uint32_t ort_version_supported;
    const char *(*GetName)(const struct OrtEp *);
    OrtStatus *(*GetCapability)(struct OrtEp *, const OrtGraph *, OrtEpGraphSupportInfo *);
    OrtStatus *(*Compile)(struct OrtEp *, const OrtGraph **graphs, const OrtNode **fused_nodes,
                          size_t count, OrtNodeComputeInfo **infos, OrtNode **ep_context_nodes);
    void (*ReleaseNodeComputeInfos)(struct OrtEp *, OrtNodeComputeInfo **infos, size_t count);
    ort_unused GetPreferredDataLayout, ShouldConvertDataLayoutForOp, SetDynamicOptions;
    ort_unused OnRunStart, OnRunEnd, CreateAllocator, CreateSyncStreamForDevice;
    const char *(*GetCompiledModelCompatibilityInfo)(struct OrtEp *, const OrtGraph *);
    OrtStatus *(*GetKernelRegistry)(struct OrtEp *, const OrtKernelRegistry **out); // 1.24
    OrtStatus *(*IsConcurrentRunSupported)(struct OrtEp *, bool *out);
    ort_unused Sync; // 1.25
    OrtStatus *(*CreateProfiler)(struct OrtEp *, OrtEpProfilerImpl **out);
    ort_unused IsGraphCaptureEnabled, IsGraphCaptured, ReplayGraph; // 1.26
    ort_unused GetGraphCaptureNodeAssignmentPolicy, GetAvailableResource;
    ort_unused OnSessionInitializationEnd; // 1.27
    OrtStatus *(*GetDefaultMemoryDevice)(const struct OrtEp *, const OrtMemoryDevice **out);
    ort_unused ReleaseCapturedGraph;
    ort_unused GetWeightlessSupport; // 1.29
} OrtEp;

typedef struct OrtEpFactory {
    uint32_t ort_version_supported;
    const char *(*GetName)(const struct OrtEpFactory *);
    const char *(*GetVendor)(const struct OrtEpFactory *);
    OrtStatus *(*GetSupportedDevices)(struct OrtEpFactory *, const OrtHardwareDevice *const *,
                                      size_t count, OrtEpDevice **out, size_t room,
                                      size_t *out_count);
    OrtStatus *(*CreateEp)(struct OrtEpFactory *, const OrtHardwareDevice *const *devices,
                           const OrtKeyValuePairs *const *metadata, size_t count,
                           const OrtSessionOptions *, const OrtLogger *, OrtEp **out);
    void (*ReleaseEp)(struct OrtEpFactory *, OrtEp *);
    uint32_t (*GetVendorId)(const struct OrtEpFactory *);
    const char *(*GetVersion)(const struct OrtEpFactory *);
    OrtStatus *(*ValidateCompiledModelCompatibilityInfo)(struct OrtEpFactory *,
                                                         const OrtHardwareDevice *const *,
                                                         size_t count, const char *info, int *out);
    OrtStatus *(*CreateAllocator)(struct OrtEpFactory *, const OrtMemoryInfo *,
                                  const OrtKeyValuePairs *, OrtAllocator **out);
    void (*ReleaseAllocator)(struct OrtEpFactory *, OrtAllocator *);
    OrtStatus *(*CreateDataTransfer)(struct OrtEpFactory *, OrtDataTransferImpl **out);
    bool (*IsStreamAware)(const struct OrtEpFactory *);
    OrtStatus *(*CreateSyncStreamForDevice)(struct OrtEpFactory *, const OrtMemoryDevice *,
                                            const OrtKeyValuePairs *, OrtSyncStreamImpl **out);
    OrtStatus *(*GetHardwareDeviceIncompatibilityDetails)(struct OrtEpFactory *,
                                                          const OrtHardwareDevice *,
                                                          OrtDeviceEpIncompatibilityDetails *);
    OrtStatus *(*CreateExternalResourceImporterForDevice)(struct OrtEpFactory *,
                                                          const OrtEpDevice *,
                                                          OrtExternalResourceImporterImpl **out);
    OrtStatus *(*GetNumCustomOpDomains)(struct OrtEpFactory *, size_t *out);
    OrtStatus *(*GetCustomOpDomains)(struct OrtEpFactory *, OrtCustomOpDomain **out, size_t count);
    ort_unused InitGraphicsInterop, DeinitGraphicsInterop; // 1.25
    ort_unused SelectBestModelCandidate;                   // 1.28
} OrtEpFactory;
