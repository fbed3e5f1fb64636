"""Spoken digits, made with espeak-ng, and their features: log-mel spectra, as a host computes them.

The program ``espeak-ng`` (Debian's package of that name) speaks every digit with every voice at some speeds and
pitches. Two voices in seven are the test split, so that no voice of it was trained with.
"""

from __future__ import annotations

import io
import itertools
import subprocess
import wave
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ACCENTS = "en-gb", "en-us", "en-gb-scotland"
TRAINED = "m1", "m2", "m3", "m7", "f1", "f2", "f4", "klatt2", "Andy", "Annie"
TESTED = "m4", "f3", "klatt4", "Lee"
SPEEDS, PITCHES = (140, 180), (35, 65)
"""Words per minute; espeak-ng's units of pitch."""

RATE = 22050
"""Samples per second that espeak-ng gives."""
STEPS, MELS = 32, 16
"""Spectra of a frame, and their bands."""
HOP, WINDOW = 480, 512
"""Samples between two spectra, and of each: a frame is 0.7 s."""
LOWEST, HIGHEST = 80.0, 7600.0
"""Edges of the outermost bands, in Hz."""
STEP = 1 / 16
"""To which features are rounded, so that the files stay small; far below the noise that training adds."""
NOISE = 30.0
"""Standard deviation of the noise added to samples: those of espeak-ng are exactly 0 in pauses."""


@dataclass(frozen=True)
class Split:
    """One part of the data: ``features``, float32 [frames, STEPS, MELS] in about [-2, 3]; ``label``, int64 [frames]."""

    features: NDArray[np.float32]
    label: NDArray[np.int64]


def speak(word: str, voice: str, speed: int, pitch: int) -> NDArray[np.float64]:
    """Return the samples of a word, within -32768..32767."""
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", word]
    done = subprocess.run(command, capture_output=True, check=True)
    with wave.open(io.BytesIO(done.stdout)) as sound:
        assert sound.getframerate() == RATE, "the rate of espeak-ng's own voices"
        return np.frombuffer(sound.readframes(sound.getnframes()), np.int16).astype(np.float64)


def mel_bands() -> NDArray[np.float64]:
    """Return triangles over the spectrum's lines, equally wide on the mel scale: [MELS, WINDOW // 2 + 1]."""

    def mel(hertz: float) -> float:
        return 2595 * float(np.log10(1 + hertz / 700))

    edges = 700 * (10 ** (np.linspace(mel(LOWEST), mel(HIGHEST), MELS + 2) / 2595) - 1)
    lines = np.fft.rfftfreq(WINDOW, 1 / RATE)
    rising = (lines - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - lines) / np.diff(edges)[1:, None]
    return np.maximum(0, np.minimum(rising, falling))


def features(samples: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float32]:
    """Return the features of a word: float32 [STEPS, MELS]. It is laid into the middle of the frame or cut to it."""
    length = (STEPS - 1) * HOP + WINDOW
    loud = np.flatnonzero(np.abs(samples) > 200)
    samples = samples[loud[0] : loud[-1] + 1][:length]
    before = (length - len(samples)) // 2
    padded = np.pad(samples, (before, length - len(samples) - before)) + random.normal(0, NOISE, length)
    windows = np.stack([padded[i * HOP : i * HOP + WINDOW] for i in range(STEPS)]) * np.hanning(WINDOW)
    power = np.abs(np.fft.rfft(windows)) ** 2 @ mel_bands().T
    normalised = (np.log10(power) - 8.5) / 1.5
    return rounded(normalised)


def rounded(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return features in multiples of STEP."""
    return (np.round(values / STEP) * STEP).astype(np.float32)


def load_splits() -> tuple[Split, Split]:
    """Speak all digits with all voices; return the training split and the test split."""
    random = np.random.default_rng(0)

    def split(variants: tuple[str, ...]) -> Split:
        found, labels = [], []
        for accent, variant, speed, pitch in itertools.product(ACCENTS, variants, SPEEDS, PITCHES):
            for label, word in enumerate(WORDS):
                found.append(features(speak(word, f"{accent}+{variant}", speed, pitch), random))
                labels.append(label)
        return Split(np.stack(found), np.array(labels, np.int64))

    return split(TRAINED), split(TESTED)


def augment(frames: NDArray[np.float32], random: np.random.Generator) -> NDArray[np.float32]:
    """Return features moved in time by some spectra, louder or quieter, with noise: as long and of the same terms."""
    moved = np.stack([np.roll(frame, random.integers(-3, 4), axis=0) for frame in frames])
    gain = random.normal(0, 0.15, (len(frames), 1, 1))
    return (moved + gain + random.normal(0, 0.1, moved.shape)).astype(np.float32)
