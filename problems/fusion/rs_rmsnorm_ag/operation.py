"""Reduce-scatter by rows, residual addition and RMSNorm of the own rows, all-gather of the rows."""
import torch
import torch.distributed as dist

EPSILON = 1e-5


def operation(
    inp: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    stream: torch.Tensor,
    norm: torch.Tensor,
) -> None:
    """inp, norm: [world * rows, hidden], residual, stream: [rows, hidden], weight: [hidden]."""
    total = torch.empty_like(stream)
    dist.reduce_scatter_tensor(total, inp, op=dist.ReduceOp.SUM)
    stream.copy_(total + residual)
    mean = stream.square().mean(dim=1, keepdim=True)
    dist.all_gather_into_tensor(norm, weight * stream * torch.rsqrt(mean + EPSILON))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rows in (2, 16):
        inp = torch.randn(rows * dist.get_world_size(), 1024, device="cuda")
        residual, weight = torch.rand(rows, 1024, device="cuda"), torch.rand(1024, device="cuda")
        operation(inp, residual, weight, torch.empty_like(residual), torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
