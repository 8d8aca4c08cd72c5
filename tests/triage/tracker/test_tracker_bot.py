"""The bot of docs/examples answers recorded events at a tracker on this machine, or is silent."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_tracker import TOKEN, FakeTracker, Refusal, fake_tracker
from markdown_support import outside_code
from more_secrets import MORE_LINES
from tracker_support import GITHUB, GITLAB, Change, Site, put_script, run_bot

from gpucheck import triage

pytestmark = pytest.mark.process

MARKER = "<!-- gpucheck-tracker-bot -->"
CERTAIN = "Failed to initialize NVML: Driver/library version mismatch"
HEALTHY = """\
PyTorch version: 2.6.0+cu124
CUDA used to build PyTorch: 12.4
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: 560.35.03
"""
HOSTILE = (
    "NVIDIA @torvalds #1 </details> <img src=x> ![x](https://evil.example/x) `$(id)` "
    "with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_80 sm_90.\n"
)
SILENT = {
    "a question": "How do I train with two GPUs? The docs are not clear to me.",
    "no cause": "My training crashes somehow and I do not know why.",
    "healthy": HEALTHY,
    "only possible": "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1",
    "only the template": f"<!-- For example:\n{CERTAIN}\n-->\nHow do I use two GPUs?",
    "nothing": None,
}
IGNORED: dict[str, tuple[Site, Change]] = {
    "edited": (GITHUB, lambda event: event.update(action="edited")),
    "pull request": (GITHUB, lambda event: event["issue"].update(pull_request={"url": "x"})),
    "transferred": (GITHUB, lambda event: event.update(changes={"old_issue": {"number": 3}})),
    "bot": (GITHUB, lambda event: event["issue"]["user"].update(type="Bot")),
    "update": (GITLAB, lambda event: event["object_attributes"].update(action="update")),
    "note": (GITLAB, lambda event: event.update(object_kind="note")),
    "another project": (GITLAB, lambda event: event["project"].update(id=1)),
    "confidential": (GITLAB, lambda event: event["object_attributes"].update(confidential=True)),
    "project bot": (GITLAB, lambda event: event["user"].update(username="project_2001_bot_9f")),
}


@pytest.fixture(params=[GITHUB, GITLAB], ids=["github", "gitlab"])
def site(request: pytest.FixtureRequest) -> Site:
    found = request.param
    assert isinstance(found, Site)
    return found


@pytest.fixture
def tracker() -> Iterator[FakeTracker]:
    with fake_tracker() as serving:
        yield serving


def stub(folder: Path, **finding: str) -> str:
    """Write a gpucheck whose report has one finding with these values; return where it is."""
    found = {"slug": "driver-missing", "confidence": "certain", **finding}
    report = {"verdict": "broken", "root_causes": [found["slug"]], "findings": [found]}
    (folder / "report.json").write_text(json.dumps(report))
    script = f'env >{folder}/environ\ncase "$*" in *json*) cat {folder}/report.json ;; esac\n'
    return str(put_script(folder / "stub.sh", script))


def test_a_certain_cause_is_answered_and_labelled(
    site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    done = run_bot(site.environ(tmp_path, tracker))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Answered 12: driver-library-mismatch (certain).\n"
    (comment,) = tracker.comments
    body = comment["body"] or ""
    assert body.startswith(f"{MARKER}\nThank you for the report.\n")
    assert "The cause is: NVML is not of the release" in body
    assert "A program wrote this answer" in body
    assert tracker.asked[-1] == site.comments
    assert tracker.labels == ["gpucheck: environment"]
    assert triage(body).root_causes == ("driver-library-mismatch",)


def test_nothing_is_answered_twice(site: Site, tracker: FakeTracker, tmp_path: Path) -> None:
    environ = site.environ(tmp_path, tracker)
    run_bot(environ)
    done = run_bot(environ)
    assert (done.returncode, done.stdout) == (0, "No answer: it has an answer already.\n")
    assert len(tracker.comments) == len(tracker.labels) == 1


def test_an_answer_is_found_behind_many_comments(tracker: FakeTracker, tmp_path: Path) -> None:
    tracker.comments = [{"body": str(at)} for at in range(119)]
    tracker.comments += [{"body": None}, {"body": f"> quoted\n{MARKER}\nThank you"}]
    done = run_bot(GITHUB.environ(tmp_path, tracker))
    assert done.stdout == "No answer: it has an answer already.\n"


def test_a_ticket_with_endless_comments_is_left_alone(tracker: FakeTracker, tmp_path: Path) -> None:
    tracker.comments = [{"body": str(at)} for at in range(1000)]
    done = run_bot(GITHUB.environ(tmp_path, tracker))
    assert done.stdout == "No answer: it has 1000 comments or more.\n"
    assert len(tracker.asked) == 10


@pytest.mark.parametrize("why", SILENT)
def test_what_is_not_sure_gets_no_answer(
    why: str, site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    done = run_bot(site.environ(tmp_path, tracker, site.saying(SILENT[why])))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No answer: ")
    assert tracker.asked == []


@pytest.mark.parametrize("why", IGNORED)
def test_other_events_get_no_answer(why: str, tracker: FakeTracker, tmp_path: Path) -> None:
    site, change = IGNORED[why]
    done = run_bot(site.environ(tmp_path, tracker, change))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No answer: ")
    assert tracker.asked == []


def test_a_comment_or_a_start_by_hand_gets_no_answer(tracker: FakeTracker, tmp_path: Path) -> None:
    environ = GITHUB.environ(tmp_path, tracker)
    assert "no new issue" in run_bot({**environ, "GITHUB_EVENT_NAME": "issue_comment"}).stdout
    environ = GITLAB.environ(tmp_path, tracker)
    del environ["TRIGGER_PAYLOAD"]
    assert "no event started this job" in run_bot(environ).stdout
    assert tracker.asked == []


@pytest.mark.parametrize("place", ["headline", "evidence"])
def test_a_hostile_ticket_is_quoted_and_does_nothing(
    place: str, site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    owned = tmp_path / "owned"
    title = f'@everyone {MARKER} "; touch {owned}; echo "$(touch {owned})" #'
    text = HOSTILE if place == "headline" else f"{CERTAIN} @torvalds #1 ``` </details> ![x](y)"
    text = f"{text}\n```\n/close\n::error::x\n\ud800</details>\n"
    done = run_bot(site.environ(tmp_path, tracker, site.saying(text, title)))
    assert done.stdout.startswith("Answered 12: "), done
    assert done.stdout.count("\n") == 1
    (comment,) = tracker.comments
    body = comment["body"] or ""
    assert ("torvalds" in rendered(body)) == (place == "headline")
    assert "torvalds" in body
    assert acting(body) == []
    assert not owned.exists()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_private_leaves(
    lang: str, site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    """Neither in the answer nor in the log of the job, wherever a ticket has it."""
    lines = "".join(f"{line}\n{CERTAIN}; {line}\n" for line, _private in MORE_LINES)
    private = {word for _line, words in MORE_LINES for word in words}
    title = "sparrowhawk: CUDA fails, hf_LkJhGfDsAqWeRtYuIoPzXcVbNm"
    environ = site.environ(tmp_path, tracker, site.saying(f"{lines}{CERTAIN}\n", title))
    done = run_bot({**environ, "GPUCHECK_LANG": lang})
    assert done.stdout.startswith("Answered 12: "), done
    (comment,) = tracker.comments
    shown = "\n".join((comment["body"] or "", done.stdout, done.stderr, *tracker.labels))
    assert [word for word in private if word.lower() in shown.lower()] == []


def rendered(body: str) -> str:
    """Return the answer without its marker and without what stands in it as code."""
    assert body.startswith(MARKER)
    return outside_code(body.removeprefix(MARKER))


def acting(body: str) -> list[str]:
    """Return what would mention, link, show or command something."""
    acts = r"@\w|&#64;|(?<!&)#\d|&#35;|(?<!\\)[<>]|(?<!\\)\]\(|(?<!\\)!\[\w|https?://|(?m:^\s*/\w)"
    return re.findall(acts, rendered(body))


def test_what_acts_would_be_seen() -> None:
    for evil in ("@all", "&#64;all", "#1", "</details>", "![x](y)", "http://x", "\n/close"):
        assert acting(f"{MARKER} so: {evil}"), evil


@pytest.mark.parametrize("status", [403, 404, 500])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_refusal_is_one_sentence(
    method: str, status: int, site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    tracker.refusal = Refusal(method, status)
    done = run_bot({**site.environ(tmp_path, tracker), "GPUCHECK": stub(tmp_path)})
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        rf"{method} /\S+ was refused with {status}: ::error::no way\.\n", done.stderr
    )
    assert tracker.comments == []


def test_after_a_refusal_the_job_can_be_run_again(tracker: FakeTracker, tmp_path: Path) -> None:
    environ = GITLAB.environ(tmp_path, tracker)
    tracker.refusal = Refusal("POST", 500)  # the label is there, the note is not
    assert run_bot(environ).returncode == 1
    tracker.refusal = None
    assert run_bot(environ).returncode == 0
    assert len(tracker.comments) == 1


def test_the_token_goes_to_no_other_server(tracker: FakeTracker, tmp_path: Path) -> None:
    with fake_tracker() as other:
        tracker.refusal = Refusal("GET", 302, b"", f"{other.url}/comments")
        done = run_bot(GITHUB.environ(tmp_path, tracker))
        assert "was refused with 302" in done.stderr
        assert other.asked == []


def test_no_server_no_json_and_no_token_are_one_sentence(
    tracker: FakeTracker, tmp_path: Path
) -> None:
    environ = GITHUB.environ(tmp_path, tracker)
    tracker.refusal = Refusal("GET", 200, b"<html>")
    for change, sentence in (
        ({}, "got a response that is no JSON"),
        ({"GITHUB_API_URL": "http://127.0.0.1:9"}, "got no response"),
        ({"GITHUB_TOKEN": ""}, "GITHUB_TOKEN is not set"),
        ({"GITHUB_TOKEN": "wrong"}, "was refused with 401: Bad credentials"),
        ({"GPUCHECK": str(tmp_path / "none")}, "gpucheck did not run"),
        ({"GITHUB_EVENT_PATH": str(tmp_path / "none")}, "The event cannot be read"),
        ({"GITHUB_EVENT_PATH": sys.executable}, "The event cannot be read"),
    ):
        done = run_bot({**environ, **change})
        assert (done.returncode, done.stdout) == (1, "")
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_gpucheck_that_fails_is_one_sentence(tracker: FakeTracker, tmp_path: Path) -> None:
    failing = put_script(tmp_path / "fails.sh", "echo first >&2; echo '::x::why' >&2; exit 3\n")
    done = run_bot({**GITHUB.environ(tmp_path, tracker), "GPUCHECK": str(failing)})
    assert done.returncode == 1
    assert done.stderr == "gpucheck ended with status 3: ::x::why.\n"


@pytest.mark.parametrize(
    ("owner", "label"),
    [
        ("environment", "gpucheck: environment"),
        ("hardware", "gpucheck: hardware"),
        ("user-code", "gpucheck: user-code"),
        ("unknown", "gpucheck"),
        ("none", "gpucheck"),
        ("a,b\nc", "gpucheck"),
        ("", "gpucheck"),
    ],
)
def test_the_label_names_who_has_to_act(
    owner: str, label: str, site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    environ = site.environ(tmp_path, tracker)
    run_bot({**environ, "GPUCHECK": stub(tmp_path, **({"owner": owner} if owner else {}))})
    assert tracker.labels == [label]


@pytest.mark.parametrize("owner", ["library", "user-code", "code", "other"])
def test_what_is_no_fault_of_the_environment_is_labelled_and_left_to_the_maintainers(
    owner: str, site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    done = run_bot({**site.environ(tmp_path, tracker), "GPUCHECK": stub(tmp_path, owner=owner)})
    assert done.stdout.startswith("Labelled 12: ")
    assert (tracker.labels, tracker.comments) == ([f"gpucheck: {owner}"], [])


def test_labels_have_the_prefix_that_is_wanted_or_there_are_none(
    site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    environ = {**site.environ(tmp_path, tracker), "GPUCHECK": stub(tmp_path, owner="cluster")}
    run_bot({**environ, "GPUCHECK_LABEL": "gpu"})
    assert tracker.labels == ["gpu: cluster"]
    tracker.comments.clear()
    run_bot({**environ, "GPUCHECK_LABEL": ""})
    assert tracker.labels == ["gpu: cluster"]
    assert len(tracker.comments) == 1


def test_gpucheck_does_not_inherit_the_token(
    site: Site, tracker: FakeTracker, tmp_path: Path
) -> None:
    run_bot({**site.environ(tmp_path, tracker), "GPUCHECK": stub(tmp_path)})
    environ = (tmp_path / "environ").read_text()
    assert "PATH=" in environ
    assert TOKEN not in environ
    assert len(tracker.comments) == 1


ENGLISH_WORDS, CHINESE_WORDS = "I have no idea why.", "刚装好驱动训练就跑不起来。请问怎么解决"


@pytest.mark.parametrize(
    ("words", "wanted", "said"),
    [
        (ENGLISH_WORDS, {}, ("Thank you for the report.", "A program wrote this answer")),
        (CHINESE_WORDS, {}, ("感谢反馈。", "自动生成")),
        (CHINESE_WORDS, {"GPUCHECK_LANG": "auto"}, ("感谢反馈。", "自动生成")),
        (ENGLISH_WORDS, {"GPUCHECK_LANG": "zh"}, ("感谢反馈。", "自动生成")),
        (
            CHINESE_WORDS,
            {"GPUCHECK_LANG": "en"},
            ("Thank you for the report.", "A program wrote this answer"),
        ),
    ],
)
def test_the_answer_is_in_the_language_of_the_ticket_or_in_the_wanted_one(
    words: str, wanted: dict[str, str], said: tuple[str, str], tracker: FakeTracker, tmp_path: Path
) -> None:
    saying = GITHUB.saying(f"{words}\n\n{CERTAIN}\n", words)
    run_bot({**GITHUB.environ(tmp_path, tracker, saying), **wanted})
    body = tracker.comments[0]["body"] or ""
    assert body.startswith(f"{MARKER}\n{said[0]}")
    assert said[1] in body


def test_a_dry_run_sends_nothing_and_needs_no_token(tracker: FakeTracker, tmp_path: Path) -> None:
    environ = GITHUB.environ(tmp_path, tracker)
    del environ["GITHUB_TOKEN"]
    done = run_bot(environ, "--dry-run")
    assert done.returncode == 0
    assert done.stdout.startswith("Label: gpucheck")
    assert "(`driver-library-mismatch`)" in done.stdout
    assert tracker.asked == []


def test_a_huge_ticket_is_cut(tracker: FakeTracker, tmp_path: Path) -> None:
    text = "<!--" * 60_000 + "x\n" * 20_000 + CERTAIN
    done = run_bot(GITHUB.environ(tmp_path, tracker, GITHUB.saying(text)))
    assert (done.returncode, done.stdout) == (0, "No answer: the verdict is unknown.\n")
