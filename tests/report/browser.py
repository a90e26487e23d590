"""A headless Chromium that tests drive as a person would: through its DevTools protocol, over two pipes."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "--allow-file-access-from-files"),
)


class Browser:
    """One page of a browser. `said`: its console's messages and uncaught errors."""

    def __init__(self, profile: Path) -> None:
        # Chromium reads commands from descriptor 3 and writes answers to 4, each ended by a zero byte.
        to_read, self._commands = os.pipe()
        self._answers, to_write = os.pipe()
        shell = f"exec {CHROMIUM} {' '.join(QUIET)} --user-data-dir='{profile}' 3<&{to_read} 4>&{to_write}"
        # bash, since dash knows no descriptors of two digits; a group of its own, so that all of it can be ended.
        self._process = subprocess.Popen(
            ["bash", "-c", shell], pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(to_write)
        self._unread, self._last, self._session = b"", 0, None
        self.said: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its answer. Raises RuntimeError where it is refused."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            self._unread += os.read(self._answers, 1 << 20)
        text, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.said.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") in ("Runtime.consoleAPICalled", "Log.entryAdded"):
            self.said.append(json.dumps(message["params"]))
        return message

    def show(self, width: int, height: int = 800, *, scheme: str = "light") -> None:
        """Set the size of the window in CSS pixels, and what the page hears of the user's preference."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path: Path) -> None:
        """Open a file, and wait until it has loaded."""
        self.call("Page.navigate", url=path.absolute().as_uri())
        self.value(
            "new Promise((go) => document.readyState === 'complete' ? go() : addEventListener('load', () => go()))"
        )

    def value(self, expression: str) -> Any:
        """Return the value of an expression, or of the promise that it is. Raises RuntimeError where it throws."""
        done = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(done["exceptionDetails"]["exception"].get("description", expression))
        return done["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key: `Tab`, `Enter` or ` `."""
        codes = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), " ": ("Space", 32, " ")}
        code, number, text = codes[key]
        of_key = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **of_key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **of_key)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a PNG of the page, or of what is in view."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End the browser."""
        try:
            self._session = None
            self.call("Browser.close")
        except (OSError, RuntimeError):
            self._process.terminate()
        self._process.wait(timeout=20)
        os.close(self._commands)
        os.close(self._answers)
