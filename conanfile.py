"""The Conan package of the C++ libraries: conan create . (docs/packaging.md)."""

import re
import sys
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Headrace(ConanFile):
    name = "headrace"
    description = "Runs WebNN graphs and other models on ggml"
    license = "Apache-2.0"
    package_type = "shared-library"
    settings = "os", "compiler", "build_type", "arch"
    # What the libraries and the program are made of: no tests, no Python.
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "schema/*", "src/*", "tools/*"

    def set_version(self):
        text = Path(self.recipe_folder, "CMakeLists.txt").read_text()
        self.version = re.search(r"project\(headrace VERSION ([\d.]+)", text)[1]

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.user_presets_path = False  # the checkout has presets of its own
        toolchain.cache_variables["HEADRACE_BUNDLE"] = True  # a package must not expect fmt and Highway
        toolchain.generate()

    def build(self):
        # As for a wheel: development packages of the system, and ggml from the user's cache.
        setup = Path(self.source_folder, "tools/setup.py")
        self.run(f'"{sys.executable}" "{setup}" --wheel "{self.build_folder}"')
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="products")

    def package(self):
        CMake(self).install()
        doc = Path(self.package_folder, "share/doc/headrace")
        copy(self, "*", doc, Path(self.package_folder, "licenses"))

    def package_info(self):
        # The libraries bring a package of CMake's, with the targets headrace::headrace and headrace::llm.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/headrace"]
        self.cpp_info.libs = ["headrace", "headrace_llm"]
