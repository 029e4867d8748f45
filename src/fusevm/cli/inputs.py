"""What users hand to commands: code, files of code, text and JSON. Every command reads them here, and is told here what
was wrong: one line with the thing, the place and the remedy."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from fusevm.evm.forks import Fork, UnknownFork, fork_named
from fusevm.values import BadValue, to_address

if TYPE_CHECKING:
    from fusevm.abi.artifacts import Artifact

_NOT_HEX = re.compile(r"[^0-9a-fA-F\s]")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character, as JSON may write it
_KEY = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{64}(?![0-9a-fA-F])")
_HIDDEN = "… (32 bytes, not shown: a private key?)"
MAX_SHOWN = 1_000  # characters of an error
HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
MAX_ANALYSED = 1 << 17  # bytes

BYTECODE, YUL, JSON, ASSEMBLY = "bytecode", "Yul", "JSON", "assembly"
_LANGUAGES = {"solidity": "Solidity", "vyper": "Vyper", "yul": YUL, "assembly": ASSEMBLY}
_SUFFIXES = {".sol": "Solidity", ".vy": "Vyper", ".yul": YUL, ".json": JSON}
# What to do with a file that holds something else than a command reads: by what it reads, and what the file holds.
_REMEDIES = {
    (
        BYTECODE,
        "Solidity",
    ): "compile it first and give the artifact, or its hex; `fusevm explore {name}` shows it compiled",
    (
        BYTECODE,
        "Vyper",
    ): "compile it first and give the artifact, or its hex; `fusevm explore {name}` shows it compiled",
    (BYTECODE, YUL): "`fusevm yul compile {name}` makes bytecode of it",
    (BYTECODE, ASSEMBLY): "`fusevm asm {name}` makes bytecode of it",
    (BYTECODE, JSON): "give the code in it as hex; run, trace, optimize and explore read artifacts (.json) as they are",
    (YUL, "Solidity"): "`solc --ir-optimized {name}` makes Yul of it",
    (YUL, "Vyper"): "`fusevm explore {name}` shows Vyper",
    (YUL, JSON): "give the Yul in it; `fusevm yul standard-json` reads solc's JSON input",
    (YUL, BYTECODE): "`fusevm optimize {name}` reads bytecode",
    (ASSEMBLY, "Solidity"): "compile it first; `fusevm explore {name}` shows it compiled",
    (ASSEMBLY, "Vyper"): "compile it first; `fusevm explore {name}` shows it compiled",
    (ASSEMBLY, YUL): "`fusevm yul compile {name}` makes bytecode of it",
    (ASSEMBLY, JSON): "`fusevm disasm` writes the assembly that this reads",
    (JSON, "Solidity"): "compile it first and give the JSON that the build tool wrote",
    (JSON, "Vyper"): "compile it first and give the JSON that the build tool wrote",
    (JSON, YUL): "give a file of JSON; `fusevm yul` has the commands that read Yul",
}


class BadInput(ValueError):
    """One clear line about an input that cannot be read."""


# -- files ----------------------------------------------------------------------------------------------------------


def read_file(name: str | Path, what: str = "a file") -> bytes:
    """The bytes of a file, or of standard input where the name is '-'. `what` says what it should have been."""
    if str(name) == "-":
        return sys.stdin.buffer.read()
    path = Path(name)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"no such file: {name}") from None
    except IsADirectoryError:
        raise BadInput(f"{name or 'the empty name'} is a folder, not {what}") from None
    except (OSError, ValueError) as error:  # ValueError: not a name at all
        raise BadInput(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from None


def write_file(path: Path, text: str, option: str) -> None:
    """`option` is the one that named the file."""
    try:
        path.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{option} {path}: cannot write: {getattr(error, 'strerror', None) or error}") from None


def require_writable(path: Path, option: str) -> None:
    """Before the work whose result goes there."""
    if path.is_dir():
        raise BadInput(f"{option} {path}: cannot write: it is a folder")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{option} {path}: cannot write: the folder {path.parent} does not exist")


def language_in(data: bytes, name: str) -> str | None:
    """Solidity, Vyper, Yul, JSON, assembly or bytecode: by the file's name, else by its first words."""
    from fusevm.evm.opcodes import BY_NAME
    from fusevm.explanation.inputs import language_of

    known = _SUFFIXES.get(Path(name).suffix.lower())
    if known is not None:
        return known
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return BYTECODE
    if re.match(r'\s*(?:\[|\{\s*["}])', text):
        return JSON
    found = _LANGUAGES.get(language_of(text), BYTECODE)
    return found if found != ASSEMBLY or text.split(None, 1)[0].upper() in BY_NAME else None


