/* A WebAssembly guest that tells which digit a drawing is: a text of marks and blanks, of any size.
 *
 *   zig cc -target wasm32-wasi -Os -o guest_digits.wasm guest_digits.c
 *   headrace wasm guest_digits.wasm --alias digits=build/models/digits.hrg -- "$(cat
 * examples/node/digit.txt)"
 *
 * The network is that of examples/node/train_digits.mjs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "guest_imports.h"

enum { side = 12, digits = 10, shown = 3, most_marks = 1 << 14 };

static int failed(const char* call, int32_t error) {
    static char reason[4096];
    uint32_t size = 0;
    nn_get_output(0, nn_metadata, reason, sizeof reason, &size);
    fprintf(stderr, "guest_digits: %s failed with %d\n%.*s\n", call, (int)error, (int)size, reason);
    return 1;
}

static double overlap(double cell, double from, double length) {
    return fmax(0, fmin(cell + 1, from + length) - fmax(cell, from));
}

/* A mark at (x, y), `scale` cells wide, is spread over the cells that it covers. */
static void spread(double x, double y, double scale, float* image) {
    for (int row = (int)floor(y); row < y + scale; ++row)
        for (int column = (int)floor(x); column < x + scale; ++column) {
            if (row < 0 || row >= side || column < 0 || column >= side) continue;
            float* cell = &image[row * side + column];
            *cell = (float)fmin(1, *cell + overlap(column, x, scale) * overlap(row, y, scale));
        }
}

/* What is drawn fills 12 x 12 numbers from 0 to 1, its proportions kept; 0: nothing is. */
static int normalize(const char* text, float* image) {
    static int xs[most_marks], ys[most_marks];
    int marks = 0, x = 0, y = 0, left = most_marks, right = 0, top = most_marks, bottom = 0;
    for (; *text && marks < most_marks; ++text) {
        if (*text == '\n') {
            x = 0, ++y;
            continue;
        }
        if (*text != ' ' && *text != '.') {
            left = x < left ? x : left, right = x > right ? x : right;
            top = y < top ? y : top, bottom = y > bottom ? y : bottom;
            xs[marks] = x, ys[marks++] = y;
        }
        ++x;
    }
    if (!marks) return 0;
    const int width = right - left + 1, height = bottom - top + 1;
    const double scale = (double)side / (width > height ? width : height);
    const double dx = (side - width * scale) / 2, dy = (side - height * scale) / 2;
    for (int i = 0; i < marks; ++i)
        spread(dx + (xs[i] - left) * scale, dy + (ys[i] - top) * scale, scale, image);
    return 1;
}

static void print_likeliest(float* probabilities) {
    for (int i = 0; i < shown; ++i) {
        int best = 0;
        for (int digit = 1; digit < digits; ++digit)
            if (probabilities[digit] > probabilities[best]) best = digit;
        printf("%d: %.1f %%\n", best, 100 * (double)probabilities[best]);
        probabilities[best] = -1;
    }
}

int main(int argc, char** argv) {
    static float image[side * side], probabilities[digits];
    const uint32_t shape[] = {1, side * side};
    const nn_tensor tensor = {shape, 2, nn_fp32, image, sizeof image};
    uint32_t graph = 0, context = 0, size = 0;
    if (argc != 2 || !normalize(argv[1], image))
        return fprintf(stderr, "guest_digits DRAWING: a text of marks and blanks\n"), 2;
    int32_t error = nn_load("digits", 6, "", 0, &graph);
    if (error) return failed("load_by_name_with_config", error);
    if ((error = nn_open(graph, &context))) return failed("init_execution_context", error);
    if ((error = nn_set_input(context, 0, &tensor))) return failed("set_input", error);
    if ((error = nn_compute(context))) return failed("compute", error);
    if ((error = nn_get_output(context, 0, probabilities, sizeof probabilities, &size)))
        return failed("get_output", error);
    print_likeliest(probabilities);
    return 0;
}
