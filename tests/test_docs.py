"""The pages: links lead somewhere, the READMEs say the same, examples run, tables are true."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from regard.attention import SCORES, SELECTIONS, TERMS, Attention, Traits, scores
from regard.attention.building import sizes_of
from regard.attention.parts import Score, Selection
from regard.attention.pooling import POOLINGS
from regard.attention.presets import PRESETS
from regard.errors import MechanismError
from regard.testing import CHECKS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted(DOCS.glob("*.md"))]
RUN = [
    PAGES[0],
    DOCS / "design.md",
    DOCS / "mechanisms.md",
    DOCS / "conformance.md",
    DOCS / "memory.md",
    DOCS / "insert.md",
]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
SIZES = {"query_dim": 4, "key_dim": 4, "hidden_dim": 3}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(text_of(page)) if kind == language]


def anchors(page: Path) -> set[str]:
    """Name the headings as GitHub does, as far as these pages need it."""
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", BLOCK.sub("", text_of(page)))
    missing = []
    for link, anchor in links:
        if "//" in link:
            continue
        target = page.parent / link if link else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(f"{link}#{anchor}")
    assert not missing


def test_the_readmes_are_twins() -> None:
    english, chinese = (BLOCK.findall(text_of(page)) for page in PAGES[:2])
    assert english == chinese
    levels = [re.findall(r"^#+ ", text_of(page), re.M) for page in PAGES[:2]]
    assert levels[0] == levels[1]
    links = [re.findall(r"\]\((?!README)([^)]+)\)", text_of(page)) for page in PAGES[:2]]
    assert links[0] == links[1]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_examples_run(page: Path) -> None:
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


def test_the_page_of_sequences_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for extra in ("pyarrow", "sklearn"):
        pytest.importorskip(extra)
    from regard.tasks.sequence_training import new_sequences, train_sequences
    from regard.training import RunOptions

    monkeypatch.chdir(tmp_path)
    config, *_ = new_sequences(Path("demo"))
    quick = ["training.epochs=1", "training.threads=1", "training.device=cpu"]
    train_sequences(config, quick, RunOptions(Path("runs/demo"), quiet=True))
    names: dict[str, object] = {"__name__": "sequences"}
    for block in blocks(DOCS / "sequences.md", "python"):
        exec(compile(block, "sequences.md", "exec"), names)


def test_the_settings_on_the_page_of_sequences_are_settings() -> None:
    from regard.tasks.sequence_settings import SequenceSettings

    data, model = map(tomllib.loads, blocks(DOCS / "sequences.md", "toml"))
    SequenceSettings.model_validate({**data, **model})


def test_the_page_of_answering_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.tasks.answering_settings import AnsweringSettings
    from regard.tasks.answering_training import new_answering, train_answering
    from regard.training import RunOptions

    monkeypatch.chdir(tmp_path)
    config, *_ = new_answering(Path("demo"))
    quick = ["training.epochs=1", "training.threads=1", "training.device=cpu", "restarts=1"]
    quick += ["data.train=dev.txt"]
    train_answering(config, quick, RunOptions(Path("runs/demo"), quiet=True))
    names: dict[str, object] = {"__name__": "answering"}
    for block in blocks(DOCS / "answering.md", "python"):
        exec(compile(block, "answering.md", "exec"), names)
    data, model = map(tomllib.loads, blocks(DOCS / "answering.md", "toml"))
    AnsweringSettings.model_validate({"task": "answering", **data, **model})


def test_the_readme_is_one_page() -> None:
    assert len(text_of(PAGES[0]).splitlines()) < 110


# The page of mechanisms


def sections(chapter: str) -> dict[str, str]:
    """Cut a chapter of the page of mechanisms into the sections of its mechanisms."""
    page = text_of(DOCS / "mechanisms.md")
    body = re.split(r"^## ", page, flags=re.MULTILINE)
    found = next(part for part in body if part.startswith(f"{chapter}\n"))
    return {
        part.split("`", 1)[0]: part for part in re.split(r"^### `", found, flags=re.MULTILINE)[1:]
    }


DRAWN: dict[str, tuple[str, Mapping[str, object]]] = {
    "Scores": ("score", {**SCORES, "function": scores.Function}),
    "Terms": ("term", TERMS),
    "Selections": ("selection", SELECTIONS),
    "Pooling": ("pooling", POOLINGS),
}


@pytest.mark.parametrize("chapter", DRAWN)
def test_every_mechanism_has_a_whole_section(chapter: str) -> None:
    kind, parts = DRAWN[chapter]
    written = sections(chapter)
    assert list(written) == list(parts)
    for name, section in written.items():
        assert f"](images/mechanisms/{kind}-{name}.svg)" in section, name
        assert len(re.findall(r"```python\n", section)) == 1, name
        labels = re.findall(r"^- \*\*(.*?)\*\*", section, re.MULTILINE)
        expected = ["When", "Not to be confused with", "Traits", "Paper"]
        if chapter in ("Terms", "Pooling"):
            expected.remove("Traits")
        assert labels == expected, name


def test_every_preset_has_a_section() -> None:
    written = sections("Presets")
    assert list(written) == list(PRESETS)
    assert all("```python\n" in section for section in written.values())


def traits_in_words(part: Score | Selection) -> str:
    """Say what a part states of itself, as the page does."""
    traits = part.traits
    words = {
        "weights sum to one": traits.normalised and isinstance(part, Selection),
        "weights need not sum to one": not traits.normalised,
        "query and key of one size": getattr(part, "one_size", False),
        "the order of keys counts": not traits.permutation_equivariant,
        "the order of queries counts": traits.positional_queries,
        "keys are not looked at": not traits.reads_keys,
        "goes step by step": traits.stateful,
        "drawn in training": traits.stochastic,
        "a choice in evaluation": traits.hard_evaluation,
        "no gradient to the scores": not traits.differentiable and isinstance(part, Selection),
        "needs a preference among keys": getattr(part, "needs_preference", False),
    }
    return "; ".join(word for word, holds in words.items() if holds) or "none of note"


def built(name: str, parts: Mapping[str, type]) -> Score | Selection:
    sizes = {size: SIZES[size] for size, needed in sizes_of(parts[name]).items() if needed}
    return parts[name](**sizes)


@pytest.mark.parametrize("chapter", ["Scores", "Selections"])
def test_the_traits_on_the_page_are_those_of_the_parts(chapter: str) -> None:
    parts = {"Scores": SCORES, "Selections": SELECTIONS}[chapter]
    written = sections(chapter)
    stated = {
        name: re.search(r"^- \*\*Traits\*\*: (.*)\.$", written[name], re.MULTILINE)[1]
        for name in parts
    }
    assert stated == {name: traits_in_words(built(name, parts)) for name in parts}


def test_a_term_makes_the_order_count() -> None:
    for term in TERMS.values():
        summed = scores.Sum(scores.Dot(), term())
        order = Traits(permutation_equivariant=False, positional_queries=True)
        assert summed.traits == order


def test_the_pairs_that_mean_nothing_are_those_on_the_page() -> None:
    page = text_of(DOCS / "mechanisms.md").split("## Pairs that mean nothing")[1]
    stated = {
        (score, selection)
        for score, cell in re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE)
        for selection in re.findall(r"`(\w+)`", cell)
    }
    refused = set()
    for score in SCORES:
        for selection in SELECTIONS:
            sizes = {size: SIZES[size] for size in sizes_of(SCORES[score])}
            try:
                Attention(score, selection, **{"query_dim": 4, **sizes})
            except MechanismError:
                refused.add((score, selection))
    assert stated == refused


# The page of conformance


def between(page: Path, name: str) -> str:
    return text_of(page).split(f"<!-- {name} -->\n")[1].split(f"<!-- end of {name} -->")[0]


def require_table(name: str, lines: list[str]) -> None:
    """Fail with the lines to paste unless the page has them."""
    expected = "\n".join(lines) + "\n"
    found = between(DOCS / "conformance.md", name).strip() + "\n"
    assert found == expected, (
        f"docs/conformance.md, between the marks {name!r}, must be:\n{expected}"
    )


def test_every_check_is_on_the_page_with_its_meaning() -> None:
    rows = [f"| `{name}` | {check.meaning} |" for name, check in CHECKS.items()]
    require_table("checks", ["| check | what it demands |", "|---|---|", *rows])


def results() -> dict[str, dict]:
    return json.loads(text_of(ROOT / "benchmarks" / "results" / "conformance.json"))


def test_the_counts_of_our_own_mechanisms_are_those_printed() -> None:
    ours = results()["ours"]
    counts = ours["counts"]
    line = (
        f"{ours['mechanisms']} mechanisms: {counts['passed']:,} passed, "
        f"{counts.get('failed', 0):,} failed; {counts['skipped']:,} had nothing to say."
    )
    require_table("ours", [line])


def test_the_counts_of_other_libraries_are_those_printed() -> None:
    peers = results()["peers"]["table"]
    head = [
        "| | layer | version | passed | failed | nothing to say | not asked |",
        "|" + "---|" * 7,
    ]
    rows = [
        f"| {place} | {name} | {row['version']} | {row.get('passed', 0)} | {row.get('failed', 0)} "
        f"| {row.get('skipped', 0)} | {len(row['not asked'])} |"
        for place, (name, row) in enumerate(peers.items(), start=1)
    ]
    require_table("peers", head + rows)
    numbers = range(1, len(peers) + 1)
    head = [f"| fails | {' | '.join(map(str, numbers))} |", "|" + "---|" * (len(peers) + 1)]
    rows = []
    for check in CHECKS:
        marks = ["✗" if check in row["fails"] else "" for row in peers.values()]
        if any(marks):
            rows.append(f"| `{check}` | {' | '.join(marks)} |")
    require_table("what peers fail", head + rows)
