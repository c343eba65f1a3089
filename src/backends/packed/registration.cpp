#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "backends/host_version.h"
#include "backends/packed/buffer_type.h"
#include "backends/packed/invariance.h"
#include "kernels/gemm/block_gemm_int8.h"

namespace headrace::packed {
namespace {

using BufferTypes = std::vector<ggml_backend_buffer_type_t>;

/// A function of the library that the pointer leads into, loaded under whatever name.
void* sibling(const void* pointer, const char* name) {
    Dl_info info{};
    if (!dladdr(pointer, &info) || !info.dli_fname) return nullptr;
    void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (!library) return nullptr;
    void* found = dlsym(library, name);
    dlclose(library);
    return found;
}

/// The list of buffer types that ggml's CPU backend asks before its own kernels; null where that is out of
/// reach.
BufferTypes* extra_buffer_types(ggml_backend_reg_t cpu) {
    using Get = BufferTypes& (*)();
    const auto get = reinterpret_cast<Get>(sibling(reinterpret_cast<const void*>(cpu->iface.get_name),
                                                   "_Z39ggml_backend_cpu_get_extra_buffer_typesv"));
    return get ? &get() : nullptr;
}

/// ggml keeps our buffer type for as long as it lives.
void stay_loaded() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(&stay_loaded), &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE);
}

/// No device: what there is to offer belongs to the CPU's.
ggml_backend_reg_t registration() {
    static ggml_backend_reg instance{
        .api_version = GGML_BACKEND_API_VERSION,
        .iface = {.get_name = [](ggml_backend_reg_t) { return "HEADRACE"; },
                  .get_device_count = [](ggml_backend_reg_t) -> std::size_t { return 0; },
                  .get_device = [](ggml_backend_reg_t, std::size_t) -> ggml_backend_dev_t { return nullptr; },
                  .get_proc_address = [](ggml_backend_reg_t, const char* name) -> void* {
                      if (std::string_view(name) != "headrace_make_invariant") return nullptr;
                      return reinterpret_cast<void*>(&make_invariant);
                  }},
        .context = nullptr};
    return &instance;
}

ggml_backend_reg_t offer_packed_weights() {
    static bool is_offered = false;
    if (is_offered) return registration();
    if (!is_built_for_host("ggml-headrace")) return nullptr;
    if (!kernels::has_block_gemm_int8(BlockFormat::q8_0)) {
        GGML_LOG_ERROR("ggml-headrace: this CPU has neither AVX2 nor 64-bit NEON: not loaded\n");
        return nullptr;
    }
    ggml_backend_reg_t cpu = ggml_backend_reg_by_name("CPU");
    BufferTypes* types = cpu ? extra_buffer_types(cpu) : nullptr;
    if (!types) {
        GGML_LOG_ERROR("ggml-headrace: this program's CPU backend %s: not loaded\n",
                       cpu ? "does not show its list of buffer types" : "is not loaded yet");
        return nullptr;
    }
    ggml_backend_buffer_type_t ours = buffer_type(ggml_backend_reg_dev_get(cpu, 0));
    stay_loaded();
    types->insert(types->begin(), ours);  // before ggml's own packed formats
    is_offered = true;
    return registration();
}

/// Programs that have the CPU backend linked in may look for no other one. They can be started with this
/// library in LD_PRELOAD: then it is here before main, and ggml's libraries, on which the program depends,
/// are ready.
__attribute__((constructor)) void offer_when_preloaded() {
    const char* preloaded = std::getenv("LD_PRELOAD");
    Dl_info info{};
    if (!preloaded || !dladdr(reinterpret_cast<const void*>(&offer_when_preloaded), &info) || !info.dli_fname)
        return;
    const std::string_view path = info.dli_fname, name = path.substr(path.rfind('/') + 1);
    if (std::string_view(preloaded).find(name) != std::string_view::npos) offer_packed_weights();
}

}  // namespace
}  // namespace headrace::packed

GGML_BACKEND_DL_IMPL(headrace::packed::offer_packed_weights)
