"""What generated letters to a shop are made of, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Plants(NamedTuple):
    """The parts of sentences of a language.

    Args:
        space: What stands between sentences.
        frames: Sentences that say something, `{said}`, of a thing.
        neutral: What they say where it decides nothing.
        phrases: What they say where it decides, for each label; no word of it stands elsewhere.
        asides: Sentences that say nothing of a thing.
        words: What fills the other gaps, by name.
    """

    space: str
    frames: tuple[str, ...]
    neutral: tuple[str, ...]
    phrases: Mapping[str, tuple[str, ...]]
    asides: tuple[str, ...]
    words: Mapping[str, tuple[str, ...]]


_ENGLISH = Plants(
    space=" ",
    frames=(
        "The {thing} was {said}.",
        "I noticed that the {thing} was {said}.",
        "My {person} says the {thing} was {said}!",
        "When we looked again, the {thing} was {said}.",
        "As far as I can tell, the {thing} was {said}, and so we write to you.",
        "Dr. {name} agrees: the {thing} was {said}.",
    ),
    neutral=(
        "dark green",
        "on the shelf",
        "quite heavy",
        "a present",
        "next to the window",
        "older than mine",
        "made of steel",
        "bought in spring",
        "for my {person}",
        "the third of its kind",
    ),
    phrases={
        "delivery": ("delayed", "delivered late", "mislaid underway", "sent elsewhere", "unposted"),
        "payment": ("overcharged", "billed twice", "invoiced wrongly", "never refunded", "unpaid"),
        "quality": ("broken", "badly scratched", "leaking", "cracked", "rusty inside"),
        "praise": ("wonderful", "truly excellent", "splendid", "beyond praise", "simply perfect"),
    },
    asides=(
        "We have lived here for {number} years.",
        "Mr. {name} called on {day}.",
        "Back then it cost {number}.50 at the market.",
        "The weather was fine on {day}.",
        "Is your shop open on {day}?",
        "My {person} and {name} send their regards...",
        '"Write to them," said my {person}.',
    ),
    words={
        "thing": ("kettle", "lamp", "chair", "radio", "clock", "bicycle", "camera", "table"),
        "person": ("sister", "neighbour", "uncle", "daughter", "colleague"),
        "name": ("Baker", "Cooper", "Fisher", "Mason", "Turner"),
        "day": ("Monday", "Tuesday", "Friday", "Sunday"),
        "number": ("two", "three", "12", "20", "35"),
    },
)

_CHINESE = Plants(
    space="",
    frames=(
        "这个{thing}{said}。",
        "我发现{thing}{said}。",
        "{person}说{thing}{said}！",
        "后来再看，{thing}{said}。",
        "据我所知，那个{thing}{said}，所以写信给你们。",
    ),
    neutral=(
        "是深绿色的",
        "放在架子上",
        "有点重",
        "是一份礼物",
        "在窗边",
        "比我的旧",
        "是钢做的",
        "是春天买的",
        "给{person}用",
    ),
    phrases={
        "delivery": ("送晚了", "寄丢了", "迟迟未到", "发错地址", "淋湿了"),
        "payment": ("多收费", "重复扣款", "没有退钱", "账单有误", "价格不符"),
        "quality": ("摔坏了", "漏水", "有裂缝", "生锈了", "划痕很多"),
        "praise": ("好极了", "非常出色", "完美无缺", "令人满意", "棒得很"),
    },
    asides=(
        "我们在这里住了{number}年。",
        "{name}先生{day}打来电话。",
        "当时在市场上要{number}.5元。",
        "{day}天气不错……",
        "你们{day}开门吗？",
        "{person}说：“写信吧。”",
    ),
    words={
        "thing": ("水壶", "台灯", "椅子", "收音机", "闹钟", "自行车", "相机", "桌子"),
        "person": ("姐姐", "邻居", "叔叔", "女儿", "同事"),
        "name": ("王", "李", "张", "刘"),
        "day": ("星期一", "星期二", "星期五", "星期天"),
        "number": ("2", "3", "12", "20", "35"),
    },
)

PLANTED: dict[str, Plants] = {"en": _ENGLISH, "zh": _CHINESE}
"""The parts by language."""
