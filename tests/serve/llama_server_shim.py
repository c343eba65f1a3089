#!/usr/bin/env python3
"""What llama-server's own tests start in its place: `headrace serve` with their flags and a local model.

HEADRACE_SHIM_MODELS is the folder with the models of serve_models.py, HEADRACE_SHIM_PROGRAM what is started.
"""

import os
import sys

#: By --hf-repo and --hf-file. None: ServerPreset.router names no model, and is only started to be stopped.
MODELS = {
    (None, None): "stories.gguf",
    ("ggml-org/test-model-stories260K", None): "stories.gguf",
    ("ggml-org/test-model-stories260K-infill", None): "stories.gguf",
    ("ggml-org/stories15M_MOE", "stories15M_MOE-F16.gguf"): "stories.gguf",
    ("ggml-org/tinygemma3-GGUF:Q8_0", None): "stories.gguf",
    ("ggml-org/models", "tinyllamas/split/stories15M-q8_0-00001-of-00003.gguf"): "split-00001-of-00003.gguf",
    ("ggml-org/models", "bert-bge-small/ggml-model-f16.gguf"): "vectors.gguf",
    ("ggml-org/models", "jina-reranker-v1-tiny-en/ggml-model-f16.gguf"): "ranker.gguf",
}


def taken_out(arguments: list[str], flag: str) -> tuple[list[str], str | None]:
    """Arguments without a flag and its value, and the value."""
    if flag not in arguments:
        return arguments, None
    at = arguments.index(flag)
    return arguments[:at] + arguments[at + 2 :], arguments[at + 1]


def main() -> None:
    arguments, repository = taken_out(sys.argv[1:], "--hf-repo")
    arguments, file = taken_out(arguments, "--hf-file")
    model = os.path.join(os.environ["HEADRACE_SHIM_MODELS"], MODELS[repository, file])
    program = os.environ["HEADRACE_SHIM_PROGRAM"]
    os.execv(program, [program, "serve", "--model", model, *arguments])


if __name__ == "__main__":
    main()
