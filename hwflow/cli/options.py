"""What argparse reads option values with."""

from __future__ import annotations

import argparse
import os
import secrets

from hwflow.display import show


def folder(text: str) -> str:
    """Parse the argument of --trust."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"must be a folder, not {show(text)}")
    return text


def bits(text: str) -> int | str:
    """Parse the argument of --bits."""
    return int(text) if text.isdecimal() and len(text) < 4 else text


def seed(text: str) -> int:
    """Parse the argument of --seed."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, not {show(text)}")
    return int(text)


def seed_of(arguments: argparse.Namespace) -> int:
    """Return --seed, or a random one."""
    return secrets.randbelow(1 << 31) if arguments.seed is None else int(arguments.seed)
