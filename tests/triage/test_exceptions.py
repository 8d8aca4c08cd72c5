"""The exceptions of a text: their class, message and frames, in whatever form they were pasted."""

from each import each

from gpucheck.ticket.exceptions import Raised, chains, cut_off, raised_in, unlogged
from gpucheck.ticket.intake import read_text

PLAIN = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 12, in main
    step(batch)
  File "/venv/lib/python3.11/site-packages/vllm/engine.py", line 34, in step
    raise KeyError(name)
KeyError: 'lm_head'
"""
NOTEBOOK = """\
---------------------------------------------------------------------------
TypeError                                 Traceback (most recent call last)
Cell In[37], line 1
----> 1 trainer.train()

File ~/env/lib/python3.13/site-packages/trl/trainer.py:2240, in Trainer.train(self, **kwargs)
   2238         hide_progress_bars()
-> 2240     return loop(args)

TypeError: loop() takes 3 positional arguments but 4 were given
"""
FORMS = {
    "plain": PLAIN,
    "ranks": "".join(f"[rank0]: {line}\n" for line in PLAIN.splitlines()),
    "interleaved": "".join(
        f"[rank{rank}]: {line}\n" for line in PLAIN.splitlines() for rank in (0, 1)
    ),
    "actors": "".join(f"(Worker pid=12, ip=10.0.0.1) {line}\n" for line in PLAIN.splitlines()),
    "logged": "".join(
        f"ERROR 01-02 03:04:05 [core.py:341] {line}\n" for line in PLAIN.splitlines()
    ),
    "logged by an actor": "".join(
        f"(EngineCore_0 pid=9) ERROR 01-02 03:04:05 [core.py:341] {line}\n"
        for line in PLAIN.splitlines()
    ),
    "stamped": "".join(
        f"[2025-01-02 03:04:05 TP0] {line}\n" for line in PLAIN.splitlines()
    ),
    "cut off above": "".join(PLAIN.splitlines(keepends=True)[3:]),
    "quoted": "".join(f"> {line}\n" for line in PLAIN.splitlines()),
}  # fmt: skip


def raised(text: str) -> list[Raised]:
    return raised_in(read_text(text.encode()))


@each("form", FORMS)
def test_a_traceback_is_read_whatever_stands_before_its_lines(form: str) -> None:
    (exception,) = raised(FORMS[form])
    assert (exception.exception, exception.message) == ("KeyError", "'lm_head'")
    assert exception.frames[-1].file.endswith("vllm/engine.py")
    assert (exception.frames[-1].line, exception.frames[-1].function) == (34, "step")
    assert not exception.quoted


def test_a_class_that_begins_with_the_mark_of_pytest_keeps_it() -> None:
    (found,) = raised("Traceback (most recent call last):\nEOFError: no input\n")
    assert found.exception == "EOFError"


def test_a_notebook() -> None:
    (exception,) = raised(NOTEBOOK)
    assert exception.exception == "TypeError"
    assert exception.message == "loop() takes 3 positional arguments but 4 were given"
    assert [frame.line for frame in exception.frames] == [1, 2240]


def test_an_exception_within_a_sentence_is_quoted() -> None:
    (exception,) = raised("When I start it I get ValueError: bad mask, and nothing else happens.")
    assert (exception.exception, exception.quoted, exception.frames) == ("ValueError", True, ())


def test_a_ticket_of_one_line_gives_its_last_exception() -> None:
    words = (
        "I train a model with my own data set and follow the tutorial of the docs step by step. "
    )
    line = f"{words * 4}TypeError: first try. {words * 4}RuntimeError: second try {words}"
    (exception,) = raised(line)
    assert exception.exception == "RuntimeError"
    assert exception.message.startswith("second try")


@each(
    "text",
    [
        "Error: listen EADDRINUSE: address already in use",
        "Exception ignored in: <function finalize at 0x7f>\nKeyError: 'x'"[:40],
        "raise ValueError('this is code')",
        "except RuntimeError as error:",
        "AssertionError",
        "the class KeyError is documented here",
    ],
)
def test_what_is_no_exception(text: str) -> None:
    assert raised(text) == []


def test_a_message_of_several_lines_ends_where_another_logger_speaks() -> None:
    text = f"{PLAIN}INFO 01-02 03:04:05 engine.py:1] Avg prompt throughput\n"
    assert raised(text)[0].more == ""
    assert raised(f"{PLAIN}while it loads the head\n")[0].more == "while it loads the head"


def test_exceptions_that_led_to_one_another_are_a_chain() -> None:
    cause = "The above exception was the direct cause of the following exception:"
    second = PLAIN.replace("KeyError: 'lm_head'", "RuntimeError: cannot load")
    text = read_text(f"{PLAIN}\n{cause}\n\n{second}".encode())
    assert [[exception.name for exception in chain] for chain in chains(text, raised_in(text))] == [
        ["KeyError", "RuntimeError"]
    ]
    text = read_text(f"{PLAIN}\nand later\n\n{second}".encode())
    assert len(chains(text, raised_in(text))) == 2


@each(
    ("line", "rest"),
    [
        ("ERROR 01-02 03:04:05 [core.py:341] KeyError: 'x'", "KeyError: 'x'"),
        ("[2025-01-02 03:04:05 TP0] KeyError: 'x'", "KeyError: 'x'"),
        ("KeyError: 'x'", "KeyError: 'x'"),
        ("2025-01-02 03:04:05,123 - ERROR - KeyError: 'x'", "KeyError: 'x'"),
    ],
)
def test_what_a_logger_wrote_before_a_line_is_left_out(line: str, rest: str) -> None:
    assert unlogged(line).strip() == rest


def test_the_last_exception_of_a_log_that_is_full_of_errors_is_found() -> None:
    noise = "".join(f"GET /{number} error: 404, retried\n" for number in range(2000))
    assert [exception.name for exception in raised(noise + PLAIN)] == ["KeyError"]


def test_a_traceback_without_its_end_is_told_from_a_text_without_a_failure() -> None:
    head = "".join(PLAIN.splitlines(keepends=True)[:3])
    assert raised(head) == []
    line = cut_off(read_text(head.encode()))
    assert line is not None
    assert line.number == 1
    assert cut_off(read_text(PLAIN.encode())) is None
    assert cut_off(read_text(b"no traceback at all")) is None


@each(
    ("last", "name"),
    [("assert actual >= least", "AssertionError"), ("raise ValueError(name)", "ValueError")],
)
def test_a_last_statement_names_the_exception_of_a_traceback_that_ends_with_it(
    last: str, name: str
) -> None:
    text = "".join(PLAIN.splitlines(keepends=True)[:4]) + f"    {last}\n```\nprose\n"
    (exception,) = raised(text)
    assert (exception.name, exception.message, exception.frames[-1].function) == (
        name,
        last,
        "step",
    )


def test_a_notebook_names_the_class_above_its_frames() -> None:
    (exception,) = raised(NOTEBOOK.partition("\nTypeError: loop()")[0])
    assert (exception.name, exception.message, len(exception.frames)) == ("TypeError", "", 2)
