/* A plugin of WasmEdge that serves wasi_ephemeral_nn from libwasi_nn_llamacpp.so:
 *
 *   cc -shared -fPIC -Iinclude -o plugins/libwasmedgePluginHeadrace.so examples/wasi_nn/wasmedge_plugin.c
 *   WASMEDGE_PLUGIN_PATH=plugins wasmedge GUEST.wasm
 *
 * HEADRACE_WASI_NN_LIBRARY is the library's path, where the loader does not find it by its name. */
#include <stdio.h>
#include <stdlib.h>
#include <wasmedge/wasmedge.h>

#include "guest_calls.h"

enum { page = 65536 };

/* What the functions of one instance of the module, a virtual machine's, are called with. */
typedef struct instance instance;
typedef struct {
    instance* of;
    uint32_t number;
} instance_function;
struct instance {
    guest_backend nn;
    instance_function functions[import_count];
};

/* The first call opens the library, so that programs which use no model need none. */
static bool is_open(guest_backend* nn) {
    if (nn->backend) return true;
    const char* path = getenv("HEADRACE_WASI_NN_LIBRARY");
    const char* problem = open_backend(nn, path ? path : "libwasi_nn_llamacpp.so", "", 0);
    if (problem) fprintf(stderr, "wasi_nn: %s\n", problem);
    return !problem;
}

static WasmEdge_Result call_import(void* data, const WasmEdge_CallingFrameContext* frame,
                                   const WasmEdge_Value* parameters, WasmEdge_Value* result) {
    const instance_function* called = data;
    guest_backend* nn = &called->of->nn;
    uint32_t numbers[headrace_guest_most_parameters], error = runtime_error;
    uint8_t* bytes = NULL;
    uint64_t size = 0;
    WasmEdge_MemoryInstanceContext* memory = WasmEdge_CallingFrameGetMemoryInstance(frame, 0);
    if (memory) size = (uint64_t)WasmEdge_MemoryInstanceGetPageSize(memory) * page;
    if (size) bytes = WasmEdge_MemoryInstanceGetPointer(memory, 0, size);
    if (!bytes) size = 0;
    for (uint32_t i = 0; i < imports[called->number].parameters; ++i)
        numbers[i] = (uint32_t)WasmEdge_ValueGetI32(parameters[i]);
    if (is_open(nn)) error = nn->headrace_guest_call(nn->backend, called->number, bytes, size, numbers);
    *result = WasmEdge_ValueGenI32((int32_t)error);
    return WasmEdge_Result_Success;
}

static void add_import(WasmEdge_ModuleInstanceContext* module, instance_function* function) {
    const headrace_guest_import* added = &imports[function->number];
    WasmEdge_ValType types[headrace_guest_most_parameters], result = WasmEdge_ValTypeGenI32();
    for (uint32_t i = 0; i < added->parameters; ++i) types[i] = WasmEdge_ValTypeGenI32();
    WasmEdge_FunctionTypeContext* type = WasmEdge_FunctionTypeCreate(types, added->parameters, &result, 1);
    WasmEdge_String name = WasmEdge_StringCreateByCString(added->name);
    WasmEdge_ModuleInstanceAddFunction(module, name,
                                       WasmEdge_FunctionInstanceCreate(type, call_import, function, 0));
    WasmEdge_StringDelete(name);
    WasmEdge_FunctionTypeDelete(type);
}

static void destroy(void* data) {
    close_backend(&((instance*)data)->nn);
    free(data);
}

static WasmEdge_ModuleInstanceContext* create(const WasmEdge_ModuleDescriptor* descriptor) {
    (void)descriptor;
    instance* made = calloc(1, sizeof *made);
    if (!made) return NULL;
    WasmEdge_String name = WasmEdge_StringCreateByCString("wasi_ephemeral_nn");
    WasmEdge_ModuleInstanceContext* module = WasmEdge_ModuleInstanceCreateWithData(name, made, destroy);
    WasmEdge_StringDelete(name);
    for (uint32_t i = 0; i < import_count; ++i) {
        made->functions[i] = (instance_function){made, i};
        add_import(module, &made->functions[i]);
    }
    return module;
}

static WasmEdge_ModuleDescriptor modules[] = {
    {.Name = "wasi_nn", .Description = "language models on Headrace", .Create = create}};
static WasmEdge_PluginDescriptor descriptor = {.Name = "wasi_nn",
                                               .Description = "language models on Headrace",
                                               .APIVersion = WasmEdge_Plugin_CurrentAPIVersion,
                                               .Version = {0, 1, 0, 0},
                                               .ModuleCount = 1,
                                               .ModuleDescriptions = modules};

WASMEDGE_CAPI_PLUGIN_EXPORT const WasmEdge_PluginDescriptor* WasmEdge_Plugin_GetDescriptor(void) {
    return &descriptor;
}
