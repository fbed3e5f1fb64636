"""Chromium without a window, by its debugging protocol over two pipes: pages, what they say, how they look."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_SECONDS = 120.0
_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One process; ``open`` makes tabs."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM, "Chromium must be there: make test installs it"
        ours, theirs = os.pipe(), os.pipe()
        given = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (ours[0], theirs[1])]  # which it wants to be 3 and 4
        shell = f'exec "$0" "$@" 3<&{given[0]} 4>&{given[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=given, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (ours[0], theirs[1], *given):
            os.close(end)
        self._write, self._read = ours[1], theirs[0]
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the process."""
        os.close(self._write)
        self._process.terminate()
        self._process.wait(30)
        os.close(self._read)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """The result of a method of the protocol; events meanwhile are in ``events``."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {} if session is None else {"sessionId": session}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            got = os.read(self._read, 1 << 20)
            assert got, "Chromium has ended"
            self._rest += got
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def open(
        self, file: Path, width: int = 1280, height: int = 900, *, dark: bool = False, phone: bool = False
    ) -> Page:
        """A tab with a file, drawn."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Performance.enable", timeDomain="threadTicks")
        page.resize(width, height, phone=phone)
        scheme = "dark" if dark else "light"
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        page.call("Page.navigate", url=file.as_uri())
        end = time.monotonic() + _SECONDS
        while not page("document.documentElement?.dataset.ready ?? ''"):
            assert time.monotonic() < end and not page.wrong, page.wrong or "the page is never ready"
            time.sleep(0.05)
        return page


class Page:
    """A tab: ``page(expression)`` is the value of one."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """As of the browser, of this tab."""
        return self._browser.call(method, self._session, **parameters)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """Give the window another size, in pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def __call__(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    @property
    def _events(self) -> list[dict[str, Any]]:
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    @property
    def wrong(self) -> list[str]:
        """Whatever the console has, exceptions, and what the browser logged."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self._events if event.get("method") in kinds]

    @property
    def requested(self) -> list[str]:
        """Addresses of all that the page has asked for."""
        sent = [event for event in self._events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    @property
    def seconds(self) -> float:
        """Processor time of the page's thread so far."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    def picture(self, file: Path, width: int, height: int, scale: float = 1.0) -> None:
        """Write a screenshot of the window, of this size, as a PNG ``scale`` times as large."""
        self.resize(width, height)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
        data = self.call("Page.captureScreenshot", clip=clip)["data"]
        file.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        """Close the tab."""
        self.call("Page.close")
