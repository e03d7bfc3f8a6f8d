"""The loader in frameworks, each in a process of its own, as a user would run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.scripts import run_script

ROWS = 600


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    x = random.standard_normal((ROWS, 3)).astype(np.float32)
    columns = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}
    target = (x @ [1.0, -2.0, 0.5] + 0.3).astype(np.float32)
    pq.write_table(
        pa.table({"id": np.arange(ROWS), **columns, "target": target}), tmp_path / "points.parquet", row_group_size=50
    )
    return tmp_path


TORCH = """
        import json
        import torch
        from torch.utils.data import DataLoader, IterableDataset
        from cargobike.data.loading.loader import Loader

        def make(**options):
            names = {"x": ["a", "b"], "id": "id"}
            return Loader("points.parquet", 32, shuffle=True, seed=1, to="torch", columns=names, **options)

        def ids(batches):
            return [int(row) for batch in batches for row in batch["id"]]
"""


def test_torch(folder: Path) -> None:
    """Batches in a DataLoader, without processes and with forked ones."""
    answer = run_script(
        folder,
        TORCH
        + """
        plain = ids(make())
        dataset = make().as_torch()
        assert isinstance(dataset, IterableDataset)
        batch = next(iter(make()))
        assert batch["x"].shape == (32, 2) and batch["x"].dtype == torch.float32
        assert batch["id"].dtype == torch.int64
        single = DataLoader(dataset, batch_size=None)
        assert ids(single) == plain
        assert len(single) == len(make()) == 19
        assert ids(single) != plain, "the next epoch"
        several = make().as_torch()
        loader = DataLoader(several, batch_size=None, num_workers=2)
        first = list(loader)
        sizes = sorted(len(batch["id"]) for batch in first)
        assert sizes == [24] + [32] * 18, "the same batches, in another order"
        assert sorted(ids(first)) == list(range(600))
        several.set_epoch(1)
        assert ids(loader) != ids(first)
        print(json.dumps("done"))
        """,
    )
    assert answer == "done"


def test_torch_with_processes_of_every_kind(folder: Path) -> None:
    """Spawned processes, those that are kept for the next epoch, and those that torchdata resumes."""
    answer = run_script(
        folder,
        TORCH
        + """
        from torchdata.stateful_dataloader import StatefulDataLoader

        def main():
            spawned = DataLoader(make().as_torch(), batch_size=None, num_workers=2, multiprocessing_context="spawn")
            assert sorted(ids(spawned)) == list(range(600))
            persistent = DataLoader(make().as_torch(), batch_size=None, num_workers=2, persistent_workers=True)
            first, second = ids(persistent), ids(persistent)
            assert sorted(first) == sorted(second) == list(range(600)) and first != second
            del persistent
            for workers in (0, 2):
                stateful = StatefulDataLoader(make().as_torch(), batch_size=None, num_workers=workers)
                seen = []
                for number, batch in enumerate(stateful):
                    seen += batch["id"].tolist()
                    if number == 12:
                        state = stateful.state_dict()
                        break
                again = StatefulDataLoader(make().as_torch(), batch_size=None, num_workers=workers)
                again.load_state_dict(state)
                seen += ids(again)
                assert sorted(seen) == list(range(600)), workers
            print(json.dumps("done"))

        if __name__ == "__main__":
            main()
        """,
    )
    assert answer == "done"


def test_keras_and_tensorflow(folder: Path) -> None:
    """`Model.fit` learns from the rows, and sees each once in an epoch; so does a tf.data.Dataset."""
    answer = run_script(
        folder,
        """
        import json, os
        os.environ["KERAS_BACKEND"] = "tensorflow"
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import keras
        import numpy as np
        import tensorflow as tf
        from cargobike.data.loading.loader import Loader

        def make(**options):
            names = {"x": ["a", "b", "c"], "y": "target", "id": "id"}
            return Loader("points.parquet", 32, columns=names, shuffle=True, seed=1, **options)

        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
        history = model.fit(make().as_keras(x="x", y="y"), epochs=12, verbose=0).history
        assert history["loss"][-1] < 0.1 * history["loss"][0], history["loss"]

        class Seen(keras.Model):
            def __init__(self):
                super().__init__()
                self.inner = keras.layers.Dense(1)
                self.ids = []
            def call(self, x):
                return self.inner(x["x"])
            def train_step(self, data):
                self.ids += data[0]["id"].numpy().tolist()
                return {"loss": 0.0}

        watched = Seen()
        watched.compile(optimizer="sgd", loss="mse", run_eagerly=True)
        watched.fit(make().as_keras(x=["x", "id"], y="y"), epochs=3, verbose=0)
        for epoch in range(3):
            assert sorted(watched.ids[600 * epoch : 600 * (epoch + 1)]) == list(range(600)), epoch
        assert watched.ids[:600] != watched.ids[600:1200]
        dataset = make(last="drop").as_tf_dataset()
        assert dataset.element_spec["x"].shape == (32, 3) and dataset.element_spec["x"].dtype == tf.float32
        ids = [int(row) for batch in dataset for row in batch["id"]]
        assert len(ids) == len(set(ids)) == 576
        pairs = make().as_tf_dataset().map(lambda batch: (batch["x"], batch["y"]))
        assert int(pairs.cardinality()) == 19
        model.fit(pairs, epochs=1, verbose=0)
        batch = next(iter(make(to="tensorflow")))
        assert isinstance(batch["x"], tf.Tensor) and batch["x"].shape == (32, 3)
        text = Loader({"word": ["tulip", "rose"]}, to="tensorflow")
        assert next(iter(text))["word"].dtype == tf.string
        moved = make(transform=lambda batch: (batch["x"] * 2, batch["y"]))
        model.fit(moved.as_keras(), epochs=1, verbose=0)
        assert moved.epoch == 1
        print(json.dumps("done"))
        """,
    )
    assert answer == "done"


def test_keras_on_torch(folder: Path) -> None:
    answer = run_script(
        folder,
        """
        import json, os
        os.environ["KERAS_BACKEND"] = "torch"
        import keras
        from cargobike.data.loading.loader import Loader

        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1)])
        model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
        loader = Loader("points.parquet", 32, columns={"x": ["a", "b", "c"], "y": "target"}, shuffle=True)
        loss = model.fit(loader.as_keras("x", "y"), epochs=12, verbose=0).history["loss"]
        assert loss[-1] < 0.1 * loss[0]
        model.evaluate(loader.as_keras("x", "y"), verbose=0)
        print(json.dumps([loader.epoch, loader.stats.rows]))
        """,
    )
    assert answer == [13, 13 * ROWS + 32], "Keras looks at one batch before it begins"


def test_jax(folder: Path) -> None:
    answer = run_script(
        folder,
        """
        import json
        import jax, jax.numpy as jnp
        from cargobike.data.loading.loader import Loader

        loader = Loader("points.parquet", 50, columns={"x": ["a", "b", "c"], "y": "target"}, shuffle=True, to="jax")
        weights = jnp.zeros(4)

        @jax.jit
        def step(weights, x, y):
            def loss(weights):
                return jnp.mean((x @ weights[:3] + weights[3] - y) ** 2)
            return weights - 0.1 * jax.grad(loss)(weights)

        for _ in range(8):
            for batch in loader:
                assert isinstance(batch["x"], jax.Array)
                weights = step(weights, batch["x"], batch["y"])
        print(json.dumps([round(float(weight), 1) for weight in weights]))
        """,
    )
    assert answer == [1.0, -2.0, 0.5, 0.3]


def test_lightning(folder: Path) -> None:
    """A loader is what a Trainer takes; its position is part of Lightning's checkpoint."""
    answer = run_script(
        folder,
        """
        import json, logging, warnings
        warnings.simplefilter("ignore")
        import lightning, torch
        from cargobike.data.loading.loader import Loader

        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

        class Line(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.line = torch.nn.Linear(3, 1)
                self.seen = []

            def training_step(self, batch, number):
                self.seen += batch["id"].tolist()
                return torch.nn.functional.mse_loss(self.line(batch["x"])[:, 0], batch["y"])

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        def make():
            names = {"x": ["a", "b", "c"], "y": "target", "id": "id"}
            return Loader("points.parquet", 50, columns=names, shuffle=True, seed=4, to="torch")

        def trainer(**options):
            return lightning.Trainer(accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
                                     enable_model_summary=False, enable_checkpointing=False, **options)

        class Half(lightning.Callback):
            def on_train_batch_end(self, trainer, *_):
                if trainer.global_step == 17:
                    trainer.save_checkpoint("half.ckpt")
                    trainer.should_stop = True

        model = Line()
        trainer(max_epochs=3, callbacks=[Half()]).fit(model, make())
        again, loader = Line(), make()
        trainer(max_epochs=3).fit(again, loader, ckpt_path="half.ckpt", weights_only=False)
        straight, whole = Line(), make()
        trainer(max_epochs=3).fit(straight, whole)
        assert len(straight.seen) == 1800
        print(json.dumps([len(model.seen), len(again.seen), (model.seen + again.seen) == straight.seen]))
        """,
    )
    assert answer[:2] == [850, 950], answer
    assert answer[2]
