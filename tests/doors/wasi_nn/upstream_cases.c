/* What the public test programs of wasi_nn_backend go through, each with an end that can be told: configurations in
 * both forms, sampling, a request's options, sessions, queues, logs, a change of models, criteria of stopping, wrong
 * calls. upstream_cases MODEL.gguf OTHER.gguf FOLDER; in FOLDER it writes a log. */
#define _POSIX_C_SOURCE 200809L
#define UPSTREAM_OPTIONS , const char *options, uint32_t options_size
#include "upstream_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static const char *model, *other_model, *folder;
static void* ctx;
static uint32_t graph, context, size;
static uint8_t output[1024];
static const char small[] = "{\"n_gpu_layers\": 0, \"ctx_size\": 512, \"n_predict\": 10, \"temp\": 0}";

static int begin(const char* config) {
    ctx = NULL;
    CHECK(nn.init_backend_with_config(&ctx, config, strlen(config)) == success && ctx != NULL);
    return 0;
}

static int load(const char* name, const char* config) {
    return nn.load_by_name_with_config(ctx, name, strlen(name), config, strlen(config), &graph);
}

static int begin_with_model(const char* backend, const char* config) {
    CHECK(begin(backend) == 0);
    CHECK(load(model, config) == success);
    CHECK(nn.init_execution_context(ctx, graph, &context) == success);
    return 0;
}

static int end(void) {
    CHECK(nn.deinit_backend(ctx) == success);
    return 0;
}

/* A tensor of no dimensions, as those programs pass a text. */
static int ask(uint32_t of, const char* text, const char* options) {
    tensor_dimensions none = {NULL, 0};
    tensor input = {&none, 4, (uint8_t*)text};
    size = sizeof output - 1;
    memset(output, 0, sizeof output);
    return nn.run_inference(ctx, of, 0, &input, output, &size, options, options ? strlen(options) : 0);
}

static int answers(const char* text, const char* options) {
    CHECK(ask(context, text, options) == success);
    CHECK(size > 0 && size == strlen((const char*)output));
    return 0;
}

static int says(const char* text) { return strstr((const char*)output, text) != NULL; }

