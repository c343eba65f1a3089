"""make wheels: builds the chosen wheels into build/wheels/dist and checks them."""

import argparse

from provision import base, system

from wheels import check, delegate, pack, vulkan
from wheels.build import ARCHITECTURES, DIST, PYTHONS, Build


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", nargs="+", choices=ARCHITECTURES, default=list(ARCHITECTURES))
    parser.add_argument("--python", nargs="+", choices=PYTHONS, default=list(PYTHONS))
    arguments = parser.parse_args()
    DIST.mkdir(parents=True, exist_ok=True)
    for arch in arguments.arch:
        build = Build(arch)
        build.libraries()
        for name in arguments.python:
            report(pack.write_wheel(build, PYTHONS[name], DIST))
        report(delegate.write_wheel(build, DIST))
        if system.wants_backend("vulkan"):
            report(vulkan.write_wheel(build, DIST))


def report(wheel):
    print(f"{wheel.relative_to(base.ROOT)}: {check.check_wheel(wheel)}", flush=True)


base.run_main(main)
