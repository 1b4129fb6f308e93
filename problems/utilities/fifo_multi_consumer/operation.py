"""Items of many producers reach the host at once, in one of the allowed orders. One device, so no NCCL."""
import torch


def operation(counts: torch.Tensor, values: torch.Tensor, out: torch.Tensor) -> int:
    """counts: [producers], values: words in int64, on the device; out: int64 on the host. Returns the number."""
    lengths = counts.cpu()
    total = int(lengths.sum())
    producer = torch.repeat_interleave(torch.arange(lengths.numel()), lengths)
    out[:total] = producer << 32 | values[:total].cpu()
    return total


def main() -> None:
    counts = torch.randint(0, 33, (16,), device="cuda")
    values = torch.randint(0, 2**32, (512,), dtype=torch.int64, device="cuda")
    operation(counts, values, torch.empty(512, dtype=torch.int64))


if __name__ == "__main__":
    main()
