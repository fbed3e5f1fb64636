"""Make speech by espeak-ng, and noise, as frames for a voice detector: 16 kHz, 512 samples and the 64 before them.

    python sound.py FOLDER

writes calibration.npz, and to measure on speech.npz (other sentences and voices), white.npz, pink.npz and babble.npz.
The same call gives the same files.
"""

from __future__ import annotations

import io
import subprocess
import sys
import wave
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt

Sound = npt.NDArray[np.float64]

RATE, STEP, BEFORE = 16_000, 512, 64

Voice = tuple[str, int, int]
"""Its name, words a minute, pitch."""

VOICES: dict[str, list[Voice]] = {
    "calibration": [
        ("en-us", 160, 50), ("en-gb+f3", 150, 60), ("en-us+m3", 180, 35), ("en-gb+f5", 170, 70), ("en-us+f1", 140, 55),
        ("en-gb+m2", 200, 40),
    ],
    "test": [("en-gb", 165, 45), ("en-us+f2", 155, 65), ("en-gb+m7", 175, 40), ("en-us+f4", 160, 55)],
}

SENTENCES = {
    "calibration": [
        "The quick brown fox jumps over the lazy dog.", "Turn the lights on in the kitchen, please.",
        "What is the weather like in Berlin tomorrow?", "She sells sea shells by the sea shore.",
        "Nine people waited an hour for the last train.", "How much does this one cost, and that?",
        "We could go by bicycle if it stays dry.", "A thousand small stars shone above the harbour.",
    ],
    "test": [
        "Call me again at seven in the evening.", "My house has three rooms and a garden.",
        "A rainbow is a division of white light into many beautiful colours.",
        "Please stop the music and close the windows.",
    ],
}

NOISE_SECONDS = {"calibration": 3.0, "test": 2.0}
"""Of each kind: white, pink, babble."""


def said(text: str, voice: Voice) -> Sound:
    """Return a spoken sentence."""
    name, speed, pitch = voice
    command = ["espeak-ng", "-v", name, "-s", str(speed), "-p", str(pitch), "--stdout", text]
    with wave.open(io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout)) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(1 << 30), dtype="<i2") / 32768
    count = len(samples) * RATE // rate
    return np.fft.irfft(np.fft.rfft(samples)[: count // 2 + 1], count) * count / len(samples)


def speech(which: str, rng: np.random.Generator) -> Sound:
    """Return sentences of different loudness with pauses between them, and a little noise."""
    parts = []
    for text, voice in zip(SENTENCES[which], cycle(VOICES[which])):
        sound = said(text, voice)
        parts += [sound / np.abs(sound).max() * rng.uniform(0.1, 0.45), np.zeros(int(RATE * rng.uniform(0.2, 0.5)))]
    joined = np.concatenate(parts)
    return joined + 0.001 * rng.standard_normal(len(joined))


def noises(which: str, rng: np.random.Generator) -> dict[str, Sound]:
    """Return white and pink noise, and babble of all voices at once, of one power."""
    count = int(RATE * NOISE_SECONDS[which])
    spectrum = np.fft.rfft(rng.standard_normal(count))
    pink = np.fft.irfft(spectrum / np.sqrt(np.maximum(np.arange(len(spectrum)), 1)), count)
    voices = zip(cycle(reversed(SENTENCES[which])), [*VOICES["calibration"], *VOICES["test"]])
    babble = np.sum([np.resize(said(text, voice), count) for text, voice in voices], axis=0)
    kinds = {"white": rng.standard_normal(count), "pink": pink, "babble": babble}
    return {name: 0.05 * kind / kind.std() for name, kind in kinds.items()}


def frames(sound: Sound) -> npt.NDArray[np.float32]:
    """Cut a sound into frames, [frames, 576]."""
    count = len(sound) // STEP
    padded = np.concatenate([np.zeros(BEFORE), sound[: count * STEP]])
    return np.stack([padded[k * STEP : k * STEP + BEFORE + STEP] for k in range(count)]).astype(np.float32)


def main(folder: Path) -> None:
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    heard = [speech("calibration", rng), *noises("calibration", rng).values()]
    np.savez(folder / "calibration.npz", input=frames(np.concatenate(heard)))
    for name, sound in {"speech": speech("test", rng), **noises("test", rng)}.items():
        np.savez(folder / f"{name}.npz", input=frames(sound))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
