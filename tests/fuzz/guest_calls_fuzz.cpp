/// Fuzzes the calls of WebAssembly guests.
#include <cstdio>

#include "fuzz/fuzz_main.h"
#include "fuzz/guest_calls_target.h"

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    if (guest_calls_target().corpus.empty())
        return std::puts("guest_calls: the WASI-NN libraries are not built: llama.cpp is not set up"), 0;
    return fuzz_main(argc, argv, "Fuzzes the calls of WebAssembly guests.", {guest_calls_target()});
}
