"""Windows names its language by no environment variable."""

import sys

import pytest
from each import each

from gpucheck.interface import text
from gpucheck.machine import windows


@each(
    ("langid", "chinese"),
    [(0x0804, True), (0x0404, True), (0x0C04, True), (0x0409, False), (0x0411, False)],
)
def test_the_language_of_a_langid(langid: int, chinese: bool) -> None:  # noqa: FBT001
    assert windows.is_chinese(langid) is chinese


def test_the_interface_of_windows_decides_where_no_variable_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GPUCHECK_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(windows, "speaks_chinese", lambda: True)
    assert text.language_named() == "en"
    monkeypatch.setattr(sys, "platform", "win32")
    assert text.language_named() == "zh"
    assert text.language_named("en") == "en"
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    assert text.language_named() == "en"


@pytest.mark.skipif(sys.platform == "win32", reason="there it depends on the user")
def test_other_systems_have_no_such_language() -> None:
    assert windows.speaks_chinese() is False
