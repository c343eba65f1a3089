#!/usr/bin/env python3
"""Measures a language model over one to three RPC hosts on links of several delays, and how it grows.

    python bench/rpc_links.py [--model FILE] [--hosts N] [--round-trips MS ...] [--rounds N] [--json FILE]

The hosts are network namespaces of this machine where the privilege exists, otherwise its loopback; links are
slowed down by tc netem where the kernel has it, otherwise by build/bin/tests/slow_link. All hosts compute on
this machine's cores, one after the other, as a model's layers do.

A token takes  compute + hosts · (overhead + r · delay).  Compute and overhead are fitted to the runs without
delay, r is the number of replies that a host is waited for, and the delay is by how much the links' measured
round trips are longer than there; everything else is predicted and compared with what was measured.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build/bench"
sys.path.insert(0, str(ROOT / "tools"))

import rpc_hosts  # noqa: E402


def small_model():
    path = OUT / "small-q8_0.gguf"
    if not path.exists():
        OUT.mkdir(parents=True, exist_ok=True)
        script = ROOT / "bench/make_llm.py"
        subprocess.run([sys.executable, script, "--size", "small", "--output", path], check=True)
    return path


def measure(arguments, hosts):
    """One stream's numbers over these hosts; over none: on this machine alone."""
    path = OUT / "rpc_links.json"
    parameters = {"log_level": "none", "fit_margin_mib": 0, "tensor_split": [1] * len(hosts)}
    command = [rpc_hosts.HEADRACE, "bench-llm", arguments.model, "--streams", 1, "--threads", 1]
    command += ["--prompt", arguments.prompt, "--generate", arguments.generate, "--rounds", arguments.rounds]
    command += ["--json", path, "--parameters", json.dumps(parameters)]
    for host in hosts:
        command += ["--device", host.device]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    row = json.loads(path.read_text())[0]
    return row | {"count": len(hosts), "token_ms": 1e3 / row["generated_per_second"]}


def run(arguments, in_namespaces):
    rows = [measure(arguments, []) | {"delay_ms": 0}]
    for delay in arguments.round_trips:
        with rpc_hosts.hosts(arguments.hosts, in_namespaces=in_namespaces) as hosts:
            for host in hosts:
                host.serve(delay_ms=delay / 2)
            for count in range(1, arguments.hosts + 1):
                rows.append(measure(arguments, hosts[:count]) | {"delay_ms": delay})
                show(rows[-1])
    return rows


def show(row):
    print(
        f"{row['count']} hosts, {row['delay_ms']} ms: {row['generated_per_second']:.1f} tokens/s, "
        f"prompt {row['prompt_per_second']:.0f} tokens/s",
        flush=True,
    )


def fit(rows):
    """(compute, overhead) in ms: of the runs over hosts without a delay."""
    still = [row for row in rows if row["count"] and not row["delay_ms"]]
    matrix = np.array([[1, row["count"]] for row in still], float)
    return np.linalg.lstsq(matrix, np.array([row["token_ms"] for row in still]), rcond=None)[0]


def round_trip_ms(row):
    return np.mean([host["round_trip_ms"] for host in row["hosts"]])


def predicted_ms(compute, overhead, hosts, round_trips, delay):
    return compute + hosts * (overhead + round_trips * delay)


def table(rows):
    compute, overhead = fit(rows)
    alone = rows[0]
    print(f"\nalone: {alone['generated_per_second']:.1f} tokens/s, prompt {alone['prompt_per_second']:.0f}")
    print(f"fitted: compute {compute:.2f} ms a token, overhead {overhead:.2f} ms a host\n")
    print(
        "| hosts | round trip added | measured | tokens/s | predicted | prompt tokens/s "
        "| bytes a token | waits a token |"
    )
    print("|---|---|---|---|---|---|---|---|")
    still = np.mean([round_trip_ms(row) for row in rows[1:] if not row["delay_ms"]])
    for row in rows[1:]:
        traffic = row["per_token"]
        waits = traffic["round_trips"] / row["count"]
        link = round_trip_ms(row)
        delay = link - still if row["delay_ms"] else 0
        expected = 1e3 / predicted_ms(compute, overhead, row["count"], waits, delay)
        size = traffic["sent_bytes"] + traffic["received_bytes"]
        print(
            f"| {row['count']} | {row['delay_ms']:g} ms | {link:.2f} ms | {row['generated_per_second']:.1f} "
            f"| {expected:.1f} | {row['prompt_per_second']:.0f} "
            f"| {size:,.0f} | {traffic['round_trips']:.1f} |"
        )
    limits(rows, compute, overhead)


def limits(rows, compute, overhead):
    waits = np.mean([row["per_token"]["round_trips"] / row["count"] for row in rows[1:]])
    print("\n| round trip | " + " | ".join(f"{n} hosts" for n in (4, 8, 16, 32)) + " |")
    print("|---|---|---|---|---|")
    for delay in (0.1, 1, 10):
        rates = (1e3 / predicted_ms(compute, overhead, n, waits, delay) for n in (4, 8, 16, 32))
        print(f"| {delay:g} ms | " + " | ".join(f"{rate:.1f}" for rate in rates) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="GGUF file; none: a small one with random weights")
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--round-trips", type=float, nargs="+", default=[0, 0.1, 1, 10], metavar="MS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=48)
    parser.add_argument("--json", type=Path, default=OUT / "rpc_links-all.json")
    arguments = parser.parse_args()
    arguments.model = arguments.model or small_model()
    reason = rpc_hosts.why_no_namespaces()
    print(f"hosts: {f'loopback ({reason})' if reason else 'network namespaces'}")
    reason_netem = rpc_hosts.why_no_netem()
    print(f"links: {f'slow_link (netem: {reason_netem})' if reason_netem else 'netem'}")
    rows = run(arguments, in_namespaces=not reason)
    arguments.json.write_text(json.dumps(rows, indent=2))
    table(rows)


if __name__ == "__main__":
    main()
