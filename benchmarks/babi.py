"""Train memory networks on the bAbI tasks as their authors did, and print their errors.

    python benchmarks/babi.py data FOLDER --source shared/data/babi
    python benchmarks/babi.py train FOLDER --setting single --tasks 1 4 --restarts 10
    python benchmarks/babi.py train FOLDER --setting joint
    python benchmarks/babi.py table FOLDER

`data` unpacks the tasks, 1,000 and 10,000 questions each, and checks their SHA-256. `train` trains
what is not trained yet, task by task, and goes on where it was stopped; of ten restarts, trained
together, the one of the least training error counts. `table` scores what it finds in FOLDER: the
error of each task beside the published one, mean ± standard deviation over the restarts, and the
share of questions whose supporting facts are the sentences of most weight; it writes
`benchmarks/results/babi.json`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import statistics
import tarfile
import time
from pathlib import Path
from typing import Any

import torch

from regard.data.stories import read_stories
from regard.models.memory_network import MemoryNetwork
from regard.tasks.answering import Answerer, as_tensors, load_restarts
from regard.tasks.answering_training import score, train_answering
from regard.tasks.base import open_model
from regard.training import RunOptions

RESULTS = Path(__file__).parent / "results" / "babi.json"
ARCHIVES = {
    "en": (
        "babi_v1.2_en.tar.xz",
        "b6ea16d164dfe9ce175506a663ab81a11921b11801a762124753151b3b5939d7",
    ),
    "en-10k": (
        "babi_v1.2_en-10k_without_qa3_train.tar.xz",
        "382f45cb511c0f7579318137edde47babcb79d850739808d1ed3483e6f97ae79",
    ),
}
# Sukhbaatar et al. 2015, 1,000 questions, three hops, trained jointly with PE, LS and RN.
PUBLISHED = (
    *(0.0, 11.4, 21.9, 13.4, 14.4, 2.8, 18.3, 9.3, 1.9, 6.5),
    *(0.3, 0.1, 0.2, 6.9, 0.0, 2.7, 40.4, 9.4, 88.0, 0.0),
)
SINGLE = ["model.embedding_dim=20", "training.epochs=100", "linear_epochs=20"]
JOINT = ["model.embedding_dim=50", "training.epochs=60", "linear_epochs=30"]
SETTINGS = {
    "single": SINGLE,
    "joint": JOINT,
    "relu": [*JOINT, "model.embedding_dim=100", 'model.rectified="half"'],
}
CONFIG = """
task = "answering"
restarts = {restarts}
[data]
train = {train}
[training]
threads = 1
device = "cpu"
evaluate_epochs = 20
checkpoint_steps = 1000000
"""


def data(folder: Path, source: Path) -> None:
    """Unpack the tasks, files alone, and check what was unpacked."""
    for name, (archive, digest) in ARCHIVES.items():
        path = source / archive
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != digest:
            raise SystemExit(f"{path}: SHA-256 must be {digest}; got {found}")
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path) as packed:
            for member in packed:
                content = packed.extractfile(member)
                if content is not None:
                    (target / Path(member.name).name).write_bytes(content.read())
        print(f"{name}: {len(list(target.iterdir()))} files")


def task_files(folder: Path, part: str) -> dict[int, Path]:
    """Find the files of a part, by the number of the task."""
    found = {}
    for path in folder.glob(f"qa*_{part}.txt"):
        match = re.match(r"qa(\d+)_", path.name)
        if match:
            found[int(match[1])] = path
    return dict(sorted(found.items()))


def train(folder: Path, arguments: argparse.Namespace) -> None:
    """Train what is not trained yet: a model for each task, or one for all of them."""
    files = task_files(folder / arguments.size, "train")
    chosen = {task: files[task] for task in arguments.tasks or files}
    groups = {f"task-{task:02}": [path] for task, path in chosen.items()}
    if arguments.setting != "single":
        groups = {"all": list(chosen.values())}
    base = folder / "runs" / f"{arguments.size}-{arguments.setting}"
    for name, paths in groups.items():
        run = base / name
        if (run / "seconds.json").is_file():
            continue
        base.mkdir(parents=True, exist_ok=True)
        config = base / f"{name}.toml"
        listed = json.dumps([str(path.resolve()) for path in paths])
        config.write_text(CONFIG.format(restarts=arguments.restarts, train=listed))
        changes = [*SETTINGS[arguments.setting], *arguments.changes]
        begun = time.perf_counter()
        outcome = train_answering(config, changes, RunOptions(run, resume=True, quiet=True))
        seconds = time.perf_counter() - begun
        (run / "seconds.json").write_text(json.dumps({"seconds": seconds}) + "\n")
        scores = "  ".join(f"{key} {value:.2f}" for key, value in outcome.metrics.items())
        print(f"{arguments.setting} {name}: {seconds:.0f} s  {scores}", flush=True)


def restart_errors(model: MemoryNetwork, answerer: Answerer, file: Path) -> list[float]:
    """Return the error of each restart on a file, in percent."""
    numbered = answerer.number(read_stories(file))
    wrong = torch.zeros(model.restarts)
    with torch.inference_mode():
        for start in range(0, len(numbered), 250):
            rows = numbered.rows(range(start, min(start + 250, len(numbered))))
            said = model(as_tensors(rows, torch.device("cpu"))).logits.argmax(dim=-1)
            wrong += (said != torch.from_numpy(rows.answers)).sum(dim=1)
    return [100.0 * float(one) / len(numbered) for one in wrong]


def score_task(run: Path, file: Path) -> dict[str, Any]:
    """Score the chosen restart of a run on a task, and all of them."""
    model, words, settings = load_restarts(open_model(run))
    answerer = Answerer(model.restart(int(model.chosen)), words, settings)
    stories = read_stories(file)
    scores, _ = score(answerer, stories)
    return {**scores, "restarts": restart_errors(model, answerer, file), "sha256": stories.sha256}


def table(folder: Path) -> None:
    """Score every run found and write the results."""
    torch.set_num_threads(1)
    report: dict[str, Any] = {
        "command": "python benchmarks/babi.py table FOLDER",
        "archives": {name: digest for name, (_, digest) in ARCHIVES.items()},
        "published": dict(enumerate(PUBLISHED, start=1)),
        "versions": {"torch": torch.__version__},
        "rows": {},
    }
    for base in sorted((folder / "runs").glob("*")):
        size, _, setting = base.name.rpartition("-")
        rows = {}
        for task, file in task_files(folder / size, "test").items():
            run = base / (f"task-{task:02}" if setting == "single" else "all")
            if (run / "seconds.json").is_file():
                rows[task] = score_task(run, file)
        if rows:
            times = [json.loads(path.read_text()) for path in base.glob("*/seconds.json")]
            show(base.name, rows, sum(one["seconds"] for one in times))
            report["rows"][base.name] = {"tasks": rows, "seconds": times}
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")


def show(name: str, rows: dict[int, dict[str, Any]], seconds: float) -> None:
    """Print a line for each task, and their means."""
    columns = "error, mean ± sd of the restarts, published (joint, 1k), supported"
    print(f"{name} ({seconds:.0f} s): {columns}")
    for task, row in rows.items():
        spread = statistics.stdev(row["restarts"]) if len(row["restarts"]) > 1 else 0.0
        mean = statistics.mean(row["restarts"])
        print(
            f"  {task:2}  {row['error']:6.2f}  {mean:6.2f} ± {spread:5.2f}  "
            f"{PUBLISHED[task - 1]:6.1f}  {row.get('supported', 0.0):6.2f}"
        )
    errors = [row["error"] for row in rows.values()]
    published = statistics.mean(PUBLISHED[task - 1] for task in rows)
    means = [
        statistics.mean(one) for one in zip(*(r["restarts"] for r in rows.values()), strict=True)
    ]
    spread = statistics.stdev(means) if len(means) > 1 else 0.0
    print(
        f"  mean {statistics.mean(errors):6.2f} ({sum(one > 5 for one in errors)} above 5 %)  "
        f"{statistics.mean(means):6.2f} ± {spread:5.2f}  {published:6.2f}"
    )


def main() -> None:
    """Unpack the data, train, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["data", "train", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", type=Path, default=Path("shared/data/babi"))
    parser.add_argument("--size", choices=list(ARCHIVES), default="en")
    parser.add_argument("--setting", choices=list(SETTINGS), default="single")
    parser.add_argument("--tasks", type=int, nargs="*", help="by default all that are there")
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--change", dest="changes", action="append", default=[], help="key=value")
    arguments = parser.parse_args()
    if arguments.action == "data":
        data(arguments.folder, arguments.source)
    elif arguments.action == "train":
        train(arguments.folder, arguments)
    else:
        table(arguments.folder)


if __name__ == "__main__":
    main()
