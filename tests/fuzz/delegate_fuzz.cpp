/// Fuzzes what the ExecuTorch delegate loads and runs.
#include "fuzz/delegate_target.h"
#include "fuzz/fuzz_main.h"

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    return fuzz_main(argc, argv, "Fuzzes the blobs of the ExecuTorch delegate.", {delegate_target()});
}
