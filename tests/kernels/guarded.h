// Floats between pages that must not be touched: reading or writing beyond them ends the test program.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <vector>

namespace headrace::kernels::testing {

class Guarded {
public:
    enum class Side { front, back };  // of the floats, that the forbidden page adjoins

    Guarded(const std::vector<float>& values, Side side) {
        const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), bytes = values.size() * sizeof(float);
        const size_t inner = (bytes + page - 1) / page * page;
        bytes_ = inner + 2 * page;
        memory_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory_ == MAP_FAILED) throw std::runtime_error("no memory for a guarded buffer");
        char* begin = static_cast<char*>(memory_) + page;
        // Emulators refuse to protect nothing.
        if (inner > 0 && mprotect(begin, inner, PROT_READ | PROT_WRITE) != 0)
            throw std::runtime_error("mprotect failed");
        data_ = reinterpret_cast<float*>(side == Side::front ? begin : begin + inner - bytes);
        std::copy(values.begin(), values.end(), data_);
    }
    ~Guarded() { munmap(memory_, bytes_); }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    float* data() { return data_; }
    const float* data() const { return data_; }

private:
    void* memory_ = nullptr;
    size_t bytes_ = 0;
    float* data_ = nullptr;
};

}  // namespace headrace::kernels::testing
