"""The network: a GRU or an LSTM over spectra, and a dense layer; one step of a stream, or a whole word."""

from __future__ import annotations

from torch import Tensor, nn

MELS, WORDS, HIDDEN = 16, 10, 16
KINDS = {"gru": nn.GRU, "lstm": nn.LSTM}
STATES = {"gru": ("h",), "lstm": ("h", "c")}


class Keyword(nn.Module):
    """Map spectra to logits at each of them."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = KINDS[kind](MELS, HIDDEN, batch_first=True)
        self.classify = nn.Linear(HIDDEN, WORDS)

    def forward(self, features: Tensor) -> Tensor:
        """Map features, float32 [rows, spectra, MELS], to logits, float32 [rows, spectra, WORDS]."""
        rows, _ = self.cell(features)
        return self.classify(rows)


class Word(nn.Module):
    """A whole word a frame."""

    def __init__(self, network: Keyword) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor) -> Tensor:
        """Map features, float32 [1, spectra, MELS], to logits, float32 [1, WORDS], behind the last spectrum."""
        rows, _ = self.network.cell(features)
        return self.network.classify(rows[:, -1])


class Step(nn.Module):
    """One spectrum a frame; the states are inputs and outputs, float32 [1, HIDDEN] each."""

    def __init__(self, network: Keyword) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """Map features, float32 [1, MELS], to logits, float32 [1, WORDS], and the next states."""
        given = tuple(state[:, None] for state in states)
        rows, left = self.network.cell(features[:, None], given if len(given) > 1 else given[0])
        following = left if len(given) > 1 else (left,)
        return self.network.classify(rows[:, 0]), *(state[:, 0] for state in following)
