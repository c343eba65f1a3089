#pragma once
#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// "guest_calls": a guest's memory and its calls of libwasi_nn_llamacpp.so, with wrong numbers, pointers,
/// tensors and models. An unreadable page follows the memory. No corpus: the library is not built.
Target guest_calls_target();

}  // namespace headrace::fuzz
