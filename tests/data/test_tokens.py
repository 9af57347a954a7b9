"""D10-D14, S11: text to ids and back, for arbitrary text."""

import pickle
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.tokens import Encoding, Tokenizer
from regard.errors import FileFormatError, UserError

TEXTS = [
    "Tom chases Jerry.",
    "Jerry doesn't chase Tom (now).",
    "The cats see <eos> signs, 1,234.5 times!",
    "汤姆追逐杰瑞。",
    "汤姆 看见 了 abc 公园",
    "e\u0301 한국어 👨\u200d👩\u200d👧",
]
KINDS = ["words", "chinese", "characters", "bpe", "unigram"]


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Tokenizer]:
    pytest.importorskip("rjieba")
    return {kind: Tokenizer.train(TEXTS, kind=kind, minimum_frequency=1) for kind in KINDS}


def words(texts: list[str] = TEXTS, **settings: int | str | bool) -> Tokenizer:
    return Tokenizer.train(texts, kind="words", **settings)  # type: ignore[arg-type]


def test_words_by_hand() -> None:
    tokenizer = words()
    encoding = tokenizer.encode("Tom chases Jerry.")
    assert encoding.tokens == ("Tom", "chases", "Jerry", ".")
    assert encoding.offsets == ((0, 3), (4, 10), (11, 16), (16, 17))
    assert tokenizer.pieces(encoding.ids) == ["Tom", "chases", "Jerry", "."]
    assert tokenizer.decode(encoding.ids) == "Tom chases Jerry."


def test_a_rare_word_becomes_its_characters() -> None:
    tokenizer = words(["chase c s e h a", "Tom Tom"], minimum_frequency=2)
    encoding = tokenizer.encode("chase Tom")
    assert encoding.tokens == ("c", "h", "a", "s", "e", "Tom")
    assert encoding.offsets[:2] == ((0, 1), (1, 2))
    assert [tokenizer.vocabulary.pieces[i - 4] for i in encoding.ids][:2] == ["▁c", "h"]
    assert tokenizer.decode(encoding.ids) == "chase Tom"


def test_d12_unknown_characters_keep_their_place() -> None:
    tokenizer = words()
    encoding = tokenizer.encode("Tom 𝄞𝄞 Jerry")
    assert encoding.tokens == ("Tom", "▁", "𝄞", "𝄞", "Jerry")
    assert encoding.ids.count(Tokenizer.UNK) == 2
    assert encoding.offsets == ((0, 3), (3, 4), (4, 5), (5, 6), (7, 12))
    assert tokenizer.decode(encoding.ids) == "Tom \ufffd\ufffd Jerry"


@pytest.mark.parametrize("kind", KINDS)
def test_d12_everything_unknown(kind: str, tokenizers: dict[str, Tokenizer]) -> None:
    tokenizer = tokenizers[kind]
    assert set(tokenizer.encode("ЖЖЖ").ids) <= {Tokenizer.UNK, tokenizer.encode("a ЖЖ").ids[-3]}
    assert "".join(tokenizer.encode("ЖЖЖ").tokens).strip("▁") == "ЖЖЖ"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("typed", ["<pad>", "<bos>", "<eos>", "<unk>", "▁", "<s>", "[UNK]"])
def test_d12_typed_controls_are_text(kind: str, typed: str) -> None:
    if kind == "chinese":
        pytest.importorskip("rjieba")
    tokenizer = Tokenizer.train(["<pad> <bos> <eos> <unk> _ <s> [UNK]"], kind=kind)
    encoding = tokenizer.encode(typed)
    assert min(encoding.ids) >= 4
    assert tokenizer.decode(encoding.ids) == typed.replace("▁", "_")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_d13_training_texts_come_back(
    kind: str, text: str, tokenizers: dict[str, Tokenizer]
) -> None:
    tokenizer = tokenizers[kind]
    encoding = tokenizer.encode(text)
    assert Tokenizer.UNK not in encoding.ids
    assert tokenizer.decode(encoding.ids) == tokenizer.normalise(text)


@pytest.mark.parametrize("kind", KINDS)
@given(
    text=st.text(st.characters(codec=None), max_size=40)
    | st.text(st.sampled_from("".join(TEXTS) + "\u200b\r\n\t ▁\ud800"), max_size=40)
)
def test_d10_d11_any_text_round_trips_and_keeps_offsets(
    kind: str, tokenizers: dict[str, Tokenizer], text: str
) -> None:
    tokenizer = tokenizers[kind]
    encoding = tokenizer.encode(text)
    decoded, places = tokenizer.decode_offsets(encoding.ids)
    expected = tokenizer.normalise(text)
    assert len(decoded) == len(expected)
    assert all(b in (a, "\ufffd") for a, b in zip(expected, decoded, strict=True))
    if Tokenizer.UNK not in encoding.ids:
        assert decoded == expected
    check_offsets(text, encoding)
    assert len(places) == len(encoding.ids)
    assert "".join(decoded[start:end] for start, end in places) == decoded.replace(" ", "")
    decoded.encode("utf-8")


