"""Where a sound is speech, by silero-vad's ONNX models: JSON on the standard output."""

import json
import time

import numpy as np
import torch
from silero_vad import get_speech_timestamps, load_silero_vad

RATE = 16000


def vowels(seconds: float, seed: int) -> np.ndarray:
    """Pulses of a voice that wavers, through resonances that change with the vowel."""
    random = np.random.default_rng(seed)
    count = int(seconds * RATE)
    pitch = 120 + 25 * np.sin(2 * np.pi * 3 * np.arange(count) / RATE) + random.normal(0, 1, count)
    phase = np.cumsum(pitch / RATE)
    pulses = np.diff(np.floor(phase), prepend=0.0) + random.normal(0, 0.01, count)
    sound = np.zeros(count)
    step = RATE // 5
    for begin in range(0, count, step):
        formants = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480)][
            (begin // step) % 4
        ]
        part = pulses[begin : begin + step]
        for place, frequency in enumerate(formants):
            time_axis = np.arange(400) / RATE
            ring = np.exp(-np.pi * (60 + 40 * place) * time_axis) * np.sin(2 * np.pi * frequency * time_axis)
            sound[begin : begin + len(part)] += np.convolve(part, ring)[: len(part)] / (place + 1)
    return sound / np.abs(sound).max() * 0.5


def make_sound() -> torch.Tensor:
    quiet = np.random.default_rng(0).normal(0, 0.002, 12 * RATE)
    for begin, seconds in ((1, 2), (5, 1.5), (9, 2)):
        quiet[begin * RATE : begin * RATE + int(seconds * RATE)] += vowels(seconds, begin)
    return torch.from_numpy(quiet.astype(np.float32))


sound, found, seconds, loading = make_sound(), {}, {}, 0.0
windows = sound[: len(sound) // 512 * 512].reshape(-1, 512)
for opset in (16, 15):
    begin = time.perf_counter()
    model = load_silero_vad(onnx=True, opset_version=opset)
    loading += time.perf_counter() - begin
    found[f"chances {opset}"] = [model(window, RATE).item() for window in windows]
    found[f"spans {opset}"] = get_speech_timestamps(sound, model, sampling_rate=RATE)
    rounds = []
    for _ in range(3):
        model.reset_states()
        first = time.perf_counter()
        for window in windows:
            model(window, RATE)
        rounds.append(time.perf_counter() - first)
    seconds[opset] = min(rounds)
print(json.dumps({"results": found, "load_s": loading, "run_s": seconds[16]}))
