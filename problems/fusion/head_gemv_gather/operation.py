"""Logits of a vocabulary-parallel head, gathered on all ranks."""
import torch
import torch.distributed as dist


def operation(hidden, weight, logits) -> None:
    """hidden: [rows, depth], weight: [vocab, depth] (halves); logits: [rows, world * vocab] (floats)."""
    world, rows, vocab = dist.get_world_size(), hidden.shape[0], weight.shape[0]
    own = hidden.float() @ weight.float().t()
    every = torch.empty(world * rows, vocab, device=own.device)
    dist.all_gather_into_tensor(every, own)
    logits.copy_(every.view(world, rows, vocab).transpose(0, 1).reshape(rows, world * vocab))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for rows, vocab in ((1, 512), (2, 1024)):
        hidden = torch.randint(-4, 5, (rows, 256), device="cuda").half()
        weight = torch.randint(-4, 5, (vocab, 256), device="cuda").half()
        operation(hidden, weight, torch.empty(rows, world * vocab, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
