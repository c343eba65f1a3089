/* libwasi_nn_llamacpp.so for hosts in C: opened, with a backend for each guest, and the table of what guests
 * import. A call is made by headrace_guest_call, which checks the guest's pointers:
 * headrace/wasi_nn_guests.h. */
#ifndef HEADRACE_GUEST_CALLS_H
#define HEADRACE_GUEST_CALLS_H

#include <dlfcn.h>
#include <headrace/wasi_nn_guests.h>
#include <headrace/wasi_nn_llamacpp.h>

/* What a guest uses: its handles and limits are its own. */
typedef struct {
    void* backend;
    __typeof__(&init_backend_with_config) init_backend_with_config;
    __typeof__(&deinit_backend) deinit_backend;
    __typeof__(&headrace_guest_call) headrace_guest_call;
} guest_backend;

#define IMPORT(name, parameters) {#name, parameters},
static const headrace_guest_import imports[] = {HEADRACE_GUEST_IMPORTS(IMPORT)};
#undef IMPORT
enum { import_count = sizeof imports / sizeof *imports };

static bool find_function(void** function, void* library, const char* name) {
    return (*function = dlsym(library, name)) != NULL;
}
#define FIND(name) find_function((void**)&nn->name, library, #name)

/* Opens the library and a backend; config is JSON. NULL, or what went wrong. */
static const char* open_backend(guest_backend* nn, const char* path, const char* config,
                                uint32_t config_size) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library || !FIND(init_backend_with_config) || !FIND(deinit_backend) || !FIND(headrace_guest_call))
        return dlerror();
    if (nn->init_backend_with_config(&nn->backend, config, config_size) != success)
        return "the configuration was refused; the log says why";
    return NULL;
}

static void close_backend(guest_backend* nn) {
    if (nn->backend) nn->deinit_backend(nn->backend);
    nn->backend = NULL;
}

#endif
