"""All-reduce of bf16 gradients by its two halves, both on buffers that are where they shall stay."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    world, rank = dist.get_world_size(), dist.get_rank()
    cuts = [inp.numel() * r // world for r in range(world + 1)]
    for owner in range(world):  # slices need not be equal
        part = inp[cuts[owner]:cuts[owner + 1]].float()
        dist.reduce(part, dst=owner)
        if rank == owner:
            out[cuts[owner]:cuts[owner + 1]] = part.to(out.dtype)
    for owner in range(world):
        dist.broadcast(out[cuts[owner]:cuts[owner + 1]], src=owner)


if __name__ == "__main__":
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (32768, 262144, 4194304):
        inp = torch.randn(n, device="cuda", dtype=torch.bfloat16)
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()
