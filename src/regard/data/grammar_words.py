"""The words of the generated English-Chinese sentences, as plain tables."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """A transitive verb in its forms.

    Args:
        base: As after "will"; a second word ("look for") is part of the verb.
        third: As after "Tom" in the present.
        past: As after "Tom" in the past.
        gerund: As after "is".
        chinese: Its Chinese.
        aspect: `activity`; `instant` (never "is finding"); or `state` (neither "is liking" nor
            a past, which Chinese would not mark with 了).
        creatures: Whether animals do it and suffer it, and not only people.
    """

    base: str
    third: str
    past: str
    gerund: str
    chinese: str
    aspect: str = "activity"
    creatures: bool = False


class Noun(NamedTuple):
    """A noun with an article in English and a measure word in Chinese.

    Args:
        english: The noun.
        chinese: Its Chinese.
        one: Chinese for "a": one, with the measure word of this noun.
        article: `a` or `an`.
    """

    english: str
    chinese: str
    one: str
    article: str = "a"


PEOPLE: dict[str, str] = {
    "Tom": "汤姆",
    "Jerry": "杰瑞",
    "Mary": "玛丽",
    "John": "约翰",
    "Alice": "爱丽丝",
    "Bob": "鲍勃",
    "Lucy": "露西",
    "Peter": "彼得",
    "Anna": "安娜",
    "David": "大卫",
    "Mike": "迈克",
    "Emma": "艾玛",
    "Jack": "杰克",
    "Lily": "莉莉",
    "Paul": "保罗",
    "Kate": "凯特",
    "Helen": "海伦",
    "Henry": "亨利",
    "Mark": "马克",
    "George": "乔治",
}

ANIMALS: tuple[Noun, ...] = (
    Noun("cat", "猫", "一只"),
    Noun("dog", "狗", "一只"),
    Noun("mouse", "老鼠", "一只"),
    Noun("bird", "小鸟", "一只"),
    Noun("horse", "马", "一匹"),
    Noun("rabbit", "兔子", "一只"),
    Noun("duck", "鸭子", "一只"),
    Noun("monkey", "猴子", "一只"),
    Noun("tiger", "老虎", "一只"),
    Noun("sheep", "绵羊", "一只"),
    Noun("elephant", "大象", "一头", "an"),
    Noun("fox", "狐狸", "一只"),
)

THINGS: tuple[Noun, ...] = (
    Noun("apple", "苹果", "一个", "an"),
    Noun("banana", "香蕉", "一根"),
    Noun("cake", "蛋糕", "一块"),
    Noun("novel", "小说", "一部"),
    Noun("newspaper", "报纸", "一份"),
    Noun("story", "故事", "一个"),
    Noun("bicycle", "自行车", "一辆"),
    Noun("car", "汽车", "一辆"),
    Noun("radio", "收音机", "一台"),
    Noun("chair", "椅子", "一把"),
    Noun("box", "箱子", "一个"),
    Noun("window", "窗户", "一扇"),
    Noun("cup", "杯子", "一个"),
    Noun("house", "房子", "一座"),
    Noun("key", "钥匙", "一把"),
    Noun("gift", "礼物", "一份"),
)

PERSON_VERBS: tuple[Verb, ...] = (
    Verb("chase", "chases", "chased", "chasing", "追逐", creatures=True),
    Verb("see", "sees", "saw", "seeing", "看见", "instant", creatures=True),
    Verb("like", "likes", "liked", "liking", "喜欢", "state", creatures=True),
    Verb("help", "helps", "helped", "helping", "帮助", creatures=True),
    Verb("follow", "follows", "followed", "following", "跟随", creatures=True),
    Verb("find", "finds", "found", "finding", "找到", "instant", creatures=True),
    Verb("watch", "watches", "watched", "watching", "注视", creatures=True),
    Verb("look for", "looks for", "looked for", "looking for", "寻找", creatures=True),
    Verb("catch", "catches", "caught", "catching", "抓住", "instant", creatures=True),
    Verb("protect", "protects", "protected", "protecting", "保护", creatures=True),
    Verb("meet", "meets", "met", "meeting", "遇见", "instant", creatures=True),
    Verb("call", "calls", "called", "calling", "呼唤"),
    Verb("visit", "visits", "visited", "visiting", "拜访"),
    Verb("thank", "thanks", "thanked", "thanking", "感谢"),
    Verb("hug", "hugs", "hugged", "hugging", "拥抱"),
    Verb("invite", "invites", "invited", "inviting", "邀请"),
    Verb("teach", "teaches", "taught", "teaching", "教导"),
    Verb("praise", "praises", "praised", "praising", "赞扬"),
    Verb("know", "knows", "knew", "knowing", "认识", "state"),
    Verb("miss", "misses", "missed", "missing", "想念", "state"),
    Verb("trust", "trusts", "trusted", "trusting", "信任", "state"),
    Verb("remember", "remembers", "remembered", "remembering", "记得", "state"),
)

THING_VERBS: tuple[tuple[Verb, tuple[str, ...]], ...] = (
    (Verb("eat", "eats", "ate", "eating", "吃"), ("apple", "banana", "cake")),
    (Verb("read", "reads", "read", "reading", "阅读"), ("novel", "newspaper", "story")),
    (
        Verb("buy", "buys", "bought", "buying", "买"),
        ("apple", "cake", "newspaper", "bicycle", "car", "chair", "gift"),
    ),
    (Verb("write", "writes", "wrote", "writing", "写"), ("novel", "story")),
    (Verb("draw", "draws", "drew", "drawing", "画"), ("apple", "house", "bicycle", "chair")),
    (Verb("open", "opens", "opened", "opening", "打开", "instant"), ("box", "window", "gift")),
    (Verb("close", "closes", "closed", "closing", "关上", "instant"), ("box", "window")),
    (Verb("repair", "repairs", "repaired", "repairing", "修理"), ("bicycle", "car", "radio")),
    (Verb("wash", "washes", "washed", "washing", "洗"), ("apple", "cup", "car")),
    (Verb("carry", "carries", "carried", "carrying", "搬"), ("chair", "box")),
    (Verb("find", "finds", "found", "finding", "找到", "instant"), ("key", "box", "cup", "radio")),
    (Verb("look for", "looks for", "looked for", "looking for", "寻找"), ("key", "cup", "gift")),
)

TIMES: dict[str, tuple[tuple[str, str], ...]] = {
    "present": (("every day", "每天"), ("every week", "每周")),
    "bare": (("every day", "每天"), ("every week", "每周")),
    "past": (
        ("yesterday", "昨天"),
        ("today", "今天"),
        ("last week", "上周"),
        ("last night", "昨晚"),
    ),
    "progressive": (("now", "现在"),),
    "future": (("tomorrow", "明天"), ("today", "今天"), ("next week", "下周")),
    "not past": (("yesterday", "昨天"), ("today", "今天"), ("last week", "上周")),
    "not present": (),
}

ADVERBS: tuple[tuple[str, str], ...] = (
    ("often", "经常"),
    ("always", "总是"),
    ("sometimes", "有时"),
)

PLACES: tuple[tuple[str, str, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]], ...] = (
    ("in the park", "在 公园 里", ((0, 0), (2, 1)), ((0, 2),)),
    ("in the kitchen", "在 厨房 里", ((0, 0), (2, 1)), ((0, 2),)),
    ("in the room", "在 房间 里", ((0, 0), (2, 1)), ((0, 2),)),
    ("in the forest", "在 森林 里", ((0, 0), (2, 1)), ((0, 2),)),
    ("in the library", "在 图书馆 里", ((0, 0), (2, 1)), ((0, 2),)),
    ("on the beach", "在 海滩 上", ((0, 0), (2, 1)), ((0, 2),)),
    ("on the street", "在 街上", ((0, 0), (2, 1)), ()),
    ("at home", "在家", ((0, 0), (1, 0)), ()),
    ("at school", "在 学校", ((0, 0), (1, 1)), ()),
    ("at the zoo", "在 动物园", ((0, 0), (2, 1)), ()),
    ("by the river", "在 河边", ((0, 0), (2, 1)), ((0, 1),)),
    ("behind the house", "在 房子 后面", ((0, 2), (2, 1)), ((0, 0),)),
    ("near the station", "在 车站 附近", ((0, 2), (2, 1)), ((0, 0),)),
)
"""English, Chinese, and which word pairs belong together: surely, and perhaps."""