static void wait_ms(int milliseconds) {
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

/* Configurations of a backend and of a model. */

static const char grouped_backend[] =
    "{\"backend\": {\"max_sessions\": 100, \"idle_timeout_ms\": 300000, \"auto_cleanup\": true, \"max_concurrent\": 8,"
    " \"queue_size\": 50, \"default_task_timeout_ms\": 30000, \"priority_scheduling_enabled\": true,"
    " \"fair_scheduling_enabled\": false, \"queue_warning_threshold\": 40, \"queue_reject_threshold\": 50},"
    " \"memory_policy\": {\"context_shifting\": true, \"cache_strategy\": \"lru\", \"max_cache_tokens\": 10000},"
    " \"logging\": {\"level\": \"error\", \"enable_debug\": false},"
    " \"performance\": {\"batch_processing\": true, \"batch_size\": 512}}";
static const char flat_backend[] =
    "{\"max_sessions\": 25, \"idle_timeout_ms\": 150000, \"auto_cleanup\": false, \"max_concurrent\": 2,"
    " \"queue_size\": 10}";
static const char flat_model[] =
    "{\"n_gpu_layers\": 48, \"ctx_size\": 1024, \"n_predict\": 25, \"batch_size\": 256, \"threads\": 4, \"temp\": 0.8,"
    " \"top_p\": 0.9, \"repeat_penalty\": 1.05}";
static const char grouped_model[] =
    "{\"model\": {\"n_gpu_layers\": 98, \"ctx_size\": 1024, \"n_predict\": 25, \"batch_size\": 512, \"threads\": 8},"
    " \"sampling\": {\"temp\": 0.9, \"top_p\": 0.8, \"top_k\": 30, \"min_p\": 0.1, \"typical_p\": 0.95,"
    " \"repeat_penalty\": 1.15, \"presence_penalty\": 0.1, \"frequency_penalty\": 0.1, \"penalty_last_n\": 32,"
    " \"mirostat\": 1, \"mirostat_tau\": 4.0, \"mirostat_eta\": 0.2, \"seed\": -1},"
    " \"stopping\": {\"stop\": [\"\\n\\n\", \"User:\"], \"max_tokens\": 25, \"max_time_ms\": 30000, \"ignore_eos\": true},"
    " \"memory\": {\"context_shifting\": true, \"cache_prompt\": true, \"max_cache_tokens\": 10000}}";

static int takes_configurations_in_both_forms(void) {
    const char* const backends[] = {"{}", flat_backend, grouped_backend};
    const char* const models[] = {flat_model, grouped_model};
    for (int i = 0; i < 3; ++i)
        for (int k = 0; k < 2; ++k)
            CHECK(begin_with_model(backends[i], models[k]) == 0 && answers("Hello", NULL) == 0 && end() == 0);
    return 0;
}

static int takes_options_of_a_request(void) {
    CHECK(begin_with_model("{\"max_concurrent\": 4}", small) == 0);
    CHECK(answers("What is 2+3?", NULL) == 0 && says("2+3=5"));
    CHECK(answers("Tell me a story.", "{\"temperature\": 1.2, \"top_p\": 0.95, \"max_tokens\": 40}") == 0);
    CHECK(answers("Tell me a story.", "{\"temperature\": 0.2, \"top_p\": 0.7, \"max_tokens\": 1}") == 0 && size < 20);
    CHECK(answers("What is 2+3?", "{\"max_tokens\": 100, \"stop\": [\"=\"]}") == 0);
    CHECK(says("2+3") && !says("="));
    CHECK(answers("Hi", "{\"top_k\": 50, \"repeat_penalty\": 1.15, \"frequency_penalty\": 0.1, \"seed\": 42}") == 0);
    CHECK(answers("What is 2+3?", "{\"temperature\": 0.8, \"cut_off") == 0 && says("2+3=5")); /* no JSON: the defaults */
    CHECK(answers("Hi", "{\"temperature\": 5.0, \"top_p\": 0.01, \"max_tokens\": 10, \"repeat_penalty\": 2.0}") == 0);
    return end();
}

/* Sessions and contexts. */

static int remembers_what_was_said(void) {
    CHECK(begin_with_model("{\"max_sessions\": 10, \"idle_timeout_ms\": 600000}", small) == 0);
    CHECK(answers("My name is Anna.", NULL) == 0 && answers("What is my name?", NULL) == 0 && says("Anna"));
    CHECK(nn.close_execution_context(ctx, context) == success);
    return end();
}

static int open_session(const char* name, uint32_t* opened) {
    wait_ms(5); /* another time than the one before */
    return nn.init_execution_context_with_session_id(ctx, name, opened);
}

static int closes_the_oldest_session_and_those_that_nobody_uses(void) {
    uint32_t opened[5];
    CHECK(begin("{\"max_sessions\": 3, \"idle_timeout_ms\": 2000, \"auto_cleanup_enabled\": true}") == 0);
    CHECK(load(model, small) == success);
    CHECK(open_session("one", &opened[0]) == success && open_session("two", &opened[1]) == success);
    CHECK(open_session("three", &opened[2]) == success && open_session("four", &opened[3]) == success);
    CHECK(ask(opened[0], "Hello", NULL) != success);
    CHECK(ask(opened[3], "Hello", NULL) == success);
    wait_ms(2500);
    CHECK(open_session("five", &opened[4]) == success);
    CHECK(ask(opened[1], "Hello", NULL) != success && ask(opened[4], "Hello", NULL) == success);
    CHECK(end() == 0);
    CHECK(begin("{\"max_sessions\": 2, \"idle_timeout_ms\": 100, \"auto_cleanup_enabled\": false}") == 0);
    CHECK(load(model, small) == success);
    CHECK(open_session("one", &opened[0]) == success && open_session("two", &opened[1]) == success);
    wait_ms(200);
    CHECK(ask(opened[0], "Hello", NULL) == success); /* though it was idle for longer */
    CHECK(open_session("three", &opened[2]) == success);
    CHECK(ask(opened[1], "Hello", NULL) != success); /* the one that was used longest ago */
    return end();
}

static int opens_two_contexts_of_two(void) {
    uint32_t second, third;
    CHECK(begin_with_model("{\"max_concurrent\": 2, \"queue_size\": 5}", small) == 0);
    CHECK(nn.init_execution_context(ctx, graph, &second) == success);
    CHECK(nn.init_execution_context(ctx, graph, &third) == runtime_error);
    CHECK(nn.close_execution_context(ctx, context) == success);
    CHECK(nn.init_execution_context(ctx, graph, &third) == success);
    CHECK(nn.close_execution_context(ctx, second) == success);
    CHECK(nn.close_execution_context(ctx, third) == success);
    return end();
}

/* Opens and closes contexts: how often it could. */
static void* opens(void* count) {
    for (int i = 0; i < 50; ++i) {
        uint32_t opened;
        const int code = nn.init_execution_context(ctx, graph, &opened);
        if (code == success && nn.close_execution_context(ctx, opened) == success) ++*(int*)count;
        if (code != success && code != runtime_error) return NULL;
    }
    return count;
}

static int opens_contexts_from_threads(void) {
    pthread_t threads[4];
    int counts[4] = {0}, in_all = 0;
    CHECK(begin("{\"backend\": {\"max_concurrent\": 2, \"queue_size\": 5}}") == 0);
    CHECK(load("dummy_model.gguf", small) == model_not_found);
    CHECK(nn.init_execution_context(ctx, 0, &context) == not_found);
    CHECK(load(model, small) == success);
    for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, opens, &counts[i]) == 0);
    for (int i = 0; i < 4; ++i) {
        void* told = NULL;
        CHECK(pthread_join(threads[i], &told) == 0 && told == &counts[i]);
        in_all += counts[i];
    }
    CHECK(in_all > 0);
    return end();
}