def explained(problem: str, data: bytes, name: str, wanted: str) -> BadInput:
    """What to say of a file that could not be read as what was wanted: that it holds something else, if it does."""
    if not data.strip():
        return BadInput(f"{name}: empty; {wanted} is needed")
    found = language_in(data, name)
    if (wanted, found) == (JSON, YUL) and not name.endswith(".yul"):  # both begin with a brace
        return BadInput(problem)
    remedy = _REMEDIES.get((wanted, found or ""))
    if remedy is None:
        return BadInput(problem)
    return BadInput(f"{name} is {found}, not {wanted}: {remedy.format(name=name)}")


# -- code -----------------------------------------------------------------------------------------------------------


def read_code(text: str) -> bytes:
    """The bytes meant by hex text, by a file's name (its hex text or its raw bytes), or by '-' for standard input."""
    if text == "-":
        return _from_file(read_file(text), "standard input")
    if _looks_like_a_path(text):
        return _from_file(read_file(text, "a file of code"), text)
    if not text.strip():
        raise BadInput("code is empty: give hex digits, a file, or - for standard input")
    try:
        return parse_hex(text)
    except BadInput as error:
        if set(text.removeprefix("0x")) <= HEX_DIGITS or text.startswith("0x"):
            raise
        raise BadInput(f"{error}, and no such file exists") from None


def parse_json(text: str | bytes, source: str) -> Any:
    from fusevm.abi.artifacts import is_deep

    try:
        written = text.decode("utf-8") if isinstance(text, bytes) else text
        if is_deep(written):
            raise BadInput(f"{source}: nested too deeply")
        found = json.loads(written)
        if _HALF.search(written):
            json.dumps(found, ensure_ascii=False).encode()
        return found
    except json.JSONDecodeError as error:
        raise explained(
            f"{source}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}",
            error.doc.encode(),
            source,
            JSON,
        ) from None
    except UnicodeDecodeError:
        raise BadInput(f"{source}: not text") from None
    except UnicodeEncodeError:
        raise BadInput(f"{source}: a text in it has half of a character (a lone surrogate)") from None
    except RecursionError:
        raise BadInput(f"{source}: nested too deeply") from None
    except BadInput:
        raise
    except ValueError:  # of Python's limit for decimal digits
        raise BadInput(f"{source}: a number in it has more than {sys.get_int_max_str_digits():,} digits") from None


def artifact_from(document: Any, name: str, contract: str | None) -> Artifact:
    """The contract that is meant of an artifact or of a compiler's output. `name` is the file's."""
    from fusevm.abi.artifacts import Artifact, SeveralContracts
    from fusevm.abi.types import BadAbi

    output = document.get("output") if isinstance(document, dict) else None  # of a build info: what the compiler wrote
    if isinstance(document, dict) and "abi" in document and contract == Path(name).stem:
        contract = None  # Foundry's artifacts have their names from the file
    try:
        return Artifact.read(output if isinstance(output, dict) else document, contract)
    except SeveralContracts as error:
        raise BadInput(
            f"{name}: {len(error.names)} contracts with code: say which with --contract: {', '.join(error.names[:20])}"
        ) from None
    except BadAbi as error:
        raise BadInput(f"{name}: {str(error).removeprefix('the artifact: ')}") from None


