"""Gradients summed over rows of ranks, clipped, and summed over columns, in three phases."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, row_sum: torch.Tensor, out: torch.Tensor, limit: float,
              row: dist.ProcessGroup, column: dist.ProcessGroup) -> None:
    """inp, out: [cols, n]; row_sum: [n]; floats."""
    dist.reduce_scatter_tensor(row_sum, inp.view(-1), group=row)
    total = torch.clamp(row_sum, -limit, limit)
    dist.all_reduce(total, group=column)
    dist.all_gather_into_tensor(out.view(-1), total, group=row)


def main() -> None:
    dist.init_process_group("nccl")
    rank, world, cols = dist.get_rank(), dist.get_world_size(), 2
    torch.cuda.set_device(rank)
    rows = [dist.new_group(list(range(f, f + cols))) for f in range(0, world, cols)]
    columns = [dist.new_group(list(range(c, world, cols))) for c in range(cols)]
    for n in (2048, 32768):
        inp = torch.randn(cols, n, device="cuda")
        operation(inp, torch.empty_like(inp[0]), torch.empty_like(inp), 2.0, rows[rank // cols],
                  columns[rank % cols])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