/* Logs. */

static int logs_as_it_is_told(void) {
    static const char* const levels[] = {
        "{\"model\": {\"ctx_size\": 1024}, \"logging\": {\"level\": \"error\", \"colors\": true}}",
        "{\"logging\": {\"level\": \"none\", \"enable_debug\": false, \"timestamps\": false}}"};
    char config[600], path[400], line[400] = "";
    for (int i = 0; i < 2; ++i) CHECK(begin(levels[i]) == 0 && end() == 0);
    snprintf(path, sizeof path, "%s/host.log", folder);
    snprintf(config, sizeof config,
             "{\"logging\": {\"level\": \"debug\", \"enable_debug\": true, \"timestamps\": true, \"colors\": false,"
             " \"file\": \"%s\"}, \"backend\": {\"max_sessions\": 10}}",
             path);
    CHECK(begin_with_model(config, small) == 0 && answers("Hello", NULL) == 0 && end() == 0);
    FILE* written = fopen(path, "r");
    CHECK(written != NULL && fgets(line, sizeof line, written) != NULL);
    fclose(written);
    CHECK(strlen(line) > 10);
    return begin("{\"logging\": {\"level\": \"none\"}}") || end();
}

/* Models. */

static int changes_its_model_and_back(void) {
    const char* const names[] = {model, other_model, model};
    CHECK(begin(grouped_backend) == 0);
    for (int i = 0; i < 3; ++i) {
        tensor_dimensions none = {NULL, 0};
        tensor input = {&none, 4, (uint8_t*)"What is 2+3?"};
        CHECK(load(names[i], small) == success);
        CHECK(nn.init_execution_context(ctx, graph, &context) == success);
        CHECK(nn.set_input(ctx, context, 0, &input) == success && nn.compute(ctx, context) == success);
        size = sizeof output - 1;
        CHECK(nn.get_output(ctx, context, 0, output, &size) == success && says("2+3=5"));
        CHECK(nn.close_execution_context(ctx, context) == success);
    }
    return end();
}

/* Criteria of stopping. */

static int ends_answers_where_it_is_told(void) {
    static const char config[] =
        "{\"model\": {\"ctx_size\": 512, \"threads\": 8}, \"sampling\": {\"temp\": 0, \"penalty_last_n\": 128},"
        " \"stopping\": {\"stop_sequences\": [\"<|end|>\", \"</response>\", \"The end\"], \"max_tokens\": 200,"
        " \"grammar_triggers\": {\"enabled\": true, \"patterns\": [\"^\\\\s*$\", \"=\", \"\\\\b(END|STOP)\\\\b\"]},"
        " \"timeout_config\": {\"enabled\": true, \"max_inference_time_ms\": 30000, \"adaptive_timeout\": true,"
        " \"min_timeout_ms\": 5000, \"timeout_multiplier\": 1.5},"
        " \"semantic_stopping\": {\"enabled\": true, \"completion_confidence_threshold\": 0.85,"
        " \"repetition_detection\": true, \"max_repetition_count\": 3},"
        " \"token_filters\": {\"forbidden_tokens\": [\"<unk>\", \"sleepy\"], \"required_tokens\": [\"+\"],"
        " \"pattern_based_triggers\": [\"^[A-Z][a-z]+\\\\.$\"]}},"
        " \"backend\": {\"max_sessions\": 50, \"max_concurrent\": 2, \"auto_cleanup_sessions\": true}}";
    CHECK(begin_with_model(config, config) == 0);
    CHECK(answers("What is 2+3?", NULL) == 0 && strcmp((const char*)output, "2+3=") == 0);
    CHECK(answers("Tell me a story.", NULL) == 0 && !says("sleepy") && !says("<unk>"));
    return end();
}

