"""Components that occur several times in a core, or a design: one module with several instances, if the platform
supports it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from amaranth.hdl import Module
from amaranth.lib import wiring


class SharedComponent(wiring.Component):
    """A component whose hardware depends on its class and on ``key`` alone; its only clock domain is "sync".

    On a platform with a method ``share`` it elaborates to what ``share(component)`` returns: an instance, on the
    component's ports, of a module which the platform has made of the :meth:`build` of one component of that class and
    key. On other platforms, and on none (simulation, proofs), it is the result of :meth:`build` itself.

    Parameters
    ----------
    name: of the module, below the core's.
    key: all that :meth:`build` and ``members`` depend on.
    members: of the signature.
    """

    def __init__(self, name: str, key: Hashable, members: Mapping[str, Any]) -> None:
        self.name = name
        self.key = key
        super().__init__(dict(members))

    def build(self) -> Module:
        """Build its hardware."""
        raise NotImplementedError("each shared component builds its own hardware")

    def elaborate(self, platform: object) -> Any:
        share = getattr(platform, "share", None)
        return self.build() if share is None else share(self)


class CommonComponent(SharedComponent):
    """A shared component that occurs in many cores; those of different cores share a module as well.

    ``key`` names the arguments of its constructor: ``type(component)(**dict(component.key))`` is equal to it, except
    for the layout of payloads, of which only the width matters.

    Parameters
    ----------
    arguments: of the constructor, by name; integers, strings or None.
    members: as above.
    """

    module_name: ClassVar[str]
    key: tuple[tuple[str, int | str | None], ...]

    def __init__(self, arguments: Mapping[str, int | str | None], members: Mapping[str, Any]) -> None:
        super().__init__(self.module_name, tuple(arguments.items()), members)
