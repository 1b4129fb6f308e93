"""Greedy decode: the word with the largest logit of a sharded output layer, the first one on ties."""
import torch
import torch.distributed as dist


def operation(
    hidden: torch.Tensor, weight: torch.Tensor, word: torch.Tensor, value: torch.Tensor
) -> None:
    """hidden: [rows, depth], weight: [vocab, depth], word, value: [rows]."""
    logits = hidden.float() @ weight.float().T
    best = logits.amax(dim=1)
    index = (logits == best[:, None]).int().argmax(dim=1) + dist.get_rank() * weight.shape[0]
    candidates = torch.stack([best.double(), index.double()])
    everybody = [torch.empty_like(candidates) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, candidates)
    values = torch.stack([c[0] for c in everybody])
    words = torch.stack([c[1] for c in everybody])
    largest = values.amax(dim=0)
    words[values < largest] = float("inf")
    word.copy_(words.amin(dim=0))
    value.copy_(largest)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows in (1, 4):
        hidden = torch.randint(-4, 5, (rows, 256), device="cuda").half()
        weight = torch.randint(-4, 5, (128, 256), device="cuda").half()
        word = torch.empty(rows, dtype=torch.int32, device="cuda")
        operation(hidden, weight, word, torch.empty(rows, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
