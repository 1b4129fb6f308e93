"""Sums over the row and then, weighted by tokens, over the column of a grid of ranks."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, tokens: torch.Tensor, grid: torch.Tensor, cols: int,
              row_sum: torch.Tensor, out: torch.Tensor) -> None:
    """inp, row_sum, out: [n] fp32; tokens: [1] int32; grid: [world] int32, rank 0's counts."""
    rank, world = dist.get_rank(), dist.get_world_size()
    grid = grid.clone()
    dist.broadcast(grid, src=0)
    ranks = grid.tolist()
    place = ranks.index(rank)
    rows = [ranks[p:p + cols] for p in range(0, world, cols)]
    columns = [ranks[p::cols] for p in range(min(cols, world))]
    groups = [dist.new_group(sorted(members)) for members in rows + columns]
    row_sum.copy_(inp)
    dist.all_reduce(row_sum, group=groups[place // cols])
    torch.mul(row_sum, tokens.to(row_sum.dtype), out=out)
    dist.all_reduce(out, group=groups[len(rows) + place % cols])


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (2048, 32768):
        inp = torch.randint(-8, 9, (n,), device="cuda").float()
        tokens = torch.randint(0, 16, (1,), device="cuda", dtype=torch.int32)
        grid = torch.randperm(dist.get_world_size(), device="cuda").int()
        operation(inp, tokens, grid, 4, torch.empty_like(inp), torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
