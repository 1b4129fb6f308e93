"""Reduce-scatter of bf16 gradients: sums in fp32, rounded once."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [n] bf16; out: [shard] bf16, of which elements beyond the end of inp are left alone."""
    rank, world, n, shard = dist.get_rank(), dist.get_world_size(), inp.numel(), out.numel()
    padded = torch.zeros(world * shard, device=inp.device)
    padded[:n] = inp.float()
    total = torch.empty(shard, device=inp.device)
    dist.reduce_scatter_tensor(total, padded, op=dist.ReduceOp.SUM)
    count = max(0, min(shard, n - rank * shard))
    out[:count] = total[:count].bfloat16()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for n in (16384, 131072):
        inp = torch.randn(n, device="cuda").bfloat16()
        out = torch.empty(-(-n // (8 * world)) * 8, dtype=inp.dtype, device="cuda")
        operation(inp, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
