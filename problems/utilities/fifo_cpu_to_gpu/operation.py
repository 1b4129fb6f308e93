"""Items of the host, each answered by the device; an item needs the answer to the one 16 before.

PyTorch has no queue to a running kernel: this launches an operation for every 16 items. One device, so no
NCCL either.
"""
import torch

MASK = 0xFFFFFFFF


def mix(x: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits, kept in int64. Products are made of halves, so that nothing overflows."""

    def times(a: torch.Tensor, b: int) -> torch.Tensor:
        return ((a >> 16) * b % 65536 * 65536 + (a & 0xFFFF) * b) & MASK

    x = x ^ (x >> 16)
    x = times(x, 0x85EBCA6B)
    x = x ^ (x >> 13)
    x = times(x, 0xC2B2AE35)
    return x ^ (x >> 16)


def operation(keys, fewer, table, answers, taken) -> None:
    """keys, answers: [items] on the host; table: [64, 32], taken: [items] on the device; int64."""
    count = keys.shape[0] - int(fewer)
    for first in range(0, count, 16):
        items = torch.arange(first, min(first + 16, count))
        words = keys[items] + (answers[items - 16] if first > 0 else 0) & MASK
        taken[items.cuda()] = words.cuda()
        sums = mix((taken[items.cuda(), None] + table[items.cuda() % 64]) & MASK).sum(1) & MASK
        answers[items] = sums.cpu()


def main() -> None:
    table = torch.randint(0, 2**32, (64, 32), dtype=torch.int64, device="cuda")
    for items in (64, 256):
        keys = torch.randint(0, 2**32, (items,), dtype=torch.int64)
        operation(keys, items // 8, table, torch.empty_like(keys), torch.empty_like(keys).cuda())


if __name__ == "__main__":
    main()
