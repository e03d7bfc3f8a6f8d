"""The Trainer of Hugging Face Transformers, on a model that is made on the spot."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Sentences(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": torch.arange(8) + index, "labels": torch.tensor(index % 2)}


def main() -> dict[str, float]:
    config = BertConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    arguments = TrainingArguments(
        output_dir="trained",
        use_cpu=True,
        ddp_backend="gloo",
        per_device_train_batch_size=2,
        num_train_epochs=1,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(model=BertForSequenceClassification(config), args=arguments, train_dataset=Sentences())
    metrics = trainer.train().metrics
    trainer.save_model("trained")
    return metrics


if __name__ == "__main__":
    main()
