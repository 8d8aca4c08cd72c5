"""The sources of the documentation site, and what looks at the built one; nothing is built."""

import re
from pathlib import Path

from docs_site import check, findings, markdown, sources
from docs_site.words import WORDS
from each import each
from language.english_left import english_left

from gpucheck.findings import all_rules
from gpucheck.language import Language, speaking
from gpucheck.log_patterns.loading import all_messages

_FENCED = re.compile(r"^(`{3,})(?:text|sh)\n(?P<lines>.*?)\n\1$", re.MULTILINE | re.DOTALL)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def _pages(language: Language) -> dict[str, str]:
    return dict(findings.pages(language))


@each("language", ["en", "zh"])
def test_every_finding_has_a_page_with_all_its_samples(language: Language) -> None:
    pages = _pages(language)
    assert list(pages) == list(all_rules())
    for slug, found in all_messages().items():
        shown = {
            line for block in _FENCED.finditer(pages[slug]) for line in block["lines"].split("\n")
        }
        assert {message.sample for message in found.messages} <= shown, slug


@each("language", ["en", "zh"])
def test_a_page_begins_with_the_fix_and_its_commands(language: Language) -> None:
    fix, meaning = (f"## {WORDS[language][name]}\n" for name in ("fix", "meaning"))
    for slug, page in _pages(language).items():
        above, _, below = page.partition("\n# ")[2].partition("\n")[2].partition(fix)
        called = WORDS[language]["called"].format(slug=f"`{slug}`")  # a terminal prints the slug
        assert above.strip() == called
        first = below.partition(meaning)[0]
        assert first.strip(), slug
        found = all_messages().get(slug)
        shown = {line for block in _FENCED.finditer(first) for line in block["lines"].split("\n")}
        assert {command for one in (found.fixes if found else ()) for command in one.commands} <= (
            shown
        )


def test_titles_are_words_and_names_keep_their_letters() -> None:
    titles = {slug: findings.title(rule) for slug, rule in all_rules().items()}
    assert titles["driver-missing"] == "No driver is installed for a GPU"
    assert titles["cudnn-runtime-failure"].startswith("cuDNN ")
    with speaking("zh"):
        assert findings.title(all_rules()["memlock-too-low"]).startswith("memlock ")
    assert not set(titles.values()) & set(titles)


@each("language", ["en", "zh"])
def test_the_index_has_every_finding_in_its_family(language: Language) -> None:
    text = findings.index(language)
    assert {rule.family for rule in all_rules().values()} == set(findings.FAMILIES)
    listed = re.findall(r"^- \[([^\]]+)\]\(([a-z0-9-]+)\.md\)", text, re.MULTILINE)
    assert sorted(target for _, target in listed) == list(all_rules())


@each("language", ["en", "zh"])
def test_the_sidebar_has_every_finding_in_the_order_of_titles(language: Language) -> None:
    text = findings.index(language)
    (entries,) = re.findall(
        r"^```\{toctree\}\n:hidden:\n\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    titles = {
        slug: _ESCAPED.sub(r"\1", title).lower()
        for title, slug in re.findall(r"^- \[(.+)\]\(([a-z0-9-]+)\.md\)", text, re.MULTILINE)
    }
    assert sorted(entries.split()) == list(all_rules())
    shown = [titles[slug] for slug in entries.split()]
    latin = [title for title in shown if title.isascii()]
    assert latin == sorted(latin)
    by_sound = [title[0] for title in shown if title[0] in "编程驱"]
    assert by_sound == sorted(by_sound, key="编程驱".index)
    assert bool(by_sound) == (language == "zh")


@each("language", ["en", "zh"])
def test_where_another_torch_mends_the_page_has_the_command_that_finds_it(
    language: Language,
) -> None:
    advised = WORDS[language]["recommend"]
    pages = {slug for slug, page in _pages(language).items() if advised in page}
    assert pages == set(findings.ANOTHER_TORCH)
    mended = {slug for slug, rule in all_rules().items() if rule.another_torch_mends}
    assert mended <= pages


