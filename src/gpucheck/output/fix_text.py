"""The fixes of a finding on a terminal, for a machine, a pre-flight and a text alike."""

from gpucheck.findings.form import Finding
from gpucheck.language import say
from gpucheck.output.fix_words import THEN, blocks, caution, label, with_colon
from gpucheck.output.layout import Page
from gpucheck.output.words import clean

_LONGEST_WORDS, _LONGEST_COMMAND = 1000, 10_000


def show_fixes(page: Page, finding: Finding, *, verify: bool = True) -> None:
    """Write the fixes of a finding, with commands ready to copy, and how to verify each."""
    for number, fix in enumerate(finding.fixes, start=1):
        lead = with_colon(label(fix, number, len(finding.fixes)))
        page.words(clean(fix.text, _LONGEST_WORDS), lead=lead, indent=2, hang=4)
        if fix.cautions:
            words = clean(caution(fix), _LONGEST_WORDS)
            page.words(words, lead=with_colon(say("Caution")), indent=4)
        for at, commands in enumerate(blocks(fix)):
            if at:
                page.words(THEN, indent=4)
            for command in commands:
                page.verbatim(clean(command, _LONGEST_COMMAND), indent=6)
        if verify and fix.verify:
            page.verbatim(clean(fix.verify), lead=with_colon(say("Verify")), indent=4)
