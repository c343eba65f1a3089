#include "llm/model/packed_kernels.h"

#include <ggml-backend.h>
#include <ggml-cpu.h>

#include <filesystem>
#include <optional>

#include "base/library_folder.h"

namespace headrace::llm {
namespace {

/// As a build and an installation lay it out beside our libraries and programs.
std::optional<std::filesystem::path> find_library() {
    const auto own = library_folder(reinterpret_cast<const void*>(&offer_packed_kernels));
    if (own.empty()) return {};
    std::error_code error;
    for (const char* folder : {".", "headrace", "../lib", "../lib/headrace", "../../lib"}) {
        const std::filesystem::path file = own / folder / "libggml-headrace.so";
        if (std::filesystem::is_regular_file(file, error)) return file;
    }
    return {};
}

}  // namespace

void offer_packed_kernels() {
    if (ggml_cpu_has_avx2() && !ggml_cpu_has_amx_int8()) load_packed_kernels();
}

void load_packed_kernels() {
    if (ggml_backend_reg_by_name("HEADRACE")) return;  // GGML_BACKEND_PATH has named it
    if (const auto file = find_library()) ggml_backend_load(file->c_str());
}

MakeInvariant find_make_invariant() {
    const ggml_backend_reg_t ours = ggml_backend_reg_by_name("HEADRACE");
    return ours ? reinterpret_cast<MakeInvariant>(
                      ggml_backend_reg_get_proc_address(ours, "headrace_make_invariant"))
                : nullptr;
}

}  // namespace headrace::llm