def test_chinese_pages_have_no_english_sentence_of_ours() -> None:
    for slug, page in _pages("zh").items():
        words = _ESCAPED.sub(r"\1", _FENCED.sub("", page.partition("\n# ")[2]))
        ours = [line for line in words.splitlines() if re.search("[\u4e00-\u9fff]", line)]
        assert ours, slug
        english = [line for line in words.splitlines() if line and line not in ours]
        assert english == [], slug
    index = _ESCAPED.sub(r"\1", findings.index("zh").replace("```{toctree}", "```"))
    assert english_left("\n".join(re.findall("^- .*", index, re.MULTILINE)), "") == []


def test_a_page_advises_to_run_gpucheck_only_if_that_can_find_it() -> None:
    pages = _pages("en")
    advice = WORDS["en"]["check"]
    assert advice in pages["driver-too-old"]
    for slug in ("application-bug", "extension-source-too-old", "nccl-timeout", "not-gpu-related"):
        assert advice not in pages[slug]


def test_related_findings_are_linked_in_both_directions() -> None:
    pages = _pages("en")
    for slug, rule in all_rules().items():
        for other in rule.suppressed_by:
            assert f"]({other}.md)" in pages[slug].partition("## Related")[2]
            assert f"]({slug}.md)" in pages[other].partition("## Related")[2]


def test_both_languages_have_the_same_words() -> None:
    assert set(WORDS["en"]) == set(WORDS["zh"])
    for name, text in WORDS["en"].items():
        assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", WORDS["zh"][name]))


def test_a_slug_is_a_link_and_nothing_else_is_markup() -> None:
    linked = {"a-b": "a-b.md"}.get
    assert markdown.prose("see a-b, not x/a-b or a-b-c", linked) == (
        r"see [a\-b](a-b.md)\, not x\/a\-b or a\-b\-c"
    )
    assert markdown.prose("`a-b` and `<b>`", linked) == "`a-b` and `<b>`"
    assert markdown.block("a ```` b").startswith("`````text\n")
    assert markdown.code("a ` b") == "``a ` b``"


def _site(folder: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_whole_site_has_no_problems(tmp_path: Path) -> None:
    pages = {
        "index.html": '<a href="a/b.html#x">b</a><a href="https://example.org/">else</a>'
        '<link rel="stylesheet" href="s.css"><a href="https://docs.test/g/a/">by address</a>',
        "a/b.html": '<h1 id="x">b</h1><a href="../index.html">up</a><a href="#x">here</a>',
        "a/index.html": "",
        "s.css": "body { background: url(data:image/png;base64,AA==) }",
        "search.html": "",
    }
    assert check.problems(_site(tmp_path, pages), "https://docs.test/g") == []


@each(
    ("pages", "problem"),
    [
        ({"index.html": '<a href="no.html">x</a>'}, "index.html: no.html leads nowhere"),
        ({"index.html": '<a href="../x">x</a>'}, "index.html: ../x leads nowhere"),
        ({"index.html": '<a href="#y">x</a>'}, "index.html: #y names no place of that page"),
        ({"index.html": "", "a.html": ""}, "a.html: no page leads to it"),
        ({"index.html": '<img src="no.png">'}, "index.html: no.png leads nowhere"),
        (
            {"index.html": '<script src="https://cdn.test/x.js"></script>'},
            "index.html: https://cdn.test/x.js is loaded from elsewhere",
        ),
        (
            {"index.html": '<link rel="stylesheet" href="//cdn.test/x.css">'},
            "index.html: //cdn.test/x.css is loaded from elsewhere",
        ),
        (
            {"index.html": "", "s.css": "@import url('https://fonts.test/css')"},
            "s.css: https://fonts.test/css is loaded from elsewhere",
        ),
        ({"other.html": ""}, "there is no index.html"),
    ],
)
def test_a_problem_is_found(tmp_path: Path, pages: dict[str, str], problem: str) -> None:
    assert check.problems(_site(tmp_path, pages)) == [problem]


def test_pages_of_the_repository_lead_to_what_lies_on_the_site(tmp_path: Path) -> None:
    sources.write(tmp_path, "en")
    assert (tmp_path / "docs/install.md").is_file()
    listing = (tmp_path / "docs/examples/slurm/index.md").read_text(encoding="utf-8")
    assert "(prolog.sh)" in listing
    assert (tmp_path / "docs/examples/slurm/prolog.sh").is_file()
    guide = (tmp_path / "docs/preflight/slurm.md").read_text(encoding="utf-8")
    assert "](../examples/slurm/index.md)" in guide
