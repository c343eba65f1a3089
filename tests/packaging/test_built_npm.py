"""The packages of make npm, installed offline into an empty folder (make test-npm, make test-wheels)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from elf import ROOT, is_elf, needed_libraries, run_paths
from environments import write_model

DIST = ROOT / "build/npm/dist"
if not os.environ.get("HEADRACE_TEST_WHEELS"):
    pytest.skip("takes minutes: make test-npm runs it", allow_module_level=True)

from wheels.build import ARCHITECTURES, RELEASES, WORK
from wheels.check import MOST_BYTES, newest_glibc
from wheels.debian import Archive
from wheels.npm import CPUS, name_of
from wheels.runtimes import NAMES, RUNTIMES, install, program

CPU = CPUS.get(os.uname().machine)
CARRIED = f"headrace-linux-{CPU}"
RESULT = "[[0,0,0,0],[4,5,6,7]]"
MODEL = ROOT / "models/tiny-chat-q8_0.gguf"
TYPESCRIPT = ROOT / "node/node_modules/typescript/bin/tsc"
# No registry answers there, so nothing can be fetched.
OFFLINE = {"npm_config_offline": "true", "npm_config_registry": "http://127.0.0.1:9/"}
MAPPED = """
const mapped = readFileSync('/proc/self/maps', 'utf8').split('\\n').map((line) => line.split(/ +/, 6)[5]);
console.log([...new Set(mapped.filter((path) => path?.startsWith('/')))].join('\\n'));
"""
# Each prints what it computes; the first two then every file that the process has mapped.
GRAPH = f"""
import {{ readFileSync }} from 'node:fs';
import {{ MLGraphBuilder, ml }} from 'headrace/webnn';
if (navigator.ml !== ml) throw new Error('navigator.ml is not ours');
const context = await navigator.ml.createContext({{ accelerated: false }});
const builder = new MLGraphBuilder(context);
const [given, weights] = [[2, 3], [3, 4]].map((shape) => ({{ dataType: 'float32', shape }}));
const w = builder.constant(weights, Float32Array.from({{ length: 12 }}, (_, i) => i));
const y = builder.relu(builder.matmul(builder.input('x', given), w));
const graph = await builder.build({{ y }});
const x = await context.createTensor({{ ...given, writable: true }});
const output = await context.createTensor({{ dataType: 'float32', shape: [2, 4], readable: true }});
context.writeTensor(x, Float32Array.of(1, 0, -1, 0, 1, 0));
context.dispatch(graph, {{ x }}, {{ y: output }});
const values = [...new Float32Array(await context.readTensor(output))];
console.log(JSON.stringify([values.slice(0, 4), values.slice(4)]));
{MAPPED}"""
ONNX = f"""
const {{ readFileSync }} = require('node:fs');
const {{ load }} = require('headrace');
const {{ InferenceSession, Tensor }} = require('headrace/onnxruntime-node');
async function main() {{
  const data = Float32Array.of(1, 0, -1, 0, 1, 0);
  const model = await load('model.onnx');
  const {{ y }} = await model.run({{ x: {{ data, dims: [2, 3] }} }});
  const session = await InferenceSession.create('model.onnx');
  const {{ y: other }} = await session.run({{ x: new Tensor('float32', data, [2, 3]) }});
  for (const {{ data: d }} of [y, other])
    console.log(JSON.stringify([[...d.slice(0, 4)], [...d.slice(4)]]));
{MAPPED}}}
main();
"""
CHAT = f"""
import {{ LanguageModel }} from 'headrace';
const parameters = {{ n_ctx: 512, logging: {{ level: 'none' }} }};
const model = await LanguageModel.load({json.dumps(os.fspath(MODEL))}, {{ parameters }});
const messages = [{{ role: 'user', content: 'What is 2+3?' }}];
console.log((await model.generate(messages, {{ parameters: {{ temperature: 0 }} }})).content);
let text = '';
for await (const piece of model.stream(messages, {{ parameters: {{ temperature: 0 }} }})) text += piece;
console.log(text);
await model.dispose();
"""
TYPES = """
import headrace = require('headrace');
import webnn = require('headrace/webnn');
import ort = require('headrace/onnxruntime-node');
async function main(): Promise<void> {
  const model: headrace.Model = await headrace.load('model.onnx', { device: 'cpu' });
  const { y } = await model.run({ x: { data: new Float32Array(6), dims: [2, 3] } });
  if (y.type === 'int64') { const data: BigInt64Array = y.data; }
  const builder = new webnn.MLGraphBuilder(await navigator.ml.createContext());
  const z: webnn.MLOperand = builder.relu(builder.input('x', { dataType: 'float32', shape: [2] }));
  const session: ort.InferenceSession = await ort.InferenceSession.create('model.onnx');
}
"""
EMULATED = {"Nehalem": "sse42", "SandyBridge": "sandybridge", "Haswell": "haswell"}
# The tests of tests/node that look for the checkout around them.
OF_THE_CHECKOUT = ("examples", "native", "transformers", "types")


def run(folder: Path, *command: object, **environment: str) -> str:
    """What a command that must succeed prints, in a folder."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def packages() -> list[Path]:
    """All that have been made."""
    files = sorted(DIST.glob("headrace-*.tgz"))
    if not files:
        pytest.skip("no npm package has been made: make npm makes it")
    return files


