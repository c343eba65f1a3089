"""Writes the wheel headrace-vulkan: ggml's Vulkan backend, which lies beside those of headrace's wheel."""

from pathlib import Path

import ziglang

from wheels.pack import LLAMA_LICENSES, PLATFORM, companion_metadata, write_archive

SUMMARY = "ggml's Vulkan backend for headrace"
HEADERS = ("libvulkan-dev", "spirv-headers")  # whose functions it holds


def write_wheel(build, output):
    """Compiles and packs it on the ggml that build.libraries() has made; returns the wheel."""
    tag = f"py3-none-{PLATFORM}_{build.arch}"
    stage = build.stage_vulkan()
    licenses = {
        "llama.cpp-and-ggml": build.source / LLAMA_LICENSES["llama.cpp-and-ggml"],
        "llvm-libcxx": Path(ziglang.__file__).parent / "lib/libcxx/LICENSE.TXT",
        **{name: build.vulkan() / "usr/share/doc" / name / "copyright" for name in HEADERS},
    }
    metadata = companion_metadata("headrace-vulkan", SUMMARY, licenses, [], tag)
    return write_archive(stage, [], metadata, tag, output)
