// Functions of ggml's CPU backend where that is a library which is loaded at run time (GGML_BACKEND_DL): what
// calls them links these, which call the loaded ones. ggml_backend_reg_get_proc_address knows few of them.
#ifdef HEADRACE_PORTABLE
#include <dlfcn.h>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml.h"
#include "loading/backends.h"

namespace headrace {
namespace {

/// The loaded library, which stays loaded: ggml never unloads a backend.
void* cpu_library() {
    load_backends();
    ggml_backend_reg_t cpu = ggml_backend_reg_by_name("CPU");
    void* inside = cpu ? ggml_backend_reg_get_proc_address(cpu, "ggml_backend_set_n_threads") : nullptr;
    Dl_info info{};
    void* library =
        inside && dladdr(inside, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    if (!library) GGML_ABORT("ggml has no CPU backend; its library should lie beside libggml");
    return library;
}

template <typename Function>
Function* loaded(Function*, const char* name) {
    static void* const library = cpu_library();
    void* found = dlsym(library, name);
    if (!found) GGML_ABORT("ggml's CPU backend has no %s", name);
    return reinterpret_cast<Function*>(found);
}

}  // namespace
}  // namespace headrace

// Each looks its namesake up once.
#define HEADRACE_LOADED(name) static const auto function = headrace::loaded(&name, #name)

extern "C" {

ggml_cplan ggml_graph_plan(const ggml_cgraph* graph, int threads, ggml_threadpool* pool) {
    HEADRACE_LOADED(ggml_graph_plan);
    return function(graph, threads, pool);
}

ggml_status ggml_graph_compute(ggml_cgraph* graph, ggml_cplan* plan) {
    HEADRACE_LOADED(ggml_graph_compute);
    return function(graph, plan);
}

ggml_threadpool* ggml_threadpool_new(ggml_threadpool_params* params) {
    HEADRACE_LOADED(ggml_threadpool_new);
    return function(params);
}

void ggml_threadpool_free(ggml_threadpool* pool) {
    HEADRACE_LOADED(ggml_threadpool_free);
    function(pool);
}

void ggml_backend_cpu_set_n_threads(ggml_backend_t backend, int threads) {
    HEADRACE_LOADED(ggml_backend_cpu_set_n_threads);
    function(backend, threads);
}

void ggml_backend_cpu_set_threadpool(ggml_backend_t backend, ggml_threadpool_t pool) {
    HEADRACE_LOADED(ggml_backend_cpu_set_threadpool);
    function(backend, pool);
}

const ggml_type_traits_cpu* ggml_get_type_traits_cpu(ggml_type type) {
    HEADRACE_LOADED(ggml_get_type_traits_cpu);
    return function(type);
}

int ggml_cpu_has_avx2() {
    HEADRACE_LOADED(ggml_cpu_has_avx2);
    return function();
}

int ggml_cpu_has_amx_int8() {
    HEADRACE_LOADED(ggml_cpu_has_amx_int8);
    return function();
}

}  // extern "C"
#endif
