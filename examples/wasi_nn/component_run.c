/* A component that runs any graph by wasi:nn 0.2: reads named inputs from its arguments, and prints all outputs.
 *
 *     component_run MODEL NAME:TYPE:DIMENSIONS:VALUES ...    x:f32:2x2:1,2,3,4  prompt:text:Hello
 */
#include <stdio.h>
#include <string.h>

#include "component_calls.h"

enum { most_inputs = 16, most_dimensions = 8, most_values = 65536 };

static const char* const codes[] = {"invalid-argument", "invalid-encoding", "timeout", "runtime-error",
                                    "unsupported-operation", "too-large", "not-found", "security", "unknown"};

static int fail(nn_handle error) {
    nn_bytes message;
    nn_error_data(error, &message);
    fprintf(stderr, "%s: %.*s\n", codes[nn_error_code(error)], (int)message.size, message.bytes);
    nn_drop_error(error);
    return 1;
}

static uint32_t read_dimensions(char* text, uint32_t* dimensions) {
    uint32_t count = 0;
    for (char* part = strtok(text, "x"); part && count < most_dimensions; part = strtok(NULL, "x"))
        dimensions[count++] = (uint32_t)strtoul(part, NULL, 10);
    return count;
}

/* The tensor of an argument, whose name is cut off in place. */
static int read_input(char* argument, nn_named_tensor* input) {
    static union {
        float f32[most_values];
        int32_t i32[most_values];
        int64_t i64[most_values];
    } values;
    uint32_t dimensions[most_dimensions], count = 0;
    char* type = strchr(argument, ':');
    char* shape = type ? strchr(type + 1, ':') : NULL;
    if (!shape) return 0;
    *type++ = *shape++ = 0;
    input->name = (nn_bytes){argument, (uint32_t)strlen(argument)};
    if (!strcmp(type, "text")) {
        const uint32_t size = (uint32_t)strlen(shape);
        input->tensor = nn_tensor(&size, 1, NN_U8, shape, size);
        return 1;
    }
    char* list = strchr(shape, ':');
    if (!list) return 0;
    *list++ = 0;
    const uint32_t rank = read_dimensions(shape, dimensions);
    for (char* part = strtok(list, ","); part && count < most_values; part = strtok(NULL, ","), ++count) {
        if (!strcmp(type, "f32")) values.f32[count] = strtof(part, NULL);
        if (!strcmp(type, "i32")) values.i32[count] = (int32_t)strtol(part, NULL, 10);
        if (!strcmp(type, "i64")) values.i64[count] = strtoll(part, NULL, 10);
    }
    const int number = !strcmp(type, "f32") ? NN_FP32 : !strcmp(type, "i32") ? NN_I32 : NN_I64;
    input->tensor = nn_tensor(dimensions, rank, number, &values, count * (number == NN_I64 ? 8 : 4));
    return 1;
}

static void print_output(const nn_named_tensor* output) {
    nn_words dimensions;
    nn_bytes data;
    const int type = nn_type_of(output->tensor);
    nn_dimensions(output->tensor, &dimensions);
    nn_data(output->tensor, &data);
    printf("%.*s [", (int)output->name.size, output->name.bytes);
    for (uint32_t i = 0; i < dimensions.count; ++i) printf(i ? ", %u" : "%u", dimensions.numbers[i]);
    printf("]:");
    if (type == NN_U8) printf(" %.*s", (int)data.size, data.bytes);
    for (uint32_t i = 0; type == NN_FP32 && i < data.size / 4; ++i) printf(" %.9g", ((float*)data.bytes)[i]);
    for (uint32_t i = 0; type == NN_I32 && i < data.size / 4; ++i) printf(" %d", ((int32_t*)data.bytes)[i]);
    for (uint32_t i = 0; type == NN_I64 && i < data.size / 8; ++i)
        printf(" %lld", (long long)((int64_t*)data.bytes)[i]);
    printf("\n");
    nn_drop_tensor(output->tensor);
    free(dimensions.numbers);
    free(data.bytes);
}

int main(int count, char** arguments) {
    nn_named_tensor inputs[most_inputs];
    nn_result graph, context;
    nn_outputs outputs;
    const int given = count - 2;
    if (given < 0 || given > most_inputs) return fprintf(stderr, "component_run MODEL INPUT ...\n"), 2;
    nn_load_by_name(arguments[1], (uint32_t)strlen(arguments[1]), &graph);
    if (graph.is_error) return fail(graph.handle);
    nn_open(graph.handle, &context);
    nn_drop_graph(graph.handle); /* the context goes on */
    if (context.is_error) return fail(context.handle);
    for (int i = 0; i < given; ++i)
        if (!read_input(arguments[i + 2], &inputs[i]))
            return fprintf(stderr, "NAME:TYPE:DIMENSIONS:VALUES, not %s\n", arguments[i + 2]), 2;
    nn_compute(context.handle, inputs, (uint32_t)given, &outputs); /* hands the inputs over */
    if (outputs.is_error) return fail(outputs.of.error);
    for (uint32_t i = 0; i < outputs.of.tensors.count; ++i) print_output(&outputs.of.tensors.items[i]);
    nn_drop_context(context.handle);
    return 0;
}
