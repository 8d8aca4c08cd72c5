"""Whether the libraries of nvidia-* wheels have their original content (``-v``)."""

from gpucheck.facts.request import Request
from gpucheck.facts.torch import AlteredLibrary, Interpreter, NvidiaWheels, WheelHashes
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import name
from gpucheck.probes.nvidia_wheels import nvidia_wheels
from gpucheck.probes.reading.dist_info import RecordedFile, dist_infos, recorded_libraries

# Seconds; the request ends it earlier (10 s with -v), and no probe has more than 30.
DEADLINE = 25.0
LANE = "target"

_ALGORITHM = "sha256="
_DIGEST_BYTES = 32  # SHA-256


def collect(
    host: Host, request: Request, interpreter: Interpreter, wheels: NvidiaWheels
) -> WheelHashes:
    """Hash the libraries whose sizes match the record, the small ones first."""
    if not request.hash_seconds:
        return WheelHashes(problems={"*": say("hashes are compared only with -v")})
    if interpreter.sys_path is None or wheels.damaged is None:
        why = wheels.problem("damaged") or say("the target interpreter is unknown")
        return WheelHashes(problems={"*": why})
    infos = nvidia_wheels(dist_infos(host, interpreter.sys_path))
    claims: dict[str, list[RecordedFile]] = {}
    for info in infos:
        for recorded in recorded_libraries(host, info).value or ():
            claims.setdefault(recorded.path, []).append(recorded)
    for damaged in wheels.damaged:
        claims.pop(damaged.path or "", None)
    return _compared(host, claims, request.hash_seconds)


def _compared(host: Host, claims: dict[str, list[RecordedFile]], seconds: float) -> WheelHashes:
    """Compare each file with the hashes of all wheels that contain it."""
    end = host.clock() + seconds
    altered: list[AlteredLibrary] = []
    problems: list[str] = []
    compared = 0
    for path, owners in sorted(claims.items(), key=lambda claim: claim[1][-1].size):
        wanted = [_hexadecimal(owner.hash) for owner in owners]
        left = end - host.clock()
        if left <= 0 or not all(wanted):
            why = say("the time is over") if left <= 0 else say("no SHA-256 is recorded")
            problems.append(say("{source}: {why}", source=name(path), why=why))
            continue
        answer = host.sha256(path, left)
        if answer.value is None:
            problems.append(say("{source}: {why}", source=name(path), why=answer.problem))
            continue
        compared += 1
        if answer.value not in wanted:
            altered.append(_altered(owners[-1], answer.value))
    return WheelHashes(
        altered=altered,
        compared=compared,
        left_out=_left_out(problems),
        sources={"*": say("the RECORD files of the wheels, and the contents of their libraries")},
    )


def _left_out(problems: list[str]) -> str:
    if not problems:
        return ""
    return say("{count} left out, such as {one}", count=len(problems), one=problems[0])


def _altered(recorded: RecordedFile, found: str) -> AlteredLibrary:
    return AlteredLibrary(
        project=recorded.info.project,
        version=recorded.info.version,
        library=name(recorded.path),
        path=recorded.path,
        sha256=found,
        sources={"*": recorded.path},
    )


def _hexadecimal(hashed: str) -> str:
    """Return the SHA-256 of a RECORD in hexadecimal digits; "" for anything else."""
    import base64  # noqa: PLC0415  # with -v only
    import binascii  # noqa: PLC0415

    if not hashed.startswith(_ALGORITHM):
        return ""
    try:
        digest = base64.urlsafe_b64decode(hashed[len(_ALGORITHM) :] + "=")
    except (binascii.Error, ValueError):
        return ""
    return digest.hex() if len(digest) == _DIGEST_BYTES else ""