/* What is wrong. */

static int refuses_wrong_calls(void) {
    tensor nothing = {0};
    CHECK(nn.init_backend_with_config(NULL, small, strlen(small)) == invalid_argument);
    CHECK(begin(small) == 0);
    CHECK(load("missing.gguf", small) == model_not_found);
    CHECK(nn.load_by_name_with_config(NULL, model, strlen(model), small, strlen(small), &graph) == invalid_argument);
    CHECK(nn.load_by_name_with_config(ctx, NULL, 0, small, strlen(small), &graph) == invalid_argument);
    CHECK(nn.init_execution_context(NULL, 0, &context) == invalid_argument);
    CHECK(nn.init_execution_context(ctx, 999, &context) == not_found);
    CHECK(nn.init_execution_context(ctx, 0, NULL) == invalid_argument);
    size = sizeof output;
    CHECK(nn.run_inference(NULL, 0, 0, &nothing, output, &size, NULL, 0) == invalid_argument);
    CHECK(nn.run_inference(ctx, 999, 0, &nothing, output, &size, NULL, 0) != success);
    CHECK(nn.run_inference(ctx, 0, 0, NULL, output, &size, NULL, 0) != success);
    CHECK(nn.run_inference(ctx, 0, 0, &nothing, NULL, &size, NULL, 0) != success);
    CHECK(nn.close_execution_context(NULL, 0) == invalid_argument);
    CHECK(nn.close_execution_context(ctx, 999) == not_found);
    CHECK(nn.deinit_backend(NULL) == invalid_argument);
    return end();
}

static int lives_through_any_configuration(void) {
    static const char* const odd[] = {
        "no JSON", "", "   \n\t  ", "{\"a\": {\"b\": {\"c\": {\"d\": {\"e\": {\"f\": {\"g\": {\"h\": {}}}}}}}}}",
        "{\"model\": {\"path\": \"\xE6\xA8\xA1\xE5\x9E\x8B.gguf\", \"name\": \"\xF0\x9F\xA4\x96\"}}"};
    const uint32_t length = 1 << 20;
    char* large = malloc(length);
    CHECK(large != NULL);
    memset(large, 'x', length);
    for (int i = 0; i < 6; ++i) {
        ctx = NULL;
        const int code = nn.init_backend_with_config(&ctx, i < 5 ? odd[i] : large, i < 5 ? strlen(odd[i]) : length);
        CHECK(code == success ? ctx != NULL : code == invalid_argument);
        if (code == success) CHECK(load(model, small) == success && end() == 0);
    }
    free(large);
    ctx = NULL;
    CHECK(nn.init_backend_with_config(&ctx, NULL, 0) == success && end() == 0);
    CHECK(nn.deinit_backend(ctx) == invalid_argument); /* a second time */
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 4) return printf("usage: upstream_cases MODEL.gguf OTHER.gguf FOLDER\n"), 2;
    model = argv[1], other_model = argv[2], folder = argv[3];
    CHECK(open_library());
    if (takes_configurations_in_both_forms() || takes_options_of_a_request() || remembers_what_was_said() ||
        closes_the_oldest_session_and_those_that_nobody_uses() || opens_two_contexts_of_two() ||
        opens_contexts_from_threads() || logs_as_it_is_told() || changes_its_model_and_back() ||
        ends_answers_where_it_is_told() || refuses_wrong_calls() || lives_through_any_configuration())
        return 1;
    printf("libwasi_nn_backend.so: all calls from C as they should be\n");
    return 0;
}
