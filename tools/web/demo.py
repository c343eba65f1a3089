"""make web-demo: serves examples/web, after its models are made."""

import argparse
import subprocess
import threading

from provision import base

from web.server import serving

MODELS = base.BUILD / "models"
#: How each is made, by the file that shows that it is there.
MAKERS = {
    "minilm/onnx/model.onnx": [base.VENV_PYTHON, "examples/node/export_minilm.py"],
    "digits.hrg": ["node", "examples/node/train_digits.mjs"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    port = parser.parse_args().port
    for name, command in MAKERS.items():
        if not (MODELS / name).exists():
            print(f"making build/models/{name}", flush=True)
            subprocess.run(command, cwd=base.ROOT, check=True)
    with serving(port=port) as address:
        print(f"{address}/examples/web/ (Ctrl-C ends it)", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    base.run_main(main)
