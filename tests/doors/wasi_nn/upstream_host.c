/* What hosts of wasi_nn_backend do with its library: they open it by its name, know run_inference with six
 * arguments, write configurations as its page does, and call it from several threads. Its structures and
 * numbers are written down here: HEADRACE_RUN_INFERENCE_ARGS=6 upstream_host MODEL.gguf. */
#include <pthread.h>
#include <time.h>

#include "upstream_library.h"

static const char* model;
static uint8_t output[8192];
static uint32_t size;
/* Of the page, and one stream at a time for the rest. */
static const char documented[] =
    "{\"n_gpu_layers\": 98, \"ctx_size\": 2048, \"n_predict\": 512, \"batch_size\": 512, \"threads\": 8, "
    "\"temp\": 0.7, \"top_p\": 0.95, \"repeat_penalty\": 1.10}";
static const char single[] =
    "{\"ctx_size\": 512, \"threads\": 1, \"temp\": 0, \"n_parallel\": 1, \"context_shift\": true}";

static int set_text(void* ctx, uint32_t context, uint32_t index, const char* text) {
    uint32_t extent = 1;
    tensor_dimensions dimensions = {&extent, 1};
    tensor input = {&dimensions, 1, (uint8_t*)text}; /* a text as fp32 of one element */
    return nn.set_input(ctx, context, index, &input);
}

static int load(void* ctx, const char* config, uint32_t* graph) {
    return nn.load_by_name_with_config(ctx, model, strlen(model), config, strlen(config), graph);
}

static int runs_as_documented(void) {
    void* ctx = NULL;
    uint32_t graph = 77, context = 0, session = 0;
    tensor input = {NULL, 1, (uint8_t*)"What is 2+3?"};
    CHECK(nn.init_backend(&ctx) == success);
    CHECK(nn.load_by_name_with_config(ctx, "missing.gguf", 12, documented, strlen(documented), &graph) ==
          model_not_found);
    CHECK(nn.init_execution_context(ctx, 0, &context) == not_found);
    CHECK(nn.init_execution_context_with_session_id(ctx, "early", &session) == not_found);
    CHECK(nn.load_by_name_with_config(ctx, model, strlen(model) + 1, documented, sizeof documented, &graph) ==
          success); /* lengths that count the NUL */
    CHECK(nn.init_execution_context(ctx, graph, &context) == success);
    size = sizeof output;
    CHECK(nn.run_inference(ctx, context, 0, &input, output, &size) == success);
    CHECK(size > 0 && size < sizeof output && output[size] == 0);
    CHECK(load(ctx, single, &graph) == success); /* in the first one's place, under its contexts */
    CHECK(nn.init_execution_context_with_session_id(ctx, "anna", &session) == success);
    CHECK(nn.compute(ctx, session) == invalid_argument); /* without a prompt */
    CHECK(set_text(ctx, session, 0, "What is 2+3?") == success);
    CHECK(nn.compute(ctx, session) == success);
    size = sizeof output;
    CHECK(nn.get_output(ctx, session, 0, output, &size) == success);
    CHECK(size >= 5 && memcmp(output, "2+3=5", 5) == 0 && output[size] == 0);
    size = 3;
    CHECK(nn.get_output(ctx, session, 0, output, &size) == success && size == 3); /* as much as fits */
    size = 0;
    CHECK(nn.get_output(ctx, session, 0, output, &size) == too_large && size >= 5);
    CHECK(nn.close_execution_context(ctx, session) == success);
    CHECK(nn.close_execution_context(ctx, session) == not_found);
    CHECK(nn.get_output(ctx, session, 0, output, &size) == not_found);
    CHECK(nn.unload(ctx, graph) == success);
    CHECK(nn.unload(ctx, graph) == not_found);
    CHECK(nn.run_inference(ctx, context, 0, &input, output, &size) == not_found);
    CHECK(nn.deinit_backend(ctx) == success);
    CHECK(nn.deinit_backend(ctx) == invalid_argument);
    return 0;
}

