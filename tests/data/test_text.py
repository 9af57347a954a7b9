"""D1-D8, D9 (reading), D21: files of text as people have them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.text import Overlap, Pairs, overlap, read_lines, read_parallel, read_tsv
from regard.errors import DataError, UserError


def write(folder: Path, content: bytes | str, name: str = "a.txt") -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"\xef\xbb\xbfTom\nJerry\n", ["Tom", "Jerry"]),  # D1
        (b"Tom\r\nJerry\r\n", ["Tom", "Jerry"]),  # D3
        (b"a\rb\r\r\nc", ["a b ", "c"]),  # D3
        ("a\u2028b\u0085c\x0bd\x0ce\x1cf\n".encode(), ["a\u2028b\u0085c\x0bd\x0ce\x1cf"]),  # D4
        (b"", []),
        (b"\n", [""]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\n ", ["a", " "]),
    ],
)
def test_d1_d3_d4_lines(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    assert read_lines(write(tmp_path, content)) == lines
    assert read_lines(write(tmp_path, content), encoding="utf-8") == lines


@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"))))
def test_d4_any_lines_come_back(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    file = write(tmp_path_factory.mktemp("d4"), "\ufeff" + "".join(f"{x}\n" for x in lines))
    assert read_lines(file) == lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"abc\nd\xe9f\n", r"a\.txt:2: text must be utf-8; got .*xe9' at byte 5\. Save"),
        (b"\xef\xbb\xbfabc\nd\xe9f\n", r"a\.txt:2: .* at byte 8\."),
        ("汤姆\n".encode("gb18030"), r"a\.txt:1: .* at byte 0\. .*gb18030"),
        ("a\nb".encode("utf-16"), r"a\.txt:1: .*UTF-16 at byte 0.*utf-16"),
        ("a\nb".encode("utf-32"), r"a\.txt:1: .*UTF-32 at byte 0"),
        ("ab\ncd".encode("utf-16-le"), r"a\.txt:1: text must hold no NUL"),
        (b"a\nb\0c\n", r"a\.txt:2: text must hold no NUL"),  # D8
        (b"ok\n\xed\xa0\x80\n", r"a\.txt:2: "),  # D11: a surrogate in UTF-8
    ],
)
def test_d2_other_encodings_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_lines(write(tmp_path, content))
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


def test_d2_a_named_encoding_is_used(tmp_path: Path) -> None:
    assert read_lines(write(tmp_path, "汤姆\n猫".encode("utf-16")), encoding="utf-16") == [
        "汤姆",
        "猫",
    ]
    assert read_lines(write(tmp_path, b"d\xe9f"), encoding="latin-1") == ["déf"]
    for wrong in ("no-such", "hex"):
        with pytest.raises(UserError, match="encoding must be"):
            read_lines(write(tmp_path, b"a"), encoding=wrong)
    with pytest.raises(DataError, match="text must be utf-16"):
        read_lines(write(tmp_path, b"abc"), encoding="utf-16")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, message in (
        (tmp_path, "it is a folder"),
        (tmp_path / "pipe", "it is a pipe"),
        (Path("/dev/zero"), "it is a device"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "a\0b", "cannot be read"),
    ):
        with pytest.raises(DataError, match=message):
            read_lines(path)


def test_d7_size_is_bounded_and_one_long_line_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, b"a" * 10_000_000)
    assert [len(line) for line in read_lines(file)] == [10_000_000]
    with pytest.raises(DataError, match="at most 999 bytes; got 10000000"):
        read_lines(file, largest=999)


def test_parallel_files(tmp_path: Path) -> None:
    pairs = read_parallel(
        write(tmp_path, "Tom\n\n Jerry\nx\n \n", "en"),
        write(tmp_path, "汤姆\n猫\n杰瑞\n\u200b\n\n", "zh"),
    )
    assert (pairs.sources, pairs.targets) == (["Tom", " Jerry"], ["汤姆", "杰瑞"])
    assert (pairs.dropped_empty, pairs.dropped_long, len(pairs)) == (3, 0, 2)  # D6
    assert pairs.where(1) == f"{tmp_path / 'en'}:3"


def test_d3_hash_does_not_depend_on_line_ends(tmp_path: Path) -> None:
    hashes = {
        read_parallel(write(tmp_path, en, "en"), write(tmp_path, "汤姆\n杰瑞", "zh")).sha256
        for en in ("Tom\nJerry\n", "Tom\r\nJerry\r\n", "\ufeffTom\nJerry")
    }
    assert len(hashes) == 1


@pytest.mark.parametrize("missing", [0, 7, 40, 99])
def test_d5_unequal_counts_say_where(tmp_path: Path, missing: int) -> None:
    sources = ["word " * (1 + (7 * i) % 13) for i in range(100)]
    targets = ["字" * (1 + (7 * i) % 13) for i in range(100)]
    del targets[missing]
    files = (write(tmp_path, "\n".join(x), n) for x, n in ((sources, "en"), (targets, "zh")))
    with pytest.raises(DataError, match=rf"got 100 and 99 .* part at line {missing + 1}\."):
        read_parallel(*files)


def test_d5_without_a_suspicion(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"got 3 and 2 in \S+zh\. Compare"):
        read_parallel(write(tmp_path, "a\nb\nc", "en"), write(tmp_path, "d\ne", "zh"))
    with pytest.raises(DataError, match="got 0 and 1"):
        read_parallel(write(tmp_path, "", "en"), write(tmp_path, "d", "zh"))


def test_d7_long_pairs_are_counted(tmp_path: Path) -> None:
    file = write(tmp_path, f"a\tb\n{'a ' * 100_000}\tc\n")
    pairs = read_tsv(file)
    assert (pairs.sources, pairs.dropped_long) == (["a"], 1)
    with pytest.raises(UserError, match="max_characters must be at least 1; got 0"):
        read_tsv(file, max_characters=0)


def test_d8_quotes_are_text(tmp_path: Path) -> None:
    long = "x" * 131_073  # one more than the csv module takes
    pairs = read_tsv(write(tmp_path, f'"Hi\t他说\nb"\t"c"\n{long}\td\n'), max_characters=200_000)
    assert pairs.sources == ['"Hi', 'b"', long]
    assert pairs.targets == ["他说", '"c"', "d"]


def test_tatoeba_columns(tmp_path: Path) -> None:
    pairs = read_tsv(write(tmp_path, "\ufeffHi.\t嗨。\tCC-BY\r\n\r\nRun.\t跑。\tCC-BY\r\n"))
    assert (pairs.sources, pairs.targets) == (["Hi.", "Run."], ["嗨。", "跑。"])
    assert (pairs.where(1), pairs.dropped_empty) == (f"{tmp_path / 'a.txt'}:3", 1)


def test_columns_by_name(tmp_path: Path) -> None:
    file = write(tmp_path, "id\ten\tzh\n1\tTom\t汤姆\n")
    pairs = read_tsv(file, source_column="zh", target_column="en")
    assert (pairs.sources, pairs.targets) == (["汤姆"], ["Tom"])
    assert read_tsv(file, source_column=1, target_column=2, header=True).sources == ["Tom"]


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("a\tb\nc\n", (0, 1), r"a\.txt:2: row must have 2 columns .* got 1\."),
        ("a\tb\nc\td\te\n", (0, 1), r"a\.txt:2: row must have 2 columns .* got 3\."),
        ("a b\n", (0, 1), r"a\.txt:1: column must be from 0 to 0; got 1 .* tabs"),
        ("a\tb\n", (-1, 1), "got -1"),
        ("a\tb\n", (1, 1), "must differ"),
        ("en\ten\n", ("en", 1), r"a\.txt:1: column 'en' must stand once .* got 2 times"),
        ("english\tzh\n", ("englsh", "zh"), r"got 0 times; did you mean 'english'\?"),
        ("en\tzh\n", ("en", "zh"), "at least one pair; got 0"),
        ("", (0, 1), "at least one row; got 0"),
    ],
)
def test_d9_wrong_tables(
    tmp_path: Path, content: str, columns: tuple[int | str, int | str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_tsv(write(tmp_path, content), source_column=columns[0], target_column=columns[1])


def test_d6_nothing_left_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="got 0 \\(2 with a blank side"):
        read_tsv(write(tmp_path, "a\t \n\tb\n"))


def test_d21_overlap_counts() -> None:
    def pairs(*rows: tuple[str, str]) -> Pairs:
        return Pairs([s for s, _ in rows], [t for _, t in rows], "f", [1] * len(rows), 0, 0, "")

    train = pairs(("Tom", "汤姆"), ("caf\u00e9", "咖啡"))
    test = pairs(("Tom ", "汤姆"), ("cafe\u0301", "店"), ("x", "咖啡"), ("y", "z"))
    assert overlap(train, test) == Overlap(pairs=1, sources=2, targets=2, total=4)
