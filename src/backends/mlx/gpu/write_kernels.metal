// Follows write_unit.h in the text that metal.cpp gives to Metal's compiler.

template <typename T>
[[kernel]] void write_elements(device T* memory [[buffer(0)]], const device T* values [[buffer(1)]],
                               const device int64_t* numbers [[buffer(2)]],
                               constant headrace::mlx::WriteJob& job [[buffer(3)]],
                               uint unit [[thread_position_in_grid]]) {
    headrace::mlx::write_element(memory, values, numbers, job, int64_t(unit));
}

template [[host_name("write_1")]] [[kernel]] decltype(write_elements<uint8_t>) write_elements<uint8_t>;
template [[host_name("write_2")]] [[kernel]] decltype(write_elements<uint16_t>) write_elements<uint16_t>;
template [[host_name("write_4")]] [[kernel]] decltype(write_elements<uint32_t>) write_elements<uint32_t>;
template [[host_name("write_8")]] [[kernel]] decltype(write_elements<uint64_t>) write_elements<uint64_t>;

[[kernel]] void write_0(device uint8_t* memory [[buffer(0)]], const device float* values [[buffer(1)]],
                        const device int64_t* numbers [[buffer(2)]],
                        constant headrace::mlx::WriteJob& job [[buffer(3)]],
                        uint unit [[thread_position_in_grid]]) {
    headrace::mlx::write_group(memory, values, numbers, job, int64_t(unit));
}
