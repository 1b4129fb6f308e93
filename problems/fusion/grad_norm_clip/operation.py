"""Gradients that are sharded over all ranks are clipped by their global norm."""
import torch
import torch.distributed as dist


def operation(grad, max_norm, clipped, norm) -> None:
    total = grad.square().sum().reshape(1)
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    torch.sqrt(total, out=norm)
    scale = torch.where(norm > 0, max_norm / norm, torch.ones_like(norm)).clamp(max=1.0)
    torch.mul(grad, scale, out=clipped)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (4096, 32768):
        grad = torch.randint(-3, 4, (n,), device="cuda").float()
        operation(grad, 10, torch.empty_like(grad), torch.empty(1, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
