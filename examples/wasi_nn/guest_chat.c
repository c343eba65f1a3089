/* A WebAssembly guest that chats with a language model through WASI-NN.
 *
 *   zig cc -target wasm32-wasi -Os -o guest_chat.wasm guest_chat.c
 *   headrace wasm guest_chat.wasm --model chat.gguf -- "What is 2+3?"
 *
 * guest_chat [--model NAME] [--config JSON] [--whole] [--metadata] [QUESTION...]: without questions it asks
 * what it reads line by line. --whole waits for whole answers, and makes only the calls that every host of
 * language models has: no pieces and no unload, which WAMR lacks. WAMR starts a guest whose other imports it
 * cannot serve, and traps where one is called. For hosts that refuse such a guest, -DGUEST_CHAT_WHOLE
 * compiles one without these imports, which is always --whole. --metadata prints the last answer's token
 * counts and times. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "guest_imports.h"

enum { nn_prompt = 0, nn_answer = 0 };

static uint8_t buffer[1 << 16];

static void print_metadata(FILE* file, uint32_t context) {
    uint32_t size = 0;
    if (nn_get_output(context, nn_metadata, buffer, sizeof buffer, &size) == 0)
        fprintf(file, "%.*s\n", (int)size, buffer);
}

static int failed(const char* call, int32_t error, uint32_t context) {
    fflush(stdout);
    fprintf(stderr, "guest_chat: %s failed with %d\n", call, (int)error);
    print_metadata(stderr, context);
    return 1;
}

static int print_answer(uint32_t context) {
    uint32_t size = 0;
    int32_t error = nn_compute(context);
    if (error) return failed("compute", error, context);
    error = nn_get_output(context, nn_answer, buffer, sizeof buffer, &size);
    if (error) return failed("get_output", error, context);
    fwrite(buffer, 1, size, stdout);
    return 0;
}

/* What only hosts with all calls can do. */
#ifdef GUEST_CHAT_WHOLE
enum { only_whole = 1 };
static int stream_answer(uint32_t context) { return print_answer(context); }
static int unload(uint32_t graph, uint32_t context) { return (void)graph, (void)context, 0; }
#else
enum { only_whole = 0 };
static int stream_answer(uint32_t context) {
    uint32_t size = 0;
    int32_t error;
    while ((error = nn_compute_piece(context)) == 0) {
        error = nn_get_piece(context, nn_answer, buffer, sizeof buffer, &size);
        if (error) return failed("get_output_single", error, context);
        fwrite(buffer, 1, size, stdout);
        fflush(stdout);
    }
    if (error != nn_end_of_sequence) return failed("compute_single", error, context);
    error = nn_end_pieces(context);
    return error ? failed("fini_single", error, context) : 0;
}

static int unload(uint32_t graph, uint32_t context) {
    const int32_t error = nn_unload(graph);
    return error ? failed("unload", error, context) : 0;
}
#endif

static int ask(uint32_t context, const char* question, int whole) {
    const uint32_t size = (uint32_t)strlen(question);
    const nn_tensor tensor = {&size, 1, nn_u8, question, size};
    const int32_t error = nn_set_input(context, nn_prompt, &tensor);
    if (error) return failed("set_input", error, context);
    printf("> %s\n", question);
    if (whole ? print_answer(context) : stream_answer(context)) return 1;
    printf("\n");
    fflush(stdout); /* a host that traps later would lose it */
    return 0;
}

static int ask_lines(uint32_t context, int whole) {
    static char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line && ask(context, line, whole)) return 1;
    }
    return 0;
}

int main(int argc, char** argv) {
    const char *model = "default", *config = "{\"history\": true}";
    uint32_t graph = 0, context = 0;
    int whole = only_whole, metadata = 0, first = 1, result = 0;
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; ++first) {
        if (strcmp(argv[first], "--whole") == 0)
            whole = 1;
        else if (strcmp(argv[first], "--metadata") == 0)
            metadata = 1;
        else if (strcmp(argv[first], "--model") == 0 && first + 1 < argc)
            model = argv[++first];
        else if (strcmp(argv[first], "--config") == 0 && first + 1 < argc)
            config = argv[++first];
        else
            return fprintf(stderr, "guest_chat: what is %s?\n", argv[first]), 2;
    }
    int32_t error = nn_load(model, strlen(model), config, strlen(config), &graph);
    if (error) return failed("load_by_name_with_config", error, 0);
    error = nn_open(graph, &context);
    if (error) return failed("init_execution_context", error, 0);
    if (first == argc) result = ask_lines(context, whole);
    for (; first < argc && result == 0; ++first) result = ask(context, argv[first], whole);
    if (metadata && result == 0) print_metadata(stdout, context);
    if (!whole && unload(graph, context)) return 1;
    return result;
}
