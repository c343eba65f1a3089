"""Streams of headrace.LanguageModel: cancelled, dropped, interrupted, and left behind by an interpreter."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref

import pytest
from headrace.language_model import LanguageModel, LanguageModelError
from language_models import CONFIG, ENDLESS, GREEDY, MODEL, run


@pytest.fixture(scope="module")
def model():
    with LanguageModel(MODEL, {**CONFIG, "n_ctx": 2048, "n_parallel": 8}, {"log_level": "none"}) as model:
        yield model


def wait_for_rest(model: LanguageModel, seconds: float = 20) -> None:
    """Until nothing runs any more."""
    end = time.monotonic() + seconds
    while model.statistics().running or model.statistics().waiting:
        assert time.monotonic() < end, "a request still runs"
        time.sleep(0.01)


def test_eight_streams_are_written_at_once(model):
    expected = [model.generate(f"What is 2+{number}?", GREEDY).text for number in range(8)]
    together, pieces = threading.Barrier(8), [[] for _ in range(8)]

    def read(number):
        together.wait()
        pieces[number] += model.stream(f"What is 2+{number}?", GREEDY)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ["".join(of_one) for of_one in pieces] == expected
    before = model.statistics().steps
    streams = [model.stream("Tell me a story.", {**ENDLESS, "n_predict": 200}) for _ in range(8)]
    assert len({"".join(stream) for stream in streams}) == 1
    assert all(stream.reply.generated_tokens == 200 for stream in streams)
    assert model.statistics().steps - before < 0.8 * 8 * 200, "a step has tokens of several streams"


def test_other_threads_run_while_one_waits_for_a_piece(model):
    counted, done = 0, threading.Event()

    def read():
        model.generate("Tell me a story.", {**ENDLESS, "n_predict": 400})
        done.set()

    threading.Thread(target=read).start()
    while not done.is_set():
        counted += 1
        time.sleep(0)
    assert counted > 100


def test_a_stream_is_cancelled_from_another_thread(model):
    generation = model.stream("Tell me a story.", ENDLESS)
    assert next(generation)
    threading.Timer(0.1, generation.cancel).start()
    with pytest.raises(LanguageModelError) as error:
        list(generation)
    assert error.value.code == "cancelled"
    assert list(generation) == []
    assert generation.reply.stop_reason == "cancelled" and len(generation.reply.text) > 1
    generation.cancel()  # of what is over: nothing
    generation.close()


def test_whoever_waits_for_a_whole_answer_is_told_that_it_was_cancelled(model):
    threading.Timer(0.3, model.cancel_all).start()
    with pytest.raises(LanguageModelError) as error:
        model.generate("Tell me a story.", ENDLESS)
    assert error.value.code == "cancelled"


def test_the_reply_of_a_stream_that_nobody_reads_is_whole(model):
    generation = model.stream("What is 2+3?", GREEDY)
    assert (generation.reply.text, generation.reply.stop_reason) == ("2+3=5", "end_of_answer")
    assert "".join(generation) == "2+3=5"


def test_a_stream_that_is_closed_leaves_nothing_behind(model):
    sessions = model.statistics().anonymous_sessions
    with model.stream("Tell me a story.", ENDLESS) as generation:
        next(generation)
        assert model.statistics().running == 1
    assert model.statistics().running == 0
    assert model.statistics().anonymous_sessions == sessions
    assert list(generation) == []
    assert generation.reply.stop_reason == "cancelled"


def test_a_stream_that_is_dropped_half_read_ends(model):
    cancelled = model.statistics().cancelled
    generation = model.stream("Tell me a story.", ENDLESS)
    next(generation)
    gone = weakref.ref(generation)
    del generation
    assert gone() is None, "nothing else holds it"
    wait_for_rest(model)
    assert model.statistics().cancelled == cancelled + 1


def test_a_stream_outlives_its_model_object():
    generation = LanguageModel(MODEL, CONFIG, {"log_level": "none"}).stream("What is 2+3?", GREEDY)
    gc.collect()
    assert "".join(generation) == "2+3=5"


def test_requests_leave_no_objects_behind(model):
    prompt, parameters = "What is 2+3?", {**GREEDY, "n_predict": 2, "stop": ["x" * 100]}

    def ask():
        model.generate(prompt, parameters)
        list(model.stream(prompt, parameters))
        next(model.stream(prompt, parameters))
        with pytest.raises(TypeError):
            model.generate(prompt, {"stop": [object()]})
        with pytest.raises(LanguageModelError):
            model.generate(prompt, {"tempratur": 0, "strict": True})

    ask()
    gc.collect()
    blocks = sys.getallocatedblocks()
    held = [sys.getrefcount(x) for x in (model, prompt, parameters, parameters["stop"])]
    for _ in range(50):
        ask()
    gc.collect()
    assert [sys.getrefcount(x) for x in (model, prompt, parameters, parameters["stop"])] == held
    assert sys.getallocatedblocks() - blocks < 50, "less than one for each round"


INTERRUPT = """
def interrupt():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
began = time.monotonic()
try:
    {call}
