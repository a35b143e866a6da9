"""Bring a Chromium for the browser tests where none is found: run by ``make test``, never by pytest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
INSTALL_SECONDS = 600


def found() -> str | None:
    """Return a Chromium: the one of ``CHROMIUM``, of this machine, or of Playwright."""
    here = os.environ.get("CHROMIUM") or next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if here:
        return here
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


def attempts() -> list[list[list[str]]]:
    """Return the ways to get one, each a list of commands."""
    ways = []
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        ways.append([["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]])
    ways.append([[sys.executable, "-m", "playwright", "install", "chromium"]])
    return ways


def main() -> None:
    """Install one if there is none; a failure is said and is no error, for the other tests can run."""
    if found():
        return
    for way in attempts():
        print(f"==> test: no Chromium here; trying: {' '.join(way[-1])}", flush=True)
        try:
            for command in way:
                subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdout=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"    that failed: {error}")
        if found():
            return
    print("==> test: no Chromium could be had; the browser tests will be skipped")


if __name__ == "__main__":
    main()
