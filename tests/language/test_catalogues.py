"""The catalogues of translations: nothing is missing, left over, fuzzy or malformed."""

import json
import shutil
import string
from io import BytesIO
from pathlib import Path

import pytest
import translations
from babel.messages.mofile import write_mo
from each import each

from gpucheck.language import (
    as_said,
    catalogue_of,
    from_said,
    listed,
    say,
    say_many,
    speaking,
    spoken,
)
from gpucheck.language.catalogue import Compiled


def test_every_sentence_has_its_translation() -> None:
    assert translations.faults() == []


def test_a_sentence_is_shown_in_the_language_that_is_set() -> None:
    sentence = say("{those} and {last}", those="A", last="B")
    assert spoken(sentence) == "A and B"
    with speaking("zh"):
        assert spoken(sentence) == "A 和 B"
        assert spoken(listed(["A", "B", "C"])) == "A、B 和 C"
    assert spoken(sentence) == "A and B"


def test_what_the_catalogue_lacks_stays_a_whole_english_sentence() -> None:
    sentence = say("{gpus} dance with {others}", gpus=listed(["A", "B"]), others="C")
    with speaking("zh"):
        assert spoken(sentence) == "A and B dance with C"
        assert spoken("words of another program") == "words of another program"
        assert spoken("") == ""


def test_a_template_is_filled_with_text_and_never_evaluated() -> None:
    sentence = say("{those} and {last}", those="{last.__class__}", last="%s {0}")
    assert sentence == "{last.__class__} and %s {0}"
    with speaking("zh"):
        assert spoken(sentence) == "{last.__class__} 和 %s {0}"


def test_a_sentence_survives_its_way_through_data() -> None:
    inner = say("Driver {release}", release="470.82").within()
    sentence = say_many(2, "{gpus} needs it", "{gpus} need it", gpus=inner)
    again = from_said(json.loads(json.dumps(as_said(sentence))))
    assert again == sentence == "driver 470.82 need it"
    assert as_said(again) == as_said(sentence)


@each("language", translations.LANGUAGES)
def test_no_translation_says_more_than_its_parameters(language: str) -> None:
    for _file, message in translations.messages(language):
        if "{" not in str(message.id) or (" {" in str(message.id) and '"' in str(message.id)):
            continue  # without parameters braces are only braces
        translation = message.string
        for form in (translation,) if isinstance(translation, str) else translation or ():
            fields = [name for _t, name, _s, _c in string.Formatter().parse(form or "") if name]
            assert all(name.isidentifier() for name in fields), form


def test_what_is_missing_fuzzy_or_malformed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "zh/engine.po"
    file.parent.mkdir()
    file.write_text(
        'msgid "{fact}: {why}"\nmsgstr "{fact} {because}"\n\n'
        'msgid "gone"\nmsgstr "没有了"\n\n#, fuzzy\nmsgid "none was run"\nmsgstr "没有"\n',
        encoding="utf-8",
    )
    monkeypatch.setattr(translations, "FOLDER", tmp_path)
    faults = "\n".join(fault for fault in translations.faults() if fault.startswith("engine"))
    assert "other parameters ['because', 'why']" in faults
    assert "not in the code: 'gone'" in faults
    assert "fuzzy" in faults
    assert "not in the catalogue: 'Is there an NVIDIA GPU?'" in faults


def test_a_sentence_that_moved_keeps_its_translation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(translations.FOLDER, tmp_path / "all", dirs_exist_ok=True)
    monkeypatch.setattr(translations, "FOLDER", tmp_path / "all")
    old, new = (tmp_path / "all/zh" / name for name in ("engine.po", "elsewhere.po"))
    before = old.read_bytes()
    old.rename(new)
    translations.update()
    assert old.read_bytes() == before
    assert not new.exists()


def test_the_catalogue_of_a_language_without_files_is_empty() -> None:
    assert catalogue_of("en").words("{those} and {last}") == "{those} and {last}"


@each("language", translations.LANGUAGES)
def test_every_message_is_found_in_the_compiled_file(language: str) -> None:
    file = BytesIO()
    write_mo(file, translations.compiled(language))
    found = Compiled(file.getvalue())
    for message in translations.compiled(language):
        key = message.id if isinstance(message.id, str) else message.id[0]
        words = message.string if isinstance(message.string, str) else (message.string or ("",))[0]
        assert not key or found.translation(key) == words


@each("key", ["a", "say nothing", "\U0010ffff", "{count}"])
def test_what_a_compiled_file_lacks_is_not_found(key: str) -> None:
    file = BytesIO()
    write_mo(file, translations.compiled("zh"))
    assert Compiled(file.getvalue()).translation(key) == ""
    assert Compiled(b"").translation(key) == ""


@each("data", [b"\xde\x12\x04\x95", b"msgid" * 9])
def test_a_file_of_another_format_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a catalogue"):
        Compiled(data)
