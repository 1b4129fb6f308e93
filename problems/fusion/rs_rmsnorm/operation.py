"""Reduce-scatter of partial activations by rows, and RMSNorm of the own rows."""
import torch
import torch.distributed as dist

EPSILON = 1e-5


def operation(inp: torch.Tensor, weight: torch.Tensor, norm: torch.Tensor) -> None:
    """inp: [world * rows, hidden], weight: [hidden], norm: [rows, hidden]."""
    h = torch.empty_like(norm)
    dist.reduce_scatter_tensor(h, inp, op=dist.ReduceOp.SUM)
    mean = h.square().mean(dim=1, keepdim=True)
    norm.copy_(weight * h * torch.rsqrt(mean + EPSILON))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for hidden in (128, 512):
        inp = torch.randn(2 * dist.get_world_size(), hidden, device="cuda")
        weight = torch.rand(hidden, device="cuda")
        operation(inp, weight, torch.empty(2, hidden, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
