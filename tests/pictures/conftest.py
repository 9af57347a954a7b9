import numpy as np
import pytest

from regard.pictures import Document, Map, Passage, Picture, Record, Text, Token
from regard.pictures.raster import write_png

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)",
    "javascript:alert(1)",
    "&lt;script&gt;",
    "<iframe srcdoc='<script>1</script>'>",
    "</title><script>alert(1)</script>",
    "</style><style>*{display:none}</style>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "\x1b]0;title\x07\x1b[31m",
    "\x00\x0b\x7f\x9b31m",
    "\ud800<b>\udfff",
    "\u202e\u2066abc",
    "\u2028alert(1)\u2029",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
)
MIXED = (
    "Tom",
    "汤姆",
    "طارد",
    "שלום",
    "e\u0301te\u0301",
    "👨‍👩‍👧",
    "🇩🇪",
    "अनुच्छेद",
    "\u0301",
    "ﾊﾝｶｸ",
    "",
    " ",
    "\t\n",
    "\x1b[2J",
)


def spaced(words, language=None):
    """Make a text of words between spaces."""
    tokens, start = [], 0
    for word in words:
        tokens.append(Token(word, start, start + len(word)))
        start += len(word) + 1
    return Text(" ".join(words), tuple(tokens), language)


def make_record(read, written, *, count=1, seed=0):
    """Make a record with random weights whose rows sum to one."""
    generator = np.random.default_rng(seed)
    maps = []
    for number in range(count):
        weights = generator.random((len(written), len(read))) + 1e-3
        maps.append(Map(f"head {number + 1}", weights / weights.sum(axis=1, keepdims=True)))
    return Record("translation", spaced(read), spaced(written), tuple(maps))


def make_picture(rows, columns, **changes):
    """Make a picture of a small pattern: 48 pixels for each cell, 12 of them in the copy."""
    width, height = 12 * columns, 12 * rows
    levels = (np.add.outer(np.arange(height), np.arange(width)) % 7).astype(np.uint8)
    palette = np.array([(30 * i, 90, 200 - 20 * i, 255) for i in range(7)], dtype=np.uint8)
    values = {
        "width": 4 * width,
        "height": 4 * height,
        "rows": rows,
        "columns": columns,
        "data": write_png(levels, palette),
        "media_type": "image/png",
        "name": "dog.jpg",
    }
    return Picture(**(values | changes))


def make_caption(words, rows=2, columns=3, *, weights=None, seed=0, **changes):
    """Make a record of a picture: random weights whose rows sum to one where none are given."""
    picture = make_picture(rows, columns, **changes)
    if weights is None:
        weights = np.random.default_rng(seed).dirichlet([0.2] * picture.cells, len(words))
    weights = np.reshape(weights, (len(words), picture.cells))
    return Record("captioning", picture, spaced(words), (Map("attention", weights),))


def make_labels(picture, labels, weights, **details):
    """Make a record of a picture that was classified."""
    tokens, start = [], 0
    for label in labels:
        tokens.append(Token(label, start, start + len(label)))
        start += len(label) + 2
    written = Text(", ".join(labels), tuple(tokens))
    return Record("image classification", picture, written, (Map("cells", weights),), details)


@pytest.fixture(scope="session")
def labels_of():
    """Return the maker of records of pictures that were classified."""
    return make_labels


@pytest.fixture(scope="session")
def dog():
    """A brown dog: six cells and a sentinel, weights that are easy to check by eye."""
    weights = [
        [0.7, 0.1, 0.1, 0.1, 0.0, 0.0, 0.0],
        [0.0, 0.05, 0.05, 0.0, 0.6, 0.3, 0.0],
        [0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.7],
    ]
    return make_caption(["a", "brown", "dog"], weights=weights, sentinel=True)


@pytest.fixture(scope="session")
def picture_of():
    """Return the maker of pictures."""
    return make_picture


@pytest.fixture(scope="session")
def caption_of():
    """Return the maker of records of pictures."""
    return make_caption


@pytest.fixture(scope="session")
def chase():
    """Tom chases Jerry: weights that are easy to check by eye."""
    written = Text(
        "汤姆追逐杰瑞", (Token("汤姆", 0, 2), Token("追逐", 2, 4), Token("杰瑞", 4, 6)), "zh"
    )
    weights = [[0.95, 0.03, 0.02], [0.04, 0.931, 0.029], [0.01, 0.06, 0.93]]
    return Record(
        "translation",
        spaced(["Tom", "chases", "Jerry"], "en"),
        written,
        (Map("attention", weights),),
        {"score": -0.25, "model": "en-zh", "beam": 4, "note": None},
    )


def make_document(sentences, label="quality", *, weights=None, words=None, details=None, seed=0):
    """Make a record of a document: sentences of words with a space between all of them."""
    generator = np.random.default_rng(seed)
    texts, tokens, passages = [], [], []
    for sentence in sentences:
        start = len(" ".join(texts)) + bool(texts)
        first = len(tokens)
        place = start
        for word in sentence:
            tokens.append(Token(word, place, place + len(word)))
            place += len(word) + 1
        texts.append(" ".join(sentence))
        passages.append(Passage(start, start + len(texts[-1]), first, len(tokens)))
    if weights is None:
        weights = generator.dirichlet([0.3] * len(sentences))
    if words is None:
        words = [generator.dirichlet([0.5] * len(s)) if s else [] for s in sentences]
    return Record(
        "classification",
        Document(" ".join(texts), tuple(tokens), "en", tuple(passages)),
        Text(label, (Token(label, 0, len(label)),) if label else ()),
        (Map("words", np.reshape(np.concatenate([*words, []]), (1, len(tokens)))),),
        details or {"probability": 0.98},
        (Map("sentences", np.reshape(weights, (1, len(sentences)))),),
    )


@pytest.fixture(scope="session")
def document_of():
    """Return the maker of records of documents."""
    return make_document


@pytest.fixture(scope="session")
def letter():
    """A document of three sentences, one without words: weights that are easy to check by eye."""
    sentences = [["It", "is", "hot"], [], ["The", "cup", "broke", "!"]]
    words = [[0.2, 0.2, 0.6], [], [0.05, 0.1, 0.8, 0.05]]
    return make_document(sentences, weights=[0.1, 0.0, 0.9], words=words)


@pytest.fixture(scope="session")
def record_of():
    """Return the maker of random records."""
    return make_record


@pytest.fixture(scope="session")
def hostile():
    """Return texts that try to be more than text."""
    return HOSTILE


@pytest.fixture(scope="session")
def mixed():
    """Return tokens of every width."""
    return MIXED
