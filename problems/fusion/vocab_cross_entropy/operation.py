"""Cross-entropy with one label per shard of the vocabulary, and the gradient of the own logits."""
import torch
import torch.distributed as dist


def operation(
    logits: torch.Tensor, label: torch.Tensor, loss: torch.Tensor, grad: torch.Tensor
) -> None:
    """logits, grad: [rows, vocab], label, loss: [rows]."""
    world, index = dist.get_world_size(), label.long()[:, None]
    most = logits.amax(dim=1)
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    exps = torch.exp(logits - most[:, None])
    sums = torch.stack([exps.sum(dim=1), logits.gather(1, index)[:, 0]])
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    loss.copy_(most + torch.log(sums[0]) - sums[1] / world)
    grad.copy_(exps / sums[0][:, None])
    grad.scatter_add_(1, index, torch.full_like(loss, -1 / world)[:, None])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows in (4, 32):
        logits = torch.randint(-100, 101, (rows, 512), device="cuda").float()
        label = torch.randint(0, 512, (rows,), dtype=torch.int32, device="cuda")
        operation(logits, label, torch.empty(rows, device="cuda"), torch.empty_like(logits))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