@pytest.fixture(scope="module")
def installed(packages: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with the packages; installing must not take long, and nothing may be fetched."""
    if not (DIST / f"{CARRIED}-{package_settings('headrace')['version']}.tgz").exists():
        pytest.skip(f"no package is for this machine's {os.uname().machine}")
    if not shutil.which("npm"):
        pytest.skip("npm is not installed: make npm installs it")
    folder = tmp_path_factory.mktemp("empty")
    (folder / "package.json").write_text('{"private": true}')
    files = [file for file in packages if file.name.startswith((f"{CARRIED}-", "headrace-0"))]
    cache = {**OFFLINE, "npm_config_cache": os.fspath(tmp_path_factory.mktemp("cache"))}
    started = time.monotonic()
    run(folder, "npm", "install", "--no-audit", "--no-fund", *files, **cache)
    assert time.monotonic() - started < 5
    write_model(folder)
    return folder


def settings_in(file: Path) -> dict:
    with tarfile.open(file) as archive:
        return json.load(archive.extractfile("package/package.json"))


def package_settings(name: str) -> dict:
    (file,) = DIST.glob(f"{name}-[0-9]*.tgz")
    return settings_in(file)


@pytest.fixture(params=["node", *RUNTIMES])
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> list[object]:
    """The beginning of a command that runs a file of JavaScript."""
    if request.param == "node":
        if not shutil.which("node"):
            pytest.skip("Node is not installed: make npm installs it")
        return ["node"]
    if not CPU or not program(request.param).exists():
        pytest.skip(f"{request.param} is not here: make test-npm RUNTIMES={request.param} fetches it")
    if request.param == "deno":
        return ["env", f"DENO_DIR={tmp_path}", program("deno"), "run", "-A", "--node-modules-dir=manual"]
    return [program(request.param)]


def execute(installed: Path, runtime: list[object], name: str, text: str) -> list[str]:
    (installed / name).write_text(text)
    return run(installed, *runtime, name).splitlines()


def test_the_packages_keep_their_promises(packages: list[Path]):
    for file in packages:
        assert file.stat().st_size < MOST_BYTES, file.name
        with tarfile.open(file) as archive:
            assert "package/LICENSE" in archive.getnames()
        assert not settings_in(file).keys() & {"scripts", "dependencies", "devDependencies"}, (
            "installing runs nothing"
        )


@pytest.mark.parametrize("arch", CPUS)
def test_the_package_of_a_platform_is_optional_to_the_one_for_all(packages: list[Path], arch: str):
    settings, name = package_settings("headrace"), name_of(arch)
    if DIST / f"{name}-{settings['version']}.tgz" not in packages:
        assert name not in settings["optionalDependencies"]
        pytest.skip(f"{name} has not been packed: make npm ARCH={arch} packs it")
    assert settings["optionalDependencies"][name] == settings["version"]
    carried = package_settings(name)
    assert (carried["os"], carried["cpu"], carried["libc"]) == (["linux"], [CPUS[arch]], ["glibc"])


def test_licenses_of_the_parts_are_inside(installed: Path):
    names = {path.name for path in (installed / "node_modules" / CARRIED / "licenses").iterdir()}
    assert {"llama.cpp-and-ggml.txt", "highway.txt", "fmt.txt", "llvm-libcxx.txt"} <= names


def test_libraries_are_found_by_places_relative_to_themselves(installed: Path):
    folder = installed / "node_modules" / CARRIED
    binaries = list(filter(is_elf, folder.rglob("*")))
    assert {"headrace.node", "headrace-llm.node", "libheadrace.so", "libheadrace-ggml.so"} <= {
        binary.name for binary in binaries
    }
    for binary in binaries:
        assert all(entry.startswith("$ORIGIN") for entry in run_paths(binary)), binary
        names = needed_libraries(binary)
        assert not [name for name in names if name.startswith(("libggml", "libllama", "libstdc++", "libc++"))]
    assert newest_glibc(folder) <= (2, 28)


def test_a_graph_runs_by_navigator_ml_with_the_packages_own_libraries(installed: Path, runtime: list[object]):
    result, *mapped = execute(installed, runtime, "graph.mjs", GRAPH)
    assert result == RESULT
    ours = [path for path in mapped if "ggml" in path or "libheadrace" in path]
    assert all(path.startswith(f"{installed}/node_modules/{CARRIED}/") for path in ours)
    assert len([path for path in ours if "libggml-cpu-" in path]) == 1
    assert not [path for path in ours if "headrace_llm" in path], "llama.cpp waits for a language model"


def test_an_onnx_model_runs_by_load_and_as_onnxruntime_node_has_it(installed: Path, runtime: list[object]):
    assert execute(installed, runtime, "onnx.cjs", ONNX)[:2] == [RESULT, RESULT]


def test_a_language_model_answers(installed: Path, runtime: list[object]):
    assert execute(installed, runtime, "chat.mjs", CHAT) == ["2+3=5", "2+3=5"]


@pytest.mark.parametrize(("cpu", "variant"), EMULATED.items())
def test_older_cpus_get_the_library_that_suits_them(installed: Path, cpu: str, variant: str):
    emulator = shutil.which("qemu-x86_64")
    if CPU != "x64" or not emulator or not shutil.which("node"):
        pytest.skip("Node and qemu-x86_64 are not both there: make test-npm installs them on x86-64")
    result, *mapped = execute(installed, [emulator, "-cpu", cpu, shutil.which("node")], "graph.mjs", GRAPH)
    assert result == RESULT
    assert [Path(path).stem for path in mapped if "libggml-cpu-" in path] == [f"libggml-cpu-{variant}"]


def test_the_package_for_64_bit_arm_runs_on_an_emulated_cpu(tmp_path: Path):
    """Node for that architecture comes from npm, its C and C++ libraries from Debian."""
    emulator = shutil.which("qemu-aarch64")
    files = [*DIST.glob("headrace-linux-arm64-*.tgz"), *DIST.glob("headrace-0*.tgz")]
    if CPU == "arm64" or not emulator or len(files) != 2:
        pytest.skip("qemu-aarch64 and the package for arm64 are not both there: make npm, make test-npm")
    names = NAMES["aarch64"]
    install("node22", names)
    archive = Archive(WORK / "debian-aarch64", ARCHITECTURES["aarch64"], RELEASES)
    root = archive.packages("bookworm", "libstdc++6", "libc6", "libgcc-s1")
    for file, name in zip(files, ("headrace-linux-arm64", "headrace"), strict=True):
        with tarfile.open(file) as content:
            content.extractall(tmp_path, filter="data")
        (tmp_path / "node_modules").mkdir(exist_ok=True)
        (tmp_path / "package").rename(tmp_path / "node_modules" / name)
    write_model(tmp_path)
    for cpu, variant in (("cortex-a53", "armv8.0_1"), ("neoverse-n1", "armv8.2_2")):
        node = [emulator, "-cpu", cpu, "-L", root, program("node22", names)]
        result, *mapped = execute(tmp_path, node, "graph.mjs", GRAPH)
        assert result == RESULT
        assert [Path(path).stem for path in mapped if "libggml-cpu-" in path] == [f"libggml-cpu-{variant}"]
        assert execute(tmp_path, node, "onnx.cjs", ONNX)[:2] == [RESULT, RESULT]
        assert execute(tmp_path, node, "chat.mjs", CHAT) == ["2+3=5", "2+3=5"]


@pytest.mark.parametrize("name", ["program.cts", "program.mts"])
def test_programs_in_typescript_find_their_types(installed: Path, name: str):
    if not TYPESCRIPT.exists():
        pytest.skip("TypeScript is not installed: make npm installs it")
    text = TYPES
    if name.endswith(".mts"):
        text = re.sub(r"import (\w+) = require\((.*)\)", r"import * as \1 from \2", TYPES)
    (installed / name).write_text(text)
    options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom", "--module", "node16"]
    run(installed, "node", TYPESCRIPT, *options, name)
    (installed / name).write_text(text + "const wrong: number = headrace.load('model.onnx');\n")
    done = subprocess.run(["node", TYPESCRIPT, *options, name], cwd=installed, capture_output=True, text=True)
    assert re.findall(r"error TS\d+", done.stdout) == ["error TS2322"]


def test_the_tests_of_node_pass_on_the_package(installed: Path, tmp_path: Path):
    """All that look at the package alone, laid out as in the checkout."""
    tree = tmp_path / "checkout"
    # What the package has of lib, browsers use; the tests look into all of it.
    own = shutil.ignore_patterns("lib")
    shutil.copytree(installed / "node_modules/headrace", tree / "node", ignore=own)
    links = {"node/native": installed / "node_modules" / CARRIED, "../shared": ROOT.parent / "shared"}
    read = ("docs", "models", "node/lib", ".venv", "python", "tests/onnx", "tests/python", "tests/web")
    links |= {name: ROOT / name for name in read}
    shutil.copytree(ROOT / "tests/node", tree / "tests/node")
    for name, target in links.items():
        (tree / name).symlink_to(target)
    files = sorted(
        file for file in (tree / "tests/node").glob("*.test.mjs") if file.stem[:-5] not in OF_THE_CHECKOUT
    )
    assert len(files) >= 8
    done = subprocess.run(
        ["node", "--test", "--test-reporter=tap", *files], cwd=tree, capture_output=True, text=True
    )
    counts = {kind: int(n) for kind, n in re.findall(r"^# (pass|fail|skipped) (\d+)", done.stdout, re.M)}
    failures = "\n".join(line for line in done.stdout.splitlines() if line.lstrip().startswith("not ok"))
    assert done.returncode == 0, f"{failures}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
    assert counts["pass"] > 100 and counts["pass"] > 10 * counts["skipped"], counts