static int refuses_what_is_wrong(void) {
    void* ctx = NULL;
    uint32_t graph = 0, context = 0, number = 0;
    static char text[40000];
    tensor input = {NULL, 1, (uint8_t*)text}, no_data = {NULL, 1, NULL};
    memset(text, 'x', sizeof text - 1);
    CHECK(nn.init_backend(NULL) == invalid_argument);
    CHECK(nn.init_backend(&ctx) == success);
    CHECK(nn.load_by_name_with_config(ctx, NULL, 5, NULL, 0, &graph) == invalid_argument);
    CHECK(nn.load_by_name_with_config(ctx, model, 0, NULL, 0, &graph) == invalid_argument);
    CHECK(nn.load_by_name_with_config(ctx, model, strlen(model), NULL, 3, &graph) == invalid_argument);
    CHECK(nn.load_by_name_with_config(ctx, model, strlen(model), NULL, 0, NULL) == invalid_argument);
    CHECK(nn.load_by_name_with_config(ctx, model, UINT32_MAX, single, strlen(single), &graph) ==
          invalid_argument);
    CHECK(load(ctx, single, &graph) == success);
    CHECK(nn.init_execution_context(ctx, graph, NULL) == invalid_argument);
    CHECK(nn.init_execution_context(ctx, 4711, &context) == not_found);
    CHECK(nn.init_execution_context_with_session_id(ctx, NULL, &context) == invalid_argument);
    CHECK(nn.init_execution_context_with_session_id(ctx, "", &context) == invalid_argument);
    CHECK(nn.init_execution_context(ctx, graph, &context) == success);
    CHECK(nn.set_input(ctx, context, 0, NULL) == invalid_argument);
    CHECK(nn.set_input(ctx, context, 0, &no_data) == invalid_argument);
    CHECK(nn.set_input(ctx, context, 9, &input) == invalid_argument);
    CHECK(nn.set_input(ctx, 4711, 0, &input) == not_found);
    size = sizeof output;
    CHECK(nn.run_inference(ctx, context, 0, &input, output, &size) == prompt_too_long);
    CHECK(nn.run_inference(ctx, context, 1, &input, output, &size) == invalid_argument);
    CHECK(nn.run_inference(ctx, context, 0, NULL, output, &size) == invalid_argument);
    CHECK(nn.run_inference(ctx, context, 0, &input, NULL, &size) == invalid_argument);
    CHECK(nn.run_inference(ctx, context, 0, &input, output, NULL) == invalid_argument);
    CHECK(nn.run_inference(ctx, 4711, 0, &input, output, &size) == not_found);
    CHECK(nn.get_output(ctx, context, 0, NULL, &size) == invalid_argument);
    CHECK(nn.get_output(ctx, context, 0, output, NULL) == invalid_argument);
    CHECK(nn.compute(ctx, 4711) == not_found && nn.unload(ctx, 4711) == not_found);
    CHECK(nn.compute(NULL, context) == invalid_argument && nn.unload(&number, graph) == invalid_argument);
    CHECK(nn.deinit_backend(ctx) == success);
    CHECK(nn.compute(ctx, context) == invalid_argument && nn.deinit_backend(NULL) == invalid_argument);
    return 0;
}

/* A request in a thread. */
typedef struct {
    void* ctx;
    uint32_t context;
    int code;
    int place; /* in the order in which requests end */
    pthread_t thread;
} request;
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static int ended;

static void* compute_alone(void* given) {
    request* own = given;
    own->code = nn.compute(own->ctx, own->context);
    pthread_mutex_lock(&order);
    own->place = ended++;
    pthread_mutex_unlock(&order);
    return NULL;
}

static int begin(request* made, void* ctx, uint32_t graph, const char* parameters) {
    made->ctx = ctx;
    made->code = -1;
    CHECK(nn.init_execution_context(ctx, graph, &made->context) == success);
    CHECK(set_text(ctx, made->context, 0, "Tell me a story.") == success);
    CHECK(set_text(ctx, made->context, 1, parameters) == success);
    CHECK(pthread_create(&made->thread, NULL, compute_alone, made) == 0);
    return 0;
}

