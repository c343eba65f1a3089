#pragma once
#include <string>
#include <string_view>

namespace headrace {

/// A file or folder of this checkout, whose path one source knows: the objects of the others are then the
/// same in any folder, and a compiler's cache serves them.
std::string checkout_path(std::string_view relative = "");

/// libggml-headrace.so; empty where it is not built.
std::string packed_library();
/// The folder of the WASI-NN libraries; empty where they are not built.
std::string wasi_nn_folder();
/// The folder of the C programs that the tests run.
std::string test_program_folder();

}  // namespace headrace