except KeyboardInterrupt:
    took = time.monotonic() - began
    while model.statistics().running:
        assert time.monotonic() - began < 30
        time.sleep(0.01)
    print("interrupted", took < 10, model.statistics().cancelled)
"""


@pytest.mark.parametrize(
    "call",
    [
        'model.generate("Tell me a story.", ENDLESS)',
        'list(model.stream("Tell me a story.", ENDLESS))',
        'model.stream("Tell me a story.", ENDLESS).reply',
        'model.conversation().say("Tell me a story.", ENDLESS)',
        'list(model.conversation().stream("Tell me a story.", ENDLESS))',
    ],
)
def test_ctrl_c_ends_what_the_main_thread_waits_for(call):
    done = run(INTERRUPT.format(call=call))
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted True 1\n", "", 0)


@pytest.mark.parametrize("daemon", [True, False])
def test_the_interpreter_may_end_while_streams_run(daemon):
    program = f"""
def read():
    try:
        for piece in model.stream("Tell me a story.", ENDLESS):
            started.release()
    except LanguageModelError as error:
        assert error.code == "cancelled"

started = threading.Semaphore(0)
threads = [threading.Thread(target=read, daemon={daemon}) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(40):
    started.acquire()
half_read = model.stream("Tell me a story.", ENDLESS)
next(half_read)
if not {daemon}:
    model.cancel_all()
print("ends", flush=True)
"""
    done = run(program)
    assert (done.stdout, done.stderr, done.returncode) == ("ends\n", "", 0)


def test_threads_that_wait_for_whole_answers_do_not_hold_up_the_interpreters_end():
    done = run("""
def ask():
    while True:
        model.generate("Tell me a story.", {**ENDLESS, "n_predict": 20})

for _ in range(4):
    threading.Thread(target=ask, daemon=True).start()
time.sleep(1)
assert model.statistics().finished > 0
print("ends", flush=True)
""")
    assert (done.stdout, done.stderr, done.returncode) == ("ends\n", "", 0)


def test_a_forked_child_ends_as_any_other():
    done = run("""
generation = model.stream("Tell me a story.", ENDLESS)
next(generation)
child = os.fork()
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1], bool(next(generation)), flush=True)
""")
    assert (done.stdout, done.stderr, done.returncode) == ("0 True\n", "", 0)


def test_the_package_loads_llama_cpp_only_where_language_models_are_used():
    done = run("""
import subprocess
program = '''
import sys, headrace
loaded = lambda: "libheadrace_llm" in open("/proc/self/maps").read()
print(loaded(), "headrace._llm" in sys.modules, "numpy" in sys.modules)
headrace.LanguageModel
print(loaded(), "headrace._llm" in sys.modules, "numpy" in sys.modules)
'''
print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout, end="")
""")
    assert done.stdout == "False False False\nTrue True False\n", done.stderr
