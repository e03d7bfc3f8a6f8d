"""One loader, one pass: `python loaders.py SYSTEM TABLE ORDER FOLDER`; run by the interpreter of its own venv.

Every system gives batches of 1024 rows to one consumer, which counts them. The rate is that after the first batch; how
long the first one took, from an imported library on, stands apart. Who is slow is stopped after some seconds.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rig.answers import answer, memory_mb

BATCH = 1024
QUEUE = 100_000
MOST_S = 8.0

FEATURES = [f"f{number}" for number in range(28)]
Batches = Iterator[int]
"""How many rows each batch has."""


def cargobike(table: str, shuffled: bool, folder: str) -> Callable[[], Batches]:
    from cargobike.data.loading.loader import Loader

    columns = {"x": FEATURES, "y": "label"} if table == "higgs" else None

    def batches() -> Batches:
        for batch in Loader(f"{folder}/{table}.parquet", BATCH, columns=columns, shuffle=shuffled):
            yield len(batch["y" if table == "higgs" else "label"])

    return batches


def petastorm(table: str, shuffled: bool, folder: str, pool: str = "dummy") -> Callable[[], Batches]:
    import torch
    from petastorm import make_batch_reader
    from petastorm.pytorch import BatchedDataLoader

    torch.set_num_threads(1)  # with more it is not faster, and many times slower on a busy machine

    def batches() -> Batches:
        with make_batch_reader(
            f"file://{folder}/{table}.parquet",
            reader_pool_type=pool,
            workers_count=2,
            num_epochs=1,
            shuffle_row_groups=shuffled,
        ) as reader:
            for batch in BatchedDataLoader(reader, batch_size=BATCH, shuffling_queue_capacity=QUEUE if shuffled else 0):
                yield len(batch["label"])

    return batches


def petastorm_threads(table: str, shuffled: bool, folder: str) -> Callable[[], Batches]:
    return petastorm(table, shuffled, folder, "thread")


def torch_dataloader(table: str, shuffled: bool, folder: str, workers: int = 0) -> Callable[[], Batches]:
    """The usual way: everything in memory, a row at a time."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    def batches() -> Batches:
        x, y = _in_memory(table, folder)
        dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
        for _, labels in DataLoader(dataset, batch_size=BATCH, shuffle=shuffled, num_workers=workers):
            yield len(labels)

    return batches


def torch_dataloader_2(table: str, shuffled: bool, folder: str) -> Callable[[], Batches]:
    return torch_dataloader(table, shuffled, folder, 2)


def tf_data(table: str, shuffled: bool, folder: str) -> Callable[[], Batches]:
    """Everything in memory; shuffled by a buffer as large as petastorm's."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def batches() -> Batches:
        dataset = tf.data.Dataset.from_tensor_slices(_in_memory(table, folder))
        if shuffled:
            dataset = dataset.shuffle(QUEUE)
        for _, labels in dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE):
            yield int(labels.shape[0])

    return batches


def hf_datasets(table: str, shuffled: bool, folder: str) -> Callable[[], Batches]:
    import datasets

    datasets.disable_progress_bars()

    def batches() -> Batches:
        dataset = datasets.Dataset.from_parquet(f"{folder}/{table}.parquet", cache_dir=f"{folder}/hf")
        dataset = dataset.with_format("numpy")
        for batch in (dataset.shuffle(seed=1) if shuffled else dataset).iter(batch_size=BATCH):
            yield len(batch["label"])

    return batches


def web_dataset(table: str, shuffled: bool, folder: str) -> Callable[[], Batches]:
    import webdataset

    def batches() -> Batches:
        dataset = webdataset.WebDataset(f"{folder}/{table}.tar", shardshuffle=False)
        if shuffled:
            dataset = dataset.shuffle(10_000)
        for _, labels in dataset.to_tuple("bin", "cls").batched(BATCH):
            yield len(labels)

    return batches


def ray_data(table: str, shuffled: bool, folder: str) -> Callable[[], Batches]:
    os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
    import ray
    import ray.data

    def batches() -> Batches:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        dataset = ray.data.read_parquet(f"{folder}/{table}.parquet")
        shuffling = {"local_shuffle_buffer_size": QUEUE} if shuffled else {}
        for batch in dataset.iter_batches(batch_size=BATCH, batch_format="numpy", **shuffling):
            yield len(batch["label"])

    return batches


SYSTEMS = {
    "cargobike": cargobike,
    "petastorm": petastorm,
    "petastorm-threads": petastorm_threads,
    "torch": torch_dataloader,
    "torch-2": torch_dataloader_2,
    "tf.data": tf_data,
    "hf-datasets": hf_datasets,
    "webdataset": web_dataset,
    "ray": ray_data,
}


def _in_memory(table: str, folder: str) -> tuple[Any, Any]:
    numpy: Any = importlib.import_module("numpy")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    whole = parquet.read_table(f"{folder}/{table}.parquet")
    labels = whole["label"].to_numpy()
    if table == "higgs":
        return numpy.stack([whole[name].to_numpy() for name in FEATURES], axis=1), labels
    images = numpy.frombuffer(whole["image"].combine_chunks().buffers()[1], numpy.uint8).reshape(-1, 784)
    return images.copy(), labels


def main() -> None:
    system, table, order, folder = sys.argv[1:]
    make = SYSTEMS[system](table, order == "shuffled", folder)
    before_mb = memory_mb()["rss_mb"]
    began, spent = time.perf_counter(), _cpu_s()
    rows = first = 0
    first_s = seconds = 0.0
    for count in make():
        now = time.perf_counter() - began
        if not rows:
            first, first_s, spent = count, now, _cpu_s()
        rows += count
        seconds = now
        if seconds > first_s + MOST_S:
            break
    spent = _cpu_s() - spent
    answer(
        rows=rows,
        first_s=first_s,
        krows_s=(rows - first) / (seconds - first_s) / 1000,
        cpu_s_per_million=spent / (rows - first) * 1e6,
        grown_mb=memory_mb()["peak_rss_mb"] - before_mb,
    )
    sys.stdout.flush()
    os._exit(0)  # some leave processes behind that wait for each other; the harness ends them


def _cpu_s() -> float:
    """Return the time that this process and its children have computed."""
    ticks = os.sysconf("SC_CLK_TCK")
    spent = time.process_time()
    parents = {os.getpid()}
    known = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        known.append((int(name), int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks))
    for process, parent, seconds in sorted(known):
        if parent in parents:
            parents.add(process)
            spent += seconds
    return spent


if __name__ == "__main__":
    main()
