/// Fuzzes what a host of our RPC client may answer.
#include "fuzz/fuzz_main.h"
#include "fuzz/rpc_host_target.h"

int main(int argc, char** argv) {
    using namespace headrace::fuzz;
    return fuzz_main(argc, argv, "Fuzzes the replies of an RPC host.", {rpc_host_target()});
}
