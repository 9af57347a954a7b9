"""The pages: links lead somewhere, the READMEs say the same, examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == language]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    missing = [link for link in links if "//" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_readmes_are_twins() -> None:
    english, chinese = (BLOCK.findall(page.read_text(encoding="utf-8")) for page in PAGES[:2])
    assert english == chinese
    levels = [re.findall(r"^#+ ", page.read_text(encoding="utf-8"), re.M) for page in PAGES[:2]]
    assert levels[0] == levels[1]


@pytest.mark.parametrize("page", [PAGES[0], ROOT / "docs" / "design.md"], ids=lambda p: p.name)
def test_examples_run(page: Path) -> None:
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


def test_the_readme_is_one_page() -> None:
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) < 110
