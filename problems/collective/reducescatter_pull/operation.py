"""Reduce-scatter of bf16 gradients into fp32 shards, added in the order of ranks."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [n] bf16; out: [shard] fp32, of which elements beyond the end of inp are left alone."""
    rank, world, n, shard = dist.get_rank(), dist.get_world_size(), inp.numel(), out.numel()
    padded = torch.zeros(world, shard, dtype=inp.dtype, device=inp.device)
    padded.view(-1)[:n] = inp
    parts = torch.empty_like(padded)  # of this rank's shard, by rank
    dist.all_to_all_single(parts, padded)
    total = parts[0].float()
    for part in parts[1:]:
        total = total + part.float()
    count = max(0, min(shard, n - rank * shard))
    out[:count] = total[:count]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for n in (16384, 262144):
        inp = torch.randn(n, device="cuda").bfloat16()
        operation(inp, torch.empty(-(-n // (8 * world)) * 8, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
