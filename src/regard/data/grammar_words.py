"""The words of the generated English-Chinese sentences, as plain tables."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """A transitive verb in its forms.

    Args:
        base: As after "will".
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
    "Kevin": "凯文",
    "Lucy": "露西",
    "Peter": "彼得",
    "Anna": "安娜",
    "David": "大卫",
    "Mike": "迈克",
    "Sarah": "莎拉",
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
    Noun("panda", "熊猫", "一只"),
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
    Verb("seek", "seeks", "sought", "seeking", "寻找", creatures=True),
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
    (Verb("seek", "seeks", "sought", "seeking", "寻找"), ("key", "cup", "gift")),
)

TIMES: dict[str, tuple[tuple[str, str], ...]] = {
    "present": (("daily", "每天"), ("today", "今天")),
    "bare": (("daily", "每天"), ("today", "今天")),
    "past": (("yesterday", "昨天"), ("today", "今天"), ("recently", "最近")),
    "progressive": (("now", "现在"), ("today", "今天")),
    "future": (("tomorrow", "明天"), ("today", "今天"), ("tonight", "今晚")),
}

ADVERBS: tuple[tuple[str, str], ...] = (
    ("often", "经常"),
    ("always", "总是"),
    ("sometimes", "有时"),
)

PLACES: tuple[tuple[str, str], ...] = (
    ("park", "公园"),
    ("kitchen", "厨房"),
    ("forest", "森林"),
    ("library", "图书馆"),
    ("airport", "机场"),
    ("school", "学校"),
    ("zoo", "动物园"),
    ("factory", "工厂"),
    ("hotel", "旅馆"),
    ("museum", "博物馆"),
)

PREPOSITIONS: tuple[tuple[str, str], ...] = (
    ("in", "里"),
    ("near", "附近"),
    ("behind", "后面"),
    ("outside", "外面"),
)
"""English, and what stands behind the place in Chinese; before it stands 在."""
