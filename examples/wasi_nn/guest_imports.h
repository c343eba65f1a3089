/* What guests in C import of wasi_ephemeral_nn. The rules are in docs/guests.md. */
#ifndef GUEST_IMPORTS_H
#define GUEST_IMPORTS_H

#include <stdint.h>

#define NN(name) __attribute__((import_module("wasi_ephemeral_nn"), import_name(name)))

typedef struct {
    const uint32_t* dimensions;
    uint32_t dimension_count;
    uint32_t type;
    const void* data;
    uint32_t size;
} nn_tensor;
_Static_assert(sizeof(nn_tensor) == 20, "five words, as hosts read it");

enum { nn_fp32 = 1, nn_u8 = 3, nn_i64 = 5, nn_end_of_sequence = 100 };
/* Output 1 of a context is JSON: the reason of a failure, or the counts of an answer; of context 0, which is
 * none, the reason why the last call failed. */
enum { nn_metadata = 1 };

NN("load_by_name_with_config")
int32_t nn_load(const char* name, uint32_t name_size, const char* config, uint32_t config_size,
                uint32_t* graph);
NN("init_execution_context") int32_t nn_open(uint32_t graph, uint32_t* context);
NN("set_input") int32_t nn_set_input(uint32_t context, uint32_t index, const nn_tensor* tensor);
NN("compute") int32_t nn_compute(uint32_t context);
NN("get_output")
int32_t nn_get_output(uint32_t context, uint32_t index, void* buffer, uint32_t capacity, uint32_t* size);
NN("compute_single") int32_t nn_compute_piece(uint32_t context);
NN("get_output_single")
int32_t nn_get_piece(uint32_t context, uint32_t index, void* buffer, uint32_t capacity, uint32_t* size);
NN("fini_single") int32_t nn_end_pieces(uint32_t context);
NN("unload") int32_t nn_unload(uint32_t graph);

#endif
