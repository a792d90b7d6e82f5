"""Pictures of the page: everything but the browser."""

import json
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.examples.scripts import EXAMPLES, load_script


Image = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def screenshot():
    return load_script("results/screenshot.py")


def test_rows_below_the_content_are_cut_off(screenshot):
    image = Image.new("RGB", (20, 100), "white")
    image.putpixel((5, 30), (0, 0, 0))
    cropped = screenshot.cropped(image, margin=4)
    assert cropped.size == (20, 35)
    assert cropped.getpixel((5, 30)) == (0, 0, 0)
    assert screenshot.cropped(image, margin=400).size == (20, 100)


def test_empty_picture_is_refused(screenshot):
    with pytest.raises(ValueError, match="empty"):
        screenshot.cropped(Image.new("RGB", (20, 100), "white"))


def test_address_has_problem_and_language(screenshot):
    for picture in screenshot.PICTURES:
        address = screenshot.page_address("http://127.0.0.1:8000/", picture)
        assert parse_qs(urlsplit(address).query) == {"language": [picture.language], "text": [picture.text]}


def test_browser_is_named_if_there_is_none(screenshot, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match="--browser"):
        screenshot.find_browser()


def test_command_of_the_browser(screenshot, tmp_path):
    command = screenshot.browser_command("chromium", "http://127.0.0.1:8000/", "profile", tmp_path / "page.png")
    assert command[0] == "chromium"
    assert command[-1] == "http://127.0.0.1:8000/"
    assert f"--screenshot={tmp_path / 'page.png'}" in command


def test_page_is_served_at_a_free_port(screenshot, solver_folder):
    with screenshot.served(solver_folder) as address:
        with urllib.request.urlopen(f"{address}models") as response:
            assert json.loads(response.read())["models"] == [solver_folder.name]


def test_pictures_are_small(screenshot):
    for picture in screenshot.PICTURES:
        path = EXAMPLES / "results" / picture.name
        assert path.stat().st_size < 150_000
        with Image.open(path) as image:
            assert image.width == screenshot.WIDTH * screenshot.SCALE
