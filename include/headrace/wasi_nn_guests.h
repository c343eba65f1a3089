/* Calls of WebAssembly guests for hosts of libwasi_nn_llamacpp.so and libwasi_nn_onnx.so: of core modules
 * that import wasi_ephemeral_nn as numbers, and the guest's memory, which is read and written where it is; of
 * components, which import wasi:nn, as values of wasmtime's C interface. */
#ifndef HEADRACE_WASI_NN_GUESTS_H
#define HEADRACE_WASI_NN_GUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEADRACE_WASI_NN_GUESTS_API __attribute__((visibility("default")))

/* The imports with the numbers of their i32 parameters; each returns one. docs/guests.md says what they do.
 */
#define HEADRACE_GUEST_IMPORTS(X)             \
    X(load, 5)                                \
    X(load_by_name, 3)                        \
    X(load_by_name_with_config, 5)            \
    X(unload, 1)                              \
    X(init_execution_context, 2)              \
    X(init_execution_context_with_session, 4) \
    X(close_execution_context, 1)             \
    X(set_input, 3)                           \
    X(compute, 1)                             \
    X(get_output, 5)                          \
    X(compute_single, 1)                      \
    X(get_output_single, 5)                   \
    X(fini_single, 1)
enum { headrace_guest_most_parameters = 5 };

typedef struct {
    const char* name;
    uint32_t parameters;
} headrace_guest_import;

/* An import by its number, its place above; NULL behind the last one. */
HEADRACE_WASI_NN_GUESTS_API const headrace_guest_import* headrace_guest_import_of(uint32_t number);

/* Makes a guest's call: 0, or a wasi_nn_error. parameters: as many as the import has. A pointer or a size
 * that reaches outside the memory, also inside a tensor, is invalid_argument, and nothing is written then. */
HEADRACE_WASI_NN_GUESTS_API uint32_t headrace_guest_call(void* backend, uint32_t number, uint8_t* memory,
                                                         uint64_t size, const uint32_t* parameters);

/* For hosts on wasmtime's C interface: its functions, and where its structures have what is needed, so that
 * this library needs no headers of its. */
typedef struct {
    bool (*caller_export_get)(void* caller, const char* name, size_t size, void* item);
    void* (*caller_context)(const void* caller);
    uint8_t* (*memory_data)(const void* context, const void* memory);
    size_t (*memory_data_size)(const void* context, const void* memory);
    void (*extern_delete)(void* item);
    uint32_t item_size;    /* of a wasmtime_extern_t, whose first byte is its kind; 64 at most */
    uint32_t item_content; /* where it begins */
    uint32_t memory_kind;
    uint32_t value_size; /* of a wasmtime_val_raw_t, which begins with its i32 */
    /* Gets the name that a guest could not load; NULL: nobody wants it. */
    void (*on_failed_load)(const char* name, uint32_t size);
    /* The store of the guest that called first, NULL at first: the handles are its own, and calls from
     * another store are invalid_argument. */
    void* store;
} headrace_wasmtime;

typedef struct {
    headrace_wasmtime* wasmtime;
    void* backend;
    uint32_t number;
} headrace_wasmtime_import;

/* A wasmtime_func_unchecked_callback_t, whose `import` is a headrace_wasmtime_import. It never traps. */
HEADRACE_WASI_NN_GUESTS_API void* headrace_wasmtime_call(void* import, void* caller, void* values,
                                                         size_t count);

/* The memories of one guest under wasmtime, of which all together have most_bytes at most, 0 for as many as
 * may be. function_of: gives a function of wasmtime's C interface by its name, NULL for one that it lacks.
 * Gives NULL where wasmtime lacks a function. */
HEADRACE_WASI_NN_GUESTS_API void* headrace_memories_new(void* (*function_of)(const char* name),
                                                        uint64_t most_bytes);
/* Has a wasm_config_t make the guest's memories there, which live as long as its engine. */
HEADRACE_WASI_NN_GUESTS_API bool headrace_memories_define(const void* memories,
                                                          void* (*function_of)(const char* name),
                                                          void* config);
HEADRACE_WASI_NN_GUESTS_API void headrace_memories_delete(void* memories);

/* What a component imports of wasi:nn and headrace:nn under wasmtime, for one guest. most_bytes: of the
 * guest's tensors, which lie in the host, 0 for as many as may be; on_failed_load: gets the name that the
 * guest could not load, or is NULL; memories: the guest's, where a component may pass bytes as two
 * parameters, where they lie and how many they are, in place of a list, or NULL. Gives NULL where the backend
 * is none, or wasmtime lacks a function. */
HEADRACE_WASI_NN_GUESTS_API void* headrace_components_new(
    void* backend, void* (*function_of)(const char* name), uint64_t most_bytes,
    void (*on_failed_load)(const char* name, uint32_t size), const void* memories);

/* Gives the imports to a wasmtime_component_linker_t, whose guest needs them as long as it lives: NULL, or a
 * wasmtime_error_t. */
HEADRACE_WASI_NN_GUESTS_API void* headrace_components_define(void* components, void* linker);

/* What ended the guest, if an import did; else NULL. */
HEADRACE_WASI_NN_GUESTS_API const char* headrace_components_failure(const void* components);

/* Closes and unloads what the guest left. */
HEADRACE_WASI_NN_GUESTS_API void headrace_components_delete(void* components);

#ifdef __cplusplus
}
#endif

#endif
