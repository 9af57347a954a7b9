"""Texts and documents as they were read or written: the original, and the tokens made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from regard.errors import UserError


class Token(NamedTuple):
    """A piece of a text: how it is shown, and the characters that it stands for.

    A mark that is not in the text, such as the end of a sentence, has `start == end`.
    """

    text: str
    start: int
    end: int


class Passage(NamedTuple):
    """A sentence of a document: the characters and the tokens that it holds.

    Args:
        start: Its first character.
        end: One past its last character.
        first: Its first token.
        last: One past its last token; the same as `first` where it has none.
    """

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Text:
    """A text and the tokens that a model made of it.

    Args:
        text: The original text; offsets count its characters (code points).
        tokens: The tokens in the order in which the model saw them.
        language: A language tag such as "en", where it is known.

    Raises:
        UserError: A token's offsets do not lie within the text.
    """

    text: str
    tokens: tuple[Token, ...]
    language: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(Token(*token) for token in self.tokens))
        for index, token in enumerate(self.tokens):
            if not 0 <= token.start <= token.end <= len(self.text):
                raise UserError(
                    f"tokens[{index}] must have 0 <= start <= end <= {len(self.text)}; "
                    f"got start {token.start}, end {token.end}. Count characters, not bytes."
                )


@dataclass(frozen=True, slots=True)
class Document(Text):
    """A text whose tokens stand in sentences.

    Args:
        text: The original text; offsets count its characters (code points).
        tokens: The tokens of all sentences, in their order.
        language: A language tag such as "en", where it is known.
        sentences: The sentences that were read, in their order; they hold every token once.

    Raises:
        UserError: The sentences do not follow each other, or a token lies outside its own.

    Example:
        >>> tokens = (Token("It", 0, 2), Token("rains", 3, 8), Token("Still", 10, 15))
        >>> sentences = (Passage(0, 9, 0, 2), Passage(10, 16, 2, 3))
        >>> Document("It rains. Still.", tokens, "en", sentences).sentence_text(1)
        'Still.'
    """

    sentences: tuple[Passage, ...] = ()

    def __post_init__(self) -> None:
        super(Document, self).__post_init__()  # slots make the class anew: super() fails
        object.__setattr__(self, "sentences", tuple(Passage(*one) for one in self.sentences))
        character = token = 0
        for index, one in enumerate(self.sentences):
            inside = all(
                one.start <= t.start <= t.end <= one.end for t in self.tokens[one.first : one.last]
            )
            ordered = character <= one.start <= one.end <= len(self.text)
            if not (ordered and inside and token == one.first <= one.last <= len(self.tokens)):
                raise UserError(
                    f"sentences[{index}] must follow the one before and hold its tokens; got "
                    f"{tuple(one)} (start, end, first, last). Count characters and tokens anew."
                )
            character, token = one.end, one.last
        if token != len(self.tokens):
            raise UserError(
                f"sentences must hold all {len(self.tokens)} tokens; got {token}. Add what is "
                "missing."
            )

    def sentence_text(self, index: int) -> str:
        """Return the text of a sentence.

        Args:
            index: Which sentence.

        Returns:
            Its characters in the original.
        """
        one = self.sentences[index]
        return self.text[one.start : one.end]
