"""Builds wheels for other machines by Zig's clang: manylinux_2_28 on x86-64 and 64-bit ARM."""
