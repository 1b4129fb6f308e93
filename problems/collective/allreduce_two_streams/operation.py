"""Two all-reduces at once: activations over rows of the grid of ranks, gradients over its columns."""
import torch
import torch.distributed as dist


def operation(act: torch.Tensor, grad: torch.Tensor, act_sum: torch.Tensor, grad_sum: torch.Tensor,
              rows: dist.ProcessGroup, columns: dist.ProcessGroup) -> None:
    act_sum.copy_(act)
    grad_sum.copy_(grad)
    works = [dist.all_reduce(act_sum, group=rows, async_op=True),
             dist.all_reduce(grad_sum, group=columns, async_op=True)]
    for work in works:
        work.wait()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    rank, world, cols = dist.get_rank(), dist.get_world_size(), 4
    torch.cuda.set_device(rank)
    rows = [dist.new_group(list(range(f, min(f + cols, world)))) for f in range(0, world, cols)]
    columns = [dist.new_group(list(range(c, world, cols))) for c in range(min(cols, world))]
    for n, m in ((2048, 2048), (2048, 32768)):
        act, grad = torch.randn(n, device="cuda"), torch.randn(m, device="cuda")
        operation(act, grad, torch.empty_like(act), torch.empty_like(grad), rows[rank // cols],
                  columns[rank % cols])
    dist.destroy_process_group()
