/// Fuzzes the reader of ONNX models.
#include "fuzz/fuzz_main.h"
#include "fuzz/onnx_target.h"

/// A model of a few kilobytes may ask for constants of 1 GiB (docs/onnx.md), of which sanitizers keep some
/// that are freed.
extern "C" const char* __asan_default_options() {
    return "hard_rss_limit_mb=6000:quarantine_size_mb=64:allocator_may_return_null=1";
}

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    return fuzz_main(argc, argv, "Fuzzes the reader of ONNX models.", {onnx_target()});
}
