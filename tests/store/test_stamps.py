"""Stamps that others hold: whatever form they come in, they show whether a register is still the one that it was.

`stamps/` has a register of five lines, and stamps of its second: the line to publish, the request of it, the answer of
a time authority (made and verified by OpenSSL 3.0, `openssl ts`), and a proof of OpenTimestamps (by its own library).
"""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ablab.errors import UserError
from ablab.store.chain import Chain
from ablab.store.register import ORIGIN, Register, line_digest
from ablab.store.stamps import held_stamps, imprint_of, line_of, request_of, write_stamp

PLACE = Path(__file__).parent / "stamps"
STAMP = "2:e26f903130a12eec"
FILES = ("norms.stamp", "norms.tsr", "norms.stamp.ots")


def rechained(content: bytes, change) -> bytes:
    """The register after a change of its entries, each with the digest of the line before: ten lines for a forger."""
    entries = [json.loads(line) for line in content.splitlines()]
    change(entries)
    before, lines = ORIGIN, []
    for entry in entries:
        lines.append(json.dumps({**entry, "before": before}, separators=(",", ":"), ensure_ascii=False).encode())
        before = line_digest(lines[-1])
    return b"".join(line + b"\n" for line in lines)


def forged(folder: Path, change) -> Chain:
    (folder / "register.jsonl").write_bytes(rechained((PLACE / "register.jsonl").read_bytes(), change))
    return Chain.of(folder)


@pytest.mark.parametrize("file", FILES)
def test_a_stamp_in_any_form_is_found_in_the_register_that_it_is_of(file, tmp_path):
    (stamp,) = held_stamps(str(PLACE / file))
    assert stamp.line_in(Chain.of(PLACE)) == 2
    assert stamp.line_in(forged(tmp_path, lambda entries: entries.pop())) == 2  # what came later may be another
    for change in (
        lambda entries: entries[1].update(digest="f" * 16),
        lambda entries: entries[0].update(at="2026-10-01T12:00:00Z"),
        lambda entries: entries.insert(1, dict(entries[1], study="other")),
        lambda entries: entries.clear(),
    ):
        chain = forged(tmp_path, change)
        assert (chain.broken, stamp.line_in(chain)) == ([], None)


@pytest.mark.parametrize("typed", [STAMP, f"register {STAMP}", f"Ablab-Register: {STAMP}", f" {STAMP}\n"])
def test_a_stamp_can_be_typed_as_it_is_printed(typed):
    (stamp,) = held_stamps(typed)
    assert (stamp.stamp, stamp.line_in(Chain.of(PLACE)), stamp.unchecked) == (STAMP, 2, "")


def test_the_answer_of_an_authority_says_when_and_what_was_not_checked():
    (stamp,) = held_stamps(str(PLACE / "norms.tsr"))
    assert stamp.imprint == imprint_of(STAMP)
    assert f"{PLACE / 'norms.tsr'}, of a time authority, which says 2026-11-26 01:37:" in stamp.said
    line = PLACE / "norms.stamp"
    assert stamp.unchecked == f"openssl ts -verify -data {line} -in {PLACE / 'norms.tsr'} -CAfile <its certificate>"
    (proof,) = held_stamps(str(PLACE / "norms.stamp.ots"))
    assert proof.unchecked == f"ots verify -f {line} {PLACE / 'norms.stamp.ots'}"


def test_the_request_is_that_of_openssl(tmp_path):
    """`openssl ts -query -data norms.stamp -sha256 -cert -no_nonce`."""
    imprint = "7808d66ddb7849601ed2daed0119781229c85b0be36d6aaf33a17c386674bb51"
    assert request_of(STAMP).hex() == f"30390201013031300d060960864801650304020105000420{imprint}0101ff"
    assert request_of(STAMP) == (PLACE / "norms.tsq").read_bytes()
    line, request = write_stamp(tmp_path / "norms.zip", STAMP)
    assert (line.read_text(), line.name) == (line_of(STAMP), "norms.stamp")
    assert (request.read_bytes(), request.name) == (request_of(STAMP), "norms.tsq")


def test_a_text_has_all_its_stamps(tmp_path):
    digest = Chain.of(PLACE).digests[3]
    text = f"Table 1\n\nAblab-Register: {STAMP}\nregister 4:{digest}, at 12:34:56, ff{STAMP}, {STAMP}0, 0{STAMP}\n"
    (tmp_path / "log.txt").write_text(f"{text}again {STAMP}")
    assert [stamp.stamp for stamp in held_stamps(str(tmp_path / "log.txt"))] == [STAMP, f"4:{digest}"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no stamp, and no file that can be read; allowed: a stamp such as 57:3f9a1c0d2b4e5f60, or a file"),
        (b"", "there is no stamp in it; allowed: text, .tsr of RFC 3161, .ots, with SHA-256"),
        (b"57:3f9a1c0d2b4e5f6", "there is no stamp in it"),
        (b"\x00OpenTimestamps\x00\x00Proof\x00\xbf\x89\xe2\xe8\x84\xe8\x92\x94\x01\x02" + 20 * b"x", "no stamp in it"),
        (b"\x00OpenTimestamps\x00\x00Proof\x00\xbf\x89\xe2\xe8\x84\xe8\x92\x94\x01\x08" + 31 * b"x", "no stamp in it"),
        ((PLACE / "norms.tsq").read_bytes(), "a request to a time authority; allowed: its answer"),
        (bytes(range(256)), "there is no stamp in it"),
    ],
)
def test_what_has_no_stamp_is_refused(content, said, tmp_path):
    path = tmp_path / "some"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as error:
        held_stamps(str(path))
    assert str(error.value).startswith(f"stamp={path}: ")
    assert said in str(error.value)
    with pytest.raises(UserError, match="no stamp, and no file that can be read"):
        held_stamps(str(tmp_path))


@given(kept=st.integers(1, 4), changed=st.integers(0, 4))
def test_a_stamp_holds_for_a_register_made_anew_only_where_nothing_before_it_changed(kept, changed):
    stamp = Chain.of(PLACE).up_to(kept).stamp
    with tempfile.TemporaryDirectory() as folder:
        again = forged(Path(folder), lambda entries: entries[changed].update(at="2027-01-01T00:00:00Z"))
        assert again.broken == []
        assert again.bears(stamp) == (changed >= kept)


def test_a_register_up_to_a_line_is_the_one_that_was(tmp_path):
    stamps = []
    for number in range(4):
        Register(tmp_path).append("written", run=f"r{number}", file="record.json", digest=f"{number:016x}")
        stamps.append((Chain.of(tmp_path).stamp, Chain.of(tmp_path).ended))
    for stamp, ended in stamps:
        then = Chain.of(tmp_path).up_to(int(stamp.partition(":")[0]))
        assert (then.stamp, then.ended) == (stamp, ended)