def parse_hex(text: str, source: str = "code") -> bytes:
    """Hex digits with or without 0x; blanks between them do not count."""
    stripped = text.strip()
    start = 2 if stripped[:2] in ("0x", "0X") else 0
    wrong = _NOT_HEX.search(stripped, start)
    if wrong is not None:
        raise BadInput(f"{source} is not hex: {wrong[0]!r} at position {wrong.start()}")
    digits = "".join(stripped[start:].split())
    if len(digits) % 2:
        raise BadInput(f"{source} has an odd number of hex digits: {len(digits)}")
    return bytes.fromhex(digits)


def _looks_like_a_path(text: str) -> bool:
    """Hex wins over a file of the same name, unless the name has something hex has not."""
    if "/" in text or "\\" in text:
        return True
    try:
        exists = Path(text).exists() and text != ""
    except (OSError, ValueError):  # too long or not a name at all
        return False
    if exists:
        return bool(set(text) - HEX_DIGITS) and not text.startswith("0x")
    return "." in text


def _from_file(data: bytes, source: str) -> bytes:
    if not data.strip():
        raise explained("", data, source, BYTECODE)
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        if Path(source).suffix.lower() in _SUFFIXES:
            raise explained(f"{source} is not hex", data, source, BYTECODE) from None
        return data
    if not text.isprintable() and any(not c.isprintable() and not c.isspace() for c in text):
        return data
    try:
        return parse_hex(text, source)
    except BadInput as error:
        raise explained(str(error), data, source, BYTECODE) from None


# -- for commands: the input, or one line on standard error and exit code 2 -----------------------------------------


def one_line(message: str) -> str:
    """An error as it is shown: one line, not too long, and no private key in it: no word of 32 bytes that was typed."""
    typed = {key.lower() for word in sys.argv[1:] for key in _KEY.findall(word)}
    shown = _KEY.sub(lambda found: _HIDDEN if found[0].lower() in typed else found[0], " ".join(message.split()))
    return shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 200]} … {shown[-200:]}"


def say_error(message: str) -> None:
    typer.echo(f"fusevm: {one_line(message)}".encode("utf-8", "backslashreplace").decode(), err=True)


def quit_with(message: str) -> NoReturn:
    say_error(message)
    raise typer.Exit(2)


def code_or_exit(text: str) -> bytes:
    try:
        return read_code(text)
    except BadInput as error:
        quit_with(str(error))


def code_to_analyse(text: str) -> bytes:
    """As `code_or_exit`, and no more than an analysis can be expected to answer in seconds."""
    code = code_or_exit(text)
    if len(code) > MAX_ANALYSED:
        quit_with(
            f"the code has {len(code):,} bytes; at most {MAX_ANALYSED:,} are analysed (contracts have up to 24,576, "
            "init code 49,152); `fusevm disasm` takes any"
        )
    return code


def fork_or_exit(name: str) -> Fork:
    try:
        return fork_named(name)
    except UnknownFork as error:
        quit_with(str(error))


def address_from(text: str, option: str) -> bytes:
    """An address as typed. What has the size of a private key is refused without being shown."""
    digits = text.strip().removeprefix("0x").removeprefix("0X")
    if _KEY.fullmatch(digits):
        raise BadInput(
            f"{option}: 32 bytes, as a private key or a hash has; give the address, 20 bytes (no key is ever needed)"
        )
    if set(digits) - HEX_DIGITS:
        raise BadInput(f"{option}: {text!r} is not an address: write 0x and 40 hex digits (names are not looked up)")
    try:
        return to_address(text, option)
    except BadValue as error:
        raise BadInput(str(error)) from None


def text_or_exit(source: str) -> str:
    """The text itself, or that of a file of this name."""
    try:
        if source == "-":
            return sys.stdin.read()
        path = Path(source)
        if path.is_file() or (source and path.is_dir()):
            return read_file(path, "a file of text").decode("utf-8")
    except UnicodeDecodeError:
        quit_with(f"cannot read {source}: not text")
    except BadInput as error:
        quit_with(str(error))
    except (OSError, ValueError):  # a program, not a name
        return source
    if len(source.split()) == 1 and set(source) & set("./\\"):  # no word of a program has these
        quit_with(f"no such file: {source}")
    return source
