#pragma once
#include <string>

#include <ggml.h>

namespace headrace::llm {

/// llama.cpp's and ggml's own messages go to the process's log: warnings and errors, and everything at the
/// level debug. The first call counts. What its common library prints is silenced, as that can only go to
/// stdout or a file.
void capture_llama_log();
/// What takes them, for libraries of llama.cpp that have a log of their own.
ggml_log_callback llama_log_callback();

/// What llama.cpp says on this thread from now on is of the level debug: a step that is broken off on purpose
/// is an error to it.
void expect_llama_errors(bool expected);

/// What llama.cpp called errors on this thread since the last call, for the message of what failed by them.
std::string take_llama_errors();

}  // namespace headrace::llm
