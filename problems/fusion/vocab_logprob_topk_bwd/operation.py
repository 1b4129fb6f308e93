"""Gradient of filtered log-probabilities, in bits, for 32 rows at a time."""
import torch
import torch.distributed as dist


def operation(
    logits: torch.Tensor,
    token: torch.Tensor,
    top_p: torch.Tensor,
    upstream: torch.Tensor,
    grad: torch.Tensor,
    k: int,
) -> None:
    """logits, grad: [rows, vocab], all others: [rows]."""
    rows, vocab = logits.shape
    begin = dist.get_rank() * vocab
    for first in range(0, rows, 32):
        chunk = slice(first, min(first + 32, rows))
        shards = [torch.empty_like(logits[chunk]) for _ in range(dist.get_world_size())]
        dist.all_gather(shards, logits[chunk].contiguous())
        x = torch.cat(shards, dim=1)
        values, words = torch.sort(x, dim=1, descending=True, stable=True)
        values, words = values[:, :k], words[:, :k]
        weight = torch.exp2(values - values[:, :1]) * (values >= values[:, :1] - 12)
        before = weight.cumsum(dim=1) - weight
        limit = top_p[chunk, None] * weight.sum(dim=1, keepdim=True)
        weight = weight * (8 * before <= limit)
        p = weight / weight.sum(dim=1, keepdim=True)
        rest = (words == token[chunk, None]).float() - p
        all_words = torch.zeros_like(x)
        all_words.scatter_(1, words, upstream[chunk, None] * rest * (weight > 0))
        grad[chunk] = all_words[:, begin : begin + vocab]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows in (4, 40):
        logits = torch.randint(-256, 257, (rows, 128), device="cuda").float()
        token, top_p = torch.arange(2 * rows, dtype=torch.int32, device="cuda").view(2, rows) % 9
        upstream = torch.linspace(-1, 1, rows, device="cuda")
        operation(logits, token, top_p, upstream, torch.empty_like(logits), 24)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