/* Until the statistics have that text, for a minute at most. */
static int waits_for(void* ctx, const char* text) {
    const struct timespec moment = {0, 2000000};
    for (int i = 0; i < 30000; ++i, nanosleep(&moment, NULL)) {
        size = sizeof output - 1;
        CHECK(nn.get_statistics(ctx, output, &size) == success);
        if (strstr((const char*)output, text)) return 0;
    }
    printf("the statistics never had %s: %s\n", text, output);
    return 1;
}

/* None goes before it. */
static const char endless[] = "{\"priority\": \"urgent\", \"ignore_eos\": true, \"n_predict\": -1}";

static int queues_by_priority(void) {
    static const char config[] = "{\"backend\": {\"queue_size\": 2, \"priority_scheduling_enabled\": true}}";
    void* ctx = NULL;
    uint32_t graph = 0, context = 0;
    request running, low, high;
    tensor input = {NULL, 1, (uint8_t*)"Hello"};
    ended = 0;
    CHECK(nn.init_backend_with_config(&ctx, config, strlen(config)) == success);
    CHECK(load(ctx, single, &graph) == success);
    CHECK(begin(&running, ctx, graph, endless) == 0 && waits_for(ctx, "\"running\":1") == 0);
    CHECK(begin(&low, ctx, graph, "{\"priority\": \"low\", \"ignore_eos\": true, \"n_predict\": 200}") == 0);
    CHECK(waits_for(ctx, "\"waiting\":1") == 0);
    CHECK(begin(&high, ctx, graph, "{\"priority\": \"high\", \"n_predict\": 3}") == 0);
    CHECK(waits_for(ctx, "\"waiting\":2") == 0);
    CHECK(nn.init_execution_context(ctx, graph, &context) == success);
    size = sizeof output;
    CHECK(nn.run_inference(ctx, context, 0, &input, output, &size) == runtime_error); /* the queue is full */
    CHECK(nn.cancel_inference(ctx, running.context) == success);
    pthread_join(running.thread, NULL);
    pthread_join(low.thread, NULL);
    pthread_join(high.thread, NULL);
    CHECK(running.code == runtime_error && low.code == success && high.code == success);
    CHECK(high.place < low.place);
    CHECK(nn.deinit_backend(ctx) == success);
    return 0;
}

static int unloads_while_it_runs(void) {
    void* ctx = NULL;
    uint32_t graph = 0, other = 0;
    request running;
    CHECK(nn.init_backend(&ctx) == success);
    CHECK(load(ctx, single, &graph) == success);
    CHECK(begin(&running, ctx, graph, endless) == 0 && waits_for(ctx, "\"running\":1") == 0);
    CHECK(nn.unload(ctx, graph) == success && nn.unload(ctx, graph) == not_found);
    CHECK(nn.init_execution_context(ctx, graph, &other) == not_found);
    CHECK(running.code == -1); /* it goes on */
    CHECK(nn.cancel_inference(ctx, running.context) == success);
    pthread_join(running.thread, NULL);
    CHECK(running.code == runtime_error);
    CHECK(nn.compute(ctx, running.context) == not_found);
    CHECK(load(ctx, single, &graph) == success);
    CHECK(begin(&running, ctx, graph, endless) == 0 && waits_for(ctx, "\"running\":1") == 0);
    CHECK(nn.deinit_backend(ctx) == success); /* ends what runs */
    pthread_join(running.thread, NULL);
    CHECK(running.code != success);
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 2) return printf("usage: upstream_host MODEL.gguf\n"), 2;
    model = argv[1];
    CHECK(open_library());
    if (runs_as_documented() || refuses_what_is_wrong() || queues_by_priority() || unloads_while_it_runs())
        return 1;
    printf("libwasi_nn_backend.so: all calls from C as they should be\n");
    return 0;
}
