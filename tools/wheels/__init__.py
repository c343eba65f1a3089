"""Builds the wheels that run on other machines: manylinux_2_28 for x86-64 and 64-bit ARM, on any Linux, by Zig's clang."""
