"""Exclusive prefix sums, modulo 2^32, over the shards of all ranks."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp: [n], out: [n]; words of 32 bits in int64."""
    rank, world = dist.get_rank(), dist.get_world_size()
    scan = torch.cumsum(inp, 0)
    totals = torch.empty(world, dtype=torch.int64, device=inp.device)
    dist.all_gather_into_tensor(totals, scan[-1:])
    out.copy_((totals[:rank].sum() + scan - inp) & MASK)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (2048, 16384):
        inp = torch.randint(0, 2**32, (n,), dtype=torch.int64, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
