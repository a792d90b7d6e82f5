"""
Takes pictures of the page of `hf-mwp app` with headless Chromium: `page.png` and, in Chinese, `page_zh.png`, which
needs a Chinese font. Pillow, which Matplotlib installs, crops them.

    apt-get install chromium fonts-wqy-microhei  # on Debian and Ubuntu
    python examples/results/screenshot.py
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from PIL import Image, ImageChops

from hf_mwp.commands.web_app.server import make_server


RESULTS = Path(__file__).parent
MODELS = RESULTS.parents[1] / "model_cards"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--virtual-time-budget=20000",  # milliseconds for the page to load and to solve the problem
)
WIDTH = 800  # of the window, in CSS pixels
HEIGHT = 1_200
SCALE = 1.25  # pixels per CSS pixel
MARGIN = 20  # below the content, in pixels
NUM_COLORS = 128
MAX_SECONDS = 120


@dataclass(frozen=True)
class Picture:
    """A picture of the page that shows a solved problem."""

    name: str
    model: str
    language: str
    text: str


PICTURES = (
    Picture(
        "page.png",
        "mwp-student-3L-gts-english",
        "en",
        "Anna has 3 bags with 12 apples in each. She gives 9 apples to Ben. How many apples are left?",
    ),
    Picture(
        "page_zh.png",
        "mwp-student-3L-gts-math23k-gemma",
        "zh",
        "一本书120页，小红第一天看了全书的25%，第二天看了30页，还剩多少页没看？",
    ),
)


def find_browser() -> str:
    """Return the path of Chromium or Chrome. Raises `SystemExit` if neither is installed."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise SystemExit(f"No browser was found on PATH. Install one of {', '.join(BROWSERS)}, or pass --browser.")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the page with the solver of a folder at a free port, and return its address."""
    with make_server([folder]) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def page_address(address: str, picture: Picture) -> str:
    """Return the address of the page that shows the problem of a picture."""
    query = {"language": picture.language, "text": picture.text}
    return f"{address}?{urlencode(query)}"


def browser_command(browser: str, address: str, profile: str, path: Path) -> list[str]:
    """Return the command that writes a picture of an address. `profile` is an empty folder."""
    return [
        browser,
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--window-size={WIDTH},{HEIGHT}",
        f"--force-device-scale-factor={SCALE}",
        f"--screenshot={path}",
        address,
    ]


def warm_up(address: str, picture: Picture) -> None:
    """Solve the problem of a picture once, so that the time in the picture is that of a server in use."""
    body = json.dumps({"text": picture.text}).encode()
    with urlopen(Request(f"{address}solve", body)) as response:
        response.read()


def cropped(image: Image.Image, margin: int = MARGIN) -> Image.Image:
    """Return the upper part of an image, without the rows at the bottom that have the color of the last pixel."""
    background = Image.new(image.mode, image.size, image.getpixel((image.width - 1, image.height - 1)))
    content = ImageChops.difference(image, background).getbbox()
    if content is None:
        raise ValueError("The image is empty.")
    bottom = min(content[3] + margin, image.height)
    return image.crop((0, 0, image.width, bottom))


def take(picture: Picture, browser: str, folder: Path) -> Path:
    """Take a picture, and write it to a folder."""
    path = folder / picture.name
    with tempfile.TemporaryDirectory() as temporary, served(MODELS / picture.model) as address:
        warm_up(address, picture)
        raw = Path(temporary) / picture.name
        command = browser_command(browser, page_address(address, picture), str(Path(temporary) / "profile"), raw)
        subprocess.run(command, check=True, timeout=MAX_SECONDS, capture_output=True)
        with Image.open(raw) as image:
            picture_of_page = cropped(image.convert("RGB"))
    picture_of_page.quantize(NUM_COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", help="path of Chromium or Chrome; by default, the one on PATH")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of the pictures")
    options = parser.parse_args(arguments)
    browser = options.browser or find_browser()
    for picture in PICTURES:
        path = take(picture, browser, options.output)
        print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
