"""Items of many producers reach the host, each producer's in order; the order between them is free.

PyTorch has no queue between a running kernel and the host: this copies everything at once and shows
only which records the host must end with. One device, so no NCCL either.
"""
import torch


def operation(values: torch.Tensor, out: torch.Tensor) -> None:
    """values: [producers, items] on the device, words in int64; out: [producers * items] on the host."""
    arrived = values.cpu()
    producers, items = arrived.shape
    number = torch.arange(producers, dtype=torch.int64)[:, None].expand(producers, items)
    # One of the orders that are allowed: turn by turn.
    out.copy_((number << 32 | arrived).t().reshape(-1))


def main() -> None:
    for items in (8, 64):
        values = torch.randint(0, 2**32, (16, items), dtype=torch.int64, device="cuda")
        operation(values, torch.empty(16 * items, dtype=torch.int64))


if __name__ == "__main__":
    main()
