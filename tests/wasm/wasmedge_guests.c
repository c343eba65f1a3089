/* Two virtual machines of WasmEdge in one process, each with the same guest: wasmedge_guests PLUGIN GUEST.wasm
 * The guest exports its imports, and `word`, which reads its memory. Prints what their calls gave as JSON. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <wasmedge/wasmedge.h>

/* Where the guest has its model's name, of one letter, and what calls give. */
enum { name = 0, result = 16, most_parameters = 5 };

static void check(WasmEdge_Result done, const char* what) {
    if (WasmEdge_ResultOK(done)) return;
    fprintf(stderr, "%s: %s\n", what, WasmEdge_ResultGetMessage(done));
    exit(1);
}

static WasmEdge_VMContext* machine(const char* guest) {
    WasmEdge_ConfigureContext* configuration = WasmEdge_ConfigureCreate();
    WasmEdge_VMContext* vm = WasmEdge_VMCreate(configuration, NULL);
    WasmEdge_ConfigureDelete(configuration);
    check(WasmEdge_VMLoadWasmFromFile(vm, guest), "load");
    check(WasmEdge_VMValidate(vm), "validate");
    check(WasmEdge_VMInstantiate(vm), "instantiate");
    return vm;
}

static unsigned call(WasmEdge_VMContext* vm, const char* function, int count, ...) {
    WasmEdge_Value parameters[most_parameters], given;
    va_list numbers;
    va_start(numbers, count);
    for (int i = 0; i < count; ++i) parameters[i] = WasmEdge_ValueGenI32(va_arg(numbers, int));
    va_end(numbers);
    WasmEdge_String called = WasmEdge_StringCreateByCString(function);
    check(WasmEdge_VMExecute(vm, called, parameters, (uint32_t)count, &given, 1), function);
    WasmEdge_StringDelete(called);
    return (unsigned)WasmEdge_ValueGetI32(given);
}

int main(int count, char** arguments) {
    if (count != 3) return 2;
    WasmEdge_PluginLoadFromPath(arguments[1]);
    WasmEdge_VMContext *first = machine(arguments[2]), *second = machine(arguments[2]);
    unsigned loaded = call(first, "load_by_name", 3, name, 1, result);
    int graph = (int)call(first, "word", 1, result);
    unsigned opened = call(first, "init_execution_context", 2, graph, result);
    int context = (int)call(first, "word", 1, result);
    printf("{\"loaded\": [%u, %d], \"opened\": [%u, %d], ", loaded, graph, opened, context);
    printf("\"handlesOfAnother\": [%u, %u, %u], ", call(second, "compute", 1, context),
           call(second, "unload", 1, graph), call(second, "init_execution_context", 2, graph, result));
    printf("\"ownLimit\": %u, ", call(first, "load_by_name", 3, name, 1, result));
    loaded = call(second, "load_by_name", 3, name, 1, result);
    printf("\"secondLoads\": [%u, %u], ", loaded, call(second, "word", 1, result));
    WasmEdge_VMDelete(first);
    opened = call(second, "init_execution_context", 2, graph, result);
    printf("\"secondGoesOn\": [%u, %u]}\n", opened, call(second, "word", 1, result));
    WasmEdge_VMDelete(second);
    return 0;
}
