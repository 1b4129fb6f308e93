"""Mean loss over the counted tokens of all ranks, and the gradient factor of each own token."""
import torch
import torch.distributed as dist


def operation(
    loss: torch.Tensor, mask: torch.Tensor, mean: torch.Tensor, grad: torch.Tensor
) -> None:
    """loss, mask, grad: [n], mean: [1]."""
    sums = torch.stack([(loss * mask).sum(), mask.sum().float()])
    dist.all_reduce(sums, op=dist.ReduceOp.SUM)
    tokens = sums[1].clamp(min=1)  # without tokens all numerators are zero
    mean.copy_(sums[0:1] / tokens)
    grad.copy_(mask * (dist.get_world_size() / tokens))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (1024, 16384):
        loss = torch.randint(-64, 65, (n,), device="cuda").float()
        mask = torch.randint(0, 2, (n,), dtype=torch.int32, device="cuda")
        operation(loss, mask, torch.empty(1, device="cuda"), torch.empty(n, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
