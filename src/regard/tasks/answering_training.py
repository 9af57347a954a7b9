"""What `regard train`, `evaluate`, `check` and `new` do for models that answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import checked, read_config
from regard.data.stories import Stories, read_stories
from regard.data.story_numbers import StoryWords
from regard.data.story_worlds import write_world
from regard.errors import UserError
from regard.models.memory_network import MemoryNetwork
from regard.tasks.answering import Answerer, load_answerer
from regard.tasks.answering_job import AnsweringJob, Questions
from regard.tasks.answering_settings import (
    AnswererSettings,
    AnsweringDataSettings,
    AnsweringSettings,
    names,
)
from regard.tasks.base import TaskKind, choose_device, open_model
from regard.tasks.runs import new_config, run_data, set_up, train_run, write_config
from regard.training.loop import Outcome, RunOptions


def train_answering(path: Path, changes: Sequence[str], options: RunOptions) -> Outcome:
    """Train a model that answers from a config.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.
        options: Folder, resuming, and what may have changed.

    Returns:
        Where the model is and how it scores.

    Raises:
        RegardError: Any of those that `regard.training.train` and reading data raise.
    """
    settings = read_config(path, AnsweringSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    return train_run(job, settings, options, root=path.parent)


def build_job(settings: AnsweringSettings, *, root: Path) -> AnsweringJob:
    """Read the data, learn the vocabulary and build the model.

    Args:
        settings: The config.
        root: The folder that relative names start from.

    Returns:
        The job, ready to be trained.

    Raises:
        RegardError: The data or a setting is wrong.
    """
    set_up(settings.training)
    data, own = settings.data, settings.model
    parts = read_part("train", data, root=root)
    words = StoryWords.learn(parts, kind=data.kind)
    model = MemoryNetwork(
        own, words=words.size, answers=words.answer_ids, restarts=settings.restarts
    )
    described = AnswererSettings(
        task="answering",
        language=data.language,
        kind=data.kind,
        words=list(words.words),
        answers=list(words.answers),
        restarts=settings.restarts,
        model=own,
    )
    dev = None
    if data.dev is not None:
        dev = Questions(read_part("dev", data, root=root), words, memory=own.memory)
    return AnsweringJob(
        settings,
        model.to(choose_device(settings.training.device)),
        described,
        data=Questions(parts, words, memory=own.memory),
        dev=dev,
    )


def read_part(name: str, settings: AnsweringDataSettings, *, root: Path) -> list[Stories]:
    """Read the stories of a part of the data.

    Args:
        name: "train", "dev" or "test".
        settings: Files and encoding.
        root: The folder that relative names start from.

    Returns:
        The stories of each file.

    Raises:
        UserError: The settings name no such part.
        DataError: A file is wrong.
    """
    files = getattr(settings, name)
    if files is None:
        raise UserError("needs a file of stories: this model names no test file.", where="evaluate")
    return [read_stories(root / file, encoding=settings.encoding) for file in names(files)]


@dataclass(frozen=True, slots=True)
class AnsweringEvaluation:
    """How a model answers the questions of some files.

    Args:
        rows: For each file `error` and `supported`, in percent, and how many questions it has.
        written: The answer to each question.
        stories: The stories of each file.
    """

    rows: dict[str, dict[str, float]]
    written: list[str]
    stories: list[Stories]

    def table(self) -> dict[str, Any]:
        """Return what a program wants to know."""
        count = len(self.rows)
        digests = {one.file: one.sha256 for one in self.stories}
        errors = [row["error"] for row in self.rows.values()]
        more = {"mean_error": sum(errors) / count, "failed": sum(one > 5 for one in errors)}
        return {**more, "files": self.rows, "sha256": digests}

    def lines(self) -> list[str]:
        """Say it to a person, a line for each file."""
        width = max(len(name) for name in self.rows)
        lines = []
        for (name, row), stories in zip(self.rows.items(), self.stories, strict=True):
            looked = f"  supported {row['supported']:6.2f}" if "supported" in row else ""
            lines.append(
                f"{name:<{width}}  error {row['error']:6.2f}{looked}  questions "
                f"{len(stories):6}  SHA-256 {stories.sha256}"
            )
        if len(self.rows) > 1:
            table = self.table()
            mean, failed = table["mean_error"], table["failed"]
            lines.append(f"{'mean':<{width}}  error {mean:6.2f}  above 5 %: {failed}")
        return lines


def evaluate_answering(
    model: str,
    files: Sequence[str],
    *,
    beam: int | None = None,
    device: str = "auto",
    reading: Mapping[str, Any] | None = None,
) -> AnsweringEvaluation:
    """Answer the questions of files and score the answers, each file by itself.

    Args:
        model: A run's folder, a model's folder, or a bundled name.
        files: Files of stories; none for the test files of the run's config.
        beam: Must be left out: nothing is searched for.
        device: Where to run.
        reading: Must be left out: there are no columns.

    Returns:
        Scores and answers.

    Raises:
        UserError: There are no files, or one is wrong.
    """
    if beam is not None:
        raise UserError("must be left out: an answer is not searched for.", where="--beam")
    if reading:
        raise UserError("columns must be left out: stories have none.", where="evaluate")
    data, root = run_data(Path(model), AnsweringDataSettings, AnsweringDataSettings(train=""))
    if files:
        data = checked({**data.model_dump(), "test": list(files)}, AnsweringDataSettings, where="")
        root = Path()
    parts = read_part("test", data, root=root)
    answerer = load_answerer(open_model(model), choose_device(device))
    rows: dict[str, dict[str, float]] = {}
    written: list[str] = []
    for stories in parts:
        scores, said = score(answerer, stories)
        rows[stories.file] = scores
        written += said
    return AnsweringEvaluation(rows, written, parts)


def score(answerer: Answerer, stories: Stories) -> tuple[dict[str, float], list[str]]:
    """Score a model on the questions of a file.

    A question is supported where its `k` supporting facts are the `k` sentences of most weight,
    each sentence by the hop that gives it most.

    Args:
        answerer: The model.
        stories: The stories.

    Returns:
        `error` in percent, `supported` in percent where facts are known, and the number of
        questions; and what was answered.
    """
    numbered, found = answerer.number(stories), answerer.answer(stories)
    known = answerer.words.answers
    truth = [known[place] if place >= 0 else None for place in numbered.answers]
    wrong = sum(one.answer != answer for one, answer in zip(found, truth, strict=True))
    scores = {"error": 100.0 * wrong / len(found), "questions": float(len(found))}
    looked = []
    for index, one in enumerate(found):
        facts = stories.questions[index].supporting
        first = stories.questions[index].known - len(one.sentences)
        if facts:
            strongest = (-one.weights.max(axis=0)).argsort(kind="stable")[: len(facts)]
            looked.append({int(place) + first for place in strongest} == set(facts))
    if looked:
        scores["supported"] = 100.0 * sum(looked) / len(looked)
    return scores, [one.answer for one in found]


def check_answering(path: Path, changes: Sequence[str]) -> list[str]:
    """Check a config and its data without training.

    Args:
        path: The config.
        changes: `key=value` pairs that replace what it says.

    Returns:
        What was found, line by line; lines about something doubtful begin with "warning: ".

    Raises:
        UserError: Something is wrong that would stop a training.
    """
    settings = read_config(path, AnsweringSettings, changes=changes)
    job = build_job(settings, root=path.parent)
    parts = {"train": job.data}
    if job.dev is not None:
        parts["dev"] = job.dev
    words = StoryWords(job.own.words, job.own.answers, kind=job.own.kind)
    if settings.data.test is not None:
        stories = read_part("test", settings.data, root=path.parent)
        parts["test"] = Questions(stories, words, memory=settings.model.memory)
    lines: list[str] = []
    for name, part in parts.items():
        lines += _described(name, part, settings)
        if name != "train":
            lines += _leaks(name, job.data, part)
    count = sum(parameter.numel() for parameter in job.model.parameters()) // settings.restarts
    known = f"{len(words.words):,} words, {len(words.answers)} answers"
    each = f"{settings.restarts} restarts of {count:,} parameters each"
    return [*lines, f"model: {each}, {known}; {job.steps(0)} steps an epoch"]


def _described(name: str, part: Questions, settings: AnsweringSettings) -> list[str]:
    numbered = part.numbered
    stories = sum(len(one.stories) for one in part.files)
    lines = [f"{name}: {stories:,} stories, {len(part):,} questions, SHA-256 {part.sha256[:16]}"]
    unknown = int((numbered.answers < 0).sum())
    if numbered.forgotten:
        lines.append(
            f"warning: {numbered.forgotten} questions of {name} have more than "
            f"{settings.model.memory} sentences before them; the first are not read"
        )
    if unknown:
        lines.append(f"warning: {unknown} answers of {name} are in no training story: wrong always")
    return lines


def _leaks(name: str, train: Questions, other: Questions) -> list[str]:
    def told(part: Questions) -> set[tuple[object, ...]]:
        return {
            (stories.told(index), one.text)
            for stories in part.files
            for index, one in enumerate(stories.questions)
        }

    shared = len(told(train) & told(other))
    if not shared:
        return []
    return [f"warning: {shared} questions of {name} are, with their stories, in train"]


_CONFIG = """\
# A model for the stories that `regard new answering` wrote beside this file: who went where, who
# took what. The facts that an answer follows from are known.
# Train it:  regard train {name}
# Use it:    regard answer STORY.txt --model runs/{run} --question "Where is the lamp?"
task = "answering"
restarts = 3                     # models trained together; the best one answers
linear_epochs = 10               # without the softmax over the memory, to begin with

[data]
train = "train.txt"              # or a list of files, in the format of the bAbI tasks
dev = "dev.txt"
test = "test.txt"
language = "en"
kind = "words"                   # chinese, characters

[model]
embedding_dim = 20
hops = 3
tying = "adjacent"               # layerwise, untied
encoding = "position"            # bag
memory = 50                      # sentences, the last ones

[training]
epochs = 40
"""


def new_answering(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write a config and generated stories, whose supporting facts are known.

    Args:
        folder: Where to write; made where it does not exist.
        overwrite: Whether files that exist may be replaced.

    Returns:
        The config and the files of stories.

    Raises:
        UserError: A file exists already.
        EnvironmentFault: The folder cannot be made.
    """
    config = new_config(folder, overwrite=overwrite)
    counts = {"train": 1000, "dev": 50, "test": 100}
    files = write_world(folder, counts, seed=1, overwrite=overwrite)
    write_config(config, _CONFIG)
    return [config, *files]


TASK = TaskKind(
    name="answering",
    summary="A story and a question in, the answer out, and the sentences it came from.",
    load=load_answerer,
    train=train_answering,
    evaluate=evaluate_answering,
    check=check_answering,
    new=new_answering,
)
