/* A WebAssembly guest that searches by meaning: finds the lines of its standard input that are nearest to
 * each of its arguments. The vectors are MiniLM's, an ONNX model that its host calls `minilm`; the words of
 * its tokenizer are in /minilm/vocab.txt, a folder that the host gives it. Letters beyond ASCII are taken as
 * they are written.
 *
 *   zig cc -target wasm32-wasi -Os -o guest_search.wasm guest_search.c
 *   headrace wasm guest_search.wasm --alias minilm=minilm.onnx --dir FOLDER::/minilm -- "dearer every day" */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest_imports.h"

enum {
    width = 384,
    shown = 2,
    most_words = 1 << 16,
    longest_text = 4096,
    most_tokens = 256,
    most_lines = 4096
};

typedef struct {
    const char* text;
    int64_t number;
} word_piece;
static word_piece words[most_words];
static size_t word_count;

typedef struct {
    int64_t numbers[most_tokens];
    uint32_t count;
} token_list;

static int by_text(const void* a, const void* b) {
    return strcmp(((const word_piece*)a)->text, ((const word_piece*)b)->text);
}

static int read_words(const char* path) {
    static char line[longest_text];
    FILE* file = fopen(path, "r");
    if (!file) return 0;
    for (; word_count < most_words && fgets(line, sizeof line, file); ++word_count) {
        line[strcspn(line, "\r\n")] = 0;
        words[word_count] = (word_piece){strdup(line), (int64_t)word_count};
    }
    fclose(file);
    qsort(words, word_count, sizeof *words, by_text);
    return word_count > 0;
}

/* The word's number, or -1. */
static int64_t number_of(const char* text) {
    const word_piece wanted = {text, 0};
    const word_piece* found = bsearch(&wanted, words, word_count, sizeof *words, by_text);
    return found ? found->number : -1;
}

static void add(token_list* tokens, int64_t number) {
    if (tokens->count < most_tokens) tokens->numbers[tokens->count++] = number;
}

/* The longest known pieces of a word; one that has none is [UNK]. */
static void add_word(token_list* tokens, const char* word, size_t size) {
    char piece[longest_text + 2];
    const uint32_t before = tokens->count;
    for (size_t start = 0, end; start < size; start = end) {
        int64_t number = -1;
        for (end = size; end > start; --end) {
            snprintf(piece, sizeof piece, "%s%.*s", start ? "##" : "", (int)(end - start), word + start);
            if ((number = number_of(piece)) >= 0) break;
        }
        if (number < 0) {
            tokens->count = before;
            add(tokens, number_of("[UNK]"));
            return;
        }
        add(tokens, number);
    }
}

/* BERT's tokens of lower case. */
static token_list tokens_of(const char* text) {
    char word[longest_text];
    size_t size = 0;
    token_list tokens = {.count = 0};
    add(&tokens, number_of("[CLS]"));
    for (;; ++text) {
        const unsigned char letter = (unsigned char)*text;
        const int is_of_word = letter >= 0x80 || isalnum(letter) || letter == '_';
        if (is_of_word && size < sizeof word) word[size++] = (char)tolower(letter);
        if (is_of_word) continue;
        add_word(&tokens, word, size);
        size = 0;
        if (!letter) break;
        if (!isspace(letter)) add_word(&tokens, (const char*)&letter, 1);
    }
    if (tokens.count == most_tokens) --tokens.count;
    add(&tokens, number_of("[SEP]"));
    return tokens;
}

static void check(const char* call, int32_t error) {
    static char reason[4096];
    uint32_t size = 0;
    if (!error) return;
    nn_get_output(0, nn_metadata, reason, sizeof reason, &size);
    fprintf(stderr, "guest_search: %s failed with %d\n%.*s\n", call, (int)error, (int)size, reason);
    exit(1);
}

static void read_vector(uint32_t context, const char* text, float* vector) {
    const token_list tokens = tokens_of(text);
    int64_t mask[most_tokens];
    const uint32_t shape[] = {1, tokens.count};
    uint32_t size = 0;
    for (uint32_t i = 0; i < tokens.count; ++i) mask[i] = 1;
    const nn_tensor ids = {shape, 2, nn_i64, tokens.numbers, tokens.count * 8},
                    attended = {shape, 2, nn_i64, mask, tokens.count * 8};
    check("set_input", nn_set_input(context, 0, &ids));
    check("set_input", nn_set_input(context, 1, &attended));
    check("compute", nn_compute(context));
    check("get_output", nn_get_output(context, 0, vector, width * sizeof *vector, &size));
}

static char lines[most_lines][longest_text];
static float vectors[most_lines][width], likeness[most_lines];

static void print_nearest(int count) {
    for (int place = 0; place < shown && place < count; ++place) {
        int best = 0;
        for (int i = 1; i < count; ++i)
            if (likeness[i] > likeness[best]) best = i;
        printf("  %.4f  %s\n", (double)likeness[best], lines[best]);
        likeness[best] = -2;
    }
}

int main(int argc, char** argv) {
    uint32_t graph = 0, context = 0;
    int count = 0;
    if (!read_words("/minilm/vocab.txt"))
        return fprintf(stderr, "guest_search: the host gives the tokenizer's words as /minilm/vocab.txt\n"),
               2;
    check("load_by_name_with_config", nn_load("minilm", 6, "", 0, &graph));
    check("init_execution_context", nn_open(graph, &context));
    while (count < most_lines && fgets(lines[count], longest_text, stdin)) {
        lines[count][strcspn(lines[count], "\r\n")] = 0;
        if (*lines[count]) read_vector(context, lines[count], vectors[count]), ++count;
    }
    for (int i = 1; i < argc; ++i) {
        float asked[width];
        read_vector(context, argv[i], asked);
        printf("%s\n", argv[i]);
        for (int line = 0; line < count; ++line) {
            likeness[line] = 0;
            for (int at = 0; at < width; ++at) likeness[line] += asked[at] * vectors[line][at];
        }
        print_nearest(count);
    }
    return 0;
}