def check_offsets(text: str, encoding: Encoding) -> None:
    assert len(encoding.ids) == len(encoding.tokens) == len(encoding.offsets)
    last = (0, 0)
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        assert 0 <= start <= end <= len(text)
        assert start >= last[0]
        assert end >= last[1]
        last = (start, end)
        if text.isascii() and text.isprintable() and token != "▁":
            assert text[start:end] == token


@pytest.mark.parametrize(
    ("text", "token", "source"),
    [
        ("un cafe\u0301 noir", "café", "cafe\u0301"),
        ("\uff34\uff4f\uff4d!", "Tom", "\uff34\uff4f\uff4d"),
        ("x 👨\u200d👩\u200d👧 y", "👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("Jerry\r\nTom", "Tom", "Tom"),
        ("To\u200bm", "Tom", "To\u200bm"),
        ("\ufeffTom", "Tom", "Tom"),
    ],
)
def test_d10_highlights_lead_to_the_original(text: str, token: str, source: str) -> None:
    tokenizer = words(["café Tom Jerry un noir x y ! 👨\u200d👩\u200d👧"], normalisation="nfkc")
    encoding = tokenizer.encode(text)
    start, end = encoding.offsets[encoding.tokens.index(token)]
    assert text[start:end] == source


def test_no_byte_order_mark_in_the_vocabulary() -> None:
    """D1: even where a reader let one through."""
    assert not any("\ufeff" in piece for piece in words(["\ufeffTom"]).vocabulary.pieces)


def test_a_known_word_after_a_bracket_or_a_space() -> None:
    tokenizer = words(["(now"])
    assert tokenizer.encode("now").tokens == ("▁", "now")
    assert tokenizer.decode(tokenizer.encode("now (now").ids) == "now (now"


def test_blank_text_is_empty() -> None:
    """D6."""
    assert words().encode(" \n ") == Encoding([], (), ())
    assert words().decode([]) == ""


def test_decode_leaves_controls_out_and_checks_ids() -> None:
    tokenizer = words()
    tom = tokenizer.encode("Tom").ids
    assert tokenizer.decode([1, *tom, 2, 0, 0]) == "Tom"
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert tokenizer.decode_offsets([1, *tom, *tom, 2])[1] == [(0, 0), (0, 3), (4, 7), (7, 7)]
    for wrong in (-1, tokenizer.size):
        with pytest.raises(UserError, match=f"got {wrong}"):
            tokenizer.decode([wrong])


@pytest.mark.parametrize("kind", KINDS)
def test_saved_tokenizers_are_the_same(
    kind: str, tokenizers: dict[str, Tokenizer], tmp_path: Path
) -> None:
    tokenizer = tokenizers[kind]
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    sent = pickle.loads(pickle.dumps(tokenizer))
    assert tokenizer.sha256 == again.sha256 == sent.sha256
    for text in TEXTS:
        assert again.encode(text) == tokenizer.encode(text) == sent.encode(text)


def test_d14_pickles_and_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "vocab.pkl"
    file.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(FileFormatError, match="never loads pickles"):
        Tokenizer.load(file)
    file.write_text("!!python/object/apply:os.system [ls]")
    with pytest.raises(FileFormatError, match=r"vocab\.pkl: tokenizer must be JSON"):
        Tokenizer.load(file)
    for missing in (tmp_path, tmp_path / "none.json"):
        with pytest.raises(UserError, match="cannot be read"):
            Tokenizer.load(missing)


def test_settings_are_checked() -> None:
    with pytest.raises(UserError, match="did you mean 'words'"):
        Tokenizer.train(["a"], kind="word")
    with pytest.raises(UserError, match="got one string"):
        Tokenizer.train("abc", kind="words")
    with pytest.raises(UserError, match="minimum_frequency must be at least 1; got 0"):
        words(minimum_frequency=0)


def test_lowercase_keeps_the_original_offsets() -> None:
    encoding = words(["tom"], lowercase=True).encode("TOM")
    assert encoding == Encoding(encoding.ids, ("tom",), ((0, 3),))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "unit", ["<", " ", "7", "1,", "a", "a'", "追", "汤姆", "e\u0301", "\u200d"]
)
def test_s11_fifty_kilobytes_take_no_time(
    kind: str, unit: str, tokenizers: dict[str, Tokenizer]
) -> None:
    text = unit * (50_000 // len(unit.encode()))
    tokenizers[kind].encode("warm")
    times = []
    for _ in range(5):
        start = time.process_time()
        tokenizers[kind].encode(text)
        times.append(time.process_time() - start)
    assert min(times) < 0.2


def test_words_stay_whole_where_that_is_asked() -> None:
    tokenizer = Tokenizer.train(["Tom sees Jerry."], kind="words")
    found = tokenizer.encode("Tom  likes (Jerry).", whole=True)
    assert found.tokens == ("Tom", "likes", "(", "Jerry", ")", ".")
    assert found.offsets == ((0, 3), (5, 10), (11, 12), (12, 17), (17, 18), (18, 19))
    assert [i == Tokenizer.UNK for i in found.ids] == [False, True, True, False, True, False]
    assert len(tokenizer.encode("Tom likes").ids) > 2
